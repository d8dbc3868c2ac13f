"""StampTable: which file contents an index describes, as a compact mapping from path to (id, stamp).

A table never changes; changes are rows over it. ``UnchangedFolders`` compares many files with it at once.
"""

from __future__ import annotations

import contextlib
import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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


class _Columns:
    """The rows of a table, each column unpacked when it is first asked for; shared by all tables over them."""

    def __init__(
        self,
        paths: list[str] | memoryview,
        strange: Mapping[int, str],
        numbers: Sequence[array[Any]],
        blobs: list[str] | memoryview,
    ) -> None:
        """
        Args:
            paths: as they are, or packed.
            strange: ids that are not their path's stem, by place.
            numbers: the columns that ``_NUMBERS`` names.
            blobs: as git writes them, or the bytes of them all.
        """
        self._given = paths, blobs
        self.strange, self.numbers = strange, numbers
        self._made: dict[int, Stamp] = {}

    def __len__(self) -> int:
        return len(self.numbers[0])

    @cached_property
    def paths(self) -> list[str]:
        given = self._given[0]
        return given if isinstance(given, list) else columns.unpack_texts(given)

    @cached_property
    def places(self) -> dict[str, int]:
        return dict(zip(self.paths, range(len(self)), strict=True))

    @cached_property
    def blobs(self) -> list[str]:
        given = self._given[1]
        if isinstance(given, list):
            return given
        digits, width = given.hex(), 2 * len(given) // (len(self) or 1)
        return [digits[at : at + width] for at in range(0, len(digits), width)]

    def blob(self, place: int) -> str:
        """One of the blobs; a few are had without unpacking them all."""
        given = self._given[1]
        if isinstance(given, list):
            return given[place]
        width = len(given) // len(self)
        return given[place * width : (place + 1) * width].hex()

    def stamp(self, place: int) -> Stamp:
        """One of the stamps."""
        made = self._made.get(place)
        if made is None:  # a resident is asked for those of some files again and again
            size, mtime, ctime, inode, checked = [column[place] for column in self.numbers]
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[place] = Stamp(size, mtime, ctime, inode, self.blob(place), checked)
        return made

    @cached_property
    def ids(self) -> list[str]:
        # ``stem_of`` of each, spelt out: that takes half the time.
        ids = [path.rpartition("/")[2].rpartition(".")[0] for path in self.paths]
        for place, key in self.strange.items():
            ids[place] = key
        return ids

    def id(self, place: int) -> str:
        """One of the ids."""
        strange = self.strange.get(place)
        return stem_of(self.paths[place]) if strange is None else strange

    @cached_property
    def holders(self) -> dict[str, str]:
        return dict(zip(self.ids, self.paths, strict=True))


