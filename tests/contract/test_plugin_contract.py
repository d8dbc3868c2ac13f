"""Every source keeps the contract of all sources: ours, and that of the example package (P2, P3)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memfs import MemoryItem, open_workspace
from memfs.context.builtin_sources import built_in
from memfs.context.deliver import ItemSource, MemoryPlugin
from memfs.context.parts import Sources
from memfs.settings import BUILT_IN_SOURCES
from memfs.testing.plugin_contract import STATES, PluginContract

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "memfs_todo_source"
ITEMS = (
    MemoryItem("Use tabs in Makefiles", "preference", trust="human"),
    MemoryItem("Name branches after the ticket", "convention", trust="human", data={"status": "accepted"}),
    MemoryItem(
        "Editing src/auth.py broke the login",
        "episodic",
        trust="agent",
        data={"outcome": "failure", "action": {"tool": "edit"}, "files": ["src/auth.py"], "error": "KeyError: 'exp'"},
    ),
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sources]:
    """The parts of a workspace that remembers a little, for all tests of this file."""
    settings = {"index.engine": "memory", "history.commit": "manual"}
    with open_workspace(tmp_path_factory.mktemp("W"), create=True, watch=False, settings=settings) as workspace:
        for item in ITEMS:
            workspace.store.put(item)
        yield workspace.sources


class BuiltIn(PluginContract):
    """A source that memfs brings along."""

    name: ClassVar[str]

    @pytest.fixture
    def plugin(self, sources: Sources) -> MemoryPlugin:
        return built_in(sources)[self.name]()

    def test_it_is_one_of_ours(self, plugin: MemoryPlugin) -> None:
        """It has the name and layer of the table, and its text is that of its entries."""
        assert isinstance(plugin, ItemSource)
        assert (plugin.name, plugin.layer) == (self.name, BUILT_IN_SOURCES[self.name])
        for state in STATES:
            assert (self._asked(plugin, state) or "") == str(plugin.select(state))


class TestPreferences(BuiltIn):
    """``preferences``."""

    name, config = "preferences", {"max_items": 3}


class TestConventions(BuiltIn):
    """``conventions``."""

    name, config = "conventions", {"max_items": 3}


class TestRecentSession(BuiltIn):
    """``recent_session``."""

    name, config = "recent_session", {"max_items": 2, "max_age_days": 3.5}


class TestFeedback(BuiltIn):
    """``feedback``."""

    name, config = "feedback", {"enabled": True, "max_items": 3}


class TestEpisodic(BuiltIn):
    """``episodic``."""

    name, config = "episodic", {"similarity_threshold": 0.5, "max_warnings": 1}


class TestSemantic(BuiltIn):
    """``semantic``."""

    name, config = "semantic", {"min_confidence": 0.5}


class TestExample(PluginContract):
    """The source of ``examples/memfs_todo_source``."""

    config: ClassVar[Mapping[str, Any]] = {"max_items": 2, "words": ["XXX"]}

    @pytest.fixture
    def plugin(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryPlugin]:
        monkeypatch.syspath_prepend(EXAMPLE)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        source = __import__("memfs_todo_source").TodoSource()
        source.configure({"folder": str(tmp_path)})
        yield source
        sys.modules.pop("memfs_todo_source", None)


def test_every_built_in_source_is_proved(sources: Sources) -> None:
    """None is added without a class here."""
    assert {one.name for one in BuiltIn.__subclasses__()} == built_in(sources).keys() == BUILT_IN_SOURCES.keys()
