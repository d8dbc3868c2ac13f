"""Join memory files that git left with several versions.

A result that a person made by hand is kept as it is. Nothing is written: the caller puts the outcomes in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from memfs.admin.merge_spool import MergeSpool
from memfs.errors import ContentError, HistoryError, MemfsError, MergeRefused, NotRegularFile
from memfs.format.codec import schema_of
from memfs.format.conflict_markers import has_markers, sides
from memfs.format.field_merge import FieldConflict, merge_lines
from memfs.format.file_merge import FileMerger
from memfs.fs.workspace_location import is_own
from memfs.git.ancestry import merge_bases
from memfs.git.layout import read_small
from memfs.git.objects import FILE, TreeEntry
from memfs.git.refs import HEX
from memfs.git.unmerged import MERGED, REVERTED, UnmergedPath, situation, unmerged
from memfs.model.ids import stem_of
from memfs.model.time import utc_now
from memfs.store.parts import READ_LIMIT, Parts, is_item
from memfs.store.values import is_own_file
from memfs.team.history_merge import HistoryJoin, Place, TreeJoin, Versions, joined_place, place_in

Side = Literal["", "ours", "theirs"]
"""Whose version is taken whole; "" for neither: they are joined."""

Sides = tuple[Versions, Versions, Versions]
"""What both lines of a merge began from, ours and theirs."""

_MISTAKEN = "git took it for another item"
_REMOVED_BY_US, _REMOVED_BY_THEM = "we removed it, they changed it", "they removed it, we changed it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A file of which git has several versions.

    Attributes:
        path: where the outcome goes, below the workspace.
        also: other paths of the same item: one side moved it, and they are gone afterwards.
        beside: paths of other items that git took for this one: they are brought to an end together.
        what: what happened to it, in words.
        base, ours, theirs: the versions; None where there is none.
        mode: of the file.
        mistaken: whether the versions are of two items, and nobody can tell where the other one belongs.
        made: what git and the merge driver may have made of the file, beside the versions themselves.
    """

    path: str
    also: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    what: str
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    mode: str = ""
    mistaken: bool = False
    made: tuple[bytes, ...] = ()

    @property
    def uncontested(self) -> bool:
        """Whether it is open only since git took another item for it: there is nothing to choose."""
        return bool(self.beside) and self.base in (self.ours, self.theirs)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is brought to an end with it."""
        return (self.path, *self.also, *self.beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOutcome:
    """What becomes of an open file.

    Attributes:
        open: the file.
        data: its bytes; None where it is gone.
        before: the bytes that are there at present; None where there is no file.
        touched: whether those are somebody's work that the outcome has not: more than a version, or git's text of two.
        conflicts: the fields in which one value was displaced; where it is undecided, settings with ours and theirs.
        recorded: whether ``data`` carries those itself.
        own: whether it is what the person had made of it.
        side: whose version it is, taken whole; "" for what comes of both.
        undecided: why it cannot be joined; "" where it is.
    """

    open: Open
    data: bytes | None = None
    before: bytes | None = None
    touched: bool = False
    conflicts: tuple[FieldConflict, ...] = ()
    recorded: bool = False
    own: bool = False
    side: Side = ""
    undecided: str = ""

    @property
    def outcome(self) -> Literal["joined", "ours", "theirs", "removed", "own", "left"]:
        """What that is in a word; ``own``: it stays as the person made it."""
        if self.undecided or self.own:
            return "left" if self.undecided else "own"
        return "removed" if self.data is None else self.side or "joined"


class OpenMerges:
    """Finds and joins what a merge left open in one workspace. It writes nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._merger = FileMerger(parts.codec)
        self._join = TreeJoin(parts.repository, parts.codec, parts.kinds)
        self._spool = MergeSpool(parts.repository.state)

    def in_index(self) -> tuple[list[Open], int]:
        """The open files of the person's index, by path, and how many other files are open there.

        Raises:
            GitFailed, HistoryUnavailable: git's files cannot be read.
        """
        found, others = unmerged(self._parts.repository)
        ours = [one for one in found if is_own(one.path) and one.plain and self._is_kept(one.path)]
        items = [one for one in ours if self._is_item(one.path)]
        sides = self._sides() if items else None
        if sides is None:
            opened = [self._checked(self._opened(one)) for one in ours]
        else:
            opened = [*(self._opened(one) for one in ours if one not in items), *self._by_id(items, sides)]
            opened.sort(key=lambda one: one.path)
        return opened, others + len(found) - len(ours)

    def outcome(self, one: Open, side: Side = "") -> MergeOutcome:
        """What becomes of a file, as things are now."""
        try:
            before = self._present(one.path)
        except NotRegularFile as error:
            return MergeOutcome(open=one, undecided=f"{error.sentence}: {error.hint}")
        merged = self._merger.merge(one.path, one.base, one.ours, one.theirs)
        touched = before not in (None, merged.data) and not is_known(one, before)
        if side and not one.uncontested:
            data = one.ours if side == "ours" else one.theirs
            return MergeOutcome(open=one, data=data, before=before, touched=touched, side=side)
        if self._is_own(one, before, merged.data):
            return MergeOutcome(open=one, data=before, before=before, own=True)
        if merged.whole or one.mistaken:
            reason = _MISTAKEN if one.mistaken else merged.reason or "a version cannot be read"
            reason += "; take one with --keep ours or --keep theirs"
            return MergeOutcome(open=one, before=before, undecided=reason, conflicts=merged.conflicts)
        return MergeOutcome(
            open=one,
            data=merged.data,
            before=before,
            touched=touched,
            conflicts=merged.conflicts,
            recorded=merged.recorded,
        )

    # -- finding versions -----------------------------------------------------------------------------------------
    def _opened(self, one: UnmergedPath) -> Open:
        """An open file with the versions that the index has of its path."""
        return Open(
            path=one.path,
            what=_what(one.base, one.ours, one.theirs),
            base=self._blob(one.base),
            ours=self._blob(one.ours),
            theirs=self._blob(one.theirs),
            mode=one.mode,
        )

    def _file(self, path: str) -> bytes | None:
        """What is at a path; None also for what is no file, of which the outcome says so."""
        with suppress(NotRegularFile):
            return self._present(path)
        return None

    def _checked(self, one: Open) -> Open:
        """An open file of which the commits are not known: versions of two items are left to a person."""
        strange = self._merger.strangers(one.path, one.base, one.ours, one.theirs)
        if not strange or one.ours is None or one.theirs is None:
            return one
        return replace(one, base=None) if len(strange) == 2 else replace(one, what=_MISTAKEN, mistaken=True)

    # -- by the commits that are joined ---------------------------------------------------------------------------
    def _sides(self) -> Sides | None:
        """What both lines began from, ours and theirs; None where git does not say what it brings in."""
        repository = self._parts.repository
        name, ours = situation(repository), repository.head_commit()
        other = read_small(repository.git_dir / name) if name else None
        if not ours or not other or not HEX.fullmatch(other):
            return None
        with suppress(HistoryError, MergeRefused):
            bases: Sequence[str] = (other,)
            if name == MERGED:
                bases = merge_bases(repository, ours, other)
            else:
                above = repository.commit_object(other).parents[:1]
                if name == REVERTED and above:
                    other = above[0]
                elif name != REVERTED:
                    bases = above
            return HistoryJoin(repository, self._join).sides(ours, other, bases)
        return None

    def _by_id(self, found: Sequence[UnmergedPath], sides: Sides) -> list[Open]:
        """The items that open files are about, each with its versions from the commits.

        The versions in the index may be of other items: git pairs files by what they say.
        """
        opened: dict[str, Open] = {}
        for one in found:
            about = self._about(one, sides)
            new = [part for part in self._items(about, found, sides) if part.path not in opened]
            opened |= {part.path: part for part in new}
            both = [part for part in opened.values() if self._join.names(part.paths) & about]
            for part in both if len(both) > 1 else ():
                beside = dict.fromkeys((*part.beside, *(other.path for other in both if other.path != part.path)))
                opened[part.path] = replace(part, beside=tuple(beside))
        lost = self._join.names(sides[1]) & self._join.names(sides[2])  # a place that collided left no trace of them
        missed = self._join.names(one.path for one in self._spool.missed().values())
        missed |= {name for name in lost if not self._is_there(name, sides)}
        opened |= {part.path: part for part in self._items(missed, found, sides) if part.path not in opened}
        return [replace(one, what=_MISTAKEN) if one.uncontested else one for one in opened.values()]

    def _about(self, one: UnmergedPath, sides: Sides) -> set[str]:
        """The names of the items whose versions stand at an open path."""
        about, known = self._join.names([one.path]), {version.blob for side in sides for version in side.values()}
        for stage in filter(None, (one.base, one.ours, one.theirs)):
            if any(one.path in side and side[one.path].blob == stage.id for side in sides):
                continue
            if stage.id in known:
                about |= self._join.names(
                    path for side in sides for path, version in side.items() if version.blob == stage.id
                )
            else:  # git joined files one after another: what went into it is no longer to be seen
                about |= {name for name in self._join.names(set().union(*sides)) if not self._is_there(name, sides)}
        return about

    def _is_there(self, name: str, sides: Sides) -> bool:
        places = {path for side in sides for path in side if stem_of(path).casefold() == name}
        return any(self._file(path) is not None for path in places)

    def _items(self, about: set[str], found: Sequence[UnmergedPath], sides: Sides) -> Iterator[Open]:
        """Each item of some names, as far as it is not as it should be."""
        own = [{path: side[path] for path in side if self._join.names([path]) & about} for side in sides]
        groups = list(self._join.groups(own))
        for group in groups:
            held = [one for one in found if _belongs(one, group, groups, own)]
            one = self._item(group, held, own)
            if held or ((one.base, one.ours, one.theirs).count(None) < 3 and not self._is_right(one)):
                yield one

    def _item(self, group: Sequence[str], held: Sequence[UnmergedPath], sides: Sequence[Versions]) -> Open:
        places = [place_in(side, group) for side in sides]
        began, here, there = (place[0] if place else "" for place in places)
        paths = dict.fromkeys((joined_place(began, here, there) or group[0], *group, *(one.path for one in held)))
        raw = [self._join.content(place[1]) if place else None for place in places]
        made = [data for one in held for data in self._made(one)]
        path = self._worked_on(paths, [*raw, *made]) or next(iter(paths))
        versions = [self._brought(path, place, data) for place, data in zip(places, raw, strict=True)]
        return Open(
            path=path,
            also=tuple(other for other in paths if other != path),
            what=_what(*versions),
            base=versions[0],
            ours=versions[1],
            theirs=versions[2],
            mode=held[0].mode if held else FILE,
            made=tuple(data for data in (*raw, *made) if data is not None and data not in versions),
        )

    def _brought(self, path: str, place: Place, data: bytes | None) -> bytes | None:
        """A version as it is at the outcome's path; as it was, where it cannot be read."""
        with suppress(ContentError):
            return self._join.moved_to(path, place)
        return data

    def _made(self, one: UnmergedPath) -> Iterator[bytes]:
        """What git's versions are, and what they come to."""
        stages = [self._blob(stage) for stage in (one.base, one.ours, one.theirs)]
        merged = [self._merger.merge(one.path, base, *stages[1:]).data for base in {stages[0], None}]
        yield from (data for data in (*stages, *merged) if data is not None)

    def _worked_on(self, paths: Iterable[str], known: Sequence[bytes | None]) -> str:
        """Where a person has been at work on an item that has several places; "" where nobody has."""
        for path in paths:
            data = self._file(path)
            if data is not None and data not in known and not has_markers(data):
                return path
        return ""

    def _is_right(self, one: Open) -> bool:
        """Whether the file is as it should be, and none of its other places is taken."""
        outcome = self._merger.merge(one.path, one.base, one.ours, one.theirs)
        return self._file(one.path) == outcome.data and not any(self._file(path) for path in one.also)

    def _is_kept(self, path: str) -> bool:
        return self._is_item(path) or is_own_file(path)

    def _is_item(self, path: str) -> bool:
        return is_item(path, self._parts.kinds)

    def _blob(self, stage: TreeEntry | None) -> bytes | None:
        return None if stage is None else self._parts.repository.blob(stage.id)

    # -- what the person made of it -------------------------------------------------------------------------------
    def _present(self, path: str) -> bytes | None:
        try:
            return self._parts.tree.read(path, READ_LIMIT).data
        except FileNotFoundError:
            return None

    def _is_own(self, one: Open, present: bytes | None, joined: bytes | None) -> bool:
        if present in (joined, *_versions(one)):
            return False
        if present is None:  # git leaves no file where it took the item for another one, or put it elsewhere
            return not one.beside and not any(self._file(path) is not None for path in one.also)
        return not has_markers(present) and self._valid(one.path, present)

    def _valid(self, path: str, data: bytes) -> bool:
        schema = schema_of(path)
        try:
            if schema:
                self._parts.codec.read_document(data, path, schema)
            elif self._is_item(path):
                self._parts.codec.read(data, path, utc_now())
        except MemfsError:
            return False
        return True


