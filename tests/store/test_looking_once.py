"""Several questions of one thread look at the files once, where whoever asks them says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from memfs.model import MemoryItem
from memfs.model.episode import StateSnapshot
from memfs.workspace import Workspace

Open = Callable[..., Workspace]


@pytest.fixture
def looks(opened: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, list[str]]:
    """A workspace, and the names of the threads that looked at all its files so far."""
    workspace, found = opened(), list[str]()
    refresh = workspace.store.following.refresh

    def noted(paths: Any = None, progress: Any = None) -> Any:
        if paths is None:
            found.append(threading.current_thread().name)
        return refresh(paths, progress)

    monkeypatch.setattr(workspace.store.following, "refresh", noted)
    return workspace, found


def test_within_it_only_the_first_question_looks(looks: tuple[Workspace, list[str]]) -> None:
    """Also within another one, and after an error; afterwards, and in other threads, each question looks."""
    workspace, found = looks
    store = workspace.store
    with store.looking_once():
        store.follow()
        with store.looking_once():
            store.follow()
        store.follow()
        other = threading.Thread(target=store.follow, name="other")
        other.start()
        other.join()
    assert found == ["MainThread", "other"]
    with pytest.raises(KeyError), store.looking_once():
        raise KeyError
    store.follow()
    store.follow()
    assert len(found) == 4


def test_what_is_written_within_it_is_known(looks: tuple[Workspace, list[str]]) -> None:
    """A process needs no look to know what it wrote itself."""
    workspace, _ = looks
    with workspace.store.looking_once():
        workspace.store.follow()
        stored = workspace.store.put(MemoryItem("Deploys are frozen.", "semantic"))
        assert workspace.store.get(stored.id) == stored


def test_p1_a_warning_looks_at_the_files_once(looks: tuple[Workspace, list[str]]) -> None:
    """Two sources are asked before a step, and the files are looked at once (P1, design 14)."""
    workspace, found = looks
    state = StateSnapshot.create(["src/auth.py"], "change the login")
    workspace.sources.delivery.triggered(state)
    found.clear()
    workspace.sources.delivery.triggered(state)
    assert len(found) == 1
