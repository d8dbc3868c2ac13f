"""``deinit``: take memfs out of a repository, after naming what goes, what stays and what would be lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs import private
from memfs.doors.cli.command import Invocation, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.doors.cli.private import counts
from memfs.doors.cli.team.agents_md import block_of
from memfs.fs.own_branch import code_trees

if TYPE_CHECKING:
    from memfs.doors.claude_code.settings_file import SettingsChange
    from memfs.team.deinit import Deinit, DeinitPlan
    from memfs.workspace import Workspace

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Private:
    """Private memory of the repository: where it lies, how many items it holds, who else uses it, whether it goes."""

    folder: Path
    items: int
    others: tuple[Path, ...]
    goes: bool


@verb("deinit", example="memfs deinit --dry-run\nmemfs deinit\nmemfs deinit --purge")
@click.option("--purge", is_flag=True, help="Remove the files, too: ContextMemory/, memfs.toml, blocks in AGENTS.md.")
@click.option("--private", "with_private", is_flag=True, help="Remove your private memory of the repository, too.")
@click.option("--dry-run", is_flag=True, help="Only say what would go, what would stay, and what stands in the way.")
@click.option("--force", is_flag=True, help="Go on though something is lost by it, or somebody is at work in it.")
@click.pass_context
def deinit(ctx: click.Context, purge: bool, with_private: bool, dry_run: bool, force: bool, as_json: bool) -> int:
    """Take memfs out of a repository: merge driver, refs, branches of agents, its state, caches, and what it installed.

    The memory stays as files, and in git's history. With --purge the files go, too: in one commit where memfs commits,
    else as deletions for you to commit. What no commit has is named, and nothing is done, unless --force says so. Your
    private memory stays, unless --private says otherwise: nothing else holds it. An interrupted deinit can be called
    again.

    Exit code 1: it was refused, or a dry run says that it would be.
    """
    from memfs.team.deinit import take_out

    with _opened(ctx) as workspace:
        root, made = workspace.root, _deinit(ctx, workspace, purge)
        tops = code_trees(root, Path(ctx.ensure_object(Invocation).workspace or "."))
        backups = _backups(workspace)
        planned, own = made.plan(), _private(root, with_private)
        clients = _clients(tops, dry=True)
        if not dry_run:
            commit, edited = made.files(force)
    if dry_run:
        _show(planned, own, clients, backups, as_json, dry_run=True)
        return 1 if planned.refused and not force else 0
    _clients(tops, dry=False)
    if own is not None and own.goes:
        private.forget(own.folder)
    take_out(root, keep_key=own is not None and not own.goes, purge=purge)
    _show(planned, own, clients, backups, as_json, commit=commit, edited=edited)
    return 0


def _opened(ctx: click.Context) -> Workspace:
    """The workspace, or what an interrupted deinit left of one."""
    from memfs.errors import MemfsError, WorkspaceNotFound
    from memfs.team.deinit import left_at
    from memfs.workspace import open_left, open_workspace

    asked = ctx.ensure_object(Invocation)
    try:
        return open_workspace(asked.workspace, watch=False, settings=dict(asked.settings))
    except WorkspaceNotFound:
        start = Path(asked.workspace or ".").resolve()
        left = None
        with suppress(MemfsError):
            left = left_at(start)
        if left is None:
            raise
    return open_left(left)


def _deinit(ctx: click.Context, workspace: Workspace, purge: bool) -> Deinit:
    return workspace.teams.deinit(workspace.recovered, block_of(ctx, workspace), purge=purge)


def _backups(workspace: Workspace) -> list[str]:
    from memfs.errors import MemfsError

    try:
        return [str(path) for path in workspace.backups.kept()]
    except MemfsError:
        return []


def _private(root: Path, asked: bool) -> _Private | None:
    """This user's private memory of the repository; what another clone uses, too, never goes."""
    project = private.project_at(root)
    folder = private.find(project)
    if folder is None:
        return None
    others = tuple(private.shared_with(project, folder))
    return _Private(folder=folder, items=counts(folder)["items"], others=others, goes=asked and not others)


def _clients(tops: Sequence[Path], *, dry: bool) -> list[SettingsChange]:
    """Take memfs out of the settings that agents' programs keep in the project's folders."""
    from memfs.doors import mcp_clients
    from memfs.doors.claude_code import installer
    from memfs.doors.claude_code.settings_file import FileResult, InstallScope
    from memfs.errors import MemfsError

    found: list[SettingsChange] = []
    for top in tops:
        for scope in (InstallScope.PROJECT, InstallScope.LOCAL):
            with suppress(MemfsError):  # a file that nobody can read holds nothing of ours
                found += installer.uninstall(scope, top, dry=dry).files
        for name, client in mcp_clients.CLIENTS.items():
            if client.project:
                with suppress(MemfsError):
                    found.append(mcp_clients.uninstall(name, InstallScope.PROJECT, top, dry=dry))
    return [one for one in found if one.done is not FileResult.SAME]


