"""Indexes the items of one revision's tree, and caches the parts and documents that revisions share.

Scores are those of an index made of nothing but that revision's items. Caches are bounded and shared by processes;
where one gives no answer, the documents are made again.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zlib import crc32

from memfs.errors import IndexUnavailable, MemfsError
from memfs.fs import io
from memfs.model import Candidate, Query
from memfs.model.ids import stem_of
from memfs.search import columns as sections
from memfs.search import documents
from memfs.search import terms as bm25
from memfs.search.columns import DocumentColumns
from memfs.search.documents import Filter, IndexDocument, Place, Unfit, micros
from memfs.search.engine import TermStatistics
from memfs.search.merged_search import Asked, asked_of
from memfs.search.state_tables import StateBase

_MAGIC = f"memfs-tree-1-{sys.byteorder}\n".encode()
_DIGEST = 32
_COLUMNS = "columns"
_MARKS = "marks"
_TERMS = "terms"
_STARTS, _NUMBERS, _WEIGHTS = "starts", "numbers", "weights"
_SINCE, _SIZES, _UNTIMED = "since", "sizes", "untimed"
_MOMENT = "moment"
_WIDE = 4

Postings = tuple[Sequence[int], Sequence[float]]


class TreePart:
    """Documents 0 to n-1, which never change, with their columns and postings.

    Its file is believed only as a whole.

    Attributes:
        columns: their rows and lengths.
    """

    def __init__(self, parts: Mapping[str, memoryview]) -> None:
        self._parts = parts
        self.columns = DocumentColumns(sections.unpack(bytes(parts[_COLUMNS])))

    @classmethod
    def of(cls, documents: Sequence[IndexDocument], marks: Sequence[str], moment: int) -> TreePart:
        """The part that holds these documents.

        Args:
            documents: of which each has a time.
            marks: by which each one's file is known again: its content id, and what else decides about it.
            moment: the time that those have whose files name none, in microseconds.
        """
        columns = DocumentColumns.of(
            [one.row for one in documents], [one.length for one in documents], list(range(len(documents)))
        )
        untimed = [number for number, one in enumerate(documents) if not one.timed]
        return cls(
            sections.unpack(
                sections.pack(
                    {
                        _COLUMNS: columns.pack(),
                        _MARKS: sections.pack_texts(marks),
                        _SINCE: sections.pack_numbers("q", [one.since for one in documents]),
                        _SIZES: sections.pack_numbers("q", [one.size for one in documents]),
                        _UNTIMED: sections.pack_numbers("I", untimed),
                        _MOMENT: sections.pack_numbers("q", [moment]),
                        **_inverted(documents),
                    }
                )
            )
        )

    def pack(self) -> bytes:
        """The part as bytes, with their digest."""
        body = sections.pack({name: bytes(data) for name, data in self._parts.items()})
        return _MAGIC + sha256(body).digest() + body

    @classmethod
    def unpack(cls, data: bytes) -> TreePart:
        """The part again.

        Raises:
            IndexUnavailable: these bytes are none, or were changed.
        """
        start = len(_MAGIC) + _DIGEST
        if not data.startswith(_MAGIC) or sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
            raise IndexUnavailable("the index of a revision is damaged", hint="it is made anew from the history")
        return cls(sections.unpack(data[start:]))

    def __len__(self) -> int:
        return len(self.columns)

    # -- files ------------------------------------------------------------------------------------------------------
    @cached_property
    def marks(self) -> list[str]:
        """The mark of each document's file."""
        return sections.unpack_texts(self._parts[_MARKS])

    @cached_property
    def since(self) -> array[int]:
        """See ``IndexDocument.since``."""
        return sections.unpack_numbers("q", self._parts[_SINCE])

    @cached_property
    def sizes(self) -> array[int]:
        """How many bytes each document's file has."""
        return sections.unpack_numbers("q", self._parts[_SIZES])

    @cached_property
    def untimed(self) -> frozenset[int]:
        """Numbers of documents whose files name no time."""
        return frozenset(sections.unpack_numbers("I", self._parts[_UNTIMED]))

    @cached_property
    def moment(self) -> int:
        """The time that those documents have whose files name none, in microseconds."""
        return int(sections.unpack_numbers("q", self._parts[_MOMENT])[0])

    @cached_property
    def owners(self) -> dict[str, int]:
        """The number of each document by its id, in one case."""
        return {stem_of(path).casefold(): number for number, path in enumerate(self.columns.paths)}

    def numbers_in(self, files: Mapping[str, str], moment: int) -> list[int]:
        """The numbers of the documents of these files (path to mark), as they are at this time."""
        untimed = self.untimed if moment != self.moment else ()
        found = zip(self.columns.paths, self.marks, strict=True)
        return [
            number for number, (path, mark) in enumerate(found) if files.get(path) == mark and number not in untimed
        ]

    # -- terms ------------------------------------------------------------------------------------------------------
    @cached_property
    def _terms(self) -> list[str]:
        return sections.unpack_texts(self._parts[_TERMS])

    @cached_property
    def _starts(self) -> array[int]:
        return sections.unpack_numbers("I", self._parts[_STARTS])

    def postings(self, term: str) -> Postings:
        """The numbers of the documents that hold a term, in order, and its weight in each."""
        place = bisect_left(self._terms, term)
        if place == len(self._terms) or self._terms[place] != term:
            return (), ()
        span = slice(self._starts[place] * _WIDE, self._starts[place + 1] * _WIDE)
        numbers = sections.unpack_numbers("I", self._parts[_NUMBERS][span])
        return numbers, sections.unpack_numbers("f", self._parts[_WEIGHTS][span])

    def terms(self, beginning: str) -> Iterator[str]:
        """The terms that begin so."""
        place = bisect_left(self._terms, beginning)
        while place < len(self._terms) and self._terms[place].startswith(beginning):
            yield self._terms[place]
            place += 1


