"""Stores the rows of an engine's documents as parallel columns in one file, and selects documents by filter.

Each column is read when first asked for, so that a cold search pays only for what it needs.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from itertools import compress
from pathlib import Path
from typing import Any

from memfs.errors import IndexUnavailable
from memfs.fs import io
from memfs.model import Candidate
from memfs.model.ids import stem_of
from memfs.search.documents import Filter, IndexRow, Place, moment
from memfs.search.terms import PassageScores

_MAGIC = b"memfs-sections-1\n"
_SEPARATOR = "\0"


def pack(sections: Mapping[str, bytes]) -> bytes:
    """One byte string that holds all sections by name."""
    head = json.dumps({name: len(data) for name, data in sections.items()}).encode()
    return b"".join((_MAGIC, str(len(head)).encode(), b"\n", head, *sections.values()))


def unpack(data: bytes) -> dict[str, memoryview]:
    """The sections of a packed byte string.

    Raises:
        IndexUnavailable: it is none, or is cut short.
    """
    try:
        if not data.startswith(_MAGIC):
            raise ValueError("unknown form")
        start = data.index(b"\n", len(_MAGIC)) + 1
        place = start + int(data[len(_MAGIC) : start])
        lengths = json.loads(data[start:place])
        found = {}
        for name, length in lengths.items():
            found[name] = memoryview(data)[place : place + length]
            place += length
        if place != len(data):
            raise ValueError(f"{len(data)} bytes instead of {place}")
    except (ValueError, AttributeError, TypeError) as error:
        raise unreadable(error) from error
    return found


def unreadable(error: Exception) -> IndexUnavailable:
    """What is said of bytes that are no index file."""
    return IndexUnavailable(f"an index file cannot be read: {error}", hint="it is rebuilt from the files")


def pack_texts(texts: Sequence[str]) -> bytes:
    """Texts without NUL characters, such as paths and ids; not compressed: each command would pay for it."""
    return b"p" + _SEPARATOR.join(texts).encode("utf-8", "surrogatepass") if texts else b""


def unpack_texts(data: memoryview) -> list[str]:
    """The texts again."""
    return str(data[1:], "utf-8", "surrogatepass").split(_SEPARATOR) if data else []


def count_texts(data: memoryview) -> int:
    """How many texts those are; they can be unpacked then."""
    return str(data[1:], "utf-8", "surrogatepass").count(_SEPARATOR) + 1 if data else 0


def pack_json(value: Any) -> bytes:
    """A value of JSON's types; anything else in it becomes text."""
    return json.dumps(value, ensure_ascii=True, default=str).encode()


def unpack_json(data: memoryview) -> Any:
    """The value again."""
    return json.loads(bytes(data))


def pack_numbers(code: str, numbers: Iterable[int] | Iterable[float]) -> bytes:
    """Numbers of one ``array`` type code."""
    return array(code, numbers).tobytes()


def unpack_numbers(code: str, data: memoryview) -> array[Any]:
    """The numbers again."""
    numbers: array[Any] = array(code)
    numbers.frombytes(data)
    return numbers


_CODED = ("type", "agent", "session", "speaker", "role", "phase")
_PLAIN_TYPES = ("id", "path", "time", "importance", "tags", "sequence", "asks", "pinned")
_NUMBERS = {
    "time": ("times", "q"),
    "importance": ("importance", "d"),
    "length": ("lengths", "I"),
    "key": ("keys", "I"),
    "passage": ("passages", "B"),
    "sequence": ("sequences", "q"),
    "asks": ("asks", "B"),
    "pinned": ("pinned", "B"),
}
"""The columns of numbers, each with its section and its type code."""
_NO_SEQUENCE = -(1 << 62)
_CHUNK = 2048

Lists = dict[str, list[Any]]
"""Columns spread out, for making new ones."""


def _column(section: str, code: str) -> cached_property[array[Any]]:
    """A section of numbers as a property."""
    return cached_property(lambda columns: unpack_numbers(code, columns._parts[section]))


