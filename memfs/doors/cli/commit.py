"""``commit``: commit what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import replace
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.options import allow_in, allow_secret_option
from memfs.doors.cli.output import Text, count, problems_note, styled

if TYPE_CHECKING:
    from memfs.store.parts import FlushResult
    from memfs.workspace import Workspace


def _text(done: FlushResult) -> Text:
    yield from (f"Committed {styled(name[:12], fg='yellow')}" for name in done.commits)
    yield from (f"  {path} {styled('(edited by hand)', dim=True)}" for path in done.adopted)
    if not done.commits:
        yield "Nothing was committed" if done.skipped or done.reason else "Nothing to commit"


@verb("commit", text=_text, exit_code=lambda done: bool(done.reason))
@click.option("-m", "--message", default="", help="The commit's message, instead of one made from what changed.")
@click.option("--include-staged", is_flag=True, help="Also files for which something else is staged in git.")
@allow_secret_option
def commit(workspace: Workspace, message: str, include_staged: bool, allow_secret: str) -> FlushResult:
    """Commit pending changes: what memfs wrote, and the edits that people made by hand.

    Only files of memfs are committed, whatever else is staged. With -m that is one commit, unless agents wrote some of
    it; if a memory was written several times, only its last version is committed, and 'memfs restore --displaced' keeps
    the others for 30 days. Commits are signed where git's commit.gpgsign says so; the repository's hooks do not run.

    Exit code 1: git is busy, or a commit cannot be signed; changes still wait.

    Examples:
        memfs commit
        memfs commit -m "Decisions of the March meeting"
    """
    if allow_secret:
        allow_in(workspace, workspace.checker.leaking_edits(), allow_secret)
    done = workspace.store.flush(adopt=True, include_staged=include_staged, message=message, asked=True)
    invalid = [path for path in workspace.checker.invalid_edits() if path not in done.skipped]
    leaking = workspace.checker.leaking_edits()
    for path in done.skipped:
        remark(f"skipped {path}: something else is staged for it (--include-staged takes it too)")
    for path in invalid:
        why = "holds what looks like a secret (--allow-secret REASON lets it stay)" if path in leaking else "is invalid"
        remark(f"skipped {path}: it {why}; see 'memfs check'")
    if done.reason:
        remark(f"{count(done.waiting, 'change')} still to commit: {done.reason}")
    if done.commits and (hooks := workspace.repository.skipped_hooks()):
        remark(f"the hooks of this repository did not run: {', '.join(hooks)}")
    remark(problems_note(len(workspace.store.problems())))
    return replace(done, skipped=(*done.skipped, *invalid))
