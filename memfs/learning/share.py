"""Copies items of private memory into what others see.

Sharing again does nothing twice: an item records what it was shared as, and a copy is imported like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memfs.dataclass import dataclass
from memfs.errors import Conflict, ContentError, ItemNotFound
from memfs.intake.episode_item import episode_of
from memfs.intake.import_service import FROM, Arrival, Became, ImportResult, ImportService
from memfs.model import MemoryItem, Query
from memfs.model.item import Origin
from memfs.model.kinds import MemoryType
from memfs.model.tokens import gist
from memfs.recall.conflict_notes import OVER
from memfs.store import Store
from memfs.store.plan import current_signer, signed_by

SOURCE = "private"
"""What private memory is called as a source."""
SHARED_AS = "shared_as"
"""The key below ``metadata`` of a private item that names its copy; ``no`` where it is to stay private."""
KEPT = "no"
_SPOKEN = frozenset({"session_id", "promoted_ids", "promoted_in", "promoted_from", "promoted_as", "told_by", "done_by"})
"""Facts of a session: they name what a person typed there, by its first words."""
_EVIDENCE = frozenset({"examples", "learned_from", "warned"})
"""Of a pattern, a rule or an episode: the words and names of what it rests on."""
_OF_A_SESSION = frozenset(
    {MemoryType.WORKING.value, MemoryType.CONTEXT.value, MemoryType.INTERACTION.value, MemoryType.CONVERSATION.value}
)
"""Types that hold what was said in a session as it was said."""
_NOT_OFFERED = _OF_A_SESSION | {MemoryType.PROSPECTIVE.value}
_MOST = 10_000
_THERE = frozenset({Became.STORED, Became.UPDATED, Became.SAME, Became.REPEATED})


@dataclass(frozen=True, slots=True)
class ShareResult:
    """What became of one item.

    Attributes:
        item: as it is in private memory.
        fate: what became of its copy.
        unmarked: why the item does not name its copy, "" where it does.
    """

    item: MemoryItem
    fate: ImportResult
    unmarked: str = ""


class ShareService:
    """Copies items of private memory into another workspace's memory."""

    def __init__(self, private: Store, import_service: ImportService) -> None:
        """
        Args:
            private: where the items are.
            import_service: takes in what comes to the other workspace.
        """
        self._private, self._import_service = private, import_service

    def items(self, references: Iterable[str]) -> list[MemoryItem]:
        """The items that a person means, each once.

        Raises:
            ItemNotFound: there is no such item, or several begin so.
            ContentError: its file is invalid, or it is of a type that holds what was said in a session.
        """
        found = {item.id: item for item in map(self._private.find, references)}
        for item in found.values():
            if item.type in _OF_A_SESSION:
                hint = "say it in words of your own: memfs remember TEXT"
                raise ContentError(f"{item.id} holds what was said in a session, and stays private", hint=hint)
        return list(found.values())

    def unsaved(self, items: Iterable[MemoryItem]) -> list[str]:
        """The paths of those that somebody edited by hand, where the edit is in no commit yet."""
        return self._private.hand_edits([item.path for item in items])

    def run(
        self, items: Sequence[MemoryItem], *, replace: bool = False, allow_secret: str = "", dry_run: bool = False
    ) -> list[ShareResult]:
        """Copy items, as one batch: all of it or nothing; what is refused, such as a secret, is left out and named.

        A copy has the item's id, words, trust and origin, and no link to what stays private; the commit's author is who
        shares. What a team changed in a copy stays as it is.

        Args:
            items: as ``items`` gave them.
            replace: what was edited there is replaced, too.
            allow_secret: why what looks like a secret may stay, as for ``Store.put``.
            dry_run: tell what would become of each, and write nothing.

        Raises:
            Conflict, StorageIO: as ``Store.batch``; nothing was copied.
        """
        first = gist(items[0]).partition("\n")[0][:60] if items else ""
        message = f"Share {first}" if len(items) == 1 else f"Share {len(items)} memories"
        copies = [_copy(item) for item in items]
        with signed_by(current_signer() or Origin()):  # who publishes, and not whose words it has
            fates = self._import_service.take_in(
                SOURCE, copies, message=message, replace=replace, allow_secret=allow_secret, dry_run=dry_run
            )
        pairs = list(zip(items, fates, strict=True))
        if dry_run:
            return [ShareResult(item, fate) for item, fate in pairs]
        return [ShareResult(item, fate, self._marked(item, fate)) for item, fate in pairs]

    def _marked(self, item: MemoryItem, fate: ImportResult) -> str:
        """Let an item name its copy; why it could not, "" where it does."""
        if fate.became not in _THERE or item.metadata.get(SHARED_AS) == fate.id:
            return ""
        try:
            mark(self._private, item, fate.id)
        except (ContentError, ItemNotFound, Conflict) as error:  # somebody is at it: sharing again names it
            return error.message
        return ""


def waiting(private: Store, limit: int = _MOST) -> list[MemoryItem]:
    """What private memory holds that could be shared and was not, the newest first; what is over is left out, and
    so are episodes: what they teach is shared as a rule.
    """
    found = private.select(Query(limit=limit))
    return [
        item
        for item in found
        if item.type not in _NOT_OFFERED
        and SHARED_AS not in item.metadata
        and item.status not in OVER
        and episode_of(item) is None
    ]


def mark(private: Store, item: MemoryItem, shared_as: str = KEPT) -> MemoryItem:
    """Note on an item what it was shared as, or that it is to stay private: then it waits no longer.

    Raises:
        Conflict, ContentError, StorageIO: as ``Store.put``.
    """
    verb = "Keep private" if shared_as == KEPT else "Share"
    changed = item.replace(metadata={**item.metadata, SHARED_AS: shared_as})
    return private.put(changed, expected=item.sha256, message=f"{verb} {item.id}", source="share")


def _copy(item: MemoryItem) -> Arrival:
    facts = {key: value for key, value in item.metadata.items() if key not in (*_SPOKEN, SHARED_AS, FROM)}
    data = {key: value for key, value in item.data.items() if key not in _EVIDENCE}
    copy = item.replace(
        id="", path="", sha256="", created=None, updated=None, links=(), supersedes=(), data=data, metadata=facts
    )
    return Arrival(key=item.id, item=copy, name=item.id, where=item.id, id=item.id)
