"""Steps for seed 002: memories, patterns, feedback and pruning (M1-M3, M6, M7), through public names only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from memfs import Memory, MemoryContext, MemoryInjector, MemoryItem, Query

scenarios("features/memory_that_learns.feature")

TOPICS = ("sails", "bread", "tulips", "chess", "rivers", "violins", "comets", "glass")


class World:
    """A memory that learns, what was added to it, and what came of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memory = MemoryContext(path=path)
        self.added: list[str] = []
        self.given: dict[str, Any] = {}
        self.first = ""

    def reopen(self, **config: Any) -> None:
        """Open it again, as the next session does."""
        self.memory.close()
        self.memory = MemoryContext(config, path=self.path)

    def add(self, content: str, **context: str) -> None:
        """Add an interaction, and wait for what is learned from it."""
        self.added.append(self.memory.add_memory({"type": "interaction", "content": content, "context": context}))
        self.memory.workspace.patterns.settle()

    def item(self, item_id: str) -> MemoryItem:
        """What is stored under an id."""
        found = self.memory.workspace.store.get(item_id)
        assert found is not None
        return found

    def of_type(self, kind: str) -> list[MemoryItem]:
        """Every item of a type."""
        return self.memory.workspace.store.select(Query(types=frozenset({kind}), limit=100))


@pytest.fixture
def world(workspace_path: Path) -> World:
    """The memory under test."""
    return World(workspace_path)


@given("a memory context")
def _(world: World) -> None:
    assert world.of_type("interaction") == []


@given(parsers.re(r'the interaction "(?P<content>[^"]+)"$'))
@when(parsers.re(r'I add the interaction "(?P<content>[^"]+)"$'))
def _(world: World, content: str) -> None:
    world.add(content)


@given(parsers.re(r'the interaction "(?P<content>[^"]+)" in the project "(?P<project>[^"]+)"$'))
@when(parsers.re(r'I add the interaction "(?P<content>[^"]+)" in the project "(?P<project>[^"]+)"$'))
def _(world: World, content: str, project: str) -> None:
    world.add(content, project=project)


@given(parsers.parse("a limit of {limit:d} memories"))
def _(world: World, limit: int) -> None:
    world.reopen(max_memories=limit)


@given("8 interactions about different things")
def _(world: World) -> None:
    for number, topic in enumerate(TOPICS):
        world.memory.workspace.store.put(MemoryItem(f"{topic} {number * 37}", "interaction", id=topic))


@given("positive feedback for the first of them")
def _(world: World) -> None:
    item = world.item(TOPICS[0])
    world.memory.workspace.feedback.give(item.id, True, "it helped")


@when("pruning is due and done")
def _(world: World) -> None:
    assert len(world.memory.workspace.pruner.due()) == 3
    world.memory.workspace.pruner.prune()


@when(parsers.parse('whatever comes first for "{query}" gets negative feedback {times:d} times'))
def _(world: World, query: str, times: int) -> None:
    world.first = world.memory.recall(query)[0].id
    for _ in range(times):
        world.memory.feedback(world.first, False, "it did not help")


@when(parsers.parse('the context of an agent is injected with what is relevant to the tool "{tool}"'))
def _(world: World, tool: str) -> None:
    situation = {"tool": tool, "params": {"intent": "ship the shop"} if tool == "deploy" else {}, "project": "shop"}
    world.given = MemoryInjector(world.memory).inject({"task": "ship it"}, situation)


@given(parsers.parse('a memory context file without rules, which extends "{base}"'))
def _(world: World, base: str) -> None:
    text = f"metadata: {{type: memory, name: Quiet}}\nintent_context: {{extends: {base}}}\nbehavior_rules: []\n"
    (world.path / "ContextMemory" / "configuration" / "memory_context.yaml").write_text(text)


