"""Snapshots: what several commits have at the paths in which they are not all the same.

Owns finding those paths, at the cost of what differs and not of what there is, and reading them out of each commit.
What is made of the differences is its callers' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memfs.errors import HistoryUnavailable
from memfs.history import trees
from memfs.history.objects import EMPTY_TREE, FOLDER, Entry, tree_of
from memfs.history.repository import Repository

_MOST = 2_000_000

Snapshot = Mapping[bytes, Entry]
"""Entries by their path from the top of the working tree; folders are not among them."""


def snapshots(repository: Repository, commits: Sequence[str | None]) -> list[dict[bytes, Entry]]:
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
            if seen > _MOST or above.count(b"/") > trees.DEEPEST:
                raise HistoryUnavailable("two trees differ in too many files", hint="run git fsck")
            if any(entry is not None and entry.mode != FOLDER for entry in entries):
                yield above + name
            waiting.append((above + name + b"/", tree_of(entries[0]), tree_of(entries[1])))


def _entries(repository: Repository, root: str, paths: set[bytes]) -> dict[bytes, Entry]:
    found = {path: trees.find(repository.read_tree, root, tuple(path.split(b"/"))) for path in paths}
    return {path: entry for path, entry in found.items() if entry is not None and entry.mode != FOLDER}
