"""Make backups, on request and by schedule, and keep as many as the settings say.

A backup is verified before it counts, and older ones are removed only after that. What a killed backup left is
removed by a later one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from memfs import errors
from memfs.admin.backup_file import (
    FALLBACK,
    FILES,
    GZIP,
    HISTORY,
    STATE,
    BackupManifest,
    RepositorySnapshot,
    manifest_name,
    opened,
    prove_history,
    snapshot,
    verify,
    write_bundle,
)
from memfs.admin.store_builder import usable
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, replace
from memfs.fs import io
from memfs.fs.archive import END, Digest, TreePacker, chunks_of, decoded, digest_of, tar_file
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.lock import FileLock
from memfs.fs.tree import ScanEntry
from memfs.fs.workspace_location import base_folder
from memfs.learning.inbox import FILE as INBOX
from memfs.model.state_paths import BACKUPS
from memfs.model.time import format_time
from memfs.settings import BackupSettings
from memfs.store.parts import CONTENT, Fire, Parts
from memfs.usage import FILE as USES
from memfs.usage import snapshot as uses

_KEPT_STATE = ("journal", INBOX)
_KEPT_FOLDERS = ("recovered", "spool")
_OURS = ".memfs-"
"""How what a backup has not finished yet is named, whichever workspace it is of."""
_LEVEL = 6
_WHOLE = "whole"


def make(parts: Parts, target: Path, origin: str) -> BackupManifest:
    """Write a verified backup of a workspace as ``target``, which must not exist.

    Args:
        origin: by which the workspace's own backups are known.

    Returns:
        Its manifest, read back from the file.

    Raises:
        Conflict: the name is taken.
        StorageIO, HistoryError, LockTimeout, BackupInvalid: no backup was made.
    """
    io.sweep(target.parent, _OURS, folders=True)
    folder = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    io.remove_all(folder)  # of a killed one that had our number, as in a container that was restarted
    io.mkdir(folder, 0o700)
    try:
        packer = WorkspacePacker(parts)
        with closing(packer.tar()) as files:
            io.write_new(folder / FILES, _gzipped(files))
        # The history is tried: git copies what it packed before as it is, and only taking it shows what is damaged.
        history, bundle = packer.history, folder / HISTORY
        try:
            with io.descriptor(io.open_file(bundle, os.O_WRONLY | os.O_CREAT | os.O_EXCL)) as fd:
                write_bundle(parts.repository, history, fd, str(bundle))
            if history.refs:
                prove_history(_read(bundle), history, folder / "proof")
        except errors.HistoryError as error:
            packer.left_out[HISTORY] = error.message
            history = replace(history, refs={})
        listed: dict[str, Digest] = {FILES: digest_of(_read(folder / FILES))}
        if history.refs:
            listed[HISTORY] = digest_of(_read(bundle))
        for name, data in sorted(packer.state.items()):  # the manifest sorts its keys, and the parts come in its order
            listed[STATE + name] = (len(data), hashlib.sha256(data).hexdigest())
        manifest = BackupManifest(
            created=format_time(parts.clock()) or "",
            workspace=parts.tree.root.name,
            origin=origin,
            prefix=parts.repository.prefix,
            head=history.head,
            refs=history.refs,
            shallow=history.shallow,
            parts=listed,
            files=dict(sorted(packer.files.items())),
            unpacked=packer.size,
            outdated=tuple(packer.outdated),
            waiting=packer.waiting,
            left_out=tuple(f"{path}: {reason}" for path, reason in sorted(packer.left_out.items())),
            whole=packer.left_out.keys() <= packer.on_purpose,
        )
        io.write_new(folder / _WHOLE, _tar(manifest, packer.state, folder))
        if verify(folder / _WHOLE) != manifest:
            raise errors.BackupInvalid(
                "the backup does not read back as it was written", path=str(target), hint="try again"
            )
        try:
            io.link(str(folder / _WHOLE), str(target))
        except errors.StorageIO:  # no hard links here
            if os.path.lexists(target):
                raise errors.Conflict("something is there already", path=str(target), hint="try again") from None
            io.rename(str(folder / _WHOLE), str(target))
        io.sync_folder(target.parent)
    finally:
        with suppress(errors.MemfsError):  # what stays after a kill, the next backup's sweep takes
            io.remove_all(folder)
    return manifest


# -- temporary files ----------------------------------------------------------------------------------------------
def _read(path: Path) -> Iterator[bytes]:
    with io.descriptor(io.open_file(path, os.O_RDONLY)) as fd:
        yield from chunks_of(fd, os.fstat(fd).st_size, str(path))


# -- gathering ----------------------------------------------------------------------------------------------------
class WorkspacePacker(TreePacker):
    """Packs a workspace's files as they are at one moment; the rest of that moment is known once all of them are taken.

    Attributes:
        state: what the state folder holds that no other place has, by name below it.
        on_purpose: which of what is left out does not belong in a backup.
        waiting: how many writes waited for their commit.
        history: where git was.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.tree)
        self.state: dict[str, bytes] = {}
        self.on_purpose: set[str] = set()
        self.waiting = 0
        self.history = RepositorySnapshot(head="", refs={})
        self._parts = parts

    def tar(self) -> Generator[bytes, None, None]:
        """The files as a tar, in pieces. Writers wait while its last part is taken: it has to be closed in any case."""
        parts = self._parts
        for entry in self._entries():
            yield from self.add(entry.path)
        with parts.commit_lock.hold("backup", timeout=60), parts.lock.hold("backup"):
            self.left_out.clear()
            self.on_purpose.clear()
            yield from self.catch_up(self._entries())
            state, names = parts.repository.state, list(_KEPT_STATE)
            for folder in _KEPT_FOLDERS:
                with suppress(FileNotFoundError, NotADirectoryError):
                    inside = [name for name in sorted(os.listdir(state / folder)) if (state / folder / name).is_file()]
                    unwanted = (".tmp", ".lock", ".second", ".queue")  # locks, and what was left unfinished
                    names += [f"{folder}/{name}" for name in inside if not name.endswith(unwanted)]
            for name in names:
                with suppress(FileNotFoundError):
                    self.state[name] = io.read_file(state / name)
            self.waiting = len(parts.journal.operations())
            try:
                if (counts := uses(state / USES)) is not None:
                    self.state[USES] = counts
            except errors.CorruptRecord as error:  # the backup goes without: only counts are lost
                self.left_out[USES] = error.message
                self.on_purpose.add(USES)
            # Writes that are in the secondary location belong to the workspace like those in its journal.
            if parts.secondary is not None and (waiting := parts.secondary.operations()):
                self.state[FALLBACK] = io.read_file(parts.secondary.journal.path)
                self.waiting += len(waiting)
            try:
                self.history = snapshot(parts.repository)
            except (
                errors.HistoryError
            ) as error:  # when git is damaged the files are needed most: then they go without it
                self.left_out[HISTORY] = error.message
        yield from self.end()

    def _entries(self) -> Iterator[ScanEntry]:
        """The files that go into a backup, in order; what is no file is named."""
        tree = self._parts.tree
        found = [entry for entry in tree.scan(CONTENT, hidden=True) if not is_temporary(entry.path.rpartition("/")[2])]
        settings = tree.entry(SETTINGS_FILE)
        for entry in sorted([*found, settings] if settings else found):
            if ".git" in entry.path.casefold().split("/"):
                self.left_out[entry.path] = "part of another repository"
                self.on_purpose.add(entry.path)
            elif entry.regular:
                yield entry
            else:
                self.left_out[entry.path] = entry.reason or "not a regular file"
                if not entry.refused:
                    self.on_purpose.add(entry.path)


