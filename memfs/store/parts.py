"""Parts: what the modules of the store share.

Owns nothing itself; it is the record of one workspace's tree, journal, locks, history, codec and index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memfs.files.codec import Codec
from memfs.files.journal import Journal
from memfs.files.lock import FileLock
from memfs.files.tree import Tree
from memfs.history.repository import Repository
from memfs.index.layers import SearchIndex
from memfs.model import KindTable

CONTENT = "ContextMemory"
ITEM_SUFFIXES = (".yaml", ".yml", ".json")
READ_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How this workspace's store behaves, from ``memfs.toml`` (design section 5).

    Attributes:
        commit: ``interval``, ``session``, ``each``, ``batch`` or ``manual``.
        interval: seconds a commit window stays open.
        adopt: ``auto`` or ``leave``: what happens to a person's edits.
    """

    commit: str = "interval"
    interval: float = 1.0
    adopt: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One open workspace's machinery."""

    tree: Tree
    journal: Journal
    lock: FileLock
    commit_lock: FileLock
    repository: Repository
    codec: Codec
    kinds: KindTable
    index: SearchIndex
    policy: Policy
    clock: Callable[[], datetime]


def below_content(path: str) -> str:
    """The path below ``ContextMemory/``, "" when it lies elsewhere."""
    return path[len(CONTENT) + 1 :] if path.startswith(CONTENT + "/") else ""
