"""JSON splice: putting a value into somebody's JSON text, and taking it out again, without touching another byte.

Owns how an insertion looks, so that a removal needs no record of what was there before:

- Behind other parts it is one piece, from the end of the part before it to its own end.
- In a collection that was empty it stands directly behind the bracket, and what stood between the brackets after it.
  Collections that are made for it begin on a line of their own; these go with their last part, those stay.
- In a file that held blanks alone, the brackets that are made have one space inside.

Knows nothing of settings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memfs.errors import ContentError
from memfs.files import jsontext, nodes
from memfs.files.nodes import Node

Path = tuple[str | int, ...]
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a collection: where its text begins (with its key, if it has one) and ends."""

    start: int
    end: int
    value: Node


def is_blank(text: str) -> bool:
    """Whether a text says nothing at all."""
    return not text.strip(_BLANK)


def put(text: str, path: Path, value: Any) -> str:
    """The text with a value at a path: in the place of what is there, else at the end of its collection.

    Args:
        text: JSON; blanks alone, or none, where there is nothing yet, and then the path has one key.

    Raises:
        ItemSyntaxError, DuplicateKey, ItemTooDeep: the text cannot be read, with line and remedy.
        KeyError: the collection that the path leads into is not there.
    """
    newline, unit = _newline(text), _unit(text)
    if is_blank(text):
        return _first(text, str(path[0]), value)
    root = jsontext.tree(text)
    there = _found(root, path)
    if there is not None:
        shown = _rendered(value, newline, unit, _indent(text, there.value.start))
        return text[: there.value.start] + shown + text[there.value.end :]
    home = _found(root, path[:-1])
    if home is None:
        raise KeyError(path)
    return _appended(text, home.value, path[-1], value, newline, unit)


def take(text: str, path: Path) -> str | None:
    """The text without the value at a path, and without the collections that were made for it; None if that is all.

    Raises:
        what ``put`` raises.
    """
    root = jsontext.tree(text)
    home, there = _found(root, path[:-1]), _found(root, path)
    if home is None or there is None:
        raise KeyError(path)
    parts = _parts(home.value)
    at = parts.index(there)
    if at > 0:
        return text[: parts[at - 1].end] + text[there.end :]
    if len(parts) > 1:
        return text[: there.start] + text[parts[1].start :]
    between = text[home.value.start + 1 : there.start]
    if not between:
        return text[: there.start] + text[there.end :]
    if len(path) > 1:
        return take(text, path[:-1])
    return text[: root.start] + text[root.end :] if between == " " else None


# -- what a text says ---------------------------------------------------------------------------------------------
def said(text: str | None) -> dict[str, Any]:
    """All that a text says; nothing where it is blank, or there is none."""
    value: dict[str, Any] = {} if text is None or is_blank(text) else jsontext.load(text, None)
    return value


def below(text: str, key: str) -> dict[str, Any]:
    """The object below a key of the text's object; an empty one where nothing is there.

    Raises:
        ContentError: the text, or what stands there, is no object; or it cannot be read.
    """
    if is_blank(text):
        return {}
    if jsontext.tree(text).kind != "map":
        raise misshapen(text, (), "an object")
    found = said(text).get(key, {})
    if not isinstance(found, dict):
        raise misshapen(text, (key,), "an object")
    return found


def misshapen(text: str, path: Path, wanted: str) -> ContentError:
    """What is wrong with a value that is of another sort than a program expects there."""
    where = nodes.place(jsontext.tree(text), text, path)
    field = ".".join(str(part) for part in path) or None
    message = f"this is to be {wanted}"
    return ContentError(message, line=where.line, column=where.column, field=field, hint="correct it, or remove it")


# -- reading ------------------------------------------------------------------------------------------------------
def _found(root: Node, path: Path) -> _Part | None:
    part: _Part | None = _Part(root.start, root.end, root)
    for step in path:
        if part is None:
            return None
        part = _step(part.value, step)
    return part


def _step(node: Node, step: str | int) -> _Part | None:
    if isinstance(step, int):
        there = 0 <= step < len(node.items)
        return _parts(node)[step] if there else None
    entry = node.entry(step)
    return _Part(entry.start, entry.value.end, entry.value) if entry is not None else None


def _parts(node: Node) -> list[_Part]:
    if node.kind == "map":
        return [_Part(entry.start, entry.value.end, entry.value) for entry in node.entries]
    return [_Part(item.start, item.end, item) for item in node.items]


# -- writing ------------------------------------------------------------------------------------------------------
def _appended(text: str, home: Node, key: str | int, value: Any, newline: str, unit: str) -> str:
    parts = _parts(home)
    own = _own_line(text, parts[-1].start) if parts else None
    indent = _indent(text, home.start) + unit if own is None else own
    shown = _rendered(value, newline, unit, indent)
    if home.kind == "map":
        shown = f"{_quoted(key)}: {shown}"
    if not parts:
        return text[: home.start + 1] + shown + text[home.start + 1 :]
    return f"{text[: parts[-1].end]},{newline}{indent}{shown}{text[parts[-1].end :]}"


def _first(text: str, key: str, value: Any) -> str:
    """A whole object, where there was no file (an empty text stands for a file without a byte)."""
    newline, unit = _newline(text), "  "
    return f"{text}{{ {_quoted(key)}: {_rendered(value, newline, unit, '')} }}"


def made(key: str, value: Any) -> str:
    """The text of a file that is made for one key."""
    return f"{{\n  {_quoted(key)}: {_rendered(value, chr(10), '  ', '  ')}\n}}\n"


def _rendered(value: Any, newline: str, unit: str, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _quoted(key: object) -> str:
    return json.dumps(str(key), ensure_ascii=False)


def _newline(text: str) -> str:
    """How most lines end."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _unit(text: str) -> str:
    found = jsontext.indentation(text)
    return found if isinstance(found, str) else " " * found


def _line(text: str, at: int) -> str:
    """What stands before a position in its line."""
    return text[text.rfind("\n", 0, at) + 1 : at]


def _indent(text: str, at: int) -> str:
    """The blanks with which the line of a position begins."""
    before = _line(text, at)
    return before[: len(before) - len(before.lstrip(" \t"))]


def _own_line(text: str, at: int) -> str | None:
    """The blanks before a position, None where something else stands before it in its line."""
    before = _line(text, at)
    return before if not before.strip(" \t") else None
