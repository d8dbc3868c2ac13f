"""The formats of exports: JSON Lines, CSV and Parquet, chosen by name or by a file's ending.

CSV and Parquet have one row per document and a column per dotted name. Memory is bounded however many documents there
are.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from memfs.errors import ExtraMissing, ItemSyntaxError, ItemTooLarge, QueryInvalid
from memfs.model.kinds import nearest
from memfs.state.export_record import (
    DOCUMENT,
    FIXED,
    LONGEST,
    REST,
    TEXT,
    ExportRecord,
    JsonLines,
    RecordWriter,
    Sink,
    TableColumns,
    cell,
    fitting,
    flat,
    load,
    nested,
    read_json_lines,
    record_of,
    value_of,
)

FORMATS = ("jsonl", "csv", "parquet")
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_HINT = "let 'memfs export --format csv' show how a row looks"


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


def needs_columns(form: str) -> bool:
    """Whether the columns must be known before the first record is written."""
    return form != "jsonl"


def writer(form: str, sink: Sink, columns: TableColumns) -> RecordWriter:
    """What writes records to a sink.

    Raises:
        ExtraMissing: the format needs a package that is not installed.
    """
    if form == "jsonl":
        return JsonLines(sink)
    if form == "csv":
        return CsvRows(sink, columns)

    return ParquetRows(sink, columns)


def require(form: str) -> None:
    """See to it that a format can be read and written here.

    Raises:
        ExtraMissing: it needs a package that is not installed.
    """
    if form == "parquet":
        require_extra()


def read(form: str, source: BinaryIO) -> Iterator[ExportRecord]:
    """The records that a file holds.

    Raises:
        ContentError: it holds something else; ``line`` says where.
        ExtraMissing: the format needs a package that is not installed.
    """
    if form == "jsonl":
        return read_json_lines(source)
    if form == "csv":
        return read_csv(source)

    return read_parquet(source)


# -- CSV ----------------------------------------------------------------------------------------------------------
class CsvRows:
    """Writes records as CSV; ``text`` has a column only where a record needs it."""

    def __init__(self, sink: Sink, columns: TableColumns, with_text: bool = True) -> None:
        self._sink = sink
        self._names = columns.names
        self._known = frozenset(self._names)
        self._buffer = io.StringIO(newline="")
        self._csv = csv.writer(self._buffer, lineterminator="\n")
        self._put([*FIXED, *self._names, REST, *([TEXT] if with_text else [])])
        self._with_text = with_text

    def write(self, record: ExportRecord) -> None:
        """Write one row."""
        row = flat(record.document)
        rest = {name: value for name, value in row.items() if name not in self._known}
        front = ["" if value is None else str(value) for value in record.fixed().values()]
        cells = [cell(row[name]) if name in row else "" for name in self._names]
        last = [json.dumps(rest, ensure_ascii=False) if rest else ""]
        self._put([*front, *cells, *last, *([record.text] if self._with_text else [])])

    def close(self) -> None:
        """Nothing belongs at the end."""

    def _put(self, cells: Sequence[str]) -> None:
        self._csv.writerow(cells)
        self._sink.write(self._buffer.getvalue().encode("utf-8", "backslashreplace"))
        self._buffer.seek(0)
        self._buffer.truncate()


def read_csv(source: BinaryIO) -> Iterator[ExportRecord]:
    """The records of a CSV file, as ``CsvRows`` writes it; ``line`` is the line on which a row ends.

    Raises:
        ContentError: a row is no record.
    """
    if csv.field_size_limit() < LONGEST:
        csv.field_size_limit(LONGEST)
    rows = csv.reader(_lines(source), strict=True)
    header: list[str] = []
    try:
        for cells in rows:
            if not header:
                header = _checked_header(cells)
            elif cells:
                yield _record(header, cells, rows.line_num)
    except csv.Error as error:
        raise ItemSyntaxError(f"not CSV: {error}", line=rows.line_num, hint=_HINT) from error


def _lines(source: BinaryIO) -> Iterator[str]:
    decode = codecs.getincrementaldecoder("utf-8-sig")()
    number = 0
    while line := source.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise ItemTooLarge(f"a line of more than {LONGEST:,} bytes", line=number, hint=_HINT)
        try:
            yield decode.decode(line)
        except UnicodeDecodeError as error:
            raise ItemSyntaxError("not UTF-8 text", line=number, hint="save it as UTF-8") from error


def _checked_header(names: list[str]) -> list[str]:
    for name in ("path", "type"):
        if name not in names:
            raise ItemSyntaxError("the first row does not name this column", line=1, field=name, hint=_HINT)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ItemSyntaxError("two columns have this name", line=1, field=twice, hint="keep one")
    return names


def _record(header: list[str], cells: list[str], number: int) -> ExportRecord:
    if len(cells) != len(header):
        message = f"{len(cells)} cells, but {len(header)} columns"
        raise ItemSyntaxError(message, line=number, hint="put a cell that holds a comma in quotes")
    row = dict(zip(header, cells, strict=True))
    told: dict[str, Any] = {name: row.pop(name, "") or None for name in FIXED}
    rest, told[TEXT] = row.pop(REST, ""), row.pop(TEXT, "")
    values = {name: _value(name, written, number) for name, written in row.items() if written}
    values |= _rest(rest, number)
    try:
        told["document"] = nested(values)
    except ItemSyntaxError as error:
        error.line = number
        raise
    told["iteration"] = None if told["iteration"] is None else _value("iteration", told["iteration"], number)
    return record_of(told, number)


def _value(name: str, written: str, number: int) -> Any:
    try:
        return value_of(written, lambda text: load(text, number))
    except ItemSyntaxError as error:
        error.field, error.column = name, None
        error.hint = "put text in double quotes as JSON does where it begins like JSON"
        raise


def _rest(written: str, number: int) -> Mapping[str, Any]:
    found = _value(REST, written, number) if written else {}
    if not isinstance(found, dict):
        raise ItemSyntaxError("expected a JSON object", line=number, field=REST, hint=_HINT)
    return found


_ROWS = 1_000
_GROUP_BYTES = 16 << 20
_READ_ROWS = 100
_FRONT = (*FIXED, DOCUMENT, TEXT)
_PARQUET_HINT = "let 'memfs export --format parquet' write it"


def require_extra() -> None:
    """See to it that pyarrow is there.

    Raises:
        ExtraMissing: the hint says what to install.
    """
    _pyarrow()


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet  # large, and an extra
    except ImportError as error:
        raise ExtraMissing(
            "Parquet needs the package pyarrow", field="format", hint="pip install 'gitmemfs[parquet]', or use csv"
        ) from error
    return pyarrow


# -- writing ------------------------------------------------------------------------------------------------------
class ParquetRows:
    """Writes records in groups of rows; memory is bounded by one group."""

    def __init__(self, sink: Sink, columns: TableColumns) -> None:
        self._pa = _pyarrow()
        self._sorts = dict(columns.sorts)
        self._schema = self._pa.schema([*_front(self._pa), *_typed(self._pa, self._sorts)])
        self._file = _File(sink)
        self._out = self._pa.parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._held = 0

    def write(self, record: ExportRecord) -> None:
        """Take one row; a full group is written."""
        row = flat(record.document)
        document = json.dumps(record.document, ensure_ascii=True, allow_nan=False)
        front = {**record.fixed(), DOCUMENT: document, TEXT: record.text or None}
        typed = {name: fitting(row[name], sort) if name in row else None for name, sort in self._sorts.items()}
        self._rows.append({**typed, **front})
        self._held += len(document) + len(record.text)
        if len(self._rows) >= _ROWS or self._held >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._out.write_table(self._pa.Table.from_pylist(self._rows, schema=self._schema))
            self._rows, self._held = [], 0

    def close(self) -> None:
        """Write the last group and the footer."""
        self._flush()
        self._out.close()


def _front(pa: Any) -> list[Any]:
    kinds = {"iteration": pa.int64()}
    return [pa.field(name, kinds.get(name, pa.string())) for name in _FRONT]


def _typed(pa: Any, sorts: dict[str, str]) -> list[Any]:
    kinds = {
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
    }
    return [pa.field(name, kinds.get(sort, pa.string())) for name, sort in sorts.items()]


class _File:
    """A sink as pyarrow wants a file to be; closing it leaves the sink open."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: Any) -> int:
        self._sink.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        """The sink's owner decides about that."""

    def close(self) -> None:
        self.closed = True


