"""What agents may do with a memory through tools: search, list, store, change, delete, restore and read history.

What an agent writes never passes as vouched for by a person. A change that names the version it was made from
overwrites no later edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.admin.history import RECOVERED
from memfs.admin.quota import numbers
from memfs.dataclass import dataclass, replace
from memfs.errors import ContentError, HistoryUnavailable, ItemNotFound, MemfsError, SettingInvalid
from memfs.facades.open_workspaces import Facade
from memfs.model import MemoryItem, Origin, Query, Recall
from memfs.model.ids import check_id, of_mount, stem_of, without_mount
from memfs.model.item import BY_TRUST, Trust, lower_trust
from memfs.model.kinds import CONVENTION, ITEM_LIMIT, PROPOSED
from memfs.model.learning import Keep
from memfs.model.time import utc_now
from memfs.recall.fence import withheld
from memfs.sessions.store import Reminder, keep_extracted, pending
from memfs.store.access_log import CORRECTED
from memfs.store.plan import signed_by
from memfs.store.reader import beginning
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.context.deliver import DeliveryResult
    from memfs.git.log import Revision
    from memfs.model.episode import StateSnapshot
    from memfs.model.learning import StoreResult
    from memfs.team.asof import Past
    from memfs.workspace import ForgetResult


SOURCE = "mcp"
"""The name in commit trailers of the door that agents' tools are behind."""
UNBOUNDED = 8000
"""The budget of an answer, in tokens, where the settings name none: a tool's answer is always bounded."""
_UNSEEN = frozenset({"tags", "expires"})
"""What an agent may change without taking from an item that somebody vouches for it."""
_TRIES = 5
_COMMITTING = frozenset({"interval", "each", "batch"})
_VERSIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredItem:
    """The item as it is again; from where: a revision, ``recovered``, ``pruned``; and whether anything changed."""

    item: MemoryItem
    origin: str
    changed: bool = True


