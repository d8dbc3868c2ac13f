"""WhooshIndex: asking and changing an index that Whoosh keeps.

Owns scoring; how files are read and written stands beside it.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from whoosh.reading import SegmentReader

from memfs.files import io
from memfs.index import bm25, question
from memfs.index.base import IndexStats, TermStatistics
from memfs.index.columns import Columns
from memfs.index.rows import Filter, Place
from memfs.index.whoosh.files import (
    COLUMNS,
    FIELD,
    Block,
    blocks,
    file_names,
    open_leaves,
    reads_blocks,
    reported,
    unavailable,
)
from memfs.index.whoosh.writing import Writing
from memfs.model import Candidate, MemoryItem, Query

# Postings kept in memory, at most 4 MB of them: what is talked about is asked about again.
_HELD_NUMBERS = 300_000
_HELD_TERMS = 1_000


class WhooshIndex:
    """A Whoosh index in a folder. See ``memfs.index.base.Index`` for the promises."""

    name = "whoosh"

    def __init__(self, folder: Path) -> None:
        self.block_scoring = reads_blocks()
        self._folder = folder
        self._columns: Columns | None = None
        self._leaves: list[tuple[SegmentReader, int]] | None = None
        self._average: float | None = None
        self._writing: Writing | None = None
        self._held: OrderedDict[str, Block] = OrderedDict()
        self._held_numbers = 0

    # -- writing ----------------------------------------------------------------------------------------------------
    def add(self, items: Iterable[MemoryItem]) -> None:
        for item in items:
            self._writer(item.id).add(item)

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            if key in self._known or (self._writing is not None and key in self._writing.added):
                self._writer(key).remove(key)

    def _writer(self, key: str) -> Writing:
        """The open writer; Whoosh cannot replace what it has not committed, so a second change of an id commits."""
        if self._writing is not None and key in self._writing.added:
            self.flush()
        if self._writing is None:
            known = self._known_columns()
            self._release()
            self._writing = Writing(self._folder, known)
        return self._writing

    def flush(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            try:
                self._columns = writing.commit()
            except BaseException:
                writing.cancel()
                raise

    def clear(self) -> None:
        self.close()
        for name in file_names(self._folder):
            io.unlink(self._folder / name)
        self._columns = None

    def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        self._release()
        self._columns = None

    def _release(self) -> None:
        for leaf, _ in self._leaves or ():
            leaf.close()
        self._leaves = None
        self._average = None
        self._held.clear()
        self._held_numbers = 0

    # -- asking -----------------------------------------------------------------------------------------------------
    def search(
        self,
        query: Query,
        hidden: Collection[str] = (),
        statistics: TermStatistics | None = None,
        worth: Mapping[str, float] | None = None,
    ) -> list[Candidate]:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            covered = {columns.numbers[key] for key in hidden if key in columns.numbers} if hidden else set()
            wanted = Filter.of(query)
            if not query.text:
                return [columns.candidate(number, 0.0) for number in columns.latest(wanted, covered, query.limit)]
            worth = question.weights(query.text) if worth is None else worth
            scores = self._scores(worth, statistics or self.statistics(worth))
            for number in columns.dead | covered:
                scores.pop(number, None)
            return columns.best(scores, wanted, query.limit)

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            numbers = columns.select(columns.at_places(places), Filter.of(query))
            found = [columns.candidate(number, 0.0) for number in numbers]
            return [candidate for candidate in found if candidate.id not in hidden]

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            held = [columns.numbers[key] for key in dict.fromkeys(ids) if key in columns.numbers and key not in hidden]
            return [columns.candidate(number, 0.0) for number in columns.select(held, Filter.of(query))]

    def talks(self) -> bool:
        self.flush()
        with reported(self._folder):
            return self._known_columns().talks

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            if self._average is None:
                self._average = columns.average_length()
            frequencies = {term: sum(leaf.doc_frequency(FIELD, term) for leaf, _ in self._opened()) for term in terms}
            return TermStatistics(items=len(columns), average_length=self._average, frequencies=frequencies)

    def terms(self, beginning: str) -> Iterable[str]:
        self.flush()
        with reported(self._folder):
            found = (leaf.expand_prefix(FIELD, beginning.encode()) for leaf, _ in self._opened())
            return [term.decode() for terms in found for term in terms]

    def ids(self) -> Collection[str]:
        self.flush()
        return self._known

    def stats(self) -> IndexStats:
        self.flush()
        size = sum((self._folder / name).stat().st_size for name in file_names(self._folder))
        return IndexStats(engine=self.name, items=self._known_columns().live, bytes=size)

    @property
    def segments(self) -> int:
        """How many segments a search reads."""
        return len(self._opened())

    @property
    def _known(self) -> Mapping[str, int]:
        return self._known_columns().numbers

    def _known_columns(self) -> Columns:
        if self._columns is None:
            self._columns = Columns.read(self._folder / COLUMNS)
        return self._columns

    def _opened(self) -> list[tuple[SegmentReader, int]]:
        """Every segment's reader with the number of its first document."""
        if self._leaves is None:
            self._leaves = open_leaves(self._folder) if len(self._known_columns()) else []
            if sum(leaf.doc_count_all() for leaf, _ in self._leaves) != len(self._known_columns()):
                raise unavailable("its columns do not fit its segments")
        return self._leaves

    # -- scoring ----------------------------------------------------------------------------------------------------
    def _scores(self, worth: Mapping[str, float], statistics: TermStatistics) -> dict[int, float]:
        """The score of every document that holds one of the terms, dead ones too."""
        factors = bm25.factors(worth, statistics)
        first, second = bm25.length_terms(statistics.average_length)
        if self.block_scoring:
            return self._block_scores(factors, first, second)
        return self._plain_scores(factors, first, second)

    def _block_scores(self, factors: Mapping[str, float], first: float, second: float) -> dict[int, float]:
        lengths = self._known_columns().lengths
        scores: dict[int, float] = {}
        for term, factor in factors.items():
            numbers, weights = self._postings(term)
            shares = [
                factor * weight / (weight + first + second * lengths[number])
                for number, weight in zip(numbers, weights, strict=True)
            ]
            known = scores.get
            if scores:
                for number, share in zip(numbers, shares, strict=True):
                    scores[number] = known(number, 0.0) + share
            else:
                scores = dict(zip(numbers, shares, strict=True))
        return scores

    def _postings(self, term: str) -> Block:
        """The documents of all segments that hold a term, and their weights; those asked for last are kept."""
        held = self._held.get(term)
        if held is not None:
            self._held.move_to_end(term)
            return held
        numbers, weights = array("I"), array("d")
        for leaf, base in self._opened():
            for some, theirs in blocks(leaf, term):
                numbers.extend([base + number for number in some])
                weights.extend(list(theirs))
        self._held[term] = numbers, weights
        self._held_numbers += len(numbers)
        while self._held_numbers > _HELD_NUMBERS or len(self._held) > _HELD_TERMS:
            self._held_numbers -= len(self._held.popitem(last=False)[1][0])
        return numbers, weights

    def _plain_scores(self, factors: Mapping[str, float], first: float, second: float) -> dict[int, float]:
        """Whoosh's own search with our formula: slower, and through its public interface only."""
        from whoosh.query import Or, Term
        from whoosh.scoring import BaseScorer, WeightingModel
        from whoosh.searching import Searcher

        lengths = self._known_columns().lengths

        class Scorer(BaseScorer):  # type: ignore[misc]
            def __init__(self, factor: float, base: int) -> None:
                self.factor = factor
                self.base = base

            def supports_block_quality(self) -> bool:
                return False

            def score(self, matcher: Any) -> float:
                weight = float(matcher.weight())
                length: int = lengths[self.base + matcher.id()]
                return self.factor * weight / (weight + first + second * length)

        class Formula(WeightingModel):  # type: ignore[misc]
            def __init__(self, base: int) -> None:
                self.base = base

            def scorer(self, searcher: Any, fieldname: str, text: bytes, qf: int = 1) -> Scorer:  # noqa: ARG002
                return Scorer(factors[text.decode()], self.base)

        asked = Or([Term(FIELD, term) for term in factors])
        scores: dict[int, float] = {}
        for leaf, base in self._opened():
            results = Searcher(leaf, weighting=Formula(base)).search(asked, limit=None, optimize=False)
            scores |= {base + number: score for score, number in results.top_n}
        return scores
