"""Signing: in whose name this thread writes, where that is not whoever an item is of.

Owns that name, for commit trailers and the author of commits. An agent that corrects, deletes or brings back what
another wrote does so in its own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memfs.model import Origin

_signer: ContextVar[Origin | None] = ContextVar("memfs-signer", default=None)


@contextmanager
def signed_by(origin: Origin) -> Iterator[None]:
    """What this thread writes within is committed as this agent's, in this session."""
    token = _signer.set(origin)
    try:
        yield
    finally:
        _signer.reset(token)


def signer() -> Origin | None:
    """Who signs at present; None where whoever an item is of does."""
    return _signer.get()
