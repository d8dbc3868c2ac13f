"""StampTable: which file contents an index describes: what the columns of its base say of files, with the rows over it.

A table never changes. ``UnchangedFolders`` compares many files with it at once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from memfs.errors import StorageIO
from memfs.fs import io
from memfs.model import Stamp
from memfs.model.ids import stem_of
from memfs.model.item import RACY_NS
from memfs.search.columns import DocumentColumns


class StampTable(Mapping[str, Stamp]):
    """An unchangeable mapping from path to stamp that makes its stamps only when asked. The id of the item in a file is
    the stem of its path.
    """

    def __init__(self, columns: DocumentColumns, over: Mapping[str, Stamp | None] = MappingProxyType({})) -> None:
        """
        Args:
            columns: of the base.
            over: stamps that were added or replaced, None for what is gone.
        """
        self.columns, self._over = columns, over

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
        return (path for path, _ in self.ids())

    def __len__(self) -> int:
        known = self.columns.number_at
        return len(self.columns.items) + sum(
            (stamp is not None) - (known(path) is not None) for path, stamp in self._over.items()
        )

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.stamp(path) is not None

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a path, None where it is unknown."""
        if path in self._over:
            return self._over[path]
        number = self.columns.number_at(path)
        return None if number is None else self.columns.stamp(number)

    def stamps(self, paths: Iterable[str]) -> dict[str, Stamp]:
        """The stamps of those of the paths that are known."""
        return {path: stamp for path in paths if (stamp := self.stamp(path)) is not None}

    def blob(self, path: str) -> str:
        """The id of a path's content, "" where it is unknown."""
        if path in self._over:
            stamp = self._over[path]
            return stamp.blob if stamp else ""
        number = self.columns.number_at(path)
        return "" if number is None else self.columns.blob(number)

    def matches(self, path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bool:
        """Whether a file with these facts is known to hold what it held when it was stamped (``Stamp.racy``)."""
        facts = size, mtime_ns, ctime_ns, inode
        if path in self._over:
            stamp = self._over[path]
            return stamp is not None and stamp[:4] == facts and not stamp.racy
        number = self.columns.number_at(path)
        if number is None:
            return False
        *held, checked = self.columns.facts(number)
        return (*held,) == facts and checked - max(mtime_ns, ctime_ns) >= RACY_NS

    def blobs(self) -> Iterator[tuple[str, str]]:
        """Every path with its content's id."""
        return self._each(self.columns.blobs, ((path, stamp.blob) for path, stamp in self._over.items() if stamp))

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every path with its item's id; far quicker than making the stamps."""
        return self._each(self.columns.ids, ((path, stem_of(path)) for path, stamp in self._over.items() if stamp))

    def _each(self, column: Sequence[str], fresh: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        over, known = self._over, self.columns
        rows: Iterable[tuple[str, str]] = zip(known.paths, column, strict=True)
        if len(known.items) < len(known):
            rows = ((known.paths[number], column[number]) for number in known.items)
        return chain((row for row in rows if row[0] not in over) if over else rows, fresh)

    def holder(self, id: str) -> str | None:  # noqa: A002
        """The path whose content the base holds under this id."""
        number = self.columns.number(id)
        return None if number is None else self.columns.path(number)

    def owners_over(self) -> dict[str, str]:
        """What lies over it: paths by id in one case."""
        return {stem_of(path).casefold(): path for path, stamp in self._over.items() if stamp}

    def owner(self, folded: str) -> str:
        """The path over which nothing lies and whose id this is in one case, "" for none."""
        number = self.columns.owner(folded)
        path = "" if number is None else self.columns.path(number)
        return "" if path in self._over else path


NO_STAMPS = StampTable(DocumentColumns.none())
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
