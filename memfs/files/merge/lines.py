"""Lines: what two changed versions of a sequence have in common with the version both began from (K4).

Owns the three-way comparison of sequences: of a text's lines, of a list's elements; and a whole file joined by lines.
The work is bounded, whatever the sequences hold. Must not know what an element means.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

Element = TypeVar("Element", bound=Hashable)
Pair = tuple[int, int]

MARKER = 7
_CLOSE_LOOK = 400  # elements of both sides that are compared one by one; more are matched by those that are unique
_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class Hunk(Generic[Element]):
    """A stretch of the three versions. Stretches follow each other, and together are the whole of each version.

    Attributes:
        base, ours, theirs: the elements of each version.
        clash: whether both sides changed the stretch, to different ones.
    """

    base: Sequence[Element]
    ours: Sequence[Element]
    theirs: Sequence[Element]
    clash: bool = False

    @property
    def joined(self) -> Sequence[Element]:
        """What stands in the result where the two do not clash: the side's that changed it."""
        return self.theirs if self.ours == self.base else self.ours


@dataclass(frozen=True, slots=True)
class Joined:
    """A file joined by lines; ``clean`` says that no two changes clashed, so that no markers stand in it."""

    data: bytes
    clean: bool


def hunks(base: Sequence[Element], ours: Sequence[Element], theirs: Sequence[Element]) -> Iterator[Hunk[Element]]:
    """The stretches of three versions of a sequence, in order.

    Two changes clash where they overlap or touch and differ. What both sides have at the beginning and the end of a
    clash is taken out of it; where both versions were made from nothing, whatever they have in common.
    """
    in_ours, in_theirs = dict(pairs(base, ours)), dict(pairs(base, theirs))
    common = [(index, in_ours[index], in_theirs[index]) for index in in_ours if index in in_theirs]
    b, o, t = 0, 0, 0
    for left, right in _runs(common):
        (b1, o1, t1), (b2, o2, t2) = left, right
        yield from _stretch(base[b:b1], ours[o:o1], theirs[t:t1])
        yield Hunk(base[b1 : b2 + 1], ours[o1 : o2 + 1], theirs[t1 : t2 + 1])
        b, o, t = b2 + 1, o2 + 1, t2 + 1
    yield from _stretch(base[b:], ours[o:], theirs[t:])


def merge_lines(base: bytes, ours: bytes, theirs: bytes, marker_size: int = MARKER) -> Joined:
    """Three versions of a file joined by lines, as ``git merge-file`` does; clashes stand between conflict markers."""
    found: list[bytes] = []
    clean = True
    for hunk in hunks(_split(base), _split(ours), _split(theirs)):
        if hunk.clash:
            clean = False
            newline = b"\r\n" if hunk.ours and hunk.ours[0].endswith(b"\r\n") else b"\n"
            found += _marked(hunk, newline, marker_size)
        else:
            found += hunk.joined
    return Joined(b"".join(found), clean)


def whole_marked(ours: bytes, theirs: bytes, marker_size: int = MARKER) -> bytes:
    """Two files between conflict markers, where no part of one can be told from the other."""
    return b"".join(_marked(Hunk((), (ours,), (theirs,), clash=True), b"\n", marker_size))


def pairs(one: Sequence[Element], other: Sequence[Element]) -> list[Pair]:
    """Positions of equal elements in two sequences, rising in both.

    Elements that are unique in both sequences are matched so that as many as possible keep their order; then those
    between them, where each stretch is looked at by itself. What repeats too often to be told apart stays unmatched.
    """
    found: list[Pair] = []
    waiting = [(0, len(one), 0, len(other), 0)]
    while waiting:
        left, right, low, high, depth = waiting.pop()
        while left < right and low < high and one[left] == other[low]:
            found.append((left, low))
            left, low = left + 1, low + 1
        while left < right and low < high and one[right - 1] == other[high - 1]:
            right, high = right - 1, high - 1
            found.append((right, high))
        if left == right or low == high:
            continue
        anchors = _anchors(one, other, (left, right, low, high)) if depth < _DEEPEST else []
        if anchors:
            found += anchors
            ends = [(left - 1, low - 1), *anchors, (right, high)]
            waiting += [(i + 1, k, j + 1, m, depth + 1) for (i, j), (k, m) in pairwise(ends)]
        elif right - left + high - low <= _CLOSE_LOOK:
            found += _close(one, other, (left, right, low, high))
    return sorted(found)


