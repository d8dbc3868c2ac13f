"""``trust``: let a workspace enable what reaches beyond it; and what ``status`` says of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs import trust as workspace_trust
from memfs.doors.cli.command import Invocation, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.doors.cli.streams import somebody_types
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.fs.workspace_location import find_workspace
from memfs.git.layout import Layout, discover

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@verb("trust", example="memfs trust --show\nmemfs trust ~/project\nmemfs trust ~/project --revoke")
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(file_okay=False))
@click.option("--show", is_flag=True, help="Show what would be trusted, and change nothing.")
@click.option("--revoke", is_flag=True, help="Take the trust back.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def trust(ctx: click.Context, path: str | None, show: bool, revoke: bool, yes: bool, as_json: bool) -> None:
    """Let the workspace at PATH enable what its files ask for, and use a repository of another user.

    Shows what that is, and asks, before anything is recorded. The trust ends when one of these settings changes.
    """
    if show and revoke:
        raise click.UsageError("--show and --revoke exclude each other", ctx)
    root = _root(path or ctx.ensure_object(Invocation).workspace)
    standing, layout = workspace_trust.standing(root), discover(root)
    foreign, elsewhere = _foreign(layout), layout.elsewhere if layout is not None else None
    changed = False
    if revoke:
        changed = workspace_trust.revoke(root)
        standing = workspace_trust.standing(root)
    elif not show:
        if not as_json:
            _print_wants(standing, foreign, elsewhere)
        if not yes:
            _ask(root)
        standing, changed = workspace_trust.grant(root, standing.wants), True
    if as_json:
        print_json(_json(standing, foreign, changed))
    elif show:
        _print_wants(standing, foreign, elsewhere)
        print_raw("trusted" if standing.trusted else f"not trusted: {clean(standing.reason)}")
    elif revoke:
        print_raw(f"{clean(str(root))} {'is no longer trusted' if changed else 'was not trusted'}")
    else:
        print_raw(f"{styled('Trusted', fg='green')} {clean(str(root))}")


def _root(path: str | None) -> Path:
    """The workspace at or above a path; a folder in a repository where a workspace is yet to be made."""
    try:
        return find_workspace(path)
    except WorkspaceNotFound:
        if path is None or not Path(path).is_dir():
            raise
        return Path(path).resolve()


def _foreign(layout: Layout | None) -> list[int]:
    """The other users who own a part of the repository and are not trusted in it yet, or are."""
    return sorted(layout.foreign_owners) if layout is not None else []


def _ask(root: Path) -> None:
    """Ask once.

    Raises:
        MemfsError: the answer is no, or there is nobody to ask.
    """
    if not somebody_types():
        raise MemfsError("nothing was trusted: there is nobody to ask", path=str(root), hint="say so with --yes")
    if not click.confirm(f"Trust {clean(str(root))}?", err=True):
        raise MemfsError("nothing was trusted")


def _print_wants(standing: workspace_trust.TrustStatus, foreign: list[int], elsewhere: Path | None) -> None:
    for want in standing.wants:
        place = f"{want.file}:{want.line}" if want.line else want.file
        print_raw(f"{styled(place, bold=True)}: {clean(want.key)} = {clean(repr(want.value))}")
    for owner in foreign:
        print_raw(f"the repository belongs to {clean(_user(owner))}")
    if elsewhere is not None:
        print_raw(f"its git folder is another working tree's: {clean(str(elsewhere))}")
    if not standing.wants and not foreign and elsewhere is None:
        print_raw("Nothing in this workspace asks for trust; a setting that does will need it again")


def _user(uid: int) -> str:
    import pwd  # wanted only where a repository is somebody else's

    try:
        return f"{pwd.getpwuid(uid).pw_name} (user {uid})"
    except KeyError:
        return f"user {uid}"


def _json(standing: workspace_trust.TrustStatus, foreign: list[int], changed: bool) -> dict[str, Any]:
    return {
        "workspace": str(standing.root),
        "trusted": standing.trusted,
        "reason": standing.reason or None,
        "changed": changed,
        "enables": [
            {"file": want.file, "line": want.line, "key": want.key, "value": want.value} for want in standing.wants
        ],
        "other_owners": foreign,
    }


# -- status and config --------------------------------------------------------------------------------------------
def status_facts(workspace: Workspace) -> dict[str, Any]:
    """What ``status`` says of trust: whether what the workspace asks for counts, and what that is."""
    standing = workspace_trust.standing(workspace.root)
    return {
        "trusted": standing.trusted,
        "reason": standing.reason or None,
        "enables": [want.key for want in standing.wants],
        "subjects": [want.subject for want in standing.wants],
        "command": None if standing.trusted or not standing.wants else workspace_trust.command(standing.root),
    }


def status_row(facts: dict[str, Any]) -> dict[str, str]:
    """The row of ``status`` for a person, none where nothing asks for trust."""
    asked = ", ".join(facts["subjects"])  # of a list of sources the names that need trust: the others count
    if not asked:
        return {}
    if facts["trusted"]:
        return {"trust": f"{asked} enabled"}
    return {"trust": f"{asked} ignored: {facts['reason']}; look, then: {facts['command']}"}


def note_ignored(root: Path) -> None:
    """Say on standard error which settings do not count, and what would change that."""
    standing = workspace_trust.standing(root)
    if standing.wants and not standing.trusted:
        verb = "is" if len(standing.wants) == 1 else "are"
        note(f"{count(len(standing.wants), 'setting')} {verb} ignored: {standing.reason}")
        meant = next(filter(None, (want.mistyped for want in standing.wants)), "")
        told = f"{meant} If not, look" if meant else "look"
        note(f"  {clean(told)} at what they say, then: {workspace_trust.command(standing.root)}")
