"""Read an item to remember from the options of a command and from standard input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, options
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import pair, spoken
from memfs.errors import ItemSyntaxError, QueryInvalid, SchemaInvalid
from memfs.model import MemoryItem, Origin, Trust
from memfs.model.item import lower_trust
from memfs.model.query import moment
from memfs.model.time import utc_now
from memfs.startup import Any

_DURATION = re.compile(r"\d+ *[A-Za-z]+")
_TO_COME = "name a day to come, such as 30d or 2027-01-01, or 'never'"
_WEIGHT = frozenset({"importance", "pinned"})
"""What an item counts for, and claims nothing."""
_ORIGIN = ("agent", "session", "phase", "role", "tool")


@dataclass(frozen=True, slots=True)
class Draft:
    """What the options of ``remember`` and ``update`` say of an item.

    Attributes:
        origin: who writes.
        trust: what that vouches for.
        fields: the item's fields that are given.
    """

    origin: Origin
    trust: str
    fields: Mapping[str, Any]

    def fresh(self, content: str) -> MemoryItem:
        """A new item with this text."""
        return MemoryItem(content, origin=self.origin, trust=self.trust, **{"memory_type": "semantic", **self.fields})

    def changes(self, item: MemoryItem, content: str | None) -> dict[str, Any]:
        """The fields of an item that the given text and options change, with their new values."""
        changes = dict(self.fields)
        for name in changes.keys() & {"context", "data"}:
            changes[name] = {**getattr(item, name), **changes[name]}
        if content is not None:  # new words are their writer's; changed circumstances leave the writer as he was
            changes |= {"content": content, "origin": self.origin, "trust": self.trust}
        elif self.origin.agent and changes.keys() - _WEIGHT:
            changes["trust"] = lower_trust(item.trust, Trust.AGENT.value)  # who vouched for it saw none of this
            changes |= {"origin": self.origin} if "title" in changes else {}
        return changes


def draft(
    *,
    type: str | None,
    context: tuple[str, ...] = (),
    data: tuple[str, ...] = (),
    time: str | None = None,
    expires: str | None = None,
    **given: Any,
) -> Draft:
    """The draft that the options describe.

    Raises:
        Unclear: a ``--context`` or ``--data`` without ``=``, a ``--time`` that is none, a blank ``--agent``, or
            an ``--expires`` that names no time to come.
    """
    written = {name: value for name in _ORIGIN if (value := given.pop(name, None)) is not None}
    if not written.get("agent", "-").strip():
        raise Unclear("--agent is blank", "name the agent; without --agent a person says it")
    fields: dict[str, Any] = {
        "memory_type": type,
        "timestamp": moment("--time", time),
        "context": dict(map(pair, context)) or None,
        "data": dict(pair(one, "--data person=Ada") for one in data) or None,
        **given,
    }
    fields = {name: value for name, value in fields.items() if value not in (None, ())}
    if expires is not None:
        fields["expires"] = _expiry(expires)
    origin = Origin(**written)
    return Draft(origin, (Trust.AGENT if origin.agent else Trust.HUMAN).value, fields)


@contextmanager
def named_as_given(words: Sequence[str]) -> Iterator[None]:
    """Let what is refused be named as it was given: the file that would have had it is not there."""
    try:
        yield
    except (SchemaInvalid, ItemSyntaxError) as error:
        for one in (error, *error.also):
            name, _, rest = (one.field or "").removeprefix("origin.").partition(".")
            if name == "content":
                one.field = "standard input" if words == ("-",) else "the text"
            elif name:
                number = name == "tags" and rest.isdigit()
                one.field = f"--tag {int(rest) + 1}" if number else f"--{name} {rest}".strip()
            one.path = one.line = one.column = None
        raise


weighing = options(
    click.option("--importance", type=click.FloatRange(0, 10), metavar="NUMBER",
                 help="Its weight in recall, 0 to 10; 1 is usual."),
    click.option("--pin/--unpin", "pinned", default=None, help="Never prune, archive or fade it."),
    click.option("--expires", metavar="DATE|DURATION", help="When it stops being true, such as 30d; or 'never'."),
)  # fmt: skip
"""Give a verb the options that say how much an item counts, and for how long."""


def _expiry(written: str) -> datetime | None:
    if written == "never":
        return None
    now = utc_now()
    try:
        end = moment("--expires", written, now=now)
    except QueryInvalid as error:
        raise Unclear(f"--expires: {written!r} is neither a date nor a duration", _TO_COME) from error
    if end is not None and _DURATION.fullmatch(written.strip()):
        end = (now + (now - end)).replace(microsecond=0)  # what is an age elsewhere is ahead here
    if end is None or end <= now:
        raise Unclear(f"--expires: {written} is past", _TO_COME)
    return end


def text_of(words: tuple[str, ...]) -> str | None:
    """As ``spoken``; None where there are no words.

    Raises:
        Unclear: it is blank, or there are words beside '-'.
    """
    content = spoken(words)
    if words and not content.strip():
        raise Unclear("the text is blank", "give one, or '-' to read standard input")
    return content if words else None
