"""The table of search engines that ``index.engine`` may name.

A new engine is a module that passes the contract class in ``memfs.testing``, and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import SettingInvalid
from memfs.model.kinds import nearest
from memfs.search.engine import Index
from memfs.search.memory import MemoryIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine.

    Attributes:
        name: what the settings call it.
        form: names the form of its files; another form is never opened.
        stored: whether it keeps files at all.
        rewrites: names of its files that it changes in place; all others it only ever makes, replaces or removes, so
            that two generations may share them.
        open: makes the engine for a folder.
    """

    name: str
    form: str
    stored: bool
    rewrites: frozenset[str]
    open: Callable[[Path], Index]


def _whoosh(folder: Path) -> Index:
    from memfs.search.whoosh import WhooshIndex

    return WhooshIndex(folder)


def _sqlite(folder: Path) -> Index:
    from memfs.search.sqlite import SqliteIndex

    return SqliteIndex(folder)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(name="memory", form="memory-1", stored=False, rewrites=frozenset(), open=MemoryIndex),
        Engine(name="whoosh", form="whoosh-4", stored=True, rewrites=frozenset(), open=_whoosh),
        Engine(name="sqlite", form="sqlite-3", stored=True, rewrites=frozenset({"index.sqlite"}), open=_sqlite),
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
