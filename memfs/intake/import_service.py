"""Imports memories that another store kept, each of them once.

Each is stored, updated, skipped because it is there already or repeats another, left alone because somebody edited it
here, or refused. Its id follows from its key in the source, so that importing again, or after a kill, does nothing
twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from memfs.dataclass import dataclass, field
from memfs.errors import Conflict, ContentError, IdExists
from memfs.format.plain import canonical
from memfs.format.secrets import ALLOWED
from memfs.intake.contradictions import Neighbours, NeighbourSearch
from memfs.model import MemoryItem
from memfs.model.ids import slug
from memfs.model.item import VOUCHED, gist
from memfs.model.kinds import CONVENTION, RETIRED
from memfs.recall.similarity import normalised
from memfs.startup import Any
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.plan import Batch
from memfs.store.store import retry_on_conflict

FROM = "imported_from"
"""The key below ``metadata`` that says where a memory comes from."""
SOURCE = "import"
MOST = 10_000
"""The most arrivals that are taken in at once: they are one batch, and one commit."""
_TRIES = 3
_SUFFIX = 8
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One memory as its source has it.

    Attributes:
        key: what names it in its source, the same at every import.
        item: what is to be stored, without an id; ``name`` is what its id begins with.
        where: file and line, for people.
        facts: what else is to be known of where it comes from: file, line, id, times.
        id: the id that it keeps; "" for one that follows from its key.
    """

    key: str
    item: MemoryItem
    name: str = ""
    where: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


class Became(StrEnum):
    """What became of an arrival."""

    STORED = "stored"
    UPDATED = "updated"
    SAME = "same"
    REPEATED = "repeated"
    KEPT = "kept"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What became of one arrival.

    Attributes:
        arrival: as its source has it.
        became: what it became.
        id: the id that holds it, "" where none does.
        reason: why, where there is a reason.
        near: ids of items that say nearly the same.
        contradicts: ids of items that say otherwise.
    """

    arrival: Arrival
    became: Became
    id: str = ""
    reason: str = ""
    near: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


class ImportService:
    """Takes in what other stores kept."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._clock = parts.clock
        self._neighbourhood = NeighbourSearch(store, parts.kinds)

    def take_in(
        self,
        source: str,
        arrivals: Sequence[Arrival],
        *,
        message: str = "",
        replace: bool = False,
        allow_secret: str = "",
        dry_run: bool = False,
    ) -> list[ImportResult]:
        """Store what is new or has changed in its source, as one batch: all of it or nothing.

        An arrival that is refused, such as one with a secret, is left out of the batch and named.

        Args:
            source: the name of the store they come from, such as ``claude-code``.
            arrivals: what it holds.
            message: for the commit.
            replace: what was edited here is replaced, too, whether or not it has changed there; history keeps the edit.
            allow_secret: why what looks like a secret may stay, as for ``Store.put``.
            dry_run: report what would become of each, and store nothing.

        Returns:
            What became of each, in their order.

        Raises:
            ContentError: there are more than ``MOST``.
            Conflict, StorageIO: as ``Store.batch``; nothing was stored.
        """
        if len(arrivals) > MOST:
            raise ContentError(f"{len(arrivals):,} memories at once, limit {MOST:,}", hint="import them in parts")
        self._store.refresh()
        absent, now = [one for one in arrivals if not self._store.locate(id_of(source, one))], self._clock()
        neighbours = {one.key: self._neighbourhood.of(one.item, now) for one in absent}
        taking = _ImportBatch(self._store, source, replace, allow_secret, neighbours)
        sentence = message or f"Import from {source}"

        def taken() -> list[ImportResult]:
            self._store.refresh()
            return taking.run(arrivals, sentence, dry_run)

        # somebody may write one of them at this very moment
        return retry_on_conflict(taken, tries=_TRIES, on=(Conflict, IdExists))


