"""Conflicts: memories that cannot both hold, brought before a person, and what they decide (seed 004, P7).

Owns which pairs are asked about, and that a decision is written into both items at once and is not asked about again.
How a contradiction is told is ``memfs.pipeline.contradictions``' business, the form of a decision
``memfs.pipeline.conflictrecord``'.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime

from memfs.errors import Conflict, ItemNotFound, MemfsError, QueryInvalid
from memfs.files.secrets import refuse_text
from memfs.model import MemoryItem, Query
from memfs.model.conflicts import BOTH, Decision, Disagreement
from memfs.pipeline.conflictrecord import KEY, both_kept, covers, decided_about, holds, one_kept, record_of, texts
from memfs.pipeline.conflictscan import ConflictScan, Step, in_order
from memfs.pipeline.disputes import CONTRADICTS
from memfs.store import Store
from memfs.store.message import excerpt, of_items
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.readable import Browsable

_TRIES = 5
_LONGEST_REASON = 500
_SIGNS = (CONTRADICTS.encode(), KEY.encode())
_LINKED = "a link says so, though the texts do not show it"


class Conflicts:
    """Finds and settles contradictions in one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._scan = ConflictScan(store, parts)
        self._plain: dict[str, str] = {}

    # -- finding --------------------------------------------------------------------------------------------------
    def list(self, scan: bool = False, step: Step | None = None) -> builtins.list[Disagreement]:
        """The pairs of items that contradict each other and that nobody decided about, the newest first (P7).

        Asked about are pairs that a link names, that an earlier scan found, and that contradict each other anew since
        it was decided about them. Items that were replaced or have expired contradict nothing.

        Args:
            scan: first compare what nobody compared, such as files written by hand or pulled.
            step: is told how far the scan is.
        """
        if scan:
            self._scan.scan(step)
        self._store.follow()
        return self._undecided(self._marked(), self._item, self._scan.found(), self._parts.clock())

    def list_in(self, store: Browsable, now: datetime) -> builtins.list[Disagreement]:
        """As ``list``, of another time: the pairs that a link names, among the items that there were.

        Args:
            store: the items.
            now: what counts as the present.
        """
        loaded = (store.load(candidate) for candidate in store.seeking.every(Query()))
        items = {one.item.id: one.item for one in loaded if one is not None}
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
            if (told := self._told(one, other)) is not None:
                found.append(told)
        return sorted(found, key=lambda told: (_moment(told.one), told.ids), reverse=True)

    def _told(self, one: MemoryItem, other: MemoryItem) -> Disagreement | None:
        """What is to be decided about two items; None where nothing is."""
        record = record_of(one, other)
        if covers(record, one, other):
            return None
        newer, older = sorted((one, other), key=lambda item: (_moment(item), item.id), reverse=True)
        linked = _is_linked(one, other)
        reason = self._scan.objection(newer, older)
        if not reason and not linked:
            return None
        return Disagreement(one=newer, other=older, reason=reason or _LINKED, linked=linked, anew=record is not None)

    def _marked(self) -> dict[str, MemoryItem]:
        """The items that name another they contradict, or a decision, by id.

        Files are read for it, as the index knows no links; one that was without a sign is read again when it changed.
        """
        found = {}
        for path, (_, stamp) in self._parts.index.stamps().items():
            if self._plain.get(path) == stamp.blob:
                continue
            try:
                data = self._parts.seen.read(path, READ_LIMIT).data
                if any(sign in data for sign in _SIGNS):
                    item = self._store.read(path)
                    found[item.id] = item
                else:
                    self._plain[path] = stamp.blob
            except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                continue
        return found

    def _item(self, name: str) -> MemoryItem | None:
        try:
            return self._store.get(name)
        except MemfsError:
            return None

    # -- deciding -------------------------------------------------------------------------------------------------
    def resolve(
        self,
        one: str,
        other: str,
        *,
        keep: str,
        reason: str = "",
        seen: Mapping[str, str] | None = None,
        source: str = "",
    ) -> Decision:
        """Write down what a person decided about two items, in one commit; it is not asked about again (P7).

        Of two, the one kept gets the other into ``supersedes``, the other the status ``superseded``. Where both are
        kept, links ``compatible`` take the place of ``contradicts``, until an edit makes them contradict each other
        anew. Deciding the same again changes nothing.

        Args:
            one, other: ids, paths, or beginnings of ids.
            keep: the id of the one that holds, or ``both``.
            reason: why; it stands in both items and in the commit.
            seen: by id, the sha256 of the items as the person saw them.
            source: which door it came through, for the commit's trailers.

        Raises:
            ItemNotFound, QueryInvalid: the two, or what is to be kept, cannot be understood.
            Conflict: an item says something else than what was seen. Nothing was written.
            SecretDetected, StorageIO: nothing was written.
        """
        reason = _checked_reason(reason)
        pair = self._pair(one, other)
        kept = _kept(keep, pair)
        began, known = texts(*pair), self._is_known(*pair)
        for _ in range(_TRIES):
            _refuse_unseen(pair, seen or {})
            after = self._decided(pair, kept, reason)
            if after == pair:
                return Decision(kept=kept, one=pair[0], other=pair[1], changed=False)
            try:
                stored = self._write(pair, after, _sentence(pair, kept, reason), source)
                return Decision(kept=kept, one=stored[0], other=stored[1], known=known)
            except Conflict:
                pair = self._pair(pair[0].id, pair[1].id)
                if texts(*pair) != began:
                    raise
        raise Conflict("others keep changing the two memories", path=pair[0].path, hint="try again")

    def _is_known(self, one: MemoryItem, other: MemoryItem) -> bool:
        """Whether anything says that the two contradict each other."""
        return _is_linked(one, other) or record_of(one, other) is not None or bool(self._scan.objection(one, other))

    def _decided(self, pair: tuple[MemoryItem, MemoryItem], kept: str, reason: str) -> tuple[MemoryItem, MemoryItem]:
        now = self._parts.clock()
        one, other = pair
        if kept == BOTH:
            return both_kept(one, other, reason, now)
        if kept == one.id:
            return one_kept(one, other, reason, now)
        holding, replaced = one_kept(other, one, reason, now)
        return replaced, holding

    def _write(
        self,
        before: tuple[MemoryItem, MemoryItem],
        after: tuple[MemoryItem, MemoryItem],
        message: str,
        source: str,
    ) -> tuple[MemoryItem, MemoryItem]:
        with self._store.batch(message, source=source) as batch:
            one, other = (batch.put(new, expected=old.sha256) for old, new in zip(before, after, strict=True))
        return one, other

    def _pair(self, one: str, other: str) -> tuple[MemoryItem, MemoryItem]:
        first, second = self._store.find(one), self._store.find(other)
        if first.id == second.id:
            raise QueryInvalid(f"both names mean {first.id!r}", field="other", hint="name two memories")
        for item in (first, second):
            if not item.sha256:
                raise ItemNotFound(f"no memory has the id {item.id!r}", hint="memfs list shows what there is")
        return first, second