def _installed_for_all(root: Path) -> list[str]:
    """The commands that take out what a person installed for all projects."""
    from memfs.doors import mcp_clients
    from memfs.doors.claude_code import installer
    from memfs.doors.claude_code.settings_file import FileResult, InstallScope
    from memfs.errors import MemfsError

    found = []
    with suppress(MemfsError):
        if any(one.done is not FileResult.SAME for one in installer.uninstall(InstallScope.USER, root, dry=True).files):
            found.append("memfs agent uninstall claude-code --user")
    for name, client in mcp_clients.CLIENTS.items():
        if client.user:
            with suppress(MemfsError):
                if mcp_clients.uninstall(name, InstallScope.USER, root, dry=True).done is not FileResult.SAME:
                    found.append(f"memfs agent uninstall {name} --user")
    return found


# -- output ---------------------------------------------------------------------------------------------------------
def _show(
    planned: DeinitPlan,
    own: _Private | None,
    clients: Sequence[SettingsChange],
    backups: Sequence[str],
    as_json: bool,
    *,
    commit: str | None = None,
    edited: Sequence[str] = (),
    dry_run: bool = False,
) -> None:
    installed = [str(one.path) for one in clients]
    for_all = _installed_for_all(planned.root)
    if as_json:
        print_json(
            {
                "workspace": str(planned.root),
                "dry_run": dry_run,
                "files": list(planned.files),
                "blocks": list(planned.blocks if dry_run else edited),
                "commits": planned.commits,
                "commit": commit,
                "branches": list(planned.branches),
                "links": [str(top) for top in planned.links],
                "refs": list(planned.refs),
                "merge_driver": planned.driver,
                "state": str(planned.state),
                "trusted": planned.trusted,
                "caches": [str(path) for path in planned.caches],
                "clients": installed,
                "losses": list(planned.losses),
                "processes": [{"pid": number, "name": name} for number, name in planned.processes],
                "leaves": list(planned.leaves),
                "private": None if own is None else _private_json(own),
                "backups": list(backups),
                "installed_for_all": for_all,
                "refused": planned.refused,
            }
        )
        return
    _print(planned, installed, dry_run=dry_run)
    if own is not None and own.goes:
        print_raw(f"  {_named(own)}")
    if commit:
        print_raw(f"  committed as {styled(commit[:12], fg='yellow')}")
    elif planned.files and not dry_run:
        note("the files are removed; commit that when you like")
    if changed := [*edited, *installed] if not dry_run else []:
        note(f"memfs commits nothing of these: {clean(', '.join(changed))}")
    print_raw("What stays:")
    for line in (*planned.leaves, *(f"the backup {path}" for path in backups)):
        print_raw(f"  {clean(line)}")
    if own is not None and not own.goes:
        used = f"; {own.others[0]} uses it, too" if own.others else " ('memfs deinit --private' removes it, too)"
        print_raw(f"  {_named(own)}{clean(used)}")
    for command in for_all:
        print_raw(f"  what you installed for all your projects ({command})")
    for loss in () if dry_run else planned.losses:
        note(f"lost: {clean(loss)}")
    if dry_run and planned.refused:
        note(f"it would be refused now: {clean(planned.refused)}")


def _named(own: _Private) -> str:
    return f"your private memory, {count(own.items, 'item')} in {clean(str(own.folder))}"


def _private_json(own: _Private) -> dict[str, object]:
    others = [str(place) for place in own.others]
    return {"folder": str(own.folder), "items": own.items, "used_by": others, "goes": own.goes}


def _print(planned: DeinitPlan, clients: Sequence[str], *, dry_run: bool) -> None:
    print_raw(f"{'Would take' if dry_run else 'Took'} memfs out of {styled(str(planned.root), fg='green', bold=True)}")
    if planned.files:
        print_raw(f"  {count(len(planned.files), 'file')}{' in one commit' if planned.commits else ''}")
    _print_rows("the block in", planned.blocks)
    _print_rows("the branch", planned.branches)
    if planned.links:
        print_raw(
            f"  the place of the memory's own branch, and the link to it in {count(len(planned.links), 'working tree')}"
        )
    if planned.driver:
        print_raw("  the merge driver in git's configuration")
    if planned.refs:
        print_raw(f"  {count(len(planned.refs), 'ref')} below refs/memfs/")
    _print_rows("hooks and servers in", clients)
    print_raw(f"  {clean(str(planned.state))}")
    if planned.trusted:
        print_raw("  your trust in what its files enable")
    if planned.caches:
        print_raw(f"  {count(len(planned.caches), 'cache')} in {clean(str(planned.caches[0].parent))}")


def _print_rows(label: str, rows: Sequence[str]) -> None:
    for row in rows[:_SHOWN]:
        print_raw(f"  {label} {clean(row)}")
    if len(rows) > _SHOWN:
        print_raw(f"  and {len(rows) - _SHOWN:,} more")
