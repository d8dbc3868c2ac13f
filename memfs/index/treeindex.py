"""TreeIndex: the items of one revision's tree, as search sees them.

Owns the joining of parts into one collection: what of each still counts, and that every number BM25 needs is that of
the items that count, so that scores are those of an index made of nothing else. Knows nothing of git and files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from memfs.index import bm25
from memfs.index.base import TermStatistics
from memfs.index.joining import Asked, asked_of
from memfs.index.rows import Filter, Place, micros
from memfs.index.treepart import TreePart
from memfs.model import Candidate, Query


@dataclass(frozen=True)
class Share:
    """A part's share in an index: the part, and the numbers of those of its documents that do not count."""

    part: TreePart
    dead: frozenset[int] = frozenset()

    @property
    def live(self) -> int:
        """How many documents count."""
        return len(self.part) - len(self.dead)

    @cached_property
    def length(self) -> int:
        """How many terms all of them have together."""
        lengths = self.part.columns.lengths
        return sum(lengths) - sum(lengths[number] for number in self.dead)

    def frequency(self, term: str) -> int:
        """How many of them hold a term."""
        numbers, _ = self.part.postings(term)
        return len(numbers) - len(self.dead.intersection(numbers)) if self.dead else len(numbers)

    def numbers(self) -> Iterator[int]:
        """Their numbers."""
        return (number for number in range(len(self.part)) if number not in self.dead)


class TreeIndex:
    """The items of one tree; nothing in it changes. May be used from several threads."""

    def __init__(self, shares: Sequence[Share]) -> None:
        """``shares``: of all documents that count no two have one id."""
        self._shares = list(shares)

    # -- what it holds ----------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return sum(share.live for share in self._shares)

    def files(self) -> Iterator[tuple[str, str, str, int]]:
        """Path, id, content id and bytes of every item's file."""
        for share in self._shares:
            part = share.part
            columns = part.columns
            for number in share.numbers():
                yield (
                    columns.paths[number],
                    columns.ids[number],
                    part.marks[number].partition(" ")[0],
                    part.sizes[number],
                )

    @cached_property
    def blobs(self) -> dict[str, str]:
        """Id to content id."""
        return {key: blob for _, key, blob, _ in self.files()}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Id, in one case, to path."""
        return {key.casefold(): path for path, key, _, _ in self.files()}

    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: there is no other."""
        yield

    # -- asking -----------------------------------------------------------------------------------------------------
    def search(self, query: Query, asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties by id; see ``memfs.index.base.Index``."""
        wanted = Filter.of(query)
        if not query.text:
            found = [self._latest(share, wanted, query.limit) for share in self._shares]
            newest = sorted(chain.from_iterable(found), key=lambda one: (-micros(one.timestamp), one.id))
            return newest[: query.limit]
        worth, shared = asked or asked_of(query, [self])
        factors = bm25.factors(worth, shared)
        first, second = bm25.length_terms(shared.average_length)
        best = [
            share.part.columns.best(_scores(share, factors.items(), first, second), wanted, query.limit)
            for share in self._shares
        ]
        return sorted(chain.from_iterable(best), key=lambda one: (-one.similarity, one.id))[: query.limit]

    @staticmethod
    def _latest(share: Share, wanted: Filter, limit: int) -> list[Candidate]:
        columns = share.part.columns
        return [columns.candidate(number, 0.0) for number in columns.latest(wanted, share.dead, limit)]

    def beside(self, places: Collection[Place], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters, similarity 0."""
        return self._picked(query, lambda part: part.columns.at_places(places))

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0."""
        names = dict.fromkeys(ids)
        return self._picked(
            query, lambda part: [part.columns.numbers[key] for key in names if key in part.columns.numbers]
        )

    def _picked(self, query: Query, pick: Callable[[TreePart], Iterable[int]]) -> list[Candidate]:
        wanted = Filter.of(query)
        found = []
        for share in self._shares:
            columns = share.part.columns
            numbers = [number for number in pick(share.part) if number not in share.dead]
            found += [columns.candidate(number, 0.0) for number in columns.select(numbers, wanted)]
        return found

    def talks(self) -> bool:
        """Whether any item has a place in a talk."""
        return any(share.part.columns.in_talk(share.dead) for share in self._shares)

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """How many items there are, and in how many each term occurs."""
        items = len(self)
        return TermStatistics(
            items=items,
            average_length=sum(share.length for share in self._shares) / items if items else 0.0,
            frequencies={term: sum(share.frequency(term) for share in self._shares) for term in terms},
        )

    def terms(self, beginning: str) -> Collection[str]:
        """The terms that begin so."""
        return {
            term
            for share in self._shares
            for term in share.part.terms(beginning)
            if not share.dead or share.frequency(term)
        }


def _scores(share: Share, factors: Iterable[tuple[str, float]], first: float, second: float) -> dict[int, float]:
    lengths = share.part.columns.lengths
    scores: dict[int, float] = {}
    for term, factor in factors:
        for number, weight in zip(*share.part.postings(term), strict=True):
            worth = factor * weight / (weight + first + second * lengths[number])
            scores[number] = scores.get(number, 0.0) + worth
    for number in share.dead & scores.keys():
        del scores[number]
    return scores
