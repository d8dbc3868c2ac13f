"""Write and read checkpoints: the manifest, the payload, and the proof that both are whole.

A checkpoint is self-contained: digests of payload and manifest prove every byte, and one wrong bit makes it invalid.
``pack`` returns once the file is durable.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.config_names import CONFIGURATION, SYSTEM_CONFIG
from memfs.errors import CheckpointInvalid, ContentError, CorruptRecord, HistoryError, MemfsError
from memfs.format import json_text
from memfs.fs import io, zstd
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.scan import ScanEntry
from memfs.fs.tar import Read, TarMember, TreePacker, digest_of, members
from memfs.fs.workspace_location import is_own
from memfs.model.state_paths import AGGREGATES, ITERATIONS, PAYLOAD, document_kind, iteration_of
from memfs.model.time import format_time, parse_time
from memfs.state.recovery_points import (
    MEMBER,
    TASKS,
    Points,
    ResumePoint,
    at,
    finished,
    is_small,
    latest_of,
    moment_of,
    newest_update,
    object_in,
    said_in,
    updates_in,
)
from memfs.store import Store, sidecars
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.sidecars import SIDECAR_LIMIT, holds_reference

if TYPE_CHECKING:
    from memfs.state.archives import Archives


FORMAT = 1
_ID = re.compile(r"ckpt_(\d{8})_(\d{4})(?:_(\d{1,6}))?")
_HEX = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1 << 60
_MINUTE = "%Y%m%d%H%M"
_MOST_TURNS = 999_999
_NEVER = datetime.min.replace(tzinfo=UTC)
_REMEDY = "'memfs state checkpoint list' shows the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointManifest:
    """What a checkpoint says of itself.

    Attributes:
        id: its name.
        created: the moment it shows, ISO 8601.
        reason: why it was made.
        iteration: the newest iteration in it, None where there was none.
        files, bytes: how many documents there are in it, and their bytes.
        unpacked: bytes of the archive in the payload.
        payload_bytes, payload_sha256: of ``state.tar.zst``.
        revision: the last commit at that moment, "" where there was none.
        left_out: what could not be taken along, and why.
    """

    id: str
    created: str
    reason: str = ""
    iteration: int | None = None
    files: int
    bytes: int
    unpacked: int
    payload_bytes: int
    payload_sha256: str
    revision: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def timestamp(self) -> datetime:
        """The moment it shows."""
        return parse_time(self.created)


def encode(manifest: CheckpointManifest) -> bytes:
    """The bytes of the file, always the same ones."""
    facts: dict[str, Any] = {**asdict(manifest), "left_out": list(manifest.left_out)}
    size, digest = facts.pop("payload_bytes"), facts.pop("payload_sha256")
    values = {"format": FORMAT, **facts, "payload": {"file": PAYLOAD, "bytes": size, "sha256": digest}}
    return json_text.document({**values, "sha256": _digest(values)}).encode("utf-8")


def decode(data: bytes, checkpoint: str) -> CheckpointManifest:
    """The manifest in a file's bytes; one bit that is not as it was written makes it invalid.

    Args:
        checkpoint: the id by which its folder is named.

    Raises:
        CheckpointInvalid: it is damaged, of a newer format, or another checkpoint's.
    """
    try:
        values = json_text.load(data.decode("utf-8"))
        found = _manifest(values)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise invalid(checkpoint, "its manifest cannot be read") from None
    if values["format"] != FORMAT:
        raise invalid(checkpoint, f"its format is {values['format']!a}, this memfs knows {FORMAT}")
    if encode(found) != data:
        raise invalid(checkpoint, "its manifest is damaged")
    if found.id != checkpoint:
        raise invalid(checkpoint, f"its manifest is that of {found.id!a}")
    return found


def _manifest(values: Any) -> CheckpointManifest:
    payload = values["payload"]
    found = CheckpointManifest(
        **{name: values[name] for name in ("id", "created", "reason", "iteration", "files", "bytes", "unpacked")},
        payload_bytes=payload["bytes"],
        payload_sha256=payload["sha256"],
        revision=values["revision"],
        left_out=tuple(values["left_out"]),
    )
    numbers = (found.files, found.bytes, found.unpacked, found.payload_bytes, found.iteration or 0)
    if not all(type(number) is int and 0 <= number < _LARGEST for number in numbers):
        raise ValueError("numbers")
    if not _ID.fullmatch(found.id) or not _HEX.fullmatch(found.payload_sha256):
        raise ValueError("names")
    parse_time(found.created)
    return found


def _digest(values: dict[str, Any]) -> str:
    text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# -- ids ----------------------------------------------------------------------------------------------------------
def next_id(moment: datetime, known: Iterable[str], *, among_clones: bool = False) -> str:
    """The id of a new checkpoint, later than all that are known, whatever the clock says meanwhile.

    Args:
        moment: when it was taken; its minute counts unless a known one is later.
        known: the ids of all there are, and the last one that was given.
        among_clones: other clones make some, too: a payload stays where it was made, and one id of two clones would
            leave one of them with a manifest that is not its own; so the turn is hardly ever theirs.
    """
    minute, turn = f"{moment.astimezone(UTC):%Y%m%d%H%M}", 0
    last = max((order(one) for one in known if minute_of(one) > _NEVER), default=(minute, 0))
    if last >= (minute, 0):
        minute, turn = last
    turn = max(turn + 1, moment.second * 10_000 + 2 + secrets.randbelow(9_998) if among_clones else 1)
    if turn > _MOST_TURNS:
        minute, turn = f"{_moment(minute) + timedelta(minutes=1):{_MINUTE}}", 1
    return f"ckpt_{minute[:8]}_{minute[8:]}" + (f"_{turn}" if turn > 1 else "")


def is_id(text: object) -> bool:
    """Whether something has the form of an id."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def order(checkpoint: str) -> tuple[str, int]:
    """What sorts ids as they were given: by minute and turn, as numbers."""
    match = _ID.fullmatch(checkpoint)
    return (match[1] + match[2], int(match[3] or 1)) if match else ("", 0)


