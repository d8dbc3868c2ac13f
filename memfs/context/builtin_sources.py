"""The built-in context sources: conventions, feedback, episodes, rules, preferences and the last session.

Each reads the workspace together with its mounts and private memory, and orders its entries the most important first.
``StoreSource`` is their base class; the values of a source's settings table are checked before it is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest

from memfs.admin.store_builder import has_states
from memfs.context.deliver import ContextEntry, ContextSelection, Delivery, ItemSource, origin_of, vouched
from memfs.context.mounts import Mount, gathered
from memfs.dataclass import replace
from memfs.errors import MemfsError, QueryInvalid, SettingInvalid
from memfs.format.text import shortened
from memfs.fs.executor import in_daemon
from memfs.intake.episode_item import episode_of
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.episode import THRESHOLD, Episode, Outcome, StateSnapshot, TriggerRow
from memfs.model.ids import of_mount
from memfs.model.item import VOUCHED, Origin, Trust, gist
from memfs.model.kinds import ACCEPTED, nearest
from memfs.model.time import EARLIEST, utc_now
from memfs.recall.conflict_notes import FINISHED
from memfs.settings import SOURCE_TABLES, SPECS, Spec, checked
from memfs.startup import TYPE_CHECKING, Any
from memfs.store import Store

if TYPE_CHECKING:
    from typing import ClassVar

    from memfs.context.parts import Sources
    from memfs.learning.conventions import Convention
    from memfs.learning.preferences import Preference
    from memfs.model.episode import Rule
    from memfs.model.state_documents import AgentFeedback


def built_in(on: Sources) -> Mapping[str, Callable[[], ItemSource]]:
    """What makes each built-in source of a workspace, by name."""
    joint = JointMemory(on)
    return {
        "preferences": lambda: PreferencesMemory(joint),
        "conventions": lambda: ConventionsMemory(joint),
        "recent_session": lambda: RecentSessionMemory(joint, on.parts.clock),
        "feedback": lambda: FeedbackMemory(joint),
        "episodic": lambda: EpisodicMemory(joint, on.item),
        "semantic": lambda: SemanticMemory(joint, on.item, whole=True),
    }


class StoreSource(ABC):
    """A source that asks a store (``memfs.context.deliver.ItemSource``). Its settings are attributes of their names.

    Args:
        store: what is asked; each source says what it must offer.
    """

    name: ClassVar[str]
    layer: ClassVar[str]

    def __init__(self, store: Any) -> None:
        self.store = store
        for name, spec in self._settings().items():
            setattr(self, name, spec.default)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take the table ``[memory.<name>]``; what it lacks stays as it is.

        Raises:
            SettingInvalid: a key is unknown, or its value of the wrong sort or out of bounds; ``field`` names it.
        """
        if not isinstance(config, Mapping):
            raise SettingInvalid(f"expected a table, got {ascii(config)[:60]}", field=f"memory.{self.name}")
        known = self._settings()
        for name in config.keys() - known.keys():
            hint = nearest(name, known) or f"the keys are {', '.join(known)}"
            raise SettingInvalid(f"unknown setting {name!a}", field=f"memory.{self.name}.{name}", hint=hint)
        for name, value in {name: checked(value, known[name]) for name, value in config.items()}.items():
            setattr(self, name, value)

    @classmethod
    def _settings(cls) -> dict[str, Spec]:
        """The source's settings by name: one that derives from ours has them under another name, too."""
        source = next(name for one in cls.__mro__ if (name := one.__dict__.get("name", "")) in SOURCE_TABLES)
        return {name: SPECS[f"memory.{source}.{name}"] for name in SOURCE_TABLES[source]}

    def select(self, state: StateSnapshot) -> ContextSelection:
        """What the store has for a situation; nothing where nothing fits."""
        return self._selection(answered(self._ask(state)))

    async def get_context(self, state: StateSnapshot) -> str | None:
        """The same as text; "" without any."""
        selection = self._selection(await awaited(self._ask(state)))
        return str(selection) or (None if self.layer == Delivery.TRIGGERED else "")  # as the seed has such a source say

    @abstractmethod
    def _ask(self, state: StateSnapshot) -> Any:
        """The store's answer, or what is to be awaited for it."""

    @abstractmethod
    def _selection(self, found: Any) -> ContextSelection:
        """What of an answer is delivered."""


# -- answers ------------------------------------------------------------------------------------------------------
async def awaited(answer: Any) -> Any:
    """The answer itself, where it has to be awaited too."""
    return await answer if isinstance(answer, Awaitable) else answer


