"""What a merge left open is seen wherever an item is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs import MemoryContext, MemoryCoordinator, MemoryInjector, open_workspace
from memfs.model import MemoryItem, RecordedConflict
from tests.cli.conftest import Memfs

LEFT = 'content is undecided: a merge left another value, "Deploy to Linz" by bo'


@pytest.fixture
def contested(root: Path) -> Path:
    """A workspace with an item of which two values of one field met, and nobody decided."""
    conflict = RecordedConflict(field="content", kept="Deploy to Vienna", lost="Deploy to Linz", by="bo")
    with open_workspace(root, watch=False) as workspace:
        workspace.store.put(MemoryItem("Deploy to Vienna", id="deploy", title="Target", conflicts=(conflict,)))
    return root


@pytest.mark.parametrize(
    "words", [("recall", "deploy"), ("recall", "deploy", "--fenced"), ("list",), ("show", "deploy")]
)
def test_every_way_of_reading_names_the_other_value(words: tuple[str, ...], contested: Path, memfs: Memfs) -> None:
    """Anyone who reads an undecided item sees that it is, with the value that was not kept and whose it was (B3)."""
    assert contested
    assert LEFT in memfs(*words).out


@pytest.mark.parametrize(
    ("words", "key"), [(("recall", "deploy"), "hits"), (("list",), "items"), (("show", "deploy"), "")]
)
def test_json_names_the_other_value(words: tuple[str, ...], key: str, contested: Path, memfs: Memfs) -> None:
    """For programs the undecided values are under ``conflicts`` (B3)."""
    assert contested
    found = memfs(*words, "--json").json
    item = found[key][0] if key else found
    assert [(one["field"], one["kept"], one["lost"], one["by"]) for one in item["conflicts"]] == [
        ("content", "Deploy to Vienna", "Deploy to Linz", "bo")
    ]


def test_the_classes_of_python_name_the_other_value(contested: Path) -> None:
    """So do the memories that an agent's program recalls, retrieves, or has put into a context (B3)."""
    with open_workspace(contested, watch=False) as workspace:
        memory = MemoryContext(workspace=workspace)
        given = MemoryInjector(memory).inject({}, {"tool": "deploy"})
        [recalled], [retrieved] = memory.recall("deploy"), MemoryCoordinator(workspace=workspace).retrieve("deploy")
    assert recalled.undecided == retrieved.undecided == LEFT
    assert [one["undecided"] for one in given["relevant_memories"]] == [LEFT]


def test_deciding_without_saying_how_prints_how(contested: Path, memfs: Memfs) -> None:
    """Without --keep the error says how a field is decided (B3)."""
    assert contested
    result = memfs("team", "conflicts", "resolve", "deploy")
    assert result.code == 1
    assert "'memfs team conflicts resolve deploy --keep kept' (or lost) decides a joined field" in result.err
    assert "no merge in progress left" in memfs("team", "conflicts", "resolve", "other").err


def test_an_edit_of_the_field_decides(contested: Path, memfs: Memfs) -> None:
    """Once the field has another value, nothing is marked any more (B3)."""
    path = next(contested.rglob("deploy.yaml"))
    path.write_text(path.read_text().replace("content: Deploy to Vienna", "content: Deploy to Graz"))
    for words in (("recall", "deploy"), ("recall", "deploy", "--fenced"), ("list",), ("show", "deploy")):
        ran = memfs(*words)
        assert "undecided" not in ran.out
        assert "Graz" in ran.out or words == ("list",)
