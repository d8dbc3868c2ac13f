"""``sync``: exchange memory with a remote, and say what came, what went, and what both sides had changed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import remark, verb, wants_json
from memfs.doors.cli.output import Text, count, is_interactive, listed, merge, note, one_line, readable, styled
from memfs.fs.workspace_location import BRANCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memfs.team.history_merge import FileClash, MergeResult
    from memfs.team.sync import SyncOutcome
    from memfs.workspace import Workspace

_PATHS_SHOWN = 20
_VALUE_WIDTH = 40


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What was exchanged with a remote, or would be.

    Attributes:
        outcome: what the sync did.
        merged: whether a merge was needed.
        changed: the files that are different here.
        conflicts: what both sides changed differently.
        refused: why what was merged was not pushed, or would not be; empty where that was not refused.
    """

    outcome: SyncOutcome = field(
        metadata=merge("remote branch address commit fetched ahead pushed rounds uncommitted edits rescued waiting")
    )
    merged: bool
    changed: tuple[str, ...]
    conflicts: tuple[FileClash, ...]
    refused: str = ""


def _text(report: SyncReport, dry_run: bool, no_push: bool) -> Text:
    done = report.outcome
    where = f"{done.remote}/{done.branch}"
    if done.uncommitted:
        yield f"Would first commit {count(done.uncommitted, 'write')} that wait" + "s" * (done.uncommitted == 1)
    if done.joined is not None:
        yield from _joined_text(done.joined, where, dry_run)
    if done.rescued:
        yield f"What {where} had before is kept as {done.rescued}"
    if done.pushed:
        yield f"Pushed {count(done.ahead, 'commit')} to {where}: {styled(done.commit[:12], fg='yellow')}"
    elif dry_run and not no_push and not report.refused and (done.ahead or done.uncommitted):
        yield f"Would push to {where}: {_to_be_pushed(done)}"
    elif done.joined is None:
        stay = f"Nothing to take from {where}, and {count(done.ahead, 'commit')} it lacks stay here"
        yield stay if done.ahead else f"In step with {where}"


def _way_in(done: SyncOutcome) -> str:
    if done.branch == BRANCH:
        return "'memfs init' in their clone of the code"
    address, name = shlex.quote(done.address), shlex.quote(done.branch)
    return f"'git clone --branch {name} {address}', and 'memfs init' in that folder"


def _to_be_pushed(done: SyncOutcome) -> str:
    """What a dry run found to be pushed: some of it is not committed yet."""
    found = [count(done.ahead, "commit")] if done.ahead else []
    if done.uncommitted:
        found.append("what waits")
    if done.joined is not None:
        found.append("the merge")
    return ", ".join(found)


def _joined_text(joined: MergeResult, where: str, dry_run: bool) -> Text:
    done = "Would merge" if dry_run else "Moved forward to" if joined.forward else "Merged"
    yield f"{done} {where}: {count(len(joined.changed), 'file')} changed here"
    yield from listed("", joined.changed, _PATHS_SHOWN)
    for clash in joined.conflicts:
        kept, lost = (one_line(readable(value), _VALUE_WIDTH) for value in (clash.kept, clash.lost))
        place = f"{clash.path} {clash.field or 'the whole file'}"
        yield f"{styled('Both changed', fg='yellow')} {place}: {kept} stands, not {lost}"
    if joined.conflicts and not dry_run:
        yield "'memfs team conflicts' lists what is to be decided"


def _remark_edits(edits: Sequence[str], invalid: Sequence[str], fate: str, hint: str) -> None:
    """Name the edits by hand that no commit has: those that could be committed, and those that cannot."""
    ready = [path for path in edits if path not in invalid]
    if ready:
        remark(f"{count(len(ready), 'edit')} by hand {fate}: {_first(ready)}", hint)
    if invalid:
        remark(
            f"{count(len(invalid), 'edit')} by hand cannot be committed: {_first(invalid)}", "'memfs check' says why"
        )


