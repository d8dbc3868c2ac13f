"""MemoryContext, PatternDetector and MemoryInjector: seed 002 by its own names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.patience import LONG
from memfs import (
    ItemNotFound,
    Memory,
    MemoryConfig,
    MemoryContext,
    MemoryInjector,
    MemoryItem,
    MemoryType,
    PatternDetector,
    QueryInvalid,
    SchemaInvalid,
    Workspace,
)

Open = Callable[..., Workspace]


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what was stored is learned from before somebody asks."""
    monkeypatch.setattr("memfs.facades.memory_context._PATIENCE", LONG)


@pytest.fixture
def memory(opened: Open) -> Iterator[MemoryContext]:
    """A memory over a workspace of its own."""
    with MemoryContext(workspace=opened()) as made:
        yield made


# -- adding and recalling -----------------------------------------------------------------------------------------
def test_a_memory_is_structured_and_found(memory: MemoryContext) -> None:
    """The seed's first test: type, content and context are kept, the type is interaction unless given (M1)."""
    added = memory.add_memory({"content": "User asked about authentication", "context": {"project": "test-app"}})
    found = memory.get(added)
    assert isinstance(found, Memory)
    assert (found.type, found.content) == (MemoryType.INTERACTION, "User asked about authentication")
    assert found.context == {"project": "test-app"}
    assert found.metadata["access_count"] == 0
    assert found.metadata["relevance_score"] == 1.0
    assert found.metadata["last_accessed"] is None


def test_recall_gives_the_relevant(memory: MemoryContext) -> None:
    """The seed's second test: the better match comes first, and relevance falls (M1)."""
    memory.add_memory("Setup authentication for the service")
    memory.add_memory("Configure the database and the setup of its backups")
    results = memory.recall("authentication setup")
    assert "authentication" in results[0].content
    assert len(results) == 2
    assert 1 >= results[0].relevance > results[1].relevance > 0


def test_shared_circumstances_count(memory: MemoryContext) -> None:
    """An item that shares a key and value with the context counts one and a half times (M1)."""
    ids = [
        memory.add_memory({"content": "The release needs a tag", "context": {"project": project}})
        for project in ("blog", "shop", "wiki")
    ]
    for number, project in enumerate(("blog", "shop", "wiki")):
        found = memory.recall("release tag", {"project": project}, limit=4)  # what is learned of them may be there, too
        best, *others = [one for one in found if one.id in ids]
        assert best.id == found[0].id == ids[number]
        assert all(best.relevance == pytest.approx(1.5 * other.relevance, rel=0.01) for other in others)


def test_what_a_memory_may_be(memory: MemoryContext) -> None:
    """A text, a mapping, an item and a recalled memory can all be added; an unknown field is named (M1)."""
    item = MemoryItem("Written as an item", "knowledge", tags=["kept"])
    stored = memory.workspace.store.get(memory.add_memory(item))
    assert stored is not None
    assert (stored.type, stored.tags) == ("knowledge", ("kept",))
    text = memory.get(memory.add_memory("Only a text"))
    assert text is not None
    copied = memory.add_memory(
        {"content": text.content, "type": "episodic", "metadata": None, "timestamp": "2026-03-01"}
    )
    assert memory.recall("only text", types={"episodic"})[0].id == copied
    with pytest.raises(SchemaInvalid, match="content"):
        memory.add_memory({"contents": "misspelt"})
    with pytest.raises(SchemaInvalid, match="expected a memory"):
        memory.add_memory(42)  # type: ignore[arg-type]
    with pytest.raises(QueryInvalid, match="context: expected a mapping"):
        memory.recall("only text", "shop")  # type: ignore[arg-type]


def test_uses_are_reported_and_survive(tmp_path: Path) -> None:
    """What was recalled counts as used, in the next process as well: 1.05 for each use (M3, M7)."""
    with MemoryContext(path=tmp_path / "W") as first:
        added = first.add_memory("The cache is warmed at night")
        for _ in range(2):
            first.recall("cache")
    with MemoryContext(tmp_path / "W") as second:
        (found,) = second.recall("warmed cache")
        assert found.id == added
        assert found.metadata["access_count"] >= 2
        assert found.metadata["relevance_score"] == pytest.approx(1.05 ** found.metadata["access_count"], abs=1e-3)
        assert found.metadata["last_accessed"]


