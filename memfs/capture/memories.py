"""Memories: the items that a session's events become (seed 003, C6).

Owns kind, id, origin, trust and facts of each. Ids follow from what is said, so that an event that is taken twice makes
nothing twice. Which events say something, the modules beside it decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from memfs.capture.event import SessionEvent
from memfs.capture.judge import Judgement
from memfs.capture.notes import digest
from memfs.capture.prompts import by_person, intention, own_words, priority
from memfs.capture.statements import Statement, statements
from memfs.capture.tasks import Task
from memfs.files.textguard import shown
from memfs.index.analyzer import terms
from memfs.model import MemoryItem, Origin
from memfs.model.ids import slug
from memfs.model.item import Trust
from memfs.model.time import time_in
from memfs.pipeline.corrections import corrections
from memfs.pipeline.episodeitem import shortened
from memfs.pipeline.likeness import normalised
from memfs.pipeline.trivial import TrivialFilter

WORKING, PROSPECTIVE, PROCEDURAL, EPISODIC, SEMANTIC = "working", "prospective", "procedural", "episodic", "semantic"
PREFERENCE = "preference"
PENDING, DONE = "pending", "done"
_LONGEST = 8_000
_LONGEST_NAME = 64
_MOST_LISTED = 50
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,16}[ -/]{0,4}[@-~]")
_INTENT_WORDS = frozenset(terms("todo to do later need needs plan planning please remember should must want i we let"))
_MATCHED, _TOLD, _FEWEST = 0.75, 0.6, 2
_REPORTED, _FEWEST_REPORTED = 0.8, 3
REPORT = "report"


def of_prompt(event: SessionEvent, key: str, judged: Judgement) -> list[MemoryItem]:
    """What a person's prompt leaves: what the session is about, and what is to be done later with its priority.

    Args:
        key: a digest of the event.
        judged: what of it is kept.
    """
    said = _plain(own_words(event))
    if not said or TrivialFilter().is_trivial(said):
        return []
    if judged.corrections and not judged.rest:  # then it is kept as preferences, and nothing else is said
        return []
    asked = _asked(said, event, key)
    facts = [_stated(one, event, Trust.HUMAN) for one in judged.facts] if by_person(event) else []
    return [asked, *([_intended(asked, _plain(judged.later))] if judged.later else []), *facts]


def of_note(text: str, event: SessionEvent) -> MemoryItem:
    """What a person asked to be kept, as it stands: a preference where it says how things are to be done, something to
    do where it says so, else knowledge.
    """
    said = shown(_COLOURS.sub("", text)).strip()
    trust = Trust.HUMAN if by_person(event) else Trust.AGENT
    kept = _stated(Statement(said, False, "note"), event, trust)
    kept = kept.replace(origin=replace(kept.origin, role="user"))
    if corrections(said):
        return kept.replace(memory_type=PREFERENCE)
    return _intended(kept, said) if intention(said) else kept


def of_message(event: SessionEvent) -> list[MemoryItem]:
    """What an agent's last message of a turn leaves: decisions as events, and what it states as knowledge."""
    said = statements(_plain(event.text("last_assistant_message")))
    listed = [*_listed(event, "events", "type"), *_listed(event, "concepts", "category")]
    return [_stated(one, event) for one in (*said, *listed)]


def of_task(task: Task, event: SessionEvent, key: str) -> MemoryItem:
    """How a task was done: its words and the steps that were seen meanwhile."""
    lines = [task.text, *([task.more] if task.more else [])]
    if task.steps:
        lines += ["Steps:", *(f"{number}. {step}" for number, step in enumerate(task.steps, 1))]
    facts: dict[str, Any] = {"task_type": task.sort, "success": True}
    if task.minutes is not None:
        facts["duration_minutes"] = task.minutes
    if event.session:
        facts["session_id"] = event.session
    return MemoryItem(
        _plain("\n".join(lines)),
        PROCEDURAL,
        id=_stable("", task.text),
        timestamp=time_in(event.moment),
        origin=replace(_origin(event), role="assistant", task=task.text[:200]),
        trust=Trust.AGENT.value,
        metadata={**facts, "told_by": key},
    )


