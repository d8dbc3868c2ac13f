"""Search engines: what each of them promises, and the table of those that ``index.engine`` may name.

An engine keeps one folder of files and answers queries from it. It is a cache: it never decides what is true, it may be
deleted at any time, and it is only ever opened from the user's own cache folder. A new engine is a module that passes
the contract in ``tests/contract/index_contract.py``, and a row in the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

from memfs.dataclass import dataclass
from memfs.errors import SettingInvalid
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.kinds import nearest
from memfs.search.documents import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStats:
    """What an engine holds: its name, how many items, how many bytes on disk (0 in memory)."""

    engine: str
    items: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStatistics:
    """What BM25 needs to know of a collection.

    Attributes:
        passages: how many passages its items have together.
        average_length: mean number of terms of a passage.
        frequencies: for each asked term, in how many passages it occurs.
    """

    passages: int
    average_length: float
    frequencies: Mapping[str, int]


Asked = tuple[Mapping[str, float], TermStatistics]
"""What a query's terms are worth, and their statistics over all that is asked together."""


class Index(Protocol):
    """A search engine over items, keyed by id.

    All engines cut text into the same terms (``memfs.search.analyzer``), so that they find the same items.
    """

    name: str

    def add(self, items: Iterable[MemoryItem]) -> None:
        """Add or replace items by id; they are found at once. Items carry ``id``, ``path`` and ``timestamp``."""

    def remove(self, ids: Iterable[str]) -> None:
        """Forget these ids; unknown ones are ignored."""

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties broken by id; items in ``hidden`` are left out.

        A text query finds items that share at least one term; an empty one lists by timestamp, newest first.
        ``query.layers`` is not looked at: the caller turns layers into types.

        Args:
            query: what to find.
            hidden: ids to leave out; unknown ones are ignored.
            asked: the terms to ask for, in place of those of the query's text, and their statistics over the larger
                collection that this index is a part of, to score on its scale; an engine that cannot use these scores
                on its own.

        Raises:
            IndexUnavailable: the engine's files cannot be read; the index must be rebuilt.
        """

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        """How many items pass the query's filters, whatever its text and limit; those in ``hidden`` are left out.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters, in no particular order, similarity 0.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        """Those of the items with these ids that pass the query's filters, in no particular order, similarity 0.

        Raises:
            IndexUnavailable: as ``search``.
        """

    def talks(self) -> bool:
        """Whether any item has a place in a talk; removed ones may count."""

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Term statistics, so that fresh items kept elsewhere can be scored on the same scale.

        Removed and replaced items may count until the engine tidies up.
        """

    def terms(self, beginning: str) -> Iterable[str]:
        """The indexed terms that begin so; terms of removed items may be among them."""

    def ids(self) -> Collection[str]:
        """The ids it holds."""

    def flush(self) -> None:
        """Write what was added and removed to the engine's folder."""

    def stats(self) -> IndexStats:
        """What it holds."""

    def clear(self) -> None:
        """Forget everything."""

    def release(self) -> None:
        """Close files, which the next call opens again; nothing waits to be flushed."""

    def close(self) -> None:
        """Release files; the engine is not used afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine.

    Attributes:
        name: what the settings call it.
        form: names the form of its files; another form is never opened.
        stored: whether it keeps files at all; else all items stay in the overlay.
        rewrites: names of its files that it changes in place; all others it only ever makes, replaces or removes, so
            that two generations may share them.
        makes: the class that it is, as ``module:Class``; imported when an index is first opened.
    """

    name: str
    form: str
    makes: str
    stored: bool = True
    rewrites: frozenset[str] = frozenset()

    def open(self, folder: Path) -> Index:
        """The index in a folder."""
        module, _, name = self.makes.partition(":")
        made: Index = getattr(import_module(module), name)(folder)
        return made


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(name="memory", form="memory-1", makes="memfs.search.memory:MemoryIndex", stored=False),
        Engine(name="whoosh", form="whoosh-6", makes="memfs.search.whoosh:WhooshIndex"),
        Engine(
            name="sqlite",
            form="sqlite-8",
            makes="memfs.search.sqlite:SqliteIndex",
            rewrites=frozenset({"index.sqlite"}),
        ),
    )
}


def engine(name: str) -> Engine:
    """The engine of that name.

    Raises:
        SettingInvalid: there is none.
    """
    found = ENGINES.get(name)
    if found is None:
        names: Collection[str] = ENGINES
        raise SettingInvalid(
            f"unknown search engine {name!r}",
            field="index.engine",
            hint=nearest(name, names) or f"choose one of {', '.join(names)}",
        )
    return found
