"""List what a merge could not decide, and resolve it.

Files are written before the person's index, so that a resolve that was killed can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memfs.admin.merge_spool import SEEN, MergeSpool, Record, can_be_recorded, can_wait, digest, is_due, records_of
from memfs.admin.store_builder import has_states
from memfs.errors import (
    Conflict,
    ContentError,
    HistoryError,
    ItemNotFound,
    MemfsError,
    MergeRefused,
    NotRegularFile,
    PathEscape,
    QueryInvalid,
    SchemaInvalid,
)
from memfs.format import item_fields
from memfs.format.codec import schema_of
from memfs.format.file_merge import FileMerger
from memfs.format.merge_conflicts import DELETED, OTHER, settled, stands, stands_in, value_at, with_lost
from memfs.format.merge_forms import Form, form_of
from memfs.fs import io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.tree import Tree
from memfs.git import log
from memfs.git.ancestry import is_ancestor, merge_bases
from memfs.git.refs import HEX
from memfs.git.repository import Repository
from memfs.git.tree_diff import snapshots
from memfs.git.unmerged import situation, stage
from memfs.learning.conflicts import MarkedItems
from memfs.model.conflict import KEPT, LOST, DocumentClash
from memfs.model.ids import stem_of
from memfs.model.item import MemoryItem, Origin, RecordedConflict
from memfs.model.shape import plain
from memfs.model.time import utc_now
from memfs.store import Store
from memfs.store.authorship import current_signer, signed_by
from memfs.store.commit_message import of_items
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, READ_LIMIT, Parts, is_item
from memfs.store.reader import path_of
from memfs.store.recovery import keep_aside
from memfs.team.history_merge import HistoryJoin, TreeJoin
from memfs.team.open_merges import MergeOutcome, Open, OpenMerges, Side, is_known, paths_of

if TYPE_CHECKING:
    from memfs.state.parts import States


_DEPTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRule:
    """What somebody decides, and about which conflicts of an item or document.

    Attributes:
        take: put the displaced value in the place of the present one; else the present one is right.
        field: only the conflicts over this field, by its dotted name; "" for one about the whole, None for every one.
        number: only this one of those that wait, counted from 1 as they are listed (of the field, where one is named);
            0 for every one.
    """

    take: bool
    field: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """What was decided about an item.

    Attributes:
        id, path: of the item.
        settled: the conflicts that are gone.
        item: as it is stored now; None where it was removed, or with ``dry_run``.
        removed: whether the decision takes the item away, as the displaced version had.
    """

    id: str
    path: str
    settled: tuple[RecordedConflict, ...]
    item: MemoryItem | None = None
    removed: bool = False


class Decisions:
    """Finds and settles conflicts that items of one workspace carry. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._marked = MarkedItems(store, parts)

    def waiting(self) -> Iterator[MemoryItem]:
        """The items with conflicts, in the order of their paths; with those alone whose field was not edited since."""
        self._store.follow()
        for item in self._marked:
            if standing := tuple(one for one in item.conflicts if stands(item, one)):
                yield item.replace(conflicts=standing)

    def decide(
        self, reference: str, ruling: DecisionRule, *, source: str = "", dry_run: bool = False
    ) -> DecisionResult:
        """Settle the conflicts of an item, or of one field of it, in one commit.

        Args:
            reference: an id, a path, or the beginning of an id.

        Raises:
            ItemNotFound: there is no such item, or it has no such conflict.
            QueryInvalid: the field has another value by now, so that nobody knows what would be replaced; or several
                values were displaced by the present one, and none of them is chosen.
            Conflict: the item changed at this very moment. Nothing was written.
            ContentError, StorageIO: nothing was written.
        """
        item = self._store.find(reference)
        chosen = _chosen(item, ruling)
        taken = _taken_of(item, chosen, ruling.number) if ruling.take else ()
        after: MemoryItem | None = item
        for one in chosen:
            if after is not None:
                after = self._taken(after, one) if one in taken else settled(after, one, take=False)
        decided = DecisionResult(id=item.id, path=item.path, settled=chosen, removed=after is None)
        if dry_run:
            return decided
        names = ", ".join(dict.fromkeys(one.field or "the item as a whole" for one in chosen))
        reason = f"the {'other' if ruling.take else 'present'} value in {names}"
        with signed_by(current_signer() or Origin()):  # who decides, and not who wrote what is decided about
            if after is None:
                self._store.delete(item.id, item.sha256, reason=f"decided for {reason}", source=source)
                return decided
            stored = self._store.put(
                after, item.sha256, message=of_items("Decide", [after], f"for {reason}"), source=source
            )
        return DecisionResult(id=item.id, path=stored.path, settled=chosen, item=stored)

    # -- taking what was displaced --------------------------------------------------------------------------------
    def _taken(self, item: MemoryItem, conflict: RecordedConflict) -> MemoryItem | None:
        """The item with what was displaced, and without the record; None where that was its removal."""
        left = tuple(one for one in item.conflicts if one != conflict)
        if not conflict.field:
            if conflict.lost == DELETED:
                return None
            if conflict.lost != OTHER:
                raise _unclear(item)
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
        with suppress(HistoryError):
            for revision in log.log(self._parts.repository, (item.path,), _DEPTH):
                for commit in (revision.commit, *self._parts.repository.commit_object(revision.commit).parents):
                    data = self._parts.repository.read(commit, item.path)
                    if data is not None and sha256(data) == conflict.lost_sha256:
                        read = self._parts.codec.read(data, item.path, fallback)
                        return read.replace(sha256=item.sha256)
        raise ItemNotFound(
            "the version that was not kept is not in the history",
            path=item.path,
            hint="fetch it, or edit the item by hand",
        )


