"""Review neighbours: what a change brings that the memory says already, nearly says, or denies (B4).

Owns an index in memory over the items of one side, and which pairs are reported. What makes two items contradict each
other, or be alike, is the pipeline's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain

from memfs.errors import MemfsError
from memfs.files.textguard import shown
from memfs.index.memory import MemoryIndex
from memfs.model import Candidate, MemoryItem, Query
from memfs.pipeline.conflictrecord import covers, holds, record_of
from memfs.pipeline.conflictscan import in_order
from memfs.pipeline.disputes import CONTRADICTS, OVER
from memfs.pipeline.neighbours import Neighbourhood, Neighbours, Searched, is_momentary, may_meet
from memfs.pipeline.wording import gist
from memfs.store.naming import in_types
from memfs.store.values import Loaded
from memfs.teams.questions import Travelling
from memfs.teams.reviewcodes import finding
from memfs.teams.reviewsides import Side
from memfs.teams.reviewvalues import ARCHIVED, REMOVED, Finding, ItemChange

_MOST = 200
"""So many changed items are compared with the others."""
_SHOWN = 100


class SideIndex:
    """The items of one side, to be found by their words; files that cannot be read are left out."""

    def __init__(self, side: Side, checked: Collection[str] = ()) -> None:
        """``checked``: paths whose schema was checked before."""
        self._side = side
        self._index = MemoryIndex()
        side.fetch(side.items)
        items = ((path, side.readable(path, checked=path in checked)) for path in side.items)
        self._by_id = {item.id: item for _, item in items if item is not None}
        side.forget()
        self._index.add(self._by_id.values())

    @property
    def seeking(self) -> SideIndex:
        """Itself: it asks its own index."""
        return self

    def known(self, query: Query) -> list[Candidate]:
        """The items that answer a query, best first."""
        return self._index.search(in_types(query, self._side.kinds))

    def rarest(self, terms: Collection[str], count: int) -> list[str]:
        """Of these terms, so many that the fewest items hold, the rarest first."""
        found = self._index.statistics(terms).frequencies
        return sorted((term for term in terms if found.get(term)), key=lambda term: found[term])[:count]

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate."""
        item = self._by_id.get(candidate.id)
        return None if item is None else Loaded(item=item, stale=False)


def neighbour_findings(
    before: Side, after: Side, changes: Iterable[ItemChange], past: Travelling | None = None
) -> Iterator[Finding]:
    """Pairs of items of which the change brings one, or changes what it says, and that do not go together.

    Args:
        past: goes to a side whose index may be there already, or of one much like it; None makes one each time.
    """
    fresh = list(_fresh(before, after, changes))
    if not fresh:
        return
    neighbourhood = Neighbourhood(_searched(before, after, past), after.kinds)
    told: set[tuple[str, str]] = set()
    if len(fresh) > _MOST:
        message = f"{len(fresh):,} memories come or change; the first {_MOST} were compared with the others"
        yield finding("NotCompared", message, hint="'memfs conflicts --scan' compares all of them")
    for item in fresh[:_MOST]:
        found = neighbourhood.of(item, after.time)
        for one in _told(item, found):
            pair = in_order(one.id, one.other)
            if pair not in told:
                told.add(pair)
                yield one


def _searched(before: Side, after: Side, past: Travelling | None) -> Searched:
    """Where the neighbours are looked for."""
    if past is not None:
        with suppress(MemfsError, OSError):  # a setting of that side may be one that nobody can be asked with
            store = past(after, after.time).store
            store.seeking.rarest((), 0)  # makes the index
            return store
    same = {path for path in after.files if before.files.get(path) == after.files[path]}
    return SideIndex(after, same)


def _fresh(before: Side, after: Side, changes: Iterable[ItemChange]) -> Iterator[MemoryItem]:
    """The items that are there and say something that they did not say before."""
    for one in changes:
        item = after.readable(one.path) if one.what not in (REMOVED, ARCHIVED) else None
        if item is None or is_momentary(item) or not holds(item, after.time) or after.is_archived(one.path):
            continue
        old = before.readable(one.before or one.path)
        if old is None or gist(old) != gist(item) or not holds(old, before.time):
            yield item


def _told(item: MemoryItem, found: Neighbours) -> Iterator[Finding]:
    for other, reason in found.contradicts:
        if _are_apart(item, other) and not covers(record_of(item, other), item, other):
            linked = any(link.to == other.id and link.relation == CONTRADICTS for link in (*item.links, *other.links))
            hint = "settle it: memfs conflicts resolve" if linked else "say which holds: supersedes, or another scope"
            message = f"{reason.rstrip('.')}; {other.id} says: {_said(other)}"
            yield finding("Contradiction", message, path=item.path, id=item.id, other=other.id, hint=hint)
    repeated = [found.repeated] if found.repeated is not None else []
    for other in chain(repeated, found.near):
        if not _are_apart(item, other) or other.status.strip() in OVER:
            continue
        name = "Repeated" if other in repeated else "NearDuplicate"
        says = "the same" if other in repeated else "nearly the same"
        message = f"{other.id} says {says}: {_said(other)}"
        hint = "keep one of the two, or let one supersede the other"
        yield finding(name, message, path=item.path, id=item.id, other=other.id, hint=hint)


def _are_apart(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether two items are two, of which neither takes the place of the other."""
    replaced = one.id in other.supersedes or other.id in one.supersedes
    return one.id != other.id and not replaced and may_meet(one, other)


def _said(item: MemoryItem) -> str:
    text = shown(" ".join(gist(item).split()))
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "\u2026")
