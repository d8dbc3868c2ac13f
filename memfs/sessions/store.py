"""Make memories of the events that wait in the spool, as one commit.

Each event becomes memories once, whatever is killed: memories are stored under ids that follow from the events, then
the notes record how far the spool was read, then the events are removed. An event of which nothing can be made is
dropped. A task that is done again updates its item, intentions that were carried out are closed, and what is refused is
reported.
"""

from __future__ import annotations

import time
from contextlib import suppress
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path

from memfs import private
from memfs.dataclass import dataclass
from memfs.errors import Conflict, ContentError, DuplicateId, IdExists, IdInvalid, LockTimeout, MemfsError
from memfs.format.secrets import refuse_item
from memfs.fs import append_log, io
from memfs.fs.lock import FileLock
from memfs.intake.episode_item import episode_of, item_of
from memfs.model import MemoryItem, Query
from memfs.model.episode import Episode
from memfs.model.learning import Keep, Source, Suggestion, SuggestionDecision
from memfs.model.time import time_in
from memfs.private import Project
from memfs.recall.conflict_notes import FINISHED
from memfs.sessions import extract, spool
from memfs.sessions.extract import PENDING, PROSPECTIVE, WORKING, ExtractedMemories, extract_memories, pieces
from memfs.sessions.respond import MOST_PENDING, open_intentions
from memfs.sessions.spool import SessionEvent
from memfs.store.plan import Batch
from memfs.store.store import retry_on_conflict
from memfs.workspace import Workspace, open_workspace


def keep_extracted(workspace: Workspace, part: str) -> Keep:
    """What becomes of what a session teaches; ``part`` as for ``Learner.keep``.

    In private memory and in the user's own workspace, which no one else sees, it is written unless a setting says
    otherwise.
    """
    return workspace.learner.keep(part, private=_is_own(workspace))


def _is_own(workspace: Workspace) -> bool:
    return private.holds(workspace.root) or workspace.root == private.projects_folder().parent


def keep_memories(workspace: Workspace, extracted: ExtractedMemories, source: str) -> tuple[list[str], list[str]]:
    """Store what events report, all in one commit but for a person's corrections, which are that person's own.

    Where others read the workspace, too, nothing is written that quotes what a person typed: it is suggested in the
    inbox, which stays on this machine.

    Args:
        source: which program reported it, for the commit's trailers.

    Returns:
        The ids of the items that were written, and why others were not.

    Raises:
        Conflict: others kept changing the same files.
        ContentError, IdInvalid, DuplicateId: one of these cannot be stored, and that does not change.
        StorageIO, LockTimeout: nothing of the commit was stored.
    """
    stored: list[str] = []
    refused: list[str] = []
    keep = keep_extracted(workspace, "rules")
    with workspace.store.scan_once():
        for text, event in extracted.corrections if keep is not Keep.OFF else ():
            preferences, agent = workspace.sources.preferences, event.agent or event.client
            try:
                if keep is Keep.SUGGEST:
                    preferences.suggest(text, workspace.inbox, session=event.session, agent=agent)
                    continue
                kept = preferences.record(text, session=event.session, agent=agent, source=source)
                stored += [item.id for item in kept]
            except ContentError as error:
                refused.append(f"a correction was not stored: {error.message}")
    once = partial(_Attempt.carried_out, workspace, extracted, source)
    done = retry_on_conflict(once, tries=8, on=(Conflict, ContentError))
    done.finish()
    return [*stored, *done.written], [*refused, *done.refused]


