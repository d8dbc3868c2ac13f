"""Columns: many rows in one file, each column read when first asked for, so that a cold command pays for what it needs.

A file has a checksum; what has the right one is what was written. ``StampTable`` says which file contents an index
describes: what the columns of its base know of files, with the rows over it.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from itertools import accumulate, chain, compress, count, repeat
from operator import add
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import NamedTuple
from memfs.errors import IndexUnavailable
from memfs.fs import io
from memfs.model import Candidate, Stamp
from memfs.model.ids import stem_of
from memfs.model.item import RACY_NS
from memfs.search.documents import EVERYTHING, Filter, IndexRow, Place
from memfs.search.terms import PassageScores
from memfs.startup import Any, json

COLUMNS = "columns"
"""In an engine's folder, the file with what is known of its documents."""
_MAGIC = b"memfs-columns-5\n"
_CHECKSUM = _LENGTH = 4
_NUL = "\0"
_MOST_SOUGHT, _MOST_ASKED, _MOST_MADE = 64, 2_000, 4096
_SQUEEZED, _PLAIN = b"z", b"-"
_SMALL = 64


def pack(sections: Mapping[str, bytes]) -> bytes:
    """One byte string that holds all sections by name."""
    head = json.dumps({name: len(data) for name, data in sections.items()}).encode()
    body = b"".join((str(len(head)).encode(), b"\n", head, *sections.values()))
    return _MAGIC + zlib.crc32(body).to_bytes(_CHECKSUM, "big") + body


def unpack(data: bytes) -> dict[str, bytes | memoryview]:
    """The sections of a packed byte string.

    Raises:
        IndexUnavailable: it is none, or a byte of it is another one.
    """
    start = len(_MAGIC) + _CHECKSUM
    body = memoryview(data)[start:]
    if not data.startswith(_MAGIC) or zlib.crc32(body).to_bytes(_CHECKSUM, "big") != data[len(_MAGIC) : start]:
        raise IndexUnavailable("an index file cannot be read: it is damaged", hint="it is rebuilt from the files")
    head = data.index(b"\n", start) + 1
    place = head + int(data[start:head])
    found: dict[str, bytes | memoryview] = {}
    for name, length in json.loads(data[head:place]).items():
        found[name] = memoryview(data)[place : place + length]
        place += length
    return found


def _squeezed(data: bytes, most: float = 0.25) -> bytes:
    """Bytes compressed where no more than a share is left of them: else reading them takes more than it is worth."""
    small = zlib.compress(data, 1) if len(data) > _SMALL else data
    return _SQUEEZED + small if len(small) < len(data) * most else _PLAIN + data


def _whole(data: bytes | memoryview) -> bytes | memoryview:
    return zlib.decompress(data[1:]) if data[0] == _SQUEEZED[0] else data[1:]


