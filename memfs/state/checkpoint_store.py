"""Write and read checkpoints: the manifest, the payload, and the proof that both are whole.

A checkpoint is self-contained: digests of payload and manifest prove every byte, and one wrong bit makes it invalid.
One that is damaged or incomplete is listed with its reason, and never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from memfs.config_names import CONFIGURATION
from memfs.dataclass import dataclass, field, replace
from memfs.errors import CheckpointInvalid, ContentError, CorruptRecord, MemfsError
from memfs.format import json_text
from memfs.fs import io
from memfs.fs.archive import Sha256, TarMember, chunks_of, decoded, decompressed, digest_of, members, verified
from memfs.fs.lock import FileLock
from memfs.fs.tree import View
from memfs.fs.workspace_location import is_own
from memfs.model import Problem
from memfs.model.state_paths import AGGREGATES, CHECKPOINTS, ITERATIONS, MANIFEST, PAYLOAD, manifest_path, payload_path
from memfs.model.time import EARLIEST, format_time
from memfs.store import sidecars
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.sidecars import SIDECAR_LIMIT

FORMAT = 1
_ID = re.compile(r"ckpt_(\d{8})_(\d{4})(?:_(\d{1,6}))?")
_MINUTE = "%Y%m%d%H%M"
_MOST_TURNS = 999_999
_REMEDY = "'memfs state checkpoint list' shows the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint as its manifest describes it.

    Attributes:
        id: ``ckpt_YYYYMMDD_HHMM``, with ``_2`` and so on for further ones of the same minute.
        timestamp: the moment it shows.
        reason: why it was made: ``asked``, ``update``, ``interval``, or what the caller said.
        iteration: the newest iteration in it, None where there was none.
        files, bytes: how many documents, and what they weigh unpacked.
        unpacked: what the tar in the payload weighs.
        payload_bytes: what the payload weighs.
        sha256: of the payload.
        revision: the last commit at that moment, "" where there was none.
        left_out: what could not be taken along, and why.
        present: whether a payload of that size lies beside the manifest; a clone has manifests only.
        problem: why it cannot be used, as far as the manifest and the payload's size tell; "" otherwise.
    """

    id: Annotated[str, _ID]
    timestamp: datetime
    reason: str = ""
    iteration: int | None = None
    files: int = 0
    bytes: int = 0
    unpacked: int = 0
    payload_bytes: int = 0
    sha256: Sha256 = ""
    revision: str = ""
    left_out: tuple[str, ...] = ()
    present: bool = True
    problem: str = ""


def encode(checkpoint: Checkpoint) -> bytes:
    """The bytes of the manifest, always the same ones."""
    values = {
        "format": FORMAT,
        "id": checkpoint.id,
        "created": format_time(checkpoint.timestamp),
        "reason": checkpoint.reason,
        "iteration": checkpoint.iteration,
        "files": checkpoint.files,
        "bytes": checkpoint.bytes,
        "unpacked": checkpoint.unpacked,
        "revision": checkpoint.revision,
        "left_out": list(checkpoint.left_out),
        "payload": {"file": PAYLOAD, "bytes": checkpoint.payload_bytes, "sha256": checkpoint.sha256},
    }
    text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return json_text.document({**values, "sha256": hashlib.sha256(text.encode("ascii")).hexdigest()}).encode("utf-8")


def decode(data: bytes, checkpoint: str) -> Checkpoint:
    """The checkpoint that a manifest's bytes describe; one bit that is not as it was written makes it invalid.

    Args:
        checkpoint: the id by which its folder is named.

    Raises:
        CheckpointInvalid: it is damaged, of a newer format, or another checkpoint's.
    """
    try:
        values = json_text.load(data.decode("utf-8"))
        version, created, payload = (values.pop(name) for name in ("format", "created", "payload"))
        values |= {"timestamp": created, "payload_bytes": payload["bytes"], "sha256": payload["sha256"]}
        found: Checkpoint = decoded(Checkpoint, values)
        whole = encode(found) == data
    except (ValueError, KeyError, TypeError, AttributeError):
        raise invalid(checkpoint, "its manifest cannot be read") from None
    if version != FORMAT:
        raise invalid(checkpoint, f"its format is {version!a}, this memfs knows {FORMAT}")
    if not whole:
        raise invalid(checkpoint, "its manifest is damaged")
    if found.id != checkpoint:
        raise invalid(checkpoint, f"its manifest is that of {found.id!a}")
    return found


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
    last = max((order(one) for one in known if minute_of(one) > EARLIEST), default=(minute, 0))
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
        return EARLIEST


