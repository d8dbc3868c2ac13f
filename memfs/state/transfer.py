"""Export state documents and memories as JSON Lines, CSV or Parquet, and import memories from JSON Lines.

Documents come in a fixed order. What cannot be read is reported and left out, and an export that fails leaves the
target as it was. CSV and Parquet have one row per document and a column per dotted name. A memory that is written as
JSON Lines and read again is the same file. An import checks and stores up to 5,000 memories at a time, whole or not at
all; one that was cut short is finished by importing again. Memory is bounded however many documents there are.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from io import BytesIO, StringIO
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from memfs import errors
from memfs.dataclass import dataclass, field, replace
from memfs.format import item_fields, json_text
from memfs.format.plain import canonical
from memfs.format.secrets import allowed
from memfs.format.text import BOM, utf8
from memfs.fs import io
from memfs.fs.archive import DigestStream, batches
from memfs.fs.atomic_replace import sha256
from memfs.model.ids import check_id, slug, stem_of, suffix_of
from memfs.model.item import MemoryItem, Trust
from memfs.model.kinds import ITEM_LIMIT, nearest
from memfs.model.query import moment
from memfs.model.state_facts import StateQuery, as_number, names_of, numbers_of
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path, document_kind, iteration_of
from memfs.state.reader import State, StateReader
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts, below_content, is_item
from memfs.store.plan import FilePlan, Planner
from memfs.store.store import retry_on_conflict

MOST_COLUMNS = 1_000
FIXED = ("path", "type", "iteration", "sha256")
"""What precedes each row: where the document is, what it is, and the digest of its file."""
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
    """Add the columns of a flat document, up to ``most`` of them."""
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
_HINT = "write one object per line, as 'memfs export' does"
_ARRAY = "a JSON array, where one object per line is expected"
_OTHERS = "clone the repository, or restore a backup, for state documents; 'memfs state store' takes new ones"


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
    """A record as one line.

    Characters are as they are, but for what UTF-8 cannot hold and what some readers take for a line's end.
    """
    fields = {**record.fixed(), DOCUMENT: record.document} | ({TEXT: record.text} if record.text else {})
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = re.sub("[\ud800-\udfff\u0085\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode() + b"\n"


def read_json_lines(source: BinaryIO, name: str) -> Iterator[ExportRecord | errors.ContentError]:
    """The records of JSON Lines, or why a line is none; blank lines are passed over.

    Args:
        name: what the source is called in errors.

    Raises:
        ItemTooLarge: a line is too long to be read.
        StorageIO: the source cannot be read.
    """
    for number in count(1):
        with io.operation("read", name):
            line = source.readline(LONGEST + 1)
        if not line:
            return
        if len(line) > LONGEST:
            raise errors.ItemTooLarge(f"a line of more than {LONGEST:,} bytes", path=name, line=number, hint=_HINT)
        try:
            if text := utf8(line, number).removeprefix(BOM if number == 1 else "").strip():
                yield record_of(_value(text, number), number, len(line))
        except errors.ContentError as error:
            yield error


def _value(line: str, number: int) -> Any:
    try:
        return json_text.load(line, parts=None, first=number)
    except errors.ItemSyntaxError as error:
        error.hint = f"{error.hint}; {_HINT}; what another memory keeps needs its name: --from"
        if number == 1 and line.startswith("["):
            error.message, error.hint = _ARRAY, _HINT
        elif not line.startswith("{"):
            error.hint = f"{_HINT}; to store the text as a memory, use --from markdown"
        raise


# -- reading a record ---------------------------------------------------------------------------------------------
def record_of(value: Any, place: int, size: int) -> ExportRecord:
    """The memory that a mapping describes, as an export has it or as a person writes it: its fields alone.

    Raises:
        ItemSyntaxError: it describes none; ``line`` is its place.
    """
    if not isinstance(value, dict):
        raise errors.ItemSyntaxError(_ARRAY if isinstance(value, list) else "not a JSON object", line=place, hint=_HINT)
    if TEXT in value and value.keys() <= {TEXT, "type"}:
        raise errors.ItemSyntaxError(
            "a memory has no such key; did you mean 'content'?", line=place, field=TEXT, hint=_HINT
        )
    if DOCUMENT not in value and not value.keys() <= _KEYS:
        return ExportRecord(path="", type=MEMORY, document=by_hand(value), place=place, size=size)
    if strange := value.keys() - _KEYS:
        raise errors.ItemSyntaxError("a record has no such key", line=place, field=str(min(strange)), hint=_HINT)
    if not isinstance(value.get(DOCUMENT), dict):
        raise errors.ItemSyntaxError("expected the document's keys and values", line=place, field=DOCUMENT, hint=_HINT)
    for key in ("path", "type", TEXT):
        if not isinstance(value.get(key, ""), str):
            raise errors.ItemSyntaxError("expected text", line=place, field=key, hint=_HINT)
    if value.get("type") != MEMORY:
        raise errors.ItemSyntaxError("only memories are imported", line=place, field="type", hint=_OTHERS)
    fields = {key: value[key] for key in ("path", "type", DOCUMENT, TEXT) if key in value}
    return ExportRecord(**{"path": "", **fields}, place=place, size=size)


def by_hand(line: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory as a person or 'memfs list --json' writes them, as an item file would have them."""
    fields = {key: value for key, value in line.items() if key not in _WRITTEN_BY_STORE}
    flat = {name: fields.pop(name) for name in _ORIGIN if name in fields}
    if flat:
        fields["origin"] = {**flat, **(fields.get("origin") or {})}
    origin = fields.get("origin")
    agent = isinstance(origin, Mapping) and origin.get("agent")
    return {"trust": (Trust.AGENT if agent else Trust.HUMAN).value, **fields}


