"""Sentences of commits: they say what was remembered, in one safe line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit import secret_samples
from memfs.model import MemoryItem
from memfs.store.plan import combined_message, excerpt, message_for_items
from memfs.workspace import Workspace


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A workspace that commits only when asked."""
    return opened(history__commit="manual")


def subjects(workspace: Workspace) -> list[str]:
    """The subjects of all commits, the newest first."""
    workspace.store.flush(adopt=True)
    return [revision.subject for revision in workspace.history.log()]


def test_a_commit_says_the_text(workspace: Workspace) -> None:
    """What was remembered, changed and forgotten is in the subject, and why (D2)."""
    stored = workspace.store.put(MemoryItem("We chose PostgreSQL for transactions"))
    assert subjects(workspace)[0] == "Remember: We chose PostgreSQL for transactions"
    stored = workspace.store.put(stored.replace(content="We chose SQLite"))
    assert subjects(workspace)[0] == "Update: We chose SQLite"
    stored = workspace.store.put(stored.replace(memory_type="procedural"))
    assert subjects(workspace)[0] == "Update: We chose SQLite"
    workspace.store.delete(stored.id, reason="no longer\ntrue")
    assert subjects(workspace)[0] == "Forget: We chose SQLite (no longer true)"


def test_several_changes_name_the_first(workspace: Workspace) -> None:
    """A window's commit names its first change and lists them all (D2)."""
    for number in range(3):
        workspace.store.put(MemoryItem(f"Port {number}"))
    assert subjects(workspace)[0] == "Remember: Port 0 and 2 more"
    assert workspace.history.log()[0].body.splitlines() == [f"- Remember: Port {number}" for number in range(3)]


def test_a_hand_edit_says_the_text(workspace: Workspace) -> None:
    """A person's own file is named by what it says, and by its name once it is gone (D2)."""
    folder = workspace.root / "ContextMemory/memories/semantic"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tea.yaml").write_text("title: Tea at four\ncontent: Every day.\n")
    assert subjects(workspace)[0] == "Edit by hand: Tea at four"
    (folder / "tea.yaml").unlink()
    assert subjects(workspace)[0] == "Remove by hand: tea"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  One\tline \n\nand another", "One line"),
        ("red \x1b[31m alert", "red \\u{1B}[31m alert"),
        ("word " * 40, "word word word word word word word word word…"),
        ("x" * 80, "x" * 49 + "…"),
    ],
)
def test_an_excerpt_is_one_short_line(text: str, shown: str) -> None:
    """Line breaks end it, control characters are escaped, and it is cut between words (D2)."""
    assert excerpt(MemoryItem(text, id="a")) == shown


def test_a_secret_is_never_in_a_subject(workspace: Workspace) -> None:
    """An item that was allowed to hold a secret, or holds one in a file, is named by its id (D2, B6)."""
    key = secret_samples.aws_key()
    workspace.store.put(MemoryItem(f"Amazon shows {key}", id="shown"), allow_secret="an example")
    workspace.store.delete("shown")
    assert not any(key in subject for subject in subjects(workspace))
    assert excerpt(MemoryItem(f"key {key}", id="b")) == "b"
    assert message_for_items("Forget", [MemoryItem("One", id="a"), MemoryItem("Two", id="b")], "old") == (
        "Forget: One and 1 more (old)"
    )
    assert combined_message(["Only one"]) == "Only one"
