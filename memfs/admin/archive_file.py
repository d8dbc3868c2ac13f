"""An archive: many documents in one ``tar.zst``, and the index by which a single one is read alone.

The payload is a tar in compressed frames of a few megabytes, which any tar with zstd unpacks; the same documents give
the same bytes. The index holds a digest of itself, and vouches for every frame and document.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from memfs.dataclass import dataclass, field
from memfs.errors import ArchiveInvalid, CorruptRecord
from memfs.fs import archive, io
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import is_own
from memfs.model.state_paths import ARCHIVE, ITERATIONS, document_kind, iteration_of
from memfs.model.time import format_time

if TYPE_CHECKING:
    from memfs.store.parts import Parts


FRAME_BYTES = 4 << 20
"""How much goes into one frame: more would be a little smaller, and slower to read one document of."""

_FRAME_FILES = 1 << 20
_LARGEST_KEPT = 2 * FRAME_BYTES
_HINT = "restore the archive's payload from a backup or another copy"
MISSING = "bring the payload here from a backup or from where the archive was made, or fetch the whole history"

FORMAT = 1
INDEX_SUFFIX = ".index.json"
PAYLOAD_SUFFIX = ".tar.zst"
INDEX_LIMIT = 256 << 20

_NAME = re.compile(r"[0-9]{4}-[0-9]{2}(?:_[0-9]{1,6})?")
_BLOB = re.compile(r"(?:[0-9a-f]{40})?")
_SEAL = b',\n  "sha256": "'


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One piece of a payload that can be decompressed alone: where it begins, its length there, and its content's."""

    offset: int
    packed: int
    raw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMember:
    """One archived document.

    Attributes:
        path: where it lay below the workspace, and where unpacking puts it.
        bytes, sha256: of the document as it was.
        blob: the git name of these bytes, under which history has them if it ever had them.
        frame, offset: which frame of the payload holds it, and where in what that decompresses to.
        facts: its row for the index of states; empty for what is no document.
    """

    path: str
    bytes: int
    sha256: archive.Sha256
    blob: Annotated[str, _BLOB]
    frame: int
    offset: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> archive.Digest:
        """Of the document."""
        return self.bytes, self.sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveIndex:
    """The index of one archive.

    Attributes:
        name: the month in which its iterations were closed, with a number where that month has several archives.
        created: when it was made.
        closed: when each iteration in it was closed, by number.
        unpacked: when an iteration was brought back into the tree, by number; it is not due again for a while then.
        bytes, sha256: of the payload.
    """

    name: Annotated[str, _NAME]
    created: datetime
    closed: Mapping[int, datetime]
    bytes: int
    sha256: archive.Sha256
    frames: tuple[Frame, ...]
    members: tuple[ArchiveMember, ...]
    unpacked: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def digest(self) -> archive.Digest:
        """Of the payload."""
        return self.bytes, self.sha256

    @property
    def raw(self) -> int:
        """What the documents weigh."""
        return sum(member.bytes for member in self.members)


