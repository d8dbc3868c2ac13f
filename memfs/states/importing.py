"""Importing: documents that an export holds, back into a workspace.

Owns the order: everything is checked before the first document is stored, and they are stored in batches, each of which
is all or nothing. An import that was cut short is taken up by importing again, as what is there already is passed over.
What becomes of one record is the business of ``memfs.states.taking``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from memfs.errors import Conflict, ContentError, DuplicateId, MemfsError, StorageIO
from memfs.files import io
from memfs.model.statepaths import iteration_of
from memfs.states import formats
from memfs.states.reading import StateReading
from memfs.states.record import MEMORY, Record, json_line
from memfs.states.taking import DocumentTaking, ItemTaking
from memfs.states.transfer import AGGREGATE, Step
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.plan import Planned
from memfs.store.statefiles import Change, StateFiles

_BATCH = 500
_BATCH_BYTES = 8 << 20
_CHUNK = 1 << 20
_SOURCE = "import"

Tell = Callable[[MemfsError], object]
"""Told of each record that cannot be imported; ``path`` is the file, ``line`` where the record stands in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        counts: documents stored, by type; ``replaced`` of them were there with other content.
        same: how many were there already with equal content.
        derived: how many aggregates were passed over, as they are computed from the rest.
        refused: how many were left out because they cannot be imported.
        iterations: which were touched.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    replaced: int = 0
    same: int = 0
    derived: int = 0
    refused: int = 0
    iterations: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """How many documents were stored."""
        return sum(self.counts.values())


@dataclass(slots=True)
class _Batch:
    """What is stored as one commit: documents or memories."""

    changes: list[Change] = field(default_factory=list)
    plans: list[Planned] = field(default_factory=list)
    records: list[tuple[str, int | None, bool]] = field(default_factory=list)
    bytes: int = 0

    @property
    def full(self) -> bool:
        return len(self.records) >= _BATCH or self.bytes >= _BATCH_BYTES

    def add(self, record: Record, changes: list[Change], plans: list[Planned], over: bool) -> None:
        self.changes += changes
        self.plans += plans
        self.records.append((record.type, iteration_of(record.path), over))
        self.bytes += len(json_line(record))


@dataclass(slots=True)
class _Sum:
    """What an import did until now; see ``Imported``."""

    counts: Counter[str] = field(default_factory=Counter)
    iterations: set[int] = field(default_factory=set)
    replaced: int = 0
    same: int = 0
    derived: int = 0
    refused: int = 0

    def count(self, batch: _Batch) -> None:
        for kind, number, over in batch.records:
            self.counts[kind] += 1
            self.replaced += over
            if number is not None:
                self.iterations.add(number)

    def imported(self) -> Imported:
        return Imported(
            counts=dict(self.counts),
            replaced=self.replaced,
            same=self.same,
            derived=self.derived,
            refused=self.refused,
            iterations=tuple(sorted(self.iterations)),
        )


