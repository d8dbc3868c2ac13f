"""Keep ``aggregates/*.json``: metrics by agent, patterns and progress, summed over all iterations.

Each follows from the documents alone: bringing one up to date gives the bytes that a rebuild gives.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, CorruptRecord, ItemNotFound
from memfs.format import json_text
from memfs.model.kinds import nearest
from memfs.model.state_facts import StateFacts
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path
from memfs.model.state_query import StateQuery, StateRow
from memfs.search.state_tables import storable
from memfs.state import metrics
from memfs.state.concurrent_documents import settled
from memfs.state.metrics import Load, as_number, combined, mapping, short, summary
from memfs.state.trends import patterns_of, trends_of_entries
from memfs.store.state_files import DocumentChange

if TYPE_CHECKING:
    from memfs.state.reader import StateReader
    from memfs.store.state_files import StateFiles


def inputs_name(documents: Iterable[tuple[str, str]], ratings: Mapping[str, float]) -> str:
    """The name of documents, by path and digest in the order of their paths, and of ratings they are judged by."""
    lines = [f"{path}\0{sha256}" for path, sha256 in documents]
    lines += [f"{name}\0{rating!r}" for name, rating in sorted((storable(key), one) for key, one in ratings.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


Entry = Mapping[str, Any]
Fold = Callable[[Entry, int, Entry], dict[str, Any]]
"""The sum so far ({} at first), the number and entry of the next iteration; the new sum."""

ROOM = 16_000
"""So many keys and values at most stand in the entries together: a file of some 200 kB."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class Series:
    """The entries of an aggregate by iteration, and the sum of those up to ``until``.

    Attributes:
        entries: each with its ``source``, which names what it was made from.
        earlier: the sum of the iterations up to ``until``, of which there are ``count``; ``size`` is that of the last
            one's entry, ``source`` is made from theirs.
    """

    entries: Mapping[int, Entry] = field(default_factory=dict)
    earlier: Entry = field(default_factory=dict)
    until: int = -1
    count: int = 0
    size: int = 0
    source: str = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Series | None:
        """The series that a file holds; None where it is none of this version's."""
        folded, entries = values.get("earlier", {}), values.get("iterations")
        if values.get("version") != VERSION or not isinstance(entries, dict) or not isinstance(folded, dict):
            return None
        if not all(number.isdecimal() and isinstance(entry, dict) for number, entry in entries.items()):
            return None
        header = {name: folded.get(name) for name in ("until", "count", "size")}
        if folded and not all(isinstance(value, int) for value in header.values()):
            return None
        if folded and not (isinstance(folded.get("sum"), dict) and isinstance(folded.get("source"), str)):
            return None
        by_number = {int(number): entry for number, entry in entries.items()}
        if not folded:
            return cls(by_number)
        return cls(by_number, folded["sum"], folded["until"], folded["count"], folded["size"], folded["source"])

    def to_dict(self) -> dict[str, Any]:
        """As the file has it, without what is worked out from the entries."""
        made: dict[str, Any] = {}
        if self.count:
            header = {"until": self.until, "count": self.count, "size": self.size, "source": self.source}
            made["earlier"] = {**header, "sum": dict(self.earlier)}
        made["iterations"] = {str(number): dict(self.entries[number]) for number in sorted(self.entries)}
        return made

    def put(self, entries: Mapping[int, Entry], fold: Fold) -> Series | None:
        """The series with these entries, trimmed to the room; None where it must be rebuilt to be exact.

        That is so where one of them lies in the sum, or where there is room again for the newest that does.
        """
        if any(number <= self.until for number in entries):
            return None
        series = Series(
            {**self.entries, **entries}, self.earlier, self.until, self.count, self.size, self.source
        ).trimmed(fold)
        used = sum(size_of(entry) for entry in series.entries.values())
        return None if series.count and used + series.size <= ROOM and series.until == self.until else series

    def trimmed(self, fold: Fold) -> Series:
        """With the oldest entries in the sum, as many as there is no room for; the newest always stays."""
        numbers = sorted(self.entries)
        used, kept = 0, 0
        for number in reversed(numbers):
            used += size_of(self.entries[number])
            if kept and used > ROOM:
                break
            kept += 1
        earlier, until, count, size, source = self.earlier, self.until, self.count, self.size, self.source
        for number in numbers[: len(numbers) - kept]:
            entry = self.entries[number]
            earlier, until, count, size = fold(earlier, number, entry), number, count + 1, size_of(entry)
            source = chained(source, number, entry)
        left = {number: self.entries[number] for number in numbers[len(numbers) - kept :]}
        return Series(left, earlier, until, count, size, source)

    def summed(self, fold: Fold) -> Entry:
        """The sum of all iterations."""
        total = self.earlier
        for number in sorted(self.entries):
            total = fold(total, number, self.entries[number])
        return total


