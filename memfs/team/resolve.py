"""List what a merge could not decide, and resolve it.

Files that git left with several versions are joined; a result that a person made by hand is kept as it is. Files are
written before the person's index, so that a resolve that was killed can be repeated. A value that was displaced waits
until somebody decides, or the field has another value: in the item, or in a record beside a document of an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from memfs import errors
from memfs.admin.store_builder import has_states
from memfs.dataclass import dataclass, replace
from memfs.format import field_merge, item_fields
from memfs.format.codec import schema_of
from memfs.format.field_merge import DELETED, OTHER, FieldConflict, is_undecided_in, settled, with_lost
from memfs.format.file_merge import FileMerger
from memfs.format.text import has_markers
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import is_own
from memfs.git import log
from memfs.git.commits import UnmergedPath, situation, stage, unmerged
from memfs.git.objects import FILE, TreeEntry
from memfs.git.process import entries_of
from memfs.git.repository import Repository
from memfs.model.ids import stem_of
from memfs.model.item import MemoryItem, Origin, RecordedConflict
from memfs.model.shape import plain
from memfs.model.state_documents import DocumentClash
from memfs.model.state_facts import StateQuery
from memfs.recall.conflict_notes import MarkedItems, undecided
from memfs.startup import regex
from memfs.state.reader import DocumentChange
from memfs.store import Store
from memfs.store.hand_edits import is_own_file
from memfs.store.parts import ITEM_SUFFIXES, READ_LIMIT, Parts, is_item
from memfs.store.plan import current_signer, message_for_items, signed_by
from memfs.store.reader import path_of
from memfs.store.recovery import MissedItems, keep_aside
from memfs.store.store import retry_on_conflict
from memfs.team.history_merge import HistoryJoin, Place, Sides, Versions, bring_back, joined_place, place_in

if TYPE_CHECKING:
    from memfs.state.parts import States

Side = Literal["", "ours", "theirs"]
"""Whose version is taken whole; "" for neither: they are joined."""

_MARKER = regex(rb"([<|=>])\1{6,}(?: |\Z)")
_MISTAKEN = "git took it for another item"
_REMOVED_BY_US, _REMOVED_BY_THEM = "we removed it, they changed it", "they removed it, we changed it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A file that git has several versions of.

    Attributes:
        path: where the outcome goes, below the workspace.
        also: other paths of the same item: one side moved it, and they are gone afterwards.
        beside: paths of other items that git took for this one: they are brought to an end together.
        what: what happened to it, in words.
        versions: the base, ours and theirs; None where there is none.
        mode: of the file.
        mistaken: whether the versions are of two items, and it is unknown where the other one belongs.
        made: what git and the merge driver may have made of the file, beside the versions themselves.
    """

    path: str
    also: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    what: str
    versions: tuple[bytes | None, bytes | None, bytes | None]
    mode: str = ""
    mistaken: bool = False
    made: tuple[bytes, ...] = ()

    @property
    def uncontested(self) -> bool:
        """Whether it is open only since git took another item for it: there is nothing to choose."""
        return bool(self.beside) and self.versions[0] in self.versions[1:]

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
        own: whether it is what the person had made of it.
        side: whose version it is, taken whole; "" for what comes of both.
        undecided: why it cannot be joined; "" where it is.
    """

    open: Open
    data: bytes | None = None
    before: bytes | None = None
    touched: bool = False
    conflicts: tuple[FieldConflict, ...] = ()
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
        self._join = HistoryJoin(parts)
        self._missed = MissedItems(parts.repository.state)

    def in_index(self) -> tuple[list[Open], int]:
        """The open files of the person's index, by path, and how many other files are open there.

        Raises:
            GitFailed, HistoryUnavailable: git's files cannot be read.
        """
        found, others = unmerged(self._parts.repository)
        own = [one for one in found if is_own(one.path) and one.plain]
        items = [one for one in own if is_item(one.path, self._parts.kinds)]
        ours = [one for one in own if one in items or is_own_file(one.path)]
        sides = self._join.going_on() if items else None
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
        except errors.NotRegularFile as error:
            return MergeOutcome(open=one, undecided=f"{error.sentence}: {error.hint}")
        found = MergeOutcome(open=one, before=before)
        merged = self._merger.merge(one.path, *one.versions)
        touched = before not in (None, merged.data) and not is_known(one, before)
        if side and not one.uncontested:
            return replace(found, data=one.versions[1 if side == "ours" else 2], touched=touched, side=side)
        if self._is_own(one, before, merged.data):
            return replace(found, data=before, own=True)
        if merged.whole or one.mistaken:
            reason = _MISTAKEN if one.mistaken else merged.reason or "a version cannot be read"
            reason += "; take one with --keep ours or --keep theirs"
            return replace(found, undecided=reason, conflicts=merged.conflicts)
        return replace(found, data=merged.data, touched=touched, conflicts=merged.conflicts)

    # -- finding versions -----------------------------------------------------------------------------------------
    def _opened(self, one: UnmergedPath) -> Open:
        """An open file with the versions that the index has of its path."""
        return Open(
            path=one.path,
            what=_what(one.base, one.ours, one.theirs),
            versions=(self._blob(one.base), self._blob(one.ours), self._blob(one.theirs)),
            mode=one.mode,
        )

    def file(self, path: str) -> bytes | None:
        """What is at a path; None also for what is no file, which the outcome then says."""
        with suppress(errors.NotRegularFile):
            return self._present(path)
        return None

    def _checked(self, one: Open) -> Open:
        """An open file of which the commits are not known: versions of two items are left to a person."""
        strange = self._merger.unrelated(one.path, *one.versions)
        if not strange or None in one.versions[1:]:
            return one
        apart = replace(one, versions=(None, *one.versions[1:]))
        return apart if len(strange) == 2 else replace(one, what=_MISTAKEN, mistaken=True)

    # -- by the commits that are joined ---------------------------------------------------------------------------
    def _by_id(self, found: Sequence[UnmergedPath], sides: Sides) -> list[Open]:
        """The items that open files are about, each with its versions from the commits.

        The versions in the index may be of other items: git pairs files by what they say.
        """
        abouts = [self._about(one, sides) for one in found]
        lost = self._join.names(sides[1]) & self._join.names(sides[2])  # a place that collided left no trace of them
        missed = self._join.names(one.path for one in self._missed.all().values())
        missed |= {name for name in lost if not self._is_there(name, sides)}
        opened = {part.path: part for part in self._items(missed.union(*abouts), found, sides)}
        for about in abouts:
            both = [part for part in opened.values() if self._join.names(part.paths) & about]
            for part in both if len(both) > 1 else ():
                beside = dict.fromkeys((*part.beside, *(other.path for other in both if other.path != part.path)))
                opened[part.path] = replace(part, beside=tuple(beside))
        return [replace(one, what=_MISTAKEN) if one.uncontested else one for one in opened.values()]

    def _about(self, one: UnmergedPath, sides: Sides) -> set[str]:
        """The names of the items whose versions are at an open path."""
        about, known = self._join.names([one.path]), {version.blob for side in sides for version in side.values()}
        for entry in filter(None, (one.base, one.ours, one.theirs)):
            if any(one.path in side and side[one.path].blob == entry.id for side in sides):
                continue
            if entry.id in known:
                about |= self._join.names(
                    path for side in sides for path, version in side.items() if version.blob == entry.id
                )
            else:  # git joined files one after another: what went into it is no longer to be seen
                about |= {name for name in self._join.names(set().union(*sides)) if not self._is_there(name, sides)}
        return about

    def _is_there(self, name: str, sides: Sides) -> bool:
        places = {path for side in sides for path in side if stem_of(path).casefold() == name}
        return any(self.file(path) is not None for path in places)

    def _items(self, about: set[str], found: Sequence[UnmergedPath], sides: Sides) -> Iterator[Open]:
        """Each item of some names, as far as it is not as it should be."""
        own = [{path: side[path] for path in side if self._join.names([path]) & about} for side in sides]
        groups = list(self._join.groups(own))
        for group in groups:
            held = [one for one in found if _belongs(one, group, groups, own)]
            one = self._item(group, held, own)
            if held or (one.versions.count(None) < 3 and not self._is_right(one)):
                yield one

    def _item(self, group: Sequence[str], held: Sequence[UnmergedPath], sides: Sequence[Versions]) -> Open:
        places = [place_in(side, group) for side in sides]
        began, here, there = (place[0] if place else "" for place in places)
        paths = dict.fromkeys((joined_place(began, here, there) or group[0], *group, *(one.path for one in held)))
        raw = [self._join.content(place[1]) if place else None for place in places]
        made = [data for one in held for data in self._made(one)]
        path = self._worked_on(paths, [*raw, *made]) or next(iter(paths))
        base, ours, theirs = (self._brought(path, place, data) for place, data in zip(places, raw, strict=True))
        return Open(
            path=path,
            also=tuple(other for other in paths if other != path),
            what=_what(base, ours, theirs),
            versions=(base, ours, theirs),
            mode=held[0].mode if held else FILE,
            made=tuple(data for data in (*raw, *made) if data not in (None, base, ours, theirs)),
        )

    def _brought(self, path: str, place: Place, data: bytes | None) -> bytes | None:
        """A version as it is at the outcome's path; as it was, where it cannot be read."""
        with suppress(errors.ContentError):
            return self._join.moved_to(path, place)
        return data

    def _made(self, one: UnmergedPath) -> Iterator[bytes]:
        """What git's versions are, and what they come to."""
        stages = [self._blob(stage) for stage in (one.base, one.ours, one.theirs)]
        merged = [self._merger.merge(one.path, base, *stages[1:]).data for base in {stages[0], None}]
        yield from (data for data in (*stages, *merged) if data is not None)

    def _worked_on(self, paths: Iterable[str], known: Sequence[bytes | None]) -> str:
        """Where a person has edited an item that has several places; "" where none was edited."""
        for path in paths:
            data = self.file(path)
            if data is not None and data not in known and not has_markers(data):
                return path
        return ""

    def _is_right(self, one: Open) -> bool:
        """Whether the file is as it should be, and none of its other places is taken."""
        outcome = self._merger.merge(one.path, *one.versions)
        return self.file(one.path) == outcome.data and not any(self.file(path) for path in one.also)

    def _blob(self, stage: TreeEntry | None) -> bytes | None:
        return None if stage is None else self._parts.repository.blob(stage.id)

    # -- what the person made of it -------------------------------------------------------------------------------
    def _present(self, path: str) -> bytes | None:
        try:
            return self._parts.tree.read(path, READ_LIMIT).data
        except FileNotFoundError:
            return None

    def _is_own(self, one: Open, present: bytes | None, joined: bytes | None) -> bool:
        if present in (joined, *one.versions, *one.made):
            return False
        if present is None:  # git leaves no file where it took the item for another one, or put it elsewhere
            return not one.beside and not any(self.file(path) is not None for path in one.also)
        free = not schema_of(one.path) and not is_item(one.path, self._parts.kinds)
        return not has_markers(present) and (free or self._parts.codec.accepts(present, one.path))


