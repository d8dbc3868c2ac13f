"""AgentPast: what memories said before, and the way back, by the tools an agent is given.

Owns that an agent names items by their ids alone, what "the version before" is, and that whatever is taken away can be
brought back by its id. Reading and rewinding history is ``memfs.upkeep.history``'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from memfs.errors import ContentError, HistoryError, HistoryUnavailable, ItemNotFound, MemfsError, SettingInvalid
from memfs.facades.agent_memory import UNBOUNDED, AgentMemory
from memfs.facades.caller import Caller
from memfs.history.quarantine import require_clean
from memfs.model import MemoryItem, Query, Recall
from memfs.model.ids import check_id, stem_of
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import utc_now
from memfs.pipeline.conventions import withheld
from memfs.store.signing import signed_by
from memfs.upkeep.recovered import RECOVERED, Recoverable

if TYPE_CHECKING:
    from memfs.history.log import Revision
    from memfs.teams.past import Past
    from memfs.workspace import Workspace

"""Names, in place of a revision, what was displaced before any commit held it."""
_COMMITTING = frozenset({"interval", "each", "batch"})
_VERSIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What was taken away, and a revision that holds it, or ``recovered``: "" while its commit waits, with why."""

    item: MemoryItem
    revision: str = ""
    waits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The item as it is again; from where: a revision, ``recovered``, ``pruned``; and whether anything changed."""

    item: MemoryItem
    origin: str
    changed: bool = True


class AgentPast:
    """The history of one workspace as an agent's tools see it (B5). Threads may share it."""

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    @property
    def _workspace(self) -> Workspace:
        return self._memory.workspace

    # -- reading ----------------------------------------------------------------------------------------------------
    def at(self, reference: str, revision: str) -> MemoryItem:
        """The item of an id as it was at a revision or date; of one that is gone, too.

        Raises:
            IdInvalid, HistoryUnavailable, ContentError.
            BranchQuarantined: nobody is to be given what that revision has.
        """
        self._settle()
        return self._read(self._named(reference), self._readable(revision))

    def past(self, revision: str) -> Past:
        """The memory at a revision or date.

        Raises:
            HistoryUnavailable.
            BranchQuarantined: nobody is to be given what that revision has.
        """
        self._settle()
        return self._workspace.teams.past.at(revision)

    def search(self, query: str, limit: int, within: Query | None, revision: str) -> tuple[Recall, Past]:
        """What was remembered about a question at a revision or date, and of when that is (B1).

        Args:
            within: whose filters restrict the items; None where nothing does.

        Raises:
            SettingInvalid: ``memory.on_demand`` is false.
            QueryInvalid: the question or a filter cannot be understood.
            HistoryUnavailable, BranchQuarantined: as ``past``.
        """
        memory = self._workspace.settings.memory
        if not memory.on_demand:
            raise SettingInvalid("agents may not ask", field="memory.on_demand", hint="set it to true")
        past = self.past(revision)
        asked = replace(within or Query(), text=query, limit=limit, max_tokens=memory.recall_tokens or UNBOUNDED)
        return past.recall.search(asked, leave_out=withheld), past

    def log(self, reference: str | None, limit: int, since: datetime | None = None) -> Sequence[Revision]:
        """The commits that changed the memory or one item, newest first.

        Raises:
            IdInvalid, ItemNotFound: no item ever had that id.
        """
        self._settle()
        return self._workspace.history.log(self._target(reference), limit=limit, since=since)

    def diff(self, reference: str | None, older: str, newer: str | None = None) -> tuple[str, str]:
        """What changed from a revision to another, or to the files as they are; and the older revision.

        Args:
            older: "" means the version before the last change: of the item, or of the memory.

        Raises:
            IdInvalid, ItemNotFound, HistoryUnavailable.
            BranchQuarantined: nobody is to be given what one of them has.
        """
        self._settle()
        target = self._target(reference)
        start = older or self._before(target)
        for revision in filter(None, (start, newer)):
            self._readable(revision)
        return self._workspace.history.diff(start, newer, target), start

    # -- taking away and bringing back --------------------------------------------------------------------------------
    def delete(self, item_id: str, reason: str, caller: Caller, expected: str | None = None) -> Deleted:
        """Take an item out of the files and out of recall; history holds it.

        Raises:
            ItemNotFound, Conflict, StorageIO: nothing was changed.
        """
        workspace = self._workspace
        item = self._memory.exactly(item_id)
        head, committed = workspace.repository.head().commit, self._committed(item)
        by_hand = not committed and workspace.settings.history.commit == "manual"
        if by_hand and (data := self._bytes(item.path)) is not None:
            workspace.recovered.keep(item.path, data)
        with signed_by(caller.origin):
            workspace.store.delete(item.id, expected=expected or item.sha256, reason=reason, source=caller.source)
        if committed:
            self._settle()
            return Deleted(item=item, revision=head or "")
        if by_hand:
            return Deleted(item=item, revision=RECOVERED)
        # what only the files or the journal hold goes into history: else there were no way back
        flushed = workspace.store.flush(adopt=False)
        if not flushed.commits:
            return Deleted(item=item, waits=flushed.reason or "its commit waits")
        return Deleted(item=item, revision=workspace.repository.resolve(f"{flushed.commits[-1]}~1"))

    def restore(self, item_id: str, revision: str, caller: Caller) -> Restored:
        """Bring an item back: as it was at a revision, what was displaced before a commit, or else its version before.

        Args:
            revision: a commit or date, ``recovered``, or "" for whatever it said before: of an item that is gone its
                last version, of another the one that differs from what it says.

        Raises:
            IdInvalid, ItemNotFound, HistoryUnavailable: there is no such version.
            Conflict: the file holds an edit that no commit holds.
        """
        with signed_by(caller.origin):
            return self._restored(self._named(item_id), revision, caller)

    def _restored(self, name: str, revision: str, caller: Caller) -> Restored:
        displaced = self._displaced(name)
        if revision == RECOVERED or (not revision and not self._there(name) and displaced):
            self._workspace.recovered.restore(displaced[0].name if displaced else name)
            return Restored(item=self._memory.exactly(name), origin=RECOVERED)
        if not revision and not self._there(name):
            with suppress(ItemNotFound):
                item = self._workspace.pruner.pruned.bring_back(name)
                return Restored(item=item, origin="pruned")
        self._settle()
        chosen = self._workspace.repository.resolve(revision) if revision else self._version_before(name)
        self._workspace.history.found_at(chosen, name)  # what is not there is not brought back by taking away
        done = self._workspace.history.rollback(chosen, name, source=caller.source)
        return Restored(item=self._memory.exactly(name), origin=chosen[:12], changed=bool(done.restored))

    # -- inside -------------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        """Commit what waits, where the policy lets memfs do so: history is asked for all that was written."""
        workspace = self._workspace
        if workspace.settings.history.commit in _COMMITTING:
            workspace.store.flush(adopt=False)

    def _readable(self, revision: str) -> str:
        """The commit that a revision names, where an agent may be given what it has."""
        repository = self._workspace.repository
        commit = repository.resolve(revision)
        require_clean(repository, commit)
        return commit

    def _named(self, reference: str) -> str:
        """The id that is meant, by its beginning too; what is gone or unreadable is meant by its whole id."""
        checked, store = check_id(reference), self._workspace.store
        with suppress(ContentError):
            if (found := store.get(checked)) is not None:
                return found.id
        begun = [one for one in store.following.ids() if one.casefold().startswith(checked.casefold())]
        return begun[0] if len(begun) == 1 else checked

    def _target(self, reference: str | None) -> str | None:
        return None if reference is None else self._named(reference)

    def _there(self, item_id: str) -> bool:
        return bool(self._workspace.store.locate(item_id))

    def _displaced(self, item_id: str) -> list[Recoverable]:
        return [row for row in self._workspace.recovered.list() if stem_of(row.path) == item_id]

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self._workspace.parts.seen.read(path, ITEM_LIMIT).data if path else None
        except FileNotFoundError:
            return None

    def _committed(self, item: MemoryItem) -> bool:
        """Whether HEAD holds the item as its file has it."""
        repository, data = self._workspace.repository, self._bytes(item.path)
        try:
            return data is not None and repository.head_blob(item.path) == repository.blob_id(data)
        except HistoryError:
            return False

    def _read(self, item_id: str, commit: str) -> MemoryItem:
        path, data = self._workspace.history.found_at(commit, item_id)
        return self._workspace.parts.codec.read(data, path, utc_now())

    def _before(self, target: str | None) -> str:
        """A revision from before the last change of an item, or of the memory."""
        if target is not None:
            with suppress(HistoryUnavailable):
                return self._version_before(target)
        commits = self._workspace.history.log(target, limit=1)
        head = self._workspace.repository.head().commit
        if head and not commits:  # all of it waits for its first commit
            return head
        parents = self._workspace.repository.commit_object(commits[0].commit).parents if commits else ()
        if not parents:
            raise HistoryUnavailable("there is nothing before the first commit", hint="memory_get shows what is there")
        return parents[0]

    def _version_before(self, item_id: str) -> str:
        """The newest commit in which the item says something else than it does now."""
        history, now = self._workspace.history, self._bytes(self._workspace.store.locate(item_id))
        for revision in history.log(item_id, limit=_VERSIONS):
            with suppress(MemfsError):  # it is not there in this one
                if history.found_at(revision.commit, item_id)[1] != now:
                    return revision.commit
        raise HistoryUnavailable(f"{item_id!r} has no earlier version", hint="memory_history shows what there is")
