"""TreePart: a number of documents that never change, ready to be searched: their columns, and which hold which term.

Owns their form on disk, in one file that is believed only as a whole. Scores are the business of ``treeindex``.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256

from memfs.errors import IndexUnavailable
from memfs.index import sections
from memfs.index.columns import Columns
from memfs.index.documents import Document
from memfs.model.ids import stem_of

_MAGIC = f"memfs-tree-1-{sys.byteorder}\n".encode()
_DIGEST = 32
_COLUMNS = "columns"
_MARKS = "marks"
_TERMS = "terms"
_STARTS, _NUMBERS, _WEIGHTS = "starts", "numbers", "weights"
_SINCE, _SIZES, _UNTIMED = "since", "sizes", "untimed"
_MOMENT = "moment"
_WIDE = 4

Postings = tuple[Sequence[int], Sequence[float]]


class TreePart:
    """Documents 0 to n-1.

    Attributes:
        columns: their rows and lengths.
    """

    def __init__(self, parts: Mapping[str, memoryview]) -> None:
        self._parts = parts
        self.columns = Columns(sections.unpack(bytes(parts[_COLUMNS])))

    @classmethod
    def of(cls, documents: Sequence[Document], marks: Sequence[str], moment: int) -> TreePart:
        """The part that holds these documents.

        Args:
            documents: of which each has a time.
            marks: by which each one's file is known again: its content id, and what else decides about it.
            moment: the time that those have whose files name none, in microseconds.
        """
        columns = Columns.of(
            [one.row for one in documents], [one.length for one in documents], list(range(len(documents)))
        )
        untimed = [number for number, one in enumerate(documents) if not one.timed]
        return cls(
            sections.unpack(
                sections.pack(
                    {
                        _COLUMNS: columns.pack(),
                        _MARKS: sections.pack_texts(marks),
                        _SINCE: sections.pack_numbers("q", [one.since for one in documents]),
                        _SIZES: sections.pack_numbers("q", [one.size for one in documents]),
                        _UNTIMED: sections.pack_numbers("I", untimed),
                        _MOMENT: sections.pack_numbers("q", [moment]),
                        **_inverted(documents),
                    }
                )
            )
        )

    def pack(self) -> bytes:
        """The part as bytes, with their digest."""
        body = sections.pack({name: bytes(data) for name, data in self._parts.items()})
        return _MAGIC + sha256(body).digest() + body

    @classmethod
    def unpack(cls, data: bytes) -> TreePart:
        """The part again.

        Raises:
            IndexUnavailable: these bytes are none, or were changed.
        """
        start = len(_MAGIC) + _DIGEST
        if not data.startswith(_MAGIC) or sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
            raise IndexUnavailable("the index of a revision is damaged", hint="it is made anew from the history")
        return cls(sections.unpack(data[start:]))

    def __len__(self) -> int:
        return len(self.columns)

    # -- files ------------------------------------------------------------------------------------------------------
    @cached_property
    def marks(self) -> list[str]:
        """The mark of each document's file."""
        return sections.unpack_texts(self._parts[_MARKS])

    @cached_property
    def since(self) -> array[int]:
        """See ``Document.since``."""
        return sections.unpack_numbers("q", self._parts[_SINCE])

    @cached_property
    def sizes(self) -> array[int]:
        """How many bytes each document's file has."""
        return sections.unpack_numbers("q", self._parts[_SIZES])

    @cached_property
    def untimed(self) -> frozenset[int]:
        """Numbers of documents whose files name no time."""
        return frozenset(sections.unpack_numbers("I", self._parts[_UNTIMED]))

    @cached_property
    def moment(self) -> int:
        """The time that those documents have whose files name none, in microseconds."""
        return int(sections.unpack_numbers("q", self._parts[_MOMENT])[0])

    @cached_property
    def owners(self) -> dict[str, int]:
        """The number of each document by its id, in one case."""
        return {stem_of(path).casefold(): number for number, path in enumerate(self.columns.paths)}

    def numbers_in(self, files: Mapping[str, str], moment: int) -> list[int]:
        """The numbers of the documents of these files (path to mark), as they are at this time."""
        untimed = self.untimed if moment != self.moment else ()
        found = zip(self.columns.paths, self.marks, strict=True)
        return [
            number for number, (path, mark) in enumerate(found) if files.get(path) == mark and number not in untimed
        ]

    # -- terms ------------------------------------------------------------------------------------------------------
    @cached_property
    def _terms(self) -> list[str]:
        return sections.unpack_texts(self._parts[_TERMS])

    @cached_property
    def _starts(self) -> array[int]:
        return sections.unpack_numbers("I", self._parts[_STARTS])

    def postings(self, term: str) -> Postings:
        """The numbers of the documents that hold a term, in order, and its weight in each."""
        place = bisect_left(self._terms, term)
        if place == len(self._terms) or self._terms[place] != term:
            return (), ()
        span = slice(self._starts[place] * _WIDE, self._starts[place + 1] * _WIDE)
        numbers = sections.unpack_numbers("I", self._parts[_NUMBERS][span])
        return numbers, sections.unpack_numbers("f", self._parts[_WEIGHTS][span])

    def terms(self, beginning: str) -> Iterator[str]:
        """The terms that begin so."""
        place = bisect_left(self._terms, beginning)
        while place < len(self._terms) and self._terms[place].startswith(beginning):
            yield self._terms[place]
            place += 1


def _inverted(documents: Sequence[Document]) -> dict[str, bytes]:
    """Which documents hold each term."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for number, one in enumerate(documents):
        for term, weight in one.terms.items():
            held = found.get(term)
            if held is None:
                found[term] = [number], [weight]
            else:
                held[0].append(number)
                held[1].append(weight)
    terms = sorted(found)
    starts, numbers, weights = array("I", [0]), array("I"), array("f")
    for term in terms:
        numbers.extend(found[term][0])
        weights.extend(found[term][1])
        starts.append(len(numbers))
    return {
        _TERMS: sections.pack_texts(terms),
        _STARTS: starts.tobytes(),
        _NUMBERS: numbers.tobytes(),
        _WEIGHTS: weights.tobytes(),
    }
