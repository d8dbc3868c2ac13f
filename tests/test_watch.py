"""Watching: the index follows by itself in a process that stays."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.patience import until
from memfs import MemoryItem, Query
from memfs.model.ids import stem_of
from memfs.settings import WatchSettings
from memfs.watch import FileEvents, NoticedChange, Watcher
from memfs.workspace import Workspace, open_workspace

Git = Callable[..., str]
SETTINGS = {"index.engine": "memory", "history.commit": "manual", "history.adopt_after_seconds": 0.2}


@pytest.fixture
def resident(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace that watches from the start."""
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=SETTINGS) as workspace:
        yield workspace


def indexed(workspace: Workspace) -> set[str]:
    """What the index holds at this moment, without looking at any file."""
    return {stem_of(path) for path in workspace.parts.index.stamps()}


def write(workspace: Workspace, name: str, text: str = "x") -> Path:
    """Write an item as a person would."""
    path = workspace.root / f"ContextMemory/memories/semantic/hand/{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"content: {text}\n")
    return path


def test_k5_a_resident_process_indexes_hand_edits_without_being_asked(resident: Workspace) -> None:
    """New, changed, renamed and removed files reach the index behind the scenes (K5)."""
    path = write(resident, "a", "apple")
    assert until(lambda: "a" in indexed(resident))
    path.rename(path.with_name("b.yaml"))
    assert until(lambda: indexed(resident) == {"b"})
    path.with_name("b.yaml").unlink()
    assert until(lambda: indexed(resident) == set())


def test_recall_in_a_watching_process_sees_what_was_written_just_before(resident: Workspace) -> None:
    """After a moment for the event to arrive, recall needs no scan to be right."""
    assert resident.store.watching == "on"
    write(resident, "a", "apricot")
    assert until(lambda: len(resident.recaller.search("apricot").hits) == 1)


def test_44_a_storm_of_files_is_followed_within_seconds(resident: Workspace) -> None:
    """Thousands of files at once, made by somebody else, are all indexed (faults row 44)."""
    folder = write(resident, "first").parent
    for number in range(2000):
        (folder / f"n{number}.yaml").write_text(f"content: number {number}\n")
    assert until(lambda: len(indexed(resident)) == 2001)


def test_44_lost_events_are_made_good_by_a_scan(resident: Workspace) -> None:
    """When the system says that events were lost, all files are compared (faults row 44)."""
    eyes = resident.store.change_detector._watcher
    assert isinstance(eyes, Watcher)
    scanned = eyes._scanned_at
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed")
    assert until(lambda: eyes._scanned_at > scanned)


def test_44_without_watches_recall_scans_and_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where watching is impossible, recall stays right and the reason is shown (faults row 44)."""
    from watchdog.observers.api import BaseObserver

    def refuse(self: BaseObserver) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(BaseObserver, "start", refuse)
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=SETTINGS) as workspace:
        assert workspace.store.watching.startswith("degraded")
        assert "inotify watch limit reached" in workspace.store.watching
        write(workspace, "a", "apple")
        assert [hit.item.id for hit in workspace.recaller.search("apple").hits] == ["a"]


def test_44_a_dead_observer_is_noticed(resident: Workspace) -> None:
    """If the observer's thread dies, recall scans (faults row 44)."""
    eyes = resident.store.change_detector._watcher
    assert isinstance(eyes, Watcher)
    assert eyes._hearing._observer is not None
    eyes._hearing._observer.stop()
    eyes._hearing._observer.join(10)  # two that stop it at the same moment may wait for each other
    write(resident, "a", "apple")
    assert [hit.item.id for hit in resident.recaller.search("apple").hits] == ["a"]


def test_44_a_library_that_cannot_be_stopped_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of the library that died with a lock locked leaves who stops the others waiting (faults row 44)."""
    events = FileEvents(tmp_path, lambda _paths, _folder: None, lambda: None)
    observer, unlocked = events._observer, threading.Event()
    assert observer is not None
    stop = observer.stop
    monkeypatch.setattr(observer, "stop", lambda: unlocked.wait() and stop())
    monkeypatch.setattr("memfs.watch._LONGEST_END", 0.01)
    events.close()
    assert observer.is_alive()
    unlocked.set()
    observer.join()


def test_checkouts_and_new_heads_are_reported_to_the_listener(tmp_path: Path, git: Git) -> None:
    """``memfs watch`` reports files and a moved HEAD."""
    rounds: list[NoticedChange] = []
    with open_workspace(tmp_path / "w", create=True, watch=False, settings=SETTINGS) as workspace:
        workspace.store.put(MemoryItem("x", "knowledge", id="a"))
        workspace.store.flush()
        watcher = Watcher(workspace.store, workspace.root, WatchSettings(), listener=rounds.append)
        try:
            git(workspace.root, "reset", "-q", "--hard", "HEAD~1")
            assert until(lambda: any(row.reason == "head" for row in rounds))
            assert until(lambda: indexed(workspace) == set())
        finally:
            watcher.close()


@pytest.mark.parametrize("commit", ["session", "manual"])
def test_a_rested_hand_edit_is_committed_where_the_policy_says_so(tmp_path: Path, git: Git, commit: str) -> None:
    """Under ``adopt = auto`` a resident process commits a person's edit after a quiet time, but under ``manual``."""
    settings = {**SETTINGS, "history.commit": commit}
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=settings) as resident:
        assert resident.settings.history.adopt == "auto"
        write(resident, "mine", "by hand")
        assert until(lambda: "mine" in indexed(resident))
        if commit == "manual":
            time.sleep(1.5)
            assert "Edit by hand" not in git(resident.root, "log", "-1", "--format=%s")
        else:
            assert until(lambda: "Edit by hand: by hand" in git(resident.root, "log", "-1", "--format=%s"))
            assert git(resident.root, "status", "--porcelain") == ""


def test_watching_starts_with_the_first_recall_by_default(tmp_path: Path) -> None:
    """A process that never asks pays nothing."""
    with open_workspace(tmp_path / "w", create=True, settings=SETTINGS) as workspace:
        workspace.store.put(MemoryItem("x", "knowledge"))
        assert workspace.store.watching == "off"
        assert len(workspace.store.select(Query())) == 1
        assert workspace.store.watching == "on"


def test_44_folders_without_a_watch_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder at and below the watched one must be among what the kernel watches (faults row 44)."""
    from memfs import watch

    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("")
    known = {folder.stat().st_ino for folder in (tmp_path, tmp_path / "a")}
    monkeypatch.setattr(watch, "_watched_inodes", lambda: known)
    assert watch.uncovered(str(tmp_path)) == (1, 3)
    assert watch.uncovered(str(tmp_path / "gone")) == (0, 0)
    monkeypatch.setattr(watch, "_watched_inodes", lambda: None)
    assert watch.uncovered(str(tmp_path)) is None