FORMATS = ("jsonl", "csv", "parquet")
_PIECE = 1 << 20
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def format_of(file: str) -> str:
    """The format that a file's ending names, "" where it names none."""
    return next((found for ending, found in _ENDINGS.items() if file.lower().endswith(ending)), "")


def encoded(form: str, records: Iterable[ExportRecord], columns: Columns) -> Iterator[bytes]:
    """Records in a format, in pieces of about a megabyte.

    Raises:
        ExtraMissing: the format needs a package that is not installed.
    """
    if form == "parquet":
        pieces = _parquet(records, columns)
    else:
        pieces = map(json_line, records) if form == "jsonl" else _csv(records, columns)
    return map(b"".join, batches(pieces, len, _PIECE, _PIECE))


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
        raise errors.ExtraMissing(
            "Parquet needs the package pyarrow", field="format", hint="pip install 'gitmemfs[parquet]', or use csv"
        ) from error
    return package


def _parquet(records: Iterable[ExportRecord], columns: Columns) -> Iterator[bytes]:
    """A file of groups of rows; memory is bounded by one group."""
    pa = pyarrow()
    front = [pa.field(name, pa.int64() if name == "iteration" else pa.string()) for name in (*FIXED, DOCUMENT, TEXT)]
    own = [pa.field(name, pa.float64() if numbers else pa.string()) for name, numbers in columns.items()]
    schema = pa.schema([*front, *own])
    written = BytesIO()
    out = pa.parquet.ParquetWriter(written, schema, compression="zstd")
    rows = (_parquet_row(record, columns) for record in records)
    for group in batches(rows, lambda row: len(row[DOCUMENT]) + len(row[TEXT] or ""), _GROUP_BYTES, _ROWS):
        out.write_table(pa.Table.from_pylist(group, schema=schema))
        yield written.getvalue()
        written.seek(0)
        written.truncate()
    out.close()
    yield written.getvalue()


def _parquet_row(record: ExportRecord, columns: Columns) -> dict[str, Any]:
    document = json.dumps(record.document, ensure_ascii=True, allow_nan=False)
    values = dict(flat(record.document))
    row = {name: _fitting(values.get(name), numbers) for name, numbers in columns.items()}
    return {**row, **record.fixed(), DOCUMENT: document, TEXT: record.text or None}


def _fitting(value: Any, numbers: bool) -> float | str | None:
    """A value for a column of numbers, or of text, which holds all others as JSON."""
    if value is None or numbers:
        return as_number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_file(root: Path, target: Path, chunks: Iterable[bytes], replace: bool) -> None:
    """Write a file whole, durable on return; after an error, and after a kill, what lay under its name is as it was.

    Args:
        root: the workspace, among whose documents it must not be.
        replace: whether it may take the place of another file.

    Raises:
        Conflict: something is there, or it is no place for it.
        StorageIO: it cannot be written.
    """
    _require_place(root, target, replace)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    io.sweep(target.parent, f".{target.name}.")
    io.unlink(temporary, missing_ok=True)
    try:
        with io.operation("open", target):
            io.write_new(temporary, chunks, 0o666)
        _require_place(root, target, replace)
        io.rename(str(temporary), str(target))
    finally:
        with suppress(errors.MemfsError):
            io.unlink(temporary, missing_ok=True)
    io.sync_folder(target.parent)


