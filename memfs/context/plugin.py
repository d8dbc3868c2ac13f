"""The protocol of a context source: ``MemoryPlugin`` for plugins, ``ItemSource`` for those that select items.

``Delivery`` names the ways in which context reaches an agent, ``ContextSelection`` what a source selected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from memfs.dataclass import dataclass, field
from memfs.model.episode import StateSnapshot


class Delivery(StrEnum):
    """How a context reaches the agent; ``layer`` of a plugin."""

    AUTOMATIC = "automatic"
    TRIGGERED = "triggered"
    ON_DEMAND = "on_demand"


@runtime_checkable
class MemoryPlugin(Protocol):
    """A source of context.

    It may be asked from several threads at once, and is given limited time. What it raises is reported and breaks no
    other.
    """

    @property
    def name(self) -> str:
        """What settings and reports call it."""
        ...

    @property
    def layer(self) -> str:
        """The delivery it serves: ``automatic``, ``triggered`` or ``on_demand``."""
        ...

    async def get_context(self, state: StateSnapshot) -> str | None:
        """Its context for a situation; None or "" where it has none.

        An automatic source is asked at the beginning, a triggered one before a step, an on-demand one with the question
        in ``state.context``.
        """
        ...

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take its table ``[memory.<name>]``.

        Raises:
            ValueError, SettingInvalid: naming the key and what would be right.
        """
        ...


AddedSource = tuple[MemoryPlugin, Mapping[str, Any] | None]
"""A source that the calling program made, and its table; None for that of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntry:
    """One piece of what a source has to say.

    Attributes:
        text: the seed's bullet without its dash, one line or several.
        id: of the item it comes from, with the mount's name before a ":" where it is another workspace's; "" for none.
        trust: of that item; ``plugin`` for what a source from others says.
        origin: who said it, for people: "agent coder, session s1".
        undecided: what a merge left open in that item, and the other values; "" for nothing.
        excerpt: what of a long text is delivered where all of it has no room; "" for its beginning.
    """

    text: str
    id: str = ""
    trust: str = ""
    origin: str = ""
    undecided: str = ""
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSelection:
    """What a source selected for a situation: the seed's heading, and entries, the most important first."""

    heading: str = ""
    entries: Sequence[ContextEntry] = field(default_factory=tuple)

    def __str__(self) -> str:
        """The seed's text: the heading and one bullet an entry; "" without entries."""
        if not self.entries:
            return ""
        bullets = [f"- {entry.text}" for entry in self.entries]
        return "\n".join([self.heading, *bullets] if self.heading else bullets)


@runtime_checkable
class ItemSource(Protocol):
    """A source of ours: it selects items, so that each can be counted, marked and left out by itself.

    ``get_context`` gives the same as the seed's text. It answers at once and needs no thread of its own. At the start
    an agent is given only entries of trust ``human`` or ``reviewed``, unless the source has ``any_trust = True``.
    """

    @property
    def name(self) -> str: ...

    @property
    def layer(self) -> str: ...

    def select(self, state: StateSnapshot) -> ContextSelection:
        """What it has for a situation; nothing where nothing fits."""
        ...

    async def get_context(self, state: StateSnapshot) -> str | None: ...

    def configure(self, config: Mapping[str, Any]) -> None: ...
