"""StampTable: which file contents an index describes, as a compact mapping from path to stamp.

A table never changes; changes are rows over it. ``UnchangedFolders`` compares many files with it at once.
"""

from __future__ import annotations

import contextlib
import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, compress
from pathlib import Path

from memfs.errors import StorageIO
from memfs.fs import io
from memfs.model import Candidate, Stamp
from memfs.model.ids import stem_of
from memfs.model.item import RACY_NS
from memfs.search import columns
from memfs.search.columns import Paths
from memfs.startup import Any

Rows = dict[str, Stamp | None]
"""What lies over a table: stamps that were added or replaced, None for what is gone."""
_NUMBERS = {"size": "q", "mtime": "q", "later": "q", "inode": "Q", "checked": "q"}
"""The columns of a table in their order, each with its widest type; of times but the first how much later each is."""
_DIGEST = 20  # bytes of git's ids
_MOST_MADE = 4096


class _Rows:
    """The rows of a table, each column unpacked when it is first asked for; shared by all tables over them."""

    def __init__(self, parts: Mapping[str, bytes | memoryview]) -> None:
        self.parts = parts
        self.paths = Paths.unpack(parts["paths"])
        self._made: dict[int, Stamp] = {}

    def __len__(self) -> int:
        return len(self.parts["blobs"]) // _DIGEST

    @cached_property
    def blobs(self) -> list[str]:
        digits, width = self.parts["blobs"].hex(), 2 * _DIGEST
        return [digits[at : at + width] for at in range(0, len(digits), width)]

    def blob(self, place: int) -> str:
        """One of the blobs; a few are had without unpacking them all."""
        return self.parts["blobs"][place * _DIGEST : (place + 1) * _DIGEST].hex()

    @cached_property
    def _numbers(self) -> list[array[Any]]:
        return [columns.unpack_numbers(self.parts[name]) for name in _NUMBERS]

    def facts(self, place: int) -> tuple[int, int, int, int, int]:
        """Size, times and inode of one of the files, and when it was read."""
        sizes, mtimes, later, inodes, checked = self._numbers
        mtime = mtimes[place]
        ctime = mtime + later[place]
        return sizes[place], mtime, ctime, inodes[place], ctime + checked[place]

    def stamp(self, place: int) -> Stamp:
        """One of the stamps."""
        made = self._made.get(place)
        if made is None:  # a resident is asked for those of some files again and again
            *facts, checked = self.facts(place)
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[place] = Stamp._make((*facts, self.blob(place), checked))
        return made


