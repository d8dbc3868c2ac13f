"""Finds the items that a draft repeats, nearly repeats, contradicts or is related to.

Precision comes before recall: two statements that may both be true are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from memfs.dataclass import NamedTuple
from memfs.model import Candidate, KindTable, Layer, MemoryItem, Query
from memfs.model.item import Link, gist
from memfs.recall.conflict_notes import CONTRADICTS, FINISHED, OVER, disputes
from memfs.recall.similarity import SAME, TextShape, alike
from memfs.recall.versions import LOOKED_INTO, MOMENTARY, contradiction, is_personal, may_meet, project_of
from memfs.search.analyzer import tokens
from memfs.search.terms import COMMON_WORDS
from memfs.startup import Any
from memfs.store.reader import Reader

SIMILAR = "similar"
RELATES = "relates"
_NEAREST = 8
"""How many of the items that the index finds nearest are looked at."""
_NEAR_ENOUGH = 0.25
"""This share of the nearest one's text score an item has at least."""
_ASKED_WORDS = 6
_MOST_QUERY_WORDS = 32
_CROWDED = 0.9
"""From this share on, the last one found is as near as the first, and the first need not be the nearest."""
_SURELY = 24
"""Of what is found by all words, so many are looked at, too: what says more of other things may come before the very
same."""
_MOST_LINKS = 5
_MOST_RELATED = 3
_RELATED_FROM = 0.3
_COMMON_KEYWORDS = 2


class Neighbours(NamedTuple):
    """What existing items are to a draft, the nearest first.

    Attributes:
        repeated: the item of the same type and scope with the same text, None where there is none.
        near: items that say nearly the same.
        contradicts: items that say otherwise, each with why.
        related: items on the same matter.
    """

    repeated: MemoryItem | None = None
    near: tuple[MemoryItem, ...] = ()
    contradicts: tuple[tuple[MemoryItem, str], ...] = ()
    related: tuple[MemoryItem, ...] = ()

    def linked(self, own: tuple[Link, ...]) -> tuple[Link, ...]:
        """The draft's own links, and those to these items that it does not link yet, but for the one it repeats."""
        found = (
            *(Link(to=item.id, relation=CONTRADICTS) for item, _ in self.contradicts),
            *(Link(to=item.id, relation=SIMILAR) for item in self.near),
            *(Link(to=item.id, relation=RELATES) for item in self.related),
        )
        held = {link.to for link in own}
        return (*own, *(link for link in found if link.to not in held))

    def named(self) -> dict[str, Any]:
        """Ids of what says nearly the same, and of what says otherwise, as results give them."""
        against = tuple(item.id for item, _ in self.contradicts)
        return {"near": tuple(item.id for item in self.near), "contradicts": against}


