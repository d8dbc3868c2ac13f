"""Joining: one answer from a base and the fresh items over it, on one scale.

Owns what is asked of both, the order of what they answer, and how a base is filled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from memfs.errors import IndexUnavailable
from memfs.index import bm25, question
from memfs.index.base import Index, TermStatistics
from memfs.index.overlay import Overlay
from memfs.index.rows import Place
from memfs.index.stamps import Entry, StampTable
from memfs.model import Candidate, MemoryItem, Query, Stamp

_NO_TIME = datetime.min.replace(tzinfo=UTC)

Asked = tuple[Mapping[str, float], TermStatistics]
"""What a query's terms are worth, and their statistics over all that is asked together."""


class Counted(Protocol):
    """What knows how its terms are spread."""

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """How many items there are, and in how many each term occurs."""

    def terms(self, beginning: str) -> Iterable[str]:
        """The terms that begin so."""


def search(
    query: Query,
    base: Index | None,
    fresh: Overlay,
    table: StampTable,
    asked: Asked | None = None,
) -> list[Candidate]:
    """The best items of both, best first, ties by id.

    Args:
        base: None while there is none.
        table: the base's stamps, which know all of what it finds.
        asked: what the query's terms are worth, where more than these two are asked together.

    Raises:
        IndexUnavailable: the base names what it does not hold.
    """
    if base is None:
        worth, shared = asked or asked_of(query, [fresh.index])
        return fresh.index.search(query, (), shared, worth)
    if not len(fresh):
        worth, shared = asked or asked_of(query, [base])
        return _fitting(base.search(query, (), shared, worth), table)
    worth, shared = asked or asked_of(query, [base, fresh.index])
    found = _fitting(base.search(query, fresh.hidden, shared, worth), table)
    found += fresh.index.search(query, (), shared, worth)
    found.sort(key=lambda candidate: candidate.id)
    found.sort(key=_worth, reverse=True)
    return found[: query.limit]


def beside(
    places: Collection[Place],
    query: Query,
    base: Index | None,
    fresh: Overlay,
    table: StampTable,
) -> list[Candidate]:
    """The items of both at these places of talks."""
    below = [] if base is None else _fitting(base.beside(places, query, fresh.hidden), table)
    return below + fresh.index.beside(places, query)


def among(
    ids: Collection[str],
    query: Query,
    base: Index | None,
    fresh: Overlay,
    table: StampTable,
) -> list[Candidate]:
    """The items of both with these ids."""
    below = [] if base is None else _fitting(base.among(ids, query, fresh.hidden), table)
    return below + fresh.index.among(ids, query)


def statistics(terms: Collection[str], base: Index | None, fresh: Overlay) -> TermStatistics:
    """In how many items of both each term occurs; removed and replaced ones may count."""
    parts = [fresh.index] if base is None else [base, fresh.index]
    return bm25.joined([part.statistics(terms) for part in parts], terms)


def known_terms(beginning: str, base: Index | None, fresh: Overlay) -> set[str]:
    """The terms of both that begin so."""
    parts = [fresh.index] if base is None else [base, fresh.index]
    return {term for part in parts for term in part.terms(beginning)}


def filled(index: Index, items: Iterable[tuple[MemoryItem, Stamp]]) -> StampTable:
    """Add all items to an index, one at a time; return the table of their stamps."""
    entries: dict[str, Entry] = {}

    def passing() -> Iterator[MemoryItem]:
        for item, stamp in items:
            entries.pop(item.path, None)
            entries[item.path] = (item.id, stamp)
            yield item

    index.add(passing())
    return StampTable.of(entries)


def asked_of(query: Query, parts: Sequence[Counted]) -> Asked:
    """What a query's terms are worth, and their statistics over all parts together.

    A term that no part holds is joined by those that it may be a slip of.
    """
    worth = question.weights(query.text)
    shared = bm25.joined([part.statistics(worth) for part in parts], worth)
    slips = {
        near: share * question.SLIP_WEIGHT
        for term, share in worth.items()
        if not shared.frequencies[term]
        for near in question.nearby(term, {known for part in parts for known in part.terms(term[0])})
        if near not in worth
    }
    if not slips:
        return worth, shared
    worth |= slips
    return worth, bm25.joined([part.statistics(worth) for part in parts], worth)


def _fitting(found: list[Candidate], table: StampTable) -> list[Candidate]:
    """What a base's engine found, if its stamps know all of it: a damaged file may name anything."""
    for candidate in found:
        if candidate.path not in table or table[candidate.path][0] != candidate.id:
            raise IndexUnavailable(f"it names what it does not hold: {candidate.id!r}")
    return found


def _worth(candidate: Candidate) -> tuple[float, datetime]:
    return candidate.similarity, candidate.timestamp if not candidate.similarity else _NO_TIME
