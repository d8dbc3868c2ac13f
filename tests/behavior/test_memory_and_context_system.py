"""Steps for seed 000: memory in layers, and the context beside it (L1-L6), through public names only."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from memfs import MemoryItem, MemoryType, MultiLayeredMemorySystem, Origin, SimpleContextManager

scenarios("features/memory_and_context_system.feature")

LAYERS = ("short-term", "episodic", "semantic")


class World:
    """A workspace with its two facades, and what was stored last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: list[str] = []
        self.open()

    def open(self) -> None:
        """Open both facades."""
        self.memory = MultiLayeredMemorySystem(self.path)
        self.context = SimpleContextManager(self.path)

    def close(self) -> None:
        """Close both facades."""
        self.memory.close()
        self.context.close()

    def store(self, content: str, kind: str, item_id: str = "", phase: str = "") -> None:
        """Store an item and note its id."""
        item = MemoryItem(content, MemoryType[kind], id=item_id, origin=Origin(phase=phase))
        self.ids.append(self.memory.store(item))

    def held(self, layer: str, phase: str = "") -> list[str]:
        """The contents of a layer."""
        return [item.content for item in self.memory.get_items_by_layer(layer, phase=phase)]


@pytest.fixture
def world(workspace_path: Path) -> World:
    """The facades under test, closed at the end by ``workspace_path``."""
    return World(workspace_path)


@given("a layered memory and a context manager in one workspace")
def _(world: World) -> None:
    assert world.context.get_full_context() == {}


@given(parsers.parse('"{content}" is stored as "{kind}" with the id "{item_id}"'))
@when(parsers.parse('I store "{content}" as "{kind}" with the id "{item_id}"'))
def _(world: World, content: str, kind: str, item_id: str) -> None:
    world.store(content, kind, item_id)


@given(parsers.parse('"{content}" is stored as "{kind}" in the phase "{phase}"'))
def _(world: World, content: str, kind: str, phase: str) -> None:
    world.store(content, kind, phase=phase)


@when(parsers.re(r'I store "(?P<content>[^"]+)" as "(?P<kind>[^"]+)"$'))
def _(world: World, content: str, kind: str) -> None:
    world.store(content, kind)


@given(parsers.parse('the context has "{key}" with the value "{value}"'))
@when(parsers.parse('I add "{key}" with the value "{value}" to the context'))
def _(world: World, key: str, value: str) -> None:
    world.context.add_to_context(key, value)


@when("the workspace is closed and opened again")
def _(world: World) -> None:
    world.close()
    world.open()


@then(parsers.parse('the item is in the "{layer}" layer and in no other'))
def _(world: World, layer: str) -> None:
    found = {one: [item.id for item in world.memory.get_items_by_layer(one)] for one in LAYERS}
    assert found == {one: world.ids if one == layer else [] for one in LAYERS}


@then("it can be retrieved by the id that was returned")
def _(world: World) -> None:
    item = world.memory.retrieve(world.ids[-1])
    assert item is not None
    assert item.id == world.ids[-1]


@then("each of them has an id of its own")
def _(world: World) -> None:
    assert all(world.ids)
    assert len(set(world.ids)) == len(world.ids)


@then(parsers.re(r'"(?P<item_id>[^"]+)" holds "(?P<content>[^"]+)"'))
def _(world: World, item_id: str, content: str) -> None:
    item = world.memory.retrieve(item_id)
    assert item is not None
    assert item.content == content


@then(parsers.re(r'the "(?P<layer>[^"]+)" layer holds exactly "(?P<content>[^"]+)"'))
def _(world: World, layer: str, content: str) -> None:
    assert world.held(layer) == [content]


@then(parsers.parse('the "{layer}" layer is empty'))
def _(world: World, layer: str) -> None:
    assert world.held(layer) == []


@then(parsers.parse('the "{layer}" layer in the phase "{phase}" holds exactly "{content}"'))
def _(world: World, layer: str, phase: str, content: str) -> None:
    assert world.held(layer, phase) == [content]


@then("the full context is")
def _(world: World, datatable: list[list[str]]) -> None:
    assert world.context.get_full_context() == dict(datatable[1:])


@then(parsers.parse('the context gives "{value}" for "{key}"'))
def _(world: World, key: str, value: str) -> None:
    assert world.context.get_from_context(key) == value


@then(parsers.parse('the context gives nothing for "{key}"'))
def _(world: World, key: str) -> None:
    assert world.context.get_from_context(key) is None
