"""Read and write the state documents of a multi-agent system, notice which changed, and find those of archived
iterations, too.

A document is checked before it is written and after it was read, several are written as one, and a reader gets the last
good version where a document cannot be read as it is. Also the contexts: the circumstances of a session or a workflow,
as keys and values in ``ContextMemory/context/<name>.yaml``.

The index follows the files: before each query the folders of open iterations and the documents in which commits differ,
and once a minute everything. What is returned is what the document's file says now, or its archive once it left the
tree: an index row that its file contradicts is read again, and the query repeated.
"""

from __future__ import annotations

import json
import marshal
import math
import os
import re
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from memfs import errors
from memfs.config import SystemConfig, read_system_config
from memfs.dataclass import dataclass, field, replace
from memfs.format import json_text
from memfs.format.codec import CONTEXTS, schema_of
from memfs.format.plain import plain
from memfs.format.text import shortlist
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.fs.executor import Deadline
from memfs.fs.lock import reset_on_fork
from memfs.fs.tree import ScanEntry, View, blob_id, refuse_rot
from memfs.git.log import changed_paths
from memfs.model import Stamp
from memfs.model.ids import check_id
from memfs.model.state_facts import Iteration, StateFacts, StateQuery, StateRow, describe
from memfs.model.state_paths import ITERATIONS, STATE_FOLDERS, document_kind, iteration_folder, iteration_of
from memfs.search.state_index import Folder, RowSet, StateIndex
from memfs.store import sidecars
from memfs.store.parts import ITEM_SUFFIXES, READ_LIMIT, FlushResult, Parts
from memfs.store.plan import FilePlan
from memfs.store.store import Store, retry_on_conflict

if TYPE_CHECKING:
    from memfs.state.archives import Archives

UNREADABLE = (errors.ContentError, errors.CorruptRecord, FileNotFoundError)
"""What a reader of several documents passes over: 'memfs check' names it."""
_MOST_KEPT = 1_000
_LARGEST_KEPT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A document as it was read, or written.

    Attributes:
        values: by field; those in sidecars included.
        sha256, bytes, stamp: of the file as it is now; None for the stamp of one that only an archive has.
        problem: what is wrong with the file; "" where nothing is. The values are then those of its last good version.
        durability: ``file``, or ``fallback`` where what was written is held by the secondary location.
    """

    path: str
    values: dict[str, Any]
    sha256: str
    bytes: int
    stamp: Stamp | None
    problem: str = ""
    durability: str = "file"


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document to be written whole, or removed where ``values`` is None.

    ``expected`` is the sha256 the caller last read, "" for a document that must not be there yet; None replaces
    whatever is there.
    """

    path: str
    values: Mapping[str, Any] | None
    expected: str | None = None


