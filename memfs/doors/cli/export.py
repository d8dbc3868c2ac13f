"""``export``: memories as JSON Lines, CSV or Parquet; and how ``state export`` does the same for documents."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, complete_types, invocation, opened, options, verb
from memfs.doors.cli.options import span
from memfs.doors.cli.output import Note, Text, count, listed, merge, styled, write
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.state.transfer import ExportResult

_NAMED = 20
_MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What went into a file.

    Attributes:
        file: the file; null where it went to standard output.
        done: how much went into it; of which these fields are inlined.
    """

    file: Path | None
    done: ExportResult = field(metadata=merge("documents=total counts bytes missing"))


def export_text(done: ExportReport) -> Text:
    """What an export says of itself."""
    found = done.done
    yield from (Note(line.strip()) for line in listed("missing:", found.missing, _NAMED))
    if done.file is not None:
        what = counted(found.counts)
        yield f"{styled('Exported', fg='green')} {what} to {done.file} ({found.bytes:,} bytes)"


def counted(counts: Mapping[str, int]) -> str:
    """``2 memories``, or ``3 documents (2 hypothesis, 1 feedback)``."""
    if counts.keys() <= {_MEMORY}:
        return count(counts.get(_MEMORY, 0), "memory", "memories")
    parts = ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
    return f"{count(sum(counts.values()), 'document')} ({parts})"


def incomplete(done: ExportReport) -> bool:
    """Whether something is missing."""
    return bool(done.done.missing)


export_options = options(
    click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True), metavar="[FILE]"),
    click.option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]),
                 help="Default: by FILE's ending, else jsonl."),
    click.option("--agent", "agents", multiple=True, metavar="NAME", help="By or about this agent; may be repeated."),
    span,
    click.option("--replace", is_flag=True, help="Replace FILE if it is there."),
)  # fmt: skip
"""Give a verb what every export takes."""


def _text(done: ExportReport) -> Text:
    yield from export_text(done)
    if not done.done.total:
        yield Note("0 memories to export; 'memfs state export' writes the documents of multi-agent systems")


@verb("export", text=_text, exit_code=incomplete)
@export_options
@click.option(
    "--type",
    "items",
    multiple=True,
    metavar="TYPE",
    shell_complete=complete_types,
    help="Only this type of memory; may be repeated.",
)
def export(**given: Any) -> ExportReport:
    """Write memories into FILE, or to standard output, as JSON Lines that 'memfs import' reads back.

    A line is {"path", "type", "iteration", "sha256", "document", "text"}: 'document' has the fields of the memory,
    'text' the file as it is, comments included, which an import restores unless the fields were changed. CSV and
    Parquet have a column for each field and are for other programs. 'memfs state export' writes the documents of
    multi-agent systems. An export that fails leaves FILE as it was.

    Exit code 1: refused, or a memory could not be read and is missing.

    Examples:
        memfs export memories.jsonl
        memfs export --since 7d | jq .document.title
        memfs export --type convention platform.jsonl
        memfs -C old export | memfs -C new import -
    """
    return exported(types=(_MEMORY,), **given)


def exported(
    *,
    types: tuple[str, ...],
    iterations: tuple[int, ...] = (),
    file: str | None,
    form: str | None,
    agents: tuple[str, ...],
    since: str | None,
    until: str | None,
    replace: bool,
    items: tuple[str, ...] = (),
) -> ExportReport:
    """Write what passes the filters.

    Raises:
        UsageError: an option says nothing that can be done.
        Conflict, StorageIO, QuotaExceeded: there is no file then.
    """
    from memfs.state.transfer import export_query, format_of

    target = None if file in (None, "-") else Path(str(file)).absolute()
    if target is None and invocation().json:
        raise click.UsageError("--json says what went into FILE; the export itself goes to standard output")
    if target is not None and not form and target.suffix and not format_of(target.name):
        raise Unclear(f"no format ends in {target.suffix}", "end the name in .jsonl, .csv or .parquet, or say --format")
    if target is None and form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal: name a FILE")
    start, end = moment("--since", since), moment("--until", until, end=True)
    query = export_query(types, agents, iterations, start, end, items)
    with opened() as workspace:
        for name in items:
            workspace.kinds.get(name)
        done = workspace.states.exporter.export(target or _Output(), form or "", query, replace=replace)
    return ExportReport(target, done)


class _Output:
    """Standard output, for bytes."""

    def write(self, data: bytes, /) -> None:
        """Write all of it."""
        write(data)
