"""The parts that the modules of a store share: tree, journal, locks, history, codec, index, quota gate and policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.catalog.facts import ItemCatalog
from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import MemfsError
from memfs.format.codec import Codec
from memfs.fs.journal import Journal
from memfs.fs.lock import FileLock
from memfs.fs.tree import Content, Tree, View
from memfs.git.repository import Repository
from memfs.model import KindTable
from memfs.search.search_index import SearchIndex

if TYPE_CHECKING:
    from memfs.errors import QuotaExceeded
    from memfs.store.failover import Secondary
    from memfs.store.plan import FilePlan


class Gate:
    """Asks before a write whether there is room. This one lets everything pass: for a store without quotas."""

    def prepare(self) -> None:
        """Make sure that ``admit`` can answer. No lock is held."""

    def admit(self, plans: Sequence[FilePlan], critical: bool) -> None:
        """Let a write pass, or refuse it before anything is written. The store's lock is held.

        Raises:
            QuotaExceeded: the write is not critical, needs room, and its area has none.
        """

    def wrote(self, plans: Sequence[FilePlan]) -> None:
        """Take note of a write. The store's lock is held."""

    def filled(self, path: str, size: int) -> None:
        """Take note of a file that no plan wrote, a payload: by how many bytes it grew. No lock is held."""

    def settle(self) -> None:
        """Raise the occasion if a threshold was crossed. No lock is held."""

    def relieve(self, refused: QuotaExceeded) -> None:
        """Raise the occasion of a refusal, which may make room, and count again. No lock is held."""

    def tend(self) -> None:
        """Do what is due from time to time: called by a long-lived process, on a thread of its own."""


CONTENT = "ContextMemory"
ITEM_SUFFIXES = (".yaml", ".yml", ".json")
READ_LIMIT = 16 * 1024 * 1024


def content_at(files: View, path: str) -> Content | None:
    """What a file is now; None where it is not there, or cannot be read."""
    try:
        return files.read(path, READ_LIMIT)
    except (FileNotFoundError, MemfsError):
        return None


class StorePolicy(NamedTuple):
    """How this workspace's store behaves, from ``memfs.toml``.

    Attributes:
        commit: ``interval``, ``session``, ``each``, ``batch`` or ``manual``.
        interval: seconds a commit window stays open.
        adopt: ``auto`` or ``leave``: what happens to a person's edits.
        rest: seconds that an edit must have rested before it is committed by itself.
        local: types of items whose files stay on this machine and are in no commit.
    """

    commit: str = "interval"
    interval: float = 1.0
    adopt: str = "auto"
    rest: float = 30.0
    local: frozenset[str] = frozenset()

    @property
    def adopts(self) -> bool:
        """Whether a person's edits are committed without being asked for; nothing is under ``manual``."""
        return self.adopt == "auto" and self.commit != "manual"

    @property
    def when_free(self) -> str:
        """What becomes of waiting changes once git takes commits again."""
        alone = self.commit not in ("session", "manual")
        return "memfs commits by itself when that is over" if alone else "run 'memfs commit' again when that is over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The shared parts of one open workspace's store."""

    tree: Tree
    journal: Journal
    lock: FileLock
    commit_lock: FileLock
    repository: Repository
    codec: Codec
    items: ItemCatalog
    kinds: KindTable
    index: SearchIndex
    policy: StorePolicy
    clock: Callable[[], datetime]
    gate: Gate = field(default_factory=Gate)
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


Facts = Mapping[str, Any]
Fire = Callable[[str, Facts], object]
"""Raises an occasion (``memfs.workspace``), by its name, with its facts."""
