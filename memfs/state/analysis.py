"""Analyse how an agent did over the last iterations, and suggest its weight.

A suggestion moves a weight by less than half of it, and comes with its reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memfs.config import read_system_config
from memfs.dataclass import dataclass, replace
from memfs.errors import ItemNotFound, MemfsError, QueryInvalid
from memfs.model.kinds import nearest
from memfs.model.state_documents import AgentPoint, Analysis, StrategyOutcome
from memfs.model.state_facts import StateQuery, as_mapping, as_number
from memfs.state.feedback import FeedbackStore, name_in, values_of
from memfs.state.metrics import Summary, combined, key_of, named, short

if TYPE_CHECKING:
    from memfs.state.aggregates import Aggregates
    from memfs.state.reader import StateReader


_BASES = {
    "improvement": "the improvement that outputs report",
    "gain": "how much higher hypotheses are rated than their parents",
    "success": "the share of outputs that report success",
    "confidence": "the confidence of outputs",
}


@dataclass(frozen=True, slots=True)
class _Sum:
    uses: int
    by: Mapping[str, Summary]
    cost: Summary


def strategies_in(entries: Iterable[Mapping[str, Any]]) -> tuple[tuple[StrategyOutcome, ...], str]:
    """The strategies in an agent's entries, the best first, and by what they are ordered.

    That is the first of improvement, gain in rating, success and confidence which at least half of the uses tell, or
    else what most of them tell.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        for name, use in as_mapping(entry.get("strategies")).items():
            parts.setdefault(name, []).append(use)
    sums = {name: _sum(several) for name, several in parts.items()}
    if not sums:
        return (), ""
    basis = _basis(sums)
    level = combined(one.by[basis] for one in sums.values())[1]
    made = [_strategy(name, one, basis, level) for name, one in sums.items()]
    none = float("-inf")
    made.sort(key=lambda one: (-(none if one.score is None else one.score), -one.uses, one.name))
    return tuple(made), _BASES[basis]


def _sum(uses: Iterable[Mapping[str, Any]]) -> _Sum:
    several = list(uses)
    by = {name: combined(use[name] for use in several if name in use) for name in ("improvement", "gain", "confidence")}
    good, of = (sum(use.get("successes", (0, 0))[place] for use in several) for place in (0, 1))
    by["success"] = [of, short(good / of) if of else 0.0, 0.0]
    return _Sum(sum(use["uses"] for use in several), by, combined(use["cost"] for use in several if "cost" in use))


def _basis(sums: Mapping[str, _Sum]) -> str:
    uses = sum(one.uses for one in sums.values())
    told = {basis: sum(one.by[basis][0] for one in sums.values()) for basis in _BASES}
    enough = [basis for basis in _BASES if 2 * told[basis] >= uses and told[basis]]
    return enough[0] if enough else max(_BASES, key=lambda basis: told[basis])


def _strategy(name: str, one: _Sum, basis: str, level: float) -> StrategyOutcome:
    means = {key: value[1] if value[0] else None for key, value in one.by.items()}
    score = means[basis]
    least = 0.5 if basis == "success" else level
    improvement = means["improvement"] if means["improvement"] is not None else means["gain"]
    return StrategyOutcome(
        name=name,
        uses=one.uses,
        score=score,
        success_rate=means["success"],
        improvement=improvement,
        confidence=means["confidence"],
        cost=one.cost[1] if one.cost[0] else None,
        successful=score is not None and score >= least and (score > 0 or basis == "confidence"),
    )


_LEAST_OUTPUTS = 3
_ENOUGH_OUTPUTS = 10
_STEP = 0.1
_LEVEL = 0.2
_ALIKE = 0.2

Reason = tuple[float, str]


def suggested(analysis: Analysis, peers: Sequence[float]) -> tuple[float, tuple[str, ...]]:
    """The weight that an analysis suggests, and its reasons.

    Args:
        analysis: of the agent, with its current weight.
        peers: the mean improvement of each other agent, on the same basis.
    """
    current = analysis.current_weight
    active = sum(1 for point in analysis.points if point.outputs or point.metrics)
    if active < 2 or max(analysis.outputs, active) < _LEAST_OUTPUTS:
        counted = f"{analysis.outputs} outputs in {active} iterations"
        return current, (f"the weight stays: {counted} are too little to judge by",)
    found = [reason for reason in _reasons(analysis, peers) if reason[0]]
    if not found:
        return current, ("the weight stays: nothing speaks for more or less",)
    evidence = min(1.0, max(analysis.outputs, active) / _ENOUGH_OUTPUTS)
    move = sum(share for share, _ in found) * evidence
    reasons = [f"{sentence} ({share * 100:+.0f} %)" for share, sentence in found]
    if evidence < 1:
        reasons.append(f"only {analysis.outputs} outputs: the change is made smaller, to {move * 100:+.0f} % in all")
    if current <= 0:
        reasons.append("the weight is 0, so that the agent is switched off: it stays so until somebody raises it")
    return round(max(current, 0.0) * (1 + move), 4), tuple(reasons)


def _reasons(analysis: Analysis, peers: Sequence[float]) -> Iterator[Reason]:
    yield from _improvement(analysis, peers)
    if analysis.diversity is not None and 0 <= analysis.diversity < _ALIKE:
        yield -_STEP, f"its outputs are much alike: diversity {analysis.diversity:.2f}"
    rates = [(one.success_rate, one.uses) for one in analysis.strategies if one.success_rate is not None]
    if rates:
        rate = sum(rate * uses for rate, uses in rates) / sum(uses for _, uses in rates)
        yield round((rate - 0.5) * _LEVEL, 3), f"{rate * 100:.0f} % of what it tried with a named strategy succeeded"


