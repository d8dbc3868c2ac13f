"""Joining: one answer from a base and the fresh items over it, on one scale.

Owns what is asked of both, the order of what they answer, and how a base is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from memfs.index import bm25, question
from memfs.index.base import Index, TermStatistics
from memfs.index.overlay import Overlay
from memfs.index.rows import Place
from memfs.index.stamps import Entry, StampTable
from memfs.model import Candidate, MemoryItem, Query, Stamp

_NO_TIME = datetime.min.replace(tzinfo=UTC)


def search(
    query: Query, base: Index | None, fresh: Overlay, fitting: Callable[[list[Candidate]], list[Candidate]]
) -> list[Candidate]:
    """The best items of both, best first, ties by id.

    Args:
        base: None while there is none.
        fitting: checks what the base found, and raises where it cannot be so.
    """
    if base is None:
        worth, shared = _asked(query, [fresh.index])
        return fresh.index.search(query, (), shared, worth)
    if not len(fresh):
        worth, shared = _asked(query, [base])
        return fitting(base.search(query, (), shared, worth))
    worth, shared = _asked(query, [base, fresh.index])
    found = fitting(base.search(query, fresh.hidden, shared, worth)) + fresh.index.search(query, (), shared, worth)
    found.sort(key=lambda candidate: candidate.id)
    found.sort(key=_worth, reverse=True)
    return found[: query.limit]


def beside(
    places: Collection[Place],
    query: Query,
    base: Index | None,
    fresh: Overlay,
    fitting: Callable[[list[Candidate]], list[Candidate]],
) -> list[Candidate]:
    """The items of both at these places of talks."""
    below = [] if base is None else fitting(base.beside(places, query, fresh.hidden))
    return below + fresh.index.beside(places, query)


def among(
    ids: Collection[str],
    query: Query,
    base: Index | None,
    fresh: Overlay,
    fitting: Callable[[list[Candidate]], list[Candidate]],
) -> list[Candidate]:
    """The items of both with these ids."""
    below = [] if base is None else fitting(base.among(ids, query, fresh.hidden))
    return below + fresh.index.among(ids, query)


def frequencies(terms: Collection[str], base: Index | None, fresh: Overlay) -> Mapping[str, int]:
    """In how many items of both each term occurs; removed and replaced ones may count."""
    parts = [fresh.index] if base is None else [base, fresh.index]
    return bm25.joined([part.statistics(terms) for part in parts], terms).frequencies


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


def _asked(query: Query, parts: Sequence[Index]) -> tuple[dict[str, float], TermStatistics]:
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


def _worth(candidate: Candidate) -> tuple[float, datetime]:
    return candidate.similarity, candidate.timestamp if not candidate.similarity else _NO_TIME
