"""MemoryCoordinator and its pipelines: seed 003 by its own names."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs import (
    AgentReview,
    Memory,
    MemoryCoordinator,
    MemoryItem,
    MemoryStats,
    MemoryType,
    QueryInvalid,
    RetrievalPipeline,
    SchemaInvalid,
    SecretDetected,
    SettingInvalid,
    StoragePipeline,
    StoreResult,
    TimeWeightedRetrieval,
    TrivialFilter,
    Workspace,
)
from memfs.errors import WorkspaceClosed
from memfs.model.item import Trust

Open = Callable[..., Workspace]
REDIS = "Decided to use Redis for sessions, because two servers share them"


@pytest.fixture
def coordinator(opened: Open) -> Iterator[MemoryCoordinator]:
    """A coordinator over a workspace of its own."""
    with MemoryCoordinator(workspace=opened()) as made:
        yield made


# -- one's own ways to read and to judge -----------------------------------------------------------------------------
class Colours(AgentReview):
    """Judges answers by a colour, whatever they say else."""

    def _score_relevance(self, memory: MemoryItem, query: str, agent_type: str) -> float:
        return 1.0 if "green" in memory.content else 0.1


class Whole(AgentReview):
    """Judges answers in one go."""

    def score_relevance(self, memory: Any, query: str) -> float:
        return 0.9 if "green" in memory.content else 0.0


class Severe(AgentReview):
    """Lets no draft through, and thinks little of every answer."""

    def _score_storage(self, memory: MemoryItem, agent_type: str) -> tuple[float, str]:
        return 1.0, "no"

    def score_relevance(self, memory: Any, query: str) -> float:
        return 0.25


class Failing(AgentReview):
    """Cannot judge."""

    def score_relevance(self, memory: Any, query: str) -> float:
        raise RuntimeError("no opinion today")


class Tagged(StoragePipeline):
    """Reads a colour out of episodes."""

    def _extract_memory(self, content: str, memory_type: str, metadata: Any, context: Any) -> MemoryItem | Memory:
        made = super()._extract_memory(content, memory_type, metadata, context)
        if memory_type != MemoryType.EPISODIC:
            return made
        return dataclasses.replace(made, metadata={**made.metadata, "colour": "green"})


@pytest.mark.parametrize("review", [Colours, Whole])
def test_a_custom_review_orders_answers(opened: Open, review: type[AgentReview]) -> None:
    """What ``score_relevance`` says decides the order, beyond the words of the question; its score is shown (C4)."""
    with MemoryCoordinator(workspace=opened(), agent_review=review()) as memory:
        for text in ("paint the paint shed with paint", "paint the long fence green one day", "paint nothing else"):
            memory.workspace.store.put(MemoryItem(text, "semantic"))
        found = memory.retrieve("paint shed", limit=2)
        assert found[0].content == "paint the long fence green one day"
        assert found[0].relevance_score == pytest.approx(1.0 if review is Colours else 0.9)
        assert memory.batch_retrieve(["paint shed"])["paint shed"][0].content == found[0].content
        assert len(memory.retrieve("")) == 3


def test_a_review_that_fails_leaves_the_order_as_it_was(opened: Open) -> None:
    """A judge that raises is left out like any other: the answer counts (C4, D7)."""
    workspace = opened()
    for text in ("paint the shed", "paint the fence"):
        workspace.store.put(MemoryItem(text, "semantic"))
    with MemoryCoordinator(workspace=workspace, agent_review=Failing()) as memory:
        assert memory.retrieve("paint shed")[0].content == "paint the shed"


def test_custom_extraction_is_called_by_type(opened: Open) -> None:
    """A storage pipeline that overrides ``_extract_memory`` reads more out of a text (C3, D7)."""
    with MemoryCoordinator(workspace=opened(), storage=Tagged) as memory:
        for kind in (MemoryType.EPISODIC, MemoryType.SEMANTIC):
            memory.store(REDIS + f" ({kind.value})", kind)
        colours = {one.type: one.metadata.get("colour") for one in memory.retrieve("Redis")}
        assert colours == {MemoryType.EPISODIC: "green", MemoryType.SEMANTIC: None}


# -- storing ------------------------------------------------------------------------------------------------------
def test_what_is_set_on_a_pipeline_counts(opened: Open) -> None:
    """A pipeline is the same object each time, takes a judge, and may be replaced, as seed 003 does it (C3, D7)."""
    workspace = opened()
    with MemoryCoordinator(workspace=workspace) as memory:
        assert memory.storage is memory.storage
        memory.storage.agent_review = Severe()
        assert not memory.store("Decided to use PostgreSQL for the orders", "episodic").stored
        memory.storage = Tagged(":memory:")
        kept = memory.store("Decided to use PostgreSQL for the orders", "episodic")
        assert workspace.store.get(kept.memory_id or "").metadata["colour"] == "green"
        memory.agent_review = Severe()
        assert not memory.store("Decided to use Redis for the sessions", "episodic").stored
        [found] = memory.retrieve("which database for orders?")
        assert found.relevance_score == 0.25
    with pytest.raises(WorkspaceClosed):
        _ = memory.storage


def test_storage_above_threshold() -> None:
    """The seed's first test: a decision is stored, with its score and an id (C3)."""
    with StoragePipeline(":memory:") as pipeline:
        result = pipeline.store(content="Decided to use PostgreSQL for transactions", memory_type=MemoryType.EPISODIC)
        assert isinstance(result, StoreResult)
        assert result.stored is True
        assert result.consensus_score >= pipeline.consensus_threshold == 6.0
        assert result.memory_id is not None


