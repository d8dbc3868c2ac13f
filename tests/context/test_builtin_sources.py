"""The built-in sources: the seed's constructors, headings, bullets and settings (seed 004, P3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from memfs.context.builtin_sources import (
    ConventionsMemory,
    EpisodicMemory,
    FeedbackMemory,
    PreferencesMemory,
    SemanticMemory,
    built_in,
)
from memfs.context.deliver import ItemSource, MemoryPlugin
from memfs.errors import SettingInvalid
from memfs.model import MemoryItem
from memfs.model.episode import Action, Outcome, StateSnapshot
from memfs.settings import BUILT_IN_SOURCES
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
STATE = StateSnapshot.create(files=["src/auth.py"], context="change the login")


@dataclass
class Happened:
    """An episode as the seed's code looks at it, without anything else."""

    outcome: Outcome
    action: Action
    error_message: str


@dataclass
class Advice:
    """A rule as the seed's code looks at it."""

    action: str
    confidence: float


class PreferenceStore:
    """The seed's store of preferences."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.asked: list[tuple[str, int]] = []

    def get_relevant(self, context: str, limit: int) -> list[str]:
        self.asked.append((context, limit))
        return list(self.texts[:limit])


class EpisodicStore:
    """The seed's store of episodes, which is awaited."""

    def __init__(self, *episodes: Happened) -> None:
        self.episodes = episodes
        self.asked: list[int] = []

    async def find_similar(self, state: StateSnapshot, limit: int) -> list[Happened]:
        assert state is STATE
        self.asked.append(limit)
        return list(self.episodes[:limit])


class SemanticStore:
    """The seed's store of rules."""

    def __init__(self, *rules: Advice) -> None:
        self.rules = rules

    def find_matching_rules(self, context: str, min_confidence: float) -> list[Advice]:
        assert context == "change the login"
        return [rule for rule in self.rules if rule.confidence >= min_confidence]


def context_of(plugin: Any, state: StateSnapshot = STATE) -> str | None:
    """What a source says of a situation, as a plugin and as a source of items."""
    text: str | None = asyncio.run(plugin.get_context(state))
    assert (text or "") == str(plugin.select(state))
    return text


# -- preferences --------------------------------------------------------------------------------------------------
def test_preferences_say_what_the_seed_says() -> None:
    """P3: heading and bullets; "" without any; at most ``max_items``, 10 unless set."""
    store = PreferenceStore("Use tabs.", "Keep it short.")
    plugin = PreferencesMemory(store)
    assert (plugin.name, plugin.layer, plugin.max_items) == ("preferences", "automatic", 10)
    assert context_of(plugin) == "User preferences:\n- Use tabs.\n- Keep it short."
    assert store.asked == [("change the login", 10)] * 2
    plugin.configure({"max_items": 1})
    assert context_of(plugin) == "User preferences:\n- Use tabs."
    assert context_of(PreferencesMemory(PreferenceStore())) == ""


def test_a_recorded_correction_is_reported_with_id_and_trust(opened: Open) -> None:
    """P3: from the workspace's own store each entry says which item it is."""
    workspace = opened()
    (stored,) = workspace.sources.preferences.record("Never push to main.", "Ada", "s1")
    (entry,) = built_in(workspace.sources)["preferences"]().select(StateSnapshot()).entries
    assert (entry.text, entry.id, entry.trust) == ("Never push to main.", stored.id, "human")
    assert entry.origin == "speaker Ada"


# -- episodes -----------------------------------------------------------------------------------------------------
def test_episodes_warn_as_the_seed_says() -> None:
    """P3: failures only, with what was done and what went wrong; None without any; a store may be awaited."""
    store = EpisodicStore(
        Happened(Outcome.FAILURE, Action("edit", "Rename login"), "tests broke"),
        Happened(Outcome.SUCCESS, Action("edit", "Fix login"), ""),
        Happened(Outcome.FAILURE, Action("run", "Run tests"), "timeout"),
    )
    plugin = EpisodicMemory(store)
    assert (plugin.name, plugin.layer) == ("episodic", "triggered")
    assert (plugin.similarity_threshold, plugin.max_warnings) == (0.7, 3)
    assert context_of(plugin) == "Past issues with similar context:\n- Rename login: tests broke\n- Run tests: timeout"
    assert store.asked == [3, 3]
    plugin.configure({"max_warnings": 2})
    assert context_of(plugin) == "Past issues with similar context:\n- Rename login: tests broke"
    plugin.configure({"max_warnings": 0})
    assert context_of(plugin) is None
    assert context_of(EpisodicMemory(EpisodicStore())) is None


