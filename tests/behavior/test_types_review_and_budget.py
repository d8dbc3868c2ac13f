"""Steps for seed 003: five types, review and budget (C1-C5), through public names only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from memfs import Memory, MemoryCoordinator, StoreResult

scenarios("features/types_review_and_budget.feature")

REVIEWERS = {"analyzer", "patterns", "knowledge-archaeologist"}
STEPS = "build the image, run the migrations, switch the traffic, watch the error rate, keep the old release for a day"


class World:
    """A coordinator, and what it said of each text."""

    def __init__(self, path: Path) -> None:
        self.memory = MemoryCoordinator(path)
        self.results: list[StoreResult] = []
        self.cleared = 0

    def store(self, content: str, kind: str, **metadata: str) -> StoreResult:
        """Store a text and note what became of it."""
        self.results.append(self.memory.store(content, kind, metadata=metadata))
        return self.results[-1]

    @property
    def last(self) -> StoreResult:
        """What became of the last text."""
        return self.results[-1]


@pytest.fixture
def world(workspace_path: Path) -> World:
    """The coordinator under test."""
    return World(workspace_path)


@given("a memory coordinator")
def _(world: World) -> None:
    assert world.memory.stats().total_count == 0


@given(parsers.re(r'"(?P<content>[^"]+)" is stored as "(?P<kind>[^"]+)"$'))
def _(world: World, content: str, kind: str) -> None:
    assert world.store(content, kind).stored, world.last.reason


@given(parsers.parse('"{content}" is stored as working memory of the session "{session}"'))
def _(world: World, content: str, session: str) -> None:
    assert world.store(content, "working", session_id=session).stored, world.last.reason


@when(parsers.re(r'I store "(?P<content>[^"]+)" as "(?P<kind>[^"]+)"$'))
def _(world: World, content: str, kind: str) -> None:
    world.store(content, kind)


@given("6 long procedures about deployment are stored")
def _(world: World) -> None:
    for name in ("shop", "blog", "wiki", "billing", "search", "mail"):
        result = world.store(f"Deployment of the {name} service: first {STEPS}; the {name} team decides.", "procedural")
        assert result.stored, result.reason


@given("two nearly equal memories about the release")
def _(world: World) -> None:
    for end in ("on Monday morning", "on Monday morning!!"):
        text = f"Decided that the release of the checkout service is always rolled out by two people {end}"
        assert world.store(text + ("" if end.endswith("g") else " at nine"), "episodic").stored


@when(parsers.parse('the working memory of the session "{session}" is cleared'))
def _(world: World, session: str) -> None:
    world.cleared = world.memory.clear_working_memory(session)


@then(parsers.parse("it is stored with a consensus of at least {least:f}"))
def _(world: World, least: float) -> None:
    assert (world.last.stored, world.last.consensus_score >= least) == (True, True)
    assert world.last.memory_id


@then("each of the three reviewers gave a score and a reason")
def _(world: World) -> None:
    review = world.last.review
    assert review is not None
    assert set(review.agent_scores) == set(review.reasons) == REVIEWERS
    assert all(0 <= score <= 10 for score in review.agent_scores.values())
    assert all(review.reasons.values())


@then("it is not stored, because it is trivial")
def _(world: World) -> None:
    assert (world.last.stored, world.last.memory_id) == (False, None)
    assert "trivial" in world.last.reason
    assert world.memory.stats().total_count == 0


@then(parsers.re(r'retrieving "(?P<query>[^"]+)" gives "(?P<content>[^"]+)" first'))
def _(world: World, query: str, content: str) -> None:
    assert world.memory.retrieve(query, limit=5)[0].content == content


@then("it has an id, a type, a time, a token count, metadata, a context and a relevance score")
def _(world: World) -> None:
    memory: Memory = world.memory.retrieve("JWT")[0]
    assert (memory.id, memory.type) == (world.last.memory_id, "procedural")
    assert memory.timestamp <= datetime.now(UTC)
    assert 0 < memory.token_count < 20
    assert (dict(memory.context), isinstance(dict(memory.metadata), dict)) == ({}, True)
    assert memory.relevance_score is not None
    assert 0 < memory.relevance_score <= 1


@then("it is reported as merged into the first")
def _(world: World) -> None:
    assert (world.last.stored, world.last.merged_into) == (True, world.results[0].memory_id)


@then(parsers.re(r"there (is|are) (?P<count>\d+) memor(y|ies)$"))
def _(world: World, count: str) -> None:
    assert world.memory.stats().total_count == int(count)


@then("it is reported as contradicting the first")
def _(world: World) -> None:
    assert world.last.contradicts == (world.results[0].memory_id,)


@then(parsers.re(r'retrieving "(?P<query>[^"]+)" of the type "(?P<kind>[^"]+)" gives only "(?P<content>[^"]+)"'))
def _(world: World, query: str, kind: str, content: str) -> None:
    assert [memory.content for memory in world.memory.retrieve(query, memory_types=[kind])] == [content]


@then(parsers.parse('retrieving "{query}" since tomorrow gives nothing'))
def _(world: World, query: str) -> None:
    assert world.memory.retrieve(query, since=datetime.now(UTC) + timedelta(days=1)) == []


@then(parsers.parse('retrieving nothing in particular of the type "{kind}" gives these, the newest first'))
def _(world: World, kind: str) -> None:
    found = world.memory.retrieve("", memory_types=[kind])
    assert {memory.id for memory in found} == {result.memory_id for result in world.results}
    assert found == sorted(found, key=lambda memory: memory.timestamp, reverse=True)


@then(parsers.parse('retrieving "{query}" within {budget:d} tokens gives some of them, of at most so many'))
def _(world: World, query: str, budget: int) -> None:
    found = world.memory.retrieve(query, max_tokens=budget)
    assert 0 < len(found) < 6
    assert sum(memory.token_count for memory in found) <= budget


@then(parsers.re(r'retrieving "(?P<query>[^"]+)" without repetitions gives one memory'))
def _(world: World, query: str) -> None:
    assert len(world.memory.retrieve(query, deduplicate=True)) == 1


@then(parsers.re(r'retrieving "(?P<query>[^"]+)" gives two memories'))
def _(world: World, query: str) -> None:
    assert len(world.memory.retrieve(query)) == 2


@then(parsers.parse('asking "{one}" and "{other}" together gives each its own answer'))
def _(world: World, one: str, other: str) -> None:
    answers = world.memory.batch_retrieve([one, other])
    assert {query: [one.id for one in found] for query, found in answers.items()} == {
        one: [world.results[0].memory_id],
        other: [world.results[1].memory_id],
    }


@then(parsers.re(r"(?P<count>\d+) memory was cleared"))
def _(world: World, count: str) -> None:
    assert world.cleared == int(count)


@then(parsers.parse('the counts are "{one}" {first:d}, "{other}" {second:d}'))
def _(world: World, one: str, first: int, other: str, second: int) -> None:
    stats = world.memory.stats()
    assert (stats.total_count, dict(stats.by_type)) == (first + second, {one: first, other: second})


@then("deleting the first memory says yes, and deleting it again says no")
def _(world: World) -> None:
    first = world.results[0].memory_id or ""
    assert [world.memory.delete_memory(first), world.memory.delete_memory(first)] == [True, False]
