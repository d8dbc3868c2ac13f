"""Show the sources that give agents their context, and test them."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from memfs.context.plugins import SourceCheck, SourceRow, examined, listed
from memfs.doors.cli.command import verb
from memfs.doors.cli.config import note_ignored
from memfs.doors.cli.output import Note, Table, Text, count, styled
from memfs.doors.cli.parser import Actions

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def _list_text(rows: tuple[SourceRow, ...]) -> Text:
    yield Table([(row.name, row.layer or "?", _state(row), row.where) for row in rows], dim=(3,))


def _state(row: SourceRow) -> str:
    if not row.setting:
        return "not enabled"
    wrong = "" if row.enabled else "in the wrong list: " if row.trusted else "not trusted: "
    return f"{wrong}{row.setting}, {row.origin}"


@verb("list", text=_list_text, key="sources")
def list_(workspace: Workspace) -> tuple[SourceRow, ...]:
    """List the sources: built in, installed, and named in the settings. None of others is imported for that.

    Examples:
        memfs admin plugins list
        memfs admin plugins list --json
    """
    found = listed(workspace.root, workspace.settings)
    note_ignored(workspace.root)
    return tuple(found)


def _check_text(report: tuple[SourceCheck, ...]) -> Text:
    for one in report:
        mark = styled("broken", fg="red") if one.failure else styled("works", fg="green")
        said = f"said {count(one.letters, 'letter')}" if one.letters else "had nothing to say"
        told = one.failure if one.failure else f"{said} in {one.seconds * 1000:.0f} ms"
        yield f"{mark}  {styled(one.name, bold=True)} ({one.layer}, {one.where}): {told}"
        if one.hint:
            yield f"    {one.hint}"
    if broken := sum(not one.works for one in report):
        verb = "does" if broken == 1 else "do"
        yield Note(f"{count(broken, 'source')} of {len(report)} {verb} not work")


@verb("check", text=_check_text, key="sources", exit_code=lambda report: not all(one.works for one in report))
def check(workspace: Workspace) -> tuple[SourceCheck, ...]:
    """Load each source that is enabled, ask it once, and say what is wrong with it.

    Exit code 1: one of them does not work.

    Examples:
        memfs admin plugins check
    """
    with redirect_stdout(sys.stderr):  # what a source prints is no part of the report
        found = examined(workspace.sources.plugins)
    note_ignored(workspace.root)
    return tuple(found)


plugins = Actions("plugins", __doc__, list_, check)