def _first(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _PATHS_SHOWN:,} more" if len(paths) > _PATHS_SHOWN else ""
    return ", ".join(paths[:_PATHS_SHOWN]) + more


def _fate(push: bool, dry_run: bool, yes: bool, adopts: bool) -> tuple[str, str]:
    """What becomes of edits by hand that no commit has, and what to do about it."""
    if dry_run and push and yes:
        return "would be committed and published", ""
    if dry_run and push and adopts:
        return "would be asked about", ""
    again = "'memfs commit' says why" if yes and push else "'memfs sync --yes' commits and publishes what can be"
    return "would stay here" if dry_run else "stayed here", again


def _ask(edits: Sequence[str], asked: bool) -> bool | None:
    """Whether these edits are to be published; None where there is no one to ask."""
    if not asked:
        return None
    note(f"{count(len(edits), 'edit')} by hand {'is' if len(edits) == 1 else 'are'} not committed:")
    for line in listed("", edits, _PATHS_SHOWN):
        note(line)
    return click.confirm("Commit and publish them? (no: they stay as they are, the rest is synced)", err=True)


@verb("sync", text=_text, exit_code=lambda report: bool(report.outcome.waiting or report.refused))
@click.argument("remote", required=False, metavar="[REMOTE]")
@click.option("--branch", metavar="B", default="", help="The branch there, if not the one that this branch follows.")
@click.option("--dry-run", is_flag=True, help="Fetch, and only say what would be merged and pushed.")
@click.option("-y", "--yes", is_flag=True, help="Commit and publish edits by hand that are not committed; do not ask.")
@click.option("--no-push", is_flag=True, help="Only take what others have.")
@click.option(
    "--rejoin", is_flag=True, help="Merge with a remote that was rewritten, which brings back what it dropped."
)
def sync(
    workspace: Workspace, remote: str | None, branch: str, dry_run: bool, yes: bool, no_push: bool, rejoin: bool
) -> SyncReport:
    """Fetch the branch from a remote, merge it field by field, and push the result. Never forces.

    What waits is committed first. An edit by hand that is not committed is published only with --yes or, where
    history.adopt is auto and history.commit not manual, after asking; else it stays here, and is named. Where others
    push at the same moment, it fetches and merges again. A remote whose history was rewritten is refused, and what it
    had is kept; so are commits of other files than memory: push those yourself. What was merged before a refusal stays,
    and is named.

    Exit code 1: it is refused, or the merge waits, as git is busy.

    Examples:
        memfs sync
        memfs sync origin --dry-run
        memfs sync backup --branch team-memory --json
    """
    push = not no_push
    syncer = workspace.teams.syncer
    publish = yes and push and not dry_run
    found = syncer.unpublished_edits() if push and not dry_run and not yes else []
    edits = publish or (_ask(found, is_interactive() and not wants_json()) if found else None)
    done = syncer.sync(remote or "", branch=branch, push=push, rejoin=rejoin, dry_run=dry_run, edits=edits)
    invalid = workspace.checker.invalid_edits() if done.edits else []
    _remark_edits(done.edits, invalid, *_fate(push, dry_run, yes, workspace.parts.policy.adopts))
    if done.waiting:
        remark(f"the merge waits for its commit: {done.waiting}")
    if done.pushed and not done.fetched:
        remark(f"others join by {_way_in(done)}")
    if done.refused:
        place = f"{done.refused.path}: " if done.refused.path else ""
        remark(f"{place}{done.refused.sentence}", done.refused.hint or "")
    for problem in workspace.store.problems():
        if problem.code == "DuplicateId":
            remark(f"{problem.path}: {problem.message}; {problem.hint}")
    joined = done.joined
    return SyncReport(
        outcome=done,
        merged=joined is not None and not joined.forward,
        changed=joined.changed if joined else (),
        conflicts=joined.conflicts if joined else (),
        refused=str(done.refused or ""),
    )
