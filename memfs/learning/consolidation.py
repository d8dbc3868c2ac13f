"""Consolidates a session when it ends, extracts what tasks taught, and carries out the rules of a memory context.

Promoting and clearing is one commit, which can be undone. The same pattern always becomes the same item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from json import dumps

from memfs.dataclass import dataclass, field, replace
from memfs.errors import Conflict, ContentError, IdExists, ItemNotFound, MemfsError, QueryInvalid
from memfs.format.secrets import reason_in
from memfs.learning.learner import PatternStore
from memfs.learning.patterns import Pattern, find_common_context, fixed_words, item_of, words_of
from memfs.learning.preferences import is_correction
from memfs.model import Candidate, Layer, Link, MemoryItem, Origin, Query, Trust
from memfs.model.ids import stable_id, stem_of
from memfs.model.item import gist, lower_trust
from memfs.model.learning import FITTING, BehaviorAction, Keep, MemoryConfig, Source, Suggestion, Trigger
from memfs.model.query import MOST
from memfs.model.time import utc_now
from memfs.recall.conflict_notes import unresolved_note
from memfs.recall.cues import all_cues, ends
from memfs.recall.fence import withheld
from memfs.recall.recaller import Recaller
from memfs.recall.review import relevances
from memfs.recall.similarity import SAME, TextShape, alike, normalised
from memfs.startup import TYPE_CHECKING, Any
from memfs.store import Store
from memfs.store.parts import CONTENT, Facts, Fire
from memfs.store.plan import Batch, current_signer, signed_by
from memfs.store.store import retry_on_conflict
from memfs.usage import NEVER, Usage

if TYPE_CHECKING:
    from memfs.learning.inbox import Inbox

READ = 500
"""How many of the newest notes of a task or session are read."""
MOST_LEARNINGS = 10
"""The most learnings that a task leaves."""
_LONGEST = 400
_FEWEST_WORDS = 4
_COMPARED = 8
_TRIES = 5
_TABLE = "learnings"


def states_lesson(text: str) -> bool:
    """Whether a text states a decision, a cause or a lesson, and is not a mere question."""
    return _cue("telling", text) and not text.rstrip().endswith("?")


def lesson_in(text: str) -> str:
    """The sentences of a person's message to an agent that state a decision, a cause or a lesson; "" where none does.

    Requests are left out, as they were wanted at that moment only, and so are corrections, which become preferences.
    """
    sentences = (one.strip() for one in ends().split(text[: _LONGEST * READ]) if _cue("stated", one))
    return " ".join(
        one for one in sentences if not (one.endswith("?") or _begins("request", one) or is_correction(one))
    )


def _cue(name: str, text: str) -> bool:
    frame = r"(?<!\w){}(?!\w)"
    return any(language.pattern(f"{_TABLE}.{name}", frame).search(text) for language in all_cues(_TABLE))


def _begins(name: str, text: str) -> bool:
    return any(language.pattern(f"{_TABLE}.{name}").match(text) for language in all_cues(_TABLE))


def extract_learnings(store: Store, facts: Mapping[str, Any], inbox: Inbox | None = None) -> list[MemoryItem]:
    """Keep what a task taught as ``semantic`` items, in one commit; what is known already is not kept again.

    At most ``READ`` notes are read and ``MOST`` learnings kept; no occasion is raised.

    Args:
        store: where notes are, and where learnings go.
        facts: ``task`` and ``session``, names of which one may be missing, and ``outcome``, a text.
        inbox: where learnings are suggested, in place of being stored.

    Returns:
        The new items, none where nothing was learned, or it was only suggested.

    Raises:
        Conflict: files kept changing.
        ContentError, StorageIO: as ``Store.put``.
    """
    task, session = str(facts.get("task") or ""), str(facts.get("session") or "")
    notes = _notes(store, task, session)
    outcome = facts.get("outcome")
    if isinstance(outcome, str) and len(outcome.split()) >= _FEWEST_WORDS:
        notes.append(MemoryItem(outcome, "task_history", trust=Trust.AGENT.value))
    drafts = [draft for note in notes for draft in _drafts(note, task, session)]
    if inbox is not None:
        fresh = _fresh(store, [draft for draft in drafts if not reason_in(draft.metadata)])
        inbox.add(_suggestion(draft, task or session) for draft in fresh)
        return []

    def learned() -> list[MemoryItem]:
        store.follow()
        fresh = _fresh(store, drafts)
        with store.batch(f"Learn from {(task or session)[:80]}", source="learnings") as batch:
            return [batch.put(draft, expected="") for draft in fresh if not store.locate(draft.id)]

    return retry_on_conflict(learned, tries=_TRIES, on=(Conflict, IdExists))


def _notes(store: Store, task: str, session: str) -> list[MemoryItem]:
    """What was noted in a task, oldest first; of a session whose notes name no task, all of it."""
    layers = frozenset({Layer.SHORT_TERM.value, Layer.EPISODIC.value})
    sessions = frozenset({session}) if session else frozenset()
    if not (task or session):
        return []
    every = store.select(Query(layers=layers, sessions=sessions, limit=READ))
    found = [item for item in every if not reason_in(item.metadata) and "learned_from" not in item.metadata]
    of_task = [item for item in found if task and task in (item.origin.task, item.metadata.get("task"))]
    return (of_task or (found if session else []))[::-1]


def _drafts(note: MemoryItem, task: str, session: str) -> Iterator[MemoryItem]:
    """What a note states that lasts, each sentence by itself."""
    for part in ends().split(note.content[: _LONGEST * READ]):
        sentence = part.strip().lstrip("-*# \t").strip()
        if len(sentence) > _LONGEST or len(sentence.split()) < _FEWEST_WORDS or not states_lesson(sentence):
            continue
        yield MemoryItem(
            sentence,
            "semantic",
            id=stable_id(sentence, normalised(sentence), otherwise="learning"),
            timestamp=note.timestamp,
            origin=Origin(agent=note.origin.agent, session=note.origin.session or session, task=task),
            trust=(Trust.TOOL if note.trust == Trust.TOOL.value else Trust.AGENT).value,
            importance=note.importance,
            links=(Link(to=note.id, relation="derived_from"),) if note.id else (),
            context=dict(note.context),
            metadata={"learned_from": task or session},
        )


def _fresh(store: Store, drafts: Iterable[MemoryItem]) -> list[MemoryItem]:
    """The drafts that say something new, ``MOST_LEARNINGS`` at most."""
    fresh: list[MemoryItem] = []
    for draft in drafts:
        if len(fresh) == MOST_LEARNINGS:
            break
        shape, query = TextShape(draft.content), Query(text=draft.content, types=frozenset({LASTING}), limit=_COMPARED)
        known = [*fresh, *store.select(query)]
        if not any(alike(shape, TextShape(item.content), SAME) >= SAME for item in known):
            fresh.append(draft)
    return fresh


def _suggestion(draft: MemoryItem, name: str) -> Suggestion:
    evidence = tuple(link.to for link in draft.links)
    return Suggestion(item=draft, source=Source.LESSON, reason=f"learned in {name}", made=utc_now(), evidence=evidence)


WORKING, LASTING = "working", "semantic"
IMPORTANT = 1.5
"""From this importance on, its uses folded in, a working memory is kept for itself."""
_HIGHEST = 10.0
_LISTED = 10
_SETTLE_SECONDS = 2.0
_UNREADABLE = "its file cannot be read"
_PERSON = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What is kept of working memory.

    Attributes:
        item: as it is stored, or would be.
        why: ``decision``, ``outcome``, ``important``, ``repeated`` or ``pattern``.
        sources: ids of the working memories it was made of.
        known: whether an item that says the same was there already, and was brought up to date.
    """

    item: MemoryItem
    why: str
    sources: tuple[str, ...]
    known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationResult:
    """What became of a session's working memory.

    Attributes:
        session: which.
        read: how many working memories it had.
        promoted: what is kept.
        cleared: ids of the working memories that were removed.
        pinned: ids of those that are pinned, which were not touched.
        left: ids of those that stay because they could not be kept, with why.
    """

    session: str
    read: int = 0
    promoted: tuple[Promotion, ...] = ()
    cleared: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Consolidation:
    """Ends the sessions of one workspace. May be used from several threads and processes.

    Each run ends: it reads every working memory of one session once, compares each with a bounded number of others, and
    tries at most five times where somebody else changes the same files.

    Attributes:
        store: where memories are.
        usage: how often each was recalled.
        patterns: finish learning from the session before it is cleared, and say what is similar.
        fire: raises ``session_ended``.
        inbox: gives where what matters is suggested that is not to be written.
    """

    store: Store
    usage: Usage
    patterns: PatternStore
    fire: Fire
    inbox: Callable[[], Inbox]

    def run(self, session: str, *, suggest: bool = False) -> ConsolidationResult:
        """Promote what is significant in a session's working memory, and clear the rest of it with that, in one commit.

        Kept is what states a decision, a lesson or an outcome, what is important with its uses folded in, what was said
        repeatedly, and what several have in common. A second run finds nothing.
        ``session_ended`` is raised when it is done.

        Args:
            session: its name.
            suggest: what matters goes to the inbox, and waits there for somebody to accept it.

        Raises:
            QueryInvalid: no session is named.
            Conflict: the files kept changing; nothing was changed.
            StorageIO: nothing was changed.
        """
        done = self._tried(session, partial(self._run, session, suggest))
        self.fire("session_ended", {"session": session})
        return done

    def clear(self, session: str) -> int:
        """Remove a session's working memory, all but pinned items, in one commit, and keep nothing of it.

        Returns:
            How many were removed.

        Raises:
            As ``run``.
        """
        return len(self._tried(session, partial(self._run, session, keep=False)).cleared)

    def _tried(self, session: str, act: Callable[[], ConsolidationResult]) -> ConsolidationResult:
        if not session.strip():
            raise QueryInvalid("no session is named", field="session", hint="name the session that ended")
        self.patterns.settle(_SETTLE_SECONDS)
        done = retry_on_conflict(act, tries=_TRIES, on=(Conflict, ItemNotFound))
        self.usage.forget(done.cleared)
        return done

    def _run(self, session: str, suggest: bool = False, *, keep: bool = True) -> ConsolidationResult:
        items, left = self._working(session)
        free = [item for item in items if not item.pinned]
        found = list(self._significant(free)) if keep else []
        if suggest:  # first: what is cleared is gone
            left |= self._suggest(found, session, free)
            free, found = [item for item in free if item.id not in left], []
        noun = "memory" if len(free) == 1 else "memories"
        message = f"Consolidate session {session[:80]}: keep {len(found)} of {len(free)} working {noun}"
        message = message if keep else f"Clear the working memory of session {session[:80]}"
        refused: dict[str, str] = {}
        with _in_its_name(free, session), self.store.batch(message, source="consolidation") as batch:
            promoted = [kept for one in found if (kept := self._promote(batch, one, session, free, refused))]
            cleared = [item for item in free if item.id not in refused]
            for item in cleared:
                batch.delete(item.id, expected=item.sha256)
        return ConsolidationResult(
            session=session,
            read=len(items),
            promoted=tuple(promoted),
            cleared=_ids(cleared),
            pinned=_ids(item for item in items if item.pinned),
            left=left | refused,
        )

    # -- reading ----------------------------------------------------------------------------------------------------
    def _working(self, session: str) -> tuple[list[MemoryItem], dict[str, str]]:
        """Every working memory of a session, oldest first, and the ids of those that cannot be read now, with why."""
        named = Query(types=frozenset({WORKING}), sessions=frozenset({session}))
        items, left = self._loaded(self.store.every(named))
        quoting, _ = self._loaded(self.store.known(Query(text=session, types=frozenset({WORKING}), limit=MOST)))
        items |= {key: item for key, item in quoting.items() if item.metadata.get("session_id") == session}
        for problem in self.store.problems():  # a file that was never readable says no session
            if problem.path.startswith(f"{CONTENT}/memories/{WORKING}/"):
                left.setdefault(stem_of(problem.path), _UNREADABLE)
        return sorted(items.values(), key=lambda item: (item.moment, item.id)), left

    def _loaded(self, candidates: Iterable[Candidate]) -> tuple[dict[str, MemoryItem], dict[str, str]]:
        items: dict[str, MemoryItem] = {}
        left: dict[str, str] = {}
        for candidate in candidates:
            loaded = self.store.load(candidate)
            if loaded is None or loaded.stale:
                left[candidate.id] = _UNREADABLE
            else:
                items[candidate.id] = loaded.item
        return items, left

    # -- choosing ---------------------------------------------------------------------------------------------------
    def _significant(self, items: Sequence[MemoryItem]) -> Iterator[Promotion]:
        """What is worth keeping; no working memory is kept twice in the same words."""
        uses = self.usage.of(item.id for item in items)
        folded = {item.id: min(item.importance * uses.get(item.id, NEVER).relevance, _HIGHEST) for item in items}
        same: dict[Hashable, list[MemoryItem]] = {}
        for item in items:
            same.setdefault(_content_key(item), []).append(item)
        taken: set[str] = set()
        for group in same.values():
            why = _why(group, folded)
            if why:
                taken.update(item.id for item in group)
                yield Promotion(item=_united(group, folded), why=why, sources=_ids(group))
        for pattern in self.patterns.detector().detect_all(items):
            members = [item for item in items if item.id in pattern.members and item.id not in taken]
            if members:
                yield Promotion(item=self._summed(pattern, members, folded), why="pattern", sources=pattern.members)

    def _summed(self, pattern: Pattern, members: Sequence[MemoryItem], folded: Mapping[str, float]) -> MemoryItem:
        """What a pattern of a session says, in words."""
        texts = list(dict.fromkeys(map(gist, members)))
        more = len(texts) - _LISTED
        lines = [f"{pattern.template} ({pattern.occurrences} times)", *(f"- {text}" for text in texts[:_LISTED])]
        known = self.store.locate(pattern.id)
        return MemoryItem(
            "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])]),
            LASTING,
            timestamp=pattern.last_seen,
            trust=_trust(members),
            importance=max(folded[item.id] for item in members),
            tags=_tags(members),
            links=(Link(to=pattern.id, relation="pattern"),) if known else (),
            context=dict(pattern.common_context),
        )

    # -- writing ----------------------------------------------------------------------------------------------------
    def _promote(
        self, batch: Batch, found: Promotion, session: str, free: Sequence[MemoryItem], refused: dict[str, str]
    ) -> Promotion | None:
        """Plan to keep something; None where that is done already, or cannot be: then its sources stay."""
        draft = _draft(found, session, {item.id for item in free})
        known = self._known(draft)
        try:
            if known is not None:
                stored = batch.put(_joined(known, draft), expected=known.sha256)
            else:
                # a reason for a secret was given for these very words
                stored = batch.put(draft, expected="", allow_secret=reason_in(draft.metadata))
        except IdExists:
            return None
        except ContentError as error:
            refused.update(dict.fromkeys(found.sources, error.message))
            return None
        return Promotion(item=stored, why=found.why, sources=found.sources, known=known is not None)

    def _suggest(self, found: Sequence[Promotion], session: str, free: Sequence[MemoryItem]) -> dict[str, str]:
        """Suggest what is worth keeping; returns the ids of what cannot be suggested, which stays, with why."""
        refused: dict[str, str] = {}
        cleared = {item.id for item in free}
        for promotion in found:
            draft = _draft(promotion, session, cleared)
            if self._known(draft) is not None:
                continue
            suggestion = Suggestion(
                item=draft,
                source=Source.SESSION,
                made=utc_now(),
                count=len(promotion.sources),
                reason=f"{promotion.why} in session {session}",
            )
            try:
                self.inbox().add([suggestion])
            except ContentError as error:
                refused.update(dict.fromkeys(promotion.sources, error.message))
        return refused

    def _known(self, draft: MemoryItem) -> MemoryItem | None:
        """The lasting memory that says the same, None where there is none."""
        if not normalised(draft.content):
            return None
        query = Query(text=draft.content[:5000], types=frozenset({LASTING}), limit=_COMPARED)
        found, _ = self._loaded(self.store.known(query))
        project = draft.context.get("project")
        same = (item for item in found.values() if item.context.get("project") == project)
        return next((item for item in same if _content_key(item) == _content_key(draft)), None)


