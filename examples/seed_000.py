"""Memory in layers, and the context of a session beside it.

Run it anywhere: ``python examples/seed_000.py``. It works in a workspace that passes.
"""

from __future__ import annotations

from memfs import MemoryItem, MemoryType, MultiLayeredMemorySystem, Origin, SimpleContextManager


def layers(memory: MultiLayeredMemorySystem) -> None:
    """Each type has its layer; an id is made where none is given."""
    memory.store(MemoryItem("The user is on the checkout page", MemoryType.CONTEXT))
    memory.store(MemoryItem("Migrated the orders table in 40 minutes", MemoryType.TASK_HISTORY))
    memory.store(MemoryItem("Orders are kept for ten years", MemoryType.KNOWLEDGE))
    for layer in ("short-term", "episodic", "semantic"):
        (item,) = memory.get_items_by_layer(layer)
        print(f"{layer:<11}{item.content}")


def latest_content(memory: MultiLayeredMemorySystem) -> None:
    """Storing an id again replaces its content; another type moves it, so that it is never in two layers."""
    plan = memory.store(MemoryItem("We may cache carts in Redis", MemoryType.CONTEXT))
    memory.store(MemoryItem("Carts are cached in Redis for an hour", MemoryType.KNOWLEDGE, id=plan))
    found = memory.retrieve(plan)
    assert found is not None
    assert found.content == "Carts are cached in Redis for an hour"
    assert plan not in [item.id for item in memory.get_items_by_layer("short-term")]
    assert plan in [item.id for item in memory.get_items_by_layer("semantic")]
    print("moved:", found.content)


def phases(memory: MultiLayeredMemorySystem) -> None:
    """Items carry the phase of the work they come from."""
    memory.store(MemoryItem("Seven ideas for a shorter checkout", "episodic", origin=Origin(phase="expand")))
    memory.store(MemoryItem("One page was enough", "episodic", origin=Origin(phase="retrospect")))
    (lesson,) = memory.get_items_by_layer("episodic", phase="retrospect")
    print("retrospect:", lesson.content)


def session_context(memory: MultiLayeredMemorySystem, context: SimpleContextManager) -> None:
    """The context keeps every key with its latest value, whatever is stored meanwhile."""
    context.add_to_context("phase", "expand")
    context.add_to_context("ticket", "SHOP-12")
    memory.store(MemoryItem("Something else happened", MemoryType.CONTEXT))
    context.add_to_context("phase", "refine")
    assert context.get_full_context() == {"phase": "refine", "ticket": "SHOP-12"}
    assert context.get_from_context("ticket") == "SHOP-12"
    print("context:", context.get_full_context())


def main() -> None:
    """Run all of it."""
    with MultiLayeredMemorySystem(":memory:") as memory:
        layers(memory)
        latest_content(memory)
        phases(memory)
        session_context(memory, SimpleContextManager(workspace=memory.workspace))


if __name__ == "__main__":
    main()
