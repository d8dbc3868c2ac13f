"""Record what a system hands over as state documents: updates, outputs, reviews and hypotheses, by iteration.

A call returns once its documents are durable. Writers of one document at once are merged. The state in which an agent
leaves a task is kept under a token to resume with; one that expired, or is unknown, is refused with a reason. Closing
an iteration writes its statistics into its header, ``system_state.json``.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from memfs.config import first_retention_policy
from memfs.config_names import RETENTION_POLICY
from memfs.dataclass import replace
from memfs.errors import Conflict, ContentError, IterationInvalid, MemfsError, SchemaInvalid, TokenInvalid
from memfs.format.field_merge import FieldMerge, equal, merge, records_of
from memfs.format.plain import refuse_hidden
from memfs.fs.lock import reset_on_fork
from memfs.model import state_paths
from memfs.model.ids import new_id
from memfs.model.shape import plain
from memfs.model.state_documents import (
    UPDATE_TYPES,
    Acknowledgement,
    AgentOutput,
    MetaReviewStorage,
    StateData,
    StateUpdate,
)
from memfs.model.state_facts import Iteration, StateQuery, is_final
from memfs.model.time import format_time, from_timestamp_ns, given_time, parse_time, time_in, utc_now
from memfs.resources import schema_text
from memfs.state.aggregates import HypothesisVersion
from memfs.state.metrics import sum_up
from memfs.state.reader import DocumentChange, State
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.state.reader import StateReader
    from memfs.store.parts import Fire


_NUMBERS = "give a number from 1 to 999,999,999,999; without one it is that after the newest there is"


class Iterations:
    """The iterations of one workspace. May be used from several threads, and by several processes at once."""

    def __init__(self, reader: StateReader, fire: Fire, clock: Callable[[], datetime] = utc_now) -> None:
        """
        Args:
            fire: raises ``iteration_closed`` and ``state_stored``.
            clock: says when a document without a timestamp was made.
        """
        self.reader, self.fire, self.clock = reader, fire, clock
        self._files = reader.files

    # -- opening and closing --------------------------------------------------------------------------------------
    def start(self, number: int | None = None) -> Iteration:
        """Open an iteration; one that is open already is given back as it is.

        Args:
            number: which; None is the one after the newest, open or closed.

        Returns:
            The iteration, durable on return.

        Raises:
            IterationInvalid: it was closed or archived, or the number is none.
            StorageIO, ContentError: it could not be stored; or its header, edited by hand, is invalid.
        """
        return retry_on_conflict(lambda: self._started(number))

    def close(self, number: int | None = None) -> Iteration:
        """Close an iteration and sum it up; one that is closed is summed up again, with what came late.

        Args:
            number: which; None is the newest that is open.

        Raises:
            IterationInvalid: there is no such iteration, or none is open, or it was archived.
            StorageIO, ContentError: as for ``start``.
        """
        iteration = self.reader.open_iteration() if number is None else number
        if iteration is None:
            raise IterationInvalid("no iteration is open", hint="'memfs state iteration start' opens one")
        return retry_on_conflict(lambda: self._end(iteration))

    def _started(self, number: int | None) -> Iteration:
        newest = self.reader.latest_iteration()
        iteration = (newest or 0) + 1 if number is None else number
        found = self.header(iteration)
        if iteration < 1:
            raise IterationInvalid(f"{iteration} is not the number of an iteration", field="iteration", hint=_NUMBERS)
        if found is None:
            self._refuse_archived(iteration)
            opened = self.clock()
            values = {"iteration": iteration, "status": "open", "opened": format_time(opened)}
            changes = [DocumentChange(_header_path(iteration), values, "")]
            if newest is None and not self._files.exists(RETENTION_POLICY):
                changes.append(DocumentChange(RETENTION_POLICY, first_retention_policy(), ""))
            self._files.write(changes, f"Start iteration {iteration}", critical=True)
            return Iteration(number=iteration, status="open", opened=parse_time(opened))
        if number is None:
            raise Conflict("another process has just started it", path=found.path)
        if found.values.get("status") == "closed":
            raise IterationInvalid(
                f"iteration {iteration} is closed",
                path=found.path,
                field="iteration",
                hint=f"start another: the next is {(newest or iteration) + 1}",
            )
        return self.show(iteration)

    def _end(self, number: int) -> Iteration:
        header = self.header(number)
        if header is None:
            raise self._missing(number)
        first = header.values.get("status") != "closed"
        closed = self.clock() if first else time_in(header.values.get("closed"))
        opened = time_in(header.values.get("opened"))
        found = self.reader.rows(StateQuery(iterations=(number,)))
        statistics = sum_up((row.facts for row in found), opened, closed)
        values = {**header.values, "status": "closed", "statistics": statistics}
        if closed is not None:
            values["closed"] = format_time(closed)
        if values != header.values:
            self._files.write(
                [DocumentChange(header.path, values, header.sha256)], f"Close iteration {number}", critical=True
            )
        self.fire("iteration_closed", {"iteration": number, "statistics": statistics})
        return self.show(number)

    # -- looking --------------------------------------------------------------------------------------------------
    def show(self, number: int) -> Iteration:
        """One iteration, from its archive where it is archived.

        Raises:
            IterationInvalid: there is no such iteration.
            ContentError, StorageIO: its header cannot be read.
        """
        try:
            statistics = self.reader.load(_header_path(number)).get("statistics")
        except FileNotFoundError:
            statistics = None
        found = next((one for one in self.reader.iterations() if one.number == number), None)
        if found is None:
            raise self._missing(number)
        given = statistics if isinstance(statistics, Mapping) else {}
        return replace(found, statistics=given, counts=self.reader.index.counts((number,)))

    def list(self) -> builtins.list[Iteration]:
        """Every iteration by number, archived ones too, without their statistics, which ``show`` has."""
        found = self.reader.iterations()  # looks at what changed, so it comes first
        counted = self.reader.index.counts_by_iteration()
        return [replace(one, counts=counted.get(one.number, {})) for one in found]

    def current(self) -> int:
        """The newest open iteration; where none is open, the one after the newest is started."""

        def attempt() -> int:
            found = self.reader.open_iteration()
            if found is not None:
                return found
            try:
                return self.start((self.reader.latest_iteration() or 0) + 1).number
            except IterationInvalid as error:  # another process has just started and closed that one
                raise Conflict(error.message, path=error.path) from error

        return retry_on_conflict(attempt)

    def into(self, number: int | None) -> int:
        """The iteration that a document goes into: the one asked for, started where it is the next, or the current.

        A closed one takes what comes late. The first one of all may have any number.

        Raises:
            IterationInvalid: it was archived, the number is none, or others would be left out before it.
        """
        if number is None:
            return self.current()
        if self.header(number) is not None:
            return number
        newest = self.reader.latest_iteration()
        if newest is not None and number > newest + 1:
            hint = (
                f"name one up to {newest + 1}; 'memfs state iteration start {number}' leaves the others out on purpose"
            )
            raise IterationInvalid(f"no iteration {number} was started", field="iteration", hint=hint)
        return self.start(number).number

    def header(self, number: int) -> State | None:
        """The header of an iteration in the tree, None where there is none.

        Raises:
            IterationInvalid: the number is none.
            ContentError, StorageIO: it cannot be read.
        """
        return self._files.find(_header_path(number))

    def _refuse_archived(self, number: int) -> None:
        if any(row.number == number and row.archive for row in self.reader.iterations()):
            raise IterationInvalid(
                f"iteration {number} is archived",
                field="iteration",
                hint=f"'memfs admin archive unpack {number}' brings it back",
            )

    def _missing(self, number: int) -> IterationInvalid:
        self._refuse_archived(number)
        newest = self.reader.latest_iteration()
        hint = "'memfs state iteration start' opens one" if newest is None else f"the newest is {newest}"
        return IterationInvalid(f"there is no iteration {number}", field="iteration", hint=hint)


def _header_path(number: int) -> str:
    try:
        return state_paths.system_state_path(number)
    except ValueError as error:
        raise IterationInvalid(str(error), field="iteration", hint=_NUMBERS) from None


_SHAPE = re.compile(r"ct-([0-9]{1,12})-[0-9a-f]{32}")
_SHOWN = 60


class Continuations:
    """The continuation tokens of one workspace. May be used from several threads, and by several processes at once.

    A token is taken until it expires, or newer state or a final output of the same agent and task takes its place; to
    resume it changes nothing, so that a crash right after loses nothing.
    """

    def __init__(self, iterations: Iterations) -> None:
        self._reader, self._clock = iterations.reader, iterations.clock
        self._files = iterations.reader.files
        self._iterations = iterations

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
        for continuation in self._kept(agent, task):
            if not continuation.values.get("superseded_by") and equal(continuation.values.get("state"), wanted):
                return str(continuation.values["token"])
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
                f"{_shown(token)} is not a continuation token",
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
        by = values.get("superseded_by") or self._overtaken_by(path, values)
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
                hint="start the task again; continuation.expires_hours in system_config says how long tokens last",
            )
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

    def _kept(self, agent: str, task: str) -> list[State]:
        """The newest states of an agent's task that are in the tree; what came before was superseded by them."""
        question = StateQuery(kinds=("continuation",), agents=(agent,), tasks=(task,), newest=True, limit=_LOOKED_AT)
        found = (self._files.find(row.path) for row in self._reader.recent(question) if not row.archive)
        return [state for state in found if state is not None]

    def _end(self, expires: datetime | timedelta | str | None, now: datetime) -> str | None:
        try:
            if expires is None:
                hours = self._reader.system_config().expires_hours
                return format_time(now + timedelta(hours=hours)) if hours > 0 else None
            return format_time(now + expires if isinstance(expires, timedelta) else given_time(expires))
        except (ValueError, OverflowError, TypeError, AttributeError):
            message = f"{_shown(expires)} is not a point in time"
            raise SchemaInvalid(message, field="expires", hint="write 2026-03-01T10:00:00Z") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


