"""Packing a checkpoint: the state's documents of one moment, as one compressed archive, while others go on writing.

Owns which files belong to a state, and how they come to be of one moment: they are packed without a lock, newest
iteration first; then, with every writer kept out, what changed since is packed again. Names and sums come last, as
``SHA256SUMS`` of what counts. Nothing here makes a checkpoint: what is written is only a file until it was read back.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.errors import HistoryError, MemfsError
from memfs.files import io, zstd
from memfs.files.placing import is_temporary
from memfs.files.scan import Entry
from memfs.model.statepaths import AGGREGATES, ITERATIONS, iteration_of
from memfs.states.checkpoint_archived import Archived, archived_data, archived_update, archived_work
from memfs.states.checkpoint_points import (
    CONFIGURATION,
    MEMBER,
    TASKS,
    Points,
    Said,
    at,
    is_small,
    latest_of,
    moment_of,
    newest_update,
    said_in,
)
from memfs.states.checkpoint_tasks import finished
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.upkeep.tarform import END, header, padding

if TYPE_CHECKING:
    from memfs.states.archives import Archives

SUMS = "SHA256SUMS"
FOLDERS = (f"{CONTENT}/configuration", f"{CONTENT}/context", AGGREGATES, ITERATIONS)
_LEVEL = 3
_CHUNK = 1 << 18
_GATHERED = 1 << 20
_RACY_NS = 2_000_000_000
_TRIES = 5
_UNKNOWN = (-1, -1, -1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What was packed; see ``checkpoint_manifest.Manifest`` for the fields."""

    created: datetime
    iteration: int | None
    files: int
    bytes: int
    unpacked: int
    payload_bytes: int
    payload_sha256: str
    revision: str
    left_out: tuple[str, ...]


@dataclass(slots=True)
class _Stage:
    sums: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    facts: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    unpacked: int = 0


def pack(
    store: Store, parts: Parts, target: Path, update: Mapping[str, Any] | None, archives: Archives | None = None
) -> Packed:
    """Write the state as it is at one moment into a new file, durable on return.

    Args:
        update: the state update whose ``checkpoint_data`` counts; None for the latest in the state.
        archives: what they hold is told of as work that is done.

    Raises:
        StorageIO, LockTimeout: it could not be written.
    """
    fd = io.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        packer = _Packer(parts, fd, str(target))
        with parts.tree.holding_folders():
            for entry in _ordered(_entries(parts, packer.stage)):
                packer.add(entry.path)
        archived = Archived.of(archives)  # before the writers wait: what is unchanged is not read again
        with store.standing_still("checkpoint"), parts.tree.holding_folders():
            created = parts.clock()
            _catch_up(parts, packer)
            summary = _summary(parts, packer, update, archives, archived)
            revision = _revision(parts)
        packer.finish(summary)
        io.fsync(fd, str(target))
        _forget_cached(fd)
    finally:
        os.close(fd)
    stage = packer.stage
    return Packed(
        created=created,
        iteration=max((number for path in stage.sums if (number := iteration_of(path)) is not None), default=None),
        files=len(stage.sums),
        bytes=sum(size for size, _ in stage.sums.values()),
        unpacked=stage.unpacked,
        payload_bytes=packer.written,
        payload_sha256=packer.digest.hexdigest(),
        revision=revision,
        left_out=tuple(f"{path}: {reason}" for path, reason in sorted(stage.left_out.items())),
    )


# -- what belongs to a state --------------------------------------------------------------------------------------
def _entries(parts: Parts, stage: _Stage) -> list[Entry]:
    found = []
    for folder in FOLDERS:
        for entry in parts.seen.scan(folder, hidden=True):
            if is_temporary(entry.path.rpartition("/")[2]):
                continue
            if entry.regular and "\n" not in entry.path:
                found.append(entry)
            else:
                stage.left_out[entry.path] = entry.reason or "not a regular file with a plain name"
    return found


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Newest iteration first, what belongs to none before them."""

    def place(entry: Entry) -> tuple[int, str]:
        number = iteration_of(entry.path)
        return (-(1 << 60) if number is None else -number, entry.path)

    return sorted(entries, key=place)


def _catch_up(parts: Parts, packer: _Packer) -> None:
    """Pack again what changed since it was packed, forget what is gone: from here on the files are of one moment."""
    stage = packer.stage
    stage.left_out.clear()
    present = set()
    for entry in _ordered(_entries(parts, stage)):
        present.add(entry.path)
        if stage.facts.get(entry.path) != entry[1:5] and not packer.holds(entry.path):
            tries = _TRIES
            while tries and not packer.add(entry.path):
                tries -= 1
            if not tries:
                stage.left_out[entry.path] = "it kept changing"
                stage.sums.pop(entry.path, None)
    for path in stage.sums.keys() - present:
        del stage.sums[path]


def _summary(
    parts: Parts, packer: _Packer, update: Mapping[str, Any] | None, archives: Archives | None, archived: Archived
) -> dict[str, Any]:
    paths, work = packer.stage.sums, archived_work(archives)
    latest = newest_update(paths)
    chosen: dict[str, Any] = {"values": update} if update is not None else {}
    if update is None and latest:
        data = parts.seen.read(latest, READ_LIMIT).data
        chosen = {"path": latest, **({"values": _object(data)} if is_small(data) else {})}
    elif update is None and (found := archived_update(archives, work)):
        chosen = {"values": found}
    told = archived.said if archived.work == work else archived_data(archives, work)
    said = latest_of((*told.values(), *packer.points.latest(paths.keys()).values()))
    said |= {one.field: one for one in said_in("", update or {})}
    return packer.points.summary(
        paths.keys(), chosen, said.values(), _finished(parts, said.get(TASKS), paths), _configuration(parts),
        work.paths, work.closed,
    )  # fmt: skip


def _finished(parts: Parts, said: Said | None, paths: Iterable[str]) -> list[int]:
    """Which tasks in flight had their final output after the update that names them; a given one names them now."""
    moment = moment_of(said.path) if said is not None else None
    if said is None or moment is None:
        return []

    def read(path: str) -> bytes:
        return parts.seen.read(path, READ_LIMIT).data

    tasks = said.value if said.small else at(_object(read(said.path)), said.field)
    return finished(tasks if isinstance(tasks, list) else [], paths, read, after=moment)


def _configuration(parts: Parts) -> dict[str, Any]:
    try:
        return _object(parts.seen.read(CONFIGURATION, READ_LIMIT).data)
    except (FileNotFoundError, MemfsError):
        return {}


def _object(data: bytes) -> dict[str, Any]:
    """What a document holds; one that a person broke is in the checkpoint as it is, and says nothing."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _revision(parts: Parts) -> str:
    try:
        return parts.repository.head_commit() or ""
    except HistoryError:
        return ""


