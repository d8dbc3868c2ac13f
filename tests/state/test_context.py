"""Contexts: keys and values of a session or workflow, one document each (L4)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import ContentError, IdInvalid, SchemaInvalid, SecretDetected
from memfs.model import MemoryItem
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
Git = Callable[..., str]


def file_of(workspace: Workspace, name: str = "session") -> Path:
    """Where a context is."""
    return workspace.root / "ContextMemory" / "context" / f"{name}.yaml"


def test_keys_keep_their_latest_values(opened: Open) -> None:
    """Setting one key leaves the others alone, in this process and in the next (L4)."""
    workspace = opened()
    workspace.contexts.set({"phase": "expand", "open": ["A-1", {"B": 2.5}]})
    returned = workspace.contexts.set({"phase": "refine", "done": None})

    wanted = {"phase": "refine", "open": ["A-1", {"B": 2.5}], "done": None}
    assert returned == workspace.contexts.read() == opened(workspace.root).contexts.read() == wanted


def test_memories_and_contexts_do_not_touch_each_other(opened: Open) -> None:
    """Storing, replacing and forgetting items changes no context, and no context is an item (L4)."""
    workspace = opened()
    workspace.contexts.set({"branch": "main"})
    before = file_of(workspace).read_bytes()
    stored = workspace.store.put(MemoryItem("a note", id="session"))
    workspace.store.put(stored.replace(content="another note"))
    workspace.store.delete("session")

    assert file_of(workspace).read_bytes() == before
    assert workspace.store.count() == 0


def test_comments_and_order_of_a_person_survive(opened: Open) -> None:
    """A key is changed in place; what a person wrote around it stays, under every policy (K2)."""
    workspace = opened(history__adopt="leave")
    file_of(workspace).parent.mkdir()
    file_of(workspace).write_text("# ours\nzeta: 1  # first\n\nalpha: old\n")

    workspace.contexts.set({"alpha": "new", "beta": True})

    assert file_of(workspace).read_text() == "# ours\nzeta: 1  # first\n\nalpha: new\nbeta: true\n"


def test_every_change_is_in_history(opened: Open, git: Git) -> None:
    """The keys that changed are in the commit's message (K4)."""
    workspace = opened()
    workspace.contexts.set({"a": 1, "b": 2, "c": 3, "d": 4})
    workspace.store.flush()
    workspace.contexts.set({"a": 5})
    workspace.store.flush()

    subjects = git(workspace.root, "log", "--format=%s", "-2").splitlines()
    assert subjects == ["Set a of the context session", "Set a, b, c and 1 more of the context session"]
    assert "a: 1" in git(workspace.root, "show", "HEAD~1:ContextMemory/context/session.yaml")


def test_what_changes_nothing_writes_nothing(opened: Open) -> None:
    """The same value again, and no values, leave no trace."""
    workspace = opened()
    nothing = workspace.contexts.set({})
    assert (nothing, file_of(workspace).exists()) == ({}, False)
    workspace.contexts.set({"a": 1})
    waiting = workspace.store.pending().count

    workspace.contexts.set({"a": 1})

    assert workspace.store.pending().count == waiting


def test_contexts_have_names(opened: Open) -> None:
    """Each name is a file; one that a person made as JSON is the same to everybody (K2)."""
    workspace = opened()
    workspace.contexts.set({"a": 1}, "release-7")
    file_of(workspace, "other").with_suffix(".json").write_text('{"b": 2}')
    workspace.contexts.set({"c": 3}, "other")

    assert workspace.contexts.read("release-7") == {"a": 1}
    assert workspace.contexts.read("other") == {"b": 2, "c": 3}
    assert not file_of(workspace, "other").exists()
    with pytest.raises(IdInvalid):
        workspace.contexts.set({"a": 1}, "../outside")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"when": date(2026, 1, 1)}, SchemaInvalid),
        ({"key": "AKIA" + "QYLPMN5HHHFPZAM2"}, SecretDetected),
        ({"text": "a\u202eb"}, ContentError),
        ({3: "number"}, SchemaInvalid),
        (["a"], SchemaInvalid),
    ],
)
def test_what_cannot_be_kept_is_refused(opened: Open, values: Any, error: type[Exception]) -> None:
    """Nothing is written that could not be read back, that hides text or that is a secret (K3, B6)."""
    workspace = opened()

    with pytest.raises(error):
        workspace.contexts.set(values)

    assert not file_of(workspace).exists()


def test_an_invalid_file_is_named(opened: Open) -> None:
    """A slip of a person in the file is an error with line and column, and is not written over (K3)."""
    workspace = opened()
    file_of(workspace).parent.mkdir()
    file_of(workspace).write_text("a: 1\na: 2\n")

    for ask in (workspace.contexts.read, lambda: workspace.contexts.set({"b": 1})):
        with pytest.raises(ContentError, match=r"session\.yaml:2"):
            ask()

    assert file_of(workspace).read_text() == "a: 1\na: 2\n"


def test_many_writers_lose_nothing(opened: Open) -> None:
    """Threads and handles that set keys at once all keep theirs (L4, K9)."""
    first = opened()
    second = opened(first.root)
    writers = [
        threading.Thread(target=lambda handle=handle, number=number: handle.contexts.set({f"k{number}": number}))
        for number, handle in enumerate([first, second] * 4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert first.contexts.read() == {f"k{number}": number for number in range(8)}
