"""Inputs: short names for the documents that entries of aggregates are made from (S12).

Owns how such a name is told from what the index has of paths and digests, for many iterations at once and without going
into what each document is about. Whether an entry is out of date is ``aggregates``' business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from memfs.index.states import StateIndex
from memfs.index.statetables import storable

_AT_ONCE = 200

Listed = tuple[str, str, str]
"""Kind, path and digest of a document."""


def inputs_name(documents: Iterable[tuple[str, str]], ratings: Mapping[str, float]) -> str:
    """The name of documents, by path and digest in the order of their paths, and of ratings they are judged by."""
    lines = [f"{path}\0{sha256}" for path, sha256 in documents]
    lines += [f"{name}\0{rating!r}" for name, rating in sorted((storable(key), one) for key, one in ratings.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Lineage:
    """The hypotheses of all iterations: those in each, their parents, and by name the ratings of each iteration."""

    here: dict[int, set[str]] = field(default_factory=dict)
    parents: dict[int, set[str]] = field(default_factory=dict)
    ratings: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def before(self, number: int) -> dict[str, float]:
        """By name, the newest rating of each parent that lies in earlier iterations only."""
        found = {}
        for name in self.parents.get(number, set()) - self.here.get(number, set()):
            rated = [one for one in self.ratings.get(name, ()) if one[0] < number]
            if rated:
                found[name] = max(rated)[1]
        return found


class Inputs:
    """The names of one moment, asked for as they are needed. Does not look for changes first."""

    def __init__(self, index: StateIndex, numbers: Iterable[int]) -> None:
        """``numbers``: the iterations that may be asked for."""
        self._index = index
        self._numbers = sorted(numbers)
        self._listed: dict[int, list[Listed]] = {}

    def of(self, number: int, kinds: Collection[str], rated: bool) -> str:
        """The source of an iteration's documents of some kinds; ``rated`` takes in the ratings of parents elsewhere."""
        if number not in self._listed:
            self._list(number)
        documents = [(path, sha256) for kind, path, sha256 in self._listed[number] if kind in kinds]
        return inputs_name(documents, self._lineage.before(number) if rated else {})

    def _list(self, number: int) -> None:
        """Ask for the iterations from one on; those asked for before are let go."""
        wanted = [one for one in self._numbers if one >= number][:_AT_ONCE]
        self._listed = {one: [] for one in wanted}
        for iteration, kind, path, sha256 in self._index.digests(wanted[0], wanted[-1]):
            if iteration in self._listed:
                self._listed[iteration].append((kind, path, sha256))

    @cached_property
    def _lineage(self) -> _Lineage:
        lineage = _Lineage()
        for role, iteration, name, rating in self._index.lineage():
            if role == "parent":
                lineage.parents.setdefault(iteration, set()).add(name)
                continue
            lineage.here.setdefault(iteration, set()).add(name)
            if rating is not None:
                lineage.ratings.setdefault(name, []).append((iteration, rating))
        return lineage
