"""Writing a Whoosh index: one writer, deletion by document number, few segments.

Owns the open writer and which segments are merged; keeps ``Columns`` aligned with Whoosh's document numbers.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from whoosh.codec.whoosh3 import W3Codec
from whoosh.filedb.filestore import FileStorage
from whoosh.index import FileIndex
from whoosh.reading import SegmentReader

from memfs.files import io
from memfs.index import analyzer
from memfs.index.columns import Columns
from memfs.index.rows import Row, row_of
from memfs.index.whoosh.files import COLUMNS, FIELD, KEY, NO_KEY, open_leaves, reported, schema, unavailable
from memfs.model import MemoryItem

_LOCK = "MAIN_WRITELOCK"
_MEMORY_MB = 256
_MAX_SEGMENTS = 4
_MERGE_RATIO = 6


class Writing:
    """One open Whoosh writer and the rows it will leave behind."""

    def __init__(self, folder: Path, before: Columns) -> None:
        self._folder = folder
        self._before = before
        self._rows: list[Row] = []
        self._lengths: list[int] = []
        self._dead: set[int] = set()
        self._next_key = max(before.keys, default=-1) + 1
        self.added: set[str] = set()
        codec = W3Codec()
        codec.length_stats = False  # lengths are ours; Whoosh would look for its own once for every posting
        with reported(folder):
            storage = FileStorage(str(folder))
            if not len(before):
                storage.create()
                FileIndex.create(storage, schema())
            index = FileIndex(storage, schema=schema())
            self._writer = index.writer(limitmb=_MEMORY_MB, compound=False, codec=codec)
        counts = [segment.doc_count_all() for segment in self._writer.segments]
        names = [segment.segment_id() for segment in self._writer.segments]
        self._bases = dict(zip(names, accumulate(counts, initial=0), strict=False))

    def add(self, item: MemoryItem) -> None:
        """Add an item in place of the one of its id."""
        self._drop(item.id)
        weights, length = analyzer.weighted_terms(item)
        with reported(self._folder):
            self._writer.add_document(**{FIELD: weights, KEY: self._next_key + len(self._rows)})
        self._rows.append(row_of(item))
        self._lengths.append(length)
        self.added.add(item.id)

    def remove(self, key: str) -> None:
        """Remove an id; an unknown one is ignored."""
        self._drop(key)

    def _drop(self, key: str) -> None:
        number = self._before.numbers.get(key)
        if number is not None and number not in self._dead:
            self._writer.delete_document(number)
            self._dead.add(number)

    def cancel(self) -> None:
        """Throw away what was not committed."""
        with suppress(Exception):  # it all is thrown away; an error that led here is already on its way
            self._writer.cancel()

    def commit(self) -> Columns:
        """Write all, and return the columns in the order Whoosh has now given the documents."""
        with io.operation("index:commit", self._folder), reported(self._folder):
            self._writer.commit(mergetype=_merge)
        io.unlink(self._folder / _LOCK, missing_ok=True)
        keys = range(self._next_key, self._next_key + len(self._rows))
        fresh = Columns.of(self._rows, self._lengths, keys)
        with reported(self._folder):
            order, dead = self._numbering()
        columns = self._before.followed_by(fresh, order, dead)
        io.write_file(self._folder / COLUMNS, columns.pack(), durable=False)
        return columns

    def _numbering(self) -> tuple[list[int], set[int]]:
        """For each document number Whoosh has now, where its row stood before or follows; and the deleted ones."""
        order: list[int] = []
        dead: set[int] = set()
        with ExitStack() as closing:
            leaves = open_leaves(self._folder)
            for leaf, _ in leaves:
                closing.callback(leaf.close)
            for leaf, base in leaves:
                count = leaf.doc_count_all()
                before = self._bases.get(leaf.segment().segment_id())
                if before is not None:
                    order += range(before, before + count)
                else:
                    column = leaf.column_reader(KEY)
                    order += [self._place(column[number]) for number in range(count)]
                dead |= {base + number for number in leaf.segment().deleted_docs()}
        return order, dead

    def _place(self, key: int) -> int:
        if key == NO_KEY:
            raise unavailable("the numbers of its documents are gone")
        if key >= self._next_key:
            return len(self._before) + key - self._next_key
        return self._places[key]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {key: place for place, key in enumerate(self._before.keys)}


def _merge(writer: Any, segments: list[Any]) -> list[Any]:
    """Whoosh's question which segments to keep: few, each several times the sum of the smaller ones, none half dead.

    The others are merged into the one being written.
    """
    gathered = writer.doc_count()
    kept: list[Any] = []
    for segment in sorted(segments, key=lambda one: one.doc_count_all()):
        alive = segment.doc_count_all() - segment.deleted_count()
        if alive < _MERGE_RATIO * gathered or alive * 2 < segment.doc_count_all():
            _absorb(writer, segment)
            gathered += alive
        else:
            kept.append(segment)
    while len(kept) >= _MAX_SEGMENTS:
        _absorb(writer, kept.pop(0))
    return kept


def _absorb(writer: Any, segment: Any) -> None:
    if segment.deleted_count() == segment.doc_count_all():
        return
    reader = SegmentReader(writer.storage, writer.schema, segment)
    writer.add_reader(reader)
    reader.close()
