"""Archive iterations, read their documents, verify archives and unpack them; do what the retention policy says is due.

A document is read from the frame of the payload that holds it; where the payload is missing or damaged, from history.
Originals go only once their archive is verified. Payloads are outside git, so that a clone reads from history. How
iterations grow is measured here, too.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain, groupby
from typing import TYPE_CHECKING

from memfs.admin import archive_file
from memfs.admin.prune import Cleaner
from memfs.config import RetentionPolicy, read_retention_policy
from memfs.dataclass import NamedTuple, dataclass, field, replace
from memfs.errors import ArchiveInvalid, Conflict, ContentError, HistoryError, IterationInvalid
from memfs.format.text import shortlist
from memfs.fs import io
from memfs.fs.archive import DigestStream, batches, digest_of, file_chunks
from memfs.fs.tree import ScanEntry, View
from memfs.git.repository import at_a_tip
from memfs.model import Problem, state_paths
from memfs.model.item import object_id
from memfs.model.state_facts import describe
from memfs.state.metrics import slope
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.store import Store, retry_on_conflict

if TYPE_CHECKING:
    from memfs.state.reader import StateReader

_MOST_INDEXES = 4
_MOST_ARCHIVES = 10_000
_IN_MEMORY = 256 << 20

Place = tuple[archive_file.Archive, archive_file.ArchiveMember]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One archive and the iterations of its month.

    Attributes:
        name: the month in which its iterations were closed, with a number where that month has several.
        iterations: those it holds documents of, by number.
        unpacked: those of them that are back in the tree.
        created: when it was made.
        documents: how many documents it holds.
        bytes: what they weigh unpacked.
        packed: what the payload weighs.
        present: whether the payload is here; without it documents are read from history.
    """

    name: str
    iterations: tuple[int, ...]
    unpacked: tuple[int, ...]
    created: datetime
    documents: int
    bytes: int
    packed: int
    present: bool