def answered(answer: Any) -> Any:
    """As ``awaited``, for a caller that cannot await: what has to be awaited gets an event loop in a separate thread,
    as the caller's thread may run one already.
    """
    if not isinstance(answer, Awaitable):
        return answer
    import asyncio  # the workspace's own stores answer at once, and spare a process what this takes to import

    return in_daemon("memfs-asking", lambda: asyncio.run(awaited(answer))).result()


HEADING = "Project conventions:"
_SHOWN = VOUCHED | {""}


class ConventionsMemory(StoreSource):
    """Surfaces the accepted conventions that hold for the files of a situation; all of them where it names none.

    Only those that a person vouches for, or that were reviewed.

    Args:
        store: anything with ``holding(files=...)``, at once or awaited, whose answers have a text as ``str``, the most
            important first; such as ``memfs.learning.conventions.Conventions``.

    Attributes:
        max_items: the most conventions.
    """

    name: ClassVar[str] = "conventions"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value

    max_items: int

    def _ask(self, state: StateSnapshot) -> Any:
        return self.store.holding(files=state.files)

    def _selection(self, found: Iterable[Any] | None) -> ContextSelection:
        given = [one for one in found or () if getattr(one, "trust", "") in _SHOWN]
        return ContextSelection(heading=HEADING, entries=[_entry(one) for one in given[: self.max_items]])


def _entry(convention: Any) -> ContextEntry:
    scope = ", ".join(getattr(convention, "scope", ()))
    item = getattr(convention, "item", None)
    return ContextEntry(
        text=f"{convention} ({scope})" if scope else str(convention),
        id=str(getattr(convention, "id", "") or ""),
        trust=str(getattr(convention, "trust", "") or ""),
        origin=origin_of(item.origin, of_mount(item.id)) if isinstance(item, MemoryItem) else "",
    )


class FeedbackMemory(StoreSource):
    """Gives an agent that is named its feedback, ready for the prompt.

    Args:
        store: anything with ``for_agent(agent, most=...)``, at once or awaited, whose answer has a ``text``, or is None
            where there are no iterations. Such as ``memfs.state.feedback.FeedbackStore``. Where it has
            ``note_given(agent, most=...)``, that is called once the agent has it.

    Attributes:
        enabled: whether it says anything.
        max_items: the most points.
        any_trust: the review that it quotes is written by agents; it is asked for by the agent's name, not by what may
            be always loaded.
        fenced: its text is quoted data between marks already, and is handed on as it is.
    """

    name: ClassVar[str] = "feedback"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value
    any_trust: ClassVar[bool] = True
    fenced: ClassVar[bool] = True

    enabled: bool
    max_items: int

    async def get_context(self, state: StateSnapshot) -> str | None:
        """The feedback as text, and recorded as given; "" without any."""
        found = self._selection(await awaited(self._ask(state)))
        if found.entries:
            self.given(state)
        return "\n".join(entry.text for entry in found.entries)

    def given(self, state: StateSnapshot) -> None:
        """Record that the agent has it; who only looks, or has no room for it, gives nothing."""
        note = getattr(self.store, "note_given", None)
        if note is not None:
            note(state.agent, most=self.max_items)

    def _ask(self, state: StateSnapshot) -> Any:
        if not self.enabled or not self.max_items or not state.agent.strip():
            return None
        return self.store.for_agent(state.agent, most=self.max_items)

    def _selection(self, found: Any) -> ContextSelection:
        if found is None or not found.text.strip():
            return ContextSelection()
        number = getattr(found, "from_iteration", None)
        origin = "" if number is None else f"meta-review of iteration {number}"
        return ContextSelection(entries=(ContextEntry(text=found.text.strip(), trust="agent", origin=origin),))


EPISODIC_HEADING = "Past issues with similar context:"


