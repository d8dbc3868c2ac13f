"""WhooshIndex: the engine on Whoosh.

Whoosh keeps the postings: one field of terms with their weights, cut by our analyzer.
Only what is right in every distribution of Whoosh is used: one writer, and whole posting blocks.

Whoosh unpickles what it opens: this engine is only ever given folders that ``memfs.search.generations`` has verified.
Its errors become ``IndexUnavailable``.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

from memfs.errors import MemfsError
from memfs.fs import io
from memfs.search.columns import DocumentColumns
from memfs.search.engine import ColumnIndex
from memfs.search.terms import Postings
from memfs.startup import Any, json

# Whoosh imports asyncio and a client of HTTP, which take longer than all of Whoosh, for one name each: a decorator that
# ``functools`` has, and ``urlretrieve``, which it never calls. Another thread could take a substitute for the module.
_STAND_INS: dict[str, Any] = {
    "cached_property": SimpleNamespace(cached_property=cached_property),
    "urllib.request": SimpleNamespace(urlretrieve=None),
}
_absent = _STAND_INS.keys() - sys.modules.keys() if threading.active_count() == 1 else set()
sys.modules.update({name: _STAND_INS[name] for name in _absent})
try:
    from whoosh import fields, formats
    from whoosh.codec.whoosh3 import W3Codec
    from whoosh.filedb.filestore import FileStorage
    from whoosh.index import FileIndex
    from whoosh.matching import ListMatcher
    from whoosh.reading import SegmentReader, TermNotFound
finally:
    for _name in _absent:
        del sys.modules[_name]

FIELD = "terms"
SEGMENTS = "segments"
"""By the name of each of Whoosh's segments, from which document to which it has, in its order."""
_LOCK = "MAIN_WRITELOCK"
_MEMORY_MB = 256
_MAX_SEGMENTS = 4
_MERGE_RATIO = 6


class TermsField(fields.FieldType):  # type: ignore[misc]
    """A field given as a mapping from term to weight; it stores neither positions nor lengths."""

    def __init__(self) -> None:
        super().__init__(format=formats.Existence(), analyzer=None)

    def index(self, value: Mapping[str, float], **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """Whoosh's question: term bytes, frequency, weight, value."""
        for term, weight in value.items():
            yield term.encode(), 1, weight, b""


def schema() -> fields.Schema:
    """One field of terms."""
    return fields.Schema(**{FIELD: TermsField()})


def blocks(leaf: SegmentReader, term: str) -> Iterator[Postings]:
    """The documents of one segment that hold a term, and their weights, a posting block at a time."""
    try:
        matcher = leaf.postings(FIELD, term)
    except TermNotFound:
        return
    if isinstance(matcher, ListMatcher):
        yield matcher._ids, matcher._weights
        return
    while matcher.is_active():
        matcher._read_ids()
        matcher._read_weights()
        yield matcher._ids, matcher._weights
        matcher._next_block()


class WhooshIndex(ColumnIndex):
    """An index with its postings in Whoosh. See ``memfs.search.engine.Index`` for the promises."""

    name = "whoosh"

    def __init__(self, folder: Path, columns: DocumentColumns | None = None) -> None:
        super().__init__(folder, columns)
        self._leaves: list[tuple[SegmentReader, array[int]]] | None = None
        self._writer: Any = None
        self._first = self._after = 0

    # -- writing ----------------------------------------------------------------------------------------------------
    def put(self, number: int, weights: Mapping[str, float]) -> None:
        if self._writer is None:
            self.release()
            codec = W3Codec()
            codec.length_stats = False  # lengths are ours; Whoosh would look for its own once for every posting
            storage = FileStorage(str(self._folder))
            if not self.begun:
                storage.create()
                FileIndex.create(storage, schema())
            self._writer = FileIndex(storage, schema=schema()).writer(limitmb=_MEMORY_MB, compound=False, codec=codec)
            self._first = number
        self._writer.add_document(**{FIELD: weights})
        self._after = number + 1

    def commit(self) -> None:
        if self._writer is None:
            return
        writer, known = self._writer, self._segments()
        kept, absorbed = _parted(writer.segments, writer.doc_count())

        def merge(writer: Any, _: list[Any]) -> list[Any]:
            for segment in absorbed:
                reader = SegmentReader(writer.storage, writer.schema, segment)
                writer.add_reader(reader)
                reader.close()
            return [*kept]  # to which Whoosh adds the new one

        writer.commit(mergetype=merge)
        self._writer = None
        io.unlink(self._folder / _LOCK, missing_ok=True)
        spans = [span for segment in absorbed for span in known[segment.segment_id()]]
        made = {segment.segment_id(): known[segment.segment_id()] for segment in kept}
        made[writer.newsegment.segment_id()] = [[self._first, self._after], *spans]
        io.write_file(self._folder / SEGMENTS, json.dumps(made).encode(), durable=False)

    def _segments(self) -> dict[str, list[list[int]]]:
        return dict(json.loads(io.read_file(self._folder / SEGMENTS))) if self.begun else {}

    # -- reading ----------------------------------------------------------------------------------------------------
    def read(self, term: str) -> Iterator[Postings]:
        for leaf, numbers in self._opened():
            for some, weights in blocks(leaf, term):
                yield [numbers[one] for one in some], [*weights]

    def terms(self, beginning: str) -> Iterable[str]:
        self.flush()
        with self:
            found = (leaf.expand_prefix(FIELD, beginning.encode()) for leaf, _ in self._opened())
            return [term.decode() for terms in found for term in terms]

    @property
    def segments(self) -> int:
        """How many segments a search reads."""
        return len(self._opened())

    def _opened(self) -> list[tuple[SegmentReader, array[int]]]:
        """Every segment's reader with the numbers of its documents."""
        if self._leaves is None:
            leaves: list[tuple[SegmentReader, array[int]]] = []
            with ExitStack() as undo:
                if self.begun:
                    known = self._segments()
                    reader = FileIndex(FileStorage(str(self._folder), readonly=True), schema=schema()).reader()
                    undo.callback(reader.close)
                    for leaf, _ in reader.leaf_readers():
                        spans = known[leaf.segment().segment_id()]
                        leaves.append((leaf, array("I", chain.from_iterable(range(*span) for span in spans))))
                if sum(leaf.doc_count_all() for leaf, _ in leaves) != len(self.known):
                    raise self.unavailable("its columns do not fit its segments")
                undo.pop_all()
            self._leaves = leaves
        return self._leaves

    def release(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # it all is thrown away; an error that led here is already on its way
                self._writer.cancel()
        for leaf, _ in self._leaves or ():
            leaf.close()
        self._leaves = self._writer = None

    def translated(self, error: Exception) -> MemfsError | None:
        if isinstance(error, MemfsError):
            return None
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            return io.storage_error(error, "index", str(self._folder))
        return self.unavailable(f"{type(error).__name__}: {error}")  # on damaged files Whoosh may raise anything


def _parted(segments: list[Any], gathered: int) -> tuple[list[Any], list[Any]]:
    """Which segments to keep, few, each several times the sum of the smaller ones; and which to merge into a new one.

    Args:
        gathered: how many documents the new one has.
    """
    kept: list[Any] = []
    absorbed: list[Any] = []
    for segment in sorted(segments, key=lambda one: one.doc_count_all()):
        if segment.doc_count_all() < _MERGE_RATIO * gathered:
            absorbed.append(segment)
            gathered += segment.doc_count_all()
        else:
            kept.append(segment)
    surplus = max(0, len(kept) - _MAX_SEGMENTS + 1)
    return kept[surplus:], absorbed + kept[:surplus]
