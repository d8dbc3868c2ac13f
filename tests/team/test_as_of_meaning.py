"""A revision is found in by meaning, where the workspace is (M5, B1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.patience import LONG
from memfs.errors import EndpointFailed
from memfs.model import MemoryItem, Query
from memfs.recall.recaller import Helpers, Recaller
from memfs.recall.rerank import relevance_of
from memfs.search import embedder as embedders
from memfs.search.embedder import HashingEmbedder, Vector
from memfs.search.vectors import VectorRow, VectorStore
from memfs.team import asof
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]
THEN = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = "ContextMemory/configuration/memory_context.yaml"
TEXTS = ("postgres pools connections", "we deploy on tuesdays", "connection pooling of the database", "cats purr")


class Counting(HashingEmbedder):
    """Counts what it embeds; fails where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.fails = False

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        if self.fails:
            raise EndpointFailed("out of reach")
        self.seen += texts
        return super().embed(texts)


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, there is time to embed what a test asks for."""
    monkeypatch.setattr(asof, "PATIENCE_SECONDS", LONG)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The embedder of the test."""
    made = Counting()
    monkeypatch.setattr(embedders, "LOCAL", {"hashing": lambda: made})
    return made


@pytest.fixture
def workspace(opened: Opened, counting: Counting) -> Workspace:
    """Searched by meaning; three commits, the last of which replaced a text."""
    made = opened()
    (made.root / CONTEXT).write_text(
        "metadata:\n  type: memory\n  name: Test\npolymorphic_config:\n  memory_config:\n"
        "    storage_type: vector_db\n    embedding_model: hashing\n"
    )
    for number, text in enumerate(TEXTS):
        made.store.put(MemoryItem(text, id=f"n{number}", timestamp=THEN))
    made.store.flush(adopt=True)
    made.store.put(MemoryItem("kubernetes", id="n0", timestamp=THEN))
    made.store.flush()
    return made


def test_what_is_found_by_meaning_is_what_a_fresh_checkout_finds(
    workspace: Workspace, git: Callable[..., str], tmp_path: Path
) -> None:
    """B1: the same vectors, the same order, the same scores."""
    past = workspace.teams.past.at("HEAD~1")
    git(workspace.root, "worktree", "add", "-q", "--detach", str(tmp_path / "then"), past.commit)
    with open_workspace(tmp_path / "then", watch=False, settings={"index.engine": "memory"}) as fresh:
        meaning = fresh.meaning.wanted()
        assert meaning is not None
        fresh.store.refresh()
        assert meaning.embeddings.catch_up() == len(TEXTS)
        told: set[str] = set()
        helpers = Helpers(relevance=lambda: relevance_of(fresh.settings.review), meaning=lambda: meaning)
        recall = Recaller(fresh.store, "default", lambda: past.now, fresh.kinds, helpers=helpers)
        for query in (Query(text="connections"), Query(text="pooled connection"), Query(text="deploying", limit=2)):
            there, here = (one.search(query).hits for one in (recall, past.recall))
            assert [(hit.item.id, round(hit.score, 9)) for hit in here] == [
                (hit.item.id, round(hit.score, 9)) for hit in there
            ]
            told |= {name for hit in here for name in hit.reasons}
    assert (past.notes, "meaning" in told) == ((), True)


def test_vectors_are_made_once(workspace: Workspace, counting: Counting) -> None:
    """What the workspace has is taken over; what another revision has is not made again."""
    meaning = workspace.meaning.wanted()
    assert meaning is not None
    meaning.embeddings.catch_up()
    counting.seen.clear()
    for revision in ("HEAD~1", "HEAD", "HEAD~1"):
        workspace.teams.past.at(revision).recall.search("connections")
    assert [text for text in counting.seen if text != "connections"] == ["postgres pools connections"]
    workspace.teams.past.close()
    counting.seen.clear()
    workspace.teams.past.at("HEAD~1").recall.search("connections")
    assert set(counting.seen) <= {"connections"}


def test_a_vector_that_is_replaced_meanwhile_is_not_taken_over(
    workspace: Workspace, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that embeds a file's next text at that moment does not give the text before it that vector."""
    meaning = workspace.meaning.wanted()
    assert meaning is not None
    meaning.embeddings.catch_up()
    counting.seen.clear()
    plain = VectorStore.get

    def replaced(self: VectorStore, id: str) -> list[float] | None:  # noqa: A002
        self.store_all([VectorRow(id, [1.0] + [0.0] * 511, "of another text", b"")])
        return plain(self, id)

    monkeypatch.setattr(VectorStore, "get", replaced)
    workspace.teams.past.at("HEAD").recall.search("connections")
    assert set(TEXTS[1:]) <= set(counting.seen)


def test_a_revision_that_lacks_vectors_is_asked_by_words_alone(
    workspace: Workspace, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and by and by it has them; an embedder that fails keeps nobody from an answer."""
    counting.fails = True
    past = workspace.teams.past.at("HEAD~1")
    hits = past.recall.search("connections").hits
    assert ([hit.item.id for hit in hits], any("meaning" in hit.reasons for hit in hits)) == (["n0", "n2"], False)
    assert "by words alone: 4 memories" in past.notes[0]
    assert "out of reach" in str(past.store.problems())
    counting.fails = False
    monkeypatch.setattr(asof, "PATIENCE_SECONDS", -1.0)
    workspace.teams.past.close()
    late = workspace.teams.past.at("HEAD~1")
    late.recall.search("connections")
    assert "4 memories" in late.notes[0]
    monkeypatch.setattr(asof, "PATIENCE_SECONDS", LONG)
    late.recall.search("connections")
    assert late.notes == ()
