"""Tool set: which tools a server offers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memfs.errors import SettingInvalid
from memfs.model.kinds import nearest

NAMES = (
    "memory_store",
    "memory_search",
    "memory_get",
    "memory_list",
    "memory_update",
    "memory_delete",
    "memory_history",
    "memory_diff",
    "memory_restore",
    "memory_feedback",
    "memory_context",
    "memory_status",
)
"""The tools of every server, in the order in which a client sees them."""
STATE = ("state_store", "state_get", "state_save", "state_resume", "state_feedback")
"""Further tools for the state of a multi-agent system, for servers that are asked for them."""
WRITING = frozenset(
    {"memory_store", "memory_update", "memory_delete", "memory_restore", "memory_feedback", "state_store", "state_save"}
)
ASKING = frozenset({"memory_search", "memory_list", "search"})
"""What is not offered where ``memory.on_demand`` is false: with these an agent looks through the memory."""
CONNECTOR = {"memory_search": "search", "memory_get": "fetch"}
"""What clients that know two tools only, such as ChatGPT's connectors, call which of ours."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Which of the tools a server offers.

    Attributes:
        names: the tools, in the order in which a client sees them.
    """

    names: tuple[str, ...] = NAMES

    @property
    def read_only(self) -> bool:
        """Whether none of them writes."""
        return not WRITING & set(self.names)

    @classmethod
    def chosen(
        cls, names: Iterable[str] = (), *, read_only: bool = False, connector: bool = False, state: bool = False
    ) -> ToolSet:
        """The tools somebody asked for (B5).

        Args:
            names: tools by name, with or without ``memory_``; none means all but those of ``STATE``.
            read_only: leave out whatever writes.
            connector: call searching and getting ``search`` and ``fetch``, and answer as those are expected to.
            state: offer those of ``STATE``, too.

        Raises:
            SettingInvalid: there is no such tool, or none is left.
        """
        every = (*NAMES, *STATE)
        given = [name for name in map(str.strip, names) if name]
        asked = {name if name.startswith(("memory_", "state_")) else f"memory_{name}" for name in given}
        for unknown in sorted(asked - set(every)):
            hint = nearest(unknown, every) or f"the tools are {', '.join(every)}"
            raise SettingInvalid(f"there is no tool {ascii(unknown)[:60]}", field="tools", hint=hint)
        wanted = (asked or set(NAMES)) | (set(STATE) if state else set())
        kept = [name for name in every if name in wanted and not (read_only and name in WRITING)]
        if not kept:
            raise SettingInvalid("no tool is left", field="tools", hint="name one that reads, such as memory_search")
        return cls(tuple(CONNECTOR.get(name, name) if connector else name for name in kept))