class Importer:
    """Stores documents that an export holds."""

    def __init__(
        self,
        files: StateFiles,
        reading: StateReading,
        store: Store,
        parts: Parts,
        after: Callable[[Sequence[int]], object] = lambda _: None,
    ) -> None:
        """``after`` is told which iterations an import touched, once it is done."""
        self._files = files
        self._reading = reading
        self._store = store
        self._parts = parts
        self._documents = DocumentTaking(files, reading, parts)
        self._items = ItemTaking(store, parts)
        self._after = after

    def read(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        format: str = "",  # noqa: A002  what a caller would look for
        *,
        replace: bool = False,
        dry_run: bool = False,
        skip_refused: bool = False,
        tell: Tell | None = None,
        step: Step | None = None,
    ) -> Imported:
        """Store every document of an export; one that is there already with equal content stays as it is (S19).

        Args:
            source: a file by name, or an open binary file, which need not be seekable.
            format: ``jsonl``, ``csv`` or ``parquet``; "" means as the file's ending says, else ``jsonl``.
            replace: documents that differ are replaced; without it they are conflicts.
            dry_run: tell what would be stored, and store nothing.
            skip_refused: leave out the records that cannot be imported.
            tell: is told of each record that cannot be imported; without it only the error raised says so.
            step: is told how far it is.

        Raises:
            Conflict: documents are there with other content. Nothing was stored.
            ContentError: records are no valid documents. Nothing was stored.
            ExtraMissing, QueryInvalid: the format cannot be read here, or there is none of that name.
            StorageIO: the file cannot be read; or a batch could not be stored, those before it are.
        """
        name = _name_of(source)
        chosen = formats.known_format(format or formats.format_of(name) or "jsonl")
        formats.require(chosen)
        with self._opened(source, name) as stream:
            way = _Way(stream, chosen, name, step)
            refused = self._check(way, replace, tell or (lambda _: None), skip_refused)
            done = self._store_all(way, replace, dry_run, refused)
        if done.iterations and not dry_run:
            self._tell_others(done.iterations)
        return done

    def _tell_others(self, iterations: Sequence[int]) -> None:
        """What follows from the documents may come later: all of them are stored, whatever becomes of it."""
        try:
            self._after(iterations)
        except MemfsError as error:
            self._store.note_failure(error)

    # -- the file -------------------------------------------------------------------------------------------------
    @contextmanager
    def _opened(self, source: str | os.PathLike[str] | BinaryIO, name: str) -> Iterator[BinaryIO]:
        """The file, so that it can be read twice."""
        if not isinstance(source, str | os.PathLike):
            with self._seekable(source, name) as stream:
                yield stream
            return
        with io.operation("open", name):
            opened = open(source, "rb")  # noqa: SIM115  closed below; a person names it, so links are followed
        with opened, self._seekable(opened, name) as stream:
            yield stream

    @contextmanager
    def _seekable(self, source: BinaryIO, name: str) -> Iterator[BinaryIO]:
        if source.seekable():
            yield source
            return
        place = self._parts.repository.state / f".import.{os.getpid()}.{id(source):x}.tmp"
        fd = io.open_file(place, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        with os.fdopen(fd, "rb") as copy:
            io.unlink(place)
            with io.operation("read", name):
                while chunk := source.read(_CHUNK):
                    io.write_all(fd, chunk, str(place))
            yield copy

    # -- checking -------------------------------------------------------------------------------------------------
    def _check(self, way: _Way, replace: bool, tell: Tell, skip_refused: bool) -> set[int]:
        """Which records, by their number, cannot be imported; without ``skip_refused`` one refuses the whole file."""
        wrong: list[MemfsError] = []
        refused: set[int] = set()
        total = conflicts = 0
        seen: dict[str, int | None] = {}
        self._store.follow()
        self._reading.catch_up()
        for record in way.records():
            total += 1
            try:
                _refuse_twice(record, seen)
                self._taken(record, replace, check=True)
            except StorageIO:  # the disk's doing, not the record's
                raise
            except MemfsError as error:
                error.message, error.path = f"{record.path}: {error.message}", way.name
                error.line, error.column = record.place, None
                refused.add(total)
                conflicts += isinstance(error, Conflict)
                wrong = wrong or [error]
                tell(error)
        if refused and not skip_refused:
            raise _summary(wrong[0], len(refused), total, conflicts)
        return refused

    def _taken(self, record: Record, replace: bool, *, check: bool = False) -> tuple[list[Change], list[Planned], bool]:
        """What has to be done for a record, nothing where it is there already; and whether it replaces something."""
        if record.type == AGGREGATE:
            return [], [], False
        if record.type == MEMORY:
            plans = self._items.plans(record, replace)
            return [], plans, any(plan.before is not None for plan in plans)
        change = self._documents.change(record, replace, check=check)
        return ([change], [], bool(change.expected)) if change else ([], [], False)

    # -- storing --------------------------------------------------------------------------------------------------
    def _store_all(self, way: _Way, replace: bool, dry_run: bool, refused: Set[int]) -> Imported:
        done, batch = _Sum(refused=len(refused)), _Batch()
        for number, record in enumerate(way.records(), 1):
            if number in refused:
                continue
            changes, plans, over = self._taken(record, replace)
            done.derived += record.type == AGGREGATE
            if not changes and not plans:
                done.same += record.type != AGGREGATE
                continue
            if (batch.changes and plans) or (batch.plans and changes):
                batch = self._stored(batch, way.name, done, dry_run)
            batch.add(record, changes, plans, over)
            if batch.full:
                batch = self._stored(batch, way.name, done, dry_run)
        self._stored(batch, way.name, done, dry_run)
        return done.imported()

    def _stored(self, batch: _Batch, name: str, done: _Sum, dry_run: bool) -> _Batch:
        """Store a batch and count it in; the next one."""
        if not dry_run:
            self._carry_out(batch, name, done.counts.total())
        done.count(batch)
        return _Batch()

    def _carry_out(self, batch: _Batch, name: str, before: int) -> None:
        if not batch.records:
            return
        number = len(batch.records)
        message = f"Import {number:,} document{'s' * (number != 1)} from {os.path.basename(name)}"
        try:
            if batch.changes:
                self._files.write(batch.changes, message, source=_SOURCE)
            else:
                self._store.carry_out(batch.plans, message, source=_SOURCE, critical=False)
        except (StorageIO, Conflict) as error:
            stored = f"{before:,} documents before this one are stored; " if before else ""
            error.hint = f"{stored}{(error.hint or 'try again').rstrip('.')}, then import again: it goes on from there"
            raise


def _name_of(source: str | os.PathLike[str] | BinaryIO) -> str:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    return name if isinstance(name, str) and name and not name.startswith("<") else "standard input"


def _refuse_twice(record: Record, seen: dict[str, int | None]) -> None:
    if record.path in seen:
        raise DuplicateId(f"it stands in line {seen[record.path]} already", hint="keep one of the two")
    seen[record.path] = record.place


def _summary(first: MemfsError, faults: int, total: int, conflicts: int) -> MemfsError:
    """One error for all that is wrong with a file."""
    if faults == 1:
        return first
    message = f"{faults:,} of {total:,} records cannot be imported; nothing was stored. The first: {first.message}"
    if conflicts == faults:
        return Conflict(message, path=first.path, hint=first.hint)
    return ContentError(message, path=first.path, line=first.line, field=first.field, hint=first.hint)


class _Way:
    """Goes through the file from its beginning, as often as it is asked to, and says how far it is."""

    def __init__(self, stream: BinaryIO, form: str, name: str, step: Step | None) -> None:
        self.name = name
        self._stream = stream
        self._form = form
        self._step = step
        self._size = stream.seek(0, os.SEEK_END)
        self._passed = 0

    def records(self) -> Iterator[Record]:
        """The records, in the file's order.

        Raises:
            ContentError: with the file's name.
        """
        self._stream.seek(0)
        furthest = 0
        try:
            for record in formats.read(self._form, self._stream):
                yield record
                furthest = max(furthest, self._stream.tell())
                self._tell(furthest)
        except ContentError as error:
            raise error.located(self.name) from None
        except OSError as error:
            raise io.storage_error(error, "read", self.name) from error
        self._passed += 1

    def _tell(self, furthest: int) -> None:
        if self._step is not None:
            self._step(self._passed * self._size + furthest, 2 * self._size)
