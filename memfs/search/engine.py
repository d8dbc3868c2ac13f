"""Search engines: what each of them promises, what those that keep files have in common, and the table of those that
``index.engine`` may name.

An engine keeps one folder of files and answers queries from it. It is a cache: it never decides what is true, it may be
deleted at any time, and it is only ever opened from the user's own cache folder. A new engine is a module that passes
the contract in ``tests/contract/index_contract.py``, and a row in the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import dataclass
from memfs.errors import IndexUnavailable, MemfsError, SettingInvalid
from memfs.fs import io
from memfs.model import Candidate, MemoryItem, Query, Stamp
from memfs.model.kinds import nearest
from memfs.search import analyzer, terms
from memfs.search.analyzer import WeightedTerms
from memfs.search.columns import COLUMNS, UNSTAMPED, DocumentColumns, DocumentRow
from memfs.search.documents import Filter, IndexRow, Place, row_of
from memfs.search.terms import Asked, PassageScores, Postings, TermStatistics
from memfs.startup import TYPE_CHECKING, Protocol, import_module

if TYPE_CHECKING:
    from typing import ClassVar

_NONE: Mapping[str, Stamp] = MappingProxyType({})


class Index(Protocol):
    """A search engine over items, keyed by id.

    All engines cut text into the same terms (``memfs.search.analyzer``), so that they find the same items.
    """

    name: str

    def add(self, items: Iterable[MemoryItem], stamps: Mapping[str, Stamp] = _NONE) -> None:
        """Add or replace items by id; they are found at once. Items carry ``id``, ``path`` and ``timestamp``.

        Args:
            stamps: by path those of the items' files, and of files whose items are known and stay as they are; an
                engine that keeps no files needs none.
        """

    def remove(self, ids: Iterable[str]) -> None:
        """Forget these ids; unknown ones are ignored."""

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties broken by id; items in ``hidden`` are left out.

        A text query finds items that share at least one term; an empty one lists by timestamp, newest first.
        ``query.layers`` is not looked at: the caller turns layers into types.

        Args:
            query: what to find.
            hidden: ids to leave out; unknown ones are ignored.
            asked: the terms to ask for, in place of those of the query's text, and their statistics over the larger
                collection that this index is a part of, to score on its scale; an engine that cannot use these scores
                on its own.

        Raises:
            IndexUnavailable: the engine's files cannot be read; the index must be rebuilt.
        """

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        """How many items pass the query's filters, whatever its text and limit; those in ``hidden`` are left out.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters, in no particular order, similarity 0.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        """Those of the items with these ids that pass the query's filters, in no particular order, similarity 0.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk; removed ones may count."""

    def worn(self) -> bool:
        """Whether so much of it belongs to removed and replaced items that it is better rebuilt.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def statistics(self, wanted: Collection[str]) -> TermStatistics:
        """Term statistics, so that fresh items kept elsewhere can be scored on the same scale.

        Removed and replaced items may count until the engine tidies up.
        """

    def terms(self, beginning: str) -> Iterable[str]:
        """The indexed terms that begin so; terms of removed items may be among them."""

    def flush(self) -> None:
        """Write what was added and removed to the engine's folder."""

    def release(self) -> None:
        """Close files, which the next call opens again; nothing waits to be flushed."""

    def close(self) -> None:
        """Release files; the engine is not used afterwards."""


# What a damaged file makes of a question, or of the reading of its rows.
_DAMAGE = (FileNotFoundError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, UnboundLocalError)
MOST_PENDING = 100_000
_HELD_NUMBERS, _HELD_TERMS = 300_000, 1_000
_FEW_DEAD = 1_000
"""How many documents of removed items are no reason yet to rebuild an index."""


