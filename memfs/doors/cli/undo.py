"""``undo``: take back what a session, an agent or a commit wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.filters import when
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    one_line,
    plain,
    print_json,
    print_raw,
    readable,
    styled,
    time_text,
)

if TYPE_CHECKING:
    from memfs.team.undo import Undone, UntouchedField

_SHORT = 10
_VALUE = 60
_STEPS_SHOWN = 20
_DONE = {"removed": "Removed", "restored": "Brought back", "changed": "Changed", "moved": "Moved back to"}
_PLANNED = {
    "removed": "Would remove",
    "restored": "Would bring back",
    "changed": "Would change",
    "moved": "Would move back to",
}


@verb(
    "undo",
    example="memfs undo --session 4f1c --dry-run\nmemfs undo --session 4f1c\nmemfs undo --agent scout --since 2d\n"
    "memfs undo --commit c92f02c1",
)
@click.option("--session", default="", metavar="NAME", help="What was written in this session.")
@click.option("--agent", default="", metavar="NAME", help="What this agent wrote; with --session, in that session.")
@click.option("--commit", "commits", multiple=True, metavar="REV", help="What this commit changed; may be repeated.")
@click.option("--since", metavar="WHEN", help="Only what was written at this date, time or age, or later.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("-m", "--message", default="", help="The commit's message.")
@click.option("--by", default="", metavar="NAME", help="The agent in whose name it is done; otherwise a person's.")
@click.pass_context
def undo(
    ctx: click.Context,
    session: str,
    agent: str,
    commits: tuple[str, ...],
    since: str | None,
    dry_run: bool,
    message: str,
    by: str,
    as_json: bool,
) -> None:
    """Take back what a session, an agent or a commit wrote, as one new commit, and nothing else.

    What others wrote into the same items later stays; where that leaves something standing, it is named. An undo is
    taken back like any commit: memfs undo --commit REV.
    """
    if bool(commits) == bool(session or agent):
        raise Unclear("whose changes?", "name --session, --agent or both; or --commit")
    from memfs.model import Origin
    from memfs.team.undo import RevertSelection

    with opened(ctx) as workspace:
        chosen = RevertSelection(session=session, agent=agent, commits=commits, since=when(since, "since"))
        signed = Origin(agent=by) if by else None
        done = workspace.teams.undo.run(chosen, message=message, dry_run=dry_run, by=signed)
    if as_json:
        print_json(_json(done, dry_run))
    else:
        _print(done, dry_run)
    _note(done, dry_run)


def _json(done: Undone, dry_run: bool) -> dict[str, Any]:
    return {
        "steps": [
            {"commit": one.commit, "time": time_text(one.time), "author": one.author, "subject": one.subject}
            for one in done.steps
        ],
        "files": [
            {"id": one.id, "path": one.path, "action": one.action, "handed_out": one.handed_out} for one in done.files
        ],
        "conflicts": [
            {"id": one.id, "path": one.path, "field": one.field, "now": plain(one.now), "undone": plain(one.undone)}
            for one in done.conflicts
        ],
        "already": list(done.already),
        "left": [{"path": path, "reason": reason} for path, reason in done.left],
        "handed_out": done.handed_out,
        "commit": done.commit,
        "waiting": done.waiting,
        "dry_run": dry_run,
    }


def _print(done: Undone, dry_run: bool) -> None:
    for step in done.steps[:_STEPS_SHOWN]:
        commit = styled(step.commit[:_SHORT] or "not committed", fg="yellow")
        moment = styled(f"{step.time:%Y-%m-%d %H:%M}", dim=True)
        print_raw(f"{commit}  {moment}  {clean(step.author)}  {one_line(step.subject)}")
    if len(done.steps) > _STEPS_SHOWN:
        print_raw(f"and {count(len(done.steps) - _STEPS_SHOWN, 'older commit')}")
    words = _PLANNED if dry_run else _DONE
    for one in done.files:
        if one.action in words:
            out = f" (handed out {count(one.handed_out, 'time')})" if one.handed_out else ""
            print_raw(f"{words[one.action]} {clean(one.path)}{out}")
    for clash in done.conflicts:
        print_raw(_clash(clash))
    for path, reason in done.left:
        print_raw(f"Left alone {clean(path)}: {clean(reason)}")
    if not done.files and not done.left:
        print_raw("Nothing to undo")


def _clash(one: UntouchedField) -> str:
    """What stays because somebody edited it later."""
    if not one.field:
        what = {"brought back": "was made anew since, and stays", "removed": "was edited since, and stays"}
        return f"Kept {clean(one.path)}: it {what.get(str(one.undone), 'stays')}"
    now, undone = (
        one_line(readable(value), _VALUE) if value is not None else "nothing" for value in (one.now, one.undone)
    )
    return f"Kept {clean(one.path)} {clean(one.field)}: {now} (without the later edit: {undone})"


def _note(done: Undone, dry_run: bool) -> None:
    if done.handed_out:
        note(f"since then {count(done.handed_out, 'answer')} gave it out: 'memfs team access ID' shows to whom")
    if not (done.steps or done.files or done.left or done.already):
        note("nothing that is checked out here was written so; 'memfs team blame ID' names agents and sessions")
    if done.already:
        note(f"{count(len(done.already), 'commit')} had been taken back before")
    if any(not clash.field and clash.undone == "removed" for clash in done.conflicts):
        note("'memfs forget ID' removes what stays")
    if done.commit:
        note(f"committed as {done.commit[:12]}; 'memfs undo --commit {done.commit[:12]}' takes it back")
    elif done.waiting and not dry_run:
        note(f"the commit waits: {done.waiting}")