class Archives:
    """The archived iterations of one workspace. May be used from several threads."""

    def __init__(self, parts: Parts, revision: View | None = None) -> None:
        """``revision``: the files to find archives in, in place of the present ones."""
        self._parts, self._revision = parts, revision
        self._decoded = lru_cache(_MOST_INDEXES)(self._decode)
        self._numbers = lru_cache(_MOST_ARCHIVES)(lambda name, _stamp: tuple(self.index(name).closed))

    # -- which there are ------------------------------------------------------------------------------------------
    def stamp(self) -> Mapping[str, str]:
        """By archive a text that changes when its index does: a caller that keeps rows of it need not read it again."""
        found = {}
        for entry in self._seen.scan(state_paths.ARCHIVE):
            name = entry.path.removeprefix(f"{state_paths.ARCHIVE}/").removesuffix(archive_file.INDEX_SUFFIX)
            if entry.regular and entry.path.endswith(archive_file.INDEX_SUFFIX) and archive_file.is_name(name):
                found[name] = f"{entry.size}-{entry.mtime_ns}-{entry.ctime_ns}-{entry.inode}"
        return dict(sorted(found.items(), key=lambda row: order(row[0])))

    def periods(self) -> Sequence[Period]:
        """The archives, oldest first.

        Raises:
            ArchiveInvalid: an index is damaged.
        """
        found = [self.archive(name) for name in self.stamp()]
        return [
            Period(
                name=one.index.name,
                iterations=tuple(sorted(one.index.closed)),
                unpacked=tuple(sorted(one.index.unpacked)),
                created=one.index.created,
                documents=len(one.index.members),
                bytes=one.index.raw,
                packed=one.index.bytes,
                present=one.present,
            )
            for one in found
        ]

    def iterations(self) -> Mapping[int, tuple[str, ...]]:
        """The iterations that archives hold, each with the names of its archives, newest first.

        An archive whose index is damaged is left out: ``verify`` says what is wrong with it.
        """
        found: dict[int, tuple[str, ...]] = {}
        for name, stamp in self.stamp().items():
            with suppress(ArchiveInvalid, FileNotFoundError):
                for number in self._numbers(name, stamp):
                    found[number] = (name, *found.get(number, ()))
        return found

    def index(self, name: str) -> archive_file.ArchiveIndex:
        """An archive's index.

        Raises:
            FileNotFoundError: there is no such archive.
            ArchiveInvalid: it is damaged.
        """
        return self.archive(name).index

    def archive(self, name: str) -> archive_file.Archive:
        """An archive; its index is read again only when its file changed.

        Raises:
            FileNotFoundError, ArchiveInvalid: see ``index``.
        """
        self._parts.require_open()
        path = archive_file.index_path(name)
        entry = self._seen.entry(path) if archive_file.is_name(name) else None
        if entry is None:
            raise FileNotFoundError(path)
        return self._decoded(entry)

    def _decode(self, entry: ScanEntry) -> archive_file.Archive:
        return archive_file.Archive(
            self._parts.tree,
            archive_file.decode(self._seen.read(entry.path, archive_file.INDEX_LIMIT).data, entry.path),
        )

    def find(self, path: str) -> Place | None:
        """The newest archive that holds a document, and where in it; None where none does."""
        self._parts.require_open()
        number = state_paths.iteration_of(path)
        for name in self.iterations().get(number, ()) if number is not None else ():
            archive = self.archive(name)
            if path in archive.by_path:
                return archive, archive.by_path[path]
        return None

    def period_of(self, path: str) -> str:
        """The name of the archive that holds a document, "" where none does."""
        found = self.find(path)
        return found[0].index.name if found else ""

    def of_iteration(self, number: int) -> dict[str, Place]:
        """What archives hold of an iteration, by path; of several versions the newest."""
        found: dict[str, Place] = {}
        for name in reversed(self.iterations().get(number, ())):
            archive = self.archive(name)
            found |= {
                path: (archive, one)
                for path, one in archive.by_path.items()
                if state_paths.iteration_of(path) == number
            }
        return found

    # -- reading --------------------------------------------------------------------------------------------------
    def read(self, path: str) -> bytes:
        """The bytes of an archived document, verified.

        Raises:
            FileNotFoundError: no archive holds it.
            ArchiveInvalid: one does, but neither its payload nor history gives the bytes.
        """
        found = self.find(path)
        if found is None:
            for name in self.stamp():
                self.index(name)  # one that is damaged may have held it, and says so
            raise FileNotFoundError(path)
        return self.content(*found)

    def content(self, archive: archive_file.Archive, member: archive_file.ArchiveMember) -> bytes:
        """A document's bytes, from the payload or from history.

        Raises:
            ArchiveInvalid: neither gives them.
        """
        if member.bytes > _IN_MEMORY:
            raise ArchiveInvalid("too large to be read at once", path=member.path, hint="memfs admin archive unpack")
        try:
            return b"".join(archive.chunks(member))
        except ArchiveInvalid as error:
            return self._from_history(member, error)

    def _from_history(self, member: archive_file.ArchiveMember, error: ArchiveInvalid) -> bytes:
        """The document's bytes by the name that git has for them."""
        why = error.message
        try:
            data = self._parts.repository.blob(member.blob) if member.blob else b""
        except HistoryError as refused:
            why, data = f"{why}; in history: {refused.message}", b""
        if hashlib.sha256(data).hexdigest() == member.sha256:
            return data
        raise ArchiveInvalid(why, path=member.path, hint=archive_file.MISSING)

    # -- proof --------------------------------------------------------------------------------------------------
    def problems(self, *, deep: bool = True) -> Iterator[Problem]:
        """What is wrong with the indexes; ``deep``: and with payloads, each read whole, and what would be lost."""
        for name in self.stamp():
            try:
                archive = self.archive(name)
            except ArchiveInvalid as error:
                yield Problem.of(error, archive_file.index_path(name))
                continue
            wrong = archive.verify() if deep and archive.present else {}
            asked = [one for one in archive.index.members if one.path in wrong or not archive.present] if deep else []
            lost = [one.path for one in asked if not self._in_history(one)]
            if wrong or lost:
                kept = f"lost: {shortlist(lost)}" if lost else "history has every document"
                reasons = [f"{path} {reason}".strip() for path, reason in list(wrong.items())[:3]] or ["it is not here"]
                payload = archive_file.payload_path(name)
                yield Problem.of(archive_file.damaged(f"{'; '.join(reasons)}; {kept}", payload), payload)

    def _in_history(self, member: archive_file.ArchiveMember) -> bool:
        with suppress(ArchiveInvalid):
            self._from_history(member, ArchiveInvalid(""))
            return True
        return False

    @property
    def _seen(self) -> View:
        return self._revision or self._parts.seen


