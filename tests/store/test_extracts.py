"""What is read out of items is read once for each content they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs.model import MemoryItem, Query
from memfs.store.reader import Extracts
from memfs.workspace import Workspace

Read = Callable[[], list[str]]


class Reading:
    """Tells an item's content, and counts."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, item: MemoryItem) -> str:
        """The content."""
        self.read.append(item.id)
        return item.content


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """Two notes and something else."""
    made = opened()
    for name in ("one", "two"):
        made.store.put(MemoryItem(f"text {name}", "note", id=name, tags=(name,)))
    made.store.put(MemoryItem("other", id="other"))
    return made


def both(workspace: Workspace, reading: Reading) -> tuple[Read, Read]:
    """The two ways of asking one extracts."""
    extracts = Extracts(workspace.store, reading)
    return (
        lambda: sorted(extracts.every(workspace.kinds.get("note"))),
        lambda: sorted(extracts.of(Query(types=frozenset({"note"})))),
    )


@pytest.mark.parametrize("way", [0, 1])
def test_equal_bytes_are_read_once(way: int, workspace: Workspace) -> None:
    """What did not change is not read again; what did, is, no matter who wrote it."""
    reading = Reading()
    ask = both(workspace, reading)[way]
    assert ask() == ask() == ["text one", "text two"]
    assert sorted(reading.read) == ["one", "two"]
    item = workspace.store.get("one")
    assert item is not None
    file = workspace.root / item.path
    file.write_text(file.read_text().replace("text one", "by hand"))
    assert ask() == ["by hand", "text two"]
    workspace.store.delete("two")
    assert ask() == ["by hand"]
    assert reading.read[2:] == ["one"]


@pytest.mark.parametrize("way", [0, 1])
def test_of_an_invalid_file_the_last_good_version_is_reported(way: int, workspace: Workspace) -> None:
    """S5: a person's broken edit takes nothing away."""
    ask = both(workspace, Reading())[way]
    ask()
    item = workspace.store.get("one")
    assert item is not None
    (workspace.root / item.path).write_text("content: [unclosed\n")
    assert ask() == ["text one", "text two"]


def test_a_query_narrows(workspace: Workspace) -> None:
    """Filters are those of the index."""
    extracts = Extracts(workspace.store, Reading())
    assert extracts.of(Query(tags=frozenset({"two"}))) == ["text two"]


def test_large_items_are_not_kept(workspace: Workspace) -> None:
    """Memory is bounded: a file above 64 KiB is read each time."""
    reading = Reading()
    ask = both(workspace, reading)[0]
    workspace.store.put(MemoryItem("x" * 70_000, "note", id="large"))
    ask()
    assert len(ask()) == 3
    assert sorted(reading.read) == ["large", "large", "one", "two"]


@pytest.mark.parametrize("way", [0, 1])
def test_what_changes_while_it_is_read_is_not_taken_for_what_it_was(
    way: int, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes between the look at the index and the reading, and takes it back: the first text is reported."""
    ask = both(workspace, Reading())[way]
    item = workspace.store.get("one")
    assert item is not None
    file, load = workspace.root / item.path, workspace.store.load
    before = file.read_text()

    def late(candidate: Any) -> Any:
        if candidate.id == "one":
            file.write_text(before.replace("text one", "in between"))
            workspace.store.refresh([item.path])
        return load(candidate)

    with monkeypatch.context() as patched:
        patched.setattr(workspace.store, "load", late)
        ask()
    file.write_text(before)
    assert ask() == ["text one", "text two"]