class ColumnIndex(ABC):
    """An index in a folder, all but where its postings are. See ``Index`` for the promises.

    Documents are numbered through. Their rows and lengths are in ``DocumentColumns``, of which filters and answers are
    made. A removed item's postings stay until the index is rebuilt, under a number that no item has any more.
    """

    name: ClassVar[str]

    def __init__(self, folder: Path, columns: DocumentColumns | None = None) -> None:
        """``columns``: what was read of the folder already."""
        self._folder, self._columns = folder, columns
        self._held: dict[str, Postings] = {}  # of the terms that were asked for last
        self._held_numbers = 0
        self._rows: list[DocumentRow] = []
        self._numbers: dict[str, int] = {}  # of items that were added since the last flush
        self._dead: set[int] = set()
        self._restamped: dict[int, Stamp] = {}
        self._unwritten = False  # whether the columns have what the folder does not

    # -- postings -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def put(self, number: int, weights: Mapping[str, float]) -> None:
        """Note which terms the next document has."""

    @abstractmethod
    def commit(self) -> None:
        """Write what was noted to the folder."""

    @abstractmethod
    def read(self, term: str) -> Iterable[Postings]:
        """The documents that hold a term, and its weight in each; a part at a time. Opens the files."""

    @abstractmethod
    def terms(self, beginning: str) -> Iterable[str]:
        """As ``Index.terms``."""

    @abstractmethod
    def release(self) -> None:
        """As ``Index.release``; what was noted and not written is dropped."""

    def __enter__(self) -> ColumnIndex:
        """Within, what the reading of damaged files raises is said in our words."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and (translated := self.translated(error)) is not None:
            raise translated from error

    def translated(self, error: Exception) -> MemfsError | None:
        """What an error means, None for one that says so itself."""
        return self.unavailable(f"{type(error).__name__}: {error}") if isinstance(error, _DAMAGE) else None

    def unavailable(self, reason: str) -> IndexUnavailable:
        """The error for an index that cannot be read."""
        return IndexUnavailable(
            f"the {self.name} index cannot be used: {reason}",
            path=str(self._folder),
            hint="it is rebuilt from the files",
        )

    # -- writing ----------------------------------------------------------------------------------------------------
    def add(self, items: Iterable[MemoryItem], stamps: Mapping[str, Stamp] = _NONE) -> None:
        with self:
            known = ((self.known.number_at(path), stamp) for path, stamp in stamps.items())
            self._restamped |= {number: stamp for number, stamp in known if number is not None}
            for item in items:
                self.remove([item.id])
                row = row_of(item)
                for passage, (weights, length) in enumerate(analyzer.weighted_terms(item)):
                    number = len(self.known) + len(self._rows)
                    if not passage:
                        self._numbers[item.id] = number
                    self.put(number, weights)
                    self._rows.append(DocumentRow(row, passage, length, stamps.get(item.path, UNSTAMPED)))
                if len(self._rows) >= MOST_PENDING:
                    self._take_in()

    def remove(self, ids: Iterable[str]) -> None:
        with self:
            for key in ids:
                number = self._numbers.pop(key, None)
                if number is None and (number := self.known.number(key)) in self._dead:
                    continue
                if number is not None:
                    self._dead.add(number)

    def _take_in(self) -> None:
        """Make columns of what was added and removed."""
        self._columns = self.known.with_changes(self._rows, self._dead, self._restamped)
        self._rows, self._numbers, self._dead, self._restamped, self._unwritten = [], {}, set(), {}, True

    def flush(self) -> None:
        if self._rows or self._dead or self._restamped or self._unwritten:
            with io.operation("index:commit", self._folder), self:
                self.commit()
                self._take_in()
                io.write_file(self._folder / COLUMNS, self.known.pack(), durable=False)
            self._unwritten = False
            self._held, self._held_numbers = {}, 0

    def close(self) -> None:
        self.release()
        self._held, self._held_numbers = {}, 0
        self._columns, self._rows, self._numbers, self._dead = None, [], {}, set()
        self._restamped, self._unwritten = {}, False

    # -- asking -----------------------------------------------------------------------------------------------------
    @property
    def begun(self) -> bool:
        """Whether anything was ever flushed: the files of it must be there."""
        return (self._folder / COLUMNS).exists()

    @property
    def known(self) -> DocumentColumns:
        """The columns of what was flushed."""
        if self._columns is None:
            self._columns = DocumentColumns.read(self._folder)
        return self._columns

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        self.flush()
        with self:
            columns, wanted, covered = self.known, Filter.of(query), self._numbers_of(hidden)
            if not query.text:
                latest = columns.latest(wanted, covered, query.limit)
                return columns.candidates(latest)
            if asked is None:
                worth = terms.weights(query.text)
                asked = worth, self.statistics(worth)
            worth, statistics = asked
            first, second = terms.length_terms(statistics.average_length)
            lengths, passing, scores = columns.lengths, columns.passing(wanted), PassageScores(columns.firsts)
            for term, factor in terms.factors(worth, statistics).items():
                numbers, weights = self._held.get(term) or self._postings(term)
                found = numbers if passing is None else passing.intersection(numbers)  # mostly few of many
                held = weights if passing is None else [weights[bisect_left(numbers, number)] for number in found]
                rows = zip(found, held, strict=True)
                shares = {
                    number: factor * weight / (weight + first + second * lengths[number]) for number, weight in rows
                }
                scores.add(term, shares, statistics.groups.get(term))
            return columns.best(scores, columns.dead.union(covered), query.limit)

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        self.flush()
        with self:
            return len(self.known.latest(Filter.of(query), self._numbers_of(hidden), len(self.known)))

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with self:
            return self._chosen(self.known.at_places(places), query, hidden)

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with self:
            return self._chosen(self._numbers_of(dict.fromkeys(ids)), query, hidden)

    def _chosen(self, numbers: Iterable[int], query: Query, hidden: Collection[str]) -> list[Candidate]:
        covered = self._numbers_of(hidden)
        chosen = self.known.select(numbers, Filter.of(query))
        return self.known.candidates([number for number in chosen if number not in covered])

    def _numbers_of(self, ids: Iterable[str]) -> dict[int, None]:
        """The numbers of those of the ids that there are, in order."""
        return {number: None for key in ids if (number := self.known.number(key)) is not None}

    def has_conversations(self) -> bool:
        self.flush()
        with self:
            return len(self.known.in_talks) > 0

    def worn(self) -> bool:
        self.flush()
        with self:
            whole, firsts, dead = len(self.known), self.known.firsts, self.known.dead
            gone = sum(firsts.get(number, number) in dead for number in range(whole)) if dead else 0
            return gone > max(whole - gone, _FEW_DEAD)

    def statistics(self, wanted: Collection[str]) -> TermStatistics:
        self.flush()
        with self:
            return TermStatistics(
                passages=len(self.known),
                average_length=self.known.average_length,
                frequencies={term: len((self._held.get(term) or self._postings(term))[0]) for term in wanted},
            )

    def _postings(self, term: str) -> Postings:
        """Read the documents that hold a term, in order, and its weight in each; hold them, the oldest give way."""
        numbers, weights = array("I"), array("d")
        for some, theirs in self.read(term) if len(self.known) else ():
            numbers.extend(some)
            weights.extend(theirs)
        ordered = sorted(numbers)
        if ordered != numbers.tolist():
            known = dict(zip(numbers, weights, strict=True))
            numbers, weights = array("I", ordered), array("d", map(known.__getitem__, ordered))
        self._held[term] = found = numbers, weights
        self._held_numbers += len(numbers)
        while self._held_numbers > _HELD_NUMBERS or len(self._held) > _HELD_TERMS:
            self._held_numbers -= len(self._held.pop(next(iter(self._held)))[0])
        return found


Passage = tuple[str, int]
"""The id of an item, and the number of a passage of it."""


class MemoryIndex:
    """Every item's terms and row in dictionaries, and nothing on disk; see ``Index`` for the promises.

    The reference for the other engines, and the overlay of fresh items over them.
    """

    name = "memory"

    def __init__(self, *_: object) -> None:
        """Every engine is made for a folder; this one does without."""
        self._rows: dict[str, IndexRow] = {}
        self._uncut: dict[str, MemoryItem] = {}
        self._terms: dict[Passage, WeightedTerms] = {}
        self._postings: dict[str, dict[Passage, float]] = {}
        self._firsts: dict[Passage, Passage] = {}
        self._places: dict[Place, list[str]] = {}
        self._length = 0

    def add(self, items: Iterable[MemoryItem], stamps: Mapping[str, Stamp] = _NONE) -> None:  # noqa: ARG002
        for item in items:
            self.remove([item.id])
            self._rows[item.id] = row = row_of(item)
            if row.sequence is not None:
                self._places.setdefault((row.session, row.sequence), []).append(row.id)
            self._uncut[item.id] = item

    def cut(self) -> None:
        """Cut what was added into terms, which the first question with a text would do."""
        while self._uncut:
            name, item = self._uncut.popitem()
            passages = analyzer.weighted_terms(item)
            for number, (weights, length) in enumerate(passages):
                key = name, number
                self._terms[key] = weights, length
                self._length += length
                if len(passages) > 1:
                    self._firsts[key] = name, 0
                for term, weight in weights.items():
                    self._postings.setdefault(term, {})[key] = weight

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            row = self._rows.pop(key, None)
            self._uncut.pop(key, None)
            if row is not None and row.sequence is not None:
                held = self._places[row.session, row.sequence]
                held.remove(key)
                if not held:
                    del self._places[row.session, row.sequence]
            number = 0
            while (held_terms := self._terms.pop((key, number), None)) is not None:
                weights, length = held_terms
                self._length -= length
                self._firsts.pop((key, number), None)
                for term in weights:
                    holders = self._postings[term]
                    del holders[key, number]
                    if not holders:
                        del self._postings[term]
                number += 1

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        accepts = Filter.of(query).accepts
        if not query.text:
            rows = (row for row in self._rows.values() if row.id not in hidden and accepts(row))
            newest = nsmallest(query.limit, rows, key=lambda row: (-row.time, row.id))
            return [row.candidate(0.0) for row in newest]
        if asked is None:
            worth = terms.weights(query.text)
            asked = worth, self.statistics(worth)
        worth, statistics = asked
        first, second = terms.length_terms(statistics.average_length)
        self.cut()
        scores, lengths = PassageScores(self._firsts), self._terms
        for term, factor in terms.factors(worth, statistics).items():
            held = self._postings.get(term, {})
            shares = {
                key: factor * weight / (weight + first + second * lengths[key][1]) for key, weight in held.items()
            }
            scores.add(term, shares, statistics.groups.get(term))
        items = ((-score, key) for (key, _), score in scores.items().items())
        wanted = ((score, key) for score, key in items if key not in hidden and accepts(self._rows[key]))
        best = nsmallest(query.limit, wanted)
        words = scores.words([(key, 0) for _, key in best])
        return [
            self._rows[key].candidate(-score, scores.best.get((key, 0), (key, 0))[1], *words[key, 0])
            for score, key in best
        ]

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        accepts = Filter.of(query).accepts
        return sum(row.id not in hidden and accepts(row) for row in self._rows.values())

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        accepts = Filter.of(query).accepts
        keys = [key for place in dict.fromkeys(places) for key in self._places.get(place, ())]
        return [self._rows[key].candidate(0.0) for key in keys if key not in hidden and accepts(self._rows[key])]

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        accepts = Filter.of(query).accepts
        rows = [self._rows[key] for key in dict.fromkeys(ids) if key in self._rows and key not in hidden]
        return [row.candidate(0.0) for row in rows if accepts(row)]

    def has_conversations(self) -> bool:
        return bool(self._places)

    def worn(self) -> bool:
        return False

    def statistics(self, wanted: Collection[str]) -> TermStatistics:
        self.cut()
        return TermStatistics(
            passages=len(self._terms),
            average_length=self._length / len(self._terms) if self._terms else 0.0,
            frequencies={term: len(self._postings.get(term, ())) for term in wanted},
        )

    def terms(self, beginning: str) -> Collection[str]:
        self.cut()
        return [term for term in self._postings if term.startswith(beginning)]

    def flush(self) -> None:
        """Nothing to write."""

    def release(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine.

    Attributes:
        name: what the settings call it.
        form: names the form of its files; another form is never opened.
        stored: whether it keeps files at all; else all items stay in the overlay.
        rewrites: names of its files that it changes in place; all others it only ever makes, replaces or removes, so
            that two generations may share them.
        makes: the class that it is, as ``module:Class``; imported when an index is first opened.
    """

    name: str
    form: str
    makes: str
    stored: bool = True
    rewrites: frozenset[str] = frozenset()

    def open(self, folder: Path, columns: DocumentColumns | None = None) -> Index:
        """The index in a folder; ``columns`` is what was read of it already."""
        module, _, name = self.makes.partition(":")
        made: Index = getattr(import_module(module), name)(folder, columns)
        return made


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(name="memory", form="memory-1", makes="memfs.search.engine:MemoryIndex", stored=False),
        Engine(name="whoosh", form="whoosh-8", makes="memfs.search.whoosh:WhooshIndex"),
        Engine(
            name="sqlite",
            form="sqlite-10",
            makes="memfs.search.sqlite:SqliteIndex",
            rewrites=frozenset({"index.sqlite"}),
        ),
    )
}


def engine(name: str) -> Engine:
    """The engine of that name.

    Raises:
        SettingInvalid: there is none.
    """
    found = ENGINES.get(name)
    if found is None:
        hint = nearest(name, ENGINES) or f"choose one of {', '.join(ENGINES)}"
        raise SettingInvalid(f"unknown search engine {name!r}", field="index.engine", hint=hint)
    return found
