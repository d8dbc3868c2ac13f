"""Store what a session's events say, as one commit.

A task that is done again updates its item, intentions that were carried out are closed, and what is refused is
reported.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from memfs import private
from memfs.errors import Conflict, ContentError, IdExists, IdInvalid
from memfs.format.secrets import refuse_item
from memfs.intake.episode_item import episode_of, item_of
from memfs.model import MemoryItem, Query
from memfs.model.episode import Episode
from memfs.model.suggestion import Keep, Source, Suggestion, SuggestionDecision
from memfs.model.time import time_in
from memfs.recall.conflict_notes import FINISHED
from memfs.sessions import session_items
from memfs.sessions.event import SessionEvent
from memfs.sessions.extract import Heard
from memfs.sessions.session_items import PENDING, PROSPECTIVE, WORKING, pieces
from memfs.store.store import retry_on_conflict
from memfs.store.values import Batch
from memfs.workspace import Workspace

if TYPE_CHECKING:
    from memfs.store.reader import Reader

_TRIES = 8
_MOST_PENDING = 500


def open_intentions(store: Reader, limit: int = _MOST_PENDING) -> list[MemoryItem]:
    """The intentions that nobody has carried out or dropped, the newest first."""
    query = Query(types=frozenset({PROSPECTIVE}), limit=limit)
    return [item for item in store.select(query) if item.status not in FINISHED]


def keep_heard(workspace: Workspace, part: str) -> Keep:
    """What becomes of what a session teaches; ``part`` as for ``Learner.keep``.

    In private memory and in the user's own workspace, which nobody else sees, it is written unless a setting says
    otherwise.
    """
    return workspace.learner.keep(part, private=_is_own(workspace))


def _is_own(workspace: Workspace) -> bool:
    return private.holds(workspace.root) or workspace.root == private.projects_folder().parent


class Keeper:
    """Stores what events tell in one workspace.

    Where others read it, too, nothing is written that quotes what a person typed: it is suggested in the inbox, which
    stays on this machine.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def keep(self, heard: Heard, source: str) -> tuple[list[str], list[str]]:
        """Store it, all in one commit but for a person's corrections, which are that person's own.

        Args:
            source: which program reported it, for the commit's trailers.

        Returns:
            The ids of the items that were written, and why others were not.

        Raises:
            Conflict: others kept changing the same files.
            ContentError, IdInvalid, DuplicateId: one of these cannot be stored, and that does not change.
            StorageIO, LockTimeout: nothing of the commit was stored.
        """
        refused: list[str] = []
        with self._workspace.store.looking_once():
            stored = self._corrections(heard, source, refused)

        def carried_out() -> _Attempt:
            attempt = _Attempt(self._workspace, heard, source)
            attempt.carry_out()
            return attempt

        done = retry_on_conflict(carried_out, tries=_TRIES, on=(Conflict, ContentError))
        done.suggest()
        done.tell_occasions()
        return [*stored, *done.written], [*refused, *done.refused]

    def _corrections(self, heard: Heard, source: str, refused: list[str]) -> list[str]:
        """Keep or suggest what a person was heard to prefer; return the ids of what was stored."""
        keep = keep_heard(self._workspace, "rules")
        stored: list[str] = []
        for text, event in heard.corrections if keep is not Keep.OFF else ():
            preferences, agent = self._workspace.sources.preferences, event.agent or event.client
            try:
                if keep is Keep.SUGGEST:
                    preferences.suggest(text, self._workspace.inbox, session=event.session, agent=agent)
                    continue
                kept = preferences.record(text, session=event.session, agent=agent, source=source)
                stored += [item.id for item in kept]
            except ContentError as error:
                refused.append(f"a correction was not stored: {error.message}")
        return stored