def order(name: str) -> tuple[str, int]:
    """What sorts archives by month, and those of one month as they were made."""
    month, _, turn = name.partition("_")
    return month, int(turn or 1)


SOURCE = "archive"
_BATCH_BYTES = 32 << 20
_BATCH_FILES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackResult:
    """What unpacking brought back.

    Attributes:
        iteration: its number.
        documents: how many files came back.
        bytes: what they weigh.
        kept: documents that were in the tree already and stay as they are.
    """

    iteration: int
    documents: int
    bytes: int
    kept: tuple[str, ...] = ()


def _in_commits(members: Iterable[archive_file.ArchiveMember]) -> Iterator[list[archive_file.ArchiveMember]]:
    """Documents in batches that memory and a commit can take."""
    return batches(members, lambda member: member.bytes, _BATCH_BYTES, _BATCH_FILES)


def iterations_text(numbers: Iterable[int]) -> str:
    """Iterations as a sentence has them: ``iterations 1, 2, 7``."""
    found = sorted(numbers)
    return f"iteration{'s' if len(found) > 1 else ''} {shortlist(map(str, found))}" if found else ""


_MOST_BYTES = 1 << 30
_MOST_DOCUMENTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveResult:
    """What archiving did, or would do.

    Attributes:
        iterations: those that were due.
        archives: the archives that were made.
        documents: how many documents went into them.
        bytes: what that weighed in the tree.
        packed: what it weighs now.
        removed: how many documents left the tree.
        left: documents that stay in the tree, with the reason: invalid, or changed meanwhile.
        reason: why nothing was archived, or the originals stay until the next time; "" where nothing stood in the way.
    """

    iterations: tuple[int, ...] = ()
    archives: tuple[str, ...] = ()
    documents: int = 0
    bytes: int = 0
    packed: int = 0
    removed: int = 0
    left: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


class _Original(NamedTuple):
    """A file of an iteration that is to be archived; ``closed`` says when the iteration was."""

    path: str
    size: int
    closed: datetime


