"""PastFiles: the files of a workspace as a revision has them.

Owns reading them out of git as if they lay in a folder: links are not there, and times are those that a checkout at the
asked moment would give. What they hold is not its business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from memfs.errors import HistoryError, ItemTooLarge
from memfs.files.scan import Entry
from memfs.files.tree import Content
from memfs.history.bulk import contents, sizes
from memfs.history.objects import FOLDER
from memfs.history.repository import Repository
from memfs.index.rows import micros
from memfs.model.stamp import Stamp
from memfs.store.parts import CONTENT

_MANY = 20
_BYTES_AHEAD = 32 << 20


class PastFiles:
    """The files of one commit (``memfs.files.tree.View``). May be used from several threads.

    Attributes:
        root: the workspace's folder, for those who ask where a view belongs.
        commit: the revision.
        tree: the id of ``ContextMemory`` there, "" where there is none.
    """

    def __init__(self, repository: Repository, commit: str, moment: datetime) -> None:
        """``moment``: the time that every file carries."""
        self._repository = repository
        self.root = repository.workspace
        self.commit = commit
        self._time = micros(moment) * 1000
        found = repository.entry(commit, CONTENT)
        self.tree = found.id if found is not None and found.mode == FOLDER else ""

    @cached_property
    def blobs(self) -> Mapping[str, str]:
        """Every file below ``ContextMemory``, by its path: git's id of its content."""
        return self._repository.tree(self.commit, CONTENT)

    def get(self, path: str) -> bytes | None:
        """A file's bytes; None where it is not there."""
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
