"""Comments: those of a YAML text by the field they stand with, and how lost ones come back (K4).

Owns finding comments beside what the YAML reader says of values, and putting one above its field. Must not know where
the texts come from. What it makes is proved by the caller, which reads it again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from memfs.files.nodes import Entry, Node

_HEADER = re.compile(r"[|>][-+0-9]*")
_COMMENT = re.compile(r"(?:^|(?<=[ \t\n]))#[^\r\n]*")
_SPACES = re.compile(" *")
_END = ("",)
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: the keys that lead to its field, and its text. Places in lists do not count: parts move.

    Attributes:
        field: of the key that follows it, or that it stands behind on one line; what no key follows has a field of its
            own, and so has what begins the file.
        text: from the number sign on.
    """

    field: Keys
    text: str


def comments(text: str, root: Node) -> list[Comment]:
    """The comments of a YAML text, in order."""
    keys = list(_keys(root, ()))
    starts = [entry.start for entry, _ in keys]
    found = []
    for start, written in _found(text, root):
        behind = bisect_right(starts, start)
        line = text.rfind("\n", 0, start) + 1
        if text[line:start].strip() and behind:  # behind a value, on its line
            found.append(Comment(keys[behind - 1][1], written))
        else:
            found.append(Comment(keys[behind][1] if behind < len(keys) else _END, written))
    return found


def with_comments(text: str, root: Node, added: Iterable[Comment]) -> str:
    """The text with comments on lines of their own above their fields, at the end where the field is not there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    known: dict[Keys, Entry] = {}
    for entry, keys in _keys(root, ()):
        known.setdefault(keys, entry)
    lines: dict[int, list[str]] = {}
    for comment in added:
        found = _nearest(known, comment.field)
        at = len(text) if found is None else text.rfind("\n", 0, found.start) + 1
        lines.setdefault(at, []).append(f"{_indentation(text, at)}{comment.text}{newline}")
    if len(text) in lines and text and not text.endswith("\n"):
        lines[len(text)].insert(0, newline)
    result, at = [], 0
    for place in sorted(lines):
        result += [text[at:place], *lines[place]]
        at = place
    return "".join([*result, text[at:]])


# -- internal -----------------------------------------------------------------------------------------------------
def _found(text: str, root: Node) -> Iterator[tuple[int, str]]:
    """Where each comment begins, and the comment: a number sign that is no part of a key or a value."""
    taken = sorted(_taken(text, root))
    starts = [start for start, _ in taken]
    at = 0
    while match := _COMMENT.search(text, at):
        before = bisect_right(starts, match.start()) - 1
        if before >= 0 and match.start() < taken[before][1]:
            at = taken[before][1]  # behind a text with a number sign, a comment may follow on its line
        else:
            at = match.end()
            yield match.start(), match[0].rstrip()


def _taken(text: str, node: Node) -> Iterator[tuple[int, int]]:
    """The stretches of keys and scalars; of a block text what follows its header's line."""
    if node.kind == "scalar":
        header = _HEADER.match(text, node.start) if node.style == "block" else None
        yield (text.find("\n", header.end()) if header else node.start), node.end
    for entry in node.entries:
        yield entry.start, entry.end
        yield from _taken(text, entry.value)
    for item in node.items:
        yield from _taken(text, item)


def _keys(node: Node, above: Keys) -> Iterator[tuple[Entry, Keys]]:
    """Every key with the keys that lead to it, as they stand in the text."""
    for entry in node.entries:
        here = (*above, entry.key)
        yield entry, here
        yield from _keys(entry.value, here)
    for item in node.items:
        yield from _keys(item, above)


def _indentation(text: str, line: int) -> str:
    """That of a line: behind a text in a block, a comment that is indented further would be part of the text."""
    found = _SPACES.match(text, line)
    return found[0] if found else ""


def _nearest(known: Mapping[Keys, Entry], field: Keys) -> Entry | None:
    """The key of a field, or of the nearest one around it."""
    near = (field[:length] for length in range(len(field), 0, -1))
    return next((known[keys] for keys in near if keys in known), None)
