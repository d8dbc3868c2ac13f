"""State queries: what can be asked of the state documents, and the rows that answer it, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from memfs.dataclass import dataclass, field
from memfs.errors import QueryInvalid
from memfs.model.item import Stamp
from memfs.model.state_facts import StateFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """Which documents are wanted: those that agree with every field that is given.

    Attributes:
        kinds, iterations: among these.
        agents: of one of these agents; for a meta-review or state update, with something about one.
        tasks, names, states: as in ``StateFacts``.
        components, hypotheses, parents, metrics: about one of these at least.
        start, end: with a time from and until these, both included.
        newest: the newest first; else the oldest.
        limit: at most so many; None for all.
    """

    kinds: tuple[str, ...] = ()
    iterations: tuple[int, ...] = ()
    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    hypotheses: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    newest: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """What is known of one document.

    Attributes:
        sha256, bytes: of the document when it was described.
        stamp: of its file then; None for one that only an archive holds.
        archive: the archive that holds it, "" for one in the tree.
    """

    facts: StateFacts
    sha256: str = ""
    bytes: int = 0
    stamp: Stamp | None = None
    archive: str = ""

    @property
    def path(self) -> str:
        """The document's path, or that before it was archived."""
        return self.facts.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One iteration as it is.

    Attributes:
        status: ``open`` or ``closed``.
        opened, closed: when; None where its header does not say, and for ``closed`` while it is open.
        statistics: what closing summed up; empty while it is open, and in a list of all.
        counts: its documents by kind.
        archive: the archive that holds it, "" where it lies in the tree.
    """

    number: int
    status: str = "open"
    opened: datetime | None = None
    closed: datetime | None = None
    statistics: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    archive: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure: of an agent, or with ``agent`` "" of the system, in one document."""

    name: str
    value: float
    agent: str = ""
    iteration: int | None = None
    timestamp: datetime | None = None
    kind: str = ""
    path: str = ""


def names_of(value: Any, name: str) -> tuple[str, ...]:
    """The names that a caller gives: one or several, each once.

    Args:
        name: the argument's.

    Raises:
        QueryInvalid: naming the argument.
    """
    listed = [value] if isinstance(value, str) else _listed(value, name)
    for one in listed:
        if not isinstance(one, str) or not one:
            raise QueryInvalid(f"{one!r} is not a name", field=name, hint="give names, each a text")
    return tuple(dict.fromkeys(listed))


def numbers_of(value: Any) -> tuple[int, ...]:
    """The numbers of iterations that a caller gives, as ``names_of``, in order."""
    listed = [value] if isinstance(value, int) else _listed(value, "iterations")
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < 10**12:
            raise QueryInvalid(f"{one!r} is not the number of an iteration", field="iterations", hint="give numbers")
    return tuple(sorted(set(listed)))


def _listed(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping | str):
        return list(value)
    raise QueryInvalid(f"{value!r} is no list", field=name, hint="give a list")
