"""Merging: one item out of an existing one and a draft that repeats it.

Owns which of the two says what each field holds. A draft adds nothing to an item that is better vouched for than
itself, and takes over one that is vouched for worse: text of lower trust never passes as text of higher trust.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.model import MemoryItem
from memfs.model.item import BY_TRUST, Link


def merged(existing: MemoryItem, draft: MemoryItem) -> MemoryItem:
    """The existing item with what the draft adds; the existing item itself where it adds nothing.

    Args:
        existing: an item with the same text.
        draft: the draft, as it was given: what was worked out of it changes no item that there is.
    """
    ours, theirs = _rank(existing), _rank(draft)
    if theirs < ours:
        return existing
    if theirs > ours:
        return draft.replace(
            id=existing.id,
            path=existing.path,
            sha256=existing.sha256,
            created=existing.created,
            timestamp=existing.timestamp,
            importance=max(existing.importance, draft.importance),
            pinned=existing.pinned or draft.pinned,
            links=_united(existing, draft.links),
        )
    return existing.replace(
        title=existing.title or draft.title,
        tags=tuple(dict.fromkeys((*existing.tags, *draft.tags))),
        importance=max(existing.importance, draft.importance),
        pinned=existing.pinned or draft.pinned,
        status=existing.status or draft.status,
        expires=_later(existing, draft),
        supersedes=tuple(one for one in (*existing.supersedes, *draft.supersedes) if one != existing.id),
        links=_united(existing, existing.links, draft.links),
        context=_added(existing.context, draft.context),
        metadata=_added(existing.metadata, draft.metadata),
    )


def _rank(item: MemoryItem) -> int:
    return BY_TRUST.index(item.trust) if item.trust in BY_TRUST else 0


def _later(existing: MemoryItem, draft: MemoryItem) -> Any:
    """What was said again with a later end holds until then."""
    if existing.expires is None or draft.expires is None:
        return existing.expires
    return max(existing.expires, draft.expires)


def _united(existing: MemoryItem, *rows: tuple[Link, ...]) -> tuple[Link, ...]:
    """All links, each once; an item that is linked already gets no second link of another sort."""
    found: dict[str, Link] = {}
    for row in rows:
        for link in row:
            if link.to != existing.id:
                found.setdefault(link.to, link)
    return tuple(found.values())


def _added(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    return {**ours, **{name: value for name, value in theirs.items() if name not in ours}}