def _chosen(item: MemoryItem, ruling: DecisionRule) -> tuple[RecordedConflict, ...]:
    """The conflicts that are meant, the one with the number first; once its value is taken, its rivals are decided."""
    field, number = ruling.field, ruling.number
    chosen = tuple(one for one in item.conflicts if field is None or one.field == field)
    if number:
        picked = [one for one in chosen if stands(item, one)][number - 1 : number]
        rivals = (one for one in chosen if any(_rival(one, first) and one != first for first in picked))
        chosen = (*picked, *(rivals if ruling.take else ()))
    if not chosen:
        what = f"no conflict {number or ''}".rstrip() + (f" over {field!r}" if field else "")
        raise ItemNotFound(f"{item.id} carries {what}", hint="'memfs team conflicts' lists what waits")
    return chosen


def _taken_of(item: MemoryItem, chosen: tuple[RecordedConflict, ...], number: int) -> tuple[RecordedConflict, ...]:
    """Those whose value is to be kept: one for each field or passage, of those about what is there."""
    if number:
        return chosen[:1]
    taken: list[RecordedConflict] = []
    for one in [each for each in chosen if stands(item, each)] or chosen:
        rival = next((each for each in taken if _rival(one, each)), None)
        if rival is None:
            taken.append(one)
        elif (one.lost, one.lost_sha256) != (rival.lost, rival.lost_sha256):
            raise _choose(item, "several values were not kept", one.field)
    if len(taken) > 1 and any(not one.field and one.lost == DELETED for one in taken):
        raise _choose(item, "one of them removes the item, and others change it", "")
    return tuple(taken)


def _choose(item: MemoryItem, problem: str, field: str) -> QueryInvalid:
    hint = f"choose as listed: 'memfs team conflicts resolve {item.id} --keep lost --number 1', or 2, ..."
    return QueryInvalid(problem, field=field or None, path=item.path, hint=hint)


def _rival(one: RecordedConflict, other: RecordedConflict) -> bool:
    """Whether two values were displaced by the same one."""
    return (one.field, one.kept, one.part) == (other.field, other.kept, other.part)


def is_record(reference: str) -> bool:
    """Whether a reference names the record of a conflict in a state document."""
    return reference.endswith(".json") and schema_of(reference) == "conflict"


def _value(item: MemoryItem, field: str) -> Any:
    return value_at(item_fields.values(item), field)


def _unclear(item: MemoryItem) -> QueryInvalid:
    hint = f"edit it by what 'memfs log {item.id}' names, then 'memfs team conflicts resolve {item.id} --keep kept'"
    return QueryInvalid("more fields were not kept than the item can name", path=item.path, hint=hint)


def keep_conflicts(spool: MergeSpool, one: MergeOutcome) -> None:
    """Keep the conflicts that the outcome cannot hold itself."""
    if one.conflicts and not one.recorded and can_wait(one.open.path):
        records = records_of(one.open.path, one.conflicts, utc_now())
        spool.keep(records, one.data, (one.open.ours, one.open.theirs))


