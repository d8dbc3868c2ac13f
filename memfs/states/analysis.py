"""Analysis: how one agent did over the last iterations, and the weight that this suggests (seed 001; S11).

Owns which iterations are looked at, by what improvement and diversity are told, and where the present weight stands.
The entries it works on are ``aggregates``' business, the suggestion is ``weighing``'s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memfs.errors import ItemNotFound, MemfsError, QueryInvalid
from memfs.model.insights import AgentPoint, Analysis, Course
from memfs.model.kinds import nearest
from memfs.model.statequery import Question
from memfs.states.configuration import read_configuration
from memfs.states.effectiveness import values_of
from memfs.states.feedback import Feedback
from memfs.states.measures import direction, key_of, mapping, named, number, short, slope
from memfs.states.recommendations import name_in
from memfs.states.strategies import strategies_in
from memfs.states.weighing import suggested

if TYPE_CHECKING:
    from memfs.states.aggregates import Aggregates
    from memfs.states.reading import StateReading
    from memfs.store.parts import Parts

MOST_ITERATIONS = 10_000
_RATINGS = "ratings of hypotheses against their parents'"
_OVERLAP = "how little the outputs' words overlap"
_UPDATES = 3
_ACTIVE = ("agent_output", "state_update", "hypothesis")

Entries = Mapping[int, Mapping[str, Any]]


class Analyst:
    """Analyses agents of one workspace. May be used from several threads."""

    def __init__(self, reading: StateReading, aggregates: Aggregates, feedback: Feedback, parts: Parts) -> None:
        self._reading = reading
        self._aggregates = aggregates
        self._feedback = feedback
        self._parts = parts

    def analyze(self, agent: str, iterations: int = 10) -> Analysis:
        """How an agent did over the last iterations, open one included, as the documents say it now.

        Args:
            agent: its name; letter case and a trailing "agent" need not be as it is stored.
            iterations: so many of the newest are looked at, 1 to 10,000.

        Raises:
            QueryInvalid: ``iterations`` is no such number, or there is no name.
            ItemNotFound: nothing is known of such an agent; the hint names the nearest.
        """
        if isinstance(iterations, bool) or not isinstance(iterations, int) or not 1 <= iterations <= MOST_ITERATIONS:
            raise QueryInvalid(f"expected 1 to {MOST_ITERATIONS:,}", field="iterations", hint="10 is usual")
        numbers = [row.number for row in self._reading.iterations()][-iterations:]
        everybody = self._aggregates.agents(numbers)
        name = self._named(agent, everybody)
        analysis = self._analysis(name, numbers, everybody)
        weight, source = self._weight(name)
        values = {"current_weight": weight, "weight_source": source}
        analysis = Analysis.from_dict({**analysis, **values})
        peers = _peers(name, analysis.improvement_basis, everybody)
        weight, reasons = suggested(analysis, peers)
        return Analysis.from_dict({**analysis, "suggested_weight": weight, "reasons": reasons})

    def _analysis(self, name: str, numbers: Sequence[int], everybody: Mapping[int, Mapping[str, Any]]) -> Analysis:
        entries = {number: mapping(everybody.get(number, {}).get(key_of(name))) for number in numbers}
        improvement, improvement_basis = _improvement(entries)
        diversity, diversity_basis = _diversity(entries)
        versions = self._feedback.versions(name, numbers)
        points = tuple(
            _point(number, entries[number], improvement, diversity, versions.get(number, "")) for number in numbers
        )
        strategies, basis = strategies_in(entries.values())
        courses = {
            metric: _course_of(points, metric) for metric in sorted({key for one in points for key in one.metrics})
        }
        return Analysis(
            agent=name,
            iterations=tuple(numbers),
            points=points,
            outputs=sum(point.outputs for point in points),
            improvement_rate=_mean(improvement.values()),
            improvement_basis=improvement_basis,
            diversity=_mean(diversity.values()),
            diversity_basis=diversity_basis,
            confidence=_course((point.iteration, point.confidence) for point in points),
            cost=_course((point.iteration, point.cost) for point in points if point.outputs),
            improvement=_course(improvement.items()),
            diversity_course=_course(diversity.items()),
            metrics=courses,
            strategies=strategies,
            strategy_basis=basis,
            feedback=self._feedback.effectiveness(name, numbers) if numbers else (),
        )

    def _named(self, agent: object, everybody: Mapping[int, Mapping[str, Any]]) -> str:
        if not isinstance(agent, str) or not agent.strip():
            raise QueryInvalid("expected the name of an agent", field="agent", hint="give its name as it is stored")
        active = {*self._reading.index.agents(_ACTIVE), *(name for agents in everybody.values() for name in agents)}
        known = active.union(self._reading.index.agents(("meta_review",)))
        if name := name_in(sorted(active), agent) or name_in(sorted(known), agent):
            return name
        hint = nearest(agent, known) or (
            f"there are {', '.join(sorted(known)[:20])}" if known else "none did anything yet"
        )
        raise ItemNotFound(f"nothing is known of an agent {agent[:100]!r}", hint=hint)

    # -- the present weight ---------------------------------------------------------------------------------------
    def _weight(self, agent: str) -> tuple[float, str]:
        """The agent's weight at present, and where it stands: the newest state update, else the configuration."""
        newest = Question(kinds=("state_update",), agents=(agent,), newest=True, limit=_UPDATES)
        for row in self._reading.rows(newest):
            try:
                values = self._reading.load(row)
            except (MemfsError, FileNotFoundError):
                continue
            weights = mapping(mapping(values.get("orchestration_state")).get("agent_weights"))
            if (found := number(weights.get(agent))) is not None:
                return found, row.path
        try:
            weights = mapping(read_configuration(self._parts)["system_config"].get("agent_weights"))
        except MemfsError:
            weights = {}
        found = number(weights.get(agent))
        return (1.0, "default") if found is None else (found, "system_config.agent_weights")


