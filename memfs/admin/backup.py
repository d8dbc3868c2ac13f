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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memfs.admin.backup_file import (
    FALLBACK,
    FILES,
    HISTORY,
    STATE,
    BackupManifest,
    Digest,
    manifest_name,
    prove_history,
    reading,
    verify,
)
from memfs.config_names import SETTINGS_FILE
from memfs.errors import (
    BackupInvalid,
    Conflict,
    CorruptRecord,
    HistoryError,
    LockTimeout,
    MemfsError,
    SettingInvalid,
    StorageIO,
)
from memfs.fs import io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.lock import FileLock
from memfs.fs.scan import ScanEntry
from memfs.fs.tar import TarWriter, TreePacker, chunks_of
from memfs.fs.workspace_location import base_folder
from memfs.git.bundle import RepositorySnapshot, snapshot, write_bundle
from memfs.learning.inbox import FILE as INBOX
from memfs.model.time import format_time, parse_time
from memfs.settings import BackupSettings
from memfs.store.parts import CONTENT, Fire, Parts
from memfs.usage import FILE as USES
from memfs.usage import snapshot as uses

_KEPT_STATE = ("journal", INBOX)
_KEPT_FOLDERS = ("recovered", "spool")
_OURS = ".memfs-"
"""How what a backup has not finished yet is named, whichever workspace it is of."""
_LEVEL = 6
_GZIP = 31


@dataclass(slots=True)
class _Stage:
    """What is gathered before the archive is put together."""

    files: dict[str, Digest] = field(default_factory=dict)
    outdated: tuple[int, ...] = ()
    state: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    on_purpose: set[str] = field(default_factory=set)
    unpacked: int = 0
    waiting: int = 0


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
    with ExitStack() as stack:
        packed = stack.enter_context(_temporary(target, "files"))
        bundled = stack.enter_context(_temporary(target, "history"))
        whole = stack.enter_context(_temporary(target, "whole"))
        stage, history = _gather(parts, packed)
        history = _bundled(parts, stage, history, bundled, target)
        manifest = _assemble(parts, stage, history, (packed, bundled, whole), origin)
        io.fsync(whole.fd, str(whole.path))
        if verify(whole.path) != manifest:
            raise BackupInvalid("the backup does not read back as it was written", path=str(target), hint="try again")
        _give_name(whole.path, target)
        io.sync_folder(target.parent)
    return manifest


# -- temporary files ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Open:
    path: Path
    fd: int


@contextmanager
def _temporary(target: Path, what: str) -> Iterator[_Open]:
    """A file beside the target that goes when the block ends; after a kill, the next backup's sweep takes it."""
    path = _beside(target, what)
    io.unlink(path, missing_ok=True)
    fd = io.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        yield _Open(path, fd)
    finally:
        os.close(fd)
        with suppress(MemfsError):
            io.unlink(path, missing_ok=True)


def _beside(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name}.{what}.{os.getpid()}.tmp")


def _give_name(temporary: Path, target: Path) -> None:
    try:
        io.link(str(temporary), str(target))
    except StorageIO:  # no hard links here
        if os.path.lexists(target):
            raise Conflict("something is there already", path=str(target), hint="try again") from None
        io.rename(str(temporary), str(target))


# -- gathering ----------------------------------------------------------------------------------------------------
def _gather(parts: Parts, packed: _Open) -> tuple[_Stage, RepositorySnapshot]:
    stage = _Stage()
    compress = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)

    def put(data: bytes) -> None:
        if data:  # what is compressed comes out later, in larger pieces
            io.write_all(packed.fd, data, str(packed.path))

    packer = TreePacker(parts.tree, lambda data: put(compress.compress(data)))
    for entry in _entries(parts, stage):
        packer.add(entry.path)
    with parts.commit_lock.hold("backup", timeout=60), parts.lock.hold("backup"):
        stage.left_out.clear()
        stage.on_purpose.clear()
        packer.left_out.clear()
        packer.catch_up(_entries(parts, stage))
        stage.state = _state(parts.repository.state)
        _take_uses(parts.repository.state, stage)
        stage.waiting = len(parts.journal.operations())
        _take_fallback(parts, stage)
        history = _snapshot(parts, stage)
    packer.tar.end()
    put(compress.flush())
    stage.files, stage.outdated, stage.unpacked = packer.files, tuple(packer.outdated), packer.tar.size
    stage.left_out |= packer.left_out
    return stage, history


def _snapshot(parts: Parts, stage: _Stage) -> RepositorySnapshot:
    """Where git is. A damaged git is when the files are needed most: then they go without it, and that is named."""
    try:
        return snapshot(parts.repository)
    except HistoryError as error:
        stage.left_out[HISTORY] = error.message
        return RepositorySnapshot(head="", refs={})


