"""Archives: iterations that left the tree, still readable document by document (S5, S15).

Owns finding an archived document and its bytes: the frame of the payload that holds it, or, where the payload is not
there or damaged, the blob that history has of it. Payloads lie outside git, so that a clone reads all through history.
Making archives is ``memfs.states.archiving``'s business, their form ``memfs.upkeep.archivefile``'s.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from memfs.errors import ArchiveInvalid, CorruptRecord, HistoryError
from memfs.files.forked import renewed_in_child
from memfs.model.statepaths import ARCHIVE, iteration_of
from memfs.store.parts import Parts
from memfs.upkeep.archivefile import FRAME_BYTES, Member, Payload, damaged, verify
from memfs.upkeep.archiveindex import INDEX_LIMIT, INDEX_SUFFIX, Index, decode, index_path, is_name, payload_path

_KEPT = 4
_MOST_MEMBERS = 20_000
_SETTLED_NS = 2_000_000_000
_LARGEST_KEPT = 2 * FRAME_BYTES
_IN_MEMORY = 256 << 20
_BRING = "bring the payload here from a backup or from where the archive was made, or fetch the whole history"

Place = tuple[Index, Member]
Facts = tuple[int, int, int, int]

__all__ = ["Archives", "Member", "Period", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One archive.

    Attributes:
        name: the month in which its iterations were closed, with a number where that month has several.
        iterations: those it holds documents of, by number; ``unpacked`` those of them that are back in the tree.
        created: when it was made.
        documents, bytes: how many documents it holds, and what they weigh unpacked.
        packed: what the payload weighs.
        present: whether the payload is here; without it documents are read from history.
    """

    name: str
    iterations: tuple[int, ...]
    unpacked: tuple[int, ...]
    created: datetime
    documents: int
    bytes: int
    packed: int
    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a verification found of one archive.

    Attributes:
        documents: how many it holds.
        problems: what is wrong with the payload, by document ("" for the whole); empty where all is well.
        lost: the documents that neither the payload nor history gives back.
        present: whether the payload is here.
    """

    name: str
    documents: int
    problems: Mapping[str, str]
    lost: tuple[str, ...] = ()
    present: bool = True

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong: the payload is whole, or is elsewhere and history has every document."""
        return not self.problems and not self.lost


