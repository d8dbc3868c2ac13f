"""Five types of memory, judged on the way in and ranked on the way out: a session of a team of agents.

Run it anywhere: ``python examples/seed_003.py``. It works in a workspace that passes.
"""

from __future__ import annotations

import asyncio

from memfs import (
    AgentReview,
    MemoryCoordinator,
    MemoryType,
    RetrievalPipeline,
    StoragePipeline,
    TimeWeightedRetrieval,
)


class BuilderAgent:
    """Remembers how it built things."""

    def __init__(self, memory: MemoryCoordinator) -> None:
        self.memory = memory

    def implement_feature(self, name: str, steps: str) -> str | None:
        """Store a procedure; the id, None where the reviewers refused it."""
        result = self.memory.store(
            content=f"Implemented {name}: {steps}",
            memory_type="procedural",
            metadata={"feature": name, "success": True},
        )
        return result.memory_id


class ArchitectAgent:
    """Designs with what was decided before."""

    def __init__(self, memory: MemoryCoordinator) -> None:
        self.memory = memory

    def design_solution(self, requirements: str) -> str:
        """The past decisions that concern a requirement, as text for a prompt."""
        past_decisions = self.memory.retrieve(
            query=requirements, memory_types=["episodic", "semantic"], limit=5, max_tokens=1000
        )
        return "\n".join(memory.content for memory in past_decisions)


def store_and_retrieve(coordinator: MemoryCoordinator) -> None:
    """A decision is judged, stored, found, counted."""
    result = coordinator.store(
        content="Decided to use Redis for sessions, because two servers share them",
        memory_type="episodic",
        metadata={"component": "authentication"},
    )
    assert result.stored
    print(f"stored with {result.consensus_score:.1f} of 10: {result.reason}")
    for reviewer, reason in result.review.reasons.items() if result.review else ():
        print(f"  {reviewer}: {reason}")
    memories = coordinator.retrieve(
        query="which decision about sessions?", memory_types=["episodic", "semantic"], limit=10, max_tokens=2000
    )
    assert memories[0].metadata["component"] == "authentication"
    stats = coordinator.stats()
    print(f"{stats.total_count} memories: {dict(stats.by_type)}")


def filter_and_judge() -> None:
    """What is trivial is refused before anybody is asked; three judges agree on the rest."""
    with StoragePipeline(":memory:") as pipeline:
        kept = pipeline.store(content="Decided to use PostgreSQL for transactions", memory_type=MemoryType.EPISODIC)
        assert kept.stored
        assert kept.consensus_score >= 6.0
        assert kept.memory_id is not None
        refused = pipeline.store(content="Hi there", memory_type=MemoryType.WORKING)
        assert not refused.stored
        assert "trivial" in refused.reason.lower()
        with RetrievalPipeline(workspace=pipeline.workspace) as retrieval:
            assert [memory.id for memory in retrieval.retrieve("PostgreSQL")] == [kept.memory_id]
    review = AgentReview().review_storage("Decided to use PostgreSQL for transactions")
    assert set(review.agent_scores) == set(AgentReview.STORAGE_AGENTS)


def agents_at_work(coordinator: MemoryCoordinator) -> None:
    """One agent remembers, another designs with it."""
    stored = BuilderAgent(coordinator).implement_feature("login", "JWT authentication with RS256, keys rotated monthly")
    memories = coordinator.retrieve(query="JWT authentication", limit=5)
    assert memories[0].id == stored
    coordinator.store("Decided to keep every timestamp in UTC, because reports span zones", "semantic")
    assert "UTC" in ArchitectAgent(coordinator).design_solution("how do we store timestamps in reports?")


def reminders(coordinator: MemoryCoordinator) -> list[str]:
    """What is still to be done, newest first."""
    coordinator.store("Need to rotate the signing keys before the release", "prospective", {"priority": "high"})
    coordinator.store("Later: replace the hand-written date parser", "prospective")
    pending = coordinator.retrieve(query="", memory_types=["prospective"], limit=10)
    return [f"[{todo.metadata.get('priority', 'medium').upper()}] {todo.content}" for todo in pending]


def session_end(coordinator: MemoryCoordinator, session_id: str) -> None:
    """What matters of a session's working memory is kept as semantic memory, the rest is cleared."""
    for step in (
        "Found that the clock of staging is 40 seconds behind",
        "Decided to synchronise the clock of staging with NTP, because tokens expired early",
    ):
        coordinator.store(step, "working", metadata={"session_id": session_id})
    working = coordinator.retrieve(query="", memory_types=["working"], limit=100)
    session_working = [memory for memory in working if memory.metadata.get("session_id") == session_id]
    assert len(session_working) == 2
    kept = coordinator.end_session(session_id)
    assert [memory.metadata["promoted_from"] for memory in kept] == ["working"] * len(kept)
    print("kept of the session:", *(memory.content for memory in kept))
    assert coordinator.retrieve("clock of staging", memory_types=["semantic"])
    assert coordinator.clear_working_memory(session_id) == 0  # nothing is left of it


async def without_blocking(coordinator: MemoryCoordinator) -> None:
    """Storing goes on in the background while the event loop does something else."""
    storing = asyncio.create_task(
        coordinator.store_async("Measured 340 requests a second with the new cache in front", "episodic")
    )
    await asyncio.sleep(0)
    assert (await storing).stored
    found = coordinator.batch_retrieve(["requests a second", "signing keys"])
    assert all(found.values())


def main() -> None:
    """All of it."""
    filter_and_judge()
    with MemoryCoordinator(":memory:") as coordinator:
        store_and_retrieve(coordinator)
        agents_at_work(coordinator)
        print("\n".join(reminders(coordinator)))
        session_end(coordinator, "session-7")
        asyncio.run(without_blocking(coordinator))
        recent = TimeWeightedRetrieval(workspace=coordinator.workspace)
        best = recent.retrieve_time_weighted("authentication", recency_weight=0.3, limit=3)
        print("recent and relevant:", best[0].content)


if __name__ == "__main__":
    main()
