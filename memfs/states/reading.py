"""State reading: finding and loading state documents, those of archived iterations too (seed 001).

Owns the promise that what is handed out is what the document's file says now, or its archive where it left the tree: a
row that its file contradicts is described anew, and the question asked again. When files are looked at is ``looking``'s
business; what a question is for, it does not know.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, CorruptItem, CorruptRecord, IndexUnavailable, MemfsError
from memfs.files import jsontext
from memfs.index.states import Found, StateIndex
from memfs.model.shape import plain
from memfs.model.statefacts import describe
from memfs.model.statepaths import document_kind, iteration_of
from memfs.model.statequery import IterationRow, Question, Row
from memfs.pipeline.deadline import Deadline
from memfs.states.looking import FileFacts, Looking, same
from memfs.states.statecache import StateCache
from memfs.store import sidecars
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.statefiles import StateFiles, Written

if TYPE_CHECKING:
    from memfs.states.archives import Archives

_TRIES = 4
_FINE_NS = 20_000_000
_NEVER = Deadline(None)
_UNREADABLE = (ContentError, CorruptItem, CorruptRecord)


@dataclass(frozen=True, slots=True)
class Proof:
    """By what a document is known to be the same: the facts about its file when it was read, and its digest.

    ``archive`` names the archive it came from; its documents never change.
    """

    facts: FileFacts | None
    checked_ns: int
    sha256: str
    archive: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was found: what is known of it, what it holds, and what vouches for that."""

    row: Row
    values: dict[str, Any]
    proof: Proof


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found for a question.

    Attributes:
        documents: those that could be read in time, in the order of the question.
        unread: how many more there are, for which time was lacking.
        problems: by path, why a document cannot be read.
    """

    documents: tuple[Document, ...] = ()
    unread: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)


class StateReading:
    """Reads state documents of one workspace. May be used from several threads.

    Attributes:
        files, index: where documents lie, and what is known of them.
        looking: learns what changed.
        kept: documents that were read before.
    """

    def __init__(self, files: StateFiles, index: StateIndex, archives: Archives, parts: Parts) -> None:
        self.files = files
        self.index = index
        self.parts = parts
        self.looking = Looking(files, index, archives, parts)
        self.kept = StateCache()
        self._archives = archives
        self._root = os.fspath(parts.tree.root)

    # -- asking -------------------------------------------------------------------------------------------------------
    def catch_up(self, deadline: Deadline = _NEVER) -> bool:
        """Learn what changed in the files since the last look; returns whether the time was enough."""
        return self.looking.look(deadline)

    def rows(self, question: Question) -> list[Row]:
        """What is known of the documents that agree with a question, after a look at what changed."""
        self.catch_up()
        return self.index.find(question)

    def gather(self, question: Question, deadline: Deadline = _NEVER) -> Gathered:
        """The documents that agree with a question, as many as there is time for. Does not look for changes first."""
        found = Gathered()
        for _ in range(_TRIES):
            found, stale = self.documents(self.index.found(question), deadline)
            if not stale:
                break
        return found

    def iterations(self) -> list[IterationRow]:
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
    def load(self, row: Row | str) -> dict[str, Any]:
        """A document's content, from its file or else from its archive.

        Raises:
            FileNotFoundError: there is none.
            CorruptItem: the disk changed bytes that nobody wrote.
            ContentError: the file is invalid and history has no good version.
            ArchiveInvalid: its archive does not give it.
        """
        return self.loaded(row)[0]

    def loaded(self, row: Row | str) -> tuple[dict[str, Any], Proof]:
        """As ``load``, with what vouches for the content."""
        path, known = (row, self.index.row(row)) if isinstance(row, str) else (row.path, row)
        proof = self.kept.proof(path)
        values = None
        if proof is not None and self.holds(path, proof):
            with suppress(KeyError):
                values = self.kept.value(path)
        self.kept.count(hit=values is not None)
        if values is None or proof is None:
            values, proof = self._read(path, known)
            self.kept.keep(path, values, proof)
        if known is None or known.sha256 != proof.sha256 or bool(known.archive) != (proof.facts is None):
            self._describe(path)
        return values, proof

    def archived(self, path: str) -> bool:
        """Whether an archive holds a document, also one that is back in the tree."""
        return bool(self._archives.period_of(path))

    def _describe(self, path: str) -> None:
        """Put right what is known of a document."""
        if iteration_of(path) is not None and document_kind(path):
            self.looking.refresh([path])

    def holds(self, path: str, proof: Proof) -> bool:
        """Whether a document is still what it was: by its file's facts, of a young file by its content."""
        now = self._facts(path)
        if proof.facts is None or now is None:
            return proof.facts is None and now is None and bool(proof.archive)
        if not same(proof.facts, now, proof.checked_ns):
            return False
        if proof.checked_ns - max(now[1], now[2]) > _FINE_NS:
            return True
        try:
            data = self.parts.seen.read(path, READ_LIMIT).data
        except (MemfsError, OSError):
            return False
        return hashlib.sha256(data).hexdigest() == proof.sha256

    def _facts(self, path: str) -> FileFacts | None:
        """The facts about a file, None where there is none.

        Asked by the whole path, which is quick: a link on the way leads to another file, with other facts.
        """
        secondary = self.parts.secondary
        if secondary is not None and path in secondary.held():
            entry = self.parts.seen.entry(path)
            return None if entry is None else (entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode)
        try:
            found = os.stat(f"{self._root}/{path}", follow_symlinks=False)
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino

    def _read(self, path: str, known: Row | None) -> tuple[dict[str, Any], Proof]:
        try:
            state = self.files.read(path, known=known.stamp if known is not None else None)
        except FileNotFoundError:
            data = self._archives.read(path)
            proof = Proof(None, time.time_ns(), hashlib.sha256(data).hexdigest(), known.archive if known else "archive")
            return self._decoded(path, data), proof
        stamp = state.stamp
        return state.values, Proof(stamp[:4], stamp.checked_ns, state.sha256)

    def _decoded(self, path: str, data: bytes) -> dict[str, Any]:
        values: dict[str, Any] = jsontext.load(data.decode("utf-8"), parts=None)
        if not sidecars.holds_reference(data):
            return values
        return sidecars.fill(self.parts, values, path, self._archives.read)

    def documents(self, rows: Collection[Row] | Found, deadline: Deadline = _NEVER) -> tuple[Gathered, bool]:
        """What the rows stand for, and whether one of them was out of date: then others may answer the question."""
        self.parts.require_open()
        documents: list[Document] = []
        problems: dict[str, str] = {}
        unread, stale = 0, False
        for done, row in enumerate(rows):
            if deadline.passed:
                unread = len(rows) - done
                break
            try:
                values, proof = self.loaded(row)
            except FileNotFoundError:
                self._describe(row.path)
                stale = True
                continue
            except _UNREADABLE as error:
                problems[row.path] = str(error)
                continue
            stale = stale or proof.sha256 != row.sha256
            documents.append(Document(row, values, proof))
        return Gathered(tuple(documents), unread, problems), stale

    # -- keeping in step ----------------------------------------------------------------------------------------------
    def learned(self, written: Iterable[Written], values: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Learn what this process just wrote. What cannot be noted now, the next look finds."""
        rows, gone = [], []
        for one in written:
            if document_kind(one.path) and iteration_of(one.path) is not None:
                held = values.get(one.path)
                if held is None:
                    gone.append(one.path)
                else:
                    rows.append(_row(one, held))
        with suppress(IndexUnavailable):
            self.index.learn(rows)
            self.looking.removed(gone)
            self.looking.wrote([*(row.path for row in rows), *gone])

    def reindex(self) -> int:
        """Forget everything and look at every file again; returns how many documents there are."""
        self.kept.clear()
        self.index.clear()
        self.looking.everything()
        return self.index.count()

    def close(self) -> None:
        """Release what is held."""
        self.index.close()


def _row(one: Written, values: Mapping[str, Any]) -> Row:
    return Row(facts=describe(one.path, plain(values)), sha256=one.sha256, bytes=one.bytes, stamp=one.stamp)
