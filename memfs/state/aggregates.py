"""Keep ``aggregates/*.json``: metrics by agent, patterns and progress, by iteration.

Each follows from the documents alone: bringing one up to date gives the bytes that a rebuild gives. Patterns and
hypotheses are followed over the iterations, archived ones included.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.catalog.facts import maker
from memfs.dataclass import dataclass
from memfs.errors import ContentError, CorruptRecord, QueryInvalid
from memfs.format import json_text
from memfs.model.shape import Free, Shape
from memfs.model.state_documents import PatternTrend, TrendReport
from memfs.model.state_facts import StateFacts, StateQuery, StateRow, as_mapping, as_number, version_order
from memfs.model.state_paths import HYPOTHESIS_KINDS, aggregate_path
from memfs.state import metrics
from memfs.state.metrics import Load, direction, short, slope, summary
from memfs.state.reader import DocumentChange

if TYPE_CHECKING:
    from memfs.state.reader import StateDocument, StateReader


MOST = 200
"""How many patterns of one review are looked at."""
_NAMES = ("name", "pattern", "title", "label", "id", "description", "text", "summary")
_COUNTS = ("count", "occurrences", "frequency", "support", "times")
_LONGEST_B = 200
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
        return (" ".join(self.name.casefold().split()).strip(_EDGES) or self.name)[:_LONGEST_B]


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
    plain = " ".join(name.split())[:_LONGEST_B]
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
        for pattern in reviews[iteration]:
            seen.setdefault(pattern.key, {})[iteration] = pattern
    trends = [_trend(by, sorted(reviews)) for by in seen.values()]
    return tuple(sorted(trends, key=lambda trend: (-trend.total, -trend.last_seen, trend.name)))


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
_OF_FACTS = ("state", "rating", "agent", "parents")


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
            **{field: getattr(last, field) for field in _OF_FACTS},
        )


def _version(document: StateDocument) -> HypothesisVersion:
    facts = document.facts
    fields = {field: getattr(facts, field) for field in ("iteration", "timestamp", *_OF_FACTS)}
    return HypothesisVersion(id=facts.name, path=facts.path, document=document.values, **fields)


Entry = Mapping[str, Any]

ROOM = 200_000
"""The most bytes that the entries of a file take together, unless the newest alone takes more."""
VERSION = 4

KINDS = ("agent_output", "hypothesis", "system_state", "tournament_result")
"""The documents that an entry follows from."""

_MOST = 20


def progress(rows: Iterable[StateRow], load: Load) -> dict[str, Any]:
    """How far the research was in one iteration.

    Args:
        rows: of the iteration's documents of ``KINDS``.
        load: reads one; only the header is read.
    """
    given = sorted(rows, key=lambda row: row.path)
    header = next((load(row) for row in given if row.facts.kind == "system_state"), {})
    counts = Counter(row.facts.kind for row in given)
    made: dict[str, Any] = {name: header[name] for name in ("status", "opened", "closed") if _text(header.get(name))}
    made["outputs"] = counts["agent_output"]
    made["hypotheses"] = counts["hypothesis"]
    made["tournament_results"] = counts["tournament_result"]
    states = Counter(row.facts.state for row in given if row.facts.kind == "hypothesis" and row.facts.state)
    made["by_state"] = {name: states[name] for name in sorted(states)[:_MOST]}
    return made | _ratings(row.facts for row in given)


def _ratings(given: Iterable[StateFacts]) -> dict[str, Any]:
    ratings = {facts.name: facts.rating for facts in given if facts.kind == "hypothesis" and facts.rating is not None}
    if not ratings:
        return {}
    best = min(ratings, key=lambda name: (-ratings[name], name))
    return {"ratings": summary(ratings.values()), "best": {"id": best, "rating": short(ratings[best])}}


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


_SOURCE = "aggregates"
_MAKER = maker("aggregate", str(VERSION))
_NAMES_AT_ONCE = 500
_UNREADABLE = (ContentError, FileNotFoundError, CorruptRecord)


@dataclass(frozen=True, slots=True)
class _Sort:
    """One of the aggregates: from which documents it is made, and its entry for an iteration."""

    name: str
    kinds: tuple[str, ...]
    entry: Callable[[Sequence[StateRow], _Documents], dict[str, Any]]


def _agents(rows: Sequence[StateRow], documents: _Documents) -> dict[str, Any]:
    return {"agents": metrics.digest(rows, documents.load, documents.rated_before(rows))}


def _patterns(rows: Sequence[StateRow], documents: _Documents) -> dict[str, Any]:
    if not rows:
        return {}
    named = [one for row in rows for one in patterns_of(documents.load(row))]
    return {"reviewed": True, "patterns": {one.key: {"name": one.name, "count": one.count} for one in named}}


def _progress(rows: Sequence[StateRow], documents: _Documents) -> dict[str, Any]:
    return progress(rows, documents.load)


_EFFECTIVENESS = _Sort("effectiveness_metrics", metrics.KINDS, _agents)
_PATTERNS = _Sort("pattern_history", ("meta_review",), _patterns)
_SORTS = (_EFFECTIVENESS, _PATTERNS, _Sort("research_progress", KINDS, _progress))


class Aggregates:
    """The aggregates of one workspace. May be used from several threads.

    What an iteration comes to is kept in the catalog, and made again where one of its documents changed.
    """

    def __init__(self, reader: StateReader) -> None:
        self._files = reader.files
        self._reader = reader

    def update(self) -> list[str]:
        """Bring the aggregates up to date; returns the paths whose bytes changed.

        Raises:
            StorageIO, Conflict: nothing was changed.
        """
        return self._store(_SORTS)

    def react(self, occasion: str, facts: Mapping[str, Any]) -> None:
        """Bring up to date: all when an iteration was closed, what a review says when one was stored."""
        self._reader.parts.require_open()
        if occasion == "iteration_closed":
            self.update()
        elif occasion == "state_stored" and facts.get("kind") == "meta_review":
            self._store([_PATTERNS])

    def agents(self, iterations: Iterable[int]) -> dict[int, dict[str, Any]]:
        """What each agent did in these iterations, as the documents say it now, by ``metrics.key_of`` its name."""
        there = self._numbers()
        entries = self._entries(_EFFECTIVENESS, [number for number in iterations if number in there])
        return {number: entry["agents"] for number, entry in entries.items()}

    # -- entries --------------------------------------------------------------------------------------------------
    def _numbers(self) -> list[int]:
        return [row.number for row in self._reader.iterations()]

    def _entries(self, sort: _Sort, numbers: Sequence[int]) -> dict[int, Entry]:
        """The entries of iterations; the catalog keeps them by the contents that they are made from."""
        catalog, digests = self._reader.parts.items.catalog, self._reader.index.digests(sort.kinds)
        keys = {number: (digests.get(number, ""), sort.name) for number in numbers}
        kept = catalog.found(_MAKER, keys.values())
        entries = {number: kept[key] if key in kept else self._made(sort, number) for number, key in keys.items()}
        made = {number for number, key in keys.items() if key not in kept and "unreadable" not in entries[number]}
        if made:  # what changed meanwhile may be in them
            now = self._reader.index.digests(sort.kinds)
            still = {number for number in made if now.get(number, "") == keys[number][0]}
            catalog.keep(_MAKER, {keys[number]: json.dumps(entries[number]) for number in still})
        return entries

    def _made(self, sort: _Sort, number: int) -> Entry:
        documents = _Documents(self._reader)
        rows = self._reader.index.find(StateQuery(kinds=sort.kinds, iterations=(number,)))
        entry = sort.entry(sorted(rows, key=lambda row: row.path), documents)
        return {"unreadable": documents.failed, **entry} if documents.failed else entry

    # -- on disk --------------------------------------------------------------------------------------------------
    def _digest(self, sort: _Sort) -> str:
        """Of the file; "" where there is none, "?" where it cannot be read."""
        try:
            return self._files.read(aggregate_path(sort.name)).sha256
        except FileNotFoundError:
            return ""
        except ContentError:
            return "?"

    def _store(self, sorts: Sequence[_Sort]) -> list[str]:
        numbers = self._numbers()
        changes = []
        for sort in sorts:
            sha256 = self._digest(sort)
            if not numbers and not sha256:  # nothing was ever there to sum up
                continue
            values = self._document(sort, numbers)
            if hashlib.sha256(json_text.document(values).encode()).hexdigest() != sha256:
                changes.append(DocumentChange(aggregate_path(sort.name), values))
        written = self._files.write(changes, _message(changes), source=_SOURCE) if changes else []
        return [one.path for one in written]

    def _document(self, sort: _Sort, numbers: Sequence[int]) -> dict[str, Any]:
        """What belongs on disk: the newest iterations one by one, as many as there is room for."""
        entries = self._entries(sort, numbers)
        newest: dict[int, Entry] = {}
        room = ROOM
        for number in reversed(entries):
            room -= len(json.dumps(entries[number]))
            if newest and room < 0:
                break
            newest[number] = entries[number]
        return {"version": VERSION, "iterations": {str(n): newest[n] for n in reversed(newest)}}


class _Documents:
    """Loads the documents of an entry, and counts those that cannot be read."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self.failed = 0

    def load(self, row: StateRow) -> Mapping[str, Any]:
        """A document's content; nothing where it cannot be read."""
        try:
            return self._reader.load(row)
        except _UNREADABLE:
            self.failed += 1
            return {}

    def rated_before(self, rows: Sequence[StateRow]) -> dict[str, float]:
        """Ratings, by id, of parents that are in earlier iterations, as the newest of these has them."""
        given = [row.facts for row in rows if row.facts.kind == "hypothesis"]
        here = {facts.name for facts in given}
        names = sorted({parent for facts in given for parent in facts.parents if parent not in here})
        before = max((facts.iteration or 0 for facts in given), default=0)
        newest: dict[str, tuple[int, float]] = {}
        for place in range(0, len(names), _NAMES_AT_ONCE):
            chunk = tuple(names[place : place + _NAMES_AT_ONCE])
            for row in self._reader.index.find(StateQuery(kinds=("hypothesis",), names=chunk)):
                facts = row.facts
                if facts.rating is not None and facts.iteration is not None and facts.iteration < before:
                    newest[facts.name] = max(newest.get(facts.name, (-1, 0.0)), (facts.iteration, facts.rating))
        return {name: rating for name, (_, rating) in newest.items()}


def _message(changes: Sequence[DocumentChange]) -> str:
    names = ", ".join(change.path.rpartition("/")[2].removesuffix(".json") for change in changes)
    return f"Bring aggregates up to date: {names}"
