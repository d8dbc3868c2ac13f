"""Export state documents and memories for analysis elsewhere, as JSON Lines, CSV or Parquet.

Documents come in a fixed order. What cannot be read is reported and left out, and an export that fails leaves the
target as it was. A record that is written as JSON Lines and read again is the same document; CSV and Parquet have one
row per document and a column per dotted name. Memory is bounded however many documents there are.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from memfs.dataclass import dataclass, field, replace
from memfs.errors import Conflict, ContentError, ExtraMissing, ItemSyntaxError, ItemTooLarge, MemfsError, QueryInvalid
from memfs.format import item_fields, json_text
from memfs.format.text import BOM, utf8
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.model.item import MemoryItem, Trust
from memfs.model.kinds import ITEM_LIMIT, nearest
from memfs.model.query import moment
from memfs.model.state_facts import StateQuery, as_number, names_of, numbers_of
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path, document_kind, iteration_of
from memfs.state.reader import StateReader
from memfs.store import Store
from memfs.store.parts import CONTENT
from memfs.store.state_files import State

MOST_COLUMNS = 1_000
FIXED = ("path", "type", "iteration", "sha256")
"""What precedes each row: where the document lies, what it is, and the digest of its file."""
REST = "more"
"""The last column of a CSV file: JSON of the values whose names have no column."""
TEXT = "text"
DOCUMENT = "document"
RESERVED = frozenset({*FIXED, REST, TEXT, DOCUMENT})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


# -- rows ---------------------------------------------------------------------------------------------------------
def flat(document: Mapping[str, Any], below: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document by column: the keys down to it, joined by dots. Lists and empty mappings are values.

    A key that is one of ``RESERVED`` has ``document.`` before it.
    """
    for key, value in document.items():
        name = f"{below}.{key}" if below else key
        if isinstance(value, Mapping) and value:
            yield from flat(value, name)
        else:
            yield f"{DOCUMENT}.{name}" if name in RESERVED else name, value


def cell(value: Any) -> str:
    """A value as a CSV cell: text as it is, all others as JSON, and so what a spreadsheet would run as a formula."""
    if isinstance(value, str) and not value.startswith(_FORMULA):
        return value
    return json.dumps(value, ensure_ascii=False)


Columns = dict[str, bool]
"""The columns that documents need, in the order in which their names come first, each with whether it holds numbers."""


def learn_columns(columns: Columns, row: Iterable[tuple[str, Any]], most: int = MOST_COLUMNS) -> None:
    """Add the columns of a flat document, until there are so many."""
    for name, value in row:
        if name in columns or len(columns) < most:
            columns[name] = columns.get(name, True) and (value is None or as_number(value) is not None)


MEMORY = "memory"
"""The type of records that hold an item."""
LONGEST = 1 << 28
"""Bytes of the largest record."""
_KEYS = frozenset({*FIXED, DOCUMENT, TEXT})
_ORIGIN = ("agent", "session", "phase", "role", "tool")
_WRITTEN_BY_STORE = frozenset({"path", "sha256", "score", "reasons", "stale", "usage"})
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HINT = "write one object per line, as 'memfs export' does"
_ARRAY = "a JSON array, where one object per line is expected"
_PATHLESS = "'memfs state store' takes documents without a path"


class Sink(Protocol):
    """What an export is written to: an open binary file, or anything that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """One document as an export has it.

    Attributes:
        path: below the workspace; "" for a memory that a person wrote as one line.
        type: as ``memfs.model.state_paths.document_kind`` names it, or ``memory``.
        iteration: the iteration it belongs to, None for none.
        sha256: of its file.
        document: what it says.
        text: the file's very text, for a memory, whose comments and format are part of it.
        place: where an import found it: a line or row, from 1.
    """

    path: str
    type: str
    iteration: int | None = None
    sha256: str = ""
    document: Mapping[str, Any]
    text: str = ""
    place: int | None = None
    size: int = 0

    def fixed(self) -> dict[str, Any]:
        """The values of the columns in front."""
        return {name: getattr(self, name) for name in FIXED}


# -- JSON Lines ---------------------------------------------------------------------------------------------------
def json_line(record: ExportRecord) -> bytes:
    """A record as one line."""
    told = {**record.fixed(), DOCUMENT: record.document} | ({TEXT: record.text} if record.text else {})
    return _text_of(told).encode() + b"\n"


def _text_of(value: Any) -> str:
    """JSON with characters as they are, but for what UTF-8 cannot hold and what some readers take for a line's end."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[\ud800-\udfff\u0085\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def read_json_lines(source: BinaryIO) -> Iterator[ExportRecord | ContentError]:
    """The records of JSON Lines, or why a line is none; blank lines are passed over.

    Raises:
        ItemTooLarge: a line is too long to be read.
    """
    number = 0
    while line := source.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise ItemTooLarge(f"a line of more than {LONGEST:,} bytes", line=number, hint=_HINT)
        try:
            if text := utf8(line, number).removeprefix(BOM if number == 1 else "").strip():
                yield record_of(_value(text, number), number, len(line))
        except ContentError as error:
            yield error


