"""FtsMatch: what FTS5's score of a document says of it: how much a term weighs there.

Owns FTS5's own formula and the form of its table of sizes, so that ``sqlite`` can score by ours. Asks no database.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

from memfs.index import analyzer, bm25
from memfs.index.base import TermStatistics

WEIGHTS = f"{analyzer.TITLE_WEIGHT}, {analyzer.BODY_WEIGHT}, {analyzer.EXTRA_WEIGHT}"
SIZES = "(SELECT sz FROM terms_docsize WHERE id = t.rowid)"
_LEAST = 1e-6  # FTS5's idf of a term that more than half of all documents hold
_GRAIN = analyzer.EXTRA_WEIGHT
_COLUMNS = 3
_MORE = 0x80


def weigher(statistics: TermStatistics, term: str) -> Callable[[float, int], float]:
    """Tells of a document's score for one term, and its length, the term's weight in it.

    Exact, since every weight is a multiple of the least one.

    Args:
        statistics: of all documents that FTS5 holds.
    """
    held = statistics.frequencies[term]
    idf = log((statistics.items - held + 0.5) / (held + 0.5))
    most = (idf if idf > 0 else _LEAST) * (bm25.K1 + 1.0)
    first, second = bm25.length_terms(statistics.average_length)

    def weigh(score: float, length: int) -> float:
        share = score / most
        return round(share / (1.0 - share) * (first + second * length) / _GRAIN) * _GRAIN

    return weigh


def length(sizes: bytes) -> int:
    """How many terms a document has: the sum of its columns' sizes, each a number of SQLite's (seven bits a byte)."""
    if len(sizes) == _COLUMNS:
        return sum(sizes)
    total = number = 0
    for byte in sizes:
        number = number << 7 | byte & ~_MORE
        if not byte & _MORE:
            total, number = total + number, 0
    return total