def test_an_awaited_store_is_asked_while_a_loop_runs() -> None:
    """P3: ``select`` waits for it in a thread of its own, and what it raises is raised."""

    class Broken:
        async def find_similar(self, _state: StateSnapshot, limit: int) -> list[Happened]:
            raise OSError(f"{limit} too many")

    async def within() -> None:
        store = EpisodicStore(Happened(Outcome.FAILURE, Action("edit", "Rename"), "broke"))
        assert len(EpisodicMemory(store).select(STATE).entries) == 1
        with pytest.raises(OSError, match="3 too many"):
            EpisodicMemory(Broken()).select(STATE)

    asyncio.run(within())


def test_a_recorded_failure_warns_with_its_trust(opened: Open) -> None:
    """P3: a situation like that of a failure is warned, by its item's id and trust; its threshold is the setting's."""
    from memfs.model.episode import Episode

    workspace = opened()
    episode = Episode.create(STATE, Action("edit", "Rename login"), Outcome.FAILURE, "tests broke")
    recorded = workspace.sources.episodes.record(episode)
    plugin = built_in(workspace.sources)["episodic"]()
    (entry,) = plugin.select(STATE).entries
    assert (entry.text, entry.id, entry.trust) == ("Rename login: tests broke", recorded.id, "agent")
    assert context_of(plugin, StateSnapshot.create(files=["docs/other.md"], context="write a poem")) is None


def test_how_alike_and_how_many_are_settings(opened: Open) -> None:
    """P3: ``similarity_threshold`` reaches the workspace's store; a store that gives more than asked is cut."""
    from memfs.model.episode import Episode

    workspace = opened()
    episode = Episode.create(STATE, Action("edit", "Rename login"), Outcome.FAILURE, "tests broke")
    workspace.sources.episodes.record(episode)
    plugin = built_in(workspace.sources)["episodic"]()
    near = StateSnapshot.create(files=STATE.files, context="count the rows of a table")
    assert len(plugin.select(near).entries) == 1
    plugin.configure({"similarity_threshold": 0.98})
    assert not plugin.select(near).entries
    assert len(plugin.select(STATE).entries) == 1

    class Generous:
        def find_similar(self, _state: StateSnapshot, limit: int) -> list[Happened]:
            return [Happened(Outcome.FAILURE, Action("edit", f"Edit {n}"), "broke") for n in range(limit + 5)]

    assert len(EpisodicMemory(Generous()).select(STATE).entries) == 3


# -- rules --------------------------------------------------------------------------------------------------------
def test_rules_are_reported_as_the_seed_says() -> None:
    """P3: the advice and its confidence in per cent, from ``min_confidence`` on, 0.7 unless set."""
    plugin = SemanticMemory(SemanticStore(Advice("Run the linter", 0.874), Advice("Ask first", 0.5)))
    assert (plugin.name, plugin.layer, plugin.min_confidence) == ("semantic", "triggered", 0.7)
    assert context_of(plugin) == "Learned patterns:\n- Run the linter (confidence: 87%)"
    plugin.configure({"min_confidence": 0.5})
    assert context_of(plugin) == "Learned patterns:\n- Run the linter (confidence: 87%)\n- Ask first (confidence: 50%)"
    plugin.configure({"min_confidence": 1})
    assert context_of(plugin) is None


def test_a_rule_is_found_by_the_files_of_a_situation(opened: Open) -> None:
    """P3: the workspace's own rules are asked with the whole situation."""
    from memfs.model.episode import Rule

    workspace = opened()
    rule = workspace.sources.rules.add_rule(Rule("", "Run the login tests", 0.9, files=("src/auth.py",)))
    (entry,) = built_in(workspace.sources)["semantic"]().select(STATE).entries
    assert (entry.text, entry.id) == ("Run the login tests (confidence: 90%)", rule.id)


