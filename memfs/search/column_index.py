"""ColumnIndex: what the engines that keep files have in common, which is all but where postings lie.

Documents are numbered through. Their rows and lengths are in ``DocumentColumns``, which is what filters and answers are
made of; scores are computed by our formula, the same for every engine to the last digit.

A removed item's postings stay until the index is rebuilt, under a number that is nobody's any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from memfs.errors import IndexUnavailable
from memfs.fs import io
from memfs.model import Candidate, MemoryItem, Query
from memfs.search import analyzer, terms
from memfs.search.columns import DocumentColumns, DocumentRow
from memfs.search.documents import Filter, Place, row_of
from memfs.search.engine import Asked, IndexStats, TermStatistics
from memfs.search.terms import PassageScores, PostingCache, Postings

COLUMNS = "columns"
# What a damaged file makes of a question, or of the reading of its rows.
_DAMAGE = (FileNotFoundError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, UnboundLocalError)
_MOST_PENDING = 100_000


class ColumnIndex(ABC):
    """An index in a folder. See ``memfs.search.engine.Index`` for the promises."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._columns: DocumentColumns | None = None
        self._held = PostingCache()
        self._rows: list[DocumentRow] = []
        self._numbers: dict[str, int] = {}  # of items that were added since the last flush
        self._dead: set[int] = set()

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

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Say in our words what the reading of damaged files raises."""
        try:
            yield
        except _DAMAGE as error:
            raise self.unavailable(f"{type(error).__name__}: {error}") from error

    def unavailable(self, reason: str) -> IndexUnavailable:
        """The error for an index that cannot be read."""
        return IndexUnavailable(
            f"the {self.name} index cannot be used: {reason}",
            path=str(self._folder),
            hint="it is rebuilt from the files",
        )

    # -- writing ----------------------------------------------------------------------------------------------------
    def add(self, items: Iterable[MemoryItem]) -> None:
        with self.reported():
            for item in items:
                self.remove([item.id])
                row = row_of(item)
                for passage, (weights, length) in enumerate(analyzer.weighted_terms(item)):
                    number = len(self.known) + len(self._rows)
                    if not passage:
                        self._numbers[item.id] = number
                    self.put(number, weights)
                    self._rows.append(DocumentRow(row, passage, length))
                if len(self._rows) > _MOST_PENDING:
                    self._take_in()

    def remove(self, ids: Iterable[str]) -> None:
        with self.reported():
            for key in ids:
                number = self._numbers.pop(key, None)
                if number is None and (number := self.known.number(key)) in self._dead:
                    continue
                if number is not None:
                    self._dead.add(number)

    def _take_in(self) -> None:
        """Make columns of what was added and removed."""
        self._columns = self.known.with_changes(self._rows, self._dead)
        self._rows, self._numbers, self._dead = [], {}, set()

    def flush(self) -> None:
        if self._rows or self._dead:
            with io.operation("index:commit", self._folder), self.reported():
                self.commit()
                self._take_in()
                io.write_file(self._folder / COLUMNS, self.known.pack(), durable=False)
            self._held.clear()

    def clear(self) -> None:
        self.close()
        for path in self._files():
            io.unlink(path)

    def close(self) -> None:
        self.release()
        self._held.clear()
        self._columns, self._rows, self._numbers, self._dead = None, [], {}, set()

    # -- asking -----------------------------------------------------------------------------------------------------
    @property
    def begun(self) -> bool:
        """Whether anything was ever flushed: the files of it must be there."""
        return (self._folder / COLUMNS).exists()

    @property
    def known(self) -> DocumentColumns:
        """The columns of what was flushed."""
        if self._columns is None:
            self._columns = DocumentColumns.read(self._folder / COLUMNS)
        return self._columns

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        self.flush()
        with self.reported():
            columns, wanted, covered = self.known, Filter.of(query), self._numbers_of(hidden)
            if not query.text:
                return [columns.candidate(number) for number in columns.latest(wanted, covered, query.limit)]
            if asked is None:
                worth = terms.weights(query.text)
                asked = worth, self.statistics(worth)
            return columns.best(self._scores(*asked, columns.passing(wanted)), columns.dead.union(covered), query.limit)

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        self.flush()
        with self.reported():
            return len(self.known.latest(Filter.of(query), self._numbers_of(hidden), len(self.known)))

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with self.reported():
            return self._chosen(self.known.at_places(places), query, hidden)

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with self.reported():
            return self._chosen(self._numbers_of(dict.fromkeys(ids)), query, hidden)

    def _chosen(self, numbers: Iterable[int], query: Query, hidden: Collection[str]) -> list[Candidate]:
        covered = self._numbers_of(hidden)
        chosen = self.known.select(numbers, Filter.of(query))
        return [self.known.candidate(number) for number in chosen if number not in covered]

    def _numbers_of(self, ids: Iterable[str]) -> dict[int, None]:
        """The numbers of those of the ids that there are, in order."""
        return {number: None for key in ids if (number := self.known.number(key)) is not None}

    def talks(self) -> bool:
        self.flush()
        with self.reported():
            return self.known.talks

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        self.flush()
        with self.reported():
            return TermStatistics(
                passages=len(self.known),
                average_length=self.known.average_length,
                frequencies={term: len(self._postings(term)[0]) for term in terms},
            )

    def ids(self) -> Collection[str]:
        self.flush()
        with self.reported():
            return self.known.numbers.keys()

    def stats(self) -> IndexStats:
        return IndexStats(
            engine=self.name, items=len(self.ids()), bytes=sum(path.stat().st_size for path in self._files())
        )

    def _files(self) -> list[Path]:
        return sorted(self._folder.iterdir()) if self._folder.is_dir() else []

    # -- scoring ----------------------------------------------------------------------------------------------------
    def _scores(
        self, worth: Mapping[str, float], statistics: TermStatistics, passing: Collection[int] | None
    ) -> PassageScores[int]:
        """The score of every document that holds one of the terms, of those that pass."""
        first, second = terms.length_terms(statistics.average_length)
        lengths = self.known.lengths
        scores = PassageScores(self.known.firsts)
        for term, factor in terms.factors(worth, statistics).items():
            numbers, weights = self._postings(term)
            rows: Iterable[tuple[int, float]] = zip(numbers, weights, strict=True)
            if passing is not None:
                rows = [row for row in rows if row[0] in passing]
            shares = {number: factor * weight / (weight + first + second * lengths[number]) for number, weight in rows}
            scores.add(shares, shares.values())
        return scores

    def _postings(self, term: str) -> Postings:
        """The documents that hold a term, and its weight in each; those asked for last are kept."""
        if (held := self._held.get(term)) is not None:
            return held
        numbers, weights = array("I"), array("d")
        for some, theirs in self.read(term) if len(self.known) else ():
            numbers.extend(some)
            weights.extend(theirs)
        return self._held.hold(term, numbers, weights)
