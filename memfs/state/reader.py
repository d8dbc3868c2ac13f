"""Find and load state documents, those of archived iterations too.

What is returned is what the document's file says now, or its archive once it left the tree: an index row that its
file contradicts is read again, and the query repeated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from memfs.dataclass import dataclass, field
from memfs.errors import ContentError, CorruptItem, CorruptRecord, IndexUnavailable
from memfs.format import json_text
from memfs.fs.atomic_replace import sha256
from memfs.fs.executor import Deadline
from memfs.model.state_facts import StateFacts
from memfs.model.state_paths import document_kind, iteration_of
from memfs.model.state_query import Iteration, StateQuery, StateRow
from memfs.search.state_index import RowSet, StateIndex
from memfs.state.scan import StateScan
from memfs.store import sidecars
from memfs.store.parts import Parts
from memfs.store.state_files import State, StateFiles

if TYPE_CHECKING:
    from memfs.state.archives import Archives


_TRIES = 4
_RECENT_SECONDS = 1.0
_NEVER = Deadline(None)
_UNREADABLE = (ContentError, CorruptItem, CorruptRecord)
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
        files, index: where documents lie, and what is known of them.
        looking: learns what changed.
    """

    def __init__(
        self, files: StateFiles, index: StateIndex, archives: Archives, parts: Parts, looking: StateScan
    ) -> None:
        self.files = files
        self.index = index
        self.parts = parts
        self.looking = looking
        self._archives = archives
        self._looked = -math.inf

    # -- asking -------------------------------------------------------------------------------------------------------
    def catch_up(self, deadline: Deadline = _NEVER) -> bool:
        """Learn what changed in the files since the last look; returns whether the time was enough."""
        self._looked = time.monotonic()
        return self.looking.look(deadline)

    def rows(self, question: StateQuery) -> list[StateRow]:
        """What is known of the documents that agree with a question, after a look at what changed."""
        return self._after_look(lambda: self.index.find(question))

    def _after_look(self, find: Callable[[], Found]) -> Found:
        """What is found after a look at what changed; looked for again where the index was begun again meanwhile."""
        for _ in range(_TRIES - 1):
            self.catch_up()
            with suppress(IndexUnavailable):
                return find()
        self.catch_up()
        return find()

    def recent(self, question: StateQuery) -> list[StateRow]:
        """As ``rows``, but the last look may be a second old."""
        if time.monotonic() - self._looked <= _RECENT_SECONDS:
            with suppress(IndexUnavailable):
                return self.index.find(question)
        return self.rows(question)

    def gather(self, question: StateQuery, deadline: Deadline = _NEVER) -> DocumentSet:
        """The documents that agree with a question, as many as there is time for. Does not look for changes first."""
        return self.answered(lambda: self.index.found(question), deadline)

    def answered(self, find: Callable[[], Collection[StateRow] | RowSet], deadline: Deadline = _NEVER) -> DocumentSet:
        """The documents of the rows that are found; found again where one of them was out of date."""
        found = DocumentSet()
        for _ in range(_TRIES):
            try:
                rows = find()
            except IndexUnavailable:  # begun again since the look
                self.catch_up(deadline)
                rows = find()
            found, stale = self._documents(rows, deadline)
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
            CorruptItem: the disk changed bytes that nobody wrote.
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