HYPOTHESIS = "hypothesis"
RESULT = "tournament_result"
_PATHS = {HYPOTHESIS: state_paths.hypothesis_path, RESULT: state_paths.tournament_path}
_LOOKED_AT = 16
_COMPARED = 16
_AT_ONCE = ("checkpoint", "critical")


_Outcome = tuple[int, State, bool, tuple[str, ...]]
"""The iteration, the document, whether it is new, and in which fields another writer's value was displaced."""


class StateRecorder:
    """Records what agents hand over. May be used from several threads, and by several processes at once.

    Every method returns when the document survives kill -9 and power loss. An iteration that a document names, or the
    next one where none is open, is started on the way.
    """

    def __init__(
        self, iterations: Iterations, continuations: Continuations, checkpoint: Callable[[StateUpdate], str]
    ) -> None:
        """``checkpoint`` creates a checkpoint that has the given update, and returns its id."""
        self._reader, self._clock, self._fire = iterations.reader, iterations.clock, iterations.fire
        self._files = iterations.reader.files
        self._iterations, self._continuations = iterations, continuations
        self._checkpoint = checkpoint
        self._turn = threading.Lock()
        reset_on_fork(self)

    # -- from the supervisor --------------------------------------------------------------------------------------
    def state_update(self, update: StateUpdate | Mapping[str, Any], iteration: int | None = None) -> Acknowledgement:
        """Keep a supervisor's state, and have the iteration's header show the latest by timestamp.

        A ``checkpoint`` update creates a checkpoint each time it is sent, whose id is acknowledged; a ``critical`` one
        is committed at once. Both updates are stored even where the quota is full.

        Args:
            iteration: which it belongs to; by default the newest that is open.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
            IterationInvalid: that iteration was archived.

        Returns:
            What was stored: where a checkpoint could not be made, ``checkpoint_problem`` says why. Sending the update
            again tries again.
        """
        began = time.perf_counter()
        given = StateUpdate.from_dict(update)
        if given.update_type not in UPDATE_TYPES:
            hint = f"one of {', '.join(UPDATE_TYPES)}"
            raise SchemaInvalid(f"{given.update_type!r} is not a kind of update", field="update_type", hint=hint)
        moment = given.timestamp or self._clock()
        stamped = replace(given, timestamp=moment)
        values = stamped.to_dict()

        def attempt() -> tuple[int, State, bool]:
            number = self._iterations.into(iteration)
            path, there = self._place(partial(state_paths.update_path, number, moment), values)
            if there is not None:
                return number, there, False
            changes = [DocumentChange(path, values, "")]
            header = self._iterations.header(number)
            present = header.values.get("update") if header is not None else None
            shown = time_in(present.get("timestamp")) if isinstance(present, Mapping) else None
            if header is not None and not (shown is not None and shown > parse_time(values["timestamp"])):
                changes.append(DocumentChange(header.path, {**header.values, "update": values}, header.sha256))
            message = f"Store {given.update_type} state of iteration {number}"
            critical = given.update_type in _AT_ONCE
            return number, self._files.write(changes, message, critical=critical)[0], True

        number, content, new = retry_on_conflict(attempt)
        revision = ""
        if new and given.update_type == "critical":
            self._files.commit_now()
            revision = self._files.revision_of(content.path)
        ack = self._acknowledged(content, number, new, given.update_type, revision=revision)
        if given.update_type == "checkpoint":
            try:
                ack = replace(ack, checkpoint_id=self._checkpoint(stamped))
            except MemfsError as error:  # the update is stored: an error would say that it is not
                ack = replace(ack, checkpoint_problem=str(error))
            ack = replace(ack, revision=self._files.revision_of(ack.path))  # it was committed along
        return _timed(ack, began)

    # -- from specialised agents ----------------------------------------------------------------------------------
    def agent_output(self, output: AgentOutput | Mapping[str, Any], iteration: int | None = None) -> Acknowledgement:
        """Keep what an agent made of a task.

        With an ``internal_state`` it also keeps that, under a token that is acknowledged, for the agent to go on from;
        an output without ``state_data`` ends the task's tokens. Each completes the task but one that names a
        ``continuation_token``: of that the task goes on. The same output again is the same document.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
            IterationInvalid: that iteration was archived.
        """
        began = time.perf_counter()
        given = AgentOutput.from_dict(output)
        for name in ("agent_type", "task_id"):
            if not isinstance(given[name], str) or not given[name]:
                raise SchemaInvalid("an output belongs to an agent's task", field=name, hint="give a name")
            refuse_hidden({name: given[name]}, allow_invisible=True)
        values = replace(given, timestamp=given.timestamp or self._clock()).to_dict()
        unstamped = given.timestamp is None
        agent, task, state = given.agent_type, given.task_id, given.state_data or StateData()
        going_on = state.internal_state is not None

        def attempt() -> tuple[int, State, bool, str]:
            number = self._iterations.into(iteration)
            path_of = partial(state_paths.output_path, number, agent, task)
            path, there = self._place(path_of, values, unstamped)
            if there is not None:
                again = self._continuations.again
                return number, there, False, again(number, agent, task, state.internal_state) if going_on else ""
            token, changes = state.continuation_token or "", list[DocumentChange]()
            if going_on:
                token, changes = self._continuations.prepare(number, agent, task, state.internal_state)
            elif not token:
                changes = self._continuations.superseding(agent, task, path)
            changes = [DocumentChange(path, values, ""), *changes]
            return number, self._files.write(changes, f"Store output of {agent} for {task}")[0], True, token

        number, content, new, token = retry_on_conflict(attempt)
        return _timed(self._acknowledged(content, number, new, continuation_token=token), began)

    # -- from the meta-reviewer -----------------------------------------------------------------------------------
    def meta_review(self, review: MetaReviewStorage | Mapping[str, Any]) -> Acknowledgement:
        """Keep the meta-review of an iteration, open or closed; a later one takes its place, history keeps both.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
            IterationInvalid: the iteration was archived, or its number is none.
        """
        began = time.perf_counter()
        given = MetaReviewStorage.from_dict(review)
        number = self._iterations.into(given.iteration_number)
        values = replace(given, timestamp=given.timestamp or self._clock()).to_dict()
        path = state_paths.meta_review_path(number)
        there = self._there(path)
        new = there is None or not _alike(there.values, values, unstamped=given.timestamp is None)
        if there is None or new:
            (there,) = self._files.write([DocumentChange(path, values)], f"Store the meta-review of iteration {number}")
        return _timed(self._acknowledged(there, number, new), began)

    # -- hypotheses and their tournament --------------------------------------------------------------------------
    def hypothesis(
        self,
        values: Mapping[str, Any],
        parents: Iterable[str] | str = (),
        *,
        iteration: int | None = None,
        base: Mapping[str, Any] | None = None,
    ) -> Acknowledgement:
        """Keep a hypothesis; with ``base``, joined with what others stored of it meanwhile.

        A field that is left out stays as it is, one that is None is removed. With ``base``, ``matches``, ``wins``,
        ``losses`` and ``reviews`` of all writers add up; of any other field that two changed, the last writer's value
        counts, and a record in ``conflicts/`` has the other.

        Args:
            values: with its ``id``; without one it gets a name made from its content. What a retrieval or a history
                gave may be handed back as it is: what is unchanged is not stored again.
            parents: ids of hypotheses it was made from, beside those in ``values``.
            base: the version that ``values`` were made from, as a retrieval or a history gave it: then what others
                stored since holds, too. Without it, each field of ``values`` takes the place of the one that is stored.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO, IterationInvalid: nothing was stored.
            Conflict: others never stopped changing it.
        """
        began = time.perf_counter()
        if isinstance(values, HypothesisVersion):  # what a history adds is no part of the document
            values = values.document
        handed = _named(values, ("hypothesis_id",), _name_of)
        own = handed.get("parents") or []
        if listed := list(dict.fromkeys([*_several(own), *map(str, _several(parents or ()))])):
            handed["parents"] = listed
        if handed["id"] in listed:
            raise SchemaInvalid("a hypothesis is not its own parent", field="parents", hint="leave its own id out")
        return self._joined(began, HYPOTHESIS, handed, iteration, plain(base))

    def tournament_result(self, values: Mapping[str, Any], *, iteration: int | None = None) -> Acknowledgement:
        """Keep one result of the tournament; without an ``id`` it gets one of its own.

        Where participants are listed, who won or lost is among them; else who is named took part.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO, IterationInvalid: nothing was stored.
            Conflict: others never stopped changing it.
        """
        began = time.perf_counter()
        handed = _named(values, ("match_id", "result_id"), lambda _given: new_id("result"))
        return self._joined(began, RESULT, handed, iteration)

    def _joined(
        self, began: float, kind: str, values: dict[str, Any], iteration: int | None, base: Any = None
    ) -> Acknowledgement:
        """Join a version with what is there, and store the outcome.

        Args:
            values: plain; a field that is left out stays as it is, one that is None is removed.
            base: what ``values`` were made from: both changes to it hold. Without it, each field of ``values`` takes
                the place of the one that is stored.
        """
        name = str(values["id"])

        def attempt() -> _Outcome:
            number = self._iterations.into(iteration)
            path = _PATHS[kind](number, name)
            with self._turn:  # threads of this process outdate no other's read
                now = self._clock()
                stored = self._stored(kind, name, number, path)
                begun = dict(base) if base is not None else stored.values if stored else {}
                ours = {key: value for key, value in {**begun, **values}.items() if value is not None}
                merged = merge(begun, ours, stored.values, _schema(kind)) if stored else FieldMerge(values=ours)
                return self._write_shared(number, path, stored, merged, now, _untimed(kind, values, begun, stored))

        number, content, new, conflicts = retry_on_conflict(attempt)
        return _timed(self._acknowledged(content, number, new, conflicts=conflicts), began)

    def _write_shared(
        self, number: int, path: str, stored: State | None, merged: FieldMerge, now: datetime, unstamped: bool
    ) -> _Outcome:
        here = stored if stored is not None and stored.path == path else None
        stamp = {"timestamp": format_time(now)} if unstamped else {}
        values = {**merged.values, **stamp}
        if here is not None and equal({**here.values, **stamp}, values):
            return number, here, False, ()
        changes = [DocumentChange(path, values, here.sha256 if here else "")]
        if stored is not None:
            by = merged.values.get("agent")
            writer = {"by": by} if isinstance(by, str) and by else {}
            records = records_of(path, merged.conflicts, now, lost_sha256=stored.sha256, **writer)
            for turn, record in enumerate(records, 1):
                changes.append(DocumentChange(state_paths.conflict_path(number, path, now, turn), record, ""))
        has_records = len(changes) > 1
        if here is not None and state_paths.document_kind(path) == HYPOTHESIS:
            assert here.stamp is not None  # it is in the tree
            made = time_in(here.values.get("timestamp")) or from_timestamp_ns(here.stamp.mtime_ns)
            path_of = partial(state_paths.version_path, number, values["id"], made)  # the displaced version's own time
            changes.append(DocumentChange(path_of(self._files.first_free(path_of)), here.values, ""))
        fields = tuple(clash.field for clash in merged.conflicts)
        kind = state_paths.document_kind(path).replace("_", " ")
        joined = f", over another writer's {', '.join(fields)}" if fields else ""
        message = f"Store {kind} {merged.values['id']}{joined}"
        return number, self._files.write(changes, message, alone=has_records)[0], True, fields

    def _stored(self, kind: str, name: str, number: int, path: str) -> State | None:
        """What is there at present: the document of this iteration, else the newest of an earlier one."""
        if (here := self._files.find(path)) is not None:
            return here
        for row in self._reader.recent(StateQuery(kinds=(kind,), names=(name,), newest=True, limit=_LOOKED_AT)):
            if row.facts.iteration is not None and row.facts.iteration < number:
                with suppress(FileNotFoundError):  # removed by hand since it was noted
                    return self._reader.read(row)
        return None

    # -- where, and what is said ----------------------------------------------------------------------------------
    def _place(
        self, path_of: Callable[[int], str], values: dict[str, Any], unstamped: bool = False
    ) -> tuple[str, State | None]:
        """Where just this document is, among the last of its name, and the document; else the first free path.

        What the caller gave no time can only be the very last one handed over again.
        """
        free = self._files.first_free(path_of)
        for turn in range(free - 1, max(free - 1 - (1 if unstamped else _COMPARED), 0), -1):
            there = self._there(path_of(turn))
            if there is not None and _alike(there.values, values, unstamped):
                return there.path, there
        return path_of(free), None

    def _there(self, path: str) -> State | None:
        try:
            return self._files.find(path)
        except ContentError:
            return None

    def _acknowledged(
        self, content: State, number: int, new: bool, update_type: str = "", **more: Any
    ) -> Acknowledgement:
        """The acknowledgement of a document, after those who react to new ones were notified."""
        path = content.path
        if new:
            kind = state_paths.document_kind(path)
            self._fire("state_stored", {"kind": kind, "path": path, "iteration": number, "update_type": update_type})
        durability = content.durability
        return Acknowledgement(path=path, sha256=content.sha256, bytes=content.bytes, durability=durability, **more)