def _named(item: MemoryItem) -> Iterator[tuple[str, str]]:
    for link in item.links:
        if link.relation == CONTRADICTS:
            yield in_order(item.id, link.to)
    for name in decided_about(item):
        yield in_order(item.id, name)


def _is_linked(one: MemoryItem, other: MemoryItem) -> bool:
    return any(
        link.to == theirs.id and link.relation == CONTRADICTS
        for item, theirs in ((one, other), (other, one))
        for link in item.links
    )


def _moment(item: MemoryItem) -> float:
    moment = item.timestamp or item.created
    return moment.timestamp() if moment else 0.0


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


def _refuse_unseen(pair: tuple[MemoryItem, MemoryItem], seen: Mapping[str, str]) -> None:
    for item in pair:
        if item.id in seen and seen[item.id] != item.sha256:
            raise Conflict(
                f"{item.id!r} changed since it was looked at",
                current=item.sha256,
                path=item.path,
                hint="look at the two again, then decide",
            )


def _sentence(pair: tuple[MemoryItem, MemoryItem], kept: str, reason: str) -> str:
    first, other = pair[::-1] if pair[1].id == kept else pair
    verb, way = ("Decide that both hold", "as does") if kept == BOTH else ("Decide for", "against")
    return of_items(verb, [first], f"{way}: {excerpt(other)}{'; ' if reason else ''}{reason}")
