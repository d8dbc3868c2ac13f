"""``admin trust``: let a workspace enable what reaches beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from memfs import trust as workspace_trust
from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, invocation, verb, wants_json
from memfs.doors.cli.output import TEXT_ONLY, Text, clean, render, styled
from memfs.doors.cli.streams import somebody_types
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.fs.workspace_location import find_workspace
from memfs.git.layout import discover
from memfs.trust import PluginTrust


@dataclass(frozen=True, slots=True)
class TrustReport:
    """Whether this user trusts a workspace, and what its files would enable.

    Attributes:
        workspace: its folder.
        trusted: whether what it would enable counts.
        reason: why not; null where it does.
        changed: whether this command recorded something.
        enables: the settings that ask for trust: file, line, dotted key and value.
        other_owners: numbers of the users who own a part of the repository.
        said: what it would enable, and what was done, or how things stand.
    """

    workspace: Path
    trusted: bool
    reason: str | None
    changed: bool
    enables: tuple[PluginTrust, ...]
    other_owners: tuple[int, ...]
    said: tuple[str, ...] = field(metadata=TEXT_ONLY)


def _text(report: TrustReport) -> Text:
    return report.said


def _wants(enables: tuple[PluginTrust, ...], owners: tuple[int, ...], elsewhere: Path | None) -> Iterator[str]:
    for want in enables:
        place = f"{want.file}:{want.line}" if want.line else want.file
        yield f"{styled(place, bold=True)}: {want.key} = {want.value!r}"
    for owner in owners:
        yield f"the repository belongs to {_user(owner)}"
    if elsewhere is not None:
        yield f"its git folder is another working tree's: {elsewhere}"
    if not enables and not owners and elsewhere is None:
        yield "Nothing in this workspace asks for trust; a setting that does will need it again"


@verb("trust", text=_text)
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(file_okay=False))
@click.option("--show", is_flag=True, help="Show what would be trusted, and change nothing.")
@click.option("--revoke", is_flag=True, help="Take the trust back.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def trust(path: str | None, show: bool, revoke: bool, yes: bool) -> TrustReport:
    """Let the workspace at PATH enable what its files ask for, and use a repository of another user.

    Shows what that is, and asks, before anything is recorded. The trust holds for this folder and the values you saw:
    it ends when one of these settings changes. Reading, writing and committing need no trust.

    Examples:
        memfs admin trust --show
        memfs admin trust ~/project
        memfs admin trust ~/project --revoke
    """
    if show and revoke:
        raise Unclear("--show and --revoke exclude each other")
    root = _root(path or invocation().workspace)
    standing, layout = workspace_trust.standing(root), discover(root)
    owners = tuple(sorted(layout.foreign_owners)) if layout is not None else ()
    elsewhere = layout.elsewhere if layout is not None else None
    said: tuple[str, ...]
    changed, wants = False, list(_wants(standing.wants, owners, elsewhere))
    if revoke:
        changed = workspace_trust.revoke(root)
        standing = workspace_trust.standing(root)
        said = (f"{root} {'is no longer trusted' if changed else 'was not trusted'}",)
    elif show or not (yes or standing.wants or owners or elsewhere):
        said = (*wants, "trusted" if standing.trusted else f"not trusted: {standing.reason}")
    else:
        if not (yes or wants_json()):
            render(None, wants, json=False)
        if not yes:
            _ask(root)
        standing, changed = workspace_trust.grant(root, standing.wants), True
        said = (*(wants if yes else ()), f"{styled('Trusted', fg='green')} {root}")
    return TrustReport(standing.root, standing.trusted, standing.reason or None, changed, standing.wants, owners, said)


def _root(path: str | None) -> Path:
    """The workspace at or above a path; a folder in a repository where a workspace is yet to be made."""
    try:
        return find_workspace(path)
    except WorkspaceNotFound:
        if path is None or not Path(path).is_dir():
            raise
        return Path(path).resolve()


def _ask(root: Path) -> None:
    """Ask once.

    Raises:
        MemfsError: the answer is no, or there is nobody to ask.
    """
    if not somebody_types():
        raise MemfsError("nothing was trusted: there is nobody to ask", path=str(root), hint="say so with --yes")
    if not click.confirm(f"Trust {clean(str(root))}?", err=True):
        raise MemfsError("nothing was trusted")


def _user(uid: int) -> str:
    import pwd  # wanted only where a repository is somebody else's

    try:
        return f"{pwd.getpwuid(uid).pw_name} (user {uid})"
    except KeyError:
        return f"user {uid}"
