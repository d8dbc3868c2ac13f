"""Read an item to remember from the options of a command, from standard input or from a line of a JSONL file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memfs.doors.cli.command import Unclear
from memfs.doors.cli.filters import pair, when
from memfs.doors.cli.streams import read_input
from memfs.errors import ItemSyntaxError, MemfsError
from memfs.model import MemoryItem, Origin, Trust
from memfs.model.item import lower_trust

_ORIGIN = ("agent", "session", "phase", "role", "tool")
_MAY_BE_EMPTY = frozenset(
    {
        "title",
        "content",
        "tags",
        "timestamp",
        "created",
        "updated",
        "origin",
        "status",
        "expires",
        "supersedes",
        "links",
        "context",
        "metadata",
        "data",
        "conflicts",
    }
)
_WRITTEN_BY_STORE = frozenset({"path", "sha256", "score", "reasons", "stale", "usage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the options of ``remember`` and ``update`` say of an item; None or empty means not given."""

    type: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None
    context: Mapping[str, str]
    data: Mapping[str, str]
    agent: str | None = None
    session: str | None = None
    phase: str | None = None
    role: str | None = None
    tool: str | None = None
    time: datetime | None = None

    def fresh(self, content: str) -> MemoryItem:
        """A new item with this text."""
        return MemoryItem(
            content,
            self.type or "semantic",
            id=self.id or "",
            title=self.title or "",
            tags=self.tags,
            timestamp=self.time,
            origin=self.origin(),
            trust=self._trust(),
            context=self.context,
            data=self.data,
        )

    def changes(self, item: MemoryItem, content: str | None, *, claims: bool = False) -> dict[str, Any]:
        """The fields of an item that the given text and options change, with their new values.

        Args:
            claims: whether something else is changed that the item claims.
        """
        changes: dict[str, Any] = {
            "memory_type": self.type,
            "title": self.title,
            "tags": self.tags or None,
            "timestamp": self.time,
            "context": {**item.context, **self.context} if self.context else None,
            "data": {**item.data, **self.data} if self.data else None,
        }
        if content is not None:  # new words are their writer's; changed circumstances leave the writer as he was
            changes |= {"content": content, "origin": self.origin(), "trust": self._trust()}
        elif self.agent and (claims or any(value is not None for name, value in changes.items() if name != "tags")):
            changes["trust"] = lower_trust(item.trust, Trust.AGENT.value)  # who vouched for it saw none of this
            changes["origin"] = self.origin() if self.title else None
        return {name: value for name, value in changes.items() if value is not None}

    def origin(self) -> Origin:
        """Who writes, as the options say."""
        return Origin(**self._origin())

    def in_branch_of(self, agent: str) -> Draft:
        """The same, in the name of the agent whose branch it is written on, unless another agent is named."""
        return self if self.agent or not agent else replace(self, agent=agent)

    def onto(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """What a line of a JSONL file says, as an item file would say it; the line wins over the options."""
        own = {
            key: value
            for key, value in line.items()
            if key not in _WRITTEN_BY_STORE and not (key in _MAY_BE_EMPTY and value in (None, "", [], {}))
        }
        for name in _ORIGIN:  # a flat name is what people write by hand; the file format keeps them under origin
            if name in own:
                own.setdefault("origin", {})
                own["origin"] = {name: own.pop(name), **own["origin"]}
        origin = {**self._origin(), **own.pop("origin", {})}
        stated = {"title": self.title, "timestamp": self.time.isoformat() if self.time else None}
        told = {key: value for key, value in stated.items() if value}
        merged = {**told, **own}
        if self.tags:
            merged["tags"] = list(dict.fromkeys([*self.tags, *_listed(own.get("tags"))]))
        if self.context:
            merged["context"] = {**self.context, **own.get("context", {})}
        if self.data:
            merged["data"] = {**self.data, **own.get("data", {})}
        if origin:
            merged["origin"] = origin
        merged.setdefault("trust", (Trust.AGENT if origin.get("agent") else Trust.HUMAN).value)
        merged.setdefault("type", self.type or "semantic")
        return merged

    def _origin(self) -> dict[str, Any]:
        return {name: value for name in _ORIGIN if (value := getattr(self, name))}

    def _trust(self) -> str:
        return (Trust.AGENT if self.agent else Trust.HUMAN).value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def draft(*, context: tuple[str, ...], data: tuple[str, ...], time: str | None, **given: Any) -> Draft:
    """The draft that the options describe.

    Raises:
        Unclear: a ``--context`` or ``--data`` without ``=``, a ``--time`` that is none.
    """
    pairs = dict(pair(written) for written in context)
    own = dict(pair(written, "--data person=Ada") for written in data)
    return Draft(context=pairs, data=own, time=when(time, "time"), **given)


def text_of(words: tuple[str, ...]) -> str | None:
    """The text that the words of a command line are, or that standard input holds; None where there are no words.

    Raises:
        Unclear: it is blank, or there are words beside '-'.
    """
    if not words:
        return None
    if words[0] == "-" and len(words) > 1:
        raise Unclear("'-' reads the text from standard input", "leave out the other words")
    content = standard_input().rstrip("\r\n") if words == ("-",) else " ".join(words)
    if not content.strip():
        raise Unclear("the text is blank", "give one, or '-' to read standard input")
    return content


def standard_input() -> str:
    """All of standard input.

    Raises:
        StorageIO: it is closed or cannot be read.
        ItemSyntaxError: it is not UTF-8.
    """
    return decoded(read_input(), "standard input")


def decoded(data: bytes, name: str) -> str:
    """UTF-8 bytes as text.

    Raises:
        ItemSyntaxError: naming the line that is not.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ItemSyntaxError("not UTF-8 text", path=name, line=line, hint="save it as UTF-8") from error


def mapping_of(line: str) -> dict[str, Any]:
    """One line of a JSONL file.

    Raises:
        ItemSyntaxError: it is not a JSON object, or names a key twice.
    """
    try:
        value = json.loads(line, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except RecursionError as error:
        raise ItemSyntaxError("nested too deeply", hint="flatten it") from error
    except json.JSONDecodeError as error:
        raise ItemSyntaxError(f"not JSON: {error.msg}", column=error.colno, hint="write one object per line") from error
    if not isinstance(value, dict):
        raise ItemSyntaxError("not a JSON object", hint='write one object per line: {"content": "..."}')
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ItemSyntaxError(f"the key {key!r} stands here twice", hint="keep one")
        found[key] = value
    return found


def _no_constant(name: str) -> MemfsError:
    raise ItemSyntaxError(f"{name} is not JSON", hint="write a finite number")
