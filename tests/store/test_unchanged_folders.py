"""A folder in which nothing changed is known by one comparison, and every change in it is noticed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from kit.faults import vouch
from memfs import MemoryItem
from memfs.search.columns import StampTable
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
NAMES = ("barn", "plough", "well")


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """Three memories in one folder, all old enough to be vouched for, in the index's base."""
    made = opened(index__engine="sqlite")
    for name in NAMES:
        made.store.put(MemoryItem(f"The {name} stands behind the house.", "knowledge", id=name))
        vouch(made, made.store.locate(name))
    assert made.parts.index.fold()
    made.store.refresh()
    return made


def record(workspace: Workspace) -> Path:
    """What is kept of unchanged folders."""
    return workspace.parts.index.folder / "folders"


def found(workspace: Workspace, words: str = "house") -> set[str]:
    """The ids of the hits of a process that has just begun."""
    return {hit.item.id for hit in workspace.recaller.search(words).hits}


def test_an_unchanged_folder_is_compared_at_once(workspace: Workspace, opened: Opened) -> None:
    """What one process saw spares the next the comparison of each file."""
    with mock.patch.object(StampTable, "matches", side_effect=AssertionError("compared")):
        assert not workspace.store.refresh()
        assert found(opened(workspace.root, index__engine="sqlite")) == set(NAMES)


def _edit(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8").replace("house", "hedge"), encoding="utf-8")


def _link(file: Path) -> None:
    file.rename(file.with_name(".aside"))
    file.symlink_to(".aside")


def _replace_keeping_times(file: Path) -> None:
    facts = file.stat()
    _edit(file)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("change", [_edit, Path.unlink, _link, _replace_keeping_times], ids=lambda one: one.__name__)
def test_each_change_is_noticed(change: Callable[[Path], None], workspace: Workspace, opened: Opened) -> None:
    """A file that was edited in place, taken away, replaced by a link or given its old times is looked at again."""
    change(workspace.root / workspace.store.locate("plough"))
    assert found(workspace) == {"barn", "well"}
    assert found(opened(workspace.root, index__engine="sqlite")) == {"barn", "well"}


def test_a_file_that_comes_is_noticed(workspace: Workspace, opened: Opened) -> None:
    """A new file in an unchanged folder is found, and so is one that came back."""
    barn = workspace.root / workspace.store.locate("barn")
    text = barn.read_text(encoding="utf-8").replace("barn", "gate")
    barn.with_name(f"gate{barn.suffix}").write_text(text, encoding="utf-8")
    aside = barn.rename(barn.with_name(".aside"))
    assert found(opened(workspace.root, index__engine="sqlite")) == {"gate", "plough", "well"}
    aside.rename(barn)
    assert found(opened(workspace.root, index__engine="sqlite")) == {"gate", *NAMES}


def test_what_only_one_process_knows_is_not_passed_to_others(workspace: Workspace, opened: Opened) -> None:
    """A folder that holds a file which is not in the base yet is looked at file by file by everybody."""
    record(workspace).unlink()
    workspace.store.put(MemoryItem("The gate of the house.", "knowledge", id="gate"))
    vouch(workspace, workspace.store.locate("gate"))
    for _ in range(2):
        workspace.store.refresh()
    assert found(opened(workspace.root, index__engine="sqlite")) == {"gate", *NAMES}


def test_what_is_kept_is_of_one_base(workspace: Workspace, opened: Opened) -> None:
    """What was noted about another base generation, or is damaged, is not believed."""
    kept = json.loads(record(workspace).read_text(encoding="utf-8"))
    barn = workspace.root / workspace.store.locate("barn")
    for text in (json.dumps(kept | {"base": [7, "x"]}), json.dumps(kept | {"digests": []}), "[]", "{", "\0"):
        record(workspace).write_text(text, encoding="utf-8")
        _edit(barn)
        assert found(opened(workspace.root, index__engine="sqlite")) == {"plough", "well"}


def test_a_folder_of_no_kind_is_reported(workspace: Workspace, opened: Opened) -> None:
    """A memory type that is taken out of kinds.yaml leaves files that belong to none, though no file changed."""
    root = workspace.root
    kinds = root / "ContextMemory" / "configuration" / "kinds.yaml"
    kinds.write_text("kinds:\n  recipe:\n    layer: semantic\n    description: How to cook.\n", encoding="utf-8")
    cook = opened(root, index__engine="sqlite")
    cook.store.put(MemoryItem("Soup for the house.", "recipe", id="soup"))
    vouch(cook, cook.store.locate("soup"))
    assert cook.parts.index.fold()
    cook.store.refresh()
    assert "soup" in found(opened(root, index__engine="sqlite"))
    kinds.unlink()
    later = opened(root, index__engine="sqlite")
    assert "soup" not in found(later)
    assert [problem.code for problem in later.store.problems()] == ["ContentError"]


def persons(workspace: Workspace) -> list[str]:
    """The names of the files that a person changed since the last commit, as a process sees it that has just begun."""
    return [path.rpartition("/")[2] for path in workspace.store.edit_finder.look()[1]]


def test_what_is_as_head_has_it_is_compared_by_folder(workspace: Workspace, opened: Opened) -> None:
    """Where nothing changed since the commit, the ids of trees say so, and no file is looked up."""
    workspace.store.flush()
    assert persons(workspace) == []
    with mock.patch.object(StampTable, "blob", side_effect=AssertionError("looked up")):
        assert persons(opened(workspace.root, index__engine="sqlite")) == []


def _remove_from_history(file: Path) -> None:
    subprocess.run(["git", "rm", "--cached", "-q", file.name], cwd=file.parent, check=True)
    subprocess.run(["git", "commit", "-qm", "Without it"], cwd=file.parent, check=True)


def _other_in_history(file: Path) -> None:
    text = file.read_bytes()
    facts = file.stat()
    file.write_bytes(text.replace(b"house", b"hedge"))
    subprocess.run(["git", "commit", "-qam", "Another"], cwd=file.parent, check=True)
    file.write_bytes(text)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [_edit, Path.unlink, _replace_keeping_times, _remove_from_history, _other_in_history],
    ids=lambda one: one.__name__,
)
def test_a_persons_change_is_found_in_a_known_folder(
    change: Callable[[Path], None], workspace: Workspace, opened: Opened
) -> None:
    """Whether the file changed or the commit, what differs is named, and nothing beside it."""
    workspace.store.flush()
    assert persons(workspace) == []
    file = workspace.root / workspace.store.locate("plough")
    change(file)
    assert persons(opened(workspace.root, index__engine="sqlite")) == [file.name]


