"""Recipient: through which door what this thread hands out goes, and to whom (B2).

Owns that knowledge, so that a door says it once and need not pass it through every layer. What is done with it, the
record knows (``memfs.served.log``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """Through which door items go, and to whom; "" for what is not known."""

    door: str = ""
    agent: str = ""
    session: str = ""


_NOBODY = Recipient()
_recipient: ContextVar[Recipient | None] = ContextVar("memfs-recipient", default=None)
_silent: ContextVar[bool] = ContextVar("memfs-not-handed-out", default=False)


@contextmanager
def served_to(door: str = "", agent: str = "", session: str = "") -> Iterator[None]:
    """What this thread hands out within goes through this door, to this agent; what was said further out stands."""
    outer = _recipient.get() or _NOBODY
    token = _recipient.set(
        Recipient(door=outer.door or door, agent=outer.agent or agent, session=outer.session or session)
    )
    try:
        yield
    finally:
        _recipient.reset(token)


@contextmanager
def not_handed_out() -> Iterator[None]:
    """What this thread finds within stays with memfs, or is noted by whoever chooses of it what is handed out."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def recipient() -> Recipient | None:
    """To whom what is handed out now goes; None where it stays with memfs."""
    return None if _silent.get() else _recipient.get() or _NOBODY
