"""Wire the sources and what they need for one workspace, each part made when it is first used.

``WarningHistory`` keeps the latest warnings by situation, the oldest forgotten first.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memfs.errors import MemfsError
from memfs.fs.lock import renewed_in_child
from memfs.fs.own_branch import code_of
from memfs.learning.situations import plain_files
from memfs.learning.triggers import WarningLog, WarningRecord
from memfs.model.episode import StateSnapshot
from memfs.model.ids import of_mount
from memfs.model.time import utc_now

if TYPE_CHECKING:
    from memfs.context.agents_md import AgentsBlock
    from memfs.context.deliver import Deliverer
    from memfs.context.known import KnownFiles
    from memfs.context.mounts import Mounts
    from memfs.context.plugins import Makers, Plugins
    from memfs.intake.intake import Intake
    from memfs.learning.convention_exchange import ConventionExchange
    from memfs.learning.conventions import Agreements, Conventions
    from memfs.learning.episodes import Episodes
    from memfs.learning.inbox import Inbox
    from memfs.learning.preferences import Preference, Preferences
    from memfs.learning.rules import Rules
    from memfs.learning.triggers import Triggers
    from memfs.model.item import MemoryItem
    from memfs.model.memory_config import MemoryConfig
    from memfs.model.occasion import Fire
    from memfs.recall.recaller import Recaller
    from memfs.settings import MemorySettings, Settings
    from memfs.state.parts import States
    from memfs.store import Store
    from memfs.store.parts import Parts
    from memfs.usage import Usage


Part = TypeVar("Part")


@dataclass(frozen=True, kw_only=True, repr=False)
class Sources:
    """The parts that bring memory to an agent in one workspace, each made when it is first used.

    Attributes:
        root: the folder that holds ``ContextMemory/``.
        store, parts, settings, usage, recall: the workspace's.
        intake, states: give the workspace's, made when first asked for.
        memory_config: gives the memory context that holds at present.
        fire: raises an occasion (``memfs.occasions.Behaviours.fire``).
        inbox: gives where what is learned is suggested.
        notes: the folder where it is noted what agents were warned with.
    """

    root: Path
    store: Store
    parts: Parts
    settings: Settings
    usage: Usage
    recall: Recaller
    intake: Callable[[], Intake]
    states: Callable[[], States]
    memory_config: Callable[[], MemoryConfig]
    fire: Fire
    inbox: Callable[[], Inbox]
    notes: Path

    # -- what is remembered ---------------------------------------------------------------------------------------
    @cached_property
    def triggers(self) -> Triggers:
        """Knows which episodes and rules a situation brings to mind."""
        from memfs.learning.triggers import triggers_of

        return self._first("triggers", triggers_of(self.store, self.parts, self.settings.memory.decay))

    @cached_property
    def episodes(self) -> Episodes:
        """What happened, and what resembles a situation."""
        from memfs.learning.episodes import Episodes

        return self._first("episodes", Episodes(self.store, self.triggers, self.fire))

    @cached_property
    def rules(self) -> Rules:
        """What was learned from outcomes."""
        from memfs.learning.rules import rules_of

        return self._first("rules", rules_of(self.store, self.parts, self.triggers, self.memory_config, self.inbox))

    @cached_property
    def preferences(self) -> Preferences:
        """How the person wants things done."""
        from memfs.learning.preferences import Preferences

        return self._first("preferences", Preferences(self.store, self.parts, self.usage, self.fire))

    @cached_property
    def conventions(self) -> Conventions:
        """What the team agreed on."""
        from memfs.learning.conventions import Conventions

        return self._first("conventions", Conventions(self.store, self.parts.clock))

    @cached_property
    def agreements(self) -> Agreements:
        """Decides about conventions."""
        from memfs.learning.conventions import Agreements

        return self._first("agreements", Agreements(self.store, self.conventions, self.parts.clock))

    @cached_property
    def sharing(self) -> ConventionExchange:
        """Takes conventions to other workspaces, and in from them."""
        from memfs.learning.convention_exchange import ConventionExchange

        made = ConventionExchange(
            self.store, self.parts, self.conventions, lambda path: self.states().files.revision_of(path)
        )
        return self._first("sharing", made)

    @cached_property
    def mounts(self) -> Mounts:
        """Other workspaces, which are read and never written."""
        from memfs.context.mounts import Mounts

        return self._first("mounts", Mounts(self.root, self.store, self.parts, self.recall, self.settings))

    @cached_property
    def agents_block(self) -> AgentsBlock:
        """Keeps what is agreed on in the file that agents read on their own."""
        from memfs.context.agents_md import MOST_PREFERENCES, AgentsBlock

        def wishes() -> Sequence[Preference]:
            return self.preferences.get_relevant("", limit=MOST_PREFERENCES)

        folder = code_of(self.root, Path())
        top = self.parts.repository.work_tree if folder == self.root else folder
        made = AgentsBlock(folder, top, self.conventions, wishes)
        return self._first("agents_block", made)

    def item(self, name: str) -> MemoryItem | None:
        """An item, here or of a mounted workspace; None where there is none, or it cannot be read at present."""
        self.parts.require_open()
        try:
            return self.mounts.get(name) if of_mount(name) else self.store.get(name)
        except MemfsError:
            return None

    # -- what is brought back -------------------------------------------------------------------------------------
    @cached_property
    def known(self) -> KnownFiles:
        """What agents get without memory."""
        from memfs.context.known import KnownFiles

        return self._first("known", KnownFiles(self.root, self.parts.repository.work_tree))

    @cached_property
    def warned(self) -> WarningHistory:
        """What agents were warned with lately, whichever process warned them."""
        from memfs.learning.triggers import WarningLog

        return self._first("warned", WarningHistory(WarningLog(self.notes), self.parts.clock))

    @cached_property
    def plugins(self) -> Plugins:
        """The sources that settings name, ours and those of others."""
        from memfs.context.plugins import plugins_of

        return self._first("plugins", plugins_of(self.root, self.settings, self._makers()))

    def plugins_for(self, memory: MemorySettings) -> Plugins:
        """Sources apart from the workspace's own, by the given settings; failures are counted together."""
        from memfs.context.isolation import SourceGuard
        from memfs.context.plugins import Plugins

        return Plugins(memory, self._makers(), SourceGuard(memory.source_seconds, self.plugins.guard.book))

    def _makers(self) -> Makers:
        from memfs.context.builtin_sources import BUILT_IN

        return {name: partial(make, self) for name, make in BUILT_IN.items()}

    @cached_property
    def delivery(self) -> Deliverer:
        """Asks the sources, and puts together what they say."""
        from memfs.context.deliver import Deliverer

        return self._first("delivery", Deliverer(self, self.plugins))

    # -- upkeep ---------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Close whatever was opened. May be repeated."""
        with ExitStack() as ending:  # one that cannot be closed keeps no other open
            for name, part in list(self.__dict__.items()):
                closing = getattr(part, "close", None)
                if closing is not None and name in type(self).__dict__:
                    ending.callback(closing)

    def _first(self, name: str, made: Part) -> Part:
        """The part that threads share which make it at once: two would not know of each other's work."""
        found: Part = self.__dict__.setdefault(name, made)
        return found


