"""``plugins``: list the sources that give agents their context, and test them."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_table, styled
from memfs.doors.cli.trust import note_ignored

if TYPE_CHECKING:
    from memfs.context.source_status import SourceCheck, SourceRow


@verb("plugins", example="memfs plugins\nmemfs plugins doctor\nmemfs plugins list --json")
@click.argument("action", type=click.Choice(["list", "doctor"]), default="list")
@click.pass_context
def plugins(ctx: click.Context, action: str, as_json: bool) -> int:
    """Show the sources that give agents their context: built in, installed, and named in the settings.

    'list' imports none of them. 'doctor' loads each that is enabled, asks it once, and says what is wrong with it.

    Exit code 1: with doctor, one of them does not work.
    """
    from memfs.context import source_status

    with opened(ctx) as workspace:
        if action == "list":
            _tell_listed(source_status.listed(workspace.root, workspace.settings), as_json)
            note_ignored(workspace.root)
            return 0
        with redirect_stdout(sys.stderr):  # what a source prints is no part of the list
            found = source_status.examined(workspace.sources.plugins)
        _tell_examined(found, as_json)
        note_ignored(workspace.root)
    return int(any(one.failure for one in found))


def _tell_listed(found: list[SourceRow], as_json: bool) -> None:
    if as_json:
        print_json({"sources": [{**asdict(one), "enabled": one.enabled} for one in found]})
        return
    print_table([(one.name, one.layer or "?", _state(one), one.where) for one in found], dim=(3,))


def _state(one: SourceRow) -> str:
    if not one.setting:
        return "not enabled"
    if not one.trusted:
        return f"not trusted: {one.setting}, {one.origin}"
    if one.misplaced:
        return f"in the wrong list: {one.setting}, {one.origin}"
    return f"{one.setting}, {one.origin}"


def _tell_examined(found: list[SourceCheck], as_json: bool) -> None:
    if as_json:
        print_json({"sources": [{**asdict(one), "works": not one.failure} for one in found]})
        return
    for one in found:
        mark = styled("broken", fg="red") if one.failure else styled("works", fg="green")
        said = f"said {count(one.letters, 'letter')}" if one.letters else "had nothing to say"
        told = clean(one.failure) if one.failure else f"{said} in {one.seconds * 1000:.0f} ms"
        print_raw(f"{mark}  {styled(clean(one.name), bold=True)} ({one.layer}, {clean(one.where)}): {told}")
        if one.failures:
            print_raw(f"    failed {count(one.failures, 'time')} on this machine, {one.in_a_row} in a row")
        if one.paused:
            print_raw(f"    {clean(one.paused)}")
        if one.hint:
            print_raw(f"    {clean(one.hint)}")
    broken = sum(bool(one.failure) for one in found)
    if broken:
        note(f"{count(broken, 'source')} of {len(found)} {'does' if broken == 1 else 'do'} not work")
