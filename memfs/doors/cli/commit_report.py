"""Commit a write before its command ends, if the workspace's policy says so, and report how safe it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memfs.doors.cli.output import TEXT_ONLY, Note
from memfs.errors import HistoryError
from memfs.model.kinds import ITEM_LIMIT

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace


AT_ONCE = frozenset({"interval", "each", "batch"})
"""Policies under which a command that wrote commits before it ends."""


SOURCE = "cli"
"""The door's name in commit trailers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport:
    """How safe a write is.

    Attributes:
        durability: `file`, `commit`, or `fallback` where the workspace's own storage takes nothing at present.
        revision: the commit that holds it; null where none does yet.
        reason: why its commit waits.
    """

    durability: str = "file"
    revision: str | None = None
    reason: str = field(default="", metadata=TEXT_ONLY)

    def remarks(self) -> Iterator[Note]:
        """Why the commit waits; nothing where it does not."""
        if self.reason:
            yield Note(f"stored; its commit waits: {self.reason}")

    def json(self) -> dict[str, Any]:
        """As scripts read it."""
        return {"durability": self.durability, "revision": self.revision}


def land(workspace: Workspace, item: MemoryItem | None) -> CommitReport:
    """Commit what was written if the policy says so, and tell how safe the item is now.

    A person's edits that have rested were committed before it was written (``Store.adopt_rested``); others wait.
    """
    reason = ""
    if workspace.settings.history.commit in AT_ONCE:
        reason = workspace.store.flush(adopt=False).reason
    if item is not None and is_committed(workspace, item):
        return CommitReport(durability="commit", revision=workspace.repository.head().commit)
    if item is not None and workspace.parts.durability(item.path) == "fallback":
        return CommitReport(durability="fallback", reason=_at_fallback(workspace))
    return CommitReport(reason=reason)


def _at_fallback(workspace: Workspace) -> str:
    storage = workspace.store.storage()
    return f"it is in {storage.secondary} for now: {storage.reason or 'earlier writes wait there'}"


def is_committed(workspace: Workspace, item: MemoryItem) -> bool:
    """Whether HEAD holds exactly the bytes of the item's file; not where git's own files cannot be read."""
    try:
        data = workspace.parts.seen.read(item.path, ITEM_LIMIT).data
        return workspace.repository.head_blob(item.path) == workspace.repository.blob_id(data)
    except (FileNotFoundError, HistoryError):
        return False
