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
    from memfs.context.builtin_sources import EpisodicMemory as EpisodicMemory
    from memfs.context.builtin_sources import PreferencesMemory as PreferencesMemory
    from memfs.context.builtin_sources import SemanticMemory as SemanticMemory
    from memfs.facades.context_memory import ContextMemory as ContextMemory
    from memfs.facades.memory_context import MemoryContext as MemoryContext
    from memfs.facades.memory_context import MemoryInjector as MemoryInjector
    from memfs.facades.memory_context import MultiLayeredMemorySystem as MultiLayeredMemorySystem
    from memfs.facades.memory_context import PatternDetector as PatternDetector
    from memfs.facades.memory_context import SimpleContextManager as SimpleContextManager
    from memfs.facades.memory_layer import EpisodicStore as EpisodicStore
    from memfs.facades.memory_layer import MemoryLayer as MemoryLayer
    from memfs.facades.memory_layer import PatternMatcher as PatternMatcher
    from memfs.facades.memory_layer import PreferenceStore as PreferenceStore
    from memfs.facades.memory_layer import SemanticStore as SemanticStore
    from memfs.facades.memory_layer import record_correction as record_correction
    from memfs.facades.memory_layer import record_outcome as record_outcome
    from memfs.facades.pipelines import AgentReview as AgentReview
    from memfs.facades.pipelines import Memory as Memory
    from memfs.facades.pipelines import MemoryCoordinator as MemoryCoordinator
    from memfs.facades.pipelines import MemoryStats as MemoryStats
    from memfs.facades.pipelines import RetrievalPipeline as RetrievalPipeline
    from memfs.facades.pipelines import StoragePipeline as StoragePipeline
    from memfs.facades.pipelines import TimeWeightedRetrieval as TimeWeightedRetrieval
    from memfs.facades.pipelines import consolidate_session_memory as consolidate_session_memory
    from memfs.facades.pipelines import on_session_start as on_session_start
    from memfs.facades.pipelines import on_session_stop as on_session_stop
    from memfs.facades.pipelines import on_todo_write_complete as on_todo_write_complete
    from memfs.facades.pipelines import on_user_prompt_submit as on_user_prompt_submit
    from memfs.learning.patterns import Pattern as Pattern
    from memfs.model.episode import Action as Action
    from memfs.model.episode import Episode as Episode
    from memfs.model.episode import Outcome as Outcome
    from memfs.model.episode import Rule as Rule
    from memfs.model.episode import StateSnapshot as StateSnapshot
    from memfs.model.learning import MemoryConfig as MemoryConfig
    from memfs.model.learning import ReviewResult as ReviewResult
    from memfs.model.learning import StoreResult as StoreResult
    from memfs.model.state_documents import Acknowledgement as Acknowledgement
    from memfs.model.state_documents import AgentOutput as AgentOutput
    from memfs.model.state_documents import FeedbackData as FeedbackData
    from memfs.model.state_documents import MetaReviewStorage as MetaReviewStorage
    from memfs.model.state_documents import RecoveryState as RecoveryState
    from memfs.model.state_documents import RetrievedState as RetrievedState
    from memfs.model.state_documents import StateUpdate as StateUpdate
    from memfs.recall.cues import TrivialFilter as TrivialFilter

_NAMES = {
    "memfs.context.builtin_sources": "EpisodicMemory PreferencesMemory SemanticMemory",
    "memfs.facades.context_memory": "ContextMemory",
    "memfs.facades.memory_context": "MemoryContext MemoryInjector "
    "MultiLayeredMemorySystem PatternDetector SimpleContextManager",
    "memfs.facades.memory_layer": "EpisodicStore MemoryLayer PatternMatcher "
    "PreferenceStore SemanticStore record_correction record_outcome",
    "memfs.facades.pipelines": "AgentReview Memory MemoryCoordinator "
    "MemoryStats RetrievalPipeline StoragePipeline TimeWeightedRetrieval consolidate_session_memory on_session_start "
    "on_session_stop on_todo_write_complete on_user_prompt_submit",
    "memfs.recall.cues": "TrivialFilter",
    "memfs.learning.patterns": "Pattern",
    "memfs.model.episode": "Action Episode Outcome Rule StateSnapshot",
    "memfs.model.learning": "MemoryConfig ReviewResult StoreResult",
    "memfs.model.state_documents": "Acknowledgement AgentOutput FeedbackData "
    "MetaReviewStorage RecoveryState RetrievedState StateUpdate",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
if not TYPE_CHECKING:  # a type checker takes the names from the imports above
    __all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'memfs.seeds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOMES)
