"""Record what a system hands over as state documents: updates, outputs, reviews and hypotheses.

A call returns once its documents are durable. Writers of one document at once are merged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, MemfsError, SchemaInvalid
from memfs.format.field_merge import equal
from memfs.format.plain import refuse_hidden
from memfs.model import state_paths
from memfs.model.ids import new_id
from memfs.model.shape import plain
from memfs.model.state_documents import UPDATE_TYPES, Acknowledgement, AgentOutput, MetaReviewStorage, StateUpdate
from memfs.model.time import parse_time, time_in, utc_now
from memfs.state.concurrent_documents import (
    HYPOTHESIS,
    RESULT,
    DocumentResult,
    SharedDocuments,
    name_of,
    settled,
)
from memfs.state.trends import HypothesisVersion
from memfs.store.state_files import DocumentChange, State, Written

if TYPE_CHECKING:
    from memfs.state.continuation import Continuations
    from memfs.state.iterations import Iterations
    from memfs.state.reader import StateReader
    from memfs.store.parts import Fire
    from memfs.store.state_files import StateFiles


_COMPARED = 16
_AT_ONCE = ("checkpoint", "critical")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a document goes; ``there`` where just this document lies there already."""

    path: str
    there: State | None = None


class StateRecorder:
    """Records what agents hand over. May be used from several threads, and by several processes at once.

    Every method returns when the document survives kill -9 and power loss. An iteration that a document names, or the
    next one where none is open, is started on the way.
    """

    def __init__(
        self,
        files: StateFiles,
        reader: StateReader,
        iterations: Iterations,
        continuations: Continuations,
        *,
        checkpoint: Callable[[StateUpdate], str],
        clock: Callable[[], datetime] = utc_now,
        fire: Fire = lambda _occasion, _facts: None,
    ) -> None:
        """Record into the iterations of a workspace.

        Args:
            checkpoint: creates a checkpoint that has the given update, and returns its id.
            clock: says when a document without a timestamp was made.
            fire: raises ``state_stored``.
        """
        self._files = files
        self._iterations = iterations
        self._continuations = continuations
        self._checkpoint = checkpoint
        self._clock = clock
        self._fire = fire
        self._shared = SharedDocuments(files, reader, iterations, clock)

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
            raise SchemaInvalid(f"{given.update_type!r} is no sort of update", field="update_type", hint=hint)
        moment = given.timestamp or self._clock()
        stamped = replace(given, timestamp=moment)
        values = stamped.to_dict()

        def attempt() -> tuple[int, bool, Acknowledgement]:
            number = self._iterations.into(iteration)
            place = self._place(partial(state_paths.update_path, number, moment), values)
            return number, place.there is None, self._update(number, place, values, given.update_type)

        number, new, ack = settled(attempt)
        self._tell(ack, number, new, given.update_type)
        if given.update_type == "checkpoint":
            try:
                ack = replace(ack, checkpoint_id=self._checkpoint(stamped))
            except MemfsError as error:  # the update is stored: an error would say that it is not
                ack = replace(ack, checkpoint_problem=str(error))
            ack = replace(ack, revision=self._files.revision_of(ack.path))  # it was committed along
        return _timed(ack, began)

    def _update(self, number: int, place: _Place, values: dict[str, Any], update_type: str) -> Acknowledgement:
        if place.there is not None:
            return _acknowledged(place.path, place.there)
        changes = [DocumentChange(place.path, values, "")]
        header = self._iterations.header(number)
        if header is not None and not _later(header.values.get("update"), values):
            changes.append(DocumentChange(header.path, {**header.values, "update": values}, header.sha256))
        written = self._files.write(
            changes, f"Store {update_type} state of iteration {number}", critical=update_type in _AT_ONCE
        )
        ack = _acknowledged(place.path, written[0])
        if update_type == "critical":
            self._files.commit_now()
            ack = replace(ack, revision=self._files.revision_of(place.path))
        return ack

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

        def attempt() -> tuple[int, bool, Acknowledgement]:
            number = self._iterations.into(iteration)
            path_of = partial(state_paths.output_path, number, given.agent_type, given.task_id)
            place = self._place(path_of, values, unstamped)
            return number, place.there is None, self._output(number, place, given, values)

        number, new, ack = settled(attempt)
        return self._told(ack, number, began, new)

    def _output(self, number: int, place: _Place, given: AgentOutput, values: dict[str, Any]) -> Acknowledgement:
        agent, task, state = given.agent_type, given.task_id, given.state_data
        going_on = state is not None and state.internal_state is not None
        if place.there is not None:
            token = self._continuations.again(number, agent, task, state.internal_state) if state and going_on else ""
            return replace(_acknowledged(place.path, place.there), continuation_token=token)
        token, changes = "", list[DocumentChange]()
        if state is not None and going_on:
            token, changes = self._continuations.prepare(number, agent, task, state.internal_state)
        elif state is None or not state.continuation_token:
            changes = self._continuations.superseding(agent, task, place.path)
        else:
            token = state.continuation_token
        changes = [DocumentChange(place.path, values, ""), *changes]
        written = self._files.write(changes, f"Store output of {agent} for {task}")
        return replace(_acknowledged(place.path, written[0]), continuation_token=token)

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
        if there is not None and _alike(there.values, values, unstamped=given.timestamp is None):
            return self._told(_acknowledged(path, there), number, began, False)
        written = self._files.write([DocumentChange(path, values)], f"Store the meta-review of iteration {number}")
        return self._told(_acknowledged(path, written[0]), number, began, True)

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

        A field that is left out stays as it is, one that is None goes. With ``base``, ``matches``, ``wins``, ``losses``
        and ``reviews`` of all writers add up; of any other field that two changed, the last writer's value counts, and
        a record in ``conflicts/`` has the other.

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
        handed = _named(values, ("hypothesis_id",), lambda given: f"h-{name_of(given)}")
        own = handed.get("parents") or []
        if listed := list(dict.fromkeys([*_several(own), *map(str, _several(parents or ()))])):
            handed["parents"] = listed
        if handed["id"] in listed:
            raise SchemaInvalid("a hypothesis is not its own parent", field="parents", hint="leave its own id out")
        stored = self._shared.store(HYPOTHESIS, handed, iteration=iteration, base=plain(base))
        return self._shared_told(stored, began)

    def tournament_result(self, values: Mapping[str, Any], *, iteration: int | None = None) -> Acknowledgement:
        """Keep one result of the tournament; without an ``id`` it gets one of its own.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO, IterationInvalid: nothing was stored.
            Conflict: others never stopped changing it.
        """
        began = time.perf_counter()
        handed = _named(values, ("match_id", "result_id"), lambda _given: new_id("result"))
        stored = self._shared.store(RESULT, handed, iteration=iteration)
        return self._shared_told(stored, began)

    def _shared_told(self, stored: DocumentResult, began: float) -> Acknowledgement:
        ack = replace(_acknowledged(stored.path, stored.content), conflicts=stored.conflicts)
        return self._told(ack, stored.iteration, began, stored.new)

    # -- where, and what is said ----------------------------------------------------------------------------------
    def _place(self, path_of: Callable[[int], str], values: dict[str, Any], unstamped: bool = False) -> _Place:
        """The document that is just this one, among the last of its name; else the first free path.

        What the caller gave no time can only be the very last one handed over again.
        """
        free = self._files.first_free(path_of)
        for turn in range(free - 1, max(free - 1 - (1 if unstamped else _COMPARED), 0), -1):
            there = self._there(path_of(turn))
            if there is not None and _alike(there.values, values, unstamped):
                return _Place(there.path, there)
        return _Place(path_of(free))

    def _there(self, path: str) -> State | None:
        try:
            return self._files.read(path)
        except (FileNotFoundError, ContentError):
            return None

    def _told(self, ack: Acknowledgement, number: int, began: float, new: bool) -> Acknowledgement:
        self._tell(ack, number, new)
        return _timed(ack, began)

    def _tell(self, ack: Acknowledgement, number: int, new: bool, update_type: str = "") -> None:
        if new:
            kind = state_paths.document_kind(ack.path)
            facts = {"kind": kind, "path": ack.path, "iteration": number, "update_type": update_type}
            self._fire("state_stored", facts)


def _acknowledged(path: str, content: State | Written) -> Acknowledgement:
    durability = content.durability if isinstance(content, Written) else "file"
    return Acknowledgement(path=path, sha256=content.sha256, bytes=content.bytes, durability=durability)


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


def _later(present: Any, values: Mapping[str, Any]) -> bool:
    """Whether the update that a header has is later than another."""
    shown = time_in(present.get("timestamp")) if isinstance(present, Mapping) else None
    return shown is not None and shown > parse_time(values["timestamp"])
