"""Carries out the behaviour rules of a memory context: injects memories, and turns patterns into knowledge.

The same pattern always becomes the same item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from memfs.dataclass import dataclass
from memfs.errors import IdExists, MemfsError
from memfs.learning.consolidation import extract_learnings
from memfs.learning.patterns import Pattern, fixed_words, item_of, words_of
from memfs.model import Link, MemoryItem, Query
from memfs.model.memory_config import FITTING, BehaviorAction, MemoryConfig, Trigger
from memfs.model.suggestion import Keep
from memfs.recall.conflict_notes import unresolved_note
from memfs.recall.fence import withheld
from memfs.recall.recaller import Recaller
from memfs.recall.review import relevances
from memfs.recall.tokens import gist
from memfs.store import Store
from memfs.store.parts import Facts, Fire

if TYPE_CHECKING:
    from memfs.learning.inbox import Inbox


ADDED = "relevant_memories"
LIMIT = 5


def question(situation: Mapping[str, Any]) -> str:
    """What a situation asks of the memory: its ``tool`` and the ``intent`` of its ``params``; "" where it has none."""
    params = situation.get("params")
    intent = params.get("intent") if isinstance(params, Mapping) else None
    return " ".join(str(part) for part in (situation.get("tool"), intent) if part)


def relevant(recall: Recaller, situation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is remembered about a situation, best first: type, content, relevance and context of each memory.

    One of which a merge left something open also has ``undecided``, with the other value.
    """
    asked = question(situation)
    if not asked.strip():
        return []
    query = Query(text=asked, context=situation, limit=LIMIT, deduplicate=True)
    hits = recall.search(query, leave_out=withheld).hits
    return [_row(hit.item, relevance) for hit, relevance in zip(hits, relevances(hits), strict=True)]


def injected(recall: Recaller, context: Mapping[str, Any], situation: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a context with ``relevant_memories`` added; as it was where nothing is found."""
    found = relevant(recall, situation)
    return {**context, ADDED: found} if found else dict(context)


def _row(item: MemoryItem, relevance: float) -> dict[str, Any]:
    row = {"type": item.type, "content": gist(item), "relevance": relevance, "context": dict(item.context)}
    left = unresolved_note(item)
    return {**row, "undecided": left} if left else row


SOURCE = "reactions"
_LONGEST = 2_000


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
            ContentError, SettingInvalid, PathEscape: the memory context is invalid; nothing was learned.
        """
        self.store.require_open()
        trigger = Trigger(occasion)
        try:
            rules = self.config().behavior_rules
        except MemfsError:
            if trigger is Trigger.CONTEXT_ACCESSED:
                self._inject(facts)
            raise
        wanted = [rule.action for rule in rules if rule.trigger is trigger]
        fitting = [action for action in dict.fromkeys(wanted) if action in FITTING[trigger]]
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
            context.update(injected(self.recall, context, situation))

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
    if seen := _variants(pattern):
        lines.append(f"So far with: {', '.join(seen)}.")
    if pattern.context:
        circumstances = ", ".join(f"{key} is {value}" for key, value in pattern.context.items())
        lines.append(f"It holds where {circumstances}.")
    return MemoryItem(
        "\n".join(lines)[:_LONGEST],
        "knowledge",
        id=f"reusable-{pattern.id}"[:120].rstrip(".-_"),
        timestamp=pattern.timestamp,
        trust=pattern.trust,
        links=(Link(to=pattern.id, relation="derived_from"),),
        context=dict(pattern.context),
        metadata={"learned_from": "pattern"},
    )


def _variants(pattern: MemoryItem) -> list[str]:
    """What each example has beside the words of the template."""
    fixed = fixed_words(pattern.content)
    texts = (str(example).split() for example in pattern.data.get("examples", ()))
    found = (" ".join(word for word in words if not words_of(word) <= fixed) for words in texts)
    return [variant for variant in dict.fromkeys(found) if variant]
