"""AgentMemory: what an agent may do with a memory by the tools it is given.

Owns what every door with tools has in common: which names mean an item, what an agent's writing does to who vouches
for an item, and pages of what there is. What a tool is called, and the form of its answer, is the door's business;
history is that of ``memfs.facades.agent_past``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.capture.reminders import Reminder, pending
from memfs.capture.storing import keep_heard
from memfs.errors import Conflict, ItemNotFound, QueryInvalid
from memfs.facades.caller import Caller
from memfs.facades.opening import Facade
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.ids import check_id, of_mount, without_mount
from memfs.model.item import BY_TRUST, Trust, lower_trust
from memfs.model.query import MOST
from memfs.model.suggestion import Keep
from memfs.model.time import parse_time
from memfs.pipeline.conventions import KIND as CONVENTION
from memfs.pipeline.conventions import PROPOSED, withheld
from memfs.store.naming import not_found
from memfs.store.signing import signed_by
from memfs.upkeep.tally import numbers

if TYPE_CHECKING:
    from memfs.model.episode import StateSnapshot
    from memfs.model.review import StoreResult
    from memfs.sources.delivery import Delivered
    from memfs.store import Store
    from memfs.teams.past import Past
    from memfs.teams.paststore import PastStore

UNBOUNDED = 8000
"""The budget of an answer, in tokens, where the settings name none: a tool's answer is always bounded."""
_UNSEEN = frozenset({"tags", "expires"})
"""What an agent may change without taking from an item that somebody vouches for it."""
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some items, newest first, and where the next page begins: "" after the last."""

    items: tuple[MemoryItem, ...]
    cursor: str = ""


class AgentMemory(Facade):
    """The memory of one workspace as an agent's tools see it (B5). Threads may share it."""

    # -- finding ----------------------------------------------------------------------------------------------------
    def search(self, query: str, limit: int, within: Query | None = None, *, agent: str = "") -> Delivered:
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
        self._read([found.id])
        return found

    def page(self, within: Query, size: int, cursor: str = "", past: Past | None = None) -> Page:
        """The newest items that pass a query's filters, after those of the pages before.

        What is written meanwhile neither shifts nor repeats what follows. Conventions that are not accepted are there
        only where conventions are asked for (K8).

        Args:
            past: whose items they are, None for those that there are.

        Raises:
            QueryInvalid: a filter cannot be understood, or no page gave such a cursor.
        """
        store: Store | PastStore = self.workspace.store if past is None else past.store
        rows = self._rows(store, within, _read_cursor(cursor) if cursor else None, size)
        chosen = rows[:size]
        loaded = [store.load(one) for one in chosen]
        every = CONVENTION in within.types
        items = tuple(one.item for one in loaded if one is not None and (every or not withheld(one.item)))
        self._read([item.id for item in items])
        return Page(items=items, cursor=_cursor(chosen[-1]) if len(rows) > size else "")

    def _read(self, ids: Sequence[str]) -> None:
        """Note that an agent was given items it named, or found in a list."""
        self.workspace.usage.served.note("read", ids, self.workspace.parts.clock())

    @staticmethod
    def _rows(
        store: Store | PastStore, within: Query, after: tuple[datetime, str] | None, size: int
    ) -> list[Candidate]:
        """What comes after a place, newest first and by id among those of one time; one more than ``size``, if any."""
        until = min(filter(None, (within.until, after and after[0])), default=None)
        asked = replace(within, text="", until=until, limit=size + 1)
        while True:
            found = store.seeking.candidates(asked)
            rows = sorted((one for one in found if after is None or _place(one) > _order(*after)), key=_place)
            # of the oldest time that was found there may be more, which come before these
            settled = len(rows) > size and rows[size - 1].timestamp > min(one.timestamp for one in found)
            if settled or len(found) < asked.limit or asked.limit == MOST:
                return rows
            asked = replace(asked, limit=min(MOST, asked.limit * 8))

    # -- writing ----------------------------------------------------------------------------------------------------
    def store(self, draft: MemoryItem, caller: Caller) -> StoreResult:
        """Keep what an agent says, durable on return; what is known already is united with it.

        Raises:
            SettingInvalid: there is no such type.
            ContentError (``SecretDetected``, too), StorageIO: nothing was stored.
        """
        self.workspace.kinds.get(draft.type)
        said = draft.replace(trust=Trust.AGENT.value, origin=caller.origin)
        if said.type == CONVENTION:
            said = said.replace(status=PROPOSED)  # a team agrees, an agent does not
        with signed_by(caller.origin):
            return self.workspace.intake.store(said, review=False, source=caller.source)

    def update(
        self, item_id: str, changes: Mapping[str, Any], caller: Caller, expected: str | None = None
    ) -> tuple[MemoryItem, MemoryItem]:
        """Change fields of an item; return it as it was and as it is.

        Text that nobody but an agent has seen never passes as vouched for: whoever vouched for the item did so for what
        it said before.

        Args:
            expected: the sha256 that the agent last read; None means whatever is there.

        Raises:
            ItemNotFound, Conflict, ContentError, StorageIO: nothing was changed.
        """
        if "memory_type" in changes:
            self.workspace.kinds.get(changes["memory_type"])
        for attempt in range(_TRIES):
            before = self.exactly(item_id)
            after = _changed(before, changes, caller)
            if after == before and expected in (None, before.sha256):
                return before, before
            read = before.sha256 if expected is None else expected
            try:
                with signed_by(caller.origin):
                    return before, self.workspace.store.put(after, expected=read, source=caller.source)
            except Conflict:  # somebody else's change came between: it is kept, and ours made to it
                if expected is not None or attempt == _TRIES - 1:
                    raise
        raise AssertionError  # the last try returns or raises

    def feedback(self, item_id: str, helpful: bool, reason: str, caller: Caller) -> MemoryItem:
        """Let an item count for more or less; see ``Feedback.give``."""
        with signed_by(caller.origin):
            return self.workspace.feedback.give(self.exactly(item_id).id, helpful, reason, source=caller.source)

    def end_session(self, session: str) -> None:
        """Clear a session's working memory; what matters of it is kept, or suggested, as the settings say (C7).

        Where nothing is to be learned the working memory stays, and expires.
        """
        keep = keep_heard(self.workspace, "patterns")
        if keep is not Keep.OFF:
            self.workspace.consolidation.run(session, suggest=keep is Keep.SUGGEST)

    def exactly(self, item_id: str) -> MemoryItem:
        """The item with this very id, in this workspace: what is written must not be guessed.

        Raises:
            IdInvalid, ItemNotFound, ContentError.
        """
        if of_mount(item_id):
            raise ItemNotFound(
                f"{ascii(item_id)[:80]} belongs to a mounted workspace, which is only read",
                hint="store what you want to add as a memory of this workspace",
            )
        store = self.workspace.store
        found = store.get(check_id(item_id))
        if found is None:
            ids = list(store.following.ids())
            raise not_found(item_id, [one for one in ids if one.casefold().startswith(item_id.casefold())], ids)
        return found

    # -- being told -------------------------------------------------------------------------------------------------
    def beginning(self, agent: str = "") -> tuple[Delivered, Sequence[Reminder]]:
        """What an agent is told at the start: the automatic memory, and what is still to be done."""
        from memfs.model.episode import StateSnapshot  # a server that is only connected to does without it

        delivery = self.workspace.sources.delivery
        most = None if delivery.memory.automatic_tokens else UNBOUNDED
        given, reminders = delivery.automatic(StateSnapshot(agent=agent), max_tokens=most), pending(self.workspace)
        ids, now = [one.id for one in reminders], self.workspace.parts.clock()
        self.workspace.usage.served.note("automatic", ids, now, agent=agent)
        return given, reminders

    def before_step(self, state: StateSnapshot) -> Delivered:
        """What a situation brings to mind.

        Raises:
            QueryInvalid: the situation cannot be understood.
        """
        delivery = self.workspace.sources.delivery
        return delivery.triggered(state, max_tokens=None if delivery.memory.triggered_tokens else UNBOUNDED)

    def standing(self) -> dict[str, Any]:
        """How the workspace stands: counts, history, and what is wrong, as plain values."""
        workspace = self.workspace
        types, _ = numbers(workspace.store, workspace.parts)
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