def _inverted(documents: Sequence[IndexDocument]) -> dict[str, bytes]:
    """Which documents hold each term."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for number, one in enumerate(documents):
        for term, weight in one.terms.items():
            held = found.get(term)
            if held is None:
                found[term] = [number], [weight]
            else:
                held[0].append(number)
                held[1].append(weight)
    terms = sorted(found)
    starts, numbers, weights = array("I", [0]), array("I"), array("f")
    for term in terms:
        numbers.extend(found[term][0])
        weights.extend(found[term][1])
        starts.append(len(numbers))
    return {
        _TERMS: sections.pack_texts(terms),
        _STARTS: starts.tobytes(),
        _NUMBERS: numbers.tobytes(),
        _WEIGHTS: weights.tobytes(),
    }


@dataclass(frozen=True)
class IndexShare:
    """A part's share in an index: the part, and the numbers of those of its documents that do not count."""

    part: TreePart
    dead: frozenset[int] = frozenset()

    @property
    def live(self) -> int:
        """How many documents count."""
        return len(self.part) - len(self.dead)

    @cached_property
    def length(self) -> int:
        """How many terms all of them have together."""
        lengths = self.part.columns.lengths
        return sum(lengths) - sum(lengths[number] for number in self.dead)

    def frequency(self, term: str) -> int:
        """How many of them hold a term."""
        numbers, _ = self.part.postings(term)
        return len(numbers) - len(self.dead.intersection(numbers)) if self.dead else len(numbers)

    def numbers(self) -> Iterator[int]:
        """Their numbers."""
        return (number for number in range(len(self.part)) if number not in self.dead)


