"""Every listing can be asked what it would have said at a revision or date (B1)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.copies import copy_workspace
from memfs import ContextMemory
from memfs.model import MemoryItem, Origin
from memfs.model.item import Link
from memfs.workspace import open_workspace

from .conftest import Memfs

Git = Callable[..., str]


@pytest.fixture
def then(memfs: Memfs, root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A commit with one of each; afterwards all of it is gone, or something else. Made once, and copied."""
    made = tmp_path_factory.getbasetemp() / "listings"
    if not made.exists():
        commit = _lived_in(memfs, root)
        copy_workspace(root, made)
        (made.parent / "listings-commit").write_text(commit)
        return commit
    shutil.rmtree(root)
    copy_workspace(made, root)
    return (made.parent / "listings-commit").read_text()


def _lived_in(memfs: Memfs, root: Path) -> str:
    memfs("team", "convention", "propose", "Columns hold UTC.", "--id", "utc", "--title", "Times are UTC")
    memfs(
        "agent", "episode", "record", "edited the token check", "--outcome", "failure", "--error", "test_login failed"
    )
    memfs("state", "iteration", "start")
    with open_workspace(root, watch=False) as workspace:
        pattern = {
            "template": "create {x} login",
            "occurrences": 3,
            "confidence": 0.8,
            "examples": ["create user login"],
        }
        workspace.store.put(MemoryItem("create {x} login", "pattern", id="logins", data=pattern))
        workspace.store.put(MemoryItem("The timeout is 9 seconds", id="nine"))
        workspace.store.put(
            MemoryItem("The timeout is 5 seconds", id="five", links=(Link(to="nine", relation="contradicts"),))
        )
        weak = workspace.store.put(MemoryItem("weak", id="weak", importance=0.01, origin=Origin(agent="a")))
        workspace.store.flush(adopt=True)
        assert workspace.pruner.prune().items[0].item.id == weak.id
        workspace.store.flush()
        pruned = workspace.repository.head_commit()
        made = workspace.states.checkpoints.create(reason="the first of all")
        commit = workspace.repository.head_commit() or ""
        for name in ("utc", "logins", "nine", "five"):
            workspace.store.delete(name)
        for row in workspace.sources.triggers.rows("episode"):
            workspace.store.delete(row.id)
        workspace.history.restore(f"{pruned}~1", "weak")
        shutil.rmtree(root / "ContextMemory/checkpoints" / made.id)
        workspace.states.iterations.close()
        workspace.states.iterations.start()
        workspace.store.flush(adopt=True)
    return commit


@pytest.mark.parametrize(
    ("words", "key", "expected", "many"),
    [
        (("team", "convention", "list"), "conventions", "Times are UTC", 0),
        (("team", "conflicts"), "conflicts", "timeout", 0),
        (("list", "--archived"), "items", "weak", 0),
        (("state", "iteration", "list"), "iterations", "open", 2),
        (("state", "checkpoint", "list"), "checkpoints", "ckpt_", 0),
    ],
)
def test_a_listing_answers_for_a_revision(
    memfs: Memfs, then: str, words: tuple[str, ...], key: str, expected: str, many: int
) -> None:
    """What was there then is listed, whatever became of it since, and the answer says of when it is."""
    assert len(memfs(*words, "--json").json[key]) == many
    found = memfs(*words, "--as-of", then, "--json")
    assert found.code == 0, found.err
    assert found.json["as_of"]["commit"] == then
    assert len(found.json[key]) >= 1
    shown = memfs(*words, "--as-of", then)
    assert shown.code == 0
    assert expected in shown.out
    assert f"commit {then[:10]}" in shown.err


def test_the_state_of_agents_is_asked_for_a_revision(memfs: Memfs, root: Path, git: Git) -> None:
    """What agents and reviews had said by then is shown, found and counted, an archived iteration included (B1)."""
    with ContextMemory(root) as memory:
        memory.start_iteration(1)
        memory.store_agent_output({"agent_type": "Ranking", "task_id": "t", "results": {"primary_output": "a kinase"}})
        memory.store_meta_review({"iteration_number": 1, "critique": {"common_patterns": ["late with snow"]}})
        memory.close_iteration(1)
        memory.workspace.states.archiver.run(active_days=0)
        memory.workspace.store.flush()
        then = memory.workspace.repository.head_commit() or ""
    git(root, "rm", "-r", "-q", "ContextMemory/archive")
    git(root, "commit", "-q", "-m", "Drop the archive")
    assert memfs("admin", "archive", "list", "--json").json["archives"] == []
    (one,) = memfs("admin", "archive", "list", "--as-of", then, "--json").json["archives"]
    assert one["iterations"] == [1]
    assert memfs("state", "trends", "--json").json["patterns"] == []
    assert memfs("state", "trends", "--as-of", then, "--json").json["patterns"][0]["name"] == "late with snow"
    hits = memfs("state", "search", "kinase", "--as-of", then, "--json").json
    assert (hits["as_of"]["commit"], len(hits["hits"])) == (then, 1)
    shown = memfs("state", "show", "--agent", "Ranking", "--as-of", then).json
    assert "a kinase" in json.dumps(shown)
    assert git(root, "status", "--porcelain") == ""


def test_the_log_ends_at_a_revision(memfs: Memfs, then: str) -> None:
    """Commits that came later are not in it."""
    rows = memfs("log", "--as-of", then, "--json").json["revisions"]
    assert rows[0]["commit"] == then
    assert len(memfs("log", "--json").json["revisions"]) > 1
    assert rows[0]["commit"] != memfs("log", "--json").json["revisions"][0]["commit"]
    assert memfs("log", "--as-of", "nowhere").code != 0


def test_an_open_iteration_was_open_then(memfs: Memfs, then: str) -> None:
    """An iteration that was closed since is shown as it was, with the documents that it had."""
    (row,) = memfs("state", "iteration", "list", "--as-of", then, "--json").json["iterations"]
    assert (row["iteration"] if "iteration" in row else row["number"], row["status"], row["closed"]) == (
        1,
        "open",
        None,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("team", "convention", "accept", "utc"),
        ("agent", "episode", "record", "x", "--outcome", "success"),
        ("team", "conflicts", "--scan"),
        ("state", "iteration", "start"),
        ("state", "resume", "token"),
    ],
)
def test_what_changes_something_has_no_past(memfs: Memfs, then: str, words: tuple[str, ...]) -> None:
    """Only what lists can be asked about the past."""
    assert memfs(*words, "--as-of", then).code == 2
