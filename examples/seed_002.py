"""Memory that learns: patterns, context, feedback, pruning, and memories laid into a prompt's context.

Run it anywhere: ``python examples/seed_002.py``. It works in a workspace that passes.
"""

from __future__ import annotations

from memfs import MemoryContext, MemoryInjector, PatternDetector


def contextual_recall(memory: MemoryContext) -> None:
    """What shares the circumstances of the moment counts for more."""
    for project in ("blog", "shop"):
        memory.add_memory(
            {
                "type": "interaction",
                "content": f"User asked how the {project} does authentication",
                "context": {"project": project},
            }
        )
    results = memory.recall("authentication", {"project": "shop"})
    assert results[0].context == {"project": "shop"}
    assert results[0].metadata["access_count"] >= 0
    print("recalled:", results[0].content)


def pattern_recognition(memory: MemoryContext) -> None:
    """Three similar memories make a pattern; it is kept once and brought up to date afterwards."""
    for who in ("user", "admin", "guest", "superuser"):
        memory.add_memory({"content": f"create {who} login"})
    (pattern,) = memory.patterns()
    assert pattern.content == "create {variable} login"
    found = memory.recall("create a login")
    assert any(one.type == "pattern" for one in found)
    print("learned:", pattern.content)
    detected = PatternDetector(threshold=3).detect_pattern(
        [{"id": "1", "content": "create user login"}, "create admin login", "create guest login"]
    )
    assert detected is not None
    assert detected.occurrences == 3


def memory_evolution(memory: MemoryContext) -> None:
    """Feedback moves importance, and with it the order; what is no longer worth keeping is pruned."""
    good = memory.add_memory("The deploy script needs the staging flag")
    bad = memory.add_memory("The deploy script needs no flag at all")
    assert memory.feedback(good, positive=True, reason="it helped") > 1.0
    assert memory.feedback(bad, positive=False, reason="it is wrong") < 1.0
    assert memory.recall("deploy script flag")[0].id == good
    for _ in range(6):  # each signal takes importance, until the memory is due
        if memory.get(bad) is not None:
            memory.feedback(bad, positive=False)
    assert memory.get(bad) is None
    assert memory.recall("deploy script flag")[0].id == good
    print("pruned what was wrong")


def injection(memory: MemoryContext) -> None:
    """What is remembered about a situation goes into the context of an agent."""
    situation = {"tool": "editor", "params": {"intent": "change the deploy script"}}
    context = MemoryInjector(memory).inject({"task": "release"}, situation)
    assert context["task"] == "release"
    print("injected:", context["relevant_memories"][0]["content"])


def main() -> None:
    """All of it."""
    with MemoryContext({"pattern_threshold": 3, "max_memories": 10_000}, path=":memory:") as memory:
        contextual_recall(memory)
        pattern_recognition(memory)
        memory_evolution(memory)
        injection(memory)


if __name__ == "__main__":
    main()
