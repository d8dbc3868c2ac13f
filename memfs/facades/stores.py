"""The stores of seed 004: thin views of one workspace.

Owns the seed's names and which calls are awaited. Everything goes through the workspace's one store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memfs.facades.opening import Facade
from memfs.pipeline.learner import as_program

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.model.episode import Episode, StateSnapshot
    from memfs.model.rule import Rule
    from memfs.pipeline.preferences import Preference


class PreferenceStore(Facade):
    """What people wish, as the source ``preferences`` asks for it (P3)."""

    def get_relevant(self, context: str = "", limit: int = 10) -> list[Preference]:
        """The preferences that fit a context, then the most important others; ``str`` of one is its text."""
        return self.workspace.sources.preferences.get_relevant(context, limit=limit)

    def record(self, text: str, **known: Any) -> list[MemoryItem]:
        """Keep the corrections in what a person said, see ``record_correction``.

        Raises:
            SchemaInvalid, SecretDetected, StorageIO: nothing was stored.
        """
        return self.workspace.sources.preferences.record(text, **known)


class EpisodicStore(Facade):
    """What happened, as the source ``episodic`` asks for it (P3, P4)."""

    teaches = True

    async def store(self, episode: Episode) -> Episode:
        """Store an episode; returns it with its id.

        Raises:
            SchemaInvalid, QuotaExceeded, StorageIO: nothing was stored.
        """
        from asyncio import to_thread  # costs start-up time

        def record() -> Episode:
            with as_program():
                return self.workspace.sources.episodes.record(episode)

        return await to_thread(record)

    async def find_similar(self, state: StateSnapshot, limit: int = 3, threshold: float | None = None) -> list[Episode]:
        """The episodes in situations like this one, the most similar first.

        Args:
            threshold: from this similarity on, 0 to 1; None means the seed's 0.7.
        """
        from asyncio import to_thread

        return await to_thread(lambda: self.workspace.sources.episodes.find_similar(state, limit, threshold))

    def count(self) -> int:
        """How many episodes there are."""
        return self.workspace.sources.episodes.count()


class SemanticStore(Facade):
    """What was learned, as the source ``semantic`` asks for it (P3, P4)."""

    def add_rule(self, rule: Rule) -> Rule:
        """Store a rule; one with the id of a stored rule brings that up to date.

        Raises:
            SchemaInvalid, SecretDetected, Conflict, StorageIO: nothing was changed.
        """
        return self.workspace.sources.rules.add_rule(rule)

    def find_matching_rules(self, context: str | StateSnapshot, min_confidence: float = 0.7) -> list[Rule]:
        """The rules that apply to a situation, or to what is told of it in words, the surest first."""
        return self.workspace.sources.rules.find_matching_rules(context, min_confidence=min_confidence)


class PatternMatcher(Facade):
    """Learns rules from failures (P4)."""

    teaches = True

    async def analyze_failures(self) -> list[Rule]:
        """Look at what failed repeatedly, and bring the rules in step with it; returns those that came with this.

        ``record_outcome`` does so by itself every 100 episodes. Doing it again changes nothing.

        Raises:
            StorageIO: rules could not be stored.
        """
        from asyncio import to_thread

        return await to_thread(lambda: self.workspace.sources.rules.analyze_failures())
