"""``memfs state``: storing and asking for the state of agents from a shell (S1-S3, S9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Memfs, git

OUTPUT = {
    "agent_type": "Tide Watcher",
    "task_id": "t/1",
    "results": {"primary_output": "ebb", "confidence_score": 0.5},
    "state_data": {"internal_state": {"gauge": 3}},
}


def lines(*documents: dict[str, Any]) -> str:
    """Documents as JSON Lines."""
    return "".join(json.dumps(one) + "\n" for one in documents)


def test_documents_of_every_type_are_stored_and_found_again(memfs: Memfs, root: Path) -> None:
    """A shell does what ContextMemory does: places follow, a checkpoint is made, a token resumes (S1, S2, S9)."""
    made = memfs(
        "state",
        "store",
        "agent_output",
        stdin=lines(OUTPUT),
    ).out
    update = {"update_type": "checkpoint", "checkpoint_data": {"in_flight_tasks": [{"task_id": "t/2"}]}}
    point = memfs("state", "store", "state_update", "--json", stdin=json.dumps(update, indent=2)).json["stored"]
    (root / "pair.jsonl").write_text(lines({"id": "h1"}, {"id": "h2", "parents": "h1"}))
    stored = memfs("state", "store", "hypothesis", str(root / "pair.jsonl")).out
    memfs("state", "store", "tournament_result", "-", stdin=lines({"winner": "h2", "loser": "h1"}))
    memfs("state", "store", "meta_review", stdin='{"iteration_number": 1, "critique": {}}')

    assert made.startswith("Stored ContextMemory/iterations/iteration_001/agent_outputs/Tide%20Watcher/t%2F1.json")
    token = made.split()[-1]
    assert memfs("state", "resume", token).json == {"gauge": 3}
    assert memfs("state", "resume", token, "--json").json == {"token": token, "state": {"gauge": 3}}
    assert point[0]["checkpoint_id"] in memfs("state", "checkpoint", "list").out
    assert [line.rpartition("/")[2] for line in stored.splitlines()] == ["h1.json", "h2.json"]
    found = memfs("state", "show").json
    assert found["request_type"] == "full"
    assert found["content"]["agent_states"]["Tide Watcher"]["internal_state"] == {"gauge": 3}
    assert found["content"]["tournament_results"]["standings"] == {
        "h1": {"matches": 1, "wins": 0},
        "h2": {"matches": 1, "wins": 1},
    }
    assert len(found["content"]["feedback_history"]) == 1
    assert git(root, "status", "--porcelain", "--", "ContextMemory") == ""


def test_what_is_asked_for_can_be_named(memfs: Memfs) -> None:
    """Agents, figures, iterations and times narrow the answer (S3)."""
    memfs("state", "store", "agent_output", stdin=lines(OUTPUT))
    partial = memfs("state", "show", "--agent", "Tide Watcher", "--metric", "confidence_score").json
    assert partial["request_type"] == "partial"
    assert partial["content"]["agent_states"]["Tide Watcher"]["metrics"]["confidence_score"][0]["value"] == 0.5
    assert memfs("state", "show", "--request", "summary").json["request_type"] == "summary"
    assert memfs("state", "show", "--iteration", "9").json["missing"] == ["there is no iteration 9"]
    assert memfs("state", "show", "--since", "7d", "--hypothesis", "h9").json["partial"] is True
    assert memfs("state", "show", "--deadline", "0").json["missing"][-1].startswith("the 0 s for this answer were over")
    assert memfs("state", "show", "--whole").json["partial"] is False


def test_a_refused_document_is_named_by_its_line(memfs: Memfs) -> None:
    """The error names line and field, and how many are stored before it (S18)."""
    ran = memfs("state", "store", "agent_output", stdin=lines(OUTPUT, {"agent_type": "Tide Watcher"}))
    assert (ran.code, "standard input:2: task_id: the field is missing" in ran.err) == (1, True)
    assert "the 1 before it are stored" in ran.err
    wrong = memfs("state", "store", "hypothesis", stdin='{"id": "h", "rating": "high"}')
    assert (wrong.code, "rating" in wrong.err, "the 0 before" in wrong.err) == (1, True, False)


@pytest.mark.parametrize(
    ("words", "given", "code", "message"),
    [
        (("store",), "", 2, "Missing argument 'TYPE'"),
        (("store", "feedback"), "", 2, "'feedback' is not one of 'state_update', 'agent_output'"),
        (("store", "hypothesis", "nowhere.json"), "", 1, "nowhere.json: cannot be read"),
        (("store", "hypothesis"), "", 0, "there was nothing to store"),
        (("store", "hypothesis"), '{"id": "a",\n "rating" 3}', 1, "standard input:2:11: expected ':' after the key"),
        (("store", "hypothesis"), '{"id": "a"}\n[]\n', 1, "standard input:2: not a JSON object"),
        (("search",), "", 2, "Missing argument 'WORDS...'"),
        (("show", "--whole", "--deadline", "3"), "", 2, "'--whole' has no deadline"),
        (("show", "--since", "someday"), "", 2, "--since"),
        (("show", "--since", "1d", "--until", "2d"), "", 2, "the start is after the end"),
        (("resume",), "", 2, "Missing argument 'TOKEN'"),
        (("resume", "mine"), "", 1, "'mine' is not a continuation token"),
    ],
)
def test_what_cannot_be_done_is_reported(
    memfs: Memfs, words: tuple[str, ...], given: str, code: int, message: str
) -> None:
    """With the remedy and the usual exit codes; nothing of a text that is not JSON is stored."""
    ran = memfs("state", *words, stdin=given)
    assert (ran.code, message in ran.err) == (code, True), ran.err
    assert "0 iterations" in memfs("state", "iteration", "list").err


def test_an_import_of_documents_without_a_path_says_how_they_are_stored(memfs: Memfs, root: Path) -> None:
    """They are not memories of an unknown type (S19)."""
    (root / "outputs.jsonl").write_text(lines({"type": "agent_output", "document": OUTPUT}))
    ran = memfs("import", str(root / "outputs.jsonl"))
    assert (ran.code, "memfs state store" in ran.err, "unknown memory type" in ran.err) == (1, True, False)
