"""Columns: the rows of an engine's documents as parallel lists, document number by document number.

Owns their form on disk, in one file, and selecting documents by filter. Each column is read when first asked for, so
that a cold search pays only for what it needs. Knows nothing of terms and scores.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

from memfs.index import sections
from memfs.index.rows import Filter, Row
from memfs.index.stamps import stem

_CODED = ("type", "agent", "session", "phase")
_CHUNK = 2048


class Columns:
    """The rows of documents 0 to n-1; ``dead`` ones were removed but keep their numbers."""

    def __init__(self, parts: Mapping[str, memoryview]) -> None:
        self._parts = parts

    @classmethod
    def of(cls, rows: Sequence[Row], lengths: Sequence[int], keys: Sequence[int], dead: Collection[int]) -> Columns:
        """The columns of these rows.

        Args:
            rows: in order of document number.
            lengths: how many terms each has.
            keys: a number for each that never changes.
            dead: document numbers of removed ones.
        """
        return cls(sections.unpack(_packed(rows, lengths, keys, dead)))

    @classmethod
    def unpack(cls, data: bytes) -> Columns:
        """The columns in a byte string made by ``pack``.

        Raises:
            IndexUnavailable: it is none.
        """
        return cls(sections.unpack(data))

    def pack(self) -> bytes:
        """The columns as bytes."""
        return sections.pack({name: bytes(data) for name, data in self._parts.items()})

    # -- columns ----------------------------------------------------------------------------------------------------
    @cached_property
    def paths(self) -> list[str]:
        """Paths by document number."""
        return sections.unpack_texts(self._parts["paths"])

    @cached_property
    def ids(self) -> list[str]:
        """Ids by document number."""
        ids = [stem(path) for path in self.paths]
        for place, key in sections.unpack_json(self._parts["ids"]).items():
            ids[int(place)] = key
        return ids

    @cached_property
    def times(self) -> array[int]:
        """Timestamps in microseconds by document number."""
        return sections.unpack_numbers("q", self._parts["times"])

    @cached_property
    def lengths(self) -> array[int]:
        """How many terms each document has."""
        return sections.unpack_numbers("I", self._parts["lengths"])

    @cached_property
    def keys(self) -> array[int]:
        """The never-changing number of each document."""
        return sections.unpack_numbers("I", self._parts["keys"])

    @cached_property
    def dead(self) -> frozenset[int]:
        """Numbers of removed documents."""
        return frozenset(sections.unpack_numbers("I", self._parts["dead"]))

    @cached_property
    def newest(self) -> array[int]:
        """Numbers of live documents, newest first, ties by id."""
        return sections.unpack_numbers("I", self._parts["newest"])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each live document by id."""
        return {key: number for number, key in enumerate(self.ids) if number not in self.dead}

    @cached_property
    def _importances(self) -> array[float]:
        return sections.unpack_numbers("d", self._parts["importance"])

    @cached_property
    def _contexts(self) -> dict[str, str]:
        return dict(sections.unpack_json(self._parts["contexts"]))

    @cached_property
    def _tags(self) -> dict[str, list[int]]:
        return dict(sections.unpack_json(self._parts["tags"]))

    @cached_property
    def _coded(self) -> dict[str, tuple[list[str], array[int]]]:
        return {
            name: (
                sections.unpack_json(self._parts[name + ".names"]),
                sections.unpack_numbers("I", self._parts[name]),
            )
            for name in _CODED
        }

    def __len__(self) -> int:
        return len(self._parts["times"]) // 8

    @property
    def live(self) -> int:
        """How many documents are not dead."""
        return len(self) - len(self._parts["dead"]) // array("I").itemsize

    def average_length(self) -> float:
        """Mean number of terms over all documents that still take part in scoring."""
        return sum(self.lengths) / len(self) if len(self) else 0.0

    # -- rows -------------------------------------------------------------------------------------------------------
    def row(self, number: int, tags: Sequence[str] = ()) -> Row:
        """The row of a document; its tags only as far as the caller gives them."""
        coded = {name: names[codes[number]] for name, (names, codes) in self._coded.items()}
        context = self._contexts.get(str(number))
        return Row(
            id=self.ids[number],
            path=self.paths[number],
            time=self.times[number],
            importance=self._importances[number],
            context=json.loads(context) if context else {},
            tags=tuple(tags),
            type=coded["type"],
            agent=coded["agent"],
            session=coded["session"],
            phase=coded["phase"],
        )

    def rows(self) -> list[Row]:
        """The rows of all documents, complete."""
        tags: dict[int, list[str]] = {}
        for tag, numbers in self._tags.items():
            for number in numbers:
                tags.setdefault(number, []).append(tag)
        return [self.row(number, tags.get(number, ())) for number in range(len(self))]

    # -- selecting --------------------------------------------------------------------------------------------------
    def select(self, numbers: Iterable[int], wanted: Filter) -> list[int]:
        """Those of the documents that pass every filter, in the order given."""
        chosen = list(numbers)
        for test in self._tests(wanted):
            chosen = test(chosen)
        return chosen

    def latest(self, wanted: Filter, hidden: Collection[int], limit: int) -> list[int]:
        """The newest live documents that pass every filter and are not hidden."""
        found: list[int] = []
        for start in range(0, len(self.newest), _CHUNK):
            chunk = self.newest[start : start + _CHUNK]
            found += [number for number in self.select(chunk, wanted) if number not in hidden]
            if len(found) >= limit:
                break
        return found[:limit]

    def _tests(self, wanted: Filter) -> Iterable[Callable[[list[int]], list[int]]]:
        for name, names in (
            ("type", wanted.types),
            ("agent", wanted.agents),
            ("session", wanted.sessions),
            ("phase", wanted.phases),
        ):
            if names:
                yield self._coded_test(name, names)
        for tag in wanted.tags:
            yield _member_test(frozenset(self._tags.get(tag, ())))
        if wanted.since is not None or wanted.until is not None:
            yield self._time_test(wanted.since, wanted.until)
        if wanted.path:
            yield self._path_test(wanted.path)

    def _coded_test(self, name: str, names: Collection[str]) -> Callable[[list[int]], list[int]]:
        known, codes = self._coded[name]
        asked = frozenset(code for code, text in enumerate(known) if text in names)
        return lambda numbers: [number for number in numbers if codes[number] in asked]

    def _time_test(self, since: int | None, until: int | None) -> Callable[[list[int]], list[int]]:
        times = self.times
        low = -(1 << 63) if since is None else since
        high = (1 << 63) if until is None else until
        return lambda numbers: [number for number in numbers if low <= times[number] <= high]

    def _path_test(self, prefix: str) -> Callable[[list[int]], list[int]]:
        paths = self.paths
        return lambda numbers: [number for number in numbers if (paths[number] + "/").startswith(prefix)]


