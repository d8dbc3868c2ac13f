"""Keep ``aggregates/*.json``: metrics by agent, patterns and progress, summed over all iterations.

Each follows from the documents alone: bringing one up to date gives the bytes that a rebuild gives.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memfs.catalog.facts import maker
from memfs.errors import ContentError, CorruptRecord, ItemNotFound
from memfs.format import json_text
from memfs.model.kinds import nearest
from memfs.model.state_facts import StateFacts, as_mapping, as_number
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path
from memfs.model.state_query import StateQuery, StateRow
from memfs.state import metrics
from memfs.state.metrics import Load, combined, short, summary
from memfs.state.trends import patterns_of, trends_of_entries
from memfs.store.state_files import DocumentChange

if TYPE_CHECKING:
    from memfs.state.reader import StateReader


Entry = Mapping[str, Any]
Fold = Callable[[Entry, int, Entry], dict[str, Any]]
"""The sum so far ({} at first), the number and entry of the next iteration; the new sum."""

ROOM = 16_000
"""So many keys and values at most stand in the entries together: a file of some 200 kB."""
VERSION = 2


def size_of(value: Any) -> int:
    """How many keys and values stand in a value, about as they are counted when a document is read."""
    if isinstance(value, Mapping):
        return 2 + sum(2 + size_of(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return 2 + sum(1 + size_of(inner) for inner in value)
    return 0


KINDS = ("agent_output", "hypothesis", "meta_review", "system_state", "tournament_result")
"""The documents that an entry follows from."""

_REPORTED = ("total_hypotheses", "pending_reviews", "tournament_progress")
_MOST = 20
_LONGEST = 300


def progress(rows: Iterable[StateRow], load: Load) -> dict[str, Any]:
    """How far the research was in one iteration.

    Args:
        rows: of the iteration's documents of ``KINDS``.
        load: reads one; only the header and the meta-review are read.
    """
    given = sorted(rows, key=lambda row: row.path)
    header = next((load(row) for row in given if row.facts.kind == "system_state"), {})
    review = next((load(row) for row in given if row.facts.kind == "meta_review"), {})
    counts = Counter(row.facts.kind for row in given)
    made: dict[str, Any] = {name: header[name] for name in ("status", "opened", "closed") if _text(header.get(name))}
    made["outputs"] = counts["agent_output"]
    made["hypotheses"] = counts["hypothesis"]
    made["tournament_results"] = counts["tournament_result"]
    states = Counter(row.facts.state for row in given if row.facts.kind == "hypothesis" and row.facts.state)
    made["by_state"] = {name: states[name] for name in sorted(states)[:_MOST]}
    return made | _ratings(row.facts for row in given) | _reported(header) | _overview(review)


def _ratings(given: Iterable[StateFacts]) -> dict[str, Any]:
    ratings = {facts.name: facts.rating for facts in given if facts.kind == "hypothesis" and facts.rating is not None}
    if not ratings:
        return {}
    best = min(ratings, key=lambda name: (-ratings[name], name))
    return {"ratings": summary(ratings.values()), "best": {"id": best, "rating": short(ratings[best])}}


def _reported(header: Mapping[str, Any]) -> dict[str, Any]:
    update = as_mapping(header.get("update"))
    statistics = as_mapping(update.get("system_statistics"))
    made: dict[str, Any] = {name: statistics[name] for name in _REPORTED if as_number(statistics.get(name)) is not None}
    focus = as_mapping(update.get("orchestration_state")).get("strategic_focus")
    return made | ({"strategic_focus": focus[:_LONGEST]} if isinstance(focus, str) and focus else {})


def _overview(review: Mapping[str, Any]) -> dict[str, Any]:
    overview = as_mapping(review.get("research_overview"))
    areas, priorities = overview.get("research_areas"), overview.get("next_priorities")
    made: dict[str, Any] = {"research_areas": len(areas)} if isinstance(areas, list) else {}
    if isinstance(priorities, list):
        made["next_priorities"] = [one[:_LONGEST] for one in priorities if _text(one)][:_MOST]
    return made


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


_MOST_AGENTS = 200
_MOST_PATTERNS = 500
_MOST_IN_ENTRY = 12_000


# -- agents -------------------------------------------------------------------------------------------------------
def fold_agents(total: Entry, iteration: int, entry: Entry) -> dict[str, Any]:
    """How each agent did in all iterations so far."""
    agents = dict(as_mapping(total.get("agents")))
    for name, one in as_mapping(entry.get("agents")).items():
        before = as_mapping(agents.get(name))
        made: dict[str, Any] = {
            "first": before.get("first", iteration),
            "last": iteration,
            "iterations": before.get("iterations", 0) + 1,
            "outputs": before.get("outputs", 0) + one.get("outputs", 0),
        }
        for key in ("confidence", "cost", "gains"):
            if key in before or key in one:
                made[key] = combined(part[key] for part in (before, one) if key in part)
        if "better" in before or "better" in one:
            made["better"] = before.get("better", 0) + one.get("better", 0)
        agents[name] = made
    busiest = sorted(agents, key=lambda name: (-agents[name]["outputs"], name))[:_MOST_AGENTS]
    return {"agents": {name: agents[name] for name in sorted(busiest)}}


def fitting(agents: Mapping[str, Any]) -> dict[str, Any]:
    """The agents that a file has room for, the busiest first, and how many are left out."""
    kept: list[str] = []
    room = _MOST_IN_ENTRY
    for name in sorted(agents, key=lambda name: (-agents[name]["outputs"], name)):
        room -= 2 + size_of(agents[name])
        if room < 0:
            break
        kept.append(name)
    made: dict[str, Any] = {"agents": {name: agents[name] for name in sorted(kept)}}
    return made | ({"left_out": len(agents) - len(kept)} if len(kept) < len(agents) else {})


# -- patterns -----------------------------------------------------------------------------------------------------
def fold_patterns(total: Entry, iteration: int, entry: Entry) -> dict[str, Any]:
    """When each pattern was first and last seen, how often, and in how many reviews."""
    patterns = dict(as_mapping(total.get("patterns")))
    named = as_mapping(entry.get("patterns"))
    for key, one in named.items():
        before = as_mapping(patterns.get(key))
        patterns[key] = {
            "name": one["name"],
            "first_seen": before.get("first_seen", iteration),
            "last_seen": iteration,
            "total": before.get("total", 0) + one["count"],
            "reviews": before.get("reviews", 0) + 1,
        }
    kept = sorted(patterns, key=lambda key: (-patterns[key]["total"], -patterns[key]["last_seen"], key))
    reviews = total.get("reviews", 0) + (1 if entry.get("reviewed") else 0)
    return {"reviews": reviews, "patterns": {key: patterns[key] for key in kept[:_MOST_PATTERNS]}}


# -- progress -----------------------------------------------------------------------------------------------------
_COUNTED = ("outputs", "hypotheses", "tournament_results")


def fold_progress(total: Entry, iteration: int, entry: Entry) -> dict[str, Any]:
    """How much was done so far, and the best hypothesis of all."""
    made: dict[str, Any] = {"first": total.get("first", iteration), "last": iteration}
    made["iterations"] = total.get("iterations", 0) + 1
    made["closed"] = total.get("closed", 0) + (1 if entry.get("status") == "closed" else 0)
    made |= {name: total.get(name, 0) + entry.get(name, 0) for name in _COUNTED}
    before, best = as_mapping(total.get("best")), as_mapping(entry.get("best"))
    rating, known = as_number(best.get("rating")), as_number(before.get("rating"))
    if rating is not None and (known is None or rating > known):
        before = {"id": best.get("id", ""), "rating": short(rating), "iteration": iteration}
    return made | ({"best": dict(before)} if before else {})


_SOURCE = "aggregates"
_MAKER = maker("aggregate", str(VERSION))
_NAMES_AT_ONCE = 500
_UNREADABLE = (ContentError, FileNotFoundError, CorruptRecord)


@dataclass(frozen=True, slots=True)
class _Sort:
    """One of the aggregates: from which documents it is made, its entry for an iteration, and its sum."""

    name: str
    kinds: tuple[str, ...]
    fold: Fold
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


_EFFECTIVENESS = _Sort("effectiveness_metrics", metrics.KINDS, fold_agents, _agents)
_PATTERNS = _Sort("pattern_history", ("meta_review",), fold_patterns, _patterns)
_SORTS = (_EFFECTIVENESS, _PATTERNS, _Sort("research_progress", KINDS, fold_progress, _progress))
_REVIEWED = tuple(sort for sort in _SORTS if "meta_review" in sort.kinds)


class Aggregates:
    """The aggregates of one workspace. May be used from several threads.

    What an iteration comes to is kept in the catalog, and made again where one of its documents changed.
    """

    def __init__(self, reader: StateReader) -> None:
        self._files = reader.files
        self._reader = reader

    def read(self, name: str) -> dict[str, Any]:
        """One aggregate as it is on disk: as of the last closing, review or rebuild; ``behind`` says how far back.

        Raises:
            ItemNotFound: there is no aggregate of that name, or it was never made.
            ContentError: somebody changed the file into something else.
        """
        self._reader.parts.require_open()
        if name not in AGGREGATE_NAMES:
            raise ItemNotFound(f"there is no aggregate {name!r}", hint=nearest(name, AGGREGATE_NAMES) or _listed())
        try:
            return self._files.read(aggregate_path(name)).values
        except FileNotFoundError:
            hint = "run 'memfs state aggregates --rebuild'"
            raise ItemNotFound("the aggregate was never made", path=aggregate_path(name), hint=hint) from None

    def update(self) -> list[str]:
        """Bring the aggregates up to date; returns the paths whose bytes changed.

        Raises:
            StorageIO, Conflict: nothing was changed.
        """
        return self._store(_SORTS)

    def rebuild(self) -> list[str]:
        """Rebuild the aggregates from the documents alone, after a look at every file; as ``update``."""
        self._reader.looking.look(everywhere=True)
        return self._store(_SORTS)

    def react(self, occasion: str, facts: Mapping[str, Any]) -> None:
        """Bring up to date: all when an iteration was closed, what a review says when one was stored."""
        self._reader.parts.require_open()
        if occasion == "iteration_closed":
            self.update()
        elif occasion == "state_stored" and facts.get("kind") == "meta_review":
            self._store(_REVIEWED)

    def behind(self) -> list[int]:
        """The iterations whose documents say something else by now than an aggregate does."""
        found: set[str] = set()
        numbers = self._numbers()
        for sort in _SORTS:
            present = self._document(sort, numbers)["iterations"]
            shown = as_mapping(self._kept(sort)[0].get("iterations"))
            found.update(number for number, entry in present.items() if shown.get(number) != entry)
        return sorted(map(int, found))

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
    def _kept(self, sort: _Sort) -> tuple[Mapping[str, Any], str]:
        """What is on disk, and the digest of the file; "" where there is none, "?" where it cannot be read."""
        try:
            state = self._files.read(aggregate_path(sort.name))
        except FileNotFoundError:
            return {}, ""
        except ContentError:
            return {}, "?"
        return state.values, state.sha256

    def _store(self, sorts: Sequence[_Sort]) -> list[str]:
        numbers = self._numbers()
        changes = []
        for sort in sorts:
            _, sha256 = self._kept(sort)
            if not numbers and not sha256:  # nothing was ever there to sum up
                continue
            values = self._document(sort, numbers)
            if hashlib.sha256(json_text.document(values).encode()).hexdigest() != sha256:
                changes.append(DocumentChange(aggregate_path(sort.name), values))
        written = self._files.write(changes, _message(changes), source=_SOURCE) if changes else []
        return [one.path for one in written]

    def _document(self, sort: _Sort, numbers: Sequence[int]) -> dict[str, Any]:
        """What belongs on disk: the sum of all iterations, and the newest one by one, as many as there is room for."""
        total: Entry = {}
        shown: dict[int, Entry] = {}
        for number, entry in self._entries(sort, numbers).items():
            total = sort.fold(total, number, entry)
            shown[number] = {**entry, **fitting(entry["agents"])} if sort is _EFFECTIVENESS else entry
        room = ROOM
        newest: dict[int, Entry] = {}
        for number in reversed(shown):
            room -= size_of(shown[number])
            if newest and room < 0:
                break
            newest[number] = shown[number]
        trends = {"trends": trends_of_entries(newest)} if sort is _PATTERNS else {}
        ordered = {str(number): dict(newest[number]) for number in reversed(newest)}
        return {"version": VERSION, "total": dict(total), **trends, "iterations": ordered}


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
        """Ratings, by id, of parents that lie in earlier iterations, as the newest of these has them."""
        given = [row.facts for row in rows if row.facts.kind == "hypothesis"]
        here = {facts.name for facts in given}
        names = sorted({parent for facts in given for parent in facts.parents if parent not in here})
        before = max((facts.iteration or 0 for facts in given), default=0)
        newest: dict[str, tuple[int, float]] = {}
        for place in range(0, len(names), _NAMES_AT_ONCE):
            wanted = tuple(names[place : place + _NAMES_AT_ONCE])
            for row in self._reader.index.find(StateQuery(kinds=("hypothesis",), names=wanted)):
                facts = row.facts
                if facts.rating is not None and facts.iteration is not None and facts.iteration < before:
                    newest[facts.name] = max(newest.get(facts.name, (-1, 0.0)), (facts.iteration, facts.rating))
        return {name: rating for name, (_, rating) in newest.items()}


def _message(changes: Sequence[DocumentChange]) -> str:
    names = ", ".join(change.path.rpartition("/")[2].removesuffix(".json") for change in changes)
    return f"Bring aggregates up to date: {names}"


def _listed() -> str:
    return f"there are {', '.join(AGGREGATE_NAMES)}"
