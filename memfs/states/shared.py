"""Shared documents: hypotheses and tournament results, which several writers change at once (issue 5, point 8).

Owns the three-way merge of what is handed over with what others stored meanwhile, and the records of conflicts. Which
fields join how, the schemas say; what a caller knew, ``known`` remembers.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from memfs.files.forked import renewed_in_child
from memfs.files.merge.values import Merged, equal, merge
from memfs.model import statepaths
from memfs.model.statequery import Question
from memfs.model.time import format_time, time_in
from memfs.resources import schema_text
from memfs.states.contention import settled
from memfs.states.glance import Glance
from memfs.states.known import Known
from memfs.store.statefiles import Change, State, Written

if TYPE_CHECKING:
    from memfs.states.iterations import Iterations
    from memfs.states.reading import StateReading
    from memfs.store.statefiles import StateFiles

HYPOTHESIS = "hypothesis"
RESULT = "tournament_result"
_LOOKED_AT = 8
_PATHS = {HYPOTHESIS: statepaths.hypothesis_path, RESULT: statepaths.tournament_path}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One document as it was stored: ``written`` is None where it was so already (``state``)."""

    iteration: int
    path: str
    state: State | None = None
    written: Written | None = None
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What is there at present: the document of this iteration, else the newest of an earlier one."""

    values: dict[str, Any]
    sha256: str
    changed_ns: int
    here: State | None = None


class SharedDocuments:
    """Stores documents that others change, too. May be used from several threads, and by several processes at once."""

    def __init__(
        self, files: StateFiles, reading: StateReading, iterations: Iterations, clock: Callable[[], datetime]
    ) -> None:
        self._files = files
        self._reading = reading
        self._glance = Glance(reading)
        self._iterations = iterations
        self._clock = clock
        self._turn = threading.Lock()
        renewed_in_child(self)

    def store(
        self,
        kind: str,
        values: Mapping[str, Any],
        *,
        iteration: int | None,
        known: Known,
        base: Mapping[str, Any] | None = None,
    ) -> Shared:
        """Join a version with what is there, and store the outcome.

        Args:
            kind: ``hypothesis`` or ``tournament_result``.
            values: plain; a field that is left out stays as it is, one that is None goes.
            base: what ``values`` were made from; by default what the caller last saw.

        Raises:
            Conflict: others never stopped changing it.
            SchemaInvalid, SecretDetected, StorageIO: nothing was changed.
        """
        name = str(values["id"])

        def attempt() -> Shared:
            number = self._iterations.into(iteration)
            path = _PATHS[kind](number, name)
            with self._turn:  # threads of this process outdate nobody's read
                now = self._clock()
                stored = self._stored(kind, name, number, path)
                begun = self._begun(kind, name, known, base, stored)
                ours = {key: value for key, value in {**begun, **values}.items() if value is not None}
                merged = merge(begun, ours, stored.values, _schema(kind)) if stored else Merged(values=ours)
                done = self._write(number, path, stored, merged, now, _untimed(kind, values, begun, stored))
            known.saw(kind, name, ours)
            return done

        return settled(attempt)

    def _write(
        self, number: int, path: str, stored: _Stored | None, merged: Merged, now: datetime, unstamped: bool
    ) -> Shared:
        here = stored.here if stored else None
        stamp = {"timestamp": format_time(now)} if unstamped else {}
        values = {**merged.values, **stamp}
        if here is not None and equal({**here.values, **stamp}, values):
            return Shared(iteration=number, path=path, state=here)
        records = _records(number, path, stored, merged, now) if stored else []
        changes = [Change(path, values, here.sha256 if here else ""), *records]
        if here is not None and statepaths.document_kind(path) == HYPOTHESIS:
            changes.append(self._version(number, values["id"], here))
        written = self._files.write(changes, _sentence(path, merged), alone=bool(records))
        fields = tuple(clash.field for clash in merged.conflicts)
        return Shared(iteration=number, path=path, written=written[0], conflicts=fields)

    def _version(self, number: int, name: str, given_way: State) -> Change:
        """What keeps the version that gives way, under its own time (S10)."""
        made = time_in(given_way.values.get("timestamp")) or datetime.fromtimestamp(given_way.stamp.mtime_ns / 1e9, UTC)
        path_of = partial(statepaths.version_path, number, name, made)
        return Change(path_of(self._files.first_free(path_of)), given_way.values, "")

    def _begun(
        self, kind: str, name: str, known: Known, base: Mapping[str, Any] | None, stored: _Stored | None
    ) -> dict[str, Any]:
        """What the caller's version was made from.

        Who stored and saw nothing since the handle was opened may yet know what was there before: an agent that was
        started again hands over the totals it goes by.
        """
        if base is not None:
            return dict(base)
        last = known.last(kind, name)
        if last is None and stored is not None:
            numbers = known.numbers(kind, name)
            if numbers is not None or stored.changed_ns < known.since:
                return {**stored.values, **(numbers or {})}
        return last or {}

    def _stored(self, kind: str, name: str, number: int, path: str) -> _Stored | None:
        try:
            here = self._files.read(path)
        except FileNotFoundError:
            return self._earlier(kind, name, number)
        return _Stored(values=here.values, sha256=here.sha256, changed_ns=here.stamp.mtime_ns, here=here)

    def _earlier(self, kind: str, name: str, number: int) -> _Stored | None:
        for row in self._glance.rows(Question(kinds=(kind,), names=(name,), newest=True, limit=_LOOKED_AT)):
            if row.facts.iteration is not None and row.facts.iteration < number:
                try:
                    values = self._reading.load(row)
                except FileNotFoundError:  # removed by hand since it was noted
                    continue
                changed = row.stamp.mtime_ns if row.stamp else 0
                return _Stored(values=values, sha256=row.sha256, changed_ns=changed)
        return None


def _untimed(kind: str, values: Mapping[str, Any], begun: Mapping[str, Any], stored: _Stored | None) -> bool:
    """Whether a version has no time of its own.

    That of a hypothesis says when this version was made: one that was handed back with another version's has none.
    """
    given = values.get("timestamp")
    if given is None or kind != HYPOTHESIS:
        return given is None
    others = (begun.get("timestamp"), stored.values.get("timestamp") if stored else None)
    moment = time_in(given)
    return moment is not None and any(time_in(one) == moment for one in others)


def name_of(values: Mapping[str, Any]) -> str:
    """A name for a document that has none: the same for the same content, so that storing it again is no second one."""
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _records(number: int, path: str, stored: _Stored, merged: Merged, now: datetime) -> list[Change]:
    by = merged.values.get("agent")
    common = {"lost_sha256": stored.sha256, "timestamp": format_time(now)} | (
        {"by": by} if isinstance(by, str) and by else {}
    )
    return [
        Change(
            statepaths.conflict_path(number, path, now, turn),
            {"document": path, "field": clash.field, "kept": clash.kept, "lost": clash.lost, **common},
            "",
        )
        for turn, clash in enumerate(merged.conflicts, 1)
    ]


def _sentence(path: str, merged: Merged) -> str:
    kind = statepaths.document_kind(path).replace("_", " ")
    joined = (
        f", over another writer's {', '.join(clash.field for clash in merged.conflicts)}" if merged.conflicts else ""
    )
    return f"Store {kind} {merged.values['id']}{joined}"


@cache
def _schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schema_text(kind))
    return schema