def _bundled(parts: Parts, stage: _Stage, history: RepositorySnapshot, file: _Open, target: Path) -> RepositorySnapshot:
    """The history, tried: git copies what it packed before as it is, and only taking it shows what is damaged."""
    try:
        write_bundle(parts.repository, history, file.fd, str(file.path))
        if history.refs:
            prove_history(_from_start(file), history, _beside(target, "proof"))
    except HistoryError as error:
        stage.left_out[HISTORY] = error.message
        return replace(history, refs={})
    return history


def _entries(parts: Parts, stage: _Stage) -> Iterator[ScanEntry]:
    """The files that go into a backup, in order; what is no file is named."""
    found = [
        entry for entry in parts.tree.scan(CONTENT, hidden=True) if not is_temporary(entry.path.rpartition("/")[2])
    ]
    settings = parts.tree.entry(SETTINGS_FILE)
    for entry in sorted([*found, settings] if settings else found):
        if ".git" in entry.path.casefold().split("/"):
            stage.left_out[entry.path] = "part of another repository"
            stage.on_purpose.add(entry.path)
        elif entry.regular:
            yield entry
        else:
            stage.left_out[entry.path] = entry.reason or "not a regular file"
            if not entry.refused:
                stage.on_purpose.add(entry.path)


def _state(state: Path) -> dict[str, bytes]:
    """What the state folder holds that no other place has, by name below it."""
    names = list(_KEPT_STATE)
    for folder in _KEPT_FOLDERS:
        with suppress(FileNotFoundError, NotADirectoryError):
            inside = sorted(os.listdir(state / folder))
            names += [f"{folder}/{name}" for name in inside if _is_kept(state / folder / name)]
    kept = {}
    for name in names:
        with suppress(FileNotFoundError):
            kept[name] = io.read_file(state / name)
    return kept


def _is_kept(path: Path) -> bool:
    """Whether a file goes into a backup: locks and what was left unfinished do not."""
    return path.is_file() and not path.name.endswith((".tmp", ".lock", ".second", ".queue"))


def _take_uses(state: Path, stage: _Stage) -> None:
    """The counts of uses; where they are damaged the backup goes without, as only counts are lost."""
    try:
        counts = uses(state / USES)
    except CorruptRecord as error:
        stage.left_out[USES] = error.message
        stage.on_purpose.add(USES)
        return
    if counts is not None:
        stage.state[USES] = counts


def _take_fallback(parts: Parts, stage: _Stage) -> None:
    """Writes that lie in the secondary location belong to the workspace like those in its journal."""
    waiting = parts.secondary.operations() if parts.secondary is not None else []
    if parts.secondary is not None and waiting:
        stage.state[FALLBACK] = io.read_file(parts.secondary.journal.path)
        stage.waiting += len(waiting)


# -- putting together ---------------------------------------------------------------------------------------------
def _assemble(
    parts: Parts, stage: _Stage, history: RepositorySnapshot, files: tuple[_Open, _Open, _Open], origin: str
) -> BackupManifest:
    packed, bundled, whole = files
    listed: dict[str, Digest] = {FILES: _digest(packed)}
    if history.refs:
        listed[HISTORY] = _digest(bundled)
    for name, data in sorted(stage.state.items()):  # the manifest sorts its keys, and the parts come in its order
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
        files=dict(sorted(stage.files.items())),
        unpacked=stage.unpacked,
        outdated=stage.outdated,
        waiting=stage.waiting,
        left_out=tuple(f"{path}: {reason}" for path, reason in sorted(stage.left_out.items())),
        whole=stage.left_out.keys() <= stage.on_purpose,
    )
    tar = TarWriter(lambda data: io.write_all(whole.fd, data, str(whole.path)))
    data = manifest.encode()
    tar.add(manifest_name(data), [data], len(data))
    for name, (size, _) in listed.items():
        source = {FILES: packed, HISTORY: bundled}.get(name)
        tar.add(name, [stage.state[name.removeprefix(STATE)]] if source is None else _from_start(source), size)
    tar.end()
    return manifest


def _from_start(file: _Open) -> Iterator[bytes]:
    os.lseek(file.fd, 0, os.SEEK_SET)
    return chunks_of(file.fd, os.fstat(file.fd).st_size, str(file.path))


def _digest(file: _Open) -> Digest:
    hashed = hashlib.sha256()
    for data in _from_start(file):
        hashed.update(data)
    return os.fstat(file.fd).st_size, hashed.hexdigest()


_RECORD = "backups.json"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """The state of a workspace's backups.

    Attributes:
        last: when the last one was made, None where none is known; ``path`` is where.
        interval_hours: how often one is wanted, 0 for never.
        due: whether one should have been made by now.
        error: why the last try failed, "" when it did not.
    """

    last: datetime | None
    path: str
    interval_hours: float
    due: bool
    error: str = ""

    def age(self, now: datetime) -> float | None:
        """Seconds since the last one."""
        return (now - self.last).total_seconds() if self.last else None


