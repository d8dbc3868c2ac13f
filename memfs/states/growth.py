"""Growth: what each iteration weighs, and how that develops (S15).

Owns the counting, iterations in the tree and in archives alike. What areas weigh, ``memfs.upkeep.areas`` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memfs.model.statepaths import ITERATIONS, iteration_of
from memfs.states.archives import Archives
from memfs.store.parts import Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationUse:
    """What one iteration weighs: its documents as they are or were in the tree, and how much of that is archived."""

    number: int
    documents: int
    bytes: int
    archived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How iterations grow.

    Attributes:
        iterations: by number.
        mean: bytes of an iteration, on average: by so much everything grows with each.
        slope: by how many bytes each iteration is larger than the one before, by the line that fits best; near 0 where
            growth is linear.
    """

    iterations: tuple[IterationUse, ...]
    mean: float
    slope: float


def growth_of(parts: Parts, archives: Archives) -> Growth:
    """Weigh every iteration."""
    there: dict[int, dict[str, int]] = {}
    for entry in parts.seen.scan(ITERATIONS):
        number = iteration_of(entry.path)
        if number is not None and entry.regular:
            there.setdefault(number, {})[entry.path] = entry.size
    gone: dict[int, dict[str, int]] = {}
    for number in archives.iterations():
        live = there.get(number, {})
        held = archives.of_iteration(number)
        gone[number] = {path: member.bytes for path, (_, member) in held.items() if path not in live}
    rows = []
    for number in sorted(there.keys() | gone.keys()):
        live, packed = there.get(number, {}), gone.get(number, {})
        archived = sum(packed.values())
        rows.append(
            IterationUse(
                number=number,
                documents=len(live) + len(packed),
                bytes=sum(live.values()) + archived,
                archived=archived,
            )
        )
    return Growth(iterations=tuple(rows), mean=_mean([row.bytes for row in rows]), slope=_slope(rows))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _slope(rows: Sequence[IterationUse]) -> float:
    """Least squares over the iterations' numbers."""
    middle, mean = _mean([row.number for row in rows]), _mean([row.bytes for row in rows])
    spread = sum((row.number - middle) ** 2 for row in rows)
    return sum((row.number - middle) * (row.bytes - mean) for row in rows) / spread if spread else 0.0
