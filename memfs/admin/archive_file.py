"""An archive: many documents in one ``tar.zst``, and the index by which a single one is read alone.

The payload is a tar in compressed frames of a few megabytes, which any tar with zstd unpacks; the same documents give
the same bytes. The index holds a digest of itself, and vouches for every frame and document.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.errors import ArchiveInvalid, CorruptRecord
from memfs.fs import io, zstd
from memfs.fs.lock import FileLock
from memfs.fs.tar import END, TarWriter, header, padding
from memfs.fs.workspace_location import is_own
from memfs.model.item import object_id
from memfs.model.state_paths import ARCHIVE, ITERATIONS, document_kind, iteration_of
from memfs.model.time import format_time, parse_time

if TYPE_CHECKING:
    from memfs.store.parts import Parts


FRAME_BYTES = 4 << 20
"""How much goes into one frame: more would be a little smaller, and slower to read one document of."""

_CHUNK = 1 << 18
_HINT = "restore the archive's payload from a backup or another copy"


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
    sha256: str
    blob: str
    frame: int
    offset: int
    facts: Mapping[str, Any] = field(default_factory=dict)


# -- writing ------------------------------------------------------------------------------------------------------
class Packer:
    """Writes a payload, which is complete after ``finish``."""

    def __init__(self, fd: int, path: str, level: int) -> None:
        """``fd`` takes the bytes, ``path`` names it in errors; ``level`` is zstd's, 1 (quick) to 19 (small)."""
        self._fd, self._path = fd, path
        self._level = level
        self._raw: list[bytes] = []
        self._size = 0
        self._digest = hashlib.sha256()
        self.bytes = 0
        self.frames: list[Frame] = []
        self.members: list[ArchiveMember] = []

    @property
    def sha256(self) -> str:
        """Of the payload, once it is complete."""
        return self._digest.hexdigest()

    def add(self, path: str, data: bytes, facts: Mapping[str, Any] | None = None) -> None:
        """Take in one document."""
        head = header(path, len(data))
        if self._size and self._size + len(head) + len(data) > FRAME_BYTES:
            self._end_frame()
        place = (len(self.frames), self._size + len(head))
        self._take(head + data + padding(len(data)))
        digest, blob = hashlib.sha256(data).hexdigest(), object_id("blob", data)
        self._note(path, len(data), digest, blob, place, facts or {})

    def stream(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        """Take in a file of any size, in a frame of its own.

        Raises:
            ArchiveInvalid: it had another size; the payload is of no use then.
        """
        self._end_frame()
        start, writer = self.bytes, zstd.open_writer(self._put, self._level)
        tar = TarWriter(writer.write)
        digest, whole = tar.add(path, chunks, size)
        if not whole:
            raise ArchiveInvalid("the file changed while it was archived", path=path, hint="try again")
        writer.close()
        frame = Frame(offset=start, packed=self.bytes - start, raw=tar.size)
        self._note(path, size, digest, "", (len(self.frames), len(header(path, size))), {})
        self.frames.append(frame)

    def finish(self) -> None:
        """Write what is left, and the end."""
        self._take(END)
        self._end_frame()

    def _take(self, data: bytes) -> None:
        self._raw.append(data)
        self._size += len(data)

    def _note(
        self, path: str, size: int, digest: str, blob: str, place: tuple[int, int], facts: Mapping[str, Any]
    ) -> None:
        frame, offset = place
        self.members.append(
            ArchiveMember(path=path, bytes=size, sha256=digest, blob=blob, frame=frame, offset=offset, facts=facts)
        )

    def _end_frame(self) -> None:
        if not self._size:
            return
        raw, self._raw, self._size = b"".join(self._raw), [], 0
        start = self.bytes
        self._put(zstd.compress(raw, self._level))
        self.frames.append(Frame(offset=start, packed=self.bytes - start, raw=len(raw)))

    def _put(self, data: bytes) -> None:
        self._digest.update(data)
        self.bytes += len(data)
        io.write_all(self._fd, data, self._path)


# -- reading ------------------------------------------------------------------------------------------------------
class Payload:
    """An open payload; reads single documents. May be used from several threads."""

    def __init__(self, fd: int, frames: Sequence[Frame], path: str) -> None:
        """``fd`` is read by position and stays the caller's; ``path`` names it in errors."""
        self._fd = fd
        self._frames = frames
        self._path = path

    def frame(self, number: int) -> Callable[[int], bytes]:
        """What a frame decompresses to, as a function of how many bytes are wanted.

        Raises:
            ArchiveInvalid: there is no such frame.
        """
        if not 0 <= number < len(self._frames):
            raise damaged(f"it has no frame {number}", self._path)
        frame = self._frames[number]
        position, end = frame.offset, frame.offset + frame.packed

        def packed(size: int) -> bytes:
            nonlocal position
            with io.operation("read", self._path):
                data = os.pread(self._fd, min(size, end - position), position) if position < end else b""
            position += len(data)
            return data

        return zstd.reader(packed, frame.raw, self._path)

    def chunks(self, member: ArchiveMember) -> Iterator[bytes]:
        """The bytes of one document, whose checksum is known to be right once all of them were given.

        Raises:
            ArchiveInvalid: the payload is damaged, cut off, or holds something else there.
        """
        digest, left = hashlib.sha256(), member.bytes
        try:
            read = self.frame(member.frame)
            _skip(read, member.offset)
            while left and (data := read(min(left, _CHUNK))):
                digest.update(data)
                left -= len(data)
                yield data
        except CorruptRecord as error:
            raise damaged(error.message, self._path) from None
        if left or digest.hexdigest() != member.sha256:
            raise damaged(f"{member.path} is not what was archived", self._path)


def _skip(read: Callable[[int], bytes], size: int) -> None:
    while size > 0 and (data := read(min(size, _CHUNK))):
        size -= len(data)


def verify(fd: int, frames: Sequence[Frame], members: Iterable[ArchiveMember], path: str) -> dict[str, str]:
    """Read a payload from its beginning to its end; return what is wrong, by document ("" for the whole).

    Every byte counts: what is between the documents has to be what ``Packer`` writes there.
    """
    wrong: dict[str, str] = {}
    by_frame: dict[int, list[ArchiveMember]] = {}
    for member in members:
        by_frame.setdefault(member.frame, []).append(member)
    payload = Payload(fd, frames, path)
    position = 0
    for number, frame in enumerate(frames):
        if frame.offset != position:
            wrong[""] = f"frame {number} is not where the index says"
        position += frame.packed
        inside = sorted(by_frame.pop(number, ()), key=lambda member: member.offset)
        wrong |= _verify_frame(payload, number, inside, last=number == len(frames) - 1)
    with io.operation("stat", path):
        size = os.fstat(fd).st_size
    if size != position:
        wrong[""] = f"it has {size:,} bytes, written were {position:,}"
    return wrong | {member.path: "the payload has no such frame" for rest in by_frame.values() for member in rest}


def _verify_frame(payload: Payload, number: int, members: Sequence[ArchiveMember], last: bool) -> dict[str, str]:
    try:
        read = payload.frame(number)
        for member in members:
            head = header(member.path, member.bytes)
            if read(len(head)) != head or not _same(read, member):
                return {one.path: "damaged" for one in members}
        if read(len(END)) != (END if last else b"") or read(1):
            return {"": f"something follows the last document of frame {number}"}
    except CorruptRecord as error:
        return {member.path: error.message for member in members} or {"": error.message}
    return {}


def _same(read: Callable[[int], bytes], member: ArchiveMember) -> bool:
    digest, left = hashlib.sha256(), member.bytes
    while left and (data := read(min(left, _CHUNK))):
        digest.update(data)
        left -= len(data)
    filler = padding(member.bytes)
    return not left and digest.hexdigest() == member.sha256 and read(len(filler)) == filler


def damaged(reason: str, path: str) -> ArchiveInvalid:
    """The error for an archive that cannot give back what it should hold."""
    return ArchiveInvalid(f"the archive is damaged: {reason}", path=path, hint=_HINT)


FORMAT = 1
INDEX_SUFFIX = ".index.json"
PAYLOAD_SUFFIX = ".tar.zst"
INDEX_LIMIT = 256 << 20

_NAME = re.compile(r"[0-9]{4}-[0-9]{2}(?:_[0-9]{1,6})?")
_SHA = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"(?:[0-9a-f]{40})?")
_LARGEST = 1 << 50
_SEAL = b',\n  "sha256": "'


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

    name: str
    created: datetime
    closed: Mapping[int, datetime]
    bytes: int
    sha256: str
    frames: tuple[Frame, ...]
    members: tuple[ArchiveMember, ...]
    unpacked: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def raw(self) -> int:
        """What the documents weigh."""
        return sum(member.bytes for member in self.members)


