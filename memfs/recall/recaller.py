"""Recaller: answers queries from one workspace, at once, in the background, or within a deadline.

Finds candidates by words and by meaning, ranks them, and loads the hits. An answer rests on the files as they are now,
and says where it may be incomplete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from datetime import UTC, datetime
from datetime import time as clock
from functools import partial
from heapq import heappop, heappush
from itertools import chain, islice, starmap
from operator import mul

from memfs.dataclass import NamedTuple, replace
from memfs.errors import IndexUnavailable, QueryInvalid
from memfs.format.text import shortlist
from memfs.fs.executor import Deadline, Pools
from memfs.model import Candidate, Hit, HitPassage, KindTable, Layer, MemoryItem, Phase, Query, Recall
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED, nearest
from memfs.model.query import MOST
from memfs.recall.conflict_notes import SUPERSEDED
from memfs.recall.ranking import (
    PRESETS,
    HitSelection,
    Mark,
    QueryTerms,
    RankCandidate,
    RankedCandidate,
    Ranking,
    Shares,
    reranked,
    strategy,
    with_coverage,
    with_neighbours,
)
from memfs.recall.text_signs import TextSigns, asked_for, asks_for_list, nothing_fits, spread
from memfs.search import terms
from memfs.search.analyzer import passages, richest_sentence
from memfs.startup import TYPE_CHECKING, TypeVar
from memfs.store.access_log import recipient

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memfs.recall.absence import WhyNot
    from memfs.recall.dates import NamedTimes
    from memfs.recall.embeddings import VectorSearch
    from memfs.recall.review import Relevance
    from memfs.recall.use_weights import UseWeights
    from memfs.store.parts import LoadedItem
    from memfs.store.reader import Readable
    from memfs.usage import Usage

_BREADTH = 20
"""A shorter answer is the beginning of one with this many hits: what is looked at does not depend on the limit."""
_PER_HIT = 3
_CONVERSATION_BREADTH = 150
_READ_FOR_LIST = 2
_EVENTS = 10
"""How many memories are looked at for an event that a question counts from."""
_TIME_SHARE = 0.25
"""What the words of a day count, of those that a question has beside it."""
_DAY_SCORE, _AGE_STEP = 1.6, 1e-5
_TRIES = 2
_LEARNING = PRESETS.keys() - {"default"} | {""}
"""The strategies that a query may name where what use taught still counts: not the plain one, nor a caller's own."""


class Helpers(NamedTuple):
    """What an answer can do without.

    Attributes:
        usage: counts what is brought back.
        relevance, meaning: what judges hits and what finds by meaning, asked for when first needed; None for none.
        learned: what use taught of the ranking; None where that does not count.
    """

    usage: Usage | None = None
    relevance: Callable[[], Relevance | None] = lambda: None
    meaning: Callable[[], VectorSearch | None] = lambda: None
    learned: Callable[[], UseWeights | None] = lambda: None


class Question(NamedTuple):
    """A query, and how its answer is to be made; see ``Recaller.search``."""

    query: Query
    deadline: Deadline
    fenced: bool = False
    leave_out: Callable[[MemoryItem], bool] | None = None
    mark: Mark | None = None


class CandidateSet(NamedTuple):
    """What was found for a question, not ordered yet; ``cut`` where there may be more, ``behind`` where some of it
    could be found by words alone, ``semantic`` where meaning was searched at all.
    """

    asked: QueryTerms
    matches: Sequence[RankCandidate] = ()
    cut: bool = False
    behind: bool = False
    semantic: bool = False


_NAMES_SHOWN = 3
_LOAD_BATCH = 100
"""The most that are loaded together: between them the deadline is looked at."""
_STATUS_FACTORS = {SUPERSEDED: 0.5, "retired": 0.5, PROPOSED: 0.5}


