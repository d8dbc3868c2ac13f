"""Finds contradictions between memories, and records how a person settles them.

A decision is written into both items in one commit, and the pair is not asked about again while both say what they said
then.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime

from memfs.errors import Conflict, ItemNotFound, MemfsError, QueryInvalid
from memfs.fs.lock import shared_property
from memfs.model import MemoryItem, Query
from memfs.model.item import Link, gist
from memfs.model.learning import BOTH, Decision, Disagreement
from memfs.model.time import format_time
from memfs.recall.conflict_notes import COMPATIBLE, CONTRADICTS, DECIDED, OVER, SUPERSEDED, SUPERSEDED_BY, MarkedItems
from memfs.startup import TYPE_CHECKING, Any, sha256
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.plan import excerpt, message_for_items
from memfs.store.reader import Reader
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.intake.contradictions import NeighbourSearch

_OURS = frozenset({CONTRADICTS, COMPATIBLE, SUPERSEDED_BY})


def texts(one: MemoryItem, other: MemoryItem) -> str:
    """A digest of what the two say, whichever is named first; the rest of them does not count."""
    parts = sorted(sha256(gist(item).strip().encode()).hexdigest() for item in (one, other))
    return sha256("".join(parts).encode()).hexdigest()[:16]


def record_of(one: MemoryItem, other: MemoryItem) -> Mapping[str, Any] | None:
    """What was decided about the two, as either of them has it; None where nothing was."""
    for item, name in ((one, other.id), (other, one.id)):
        decided = item.metadata.get(DECIDED)
        if isinstance(decided, Mapping) and isinstance(found := decided.get(name), Mapping):
            return found
    return None


def covers(record: Mapping[str, Any] | None, one: MemoryItem, other: MemoryItem) -> bool:
    """Whether a decision says that both hold, of the texts that they have now."""
    return record is not None and record.get("kept") == BOTH and record.get("texts") == texts(one, other)


def holds(item: MemoryItem, now: datetime) -> bool:
    """Whether an item counts at present: it was not replaced, and has not expired."""
    return item.status.strip() not in OVER and not item.has_expired(now)


def _compatible(item: MemoryItem, other: MemoryItem, record: Mapping[str, Any]) -> MemoryItem:
    """One of two once somebody decided that both hold; neither replaces the other any more."""
    replaced = item.status == SUPERSEDED and item.id in other.supersedes
    return _with(item, other, record).replace(
        links=_links(item, other, COMPATIBLE),
        supersedes=tuple(name for name in item.supersedes if name != other.id),
        status=_status_before(item, other) if replaced and not _by_third(item, other) else item.status,
    )


def _by_third(item: MemoryItem, other: MemoryItem) -> bool:
    """Whether a decision about another than these two replaced the item: that one holds."""
    return item.status == SUPERSEDED and any(
        link.relation == SUPERSEDED_BY and link.to != other.id for link in item.links
    )


def one_kept(kept: MemoryItem, lost: MemoryItem, reason: str, now: datetime) -> tuple[MemoryItem, MemoryItem]:
    """The two as they are once somebody decided which one holds: that one, and the one it replaces."""
    record = _record(kept.id, kept, lost, reason, now)
    holding = _with(kept, lost, record).replace(
        links=_links(kept, lost),
        supersedes=tuple(dict.fromkeys((*kept.supersedes, lost.id))),
        status=_status_before(kept, lost) if kept.status.strip() in OVER and not _by_third(kept, lost) else kept.status,
    )
    was = _status_before(lost, kept) if lost.status == SUPERSEDED else lost.status
    replaced = _with(lost, kept, {**record, **({"was": was} if was else {})}).replace(
        links=_links(lost, kept, SUPERSEDED_BY),
        supersedes=tuple(name for name in lost.supersedes if name != kept.id),
        status=SUPERSEDED,
    )
    return holding, replaced


def _status_before(item: MemoryItem, other: MemoryItem) -> str:
    """The status that an item had before a decision took it away: the one about the other, else one about a third."""
    decided = item.metadata.get(DECIDED)
    records = {**decided} if isinstance(decided, Mapping) else {}
    first = records.pop(other.id, None)
    found = (record.get("was") for record in (first, *records.values()) if isinstance(record, Mapping))
    return next((was for was in found if isinstance(was, str)), "")


def _record(kept: str, one: MemoryItem, other: MemoryItem, reason: str, now: datetime) -> dict[str, Any]:
    """What was decided; one that says the same as the one before keeps its time, and its reason without another."""
    wording = texts(one, other)
    before = record_of(one, other) or {}
    if (before.get("kept"), before.get("texts")) == (kept, wording):
        why, when = reason or before.get("reason", ""), before.get("when", "")
    else:
        why, when = reason, ""
    moment = when or format_time(now.replace(microsecond=0))
    return {"kept": kept, **({"reason": why} if why else {}), "texts": wording, "when": moment}


def _with(item: MemoryItem, other: MemoryItem, record: Mapping[str, Any]) -> MemoryItem:
    before = item.metadata.get(DECIDED)
    decided = {**(before if isinstance(before, Mapping) else {}), other.id: dict(record)}
    return item.replace(metadata={**item.metadata, DECIDED: decided})


def _links(item: MemoryItem, other: MemoryItem, relation: str = "") -> tuple[Link, ...]:
    """The item's links with what a decision made of those to the other; links of other sorts stay."""
    kept = [link for link in item.links if link.to != other.id or link.relation not in _OURS]
    return (*kept, *((Link(to=other.id, relation=relation),) if relation else ()))


