"""The file format of a backup, version 1 (``docs/format.md``): its manifest, its parts, and the proof that it is whole.

It is a tar whose first member is ``manifest-<sha256 of itself>.json``, followed by exactly the parts that the
manifest names with size and sha256. One of them, ``files.tar.gz``, holds the workspace's files; one that changed
while the backup was made is in it twice, and the manifest says which does not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from memfs.errors import BackupInvalid, CorruptRecord, FormatUnsupported, HistoryError, MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.tar import Read, TarMember, check_name, members
from memfs.git.bundle import RepositorySnapshot, read_bundle
from memfs.git.repository import Repository

_CHUNK = 1 << 18


def _invalid(reason: str) -> BackupInvalid:
    return BackupInvalid(f"this is no sound backup: {reason}", hint="use another backup")


FILES = "files.tar.gz"
HISTORY = "history.bundle"
STATE = "state/"
FALLBACK = "fallback"
VERSION = 1
_FORMAT = "memfs-backup"
_LONGEST_MANIFEST = 1 << 30
_MANIFEST = re.compile(r"manifest-([0-9a-f]{64})\.json")
_HEX = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_GZIP = 31
_DEEP = 64

Digest = tuple[int, str]
"""Size and sha256 of a file or part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """What a backup says of itself.

    Attributes:
        created: when, ISO 8601.
        workspace: the folder's name.
        origin: which workspace it came from, as the workspace's own state names it.
        prefix: where in its repository the workspace lies.
        head: the branch, or the commit where HEAD was detached.
        refs: commits and tags by full ref name; ``HEAD`` where it was detached.
        shallow: commits at which a shallow clone's history ends.
        parts: what follows in the archive, in order.
        files: the workspace's files by path.
        unpacked: bytes of ``files.tar.gz`` when unpacked.
        outdated: which files of that archive do not count, by their place in it from 0: they changed meanwhile.
        waiting: how many writes waited for their commit.
        left_out: what could not be taken along, and why.
        whole: whether nothing is missing that should be there; what is no file is left out on purpose.
    """

    created: str
    workspace: str
    origin: str
    prefix: str = ""
    head: str = ""
    refs: Mapping[str, str] = field(default_factory=dict)
    shallow: Sequence[str] = ()
    parts: Mapping[str, Digest]
    files: Mapping[str, Digest]
    unpacked: int
    outdated: Sequence[int] = ()
    waiting: int = 0
    left_out: Sequence[str] = ()
    whole: bool = True

    def encode(self) -> bytes:
        """As it is in the archive."""
        facts = {"format": _FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(facts, separators=(",", ":"), sort_keys=True).encode("ascii")


def manifest_name(data: bytes) -> str:
    """The name under which a manifest's bytes stand in the archive."""
    return f"manifest-{hashlib.sha256(data).hexdigest()}.json"


@contextmanager
def reading(path: Path) -> Iterator[tuple[BackupManifest, Iterator[TarMember]]]:
    """A backup's manifest and the parts that follow; the caller checks each part with ``checked``.

    Raises:
        BackupInvalid: it is none, or damaged.
        FormatUnsupported: it was made by a newer memfs.
        StorageIO: it cannot be read.
    """
    try:
        fd = io.open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, MemfsError) as error:
        raise BackupInvalid("there is no backup to be read", path=str(path), hint="name the file") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _invalid("it is no file")
        archive = members(_from(fd, path))
        first = next(archive, None)
        if first is None:
            raise _invalid("it is empty")
        yield _manifest(first), archive
    except BackupInvalid as error:
        raise error.located(str(path)) from error.__cause__
    except CorruptRecord as error:
        raise _invalid(error.message).located(str(path)) from error
    finally:
        os.close(fd)


def verify(path: Path) -> BackupManifest:
    """Read a whole backup: every part and every file in it is what the manifest says.

    Raises:
        BackupInvalid, FormatUnsupported, StorageIO: see ``reading``.
    """
    with reading(path) as (manifest, archive):
        for member in parts_of(manifest, archive):
            chunks = checked(member, manifest.parts[member.name])
            if member.name == FILES:
                for _ in files_of(manifest, chunks):
                    pass
            for _ in chunks:
                pass
    return manifest


def parts_of(manifest: BackupManifest, archive: Iterator[TarMember]) -> Iterator[TarMember]:
    """The parts, each of them once and in the manifest's order.

    Raises:
        BackupInvalid: another one comes, or one is missing.
    """
    for name, (size, _) in manifest.parts.items():
        member = next(archive, None)
        if member is None or (member.name, member.size) != (name, size):
            raise _invalid(f"the part {name!a} is missing")
        yield member
    if next(archive, None) is not None:
        raise _invalid("it holds more than its manifest names")


def checked(member: TarMember, digest: Digest) -> Iterator[bytes]:
    """A part's bytes; the last one comes only if all are right.

    Raises:
        BackupInvalid: they are not.
    """
    size, expected = digest
    seen, hashed = 0, hashlib.sha256()
    for chunk in member.chunks():
        seen += len(chunk)
        hashed.update(chunk)
        yield chunk
    if (seen, hashed.hexdigest()) != (size, expected):
        raise _invalid(f"{member.name!a} is damaged: sha256 {hashed.hexdigest()[:12]}, should be {expected[:12]}")