class StateFiles:
    """The state documents of one workspace, or of one of its revisions. May be used from several threads.

    Attributes:
        revision: the files that are read in place of the present ones, None for these.
        parsed: gives what bytes hold; of those asked for lately, without parsing them again.
    """

    def __init__(self, store: Store, parts: Parts, index: StateIndex, revision: View | None = None) -> None:
        """
        Args:
            index: what is known of the documents of iterations; it learns what is written.
            revision: see above.
        """
        self._store, self._parts, self._index = store, parts, index
        self.revision = revision
        # as bytes, so that a change to what was handed out does not change what is kept
        self.parsed = lru_cache(_MOST_KEPT)(lambda path, data: marshal.dumps(self._parsed(path, data)))

    @property
    def seen(self) -> View:
        """The files that are read."""
        return self.revision or self._parts.seen

    # -- reading ------------------------------------------------------------------------------------------------
    def read(self, path: str, *, whole: bool = True, known: Stamp | None = None, once: bool = False) -> State:
        """A document as its file has it now; its last good version while the file is invalid.

        Args:
            path: below the workspace.
            whole: fill in the values that are in sidecars; without, their references are in their place.
            known: the stamp under which the caller knows the file, by which damage is distinguished from an edit.
            once: nobody reads it again soon: what it holds is not kept in memory.

        Raises:
            FileNotFoundError: there is no such document.
            CorruptItem: the disk changed bytes that no one wrote, here or in a sidecar.
            ContentError: the file is invalid and history has no good version; or a sidecar is not here.
        """
        content = self.seen.read(path, READ_LIMIT)
        if known is None and iteration_of(path) is not None:
            with suppress(errors.IndexUnavailable):
                known = self._index.stamp(path)
        refuse_rot(path, known, content, self.seen.root)
        data, problem = content.data, ""
        try:
            values = self._parsed(path, data) if once else self._decoded(path, data)
        except errors.ContentError as error:
            data, values = self._last_good(path, error)
            problem = str(error)
        if whole and sidecars.holds_reference(data):
            values = sidecars.fill(values, path, sidecars.reader_of(self._parts))
        return State(
            path=path,
            values=values,
            sha256=sha256(content.data),
            bytes=len(content.data),
            stamp=content.stamp,
            problem=problem,
        )

    def find(self, path: str) -> State | None:
        """As ``read``; None where there is no such document."""
        with suppress(FileNotFoundError):
            return self.read(path)
        return None

    def exists(self, path: str) -> bool:
        """Whether there is such a document."""
        entry = self.seen.entry(path)
        return entry is not None and entry.regular

    def first_free(self, path_of: Callable[[int], str]) -> int:
        """The first turn, from 1 on, whose path is free; found in steps that double, where thousands share a name."""
        low, high = 0, 1
        while self.exists(path_of(high)):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.exists(path_of(middle)) else (low, middle)
        return high

    def scan(self, folder: str) -> Iterator[ScanEntry]:
        """The facts about every document below a folder, in no particular order; nothing is read."""
        return (one for one in self.seen.scan(folder) if one.regular and document_kind(one.path))

    def revision_of(self, path: str) -> str:
        """A commit that holds the document as its file has it now; "" while it waits for its commit."""
        journal, repository = self._parts.journal, self._parts.repository
        journal.catch_up()
        if journal.latest(path) is not None:
            return ""
        try:
            data = self.seen.read(path, READ_LIMIT).data
            held = repository.head_blob(path) == blob_id(data)
            return (repository.head_commit() or "") if held else ""
        except (FileNotFoundError, errors.HistoryError):
            return ""

    # -- writing ------------------------------------------------------------------------------------------------
    def write(
        self,
        changes: Sequence[DocumentChange],
        message: str,
        *,
        source: str = "",
        critical: bool = False,
        alone: bool | None = None,
    ) -> list[State]:
        """Write documents, all or none: on return they survive kill -9 and power loss.

        A value too large for its document goes into a sidecar, durable before the document is written. A document that
        has these very values already stays as it is.

        Args:
            changes: each of another document.
            message: the sentence for the commit.
            source: which door it came through, for the commit's trailers.
            critical: write even where the area's quota is full.
            alone: as a commit of its own; by default, where there are several documents.

        Returns:
            What was written, in the order of ``changes``; nothing of what was removed.

        Raises:
            Conflict: a document is not what the caller expected, named by path; nothing was written.
            ContentError: values that their schema forbids, naming the dotted field; too large; as ``SecretDetected``,
                what looks like a secret. Nothing was written.
            PathEscape: the path is no document's.
            StorageIO: as ``QuotaExceeded`` too: nothing was written.
        """
        for path, times in Counter(change.path for change in changes).items():
            if times > 1:
                raise errors.Conflict("two changes of one document", path=path, hint="join them into one", lasting=True)
        documents = [(change.path, self._encoded(change, critical), change.expected) for change in changes]
        plans, stamps = self._store.put_documents(documents, message, source=source, critical=critical, alone=alone)
        values = {change.path: change.values for change in changes if change.values is not None}
        written = [self._written(plan, stamps.get(plan.path), plain(values[plan.path])) for plan in plans if plan.after]
        self._learn(written, [plan.path for plan in plans if plan.path not in values])
        return written

    def commit_now(self) -> FlushResult:
        """Commit what waits, without a person's edits; ``reason`` says what kept it from that.

        Where the person commits, state documents alone: those who keep state say of each whether it is to be committed.
        """
        return self._store.flush(adopt=False, below=STATE_FOLDERS)

    # -- internal: writing --------------------------------------------------------------------------------------
    def _encoded(self, change: DocumentChange, critical: bool) -> bytes | None:
        """A document's bytes; what they refer to is durable by then."""
        schema, codec = _schema(change.path), self._parts.codec
        if change.values is None:
            return None
        try:
            data = codec.write_document(change.values, change.path, schema)
            if sidecars.holds_reference(data):
                sidecars.refuse_reserved(plain(change.values))
            return data
        except errors.ItemTooLarge:
            values = plain(change.values)
        except errors.MemfsError as error:
            raise error.located(change.path) from None
        try:
            sidecars.refuse_reserved(values)
            reduced, taken = sidecars.spill(values, change.path, lambda d: not codec.schemas.check_document(d, schema))
        except errors.MemfsError as error:
            raise error.located(change.path) from None
        data = codec.write_document(reduced, change.path, schema)
        for content in taken:
            sidecars.keep(self._parts, content, critical)
        return data

    def _written(self, plan: FilePlan, stamp: Stamp | None, values: dict[str, Any]) -> State:
        path, data = plan.path, plan.after or b""
        stamp = stamp or self.seen.read(path, READ_LIMIT).stamp  # without one it was so already
        durability = self._parts.durability(path)
        return State(path=path, values=values, sha256=plan.new_sha, bytes=len(data), stamp=stamp, durability=durability)

    def _learn(self, written: Sequence[State], removed: Sequence[str]) -> None:
        """Let the index know. What cannot be noted now, the next look at the files finds."""
        rows = [
            StateRow(facts=describe(one.path, one.values), sha256=one.sha256, bytes=one.bytes, stamp=one.stamp)
            for one in written
            if iteration_of(one.path) is not None
        ]
        gone = [path for path in removed if iteration_of(path) is not None]
        with suppress(errors.IndexUnavailable):
            self._index.learn(rows)
            if gone:
                self._index.forget(gone)
                self._index.note(archives="{}")  # an archive may hold them

    # -- internal: reading --------------------------------------------------------------------------------------
    def _decoded(self, path: str, data: bytes) -> dict[str, Any]:
        if len(data) > _LARGEST_KEPT:
            return self._parsed(path, data)
        values: dict[str, Any] = marshal.loads(self.parsed(path, data))  # noqa: S302  made here, a line below
        return values

    def _parsed(self, path: str, data: bytes) -> dict[str, Any]:
        return self._parts.codec.read_document(data, path, _schema(path))

    def _last_good(self, path: str, error: errors.ContentError) -> tuple[bytes, dict[str, Any]]:
        """The newest version that is valid, of what waits for its commit and what is committed.

        Raises:
            ContentError: the given one, where there is none.
        """
        for data in self._versions(path):
            try:
                return data, self._decoded(path, data)
            except errors.ContentError:
                continue
        raise error

    def _versions(self, path: str) -> Iterator[bytes]:
        if self.revision is not None:
            return
        for operation in reversed(self._parts.journal.operations()):
            yield from (change.data for change in operation.changes if change.path == path and change.data is not None)
        committed = self._store.index_sync.last_good(path)
        if committed is not None:
            yield committed


