"""Compute metrics of documents: figures, strategies, success, improvement, and the statistics of an iteration.

Works on plain values, and never fails over what somebody wrote. The same values give the same numbers in any order.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from statistics import linear_regression
from typing import Any

from memfs.dataclass import dataclass, field
from memfs.model import state_facts
from memfs.model.state_facts import StateFacts, StateRow, as_mapping, as_number, matches, texts
from memfs.model.time import format_time

MOST_METRICS = 64
"""So many metrics of one agent are kept for an iteration, the most frequent first."""
_MOST_TEXT = 8_000
_LONGEST_NAME = 120
_LONGEST_KEY = 250
_WORD = re.compile(r"\w{2,40}")
_STRATEGY = re.compile(r"strateg", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|\.)(?:index|iteration|iteration_number|timestamp|version|year)$|(?:^|[._\- ])(?:id|seed)$", re.IGNORECASE
)
_SUCCESS = ("success", "succeeded", "successful", "accepted")
_ENDS = ("outcome", "status", "result")
_GOOD = frozenset({"success", "succeeded", "successful", "accepted", "passed", "ok", "done", "completed", "complete"})
_BAD = frozenset({"failure", "failed", "fail", "error", "rejected", "aborted", "timeout", "cancelled"})
_LESS_IS_BETTER = re.compile(
    r"(?:^|[^a-z])(?:cost|costs|error|errors|loss|latency|duration|seconds|time|resource|resources|consumed|failure|failures"
    r"|failed|rejected|tokens|retries|duplicates|memory|delay|waste)(?:[^a-z]|$)"
)

Summary = list[float]
"""How many values, their mean, and their standard deviation: short, as there are many of them in a file."""


# -- summing up ---------------------------------------------------------------------------------------------------
def short(value: float) -> float:
    """A number as aggregates have it: nine digits, the same whatever the order it was summed up in."""
    return float(f"{value:.9g}")


def summary(values: Iterable[float]) -> Summary:
    """How many, mean and deviation; ``[0, 0.0, 0.0]`` of none."""
    given = [value for value in values if as_number(value) is not None]
    if not given:
        return [0, 0.0, 0.0]
    mean = math.fsum(given) / len(given)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / len(given))
    return [len(given), short(mean), short(spread)]


def combined(parts: Iterable[Summary]) -> Summary:
    """The summary of the values behind several summaries."""
    given = [part for part in parts if part[0]]
    count = sum(int(part[0]) for part in given)
    if not count:
        return [0, 0.0, 0.0]
    mean = math.fsum(part[0] * part[1] for part in given) / count
    squares = math.fsum(part[0] * (part[2] ** 2 + (part[1] - mean) ** 2) for part in given)
    return [count, short(mean), short(math.sqrt(squares / count))]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much a value changes for each step, by least squares; 0.0 with fewer than two places."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    return short(linear_regression([x for x, _ in points], [y for _, y in points]).slope)


def direction(points: Sequence[tuple[float, float]], least: float = 0.1) -> str:
    """Where a value goes: ``rising`` or ``falling`` where the line through it moves by a tenth of its size at least.

    ``unknown`` with fewer than two places.
    """
    if len({x for x, _ in points}) < 2:
        return "unknown"
    move = slope(points) * (max(x for x, _ in points) - min(x for x, _ in points))
    size = math.fsum(abs(y) for _, y in points) / len(points)
    if abs(move) <= least * size or move == 0:
        return "steady"
    return "rising" if move > 0 else "falling"


def less_is_better(name: str) -> bool:
    """Whether a metric, by its name, is the better the smaller it is."""
    folded = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()
    return bool(_LESS_IS_BETTER.search(folded.replace("_", " ")))


# -- what a document says -----------------------------------------------------------------------------------------
def figures(value: Any) -> dict[str, float]:
    """Every number in a value by dotted name; one without a name is called ``effectiveness``."""
    named = "" if isinstance(value, Mapping) else "effectiveness"
    return dict(islice(state_facts.figures_in(value, named), 4 * MOST_METRICS))


def key_of(name: str) -> str:
    """A name as a key in an aggregate; one that is too long for a key keeps its beginning and a digest."""
    return name if len(name) <= _LONGEST_KEY else f"{name[:160]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def metrics_of(results: Mapping[str, Any]) -> dict[str, float]:
    """The figures of an output: those of its metadata, and the plain ones of a primary output that has keys.

    Numbers that only tell one thing from another, such as ``seed`` or ``iteration``, are none.
    """
    own = {
        key: value for key, value in as_mapping(results.get("primary_output")).items() if as_number(value) is not None
    }
    found = {**figures(own), **figures(as_mapping(results.get("metadata")))}
    return {name: value for name, value in found.items() if not _LABEL.search(name)}


def strategies_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The strategies that keys such as ``strategy`` or ``strategies_used`` name, each once."""
    found: list[str] = []
    for key, value in values.items():
        if _STRATEGY.search(str(key)):
            for one in value if isinstance(value, list | tuple) else (value,):
                name = one.get("name") if isinstance(one, Mapping) else one
                if isinstance(name, str) and name.strip():
                    found.append(" ".join(name.split())[:_LONGEST_NAME])
    return tuple(dict.fromkeys(found))[:8]