@pytest.mark.parametrize("content", ["Hi there", "", "   "])
def test_storage_below_threshold(coordinator: MemoryCoordinator, content: str) -> None:
    """The seed's second test: what is trivial is refused, and the reason says so (C1, C3)."""
    result = coordinator.store(content=content, memory_type=MemoryType.WORKING)
    assert (result.stored, result.memory_id, result.consensus_score) == (False, None, 0.0)
    assert "trivial" in result.reason.lower()
    assert coordinator.stats().total_count == 0


def test_end_to_end_memory_flow() -> None:
    """The seed's integration test: what is stored is found by its words, in a workspace that passes (C1)."""
    with MemoryCoordinator(":memory:") as coordinator:
        stored = coordinator.store(content="Implemented JWT authentication with RS256", memory_type="procedural")
        assert stored.stored
        memories = coordinator.retrieve(query="JWT authentication", limit=5)
        assert len(memories) > 0
        assert "JWT" in memories[0].content


def test_what_is_stored_is_an_agents(coordinator: MemoryCoordinator) -> None:
    """Metadata and context are kept, an agent vouches for the item, and the door is named in its commit."""
    result = coordinator.store(REDIS, "episodic", {"component": "authentication"}, {"project": "shop"})
    assert result.memory_id is not None
    item = coordinator.workspace.store.get(result.memory_id)
    assert item is not None
    assert item.metadata["component"] == "authentication"
    assert (dict(item.context), item.trust) == ({"project": "shop"}, Trust.AGENT)
    coordinator.workspace.store.flush()
    (commit,) = coordinator.workspace.history.log(item.id)
    assert "coordinator" in commit.trailers["Memfs-Source"]


@pytest.mark.parametrize(
    ("kind", "metadata", "content", "error"),
    [
        ("epsodic", {}, REDIS, SettingInvalid),
        ("episodic", {"key": {1, 2}}, REDIS, SchemaInvalid),
        ("episodic", "s1", REDIS, SchemaInvalid),
        ("episodic", {}, f"{REDIS}: AKIA" + "QWERTYUIOP2345AB", SecretDetected),
    ],
)
def test_what_cannot_be_stored_is_an_error(
    coordinator: MemoryCoordinator, kind: str, metadata: dict[str, object], content: str, error: type[Exception]
) -> None:
    """A wrong type or value, or a secret, raises and stores nothing."""
    with pytest.raises(error):
        coordinator.store(content, kind, metadata)
    assert coordinator.stats() == MemoryStats(0, {})


def test_store_async_does_not_hold_the_loop(coordinator: MemoryCoordinator) -> None:
    """Storing and retrieving from an event loop run on another thread (C5)."""
    threads = set()
    coordinator.workspace.behaviours.on("memory_stored", lambda _: threads.add(threading.current_thread()))

    async def session() -> tuple[StoreResult, list[Memory]]:
        stored = await asyncio.create_task(coordinator.store_async(REDIS, "episodic"))
        return stored, await coordinator.retrieve_async("Redis sessions", limit=3)

    stored, found = asyncio.run(session())
    assert [memory.id for memory in found] == [stored.memory_id]
    assert threads.isdisjoint({threading.current_thread()})
    assert len(threads) == 1


