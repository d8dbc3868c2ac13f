"""Restore a workspace from a backup, into a folder that does not exist or is empty.

The backup is verified whole, every part checked again as it is read, and the folder gets its name only when all of it
is durable. Nothing of the backup is run: no configuration, no hooks, no filters.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.admin import layout
from memfs.admin.backup_file import (
    FALLBACK,
    FILES,
    HISTORY,
    STATE,
    BackupManifest,
    files_of,
    opened,
    snapshot_of,
    untakable,
    verify,
)
from memfs.config_names import SETTINGS_FILE
from memfs.errors import BackupInvalid, Conflict, HistoryError, MemfsError
from memfs.fs import io
from memfs.fs.journal import Journal
from memfs.git.bundle import RepositorySnapshot, fill_index, read_bundle
from memfs.git.refs import HEX
from memfs.git.repository import Repository
from memfs.learning.inbox import FILE as INBOX
from memfs.store.health import free_bytes
from memfs.store.parts import CONTENT

_STATE_NAMES = frozenset({"journal", "usage.db", INBOX, FALLBACK})
_STATE_FOLDERS = ("recovered", "spool")
_SPARE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What was made: the workspace's folder, how many files, the manifest of the backup.

    ``others`` says whether the last commit holds more than the workspace: those files are the person's to check out,
    since their repository's filters belong to it.
    """

    root: Path
    files: int
    manifest: BackupManifest
    others: bool


def restore(backup: Path, target: Path, *, history: bool = True) -> RestoreResult:
    """Make a workspace in ``target`` from a backup; the folder must not exist, or be empty.

    Args:
        history: take the history along; without it the workspace begins one of its own.

    Raises:
        BackupInvalid, FormatUnsupported: the backup is damaged or holds what no backup may hold; nothing was made.
        Conflict: something is at ``target``.
        StorageIO, HistoryError: it could not be made.
    """
    target = target.absolute()
    _require_nothing(target)
    manifest = verify(backup)
    _require_room(manifest, target)
    with io.operation("restore", target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        io.sweep(target.parent, f".{target.name}.", folders=True)  # what a killed restore left
    building = target.with_name(f".{target.name}.restored.{os.getpid()}.tmp")
    if not io.mkdir(building, 0o700):  # of a killed one that had our number, as in a container that was restarted
        io.remove_all(building)
        io.mkdir(building, 0o700)
    try:
        others = _build(backup, building, history)
        io.sync_everything(str(building))
        io.chmod(building, 0o777 & ~_umask())
        _require_nothing(target)
        io.rename(str(building), str(target))
        io.sync_folder(target.parent)
    except BaseException:
        with suppress(MemfsError, OSError):
            io.remove_all(building)
        raise
    return RestoreResult(
        root=_below(target, manifest.prefix), files=len(manifest.files), manifest=manifest, others=others
    )


# -- before -------------------------------------------------------------------------------------------------------
def _require_nothing(target: Path) -> None:
    try:
        taken = bool(os.listdir(target))
    except FileNotFoundError:
        taken = False
    except OSError:
        taken = True
    if taken or target.is_symlink():
        raise Conflict(
            "something is there already", path=str(target), hint="name a folder that does not exist, or is empty"
        )


def _require_room(manifest: BackupManifest, target: Path) -> None:
    """The sizes come from the manifest, which was verified: what they say is what will be written."""
    needed = manifest.unpacked + sum(size for size, _ in manifest.parts.values()) + _SPARE
    folder = next(folder for folder in target.parents if folder.is_dir())
    free = free_bytes(folder)
    if free is not None and free < needed:
        raise io.storage_error(OSError(28, f"needs {needed:,} bytes, free are {free:,}"), "restore", str(target))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# -- building -----------------------------------------------------------------------------------------------------
def _build(backup: Path, building: Path, with_history: bool) -> bool:
    with opened(backup) as (manifest, parts):
        workspace = _below(building, manifest.prefix)
        _make_folders(building, workspace)
        io.mkdir(workspace / CONTENT)
        made = Repository.create(building)
        repository = Repository.find(workspace) or made
        history = snapshot_of(manifest)
        if not with_history:  # on the same branch; a detached HEAD would name a commit that is not there
            history = RepositorySnapshot(head="" if HEX.fullmatch(manifest.head) else manifest.head, refs={})
        for name, chunks in parts:
            if name == FILES:
                for path, data in files_of(manifest, chunks):
                    _write(workspace, path, data)
            elif name == HISTORY and with_history:
                _take_history(repository, chunks, history)
            elif name != HISTORY:
                _take_state(repository.state, name.removeprefix(STATE), chunks)
        if not history.refs:
            _take_history(repository, iter(()), history)
        _join_journals(repository.state)
        layout.install_driver(repository)
        own = tuple(repository.full(path) for path in (CONTENT, SETTINGS_FILE))
        others = not all(name.startswith(own) for name in fill_index(repository))
        repository.close()
        made.close()
    return others


def _take_history(repository: Repository, chunks: Iterator[bytes], history: RepositorySnapshot) -> None:
    try:
        read_bundle(repository, chunks, history)
    except HistoryError as error:
        raise untakable(error) from error


def _take_state(state: Path, name: str, chunks: Iterator[bytes]) -> None:
    folder, _, last = name.rpartition("/")
    if name not in _STATE_NAMES and (folder not in _STATE_FOLDERS or not last):
        raise BackupInvalid(f"it names a state that no backup has: {name!a}", hint="use another backup")
    if folder:
        io.make_private_folder(state / folder)
    _write_file(state / name, chunks, 0o600)


def _join_journals(state: Path) -> None:
    """Writes that lay in the secondary location follow those in the journal; opening the workspace carries them out."""
    other, journal = Journal(state / FALLBACK), Journal(state / "journal")
    try:
        journal.catch_up()
        waiting = [operation for operation in other.operations() if not journal.knows(operation.id)]
        if waiting:
            journal.append(waiting)
    finally:
        other.close()
        journal.close()
    io.unlink(state / FALLBACK, missing_ok=True)


def _write(workspace: Path, path: str, data: Iterator[bytes]) -> None:
    if path != SETTINGS_FILE and not path.startswith(f"{CONTENT}/"):
        raise BackupInvalid(f"it names a file that no backup has: {path!a}", hint="use another backup")
    folder, _, name = path.rpartition("/")
    place = _below(workspace, folder)
    _make_folders(workspace, place)
    _write_file(place / name, data, 0o666)


def _write_file(path: Path, data: Iterator[bytes], mode: int) -> None:
    try:
        fd = io.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise BackupInvalid(f"it names the same file twice: {path.name!a}", hint="use another backup") from None
    try:
        for chunk in data:
            io.write_all(fd, chunk, str(path))
    finally:
        os.close(fd)


def _make_folders(top: Path, folder: Path) -> None:
    """Make the folders on the way down. The top is new and nobody else's, so that no link can lie there."""
    missing = []
    while folder != top and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for place in reversed(missing):
        io.mkdir(place)


def _below(folder: Path, path: str) -> Path:
    return folder / path if path else folder
