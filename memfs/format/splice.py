"""Changes single fields of a YAML text and leaves every other character alone.

Works at any depth of block mappings and for single elements of block sequences. Comments, key order, blank lines, line
endings and quoting stay. What cannot be changed safely is declined, not guessed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from memfs.format import yaml_text
from memfs.format.plain import same
from memfs.format.yaml_text import KeyNode, Node

Order = Mapping[str, Any]
"""Canonical key order: key to the order inside it (an empty mapping where there is none)."""

_MAX_PARTS = 400
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*")
_COMMENT_TAIL = re.compile(r"(?:[ \t]+#[^\r\n]*)?[ \t]*(?=[\r\n]|\Z)")


class Unspliceable(Exception):
    """The text is laid out in a way that single fields cannot be replaced in it."""


def splice(text: str, root: Node, old: Mapping[str, Any], new: Mapping[str, Any], order: Order) -> str:
    """The text with the fields changed in which ``new`` differs from ``old``.

    Args:
        text: a YAML text whose root is a mapping and whose last line is ended by a newline.
        root: its positions.
        old: its value.
        new: the value it shall have.
        order: where keys that are new belong.

    Raises:
        Unspliceable: the layout does not allow it.
    """
    if root.kind != "map" or root.style != "block":
        raise Unspliceable
    edits = _Edits(text)
    edits.mapping(root, old, new, order)
    return edits.apply()


def replace_lines(text: str, old: Mapping[str, Any], new: Mapping[str, Any], order: Order) -> str | None:
    """As ``splice``, but quicker, where each changed field has the very lines that memfs gives it; else None."""
    lined = f"\n{text}"
    starts = sorted((lined.find(f"\n{key}:"), key) for key in old)
    if not starts or starts[0][0] < 0 or "\r" in text or text[-1] != "\n":
        return None
    ends = [*(start for start, _ in starts[1:]), len(text)]
    held = {key: text[start:end] for (start, key), end in zip(starts, ends, strict=True)}
    parts, ranks = {key: [lines] for key, lines in held.items()}, _ranks(order, new)
    for key, lines in held.items():
        if key not in new or not same(old[key], new[key]):
            if not (_is_simple(old[key]) and _is_simple(new.get(key)) and lines == _lines(key, old[key])):
                return None
            parts[key] = [_lines(key, new[key])] if key in new else []
    for key in sorted(new.keys() - old.keys(), key=ranks.__getitem__):
        nearest = max(
            (rank, name) for name in held if (rank := ranks.get(name, -1)) < ranks[key] or name == starts[0][1]
        )[1]
        if ranks.get(nearest, -1) > ranks[key] or held[nearest] != _lines(nearest, old[nearest]):
            return None
        parts[nearest].append(_lines(key, new[key]))
    return text[: starts[0][0]] + "".join(chain.from_iterable(parts.values()))


def _is_simple(value: Any) -> bool:
    """Whether a value has no parts whose order or style in the text is to stay."""
    if value.__class__ is list:
        return bool(value) and {str}.issuperset(map(type, value))
    return value.__class__ is not dict


def _lines(key: str, value: Any) -> str:
    return "\n".join(yaml_text.entry(key, value, 0)) + "\n"


def with_last_newline(text: str, root: Node) -> str:
    """The text with a newline at its end, which must not become part of a text block that ends there."""
    if text.endswith("\n"):
        return text
    last = _last_leaf(root)
    header = _BLOCK_HEADER.match(text, last.start) if last.style == "block" else None
    if header and header[0][-1] not in "-+":
        text = f"{text[: header.end()]}-{text[header.end() :]}"
    return text + ("\r\n" if "\r\n" in text else "\n")


def _last_leaf(node: Node) -> Node:
    """The value that ends a block collection."""
    while node.style == "block" and node.kind != "scalar":
        node = node.items[-1] if node.items else node.entries[-1].value
    return node


class _Edits:
    """Collects replacements of one text: where each begins and ends, and what comes there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.edits: list[tuple[int, int, str]] = []

    def apply(self) -> str:
        result: list[str] = []
        at = 0
        for start, end, text in sorted(self.edits, key=itemgetter(0, 1)):
            if start < at:
                raise Unspliceable
            result += self.text[at:start], text
            at = end
            if text.endswith(self.newline * 2):  # blank lines below would become part of its own at the end
                while at < len(self.text) and not self.text[at : self._next_line(at)].strip():
                    at = self._next_line(at)
        result.append(self.text[at:])
        return "".join(result)

    # -- mappings -------------------------------------------------------------------------------------------------
    def mapping(self, node: Node, old: Mapping[str, Any], new: Mapping[str, Any], order: Order) -> None:
        indent = node.entries[0].column
        for entry in node.entries:
            if self.text[self.line_start(entry.start) : entry.start] != " " * indent:
                raise Unspliceable
            if entry.key not in new:
                self._delete(self.line_start(entry.start), self._content_end(entry.value))
            elif not same(old[entry.key], new[entry.key]):
                self._value(entry, old[entry.key], new[entry.key], order.get(entry.key, {}))
        ranks = _ranks(order, new)
        for key in sorted(new.keys() - old.keys(), key=ranks.__getitem__):
            # behind the nearest key that belongs before it, else before the first key
            before = [(rank, entry) for entry in node.entries if (rank := ranks.get(entry.key, -1)) < ranks[key]]
            nearest = max(before, key=itemgetter(0), default=None)
            at = self._content_end(nearest[1].value) if nearest else self._above(node.entries[0])
            self._insert(at, yaml_text.entry(key, new[key], indent))

    def _above(self, entry: KeyNode) -> int:
        """The start of the key's line, or of the comment right above it unless that begins the file."""
        start = self.line_start(entry.start)
        above = start
        while above > 0:
            previous = self.line_start(above - 1)
            if not self.text[previous:above].lstrip(" ").startswith("#"):
                return above
            above = previous
        return start

    # -- values ---------------------------------------------------------------------------------------------------
    def _value(self, entry: KeyNode, old: Any, new: Any, order: Order) -> None:
        node = entry.value
        if node.kind == "map" and node.style == "block" and isinstance(new, Mapping) and new:
            self.mapping(node, old, new, order)
        elif node.kind == "seq" and node.style == "block" and isinstance(new, list) and new:
            self._sequence(node, old, new)
        else:
            self._replace(entry, new)

    def _replace(self, entry: KeyNode, new: Any) -> None:
        """Put a new value behind the key; a comment at the end of the key's line stays."""
        node = entry.value
        colon = entry.end
        while self.text[colon : colon + 1] in (" ", "\t"):
            colon += 1
        if self.text[colon : colon + 1] != ":":
            raise Unspliceable
        colon += 1  # behind it
        head, body = yaml_text.parts(new, entry.column, entry.column)
        if node.style == "flow" and isinstance(new, (Mapping, list)) and "\n" not in self.text[node.start : node.end]:
            # a short collection stays on one line where it was on one
            inline = yaml_text.flow(new)
            head, body = (inline, []) if len(inline) <= yaml_text.MAX_FLOW else (head, body)
        # where the comment of the key's line may begin
        first_end = colon if self.text.find("\n", colon, node.start) >= 0 else node.end
        if node.style == "block" and node.kind == "scalar":
            header = _BLOCK_HEADER.match(self.text, node.start)
            first_end = header.end() if header else node.start
        tail = _COMMENT_TAIL.match(self.text, first_end)
        kept = tail[0].rstrip() if tail else ""
        end = max(self._content_end(node), self._next_line(first_end))
        lines = [(f" {head}" if head else "") + kept, *body]
        self.edits.append((colon, end, self.newline.join(lines) + self.newline))

    # -- sequences ------------------------------------------------------------------------------------------------
    def _sequence(self, node: Node, old: list[Any], new: list[Any]) -> None:
        """Leave the parts that stay, with their comments; remove and insert whole parts."""
        indent = node.column
        starts = [self.line_start(item.start) for item in node.items]
        for start, item in zip(starts, node.items, strict=True):
            if self.text[start : start + indent + 1] != " " * indent + "-" or item.start <= start + indent:
                raise Unspliceable
        ends = [self._content_end(item) for item in node.items]
        for tag, left, right, low, high in _changes(old, new):
            if tag in ("delete", "replace"):
                for index in range(left, right):
                    self._delete(starts[index], ends[index])
            if tag in ("insert", "replace"):
                at = starts[left] if left < len(starts) else ends[-1]
                at = ends[left - 1] if left and tag == "insert" else at
                self._insert(at, [line for value in new[low:high] for line in yaml_text.element(value, indent)])

    # -- text -----------------------------------------------------------------------------------------------------
    def _insert(self, at: int, lines: Sequence[str]) -> None:
        self.edits.append((at, at, self.newline.join(lines) + self.newline))

    def _delete(self, start: int, end: int) -> None:
        self.edits.append((start, end, ""))

    def _content_end(self, node: Node) -> int:
        """The start of the line below a value; blank lines below a text belong to it only where they count."""
        last = _last_leaf(node)
        if last.kind == "scalar" and last.style == "block":
            header = _BLOCK_HEADER.match(self.text, last.start)
            if header and "+" in header[0]:
                return last.end
            return self._next_line(max(len(self.text[: last.end].rstrip(" \t\r\n")), last.start))
        return self._next_line(last.end)

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def _next_line(self, offset: int) -> int:
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1


def _ranks(order: Order, new: Mapping[str, Any]) -> dict[str, int]:
    """Rank of each key: canonical where there is an order, else as in the new mapping, behind the canonical ones."""
    return {name: rank for rank, name in enumerate([*order, *(key for key in new if key not in order)])}


def _changes(old: list[Any], new: list[Any]) -> list[tuple[str, int, int, int, int]]:
    if len(old) + len(new) > _MAX_PARTS:
        raise Unspliceable
    # as JSON they are equal only where their values are: it distinguishes 1 from 1.0 and from true
    left, right = ([json.dumps(part, sort_keys=True) for part in parts] for parts in (old, new))
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return [change for change in matcher.get_opcodes() if change[0] != "equal"]