class Paths:
    """Paths of items, whose ids are their stems (``memfs.model.ids.stem_of``).

    A folder and a suffix are kept once for all stems that follow each other there: paths of one folder are best given
    together.
    """

    def __init__(self, heads: Sequence[tuple[str, str]], counts: Sequence[int], stems: Sequence[str]) -> None:
        """
        Args:
            heads: folder with "/", and suffix, of each run.
            counts: how many stems each has.
            stems: those of each run, parted by NUL: no name has one.
        """
        self._heads, self._counts, self._stems = heads, counts, stems
        self._tables: dict[tuple[str, str], dict[str, int]] = {}
        self._cut: dict[int, list[str]] = {}
        # by whether case is folded: what was asked for, the text of all ids, and their table
        self._sought: tuple[dict[str, int | None], ...] = ({}, {})
        self._texts: dict[bool, str] = {}
        self._by_id: dict[bool, dict[str, int]] = {}
        self._asked = 0
        self._places: dict[str, int] = {}

    def followed_by(self, paths: Iterable[str]) -> Paths:
        """These, and others after them."""
        heads: list[tuple[str, str]] = []
        runs: list[list[str]] = []
        for path in paths:
            folder, slash, name = path.rpartition("/")
            stem, dot, suffix = name.rpartition(".")
            head = folder + slash, dot + suffix
            if not heads or heads[-1] != head:
                heads.append(head)
                runs.append([])
            runs[-1].append(stem)
        stems = [*(self._stems if self._heads else ()), *map(_NUL.join, runs)]
        return Paths([*self._heads, *heads], [*self._counts, *map(len, runs)], stems)

    def pack(self) -> bytes:
        """Them as bytes."""
        heads = {head: code for code, head in enumerate(dict.fromkeys(self._heads))}
        codes = [heads[head] for head in self._heads]
        head = json.dumps([list(heads), codes, self._counts]).encode()
        return len(head).to_bytes(_LENGTH, "big") + head + "/".join(self._stems).encode("utf-8", "surrogatepass")

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> Paths:
        """Them again."""
        start = _LENGTH + int.from_bytes(data[:_LENGTH], "big")
        heads, codes, counts = json.loads(bytes(data[_LENGTH:start]))
        return cls(
            [tuple(heads[code]) for code in codes], counts, str(data[start:], "utf-8", "surrogatepass").split("/")
        )

    @cached_property
    def all(self) -> list[str]:
        """All paths."""
        runs = zip(self._heads, self._stems, strict=False)  # what was packed without a head has one empty run
        # Replacing takes a third of the time that joining each path would.
        whole = [folder + run.replace(_NUL, f"{suffix}\0{folder}") + suffix for (folder, suffix), run in runs]
        return _NUL.join(whole).split(_NUL) if whole else []

    @cached_property
    def ids(self) -> list[str]:
        """All ids."""
        return _NUL.join(self._stems).split(_NUL) if self._heads else []

    def place(self, path: str) -> int | None:
        """The last place of a path, None where it has none. Of few that are asked for only their folders are looked
        at.
        """
        if self._asked >= _MOST_ASKED:
            self._places = self._places or dict(zip(self.all, count(), strict=False))
            return self._places.get(path)
        self._asked += 1
        folder, slash, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        head = folder + slash, dot + suffix
        table = self._tables.get(head)
        if table is None:
            table = self._tables[head] = {}
            for start, run in self._runs.get(head, ()):
                table.update(zip(run.split(_NUL), count(start)))
        return table.get(stem)

    def last_of(self, key: str, *, folded: bool = False) -> int | None:
        """The last place of an id, None where it has none. Few are searched for in the text: a table of all takes more.

        Args:
            folded: compare without case; ``key`` has none.
        """
        sought = self._sought[folded]
        if len(sought) > _MOST_SOUGHT:
            if folded not in self._by_id:
                keys = map(str.casefold, self.ids) if folded else self.ids
                self._by_id[folded] = dict(zip(keys, count(), strict=False))
            return self._by_id[folded].get(key)
        if key not in sought:
            if folded not in self._texts:
                text = f"\0{_NUL.join(self._stems)}\0"
                self._texts[folded] = text.casefold() if folded else text
            text = self._texts[folded]
            at = text.rfind(f"\0{key}\0") if key else -1
            sought[key] = text.count(_NUL, 0, at) if at >= 0 else None
        return sought[key]

    def named(self, places: Iterable[int]) -> list[tuple[str, str]]:
        """Some of the ids and paths; a few are read without making them all."""
        found, starts, cut, heads = list[tuple[str, str]](), self._starts, self._cut, self._heads
        for place in places:
            run = bisect_right(starts, place) - 1
            if (stems := cut.get(run)) is None:
                stems = cut[run] = self._stems[run].split(_NUL)
            stem = stems[place - starts[run]]
            folder, suffix = heads[run]
            found.append((stem, f"{folder}{stem}{suffix}"))
        return found

    @cached_property
    def _runs(self) -> dict[tuple[str, str], list[tuple[int, str]]]:
        """The stems of each folder and suffix, parted by NUL, with the place of the first."""
        found: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for head, start, run in zip(self._heads, self._starts, self._stems, strict=False):
            found.setdefault(head, []).append((start, run))
        return found

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(self._counts, initial=0))