def _value(line: str, number: int) -> Any:
    try:
        return json_text.load(line, parts=None, first=number)
    except ItemSyntaxError as error:
        error.hint = f"{error.hint}; {_HINT}; what another memory keeps needs its name: --from"
        if number == 1 and line.startswith("["):
            error.message, error.hint = _ARRAY, _HINT
        elif not line.startswith("{"):
            error.hint = f"{_HINT}; to store the text as a memory, use --from markdown"
        raise


# -- reading a record ---------------------------------------------------------------------------------------------
def record_of(value: Any, place: int, size: int) -> ExportRecord:
    """The record that a mapping describes; one with fields of a memory and no document is that memory.

    Raises:
        ItemSyntaxError: it describes none; ``line`` is its place.
    """
    if not isinstance(value, dict):
        raise ItemSyntaxError(_ARRAY if isinstance(value, list) else "not a JSON object", line=place, hint=_HINT)
    if TEXT in value and value.keys() <= {TEXT, "type"}:
        raise ItemSyntaxError("a memory has no such key; did you mean 'content'?", line=place, field=TEXT, hint=_HINT)
    if DOCUMENT not in value and not value.keys() <= _KEYS:
        return ExportRecord(path="", type=MEMORY, document=by_hand(value), place=place, size=size)
    for key in value:
        if key not in _KEYS:
            raise ItemSyntaxError("a record has no such key", line=place, field=str(key), hint=_HINT)
    for key, (sort, needed, expected) in _FITTING.items():
        if not _fits(key, value.get(key), sort, needed):
            hint = f"{_HINT}; {_PATHLESS}" if key == "path" and key not in value else _HINT
            raise ItemSyntaxError(f"expected {expected}", line=place, field=key, hint=hint)
    return ExportRecord(**{key: said for key, said in value.items() if said is not None}, place=place, size=size)


