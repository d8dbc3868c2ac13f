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

_HOMES = {
    "Acknowledgement": "memfs.model.state_documents",
    "Action": "memfs.model.episode",
    "AgentOutput": "memfs.model.state_documents",
    "AgentReview": "memfs.facades.pipelines",
    "ContextMemory": "memfs.facades.context_memory",
    "Episode": "memfs.model.episode",
    "EpisodicMemory": "memfs.context.builtin_sources",
    "EpisodicStore": "memfs.facades.memory_layer",
    "FeedbackData": "memfs.model.state_documents",
    "Memory": "memfs.facades.pipelines",
    "MemoryConfig": "memfs.model.memory_config",
    "MemoryContext": "memfs.facades.memory_context",
    "MemoryCoordinator": "memfs.facades.pipelines",
    "MemoryInjector": "memfs.facades.memory_context",
    "MemoryLayer": "memfs.facades.memory_layer",
    "MemoryStats": "memfs.facades.pipelines",
    "MetaReviewStorage": "memfs.model.state_documents",
    "MultiLayeredMemorySystem": "memfs.facades.memory_context",
    "Outcome": "memfs.model.episode",
    "Pattern": "memfs.learning.patterns",
    "PatternDetector": "memfs.facades.memory_context",
    "PatternMatcher": "memfs.facades.memory_layer",
    "PreferenceStore": "memfs.facades.memory_layer",
    "PreferencesMemory": "memfs.context.builtin_sources",
    "RecoveryState": "memfs.model.state_documents",
    "RetrievalPipeline": "memfs.facades.pipelines",
    "RetrievedState": "memfs.model.state_documents",
    "ReviewResult": "memfs.model.review",
    "Rule": "memfs.model.rule",
    "SemanticMemory": "memfs.context.builtin_sources",
    "SemanticStore": "memfs.facades.memory_layer",
    "SimpleContextManager": "memfs.facades.memory_context",
    "StateSnapshot": "memfs.model.episode",
    "StateUpdate": "memfs.model.state_documents",
    "StoragePipeline": "memfs.facades.pipelines",
    "StoreResult": "memfs.model.review",
    "TimeWeightedRetrieval": "memfs.facades.pipelines",
    "TrivialFilter": "memfs.intake.filter",
    "consolidate_session_memory": "memfs.facades.hooks",
    "on_session_start": "memfs.facades.hooks",
    "on_session_stop": "memfs.facades.hooks",
    "on_todo_write_complete": "memfs.facades.hooks",
    "on_user_prompt_submit": "memfs.facades.hooks",
    "record_correction": "memfs.facades.memory_layer",
    "record_outcome": "memfs.facades.memory_layer",
}


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