class _Attempt:
    """One try at storing."""

    def __init__(self, workspace: Workspace, heard: Heard, source: str) -> None:
        self._workspace, self._store = workspace, workspace.store
        self._heard, self._source = heard, source
        self.written: list[str] = []
        self.refused: list[str] = []
        self._new: list[MemoryItem] = []
        self._quoting: dict[str, MemoryItem] = {}
        self._done: list[str] = []
        self._episodes: list[tuple[Episode, MemoryItem]] = []

    def carry_out(self) -> None:
        """Plan each item, and store them together."""
        count = len(self._heard.items) + len(self._heard.done) + len(self._heard.episodes)
        if not count and not self._heard.reports:
            return
        remembered = f"Remember what a session told ({count} {'memories' if count > 1 else 'memory'})"
        message = remembered if count else "Note what a session reports as done"
        items = dict(self._heard.items)
        # One look at the files for all of it; what somebody changes after it, the batch refuses to overwrite.
        with self._store.looking_once(), self._store.batch(message, source=self._source) as batch:
            for task in self._heard.done.values():
                self._task(batch, task, items)
            for sentence, event in self._heard.reports:
                self._report(batch, sentence, event, items)
            for item in items.values():
                self._create(batch, item)
            for episode in self._heard.episodes:
                self._episode(batch, episode)

    def suggest(self) -> None:
        """Suggest what may not be written here, and withdraw what was suggested to be done and is done."""
        now, inbox = self._workspace.parts.clock(), self._workspace.inbox
        try:
            inbox.add(
                Suggestion(item=item, source=Source.SESSION, made=now, reason=f"said in session {item.origin.session}")
                for item in self._quoting.values()
            )
            inbox.drop(self._done)
        except ContentError as error:
            self.refused.append(f"what a session told was not suggested: {error.message}")

    def tell_occasions(self) -> None:
        """Let those know who learn from what was stored."""
        fire = self._workspace.behaviours.fire
        for item in self._new:
            if item.type != WORKING:
                fire("memory_stored", {"item": item})
        for episode, item in self._episodes:
            fire("episode_recorded", {"episode": episode, "item": item})
        if tasks := [item for item in self._heard.done.values() if item.id in self.written]:
            names = "; ".join(item.content.partition("\n")[0] for item in tasks)
            fire("task_completed", {"task": names, "outcome": names})  # what else the session said is read already

    def _task(self, batch: Batch, task: MemoryItem, items: dict[str, MemoryItem]) -> None:
        known = self._store.peek(task.id)
        if known is None:
            if not self._create(batch, task) and task.content.count("\n"):  # without its steps it may be kept
                self._create(batch, task.replace(content=task.content.partition("\n")[0]))
        else:
            self._change(batch, session_items.again(known, task), known)
        for item in session_items.finished(task, [one for one in items.values() if one.type == PROSPECTIVE]):
            items[item.id] = session_items.closed(item, task.id)
        self._done += [item.id for item in session_items.finished(task, self._wished)]
        for item in session_items.finished(task, self._open):
            if item.id not in items and item.context.get("project") == task.context.get("project"):
                self._change(batch, session_items.closed(item, task.id), item)

    def _report(self, batch: Batch, sentence: str, event: SessionEvent, items: dict[str, MemoryItem]) -> None:
        """Close what was meant in the same session before, and is reported as done."""
        moment = time_in(event.moment)

        def meant(item: MemoryItem) -> bool:
            before = item.timestamp is None or moment is None or item.timestamp <= moment
            return before and item.origin.session == event.session and item.status not in FINISHED

        fresh = [one for one in items.values() if one.type == PROSPECTIVE and meant(one)]
        for item in session_items.reported(sentence, fresh):
            items[item.id] = session_items.closed(item, session_items.REPORT)
        self._done += [item.id for item in session_items.reported(sentence, filter(meant, self._wished))]
        for item in session_items.reported(sentence, filter(meant, self._open)):
            if item.id not in items:
                self._change(batch, session_items.closed(item, session_items.REPORT), item)

    def _create(self, batch: Batch, item: MemoryItem) -> bool:
        """Plan a new item; what is there already says the same. False where it is refused."""
        if item.type == PROSPECTIVE and (known := self._store.peek(item.id)) is not None:
            self._again_intended(batch, known, item)
            return True
        if self._quotes(item):
            return self._suggested(item)
        try:
            stored = batch.put(item, expected="")
        except IdExists:
            return True
        except (ContentError, IdInvalid) as error:  # a secret, too: reported by its rule's name
            self.refused.append(f"a {item.type} memory was not stored: {error.message}")
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

    def _suggested(self, item: MemoryItem) -> bool:
        """Plan a suggestion; false where it could be no memory."""
        try:
            refuse_item(item)
        except ContentError as error:
            self.refused.append(f"a {item.type} memory was not suggested: {error.message}")
            return False
        if item.status not in FINISHED and not self._store.locate(item.id):
            self._quoting[item.id] = item
        return True

    @cached_property
    def _typed(self) -> set[str] | None:
        """Of all that is known to be typed, what a quotation would hold; None where memory may quote."""
        if _is_own(self._workspace) or self._workspace.learner.by_program:
            return None
        query = Query(types=frozenset({WORKING}), limit=_MOST_PENDING)
        working = [item.content for item in self._store.select(query)]
        waiting = [one.item.content for one in self._waiting]
        return set(pieces([*self._heard.typed, *working, *waiting]))

    @cached_property
    def _waiting(self) -> list[Suggestion]:
        """What was heard of a person and is suggested."""
        try:
            found = self._workspace.inbox.all()
        except ContentError:  # said when something is added
            return []
        heard = (Source.SESSION, Source.PREFERENCE)
        return [one for one in found if one.source in heard and one.decision is not SuggestionDecision.ACCEPTED]

    @property
    def _wished(self) -> list[MemoryItem]:
        """What is suggested to be done."""
        return [one.item for one in self._waiting if one.item.type == PROSPECTIVE and not one.decision]

    def _again_intended(self, batch: Batch, known: MemoryItem, item: MemoryItem) -> None:
        """What was done once and is meant again is open again, unless this is what was heard then."""
        if known.status in FINISHED and item.status == PENDING and known.timestamp != item.timestamp:
            self._change(batch, known.replace(status=PENDING, timestamp=item.timestamp, metadata=item.metadata), known)

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