def again(known: MemoryItem, told: MemoryItem) -> MemoryItem:
    """A task's item after the task was done once more: its words stay as they are."""
    if known.metadata.get("told_by") == told.metadata["told_by"]:
        return known
    times = known.metadata.get("times")
    count = times + 1 if isinstance(times, int) and not isinstance(times, bool) else 2
    return known.replace(metadata={**known.metadata, **told.metadata, "times": count})


def finished(task: MemoryItem, intended: Iterable[MemoryItem]) -> list[MemoryItem]:
    """The pending intentions that a task clearly carries out: most words of each stand in the other."""
    did = _telling(task.content.partition("\n")[0])
    found = []
    for item in intended:
        meant = _telling(item.content)
        both = len(did & meant)
        if both >= _FEWEST and both >= _MATCHED * len(meant) and both >= _TOLD * len(did):
            found.append(item)
    return found


def reported(sentence: str, intended: Iterable[MemoryItem]) -> list[MemoryItem]:
    """The intentions that a sentence reports as done: it names nearly all that was meant, and may tell more."""
    did = _telling(sentence)
    meant = ((item, _telling(item.content)) for item in intended)
    return [item for item, words in meant if len(words & did) >= max(_FEWEST_REPORTED, _REPORTED * len(words))]


def closed(item: MemoryItem, by: str) -> MemoryItem:
    """An intention that was carried out. ``by``: the id of the task's item, or ``report``."""
    return item.replace(status=DONE, metadata={**item.metadata, "done_by": by})


def _asked(said: str, event: SessionEvent, key: str) -> MemoryItem:
    return MemoryItem(
        said,
        WORKING,
        id=f"{slug(said) or 'prompt'}-{key[:10]}",
        timestamp=time_in(event.moment),
        origin=replace(_origin(event), role="user"),
        trust=(Trust.HUMAN if by_person(event) else Trust.AGENT).value,
        metadata={"session_id": event.session} if event.session else {},
    )


def _intended(asked: MemoryItem, later: str) -> MemoryItem:
    return asked.replace(
        content=later,
        memory_type=PROSPECTIVE,
        id=_stable("todo", later),
        status=PENDING,
        metadata={**asked.metadata, "priority": priority(later)},
    )


def _listed(event: SessionEvent, name: str, sort: str) -> Iterator[Statement]:
    """What somebody has found in a session already: ``{"description", "type"}``."""
    listed = event.fields.get(name)
    for one in listed[:_MOST_LISTED] if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and isinstance(told := one.get("description"), str) and (text := _plain(told)):
            yield Statement(text, name == "events", str(one.get(sort) or "other")[:50])


def _stated(one: Statement, event: SessionEvent, trust: Trust = Trust.AGENT) -> MemoryItem:
    fact = {"decision_type" if one.decides else "category": one.sort}
    return MemoryItem(
        one.text,
        EPISODIC if one.decides else SEMANTIC,
        id=_stable("", one.text),
        timestamp=time_in(event.moment),
        origin=replace(_origin(event), role="user" if trust is Trust.HUMAN else "assistant"),
        trust=trust.value,
        metadata={**fact, **({"session_id": event.session} if event.session else {})},
    )


def _origin(event: SessionEvent) -> Origin:
    mate = " ".join(event.text("teammate_name").split())[:_LONGEST_NAME]
    return Origin(agent=event.agent or mate or event.client, session=event.session)


def _stable(prefix: str, text: str) -> str:
    named = "-".join(filter(None, (prefix, slug(text) or "memory")))
    return f"{named}-{digest(normalised(text), '')[:8]}"


def _plain(text: str) -> str:
    """A text as an item can hold it: no terminal colours, hidden characters shown, not too long."""
    return shortened(shown(_COLOURS.sub("", text)).strip(), _LONGEST)


def _telling(text: str) -> set[str]:
    return set(terms(text)) - _INTENT_WORDS
