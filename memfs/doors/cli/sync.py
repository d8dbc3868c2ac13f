"""``sync``: exchange memory with a remote, and say what came, what went, and what both sides had changed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import clean, count, note, one_line, plain, print_json, print_raw, readable, styled
from memfs.doors.cli.streams import is_interactive
from memfs.fs.own_branch import BRANCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memfs.team.history_merge import FileClash, MergeResult
    from memfs.team.sync import SyncOutcome

_PATHS_SHOWN = 20
_VALUE_WIDTH = 40


@verb("sync", example="memfs sync\nmemfs sync origin --dry-run\nmemfs sync backup --branch team-memory --json")
@click.argument("remote", required=False, metavar="[REMOTE]")
@click.option("--branch", metavar="B", default="", help="The branch there, if not the one that this branch follows.")
@click.option("--dry-run", is_flag=True, help="Fetch, and only say what would be merged and pushed.")
@click.option("-y", "--yes", is_flag=True, help="Commit and publish edits by hand that are not committed; do not ask.")
@click.option("--no-push", is_flag=True, help="Only take what others have.")
@click.option(
    "--rejoin", is_flag=True, help="Merge with a remote that was rewritten, which brings back what it dropped."
)
@click.pass_context
def sync(
    ctx: click.Context,
    remote: str | None,
    branch: str,
    dry_run: bool,
    yes: bool,
    no_push: bool,
    rejoin: bool,
    as_json: bool,
) -> int:
    """Fetch the branch from a remote, merge it field by field, and push the result. Never forces.

    What waits is committed first. An edit by hand that is not committed is published only after asking, or with --yes.
    Where others push at the same moment, it fetches and merges again. A remote whose
    history was rewritten is refused, and what it had is kept; so are commits of other files than memory: push those
    yourself. Exit code 1 when the merge waits, as git is busy.
    """
    with opened(ctx) as workspace:
        syncer = workspace.teams.syncer
        found = [] if dry_run or no_push else syncer.unpublished_edits()
        edits = _ask(found, as_json, yes) if found else None
        done = syncer.sync(remote or "", branch=branch, push=not no_push, rejoin=rejoin, dry_run=dry_run, edits=edits)
        problems = [one for one in workspace.store.problems() if one.code == "DuplicateId"]
    if as_json:
        print_json(_json(done, dry_run))
    else:
        _print(done, dry_run, would_push=dry_run and not no_push)
        if done.pushed and not done.fetched:
            note(f"others join by {_way_in(done)}")
    for problem in problems:
        note(f"{clean(problem.path)}: {clean(problem.message)}; {clean(problem.hint)}")
    return 1 if done.waiting else 0


def _way_in(done: SyncOutcome) -> str:
    if done.branch == BRANCH:
        return "'memfs init' in their clone of the code"
    address, name = shlex.quote(clean(done.address)), shlex.quote(clean(done.branch))
    return f"'git clone --branch {name} {address}', and 'memfs init' in that folder"


def _ask(edits: Sequence[str], as_json: bool, yes: bool) -> bool | None:
    """Whether these edits are to be published; None where there is nobody to ask."""
    if yes or as_json or not is_interactive():
        return True if yes else None
    note(f"{count(len(edits), 'edit')} by hand {'is' if len(edits) == 1 else 'are'} not committed:")
    for path in edits[:_PATHS_SHOWN]:
        note(f"  {clean(path)}")
    if len(edits) > _PATHS_SHOWN:
        note(f"  and {count(len(edits) - _PATHS_SHOWN, 'more file')}")
    return click.confirm("Commit and publish them? (no: they stay as they are, the rest is synced)", err=True)


def _json(done: SyncOutcome, dry_run: bool) -> dict[str, Any]:
    joined = done.joined
    return {
        "remote": done.remote,
        "branch": done.branch,
        "address": done.address,
        "dry_run": dry_run,
        "commit": done.commit,
        "fetched": done.fetched,
        "merged": joined is not None and not joined.forward,
        "changed": list(joined.changed) if joined else [],
        "conflicts": [clash_json(clash) for clash in joined.conflicts] if joined else [],
        "ahead": done.ahead,
        "pushed": done.pushed,
        "rounds": done.rounds,
        "uncommitted": done.uncommitted,
        "edits": list(done.edits),
        "rescued": done.rescued,
        "waiting": done.waiting,
    }


def clash_json(clash: FileClash) -> dict[str, Any]:
    """A field that both sides changed, as scripts read it."""
    return {"path": clash.path, "field": clash.field, "kept": plain(clash.kept), "lost": plain(clash.lost)}


def _print(done: SyncOutcome, dry_run: bool, *, would_push: bool) -> None:
    where = f"{clean(done.remote)}/{clean(done.branch)}"
    if done.uncommitted:
        print_raw(f"Would first commit {count(done.uncommitted, 'write')} that wait" + "s" * (done.uncommitted == 1))
    if done.joined is not None:
        _print_joined(done.joined, where, dry_run)
    if done.rescued:
        print_raw(f"What {where} had before is kept as {clean(done.rescued)}")
    if done.pushed:
        print_raw(f"Pushed {count(done.ahead, 'commit')} to {where}: {styled(done.commit[:12], fg='yellow')}")
    elif would_push and (done.ahead or done.uncommitted):
        print_raw(f"Would push to {where}: {_to_be_pushed(done)}")
    elif done.joined is None:
        ahead = f", and {count(done.ahead, 'commit')} it lacks stay here" if done.ahead else ""
        print_raw(f"Nothing to take from {where}{ahead}" if ahead else f"In step with {where}")
    if done.edits:
        left = "would be asked about" if dry_run else "stayed here"
        note(f"{count(len(done.edits), 'edit')} by hand {left}: {clean(', '.join(done.edits[:3]))}")
    if done.waiting:
        note(f"the merge waits for its commit: {done.waiting}")


def _to_be_pushed(done: SyncOutcome) -> str:
    """What a dry run found to be pushed: some of it is not committed yet."""
    found = [count(done.ahead, "commit")] if done.ahead else []
    if done.uncommitted:
        found.append("what waits")
    if done.joined is not None:
        found.append("the merge")
    return ", ".join(found)


def _print_joined(joined: MergeResult, where: str, dry_run: bool) -> None:
    verb_ = "Would merge" if dry_run else "Moved forward to" if joined.forward else "Merged"
    print_raw(f"{verb_} {where}: {count(len(joined.changed), 'file')} changed here")
    for path in joined.changed[:_PATHS_SHOWN]:
        print_raw(f"  {clean(path)}")
    if len(joined.changed) > _PATHS_SHOWN:
        print_raw(styled(f"  and {count(len(joined.changed) - _PATHS_SHOWN, 'more file')}", dim=True))
    for clash in joined.conflicts:
        kept, lost = (one_line(readable(value), _VALUE_WIDTH) for value in (clash.kept, clash.lost))
        field = clash.field or "the whole file"
        where_ = f"{styled('Both changed', fg='yellow')} {clean(clash.path)} {clean(field)}"
        print_raw(f"{where_}: {kept} stands, {lost} is kept aside")
    if joined.conflicts and not dry_run:
        print_raw("memfs resolve lists them and decides.")
