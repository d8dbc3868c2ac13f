"""Functions to call at the events of an agent's session, and to consolidate its working memory.

They make the same memories as the events that an agent's program reports through ``memfs hook``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memfs.errors import SchemaInvalid
from memfs.facades.open_workspaces import PathName
from memfs.facades.pipelines import MemoryCoordinator
from memfs.learning.learner import as_program
from memfs.sessions.event import PROMPT, SESSION_END, STOP, TASK_DONE, SessionEvent, bounded
from memfs.sessions.respond import MOST, Reminder, pending
from memfs.sessions.spool import SessionLocation, Spool, find_place
from memfs.sessions.store import Drain, DrainResult
from memfs.workspace import Workspace

if TYPE_CHECKING:
    from memfs.facades.pipelines import Memory

CLIENT = "hooks"
HEADING = "Pending tasks:"
_TEXTS = ("last_assistant_message", "summary")


def on_user_prompt_submit(
    prompt: str, context: Mapping[str, Any] | None = None, *, path: PathName = None
) -> DrainResult:
    """Keep what a person asks: working memory of the session; what is to be done later; what corrects the agent.

    Args:
        prompt: the message.
        context: ``session_id``, ``agent`` and ``cwd``, as far as they are known.
        path: the workspace, as for ``MemoryCoordinator``; None means the project's private memory.

    Returns:
        The ids of what was stored, and why something was not: ``stored``, ``refused``.

    Raises:
        SchemaInvalid: an argument is of the wrong sort.
        StorageIO, LockTimeout: nothing could be kept.
    """
    return _told(path, [_event(PROMPT, context, prompt=_text("prompt", prompt))])


def on_todo_write_complete(
    todo_item: Mapping[str, Any], context: Mapping[str, Any] | None = None, *, path: PathName = None
) -> DrainResult:
    """Keep how a todo was done once its ``status`` is ``completed``, and close the intention that it carries out.

    Args:
        todo_item: ``content`` and ``status``; ``task_type``, ``duration`` in minutes and ``steps``, a list of texts,
            where they are known.
        context, path: as for ``on_user_prompt_submit``.

    Returns, Raises:
        As ``on_user_prompt_submit``.
    """
    todo = _mapping("todo_item", todo_item)
    if todo.get("status") != "completed":
        return DrainResult()
    named = next((todo[key] for key in ("content", "subject", "task", "title", "description") if todo.get(key)), None)
    told = {
        "task_subject": _text("todo_item.content", named),
        "task_id": str(todo.get("id") or ""),
        "task_type": todo.get("task_type"),
        "duration_minutes": todo.get("duration", todo.get("duration_minutes")),
        "steps": todo.get("steps"),
    }
    return _told(path, [_event(TASK_DONE, context, **told)])


def on_session_stop(session_data: Mapping[str, Any], *, path: PathName = None) -> DrainResult:
    """Keep what a session decided (episodic) and found out (semantic), and consolidate its working memory.

    Args:
        session_data: ``session_id``; what the agent said: ``last_assistant_message``, ``summary``, or ``messages``, a
            list of ``{"role", "content"}``; ``events``, a list of ``{"description", "type"}``, and ``concepts``, of
            ``{"description", "category"}``, where somebody has found them already.
        path: as for ``on_user_prompt_submit``.

    Returns, Raises:
        As ``on_user_prompt_submit``.
    """
    data = _mapping("session_data", session_data)
    explicit = {key: data[key] for key in ("events", "concepts") if isinstance(data.get(key), list | tuple)}
    events = [_event(STOP, data, last_assistant_message=text) for text in _said(data)]
    events += [_event(STOP, data, **explicit)] if explicit else []
    return _told(path, [*events, _event(SESSION_END, data, reason="other")])


def on_session_start(
    *, path: PathName = None, limit: int = MOST, write: Callable[[str], object] | None = print
) -> tuple[Reminder, ...]:
    """Remind of what is still to be done: ``[PRIORITY] text``, the most urgent first, medium where nobody said.

    Args:
        path: as for ``on_user_prompt_submit``.
        limit: so many reminders at most.
        write: is given each line, as a program takes what its hook prints; None: nothing is written.

    Returns:
        The reminders.
    """
    found = pending(MemoryCoordinator(find_place().read if path is None else path).workspace, limit)
    if found and write is not None:
        write(HEADING)
        for one in found:
            write(f"  {one}")
    return found


def consolidate_session_memory(session_id: str, *, path: PathName = None) -> list[Memory]:
    """Keep what matters of a session's working memory as semantic memory, and clear the rest of it.

    Returns:
        What was kept; a second call finds nothing.

    Raises:
        QueryInvalid: no session is named.
        Conflict, StorageIO: nothing was changed.
    """
    workspace, place = _workspace(path)
    if session_id:
        with as_program():
            Drain(workspace, place.folder if place else None).run(session_id)
    return MemoryCoordinator(workspace=workspace).end_session(session_id)


# -- inside -------------------------------------------------------------------------------------------------------
def _told(path: PathName, events: list[SessionEvent]) -> DrainResult:
    """Keep events, and make memories of them at once."""
    workspace, place = _workspace(path)
    spool = Spool(workspace.repository.state)
    for event in events:
        spool.append(event)
    with as_program():
        return Drain(workspace, place.folder if place else None).run(bounded(events[-1]).session)


def _workspace(path: PathName) -> tuple[Workspace, SessionLocation | None]:
    """The workspace at a path, else the project's private memory, with its place."""
    place = find_place() if path is None else None
    return MemoryCoordinator(path if place is None else place.root).workspace, place


def _event(name: str, context: Mapping[str, Any] | None, **fields: Any) -> SessionEvent:
    known = _mapping("context", context or {})
    session, cwd, agent = (known.get(key) for key in ("session_id", "cwd", "agent"))
    told = {key: value for key, value in fields.items() if value is not None and value != ""}
    return SessionEvent(
        name,
        session=session if isinstance(session, str) else "",
        cwd=cwd if isinstance(cwd, str) else os.getcwd(),
        client=CLIENT,
        fields={**told, **({"agent_type": agent} if isinstance(agent, str) else {})},
    )


def _said(data: Mapping[str, Any]) -> list[str]:
    """What the agent said, each text once."""
    found: list[Any] = [data.get(key) for key in _TEXTS]
    messages = data.get("messages")
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content")
            parts = content if isinstance(content, list) else [content]
            found += [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return list(dict.fromkeys(text for text in found if isinstance(text, str) and text.strip()))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise SchemaInvalid(f"expected text, got {ascii(value)[:60]}", field=name)
    return value


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SchemaInvalid(f"expected a mapping, got {ascii(value)[:60]}", field=name)
    return value
