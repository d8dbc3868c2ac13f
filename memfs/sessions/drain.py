"""Make memories of the events that wait in the spool.

Each event becomes memories once, whatever is killed: memories are stored under ids that follow from the events, then
the notes record how far the spool was read, then the events are removed. An event of which nothing can be made is set
aside.
"""

from __future__ import annotations

import time
from contextlib import suppress
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

from memfs import private
from memfs.dataclass import dataclass
from memfs.errors import ContentError, DuplicateId, IdExists, IdInvalid, LockTimeout, MemfsError
from memfs.format.secrets import find
from memfs.fs import append_log, io
from memfs.fs.lock import FileLock
from memfs.model import MemoryItem, Query
from memfs.model.suggestion import Keep
from memfs.model.time import time_in
from memfs.private import Project
from memfs.sessions.extract import hear
from memfs.sessions.session_items import MessageJudge, judge_of
from memfs.sessions.spool import (
    SUFFIX,
    PendingEvent,
    SessionNotes,
    Spool,
    file_name,
    noted_sessions,
    read_notes,
    write_notes,
)
from memfs.sessions.store import Keeper, keep_heard
from memfs.workspace import Workspace, open_workspace

DIES_AFTER = timedelta(hours=12)
"""A session of which nothing was heard for so long has ended, though nobody said so."""
_AT_ONCE = 512
_AT_FIRST = 64
_SMALLER = 8
_GIVE_UP = 6
_WAITS = 5.0
_UNFIT = (ContentError, IdInvalid, DuplicateId)


@dataclass(slots=True)
class DrainResult:
    """What one drain did.

    Attributes:
        events: how many events were taken.
        stored: the ids of items that were written or closed.
        refused: why something was not stored, one sentence each, a secret by its rule's name only; and why the model
            that judges what is said gave no answer.
        consolidated: the sessions whose working memory was consolidated.
        left: how many events still wait: another process is at them, or the time was over.
    """

    events: int = 0
    stored: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    consolidated: tuple[str, ...] = ()
    left: int = 0


