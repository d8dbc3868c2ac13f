"""Questions and answers of recall: Query, Candidate, Hit and the proof of freshness.

Values only; how they are found is the index's business, how they are ordered the ranking's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memfs.model.item import MemoryItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to bring back.

    An empty ``text`` matches everything, newest first. Several values of one filter mean "any of them", except tags,
    of which an item needs all. An empty filter does not restrict.

    Attributes:
        text: natural words; a hit shares at least one stem with it.
        limit: at most this many, 1 to 10,000.
        types, tags, agents, sessions, phases: names to match exactly.
        layers: layers to search (the index itself sees them as types).
        since, until: bounds of ``timestamp``, both inclusive.
        path: only items whose path begins with this prefix, at a "/" boundary.
    """

    text: str = ""
    limit: int = 10
    types: frozenset[str] = frozenset()
    layers: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    phases: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What an index engine returns for one item: enough to rank it without opening its file.

    ``similarity`` is the engine's text score, > 0 for a text query and 0 for an empty one.
    """

    id: str
    path: str
    similarity: float
    type: str
    timestamp: datetime
    importance: float = 1.0
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An item, its score, and the named factors that made the score.

    ``stale`` is true when the file is at present invalid and this is its last good version.
    """

    item: MemoryItem
    score: float
    reasons: Mapping[str, float] = field(default_factory=dict)
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The proof of what an answer rests on.

    Attributes:
        head: commit the branch points at, None where there is none yet.
        dirty: how many memory files differ from that commit; None when it could not be told.
        indexed: digest over path and content id of every file in the index; equal trees give equal digests.
    """

    head: str | None
    dirty: int | None
    indexed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The answer to a query: hits best first, whether something is missing, and (when asked) what it rests on."""

    query: Query
    hits: tuple[Hit, ...]
    partial: bool
    fresh: Freshness | None = None