# -- conventions --------------------------------------------------------------------------------------------------
def test_accepted_conventions_for_the_files_are_reported(opened: Open) -> None:
    """P3: those a person vouches for, for the files at hand, with their scope."""
    workspace = opened()

    def convention(text: str, **fields: Any) -> None:
        workspace.store.put(MemoryItem(text, "convention", **{"status": "accepted", **fields}))

    convention("Use type hints.", data={"scope": ["src/**/*.py"]}, importance=3.0)
    convention("Sign every commit.")
    convention("Only for the docs.", data={"scope": ["docs/**"]})
    convention("An idea.", status="proposed")
    convention("An agent's own.", trust="agent", importance=9.0)
    plugin = built_in(workspace.sources)["conventions"]()
    assert isinstance(plugin, ConventionsMemory)
    assert context_of(plugin) == "Project conventions:\n- Use type hints. (src/**/*.py)\n- Sign every commit."
    assert len(plugin.select(StateSnapshot()).entries) == 3
    plugin.configure({"max_items": 1})
    assert len(plugin.select(STATE).entries) == 1


# -- feedback -----------------------------------------------------------------------------------------------------
def test_feedback_is_given_to_the_agent_that_is_named(opened: Open) -> None:
    """S5: the text of ``feedback_for``, recorded once; nothing for others, without iterations, or where it is off."""
    workspace = opened()
    plugin = built_in(workspace.sources)["feedback"]()
    scout = StateSnapshot.create(agent="Scout")
    assert asyncio.run(plugin.get_context(scout)) == ""
    assert "states" not in workspace.__dict__
    workspace.states.iterations.start(1)
    critique = {"agent_feedback": {"Scout": ["look wider", "look deeper"]}}
    workspace.states.recorder.meta_review({"iteration_number": 1, "critique": critique, "research_overview": {}})
    (entry,) = plugin.select(scout).entries
    assert "look wider" in entry.text
    assert "look deeper" in entry.text
    assert entry.text == asyncio.run(plugin.get_context(scout))
    assert (entry.trust, entry.origin) == ("agent", "meta-review of iteration 1")
    record = workspace.root / "ContextMemory/iterations/iteration_001/feedback/Scout.json"
    before = record.read_bytes()
    plugin.select(scout)
    assert record.read_bytes() == before
    assert not plugin.select(StateSnapshot()).entries
    plugin.configure({"max_items": 1})
    assert "look deeper" not in plugin.select(scout).entries[0].text
    plugin.configure({"enabled": False})
    assert not plugin.select(scout).entries


# -- all of them --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", BUILT_IN_SOURCES)
def test_each_is_a_plugin_with_strict_settings(opened: Open, name: str) -> None:
    """P5: an unknown key is an error that names the nearest, a wrong value one that names the key; nothing is taken."""
    plugin = built_in(opened().sources)[name]()
    assert isinstance(plugin, MemoryPlugin)
    assert isinstance(plugin, ItemSource)
    assert plugin.name == name
    key = {"episodic": "max_warnings", "semantic": "min_confidence"}.get(name, "max_items")
    with pytest.raises(SettingInvalid) as unknown:
        plugin.configure({key: 1, key[:-1]: 1})
    assert unknown.value.hint == f"did you mean {key!r}?"
    assert unknown.value.field == f"memory.{name}.{key[:-1]}"
    for wrong in ("1", -1, None, True, [1], float("nan"), 10**9):
        with pytest.raises(SettingInvalid, match=key):
            plugin.configure({key: wrong})
    with pytest.raises(SettingInvalid):
        plugin.configure(["max_items"])  # type: ignore[arg-type]


def test_p3_a_custom_class_under_another_name_has_our_settings() -> None:
    """A derived source with another name need not know which settings it has (P2, P3)."""

    class House(PreferencesMemory):
        name = "house"

    plugin = House(PreferenceStore())
    assert plugin.max_items == 10
    plugin.configure({"max_items": 1})
    assert plugin.max_items == 1
    with pytest.raises(SettingInvalid) as unknown:
        plugin.configure({"max_item": 1})
    assert (unknown.value.field, unknown.value.hint) == ("memory.house.max_item", "did you mean 'max_items'?")


def test_a_custom_feedback_store_is_asked() -> None:
    """P3: as with the other sources, any object with the method will do."""

    class Given:
        text = "Look wider.\n"

    class Store:
        async def for_agent(self, agent: str, most: int) -> Given | None:
            asked.append(agent)
            return Given() if (agent, most) == ("Scout", 10) else None

    asked: list[str] = []

    plugin = FeedbackMemory(Store())
    assert asyncio.run(plugin.get_context(StateSnapshot.create(agent="Scout"))) == "Look wider."
    assert not plugin.select(StateSnapshot()).entries
    assert asked == ["Scout"]
    assert not plugin.select(StateSnapshot.create(agent="Other")).entries
