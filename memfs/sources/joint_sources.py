"""Joint sources: episodes, rules and conventions of a workspace, with those of its mounts among them (P7).

Owns what of a mount applies here, and its place among the workspace's own. Preferences and what the last session did
are told of private memory alone: those of other mounts are another person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memfs.model import Candidate, MemoryItem, Query
from memfs.model.episode import Episode, Outcome, StateSnapshot
from memfs.model.triggerrow import Similar
from memfs.pipeline.conventions import ACCEPTED, Convention, Conventions
from memfs.pipeline.episodes import Episodes
from memfs.pipeline.preferencetable import KIND, in_order
from memfs.pipeline.rules import Rules
from memfs.pipeline.triggers import THRESHOLD, Triggers
from memfs.sources.mount import Mount
from memfs.sources.mounts import Mounts

if TYPE_CHECKING:
    from memfs.model.rule import Rule
    from memfs.pipeline.preferences import Preference, Preferences
    from memfs.store import Store

_EARLIEST = datetime.min.replace(tzinfo=UTC)
Warning_ = tuple[Similar, Callable[[Similar], MemoryItem | None]]


class JointEpisodes:
    """The episodes that resemble a situation, the failures of mounts among them.

    A file of another repository is another file, whatever it is called: what happened there is compared by words and
    tool alone.
    """

    def __init__(self, triggers: Triggers, mounts: Mounts) -> None:
        """``triggers``: the workspace's own."""
        self._triggers, self._mounts = triggers, mounts

    def find_similar(self, state: StateSnapshot, limit: int = 3, threshold: float | None = None) -> list[Episode]:
        """See ``Episodes.find_similar``: failures first, the most similar first, of equals the workspace's own."""
        least = THRESHOLD if threshold is None else threshold
        found: list[Warning_] = [(one, self._triggers.load) for one in self._triggers.episodes(state, least, limit)]
        for more in self._mounts.each(lambda mount: _failures(mount, state, least, limit)).values():
            found += more
        found.sort(key=lambda pair: (pair[0].outcome != Outcome.FAILURE, -round(pair[0].similarity, 9)))
        items = (load(one) for one, load in found[:limit])
        episodes = (Episodes.of(item) for item in items if item is not None)
        return [episode for episode in episodes if episode is not None]


def _failures(mount: Mount, state: StateSnapshot, least: float, limit: int) -> list[Warning_]:
    here = state if mount.same_repository else replace(state, files=())
    if not (here.files or here.context.strip()):
        return []
    found = mount.triggers.episodes(here, least, limit)
    return [(one, mount.behind) for one in found if one.outcome == Outcome.FAILURE]


class JointRules:
    """The rules that apply to a situation, those of mounts among them."""

    def __init__(self, own: Rules, mounts: Mounts) -> None:
        self._own, self._mounts = own, mounts

    def find_matching_rules(self, context: str | StateSnapshot, min_confidence: float = THRESHOLD) -> list[Rule]:
        """See ``Rules.find_matching_rules``; the surest first, of equals the workspace's own."""
        state = context if isinstance(context, StateSnapshot) else StateSnapshot.create(context=context)
        found = list(self._own.find_matching_rules(context, min_confidence))
        for more in self._mounts.each(lambda mount: _rules(mount, state, min_confidence)).values():
            found += more
        return sorted(found, key=lambda rule: -rule.confidence)


def _rules(mount: Mount, state: StateSnapshot, min_confidence: float) -> list[Rule]:
    items = (mount.behind(match) for match in mount.triggers.rules(state, min_confidence))
    rules = (Rules.of(item) for item in items if item is not None)
    return [rule for rule in rules if rule is not None]


class JointConventions:
    """The conventions that hold, those of mounts behind the workspace's own."""

    def __init__(self, own: Conventions, mounts: Mounts) -> None:
        self._own, self._mounts = own, mounts

    def holding(self, files: Iterable[str] = (), status: str = ACCEPTED) -> list[Convention]:
        """See ``Conventions.holding``."""
        named = tuple(files)
        found = list(self._own.holding(named, status))
        more = self._mounts.each(lambda mount: Conventions(mount, mount.store.clock).holding(named, status))
        return [*found, *(one for rows in more.values() for one in rows)]


class JointPreferences:
    """How the person wants things done: the preferences of a workspace, and those of private memory among them."""

    def __init__(self, own: Preferences, mounts: Mounts, clock: Callable[[], datetime]) -> None:
        self._own, self._mounts, self._clock = own, mounts, clock

    def get_relevant(self, context: str = "", limit: int = 10) -> list[Preference]:
        """See ``Preferences.get_relevant``."""
        more = self._mounts.each(lambda mount: self._wishes(mount, context, limit) if mount.own else [])
        return self._own.get_relevant(context, limit, beside=[item for items in more.values() for item in items])

    def _wishes(self, mount: Mount, context: str, limit: int) -> list[MemoryItem]:
        """The preferences that hold in private memory, those that fit the context first."""
        asked = Query(types=frozenset({KIND}))
        loaded = (mount.load(candidate) for candidate in mount.seeking.every(asked))
        items = {one.item.id: one.item for one in loaded if one is not None}
        names = [row.id for row in in_order(items.values(), self._clock())]
        if context.strip():
            found = mount.seeking.candidates(replace(asked, text=context, limit=max(limit, 1)))
            names = list(dict.fromkeys([*(one.id for one in found if one.id in names), *names]))
        return [items[name] for name in names[:limit]]


class JointSessions:
    """What sessions left behind in a workspace and in private memory, for who asks which one was last."""

    def __init__(self, own: Store, mounts: Mounts) -> None:
        self._own, self._mounts = own, mounts

    def candidates(self, query: Query) -> list[Candidate]:
        """The items that pass the query's filters, the newest first."""
        more = self._mounts.each(lambda mount: mount.store.seeking.candidates(query) if mount.own else [])
        found = [*self._own.candidates(query), *(one for rows in more.values() for one in rows)]
        return sorted(found, key=lambda one: one.timestamp, reverse=True)[: query.limit]

    def select(self, query: Query) -> list[MemoryItem]:
        """The same as items."""
        more = self._mounts.each(lambda mount: _selected(mount, query) if mount.own else [])
        found = [*self._own.select(query), *(item for items in more.values() for item in items)]
        return sorted(found, key=lambda item: item.timestamp or _EARLIEST, reverse=True)[: query.limit]


def _selected(mount: Mount, query: Query) -> list[MemoryItem]:
    loaded = (mount.store.load(candidate) for candidate in mount.store.seeking.candidates(query))
    return [mount.outward(found.item) for found in loaded if found is not None]
