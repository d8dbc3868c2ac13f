"""``sync``: exchange memory with a remote, and say what came, what went, and what both sides had changed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.output import Text, count, listed, merge, one_line, readable, styled
from memfs.fs.workspace_location import BRANCH

if TYPE_CHECKING:
    from memfs.team.history_merge import FileClash
    from memfs.team.sync import SyncOutcome
    from memfs.workspace import Workspace

_PATHS_SHOWN = 20


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
        yield f"Would first commit {count(done.uncommitted, 'pending write')}"
    if (joined := done.joined) is not None:
        word = "Would merge" if dry_run else "Fast-forwarded to" if joined.forward else "Merged"
        yield f"{word} {where}: {count(len(joined.changed), 'file')} changed"
        yield from listed("", joined.changed, _PATHS_SHOWN)
        for clash in joined.conflicts:
            kept, lost = (one_line(readable(value), 40) for value in (clash.kept, clash.lost))
            place = f"{clash.field} in {clash.path}" if clash.field else clash.path
            yield f"{styled('Both sides changed', fg='yellow')} {place}: kept {kept}, not {lost}"
        if joined.conflicts and not dry_run:
            yield "'memfs team conflicts' lists what is to be decided"
    if done.rescued:
        yield f"What {where} had before is kept as {done.rescued}"
    if done.pushed:
        yield f"Pushed {count(done.ahead, 'commit')} to {where}: {styled(done.commit[:12], fg='yellow')}"
    elif dry_run and not no_push and not report.refused and (done.ahead or done.uncommitted):
        parts = [count(done.ahead, "commit")] * bool(done.ahead) + ["pending writes"] * bool(done.uncommitted)
        yield f"Would push to {where}: {', '.join(parts + ['the merge'] * bool(done.joined))}"
    elif done.joined is None:
        stay = f"Nothing to merge from {where}; {count(done.ahead, 'commit')} not pushed"
        yield stay if done.ahead else f"Up to date with {where}"


@verb("sync", text=_text, exit_code=lambda report: bool(report.outcome.waiting or report.refused))
@click.argument("remote", required=False, metavar="[REMOTE]")
@click.option("--branch", metavar="B", default="", help="The branch there, if not the one that this branch follows.")
@click.option("--dry-run", is_flag=True, help="Fetch, and only say what would be merged and pushed.")
@click.option("-y", "--yes", is_flag=True, help="Commit and publish edits by hand that are not committed.")
@click.option("--no-push", is_flag=True, help="Only take what others have.")
@click.option(
    "--rejoin", is_flag=True, help="Merge with a remote that was rewritten, which brings back what it dropped."
)
def sync(
    workspace: Workspace, remote: str | None, branch: str, dry_run: bool, yes: bool, no_push: bool, rejoin: bool
) -> SyncReport:
    """Fetch the branch from a remote, merge it field by field, and push the result. Never forces.

    Pending changes are committed first. An edit by hand that is not committed is published only with --yes; without, a
    sync that would commit it is refused; where edits are left to you (history.adopt, history.commit), sync lists them.
    Where others push at the same moment, it fetches and merges again. A remote whose history was rewritten is refused,
    and what it had is kept. Commits that touch other files than memory are refused, too: push those yourself. What was
    merged before a refusal stays, and is named.

    Exit code 1: it is refused, or the merge waits, as git is busy.

    Examples:
        memfs sync
        memfs sync origin --dry-run
        memfs sync backup --branch team-memory --json
    """
    push = not no_push
    edits = (yes and push and not dry_run) or None
    done = workspace.teams.syncer.sync(
        remote or "", branch=branch, push=push, rejoin=rejoin, dry_run=dry_run, edits=edits
    )
    if done.edits:
        named = ", ".join(done.edits[:_PATHS_SHOWN])
        hint = "'memfs check' names what cannot be committed, 'memfs sync --yes' publishes the rest"
        remark(f"{count(len(done.edits), 'edit')} by hand not committed: {named}", hint)
    remark(f"the merge is not committed yet: {done.waiting}" if done.waiting else "")
    if done.pushed and not done.fetched:
        clone = f"'git clone --branch {shlex.quote(done.branch)} {shlex.quote(done.address)}', then 'memfs init' in it"
        remark("to join, others run " + ("'memfs init' in their clone of the code" if done.branch == BRANCH else clone))
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
