"""Export state documents and memories, for analysis elsewhere.

Documents come in a fixed order. What cannot be read is reported and left out, and an export that fails leaves the
target as it was.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from memfs.errors import Conflict, ContentError, MemfsError, QueryInvalid
from memfs.format import item_fields
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.model.item import MemoryItem
from memfs.model.kinds import ITEM_LIMIT, nearest
from memfs.model.query import moment
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path, document_kind, iteration_of
from memfs.model.state_query import StateQuery, names_of, numbers_of
from memfs.state.export_formats import (
    MEMORY,
    Columns,
    ExportRecord,
    Sink,
    flat,
    format_of,
    known_format,
    learn_columns,
    pyarrow,
    write_records,
)
from memfs.state.reader import StateReader
from memfs.store import Store
from memfs.store.parts import CONTENT
from memfs.store.state_files import State


@dataclass(frozen=True, slots=True)
class _File:
    fd: int
    name: str

    def write(self, data: bytes, /) -> None:
        """Write all of it."""
        io.write_all(self.fd, data, self.name)


@contextmanager
def out_file(root: str | os.PathLike[str], target: Path, replace: bool) -> Iterator[Sink]:
    """A file to write into; after an error, and after a kill, what lay under its name is as it was.

    Args:
        root: the workspace, among whose documents it must not lie.
        replace: whether it may take the place of another file.

    Raises:
        Conflict: something is there, or it is no place for it.
        StorageIO: it cannot be written.
    """
    _require_place(root, target, replace)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    io.sweep(target.parent, f".{target.name}.")
    io.unlink(temporary, missing_ok=True)
    with io.operation("open", target):
        fd = io.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield _File(fd, str(target))
        io.fsync(fd, str(target))
        _require_place(root, target, replace)
        io.rename(str(temporary), str(target))
    finally:
        os.close(fd)
        with suppress(MemfsError):
            io.unlink(temporary, missing_ok=True)
    io.sync_folder(target.parent)


def _require_place(root: str | os.PathLike[str], target: Path, replace: bool) -> None:
    if target.resolve().is_relative_to((Path(root) / CONTENT).resolve()):
        raise Conflict(
            "an export must not lie among the documents", path=str(target), hint=f"name a file outside {CONTENT}/"
        )
    if os.path.lexists(target) and (not replace or not target.is_file()):
        hint = "choose another name, or replace it on purpose (--replace)" if target.is_file() else "name a file"
        raise Conflict("something is there already", path=str(target), hint=hint)


TYPES = (
    "system_state",
    "state_update",
    "agent_output",
    "hypothesis",
    "hypothesis_version",
    "tournament_result",
    "meta_review",
    "continuation",
    "feedback",
    "conflict",
)
"""What lies below ``iterations/``: the types that are exported where none is named."""
AGGREGATE = "aggregate"
ALL_TYPES = (*TYPES, AGGREGATE, MEMORY)
_TRIES = 5


def export_query(
    types: Iterable[str] = (),
    agents: Iterable[str] = (),
    iterations: Iterable[int] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> StateQuery:
    """What of the workspace to export; without arguments everything below ``iterations/``.

    Args:
        types: of ``ALL_TYPES``; ``memory`` are the items.
        agents: by name, verbatim: who made it, or whom it says something about.
        iterations: by number; memories belong to none.
        since, until: the first and the last moment, both included; text as recall takes it.

    Raises:
        QueryInvalid: a value is of the wrong sort; ``field`` names it.
    """
    return StateQuery(
        kinds=tuple(map(_checked_type, names_of(types, "types"))) or TYPES,
        agents=names_of(agents, "agents"),
        iterations=numbers_of(iterations),
        start=moment("since", since),
        end=moment("until", until, end=True),
    )


def _checked_type(name: str) -> str:
    if name in ALL_TYPES:
        return name
    if name == "checkpoint":
        hint = "a checkpoint cannot be exported; 'memfs admin backup create' takes it along"
    else:
        hint = nearest(name, ALL_TYPES) or f"choose {', '.join(ALL_TYPES)}"
    raise QueryInvalid(f"there is no type {name!r} to export", field="types", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What an export holds.

    Attributes:
        counts: how many documents by type.
        bytes: what it weighs.
        missing: a sentence for each that could not be read.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    missing: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many documents."""
        return sum(self.counts.values())