class DocumentColumns:
    """The rows of documents 0 to n-1, each a passage of an item; ``dead`` ones were removed but keep their numbers.

    An item is known by the number of its first passage; the others follow it.
    """

    def __init__(self, parts: Mapping[str, memoryview]) -> None:
        self._parts = parts

    @classmethod
    def of(
        cls, rows: Sequence[IndexRow], passages: Sequence[int], lengths: Sequence[int], keys: Sequence[int]
    ) -> DocumentColumns:
        """The columns of these rows, in order of document number.

        Args:
            rows: of the item of each document.
            passages: which passage of its item each is: those of one item follow each other, from 0.
            lengths: how many terms each has.
            keys: a number for each that never changes.
        """
        lists: Lists = {name: [getattr(row, name) for row in rows] for name in (*_CODED, *_PLAIN_TYPES)}
        lists["context"] = [pack_json(row.context).decode() if row.context else "" for row in rows]
        return cls(unpack(_packed(lists | {"passage": list(passages), "length": list(lengths), "key": list(keys)}, ())))

    def followed_by(self, other: DocumentColumns, order: Sequence[int], dead: Collection[int]) -> DocumentColumns:
        """New columns from these and the other's after them.

        Args:
            other: what comes after these.
            order: for each new document number, where its row is in both together; what is not named is dropped.
            dead: new document numbers of removed documents.
        """
        ours, theirs = self._lists(), other._lists()
        lists: Lists = {}
        for name in ours:
            both = ours[name] + theirs[name]
            lists[name] = [both[place] for place in order]
        return DocumentColumns(unpack(_packed(lists, dead)))

    @classmethod
    def read(cls, path: Path) -> DocumentColumns:
        """The columns in a file, none where there is no file.

        Raises:
            IndexUnavailable: it holds something else.
        """
        try:
            return cls(unpack(io.read_file(path)))
        except FileNotFoundError:
            return cls.of([], [], [], [])

    def pack(self) -> bytes:
        """The columns as bytes."""
        return pack({name: bytes(data) for name, data in self._parts.items()})

    # -- columns ----------------------------------------------------------------------------------------------------
    @cached_property
    def paths(self) -> list[str]:
        """Paths by document number."""
        return unpack_texts(self._parts["paths"])

    @cached_property
    def ids(self) -> list[str]:
        """Ids by document number."""
        ids = [stem_of(path) for path in self.paths]
        for place, key in unpack_json(self._parts["ids"]).items():
            ids[int(place)] = key
        return ids

    times = _column("times", "q")
    """Timestamps in microseconds by document number."""
    lengths = _column("lengths", "I")
    """How many terms each document has."""
    keys = _column("keys", "I")
    """The never-changing number of each document."""
    newest = _column("newest", "I")
    """Numbers of live items, newest first, ties by id."""
    _passages = _column("passages", "B")
    _importances = _column("importance", "d")
    _sequences = _column("sequences", "q")
    _asks = _column("asks", "B")
    _pinned = _column("pinned", "B")
    _in_talks = _column("talks", "I")  # numbers of documents with a place in a talk, by session and sequence

    @cached_property
    def dead(self) -> frozenset[int]:
        """Numbers of removed documents."""
        return frozenset(unpack_numbers("I", self._parts["dead"]))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each live item by id."""
        rows = enumerate(zip(self.ids, self._passages, strict=True))
        return {key: number for number, (key, passage) in rows if not passage and number not in self.dead}

    @cached_property
    def firsts(self) -> dict[int, int]:
        """For each passage of an item that has several, the item's number."""
        found = {number: number - passage for number, passage in enumerate(self._passages) if passage}
        return found | {first: first for first in found.values()}

    def passages_of(self, item: int) -> range:
        """The numbers of the passages of an item."""
        after = item + 1
        while after < len(self) and self._passages[after]:
            after += 1
        return range(item, after)

    @cached_property
    def _contexts(self) -> dict[str, str]:
        return dict(unpack_json(self._parts["contexts"]))

    @cached_property
    def _tags(self) -> dict[str, list[int]]:
        return dict(unpack_json(self._parts["tags"]))

    @cached_property
    def _coded(self) -> dict[str, tuple[list[str], array[int]]]:
        return {
            name: (unpack_json(self._parts[name + ".names"]), unpack_numbers("I", self._parts[name])) for name in _CODED
        }

    def __len__(self) -> int:
        return len(self._parts["times"]) // 8

    @property
    def live(self) -> int:
        """How many items are not dead."""
        return len(self.newest)

    @property
    def talks(self) -> bool:
        """Whether any document has a place in a talk."""
        return len(self._parts["talks"]) > 0

    def average_length(self) -> float:
        """Mean number of terms over all documents that still take part in scoring."""
        return sum(self.lengths) / len(self) if len(self) else 0.0

    # -- rows -------------------------------------------------------------------------------------------------------
    def candidate(self, number: int, similarity: float, passage: int = 0) -> Candidate:
        """An item as an answer."""
        context = self._contexts.get(str(number)) if self._contexts else None
        type_, agent, session, speaker, role, _ = [names[codes[number]] for names, codes in self._coded.values()]
        sequence = self._sequences[number]
        return Candidate(
            self.ids[number],
            self.paths[number],
            similarity,
            type_,
            moment(self.times[number]),
            self._importances[number],
            json.loads(context) if context else {},
            agent,
            session,
            None if sequence == _NO_SEQUENCE else sequence,
            speaker,
            role,
            bool(self._asks[number]),
            bool(self._pinned[number]),
            passage=passage,
        )

    def _lists(self) -> Lists:
        tags: list[list[str]] = [[] for _ in range(len(self))]
        for tag, numbers in self._tags.items():
            for number in numbers:
                tags[number].append(tag)
        contexts = [""] * len(self)
        for place, context in self._contexts.items():
            contexts[int(place)] = context
        lists: Lists = {name: [names[code] for code in codes] for name, (names, codes) in self._coded.items()}
        return lists | {
            "id": self.ids,
            "path": self.paths,
            "context": contexts,
            "tags": tags,
            **{name: unpack_numbers(code, self._parts[at]).tolist() for name, (at, code) in _NUMBERS.items()},
        }

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

    def at_places(self, places: Iterable[Place]) -> list[int]:
        """The live documents at these places of talks."""
        names, codes = self._coded["session"]
        known = {name: code for code, name in enumerate(names)}
        talks, sequences = self._in_talks, self._sequences

        def place_of(number: int) -> tuple[int, int]:
            return codes[number], sequences[number]

        found = []
        for session, sequence in dict.fromkeys(places):
            wanted = known.get(session, -1), sequence
            at = bisect_left(talks, wanted, key=place_of)
            while at < len(talks) and place_of(talks[at]) == wanted:
                found.append(talks[at])
                at += 1
        return [number for number in found if number not in self.dead]

    def passing(
        self, numbers: Sequence[int], weights: Sequence[float], wanted: Filter
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Those of the documents that pass every filter, each with its weight."""
        chosen = self.select(numbers, wanted)
        if len(chosen) == len(numbers):
            return numbers, weights
        return chosen, list(compress(weights, map(frozenset(chosen).__contains__, numbers)))

    def best(self, found: PassageScores[int], without: Collection[int], limit: int) -> list[Candidate]:
        """The best of the scored items, best first, ties by id."""
        scores = found.items()
        for number in without:
            scores.pop(number, None)
        numbers = list(scores)
        if len(numbers) > limit:
            least = nlargest(limit, map(scores.__getitem__, numbers))[-1]
            numbers = [number for number in numbers if scores[number] >= least]
        ids = self.ids
        numbers.sort(key=lambda number: (-scores[number], ids[number]))
        return [self.candidate(number, scores[number], found.best(number) - number) for number in numbers[:limit]]

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


def _by_tag(tags: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """The numbers of the items that have each tag."""
    found: dict[str, list[int]] = {}
    for number, words in enumerate(tags):
        for tag in words:
            found.setdefault(tag, []).append(number)
    return found


def _in_talks(items: Iterable[int], sessions: Sequence[str], sequences: Sequence[int]) -> list[int]:
    """Those of the items that have a place in a session, by session and place."""
    codes = {value: code for code, value in enumerate(dict.fromkeys(sessions))}
    placed = (number for number in items if sequences[number] != _NO_SEQUENCE)
    return sorted(placed, key=lambda number: (codes[sessions[number]], sequences[number], number))


def _packed(lists: Lists, dead: Collection[int]) -> bytes:
    ids, paths, times, passages = lists["id"], lists["path"], lists["time"], lists["passage"]
    strange = {n: key for n, (key, path) in enumerate(zip(ids, paths, strict=True)) if key != stem_of(path)}
    items = [n for n, passage in enumerate(passages) if not passage]
    newest = sorted((-times[n], ids[n], n) for n in items if n not in dead)
    sequences = [_NO_SEQUENCE if place is None else place for place in lists["sequence"]]
    parts = {
        "paths": pack_texts(paths),
        "ids": pack_json(strange),
        "contexts": pack_json({n: text for n, text in enumerate(lists["context"]) if text}),
        "dead": pack_numbers("I", sorted(dead)),
        "newest": pack_numbers("I", [number for _, _, number in newest]),
        "tags": pack_json(_by_tag(lists["tags"])),
        "talks": pack_numbers("I", _in_talks(items, lists["session"], sequences)),
    }
    numbers = lists | {"sequence": sequences}
    parts |= {section: pack_numbers(code, numbers[name]) for name, (section, code) in _NUMBERS.items()}
    for name in _CODED:
        codes = {value: code for code, value in enumerate(dict.fromkeys(lists[name]))}
        parts[name] = pack_numbers("I", [codes[value] for value in lists[name]])
        parts[name + ".names"] = pack_json(list(codes))
    return pack(parts)