def _in_its_name(items: Iterable[MemoryItem], session: str) -> AbstractContextManager[None]:
    """A session ends in the name of the agent whose it was, unless another one ends it by name, or it had several."""
    agents = {item.origin.agent for item in items}
    if current_signer() is not None or len(agents) != 1 or agents == {""}:
        return nullcontext()
    return signed_by(Origin(agent=agents.pop(), session=session))


def _content_key(item: MemoryItem) -> Hashable:
    """What memories must have in common to say the same: of two with other titles or data, each says something else."""
    return normalised(gist(item)), normalised(item.title), _data(item)


def _data(item: MemoryItem) -> str:
    return dumps(item.data, sort_keys=True, default=str)


def _why(group: Sequence[MemoryItem], folded: Mapping[str, float]) -> str:
    """Why memories that say the same are kept, "" where they are not."""
    if any(map(_decides, group)):
        return "decision"
    if any(_begins("achieved", gist(item)) for item in group):
        return "outcome"
    if any(folded[item.id] >= IMPORTANT for item in group):
        return "important"
    return "repeated" if len(group) > 1 else ""


def _decides(item: MemoryItem) -> bool:
    return bool(lesson_in(item.content)) if item.origin.role == _PERSON else states_lesson(gist(item))


def _united(group: Sequence[MemoryItem], folded: Mapping[str, float]) -> MemoryItem:
    """The newest of memories that say the same, with what the others add."""
    newest = group[-1]
    content = lesson_in(newest.content) if newest.origin.role == _PERSON else ""  # without what the message asks for
    return newest.replace(
        content=content or newest.content,
        trust=_trust(group),
        importance=max(folded[item.id] for item in group),
        tags=_tags(group),
        links=tuple(dict.fromkeys(link for item in group for link in item.links)),
        context=find_common_context([item.context for item in group]),
    )