def minute_of(checkpoint: str) -> datetime:
    """The minute that an id names; the earliest time there is where it names none."""
    try:
        return _moment(order(checkpoint)[0])
    except ValueError:
        return _NEVER


def _moment(minute: str) -> datetime:
    return datetime.strptime(minute, _MINUTE).replace(tzinfo=UTC)


def invalid(checkpoint: str, reason: str, hint: str = _REMEDY) -> CheckpointInvalid:
    """The error for a checkpoint that cannot be used."""
    return CheckpointInvalid(f"the checkpoint {checkpoint} cannot be used: {reason}", field=checkpoint, hint=hint)


def reason_of(error: CheckpointInvalid) -> str:
    """Why a checkpoint cannot be used, without its name."""
    return error.message.partition("cannot be used: ")[2] or error.message


@dataclass(frozen=True, slots=True)
class ArchivedWork:
    """What archives hold.

    Attributes:
        stamp: changes when they do.
        paths: of their documents.
        closed: the iterations that they had closed.
        said: what was said last of each part of ``checkpoint_data`` in their updates.
    """

    stamp: Mapping[str, str]
    paths: frozenset[str]
    closed: frozenset[int]
    said: Mapping[tuple[str, ...], ResumePoint]

    @classmethod
    def of(cls, archives: Archives) -> ArchivedWork:
        """As things are at present."""
        stamp, paths = archives.stamp(), archived_paths(archives)
        said = latest_of(one for path in updates_in(paths) for one in said_in(path, _update(archives, path)))
        return cls(stamp, paths, frozenset(archives.iterations()), said)


def archived_paths(archives: Archives) -> frozenset[str]:
    """The documents in archives; one whose index is damaged is left out: verifying archives names it."""
    paths: set[str] = set()
    for name in archives.stamp():
        with suppress(CorruptRecord, FileNotFoundError):
            paths.update(one.path for one in archives.index(name).members if document_kind(one.path))
    return frozenset(paths)


def _update(archives: Archives, path: str) -> Mapping[str, Any]:
    """A state update in an archive; empty where it cannot be read whole."""
    with suppress(CorruptRecord, FileNotFoundError):
        data = archives.read(path)
        if not holds_reference(data):
            return object_in(data)
    return {}