def success_of(values: Mapping[str, Any]) -> bool | None:
    """Whether a document says that the work succeeded; None where it does not say."""
    for key in _SUCCESS:
        if isinstance(values.get(key), bool):
            return bool(values[key])
    for key in _ENDS:
        word = values.get(key)
        if isinstance(word, str) and word.casefold() in _GOOD | _BAD:
            return word.casefold() in _GOOD
    return None


def named(given: Mapping[str, Any], beginning: str) -> list[str]:
    """The names that begin with a word, or have a part that does: ``improvement_rate``, ``scores.improvement``."""
    pattern = re.compile(rf"(?:^|[._\- ]){re.escape(beginning)}", re.IGNORECASE)
    found = (name for name in given if pattern.search(name))
    return sorted(found, key=lambda name: (not name.casefold().startswith(beginning), name))


# -- how far outputs differ ---------------------------------------------------------------------------------------
def words_of(value: Any) -> frozenset[str]:
    """The words of whatever an agent made."""
    return frozenset(_WORD.findall(" ".join(islice(texts(value), _MOST_TEXT))[:_MOST_TEXT].casefold()))


def dissimilarity(sets: Sequence[frozenset[str]]) -> float | None:
    """How little the words of texts overlap, mean over all pairs: 0.0 all the same, 1.0 nothing shared."""
    given = [one for one in sets if one]
    if len(given) < 2:
        return None
    apart = [1 - len(one & other) / len(one | other) for place, one in enumerate(given) for other in given[place + 1 :]]
    return short(math.fsum(apart) / len(apart))


def sum_up(documents: Iterable[StateFacts], opened: datetime | None, closed: datetime | None) -> dict[str, Any]:
    """The statistics of an iteration.

    Args:
        documents: what is known of each of its documents, in any order.
        opened, closed: when the iteration was; None where that is not known.

    Returns:
        Plain values, the same for the same documents: ``documents`` by kind, ``outputs``, ``outputs_by_agent``,
        ``hypotheses`` (``total``, ``by_state``), ``tournament`` (``results``, ``participants``), ``duration_seconds``.
    """
    given = list(documents)
    kinds = Counter(facts.kind for facts in given if facts.kind)
    outputs = Counter(facts.agent for facts in given if facts.kind == "agent_output")
    states = Counter(facts.state or "unknown" for facts in given if facts.kind == "hypothesis")
    participants = {name for facts in given if facts.kind == "tournament_result" for name in facts.hypotheses}
    duration = (closed - opened).total_seconds() if opened and closed else None
    return {
        **({} if duration is None else {"duration_seconds": round(max(duration, 0.0), 9)}),
        "documents": dict(sorted(kinds.items())),
        "outputs": kinds["agent_output"],
        "outputs_by_agent": dict(sorted(outputs.items())),
        "hypotheses": {"total": sum(states.values()), "by_state": dict(sorted(states.items()))},
        "tournament": {"results": kinds["tournament_result"], "participants": len(participants)},
    }