class TreeIndex:
    """The items of one tree; nothing in it changes. May be used from several threads."""

    def __init__(self, shares: Sequence[IndexShare]) -> None:
        """``shares``: of all documents that count no two have one id."""
        self._shares = list(shares)

    # -- what it holds ----------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return sum(share.live for share in self._shares)

    def files(self) -> Iterator[tuple[str, str, str, int]]:
        """Path, id, content id and bytes of every item's file."""
        for share in self._shares:
            part = share.part
            columns = part.columns
            for number in share.numbers():
                yield (
                    columns.paths[number],
                    columns.ids[number],
                    part.marks[number].partition(" ")[0],
                    part.sizes[number],
                )

    @cached_property
    def blobs(self) -> dict[str, str]:
        """Id to content id."""
        return {key: blob for _, key, blob, _ in self.files()}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Id, in one case, to path."""
        return {key.casefold(): path for path, key, _, _ in self.files()}

    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: there is no other."""
        yield

    # -- asking -----------------------------------------------------------------------------------------------------
    def search(self, query: Query, asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties by id; see ``memfs.search.engine.Index``."""
        wanted = Filter.of(query)
        if not query.text:
            found = [self._latest(share, wanted, query.limit) for share in self._shares]
            newest = sorted(chain.from_iterable(found), key=lambda one: (-micros(one.timestamp), one.id))
            return newest[: query.limit]
        worth, shared = asked or asked_of(query, [self])
        factors = bm25.factors(worth, shared)
        first, second = bm25.length_terms(shared.average_length)
        best = [
            share.part.columns.best(_scores(share, factors.items(), first, second), wanted, query.limit)
            for share in self._shares
        ]
        return sorted(chain.from_iterable(best), key=lambda one: (-one.similarity, one.id))[: query.limit]

    @staticmethod
    def _latest(share: IndexShare, wanted: Filter, limit: int) -> list[Candidate]:
        columns = share.part.columns
        return [columns.candidate(number, 0.0) for number in columns.latest(wanted, share.dead, limit)]

    def beside(self, places: Collection[Place], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters, similarity 0."""
        return self._picked(query, lambda part: part.columns.at_places(places))

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0."""
        names = dict.fromkeys(ids)
        return self._picked(
            query, lambda part: [part.columns.numbers[key] for key in names if key in part.columns.numbers]
        )

    def _picked(self, query: Query, pick: Callable[[TreePart], Iterable[int]]) -> list[Candidate]:
        wanted = Filter.of(query)
        found = []
        for share in self._shares:
            columns = share.part.columns
            numbers = [number for number in pick(share.part) if number not in share.dead]
            found += [columns.candidate(number, 0.0) for number in columns.select(numbers, wanted)]
        return found

    def talks(self) -> bool:
        """Whether any item has a place in a talk."""
        return any(share.part.columns.in_talk(share.dead) for share in self._shares)

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """How many items there are, and in how many each term occurs."""
        items = len(self)
        return TermStatistics(
            items=items,
            average_length=sum(share.length for share in self._shares) / items if items else 0.0,
            frequencies={term: sum(share.frequency(term) for share in self._shares) for term in terms},
        )

    def terms(self, beginning: str) -> Collection[str]:
        """The terms that begin so."""
        return {
            term
            for share in self._shares
            for term in share.part.terms(beginning)
            if not share.dead or share.frequency(term)
        }


def _scores(share: IndexShare, factors: Iterable[tuple[str, float]], first: float, second: float) -> dict[int, float]:
    lengths = share.part.columns.lengths
    scores: dict[int, float] = {}
    for term, factor in factors:
        for number, weight in zip(*share.part.postings(term), strict=True):
            worth = factor * weight / (weight + first + second * lengths[number])
            scores[number] = scores.get(number, 0.0) + worth
    for number in share.dead & scores.keys():
        del scores[number]
    return scores


KEPT = 4
_SUFFIX = ".tree"
_LARGEST = 1 << 30
_YOUNG_NS = 3600 * 10**9
_FEW = 200
_SHARE = 0.1


class TreeShelf:
    """The cached parts of the trees asked last, of one repository. Shared by processes; not safe for several threads.

    It is a cache: where it cannot be read or written, parts are made again.
    """

    def __init__(self, folder: Path | None, made_by: str) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps them in memory alone.
            made_by: names the rules by which they are made; others' are not found.
        """
        self._folder = folder
        self._made_by = made_by
        self._open: OrderedDict[str, TreePart] = OrderedDict()

    def exact(self, tree: str) -> TreePart | None:
        """The part that was kept for this tree."""
        return self._opened(self._name(tree))

    def near(self, files: Mapping[str, str], moment: int) -> TreePart | None:
        """A part that holds most of these files (path to mark); None where none holds nearly all.

        What a part of another tree lacks is made again with each query: beyond some hundred files, or a tenth, a part
        of its own is the cheaper.
        """
        allowed = max(_FEW, int(len(files) * _SHARE))
        best, least = "", allowed + 1
        for name in self._names():
            part = self._opened(name)
            if part is not None:
                apart = len(files) + len(part) - 2 * len(part.numbers_in(files, moment))
                if apart < least:
                    best, least = name, apart
        return self._opened(best) if best else None

    def keep(self, tree: str, part: TreePart) -> None:
        """Keep a part; of those on disk the four that were asked last stay."""
        name = self._name(tree)
        self._remember(name, part)
        if self._folder is None:
            return
        with suppress(MemfsError, OSError):
            io.make_private_folder(self._folder)
            io.write_file(self._folder / name, part.pack(), durable=False)
            for old in (*self._listed()[KEPT:], *self._interrupted(self._folder)):
                io.unlink(self._folder / old, missing_ok=True)

    def _name(self, tree: str) -> str:
        return sha256(f"{self._made_by}\0{tree}".encode()).hexdigest()[:40] + _SUFFIX

    def _names(self) -> Iterator[str]:
        yield from dict.fromkeys([*self._open, *self._listed()[:KEPT]])

    def _listed(self) -> list[str]:
        """The names on disk, the one asked last first."""
        if self._folder is None:
            return []
        try:
            with os.scandir(self._folder) as entries:
                found = sorted((-_time(entry), entry.name) for entry in entries if entry.name.endswith(_SUFFIX))
        except OSError:
            return []
        return [name for _, name in found]

    @staticmethod
    def _interrupted(folder: Path) -> list[str]:
        """What a process that was killed has left of a part."""
        young = time.time_ns() - _YOUNG_NS
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name.startswith(".") and _time(entry) < young]

    def _opened(self, name: str) -> TreePart | None:
        part = self._open.get(name)
        if part is None and self._folder is not None:
            part = self._read(self._folder / name)
        if part is not None:
            self._remember(name, part)
        return part

    def _read(self, path: Path) -> TreePart | None:
        try:
            part = TreePart.unpack(io.read_file(path, _LARGEST))
            io.touch(path)
        except FileNotFoundError:
            return None
        except (MemfsError, OSError, ValueError, LookupError):
            with suppress(MemfsError, OSError):
                io.unlink(path, missing_ok=True)
            return None
        return part

    def _remember(self, name: str, part: TreePart) -> None:
        self._open[name] = part
        self._open.move_to_end(name)
        while len(self._open) > KEPT:
            self._open.popitem(last=False)


