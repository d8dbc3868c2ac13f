"""Continuation tokens: kept, resumed, superseded, used up, expired (S9)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs import SchemaInvalid, Workspace
from memfs.errors import TokenInvalid
from tests.state.rig import NOON, Rig

Opened = Callable[..., Workspace]


@pytest.fixture
def rig(opened: Opened) -> Rig:
    """A new workspace."""
    return Rig(opened())


def output(state: Any = None, token: str = "", **fields: Any) -> dict[str, Any]:
    """An output of the agent's task."""
    data: dict[str, Any] = {"agent_type": "Gen", "task_id": "t/1", "results": {"primary_output": "x"}, **fields}
    if state is not None or token:
        data["state_data"] = {"internal_state": state, "continuation_token": token or None}
    return data


def test_a_state_is_resumed_with_its_token_as_often_as_needed(rig: Rig) -> None:
    """A crash right after resuming loses nothing; the document has what is known of the token (S9)."""
    token = rig.continuations.save("Gen", "t/1", {"step": 3, "done": ["a"]})

    resumed = rig.continuations.resume(token)
    assert resumed == {"step": 3, "done": ["a"]}
    resumed["step"] = 9
    assert rig.continuations.resume(token) == {"step": 3, "done": ["a"]}
    assert rig.read(f"iteration_001/continuations/{token}.json") == {
        "token": token,
        "agent": "Gen",
        "task_id": "t/1",
        "state": {"step": 3, "done": ["a"]},
        "created": "2026-03-01T12:00:00Z",
        "expires": "2026-03-08T12:00:00Z",
    }


@pytest.mark.parametrize("state", [None, 0, "", [1, [2]], {"a": None}, {"token": "ct-1-" + "0a" * 16}])
def test_any_value_is_a_state(rig: Rig, state: Any) -> None:
    """Also one that is empty, and one that holds a token of memfs's (S9)."""
    assert rig.continuations.resume(rig.continuations.save("a", "t", state)) == state