class EpisodicMemory(StoreSource):
    """Finds similar past episodes and surfaces those that failed.

    Args:
        store: anything with ``find_similar(state, limit=...)``, at once or awaited, whose answers have ``outcome``,
            ``action.description`` and ``error_message``; such as ``memfs.learning.triggers.Episodes``.
        items: gives the item of an id, for its trust and origin; then the store is given a ``threshold``, too.

    Attributes:
        similarity_threshold: from this similarity on, 0 to 1, an episode is similar.
        max_warnings: the most warnings.
    """

    name: ClassVar[str] = "episodic"
    layer: ClassVar[str] = Delivery.TRIGGERED.value

    similarity_threshold: float
    max_warnings: int

    def __init__(self, store: Any, items: Callable[[str], MemoryItem | None] | None = None) -> None:
        super().__init__(store)
        self._items = items

    def _ask(self, state: StateSnapshot) -> Any:
        if not self.max_warnings:
            return ()
        more = {"threshold": self.similarity_threshold} if self._items is not None else {}  # one of ours takes it
        return self.store.find_similar(state, limit=self.max_warnings, **more)

    def _selection(self, found: Iterable[Any] | None) -> ContextSelection:
        failures = [one for one in found or () if one.outcome == Outcome.FAILURE]
        return ContextSelection(
            heading=EPISODIC_HEADING, entries=[self._entry(one) for one in failures[: self.max_warnings]]
        )

    def _entry(self, episode: Any) -> ContextEntry:
        text = f"{episode.action.description}: {episode.error_message}"
        return ContextEntry(text=text, **vouched(episode, self._items))


SEMANTIC_HEADING = "Learned patterns:"


class SemanticMemory(StoreSource):
    """Matches learned rules against the situation.

    Args:
        store: anything with ``find_matching_rules(context, min_confidence=...)``, at once or awaited, whose answers
            have ``action`` and ``confidence``; such as ``memfs.learning.rules.Rules``.
        items: gives the item of an id, for its trust and origin.
        whole: whether the store is given the whole situation in place of its ``context``: it knows of files, too.

    Attributes:
        min_confidence: rules below it, 0 to 1, are kept back.
    """

    name: ClassVar[str] = "semantic"
    layer: ClassVar[str] = Delivery.TRIGGERED.value

    min_confidence: float

    def __init__(
        self, store: Any, items: Callable[[str], MemoryItem | None] | None = None, *, whole: bool = False
    ) -> None:
        super().__init__(store)
        self._items, self._whole = items, whole

    def _ask(self, state: StateSnapshot) -> Any:
        return self.store.find_matching_rules(
            state if self._whole else state.context, min_confidence=self.min_confidence
        )

    def _selection(self, found: Iterable[Any] | None) -> ContextSelection:
        return ContextSelection(heading=SEMANTIC_HEADING, entries=[self._entry(one) for one in found or ()])

    def _entry(self, rule: Any) -> ContextEntry:
        return ContextEntry(text=f"{rule.action} (confidence: {rule.confidence:.0%})", **vouched(rule, self._items))


PREFERENCES_HEADING = "User preferences:"


class PreferencesMemory(StoreSource):
    """Surfaces a person's corrections and explicit preferences.

    Args:
        store: anything with ``get_relevant(context, limit=...)``, at once or awaited, whose answers are texts or have
            one as ``str``; such as ``memfs.learning.preferences.Preferences``.

    Attributes:
        max_items: the most preferences.
    """

    name: ClassVar[str] = "preferences"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value

    max_items: int

    def _ask(self, state: StateSnapshot) -> Any:
        return self.store.get_relevant(state.context, limit=self.max_items)

    def _selection(self, found: Iterable[Any] | None) -> ContextSelection:
        return ContextSelection(heading=PREFERENCES_HEADING, entries=[self._entry(one) for one in found or ()])

    def _entry(self, found: Any) -> ContextEntry:
        """The id names the mount, and when and to whom a person's lasting wish was said does not matter."""
        facts = vouched(found, None)
        if isinstance(origin := getattr(found, "origin", None), Origin) and facts["trust"] == Trust.HUMAN:
            facts["origin"] = origin_of(Origin(speaker=origin.speaker))
        return ContextEntry(text=str(found), **facts)


RECENT_SESSION_HEADING = "Last session"
_KINDS = frozenset(
    {"episodic", "task_history", "error_log", "prospective", "working", "semantic", "procedural", "knowledge"}
)
_WITNESSES = VOUCHED | {Trust.AGENT.value}
_LOOKED_AT = 200
_LONGEST = 200


