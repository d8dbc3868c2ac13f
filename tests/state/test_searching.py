"""State documents are found by their words, in the tree and in archives (S15)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import archived
import pytest

from memfs import ContextMemory, QueryInvalid
from memfs.doors.cli.app import run
from memfs.state.retrieval import search_states
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


@pytest.fixture
def memory(opened: Opened) -> Workspace:
    """Two iterations, the first of which is archived."""
    workspace = opened()
    for number in (1, 2):
        archived.iteration(workspace, number, status="closed" if number == 1 else "open")
    workspace.store.flush(adopt=True)
    done = workspace.states.archiver.run(active_days=0).archived
    assert done.iterations == (1,)
    return workspace


def found(workspace: Workspace, text: str, **more: object) -> list[tuple[int | None, bool]]:
    """The iterations of what is found, and whether an archive holds it."""
    hits = search_states(workspace.states.reading, text, **more)  # type: ignore[arg-type]
    return sorted({(hit.iteration, bool(hit.archive)) for hit in hits})


def test_words_find_documents_in_the_tree_and_in_archives(memory: Workspace) -> None:
    """A stem that they share with the question is enough, and each hit shows why (S15)."""
    assert found(memory, "rankings") == [(1, True), (2, False)]
    best = search_states(memory.states.reading, "ranked 2 of iteration", 1)[0]
    assert best.document["results"]["primary_output"].startswith("ranked 2 of iteration")
    assert best.excerpt.startswith("ranked 2 of iteration")
    assert len(best.excerpt) <= 200
    assert search_states(memory.states.reading, "marten") == []
    with pytest.raises(QueryInvalid, match="no word"):
        search_states(memory.states.reading, "?!")


def test_filters_narrow_it_down(memory: Workspace) -> None:
    """Iteration, agent, sort and time, each by itself (S13, S15)."""
    assert found(memory, "ranked", iterations=[1]) == [(1, True)]
    assert found(memory, "ranked", agents=["Ranking Agent"]) == [(1, True), (2, False)]
    assert found(memory, "ranked", agents=["Nobody"]) == []
    assert found(memory, "ranked", kinds=["hypothesis"]) == []
    assert found(memory, "ranked", start="2021-01-01") == []
    assert len(search_states(memory.states.reading, "ranked", 2)) == 2


def test_what_changes_is_found_by_its_new_words(memory: Workspace) -> None:
    """An edit by hand, a document that went and a new one each show in the next search (K5, S15)."""
    assert found(memory, "marten") == []
    paths = sorted((memory.root / "ContextMemory/iterations/iteration_002/agent_outputs").rglob("*.json"))
    paths[0].write_text(json.dumps(archived.output("Ranking Agent", "task-0", "the marten sleeps")))
    paths[1].unlink()
    assert found(memory, "marten") == [(2, False)]
    assert len(search_states(memory.states.reading, "iterations", iterations=[2])) == 1
    archived.iteration(memory, 3, status="open")
    assert found(memory, "ranked", iterations=[3]) == [(3, False)]


def test_a_new_cache_finds_what_only_an_archive_holds(memory: Workspace, opened: Opened) -> None:
    """Nothing depends on who indexed what before: a deleted cache is made again (S15)."""
    assert found(memory, "ranked")
    root, cache = memory.root, memory.parts.index.folder
    memory.close()
    shutil.rmtree(cache)
    assert found(opened(root), "ranked") == [(1, True), (2, False)]


def test_a_document_that_nobody_can_read_stops_no_search(memory: Workspace) -> None:
    """A damaged file is left out, and everything else found."""
    paths = sorted((memory.root / "ContextMemory/iterations/iteration_002/agent_outputs").rglob("*.json"))
    paths[0].write_bytes(b"{")
    assert found(memory, "ranked") == [(1, True), (2, False)]


def test_the_facade_and_the_verb_answer_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ContextMemory.search`` and ``memfs state search`` find the same (S15)."""
    with ContextMemory(tmp_path / "m") as memory:
        memory.store_agent_output(archived.output("Scout", "t", "the depot lies north of the river"))
        [hit] = memory.search("depots")
    monkeypatch.chdir(tmp_path / "m")
    assert run(["state", "search", "depots", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["path"] for row in shown["hits"]] == [hit.path]
    assert run(["state", "search", "depots", "--agent", "Scout"]) == 0
    assert "north of the river" in capsys.readouterr().out
    assert run(["state", "search", "marten"]) == 0
    assert "nothing found" in capsys.readouterr().err
    assert run(["state", "search"]) == 2
