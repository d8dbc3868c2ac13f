"""Effectiveness: how an agent did after a feedback, against before (seed 001; S5).

Owns which iterations are compared, and when a difference is one. Works on the entries of ``effectiveness_metrics``;
where they and the records come from is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memfs.model.insights import FeedbackEffect, MetricChange
from memfs.states.measures import Summary, combined, key_of, less_is_better, mapping, short

WINDOW = 3
"""So many iterations before and after are compared at most."""
LEAST = 3
"""A metric with fewer values on either side says nothing."""
_CLEAR = 0.2
_MOST_EFFECT = 3.0

Agents = Mapping[int, Mapping[str, Any]]
"""The entries of agents, by iteration and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """That an agent was given a version of feedback in an iteration, from the review of another."""

    agent: str
    version: str
    from_iteration: int
    iteration: int
    order: int = 0


@dataclass(frozen=True, slots=True)
class _Span:
    """One version for one agent: the first iteration that was worked under it."""

    given: tuple[Given, ...]
    start: int

    @property
    def order(self) -> tuple[int, int, int, str]:
        first = self.given[0]
        return (self.start, first.iteration, first.order, first.version)


def spans(given: Iterable[Given]) -> dict[str, list[_Span]]:
    """The versions that each agent was given, in order."""
    by: dict[tuple[str, str], list[Given]] = {}
    for one in given:
        by.setdefault((one.agent, one.version), []).append(one)
    found: dict[str, list[_Span]] = {}
    for (agent, _), several in by.items():
        ordered = tuple(sorted(several, key=lambda one: (one.iteration, one.order)))
        start = max(ordered[0].from_iteration + 1, ordered[0].iteration)
        found.setdefault(agent, []).append(_Span(ordered, start))
    return {agent: sorted(found[agent], key=lambda span: span.order) for agent in sorted(found)}


def compared(given: Iterable[Given], iterations: Sequence[int]) -> list[FeedbackEffect]:
    """For each version of feedback the iterations that are compared; nothing is measured yet.

    Before are those that were worked under the feedback before it, after are those until the next one.
    """
    found = []
    for agent, several in spans(given).items():
        for place, span in enumerate(several):
            begin = several[place - 1].start if place else -1
            end = several[place + 1].start if place + 1 < len(several) else math.inf
            before = [number for number in iterations if begin <= number < span.start]
            after = [number for number in iterations if span.start <= number < end]
            found.append(
                FeedbackEffect(
                    agent=agent,
                    version=span.given[0].version,
                    from_iteration=span.given[0].from_iteration,
                    given_in=tuple(sorted({one.iteration for one in span.given})),
                    before=tuple(before[-WINDOW:]),
                    after=tuple(after[:WINDOW]),
                )
            )
    return found


def measured(plan: FeedbackEffect, agents: Agents) -> FeedbackEffect:
    """What came of a feedback: each metric before and after, and a verdict.

    ``better`` or ``worse`` where the metrics that can be compared moved by a fifth of a standard deviation on average,
    each counted the way that is good for it: less of what by its name is a cost or an error.
    """
    name = key_of(plan.agent)
    sides = [[mapping(agents.get(number, {}).get(name)) for number in some] for some in (plan.before, plan.after)]
    n_before, n_after = (sum(entry.get("outputs", 0) for entry in side) for side in sides)
    before, after = (_metrics(side) for side in sides)
    changes = tuple(_change(metric, before[metric], after[metric]) for metric in sorted(before.keys() & after.keys()))
    verdict, reason = _verdict(changes, n_before, n_after)
    values = {"n_before": n_before, "n_after": n_after, "metrics": changes, "verdict": verdict, "reason": reason}
    return FeedbackEffect.from_dict({**plan, **values})


def values_of(entry: Mapping[str, Any]) -> dict[str, Summary]:
    """Everything that can be compared in an agent's entry, by metric; what its outputs say before what is reported."""
    values: dict[str, Summary] = {name: [1, value, 0.0] for name, value in mapping(entry.get("reported")).items()}
    values |= mapping(entry.get("metrics"))
    values |= {name: entry[name] for name in ("confidence", "cost") if name in entry}
    if "gains" in entry:
        values["rating_gain"] = entry["gains"]
    return values


def _metrics(entries: Iterable[Mapping[str, Any]]) -> dict[str, Summary]:
    lists: dict[str, list[Summary]] = {}
    for entry in entries:
        for name, value in values_of(entry).items():
            lists.setdefault(name, []).append(value)
    return {name: combined(values) for name, values in lists.items()}


def _change(metric: str, before: Summary, after: Summary) -> MetricChange:
    change = after[1] - before[1]
    return MetricChange(
        metric=metric,
        before=before[1],
        after=after[1],
        change=short(change),
        n_before=int(before[0]),
        n_after=int(after[0]),
        effect=_effect(metric, before, after, change),
    )


def _effect(metric: str, before: Summary, after: Summary, change: float) -> float | None:
    count = before[0] + after[0]
    if min(before[0], after[0]) < LEAST:
        return None
    spread = math.sqrt((before[0] * before[2] ** 2 + after[0] * after[2] ** 2) / count)
    size = change / spread if spread else math.copysign(_MOST_EFFECT, change) if change else 0.0
    better = -size if less_is_better(metric) else size
    return round(min(max(better, -_MOST_EFFECT), _MOST_EFFECT), 3)


def _verdict(changes: Sequence[MetricChange], n_before: int, n_after: int) -> tuple[str, str]:
    usable = [(one.effect, one) for one in changes if one.effect is not None]
    if not usable:
        reason = f"{n_before} outputs before and {n_after} after; {LEAST} values on each side are needed to compare"
        return "too little data", reason
    mean = math.fsum(effect for effect, _ in usable) / len(usable)
    verdict = "better" if mean > _CLEAR else "worse" if mean < -_CLEAR else "no clear change"
    strongest = max(usable, key=lambda pair: (abs(pair[0]), pair[1].metric))[1]
    moved = f"{strongest.metric} went from {strongest.before:.4g} to {strongest.after:.4g}"
    counted = f"{strongest.n_before} values before and {strongest.n_after} after"
    better, worse = sum(effect > _CLEAR for effect, _ in usable), sum(effect < -_CLEAR for effect, _ in usable)
    many = f"; of {len(usable)} metrics {better} got better and {worse} worse" if len(usable) > 1 else ""
    return verdict, f"{moved} ({counted}){many}"
