"""Feedback: a signal that an item helped, or did not, changes its importance.

The change is a new version of the item, and the importance stays within 0 to 10.
"""

from __future__ import annotations

from memfs.errors import ItemNotFound, QueryInvalid
from memfs.model import MemoryItem
from memfs.store import Store
from memfs.store.plan import of_items
from memfs.store.store import retry_on_conflict

HIGHEST = 10.0
_LIFT = 0.5
_DROP = 0.6
_LEAST_TO_LIFT = 0.1
_TRIES = 5
_REASON_LIMIT = 300
SOURCE = "feedback"


def moved(importance: float, positive: bool) -> float:
    """The importance after one signal, within 0 to 10.

    A positive one adds a half, less the nearer it is to 10; a negative one takes two fifths away. Repeated signals
    converge to 10 or to 0.
    """
    bounded = min(max(importance, 0.0), HIGHEST)
    if positive:
        bounded = max(bounded, _LEAST_TO_LIFT)
        return round(min(HIGHEST, bounded * (1.0 + _LIFT * (1.0 - bounded / HIGHEST))), 4)
    return round(bounded * _DROP, 4)


class Feedback:
    """Takes signals about the items of one workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def give(self, item_id: str, positive: bool, reason: str = "", *, source: str = SOURCE) -> MemoryItem:
        """Change an item's importance, as a new version of it.

        Args:
            item_id: the whole id.
            positive: whether it helped.
            reason: why, for the history.
            source: which door it came through, for the commit's trailers.

        Returns:
            The stored item.

        Raises:
            ItemNotFound: no item has that id.
            QueryInvalid: the signal is neither True nor False, or the reason no text of at most 300 characters.
            ContentError, StorageIO, Conflict: nothing was changed.
        """
        told = _checked(positive, reason)
        sign = "Good" if positive else "Bad"

        def given() -> MemoryItem:
            """Where somebody else's change came between, that is kept, and the signal applied to it."""
            item = self._store.get(item_id)
            if item is None:
                raise ItemNotFound(f"no memory has the id {item_id!r}", hint="memfs list shows what there is")
            changed = item.replace(importance=moved(item.importance, positive))
            message = of_items(f"{sign} feedback", [item], told)
            return self._store.put(changed, expected=item.sha256, message=message, source=source)

        return retry_on_conflict(given, tries=_TRIES)


def _checked(positive: object, reason: object) -> str:
    if not isinstance(positive, bool):
        raise QueryInvalid(f"expected True or False, got {ascii(positive)[:60]}", field="positive")
    if not isinstance(reason, str) or len(reason) > _REASON_LIMIT:
        raise QueryInvalid("expected a text of at most 300 characters", field="reason", hint="say it shorter")
    return " ".join(reason.split())
