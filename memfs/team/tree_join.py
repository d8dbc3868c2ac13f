"""Join the files of two lines of history, by the versions that each has.

An item is followed by its id where one side moved it. Lines that crossed are joined from a version that both began
from. Reads blobs; writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memfs.errors import ContentError
from memfs.format.codec import Codec
from memfs.format.field_merge import FieldConflict
from memfs.format.file_merge import FileMerger
from memfs.git.repository import Repository
from memfs.model import KindTable
from memfs.model.ids import stem_of
from memfs.store.parts import below_content, is_item

_TYPE = re.compile(rb"^type:[^\n]*\n", re.MULTILINE)
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class TreeVersion:
    """A file at one side: its blob id, and its bytes where they are in no commit."""

    blob: str
    data: bytes | None = field(default=None, compare=False)


Versions = Mapping[str, TreeVersion]
"""The files of one side by workspace path, as far as the sides differ."""


@dataclass(frozen=True, slots=True)
class OpenPath:
    """A file that no rule can join, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ContestedPath:
    """What was displaced in a file, and whether the file says so itself."""

    path: str
    conflicts: tuple[FieldConflict, ...]
    recorded: bool


@dataclass(slots=True)
class JoinedTree:
    """What two sides come to: the files, what was displaced in them, and the files that cannot be joined."""

    versions: dict[str, TreeVersion]
    contested: list[ContestedPath] = field(default_factory=list)
    unjoined: list[OpenPath] = field(default_factory=list)


Place = tuple[str, TreeVersion] | None
"""Where a side has a file, and what; None where it has none."""


class TreeJoin:
    """Joins versions of the files of one workspace."""

    def __init__(self, repository: Repository, codec: Codec, kinds: KindTable) -> None:
        self._repository = repository
        self._codec = codec
        self._kinds = kinds
        self._merger = FileMerger(codec)

    def join(self, base: Versions, ours: Versions, theirs: Versions) -> JoinedTree:
        """What two sides that began from ``base`` come to.

        A file that one side changed is as that side has it; one that both changed is joined by the rules of its schema.
        """
        sides = (base, ours, theirs)
        done = JoinedTree({})
        for group in self.groups(sides):
            places = (place_in(base, group), place_in(ours, group), place_in(theirs, group))
            for path, version in self._settled(*places, done):
                done.versions[path] = version
        return done

    def names(self, paths: Iterable[str]) -> set[str]:
        """The names, regardless of case, of the items at some paths."""
        return {stem_of(path).casefold() for path in paths if is_item(path, self._kinds)}

    def content(self, version: TreeVersion | None) -> bytes | None:
        """The bytes of a version."""
        if version is None or version.data is not None:
            return version.data if version else None
        return self._repository.blob(version.blob)

    # -- which files are one --------------------------------------------------------------------------------------
    def groups(self, sides: Sequence[Versions]) -> Iterable[tuple[str, ...]]:
        """The paths that belong together: those of one item, where each side has it once; else each path alone."""
        by_name: dict[str, set[str]] = {}
        for path in {path for side in sides for path in side}:
            by_name.setdefault(stem_of(path).casefold() if is_item(path, self._kinds) else path, set()).add(path)
        for name in sorted(by_name):
            paths = tuple(sorted(by_name[name]))
            if len(paths) == 1 or self._moved(sides, paths):
                yield paths
            else:
                yield from ((path,) for path in paths)

    def _moved(self, sides: Sequence[Versions], paths: Sequence[str]) -> bool:
        """Whether several paths are places of one item: nobody has two of them, and all began from one.

        An item that others deleted, and that both sides kept as they had edited it, began from none: it is known by the
        time of its making, and by something that it still says on both sides.
        """
        counts = [sum(path in side for path in paths) for side in sides]
        if max(counts) > 1 or counts[0] == 1:
            return max(counts) == 1
        try:
            one, other = (
                self._codec.read(self.content(side[path]) or b"", path, _EPOCH)
                for side in sides[1:]
                for path in paths
                if path in side
            )
        except ContentError:
            return False
        said = [{line for line in (item.title, *item.content.splitlines()) if line.strip()} for item in (one, other)]
        return one.created is not None and one.created == other.created and bool(said[0] & said[1])

    # -- which version is kept -----------------------------------------------------------------------------------
    def _settled(self, base: Place, ours: Place, theirs: Place, done: JoinedTree) -> list[tuple[str, TreeVersion]]:
        if ours == theirs or theirs == base:
            return [ours] if ours else []
        if ours == base:
            return [theirs] if theirs else []
        path = joined_place(*(place[0] if place else "" for place in (base, ours, theirs)))
        try:
            contents = [self.moved_to(path, place) for place in (base, ours, theirs)]
            merged = self._merger.merge(path, *contents)
        except ContentError as error:
            done.unjoined.append(OpenPath(path, str(error)))
            return [ours] if ours else []
        if merged.whole:
            done.unjoined.append(OpenPath(path, merged.reason))
            return [ours] if ours else []
        if merged.conflicts:
            done.contested.append(ContestedPath(path, merged.conflicts, merged.recorded))
        return [] if merged.data is None else [(path, self._version(merged.data))]

    def _version(self, data: bytes) -> TreeVersion:
        return TreeVersion(self._repository.blob_id(data), data)

    def moved_to(self, path: str, place: Place) -> bytes | None:
        """The bytes of a version as they are at another path: an item that names its type names that of its folder.

        Raises:
            ContentError: it cannot be read where it was.
        """
        data = self.content(place[1]) if place else None
        if place is None or data is None or place[0] == path:
            return data
        old, new = (self._kinds.at(below_content(one)) for one in (place[0], path))
        if new is None or old == new:
            return data
        item = self._codec.read(data, place[0], _EPOCH)
        untyped = _TYPE.sub(b"", data, count=1)
        try:
            self._codec.read(untyped, path, _EPOCH)
        except ContentError:  # a form in which a key has no line of its own
            return self._codec.write(item.replace(memory_type=new.name), path).data
        return untyped


def place_in(side: Versions, paths: Sequence[str]) -> Place:
    """Where a side has one of some paths, and what."""
    return next(((path, side[path]) for path in paths if path in side), None)


def joined_place(began: str, here: str, there: str) -> str:
    """Where a joined file lies: where the side that moved it put it; of two such places one that does not depend on
    which side is ours. The paths are "" where there is no file.
    """
    if not here or not there or here == there:
        return here or there
    return there if here == began else here if there == began else max(here, there)


def crossing(
    join: TreeJoin, bases: Sequence[str], versions: Mapping[str, Versions], met: Callable[[str, str], Sequence[str]]
) -> Versions:
    """The version that two lines began from which crossed: that of their meeting points, joined.

    Args:
        bases: the commits where they met last.
        versions: of each commit that may be asked about.
        met: the commits where two commits met last.
    """
    found: Versions = versions[bases[0]] if bases else {}
    for number, other in enumerate(bases[1:], 1):
        below = tuple(dict.fromkeys(name for one in bases[:number] for name in met(one, other)))
        start = crossing(join, below, versions, met)
        found = join.join(start, found, versions[other]).versions
    return found
