"""Strategies: what came of each strategy that an agent used (seed 001; S11).

Owns by what strategies are compared, and which count as successful. Works on the entries of ``effectiveness_metrics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memfs.model.insights import Strategy
from memfs.states.measures import Summary, combined, mapping, short

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


def strategies_in(entries: Iterable[Mapping[str, Any]]) -> tuple[tuple[Strategy, ...], str]:
    """The strategies in an agent's entries, the best first, and by what they are ordered.

    That is the first of improvement, gain in rating, success and confidence which at least half of the uses tell, or
    else what most of them tell.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        for name, use in mapping(entry.get("strategies")).items():
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


def _strategy(name: str, one: _Sum, basis: str, level: float) -> Strategy:
    means = {key: value[1] if value[0] else None for key, value in one.by.items()}
    score = means[basis]
    least = 0.5 if basis == "success" else level
    improvement = means["improvement"] if means["improvement"] is not None else means["gain"]
    return Strategy(
        name=name,
        uses=one.uses,
        score=score,
        success_rate=means["success"],
        improvement=improvement,
        confidence=means["confidence"],
        cost=one.cost[1] if one.cost[0] else None,
        successful=score is not None and score >= least and (score > 0 or basis == "confidence"),
    )
