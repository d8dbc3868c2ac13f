"""Making a backup: one verified file, of one moment, while others go on writing.

Owns the order: files are packed without a lock; then, under the commit lock and the store's lock, what changed since is
packed again and journal, recovered contents and refs are taken as they are in that moment; the history follows from
git, whose objects do not change. Everything is put together under a temporary name, made durable, read back and
verified, and only then gets its name. When and where to is ``memfs.upkeep.backups``' business.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from memfs.errors import BackupInvalid, Conflict, CorruptRecord, HistoryError, MemfsError, StorageIO
from memfs.files import io
from memfs.files.placing import is_temporary
from memfs.files.scan import Entry
from memfs.history.bundle import Snapshot, snapshot, write_bundle
from memfs.model.time import format_time
from memfs.pipeline.inbox import FILE as INBOX
from memfs.store.parts import CONTENT, Parts
from memfs.upkeep.backup_file import FALLBACK, FILES, HISTORY, STATE, Digest, Manifest, manifest_name, verify
from memfs.upkeep.backup_proof import ENDING, prove_history, sweep_proofs
from memfs.upkeep.tarform import END, header, padding
from memfs.usage import FILE as USES
from memfs.usage import snapshot as uses

_SETTINGS = "memfs.toml"
_KEPT_STATE = ("journal", INBOX)
_KEPT_FOLDERS = ("recovered", "spool")
_LEVEL = 6
_GZIP = 31
_CHUNK = 1 << 18
_RACY_NS = 2_000_000_000
_TRIES = 5

Facts = tuple[int, int, int, int]
"""Size, times and inode of a file."""


@dataclass(slots=True)
class _Stage:
    """What is gathered before the archive is put together."""

    files: dict[str, Digest] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    outdated: list[int] = field(default_factory=list)
    state: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    on_purpose: set[str] = field(default_factory=set)
    unpacked: int = 0
    waiting: int = 0


def make(parts: Parts, target: Path, origin: str) -> Manifest:
    """Write a verified backup of a workspace as ``target``, which must not exist.

    Args:
        origin: by which the workspace's own backups are known.

    Returns:
        Its manifest, read back from the file.

    Raises:
        Conflict: the name is taken.
        StorageIO, HistoryError, LockTimeout, BackupInvalid: no backup was made.
    """
    sweep_unfinished(target.parent)
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


def sweep_unfinished(place: Path) -> None:
    """Remove what backups that were killed left in a folder, whichever workspace they were of."""
    io.sweep(place, ".memfs-")
    with io.operation("list", place):
        if place.is_dir():
            sweep_proofs(place)


# -- temporary files ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Open:
    path: Path
    fd: int


@contextmanager
def _temporary(target: Path, what: str) -> Iterator[_Open]:
    """A file beside the target that goes when the block ends; after a kill, the next backup's sweep takes it."""
    path = target.with_name(f".{target.name}.{what}.{os.getpid()}.tmp")
    io.unlink(path, missing_ok=True)
    fd = io.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        yield _Open(path, fd)
    finally:
        os.close(fd)
        with suppress(MemfsError):
            io.unlink(path, missing_ok=True)


def _give_name(temporary: Path, target: Path) -> None:
    try:
        io.link(str(temporary), str(target))
    except StorageIO:  # no hard links here
        if os.path.lexists(target):
            raise Conflict("something is there already", path=str(target), hint="try again") from None
        io.rename(str(temporary), str(target))


# -- gathering ----------------------------------------------------------------------------------------------------
def _gather(parts: Parts, packed: _Open) -> tuple[_Stage, Snapshot]:
    stage = _Stage()
    packer = _Packer(parts, packed, stage)
    for entry in _entries(parts, stage):
        packer.add(entry.path)
    with parts.commit_lock.hold("backup", timeout=60), parts.lock.hold("backup"):
        _catch_up(parts, stage, packer)
        stage.state = _state(parts.repository.state)
        _take_uses(parts.repository.state, stage)
        stage.waiting = len(parts.journal.operations())
        _take_fallback(parts, stage)
        history = _snapshot(parts, stage)
    packer.finish()
    return stage, history


def _snapshot(parts: Parts, stage: _Stage) -> Snapshot:
    """Where git stands. A damaged git is when the files are needed most: then they go without it, and that is named."""
    try:
        return snapshot(parts.repository)
    except HistoryError as error:
        stage.left_out[HISTORY] = error.message
        return Snapshot(head="", refs={})


def _bundled(parts: Parts, stage: _Stage, history: Snapshot, file: _Open, target: Path) -> Snapshot:
    """The history, tried: git copies what it packed before as it is, and only taking it shows what is damaged."""
    try:
        write_bundle(parts.repository, history, file.fd, str(file.path))
        if history.refs:
            prove_history(_from_start(file), history, target.with_name(f".{target.name}.{os.getpid()}{ENDING}"))
    except HistoryError as error:
        stage.left_out[HISTORY] = error.message
        return replace(history, refs={})
    return history


def _entries(parts: Parts, stage: _Stage) -> Iterator[Entry]:
    """The files that belong into a backup, in order; what is no file is named."""
    found = [
        entry for entry in parts.tree.scan(CONTENT, hidden=True) if not is_temporary(entry.path.rpartition("/")[2])
    ]
    settings = parts.tree.entry(_SETTINGS)
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


