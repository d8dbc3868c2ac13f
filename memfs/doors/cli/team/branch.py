"""Give an agent a branch with a folder of its own, merge or drop it, or let nobody read from it.

NAME is the branch memfs/NAME, or with a slash the name as it stands. Exit code 1: it was refused, and the message
names all that stands in the way.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.output import Note, Table, Text, count, listed, readable, styled
from memfs.doors.cli.parser import Actions

if TYPE_CHECKING:
    from memfs.team.branches import Branch, BranchMerge, DroppedBranch
    from memfs.workspace import Workspace

_SHOWN = 20


_name = click.argument("name", metavar="NAME")
_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


# -- list ---------------------------------------------------------------------------------------------------------
def _list_text(found: tuple[Branch, ...]) -> Text:
    rows = [(one.name, one.agent, _standing(one), str(one.folder or "")) for one in found]
    yield Table(rows, dim=(1, 3))
    if not rows:
        yield Note("no branches; memfs team branch start NAME makes one")


def _standing(one: Branch) -> str:
    words = [f"{count(one.ahead, 'commit')} to merge"] if one.ahead else []
    if not one.commit:
        words = ["gone"]
    elif not words and not one.waiting:
        words = ["nothing to merge"]
    if one.waiting:
        words.append(f"{count(one.waiting, 'write')} not committed")
    if not one.ready:
        words.append("not complete: start it again")
    if one.quarantined:
        words.insert(0, f"quarantined{': ' + one.reason if one.reason else ''}")
    return ", ".join(words)


@verb("list", text=_list_text, key="branches")
def _list(workspace: Workspace) -> tuple[Branch, ...]:
    """Show how each branch stands.

    Examples:
        memfs team branch list
    """
    return tuple(workspace.teams.branches.list())


# -- start --------------------------------------------------------------------------------------------------------
def _start_text(one: Branch) -> Text:
    yield f"Started {styled(one.branch, fg='green', bold=True)} at {one.commit[:12]}"
    yield f"export MEMFS_WORKSPACE={shlex.quote(str(one.folder))}"
    yield Note(f"whatever is written there goes to that branch; 'memfs team branch merge {one.name}' brings it here")


@verb("start", text=_start_text)
@_name
@click.option("--agent", metavar="NAME", default="", help="Whose branch it is; what names nobody there is its.")
@click.option("--at", metavar="FOLDER", type=click.Path(), help="Where it works; beside this one if not.")
def _start(workspace: Workspace, name: str, agent: str, at: str | None) -> Branch:
    """Make a branch, and a folder to work on it.

    Nothing but the memory lies there; what MEMFS_WORKSPACE is to be set to is printed.

    Examples:
        memfs team branch start refactoring --agent coder
    """
    return workspace.teams.branches.start(name, agent=agent, folder=at)


# -- merge --------------------------------------------------------------------------------------------------------
def _merge_text(done: BranchMerge, name: str, dry_run: bool) -> Text:
    joined = done.joined
    if done.uncommitted:
        them = "it" if done.uncommitted == 1 else "them"
        yield f"Would first commit {count(done.uncommitted, 'write')} made there, and merge {them}, too"
    if joined.nothing and not done.uncommitted:
        yield f"Nothing to merge from {name}"
    elif not joined.nothing:
        yield f"{'Would merge' if dry_run else 'Merged'} {styled(name, fg='green', bold=True)}"
    yield from listed("", joined.changed, _SHOWN)
    for one in joined.conflicts:
        kept, lost = readable(one.kept), readable(one.lost)
        yield Note(f"{one.path}: {f'{one.field}: ' if one.field else ''}both changed it; kept {kept}, lost {lost}")
    if joined.conflicts:
        yield Note("'memfs team conflicts' shows what both changed, and decides")
    if joined.waiting:
        yield Note(f"merged; the commit waits: {joined.waiting}")
    for path in done.edited:
        yield Note(f"{path} was edited there by hand and is not committed: it was left out")
    for number, program in done.alive:
        yield Note(f"{program} (process {number}) still works there; what it writes from now on is not merged yet")


@verb("merge", text=_merge_text)
@_name
@click.option("-m", "--message", metavar="TEXT", default="", help="The commit's message.")
@_dry_run
def _merge(workspace: Workspace, name: str, message: str, dry_run: bool) -> BranchMerge:
    """Join what was written there with what is here.

    The branch that is checked out here gets it, field by field. What waits there is committed first.

    Examples:
        memfs team branch merge refactoring --dry-run
        memfs team branch merge refactoring
    """
    return workspace.teams.branches.merge(name, message=message, dry_run=dry_run)


# -- drop ---------------------------------------------------------------------------------------------------------
def _drop_text(dropped: DroppedBranch, dry_run: bool) -> Text:
    stays = "would stay" if dry_run else "stays"
    name = styled(dropped.branch.removeprefix("refs/heads/"), fg="yellow", bold=True)
    yield f"{'Would drop' if dry_run else 'Dropped'} {name}"
    if dropped.rescue:
        yield f"  what was not merged {stays} as {dropped.rescue}"
    for path in dropped.left[:_SHOWN]:
        yield Note(f"{path} stays in {dropped.folder}: it is not committed, or no memory")


@verb("drop", text=_drop_text)
@_name
@click.option("--force", is_flag=True, help="Even if it was not merged; a rescue ref keeps it.")
@_dry_run
def _drop(workspace: Workspace, name: str, force: bool, dry_run: bool) -> DroppedBranch:
    """Take branch and folder away, if nothing is lost by that.

    Examples:
        memfs team branch drop refactoring
    """
    return workspace.teams.branches.drop(name, force=force, dry_run=dry_run)


# -- quarantine, release ------------------------------------------------------------------------------------------
def _quarantine_text(one: Branch) -> Text:
    yield f"{'Quarantined' if one.quarantined else 'Released'} {styled(one.branch, fg='yellow', bold=True)}"
    if one.quarantined and one.commit and not one.ahead:
        hint = f"memfs undo --agent {one.agent}" if one.agent else "memfs undo"
        yield Note(f"what it wrote is merged already, and is still read here; '{hint}' takes it back")


@verb("quarantine", text=_quarantine_text)
@_name
@click.option("--reason", metavar="TEXT", default="", help="Why, for those who ask.")
def _quarantine(workspace: Workspace, name: str, reason: str) -> Branch:
    """Let nobody be given memory from it.

    It reaches no recall, no prompt and no merge, until it is released. 'show', 'log', 'diff' and
    'review' still look at it.

    Examples:
        memfs team branch quarantine refactoring --reason "it believed a web page"
    """
    return workspace.teams.branches.quarantine(name, reason)


@verb("release", text=_quarantine_text)
@_name
def _release(workspace: Workspace, name: str) -> Branch:
    """Let a quarantined branch be read again.

    Examples:
        memfs team branch release refactoring
    """
    return workspace.teams.branches.release(name)


branch = Actions("branch", __doc__, _list, _start, _merge, _drop, _quarantine, _release)