def test_background_storing_ends_before_close(opened: Open) -> None:
    """What is to be stored later is stored, in order, when the coordinator is closed; a failure is reported (C5)."""
    workspace = opened()
    with MemoryCoordinator(workspace=workspace) as coordinator:
        kept = coordinator.store_in_background(REDIS, "episodic")
        trivial = coordinator.store_in_background("Hi there", "working")
        failing = coordinator.store_in_background(REDIS, "epsodic")
    assert (kept.result(0).stored, trivial.result(0).stored) == (True, False)
    assert isinstance(failing.exception(0), SettingInvalid)
    assert [problem.code for problem in workspace.store.problems()] == ["SettingInvalid"]
    assert workspace.store.count() == 1


def test_a_repeat_is_found_no_matter_who_stored_it_first(opened: Open) -> None:
    """What another process stored, and did not live to index, is united with its repeat all the same (C3)."""
    first = opened()
    stored = first.store.put(MemoryItem(REDIS, "episodic", trust="agent"))
    result = MemoryCoordinator(workspace=opened(first.root)).store(REDIS, "episodic")
    assert (result.memory_id, result.merged_into) == (stored.id, stored.id)


# -- retrieving ---------------------------------------------------------------------------------------------------
def test_a_memory_has_the_eight_fields(coordinator: MemoryCoordinator) -> None:
    """retrieve gives values with every field of the seed, the score filled, and what a merge left open (C1, B3)."""
    result = coordinator.store(REDIS, "episodic", {"component": "authentication"}, {"project": "shop"})
    (memory,) = coordinator.retrieve("why Redis?")
    assert [field.name for field in dataclasses.fields(Memory)] == [
        "id", "type", "content", "timestamp", "token_count", "metadata", "context", "relevance_score",
        "undecided",
    ]  # fmt: skip
    assert (memory.id, memory.type, memory.content) == (result.memory_id, MemoryType.EPISODIC, REDIS)
    assert memory.timestamp.tzinfo is not None
    assert 10 <= memory.token_count <= 25
    assert memory.metadata["component"] == "authentication"
    assert memory.context == {"project": "shop"}
    assert memory.relevance_score is not None
    assert 0 < memory.relevance_score <= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        memory.content = "something else"  # type: ignore[misc]


def filled(coordinator: MemoryCoordinator) -> list[str]:
    """Four memories of two types, a day apart, the oldest first; their ids."""
    texts = [
        ("The payment service times out after thirty seconds", "semantic"),
        ("The payment service times out after thirty seconds.", "semantic"),
        ("The search service was rewritten in Rust", "episodic"),
        ("The payment page shows the total in euros", "semantic"),
    ]
    start = datetime(2026, 3, 1, tzinfo=UTC)
    store = coordinator.workspace.store
    return [
        store.put(MemoryItem(text, kind, timestamp=start + timedelta(days=day))).id
        for day, (text, kind) in enumerate(texts)
    ]


def test_filters_and_order(coordinator: MemoryCoordinator) -> None:
    """Types, since and limit restrict; the scores fall; without a question the newest come first (C4)."""
    oldest, repeated, search, page = filled(coordinator)
    found = coordinator.retrieve("payment service", memory_types=["semantic"])
    assert {memory.id for memory in found} == {oldest, repeated, page}
    scores = [memory.relevance_score or 0 for memory in found]
    assert scores == sorted(scores, reverse=True)
    assert [memory.id for memory in coordinator.retrieve("")] == [page, search, repeated, oldest]
    assert [memory.id for memory in coordinator.retrieve(query="", limit=1)] == [page]
    since = coordinator.retrieve("service", since=datetime(2026, 3, 3))  # noqa: DTZ001  naive means UTC
    assert [memory.id for memory in since] == [search]


def test_duplicates_and_budget(coordinator: MemoryCoordinator) -> None:
    """The seed's defaults keep duplicates; asked to, they go before the budget is spent (C4)."""
    oldest, repeated, _, page = filled(coordinator)
    asked = {"query": "payment service times out", "memory_types": ["semantic"]}
    assert {memory.id for memory in coordinator.retrieve(**asked)} == {oldest, repeated, page}
    apart = [memory.id for memory in coordinator.retrieve(**asked, deduplicate=True)]
    assert len(apart) == 2
    assert page in apart
    assert len(coordinator.retrieve(**asked, deduplicate=True, similarity_threshold=0.01)) == 1
    budget = sum(memory.token_count for memory in coordinator.retrieve(**asked, deduplicate=True))
    within = coordinator.retrieve(**asked, deduplicate=True, max_tokens=budget)
    assert [memory.id for memory in within] == apart
    assert len(coordinator.retrieve(**asked, deduplicate=True, max_tokens=budget - 1)) == 1