def is_known(one: Open, present: bytes | None) -> bool:
    """Whether a file has nothing in it but one of the versions, or what git made of them.

    What git, or a text merge, puts there has markers, and else no other lines than the versions have.
    """
    versions = *one.versions, *one.made
    if present in versions or present is None or not has_markers(present):
        return present in versions
    known = {line for version in versions if version is not None for line in version.splitlines()}
    return all(line in known or _MARKER.match(line) for line in present.splitlines())


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


_DEPTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """What was decided about an item or a document.

    Attributes:
        id: the item; "" of a document.
        path: the file.
        record: the record of a document's field.
        settled: the conflicts that are gone.
        item: as it is stored now; None of a document, and where it was removed.
        removed: whether the decision takes the item or document away, as the displaced version had.
    """

    id: str
    path: str
    record: str = ""
    settled: tuple[RecordedConflict, ...]
    item: MemoryItem | None = None
    removed: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that were decided about; "" for the item or document as a whole."""
        return tuple(one.field for one in self.settled)

    @property
    def sha256(self) -> str | None:
        """Of the item's file now; None where it is not written."""
        return self.item.sha256 if self.item else None


def _to_take(item: MemoryItem, chosen: Sequence[RecordedConflict]) -> list[RecordedConflict]:
    """Of some conflicts of an item those whose value is taken: one for each value that it displaced.

    Raises:
        QueryInvalid: the present value displaced several, or one of them removes the item.
    """
    taken: list[RecordedConflict] = []
    for one in [each for each in chosen if field_merge.is_undecided(item, each)] or chosen:
        place = one.field, one.kept, one.part
        rival = next((each for each in taken if (each.field, each.kept, each.part) == place), None)
        if rival is None:
            taken.append(one)
        elif (one.lost, one.lost_sha256) != (rival.lost, rival.lost_sha256):
            hint = f"write what it is to be, or let it stand: 'memfs team conflicts resolve {item.id} --keep kept'"
            what = "several values were not kept"
            raise errors.QueryInvalid(what, field=one.field or None, path=item.path, hint=hint)
    if len(taken) > 1 and any(not one.field and one.lost == DELETED for one in taken):
        hint = f"decide that first: 'memfs team conflicts resolve {item.id} --field \"\" --keep kept', or lost"
        raise errors.QueryInvalid("one of them removes the item, and others change it", path=item.path, hint=hint)
    return taken


