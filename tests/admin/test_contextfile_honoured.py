"""Every setting of a memory context changes what a workspace does (M4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs import trust
from memfs.model import MemoryItem, Query
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
CONTEXT = "ContextMemory/configuration/memory_context.yaml"


@pytest.fixture
def workspace(opened: Open) -> Workspace:
    """A workspace of its own, which writes what it learns."""
    return opened(learning__patterns="write")


def configure(workspace: Workspace, **config: object) -> None:
    """Write the memory context as a person would."""
    lines = [f"    {name}: {value}" for name, value in config.items()]
    head = "metadata: {type: memory, name: Mine}\npolymorphic_config:\n  memory_config:\n"
    (workspace.root / CONTEXT).write_text(head + "\n".join(lines) + "\n")


def learn(workspace: Workspace, *texts: str) -> int:
    """Learn from these texts; return how many patterns there are then."""
    for text in texts:
        workspace.patterns.learn(workspace.store.put(MemoryItem(text, "interaction")))
    return len(workspace.store.select(Query(types=frozenset({"pattern"}))))


@pytest.mark.parametrize(
    ("texts", "config", "found"),
    [
        (("create user login", "create admin login"), {"pattern_threshold": 2}, (0, 1)),
        (
            ("restart the old worker now please", "restart the new broker at once please", "restart the third please"),
            {"similarity_threshold": 0.3},
            (0, 1),
        ),
        (("create user login", "create admin login", "create guest login"), {"min_common_words": 3}, (1, 0)),
    ],
)
def test_when_a_pattern_is_one(
    opened: Open, workspace: Workspace, texts: tuple[str, ...], config: dict[str, object], found: tuple[int, int]
) -> None:
    """How many, how similar, and how many common words: each decides whether there is a pattern (M2, M4)."""
    usual = learn(workspace, *texts)
    for item in workspace.store.select(Query(limit=100)):
        workspace.store.delete(item.id)
    configure(workspace, **config)

    assert (usual, learn(workspace, *texts)) == found


def test_what_is_due_for_pruning(workspace: Workspace) -> None:
    """More items than ``max_memories`` are due, and those whose importance is below ``prune_below`` (M3, M4)."""
    for number, importance in enumerate((0.3, 1.0, 2.0)):
        workspace.store.put(MemoryItem(f"about topic {number}", id=f"i{number}", importance=importance))
    usual = [weak.item.id for weak in workspace.pruner.due()]
    configure(workspace, max_memories=1)
    crowded = [weak.item.id for weak in workspace.pruner.due()]
    configure(workspace, prune_below=0.5)

    assert (usual, crowded) == ([], ["i0", "i1"])
    assert [weak.item.id for weak in workspace.pruner.due()] == ["i0"]


def test_how_memories_are_found(workspace: Workspace) -> None:
    """``storage_type`` decides whether there is a search by meaning, the model with which embedder (M5, M4)."""
    usual = workspace.meaning.current()
    configure(workspace, storage_type="vector_db")
    hashing = workspace.meaning.current()
    assert hashing is not None
    name = hashing.embeddings.embedder.name
    configure(workspace, storage_type="vector_db", embedding_model="no-such-model")
    unknown = workspace.meaning.current()

    assert (usual, unknown) == (None, None)
    assert "hashing" in name
    assert any("no-such-model" in problem.message for problem in workspace.store.problems())


def test_which_service_embeds(workspace: Workspace) -> None:
    """``embedding_endpoint`` is where a named model is asked for, in a trusted workspace (M5, M4)."""
    endpoint = "http://127.0.0.1:9/v1"
    configure(workspace, storage_type="vector_db", embedding_model="some-model", embedding_endpoint=endpoint)
    trust.grant(workspace.root)

    meaning = workspace.meaning.current()

    assert meaning is not None
    assert "some-model" in meaning.embeddings.embedder.name
    assert workspace.memory_config.embedding_endpoint == endpoint
