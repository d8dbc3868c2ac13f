"""Retrieval: from a question to hits.

Owns the order freshness, search, ranking, loading. Text always comes from the files, never from the index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from memfs.errors import QueryInvalid
from memfs.model import Candidate, Hit, Query, Recall
from memfs.pipeline.ranking import preset, score
from memfs.store import Store

_CANDIDATES_PER_HIT = 3
_LIMIT = 10_000
_TEXT_LIMIT = 5_000
_TRIES = 2


class Recaller:
    """Answers questions from one workspace."""

    def __init__(self, store: Store, preset_name: str, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._preset = preset_name
        self._clock = clock

    def search(self, query: Query | str, *, prove: bool = False) -> Recall:
        """The best items for a question, from the files as they are now.

        Args:
            query: a query, or its text.
            prove: also say what the answer rests on (``Recall.fresh``).

        Raises:
            QueryInvalid, SettingInvalid.
        """
        asked = _checked(Query(text=query) if isinstance(query, str) else query)
        for _ in range(_TRIES):
            hits, missing = self._once(asked)
            if not missing:
                break
            self._store.refresh(missing)
        return Recall(
            query=asked,
            hits=tuple(hits),
            partial=bool(missing),
            fresh=self._store.freshness() if prove else None,
        )

    def _once(self, query: Query) -> tuple[list[Hit], list[str]]:
        found = self._store.candidates(replace(query, limit=min(query.limit * _CANDIDATES_PER_HIT, _LIMIT)))
        hits: list[Hit] = []
        missing: list[str] = []
        for candidate, points, reasons in self._ranked(found, query):
            if len(hits) == query.limit:
                break
            loaded = self._store.load(candidate)
            if loaded is None:
                missing.append(candidate.path)
            else:
                hits.append(Hit(item=loaded.item, score=points, reasons=reasons, stale=loaded.stale))
        return hits, missing

    def _ranked(self, found: list[Candidate], query: Query) -> list[tuple[Candidate, float, dict[str, float]]]:
        weights = preset(self._preset)
        now = self._clock()
        scored = [(candidate, *score(candidate, query, now, weights)) for candidate in found]
        if query.text.strip():
            scored.sort(key=lambda row: (-row[1], row[0].id))
        return scored


def _checked(query: Query) -> Query:
    if not 1 <= query.limit <= _LIMIT:
        raise QueryInvalid(f"a limit of {query.limit} is out of range", field="limit", hint=f"ask for 1 to {_LIMIT}")
    if len(query.text) > _TEXT_LIMIT:
        return replace(query, text=query.text[:_TEXT_LIMIT])
    return query
