"""Nodes: where each value of a text stands.

A value type shared by the readers, which make it, and by splice and error messages, which use it. Lines are 1-based,
columns and offsets 0-based. Must not know YAML or JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from memfs.files.plain import FieldPath

Shape = Literal["scalar", "map", "seq"]
Style = Literal["plain", "quoted", "block", "flow"]


@dataclass(slots=True)
class Node:
    """One value: its range in the text, its style, its parts, and the line of each key."""

    kind: Shape
    start: int
    end: int
    line: int
    column: int
    style: Style
    value: Any = None
    entries: list[Entry] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def entry(self, key: str) -> Entry | None:
        """The entry of a mapping with that key."""
        return next((entry for entry in self.entries if entry.key == key), None)


@dataclass(slots=True)
class Entry:
    """A key of a mapping, its range and place, and its value."""

    key: str
    start: int
    end: int
    line: int
    column: int
    value: Node


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field stands, 1-based, and how its value was typed ("" for a collection)."""

    line: int
    column: int
    typed: str = ""


def place(root: Node, text: str, path: FieldPath, of_key: bool = False) -> Place:
    """Where the field at ``path`` stands: its key, or its value; the nearest enclosing place where it is absent."""
    node, found = root, Place(root.line, root.column + 1)
    for depth, part in enumerate(path):
        if node.kind == "map":
            entry = node.entry(str(part))
            if entry is None:
                return found
            node = entry.value
            if (of_key and depth == len(path) - 1) or node.start == node.end:
                found = Place(entry.line, entry.column + 1)
                continue
        elif node.kind == "seq" and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            return found
        typed = text[node.start : node.end] if node.kind == "scalar" else ""
        found = Place(node.line, node.column + 1, typed)
    return found