class StampTable(Mapping[str, Entry]):
    """An unchangeable mapping from path to (id, stamp) that makes its stamps only when asked.

    ``stranger``, ``holder``, ``id_count``, ``changed`` and ``pack`` are of the table without the rows over it.
    """

    def __init__(self, rows: _Columns) -> None:
        self._base = rows
        self._over: Rows = {}

    @classmethod
    def of(cls, entries: Mapping[str, Entry]) -> StampTable:
        """The table of these entries."""
        stamps = [stamp for _, stamp in entries.values()]
        facts = zip(*[(*stamp[:4], stamp.checked_ns) for stamp in stamps], strict=True) if stamps else [()] * 5
        numbers = [array(code, of) for code, of in zip(_NUMBERS.values(), facts, strict=True)]
        strange = _strange(entries, [key for key, _ in entries.values()])
        return cls(_Columns(list(entries), strange, numbers, [stamp.blob for stamp in stamps]))

    def changed(self, gone: Collection[str], entries: Mapping[str, Entry]) -> StampTable:
        """A table without the paths in ``gone`` and with the given entries added or replaced."""
        base, fresh = self._base, StampTable.of(entries)._base
        out = {place for path in (*gone, *entries) if (place := base.places.get(path)) is not None}
        kept = [place for place in range(len(base)) if place not in out]
        paths = [base.paths[place] for place in kept] + fresh.paths
        numbers = [
            array(column.typecode, [column[place] for place in kept]) + added
            for column, added in zip(base.numbers, fresh.numbers, strict=True)
        ]
        strange = _strange(paths, [*map(base.id, kept), *map(fresh.id, range(len(fresh)))])
        return StampTable(_Columns(paths, strange, numbers, [base.blobs[place] for place in kept] + fresh.blobs))

    def over(self, rows: Rows) -> StampTable:
        """This table with rows over it."""
        made = StampTable(self._base)
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
            place = self._base.places[path]
            return self._base.id(place), self._base.stamp(place)
        row = self._over[path]
        if row is None:
            raise KeyError(path)
        return row

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self.blobs())

    def __len__(self) -> int:
        over = self._over.items()
        return len(self._base) + sum((row is not None) - (path in self._base.places) for path, row in over)

    def __contains__(self, path: object) -> bool:
        return self._over[path] is not None if path in self._over else path in self._base.places

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a path, None where it is unknown."""
        if path in self._over:
            row = self._over[path]
            return row[1] if row else None
        place = self._base.places.get(path)
        return self._base.stamp(place) if place is not None else None

    def blob(self, path: str) -> str:
        """The id of a path's content, "" where it is unknown."""
        if path in self._over:
            row = self._over[path]
            return row[1].blob if row else ""
        place = self._base.places.get(path)
        return self._base.blob(place) if place is not None else ""

    def stranger(self, found: Iterable[Candidate]) -> str | None:
        """The id of the first of these whose path it does not have under this id; None where it has all."""
        places, strange = self._base.places, self._base.strange
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
        place = self._base.places.get(path)
        if place is None:
            return False
        sizes, mtimes, ctimes, inodes, checked = self._base.numbers
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
        return self._each(self._base.blobs, ((path, row[1].blob) for path, row in self._over.items() if row))

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every path with its item's id; far quicker than making the stamps."""
        return self._each(self._base.ids, ((path, row[0]) for path, row in self._over.items() if row))

    def _each(self, column: list[str], fresh: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        over, base = self._over, zip(self._base.paths, column, strict=True)
        yield from base if not over else (one for one in base if one[0] not in over)
        yield from fresh

    def holder(self, id: str) -> str | None:  # noqa: A002
        """The path whose content the index holds under this id: of several, the one added last."""
        return self._base.holders.get(id)

    @property
    def id_count(self) -> int:
        """How many different ids there are."""
        return len(self._base.holders)

    def pack(self) -> bytes:
        """The table as bytes."""
        base = self._base
        widths = {len(blob) for blob in base.blobs}
        width = widths.pop() if len(widths) == 1 and widths <= _DIGESTS else 0
        parts = {
            "paths": columns.pack_texts(base.paths),
            "ids": columns.pack_json(base.strange),
            "width": columns.pack_json(width),
            "blobs": bytes.fromhex("".join(base.blobs)) if width else columns.pack_json(base.blobs),
        }
        return columns.pack(parts | {name: of.tobytes() for name, of in zip(_NUMBERS, base.numbers, strict=True)})

    @classmethod
    def unpack(cls, data: bytes) -> StampTable:
        """The table again.

        Raises:
            IndexUnavailable: these bytes are no table.
        """
        parts = columns.unpack(data)
        try:
            strange = {int(place): key for place, key in columns.unpack_json(parts["ids"]).items()}
            width = columns.unpack_json(parts["width"])
            blobs = parts["blobs"] if width else columns.unpack_json(parts["blobs"])
            numbers = [columns.unpack_numbers(code, parts[name]) for name, code in _NUMBERS.items()]
            rows = len(numbers[0])
            held = len(blobs) * 2 / width if width else len(blobs)
            counts = {columns.count_texts(parts["paths"]), held, *map(len, numbers)}
            if counts != {rows} or not all(0 <= place < rows for place in strange):
                raise ValueError("its columns do not fit together")
            if not {type(text) for text in (*strange.values(), *(() if width else blobs))} <= {str}:
                raise ValueError("a text is none")
        except (ValueError, AttributeError, LookupError, TypeError) as error:
            raise columns.unreadable(error) from error
        return cls(_Columns(parts["paths"], strange, numbers, blobs))


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
        self._trees: dict[str, str] = {}
        self._noted = False

    def take_up(self, number: int, digest: str) -> None:
        """Begin a scan: know what is kept for this base, 0 and "" where there is none."""
        base: list[int | str] = [number, digest]
        if base != self._base:
            kept = io.read_record(self._file)
            fits = isinstance(kept, dict) and kept.get("base") == base
            found = [kept.get(name) if fits else None for name in ("digests", "trees")]
            self._base, (self._digests, self._trees) = base, [one if isinstance(one, dict) else {} for one in found]

    def follow(self, before: tuple[int, str], now: tuple[int, str], changed: Iterable[str]) -> None:
        """Keep what is known of one base for the next, which was made of it and differs in these folders alone."""
        if self._base == [*before] and now[0] == before[0] + 1:
            self._base = [*now]
            for folder in changed:
                self._digests.pop(folder, None)
                self._trees.pop(folder, None)
            self._noted = True
            self.keep()

    def holds(self, folder: str, digest: str) -> bool:
        """Whether nothing in this folder changed since all its files were known."""
        return self._digests.get(folder) == digest

    def note(self, folder: str, digest: str) -> None:
        """All that is in this folder was found in the base, as it is."""
        self._digests[folder] = digest
        self._trees.pop(folder, None)
        self._noted = True

    def tree(self, folder: str) -> str:
        """The id of git's tree of what is in an unchanged folder, "" where nobody noted it."""
        return self._trees.get(folder, "")

    def note_tree(self, folder: str, tree: str) -> None:
        """Note that id; it counts until something in the folder changes."""
        self._trees[folder] = tree
        self._noted = True

    def keep(self) -> None:
        """End a scan: keep what was noted, where that is possible."""
        if self._noted and self._base[0]:
            self._noted = False
            record = json.dumps({"base": self._base, "digests": self._digests, "trees": self._trees})
            with contextlib.suppress(StorageIO, FileNotFoundError):
                io.write_file(self._file, record.encode("utf-8", "surrogatepass"), durable=False)


def _strange(paths: Iterable[str], ids: Iterable[str]) -> dict[int, str]:
    return {place: key for place, (path, key) in enumerate(zip(paths, ids, strict=True)) if key != stem_of(path)}