def _forget_cached(fd: int) -> None:
    """Let reading back come from the disk, not from memory; a system that cannot is no worse off."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is not None:
        try:
            advise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            return


# -- the archive --------------------------------------------------------------------------------------------------
class _Packer:
    """Writes the archive as files are added to it."""

    def __init__(self, parts: Parts, fd: int, path: str) -> None:
        self.stage = _Stage()
        self.points = Points()
        self.digest = hashlib.sha256()
        self.written = 0
        self._parts = parts
        self._fd, self._path = fd, path
        self._held = set(parts.secondary.held()) if parts.secondary is not None else set()
        self._compress = zstd.open_writer(self._put, level=_LEVEL, threads=os.cpu_count() or 1)
        self._gathered: list[bytes] = []
        self._weight = 0

    def add(self, path: str) -> bool:
        """Pack a file as it is now; one that cannot be read is named as left out.

        Returns:
            False where it changed while it was read.
        """
        try:
            if path in self._held:
                return self._add_data(path, self._parts.seen.read(path, READ_LIMIT).data)
            fd = self._parts.tree.open_read(path)
        except FileNotFoundError:
            return True
        except MemfsError as error:
            self.stage.left_out[path] = error.message
            return True
        try:
            return self._add(path, fd)
        finally:
            os.close(fd)

    def _add_data(self, path: str, data: bytes) -> bool:
        self._write(header(path, len(data)) + data + padding(len(data)))
        self._note(path, len(data), hashlib.sha256(data).digest(), _UNKNOWN)
        self.points.note(path, data)
        return True

    def _add(self, path: str, fd: int) -> bool:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            self.stage.left_out[path] = "not a regular file"
            return True
        facts = _facts(before)
        quiet = abs(time.time_ns() - before.st_ctime_ns) > _RACY_NS
        if before.st_size <= READ_LIMIT:
            data = io.read_regular(fd, path, READ_LIMIT)
            self._add_data(path, data)
            whole = len(data) == before.st_size and facts == _facts(os.fstat(fd))
        else:
            whole = self._stream(path, fd, before.st_size) and facts == _facts(os.fstat(fd))
        if quiet and whole:
            self.stage.facts[path] = facts
        return whole

    def _stream(self, path: str, fd: int, size: int) -> bool:
        self._write(header(path, size))
        hashed, left = hashlib.sha256(), size
        while left:
            with io.operation("read", path):
                data = os.read(fd, min(left, _CHUNK))
            if not data:
                break
            hashed.update(data)
            left -= len(data)
            self._write(data)
        hashed.update(bytes(left))
        self._write(bytes(left) + padding(size))
        self._note(path, size, hashed.digest(), _UNKNOWN)
        return left == 0

    def holds(self, path: str) -> bool:
        """Whether a file still is as it was packed: its facts alone cannot tell when it was touched a moment ago."""
        packed = self.stage.sums.get(path)
        if packed is None or path in self._held:
            return False
        try:
            fd = self._parts.tree.open_read(path)
        except (FileNotFoundError, MemfsError):
            return False
        try:
            if os.fstat(fd).st_size != packed[0]:
                return False
            hashed = hashlib.sha256()
            with io.operation("read", path):
                while data := os.read(fd, _CHUNK):
                    hashed.update(data)
            return hashed.digest() == packed[1]
        finally:
            os.close(fd)

    def _note(self, path: str, size: int, digest: bytes, facts: tuple[int, int, int, int]) -> None:
        self.stage.sums[path] = (size, digest)
        self.stage.facts[path] = facts

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, the sums, and the end."""
        for name, data in ((MEMBER, _json(summary)), (SUMS, sums(self.stage.sums))):
            self._write(header(name, len(data)) + data + padding(len(data)))
        self._write(END)
        self._flush()
        self._compress.close()

    def _write(self, data: bytes) -> None:
        self.stage.unpacked += len(data)
        self._gathered.append(data)
        self._weight += len(data)
        if self._weight >= _GATHERED:
            self._flush()

    def _flush(self) -> None:
        self._compress.write(b"".join(self._gathered))
        self._gathered, self._weight = [], 0

    def _put(self, data: bytes) -> None:
        self.digest.update(data)
        self.written += len(data)
        io.write_all(self._fd, data, self._path)


def sums(digests: Mapping[str, tuple[int, bytes]]) -> bytes:
    """The file that ``sha256sum -c`` reads: one line for each document that counts."""
    lines = (f"{digest.hex()}  {path}\n" for path, (_, digest) in sorted(digests.items()))
    return "".join(lines).encode("utf-8", "surrogateescape")


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")


def _facts(found: os.stat_result) -> tuple[int, int, int, int]:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