def _draft(found: Promotion, session: str, cleared: set[str]) -> MemoryItem:
    """The lasting item: the same words of the same working memories of a session always give the same id."""
    item = found.item
    parts = (session, found.why, *sorted(found.sources), item.title, item.content, _data(item))
    added = {"promoted_from": WORKING, "promoted_as": found.why, "promoted_ids": list(found.sources)[:_LISTED]}
    return item.replace(
        id=stable_id(item.title or item.content, *parts, otherwise="memory"),
        memory_type=LASTING,
        created=None,
        updated=None,
        path="",
        sha256="",
        status="",
        origin=item.origin if item.origin.session else replace(item.origin, session=session),
        links=tuple(link for link in item.links if link.to not in cleared),
        metadata={**item.metadata, **added},
    )


def _joined(known: MemoryItem, draft: MemoryItem) -> MemoryItem:
    """A lasting item with what a session adds to it."""
    before = known.metadata.get("promoted_in")
    sessions = dict.fromkeys([*(before if isinstance(before, (list, tuple)) else ()), draft.origin.session])
    return known.replace(
        importance=max(known.importance, draft.importance),
        tags=tuple(dict.fromkeys((*known.tags, *draft.tags))),
        links=tuple(dict.fromkeys((*known.links, *draft.links))),
        metadata={**known.metadata, "promoted_from": WORKING, "promoted_in": list(sessions)[-_LISTED:]},
    )


