"""Trigger row: what is known of each episode and rule without opening its file, and what a match of one is (P1, P4).

Owns these values. How a row is made of an item, and when a situation is like one, is ``memfs.pipeline``'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

EPISODE = "episode"
RULE = "rule"


class TriggerRow(NamedTuple):
    """What is known of one episode or rule.

    Attributes:
        id, path, blob: the item, its file, and what the file held when this was made of it.
        sort: ``episode`` or ``rule``.
        outcome: how an episode ended, "" for a rule.
        tool: what was used, or what a rule is for; "" for any.
        files: an episode's files as they were named; a rule's globs.
        words: terms of what the agent was about to do, each once; of a rule, those of its pattern.
        deeds: terms of what an episode's agent did, each once.
        context, did, error: an episode's situation, action and error, each cut to a few hundred characters; of a rule,
            ``did`` is what it advises.
        time: when an episode happened, or a rule was last written, in seconds since 1970.
        warned: ids of the items that the agent of an episode was warned with.
        agent, session, task: who it was, in which session, at which task.
        trust, status: of the item.
        confidence: of a rule, 0 to 1; 0 for an episode.
        pinned: whether it never fades.
        supersedes: ids of the items it replaces.
        expires: when it stops being true, in seconds since 1970; 0 for never.
    """

    id: str
    path: str
    blob: str
    sort: str
    outcome: str = ""
    tool: str = ""
    files: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    deeds: tuple[str, ...] = ()
    context: str = ""
    did: str = ""
    error: str = ""
    time: float = 0.0
    warned: tuple[str, ...] = ()
    agent: str = ""
    session: str = ""
    task: str = ""
    trust: str = ""
    status: str = ""
    confidence: float = 0.0
    pinned: bool = False
    supersedes: tuple[str, ...] = ()
    expires: float = 0.0

    @property
    def timestamp(self) -> datetime:
        """``time`` as a point in time."""
        return datetime.fromtimestamp(self.time, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """An episode that resembles a situation.

    Attributes:
        similarity: 0 to 1, age and later successes counted in.
        alike: 0 to 1, how alike the situations are by themselves.
        successes: how often it went well afterwards; where everything was the same, it counts twice.
    """

    id: str
    path: str
    similarity: float
    outcome: str
    timestamp: datetime
    alike: float = 0.0
    successes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """A rule that applies to a situation: ``fit`` says how well, 0 to 1; ``confidence`` is its own."""

    id: str
    path: str
    fit: float
    confidence: float
