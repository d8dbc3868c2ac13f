"""Decide conflicts that items carry after a merge: keep the value in the item, or take the one that was displaced.

A decision is about one conflict, all conflicts of a field, or all of an item. Decisions about several items are
written as one batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memfs.errors import HistoryError, ItemNotFound, MemfsError, QueryInvalid
from memfs.format import item_fields
from memfs.format.codec import schema_of
from memfs.format.merge_conflicts import DELETED, OTHER, settled, stands, value_at
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.git import log
from memfs.model.item import MemoryItem, Origin, RecordedConflict
from memfs.store import Store
from memfs.store.authorship import current_signer, signed_by
from memfs.store.commit_message import of_items
from memfs.store.parts import READ_LIMIT, Parts

_NAME = "plain-contents"
_BYTES = 20
_LARGEST = 64 << 20


class PlainContents:
    """The contents that carry no conflict. May be used from several threads, and by several processes.

    Args:
        folder: where the cache lies; where there is none, it is kept in this process alone.
    """

    def __init__(self, folder: Path) -> None:
        self._place = folder / _NAME
        self._known: set[bytes] | None = None
        self._grown = False

    def __contains__(self, blob: str) -> bool:
        return bytes.fromhex(blob) in self._all()

    def add(self, blob: str) -> None:
        """Note that a content carries none."""
        self._all().add(bytes.fromhex(blob))
        self._grown = True

    def keep(self, present: Collection[str]) -> None:
        """Write the cache, if there is something new: of the contents that are present, and no others."""
        if not self._grown or not self._place.parent.is_dir():
            return
        known = self._all() & {bytes.fromhex(blob) for blob in present}
        with suppress(MemfsError, OSError):  # the next process looks again
            io.write_file(self._place, b"".join(known), durable=False)
            self._grown = False

    def _all(self) -> set[bytes]:
        if self._known is None:
            try:
                data = io.read_file(self._place, _LARGEST)
            except (MemfsError, OSError):
                data = b""
            whole = len(data) % _BYTES == 0
            self._known = {data[at : at + _BYTES] for at in range(0, len(data), _BYTES)} if whole else set()
        return self._known


_SIGN = b"conflicts"
_DEPTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRule:
    """What somebody decides, and about which conflicts of an item or document.

    Attributes:
        take: put the displaced value in the place of the present one; else the present one is right.
        field: only the conflicts over this field, by its dotted name; "" for one about the whole, None for every one.
        number: only this one of those that wait, counted from 1 as they are listed (of the field, where one is named);
            0 for every one.
    """

    take: bool
    field: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """What was decided about an item.

    Attributes:
        id, path: of the item.
        settled: the conflicts that are gone.
        item: as it is stored now; None where it was removed, or with ``dry_run``.
        removed: whether the decision takes the item away, as the displaced version had.
    """

    id: str
    path: str
    settled: tuple[RecordedConflict, ...]
    item: MemoryItem | None = None
    removed: bool = False


class Decisions:
    """Finds and settles conflicts that items of one workspace carry. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._plain = PlainContents(Path(parts.index.folder))

    def waiting(self) -> Iterator[MemoryItem]:
        """The items with conflicts, in the order of their paths; with those alone whose field was not edited since.

        Files are read for it, as the index knows nothing of them; each content once.
        """
        self._store.follow()
        blobs = dict(self._parts.index.stamps().blobs())
        with self._parts.tree.holding_folders():
            found = sorted(
                path for path, blob in blobs.items() if blob not in self._plain and self._carries(path, blob)
            )
        self._plain.keep(blobs.values())
        for path in found:
            with suppress(MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                item = self._store.read(path)
                standing = tuple(one for one in item.conflicts if stands(item, one))
                if standing:
                    yield item.replace(conflicts=standing)

    def decide(
        self, reference: str, ruling: DecisionRule, *, source: str = "", dry_run: bool = False
    ) -> DecisionResult:
        """Settle the conflicts of an item, or of one field of it, in one commit.

        Args:
            reference: an id, a path, or the beginning of an id.

        Raises:
            ItemNotFound: there is no such item, or it has no such conflict.
            QueryInvalid: the field has another value by now, so that nobody knows what would be replaced; or several
                values were displaced by the present one, and none of them is chosen.
            Conflict: the item changed at this very moment. Nothing was written.
            ContentError, StorageIO: nothing was written.
        """
        item = self._store.find(reference)
        chosen = _chosen(item, ruling)
        taken = _taken_of(item, chosen, ruling.number) if ruling.take else ()
        after: MemoryItem | None = item
        for one in chosen:
            if after is not None:
                after = self._taken(after, one) if one in taken else settled(after, one, take=False)
        decided = DecisionResult(id=item.id, path=item.path, settled=chosen, removed=after is None)
        if dry_run:
            return decided
        names = ", ".join(dict.fromkeys(one.field or "the item as a whole" for one in chosen))
        reason = f"the value that {'gave way' if ruling.take else 'stands'} in {names}"
        with signed_by(current_signer() or Origin()):  # who decides, and not who wrote what is decided about
            if after is None:
                self._store.delete(item.id, item.sha256, reason=f"decided for {reason}", source=source)
                return decided
            stored = self._store.put(
                after, item.sha256, message=of_items("Decide", [after], f"for {reason}"), source=source
            )
        return DecisionResult(id=item.id, path=stored.path, settled=chosen, item=stored)

    def _carries(self, path: str, blob: str) -> bool:
        try:
            carries = _SIGN in self._parts.seen.read(path, READ_LIMIT).data
        except (MemfsError, FileNotFoundError):
            return False
        if not carries:
            self._plain.add(blob)
        return carries

    # -- taking what was displaced --------------------------------------------------------------------------------
    def _taken(self, item: MemoryItem, conflict: RecordedConflict) -> MemoryItem | None:
        """The item with what was displaced, and without the record; None where that was its removal."""
        left = tuple(one for one in item.conflicts if one != conflict)
        if not conflict.field:
            if conflict.lost == DELETED:
                return None
            if conflict.lost != OTHER:
                raise _unclear(item)
            return self._version(item, conflict).replace(conflicts=left)
        if conflict.lost_sha256:
            lost = _value(self._version(item, conflict), conflict.field)
            conflict = replace(conflict, kept=_value(item, conflict.field), lost=lost, lost_sha256="")
            item = item.replace(conflicts=(*left, conflict))
        return settled(item, conflict, take=True)

    def _version(self, item: MemoryItem, conflict: RecordedConflict) -> MemoryItem:
        """The displaced version of the item, from history.

        Raises:
            ItemNotFound: history does not have it (a shallow clone), or it cannot be read.
        """
        fallback = item.timestamp or item.created
        assert fallback is not None  # an item that was read has a time
        with suppress(HistoryError):
            for revision in log.log(self._parts.repository, (item.path,), _DEPTH):
                for commit in (revision.commit, *self._parts.repository.commit_object(revision.commit).parents):
                    data = self._parts.repository.read(commit, item.path)
                    if data is not None and sha256(data) == conflict.lost_sha256:
                        read = self._parts.codec.read(data, item.path, fallback)
                        return read.replace(sha256=item.sha256)
        raise ItemNotFound(
            "the version that gave way is not in the history", path=item.path, hint="fetch it, or edit the item by hand"
        )


def _chosen(item: MemoryItem, ruling: DecisionRule) -> tuple[RecordedConflict, ...]:
    """The conflicts that are meant, the one with the number first; once its value is taken, its rivals are decided."""
    field, number = ruling.field, ruling.number
    chosen = tuple(one for one in item.conflicts if field is None or one.field == field)
    if number:
        picked = [one for one in chosen if stands(item, one)][number - 1 : number]
        rivals = (one for one in chosen if any(_rival(one, first) and one != first for first in picked))
        chosen = (*picked, *(rivals if ruling.take else ()))
    if not chosen:
        what = f"no conflict {number or ''}".rstrip() + (f" over {field!r}" if field else "")
        raise ItemNotFound(f"{item.id} carries {what}", hint="'memfs team conflicts' lists what waits")
    return chosen


def _taken_of(item: MemoryItem, chosen: tuple[RecordedConflict, ...], number: int) -> tuple[RecordedConflict, ...]:
    """Those whose value is to be kept: one for each field or passage, of those about what is there."""
    if number:
        return chosen[:1]
    taken: list[RecordedConflict] = []
    for one in [each for each in chosen if stands(item, each)] or chosen:
        rival = next((each for each in taken if _rival(one, each)), None)
        if rival is None:
            taken.append(one)
        elif (one.lost, one.lost_sha256) != (rival.lost, rival.lost_sha256):
            raise _choose(item, "more than one value gave way", one.field)
    if len(taken) > 1 and any(not one.field and one.lost == DELETED for one in taken):
        raise _choose(item, "one of them removes the item, and others change it", "")
    return tuple(taken)


def _choose(item: MemoryItem, problem: str, field: str) -> QueryInvalid:
    hint = f"choose as listed: 'memfs team conflicts resolve {item.id} --keep lost --number 1', or 2, ..."
    return QueryInvalid(problem, field=field or None, path=item.path, hint=hint)


def _rival(one: RecordedConflict, other: RecordedConflict) -> bool:
    """Whether two values were displaced by the same one."""
    return (one.field, one.kept, one.part) == (other.field, other.kept, other.part)


def is_record(reference: str) -> bool:
    """Whether a reference names the record of a conflict in a state document."""
    return reference.endswith(".json") and schema_of(reference) == "conflict"


def _value(item: MemoryItem, field: str) -> Any:
    return value_at(item_fields.values(item), field)


def _unclear(item: MemoryItem) -> QueryInvalid:
    hint = f"edit it by what 'memfs log {item.id}' names, then 'memfs team conflicts resolve {item.id} --keep kept'"
    return QueryInvalid("more fields gave way than the item can tell", path=item.path, hint=hint)
