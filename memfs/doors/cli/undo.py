"""``undo`` and ``restore``: take back what was written, and bring back an earlier state."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, complete_ids, opened, remark, verb
from memfs.doors.cli.options import land, named, when
from memfs.doors.cli.output import Note, Table, Text, count, one_line, readable, styled
from memfs.errors import HistoryUnavailable, ItemNotFound
from memfs.model import Origin

if TYPE_CHECKING:
    from memfs.admin.history import Recoverable
    from memfs.team.undo import Undone, UntouchedField
    from memfs.workspace import Workspace

# -- undo -------------------------------------------------------------------------------------------------------------
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


def _undo_text(done: Undone, dry_run: bool) -> Text:
    words = _PLANNED if dry_run else _DONE
    for step in done.steps[:_STEPS_SHOWN]:
        commit = styled(step.commit[:_SHORT], fg="yellow")
        moment = styled(f"{step.time:%Y-%m-%d %H:%M}", dim=True)
        yield f"{commit}  {moment}  {step.author}  {one_line(step.subject)}"
    if len(done.steps) > _STEPS_SHOWN:
        yield f"and {count(len(done.steps) - _STEPS_SHOWN, 'older commit')}"
    for one in done.files:
        if one.action in words:
            yield f"{words[one.action]} {one.path}"
    yield from map(_clash, done.conflicts)
    for left in done.left:
        yield f"Left alone {left.path}: {left.reason}"
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


def _clash(one: UntouchedField) -> str:
    """What stays because somebody edited it later."""
    if not one.field:
        what = {"brought back": "was made again since, and stays", "removed": "was edited since, and stays"}
        return f"Kept {one.path}: it {what.get(str(one.undone), 'stays')}"
    now, undone = (
        one_line(readable(value), _VALUE) if value is not None else "nothing" for value in (one.now, one.undone)
    )
    return f"Kept {one.path} {one.field}: {now} (without the later edit: {undone})"


@verb("undo", text=_undo_text, exit_code=lambda done: all(one.action not in _DONE for one in done.files))
@click.option("--session", default="", metavar="NAME", help="What was written in this session.")
@click.option("--agent", default="", metavar="NAME", help="What this agent wrote; with --session, in that session.")
@click.option("--commit", "commits", multiple=True, metavar="REV", help="What this commit changed; may be repeated.")
@click.option("--since", metavar="WHEN", help="Only what was written since then; alone, what you wrote yourself.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("-m", "--message", default="", help="The commit's message.")
@click.option("--by", default="", metavar="NAME", help="The agent in whose name it is done; otherwise a person's.")
def undo(
    session: str, agent: str, commits: tuple[str, ...], since: str | None, dry_run: bool, message: str, by: str
) -> Undone:
    """Take back what a session, an agent, a commit or you wrote, as one new commit, and nothing else.

    What others wrote into the same items later stays; where that leaves something standing, it is named. An undo is
    taken back like any commit: memfs undo --commit REV. 'memfs restore' brings back an earlier state of an item.

    Exit code 1: there is nothing to undo, or nothing could be taken back.

    Examples:
        memfs undo --session 4f1c --dry-run
        memfs undo --session 4f1c
        memfs undo --agent scout --since 2d
        memfs undo --commit c92f02c1
        memfs undo --since 1h
    """
    whose = bool(session or agent)
    if (commits and whose) or not (commits or whose or since):
        hint = "name --session, --agent or both; --commit HEAD, the newest commit; or --since 1h, what you wrote since"
        raise Unclear("what is to be taken back?", hint)
    from memfs.team.undo import RevertSelection

    with opened() as workspace:
        chosen = RevertSelection(session=session, agent=agent, commits=commits, since=when(since, "since"))
        signed = Origin(agent=by) if by else None
        done = workspace.teams.undo.run(chosen, message=message, dry_run=dry_run, by=signed)
    if not (done.files or done.left):
        hint = "no commit of this branch matches; 'memfs team blame ID' names agents and sessions"
        if not (commits or whose):
            hint = "you committed nothing since; --agent and --session take back what others wrote"
        if done.waiting:
            hint = f"{done.waiting}: 'memfs commit' first"
        elif done.already:
            hint = f"{_taken_back(done)}; 'memfs undo --commit REV' of the commit that did so brings it back"
        raise HistoryUnavailable("nothing to undo", hint=hint)
    return done


# -- restore ----------------------------------------------------------------------------------------------------------
_HINT = "name a revision with --from REV ('memfs log' lists them), or give --displaced"


@dataclass(frozen=True, slots=True)
class Restoration:
    """What was brought back, or would be.

    Attributes:
        restored: files that are as they were.
        removed: files that were not there then.
        commit: the commit that does it; null where there is none.
        recoverable: what could be brought back, where that was asked; newest first.
    """

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    commit: str | None = None
    recoverable: tuple[Recoverable, ...] = ()


def _restore_text(done: Restoration, dry_run: bool) -> Text:
    for path in done.restored:
        yield f"{'Would restore' if dry_run else 'Restored'} {path}"
    for path in done.removed:
        yield f"{'Would remove' if dry_run else 'Removed'} {path}"
    if done.commit:
        yield f"Committed {styled(done.commit[:12], fg='yellow')}"
    yield Table([(row.name, f"{row.time:%Y-%m-%d %H:%M}", row.path) for row in done.recoverable], dim=(1,))


@verb("restore", text=_restore_text)
@click.argument("target", required=False, metavar="[ID|PATH]", shell_complete=complete_ids)
@click.option("--from", "revision", metavar="REV", help="As of this revision or date: HEAD~3, a branch, 2026-03-01.")
@click.option("--displaced", is_flag=True, help="What was written and is in no commit; without ID, list it.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("-m", "--message", default="", help="The commit's message.")
def restore(target: str | None, revision: str | None, displaced: bool, dry_run: bool, message: str) -> Restoration:
    """Bring back an item, a folder or the whole memory as it was, as a new commit; history is never rewritten.

    Where history.commit is manual the files are brought back for you to commit. A file edited by hand since its last
    commit is not overwritten: commit the edit or undo it first. One that was deleted comes back.

    Without --from, ID is an item that was pruned: it comes back from the archive.

    With --displaced it brings back what memfs had written and no commit holds, such as what an edit by hand displaced.
    A content called damaged-... is the copy of what 'memfs check --fix' replaced: the error names its file.
    'memfs admin backup restore' recreates a workspace from a backup.

    Examples:
        memfs restore use-postgresql-for-transactions-7h2k9q --from HEAD~1
        memfs restore --from 2026-03-01 --dry-run
        memfs restore --displaced
    """
    backup = target is not None and target.endswith(".tar")
    if displaced == (revision is not None) and (displaced or backup or target is None):
        raise Unclear("from where?", "'memfs admin backup restore' takes a backup" if backup else _HINT)
    if revision is None and (dry_run or message):
        raise Unclear("--dry-run and --message go with --from REV, not with --displaced or what was pruned")
    with opened() as workspace:
        if revision is None and target is None:
            rows = tuple(workspace.recovered.list())
            remark(count(len(rows), "displaced content"))
            return Restoration(recoverable=rows)
        if revision is None:
            name, pruned = str(target), workspace.pruner.pruned
            if not displaced and pruned.find(name) is None:
                raise Unclear("from where?", _way_back(workspace, name) or _HINT)
            path = workspace.recovered.restore(name) if displaced else pruned.bring_back(name).path
            land(workspace)
            return Restoration((path,))
        aside = len(workspace.recovered.list())
        done = workspace.history.restore(revision, named(workspace, target, revision), message=message, dry_run=dry_run)
        waits = workspace.store.by_hand and not dry_run
        kept = len(workspace.recovered.list()) > aside
    if not (done.restored or done.removed):
        remark(f"nothing differs from {revision}")
    elif waits:
        remark("commit these files with git, or 'memfs commit'")
    if kept:
        remark("what no commit held is set aside: 'memfs restore --displaced' lists it and brings it back")
    return Restoration(done.restored, done.removed, done.commit)


def _way_back(workspace: Workspace, target: str) -> str:
    """What brings back an item that was forgotten; "" where it is there, or no commit holds it."""
    with suppress(ItemNotFound, HistoryUnavailable):
        name = str(named(workspace, target))
        found = [] if workspace.history.path_of(name) else workspace.history.log(name, 1)
        for revision in (end for one in found for end in (one.short, f"{one.short}~1")):
            with suppress(HistoryUnavailable):
                workspace.history.content(revision, name)
                return f"it was forgotten: memfs restore {name} --from {revision}"
    return ""