_CODED = ("type", "agent", "session", "speaker", "role", "phase")
_NUMBERS = {"time": "q", "importance": "d", "sequence": "q", "asks": "B", "pinned": "B"}
"""What a row has as a number, each with its widest type."""
_STAMPED = {"size": "q", "mtime": "q", "later": "q", "inode": "Q", "checked": "q"}
"""The numbers of a stamp, in the same way; of times but the first how much later each is."""
_TYPES = _NUMBERS | _STAMPED
_DIGEST = 20  # bytes of git's ids
UNSTAMPED = Stamp(0, 0, 0, 0, "0" * 2 * _DIGEST, 0)
"""Of an item whose file was not looked at."""
_NO_SEQUENCE = -(1 << 62)
_CHUNK = 2048
_MOST_FILTERS = 16
_NO_CONTEXT: Mapping[str, Any] = MappingProxyType({})
Found = tuple[float, int, frozenset[str], frozenset[str]]
"""The similarity of an item, its best passage, the terms that it has, and those that it has not."""
_LISTED: Found = 0.0, 0, frozenset(), frozenset()


class DocumentRow(NamedTuple):
    """One document: a passage of an item, how many terms it has, and the stamp of the item's file."""

    row: IndexRow
    passage: int
    length: int
    stamp: Stamp = UNSTAMPED


def _stamp_numbers(stamp: Stamp) -> tuple[int, int, int, int, int]:
    """The numbers of a stamp in the order of ``_STAMPED``."""
    size, mtime, ctime, inode, _, checked = stamp
    return size, mtime, ctime - mtime, inode, checked - ctime


def _column(section: str) -> cached_property[array[Any]]:
    """A section of numbers as a property."""
    return cached_property(lambda columns: columns._numbers(section))


