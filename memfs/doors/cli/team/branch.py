"""``branch``: give an agent a branch of its own, merge it, drop it, or quarantine it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_table, readable, styled
from memfs.doors.cli.sync import clash_json

if TYPE_CHECKING:
    from memfs.team.branches import Branch, Branches, BranchMerge, DroppedBranch

_ACTIONS = ("list", "start", "merge", "drop", "quarantine", "release")
_OPTIONS = {
    "agent": ("start",),
    "at": ("start",),
    "message": ("merge",),
    "reason": ("quarantine",),
    "force": ("drop",),
    "dry_run": ("merge", "drop"),
}
_SHOWN = 20


@verb(
    "branch",
    example="memfs team branch start refactoring --agent coder\nmemfs team branch list\n"
    "memfs team branch merge refactoring --dry-run\n"
    "memfs team branch merge refactoring\nmemfs team branch drop refactoring\n"
    'memfs team branch quarantine refactoring --reason "it believed a web page"',
)
@click.argument("action", type=click.Choice(_ACTIONS), default="list", required=False)
@click.argument("name", required=False)
@click.option("--agent", metavar="NAME", help="With start: whose branch it is; what names nobody there is its.")
@click.option("--at", metavar="FOLDER", type=click.Path(), help="With start: where it works; beside this one if not.")
@click.option("-m", "--message", metavar="TEXT", help="With merge: the commit's message.")
@click.option("--reason", metavar="TEXT", help="With quarantine: why, for those who ask.")
@click.option("--force", is_flag=True, help="With drop: even if it was not merged; a rescue ref keeps it.")
@click.option("--dry-run", is_flag=True, help="With merge, drop: only say what would be done.")
@click.pass_context
def branch(ctx: click.Context, /, action: str, name: str | None, as_json: bool, **given: Any) -> None:
    """Give an agent a branch with a folder of its own, merge or drop it, or let nobody read from it.

    'start' prints the folder that the agent's MEMFS_WORKSPACE is to be set to; only memory lies there. 'merge' joins
    what was written there with the branch that is checked out here, field by field. A branch in 'quarantine' reaches
    no recall, no prompt and no merge, until it is released; 'show', 'log', 'diff' and 'review' still look at it.
    """
    _check(ctx, action, name, given)
    with opened(ctx) as workspace:
        branches = workspace.teams.branches
        if action == "list":
            _list(branches.list(), as_json)
        elif action == "start":
            _start(branches.start(name or "", agent=given["agent"] or "", folder=given["at"]), as_json)
        elif action == "merge":
            done = branches.merge(name or "", message=given["message"] or "", dry_run=given["dry_run"])
            _merged(name or "", done, given["dry_run"], as_json)
        elif action == "drop":
            _dropped(
                branches.drop(name or "", force=given["force"], dry_run=given["dry_run"]), given["dry_run"], as_json
            )
        else:
            _keep_back(branches, action, name or "", given["reason"] or "", as_json)


def _check(ctx: click.Context, action: str, name: str | None, given: dict[str, Any]) -> None:
    if (name is None) != (action == "list"):
        raise click.UsageError("'list' takes no name" if name else f"'{action}' needs the name of a branch", ctx)
    for option, actions in _OPTIONS.items():
        if given[option] and action not in actions:
            raise click.UsageError(f"'{action}' takes no --{option.replace('_', '-')}", ctx)


def _json(one: Branch) -> dict[str, Any]:
    return {
        "name": one.name,
        "branch": one.branch,
        "commit": one.commit or None,
        "folder": str(one.folder) if one.folder else None,
        "agent": one.agent,
        "started": one.started or None,
        "ready": one.ready,
        "ahead": one.ahead,
        "waiting": one.waiting,
        "quarantined": one.quarantined,
        "reason": one.reason,
    }


def _list(found: list[Branch], as_json: bool) -> None:
    if as_json:
        print_json({"branches": [_json(one) for one in found]})
        return
    print_table(
        [(one.name, one.agent, _standing(one), str(one.folder) if one.folder else "") for one in found], dim=(1, 3)
    )
    note(count(len(found), "branch", "branches") if found else "no branches; memfs team branch start NAME makes one")


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


def _start(made: Branch, as_json: bool) -> None:
    if as_json:
        print_json(_json(made))
        return
    print_raw(f"Started {styled(made.branch, fg='green', bold=True)} at {made.commit[:12]}")
    print_raw(f"export MEMFS_WORKSPACE={shlex.quote(str(made.folder))}")
    note(f"whatever is written there goes to that branch; 'memfs team branch merge {made.name}' brings it here")


def _merged(name: str, done: BranchMerge, dry_run: bool, as_json: bool) -> None:
    joined = done.joined
    if as_json:
        print_json(_merged_json(done) | {"dry_run": dry_run})
        return
    if done.uncommitted:
        them = "it" if done.uncommitted == 1 else "them"
        print_raw(f"Would first commit {count(done.uncommitted, 'write')} made there, and merge {them}, too")
    if joined.nothing and not done.uncommitted:
        print_raw(f"Nothing to merge from {clean(name)}")
    elif not joined.nothing:
        print_raw(f"{'Would merge' if dry_run else 'Merged'} {styled(clean(name), fg='green', bold=True)}")
    for path in joined.changed[:_SHOWN]:
        print_raw(f"    {clean(path)}")
    if len(joined.changed) > _SHOWN:
        print_raw(styled(f"    and {count(len(joined.changed) - _SHOWN, 'more file')}", dim=True))
    _remarks(done)


def _merged_json(done: BranchMerge) -> dict[str, Any]:
    joined = done.joined
    return {
        "branch": done.branch,
        "commit": joined.commit or None,
        "forward": joined.forward,
        "changed": list(joined.changed),
        "conflicts": [clash_json(one) for one in joined.conflicts],
        "waiting": joined.waiting,
        "edited": list(done.edited),
        "alive": [number for number, _ in done.alive],
        "uncommitted": done.uncommitted,
    }


def _remarks(done: BranchMerge) -> None:
    for one in done.joined.conflicts:
        field = f"{one.field}: " if one.field else ""
        note(f"{one.path}: {field}both changed it; kept {readable(one.kept)}, lost {readable(one.lost)}")
    if done.joined.conflicts:
        note("'memfs resolve' shows what both changed, and decides")
    if done.joined.waiting:
        note(f"merged; the commit waits: {done.joined.waiting}")
    for path in done.edited:
        note(f"{path} was edited there by hand and is not committed: it was left out")
    for number, program in done.alive:
        note(f"{program} (process {number}) still works there; what it writes from now on is not merged yet")


def _dropped(done: DroppedBranch, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "branch": done.branch,
                "commit": done.commit or None,
                "rescue": done.rescue or None,
                "folder": done.folder or None,
                "left": list(done.left),
                "dry_run": dry_run,
            }
        )
        return
    print_raw(f"{'Would drop' if dry_run else 'Dropped'} {styled(clean(_short(done.branch)), fg='yellow', bold=True)}")
    if done.rescue:
        print_raw(f"  what was not merged {'would stay' if dry_run else 'stays'} as {clean(done.rescue)}")
    for path in done.left[:_SHOWN]:
        note(f"{path} stays in {done.folder}: it is not committed, or no memory")


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")


def _keep_back(branches: Branches, action: str, name: str, reason: str, as_json: bool) -> None:
    one = branches.quarantine(name, reason) if action == "quarantine" else branches.release(name)
    if as_json:
        print_json(_json(one))
        return
    done = "Quarantined" if one.quarantined else "Released"
    print_raw(f"{done} {styled(clean(one.branch), fg='yellow', bold=True)}")
    if one.quarantined and one.commit and not one.ahead:
        hint = f"memfs undo --agent {one.agent}" if one.agent else "memfs undo"
        note(f"what it wrote is merged already, and is still read here; '{hint}' takes it back")
