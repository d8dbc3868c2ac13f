"""The facades of seed 000: memory in layers, and the context beside it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from memfs.errors import QueryInvalid, SettingInvalid
from memfs.facades.memory_context import MultiLayeredMemorySystem, SimpleContextManager
from memfs.model import BUILT_IN, Layer, MemoryItem, MemoryType, Origin
from memfs.store import reader
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
LAYERS = {
    "short-term": {"context", "working", "prospective", "interaction", "conversation"},
    "episodic": {"task_history", "error_log", "episodic"},
    "semantic": {
        "knowledge", "documentation", "semantic", "procedural", "pattern", "rule", "preference", "convention",
        "note", "entry",
    },
}  # fmt: skip


@pytest.fixture
def memory(opened: Open) -> MultiLayeredMemorySystem:
    """A layered memory in a workspace of its own."""
    return MultiLayeredMemorySystem(workspace=opened())


def test_store_makes_an_id_and_returns_it(memory: MultiLayeredMemorySystem) -> None:
    """Without an id an item gets one, with one it keeps it (L1)."""
    made = memory.store(MemoryItem("a fact", MemoryType.KNOWLEDGE))
    kept = memory.store(MemoryItem("another", MemoryType.KNOWLEDGE, id="mine"))

    assert made
    assert kept == "mine"
    assert [memory.retrieve(one).content for one in (made, kept)] == ["a fact", "another"]
    assert memory.retrieve("nowhere") is None


def test_every_type_has_exactly_one_layer(memory: MultiLayeredMemorySystem) -> None:
    """Types go where the seed says, and each item is in one layer only (L1, L3)."""
    data = {"pattern": {"occurrences": 1}, "rule": {"pattern": "p", "action": "a"}, "convention": {}}
    for kind in BUILT_IN:
        memory.store(MemoryItem("x", kind.name, id=f"of-{kind.name}", data=data.get(kind.name, {})))

    for layer, types in LAYERS.items():
        assert {item.type for item in memory.get_items_by_layer(layer)} == types
        assert memory.layer_of(MemoryItem("x", min(types))) is Layer(layer)
    assert sum(len(memory.get_items_by_layer(layer)) for layer in Layer) == len(BUILT_IN)


def test_storing_again_replaces(memory: MultiLayeredMemorySystem) -> None:
    """The latest content is what retrieve and the layer show (L2)."""
    first = memory.store(MemoryItem("old", MemoryType.CONTEXT))
    again = memory.store(MemoryItem("new", MemoryType.CONTEXT, id=first))

    assert again == first
    assert memory.retrieve(first).content == "new"
    assert [item.content for item in memory.get_items_by_layer("short-term")] == ["new"]


def test_another_type_moves_the_item(memory: MultiLayeredMemorySystem) -> None:
    """An item is never in two layers (L2)."""
    one = memory.store(MemoryItem("said in passing", MemoryType.CONTEXT))
    memory.store(MemoryItem("proved", MemoryType.KNOWLEDGE, id=one))

    assert memory.get_items_by_layer(Layer.SHORT_TERM) == []
    assert [item.id for item in memory.get_items_by_layer("semantic")] == [one]
    assert memory.retrieve(one).content == "proved"


def test_layers_are_shown_newest_first_and_by_phase(memory: MultiLayeredMemorySystem) -> None:
    """A layer can be narrowed to a phase of the work (L3, L6)."""
    for day, phase in enumerate(("expand", "refine", "refine"), 1):
        item = MemoryItem(f"d{day}", "episodic", timestamp=f"2026-03-0{day}", origin=Origin(phase=phase))
        memory.store(item)

    assert [item.content for item in memory.get_items_by_layer("EPISODIC")] == ["d3", "d2", "d1"]
    assert [item.content for item in memory.get_items_by_layer("episodic", phase="refine")] == ["d3", "d2"]


def test_a_layer_is_shown_whole(memory: MultiLayeredMemorySystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many items there are, none is left out and none shown twice (L3)."""
    monkeypatch.setattr(reader, "MOST", 3)
    for number in range(8):
        memory.store(MemoryItem(f"n{number}", "context", timestamp=f"2026-03-0{1 + number // 2}T10:00:00Z"))

    shown = [item.content for item in memory.get_items_by_layer("short_term")]

    assert sorted(shown) == [f"n{number}" for number in range(8)]


def test_wrong_names_are_reported(memory: MultiLayeredMemorySystem) -> None:
    """An unknown layer or type is an error that names the nearest (L1, L3)."""
    with pytest.raises(QueryInvalid) as layer:
        memory.get_items_by_layer("epsodic")
    with pytest.raises(SettingInvalid, match="nonsense"):
        memory.store(MemoryItem("x", "nonsense"))
    with pytest.raises(QueryInvalid, match="did you mean 'retrospect'"):
        memory.get_items_by_layer("episodic", phase="retrospec")

    assert layer.value.hint == "did you mean 'episodic'?"


def test_storing_raises_the_occasion(memory: MultiLayeredMemorySystem) -> None:
    """What is stored through the facade is there for others to learn from."""
    seen: list[str] = []
    memory.workspace.behaviours.on("memory_stored", lambda facts: seen.append(facts["item"].id))

    stored = memory.store(MemoryItem("x"))

    assert seen == [stored]


def test_the_context_survives_memories_and_restart(opened: Open) -> None:
    """Repeated stores purge no key, and another process reads the latest values (L4, M7)."""
    workspace = opened()
    memory, context = MultiLayeredMemorySystem(workspace=workspace), SimpleContextManager(workspace=workspace)
    context.add_to_context("phase", "expand")
    context.add_to_context("ticket", "SHOP-12")
    for _ in range(3):
        memory.store(MemoryItem("x", "context", id="same"))
    context.add_to_context("phase", "refine")

    assert context.get_full_context() == {"phase": "refine", "ticket": "SHOP-12"}
    assert (context.get_from_context("ticket"), context.get_from_context("no")) == ("SHOP-12", None)
    assert context.get_from_context("no", "other") == "other"
    program = (
        "import sys; from memfs.facades.memory_context import SimpleContextManager as C\n"
        "with C(sys.argv[1]) as c: print(c.get_full_context())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(workspace.root)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "{'phase': 'refine', 'ticket': 'SHOP-12'}"


def test_contexts_of_other_names_stand_apart(opened: Open) -> None:
    """Each named context has its own keys (L4)."""
    workspace = opened()
    SimpleContextManager(workspace=workspace, name="release").add_to_context("version", 7)

    assert SimpleContextManager(workspace=workspace).get_full_context() == {}
    assert SimpleContextManager(workspace=workspace, name="release").get_full_context() == {"version": 7}
