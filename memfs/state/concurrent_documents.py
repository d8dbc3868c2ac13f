"""Store hypotheses and tournament results that several writers change at once.

What is handed over is merged three ways with what others stored meanwhile. A value that is displaced is recorded as a
conflict, which a person can settle.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import count
from random import random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from memfs.admin.merge_spool import MergeSpool, can_be_recorded, key_of
from memfs.errors import Conflict, ContentError, ItemNotFound, MemfsError, QueryInvalid
from memfs.format.field_merge import FieldMerge, equal, merge
from memfs.format.merge_conflicts import stands_in, with_lost
from memfs.format.secrets import refuse_text
from memfs.fs.lock import renewed_in_child
from memfs.model import state_paths
from memfs.model.conflict import KEPT, LOST, DocumentClash
from memfs.model.shape import plain
from memfs.model.state_paths import conflict_path, document_kind, iteration_of
from memfs.model.state_query import StateQuery
from memfs.model.time import format_time, time_in
from memfs.resources import schema_text
from memfs.store.state_files import DocumentChange, State

if TYPE_CHECKING:
    from memfs.state.iterations import Iterations
    from memfs.state.reader import StateReader


_PATIENCE = 30.0
_PAUSE = 0.004
_LONGEST_PAUSE = 0.1

Result = TypeVar("Result")


def settled(attempt: Callable[[], Result], patience: float = _PATIENCE) -> Result:
    """What an attempt gives that was not outdated by others.

    Args:
        attempt: reads what is there again each time, and raises ``Conflict`` where somebody was quicker.
        patience: the seconds for which it is tried again, with growing random pauses in between.

    Raises:
        Conflict: others never stopped changing the document.
    """
    until = time.monotonic() + patience
    tries = 0
    while True:
        try:
            return attempt()
        except Conflict as error:
            if time.monotonic() >= until:
                message = f"others keep changing the document: {error.message}"
                raise Conflict(message, path=error.path, hint="try again") from error
        tries += 1
        time.sleep(random() * min(_PAUSE * tries, _LONGEST_PAUSE))  # noqa: S311  no secret depends on it


HYPOTHESIS = "hypothesis"
RESULT = "tournament_result"
_LOOKED_AT = 8
_PATHS = {HYPOTHESIS: state_paths.hypothesis_path, RESULT: state_paths.tournament_path}


class DocumentResult(NamedTuple):
    """One document as it was stored, or was already where it is not ``new``; in which fields another's value went."""

    iteration: int
    content: State
    new: bool = True
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredDocument:
    """What is there at present: the document of this iteration, else the newest of an earlier one."""

    values: dict[str, Any]
    sha256: str
    here: State | None = None


class SharedDocuments:
    """Stores documents that others change, too. May be used from several threads, and by several processes at once."""

    def __init__(self, reader: StateReader, iterations: Iterations, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._files = reader.files
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
        base: Mapping[str, Any] | None = None,
    ) -> DocumentResult:
        """Join a version with what is there, and store the outcome.

        Args:
            kind: ``hypothesis`` or ``tournament_result``.
            values: plain; a field that is left out stays as it is, one that is None goes.
            base: what ``values`` were made from: both changes to it hold. Without it, each field of ``values`` takes
                the place of the one that is stored.

        Raises:
            Conflict: others never stopped changing it.
            SchemaInvalid, SecretDetected, StorageIO: nothing was changed.
        """
        name = str(values["id"])

        def attempt() -> DocumentResult:
            number = self._iterations.into(iteration)
            path = _PATHS[kind](number, name)
            with self._turn:  # threads of this process outdate nobody's read
                now = self._clock()
                stored = self._stored(kind, name, number, path)
                begun = dict(base) if base is not None else stored.values if stored else {}
                ours = {key: value for key, value in {**begun, **values}.items() if value is not None}
                merged = merge(begun, ours, stored.values, _schema(kind)) if stored else FieldMerge(values=ours)
                return self._write(number, path, stored, merged, now, _untimed(kind, values, begun, stored))

        return settled(attempt)

    def _write(
        self, number: int, path: str, stored: _StoredDocument | None, merged: FieldMerge, now: datetime, unstamped: bool
    ) -> DocumentResult:
        here = stored.here if stored else None
        stamp = {"timestamp": format_time(now)} if unstamped else {}
        values = {**merged.values, **stamp}
        if here is not None and equal({**here.values, **stamp}, values):
            return DocumentResult(number, here, new=False)
        records = _records(number, path, stored, merged, now) if stored else []
        changes = [DocumentChange(path, values, here.sha256 if here else ""), *records]
        if here is not None and state_paths.document_kind(path) == HYPOTHESIS:
            changes.append(self._version(number, values["id"], here))
        written = self._files.write(changes, _sentence(path, merged), alone=bool(records))
        fields = tuple(clash.field for clash in merged.conflicts)
        return DocumentResult(number, written[0], conflicts=fields)

    def _version(self, number: int, name: str, given_way: State) -> DocumentChange:
        """What keeps the displaced version, under its own time."""
        made = time_in(given_way.values.get("timestamp")) or datetime.fromtimestamp(given_way.stamp.mtime_ns / 1e9, UTC)
        path_of = partial(state_paths.version_path, number, name, made)
        return DocumentChange(path_of(self._files.first_free(path_of)), given_way.values, "")

    def _stored(self, kind: str, name: str, number: int, path: str) -> _StoredDocument | None:
        try:
            here = self._files.read(path)
        except FileNotFoundError:
            return self._earlier(kind, name, number)
        return _StoredDocument(values=here.values, sha256=here.sha256, here=here)

    def _earlier(self, kind: str, name: str, number: int) -> _StoredDocument | None:
        for row in self._reader.recent(StateQuery(kinds=(kind,), names=(name,), newest=True, limit=_LOOKED_AT)):
            if row.facts.iteration is not None and row.facts.iteration < number:
                try:
                    values = self._reader.load(row)
                except FileNotFoundError:  # removed by hand since it was noted
                    continue
                return _StoredDocument(values=values, sha256=row.sha256)
        return None