def archive_lock(parts: Parts) -> FileLock:
    """The lock that is held while iterations move into archives or out of them."""
    return FileLock(parts.repository.state / "archive.lock", home=parts.repository.common_dir)


def index_path(name: str) -> str:
    """Where an archive's index lies."""
    return f"{ARCHIVE}/{name}{INDEX_SUFFIX}"


def payload_path(name: str) -> str:
    """Where an archive's payload lies."""
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
    frames = [[frame.offset, frame.packed, frame.raw] for frame in index.frames]
    members = [
        [one.path.removeprefix(f"{ITERATIONS}/"), one.bytes, one.sha256, one.blob, one.frame, one.offset, _facts(one)]
        for one in index.members
    ]
    text = json.dumps(head, ensure_ascii=False, indent=2)[:-2]
    return _sealed(f'{text},\n  "frames": {_lines(frames)},\n  "documents": {_lines(members)}'.encode())


def _sealed(body: bytes) -> bytes:
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode() + b'"\n}\n'


def _refuse_damaged(data: bytes) -> None:
    body, seal, _ = data.rpartition(_SEAL)
    if not seal or _sealed(body) != data:
        raise ValueError("its bytes are not those that were written")


def _facts(member: ArchiveMember) -> dict[str, Any]:
    """The facts without what the path says already."""
    return {key: value for key, value in member.facts.items() if key not in ("path", "kind", "iteration")}