def _time(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_mtime_ns


FILE = "documents.sqlite"
_VERSION = 2
_MOST_BYTES = 128 << 20
_AT_ONCE = 500
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS documents (number INTEGER PRIMARY KEY, mark TEXT NOT NULL, path TEXT NOT NULL, "
    "line TEXT NOT NULL, checksum INTEGER NOT NULL, UNIQUE (mark, path));"
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
)
_ASK = "SELECT d.mark, d.path, d.line, d.checksum FROM json_each(?) j CROSS JOIN documents d ON d.mark = j.value"
_NOTE = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
_MAKER, _BYTES = "made_by", "bytes"
_SIZE = "SELECT coalesce(sum(length(line)), 0) FROM documents"
# Of the oldest as many as hold half of all bytes.
_TRIM = (
    "DELETE FROM documents WHERE number IN (SELECT number FROM (SELECT number, sum(length(line)) OVER "
    "(ORDER BY number) AS upto FROM documents) WHERE upto <= ?)"
)


class DocumentCache:
    """The cached documents of one repository, by the id git gives to their content. Shared by threads and processes.

    A file that is damaged, or made by other rules, is started over, and a row whose checksum is wrong is not found.
    """

    def __init__(self, folder: Path | None, made_by: str, most_bytes: int = _MOST_BYTES) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps nothing.
            made_by: names the rules by which documents are made; those made by others are not found.
            most_bytes: beyond this the oldest half is dropped.
        """
        self._base = (
            StateBase(folder, _SCHEMA, file=FILE, version=_VERSION, what="the cache of the past") if folder else None
        )
        self._made_by = f"{documents.FORM} {made_by}"
        self._most = most_bytes

    def found(self, wanted: Mapping[str, str]) -> dict[str, IndexDocument | Unfit]:
        """The documents that are kept of files (path to mark), by path."""
        found: dict[str, IndexDocument | Unfit] = {}
        base = self._base
        if base is None:
            return found
        marks = iter(dict.fromkeys(wanted.values()))
        with suppress(IndexUnavailable):
            while some := list(islice(marks, _AT_ONCE)):
                found.update(base.ask(partial(self._some, some, wanted)))
        return found

    def _some(
        self, marks: Collection[str], wanted: Mapping[str, str], base: sqlite3.Connection
    ) -> dict[str, IndexDocument | Unfit]:
        if _noted(base, _MAKER) != self._made_by:
            return {}
        rows = [
            (path, line)
            for mark, written, line, checksum in base.execute(_ASK, (json.dumps(list(marks)),))
            if checksum == _checksum(mark, written, line) and wanted.get(path := json.loads(written)) == mark
        ]
        lines: list[Any] = json.loads(f"[{','.join(line for _, line in rows)}]")
        return {path: documents.unpacked(path, values) for (path, _), values in zip(rows, lines, strict=True)}

    def keep(self, made: Iterable[tuple[str, str, IndexDocument | Unfit]]) -> None:
        """Keep documents, each with its file's path and mark."""
        plain = [(mark, json.dumps(path), documents.packed(one)) for path, mark, one in made]
        rows = [(*row, _checksum(*row)) for row in plain]

        def act(base: sqlite3.Connection) -> None:
            if _noted(base, _MAKER) != self._made_by:
                base.execute("DELETE FROM documents")
                base.executemany(_NOTE, ((_MAKER, self._made_by), (_BYTES, "0")))
            held = int(_noted(base, _BYTES) or _weighed(base))
            base.executemany("INSERT OR REPLACE INTO documents (mark, path, line, checksum) VALUES (?, ?, ?, ?)", rows)
            self._bound(base, held + sum(len(line) for _, _, line, _ in rows))

        if rows and self._base is not None:
            with suppress(IndexUnavailable):
                self._base.change(act)

    def _bound(self, base: sqlite3.Connection, held: int) -> None:
        """Drop what is too much. ``held`` is never too little; only where it is too much, everything is weighed."""
        if held > self._most:
            held = _weighed(base)
        if held > self._most:
            base.execute(_TRIM, (held - self._most // 2,))
            held = _weighed(base)
        base.execute(_NOTE, (_BYTES, str(held)))

    def close(self) -> None:
        """Release the file."""
        if self._base is not None:
            self._base.close()


def _checksum(*texts: str) -> int:
    return crc32("\0".join(texts).encode())


def _noted(base: sqlite3.Connection, key: str) -> str:
    found = base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else ""


def _weighed(base: sqlite3.Connection) -> int:
    """How many bytes all documents have: every one is read for it."""
    return int(base.execute(_SIZE).fetchone()[0])