def _gzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    compress = zlib.compressobj(_LEVEL, zlib.DEFLATED, GZIP)
    for data in chunks:
        if done := compress.compress(data):
            yield done
    yield compress.flush()


def _tar(manifest: BackupManifest, state: Mapping[str, bytes], folder: Path) -> Iterator[bytes]:
    data = manifest.encode()
    yield from tar_file(manifest_name(data), [data], len(data))
    for name, (size, _) in manifest.parts.items():
        kept = state.get(name.removeprefix(STATE))
        yield from tar_file(name, _read(folder / name) if kept is None else [kept], size)
    yield END


_LOCK = "backup.lock"
_SMALL = 1 << 16
_LOOK_EVERY = 30.0
_RETRY_AFTER = 900.0
_LONGEST_NAME = 60
_MOST_PLACES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """One backup that was written and verified.

    Attributes:
        path: the file.
        bytes: its size.
        manifest: what it holds.
        removed: older backups that were removed.
    """

    path: Path
    bytes: int
    manifest: BackupManifest
    removed: tuple[Path, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is missing that should be there; links and pipes are left out on purpose."""
        return self.manifest.whole


@dataclass(frozen=True, slots=True)
class _Last:
    """The last backup: when it was made, where, and its size."""

    at: datetime
    path: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What a workspace knows of its backups; ``home`` is the path and inode of its folder."""

    origin: Annotated[str, re.compile("[0-9a-f]{8}")]
    home: tuple[str, Any] | None = None
    last: _Last | None = None
    error: str = ""
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """The state of a workspace's backups.

    Attributes:
        last: when the last one was made, None where none is known; ``path`` is where.
        age: seconds since then.
        interval_hours: how often one is wanted, 0 for never.
        due: whether one should have been made by now.
        error: why the last try failed, "" when it did not.
    """

    last: datetime | None
    age: int | None
    path: str
    interval_hours: float
    due: bool
    error: str = ""


class Backups:
    """The backups of one workspace."""

    def __init__(self, parts: Parts, settings: BackupSettings, fire: Fire) -> None:
        self._parts, self._settings, self._fire = parts, settings, fire
        self._lock = FileLock(parts.repository.state / _LOCK)
        self._looked = -_LOOK_EVERY

    # -- making -------------------------------------------------------------------------------------------------
    def make(self, to: Path | None = None) -> list[BackupResult]:
        """Make a backup in every place that the settings name, or in one folder; remove those beyond ``copies``.

        Raises:
            SettingInvalid: a place is inside what is backed up.
            StorageIO, LockTimeout, BackupInvalid: the first place where it failed; the others were served.
        """
        with self._lock.hold("backup", timeout=60):
            return self._make(self.places() if to is None else [self._usable(str(to))])

    def _make(self, places: Sequence[Path]) -> list[BackupResult]:
        made, failed = [], None
        for place in places:
            try:
                with io.operation("backup", place):  # a folder on the way may be closed to this user
                    io.make_folders(place)
                    # Numbered, since clocks go wrong and which one is the oldest decides what is removed.
                    last = max((int(path.name.split("-")[-2]) for path in self.kept(place)), default=0)
                    moment = f"{self._parts.clock():%Y%m%dT%H%M%SZ}"
                    path = place / f"{self._name()}-{self.origin()}-{last + 1:06d}-{moment}.tar"
                    manifest = make(self._parts, path, self.origin())
                    removed = self._prune(place) if manifest.whole else []  # what lacks something replaces nothing
                    done = BackupResult(path=path, bytes=path.stat().st_size, manifest=manifest, removed=tuple(removed))
                    made.append(done)
            except errors.MemfsError as error:
                failed = failed or error
        if made:
            newest = _Last(self._parts.clock(), str(made[0].path), made[0].bytes)
            known = {*self._record().places, *(str(one.path.parent) for one in made)}
            lacking = next((f"made without {one.manifest.left_out[0]}" for one in made if not one.whole), "")
            self._note(last=newest, error=str(failed or lacking), places=tuple(sorted(known)[:_MOST_PLACES]))
            self._fire("backup_made", {"path": newest.path, "bytes": newest.bytes})
            if lacking and failed is None:
                self._fire("backup_failed", {"error": lacking})
        else:
            self._note(error=str(failed))
        if failed is not None:
            self._fire("backup_failed", {"error": str(failed)})
            raise failed
        return made

    def _name(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._parts.tree.root.name)[:_LONGEST_NAME].strip("-.")
        return f"memfs-{name or 'workspace'}"

    # -- keeping ------------------------------------------------------------------------------------------------
    def places(self) -> list[Path]:
        """The folders that backups go to.

        Raises:
            SettingInvalid: one is not absolute, or is inside what is backed up.
        """
        self._parts.require_open()
        return [self._usable(target) for target in self._settings.targets] or [own_folder()]

    def _usable(self, named: str) -> Path:
        repository = self._parts.repository
        inside = (self._parts.tree.root / CONTENT, repository.common_dir, repository.git_dir)
        return usable(named, inside, "backup.targets")

    def kept(self, place: Path | None = None, *, namesakes: bool = False) -> list[Path]:
        """This workspace's backups, oldest first, in one place or wherever it ever made one.

        Args:
            namesakes: those of every workspace with the name of its folder, too.

        Raises:
            StorageIO: a place cannot be read.
        """
        self._parts.require_open()
        # Who makes the first one chooses by what all are known, under the lock: until then none is ours.
        origin = "[0-9a-f]{8}" if namesakes else self.origin() if self._known() else ""
        pattern = re.compile(re.escape(self._name()) + rf"-{origin}-\d{{6,}}-\d{{8}}T\d{{6}}Z\.tar") if origin else None
        found = []
        for folder in [place] if place else self._all_places():
            with io.operation("list", folder):
                names = os.listdir(folder) if folder.is_dir() else []
            found += [folder / name for name in names if pattern and pattern.fullmatch(name)]
        return sorted(found, key=lambda path: (int(path.name.split("-")[-2]), path))

    def _all_places(self) -> Sequence[Path]:
        return list(dict.fromkeys([*self.places(), *map(Path, self._record().places)]))

    def renew(self) -> tuple[list[Path], errors.MemfsError | None]:
        """Put a new backup in the place of all there are, those that killed processes left unfinished among them.

        One that is being made ends first: it may hold what was there before.

        Returns:
            Those that are left, as they are where no new one was made, and why none could be made.
        """
        self._parts.require_open()
        made: set[Path] = set()
        failed = None
        try:
            with self._lock.hold("backup", timeout=60):
                old = self.kept()
                for place in self._all_places():
                    io.sweep(place, _OURS, folders=True)
                if old:
                    made = {found.path for found in self._make(self.places())}
                for path in old:
                    if path.parent in {found.parent for found in made}:
                        io.unlink(path, missing_ok=True)
        except errors.MemfsError as error:
            failed = error
        with suppress(errors.MemfsError):  # a place that is no longer one holds no backups
            return [path for path in self.kept() if path not in made], failed
        return [], failed

    def _prune(self, place: Path) -> list[Path]:
        """Remove those beyond ``copies``; the ones that lack something never take the place of a whole one."""
        kept, copies = self.kept(place), self._settings.copies
        whole = [path for path in kept if _is_whole(path)] if len(kept) > copies else []
        others = [path for path in kept if path not in whole] if len(kept) > copies else []
        surplus = [*whole[:-copies], *others[:-copies]]
        for path in surplus:
            io.unlink(path, missing_ok=True)
        return surplus

    # -- schedule -----------------------------------------------------------------------------------------------
    def state(self) -> BackupState:
        """The status of the backups."""
        self._parts.require_open()
        record, hours = self._record(), self._settings.interval_hours
        last = record.last
        age = (self._parts.clock() - last.at).total_seconds() if last else None
        return BackupState(
            last=last.at if last else None,
            age=None if age is None else round(age),
            path=last.path if last else "",
            interval_hours=hours,
            due=hours > 0 and (age is None or not 0 <= age < hours * 3600),
            error=record.error,
        )

    def keep_up(self) -> bool:
        """Make the backup that is due; a failure is recorded and reported, never raised. Cheap when none is due.

        Returns:
            Whether one was made.
        """
        self._parts.require_open()
        now = time.monotonic()
        if self._settings.interval_hours <= 0 or now - self._looked < _LOOK_EVERY:
            return False
        self._looked = now
        try:
            with self._lock.hold("backup", timeout=0):
                if not self.state().due:
                    return False
                self._make(self.places())
        except errors.LockTimeout:  # another process is at it
            return False
        except errors.MemfsError:
            self._looked = now + _RETRY_AFTER
            return False
        return True

    def origin(self) -> str:
        """A random name that distinguishes this workspace's backups from others, kept in its state."""
        self._parts.require_open()
        record = self._record()
        if self._known() is None:
            self._store(record)
        return record.origin

    def _home(self) -> tuple[str, int]:
        root = self._parts.tree.root
        with io.operation("look at", root):
            return str(root), os.stat(root).st_ino

    def _record(self) -> _Record:
        """What is known, else a new record, by whose origin nothing is known yet."""
        return self._known() or _Record(origin=secrets.token_hex(4))

    def _known(self) -> _Record | None:
        """The record; None where it is damaged or came along with a copy: a moved one keeps its inode."""
        try:
            data = io.read_file(self._parts.repository.state / BACKUPS, _SMALL)
            found: _Record = decoded(_Record, json.loads(data))
            path, inode = self._home()
        except (FileNotFoundError, ValueError, RecursionError, errors.MemfsError):
            return None
        is_here = found.home is None or path == found.home[0] or inode == found.home[1]
        return found if is_here else None

    def _note(self, **facts: Any) -> None:
        with suppress(errors.StorageIO):  # a full disk does not undo a backup on another one
            self._store(replace(self._record(), **facts))

    def _store(self, record: _Record) -> None:
        from dataclasses import asdict  # asking for the status writes nothing

        data = json.dumps(asdict(replace(record, home=self._home())), default=format_time).encode()
        io.write_file(self._parts.repository.state / BACKUPS, data)


def own_folder() -> Path:
    """Where backups go that were given no place: the user's own data folder, outside of every workspace."""
    return base_folder("XDG_DATA_HOME", ".local/share") / "memfs" / "backups"


def _is_whole(path: Path) -> bool:
    try:
        with opened(path) as (manifest, _):
            return manifest.whole
    except errors.MemfsError:
        return False