_EVERY = 3600.0
_GATHERING = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is due: closed iterations with the moment of their closing, and archives to be deleted, by name."""

    iterations: Mapping[int, datetime]
    archives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionResult:
    """What obeying the retention policy did, or would do.

    Attributes:
        archived: what went into archives.
        deleted: the archives that were deleted.
    """

    archived: ArchiveResult
    deleted: tuple[str, ...] = ()


class Archiver:
    """Packs and unpacks iterations of one workspace, as its retention policy says; one process at a time."""

    def __init__(self, store: Store, reader: StateReader, archives: Archives) -> None:
        self._store, self._reader, self._archives = store, reader, archives
        self._parts = parts = reader.parts
        self._at_work = False
        self._looked = -_EVERY
        self._lock = archive_file.archive_lock(parts)

    @contextmanager
    def _working(self, purpose: str) -> Iterator[None]:
        with self._lock.hold(purpose, timeout=10):
            self._at_work = True  # what it writes may raise occasions that want the same
            try:
                yield
            finally:
                self._at_work = False

    # -- into the archive -----------------------------------------------------------------------------------------
    def archive(self, closed: Mapping[int, datetime], level: int) -> ArchiveResult:
        """Archive iterations; on return each document is durable in an archive that was read back.

        Args:
            closed: the iterations, each with the moment when it was closed.
            level: zstd's, 1 (quick) to 19 (small).

        Raises:
            LockTimeout: another process is archiving.
            StorageIO, HistoryError, ArchiveInvalid: the originals are all still there.
        """
        with self._working("archive"):
            with self._parts.lock.hold("archive"):  # what killed processes left
                self._parts.tree.sweep(state_paths.ARCHIVE)
            flushed = self._store.flush(adopt=False)
            reason = self._parts.repository.busy() or (flushed.reason if flushed.waiting else "")
            if reason:
                return ArchiveResult(iterations=tuple(sorted(closed)), reason=reason)
            made, left = list[archive_file.ArchiveIndex](), dict[str, str]()
            # what goes into one archive each: files of one month, in order, up to a size
            files = groupby(self._originals(closed), key=lambda one: f"{one.closed:%Y-%m}")
            parts = (batches(some, lambda one: one.size, _MOST_BYTES, _MOST_DOCUMENTS) for _, some in files)
            for group in chain.from_iterable(parts):
                name = self._free_name(f"{group[0].closed:%Y-%m}")
                index = self._payload(name, group, level, left)
                if index.members:
                    plans = self._store.plan_restore({archive_file.index_path(name): archive_file.encode(index)})
                    message = f"Archive {iterations_text(index.closed)} as {name}"
                    self._store.carry_out(plans, message, source=SOURCE)
                    self._parts.quota_guard.filled(archive_file.payload_path(name), index.bytes)
                    made.append(index)
            certain = [member for index in made for member in index.members]
            flushed = self._store.flush(adopt=False)
            removed = 0 if flushed.waiting else self._remove(certain, left)
            if removed:
                self._store.flush(adopt=False)
        return ArchiveResult(
            iterations=tuple(sorted(closed)),
            archives=tuple(index.name for index in made),
            documents=sum(len(index.members) for index in made),
            bytes=sum(index.raw for index in made),
            packed=sum(index.bytes for index in made),
            removed=removed,
            left=left,
            reason=flushed.reason if flushed.waiting else "",
        )

    def _free_name(self, month: str) -> str:
        """The next name of a month, after all there are: the newest archive of a document counts."""
        turns = [turn for name in self._archives.stamp() for of, turn in [order(name)] if of == month]
        turn = max(turns, default=0) + 1
        while True:
            name = f"{month}_{turn}" if turn > 1 else month
            there = self._parts.tree.entry(archive_file.payload_path(name)) is not None
            if not (there and at_a_tip(self._parts.repository, archive_file.index_path(name))):
                return name
            turn += 1  # its payload is still needed on another branch, which has the index

    # -- payloads ---------------------------------------------------------------------------------------------------
    def _originals(self, closed: Mapping[int, datetime]) -> list[_Original]:
        """The files of closed iterations: documents and their sidecars; what else a person keeps there stays."""
        found = []
        for number, moment in sorted(closed.items(), key=lambda row: (f"{row[1]:%Y-%m}", row[0])):
            rows = sorted(self._parts.seen.scan(state_paths.iteration_folder(number)))
            found += [
                _Original(row.path, row.size, moment)
                for row in rows
                if row.regular and (state_paths.document_kind(row.path) or state_paths.document_of_sidecar(row.path))
            ]
        return found

    def _payload(
        self, name: str, group: Sequence[_Original], level: int, left: dict[str, str]
    ) -> archive_file.ArchiveIndex:
        """Write a payload and read it back; return what says where in it everything is.

        Raises:
            ArchiveInvalid: it does not read back as it was written.
        """
        tree, path = self._parts.tree, archive_file.payload_path(name)
        packer = archive_file.ArchivePacker(level)
        payload = DigestStream(packer.payload(self._readable(group, left)))
        tree.write_stream(path, payload)
        packed = {state_paths.iteration_of(member.path) for member in packer.members}
        moments = {number: one.closed for one in group if (number := state_paths.iteration_of(one.path)) in packed}
        size, sha256 = payload.digest
        index = archive_file.ArchiveIndex(
            name=name,
            created=self._parts.clock(),
            closed={number: moment for number, moment in moments.items() if number is not None},
            bytes=size,
            sha256=sha256,
            frames=tuple(packer.frames),
            members=tuple(packer.members),
        )
        wrong = archive_file.Archive(tree, index).verify()
        if wrong or not index.members:
            tree.remove(path)
        if wrong:
            raise archive_file.damaged(f"{next(iter(wrong.items()))} right after it was written", path)
        return index

    def _readable(self, group: Sequence[_Original], left: dict[str, str]) -> Iterator[archive_file.ArchiveInput]:
        """The files that can be archived as they are; the others are added to ``left``."""
        for file in group:
            try:
                if state_paths.document_kind(file.path):
                    state = self._reader.files.read(file.path, whole=False)
                    if state.problem:  # it stays where it is, for its good version is found by its place
                        raise ContentError(state.problem, path=file.path)
                    data = self._parts.seen.read(file.path, READ_LIMIT).data
                    if hashlib.sha256(data).hexdigest() != state.sha256:
                        raise Conflict("the document changed while it was archived", path=file.path)
                    facts = describe(file.path, state.values).to_dict()  # its row for the index of states
                    yield archive_file.ArchiveInput(file.path, len(data), [data], object_id("blob", data), facts)
                elif (entry := self._parts.tree.entry(file.path)) is not None:
                    yield archive_file.ArchiveInput(file.path, entry.size, file_chunks(self._parts.tree, file.path))
            except FileNotFoundError:
                continue
            except (ContentError, Conflict) as error:
                left[file.path] = error.message

    # -- out of the tree ------------------------------------------------------------------------------------------
    def _remove(self, members: Sequence[archive_file.ArchiveMember], left: dict[str, str]) -> int:
        """Take originals out of the tree, each only where its archive holds these very bytes."""
        removed, tree = 0, self._parts.tree
        for part in _in_commits(member for member in members if state_paths.document_kind(member.path)):
            names = iterations_text(
                {number for one in part if (number := state_paths.iteration_of(one.path)) is not None}
            )
            removed += self._remove_batch(part, f"Take {names} out of the tree; the archive has them", left)
        for member in members:
            if (
                not state_paths.document_kind(member.path)
                and digest_of(file_chunks(tree, member.path)) == member.digest
            ):
                tree.remove(member.path)
                removed += 1
        for number in sorted({number for one in members if (number := state_paths.iteration_of(one.path)) is not None}):
            io.remove_empty(tree.root / state_paths.iteration_folder(number))
        return removed

    def _remove_batch(self, members: Sequence[archive_file.ArchiveMember], message: str, left: dict[str, str]) -> int:
        archived = {member.path: member.sha256 for member in members}

        def removed() -> int:
            there = self._store.plan_restore({member.path: None for member in members})
            same = [plan._replace(expected=plan.old_sha) for plan in there if plan.old_sha == archived[plan.path]]
            changed = {plan.path for plan in there} - {plan.path for plan in same}
            left.update(dict.fromkeys(changed, "it changed after it was archived"))
            if same:
                self._store.carry_out(same, message, source=SOURCE)
            return len(same)

        return retry_on_conflict(removed)

    # -- back, and for good --------------------------------------------------------------------------------------------
    def unpack(self, iteration: int) -> UnpackResult:
        """Bring an archived iteration back into the tree; the archive stays, and what is in the tree stays as it is.

        Raises:
            IterationInvalid: no archive holds it.
            ArchiveInvalid: a document of it cannot be given back; what came before it is in the tree.
            LockTimeout: another process is archiving.
        """
        with self._working("unpack"):
            places = self._archives.of_iteration(iteration)
            if not places:
                known = iterations_text(self._archives.iterations()) or "none"
                raise IterationInvalid(f"no archive holds iteration {iteration}", hint=f"archived are: {known}")
            marked: dict[str, bytes | None] = {}
            for name in self._archives.iterations().get(iteration, ()):
                index = self._archives.index(name)
                unpacked = {**index.unpacked, iteration: self._parts.clock()}
                marked[archive_file.index_path(name)] = archive_file.encode(replace(index, unpacked=unpacked))
            # noted in the indexes before any document is back, so that none is archived again
            self._store.carry_out(self._store.plan_restore(marked), f"Unpack iteration {iteration}", source=SOURCE)
            kept = tuple(path for path in places if self._parts.seen.entry(path) is not None)
            missing = {path: place for path, place in places.items() if path not in kept}
            for archive, member in missing.values():
                if not state_paths.document_kind(member.path):
                    self._parts.tree.write_stream(member.path, archive.chunks(member))
            for part in _in_commits(member for _, member in missing.values() if state_paths.document_kind(member.path)):
                plans = self._store.plan_restore({one.path: self._archives.content(*missing[one.path]) for one in part})
                made = [plan for plan in plans if plan.before is None]
                self._store.carry_out(made, f"Unpack iteration {iteration}", source=SOURCE)
            self._store.flush(adopt=False)
        size = sum(member.bytes for _, member in missing.values())
        return UnpackResult(iteration=iteration, documents=len(missing), bytes=size, kept=kept)

    def delete(self, name: str, reason: str) -> None:
        """Remove an archive; history keeps what it had of the documents.

        Raises:
            FileNotFoundError: there is no such archive.
        """
        with self._working("delete"):
            plans = self._store.plan_restore({archive_file.index_path(name): None})
            if not plans:
                raise FileNotFoundError(archive_file.index_path(name))
            self._store.carry_out(plans, f"Delete the archive {name}: {reason}", source=SOURCE)
            self._store.flush(adopt=False)
            entry = self._parts.tree.entry(archive_file.payload_path(name))
            self._parts.tree.remove(archive_file.payload_path(name))
            self._parts.quota_guard.filled(archive_file.payload_path(name), -entry.size if entry else 0)

    # -- as the policy says ---------------------------------------------------------------------------------------
    def policy(self) -> RetentionPolicy:
        """What the file says now; the defaults where there is none.

        Raises:
            ContentError: it is invalid: nothing is due until it is right.
        """
        return read_retention_policy(self._parts.seen, self._parts.codec)

    def due(self, now: datetime | None = None, *, active_days: float | None = None) -> Due:
        """What is due at a moment. An iteration that was unpacked is due again when it was back for as long.

        Args:
            now: None for the present.
            active_days: in place of the policy's.

        Raises:
            ContentError: the policy is invalid.
        """
        policy = self.policy()
        moment = now or self._parts.clock()
        before = moment - timedelta(days=policy.active_days if active_days is None else active_days)
        iterations = {}
        for number, closed in self.closed().items():
            names = self._archives.iterations().get(number, ())
            unpacked = [self._archives.index(name).unpacked.get(number, closed) for name in names]
            if max([closed, *unpacked]) <= before:
                iterations[number] = closed
        old = []
        for name in self._archives.stamp() if policy.delete_days else ():
            with suppress(ArchiveInvalid, FileNotFoundError):
                if self._archives.index(name).created <= moment - timedelta(days=policy.delete_days):
                    old.append(name)
        return Due(iterations=iterations, archives=tuple(old))

    def run(self, dry_run: bool = False, *, active_days: float | None = None) -> RetentionResult:
        """Archive what is due, and delete the archives that the policy no longer wants.

        Args:
            dry_run: only say what would be done.
            active_days: in place of the policy's.

        Raises:
            ContentError, LockTimeout, StorageIO, HistoryError: what was not archived is where it was.
        """
        due = self.due(active_days=active_days)
        if dry_run:
            files = self._originals(due.iterations)
            weight, numbers = sum(one.size for one in files), tuple(sorted(due.iterations))
            planned = ArchiveResult(iterations=numbers, documents=len(files), bytes=weight)
            return RetentionResult(archived=planned, deleted=due.archives)
        archived = ArchiveResult()
        if due.iterations:
            archived = self.archive(due.iterations, self.policy().level)
        for name in due.archives:
            self.delete(name, f"older than {self.policy().delete_days} days, as the retention policy says")
        return RetentionResult(archived=archived, deleted=due.archives)

    def keep_up(self) -> RetentionResult | None:
        """Do what is due, where the policy wants that by itself; looked at once an hour. None where nothing was.

        What is due within a day goes into one archive: one for each iteration would soon be thousands.
        """
        self._parts.require_open()
        now = self._parts.clock().timestamp()
        if 0 <= now - self._looked < _EVERY or not (self._parts.tree.root / state_paths.ITERATIONS).is_dir():
            return None
        self._looked = now
        if self._at_work or not self.policy().automatic:
            return None
        due, names, lately = self.due(), list(self._archives.stamp()), False
        with suppress(ArchiveInvalid, FileNotFoundError):
            if names:
                age = self._parts.clock() - self._archives.index(names[-1]).created
                lately = timedelta() <= age < _GATHERING
        return self.run() if due.archives or (due.iterations and not lately) else None

    def clean(self, _: Cleaner) -> int:
        """Archive what is due, where the policy wants that by itself; returns how many bytes that made free."""
        if self._at_work or not self.policy().automatic or not self.due().iterations:
            return 0
        done = self.run().archived
        if done.reason:
            raise Conflict(done.reason)
        return max(0, done.bytes - done.packed)

    def closed(self) -> dict[int, datetime]:
        """The closed iterations that have files in the tree, each with the moment of its closing."""
        self._parts.require_open()
        root = self._parts.tree.root
        there = [row.number for row in self._reader.iterations() if row.status == "closed"]
        there = [number for number in there if (root / state_paths.iteration_folder(number)).is_dir()]
        self._reader.looking.refresh(map(state_paths.system_state_path, there))  # an edit in place need not show yet
        rows = [row for row in self._reader.index.iterations() if row.status == "closed" and row.number in there]
        closed = {row.number: row.closed or row.opened for row in rows}
        return {number: moment for number, moment in closed.items() if moment is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationUse:
    """What one iteration weighs.

    Attributes:
        number: its number.
        documents: how many documents it has.
        bytes: what they weigh, as they are or were in the tree.
        archived: how many bytes of that are in an archive.
    """

    number: int
    documents: int
    bytes: int
    archived: int


def growth_of(parts: Parts, archives: Archives) -> tuple[tuple[IterationUse, ...], float]:
    """What every iteration weighs, by number; and by how many bytes each is larger than the one before, by the line
    that fits best: near 0 where growth is linear.
    """
    live: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for entry in parts.seen.scan(state_paths.ITERATIONS):
        number = state_paths.iteration_of(entry.path)
        if number is not None and entry.regular:
            live[number][entry.path] = entry.size
    rows = []
    for number in sorted({*live, *archives.iterations()}):
        sizes = live[number]
        packed = [one.bytes for path, (_, one) in archives.of_iteration(number).items() if path not in sizes]
        documents, size = len(sizes) + len(packed), sum(sizes.values()) + sum(packed)
        rows.append(IterationUse(number=number, documents=documents, bytes=size, archived=sum(packed)))
    return tuple(rows), slope([(float(row.number), float(row.bytes)) for row in rows])
