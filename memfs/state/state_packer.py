"""Pack the state of one moment for a checkpoint, and gather on the way what a recovery reports.

That is where each agent is, which tasks are in flight, and which work is done.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memfs.config_names import SYSTEM_CONFIG
from memfs.dataclass import dataclass
from memfs.errors import CorruptRecord, HistoryError, MemfsError
from memfs.fs.archive import Digest, TreePacker
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.tree import ScanEntry
from memfs.model.state_facts import is_final
from memfs.model.state_paths import (
    agent_of,
    decode_name,
    document_kind,
    encode_name,
    iteration_of,
    system_state_path,
    task_and_turn,
)
from memfs.model.time import EARLIEST, parse_time, time_in
from memfs.state.checkpoint_store import FOLDERS, MEMBER, SUMS, Checkpoint, sums
from memfs.store import Store
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.sidecars import KEY

if TYPE_CHECKING:
    from memfs.state.archives import Archives

_SMALL = 1 << 18
_KEPT_IN_MIND = 4
TASKS = ("checkpoint_data", "in_flight_tasks")
METADATA = ("checkpoint_data", "recovery_metadata")
_STATEFUL = {"agent_output": b'"internal_state"', "continuation": b'"state"'}


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """What a document says of one thing: where in it, and the value unless it is large.

    That is one part of ``checkpoint_data``, or with ``agent`` and ``task`` where that agent was.
    """

    order: tuple[Any, ...]
    path: str
    field: tuple[str, ...]
    small: bool = True
    value: Any = None
    agent: str = ""
    task: str = ""

    def facts(self) -> dict[str, Any]:
        """As the summary has it."""
        place: dict[str, Any] = {"path": self.path, "field": list(self.field)}
        if self.agent:
            place |= {"task": self.task, "timestamp": self.order[1]}
        return {**place, "state" if self.agent else "value": self.value} if self.small else place


def archived_paths(archives: Archives) -> frozenset[str]:
    """The documents in archives; one whose index is damaged is left out: verifying archives names it."""
    paths: set[str] = set()
    for name in archives.stamp():
        with suppress(CorruptRecord, FileNotFoundError):
            paths.update(one.path for one in archives.index(name).members if document_kind(one.path))
    return frozenset(paths)


class StatePacker(TreePacker):
    """Packs the state as it is at one moment; what there is to say of it is known once all of it was taken."""

    def __init__(self, store: Store, parts: Parts, update: Mapping[str, Any] | None, archives: Archives) -> None:
        """
        Args:
            update: the state update whose ``checkpoint_data`` counts; None for the latest in the state.
            archives: what they hold is reported as work that is done.
        """
        super().__init__(parts.tree, parts.seen)
        self._store, self._parts, self._update, self._archives = store, parts, update, archives
        self._moment, self._revision = EARLIEST, ""
        self._closed: dict[str, bool] = {}
        self._noted: dict[str | tuple[str, ...], dict[str, ResumePoint]] = {}

    def tar(self) -> Generator[bytes, None, None]:
        """The state as a tar, in pieces. Writers wait while its last part is taken: it has to be closed in any case.

        Raises:
            StorageIO, LockTimeout: the state cannot be read.
        """
        parts = self._parts
        with parts.tree.holding_folders():
            for entry in _entries(parts, self.left_out):
                yield from self.add(entry.path)
        with self._store.standing_still("checkpoint"), parts.tree.holding_folders():
            self._moment = parts.clock()
            self.left_out.clear()
            yield from self.catch_up(_entries(parts, self.left_out))
            said = json.dumps(self._summary(), ensure_ascii=False, allow_nan=False)
            with suppress(HistoryError):
                self._revision = parts.repository.head_commit() or ""
        for name, data in ((MEMBER, said.encode("utf-8", "surrogatepass")), (SUMS, sums(self.files))):
            yield from self.put(name, [data], len(data))
        yield from self.end()

    def checkpoint(self, chosen: str, reason: str, payload: Digest) -> Checkpoint:
        """What was packed."""
        files = self.files
        return Checkpoint(
            id=chosen,
            timestamp=self._moment,
            reason=reason,
            iteration=max((number for path in files if (number := iteration_of(path)) is not None), default=None),
            files=len(files),
            bytes=sum(size for size, _ in files.values()),
            unpacked=self.size,
            payload_bytes=payload[0],
            sha256=payload[1],
            revision=self._revision,
            left_out=tuple(f"{path}: {reason}" for path, reason in sorted(self.left_out.items())),
        )

    # -- what is noted on the way ---------------------------------------------------------------------------------
    def note(self, path: str, data: bytes) -> None:
        """Look at a document that is being packed, those of newer iterations first."""
        kind = document_kind(path)
        if kind == "system_state":
            self._closed[path] = object_in(data).get("status") == "closed"
        for known in self._noted.values():
            known.pop(path, None)  # it is packed again: what it said before no longer counts
        if kind == "state_update" and b'"checkpoint_data"' in data:
            for one in said_in(path, object_in(data), small=len(data) <= _SMALL):
                self._keep(one.field, one)
        if kind not in _STATEFUL or _STATEFUL[kind] not in data or self._is_old(path):
            return
        found = _state_in(path, kind, object_in(data), len(data) <= _SMALL)
        if found is not None:
            self._keep(found.agent, found)

    def _keep(self, subject: str | tuple[str, ...], one: ResumePoint) -> None:
        """Keep the last few that an agent, or a part of ``checkpoint_data``, has."""
        known = self._noted.setdefault(subject, {})
        known[one.path] = one
        for surplus in sorted(known.values(), key=lambda each: each.order)[:-_KEPT_IN_MIND]:
            del known[surplus.path]

    def _is_old(self, path: str) -> bool:
        """Whether the agent's newer iterations have reported it already; a token's document names its agent inside."""
        agent, number = agent_of(path), iteration_of(path) or 0
        return bool(agent) and any(one.order[0] > number for one in self._noted.get(agent, {}).values())

    # -- what a recovery reports ----------------------------------------------------------------------------------
    def _summary(self) -> dict[str, Any]:
        """All that ``recover`` tells, for the documents that are in the checkpoint; archived work is done, too.

        That are the latest state update, by its path where it is too large, what was said last of each part of
        ``checkpoint_data``, which of the tasks in flight had their final output by then, and where each agent was.
        """
        paths = self.files.keys()
        noted = [one for known in self._noted.values() for one in known.values() if one.path in paths]
        said = latest_of(one for one in noted if not one.agent)
        said |= {one.field: one for one in said_in("", self._update or {})}
        agents: dict[str, ResumePoint] = {}
        for one in noted:
            if one.agent and (one.agent not in agents or one.order > agents[one.agent].order):
                agents[one.agent] = one
        told = sorted(said.values(), key=lambda one: (not one.path, one.order))
        archived = archived_paths(self._archives)
        closed = {system_state_path(number): True for number in self._archives.iterations()}
        done = completed({*paths, *archived}, {**closed, **self._closed})
        away = {iteration_of(path) or 0 for path in archived} - {iteration_of(path) for path in paths}
        return {
            "format": 1,
            "update": self._latest_update(),
            "checkpoint_data": [one.facts() for one in told],
            "finished": self._finished(said.get(TASKS)),
            "system_configuration": read_object(self._bytes_of, SYSTEM_CONFIG),
            "agents": {agent: one.facts() for agent, one in sorted(agents.items())},
            "completed_work": done | ({"archived_iterations": sorted(away)} if away else {}),
        }

    def _latest_update(self) -> dict[str, Any]:
        """``values`` of the latest state update, or its ``path`` where it is too large; empty where there is none."""
        if self._update is not None:
            return {"values": self._update}
        path = max((path for path in self.files if document_kind(path) == "state_update"), key=order_of, default="")
        data = self._bytes_of(path) if path else b""
        return {"path": path, **({"values": object_in(data)} if len(data) <= _SMALL else {})} if path else {}

    def _finished(self, said: ResumePoint | None) -> list[int]:
        """Which tasks in flight had their final output after the update that names them; a given one names them now."""
        moment = moment_of(said.path) if said is not None else None
        if said is None or moment is None:
            return []
        tasks = said.value if said.small else at(object_in(self._bytes_of(said.path)), said.field)
        return finished(tasks if isinstance(tasks, list) else [], self.files, self._bytes_of, after=moment)

    def _bytes_of(self, path: str) -> bytes:
        return self._parts.seen.read(path, READ_LIMIT).data


def _entries(parts: Parts, left_out: dict[str, str]) -> list[ScanEntry]:
    """The newest iteration first, what belongs to none before them; what is no file is named in ``left_out``."""
    found = []
    for folder in FOLDERS:
        for entry in parts.seen.scan(folder, hidden=True):
            if is_temporary(entry.path.rpartition("/")[2]):
                continue
            if entry.regular and "\n" not in entry.path:
                found.append(entry)
            else:
                left_out[entry.path] = entry.reason or "not a regular file with a plain name"

    def place(entry: ScanEntry) -> tuple[int, str]:
        number = iteration_of(entry.path)
        return (-(1 << 60) if number is None else -number, entry.path)

    return sorted(found, key=place)


def completed(paths: Iterable[str], closed: Mapping[str, bool]) -> dict[str, Any]:
    """What was done by then, from the names of the documents and the status of the iterations."""
    kinds: Counter[str] = Counter()
    outputs: Counter[str] = Counter()
    tasks: dict[str, set[str]] = {}
    hypotheses, iterations, reviews = set(), set(), set()
    for path in paths:
        kind, number = document_kind(path), iteration_of(path)
        kinds[kind] += 1
        if number is not None:
            iterations.add(number)
        if kind == "agent_output":
            outputs[agent_of(path)] += 1
            tasks.setdefault(agent_of(path), set()).add(task_and_turn(path)[0])
        elif kind == "hypothesis":
            hypotheses.add(task_and_turn(path)[0])
        elif kind == "meta_review":
            reviews.add(number)
    done = {iteration_of(path) for path, is_closed in closed.items() if is_closed}
    return {
        "iterations": sorted(iterations),
        "closed_iterations": sorted(iterations & done),
        "agent_outputs": sum(outputs.values()),
        "outputs_by_agent": dict(sorted(outputs.items())),
        "tasks_by_agent": {agent: len(names) for agent, names in sorted(tasks.items())},
        "hypotheses": len(hypotheses),
        "tournament_results": kinds["tournament_result"],
        "meta_reviews": sorted(number for number in reviews if number is not None),
        "state_updates": kinds["state_update"],
    }


def said_in(path: str, update: Mapping[str, Any], *, small: bool = True) -> Iterator[ResumePoint]:
    """What an update says of the parts of ``checkpoint_data``: the tasks in flight, and each component's metadata.

    Args:
        path: of the update; "" for one that is given and counts before all others.
        small: whether its values are kept in mind.
    """
    tasks, metadata = at(update, TASKS), at(update, METADATA)
    found: list[tuple[tuple[str, ...], Any]] = [(TASKS, tasks)] if isinstance(tasks, list) else []
    if isinstance(metadata, Mapping) and KEY in metadata:
        found.append((METADATA, metadata))  # all of it lies in a sidecar
    elif isinstance(metadata, Mapping):
        found += [((*METADATA, str(component)), value) for component, value in metadata.items()]
    for where, value in found:
        yield ResumePoint(order_of(path), path, where, small, value if small else None)


def latest_of(said: Iterable[ResumePoint]) -> dict[tuple[str, ...], ResumePoint]:
    """What was said last of each part of ``checkpoint_data``, by the field."""
    return {one.field: one for one in sorted(said, key=lambda one: one.order)}


def order_of(path: str) -> tuple[str, int, int]:
    """What sorts state updates by time, then iteration and turn: their names begin with the time."""
    return path.rpartition("/")[2].split("Z")[0], iteration_of(path) or 0, task_and_turn(path)[1]


def moment_of(path: str) -> datetime | None:
    """When a state update was made, as its name says; None where it says nothing."""
    try:
        stamp = path.rpartition("/")[2].partition("Z")[0]
        return datetime.strptime(stamp, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def _state_in(path: str, kind: str, values: Mapping[str, Any], small: bool) -> ResumePoint | None:
    where: tuple[str, ...] = ("state_data", "internal_state")
    if kind == "agent_output":
        agent, task, moment = values.get("agent_type"), values.get("task_id"), values.get("timestamp")
    else:
        if values.get("superseded_by"):
            return None
        where = ("state",)
        agent, task, moment = values.get("agent"), values.get("task_id"), values.get("created")
    state = at(values, where)
    if state is None or not agent or not isinstance(agent, str):
        return None
    order = (iteration_of(path) or 0, _comparable(moment))
    return ResumePoint(order, path, where, small, state if small else None, agent, str(task))


def at(values: Any, where: Iterable[str]) -> Any:
    """The value of a field below others, None where there is none."""
    for name in where:
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def _comparable(moment: Any) -> str:
    try:
        return f"{parse_time(moment):%Y%m%dT%H%M%S.%f}"
    except (ValueError, TypeError, AttributeError):
        return ""


def object_in(data: bytes) -> dict[str, Any]:
    """What a document's bytes hold; nothing where a person broke it."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
        if places and (output := read_object(read, path)) and is_final(output) and _is_later(output, after):
            found.update(place for place in places if _is_of(output, tasks[place]))
    return sorted(found)


def _is_of(output: Mapping[str, Any], task: Any) -> bool:
    own = {name.casefold() for name in owners(task)}
    agent = str(output.get("agent_type")).casefold()
    return task_id(task) == output.get("task_id") and (not own or agent in own)


def _is_later(output: Mapping[str, Any], after: datetime | None) -> bool:
    moment = time_in(output.get("timestamp")) if after is not None else None
    return after is None or (moment is not None and moment > after)


def read_object(read: Callable[[str], bytes], path: str) -> Mapping[str, Any]:
    """The JSON object in a file; an empty one where there is none that can be read."""
    with suppress(MemfsError, FileNotFoundError):
        return object_in(read(path))
    return {}
