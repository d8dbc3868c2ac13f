"""The tools that a server offers; how a client sees each tool is written in ``tools.toml``.

What a tool takes is one row for each argument: its JSON Schema and the check of what was given come from that, so that
they cannot differ. Models often write a number as text or one tag without a list: what can only be meant one way is
taken so; everything else is refused by its name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from memfs.dataclass import dataclass
from memfs.doors.mcp import memory_tools
from memfs.doors.mcp.memory_tools import ToolResult
from memfs.errors import QueryInvalid, SettingInvalid
from memfs.model.kinds import nearest

if TYPE_CHECKING:
    from memfs.doors.mcp.server import WorkspaceSession
    from memfs.model import Origin


_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")
_DIGITS = re.compile("[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument.

    Attributes:
        name: what it is called.
        about: its description for a model, "" where its name says it.
        sort: ``text``, ``number``, ``flag``, ``texts`` or ``facts`` (a JSON object).
        required: whether a call needs it.
        least, most: bounds of a number; ``most`` is the length of a text, too.
        default: of a number; one without is counted from 0, and its schema has no bounds.
    """

    name: str
    about: str = ""
    sort: str = "text"
    required: bool = False
    least: int = 0
    most: int = 2_000
    default: int | None = None

    def schema(self) -> dict[str, Any]:
        """It as JSON Schema has it."""
        schema: dict[str, Any] = dict(_SCHEMAS[self.sort])
        if self.default is not None:
            schema |= {"minimum": self.least, "maximum": self.most, "default": self.default}
        return schema | ({"description": self.about} if self.about else {})


def checked(rows: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, by name; what was left out, or is null, is not in it, but for what has a default.

    Raises:
        QueryInvalid: an unknown argument, one that is missing, or a wrong value; ``field`` names it.
    """
    names = [row.name for row in rows]
    for name in given:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            missing = [row.name for row in rows if row.required and row.name not in given]
            meant = f"did you mean {missing[0]!r}?" if len(missing) == 1 else nearest(name, names)
            hint = f"{meant} {takes}".strip()
            raise QueryInvalid(f"there is no argument {ascii(name)[:60]}", hint=hint)
    values = {row.name: _CHECKS[row.sort](row, given[row.name]) for row in rows if given.get(row.name) is not None}
    for row in rows:
        if row.required and row.name not in values:
            raise QueryInvalid("it is missing", field=row.name, hint=row.about or "give it")
    return {row.name: row.default for row in rows if row.default is not None} | values


# -- checks ---------------------------------------------------------------------------------------------------------
def _text(row: Argument, value: object) -> str:
    if not isinstance(value, str):
        raise _unfit(row, "text", value)
    if len(value) > row.most:
        raise QueryInvalid(f"at most {row.most:,} characters, got {len(value):,}", field=row.name, hint="give less")
    if _IMPOSSIBLE.search(value):
        raise QueryInvalid("it is not plain text", field=row.name, hint="leave out NUL and lone surrogates")
    if row.required and not value.strip():
        raise QueryInvalid("it is empty", field=row.name, hint=row.about or None)
    return value


def _number(row: Argument, value: object) -> int:
    number: object = value
    if (isinstance(value, float) and value.is_integer()) or (
        isinstance(value, str) and _DIGITS.fullmatch(value.strip())
    ):
        number = int(value)  # it can only mean one
    if not isinstance(number, int) or isinstance(number, bool) or not row.least <= number <= row.most:
        raise _unfit(row, f"a whole number of {row.least:,} to {row.most:,}", value)
    return number


def _flag(row: Argument, value: object) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise _unfit(row, "true or false", value)
    return value


def _texts(row: Argument, value: object) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise _unfit(row, "a list of texts", value)
    return tuple(_text(row, entry) for entry in listed)


def _facts(row: Argument, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unfit(row, 'an object such as {"project": "shop"}', value)
    return value


def _unfit(row: Argument, wanted: str, value: object) -> QueryInvalid:
    return QueryInvalid(f"expected {wanted}, got {ascii(value)[:60]}", field=row.name)


_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "facts": {"type": "object"},
}
_CHECKS: Mapping[str, Callable[[Argument, object], Any]] = {
    "text": _text,
    "number": _number,
    "flag": _flag,
    "texts": _texts,
    "facts": _facts,
}


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
    run: Callable[[WorkspaceSession, Origin, Mapping[str, Any]], ToolResult]
    writes: bool = False
    takes_away: bool = False
    repeatable: bool = False
    asks: bool = False

    def tool(self, name: str) -> Tool:
        """It as the protocol has it."""
        hints = ToolAnnotations(
            read_only_hint=not self.writes,
            destructive_hint=self.takes_away if self.writes else None,
            idempotent_hint=self.repeatable if self.writes else None,
            open_world_hint=False,
        )
        required = [row.name for row in self.arguments if row.required]
        return Tool(
            name=name,
            title=self.title,
            description=self.about,
            input_schema={
                "type": "object",
                "properties": {row.name: row.schema() for row in self.arguments},
                **({"required": required} if required else {}),
                "additionalProperties": False,
            },
            output_schema={
                "type": "object",
                "properties": {key: {"type": sort} for key, sort in self.gives.items()},
                "required": list(self.gives),
            },
            annotations=hints,
        )


def _rows() -> Iterator[tuple[str, ToolRow]]:
    """Each tool as it is written, with the function of its name."""
    for name, row in tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8")).items():
        arguments = [Argument(**one) for one in row.pop("arguments", ())]
        yield name, ToolRow(arguments=arguments, run=getattr(memory_tools, name), **row)


TOOLS: Mapping[str, ToolRow] = dict(_rows())
"""Each tool by its name; what a client sees of it is written in ``tools.toml``."""
NAMES = tuple(name for name in TOOLS if name.startswith("memory_"))
"""The tools of every server, in the order in which a client sees them."""
STATE = tuple(name for name in TOOLS if name.startswith("state_"))
"""Further tools for the state of a multi-agent system, for servers that are asked for them."""
WRITING = frozenset(name for name, row in TOOLS.items() if row.writes)


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
    def chosen(cls, names: Iterable[str] = (), *, read_only: bool = False, state: bool = False) -> ToolSet:
        """The tools somebody asked for.

        Args:
            names: tools by name, with or without ``memory_``; none means all but those of ``STATE``.
            read_only: leave out whatever writes.
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
        return cls(tuple(kept))
