"""memfs: memory for AI agents that lives as plain files in git.

The public names are loaded when first used, so that ``import memfs`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memfs.version import __version__

if TYPE_CHECKING:
    from memfs.errors import (
        AliasForbidden,
        ArchiveInvalid,
        AttributeConflict,
        BackupInvalid,
        CheckpointInvalid,
        Conflict,
        ContentError,
        CorruptItem,
        CorruptRecord,
        DeinitRefused,
        DuplicateId,
        DuplicateKey,
        EndpointFailed,
        EraseRefused,
        ExtraMissing,
        FormatUnsupported,
        GitBusy,
        GitFailed,
        HistoryError,
        HistoryUnavailable,
        IdExists,
        IdInvalid,
        IndexUnavailable,
        InvisibleCharacter,
        ItemNotFound,
        ItemSyntaxError,
        ItemTooDeep,
        ItemTooLarge,
        IterationInvalid,
        JournalDamaged,
        LockTimeout,
        MemfsError,
        MergeRefused,
        NotRegularFile,
        PathEscape,
        PushRefused,
        QueryInvalid,
        QuotaExceeded,
        RemoteInvalid,
        RemoteRewritten,
        RemoteUnreachable,
        RepoUnsupported,
        RepoUntrusted,
        SchemaInvalid,
        SchemaRefForbidden,
        SchemaTooComplex,
        SecretDetected,
        SettingInvalid,
        SharedStorageUnsupported,
        StorageFull,
        StorageIO,
        StorageReadOnly,
        StorageUnavailable,
        TagForbidden,
        TokenInvalid,
        WorkspaceClosed,
        WorkspaceNotFound,
        WritePending,
    )
    from memfs.facades.context_memory import ContextMemory
    from memfs.facades.coordinator import MemoryCoordinator
    from memfs.facades.detector import PatternDetector
    from memfs.facades.hooks import (
        consolidate_session_memory,
        on_session_start,
        on_session_stop,
        on_todo_write_complete,
        on_user_prompt_submit,
    )
    from memfs.facades.injector import MemoryInjector
    from memfs.facades.layered import MultiLayeredMemorySystem
    from memfs.facades.memory import Memory, MemoryStats
    from memfs.facades.memory_context import MemoryContext
    from memfs.facades.memory_layer import MemoryLayer, record_correction, record_outcome
    from memfs.facades.retrieval import RetrievalPipeline, TimeWeightedRetrieval
    from memfs.facades.review import AgentReview
    from memfs.facades.session import SimpleContextManager
    from memfs.facades.storage import StoragePipeline
    from memfs.facades.stores import EpisodicStore, PatternMatcher, PreferenceStore, SemanticStore
    from memfs.index.embedder import Embedder, register_embedder
    from memfs.model import Hit, MemoryItem, MemoryType, Origin, Query
    from memfs.model.episode import Action, Episode, Outcome, StateSnapshot
    from memfs.model.memory_config import MemoryConfig
    from memfs.model.review import ReviewResult, StoreResult
    from memfs.model.rule import Rule
    from memfs.model.states import (
        Acknowledgement,
        AgentOutput,
        FeedbackData,
        MetaReviewStorage,
        RecoveryState,
        RetrievedState,
        StateUpdate,
    )
    from memfs.pipeline.patterns import Pattern
    from memfs.pipeline.reviewer import Score
    from memfs.pipeline.reviewers import register_reviewer
    from memfs.pipeline.strategies import register_strategy
    from memfs.pipeline.trivial import TrivialFilter
    from memfs.sources.episodic import EpisodicMemory
    from memfs.sources.plugin import MemoryPlugin
    from memfs.sources.preferences import PreferencesMemory
    from memfs.sources.semantic import SemanticMemory
    from memfs.workspace import Workspace, open_workspace

_HOMES = {
    "Acknowledgement": "memfs.model.states",
    "Action": "memfs.model.episode",
    "AgentOutput": "memfs.model.states",
    "AgentReview": "memfs.facades.review",
    "ContextMemory": "memfs.facades.context_memory",
    "Embedder": "memfs.index.embedder",
    "register_embedder": "memfs.index.embedder",
    "Episode": "memfs.model.episode",
    "EpisodicMemory": "memfs.sources.episodic",
    "EpisodicStore": "memfs.facades.stores",
    "FeedbackData": "memfs.model.states",
    "Hit": "memfs.model",
    "Memory": "memfs.facades.memory",
    "MemoryConfig": "memfs.model.memory_config",
    "MemoryContext": "memfs.facades.memory_context",
    "MemoryCoordinator": "memfs.facades.coordinator",
    "MemoryInjector": "memfs.facades.injector",
    "MemoryItem": "memfs.model",
    "MemoryLayer": "memfs.facades.memory_layer",
    "MemoryPlugin": "memfs.sources.plugin",
    "MemoryStats": "memfs.facades.memory",
    "MemoryType": "memfs.model",
    "MetaReviewStorage": "memfs.model.states",
    "MultiLayeredMemorySystem": "memfs.facades.layered",
    "Origin": "memfs.model",
    "Outcome": "memfs.model.episode",
    "Pattern": "memfs.pipeline.patterns",
    "PatternDetector": "memfs.facades.detector",
    "PatternMatcher": "memfs.facades.stores",
    "PreferenceStore": "memfs.facades.stores",
    "PreferencesMemory": "memfs.sources.preferences",
    "Query": "memfs.model",
    "RecoveryState": "memfs.model.states",
    "RetrievalPipeline": "memfs.facades.retrieval",
    "RetrievedState": "memfs.model.states",
    "ReviewResult": "memfs.model.review",
    "Rule": "memfs.model.rule",
    "Score": "memfs.pipeline.reviewer",
    "SemanticMemory": "memfs.sources.semantic",
    "SemanticStore": "memfs.facades.stores",
    "SimpleContextManager": "memfs.facades.session",
    "StateSnapshot": "memfs.model.episode",
    "StateUpdate": "memfs.model.states",
    "StoragePipeline": "memfs.facades.storage",
    "StoreResult": "memfs.model.review",
    "TimeWeightedRetrieval": "memfs.facades.retrieval",
    "TrivialFilter": "memfs.pipeline.trivial",
    "Workspace": "memfs.workspace",
    "consolidate_session_memory": "memfs.facades.hooks",
    "on_session_start": "memfs.facades.hooks",
    "on_session_stop": "memfs.facades.hooks",
    "on_todo_write_complete": "memfs.facades.hooks",
    "on_user_prompt_submit": "memfs.facades.hooks",
    "open_workspace": "memfs.workspace",
    "record_correction": "memfs.facades.memory_layer",
    "record_outcome": "memfs.facades.memory_layer",
    "register_reviewer": "memfs.pipeline.reviewers",
    "register_strategy": "memfs.pipeline.strategies",
}


def __getattr__(name: str) -> Any:
    if name in __all__:  # what is in no other home is an error
        return getattr(import_module(_HOMES.get(name, "memfs.errors")), name)
    raise AttributeError(f"module 'memfs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Acknowledgement",
    "Action",
    "AgentOutput",
    "AgentReview",
    "AliasForbidden",
    "ArchiveInvalid",
    "AttributeConflict",
    "BackupInvalid",
    "CheckpointInvalid",
    "Conflict",
    "ContentError",
    "ContextMemory",
    "CorruptItem",
    "CorruptRecord",
    "DeinitRefused",
    "DuplicateId",
    "DuplicateKey",
    "Embedder",
    "EndpointFailed",
    "Episode",
    "EpisodicMemory",
    "EpisodicStore",
    "EraseRefused",
    "ExtraMissing",
    "FeedbackData",
    "FormatUnsupported",
    "GitBusy",
    "GitFailed",
    "HistoryError",
    "HistoryUnavailable",
    "Hit",
    "IdExists",
    "IdInvalid",
    "IndexUnavailable",
    "InvisibleCharacter",
    "ItemNotFound",
    "ItemSyntaxError",
    "ItemTooDeep",
    "ItemTooLarge",
    "IterationInvalid",
    "JournalDamaged",
    "LockTimeout",
    "MemfsError",
    "Memory",
    "MemoryConfig",
    "MemoryContext",
    "MemoryCoordinator",
    "MemoryInjector",
    "MemoryItem",
    "MemoryLayer",
    "MemoryPlugin",
    "MemoryStats",
    "MemoryType",
    "MergeRefused",
    "MetaReviewStorage",
    "MultiLayeredMemorySystem",
    "NotRegularFile",
    "Origin",
    "Outcome",
    "PathEscape",
    "Pattern",
    "PatternDetector",
    "PatternMatcher",
    "PreferenceStore",
    "PreferencesMemory",
    "PushRefused",
    "Query",
    "QueryInvalid",
    "QuotaExceeded",
    "RecoveryState",
    "RemoteInvalid",
    "RemoteRewritten",
    "RemoteUnreachable",
    "RepoUnsupported",
    "RepoUntrusted",
    "RetrievalPipeline",
    "RetrievedState",
    "ReviewResult",
    "Rule",
    "SchemaInvalid",
    "SchemaRefForbidden",
    "SchemaTooComplex",
    "Score",
    "SecretDetected",
    "SemanticMemory",
    "SemanticStore",
    "SettingInvalid",
    "SharedStorageUnsupported",
    "SimpleContextManager",
    "StateSnapshot",
    "StateUpdate",
    "StorageFull",
    "StorageIO",
    "StoragePipeline",
    "StorageReadOnly",
    "StorageUnavailable",
    "StoreResult",
    "TagForbidden",
    "TimeWeightedRetrieval",
    "TokenInvalid",
    "TrivialFilter",
    "Workspace",
    "WorkspaceClosed",
    "WorkspaceNotFound",
    "WritePending",
    "__version__",
    "consolidate_session_memory",
    "on_session_start",
    "on_session_stop",
    "on_todo_write_complete",
    "on_user_prompt_submit",
    "open_workspace",
    "record_correction",
    "record_outcome",
    "register_embedder",
    "register_reviewer",
    "register_strategy",
]