class DocumentColumns:
    """The rows of documents 0 to n-1. One that was removed keeps its number, which is not used again.

    An item is known by the number of its first passage; the others follow it. Without any parts there are no documents.
    """

    def __init__(self, parts: Mapping[str, bytes | memoryview]) -> None:
        self._parts = parts
        self._passing: tuple[Filter, frozenset[int]] | None = None
        self._by_filter: dict[Filter, array[int]] = {}
        self._made: dict[str, Stamp] = {}

    @classmethod
    def read(cls, folder: Path) -> DocumentColumns:
        """The columns in an engine's folder, none where it has no such file.

        Raises:
            IndexUnavailable: it holds something else.
        """
        try:
            return cls(unpack(io.read_file(folder / COLUMNS)))
        except FileNotFoundError:
            return cls({})

    def with_changes(
        self, rows: Sequence[DocumentRow], dead: Iterable[int], restamped: Mapping[int, Stamp]
    ) -> DocumentColumns:
        """New columns: these, and more documents after them.

        Args:
            rows: the passages of an item follow each other, from 0.
            dead: numbers of the items that are removed, of these or of the new ones.
            restamped: the stamps of items of these whose files were looked at again, by number.
        """
        items = [one.row for one in rows]
        added = {name: [getattr(row, name) for row in items] for name in _NUMBERS}
        added["sequence"] = [_NO_SEQUENCE if place is None else place for place in added["sequence"]]
        added["passage"], added["length"] = [one.passage for one in rows], [one.length for one in rows]
        added |= zip(_STAMPED, map(list, zip(*[_stamp_numbers(one.stamp) for one in rows], strict=True)), strict=False)
        names: dict[str, dict[str, int]] = {}
        for name in _CODED:
            codes = names[name] = {value: code for code, value in enumerate(self._coded[name][0])}
            added[name] = [codes.setdefault(getattr(row, name), len(codes)) for row in items]
        numbers = {name: array(_TYPES.get(name, "I"), self._numbers(name)) for name in (*added, *_STAMPED)}
        for number, stamp in restamped.items():
            for name, value in zip(_STAMPED, _stamp_numbers(stamp), strict=True):
                numbers[name][number] = value
        for name, column in added.items():
            numbers[name].extend(column)
        ids = [*self.ids, *(row.id for row in items)]
        times, sessions, sequences, gone = (
            numbers["time"],
            numbers["session"],
            numbers["sequence"],
            self.dead.union(dead),
        )
        live = [number for number, passage in enumerate(numbers["passage"]) if not passage and number not in gone]
        placed = [number for number in live if sequences[number] != _NO_SEQUENCE]
        numbers["dead"] = array("I", sorted(gone))
        numbers["newest"] = array("I", sorted(live, key=lambda number: (-times[number], ids[number])))
        numbers["talks"] = array("I", sorted(placed, key=lambda number: (sessions[number], sequences[number])))
        none = [""] * len(self)
        lines = {
            "contexts": (self._contexts or none) + [_line(row.context) if row.context else "" for row in items],
            "tags": (self._tags or none) + ["".join(map(_tagged, row.tags)) for row in items],
        }
        blobs = bytes(self._parts.get("blobs", b"")) + bytes.fromhex("".join([one.stamp.blob for one in rows]))
        parts = {"blobs": blobs, "paths": self._paths.followed_by([row.path for row in items]).pack()}
        parts |= {f"{name}.names": _squeezed(json.dumps(list(values)).encode()) for name, values in names.items()}
        for name, texts in lines.items():
            parts[name] = _squeezed("\n".join(texts if any(texts) else ()).encode("ascii"), most=0.6)  # read seldom
        for name, held in numbers.items():  # in as few bytes each as they all fit in
            code, most = held.typecode, max(held, default=0)
            if code != "d" and min(held, default=0) >= 0:
                code = "B" if most < 1 << 8 else "H" if most < 1 << 16 else "I" if most < 1 << 32 else code
            parts[name] = code.encode() + _squeezed(array(code, held).tobytes())
        return DocumentColumns(parts)

    def pack(self) -> bytes:
        """The columns as bytes."""
        return pack({name: bytes(data) for name, data in self._parts.items()})

    # -- columns ----------------------------------------------------------------------------------------------------
    def _numbers(self, name: str) -> array[Any]:
        """A section of numbers; their type may be a narrower one than they had."""
        data = self._parts.get(name, b"B-")
        numbers: array[Any] = array(chr(data[0]))
        numbers.frombytes(_whole(data[1:]))
        return numbers

    @cached_property
    def _paths(self) -> Paths:
        return Paths.unpack(self._parts["paths"]) if self._parts else Paths((), (), ())

    @property
    def paths(self) -> list[str]:
        """Paths by document number."""
        return self._paths.all

    @property
    def ids(self) -> list[str]:
        """Ids by document number."""
        return self._paths.ids

    lengths = _column("length")
    """How many terms each document has."""
    newest = _column("newest")
    """Numbers of live items, newest first, ties by id."""
    times = _column("time")
    """Timestamps in microseconds by document number."""
    _passages = _column("passage")
    _importances = _column("importance")
    _sequences = _column("sequence")
    _asks = _column("asks")
    _pinned = _column("pinned")
    in_talks = _column("talks")
    """Numbers of live items with a place in a talk, by session and sequence."""

    @cached_property
    def dead(self) -> frozenset[int]:
        """Numbers of removed items."""
        return frozenset(self._numbers("dead"))

    @cached_property
    def items(self) -> Sequence[int]:
        """Numbers of live items, in order."""
        return range(len(self)) if len(self.newest) == len(self) else sorted(self.newest)

    def number(self, key: str) -> int | None:
        """The number of the live item with an id, None where there is none."""
        return self._live(self._paths.last_of(key))

    def owner(self, folded: str) -> int | None:
        """The number of the live item with an id that is compared without case; ``folded`` has none."""
        return self._live(self._paths.last_of(folded, folded=True))

    def number_at(self, path: str) -> int | None:
        """The number of the live item at a path, None where there is none."""
        return self._live(self._paths.place(path))

    def _live(self, place: int | None) -> int | None:
        """The number of the item of which a document is the last passage, None where it was removed."""
        number = None if place is None else place - self._passages[place]
        return None if number in self.dead else number

    def path(self, number: int) -> str:
        """The path of an item."""
        return self._paths.named([number])[0][1]

    @cached_property
    def firsts(self) -> dict[int, int]:
        """For each passage of an item that has several, the item's number."""
        if not self._passages.tobytes().strip(b"\0"):
            return {}
        found = {number: number - passage for number, passage in enumerate(self._passages) if passage}
        return found | {first: first for first in found.values()}

    @cached_property
    def average_length(self) -> float:
        """Mean number of terms of a document."""
        return sum(self.lengths) / len(self) if len(self) else 0.0

    @cached_property
    def _contexts(self) -> list[str]:
        return self._lines("contexts")

    @cached_property
    def _tags(self) -> list[str]:
        return self._lines("tags")

    def _lines(self, section: str) -> list[str]:
        """Texts in ASCII without line ends, one for each document; none where all are empty."""
        text = str(_whole(self._parts.get(section, _PLAIN)), "ascii")
        return text.split("\n") if text else []

    @cached_property
    def _coded(self) -> dict[str, tuple[list[str], array[int]]]:
        names = {name: _whole(self._parts.get(f"{name}.names", b"-[]")) for name in _CODED}
        return {name: (json.loads(bytes(text)), self._numbers(name)) for name, text in names.items()}

    def __len__(self) -> int:
        return len(self._passages)

    # -- stamps -----------------------------------------------------------------------------------------------------
    @cached_property
    def blobs(self) -> list[str]:
        """Content ids by document number."""
        digits, width = self._parts.get("blobs", b"").hex(), 2 * _DIGEST
        return [digits[at : at + width] for at in range(0, len(digits), width)]

    def blob(self, number: int) -> str:
        """The content id of an item; a few are read without unpacking them all."""
        return self._parts["blobs"][number * _DIGEST : (number + 1) * _DIGEST].hex()

    @cached_property
    def stamped(self) -> list[array[Any]]:
        """The numbers of the stamps: sizes, mtimes, how much later the ctimes are, inodes, and how much later each was
        read.
        """
        return [self._numbers(name) for name in _STAMPED]

    def facts(self, number: int) -> tuple[int, int, int, int, int]:
        """Size, times and inode of an item's file, and when it was read."""
        sizes, mtimes, later, inodes, checked = self.stamped
        mtime = mtimes[number]
        ctime = mtime + later[number]
        return sizes[number], mtime, ctime, inodes[number], ctime + checked[number]

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of the live item's file at a path, None where there is none."""
        made = self._made.get(path)  # a resident is asked for those of some files again and again
        if made is None and (number := self.number_at(path)) is not None:
            size, mtime, ctime, inode, checked = self.facts(number)
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[path] = Stamp(size, mtime, ctime, inode, self.blob(number), checked)
        return made

    # -- rows -------------------------------------------------------------------------------------------------------
    def candidates(
        self,
        numbers: Sequence[int],
        found: Iterable[Found] = repeat(_LISTED),
        named: Iterable[tuple[str, str]] | None = None,
    ) -> list[Candidate]:
        """Items as answers, given their numbers, what a search found of each, and their ids and paths, if known."""
        new = tuple.__new__  # of all fields, without a call of Python's own
        times, importances, sequences = self.times, self._importances, self._sequences
        contexts, asks, pinned = self._contexts, self._asks, self._pinned
        # of each what its codes stand for, and the code by number
        coded = self._coded.values()
        (types, type_), (agents, agent), (sessions, session), (speakers, speaker), (roles, role), _ = coded
        return [
            new(Candidate, (
                id_, path, similarity, types[type_[number]], times[number], importances[number],
                json.loads(contexts[number]) if contexts and contexts[number] else _NO_CONTEXT,
                agents[agent[number]], sessions[session[number]],
                None if (sequence := sequences[number]) == _NO_SEQUENCE else sequence, speakers[speaker[number]],
                roles[role[number]], asks[number] == 1, pinned[number] == 1, 0.0, passage, held, lacking,
            ))
            for number, (id_, path), (similarity, passage, held, lacking) in zip(
                numbers, named or self._paths.named(numbers), found, strict=False
            )
        ]  # fmt: skip

    # -- selecting --------------------------------------------------------------------------------------------------
    def select(self, numbers: Iterable[int], wanted: Filter) -> list[int]:
        """Those of the documents that pass every filter, in the order given."""
        chosen = list(numbers)
        coded = (wanted.types, wanted.agents, wanted.sessions, wanted.phases)
        for name, names in zip(("type", "agent", "session", "phase"), coded, strict=True):
            if names:
                known, codes = self._coded[name]
                passing = frozenset(code for code, text in enumerate(known) if text in names)
                chosen = [*compress(chosen, map(passing.__contains__, map(codes.__getitem__, chosen)))]
        for tag in wanted.tags:
            tags, written = self._tags, _tagged(tag)
            chosen = [number for number in chosen if written in tags[number]] if tags else []
        if wanted.since is not None or wanted.until is not None:
            times = self.times
            low = -(1 << 63) if wanted.since is None else wanted.since
            high = (1 << 63) if wanted.until is None else wanted.until
            chosen = [number for number in chosen if low <= times[number] <= high]
        if wanted.path:
            paths, prefix = self.paths, wanted.path
            chosen = [number for number in chosen if (paths[number] + "/").startswith(prefix)]
        return chosen

    def latest(self, wanted: Filter, hidden: Collection[int], limit: int) -> list[int]:
        """The newest live documents that pass every filter and are not hidden."""
        found: list[int] = []
        newest, wanted = self._of_time(self.newest, wanted), wanted._replace(since=None, until=None)
        for start in range(0, len(newest), _CHUNK):
            chunk = newest[start : start + _CHUNK]
            found += [number for number in self.select(chunk, wanted) if number not in hidden]
            if len(found) >= limit:
                break
        return found[:limit]

    def at_places(self, places: Iterable[Place]) -> list[int]:
        """The live items at these places of talks."""
        names, codes = self._coded["session"]
        known = {name: code for code, name in enumerate(names)}
        in_talks, sequences = self.in_talks, self._sequences

        def place_of(number: int) -> tuple[int, int]:
            return codes[number], sequences[number]

        found = []
        for session, sequence in dict.fromkeys(places):
            place = known.get(session, -1), sequence
            at = bisect_left(in_talks, place, key=place_of)
            while at < len(in_talks) and place_of(in_talks[at]) == place:
                found.append(in_talks[at])
                at += 1
        return found

    def passing(self, wanted: Filter) -> frozenset[int] | None:
        """The documents that pass every filter, None where that is all; those that were found last are kept.

        Removed ones may be missing.
        """
        if wanted == EVERYTHING:
            return None
        if self._passing is None or self._passing[0] != wanted:
            coded = wanted._replace(since=None, until=None, tags=frozenset(), path="")
            newest = self._by_filter.get(coded)
            if newest is None:
                if len(self._by_filter) >= _MOST_FILTERS:
                    self._by_filter.clear()
                newest = self._by_filter[coded] = array("I", self.select(self.newest, coded))
            items: Iterable[int] = self._of_time(newest, wanted)
            if wanted.tags or wanted.path:
                items = self.select(items, wanted)
            held = frozenset(items)
            if self.firsts:  # the other passages of these items
                held = held.union(number for number, first in self.firsts.items() if first in held)
            self._passing = wanted, held
        return self._passing[1]

    def _of_time(self, newest: array[int], wanted: Filter) -> array[int]:
        """Those of the documents, which are ordered from the newest, that are of the wanted time."""
        times = self.times
        start = 0 if wanted.until is None else bisect_left(newest, -wanted.until, key=lambda one: -times[one])
        end = None if wanted.since is None else bisect_right(newest, -wanted.since, start, key=lambda one: -times[one])
        return newest[start:end]

    def best(self, found: PassageScores[int], without: Iterable[int], limit: int) -> list[Candidate]:
        """The best of the scored items but some, best first, ties by id."""
        scores = found.items()
        for number in without:
            scores.pop(number, None)
        numbers = list(scores)
        if len(numbers) > limit:
            least = nlargest(limit, map(scores.__getitem__, numbers))[-1]
            numbers = [number for number in numbers if scores[number] >= least]
        rows = [(-scores[one], *named, one) for one, named in zip(numbers, self._paths.named(numbers), strict=True)]
        rows.sort()
        del rows[limit:]
        numbers = [one for *_, one in rows]
        words, best = found.words(numbers), found.best
        facts = [(scores[one], best.get(one, one) - one, *words[one]) for one in numbers]
        return self.candidates(numbers, facts, [(id_, path) for _, id_, path, _ in rows])


