"""Extracting the history of some paths: the same commits, with nothing but these paths in them.

Authors, dates and messages stay; commits that changed none of the paths are left out. Signatures go, since they are of
other bytes. The same history gives the same commits again, so that an extraction can be repeated or compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from memfs.errors import HistoryUnavailable
from memfs.history.ancestry import cut_off
from memfs.history.objects import EMPTY_TREE, Objects, add, encode_tree
from memfs.history.repository import Repository

_DROPPED = (b"tree ", b"parent ", b"gpgsig", b"mergetag ")


def extract(repository: Repository, commit: str, names: Iterable[str]) -> tuple[str, Objects]:
    """The history that leads to a commit, of some names at the top of its trees.

    Returns:
        The last commit of the extracted history, "" where the names never were there; and all new objects.

    Raises:
        HistoryUnavailable: the clone lacks a part of the history.
    """
    if cut_off(repository):
        raise HistoryUnavailable("this clone is shallow: it lacks history", hint="git fetch --unshallow")
    wanted = {name.encode() for name in names}
    made: Objects = {}
    became: dict[str, str] = {}
    trees: dict[str, str] = {}
    out = repository.git.run("rev-list", "--topo-order", "--reverse", "--parents", commit, timeout=600)
    for line in out.decode("ascii").splitlines():
        name, *before = line.split()
        root = repository.root(name)
        kept = {path: entry for path, entry in repository.read_tree(root).items() if path in wanted}
        tree = add(made, "tree", encode_tree(kept)) if kept else EMPTY_TREE
        parents = list(dict.fromkeys(became[parent] for parent in before if became.get(parent)))
        if not parents and tree == EMPTY_TREE:
            continue
        same = [parent for parent in parents if trees[parent] == tree]
        if len(parents) == 1 and same:
            became[name] = parents[0]
            continue
        if tree == EMPTY_TREE:
            add(made, "tree", b"")
        became[name] = add(made, "commit", _encoded(repository.object(name).data, tree, parents))
        trees[became[name]] = tree
    return became.get(commit, ""), made


def _encoded(data: bytes, tree: str, parents: Iterable[str]) -> bytes:
    head, _, message = data.partition(b"\n\n")
    lines: list[bytes] = []
    dropping = False
    for line in head.split(b"\n"):
        if not line.startswith(b" "):
            dropping = line.startswith(_DROPPED)
        if not dropping:
            lines.append(line)
    first = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in parents)]
    return b"\n".join([*first, *lines]) + b"\n\n" + message