def test_update_and_delete(memory: MemoryContext) -> None:
    """Fields are replaced under the same id; a deleted memory is gone, and deleting it again says so."""
    added = memory.add_memory({"content": "The port is 8080", "context": {"service": "api"}})
    changed = memory.update(added, content="The port is 8081")
    assert (changed.id, changed.content, changed.context) == (added, "The port is 8081", {"service": "api"})
    with pytest.raises(SchemaInvalid, match="sha256"):
        memory.update(added, sha256="0")
    assert (memory.delete(added), memory.delete(added), memory.get(added)) == (True, False, None)
    with pytest.raises(ItemNotFound):
        memory.update(added, content="Not there")


def test_from_an_event_loop(memory: MemoryContext) -> None:
    """Adding and recalling have forms to be awaited."""

    async def session() -> list[Memory]:
        await asyncio.gather(*(memory.add_memory_async(f"Fact {word}") for word in ("one", "two")))
        return await memory.recall_async("fact one", limit=1)

    assert [found.content for found in asyncio.run(session())] == ["Fact one"]


# -- patterns -----------------------------------------------------------------------------------------------------
def test_the_seeds_example_is_a_pattern(memory: MemoryContext) -> None:
    """create user / admin / guest login: one pattern, kept once, brought up to date, recalled and suggested (M2)."""
    for who in ("user", "admin", "guest"):
        memory.add_memory({"content": f"create {who} login", "context": {"project": "shop"}})
    (pattern,) = memory.patterns()
    assert (pattern.type, pattern.content) == (MemoryType.PATTERN, "create {variable} login")
    memory.add_memory({"content": "create superuser login", "context": {"project": "shop"}})
    (again,) = memory.patterns()
    stored = memory.workspace.store.get(again.id)
    assert stored is not None
    assert (again.id, stored.data["occurrences"]) == (pattern.id, 4)
    assert pattern.id in [found.id for found in memory.recall("create a login")]
    assert [one.id for one in memory.patterns("create a login for editors")] == [pattern.id]
    assert [one.id for one in memory.patterns(context={"project": "shop"})] == [pattern.id]


def test_config_decides_what_is_a_pattern(tmp_path: Path) -> None:
    """A threshold that is given to the constructor counts; so does a whole MemoryConfig (M4)."""
    with MemoryContext({"pattern_threshold": 2}, path=tmp_path / "W") as memory:
        for who in ("user", "admin"):
            memory.add_memory(f"create {who} login")
        assert [one.content for one in memory.patterns()] == ["create {variable} login"]
    with MemoryContext(MemoryConfig(pattern_threshold=5, behavior_rules=()), path=tmp_path / "W") as memory:
        assert (memory.config.pattern_threshold, memory.config.behavior_rules) == (5, ())


def test_detector_takes_any_shape() -> None:
    """The detector alone finds a pattern among mappings, texts, items and memories; too few make none (M2)."""
    shapes: list[Any] = [
        {"id": "1", "content": "create user login"},
        "create admin login",
        MemoryItem("create guest login", "interaction"),
    ]
    detector = PatternDetector(threshold=3)
    pattern = detector.detect_pattern(shapes)
    assert pattern is not None
    assert (pattern.template, pattern.occurrences, pattern.type) == ("create {variable} login", 3, "interaction")
    assert detector.extract_pattern(shapes) == pattern
    assert [len(group) for group in detector.group_by_similarity([*shapes, "something else entirely"])] == [3]
    assert detector.are_similar(shapes[0], shapes[1])
    assert detector.detect_pattern(shapes[:2]) is None
    assert detector.detect_all([]) == []
    for one in ("create user login", shapes[0], shapes[2]):
        with pytest.raises(SchemaInvalid, match="in a list"):
            detector.detect_pattern(one)


# -- feedback and pruning -----------------------------------------------------------------------------------------
def test_what_is_stored_is_reported_though_no_room_can_be_made(opened: Open) -> None:
    """An invalid policy fails no call that has stored something: anyone who called again would store it twice."""
    root = opened().root
    policy = root / "ContextMemory/configuration/retention_policy.json"
    policy.write_text('{"prune": {"action": "shred"}}')
    with MemoryContext({"max_memories": 1}, root) as memory:
        workspace = memory.workspace
        added = [memory.add_memory({"content": f"apple {number}"}) for number in range(3)]
        assert memory.feedback(added[0], False) < 1
        assert len(added) == workspace.store.count() == 3
        assert any("shred" in problem.message for problem in workspace.store.problems())


