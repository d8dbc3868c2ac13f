"""Keep the state in which an agent leaves a task, under a token to resume with.

A token that expired, or is unknown, is refused with a reason.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memfs.config import SystemConfig, read_system_config
from memfs.errors import MemfsError, SchemaInvalid, TokenInvalid
from memfs.format.field_merge import equal
from memfs.model import state_paths
from memfs.model.shape import plain
from memfs.model.state_query import StateQuery
from memfs.model.time import format_time, given_time, parse_time
from memfs.state.recovery_points import is_final
from memfs.store.parts import Parts
from memfs.store.state_files import DocumentChange, State
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.state.iterations import Iterations
    from memfs.state.reader import StateReader

EXPIRES_HOURS = SystemConfig().expires_hours
_SHAPE = re.compile(r"ct-([0-9]{1,12})-[0-9a-f]{32}")
_LOOKED_AT = 16
_SHOWN = 60


class Continuations:
    """The continuation tokens of one workspace. May be used from several threads, and by several processes at once.

    A token is taken until it expires, or newer state or a final output of the same agent and task takes its place; to
    resume it changes nothing, so that a crash right after loses nothing.
    """

    def __init__(self, reader: StateReader, iterations: Iterations, clock: Callable[[], datetime]) -> None:
        self._files = reader.files
        self._reader = reader
        self._iterations = iterations
        self._clock = clock

    def save(self, agent: str, task: str, state: Any, expires: datetime | timedelta | str | None = None) -> str:
        """Keep an agent's state within a task, in the current iteration.

        Args:
            state: anything that JSON can hold.
            expires: when the token ends, or after how long; by default as ``continuation.expires_hours`` of
                ``system_config`` says.

        Returns:
            The token, durable on return. Older tokens of this agent and task are superseded.

        Raises:
            SchemaInvalid, SecretDetected: the state cannot be kept; with the field.
            StorageIO: nothing was kept.
        """
        return retry_on_conflict(lambda: self._saved(self._iterations.current(), agent, task, state, expires))

    def again(self, iteration: int, agent: str, task: str, state: Any) -> str:
        """The token of a state that is handed over again; a new one where others have taken its place since.

        Raises:
            Conflict: another state of the task was kept at the same moment.
        """
        wanted = plain(state)
        for one in self._kept(agent, task):
            if not one.values.get("superseded_by") and equal(one.values.get("state"), wanted):
                return str(one.values["token"])
        return self._saved(iteration, agent, task, state)

    def _saved(
        self, iteration: int, agent: str, task: str, state: Any, expires: datetime | timedelta | str | None = None
    ) -> str:
        token, changes = self.prepare(iteration, agent, task, state, expires)
        self._files.write(changes, f"Keep the state of {agent} within {task}")
        return token

    def prepare(
        self, iteration: int, agent: str, task: str, state: Any, expires: datetime | timedelta | str | None = None
    ) -> tuple[str, list[DocumentChange]]:
        """A new token, and the changes that make it the one to resume: to be written as one batch.

        Raises:
            SchemaInvalid: agent, task or time is none.
        """
        for name, value in (("agent", agent), ("task_id", task)):
            if not isinstance(value, str) or not value:
                raise SchemaInvalid("a state belongs to an agent's task", field=name, hint="give a name")
        now = self._clock()
        token = f"ct-{iteration}-{secrets.token_hex(16)}"
        values = {
            "token": token,
            "agent": agent,
            "task_id": task,
            "state": plain(state),
            "created": format_time(now),
            "expires": self._end(expires, now),
        }
        made = DocumentChange(state_paths.token_path(iteration, token), values, "")
        return token, [made, *self.superseding(agent, task, token)]

    def superseding(self, agent: str, task: str, by: str) -> list[DocumentChange]:
        """The changes that end the tokens of an agent's task: ``by`` a newer token, or the path of a final output."""
        return [
            DocumentChange(one.path, {**one.values, "superseded_by": by}, one.sha256)
            for one in self._kept(agent, task)
            if not one.values.get("superseded_by")
        ]

    def resume(self, token: str) -> Any:
        """The state that was kept under a token, in this process or another. May be repeated.

        Raises:
            TokenInvalid: the token is none of memfs's, is not known, was superseded by newer state, was used up by the
                task's final output, or has expired; the message says which.
            ContentError, StorageIO: the state cannot be read.
        """
        match = _SHAPE.fullmatch(token) if isinstance(token, str) else None
        if match is None:
            raise TokenInvalid(
                f"continuation token {_shown(token)} is none that memfs gave out",
                hint="use the token that storing the state returned",
            )
        path = state_paths.token_path(int(match[1]), token)
        try:
            values = self._reader.load(path)
        except FileNotFoundError:
            values = {}
        if values.get("token") != token:
            raise TokenInvalid(
                f"continuation token {token} is unknown here", hint="is it from another workspace, or was it removed?"
            )
        self._refuse_ended(token, values, values.get("superseded_by") or self._overtaken_by(path, values))
        return values.get("state")

    def _overtaken_by(self, path: str, values: dict[str, Any]) -> str:
        """What took the place of a state that was in an archive, and could not be marked: as ``superseding``'s ``by``.

        Only what came in later iterations: what came before was marked while it lay in the tree.
        """
        if not self._reader.archived(path):
            return ""
        number, agent, task = state_paths.iteration_of(path) or 0, str(values.get("agent")), str(values.get("task_id"))
        of_task = StateQuery(agents=(agent,), tasks=(task,), newest=True)
        for row in self._reader.rows(replace(of_task, kinds=("continuation",))):
            if (row.facts.iteration or 0) > number:
                return row.facts.name
        for row in self._reader.rows(replace(of_task, kinds=("agent_output",), states=("",))):
            if (row.facts.iteration or 0) > number and is_final(self._reader.load(row)):
                return row.path
        return ""

    def _refuse_ended(self, token: str, values: dict[str, Any], by: Any) -> None:
        whose = f"task {values.get('task_id')!r} of {values.get('agent')!r}"
        if by and state_paths.document_kind(str(by)) == "agent_output":
            raise TokenInvalid(
                f"continuation token {token} was used up: {whose} has its final output", hint=f"read {by}"
            )
        if by:
            raise TokenInvalid(
                f"continuation token {token} was superseded by newer state of {whose}",
                hint="resume the token that storing the newer state returned",
            )
        expires = values.get("expires")
        if expires and parse_time(expires) <= self._clock():
            raise TokenInvalid(
                f"continuation token {token} expired on {expires}",
                hint="begin the task anew; continuation.expires_hours in system_config says how long tokens last",
            )

    def _kept(self, agent: str, task: str) -> list[State]:
        """The newest states of an agent's task that lie in the tree; what came before was superseded by them."""
        question = StateQuery(kinds=("continuation",), agents=(agent,), tasks=(task,), newest=True, limit=_LOOKED_AT)
        found = (self._files.find(row.path) for row in self._reader.recent(question) if not row.archive)
        return [state for state in found if state is not None]

    def _end(self, expires: datetime | timedelta | str | None, now: datetime) -> str | None:
        try:
            if expires is None:
                hours = expires_hours(self._reader.parts)
                return format_time(now + timedelta(hours=hours)) if hours > 0 else None
            return format_time(now + expires if isinstance(expires, timedelta) else given_time(expires))
        except (ValueError, OverflowError, TypeError, AttributeError):
            message = f"{_shown(expires)} is not a point in time"
            raise SchemaInvalid(message, field="expires", hint="write 2026-03-01T10:00:00Z") from None


def expires_hours(parts: Parts) -> float:
    """After how many hours tokens expire, as ``system_config`` says; the usual time where it cannot be read."""
    try:
        return read_system_config(parts.seen, parts.codec).expires_hours
    except MemfsError:  # 'memfs check' names it; agents go on
        return EXPIRES_HOURS


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
