"""Retrieval: from a question to hits.

Owns the order freshness, search, ranking, loading. Text always comes from the files, never from the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from memfs.errors import QueryInvalid
from memfs.model import Candidate, Hit, KindTable, Layer, Phase, Query, Recall
from memfs.model.kinds import nearest
from memfs.model.query import MOST
from memfs.pipeline.fence import fence
from memfs.pipeline.ranking import Match, Ranking, preset
from memfs.pipeline.talk import gathered
from memfs.store import Store

_CANDIDATES_PER_HIT = 3
_CANDIDATES_IN_TALKS = 150
_TEXT_LIMIT = 5_000
_TRIES = 2


class Recaller:
    """Answers questions from one workspace."""

    def __init__(
        self, store: Store, preset_name: str, clock: Callable[[], datetime], kinds: KindTable | None = None
    ) -> None:
        """``kinds``: the types there are; without them any type may be asked for."""
        self._store = store
        self._preset = preset_name
        self._clock = clock
        self._kinds = kinds

    def search(self, query: Query | str, *, prove: bool = False) -> Recall:
        """The best items for a question, from the files as they are now.

        Args:
            query: a query, or its text.
            prove: also say what the answer rests on (``Recall.fresh``).

        Raises:
            QueryInvalid: naming the field that cannot be understood, and the nearest type, layer or phase.
        """
        asked = self._checked(Query(text=query) if isinstance(query, str) else query)
        for _ in range(_TRIES):
            hits, missing, more = self._once(asked)
            if set(missing) <= set(self._store.unread(asked)):
                break
            self._store.refresh(missing)
        return Recall(
            query=asked,
            hits=tuple(hits),
            partial=bool(missing or self._store.unread(asked)),
            fresh=self._store.freshness() if prove else None,
            more=more,
        )

    @staticmethod
    def fenced(answer: Recall) -> str:
        """The hits of an answer as quoted data for a prompt (``memfs.pipeline.fence``); "" where there are none."""
        return fence(answer.hits)

    def _checked(self, query: Query) -> Query:
        if not isinstance(query, Query):
            raise QueryInvalid(f"expected a Query or a text, got {ascii(query)[:60]}", field="query")
        _check_known("layers", query.layers, [layer.value for layer in Layer])
        _check_known("phases", query.phases, [phase.value for phase in Phase])
        if self._kinds is not None:
            _check_known("types", query.types, [kind.name for kind in self._kinds])
        text = query.text[:_TEXT_LIMIT] if query.text.strip() else ""
        return query if text == query.text else replace(query, text=text)

    def _once(self, query: Query) -> tuple[list[Hit], list[str], bool]:
        wanted = query.limit * _CANDIDATES_PER_HIT
        if query.text and self._store.talks():
            wanted = max(wanted, _CANDIDATES_IN_TALKS)
        found = self._store.candidates(replace(query, limit=min(wanted, MOST)))
        hits: list[Hit] = []
        missing: list[str] = []
        ranking = Ranking(query, preset(self._preset), self._clock())
        for match, points in self._ranked(found, query, ranking):
            candidate = match.candidate
            if len(hits) == query.limit:
                return hits, missing, True
            loaded = self._store.load(candidate)
            if loaded is None:
                missing.append(candidate.path)
            else:
                hits.append(Hit(item=loaded.item, score=points, reasons=ranking.reasons(match), stale=loaded.stale))
        return hits, missing, False

    def _ranked(self, found: list[Candidate], query: Query, ranking: Ranking) -> list[tuple[Match, float]]:
        if not ranking.asked.text:
            return [(match, ranking.score(match)) for match in map(Match, found)]
        together = gathered(found, lambda places: self._store.beside(places, query))
        scored = [(match, ranking.score(match)) for match in (Match(one, shares) for one, shares in together)]
        scored.sort(key=lambda row: (-row[1], row[0].candidate.id))
        return scored


def _check_known(field: str, names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            hint = " ".join(filter(None, (nearest(name, known), f"the {field} are {', '.join(known)}")))
            raise QueryInvalid(f"there is no {field.removesuffix('s')} {name!r}", field=field, hint=hint)
