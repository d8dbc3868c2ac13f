"""Samples: durations and what they amount to.

Median and percentile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Samples:
    """Durations of one thing done many times, in milliseconds."""

    values: list[float] = field(default_factory=list)

    def time(self, action: Callable[[], T]) -> T:
        """Do it once, and keep how long it took."""
        start = time.perf_counter_ns()
        result = action()
        self.values.append((time.perf_counter_ns() - start) / 1e6)
        return result

    @property
    def p50(self) -> float:
        """The median."""
        return self.at(0.5)

    @property
    def p95(self) -> float:
        """What 19 of 20 stay under."""
        return self.at(0.95)

    def at(self, share: float) -> float:
        """The smallest value that this share of all values does not exceed."""
        ordered = sorted(self.values)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
