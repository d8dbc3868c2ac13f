"""Finds what is undecided about items, and says it in words: fields that a merge overrode, and contradictions.

A conflict is named until it is decided, by a word or by an edit of the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from memfs.catalog.facts import Key, maker
from memfs.errors import MemfsError
from memfs.format.text import shortened, shown_line
from memfs.model import MemoryItem
from memfs.model.item import RecordedConflict
from memfs.startup import Any, json
from memfs.store import Store
from memfs.store.parts import READ_LIMIT, Parts

_LONGEST = 200
_WHOLE = {"deleted": "edited on one side of a merge, deleted on the other"}


def undecided(item: MemoryItem) -> tuple[RecordedConflict, ...]:
    """The undecided conflicts of an item; a word or an edit of the field decides one."""
    if not item.conflicts:
        return ()
    from memfs.format.field_merge import is_undecided

    return tuple(one for one in item.conflicts if is_undecided(item, one))


def unresolved_note(item: MemoryItem) -> str:
    """Which fields of an item are undecided, what their other values are and whose; "" where nothing is."""
    return "; ".join(map(_sentence, undecided(item)))


def values(conflict: RecordedConflict) -> tuple[str, str]:
    """What was kept and what was overridden, in words."""
    absent = "a longer text than is kept here; the history has it" if conflict.lost_sha256 else "nothing"
    kept, lost = (absent if value is None else _readable(value) for value in (conflict.kept, conflict.lost))
    return kept, lost


def _sentence(conflict: RecordedConflict) -> str:
    lost = shortened(" ".join(values(conflict)[1].split()), _LONGEST)
    what = f'{conflict.field} is undecided: a merge left another value, "{lost}"'
    what = what if conflict.field else _WHOLE.get(str(conflict.lost), "a merge left another version")
    return shown_line(what + (f" by {conflict.by}" if conflict.by else ""))


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and not any(isinstance(part, Mapping | list | tuple) for part in value):
        return ", ".join(map(_readable, value))
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


CONTRADICTS = "contradicts"
DECIDED = "decided"
"""The key below ``metadata`` that holds, by the other item's id, what was decided about the two."""
COMPATIBLE = "compatible"
"""What two items are to one another once it was decided that both can hold."""
SUPERSEDED = "superseded"
SUPERSEDED_BY = "superseded_by"
"""What an item that no longer holds is to the one in its place."""
OVER = frozenset({"retired", "cancelled", SUPERSEDED, "rejected"})
"""An item of such a status says nothing against others."""
FINISHED = OVER | {"done", "completed", "dropped"}
"""An item of such a status is not to be done any more: it was, or was given up."""


def contradicted(item: MemoryItem) -> tuple[str, ...]:
    """Ids of the items that an item's links say it contradicts."""
    return tuple(link.to for link in item.links if link.relation == CONTRADICTS)


def disputes(items: Sequence[MemoryItem]) -> dict[str, list[str]]:
    """Of items that occur together: what each contradicts, and which of the others contradict it, by id."""
    disputed = [(item.id, contradicted(item)) for item in items]
    present = {name for name, _ in disputed}
    found: dict[str, list[str]] = {}
    for name, others in disputed:
        for other in others:
            found.setdefault(name, []).append(other)
            if other in present:
                found.setdefault(other, []).append(name)
    return {name: list(dict.fromkeys(others)) for name, others in found.items()}


_SIGNS = (CONTRADICTS.encode(), DECIDED.encode(), b"conflicts")
_SIGNED = maker("marks", repr(_SIGNS))


class MarkedItems:
    """The items whose files name another that they contradict, a decision, or a conflict that a merge recorded.

    Files are read for it, as the index knows none of these; the catalog says of which content there is a sign of them.
    May be used from several threads, and by several processes.
    """

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store, self._parts = store, parts

    def __iter__(self) -> Iterator[MemoryItem]:
        """In the order of their paths; those that may be marked, by what is in their files."""
        for path in self.paths():
            with suppress(MemfsError, FileNotFoundError):
                yield self._store.read(path)

    def paths(self) -> list[str]:
        """The files that may be marked; of those in the index's base the catalog knows them at once."""
        index, catalog = self._parts.index, self._parts.items.catalog
        with index.held():  # else another thread may fold the overlay into a new base between
            over, base, below = index.stamps().over_below(""), index.base[1], index.base_stamps()
        known = catalog.found(_SIGNED, [(base, "all")]).get((base, "all")) if base else None
        if not isinstance(known, list):
            known, whole = self._marked((path, blob) for path, blob in below.blobs() if path not in over)
            if base and whole:
                catalog.keep(_SIGNED, {(base, "all"): json.dumps(known)})
        fresh, _ = self._marked((path, blob) for path, blob in over.items() if blob)
        return sorted({*fresh, *known} - (over.keys() - fresh))

    def _marked(self, files: Iterable[tuple[str, str]]) -> tuple[list[str], bool]:
        """Those of some files that may be marked, and whether each could be read as it is known."""
        catalog, present = self._parts.items.catalog, sorted(files)
        signs: dict[Key, bool] = catalog.found(_SIGNED, [(blob, "") for _, blob in present])
        fresh: dict[Key, str] = {}
        marked = []
        whole = True
        with self._parts.tree.holding_folders():
            for path, blob in present:
                if (sign := signs.get((blob, ""))) is None:
                    try:
                        content = self._parts.seen.read(path, READ_LIMIT)
                    except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                        whole = False
                        continue
                    sign = any(one in content.data for one in _SIGNS)
                    fresh[content.stamp.blob, ""] = json.dumps(sign)
                    whole = whole and content.stamp.blob == blob
                if sign:
                    marked.append(path)
        catalog.keep(_SIGNED, fresh)
        return marked, whole
