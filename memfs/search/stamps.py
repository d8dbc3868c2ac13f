"""StampTable: which file contents an index describes, as a compact mapping from path to (id, stamp).

A table never changes; changes are rows over it. ``UnchangedFolders`` compares many files with it at once.
"""

from __future__ import annotations

import contextlib
import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

from memfs.errors import StorageIO
from memfs.fs import io
from memfs.model import Candidate, Stamp
from memfs.model.ids import stem_of
from memfs.model.item import RACY_NS
from memfs.search import columns

Entry = tuple[str, Stamp]
Rows = dict[str, Entry | None]
"""What lies over a table: entries that were added or replaced, None for what is gone."""
_NUMBERS = {"size": "q", "mtime": "q", "ctime": "q", "inode": "Q", "checked": "q"}
"""The columns of a table in their order, each with the type code of its numbers."""
_DIGESTS = {40, 64}  # how many digits git's ids have
_MOST_MADE = 4096


class StampTable(Mapping[str, Entry]):
    """An unchangeable mapping from path to (id, stamp) that makes its stamps only when asked.

    ``stranger``, ``holder``, ``id_count``, ``changed`` and ``pack`` are of the table without the rows over it.
    """

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
        self._over: Rows = {}
        self._made: dict[int, Stamp] = {}

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

    def over(self, rows: Rows) -> StampTable:
        """This table with rows over it."""
        made = copy(self)
        made._over = rows
        return made

    def over_below(self, folder: str) -> dict[str, str]:
        """What lies over it below a folder that ends with "/": content's id by path, "" for what is gone."""
        return {path: row[1].blob if row else "" for path, row in self._over.items() if path.startswith(folder)}

    def over_folders(self) -> set[str]:
        """The folders of the paths in which rows lie over it."""
        return {path.rpartition("/")[0] for path in self._over}

    def __getitem__(self, path: str) -> Entry:
        if path not in self._over:
            place = self._places[path]
            return self._id(place), self._stamp(place)
        row = self._over[path]
        if row is None:
            raise KeyError(path)
        return row

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self.blobs())

    def __len__(self) -> int:
        over = self._over.items()
        return len(self._paths) + sum((row is not None) - (path in self._places) for path, row in over)

    def __contains__(self, path: object) -> bool:
        return self._over[path] is not None if path in self._over else path in self._places

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a path, None where it is unknown."""
        return self[path][1] if path in self else None

    def blob(self, path: str) -> str:
        """The id of a path's content, "" where it is unknown."""
        if path in self._over:
            row = self._over[path]
            return row[1].blob if row else ""
        place = self._places.get(path)
        return self._blobs[place] if place is not None else ""

    def _stamp(self, place: int) -> Stamp:
        made = self._made.get(place)
        if made is None:  # a resident is asked for those of some files again and again
            size, mtime, ctime, inode, checked = [column[place] for column in self._numbers]
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[place] = Stamp(size, mtime, ctime, inode, self._blobs[place], checked)
        return made

    def stranger(self, found: Iterable[Candidate]) -> str | None:
        """The id of the first of these whose path it does not have under this id; None where it has all."""
        places, strange = self._places, self._strange
        for one in found:
            place = places.get(one.path)
            if place is None or strange.get(place, one.path.rpartition("/")[2].rpartition(".")[0]) != one.id:
                return one.id
        return None

    def vouches(self, path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bool:
        """Whether a file with these facts is known to hold what it held when it was stamped (``Stamp.racy``)."""
        if path in self._over:
            row = self._over[path]
            return row is not None and row[1][:4] == (size, mtime_ns, ctime_ns, inode) and not row[1].racy
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
        over = self._over
        yield from (one for one in zip(self._paths, self._blobs, strict=True) if one[0] not in over)
        yield from ((path, row[1].blob) for path, row in over.items() if row is not None)

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every path with its item's id; far quicker than making the stamps."""
        over = self._over
        base = zip(self._paths, self._ids, strict=True)
        yield from base if not over else ((path, key) for path, key in base if path not in over)
        yield from ((path, row[0]) for path, row in over.items() if row is not None)

    def holder(self, id: str) -> str | None:  # noqa: A002
        """The path whose content the index holds under this id: of several, the one added last."""
        return self._holders.get(id)

    @property
    def id_count(self) -> int:
        """How many different ids there are."""
        return len(self._holders)

    @cached_property
    def _holders(self) -> dict[str, str]:
        return dict(zip(self._ids, self._paths, strict=True))

    @cached_property
    def _ids(self) -> list[str]:
        # ``stem_of`` of each, spelt out: that takes half the time.
        ids = [path.rpartition("/")[2].rpartition(".")[0] for path in self._paths]
        for place, key in self._strange.items():
            ids[place] = key
        return ids

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


class UnchangedFolders:
    """The folders whose files are all known to the index's base generation, by the digest of their listing.

    One comparison then speaks for all files of a folder. They are kept beside the index for the next process, for one
    generation: another is looked at file by file first.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: that of the index."""
        self._file = folder / "folders"
        self._base: list[int | str] = []
        self._digests: dict[str, str] = {}
        self._noted = False

    def take_up(self, number: int, digest: str) -> None:
        """Begin a scan: know what is kept for this base, 0 and "" where there is none."""
        base: list[int | str] = [number, digest]
        if base != self._base:
            kept = io.read_record(self._file)
            fits = isinstance(kept, dict) and kept.get("base") == base and isinstance(kept.get("digests"), dict)
            self._base, self._digests = base, kept["digests"] if fits else {}

    def holds(self, folder: str, digest: str) -> bool:
        """Whether nothing in this folder changed since all its files were known."""
        return self._digests.get(folder) == digest

    def note(self, folder: str, digest: str) -> None:
        """All that is in this folder was found in the base, as it is."""
        self._digests[folder] = digest
        self._noted = True

    def keep(self) -> None:
        """End a scan: keep what was noted, where that is possible."""
        if self._noted and self._base[0]:
            self._noted = False
            record = json.dumps({"base": self._base, "digests": self._digests})
            with contextlib.suppress(StorageIO, FileNotFoundError):
                io.write_file(self._file, record.encode("utf-8", "surrogatepass"), durable=False)


def _strange(paths: Iterable[str], ids: Iterable[str]) -> dict[int, str]:
    return {place: key for place, (path, key) in enumerate(zip(paths, ids, strict=True)) if key != stem_of(path)}
