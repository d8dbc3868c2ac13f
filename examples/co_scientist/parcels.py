"""The world that is looked into: parcels that came late, and how well a hypothesis explains which.

The data is made up, and so is the score. No agent knows the reasons below; they only see the parcels.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache

FEATURES = {
    "carrier": ("NordPost", "BlueVan", "Kestrel"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
    "depot": ("north", "south", "harbour"),
    "weather": ("dry", "rain", "snow"),
    "weight": ("light", "heavy"),
}
WORDS = tuple(f"{name}={value}" for name, values in FEATURES.items() for value in values)
_REASONS = (
    {"carrier=BlueVan", "day=Monday"},
    {"depot=north", "weather=snow"},
    {"carrier=NordPost", "weight=heavy", "weather=rain"},
    {"depot=harbour", "day=Saturday"},
    {"carrier=Kestrel", "weather=snow"},
)

Cause = frozenset[str]
"""What must hold together, such as ``carrier=BlueVan`` and ``day=Monday``."""
Parcel = tuple[frozenset[str], bool]
"""What is known of a parcel, and whether it was late."""


@cache
def parcels() -> tuple[Parcel, ...]:
    """Six hundred of them, the same ones each time; a few are late, or in time, for no reason."""
    dice = random.Random("waybill")  # noqa: S311  nothing is secret here
    made = []
    for _ in range(600):
        facts = frozenset(f"{name}={dice.choice(values)}" for name, values in FEATURES.items())
        late = any(reason <= facts for reason in _REASONS)
        made.append((facts, late != (dice.random() < 0.03)))
    return tuple(made)


def explains(causes: Iterable[Cause], facts: frozenset[str]) -> bool:
    """Whether one of the causes holds for a parcel."""
    return any(cause <= facts for cause in causes)


def score(causes: Iterable[Cause], sample: Iterable[Parcel] | None = None) -> float:
    """How well causes tell late parcels from others: F1, 0 to 1."""
    causes = tuple(causes)
    seen = list(parcels() if sample is None else sample)
    hits = sum(late and explains(causes, facts) for facts, late in seen)
    claimed = sum(explains(causes, facts) for facts, _ in seen)
    late = sum(late for _, late in seen)
    return round(2 * hits / (claimed + late), 4) if claimed + late else 0.0


def puzzling(causes: Iterable[Cause]) -> list[str]:
    """What the late parcels that no cause explains have in common more often than others, the most telling first."""
    causes = tuple(causes)
    left = [facts for facts, late in parcels() if late and not explains(causes, facts)]
    rest = [facts for facts, late in parcels() if not late]
    if not left:
        return []
    lift = {
        word: sum(word in facts for facts in left) / len(left) - sum(word in facts for facts in rest) / len(rest)
        for word in WORDS
    }
    return sorted((word for word in WORDS if lift[word] > 0.1), key=lambda word: -lift[word])
