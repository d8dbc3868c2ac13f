"""Tasks in flight: which of them have their final output by now, so that a recovery does not hand them out again (S7).

Owns how a task names itself and its agent, and which output completes it. Where outputs lie and how they are read is
the caller's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from memfs.errors import MemfsError
from memfs.model.statepaths import decode_name, document_kind, encode_name, task_and_turn
from memfs.model.time import time_in

_IDS = ("task_id", "id", "task")
_OWNERS = ("component", "agent", "agent_type", "agent_name", "assigned_to", "assigned_agent", "worker")


def owners(task: Any) -> set[str]:
    """The agents and components that a task names as those it belongs to; none where it belongs to anyone."""
    if not isinstance(task, Mapping):
        return set()
    return {task[key] for key in _OWNERS if isinstance(task.get(key), str)}


def task_id(task: Any) -> str:
    """A task's id, "" where it has none."""
    named = next((task[key] for key in _IDS if key in task), "") if isinstance(task, Mapping) else task
    return str(named) if isinstance(named, str | int) and not isinstance(named, bool) else ""


def is_final(output: Mapping[str, Any]) -> bool:
    """Whether an output ends its task: it does unless it names a continuation token, under which the task goes on.

    An ``internal_state`` alone is what the agent knows between its tasks, and leaves none of them undone.
    """
    data = output.get("state_data")
    return not isinstance(data, Mapping) or not data.get("continuation_token")


def finished(
    tasks: Sequence[Any], paths: Iterable[str], read: Callable[[str], bytes], after: datetime | None = None
) -> list[int]:
    """Which tasks have their final output, by their place in the list.

    An output completes the task of its id, of an agent that the task names, or of any where it names none. One that
    cannot be read completes nothing: a task that is done twice is better than one that is never done.

    Args:
        tasks: as ``in_flight_tasks`` has them.
        paths: where outputs may lie, other documents among them.
        read: the bytes of one of them.
        after: only outputs of a later time count.
    """
    named: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        if name := task_id(task):
            named.setdefault(decode_name(encode_name(name)), []).append(place)
    found: set[int] = set()
    for path in paths if named else ():
        if document_kind(path) != "agent_output":
            continue
        places = [place for place in named.get(task_and_turn(path)[0], ()) if place not in found]
        if places and (output := _parsed(read, path)) and is_final(output) and _is_later(output, after):
            found.update(place for place in places if _is_of(output, tasks[place]))
    return sorted(found)


def _is_of(output: Mapping[str, Any], task: Any) -> bool:
    own = {name.casefold() for name in owners(task)}
    agent = str(output.get("agent_type")).casefold()
    return task_id(task) == output.get("task_id") and (not own or agent in own)


def _is_later(output: Mapping[str, Any], after: datetime | None) -> bool:
    moment = time_in(output.get("timestamp")) if after is not None else None
    return after is None or (moment is not None and moment > after)


def _parsed(read: Callable[[str], bytes], path: str) -> Mapping[str, Any]:
    with suppress(MemfsError, FileNotFoundError, ValueError, RecursionError):
        output = json.loads(read(path))
        return output if isinstance(output, dict) else {}
    return {}
