"""The journal: every write is recorded here before it happens, until git holds it. Also salvages a damaged journal.

Format, version 1: a header line ``memfs-journal 1 <generation> <mark> <total> <kept> <tip> <crc>``, then frames of
mark, length, crc32 and payload: one JSON line, and the bytes that it announces. The mark is random for each file, so
that no remembered text can pass for a frame. ``total`` counts the operations ever appended before this file, of which
the first ``kept`` are in it; ``tip`` is the commit behind the last drop. A torn last frame is a write never
acknowledged.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import FormatUnsupported, JournalDamaged, StorageIO, WritePending
from memfs.fs import io
from memfs.fs.lock import reset_on_fork
from memfs.fs.workspace_location import is_own
from memfs.startup import Any, json, regex

MARKS = frozenset({"applied", "void", "taken"})
_ID = regex(r"[0-9A-Za-z-]{1,100}")
_DIGEST = regex(r"[0-9a-f]{0,64}")
_COMMIT = regex(r"(?:[0-9a-f]{40})?")
_LATEST = 253_402_300_799  # the end of the year 9999


class NotARecord(Exception):
    """A frame of the journal holds something that memfs never wrote."""


class FileChange(NamedTuple):
    """One file of an operation: sha256 before and after ("" where absent), and the bytes after (None removes it)."""

    path: str
    old: str
    new: str
    data: bytes | None


class Writer(NamedTuple):
    """Who is behind a change: an agent with its session and source, or a person whose edit memfs only records."""

    agent: str = ""
    session: str = ""
    source: str = ""
    person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One acknowledged write, of one file or of a batch.

    Attributes:
        id: unique name.
        branch: full ref that was checked out, "" when HEAD was detached.
        time: seconds since 1970.
        message: the commit's sentence.
        batch: whether it must be a commit of its own.
        writers: who wrote.
        merges: the commit whose line of history this write joins with the branch, "" for none.
    """

    id: str
    branch: str
    time: float
    message: str
    batch: bool
    writers: tuple[Writer, ...]
    changes: tuple[FileChange, ...]
    merges: str = ""


def encode(operation: Operation) -> bytes:
    """An operation as a record."""
    record = {
        "kind": "operation",
        "id": operation.id,
        "branch": operation.branch,
        "time": operation.time,
        "message": operation.message,
        "batch": operation.batch,
        "writers": [writer._asdict() for writer in operation.writers],
        "changes": [
            [change.path, change.old, change.new, -1 if change.data is None else len(change.data)]
            for change in operation.changes
        ],
        **({"merges": operation.merges} if operation.merges else {}),
    }
    return _line(record) + b"".join(change.data or b"" for change in operation.changes)


def encode_mark(kind: str, operation_id: str) -> bytes:
    """A record that says something of an operation: ``applied``, ``void`` or ``taken``."""
    return _line({"kind": kind, "id": operation_id})


def _line(record: dict[str, Any]) -> bytes:
    # ASCII: names that are not Unicode travel as escapes and come back as they were.
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def decode(payload: bytes) -> tuple[dict[str, Any], Operation | None]:
    """What a record says, and the operation in it; None where it only says something of one.

    A journal is in the git folder, which may have been unpacked with all its contents: a record is data, and only one
    that memfs could have written counts.

    Raises:
        NotARecord: memfs never wrote this.
    """
    line, _, bodies = payload.partition(b"\n")
    try:
        record = json.loads(line)
        if record["kind"] in MARKS and _ID.fullmatch(record["id"]):
            return record, None
        if record["kind"] == "operation" and (operation := _operation(record, bodies)) is not None:
            return record, operation
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise NotARecord(str(error)) from error
    raise NotARecord("not what memfs writes")


def _operation(record: dict[str, Any], bodies: bytes) -> Operation | None:
    """An operation that leads nowhere: a name that is a name, files that are memfs's own, a time that is one; else
    None.
    """
    changes, position, intact = [], 0, True
    for path, old, new, size in record["changes"]:
        data = None if size < 0 else bodies[position : position + size]
        position += max(size, 0)
        changes.append(FileChange(path, old, new, data))
        intact = intact and bool(_DIGEST.fullmatch(old) and _DIGEST.fullmatch(new)) and is_own(path)
    writers = [
        Writer(row.get("agent", ""), row.get("session", ""), row.get("source", ""), bool(row.get("person")))
        for row in record["writers"]
    ]
    plain = {name: record[name] for name in ("id", "branch", "time", "message", "batch")}
    operation = Operation(**plain, writers=tuple(writers), changes=tuple(changes), merges=record.get("merges", ""))
    texts = [operation.message, operation.branch, *(text for *names, _ in writers for text in names)]
    moment = operation.time
    if (
        intact
        and _ID.fullmatch(operation.id)
        and all(isinstance(text, str) and "\0" not in text for text in texts)
        and not any(mark in operation.branch for mark in " \n")
        and _COMMIT.fullmatch(operation.merges)
        and isinstance(moment, (int, float))
        and 0 <= moment <= _LATEST
    ):
        return operation
    return None