class Exporter:
    """Writes documents to a stream, one after the other."""

    def __init__(self, reader: StateReader, store: Store) -> None:
        self._reader = reader
        self._store = store
        self._parts = reader.parts

    def write(
        self,
        sink: Sink,
        format: str = "jsonl",  # noqa: A002  what a caller would look for
        query: StateQuery | None = None,
    ) -> ExportResult:
        """Write every document that a query wants (``export_query``); memory is bounded by the largest one.

        Documents come by iteration, within it by time; memories after them, by path. CSV and Parquet need the names of
        all columns first: for them, every document is read twice.

        Raises:
            QueryInvalid: there is no such format.
            ExtraMissing: the format needs a package that is not installed.
            OSError, StorageIO: as the sink raises it; what it got until then is no whole export.
        """
        chosen, columns = query or export_query(), Columns()
        if known_format(format) == "parquet":
            pyarrow()
        missing: dict[str, str] = {}
        if format != "jsonl":
            for record in self._records(chosen, missing):
                learn_columns(columns, flat(record.document))
            missing.clear()
        counts: Counter[str] = Counter()

        def counted() -> Iterator[ExportRecord]:
            for record in self._records(chosen, missing):
                yield record
                counts[record.type] += 1

        size = write_records(format, counted(), sink, columns)
        return ExportResult(counts=dict(counts), bytes=size, missing=tuple(missing.values()))

    def export(
        self,
        target: str | os.PathLike[str] | Sink,
        format: str = "",  # noqa: A002  what a caller would look for
        query: StateQuery | None = None,
        *,
        replace: bool = False,
    ) -> ExportResult:
        """As ``write``, into a file by its path, or an open binary file.

        Args:
            format: "" means as the file's ending says, else ``jsonl``.
            replace: whether a file by that name may be replaced; it is, when the whole export is on the disk.

        Raises:
            Conflict: something is there under that name, or it lies among the documents.
            QueryInvalid, ExtraMissing, StorageIO: as ``write``; there is no file then.
        """
        if not isinstance(target, str | os.PathLike):
            return self.write(target, format or "jsonl", query)
        place = Path(target).absolute()
        with out_file(self._parts.tree.root, place, replace) as out:
            return self.write(out, format or format_of(place.name) or "jsonl", query)

    # -- which ----------------------------------------------------------------------------------------------------
    def _records(self, query: StateQuery, missing: dict[str, str]) -> Iterator[ExportRecord]:
        """The documents that are wanted; what has gone meanwhile is left out.

        Args:
            missing: gets a sentence for each document that cannot be read, by path.
        """
        for path, read in self._reads(query):
            try:
                record = read()
            except FileNotFoundError:
                continue
            except MemfsError as error:
                missing[path] = str(error.located(path))
                continue
            if record is not None:
                yield record
        if MEMORY in query.kinds and not query.iterations:
            for path in self._store.index_sync.rejected_items():
                missing[path] = f"{path} cannot be read as it is now; 'memfs check' says why"

    def _reads(self, query: StateQuery) -> Iterator[tuple[str, Callable[[], ExportRecord | None]]]:
        """The path of each document that may be wanted, and what reads it; None of what is not wanted after all."""
        files, kinds = self._reader.files, tuple(kind for kind in TYPES if kind in query.kinds)
        for known in self._reader.iterations() if kinds else ():
            if not query.iterations or known.number in query.iterations:
                for row in self._reader.rows(replace(query, kinds=kinds, iterations=(known.number,))):
                    yield row.path, lambda row=row: _record(self._reader.read(row))  # type: ignore[misc]
        # aggregates are of all iterations and agents, and of no time
        if AGGREGATE in query.kinds and not (query.iterations or query.agents or query.start or query.end):
            for path in filter(files.exists, map(aggregate_path, AGGREGATE_NAMES)):
                yield path, lambda path=path: _record(files.read(path))  # type: ignore[misc]
        if MEMORY in query.kinds and not query.iterations:
            self._store.follow()
            for path in sorted(self._parts.index.stamps()):
                yield path, partial(self._item, path, query)

    # -- what -----------------------------------------------------------------------------------------------------
    def _item(self, path: str, query: StateQuery) -> ExportRecord | None:
        for _ in range(_TRIES):
            item, data = self._store.read(path), self._parts.seen.read(path, ITEM_LIMIT).data
            if sha256(data) == item.sha256:
                return record_of_item(item, data.decode()) if _wanted(item, query) else None
        raise ContentError("the file keeps changing while it is read", path=path, hint="export it again")


def _record(state: State) -> ExportRecord:
    """A document as its file has it; its last good version would not be what the file says."""
    path = state.path
    if state.problem:
        raise ContentError("it is invalid at present", path=path, hint="'memfs check' says where")
    kind, iteration = document_kind(path), iteration_of(path)
    return ExportRecord(path=path, type=kind, iteration=iteration, sha256=state.sha256, document=state.values)


def record_of_item(item: MemoryItem, text: str) -> ExportRecord:
    """An item as a record: its fields under ``document``, and its file's text."""
    document = {"id": item.id, "type": item.type, **item_fields.values(item)}
    return ExportRecord(path=item.path, type=MEMORY, iteration=None, sha256=item.sha256, document=document, text=text)


def _wanted(item: MemoryItem, query: StateQuery) -> bool:
    if query.agents and item.origin.agent not in query.agents:
        return False
    at = item.timestamp or item.created
    if at is None:
        return query.start is None and query.end is None
    return (query.start is None or query.start <= at) and (query.end is None or at <= query.end)