class HitCollector:
    """Makes the answer to one question of what was found for it.

    Attributes:
        selection: what was chosen.
        missing: paths of candidates whose files are not what was found.
    """

    def __init__(
        self, store: Readable, asked: Question, found: CandidateSet, ranking: Ranking, ranked: Sequence[RankedCandidate]
    ) -> None:
        """``ranked``: the candidates, best first, as ``ranking`` scored them."""
        self._store, self._asked, self._found = store, asked, found
        self._ranking, self._ranked = ranking, ranked
        self.selection = HitSelection(asked.query, fenced=asked.fenced, mark=asked.mark, times=ranking.asked.times)
        self._hits: Iterator[Hit] = iter(())
        self._offers: list[Hit] = []
        self._looked_at = self._loaded_hits = self._known = self._beyond = 0
        self._absent: Mapping[str, str] = {}
        self._held: dict[str, frozenset[str]] = {}
        self.late = False
        self.missing: list[str] = []

    def take(self, relevance: Relevance | None) -> None:
        """Load the best, look for what counts in their texts, have them judged, and choose."""
        query = self._asked.query
        breadth = max(query.limit, _BREADTH)
        room = query.limit if relevance is None else relevance.room(query.limit)
        talk = any(one.match.candidate.sequence is not None for one in self._ranked[:breadth])
        hits = self._loaded(TextSigns.of(asked_for(query.text), talk=talk), breadth, room)
        if relevance is not None:
            judged = relevance.judged(
                list(islice(hits, room)), query.text, self._asked.deadline.left(relevance.seconds)
            )
            self._absent = judged.absent
            hits = chain(judged.hits, hits)
        if asks_for_list(query.text):
            hits = chain(spread(islice(hits, _READ_FOR_LIST * breadth)), hits)
        self._hits = iter(hits)
        for hit in self._hits:
            self._offers.append(hit)
            self.selection.offer(hit)
            if self.selection.full:
                break
        chosen = self.selection
        # look below the last hit, so far, for newer versions of what the hits say; what is said in talks has none
        if query.deduplicate and any(hit.item.origin.sequence is None for hit in chosen.hits):
            late = self.late
            for hit in islice(self._hits, max(query.limit, breadth - len(self._offers))):
                self._offers.append(hit)
                self._beyond += not (chosen.join(hit) if chosen.full else chosen.offer(hit))
            self.late = late
        chosen.widen()

    def every(self) -> list[Hit]:
        """All that was found, in the order of choice."""
        self._offers += self._hits
        return self._offers

    def answer(self, unread: Sequence[str]) -> Recall:
        """The answer; ``unread`` are the files the query could concern that cannot be read."""
        chosen, found, query = self.selection, self._found, self._asked.query
        left = len(self._ranked) - self._looked_at + self._beyond
        self._hits = iter(())  # which hold this: what was loaded is to go with it, and not wait for the collector
        hits = [*chosen.hits]
        if any(hit.passage for hit in hits):  # each passage with the sentence in it that holds most of what was asked
            worth = terms.weights(query.text)
            for place, hit in enumerate(hits):
                if (held := hit.passage) is not None:
                    sentence = held.start + richest_sentence(held.text, worth)
                    hits[place] = replace(hit, passage=replace(held, sentence=sentence))
        cuts = []
        if found.behind:
            cuts.append("words alone decided about memories that have no vector yet: 'memfs semantic on' makes it")
        if self.late:
            looked = f"{self._looked_at} of {len(self._ranked)} candidates were looked at"
            seen = looked if self._ranked else "the index had not answered"
            cuts.append(f"the deadline of {self._asked.deadline.seconds:g} s passed: {seen}")
        if chosen.misfits:
            named = shortlist(chosen.misfits, _NAMES_SHOWN)
            cuts.append(f"the budget of {query.max_tokens:,} tokens had no room for {named}")
        return Recall(
            query=query,
            hits=tuple(hits),
            partial=bool(self.missing or self.late or found.behind or unread),
            more=len(hits) >= query.limit and (left > 0 or self._loaded_hits > len(self._offers)),
            counted=chosen.tokens if chosen.counts else None,
            duplicates=dict(chosen.duplicates),
            cut="; ".join(cuts),
            absent=dict(self._absent),
            semantic=found.semantic,
            without_room=tuple(chosen.misfits),
            nothing_fits=self._nothing_fits(),
            anchor=self._ranking.asked.anchor,
        )

    def _nothing_fits(self) -> bool:
        """Whether no hit answers the question, where words alone decide."""
        query, hits = self._asked.query, self.selection.hits
        if not query.text or self.late or self._found.semantic or not (hits or not self._ranked):
            return False
        if self._found.asked.literal or any("time" in hit.reasons for hit in hits):
            return False
        text = self._found.asked.sought(query.text)
        query = query if text == query.text else replace(query, text=text)
        return nothing_fits(text, self._store.asked_of(query), hits, self._held)

    @property
    def short(self) -> bool:
        """Whether duplicates, or what the asker has, took the places of hits that a wider search may find."""
        chosen = self.selection
        wanting = len(chosen.hits) < self._asked.query.limit and not chosen.misfits and not self.late
        return bool(wanting and (chosen.duplicates or chosen.versions or self._known) and self._found.cut)

    def _loaded(self, signs: TextSigns, breadth: int, room: int) -> Iterator[Hit]:
        """The hits, best first; one whose text counts, or that does not hold any more, comes where its score puts it.

        Those that may come first are loaded first: what no text can lift among the hits is not read.

        Args:
            signs: what counts in texts.
            breadth: how many hits' texts are looked through for it.
            room: how many hits are wanted at once: they are loaded together with those that their text may lift there.
        """
        ranked, read = self._ranked, min(signs.read(breadth), _LOAD_BATCH)
        scores = [one.score for one in ranked]
        bounds, order = scores[:], [*range(len(scores))]
        most = {lacking: signs.most(lacking) for lacking in {one.match.candidate.lacking for one in ranked[:read]}}
        lifts = [most[one.match.candidate.lacking] for one in ranked[:read]]
        if scores[:read] == sorted(scores[:read], reverse=True):  # else a strategy has its own order
            bounds[:read] = map(mul, scores, lifts)
            order[:read] = sorted(order[:read], key=bounds.__getitem__, reverse=True)
        least = scores[room - 1] if room <= len(scores) else 0.0
        at_once = min(room + sum([bound > least for bound in bounds[room:]]), _LOAD_BATCH)
        found_all = [ranked[place].match.candidate for place in order]
        starts = range(0, len(order), at_once)
        loaded = chain.from_iterable(self._store.load_each(found_all[start : start + at_once]) for start in starts)
        waiting: list[tuple[float, int, Hit]] = []
        for place in order:
            one, bound = ranked[place], bounds[place]
            while waiting and waiting[0] < (-bound, place):
                yield heappop(waiting)[2]
            if self._asked.deadline.passed:
                self.late = True
                break
            self._looked_at += 1
            found = next(loaded)
            if found is None:
                self.missing.append(one.match.candidate.path)
            elif self._asked.leave_out is not None and self._asked.leave_out(found.item):
                self._known += 1
            else:
                self._loaded_hits += 1
                hit = self._hit(one, found, signs if place < read and lifts[place] > 1.0 else None)
                if hit.score < bound:
                    heappush(waiting, (-hit.score, place, hit))
                else:
                    yield hit
        while waiting:
            yield heappop(waiting)[2]

    def _hit(self, ranked: RankedCandidate, found: LoadedItem, signs: TextSigns | None) -> Hit:
        """A hit with its score and the reasons of it; its text counts, and whether it holds no more."""
        score, item, candidate = ranked.score, found.item, ranked.match.candidate
        self._held[item.id] = candidate.held
        reasons = self._ranking.reasons(ranked.match)
        reasons.update(ranked.reasons)
        if signs is not None:
            for name, factor in signs.factors(item).items():
                reasons[name] = factor
                score *= factor
        if status := _void_status(item):
            factor = reasons[status] = _STATUS_FACTORS[status]
            score *= factor
        content, passage = item.content, None
        places = passages(content) if self._asked.query.text else []
        if 1 < len(places) > candidate.passage:
            start, end = places[candidate.passage]
            text = content[start:end].strip()
            start = content.index(text, start)
            line, end = content.count("\n", 0, start) + 1, start + len(text)
            last = line + text.count("\n")
            passage = HitPassage(start=start, end=end, line=line, last_line=last, sentence=start, text=text)
        return Hit(item=item, score=score, reasons=reasons, stale=found.stale, passage=passage)


