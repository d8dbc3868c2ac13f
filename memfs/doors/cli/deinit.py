"""``deinit``: take memfs out of a repository, after naming what goes, what stays and what would be lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs import private
from memfs.dataclass import dataclass, field, replace
from memfs.doors.claude_code.installer import uninstall
from memfs.doors.claude_code.settings_file import FileResult, InstallScope, SettingsChange
from memfs.doors.cli.command import invocation, verb
from memfs.doors.cli.options import block_of
from memfs.doors.cli.output import Note, Text, count, listed, merge
from memfs.doors.cli.private import counts
from memfs.doors.resident.place import stop as end_resident
from memfs.errors import MemfsError
from memfs.fs.workspace_location import MEMORY_FOLDER, code_trees

if TYPE_CHECKING:
    from memfs.team.deinit import DeinitPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFate:
    """Private memory of the repository.

    Attributes:
        folder: where it is.
        items: how many memories it holds.
        used_by: other clones that use it, too.
        goes: whether it is removed.
    """

    folder: Path
    items: int
    used_by: tuple[Path, ...]
    goes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deinitialization:
    """What was taken out of a repository, or would be.

    Attributes:
        plan: what goes, and what prevents it; its fields are inlined.
        commit: the commit that removed the files; null where there is none.
        clients: settings of agents' programs out of which memfs is taken.
        private: your private memory of the repository; null where there is none.
        backups: backups, which stay.
        installed_for_all: commands that take out what you installed for all projects.
    """

    plan: DeinitPlan = field(metadata=merge("workspace=root files blocks branch links losses processes leaves refused"))
    commit: str | None
    clients: tuple[str, ...]
    private: PrivateFate | None
    backups: tuple[str, ...]
    installed_for_all: tuple[str, ...]


_SHOWN = 20


def _text(done: Deinitialization, dry_run: bool) -> Text:
    plan, own = done.plan, done.private
    gone = [
        "merge driver, refs, state, caches and trust of memfs",
        *(f"the link {tree / MEMORY_FOLDER}" for tree in plan.links),
        *([f"the branch {plan.branch}"] if plan.branch else []),
        *(f"what memfs put into {file}" for file in (*done.clients, *plan.blocks)),
        *plan.files,
    ]
    stays = [*plan.leaves, *(f"the backup {file}" for file in done.backups)]
    stays += [f"what you installed for all projects ('{command}')" for command in done.installed_for_all]
    if own is not None:
        used = f", which {', '.join(map(str, own.used_by))} uses, too" if own.used_by else ""
        (gone if own.goes else stays).append(f"your private memory, {count(own.items, 'item')} in {own.folder}{used}")
    yield f"{'Would take' if dry_run else 'Took'} memfs out of {plan.root}"
    yield from listed("removes" if dry_run else "removed", gone, _SHOWN)
    yield from listed("keeps  ", stays, _SHOWN)
    if done.commit:
        yield f"Committed {done.commit[:12]}"
    if dry_run and plan.refused:
        yield Note(f"refused without --force: {plan.refused}", plan.remedy)
    elif plan.losses:
        yield from listed("lost   ", plan.losses, _SHOWN)


@verb("deinit", text=_text, exit_code=lambda done, dry_run, force: dry_run and bool(done.plan.refused) and not force)
@click.option("--purge", is_flag=True, help="Remove the files, too: ContextMemory/, memfs.toml, blocks in AGENTS.md.")
@click.option("--private", "with_private", is_flag=True, help="Remove your private memory of the repository, too.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed, what would stay, and what prevents it.")
@click.option("--force", is_flag=True, help="Continue even if something is lost by it, or another process is using it.")
def deinit(purge: bool, with_private: bool, dry_run: bool, force: bool) -> Deinitialization:
    """Take memfs out of a repository: merge driver, refs, its state, caches, and what it installed.

    The memory stays as files, and in git's history. With --purge the files go, too: in one commit where memfs commits,
    else as deletions for you to commit. If something is uncommitted, it is listed and nothing happens without --force.
    Your private memory stays, unless --private says otherwise: nothing else holds it.

    Exit code 1: it was refused, or a dry run says that it would be.

    Examples:
        memfs deinit --dry-run
        memfs deinit
        memfs deinit --purge
    """
    from memfs.sessions.store import Drain
    from memfs.team.deinit import take_out
    from memfs.workspace import open_workspace

    commit, edited, asked = None, None, invocation()
    backups: list[Path] = []
    with open_workspace(asked.workspace, watch=False, settings=dict(asked.settings)) as workspace:
        if not dry_run:
            with suppress(MemfsError):  # what sessions reported and was not taken in then counts as lost
                Drain(workspace).run()
        root, own = workspace.root, _private(workspace.root, with_private)
        losses = []
        if own is not None and own.goes and own.items:
            private_loss = f"your private memory, {count(own.items, 'item')} in {own.folder}"
            losses.append((private_loss, "'memfs export' there writes it out"))
        made = workspace.teams.deinit(workspace.recovered, block_of(workspace), purge=purge, losses=losses)
        tops = code_trees(root, Path(asked.workspace or "."))
        planned = made.plan()
        with suppress(MemfsError):  # namesakes: it may have made them before it was taken out once
            backups = workspace.backups.kept(namesakes=True)
        clients = _clients(tops, dry=True)
        if not dry_run:
            if force or not planned.refused:
                end_resident(workspace.root)  # it is memfs itself, and no one's work
            commit, edited = made.files(force)
    if not dry_run:
        _clients(tops, dry=False)
        if own is not None and own.goes:
            private.forget(own.folder)
        take_out(root, keep_key=own is not None and not own.goes, purge=purge)
    return Deinitialization(
        plan=planned if edited is None else replace(planned, blocks=tuple(edited)),
        commit=commit,
        clients=tuple(str(one.path) for one in clients),
        private=own,
        backups=tuple(map(str, backups)),
        installed_for_all=tuple(
            "memfs agent uninstall claude-code --user" for _ in _taken_out(InstallScope.USER, planned.root, dry=True)
        ),
    )


def _private(root: Path, asked: bool) -> PrivateFate | None:
    """This user's private memory of the repository; what another clone uses, too, never goes."""
    project = private.project_at(root)
    folder = private.find(project)
    if folder is None:
        return None
    others = tuple(private.shared_with(project, folder))
    return PrivateFate(folder=folder, items=counts(folder)["items"], used_by=others, goes=asked and not others)


def _clients(tops: Sequence[Path], *, dry: bool) -> list[SettingsChange]:
    """Take memfs out of the settings that Claude Code keeps in the project's folders."""
    scopes = (InstallScope.PROJECT, InstallScope.LOCAL)
    return [change for top in tops for scope in scopes for change in _taken_out(scope, top, dry=dry)]


def _taken_out(scope: InstallScope, top: Path, *, dry: bool) -> list[SettingsChange]:
    """The file, where it changes; an unreadable one holds nothing of ours."""
    with suppress(MemfsError):
        if (change := uninstall(scope, top, dry=dry)).done is not FileResult.SAME:
            return [change]
    return []