_MOST_OTHERS = 32
"""How many others that say nearly the same an item is compared with."""
_MOST_FOUND = 5


def _candidates(texts: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Each item with the others that it may contradict."""
    from memfs.recall.versions import traces

    places: dict[int, list[str]] = {}
    for path, text in texts.items():
        for trace in traces(text):
            places.setdefault(trace, []).append(path)
    beside: dict[str, dict[str, None]] = {}
    for paths in places.values():
        for at, path in enumerate(paths if len(paths) > 1 else ()):
            near = paths[max(0, at - _MOST_OTHERS // 2) : at + _MOST_OTHERS // 2]
            beside.setdefault(path, {}).update(dict.fromkeys(near))
    for path, others in beside.items():
        yield path, [other for other in others if other != path][:_MOST_OTHERS]


def in_order(one: str, other: str) -> tuple[str, str]:
    """A pair of ids, the same whichever is named first."""
    return (one, other) if one < other else (other, one)


_LONGEST_REASON = 500
_LINKED = "a link says so, though the texts do not show it"


class Conflicts:
    """Finds and settles contradictions in one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store, self._parts = store, parts
        self._marked = MarkedItems(store, parts)

    # -- finding --------------------------------------------------------------------------------------------------
    def list(self, scan: bool = False) -> builtins.list[Disagreement]:
        """The pairs of items that contradict each other and await a decision, the newest first.

        Asked about are pairs that a link names, and that contradict each other again since it was decided about them.
        Items that were replaced or have expired contradict nothing.

        Args:
            scan: compare all items with each other, too, such as files written by hand or pulled: every file is read.
                Of many that say nearly the same only some are compared.
        """
        self._store.follow()
        marked = {item.id: item for item in self._marked}
        return self._undecided(marked, self._item, self._pairs() if scan else set(), self._parts.clock())

    def list_in(self, store: Reader, now: datetime) -> builtins.list[Disagreement]:
        """As ``list``, of another time: the pairs that a link names, among the items that there were.

        Args:
            store: the items.
            now: what counts as the present.
        """
        items = {item.id: item for item in store.readable(store.every(Query()))}
        return self._undecided(items, items.get, set(), now)

    def _undecided(
        self,
        items: Mapping[str, MemoryItem],
        item_of: Callable[[str], MemoryItem | None],
        scanned: Collection[tuple[str, str]],
        now: datetime,
    ) -> builtins.list[Disagreement]:
        pairs = {pair for item in items.values() for pair in _named(item)}.union(scanned)
        found = []
        for pair in sorted(pairs):
            one, other = (items.get(name) or item_of(name) for name in pair)
            if one is None or other is None or not (holds(one, now) and holds(other, now)):
                continue
            if (disagreement := self._disagreement(one, other)) is not None:
                found.append(disagreement)
        return sorted(found, key=lambda one: (one.one.moment, one.ids), reverse=True)

    def _disagreement(self, one: MemoryItem, other: MemoryItem) -> Disagreement | None:
        """What is to be decided about two items; None where nothing is."""
        record = record_of(one, other)
        if covers(record, one, other):
            return None
        newer, older = sorted((one, other), key=lambda item: (item.moment, item.id), reverse=True)
        linked = any(
            link.to == theirs.id and link.relation == CONTRADICTS
            for item, theirs in ((one, other), (other, one))
            for link in item.links
        )
        reason = self._objection(newer, older)
        if not reason and not linked:
            return None
        again = record is not None
        return Disagreement(one=newer, other=older, reason=reason or _LINKED, linked=linked, reopened=again)

    def _item(self, name: str) -> MemoryItem | None:
        try:
            return self._store.get(name)
        except MemfsError:
            return None

    # -- comparing ------------------------------------------------------------------------------------------------
    @shared_property
    def _neighbourhood(self) -> NeighbourSearch:
        from memfs.intake.contradictions import NeighbourSearch

        return NeighbourSearch(self._store, self._parts.kinds)

    def _objection(self, one: MemoryItem, other: MemoryItem) -> str:
        """Why the two cannot both hold, "" where they can."""
        from memfs.recall.versions import may_meet

        if one.id in other.supersedes or other.id in one.supersedes or not may_meet(one, other):
            return ""
        return self._neighbourhood.objection(one, other)

    def _pairs(self) -> set[tuple[str, str]]:
        """The pairs that contradict each other."""
        found: set[tuple[str, str]] = set()
        for path, others in _candidates(self._texts()):
            item = self._load(path)
            against = 0
            for other in map(self._load, others):
                if item is None or against == _MOST_FOUND:
                    break
                if other is not None and other.id != item.id and self._objection(item, other):
                    found.add(in_order(item.id, other.id))
                    against += 1
        return found

    def _texts(self) -> dict[str, str]:
        """What each item says that may contradict another, by path."""
        from memfs.intake.contradictions import is_transient

        now, items = self._parts.clock(), ((path, self._load(path)) for path in self._parts.index.stamps())
        return {
            path: gist(item) for path, item in items if item is not None and not is_transient(item) and holds(item, now)
        }

    def _load(self, path: str) -> MemoryItem | None:
        try:
            return self._store.read(path)
        except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
            return None

    # -- deciding -------------------------------------------------------------------------------------------------
    def resolve(
        self,
        one: str,
        other: str,
        *,
        keep: str,
        reason: str = "",
        source: str = "",
    ) -> Decision:
        """Write down what a person decided about two items, in one commit; it is not asked about again.

        Of two, the one kept gets the other into ``supersedes``, the other the status ``superseded``. Where both are
        kept, links ``compatible`` take the place of ``contradicts``, until an edit makes them contradict each other
        again. Deciding the same again changes nothing.

        Args:
            one, other: ids, paths, or beginnings of ids.
            keep: the id of the one that holds, or ``both``.
            reason: why; it is in both items and in the commit.
            source: which door it came through, for the commit's trailers.

        Raises:
            ItemNotFound, QueryInvalid: the two, or what is to be kept, cannot be understood.
            Conflict: somebody edits one of them at this moment. Nothing was written.
            SecretDetected, StorageIO: nothing was written.
        """
        reason = _checked_reason(reason)
        began = texts(*self._pair(one, other))

        def decided() -> Decision:
            pair = self._pair(one, other)
            if texts(*pair) != began:
                raise Conflict("one of the two was edited", path=pair[0].path, hint="look at both again, then decide")
            kept = _kept(keep, pair)
            after = self._decided(pair, kept, reason)
            if after == pair:
                return Decision(kept=kept, one=pair[0], other=pair[1], changed=False)
            with self._store.batch(_sentence(pair, kept, reason), source=source) as batch:
                stored = [batch.put(new, expected=old.sha256) for old, new in zip(pair, after, strict=True)]
            return Decision(kept=kept, one=stored[0], other=stored[1])

        return retry_on_conflict(decided, tries=5)

    def _decided(self, pair: tuple[MemoryItem, MemoryItem], kept: str, reason: str) -> tuple[MemoryItem, MemoryItem]:
        now = self._parts.clock()
        one, other = pair
        if kept == BOTH:
            record = _record(BOTH, one, other, reason, now)
            return _compatible(one, other, record), _compatible(other, one, record)
        if kept == one.id:
            return one_kept(one, other, reason, now)
        holding, replaced = one_kept(other, one, reason, now)
        return replaced, holding

    def _pair(self, one: str, other: str) -> tuple[MemoryItem, MemoryItem]:
        first, second = self._store.find(one), self._store.find(other)
        if first.id == second.id:
            raise QueryInvalid(f"both names mean {first.id!r}", field="other", hint="name two memories")
        for item in (first, second):
            if not item.sha256:
                raise ItemNotFound(f"no memory has the id {item.id!r}", hint="'memfs list' shows what there is")
        return first, second


def _named(item: MemoryItem) -> Iterator[tuple[str, str]]:
    """The pairs that an item's links, and decisions about it, name."""
    for link in item.links:
        if link.relation == CONTRADICTS:
            yield in_order(item.id, link.to)
    decided = item.metadata.get(DECIDED)
    for name in decided if isinstance(decided, Mapping) else ():
        if isinstance(name, str):
            yield in_order(item.id, name)


def _checked_reason(reason: str) -> str:
    """A reason on one line.

    Raises:
        QueryInvalid: it is too long.
        SecretDetected.
    """
    line = " ".join(reason.split())
    if len(line) > _LONGEST_REASON:
        raise QueryInvalid(
            f"a reason of {len(line)} characters is too long", field="reason", hint=f"use at most {_LONGEST_REASON}"
        )
    from memfs.format.secrets import refuse_text  # who decides nothing does without

    refuse_text(line, "reason")
    return line


def _kept(keep: str, pair: tuple[MemoryItem, MemoryItem]) -> str:
    """Which one is kept, by its whole id, or ``both``."""
    if keep == BOTH:
        return BOTH
    meant = [item.id for item in pair if keep in (item.id, item.path)] or [
        item.id for item in pair if keep and item.id.startswith(keep)
    ]
    if len(meant) != 1:
        ids = f"{pair[0].id!r}, {pair[1].id!r}"
        raise QueryInvalid(f"{ascii(keep)[:100]} is neither of the two", field="keep", hint=f"keep {ids} or 'both'")
    return meant[0]


def _sentence(pair: tuple[MemoryItem, MemoryItem], kept: str, reason: str) -> str:
    first, other = pair[::-1] if pair[1].id == kept else pair
    verb, way = ("Decide that both hold", "as does") if kept == BOTH else ("Decide for", "against")
    return message_for_items(verb, [first], f"{way}: {excerpt(other)}{'; ' if reason else ''}{reason}")
