"""``state export``: documents of multi-agent systems, for analysis elsewhere."""

from __future__ import annotations

from typing import Any

import click

from memfs.doors.cli.command import Unclear, verb
from memfs.doors.cli.export import ExportReport, export_options, export_text, exported, incomplete


@verb("export", text=export_text, exit_code=incomplete)
@export_options
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type of document; repeat it.")
@click.option("--iteration", "spans", multiple=True, metavar="N[-M]", help="Only these iterations; repeat it.")
def export(types: tuple[str, ...], spans: tuple[str, ...], **given: Any) -> ExportReport:
    """Write state documents into FILE, or to standard output, as JSON Lines that 'memfs import' reads back.

    A line is {"path", "type", "iteration", "sha256", "document"}. CSV and Parquet have a column for each field and are
    for other programs. Without --type everything below iterations/ is exported, archived iterations included; the type
    aggregate are the files that sum them up.

    Exit code 1: refused, or a document could not be read and is missing.

    Examples:
        memfs state export state.jsonl
        memfs state export outputs.csv --type agent_output --agent "Evolution Agent" --iteration 3-7
        memfs state export --type hypothesis --since 7d | jq .document.rating
    """
    numbers = tuple(number for written in spans for number in _span(written))
    return exported(types=types, iterations=numbers, **given)


def _span(written: str) -> range:
    first, dash, last = written.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(written) > 30:
        raise Unclear(f"--iteration: {written!r} is no iteration", "write 3, or 3-7")
    begin, end = int(first), int(last or first)
    if end < begin or end - begin > 1_000_000:
        raise Unclear(f"--iteration: {written!r} is no span", "write the smaller number first")
    return range(begin, end + 1)
