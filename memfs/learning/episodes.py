"""Stores episodes as items, and finds those that resemble a situation.

What keeps an episode from being stored as it is, such as a secret in it, is replaced.
"""

from __future__ import annotations

from memfs.intake.episode_item import episode_of, item_of
from memfs.learning.triggers import THRESHOLD, Triggers
from memfs.model.episode import Episode, StateSnapshot
from memfs.model.item import Trust
from memfs.store import Store
from memfs.store.parts import Fire

SOURCE = "episodes"


class Episodes:
    """The episodes of one workspace. May be used from several threads."""

    def __init__(self, store: Store, triggers: Triggers, fire: Fire = lambda _occasion, _facts: None) -> None:
        self._store = store
        self._triggers = triggers
        self._fire = fire

    def record(self, episode: Episode, *, trust: str = Trust.AGENT.value, source: str = SOURCE) -> Episode:
        """Store an episode; on return it survives power loss, and a situation like it brings it to mind.

        Args:
            episode: one with an id is stored under it, and only once.
            trust: ``agent``; ``tool`` where nobody but a tool vouches for what it tells.
            source: which door it came through, for the commit's trailers.

        Returns:
            The episode as it was stored, with its id: long texts cut, secrets replaced.

        Raises:
            IdInvalid, IdExists: the id it came with cannot be had.
            ContentError, StorageIO: nothing was stored.
        """
        item = item_of(episode, trust)
        stored = self._store.put(item, expected="", message=f"Record an episode: {item.title}", source=source)
        recorded = episode_of(stored)
        assert recorded is not None, "an episode's item is an episode"
        self._fire("memory_stored", {"item": stored})
        self._fire("episode_recorded", {"episode": recorded, "item": stored})
        return recorded

    def find_similar(self, state: StateSnapshot, limit: int = 3, threshold: float | None = None) -> list[Episode]:
        """The episodes that resemble a situation, as their files have them now, the most similar first.

        Failures count with what age and later successes leave of them, and are not crowded out: other outcomes fill
        what room is left. Of failures that tell the same there is one.

        Args:
            threshold: how similar, 0 to 1; None for 0.7.
        """
        found = self._triggers.episodes(state, THRESHOLD if threshold is None else threshold, limit)
        items = (self._triggers.load(one) for one in found)
        episodes = (episode_of(item) for item in items if item is not None)
        return [episode for episode in episodes if episode is not None]

    def count(self) -> int:
        """How many episodes there are."""
        return self._triggers.count()

    def read(self, episode_id: str) -> Episode | None:
        """The episode with that id, None where there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        item = self._store.get(episode_id)
        return episode_of(item) if item is not None else None
