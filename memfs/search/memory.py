"""MemoryIndex: the reference engine, in plain dictionaries.

Also serves as the overlay of fresh items over other engines. Nothing is kept on disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from pathlib import Path

from memfs.model import Candidate, MemoryItem, Query
from memfs.search import analyzer, terms
from memfs.search.analyzer import WeightedTerms
from memfs.search.documents import Filter, IndexRow, Place, row_of
from memfs.search.terms import Asked, PassageScores, TermStatistics

Passage = tuple[str, int]
"""The id of an item, and the number of a passage of it."""


class MemoryIndex:
    """Every item's terms and row in dictionaries. See ``memfs.search.engine.Index`` for the promises."""

    name = "memory"

    def __init__(self, folder: Path | None = None) -> None:  # noqa: ARG002 (every engine is made for a folder)
        self._rows: dict[str, IndexRow] = {}
        self._terms: dict[Passage, WeightedTerms] = {}
        self._postings: dict[str, dict[Passage, float]] = {}
        self._firsts: dict[Passage, Passage] = {}
        self._places: dict[Place, list[str]] = {}
        self._length = 0

    def add(self, items: Iterable[MemoryItem]) -> None:
        for item in items:
            self._forget(item.id)
            self._rows[item.id] = row = row_of(item)
            if row.sequence is not None:
                self._places.setdefault((row.session, row.sequence), []).append(row.id)
            passages = analyzer.weighted_terms(item)
            for number, (weights, length) in enumerate(passages):
                key = item.id, number
                self._terms[key] = weights, length
                self._length += length
                if len(passages) > 1:
                    self._firsts[key] = item.id, 0
                for term, weight in weights.items():
                    self._postings.setdefault(term, {})[key] = weight

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            self._forget(key)

    def _forget(self, key: str) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            return
        if row.sequence is not None:
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
        scores = self._scores(*asked)
        items = ((-score, key) for (key, _), score in scores.items().items())
        wanted = ((score, key) for score, key in items if key not in hidden and accepts(self._rows[key]))
        best = nsmallest(query.limit, wanted)
        return [self._rows[key].candidate(-score, scores.best((key, 0))[1]) for score, key in best]

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

    def _scores(self, worth: Mapping[str, float], statistics: TermStatistics) -> PassageScores[Passage]:
        first, second = terms.length_terms(statistics.average_length)
        scores = PassageScores(self._firsts)
        for term, factor in terms.factors(worth, statistics).items():
            held = self._postings.get(term, {})
            shares = [factor * weight / (weight + first + second * self._terms[key][1]) for key, weight in held.items()]
            scores.add(held, shares, statistics.groups.get(term))
        return scores

    def statistics(self, wanted: Collection[str]) -> TermStatistics:
        return TermStatistics(
            passages=len(self._terms),
            average_length=self._length / len(self._terms) if self._terms else 0.0,
            frequencies={term: len(self._postings.get(term, ())) for term in wanted},
        )

    def terms(self, beginning: str) -> Collection[str]:
        return [term for term in self._postings if term.startswith(beginning)]

    def flush(self) -> None:
        """Nothing to write."""

    def release(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing to release."""
