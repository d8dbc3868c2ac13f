"""``undo``: take back what a session, an agent or a commit wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.output import Note, Text, count, one_line, readable, styled
from memfs.errors import HistoryUnavailable
from memfs.model import Origin
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.team.undo import Undone

_STEPS_SHOWN = 20
_KEPT = {"brought back": "was made again since, and stays", "removed": "was edited since, and stays"}
_DONE = {"removed": "Removed", "restored": "Brought back", "changed": "Changed", "moved": "Moved back to"}
_PLANNED = {
    "removed": "Would remove",
    "restored": "Would bring back",
    "changed": "Would change",
    "moved": "Would move back to",
}


def _text(done: Undone, dry_run: bool) -> Text:
    words = _PLANNED if dry_run else _DONE
    for step in done.steps[:_STEPS_SHOWN]:
        commit = styled(step.commit[:10], fg="yellow")
        day = styled(f"{step.time:%Y-%m-%d %H:%M}", dim=True)
        yield f"{commit}  {day}  {step.author}  {one_line(step.subject)}"
    if len(done.steps) > _STEPS_SHOWN:
        yield f"and {count(len(done.steps) - _STEPS_SHOWN, 'older commit')}"
    for one in done.files:
        if one.action in words:
            yield f"{words[one.action]} {one.path}"
    for clash in done.conflicts:  # what stays because somebody edited it later
        if clash.field:
            now, undone = (
                "nothing" if value is None else one_line(readable(value), 60) for value in (clash.now, clash.undone)
            )
            yield f"Kept {clash.path} {clash.field}: {now} (without the later edit: {undone})"
        else:
            yield f"Kept {clash.path}: it {_KEPT.get(str(clash.undone), 'stays')}"
    yield from (f"Left alone {left.path}: {left.reason}" for left in done.left)
    if done.already:
        yield Note(_taken_back(done))
    if any(not clash.field and clash.undone == "removed" for clash in done.conflicts):
        yield Note("'memfs forget ID' removes what stays")
    if done.commit:
        yield Note(f"committed as {done.commit[:12]}; 'memfs undo --commit {done.commit[:12]}' takes it back")
    elif done.waiting:
        yield Note(done.waiting if dry_run else f"the commit waits: {done.waiting}")


def _taken_back(done: Undone) -> str:
    return f"{count(len(done.already), 'commit')} had been taken back before"


@verb("undo", text=_text, exit_code=lambda done: all(one.action not in _DONE for one in done.files))
@click.option("--session", default="", metavar="NAME", help="What was written in this session.")
@click.option("--agent", default="", metavar="NAME", help="What this agent wrote; with --session, in that session.")
@click.option(
    "--commit", "commits", multiple=True, metavar="REV", help="Instead: what this commit changed; may be repeated."
)
@click.option("--since", metavar="WHEN", help="With --session or --agent: only what was written since then.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("-m", "--message", default="", help="The commit's message.")
@click.option("--by", default="", metavar="NAME", help="Record this agent as the author; you by default.")
def undo(
    session: str, agent: str, commits: tuple[str, ...], since: str | None, dry_run: bool, message: str, by: str
) -> Undone:
    """Take back what a session, an agent or a commit wrote, as one new commit, and nothing else.

    What others wrote into the same items later stays; what cannot be taken back because of that is listed. You can undo
    an undo, like any commit: memfs undo --commit REV. 'memfs restore' brings back an earlier state of an item.

    Exit code 1: there is nothing to undo, or nothing could be taken back.

    Examples:
        memfs undo --session 4f1c --dry-run
        memfs undo --session 4f1c
        memfs undo --agent scout --since 2d
        memfs undo --commit c92f02c1
    """
    hint = "name --session, --agent or both; or --commit HEAD, the newest commit"
    if bool(commits) == bool(session or agent):
        both = "--commit cannot be combined with --session or --agent"
        raise Unclear(both if commits else "nothing to undo was given", hint)
    from memfs.team.undo import RevertSelection

    with opened() as workspace:
        chosen = RevertSelection(session=session, agent=agent, commits=commits, since=moment("--since", since))
        signed = Origin(agent=by) if by else None
        done = workspace.teams.undo.run(chosen, message=message, dry_run=dry_run, by=signed)
    if not (done.files or done.left):
        hint = "no commit of this branch that changed memory matches; 'memfs team blame ID' names agents and sessions"
        if done.waiting:
            hint = f"{done.waiting}: 'memfs commit' first"
        elif done.already:
            hint = f"{_taken_back(done)}; 'memfs undo --commit {str(done.commit)[:12]}' brings it back"
        raise HistoryUnavailable("nothing to undo", hint=hint)
    return done