def _moment(minute: str) -> datetime:
    return datetime.strptime(minute, _MINUTE).replace(tzinfo=UTC)


def invalid(checkpoint: str, reason: str, hint: str = _REMEDY) -> CheckpointInvalid:
    """The error for a checkpoint that cannot be used."""
    return CheckpointInvalid(f"the checkpoint {checkpoint} cannot be used: {reason}", field=checkpoint, hint=hint)


def reason_of(error: CheckpointInvalid) -> str:
    """Why a checkpoint cannot be used, without its name."""
    return error.message.partition("cannot be used: ")[2] or error.message


MEMBER, SUMS = "recovery.json", "SHA256SUMS"
FOLDERS = (CONFIGURATION, f"{CONTENT}/context", AGGREGATES, ITERATIONS)


def sums(digests: Mapping[str, tuple[int, str]]) -> bytes:
    """The file that ``sha256sum -c`` reads: one line for each document that counts."""
    lines = (f"{digest}  {path}\n" for path, (_, digest) in sorted(digests.items()))
    return "".join(lines).encode("utf-8", "surrogateescape")


_LARGEST_SUMMARY = 1 << 28
_LARGEST_SUMS = 1 << 30
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedCheckpoint:
    """A checkpoint that verified whole.

    Attributes:
        payload, checkpoint: where its bytes lie, and what its manifest says.
        sums: of each document, its sha256.
        summary: what ``recover`` tells (``state_packer.StatePacker``).
        places: where in the payload, from 0, the documents are that count: one that changed while it was packed is in
            it twice.
    """

    payload: Path
    checkpoint: Checkpoint
    sums: Mapping[str, str]
    summary: Mapping[str, Any]
    places: Collection[int] = field(repr=False)

    @contextmanager
    def documents(self) -> Iterator[Iterator[tuple[str, int, Iterator[bytes]]]]:
        """Path, size and bytes of each document, which are right if no error comes at their end.

        Raises:
            CheckpointInvalid: the payload is not there any more, or damaged by now.
        """
        with opened_members(self.payload, self.checkpoint) as archive:
            yield ((one.name, one.size, self._checked(one)) for n, one in enumerate(archive) if n in self.places)

    def _checked(self, member: TarMember) -> Iterator[bytes]:
        with _damage_named(self.checkpoint):
            yield from verified(member.chunks(), (member.size, self.sums[member.name]), member.name)

    def document(self, path: str) -> Mapping[str, Any]:
        """What a document holds.

        Raises:
            CheckpointInvalid: it is not in it, too large, or cannot be read.
        """
        data = self._fetched([path], READ_LIMIT)[path]
        try:
            found = json_text.load(data.decode("utf-8"))
        except (ContentError, UnicodeDecodeError) as error:
            raise invalid(self.checkpoint.id, f"the document {path!a} in it cannot be read") from error
        return found if isinstance(found, Mapping) else {}

    def filled(self, value: Any, path: str) -> Any:
        """A value of a document, with what lies in sidecars put in its place; of no document, as it is."""
        try:
            names = sidecars.named_by(value, path) if path else ()
            return sidecars.fill(value, path, self._fetched(names, SIDECAR_LIMIT).__getitem__) if names else value
        except (ContentError, UnicodeDecodeError) as error:
            raise invalid(self.checkpoint.id, f"a value of {path!a} in it is damaged") from error

    def _fetched(self, names: Collection[str], limit: int) -> dict[str, bytes]:
        with self.documents() as documents:
            found = {name: b"".join(chunks) for name, size, chunks in documents if name in names and size <= limit}
        for name in names:
            if name not in found:
                raise invalid(self.checkpoint.id, f"the document {name!a} is missing")
        return found