def test_a_memory_within_a_budget_holds_the_passage_that_answers(coordinator: MemoryCoordinator) -> None:
    """What memories hold fits ``max_tokens``: a long one has the passage that answers."""
    log = "Then the pressure is logged by whoever is on duty. " * 60
    coordinator.workspace.store.put(MemoryItem(f"{log}The zeppelin lands on Sundays. {log}", id="zeppelin"))
    [found] = coordinator.retrieve("when does the zeppelin land", max_tokens=200)
    assert "The zeppelin lands on Sundays." in found.content
    assert found.token_count <= 200


def test_batch_retrieve_is_retrieve_by_question(coordinator: MemoryCoordinator) -> None:
    """Several questions are answered as each alone would be (C5)."""
    filled(coordinator)
    questions = ["payment page", "search service", "nothing of the sort"]
    together = coordinator.batch_retrieve(questions, limit=2)
    assert list(together) == questions
    for question in questions:
        assert [one.id for one in together[question]] == [one.id for one in coordinator.retrieve(question, limit=2)]


def test_more_of_a_query_may_be_given(coordinator: MemoryCoordinator) -> None:
    """Other fields of a query are taken by name; one that does not exist, or a wrong value, is an error."""
    *_, page = filled(coordinator)
    assert [one.id for one in coordinator.retrieve("payment", until="2026-03-04", since="2026-03-04")] == [page]
    with pytest.raises(QueryInvalid, match="strategy"):
        coordinator.retrieve("payment", strategy="lerning")
    with pytest.raises(QueryInvalid, match="limit"):
        coordinator.retrieve("payment", limit=0)
    with pytest.raises(TypeError, match="colour"):
        coordinator.retrieve("payment", colour="red")


def test_time_weighted_retrieval(opened: Open) -> None:
    """Recency can outweigh relevance: relevance x (1 - w) + 1 / (1 + 0.1 days) x w (C5)."""
    workspace = opened()
    now = workspace.parts.clock()
    old = workspace.store.put(MemoryItem("cache cache cache keys", timestamp=now - timedelta(days=400)))
    new = workspace.store.put(MemoryItem("a long text in which the cache is named only once", timestamp=now))
    retrieval = TimeWeightedRetrieval(workspace=workspace)
    assert [one.id for one in retrieval.retrieve_time_weighted("cache", recency_weight=0.0)] == [old.id, new.id]
    recent = retrieval.retrieve_time_weighted("cache", recency_weight=0.9, limit=1)
    assert [one.id for one in recent] == [new.id]
    with pytest.raises(QueryInvalid, match="recency_weight"):
        retrieval.retrieve_time_weighted("cache", recency_weight=2)


def test_many_threads_each_with_a_coordinator(tmp_path: Path) -> None:
    """Objects of several threads share one workspace, and each finds what another has stored (K9)."""
    texts = [f"Decided to call the {word} service from the gateway" for word in ("mail", "map", "tax", "chat")]

    def work(text: str) -> str | None:
        with MemoryCoordinator(tmp_path / "W") as own:
            return own.store(text, "episodic").memory_id

    with MemoryCoordinator(tmp_path / "W") as coordinator, ThreadPoolExecutor(4) as threads:
        assert coordinator.stats().total_count == 0
        ids = list(threads.map(work, texts))
        assert {memory.id for memory in coordinator.retrieve("gateway service", memory_types=["episodic"])} == set(ids)
        assert len(set(ids)) == 4


# -- keeping ------------------------------------------------------------------------------------------------------
def test_stats_count_by_type(coordinator: MemoryCoordinator) -> None:
    """stats has the number of all and of each type (C1)."""
    filled(coordinator)
    assert coordinator.stats() == MemoryStats(total_count=4, by_type={"semantic": 3, "episodic": 1})


def test_delete_says_whether_there_was_one(coordinator: MemoryCoordinator) -> None:
    """delete_memory gives a bool, whatever the id looks like (C1)."""
    oldest, *_ = filled(coordinator)
    assert coordinator.delete_memory(oldest) is True
    assert coordinator.delete_memory(oldest) is False
    assert coordinator.delete_memory("../../etc/passwd") is False
    assert coordinator.stats().total_count == 3


def test_clearing_a_session(coordinator: MemoryCoordinator) -> None:
    """clear_working_memory removes the working memory of that session alone and counts it (C1, C7)."""
    for text, session in [
        ("Found that the build of the main branch fails since Tuesday", "s-1"),
        ("Asked Grace for access to the staging database", "s-1"),
        ("Comparing two parsers for the import of invoices", "s-2"),
    ]:
        assert coordinator.store(text, "working", {"session_id": session}).stored
    coordinator.store("Decided to pin the compiler of the main branch", "episodic", {"session_id": "s-1"})
    assert coordinator.clear_working_memory("s-1") == 2
    assert coordinator.clear_working_memory("s-1") == 0
    assert coordinator.stats().by_type == {"episodic": 1, "working": 1}