class AgentMemory(Facade):
    """The memory of one workspace, and its history, as an agent's tools see it. Threads may share it."""

    # -- finding ----------------------------------------------------------------------------------------------------
    def search(self, query: str, limit: int, within: Query | None = None, *, agent: str = "") -> DeliveryResult:
        """What is remembered about a question, as quoted data.

        Args:
            within: whose filters restrict the items; None where nothing does.

        Raises:
            SettingInvalid: ``memory.on_demand`` is false.
            QueryInvalid: the question or a filter cannot be understood.
        """
        delivery = self.workspace.sources.delivery
        most = None if delivery.memory.recall_tokens else UNBOUNDED
        return delivery.recall(query, limit=limit, max_tokens=most, agent=agent, within=within)

    def get(self, reference: str) -> MemoryItem:
        """The item of an id, of the beginning of one, or of ``mount:id``.

        Raises:
            IdInvalid: no id can be so; a path is none.
            ItemNotFound, ContentError: it is not there, or its file is invalid at present.
        """
        if of_mount(reference):
            check_id(without_mount(reference))
            found = self.workspace.sources.mounts.find(reference)
        else:
            found = self.workspace.store.find(check_id(reference))
        self._handed([found.id])
        return found

    def listed(self, within: Query, size: int, past: Past | None = None) -> list[MemoryItem]:
        """The newest items that pass a query's filters. Conventions that are not accepted are there only where
        conventions are asked for.

        Args:
            past: whose items they are, None for those that there are.

        Raises:
            QueryInvalid: a filter cannot be understood.
        """
        store = self.workspace.store if past is None else past.store
        found = store.select(replace(within, text="", limit=size))
        items = [item for item in found if CONVENTION in within.types or not withheld(item)]
        self._handed([item.id for item in items])
        return items

    def _handed(self, ids: Sequence[str]) -> None:
        """Note that an agent was given items it named, or found in a list."""
        self.workspace.usage.served.note("read", ids, self.workspace.parts.clock())

    # -- writing ----------------------------------------------------------------------------------------------------
    def store(self, draft: MemoryItem, caller: Origin) -> StoreResult:
        """Keep what an agent says, durable on return; what is known already is united with it.

        Raises:
            SettingInvalid: there is no such type.
            ContentError (``SecretDetected``, too), StorageIO: nothing was stored.
        """
        self.workspace.kinds.get(draft.type)
        owned = draft.replace(trust=Trust.AGENT.value, origin=caller)
        if owned.type == CONVENTION:
            owned = owned.replace(status=PROPOSED)  # a team agrees, an agent does not
        with signed_by(caller):
            return self.workspace.intake.store(owned, review=False, source=SOURCE)

    def update(
        self, item_id: str, changes: Mapping[str, Any], caller: Origin, expected: str | None = None
    ) -> tuple[MemoryItem, MemoryItem]:
        """Change fields of an item; return it as it was and as it is.

        Text that only an agent has seen never passes as vouched for: who vouched for the item did so for what it
        said before.

        Args:
            expected: the sha256 that the agent last read; None means whatever is there.

        Raises:
            ItemNotFound, Conflict, ContentError, StorageIO: nothing was changed.
        """
        if "memory_type" in changes:
            self.workspace.kinds.get(changes["memory_type"])

        def updated() -> tuple[MemoryItem, MemoryItem]:
            """Where somebody else's change came between, that is kept, and ours made to it."""
            before = self.exactly(item_id)
            after = _changed(before, changes, caller)
            if after == before and expected in (None, before.sha256):
                return before, before
            read = before.sha256 if expected is None else expected
            with signed_by(caller):
                return before, self.workspace.store.put(after, read, source=SOURCE)

        done = updated() if expected is not None else retry_on_conflict(updated, tries=_TRIES)
        if done[0] != done[1]:
            self.workspace.usage.served.mark(CORRECTED, done[1].id, self.workspace.parts.clock())
        return done

    def feedback(self, item_id: str, helpful: bool, reason: str, caller: Origin) -> MemoryItem:
        """Let an item count for more or less; see ``Feedback.give``."""
        with signed_by(caller):
            return self.workspace.feedback.give(self.exactly(item_id).id, helpful, reason, source=SOURCE)

    def end_session(self, session: str) -> None:
        """Clear a session's working memory; what matters of it is kept, or suggested, as the settings say.

        Where nothing is to be learned the working memory stays, and expires.
        """
        keep = keep_extracted(self.workspace, "patterns")
        if keep is not Keep.OFF:
            self.workspace.consolidation.run(session, suggest=keep is Keep.SUGGEST)

    def exactly(self, item_id: str) -> MemoryItem:
        """The item with this very id, in this workspace: what is written must not be guessed.

        Raises:
            IdInvalid, ItemNotFound, ContentError.
        """
        self.require_own(item_id)
        return self.workspace.exactly(item_id)

    @staticmethod
    def require_own(item_id: str) -> None:
        """Refuse an id of a mounted workspace.

        Raises:
            ItemNotFound: it is one.
        """
        if of_mount(item_id):
            raise ItemNotFound(
                f"{ascii(item_id)[:80]} belongs to a mounted workspace, which is only read",
                hint="store what you want to add as a memory of this workspace",
            )

    # -- what is delivered------------------------------------------------------------------------------------------
    def beginning(self, agent: str = "") -> tuple[DeliveryResult, Sequence[Reminder]]:
        """What an agent gets at the start: the automatic memory, and what is still to be done."""
        from memfs.model.episode import StateSnapshot  # a server that is only connected to does without it

        delivery = self.workspace.sources.delivery
        most = None if delivery.memory.automatic_tokens else UNBOUNDED
        given, reminders = delivery.automatic(StateSnapshot(agent=agent), max_tokens=most), pending(self.workspace)
        ids, now = [one.id for one in reminders], self.workspace.parts.clock()
        self.workspace.usage.served.note("automatic", ids, now, agent=agent)
        return given, reminders

    def before_step(self, state: StateSnapshot) -> DeliveryResult:
        """What a situation brings to mind.

        Raises:
            QueryInvalid: the situation cannot be understood.
        """
        delivery = self.workspace.sources.delivery
        return delivery.triggered(state, max_tokens=None if delivery.memory.triggered_tokens else UNBOUNDED)

    def status(self) -> dict[str, Any]:
        """The state of the workspace: counts, history, and what is wrong, as plain values."""
        workspace = self.workspace
        types = numbers(workspace.store, workspace.parts).types
        waiting, head = workspace.store.pending(), workspace.repository.head()
        problems = [*workspace.store.problems(), *filter(None, [workspace.quota.problem])]
        return {
            "memories": sum(types.values()),
            "types": dict(sorted(types.items())),
            "branch": head.branch,
            "revision": (head.commit or "")[:12],
            "waiting": waiting.count,
            "waiting_reason": waiting.reason,
            "may_search": workspace.settings.memory.on_demand,
            "problems": problems,
        }

    # -- history ----------------------------------------------------------------------------------------------------
    def at(self, reference: str, revision: str) -> MemoryItem:
        """The item of an id as it was at a revision or date; of one that is gone, too.

        Raises:
            IdInvalid, HistoryUnavailable, ContentError.
        """
        self._settle()
        path, data = self.workspace.history.found_at(revision, self._named(reference))
        return self.workspace.parts.codec.read(data, path, utc_now())

    def past_at(self, revision: str) -> Past:
        """The memory at a revision or date.

        Raises:
            HistoryUnavailable.
        """
        self._settle()
        return self.workspace.teams.past.at(revision)

    def search_at(self, query: str, limit: int, within: Query | None, revision: str) -> tuple[Recall, Past]:
        """What was remembered about a question at a revision or date, and of when that is.

        Args:
            within: whose filters restrict the items; None where nothing does.

        Raises:
            SettingInvalid: ``memory.on_demand`` is false.
            QueryInvalid: the question or a filter cannot be understood.
            HistoryUnavailable: as ``past_at``.
        """
        memory = self.workspace.settings.memory
        if not memory.on_demand:
            raise SettingInvalid("agents may not ask", field="memory.on_demand", hint="set it to true")
        past = self.past_at(revision)
        asked = replace(within or Query(), text=query, limit=limit, max_tokens=memory.recall_tokens or UNBOUNDED)
        return past.recall.search(asked, leave_out=withheld), past

    def log(self, reference: str | None, limit: int, since: datetime | None = None) -> Sequence[Revision]:
        """The commits that changed the memory or one item, newest first.

        Raises:
            IdInvalid, ItemNotFound: no item ever had that id.
        """
        self._settle()
        target = None if reference is None else self._named(reference)
        return self.workspace.history.log(target, limit=limit, since=since)

    # -- taking away and bringing back --------------------------------------------------------------------------------
    def delete(self, item_id: str, reason: str, caller: Origin, expected: str | None = None) -> ForgetResult:
        """Take an item out of the files and out of recall; history holds it.

        Raises:
            ItemNotFound, Conflict, StorageIO: nothing was changed.
        """
        self.require_own(item_id)
        with signed_by(caller):
            gone = self.workspace.forget(item_id, reason, expected=expected, source=SOURCE)
        self._settle()
        return gone

    def restore(self, item_id: str, revision: str, caller: Origin) -> RestoredItem:
        """Bring an item back: as it was at a revision, what was displaced before a commit, or else its version before.

        Args:
            revision: a commit or date, ``recovered``, or "" for whatever it said before: of an item that is gone its
                last version, of another the one that differs from what it says.

        Raises:
            IdInvalid, ItemNotFound, HistoryUnavailable: there is no such version.
            Conflict: the file holds an edit that no commit holds.
        """
        with signed_by(caller):
            return self._restored(self._named(item_id), revision)

    def _restored(self, name: str, revision: str) -> RestoredItem:
        displaced = [row for row in self.workspace.recovered.list() if stem_of(row.path) == name]
        gone = not (revision or self.workspace.store.locate(name))
        if revision == RECOVERED or (gone and displaced):
            self.workspace.recovered.restore(displaced[0].name if displaced else name)
            return RestoredItem(item=self.exactly(name), origin=RECOVERED)
        if gone:
            with suppress(ItemNotFound):
                return RestoredItem(item=self.workspace.pruner.pruned.bring_back(name), origin="pruned")
        self._settle()
        chosen = self.workspace.repository.resolve(revision) if revision else self._version_before(name)
        self.workspace.history.found_at(chosen, name)  # what is not there is not brought back by taking away
        done = self.workspace.history.restore(chosen, name, source=SOURCE)
        return RestoredItem(item=self.exactly(name), origin=chosen[:12], changed=bool(done.restored))

    # -- inside -------------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        """Commit what waits, where the policy lets memfs do so: history is asked for all that was written."""
        if self.workspace.settings.history.commit in _COMMITTING:
            self.workspace.store.flush(adopt=False)

    def _named(self, reference: str) -> str:
        """The id that is meant, by its beginning too; what is gone or unreadable is meant by its whole id."""
        checked, store = check_id(reference), self.workspace.store
        with suppress(ContentError):
            if (found := store.get(checked)) is not None:
                return found.id
        begun = beginning(checked, store.index_sync.ids())
        return begun[0] if len(begun) == 1 else checked

    def _version_before(self, item_id: str) -> str:
        """The newest commit in which the item says something else than it does now."""
        history, path = self.workspace.history, self.workspace.store.locate(item_id)
        now: bytes | None = None
        with suppress(FileNotFoundError):
            now = self.workspace.parts.seen.read(path, ITEM_LIMIT).data if path else None
        for revision in history.log(item_id, limit=_VERSIONS):
            with suppress(MemfsError):  # it is not there in this one
                if history.found_at(revision.commit, item_id)[1] != now:
                    return revision.commit
        raise HistoryUnavailable(f"{item_id!r} has no earlier version", hint="memory_history shows what there is")


# -- changes --------------------------------------------------------------------------------------------------------
def _changed(before: MemoryItem, changes: Mapping[str, Any], caller: Origin) -> MemoryItem:
    after = before.replace(**changes)
    if (after.content, after.title) != (before.content, before.title):
        after = after.replace(origin=caller)  # it is the agent that says so
    done = {name for name in changes if getattr(after, name) != getattr(before, name)}
    unseen = _UNSEEN | ({"status"} if before.type == "prospective" else set())
    if done <= unseen or before.trust not in BY_TRUST:
        return after
    return after.replace(trust=lower_trust(before.trust, Trust.AGENT.value))
