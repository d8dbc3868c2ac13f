"""Preferences: how a person wants things done, recorded and recalled in order.

Only preferences that a person vouched for and that hold now are returned; of two that contradict each other, one.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from heapq import heapify, heappop
from itertools import chain, zip_longest
from math import inf, log
from typing import TYPE_CHECKING, Any, NamedTuple

from memfs.errors import Conflict, ContentError, IdExists
from memfs.fs.lock import renewed_in_child
from memfs.intake.neighbours import Neighbourhood
from memfs.learning.conflicts import covers, record_of
from memfs.learning.file_rows import FileRows
from memfs.model import Candidate, MemoryItem, Origin
from memfs.model.ids import slug
from memfs.model.item import VOUCHED, Trust
from memfs.model.suggestion import Source, Suggestion
from memfs.recall.conflict_notes import OVER, contradicted, disputes_among
from memfs.recall.similarity import normalised
from memfs.recall.tokens import gist
from memfs.search.analyzer import identity, terms
from memfs.search.terms import weights
from memfs.search.trigger_table import RowBase
from memfs.store import Store
from memfs.store.commit_message import of_items
from memfs.store.parts import CONTENT, Fire, Parts
from memfs.usage import Usage

if TYPE_CHECKING:
    from memfs.intake.intake import Intake
    from memfs.learning.inbox import Inbox
    from memfs.model.review import StoreResult


KIND = "preference"
_NOT_HELD = frozenset({"proposed", "done", *OVER})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
FILE = "preferences.sqlite"
_VERSION = 1
_WORTH_CACHING = 100
"""With fewer files it takes no longer to read them than to open a cache."""
_KEEP_AT = 200
_LOOKED_INTO = 5_000
_COMMON = 0.5
_FEW = 8


class PreferenceRow(NamedTuple):
    """What is known of one preference.

    Attributes:
        id, path, blob: the item, its file, and what the file held when this was made of it.
        time: when it was said, for the last time, in seconds since 1970.
        importance, pinned, trust, status: of the item.
        expires: when it stops being true, in seconds since 1970; infinite for never.
        terms: the terms of its text, each once, with spaces between them.
        supersedes: ids of the items it replaces.
        against: ids of the items that it contradicts.
    """

    id: str
    path: str
    blob: str
    time: float
    importance: float
    pinned: bool
    trust: str
    status: str
    expires: float
    terms: str
    supersedes: tuple[str, ...]
    against: tuple[str, ...]

    @property
    def order(self) -> tuple[bool, float, float, str]:
        """Sorts the first one first."""
        return (not self.pinned, -self.importance, -self.time, self.id)

    def candidate(self) -> Candidate:
        """What the store loads it by."""
        moment = datetime.fromtimestamp(self.time, UTC)
        return Candidate(id=self.id, path=self.path, similarity=0.0, type=KIND, timestamp=moment)


@dataclass(frozen=True)
class _Table:
    """The rows that hold, in order; the ids that are in dispute; and until when."""

    held: tuple[PreferenceRow, ...] = ()
    disputed: frozenset[str] = field(default_factory=frozenset)
    until: float = inf

    @cached_property
    def having(self) -> Mapping[str, Sequence[int]]:
        """Which of the rows have a term."""
        found: dict[str, list[int]] = {}
        for place, row in enumerate(self.held):
            for term in row.terms.split():
                found.setdefault(term, []).append(place)
        return found


class PreferenceTable:
    """The table of the preferences of one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        folder = f"{CONTENT}/{parts.kinds.get(KIND).folder}/"
        self._rows = FileRows[PreferenceRow](
            store,
            parts,
            (folder,),
            RowBase(parts.index.folder, f"{_VERSION}/{identity()}", file=FILE, what="the index of preferences"),
            _row,
            pack=list,
            unpack=_rows,
            worth_caching=_WORTH_CACHING,
        )
        self._lock = threading.Lock()
        renewed_in_child(self)
        self._table = _Table()

    def ordered(self, context: str, now: datetime) -> Iterator[PreferenceRow]:
        """Those that hold, each once: what fits the context first, the best first; then by importance and time."""
        table = self._current(now)
        fits = _fitting(table, context)
        best = [(-worth, place) for place, worth in fits.items()]
        heapify(best)  # of thousands only the first few are asked for
        fitting = (heappop(best)[1] for _ in range(len(best)))
        for place in chain(fitting, (place for place in range(len(table.held)) if place not in fits)):
            yield table.held[place]

    def disputed(self, name: str, now: datetime) -> bool:
        """Whether an item contradicts another one, or is contradicted, as the files say."""
        return name in self._current(now).disputed

    def close(self) -> None:
        """Keep what was learned for the next process. May be repeated."""
        with self._lock:
            self._rows.close()

    def _current(self, now: datetime) -> _Table:
        self._rows.follow()
        with self._lock:
            self._rows.update()
            if self._rows.changes() or self._table.until <= now.timestamp():
                self._table = _table(self._rows.rows.values(), now.timestamp())
                self._rows.keep(_KEEP_AT)
            return self._table