class _ImportBatch:
    """One import: what is known of each arrival while they are decided on."""

    def __init__(
        self, store: Store, source: str, replace: bool, allow_secret: str, neighbours: Mapping[str, Neighbours]
    ) -> None:
        self._store, self._source = store, source
        self._replace, self._allow_secret, self._neighbours = replace, allow_secret, neighbours

    def run(self, arrivals: Sequence[Arrival], message: str, dry_run: bool) -> list[ImportResult]:
        """Decide on all and store them."""
        twins = _twins(arrivals, self._source, self._neighbours)
        fates: list[ImportResult] = []
        seen: set[str] = set()
        with self._store.batch(message, source=SOURCE) as batch:
            for one in arrivals:
                twin, name = twins.get(one.key, ""), id_of(self._source, one)
                is_double = one.key in seen
                seen.add(one.key)
                if is_double or twin:
                    reason = "it is there twice" if is_double else f"{twin} says the same"
                    fates.append(ImportResult(arrival=one, became=Became.REPEATED, id=twin or name, reason=reason))
                    continue
                try:
                    there = self._store.get(name) if self._store.locate(name) else None
                    fates.append(self._new(one, name, batch) if there is None else self._again(one, there, batch))
                except (IdExists, Conflict):
                    raise
                except ContentError as error:
                    reason = "; ".join(filter(None, (error.sentence, error.hint)))
                    fates.append(ImportResult(arrival=one, became=Became.REFUSED, reason=reason))
            if dry_run:
                batch.plans.clear()
        return fates

    def _new(self, one: Arrival, name: str, batch: Batch) -> ImportResult:
        found = self._neighbours.get(one.key, Neighbours())
        item = one.item.replace(id=name, links=found.linked(()), metadata={**_metadata(one), FROM: self._facts(one)})
        batch.put(item, "", allow_secret=self._allow_secret)
        return ImportResult(arrival=one, became=Became.STORED, id=name, **found.named())

    def _again(self, one: Arrival, existing: MemoryItem, batch: Batch) -> ImportResult:
        """What becomes of an arrival that was taken in before."""
        known = taken_from(existing)
        facts = self._facts(one)
        edited = is_edited(existing)
        if known.get("seen") == facts["seen"] and not (edited and self._replace):
            # it is here as it is there: a person may vouch for it who did not before
            if one.item.trust not in VOUCHED or existing.trust in VOUCHED:
                return ImportResult(arrival=one, became=Became.SAME, id=existing.id)
            batch.put(existing.replace(trust=one.item.trust, status=_status(one.item, existing)), existing.sha256)
            return ImportResult(arrival=one, became=Became.UPDATED, id=existing.id)
        if edited and not self._replace:
            reason = f"{existing.id} was edited here, and differs from the source"
            return ImportResult(arrival=one, became=Became.KEPT, id=existing.id, reason=reason)
        ours = one.item
        item = existing.replace(
            memory_type=ours.memory_type,
            title=ours.title,
            content=ours.content,
            tags=ours.tags,
            data=ours.data,
            timestamp=ours.timestamp or existing.timestamp,
            expires=ours.expires,
            origin=ours.origin,
            trust=ours.trust,
            status=_status(ours, existing),
            metadata={**existing.metadata, **_metadata(one), FROM: facts},
        )
        batch.put(item, existing.sha256, allow_secret=self._allow_secret)
        return ImportResult(arrival=one, became=Became.UPDATED, id=existing.id)

    def _facts(self, one: Arrival) -> dict[str, Any]:
        """Where an arrival comes from, what was seen of it there, and what was kept of that here."""
        kept = _digest(one.item)
        free = [_metadata(one)] if one.item.metadata else []
        seen = _short(canonical([kept, [], *free]))
        return {"source": self._source, **one.facts, "seen": seen, "kept": kept}


def taken_from(item: MemoryItem) -> Mapping[str, Any]:
    """What an import noted on an item of where it comes from; empty where none did."""
    recorded = item.metadata.get(FROM)
    return recorded if isinstance(recorded, Mapping) else {}


def is_edited(item: MemoryItem) -> bool:
    """Whether an item says something else than an import left, or none did."""
    return taken_from(item).get("kept") != _digest(item)


def id_of(source: str, one: Arrival) -> str:
    """The id of an arrival, the same forever: what it is called, and what follows from its key."""
    if one.id:
        return one.id
    digest = hashlib.sha256("\n".join((source, one.key)).encode("utf-8", "replace")).hexdigest()
    return f"{slug(one.name) or slug(source)}-{digest[:_SUFFIX]}"


def _twins(arrivals: Iterable[Arrival], source: str, neighbours: Mapping[str, Neighbours]) -> dict[str, str]:
    """For each arrival that says what an item here or an earlier arrival says: that one's id."""
    first: dict[tuple[str, str], str] = {}
    twins: dict[str, str] = {}
    for one in arrivals:
        wording = (one.item.memory_type, f"{one.item.title}\n{normalised(gist(one.item))}")
        found = neighbours.get(one.key)
        repeated = found.repeated.id if found is not None and found.repeated is not None else ""
        name = first.setdefault(wording, repeated or id_of(source, one))
        if name != id_of(source, one):
            twins[one.key] = name
    return twins


def _metadata(one: Arrival) -> dict[str, Any]:
    """The free facts of an arrival; a reason why a secret may stay is only a person's to give here."""
    return {key: value for key, value in one.item.metadata.items() if key != ALLOWED}


def _status(ours: MemoryItem, existing: MemoryItem) -> str:
    """The status after another import: a convention of other words is not agreed on yet; one retired stays so."""
    return ours.status if ours.type == CONVENTION and existing.status != RETIRED else existing.status


def _digest(item: MemoryItem) -> str:
    """What an item says, in few letters; what feedback, links, reviews and decisions change does not count."""
    data = {name: value for name, value in item.data.items() if (item.type, name) != (CONVENTION, "accepted")}
    return _short(canonical([item.memory_type, item.title, item.content, list(item.tags), data]))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
