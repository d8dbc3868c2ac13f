"""Records: JSON that another store wrote, whatever is in it.

Owns reading a file, or standard input, as one JSON value or as one per line, within bounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from memfs.errors import ItemSyntaxError
from memfs.model.time import parse_time

_LONGEST = 100
_LONGEST_NAME = 200
_MOST_TAGS = 50


def records(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Each JSON value of a text with its line: the text is one value, or has one a line.

    A line that is no JSON gives its ``ItemSyntaxError`` as the value.

    Raises:
        ItemSyntaxError: nothing in it is JSON.
    """
    try:
        yield 1, _parsed(text)
        return
    except ItemSyntaxError as error:
        whole = error
    rows = [(number, row) for number, row in enumerate(text.split("\n"), 1) if row.strip()]
    values = [(number, _tried(row)) for number, row in rows]
    if not any(isinstance(value, dict) for _, value in values):
        whole.path = name
        raise whole
    yield from values


def _tried(row: str) -> Any:
    try:
        return _parsed(row)
    except ItemSyntaxError as error:
        return error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ItemSyntaxError("nested too deeply", hint="flatten it") from None
    except json.JSONDecodeError as error:
        raise ItemSyntaxError(f"not JSON: {error.msg}", line=error.lineno, hint="export it again") from error
    except ValueError as error:  # a number of thousands of digits
        raise ItemSyntaxError(f"not JSON: {error}"[:200], hint="export it again") from error


def line_of(value: Any) -> str:
    """A value as one line of text; "" where it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())


def name_of(value: Any) -> str:
    """A value as a name of bearable length."""
    return line_of(value)[:_LONGEST_NAME]


def tags_of(values: Any) -> tuple[str, ...]:
    """A list, or one text, as tags."""
    parts = values if isinstance(values, list) else [values]
    return tuple(dict.fromkeys(tag for part in parts if (tag := line_of(part)[:_LONGEST])))[:_MOST_TAGS]


def moment(value: Any) -> Any:
    """A time that another store wrote, None where it cannot be understood."""
    try:
        return parse_time(value) if isinstance(value, str) and value else None
    except (ValueError, OverflowError):
        return None
