"""``deinit``: take memfs out of a repository, after naming what goes, what stays and what would be lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs import private
from memfs.doors.cli.command import Invocation, verb
from memfs.doors.cli.output import TEXT_ONLY, Note, clean, count, styled
from memfs.doors.cli.private import counts
from memfs.doors.cli.team.agents_md import block_of
from memfs.fs.own_branch import code_trees

if TYPE_CHECKING:
    from memfs.doors.claude_code.settings_file import SettingsChange
    from memfs.team.deinit import Deinit
    from memfs.workspace import Workspace

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFate:
    """Private memory of the repository.

    Attributes:
        folder: where it lies.
        items: how many memories it holds.
        used_by: other clones that use it, too.
        goes: whether it is removed.
    """

    folder: Path
    items: int
    used_by: tuple[Path, ...]
    goes: bool

    def __str__(self) -> str:
        return f"your private memory, {count(self.items, 'item')} in {clean(str(self.folder))}"


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A process at work in the workspace.

    Attributes:
        pid: its id.
        name: its name.
    """

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deinitialization:
    """What was taken out of a repository, or would be.

    Attributes:
        workspace: the workspace's folder.
        dry_run: whether nothing was done.
        files: of the workspace, with --purge.
        blocks: the agents' files out of which a block of memfs is taken.
        commits: whether memfs commits the removal of the files.
        commit: that commit; null where there is none.
        branches: agents' branches.
        links: the working trees whose link to the memory's own branch goes.
        refs: refs of memfs.
        merge_driver: whether it is in git's configuration.
        state: the folder with memfs's own records.
        trusted: whether you trusted the workspace.
        caches: caches of it.
        clients: settings of agents' programs out of which memfs is taken.
        losses: what nothing else holds.
        processes: who is at work in it.
        leaves: what stays.
        private: your private memory of the repository; null where there is none.
        backups: backups, which stay.
        installed_for_all: commands that take out what you installed for all projects.
        refused: why it would be refused without --force.
        forced: whether it is done all the same.
    """

    workspace: Path
    dry_run: bool
    files: tuple[str, ...]
    blocks: tuple[str, ...]
    commits: bool
    commit: str | None
    branches: tuple[str, ...]
    links: tuple[Path, ...]
    refs: tuple[str, ...]
    merge_driver: bool
    state: Path
    trusted: bool
    caches: tuple[Path, ...]
    clients: tuple[str, ...]
    losses: tuple[str, ...]
    processes: tuple[BusyProcess, ...]
    leaves: tuple[str, ...]
    private: PrivateFate | None
    backups: tuple[str, ...]
    installed_for_all: tuple[str, ...]
    refused: str
    forced: bool = field(default=False, metadata=TEXT_ONLY)

    @property
    def exit_code(self) -> int:
        """1: a dry run says that it would be refused."""
        return int(self.dry_run and bool(self.refused) and not self.forced)


def _text(done: Deinitialization) -> Iterator[str | Note]:
    root, own = styled(str(done.workspace), fg="green", bold=True), done.private
    yield f"{'Would take' if done.dry_run else 'Took'} memfs out of {root}"
    if done.files:
        yield f"  {count(len(done.files), 'file')}{' in one commit' if done.commits else ''}"
    yield from _some("the block in", done.blocks)
    yield from _some("the branch", done.branches)
    yield from _parts(done)
    if own is not None and own.goes:
        yield f"  {own}"
    yield from _done_text(done)
    yield "What stays:"
    for line in (*done.leaves, *(f"the backup {path}" for path in done.backups)):
        yield f"  {clean(line)}"
    if own is not None and not own.goes:
        used = f"; {own.used_by[0]} uses it, too" if own.used_by else " ('memfs deinit --private' removes it, too)"
        yield f"  {own}{clean(used)}"
    for command in done.installed_for_all:
        yield f"  what you installed for all your projects ({command})"
    if done.dry_run and done.refused:
        yield Note(f"it would be refused now: {clean(done.refused)}")


