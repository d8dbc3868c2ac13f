"""Digest: what the documents of one iteration come to, agent by agent (seed 001; S5, S11, S12).

Owns the entry that an iteration has in ``effectiveness_metrics``. It follows from the documents alone: the same ones
give the same entry, whatever order they come in. Finding and reading them is ``aggregates``' business.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memfs.model.statequery import Row
from memfs.states.measures import (
    MOST_METRICS,
    dissimilarity,
    figures,
    key_of,
    mapping,
    metrics_of,
    named,
    number,
    short,
    strategies_of,
    success_of,
    summary,
    words_of,
)

Load = Callable[[Row], Mapping[str, Any]]

KINDS = ("agent_output", "hypothesis", "system_state")
"""The documents that an entry follows from."""

_MOST_COMPARED = 40
_MOST_STRATEGIES = 16


@dataclass(slots=True)
class _Use:
    uses: int = 0
    confidence: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    improvement: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    successes: list[bool] = field(default_factory=list)


@dataclass(slots=True)
class _Agent:
    outputs: int = 0
    confidence: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    reported: dict[str, float] = field(default_factory=dict)
    gains: list[float] = field(default_factory=list)
    words: list[frozenset[str]] = field(default_factory=list)
    strategies: dict[str, _Use] = field(default_factory=dict)


def digest(rows: Iterable[Row], load: Load, elsewhere: Mapping[str, float]) -> dict[str, Any]:
    """What each agent did in one iteration.

    Args:
        rows: of the iteration's documents of ``KINDS``.
        load: reads one; only one is held at a time.
        elsewhere: ratings of parents that lie in earlier iterations, by id.
    """
    ordered = sorted(rows, key=lambda row: row.path)
    gains = gains_of(ordered, elsewhere)
    agents: dict[str, _Agent] = {}
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


def gains_of(rows: Iterable[Row], elsewhere: Mapping[str, float]) -> dict[str, float]:
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
    agents: dict[str, _Agent], row: Row, values: Mapping[str, Any], gains: Mapping[str, float]
) -> list[str]:
    """Count an output; the hypotheses whose gain its strategies were credited with."""
    agent = agents.setdefault(row.facts.agent, _Agent())
    results = mapping(values.get("results"))
    metadata = {**mapping(results.get("primary_output")), **mapping(results.get("metadata"))}
    metrics = metrics_of(results)
    confidence, cost = number(results.get("confidence_score")), number(results.get("resource_consumed"))
    agent.outputs += 1
    agent.confidence += [] if confidence is None else [confidence]
    agent.cost += [] if cost is None else [cost]
    for name, value in metrics.items():
        agent.metrics.setdefault(name, []).append(value)
    if len(agent.words) < _MOST_COMPARED:
        agent.words.append(words_of(results.get("primary_output")))
    strategies = strategies_of(metadata)
    made = [name for name in row.facts.hypotheses if name in gains] if strategies else []
    for name in strategies:
        use = agent.strategies.setdefault(name, _Use())
        use.uses += 1
        use.confidence += [] if confidence is None else [confidence]
        use.cost += [] if cost is None else [cost]
        use.improvement += [metrics[one] for one in named(metrics, "improvement")[:1]]
        use.gain += [gains[one] for one in made]
        success = success_of(metadata)
        use.successes += [] if success is None else [success]
    return made


def _count_reported(agents: dict[str, _Agent], header: Mapping[str, Any]) -> None:
    """Count what the supervisor says of each agent in its latest state update."""
    statistics = mapping(mapping(header.get("update")).get("system_statistics"))
    for name, value in mapping(statistics.get("agent_effectiveness")).items():
        if found := figures(value):
            agents.setdefault(str(name), _Agent()).reported.update(found)


def _count_hypothesis(
    agents: dict[str, _Agent], row: Row, values: Mapping[str, Any], gains: Mapping[str, float], credited: set[str]
) -> None:
    name, agent = row.facts.name, row.facts.agent
    if not agent:
        return
    tally = agents.setdefault(agent, _Agent())
    tally.gains += [gains[name]] if name in gains else []
    if name in credited:
        return
    for strategy in strategies_of({**mapping(values.get("metadata")), **values}):
        use = tally.strategies.setdefault(strategy, _Use())
        use.uses += 1
        use.gain += [gains[name]] if name in gains else []


def _entry(agent: _Agent) -> dict[str, Any]:
    made: dict[str, Any] = {"outputs": agent.outputs}
    made |= _summaries({"confidence": agent.confidence, "cost": agent.cost})
    frequent = sorted(agent.metrics, key=lambda name: (-len(agent.metrics[name]), name))[:MOST_METRICS]
    made |= _kept("metrics", {name: summary(agent.metrics[name]) for name in sorted(frequent)})
    reported = sorted(agent.reported)[:MOST_METRICS]
    made |= _kept("reported", {name: short(agent.reported[name]) for name in reported})
    if agent.gains:
        made["gains"] = summary(agent.gains)
        made["better"] = sum(gain > 0 for gain in agent.gains)
    apart = dissimilarity(agent.words)
    if apart is not None:
        made["dissimilarity"] = apart
    used = Counter({name: use.uses for name, use in agent.strategies.items()})
    most = sorted(used, key=lambda name: (-used[name], name))[:_MOST_STRATEGIES]
    return made | _kept("strategies", {name: _use(agent.strategies[name]) for name in sorted(most)})


def _use(use: _Use) -> dict[str, Any]:
    made: dict[str, Any] = {"uses": use.uses}
    lists = {"confidence": use.confidence, "cost": use.cost, "improvement": use.improvement, "gain": use.gain}
    made |= _summaries(lists)
    if use.successes:
        made["successes"] = [sum(use.successes), len(use.successes)]
    return made


def _summaries(lists: Mapping[str, list[float]]) -> dict[str, Any]:
    return {name: summary(values) for name, values in lists.items() if values}


def _kept(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value)} if value else {}
