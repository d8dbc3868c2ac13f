"""Series: an aggregate as a file: an entry for each of the newest iterations, and what the older ones come to.

Owns how a file of one entry an iteration stays small however many iterations there are: as many of the newest as there
is room for stand in it one by one, the others only as a sum. Sums are made in the order of the iterations, so that one
that grew step by step is the one that is made anew. What an entry says is the business of those who make it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Entry = Mapping[str, Any]
Fold = Callable[[Entry, int, Entry], dict[str, Any]]
"""The sum so far ({} at first), the number and entry of the next iteration; the new sum."""

ROOM = 16_000
"""So many keys and values at most stand in the entries together: a file of some 200 kB."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class Series:
    """The entries of an aggregate by iteration, and the sum of those up to ``until``.

    Attributes:
        entries: each with its ``source``, which names what it was made from.
        earlier: the sum of the iterations up to ``until``, of which there are ``count``; ``size`` is that of the last
            one's entry, ``source`` is made from theirs.
    """

    entries: Mapping[int, Entry] = field(default_factory=dict)
    earlier: Entry = field(default_factory=dict)
    until: int = -1
    count: int = 0
    size: int = 0
    source: str = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Series | None:
        """The series that a file holds; None where it is none of this version's."""
        folded, entries = values.get("earlier", {}), values.get("iterations")
        if values.get("version") != VERSION or not isinstance(entries, dict) or not isinstance(folded, dict):
            return None
        if not all(number.isdecimal() and isinstance(entry, dict) for number, entry in entries.items()):
            return None
        header = {name: folded.get(name) for name in ("until", "count", "size")}
        if folded and not all(isinstance(value, int) for value in header.values()):
            return None
        if folded and not (isinstance(folded.get("sum"), dict) and isinstance(folded.get("source"), str)):
            return None
        by_number = {int(number): entry for number, entry in entries.items()}
        if not folded:
            return cls(by_number)
        return cls(by_number, folded["sum"], folded["until"], folded["count"], folded["size"], folded["source"])

    def to_dict(self) -> dict[str, Any]:
        """As the file has it, without what is worked out from the entries."""
        made: dict[str, Any] = {}
        if self.count:
            header = {"until": self.until, "count": self.count, "size": self.size, "source": self.source}
            made["earlier"] = {**header, "sum": dict(self.earlier)}
        made["iterations"] = {str(number): dict(self.entries[number]) for number in sorted(self.entries)}
        return made

    def put(self, entries: Mapping[int, Entry], fold: Fold) -> Series | None:
        """The series with these entries, trimmed to the room; None where it must be made anew to be exact.

        That is so where one of them lies in the sum, or where there is room again for the newest that does.
        """
        if any(number <= self.until for number in entries):
            return None
        series = Series(
            {**self.entries, **entries}, self.earlier, self.until, self.count, self.size, self.source
        ).trimmed(fold)
        used = sum(size_of(entry) for entry in series.entries.values())
        return None if series.count and used + series.size <= ROOM and series.until == self.until else series

    def trimmed(self, fold: Fold) -> Series:
        """With the oldest entries in the sum, as many as there is no room for; the newest always stays."""
        numbers = sorted(self.entries)
        used, kept = 0, 0
        for number in reversed(numbers):
            used += size_of(self.entries[number])
            if kept and used > ROOM:
                break
            kept += 1
        earlier, until, count, size, source = self.earlier, self.until, self.count, self.size, self.source
        for number in numbers[: len(numbers) - kept]:
            entry = self.entries[number]
            earlier, until, count, size = fold(earlier, number, entry), number, count + 1, size_of(entry)
            source = chained(source, number, entry)
        left = {number: self.entries[number] for number in numbers[len(numbers) - kept :]}
        return Series(left, earlier, until, count, size, source)

    def summed(self, fold: Fold) -> Entry:
        """The sum of all iterations."""
        total = self.earlier
        for number in sorted(self.entries):
            total = fold(total, number, self.entries[number])
        return total


def size_of(value: Any) -> int:
    """How many keys and values stand in a value, about as they are counted when a document is read."""
    if isinstance(value, Mapping):
        return 2 + sum(2 + size_of(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return 2 + sum(1 + size_of(inner) for inner in value)
    return 0


def chained(source: str, number: int, entry: Entry) -> str:
    """The source of a sum after the next iteration."""
    return hashlib.sha256(f"{source}\0{number}\0{entry.get('source', '')}".encode()).hexdigest()[:16]
