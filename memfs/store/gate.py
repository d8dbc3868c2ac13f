"""Gate: who is asked whether there is room for a write, and told of what was written.

Owns the protocol, the way of a write through it, and the gate that lets everything pass. What a quota is,
``memfs.upkeep.quota`` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from memfs.errors import QuotaExceeded

if TYPE_CHECKING:
    from memfs.store.plan import Planned


class Gate(Protocol):
    """Keeps account of what a workspace weighs."""

    def prepare(self) -> None:
        """Make sure that ``admit`` can answer. No lock is held."""

    def admit(self, plans: Sequence[Planned], critical: bool) -> None:
        """Let a write pass, or refuse it before anything is written. The store's lock is held.

        Raises:
            QuotaExceeded: the write is not critical, needs room, and its area has none.
        """

    def wrote(self, plans: Sequence[Planned]) -> None:
        """Take note of a write. The store's lock is held."""

    def filled(self, path: str, size: int) -> None:
        """Take note of a file that no plan wrote, a payload: by how many bytes it grew. No lock is held."""

    def settle(self) -> None:
        """Raise the occasion if a threshold was crossed. No lock is held."""

    def relieve(self, refused: QuotaExceeded) -> None:
        """Raise the occasion of a refusal, which may make room, and count anew. No lock is held."""

    def tend(self) -> None:
        """Do what is due from time to time: called by a resident process, on a thread of its own."""


class OpenGate:
    """Lets everything pass: for a store without quotas."""

    def prepare(self) -> None:
        """Nothing to be done."""

    def admit(self, plans: Sequence[Planned], critical: bool) -> None:
        """Pass."""
        del plans, critical

    def wrote(self, plans: Sequence[Planned]) -> None:
        """Forget it."""
        del plans

    def filled(self, path: str, size: int) -> None:
        """Forget it."""
        del path, size

    def settle(self) -> None:
        """Nothing to be told."""

    def relieve(self, refused: QuotaExceeded) -> None:
        """Never called: nothing is refused."""
        del refused

    def tend(self) -> None:
        """Nothing is due."""


def through(gate: Gate, write: Callable[[], None]) -> None:
    """Carry out a write; one that is refused is tried again once, after the occasion that may make room for it.

    Raises:
        QuotaExceeded: there is no room all the same; nothing was written.
    """
    gate.prepare()
    try:
        write()
    except QuotaExceeded as refused:
        gate.relieve(refused)
        write()
    gate.settle()