SUMS = "SHA256SUMS"
FOLDERS = (CONFIGURATION, f"{CONTENT}/context", AGGREGATES, ITERATIONS)
_LEVEL = 3
_CHUNK = 1 << 18


def pack(
    store: Store, parts: Parts, target: Path, update: Mapping[str, Any] | None, archives: Archives
) -> CheckpointManifest:
    """Write the state as it is at one moment into a new file, durable on return; its manifest has no id yet.

    Args:
        update: the state update whose ``checkpoint_data`` counts; None for the latest in the state.
        archives: what they hold is reported as work that is done.

    Raises:
        StorageIO, LockTimeout: it could not be written.
    """
    fd = io.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        packer = _Packer(parts, fd, str(target))
        with parts.tree.holding_folders():
            for entry in _entries(parts, packer.left_out):
                packer.add(entry.path)
        archived = ArchivedWork.of(archives)  # before the writers wait: what is unchanged is not read again
        with store.standing_still("checkpoint"), parts.tree.holding_folders():
            created = parts.clock()
            packer.left_out.clear()
            packer.catch_up(_entries(parts, packer.left_out))
            if archives.stamp() != archived.stamp:
                archived = ArchivedWork.of(archives)
            summary = _summary(parts, packer, update, archives, archived)
            revision = _revision(parts)
        packer.finish(summary)
        io.fsync(fd, str(target))
        _forget_cached(fd)
    finally:
        os.close(fd)
    files = packer.files
    return CheckpointManifest(
        id="",
        created=format_time(created),
        iteration=max((number for path in files if (number := iteration_of(path)) is not None), default=None),
        files=len(files),
        bytes=sum(size for size, _ in files.values()),
        unpacked=packer.tar.size,
        payload_bytes=packer.written,
        payload_sha256=packer.digest.hexdigest(),
        revision=revision,
        left_out=tuple(f"{path}: {reason}" for path, reason in sorted(packer.left_out.items())),
    )


# -- what belongs to a state --------------------------------------------------------------------------------------
def _entries(parts: Parts, left_out: dict[str, str]) -> list[ScanEntry]:
    """The newest iteration first, what belongs to none before them; what is no file is named in ``left_out``."""
    found = []
    for folder in FOLDERS:
        for entry in parts.seen.scan(folder, hidden=True):
            if is_temporary(entry.path.rpartition("/")[2]):
                continue
            if entry.regular and "\n" not in entry.path:
                found.append(entry)
            else:
                left_out[entry.path] = entry.reason or "not a regular file with a plain name"

    def place(entry: ScanEntry) -> tuple[int, str]:
        number = iteration_of(entry.path)
        return (-(1 << 60) if number is None else -number, entry.path)

    return sorted(found, key=place)


def _summary(
    parts: Parts,
    packer: _Packer,
    update: Mapping[str, Any] | None,
    archives: Archives,
    archived: ArchivedWork,
) -> dict[str, Any]:
    paths = packer.files
    latest = newest_update(paths)
    chosen: dict[str, Any] = {"values": update} if update is not None else {}
    if update is None and latest:
        data = parts.seen.read(latest, READ_LIMIT).data
        chosen = {"path": latest, **({"values": object_in(data)} if is_small(data) else {})}
    elif update is None and (latest := newest_update(archived.paths)) and (found := _update(archives, latest)):
        chosen = {"values": found}
    said = latest_of((*archived.said.values(), *packer.points.latest(paths.keys()).values()))
    said |= {one.field: one for one in said_in("", update or {})}
    return packer.points.summary(
        paths.keys(), chosen, said.values(), _finished(parts, said.get(TASKS), paths), _configuration(parts),
        archived.paths, archived.closed,
    )  # fmt: skip


def _finished(parts: Parts, said: ResumePoint | None, paths: Iterable[str]) -> list[int]:
    """Which tasks in flight had their final output after the update that names them; a given one names them now."""
    moment = moment_of(said.path) if said is not None else None
    if said is None or moment is None:
        return []

    def read(path: str) -> bytes:
        return parts.seen.read(path, READ_LIMIT).data

    tasks = said.value if said.small else at(object_in(read(said.path)), said.field)
    return finished(tasks if isinstance(tasks, list) else [], paths, read, after=moment)


