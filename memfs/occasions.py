"""Runs the reactions to an occasion when it is raised. One that fails is reported and stops no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from memfs.errors import SettingInvalid
from memfs.fs.lock import renewed_in_child
from memfs.model.kinds import nearest
from memfs.store.parts import Facts

if TYPE_CHECKING:
    from logging import Logger

Reaction = Callable[[Facts], object]

# Each occasion with what it means and the facts that come with it.
OCCASIONS: Mapping[str, str] = {
    "storage_threshold": "an area's use crossed a threshold of its quota: area, level, used, limit, share",
    "backup_made": "a backup was written and verified: path, bytes",
    "backup_failed": "a backup that was due could not be made: error",
    "memory_stored": "a memory went through remember, the intake or a facade and is stored: item",
    "context_accessed": "an agent is about to be given context: context, situation",
    "task_completed": "a task ended: task, session, outcome",
    "pattern_detected": "a pattern was written, or holds for one more memory: pattern, found (whether it is new)",
    "episode_recorded": "what an agent did, and how it ended, was stored: episode, item",
    "session_ended": "a session ended and its working memory was consolidated: session",
    "state_stored": "a state document was stored: kind, path, iteration, update_type",
    "iteration_closed": "an iteration was closed: iteration, statistics",
}
_ALARMS = frozenset({"storage_threshold", "backup_failed"})
DEEPEST = 4
"""How deep occasions may raise occasions: a reaction may cause another, and that one another, but not forever."""


@cache
def _log() -> Logger:
    """Where occasions are noted, for whoever listens."""
    import logging  # a command that only reads raises no occasion

    log = logging.getLogger("memfs")
    log.addHandler(logging.NullHandler())
    return log


class Behaviours:
    """The reactions of one open workspace. May be used from several threads."""

    def __init__(self, report: Callable[[Exception], None] = lambda _: None) -> None:
        """Begin with no reactions.

        Args:
            report: receives what a reaction raised, and an occasion that was too deep to be raised.
        """
        self._report = report
        self._reactions: dict[str, tuple[Reaction, ...]] = {}
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._thread = threading.local()

    def on(self, occasion: str, reaction: Reaction) -> Callable[[], None]:
        """Call ``reaction`` with the facts whenever the occasion is raised; return what ends this.

        Raises:
            SettingInvalid: there is no such occasion; the hint names the nearest.
        """
        _known(occasion)
        with self._guard:
            self._reactions[occasion] = (*self._reactions.get(occasion, ()), reaction)

        def end() -> None:
            with self._guard:
                kept = self._reactions.get(occasion, ())
                self._reactions[occasion] = tuple(other for other in kept if other is not reaction)

        return end

    def fire(self, occasion: str, facts: Facts) -> int:
        """Raise an occasion; return how many reactions ran without failing.

        Raises:
            SettingInvalid: there is no such occasion.
        """
        _known(occasion)
        depth = getattr(self._thread, "depth", 0)
        if depth >= DEEPEST:
            self._tell(occasion, RecursionError(f"{occasion}: occasions raised one another {DEEPEST} deep"))
            return 0
        frozen = MappingProxyType(dict(facts))
        (_log().warning if occasion in _ALARMS else _log().info)("%s %s", occasion, dict(facts))
        self._thread.depth = depth + 1
        try:
            return sum(self._ran(occasion, reaction, frozen) for reaction in self._reactions.get(occasion, ()))
        finally:
            self._thread.depth = depth

    def _ran(self, occasion: str, reaction: Reaction, facts: Facts) -> bool:
        try:
            reaction(facts)
        except Exception as error:  # noqa: BLE001  foreign code, reported; see tests/test_architecture.py
            self._tell(occasion, error)
            return False
        return True

    def _tell(self, occasion: str, error: Exception) -> None:
        _log().error("%s: a reaction failed: %s: %s", occasion, type(error).__name__, error)
        self._report(error)


def _known(occasion: str) -> None:
    if occasion not in OCCASIONS:
        raise SettingInvalid(f"there is no occasion {occasion!r}", hint=nearest(occasion, OCCASIONS) or "see OCCASIONS")
