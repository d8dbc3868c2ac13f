"""Write backups, verify them, and restore from one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.output import Text, count, problems_note, size
from memfs.doors.cli.parser import Actions
from memfs.git.log import OWN_PATHS
from memfs.model import Problem

if TYPE_CHECKING:
    from memfs.admin.backup import BackupResult
    from memfs.admin.backup_file import BackupManifest
    from memfs.workspace import Workspace


# -- backup -------------------------------------------------------------------------------------------------------
_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


def _folder(_: click.Context, __: click.Parameter, value: str | None) -> Path | None:
    if value is not None and not value.strip():
        raise Unclear("--to needs a folder")
    return Path(value).absolute() if value is not None else None


_TO = click.option("--to", metavar="DIR", type=click.Path(file_okay=False), callback=_folder, help="This folder only.")


# -- create -------------------------------------------------------------------------------------------------------
def _created_text(report: tuple[BackupResult, ...]) -> Text:
    for made in report:
        waiting = f", {count(made.manifest.waiting, 'write')} to commit" if made.manifest.waiting else ""
        yield f"Wrote {made.path}"
        yield f"  {size(made.bytes)}, {count(made.manifest.count, 'file')}{waiting}; read back and compared"
        yield from (f"  without {row}" for row in made.manifest.left_out)
        yield from (f"  removed {path}" for path in made.removed)


@verb("create", text=_created_text, key="backups", exit_code=lambda report: not all(made.whole for made in report))
@_TO
def _create(workspace: Workspace, to: Path | None) -> tuple[BackupResult, ...]:
    """Write one verified file with all files, the whole history and what waits for its commit.

    It goes to the folders of backup.targets, or to a folder of your own, and backup.copies of them are kept in each.
    Only you can read it; it is not encrypted. 'memfs status --all' says where the last one is.

    Exit code 1: refused, or the backup lacks what could not be read; then no older one was removed for it.

    Examples:
        memfs admin backup create
        memfs admin backup create --to /mnt/disk/backups
    """
    return tuple(workspace.backups.make(to))


# -- verify -------------------------------------------------------------------------------------------------------
def _proof_text(proved: BackupManifest) -> Text:
    yield f"Every byte is as it was written: {count(proved.count, 'file')}, of {proved.created[:16]}"
    yield from (f"  made without {row}" for row in proved.left_out)


@verb("verify", text=_proof_text)
@_FILE
def _verify(file: Path) -> BackupManifest:
    """Read a whole backup, and say whether each byte is as it was written.

    Exit code 1: it is not.

    Examples:
        memfs admin backup verify backup.tar
    """
    from memfs.admin.backup_file import verify

    return verify(file)


# -- restore ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RestoreReport:
    """The workspace that was made from a backup.

    Attributes:
        workspace: its folder.
        files: how many files were written.
        items: how many items it has.
        created: when the backup was made.
        problems: what is wrong with its files.
    """

    workspace: Path
    files: int
    items: int
    created: str
    problems: tuple[Problem, ...]


def _restored_text(done: RestoreReport) -> Text:
    yield f"Restored {done.workspace}: {count(done.items, 'item')}, {count(done.files, 'file')}, {done.created}"
    yield from done.problems


@verb(
    "restore", text=_restored_text, exit_code=lambda done: any(problem.severity == "error" for problem in done.problems)
)
@_FILE
@click.argument("folder", type=click.Path(file_okay=False))
def _restore(file: Path, folder: str) -> RestoreReport:
    """Recreate the workspace in FILE, in a FOLDER that does not exist or is empty; then check it.

    The backup is verified whole before, and the folder appears only when everything is in it. Git configuration,
    hooks, remotes and reflogs are not in a backup.

    Exit code 1: refused, or the workspace that was made has problems.

    Examples:
        memfs admin backup restore backup.tar notes
    """
    from memfs.admin.backup_file import restore as build
    from memfs.workspace import open_workspace  # costs start-up time

    if not folder.strip():
        raise Unclear("name the folder to restore to")
    made = build(file, Path(folder))
    with open_workspace(made.root, watch=False) as workspace:
        items, problems = workspace.store.count(), tuple(workspace.checker.check())
    for row in made.manifest.left_out:
        remark(f"the backup was made without {row}")
    if made.others:  # what git checks out leaves out the workspace's own files
        prefix = f"{made.manifest.prefix}/" if made.manifest.prefix else ""
        own = " ".join(f"':(top,exclude){prefix}{name}'" for name in OWN_PATHS)
        remark(f"the repository's other files: git checkout HEAD -- ':(top)' {own}")
    remark(problems_note(len(problems)))
    return RestoreReport(made.root, made.files, items, made.manifest.created, problems)


backup = Actions("backup", __doc__, _create, _verify, _restore)
