"""Intake: takes a draft through filter, extraction, review and the search for repetitions, and stores it.

A trivial text is recognised without a reviewer. A draft that repeats an item is merged into it, and the result says
what became of the draft and why.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from functools import partial

from memfs.dataclass import replace
from memfs.errors import Conflict
from memfs.fs.lock import reset_on_fork
from memfs.intake.contradictions import Neighbours, NeighbourSearch
from memfs.model import MemoryItem, Phase
from memfs.model.item import Link, gist, trust_rank
from memfs.model.learning import ReviewResult, StoreResult
from memfs.recall.cues import TrivialFilter
from memfs.recall.review import Review
from memfs.recall.reviewers import reviewers_of
from memfs.resources import word_lists
from memfs.search.analyzer import STOP_WORDS, tokens
from memfs.search.terms import COMMON_WORDS
from memfs.settings import ReviewSettings
from memfs.startup import Any, regex
from memfs.store import Store
from memfs.store.parts import Fire, Parts
from memfs.store.plan import message_for_items
from memfs.usage import Usage


def merged(existing: MemoryItem, draft: MemoryItem) -> MemoryItem:
    """The existing item with what the draft adds; the existing item itself where it adds nothing.

    A draft adds nothing to an item of higher trust, and replaces one of lower trust: text of lower trust never passes
    as text of higher trust.

    Args:
        existing: an item with the same text.
        draft: the draft, as it was given: what was worked out of it changes no item that there is.
    """
    ours, theirs = trust_rank(existing.trust), trust_rank(draft.trust)
    if theirs < ours:
        return existing
    if theirs > ours:
        return draft.replace(
            id=existing.id,
            path=existing.path,
            sha256=existing.sha256,
            created=existing.created,
            timestamp=existing.timestamp,
            importance=max(existing.importance, draft.importance),
            pinned=existing.pinned or draft.pinned,
            links=_united(existing, draft.links),
        )
    return existing.replace(
        title=existing.title or draft.title,
        tags=tuple(dict.fromkeys((*existing.tags, *draft.tags))),
        importance=max(existing.importance, draft.importance),
        pinned=existing.pinned or draft.pinned,
        status=existing.status or draft.status,
        expires=max(existing.expires, draft.expires) if existing.expires and draft.expires else existing.expires,
        supersedes=tuple(one for one in (*existing.supersedes, *draft.supersedes) if one != existing.id),
        links=_united(existing, existing.links, draft.links),
        context=_added(existing.context, draft.context),
        metadata=_added(existing.metadata, draft.metadata),
    )


def _united(existing: MemoryItem, *rows: tuple[Link, ...]) -> tuple[Link, ...]:
    """All links, each once; an item that is linked already gets no second link of another sort."""
    found: dict[str, Link] = {}
    for row in rows:
        for link in row:
            if link.to != existing.id:
                found.setdefault(link.to, link)
    return tuple(found.values())


def _added(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    return {**ours, **{name: value for name, value in theirs.items() if name not in ours}}


MOST_KEYWORDS = 5
_LOOKED_AT = 5_000
_EMPTY_WORDS = STOP_WORDS | COMMON_WORDS | frozenset(word_lists()["entities"]["empty"].split())
_NO_KEYWORDS = _EMPTY_WORDS | frozenset(word_lists()["entities"]["calendar"].split())


def keywords(text: str) -> tuple[str, ...]:
    """The most distinctive words of a text: often said, long, early; lower case, the best first, at most five."""
    found: dict[str, list[float]] = {}
    for place, (word, stems) in enumerate(tokens(text[:_LOOKED_AT])):
        plain = word.casefold()
        telling = stems and len(plain) > 2 and plain not in _NO_KEYWORDS and not plain.isdigit()
        if telling:
            row = found.setdefault(plain, [0.0, float(place)])
            row[0] += 1.0 + min(len(plain), 12) / 12 + (0.5 if word[1:] != word[1:].lower() else 0.0)
    ranked = sorted(found, key=lambda word: (-found[word][0] + found[word][1] / 200, found[word][1]))
    return tuple(ranked[:MOST_KEYWORDS])


_TITLED_FROM = 100
_TITLE_LENGTH = 80
_LONGEST_ORIGIN = 200
_ORIGIN: Mapping[str, tuple[str, ...]] = {
    "session": ("session_id", "session"),
    "agent": ("agent_id", "agent_name", "agent"),
    "task": ("task_id", "task"),
    "tool": ("tool_name", "tool"),
    "speaker": ("speaker",),
    "role": ("role",),
    "phase": ("phase", "edrr_phase"),
}
_MARKUP = regex(r"^[#>*\-\s]+")
_SENTENCE = regex(r"(?<=[.!?])\s+(?=[^a-z])")


def extract(item: MemoryItem) -> MemoryItem:
    """The draft with what its text and metadata say of it, each in its own field.

    A title, where it has none and its text is longer than one glance; ``metadata.keywords``, where it has none and the
    text gives any; the parts of ``origin`` that are unknown and that ``metadata``, or else
    ``context``, names: ``session_id``, ``agent_id``, ``task_id``, ``tool_name``, ``speaker``, ``role``, ``phase``,
    ``sequence``.
    """
    found = keywords(gist(item)) if "keywords" not in item.metadata else ()
    added = {"keywords": list(found)} if found else {}
    origin: dict[str, Any] = {}
    for part, keys in _ORIGIN.items():
        if not getattr(item.origin, part) and (name := _stated(item, keys)):
            origin[part] = name
    if origin.get("phase") not in (None, *(phase.value for phase in Phase)):
        del origin["phase"]
    place = item.metadata.get("sequence")
    if item.origin.sequence is None and isinstance(place, int) and not isinstance(place, bool) and place >= 0:
        origin["sequence"] = place
    return item.replace(
        title=item.title or _title(item.content),
        metadata={**item.metadata, **added},
        origin=replace(item.origin, **origin),
    )


def _title(content: str) -> str:
    """The first sentence of a longer text; "" for a short one, which is its own title."""
    lines = [line for line in map(str.strip, content.splitlines()) if _MARKUP.sub("", line)]
    if not lines or (len(lines) == 1 and len(content) <= _TITLED_FROM):
        return ""
    first = " ".join(_SENTENCE.split(_MARKUP.sub("", lines[0]), maxsplit=1)[0].split())
    if len(first) <= _TITLE_LENGTH:
        return first.rstrip(":.") or first
    cut = first[:_TITLE_LENGTH]
    return (cut.rpartition(" ")[0] or cut).rstrip(",;:-") + "…"


def _stated(item: MemoryItem, keys: tuple[str, ...]) -> str:
    for values in (item.metadata, item.context):
        for key in keys:
            value = values.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            if isinstance(value, str) and value.strip() and len(value) <= _LONGEST_ORIGIN and value.isprintable():
                return value.strip()
    return ""


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
        judge: Judge | None,
        *,
        extraction: Extraction = lambda item: (item, {}),
        threshold: float = 6.0,
        fire: Fire,
    ) -> None:
        """Take drafts in.

        Args:
            store, parts: where they go.
            usage: where a repeated draft counts as a use of the item it repeats.
            judge: what is said of a draft, such as ``Review.storage``; None where no reviewer is ever asked.
            extraction: what reads a draft before it is judged, such as ``Review.extraction``.
            threshold: the mean score, 0 to 10, from which a draft is stored.
            fire: raises an occasion with its facts, as ``Behaviours.fire`` does.
        """
        self._store = store
        self._clock = parts.clock
        self._usage, self._judge, self._extraction = usage, judge, extraction
        self._threshold, self._fire = threshold, fire
        self._trivial = TrivialFilter()
        self._neighbourhood = NeighbourSearch(store, parts.kinds)
        self._turn = threading.RLock()
        reset_on_fork(self)

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
        draft, unread = self._extraction(extract(item))
        verdict = self._judge(draft) if review and self._judge is not None else None
        if verdict is not None and unread:
            verdict = replace(verdict, absent={**unread, **verdict.absent})
        score = verdict.consensus_score if verdict else 0.0
        if verdict is not None and (refusal := self._refusal(verdict)):
            return StoreResult(stored=False, memory_id=None, consensus_score=score, reason=refusal, review=verdict)
        kept = StoreResult(stored=True, memory_id="", consensus_score=score, reason="", review=verdict)
        put = partial(self._store.put, source=source, allow_secret=allow_secret)
        with self._turn:  # of two threads with the same text, the second finds what the first stored
            found = self._neighbourhood.of(draft, self._clock())
            if merge and not item.id and (into := self._merged_into(found, draft, put)):
                reason = f"merged: {into} says the same"
                return replace(kept, memory_id=into, merged_into=into, reason=reason, **found.named())
            stored = put(draft.replace(links=found.linked(draft.links)), expected="")
        self._fire("memory_stored", {"item": stored})
        praise = f"stored: {score:.1f} of at least {self._threshold:g}" if verdict else "stored without review"
        if absent := verdict.absent if verdict else unread:
            praise += f"; left out: {', '.join(absent)}"
        return replace(kept, memory_id=stored.id, reason=praise, **found.named())

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
                return put(united, expected=existing.sha256, message=message_for_items("Repeat", [existing])).id
            except Conflict:  # somebody changed it since the index was asked: it may say something else now
                self._store.refresh([existing.path])
                existing = self._neighbourhood.of(draft, self._clock()).repeated
        return ""


def intake_of(store: Store, parts: Parts, usage: Usage, settings: ReviewSettings, fire: Fire) -> Intake:
    """The intake of a workspace, as its settings say.

    Raises:
        SettingInvalid: a reviewer is named that there is none of, or the endpoint cannot be asked.
    """
    review = Review(reviewers_of(settings), settings.seconds)
    return Intake(
        store, parts, usage, review.storage, extraction=review.extraction, threshold=settings.threshold, fire=fire
    )
