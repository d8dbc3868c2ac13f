"""Settings: the names, types, defaults and bounds of all settings, as values.

Owns the rule of each setting. Where values come from is ``memfs.config``'s business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from memfs.errors import SettingInvalid
from memfs.model.kinds import nearest

_PREFIX = "MEMFS_"


def _setting(default: Any, summary: str, **rule: Any) -> Any:
    return field(default=default, metadata={"summary": summary, **rule})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """``[memory]``: which sources give an agent its context, and their own tables ``[memory.<source>]``."""

    automatic: tuple[str, ...] = _setting(("preferences",), "Sources loaded at the start of every session.")
    triggered: tuple[str, ...] = _setting(("episodic", "semantic"), "Sources that speak up when the work needs them.")
    on_demand: bool = _setting(True, "Whether agents may ask with recall.")
    context: str = _setting("", "Name of the memory context that holds; empty: `configuration/memory_context.yaml`.")
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """``[index]``: the search engine."""

    engine: str = _setting("whoosh", "Search engine.", choices=("memory", "whoosh", "sqlite"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """``[history]``: when changes become commits."""

    commit: str = _setting(
        "session",
        "When waiting changes become a commit.",
        choices=("interval", "session", "each", "batch", "manual"),
    )
    interval_seconds: float = _setting(1.0, "Length of the commit window under 'interval'.", low=0.01, high=86_400)
    adopt: str = _setting("leave", "Whether hand edits are committed by themselves.", choices=("auto", "leave"))
    adopt_after_seconds: float = _setting(30.0, "How long a hand-edited file must rest first.", low=0, high=86_400)
    allow_detached: bool = _setting(False, "Whether to commit on a detached HEAD.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """``[recall]``: what a question brings back."""

    limit: int = _setting(10, "How many hits a recall gives unless told otherwise.", low=1, high=10_000)
    preset: str = _setting(
        "default", "Weights of the ranking.", choices=("default", "time_weighted", "learning", "fading")
    )
    deduplicate: bool = _setting(True, "Whether the command line and agents' doors leave out what repeats a hit.")
    max_tokens: int = _setting(0, "Most tokens an answer holds unless told otherwise; 0: no bound.", low=0, high=10**7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings:
    """``[review]``: who judges a draft before it is stored."""

    threshold: float = _setting(6.0, "Mean score, 0 to 10, from which a draft is stored.", low=0, high=10)
    reviewers: tuple[str, ...] = _setting(
        ("analyzer", "patterns", "knowledge-archaeologist"), "Who judges a draft, by name.", personal=True
    )
    endpoint: str = _setting("", "Base address of an OpenAI-compatible service whose model judges too.", personal=True)
    model: str = _setting("", "Name of that service's model.")
    seconds: float = _setting(5.0, "How long reviewers may take over a draft.", low=0.1, high=600)
    relevance_seconds: float = _setting(2.0, "How long reviewers may take over an answer.", low=0.1, high=600)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """``[security]``: what is let in."""

    allow_invisible: bool = _setting(
        False, "Whether text may hold characters that hide instructions from a reader.", personal=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """``[watch]``: how a resident process notices changed files."""

    enabled: bool = _setting(True, "Whether resident processes watch the files.")
    debounce_ms: int = _setting(100, "How long events must pause before they are acted on.", low=1, high=60_000)
    scan_seconds: float = _setting(60.0, "How often all files are compared all the same.", low=1, high=86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSettings:
    """``[backup]``: when backups are made by themselves, and where they go."""

    interval_hours: float = _setting(
        0.0, "Hours between backups made by themselves; 0 makes none.", low=0, high=8784, personal=True
    )
    copies: int = _setting(7, "How many backups are kept in each place.", low=1, high=1000, personal=True)
    targets: tuple[str, ...] = _setting(
        (), "Folders that backups go to; without one, a folder of the user's own.", personal=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """``[storage]``: where writes go."""

    secondary: str = _setting(
        "", "Folder on another disk for writes while the workspace's own takes none.", personal=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one workspace, by table. ``origins`` says for each dotted key where its value came from:
    ``argument``, the ``MEMFS_*`` variable's name, ``memfs.toml`` with the line, or ``default``, with a remark where
    ``memfs.toml`` sets it without being trusted to."""

    memory: MemorySettings = MemorySettings()
    index: IndexSettings = IndexSettings()
    history: HistorySettings = HistorySettings()
    recall: RecallSettings = RecallSettings()
    review: ReviewSettings = ReviewSettings()
    security: SecuritySettings = SecuritySettings()
    watch: WatchSettings = WatchSettings()
    backup: BackupSettings = BackupSettings()
    storage: StorageSettings = StorageSettings()
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def get(self, key: str) -> Any:
        """The value of a dotted key.

        Raises:
            SettingInvalid: no such key; the hint names the nearest one.
        """
        spec_of(key)
        table, _, name = key.partition(".")
        return getattr(getattr(self, table), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The rule of one setting: dotted key, default (whose type is the setting's), meaning, and allowed values.

    A ``personal`` one loosens what protects the reader, or reaches outside the workspace, unless it has its default: an
    argument or variable may set it, ``memfs.toml`` only in a workspace that the reader trusts (``memfs.trust``).
    """

    key: str
    default: Any
    summary: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    personal: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that sets it, such as ``MEMFS_INDEX_ENGINE``."""
        return _PREFIX + self.key.replace(".", "_").upper()


TABLES: Mapping[str, type[Any]] = {
    "memory": MemorySettings,
    "index": IndexSettings,
    "history": HistorySettings,
    "recall": RecallSettings,
    "review": ReviewSettings,
    "security": SecuritySettings,
    "watch": WatchSettings,
    "backup": BackupSettings,
    "storage": StorageSettings,
}
SPECS: Mapping[str, Spec] = {
    f"{table}.{entry.name}": Spec(key=f"{table}.{entry.name}", default=entry.default, **entry.metadata)
    for table, shape in TABLES.items()
    for entry in dataclasses.fields(shape)
    if entry.metadata
}


def spec_of(key: str) -> Spec:
    """The rule of a dotted key.

    Raises:
        SettingInvalid: no such key; the hint names the nearest one.
    """
    if key not in SPECS:
        raise SettingInvalid(f"unknown setting {key!r}", hint=nearest(key, SPECS) or "see 'memfs config'")
    return SPECS[key]
