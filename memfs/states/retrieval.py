"""State retrieval: the system's state as it is or was, whole, in part or summed up (seed 001, S3, S14).

Owns that an answer is of one piece and true when it is handed out: made again while what it rests on changes, kept only
as long as that stays as it was. What belongs into it, ``memfs.states.answering`` says.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memfs.errors import IndexUnavailable, QueryInvalid
from memfs.files.forked import renewed_in_child
from memfs.index.states import News
from memfs.model.statepaths import aggregate_path
from memfs.model.statequery import Question
from memfs.model.states import RetrievedContent, RetrievedState
from memfs.model.time import Moment, parse_time
from memfs.pipeline.deadline import Deadline
from memfs.states.answering import Answering, Notes
from memfs.states.reading import Proof, StateReading
from memfs.states.statecache import StateCache
from memfs.states.wanted import Wanted, wanted_of

_TRIES = 3
_COUNTED_AT = 50
_LOOK_LATE = "not every file was looked at in time: what others changed just now may be missing"


@dataclass(frozen=True, slots=True)
class _Basis:
    """What a kept answer rests on: when nothing of it has changed, the answer holds."""

    generation: int
    newest: int | None
    questions: tuple[Question, ...]
    proofs: tuple[tuple[str, Proof], ...]


class Retrieval:
    """Answers questions for the state of one workspace's system. May be used from several threads."""

    def __init__(self, reading: StateReading, seconds: float | None = None) -> None:
        """``seconds``: how long an answer takes where the question does not say; None for as long as it needs."""
        self._reading = reading
        self._default = seconds
        self._kept = StateCache()
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._counted = (0, 0)

    def retrieve(
        self,
        request_type: str = "full",
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        agents: Sequence[str] | None = None,
        components: Sequence[str] | None = None,
        hypotheses: Sequence[str] | None = None,
        iterations: Sequence[int] | None = None,
        metrics: Sequence[str] | None = None,
        deadline: float | None = None,
    ) -> RetrievedState:
        """The state that was asked for (S3, S13, S14).

        Without ``start``, ``end`` and ``iterations`` it is the present: the newest iteration, the last state update and
        the last state of every agent from whichever iteration, the last 100 hypotheses as they are, the last 100
        tournament results and the last ten meta-reviews.

        Args:
            request_type: ``full`` for all content, ``summary`` for statistics and counts only, ``partial`` for what is
                named by ``agents``, ``components``, ``hypotheses`` and ``metrics`` (the last state of everything where
                nothing is named).
            start, end: only documents with a time from and until these.
            agents: only these agents' states, hypotheses by them, and reviews about them.
            components: ``system``, ``agents``, ``hypotheses``, ``tournament``, ``feedback``, an agent, or a part of the
                system that ``recovery_metadata`` or ``queue_statistics`` of a state update tell of.
            hypotheses: only these, and tournament results of theirs.
            iterations: only of these.
            metrics: names of figures to bring along, with their history.
            deadline: seconds after which what there is comes back, with sentences that say what is missing;
                ``math.inf`` for all of it, however long that takes. By default what the settings say.

        Raises:
            QueryInvalid: naming the argument that makes no sense.
        """
        wanted = wanted_of(
            request_type,
            {
                "start": start,
                "end": end,
                "agents": agents,
                "components": components,
                "hypotheses": hypotheses,
                "iterations": iterations,
                "metrics": metrics,
            },
        )
        limit = Deadline(self._default if deadline is None else _seconds(deadline))
        looked = self._reading.catch_up(Deadline(limit.seconds and limit.seconds / 2))  # the rest is for reading
        basis = self._kept.proof(wanted)
        if looked and basis is not None and self._holds(basis, limit):
            with suppress(KeyError):
                kept = self._kept.value(wanted)
                self._count(hit=True)
                return self._answer(wanted, kept, cached=True)
        self._count(hit=False)
        return self._answer(wanted, self._made(wanted, limit, looked), cached=False)

    def cache_statistics(self) -> Mapping[str, Any]:
        """How often answers and documents came from the cache, in this process and in all so far (S14)."""
        self._reading.parts.require_open()
        self._write_down()
        notes = self._reading.index.notes()
        total = (int(notes.get("cache_hits", "0")), int(notes.get("cache_misses", "0")))
        documents = self._reading.kept
        return {
            "answers": _rates(self._kept.hits, self._kept.misses),
            "documents": _rates(documents.hits, documents.misses),
            "all_processes": _rates(*total),
            "kept_answers": len(self._kept),
            "kept_documents": len(documents),
            "bytes": self._kept.bytes + documents.bytes,
        }

    def close(self) -> None:
        """Write down how often the cache could answer."""
        with suppress(IndexUnavailable):
            self._write_down()

    # -- making -------------------------------------------------------------------------------------------------------
    def _made(self, wanted: Wanted, deadline: Deadline, looked: bool) -> dict[str, Any]:
        """The answer as plain values; kept when it is whole."""
        index = self._reading.index
        made: dict[str, Any] = {}
        for _ in range(_TRIES):
            generation = index.generation()
            answering = Answering(self._reading, wanted, deadline)
            content = answering.content()
            notes = answering.notes
            made = {"content": content, "missing": notes.missing, "range": _range(wanted, notes)}
            if not looked:
                notes.missing.append(_LOOK_LATE)
            basis = _Basis(generation, answering.newest, tuple(notes.questions), tuple(notes.proofs.items()))
            if notes.late or not looked:
                notes.missing.append(
                    f"the {deadline.seconds:g} s for this answer were over: a longer deadline finds more"
                )
                return made
            if self._unmoved(basis):
                self._kept.keep(wanted, made, basis)
                return made
        return made

    def _answer(self, wanted: Wanted, made: Mapping[str, Any], cached: bool) -> RetrievedState:
        start, end = (Moment.of(parse_time(one)) if one else None for one in made["range"])
        return RetrievedState(
            request_type=wanted.request_type,
            timestamp_range=(start, end),
            content=RetrievedContent(**made["content"]),
            partial=bool(made["missing"]),
            missing=tuple(made["missing"]),
            cached=cached,
            behind=self._behind(),
        )

    def _behind(self) -> dict[str, Any]:
        """How far what is only eventually consistent is behind."""
        parts = self._reading.parts
        behind: dict[str, Any] = {"uncommitted_writes": len(parts.journal.operations())}
        entry = parts.seen.entry(aggregate_path("research_progress"))
        if entry is not None:
            behind["aggregates_seconds"] = max(0.0, round(time.time() - entry.mtime_ns / 1e9, 3))
        return behind

    # -- keeping ------------------------------------------------------------------------------------------------------
    def _holds(self, basis: _Basis, deadline: Deadline) -> bool:
        """Whether a kept answer would come out the same now."""
        if not self._unmoved(basis):
            return False
        return all(not deadline.passed and self._reading.holds(path, proof) for path, proof in basis.proofs)

    def _unmoved(self, basis: _Basis) -> bool:
        """Whether nothing that an answer asked for has become known since."""
        index = self._reading.index
        if index.newest_iteration() != basis.newest:
            return False
        news = index.news(basis.generation)
        return news is not None and not any(_concerns(one, basis.questions) for one in news)

    def _count(self, hit: bool) -> None:
        self._kept.count(hit)
        if (self._kept.hits + self._kept.misses) % _COUNTED_AT == 0:
            self.close()

    def _write_down(self) -> None:
        with self._guard:
            hits, misses = self._kept.hits, self._kept.misses
            before, self._counted = self._counted, (hits, misses)
            if (hits, misses) != before:
                self._reading.index.add(cache_hits=hits - before[0], cache_misses=misses - before[1])