def _versions(one: Open) -> tuple[bytes | None, ...]:
    return one.base, one.ours, one.theirs, *one.made


def is_known(one: Open, present: bytes | None) -> bool:
    """Whether a file has nothing in it but one of the versions, or what git made of them."""
    return present in _versions(one) or _is_gits(one, present)


def _is_gits(one: Open, present: bytes | None) -> bool:
    """Whether a file with markers has nothing in it but what a text merge of the versions puts there."""
    if present is None or one.ours is None or one.theirs is None:
        return False
    found, wanted = sides(present), sides(merge_lines(one.base or b"", one.ours, one.theirs).data)
    return found is not None and wanted is not None and (found.ours, found.theirs) == (wanted.ours, wanted.theirs)


def paths_of(outcomes: Iterable[MergeOutcome]) -> list[str]:
    """Every path that outcomes concern."""
    return [path for one in outcomes for path in one.open.paths]


def _belongs(
    one: UnmergedPath, group: Sequence[str], groups: Sequence[Sequence[str]], sides: Sequence[Versions]
) -> bool:
    """Whether an open path is one of an item's places, or git put the item there, as whose folder it took that.

    Of several items of that name it is the one that has a version there, else the first.
    """
    if any(one.path in other for other in groups):
        return one.path in group
    named = [other for other in groups if stem_of(other[0]).casefold() == stem_of(one.path).casefold()]
    blobs = {stage.id for stage in (one.base, one.ours, one.theirs) if stage}
    holders = [
        other for other in named if any(path in side and side[path].blob in blobs for side in sides for path in other)
    ]
    return group in (holders or named)[:1]


def _what(base: object, ours: object, theirs: object) -> str:
    """What happened to a file that both sides, one or none of them has."""
    if ours is not None and theirs is not None:
        return "both sides added it" if base is None else "both sides changed it"
    if base is None:
        return "one side moved it"
    if ours is None and theirs is None:
        return "both moved it"
    return _REMOVED_BY_US if ours is None else _REMOVED_BY_THEM
