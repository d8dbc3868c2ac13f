"""Review budget: what an agent is told at every start, on each side of a change (B4).

Owns which sources that concerns: those that tell the same whoever asks, and whenever. How much room there is, and what
of it is told, is ``memfs.sources``' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from memfs.config import elsewhere
from memfs.errors import ItemNotFound, SettingInvalid
from memfs.files.tomltext import FILE as SETTINGS
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.episode import StateSnapshot
from memfs.model.item import VOUCHED
from memfs.pipeline.conventions import KIND as CONVENTION
from memfs.pipeline.conventions import Conventions
from memfs.pipeline.fence import enclosed
from memfs.pipeline.preferences import Preference
from memfs.pipeline.preferencetable import KIND as PREFERENCE
from memfs.pipeline.preferencetable import in_order
from memfs.pipeline.tokens import count_tokens
from memfs.settings import MemorySettings, Settings
from memfs.sources.choosing import Room, Said, choose
from memfs.sources.conventions import ConventionsMemory
from memfs.sources.delivery import frame_cost, introduction_of
from memfs.sources.plugin import Delivery, Selection
from memfs.sources.preferences import PreferencesMemory
from memfs.store.parts import CONTENT
from memfs.store.values import Loaded
from memfs.teams.reviewsides import Side
from memfs.teams.reviewvalues import AlwaysLoaded, Sizes

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
LASTING = ("preferences", "conventions")
"""The sources that tell the same at every start; what a session or a round of work left behind changes by itself."""


def memory_of(side: Side, here: Settings) -> MemorySettings:
    """What is loaded at every start, and how much of it, by a side's own ``memfs.toml``.

    Args:
        here: the settings that hold in this process: what it was told itself goes before; and they stand for a file
            that cannot be read, which is found with all others.
    """
    try:
        return elsewhere((side.data(SETTINGS) or b"").decode("utf-8-sig"), here).memory
    except (SettingInvalid, UnicodeDecodeError):
        return here.memory


def loaded(side: Side, memory: MemorySettings) -> AlwaysLoaded:
    """What is told at every start, as far as the files decide it.

    Args:
        memory: which sources are asked, what each may tell, and the budget.
    """
    said = [Said(source=name, selection=_vouched(_selected(side, name, memory))) for name in _asked(memory)]
    every = choose(said, lambda _: False, Room(tokens=None))
    introduction = introduction_of(Delivery.AUTOMATIC)
    budget = memory.automatic_tokens or None
    room = Room(tokens=budget, once=frame_cost(introduction))
    told = choose(every, lambda _: False, room)
    text = enclosed([line for one in every for line in one.lines()], introduction)
    return AlwaysLoaded(
        tokens=count_tokens(text),
        entries={entry.id: entry.text for one in every for entry in one.selection.entries},
        left_out=sum(one.left_out for one in told),
    )


def _asked(memory: MemorySettings) -> list[str]:
    return [name for name in memory.automatic if name in LASTING]


def _selected(side: Side, name: str, memory: MemorySettings) -> Selection:
    source: ConventionsMemory | PreferencesMemory = PreferencesMemory(_Preferences(side))
    if name == "conventions":
        source = ConventionsMemory(Conventions(_Agreed(side), lambda: side.time))
    source.configure({**memory.sources.get(name, {})})
    return source.select(StateSnapshot())


def _vouched(selection: Selection) -> Selection:
    return Selection(heading=selection.heading, entries=tuple(one for one in selection.entries if one.trust in VOUCHED))


class _Preferences:
    """What people wish, of one side."""

    def __init__(self, side: Side) -> None:
        self._side = side

    def get_relevant(self, context: str, *, limit: int) -> list[Preference]:  # noqa: ARG002  (the source's own words)
        items = {item.id: item for item in of_kind(self._side, PREFERENCE)}
        rows = in_order(items.values(), self._side.time)
        return [Preference.of(items[row.id]) for row in rows[:limit]]


class _Agreed:
    """Lists the conventions of one side."""

    def __init__(self, side: Side) -> None:
        self._items = {item.id: item for item in of_kind(side, CONVENTION)}

    @property
    def seeking(self) -> _Agreed:
        return self

    def every(self, query: Query) -> Iterator[Candidate]:
        for item in self._items.values() if CONVENTION in query.types else ():
            moment = item.timestamp or _LONG_AGO
            yield Candidate(id=item.id, path=item.path, similarity=0.0, type=item.type, timestamp=moment)

    def find(self, reference: str) -> MemoryItem:
        if reference not in self._items:
            raise ItemNotFound(f"no convention is called {reference!r}", hint="memfs convention list names them")
        return self._items[reference]

    def load(self, candidate: Candidate) -> Loaded | None:
        item = self._items.get(candidate.id)
        return None if item is None else Loaded(item=item, stale=False)


def of_kind(side: Side, kind: str) -> Iterator[MemoryItem]:
    """The items of a kind that can be read."""
    folder = f"{CONTENT}/{side.kinds.get(kind).folder}/"
    for path in side.items:
        if path.startswith(folder) and (item := side.readable(path)) is not None:
            yield item


def sizes(side: Side) -> Sizes:
    """How much there is."""
    counted: dict[str, int] = {}
    for path in side.items:
        kind = side.kinds.at(path.removeprefix(f"{CONTENT}/"))
        if kind is not None:
            counted[kind.name] = counted.get(kind.name, 0) + 1
    below = [path for path in side.files if path.startswith(f"{CONTENT}/")]
    return Sizes(files=len(below), bytes=sum(map(side.size, below)), items=counted)