def _line(value: object) -> str:
    """A value as JSON in ASCII, with a quotation mark after a comma only where a text begins."""
    return json.dumps(value, separators=(",", ":"), default=str)


def _tagged(tag: str) -> str:
    """How a tag, and nothing else, is written in the line of those of an item."""
    return f",{_line(tag)}"


class StampTable(Mapping[str, Stamp]):
    """An unchangeable mapping from path to stamp that makes its stamps only when asked. The id of the item in a file is
    the stem of its path.
    """

    def __init__(self, columns: DocumentColumns, over: Mapping[str, Stamp | None] = MappingProxyType({})) -> None:
        """
        Args:
            columns: of the base.
            over: stamps that were added or replaced, None for what is gone.
        """
        self.columns, self._over = columns, over

    def over_below(self, folder: str) -> dict[str, str]:
        """What lies over it below a folder that ends with "/": content's id by path, "" for what is gone."""
        return {path: stamp.blob if stamp else "" for path, stamp in self._over.items() if path.startswith(folder)}

    def over_folders(self) -> set[str]:
        """The folders of the paths in which rows lie over it."""
        return {path.rpartition("/")[0] for path in self._over}

    def __getitem__(self, path: str) -> Stamp:
        if (found := self.stamp(path)) is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self.ids())

    def __len__(self) -> int:
        known = self.columns.number_at
        return len(self.columns.items) + sum(
            (stamp is not None) - (known(path) is not None) for path, stamp in self._over.items()
        )

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.stamp(path) is not None

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a path, None where it is unknown."""
        return self._over[path] if path in self._over else self.columns.stamp(path)

    def stamps(self, paths: Iterable[str]) -> dict[str, Stamp]:
        """The stamps of those of the paths that are known."""
        return {path: stamp for path in paths if (stamp := self.stamp(path)) is not None}

    def blob(self, path: str) -> str:
        """The id of a path's content, "" where it is unknown."""
        if path in self._over:
            stamp = self._over[path]
            return stamp.blob if stamp else ""
        number = self.columns.number_at(path)
        return "" if number is None else self.columns.blob(number)

    def matches(self, path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bool:
        """Whether a file with these facts is known to hold what it held when it was stamped (``Stamp.racy``)."""
        facts = size, mtime_ns, ctime_ns, inode
        if path in self._over:
            stamp = self._over[path]
            return stamp is not None and stamp[:4] == facts and not stamp.racy
        number = self.columns.number_at(path)
        if number is None:
            return False
        *held, checked = self.columns.facts(number)
        return (*held,) == facts and checked - max(mtime_ns, ctime_ns) >= RACY_NS

    def newest(self) -> int:
        """The time of the latest change of any file, as the system counts its nanoseconds; removed ones may count."""
        _, mtimes, later, *_ = self.columns.stamped
        return max((*map(add, mtimes, later), *(stamp.ctime_ns for stamp in self._over.values() if stamp)), default=0)

    def blobs(self) -> Iterator[tuple[str, str]]:
        """Every path with its content's id."""
        return self._each(self.columns.blobs, ((path, stamp.blob) for path, stamp in self._over.items() if stamp))

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every path with its item's id; far quicker than making the stamps."""
        return self._each(self.columns.ids, ((path, stem_of(path)) for path, stamp in self._over.items() if stamp))

    def _each(self, column: Sequence[str], fresh: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        over, known = self._over, self.columns
        rows: Iterable[tuple[str, str]] = zip(known.paths, column, strict=True)
        if len(known.items) < len(known):
            rows = ((known.paths[number], column[number]) for number in known.items)
        return chain((row for row in rows if row[0] not in over) if over else rows, fresh)

    def holder(self, id: str) -> str | None:  # noqa: A002
        """The path whose content the base holds under this id."""
        number = self.columns.number(id)
        return None if number is None else self.columns.path(number)

    def owners_over(self) -> dict[str, str]:
        """What lies over it: paths by id in one case."""
        return {stem_of(path).casefold(): path for path, stamp in self._over.items() if stamp}

    def owner(self, folded: str) -> str:
        """The path over which nothing lies and whose id this is in one case, "" for none."""
        number = self.columns.owner(folded)
        path = "" if number is None else self.columns.path(number)
        return "" if path in self._over else path


NO_STAMPS = StampTable(DocumentColumns({}))
"""Nothing is known."""
