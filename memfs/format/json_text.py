"""Reads and writes JSON as strictly as YAML is read.

Refuses duplicate keys, deep nesting, NaN, infinity and integers beyond 64 bits, and knows the place of every value. The
standard library parses first; the scanner here runs only to locate an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from memfs.errors import ContentError, DuplicateKey, ItemSyntaxError, ItemTooDeep, ItemTooLarge
from memfs.format.plain import MAX_DEPTH, MAX_INT, MAX_KEY, MAX_PARTS, MIN_INT, KeyNode, Node
from memfs.format.text import position
from memfs.startup import regex

_TOKEN = regex(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)
_STRING = regex(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_RUNS = regex(r"[\[{]+|[\]}]+")
_BLANK = regex(r"[ \t\r\n]*")
_NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = regex(r"-?[A-Za-z_]+")
_COMMENTS = ("//", "/*", "#")
_CONSTANTS: dict[str, Any] = {"null": None, "true": True, "false": False}
# legal inside JSON strings, but line breaks or invisible to other readers
_ESCAPED = regex("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def load(text: str, parts: int | None = MAX_PARTS, first: int = 1) -> Any:
    """The value of a JSON text, made of dict, list, str, int, float, bool and None.

    Args:
        parts: how many keys, values and ends of collections there may be; None where the text is known to be memfs's,
            or whoever asked counts them.
        first: the line of the file at which the text begins, for errors.

    Raises:
        ItemSyntaxError, ItemTooDeep, ItemTooLarge, DuplicateKey: with line, column and remedy.
    """
    if parts is not None:
        _check_size(text, parts)
    try:
        return _LOADER.decode(text)
    except (ValueError, RecursionError):
        tree(text, first)
        raise ItemSyntaxError("not valid JSON", line=first, hint="correct the file") from None


def tree(text: str, first: int = 1) -> Node:
    """The same as positions.

    Raises:
        the same errors as ``load``.
    """
    return _Scanner(text, first).run()


def document(value: Any, indent: int | str = 2) -> str:
    """A whole file: indented, keys in their order, characters as they are, ending in one newline."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def indentation(text: str) -> int | str:
    """What an existing file indents with: its first indented line's blanks; 2 where it has none."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else 2


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs) or not all(0 < len(key) <= MAX_KEY for key in mapping):
        raise ValueError("keys")
    return mapping


def _integer(text: str) -> int:
    if len(text) > 20 or not MIN_INT <= (number := int(text)) <= MAX_INT:
        raise ValueError(f"{text[:30]}{'...' if len(text) > 30 else ''} does not fit into 64 bit")
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if number and math.isfinite(number):
        return number
    if not math.isfinite(number) or (number == 0 and re.search("[1-9]", re.split("[eE]", text)[0])):
        raise ValueError(f"{text[:40]} is outside the range of numbers")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number")


_LOADER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_fraction, parse_constant=_no_constant
)


def _check_size(text: str, most: int) -> None:
    """Refuse deep nesting and too many values before the recursive standard parser sees them."""
    opening = text.count("[") + text.count("{")
    if opening <= MAX_DEPTH and 2 * opening + text.count(",") + text.count(":") <= most:
        return
    signs = _STRING.sub("", text)
    if sum(map(signs.count, "[]{},:")) <= most and (opening <= MAX_DEPTH or _deepest(signs) <= MAX_DEPTH):
        return
    depth = parts = 0
    for match in _TOKEN.finditer(text):
        sign = match[0]
        if sign[0] == '"':
            continue
        parts += 1
        if parts > most:
            line, column = position(text, match.start())
            message = f"line {line}: more than {most} keys, values and ends of collections before it"
            raise ItemTooLarge(message, line=line, column=column, hint="split it into several items")
        if sign in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                line, column = position(text, match.start())
                message = f"nesting deeper than {MAX_DEPTH} at line {line}"
                raise ItemTooDeep(message, line=line, column=column, hint="flatten it")
        elif sign in "]}":
            depth -= 1


def _deepest(signs: str) -> int:
    """How deep collections lie in each other at most, where no text in quotes is left."""
    depth = deepest = 0
    for run in _RUNS.findall(signs):
        if run[0] in "[{":
            depth += len(run)
            deepest = max(deepest, depth)
        else:
            depth -= len(run)
    return deepest


def _scan_string(text: str, start: int) -> tuple[str, int]:
    scan: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
    return scan(text, start, True)


class _Scanner:
    """One pass over a JSON text with a stack of open collections."""

    def __init__(self, text: str, first: int) -> None:
        self.text, self.first = text, first
        self.at = 0
        self.line = first
        self.line_start = 0
        self.counted = 0

    def run(self) -> Node:
        root = self._value()
        stack = [root] if root.kind != "scalar" else []
        while stack:
            child = self._next_part(stack[-1])
            if child is None:
                stack.pop()
            elif child.kind != "scalar":
                if len(stack) >= MAX_DEPTH:
                    self._fail(f"nesting deeper than {MAX_DEPTH} at line {child.line}", "flatten it", ItemTooDeep)
                stack.append(child)
        self._skip()
        if self.at < len(self.text):
            self._fail("something follows the end of the JSON value", "remove it")
        return root

    def _next_part(self, parent: Node) -> Node | None:
        """The next value inside ``parent``, None when it is closed."""
        closing = "}" if parent.kind == "map" else "]"
        is_first = not parent.entries and not parent.items
        ahead = self._peek()
        if ahead == closing:
            self.at += 1
            parent.end = self.at
            return None
        if not is_first:
            if ahead != ",":
                self._fail(f"expected ',' or '{closing}'", "separate parts with ','")
            self.at += 1
            if self._peek() == closing:
                self._fail(f"',' before '{closing}'", "remove it")
        if parent.kind == "seq":
            parent.items.append(self._value())
            return parent.items[-1]
        parent.entries.append(self._entry(parent))
        return parent.entries[-1].value

    def _entry(self, parent: Node) -> KeyNode:
        if self._peek() != '"':
            self._fail("expected a key in double quotes", 'write "key": value')
        start, line, column = self.at, self.line, self.at - self.line_start
        key = self._string()
        first = parent.lines.setdefault(key, line)
        if len(parent.lines) == len(parent.entries):
            self.at = start
            self._fail(f"key {key!r} at line {line}, first at line {first}", "keep one of them", DuplicateKey)
        if not 0 < len(key) <= MAX_KEY:
            self.at = start
            self._fail(f"a key has {len(key)} characters", f"use 1 to {MAX_KEY}")
        end = self.at
        if self._peek() != ":":
            self._fail("expected ':' after the key", 'write "key": value')
        self.at += 1
        return KeyNode(key, start, end, line, column, self._value())

    def _value(self) -> Node:
        ahead = self._peek()
        start, line, column = self.at, self.line, self.at - self.line_start
        if ahead and ahead in "{[":
            self.at += 1
            return Node("map" if ahead == "{" else "seq", start, self.at, line, column, "flow")
        value = self._string() if ahead == '"' else self._bare()
        return Node("scalar", start, self.at, line, column, "quoted" if ahead == '"' else "plain", value=value)

    def _bare(self) -> Any:
        if number := _NUMBER.match(self.text, self.at):
            try:
                value = _fraction(number[0]) if number[1] or number[2] else _integer(number[0])
            except ValueError as error:
                self._fail(str(error), "put it in quotes if it is text")
            self.at = number.end()
            return value
        word = _WORD.match(self.text, self.at)
        if word and word[0] in _CONSTANTS:
            self.at = word.end()
            return _CONSTANTS[word[0]]
        if word and word[0].lstrip("-") in ("NaN", "Infinity", "inf", "nan"):
            self._fail(f"{word[0]} is not a finite number", "write a number or text")
        return self._fail(
            "expected a value", "write text in double quotes, a number, true, false, null, [...] or {...}"
        )

    def _string(self) -> str:
        try:
            value, end = _scan_string(self.text, self.at + 1)
        except json.JSONDecodeError as error:
            self.at = min(error.pos, len(self.text))
            self._fail(f"not valid JSON: {error.msg[0].lower()}{error.msg[1:]}", "correct the text in quotes")
        self.at = end
        return value

    def _peek(self) -> str:
        self._skip()
        return self.text[self.at : self.at + 1]

    def _skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        self._count()

    def _count(self) -> None:
        if lines := self.text.count("\n", self.counted, self.at):
            self.line += lines
            self.line_start = self.text.rfind("\n", self.counted, self.at) + 1
        self.counted = max(self.counted, self.at)

    def _fail(self, message: str, hint: str, kind: type[ContentError] = ItemSyntaxError) -> NoReturn:
        line, column = position(self.text, self.at)
        if kind is ItemSyntaxError and self.text.startswith(_COMMENTS, self.at):
            message, hint = "a comment, which JSON has none of", "remove it"
        raise kind(message, line=self.first - 1 + line, column=column, hint=hint)