def _catch_up(parts: Parts, stage: _Stage, packer: _Packer) -> None:
    """Pack again what changed since it was packed, drop what is gone: from here on the files are of one moment."""
    stage.left_out.clear()
    stage.on_purpose.clear()
    present = set()
    for entry in _entries(parts, stage):
        present.add(entry.path)
        if stage.facts.get(entry.path) != entry[1:5] and not packer.holds(entry.path):
            tries = _TRIES
            while tries and not packer.add(entry.path):
                tries -= 1
    for path in stage.files.keys() - present:
        stage.outdated.append(stage.places.pop(path))
        del stage.files[path]


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
    """Whether a file belongs into a backup: locks and what was left unfinished do not."""
    return path.is_file() and not path.name.endswith((".tmp", ".lock", ".lock.twin"))


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


class _Packer:
    """Writes ``files.tar.gz`` as files are added to it."""

    def __init__(self, parts: Parts, file: _Open, stage: _Stage) -> None:
        self._parts = parts
        self._file = file
        self._stage = stage
        self._compress = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._number = 0

    def add(self, path: str) -> bool:
        """Pack a file as it is now; one that cannot be read is named as left out.

        Returns:
            False where it changed while it was read.
        """
        try:
            fd = self._parts.tree.open_read(path)
        except FileNotFoundError:
            return True
        except MemfsError as error:
            self._stage.left_out[path] = error.message
            return True
        try:
            return self._add(path, fd)
        finally:
            os.close(fd)

    def _add(self, path: str, fd: int) -> bool:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            self._stage.left_out[path] = "not a regular file"
            self._stage.on_purpose.add(path)
            return True
        size = before.st_size
        self._write(header(path, size))
        hashed, left = hashlib.sha256(), size
        for data in _chunks(fd, size, path):
            hashed.update(data)
            left -= len(data)
            self._write(data)
        filler = bytes(left)
        hashed.update(filler)
        self._write(filler + padding(size))
        whole = left == 0 and _same(before, os.fstat(fd))
        self._note(path, (size, hashed.hexdigest()), before, whole)
        return whole

    def holds(self, path: str) -> bool:
        """Whether a file still is as it was packed: its facts alone cannot tell when it was touched a moment ago."""
        packed = self._stage.files.get(path)
        if packed is None:
            return False
        try:
            fd = self._parts.tree.open_read(path)
        except (FileNotFoundError, MemfsError):
            return False
        try:
            size, hashed = os.fstat(fd).st_size, hashlib.sha256()
            for data in _chunks(fd, size, path) if size == packed[0] else ():
                hashed.update(data)
            return (os.fstat(fd).st_size, hashed.hexdigest()) == packed
        finally:
            os.close(fd)

    def _note(self, path: str, digest: Digest, facts: os.stat_result, whole: bool) -> None:
        stage = self._stage
        if path in stage.places:
            stage.outdated.append(stage.places[path])
        stage.files[path], stage.places[path] = digest, self._number
        # One that was touched a moment ago, or while it was read, is looked at again.
        quiet = whole and abs(time.time_ns() - facts.st_ctime_ns) > _RACY_NS
        stage.facts[path] = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino) if quiet else (-1,) * 4
        self._number += 1

    def _write(self, data: bytes) -> None:
        self._stage.unpacked += len(data)
        self._put(self._compress.compress(data))

    def _put(self, data: bytes) -> None:
        if data:
            io.write_all(self._file.fd, data, str(self._file.path))

    def finish(self) -> None:
        """Write the end."""
        self._write(END)
        self._put(self._compress.flush())


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)


def _chunks(fd: int, size: int, path: str) -> Iterator[bytes]:
    left = size
    while left:
        with io.operation("read", path):
            data = os.read(fd, min(left, _CHUNK))
        if not data:
            return
        left -= len(data)
        yield data


# -- putting together ---------------------------------------------------------------------------------------------
def _assemble(
    parts: Parts, stage: _Stage, history: Snapshot, files: tuple[_Open, _Open, _Open], origin: str
) -> Manifest:
    packed, bundled, whole = files
    listed: dict[str, Digest] = {FILES: _digest(packed)}
    if history.refs:
        listed[HISTORY] = _digest(bundled)
    for name, data in sorted(stage.state.items()):  # the manifest sorts its keys, and the parts come in its order
        listed[STATE + name] = (len(data), hashlib.sha256(data).hexdigest())
    manifest = Manifest(
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
        outdated=tuple(sorted(stage.outdated)),
        waiting=stage.waiting,
        left_out=tuple(f"{path}: {reason}" for path, reason in sorted(stage.left_out.items())),
        whole=stage.left_out.keys() <= stage.on_purpose,
    )
    data = manifest.encode()
    _append(whole, manifest_name(data), iter([data]), len(data))
    for name, (size, _) in listed.items():
        source = {FILES: packed, HISTORY: bundled}.get(name)
        bytes_of = iter([stage.state[name.removeprefix(STATE)]]) if source is None else _from_start(source)
        _append(whole, name, bytes_of, size)
    io.write_all(whole.fd, END, str(whole.path))
    return manifest


def _append(whole: _Open, name: str, chunks: Iterator[bytes], size: int) -> None:
    io.write_all(whole.fd, header(name, size), str(whole.path))
    for data in chunks:
        io.write_all(whole.fd, data, str(whole.path))
    io.write_all(whole.fd, padding(size), str(whole.path))


def _from_start(file: _Open) -> Iterator[bytes]:
    os.lseek(file.fd, 0, os.SEEK_SET)
    return _chunks(file.fd, os.fstat(file.fd).st_size, str(file.path))


def _digest(file: _Open) -> Digest:
    hashed = hashlib.sha256()
    for data in _from_start(file):
        hashed.update(data)
    return os.fstat(file.fd).st_size, hashed.hexdigest()