@dataclass(frozen=True, slots=True)
class ArchiveInput:
    """A file that is to be archived: its bytes in pieces, and what ``ArchiveMember`` says of it besides."""

    path: str
    size: int
    chunks: Iterable[bytes]
    blob: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class ArchivePacker:
    """Packs a payload; what the index says of it is complete once all of the payload was taken."""

    def __init__(self, level: int) -> None:
        """``level`` is zstd's, 1 (quick) to 19 (small)."""
        self._level = level
        self._size = 0
        self.frames: list[Frame] = []
        self.members: list[ArchiveMember] = []

    def payload(self, files: Iterable[ArchiveInput]) -> Iterator[bytes]:
        """The payload's bytes, in pieces.

        Raises:
            ArchiveInvalid: a file had another size than it says; the payload is of no use then.
        """
        for some in archive.batches(files, _room, FRAME_BYTES, _FRAME_FILES):
            yield from self._frame(self._tar(some), sum(map(_room, some)))
        yield from self._frame([archive.END], len(archive.END))

    def _frame(self, content: Iterable[bytes], raw: int) -> Iterator[bytes]:
        start = self._size
        for data in archive.compressed(content, self._level):
            self._size += len(data)
            yield data
        self.frames.append(Frame(offset=start, packed=self._size - start, raw=raw))

    def _tar(self, files: Iterable[ArchiveInput]) -> Iterator[bytes]:
        start = 0
        for file in files:
            offset, hashed = start + len(archive.header(file.path, file.size)), archive.DigestStream(file.chunks)
            start += _room(file)
            yield from archive.tar_file(file.path, hashed, file.size)
            size, digest = hashed.digest
            if size != file.size:
                raise ArchiveInvalid("the file changed while it was archived", path=file.path, hint="try again")
            member = ArchiveMember(
                path=file.path, bytes=size, sha256=digest, blob=file.blob,
                frame=len(self.frames), offset=offset, facts=file.facts,
            )  # fmt: skip
            self.members.append(member)


def _room(file: ArchiveInput) -> int:
    """How many bytes of the tar a file takes: of a small one most are not its own."""
    return len(archive.header(file.path, file.size)) + file.size + -file.size % archive.BLOCK


class Archive:
    """One archive: its index, and what it holds by path. Reads single documents; may be used from several threads."""

    def __init__(self, tree: Tree, index: ArchiveIndex) -> None:
        self.index = index
        self.by_path = {member.path: member for member in index.members}
        self._tree = tree
        self._path = payload_path(index.name)
        self._whole = lru_cache(1)(self._read_frame)  # documents of one iteration are side by side

    @property
    def present(self) -> bool:
        """Whether the payload is here."""
        entry = self._tree.entry(self._path)
        return entry is not None and entry.regular

    def chunks(self, member: ArchiveMember) -> Iterator[bytes]:
        """The bytes of one document; no error at their end says that they are right.

        Raises:
            ArchiveInvalid: the payload is not here, damaged, cut off, or holds something else there.
        """
        frame = self.index.frames[member.frame]
        try:
            if frame.raw <= _LARGEST_KEPT:
                found: Iterable[bytes] = [self._whole(frame)[member.offset : member.offset + member.bytes]]
            else:
                stream = archive.Stream(self._frame(frame))
                for _ in stream.take(member.offset):
                    pass
                found = stream.take(member.bytes)
            yield from archive.verified(found, member.digest, member.path)
        except FileNotFoundError:
            raise ArchiveInvalid("the archive's payload is not here", path=self._path, hint=MISSING) from None
        except CorruptRecord as error:
            raise damaged(error.message, self._path) from None

    def verify(self) -> dict[str, str]:
        """Read the payload from its beginning to its end; return what is wrong, by document ("" for the whole).

        Raises:
            FileNotFoundError: it is not here.
        """
        self._whole.cache_clear()
        found = archive.digest_of(archive.file_chunks(self._tree, self._path))
        wrong = {member.path: reason for member in self.index.members if (reason := self._damage(member))}
        if not wrong and found != self.index.digest:
            wrong[""] = "the payload's bytes are not those that were written"
        return wrong

    def _damage(self, member: ArchiveMember) -> str:
        try:
            for _ in self.chunks(member):
                pass
        except ArchiveInvalid as error:
            return error.message
        return ""

    def _read_frame(self, frame: Frame) -> bytes:
        return b"".join(self._frame(frame))

    def _frame(self, frame: Frame) -> Iterator[bytes]:
        with io.descriptor(self._tree.open_read(self._path)) as fd:
            os.lseek(fd, min(frame.offset, os.fstat(fd).st_size), os.SEEK_SET)
            yield from archive.decompressed(archive.chunks_of(fd, frame.packed, self._path), frame.raw, self._path)


