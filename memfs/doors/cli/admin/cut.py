"""``admin cut``: cut off old history, after saying what that means."""

from __future__ import annotations

from pathlib import Path

import click

from memfs.admin.cut import CutPlan
from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.options import confirm_rewrite
from memfs.doors.cli.output import Note, Text, count, listed, time_text
from memfs.errors import EraseRefused
from memfs.model.time import parse_when, utc_now


def _text(plan: CutPlan) -> Text:
    done = plan.export is not None
    if not plan.commit or plan.time is None:
        yield f"Nothing to cut: no history before {time_text(plan.before)} can go"
    else:
        said, at = "Cut" if done else "Would cut", f"{plan.commit[:10]} of {time_text(plan.time)}"
        yield f"{said} {count(plan.cut, 'commit')}, up to {at}; what stood there is the first commit"
        lost = f", {count(plan.unsigned, 'signature')} lost" if plan.unsigned else ""
        yield f"  {count(plan.rewritten, 'later commit')} with a new id{lost}"
    yield from listed("a tag that goes with its commit:", plan.tags)
    yield from listed("no later, because of what began before it:", plan.held_by)
    yield from listed("the old history stays on the remote", plan.elsewhere)
    if plan.refused:
        yield f"  it would be refused now: {plan.refused}"
    if done:
        yield f"  exported to {plan.export}, sha256 {plan.sha256}"
        yield Note(f"'git clone {plan.export} old' brings it back, beside this")


@verb("cut", text=_text, exit_code=lambda plan: bool(plan.refused))
@click.argument("before", metavar="DATE")
@click.option("--export", type=click.Path(path_type=Path), metavar="FILE", help="Where what is cut goes: a git bundle.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be cut.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def cut(before: str, export: Path | None, dry_run: bool, yes: bool) -> CutPlan:
    """Cut off the history before DATE, after writing it to a file: what stands at the cut becomes the first commit.

    No memory is lost by it; older versions, and what had been forgotten by then, are afterwards in the file alone,
    which 'git clone FILE old' makes a repository of. Commits since then get new ids and lose their signatures. Only
    for a repository that memfs made; remotes, clones and backups keep the old history.

    Exit code 1: it is refused, or a dry run says that it would be.

    Examples:
        memfs admin cut 2025-01-01 --dry-run
        memfs admin cut '2 years ago' --export ~/memory-until-2024.bundle
    """
    try:
        moment = parse_when(before, utc_now())
    except (ValueError, OverflowError):
        raise Unclear(f"{before!r} is no date", "write 2025-01-01, or an age such as '2 years ago'") from None
    with opened() as workspace:
        if dry_run or not yes:
            plan = workspace.cutter.plan(moment)
            if dry_run or not plan.commit:
                return plan
            if not plan.refused:
                confirm_rewrite("Cut it?", _text(plan))
        if export is None:
            raise EraseRefused(
                "what is cut has to be kept somewhere", hint="add --export FILE, outside of the workspace"
            )
        return workspace.cutter.cut(moment, export.absolute())
