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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from memfs.errors import BackupInvalid, CorruptRecord, FormatUnsupported, HistoryError, MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.archive import Digest, TarMember, check_name, chunks_of, decoded, members, verified
from memfs.git.bundle import RepositorySnapshot, read_bundle
from memfs.git.repository import Repository

FILES = "files.tar.gz"
HISTORY = "history.bundle"
STATE = "state/"
FALLBACK = "fallback"
VERSION = 1
GZIP = 31
_FORMAT = "memfs-backup"
_LONGEST_MANIFEST = 1 << 30
_PIECE = 1 << 18
_MANIFEST = re.compile(r"manifest-([0-9a-f]{64})\.json")
_DEEP = 64

Commit = Annotated[str, re.compile(r"[0-9a-f]{40}")]
Contents = Iterator[tuple[str, Iterator[bytes]]]
"""Names with the bytes, which are right if no error comes at their end."""


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
    refs: Mapping[str, Commit] = field(default_factory=dict)
    shallow: tuple[Commit, ...] = ()
    parts: Mapping[str, Digest]
    files: Mapping[str, Digest]
    unpacked: int
    outdated: tuple[int, ...] = ()
    waiting: int = 0
    left_out: tuple[str, ...] = ()
    whole: bool = True

    def encode(self) -> bytes:
        """As it is in the archive."""
        facts = {"format": _FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(facts, separators=(",", ":"), sort_keys=True).encode("ascii")


def manifest_name(data: bytes) -> str:
    """The name under which a manifest's bytes stand in the archive."""
    return f"manifest-{hashlib.sha256(data).hexdigest()}.json"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BackupManifest, Contents]]:
    """A backup's manifest and its parts, each of them once and in the manifest's order.

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
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise _invalid("it is no file")
        archive = members(chunks_of(fd, found.st_size, str(path)))
        first = next(archive, None)
        if first is None:
            raise _invalid("it is empty")
        manifest = _manifest(first)
        yield manifest, _parts(manifest, archive)
    except BackupInvalid as error:
        raise error.located(str(path)) from error.__cause__
    except CorruptRecord as error:
        raise _invalid(error.message).located(str(path)) from error
    finally:
        os.close(fd)


def _parts(manifest: BackupManifest, archive: Iterator[TarMember]) -> Contents:
    for name, digest in manifest.parts.items():
        member = next(archive, None)
        if member is None or (member.name, member.size) != (name, digest[0]):
            raise _invalid(f"the part {name!a} is missing")
        yield from _checked(name, member, digest)
    if next(archive, None) is not None:
        raise _invalid("it holds more than its manifest names")


def _checked(name: str, member: TarMember, digest: Digest) -> Contents:
    chunks = verified(member.chunks(), digest, name)
    yield name, chunks
    for _ in chunks:
        pass


def files_of(manifest: BackupManifest, chunks: Iterable[bytes]) -> Contents:
    """The workspace's files in a part, each once.

    Raises:
        BackupInvalid: a file is missing or unknown, or there are more bytes than the manifest says.
        CorruptRecord: a file is damaged.
    """
    awaited = dict(manifest.files)
    outdated = frozenset(manifest.outdated)
    for number, member in enumerate(members(_unpacked(chunks, manifest.unpacked))):
        if number in outdated:
            continue
        digest = awaited.pop(member.name, None)
        if digest is None:
            raise _invalid(f"the file {member.name!a} is not one of those it names")
        yield from _checked(member.name, member, digest)
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
        found: BackupManifest = decoded(BackupManifest, facts)
    except ValueError as error:
        raise _invalid(f"its manifest is of another shape: {error}") from None
    _refuse_names(found)
    return found


def _refuse_names(found: BackupManifest) -> None:
    """Refuse a manifest whose names are not what they should be: nobody checked any of them before."""
    for name in (*found.parts, *found.files, *([found.prefix] if found.prefix else ())):
        if ".git" in check_name(name).casefold().split("/"):
            raise _invalid(f"the name {name!a} leads into a repository")
    for path in found.files:
        folder = path.rpartition("/")[0]
        while folder:
            if folder in found.files or path.count("/") > _DEEP:
                raise _invalid(f"the name {path!a} cannot be a file's")
            folder = folder.rpartition("/")[0]
    if any(name not in (FILES, HISTORY) and not name.startswith(STATE) for name in found.parts):
        raise _invalid("it names parts that no backup has")
    if FILES not in found.parts or bool(found.refs) != (HISTORY in found.parts):
        raise _invalid("a part is missing")


def _unpacked(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """What was compressed; never more than ``limit`` bytes, and never more than a piece of them at once."""
    packed, given = zlib.decompressobj(GZIP), 0
    for fresh in chunks:
        rest, data = fresh, b""
        while rest or (len(data) == _PIECE and not packed.eof):
            if packed.eof:
                raise _invalid("something follows its files")
            try:
                data = packed.decompress(rest, _PIECE)
            except zlib.error:
                raise _invalid("its files cannot be unpacked") from None
            rest = packed.unconsumed_tail or packed.unused_data
            given += len(data)
            if given > limit:
                raise _invalid("its files take more room than it says")
            yield data
    if not packed.eof:
        raise _invalid("its files are cut short")


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


def verify(path: Path) -> BackupManifest:
    """Read a whole backup: every part and every file in it is what the manifest says.

    Raises:
        BackupInvalid, FormatUnsupported, StorageIO: see ``opened``.
    """
    with opened(path) as (manifest, parts):
        for name, chunks in parts:
            for _ in files_of(manifest, chunks) if name == FILES else ():
                pass
    return manifest


def prove(backup: Path) -> BackupManifest:
    """Read a whole backup, take its history on trial, and return its manifest.

    Raises:
        BackupInvalid, FormatUnsupported, StorageIO: see ``opened``.
    """
    manifest = verify(backup)
    if manifest.refs:
        with _scratch() as place, opened(backup) as (_, parts):
            for name, chunks in parts:
                if name == HISTORY:
                    try:
                        prove_history(chunks, snapshot_of(manifest), Path(place) / "history")
                    except HistoryError as error:
                        raise untakable(error) from error
    return manifest


def snapshot_of(manifest: BackupManifest) -> RepositorySnapshot:
    """Where the repository was, as the manifest says."""
    return RepositorySnapshot(head=manifest.head, refs=manifest.refs, shallow=manifest.shallow)


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


def _invalid(reason: str) -> BackupInvalid:
    return BackupInvalid(f"this is no sound backup: {reason}", hint="use another backup")
