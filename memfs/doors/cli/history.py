"""``commit``, ``log`` and ``diff``: commit what waits, and show what was committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, replace
from memfs.doors.cli.command import complete_ids, remark, verb
from memfs.doors.cli.options import allow_in, allow_secret_option, as_of, is_path, named, since, when
from memfs.doors.cli.output import Note, Text, count, listed, one_line, problems_note, styled, width
from memfs.errors import HistoryUnavailable

if TYPE_CHECKING:
    from memfs.git.log import Revision
    from memfs.store.parts import FlushResult
    from memfs.workspace import Workspace

_PATHS_SHOWN = 20


# -- commit -----------------------------------------------------------------------------------------------------------
def _commit_text(done: FlushResult) -> Text:
    for name in done.commits:
        yield f"Committed {styled(name[:12], fg='yellow')}"
    for path in done.adopted:
        yield f"  {path} {styled('(edited by hand)', dim=True)}"
    if not done.commits:
        yield "Nothing was committed" if done.skipped or done.reason else "Nothing to commit"


@verb("commit", text=_commit_text, exit_code=lambda done: bool(done.reason))
@click.option("-m", "--message", default="", help="The commit's message, instead of one made from what changed.")
@click.option("--include-staged", is_flag=True, help="Also files for which something else is staged in git.")
@allow_secret_option
def commit(workspace: Workspace, message: str, include_staged: bool, allow_secret: str) -> FlushResult:
    """Commit what waits: what memfs wrote, and the edits that people made by hand.

    Only files of memfs are committed, whatever else is staged. With -m that is one commit, unless agents wrote some of
    it; of a memory written several times it has the last version, and 'memfs restore --displaced' the others for 30
    days. Commits are signed where git's commit.gpgsign says so; the repository's hooks do not run.

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
        remark(f"{path} is left alone: something else is staged for it (--include-staged takes it too)")
    for path in invalid:
        why = "holds what looks like a secret (--allow-secret REASON lets it stay)" if path in leaking else "is invalid"
        remark(f"{path} is left alone: it {why}, see 'memfs check'")
    if done.reason:
        remark(f"{count(done.waiting, 'change')} still to commit: {done.reason}")
    if done.commits and (hooks := workspace.repository.skipped_hooks()):
        remark(f"the hooks of this repository did not run: {', '.join(hooks)}")
    remark(problems_note(len(workspace.store.problems())))
    return replace(done, skipped=(*done.skipped, *invalid))


# -- log --------------------------------------------------------------------------------------------------------------
def _log_text(log: tuple[Revision, ...], id: str | None, since: str | None) -> Text:
    for revision in log:
        moment = f"{revision.time:%Y-%m-%d %H:%M}"
        head = f"{styled(revision.short, fg='yellow')}  {styled(moment, dim=True)}  {revision.author}"
        yield f"{head}  {styled(one_line(revision.subject, max(width() - 45, 0)), bold=True)}"
        yield from listed("", revision.paths, _PATHS_SHOWN)
    if not log:
        what = "memory" if id is None else id
        yield Note(
            f"no commit has {what} yet: 'memfs commit' makes one" if since is None else f"no commits since {since}"
        )


@verb("log", text=_log_text, key="revisions")
@click.argument("id", required=False, metavar="[ID|PATH]", shell_complete=complete_ids)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most this many commits.")
@since
@as_of
def log(workspace: Workspace, id: str | None, limit: int, since: str | None, as_of: str | None) -> tuple[Revision, ...]:
    """Show the commits that changed the memory, or one item of it, newest first.

    Examples:
        memfs log --limit 5
        memfs log use-postgresql-for-transactions-7h2k9q
        memfs log --since 7d --json
    """
    begin = when(since, "since")
    return tuple(workspace.history.log(named(workspace, id), limit=limit, since=begin, revision=as_of or ""))


# -- diff -------------------------------------------------------------------------------------------------------------
_COLOURS: Mapping[str, dict[str, Any]] = {
    "+++": {"bold": True},
    "---": {"bold": True},
    "dif": {"bold": True},
    "@@ ": {"fg": "cyan"},
    "+": {"fg": "green"},
    "-": {"fg": "red"},
}


@dataclass(frozen=True, slots=True)
class MemoryDiff:
    """What changed.

    Attributes:
        a: the older revision, as it was written.
        b: the newer one; null for the files as they are.
        target: the item or path that was asked for; null for all of the memory.
        diff: the changes, as git prints them.
    """

    a: str
    b: str | None
    target: str | None
    diff: str


def _diff_text(found: MemoryDiff) -> Text:
    for line in found.diff.removesuffix("\n").split("\n") if found.diff else ():
        yield styled(line, **(_COLOURS.get(line[:3]) or _COLOURS.get(line[:1]) or {}))


@verb("diff", text=_diff_text)
@click.argument("arguments", nargs=-1, metavar="[A] [B] [ID|PATH]", shell_complete=complete_ids)
def diff(workspace: Workspace, arguments: tuple[str, ...]) -> MemoryDiff:
    """Show what changed from revision A (HEAD by default) to B (the files as they are by default).

    As in git, A..B is the same as A B, and an end that is left out is HEAD.

    Examples:
        memfs diff
        memfs diff HEAD~5..HEAD
        memfs diff HEAD~5 use-postgresql-for-transactions-7h2k9q
    """
    a, b, target = _sides(workspace, arguments)
    return MemoryDiff(a, b, target, workspace.history.diff(a, b, named(workspace, target)))


def _sides(workspace: Workspace, arguments: tuple[str, ...]) -> tuple[str, str | None, str | None]:
    """Which arguments are revisions and which, the last, is an item: what names no revision is one."""
    if arguments and ".." in arguments[0] and not arguments[0].startswith("../") and "/../" not in arguments[0]:
        a, _, b = arguments[0].partition("..")
        arguments = (a or "HEAD", b or "HEAD", *arguments[1:])
        for end in arguments[:2]:
            workspace.repository.resolve(end)
    revisions: list[str] = []
    target = None
    for number, argument in enumerate(arguments):
        if len(revisions) < 2 and _is_revision(workspace, argument):
            revisions.append(argument)
        elif number == len(arguments) - 1:
            if set("~^@") & set(argument) and not is_path(argument):
                workspace.repository.resolve(argument)  # says that there is none
            target = argument
        else:
            raise HistoryUnavailable(f"{argument!r} is no revision", hint="name a commit, branch, tag or date")
    return (revisions or ["HEAD"])[0], revisions[1] if len(revisions) > 1 else None, target


def _is_revision(workspace: Workspace, text: str) -> bool:
    try:
        workspace.repository.resolve(text)
    except HistoryUnavailable:
        return False
    return True
