"""StampTable: which file contents an index generation describes, as a compact mapping from path to (id, stamp).

A table never changes; changes are layered over it.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from memfs.model import Stamp
from memfs.model.ids import stem_of
from memfs.model.item import RACY_NS
from memfs.search import columns

Entry = tuple[str, Stamp]
_NUMBERS = {"size": "q", "mtime": "q", "ctime": "q", "inode": "Q", "checked": "q"}
"""The columns of a table in their order, each with the type code of its numbers."""
_DIGESTS = {40, 64}  # how many digits git's ids have


class StampTable(Mapping[str, Entry]):
    """An unchangeable mapping from path to (id, stamp) that makes its stamps only when asked."""

    def __init__(
        self, paths: list[str], strange: Mapping[int, str], numbers: Sequence[array[Any]], blobs: Sequence[str]
    ) -> None:
        """
        Args:
            strange: ids that are not their path's stem, by place.
            numbers: the columns that ``_NUMBERS`` names.
        """
        self._paths = paths
        self._strange = strange
        self._numbers = numbers
        self._blobs = blobs
        self._places = dict(zip(paths, range(len(paths)), strict=True))

    @classmethod
    def of(cls, entries: Mapping[str, Entry]) -> StampTable:
        """The table of these entries."""
        stamps = [stamp for _, stamp in entries.values()]
        facts = zip(*[(*stamp[:4], stamp.checked_ns) for stamp in stamps], strict=True) if stamps else [()] * 5
        numbers = [array(code, of) for code, of in zip(_NUMBERS.values(), facts, strict=True)]
        strange = _strange(entries, [key for key, _ in entries.values()])
        return cls(list(entries), strange, numbers, [stamp.blob for stamp in stamps])

    def changed(self, gone: Collection[str], entries: Mapping[str, Entry]) -> StampTable:
        """A table without the paths in ``gone`` and with the given entries added or replaced."""
        out = {place for path in (*gone, *entries) if (place := self._places.get(path)) is not None}
        kept = [place for place in range(len(self._paths)) if place not in out]
        fresh = StampTable.of(entries)
        paths = [self._paths[place] for place in kept] + fresh._paths
        return StampTable(
            paths,
            _strange(paths, [*map(self._id, kept), *map(fresh._id, range(len(fresh)))]),
            [
                array(column.typecode, [column[place] for place in kept]) + added
                for column, added in zip(self._numbers, fresh._numbers, strict=True)
            ],
            [self._blobs[place] for place in kept] + list(fresh._blobs),
        )

    def __getitem__(self, path: str) -> Entry:
        place = self._places[path]
        return self._id(place), self._stamp(place)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a path, None where it is unknown."""
        place = self._places.get(path)
        return self._stamp(place) if place is not None else None

    def blob(self, path: str) -> str:
        """The id of a path's content, "" where it is unknown."""
        place = self._places.get(path)
        return self._blobs[place] if place is not None else ""

    def _stamp(self, place: int) -> Stamp:
        size, mtime, ctime, inode, checked = [column[place] for column in self._numbers]
        return Stamp(size, mtime, ctime, inode, self._blobs[place], checked)

    def names(self, path: str, id: str) -> bool:  # noqa: A002
        """Whether it has a path, under this id."""
        place = self._places.get(path)
        return place is not None and self._id(place) == id

    def vouches(self, path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bool:
        """Whether a file with these facts is known to hold what it held when it was stamped (``Stamp.racy``)."""
        place = self._places.get(path)
        if place is None:
            return False
        sizes, mtimes, ctimes, inodes, checked = self._numbers
        return bool(
            mtimes[place] == mtime_ns
            and ctimes[place] == ctime_ns
            and sizes[place] == size
            and inodes[place] == inode
            and checked[place] - ctime_ns >= RACY_NS
            and checked[place] - mtime_ns >= RACY_NS
        )

    def blobs(self) -> Iterator[tuple[str, str]]:
        """Every path with its content's id."""
        return zip(self._paths, self._blobs, strict=True)

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every path with its item's id; of a table far quicker than making its stamps."""
        strange = self._strange
        for place, path in enumerate(self._paths):
            yield path, strange[place] if place in strange else stem_of(path)

    def holder(self, id: str) -> str | None:  # noqa: A002
        """The path whose content the index holds under this id: of several, the one added last."""
        return self._holders.get(id)

    @property
    def id_count(self) -> int:
        """How many different ids there are."""
        return len(self._holders)

    @cached_property
    def _holders(self) -> dict[str, str]:
        return {self._id(place): path for place, path in enumerate(self._paths)}

    def _id(self, place: int) -> str:
        strange = self._strange.get(place)
        return stem_of(self._paths[place]) if strange is None else strange

    def pack(self) -> bytes:
        """The table as bytes."""
        widths = {len(blob) for blob in self._blobs}
        width = widths.pop() if len(widths) == 1 and widths <= _DIGESTS else 0
        parts = {
            "paths": columns.pack_texts(self._paths),
            "ids": columns.pack_json(self._strange),
            "width": columns.pack_json(width),
            "blobs": bytes.fromhex("".join(self._blobs)) if width else columns.pack_json(self._blobs),
        }
        return columns.pack(parts | {name: of.tobytes() for name, of in zip(_NUMBERS, self._numbers, strict=True)})

    @classmethod
    def unpack(cls, data: bytes) -> StampTable:
        """The table again.

        Raises:
            IndexUnavailable: these bytes are no table.
        """
        parts = columns.unpack(data)
        paths = columns.unpack_texts(parts["paths"])
        strange = {int(place): key for place, key in columns.unpack_json(parts["ids"]).items()}
        width = columns.unpack_json(parts["width"])
        digits = parts["blobs"].hex() if width else ""
        blobs = [digits[at : at + width] for at in range(0, len(digits), width or 1)]
        blobs = blobs if width else columns.unpack_json(parts["blobs"])
        numbers = [columns.unpack_numbers(code, parts[name]) for name, code in _NUMBERS.items()]
        return cls(paths, strange, numbers, blobs)


Rows = dict[str, Entry | None]
"""What lies over a stamp table: entries that were added or replaced, None for what is gone."""


class LayeredStamps(Mapping[str, Entry]):
    """A stamp table with changes on it. It never changes."""

    def __init__(self, base: StampTable, rows: Rows) -> None:
        self._base = base
        self._rows = rows

    def changed_below(self, folder: str) -> dict[str, str]:
        """What lies over the table below a folder that ends with "/": content's id by path, "" for what is gone."""
        return {path: row[1].blob if row else "" for path, row in self._rows.items() if path.startswith(folder)}

    def __getitem__(self, path: str) -> Entry:
        row = self._rows[path] if path in self._rows else self._base[path]
        if row is None:
            raise KeyError(path)
        return row

    def stamp(self, path: str) -> Stamp | None:
        """As ``StampTable.stamp``."""
        if path not in self._rows:
            return self._base.stamp(path)
        row = self._rows[path]
        return row[1] if row else None

    def blob(self, path: str) -> str:
        """As ``StampTable.blob``."""
        if path not in self._rows:
            return self._base.blob(path)
        row = self._rows[path]
        return row[1].blob if row else ""

    def __iter__(self) -> Iterator[str]:
        yield from (path for path in self._base if path not in self._rows)
        yield from (path for path, row in self._rows.items() if row is not None)

    def __len__(self) -> int:
        rows = self._rows.items()
        return len(self._base) + sum((row is not None) - (path in self._base) for path, row in rows)

    def __contains__(self, path: object) -> bool:
        return self._rows[path] is not None if path in self._rows else path in self._base

    def vouches(self, path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bool:
        """As ``StampTable.vouches``."""
        if path not in self._rows:
            return self._base.vouches(path, size, mtime_ns, ctime_ns, inode)
        row = self._rows[path]
        if row is None:
            return False
        stamp = row[1]
        facts = (stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode)
        return facts == (size, mtime_ns, ctime_ns, inode) and not stamp.racy

    def blobs(self) -> Iterator[tuple[str, str]]:
        """As ``StampTable.blobs``."""
        yield from ((path, blob) for path, blob in self._base.blobs() if path not in self._rows)
        yield from ((path, row[1].blob) for path, row in self._rows.items() if row is not None)

    def ids(self) -> Iterator[tuple[str, str]]:
        """As ``StampTable.ids``."""
        yield from ((path, item_id) for path, item_id in self._base.ids() if path not in self._rows)
        yield from ((path, row[0]) for path, row in self._rows.items() if row is not None)


def _strange(paths: Iterable[str], ids: Iterable[str]) -> dict[int, str]:
    return {place: key for place, (path, key) in enumerate(zip(paths, ids, strict=True)) if key != stem_of(path)}