def _configuration(parts: Parts) -> dict[str, Any]:
    try:
        return object_in(parts.seen.read(SYSTEM_CONFIG, READ_LIMIT).data)
    except (FileNotFoundError, MemfsError):
        return {}


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
class _Packer(TreePacker):
    """Writes the archive as files are added to it, and notes what they say for a recovery."""

    def __init__(self, parts: Parts, fd: int, path: str) -> None:
        self._compress = zstd.open_writer(self._put, level=_LEVEL, threads=os.cpu_count() or 1)
        super().__init__(parts.tree, self._compress.write)
        self.points = Points()
        self.digest = hashlib.sha256()
        self.written = 0
        self._parts = parts
        self._fd, self._path = fd, path
        self._held = set(parts.secondary.held()) if parts.secondary is not None else set()

    def add(self, path: str) -> bool:
        """As for any tree; what lies in the secondary location is taken from there."""
        if path not in self._held:
            return super().add(path)
        try:
            data = self._parts.seen.read(path, READ_LIMIT).data
        except FileNotFoundError:
            return True
        except MemfsError as error:
            self.left_out[path] = error.message
            return True
        self.points.note(path, data)
        return self._pack(path, [data], len(data))

    def _chunks(self, fd: int, size: int, path: str) -> Iterable[bytes]:
        chunks = super()._chunks(fd, size, path)
        if size > READ_LIMIT:
            return chunks
        data = b"".join(chunks)
        self.points.note(path, data)
        return [data]

    def _holds(self, path: str) -> bool:
        return path not in self._held and super()._holds(path)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, the sums, and the end."""
        for name, data in ((MEMBER, _json(summary)), (SUMS, sums(self.files))):
            self.tar.add(name, [data], len(data))
        self.tar.end()
        self._compress.close()

    def _put(self, data: bytes) -> None:
        self.digest.update(data)
        self.written += len(data)
        io.write_all(self._fd, data, self._path)


def sums(digests: Mapping[str, tuple[int, str]]) -> bytes:
    """The file that ``sha256sum -c`` reads: one line for each document that counts."""
    lines = (f"{digest}  {path}\n" for path, (_, digest) in sorted(digests.items()))
    return "".join(lines).encode("utf-8", "surrogateescape")


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")


_LARGEST_SUMMARY = 1 << 28
_LARGEST_SUMS = 1 << 30
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedCheckpoint:
    """A checkpoint that verified whole.

    Attributes:
        payload, manifest: where its bytes lie, and what it says of itself.
        sums: of each document, its sha256 (raw).
        summary: what ``recover`` tells (``recovery_points.Points.summary``).
    """

    payload: Path
    manifest: CheckpointManifest
    sums: Mapping[str, bytes]
    summary: Mapping[str, Any]


@contextmanager
def opened_members(payload: Path, manifest: CheckpointManifest) -> Iterator[Iterator[TarMember]]:
    """The archive's members; when the block ends without an error, every byte of the payload was right.

    Raises:
        CheckpointInvalid: the payload is not there, or damaged.
    """
    fd = _opened(payload, manifest)
    try:
        source = _Source(fd, payload, manifest)
        unpacked = _LargeReads(zstd.reader(source.read, manifest.unpacked, payload.name))
        try:
            yield members(unpacked.read)
        except CorruptRecord as error:
            if isinstance(error, CheckpointInvalid):
                raise
            raise invalid(manifest.id, f"its payload is damaged: {error.message}") from error
        source.finish()
    finally:
        os.close(fd)


def prove(payload: Path, manifest: CheckpointManifest) -> ProvedCheckpoint:
    """Read a whole payload: its bytes, every document in it, and their names are what they should be.

    Raises:
        CheckpointInvalid: they are not, or the payload is not there.
        StorageIO: it cannot be read.
    """
    found: dict[str, bytes] = {}
    special: dict[str, bytes] = {}
    with opened_members(payload, manifest) as archive:
        for member in archive:
            if member.name in (MEMBER, SUMS):
                limit = _LARGEST_SUMMARY if member.name == MEMBER else _LARGEST_SUMS
                special[member.name] = member.data(min(limit, manifest.unpacked))
                continue
            if not is_own(member.name) or not member.name.startswith(tuple(f"{one}/" for one in FOLDERS)):
                raise invalid(manifest.id, f"it holds {member.name!a}, which is no part of a state")
            found[member.name] = digest_of(member.chunks())
    sums = _sums(special.get(SUMS, b""), manifest)
    wrong = next((path for path, digest in sums.items() if found.get(path) != digest), "")
    if wrong or len(sums) != manifest.files:
        raise invalid(manifest.id, f"the document {wrong!a} in it is damaged" if wrong else "documents are missing")
    summary = _payload_summary(special.get(MEMBER, b""), manifest)
    return ProvedCheckpoint(payload=payload, manifest=manifest, sums=sums, summary=summary)


def fetch(proved: ProvedCheckpoint, names: Collection[str], limit: int) -> dict[str, bytes]:
    """The bytes of a few documents.

    Raises:
        CheckpointInvalid: one is not in it.
    """
    found: dict[str, bytes] = {}
    with opened_members(proved.payload, proved.manifest) as archive:
        for member in archive:
            if member.name in names:
                data = member.data(limit)
                if hashlib.sha256(data).digest() == proved.sums.get(member.name):
                    found[member.name] = data
    for name in names:
        if name not in found:
            raise invalid(proved.manifest.id, f"the document {name!a} is missing")
    return found


def filled(proved: ProvedCheckpoint, value: Any, path: str) -> Any:
    """A value of a document, with what lies in sidecars put in its place."""
    try:
        names = sidecars.named_by(value, path)
        return sidecars.fill(value, path, fetch(proved, names, SIDECAR_LIMIT).__getitem__) if names else value
    except (ContentError, UnicodeDecodeError) as error:
        raise invalid(proved.manifest.id, f"a value of {path!a} in it is damaged") from error


# -- the stream ---------------------------------------------------------------------------------------------------
def _opened(payload: Path, manifest: CheckpointManifest) -> int:
    hint = "copy its folder from where it was made, or use another checkpoint"
    try:
        fd = io.open_file(payload, os.O_RDONLY)
    except FileNotFoundError:
        reason = "its payload is not here: payloads are not in git, a clone has the manifests only"
        raise invalid(manifest.id, reason, hint) from None
    except MemfsError as error:
        raise invalid(manifest.id, f"its payload cannot be read: {error.message}", hint) from error
    facts = os.fstat(fd)
    if stat.S_ISREG(facts.st_mode) and facts.st_size == manifest.payload_bytes:
        return fd
    os.close(fd)
    raise invalid(manifest.id, f"its payload has {facts.st_size:,} bytes, should have {manifest.payload_bytes:,}", hint)


class _Source:
    """The payload's bytes, summed up as they are read."""

    def __init__(self, fd: int, path: Path, manifest: CheckpointManifest) -> None:
        self._fd, self._path, self._manifest = fd, path, manifest
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        with io.operation("read", self._path):
            data = os.read(self._fd, min(size, _CHUNK))
        self._digest.update(data)
        return data

    def finish(self) -> None:
        """Read what is left.

        Raises:
            CheckpointInvalid: the bytes are not those of the manifest.
        """
        while self.read(_CHUNK):
            pass
        if self._digest.hexdigest() != self._manifest.payload_sha256:
            raise invalid(self._manifest.id, "its payload is damaged: the sum of its bytes is another")


class _LargeReads:
    """Unpacked bytes, in larger pieces than a header: the archive is read in many small steps."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._piece = memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._piece:
            self._piece = memoryview(self._read(_CHUNK))
        given, self._piece = self._piece[:size], self._piece[size:]
        return bytes(given)


def _sums(data: bytes, manifest: CheckpointManifest) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise invalid(manifest.id, "its list of sums cannot be read")
        found[match[2]] = bytes.fromhex(match[1])
    return found


def _payload_summary(data: bytes, manifest: CheckpointManifest) -> dict[str, Any]:
    try:
        found = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(found.get(name), dict) for name in ("update", "system_configuration", "agents", "completed_work")
    ):
        raise invalid(manifest.id, "what it says for a recovery cannot be read")
    return found
