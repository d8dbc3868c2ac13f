"""Read an item to remember from the options of a command and from standard input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import click

from memfs.doors.cli.command import Number, Unclear
from memfs.doors.cli.filters import pair, when
from memfs.doors.cli.streams import read_input
from memfs.errors import ItemSyntaxError
from memfs.model import MemoryItem, Origin, Trust
from memfs.model.item import lower_trust

_DURATION = re.compile(r"\d+ *[A-Za-z]+")
_TO_COME = "name a day to come, such as 30d or 2027-01-01, or 'never'"
_ORIGIN = ("agent", "session", "phase", "role", "tool")


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
        return Origin(**{name: value for name in _ORIGIN if (value := getattr(self, name))})

    def in_branch_of(self, agent: str) -> Draft:
        """The same, in the name of the agent whose branch it is written on, unless another agent is named."""
        return self if self.agent or not agent else replace(self, agent=agent)

    def _trust(self) -> str:
        return (Trust.AGENT if self.agent else Trust.HUMAN).value


def draft(*, context: tuple[str, ...], data: tuple[str, ...], time: str | None, **given: Any) -> Draft:
    """The draft that the options describe.

    Raises:
        Unclear: a ``--context`` or ``--data`` without ``=``, a ``--time`` that is none, a blank ``--agent``.
    """
    if given["agent"] is not None and not given["agent"].strip():
        raise Unclear("--agent is blank", "name the agent; without --agent a person says it")
    pairs = dict(pair(written) for written in context)
    own = dict(pair(written, "--data person=Ada") for written in data)
    return Draft(context=pairs, data=own, time=when(time, "time"), **given)


def weighing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that say how much an item counts, and for how long."""
    for option in (
        click.option("--expires", metavar="DATE|DURATION", help="When it stops being true, such as 30d; or 'never'."),
        click.option("--pin/--unpin", "pinned", default=None, help="Never prune, archive or fade it."),
        click.option("--importance", type=Number(0, 10), metavar="NUMBER",
                     help="Its weight in recall, 0 to 10; 1 is usual."),
    ):  # fmt: skip
        function = option(function)
    return function


def weight(
    now: datetime, *, importance: float | None, pinned: bool | None, expires: str | None
) -> dict[str, float | bool | datetime | None]:
    """The fields that the options of ``weighing`` name, with their values.

    Raises:
        Unclear: ``--expires`` names no time to come.
    """
    named: dict[str, float | bool | None] = {"importance": importance, "pinned": pinned}
    found: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    if expires is not None:
        found["expires"] = None if expires == "never" else _to_come(expires, now)
    return found


def _to_come(written: str, now: datetime) -> datetime:
    try:
        moment = when(written, "expires", now=now)
    except Unclear as error:
        raise Unclear(f"--expires: {written!r} is neither a date nor a duration", _TO_COME) from error
    if moment is not None and _DURATION.fullmatch(written.strip()):
        moment = now + (now - moment)  # what is an age elsewhere lies ahead here
    if moment is None or moment <= now:
        raise Unclear(f"--expires: {written} is past", _TO_COME)
    return moment


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
