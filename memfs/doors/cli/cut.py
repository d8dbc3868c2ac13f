"""``maintain --cut-before``: cut old history, after saying what that means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, time_text
from memfs.doors.cli.streams import is_interactive
from memfs.errors import EraseRefused
from memfs.model.time import parse_when, utc_now

if TYPE_CHECKING:
    from datetime import datetime

    from memfs.admin.cut import CutPlan

_SHOWN = 10


def cut_history(ctx: click.Context, date: str, export: Path | None, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Cut the history before a date, or say what that would do; return the exit code.

    Raises:
        EraseRefused: nobody agreed, no file is named, or history cannot be cut as things stand.
    """
    before = _moment(date)
    with opened(ctx) as workspace:
        if dry_run or not yes:
            plan = workspace.cutter.plan(before)
            if dry_run or not plan.commit:
                _show(plan, as_json, dry_run=dry_run)
                return 1 if plan.refused else 0
            if not plan.refused:
                _ask(plan, as_json)
        if export is None:
            raise EraseRefused(
                "what is cut has to be kept somewhere", hint="add --export FILE, outside of the workspace"
            )
        done = workspace.cutter.cut(before, export.absolute())
    _show(done, as_json, dry_run=False)
    return 0


def _moment(date: str) -> datetime:
    try:
        return parse_when(date, utc_now())
    except (ValueError, OverflowError):
        raise Unclear(
            f"--cut-before: {date!r} is no date", "write 2025-01-01, or an age such as '2 years ago'"
        ) from None


def _ask(plan: CutPlan, as_json: bool) -> None:
    if as_json or not is_interactive():
        raise EraseRefused(
            "this rewrites history and cannot be undone", hint="look at --dry-run first, then repeat it with --yes"
        )
    _print(plan, done=False)
    click.confirm("Cut it?", abort=True, err=True)


def _show(plan: CutPlan, as_json: bool, *, dry_run: bool) -> None:
    if as_json:
        print_json({**_json(plan), "dry_run": dry_run})
    else:
        _print(plan, done=plan.export is not None)


def _json(plan: CutPlan) -> dict[str, Any]:
    return {
        "before": time_text(plan.before),
        "commit": plan.commit,
        "time": time_text(plan.time) if plan.time else None,
        "cut": plan.cut,
        "rewritten": plan.rewritten,
        "tags": list(plan.tags),
        "unsigned": plan.unsigned,
        "held_by": list(plan.held_by),
        "elsewhere": list(plan.elsewhere),
        "refused": plan.refused,
        "export": str(plan.export) if plan.export else None,
        "sha256": plan.sha256,
        "head": plan.head,
    }


def _print(plan: CutPlan, *, done: bool) -> None:
    said = "Cut" if done else "Would cut"
    if not plan.commit or plan.time is None:
        print_raw(f"Nothing to cut: no history before {time_text(plan.before)} can go")
    else:
        at = f"{plan.commit[:10]} of {time_text(plan.time)}"
        print_raw(f"{said} {count(plan.cut, 'commit')}, up to {at}; what stood there is the first commit")
        lost = f", {count(plan.unsigned, 'signature')} lost" if plan.unsigned else ""
        print_raw(f"  {count(plan.rewritten, 'later commit')} with a new id{lost}")
    for label, rows in (
        ("a tag that goes with its commit:", plan.tags),
        ("no later, because of what began before it:", plan.held_by),
        ("the old history stays on the remote", plan.elsewhere),
    ):
        for row in rows[:_SHOWN]:
            print_raw(f"  {label} {clean(row)}")
        if len(rows) > _SHOWN:
            print_raw(f"  and {len(rows) - _SHOWN:,} more")
    if plan.refused:
        print_raw(f"  it would be refused now: {clean(plan.refused)}")
    if done:
        print_raw(f"  exported to {clean(str(plan.export))}, sha256 {plan.sha256}")
        note(f"'git clone {clean(str(plan.export))} old' brings it back, beside this")