_MOST = 1024
_LASTS = 24 * 3600.0
_NEARLY = 3600.0
_NEVER = WarningRecord(float("-inf"), "", "", ())


class WarningHistory:
    """The latest warnings by situation, the oldest forgotten first. May be used from several threads."""

    def __init__(self, log: WarningLog | None = None, clock: Callable[[], datetime] = utc_now) -> None:
        """``log``: what other processes know; without one only this one's warnings count."""
        self._log, self._clock = log, clock
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._exact: OrderedDict[str, WarningRecord] = OrderedDict()
        self._near: dict[str, WarningRecord] = {}

    def note(self, state: StateSnapshot, ids: Iterable[str]) -> None:
        """Remember what a situation was warned with; nothing, where it was not."""
        exact, near = _situation(state)
        given = WarningRecord(self._clock().timestamp(), exact, near, tuple(dict.fromkeys(ids)))
        with self._guard:
            self._catch_up()
            if given.ids or self._found(exact, near, given.time).ids:
                self._keep(given)
                if self._log is not None:
                    self._log.add(given)

    def of(self, state: StateSnapshot) -> tuple[str, ...]:
        """What a situation was warned with when it was last asked about, within a day.

        Without a question about this very situation, what the same agent was warned with in the same session within an
        hour about the same files: what it did is often described in other words than what it was about to do.
        """
        exact, near = _situation(state)
        with self._guard:
            self._catch_up()
            return self._found(exact, near, self._clock().timestamp()).ids

    def _found(self, exact: str, near: str, now: float) -> WarningRecord:
        asked = self._exact.get(exact, _NEVER)
        if abs(now - asked.time) <= _LASTS:
            return asked
        nearly = self._near.get(near, _NEVER)
        return nearly if abs(now - nearly.time) <= _NEARLY else _NEVER

    def _catch_up(self) -> None:
        for given in self._log.news() if self._log is not None else ():
            if given.time >= self._exact.get(given.exact, _NEVER).time:
                self._keep(given)

    def _keep(self, given: WarningRecord) -> None:
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