class _Attempt:
    """One try at storing."""

    def __init__(self, workspace: Workspace, extracted: ExtractedMemories) -> None:
        self._workspace, self._store, self._extracted = workspace, workspace.store, extracted
        self.written: list[str] = []
        self.refused: list[str] = []
        self._new: list[MemoryItem] = []
        self._quoting: dict[str, MemoryItem] = {}
        self._done: list[str] = []
        self._episodes: list[tuple[Episode, MemoryItem]] = []

    @classmethod
    def carried_out(cls, workspace: Workspace, extracted: ExtractedMemories, source: str) -> _Attempt:
        """A try in which each item was planned, and all of them were stored together."""
        one, items = cls(workspace, extracted), dict(extracted.items)
        count = len(extracted.items) + len(extracted.done) + len(extracted.episodes)
        if not count and not extracted.reports:
            return one
        remembered = f"Remember what a session taught ({count} {'memories' if count > 1 else 'memory'})"
        message = remembered if count else "Note what a session reports as done"
        # One look at the files for all of it; what somebody changes after it, the batch refuses to overwrite.
        with workspace.store.scan_once(), workspace.store.batch(message, source=source) as batch:
            for task in extracted.done.values():
                one._task(batch, task, items)
            for sentence, event in extracted.reports:
                one._report(batch, sentence, event, items)
            for item in items.values():
                one._create(batch, item)
            for episode in extracted.episodes:
                one._episode(batch, episode)
        return one

    def finish(self) -> None:
        """Suggest what may not be written here, withdraw what was suggested to be done and is done, and let those know
        who learn from what was stored.
        """
        now, inbox = self._workspace.parts.clock(), self._workspace.inbox
        try:
            inbox.add(
                Suggestion(item=item, source=Source.SESSION, made=now, reason=f"said in session {item.origin.session}")
                for item in self._quoting.values()
            )
            inbox.drop(self._done)
        except ContentError as error:
            self.refused.append(f"what a session reported was not suggested: {error.message}")
        fire = self._workspace.behaviours.fire
        for item in self._new:
            if item.type != WORKING:
                fire("memory_stored", {"item": item})
        for episode, item in self._episodes:
            fire("episode_recorded", {"episode": episode, "item": item})
        if tasks := [item for item in self._extracted.done.values() if item.id in self.written]:
            names = "; ".join(item.content.partition("\n")[0] for item in tasks)
            fire("task_completed", {"task": names, "outcome": names})  # what else the session said is read already

    def _task(self, batch: Batch, task: MemoryItem, items: dict[str, MemoryItem]) -> None:
        known = self._store.peek(task.id)
        if known is None:
            if not self._create(batch, task) and task.content.count("\n"):  # without its steps it may be kept
                self._create(batch, task.replace(content=task.content.partition("\n")[0]))
        else:
            self._change(batch, extract.repeated_task(known, task), known)
        for item in extract.completed_intentions(task, [one for one in items.values() if one.type == PROSPECTIVE]):
            items[item.id] = extract.mark_done(item, task.id)
        self._done += [item.id for item in extract.completed_intentions(task, self._wished)]
        for item in extract.completed_intentions(task, self._open):
            if item.id not in items and item.context.get("project") == task.context.get("project"):
                self._change(batch, extract.mark_done(item, task.id), item)

    def _report(self, batch: Batch, sentence: str, event: SessionEvent, items: dict[str, MemoryItem]) -> None:
        """Close what was meant in the same session before, and is reported as done."""
        moment = time_in(event.moment)

        def meant(item: MemoryItem) -> bool:
            before = item.timestamp is None or moment is None or item.timestamp <= moment
            return before and item.origin.session == event.session and item.status not in FINISHED

        fresh = [one for one in items.values() if one.type == PROSPECTIVE and meant(one)]
        for item in extract.reported_intentions(sentence, fresh):
            items[item.id] = extract.mark_done(item, extract.REPORT)
        self._done += [item.id for item in extract.reported_intentions(sentence, filter(meant, self._wished))]
        for item in extract.reported_intentions(sentence, filter(meant, self._open)):
            if item.id not in items:
                self._change(batch, extract.mark_done(item, extract.REPORT), item)

    def _create(self, batch: Batch, item: MemoryItem) -> bool:
        """Plan a new item, or to suggest it; what is there already says the same. False where it is refused."""
        if item.type == PROSPECTIVE and (known := self._store.peek(item.id)) is not None:
            # what was done once and is meant again is open again, unless this is what was heard then
            if known.status in FINISHED and item.status == PENDING and known.timestamp != item.timestamp:
                again = known.replace(status=PENDING, timestamp=item.timestamp, metadata=item.metadata)
                self._change(batch, again, known)
            return True
        if self._quotes(item):
            try:
                refuse_item(item)
            except ContentError as error:
                self.refused.append(f"a memory of type {item.type} was not suggested: {error.message}")
                return False
            if item.status not in FINISHED and not self._store.locate(item.id):
                self._quoting[item.id] = item
            return True
        try:
            stored = batch.put(item, expected="")
        except IdExists:
            return True
        except (ContentError, IdInvalid) as error:  # a secret, too: reported by its rule's name
            self.refused.append(f"a memory of type {item.type} was not stored: {error.message}")
            return False
        self._new.append(stored)
        self.written.append(stored.id)
        return True

    def _quotes(self, item: MemoryItem) -> bool:
        """Whether it may not be written here: it quotes what a person typed, and is no working memory."""
        if self._typed is None or item.type == WORKING:
            return False
        held = (item.title, item.content, item.context, item.metadata, item.data)
        return item.origin.role == "user" or not self._typed.isdisjoint(pieces(held))

    @cached_property
    def _typed(self) -> set[str] | None:
        """Of all that is known to be typed, what a quotation would hold; None where memory may quote."""
        if _is_own(self._workspace) or self._workspace.learner.by_program:
            return None
        query = Query(types=frozenset({WORKING}), limit=MOST_PENDING)
        working = [item.content for item in self._store.select(query)]
        waiting = [one.item.content for one in self._waiting]
        return set(pieces([*self._extracted.typed, *working, *waiting]))

    @cached_property
    def _waiting(self) -> list[Suggestion]:
        """What was heard of a person and is suggested."""
        try:
            found = self._workspace.inbox.all()
        except ContentError:  # said when something is added
            return []
        sources = (Source.SESSION, Source.PREFERENCE)
        return [one for one in found if one.source in sources and one.decision is not SuggestionDecision.ACCEPTED]

    @property
    def _wished(self) -> list[MemoryItem]:
        """What is suggested to be done."""
        return [one.item for one in self._waiting if one.item.type == PROSPECTIVE and not one.decision]

    def _episode(self, batch: Batch, episode: Episode) -> None:
        try:
            item = item_of(episode)
        except ContentError as error:
            self.refused.append(f"what a step taught was not stored: {error.message}")
            return
        if self._create(batch, item) and self._new and self._new[-1].id == item.id:
            recorded = episode_of(self._new[-1])
            if recorded is not None:
                self._episodes.append((recorded, self._new[-1]))

    def _change(self, batch: Batch, item: MemoryItem, known: MemoryItem) -> None:
        if item == known or item.id in self.written:
            return
        try:
            batch.put(item, expected=known.sha256)
        except ContentError as error:
            self.refused.append(f"{known.id} was not brought up to date: {error.message}")
        else:
            self.written.append(item.id)

    @cached_property
    def _open(self) -> list[MemoryItem]:
        return open_intentions(self._store)