def test_feedback_changes_the_order(memory: MemoryContext) -> None:
    """A positive signal lifts, a negative one lowers importance and place, each a version in history (M3)."""
    one = memory.add_memory("Restart the worker when the queue stalls, first way")
    other = memory.add_memory("Restart the worker when the queue stalls, second way")
    before = [found.id for found in memory.recall("queue stalls")]
    assert memory.feedback(before[-1], positive=True, reason="it worked") > 1
    assert memory.feedback(before[0], positive=False) < 1
    assert [found.id for found in memory.recall("queue stalls")] == before[::-1]
    assert {one, other} == set(before)
    memory.workspace.store.flush()
    commit = memory.workspace.history.log(before[-1])[0]
    assert "it worked" in commit.subject + commit.body
    with pytest.raises(ItemNotFound):
        memory.feedback("nothing-here", positive=True)
    with pytest.raises(QueryInvalid):
        memory.feedback(one, positive="yes")  # type: ignore[arg-type]


def test_the_weakest_make_room(tmp_path: Path, opened: Open) -> None:
    """Above max_memories the weakest go into the archive, never a new one nobody read yet (M3)."""
    with MemoryContext({"max_memories": 5}, path=tmp_path / "W") as memory:
        now = memory.workspace.parts.clock()
        words = ("apple", "birch", "cedar", "daisy", "elder", "fern", "grass")
        ids = [
            memory.add_memory({"content": f"{word} alone", "timestamp": now - timedelta(days=100 * (6 - number))})
            for number, word in enumerate(words)
        ]
        assert memory.workspace.store.count() == 5
        assert [memory.get(name) is None for name in ids] == [True, True, *[False] * 5]
        assert memory.prune(dry_run=True).items == ()


def test_recall_gives_a_pattern_before_the_many_that_follow_it(memory: MemoryContext) -> None:
    """After 24 observations of one kind the pattern is among the first three, within the limit, once (M1, M2)."""
    for number in range(24):
        memory.add_memory({"content": f"create role{number} login", "context": {"project": "app"}})
    memory.add_memory("the canteen closes at two")
    for limit in (4, 10):
        found = memory.recall("create auditor login", {"project": "app"}, limit=limit)
        types = [str(one.type) for one in found]
        assert len(found) == limit
        assert types[:3].count("pattern") == types.count("pattern") == 1
        assert [one.relevance for one in found] == sorted((one.relevance for one in found), reverse=True)
    assert "pattern" not in {str(one.type) for one in memory.recall("create auditor login", types=["interaction"])}


# -- injecting ----------------------------------------------------------------------------------------------------
def test_what_is_relevant_is_injected(memory: MemoryContext) -> None:
    """Tool and intent ask, at most five memories come with type, content, relevance and context (M6)."""
    for number in range(7):
        memory.add_memory({"content": f"deploy step {'abcdefg'[number]} uses docker", "context": {"env": "staging"}})
    context = {"task": "release"}
    situation = {"tool": "docker", "params": {"intent": "deploy"}, "env": "staging"}
    injected = MemoryInjector(memory).inject(context, situation)
    assert injected["task"] == "release"
    assert len(injected["relevant_memories"]) == 5
    assert set(injected["relevant_memories"][0]) == {"type", "content", "relevance", "context"}
    relevances = [row["relevance"] for row in injected["relevant_memories"]]
    assert relevances == sorted(relevances, reverse=True)
    assert context == {"task": "release"}
    assert MemoryInjector(memory).inject_memories(context, situation) == injected


@pytest.mark.parametrize(
    "situation", [{}, {"tool": "telescope"}, {"tool": "", "params": {"intent": ""}}, {"params": None}]
)
def test_nothing_found_changes_nothing(memory: MemoryContext, situation: dict[str, Any]) -> None:
    """Where nothing is found, or nothing is asked, the context stays as it is (M6)."""
    memory.add_memory("deploy with docker")
    assert MemoryInjector(memory).inject({"task": "release"}, situation) == {"task": "release"}
