"""Follow patterns and hypotheses over the iterations, archived ones included.

A pattern is what meta-reviews name again and again. Of a hypothesis there are its versions, its ancestors and its
descendants; each relative is met once, also where parents form a circle.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, CorruptRecord, QueryInvalid
from memfs.model.insights import PatternTrend, TrendReport
from memfs.model.shape import Free, Shape
from memfs.model.state_facts import StateFacts, as_mapping, as_number, version_order
from memfs.model.state_paths import HYPOTHESIS_KINDS
from memfs.model.state_query import StateQuery
from memfs.state.metrics import direction, slope

if TYPE_CHECKING:
    from memfs.state.reader import StateDocument, StateReader


MOST = 200
"""So many patterns of one review are looked at."""
_NAMES = ("name", "pattern", "title", "label", "id", "description", "text", "summary")
_COUNTS = ("count", "occurrences", "frequency", "support", "times")
_LONGEST = 200
_EDGES = string.punctuation + string.whitespace


@dataclass(frozen=True, slots=True)
class PatternName:
    """A pattern as one review names it: how often, and what else it says of it."""

    name: str
    count: int
    details: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What is equal where two mean the same: letter case, blanks and marks at the ends do not count."""
        return (" ".join(self.name.casefold().split()).strip(_EDGES) or self.name)[:_LONGEST]


def patterns_of(review: Mapping[str, Any]) -> list[PatternName]:
    """The patterns that a meta-review names, each once: names, objects with a name, or what they are filed under."""
    found: dict[str, PatternName] = {}
    for name, value in _given(as_mapping(review.get("critique")).get("common_patterns")):
        one = _named(name, value)
        if one is None:
            continue
        before = found.get(one.key, PatternName(one.name, 0, {}))
        found[one.key] = PatternName(before.name, before.count + one.count, {**before.details, **one.details})
        if len(found) >= MOST:
            break
    return list(found.values())


def _given(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and not any(name in value for name in _NAMES):
        yield from ((str(name), inner) for name, inner in value.items())
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _given(inner) if isinstance(inner, list | tuple) else (("", inner),)
    else:
        yield "", value


def _named(name: str, value: Any) -> PatternName | None:
    """One pattern; ``name`` is what it is filed under, "" where it is by itself."""
    if isinstance(value, Mapping):
        found = next((value[key] for key in _NAMES if isinstance(value.get(key), str) and value[key].strip()), "")
        count = next((int(value[key]) for key in _COUNTS if (as_number(value.get(key)) or 0) >= 1), 1)
        return _made(name or found, count, value)
    if name:
        times = as_number(value)
        return _made(name, int(times) if times is not None and times >= 1 else 1, {})
    return _made(value if isinstance(value, str) else str(value) if as_number(value) is not None else "", 1, {})


def _made(name: str, count: int, details: Mapping[str, Any]) -> PatternName | None:
    plain = " ".join(name.split())[:_LONGEST]
    return PatternName(plain, min(count, 10**9), dict(details)) if plain else None


def pattern_text(pattern: PatternName) -> str:
    """A pattern in one sentence, with what else the review says of it."""
    facts = ", ".join(
        f"{key}: {value}"
        for key, value in pattern.details.items()
        if isinstance(value, str | int | float) and " ".join(str(value).split()) != pattern.name
    )
    return f"{pattern.name} ({facts})" if facts else pattern.name


def trends_of(reviews: Mapping[int, Sequence[PatternName]]) -> tuple[PatternTrend, ...]:
    """Every pattern over the iterations that have a review, the weightiest first.

    Args:
        reviews: by iteration, what its review names.
    """
    seen: dict[str, dict[int, PatternName]] = {}
    for iteration in sorted(reviews):
        for one in reviews[iteration]:
            seen.setdefault(one.key, {})[iteration] = one
    trends = [_trend(by, sorted(reviews)) for by in seen.values()]
    return tuple(sorted(trends, key=lambda trend: (-trend.total, -trend.last_seen, trend.name)))


def trends_of_entries(entries: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The trends in the entries of ``pattern_history``, by pattern, the weightiest first."""
    reviews = {
        iteration: [PatternName(one["name"], one["count"], {}) for one in entry["patterns"].values()]
        for iteration, entry in entries.items()
        if entry.get("reviewed")
    }
    return {
        one.name: {
            "first_seen": one.first_seen,
            "last_seen": one.last_seen,
            "slope": one.slope,
            "direction": one.direction,
        }
        for one in trends_of(reviews)[:MOST]
    }


def _trend(by: Mapping[int, PatternName], iterations: Sequence[int]) -> PatternTrend:
    first, last = min(by), max(by)
    counts = {iteration: one.count for iteration, one in by.items()}
    points = [(float(iteration), float(counts.get(iteration, 0))) for iteration in iterations if iteration >= first]
    is_new = first == iterations[-1]
    return PatternTrend(
        name=by[last].name,
        first_seen=first,
        last_seen=last,
        counts=counts,
        total=sum(counts.values()),
        reviews=len(counts),
        slope=slope(points),
        direction="new" if is_new else direction(points),
        names=tuple(dict.fromkeys(one.name for one in by.values())),
        details=by[last].details,
    )


def pattern_trends(reader: StateReader) -> TrendReport:
    """Every pattern that a meta-review names: first and last seen, counts by iteration, direction.

    As the documents say it now: a review that was stored, changed or removed a moment ago counts. A review that cannot
    be read is named in ``missing``, and the others count.
    """
    reviews: dict[int, list[PatternName]] = {}
    missing = []
    for row in reader.rows(StateQuery(kinds=("meta_review",))):
        if row.facts.iteration is None:
            continue
        try:
            reviews[row.facts.iteration] = patterns_of(reader.load(row))
        except FileNotFoundError:  # removed a moment ago
            continue
        except (ContentError, CorruptRecord) as error:
            missing.append(f"the review of iteration {row.facts.iteration} cannot be read: {error}")
    return TrendReport(iterations=tuple(sorted(reviews)), patterns=trends_of(reviews), missing=tuple(sorted(missing)))


# -- hypotheses ---------------------------------------------------------------------------------------------------
_MOST_RELATIVES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HypothesisVersion(Shape):
    """A hypothesis as it was in an iteration, at its end or before; ``document`` is all of it."""

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
        missing.append(f"only {_MOST_RELATIVES} relatives were followed")
    return HypothesisHistory(
        id=hypothesis,
        versions=tuple(_version(one) for one in sorted(gathered.documents, key=lambda one: version_order(one.facts))),
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
                        if len(steps) > _MOST_RELATIVES:
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
        rows = [row.facts for row in sorted(found, key=lambda row: version_order(row.facts))]
        last = rows[-1] if rows else StateFacts(path="")
        return Relative(
            id=name,
            steps=away,
            via=tuple(dict.fromkeys(via)),
            known=bool(rows),
            iterations=tuple(dict.fromkeys(facts.iteration for facts in rows if facts.iteration is not None)),
            state=last.state,
            rating=last.rating,
            agent=last.agent,
            parents=last.parents,
        )


def _version(document: StateDocument) -> HypothesisVersion:
    facts = document.facts
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