# -- reading ------------------------------------------------------------------------------------------------------
def read_parquet(source: BinaryIO) -> Iterator[ExportRecord]:
    """The records of a Parquet file; ``line`` in errors is the row, from 1.

    Raises:
        ExtraMissing: pyarrow is not installed.
        ContentError: it is no such file, or a row is no record.
    """
    pa = _pyarrow()
    number = 0
    try:
        file = pa.parquet.ParquetFile(source)
        _check(file)
        wanted = [name for name in _FRONT if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=_READ_ROWS, columns=wanted, use_threads=False):
            for row in batch.to_pylist():
                number += 1
                yield _record_from_row(row, number)
    except (pa.ArrowException, OSError) as error:  # OSError: what pyarrow raises over a damaged page
        raise ItemSyntaxError(f"not a whole Parquet file: {_first_line(error)}", hint=_PARQUET_HINT) from error


def _check(file: Any) -> None:
    for name in ("path", "type", DOCUMENT):
        if name not in file.schema_arrow.names:
            raise ItemSyntaxError("it does not have this column", field=name, hint=_PARQUET_HINT)
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).total_byte_size
        if size > 4 * LONGEST:
            raise ItemTooLarge(f"its group {group + 1} has {size:,} bytes", hint="write it in smaller groups of rows")


def _record_from_row(row: dict[str, Any], number: int) -> ExportRecord:
    document = row.get(DOCUMENT)
    if not isinstance(document, str):
        raise ItemSyntaxError("expected the document as JSON text", line=number, field=DOCUMENT, hint=_PARQUET_HINT)
    return record_of({**row, DOCUMENT: load(document, number)}, number)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