class Drain:
    """Makes waiting events of one workspace into memories. Two at once take turns; neither does what the other did."""

    def __init__(self, workspace: Workspace, folder: Path | None = None) -> None:
        """``folder``: that from which files are named, the workspace's own by default."""
        self._workspace = workspace
        self._folder = folder or workspace.root
        self._spool = Spool(workspace.repository.state)
        self._keeper = Keeper(workspace)
        self._judge: MessageJudge = MessageJudge()

    def run(self, session: str | None = None, seconds: float = 30.0, *, others: bool = False) -> DrainResult:
        """Take what waits. One drain of a session is one commit; a person's corrections have commits of their own.

        A session that ended is consolidated when all it reported was taken.

        Args:
            session: only of this session; None: of all, and sessions that died are ended.
            seconds: begin nothing further after so long. Events are taken in portions that fit into what is left of it.
            others: after this session take what other sessions left behind, as far as there is time.

        Raises:
            StorageIO, LockTimeout: the workspace takes no writes; what waits is kept.
        """
        done, until = DrainResult(), time.monotonic() + seconds
        if not self._spool.folder.is_dir():
            return DrainResult()
        self._judge = judge_of(self._workspace.settings.review, until)
        lock = FileLock(self._spool.folder / append_log.LOCK)
        try:
            with lock.hold("make memories of a session", timeout=min(seconds, _WAITS)):
                self._sweep()
                for one in self._names(session, others):
                    if time.monotonic() > until:
                        break
                    self._take(one, until, done, ending=session is None)
        except LockTimeout as error:
            if error.path != str(lock.path):
                raise
        done.refused += tuple(self._judge.absent)
        done.left = self._spool.waiting()
        return done

    def _names(self, session: str | None, others: bool) -> list[str]:
        """The sessions concerned, as their files are called: those that wait longest first, then those that rest."""
        if session is not None and not others:
            return [file_name(session)]
        waiting = [path.name.removesuffix(append_log.SUFFIX) for path in append_log.waiting(self._spool.folder)]
        if session is not None:
            return list(dict.fromkeys([file_name(session), *waiting]))
        resting = sorted(path.name.removesuffix(SUFFIX) for path in noted_sessions(self._spool.folder))
        return list(dict.fromkeys([*waiting, *resting]))

    def _take(self, name: str, until: float, done: DrainResult, *, ending: bool) -> None:
        path = self._spool.folder / f"{name}{append_log.SUFFIX}"
        kept = self._spool.folder / f"{name}{SUFFIX}"
        notes = read_notes(kept)
        if not self._tidied(path, name, notes, done):
            return
        most = _fitting(_AT_FIRST, 1.0, min(until - time.monotonic(), 1.0))
        while (began := time.monotonic()) < until:
            found = self._spool.look(path)
            if not found.events:
                if found.end:  # what is no event, nobody will ever take
                    append_log.take_away(path, found.end)
                break
            notes = self._chunk(path, kept, notes, found.events[:most], done)
            most = _fitting(most, time.monotonic() - began, until - time.monotonic())
        else:
            return
        if notes.session and (notes.ended or (ending and self._died(notes))):
            self._end(kept, notes, done)

    def _chunk(
        self, path: Path, kept: Path, notes: SessionNotes, events: list[PendingEvent], done: DrainResult
    ) -> SessionNotes:
        """Take some events: fewer each time that was begun and not finished, and none that never could be."""
        notes.tries = notes.tries + 1 if notes.head == events[0].key else 1
        notes.head = events[0].key
        if notes.tries > _GIVE_UP:
            told = self._aside(kept.name.partition(".")[0], events[0].text)
            done.refused += (f"an event {events[0].event.name} could not be taken, and {told}",)
            after, taken = deepcopy(notes), events[:1]
            after.upto, after.last = taken[-1].end, taken[-1].key
        else:
            write_notes(kept, notes)
            taken = events[: max(_AT_ONCE // _SMALLER ** (notes.tries - 1), 1)]
            try:
                after = self._stored(kept, notes, taken, done)
            except _UNFIT:  # something in them never can be stored: fewer at once show which
                return notes
        after.tries, after.head = 0, ""
        write_notes(kept, after)
        append_log.take_away(path, after.upto)
        after.upto, after.last = 0, ""
        done.events += len(taken)
        return after

    def _stored(self, kept: Path, notes: SessionNotes, taken: list[PendingEvent], done: DrainResult) -> SessionNotes:
        """Store what events tell, and return the notes as they are then."""
        warned = self._workspace.sources.warned.of
        source = taken[-1].event.client
        try:
            after = deepcopy(notes)
            stored, refused = self._keeper.keep(hear(taken, after, self._folder, warned, self._judge), source)
        except _UNFIT:
            raise
        except MemfsError:  # the disk or a lock, and not the events: that is no try
            notes.tries -= 1
            with suppress(MemfsError):
                write_notes(kept, notes)
            raise
        done.stored += tuple(stored)
        done.refused += tuple(refused)
        return after

    def _tidied(self, path: Path, name: str, notes: SessionNotes, done: DrainResult) -> bool:
        """Remove what was taken before, and keep aside what cannot be read; false where the file is none of ours."""
        try:
            found = self._spool.look(path)
        except MemfsError as error:
            done.refused += (f"events could not be read: {error.message}",)
            return False
        if any((one.end, one.key) == (notes.upto, notes.last) for one in found.events):
            append_log.take_away(path, notes.upto)
        notes.upto, notes.last = 0, ""
        for row in found.damaged:
            told = self._aside(name, row)
            done.refused += (f"an event could not be read, and {told}",)
        if found.damaged:
            append_log.keep_only(path, lambda _: True)
        return True

    def _aside(self, name: str, text: bytes) -> str:
        """Keep aside what nothing could be made of, and say so; what may be a secret stays nowhere."""
        found = find(text.decode("utf-8", "replace"))
        if found:
            return f"was dropped: it holds what looks like {found[0].what}"
        append_log.set_aside(self._spool.folder, name, text)
        return "was kept aside"

    def _sweep(self) -> None:
        """Remove what drains left that were killed: it may hold what was refused since."""
        io.sweep(self._spool.folder)
        io.sweep(self._spool.folder / append_log.ASIDE)

    def _died(self, notes: SessionNotes) -> bool:
        heard = time_in(notes.heard)
        return heard is not None and self._workspace.parts.clock() - heard > DIES_AFTER

    def _end(self, kept: Path, notes: SessionNotes, done: DrainResult) -> None:
        """Consolidate a session's working memory, commit what waits for its end, and forget what was noted of it.

        Where nothing is to be learned the working memory stays, and expires.
        """
        keep = keep_heard(self._workspace, "patterns")
        if keep is not Keep.OFF:
            self._workspace.consolidation.run(notes.session, suggest=keep is Keep.SUGGEST)
            done.consolidated += (notes.session,)
        if self._workspace.settings.history.commit == "session":
            self._workspace.store.flush(adopt=False)
        io.unlink(kept, missing_ok=True)


def _fitting(portion: int, took: float, left: float) -> int:
    """How many events to take next, where so many took so long and so many seconds are left."""
    return max(min(_AT_ONCE, 4 * portion, int(portion * left / max(took, 0.001))), 1)


# -- bringing along -----------------------------------------------------------------------------------------------
_JOIN_SECONDS = 60.0


def join(project: Project, folder: Path) -> int:
    """Let a project use the private memory in a folder; killed anywhere, another call goes on, and nothing is lost.

    Returns:
        How many memories of its own the project brought along; that private memory is removed then.

    Raises:
        StorageReadOnly: the project's git folder cannot be written, or there is no private memory in the folder.
        StorageIO, LockTimeout: what it had could not be brought along; it stays where it is.
    """
    before = private.find(project)
    if before is None or before == folder:
        private.join(project, folder)
        return 0
    brought = _copied(before, folder)
    private.join(project, folder)
    brought += _copied(before, folder)  # what hooks reported meanwhile
    private.forget(before)
    return brought


def _copied(before: Path, folder: Path) -> int:
    """Copy what is not there yet, pending events of sessions included."""
    with open_workspace(before, watch=False) as own, open_workspace(folder, watch=False) as other:
        Drain(own).run(seconds=_JOIN_SECONDS)
        own.store.refresh()
        items = own.store.readable(own.store.every(Query()))
        return sum(_put(other, item) for item in items if not other.store.locate(item.id))


def _put(other: Workspace, item: MemoryItem) -> bool:
    try:
        other.store.put(item.replace(path="", sha256=""), expected="", source="join")
    except IdExists:  # somebody brought it at this very moment
        return False
    return True
