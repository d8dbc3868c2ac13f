"""Handed: one time that items were handed out, as a value and as a line of the record (B2).

Owns the form of a line and how it is read again, whatever else stands there. Where lines are kept it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

_TEXTS = ("at", "way", "door", "agent", "session", "head", "question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """Items that were handed out together.

    Attributes:
        time: when.
        way: ``recall``, ``automatic``, ``triggered`` or ``read``.
        door: what they went through, such as ``cli``, ``mcp``, ``hook`` or ``python``.
        agent, session: who was given them, "" where nobody said.
        commit: HEAD's commit then, "" where there was none.
        items: id and blob id of each; "" where a version is not known, as of items of mounted workspaces.
        question: what was asked, where the settings keep that.
    """

    time: datetime
    way: str
    door: str
    agent: str
    session: str
    commit: str
    items: tuple[tuple[str, str], ...]
    question: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the items."""
        return tuple(item_id for item_id, _ in self.items)


def reduced(row: Handed, gone: frozenset[str], quotes: Callable[[str], bool]) -> Handed:
    """A line without some items; the question that brought one of them goes with it."""
    items = tuple(item for item in row.items if item[0].casefold() not in gone)
    told = len(items) < len(row.items) or (row.question != "" and quotes(row.question))
    return replace(row, items=items, question="" if told else row.question)


def line_of(row: Handed) -> bytes:
    """A line of the record; its own line breaks keep one that was cut short from spoiling another."""
    fields = {
        "at": row.time.isoformat(timespec="microseconds"),
        "way": row.way,
        "door": row.door,
        "agent": row.agent,
        "session": row.session,
        "head": row.commit,
        "question": row.question,
    }
    told = {name: value for name, value in fields.items() if value}
    return b"\n%s\n" % json.dumps(told | {"items": row.items}, separators=(",", ":")).encode()


def rows_in(data: bytes) -> Iterator[Handed]:
    """The lines of a file; a full disk, a kill or a person may have left others."""
    for line in data.split(b"\n"):
        if line:
            with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
                yield _handed(json.loads(line))


def _handed(row: Mapping[str, Any]) -> Handed:
    texts = [row.get(name, "") for name in _TEXTS]
    pairs: Sequence[Any] = row["items"]
    if not all(isinstance(text, str) for text in (*texts, *(part for pair in pairs for part in pair))):
        raise TypeError("not what memfs writes")
    at, way, door, agent, session, commit, question = texts
    moment = datetime.fromisoformat(at)
    return Handed(
        time=moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC),
        way=way,
        door=door,
        agent=agent,
        session=session,
        commit=commit,
        items=tuple((one, blob) for one, blob in pairs),
        question=question,
    )