@contextmanager
def opened_members(payload: Path, checkpoint: Checkpoint) -> Iterator[Iterator[TarMember]]:
    """The payload's members; when the block ends without an error, every byte of the payload was right.

    Raises:
        CheckpointInvalid: the payload is not there, or damaged.
    """
    with io.descriptor(_opened(payload, checkpoint)) as fd:
        size, name = checkpoint.payload_bytes, payload.name
        packed = verified(chunks_of(fd, size, str(payload)), (size, checkpoint.sha256), name)
        with _damage_named(checkpoint):
            yield members(decompressed(packed, checkpoint.unpacked, name))
            for _ in packed:
                pass


@contextmanager
def _damage_named(checkpoint: Checkpoint) -> Iterator[None]:
    try:
        yield
    except CheckpointInvalid:
        raise
    except CorruptRecord as error:
        raise invalid(checkpoint.id, f"its payload is damaged: {error.message}") from error


def prove(payload: Path, checkpoint: Checkpoint) -> ProvedCheckpoint:
    """Read a whole payload: its bytes, every document in it, and their names are what they should be.

    Raises:
        CheckpointInvalid: they are not, or the payload is not there.
        StorageIO: it cannot be read.
    """
    found: dict[str, tuple[int, str]] = {}
    special: dict[str, bytes] = {}
    with opened_members(payload, checkpoint) as archive:
        for place, member in enumerate(archive):
            if member.name in (MEMBER, SUMS):
                limit = _LARGEST_SUMMARY if member.name == MEMBER else _LARGEST_SUMS
                special[member.name] = member.data(min(limit, checkpoint.unpacked))
                continue
            if not is_own(member.name) or not member.name.startswith(tuple(f"{one}/" for one in FOLDERS)):
                raise invalid(checkpoint.id, f"it holds {member.name!a}, which is no part of a state")
            found[member.name] = place, digest_of(member.chunks())[1]
    listed = _sums(special.get(SUMS, b""), checkpoint)
    wrong = next((path for path, digest in listed.items() if found.get(path, (0, ""))[1] != digest), "")
    if wrong or len(listed) != checkpoint.files:
        raise invalid(checkpoint.id, f"the document {wrong!a} in it is damaged" if wrong else "documents are missing")
    summary = _payload_summary(special.get(MEMBER, b""), checkpoint)
    places = frozenset(found[path][0] for path in listed)
    return ProvedCheckpoint(payload=payload, checkpoint=checkpoint, sums=listed, summary=summary, places=places)


def _opened(payload: Path, checkpoint: Checkpoint) -> int:
    hint = "copy its folder from where it was made, or use another checkpoint"
    try:
        fd = io.open_file(payload, os.O_RDONLY)
    except FileNotFoundError:
        reason = "its payload is not here: payloads are not in git, a clone has the manifests only"
        raise invalid(checkpoint.id, reason, hint) from None
    except MemfsError as error:
        raise invalid(checkpoint.id, f"its payload cannot be read: {error.message}", hint) from error
    facts, size = os.fstat(fd), checkpoint.payload_bytes
    if stat.S_ISREG(facts.st_mode) and facts.st_size == size:
        return fd
    os.close(fd)
    raise invalid(checkpoint.id, f"its payload has {facts.st_size:,} bytes, should have {size:,}", hint)


def _sums(data: bytes, checkpoint: Checkpoint) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise invalid(checkpoint.id, "its list of sums cannot be read")
        found[match[2]] = match[1]
    return found


def _payload_summary(data: bytes, checkpoint: Checkpoint) -> dict[str, Any]:
    try:
        found = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(found.get(name), dict) for name in ("update", "system_configuration", "agents", "completed_work")
    ):
        raise invalid(checkpoint.id, "what it says for a recovery cannot be read")
    return found


