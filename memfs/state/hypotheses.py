"""Trace a hypothesis: its versions over the iterations, its ancestors and its descendants.

Archived iterations count. Each relative is met once, also where parents form a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from memfs.errors import QueryInvalid
from memfs.model.shape import Free, Shape
from memfs.model.state_facts import version_order
from memfs.model.state_paths import HYPOTHESIS_KINDS
from memfs.model.state_query import StateQuery, StateRow
from memfs.state.reader import StateDocument, StateReader

_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HypothesisVersion(Shape):
    """A hypothesis as it was in an iteration, at its end or before; ``document`` is all of it."""

    lists: ClassVar[tuple[str, ...]] = ("parents",)

    id: str
    iteration: int | None = None
    timestamp: datetime | None = None
    state: str = ""
    rating: float | None = None
    agent: str = ""
    parents: tuple[str, ...] = ()
    path: str = ""
    document: Free


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relative(Shape):
    """An ancestor or descendant: how many steps away, and by its last version what it is.

    ``via`` are the hypotheses on the nearer side through which it is one; ``known`` is false where only its name is
    stored, as another's parent.
    """

    lists: ClassVar[tuple[str, ...]] = ("via", "parents", "iterations")

    id: str
    steps: int
    via: tuple[str, ...] = ()
    known: bool = True
    iterations: tuple[int, ...] = ()
    state: str = ""
    rating: float | None = None
    agent: str = ""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HypothesisHistory(Shape):
    """What became of a hypothesis: its versions, oldest first, and its relatives both ways, nearest first."""

    lists: ClassVar[tuple[str, ...]] = ("versions", "ancestors", "descendants", "missing")

    id: str
    versions: tuple[HypothesisVersion, ...] = ()
    ancestors: tuple[Relative, ...] = ()
    descendants: tuple[Relative, ...] = ()
    missing: tuple[str, ...] = ()


def hypothesis_history(reader: StateReader, hypothesis: str) -> HypothesisHistory:
    """The versions of a hypothesis over and within the iterations, its ancestors and its descendants.

    One that is not stored has no versions, and may have descendants: those that name it as a parent.

    Raises:
        QueryInvalid: no name was given.
    """
    if not isinstance(hypothesis, str) or not hypothesis:
        raise QueryInvalid(f"{hypothesis!r} is not the id of a hypothesis", field="id", hint="give its id")
    reader.catch_up()
    gathered = reader.gather(StateQuery(kinds=HYPOTHESIS_KINDS, names=(hypothesis,)))
    missing = [f"{path} cannot be read: {reason}" for path, reason in gathered.problems.items()]
    walk = _Walk(reader)
    ancestors = walk.relatives(hypothesis, walk.parents)
    descendants = walk.relatives(hypothesis, walk.children)
    if walk.cut:
        missing.append(f"only {_MOST} relatives were followed")
    return HypothesisHistory(
        id=hypothesis,
        versions=tuple(_version(one) for one in sorted(gathered.documents, key=_order)),
        ancestors=ancestors,
        descendants=descendants,
        missing=tuple(missing),
    )


class _Walk:
    """Follows parents and children from what is known of the documents; each relative is met once."""

    def __init__(self, reader: StateReader) -> None:
        self._find = reader.index.find
        self.cut = False

    def relatives(self, origin: str, step: Callable[[str], Iterable[str]]) -> tuple[Relative, ...]:
        """All that a step leads to, again and again, nearest first."""
        steps = {origin: 0}
        via: dict[str, list[str]] = {}
        edge = [origin]
        while edge:
            further: list[str] = []
            for name in edge:
                for found in step(name):
                    if found not in steps:
                        if len(steps) > _MOST:
                            self.cut = True
                            continue
                        steps[found] = steps[name] + 1
                        further.append(found)
                    if steps[found] == steps[name] + 1:
                        via.setdefault(found, []).append(name)
            edge = sorted(further)
        ordered = sorted((away, name) for name, away in steps.items() if away)
        return tuple(self._relative(name, away, via[name]) for away, name in ordered)

    def parents(self, name: str) -> list[str]:
        """Whom any version of a hypothesis names as parents."""
        rows = self._find(StateQuery(kinds=HYPOTHESIS_KINDS, names=(name,)))
        return sorted({parent for row in rows for parent in row.facts.parents} - {name})

    def children(self, name: str) -> list[str]:
        """Who names a hypothesis as a parent."""
        rows = self._find(StateQuery(kinds=HYPOTHESIS_KINDS, parents=(name,)))
        return sorted({row.facts.name for row in rows} - {name})

    def _relative(self, name: str, away: int, via: list[str]) -> Relative:
        found = self._find(StateQuery(kinds=HYPOTHESIS_KINDS, names=(name,)))
        rows = sorted(found, key=lambda row: version_order(row.facts))
        if not rows:
            return Relative(id=name, steps=away, via=tuple(via), known=False)
        return _relative(rows, name, away, via)


def _relative(rows: list[StateRow], name: str, away: int, via: list[str]) -> Relative:
    last = rows[-1].facts
    return Relative(
        id=name,
        steps=away,
        via=tuple(dict.fromkeys(via)),
        iterations=tuple(dict.fromkeys(row.facts.iteration for row in rows if row.facts.iteration is not None)),
        state=last.state,
        rating=last.rating,
        agent=last.agent,
        parents=last.parents,
    )


def _order(document: StateDocument) -> tuple[int, bool, float, int]:
    return version_order(document.row.facts)


def _version(document: StateDocument) -> HypothesisVersion:
    facts = document.row.facts
    return HypothesisVersion(
        id=facts.name,
        iteration=facts.iteration,
        timestamp=facts.timestamp,
        state=facts.state,
        rating=facts.rating,
        agent=facts.agent,
        parents=facts.parents,
        path=document.row.path,
        document=document.values,
    )