def agents(rows: Iterable[StateRow], names: Collection[str]) -> dict[str, dict[str, Any]]:
    """By agent: how many outputs, of how many tasks, and when the last came."""
    given: dict[str, list[StateFacts]] = {}
    for row in rows:
        given.setdefault(row.facts.agent, []).append(row.facts)
    summed: dict[str, dict[str, Any]] = {}
    for name in filter(given.__contains__, names):
        times = [facts.timestamp for facts in given[name] if facts.timestamp is not None]
        last = {"last_timestamp": format_time(max(times))} if times else {}
        summed[name] = {"outputs": len(given[name]), "tasks": len({facts.task for facts in given[name]}), **last}
    return summed


def by_state(hypotheses: Mapping[str, StateRow]) -> dict[str, int]:
    """How many hypotheses are in each state."""
    return dict(sorted(Counter(row.facts.state for row in hypotheses.values()).items()))


def standings(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By hypothesis: its matches and wins, and its rating after the last."""
    table: dict[str, dict[str, Any]] = {}
    for match in (one for result in results for one in matches(result)):
        for name in match.participants:
            row = table.setdefault(name, {"matches": 0, "wins": 0})
            row["matches"] += 1
            row["wins"] += name in match.winners
            if name in match.ratings:
                row["rating"] = match.ratings[name]
    return dict(sorted(table.items()))


def review(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a meta-review is about, in numbers."""
    critique, overview = (as_mapping(values.get(name)) for name in ("critique", "research_overview"))
    summed = {key: values[key] for key in ("iteration_number", "timestamp") if key in values}
    return {
        **summed,
        "patterns": len(critique.get("common_patterns") or ()),
        "agents": sorted(map(str, as_mapping(critique.get("agent_feedback")))),
        "priorities": len(overview.get("next_priorities") or ()),
    }


def component(name: str, update: Mapping[str, Any]) -> dict[str, Any]:
    """What a state update tells of one component."""
    recovery = as_mapping(as_mapping(update.get("checkpoint_data")).get("recovery_metadata"))
    queues = as_mapping(as_mapping(update.get("orchestration_state")).get("queue_statistics"))
    told = {"timestamp": update["timestamp"]} if "timestamp" in update else {}
    for key, held in (("recovery_metadata", recovery), ("queue_statistics", queues)):
        if name in held:
            told[key] = held[name]
    return told


Load = Callable[[StateRow], Mapping[str, Any]]

KINDS = ("agent_output", "hypothesis", "system_state")
"""The documents that an entry follows from."""

_MOST_COMPARED = 40
_MOST_STRATEGIES = 16


@dataclass(slots=True)
class _Tally:
    """What an agent did in an iteration, or what came of one of its strategies."""

    count: int = 0
    values: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    metrics: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reported: dict[str, float] = field(default_factory=dict)
    words: list[frozenset[str]] = field(default_factory=list)
    successes: list[bool] = field(default_factory=list)
    strategies: defaultdict[str, _Tally] = field(default_factory=lambda: defaultdict(_Tally))

    def add(self, name: str, *values: float | None) -> None:
        """Note values, as far as there are some."""
        if known := [value for value in values if value is not None]:
            self.values[name] += known


def digest(rows: Iterable[StateRow], load: Load, elsewhere: Mapping[str, float]) -> dict[str, Any]:
    """What each agent did in one iteration.

    Args:
        rows: of the iteration's documents of ``KINDS``.
        load: reads one; only one is held at a time.
        elsewhere: ratings of parents that lie in earlier iterations, by id.
    """
    ordered = sorted(rows, key=lambda row: row.path)
    gains = gains_of(ordered, elsewhere)
    agents: defaultdict[str, _Tally] = defaultdict(_Tally)
    credited: set[str] = set()
    for row in ordered:
        values = load(row)
        if row.facts.kind == "agent_output":
            credited.update(_count_output(agents, row, values, gains))
        elif row.facts.kind == "system_state":
            _count_reported(agents, values)
    for row in ordered:
        if row.facts.kind == "hypothesis":
            _count_hypothesis(agents, row, load(row), gains, credited)
    return {key_of(name): _entry(agents[name]) for name in sorted(agents)}


def gains_of(rows: Iterable[StateRow], elsewhere: Mapping[str, float]) -> dict[str, float]:
    """By hypothesis, how much higher it is rated than its parents on average; one without rated parents has none."""
    given = [row.facts for row in rows if row.facts.kind == "hypothesis"]
    ratings = {**elsewhere, **{facts.name: facts.rating for facts in given if facts.rating is not None}}
    gains = {}
    for facts in given:
        before = [ratings[parent] for parent in facts.parents if parent in ratings and parent != facts.name]
        if facts.rating is not None and before:
            gains[facts.name] = facts.rating - math.fsum(before) / len(before)
    return gains


def _count_output(
    agents: defaultdict[str, _Tally], row: StateRow, values: Mapping[str, Any], gains: Mapping[str, float]
) -> list[str]:
    """Count an output; the hypotheses whose gain its strategies were credited with."""
    agent = agents[row.facts.agent]
    results = as_mapping(values.get("results"))
    metadata = {**as_mapping(results.get("primary_output")), **as_mapping(results.get("metadata"))}
    metrics = metrics_of(results)
    for name, value in metrics.items():
        agent.metrics[name].append(value)
    if len(agent.words) < _MOST_COMPARED:
        agent.words.append(words_of(results.get("primary_output")))
    uses = [agent.strategies[name] for name in strategies_of(metadata)]
    made = [name for name in row.facts.hypotheses if name in gains] if uses else []
    for tally in (agent, *uses):
        tally.count += 1
        tally.add("confidence", as_number(results.get("confidence_score")))
        tally.add("cost", as_number(results.get("resource_consumed")))
    success = success_of(metadata)
    for use in uses:
        use.add("improvement", *(metrics[one] for one in named(metrics, "improvement")[:1]))
        use.add("gain", *(gains[one] for one in made))
        use.successes += [] if success is None else [success]
    return made


def _count_reported(agents: defaultdict[str, _Tally], header: Mapping[str, Any]) -> None:
    """Count what the supervisor says of each agent in its latest state update."""
    statistics = as_mapping(as_mapping(header.get("update")).get("system_statistics"))
    for name, value in as_mapping(statistics.get("agent_effectiveness")).items():
        if found := figures(value):
            agents[str(name)].reported.update(found)


def _count_hypothesis(
    agents: defaultdict[str, _Tally],
    row: StateRow,
    values: Mapping[str, Any],
    gains: Mapping[str, float],
    credited: set[str],
) -> None:
    name, agent = row.facts.name, row.facts.agent
    if not agent:
        return
    agents[agent].add("gains", gains.get(name))
    if name in credited:
        return
    for strategy in strategies_of({**as_mapping(values.get("metadata")), **values}):
        use = agents[agent].strategies[strategy]
        use.count += 1
        use.add("gain", gains.get(name))


def _entry(agent: _Tally) -> dict[str, Any]:
    made: dict[str, Any] = {"outputs": agent.count}
    made |= {name: summary(values) for name, values in agent.values.items()}
    frequent = sorted(agent.metrics, key=lambda name: (-len(agent.metrics[name]), name))[:MOST_METRICS]
    made["metrics"] = {name: summary(agent.metrics[name]) for name in sorted(frequent)}
    made["reported"] = {name: short(agent.reported[name]) for name in sorted(agent.reported)[:MOST_METRICS]}
    if gains := agent.values.get("gains"):
        made["better"] = sum(gain > 0 for gain in gains)
    apart = dissimilarity(agent.words)
    if apart is not None:
        made["dissimilarity"] = apart
    most = sorted(agent.strategies, key=lambda name: (-agent.strategies[name].count, name))[:_MOST_STRATEGIES]
    made["strategies"] = {name: _use(agent.strategies[name]) for name in sorted(most)}
    return {name: value for name, value in made.items() if value != {}}


def _use(use: _Tally) -> dict[str, Any]:
    made: dict[str, Any] = {"uses": use.count, **{name: summary(values) for name, values in use.values.items()}}
    return made | ({"successes": [sum(use.successes), len(use.successes)]} if use.successes else {})
