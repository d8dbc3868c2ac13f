"""Review annotations: a report as the workflow commands that GitHub shows beside the lines of a pull request (B4).

Owns the commands and their escapes: what a memory holds can neither end a command nor begin another.
"""

from __future__ import annotations

from collections.abc import Iterator

from memfs.files.textguard import shown
from memfs.model.problem import ERROR, WARNING
from memfs.teams.reviewtext import summary
from memfs.teams.reviewvalues import NOTE, Finding, Report

_NAMES = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
_MOST = 50
"""GitHub shows ten of each sort for a step; the others stand in the log."""


def commands(report: Report) -> Iterator[str]:
    """The lines to print: a command for each finding, the worst first, and a line that sums up."""
    for one in report.findings[:_MOST]:
        yield _command(one, report.prefix)
    if len(report.findings) > _MOST:
        yield f"and {len(report.findings) - _MOST} more findings"
    yield f"memfs: {_message(summary(report))}"


def _command(one: Finding, prefix: str) -> str:
    path = f"{prefix}/{one.path}" if prefix and one.path else one.path
    properties = {"file": path, "line": str(one.line or 1) if path else "", "title": f"memfs: {one.code}"}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    hint = f" ({one.hint})" if one.hint else ""
    return f"::{_NAMES[one.severity]} {told}::{_message(one.message + hint)}"


def _message(text: str) -> str:
    return shown(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
