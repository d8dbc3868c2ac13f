"""RecentSessionMemory: tells an agent what the last session did (seed 004, P3).

Owns which session that is, and what of it is worth a line: what is left to do, how its steps ended, and what it
learned. Nothing is kept here; all of it is read from items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from memfs.model import MemoryItem, Query
from memfs.model.episode import Outcome, StateSnapshot
from memfs.model.item import VOUCHED, Trust
from memfs.model.time import utc_now
from memfs.pipeline.disputes import FINISHED
from memfs.pipeline.episodeitem import episode_of
from memfs.pipeline.wording import gist
from memfs.sources.plugin import Delivery, Entry, Selection
from memfs.sources.provenance import origin_of
from memfs.sources.storesource import StoreSource
from memfs.store import Store

if TYPE_CHECKING:
    from memfs.sources.joint_sources import JointSessions

HEADING = "Last session"
_KINDS = frozenset(
    {"episodic", "task_history", "error_log", "prospective", "working", "semantic", "procedural", "knowledge"}
)
_WITNESSES = VOUCHED | {Trust.AGENT.value}
_LOOKED_AT = 200
_LONGEST = 200


class RecentSessionMemory(StoreSource):
    """Gives brief context from the last session before this one.

    Args:
        store: the workspace's store.
        clock: what time it is.

    Attributes:
        max_items: so many lines at most.
        max_age_days: a session that ended longer ago is not told of.
        any_trust: a session's own notes are written by agents; naming this source in the settings asks for them. What
            tools brought from outside is left out all the same.
    """

    name: ClassVar[str] = "recent_session"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value
    any_trust: ClassVar[bool] = True

    max_items: int
    max_age_days: float

    def __init__(self, store: Store | JointSessions, clock: Callable[[], datetime] = utc_now) -> None:
        super().__init__(store)
        self._clock = clock

    def _ask(self, state: StateSnapshot) -> Any:
        """What the session that wrote last, other than this one, left behind, the newest first."""
        since = self._clock() - timedelta(days=self.max_age_days)
        asked = Query(types=_KINDS, since=since, limit=_LOOKED_AT)
        candidates = self.store.candidates(asked)
        others = (one.session for one in candidates if one.session not in ("", state.session))
        last = next(others, None)
        if last is None:
            return ()
        return self.store.select(Query(types=_KINDS, sessions=frozenset({last}), limit=_LOOKED_AT))

    def _selection(self, found: Iterable[MemoryItem]) -> Selection:
        """Of what is left to do, what went wrong, what was learned and what it was busy with, some of each."""
        items = [item for item in found if item.trust in _WITNESSES]
        groups = [_open(items), _ended(items), _learned(items), _busy(items)]
        turns = (entry for turn in zip_longest(*groups) for entry in turn if entry is not None)
        chosen = [entry for entry, _ in zip(turns, range(self.max_items), strict=False)]
        ordered = [entry for group in groups for entry in group if entry in chosen]
        return Selection(heading=_heading(items), entries=ordered)


def _heading(items: Iterable[MemoryItem]) -> str:
    """The heading, with the day on which the session ended."""
    times = [item.timestamp for item in items if item.timestamp is not None]
    return f"{HEADING} ({max(times):%Y-%m-%d}):" if times else f"{HEADING}:"


def _open(items: Iterable[MemoryItem]) -> list[Entry]:
    """What is left to do, the most important first."""
    left = [item for item in items if item.type == "prospective" and item.status not in FINISHED]
    return [_entry(item, f"to do: {gist(item)}") for item in sorted(left, key=lambda item: -item.importance)]


def _ended(items: Iterable[MemoryItem]) -> list[Entry]:
    """How its steps ended: each failure that did not go well afterwards, and how many went well."""
    entries: list[Entry] = []
    well: list[MemoryItem] = []
    settled: set[tuple[str, tuple[str, ...]]] = set()
    for item in items:
        episode = episode_of(item)
        if episode is None:
            continue
        deed = episode.action.description or episode.action.tool
        key = deed, episode.state.files
        if episode.outcome is Outcome.SUCCESS:
            well.append(item)
        elif key not in settled:
            entries.append(_entry(item, f"{deed}: {episode.outcome.value}: {episode.error_message}".rstrip(": ")))
        settled.add(key)
    return [*entries, *_went_well(well)]


def _went_well(items: Sequence[MemoryItem]) -> Iterator[Entry]:
    """The newest step that went well, and how many others did."""
    for item in items[:1]:
        done = episode_of(item)
        deed = (done.action.description or done.action.tool) if done is not None else gist(item)
        more = len(items) - 1
        before = f", and {more} more step{'s' if more > 1 else ''} before it" if more else ""
        yield _entry(item, f"went well: {_cut(' '.join(deed.split()), _LONGEST // 2)}{before}")


def _learned(items: Iterable[MemoryItem]) -> list[Entry]:
    """What it left for good: learnings and outcomes, those that were consolidated first."""
    lasting = [item for item in items if item.type in ("semantic", "procedural", "knowledge")]
    other = [item for item in items if item.type in ("episodic", "task_history", "error_log") and not episode_of(item)]
    lasting.sort(key=lambda item: ("promoted_from" not in item.metadata, -item.importance))
    return [_entry(item, gist(item)) for item in (*lasting, *other)]


def _busy(items: Iterable[MemoryItem]) -> list[Entry]:
    """What it was busy with, where it never ended: ending would have consolidated that."""
    working = [item for item in items if item.type == "working"]
    return [_entry(item, f"was busy with: {gist(item)}") for item in working]


def _entry(item: MemoryItem, text: str) -> Entry:
    return Entry(
        text=_cut(" ".join(text.split()), _LONGEST), id=item.id, trust=item.trust, origin=origin_of(item.origin)
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "\u2026"
