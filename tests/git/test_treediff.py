"""What two commits have differently is found without a look at what they share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.git import objects
from memfs.git.log import changed_paths
from memfs.git.objects import EXECUTABLE, FILE, FOLDER, Tree, TreeEntry
from memfs.git.repository import Repository


def built_tree(files: Mapping[bytes, TreeEntry], made: objects.Objects) -> str:
    """The tree that holds just these files, by path."""
    entries: dict[bytes, TreeEntry] = {}
    folders: dict[bytes, dict[bytes, TreeEntry]] = {}
    for path, entry in files.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            folders.setdefault(name, {})[rest] = entry
        else:
            entries[name] = entry
    entries |= {name: TreeEntry(objects.FOLDER, built_tree(inner, made)) for name, inner in folders.items()}
    return objects.add(made, "tree", objects.encode_tree(entries))


class Trees:
    """A repository's trees, each commit one; records which were read."""

    def __init__(self) -> None:
        self.made: objects.Objects = {}
        self.read: list[str] = []

    def tree(self, entries: Tree) -> str:
        return objects.add(self.made, "tree", objects.encode_tree(entries))

    def read_tree(self, name: str) -> Tree:
        self.read.append(name)
        return {} if name == objects.EMPTY_TREE else objects.parse_tree(self.made[name].data)

    def entry(self, commit: str, folder: str) -> TreeEntry | None:
        return self.read_tree(commit).get(os.fsencode(folder))


def blob(number: int) -> TreeEntry:
    """A file's entry."""
    return TreeEntry(FILE, f"{number:040x}")


def test_only_names_that_differ_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One change, one new file and one removed one of a large folder; of the folder beside it nothing is read."""
    trees = Trees()
    many = {b"f%03d" % number: blob(number) for number in range(300)}
    beside = TreeEntry(FOLDER, trees.tree({b"x": blob(1)}))

    def commit(month: Tree) -> str:
        inside = {b"month": TreeEntry(FOLDER, trees.tree(month)), b"other": beside}
        return trees.tree({b"top": TreeEntry(FOLDER, trees.tree(inside))})

    old = commit(many)
    changed = {**many, b"f007": blob(1000), b"fresh": blob(1001)}
    del changed[b"f011"]
    new = commit(changed)
    trees.read.clear()
    named, decode = list[bytes](), os.fsdecode

    def noted(name: bytes) -> str:
        named.append(name)
        return decode(name)

    monkeypatch.setattr(os, "fsdecode", noted)
    found = sorted(changed_paths(cast(Repository, trees), old, new, "top"))
    assert found == ["top/month/f007", "top/month/f011", "top/month/fresh"]
    assert sorted(named) == [b"month/f007", b"month/f011", b"month/fresh"]
    assert beside.id not in trees.read


_NAMES = st.sampled_from(["a", "a.b", "a-b", "b", "B", "é", "0"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_FILES = st.dictionaries(_PATHS, st.integers(0, 2), max_size=12)


def without_clashes(files: dict[str, int]) -> dict[str, str]:
    """Those of the files that can be beside each other: none in the place of another's folder."""
    found = {f"top/{path}": f"{number:040x}" for path, number in files.items()}
    return {path: blob for path, blob in found.items() if not any(other.startswith(f"{path}/") for other in found)}


@given(_FILES, _FILES, st.sets(_PATHS), st.booleans())
def test_what_is_expected_spares_reading_and_changes_no_answer(
    committed: dict[str, int], changed: dict[str, int], executable: set[str], same: bool
) -> None:
    """The files at a commit are the same whatever is expected; where all is as expected no tree below is read."""
    files = without_clashes(committed)
    expected = files if same else without_clashes(committed | changed) | {"elsewhere": "0" * 40, "top/unread": ""}
    trees = Trees()
    modes = {path: EXECUTABLE if path.removeprefix("top/") in executable else FILE for path in files}
    built = {os.fsencode(path[4:]): TreeEntry(modes[path], blob) for path, blob in files.items()}
    top = built_tree(built, trees.made) if built else objects.EMPTY_TREE
    repository = SimpleNamespace(resolve=str, entry=lambda *_: TreeEntry(FOLDER, top), read_tree=trees.read_tree)
    assert Repository.tree(cast("Repository", repository), "HEAD", "top", expected) == files
    if same and EXECUTABLE not in modes.values():
        assert trees.read == []
