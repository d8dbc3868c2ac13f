"""State facts: what a state document is about, in the few words by which it is found again, and how to ask for it.

Reads time, agents, components, hypotheses, matches and figures from any mapping, and never fails on one edited by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from memfs.dataclass import dataclass, field
from memfs.errors import QueryInvalid
from memfs.model import state_paths
from memfs.model.item import Stamp
from memfs.model.time import format_time, parse_time, time_in

_NOBODY = frozenset({"draw", "tie", "none", "null", "nobody", "undecided"})


@dataclass(frozen=True, slots=True)
class TournamentMatch:
    """One match: who took part, in the order named, who of them won (no one in a draw), and ratings after it."""

    participants: tuple[str, ...]
    winners: tuple[str, ...] = ()
    ratings: Mapping[str, float] = field(default_factory=dict)


def matches(result: Mapping[str, Any]) -> tuple[TournamentMatch, ...]:
    """The matches that a result records: one, or those that it lists as ``matches``.

    Who is named as participant, winner or loser, or is rated, took part.

    Args:
        result: a tournament result; one that a person wrote may hold anything.

    Returns:
        The matches in order; none where no one is named.
    """
    held = result.get("matches")
    rows = [one for one in held if isinstance(one, Mapping)] if isinstance(held, list | tuple) else []
    listed = tuple(match for one in rows if (match := _single(one)).participants)
    return listed or tuple(match for match in (_single(result),) if match.participants)


def participants(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Everyone who took part in a result, each once: of a list of matches also those whom only the whole names."""
    return _once((*_single(result).participants, *(name for one in matches(result) for name in one.participants)))


def names(value: Any) -> list[str]:
    """The names in a value: a text or number, an object with an ``id``, or several of these."""
    values = value if isinstance(value, list | tuple) else (value,)
    return [name for one in values if (name := _text(one.get("id") if isinstance(one, Mapping) else one))]


def _single(result: Mapping[str, Any]) -> TournamentMatch:
    listed = result.get("participants")
    rated = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []
    ratings = {name: one["rating"] for one in rated if as_number(one.get("rating")) is not None for name in names(one)}
    ratings |= {str(name): of for name, of in as_mapping(result.get("ratings")).items() if as_number(of) is not None}
    winners = [name for name in names(result.get("winner")) if name.casefold() not in _NOBODY]
    named = (*names(listed), *winners, *names(result.get("loser")), *ratings)
    return TournamentMatch(_once(filter(None, named)), _once(winners), ratings)


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


SYSTEM = "system"
"""The component that every state update is about."""
STATEFUL = "stateful"
"""The state of an output with which the agent handed over its internal state."""

_MOST_FIGURES = 256
_MOST_NAMES = 1024
_LONGEST = 200
_LARGEST = 1e100
_TIMES = {
    "system_state": ("opened",),
    "continuation": ("created", "timestamp"),
    "feedback": ("given", "timestamp"),
    **dict.fromkeys(state_paths.HYPOTHESIS_KINDS, ("timestamp", "updated", "updated_at", "created", "created_at")),
}
_LINKS = ("hypothesis", "hypothesis_id", "hypotheses", "hypothesis_ids")

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFacts:
    """What one document is about.

    Attributes:
        path: its path, or that before it was archived.
        kind: as ``statepaths.document_kind`` says.
        timestamp: its own time; None where it has none. An iteration's header has that of its opening.
        closed: when the iteration was closed, for its header.
        agent: whose it is; ``agents`` are all that it has something about.
        name: its own name: of a hypothesis, a result, a continuation token; a checkpoint's id.
        components: parts of the system it says something about.
        hypotheses: which it is about: its own id, the participants of a tournament, those an output names.
        parents: of a hypothesis.
        rating, state: of a hypothesis; ``state`` of an update is its ``update_type``, of an output ``STATEFUL`` where
            it has the agent's internal state.
        status: of an iteration's header: ``open`` or ``closed``.
        metrics: figures of the system by dotted name; ``agent_metrics`` those of agents, by agent.
    """

    path: str
    kind: str = ""
    iteration: int | None = None
    timestamp: datetime | None = None
    closed: datetime | None = None
    agent: str = ""
    task: str = ""
    name: str = ""
    agents: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    hypotheses: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    rating: float | None = None
    state: str = ""
    status: str = ""
    metrics: Figures = field(default_factory=dict)
    agent_metrics: Mapping[str, Figures] = field(default_factory=dict)

    @property
    def fingerprint(self) -> dict[tuple[str, str], float]:
        """All figures by agent ("" for the system's) and name: what like states have alike."""
        own = {("", name): value for name, value in self.metrics.items()}
        return own | {(agent, name): value for agent, of in self.agent_metrics.items() for name, value in of.items()}

    @property
    def moment(self) -> float:
        """Its own time in seconds since 1970; before all others where it has none."""
        return self.timestamp.timestamp() if self.timestamp else float("-inf")

    def to_dict(self) -> dict[str, Any]:
        """The facts as JSON has them; what is empty is left out."""
        made: dict[str, Any] = {}
        for name in _FIELDS:
            value = getattr(self, name)
            if isinstance(value, datetime):
                value = format_time(value)
            elif isinstance(value, tuple):
                value = list(value)
            if value is not None and value not in ("", [], {}):
                made[name] = value
        return made

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StateFacts:
        """Facts that ``to_dict`` wrote; keys that are not known are passed over.

        Raises:
            ValueError, TypeError: they are none.
        """
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items() if key in _FIELDS
        }
        for name in ("timestamp", "closed"):
            if name in given:
                given[name] = parse_time(given[name])
        return cls(**given)


