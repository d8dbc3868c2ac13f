"""Built-in sources: the table of those that memfs brings along (seed 004, P3).

Owns their names and how each is made from the parts of a workspace. Which are asked is said by the settings, and
``memfs.sources.loading`` reads those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from memfs.errors import MemfsError, QueryInvalid
from memfs.private import NAME
from memfs.sources.plugin import ItemSource
from memfs.upkeep.opening import has_states

if TYPE_CHECKING:
    from memfs.model.insights import AgentFeedback
    from memfs.settings import Settings
    from memfs.sources.parts import Sources

Maker = Callable[["Sources"], ItemSource]


class _Feedback:
    """Feedback of a workspace that may have no iterations: most have none, and are spared the machinery."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def for_agent(self, agent: str, *, most: int, record: bool = False) -> AgentFeedback | None:
        if not has_states(self._sources.parts.seen):
            return None
        try:
            return self._sources.states().feedback.for_agent(agent, record=record, most=most)
        except QueryInvalid:  # nobody has such a name
            return None

    def note_given(self, agent: str, *, most: int) -> None:
        try:
            self.for_agent(agent, most=most, record=True)
        except MemfsError as error:  # the agent has it already
            self._sources.store.note_failure(error)


def has_private(settings: Settings) -> bool:
    """Whether private memory may be read beside the workspace."""
    return bool(settings.mounts.get(NAME, "").strip())


# A process that only warns, as a hook does, is spared what the other sources import.
def _preferences(sources: Sources) -> ItemSource:
    from memfs.sources.preferences import PreferencesMemory

    if not has_private(sources.settings):
        return PreferencesMemory(sources.preferences)
    from memfs.sources.joint_sources import JointPreferences

    return PreferencesMemory(JointPreferences(sources.preferences, sources.mounts, sources.parts.clock))


def _conventions(sources: Sources) -> ItemSource:
    from memfs.sources.conventions import ConventionsMemory

    if not sources.settings.mounts:  # most workspaces have none, and are spared what reads them
        return ConventionsMemory(sources.conventions)
    from memfs.sources.joint_sources import JointConventions

    return ConventionsMemory(JointConventions(sources.conventions, sources.mounts))


def _recent_session(sources: Sources) -> ItemSource:
    from memfs.sources.recent_session import RecentSessionMemory

    if not has_private(sources.settings):
        return RecentSessionMemory(sources.store, sources.parts.clock)
    from memfs.sources.joint_sources import JointSessions

    return RecentSessionMemory(JointSessions(sources.store, sources.mounts), sources.parts.clock)


def _feedback(sources: Sources) -> ItemSource:
    from memfs.sources.feedback import FeedbackMemory

    return FeedbackMemory(_Feedback(sources))


def _episodic(sources: Sources) -> ItemSource:
    from memfs.sources.episodic import EpisodicMemory

    if not sources.settings.mounts:
        return EpisodicMemory(sources.episodes, sources.item)
    from memfs.sources.joint_sources import JointEpisodes

    return EpisodicMemory(JointEpisodes(sources.triggers, sources.mounts), sources.item)


def _semantic(sources: Sources) -> ItemSource:
    from memfs.sources.semantic import SemanticMemory

    if not sources.settings.mounts:
        return SemanticMemory(sources.rules, sources.item, whole=True)
    from memfs.sources.joint_sources import JointRules

    return SemanticMemory(JointRules(sources.rules, sources.mounts), sources.item, whole=True)


BUILT_IN: Mapping[str, Maker] = {
    "preferences": _preferences,
    "conventions": _conventions,
    "recent_session": _recent_session,
    "feedback": _feedback,
    "episodic": _episodic,
    "semantic": _semantic,
}
"""Each built-in source by name, with what makes it."""
