"""Recaller: answers queries from one workspace, at once, in the background, or within a deadline.

Finds candidates by words and by meaning, ranks them, and loads the hits. An answer rests on the files as they are now,
and says where it may be incomplete.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from memfs.errors import IndexUnavailable, QueryInvalid
from memfs.fs.executor import Deadline, Pools
from memfs.model import Candidate, Hit, KindTable, Layer, MemoryItem, Phase, Query, Recall
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED, nearest
from memfs.model.query import MOST
from memfs.recall.conflict_notes import SUPERSEDED
from memfs.recall.fence import fence
from memfs.recall.ranking import (
    HitSelection,
    Mark,
    RankCandidate,
    RankedCandidate,
    Ranking,
    Shares,
    Strategy,
    gathered,
    reranked,
    strategy,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memfs.git.repository import Repository
    from memfs.recall.rerank import Relevance
    from memfs.recall.vector_search import VectorSearch
    from memfs.store.reader import Readable
    from memfs.usage import Usage


_PER_HIT = 3
_IN_TALKS = 150
_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """What an answer can do without.

    Attributes:
        usage: counts what is brought back.
        repository: nothing is given while a quarantined branch is in what it has checked out.
        relevance, meaning: what judges hits and what finds by meaning, asked for when first needed; None for none.
    """

    usage: Usage | None = None
    repository: Repository | None = None
    relevance: Callable[[], Relevance | None] = lambda: None
    meaning: Callable[[], VectorSearch | None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """What was found for a question, not ordered yet; ``cut`` where there may be more, ``behind`` where some of it
    could be found by words alone, ``semantic`` where meaning was searched at all.
    """

    matches: Sequence[RankCandidate]
    cut: bool = False
    behind: bool = False
    semantic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOrder:
    """What was found, best first, with what ranked it."""

    ranked: Sequence[RankedCandidate]
    ranking: Ranking
    found: CandidateSet


_NAMED = 3
_NOT_HOLDING = {SUPERSEDED: 0.5, "retired": 0.5, PROPOSED: 0.5}


class HitCollector:
    """Makes the answer to one query."""

    def __init__(
        self,
        store: Readable,
        query: Query,
        deadline: Deadline,
        relevance: Relevance | None,
        fenced: bool,
        leave_out: Callable[[MemoryItem], bool] | None = None,
        mark: Mark | None = None,
    ) -> None:
        self._store = store
        self._leave_out = leave_out or (lambda _: False)
        self._query = query
        self._deadline = deadline
        self._relevance = relevance
        self._order: RankOrder | None = None
        self._selection = HitSelection(query, fenced=fenced, mark=mark)
        self._looked_at = 0
        self._loaded_hits = 0
        self._offered = 0
        self._known = 0
        self._late = False
        self._absent: dict[str, str] = {}
        self.missing: list[str] = []
        """Paths of candidates whose files are not what was found."""

    def take(self, order: RankOrder | None) -> None:
        """Take what was found; None where nothing was found before the deadline."""
        self._order = order
        if order is None:
            self._late = True
            return
        relevance = self._relevance
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
            semantic=self._order is not None and self._order.found.semantic,
        )

    @property
    def short(self) -> bool:
        """Whether duplicates, or what the asker has, took the places of hits that a wider search may find."""
        chosen = self._selection
        wanting = len(chosen.hits) < self._query.limit and not chosen.misfits and not self._late
        return bool(wanting and (chosen.duplicates or self._known) and self._order and self._order.found.cut)

    @property
    def _left(self) -> int:
        return len(self._order.ranked) - self._looked_at if self._order else 0

    def _loaded(self, order: RankOrder) -> Iterator[Hit]:
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

    def _hit(self, one: RankedCandidate, order: RankOrder) -> Hit | None:
        candidate = one.match.candidate
        loaded = self._store.load(candidate)
        if loaded is None:
            self.missing.append(candidate.path)
            return None
        reasons = {**order.ranking.reasons(one.match), **one.reasons}
        return Hit(item=loaded.item, score=one.score, reasons=reasons, stale=loaded.stale)

    def _judged(self, relevance: Relevance, hits: list[Hit]) -> list[Hit]:
        judged = relevance.judged(hits, self._query.text, self._deadline.left(relevance.seconds))
        self._absent.update(judged.absent)
        return judged.hits

    @property
    def _behind(self) -> bool:
        return self._order is not None and self._order.found.behind

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


_TEXT_LIMIT = 5_000
_WIDER = 5
_WIDE, _WIDEST = 25, 625


class Recaller:
    """Answers questions from one workspace. May be used from several threads."""

    def __init__(
        self,
        store: Readable,
        preset_name: str,
        clock: Callable[[], datetime],
        kinds: KindTable | None = None,
        *,
        helpers: Helpers | None = None,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            preset_name: the strategy of queries that name none.
            kinds: the types there are; without them any type may be asked for.
            helpers: what counts uses, reviews and finds by meaning.
            tick: tells seconds, for deadlines.
        """
        self._store = store
        self._preset_name = preset_name
        self._clock = clock
        self._kinds = kinds
        self._helpers = helpers or Helpers()
        self._tick = tick
        self._pools = Pools()

    def search(
        self,
        query: Query | str,
        *,
        prove: bool = False,
        fenced: bool = False,
        leave_out: Callable[[MemoryItem], bool] | None = None,
        mark: Mark | None = None,
    ) -> Recall:
        """The best items for a question, from the files as they are now.

        Args:
            query: a query, or its text.
            prove: also say what the answer rests on (``Recall.fresh``).
            fenced: the hits will be shown by ``fenced``, so what that adds counts against ``max_tokens``.
            leave_out: tells which items the asker has already: they take nobody's place.
            mark: what items that tell the same have in common: the best of them is given, and the others repeat it.

        Raises:
            QueryInvalid: naming the field that cannot be understood, and the nearest type, layer, phase or strategy.
        """
        asked = self._checked(query)
        return self._search(asked, Deadline(asked.seconds, self._tick), prove, fenced, leave_out=leave_out, mark=mark)

    def search_many(
        self,
        queries: Iterable[Query | str],
        *,
        fenced: bool = False,
        leave_out: Callable[[MemoryItem], bool] | None = None,
    ) -> dict[str, Recall]:
        """The answers to several questions by their text, all found in one state of the index.

        Args:
            fenced, leave_out: as ``search``.

        Raises:
            QueryInvalid: as ``search``; also where two different queries have one text.
        """
        asked = {text: self._checked(query) for text, query in _by_text(queries).items()}
        deadlines = [Deadline(query.seconds, self._tick) for query in asked.values()]
        found = self._found_together(list(asked.values()), deadlines)
        return {
            text: self._search(query, deadline, False, fenced, one, leave_out=leave_out)
            for (text, query), deadline, one in zip(asked.items(), deadlines, found, strict=True)
        }

    def submit(self, query: Query | str, *, prove: bool = False, fenced: bool = False) -> Future[Recall]:
        """``search`` in the background.

        Raises:
            QueryInvalid: as ``search``, at once.
        """
        asked, here = self._checked(query), copy_context()  # to whom it goes, the caller's thread knows
        return self._pools.submit("recall", here.run, partial(self.search, asked, prove=prove, fenced=fenced))

    async def search_async(self, query: Query | str, *, prove: bool = False, fenced: bool = False) -> Recall:
        """``search`` without holding up the event loop."""
        import asyncio  # costs start-up time

        return await asyncio.wrap_future(self.submit(query, prove=prove, fenced=fenced))

    def over(self, store: Readable) -> Recaller:
        """One that answers from another store, by the same rules."""
        return Recaller(store, self._preset_name, self._clock, self._kinds, helpers=self._helpers, tick=self._tick)

    def reviewed_by(self, relevance: Relevance) -> Recaller:
        """This one with other judges of its answers; what both run in the background is one."""
        other = copy.copy(self)
        other._helpers = replace(self._helpers, relevance=lambda: relevance)
        return other

    def close(self) -> None:
        """Wait for what runs in the background; what has not begun is given up."""
        self._pools.close()

    @staticmethod
    def fenced(answer: Recall) -> str:
        """The hits of an answer as quoted data for a prompt (``memfs.recall.fence``); "" where there are none."""
        return fence(answer.hits)

    def _checked(self, query: Query | str) -> Query:
        query = Query(text=query) if isinstance(query, str) else query
        if not isinstance(query, Query):
            raise QueryInvalid(f"expected a Query or a text, got {ascii(query)[:60]}", field="query")
        if self._helpers.repository is not None:
            self._helpers.repository.require_readable()
        _check_known("layers", query.layers, [layer.value for layer in Layer])
        _check_known("phases", query.phases, [phase.value for phase in Phase])
        if self._kinds is not None:
            _check_known("types", query.types, [kind.name for kind in self._kinds])
        self._strategy(query)
        text = query.text[:_TEXT_LIMIT] if query.text.strip() else ""
        return query if text == query.text else replace(query, text=text)

    def _search(
        self,
        query: Query,
        deadline: Deadline,
        prove: bool,
        fenced: bool,
        found: CandidateSet | None = None,
        *,
        leave_out: Callable[[MemoryItem], bool] | None = None,
        mark: Mark | None = None,
    ) -> Recall:
        """``found``: what was found already; looked for again where files have changed since, or it is too little."""
        answer_with = partial(self._collector, query, deadline, fenced, leave_out, mark)
        collector = answer_with(found or self._found(query, deadline))
        for _ in range(_TRIES - 1):
            if deadline.passed or set(collector.missing) <= set(self._store.unread(query)):
                break
            self._store.refresh(collector.missing)
            collector = answer_with(self._found(query, deadline))
        wider = 1
        while collector.short and wider < (_WIDEST if mark is None else _WIDE):
            wider *= _WIDER
            collector = answer_with(self._found(query, deadline, wider))
        answer = collector.answer(self._store.unread(query))
        usage = self._helpers.usage if answer.hits else None
        if usage is not None:
            places, now = {hit.item.id: hit.item.path for hit in answer.hits}, self._clock()
            usage.touch(list(places), now)
            usage.served.note("recall", places, now, question=query.text, paths=places)
        return replace(answer, fresh=self._store.freshness()) if prove else answer

    def _found(self, query: Query, deadline: Deadline, wider: int = 1) -> CandidateSet | None:
        if deadline.seconds is None:
            return self._find(query, wider)
        finding = self._pools.submit("find", self._find, query, wider)
        try:
            return finding.result(deadline.left())
        except TimeoutError:
            finding.cancel()
            return None

    def _found_together(self, queries: list[Query], deadlines: list[Deadline]) -> Sequence[CandidateSet | None]:
        """What is found for several queries in one state of the index; nothing where the last deadline passes first."""
        left = [deadline.left() for deadline in deadlines]
        bounded = [seconds for seconds in left if seconds is not None]
        if not left or len(bounded) < len(left):
            return self._find_together(queries)
        finding = self._pools.submit("find", self._find_together, queries)
        try:
            return finding.result(max(bounded))
        except TimeoutError:
            finding.cancel()
            return [None] * len(queries)

    # -- finding ----------------------------------------------------------------------------------------------------
    def _strategy(self, query: Query) -> Strategy:
        """The strategy by which a query's answers are ordered.

        Raises:
            QueryInvalid: there is none of that name.
        """
        return strategy(query.strategy or self._preset_name)

    def _prepare(self, queries: Sequence[Query]) -> None:
        meaning = self._helpers.meaning()
        if meaning is not None:
            meaning.prepare(queries)

    def _find(self, query: Query, wider: int = 1, *, prepared: bool = False) -> CandidateSet:
        """The candidates for a query, ``wider`` times as many as usual."""
        found, cut = self._candidates(query, query.limit * _PER_HIT * wider)
        if not query.text:
            return CandidateSet(matches=[RankCandidate(one) for one in found], cut=cut)
        together: Sequence[tuple[Candidate, Shares]] = gathered(found, lambda places: self._store.beside(places, query))
        if not prepared:
            self._prepare([query])
        meaning = self._helpers.meaning()
        if meaning is not None:
            together = meaning.joined(together, query)
        return CandidateSet(
            matches=[RankCandidate(one, shares) for one, shares in together],
            cut=cut,
            behind=meaning is not None and meaning.behind(),
            semantic=meaning is not None and meaning.knows(query),
        )

    def _candidates(self, query: Query, wanted: int) -> tuple[list[Candidate], bool]:
        """At least so many candidates, and whether there may be more."""
        in_talks = bool(query.text) and self._store.has_conversations()
        asked = min(max(wanted, _IN_TALKS) if in_talks else wanted, MOST)
        found = self._store.candidates(replace(query, limit=asked))
        cut = len(found) >= asked
        if cut and query.text and not in_talks and self._store.has_conversations():
            return self._candidates(query, wanted)  # the files that were looked at only now hold the first talk
        return found, cut

    def _find_together(self, queries: Sequence[Query]) -> list[CandidateSet]:
        """The candidates for several queries, all in one state of the index."""
        self._prepare(queries)
        for _ in range(_TRIES):
            try:
                with self._store.held():
                    return [self._find(query, prepared=True) for query in queries]
            except IndexUnavailable:
                self._store.refresh()
        return [self._find(query) for query in queries]

    def _ordered(self, query: Query, found: CandidateSet) -> RankOrder:
        """What was found, ordered by the query's strategy."""
        chosen = self._strategy(query)
        ranking = Ranking(query, chosen.weights, self._clock(), self._kinds)
        usage = self._helpers.usage if ranking.counts_use else None
        uses = usage.of(match.candidate.id for match in found.matches) if usage is not None else {}
        ranked = ranking.ranked(ranking.completed(found.matches, uses))
        return RankOrder(ranked=reranked(chosen, query, ranked), ranking=ranking, found=found)

    def _collector(
        self,
        query: Query,
        deadline: Deadline,
        fenced: bool,
        leave_out: Callable[[MemoryItem], bool] | None,
        mark: Mark | None,
        found: CandidateSet | None,
    ) -> HitCollector:
        relevance = self._helpers.relevance() if found is not None and query.text else None
        collector = HitCollector(self._store, query, deadline, relevance, fenced, leave_out, mark)
        collector.take(None if found is None else self._ordered(query, found))
        return collector


def _by_text(queries: Iterable[Query | str]) -> dict[str, Query | str]:
    found: dict[str, Query | str] = {}
    for query in queries:
        text = query.text if isinstance(query, Query) else query
        if found.setdefault(text, query) != query:
            hint = "ask them apart, or in different words"
            raise QueryInvalid(f"two different queries ask {ascii(text)[:60]}", field="queries", hint=hint)
    return found


def _check_known(field: str, names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            hint = " ".join(filter(None, (nearest(name, known), f"the {field} are {', '.join(known)}")))
            raise QueryInvalid(f"there is no {field.removesuffix('s')} {name!r}", field=field, hint=hint)