def _require_place(root: Path, target: Path, replace: bool) -> None:
    if target.resolve().is_relative_to((root / CONTENT).resolve()):
        raise errors.Conflict(
            "an export must not lie among the documents", path=str(target), hint=f"name a file outside {CONTENT}/"
        )
    if os.path.lexists(target) and (not replace or not target.is_file()):
        hint = "choose another name, or replace it on purpose (--replace)" if target.is_file() else "name a file"
        raise errors.Conflict("something is there already", path=str(target), hint=hint)


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
"""What is below ``iterations/``: the types that are exported where none is named."""
AGGREGATE = "aggregate"
ALL_TYPES = (*TYPES, AGGREGATE, MEMORY)
_TRIES = 5


def export_query(
    types: Iterable[str] = (),
    agents: Iterable[str] = (),
    iterations: Iterable[int] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    items: Iterable[str] = (),
) -> StateQuery:
    """What of the workspace to export; without arguments everything below ``iterations/``.

    Args:
        types: of ``ALL_TYPES``; ``memory`` are the items.
        agents: by name, verbatim: who made it, or whom it says something about.
        iterations: by number; memories belong to none.
        since, until: the first and the last moment, both included; text as recall takes it.
        items: of memories, only these types.

    Raises:
        QueryInvalid: a value is of the wrong sort; ``field`` names it.
    """
    kinds = names_of(types, "types")
    for name in kinds:
        if name not in ALL_TYPES:
            hint = nearest(name, ALL_TYPES) or f"choose {', '.join(ALL_TYPES)}"
            if name == "checkpoint":
                hint = "a checkpoint cannot be exported; 'memfs admin backup create' takes it along"
            raise errors.QueryInvalid(f"there is no type {name!r} to export", field="types", hint=hint)
    return StateQuery(
        kinds=kinds or TYPES,
        agents=names_of(agents, "agents"),
        iterations=numbers_of(iterations),
        start=moment("since", since),
        end=moment("until", until, end=True),
        items=names_of(items, "items"),
    )


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
            Conflict: something is there under that name, or it is among the documents.
            QueryInvalid: there is no such format.
            ExtraMissing: the format needs a package that is not installed.
            OSError, StorageIO: of a path there is no file then; what an open file got until then is no whole export.
        """
        named = os.fspath(target) if isinstance(target, str | os.PathLike) else ""
        form = format or format_of(named) or "jsonl"
        if form not in FORMATS:
            hint = nearest(form, FORMATS) or f"choose {', '.join(FORMATS)}"
            raise errors.QueryInvalid(f"there is no format {form!r}", field="format", hint=hint)
        chosen, columns, missing = query or export_query(), Columns(), dict[str, str]()
        if form == "parquet":
            pyarrow()
        if form != "jsonl":
            for record in self._records(chosen, missing):
                learn_columns(columns, flat(record.document))
            missing.clear()
        counts: Counter[str] = Counter()

        def counted() -> Iterator[ExportRecord]:
            for record in self._records(chosen, missing):
                yield record
                counts[record.type] += 1

        data = DigestStream(encoded(form, counted(), columns))
        if isinstance(target, str | os.PathLike):
            write_file(self._parts.tree.root, Path(target).absolute(), data, replace)
        else:
            for piece in data:
                target.write(piece)
        return ExportResult(counts=dict(counts), bytes=data.digest[0], missing=tuple(missing.values()))

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
            except errors.MemfsError as error:
                missing[path] = str(error.located(path))
                continue
            if record is not None:
                yield record
        if MEMORY in query.kinds and not query.iterations:
            for path in self._store.index_sync.rejected_items():
                missing[path] = f"{path} cannot be read; 'memfs check' says why"

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
            for path in sorted({*self._parts.index.stamps()}.difference(self._store.index_sync.rejected_items())):
                yield path, partial(self._item, path, query)

    # -- what -----------------------------------------------------------------------------------------------------
    def _item(self, path: str, query: StateQuery) -> ExportRecord | None:
        item, data = self._store.read(path), self._parts.seen.read(path, ITEM_LIMIT).data
        if sha256(data) != item.sha256:
            raise errors.ContentError("the file changed while it was read", path=path, hint="export it again")
        if (query.agents and item.origin.agent not in query.agents) or (query.items and item.type not in query.items):
            return None
        at = item.timestamp or item.created
        if (query.start and (at is None or at < query.start)) or (query.end and (at is None or at > query.end)):
            return None
        document = {"id": item.id, "type": item.type, **item_fields.values(item)}
        return ExportRecord(path=path, type=MEMORY, sha256=item.sha256, document=document, text=data.decode())


def _record(state: State) -> ExportRecord:
    """A document as its file has it; its last good version would not be what the file says."""
    path = state.path
    if state.problem:
        raise errors.ContentError("it is invalid at present", path=path, hint="'memfs check' says where")
    kind, iteration = document_kind(path), iteration_of(path)
    return ExportRecord(path=path, type=kind, iteration=iteration, sha256=state.sha256, document=state.values)


# -- import -------------------------------------------------------------------------------------------------------
_SUFFIX = 8
_TELLING = ("type", "title", "content", "tags", "timestamp", "origin")
"""What makes a line without an id the memory that an earlier import stored."""
_BATCH = 5_000  # each is a commit, which writes the trees of whole folders again
_BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """What an import did.

    Attributes:
        stored: how many memories were stored; ``replaced`` of them were there with other content.
        same: how many were there already with equal content.
        refused: why records were left out; ``path`` is the file, ``line`` where the record is in it.
    """

    stored: int = 0
    replaced: int = 0
    same: int = 0
    refused: tuple[errors.MemfsError, ...] = ()


def import_memories(
    parts: Parts,
    store: Store,
    source: str | os.PathLike[str] | BinaryIO,
    *,
    replace: bool = False,
    dry_run: bool = False,
    allow_secret: str = "",
) -> ImportCounts:
    """Store the memories of an export; one that is there already with equal content stays as it is.

    What cannot be stored is left out, and named in what is returned.

    Args:
        parts, store: where they go.
        source: a file by name, or an open binary file, which need not be seekable.
        replace: memories that differ are replaced; without it they are left out.
        dry_run: report what would be stored, and store nothing.
        allow_secret: why memories may hold what looks like a secret.

    Raises:
        ContentError: a line is too long to be read.
        Conflict, StorageIO: the file cannot be read, or a batch cannot be stored; those before it are.
    """
    given = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    name = given if isinstance(given, str) and given and not given.startswith("<") else "standard input"
    made = _Import(parts, store, name, replace, dry_run, allow_secret)
    stored = replaced = same = 0
    refused: list[errors.MemfsError] = []
    with ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            with io.operation("open", name):
                source = stack.enter_context(open(source, "rb"))  # a person names it, so links are followed
        # each new id would be looked for among all files; what is written meanwhile, the write itself finds out
        stack.enter_context(store.scan_once())
        store.follow()
        records = read_json_lines(source, name)
        for batch in batches(records, lambda one: getattr(one, "size", 0), _BATCH_BYTES, _BATCH):
            due, wrong = retry_on_conflict(partial(made.store_batch, batch), tries=_TRIES)
            done = [plans for plans in due if plans]
            stored += len(done)
            same += len(due) - len(done)
            replaced += sum(any(plan.before is not None for plan in plans) for plans in done)
            refused += wrong
    return ImportCounts(stored=stored, replaced=replaced, same=same, refused=tuple(refused))


class _Import:
    """One import: what is to be done for each record of a file, and the doing."""

    def __init__(self, parts: Parts, store: Store, name: str, replace: bool, dry_run: bool, allow_secret: str) -> None:
        self._store, self._parts = store, parts
        self._planner = Planner(parts, store.index_sync)
        self._name, self._replace, self._dry_run, self._allow_secret = name, replace, dry_run, allow_secret
        self._seen: dict[str, int | None] = {}

    def store_batch(
        self, batch: Sequence[ExportRecord | errors.ContentError]
    ) -> tuple[list[Sequence[FilePlan]], list[errors.MemfsError]]:
        """Store what is due of a batch as one commit.

        Returns:
            What stores each record, nothing where it is there already; and why the others are left out.
        """
        due: list[Sequence[FilePlan]] = []
        refused: list[errors.MemfsError] = []
        for record in batch:
            try:
                due.append(self._plans(record))
            except errors.StorageIO:  # the disk's doing, not the record's
                raise
            except errors.MemfsError as error:
                for problem in (error, *error.also):
                    problem.path = self._name
                    if isinstance(record, ExportRecord):
                        problem.line, problem.column = record.place, None
                        problem.message = f"{record.path}: {problem.message}" if record.path else problem.message
                refused.append(error)
        if not self._dry_run and (plans := [plan for some in due for plan in some]):
            number = sum(map(bool, due))
            message = f"Import {number:,} {'memory' if number == 1 else 'memories'} from {os.path.basename(self._name)}"
            try:
                self._store.carry_out(plans, message, source="import", critical=False)
            except errors.Conflict:
                self._store.refresh()  # somebody else was quicker: it is looked at again
                raise
        return due, refused

    def _plans(self, record: ExportRecord | errors.ContentError) -> Sequence[FilePlan]:
        """What stores a memory; nothing where it is there already.

        Its file's text counts while it says the same as its fields: then it gets the very bytes it had. Otherwise the
        fields count, as they were changed.

        Raises:
            ContentError: it is not valid, or not the first of its id.
            Conflict: it is there with other content, and is not to be replaced.
        """
        if isinstance(record, errors.ContentError):
            raise record
        name = _id_of(record)
        if (place := self._seen.setdefault(name.casefold(), record.place)) != record.place:
            raise errors.DuplicateId(f"it is in line {place} already", hint="keep one of the two")
        item, secret = allowed(item_of(record, self._parts, name), self._allow_secret)
        data = self._text(record, item)
        existing = self._store.get(item.id) if self._store.locate(item.id) else None
        if existing is not None:
            if not record.document.get("created"):  # it names no times: those of the one that is there
                timestamp = item.timestamp if record.document.get("timestamp") else existing.timestamp
                item = item.replace(created=existing.created, timestamp=timestamp)
            if (data is not None and existing.sha256 == sha256(data)) or _values(existing) == _values(item):
                return ()
            if not self._replace:
                if not record.document.get("id") and not record.path:
                    return ()  # an earlier import stored it, and it was changed here
                hint = "import with --replace to have it so, or take the record out"
                message = f"the memory {item.id!r} is there with other content"
                raise errors.Conflict(message, current=existing.sha256, hint=hint)
        if data is None or (existing is not None and existing.path != record.path):
            return self._planner.put(item, existing.sha256 if existing else "", self._allow_secret, plain=not secret)
        stored, reason = item.replace(path=record.path, sha256=sha256(data)), allowed(item)[1]
        plans = self._store.plan_restore({record.path: data})
        return [plan._replace(item=stored, vetted=False, reason=reason) for plan in plans]

    def _text(self, record: ExportRecord, item: MemoryItem) -> bytes | None:
        """The bytes to restore, None where the fields count."""
        kind = self._parts.kinds.at(below_content(record.path)) if is_item(record.path, self._parts.kinds) else None
        if not record.text or kind is None or kind.name != item.type or stem_of(record.path) != item.id:
            return None
        data = record.text.encode("utf-8", "surrogatepass")
        there = self._parts.codec.read(data, record.path, item.timestamp or self._parts.clock())
        return data if _values(there) == _values(item) else None


def item_of(record: ExportRecord, parts: Parts, name: str = "") -> MemoryItem:
    """The item that a record's fields describe, read as the file it could be: one home for what a valid item is.

    Args:
        name: its id, where that is known already.

    Raises:
        ContentError: they describe none.
    """
    own = {key: value for key, value in record.document.items() if key not in ("id", "type")}  # its place says these
    own = {key: value for key, value in own.items() if value not in (None, "", [], {})}
    kind = parts.kinds.get(str(record.document.get("type") or "semantic"))
    place = f"{CONTENT}/{kind.folder}/{check_id(name or _id_of(record))}.json"
    return parts.codec.item_of(own, place, parts.clock())


def _values(item: MemoryItem) -> Mapping[str, Any]:
    """What is compared: all but when the file was last written, which a replacement changes."""
    return {"id": item.id, "type": item.type, **item_fields.values(item), "updated": None}


def _id_of(record: ExportRecord) -> str:
    """What a memory's record gives as its id; else one that follows from what it says, the same at every import."""
    document = record.document
    if named := document.get("id") or (stem_of(record.path) if record.path else ""):
        return str(named)
    suffix = suffix_of(canonical([document.get(key) or "" for key in _TELLING]).encode(), _SUFFIX)
    return f"{slug(str(document.get('title') or document.get('content') or '')) or 'memory'}-{suffix}"