class RecentSessionMemory(StoreSource):
    """Gives brief context from the last session before this one.

    Args:
        store: the workspace's store.
        clock: what time it is.

    Attributes:
        max_items: the most lines.
        max_age_days: a session that ended longer ago is left out.
        any_trust: a session's own notes are written by agents; naming this source in the settings asks for them. What
            tools brought from outside is left out all the same.
    """

    name: ClassVar[str] = "recent_session"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value
    any_trust: ClassVar[bool] = True

    max_items: int
    max_age_days: float

    def __init__(self, store: Store | JointMemory, clock: Callable[[], datetime] = utc_now) -> None:
        super().__init__(store)
        self._clock = clock

    def _ask(self, state: StateSnapshot) -> Any:
        """What the session that wrote last, other than this one, left behind, the newest first."""
        since = self._clock() - timedelta(days=self.max_age_days)
        candidates = self.store.candidates(Query(types=_KINDS, since=since, limit=_LOOKED_AT))
        last = next((one.session for one in candidates if one.session not in ("", state.session)), None)
        if last is None:
            return ()
        return self.store.select(Query(types=_KINDS, sessions=frozenset({last}), limit=_LOOKED_AT))

    def _selection(self, found: Iterable[MemoryItem]) -> ContextSelection:
        """Some of what is left to do, of what went wrong, of what was learned and of what it was busy with."""
        items = [item for item in found if item.trust in _WITNESSES]
        groups = list(_groups(items))
        turns = (entry for turn in zip_longest(*groups) for entry in turn if entry is not None)
        chosen = [entry for entry, _ in zip(turns, range(self.max_items), strict=False)]
        ordered = [entry for group in groups for entry in group if entry in chosen]
        times = [item.timestamp for item in items if item.timestamp is not None]
        day = f" ({max(times):%Y-%m-%d})" if times else ""  # on which the session ended
        return ContextSelection(heading=f"{RECENT_SESSION_HEADING}{day}:", entries=ordered)


def _groups(items: Sequence[MemoryItem]) -> Iterator[list[ContextEntry]]:
    """What is left to do, what failed, what was learned, and what it was busy with, where it never ended."""
    by_type: dict[str, list[MemoryItem]] = {}
    for item in items:
        by_type.setdefault(item.type, []).append(item)
    left = sorted(by_type.get("prospective", ()), key=lambda item: -item.importance)
    yield [_session_entry(item, f"to do: {gist(item)}") for item in left if item.status not in FINISHED]
    yield list(_failed(items))
    lasting = [item for kind in ("semantic", "procedural", "knowledge") for item in by_type.get(kind, ())]
    lasting.sort(key=lambda item: ("promoted_from" not in item.metadata, -item.importance))
    other = [item for kind in ("episodic", "task_history", "error_log") for item in by_type.get(kind, ())]
    yield [_session_entry(item, gist(item)) for item in (*lasting, *other) if episode_of(item) is None]
    yield [_session_entry(item, f"was busy with: {gist(item)}") for item in by_type.get("working", ())]


def _failed(items: Iterable[MemoryItem]) -> Iterator[ContextEntry]:
    """Each step that did not go well, and that none like it followed."""
    settled: set[tuple[str, tuple[str, ...]]] = set()
    for item in items:
        if (episode := episode_of(item)) is None:
            continue
        deed = episode.action.description or episode.action.tool
        key = deed, episode.state.files
        if episode.outcome is not Outcome.SUCCESS and key not in settled:
            text = f"{deed}: {episode.outcome.value}: {episode.error_message}"
            yield _session_entry(item, text.rstrip(": "))
        settled.add(key)


def _session_entry(item: MemoryItem, text: str) -> ContextEntry:
    return ContextEntry(
        text=shortened(" ".join(text.split()), _LONGEST), id=item.id, trust=item.trust, origin=origin_of(item.origin)
    )


Warning_ = tuple[TriggerRow, Callable[[TriggerRow], MemoryItem | None]]


