"""Notice which state documents changed; find and load them, those of archived iterations too.

The index follows the files: before each query the folders of open iterations and the documents in which commits differ,
and once a minute everything. What is returned is what the document's file says now, or its archive once it left the
tree: an index row that its file contradicts is read again, and the query repeated.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from memfs import errors
from memfs.dataclass import dataclass, field, replace
from memfs.format import json_text
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.fs.executor import Deadline
from memfs.fs.lock import reset_on_fork
from memfs.git.log import changed_paths
from memfs.model import Stamp
from memfs.model.state_facts import Iteration, StateFacts, StateQuery, StateRow, describe
from memfs.model.state_paths import ITERATIONS, document_kind, iteration_folder, iteration_of
from memfs.search.state_index import Folder, RowSet, StateIndex
from memfs.store import sidecars
from memfs.store.parts import Parts
from memfs.store.state_files import State, StateFiles

if TYPE_CHECKING:
    from memfs.state.archives import Archives

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
_UNREADABLE = (errors.ContentError, errors.CorruptItem, errors.CorruptRecord)
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
            except _UNREADABLE as error:
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
