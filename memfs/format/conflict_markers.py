"""Puts two versions between merge conflict markers, finds the markers, and separates the versions again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MARKER = 7
_OURS, _BASE, _MIDDLE, _THEIRS = b"<|=>"
_FIRST = re.compile(rb"^(<{7,}|>{7,})(?=[ \r\n]|\Z)", re.MULTILINE)
_BETWEEN, _IN_OURS, _IN_BASE, _IN_THEIRS = range(4)


class Sides(NamedTuple):
    """What a file with markers was made from; ``base`` is None where the markers do not say."""

    ours: bytes
    base: bytes | None
    theirs: bytes


def marked(
    ours: Sequence[bytes], theirs: Sequence[bytes], marker_size: int = MARKER, newline: bytes = b"\n"
) -> list[bytes]:
    """The lines of two versions between conflict markers."""
    return [
        b"<" * marker_size + b" ours" + newline,
        *_ended(ours, newline),
        b"=" * marker_size + newline,
        *_ended(theirs, newline),
        b">" * marker_size + b" theirs" + newline,
    ]


def _ended(lines: Sequence[bytes], newline: bytes) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + newline for line in lines]


def whole_marked(ours: bytes, theirs: bytes, marker_size: int = MARKER) -> bytes:
    """Two files between conflict markers, where no part of one can be distinguished from the other."""
    return b"".join(marked((ours,), (theirs,), marker_size))


def has_markers(data: bytes) -> bool:
    """Whether a line begins as the first or the last marker does; of a merge within a merge they are longer."""
    return _FIRST.search(data) is not None


def marker_line(data: bytes) -> int:
    """The 1-based line of the first such marker, 0 where there is none."""
    first = _FIRST.search(data)
    return data.count(b"\n", 0, first.start()) + 1 if first else 0


def sides(data: bytes) -> Sides | None:
    """The versions between the markers, each with what is around them; None where the markers do not pair."""
    first = _FIRST.search(data)
    size = len(first[1]) if first else 0
    ours: list[bytes] = []
    base: list[bytes] = []
    theirs: list[bytes] = []
    place, with_base, pairs = _BETWEEN, 0, 0
    for line in data.splitlines(keepends=True):
        following = _after(line.rstrip(b"\r\n"), place, size)
        if following is None:
            return None
        if following != place:
            with_base += following == _IN_BASE
            pairs += following == _BETWEEN
            place = following
            continue
        for version, here in ((ours, _IN_OURS), (base, _IN_BASE), (theirs, _IN_THEIRS)):
            if place in (_BETWEEN, here):
                version.append(line)
    if place != _BETWEEN or not pairs:
        return None
    return Sides(b"".join(ours), b"".join(base) if with_base == pairs else None, b"".join(theirs))


def _after(line: bytes, place: int, size: int) -> int | None:
    """Where the text after a line is; None where a marker is in the wrong place."""
    if _is(line, _OURS, size):
        return _IN_OURS if place == _BETWEEN else None
    if _is(line, _THEIRS, size):
        return _BETWEEN if place == _IN_THEIRS else None
    if place == _IN_OURS and _is(line, _BASE, size):
        return _IN_BASE
    if _is(line, _MIDDLE, size) and len(line) == size:
        return _IN_THEIRS if place in (_IN_OURS, _IN_BASE) else None if place == _IN_THEIRS else place
    return place


def _is(line: bytes, sign: int, size: int) -> bool:
    mark = bytes((sign,)) * size
    return size > 0 and (line == mark or line.startswith(mark + b" "))