def write_payload(target: Path, content: Iterable[bytes]) -> None:
    """Write a new file, durable on return. What is read of it afterwards comes from the disk, not from memory."""
    with io.descriptor(io.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)) as fd:
        for data in content:
            io.write_all(fd, data, str(target))
        io.fsync(fd, str(target))
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # a system that cannot is no worse off
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    io.sync_folder(target.parent)
    io.sync_folder(target.parent.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointVerdict:
    """Whether a checkpoint can be relied on, and if not, why."""

    id: str
    good: bool
    reason: str = ""
    files: int = 0
    bytes: int = 0


class Shelf:
    """The checkpoints of one workspace, and their payloads.

    Attributes:
        folder: where they lie.
        lock: held while one is made or removed.
    """

    def __init__(self, parts: Parts, files: View | None = None) -> None:
        """``files``: those of another time, whose checkpoints these are; payloads lie where they lie now."""
        self.folder = parts.tree.root / CHECKPOINTS
        self.lock = FileLock(parts.repository.state / "checkpoint.lock")
        self._parts, self._seen = parts, files or parts.seen

    def ids(self) -> Sequence[str]:
        """Their ids, newest first."""
        found = set()
        for entry in self._seen.scan(CHECKPOINTS):
            checkpoint, _, name = entry.path.removeprefix(f"{CHECKPOINTS}/").partition("/")
            if name == MANIFEST and is_id(checkpoint):
                found.add(checkpoint)
        return sorted(found, key=order, reverse=True)

    def all(self) -> list[Checkpoint]:
        """All of them, newest first; one whose manifest is damaged names the problem."""
        return [self.look(one) for one in self.ids()]

    def look(self, checkpoint: str) -> Checkpoint:
        """One of them; one whose manifest is damaged names the problem."""
        try:
            found = self.manifest(checkpoint)
        except CheckpointInvalid as error:
            return Checkpoint(id=checkpoint, timestamp=minute_of(checkpoint), present=False, problem=reason_of(error))
        size = self.size(checkpoint)
        present = size == found.payload_bytes
        problem = "" if present else "its payload is not here" if size is None else "its payload has another size"
        return replace(found, present=present, problem=problem)

    def verdict(self, checkpoint: str) -> CheckpointVerdict:
        """Read a whole checkpoint and say whether it can be relied on."""
        try:
            found = self.proved(checkpoint).checkpoint
        except CheckpointInvalid as error:
            return CheckpointVerdict(id=checkpoint, good=False, reason=reason_of(error))
        return CheckpointVerdict(id=checkpoint, good=True, files=found.files, bytes=found.bytes)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with those that are here, each read whole; a payload that lies elsewhere is no damage."""
        for checkpoint in self.ids():
            try:
                self.manifest(checkpoint)
                if self.size(checkpoint) is not None:
                    self.proved(checkpoint)
            except CheckpointInvalid as error:
                yield Problem.of(error, manifest_path(checkpoint))

    def proved(self, checkpoint: str) -> ProvedCheckpoint:
        """A checkpoint that verifies whole.

        Raises:
            CheckpointInvalid: it does not, or is not there.
        """
        return prove(self.payload(checkpoint), self.manifest(checkpoint))

    def manifest(self, checkpoint: str) -> Checkpoint:
        """What its manifest says.

        Raises:
            CheckpointInvalid: it is damaged, or there is none of that id.
        """
        if not is_id(checkpoint):
            raise CheckpointInvalid(
                f"{checkpoint!a} is no checkpoint's id",
                hint="ids look like ckpt_20260301_1000: 'memfs state checkpoint list'",
            )
        try:
            return decode(self._seen.read(manifest_path(checkpoint), READ_LIMIT).data, checkpoint)
        except FileNotFoundError:
            names = self.ids()
            hint = f"the newest is {names[0]}" if names else "'memfs state checkpoint create' makes one"
            raise CheckpointInvalid(f"there is no checkpoint {checkpoint!r}", hint=hint) from None
        except CheckpointInvalid:
            raise
        except MemfsError as error:
            raise invalid(checkpoint, f"its manifest cannot be read: {error.message}") from error

    def exists(self, checkpoint: str) -> bool:
        """Whether there is one of that id, sound or not."""
        return is_id(checkpoint) and self._seen.entry(manifest_path(checkpoint)) is not None

    # -- payloads -------------------------------------------------------------------------------------------------
    def payload(self, checkpoint: str) -> Path:
        """Where a payload lies, or would lie."""
        return self._parts.tree.root / payload_path(checkpoint)

    def size(self, checkpoint: str) -> int | None:
        """What a payload weighs, None where it is not here."""
        try:
            return self.payload(checkpoint).lstat().st_size
        except OSError:
            return None
