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
        AttributeConflict,
        BackupInvalid,
        Conflict,
        ContentError,
        CorruptItem,
        CorruptRecord,
        DuplicateId,
        DuplicateKey,
        EraseRefused,
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
        JournalDamaged,
        LockTimeout,
        MemfsError,
        NotRegularFile,
        PathEscape,
        QueryInvalid,
        QuotaExceeded,
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
        WorkspaceNotFound,
    )
    from memfs.model import Hit, MemoryItem, MemoryType, Origin, Query
    from memfs.model import MemoryItem as Memory
    from memfs.workspace import Workspace, open_workspace

_HOMES = {
    "Hit": "memfs.model",
    "Memory": "memfs.model",
    "MemoryItem": "memfs.model",
    "MemoryType": "memfs.model",
    "Origin": "memfs.model",
    "Query": "memfs.model",
    "Workspace": "memfs.workspace",
    "open_workspace": "memfs.workspace",
}
_OTHER_NAMES = {"Memory": "MemoryItem"}


def __getattr__(name: str) -> Any:
    if name in __all__:  # what is in no other home is an error
        return getattr(import_module(_HOMES.get(name, "memfs.errors")), _OTHER_NAMES.get(name, name))
    raise AttributeError(f"module 'memfs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "AliasForbidden",
    "AttributeConflict",
    "BackupInvalid",
    "Conflict",
    "ContentError",
    "CorruptItem",
    "CorruptRecord",
    "DuplicateId",
    "DuplicateKey",
    "EraseRefused",
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
    "JournalDamaged",
    "LockTimeout",
    "MemfsError",
    "Memory",
    "MemoryItem",
    "MemoryType",
    "NotRegularFile",
    "Origin",
    "PathEscape",
    "Query",
    "QueryInvalid",
    "QuotaExceeded",
    "RepoUnsupported",
    "RepoUntrusted",
    "SchemaInvalid",
    "SchemaRefForbidden",
    "SchemaTooComplex",
    "SecretDetected",
    "SettingInvalid",
    "SharedStorageUnsupported",
    "StorageFull",
    "StorageIO",
    "StorageReadOnly",
    "StorageUnavailable",
    "TagForbidden",
    "Workspace",
    "WorkspaceNotFound",
    "__version__",
    "open_workspace",
]
