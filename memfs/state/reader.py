"""Find and load state documents, those of archived iterations too.

What is returned is what the document's file says now, or its archive once it left the tree: an index row that its
file contradicts is read again, and the query repeated.
"""

from __future__ import annotations

import marshal
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, CorruptItem, CorruptRecord, MemfsError
from memfs.format import json_text
from memfs.fs.atomic_replace import sha256
from memfs.fs.executor import Deadline
from memfs.fs.lock import renewed_in_child
from memfs.model import Stamp
from memfs.model.state_facts import StateFacts
from memfs.model.state_paths import document_kind, iteration_of
from memfs.model.state_query import Iteration, StateQuery, StateRow
from memfs.search.state_index import RowSet, StateIndex
from memfs.state.scan import StateScan
from memfs.store import sidecars
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.state_files import StateFiles

if TYPE_CHECKING:
    from memfs.state.archives import Archives


_MOST_BYTES = 64 << 20
_OVERHEAD = 400
_TRIES = 4
_RECENT_SECONDS = 1.0
_NEVER = Deadline(None)
_UNREADABLE = (ContentError, CorruptItem, CorruptRecord)


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """A document as bytes, so that nobody who changes what was handed out changes what is kept.

    ``stamp`` is its file's; None for one from an archive, whose documents never change.
    """

    data: bytes
    sha256: str
    stamp: Stamp | None

    def values(self) -> dict[str, Any]:
        """A copy of what it holds."""
        values: dict[str, Any] = marshal.loads(self.data)  # noqa: S302  our own bytes, from this process's memory
        return values