_FIELDS = tuple(StateFacts.__annotations__)


def is_final(output: Mapping[str, Any]) -> bool:
    """Whether an output ends its task: it does unless it names a continuation token, under which the task goes on.

    An ``internal_state`` alone is what the agent knows between its tasks, and leaves none of them undone.
    """
    data = output.get("state_data")
    return not isinstance(data, Mapping) or not data.get("continuation_token")


def version_order(facts: StateFacts) -> tuple[int, bool, float, int]:
    """By what the versions of one hypothesis are sorted: by iteration, there by time, and last the current one."""
    turn = state_paths.task_and_turn(facts.path)[1]
    return facts.iteration or 0, facts.kind == "hypothesis", facts.moment, turn


def describe(path: str, values: Mapping[str, Any]) -> StateFacts:
    """What a document is about.

    Args:
        path: its path; says what sort of document it is.
        values: the document. One that a person wrote may hold anything: what has no sense is passed over.
    """
    kind = state_paths.document_kind(path)
    about = _ABOUT[kind](path, values) if kind in _ABOUT else {}
    times = _TIMES.get(kind, ("timestamp",))
    return StateFacts(
        path=path,
        kind=kind,
        iteration=state_paths.iteration_of(path),
        timestamp=next((found for name in times if (found := time_in(values.get(name)))), None),
        **about,
    )


# -- by kind ------------------------------------------------------------------------------------------------------
def _update(_: str, values: Mapping[str, Any]) -> dict[str, Any]:
    statistics = as_mapping(values.get("system_statistics"))
    steering = as_mapping(values.get("orchestration_state"))
    metrics = dict(figures_in({key: value for key, value in statistics.items() if key != "agent_effectiveness"}))
    metrics |= dict(figures_in(as_mapping(steering.get("queue_statistics")), "queue_statistics"))
    figures: dict[str, dict[str, float]] = {}
    for agent, of in as_mapping(statistics.get("agent_effectiveness")).items():
        figures.setdefault(str(agent), {}).update(figures_in(of, "" if isinstance(of, Mapping) else "effectiveness"))
    for key, name in (("agent_weights", "weight"), ("resource_allocation", "resource_allocation")):
        for agent, of in as_mapping(steering.get(key)).items():
            figures.setdefault(str(agent), {}).update(figures_in(of, name))
    recovery = as_mapping(as_mapping(values.get("checkpoint_data")).get("recovery_metadata"))
    return {
        "state": _text(values.get("update_type")),
        "agents": _names(figures),
        "components": _names((SYSTEM, *recovery, *as_mapping(steering.get("queue_statistics")))),
        "metrics": _first(metrics.items()),
        "agent_metrics": _bounded(figures),
    }