def test_ids_of_trees_are_of_one_state(workspace: Workspace, opened: Opened) -> None:
    """An id that does not fit what a folder holds hides nothing: it is another than HEAD's; and damage is not an id."""
    workspace.store.flush()
    assert persons(workspace) == []
    kept = json.loads(record(workspace).read_text(encoding="utf-8"))
    wrong = dict.fromkeys(kept["trees"], "0" * 40)
    for trees in (wrong, [], "x"):
        record(workspace).write_text(json.dumps(kept | {"trees": trees}), encoding="utf-8")
        assert persons(opened(workspace.root, index__engine="sqlite")) == []
    barn = workspace.root / workspace.store.locate("barn")
    barn.unlink()
    assert persons(opened(workspace.root, index__engine="sqlite")) == [barn.name]


def test_a_fold_keeps_what_is_known_of_other_folders(workspace: Workspace, opened: Opened) -> None:
    """After a fold the next process compares one by one only the files of folders that the fold changed."""
    workspace.store.flush()
    assert persons(workspace) == []
    workspace.store.put(MemoryItem("A note about the house.", "semantic", id="note"))
    vouch(workspace, workspace.store.locate("note"))
    assert workspace.store.fold()
    looked, matches = [], StampTable.matches

    def watched(table: StampTable, path: str, *facts: int) -> bool:
        looked.append(path.rpartition("/")[2].partition(".")[0])
        return matches(table, path, *facts)

    with mock.patch.object(StampTable, "matches", watched):
        assert found(opened(workspace.root, index__engine="sqlite")) == {"note", *NAMES}
    assert looked == ["note"]
    _edit(workspace.root / workspace.store.locate("plough"))
    assert found(opened(workspace.root, index__engine="sqlite")) == {"barn", "note", "well"}


def test_another_process_ones_fold_is_not_taken_for_ones_own(workspace: Workspace, opened: Opened) -> None:
    """Of a base that another process made nothing is known, though one's own fold comes right after it."""
    other = opened(workspace.root, index__engine="sqlite")
    other.store.refresh()
    for one, name in ((other, "byre"), (workspace, "gate")):
        one.store.put(MemoryItem(f"The {name} of the house.", "knowledge", id=name))
        vouch(one, one.store.locate(name))
        assert one.store.fold()
    assert json.loads(record(workspace).read_text(encoding="utf-8"))["base"] != [*workspace.parts.index.base]
    assert found(opened(workspace.root, index__engine="sqlite")) == {"byre", "gate", *NAMES}