class StateCache:
    """Keeps documents by path; the one used longest ago goes first. May be used from several threads."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._kept: OrderedDict[str, CachedDocument] = OrderedDict()
        self._bytes = self._hits = self._misses = 0

    def get(self, path: str) -> CachedDocument | None:
        """The document that is kept under a path; the caller sees to it that it still holds."""
        with self._guard:
            found = self._kept.get(path)
            if found is not None:
                self._kept.move_to_end(path)
            return found

    def keep(self, path: str, document: CachedDocument) -> None:
        """Keep a document, unless it would take a quarter of the room."""
        with self._guard:
            self._remove(path)
            if len(document.data) > self._most // 4:
                return
            self._kept[path] = document
            self._bytes += len(document.data) + _OVERHEAD
            while self._bytes > self._most:
                self._remove(next(iter(self._kept)))

    def _remove(self, path: str) -> None:
        document = self._kept.pop(path, None)
        if document is not None:
            self._bytes -= len(document.data) + _OVERHEAD

    def clear(self) -> None:
        """Keep nothing."""
        with self._guard:
            self._kept.clear()
            self._bytes = 0

    def count(self, hit: bool) -> None:
        """Count whether what was asked for could be used."""
        with self._guard:
            self._hits += hit
            self._misses += not hit

    def statistics(self) -> dict[str, Any]:
        """``hits``, ``misses`` and the ``rate`` of hits; how many ``documents`` are kept, and their ``bytes``."""
        with self._guard:
            asked = self._hits + self._misses
            rate = round(self._hits / asked, 4) if asked else 0.0
            counts = {"hits": self._hits, "misses": self._misses, "rate": rate}
            return {**counts, "documents": len(self._kept), "bytes": self._bytes}


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
        files, index: where documents lie, and what is known of them.
        looking: learns what changed.
        kept: documents that were read before.
    """

    def __init__(
        self, files: StateFiles, index: StateIndex, archives: Archives, parts: Parts, looking: StateScan
    ) -> None:
        self.files = files
        self.index = index
        self.parts = parts
        self.looking = looking
        self.kept = StateCache()
        self._archives = archives
        self._looked = -math.inf

    # -- asking -------------------------------------------------------------------------------------------------------
    def catch_up(self, deadline: Deadline = _NEVER) -> bool:
        """Learn what changed in the files since the last look; returns whether the time was enough."""
        self._looked = time.monotonic()
        return self.looking.look(deadline)

    def rows(self, question: StateQuery) -> list[StateRow]:
        """What is known of the documents that agree with a question, after a look at what changed."""
        self.catch_up()
        return self.index.find(question)

    def recent(self, question: StateQuery) -> list[StateRow]:
        """As ``rows``, but the last look may be a second old."""
        if time.monotonic() - self._looked > _RECENT_SECONDS:
            self.catch_up()
        return self.index.find(question)

    def gather(self, question: StateQuery, deadline: Deadline = _NEVER) -> DocumentSet:
        """The documents that agree with a question, as many as there is time for. Does not look for changes first."""
        return self.answered(lambda: self.index.found(question), deadline)

    def answered(self, find: Callable[[], Collection[StateRow] | RowSet], deadline: Deadline = _NEVER) -> DocumentSet:
        """The documents of the rows that are found; found again where one of them was out of date."""
        found = DocumentSet()
        for _ in range(_TRIES):
            found, stale = self._documents(find(), deadline)
            if not stale:
                break
        return found

    def iterations(self) -> list[Iteration]:
        """The iterations, by number, archived ones included."""
        self.catch_up()
        return self.index.iterations()

    def latest_iteration(self) -> int | None:
        """The newest iteration, open or closed; None where there is none."""
        self.catch_up()
        return self.index.newest_iteration()

    def open_iteration(self) -> int | None:
        """The newest iteration that is open; None where there is none."""
        self.catch_up()
        return self.index.newest_iteration("open")

    # -- loading ------------------------------------------------------------------------------------------------------
    def load(self, row: StateRow | str) -> dict[str, Any]:
        """A document's content, from its file or else from its archive.

        Raises:
            FileNotFoundError: there is none.
            CorruptItem: the disk changed bytes that nobody wrote.
            ContentError: the file is invalid and history has no good version.
            ArchiveInvalid: its archive does not give it.
        """
        return self.loaded(row)[0]

    def loaded(self, row: StateRow | str) -> tuple[dict[str, Any], str]:
        """As ``load``, with the sha256 of its bytes."""
        path, known = (row, self.index.row(row)) if isinstance(row, str) else (row.path, row)
        kept = self._still_kept(path)
        self.kept.count(kept is not None)
        if kept is not None:
            values = kept.values()
        else:
            values, digest, stamp = self._read(path, known)
            kept = CachedDocument(marshal.dumps(values), digest, stamp)
            self.kept.keep(path, kept)
        if known is None or known.sha256 != kept.sha256 or bool(known.archive) != (kept.stamp is None):
            self._describe(path)
        return values, kept.sha256

    def archived(self, path: str) -> bool:
        """Whether an archive holds a document, also one that is back in the tree."""
        return bool(self._archives.period_of(path))

    def _describe(self, path: str) -> None:
        """Put right what is known of a document."""
        if iteration_of(path) is not None and document_kind(path):
            self.looking.refresh([path])

    def _still_kept(self, path: str) -> CachedDocument | None:
        """The document that was read before, if it still holds: by its file's facts, of a young file by its content."""
        kept, seen = self.kept.get(path), self.files.seen
        if kept is None or (kept.stamp is not None and path in seen.proven({path: kept.stamp})):
            return kept
        try:
            now = seen.read(path, READ_LIMIT).stamp.blob
        except FileNotFoundError:
            now = ""
        except (MemfsError, OSError):
            return None
        return kept if now == (kept.stamp.blob if kept.stamp is not None else "") else None

    def _read(self, path: str, known: StateRow | None) -> tuple[dict[str, Any], str, Stamp | None]:
        try:
            state = self.files.read(path, known=known.stamp if known is not None else None)
        except FileNotFoundError:
            data = self._archives.read(path)
            values: dict[str, Any] = json_text.load(data.decode("utf-8"), parts=None)
            if sidecars.holds_reference(data):
                values = sidecars.fill(values, path, self._sidecar)
            return values, sha256(data), None
        return state.values, state.sha256, state.stamp

    def _sidecar(self, path: str) -> bytes:
        """The bytes of a sidecar, from the tree or else from its archive."""
        try:
            return sidecars.reader_of(self.parts)(path)
        except FileNotFoundError:
            return self._archives.read(path)

    def _documents(self, rows: Collection[StateRow] | RowSet, deadline: Deadline) -> tuple[DocumentSet, bool]:
        """What the rows stand for, and whether one of them was out of date: then others may answer the question."""
        self.parts.require_open()
        documents: list[StateDocument] = []
        problems: dict[str, str] = {}
        unread, stale = 0, False
        for done, row in enumerate(rows):
            if deadline.passed:
                unread = len(rows) - done
                break
            try:
                values, digest = self.loaded(row)
            except FileNotFoundError:
                self._describe(row.path)
                stale = True
                continue
            except _UNREADABLE as error:
                problems[row.path] = str(error)
                continue
            stale = stale or digest != row.sha256
            documents.append(StateDocument(row, values))
        return DocumentSet(tuple(documents), unread, problems), stale

    def reindex(self) -> int:
        """Forget everything and look at every file again; returns how many documents there are."""
        self.kept.clear()
        self.index.clear()
        self.looking.look(everywhere=True)
        return self.index.count()
