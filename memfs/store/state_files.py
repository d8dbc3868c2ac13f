"""Reads and writes the state documents of a long-running multi-agent system.

A document is checked before it is written and after it was read, several are written as one, and a reader gets the last
good version where a document cannot be read as it is. Also the contexts: the circumstances of a session or a workflow,
as keys and values in ``ContextMemory/context/<name>.yaml``.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from memfs.dataclass import dataclass
from memfs.errors import (
    Conflict,
    ContentError,
    HistoryError,
    IndexUnavailable,
    ItemTooLarge,
    MemfsError,
    PathEscape,
    SchemaInvalid,
)
from memfs.format.codec import CONTEXTS, schema_of
from memfs.format.plain import plain
from memfs.format.text import shortlist
from memfs.fs.atomic_replace import sha256
from memfs.fs.tree import ScanEntry, View, blob_id, refuse_rot
from memfs.model import Stamp
from memfs.model.ids import check_id
from memfs.model.state_facts import StateRow, describe
from memfs.model.state_paths import STATE_FOLDERS, document_kind, iteration_of
from memfs.search.state_index import StateIndex
from memfs.startup import Any
from memfs.store import sidecars
from memfs.store.parts import ITEM_SUFFIXES, READ_LIMIT, FlushResult, Parts
from memfs.store.plan import FilePlan
from memfs.store.store import Store, retry_on_conflict

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
        self.parsed = lru_cache(_MOST_KEPT)(self._as_bytes)

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
        refuse_rot(path, known or self._known(path), content, self.seen.root)
        data, problem = content.data, ""
        try:
            values = self._parsed(path, data) if once else self._decoded(path, data)
        except ContentError as error:
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

    def stays(self, path: str) -> bool:
        """Whether there is such a document, and it does not wait for another branch.

        What was written before a checkout, and not committed by then, is here until it is: then it goes.
        """
        if not self.exists(path):
            return False
        try:
            branch = self._parts.repository.head().ref or ""
        except HistoryError:
            return True
        return not self._parts.journal.waits_elsewhere(path, branch)

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
        except (FileNotFoundError, HistoryError):
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
                raise Conflict("two changes of one document", path=path, hint="join them into one", lasting=True)
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
        except ItemTooLarge:
            values = plain(change.values)
        except MemfsError as error:
            raise error.located(change.path) from None
        try:
            sidecars.refuse_reserved(values)
            reduced, taken = sidecars.spill(values, change.path, lambda part: codec.obeys(part, schema))
        except MemfsError as error:
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
        with suppress(IndexUnavailable):
            self._index.learn(rows)
            if gone:
                self._index.forget(gone)
                self._index.note(archives="{}")  # an archive may hold them

    # -- internal: reading --------------------------------------------------------------------------------------
    def _known(self, path: str) -> Stamp | None:
        """The stamp that vouches for a document's content, so that damage to it is known as such."""
        with suppress(IndexUnavailable):
            return self._index.stamp(path) if iteration_of(path) is not None else None
        return None

    def _decoded(self, path: str, data: bytes) -> dict[str, Any]:
        if len(data) > _LARGEST_KEPT:
            return self._parsed(path, data)
        values: dict[str, Any] = marshal.loads(self.parsed(path, data))  # noqa: S302  made here, a line below
        return values

    def _as_bytes(self, path: str, data: bytes) -> bytes:
        """A document's values as bytes, so that a change to what was handed out does not change what is kept."""
        return marshal.dumps(self._parsed(path, data))

    def _parsed(self, path: str, data: bytes) -> dict[str, Any]:
        return self._parts.codec.read_document(data, path, _schema(path))

    def _last_good(self, path: str, error: ContentError) -> tuple[bytes, dict[str, Any]]:
        """The newest version that is valid, of what waits for its commit and what is committed.

        Raises:
            ContentError: the given one, where there is none.
        """
        for data in self._versions(path):
            try:
                return data, self._decoded(path, data)
            except ContentError:
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
        raise PathEscape("no document lies there", path=path, hint="'memfs state export' shows where documents lie")
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
        return self._mapping(*self._found(name))

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
            raise SchemaInvalid("expected keys and values", field="values", hint='write {"branch": "main"}')
        return retry_on_conflict(lambda: self._set(values, name, source))

    def _set(self, values: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
        path, before = self._found(name)
        changed = {**self._mapping(path, before), **values}
        if before is None and not changed:
            return {}
        after = self._parts.codec.write_document(changed, path, "context", before)
        # what is replaced was read just now, and stays but for the keys that change: an edit by hand is not lost
        expected = "" if before is None else sha256(before)
        message = f"Set {shortlist(map(str, values), 3)} of the context {name}"
        self._store.put_documents([(path, after, expected)], message, source=source, alone=True)
        return self._mapping(path, after)

    def _found(self, name: str) -> tuple[str, bytes | None]:
        """The path of a context's file, and its bytes where there is one."""
        paths = [f"{CONTEXTS}/{check_id(name)}{suffix}" for suffix in ITEM_SUFFIXES]
        for path in paths:
            try:
                return path, self._parts.seen.read(path, READ_LIMIT).data
            except FileNotFoundError:
                continue
        return paths[0], None

    def _mapping(self, path: str, data: bytes | None) -> dict[str, Any]:
        return {} if data is None else self._parts.codec.read_document(data, path, "context")
