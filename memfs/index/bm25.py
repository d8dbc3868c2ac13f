"""BM25: the one formula by which every engine scores, so that scores of several collections compare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import log

from memfs.index.base import TermStatistics

K1 = 1.2
B = 0.75


def idf(items: int, frequency: int) -> float:
    """How much a term says that ``frequency`` of ``items`` hold; always above 0."""
    frequency = min(frequency, items)
    return log(1.0 + (items - frequency + 0.5) / (frequency + 0.5))


def length_terms(average_length: float) -> tuple[float, float]:
    """The two constants of the denominator: ``weight + first + second * length``."""
    return K1 * (1.0 - B), K1 * B / (average_length or 1.0)


def joined(parts: Iterable[TermStatistics], terms: Collection[str]) -> TermStatistics:
    """The statistics of several collections seen as one."""
    items = 0
    length = 0
    frequencies: dict[str, int] = dict.fromkeys(terms, 0)
    for part in parts:
        items += part.items
        length += round(part.average_length * part.items)  # the whole number it was: the mean over all is exact then
        for term in terms:
            frequencies[term] += part.frequencies.get(term, 0)
    return TermStatistics(items=items, average_length=length / items if items else 0.0, frequencies=frequencies)


def factors(worth: Mapping[str, float], statistics: TermStatistics) -> Mapping[str, float]:
    """For each term the constant its weight in an item is multiplied with, what the term is worth included."""
    known = statistics.frequencies
    return {term: share * idf(statistics.items, known.get(term, 0)) * (K1 + 1.0) for term, share in worth.items()}