def _improvement(analysis: Analysis, peers: Sequence[float]) -> Iterator[Reason]:
    rate = analysis.improvement_rate
    if rate is None:
        return
    if peers:
        others = sum(peers) / len(peers)
        size = max(abs(rate), abs(others))
        share = round(_LEVEL * (rate - others) / size, 3) if size else 0.0
        compared = "above" if rate > others else "below"
        yield (
            min(max(share, -_LEVEL), _LEVEL),
            f"its improvement rate, {rate:.3g}, is {compared} the others' {others:.3g}",
        )
    elif analysis.improvement_basis.startswith("ratings"):
        yield round((rate - 0.5) * 2 * _LEVEL, 3), f"{rate * 100:.0f} % of its hypotheses are rated above their parents"
    else:
        yield (_STEP if rate > 0 else -_STEP if rate < 0 else 0.0), f"its improvement rate is {rate:.3g}"


MOST_ITERATIONS = 10_000
_RATINGS = "ratings of hypotheses against their parents'"
_OVERLAP = "how little the outputs' words overlap"
_UPDATES = 3
_ACTIVE = ("agent_output", "state_update", "hypothesis")

Entries = Mapping[int, Mapping[str, Any]]


class AgentAnalyst:
    """Analyses agents of one workspace. May be used from several threads."""

    def __init__(self, reader: StateReader, aggregates: Aggregates, feedback: FeedbackStore) -> None:
        self._reader, self._aggregates, self._feedback = reader, aggregates, feedback

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
        numbers = [row.number for row in self._reader.iterations()][-iterations:]
        everybody = self._aggregates.agents(numbers)
        name = self._named(agent, everybody)
        analysis = self._analysis(name, numbers, everybody)
        weight, source = self._weight(name)
        analysis = replace(analysis, current_weight=weight, weight_source=source)
        weight, reasons = suggested(analysis, _peers(name, analysis.improvement_basis, everybody))
        return replace(analysis, suggested_weight=weight, reasons=reasons)

    def _analysis(self, name: str, numbers: Sequence[int], everybody: Mapping[int, Mapping[str, Any]]) -> Analysis:
        entries = {number: as_mapping(everybody.get(number, {}).get(key_of(name))) for number in numbers}
        improvement, improvement_basis = _agent_improvement(entries)
        diversity, diversity_basis = _agent_diversity(entries)
        versions = self._feedback.versions(name, numbers)
        points = tuple(
            _point(number, entries[number], improvement, diversity, versions.get(number, "")) for number in numbers
        )
        strategies, basis = strategies_in(entries.values())
        return Analysis(
            agent=name,
            iterations=tuple(numbers),
            points=points,
            outputs=sum(point.outputs for point in points),
            improvement_rate=_mean(improvement.values()),
            improvement_basis=improvement_basis,
            diversity=_mean(diversity.values()),
            diversity_basis=diversity_basis,
            strategies=strategies,
            strategy_basis=basis,
            feedback=self._feedback.effectiveness(name, numbers) if numbers else (),
        )

    def _named(self, agent: object, everybody: Mapping[int, Mapping[str, Any]]) -> str:
        if not isinstance(agent, str) or not agent.strip():
            raise QueryInvalid("expected the name of an agent", field="agent", hint="give its name as it is stored")
        active = {*self._reader.index.agents(_ACTIVE), *(name for agents in everybody.values() for name in agents)}
        known = active.union(self._reader.index.agents(("meta_review",)))
        if name := name_in(sorted(active), agent) or name_in(sorted(known), agent):
            return name
        hint = nearest(agent, known) or (
            f"there are {', '.join(sorted(known)[:20])}" if known else "none did anything yet"
        )
        raise ItemNotFound(f"nothing is known of an agent {agent[:100]!r}", hint=hint)

    # -- the present weight ---------------------------------------------------------------------------------------
    def _weight(self, agent: str) -> tuple[float, str]:
        """The agent's weight at present, and where it is written: the newest state update, else the configuration."""
        newest = StateQuery(kinds=("state_update",), agents=(agent,), newest=True, limit=_UPDATES)
        for row in self._reader.rows(newest):
            try:
                values = self._reader.load(row)
            except (MemfsError, FileNotFoundError):
                continue
            weights = as_mapping(as_mapping(values.get("orchestration_state")).get("agent_weights"))
            if (found := as_number(weights.get(agent))) is not None:
                return found, row.path
        try:
            weights = read_system_config(self._reader.files.seen, self._reader.parts.codec).agent_weights
        except MemfsError:
            weights = {}
        found = as_number(weights.get(agent))
        return (1.0, "default") if found is None else (found, "system_config.agent_weights")


# -- improvement and diversity ------------------------------------------------------------------------------------
def _agent_improvement(entries: Entries) -> tuple[dict[int, float], str]:
    """The improvement rate by iteration, by what more of them tell: ratings, or a metric of that name."""
    rated = {place: _better(entry) for place, entry in entries.items() if "gains" in entry}
    metric, told = _metric(entries, "improvement")
    if rated and len(rated) >= len(told):
        return rated, _RATINGS
    return (told, f"metric {metric}") if told else ({}, "")


def _better(entry: Mapping[str, Any]) -> float:
    return short(entry["better"] / entry["gains"][0])


def _agent_diversity(entries: Entries) -> tuple[dict[int, float], str]:
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
    """The mean improvement of each other agent, on the same basis."""
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


# -- points -------------------------------------------------------------------------------------------------------
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


def _mean(values: Iterable[float]) -> float | None:
    given = list(values)
    return short(math.fsum(given) / len(given)) if given else None
