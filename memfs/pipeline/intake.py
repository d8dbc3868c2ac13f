"""Intake: from a draft to a stored memory (seed 003, C3).

Owns the order trivial filter, extraction, review, what is there already, storing; and what is told of each. How each
step decides is the business of its own module.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from memfs.errors import Conflict
from memfs.files.forked import renewed_in_child
from memfs.model import MemoryItem
from memfs.model.occasion import Fire
from memfs.model.review import ReviewResult, StoreResult
from memfs.pipeline.extraction import extract
from memfs.pipeline.merging import merged
from memfs.pipeline.neighbours import Neighbourhood, Neighbours
from memfs.pipeline.review import Review
from memfs.pipeline.reviewers import reviewers_of
from memfs.pipeline.trivial import TrivialFilter
from memfs.pipeline.wording import gist
from memfs.settings import ReviewSettings
from memfs.store import Store
from memfs.store.message import of_items
from memfs.store.parts import Parts
from memfs.usage import Usage

Judge = Callable[[MemoryItem], ReviewResult]
Extraction = Callable[[MemoryItem], tuple[MemoryItem, Mapping[str, str]]]
_TRIES = 3


class Intake:
    """Takes drafts into one workspace. May be used from several threads."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        usage: Usage,
        judge: Judge,
        *,
        extraction: Extraction = lambda item: (item, {}),
        threshold: float = 6.0,
        fire: Fire,
    ) -> None:
        """Take drafts in.

        Args:
            store, parts: where they go.
            usage: where a repeated draft counts as a use of the item it repeats.
            judge: what is said of a draft, such as ``Review.storage``.
            extraction: what reads a draft before it is judged, such as ``Review.extraction``.
            threshold: the mean score, 0 to 10, from which a draft is stored.
            fire: raises an occasion with its facts, as ``Behaviours.fire`` does.
        """
        self._store = store
        self._clock = parts.clock
        self._usage = usage
        self._judge = judge
        self._extraction = extraction
        self._threshold = threshold
        self._fire = fire
        self._trivial = TrivialFilter()
        self._neighbourhood = Neighbourhood(store, parts.kinds)
        self._turn = threading.RLock()
        renewed_in_child(self)

    def reviewed_by(self, judge: Judge) -> Intake:
        """This intake with another judge."""
        other = copy.copy(self)
        other._judge = judge
        return other

    def store(
        self, item: MemoryItem, *, review: bool = True, source: str = "", merge: bool = True, allow_secret: str = ""
    ) -> StoreResult:
        """Store a draft if it is worth it.

        Args:
            item: the draft; with an id it is stored under that one, which must be free.
            review: whether the trivial filter and the reviewers are asked; without, every draft is stored.
            source: which door it came through, for the commit's trailers.
            merge: whether a draft that repeats an item of the same type and scope is merged into that item.
            allow_secret: as for ``Store.put``.

        Returns:
            What became of it; a draft that is refused is no error.

        Raises:
            IdInvalid, IdExists, Conflict, ContentError, StorageIO: as ``Store.put``; nothing was changed.
        """
        self._store.require_open()
        if review and not item.data and (trivial := self._trivial.reason(gist(item))):
            return StoreResult(stored=False, memory_id=None, consensus_score=0.0, reason=trivial)
        draft, unread = self._extraction(extract(item, self._clock()))
        verdict = self._judge(draft) if review else None
        if verdict is not None and unread:
            verdict = replace(verdict, absent={**unread, **verdict.absent})
        score = verdict.consensus_score if verdict else 0.0
        if verdict is not None and (refusal := self._refusal(verdict)):
            return StoreResult(stored=False, memory_id=None, consensus_score=score, reason=refusal, review=verdict)
        kept = StoreResult(stored=True, memory_id="", consensus_score=score, reason="", review=verdict)
        put = partial(self._store.put, source=source, allow_secret=allow_secret)
        with self._turn:  # of two threads with the same text, the second finds what the first stored
            found = self._neighbours(draft)
            if merge and not item.id and (into := self._merged_into(found, draft, put)):
                reason = f"merged: {into} says the same"
                return replace(kept, memory_id=into, merged_into=into, reason=reason, **_told(found))
            stored = put(draft.replace(links=_linked(draft, found)), expected="")
        self._fire("memory_stored", {"item": stored})
        praise = _praise(verdict, self._threshold, verdict.absent if verdict else unread)
        return replace(kept, memory_id=stored.id, reason=praise, **_told(found))

    def _neighbours(self, draft: MemoryItem) -> Neighbours:
        return self._neighbourhood.of(draft, self._clock())

    def _refusal(self, verdict: ReviewResult) -> str:
        """Why a draft is not stored; "" where it is."""
        if not verdict.agent_scores:
            why = "; ".join(f"{name}: {reason}" for name, reason in verdict.absent.items())
            return f"no reviewer answered ({why or 'there is none'}), so it was not stored"
        if verdict.consensus_score >= self._threshold:
            return ""
        scores = ", ".join(f"{name} {score:.1f}" for name, score in verdict.agent_scores.items())
        return f"below the threshold of {self._threshold:g}: {verdict.consensus_score:.1f} ({scores})"

    def _merged_into(self, found: Neighbours, draft: MemoryItem, put: Callable[..., MemoryItem]) -> str:
        """Unite a draft with the item it repeats; return the item's id, "" where it repeats none."""
        existing = found.repeated
        for _ in range(_TRIES):
            if existing is None:
                return ""
            self._usage.touch([existing.id], self._clock())
            united = merged(existing, draft)
            if united == existing:
                return existing.id
            try:
                return put(united, expected=existing.sha256, message=of_items("Repeat", [existing])).id
            except Conflict:  # somebody changed it since the index was asked: it may say something else now
                self._store.refresh([existing.path])
                existing = self._neighbours(draft).repeated
        return ""


def _linked(draft: MemoryItem, found: Neighbours) -> tuple[Any, ...]:
    """The draft's own links, and those to its neighbours that it does not link yet."""
    own = {link.to for link in draft.links}
    return (*draft.links, *(link for link in found.links() if link.to not in own))


def _told(found: Neighbours) -> dict[str, Any]:
    return {
        "near": tuple(item.id for item in found.near),
        "contradicts": tuple(item.id for item, _ in found.contradicts),
    }


def _praise(verdict: ReviewResult | None, threshold: float, absent: Mapping[str, str]) -> str:
    left_out = f"; left out: {', '.join(absent)}" if absent else ""
    if verdict is None:
        return f"stored without review{left_out}"
    return f"stored: {verdict.consensus_score:.1f} of at least {threshold:g}{left_out}"


def intake_of(store: Store, parts: Parts, usage: Usage, settings: ReviewSettings, fire: Fire) -> Intake:
    """The intake of a workspace, as its settings say.

    Raises:
        SettingInvalid: a reviewer is named that there is none of, or the endpoint cannot be asked.
    """
    review = Review(reviewers_of(settings), settings.seconds)
    return Intake(
        store, parts, usage, review.storage, extraction=review.extraction, threshold=settings.threshold, fire=fire
    )
