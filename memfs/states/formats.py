"""Formats: which there are, and CSV.

Owns the choice of a writer and a reader by name or by a file's ending, and what a CSV file holds: one row per document,
a column per dotted name. Knows nothing of the workspace.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from memfs.errors import ItemSyntaxError, ItemTooLarge, QueryInvalid
from memfs.model.kinds import nearest
from memfs.states.columns import FIXED, REST, TEXT, Columns, cell, flat, nested, value_of
from memfs.states.record import LONGEST, JsonLines, Record, Sink, Writer, load, read_json_lines, record_of

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


def writer(form: str, sink: Sink, columns: Columns) -> Writer:
    """What writes records to a sink.

    Raises:
        ExtraMissing: the format needs a package that is not installed.
    """
    if form == "jsonl":
        return JsonLines(sink)
    if form == "csv":
        return CsvRows(sink, columns)
    from memfs.states.parquet import ParquetRows  # its package is an extra

    return ParquetRows(sink, columns)


def require(form: str) -> None:
    """See to it that a format can be read and written here.

    Raises:
        ExtraMissing: it needs a package that is not installed.
    """
    if form == "parquet":
        from memfs.states.parquet import require_extra

        require_extra()


def read(form: str, source: BinaryIO) -> Iterator[Record]:
    """The records that a file holds.

    Raises:
        ContentError: it holds something else; ``line`` says where.
        ExtraMissing: the format needs a package that is not installed.
    """
    if form == "jsonl":
        return read_json_lines(source)
    if form == "csv":
        return read_csv(source)
    from memfs.states.parquet import read_parquet

    return read_parquet(source)


# -- CSV ----------------------------------------------------------------------------------------------------------
class CsvRows:
    """Writes records as CSV; ``text`` has a column only where a record needs it."""

    def __init__(self, sink: Sink, columns: Columns, with_text: bool = True) -> None:
        self._sink = sink
        self._names = columns.names
        self._known = frozenset(self._names)
        self._buffer = io.StringIO(newline="")
        self._csv = csv.writer(self._buffer, lineterminator="\n")
        self._put([*FIXED, *self._names, REST, *([TEXT] if with_text else [])])
        self._with_text = with_text

    def write(self, record: Record) -> None:
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


def read_csv(source: BinaryIO) -> Iterator[Record]:
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


def _record(header: list[str], cells: list[str], number: int) -> Record:
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