def _schema(path: str) -> str:
    """The schema of the document that is there.

    Raises:
        PathEscape: none does.
    """
    schema = schema_of(path)
    if not schema:
        raise errors.PathEscape(
            "there is no document", path=path, hint="'memfs state export' shows where documents are"
        )
    return schema


DEFAULT = "session"
"""The context that is meant where none is named."""


class Contexts:
    """The named contexts of one workspace. May be used from several threads and processes."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store, self._parts = store, parts

    def read(self, name: str = DEFAULT) -> dict[str, Any]:
        """All keys of a context with their latest values; none where there is no such context.

        Raises:
            IdInvalid: the name could not be a file's.
            ContentError: its file is invalid at present.
        """
        return self._found(name)[2]

    def set(self, values: Mapping[str, Any], name: str = DEFAULT, *, source: str = "") -> dict[str, Any]:
        """Give keys new values and leave the others alone; durable on return.

        Args:
            values: by key; anything that YAML can hold.
            name: which context; it is made where there is none.
            source: which door it came through, for the commit's trailers.

        Returns:
            All keys as they are now.

        Raises:
            IdInvalid, ContentError (as ``SecretDetected`` too), StorageIO: nothing was changed.
        """
        if not isinstance(values, Mapping):
            raise errors.SchemaInvalid("expected keys and values", field="values", hint='write {"branch": "main"}')
        codec = self._parts.codec

        def attempt() -> dict[str, Any]:
            path, before, known = self._found(name)
            changed = {**known, **values}
            if before is None and not changed:
                return {}
            after = codec.write_document(changed, path, "context", before)
            # what is replaced was read just now, and stays but for the keys that change: an edit by hand is not lost
            expected = "" if before is None else sha256(before)
            message = f"Set {shortlist(map(str, values), 3)} of the context {name}"
            self._store.put_documents([(path, after, expected)], message, source=source, alone=True)
            return codec.read_document(after, path, "context")

        return retry_on_conflict(attempt)

    def _found(self, name: str) -> tuple[str, bytes | None, dict[str, Any]]:
        """The path of a context's file; its bytes and its keys where there is one."""
        paths = [f"{CONTEXTS}/{check_id(name)}{suffix}" for suffix in ITEM_SUFFIXES]
        for path in paths:
            with suppress(FileNotFoundError):
                data = self._parts.seen.read(path, READ_LIMIT).data
                return path, data, self._parts.codec.read_document(data, path, "context")
        return paths[0], None, {}


