"""Further vocabularies for the same memory: classes and functions by the names that some programs expect.

None of them has a state of its own: what one writes, all of them, the command line and ``memfs.open_workspace`` find.
Each name can be imported from ``memfs``, too.

Memory in layers
    ``MultiLayeredMemorySystem`` and ``SimpleContextManager``: short-term, episodic and semantic memory; keys and values
    of a session.
Memory that learns
    ``MemoryContext``, ``PatternDetector`` (with ``Pattern``), ``MemoryInjector``, ``MemoryConfig``: patterns, feedback,
    and context for a prompt.
State of a multi-agent system
    ``ContextMemory`` with ``MetaReviewStorage``, ``AgentOutput``, ``StateUpdate``, ``FeedbackData``,
    ``RetrievedState``, ``RecoveryState``, ``Acknowledgement``.
Memory that comes up by itself
    ``MemoryLayer``, ``PreferenceStore``, ``EpisodicStore``, ``SemanticStore``, ``PatternMatcher``,
    ``record_outcome``, ``record_correction``; the sources ``PreferencesMemory``, ``SemanticMemory``,
    ``EpisodicMemory``; the values ``StateSnapshot``, ``Action``, ``Outcome``, ``Episode``, ``Rule``.
Five types, a review on the way in and a budget on the way out
    ``MemoryCoordinator``, ``StoragePipeline``, ``RetrievalPipeline``, ``TimeWeightedRetrieval``, ``AgentReview``,
    ``TrivialFilter``, with ``Memory``, ``MemoryStats``, ``ReviewResult``, ``StoreResult``.
Functions for the events of an agent's session
    ``on_session_start``, ``on_user_prompt_submit``, ``on_todo_write_complete``, ``on_session_stop``,
    ``consolidate_session_memory``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.context.builtin_sources import EpisodicMemory, PreferencesMemory, SemanticMemory
    from memfs.facades.context_memory import ContextMemory
    from memfs.facades.hooks import (
        consolidate_session_memory,
        on_session_start,
        on_session_stop,
        on_todo_write_complete,
        on_user_prompt_submit,
    )
    from memfs.facades.memory_context import (
        MemoryContext,
        MemoryInjector,
        MultiLayeredMemorySystem,
        PatternDetector,
        SimpleContextManager,
    )
    from memfs.facades.memory_layer import (
        EpisodicStore,
        MemoryLayer,
        PatternMatcher,
        PreferenceStore,
        SemanticStore,
        record_correction,
        record_outcome,
    )
    from memfs.facades.pipelines import (
        AgentReview,
        Memory,
        MemoryCoordinator,
        MemoryStats,
        RetrievalPipeline,
        StoragePipeline,
        TimeWeightedRetrieval,
    )
    from memfs.intake.filter import TrivialFilter
    from memfs.learning.patterns import Pattern
    from memfs.model.episode import Action, Episode, Outcome, StateSnapshot
    from memfs.model.memory_config import MemoryConfig
    from memfs.model.review import ReviewResult, StoreResult
    from memfs.model.rule import Rule
    from memfs.model.state_documents import (
        Acknowledgement,
        AgentOutput,
        FeedbackData,
        MetaReviewStorage,
        RecoveryState,
        RetrievedState,
        StateUpdate,
    )

_NAMES = {
    "memfs.context.builtin_sources": "EpisodicMemory PreferencesMemory SemanticMemory",
    "memfs.facades.context_memory": "ContextMemory",
    "memfs.facades.hooks": "consolidate_session_memory on_session_start "
    "on_session_stop on_todo_write_complete on_user_prompt_submit",
    "memfs.facades.memory_context": "MemoryContext MemoryInjector "
    "MultiLayeredMemorySystem PatternDetector SimpleContextManager",
    "memfs.facades.memory_layer": "EpisodicStore MemoryLayer PatternMatcher "
    "PreferenceStore SemanticStore record_correction record_outcome",
    "memfs.facades.pipelines": "AgentReview Memory MemoryCoordinator "
    "MemoryStats RetrievalPipeline StoragePipeline TimeWeightedRetrieval",
    "memfs.intake.filter": "TrivialFilter",
    "memfs.learning.patterns": "Pattern",
    "memfs.model.episode": "Action Episode Outcome StateSnapshot",
    "memfs.model.memory_config": "MemoryConfig",
    "memfs.model.review": "ReviewResult StoreResult",
    "memfs.model.rule": "Rule",
    "memfs.model.state_documents": "Acknowledgement AgentOutput FeedbackData "
    "MetaReviewStorage RecoveryState RetrievedState StateUpdate",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'memfs.seeds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Acknowledgement",
    "Action",
    "AgentOutput",
    "AgentReview",
    "ContextMemory",
    "Episode",
    "EpisodicMemory",
    "EpisodicStore",
    "FeedbackData",
    "Memory",
    "MemoryConfig",
    "MemoryContext",
    "MemoryCoordinator",
    "MemoryInjector",
    "MemoryLayer",
    "MemoryStats",
    "MetaReviewStorage",
    "MultiLayeredMemorySystem",
    "Outcome",
    "Pattern",
    "PatternDetector",
    "PatternMatcher",
    "PreferenceStore",
    "PreferencesMemory",
    "RecoveryState",
    "RetrievalPipeline",
    "RetrievedState",
    "ReviewResult",
    "Rule",
    "SemanticMemory",
    "SemanticStore",
    "SimpleContextManager",
    "StateSnapshot",
    "StateUpdate",
    "StoragePipeline",
    "StoreResult",
    "TimeWeightedRetrieval",
    "TrivialFilter",
    "consolidate_session_memory",
    "on_session_start",
    "on_session_stop",
    "on_todo_write_complete",
    "on_user_prompt_submit",
    "record_correction",
    "record_outcome",
]