class Archives:
    """The archived iterations of one workspace. May be used from several threads."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._kept: dict[str, tuple[Facts, Index, dict[str, Member]]] = {}
        self._closed: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._listing: tuple[Facts | None, dict[int, tuple[str, ...]]] | None = None
        self._frames: OrderedDict[tuple[str, str, int], bytes] = OrderedDict()

    # -- which there are ------------------------------------------------------------------------------------------
    def stamp(self) -> Mapping[str, str]:
        """By archive a text that changes when its index does: whoever keeps rows of it need not read it again."""
        found = {}
        for entry in self._parts.seen.scan(ARCHIVE):
            name = entry.path.removeprefix(f"{ARCHIVE}/").removesuffix(INDEX_SUFFIX)
            if entry.regular and entry.path.endswith(INDEX_SUFFIX) and is_name(name):
                found[name] = f"{entry.size}-{entry.mtime_ns}-{entry.ctime_ns}-{entry.inode}"
        return dict(sorted(found.items(), key=lambda row: order(row[0])))

    def periods(self) -> Sequence[Period]:
        """The archives, oldest first.

        Raises:
            ArchiveInvalid: an index is damaged.
        """
        return [self._period(self.index(name)) for name in self.stamp()]

    def iterations(self) -> Mapping[int, tuple[str, ...]]:
        """The iterations that archives hold, each with the names of its archives, newest first.

        An archive whose index is damaged is left out: ``verify`` says what is wrong with it.
        """
        mark = self._mark()
        with self._guard:
            if mark is not None and self._listing is not None and self._listing[0] == mark:
                return self._listing[1]
        found: dict[int, tuple[str, ...]] = {}
        closed: dict[str, tuple[str, tuple[int, ...]]] = {}
        for name, stamp in self.stamp().items():
            with suppress(ArchiveInvalid, FileNotFoundError):
                known = self._closed.get(name)
                numbers = known[1] if known and known[0] == stamp else tuple(self.index(name).closed)
                closed[name] = (stamp, numbers)
                for number in numbers:
                    found[number] = (name, *found.get(number, ()))
        with self._guard:
            self._listing, self._closed = (mark, found), closed
        return found

    def _mark(self) -> Facts | None:
        """What changes when an archive comes or goes; None while the folder changed too lately to tell by its times."""
        try:
            facts = os.stat(self._parts.tree.root / ARCHIVE, follow_symlinks=False)
        except OSError:
            return None
        settled = time.time_ns() - facts.st_mtime_ns > _SETTLED_NS
        return (0, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino) if settled else None

    def index(self, name: str) -> Index:
        """An archive's index.

        Raises:
            FileNotFoundError: there is no such archive.
            ArchiveInvalid: it is damaged.
        """
        self._parts.require_open()
        return self._entry(name)[0]

    def members(self, name: str) -> Iterator[Member]:
        """What an archive holds, with the rows for the index of states.

        Raises:
            FileNotFoundError, ArchiveInvalid: as ``index``.
        """
        yield from self.index(name).members

    def find(self, path: str) -> Place | None:
        """The newest archive that holds a document, and where in it; None where none does."""
        self._parts.require_open()
        number = iteration_of(path)
        for name in self.iterations().get(number, ()) if number is not None else ():
            index, by_path = self._entry(name)
            if path in by_path:
                return index, by_path[path]
        return None

    def period_of(self, path: str) -> str:
        """The name of the archive that holds a document, "" where none does."""
        self._parts.require_open()
        found = self.find(path)
        return found[0].name if found else ""

    def of_iteration(self, number: int) -> dict[str, Place]:
        """What archives hold of an iteration, by path; of several versions the newest."""
        found: dict[str, Place] = {}
        for name in reversed(self.iterations().get(number, ())):
            index, by_path = self._entry(name)
            found |= {path: (index, one) for path, one in by_path.items() if iteration_of(path) == number}
        return found

    # -- reading --------------------------------------------------------------------------------------------------
    def read(self, path: str) -> bytes:
        """The bytes of an archived document, verified.

        Raises:
            FileNotFoundError: no archive holds it.
            ArchiveInvalid: one does, but neither its payload nor history gives the bytes.
        """
        found = self.find(path)
        if found is None:
            for name in self.stamp():
                self.index(name)  # one that is damaged may have held it, and says so
            raise FileNotFoundError(path)
        return self.content(*found)

    def content(self, index: Index, member: Member) -> bytes:
        """A document's bytes, from the payload or from history.

        Raises:
            ArchiveInvalid: neither gives them.
        """
        if member.bytes > _IN_MEMORY:
            raise ArchiveInvalid("too large to be read at once", path=member.path, hint="memfs archive unpack")
        try:
            return self._from_payload(index, member)
        except ArchiveInvalid as error:
            return self._from_history(member, error.message)

    def chunks(self, index: Index, member: Member) -> Iterator[bytes]:
        """A file's bytes, from the payload alone, for what is too large to be held; right only when all were given.

        Raises:
            ArchiveInvalid: the payload is not there, or damaged.
        """
        with self.open_payload(index.name) as fd:
            yield from Payload(fd, index.frames, payload_path(index.name)).chunks(member)

    @contextmanager
    def open_payload(self, name: str) -> Iterator[int]:
        """A descriptor of an archive's payload.

        Raises:
            ArchiveInvalid: it is not here.
        """
        path = payload_path(name)
        try:
            fd = self._parts.tree.open_read(path)
        except FileNotFoundError:
            raise ArchiveInvalid("the archive's payload is not here", path=path, hint=_BRING) from None
        try:
            yield fd
        finally:
            os.close(fd)

    def forget(self) -> None:
        """Let go of what is kept in memory: the next read asks the disk."""
        with self._guard:
            self._frames.clear()
            self._listing = None

    def _from_payload(self, index: Index, member: Member) -> bytes:
        frame = index.frames[member.frame]
        if frame.raw > _LARGEST_KEPT:
            return b"".join(self.chunks(index, member))
        data = self._frame(index, member.frame)[member.offset : member.offset + member.bytes]
        if hashlib.sha256(data).hexdigest() != member.sha256:
            raise damaged(f"{member.path} is not what was archived", payload_path(index.name))
        return data

    def _frame(self, index: Index, number: int) -> bytes:
        """What a frame decompresses to; the last few are kept, as documents of one iteration lie side by side."""
        key = (index.name, index.sha256, number)
        with self._guard:
            if key in self._frames:
                self._frames.move_to_end(key)
                return self._frames[key]
        path = payload_path(index.name)
        with self.open_payload(index.name) as fd:
            try:
                data = Payload(fd, index.frames, path).frame(number)(index.frames[number].raw)
            except CorruptRecord as error:
                raise damaged(error.message, path) from None
        with self._guard:
            self._frames[key] = data
            while len(self._frames) > _KEPT:
                self._frames.popitem(last=False)
        return data

    def _from_history(self, member: Member, why: str) -> bytes:
        """The document's bytes by the name that git has for them."""
        try:
            data = self._parts.repository.blob(member.blob) if member.blob else b""
        except HistoryError as error:
            why, data = f"{why}; in history: {error.message}", b""
        if hashlib.sha256(data).hexdigest() == member.sha256:
            return data
        raise ArchiveInvalid(why, path=member.path, hint=_BRING)

    # -- proof ----------------------------------------------------------------------------------------------------
    def verify(self, period: str | None = None) -> Sequence[Verdict]:
        """Read the payloads from end to end, and see which documents would be lost.

        Args:
            period: only this archive.

        Raises:
            FileNotFoundError: there is no such archive.
        """
        names = [period] if period is not None else list(self.stamp())
        return [self._verdict(name) for name in names]

    def _verdict(self, name: str) -> Verdict:
        try:
            index = self.index(name)
        except ArchiveInvalid as error:
            return Verdict(name=name, documents=0, problems={"": str(error)})
        try:
            with self.open_payload(name) as fd:
                wrong = verify(fd, index.frames, index.members, payload_path(name))
        except ArchiveInvalid:
            gone = self._lost(index.members)
            return Verdict(name=name, documents=len(index.members), problems={}, lost=gone, present=False)
        if "" in wrong and len(wrong) == 1:
            lost: tuple[str, ...] = ()
        else:
            lost = self._lost(one for one in index.members if one.path in wrong)
        return Verdict(name=name, documents=len(index.members), problems=wrong, lost=lost)

    def _lost(self, members: Iterable[Member]) -> tuple[str, ...]:
        """Those that history does not give back."""
        gone = []
        for member in members:
            try:
                self._from_history(member, "")
            except ArchiveInvalid:
                gone.append(member.path)
        return tuple(gone)

    # -- internal -------------------------------------------------------------------------------------------------
    def _entry(self, name: str) -> tuple[Index, dict[str, Member]]:
        """An archive's index, and what it holds by path; read again only when its file changed."""
        path = index_path(name)
        entry = self._parts.seen.entry(path) if is_name(name) else None
        if entry is None:
            raise FileNotFoundError(path)
        facts = (entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode)
        with self._guard:
            kept = self._kept.pop(name, None)
            if kept is not None and kept[0] == facts:
                self._kept[name] = kept  # the one used last is let go last
                return kept[1], kept[2]
        index = decode(self._parts.seen.read(path, INDEX_LIMIT).data, path)
        by_path = {member.path: member for member in index.members}
        with self._guard:
            self._kept[name] = (facts, index, by_path)
            held = sum(len(members) for _, _, members in self._kept.values())
            for other in [one for one in self._kept if one != name]:
                if held <= _MOST_MEMBERS:
                    break
                held -= len(self._kept.pop(other)[2])
        return index, by_path

    def _period(self, index: Index) -> Period:
        entry = self._parts.tree.entry(payload_path(index.name))
        return Period(
            name=index.name,
            iterations=tuple(sorted(index.closed)),
            unpacked=tuple(sorted(index.unpacked)),
            created=index.created,
            documents=len(index.members),
            bytes=index.raw,
            packed=index.bytes,
            present=entry is not None and entry.regular,
        )


def order(name: str) -> tuple[str, int]:
    """What sorts archives by month, and those of one month as they were made."""
    month, _, turn = name.partition("_")
    return month, int(turn or 1)
