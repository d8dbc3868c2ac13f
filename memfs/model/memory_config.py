"""MemoryConfig: how a workspace learns, as a value with the names and defaults of ``memory_context.yaml``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from memfs.dataclass import dataclass, replace
from memfs.errors import MemfsError


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

FILE_BASED, VECTOR_DB = "file_based", "vector_db"
"""The storage types: searched by words, or by meaning as well."""
OFF = "off"
"""In place of a model: words only, whatever the memory context says."""
DEFAULT_RULES = (
    BehaviorRule(trigger=Trigger.CONTEXT_ACCESSED, action=BehaviorAction.INJECT_RELEVANT_MEMORIES),
    BehaviorRule(trigger=Trigger.TASK_COMPLETED, action=BehaviorAction.EXTRACT_LEARNINGS),
    BehaviorRule(trigger=Trigger.PATTERN_DETECTED, action=BehaviorAction.CREATE_REUSABLE_KNOWLEDGE),
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
        pattern_threshold: so many similar items make a pattern.
        similarity_threshold: share of common words, 0 to 1, from which two items are similar.
        min_common_words: a pattern has at least so many words in common.
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
