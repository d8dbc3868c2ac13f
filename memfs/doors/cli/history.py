"""``commit``, ``diff``, ``rollback`` and ``recover``: the memory's history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.commit_report import land
from memfs.doors.cli.options import allow_in, allow_secret_option, named
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    note_problems,
    print_json,
    print_raw,
    print_table,
    styled,
    time_text,
)
from memfs.errors import HistoryUnavailable

if TYPE_CHECKING:
    from memfs.workspace import Workspace

_DIFF_COLOURS: Mapping[str, dict[str, Any]] = {
    "+++": {"bold": True},
    "---": {"bold": True},
    "dif": {"bold": True},
    "@@ ": {"fg": "cyan"},
    "+": {"fg": "green"},
    "-": {"fg": "red"},
}


@verb("commit", example='memfs commit\nmemfs commit -m "Decisions of the March meeting"')
@click.option("-m", "--message", default="", help="The commit's message, instead of one made from what changed.")
@click.option("--include-staged", is_flag=True, help="Also files for which something else is staged in git.")
@allow_secret_option
@click.pass_context
def commit(ctx: click.Context, message: str, include_staged: bool, allow_secret: str, as_json: bool) -> int:
    """Commit what waits: what memfs wrote, and the edits that people made by hand.

    Only files of memfs are committed, whatever else is staged. Commits are signed where git's commit.gpgsign says so;
    the repository's hooks do not run. Exit code 1 when git is busy or a commit cannot be signed: changes still wait.
    """
    with opened(ctx) as workspace:
        if allow_secret:
            allow_in(workspace, workspace.checker.leaking_edits(), allow_secret)
        done = workspace.store.flush(adopt=True, include_staged=include_staged, message=message, asked=True)
        hooks = workspace.repository.skipped_hooks() if done.commits else ()
        invalid = [path for path in workspace.checker.invalid_edits() if path not in done.skipped]
        leaking = workspace.checker.leaking_edits()
        problems = workspace.store.problems()
    if as_json:
        facts = {"commits": list(done.commits), "adopted": list(done.adopted), "skipped": [*done.skipped, *invalid]}
        print_json({**facts, "waiting": done.waiting, "reason": done.reason})
    else:
        _print_commits(done.commits, done.adopted, left=bool(done.skipped or invalid or done.reason))
    for path in done.skipped:
        note(f"{path} is left alone: something else is staged for it (--include-staged takes it too)")
    for path in invalid:
        leaks = "holds what looks like a secret (--allow-secret REASON lets it stay)"
        note(f"{path} is left alone: it {leaks if path in leaking else 'is invalid'}, see 'memfs check'")
    if done.reason:
        note(f"{count(done.waiting, 'change')} still to commit: {done.reason}")
    if hooks:
        note(f"the hooks of this repository did not run: {', '.join(hooks)}")
    note_problems(problems)
    return 1 if done.reason else 0


def _print_commits(commits: tuple[str, ...], adopted: tuple[str, ...], *, left: bool) -> None:
    for name in commits:
        print_raw(f"Committed {styled(name[:12], fg='yellow')}")
    for path in adopted:
        print_raw(f"  {clean(path)} {styled('(edited by hand)', dim=True)}")
    if not commits:
        print_raw("Nothing was committed" if left else "Nothing to commit")


@verb("diff", example="memfs diff\nmemfs diff HEAD~5 HEAD\nmemfs diff HEAD~5 use-postgresql-for-transactions-7h2k9q")
@click.argument("arguments", nargs=-1, metavar="[A] [B] [ID|PATH]")
@click.pass_context
def diff(ctx: click.Context, arguments: tuple[str, ...], as_json: bool) -> None:
    """Show what changed between revision A (HEAD by default) and B (the files as they are by default)."""
    with opened(ctx) as workspace:
        a, b, target = _sides(workspace, arguments)
        text = workspace.history.diff(a, b, named(workspace, target))
    if as_json:
        print_json({"a": a, "b": b, "target": target, "diff": text})
        return
    for line in text.removesuffix("\n").split("\n") if text else ():
        style = _DIFF_COLOURS.get(line[:3]) or _DIFF_COLOURS.get(line[:1]) or {}
        print_raw(styled(line, **style))


def _sides(workspace: Workspace, arguments: tuple[str, ...]) -> tuple[str, str | None, str | None]:
    """Which arguments are revisions and which, the last, is an item: what names no revision is one."""
    revisions: list[str] = []
    for number, argument in enumerate(arguments):
        if len(revisions) < 2 and _is_revision(workspace, argument):
            revisions.append(argument)
        elif number == len(arguments) - 1:
            return (revisions or ["HEAD"])[0], revisions[1] if len(revisions) > 1 else None, argument
        else:
            raise HistoryUnavailable(f"{argument!r} is no revision", hint="name a commit, branch, tag or date")
    return (revisions or ["HEAD"])[0], revisions[1] if len(revisions) > 1 else None, None


def _is_revision(workspace: Workspace, text: str) -> bool:
    try:
        workspace.repository.resolve(text)
    except HistoryUnavailable:
        return False
    return True


@verb(
    "rollback",
    example="memfs rollback HEAD~1 use-postgresql-for-transactions-7h2k9q\nmemfs rollback 2026-03-01 --dry-run",
)
@click.argument("revision", metavar="REV")
@click.argument("target", required=False, metavar="[ID|PATH]", shell_complete=complete_ids)
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("-m", "--message", default="", help="The commit's message.")
@click.pass_context
def rollback(ctx: click.Context, revision: str, target: str | None, dry_run: bool, message: str, as_json: bool) -> None:
    """Bring back the memory, one item or one folder as it was at REV, as a new commit; history is never rewritten.

    Where history.commit is manual the files are brought back for you to commit. A file edited by hand since its last
    commit is not overwritten: commit the edit or undo it first.
    """
    with opened(ctx) as workspace:
        done = workspace.history.rollback(revision, named(workspace, target), message=message, dry_run=dry_run)
        waits = workspace.store.by_hand and not dry_run
    if as_json:
        changed = {"restored": list(done.restored), "removed": list(done.removed)}
        print_json({**changed, "commit": done.commit, "dry_run": dry_run})
        return
    would = "Would restore" if dry_run else "Restored"
    for path in done.restored:
        print_raw(f"{would} {clean(path)}")
    for path in done.removed:
        print_raw(f"{'Would remove' if dry_run else 'Removed'} {clean(path)}")
    if not (done.restored or done.removed):
        print_raw(f"Nothing differs from {clean(revision)}")
    elif done.commit:
        print_raw(f"Committed {styled(done.commit[:12], fg='yellow')}")
    elif waits:
        print_raw("Commit these files with git, or 'memfs commit'")


@verb("recover", example="memfs recover\nmemfs recover use-postgresql-for-transactions-7h2k9q")
@click.argument("name", required=False, metavar="[NAME|ID]")
@click.pass_context
def recover(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """List what memfs had written and no commit holds, such as what a change by hand displaced; NAME brings it back."""
    with opened(ctx) as workspace:
        if name is not None:
            path = workspace.recovered.restore(name)
            land(workspace, None)
            rows = []
        else:
            rows = workspace.recovered.list()
    if name is not None:
        if as_json:
            print_json({"restored": path})
        else:
            print_raw(f"Brought back {clean(path)}")
    elif as_json:
        shown = [{"name": row.name, "path": row.path, "time": time_text(row.time), "bytes": row.bytes} for row in rows]
        print_json({"recoverable": shown})
    else:
        print_table([(row.name, f"{row.time:%Y-%m-%d %H:%M}", row.path) for row in rows], dim=(1,))
        note(f"{count(len(rows), 'displaced content')}")