MARK_BYTES = 8
_NAME = "memfs-journal"
_NO_TIP = "-"
_TIP = regex(r"-|[0-9a-f]{40}")


@dataclass(slots=True)
class Header:
    """Generation and mark of a journal file, how many operations came before, how many it began with, and the tip."""

    generation: int = 0
    mark: bytes = b""
    total: int = 0
    kept: int = 0
    tip: str = ""


def parse(line: bytes, path: str) -> Header:
    """The header in a line.

    Raises:
        FormatUnsupported: it is of a newer memfs.
        JournalDamaged: it is not a header, or not what was written.
    """
    words = line.decode("ascii", "replace").split(" ")
    if len(words) < 2 or words[0] != _NAME:
        raise _damaged("the journal has no header", path)
    if words[1] != "1":
        raise FormatUnsupported(f"the journal is of format {words[1]}, known is 1", path=path, hint="use a newer memfs")
    try:
        _, _, generation, mark, total, kept, tip, *check = words
        # The first journals had no checksum.
        if check != [_checksum(" ".join(words[:7]))] if check else not _TIP.fullmatch(tip):
            raise ValueError
        return Header(int(generation), bytes.fromhex(mark), int(total), int(kept), "" if tip == _NO_TIP else tip)
    except ValueError:
        raise _damaged("the journal's header is damaged", path) from None


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('ascii', 'replace')):08x}"


def _damaged(reason: str, path: str) -> JournalDamaged:
    return JournalDamaged(reason, path=path, hint="'memfs check --fix' saves its records into a new one")


_FRAME = struct.Struct(">8sII")
_FIRST = 512
_LARGE = 1 << 40


Witness = Callable[[Sequence[Operation], bool], None]
"""Called with operations before their first byte is written, and, with true, once they are durable."""

_witness: Witness | None = None


def set_witness(witness: Witness | None) -> None:
    """Set what is called with every operation that this process appends, for those that outlive it; with none that came
    from a second journal.
    """
    global _witness
    _witness = witness