def _lines(rows: list[list[Any]]) -> str:
    if not rows:
        return "[]"
    return "[\n" + ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n  ]"


def decode(data: bytes, path: str) -> ArchiveIndex:
    """The index in a file.

    Raises:
        ArchiveInvalid: naming the file and what in it is wrong.
    """
    try:
        values = json.loads(data)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        found = _index(values, path)
        _refuse_damaged(data)
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        hint = f"bring it back from history: memfs restore {path} --from HEAD"
        raise ArchiveInvalid(f"this is no sound index of an archive: {reason}", path=path, hint=hint) from None


def _index(values: Mapping[str, Any], path: str) -> ArchiveIndex:
    name = str(values["name"])
    if not is_name(name) or path != index_path(name):
        raise ValueError("its name is not the file's")
    payload = values["payload"]
    frames = tuple(_frame(row) for row in values["frames"])
    return ArchiveIndex(
        name=name,
        created=parse_time(values["created"]),
        closed=_moments(values["iterations"]),
        unpacked=_moments(values.get("unpacked", {})),
        bytes=_size(payload["bytes"]),
        sha256=_matching(_SHA, payload["sha256"]),
        frames=frames,
        members=tuple(_member(row, len(frames)) for row in values["documents"]),
    )


def _moments(values: Mapping[str, Any]) -> dict[int, datetime]:
    return {_size(int(number)): parse_time(moment) for number, moment in values.items()}


def _frame(row: Any) -> Frame:
    offset, packed, raw = map(_size, row)
    return Frame(offset=offset, packed=packed, raw=raw)


def _member(row: Any, frames: int) -> ArchiveMember:
    inside, size, sha, blob, frame, offset, facts = row
    path = f"{ITERATIONS}/{inside}"
    if not is_own(path) or iteration_of(path) is None:
        raise ValueError(f"{inside!a} is no document of an iteration")
    if _size(frame) >= frames or not isinstance(facts, dict):
        raise ValueError(f"what it says of {inside!a} cannot be")
    if facts:
        facts = {**facts, "path": path, "kind": document_kind(path), "iteration": iteration_of(path)}
    return ArchiveMember(
        path=path, bytes=_size(size), sha256=_matching(_SHA, sha), blob=_matching(_BLOB, blob),
        frame=frame, offset=_size(offset), facts=facts,
    )  # fmt: skip


def _size(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
        raise ValueError(f"{value!r} is no size")
    return value


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{value!r} is no checksum")
    return value