def _parts(done: Deinitialization) -> Iterator[str]:
    """What goes beside the files."""
    if done.links:
        trees = count(len(done.links), "working tree")
        yield f"  the place of the memory's own branch, and the link to it in {trees}"
    if done.merge_driver:
        yield "  the merge driver in git's configuration"
    if done.refs:
        yield f"  {count(len(done.refs), 'ref')} below refs/memfs/"
    yield from _some("hooks and servers in", done.clients)
    yield f"  {clean(str(done.state))}"
    if done.trusted:
        yield "  your trust in what its files enable"
    if done.caches:
        yield f"  {count(len(done.caches), 'cache')} in {clean(str(done.caches[0].parent))}"


def _done_text(done: Deinitialization) -> Iterator[str | Note]:
    """What a deinit that is no dry run left to do, and what is lost."""
    if done.dry_run:
        return
    if done.commit:
        yield f"  committed as {styled(done.commit[:12], fg='yellow')}"
    elif done.files:
        yield Note("the files are removed; commit that when you like")
    if changed := [*done.blocks, *done.clients]:
        yield Note(f"memfs commits nothing of these: {clean(', '.join(changed))}")
    for loss in done.losses:
        yield Note(f"lost: {clean(loss)}")


def _some(label: str, rows: Sequence[str]) -> Iterator[str]:
    for row in rows[:_SHOWN]:
        yield f"  {label} {clean(row)}"
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN:,} more"


@verb("deinit", text=_text, example="memfs deinit --dry-run\nmemfs deinit\nmemfs deinit --purge")
@click.option("--purge", is_flag=True, help="Remove the files, too: ContextMemory/, memfs.toml, blocks in AGENTS.md.")
@click.option("--private", "with_private", is_flag=True, help="Remove your private memory of the repository, too.")
@click.option("--dry-run", is_flag=True, help="Only say what would go, what would stay, and what stands in the way.")
@click.option("--force", is_flag=True, help="Go on though something is lost by it, or somebody is at work in it.")
@click.pass_context
def deinit(ctx: click.Context, purge: bool, with_private: bool, dry_run: bool, force: bool) -> Deinitialization:
    """Take memfs out of a repository: merge driver, refs, branches of agents, its state, caches, and what it installed.

    The memory stays as files, and in git's history. With --purge the files go, too: in one commit where memfs commits,
    else as deletions for you to commit. What no commit has is named, and nothing is done, unless --force says so. Your
    private memory stays, unless --private says otherwise: nothing else holds it. An interrupted deinit can be called
    again.

    Exit code 1: it was refused, or a dry run says that it would be.
    """
    from memfs.team.deinit import take_out

    commit, edited = None, None
    with _opened(ctx) as workspace:
        root, made = workspace.root, _deinit(ctx, workspace, purge)
        tops = code_trees(root, Path(ctx.ensure_object(Invocation).workspace or "."))
        backups = _backups(workspace)
        planned, own = made.plan(), _private(root, with_private)
        clients = _clients(tops, dry=True)
        if not dry_run:
            commit, edited = made.files(force)
    if not dry_run:
        _clients(tops, dry=False)
        if own is not None and own.goes:
            private.forget(own.folder)
        take_out(root, keep_key=own is not None and not own.goes, purge=purge)
    return Deinitialization(
        workspace=planned.root,
        dry_run=dry_run,
        files=planned.files,
        blocks=planned.blocks if edited is None else tuple(edited),
        commits=planned.commits,
        commit=commit,
        branches=planned.branches,
        links=planned.links,
        refs=planned.refs,
        merge_driver=planned.driver,
        state=planned.state,
        trusted=planned.trusted,
        caches=planned.caches,
        clients=tuple(str(one.path) for one in clients),
        losses=planned.losses,
        processes=tuple(BusyProcess(number, name) for number, name in planned.processes),
        leaves=planned.leaves,
        private=own,
        backups=tuple(backups),
        installed_for_all=tuple(_installed_for_all(planned.root)),
        refused=planned.refused,
        forced=force,
    )


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


def _private(root: Path, asked: bool) -> PrivateFate | None:
    """This user's private memory of the repository; what another clone uses, too, never goes."""
    project = private.project_at(root)
    folder = private.find(project)
    if folder is None:
        return None
    others = tuple(private.shared_with(project, folder))
    return PrivateFate(folder=folder, items=counts(folder)["items"], used_by=others, goes=asked and not others)


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
