"""Chooses the author and committer of a commit: the person at work, and the agent that wrote the items.

The environment comes before git's configuration, and that before memfs's own name. Any name is made safe for an author
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from memfs.model import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWriter:
    """Who is behind a change: an agent with its session and source, or a person."""

    agent: str = ""
    session: str = ""
    source: str = ""
    person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChange:
    """New content of one path below the workspace; ``data`` None removes it."""

    path: str
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Changes that belong together, with the sentence that says why and those who wrote them.

    Attributes:
        merges: a commit that is joined with the branch: the second parent; "" for none.
    """

    changes: tuple[CommitChange, ...]
    message: str
    writers: tuple[CommitWriter, ...]
    time: datetime
    merges: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What became of the groups.

    Attributes:
        commits: the new commits, oldest first; a group that the branch held already made none.
        left_staged: paths that the person has staged differently; their entry in the person's index was left alone.
    """

    commits: tuple[str, ...]
    left_staged: tuple[str, ...]


_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f<>]+")
_CRUD = " .,:;\"'"
_LONGEST = 100
_AGENTS = "@agent.memfs"


@dataclass(frozen=True, slots=True)
class Person:
    """A name and an address as in a commit."""

    name: str
    email: str

    @property
    def is_agent(self) -> bool:
        """Whether the address is one that memfs gives to agents."""
        return self.email.endswith(_AGENTS)

    @property
    def in_reflogs(self) -> dict[str, str]:
        """The variables by which git names it in the reflogs that it writes."""
        return {"GIT_COMMITTER_NAME": self.name, "GIT_COMMITTER_EMAIL": self.email}

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


MEMFS = Person("memfs", "memfs@localhost")


@dataclass(frozen=True, slots=True)
class Identity:
    """The person at work: as author of what they wrote, and as committer of everything."""

    author: Person
    committer: Person


def identity(environment: Mapping[str, str], settings: Mapping[str, str]) -> Identity:
    """The person by ``GIT_AUTHOR_*`` and ``GIT_COMMITTER_*``, then by git's configuration, else memfs itself.

    Args:
        environment: the process's, before it is scrubbed.
        settings: ``user.name``, ``author.email`` and their like from git's configuration.
    """
    author = _person("author", environment, settings)
    committer = _person("committer", environment, settings)
    return Identity(author or committer or MEMFS, committer or author or MEMFS)


def _person(role: str, environment: Mapping[str, str], settings: Mapping[str, str]) -> Person | None:
    def first(part: str) -> str:
        choices = (
            environment.get(f"GIT_{role.upper()}_{part.upper()}", ""),
            settings.get(f"{role}.{part}", ""),
            settings.get(f"user.{part}", ""),
        )
        return next((clean for choice in choices if (clean := sanitised(choice))), "")

    name, email = first("name"), first("email") or sanitised(environment.get("EMAIL", ""))
    if not name and not email:
        return None
    return Person(name or email.partition("@")[0] or MEMFS.name, email or MEMFS.email)


def sanitised(text: str) -> str:
    """A text as it may be in an author line: one line, no angle brackets, no punctuation at either end."""
    plain = text.encode("utf-8", "replace").decode()
    return " ".join(_FORBIDDEN.sub(" ", plain).split()).strip(_CRUD)[:_LONGEST].rstrip(_CRUD)


def agent(name: str) -> Person:
    """The author line of an agent: ``name <name@agent.memfs>``."""
    shown = sanitised(name) or "agent"
    local = re.sub(r"[^a-z0-9._+-]+", "-", shown.lower()).strip("-._")
    return Person(shown, f"{local or ids.slug(shown) or 'agent'}{_AGENTS}")


def author(writers: Iterable[CommitWriter], person: Person) -> Person:
    """The one agent that a group's writers name, else the person."""
    name = sole_agent(writers)
    return agent(name) if name else person


def sole_agent(writers: Iterable[CommitWriter]) -> str:
    """The name of the one agent that a group's writers name; "" where they name none or several, or a person."""
    found = tuple(writers)
    agents = {writer.agent for writer in found if writer.agent}
    return agents.pop() if len(agents) == 1 and not any(writer.person for writer in found) else ""
