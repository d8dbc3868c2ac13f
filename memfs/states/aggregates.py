"""Aggregates: what all iterations come to, in three files that follow from the documents alone (seed 001; S12).

Owns ``aggregates/*.json``: which documents each is made from, and when an entry is out of date. Bringing one up to
date gives the bytes that making it anew gives. What entries say is the business of ``digest``, ``patterns`` and
``progress``.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, CorruptRecord, ItemNotFound, MemfsError
from memfs.files import jsontext
from memfs.files.forked import renewed_in_child
from memfs.model.kinds import nearest
from memfs.model.statepaths import AGGREGATE_NAMES, aggregate_path
from memfs.model.statequery import Question, Row
from memfs.states import digest, progress
from memfs.states.contention import settled
from memfs.states.inputs import Inputs, inputs_name
from memfs.states.measures import mapping
from memfs.states.patterns import patterns_of, trends_of_entries
from memfs.states.series import VERSION, Entry, Fold, Series, chained
from memfs.states.sums import fitting, fold_agents, fold_patterns, fold_progress
from memfs.store.statefiles import Change

if TYPE_CHECKING:
    from memfs.states.reading import StateReading
    from memfs.store.statefiles import StateFiles

_SOURCE = "aggregates"
_PATIENCE = 2.0
_AT_ONCE = 50
_HELD = 200
_NAMES_AT_ONCE = 500
_LIVE = 64
_QUICK_BYTES = 8 << 20
_log = logging.getLogger("memfs")
_UNREADABLE = (ContentError, FileNotFoundError, CorruptRecord)


@dataclass(frozen=True, slots=True)
class _Sort:
    """One of the aggregates: from which documents it is made, its entry for an iteration, and its sum."""

    name: str
    kinds: tuple[str, ...]
    fold: Fold
    entry: Callable[[Sequence[Row], digest.Load, Mapping[str, float]], dict[str, Any]]


def _agents(rows: Sequence[Row], load: digest.Load, elsewhere: Mapping[str, float]) -> dict[str, Any]:
    return fitting(digest.digest(rows, load, elsewhere))


def _patterns(rows: Sequence[Row], load: digest.Load, _: Mapping[str, float]) -> dict[str, Any]:
    if not rows:
        return {}
    named = [one for row in rows for one in patterns_of(load(row))]
    return {"reviewed": True, "patterns": {one.key: {"name": one.name, "count": one.count} for one in named}}


def _progress(rows: Sequence[Row], load: digest.Load, _: Mapping[str, float]) -> dict[str, Any]:
    return progress.progress(rows, load)


_Make = Callable[[Series | None, _Sort, "_Looked"], Series]
"""Makes a series out of the one on disk, if that can be used, and what is known of the documents."""

_EFFECTIVENESS = _Sort("effectiveness_metrics", digest.KINDS, fold_agents, _agents)
_SORTS = (
    _EFFECTIVENESS,
    _Sort("pattern_history", ("meta_review",), fold_patterns, _patterns),
    _Sort("research_progress", progress.KINDS, fold_progress, _progress),
)
_REVIEWED = tuple(sort for sort in _SORTS if "meta_review" in sort.kinds)
_KINDS = tuple(sorted({kind for sort in _SORTS for kind in sort.kinds}))


class Aggregates:
    """The aggregates of one workspace. May be used from several threads."""

    def __init__(self, files: StateFiles, reading: StateReading) -> None:
        self._files = files
        self._reading = reading
        self._working: list[threading.Thread] = []
        self._live: dict[tuple[int, str], dict[str, Any]] = {}
        self._guard = threading.Lock()
        renewed_in_child(self)

    def read(self, name: str) -> dict[str, Any]:
        """One aggregate as it stands on disk: as of the last closing, review or rebuild; ``behind`` says how far back.

        Raises:
            ItemNotFound: there is no aggregate of that name, or it was never made.
            ContentError: somebody changed the file into something else.
        """
        self._reading.parts.require_open()
        if name not in AGGREGATE_NAMES:
            raise ItemNotFound(f"there is no aggregate {name!r}", hint=nearest(name, AGGREGATE_NAMES) or _listed())
        try:
            return self._files.read(aggregate_path(name)).values
        except FileNotFoundError:
            hint = "run 'memfs aggregates --rebuild'"
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
        """Make the aggregates anew from the documents alone, after a look at every file; as ``update``."""
        self._reading.looking.everything()
        return self._store(lambda _, sort, looked: self._made(sort, looked), _SORTS)

    def react(self, occasion: str, facts: Mapping[str, Any]) -> None:
        """Bring up to date: all when an iteration was closed, what a review says when one was stored."""
        self._reading.parts.require_open()
        if occasion == "iteration_closed":
            self._update_soon(facts["iteration"])
        elif occasion == "state_stored" and facts.get("kind") == "meta_review":
            number = facts["iteration"]
            self._store(lambda series, sort, looked: self._brought(series, sort, looked, number), _REVIEWED)

    def _update_soon(self, number: int) -> None:
        """Bring up to date now, or where that means reading a lot, behind the back of who closed the iteration."""
        rows = self._reading.rows(Question(kinds=_EFFECTIVENESS.kinds, iterations=(number,)))
        if sum(row.bytes for row in rows) <= _QUICK_BYTES:
            self.update(number)
            return
        work = threading.Thread(target=self._update_behind, args=(number,), name="memfs aggregates", daemon=True)
        with self._guard:
            self._working = [*(one for one in self._working if one.is_alive()), work]
        work.start()

    def _update_behind(self, number: int) -> None:
        try:
            self.update(number)
        except (MemfsError, OSError) as error:  # the next update takes it up
            _log.warning("the aggregates could not be brought up to date: %s", error)

    def close(self) -> None:
        """Wait for what is being brought up to date."""
        with self._guard:
            working, self._working = self._working, []
        for one in working:
            one.join()

    def behind(self) -> list[int]:
        """The iterations whose documents say something else by now than an aggregate does."""
        looked = _Looked(self._reading)
        found: set[int] = set()
        for sort in _SORTS:
            series = self._kept(sort)[0] or Series()
            numbers = [number for number in looked.numbers if number > series.until]
            found.update(number for number in numbers if not self._is_current(series, sort, looked, number))
        return sorted(found)

    def agents(self, iterations: Iterable[int]) -> dict[int, dict[str, Any]]:
        """What each agent did in these iterations, as the documents say it now, by ``measures.key_of`` its name."""
        looked = _Looked(self._reading)
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
    def _lived(self, looked: _Looked, number: int) -> dict[str, Any]:
        key = (number, looked.source(number, _EFFECTIVENESS))
        with self._guard:
            known = self._live.get(key)
        if known is None:
            loading = _Loading(self._reading)
            rows = looked.of(number, digest.KINDS)
            known = digest.digest(rows, loading, looked.elsewhere(number))
            if loading.sure:
                with self._guard:
                    self._live[key] = known
                    while len(self._live) > _LIVE:
                        del self._live[next(iter(self._live))]
        return known

    def _entry(self, sort: _Sort, looked: _Looked, number: int) -> Entry:
        loading = _Loading(self._reading)
        elsewhere = looked.elsewhere(number) if sort is _EFFECTIVENESS else {}
        made = sort.entry(looked.of(number, sort.kinds), loading, elsewhere)
        if looked.is_open(number):
            made = {"open": True, **made}
        if loading.sure:
            return {"source": looked.source(number, sort), **made}
        unread = {"unreadable": loading.failed} if loading.failed else {}
        return {"source": "", **unread, **made}  # made again next time: the same document may be readable then

    def _is_current(self, series: Series, sort: _Sort, looked: _Looked, number: int) -> bool:
        entry = series.entries.get(number, {})
        as_open = entry.get("open") is True
        return as_open == looked.is_open(number) and entry.get("source") == looked.source(number, sort)

    # -- one aggregate --------------------------------------------------------------------------------------------
    def _brought(self, series: Series | None, sort: _Sort, looked: _Looked, iteration: int | None) -> Series:
        if series is None or not self._holds(series, sort, looked, iteration):
            return self._made(sort, looked)
        recent = [number for number in looked.numbers if number > series.until]
        if iteration is not None:
            recent = [
                number
                for number in recent
                if number == iteration or looked.is_open(number) or "open" in series.entries.get(number, {"open": True})
            ]
        if len(recent) <= _AT_ONCE:  # of many, only those that are out of date are looked at
            looked.prepare(recent)
        stale = [number for number in recent if not self._is_current(series, sort, looked, number)]
        looked.prepare(stale)
        brought = series.put({number: self._entry(sort, looked, number) for number in stale}, sort.fold)
        return brought or self._made(sort, looked)

    def _holds(self, series: Series, sort: _Sort, looked: _Looked, iteration: int | None) -> bool:
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

    def _made(self, sort: _Sort, looked: _Looked) -> Series:
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
        looked = _Looked(self._reading)
        changes = []
        for sort in sorts:
            series, sha256 = self._kept(sort)
            if not looked.numbers and not sha256:  # nothing was ever there to sum up
                continue
            try:
                values = _document(sort, make(series, sort, looked))
            except (KeyError, TypeError, ValueError, AttributeError):  # somebody changed the file by hand
                values = _document(sort, self._made(sort, looked))
            if hashlib.sha256(jsontext.document(values).encode()).hexdigest() != sha256:
                expected = None if sha256 == "?" else sha256
                changes.append(Change(aggregate_path(sort.name), values, expected))
        written = self._files.write(changes, _message(changes), source=_SOURCE) if changes else []
        return [one.path for one in written]


class _Looked:
    """What is known of the documents of each iteration, asked for once."""

    def __init__(self, reading: StateReading) -> None:
        self._reading = reading
        self.statuses = {row.number: row.status for row in reading.iterations()}
        self.numbers = sorted(self.statuses)
        self._rows: dict[int, list[Row]] = {}
        self._ratings: dict[int, dict[str, float]] = {}
        self._inputs = Inputs(reading.index, self.numbers)

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
        for place in range(0, len(wanted), _AT_ONCE):
            some = wanted[place : place + _AT_ONCE]
            self._rows.update((number, []) for number in some)
            for row in self._reading.rows(Question(kinds=_KINDS, iterations=tuple(some))):
                if row.facts.iteration in self._rows:
                    self._rows[row.facts.iteration].append(row)

    def of(self, number: int, kinds: Sequence[str]) -> list[Row]:
        """What is known of an iteration's documents of some kinds, by path."""
        if number not in self._rows:
            place = self.numbers.index(number)
            self.prepare(self.numbers[place : place + _AT_ONCE] if self._rows else [number])
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
            for row in self._reading.rows(Question(kinds=("hypothesis",), names=wanted)):
                facts = row.facts
                if facts.rating is None or facts.iteration is None or facts.iteration >= before:
                    continue
                newest[facts.name] = max(newest.get(facts.name, (-1, 0.0)), (facts.iteration, facts.rating))
        return {name: rating for name, (_, rating) in newest.items()}

    def source(self, number: int, sort: _Sort) -> str:
        """What names the documents that an entry of an iteration is made from: those that were looked at, if any."""
        rated = sort is _EFFECTIVENESS
        if number not in self._rows:
            return self._inputs.of(number, sort.kinds, rated)
        documents = [(row.path, row.sha256) for row in self.of(number, sort.kinds)]
        return inputs_name(documents, self.elsewhere(number) if rated else {})


class _Loading:
    """Loads documents, and counts those that cannot be read."""

    def __init__(self, reading: StateReading) -> None:
        self._reading = reading
        self.failed = 0
        self.changed = False

    @property
    def sure(self) -> bool:
        """Whether every document was read, as it was when it was looked at."""
        return not self.failed and not self.changed

    def __call__(self, row: Row) -> Mapping[str, Any]:
        try:
            values, proof = self._reading.loaded(row)
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


def _message(changes: Sequence[Change]) -> str:
    names = ", ".join(change.path.rpartition("/")[2].removesuffix(".json") for change in changes)
    return f"Bring aggregates up to date: {names}"


def _listed() -> str:
    return f"there are {', '.join(AGGREGATE_NAMES)}"