def _output(path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    agent = _text(values.get("agent_type")) or state_paths.agent_of(path)
    results = as_mapping(values.get("results"))
    metadata = as_mapping(results.get("metadata"))
    figures = dict(figures_in({key: results.get(key) for key in ("confidence_score", "resource_consumed")}))
    figures |= {name: value for name, value in figures_in(metadata) if name not in figures}
    linked = [name for key in _LINKS for name in names(metadata.get(key))]
    return {
        "agent": agent,
        "agents": _names((agent,)),
        "task": _text(values.get("task_id")) or state_paths.task_and_turn(path)[0],
        "components": _names((agent,)),
        "hypotheses": _names(linked),
        "state": STATEFUL if as_mapping(values.get("state_data")).get("internal_state") is not None else "",
        "agent_metrics": _bounded({agent: figures}),
    }


def _hypothesis(path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    name = next((found for key in ("id", "hypothesis_id", "name") if (found := _text(values.get(key)))), "")
    name = name or state_paths.decode_name(_stem(path))
    agent = _text(values.get("agent")) or _text(values.get("agent_type"))
    return {
        "name": name,
        "agent": agent,
        "agents": _names((agent,)),
        "hypotheses": (name,),
        "parents": _names(names(values.get("parents"))),
        "rating": as_number(values.get("rating")),
        "state": _text(values.get("state")),
        "metrics": _first(figures_in({key: value for key, value in values.items() if not isinstance(value, dict)})),
    }


def _result(path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    agent = _text(values.get("agent"))
    return {
        "name": _text(values.get("id")) or state_paths.decode_name(_stem(path)),
        "agent": agent,
        "agents": _names((agent,)),
        "hypotheses": _names(participants(values)),
        "metrics": _first(figures_in({key: value for key, value in values.items() if not isinstance(value, dict)})),
    }


def _of_agent(_: str, values: Mapping[str, Any]) -> dict[str, Any]:
    agent = _text(values.get("agent"))
    task = _text(values.get("task_id"))
    return {"name": _text(values.get("token")), "agent": agent, "agents": _names((agent,)), "task": task}


_ABOUT: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "system_state": lambda _, values: {"status": _text(values.get("status")), "closed": time_in(values.get("closed"))},
    "state_update": _update,
    "agent_output": _output,
    "hypothesis": _hypothesis,
    "hypothesis_version": _hypothesis,
    "tournament_result": _result,
    "meta_review": lambda _, values: {
        "agents": _names(as_mapping(as_mapping(values.get("critique")).get("agent_feedback")))
    },
    "continuation": _of_agent,
    "feedback": _of_agent,
    "conflict": lambda _, values: {"name": _text(values.get("document"))},
    "checkpoint": lambda path, _: {"name": path.split("/")[-2]},
}


# -- values of any sort -------------------------------------------------------------------------------------------
def figures_in(value: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Every number in a value, by dotted name."""
    if isinstance(value, Mapping):
        if depth < 6:
            for key, inner in value.items():
                yield from figures_in(inner, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif prefix and len(prefix) <= _LONGEST and (number := as_number(value)) is not None:
        yield prefix, number


def _first(figures: Iterable[tuple[str, float]]) -> dict[str, float]:
    return dict(islice(dict(figures).items(), _MOST_FIGURES))


def _bounded(figures: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    kept: dict[str, dict[str, float]] = {}
    room = 2 * _MOST_FIGURES
    for agent, of in figures.items():
        taken = dict(list(of.items())[: min(room, _MOST_FIGURES)])
        room -= len(taken)
        if agent and taken:
            kept[agent] = taken
    return kept


def as_number(value: Any) -> float | None:
    """A value as a number, None where it cannot be added up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -_LARGEST < value < _LARGEST else None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """A value as keys and values; nothing where it has none."""
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> Iterator[str]:
    """Every text in a value, in order."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += reversed(list(one.values()))
        elif isinstance(one, (list, tuple)):
            waiting += reversed(one)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(list(dict.fromkeys(str(value) for value in values if value != ""))[:_MOST_NAMES])


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """Which documents are wanted: those that agree with every field that is given.

    Attributes:
        kinds, iterations: among these.
        agents: of one of these agents; for a meta-review or state update, with something about one.
        tasks, names, states: as in ``StateFacts``.
        components, hypotheses, parents, metrics: about one of these at least.
        start, end: with a time from and until these, both included.
        items: of memories, only these types.
        newest: the newest first; else the oldest.
        limit: how many at most; None for all.
    """

    kinds: tuple[str, ...] = ()
    iterations: tuple[int, ...] = ()
    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    hypotheses: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    items: tuple[str, ...] = ()
    newest: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """What is known of one document.

    Attributes:
        sha256, bytes: of the document when it was described.
        stamp: of its file then; None for one that only an archive holds.
        archive: the archive that holds it, "" for one in the tree.
    """

    facts: StateFacts
    sha256: str = ""
    bytes: int = 0
    stamp: Stamp | None = None
    archive: str = ""

    @property
    def path(self) -> str:
        """The document's path, or that before it was archived."""
        return self.facts.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One iteration as it is.

    Attributes:
        status: ``open`` or ``closed``.
        opened, closed: when; None where its header does not say, and for ``closed`` while it is open.
        statistics: what closing summed up; empty while it is open, and in a list of all.
        counts: its documents by kind.
        archive: the archive that holds it, "" where it is in the tree.
    """

    number: int
    status: str = "open"
    opened: datetime | None = None
    closed: datetime | None = None
    statistics: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    archive: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure: of an agent, or with ``agent`` "" of the system, in one document."""

    name: str
    value: float
    agent: str = ""
    iteration: int | None = None
    timestamp: datetime | None = None
    kind: str = ""
    path: str = ""


def names_of(value: Any, name: str) -> tuple[str, ...]:
    """The names that a caller gives: one or several, each once.

    Args:
        name: the argument's.

    Raises:
        QueryInvalid: naming the argument.
    """
    listed = [value] if isinstance(value, str) else _listed(value, name)
    for element in listed:
        if not isinstance(element, str) or not element:
            raise QueryInvalid(f"{element!r} is not a name", field=name, hint="give names, each a text")
    return tuple(dict.fromkeys(listed))


def numbers_of(value: Any) -> tuple[int, ...]:
    """The numbers of iterations that a caller gives, as ``names_of``, in order."""
    listed = [value] if isinstance(value, int) else _listed(value, "iterations")
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < 10**12:
            raise QueryInvalid(f"{one!r} is not the number of an iteration", field="iterations", hint="give numbers")
    return tuple(sorted(set(listed)))


def _listed(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping | str):
        return list(value)
    raise QueryInvalid(f"{value!r} is not a list", field=name, hint="give a list")