def _member_test(members: frozenset[int]) -> Callable[[list[int]], list[int]]:
    return lambda numbers: [number for number in numbers if number in members]


def _packed(rows: Sequence[Row], lengths: Sequence[int], keys: Sequence[int], dead: Collection[int]) -> bytes:
    tags: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        for tag in row.tags:
            tags.setdefault(tag, []).append(number)
    newest = sorted((n for n in range(len(rows)) if n not in dead), key=lambda n: (-rows[n].time, rows[n].id))
    parts = {
        "paths": sections.pack_texts([row.path for row in rows]),
        "ids": sections.pack_json({n: row.id for n, row in enumerate(rows) if row.id != stem(row.path)}),
        "times": sections.pack_numbers("q", [row.time for row in rows]),
        "importance": sections.pack_numbers("d", [row.importance for row in rows]),
        "contexts": sections.pack_json(
            {n: sections.pack_json(row.context).decode() for n, row in enumerate(rows) if row.context}
        ),
        "lengths": sections.pack_numbers("I", lengths),
        "keys": sections.pack_numbers("I", keys),
        "dead": sections.pack_numbers("I", sorted(dead)),
        "newest": sections.pack_numbers("I", newest),
        "tags": sections.pack_json(tags),
    }
    for name in _CODED:
        values = [getattr(row, name) for row in rows]
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        parts[name] = sections.pack_numbers("I", [codes[value] for value in values])
        parts[name + ".names"] = sections.pack_json(list(codes))
    return sections.pack(parts)
