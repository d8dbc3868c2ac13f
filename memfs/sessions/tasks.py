"""Find the todos and tasks that an agent completed, and how long they took.

The lists of every known tool and event are read. A task that two of them report counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memfs.dataclass import dataclass, replace
from memfs.intake.episode_item import clean_text
from memfs.model.time import time_in
from memfs.recall.cues import spoken
from memfs.recall.similarity import normalised
from memfs.sessions.event import TASK_DONE, TOOL_DONE, SessionEvent
from memfs.sessions.spool import SessionNotes, digest

_COMPLETED, _WORKED_ON = "completed", "in_progress"
_LONGEST = 500
_MOST_TODOS = 200
_TABLE = "tasks"


@dataclass(frozen=True, slots=True)
class Task:
    """A task that became completed.

    Attributes:
        text: what was to be done.
        sort: the sort of work, such as ``bugfix``.
        minutes: how long it was worked on; None where it is unknown when that began.
        steps: what was done meanwhile, in words.
        more: what else was reported of it.
    """

    text: str
    sort: str
    minutes: float | None = None
    steps: tuple[str, ...] = ()
    more: str = ""


def completed(event: SessionEvent, notes: SessionNotes) -> list[Task]:
    """The tasks that became completed by an event; the notes learn of the stage of each."""
    if event.name == TASK_DONE:
        return list(_task_done(event, notes))
    if event.name != TOOL_DONE:
        return []
    if event.tool == "TodoWrite":
        return list(_todos(event, notes))
    if event.tool == "TaskCreate":
        _created(event, notes)
    return list(_updated(event, notes)) if event.tool == "TaskUpdate" else []


def sort_of(text: str) -> str:
    """The sort of work that a task's words tell; ``task`` where they tell none."""
    found = (
        (match.start(), name)
        for language in spoken(_TABLE)
        for name in language.names(_TABLE)
        if (match := language.pattern(f"{_TABLE}.{name}", r"\b{}\b").search(text))
    )
    return min(found, default=(0, "task"))[1]


def _todos(event: SessionEvent, notes: SessionNotes) -> Iterator[Task]:
    """TodoWrite tells the whole list each time: what is completed there and was not before became so."""
    earlier = dict(_stages(event.mapping("tool_response").get("oldTodos")))
    for text, stage in _stages(event.mapping("tool_input").get("todos")):
        key = digest(event.text("agent_id"), normalised(text))
        before, since = [*notes.todos.get(key, [earlier.get(text, "")]), "", ""][:2]
        if stage == _WORKED_ON and before != _WORKED_ON:
            since = event.moment
        notes.todos.pop(key, None)
        notes.todos[key] = [stage, since]
        if stage == _COMPLETED and before != _COMPLETED:
            yield from _done(text, since, event, notes)


def _stages(listed: Any) -> Iterator[tuple[str, str]]:
    """The todos of a list, each with its stage."""
    for todo in listed[:_MOST_TODOS] if isinstance(listed, list) else ():
        if not isinstance(todo, Mapping):
            continue
        text, stage = _text(todo.get("content") or todo.get("subject")), todo.get("status")
        if text and isinstance(stage, str):
            yield text, stage


def _created(event: SessionEvent, notes: SessionNotes) -> None:
    given, answer = event.mapping("tool_input"), event.mapping("tool_response")
    task = answer.get("task")
    known = task if isinstance(task, Mapping) else answer
    key = _id(known.get("id") or known.get("taskId"))
    if key and (text := _text(given.get("subject") or given.get("description"))):
        notes.tasks[key] = [_kept(text), ""]


def _updated(event: SessionEvent, notes: SessionNotes) -> Iterator[Task]:
    given = event.mapping("tool_input")
    key = _id(given.get("taskId") or given.get("task_id"))
    if not key or event.mapping("tool_response").get("success") is False:  # refused, as by somebody's own hook
        return
    text, since = [*notes.tasks.get(key, []), "", ""][:2]
    text = _text(given.get("subject")) or text
    if given.get("status") == _WORKED_ON:
        since = event.moment
    notes.tasks[key] = [_kept(text), since]
    if given.get("status") == _COMPLETED and text:
        yield from _done(text, since, event, notes, key)


def _kept(text: str) -> str:
    """What is noted of a task until it is done: no secret."""
    return _text(clean_text(text, _LONGEST))


def _task_done(event: SessionEvent, notes: SessionNotes) -> Iterator[Task]:
    key = _id(event.fields.get("task_id"))
    known, since = [*notes.tasks.get(key, []), "", ""][:2]
    text = _text(event.text("task_subject")) or known or _text(event.text("task_description"))
    if text:
        for task in _done(text, since, event, notes, key, more=event.text("task_description")):
            yield _as_told(task, event)


def _done(
    text: str, since: str, event: SessionEvent, notes: SessionNotes, key: str = "", more: str = ""
) -> Iterator[Task]:
    """The task, unless another event reported it as done already."""
    names = [digest("text", normalised(text)), *([digest("id", key)] if key else [])]
    known = any(name in notes.done for name in names)
    for name in names:
        notes.done[name] = event.moment
    if known:
        return
    steps, notes.steps = tuple(notes.steps), []
    minutes = _minutes(since, event.moment)
    extra = _text(more) if normalised(more) != normalised(text) else ""
    yield Task(text, sort_of(text), minutes, steps, extra)


def _as_told(task: Task, event: SessionEvent) -> Task:
    """The task with what an event says of it that is otherwise worked out: its sort, how long it took, its steps."""
    minutes, listed = event.fields.get("duration_minutes"), event.fields.get("steps")
    counted = isinstance(minutes, int | float) and not isinstance(minutes, bool) and minutes >= 0
    steps = tuple(step for one in listed[:_MOST_TODOS] if (step := _text(one))) if isinstance(listed, list) else ()
    return replace(
        task,
        sort=_text(event.fields.get("task_type"))[:50] or task.sort,
        minutes=float(minutes) if counted and minutes is not None else task.minutes,
        steps=steps or task.steps,
    )


def _minutes(since: str, until: str) -> float | None:
    begin, end = time_in(since), time_in(until)
    if begin is None or end is None or end < begin:
        return None
    return round((end - begin).total_seconds() / 60, 1)


def _text(value: Any) -> str:
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""


def _id(value: Any) -> str:
    return str(value)[:100] if isinstance(value, str | int) and not isinstance(value, bool) else ""