class StampTable(Mapping[str, Stamp]):
    """An unchangeable mapping from path to stamp that makes its stamps only when asked. The id of the item in a file is
    the stem of its path.

    ``first_unknown``, ``holder``, ``changed`` and ``pack`` are of the table without the rows over it.
    """

    def __init__(self, rows: _Rows) -> None:
        self._base = rows
        self._over: Rows = {}

    @classmethod
    def of(cls, known: Mapping[str, Stamp]) -> StampTable:
        """The table of these stamps by path: those of one folder together."""
        paths = sorted(known, key=lambda path: path.rpartition("/")[0])
        stamps = [known[path] for path in paths]
        numbers = (
            [stamp.size for stamp in stamps],
            [stamp.mtime_ns for stamp in stamps],
            [stamp.ctime_ns - stamp.mtime_ns for stamp in stamps],
            [stamp.inode for stamp in stamps],
            [stamp.checked_ns - stamp.ctime_ns for stamp in stamps],
        )
        parts = {"paths": Paths.of(paths).pack(), "blobs": bytes.fromhex("".join([one.blob for one in stamps]))}
        packed = [columns.pack_numbers(array(code, of)) for code, of in zip(_NUMBERS.values(), numbers, strict=True)]
        return cls(_Rows(parts | dict(zip(_NUMBERS, packed, strict=True))))

    def changed(self, gone: Collection[str], stamps: Mapping[str, Stamp]) -> StampTable:
        """A table without the paths in ``gone`` and with the given stamps added or replaced."""
        base, fresh = self._base, StampTable.of(stamps)._base
        kept = bytearray(b"\1") * len(base)
        for path in (*gone, *stamps):
            if (place := base.paths.place(path)) is not None:
                kept[place] = 0
        paths = base.paths.only(kept).followed_by(fresh.paths)
        blobs = base.parts["blobs"]
        left = [blobs[place * _DIGEST : (place + 1) * _DIGEST] for place in compress(range(len(base)), kept)]
        parts = {"paths": paths.pack(), "blobs": b"".join((*left, fresh.parts["blobs"]))}
        for name, code in _NUMBERS.items():
            both = (columns.unpack_numbers(rows.parts[name]) for rows in (base, fresh))
            parts[name] = columns.pack_numbers(array(code, chain(compress(next(both), kept), next(both))))
        made = StampTable(_Rows(parts))
        return StampTable.of(made) if paths.scattered else made

    def over(self, rows: Rows) -> StampTable:
        """This table with rows over it."""
        made = StampTable(self._base)
        made._over = rows
        return made

    def over_below(self, folder: str) -> dict[str, str]:
        """What lies over it below a folder that ends with "/": content's id by path, "" for what is gone."""
        return {path: stamp.blob if stamp else "" for path, stamp in self._over.items() if path.startswith(folder)}

    def over_folders(self) -> set[str]:
        """The folders of the paths in which rows lie over it."""
        return {path.rpartition("/")[0] for path in self._over}

    def __getitem__(self, path: str) -> Stamp:
        if (found := self.stamp(path)) is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self.blobs())

    def __len__(self) -> int:
        over = self._over.items()
        return len(self._base) + sum(
            (stamp is not None) - (self._base.paths.place(path) is not None) for path, stamp in over
        )

    def __contains__(self, path: object) -> bool:
        return self._over[path] is not None if path in self._over else self._base.paths.place(str(path)) is not None

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a path, None where it is unknown."""
        if path in self._over:
            return self._over[path]
        place = self._base.paths.place(path)
        return self._base.stamp(place) if place is not None else None

    def stamps(self, paths: Sequence[str]) -> dict[str, Stamp]:
        """The stamps of those of the paths that are known."""
        if self._over:
            return {path: stamp for path in paths if (stamp := self.stamp(path)) is not None}
        places = zip(paths, self._base.paths.places(paths), strict=True)
        return {path: self._base.stamp(place) for path, place in places if place is not None}

    def blob(self, path: str) -> str:
        """The id of a path's content, "" where it is unknown."""
        if path in self._over:
            stamp = self._over[path]
            return stamp.blob if stamp else ""
        place = self._base.paths.place(path)
        return self._base.blob(place) if place is not None else ""

    def first_unknown(self, found: Sequence[Candidate]) -> str | None:
        """The id of the first of these whose path it does not have under this id; None where it has all."""
        paths = self._base.paths
        for one, place in zip(found, paths.places([one.path for one in found]), strict=True):
            if place is None or stem_of(one.path) != one.id:
                return one.id
        return None

    def matches(self, path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bool:
        """Whether a file with these facts is known to hold what it held when it was stamped (``Stamp.racy``)."""
        facts = size, mtime_ns, ctime_ns, inode
        if path in self._over:
            stamp = self._over[path]
            return stamp is not None and stamp[:4] == facts and not stamp.racy
        place = self._base.paths.place(path)
        if place is None:
            return False
        *held, checked = self._base.facts(place)
        return (*held,) == facts and checked - max(mtime_ns, ctime_ns) >= RACY_NS

    def blobs(self) -> Iterator[tuple[str, str]]:
        """Every path with its content's id."""
        return self._each(self._base.blobs, ((path, stamp.blob) for path, stamp in self._over.items() if stamp))

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every path with its item's id; far quicker than making the stamps."""
        return self._each(self._base.paths.ids, ((path, stem_of(path)) for path, stamp in self._over.items() if stamp))

    def _each(self, column: list[str], fresh: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        over, base = self._over, zip(self._base.paths.all, column, strict=True)
        yield from base if not over else (one for one in base if one[0] not in over)
        yield from fresh

    def holder(self, id: str) -> str | None:  # noqa: A002
        """The path whose content the index holds under this id: of several, the one added last."""
        paths = self._base.paths
        place = paths.last_of(id.casefold())
        if place is not None and paths.id(place) != id:
            place = max(paths.places_of(id), default=None)
        return None if place is None else paths.path(place)

    def owners_over(self) -> dict[str, str]:
        """What lies over it: paths by id in one case."""
        return {stem_of(path).casefold(): path for path, stamp in self._over.items() if stamp}

    def owner(self, folded: str) -> str:
        """The path over which nothing lies and whose id this is in one case: of several, the one added last; "" for
        none.
        """
        paths = self._base.paths
        if (place := paths.last_of(folded)) is None:
            return ""
        if (path := paths.path(place)) not in self._over:
            return path
        rest = (path for path, key in self._each(paths.ids, ()) if key.casefold() == folded)
        return next(reversed(list(rest)), "")

    def pack(self) -> bytes:
        """The table as bytes."""
        return columns.pack({name: bytes(data) for name, data in self._base.parts.items()})

    @classmethod
    def unpack(cls, data: bytes) -> StampTable:
        """The table again.

        Raises:
            IndexUnavailable: these bytes are no table.
        """
        return cls(_Rows(columns.unpack(data)))


NO_STAMPS = StampTable.of({})
"""Nothing is known."""


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
