"""The tools that a server offers; how a client sees each tool is written in ``tools.toml``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from memfs.doors.mcp import memory_tools, state_tools
from memfs.doors.mcp.answer import ToolResult, brief, one_line
from memfs.doors.mcp.arguments import Argument, schema_of
from memfs.doors.mcp.memory_tools import fenced_item
from memfs.doors.mcp.session import Desk
from memfs.errors import MemfsError, SettingInvalid
from memfs.model.kinds import nearest

if TYPE_CHECKING:
    from memfs.facades.agent_tools import Caller


_ITEM = "memory://items/"
_LIMIT = 10


def search(desk: Desk, caller: Caller, given: Mapping[str, Any]) -> ToolResult:
    """``search``: id, title and address of each memory that fits."""
    found = desk.memory.search(given["query"], _LIMIT, agent=caller.agent)
    results = []
    for item_id in found.ids:
        try:
            item = desk.memory.get(item_id)
        except MemfsError:  # taken away, or made invalid, since it was found
            continue
        results.append({"id": item.id, "title": one_line(item.title or item.content, 100), "url": _ITEM + item.id})
    return _as_json({"results": results})


def fetch(desk: Desk, _: Caller, given: Mapping[str, Any]) -> ToolResult:
    """``fetch``: one memory, its text as quoted data."""
    item = desk.memory.get(given["id"])
    facts = {name: value for name, value in brief(item).items() if name in ("type", "when", "trust", "undecided")}
    title = one_line(item.title or item.content, 100)
    return _as_json(
        {"id": item.id, "title": title, "text": fenced_item(item), "url": _ITEM + item.id, "metadata": facts}
    )


def _as_json(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool as a client sees it.

    Attributes:
        title: its name for people.
        about: its description for a model.
        arguments: what it takes.
        gives: the JSON Schema type of what matters most in its structured answer, and is always there.
        run: what it does, with checked arguments, on a thread.
        writes: whether it changes anything; then ``takes_away``, whether it replaces what is there, and ``repeatable``,
            whether doing it again adds nothing.
        asks: whether it looks through the memory, which is not offered where ``memory.on_demand`` is false.
    """

    title: str
    about: str
    arguments: Sequence[Argument] = ()
    gives: Mapping[str, str]
    run: Callable[[Desk, Caller, Mapping[str, Any]], ToolResult]
    writes: bool = False
    takes_away: bool = False
    repeatable: bool = False
    asks: bool = False

    def tool(self, name: str) -> Tool:
        """It as the protocol has it."""
        hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        if self.writes:
            hints = ToolAnnotations(
                read_only_hint=False,
                destructive_hint=self.takes_away,
                idempotent_hint=self.repeatable,
                open_world_hint=False,
            )
        return Tool(
            name=name,
            title=self.title,
            description=self.about,
            input_schema=schema_of(self.arguments),
            output_schema={
                "type": "object",
                "properties": {key: {"type": sort} for key, sort in self.gives.items()},
                "required": list(self.gives),
            },
            annotations=hints,
        )


def _rows() -> Iterator[tuple[str, ToolRow]]:
    """Each tool as it is written, with the function of its name."""
    functions = vars(memory_tools) | vars(state_tools) | {"search": search, "fetch": fetch}
    for name, row in tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8")).items():
        arguments = [Argument(**one) for one in row.pop("arguments", ())]
        yield name, ToolRow(arguments=arguments, run=functions[name], **row)


TOOLS: Mapping[str, ToolRow] = dict(_rows())
"""Each tool by its name; what a client sees of it is written in ``tools.toml``."""
NAMES = tuple(name for name in TOOLS if name.startswith("memory_"))
"""The tools of every server, in the order in which a client sees them."""
STATE = tuple(name for name in TOOLS if name.startswith("state_"))
"""Further tools for the state of a multi-agent system, for servers that are asked for them."""
WRITING = frozenset(name for name, row in TOOLS.items() if row.writes)
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
        """The tools somebody asked for.

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
