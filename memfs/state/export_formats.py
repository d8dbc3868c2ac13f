"""The formats of exports: JSON Lines, CSV and Parquet, chosen by name or by a file's ending.

CSV and Parquet have one row per document and a column per dotted name. Memory is bounded however many documents there
are.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from memfs.errors import ExtraMissing, QueryInvalid
from memfs.model.kinds import nearest
from memfs.state.export_record import (
    DOCUMENT,
    FIXED,
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
)

FORMATS = ("jsonl", "csv", "parquet")
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
    """See to it that a format can be written here.

    Raises:
        ExtraMissing: it needs a package that is not installed.
    """
    if form == "parquet":
        require_extra()


# -- CSV ----------------------------------------------------------------------------------------------------------
class CsvRows:
    """Writes records as CSV."""

    def __init__(self, sink: Sink, columns: TableColumns) -> None:
        self._sink = sink
        self._names = columns.names
        self._known = frozenset(self._names)
        self._buffer = io.StringIO(newline="")
        self._csv = csv.writer(self._buffer, lineterminator="\n")
        self._put([*FIXED, *self._names, REST, TEXT])

    def write(self, record: ExportRecord) -> None:
        """Write one row."""
        row = flat(record.document)
        rest = {name: value for name, value in row.items() if name not in self._known}
        front = ["" if value is None else str(value) for value in record.fixed().values()]
        cells = [cell(row[name]) if name in row else "" for name in self._names]
        last = [json.dumps(rest, ensure_ascii=False) if rest else ""]
        self._put([*front, *cells, *last, record.text])

    def close(self) -> None:
        """Nothing belongs at the end."""

    def _put(self, cells: Sequence[str]) -> None:
        self._csv.writerow(cells)
        self._sink.write(self._buffer.getvalue().encode("utf-8", "backslashreplace"))
        self._buffer.seek(0)
        self._buffer.truncate()


_ROWS = 1_000
_GROUP_BYTES = 16 << 20
_FRONT = (*FIXED, DOCUMENT, TEXT)


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