class Journal:
    """One workspace's journal. Reading needs no lock; appending and dropping need the store's lock.

    Attributes:
        own: the operations that this process appended and that still wait, by id.
    """

    survives_fork = True

    def __init__(self, path: Path, *, salvaging: bool = False) -> None:
        """``salvaging``: read on where the header is damaged; see ``salvage``."""
        self.path, self._salvaging = path, salvaging
        self.waiting: dict[str, Operation] = {}
        self.applied: set[str] = set()
        self.taken: set[str] = set()
        self.own: set[str] = set()
        self.damage: list[JournalDamaged] = []
        self._header = Header()
        self._latest: dict[str, str] = {}
        self._news: set[str] = set()
        self._announced: set[str] = set()
        self._gap = False
        self._count = 0
        self._inode = 0
        self._offset = 0
        self._unmarked: list[str] = []
        self._suspect = False
        self._opened = False
        self._fd = -1
        self._writing_fd = -1
        self._lock = threading.RLock()
        reset_on_fork(self)

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._reset()

    def after_fork(self) -> None:
        """Read it all again: a thread of the parent may have been in the middle of it."""
        self._fd = self._writing_fd = -1  # not closed: the thread may have closed them, and others have their numbers
        self._reset()
        self._gap, self._unmarked, self.own = True, [], set()

    # -- reading ------------------------------------------------------------------------------------------------
    @property
    def tip(self) -> str:
        """The commit behind the last drop, "" where there was none."""
        return self._header.tip

    def operations(self) -> list[Operation]:
        """The operations that wait, oldest first, as of now."""
        with self._lock:
            self.catch_up()
            return list(self.waiting.values())

    def unfinished(self) -> list[Operation]:
        """Those of which it is not known whether their files are in place."""
        with self._lock:
            self.catch_up()
            if self.waiting.keys() <= self.applied:  # as a rule: every write asks, whatever waits
                return []
            return [operation for name, operation in self.waiting.items() if name not in self.applied]

    def written_after(self, operation_id: str) -> set[str]:
        """The paths that operations after this one name."""
        with self._lock:
            names = list(self.waiting)
            later = names[names.index(operation_id) + 1 :] if operation_id in self.waiting else []
            return {change.path for name in later for change in self.waiting[name].changes}

    @property
    def state(self) -> tuple[object, ...]:
        """Something that differs once this reader knows of other records."""
        with self._lock:
            last = next(reversed(self.waiting), "")
            return self._inode, len(self.waiting), len(self.applied), len(self.taken), last

    def knows(self, operation_id: str) -> bool:
        """Whether an operation was carried out here, also where it was committed and dropped since (see ``drop``)."""
        return operation_id in (self.applied if operation_id in self.waiting else self.taken)

    def latest(self, path: str) -> str | None:
        """The sha256 that the last waiting operation gave a path ("" for a removal), None where none waits."""
        return self._latest.get(path)

    def waits_elsewhere(self, path: str, branch: str) -> bool:
        """Whether an operation on this path waits for another branch."""
        with self._lock:
            if path not in self._latest:
                return False
            waiting = (operation for operation in self.waiting.values() if operation.branch != branch)
            return any(change.path == path for operation in waiting for change in operation.changes)

    def unseen(self) -> set[str] | None:
        """Paths that other processes wrote since ``news`` was last asked; None when some may have been missed.

        To a first caller, what waits is news.
        """
        with self._lock:
            self.catch_up()
            return None if self._gap else set(self._news)

    def news(self) -> set[str] | None:
        """As ``unseen``, and from now on these count as seen."""
        with self._lock:
            found = self.unseen()
            self._news, self._gap = set(), False
            return found

    def catch_up(self) -> None:
        """Read what was appended since."""
        with self._lock:
            try:
                facts = io.facts(self.path)
            except FileNotFoundError:
                self._reset()
                return
            if facts.st_ino == self._inode and facts.st_size == self._offset:
                return
            from_start = facts.st_ino != self._inode or facts.st_size < self._offset
            if from_start:
                self._open()
            whole = self._parse(self._tail(), tell=from_start)
            if not whole and not from_start:
                # The end this reader knew may have been cut off and rewritten: only a reading from the start is sure.
                self._open()
                self._parse(self._tail(), tell=True)

    def _seen_total(self) -> int:
        """How many operations were ever appended, as far as this reader knows."""
        return self._header.total + max(0, self._count - self._header.kept)

    def _reset(self) -> None:
        for fd in (self._fd, self._writing_fd):
            if fd >= 0:
                os.close(fd)
        self._writing_fd = -1
        self._fd, self._inode, self._offset, self._count = -1, 0, 0, 0
        self.waiting, self.applied, self.taken, self._latest = {}, set(), set(), {}

    def _open(self) -> None:
        seen = self._seen_total()
        self._reset()
        self._fd = io.open_file(self.path, os.O_RDONLY)
        with io.operation("read", self.path):  # what is no file has no such thing as a beginning
            line = os.pread(self._fd, 256, 0).split(b"\n")[0]
        mark = self._header.mark
        try:
            self._header, offset = parse(line, str(self.path)), len(line) + 1
        except (JournalDamaged, FormatUnsupported) as error:
            # By the mark of the first whole record, near the beginning. A newer format's records look otherwise: where
            # ours follow, it is the number that is damaged.
            tail = self._tail() if self._salvaging else b""
            places = range(min(_FIRST, len(tail)))
            known = next((tail[at : at + MARK_BYTES] for at in places if _frame(tail, at)[0]), b"")
            if not self._salvaging or (isinstance(error, FormatUnsupported) and not known):
                raise
            self.damage.append(_damaged("the journal's header is damaged", str(self.path)))
            self._header, offset = Header(int(time.time()), known or os.urandom(MARK_BYTES), _LARGE), 0
        if self._header.mark != mark:
            self._announced.clear()
        self._inode = os.fstat(self._fd).st_ino  # only now: a file without a header is never written to
        self._offset = offset
        first, self._opened = not self._opened, True
        self._gap = self._gap or (seen < self._header.total and not first)

    def _tail(self) -> bytes:
        chunks = []
        position = self._offset
        with io.operation("read", self.path):
            while chunk := os.pread(self._fd, 1 << 20, position):
                chunks.append(chunk)
                position += len(chunk)
        return b"".join(chunks)

    def _parse(self, data: bytes, tell: bool) -> bool:
        position = 0
        whole = True
        while position < len(data):
            payload, end = _frame(data, position, self._header.mark)
            if payload is None:
                whole = False
                following = self._next_frame(data, position + 1)
                if following < 0 or not tell:
                    break
                self._report_damage(self._offset + position, following - position)
                position = following
                continue
            try:
                self._take(payload)
            except NotARecord:
                self._report_damage(self._offset + position, end - position)
            position = end
        self._offset += position
        return whole

    def _take(self, payload: bytes) -> None:
        record, operation = decode(payload)
        if operation is not None:
            announced = operation.id in self._announced  # where the end is torn, all is read again each time
            self._add(operation)
            self._count += 1
            if self._count > self._header.kept and not announced:
                self._news.update(change.path for change in operation.changes)
        elif record["kind"] == "applied":
            self.applied.add(record["id"])
        elif record["kind"] == "taken":
            self.taken.add(record["id"])
        else:
            self._discard(record["id"])

    def _add(self, operation: Operation) -> None:
        self.waiting[operation.id] = operation
        self._announced.add(operation.id)
        self._latest.update((change.path, change.new) for change in operation.changes)

    def _discard(self, operation_id: str) -> None:
        self.applied.discard(operation_id)
        self.taken.discard(operation_id)
        if self.waiting.pop(operation_id, None) is not None:
            self._latest = {}
            for operation in self.waiting.values():
                self._latest.update((change.path, change.new) for change in operation.changes)

    def _report_damage(self, offset: int, length: int) -> None:
        damaged = JournalDamaged(
            f"{length} bytes at offset {offset} are unreadable; the records around them are kept",
            path=str(self.path),
            hint="a write that waited for its commit may be missing: compare your files with git log",
        )
        if str(damaged) not in map(str, self.damage):
            self.damage.append(damaged)

    def _next_frame(self, data: bytes, position: int) -> int:
        while (position := data.find(self._header.mark, position)) >= 0:
            if _frame(data, position, self._header.mark)[0] is not None:
                return position
            position += 1
        return -1

    # -- writing (under the store's lock) -----------------------------------------------------------------------
    def append(self, operations: Sequence[Operation], came: bool = False) -> None:
        """Write operations and make them durable: on return they survive kill -9 and power loss.

        Args:
            came: they come from a second journal, which may still hold them when they are dropped here.

        Raises:
            StorageIO: nothing counts as written. The file is not written to again; the rest moves to a new one.
            WritePending: that could not be done either, so that others may find what was written.
        """
        io.require_descriptors(str(self.path))
        with self._lock:
            self._ready()
            start = self._offset
            if _witness is not None and not came:
                _witness(operations, False)
            marks = [encode_mark("applied", name) for name in self._unmarked]
            try:
                taken = [encode_mark("taken", operation.id) for operation in operations if came]
                data = self._frames(*marks, *(encode(operation) for operation in operations), *taken)
                self._offset = io.write_at(self._writer(), data, start, str(self.path), self._fd)
                io.fdatasync(self._writer(), str(self.path))
            except StorageIO as error:
                if not self._abandoned(start):
                    raise WritePending.of(error) from error
                raise
            self._unmarked.clear()
            self._count += len(operations)
            for operation in operations:
                self._add(operation)
                self.own.add(operation.id)
            self.taken.update(operation.id for operation in operations if came)
            if _witness is not None and not came:
                _witness(operations, True)

    def _abandoned(self, start: int) -> bool:
        """Move what counts to a new file, or cut off the rest; whether others find nothing of what was written."""
        self._offset = start
        self._suspect = True
        with contextlib.suppress(StorageIO):
            self._renew()
            return True
        with contextlib.suppress(StorageIO):
            io.truncate(self._writer(), start, str(self.path))
            return True
        try:
            return self._next_frame(self._tail(), 0) < 0
        except StorageIO:
            return False

    def mark_applied(self, operation_id: str) -> None:
        """Note that an operation's files are in place; durable with the next append at the latest.

        A mark that cannot be written now is written with the next append.
        """
        with self._lock:
            self.applied.add(operation_id)
            try:
                mark = self._frames(encode_mark("applied", operation_id))
                self._offset = io.write_at(self._writer(), mark, self._offset, str(self.path), self._fd)
            except StorageIO:
                self._unmarked.append(operation_id)

    def void(self, operation_id: str) -> None:
        """Take back an operation that could not be carried out and was not acknowledged."""
        with self._lock:
            self._ready()
            mark = self._frames(encode_mark("void", operation_id))
            self._offset = io.write_at(self._writer(), mark, self._offset, str(self.path), self._fd)
            io.fdatasync(self._writer(), str(self.path))
            self._discard(operation_id)

    def drop(
        self,
        operation_ids: Iterable[str],
        tip: str = "",
        taken: Iterable[str] | None = None,
        reduced: Mapping[str, Operation] = MappingProxyType({}),
    ) -> None:
        """Forget operations whose commit is durable: a new generation with the rest replaces the file.

        Args:
            tip: the branch's newest commit now; kept to tell a repeated operation from a repeated commit.
            taken: names to remember, those that a second journal may still hold; None keeps what is remembered.
            reduced: what is left of operations of which a part is forgotten, by name.
        """
        with self._lock:
            self.catch_up()
            self.taken = self.taken if taken is None else set(taken)
            gone = set(operation_ids)
            rest = [reduced.get(name, operation) for name, operation in self.waiting.items() if name not in gone]
            self.own &= {operation.id for operation in rest}
            self._replace(rest, tip or self._header.tip)

    def renew(self) -> None:
        """Put a whole file with what waits in the place of a damaged one."""
        with self._lock:
            self._renew()
            self.damage.clear()

    def _renew(self) -> None:
        self._replace(list(self.waiting.values()), self._header.tip)

    def _replace(self, rest: Sequence[Operation], tip: str) -> None:
        header = Header(
            generation=self._header.generation + 1,
            mark=os.urandom(MARK_BYTES),
            total=self._seen_total(),
            kept=len(rest),
            tip=tip,
        )
        applied = [encode_mark("applied", operation.id) for operation in rest if operation.id in self.applied]
        taken = [encode_mark("taken", name) for name in sorted(self.taken)]
        payloads = [*(encode(operation) for operation in rest), *applied, *taken]
        body = b"".join(_framed(header.mark, payload) for payload in payloads)
        words = (_NAME, 1, header.generation, header.mark.hex(), header.total, header.kept, header.tip or _NO_TIP)
        line = " ".join(map(str, words))
        io.write_file(self.path, f"{line} {_checksum(line)}\n".encode("ascii") + body)
        self._suspect = False
        self._inode = 0
        self.catch_up()

    def _ready(self) -> None:
        if not self._suspect:
            self.catch_up()
        if self._suspect or self._inode == 0:
            self._renew()
        if os.fstat(self._fd).st_size > self._offset:
            io.truncate(self._writer(), self._offset, str(self.path))

    def _writer(self) -> int:
        """A descriptor for writing; a process that only reads needs none, and may lack the right."""
        if self._writing_fd < 0:
            try:
                self._writing_fd = io.open_file(self.path, os.O_WRONLY)
            except FileNotFoundError as error:  # it was there a moment ago
                raise io.storage_error(error, "open", str(self.path)) from error
        return self._writing_fd

    def _frames(self, *payloads: bytes) -> bytes:
        return b"".join(_framed(self._header.mark, payload) for payload in payloads)


def _framed(mark: bytes, payload: bytes) -> bytes:
    return _FRAME.pack(mark, len(payload), zlib.crc32(payload)) + payload


def _frame(data: bytes, position: int, mark: bytes = b"") -> tuple[bytes | None, int]:
    """The payload of a whole record, of a file with this mark or of any, and its end; None where none begins here."""
    if len(data) - position < _FRAME.size:
        return None, position
    found, length, crc = _FRAME.unpack_from(data, position)
    start = position + _FRAME.size
    payload = data[start : start + length]
    if mark not in (b"", found) or len(payload) != length or zlib.crc32(payload) != crc:
        return None, position
    return payload, start + length


def salvage(path: Path) -> Journal | None:
    """A reader of what can be saved of a damaged journal; None where nothing is damaged, or there is none.

    Whole records are found whatever became of the bytes around them. ``renew`` makes a whole journal of them.

    Raises:
        FormatUnsupported: it is of a newer memfs.
    """
    with contextlib.ExitStack() as closing:
        found = Journal(path, salvaging=True)
        closing.callback(found.close)
        found.catch_up()
        if not found.damage:
            return None
        closing.pop_all()
        return found