def is_wanted(item: MemoryItem, now: datetime) -> bool:
    """Whether a preference may be given, whatever others say of it: a person stands behind it, and it is not over."""
    expired = item.expires is not None and item.expires <= now
    return _is_held(item.trust, item.status) and not expired


def preferences_in_order(items: Iterable[MemoryItem], now: datetime) -> Sequence[PreferenceRow]:
    """Of preferences at hand those that hold, in the order in which they are given where nothing fits better."""
    return _table([_row(item, "") for item in items], now.timestamp()).held


def _is_held(trust: str, status: str) -> bool:
    return trust in VOUCHED and status.strip() not in _NOT_HELD


def _table(rows: Iterable[PreferenceRow], now: float) -> _Table:
    present = [row for row in rows if _is_held(row.trust, row.status) and row.expires > now]
    replaced = {name for row in present for name in row.supersedes}
    holding = [row for row in present if row.id not in replaced]
    against = disputes_among([(row.id, row.against) for row in holding])
    given = sorted(_undisputed(holding, against), key=lambda row: row.order)
    until = min((row.expires for row in present), default=inf)
    return _Table(tuple(given), frozenset(against), until)


def _undisputed(rows: Iterable[PreferenceRow], against: Mapping[str, Sequence[str]]) -> Iterator[PreferenceRow]:
    """The rows without those that a newer one contradicts which is given itself."""
    given: set[str] = set()
    for row in sorted(rows, key=lambda one: (-one.time, one.id)) if against else rows:
        if given.isdisjoint(against.get(row.id, ())):
            given.add(row.id)
            yield row


def _row(item: MemoryItem, blob: str) -> PreferenceRow:
    return PreferenceRow(
        id=item.id,
        path=item.path,
        blob=blob,
        time=min((item.timestamp or item.created or _LONG_AGO).timestamp(), _LAST),
        importance=float(item.importance),
        pinned=item.pinned,
        trust=item.trust,
        status=item.status,
        expires=inf if item.expires is None else item.expires.timestamp(),
        terms=" ".join(dict.fromkeys(terms(f"{item.title}\n{gist(item)}\n{' '.join(item.tags)}"[:_LOOKED_INTO]))),
        supersedes=tuple(item.supersedes),
        against=contradicted(item),
    )


_SORTS = [str, str, str, float, float, bool, str, str, float, str, tuple, tuple]


def _rows(kept: list[Any]) -> list[PreferenceRow]:
    """The rows again.

    Raises:
        ValueError: one of them is damaged.
    """
    found = []
    for values in kept:
        *facts, supersedes, against = values
        row = [*facts, tuple(supersedes), tuple(against)]
        if list(map(type, row)) != _SORTS:
            raise ValueError("a row is damaged")
        found.append(PreferenceRow._make(row))
    return found


def _fitting(table: _Table, context: str) -> dict[int, float]:
    """How well preferences fit a context, by place: the worth of the terms they share, the rarer the more.

    A term that half of them have tells nothing, unless there are few.
    """
    found: dict[int, float] = {}
    count = len(table.held)
    for term, worth in weights(context[:_LOOKED_INTO]).items() if context.strip() else ():
        places = table.having.get(term, ())
        if places and (count < _FEW or len(places) < _COMMON * count):
            share = worth * log(1 + count / len(places))
            for place in places:
                found[place] = found.get(place, 0.0) + share
    return found


