"""Report: rows as lines for a terminal and as Markdown tables for ``benchmarks/README.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row, limits

_BEGIN, _END = "<!-- results: written by `python -m benchmarks --write` -->", "<!-- end of results -->"
_MANY = 10_000.0
_HEADINGS = ("what", "engine", "p50", "p95", "yardstick p50", "ratio p50 / p95", "budget", "used", "verdict")


def line(row: Row) -> str:
    """One row for a terminal."""
    what, engine, p50, p95, yard, ratio, budget, used, verdict = cells(row)
    figures = f"{p50} / {p95}" if p95 else p50
    beside = f"  = {ratio} x {row.yardstick} ({yard})" if ratio else ""
    judged = f"  [{verdict}: budget {budget}, used {used}]" if budget else ""
    return f"{row.size:>7}  {engine:<7} {what:<52} {figures:>22}{beside}{judged}"


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row, in the order of the headings."""
    spoken = limits(row)
    missed = [limit for limit in spoken if limit.used(row) > 1]
    yard = _figure(row.floor, row.unit) if row.floor is not None else ""
    return (
        row.name,
        row.engine,
        _figure(row.value, row.unit),
        _figure(row.p95, row.unit) if row.p95 is not None else "",
        yard,
        " / ".join(f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}" for ratio in (row.ratio, row.ratio_p95) if ratio),
        ", ".join(map(str, spoken)),
        ", ".join(f"{limit.used(row):.0%}" for limit in spoken),
        ("missed" if missed else "ok") if spoken else "",
    )


def _figure(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1e6:.2f} MB"
    if unit == "items/s":
        return f"{value:,.0f} items/s"
    if unit == "x":
        return f"{value:.2f} x"
    if value >= _MANY:
        return f"{value / 1000:.1f} s"
    return f"{value:.3g} ms" if value < 999 else f"{value:.0f} ms"


def summary(rows: Sequence[Row]) -> str:
    """How many budgets were kept, and which were not."""
    judged = [(row, limit) for row in rows for limit in limits(row)]
    missed = [(row, limit) for row, limit in judged if limit.used(row) > 1]
    lines = [f"{len(judged) - len(missed)} of {len(judged)} budgets kept."]
    lines += [f"missed: {row.name}, {row.size:,} items, {row.engine}: {limit.used(row):.2f} x" for row, limit in missed]
    return "\n".join(lines)


def markdown(rows: Sequence[Row], facts: Sequence[tuple[str, str]]) -> str:
    """Facts, summary, and a table for each size."""
    parts = ["\n".join(f"- {name}: {value}" for name, value in facts)]
    counted, *missed = summary(rows).splitlines()
    parts.append("\n".join([counted, *(["", *(f"- {one}" for one in missed)] if missed else [])]))
    for size in sorted({row.size for row in rows}):
        parts.append(f"### {size:,} items")
        table = [_HEADINGS, ("---",) * len(_HEADINGS), *(_marked(row) for row in rows if row.size == size)]
        parts.append("\n".join(f"| {' | '.join(one)} |" for one in table))
    return "\n\n".join(parts) + "\n"


def _marked(row: Row) -> tuple[str, ...]:
    shown = list(cells(row))
    if row.yardstick:
        shown[4] = f"{shown[4]} ({row.yardstick})"
    if shown[-1] == "missed":
        shown[-1] = "**missed**"
    return tuple(shown)


def write(page: Path, text: str) -> None:
    """Put the results between the marks of a page, and leave the rest of it as it is.

    Raises:
        ValueError: the page has no marks.
    """
    before = page.read_text(encoding="utf-8")
    head, begin, rest = before.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{page.name} has no marks for the results")
    page.write_text(f"{head}{_BEGIN}\n\n{text}\n{_END}{tail}", encoding="utf-8")
