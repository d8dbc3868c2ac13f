"""Figures: how much each tier tried, and what it found.

Collects one row for each tier, across worker processes, into a table. A row travels as a property of the test's report,
so that it survives ``pytest -n``.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROPERTY = "fault figures"
COLUMNS = ("points", "acknowledged", "lost", "torn", "seconds")

HEAD = """# Figures of the last soak

Written by `make soak`. A point is one injected fault: a kill, a power cut, a failed system call, a fuzzed file. Lost
counts acknowledged writes that were missing afterwards, torn counts files that were neither the old nor the new one.

"""


def rows_of(reports: Iterable[Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The rows in the reports of a run: tier and figures, by tier."""
    found = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    return sorted(((str(tier), dict(figures)) for tier, figures in found), key=lambda row: row[0])


def table(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The rows as a Markdown table: the usual columns first, then what only some tiers count."""
    others = dict.fromkeys(name for _, figures in rows for name in figures if name not in COLUMNS)
    columns = [name for name in COLUMNS if any(name in figures for _, figures in rows)] + list(others)
    lines = [["tier", *columns], ["---", *("---:" for _ in columns)]]
    lines += [[tier, *(_shown(figures.get(name, "")) for name in columns)] for tier, figures in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write(target: Path, rows: Sequence[tuple[str, Mapping[str, Any]]], skipped: Sequence[str]) -> None:
    """Write the table, and which tiers could not run, as a page."""
    made = f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    missing = "".join(f"- not run: {reason}\n" for reason in skipped)
    target.write_text(f"{HEAD}{table(rows)}\n{missing}\nMeasured {made}.\n", encoding="utf-8")
