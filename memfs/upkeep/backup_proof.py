"""Proof that a backup's history can be taken: it is taken, into a repository of its own that is removed at once.

Owns that repository's short life. That the bytes are those of the manifest is ``memfs.upkeep.backup_file``'s business.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs.errors import BackupInvalid, HistoryError, MemfsError, StorageIO
from memfs.files import io
from memfs.history.bundle import Snapshot, read_bundle
from memfs.history.repository import Repository
from memfs.upkeep.backup_file import HISTORY, Manifest, checked, parts_of, reading, verify

ENDING = ".proof"


def prove_history(chunks: Iterator[bytes], history: Snapshot, folder: Path) -> None:
    """Take a bundle into a new repository in ``folder``, which must not exist, and remove it.

    Raises:
        HistoryError: it cannot be taken.
        StorageIO: there is no room to try.
    """
    io.mkdir(folder, 0o700)
    try:
        repository = Repository.create(folder)
        try:
            read_bundle(repository, chunks, history)
        finally:
            repository.close()
    finally:
        with suppress(MemfsError, OSError):
            remove_folder(folder)


def prove(backup: Path) -> Manifest:
    """Read a whole backup, take its history on trial, and return its manifest.

    Raises:
        BackupInvalid, FormatUnsupported, StorageIO: see ``memfs.upkeep.backup_file.reading``.
    """
    manifest = verify(backup)
    if not manifest.refs:
        return manifest
    with _scratch() as place, reading(backup) as (_, archive):
        for part in parts_of(manifest, archive):
            chunks = checked(part, manifest.parts[part.name])
            if part.name == HISTORY:
                try:
                    prove_history(chunks, snapshot_of(manifest), Path(place) / "history")
                except HistoryError as error:
                    raise untakable(error) from error
            for _data in chunks:
                pass
    return manifest


def snapshot_of(manifest: Manifest) -> Snapshot:
    """Where the repository stood, as the manifest says."""
    return Snapshot(head=manifest.head, refs=manifest.refs, shallow=tuple(manifest.shallow))


def untakable(error: HistoryError) -> BackupInvalid:
    """The error for a backup whose files are whole and whose history is not."""
    return BackupInvalid(
        f"its history cannot be taken: {error.message}",
        hint="use another backup, or take the files alone: 'memfs restore FILE FOLDER --without-history'",
    )


def sweep_proofs(folder: Path) -> None:
    """Remove the repositories that killed backups left in a folder."""
    for name in os.listdir(folder):
        writer = name.removesuffix(ENDING).rpartition(".")[2]
        if name.startswith(".memfs-") and name.endswith(ENDING) and writer.isdecimal() and not io.lives(int(writer)):
            with suppress(MemfsError, OSError):
                remove_folder(folder / name)


def remove_folder(folder: Path) -> None:
    """Remove a folder and everything in it, following no link."""
    for place, folders, names in os.walk(folder, topdown=False):
        for name in names:
            io.unlink(os.path.join(place, name), missing_ok=True)
        for name in folders:
            inner = os.path.join(place, name)
            if stat.S_ISLNK(os.lstat(inner).st_mode):
                io.unlink(inner)
            else:
                io.rmdir(inner)
    io.rmdir(folder)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="memfs-proof-")
    except OSError as error:
        raise StorageIO(f"there is no place to try the history: {error}", hint="set TMPDIR to a folder") from error
