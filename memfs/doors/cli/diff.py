"""``diff``: what changed from one revision to another."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import complete_ids, verb
from memfs.doors.cli.options import is_path, named
from memfs.doors.cli.output import Text, styled
from memfs.errors import HistoryUnavailable

if TYPE_CHECKING:
    from memfs.workspace import Workspace

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


def _text(found: MemoryDiff) -> Text:
    for line in found.diff.removesuffix("\n").split("\n") if found.diff else ():
        yield styled(line, **(_COLOURS.get(line[:3]) or _COLOURS.get(line[:1]) or {}))


@verb("diff", text=_text)
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
        if len(revisions) < 2:
            with suppress(HistoryUnavailable):
                workspace.repository.resolve(argument)
                revisions.append(argument)
                continue
        if number == len(arguments) - 1:
            if set("~^@") & set(argument) and not is_path(argument):
                workspace.repository.resolve(argument)  # says that there is none
            target = argument
        else:
            raise HistoryUnavailable(f"{argument!r} is not a revision", hint="name a commit, branch, tag or date")
    return (revisions or ["HEAD"])[0], revisions[1] if len(revisions) > 1 else None, target