class NeighbourSearch:
    """Finds neighbours in one workspace. May be used from several threads."""

    def __init__(self, store: Reader, kinds: KindTable) -> None:
        self._store = store
        self._short_lived = kinds.in_layers({Layer.SHORT_TERM.value})

    def of(self, draft: MemoryItem, now: datetime) -> Neighbours:
        """The neighbours of a draft among the items that hold at present.

        The index is asked for the draft's rarest words, or for all where these say little, and a few items are read,
        whatever it finds: a neighbour that shares none of these words with it is missed.
        """
        return self.among(draft, self._nearest(draft, now))

    def among(self, draft: MemoryItem, items: Iterable[MemoryItem]) -> Neighbours:
        """What the given items, nearest first, are to a draft."""
        shape = TextShape(gist(draft))
        repeated: MemoryItem | None = None
        near, related = [], []
        against: list[tuple[MemoryItem, str]] = []
        for item in items:
            likeness = alike(shape, other := TextShape(gist(item)), _RELATED_FROM)
            if repeated is None and shape.plain == other.plain and self._is_repeated(draft, item):
                repeated = item
            elif reason := self.objection(draft, item):
                against.append((item, reason))
            elif likeness >= SAME:
                near.append(item)
            elif likeness >= _RELATED_FROM or len(_keywords(draft) & _keywords(item)) >= _COMMON_KEYWORDS:
                related.append((likeness, item))
        related.sort(key=lambda row: (-row[0], row[1].id))
        return Neighbours(
            repeated=repeated,
            near=tuple(near[:_MOST_LINKS]),
            contradicts=tuple(against[:_MOST_LINKS]),
            related=tuple(item for _, item in related[:_MOST_RELATED]),
        )

    def against(self, item: MemoryItem, now: datetime) -> tuple[str, ...]:
        """Ids of the items that a stored item contradicts, or that contradict it, as their links say."""
        return tuple(disputes([item, *self._nearest(item, now)]).get(item.id, ()))

    # -- finding --------------------------------------------------------------------------------------------------
    def _nearest(self, draft: MemoryItem, now: datetime) -> list[MemoryItem]:
        words = _words(gist(draft))
        found = self._found(words, _ASKED_WORDS, draft, _NEAREST)
        # where there are many, what says the very same may be beyond: by all its words it is among the first
        surely = self._found(words, _MOST_QUERY_WORDS, draft, _SURELY) if len(found) >= _NEAREST else []
        if surely and found[-1].similarity >= found[0].similarity * _CROWDED:
            found = surely  # many say it of other things: all words decide which one
        close = [one for one in found if one.similarity >= found[0].similarity * _NEAR_ENOUGH][:_NEAREST]
        seen = {one.id for one in close}
        close = [*(one for one in surely if one.id not in seen), *close]
        items = [one.item for one in self._store.load_each(close) if one is not None and not one.stale]
        return [item for item in items if not item.has_expired(now) and may_meet(draft, item)]

    def _found(self, words: Mapping[str, str], count: int, draft: MemoryItem, limit: int) -> list[Candidate]:
        """What the index finds for the rarest words, the nearest first."""
        asked = " ".join(words[stem] for stem in self._store.rarest(words, count))
        found = self._store.known(Query(text=asked, limit=limit + 1)) if asked else []
        return [one for one in found if one.id != draft.id]

    # -- judging --------------------------------------------------------------------------------------------------
    def _is_repeated(self, draft: MemoryItem, item: MemoryItem) -> bool:
        """Whether a draft with the same text is the same memory: same type and scope, and not done since."""
        return (
            draft.type == item.type
            and self._scope(draft) == self._scope(item)
            and (not draft.data or draft.data == item.data)
            and draft.origin.speaker == item.origin.speaker
            and draft.origin.sequence == item.origin.sequence
            and (draft.status or item.status) == item.status
            and item.status not in FINISHED
        )

    def _scope(self, item: MemoryItem) -> tuple[str, str]:
        """Project, and of what lives for a session also that."""
        return project_of(item), item.origin.session if item.type in self._short_lived else ""

    @staticmethod
    def objection(draft: MemoryItem, item: MemoryItem) -> str:
        """Why the item speaks against the draft; "" where it does not."""
        if is_transient(draft) or is_transient(item) or item.id in draft.supersedes or item.status in OVER:
            return ""
        if "working" in (draft.type, item.type) and draft.origin.session != item.origin.session:
            return ""
        speakers = {draft.origin.speaker, item.origin.speaker} - {""}
        if len(speakers) > 1 and is_personal(draft.content):
            return ""
        return contradiction(gist(draft), gist(item))


def is_transient(item: MemoryItem) -> bool:
    """Whether an item describes its moment, as an episode does, so that it says nothing against another."""
    from memfs.intake.episode_item import episode_of  # who looks for what contradicts one item does without

    return item.type in MOMENTARY or episode_of(item) is not None


def _words(text: str) -> dict[str, str]:
    """The words of a text by their stems; those that say little only where there are no others."""
    every = [(word, tuple(stems)) for word, stems in tokens(text[:LOOKED_INTO])]
    telling = [row for row in every if row[0].casefold() not in COMMON_WORDS]
    found: dict[str, str] = {}
    for word, stems in telling if any(stems for _, stems in telling) else every:
        for stem in stems[:1]:
            found.setdefault(stem, word)
    return found


def _keywords(item: MemoryItem) -> set[str]:
    """What extraction found, for an item that went through it."""
    found = item.metadata.get("keywords", ())
    return {str(word).casefold() for word in found} if isinstance(found, (list, tuple)) else set()
