"""Decides who signs a write, and how far the written item is trusted.

An agent's write never raises trust, and trust given to words does not pass to those an agent puts in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memfs.model import MemoryItem, Origin
from memfs.model.item import BY_TRUST, Trust, lower_trust

_signer: ContextVar[Origin | None] = ContextVar("memfs-signer", default=None)


@contextmanager
def signed_by(origin: Origin) -> Iterator[None]:
    """What this thread writes within is committed as this agent's, in this session."""
    token = _signer.set(origin)
    try:
        yield
    finally:
        _signer.reset(token)


def current_signer() -> Origin | None:
    """Who signs at present; None where the item's own author does."""
    return _signer.get()


def speaks(item: MemoryItem, before: MemoryItem | None) -> bool:
    """Whether a write says by the item's origin who wrote: one that brings words, or a new origin.

    Tags, a status, trust, importance and the like may be changed by anybody, and the origin stays that of the words.
    """
    return before is None or item.origin != before.origin or _words(item) != _words(before)


def vouched(item: MemoryItem, before: MemoryItem | None, branch_of: str) -> MemoryItem:
    """The item with no more trust than its words have.

    Those who vouched for an item did so for what it said. An agent that signs a write never raises trust, and words
    that it replaces have an agent's. So have words that an item says are of another agent than those before were, where
    it takes over the trust that those had.

    Args:
        before: the item as it is; None where there is none.
        branch_of: the agent whose branch is written on, "" for none.
    """
    if before is None:
        return item
    signer = current_signer()
    anew = _words(item) != _words(before)
    agent = (signer.agent if signer is not None else "") or branch_of
    if not agent and anew and item.trust == before.trust and item.origin.agent != before.origin.agent:
        agent = item.origin.agent
    if not agent or item.trust not in BY_TRUST:
        return item
    return item.replace(trust=lower_trust(item.trust, before.trust, *([Trust.AGENT.value] if anew else ())))


def _words(item: MemoryItem) -> tuple[object, ...]:
    return item.title, item.content
