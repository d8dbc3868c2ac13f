"""PastFiles: the files of a workspace as a revision has them, or as the next commit will.

Owns reading them out of git as if they lay in a folder: links are not there, and times are those that a checkout at the
asked moment would give. What they hold is not its business.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from memfs.errors import HistoryError, ItemTooLarge
from memfs.files.scan import Entry
from memfs.files.tree import Content
from memfs.history.bulk import contents, sizes
from memfs.history.objects import FOLDER, REGULAR
from memfs.history.objects import Entry as Named
from memfs.history.repository import Repository
from memfs.history.trees import TreeEditor, split
from memfs.index.rows import micros
from memfs.model.stamp import Stamp
from memfs.store.parts import CONTENT

_MANY = 20
_BYTES_AHEAD = 32 << 20


class PastFiles:
    """The files of one commit (``memfs.files.tree.View``). May be used from several threads.

    Attributes:
        root: the workspace's folder, for those who ask where a view belongs.
        commit: the revision; "" where no commit has the files yet.
        tree: the id of ``ContextMemory`` there, "" where there is none.
    """

    def __init__(
        self,
        repository: Repository,
        commit: str,
        moment: datetime,
        staged: Mapping[str, Named] | None = None,
    ) -> None:
        """
        Args:
            moment: the time that every file carries.
            staged: what each path names, where no commit says so: the files that the next one will have.
        """
        self._repository = repository
        self.root = repository.workspace
        self.commit = commit
        self._time = micros(moment) * 1000
        self._staged = None if staged is None else _regular(staged)
        self.tree = self._tree()

    @cached_property
    def blobs(self) -> Mapping[str, str]:
        """Every file below ``ContextMemory``, by its path: git's id of its content."""
        if self._staged is not None:
            return {path: blob for path, blob in self._staged.items() if path.startswith(f"{CONTENT}/")}
        return self._repository.tree(self.commit, CONTENT)

    def get(self, path: str) -> bytes | None:
        """A file's bytes; None where it is not there."""
        if self._staged is not None:
            return self._repository.blob(self._staged[path]) if path in self._staged else None
        return self._repository.read(self.commit, path)

    def read(self, path: str, limit: int) -> Content:
        """A file's bytes and stamp.

        Raises:
            FileNotFoundError: it is not there.
            ItemTooLarge: it has more bytes than ``limit``.
            HistoryUnavailable: git cannot give it.
        """
        data = self.get(path)
        if data is None:
            raise FileNotFoundError(path)
        return self._content(path, data, limit)

    def content(self, path: str, limit: int) -> bytes:
        """As ``read``, of a path that ``blobs`` names: the bytes alone."""
        return self._content(path, self._repository.blob(self.blobs[path]), limit).data

    def ahead(self, paths: Collection[str], limit: int) -> dict[str, bytes]:
        """The bytes of many files that ``blobs`` names, asked of git together; what cannot be read so is left out.

        Asked one by one each costs a wait, which on a busy machine is most of the time.
        """
        if len(paths) < _MANY:
            return {}
        found: dict[str, bytes] = {}
        try:
            wanted = sizes(self._repository.git, (self.blobs[path] for path in paths))
            total = accumulate(wanted.values())
            fitting = {
                blob: size
                for (blob, size), upto in zip(wanted.items(), total, strict=True)
                if size <= limit and upto <= _BYTES_AHEAD
            }
            found.update(contents(self._repository.git, fitting))
        except HistoryError:  # whoever reads that file alone is told
            pass
        return {path: found[blob] for path in paths if (blob := self.blobs[path]) in found}

    def _tree(self) -> str:
        """The id of ``ContextMemory``; of staged files the one that it would get, as far as those are plain files."""
        if self._staged is None:
            found = self._repository.entry(self.commit, CONTENT)
            return found.id if found is not None and found.mode == FOLDER else ""
        inside = {os.fsencode(path.removeprefix(f"{CONTENT}/")): blob for path, blob in self.blobs.items()}
        editor = TreeEditor(self._repository.read_tree, {})
        return editor.apply(None, {split(name): blob for name, blob in inside.items()}) or ""

    def _content(self, path: str, data: bytes, limit: int) -> Content:
        if len(data) > limit:
            raise ItemTooLarge(f"{len(data)} bytes, limit {limit}", path=path, hint="split it into several")
        stamp = Stamp(len(data), self._time, self._time, 0, self._repository.blob_id(data), self._time)
        return Content(data, stamp)

    def entry(self, path: str) -> Entry | None:
        """The facts about a name, None where there is no such file."""
        if path not in self.blobs and self.get(path) is None:
            return None
        return Entry(path, 0, self._time, self._time, 0, True)

    def scan(self, folder: str, hidden: bool = False) -> Iterator[Entry]:
        """Every file below a folder of ``ContextMemory``; names that begin with a dot only where ``hidden``."""
        inside = f"{folder}/"
        for path in self.blobs:
            if path.startswith(inside) and (hidden or "/." not in path):
                yield Entry(path, 0, self._time, self._time, 0, True)


def _regular(entries: Mapping[str, Named]) -> dict[str, str]:
    """Path to content id of what is a file: no link, no submodule."""
    return {path: entry.id for path, entry in entries.items() if entry.mode in REGULAR}