def damaged(reason: str, path: str) -> ArchiveInvalid:
    """The error for an archive that cannot give back what it should hold."""
    return ArchiveInvalid(f"the archive is damaged: {reason}", path=path, hint=_HINT)


def archive_lock(parts: Parts) -> FileLock:
    """The lock that is held while iterations move into archives or out of them."""
    return FileLock(parts.repository.state / "archive.lock", root=parts.repository.common_dir)


def index_path(name: str) -> str:
    """Where an archive's index is."""
    return f"{ARCHIVE}/{name}{INDEX_SUFFIX}"


def payload_path(name: str) -> str:
    """Where an archive's payload is."""
    return f"{ARCHIVE}/{name}{PAYLOAD_SUFFIX}"


def is_name(name: str) -> bool:
    """Whether an archive can be called so."""
    return _NAME.fullmatch(name) is not None


def encode(index: ArchiveIndex) -> bytes:
    """The file: valid JSON, one line for each frame and document, and at the end the digest of all before it."""
    head = {
        "format": FORMAT,
        "name": index.name,
        "created": format_time(index.created),
        "iterations": {str(number): format_time(moment) for number, moment in sorted(index.closed.items())},
        "unpacked": {str(number): format_time(moment) for number, moment in sorted(index.unpacked.items())},
        "payload": {"file": index.name + PAYLOAD_SUFFIX, "bytes": index.bytes, "sha256": index.sha256},
    }
    frames = [list(astuple(frame)) for frame in index.frames]
    text = json.dumps(head, ensure_ascii=False, indent=2)[:-2]
    return _sealed(
        f'{text},\n  "frames": {_lines(frames)},\n  "documents": {_lines(map(_row, index.members))}'.encode()
    )


def _sealed(body: bytes) -> bytes:
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode() + b'"\n}\n'


def _row(one: ArchiveMember) -> list[Any]:
    """A document's fields in order, its path shortened, its facts without what the path says already."""
    facts = {key: value for key, value in one.facts.items() if key not in ("path", "kind", "iteration")}
    return [one.path.removeprefix(f"{ITERATIONS}/"), one.bytes, one.sha256, one.blob, one.frame, one.offset, facts]


def _lines(rows: Iterable[list[Any]]) -> str:
    lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n  ]" if lines else "[]"


def decode(data: bytes, path: str) -> ArchiveIndex:
    """The index in a file.

    Raises:
        ArchiveInvalid: naming the file and what in it is wrong.
    """
    try:
        values = json.loads(data)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        payload = values["payload"]
        found: ArchiveIndex = archive.decoded(ArchiveIndex, {
            "name": values["name"], "created": values["created"], "closed": values["iterations"],
            "unpacked": values.get("unpacked", {}), "bytes": payload["bytes"], "sha256": payload["sha256"],
            "frames": values["frames"], "members": [_whole(row) for row in values["documents"]],
        })  # fmt: skip
        if path != index_path(found.name):
            raise ValueError("its name is not the file's")
        for member in found.members:
            if member.frame >= len(found.frames):
                raise ValueError(f"what it says of {member.path!a} cannot be")
        body, seal, _ = data.rpartition(_SEAL)
        if not seal or _sealed(body) != data:
            raise ValueError("its bytes are not those that were written")
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        hint = f"bring it back from history: memfs restore {path} --from HEAD"
        raise ArchiveInvalid(f"this is not a valid index of an archive: {reason}", path=path, hint=hint) from None


def _whole(row: Any) -> list[Any]:
    """A document's row with its whole path and all its facts."""
    inside, *others, facts = row
    path = f"{ITERATIONS}/{inside}"
    if not is_own(path) or iteration_of(path) is None:
        raise ValueError(f"{inside!a} is not a document of an iteration")
    entry = {**facts, "path": path, "kind": document_kind(path), "iteration": iteration_of(path)}
    return [path, *others, entry if facts else {}]
