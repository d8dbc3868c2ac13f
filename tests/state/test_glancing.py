"""After its own write a process asks for names alone, and still finds what others did meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.patience import LONG
from memfs.model import state_paths as paths
from memfs.model.state_query import StateQuery
from memfs.state import scan
from memfs.state.parts import States
from memfs.store.state_files import DocumentChange
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
HYPOTHESES = StateQuery(kinds=("hypothesis",))
FOLDER = paths.hypothesis_path(1, "one").rpartition("/")[0]


def store(states: States, name: str) -> None:
    """Write a hypothesis."""
    states.files.write([DocumentChange(paths.hypothesis_path(1, name), {"id": name})], "Store")


def found(states: States) -> list[str]:
    """The names of the hypotheses that are found."""
    return sorted(Path(row.path).stem for row in states.reading.rows(HYPOTHESES))


@pytest.fixture
def looks(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, list[str]]:
    """A workspace whose folder of hypotheses was listed, and the folders that are listed from then on."""
    monkeypatch.setattr(scan, "_SECONDS", LONG)  # a busy machine does not make a listing old
    workspace = opened()
    states = workspace.states
    store(states, "one")
    store(states, "two")
    found(states)
    listed: list[str] = []
    whole = states.reading.looking._listed
    monkeypatch.setattr(
        states.reading.looking, "_listed", lambda folder, known: listed.append(folder) or whole(folder, known)
    )
    return workspace, listed


def test_an_own_write_does_not_have_its_folder_listed(looks: tuple[Workspace, list[str]]) -> None:
    """A question after each write costs no facts about every file in the folder (S13)."""
    workspace, listed = looks
    for number in range(3):
        store(workspace.states, f"n{number}")
        assert f"n{number}" in found(workspace.states)
    assert FOLDER not in listed


def test_what_others_did_beside_an_own_write_is_found(looks: tuple[Workspace, list[str]]) -> None:
    """A person's new, replaced and removed files count, though this process wrote in the same folder (S13, S18)."""
    workspace, listed = looks
    folder = (workspace.root / paths.hypothesis_path(1, "one")).parent
    store(workspace.states, "three")
    (folder / "four.json").write_text(json.dumps({"id": "four"}))
    (folder / ".other").write_text(json.dumps({"id": "two", "agent": "by hand"}))
    (folder / ".other").rename(folder / "two.json")
    (folder / "one.json").unlink()
    assert found(workspace.states) == ["four", "three", "two"]
    (row,) = workspace.states.reading.rows(StateQuery(kinds=("hypothesis",), agents=("by hand",)))
    assert row.path == paths.hypothesis_path(1, "two")
    assert FOLDER not in listed


def test_a_new_folder_and_a_passed_time_have_the_folder_listed(
    looks: tuple[Workspace, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and inodes alone do not stand for ever: removed and made again, a file may have the same inode (S13)."""
    workspace, listed = looks
    store(workspace.states, "three")
    (workspace.root / FOLDER / "inside").mkdir()
    found(workspace.states)
    assert FOLDER in listed
    listed.clear()
    later = scan.time.monotonic() + 3600
    monkeypatch.setattr(scan.time, "monotonic", lambda: later)
    store(workspace.states, "four")
    assert found(workspace.states) == ["four", "one", "three", "two"]
    assert FOLDER in listed