def files_of(manifest: BackupManifest, chunks: Iterator[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The workspace's files, each once: path and bytes, which are right if all of them come.

    Raises:
        BackupInvalid: a file is missing, damaged or unknown, or there are more bytes than the manifest says.
    """
    awaited = dict(manifest.files)
    outdated = frozenset(manifest.outdated)
    for number, member in enumerate(members(_unpacked(chunks, manifest.unpacked))):
        if number in outdated:
            continue
        digest = awaited.pop(member.name, None)
        if digest is None:
            raise _invalid(f"the file {member.name!a} is not one of those it names")
        data = checked(member, digest)
        yield member.name, data
        for _ in data:
            pass
    if awaited:
        raise _invalid(f"the file {next(iter(awaited))!a} is missing")


def _manifest(member: TarMember) -> BackupManifest:
    named = _MANIFEST.fullmatch(member.name)
    if named is None:
        raise _invalid("it does not begin with a manifest")
    data = member.data(_LONGEST_MANIFEST)
    if hashlib.sha256(data).hexdigest() != named[1]:
        raise _invalid("its manifest is damaged")
    try:
        facts = json.loads(data)
        sort, version = facts.pop("format"), facts.pop("version")
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        raise _invalid("its manifest cannot be read") from None
    if sort != _FORMAT or not isinstance(version, int):
        raise _invalid("its manifest is of another sort")
    if version > VERSION:
        raise FormatUnsupported(
            f"the backup is of format {version}, this memfs knows up to {VERSION}", hint="use a newer memfs"
        )
    try:
        return _sound(BackupManifest(**facts))
    except TypeError:
        raise _invalid("its manifest is of another shape") from None


def _sound(found: BackupManifest) -> BackupManifest:
    """Refuse a manifest whose values are not what they should be: nothing in it was checked by anybody before."""
    texts = (found.created, found.workspace, found.origin, found.prefix, found.head)
    tables = (found.refs, found.parts, found.files)
    right = (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(table, dict) for table in tables)
        and all(_is_commit(value) for value in (*found.refs.values(), *found.shallow))
        and all(map(_is_digest, (*found.parts.values(), *found.files.values())))
        and all(_is_number(number) for number in (*found.outdated, found.unpacked, found.waiting))
        and all(isinstance(sentence, str) for sentence in found.left_out)
        and isinstance(found.whole, bool)
    )
    if not right:
        raise _invalid("its manifest is of another shape")
    for name in (*found.parts, *found.files, *([found.prefix] if found.prefix else ())):
        if ".git" in check_name(name).casefold().split("/"):
            raise _invalid(f"the name {name!a} leads into a repository")
    _no_folder_is_a_file(found.files)
    if not found.parts.keys() <= {FILES, HISTORY} | {name for name in found.parts if name.startswith(STATE)}:
        raise _invalid("it names parts that no backup has")
    if FILES not in found.parts or bool(found.refs) != (HISTORY in found.parts):
        raise _invalid("a part is missing")
    return replace(
        found,
        parts={name: (size, digest) for name, (size, digest) in found.parts.items()},
        files={name: (size, digest) for name, (size, digest) in found.files.items()},
        shallow=tuple(found.shallow),
        outdated=tuple(found.outdated),
        left_out=tuple(found.left_out),
    )


def _no_folder_is_a_file(files: Mapping[str, Digest]) -> None:
    for path in files:
        folder = path.rpartition("/")[0]
        while folder:
            if folder in files or path.count("/") > _DEEP:
                raise _invalid(f"the name {path!a} cannot be a file's")
            folder = folder.rpartition("/")[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60


def _is_digest(value: Any) -> bool:
    right = isinstance(value, list) and len(value) == 2 and _is_number(value[0]) and isinstance(value[1], str)
    return right and _HEX.fullmatch(value[1]) is not None


def _is_commit(value: Any) -> bool:
    return isinstance(value, str) and _COMMIT.fullmatch(value) is not None


def _from(fd: int, path: Path) -> Read:
    def read(size: int) -> bytes:
        with io.operation("read", path):
            return os.read(fd, min(size, _CHUNK))

    return read


def _unpacked(chunks: Iterator[bytes], limit: int) -> Read:
    """Read what was compressed; never more than ``limit`` bytes, and never more than a chunk at once in memory."""
    packed = zlib.decompressobj(_GZIP)
    room, kept = limit, b""

    def read(size: int) -> bytes:
        nonlocal room, kept
        data = b""
        while not data and not packed.eof:
            fresh = kept or next(chunks, b"")
            try:
                data = packed.decompress(fresh, min(size, room + 1))
            except zlib.error:
                raise _invalid("its files cannot be unpacked") from None
            kept = packed.unconsumed_tail
            if not (fresh or data or packed.eof):
                raise _invalid("its files are cut short")
        room -= len(data)
        if room < 0:
            raise _invalid("its files take more room than it says")
        if packed.eof and (packed.unused_data or kept or next(chunks, b"")):
            raise _invalid("something follows its files")
        return data

    return read


def prove_history(chunks: Iterator[bytes], history: RepositorySnapshot, folder: Path) -> None:
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
            io.remove_all(folder)


def prove(backup: Path) -> BackupManifest:
    """Read a whole backup, take its history on trial, and return its manifest.

    Raises:
        BackupInvalid, FormatUnsupported, StorageIO: see ``memfs.admin.backup_file.reading``.
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


def snapshot_of(manifest: BackupManifest) -> RepositorySnapshot:
    """Where the repository was, as the manifest says."""
    return RepositorySnapshot(head=manifest.head, refs=manifest.refs, shallow=tuple(manifest.shallow))


def untakable(error: HistoryError) -> BackupInvalid:
    """The error for a backup whose files are whole and whose history is not."""
    return BackupInvalid(
        f"its history cannot be taken: {error.message}",
        hint="use another backup, or take the files alone: 'memfs admin backup restore FILE FOLDER --without-history'",
    )


def _scratch() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="memfs-proof-")
    except OSError as error:
        raise StorageIO(f"there is no place to try the history: {error}", hint="set TMPDIR to a folder") from error
