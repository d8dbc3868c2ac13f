"""Parts: what the modules of the store share.

Owns nothing itself; it is the record of one workspace's tree, journal, locks, history, codec and index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from memfs.files.codec import Codec
from memfs.files.journal import Journal
from memfs.files.lock import FileLock
from memfs.files.tree import Tree, View
from memfs.history.repository import Repository
from memfs.index.layers import SearchIndex
from memfs.model import KindTable
from memfs.store.gate import Gate, OpenGate

if TYPE_CHECKING:
    from memfs.store.fallback import Secondary

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
        rest: seconds that an edit must have rested before it is committed by itself.
        agent: in whose name is written what names nobody, "" for the person's: the agent whose branch this is.
        local: types of items whose files stay on this machine and are in no commit.
    """

    commit: str = "interval"
    interval: float = 1.0
    adopt: str = "auto"
    rest: float = 30.0
    agent: str = ""
    local: frozenset[str] = frozenset()

    @property
    def adopts(self) -> bool:
        """Whether a person's edits are committed without being asked for; nothing is under ``manual``."""
        return self.adopt == "auto" and self.commit != "manual"


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
    gate: Gate = field(default_factory=OpenGate)
    secondary: Secondary | None = None

    @property
    def seen(self) -> View:
        """The files as readers see them: the tree's own, and what waits in the secondary location."""
        return self.tree if self.secondary is None else self.secondary.over(self.tree)

    def require_open(self) -> None:
        """Let only pass who comes before the workspace is closed.

        Raises:
            WorkspaceClosed: it was closed.
        """
        self.tree.require_open()

    def is_local(self, path: str) -> bool:
        """Whether the file at a path is in no commit, by its type."""
        kind = self.kinds.at(below_content(path)) if self.policy.local else None
        return kind is not None and kind.name in self.policy.local and is_item(path, self.kinds)

    def durability(self, path: str) -> str:
        """Where the newest version of a file is durable: ``file``, or ``fallback`` for the secondary location."""
        return "fallback" if self.secondary is not None and path in self.secondary.held() else "file"


def below_content(path: str) -> str:
    """The path below ``ContextMemory/``, "" when it lies elsewhere."""
    return path[len(CONTENT) + 1 :] if path.startswith(CONTENT + "/") else ""


def is_item(path: str, kinds: KindTable) -> bool:
    """Whether a file at this path is an item that recall finds, by its folder and ending."""
    return path.endswith(ITEM_SUFFIXES) and "/." not in path and kinds.at(below_content(path)) is not None