class JointMemory:
    """What a workspace and its mounts know together, as the built-in sources ask for it."""

    def __init__(self, sources: Sources) -> None:
        self._sources, self._mounts = sources, sources.mounts

    def find_similar(self, state: StateSnapshot, limit: int = 3, threshold: float | None = None) -> list[Episode]:
        """See ``Episodes.find_similar``: failures first, the most similar first, of equals the workspace's own.

        A file of another repository is another file, whatever it is called: what happened there is compared by words
        and tool alone.
        """
        least, triggers = THRESHOLD if threshold is None else threshold, self._sources.triggers
        found: list[Warning_] = [(one, triggers.load) for one in triggers.episodes(state, least, limit)]
        found += gathered(self._mounts.opened(), lambda mount: _failures(mount, state, least, limit))
        found.sort(key=lambda pair: (pair[0].outcome != Outcome.FAILURE, -round(pair[0].similarity, 9)))
        items = (load(one) for one, load in found[:limit])
        episodes = (episode_of(item) for item in items if item is not None)
        return [episode for episode in episodes if episode is not None]

    def find_matching_rules(self, context: str | StateSnapshot, min_confidence: float = THRESHOLD) -> list[Rule]:
        """See ``Rules.find_matching_rules``; the surest first, of equals the workspace's own."""
        state = context if isinstance(context, StateSnapshot) else StateSnapshot.create(context=context)
        found: list[Rule] = []
        if self._sources.triggers.rules(state, min_confidence):  # most situations have none, and load no more
            found += self._sources.rules.find_matching_rules(context, min_confidence)
        found += gathered(self._mounts.opened(), lambda mount: _rules(mount, state, min_confidence))
        return sorted(found, key=lambda rule: -rule.confidence)

    def holding(self, files: Iterable[str] = (), status: str = ACCEPTED) -> list[Convention]:
        """See ``Conventions.holding``; those of mounts behind the workspace's own."""
        named = tuple(files)
        own = self._sources.conventions.holding(named, status)
        return [*own, *gathered(self._mounts.opened(), lambda mount: _holding(mount, named, status))]

    def get_relevant(self, context: str = "", limit: int = 10) -> list[Preference]:
        """See ``Preferences.get_relevant``; those of private memory among them."""
        beside = gathered(self._mounts.opened(), lambda mount: self._wishes(mount, context, limit) if mount.own else [])
        return self._sources.preferences.get_relevant(context, limit, beside=beside)

    def _wishes(self, mount: Mount, context: str, limit: int) -> list[MemoryItem]:
        """The preferences that hold in private memory, those that fit the context first."""
        from memfs.learning.preferences import KIND, preferences_in_order  # steps ask for none

        found = mount.store.readable(mount.store.every(Query(types=frozenset({KIND}))))
        return preferences_in_order(map(mount.outward, found), self._sources.parts.clock(), context)[:limit]

    def for_agent(self, agent: str, *, most: int, record: bool = False) -> AgentFeedback | None:
        """See ``FeedbackStore.for_agent``; most workspaces have no iterations, and are spared the machinery."""
        if not has_states(self._sources.parts.seen):
            return None
        try:
            return self._sources.states().feedback.for_agent(agent, record=record, most=most)
        except QueryInvalid:  # no agent has such a name
            return None

    def note_given(self, agent: str, *, most: int) -> None:
        """Record that an agent has its feedback."""
        try:
            self.for_agent(agent, most=most, record=True)
        except MemfsError as error:  # the agent has it already
            self._sources.store.note_failure(error)

    def candidates(self, query: Query) -> list[Candidate]:
        """The items here and in private memory that pass the query's filters, the newest first."""
        more = gathered(self._mounts.opened(), lambda mount: mount.store.candidates(query) if mount.own else [])
        found = [*self._sources.store.candidates(query), *more]
        return sorted(found, key=lambda one: one.timestamp, reverse=True)[: query.limit]

    def select(self, query: Query) -> list[MemoryItem]:
        """The same as items."""
        private = (mount for mount in self._mounts.opened() if mount.own)
        more = gathered(private, lambda mount: list(map(mount.outward, mount.store.select(query))))
        found = [*self._sources.store.select(query), *more]
        return sorted(found, key=lambda item: item.timestamp or EARLIEST, reverse=True)[: query.limit]


def _failures(mount: Mount, state: StateSnapshot, least: float, limit: int) -> list[Warning_]:
    here = state if mount.same_repository else replace(state, files=())
    if not (here.files or here.context.strip()):
        return []
    found = mount.triggers.episodes(here, least, limit)
    return [(one, mount.behind) for one in found if one.outcome == Outcome.FAILURE]


def _rules(mount: Mount, state: StateSnapshot, min_confidence: float) -> list[Rule]:
    matches = mount.triggers.rules(state, min_confidence)
    if not matches:
        return []
    from memfs.learning.rules import rule_of  # as above

    items = (mount.behind(match) for match in matches)
    rules = (rule_of(item) for item in items if item is not None)
    return [rule for rule in rules if rule is not None]


def _holding(mount: Mount, files: Sequence[str], status: str) -> list[Convention]:
    from memfs.learning.conventions import Convention, Conventions  # steps ask for none

    found = Conventions(mount.store, mount.store.clock).holding(files, status)
    return [Convention(mount.outward(one.item)) for one in found]