def _untimed(kind: str, values: Mapping[str, Any], begun: Mapping[str, Any], stored: _StoredDocument | None) -> bool:
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


def _records(
    number: int, path: str, stored: _StoredDocument, merged: FieldMerge, now: datetime
) -> list[DocumentChange]:
    by = merged.values.get("agent")
    common = {"lost_sha256": stored.sha256, "timestamp": format_time(now)} | (
        {"by": by} if isinstance(by, str) and by else {}
    )
    return [
        DocumentChange(
            state_paths.conflict_path(number, path, now, turn),
            {"document": path, "field": clash.field, "kept": clash.kept, "lost": clash.lost, **common},
            "",
        )
        for turn, clash in enumerate(merged.conflicts, 1)
    ]


def _sentence(path: str, merged: FieldMerge) -> str:
    kind = state_paths.document_kind(path).replace("_", " ")
    joined = (
        f", over another writer's {', '.join(clash.field for clash in merged.conflicts)}" if merged.conflicts else ""
    )
    return f"Store {kind} {merged.values['id']}{joined}"


@cache
def _schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schema_text(kind))
    return schema


KIND = "conflict"


class Clashes:
    """Finds and settles clashes in one workspace. May be used from several threads."""

    def __init__(self, reader: StateReader) -> None:
        self._files = reader.files
        self._reader = reader

    def list(self) -> builtins.list[DocumentClash]:
        """The clashes that nobody decided about, the newest first.

        One whose field has got another value since, or whose document is gone or archived, waits for nobody.
        """
        found = []
        for row in self._reader.rows(StateQuery(kinds=(KIND,), newest=True)):
            if row.archive:
                continue
            try:
                clash = DocumentClash.of(row.path, self._files.read(row.path).values)
                values = self._files.read(clash.document).values
            except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                continue
            if stands_in(values, clash):
                found.append(clash)
        return found

    def resolve(self, path: str, *, keep: str, reason: str = "", source: str = "") -> DocumentClash:
        """Decide about a clash: the record goes, and the field gets the value that is kept, in one commit.

        Args:
            path: of the record.
            keep: ``kept`` for the value in the document, ``lost`` for the displaced one.
            reason: why, for the commit.

        Raises:
            ItemNotFound: there is no such record.
            QueryInvalid: ``keep`` is neither of the two, or the field has another value by now.
            Conflict: others never stopped changing the document.
            ContentError, StorageIO: nothing was written.
        """
        if keep not in (KEPT, LOST):
            raise QueryInvalid(f"{ascii(keep)[:60]} is neither value", field="keep", hint=f"keep '{KEPT}' or '{LOST}'")
        why = " ".join(reason.split())
        refuse_text(why, "reason")
        return settled(lambda: self._resolve(path, keep, why, source))

    def take_up(self, spool: MergeSpool) -> int:
        """Write down the clashes that merges of git's left behind, as far as there is a place for it; how many were.

        One whose field has got another value since (the merge was given up, or decided by hand) is forgotten.

        Raises:
            StorageIO: it stays where it is.
        """
        kept = {name: one for name, one in spool.kept().items() if can_be_recorded(one["record"]["document"])}
        known = {key_of(one.document, one.field, one.kept, one.lost) for one in self.list()} if kept else set()
        written = 0
        for name, one in kept.items():
            record = one["record"]
            key = key_of(record["document"], record["field"], record.get("kept"), record.get("lost"))
            try:
                written += key not in known and self._record(record, one["given_up"])
            except (ContentError, Conflict):  # it stays, and is listed; or somebody writes it at this very moment
                continue
            spool.drop(name)
        return written

    def _record(self, values: Mapping[str, Any], given_up: Collection[str]) -> bool:
        """Write down a clash; False where its document has another value by now.

        Args:
            values: of the record, as its schema has them.
            given_up: digests of the document by which it is known that the merge was given up.
        """
        clash = DocumentClash.of("", values)
        number, moment = iteration_of(clash.document), clash.timestamp
        try:
            document = self._files.read(clash.document)
        except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
            return False
        given = document.sha256 in given_up or not stands_in(document.values, clash)
        if given or number is None or moment is None:
            return False
        turns = (conflict_path(number, clash.document, moment, turn) for turn in count(1))
        path = next(path for path in turns if not self._files.exists(path))
        message = f"Record that a merge kept one of two values of {clash.field} in {clash.document}"
        self._files.write([DocumentChange(path, values, "")], message, source="merge")
        return True

    def _resolve(self, path: str, keep: str, reason: str, source: str) -> DocumentClash:
        if document_kind(path) != KIND:
            raise ItemNotFound(f"{path!r} is no record of a conflict", hint="'memfs team conflicts' names them")
        try:
            record = self._files.read(path)
            clash = DocumentClash.of(path, record.values)
            document = self._files.read(clash.document)
        except FileNotFoundError:
            raise ItemNotFound(
                f"there is no record {path!r}, or its document is gone", hint="'memfs team conflicts' names them"
            ) from None
        changes = [DocumentChange(path, None, record.sha256)]
        if keep == LOST:
            changes.append(DocumentChange(clash.document, with_lost(plain(document.values), clash), document.sha256))
        value = "the present value" if keep == KEPT else "the other value"
        field = f"{clash.field} of " if clash.field else ""
        message = f"Decide for {value} in {field}{clash.document}"
        self._files.write(changes, f"{message}: {reason}" if reason else message, source=source)
        return clash