# -- noticing what changed ---------------------------------------------------------------------------------------------
_NEVER = Deadline(None)
_FINE_NS = 20_000_000
_COARSE_NS = 2_000_000_000
_AT_ONCE = 50
_MINUTE_NS = 60_000_000_000
_FEW = 5_000
_MOST_OPEN = 5
_DEEPEST = 8
_UNDECODED = re.compile("[\ud800-\udfff]")

FileFacts = tuple[int, int, int, int]
"""Size, time of change, time of change of the facts, inode."""
Known = Mapping[str, tuple[Stamp | None, str]]
"""By path: the stamp of a document's file, if it has one, and the archive that holds it."""


def settled(folder: Folder) -> bool:
    """Whether a folder was old enough when it was looked into that a later change shows in its times."""
    age = folder.checked - max(folder.mtime_ns, folder.ctime_ns)
    return age > (_FINE_NS if folder.mtime_ns % 1_000_000 else _COARSE_NS)


def vouched(stamp: Stamp | None, now: FileFacts) -> bool:
    """Whether size, times and inode still vouch for a content that was read.

    Where the disk counts time in milliseconds or coarser, a file may change twice within what it shows as one moment.
    """
    return stamp is not None and stamp[:4] == now and (stamp.mtime_ns % 1_000_000 != 0 or not stamp.racy)


