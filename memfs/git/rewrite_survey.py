"""Reads every object of a repository in bulk, reachable or not, before history is rewritten.

Finds what any commit has at given paths, and which trees hold given blobs. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from memfs.errors import HistoryUnavailable
from memfs.git.process import GitCommands
from memfs.git.repository import Repository
from memfs.git.rewrite_text import entries, folders, ids, named_in_commit

PATIENCE = 3600.0
_CHUNK_BYTES = 32 << 20
_CHUNK_COUNT = 20_000
_FOLDERS = (b"40000", b"040000")

Means = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Kind and size of an object."""

    kind: str
    size: int


@dataclass(slots=True)
class Versions:
    """What is, in any commit, at the paths that are meant.

    Attributes:
        blobs: blob to the paths it had.
        cuts: for each tree with such an entry, the names in it.
    """

    blobs: dict[str, set[bytes]] = field(default_factory=dict)
    cuts: dict[str, set[bytes]] = field(default_factory=dict)


class Survey:
    """All objects of a repository, as they are now.

    Attributes:
        facts: kind and size by id.
        commits: tree and parents by commit.
        inner: for each tree, the trees in it.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._git = repository.git
        self.facts = inventory(repository.git)
        self.commits = {name: named_in_commit(data) for name, data in self.contents(self.of_kind("commit"))}
        self.inner: dict[str, tuple[str, ...]] = {}
        for name, data in self.contents(self.of_kind("tree")):
            self.inner[name] = tuple(found for _, found in folders(data))
        self._holding: dict[frozenset[str], dict[str, set[str]]] = {}

    def of_kind(self, kind: str) -> list[str]:
        """The ids of all objects of a kind."""
        return [name for name, facts in self.facts.items() if facts.kind == kind]

    def contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each of some objects with its content."""
        return contents(self._git, names, self.facts)

    def leave_out(self, names: Collection[str]) -> None:
        """Go on as if some objects were not there."""
        for name in names:
            self.facts.pop(name, None)
            self.commits.pop(name, None)
            self.inner.pop(name, None)
        self._holding.clear()

    # -- by path --------------------------------------------------------------------------------------------------
    def versions(self, folder: bytes, means: Means) -> Versions:
        """What any commit has below a folder at a path that is meant."""
        found = Versions()
        seen: set[tuple[str, bytes]] = set()
        parts = tuple(folder.split(b"/"))
        meant = cache(means)
        for root in {tree for tree, _ in self.commits.values()}:
            top = self._below(root, parts)
            if top is not None:
                self._walk(top, folder, meant, found, seen)
        return found

    def _below(self, tree: str, parts: tuple[bytes, ...]) -> str | None:
        """The tree at a path; None where there is none, or git has thrown it away already."""
        for part in parts:
            found = dict(folders(self._tree(tree))).get(part) if tree in self.inner else None
            if found is None:
                return None
            tree = found
        return tree

    def _tree(self, name: str) -> bytes:
        # Not through the repository's cache of trees: a large history has too many to be kept.
        return self._repository.object(name).data

    def _walk(self, tree: str, path: bytes, means: Means, found: Versions, seen: set[tuple[str, bytes]]) -> None:
        if (tree, path) in seen or tree not in self.inner:
            return
        seen.add((tree, path))
        for mode, name, binary in entries(self._tree(tree)):
            if mode in _FOLDERS:
                self._walk(binary.hex(), path + b"/" + name, means, found, seen)
            elif means(path + b"/" + name) and binary.hex() in self.facts:
                found.blobs.setdefault(binary.hex(), set()).add(path + b"/" + name)
                found.cuts.setdefault(tree, set()).add(name)

    # -- by content -----------------------------------------------------------------------------------------------
    def holding(self, blobs: Collection[str]) -> dict[str, set[str]]:
        """The trees that hold some blobs directly: tree to blobs."""
        asked = frozenset(blobs)
        if asked not in self._holding:
            wanted = {bytes.fromhex(blob) for blob in asked}
            found = {}
            for tree, data in self.contents(self.inner) if wanted else ():
                held = wanted & ids(data)
                if held:
                    found[tree] = {binary.hex() for binary in held}
            self._holding[asked] = found
        return self._holding[asked]

    def above(self, below: Iterable[str]) -> set[str]:
        """Some trees, and every tree that holds one of them, however deep."""
        outer: dict[str, list[str]] = {}
        for tree, inner in self.inner.items():
            for name in inner:
                outer.setdefault(name, []).append(tree)
        found = set(below)
        waiting = list(found)
        while waiting:
            for tree in outer.get(waiting.pop(), ()):
                if tree not in found:
                    found.add(tree)
                    waiting.append(tree)
        return found

    def committed(self) -> set[str]:
        """Every tree that a commit, reachable or not, holds."""
        found: set[str] = set()
        waiting = [tree for tree, _ in self.commits.values()]
        while waiting:
            tree = waiting.pop()
            if tree not in found and tree in self.inner:
                found.add(tree)
                waiting.extend(self.inner[tree])
        return found

    def paths(self, blobs: Collection[str]) -> dict[bytes, set[str]]:
        """Every path at which any commit has one of some blobs, with those blobs."""
        direct = self.holding(blobs)
        affected = self.above(direct)
        found: dict[bytes, set[str]] = {}
        seen: set[tuple[str, bytes]] = set()
        waiting = [(tree, b"") for tree, _ in self.commits.values() if tree in affected]
        while waiting:
            tree, above = waiting.pop()
            if (tree, above) in seen:
                continue
            seen.add((tree, above))
            data = self._tree(tree)
            waiting += [(inner, above + name + b"/") for name, inner in folders(data) if inner in affected]
            for _, name, binary in entries(data) if tree in direct else ():
                if binary.hex() in direct[tree]:
                    found.setdefault(above + name, set()).add(binary.hex())
        return found


def inventory(git: GitCommands, variables: Mapping[str, str] | None = None) -> dict[str, ObjectFacts]:
    """Every object with its kind and size."""
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    out = git.run("cat-file", "--batch-all-objects", form, variables=variables, timeout=PATIENCE)
    found = {}
    for line in out.decode("ascii", "replace").splitlines():
        name, kind, size = line.split(" ")
        found[name] = ObjectFacts(kind, int(size))
    return found


def contents(
    git: GitCommands, names: Iterable[str], facts: Mapping[str, ObjectFacts], variables: Mapping[str, str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Each of some objects with its content, a few megabytes at a time."""
    for chunk in _chunks(names, facts):
        request = "".join(f"{name}\n" for name in chunk).encode()
        out = git.run("cat-file", "--batch", "--buffer", data=request, variables=variables, timeout=PATIENCE)
        yield from _answers(out)


def _chunks(names: Iterable[str], facts: Mapping[str, ObjectFacts]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for name in names:
        if chunk and (size + facts[name].size > _CHUNK_BYTES or len(chunk) >= _CHUNK_COUNT):
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += facts[name].size
    if chunk:
        yield chunk


def _answers(out: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        words = out[at:end].decode("ascii", "replace").split(" ")
        if len(words) != 3:
            raise HistoryUnavailable(f"the object {words[0]} cannot be read", hint="run git fsck")
        size = int(words[2])
        yield words[0], out[end + 1 : end + 1 + size]
        at = end + 2 + size