_SOURCE = "correction"
_SAID_AGAIN = timedelta(days=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One thing a person wants; ``str`` of it is its text.

    Attributes:
        text: what is wanted, in the person's words.
        id, trust: of its item.
        origin: who said it.
        importance: what it counts for.
        timestamp: when it was said, for the last time.
    """

    text: str
    id: str
    trust: str
    origin: Origin
    importance: float
    timestamp: datetime

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, item: MemoryItem) -> Preference:
        """The preference that an item holds."""
        return cls(
            text=gist(item).strip(),
            id=item.id,
            trust=item.trust,
            origin=item.origin,
            importance=item.importance,
            timestamp=_moment(item),
        )


class Preferences:
    """The preferences of one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, usage: Usage, fire: Fire) -> None:
        """
        Args:
            store, parts: where they are.
            usage: where saying something again counts as a use.
            fire: raises an occasion, as ``Behaviours.fire`` does.
        """
        self._store = store
        self._clock: Callable[[], datetime] = parts.clock
        self._parts, self._usage, self._fire = parts, usage, fire
        self._neighbourhood = Neighbourhood(store, parts.kinds)
        self._table = PreferenceTable(store, parts)

    @cached_property
    def _intake(self) -> Intake:
        from memfs.intake.intake import Intake

        made = Intake(self._store, self._parts, self._usage, None, fire=self._fire)
        found: Intake = self.__dict__.setdefault("_intake", made)  # threads that make it at once share one
        return found

    # -- recording ------------------------------------------------------------------------------------------------
    def record(
        self,
        text: str,
        speaker: str = "",
        session: str = "",
        *,
        agent: str = "",
        task: str = "",
        context: Mapping[str, Any] | None = None,
        whole: bool = True,
        source: str = _SOURCE,
        allow_secret: str = "",
    ) -> list[MemoryItem]:
        """Keep what a person's message corrects or prefers, as items of kind ``preference`` and trust ``human``.

        What was said before in the same words is united with it, and counts as said now where that was long ago or
        somebody has said otherwise since; what it contradicts is linked.

        Args:
            text: the message.
            speaker, session, agent, task: who said it, in which session, to which agent, at which task.
            context: circumstances in which it holds, such as ``{"project": "shop"}``.
            whole: whether a message without a recognised correction is one as a whole.
            source: which door it came through, for the commit's trailers.
            allow_secret: why what looks like a secret may stay, as for ``Store.put``.

        Returns:
            The items as they are stored, one a correction.

        Raises:
            SchemaInvalid: the message is empty.
            ContentError: one cannot be kept, as when it holds what looks like a secret (``SecretDetected``); the others
                are. The first such error is raised.
            StorageIO: as ``Store.put``. What was kept stays, and giving the message again keeps nothing twice.
        """
        origin = Origin(speaker=speaker, role="user", agent=agent, session=session, task=task)
        stored: list[MemoryItem] = []
        refused: ContentError | None = None
        for draft in self._drafts(text, origin, context or {}, whole):
            try:
                stored.append(self._recorded(draft, source, allow_secret))
            except ContentError as error:
                refused = refused or error
        if refused is not None:
            raise refused
        return stored

    def suggest(
        self, text: str, inbox: Inbox, *, session: str = "", agent: str = "", context: Mapping[str, Any] | None = None
    ) -> list[Suggestion]:
        """Suggest what a person's message corrects or prefers; what is a preference already is not suggested.

        Returns:
            The suggestions that are new.

        Raises:
            ContentError: one cannot be a memory, as when it holds what looks like a secret; none is suggested.
            CorruptRecord, FormatUnsupported, LockTimeout, StorageIO: none is suggested.
        """
        now, origin = self._clock(), Origin(role="user", agent=agent, session=session)
        drafts = self._drafts(text, origin, context or {}, whole=True)
        fresh = [draft for draft in drafts if self._neighbourhood.of(draft, now).repeated is None]
        return inbox.add(
            Suggestion(
                item=draft.replace(id=_stable_id(draft)),
                source=Source.PREFERENCE,
                made=now,
                reason=f"said in session {session}" if session else "",
            )
            for draft in fresh
        )

    def _drafts(self, text: str, origin: Origin, context: Mapping[str, Any], whole: bool) -> list[MemoryItem]:
        """What a message corrects or prefers, as items that are not stored; ``whole``: all of it where no part does."""
        from memfs.learning.corrections import corrections

        said = corrections(text) or ((text.strip(),) if whole else ())
        now, human = self._clock(), Trust.HUMAN.value
        return [MemoryItem(one, KIND, origin=origin, trust=human, timestamp=now, context=dict(context)) for one in said]

    def _recorded(self, draft: MemoryItem, source: str, allow_secret: str) -> MemoryItem:
        result = self._taken_in(draft, source, allow_secret)
        found = self._store.get(result.memory_id or "")
        if found is None:  # removed by somebody at this very moment: it was stored, and is in git
            return draft.replace(id=result.memory_id or "")
        return self._renewed(found, draft, source) if result.merged_into else found

    def _taken_in(self, draft: MemoryItem, source: str, allow_secret: str) -> StoreResult:
        """Store a draft under an id that follows from what it says, so that two processes that hear the same agree."""
        store = partial(self._intake.store, review=False, source=source, allow_secret=allow_secret)
        if self._neighbourhood.of(draft, self._clock()).repeated is None:
            try:
                return store(draft.replace(id=_stable_id(draft)))
            except IdExists:  # somebody was quicker, or has changed what was said so before
                self._store.refresh()
        return store(draft)

    def _renewed(self, item: MemoryItem, draft: MemoryItem, source: str) -> MemoryItem:
        """What was said before as said now: it counts as newer than what was said against it in between."""
        said, now = _moment(item), _moment(draft)
        disputed = self._table.disputed(item.id, now)
        if now <= said or (now - said < _SAID_AGAIN and not disputed):
            return item
        try:
            message = of_items("Repeat", [item])
            return self._store.put(item.replace(timestamp=now), expected=item.sha256, message=message, source=source)
        except Conflict:  # somebody changes it right now; what was said is stored
            return item

    # -- bringing back --------------------------------------------------------------------------------------------
    def get_relevant(
        self, context: str = "", limit: int = 10, *, beside: Iterable[MemoryItem] = ()
    ) -> list[Preference]:
        """The preferences that hold: those that fit the context first, then by importance, the newest first.

        Given is only what a person said or reviewed, and nothing twice. Of two that contradict one another, and of
        which nobody decided, the newer is given. Each is read from its file.

        Args:
            context: what the agent is about to do; "" for none.
            limit: so many at most.
            beside: preferences that hold elsewhere, in their order: they are given in turn with these.
        """
        given: list[MemoryItem] = []
        now = self._clock()
        rows = self._table.ordered(context, now) if limit > 0 else ()
        own = (item for row in rows if (item := self._read(row, now)) is not None)
        for item in _in_turn(own, beside) if limit > 0 else ():
            given = self._joined(given, item)
            if len(given) == limit:
                break
        return [Preference.of(item) for item in given]

    def _joined(self, given: list[MemoryItem], item: MemoryItem) -> list[MemoryItem]:
        """What is given with one more, unless it repeats one, or a newer one speaks against it.

        Links tell of contradictions that were found when something was recorded; what people write into files is
        compared here.
        """
        found = self._neighbourhood.among(item, given)
        if found.repeated is not None or found.near:
            return given
        against = [other for other, _ in found.contradicts if not covers(record_of(item, other), item, other)]
        if any(_moment(other) >= _moment(item) for other in against):
            return given
        return [*(one for one in given if one not in against), item]

    def _read(self, row: PreferenceRow, now: datetime) -> MemoryItem | None:
        """The item as its file has it now; None where it no longer says what was chosen."""
        loaded = self._store.load(row.candidate())
        return loaded.item if loaded is not None and is_wanted(loaded.item, now) else None

    def count(self) -> int:
        """How many preferences hold."""
        return sum(1 for _ in self._table.ordered("", self._clock()))

    def close(self) -> None:
        """Keep what was learned for the next process. May be repeated."""
        self._table.close()


def _in_turn(one: Iterable[MemoryItem], other: Iterable[MemoryItem]) -> Iterator[MemoryItem]:
    return (item for pair in zip_longest(one, other) for item in pair if item is not None)


def _moment(item: MemoryItem) -> datetime:
    return item.timestamp or item.created or _EARLIEST


def _stable_id(draft: MemoryItem) -> str:
    basis = "\0".join((normalised(draft.content), draft.origin.speaker, str(draft.context.get("project", ""))))
    digest = hashlib.sha256(basis.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug(draft.content) or KIND}-{digest}"