def end_merges(tree: Tree, repository: Repository, outcomes: Sequence[MergeOutcome]) -> None:
    """Files first, then the index: after a kill in between, the same versions are joined again.

    Raises:
        Conflict: a file changed at this very moment. What came before it is finished.
        GitBusy: somebody holds the index.
        StorageIO.
    """
    for one in outcomes:
        place(tree, repository, one)
    contents: dict[str, tuple[str, bytes | None]] = {}
    for one in outcomes:
        contents |= dict.fromkeys(one.open.also, (one.open.mode, None))
        contents[one.open.path] = (one.open.mode, one.data)
    stage(repository, contents)


def place(tree: Tree, repository: Repository, one: MergeOutcome) -> None:
    """Write an outcome into its file.

    Raises:
        Conflict: the file changed at this very moment.
        StorageIO.
    """
    path = one.open.path
    if one.touched and one.before is not None:
        _set_aside(repository, path, one.before)
    try:
        if one.data is None:
            if one.before is not None:
                tree.remove(path, over=sha256(one.before))
        elif one.data != one.before:
            tree.write(path, one.data, over="" if one.before is None else sha256(one.before))
        for other in one.open.also:
            with suppress(FileNotFoundError):
                _remove(tree, repository, one, other)
    except FileChanged as error:
        raise Conflict("the file changed while it was joined", path=path, hint="look at it, and try again") from error


def _remove(tree: Tree, repository: Repository, one: MergeOutcome, path: str) -> None:
    """Take a file away whose item lies elsewhere; what a person made of it is set aside."""
    data = tree.read(path, READ_LIMIT).data
    if not is_known(one.open, data):
        _set_aside(repository, path, data)
    tree.remove(path, over=sha256(data))


def _set_aside(repository: Repository, path: str, data: bytes) -> None:
    keep_aside(repository.state, path, data, f"merge-{sha256(data)[:16]}")


