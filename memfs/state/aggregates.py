"""Keep ``aggregates/*.json``: metrics by agent, patterns and progress, by iteration.

Each follows from the documents alone: bringing one up to date gives the bytes that a rebuild gives. Patterns and
hypotheses are followed over the iterations, archived ones included.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from memfs.state.reader import UNREADABLE, DocumentChange

if TYPE_CHECKING:
    from memfs.state.reader import StateReader


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
    count, details, number = 1, {}, as_number(value)
    if isinstance(value, Mapping):
        found = (value[key] for key in _NAMES if isinstance(value.get(key), str) and value[key].strip())
        name, details = name or next(found, ""), dict(value)
        count = next((int(value[key]) for key in _COUNTS if (as_number(value.get(key)) or 0) >= 1), 1)
    elif name:
        count = int(number) if number is not None and number >= 1 else 1
    elif isinstance(value, str) or number is not None:
        name = str(value)
    plain = " ".join(name.split())[:_LONGEST_B]
    return PatternName(plain, min(count, 10**9), details) if plain else None


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
    trends = []
    for by in seen.values():
        first, last = min(by), max(by)
        counts = {iteration: one.count for iteration, one in by.items()}
        points = [(float(number), float(counts.get(number, 0))) for number in sorted(reviews) if number >= first]
        trend = PatternTrend(
            name=by[last].name,
            first_seen=first,
            last_seen=last,
            counts=counts,
            total=sum(counts.values()),
            reviews=len(counts),
            slope=slope(points),
            direction="new" if first == max(reviews) else direction(points),
            names=tuple(dict.fromkeys(one.name for one in by.values())),
            details=by[last].details,
        )
        trends.append(trend)
    return tuple(sorted(trends, key=lambda trend: (-trend.total, -trend.last_seen, trend.name)))


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
    ancestors, some = _relatives(reader, hypothesis, parents=True)
    descendants, others = _relatives(reader, hypothesis, parents=False)
    if some or others:
        missing.append(f"only {_MOST_RELATIVES} relatives were followed")
    versions = []
    for one in sorted(gathered.documents, key=lambda one: version_order(one.facts)):
        fields = {field: getattr(one.facts, field) for field in ("iteration", "timestamp", "path", *_OF_FACTS)}
        versions.append(HypothesisVersion(id=one.facts.name, document=one.values, **fields))
    return HypothesisHistory(
        id=hypothesis,
        versions=tuple(versions),
        ancestors=ancestors,
        descendants=descendants,
        missing=tuple(missing),
    )


def _relatives(reader: StateReader, origin: str, *, parents: bool) -> tuple[tuple[Relative, ...], bool]:
    """Whom any version of a hypothesis names as parents, or who names it as one, and so on, nearest first.

    Each is met once. Also returns whether there were too many to follow.
    """
    find, cut = reader.index.find, False
    steps, via, edge = {origin: 0}, defaultdict[str, list[str]](list), [origin]
    while edge:
        further: list[str] = []
        for name in edge:
            if parents:
                rows = find(StateQuery(kinds=HYPOTHESIS_KINDS, names=(name,)))
                beside = {parent for row in rows for parent in row.facts.parents}
            else:
                beside = {row.facts.name for row in find(StateQuery(kinds=HYPOTHESIS_KINDS, parents=(name,)))}
            for found in sorted(beside - {name}):
                if found not in steps:
                    if len(steps) > _MOST_RELATIVES:
                        cut = True
                        continue
                    steps[found] = steps[name] + 1
                    further.append(found)
                if steps[found] == steps[name] + 1:
                    via[found].append(name)
        edge = sorted(further)
    relatives = []
    for away, name in sorted((away, name) for name, away in steps.items() if away):
        rows = find(StateQuery(kinds=HYPOTHESIS_KINDS, names=(name,)))
        known = [row.facts for row in sorted(rows, key=lambda row: version_order(row.facts))]
        last = known[-1] if known else StateFacts(path="")
        relative = Relative(
            id=name,
            steps=away,
            via=tuple(dict.fromkeys(via[name])),
            known=bool(known),
            iterations=tuple(dict.fromkeys(facts.iteration for facts in known if facts.iteration is not None)),
            **{field: getattr(last, field) for field in _OF_FACTS},
        )
        relatives.append(relative)
    return tuple(relatives), cut


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
    said = {name: header.get(name) for name in ("status", "opened", "closed")}
    made: dict[str, Any] = {name: value for name, value in said.items() if isinstance(value, str) and value}
    made["outputs"] = counts["agent_output"]
    made["hypotheses"] = counts["hypothesis"]
    made["tournament_results"] = counts["tournament_result"]
    states = Counter(row.facts.state for row in given if row.facts.kind == "hypothesis" and row.facts.state)
    made["by_state"] = {name: states[name] for name in sorted(states)[:_MOST]}
    facts = (row.facts for row in given if row.facts.kind == "hypothesis")
    ratings = {one.name: one.rating for one in facts if one.rating is not None}
    if ratings:
        best = min(ratings, key=lambda name: (-ratings[name], name))
        made |= {"ratings": summary(ratings.values()), "best": {"id": best, "rating": short(ratings[best])}}
    return made


_MAKER = maker("aggregate", str(VERSION))
_NAMES_AT_ONCE = 500


_EFFECTIVENESS, _PATTERNS, _PROGRESS = "effectiveness_metrics", "pattern_history", "research_progress"
_SORTS = {_EFFECTIVENESS: metrics.KINDS, _PATTERNS: ("meta_review",), _PROGRESS: KINDS}
"""The aggregates by name, each with the kinds of documents that it is made from."""


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

    def _entries(self, sort: str, numbers: Sequence[int]) -> dict[int, Entry]:
        """The entries of iterations; the catalog keeps them by the contents that they are made from."""
        catalog, digests = self._reader.parts.items.catalog, self._reader.index.digests(_SORTS[sort])
        keys = {number: (digests.get(number, ""), sort) for number in numbers}
        kept = catalog.found(_MAKER, keys.values())
        entries = {number: kept[key] if key in kept else self._made(sort, number) for number, key in keys.items()}
        made = {number for number, key in keys.items() if key not in kept and "unreadable" not in entries[number]}
        if made:  # what changed meanwhile may be in them
            now = self._reader.index.digests(_SORTS[sort])
            still = {number for number in made if now.get(number, "") == keys[number][0]}
            catalog.keep(_MAKER, {keys[number]: json.dumps(entries[number]) for number in still})
        return entries

    def _made(self, sort: str, number: int) -> Entry:
        documents, entry = _Documents(self._reader), dict[str, Any]()
        found = self._reader.index.find(StateQuery(kinds=_SORTS[sort], iterations=(number,)))
        rows = sorted(found, key=lambda row: row.path)
        if sort == _EFFECTIVENESS:
            entry = {"agents": metrics.digest(rows, documents.load, documents.rated_before(rows))}
        elif sort == _PROGRESS:
            entry = progress(rows, documents.load)
        elif rows:
            named = [one for row in rows for one in patterns_of(documents.load(row))]
            patterns = {one.key: {"name": one.name, "count": one.count} for one in named}
            entry = {"reviewed": True, "patterns": patterns}
        return {"unreadable": documents.failed, **entry} if documents.failed else entry

    # -- on disk --------------------------------------------------------------------------------------------------
    def _store(self, sorts: Iterable[str]) -> list[str]:
        numbers = self._numbers()
        changes = []
        for sort in sorts:
            try:
                sha256 = self._files.read(aggregate_path(sort)).sha256
            except FileNotFoundError:
                sha256 = ""
            except ContentError:  # one that cannot be read is written again
                sha256 = "?"
            if not numbers and not sha256:  # nothing was ever there to sum up
                continue
            values = self._document(sort, numbers)
            if hashlib.sha256(json_text.document(values).encode()).hexdigest() != sha256:
                changes.append(DocumentChange(aggregate_path(sort), values))
        if not changes:
            return []
        names = ", ".join(change.path.rpartition("/")[2].removesuffix(".json") for change in changes)
        written = self._files.write(changes, f"Bring aggregates up to date: {names}", source="aggregates")
        return [one.path for one in written]

    def _document(self, sort: str, numbers: Sequence[int]) -> dict[str, Any]:
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
        except UNREADABLE:
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