# -- changes --------------------------------------------------------------------------------------------------------
def _changed(before: MemoryItem, changes: Mapping[str, Any], caller: Caller) -> MemoryItem:
    after = before.replace(**changes)
    if (after.content, after.title) != (before.content, before.title):
        after = after.replace(origin=caller.origin)  # it is the agent that says so
    done = {name for name in changes if getattr(after, name) != getattr(before, name)}
    unseen = _UNSEEN | ({"status"} if before.type == "prospective" else set())
    if done <= unseen or before.trust not in BY_TRUST:
        return after
    return after.replace(trust=lower_trust(before.trust, Trust.AGENT.value))


# -- pages ----------------------------------------------------------------------------------------------------------
def _order(moment: datetime, item_id: str) -> tuple[float, str]:
    return -moment.timestamp(), item_id


def _place(one: Candidate) -> tuple[float, str]:
    return _order(one.timestamp, one.id)


def _cursor(last: Candidate) -> str:
    written = json.dumps([last.timestamp.isoformat(), last.id])
    return base64.urlsafe_b64encode(written.encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        moment, item_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        return parse_time(moment), str(item_id)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error) as error:
        raise QueryInvalid(
            f"no page gave the cursor {ascii(cursor)[:60]}", field="cursor", hint="begin without one"
        ) from error