def test_ending_a_session(coordinator: MemoryCoordinator) -> None:
    """end_session keeps what matters as semantic memory and clears the rest, for everybody who waits for it (C7)."""
    ended: list[str] = []
    coordinator.workspace.behaviours.on("session_ended", lambda facts: ended.append(facts["session"]))
    for text, session in [
        ("Decided to pin the compiler, because two versions differ", "s-1"),
        ("Asked Grace for access to the staging database", "s-1"),
        ("Comparing two parsers for the import of invoices", "s-2"),
    ]:
        assert coordinator.store(text, "working", {"session_id": session}).stored

    (kept,) = coordinator.end_session("s-1")

    assert (kept.content, kept.type) == ("Decided to pin the compiler, because two versions differ", "semantic")
    assert kept.metadata["promoted_from"] == "working"
    assert coordinator.stats().by_type == {"semantic": 1, "working": 1}
    assert ended == ["s-1"]
    assert coordinator.end_session("s-1") == []


# -- judging ------------------------------------------------------------------------------------------------------
def test_agent_review_names_its_judges() -> None:
    """Three judges score a draft, two the relevance of a memory, each with a reason and on its scale (C3, C4)."""
    review = AgentReview()
    assert list(review.STORAGE_AGENTS) == ["analyzer", "patterns", "knowledge-archaeologist"]
    assert list(review.RETRIEVAL_AGENTS) == ["analyzer", "patterns"]
    result = review.review_storage(MemoryItem(REDIS, "episodic"))
    assert list(result.agent_scores) == list(result.reasons) == list(review.STORAGE_AGENTS)
    assert all(0 <= score <= 10 for score in result.agent_scores.values())
    assert result.consensus_score == pytest.approx(sum(result.agent_scores.values()) / 3)
    near, far = (review.score_relevance(REDIS, query) for query in ("Redis sessions", "colour of the logo"))
    assert 0 <= far < near <= 1


class Cautious(AgentReview):
    """Asks one more judge, which is against all that names a server."""

    STORAGE_AGENTS = ("analyzer", "cautious")

    def _score_storage(self, memory: MemoryItem, agent_type: str) -> tuple[float, str]:
        if agent_type == "cautious":
            return (0.0, "names a server") if "server" in memory.content else (10.0, "names none")
        return super()._score_storage(memory, agent_type)


def test_a_judge_that_hangs_takes_a_few_threads_only() -> None:
    """Each question waits for it no longer than it may, and those that it holds up already are enough (C3)."""
    go = threading.Event()

    class Hanging(AgentReview):
        STORAGE_AGENTS = ("hanging",)

        def _score_storage(self, memory: MemoryItem, agent_type: str) -> tuple[float, str]:
            go.wait(60)
            return 5.0, agent_type

    try:
        review = Hanging(seconds=0.001)
        answers = [review.review_storage("Use tabs").absent["hanging"] for _ in range(12)]
    finally:
        go.set()
    assert "no answer" in answers[0]
    assert "busy" in answers[-1]


def test_a_custom_review_decides(opened: Open) -> None:
    """A subclass with a judge of its own decides in the pipeline that is given it (C3)."""
    workspace = opened()
    coordinator = MemoryCoordinator(workspace=workspace, agent_review=Cautious())
    refused = coordinator.store(REDIS, "episodic")
    assert (refused.stored, refused.memory_id) == (False, None)
    assert refused.review is not None
    assert refused.review.agent_scores["cautious"] == 0.0
    assert coordinator.store("Decided to use PostgreSQL for transactions", "episodic").stored
    assert MemoryCoordinator(workspace=workspace).store(REDIS, "episodic").stored


def test_pipelines_and_filter_stand_alone(opened: Open) -> None:
    """Each part of the coordinator works by itself over the same workspace."""
    workspace = opened()
    storage, retrieval = StoragePipeline(workspace=workspace), RetrievalPipeline(workspace=workspace)
    stored = storage.store(REDIS, "episodic", {"component": "authentication"})
    assert [memory.id for memory in retrieval.retrieve("Redis")] == [stored.memory_id]
    assert TrivialFilter().is_trivial("Hi there")
    assert not TrivialFilter().is_trivial(REDIS)
