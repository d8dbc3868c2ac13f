"""Extract everything that a run of a session's events says, before any of it is stored.

An event that two hooks report counts once. The session's notes are updated with what later events depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memfs.dataclass import dataclass, field, replace
from memfs.intake.episode_item import clean_text
from memfs.model import MemoryItem
from memfs.model.episode import Episode, Outcome, StateSnapshot
from memfs.model.ids import slug
from memfs.model.time import time_in
from memfs.recall.similarity import normalised
from memfs.sessions import session_items, tasks, tool_steps
from memfs.sessions.event import PROMPT, SESSION_END, STOP, SUBAGENT_STOP, TOOL_DONE, TOOL_FAILED, SessionEvent
from memfs.sessions.session_items import Judgement, MessageJudge, by_person, note, own_words, reports
from memfs.sessions.spool import PendingEvent, SessionNotes, digest

Warned = Callable[[StateSnapshot], tuple[str, ...]]
_TWICE_SECONDS = 10.0
_MOST_EPISODES = 100
_MOST_STEPS = 12
_STEP_LENGTH = 160


@dataclass(slots=True)
class Heard:
    """What some events say.

    Attributes:
        items: new items, by id.
        done: the items of tasks that were completed, by id.
        episodes: what happened and teaches something.
        corrections: sentences in which a person corrects the agent, or says how things are done, each with its event.
        reports: sentences in which an agent reports something as done, each with its event.
        typed: the prompts, as they were typed.
    """

    items: dict[str, MemoryItem] = field(default_factory=dict)
    done: dict[str, MemoryItem] = field(default_factory=dict)
    episodes: list[Episode] = field(default_factory=list)
    corrections: list[tuple[str, SessionEvent]] = field(default_factory=list)
    reports: list[tuple[str, SessionEvent]] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)


def hear(events: Sequence[PendingEvent], notes: SessionNotes, root: Path, warned: Warned, judge: MessageJudge) -> Heard:
    """What events say; the notes learn what the next ones have to know.

    Args:
        root: the folder from which files are named.
        warned: tells which items a situation was warned with.
        judge: says what of a person's messages is kept.
    """
    heard = Heard()
    judged = _judged(events, judge)
    for one in events:
        notes.upto, notes.last = one.end, one.key
        event = one.event
        if _heard_before(event, notes):
            continue
        notes.session, notes.heard, notes.ended = event.session, event.moment, event.name == SESSION_END
        if event.name == PROMPT:
            _prompt(event, one.key, heard, judged)
        elif event.name in (STOP, SUBAGENT_STOP):
            heard.items |= {item.id: item for item in session_items.of_message(event)}
            heard.reports += [(one, event) for one in reports(event.text("last_assistant_message"))]
        else:
            _work(event, one.key, notes, root, heard, warned)
    return heard


def _judged(events: Sequence[PendingEvent], judge: MessageJudge) -> dict[str, Judgement]:
    """What is kept of each message of a person, all judged at once; of one that a program wrote, cues tell."""
    said = [(own_words(one.event), by_person(one.event)) for one in events if one.event.name == PROMPT]
    judgements: dict[str, Judgement] = {}
    for judging, persons in ((MessageJudge(), False), (judge, True)):
        messages = list(dict.fromkeys(text for text, person in said if text and person is persons and not note(text)))
        judgements |= dict(zip(messages, judging.judge(messages), strict=True))
    return judgements


def _prompt(event: SessionEvent, key: str, heard: Heard, judged: Mapping[str, Judgement]) -> None:
    heard.typed.append(event.text("prompt"))
    said = own_words(event)
    if not said:
        return
    if kept := note(said):
        item = session_items.of_note(kept, event)
        heard.items[item.id] = item
        return
    heard.items |= {item.id: item for item in session_items.of_prompt(event, key, judged[said])}
    if by_person(event):
        heard.corrections += [(one, event) for one in judged[said].corrections]


def _work(event: SessionEvent, key: str, notes: SessionNotes, root: Path, heard: Heard, warned: Warned) -> None:
    for task in tasks.completed(event, notes):
        item = session_items.of_task(task, event, key)
        heard.done[item.id] = item
    if event.name in (TOOL_DONE, TOOL_FAILED) and tool_steps.teaches(event):
        episode = _episode(event, notes, root, warned)
        if episode is not None and notes.episodes < _MOST_EPISODES:
            notes.episodes += 1
            named = slug(clean_text(episode.action.description, _STEP_LENGTH)) or "step"  # no secret in a file's name
            heard.episodes.append(replace(episode, id=f"{named}-{key[:10]}"))


def _episode(event: SessionEvent, notes: SessionNotes, root: Path, warned: Warned) -> Episode | None:
    """What a tool's use teaches: that something fails, and that it works after a failure or a warning."""
    thing = digest(tool_steps.same_thing(event, root))
    error = tool_steps.failure(event)
    state, action = tool_steps.situation_of(event, root), tool_steps.action_of(event, root)
    moment = time_in(event.moment)
    if error:
        how = digest(" ".join(error.split())[:400])
        if notes.failures.get(thing) == how:  # the same once more
            return None
        notes.failures[thing] = how
        return Episode.create(state, action, Outcome.FAILURE, error, timestamp=moment, warned=warned(state))
    if event.name == TOOL_FAILED:  # a person stopped it
        return None
    _note_step(action.description, notes)
    helped = warned(state)
    if not helped and not notes.failures.get(thing):
        return None
    notes.failures[thing] = ""
    return Episode.create(state, action, Outcome.SUCCESS, timestamp=moment, warned=helped)


def _note_step(description: str, notes: SessionNotes) -> None:
    step = " ".join(clean_text(description, _STEP_LENGTH).split())
    if step and step not in notes.steps:
        notes.steps = [*notes.steps, step][-_MOST_STEPS:]


def _heard_before(event: SessionEvent, notes: SessionNotes) -> bool:
    """Whether the same was reported a moment ago: a program runs the hooks of each of its settings files."""
    known = event.text("prompt_id" if event.name == PROMPT else "tool_use_id")
    fields = sorted(event.fields.items(), key=lambda entry: entry[0])
    said = f"{known} {event.text('prompt')} {event.fields.get('tool_input')!r}" if known else normalised(repr(fields))
    key = digest(event.name, event.agent, event.tool, said)
    before, now = time_in(notes.seen.pop(key, "")), time_in(event.moment)
    notes.seen[key] = event.moment
    return before is not None and now is not None and abs((now - before).total_seconds()) <= _TWICE_SECONDS
