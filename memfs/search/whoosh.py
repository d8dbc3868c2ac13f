"""WhooshIndex: the engine on Whoosh, its scoring, and its files.

Whoosh keeps the postings: one field of terms with their weights, cut by our analyzer. Everything else about a document
is in ``DocumentColumns``, aligned by document number, and is what filters and answers are made of. Only what is right
in every distribution of Whoosh is used: one writer, deletion by document number, and whole posting blocks.

Whoosh unpickles what it opens: this engine is only ever given folders that ``memfs.search.generations`` has verified.
Its errors become ``IndexUnavailable``.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memfs.errors import IndexUnavailable, MemfsError
from memfs.fs import io
from memfs.model import Candidate, MemoryItem, Query
from memfs.search import analyzer, terms
from memfs.search.columns import DocumentColumns
from memfs.search.documents import Filter, IndexRow, Place, row_of
from memfs.search.engine import Asked, IndexStats, TermStatistics
from memfs.search.terms import PassageScores, PostingCache, Postings

# Whoosh imports asyncio and a client of HTTP, which take longer than all of Whoosh, for one name each: a decorator that
# ``functools`` has, and ``urlretrieve``, which it never calls. Another thread could take a stand-in for the module.
_STAND_INS: dict[str, Any] = {
    "cached_property": SimpleNamespace(cached_property=cached_property),
    "urllib.request": SimpleNamespace(urlretrieve=None),
}
_absent = _STAND_INS.keys() - sys.modules.keys() if threading.active_count() == 1 else set()
sys.modules.update({name: _STAND_INS[name] for name in _absent})
try:
    from whoosh import columns as whoosh_columns
    from whoosh import fields, formats
    from whoosh.codec.whoosh3 import W3Codec
    from whoosh.filedb.filestore import FileStorage
    from whoosh.index import FileIndex
    from whoosh.matching import ListMatcher
    from whoosh.reading import SegmentReader, TermNotFound
finally:
    for _name in _absent:
        del sys.modules[_name]

COLUMNS = "columns"
FIELD = "terms"
KEY = "key"
NO_KEY = 2**32 - 1


class TermsField(fields.FieldType):  # type: ignore[misc]
    """A field given as a mapping from term to weight; it stores neither positions nor lengths."""

    def __init__(self) -> None:
        super().__init__(format=formats.Existence(), analyzer=None)

    def index(self, value: Mapping[str, float], **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """Whoosh's question: term bytes, frequency, weight, value."""
        for term, weight in value.items():
            yield term.encode(), 1, weight, b""


def schema() -> fields.Schema:
    """One field of terms, one column of numbers that never change.

    Where the column's file is missing Whoosh gives every document the default, which is therefore nobody's number.
    """
    key = fields.COLUMN(whoosh_columns.NumericColumn("I", default=NO_KEY))
    return fields.Schema(**{FIELD: TermsField(), KEY: key})


def open_leaves(folder: Path) -> list[tuple[SegmentReader, int]]:
    """Every segment's reader with the number of its first document."""
    with reported(folder):
        index = FileIndex(FileStorage(str(folder), readonly=True), schema=schema())
        return [] if index.is_empty() else list(index.reader().leaf_readers())


