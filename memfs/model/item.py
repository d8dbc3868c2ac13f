"""MemoryItem: one remembered thing.

Owns the fields of an item and what makes them consistent. How an item looks in a file is ``memfs.files.codec``'s
business; where the file lies is the store's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from memfs.errors import SchemaInvalid
from memfs.model.time import parse_time


class Trust(StrEnum):
    """Who stands behind an item."""

    HUMAN = "human"
    REVIEWED = "reviewed"
    AGENT = "agent"
    TOOL = "tool"


class Phase(StrEnum):
    """The phases of an EDRR workflow (seed 000, L6)."""

    EXPAND = "expand"
    DIFFERENTIATE = "differentiate"
    REFINE = "refine"
    RETROSPECT = "retrospect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who said it, and when in which order. Empty text means unknown; names are free text."""

    speaker: str = ""
    role: str = ""
    agent: str = ""
    session: str = ""
    sequence: int | None = None
    task: str = ""
    tool: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link to another item: its id and what it is to this one (``relates``, ``contradicts``, ...)."""

    to: str
    relation: str = "relates"


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One remembered thing, as a value.

    Attributes:
        content: the text that is searched and shown; may be empty only when there is a title.
        memory_type: name of its kind; ``type`` is the same.
        id: the stem of its file; "" until it is stored.
        title: a short name.
        tags: free words, in order, without repeats.
        timestamp: when it happened; None means "when it was stored".
        created, updated: when it was first and last written; set by the store.
        origin: who said it, and where.
        trust: who stands behind it.
        importance: weight of the item, 0 to 10, 1 unless feedback or a person changed it.
        pinned: never pruned, archived or faded.
        status: stage of a prospective item or a convention, "" for others.
        expires: when it stops being true; None means never.
        supersedes: ids of the items it replaces.
        links: links to other items.
        context: circumstances matched at recall.
        metadata: free facts.
        data: structured body, shaped by the kind's schema where it has one.
        path: its file below the workspace, "/" separated; "" until it is stored.
        sha256: hex digest of the file's bytes; "" until it is stored.
    """

    content: str = ""
    memory_type: str = "semantic"
    _: dataclasses.KW_ONLY
    id: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    timestamp: datetime | None = None
    created: datetime | None = None
    updated: datetime | None = None
    origin: Origin = Origin()
    trust: str = Trust.HUMAN.value
    importance: float = 1.0
    pinned: bool = False
    status: str = ""
    expires: datetime | None = None
    supersedes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "memory_type", str(self.memory_type))
        put(self, "trust", str(self.trust))
        put(self, "tags", _names("tags", self.tags))
        put(self, "supersedes", _names("supersedes", self.supersedes))
        put(self, "links", tuple(self.links))
        for name in ("timestamp", "created", "updated", "expires"):
            value = getattr(self, name)
            if value is not None:
                put(self, name, _moment(name, value))
        if not self.content and not self.title:
            raise SchemaInvalid("an item needs content or a title", field="content", hint="write what to remember")

    @property
    def type(self) -> str:
        """The name of the item's kind."""
        return self.memory_type

    def replace(self, **changes: Any) -> MemoryItem:
        """A copy with the given fields changed."""
        return dataclasses.replace(self, **changes)


def _names(name: str, values: Iterable[str]) -> tuple[str, ...]:
    if values == ():
        return ()
    if isinstance(values, str):
        raise SchemaInvalid("expected a list of texts, got one text", field=name, hint=f"write {name}=[{values!r}]")
    return tuple(dict.fromkeys(values))


def _moment(name: str, value: str | datetime) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is UTC:
        return value
    try:
        return parse_time(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise SchemaInvalid(
            f"{value!r} is not a date or time", field=name, hint="write it like 2026-03-01T10:00:00Z"
        ) from error