class Backups:
    """The backups of one workspace."""

    def __init__(self, parts: Parts, settings: BackupSettings, fire: Fire) -> None:
        self._parts = parts
        self._settings = settings
        self._fire = fire
        self._lock = FileLock(parts.repository.state / _LOCK)
        self._looked = -_LOOK_EVERY

    # -- making -------------------------------------------------------------------------------------------------
    def make(self, to: Path | None = None) -> list[BackupResult]:
        """Make a backup in every place that the settings name, or in one folder; remove those beyond ``copies``.

        Raises:
            SettingInvalid: a place lies inside what is backed up.
            StorageIO, LockTimeout, BackupInvalid: the first place where it failed; the others were served.
        """
        with self._lock.hold("backup", timeout=60):
            return self._make(self.places() if to is None else [_usable(to, self._parts)])

    def _make(self, places: Sequence[Path]) -> list[BackupResult]:
        made, failed = [], None
        for place in places:
            try:
                made.append(self._make_in(place))
            except MemfsError as error:
                failed = failed or error
        if made:
            facts = {"at": format_time(self._parts.clock()), "path": str(made[0].path), "bytes": made[0].bytes}
            known = {*self._record().get("places", ()), *(str(one.path.parent) for one in made)}
            lacking = next((f"made without {one.manifest.left_out[0]}" for one in made if not one.whole), "")
            self._note(last=facts, error=str(failed or lacking), places=sorted(known)[:_MOST_PLACES])
            self._fire("backup_made", {"path": facts["path"], "bytes": facts["bytes"]})
            if lacking and failed is None:
                self._fire("backup_failed", {"error": lacking})
        else:
            self._note(error=str(failed))
        if failed is not None:
            self._fire("backup_failed", {"error": str(failed)})
            raise failed
        return made

    def _make_in(self, place: Path) -> BackupResult:
        with io.operation("backup", place):  # a folder on the way may be closed to this user
            io.make_folders(place)
            path = self._free_name(place)
            manifest = make(self._parts, path, self.origin())
            removed = self._prune(place) if manifest.whole else []  # what lacks something takes the place of nothing
            return BackupResult(path=path, bytes=path.stat().st_size, manifest=manifest, removed=tuple(removed))

    def _free_name(self, place: Path) -> Path:
        """The next name: numbered, since clocks go wrong and which one is the oldest decides what is removed."""
        last = max((int(path.name.split("-")[-2]) for path in self.kept(place)), default=0)
        return place / f"{self._stem()}-{last + 1:06d}-{self._parts.clock():%Y%m%dT%H%M%SZ}.tar"

    def _stem(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._parts.tree.root.name)[:_LONGEST_NAME].strip("-.")
        return f"memfs-{name or 'workspace'}-{self.origin()}"

    # -- keeping ------------------------------------------------------------------------------------------------
    def places(self) -> list[Path]:
        """The folders that backups go to.

        Raises:
            SettingInvalid: one is not absolute, or lies inside what is backed up.
        """
        self._parts.require_open()
        named = [Path(target).expanduser() for target in self._settings.targets]
        return [_usable(place, self._parts) for place in named] or [own_folder()]

    def kept(self, place: Path | None = None) -> list[Path]:
        """This workspace's backups, oldest first, in one place or wherever it ever made one.

        Raises:
            StorageIO: a place cannot be read.
        """
        self._parts.require_open()
        # Who makes the first one chooses by what all are known, under the lock: until then none is ours.
        pattern = re.compile(re.escape(self._stem()) + r"-\d{6,}-\d{8}T\d{6}Z\.tar") if self._record() else None
        found = []
        for folder in [place] if place else self._all_places():
            with io.operation("list", folder):
                names = os.listdir(folder) if folder.is_dir() else []
            found += [folder / name for name in names if pattern and pattern.fullmatch(name)]
        return sorted(found, key=lambda path: (int(path.name.split("-")[-2]), path))

    def _all_places(self) -> Sequence[Path]:
        return list(dict.fromkeys([*self.places(), *map(Path, self._record().get("places", ()))]))

    def renew(self, failed: Callable[[MemfsError], None]) -> tuple[int, list[Path]]:
        """Put a new backup in the place of all there are, those that killed processes left unfinished among them.

        One that is being made ends first: it may hold what was there before.

        Args:
            failed: called with the reason why no new one could be made.

        Returns:
            How many went, and those that could not.

        Raises:
            LockTimeout: the one that is being made does not end.
        """
        self._parts.require_open()
        with self._lock.hold("backup", timeout=60):
            try:
                old = self.kept()
                for place in self._all_places():
                    io.sweep(place, _OURS, folders=True)
            except MemfsError:  # a place that is none any more holds nothing that could be found
                return 0, []
            made: set[Path] = set()
            try:
                made = {found.path for found in self._make(self.places())} if old else set()
            except MemfsError as error:
                failed(error)
            for path in old:
                if path.parent in {found.parent for found in made} and path not in made:
                    io.unlink(path, missing_ok=True)
            left = [path for path in old if path.exists()]
            return len(old) - len(left), left

    def surplus(self, place: Path | None = None) -> list[Path]:
        """Those beyond ``copies`` in each place, oldest first."""
        return [path for folder in ([place] if place else self.places()) for path in self._surplus_in(folder)]

    def _surplus_in(self, place: Path) -> list[Path]:
        """Those that lack something are counted for themselves: they never take the place of a whole one."""
        kept = self.kept(place)
        if len(kept) <= self._settings.copies:
            return []
        whole = [path for path in kept if _is_whole(path)]
        others = [path for path in kept if path not in whole]
        return [*whole[: -self._settings.copies], *others[: -self._settings.copies]]

    def prune(self) -> list[Path]:
        """Remove the surplus; return what was removed."""
        with self._lock.hold("backup", timeout=60):
            return [path for place in self.places() for path in self._prune(place)]

    def _prune(self, place: Path) -> list[Path]:
        surplus = self._surplus_in(place)
        for path in surplus:
            io.unlink(path, missing_ok=True)
        return surplus

    # -- schedule -----------------------------------------------------------------------------------------------
    def state(self) -> BackupState:
        """How things stand now."""
        self._parts.require_open()
        record = self._record()
        last = record.get("last") or {}
        moment = parse_time(last["at"]) if last else None
        hours = self._settings.interval_hours
        age = (self._parts.clock() - moment).total_seconds() if moment else None
        due = hours > 0 and (age is None or not 0 <= age < hours * 3600)
        return BackupState(
            last=moment, path=last.get("path", ""), interval_hours=hours, due=due, error=record.get("error", "")
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
        except LockTimeout:  # another process is at it
            return False
        except MemfsError:
            self._looked = now + _RETRY_AFTER
            return False
        return True

    def origin(self) -> str:
        """By which this workspace's backups are known among others: random, kept in its state."""
        self._parts.require_open()
        known = self._record().get("origin")
        if not known:
            known = secrets.token_hex(4)
            self._write({**self._record(), "origin": known, "home": self._home()})
        return str(known)

    def _home(self) -> list[str | int]:
        root = self._parts.tree.root
        with io.operation("look at", root):
            return [str(root), os.stat(root).st_ino]

    def _is_copied(self, record: Mapping[str, Any]) -> bool:
        """Whether a record came along with a copy. One that was moved keeps its inode, one put back its path."""
        path, inode = record.get("home") or self._home()
        return path != self._home()[0] and inode != self._home()[1]

    def _record(self) -> dict[str, Any]:
        try:
            found = json.loads(io.read_file(self._parts.repository.state / _RECORD, _SMALL))
            if not isinstance(found, dict) or not re.fullmatch(r"[0-9a-f]{8}", str(found.get("origin"))):
                return {}
            if found.get("last"):
                parse_time(found["last"]["at"])
            if not all(isinstance(place, str) for place in found.get("places", ())):
                return {}
            if self._is_copied(found):
                return {}
        except (FileNotFoundError, ValueError, KeyError, TypeError, MemfsError):
            return {}
        return found

    def _note(self, **facts: Any) -> None:
        record = {**self._record(), **facts, "home": self._home()}
        with suppress(StorageIO):  # a full disk does not undo a backup on another one
            self._write({"origin": secrets.token_hex(4), **record})

    def _write(self, record: Mapping[str, Any]) -> None:
        io.write_file(self._parts.repository.state / _RECORD, json.dumps(record).encode())


def own_folder() -> Path:
    """Where backups go that were given no place: the user's own data folder, outside of every workspace."""
    return base_folder("XDG_DATA_HOME", ".local/share") / "memfs" / "backups"


def _is_whole(path: Path) -> bool:
    try:
        with reading(path) as (manifest, _):
            return manifest.whole
    except MemfsError:
        return False


def _usable(place: Path, parts: Parts) -> Path:
    if not place.is_absolute():
        raise SettingInvalid(f"{str(place)!r} is not absolute", field="backup.targets", hint="name the whole path")
    resolved = Path(os.path.realpath(place))
    for inside in (parts.tree.root / CONTENT, parts.repository.common_dir, parts.repository.git_dir):
        if resolved.is_relative_to(inside):
            raise SettingInvalid(
                f"{str(place)!r} lies inside what is backed up", field="backup.targets", hint="name another folder"
            )
    return resolved
