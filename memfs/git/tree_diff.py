"""Lists the paths below a folder that differ between commits or trees.

Both trees are walked at once and only differing folders entered, so that the cost is that of the change, not that of
the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from memfs.errors import HistoryUnavailable
from memfs.git import tree
from memfs.git.objects import EMPTY_TREE, FOLDER, REGULAR, TreeEntry, tree_of
from memfs.git.repository import Repository
from memfs.git.tree import DEEPEST


def changed_paths(repository: Repository, old: str, new: str, folder: str) -> Iterator[str]:
    """The workspace paths of the files below a folder that two commits have differently, in either of them or both.

    Raises:
        HistoryUnavailable: a commit or tree is not there, or damaged.
    """
    waiting = [(folder, repository.entry(old, folder), repository.entry(new, folder))]
    while waiting:
        path, before, after = waiting.pop()
        if before == after:
            continue
        if any(one is not None and one.mode in REGULAR for one in (before, after)):
            yield path
        if path.count("/") > DEEPEST or not (_is_folder(before) or _is_folder(after)):
            continue
        inside, beside = (repository.read_tree(tree_of(one)) for one in (before, after))
        differing = [name for name, entry in inside.items() if beside.get(name) != entry]
        differing += [name for name in beside if name not in inside]
        waiting += [(f"{path}/{os.fsdecode(name)}", inside.get(name), beside.get(name)) for name in differing]


def _is_folder(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == FOLDER


_MOST = 2_000_000

Snapshot = Mapping[bytes, TreeEntry]
"""Entries by their path from the top of the working tree; folders are not among them."""


def snapshots(repository: Repository, commits: Sequence[str | None]) -> list[dict[bytes, TreeEntry]]:
    """For each commit (None: an empty one) its entries at the paths where any of them differs from the first.

    Raises:
        HistoryUnavailable: a commit or tree is not there, or damaged.
    """
    roots = [repository.root(commit) if commit else EMPTY_TREE for commit in commits]
    paths: set[bytes] = set()
    for root in dict.fromkeys(roots[1:]):
        paths.update(differing(repository, roots[0], root))
    return [_entries(repository, root, paths) for root in roots]


def differing(repository: Repository, one: str, other: str) -> Iterator[bytes]:
    """The paths of files, links and submodules that two trees have differently.

    Raises:
        HistoryUnavailable: a tree is not there or damaged, or they differ in more than two million names.
    """
    waiting = [(b"", one, other)]
    seen = 0
    while waiting:
        above, left, right = waiting.pop()
        here, there = repository.read_tree(left), repository.read_tree(right)
        for name in {*here, *there}:
            entries = here.get(name), there.get(name)
            if entries[0] == entries[1]:
                continue
            seen += 1
            if seen > _MOST or above.count(b"/") > tree.DEEPEST:
                raise HistoryUnavailable("two trees differ in too many files", hint="run git fsck")
            if any(entry is not None and entry.mode != FOLDER for entry in entries):
                yield above + name
            waiting.append((above + name + b"/", tree_of(entries[0]), tree_of(entries[1])))


def _entries(repository: Repository, root: str, paths: set[bytes]) -> dict[bytes, TreeEntry]:
    found = {path: tree.find(repository.read_tree, root, tuple(path.split(b"/"))) for path in paths}
    return {path: entry for path, entry in found.items() if entry is not None and entry.mode != FOLDER}