def _ids(items: Iterable[MemoryItem]) -> tuple[str, ...]:
    return tuple(item.id for item in items)


def _tags(items: Iterable[MemoryItem]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for item in items for tag in item.tags))


def _trust(items: Iterable[MemoryItem]) -> str:
    """The least trust among memories; several together are at most an agent's word."""
    trusts = [item.trust for item in items]
    return lower_trust(*trusts) if len(trusts) == 1 else lower_trust(Trust.AGENT.value, *trusts)


ADDED = "relevant_memories"
LIMIT = 5


def relevant(recall: Recaller, situation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is remembered about a situation, best first: type, content, relevance and context of each memory.

    Asked for are its ``tool`` and the ``intent`` of its ``params``. A memory of which a merge left something open also
    has ``undecided``, with the other value.
    """
    params = situation.get("params")
    intent = params.get("intent") if isinstance(params, Mapping) else None
    asked = " ".join(str(part) for part in (situation.get("tool"), intent) if part)
    if not asked.strip():
        return []
    query = Query(text=asked, context=situation, limit=LIMIT, deduplicate=True)
    hits = recall.search(query, leave_out=withheld).hits
    rows = []
    for item, relevance in zip((hit.item for hit in hits), relevances(hits), strict=True):
        row = {"type": item.type, "content": gist(item), "relevance": relevance, "context": dict(item.context)}
        left = unresolved_note(item)
        rows.append({**row, "undecided": left} if left else row)
    return rows


SOURCE = "reactions"
_LONGEST_KNOWLEDGE = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class Reactions:
    """Carries out the behaviour rules of one workspace's memory context. May be used from several threads.

    Attributes:
        config: the memory context that holds at present.
        fire: raises an occasion.
        keep: what becomes of what tasks teach at this moment.
        inbox: gives where that is suggested.
    """

    store: Store
    recall: Recaller
    config: Callable[[], MemoryConfig]
    fire: Fire
    keep: Callable[[], Keep]
    inbox: Callable[[], Inbox]

    def react(self, occasion: str, facts: Facts) -> int:
        """Do what the memory context says about an occasion; return how many rules were carried out.

        Raises:
            ContentError, SettingInvalid: the memory context is invalid; nothing was learned.
        """
        self.store.require_open()
        trigger = Trigger(occasion)
        try:
            rules = self.config().behavior_rules
        except MemfsError:
            if trigger is Trigger.CONTEXT_ACCESSED:
                self._inject(facts)
            raise
        configured = [rule.action for rule in rules if rule.trigger is trigger]
        fitting = [action for action in dict.fromkeys(configured) if action in FITTING[trigger]]
        actions: Mapping[BehaviorAction, Callable[[Facts], object]] = {
            BehaviorAction.INJECT_RELEVANT_MEMORIES: self._inject,
            BehaviorAction.EXTRACT_LEARNINGS: self._extract,
            BehaviorAction.CREATE_REUSABLE_KNOWLEDGE: self._create,
        }
        for action in fitting:
            actions[action](facts)
        return len(fitting)

    def access(self, context: Mapping[str, Any], situation: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the context that an agent is about to be given, with what the rules for ``context_accessed`` add.

        Args:
            context: what the agent is given; it is not changed.
            situation: what the agent is about to do: ``tool``, ``params`` with an ``intent``, and its circumstances.
        """
        self.store.require_open()
        given = dict(context)
        self.fire(Trigger.CONTEXT_ACCESSED.value, {"context": given, "situation": situation})
        return given

    # -- actions --------------------------------------------------------------------------------------------------
    def _inject(self, facts: Facts) -> None:
        context, situation = facts.get("context"), facts.get("situation")
        if isinstance(context, MutableMapping) and isinstance(situation, Mapping):
            found = relevant(self.recall, situation)
            context.update({ADDED: found} if found else {})

    def _extract(self, facts: Facts) -> None:
        keep = self.keep()
        if keep is not Keep.OFF:
            extract_learnings(self.store, facts, None if keep is Keep.WRITE else self.inbox())

    def _create(self, facts: Facts) -> None:
        found = facts.get("pattern")
        if facts.get("found") and isinstance(found, (Pattern, MemoryItem)):
            reusable = knowledge_of(item_of(found) if isinstance(found, Pattern) else found)
            try:
                self.store.put(reusable, expected="", source=SOURCE, message=f"Learn from {found.id}")
            except IdExists:  # once is enough, whichever process came first
                return


def knowledge_of(pattern: MemoryItem) -> MemoryItem:
    """What a pattern teaches, as an item that says it in words; the same pattern always gives the same id."""
    lines = [f'What keeps coming up in {pattern.data.get("pattern_type", "the memories")}: "{pattern.content}".']
    fixed = fixed_words(pattern.content)
    texts = (str(example).split() for example in pattern.data.get("examples", ()))
    variants = (" ".join(word for word in words if not words_of(word) <= fixed) for words in texts)
    if seen := list(filter(None, dict.fromkeys(variants))):  # what each example has beside the words of the template
        lines.append(f"So far with: {', '.join(seen)}.")
    if pattern.context:
        circumstances = ", ".join(f"{key} is {value}" for key, value in pattern.context.items())
        lines.append(f"It holds where {circumstances}.")
    return MemoryItem(
        "\n".join(lines)[:_LONGEST_KNOWLEDGE],
        "knowledge",
        id=f"reusable-{pattern.id}"[:120].rstrip(".-_"),
        timestamp=pattern.timestamp,
        trust=pattern.trust,
        links=(Link(to=pattern.id, relation="derived_from"),),
        context=dict(pattern.context),
        metadata={"learned_from": "pattern"},
    )