def _timed(ack: Acknowledgement, began: float) -> Acknowledgement:
    return replace(ack, duration_ms=round((time.perf_counter() - began) * 1000, 3))


def _several(value: Any) -> list[Any]:
    """What is given as one name or as several, as several."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else [value]


def _named(
    values: Mapping[str, Any], others: tuple[str, ...], invent: Callable[[dict[str, Any]], str]
) -> dict[str, Any]:
    """The values as JSON has them, with their id as text, in front."""
    if not isinstance(values, Mapping):
        raise SchemaInvalid("expected keys and values", hint="give a mapping with an 'id'")
    given: dict[str, Any] = plain(values)
    name = next((given[key] for key in ("id", *others) if given.get(key) is not None), None)
    if name is None:
        name = invent(given)
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise SchemaInvalid(f"{name!r} is not an id", field="id", hint="give a name as text")
    refuse_hidden({"id": str(name)}, allow_invisible=True)
    return {**given, "id": str(name)}


def _alike(there: Mapping[str, Any], values: Mapping[str, Any], unstamped: bool) -> bool:
    """Whether two documents are one; what the caller gave no time has none to compare."""
    untimed = {"timestamp": ""} if unstamped else {}
    return equal({**there, **untimed}, {**values, **untimed})


def _untimed(kind: str, values: Mapping[str, Any], begun: Mapping[str, Any], stored: State | None) -> bool:
    """Whether a version has no time of its own.

    That of a hypothesis says when this version was made: one that was handed back with another version's has none.
    """
    given = values.get("timestamp")
    if given is None or kind != HYPOTHESIS:
        return given is None
    others = (begun.get("timestamp"), stored.values.get("timestamp") if stored else None)
    moment = time_in(given)
    return moment is not None and any(time_in(one) == moment for one in others)


def _name_of(values: Mapping[str, Any]) -> str:
    """A name for a hypothesis without one: the same for the same content, so that storing it again is no second one."""
    return f"h-{hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]}"


@cache
def _schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schema_text(kind))
    return schema