@when(parsers.parse('a task is completed with the outcome "{outcome}"'))
def _(world: World, outcome: str) -> None:
    facts = {"task": "T-12", "session": "s1", "outcome": outcome}
    world.memory.workspace.behaviours.fire("task_completed", facts)


@when(parsers.parse('an agent is about to be given context for the tool "{tool}"'))
def _(world: World, tool: str) -> None:
    situation = {"tool": tool, "params": {"intent": "ship the shop"}}
    world.given = world.memory.workspace.reactions.access({"task": "ship it"}, situation)


@when("the memory context is closed and opened again")
def _(world: World) -> None:
    world.reopen()


@then(parsers.re(r'recalling "(?P<query>[^"]+)" gives "(?P<content>[^"]+)" first'))
def _(world: World, query: str, content: str) -> None:
    assert world.memory.recall(query)[0].content == content


@then(parsers.re(r'recalling "(?P<query>[^"]+)" gives nothing'))
def _(world: World, query: str) -> None:
    assert world.memory.recall(query) == []


@then(parsers.parse('it has the type "{kind}" and the project "{project}"'))
def _(world: World, kind: str, project: str) -> None:
    memory = world.memory.get(world.added[-1])
    assert isinstance(memory, Memory)
    assert (memory.type, memory.context["project"]) == (kind, project)


@then("the added memory links to the earlier one")
def _(world: World) -> None:
    assert world.added[0] in [link.to for link in world.item(world.added[-1]).links]


@then(parsers.parse('there is exactly one pattern, "{template}", with {occurrences:d} occurrences'))
def _(world: World, template: str, occurrences: int) -> None:
    found = [(item.content, item.data["occurrences"]) for item in world.of_type("pattern")]
    assert found == [(template, occurrences)]


@then("there is no pattern")
def _(world: World) -> None:
    assert world.of_type("pattern") == []


@then(parsers.parse("the rule for patterns made one piece of knowledge that names {one}, {two} and {three}"))
def _(world: World, one: str, two: str, three: str) -> None:
    (made,) = world.of_type("knowledge")
    assert {one, two, three} <= set(made.content.replace(",", " ").replace(".", " ").split())


@then(parsers.parse('recalling "{query}" includes the pattern "{template}"'))
def _(world: World, query: str, template: str) -> None:
    assert ("pattern", template) in [(memory.type, memory.content) for memory in world.memory.recall(query)]
    assert template in [hit.item.content for hit in world.memory.workspace.patterns.suggest(query)]


@then(parsers.parse('recalling "{query}" in the project "{project}" gives a memory of the project "{same}" first'))
def _(world: World, query: str, project: str, same: str) -> None:
    assert world.memory.recall(query, {"project": project})[0].context["project"] == same


@then(parsers.parse('the other memory comes first for "{query}"'))
def _(world: World, query: str) -> None:
    assert world.memory.recall(query)[0].id != world.first


@then("the context has one relevant memory, with type, content, relevance and context")
def _(world: World) -> None:
    (row,) = world.given["relevant_memories"]
    assert (row["type"], row["content"]) == ("interaction", "Deploy the shop with make ship")
    assert (row["relevance"] > 0, row["context"]) == (True, {"project": "shop"})


@then("what was in the context before is still there")
def _(world: World) -> None:
    assert world.given["task"] == "ship it"


@then("the context is unchanged")
def _(world: World) -> None:
    assert world.given == {"task": "ship it"}


@then(parsers.parse("there are {count:d} memories left"))
def _(world: World, count: int) -> None:
    assert world.memory.workspace.store.count() == count


@then("the first of them is still there")
def _(world: World) -> None:
    assert world.item(TOPICS[0]).importance > 1


@then("every pruned memory lies in the archive")
def _(world: World) -> None:
    archived = {path.stem for path in (world.path / "ContextMemory" / "archive" / "pruned").rglob("*.yaml")}
    assert archived == {topic for topic in TOPICS if world.memory.workspace.store.get(topic) is None}
    assert len(archived) == 3
