"""What the store asks to be committed, as values.

A group becomes exactly one commit. Nothing here touches a repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who is behind a change: an agent with its session and source, or a person."""

    agent: str = ""
    session: str = ""
    source: str = ""
    person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New content of one path below the workspace; ``data`` None removes it."""

    path: str
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Changes that belong together, with the sentence that says why and those who wrote them.

    Attributes:
        merges: a commit that is joined with the branch: the second parent; "" for none.
    """

    changes: tuple[Change, ...]
    message: str
    writers: tuple[Writer, ...]
    time: datetime
    merges: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What became of the groups.

    Attributes:
        commits: the new commits, oldest first; a group that the branch held already made none.
        left_staged: paths that the person has staged differently; their entry in the person's index was left alone.
    """

    commits: tuple[str, ...]
    left_staged: tuple[str, ...]
