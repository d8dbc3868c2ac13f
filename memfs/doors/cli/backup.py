"""``backup``, ``restore`` and ``cleanup``; and what ``status`` says of backups and quotas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.admin.quota import sentence
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    note_problems,
    print_json,
    print_problem,
    print_raw,
    print_table,
    problem_json,
    styled,
    time_text,
)
from memfs.git.log import OWN_PATHS

if TYPE_CHECKING:
    from memfs.admin.backup import BackupResult, Backups
    from memfs.admin.restore import RestoreResult
    from memfs.model import Problem
    from memfs.workspace import Workspace

_UNITS = ("bytes", "KB", "MB", "GB", "TB")


# -- backup -------------------------------------------------------------------------------------------------------
@verb("backup", example="memfs backup\nmemfs backup --to /mnt/disk/backups\nmemfs backup --list")
@click.option("--to", "to", metavar="DIR", type=click.Path(file_okay=False), help="Into this folder only.")
@click.option("--list", "listing", is_flag=True, help="List the backups of this workspace instead.")
@click.pass_context
def backup(ctx: click.Context, to: str | None, listing: bool, as_json: bool) -> int:
    """Write one verified file with all files, the whole history and what waits for its commit.

    It goes to the folders of backup.targets, or to a folder of your own, and backup.copies of them are kept in each.

    Exit code 1: refused, or the backup lacks what could not be read; then no older one was removed for it.
    """
    if to is not None and not to.strip():
        raise click.UsageError("--to needs a folder", ctx)
    place = Path(to).absolute() if to is not None else None
    with opened(ctx) as workspace:
        if listing:
            _print_list(workspace.backups, place, as_json)
            return 0
        made = workspace.backups.make(place)
    if as_json:
        print_json({"backups": [_made_json(one) for one in made]})
    for one in () if as_json else made:
        print_raw(f"{styled('Backed up', fg='green')} {_contents(one)} to {clean(str(one.path))} ({size(one.bytes)})")
        for path in one.removed:
            print_raw(f"{'':10}removed {clean(path.name)}, older than the ones that are kept")
        for row in one.manifest.left_out:
            note(f"left out: {clean(row)}")
        if not one.whole:
            note("this backup lacks what could not be read, so no older one was removed; see 'memfs check --integrity'")
    return int(not all(one.whole for one in made))


def _contents(made: BackupResult) -> str:
    manifest = made.manifest
    waiting = f", {count(manifest.waiting, 'waiting write')}" if manifest.waiting else ""
    history = " and the history" if manifest.refs else ""
    return f"{count(len(manifest.files), 'file')}{history}{waiting}"


def _made_json(made: BackupResult) -> dict[str, Any]:
    return {
        "path": str(made.path),
        "bytes": made.bytes,
        "files": len(made.manifest.files),
        "waiting": made.manifest.waiting,
        "head": made.manifest.refs.get(made.manifest.head) or made.manifest.refs.get("HEAD"),
        "left_out": list(made.manifest.left_out),
        "removed": [str(path) for path in made.removed],
        "verified": True,
        "whole": made.whole,
    }


def _print_list(backups: Backups, place: Path | None, as_json: bool) -> None:
    rows = [(path, path.stat().st_size) for path in backups.kept(place)]
    if as_json:
        print_json({"backups": [{"path": str(path), "bytes": weight} for path, weight in rows]})
    elif rows:
        print_table([(size(weight), str(path)) for path, weight in rows])
    else:
        print_raw("No backups of this workspace yet")


# -- restore ------------------------------------------------------------------------------------------------------
@verb("restore", example="memfs restore backup.tar notes\nmemfs restore backup.tar --check")
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("folder", required=False, type=click.Path(file_okay=False))
@click.option("--check", "check_only", is_flag=True, help="Only read the whole backup and say whether it is sound.")
@click.option("--without-history", "bare", is_flag=True, help="Take the files alone, where git refuses the history.")
@click.pass_context
def restore(ctx: click.Context, file: str, folder: str | None, check_only: bool, bare: bool, as_json: bool) -> int:
    """Make the workspace in FILE anew, in a FOLDER that does not exist or is empty; then check it.

    Exit code 0: made, and no problem found. 1: refused, or the workspace that was made has problems.
    """
    from memfs.admin.restore import restore as build

    if check_only == bool(folder and folder.strip()):
        raise click.UsageError("name the folder to restore to, or give --check", ctx)
    if check_only:
        _check_backup(Path(file), as_json)
        return 0
    made = build(Path(file), Path(folder or ""), history=not bare)
    items, problems = _look_at(made)
    _print_restored(made, items, problems, as_json)
    return int(any(problem.severity == "error" for problem in problems))


def _check_backup(file: Path, as_json: bool) -> None:
    from memfs.admin.backup_file import prove

    manifest = prove(file)
    if as_json:
        facts = {"files": len(manifest.files), "created": manifest.created, "waiting": manifest.waiting}
        print_json({"sound": True, **facts, "left_out": list(manifest.left_out)})
    else:
        print_raw(f"Sound: {count(len(manifest.files), 'file')}, made {manifest.created}")


def _look_at(made: RestoreResult) -> tuple[int, list[Problem]]:
    from memfs.workspace import open_workspace  # costs start-up time

    with open_workspace(made.root, watch=False) as workspace:
        return workspace.store.count(), workspace.checker.check()


def _print_restored(made: RestoreResult, items: int, problems: list[Problem], as_json: bool) -> None:
    if as_json:
        facts = {"workspace": str(made.root), "files": made.files, "items": items, "created": made.manifest.created}
        print_json({**facts, "problems": [problem_json(problem) for problem in problems]})
        return
    done = styled("Restored", fg="green")
    print_raw(f"{done} {count(items, 'item')} in {clean(str(made.root))}, as of {made.manifest.created}")
    for problem in problems:
        print_problem(problem)
    for row in made.manifest.left_out:
        note(f"the backup was made without {clean(row)}")
    if made.others:
        own = [f"':(top,exclude){made.manifest.prefix and made.manifest.prefix + '/'}{name}'" for name in OWN_PATHS]
        note(f"the repository's other files: git checkout HEAD -- ':(top)' {' '.join(own)}")
    note_problems(problems)


# -- cleanup ------------------------------------------------------------------------------------------------------
@verb("cleanup", example="memfs cleanup --dry-run\nmemfs cleanup")
@click.option("-n", "--dry-run", is_flag=True, help="Say what could be done and what it could free, and do nothing.")
@click.pass_context
def cleanup(ctx: click.Context, dry_run: bool, as_json: bool) -> int:
    """Make room without losing anything: leftovers, contents kept twice, loose history, surplus backups."""
    with opened(ctx) as workspace:
        steps = workspace.cleaner.plan() if dry_run else workspace.cleaner.clean()
    if as_json:
        rows = [{"what": step.what, "bytes": step.bytes, "error": step.error} for step in steps]
        print_json({"dry_run": dry_run, "steps": rows, "bytes": sum(step.bytes for step in steps)})
    else:
        for step in steps:
            freed = f"up to {size(step.bytes)}" if dry_run else size(step.bytes)
            print_raw(f"{freed:>16}  {clean(step.what)}" + (f": {clean(step.error)}" if step.error else ""))
        if not steps:
            print_raw("Nothing to clean up")
    return int(any(step.error for step in steps))


# -- status -------------------------------------------------------------------------------------------------------
def keeping_facts(workspace: Workspace) -> dict[str, Any]:
    """What ``status`` tells of quotas and backups."""
    state = workspace.backups.state()
    age = state.age(workspace.parts.clock())
    return {
        "quota": [standing.facts() for standing in workspace.quota.standings()],
        "backup": {
            "last": time_text(state.last),
            "age_seconds": None if age is None else round(age),
            "path": state.path,
            "interval_hours": state.interval_hours,
            "overdue": state.due,
            "error": state.error,
        },
    }


def keeping_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """The same for people."""
    rows = {"quota": "; ".join(map(sentence, facts["quota"]))} if facts["quota"] else {}
    return {**rows, "backup": _backup_row(facts["backup"])}


def _backup_row(facts: Mapping[str, Any]) -> str:
    made = f"{_age(facts['age_seconds'])} ago, {facts['path']}" if facts["last"] else "none yet"
    wanted = f"; overdue, one is wanted every {facts['interval_hours']:g} h" if facts["overdue"] else ""
    return made + wanted + (f"; the last try failed: {facts['error']}" if facts["error"] else "")


def _age(seconds: int) -> str:
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return count(seconds // length, word)
    return count(max(0, seconds), "second")


def size(number: float) -> str:
    """Bytes as people read them."""
    unit = 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{number:.0f} bytes"