class KeptAside:
    """Finds and settles such conflicts in one clone. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._spool = MergeSpool(parts.repository.state)

    def waiting(self) -> tuple[DocumentClash, ...]:
        """What waits, by document; while a merge goes on nothing does, as nobody knows its outcome yet."""
        standing = self._standing(self._kept())
        return tuple(standing.values()) if standing and not self._parts.repository.busy() else ()

    def decide(self, reference: str, ruling: DecisionRule, *, source: str, dry_run: bool) -> DecisionResult | None:
        """Settle what waits for a document, or for one field of it.

        Args:
            reference: the document's path.

        Returns:
            What was settled; None where nothing is kept of such a document.

        Raises:
            ItemNotFound: it has no such conflict.
            QueryInvalid: several values were displaced by one, and none of them is chosen; or a version did, which only
                history has.
            Conflict, ContentError, StorageIO: nothing was written.
        """
        path = path_of(reference)
        mine = {name: one for name, one in self._kept().items() if one["record"]["document"] == path}
        if not mine:
            return None
        standing = self._standing(mine)
        chosen = {name: one for name, one in standing.items() if ruling.field in (None, one.field)}
        if ruling.number:
            chosen = dict([*chosen.items()][ruling.number - 1 : ruling.number])
        if not chosen:
            raise ItemNotFound(f"no such conflict is kept of {path}", hint="'memfs team conflicts' lists what waits")
        clashes = tuple(chosen.values())
        fields = {one.field for one in clashes}
        if ruling.take and len(fields) < len(clashes):
            hint = f"choose as listed: 'memfs team conflicts resolve {path} --keep lost --number 1', or 2, ..."
            raise QueryInvalid("several values were not kept", path=path, hint=hint)
        if not dry_run:
            if ruling.take:
                self._take(path, clashes, source)
            for name, one in standing.items():  # once a field has another value, its other records speak of none
                if name in chosen or (ruling.take and one.field in fields):
                    self._spool.drop(name)
        settled = tuple(RecordedConflict(field=one.field, kept=one.kept, lost=one.lost) for one in clashes)
        return DecisionResult(id=path, path=path, settled=settled, removed=ruling.take and "" in fields)

    # -- internal -----------------------------------------------------------------------------------------------
    def _kept(self) -> dict[str, Mapping[str, Any]]:
        """By name, in an order that stays: by document, field and value."""
        found = self._spool.kept().items()
        ours = ((name, one) for name, one in found if not can_be_recorded(one["record"]["document"]))
        return dict(sorted(ours, key=lambda pair: (pair[1]["record"]["document"], pair[1]["record"]["field"], pair[0])))

    def _standing(self, kept: Mapping[str, Mapping[str, Any]]) -> dict[str, DocumentClash]:
        """Those that wait: not where the document has another value by now, or is what it was before the merge."""
        found = {}
        for name, one in kept.items():
            clash = DocumentClash.of(one["record"]["document"], one["record"])
            # Where markers stand in it, a slip, or something else in its place, nobody can tell.
            with suppress(ContentError, FileNotFoundError, NotRegularFile, PathEscape):
                data = self._parts.seen.read(clash.document, READ_LIMIT).data
                values = plain(self._form(clash.document).read(data).mapping)
                if digest(data) not in one["given_up"] and stands_in(values, clash):
                    found[name] = clash  # another may stand again: on another branch, or in an older state
        return found

    def _form(self, path: str) -> Form:
        form = form_of(path, self._parts.codec)
        assert form is not None  # nothing else is kept aside
        return form

    def _take(self, path: str, clashes: Sequence[DocumentClash], source: str) -> None:
        """Write the document with what was displaced, or remove it where that was its removal."""
        data = self._parts.tree.read(path, READ_LIMIT).data
        form = self._form(path)
        parsed = form.read(data)
        values: dict[str, Any] | None = plain(parsed.mapping)
        for clash in clashes:
            values = with_lost(values, clash) if values is not None else None
        if values is not None and (faults := form.faults(values)):
            field = ".".join(map(str, faults[0])) or None
            hint = "edit the document by hand, then decide with --keep kept"
            raise SchemaInvalid("with that value the document would be invalid", path=path, field=field, hint=hint)
        plan = self._store.plan_restore(path, form.write(values, parsed).data if values is not None else None)
        if plan is not None:
            fields = ", ".join(one.field or "the document as a whole" for one in clashes)
            message = f"Decide for the other value in {fields} of {path}"
            self._store.carry_out([replace(plan, expected=sha256(data))], message, source=source)


_MESSAGE = "Bring back what a merge lost"
_MOST = 20


def bring_back(store: Store, parts: Parts, spool: MergeSpool) -> int:
    """Put items that merges lost back where they belong, unless a merge is still going on; how many there were.

    They are those of which the driver left a reminder, and those that both sides of a merge made since the last look
    have, and its outcome has not. Where one side removed an item, the edit of the other comes back with a record. A
    merge that was given up, or that another branch has, is left alone.

    Raises:
        Conflict, StorageIO: it stays to be done.
    """
    if not is_due(parts.repository):
        return 0
    head = parts.repository.head_commit()
    waiting = spool.missed()
    seen = _seen(parts)
    if not head or (seen == head and not waiting) or parts.repository.busy():
        return 0
    present = _present(parts)
    settled = [name for name, one in waiting.items() if _is_made(parts, one.merged, head)]
    contents: dict[str, bytes] = {}
    if seen != head:
        for commit in _merges(parts, seen, head):
            contents = dict(_lost(parts, commit, present)) | contents
    for name in settled:
        one = waiting[name]
        path = present.get(stem_of(one.path).casefold(), one.path)
        with suppress(HistoryError, ContentError, FileNotFoundError):  # erased since, or nobody can read it
            begun, own = (parts.repository.blob(blob) if blob else None for blob in (one.begun, one.own))
            there = parts.tree.read(path, READ_LIMIT).data if path in present.values() else None
            merged = FileMerger(parts.codec).merge(path, begun, own, there)
            if merged.data not in (None, there) and not merged.whole:
                contents[path] = merged.data or b""
    found = [store.plan_restore(path, data) for path, data in contents.items()]
    plans = [replace(plan, expected=plan.old_sha) for plan in found if plan is not None]
    if plans:
        store.carry_out(plans, _MESSAGE, source="merge")
    for name in settled:
        spool.drop(name)
    with suppress(MemfsError):  # it is looked at once more
        io.write_file(parts.repository.state / SEEN, head.encode())
    return len(plans)


def settle(spool: MergeSpool, names: set[str]) -> None:
    """Forget the reminders of items by name: they were brought to an end."""
    for key, one in spool.missed().items():
        if stem_of(one.path).casefold() in names:
            spool.drop(key)


def _seen(parts: Parts) -> str:
    with suppress(FileNotFoundError, MemfsError, UnicodeDecodeError):
        found = io.read_file(parts.repository.state / SEEN, 64).decode()
        return found if HEX.fullmatch(found) else ""
    return ""


def _is_made(parts: Parts, commits: tuple[str, ...], head: str) -> bool:
    return commits != (head,) and all(is_ancestor(parts.repository, commit, head) for commit in commits)


def _present(parts: Parts) -> dict[str, str]:
    """The items that there are, by name."""
    paths = (entry.path for entry in parts.tree.scan(CONTENT) if is_item(entry.path, parts.kinds))
    return {stem_of(path).casefold(): path for path in paths}


def _merges(parts: Parts, seen: str, head: str) -> list[str]:
    """The merges of two lines made since the last look, newest first; at the first look the newest commit alone."""
    known = [f"^{seen}", f"--max-count={_MOST}"] if seen else ["--no-walk"]
    with suppress(HistoryError):
        rows = parts.repository.git.run("rev-list", "--merges", "--parents", *known, head).decode().splitlines()
        return [row.split()[0] for row in rows if len(row.split()) == 3]
    return []


def _lost(parts: Parts, commit: str, present: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """The items that both parents of a merge have and nothing has now, as they should have come to be."""
    repository, join = parts.repository, TreeJoin(parts.repository, parts.codec, parts.kinds)
    with suppress(HistoryError, MergeRefused):
        ours, theirs = repository.commit_object(commit).parents
        sides = HistoryJoin(repository, join).sides(ours, theirs, merge_bases(repository, ours, theirs))
        missing = (join.names(sides[1]) & join.names(sides[2])) - present.keys()
        before, after = snapshots(repository, [ours, commit]) if missing else ({}, {})
        gone = (repository.below(path) for path in before if path not in after)
        kept = (repository.below(path) for path in after)
        missing &= join.names(filter(None, gone)) - join.names(filter(None, kept))
        own = [{path: side[path] for path in side if join.names([path]) & missing} for side in sides]
        for path, version in join.join(*own).versions.items():
            data = join.content(version)
            if data is not None:
                yield path, data


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenConflicts:
    """The conflicts that wait for a decision in one workspace.

    Attributes:
        open: files of which the person's index holds several versions.
        items: items that carry conflicts of a merge.
        documents: fields of documents of which one value was displaced.
        spooled: conflicts of a merge that goes on; they are decided about when it is over.
        others: how many files that are not memory are open in the person's index.
        situation: what goes on in the repository, by the file that says so (``MERGE_HEAD``, ...), "" for nothing.
    """

    open: tuple[Open, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    documents: tuple[DocumentClash, ...] = ()
    spooled: tuple[Record, ...] = ()
    others: int = 0
    situation: str = ""

    @property
    def count(self) -> int:
        """How many decisions wait: files, and fields."""
        fields = sum(len(item.conflicts) for item in self.items)
        return len(self.open) + fields + len(self.documents) + len(self.spooled)


class Resolver:
    """Lists and ends what merges could not decide in one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, states: Callable[[], States]) -> None:
        self._store = store
        self._parts = parts
        self._states = states
        self._merges = OpenMerges(parts)
        self._decisions = Decisions(store, parts)
        self._spool = MergeSpool(parts.repository.state)
        self._aside = KeptAside(store, parts)

    # -- looking --------------------------------------------------------------------------------------------------
    def waiting(self) -> OpenConflicts:
        """Everything that waits for a decision.

        Raises:
            GitFailed, HistoryUnavailable: git's files cannot be read.
        """
        with self._store.looking_once():
            return self._waiting()

    def _waiting(self) -> OpenConflicts:
        documents = self.documents()
        opened, others = self._merges.in_index()
        in_index = {path for one in opened for path in one.paths}
        return OpenConflicts(
            open=tuple(opened),
            items=tuple(item for item in self._decisions.waiting() if item.path not in in_index),
            documents=tuple(documents),
            spooled=self._spooled(),
            others=others,
            situation=situation(self._parts.repository),
        )

    def take_up(self) -> int:
        """Write down what merges of git's left behind, once those are over: conflicts, and lost edits; how many."""
        self._store.require_open()
        lost = bring_back(self._store, self._parts, self._spool)
        waits = any(can_be_recorded(record["document"]) for record in self._spool.waiting().values())
        return lost + (self._states().take_up_merges() if waits else 0)

    def documents(self) -> list[DocumentClash]:
        """Fields of documents of which one value was displaced: with a record in the tree, or kept aside."""
        self.take_up()
        recorded = self._states().clashes.list() if has_states(self._parts.seen) else []
        return [*recorded, *self._aside.waiting()]

    def _spooled(self) -> tuple[Record, ...]:
        """What waits until a merge is over, to be recorded or to be decided about."""
        going_on = bool(self._parts.repository.busy())
        waiting = self._spool.waiting().values()
        return tuple(record for record in waiting if going_on or can_be_recorded(record["document"]))

    # -- ending merges --------------------------------------------------------------------------------------------
    def finish(self, references: Sequence[str] = (), *, side: Side = "", dry_run: bool = False) -> list[MergeOutcome]:
        """Join what git left in several versions, by the same rules as the merge driver.

        A file that the person made an outcome of stays as they made it. The outcome goes into the file and into the
        person's index, as ``git add`` would put it; committing the merge is left to them.

        Args:
            references: ids or paths; none means every file.
            side: take that version whole instead; what the person made of the file is set aside.
            dry_run: tell, write nothing.

        Returns:
            One outcome for each file; those with ``undecided`` were left as they are.

        Raises:
            ItemNotFound: nothing is open under one of the names.
            Conflict: a file changed at this very moment. What came before it is finished.
            GitBusy: somebody holds the index; repeat it.
            StorageIO.
        """
        opened, _ = self._merges.in_index()
        chosen = list(dict.fromkeys(self._chosen(opened, references)))
        outcomes = _in_pairs([self._merges.outcome(one, side) for one in chosen])
        ready = [one for one in outcomes if not one.undecided]
        if not dry_run:
            self._end_merges(ready)
            self.take_up()
        return outcomes

    def _chosen(self, opened: Sequence[Open], references: Sequence[str]) -> Iterator[Open]:
        if not references:
            yield from opened
        for reference in references:
            found = [one for one in opened if any(_means(reference, path) for path in one.paths)]
            if not found:
                decide = f"'memfs team conflicts resolve {reference}"
                hint = f"{decide} --keep kept' (or lost) decides a field, {decide} OTHER --keep ID' which memory holds"
                raise ItemNotFound(f"no merge left {reference!r} open", hint=hint)
            yield from found

    def _end_merges(self, outcomes: Sequence[MergeOutcome]) -> None:
        """The journal takes no part: what the file holds follows from what the index has, the commit is theirs."""
        if not outcomes:
            return
        repository = self._parts.repository
        for one in outcomes:
            keep_conflicts(self._spool, one)
        with self._parts.lock.hold("resolve"):
            end_merges(self._parts.tree, repository, outcomes)
        settle(self._spool, {stem_of(path).casefold() for path in paths_of(outcomes)})
        self._store.refresh(paths_of(outcomes))

    # -- deciding -------------------------------------------------------------------------------------------------
    def decide(
        self, reference: str, ruling: DecisionRule, *, source: str = "", dry_run: bool = False
    ) -> DecisionResult | DocumentClash:
        """Settle the conflicts of an item or document, or the one of a state document's record.

        Args:
            reference: an item, by id or path; the path of a record; or that of a document outside of iterations.
            ruling: of a record only ``take`` counts.

        Raises:
            ItemNotFound, QueryInvalid, Conflict, ContentError, StorageIO: nothing was written.
        """
        if is_record(reference):
            clashes = self._states().clashes
            if dry_run:
                found = next((one for one in clashes.list() if one.path == reference), None)
                if found is None:
                    raise ItemNotFound(
                        f"there is no record {reference!r}", hint="'memfs team conflicts' lists what waits"
                    )
                return found
            return clashes.resolve(reference, keep=LOST if ruling.take else KEPT, source=source)
        if schema_of(path_of(reference)):
            decided = self._aside.decide(reference, ruling, source=source, dry_run=dry_run)
            if decided is not None:
                return decided
        return self._decisions.decide(reference, ruling, source=source, dry_run=dry_run)


def _in_pairs(outcomes: Sequence[MergeOutcome]) -> list[MergeOutcome]:
    """With what has to end together left together: git knows the one of two items only by the other's entry."""
    left = {one.open.path for one in outcomes if one.undecided}
    return [
        replace(one, undecided=f"it ends together with {other}")
        if (other := next((path for path in one.open.beside if path in left), ""))
        else one
        for one in outcomes
    ]


def _means(reference: str, path: str) -> bool:
    """Whether a person's name for a file means this path: the path itself, or an item's id or its beginning."""
    if "/" in reference or reference.endswith(ITEM_SUFFIXES) or reference == path:
        return path_of(reference) == path
    return not schema_of(path) and stem_of(path).casefold().startswith(reference.casefold())
