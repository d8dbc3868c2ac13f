"""Rows: what one measurement found, and what its budget says of it.

The budgets are in a table here; ``docs/decisions/`` says how they came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.samples import Samples

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the result.

    Attributes:
        part: which part of the benchmark it comes from.
        name: what was measured.
        size: how many items the workspace held.
        engine: the search engine, "" where none takes part.
        value: the median, or the one figure there is.
        p95: 95th percentile, None where there is one figure.
        unit: of ``value``.
        yardstick: what ran beside it in the same minute, "" if nothing.
        floor: the yardstick's median, in the same unit.
        count: how many times it was measured.
    """

    part: str
    name: str
    size: int
    engine: str
    value: float
    p95: float | None = None
    unit: str = "ms"
    yardstick: str = ""
    floor: float | None = None
    floor_p95: float | None = None
    count: int = 1

    @property
    def ratio(self) -> float | None:
        """How many times the yardstick's median."""
        return self.value / self.floor if self.floor else None

    @property
    def ratio_p95(self) -> float | None:
        """How many times the yardstick's 95th percentile."""
        return self.p95 / self.floor_p95 if self.p95 is not None and self.floor_p95 else None


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget: which rows it holds for, which figure of theirs is meant, and how much it may be.

    Attributes:
        name: of the rows.
        figure: attribute of ``Row``.
        most: the limit; for ``least`` it is the minimum instead.
        sizes: the numbers of items it is promised for, empty for all.
        engine: the only engine it is promised for, "" for all.
    """

    name: str
    figure: str
    most: float
    sizes: tuple[int, ...] = ()
    engine: str = ""
    least: bool = False

    def holds_for(self, row: Row) -> bool:
        """Whether the budget speaks of this row."""
        sized = not self.sizes or row.size in self.sizes
        return row.name == self.name and sized and self.engine in ("", row.engine)

    def used(self, row: Row) -> float:
        """How much of the budget was used: 1 is all of it."""
        measured: float = getattr(row, self.figure)
        return self.most / measured if self.least else measured / self.most

    def __str__(self) -> str:
        figure = {"value": "", "p95": "p95 ", "ratio": "yardstick x "}[self.figure]
        return f"{figure}{'>' if self.least else '<'} {self.most:,.10g}"


PUT, UPDATE = "put, new item", "put, changed item"
SCAN = "look for secrets in an item"
ACCOUNTED = "put, quotas set"
COMMIT_1, COMMIT_50 = "commit, window of 1", "commit, window of 50"
IMPORT = "import (lines of a file)"
RECALL, FILTERED = "recall", "recall, type and date"
CAUGHT_UP = "catch-up, every file changed"
NOTHING, NOTHING_FIRST = "catch-up, nothing changed", "catch-up, nothing changed, first scan of a process"
CONTENT, HISTORY, INDEX = "content", "history, packed", "index"
TOGETHER = "content + history + index"
BESIDE = "beside them in .git"
SHORT = ", memories of up to 100 characters"
INTAKE = "store through the intake: filter, reviews, comparison"
ANSWERED = "retrieve 10 hits, no repeats, 2,000 tokens"
NOTHING_MATCHES, RECORD = "check_triggers, nothing matches", "record_outcome"
GROWTH = "put, new item: time at the largest size / at the smallest"
_SMALL = (1_000, 10_000)
_LARGE = (100_000,)

BUDGETS: tuple[Limit, ...] = (
    Limit(PUT, "ratio", 10),
    Limit(UPDATE, "ratio", 10),
    Limit(SCAN, "ratio", 1),
    Limit(ACCOUNTED, "ratio", 1.25),
    Limit(GROWTH, "value", 1.5),
    Limit(COMMIT_1, "value", 50, _SMALL),
    Limit(COMMIT_50, "value", 50, _SMALL),
    Limit(IMPORT, "value", 1_000, _SMALL, "whoosh", least=True),
    Limit(IMPORT, "value", 3_000, _SMALL, "sqlite", least=True),
    Limit(FILTERED, "value", 5, _SMALL, "whoosh"),
    Limit(FILTERED, "value", 5, _SMALL, "sqlite"),
    *(Limit(FILTERED, "value", 20, _LARGE, engine) for engine in ("whoosh", "sqlite")),
    *(Limit(FILTERED, "p95", 50, _LARGE, engine) for engine in ("whoosh", "sqlite")),
    Limit(CAUGHT_UP, "value", 10_000, _SMALL),
    Limit(NOTHING, "value", 60, _SMALL),
    Limit(NOTHING_FIRST, "value", 60, _SMALL),
    Limit("memfs recall", "value", 400, _SMALL, "whoosh"),
    Limit("memfs recall", "value", 150, _SMALL, "sqlite"),
    *(Limit("memfs recall", "value", 1_000, _LARGE, engine) for engine in ("whoosh", "sqlite")),
    Limit("memfs --help", "value", 80),
    Limit("memfs remember", "value", 500, _SMALL),
    Limit(INTAKE, "p95", 50, _SMALL),
    Limit(ANSWERED, "p95", 50, _SMALL),
    Limit(f"{ANSWERED}, ranked by use", "p95", 50, _SMALL),
    Limit(NOTHING_MATCHES, "value", 1, _SMALL),
    Limit(RECORD, "ratio", 10),
    Limit(CONTENT + SHORT, "value", 2.6 * MEGABYTE, _SMALL),
    Limit(HISTORY + SHORT, "value", 3.0 * MEGABYTE, _SMALL),
    Limit(INDEX + SHORT, "value", 4.3 * MEGABYTE, _SMALL, "whoosh"),
    Limit(TOGETHER + SHORT, "value", 10 * MEGABYTE, _SMALL),
)


def timed(
    part: str, name: str, size: int, engine: str, samples: Samples, yardstick: str = "", floor: Samples | None = None
) -> Row:
    """A row of durations, beside those of a yardstick."""
    return Row(
        part=part,
        name=name,
        size=size,
        engine=engine,
        value=samples.p50,
        p95=samples.p95 if len(samples.values) > 1 else None,
        yardstick=yardstick,
        floor=floor.p50 if floor else None,
        floor_p95=floor.p95 if floor else None,
        count=len(samples.values),
    )


def limits(row: Row) -> list[Limit]:
    """The budgets that speak of a row."""
    return [limit for limit in BUDGETS if limit.holds_for(row) and getattr(row, limit.figure) is not None]


def growth(rows: Sequence[Row]) -> list[Row]:
    """How the time of a put grows from the smallest to the largest size, measured against the yardstick of each run."""
    found = []
    for engine in dict.fromkeys(row.engine for row in rows if row.name == PUT):
        ratios = {row.size: row.ratio for row in rows if row.name == PUT and row.engine == engine and row.ratio}
        small, large = min(ratios, default=0), max(ratios, default=0)
        if small < large:
            value = (ratios[large] or 0) / (ratios[small] or 1)
            found.append(Row(part="put", name=GROWTH, size=large, engine=engine, value=value, unit="x"))
    return found