def _concerns(news: News, questions: Iterable[Question]) -> bool:
    """Whether a document that became known could belong to the answer of a question."""
    return any(
        (not one.kinds or news.kind in one.kinds)
        and (not one.iterations or news.iteration in one.iterations)
        and (not one.agents or not news.agents.isdisjoint(one.agents))
        and (not one.hypotheses or not news.hypotheses.isdisjoint(one.hypotheses))
        and (one.start is None or news.moment is None or news.moment >= one.start)
        and (one.end is None or news.moment is None or news.moment <= one.end)
        for one in questions
    )


def _range(wanted: Wanted, notes: Notes) -> tuple[str, str]:
    """What was asked for; on a side that was left open, the first or last moment of what was found."""
    start = wanted.start or min(notes.moments, default=None)
    end = wanted.end or max(notes.moments, default=None)
    return (start.isoformat() if start else "", end.isoformat() if end else "")


def _rates(hits: int, misses: int) -> dict[str, Any]:
    asked = hits + misses
    return {"hits": hits, "misses": misses, "rate": round(hits / asked, 4) if asked else 0.0}


def _seconds(deadline: Any) -> float | None:
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not deadline >= 0:
        raise QueryInvalid(
            f"{deadline!r} is no time limit", field="deadline", hint="give seconds, 0 or more, or math.inf"
        )
    return None if math.isinf(deadline) else float(deadline)
