"""However often memories are replaced, the index stays of their size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs import MemoryItem
from memfs.model import Query
from memfs.search import engine as engines
from memfs.workspace import Workspace

NAMES = tuple(f"note-{number}" for number in range(6))


@pytest.fixture
def workspace(
    opened: Callable[..., Workspace], engine: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Workspace]:
    """Opens one workspace as another process would; few removed passages are many in it."""
    monkeypatch.setattr(engines, "_FEW_DEAD", 12)
    made = opened(index__engine=engine)
    return lambda: opened(made.root, index__engine=engine)


def say(workspace: Workspace, words: str) -> None:
    """Let every memory say something else, and fold it."""
    for name in NAMES:
        workspace.store.put(MemoryItem(f"The barn is {words}.", "knowledge", id=name))
    workspace.store.fold()


@pytest.mark.parametrize("engine", ["sqlite", "whoosh"])
def test_what_was_replaced_is_forgotten_in_the_end(workspace: Callable[[], Workspace]) -> None:
    """Of forty versions no more passages are left than a few times the memories, and the last version is found."""
    made = workspace()
    for number in range(40):
        say(made, f"colour{number}")
        assert made.parts.index.statistics(()).passages <= 12 + 4 * len(NAMES)
    assert {hit.item.id for hit in workspace().recaller.search("colour39").hits} == set(NAMES)
    assert not workspace().recaller.search("colour5").hits


@pytest.mark.parametrize("engine", ["sqlite"])
def test_an_invalid_file_keeps_its_last_good_version_in_a_rebuilt_index(workspace: Callable[[], Workspace]) -> None:
    """It was never committed: the index alone, and the facts of contents, know what it held."""
    made = workspace()
    say(made, "red")
    (made.root / made.store.locate(NAMES[0])).write_text("content: [", encoding="utf-8")
    made.store.refresh()
    for number in range(6):
        for name in NAMES[1:]:
            made.store.put(MemoryItem(f"The barn is colour{number}.", "knowledge", id=name))
        made.store.fold()
        assert made.parts.index.statistics(()).passages <= 12 + 4 * len(NAMES)
        assert [hit.id for hit in made.parts.index.search(Query(text="red"))] == [NAMES[0]]
