"""The watcher is honest: what it cannot see it says, and the index follows all the same (faults rows 44, 45)."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memfs import watch
from memfs.store.index_sync import SyncResult
from memfs.watch import NoticedChange, Watcher
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Scale = Callable[[int, int], int]
Figures = Callable[..., None]
SETTINGS = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "leave"}
FOLDER = "ContextMemory/memories/semantic/hand"


@pytest.fixture
def resident(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace that watches from the start."""
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=SETTINGS) as workspace:
        yield workspace


def until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def indexed(workspace: Workspace) -> dict[str, str]:
    """What the index holds at this moment, without looking at any file: blob by path."""
    return dict(workspace.parts.index.stamps().blobs())


def eyes_of(workspace: Workspace) -> Watcher:
    """The watcher behind a workspace."""
    eyes = workspace.store.change_detector._watcher
    assert isinstance(eyes, Watcher)
    return eyes


def write(workspace: Workspace, name: str, text: str = "x") -> Path:
    """Write an item as a person would."""
    path = workspace.root / FOLDER / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"content: {text}\n")
    return path


def state_in_status(memfs: Path, root: Path) -> str:
    """What ``memfs status`` says of watching, from another process."""
    command = [str(memfs), "-C", str(root), "status", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    state = json.loads(done.stdout)["watch"]["state"]
    assert isinstance(state, str)
    return state


# -- row 44: storms, limits, deaths -------------------------------------------------------------------------------
STORM = """
import sys
from pathlib import Path
root, count = Path(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    folder = root / f"ContextMemory/memories/semantic/s{number % 40}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"n{number}.yaml").write_text(f"content: number {number}\\n")
"""


def test_44_after_a_storm_from_another_process_the_index_equals_the_files(
    resident: Workspace, scale: Scale, figures: Figures
) -> None:
    """Thousands of files in new folders at once, with lost events: none is missing (faults row 44)."""
    count = scale(800, 30_000)
    subprocess.run([sys.executable, "-c", STORM, str(resident.root), str(count)], check=True)
    ended = time.monotonic()
    assert until(lambda: len(indexed(resident)) == count, 300)
    figures("storm of files", points=count, lost=0, seconds_until_indexed=round(time.monotonic() - ended, 1))
    assert {path.rpartition("/")[2] for path in indexed(resident)} == {f"n{number}.yaml" for number in range(count)}


def in_namespace(limits: dict[str, int], script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a user namespace of its own, with limits set that concern nobody else."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-U", "-r", "true"], check=False).returncode:
        pytest.skip("this system gives no user namespace, so no watch limit can be set")
    setting = "; ".join(f"echo {value} > /proc/sys/user/{name} || exit 77" for name, value in limits.items())
    command = ["unshare", "-U", "-r", "sh", "-c", f'{setting}; exec "$@"', "sh", sys.executable, "-c", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets nobody set a watch limit in a user namespace")
    return done


LIMITED = """
import json, subprocess, sys, time
from pathlib import Path
from memfs.workspace import open_workspace
root, limit, memfs = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
def status():
    command = [memfs, "-C", str(root), "status", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["watch"]["state"]
for number in range(40):
    (root / f"ContextMemory/memories/semantic/f{number}").mkdir(parents=True)
settings = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "leave"}
with open_workspace(root, watch=True, settings=settings) as workspace:
    said = {"at first": workspace.store.watching, "in status": status()}
    for number in range(40):  # whichever are watched
        (root / f"ContextMemory/memories/semantic/f{number}/late{number}.yaml").write_text("content: late\\n")
    index = workspace.parts.index
    said["followed"] = until(lambda: sum("late" in path for path in index.stamps()) == 40)
    (root / "ContextMemory/memories/semantic/f39/later.yaml").write_text("content: walnut\\n")
    said["found"] = [hit.item.id for hit in workspace.recaller.search("walnut").hits]
    open(f"/proc/sys/user/{limit}", "w").write("4000")
    said["healed"] = until(lambda: workspace.store.watching == "on")
    said["healed in status"] = status()
print(json.dumps(said))
"""


@pytest.mark.parametrize("limit", [("max_inotify_watches", 20), ("max_inotify_instances", 0)], ids=lambda row: row[0])
def test_44_at_the_systems_limits_status_says_degraded_and_the_index_follows(
    opened: Opened, forked: Path, limit: tuple[str, int]
) -> None:
    """With too few watches, or none: said in status, index kept by scans, well again by itself (faults row 44)."""
    root = opened().root
    done = in_namespace(dict([limit]), LIMITED, str(root), limit[0], str(forked))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["at first"].startswith("degraded: ")
    assert report["in status"].startswith("degraded (")
    if limit[0] == "max_inotify_watches":
        assert "folders are not watched" in report["in status"]
    assert report["followed"] is True
    assert report["found"] == ["later"]
    assert report["healed"] is True
    assert report["healed in status"].startswith("on, pid ")


def test_44_a_root_that_was_moved_and_restored_is_followed_again(resident: Workspace) -> None:
    """While the folder is elsewhere that is said; once it is back the index follows as before (faults row 44)."""
    write(resident, "a", "apple")
    assert until(lambda: len(indexed(resident)) == 1)
    away = resident.root.with_name("away")
    resident.root.rename(away)
    assert until(lambda: resident.store.watching.startswith("degraded"))
    path = away / FOLDER / "b.yaml"
    path.write_text("content: written while away\n")
    away.rename(resident.root)
    assert until(lambda: len(indexed(resident)) == 2)
    assert until(lambda: resident.store.watching == "on")
    write(resident, "c", "cherry")
    assert until(lambda: len(indexed(resident)) == 3)


def test_44_the_folder_replaced_by_another_is_followed(resident: Workspace) -> None:
    """Another folder in the place of the watched one, as a checkout may make it, is what counts (faults row 44)."""
    write(resident, "a", "apple")
    assert until(lambda: len(indexed(resident)) == 1)
    memory = resident.root / "ContextMemory"
    shutil.copytree(memory, resident.root / "other")
    (resident.root / "other" / FOLDER.removeprefix("ContextMemory/") / "b.yaml").write_text("content: banana\n")
    memory.rename(resident.root / "old")
    (resident.root / "other").rename(memory)
    assert until(lambda: len(indexed(resident)) == 2)
    assert until(lambda: resident.store.watching == "on")
    write(resident, "c", "cherry")
    assert until(lambda: len(indexed(resident)) == 3)


def kill_thread(thread: threading.Thread) -> None:
    """End a thread as nothing it catches could."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_44_a_killed_watcher_thread_is_noticed_and_started_again(resident: Workspace) -> None:
    """If the thread that catches up dies, the next question is answered rightly and starts another (faults row 44)."""
    eyes = eyes_of(resident)
    kill_thread(eyes._thread)
    write(resident, "a", "apple")
    assert [hit.item.id for hit in resident.recaller.search("apple").hits] == ["a"]
    assert eyes._thread.is_alive()
    write(resident, "b", "banana")
    assert until(lambda: len(indexed(resident)) == 2)


READER_DIES = """
import ctypes, json, sys, threading, time
from pathlib import Path
from memfs.workspace import open_workspace
root = Path(sys.argv[1])
# without events the pause between scans follows what a scan costs, so on a busy machine only this bounds it
settings = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "leave", "watch.scan_seconds": 3}
with open_workspace(root, watch=True, settings=settings) as workspace:
    readers = [t for t in threading.enumerate() if type(t).__module__.startswith("watchdog.")]
    folder = root / "ContextMemory/memories/semantic/hand"
    folder.mkdir(parents=True)
    for thread in readers:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    number, end = 0, time.monotonic() + 10  # one that waits for another, which is dead, never wakes
    while any(thread.is_alive() for thread in readers) and time.monotonic() < end:
        number += 1
        (folder / f"wake{number}.yaml").write_text("content: wake\\n")
        time.sleep(0.05)
    (folder / "last.yaml").write_text("content: walnut\\n")
    # a new observer may be at work already, and an event takes its moment
    found, end = [], time.monotonic() + 120
    while time.monotonic() < end and not found:
        found = [hit.item.id for hit in workspace.recaller.search("walnut").hits]
    (folder / "behind.yaml").write_text("content: behind the scenes\\n")
    index, end = workspace.parts.index, time.monotonic() + 120
    while time.monotonic() < end and not any("behind" in path for path in index.stamps()):
        time.sleep(0.05)
    followed = any("behind" in path for path in index.stamps())
    print(json.dumps({"dead": sum(not t.is_alive() for t in readers), "found": found, "followed": followed}))