def size_of(value: Any) -> int:
    """How many keys and values stand in a value, about as they are counted when a document is read."""
    if isinstance(value, Mapping):
        return 2 + sum(2 + size_of(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return 2 + sum(1 + size_of(inner) for inner in value)
    return 0


def chained(source: str, number: int, entry: Entry) -> str:
    """The source of a sum after the next iteration."""
    return hashlib.sha256(f"{source}\0{number}\0{entry.get('source', '')}".encode()).hexdigest()[:16]


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
    update = mapping(header.get("update"))
    statistics = mapping(update.get("system_statistics"))
    made: dict[str, Any] = {name: statistics[name] for name in _REPORTED if as_number(statistics.get(name)) is not None}
    focus = mapping(update.get("orchestration_state")).get("strategic_focus")
    return made | ({"strategic_focus": focus[:_LONGEST]} if isinstance(focus, str) and focus else {})


def _overview(review: Mapping[str, Any]) -> dict[str, Any]:
    overview = mapping(review.get("research_overview"))
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
    agents = dict(mapping(total.get("agents")))
    for name, one in mapping(entry.get("agents")).items():
        before = mapping(agents.get(name))
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
    """The entry of an iteration with as many agents as there is room for, the busiest first, and how many are not."""
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
    patterns = dict(mapping(total.get("patterns")))
    named = mapping(entry.get("patterns"))
    for key, one in named.items():
        before = mapping(patterns.get(key))
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
    before, best = mapping(total.get("best")), mapping(entry.get("best"))
    rating, known = as_number(best.get("rating")), as_number(before.get("rating"))
    if rating is not None and (known is None or rating > known):
        before = {"id": best.get("id", ""), "rating": short(rating), "iteration": iteration}
    return made | ({"best": dict(before)} if before else {})


_SOURCE = "aggregates"
_PATIENCE = 2.0
_BATCH = 50
_HELD = 200
_NAMES_AT_ONCE = 500
_UNREADABLE = (ContentError, FileNotFoundError, CorruptRecord)


@dataclass(frozen=True, slots=True)
class _Sort:
    """One of the aggregates: from which documents it is made, its entry for an iteration, and its sum."""

    name: str
    kinds: tuple[str, ...]
    fold: Fold
    entry: Callable[[Sequence[StateRow], metrics.Load, Mapping[str, float]], dict[str, Any]]


def _agents(rows: Sequence[StateRow], load: metrics.Load, elsewhere: Mapping[str, float]) -> dict[str, Any]:
    return fitting(metrics.digest(rows, load, elsewhere))


def _patterns(rows: Sequence[StateRow], load: metrics.Load, _: Mapping[str, float]) -> dict[str, Any]:
    if not rows:
        return {}
    named = [one for row in rows for one in patterns_of(load(row))]
    return {"reviewed": True, "patterns": {one.key: {"name": one.name, "count": one.count} for one in named}}


def _progress(rows: Sequence[StateRow], load: metrics.Load, _: Mapping[str, float]) -> dict[str, Any]:
    return progress(rows, load)


_Make = Callable[[Series | None, _Sort, "_Lookup"], Series]
"""Makes a series out of the one on disk, if that can be used, and what is known of the documents."""

_EFFECTIVENESS = _Sort("effectiveness_metrics", metrics.KINDS, fold_agents, _agents)
_SORTS = (
    _EFFECTIVENESS,
    _Sort("pattern_history", ("meta_review",), fold_patterns, _patterns),
    _Sort("research_progress", KINDS, fold_progress, _progress),
)
_REVIEWED = tuple(sort for sort in _SORTS if "meta_review" in sort.kinds)
_KINDS = tuple(sorted({kind for sort in _SORTS for kind in sort.kinds}))


class Aggregates:
    """The aggregates of one workspace. May be used from several threads."""

    def __init__(self, files: StateFiles, reader: StateReader) -> None:
        self._files = files
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

    def update(self, iteration: int | None = None) -> list[str]:
        """Bring the aggregates up to date.

        Args:
            iteration: which one changed; None looks at all of them, at the cost of a look at what is known of each
                document. One that is open, or that no aggregate has yet, is looked at in any case.

        Returns:
            The paths whose bytes changed.

        Raises:
            StorageIO, Conflict: nothing was changed.
        """
        return self._store(lambda series, sort, looked: self._brought(series, sort, looked, iteration), _SORTS)

    def rebuild(self) -> list[str]:
        """Rebuild the aggregates from the documents alone, after a look at every file; as ``update``."""
        self._reader.looking.everything()
        return self._store(lambda _, sort, looked: self._made(sort, looked), _SORTS)

    def react(self, occasion: str, facts: Mapping[str, Any]) -> None:
        """Bring up to date: all when an iteration was closed, what a review says when one was stored."""
        self._reader.parts.require_open()
        if occasion == "iteration_closed":
            self.update(facts["iteration"])
        elif occasion == "state_stored" and facts.get("kind") == "meta_review":
            number = facts["iteration"]
            self._store(lambda series, sort, looked: self._brought(series, sort, looked, number), _REVIEWED)

    def behind(self) -> list[int]:
        """The iterations whose documents say something else by now than an aggregate does."""
        looked = _Lookup(self._reader)
        found: set[int] = set()
        for sort in _SORTS:
            series = self._kept(sort)[0] or Series()
            numbers = [number for number in looked.numbers if number > series.until]
            found.update(number for number in numbers if not self._is_current(series, sort, looked, number))
        return sorted(found)

    def agents(self, iterations: Iterable[int]) -> dict[int, dict[str, Any]]:
        """What each agent did in these iterations, as the documents say it now, by ``measures.key_of`` its name."""
        looked = _Lookup(self._reader)
        series = self._kept(_EFFECTIVENESS)[0] or Series()
        wanted = [number for number in iterations if number in looked.statuses]
        looked.prepare(wanted)
        found = {}
        for number in wanted:
            entry = series.entries.get(number, {})
            current = self._is_current(series, _EFFECTIVENESS, looked, number) and "left_out" not in entry
            found[number] = dict(mapping(entry.get("agents"))) if current else self._lived(looked, number)
        return found

    # -- one entry ------------------------------------------------------------------------------------------------
    def _lived(self, looked: _Lookup, number: int) -> dict[str, Any]:
        rows = looked.of(number, metrics.KINDS)
        return metrics.digest(rows, _Loader(self._reader), looked.elsewhere(number))

    def _entry(self, sort: _Sort, looked: _Lookup, number: int) -> Entry:
        loading = _Loader(self._reader)
        elsewhere = looked.elsewhere(number) if sort is _EFFECTIVENESS else {}
        made = sort.entry(looked.of(number, sort.kinds), loading, elsewhere)
        if looked.is_open(number):
            made = {"open": True, **made}
        if loading.sure:
            return {"source": looked.source(number, sort), **made}
        unread = {"unreadable": loading.failed} if loading.failed else {}
        return {"source": "", **unread, **made}  # made again next time: the same document may be readable then

    def _is_current(self, series: Series, sort: _Sort, looked: _Lookup, number: int) -> bool:
        entry = series.entries.get(number, {})
        as_open = entry.get("open") is True
        return as_open == looked.is_open(number) and entry.get("source") == looked.source(number, sort)

    # -- one aggregate --------------------------------------------------------------------------------------------
    def _brought(self, series: Series | None, sort: _Sort, looked: _Lookup, iteration: int | None) -> Series:
        if series is None or not self._holds(series, sort, looked, iteration):
            return self._made(sort, looked)
        recent = [number for number in looked.numbers if number > series.until]
        if iteration is not None:
            recent = [
                number
                for number in recent
                if number == iteration or looked.is_open(number) or "open" in series.entries.get(number, {"open": True})
            ]
        looked.prepare(recent)
        stale = [number for number in recent if not self._is_current(series, sort, looked, number)]
        looked.prepare(stale)
        brought = series.put({number: self._entry(sort, looked, number) for number in stale}, sort.fold)
        return brought or self._made(sort, looked)

    def _holds(self, series: Series, sort: _Sort, looked: _Lookup, iteration: int | None) -> bool:
        """Whether what the series says of iterations it does not look at again can be believed."""
        folded = [number for number in looked.numbers if number <= series.until]
        if any(number not in looked.statuses for number in series.entries) or len(folded) != series.count:
            return False
        if iteration is not None:
            return iteration > series.until
        chain = ""
        for number in folded:
            chain = chained(chain, number, {"source": looked.source(number, sort)})
        return chain == series.source

    def _made(self, sort: _Sort, looked: _Lookup) -> Series:
        entries = {number: self._entry(sort, looked, number) for number in looked.numbers}
        return Series(entries).trimmed(sort.fold)

    # -- on disk --------------------------------------------------------------------------------------------------
    def _kept(self, sort: _Sort) -> tuple[Series | None, str]:
        """The series on disk, None where there is none that can be used, and the digest of its file."""
        try:
            state = self._files.read(aggregate_path(sort.name))
        except FileNotFoundError:
            return None, ""
        except ContentError:
            return None, "?"
        return Series.from_dict(state.values), state.sha256

    def _store(self, make: _Make, sorts: Sequence[_Sort]) -> list[str]:
        return settled(lambda: self._stored(make, sorts), _PATIENCE)

    def _stored(self, make: _Make, sorts: Sequence[_Sort]) -> list[str]:
        looked = _Lookup(self._reader)
        changes = []
        for sort in sorts:
            series, sha256 = self._kept(sort)
            if not looked.numbers and not sha256:  # nothing was ever there to sum up
                continue
            try:
                values = _document(sort, make(series, sort, looked))
            except (KeyError, TypeError, ValueError, AttributeError):  # somebody changed the file by hand
                values = _document(sort, self._made(sort, looked))
            if hashlib.sha256(json_text.document(values).encode()).hexdigest() != sha256:
                expected = None if sha256 == "?" else sha256
                changes.append(DocumentChange(aggregate_path(sort.name), values, expected))
        written = self._files.write(changes, _message(changes), source=_SOURCE) if changes else []
        return [one.path for one in written]


class _Lookup:
    """What is known of the documents of each iteration, asked for once."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self.statuses = {row.number: row.status for row in reader.iterations()}
        self.numbers = sorted(self.statuses)
        self._rows: dict[int, list[StateRow]] = {}
        self._ratings: dict[int, dict[str, float]] = {}

    def is_open(self, number: int) -> bool:
        """Whether more documents are expected in an iteration."""
        return self.statuses[number] != "closed"

    def prepare(self, numbers: Iterable[int]) -> None:
        """Ask for several iterations at once."""
        wanted = [number for number in numbers if number not in self._rows]
        if len(wanted) > _HELD:  # what many iterations hold is asked for bit by bit, and not kept all at once
            return
        if wanted and len(self._rows) >= _HELD:
            self._rows.clear()
        for place in range(0, len(wanted), _BATCH):
            some = wanted[place : place + _BATCH]
            self._rows.update((number, []) for number in some)
            for row in self._reader.rows(StateQuery(kinds=_KINDS, iterations=tuple(some))):
                if row.facts.iteration in self._rows:
                    self._rows[row.facts.iteration].append(row)

    def of(self, number: int, kinds: Sequence[str]) -> list[StateRow]:
        """What is known of an iteration's documents of some kinds, by path."""
        if number not in self._rows:
            place = self.numbers.index(number)
            self.prepare(self.numbers[place : place + _BATCH] if self._rows else [number])
        return sorted((row for row in self._rows[number] if row.facts.kind in kinds), key=lambda row: row.path)

    def elsewhere(self, number: int) -> dict[str, float]:
        """Ratings, by id, of parents that lie in earlier iterations, as the newest of these has them."""
        if number not in self._ratings:
            given = [row.facts for row in self.of(number, ("hypothesis",))]
            here = {facts.name for facts in given}
            parents = sorted({parent for facts in given for parent in facts.parents if parent not in here})
            self._ratings[number] = self._rated(parents, number)
        return self._ratings[number]

    def _rated(self, names: Sequence[str], before: int) -> dict[str, float]:
        newest: dict[str, tuple[int, float]] = {}
        for place in range(0, len(names), _NAMES_AT_ONCE):
            wanted = tuple(names[place : place + _NAMES_AT_ONCE])
            for row in self._reader.rows(StateQuery(kinds=("hypothesis",), names=wanted)):
                facts = row.facts
                if facts.rating is None or facts.iteration is None or facts.iteration >= before:
                    continue
                newest[facts.name] = max(newest.get(facts.name, (-1, 0.0)), (facts.iteration, facts.rating))
        return {name: rating for name, (_, rating) in newest.items()}

    def source(self, number: int, sort: _Sort) -> str:
        """What names the documents that an entry of an iteration is made from."""
        documents = [(row.path, row.sha256) for row in self.of(number, sort.kinds)]
        return inputs_name(documents, self.elsewhere(number) if sort is _EFFECTIVENESS else {})


class _Loader:
    """Loads documents, and counts those that cannot be read."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self.failed = 0
        self.changed = False

    @property
    def sure(self) -> bool:
        """Whether every document was read, as it was when it was looked at."""
        return not self.failed and not self.changed

    def __call__(self, row: StateRow) -> Mapping[str, Any]:
        try:
            values, proof = self._reader.loaded(row)
        except _UNREADABLE:
            self.failed += 1
            return {}
        self.changed = self.changed or proof.sha256 != row.sha256
        return values


def _document(sort: _Sort, series: Series) -> dict[str, Any]:
    made: dict[str, Any] = {"version": VERSION, "total": dict(series.summed(sort.fold))}
    if sort.name == "pattern_history":
        made["trends"] = trends_of_entries(series.entries)
    return made | series.to_dict()


def _message(changes: Sequence[DocumentChange]) -> str:
    names = ", ".join(change.path.rpartition("/")[2].removesuffix(".json") for change in changes)
    return f"Bring aggregates up to date: {names}"


def _listed() -> str:
    return f"there are {', '.join(AGGREGATE_NAMES)}"
