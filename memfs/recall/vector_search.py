"""Adds what an embedder says of a query to the scores of its words.

The similarity of a candidate is measured against that of all candidates, smoothed over neighbours in a conversation,
and added in the unit of text scores (see ``benchmarks/README.md``). Where the embedder does not answer, the words
decide alone.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import sqrt

from memfs.errors import MemfsError
from memfs.model import Candidate, MemoryItem, Query
from memfs.recall.embeddings import Embeddings
from memfs.recall.ranking import NOTHING, Shares
from memfs.recall.tokens import whole
from memfs.search.embedder import Vector
from memfs.store import Store

Together = Sequence[tuple[Candidate, Shares]]

_JOINING = 50
_LOOKED_AT = 1_000
_NEIGHBOURS = 0.3
_FLOOR = 0.05
_PATIENCE_SECONDS = 0.05
_REST_SECONDS = 10.0
_REMEMBERED = 64
_ALIKE = 0.8


class VectorSearch:
    """Finds by meaning in one workspace. May be used from several threads."""

    def __init__(self, store: Store, embeddings: Embeddings, *, resident: bool = True) -> None:
        """
        Args:
            embeddings: the vectors of the store's items.
            resident: whether items are embedded in the background. Else questions alone are, and none while no item
                has a vector: the model is not loaded for an answer that it cannot change.
        """
        self.embeddings = embeddings
        self._resident = resident
        self._store = store
        self._asked: OrderedDict[str, Vector | None] = OrderedDict()
        self._failed = float("-inf")

    def prepare(self, queries: Iterable[Query]) -> None:
        """Do what may take a moment: see that new items get their vectors, and embed the questions."""
        if self._resident:
            self.embeddings.keep_up(_PATIENCE_SECONDS)
        elif not self.embeddings.any():
            return
        texts = dict.fromkeys(query.text for query in queries if query.text)
        fresh = [text for text in texts if text not in self._asked]
        if not fresh or time.monotonic() - self._failed < _REST_SECONDS:
            return
        try:
            vectors = self.embeddings.embed(fresh)
        except MemfsError as error:
            self._failed = time.monotonic()
            self._store.note_failure(error)
            return
        self._asked.update(zip(fresh, vectors, strict=True))
        while len(self._asked) > max(_REMEMBERED, len(texts)):
            self._asked.popitem(last=False)

    def behind(self) -> bool:
        """Whether some items have no vector yet, or the last question has none: words alone find those."""
        if self._resident:
            late = self.embeddings.behind
        else:
            standing = self.embeddings.standing()
            late = standing.embedded < standing.items
        return late or time.monotonic() - self._failed < _REST_SECONDS

    def knows(self, query: Query) -> bool:
        """Whether the question has a vector, without which words alone decide."""
        return self._asked.get(query.text) is not None

    def like(self, item: MemoryItem, limit: int, threshold: float = _ALIKE) -> list[str]:
        """The ids of items that mean nearly the same as another, the nearest first; as far as they have their vectors.

        Args:
            threshold: how near they must be, -1 to 1.
        """
        try:
            vector = self._vector(item)
            near = self.embeddings.vectors.search(vector, limit + 1, threshold) if any(vector) else []
        except MemfsError as error:
            self._store.note_failure(error)
            return []
        return [one.id for one in near if one.id != item.id][:limit]

    def _vector(self, item: MemoryItem) -> Vector:
        """The vector of an item; where items are not embedded here, the one that is kept for it, if any."""
        if self._resident:
            return self.embeddings.embed([whole(item)])[0]
        return (self.embeddings.vectors.get(item.id) if item.id else None) or ()

    def joined(self, together: Together, query: Query) -> Together:
        """The candidates of the text search, joined by those that only mean the like, with what meaning adds to each.

        Without a vector of the question (see ``prepare``) they stay as they are.
        """
        vector = self._asked.get(query.text)
        if vector is None or not any(vector):
            return together
        try:
            more = self._nearby(vector, query, {one.id for one, _ in together})
            everyone = [*together, *_in_their_sessions(more, together)]
            cosines = self.embeddings.vectors.similarities(vector, [one.id for one, _ in everyone])
        except (MemfsError, OSError) as error:
            self._store.note_failure(error)
            return together
        return _weighed(everyone, cosines, self.embeddings.embedder.weight) if cosines else together

    def _nearby(self, vector: Vector, query: Query, known: Collection[str]) -> list[Candidate]:
        """The nearest items that pass the query's filters and are not known yet."""
        embedder = self.embeddings.embedder
        filtered = query != Query(text=query.text, limit=query.limit)
        wanted = max(_JOINING, query.limit)
        near = self.embeddings.vectors.search(
            vector, (_LOOKED_AT if filtered else 0) + wanted + len(known), embedder.least
        )
        fresh = [one.id for one in near if one.id not in known]
        passing = {one.id: one for one in self._store.among(fresh, query)}
        return [passing[key] for key in fresh if key in passing][:wanted]


def _in_their_sessions(more: Iterable[Candidate], together: Together) -> list[tuple[Candidate, Shares]]:
    """Candidates without a word of the question, with the share that their session has."""
    worth = {one.session: shares.session for one, shares in together if one.sequence is not None}
    return [
        (one, Shares(session=worth[one.session]) if one.sequence is not None and one.session in worth else NOTHING)
        for one in more
    ]


def _weighed(everyone: Together, cosines: Mapping[str, float], weight: float) -> Together:
    """What each gains or loses by its meaning, in the unit of the text scores; none falls to nothing.

    One without a vector neither gains nor loses.
    """
    nearness = _smoothed(everyone, cosines)
    texts = [one.similarity + shares.neighbours + shares.session for one, shares in everyone]
    unit = _spread(texts) or max(texts) or 1.0
    middle, spread = _mean(nearness.values()), _spread(nearness.values()) or 1.0
    judged = []
    for (one, shares), text in zip(everyone, texts, strict=True):
        if one.id in nearness:
            share = weight * unit * (nearness[one.id] - middle) / spread
            least = _FLOOR * (text or unit * cosines[one.id])
            one = replace(one, meaning=cosines[one.id])
            shares = replace(shares, meaning=max(share, least - text))
        judged.append((one, shares))
    return judged


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)


def _spread(values: Collection[float]) -> float:
    """The standard deviation."""
    middle = _mean(values)
    return sqrt(sum((value - middle) ** 2 for value in values) / len(values))


def _smoothed(everyone: Together, cosines: Mapping[str, float]) -> dict[str, float]:
    """Each nearness with a part of those right before and after it in the talk."""
    places = {
        (one.session, one.sequence): cosines[one.id]
        for one, _ in everyone
        if one.sequence is not None and one.id in cosines
    }
    smoothed = {}
    for one, _ in everyone:
        if one.id not in cosines:
            continue
        lent = 0.0
        if one.sequence is not None:
            lent = sum(places.get((one.session, one.sequence + step), 0.0) for step in (-1, 1))
        smoothed[one.id] = cosines[one.id] + _NEIGHBOURS * lent
    return smoothed
