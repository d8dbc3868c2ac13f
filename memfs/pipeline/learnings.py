"""Learnings: what was learned in a task, picked from what was noted while it ran (seed 002, M4).

Owns which sentences teach something, by cues, and that each is kept once. A text in a language without cues teaches by
its outcome alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memfs.errors import Conflict, IdExists
from memfs.files.secrets import reason_in
from memfs.model import Layer, Link, MemoryItem, Origin, Query, Trust
from memfs.model.ids import slug
from memfs.model.suggestion import Source, Suggestion
from memfs.model.time import utc_now
from memfs.pipeline.corrections import is_correction
from memfs.pipeline.cues import spoken
from memfs.pipeline.likeness import SAME, Shape, alike, normalised
from memfs.store import Store

if TYPE_CHECKING:
    from memfs.pipeline.inbox import Inbox

READ = 500
"""So many of the newest notes of a task or session are read."""
MOST = 10
"""So many learnings a task leaves at most."""
_LONGEST = 400
_FEWEST_WORDS = 4
_COMPARED = 8
_TRIES = 3
_SOURCE = "learnings"
_TABLE = "learnings"
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def telling(text: str) -> bool:
    """Whether a text tells a decision, a cause or a lesson, and is not a mere question."""
    return _cue("telling", text) and not text.rstrip().endswith("?")


def achieved(text: str) -> bool:
    """Whether a text begins by telling what was achieved."""
    return any(language.pattern(f"{_TABLE}.achieved").match(text) for language in spoken(_TABLE))


def stated(text: str) -> str:
    """What of a person's message to an agent tells a decision, a cause or a lesson; "" where nothing does.

    What the message asks for was wanted then, and how things are to be done, preferences keep.
    """
    told = (one.strip() for one in _SENTENCE.split(text[: _LONGEST * READ]) if _cue("stated", one))
    return " ".join(one for one in told if not (one.endswith("?") or _requests(one) or is_correction(one)))


def _cue(name: str, text: str) -> bool:
    frame = r"(?<!\w){}(?!\w)"
    return any(language.pattern(f"{_TABLE}.{name}", frame).search(text) for language in spoken(_TABLE))


def _requests(sentence: str) -> bool:
    return any(language.pattern(f"{_TABLE}.request").match(sentence) for language in spoken(_TABLE))


def extract_learnings(store: Store, facts: Mapping[str, Any], inbox: Inbox | None = None) -> list[MemoryItem]:
    """Keep what a task taught as ``semantic`` items, in one commit; what is known already is not kept again.

    At most ``READ`` notes are read and ``MOST`` learnings kept; no occasion is raised.

    Args:
        store: where notes are, and where learnings go.
        facts: ``task`` and ``session``, names of which one may be missing, and ``outcome``, a text.
        inbox: where learnings are suggested, in place of being stored.

    Returns:
        The new items, none where nothing was learned, or it was only suggested.

    Raises:
        Conflict: files kept changing.
        ContentError, StorageIO: as ``Store.put``.
    """
    task, session = str(facts.get("task") or ""), str(facts.get("session") or "")
    notes = _notes(store, task, session)
    outcome = facts.get("outcome")
    if isinstance(outcome, str) and len(outcome.split()) >= _FEWEST_WORDS:
        notes.append(MemoryItem(outcome, "task_history", trust=Trust.AGENT.value))
    drafts = [draft for note in notes for draft in _drafts(note, task, session)]
    if inbox is not None:
        _suggest(store, drafts, task or session, inbox)
        return []
    for _ in range(_TRIES):
        try:
            return _kept(store, drafts, task or session)
        except Conflict:
            continue
    raise Conflict("what was learned keeps changing while it is written", hint="try again")


def _notes(store: Store, task: str, session: str) -> list[MemoryItem]:
    """What was noted in a task, oldest first; of a session whose notes name no task, all of it."""
    layers = frozenset({Layer.SHORT_TERM.value, Layer.EPISODIC.value})
    sessions = frozenset({session}) if session else frozenset()
    if not (task or session):
        return []
    found = [item for item in store.select(Query(layers=layers, sessions=sessions, limit=READ)) if _of_itself(item)]
    of_task = [item for item in found if task and task in (item.origin.task, item.metadata.get("task"))]
    return (of_task or (found if session else []))[::-1]


def _of_itself(item: MemoryItem) -> bool:
    return not reason_in(item.metadata) and "learned_from" not in item.metadata


def _drafts(note: MemoryItem, task: str, session: str) -> Iterator[MemoryItem]:
    for sentence in _sentences(note.content):
        key = sha256(normalised(sentence).encode()).hexdigest()[:8]
        yield MemoryItem(
            sentence,
            "semantic",
            id=f"{slug(sentence) or 'learning'}-{key}",
            timestamp=note.timestamp,
            origin=Origin(agent=note.origin.agent, session=note.origin.session or session, task=task),
            trust=(Trust.TOOL if note.trust == Trust.TOOL.value else Trust.AGENT).value,
            importance=note.importance,
            links=(Link(to=note.id, relation="derived_from"),) if note.id else (),
            context=dict(note.context),
            metadata={"learned_from": task or session},
        )


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text[: _LONGEST * READ]):
        plain = sentence.strip().lstrip("-*# \t").strip()
        if len(plain) <= _LONGEST and len(plain.split()) >= _FEWEST_WORDS and telling(plain):
            yield plain


def _kept(store: Store, drafts: list[MemoryItem], name: str) -> list[MemoryItem]:
    """Store those drafts that say something new."""
    kept: list[MemoryItem] = []
    with store.batch(f"Learn from {name[:80]}", source=_SOURCE) as batch:
        for draft in drafts:
            if len(kept) == MOST:
                break
            if _is_known(store, draft, kept):
                continue
            try:
                kept.append(batch.put(draft, expected=""))
            except IdExists:
                continue
    return kept


def _suggest(store: Store, drafts: list[MemoryItem], name: str, inbox: Inbox) -> None:
    """Suggest those drafts that say something new."""
    fresh: list[MemoryItem] = []
    for draft in drafts:
        if len(fresh) < MOST and not reason_in(draft.metadata) and not _is_known(store, draft, fresh):
            fresh.append(draft)
    told, now = f"learned in {name}", utc_now()
    inbox.add(
        Suggestion(item=one, source=Source.LESSON, reason=told, made=now, evidence=tuple(link.to for link in one.links))
        for one in fresh
    )


def _is_known(store: Store, draft: MemoryItem, kept: list[MemoryItem]) -> bool:
    shape = Shape(draft.content)
    query = Query(text=draft.content, types=frozenset({"semantic"}), limit=_COMPARED)
    return any(alike(shape, Shape(item.content), SAME) >= SAME for item in [*kept, *store.select(query)])
