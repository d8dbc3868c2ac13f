"""Documents: what a search needs of one item's file, made once of its bytes, and kept for whoever meets them again.

Owns that narrowing and its form in a cache. A document is a function of the bytes, the path and the rules by which it
was made; the one thing that may be lacking in it is a time, where the file names none. Knows nothing of indexes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from sys import intern
from typing import Any

from memfs.index import analyzer
from memfs.index.rows import Row, micros, row_of
from memfs.model import MemoryItem
from memfs.model.ids import stem_of

FORM = 1
_ROW = (
    "type time importance context tags agent session sequence speaker role phase asks pinned".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One item as a search sees it.

    Attributes:
        row: its facts; ``time`` is 0 where ``timed`` is false.
        terms: each term's weight.
        length: how many terms it has.
        size: how many bytes its file has.
        since: when it was created, else when it happened, in microseconds; decides between two files of one id.
        timed: whether its file says when it happened.
    """

    row: Row
    terms: Mapping[str, float]
    length: int
    size: int
    since: int
    timed: bool

    def at(self, moment: int) -> Document:
        """The same, with this time in microseconds where its file names none."""
        if self.timed:
            return self
        return replace(self, row=replace(self.row, time=moment), since=moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Why a file is no item: the code, message, line and hint of its problem."""

    code: str
    message: str
    line: int | None
    hint: str


def document_of(item: MemoryItem, size: int, timed: bool) -> Document:
    """The document of an item in a file of so many bytes."""
    terms, length = analyzer.weighted_terms(item)
    row = row_of(item)
    born = item.created or item.timestamp
    return Document(
        row=row if timed else replace(row, time=0),
        terms=terms,
        length=length,
        size=size,
        since=micros(born) if timed and born is not None else 0,
        timed=timed,
    )


# -- as text --------------------------------------------------------------------------------------------------------
def packed(found: Document | Unfit) -> str:
    """A document as a line of text."""
    if isinstance(found, Unfit):
        return _text([found.code, found.message, found.line, found.hint])
    by_weight: dict[float, list[str]] = {}
    for term, weight in found.terms.items():
        by_weight.setdefault(weight, []).append(term)
    row: dict[str, Any] = {name: getattr(found.row, name) for name in _ROW}
    row["tags"] = list(found.row.tags)
    words = [[weight, " ".join(terms)] for weight, terms in by_weight.items()]
    return _text([[row[name] for name in _ROW], words, found.length, found.size, found.since, found.timed])


def unpacked(path: str, values: Any) -> Document | Unfit:
    """The document of the file at a path again, of what its line holds.

    Raises:
        ValueError: it holds something else.
    """
    try:
        if len(values) == 4:
            code, message, line, hint = values
            return Unfit(code=str(code), message=str(message), line=line, hint=str(hint))
        facts, words, length, size, since, timed = values
        row = dict(zip(_ROW, facts, strict=True))
        row["tags"] = tuple(row["tags"])
        return Document(
            row=Row(id=stem_of(path), path=path, **row),
            terms=_terms(words),
            length=int(length),
            size=int(size),
            since=int(since),
            timed=bool(timed),
        )
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"a document is damaged: {error}") from error


def _terms(words: Iterable[tuple[float, str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for weight, terms in words:
        found.update(dict.fromkeys(map(intern, terms.split(" ")), float(weight)))
    return found


def _text(values: list[Any]) -> str:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=str)