def rising(numbers: Sequence[int]) -> list[int]:
    """Where the numbers of a longest subsequence stand that rises, in order (by patience sorting)."""
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for at, number in enumerate(numbers):
        pile = bisect_left(tops, number)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [number]
        piles[pile : pile + 1] = [at]
    result, at = [], piles[-1] if piles else -1
    while at >= 0:
        result.append(at)
        at = before[at]
    return result[::-1]


# -- internal -----------------------------------------------------------------------------------------------------
Window = tuple[int, int, int, int]


def _anchors(one: Sequence[Element], other: Sequence[Element], window: Window) -> list[Pair]:
    """The longest run, in both orders, of elements that each side has once."""
    left, right, low, high = window
    once = {element for element, count in Counter(one[left:right]).items() if count == 1}
    there = Counter(element for element in other[low:high] if element in once)
    place = {other[at]: at for at in range(low, high) if there.get(other[at]) == 1}
    matches = [(at, place[one[at]]) for at in range(left, right) if one[at] in place]
    return [matches[at] for at in rising([there for _, there in matches])]


def _close(one: Sequence[Element], other: Sequence[Element], window: Window) -> Iterator[Pair]:
    left, right, low, high = window
    matcher = difflib.SequenceMatcher(None, one[left:right], other[low:high], autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield left + block.a + step, low + block.b + step


def _runs(common: Iterable[tuple[int, int, int]]) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """The first and the last of each run of places that follow each other in all three versions."""
    first = last = None
    for place in common:
        if last is not None and first is not None and place != (last[0] + 1, last[1] + 1, last[2] + 1):
            yield first, last
            first = None
        first, last = first or place, place
    if first is not None and last is not None:
        yield first, last


def _stretch(base: Sequence[Element], ours: Sequence[Element], theirs: Sequence[Element]) -> Iterator[Hunk[Element]]:
    """What lies between two places that all versions share."""
    if not (base or ours or theirs):
        return
    if base in (ours, theirs) or ours == theirs:
        yield Hunk(base, ours, theirs)
        return
    if not base:
        yield from _from_nothing(base, ours, theirs)
        return
    start, end = 0, 0
    least = min(len(ours), len(theirs))
    while start < least and ours[start] == theirs[start]:
        start += 1
    while end < least - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    if start:
        yield Hunk(base[:0], ours[:start], theirs[:start])
    one, other = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    yield Hunk(base, one, other, clash=base not in (one, other))
    if end:
        yield Hunk(base[:0], ours[len(ours) - end :], theirs[len(theirs) - end :])


def _from_nothing(
    nothing: Sequence[Element], ours: Sequence[Element], theirs: Sequence[Element]
) -> Iterator[Hunk[Element]]:
    """Two additions at one place: what they have in common, what one has alone, and what differs."""
    o = t = 0
    for i, j in [*pairs(ours, theirs), (len(ours), len(theirs))]:
        if i > o or j > t:
            yield Hunk(nothing, ours[o:i], theirs[t:j], clash=i > o and j > t)
        if i < len(ours) and j < len(theirs):
            yield Hunk(nothing, ours[i : i + 1], theirs[j : j + 1])
        o, t = i + 1, j + 1


def _split(data: bytes) -> list[bytes]:
    """The lines with their newlines. (``bytes.splitlines`` would split at a lone carriage return, too.)"""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _marked(hunk: Hunk[bytes], newline: bytes, size: int) -> list[bytes]:
    return [
        b"<" * size + b" ours" + newline,
        *_ended(hunk.ours, newline),
        b"=" * size + newline,
        *_ended(hunk.theirs, newline),
        b">" * size + b" theirs" + newline,
    ]


def _ended(lines: Sequence[bytes], newline: bytes) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + newline for line in lines]
