"""A Whoosh index's files: their schema, and reading them.

Owns how a segment is opened and its posting blocks are read, and what is said when Whoosh fails over damaged files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whoosh import columns as whoosh_columns
from whoosh import fields, formats
from whoosh.codec.whoosh3 import W3LeafMatcher
from whoosh.filedb.filestore import FileStorage
from whoosh.index import FileIndex
from whoosh.matching import ListMatcher
from whoosh.reading import SegmentReader, TermNotFound

from memfs.errors import IndexUnavailable, MemfsError
from memfs.files import io

COLUMNS = "columns"
FIELD = "terms"
KEY = "key"
NO_KEY = 2**32 - 1
_BLOCKS = ("_read_ids", "_read_weights", "_next_block", "reset")

Block = tuple[Sequence[int], Sequence[float]]


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


def reads_blocks() -> bool:
    """Whether this Whoosh has the insides that reading whole posting blocks needs."""
    return all(hasattr(W3LeafMatcher, name) for name in _BLOCKS)


def open_leaves(folder: Path) -> list[tuple[SegmentReader, int]]:
    """Every segment's reader with the number of its first document."""
    with reported(folder):
        index = FileIndex(FileStorage(str(folder), readonly=True), schema=schema())
        return [] if index.is_empty() else list(index.reader().leaf_readers())


def file_names(folder: Path) -> list[str]:
    """The names in the folder."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def blocks(leaf: SegmentReader, term: str) -> Iterator[Block]:
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
    return IndexUnavailable(f"the Whoosh index cannot be read: {reason}", hint="it is made anew from the files")
