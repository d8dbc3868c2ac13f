"""Searches a base index and the overlay of fresh items over it as one, and collects that overlay.

Scores of both are on one scale, ties are ordered by id, and a base item that the overlay replaced or removed is never
returned.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from memfs.errors import IndexUnavailable
from memfs.model import Candidate, MemoryItem, Query, Stamp
from memfs.search import terms
from memfs.search.documents import IndexDocument, Place
from memfs.search.engine import Asked, Index, TermStatistics
from memfs.search.memory import MemoryIndex
from memfs.search.stamps import Entry, LayeredStamps, Rows, StampTable


@dataclass(frozen=True, slots=True)
class Changes:
    """A moment's content of an overlay, for making a generation of it.

    Attributes:
        entries: path to (id, stamp) of what was added.
        items: the added items that the index holds, one for each id.
        gone: base paths that were removed.
        hidden: base ids to take out.
        versions: which version of each path this is.
    """

    entries: Mapping[str, Entry]
    items: tuple[MemoryItem, ...]
    gone: frozenset[str]
    hidden: frozenset[str]
    versions: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.entries or self.gone)


class Overlay:
    """Fresh items over a base's stamp table. Not safe for several threads: ``SearchIndex`` holds its lock.

    ``rows`` is what ``entries``, ``gone`` and ``restamped`` (base paths looked at again) say together. ``clock`` rises
    with every change.
    """

    def __init__(self, base: StampTable) -> None:
        self._base = base
        self.index = MemoryIndex()
        self.items: dict[str, MemoryItem] = {}
        self.entries: dict[str, Entry] = {}
        self.gone: dict[str, int] = {}
        self.restamped: dict[str, Entry] = {}
        self.rows: Rows = {}
        self.hidden: set[str] = set()
        self._versions: dict[str, int] = {}
        self.clock = 0

    def __len__(self) -> int:
        return len(self.entries) + len(self.gone)

    def view(self) -> LayeredStamps:
        """Base and overlay together as of now."""
        return LayeredStamps(self._base, dict(self.rows))

    def restamp(self, path: str, stamp: Stamp) -> None:
        """Give a known path another stamp: its content is what it was."""
        self.clock += 1
        held = self.entries.get(path)
        if held is not None:
            self.entries[path] = self.rows[path] = (held[0], stamp)
        elif path in self._base and path not in self.gone:
            self.restamped[path] = self.rows[path] = (self._base[path][0], stamp)

    def add(self, item: MemoryItem, stamp: Stamp, *, later: bool = False) -> None:
        """Index an item in place of whatever its path and its id held; ``later`` with the next search."""
        before = self._drop(item.path)
        self.gone.pop(item.path, None)
        self.restamped.pop(item.path, None)
        self.entries[item.path] = self.rows[item.path] = (item.id, stamp)
        self.items[item.id] = item
        if later:
            self.index.postpone(item)
        else:
            self.index.add([item])
        self._touch(item.path)
        self._settle(item.id, before, self._base_id(item.path))

    def remove(self, path: str) -> None:
        """Forget a path; one that is not known is ignored."""
        before = self._drop(path)
        self.restamped.pop(path, None)
        if path in self._base:
            self.gone[path] = time.time_ns()
            self.rows[path] = None
        elif before:
            self.rows.pop(path, None)
        else:
            return
        self._touch(path)
        self._settle(before, self._base_id(path))

    def changes(self) -> Changes:
        """What it holds now."""
        return Changes(
            dict(self.entries),
            tuple(self.items.values()),
            frozenset(self.gone),
            frozenset(self.hidden),
            dict(self._versions),
        )

    def rebased(self, base: StampTable, done: Mapping[str, int] | None = None) -> Overlay:
        """This overlay over another base, less what that base already says.

        Args:
            base: the new base's stamps.
            done: versions of paths that the new base was made from; without it, whichever of base and overlay looked at
                a file later is believed (the next freshness check corrects what clocks got wrong).
        """
        fresh = Overlay(base)
        for path, (key, stamp) in self.entries.items():
            if self._done(path, done) or (done is None and _known(base, path, stamp)):
                continue
            item = self.items.get(key)
            if item is not None and item.path == path:
                fresh.add(item, stamp)
            else:
                fresh.entries[path] = fresh.rows[path] = (key, stamp)
                fresh._settle(key, fresh._base_id(path))
            fresh._versions[path] = self._versions[path]
        for path, when in self.gone.items():
            covered = self._done(path, done) or (done is None and path in base and base[path][1].checked_ns > when)
            if not covered and path in base:
                fresh.remove(path)
                fresh.gone[path] = when
                fresh._versions[path] = self._versions[path]
        fresh.clock = self.clock
        return fresh

    def _done(self, path: str, done: Mapping[str, int] | None) -> bool:
        return done is not None and done.get(path) == self._versions[path]

    def _touch(self, path: str) -> None:
        self.clock += 1
        self._versions[path] = self.clock

    def _drop(self, path: str) -> str:
        """Take a path's item out; return its id."""
        key, _ = self.entries.pop(path, ("", None))
        item = self.items.get(key)
        if item is not None and item.path == path:
            del self.items[key]
            self.index.remove([key])
        return key

    def _base_id(self, path: str) -> str:
        return self._base[path][0] if path in self._base else ""

    def _settle(self, *ids: str) -> None:
        """Hide a base id if the overlay holds it, or its file is gone or has changed; else show it."""
        for key in ids:
            holder = self._base.holder(key)
            if holder is not None and (key in self.items or holder in self.gone or holder in self.entries):
                self.hidden.add(key)
            else:
                self.hidden.discard(key)


