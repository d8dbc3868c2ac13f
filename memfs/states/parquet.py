"""Parquet: records as typed columns, by pyarrow.

Owns what the columns are: the document as JSON, which is what an import reads, and a typed column for each dotted name,
which is what an analysis reads. Imported only where Parquet is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from memfs.errors import ExtraMissing, ItemSyntaxError, ItemTooLarge
from memfs.states.columns import DOCUMENT, FIXED, TEXT, Columns, fitting, flat
from memfs.states.record import LONGEST, Record, Sink, load, record_of

_ROWS = 1_000
_GROUP_BYTES = 16 << 20
_READ_ROWS = 100
_FRONT = (*FIXED, DOCUMENT, TEXT)
_HINT = "let 'memfs export --format parquet' write it"


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

    def __init__(self, sink: Sink, columns: Columns) -> None:
        self._pa = _pyarrow()
        self._sorts = dict(columns.sorts)
        self._schema = self._pa.schema([*_front(self._pa), *_typed(self._pa, self._sorts)])
        self._file = _File(sink)
        self._out = self._pa.parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._held = 0

    def write(self, record: Record) -> None:
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
def read_parquet(source: BinaryIO) -> Iterator[Record]:
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
                yield _record(row, number)
    except (pa.ArrowException, OSError) as error:  # OSError: what pyarrow raises over a damaged page
        raise ItemSyntaxError(f"not a whole Parquet file: {_first_line(error)}", hint=_HINT) from error


def _check(file: Any) -> None:
    for name in ("path", "type", DOCUMENT):
        if name not in file.schema_arrow.names:
            raise ItemSyntaxError("it does not have this column", field=name, hint=_HINT)
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).total_byte_size
        if size > 4 * LONGEST:
            raise ItemTooLarge(f"its group {group + 1} has {size:,} bytes", hint="write it in smaller groups of rows")


def _record(row: dict[str, Any], number: int) -> Record:
    document = row.get(DOCUMENT)
    if not isinstance(document, str):
        raise ItemSyntaxError("expected the document as JSON text", line=number, field=DOCUMENT, hint=_HINT)
    return record_of({**row, DOCUMENT: load(document, number)}, number)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