_AT_ONCE = 512
_AT_FIRST = 64
_SMALLER = 8
_GIVE_UP = 6
_UNFIT = (ContentError, IdInvalid, DuplicateId)


@dataclass(slots=True)
class DrainResult:
    """What one drain did.

    Attributes:
        events: how many events were taken.
        stored: the ids of items that were written or closed.
        refused: why something was not stored, one sentence each, a secret by its rule's name only.
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
        self._spool = spool.Spool(workspace.repository.state)

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
        lock = FileLock(self._spool.folder / append_log.LOCK)
        try:
            with lock.hold("make memories of a session", timeout=min(seconds, 5.0)):
                io.sweep(self._spool.folder)  # what killed drains left may hold what was refused since
                for one in self._names(session, others):
                    if time.monotonic() > until:
                        break
                    self._take(one, until, done, ending=session is None)
        except LockTimeout as error:
            if error.path != str(lock.path):
                raise
        done.left = self._spool.waiting()
        return done

    def _names(self, session: str | None, others: bool) -> list[str]:
        """The sessions concerned, as their files are called: those that wait longest first, then those that rest."""
        if session is not None and not others:
            return [spool.file_name(session)]
        waiting = [path.name.removesuffix(append_log.SUFFIX) for path in append_log.waiting(self._spool.folder)]
        if session is not None:
            return list(dict.fromkeys([spool.file_name(session), *waiting]))
        resting = sorted(path.name.removesuffix(spool.SUFFIX) for path in spool.noted_sessions(self._spool.folder))
        return list(dict.fromkeys([*waiting, *resting]))

    def _take(self, name: str, until: float, done: DrainResult, *, ending: bool) -> None:
        path = self._spool.folder / f"{name}{append_log.SUFFIX}"
        kept = self._spool.folder / f"{name}{spool.SUFFIX}"
        notes = spool.read_notes(kept)
        try:
            found = self._spool.look(path)
        except MemfsError as error:  # the file is none of ours
            done.refused += (f"events could not be read: {error.message}",)
            return
        if any((one.end, one.key) == (notes.upto, notes.last) for one in found.events):
            append_log.take_away(path, notes.upto)  # they were taken before
        notes.upto, notes.last = 0, ""
        if found.damaged:
            done.refused += (f"{len(found.damaged)} damaged lines of events were dropped",)
            append_log.keep_only(path, lambda _: True)
        most = _fitting(_AT_FIRST, 1.0, min(until - time.monotonic(), 1.0))
        while (began := time.monotonic()) < until:
            found = self._spool.look(path)
            if not found.events:
                if found.end:  # what is no event will never be taken
                    append_log.take_away(path, found.end)
                break
            notes = self._chunk(path, kept, notes, found.events[:most], done)
            most = _fitting(most, time.monotonic() - began, until - time.monotonic())
        else:
            return
        if notes.session and (notes.ended or (ending and spool.died(notes, self._workspace.parts.clock()))):
            self._end(kept, notes, done)

    def _chunk(
        self, path: Path, kept: Path, notes: spool.SessionNotes, events: list[spool.PendingEvent], done: DrainResult
    ) -> spool.SessionNotes:
        """Take some events: fewer each time that was begun and not finished, and none that never could be."""
        notes.tries = notes.tries + 1 if notes.head == events[0].key else 1
        notes.head = events[0].key
        if notes.tries > _GIVE_UP:
            done.refused += (f"an event {events[0].event.name} could not be taken, and was dropped",)
            after, taken = deepcopy(notes), events[:1]
            after.upto, after.last = taken[-1].end, taken[-1].key
        else:
            spool.write_notes(kept, notes)
            taken, after = events[: max(_AT_ONCE // _SMALLER ** (notes.tries - 1), 1)], deepcopy(notes)
            try:
                memories = extract_memories(taken, after, self._folder, self._workspace.sources.warned.of)
                stored, refused = keep_memories(self._workspace, memories, taken[-1].event.client)
            except _UNFIT:  # something in them never can be stored: fewer at once show which
                return notes
            except MemfsError:  # the disk or a lock, and not the events: that is no try
                notes.tries -= 1
                with suppress(MemfsError):
                    spool.write_notes(kept, notes)
                raise
            done.stored += tuple(stored)
            done.refused += tuple(refused)
        after.tries, after.head = 0, ""
        spool.write_notes(kept, after)
        append_log.take_away(path, after.upto)
        after.upto, after.last = 0, ""
        done.events += len(taken)
        return after

    def _end(self, kept: Path, notes: spool.SessionNotes, done: DrainResult) -> None:
        """Consolidate a session's working memory, commit what waits for its end, and forget what was noted of it.

        Where nothing is to be learned the working memory stays, and expires.
        """
        keep = keep_extracted(self._workspace, "patterns")
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


def join(project: Project, folder: Path) -> int:
    """Let a project use the private memory in a folder; killed anywhere, another call continues, and nothing is lost.

    Returns:
        How many memories the project brought along; that private memory is removed then.

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
        Drain(own).run(seconds=60.0)
        own.store.refresh()
        copied = 0
        for item in own.store.readable(own.store.every(Query())):
            if not other.store.locate(item.id):
                with suppress(IdExists):  # somebody brought it at this very moment
                    other.store.put(item.replace(path="", sha256=""), expected="", source="join")
                    copied += 1
        return copied
