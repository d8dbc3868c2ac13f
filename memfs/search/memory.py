"""MemoryIndex: the reference engine, in plain dictionaries.

Also serves as the overlay of fresh items over other engines. Nothing is kept on disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from pathlib import Path

from memfs.model import Candidate, MemoryItem, Query
from memfs.search import analyzer, terms
from memfs.search.documents import Filter, IndexRow, Place, row_of
from memfs.search.engine import Asked, IndexStats, TermStatistics


class MemoryIndex:
    """Every item's terms and row in dictionaries. See ``memfs.search.engine.Index`` for the promises."""

    name = "memory"

    def __init__(self, folder: Path | None = None) -> None:  # noqa: ARG002 (every engine is made for a folder)
        self._rows: dict[str, IndexRow] = {}
        self._terms: dict[str, tuple[Mapping[str, float], int]] = {}
        self._postings: dict[str, dict[str, float]] = {}
        self._places: dict[Place, list[str]] = {}
        self._length = 0
        self._postponed: dict[str, MemoryItem] = {}

    def postpone(self, item: MemoryItem) -> None:
        """Add an item when somebody asks: many that are folded into a base meanwhile are never cut into terms here."""
        self._forget(item.id)
        self._postponed[item.id] = item

    def _catch_up(self) -> None:
        if self._postponed:
            postponed, self._postponed = self._postponed, {}
            self.add(postponed.values())

    def add(self, items: Iterable[MemoryItem]) -> None:
        for item in items:
            self.take(row_of(item), *analyzer.weighted_terms(item))

    def take(self, row: IndexRow, weights: Mapping[str, float], length: int) -> None:
        """Add or replace an item of which is known what a search needs: each term's weight, and how many it has."""
        self._forget(row.id)
        self._rows[row.id] = row
        if row.sequence is not None:
            self._places.setdefault((row.session, row.sequence), []).append(row.id)
        self._terms[row.id] = (weights, length)
        self._length += length
        for term, weight in weights.items():
            self._postings.setdefault(term, {})[row.id] = weight

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._postponed.pop(key, None)
        row = self._rows.pop(key, None)
        if row is None:
            return
        if row.sequence is not None:
            held = self._places[row.session, row.sequence]
            held.remove(key)
            if not held:
                del self._places[row.session, row.sequence]
        weights, length = self._terms.pop(key)
        self._length -= length
        for term in weights:
            holders = self._postings[term]
            del holders[key]
            if not holders:
                del self._postings[term]

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        self._catch_up()
        accepts = Filter.of(query).accepts
        if not query.text:
            rows = (row for row in self._rows.values() if row.id not in hidden and accepts(row))
            newest = nsmallest(query.limit, rows, key=lambda row: (-row.time, row.id))
            return [row.candidate(0.0) for row in newest]
        if asked is None:
            worth = terms.weights(query.text)
            asked = worth, self.statistics(worth)
        scores = self._scores(*asked)
        wanted = ((-score, key) for key, score in scores.items() if key not in hidden and accepts(self._rows[key]))
        return [self._rows[key].candidate(-score) for score, key in nsmallest(query.limit, wanted)]

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self._catch_up()
        accepts = Filter.of(query).accepts
        keys = [key for place in dict.fromkeys(places) for key in self._places.get(place, ())]
        return [self._rows[key].candidate(0.0) for key in keys if key not in hidden and accepts(self._rows[key])]

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self._catch_up()
        accepts = Filter.of(query).accepts
        rows = [self._rows[key] for key in dict.fromkeys(ids) if key in self._rows and key not in hidden]
        return [row.candidate(0.0) for row in rows if accepts(row)]

    def talks(self) -> bool:
        self._catch_up()
        return bool(self._places)

    def _scores(self, worth: Mapping[str, float], statistics: TermStatistics) -> dict[str, float]:
        first, second = terms.length_terms(statistics.average_length)
        scores: dict[str, float] = {}
        for term, factor in terms.factors(worth, statistics).items():
            for key, weight in self._postings.get(term, {}).items():
                share = factor * weight / (weight + first + second * self._terms[key][1])
                scores[key] = scores.get(key, 0.0) + share
        return scores

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        self._catch_up()
        return TermStatistics(
            items=len(self._rows),
            average_length=self._length / len(self._rows) if self._rows else 0.0,
            frequencies={term: len(self._postings.get(term, ())) for term in terms},
        )

    def terms(self, beginning: str) -> Collection[str]:
        self._catch_up()
        return [term for term in self._postings if term.startswith(beginning)]

    def ids(self) -> Collection[str]:
        self._catch_up()
        return self._rows.keys()

    def flush(self) -> None:
        """Nothing to write."""

    def stats(self) -> IndexStats:
        return IndexStats(engine=self.name, items=len(self._rows) + len(self._postponed), bytes=0)

    def clear(self) -> None:
        self._postponed.clear()
        self._rows.clear()
        self._terms.clear()
        self._postings.clear()
        self._places.clear()
        self._length = 0

    def close(self) -> None:
        """Nothing to release."""
