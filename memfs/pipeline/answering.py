"""Answering: from candidates in order to hits.

Owns the order loading, reviewers, duplicates, token budget, limit, and what an answer says of its own limits. Text
comes from the files, never from the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from memfs.model import Hit, MemoryItem, Query, Recall
from memfs.pipeline.conventions import ACCEPTED, PROPOSED
from memfs.pipeline.conventions import KIND as CONVENTION
from memfs.pipeline.deadline import Deadline
from memfs.pipeline.disputes import SUPERSEDED
from memfs.pipeline.finding import Order
from memfs.pipeline.ranking import Ranked
from memfs.pipeline.selection import Mark, Selection
from memfs.store.readable import Readable

if TYPE_CHECKING:
    from memfs.pipeline.relevance import Relevance

_NAMED = 3
_NOT_HOLDING = {SUPERSEDED: 0.5, "retired": 0.5, PROPOSED: 0.5}


class Answering:
    """Makes the answer to one query."""

    def __init__(
        self,
        store: Readable,
        query: Query,
        deadline: Deadline,
        relevance: Callable[[], Relevance | None],
        fenced: bool,
        leave_out: Callable[[MemoryItem], bool] | None = None,
        mark: Mark | None = None,
    ) -> None:
        self._store = store
        self._leave_out = leave_out or (lambda _: False)
        self._query = query
        self._deadline = deadline
        self._relevance = relevance
        self._order: Order | None = None
        self._selection = Selection(query, fenced=fenced, mark=mark)
        self._looked_at = 0
        self._loaded_hits = 0
        self._offered = 0
        self._known = 0
        self._late = False
        self._absent: dict[str, str] = {}
        self.missing: list[str] = []
        """Paths of candidates whose files are not what was found."""

    def take(self, order: Order | None) -> None:
        """Take what was found; None where nothing was found before the deadline."""
        self._order = order
        if order is None:
            self._late = True
            return
        relevance = self._relevance() if self._query.text else None
        hits = self._loaded(order)
        if relevance is not None:
            first = list(islice(hits, relevance.room(self._query.limit)))
            hits = chain(self._judged(relevance, first), hits)
        for hit in hits:
            self._offered += 1
            self._selection.offer(hit)
            if self._selection.full:
                break

    def answer(self, unread: Iterable[str]) -> Recall:
        """The answer; ``unread`` are the files the query could concern that cannot be read."""
        chosen = self._selection
        return Recall(
            query=self._query,
            hits=tuple(chosen.hits),
            partial=bool(self.missing or self._late or self._behind or list(unread)),
            more=len(chosen.hits) >= self._query.limit and (self._left > 0 or self._loaded_hits > self._offered),
            tokens=chosen.tokens,
            duplicates=dict(chosen.duplicates),
            cut="; ".join(self._cuts()),
            absent=dict(self._absent),
            semantic=self._order is not None and self._order.semantic,
        )

    @property
    def short(self) -> bool:
        """Whether duplicates, or what the asker has, took the places of hits that a wider search may find."""
        chosen = self._selection
        wanting = len(chosen.hits) < self._query.limit and not chosen.misfits and not self._late
        return bool(wanting and (chosen.duplicates or self._known) and self._order and self._order.cut)

    @property
    def _left(self) -> int:
        return len(self._order.ranked) - self._looked_at if self._order else 0

    def _loaded(self, order: Order) -> Iterator[Hit]:
        """The hits, best first; one that does not hold comes where half its score puts it."""
        waiting: list[Hit] = []
        for one in order.ranked:
            while waiting and waiting[0].score >= one.score:
                yield waiting.pop(0)
            if self._deadline.passed:
                self._late = True
                break
            self._looked_at += 1
            hit = self._hit(one, order)
            if hit is not None and self._leave_out(hit.item):
                self._known += 1
            elif hit is not None:
                self._loaded_hits += 1
                if standing := _not_holding(hit.item):
                    waiting.append(_sunk(hit, standing))  # they come in falling order, and stay in it
                else:
                    yield hit
        yield from waiting

    def _hit(self, one: Ranked, order: Order) -> Hit | None:
        candidate = one.match.candidate
        loaded = self._store.load(candidate)
        if loaded is None:
            self.missing.append(candidate.path)
            return None
        reasons = {**order.reasons(one.match), **one.reasons}
        return Hit(item=loaded.item, score=one.score, reasons=reasons, stale=loaded.stale)

    def _judged(self, relevance: Relevance, hits: list[Hit]) -> list[Hit]:
        judged = relevance.judged(hits, self._query.text, self._deadline.left(relevance.seconds))
        self._absent.update(judged.absent)
        return judged.hits

    @property
    def _behind(self) -> bool:
        return self._order is not None and self._order.behind

    def _cuts(self) -> Iterator[str]:
        if self._behind:
            yield "words alone decided about memories that have no vector yet"
        if self._late:
            seen = (
                f"{self._looked_at} of {len(self._order.ranked)} candidates were looked at"
                if self._order
                else ("the index had not answered")
            )
            yield f"the deadline of {self._deadline.seconds:g} s passed: {seen}"
        left_out = self._selection.misfits
        if left_out:
            named = ", ".join(left_out[:_NAMED]) + (" and more" if len(left_out) > _NAMED else "")
            yield f"the budget of {self._query.max_tokens:,} tokens had no room for {named}"


def _not_holding(item: MemoryItem) -> str:
    """Why an item does not hold: it was replaced or retired, or is a convention that nobody accepted; "" if it does."""
    status = item.status.strip()
    if item.type == CONVENTION and status != ACCEPTED:
        return status if status in _NOT_HOLDING else PROPOSED
    return status if status in _NOT_HOLDING and status != PROPOSED else ""


def _sunk(hit: Hit, standing: str) -> Hit:
    """A hit of a memory that does not hold."""
    factor = _NOT_HOLDING[standing]
    return replace(hit, score=hit.score * factor, reasons={**hit.reasons, standing: factor})