# -- improvement and diversity ------------------------------------------------------------------------------------
def _improvement(entries: Entries) -> tuple[dict[int, float], str]:
    """The improvement rate by iteration, by what more of them tell: ratings, or a metric of that name."""
    rated = {place: _better(entry) for place, entry in entries.items() if "gains" in entry}
    metric, told = _metric(entries, "improvement")
    if rated and len(rated) >= len(told):
        return rated, _RATINGS
    return (told, f"metric {metric}") if told else ({}, "")


def _better(entry: Mapping[str, Any]) -> float:
    return short(entry["better"] / entry["gains"][0])


def _diversity(entries: Entries) -> tuple[dict[int, float], str]:
    """The diversity by iteration: a metric of that name, or else how little outputs have in common."""
    metric, told = _metric(entries, "diversity")
    if told:
        return told, f"metric {metric}"
    apart = {place: entry["dissimilarity"] for place, entry in entries.items() if "dissimilarity" in entry}
    return apart, _OVERLAP if apart else ""


def _metric(entries: Entries, beginning: str) -> tuple[str, dict[int, float]]:
    """The metric of that name that most iterations have."""
    values = {place: values_of(entry) for place, entry in entries.items()}
    names = named({name: None for of in values.values() for name in of}, beginning)
    by = {name: {place: of[name][1] for place, of in values.items() if name in of} for name in names}
    best = max(names, key=lambda name: len(by[name]), default="")
    return best, by.get(best, {})


def _peers(name: str, basis: str, everybody: Mapping[int, Mapping[str, Any]]) -> list[float]:
    """The mean improvement of each other agent, told by the same."""
    found: dict[str, list[float]] = {}
    for agents in everybody.values():
        for other, entry in agents.items():
            if other == key_of(name):
                continue
            if basis == _RATINGS and "gains" in entry:
                found.setdefault(other, []).append(_better(entry))
            elif basis.startswith("metric ") and (value := values_of(entry).get(basis.removeprefix("metric "))):
                found.setdefault(other, []).append(value[1])
    return [math.fsum(values) / len(values) for values in found.values()]


# -- points and courses -------------------------------------------------------------------------------------------
def _point(
    place: int, entry: Mapping[str, Any], improvement: Mapping[int, float], diversity: Mapping[int, float], version: str
) -> AgentPoint:
    cost = entry.get("cost")
    values = values_of(entry)
    return AgentPoint(
        iteration=place,
        outputs=entry.get("outputs", 0),
        confidence=entry["confidence"][1] if "confidence" in entry else None,
        cost=short(cost[0] * cost[1]) if cost else 0.0,
        improvement=improvement.get(place),
        diversity=diversity.get(place),
        metrics={name: value[1] for name, value in sorted(values.items()) if name not in ("confidence", "cost")},
        feedback=version,
    )


def _course_of(points: Sequence[AgentPoint], metric: str) -> Course:
    return _course((point.iteration, point.metrics[metric]) for point in points if metric in point.metrics)


def _course(pairs: Iterable[tuple[int, float | None]]) -> Course:
    given = [(float(place), value) for place, value in pairs if value is not None]
    if not given:
        return Course()
    values = [value for _, value in given]
    return Course(
        n=len(given),
        mean=_mean(values),
        first=values[0],
        last=values[-1],
        slope=slope(given),
        direction=direction(given),
    )


def _mean(values: Iterable[float]) -> float | None:
    given = list(values)
    return short(math.fsum(given) / len(given)) if given else None
