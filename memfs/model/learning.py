"""Values of what memfs learns by itself: how a workspace learns (``memory_context.yaml``), what it suggests, what
reviewers say of a draft, and which items contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from memfs.config_names import FILE_BASED, OFF, VECTOR_DB
from memfs.dataclass import dataclass, field, replace
from memfs.errors import MemfsError
from memfs.model.item import MemoryItem


class Trigger(StrEnum):
    """What a behaviour rule waits for."""

    CONTEXT_ACCESSED = "context_accessed"
    TASK_COMPLETED = "task_completed"
    PATTERN_DETECTED = "pattern_detected"


class BehaviorAction(StrEnum):
    """What a behaviour rule does."""

    INJECT_RELEVANT_MEMORIES = "inject_relevant_memories"
    EXTRACT_LEARNINGS = "extract_learnings"
    CREATE_REUSABLE_KNOWLEDGE = "create_reusable_knowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviorRule:
    """When something happens, do something."""

    trigger: Trigger
    action: BehaviorAction


FITTING: Mapping[Trigger, tuple[BehaviorAction, ...]] = {
    Trigger.CONTEXT_ACCESSED: (BehaviorAction.INJECT_RELEVANT_MEMORIES,),
    Trigger.TASK_COMPLETED: (BehaviorAction.EXTRACT_LEARNINGS,),
    Trigger.PATTERN_DETECTED: (BehaviorAction.CREATE_REUSABLE_KNOWLEDGE,),
}
"""The actions that find what they need in the facts of what happened."""

DEFAULT_RULES = tuple(
    BehaviorRule(trigger=trigger, action=action) for trigger, actions in FITTING.items() for action in actions
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """One memory context, with what it extends filled in.

    Attributes:
        name, business_goal: what it is, and what it is for.
        storage_type: ``file_based`` (text search) or ``vector_db`` (by meaning as well).
        embedding_model: name of the embedder's model.
        embedding_endpoint: base address of an OpenAI-compatible service, "" for a local embedder.
        max_memories: above this many items, weak ones are due for pruning.
        pattern_threshold: how many similar items make a pattern.
        similarity_threshold: share of common words, 0 to 1, from which two items are similar.
        min_common_words: how many words a pattern has in common at least.
        prune_below: an item whose importance falls below this is due for pruning.
        behavior_rules: what to do when something happens.
    """

    name: str = "Workspace Memory"
    business_goal: str = ""
    storage_type: str = FILE_BASED
    embedding_model: str = "hashing"
    embedding_endpoint: str = ""
    max_memories: int = 10_000
    pattern_threshold: int = 3
    similarity_threshold: float = 0.5
    min_common_words: int = 2
    prune_below: float = 0.1
    behavior_rules: tuple[BehaviorRule, ...] = DEFAULT_RULES

    def searched_with(self, model: str, endpoint: str = "") -> MemoryConfig:
        """This context with the model that the settings choose for search by meaning.

        Args:
            model: ``semantic.model``; "" chooses nothing, and the context stays as it is.
            endpoint: ``semantic.endpoint``, which counts for a model that is chosen here.
        """
        if not model:
            return self
        if model == OFF:
            return replace(self, storage_type=FILE_BASED)
        return replace(self, storage_type=VECTOR_DB, embedding_model=model, embedding_endpoint=endpoint)


def injects(config: Callable[[], MemoryConfig]) -> bool:
    """Whether the rules of a memory context give agents what is remembered; one that is invalid forbids nothing."""
    injection = BehaviorRule(trigger=Trigger.CONTEXT_ACCESSED, action=BehaviorAction.INJECT_RELEVANT_MEMORIES)
    try:
        return injection in config().behavior_rules
    except MemfsError:  # 'memfs check' names it
        return True


class Keep(StrEnum):
    """What becomes of what memfs learns by itself."""

    OFF = "off"
    SUGGEST = "suggest"
    WRITE = "write"


class Source(StrEnum):
    """Where a suggestion comes from."""

    PATTERN = "pattern"
    RULE = "rule"
    PREFERENCE = "preference"
    LESSON = "lesson"
    SESSION = "session"


class SuggestionDecision(StrEnum):
    """What was decided about a suggestion."""

    WAITING = ""
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One suggestion; its id is the id that the memory would have.

    Attributes:
        id: what it is accepted by; one of private memory begins with ``private:``.
        item: the memory, as it would be stored.
        source: where it comes from.
        count: how many memories, failures or statements speak for it.
        evidence: the ids of those of them that are memories, the newest first where there are many.
        reason: where it was heard, or why it matters, in words; "" where the evidence says it.
        made: when it was suggested first.
        decision: what was decided about it.
    """

    item: MemoryItem
    source: Source
    made: datetime
    count: int = 1
    evidence: tuple[str, ...] = ()
    reason: str = ""
    decision: SuggestionDecision = SuggestionDecision.WAITING

    @property
    def id(self) -> str:
        """The id that the memory would have."""
        return self.item.id


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """The judgement of several reviewers.

    Attributes:
        consensus_score: mean of the scores of those that answered, 0 to 10; 0 where none did.
        agent_scores: each reviewer's score by its name.
        reasons: each reviewer's reason by its name, one sentence.
        absent: reviewers that gave no usable answer in time, with why.
    """

    consensus_score: float
    agent_scores: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """What became of a draft.

    Attributes:
        stored: whether the memory is held now, in its own item or merged into ``merged_into``.
        memory_id: id of the item that holds it, None where it was refused.
        consensus_score: what the reviewers said together, 0 to 10; 0 where they were not asked.
        reason: one sentence; of a trivial draft it holds the word "trivial".
        review: the whole judgement, None where the reviewers were not asked.
        merged_into: id of the item it repeats, "" where it is new.
        near: ids of items that say nearly the same, linked to it.
        contradicts: ids of items that say otherwise, linked to it.
    """

    stored: bool
    memory_id: str | None
    consensus_score: float
    reason: str
    review: ReviewResult | None = None
    merged_into: str = ""
    near: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two items that hold at present and cannot both be right.

    Attributes:
        one: the newer of the two.
        other: the older.
        reason: why they cannot both hold, in one sentence.
        linked: whether a link between them says so; else a scan found it.
        reopened: whether it was decided before, and an edit since made them contradict again.
    """

    one: MemoryItem
    other: MemoryItem
    reason: str
    linked: bool = True
    reopened: bool = False

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of the two, the newer first."""
        return self.one.id, self.other.id

    @property
    def items(self) -> tuple[MemoryItem, MemoryItem]:
        """The two, the newer first."""
        return self.one, self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about two items.

    Attributes:
        kept: the id of the item that holds, or ``both``.
        one, other: the items as they are stored now.
        changed: whether anything was written; false where it had been decided so already.
    """

    kept: str
    one: MemoryItem
    other: MemoryItem
    changed: bool = True