def _void_status(item: MemoryItem) -> str:
    """Why an item does not hold: it was replaced or retired, or is a convention that no one accepted; "" if it does."""
    if not item.status and item.type != CONVENTION:
        return ""
    status = item.status.strip()
    if item.type == CONVENTION and status != ACCEPTED:
        return status if status in _STATUS_FACTORS else PROPOSED
    return status if status in _STATUS_FACTORS and status != PROPOSED else ""


Found = TypeVar("Found")
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
            tick: returns seconds, for deadlines.
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
            leave_out: says which items the asker has already: they take no other's place.
            mark: what items that say the same have in common: the best of them is given, and the others repeat it.

        Raises:
            QueryInvalid: naming the field that cannot be understood, and the nearest type, layer, phase or strategy.
        """
        asked = self._checked(query)
        question = Question(asked, Deadline(asked.seconds, self._tick), fenced, leave_out, mark)
        return self._search(question, prove=prove)

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
        given: dict[str, Query | str] = {}
        for query in queries:
            text = query.text if isinstance(query, Query) else query
            if given.setdefault(text, query) != query:
                hint = "ask them apart, or in different words"
                raise QueryInvalid(f"two different queries ask {ascii(text)[:60]}", field="queries", hint=hint)
        asked = {
            text: Question(checked, Deadline(checked.seconds, self._tick), fenced, leave_out)
            for text, query in given.items()
            if (checked := self._checked(query))
        }
        left = [one.deadline.left() for one in asked.values()]
        bounded = [seconds for seconds in left if seconds is not None]
        most = max(bounded) if bounded and len(bounded) == len(left) else None
        together = self._in_time(most, partial(self._find_together, [one.query for one in asked.values()]))
        nothing: list[CandidateSet | None] = [None] * len(asked)  # where the last deadline passes first
        rows = zip(asked.items(), together or nothing, strict=True)
        return {text: self._search(one, known) for (text, one), known in rows}

    def submit(self, query: Query | str, *, prove: bool = False, fenced: bool = False) -> Future[Recall]:
        """``search`` in the background.

        Raises:
            QueryInvalid: as ``search``, at once.
        """
        asked, here = self._checked(query), copy_context()  # the caller's thread knows who receives it
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
        from copy import copy  # most answers have no judges of their own

        other = copy(self)
        other._helpers = self._helpers._replace(relevance=lambda: relevance)
        return other

    def close(self) -> None:
        """Wait for what runs in the background; what has not begun is given up."""
        self._pools.close()

    @staticmethod
    def fenced(answer: Recall) -> str:
        """The hits of an answer as quoted data for a prompt (``memfs.recall.fence``); "" where there are none."""
        from memfs.recall.fence import fence  # for hits that are put before a model alone

        return fence(answer.hits)

    def _checked(self, query: Query | str) -> Query:
        query = Query(text=query) if isinstance(query, str) else query
        if not isinstance(query, Query):
            raise QueryInvalid(f"expected a Query or a text, got {ascii(query)[:60]}", field="query")
        if query.layers:
            _check_known("layers", query.layers, [layer.value for layer in Layer])
        if query.phases:
            _check_known("phases", query.phases, [phase.value for phase in Phase])
        if self._kinds is not None and not all(name in self._kinds for name in query.types):
            _check_known("types", query.types, [kind.name for kind in self._kinds])
        strategy(query.strategy or self._preset_name)  # which may be unknown
        text = query.text[:_TEXT_LIMIT] if query.text.strip() else ""
        return query if text == query.text else replace(query, text=text)

    def _search(self, asked: Question, found: CandidateSet | None = None, *, prove: bool = False) -> Recall:
        """``found``: what was found already."""
        query = asked.query
        answer = self._answer(asked, found).answer(self._store.unread(query))
        usage = self._helpers.usage if answer.hits and recipient() is not None else None
        if usage is not None:
            usage.hand_out(answer, self._clock())
        return replace(answer, fresh=self._store.freshness()) if prove else answer

    def _answer(self, asked: Question, found: CandidateSet | None = None) -> HitCollector:
        """What answers a question, of what was ``found``; looked for again where files have changed since, or it is too
        little.
        """
        query, left = asked.query, asked.deadline.left
        collector = self._collect(asked, found or self._in_time(left(), partial(self._find, query)))
        for _ in range(_TRIES - 1):
            missing = set(collector.missing)
            if not missing or asked.deadline.passed or missing <= set(self._store.unread(query)):
                break
            self._store.refresh(collector.missing)
            collector = self._collect(asked, self._in_time(left(), partial(self._find, query)))
        wider = 1
        while collector.short and wider < (_WIDEST if asked.mark is None else _WIDE):
            wider *= _WIDER
            collector = self._collect(asked, self._in_time(left(), partial(self._find, query, wider)))
        return collector

    # -- what became of one -----------------------------------------------------------------------------------------
    def why_not(
        self,
        query: Query | str,
        item: MemoryItem,
        *,
        fenced: bool = False,
        leave_out: Callable[[MemoryItem], bool] | None = None,
    ) -> WhyNot:
        """What became of an item in the answer to a question: whether it is a hit, and if not, why. No use is counted.

        Args:
            query, fenced, leave_out: as ``search``; no deadline holds.
            item: one of those that are searched.

        Raises:
            QueryInvalid: as ``search``.
        """
        from memfs.recall import absence  # rarely asked for
        from memfs.recall.absence import WhyNot
        from memfs.recall.review import reviewed_relevance

        asked = replace(self._checked(query), seconds=None)
        shared, lacking = absence.words_of(asked.text, item)
        notes = absence.notes_of(item, _void_status(item), self._clock())
        miss = WhyNot(id=item.id, reason="", explanation="", shared=shared, lacking=lacking, notes=notes)
        if names := absence.failed_filters(asked, item, self._kinds):
            return replace(miss, reason="filter", filters=names, explanation=f"it does not fit {', '.join(names)}")
        if leave_out is not None and leave_out(item):
            return replace(miss, reason="trust", explanation="no agent is given it: nobody vouches for it")
        question = Question(query=asked, deadline=Deadline(None, self._tick), fenced=fenced, leave_out=leave_out)
        collector = self._answer(question)
        chosen = collector.selection
        every, found = collector.every(), 0
        if all(hit.item.id != item.id for hit in every):  # the index names the best alone
            wide = self._find(replace(asked, limit=MOST))
            every = self._collect(question, wide, judge=False).every()
            found = len(wide.matches)
        place = next((place for place, hit in enumerate(every) if hit.item.id == item.id), None)
        if place is None:
            return absence.unfound(miss, asked.text, item.content, semantic=self._helpers.meaning() is not None)
        hit, last = every[place], chosen.hits[-1].score if chosen.hits else None
        relevance = self._helpers.relevance() if asked.text else None
        if relevance is not None and reviewed_relevance(hit.reasons) is None:  # else its score were another measure
            [hit] = relevance.judged([hit], asked.text).hits
        miss = replace(miss, rank=place + 1, found=max(found, len(every)), score=hit.score, needed=last)
        return absence.judged(replace(miss, reasons=hit.reasons, passage=hit.passage), chosen, asked)

    def filtered(self, query: Query | str) -> tuple[str, ...]:
        """The ids of what would be among the hits of a question without its filters, best first. No use is counted.

        Raises:
            QueryInvalid: as ``search``.
        """
        from memfs.recall import absence

        asked = replace(self._checked(query), seconds=None)
        free = Query(**{name: getattr(asked, name) for name in ("text", "limit", "context", "strategy")})
        if not any(getattr(asked, name) for name in absence.FILTERS):
            return ()
        hits = self._answer(Question(query=free, deadline=Deadline(None, self._tick))).selection.hits
        return tuple(hit.item.id for hit in hits if absence.failed_filters(asked, hit.item, self._kinds))

    def _collect(self, asked: Question, found: CandidateSet | None, *, judge: bool = True) -> HitCollector:
        """The answer to a question, of what was found for it; None where nothing was before the deadline.

        Args:
            judge: whether reviewers are asked.
        """
        query = asked.query
        late, found = found is None, found or CandidateSet(QueryTerms.of(query, self._clock()))
        chosen = strategy(query.strategy or self._preset_name)
        learned = self._helpers.learned() if query.strategy in _LEARNING else None
        ranking = Ranking(query, chosen.weights, self._clock(), self._kinds, learned, found.asked)
        usage = self._helpers.usage if ranking.counts_use else None
        uses = usage.of(match.candidate.id for match in found.matches) if usage is not None else {}
        ranked = reranked(chosen, query, ranking.ranked(found.matches, uses))
        collector = HitCollector(self._store, asked, found, ranking, ranked)
        collector.late = late
        if ranked:
            collector.take(self._helpers.relevance() if query.text and judge else None)
        return collector

    def _in_time(self, seconds: float | None, find: Callable[[], Found]) -> Found | None:
        """What is found within ``seconds``; None where that takes longer."""
        if seconds is None:
            return find()
        finding = self._pools.submit("find", find)
        try:
            return finding.result(seconds)
        except TimeoutError:
            finding.cancel()
            return None

    # -- finding ----------------------------------------------------------------------------------------------------
    def _find(self, query: Query, wider: int = 1, named: QueryTerms | None = None) -> CandidateSet:
        """The candidates for a query, ``wider`` times as many as usual.

        Args:
            named: what it names, where that is known and all else is prepared.
        """
        asked, wanted = named or self._query_terms(query), max(query.limit, _BREADTH) * _PER_HIT * wider
        if asked.times is not None and not asked.times.rest and (then := self._all_at_times(query, asked, wanted)):
            return CandidateSet(asked, then, len(then) >= wanted)
        meaning = self._helpers.meaning() if query.text else None
        if meaning is not None and meaning.knows_senses:
            query = replace(query, related=True)
        found, cut = self._candidates(query, asked, wanted)
        if not query.text:
            return CandidateSet(asked, [RankCandidate(one) for one in found], cut)
        near: Sequence[tuple[Candidate, Shares]] = with_neighbours(found, lambda at: self._store.beside(at, query))
        if meaning is None:
            return CandidateSet(asked, self._covered(near, query, asked), cut)
        if named is None:
            meaning.prepare([query])
        matches = self._covered(meaning.joined(near, query), query, asked)
        return CandidateSet(asked, matches, cut, meaning.behind(), meaning.knows(query))

    def _covered(
        self, near: Sequence[tuple[Candidate, Shares]], query: Query, asked: QueryTerms
    ) -> Sequence[RankCandidate]:
        """The candidates as ``with_coverage`` has them."""
        matches = [*starmap(RankCandidate, near)]
        if all(one.sequence is None for one, _ in near):
            return matches
        return with_coverage(matches, self._store.asked_of(replace(query, text=asked_for(asked.sought(query.text)))))

    def _candidates(self, query: Query, asked: QueryTerms, wanted: int) -> tuple[list[Candidate], bool]:
        """At least ``wanted`` candidates, best first, and whether there may be more."""
        in_talks = bool(query.text) and self._store.has_conversations()
        sought = asked.sought(query.text)
        text = asked_for(sought)
        wide = replace(query, text=text, limit=min(max(wanted, _CONVERSATION_BREADTH if in_talks else 0), MOST))
        found = self._store.candidates(wide)
        cut = len(found) >= wide.limit
        if cut and query.text and not in_talks and self._store.has_conversations():
            return self._candidates(query, asked, wanted)  # the files looked at only now hold the first talk
        if cut and asked.times is not None:
            known = {one.id for one in found}
            found += [one for one in self._at_times(wide, asked.times) if one.id not in known]
        if sought != query.text and text != (whole := asked_for(query.text)):
            # in a talk a day may be given by some of its words; elsewhere its figures would be found in other places
            loose = in_talks or not (asked.times and asked.times.literal)
            of_time = self._store.candidates(replace(wide, text=whole)) if loose else ()
            found = _add_time_scores(found, of_time, asked.literal)
        return found, cut

    def _all_at_times(self, query: Query, asked: QueryTerms, wanted: int) -> list[RankCandidate]:
        """What was at the times that a query names, the newest first, and what writes their days."""
        times = asked.times
        found = self._at_times(replace(query, text="", limit=min(wanted, MOST)), times) if times is not None else []
        shares = {one.id: (one, 1.0 - _AGE_STEP * place) for place, one in enumerate(found)}
        shares |= {one.id: (one, _DAY_SCORE) for one in asked.literal}
        return [RankCandidate(one._replace(similarity=0.0), Shares(time=share)) for one, share in shares.values()]

    def _at_times(self, query: Query, times: NamedTimes) -> list[Candidate]:
        """The best candidates of some times."""
        found: list[Candidate] = []
        for first, last in times.spans(self._clock().date()):
            since, until = datetime.combine(first, clock.min, UTC), datetime.combine(last, clock.max, UTC)
            since, until = max(since, query.since or since), min(until, query.until or until)
            found += self._store.candidates(replace(query, since=since, until=until)) if since <= until else []
        return sorted(found, key=lambda one: one.similarity if query.text else one.timestamp.timestamp(), reverse=True)

    def _find_together(self, queries: Sequence[Query]) -> list[CandidateSet]:
        """The candidates for several queries, all in one state of the index."""
        if (meaning := self._helpers.meaning()) is not None:
            meaning.prepare(queries)
        named = [self._query_terms(query) for query in queries]  # this may open files
        for _ in range(_TRIES):
            try:
                with self._store.held():
                    return [self._find(query, named=one) for query, one in zip(queries, named, strict=True)]
            except IndexUnavailable:
                self._store.refresh()
        return [self._find(query) for query in queries]

    def _query_terms(self, query: Query) -> QueryTerms:
        """What a query names, with the days that it counts from an event; that is looked up by its words."""
        asked = QueryTerms.of(query, self._clock())
        if asked.times is not None and asked.times.literal:
            having = dict[str, Candidate]()  # the best memories that have all the words of a day
            for day in dict.fromkeys(asked.times.literal):
                wanted = terms.weights(day).keys()
                found = self._store.candidates(replace(query, text=day, limit=_EVENTS))
                for candidate, loaded in zip(found, self._store.load_each(found), strict=True):
                    if loaded is not None and wanted <= terms.held_terms(day, loaded.item):
                        having[candidate.id] = candidate
            asked = replace(asked, literal=[*having.values()])
        if asked.times is None or not asked.times.event:
            return asked
        from memfs.recall.dates import anchor_of  # few questions count from an event

        event = Query(
            text=asked.times.event, limit=_EVENTS, path=query.path, agents=query.agents, sessions=query.sessions
        )
        found = self._store.candidates(event)
        rows = zip(found, self._store.load_each(found), strict=True)
        pairs = ((one, loaded.item) for one, loaded in rows if loaded is not None)
        anchor = anchor_of(event.text, self._store.asked_of(event), pairs)
        return asked if anchor is None else replace(asked, times=asked.times.counted_from(anchor.day), anchor=anchor)


def _add_time_scores(
    found: Iterable[Candidate], whole: Iterable[Candidate], literal: Iterable[Candidate]
) -> list[Candidate]:
    """What was found without the words of a time, best first, each worth more by what those add.

    Args:
        whole: what was found with them.
        literal: what has all the words of a day, found by them alone.
    """
    rows = {candidate.id: candidate for candidate in found}
    for part, share in (whole, _TIME_SHARE), (literal, 1.0):
        for candidate in part:
            known = rows[candidate.id].similarity if candidate.id in rows else 0.0
            more = candidate.similarity - known if part is whole else candidate.similarity
            rows[candidate.id] = rows.get(candidate.id, candidate)._replace(similarity=known + share * more)
    return sorted(rows.values(), key=lambda candidate: -candidate.similarity)


def _check_known(field: str, names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            hint = " ".join(filter(None, (nearest(name, known), f"the {field} are {', '.join(known)}")))
            raise QueryInvalid(f"there is no {field.removesuffix('s')} {name!r}", field=field, hint=hint)