def by_hand(line: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory as a person or 'memfs list --json' writes them, as an item file would have them."""
    fields = {key: value for key, value in line.items() if key not in _WRITTEN_BY_STORE}
    flat = {name: fields.pop(name) for name in _ORIGIN if name in fields}
    if flat:
        fields["origin"] = {**flat, **(fields.get("origin") or {})}
    origin = fields.get("origin")
    agent = isinstance(origin, Mapping) and origin.get("agent")
    return {"trust": (Trust.AGENT if agent else Trust.HUMAN).value, **fields}


_FITTING: Mapping[str, tuple[type, bool, str]] = {
    "path": (str, True, "a path below the workspace"),
    "type": (str, True, "the type of the document"),
    "iteration": (int, False, "a whole number"),
    "sha256": (str, False, "64 hexadecimal digits"),
    DOCUMENT: (dict, True, "the document's keys and values"),
    TEXT: (str, False, "text"),
}
"""By key: the sort of its value, whether there must be one, and what was expected."""


def _fits(key: str, value: Any, sort: type, needed: bool) -> bool:
    if value is None or (value == "" and sort is str):
        return not needed
    digest = key != "sha256" or (isinstance(value, str) and _SHA256.fullmatch(value) is not None)
    return isinstance(value, sort) and not isinstance(value, bool) and digest


FORMATS = ("jsonl", "csv", "parquet")
_HELD = 1 << 20
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def known_format(name: str) -> str:
    """The format of that name.

    Raises:
        QueryInvalid: there is none.
    """
    if name not in FORMATS:
        hint = nearest(name, FORMATS) or f"choose {', '.join(FORMATS)}"
        raise QueryInvalid(f"there is no format {name!r}", field="format", hint=hint)
    return name


def format_of(file: str) -> str:
    """The format that a file's ending names, "" where it names none."""
    return next((found for ending, found in _ENDINGS.items() if file.lower().endswith(ending)), "")


class _Out:
    """Passes bytes on to a sink in large pieces, as a file that pyarrow can write to; closed, it takes nothing more.

    Attributes:
        size: how many bytes it took.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._held: list[bytes] = []
        self._room = _HELD
        self.size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        if not self.closed:
            self._held.append(bytes(data))
            self.size += len(data)
            self._room -= len(data)
        if self._room <= 0:
            self.flush()
        return len(data)

    def flush(self) -> None:
        data, self._held, self._room = b"".join(self._held), [], _HELD
        if data:
            self._sink.write(data)

    def close(self) -> None:
        self.closed = True


def write_records(form: str, records: Iterable[ExportRecord], sink: Sink, columns: Columns) -> int:
    """Write records in a format, one after the other; the sink stays open.

    Returns:
        How many bytes were written.

    Raises:
        ExtraMissing: the format needs a package that is not installed.
    """
    out = _Out(sink)
    if form == "parquet":
        _write_parquet(records, out, columns)
    else:
        for data in map(json_line, records) if form == "jsonl" else _csv(records, columns):
            out.write(data)
    out.flush()
    return out.size


def _csv(records: Iterable[ExportRecord], columns: Columns) -> Iterator[bytes]:
    yield _csv_row([*FIXED, *map(cell, columns), REST, TEXT])
    for record in records:
        row = dict(flat(record.document))
        front = ["" if value is None else str(value) for value in record.fixed().values()]
        cells = [cell(row.pop(name)) if name in row else "" for name in columns]
        yield _csv_row([*front, *cells, json.dumps(row, ensure_ascii=False) if row else "", record.text])


def _csv_row(cells: Sequence[str]) -> bytes:
    buffer = StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode("utf-8", "backslashreplace")


# -- Parquet ------------------------------------------------------------------------------------------------------
_ROWS = 1_000
_GROUP_BYTES = 16 << 20


def pyarrow() -> Any:
    """The package that Parquet needs.

    Raises:
        ExtraMissing: the hint says what to install.
    """
    try:
        import pyarrow as package
        import pyarrow.parquet  # large, and an extra
    except ImportError as error:
        raise ExtraMissing(
            "Parquet needs the package pyarrow", field="format", hint="pip install 'gitmemfs[parquet]', or use csv"
        ) from error
    return package


def _write_parquet(records: Iterable[ExportRecord], file: _Out, columns: Columns) -> None:
    """Write records in groups of rows; memory is bounded by one group."""
    pa = pyarrow()
    front = [pa.field(name, pa.int64() if name == "iteration" else pa.string()) for name in (*FIXED, DOCUMENT, TEXT)]
    own = [pa.field(name, pa.float64() if numbers else pa.string()) for name, numbers in columns.items()]
    schema = pa.schema([*front, *own])
    out = pa.parquet.ParquetWriter(file, schema, compression="zstd")
    rows: list[dict[str, Any]] = []
    held = 0
    try:
        for record in records:
            document = json.dumps(record.document, ensure_ascii=True, allow_nan=False)
            values = dict(flat(record.document))
            row = {name: _fitting(values.get(name), numbers) for name, numbers in columns.items()}
            rows.append({**row, **record.fixed(), DOCUMENT: document, TEXT: record.text or None})
            held += len(document) + len(record.text)
            if len(rows) >= _ROWS or held >= _GROUP_BYTES:
                out.write_table(pa.Table.from_pylist(rows, schema=schema))
                rows, held = [], 0
        if rows:
            out.write_table(pa.Table.from_pylist(rows, schema=schema))
        out.close()
    except BaseException:
        file.close()  # the library would still write an end
        raise


def _fitting(value: Any, numbers: bool) -> float | str | None:
    """A value for a column of numbers, or of text, which holds all others as JSON."""
    if value is None or numbers:
        return as_number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
        self._reader, self._store = reader, store
        self._parts = reader.parts

    def export(
        self,
        target: str | os.PathLike[str] | Sink,
        format: str = "",  # noqa: A002  what a caller would look for
        query: StateQuery | None = None,
        *,
        replace: bool = False,
    ) -> ExportResult:
        """Write every document that a query wants (``export_query``) into a file by its path, or an open binary file.

        Documents come by iteration, within it by time; memories after them, by path. Memory is bounded by the largest
        one. CSV and Parquet need the names of all columns first: for them, every document is read twice.

        Args:
            format: "" means as the file's ending says, else ``jsonl``.
            replace: whether a file by that name may be replaced; it is, when the whole export is on the disk.

        Raises:
            Conflict: something is there under that name, or it lies among the documents.
            QueryInvalid: there is no such format.
            ExtraMissing: the format needs a package that is not installed.
            OSError, StorageIO: of a path there is no file then; what an open file got until then is no whole export.
        """
        if isinstance(target, str | os.PathLike):
            place = Path(target).absolute()
            with out_file(self._parts.tree.root, place, replace) as out:
                return self.export(out, format or format_of(place.name), query)
        chosen, form, columns = query or export_query(), known_format(format or "jsonl"), Columns()
        if form == "parquet":
            pyarrow()
        missing: dict[str, str] = {}
        if form != "jsonl":
            for record in self._records(chosen, missing):
                learn_columns(columns, flat(record.document))
            missing.clear()
        counts: Counter[str] = Counter()

        def counted() -> Iterator[ExportRecord]:
            for record in self._records(chosen, missing):
                yield record
                counts[record.type] += 1

        size = write_records(form, counted(), target, columns)
        return ExportResult(counts=dict(counts), bytes=size, missing=tuple(missing.values()))

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
    return ExportRecord(path=item.path, type=MEMORY, sha256=item.sha256, document=document, text=text)


def _wanted(item: MemoryItem, query: StateQuery) -> bool:
    if query.agents and item.origin.agent not in query.agents:
        return False
    at = item.timestamp or item.created
    if at is None:
        return query.start is None and query.end is None
    return (query.start is None or query.start <= at) and (query.end is None or at <= query.end)