class StateScan:
    """Keeps the index of state documents in step with the files. May be used from several threads."""

    def __init__(self, files: StateFiles, index: StateIndex, archives: Archives, parts: Parts) -> None:
        self._files, self._index, self._archives = files, index, archives
        self._parts = parts
        self._root = parts.tree.root
        self._turn = threading.RLock()
        reset_on_fork(self)
        self._everywhere_ns = 0

    def look(self, deadline: Deadline = _NEVER, *, everywhere: bool = False) -> bool:
        """Learn what changed since the last look, of any process; returns whether the time was enough.

        What was learned until then stays: the next look goes on from there.

        Args:
            everywhere: look at every file, as is done once a minute unless there are very many.
        """
        with self._turn:
            notes, head, began = self._index.notes(), self._parts.repository.head().commit or "", time.time_ns()
            due = began - max(int(notes.get("looked", "0")), self._everywhere_ns) >= _MINUTE_NS
            self._look_at_archives(notes)
            committed: list[str] = []
            if everywhere or "looked" not in notes or (due and self._index.count() <= _FEW):
                waiting = [ITERATIONS, *self._index.folders(ITERATIONS)]
            elif (found := self._between(notes.get("head", ""), head)) is None or due:
                waiting, committed = self._changed(self._index.folders(ITERATIONS)), found or []
            else:
                waiting, committed = self._changed(self._at_work()), found
            complete = self._refreshed(list(filter(self._differs, committed)), deadline) and self._walk(
                waiting, deadline
            )
            if complete and (due or everywhere):
                self._everywhere_ns = began
                self._index.note(looked=str(began), head=head)
            elif complete and head != notes.get("head", ""):
                self._index.note(head=head)
            if self._parts.secondary is not None:  # what waits there is in no folder of the tree
                held = self._parts.secondary.held()
                self.refresh(path for path in held if iteration_of(path) is not None and document_kind(path))
            self._index.mark_complete()
            return complete

    def refresh(self, paths: Iterable[str]) -> None:
        """Look at these documents, whatever their files' facts say."""
        rows, gone = [], []
        for path in paths:
            row = self._described(path)
            if row is None:
                gone.append(path)
            else:
                rows.append(row)
        self._index.learn(rows)
        self._drop(gone)

    # -- which folders ------------------------------------------------------------------------------------------------
    def _at_work(self) -> dict[str, Folder]:
        """The folders of the iterations at work: the newest, the last open ones, and the newest that was closed."""
        found = {ITERATIONS: _UNKNOWN, **self._index.folders(ITERATIONS, deep=False)}
        numbers = {*self._index.iterations_with("system_state", "open")[-_MOST_OPEN:], self._index.newest_iteration()}
        numbers.add(self._index.newest_iteration("closed"))
        for number in sorted(one for one in numbers if one is not None):
            found |= self._index.folders(iteration_folder(number))
        return found

    def _between(self, before: str, after: str) -> list[str] | None:
        """The documents in which two commits differ; None where that is unknown."""
        if before == after:
            return []
        if not (before and after):
            return None
        try:
            paths = changed_paths(self._parts.repository, before, after, ITERATIONS)
            return sorted(path for path in paths if _is_text(path) and document_kind(path))
        except errors.HistoryError:
            return None

    def _differs(self, path: str) -> bool:
        """Whether a document is not known as its file is: one that is edited in place does not show in its folder."""
        row, entry = self._index.row(path), self._parts.seen.entry(path)
        if entry is None:
            return row is not None and not row.archive
        return row is None or not vouched(row.stamp, entry[1:5])

    def _changed(self, folders: Mapping[str, Folder]) -> list[str]:
        """Those that are not, or may not be, as they were when they were looked into."""
        changed = []
        for path, before in folders.items():
            now = self._folder(path) or _UNKNOWN  # one that is gone and of which nothing is known is no news
            if now != before and (now[:3] != before[:3] or not settled(before)):
                changed.append(path)
        return changed

    # -- looking into them --------------------------------------------------------------------------------------------
    def _walk(self, waiting: list[str], deadline: Deadline) -> bool:
        """Look into folders, and into those inside that are new; learn what differs from what is known."""
        while waiting:
            if deadline.passed:
                return False
            folder = waiting.pop()
            now = self._folder(folder)
            if now is None:
                self._drop(path for path, (_, archive) in self._index.stamps(folder).items() if not archive)
                self._index.looked_into(folder, None)
                continue
            known = self._index.stamps(folder, deep=False)
            files, inside = self._listed(folder, known)
            differing = [path for path in sorted(files) if not vouched(known.get(path, _NOTHING)[0], files[path])]
            if not self._refreshed(differing, deadline):
                return False
            gone = [path for path, (_, archive) in known.items() if not archive and path not in files]
            self._drop(path for path in gone if self._parts.seen.entry(path) is None)
            self._index.looked_into(folder, now)
            waiting += sorted(set(inside) - self._index.known_folders(inside), reverse=True) if inside else []
        return True

    def _refreshed(self, paths: Sequence[str], deadline: Deadline) -> bool:
        """``refresh``, as far as there is time; whether there was."""
        for start in range(0, len(paths), _AT_ONCE):
            if deadline.passed:
                return False
            self.refresh(paths[start : start + _AT_ONCE])
        return True

    def _listed(self, folder: str, known: Known) -> tuple[dict[str, FileFacts], list[str]]:
        """A folder's documents with their facts, and the folders in it. No link is followed."""
        files: dict[str, FileFacts] = {}
        inside: list[str] = []
        with suppress(errors.MemfsError), io.operation("scan", folder), os.scandir(self._root / folder) as found:
            for entry in found:
                path = f"{folder}/{entry.name}"
                if entry.name.startswith(".") or not _is_text(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if path.count("/") < _DEEPEST and iteration_of(path) is not None:
                        inside.append(path)
                elif (path in known or document_kind(path)) and entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    files[path] = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
        return files, inside

    def _folder(self, path: str) -> Folder | None:
        """The facts about a folder, None where there is none."""
        try:
            found = os.stat(self._root / path, follow_symlinks=False)
        except OSError:
            return None
        if not stat.S_ISDIR(found.st_mode):
            return None
        return Folder(found.st_mtime_ns, found.st_ctime_ns, found.st_ino, time.time_ns())

    # -- archives -----------------------------------------------------------------------------------------------------
    def _look_at_archives(self, notes: Mapping[str, str]) -> None:
        """Learn the rows of archives that are new, and drop those of archives that are gone."""
        before: dict[str, str] = json.loads(notes.get("archives", "{}"))
        stamps = dict(self._archives.stamp())
        if stamps == before:
            return
        for name in before.keys() - stamps.keys():
            self.refresh(self._index.in_archive(name))
        for name in sorted(name for name, stamp in stamps.items() if before.get(name) != stamp):
            self._learn_archive(name)
        self._index.note(archives=json.dumps(stamps))

    def _learn_archive(self, name: str) -> None:
        rows = []
        with suppress(errors.CorruptRecord, FileNotFoundError):  # ``memfs check`` says what is wrong
            for member in self._archives.index(name).members:
                if member.facts and not self._files.exists(member.path):
                    facts = StateFacts.from_dict(member.facts)
                    rows.append(StateRow(facts=facts, sha256=member.sha256, bytes=member.bytes, archive=name))
        self._index.learn(rows)

    # -- documents ----------------------------------------------------------------------------------------------------
    def _described(self, path: str) -> StateRow | None:
        """What a document is about now, None where there is none."""
        try:
            state = self._files.read(path, whole=False, once=True)
        except (FileNotFoundError, errors.PathEscape, errors.NotRegularFile):
            return None
        except errors.CorruptItem:
            return self._index.row(path) or StateRow(facts=describe(path, {}))
        except errors.ContentError:
            return StateRow(facts=describe(path, {}))
        return StateRow(facts=describe(path, state.values), sha256=state.sha256, bytes=state.bytes, stamp=state.stamp)

    def _drop(self, paths: Iterable[str]) -> None:
        """Forget documents that are gone, but for those that an archive holds."""
        listed = list(paths)
        archived = bool(listed) and bool(self._archives.stamp())
        gone, rows = [], []
        for path in listed:
            row = self._index.row(path)
            name = self._archives.period_of(path) if row is not None and archived else ""
            if row is not None and name:
                rows.append(replace(row, stamp=None, archive=name))
            else:
                gone.append(path)
        self._index.learn(rows)
        self._index.forget(gone)


class RevisionScan(StateScan):
    """Learns the documents of a revision, once: nothing of it changes."""

    def look(self, _deadline: Deadline = _NEVER, *, everywhere: bool = False) -> bool:
        """Learn every document with the first call."""
        with self._turn:
            if everywhere or not self._everywhere_ns:
                found = (entry.path for entry in self._files.scan(ITERATIONS))
                self.refresh(path for path in found if iteration_of(path) is not None)
                for name in self._archives.stamp():
                    self._learn_archive(name)
                self._everywhere_ns = time.time_ns()
            return True


_UNKNOWN = Folder(0, 0, 0, 0)
_NOTHING = (None, "")


def _is_text(path: str) -> bool:
    """Whether a path can be written down; memfs gives no document another."""
    return path.isascii() or not _UNDECODED.search(path)


_TRIES = 4
_RECENT_SECONDS = 1.0
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class StateDocument:
    """A document that was found: what is known of it, and what it holds."""

    row: StateRow
    values: dict[str, Any]

    @property
    def facts(self) -> StateFacts:
        """What it is about."""
        return self.row.facts


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """What was found for a question.

    Attributes:
        documents: those that could be read in time, in the order of the question.
        unread: how many more there are, for which time was lacking.
        problems: by path, why a document cannot be read.
    """

    documents: tuple[StateDocument, ...] = ()
    unread: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)


