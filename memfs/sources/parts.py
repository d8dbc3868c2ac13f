"""Parts: the parts that bring memory to an agent, and how they are wired (seed 004).

Owns which part gets which others, when it is made, and which hears of an occasion. What a part does, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memfs.errors import MemfsError
from memfs.files.ownbranch import code_of
from memfs.model.ids import of_mount

if TYPE_CHECKING:
    from memfs.model.item import MemoryItem
    from memfs.model.memory_config import MemoryConfig
    from memfs.model.occasion import Fire
    from memfs.pipeline.agreements import Agreements
    from memfs.pipeline.conventions import Conventions
    from memfs.pipeline.conventionsharing import Sharing
    from memfs.pipeline.episodes import Episodes
    from memfs.pipeline.inbox import Inbox
    from memfs.pipeline.intake import Intake
    from memfs.pipeline.preferences import Preference, Preferences
    from memfs.pipeline.retrieval import Recaller
    from memfs.pipeline.rules import Rules
    from memfs.pipeline.triggers import Triggers
    from memfs.settings import MemorySettings, Settings
    from memfs.sources.agents_block import AgentsBlock
    from memfs.sources.delivery import Deliverer
    from memfs.sources.known_files import KnownFiles
    from memfs.sources.loading import Makers, Plugins
    from memfs.sources.mounts import Mounts
    from memfs.sources.warned import Warned
    from memfs.states.parts import States
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
        fire: raises an occasion (``memfs.behaviours.Behaviours.fire``).
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
        from memfs.pipeline.triggers import triggers_of

        return self._first("triggers", triggers_of(self.store, self.parts, self.settings.memory.decay))

    @cached_property
    def episodes(self) -> Episodes:
        """What happened, and what resembles a situation."""
        from memfs.pipeline.episodes import Episodes

        return self._first("episodes", Episodes(self.store, self.triggers, self.fire))

    @cached_property
    def rules(self) -> Rules:
        """What was learned from outcomes."""
        from memfs.pipeline.rules import rules_of

        return self._first("rules", rules_of(self.store, self.parts, self.triggers, self.memory_config, self.inbox))

    @cached_property
    def preferences(self) -> Preferences:
        """How the person wants things done."""
        from memfs.pipeline.preferences import Preferences

        return self._first("preferences", Preferences(self.store, self.parts, self.usage, self.fire))

    @cached_property
    def conventions(self) -> Conventions:
        """What the team agreed on."""
        from memfs.pipeline.conventions import Conventions

        return self._first("conventions", Conventions(self.store, self.parts.clock))

    @cached_property
    def agreements(self) -> Agreements:
        """Decides about conventions."""
        from memfs.pipeline.agreements import Agreements

        return self._first("agreements", Agreements(self.store, self.conventions, self.parts.clock))

    @cached_property
    def sharing(self) -> Sharing:
        """Takes conventions to other workspaces, and in from them."""
        from memfs.pipeline.conventionsharing import Sharing

        made = Sharing(self.store, self.parts, self.conventions, lambda path: self.states().files.revision_of(path))
        return self._first("sharing", made)

    @cached_property
    def mounts(self) -> Mounts:
        """Other workspaces, which are read and never written."""
        from memfs.sources.mounts import Mounts

        return self._first("mounts", Mounts(self.root, self.store, self.parts, self.recall, self.settings))

    @cached_property
    def agents_block(self) -> AgentsBlock:
        """Keeps what is agreed on in the file that agents read on their own."""
        from memfs.sources.agents_block import MOST_PREFERENCES, AgentsBlock

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
        """What agents are told without memory."""
        from memfs.sources.known_files import KnownFiles

        return self._first("known", KnownFiles(self.root, self.parts.repository.work_tree))

    @cached_property
    def warned(self) -> Warned:
        """What agents were warned with lately, whichever process warned them."""
        from memfs.pipeline.warninglog import WarningLog
        from memfs.sources.warned import Warned

        return self._first("warned", Warned(WarningLog(self.notes), self.parts.clock))

    @cached_property
    def plugins(self) -> Plugins:
        """The sources that settings name, ours and those of others."""
        from memfs.sources.loading import plugins_of

        return self._first("plugins", plugins_of(self.root, self.settings, self._makers()))

    def plugins_for(self, memory: MemorySettings) -> Plugins:
        """Sources apart from the workspace's own, by the given settings; failures are counted together."""
        from memfs.sources.isolation import Guard
        from memfs.sources.loading import Plugins

        return Plugins(memory, self._makers(), Guard(memory.source_seconds, self.plugins.guard.book))

    def _makers(self) -> Makers:
        from memfs.sources.builtin import BUILT_IN

        return {name: partial(make, self) for name, make in BUILT_IN.items()}

    @cached_property
    def delivery(self) -> Deliverer:
        """Asks the sources, and puts together what they say."""
        from memfs.sources.delivery import Deliverer

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
