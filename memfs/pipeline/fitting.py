"""Fitting: whether an item has enough to do with a message to be told without being asked for.

Owns that floor. A question that somebody asks is answered with the best there is; what is brought up uninvited must be
worth the reader's time, so that small talk and orders about something else bring up nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memfs.index import question
from memfs.index.analyzer import terms
from memfs.index.bm25 import idf
from memfs.index.joining import Counted
from memfs.model import Hit, MemoryItem
from memfs.pipeline.situations import GENERIC
from memfs.pipeline.wording import whole

_MOST = 12
_LOOKED_AT = 5_000
_MANY = 4
_BEHIND = 0.6
_SHARES: Mapping[int, float] = {_MANY: 0.2, 3: 0.25, 2: 0.3, 1: 0.45}
"""By how many telling words are shared: what share of what the message's telling words are worth that must be."""


class Fit:
    """Tells which items fit one message."""

    def __init__(self, message: str, *counted: Counted) -> None:
        """``counted``: each knows in how many items of a workspace each word stands."""
        worth = question.weights(message[:_LOOKED_AT])
        telling = {term: share for term, share in worth.items() if share >= 1.0 and term not in GENERIC}
        known = [one.statistics(telling) for one in counted]
        items = sum(one.items for one in known)
        self._weights = {
            term: share * idf(items, sum(one.frequencies.get(term, 0) for one in known))
            for term, share in telling.items()
        }
        heaviest = sorted(self._weights.values(), reverse=True)[:_MOST]  # of a long message its matter counts
        self._total = sum(heaviest)

    def __bool__(self) -> bool:
        """Whether the message has a word that tells what it is about."""
        return bool(self._weights)

    def among(self, hits: Iterable[Hit]) -> list[Hit]:
        """Those of the hits that fit, in order: with enough of the message's words, and not far less than the best."""
        shares = [(hit, self._share(hit.item)) for hit in hits]
        best = max((share for _, share in shares), default=0.0)
        return [hit for hit, share in shares if share and share >= best * _BEHIND]

    def _share(self, item: MemoryItem) -> float:
        """What share of what the message's words are worth an item has; 0 where that is too little."""
        held = set(terms(" ".join((whole(item)[:_LOOKED_AT], *item.tags))))
        shared = self._weights.keys() & held
        share = sum(self._weights[term] for term in shared) / self._total if shared else 0.0
        return share if shared and share >= _SHARES[min(len(shared), _MANY)] else 0.0