def test_another_process_resumes(rig: Rig) -> None:
    """A token is all that is needed (S9)."""
    rig.expire_after(0)  # whatever that process's clock says
    token = rig.continuations.save("Gen", "t/1", {"step": 3})
    code = (
        "import sys, json; from memfs.workspace import open_workspace\n"
        "with open_workspace(sys.argv[1], watch=False) as found:\n"
        "    print(json.dumps(found.states.continuations.resume(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(rig.workspace.root), token]

    done = subprocess.run(command, check=True, capture_output=True, text=True)

    assert json.loads(done.stdout) == {"step": 3}


def test_an_output_with_state_returns_a_token(rig: Rig) -> None:
    """It keeps the agent's state as ``save`` does, in one write with the output; the same again has the same token."""
    ack = rig.recorder.agent_output(output({"step": 1}))
    again = rig.recorder.agent_output(output({"step": 1}))

    assert rig.continuations.resume(ack.continuation_token) == {"step": 1}
    assert (again.path, again.continuation_token) == (ack.path, ack.continuation_token)
    assert len(rig.names("iteration_001/continuations")) == 1

    rig.continuations.save("Gen", "t/1", {"step": 2})
    back = rig.recorder.agent_output(output({"step": 1}))
    assert back.path == ack.path
    assert rig.continuations.resume(back.continuation_token) == {"step": 1}


def test_newer_state_supersedes_and_names_nobody_elses(rig: Rig) -> None:
    """Of one agent's task only the newest token is taken, from whatever iteration; others' tokens stay (S9)."""
    first = rig.continuations.save("Gen", "t/1", 1)
    others = [rig.continuations.save("Gen", "t/2", 2), rig.continuations.save("gen", "t/1", 3)]
    rig.iterations.start(2)
    rig.later(seconds=1)
    newer = rig.recorder.agent_output(output(4)).continuation_token

    with pytest.raises(
        TokenInvalid, match=r"^continuation token \S+ was superseded by newer state of task 't/1' of 'Gen'"
    ) as caught:
        rig.continuations.resume(first)
    assert newer not in str(caught.value)
    assert [rig.continuations.resume(token) for token in (*others, newer)] == [2, 3, 4]
    assert rig.read(f"iteration_001/continuations/{first}.json")["superseded_by"] == newer


def test_a_final_output_uses_the_token_up(rig: Rig) -> None:
    """An output without state ends the task; one that only names the token it goes on from does not (S9)."""
    token = rig.continuations.save("Gen", "t/1", 1)
    going_on = rig.recorder.agent_output(output(token=token))
    assert going_on.continuation_token == token
    assert rig.continuations.resume(token) == 1

    final = rig.recorder.agent_output(output(results={"primary_output": "end"}))

    assert final.continuation_token == ""
    with pytest.raises(TokenInvalid, match=r"continuation token \S+ was used up: task 't/1' of 'Gen'") as caught:
        rig.continuations.resume(token)
    assert caught.value.hint == f"read {final.path}"
    new = rig.recorder.agent_output(output({"again": 1}, timestamp="2026-03-01T13:00:00Z")).continuation_token
    assert rig.continuations.resume(new) == {"again": 1}


@pytest.mark.parametrize(
    ("expires", "end"),
    [
        (None, "2026-03-01T14:00:00Z"),
        (timedelta(minutes=30), "2026-03-01T12:30:00Z"),
        (NOON + timedelta(days=2), "2026-03-03T12:00:00Z"),
        ("2026-03-01T18:00:00+01:00", "2026-03-01T17:00:00Z"),
    ],
)
def test_a_token_expires(rig: Rig, expires: Any, end: str) -> None:
    """After the hours that the configuration says, or when the caller says (S9)."""
    rig.expire_after(2)
    token = rig.continuations.save("Gen", "t/1", 1, expires)

    rig.now = datetime.fromisoformat(end) - timedelta(seconds=1)
    assert rig.continuations.resume(token) == 1
    rig.later(seconds=1)
    with pytest.raises(TokenInvalid, match=rf"continuation token \S+ expired on {end}"):
        rig.continuations.resume(token)


def test_no_hours_means_that_tokens_never_expire(rig: Rig) -> None:
    """0 hours is no limit (S9)."""
    rig.expire_after(0)
    token = rig.continuations.save("Gen", "t/1", 1)
    rig.later(days=10_000)

    assert rig.continuations.resume(token) == 1


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "../../secret",
        "ct-1-../../etc",
        "ct-1-" + "0" * 31,
        "CT-1-" + "0" * 32,
        "ct-1-" + "0" * 32 + "\n",
        7,
        None,
    ],
)
def test_what_is_not_a_token_is_never_looked_for(rig: Rig, token: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what memfs could have given out is made a path (S9, faults row 14)."""
    monkeypatch.setattr(rig.workspace.states.reading, "load", None)
    with pytest.raises(TokenInvalid, match=r"is not a continuation token"):
        rig.continuations.resume(token)


def test_a_token_of_another_workspace_is_unknown(rig: Rig) -> None:
    """So is one whose document somebody renamed (S9)."""
    token = rig.continuations.save("Gen", "t/1", 1)
    other = token[:-1] + ("0" if token[-1] != "0" else "1")
    with pytest.raises(TokenInvalid, match=r"continuation token \S+ is unknown here"):
        rig.continuations.resume(other)
    folder = rig.workspace.root / "ContextMemory/iterations/iteration_001/continuations"
    (folder / f"{token}.json").rename(folder / f"{other}.json")
    for one in (token, other):
        with pytest.raises(TokenInvalid, match="is unknown here"):
            rig.continuations.resume(one)


def test_tokens_cannot_be_guessed(rig: Rig) -> None:
    """Each has 128 random bits."""
    tokens = {rig.continuations.save("a", f"t{n}", n) for n in range(5)}
    assert len({token.rpartition("-")[2] for token in tokens}) == 5
    assert all(len(token) == len("ct-1-") + 32 for token in tokens)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", "t", 1), "agent"),
        (("a", "", 1), "task_id"),
        (("a", None, 1), "task_id"),
        (("a", "t", 1, "soon"), "expires"),
        (("a", "t", 1, 7), "expires"),
        (("a", "t", {"x": {1, 2}}), "state"),
    ],
)
def test_what_cannot_be_kept_is_refused(rig: Rig, arguments: tuple[Any, ...], field: str) -> None:
    """The error names the field, and nothing is stored (S9)."""
    with pytest.raises(SchemaInvalid) as caught:
        rig.continuations.save(*arguments)
    assert (caught.value.field or "").startswith(field)
    assert rig.names("iteration_001/continuations") == []


def test_the_configuration_says_for_how_long(opened: Opened) -> None:
    """``continuation.expires_hours`` of ``system_config``; while that file is invalid, a week (S9)."""
    workspace = opened()
    config: Path = workspace.root / "ContextMemory/configuration/system_config.json"

    def hours() -> float:
        return workspace.states.reading.system_config().expires_hours

    assert hours() == 168
    config.write_text('{"continuation": {"expires_hours": 0.5}}')
    assert hours() == 0.5
    token = workspace.states.continuations.save("a", "t", 1)
    kept = workspace.states.reading.load(f"ContextMemory/iterations/iteration_001/continuations/{token}.json")
    lasts = datetime.fromisoformat(kept["expires"]) - datetime.fromisoformat(kept["created"])
    assert lasts == timedelta(hours=0.5)
    config.write_text('{"continuation": {"expires_hours": -1}}')
    assert hours() == 168


@pytest.mark.parametrize("unpack", [False, True])
@pytest.mark.parametrize(
    ("newer", "message"),
    [("state", "superseded by newer state"), ("output", "used up"), ("other", ""), ("going on", "")],
)
def test_a_token_in_an_archive_ends_as_another_does(rig: Rig, newer: str, message: str, unpack: bool) -> None:
    """It cannot be marked there: resuming finds what took its place in a later iteration (S9, S15)."""
    archiver = rig.workspace.states.archiver
    token = rig.continuations.save("Gen", "t/1", {"step": 1})
    rig.iterations.close(1)
    archiver.archive({1: NOON}, 1)
    assert rig.continuations.resume(token) == {"step": 1}
    if newer == "state":
        rig.continuations.save("Gen", "t/1", {"step": 2})
    else:
        named = {"output": {}, "other": {"task_id": "t/2"}, "going on": {"token": token}}[newer]
        rig.recorder.agent_output(output(**named))
    if unpack:
        archiver.unpack(1)

    if message:
        with pytest.raises(TokenInvalid, match=message):
            rig.continuations.resume(token)
    else:
        assert rig.continuations.resume(token) == {"step": 1}
