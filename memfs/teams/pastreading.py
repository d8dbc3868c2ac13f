"""PastReading: the items in the files of a revision, and what a search needs of each.

Owns which files hold items, and that a file met before in any revision is not read again. What a search does with them
is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice

from memfs.errors import ContentError, HistoryError, MemfsError
from memfs.files.codec import Codec
from memfs.files.secrets import refuse_file
from memfs.index.documentcache import DocumentCache
from memfs.index.documents import Document, Unfit, document_of
from memfs.model import BUILT_IN, KindTable, MemoryItem, Problem
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.stamp import Stamp
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, below_content
from memfs.teams.pastfiles import PastFiles
from memfs.upkeep.kindfile import PATH as KINDS_FILE

_AT_ONCE = 500
_NEVER = datetime(1, 1, 1, microsecond=1, tzinfo=UTC)
"""Stands for the time of a file that names none."""
_STRAY = ContentError(
    "this folder belongs to no memory type",
    hint="move the file below memories/<type>/, or add the type to kinds.yaml",
)

Progress = Callable[[int, int], None]


class PastReading:
    """Reads the items of one revision. May be used from several threads."""

    def __init__(
        self, files: PastFiles, codec: Codec, kinds: KindTable, cache: DocumentCache, moment: datetime
    ) -> None:
        """``moment``: the time of items whose files name none."""
        self._files = files
        self._codec = codec
        self._kinds = kinds
        self._cache = cache
        self._moment = moment
        self._built_in = frozenset(kind.name for kind in BUILT_IN)

    def candidates(self) -> dict[str, str]:
        """Path to mark of every file that should hold an item: by its mark a file is known again in any revision."""
        folders = tuple({f"{CONTENT}/{kind.folder.split('/')[0]}/" for kind in self._kinds})
        endings: dict[str, str] = {}
        found = {}
        for path, blob in self._files.blobs.items():
            if path.startswith(folders) and path.endswith(ITEM_SUFFIXES) and "/." not in path:
                folder = path.rpartition("/")[0]
                if folder not in endings:
                    endings[folder] = self._ending(path)
                found[path] = blob + endings[folder]
        return found

    def item(self, path: str) -> MemoryItem:
        """The item in a file.

        Raises:
            FileNotFoundError: it is not there.
            ContentError, IdInvalid: it is invalid.
            HistoryUnavailable: git cannot give it.
        """
        data = self._files.read(path, ITEM_LIMIT).data
        return self._codec.read(data, path, self._moment)

    def stamp(self, path: str) -> Stamp:
        """What tells a file's content from any other.

        Raises:
            FileNotFoundError: it is not there.
        """
        blob = self._files.blobs.get(path)
        if blob is None:
            raise FileNotFoundError(path)
        return Stamp(0, 0, 0, 0, blob, 0)

    def documents(self, files: Mapping[str, str], progress: Progress | None = None) -> dict[str, Document | Unfit]:
        """What a search needs of each file (path to mark), by path.

        Raises:
            HistoryUnavailable: git cannot give one of them.
        """
        found = self._cache.found(files)
        lacking = iter([path for path in files if path not in found])
        while some := list(islice(lacking, _AT_ONCE)):
            ahead = self._files.ahead(some, ITEM_LIMIT)
            made = {path: self._document(path, ahead.get(path)) for path in some}
            self._cache.keep((path, files[path], one) for path, one in made.items())
            found.update(made)
            if progress is not None:
                progress(len(found), len(files))
        return found

    def _ending(self, path: str) -> str:
        """What decides about the files of a folder beside their bytes: outside of the built-in kinds, all kinds."""
        kind = self._kinds.at(below_content(path))
        built_in = kind is not None and kind.name in self._built_in
        return "" if built_in else f" {self._files.blobs.get(KINDS_FILE, '')}"

    def _document(self, path: str, data: bytes | None) -> Document | Unfit:
        """What a search needs of a file, whose bytes may have been read already."""
        try:
            if self._kinds.at(below_content(path)) is None:
                raise _STRAY
            if data is None:
                data = self._files.content(path, ITEM_LIMIT)
            refuse_file(data, path)
            item = self._codec.read(data, path, _NEVER)
        except HistoryError:
            raise
        except MemfsError as error:
            return unfit(error, path)
        timed = item.created is not None or item.timestamp != _NEVER
        return document_of(item, len(data), timed)


def unfit(error: MemfsError, path: str) -> Unfit:
    """What an error says of a file."""
    problem = Problem.of(error, path)
    return Unfit(code=problem.code, message=problem.message, line=problem.line, hint=problem.hint)


def problems_of(left: Mapping[str, Unfit]) -> Iterator[Problem]:
    """What is wrong with files, by path."""
    for path in sorted(left):
        one = left[path]
        yield Problem(path=path, code=one.code, message=one.message, line=one.line, hint=one.hint)
