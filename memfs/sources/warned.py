"""Warned: which items an agent was warned with in which situation.

Owns that short memory, so that an episode tells what it was warned with, and what the warnings are worth can be
learned. Who warns may be another process than the one that records what became of it, as hooks of agents are: both look
into one log.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime

from memfs.files.forked import renewed_in_child
from memfs.model.episode import StateSnapshot
from memfs.model.time import utc_now
from memfs.pipeline.situations import plain_files
from memfs.pipeline.warninglog import Given, WarningLog

_MOST = 1024
_LASTS = 24 * 3600.0
_NEARLY = 3600.0
_NEVER = Given(float("-inf"), "", "", ())


class Warned:
    """The latest warnings by situation, the oldest forgotten first. May be used from several threads."""

    def __init__(self, log: WarningLog | None = None, clock: Callable[[], datetime] = utc_now) -> None:
        """``log``: what other processes know; without one only this one's warnings count."""
        self._log, self._clock = log, clock
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._exact: OrderedDict[str, Given] = OrderedDict()
        self._near: dict[str, Given] = {}

    def note(self, state: StateSnapshot, ids: Iterable[str]) -> None:
        """Remember what a situation was warned with; nothing, where it was not."""
        exact, near = _situation(state)
        given = Given(self._clock().timestamp(), exact, near, tuple(dict.fromkeys(ids)))
        with self._guard:
            self._catch_up()
            if given.ids or self._found(exact, near, given.time).ids:
                self._keep(given)
                if self._log is not None:
                    self._log.add(given)

    def of(self, state: StateSnapshot) -> tuple[str, ...]:
        """What a situation was warned with when it was last asked about, within a day.

        Without a question about this very situation, what the same agent was warned with in the same session within an
        hour about the same files: what it did is often told in other words than what it was about to do.
        """
        exact, near = _situation(state)
        with self._guard:
            self._catch_up()
            return self._found(exact, near, self._clock().timestamp()).ids

    def _found(self, exact: str, near: str, now: float) -> Given:
        asked = self._exact.get(exact, _NEVER)
        if abs(now - asked.time) <= _LASTS:
            return asked
        nearly = self._near.get(near, _NEVER)
        return nearly if abs(now - nearly.time) <= _NEARLY else _NEVER

    def _catch_up(self) -> None:
        for given in self._log.news() if self._log is not None else ():
            if given.time >= self._exact.get(given.exact, _NEVER).time:
                self._keep(given)

    def _keep(self, given: Given) -> None:
        self._exact.pop(given.exact, None)
        self._exact[given.exact] = given
        if given.near:
            self._near[given.near] = given
        if len(self._exact) > _MOST:
            _, oldest = self._exact.popitem(last=False)
            if self._near.get(oldest.near) is oldest:
                del self._near[oldest.near]


def _situation(state: StateSnapshot) -> tuple[str, str]:
    """What makes a situation the same when its outcome is recorded: by then the tool is known, and more facts."""
    files = sorted(plain_files(state.files))
    who = [state.agent, state.session]
    return _digest([*files, "", " ".join(state.context.split()), *who]), _digest([*files, "", *who]) if files else ""


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]