def file_names(folder: Path) -> list[str]:
    """The names in the folder."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def blocks(leaf: SegmentReader, term: str) -> Iterator[Postings]:
    """The documents of one segment that hold a term, and their weights, a posting block at a time."""
    try:
        matcher = leaf.postings(FIELD, term)
    except TermNotFound:
        return
    matcher = getattr(matcher, "child", matcher)  # without the wrapper that leaves deleted documents out
    if isinstance(matcher, ListMatcher):
        yield matcher._ids, matcher._weights
        return
    while matcher.is_active():
        matcher._read_ids()
        matcher._read_weights()
        yield matcher._ids, matcher._weights
        matcher._next_block()


@contextmanager
def reported(folder: Path) -> Iterator[None]:
    """Say in our words whatever Whoosh raises: on damaged files that may be anything."""
    try:
        yield
    except MemfsError:
        raise
    except FileNotFoundError as error:
        raise unavailable(str(error)) from error
    except OSError as error:
        raise io.storage_error(error, "index", str(folder)) from error
    except Exception as error:
        raise unavailable(f"{type(error).__name__}: {error}") from error


def unavailable(reason: str) -> IndexUnavailable:
    """The error for an index that cannot be read."""
    return IndexUnavailable(f"the Whoosh index cannot be read: {reason}", hint="it is rebuilt from the files")


_LOCK = "MAIN_WRITELOCK"
_MEMORY_MB = 256
_MAX_SEGMENTS = 4
_MERGE_RATIO = 6


class WhooshWriter:
    """One open Whoosh writer and the rows it will leave behind."""

    def __init__(self, folder: Path, before: DocumentColumns) -> None:
        self._folder, self._before = folder, before
        self._rows: list[IndexRow] = []
        self._passages: list[int] = []
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
        self.remove(item.id)
        row = row_of(item)
        for passage, (weights, length) in enumerate(analyzer.weighted_terms(item)):
            with reported(self._folder):
                self._writer.add_document(**{FIELD: weights, KEY: self._next_key + len(self._rows)})
            self._rows.append(row)
            self._passages.append(passage)
            self._lengths.append(length)
        self.added.add(item.id)

    def remove(self, key: str) -> None:
        """Remove an id; an unknown one is ignored."""
        item = self._before.numbers.get(key)
        if item is not None and item not in self._dead:
            for number in self._before.passages_of(item):
                self._writer.delete_document(number)
                self._dead.add(number)

    def cancel(self) -> None:
        """Throw away what was not committed."""
        with suppress(Exception):  # it all is thrown away; an error that led here is already on its way
            self._writer.cancel()

    def commit(self) -> DocumentColumns:
        """Write all, and return the columns in the order Whoosh has now given the documents."""
        with io.operation("index:commit", self._folder), reported(self._folder):
            self._writer.commit(mergetype=_merge)
        io.unlink(self._folder / _LOCK, missing_ok=True)
        keys = range(self._next_key, self._next_key + len(self._rows))
        fresh = DocumentColumns.of(self._rows, self._passages, self._lengths, keys)
        with reported(self._folder):
            order, dead = self._numbering()
        columns = self._before.followed_by(fresh, order, dead)
        io.write_file(self._folder / COLUMNS, columns.pack(), durable=False)
        return columns

    def _numbering(self) -> tuple[list[int], set[int]]:
        """For each document number Whoosh has now, where its row was before or follows; and the deleted ones."""
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
        return len(self._before) + key - self._next_key if key >= self._next_key else self._places[key]

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


# Postings kept in memory, at most 4 MB of them: what is talked about is asked about again.
_REMEMBERED = 10_000


class WhooshIndex:
    """A Whoosh index in a folder. See ``memfs.search.engine.Index`` for the promises."""

    name = "whoosh"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._columns: DocumentColumns | None = None
        self._leaves: list[tuple[SegmentReader, int]] | None = None
        self._average: float | None = None
        self._open_writer: WhooshWriter | None = None
        self._held = PostingCache()
        self._frequencies: dict[str, int] = {}

    # -- writing ----------------------------------------------------------------------------------------------------
    def add(self, items: Iterable[MemoryItem]) -> None:
        for item in items:
            self._writer(item.id).add(item)

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            if key in self._known or (self._open_writer is not None and key in self._open_writer.added):
                self._writer(key).remove(key)

    def _writer(self, key: str) -> WhooshWriter:
        """The open writer; Whoosh cannot replace what it has not committed, so a second change of an id commits."""
        if self._open_writer is not None and key in self._open_writer.added:
            self.flush()
        if self._open_writer is None:
            known = self._known_columns()
            self._release()
            self._open_writer = WhooshWriter(self._folder, known)
        return self._open_writer

    def flush(self) -> None:
        if self._open_writer is not None:
            writer, self._open_writer = self._open_writer, None
            try:
                self._columns = writer.commit()
            except BaseException:
                writer.cancel()
                raise

    def clear(self) -> None:
        self.close()
        for name in file_names(self._folder):
            io.unlink(self._folder / name)
        self._columns = None

    def release(self) -> None:
        for leaf, _ in self._leaves or ():
            leaf.close()
        self._leaves = None

    def close(self) -> None:
        if self._open_writer is not None:
            self._open_writer.cancel()
            self._open_writer = None
        self._release()
        self._columns = None

    def _release(self) -> None:
        self.release()
        self._average = None
        self._held.clear()
        self._frequencies = {}

    # -- asking -----------------------------------------------------------------------------------------------------
    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            covered = {columns.numbers[key] for key in hidden if key in columns.numbers} if hidden else set()
            wanted = Filter.of(query)
            if not query.text:
                return [columns.candidate(number, 0.0) for number in columns.latest(wanted, covered, query.limit)]
            if asked is None:
                worth = terms.weights(query.text)
                asked = worth, self.statistics(worth)
            return columns.best(self._scores(*asked, wanted), columns.dead | covered, query.limit)

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            covered = {columns.numbers[key] for key in hidden if key in columns.numbers}
            return len(columns.latest(Filter.of(query), covered, len(columns.newest)))

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            numbers = columns.select(columns.at_places(places), Filter.of(query))
            found = [columns.candidate(number, 0.0) for number in numbers]
            return [candidate for candidate in found if candidate.id not in hidden]

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            held = [columns.numbers[key] for key in dict.fromkeys(ids) if key in columns.numbers and key not in hidden]
            return [columns.candidate(number, 0.0) for number in columns.select(held, Filter.of(query))]

    def talks(self) -> bool:
        self.flush()
        with reported(self._folder):
            return self._known_columns().talks

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        self.flush()
        with reported(self._folder):
            columns = self._known_columns()
            if self._average is None:
                self._average = columns.average_length()
            frequencies = {term: self._frequency(term) for term in terms}
            return TermStatistics(passages=len(columns), average_length=self._average, frequencies=frequencies)

    def _frequency(self, term: str) -> int:
        """In how many passages a term occurs; an answer asks several times."""
        known = self._frequencies.get(term)
        if known is None:
            if len(self._frequencies) >= _REMEMBERED:
                self._frequencies = {}
            known = sum(leaf.doc_frequency(FIELD, term) for leaf, _ in self._opened())
            self._frequencies[term] = known
        return known

    def terms(self, beginning: str) -> Iterable[str]:
        self.flush()
        with reported(self._folder):
            found = (leaf.expand_prefix(FIELD, beginning.encode()) for leaf, _ in self._opened())
            return [term.decode() for terms in found for term in terms]

    def ids(self) -> Collection[str]:
        self.flush()
        return self._known

    def stats(self) -> IndexStats:
        self.flush()
        size = sum((self._folder / name).stat().st_size for name in file_names(self._folder))
        return IndexStats(engine=self.name, items=self._known_columns().live, bytes=size)

    @property
    def segments(self) -> int:
        """How many segments a search reads."""
        return len(self._opened())

    @property
    def _known(self) -> Mapping[str, int]:
        return self._known_columns().numbers

    def _known_columns(self) -> DocumentColumns:
        if self._columns is None:
            self._columns = DocumentColumns.read(self._folder / COLUMNS)
        return self._columns

    def _opened(self) -> list[tuple[SegmentReader, int]]:
        """Every segment's reader with the number of its first document."""
        if self._leaves is None:
            self._leaves = open_leaves(self._folder) if len(self._known_columns()) else []
            if sum(leaf.doc_count_all() for leaf, _ in self._leaves) != len(self._known_columns()):
                raise unavailable("its columns do not fit its segments")
        return self._leaves

    # -- scoring ----------------------------------------------------------------------------------------------------
    def _scores(self, worth: Mapping[str, float], statistics: TermStatistics, wanted: Filter) -> PassageScores[int]:
        """The score of every document that holds one of the terms and passes every filter, dead ones too."""
        first, second = terms.length_terms(statistics.average_length)
        columns = self._known_columns()
        lengths = columns.lengths
        scores = PassageScores(columns.firsts)
        for term, factor in terms.factors(worth, statistics).items():
            numbers, weights = columns.passing(*self._postings(term), wanted)
            shares = [
                factor * weight / (weight + first + second * lengths[number])
                for number, weight in zip(numbers, weights, strict=True)
            ]
            scores.add(numbers, shares)
        return scores

    def _postings(self, term: str) -> Postings:
        """The documents of all segments that hold a term, and their weights; those asked for last are kept."""
        held = self._held.get(term)
        if held is not None:
            return held
        numbers, weights = array("I"), array("d")
        for leaf, base in self._opened():
            for some, theirs in blocks(leaf, term):
                numbers.extend([base + number for number in some])
                weights.extend(list(theirs))
        return self._held.hold(term, numbers, weights)