def _value(item: MemoryItem, field: str) -> Any:
    return field_merge.value_at(item_fields.values(item), field)


def _place(tree: Tree, repository: Repository, one: MergeOutcome) -> None:
    """Write an outcome into its file, and take away the item's other files; what a person made of them is set aside."""
    path, before = one.open.path, one.before
    if one.touched and before is not None:
        _set_aside(repository, path, before)
    if one.data is not None and one.data != before:
        tree.write(path, one.data, over="" if before is None else sha256(before))
    elif one.data is None and before is not None:
        tree.remove(path, over=sha256(before))
    for other in one.open.also:
        with suppress(FileNotFoundError):
            data = tree.read(other, READ_LIMIT).data
            if not is_known(one.open, data):
                _set_aside(repository, other, data)
            tree.remove(other, over=sha256(data))


def _set_aside(repository: Repository, path: str, data: bytes) -> None:
    keep_aside(repository.state, path, data, f"merge-{sha256(data)[:16]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenConflicts:
    """The conflicts that wait for a decision in one workspace.

    Attributes:
        open: files of which the person's index holds several versions.
        items: items that carry conflicts of a merge.
        documents: fields of state documents of which one value was displaced.
        others: how many files that are not memory are open in the person's index.
        situation: what git operation is under way, by the file that says so (``MERGE_HEAD``, ...), "" for nothing.
    """

    open: tuple[Open, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    documents: tuple[DocumentClash, ...] = ()
    others: int = 0
    situation: str = ""

    @property
    def count(self) -> int:
        """How many decisions wait: files, and fields."""
        fields = sum(len(item.conflicts) for item in self.items)
        return len(self.open) + fields + len(self.documents)


class Resolver:
    """Lists and ends what merges could not decide in one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, states: Callable[[], States]) -> None:
        self._store, self._parts, self._states = store, parts, states
        self._merges = OpenMerges(parts)
        self._marked = MarkedItems(store, parts)
        self._missed = MissedItems(parts.repository.state)

    # -- looking --------------------------------------------------------------------------------------------------
    def waiting(self) -> OpenConflicts:
        """Everything that waits for a decision.

        Raises:
            GitFailed, HistoryUnavailable: git's files cannot be read.
        """
        with self._store.scan_once():
            documents = self.documents()
            opened, others = self._merges.in_index()
            in_index = {path for one in opened for path in one.paths}
            self._store.follow()
            # those fields alone that were not edited since
            marked = ((item, undecided(item)) for item in self._marked if item.path not in in_index)
            return OpenConflicts(
                open=tuple(opened),
                items=tuple(item.replace(conflicts=standing) for item, standing in marked if standing),
                documents=tuple(documents),
                others=others,
                situation=situation(self._parts.repository),
            )

    def take_up(self) -> int:
        """Bring back the edits that merges of git's lost, once those are over; how many there were."""
        self._store.require_open()
        return bring_back(self._store, self._parts, self._missed)

    def documents(self) -> list[DocumentClash]:
        """The records of displaced values of state documents that await a decision, the newest first.

        One whose field has got another value since, or whose document is gone or archived, is left out.
        """
        self.take_up()
        found: list[DocumentClash] = []
        if not has_states(self._parts.seen):
            return found
        files = self._states().files
        for row in self._states().reading.rows(StateQuery(kinds=("conflict",), newest=True)):
            if row.archive:
                continue
            with suppress(errors.MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                clash = DocumentClash.of(row.path, files.read(row.path).values)
                if is_undecided_in(files.read(clash.document).values, clash):
                    found.append(clash)
        return found

    # -- ending merges --------------------------------------------------------------------------------------------
    def finish(self, references: Sequence[str] = (), *, side: Side = "") -> list[MergeOutcome]:
        """Join what git left in several versions, by the same rules as the merge driver.

        A file that the person made an outcome of stays as they made it. The outcome goes into the file and into the
        person's index, as ``git add`` would put it; committing the merge is left to them.

        Args:
            references: ids or paths; none means every file.
            side: take that version whole instead; what the person made of the file is set aside.

        Returns:
            One outcome for each file; those with ``undecided`` were left as they are.

        Raises:
            ItemNotFound: nothing is open under one of the names.
            Conflict: a file changed at this very moment. What came before it is finished.
            GitBusy: somebody holds the index; repeat it.
            StorageIO.
        """
        opened = self._merges.in_index()[0]
        chosen = {} if references else dict.fromkeys(opened)
        for reference in references:
            found = [one for one in opened if any(_means(reference, path) for path in one.paths)]
            if not found:
                decide = f"'memfs team conflicts resolve {reference}"
                hint = f"{decide} --keep kept' (or lost) decides a joined field, {decide} OTHER --keep ID' which holds"
                raise errors.ItemNotFound(f"no merge in progress left {reference!r} to decide", hint=hint)
            chosen |= dict.fromkeys(found)
        outcomes = [self._merges.outcome(one, side) for one in chosen]
        # What has to end together is left together: git knows the one of two items only by the other's entry.
        left = {one.open.path for one in outcomes if one.undecided}
        outcomes = [
            replace(one, undecided=f"it ends together with {other}")
            if (other := next((path for path in one.open.beside if path in left), ""))
            else one
            for one in outcomes
        ]
        self._end([one for one in outcomes if not one.undecided])
        self.take_up()
        return outcomes

    def _end(self, outcomes: Sequence[MergeOutcome]) -> None:
        """The journal takes no part: what the file holds follows from what the index has, the commit is theirs."""
        if not outcomes:
            return
        tree, repository = self._parts.tree, self._parts.repository
        contents: dict[str, tuple[str, bytes | None]] = {}
        with self._parts.lock.hold("resolve"):
            for one in outcomes:
                try:
                    _place(tree, repository, one)
                except FileChanged as error:
                    problem = "the file changed while it was joined"
                    raise errors.Conflict(problem, path=one.open.path, hint="look at it, and try again") from error
                contents |= dict.fromkeys(one.open.also, (one.open.mode, None))
                contents[one.open.path] = (one.open.mode, one.data)
            stage(repository, contents)  # after the files: of a kill in between, the same versions are joined again
        paths = [path for one in outcomes for path in one.open.paths]
        ended = {stem_of(path).casefold() for path in paths}
        for name, missed in self._missed.all().items():
            if stem_of(missed.path).casefold() in ended:
                self._missed.drop(name)
        self._store.refresh(paths)

    # -- deciding -------------------------------------------------------------------------------------------------
    def decide(self, reference: str, *, take: bool, field: str | None = None, source: str = "") -> DecisionResult:
        """Settle the conflicts of an item or document, or of one field of it, in one commit.

        Args:
            reference: an item, by id, the beginning of one, or path; or the path of a record.
            take: put the displaced value in the place of the present one; else the present one is right.
            field: of an item only the conflicts over this field, by its dotted name; "" for those about the whole.

        Raises:
            ItemNotFound: there is no such item or record, or it has no such conflict.
            QueryInvalid: the field has another value now, so that it is unclear what would be replaced; several
                values were displaced by the present one; or a version of a document was, which only history has.
            Conflict: the file changed at this very moment. Nothing was written.
            ContentError, StorageIO: nothing was written.
        """
        if schema_of(reference) != "conflict":
            return self._decide_item(reference, take, field, source)
        clash = retry_on_conflict(lambda: self._decide_record(reference, take, source))
        return DecisionResult(id="", path=clash.document, record=reference, settled=(clash.conflict,))

    def _decide_record(self, record: str, take: bool, source: str) -> DocumentClash:
        """Take a record away, in one commit with the document where the other value is taken."""
        files = self._states().files
        try:
            state = files.read(record)
            clash = DocumentClash.of(record, state.values)
            document = files.read(clash.document)
        except FileNotFoundError:
            hint = "'memfs team conflicts' lists what waits"
            raise errors.ItemNotFound(f"there is no record {record!r}, or its document is gone", hint=hint) from None
        changes = [DocumentChange(record, None, state.sha256)]
        if take:
            changes.append(DocumentChange(clash.document, with_lost(plain(document.values), clash), document.sha256))
        value, field = "other" if take else "present", clash.field or "the document as a whole"
        with self._staged(*(change.path for change in changes)):
            files.write(changes, f"Decide for the {value} value in {field} of {clash.document}", source=source)
        return clash

    def _decide_item(self, reference: str, take: bool, field: str | None, source: str) -> DecisionResult:
        item = self._store.find(reference)
        chosen = tuple(one for one in item.conflicts if field is None or one.field == field)
        if not chosen:
            over = f" over {field!r}" if field else ""
            hint = "'memfs team conflicts' lists what waits"
            raise errors.ItemNotFound(f"{item.id} has no conflict{over}", hint=hint)
        taken = _to_take(item, chosen) if take else []
        after: MemoryItem | None = item
        for one in chosen:
            if after is not None:
                after = self._taken(after, one) if one in taken else settled(after, one, take=False)
        decided = DecisionResult(id=item.id, path=item.path, settled=chosen, removed=after is None)
        names = ", ".join(dict.fromkeys(one.field or "the item as a whole" for one in chosen))
        reason = f"the {'other' if take else 'present'} value in {names}"
        # who decides, and not who wrote what is decided about
        with self._staged(item.path), signed_by(current_signer() or Origin()):
            if after is None:
                self._store.delete(item.id, item.sha256, reason=f"decided for {reason}", source=source)
                return decided
            message = message_for_items("Decide", [after], f"for {reason}")
            stored = self._store.put(after, item.sha256, message=message, source=source)
        return replace(decided, path=stored.path, item=stored)

    @contextmanager
    def _staged(self, *paths: str) -> Iterator[None]:
        """While the person merges, stage what is written within: their commit takes it, and memfs makes none of it.

        A file of which the index has another version than the folder is left alone.
        """
        repository, journal, modes = self._parts.repository, self._parts.journal, dict[str, str]()
        if situation(repository):
            entries = {entry.path: entry for entry in entries_of(repository.git) if not entry.stage}
            for path in paths:
                entry, data = entries.get(repository.full(path)), self._merges.file(path)
                if entry and data is not None and repository.blob_id(data) == entry.blob:
                    modes[path] = entry.mode
        yield
        if modes:
            with self._parts.lock.hold("resolve"):
                stage(repository, {path: (mode, self._merges.file(path)) for path, mode in modes.items()})
                waiting = journal.operations()
                journal.drop(one.id for one in waiting if all(change.path in modes for change in one.changes))

    # -- taking what was displaced --------------------------------------------------------------------------------
    def _taken(self, item: MemoryItem, conflict: RecordedConflict) -> MemoryItem | None:
        """The item with what was displaced, and without the record; None where that was its removal."""
        left = tuple(one for one in item.conflicts if one != conflict)
        if not conflict.field:
            if conflict.lost == DELETED:
                return None
            if conflict.lost != OTHER:
                name = f"memfs team conflicts resolve {item.id} --keep kept"
                hint = f"edit it by what 'memfs log {item.id}' names, then '{name}'"
                what = "more fields were not kept than the item can name"
                raise errors.QueryInvalid(what, path=item.path, hint=hint)
            return self._version(item, conflict).replace(conflicts=left)
        if conflict.lost_sha256:
            lost = _value(self._version(item, conflict), conflict.field)
            conflict = replace(conflict, kept=_value(item, conflict.field), lost=lost, lost_sha256="")
            item = item.replace(conflicts=(*left, conflict))
        return settled(item, conflict, take=True)

    def _version(self, item: MemoryItem, conflict: RecordedConflict) -> MemoryItem:
        """The displaced version of the item, from history.

        Raises:
            ItemNotFound: history does not have it (a shallow clone), or it cannot be read.
        """
        fallback = item.timestamp or item.created
        assert fallback is not None  # an item that was read has a time
        with suppress(errors.HistoryError):
            for revision in log.log(self._parts.repository, (item.path,), _DEPTH):
                for commit in (revision.commit, *self._parts.repository.commit_object(revision.commit).parents):
                    data = self._parts.repository.read(commit, item.path)
                    if data is not None and sha256(data) == conflict.lost_sha256:
                        read = self._parts.codec.read(data, item.path, fallback)
                        return read.replace(sha256=item.sha256)
        raise errors.ItemNotFound(
            "the version that was not kept is not in the history",
            path=item.path,
            hint="fetch it, or edit the item by hand",
        )


def _means(reference: str, path: str) -> bool:
    """Whether a person's name for a file means this path: the path itself, or an item's id or its beginning."""
    if "/" in reference or reference.endswith(ITEM_SUFFIXES) or reference == path:
        return path_of(reference) == path
    return not schema_of(path) and stem_of(path).casefold().startswith(reference.casefold())