"""


def test_44_when_every_thread_of_the_library_is_killed_search_stays_correct(opened: Opened) -> None:
    """All of watchdog's threads dead, also the one it shares between observers: nothing is missed (faults row 44)."""
    root = opened().root
    done = subprocess.run(
        [sys.executable, "-c", READER_DIES, str(root)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["dead"] > 0
    assert (report["found"], report["followed"]) == (["last"], True)


def test_44_where_others_change_files_unseen_that_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where other machines change files, events are incomplete: degraded, and scanned (faults row 44)."""
    monkeypatch.setattr(watch, "file_system", lambda path: "nfs4")
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=SETTINGS) as workspace:
        assert "this file system (nfs4) does not report" in workspace.store.watching
        monkeypatch.setattr(Watcher, "_heard", lambda *_: None)
        write(workspace, "a", "apple")
        assert [hit.item.id for hit in workspace.recaller.search("apple").hits] == ["a"]
        write(workspace, "b", "banana")
        assert until(lambda: len(indexed(workspace)) == 2)


def test_44_status_reports_how_resident_processes_watch(
    resident: Workspace, forked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``memfs status`` reads what other processes say: on, degraded with the reason, off when they ended."""
    assert state_in_status(forked, resident.root) == f"on, pid {os.getpid()}"
    monkeypatch.setattr(watch.FileEvents, "doubt", lambda self: "for the sake of the test")
    assert until(lambda: resident.store.watching.startswith("degraded"))
    command = [str(forked), "-C", str(resident.root), "status"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert f"degraded (for the sake of the test; scanning instead), pid {os.getpid()}" in shown
    resident.close()
    assert state_in_status(forked, resident.root).startswith("off")


RESIDENT = """
import sys, time
from memfs.workspace import open_workspace
settings = {"index.engine": "memory", "history.commit": "manual"}
with open_workspace(sys.argv[1], watch=True, settings=settings) as workspace:
    print("ready", flush=True)
    time.sleep(600)
"""


def test_44_the_note_of_a_killed_process_is_gone(opened: Opened, forked: Path) -> None:
    """A process that was killed no longer counts as watching, whatever its note said."""
    root = opened().root
    process = subprocess.Popen([sys.executable, "-c", RESIDENT, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert state_in_status(forked, root) == f"on, pid {process.pid}"
    process.kill()
    process.communicate()
    assert state_in_status(forked, root).startswith("off")


# -- row 45: every way to save ------------------------------------------------------------------------------------
def by_sed(path: Path) -> None:
    """``sed -i``: a temporary file renamed over."""
    subprocess.run(["sed", "-i", "s/before/after!/", str(path)], check=True)


def by_vim(path: Path) -> None:
    """vim with ``backupcopy=no``: the old file renamed away, a new one written, the backup removed."""
    backup = path.with_name(path.name + "~")
    probe = path.with_name("4913")
    probe.touch()
    probe.unlink()
    path.rename(backup)
    path.write_text("content: after!\n")
    backup.unlink()


def by_rename_from_outside(path: Path) -> None:
    """A file made elsewhere and renamed into its place."""
    outside = path.parents[4] / "outside.yaml"
    outside.write_text("content: after!\n")
    outside.rename(path)


def in_place(path: Path) -> None:
    """Written over, without cutting it first."""
    with path.open("r+b") as file:
        file.write(b"content: after!\n")


MAP = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
view = mmap.mmap(fd, 0)
os.close(fd)
print("closed", flush=True)
sys.stdin.readline()
view[:] = b"content: after!\\n"
view.flush()
"""


def by_mmap(path: Path) -> None:
    """Through a mapping whose file was closed long before: no event reports it."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAP, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "closed\n"
    time.sleep(0.7)  # the watcher has looked after the event of the closing, and found nothing new
    process.communicate("\n")
    assert process.returncode == 0


def by_hardlink(path: Path) -> None:
    """Through another name of the same file, in a folder nobody watches."""
    other = path.parents[4] / "other-name.yaml"
    os.link(path, other)
    other.write_text("content: after!\n")


def with_old_times(path: Path) -> None:
    """Same size, and the old modification time put back."""
    facts = path.stat()
    path.write_text("content: after!\n")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


SAVES = [by_sed, by_vim, by_rename_from_outside, in_place, by_mmap, by_hardlink, with_old_times]


@contextlib.contextmanager
def counted_updates(workspace: Workspace, path: str) -> Iterator[list[str]]:
    """The updates of one file that the index gets, as ``+`` and ``-``."""
    updates: list[str] = []
    index = workspace.parts.index
    update = index.update

    def counted(added=(), removed=(), *, later=False) -> None:  # type: ignore[no-untyped-def]
        rows, gone = list(added), list(removed)
        updates.extend("-" for name in gone if name == path)
        updates.extend("+" for item, _ in rows if item.path == path)
        update(rows, gone, later=later)

    index.update = counted  # type: ignore[method-assign]
    try:
        yield updates
    finally:
        del index.update  # type: ignore[method-assign]


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
def test_45_each_way_to_save_is_seen_by_the_next_question(opened: Opened, save: Callable[[Path], None]) -> None:
    """Without a watcher a scan sees each save, once (faults row 45)."""
    if save is by_sed and shutil.which("sed") is None:
        pytest.skip("no sed")
    workspace = opened()
    path = write(workspace, "a", "before")
    assert [hit.item.id for hit in workspace.recaller.search("before").hits] == ["a"]
    with counted_updates(workspace, f"{FOLDER}/a.yaml") as updates:
        save(path)
        assert [hit.item.content for hit in workspace.recaller.search("after").hits] == ["after!"]
        assert workspace.recaller.search("before").hits == ()
    assert updates == ["+"]


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
def test_45_each_way_to_save_reaches_a_resident_index_exactly_once(
    tmp_path: Path, save: Callable[[Path], None]
) -> None:
    """By event or by scan, the index learns of each save behind the scenes, in one update (faults row 45)."""
    if save is by_sed and shutil.which("sed") is None:
        pytest.skip("no sed")
    settings = {**SETTINGS, "watch.debounce_ms": 250, "watch.scan_seconds": 1.0}
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=settings) as workspace:
        path = write(workspace, "a", "before")
        assert until(lambda: len(indexed(workspace)) == 1)
        before = indexed(workspace)
        with counted_updates(workspace, f"{FOLDER}/a.yaml") as updates:
            save(path)
            assert until(lambda: len(indexed(workspace)) == 1 and indexed(workspace) != before)
            scanned = eyes_of(workspace)._scanned_at
            assert until(lambda: eyes_of(workspace)._scanned_at > scanned)  # one more scan finds nothing new
        assert updates == ["+"]


# -- broken on purpose: the checks above must notice --------------------------------------------------------------
def test_44_the_check_notices_a_watcher_that_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that drops events and says it is sure leaves the index behind, and the check above sees that."""
    with open_workspace(tmp_path / "w", create=True, watch=True, settings=SETTINGS) as workspace:
        began = eyes_of(workspace)._scanned_at
        assert until(lambda: eyes_of(workspace)._scanned_at > began)  # for the commit that made the workspace
        nothing = NoticedChange(refreshed=SyncResult(), reason="events")
        monkeypatch.setattr(Watcher, "_heard", lambda *_: None)
        monkeypatch.setattr(Watcher, "_catch_up", lambda _: nothing)  # a scan that was due anyway would find the file
        monkeypatch.setattr(Watcher, "drain", lambda _: [])
        write(workspace, "a", "apple")
        assert not until(lambda: len(indexed(workspace)) == 1, 1.5)
        assert workspace.recaller.search("apple").hits == ()


def test_44_the_check_notices_watches_that_nobody_counts(opened: Opened, forked: Path) -> None:
    """Without comparing watches with folders a reached limit stays unsaid: the library keeps it to itself."""
    root = opened().root
    blind = "import memfs.watch\nmemfs.watch.uncovered = lambda folder: None\n"
    short = LIMITED.replace("seconds=60", "seconds=2")
    done = in_namespace({"max_inotify_watches": 20}, blind + short, str(root), "max_inotify_watches", str(forked))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["at first"] == "on"
    assert report["followed"] is False


def test_45_the_check_notices_young_files_that_are_not_read_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where times are coarse, two saves in one moment look alike: only reading again tells them apart."""
    import memfs.fs.tree as tree
    from memfs.model import Stamp

    coarse = 10**13
    exact = tree._facts_of

    def facts_of(facts: os.stat_result) -> tuple[int, int, int, int, int]:
        mode, size, mtime, ctime, inode = exact(facts)
        return mode, size, mtime // coarse * coarse, ctime // coarse * coarse, inode

    def stamp(facts: os.stat_result, data: bytes, _: int) -> Stamp:
        _, size, mtime, ctime, inode = facts_of(facts)
        checked = max(mtime, ctime) + 10**9  # within the two seconds in which nothing is sure
        return Stamp(size, mtime, ctime, inode, tree.blob_id(data), checked)

    monkeypatch.setattr(tree, "_facts_of", facts_of)
    monkeypatch.setattr(tree, "_stamp", stamp)

    def seen_twice(workspace: Workspace) -> bool:
        path = write(workspace, "a", "before")
        workspace.store.refresh()
        in_place(path)
        return bool(workspace.recaller.search("after").hits)

    assert seen_twice(opened())
    monkeypatch.setattr("memfs.search.columns.RACY_NS", 0)
    monkeypatch.setattr("memfs.model.item.RACY_NS", 0)
    root = opened().root
    (root / FOLDER / "a.yaml").unlink()
    assert not seen_twice(opened(root))
