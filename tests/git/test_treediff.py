"""What two commits have differently is found without a look at what they share."""

from __future__ import annotations

import os
from typing import cast

import pytest

from memfs.git import objects
from memfs.git.log import changed_paths
from memfs.git.objects import FILE, FOLDER, Tree, TreeEntry
from memfs.git.repository import Repository


class Trees:
    """A repository's trees, each commit one; tells which were read."""

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
    assert named == [b"month", b"f007", b"f011", b"fresh"]
    assert beside.id not in trees.read
