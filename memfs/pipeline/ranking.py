"""Ranking: one score from named factors.

Owns the factors and the presets that weigh them. A factor sees a candidate, the query and the time; it opens no file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from memfs.errors import SettingInvalid
from memfs.model import Candidate, Query
from memfs.model.kinds import nearest

Factor = Callable[[Candidate, Query, datetime], float]

_SECONDS_PER_DAY = 86400.0


def text(candidate: Candidate, query: Query, now: datetime) -> float:  # noqa: ARG001  every factor has one signature
    """How well the words match; 1 where nothing was asked."""
    return candidate.similarity if query.text.strip() else 1.0


def importance(candidate: Candidate, query: Query, now: datetime) -> float:  # noqa: ARG001
    """The weight a person or feedback gave the item."""
    return max(candidate.importance, 0.01)


def recency(candidate: Candidate, query: Query, now: datetime) -> float:  # noqa: ARG001
    """1 for now, falling to a half after ten days (seed 003: 1 / (1 + 0.1 x days))."""
    days = max(0.0, (now - candidate.timestamp).total_seconds() / _SECONDS_PER_DAY)
    return 1.0 / (1.0 + 0.1 * days)


FACTORS: Mapping[str, Factor] = {"text": text, "importance": importance, "recency": recency}
PRESETS: Mapping[str, Mapping[str, float]] = {
    "default": {"text": 1.0, "importance": 1.0},
    "time_weighted": {"text": 1.0, "importance": 1.0, "recency": 1.0},
}


def preset(name: str) -> Mapping[str, float]:
    """The exponents of a preset, by factor.

    Raises:
        SettingInvalid: no such preset; the hint names the nearest.
    """
    if name not in PRESETS:
        hint = nearest(name, PRESETS) or "known: " + ", ".join(PRESETS)
        raise SettingInvalid(f"unknown ranking preset {name!r}", field="recall.preset", hint=hint)
    return PRESETS[name]


def score(
    candidate: Candidate, query: Query, now: datetime, weights: Mapping[str, float]
) -> tuple[float, dict[str, float]]:
    """The product of the factors, each to the power of its weight, and the value of each factor."""
    values = {name: FACTORS[name](candidate, query, now) for name in weights}
    product = 1.0
    for name, value in values.items():
        product *= value ** weights[name]
    return product, values