class StateReader:
    """Reads state documents of one workspace, or of one of its revisions. May be used from several threads.

    Attributes:
        files, index: where documents are, and what is known of them.
        looking: learns what changed.
    """

    def __init__(
        self, files: StateFiles, index: StateIndex, archives: Archives, parts: Parts, looking: StateScan
    ) -> None:
        self.files, self.index, self.parts = files, index, parts
        self.looking, self._archives = looking, archives
        self._looked = -math.inf

    # -- asking -------------------------------------------------------------------------------------------------------
    def catch_up(self, deadline: Deadline = _NEVER) -> bool:
        """Learn what changed in the files since the last look; returns whether the time was enough."""
        self._looked = time.monotonic()
        return self.looking.look(deadline)

    def rows(self, question: StateQuery) -> list[StateRow]:
        """What is known of the documents that agree with a question, after looking at what changed."""
        return self._after_look(lambda: self.index.find(question))

    def _after_look(self, find: Callable[[], Found]) -> Found:
        """What is found after looking at what changed."""
        self.catch_up()
        return self._found(find)

    def _found(self, find: Callable[[], Found], deadline: Deadline = _NEVER) -> Found:
        """What is found; looked for again where the index was begun again since the last look."""
        try:
            return find()
        except errors.IndexUnavailable:
            self.catch_up(deadline)
            return find()

    def recent(self, question: StateQuery) -> list[StateRow]:
        """As ``rows``, but the last look may be a second old."""
        if time.monotonic() - self._looked <= _RECENT_SECONDS:
            with suppress(errors.IndexUnavailable):
                return self.index.find(question)
        return self.rows(question)

    def gather(self, question: StateQuery, deadline: Deadline = _NEVER) -> DocumentSet:
        """The documents that agree with a question, as many as there is time for. Does not look for changes first."""
        return self.answered(lambda: self.index.found(question), deadline)

    def answered(self, find: Callable[[], Collection[StateRow] | RowSet], deadline: Deadline = _NEVER) -> DocumentSet:
        """The documents of the rows that are found; found again where one of them was out of date."""
        found = DocumentSet()
        for _ in range(_TRIES):
            found, stale = self._documents(self._found(find, deadline), deadline)
            if not stale:
                break
        return found

    def iterations(self) -> list[Iteration]:
        """The iterations, by number, archived ones included."""
        return self._after_look(self.index.iterations)

    def system_config(self) -> SystemConfig:
        """``system_config`` as it is now; the defaults while it is invalid: 'memfs check' names it, agents go on."""
        try:
            return read_system_config(self.files.seen, self.parts.codec)
        except (errors.MemfsError, FileNotFoundError):
            return SystemConfig()

    def latest_iteration(self) -> int | None:
        """The newest iteration, open or closed; None where there is none."""
        return self._after_look(self.index.newest_iteration)

    def open_iteration(self) -> int | None:
        """The newest iteration that is open; None where there is none."""
        return self._after_look(lambda: self.index.newest_iteration("open"))

    # -- loading ------------------------------------------------------------------------------------------------------
    def load(self, row: StateRow | str) -> dict[str, Any]:
        """A document's content, from its file or else from its archive.

        Raises:
            FileNotFoundError: there is none.
            CorruptItem: the disk changed bytes that no one wrote.
            ContentError: the file is invalid and history has no good version.
            ArchiveInvalid: its archive does not give it.
        """
        return self.read(row).values

    def read(self, row: StateRow | str) -> State:
        """As ``load``, with what else is known of the document; one from an archive has no stamp."""
        path, known = (row, self.index.row(row)) if isinstance(row, str) else (row.path, row)
        try:
            state = self.files.read(path, known=known.stamp if known is not None else None)
        except FileNotFoundError:
            state = self._archived(path)
        if known is None or known.sha256 != state.sha256 or bool(known.archive) != (state.stamp is None):
            self._describe(path)
        return state

    def _archived(self, path: str) -> State:
        data = self._archives.read(path)
        values: dict[str, Any] = json_text.load(data.decode("utf-8"), parts=None)
        if sidecars.holds_reference(data):
            values = sidecars.fill(values, path, self._sidecar)
        return State(path=path, values=values, sha256=sha256(data), bytes=len(data), stamp=None)

    def archived(self, path: str) -> bool:
        """Whether an archive holds a document, also one that is back in the tree."""
        return bool(self._archives.period_of(path))

    def _describe(self, path: str) -> None:
        """Put right what is known of a document."""
        if iteration_of(path) is not None and document_kind(path):
            self.looking.refresh([path])

    def _sidecar(self, path: str) -> bytes:
        """The bytes of a sidecar, from the tree or else from its archive."""
        try:
            return sidecars.reader_of(self.parts)(path)
        except FileNotFoundError:
            return self._archives.read(path)

    def _documents(self, rows: Collection[StateRow] | RowSet, deadline: Deadline) -> tuple[DocumentSet, bool]:
        """The documents of the rows, and whether one of them was out of date: then others may answer the question."""
        self.parts.require_open()
        documents: list[StateDocument] = []
        problems: dict[str, str] = {}
        unread, stale = 0, False
        for done, row in enumerate(rows):
            if deadline.passed:
                unread = len(rows) - done
                break
            try:
                state = self.read(row)
            except FileNotFoundError:
                self._describe(row.path)
                stale = True
                continue
            except UNREADABLE as error:
                problems[row.path] = str(error)
                continue
            stale = stale or state.sha256 != row.sha256
            documents.append(StateDocument(row, state.values))
        return DocumentSet(tuple(documents), unread, problems), stale

    def reindex(self) -> int:
        """Forget everything and look at every file again; returns how many documents there are."""
        self.index.clear()
        self.looking.look(everywhere=True)
        return self.index.count()