def _known(base: StampTable, path: str, stamp: Stamp) -> bool:
    if path not in base:
        return False
    _, theirs = base[path]
    return theirs.blob == stamp.blob or theirs.checked_ns > stamp.checked_ns


_NO_TIME = datetime.min.replace(tzinfo=UTC)


class TermCounts(Protocol):
    """Counts in how many items each term occurs."""

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
        return fresh.index.search(query, (), asked or asked_of(query, [fresh.index]))
    asked = asked or asked_of(query, [base, fresh.index] if len(fresh) else [base])
    found = _fitting(base.search(query, fresh.hidden, asked), table)
    if not len(fresh):
        return found
    found += fresh.index.search(query, (), asked)
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


def statistics(wanted: Collection[str], base: Index | None, fresh: Overlay) -> TermStatistics:
    """In how many items of both each term occurs; removed and replaced ones may count."""
    parts = [fresh.index] if base is None else [base, fresh.index]
    return terms.joined([part.statistics(wanted) for part in parts], wanted)


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


def asked_of(query: Query, parts: Sequence[TermCounts]) -> Asked:
    """What a query's terms are worth, and their statistics over all parts together.

    A term that no part holds is joined by those that it may be a slip of.
    """
    worth = terms.weights(query.text)
    shared = terms.joined([part.statistics(worth) for part in parts], worth)
    slips = {
        near: share * terms.SLIP_WEIGHT
        for term, share in worth.items()
        if not shared.frequencies[term]
        for near in terms.nearby(term, {known for part in parts for known in part.terms(term[0])})
        if near not in worth
    }
    if not slips:
        return worth, shared
    worth |= slips
    return worth, terms.joined([part.statistics(worth) for part in parts], worth)


class TreeIndex(MemoryIndex):
    """The items of one revision; nothing in it changes. May be used from several threads.

    Scores are those of an index made of nothing but that revision's items.
    """

    def __init__(self, documents: Mapping[str, IndexDocument]) -> None:
        """``documents``: by id, in one case."""
        super().__init__()
        self.documents = documents
        for one in documents.values():
            self.take(one.row, one.terms, one.length)

    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: there is no other."""
        yield

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties by id; see ``memfs.search.engine.Index``."""
        return super().search(query, hidden, asked or asked_of(query, [self]))


def _fitting(found: list[Candidate], table: StampTable) -> list[Candidate]:
    """What a base's engine found, if its stamps know all of it: a damaged file may name anything."""
    for candidate in found:
        if candidate.path not in table or table[candidate.path][0] != candidate.id:
            raise IndexUnavailable(f"it names what it does not hold: {candidate.id!r}")
    return found


def _worth(candidate: Candidate) -> tuple[float, datetime]:
    return candidate.similarity, candidate.timestamp if not candidate.similarity else _NO_TIME
