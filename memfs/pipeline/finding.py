"""Finding: from a question to candidates in order.

Owns how many candidates are asked for, what joins them (neighbours in a talk, what an embedder finds), and what the
ranking is told of each. It opens no item's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from memfs.errors import IndexUnavailable
from memfs.model import Candidate, KindTable, Query
from memfs.model.query import MOST
from memfs.pipeline.ranking import Match, Ranked, Ranking
from memfs.pipeline.strategies import Strategy, reranked, strategy
from memfs.pipeline.talk import Shares, gathered
from memfs.store.readable import Readable
from memfs.usage import Usage

if TYPE_CHECKING:
    from memfs.pipeline.relevance import Relevance

_PER_HIT = 3
_IN_TALKS = 150
_TRIES = 2


class Meaning(Protocol):
    """What finds by meaning."""

    def prepare(self, queries: Sequence[Query]) -> None:
        """Do what may take a moment before several questions are asked in one state of the index."""

    def behind(self) -> bool:
        """Whether what finds by meaning does not know every item yet."""
        ...

    def knows(self, query: Query) -> bool:
        """Whether it has a vector of the question, without which words alone decide."""
        ...

    def joined(self, together: Sequence[tuple[Candidate, Shares]], query: Query) -> Sequence[tuple[Candidate, Shares]]:
        """The candidates of the text search, perhaps more of them, with ``meaning`` filled in."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """What an answer can do without; each is asked for when it is first needed, None where there is none."""

    usage: Callable[[], Usage | None] = lambda: None
    relevance: Callable[[], Relevance | None] = lambda: None
    meaning: Callable[[], Meaning | None] = lambda: None
    permit: Callable[[], None] = lambda: None
    """Raises where nothing may be given at present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found for a question, not ordered yet; ``cut`` where there may be more, ``behind`` where some of it
    could be found by words alone, ``semantic`` where meaning was searched at all.
    """

    matches: Sequence[Match]
    cut: bool = False
    behind: bool = False
    semantic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Candidates, best first, and the factors of each; the rest as what was found."""

    ranked: Sequence[Ranked] = ()
    reasons: Callable[[Match], Mapping[str, float]] = lambda _: {}
    cut: bool = False
    behind: bool = False
    semantic: bool = False


class Finder:
    """Finds and ranks in one workspace. May be used from several threads."""

    def __init__(
        self,
        store: Readable,
        preset_name: str,
        clock: Callable[[], datetime],
        kinds: KindTable | None,
        helpers: Helpers,
    ) -> None:
        """``preset_name``: the strategy of queries that name none."""
        self._store = store
        self._preset = preset_name
        self._clock = clock
        self._kinds = kinds
        self._helpers = helpers

    def strategy(self, query: Query) -> Strategy:
        """The strategy by which a query's answers are ordered.

        Raises:
            QueryInvalid: there is none of that name.
        """
        return strategy(query.strategy or self._preset)

    def find(self, query: Query, wider: int = 1) -> Found:
        """The candidates for a query, ``wider`` times as many as usual."""
        return self._find(query, wider, self._prepare)

    def _prepare(self, queries: Sequence[Query]) -> None:
        meaning = self._helpers.meaning()
        if meaning is not None:
            meaning.prepare(queries)

    def _find(self, query: Query, wider: int, prepare: Callable[[Sequence[Query]], None]) -> Found:
        seeking = self._store.seeking
        found, cut = self._candidates(query, query.limit * _PER_HIT * wider)
        if not query.text:
            return Found(matches=[Match(one) for one in found], cut=cut)
        together: Sequence[tuple[Candidate, Shares]] = gathered(found, lambda places: seeking.beside(places, query))
        prepare([query])
        meaning = self._helpers.meaning()
        if meaning is not None:
            together = meaning.joined(together, query)
        return Found(
            matches=[Match(one, shares) for one, shares in together],
            cut=cut,
            behind=meaning is not None and meaning.behind(),
            semantic=meaning is not None and meaning.knows(query),
        )

    def _candidates(self, query: Query, wanted: int) -> tuple[list[Candidate], bool]:
        """At least so many candidates, and whether there may be more."""
        seeking = self._store.seeking
        in_talks = bool(query.text) and seeking.talks()
        asked = min(max(wanted, _IN_TALKS) if in_talks else wanted, MOST)
        found = seeking.candidates(replace(query, limit=asked))
        cut = len(found) >= asked
        if cut and query.text and not in_talks and seeking.talks():
            return self._candidates(query, wanted)  # the files that were looked at only now hold the first talk
        return found, cut

    def find_together(self, queries: Sequence[Query]) -> list[Found]:
        """The candidates for several queries, all in one state of the index."""
        self._prepare(queries)
        for _ in range(_TRIES):
            try:
                with self._store.seeking.snapshot():
                    return [self._find(query, 1, _prepared) for query in queries]
            except IndexUnavailable:
                self._store.refresh()
        return [self.find(query) for query in queries]

    def order(self, query: Query, found: Found) -> Order:
        """What was found, ordered by the query's strategy."""
        chosen = self.strategy(query)
        ranking = Ranking(query, chosen.weights, self._clock(), self._kinds)
        usage = self._helpers.usage() if ranking.counts_use else None
        uses = usage.of(match.candidate.id for match in found.matches) if usage is not None else {}
        ranked = ranking.ranked(ranking.completed(found.matches, uses))
        ranked = reranked(chosen, query, ranked)
        return Order(
            ranked=ranked, reasons=ranking.reasons, cut=found.cut, behind=found.behind, semantic=found.semantic
        )


def _prepared(queries: Sequence[Query]) -> None:
    """In place of preparing what is prepared."""
