"""Pack, write and read checkpoints: the state of one moment, its manifest, and the proof that both are whole.

A checkpoint is self-contained: digests of payload and manifest prove every byte, and one wrong bit makes it invalid.
One that is damaged or incomplete is listed with its reason, and never used. What a recovery reports is gathered while
it is packed: where each agent is, which tasks are in flight, and which work is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from memfs.config_names import CONFIGURATION, SYSTEM_CONFIG
from memfs.dataclass import dataclass, field, replace
from memfs.errors import CheckpointInvalid, ContentError, CorruptRecord, HistoryError, MemfsError
from memfs.format import json_text
from memfs.fs import archive, io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.lock import FileLock
from memfs.fs.tree import ScanEntry, View
from memfs.fs.workspace_location import is_own
from memfs.model import Problem, state_paths
from memfs.model.state_facts import STATEFUL, StateQuery, StateRow, is_final
from memfs.model.time import EARLIEST, format_time
from memfs.store import Store, sidecars
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.sidecars import KEY, SIDECAR_LIMIT

if TYPE_CHECKING:
    from memfs.state.reader import StateReader

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
        present: whether a payload of that size is beside the manifest; a clone has manifests only.
        problem: why it cannot be used, as far as the manifest and the payload's size show; "" otherwise.
    """

    id: Annotated[str, _ID]
    timestamp: datetime
    reason: str = ""
    iteration: int | None = None
    files: int = 0
    bytes: int = 0
    unpacked: int = 0
    payload_bytes: int = 0
    sha256: archive.Sha256 = ""
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
        "payload": {"file": state_paths.PAYLOAD, "bytes": checkpoint.payload_bytes, "sha256": checkpoint.sha256},
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
        found: Checkpoint = archive.decoded(Checkpoint, values)
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
FOLDERS = (CONFIGURATION, f"{CONTENT}/context", state_paths.AGGREGATES, state_paths.ITERATIONS)


