"""Parts: what a team does with memory in git, and how the parts are wired (K4, K8, B1 to B4).

Owns which part gets which others, and when it is made. What a part does, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from memfs.model.memory_config import MemoryConfig
    from memfs.pipeline.retrieval import Recaller
    from memfs.settings import Settings
    from memfs.sources.parts import Sources
    from memfs.states.parts import States
    from memfs.store import Store
    from memfs.store.parts import Parts
    from memfs.upkeep.history import History
    from memfs.usage import Usage

Part = TypeVar("Part")


@dataclass(frozen=True, kw_only=True, repr=False)
class Teams:
    """What a team does with the memory of one workspace; each part is made when it is first used.

    Attributes:
        root: the folder that holds ``ContextMemory/``.
        store, parts, settings, usage, recall: the workspace's.
        history, sources, states: give the workspace's, made when first asked for.
        memory_config: gives the memory context that holds at present.
    """

    root: Path
    store: Store
    parts: Parts
    settings: Settings
    usage: Usage
    recall: Recaller
    history: Callable[[], History]
    sources: Callable[[], Sources]
    states: Callable[[], States]
    memory_config: Callable[[], MemoryConfig]

    def close(self) -> None:
        """Close whatever was opened. May be repeated."""
        for name, part in list(self.__dict__.items()):
            closing = getattr(part, "close", None)
            if closing is not None and name in type(self).__dict__:
                closing()

    def _first(self, name: str, made: Part) -> Part:
        """The part that threads share which make it at once: two would not know of each other's work."""
        found: Part = self.__dict__.setdefault(name, made)
        return found
