"""Statistics: what the documents of one iteration come to when it is closed (S2, S11).

Owns which figures there are. It works on what is known of each document, and reads none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memfs.model.statefacts import Facts

CONFIDENCE = "confidence_score"
RESOURCES = "resource_consumed"

_LARGEST = 1e100  # the sum of larger ones may be no number that a document can hold


@dataclass(slots=True)
class _Series:
    """One figure over its documents."""

    count: int = 0
    total: float = 0.0
    last: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.last = value

    @property
    def mean(self) -> float | None:
        return _rounded(self.total / self.count) if self.count else None


@dataclass(slots=True)
class _Agent:
    """One agent's share of an iteration."""

    outputs: int = 0
    tasks: set[str] = field(default_factory=set)
    figures: dict[str, _Series] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        confidence, used = self.figures.get(CONFIDENCE), self.figures.get(RESOURCES)
        others = {name: one for name, one in sorted(self.figures.items()) if name not in (CONFIDENCE, RESOURCES)}
        return _without_none({
            "outputs": self.outputs,
            "tasks": len(self.tasks),
            "mean_confidence": confidence.mean if confidence else None,
            "resource_consumed": _rounded(used.total) if used else 0.0,
            "metrics": {name: {"count": one.count, "mean": one.mean, "last": one.last} for name, one in others.items()},
        })  # fmt: skip


def sum_up(documents: Iterable[Facts], opened: datetime | None, closed: datetime | None) -> dict[str, Any]:
    """The statistics of an iteration.

    Args:
        documents: what is known of each of its documents, in any order.
        opened, closed: when the iteration was; None where that is not known.

    Returns:
        Plain values, the same for the same documents: ``documents`` by kind, ``outputs``, ``outputs_by_agent``,
        ``mean_confidence``, ``resource_consumed``, ``agents`` (with ``metrics``: count, mean, last), ``hypotheses``
        (``total``, ``by_state``), ``tournament`` (``results``, ``participants``), and ``duration_seconds``.
    """
    kinds: Counter[str] = Counter()
    states: Counter[str] = Counter()
    participants: set[str] = set()
    agents: dict[str, _Agent] = {}
    for facts in sorted(documents, key=_in_time):
        kinds[facts.kind] += 1
        if facts.kind == "hypothesis":
            states[facts.state or "unknown"] += 1
        elif facts.kind == "tournament_result":
            participants.update(facts.hypotheses)
        elif facts.kind in ("agent_output", "state_update"):
            _add(agents, facts)
    duration = (closed - opened).total_seconds() if opened and closed else None
    return _without_none({
        "duration_seconds": _rounded(max(duration, 0.0)) if duration is not None else None,
        "documents": dict(sorted((kind, count) for kind, count in kinds.items() if kind)),
        **_work(agents),
        "hypotheses": {"total": sum(states.values()), "by_state": dict(sorted(states.items()))},
        "tournament": {"results": kinds["tournament_result"], "participants": len(participants)},
    })  # fmt: skip


def _work(agents: Mapping[str, _Agent]) -> dict[str, Any]:
    confidence = [agent.figures[CONFIDENCE] for agent in agents.values() if CONFIDENCE in agent.figures]
    count = sum(one.count for one in confidence)
    used = [agent.figures[RESOURCES].total for agent in agents.values() if RESOURCES in agent.figures]
    return {
        "outputs": sum(agent.outputs for agent in agents.values()),
        "outputs_by_agent": {name: agent.outputs for name, agent in sorted(agents.items()) if agent.outputs},
        "mean_confidence": _rounded(sum(one.total for one in confidence) / count) if count else None,
        "resource_consumed": _rounded(sum(used)),
        "agents": {name: agent.plain() for name, agent in sorted(agents.items())},
    }


def _add(agents: dict[str, _Agent], facts: Facts) -> None:
    if facts.kind == "agent_output":
        agent = agents.setdefault(facts.agent, _Agent())
        agent.outputs += 1
        agent.tasks.add(facts.task)
    for name, figures in facts.agent_metrics.items():
        one = agents.setdefault(name, _Agent())
        for figure, value in figures.items():
            counts = facts.kind == "agent_output" or figure not in (CONFIDENCE, RESOURCES)
            if counts and abs(value) < _LARGEST:
                one.figures.setdefault(figure, _Series()).add(value)


def _in_time(facts: Facts) -> tuple[float, str]:
    return (facts.timestamp.timestamp() if facts.timestamp else 0.0, facts.path)


def _rounded(value: float) -> float:
    return round(value, 9)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