_LARGEST_SUMMARY = 1 << 28
_LARGEST_SUMS = 1 << 30
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedCheckpoint:
    """A checkpoint that verified whole.

    Attributes:
        payload, checkpoint: where its bytes are, and what its manifest says.
        checksums: the sha256 of each document, by path.
        summary: what ``recover`` reports (``StatePacker``).
        places: where in the payload, from 0, the documents are that count: one that changed while it was packed is in
            it twice.
    """

    payload: Path
    checkpoint: Checkpoint
    checksums: Mapping[str, str]
    summary: Mapping[str, Any]
    places: Collection[int] = field(repr=False)

    @contextmanager
    def documents(self) -> Iterator[Iterator[tuple[str, int, Iterator[bytes]]]]:
        """Path, size and bytes of each document, which are right if no error comes at their end.

        Raises:
            CheckpointInvalid: the payload is not there any more, or damaged by now.
        """
        with opened_members(self.payload, self.checkpoint) as held:
            yield ((one.name, one.size, self._checked(one)) for n, one in enumerate(held) if n in self.places)

    def _checked(self, member: archive.TarMember) -> Iterator[bytes]:
        with _damage_named(self.checkpoint):
            yield from archive.verified(member.chunks(), (member.size, self.checksums[member.name]), member.name)

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
        """A value of a document, with what is in sidecars put in its place; of no document, as it is."""
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
def opened_members(payload: Path, checkpoint: Checkpoint) -> Iterator[Iterator[archive.TarMember]]:
    """The payload's members; when the block ends without an error, every byte of the payload was right.

    Raises:
        CheckpointInvalid: the payload is not there, or damaged.
    """
    hint = "copy its folder from where it was made, or use another checkpoint"
    try:
        opened = io.open_file(payload, os.O_RDONLY)
    except FileNotFoundError:
        reason = "its payload is not here: payloads are not in git, a clone has the manifests only"
        raise invalid(checkpoint.id, reason, hint) from None
    except MemfsError as error:
        raise invalid(checkpoint.id, f"its payload cannot be read: {error.message}", hint) from error
    with io.descriptor(opened) as fd:
        facts, size, name = os.fstat(fd), checkpoint.payload_bytes, payload.name
        if not stat.S_ISREG(facts.st_mode) or facts.st_size != size:
            raise invalid(checkpoint.id, f"its payload has {facts.st_size:,} bytes, should have {size:,}", hint)
        packed = archive.verified(archive.chunks_of(fd, size, str(payload)), (size, checkpoint.sha256), name)
        with _damage_named(checkpoint):
            yield archive.members(archive.decompressed(packed, checkpoint.unpacked, name))
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
    with opened_members(payload, checkpoint) as held:
        for place, member in enumerate(held):
            if member.name in (MEMBER, SUMS):
                limit = _LARGEST_SUMMARY if member.name == MEMBER else _LARGEST_SUMS
                special[member.name] = member.data(min(limit, checkpoint.unpacked))
                continue
            if not is_own(member.name) or not member.name.startswith(tuple(f"{one}/" for one in FOLDERS)):
                raise invalid(checkpoint.id, f"it holds {member.name!a}, which is not part of a state")
            found[member.name] = place, archive.digest_of(member.chunks())[1]
    listed: dict[str, str] = {}
    for line in special.get(SUMS, b"").decode("utf-8", "surrogateescape").split("\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise invalid(checkpoint.id, "its list of checksums cannot be read")
        listed[match[2]] = match[1]
    wrong = next((path for path, digest in listed.items() if found.get(path, (0, ""))[1] != digest), "")
    if wrong or len(listed) != checkpoint.files:
        raise invalid(checkpoint.id, f"the document {wrong!a} in it is damaged" if wrong else "documents are missing")
    try:
        summary = json.loads(special.get(MEMBER, b"").decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        summary = None
    parts = ("update", "system_configuration", "agents", "completed_work")
    if not isinstance(summary, dict) or not all(isinstance(summary.get(name), dict) for name in parts):
        raise invalid(checkpoint.id, "what it says for a recovery cannot be read")
    places = frozenset(found[path][0] for path in listed)
    return ProvedCheckpoint(payload=payload, checkpoint=checkpoint, checksums=listed, summary=summary, places=places)


def write_payload(target: Path, content: Iterable[bytes]) -> None:
    """Write a new file, durable on return. What is read of it afterwards comes from the disk, not from memory."""
    io.write_new(target, content)
    if hasattr(os, "posix_fadvise"):
        with io.descriptor(io.open_file(target, os.O_RDONLY)) as fd, suppress(OSError):  # it is an optimisation
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    io.sync_folder(target.parent)
    io.sync_folder(target.parent.parent)


class CheckpointStore:
    """The checkpoints of one workspace, and their payloads.

    Attributes:
        folder: where they are.
        lock: held while one is made or removed.
    """

    def __init__(self, parts: Parts, files: View | None = None) -> None:
        """``files``: those of another time, whose checkpoints these are; payloads are where they are now."""
        self.folder = parts.tree.root / state_paths.CHECKPOINTS
        self.lock = FileLock(parts.repository.state / "checkpoint.lock")
        self._parts, self._seen = parts, files or parts.seen

    def ids(self) -> Sequence[str]:
        """Their ids, newest first."""
        found = set()
        for entry in self._seen.scan(state_paths.CHECKPOINTS):
            checkpoint, _, name = entry.path.removeprefix(f"{state_paths.CHECKPOINTS}/").partition("/")
            if name == state_paths.MANIFEST and is_id(checkpoint):
                found.add(checkpoint)
        return sorted(found, key=order, reverse=True)

    def look(self, checkpoint: str, *, whole: bool = False) -> Checkpoint:
        """One of them; one that cannot be used names the problem.

        Args:
            whole: read its payload, too, and not only its size.
        """
        found = Checkpoint(id=checkpoint, timestamp=minute_of(checkpoint), present=False)
        try:
            found, size = self.manifest(checkpoint), self.size(checkpoint)
            present = size == found.payload_bytes
            problem = "" if present else "its payload is not here" if size is None else "its payload has another size"
            found = replace(found, present=present, problem=problem)
            if whole:
                self.proved(checkpoint)
        except CheckpointInvalid as error:
            return replace(found, problem=reason_of(error))
        return found

    def problems(self) -> Iterator[Problem]:
        """What is wrong with those that are here, each read whole; a payload that is elsewhere is no damage."""
        for checkpoint in self.ids():
            try:
                self.manifest(checkpoint)
                if self.size(checkpoint) is not None:
                    self.proved(checkpoint)
            except CheckpointInvalid as error:
                yield Problem.of(error, state_paths.manifest_path(checkpoint))

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
        self._parts.require_open()
        if not is_id(checkpoint):
            raise CheckpointInvalid(
                f"{checkpoint!a} is not the id of a checkpoint",
                hint="ids look like ckpt_20260301_1000: 'memfs state checkpoint list'",
            )
        try:
            return decode(self._seen.read(state_paths.manifest_path(checkpoint), READ_LIMIT).data, checkpoint)
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
        self._parts.require_open()
        return is_id(checkpoint) and self._seen.entry(state_paths.manifest_path(checkpoint)) is not None

    # -- payloads -------------------------------------------------------------------------------------------------
    def payload(self, checkpoint: str) -> Path:
        """Where a payload is, or would be."""
        self._parts.require_open()
        return self._parts.tree.root / state_paths.payload_path(checkpoint)

    def size(self, checkpoint: str) -> int | None:
        """What a payload weighs, None where it is not here."""
        try:
            return self.payload(checkpoint).lstat().st_size
        except OSError:
            return None


# -- packing ---------------------------------------------------------------------------------------------------------
_SMALL = 1 << 18
_LOOKED_AT = 16
TASKS = ("checkpoint_data", "in_flight_tasks")
METADATA = ("checkpoint_data", "recovery_metadata")
_STATES = {"agent_output": ("state_data", "internal_state"), "continuation": ("state",)}


class StatePacker(archive.TreePacker):
    """Packs the state as it is at one moment; what there is to say of it is known once all of it was taken."""

    def __init__(self, store: Store, parts: Parts, reader: StateReader, update: Mapping[str, Any] | None) -> None:
        """``update``: the state update whose ``checkpoint_data`` counts; None for the latest in the state."""
        super().__init__(parts.tree, parts.seen)
        self._store, self._parts, self._reader, self._update = store, parts, reader, update
        self._moment, self._revision = EARLIEST, ""
        self._points: dict[tuple[str, ...], dict[str, Any]] = {}

    def tar(self) -> Generator[bytes, None, None]:
        """The state as a tar, in pieces. Writers wait while its last part is taken: it has to be closed in any case.

        Raises:
            StorageIO, LockTimeout: the state cannot be read.
        """
        parts = self._parts
        self._reader.catch_up()  # most of what it has to learn, it learns before writers wait
        with parts.tree.holding_folders():
            for entry in _entries(parts, self.left_out):
                yield from self.add(entry.path)
        with self._store.exclude_writers("checkpoint"), parts.tree.holding_folders():
            self._moment = parts.clock()
            self.left_out.clear()
            yield from self.catch_up(_entries(parts, self.left_out))
            summary = json.dumps(self._summary(), ensure_ascii=False, allow_nan=False)
            with suppress(HistoryError):
                self._revision = parts.repository.head_commit() or ""
        # what ``sha256sum -c`` reads: one line for each document that counts
        sums = "".join(f"{digest}  {path}\n" for path, (_, digest) in sorted(self.files.items()))
        for name, text, handler in ((MEMBER, summary, "surrogatepass"), (SUMS, sums, "surrogateescape")):
            data = text.encode("utf-8", handler)
            yield from self.put(name, [data], len(data))
        yield from self.end()

    def checkpoint(self, chosen: str, reason: str, payload: archive.Digest) -> Checkpoint:
        """What was packed."""
        files = self.files
        return Checkpoint(
            id=chosen,
            timestamp=self._moment,
            reason=reason,
            iteration=max(
                (number for path in files if (number := state_paths.iteration_of(path)) is not None), default=None
            ),
            files=len(files),
            bytes=sum(size for size, _ in files.values()),
            unpacked=self.size,
            payload_bytes=payload[0],
            sha256=payload[1],
            revision=self._revision,
            left_out=tuple(f"{path}: {reason}" for path, reason in sorted(self.left_out.items())),
        )

    # -- what a recovery reports ----------------------------------------------------------------------------------
    def note(self, path: str, data: bytes) -> None:
        """Note where the parts of ``checkpoint_data`` are said last, of a state update that is being packed."""
        if state_paths.document_kind(path) == "state_update" and b'"checkpoint_data"' in data:
            for where, value in points_in(object_in(data)):
                if where not in self._points or update_key(self._points[where]["path"]) <= update_key(path):
                    self._points[where] = _point(path, where, "value", value, small=len(data) <= _SMALL)

    def _summary(self) -> dict[str, Any]:
        """All that ``recover`` reports, for the documents that are in the checkpoint; archived work is done, too.

        It is the latest state update, what was said last of each part of ``checkpoint_data``, which of the tasks in
        flight had their final output by then, and where each agent was. Of a large document only the place is noted.
        """
        self._reader.catch_up()
        points = {where: one for where, one in self._points.items() if one["path"] in self.files}
        points |= {where: _point("", where, "value", value) for where, value in points_in(self._update or {})}
        agents = self._reader.index.agents(tuple(_STATES))
        update: dict[str, Any] = {}
        if self._update is not None:
            update = {"values": self._update}
        elif found := self._newest(StateQuery(kinds=("state_update",))):  # its place alone where it is too large
            data = self._bytes_of(found[0].path)
            update = {"path": found[0].path, **({"values": object_in(data)} if len(data) <= _SMALL else {})}
        finished: list[int] = []
        point = points.get(TASKS)
        # a task is finished by an output after the update that names it; one that is given names its tasks now
        row = self._reader.index.row(point["path"]) if point is not None else None
        if point is not None and row is not None and row.facts.timestamp is not None:
            tasks = point["value"] if "value" in point else value_at(object_in(self._bytes_of(row.path)), TASKS)
            finished = finished_tasks(self._reader, tasks, after=row.facts.timestamp)
        return {
            "format": 1,
            "update": update,
            "checkpoint_data": sorted(points.values(), key=lambda one: (not one["path"], update_key(one["path"]))),
            "finished": finished,
            "system_configuration": read_object(self._bytes_of, SYSTEM_CONFIG),
            "agents": {agent: state for agent in agents if (state := self._state_of(agent))},
            "completed_work": self._completed(),
        }

    def _state_of(self, agent: str) -> dict[str, Any]:
        """Where an agent was: its newest state, with an output or under a token that no newer one superseded."""
        outputs = self._newest(StateQuery(kinds=("agent_output",), agents=(agent,), states=(STATEFUL,)))
        kept = self._newest(StateQuery(kinds=("continuation",), agents=(agent,)))
        live = (row for row in kept if not read_object(self._bytes_of, row.path).get("superseded_by"))
        found = max(
            [*outputs[:1], *islice(live, 1)], key=lambda row: (row.facts.iteration, row.facts.moment), default=None
        )
        if found is None:
            return {}
        where, data = _STATES[found.facts.kind], self._bytes_of(found.path)
        place = _point(found.path, where, "state", value_at(object_in(data), where), small=len(data) <= _SMALL)
        moment = found.facts.timestamp
        return {**place, "task": found.facts.task, "timestamp": format_time(moment) if moment else ""}

    def _completed(self) -> dict[str, Any]:
        """What was done by then."""
        index, there = self._reader.index, {state_paths.iteration_of(path) for path in self.files}
        counts, iterations, work = index.counts(), index.iterations(), index.work_by_agent()
        archived = [one.number for one in iterations if one.number not in there]
        return {
            "iterations": [one.number for one in iterations],
            "closed_iterations": [one.number for one in iterations if one.status == "closed"],
            "agent_outputs": counts.get("agent_output", 0),
            "outputs_by_agent": {agent: outputs for agent, (outputs, _) in work.items()},
            "tasks_by_agent": {agent: tasks for agent, (_, tasks) in work.items()},
            "hypotheses": index.hypotheses(),
            "tournament_results": counts.get("tournament_result", 0),
            "meta_reviews": index.iterations_with("meta_review"),
            "state_updates": counts.get("state_update", 0),
            **({"archived_iterations": archived} if archived else {}),
        }

    def _newest(self, question: StateQuery) -> list[StateRow]:
        """Of the documents in the checkpoint that agree with a question, the newest few."""
        found = self._reader.index.find(replace(question, newest=True, limit=_LOOKED_AT))
        return [row for row in found if row.path in self.files]

    def _bytes_of(self, path: str) -> bytes:
        return self._parts.seen.read(path, READ_LIMIT).data


def _point(path: str, where: tuple[str, ...], name: str, value: Any, *, small: bool = True) -> dict[str, Any]:
    """What a document says of one thing: where in it, and the value unless it is large."""
    return {"path": path, "field": list(where), **({name: value} if small else {})}


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
        number = state_paths.iteration_of(entry.path)
        return (-(1 << 60) if number is None else -number, entry.path)

    return sorted(found, key=place)


def points_in(update: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """What an update says of the parts of ``checkpoint_data``: the tasks in flight, and each component's metadata."""
    tasks, metadata = value_at(update, TASKS), value_at(update, METADATA)
    found: list[tuple[tuple[str, ...], Any]] = [(TASKS, tasks)] if isinstance(tasks, list) else []
    if isinstance(metadata, Mapping) and KEY in metadata:
        return [*found, (METADATA, metadata)]  # all of it is in a sidecar
    if isinstance(metadata, Mapping):
        found += [((*METADATA, str(component)), value) for component, value in metadata.items()]
    return found


def update_key(path: str) -> tuple[str, int, int]:
    """What sorts state updates by time, then iteration and turn: their names begin with the time."""
    moment = path.rpartition("/")[2].split("Z")[0]
    return moment, state_paths.iteration_of(path) or 0, state_paths.task_and_turn(path)[1]


def value_at(values: Any, where: Iterable[str]) -> Any:
    """The value of a field below others, None where there is none."""
    for name in where:
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def object_in(data: bytes) -> dict[str, Any]:
    """What a document's bytes hold; nothing where a person broke it."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_IDS = ("task_id", "id", "task")
_OWNERS = ("component", "agent", "agent_type", "agent_name", "assigned_to", "assigned_agent", "worker")


def owners(task: Any) -> set[str]:
    """The agents and components that a task names as those it belongs to; none where it belongs to anyone."""
    if not isinstance(task, Mapping):
        return set()
    return {task[key] for key in _OWNERS if isinstance(task.get(key), str)}


def task_id(task: Any) -> str:
    """A task's id, "" where it has none."""
    named = next((task[key] for key in _IDS if key in task), "") if isinstance(task, Mapping) else task
    return str(named) if isinstance(named, str | int) and not isinstance(named, bool) else ""


def finished_tasks(
    reader: StateReader, tasks: Any, after: datetime | None = None, known: Collection[str] = ()
) -> list[int]:
    """Which tasks have their final output in the tree, by their place in the list.

    An output completes the task of its id, of an agent that the task names, or of any where it names none. One that
    cannot be read completes nothing: a task that is done twice is better than one that is never done.

    Args:
        tasks: as ``in_flight_tasks`` has them.
        after: only outputs of a later time count.
        known: outputs that do not count, by path.
    """
    places: dict[str, list[int]] = {}
    for place, task in enumerate(tasks if isinstance(tasks, list | tuple) else ()):
        if name := task_id(task):
            places.setdefault(name, []).append(place)
    found: set[int] = set()
    for row in reader.index.find(StateQuery(kinds=("agent_output",), tasks=tuple(places))) if places else ():
        facts = row.facts
        late = after is None or (facts.timestamp is not None and facts.timestamp > after)
        own = {place: {name.casefold() for name in owners(tasks[place])} for place in places[facts.task]}
        mine = {place for place, names in own.items() if not names or facts.agent.casefold() in names}
        if late and not row.archive and row.path not in known and not mine <= found:
            with suppress(MemfsError, FileNotFoundError):
                if is_final(reader.load(row)):
                    found |= mine
    return sorted(found)


def read_object(read: Callable[[str], bytes], path: str) -> Mapping[str, Any]:
    """The JSON object in a file; an empty one where there is none that can be read."""
    with suppress(MemfsError, FileNotFoundError):
        return object_in(read(path))
    return {}
