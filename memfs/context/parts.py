"""Wire the sources and what they need for one workspace, each part made when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import MemfsError
from memfs.fs.lock import shared_property
from memfs.fs.workspace_location import code_of
from memfs.model.ids import of_mount
from memfs.startup import TYPE_CHECKING

if TYPE_CHECKING:
    from memfs.context.agents_md import AgentsBlock
    from memfs.context.deliver import Deliverer
    from memfs.context.known import KnownFiles
    from memfs.context.mounts import Mounts
    from memfs.context.plugins import Plugins
    from memfs.learning.conventions import Agreements, Conventions
    from memfs.learning.inbox import Inbox
    from memfs.learning.preferences import Preferences
    from memfs.learning.rules import Rules
    from memfs.learning.triggers import Episodes, Triggers, WarningHistory
    from memfs.model.item import MemoryItem
    from memfs.model.learning import MemoryConfig
    from memfs.recall.recaller import Recaller
    from memfs.settings import Settings
    from memfs.state.parts import States
    from memfs.store import Store
    from memfs.store.parts import Fire, Parts
    from memfs.usage import Usage


@dataclass(frozen=True, kw_only=True, repr=False)
class Sources:
    """The parts that bring memory to an agent in one workspace, each made when it is first used.

    Attributes:
        root: the folder that holds ``ContextMemory/``.
        store, parts, settings, usage: the workspace's.
        recall: gives what answers questions there.
        states: gives the workspace's, made when first asked for.
        memory_config: gives the memory context that holds at present.
        fire: raises an occasion (``memfs.workspace.Behaviours.fire``).
        inbox: gives where what is learned is suggested.
    """

    root: Path
    store: Store
    parts: Parts
    settings: Settings
    usage: Usage
    recall: Callable[[], Recaller]
    states: Callable[[], States]
    memory_config: Callable[[], MemoryConfig]
    fire: Fire
    inbox: Callable[[], Inbox]

    # -- what is remembered ---------------------------------------------------------------------------------------
    @shared_property
    def triggers(self) -> Triggers:
        """Knows which episodes and rules a situation brings to mind."""
        from memfs.learning.triggers import Triggers

        return Triggers(self.store, self.parts.clock, self.settings.memory.decay)

    @shared_property
    def episodes(self) -> Episodes:
        """What happened, and what resembles a situation."""
        from memfs.learning.triggers import Episodes

        return Episodes(self.store, self.triggers, self.fire)

    @shared_property
    def rules(self) -> Rules:
        """What was learned from outcomes."""
        from memfs.learning.rules import Rules

        return Rules(self.store, self.parts, self.triggers, self.memory_config, self.inbox)

    @shared_property
    def preferences(self) -> Preferences:
        """How the person wants things done."""
        from memfs.learning.preferences import Preferences

        return Preferences(self.store, self.parts, self.usage, self.fire)

    @shared_property
    def conventions(self) -> Conventions:
        """What the team agreed on."""
        from memfs.learning.conventions import Conventions

        return Conventions(self.store, self.parts.clock)

    @shared_property
    def agreements(self) -> Agreements:
        """Decides about conventions."""
        from memfs.learning.conventions import Agreements

        return Agreements(self.store, self.conventions, self.parts.clock)

    @shared_property
    def mounts(self) -> Mounts:
        """Other workspaces, which are read and never written."""
        from memfs.context.mounts import Mounts

        return Mounts(self.root, self.store, self.parts, self.recall, self.settings)

    @shared_property
    def agents_block(self) -> AgentsBlock:
        """Keeps what is agreed on in the file that agents read on their own."""
        from memfs.context.agents_md import AgentsBlock

        folder = code_of(self.root, Path())
        top = self.parts.repository.work_tree if folder == self.root else folder
        return AgentsBlock(folder, top, self.conventions)

    def item(self, name: str) -> MemoryItem | None:
        """An item, here or of a mounted workspace; None where there is none, or it cannot be read at present."""
        self.parts.require_open()
        try:
            return self.mounts.get(name) if of_mount(name) else self.store.get(name)
        except MemfsError:
            return None

    # -- what is brought back -------------------------------------------------------------------------------------
    @shared_property
    def known(self) -> KnownFiles:
        """What agents get without memory."""
        from memfs.context.known import KnownFiles

        return KnownFiles(self.root, self.parts.repository.work_tree)

    @shared_property
    def warned(self) -> WarningHistory:
        """What agents were warned with lately, whichever process warned them."""
        from memfs.learning.triggers import WarningHistory

        return WarningHistory(self.usage.notes, self.parts.clock)

    @shared_property
    def plugins(self) -> Plugins:
        """The sources that settings name, ours and those of others."""
        from memfs.context.builtin_sources import built_in
        from memfs.context.plugins import plugins_of

        return plugins_of(self.root, self.settings, built_in(self))

    @shared_property
    def delivery(self) -> Deliverer:
        """Asks the sources, and puts together what they say."""
        from memfs.context.deliver import Deliverer

        return Deliverer(self, self.plugins)

    # -- upkeep ---------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Close whatever was opened. May be repeated."""
        with ExitStack() as ending:  # one that cannot be closed keeps no other open
            for name, part in list(self.__dict__.items()):
                closing = getattr(part, "close", None)
                if closing is not None and name in type(self).__dict__:
                    ending.callback(closing)
