"""A child that a program forks goes on with the workspaces its parent opened: none of its threads is missing."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kit.patience import LONG, until
from memfs import MemoryItem, Query
from memfs.fs.executor import Worker
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_child(work: Callable[[], bool]) -> bool:
    """Whether work says yes in a forked child, which ends as such children do: without closing anything."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(work()))
    child.start()
    try:
        return bool(answers.get(timeout=2 * LONG))
    finally:
        child.kill()
        child.join()


@contextmanager
def held_elsewhere(*locks: threading.Lock) -> Iterator[None]:
    """Let another thread hold these locks while the block runs."""
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            holding.set()
            done.wait(LONG)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(LONG)
    try:
        yield
    finally:
        done.set()
        thread.join()


def committed(workspace: Workspace, git: Git, name: str) -> bool:
    return f"/{name}.yaml" in git(workspace.root, "ls-tree", "-r", "--name-only", "HEAD")


def put(workspace: Workspace, *names: str) -> None:
    for name in names:
        workspace.store.put(MemoryItem(f"about {name}", "knowledge", id=name))


def test_a_childs_writes_are_committed(opened: Opened, git: Git) -> None:
    """The parent's window closes by a thread that the child has not: the child's closes by one of its own."""
    workspace = opened(history__commit="interval", history__interval_seconds=0.01)
    put(workspace, "before")
    assert until(lambda: committed(workspace, git, "before"))

    def work() -> bool:
        put(workspace, "one", "two", "three")
        return until(lambda: committed(workspace, git, "three"))

    assert in_child(work)
    put(workspace, "after")
    assert until(lambda: committed(workspace, git, "after"))
    assert workspace.store.count() == 5


def test_a_child_waits_for_no_thread_of_its_parent(opened: Opened, git: Git) -> None:
    """Whatever another thread was at when the program forked, the child writes, finds and commits."""
    workspace = opened(history__commit="each")
    put(workspace, "before")
    workspace.store.get("before")
    store, parts = workspace.store, workspace.parts
    locks = [
        store._planning,
        store.change_detector._turn,
        store.index_sync._lock,
        parts.journal._lock,
        parts.index._lock,
    ]
    locks += [parts.index._folding, parts.repository.git._lock, workspace.behaviours._guard]

    def work() -> bool:
        put(workspace, "own")
        found = [hit.item.id for hit in workspace.recaller.search(Query(text="about", limit=5)).hits]
        return sorted(found) == ["before", "own"] and committed(workspace, git, "own")

    with held_elsewhere(*locks):
        assert in_child(work)


def test_a_child_reads_the_journal_again(opened: Opened) -> None:
    """What a thread of the parent had half read when the program forked is neither lost nor reported twice."""
    workspace = opened()
    put(workspace, "waits")
    workspace.parts.journal.waiting.clear()  # as if it were being read
    assert in_child(lambda: workspace.store.pending().count == 1)


def test_a_child_watches_with_its_own_eyes(opened: Opened, tmp_path: Path) -> None:
    """A child of a process that watches sees what others change, and says that it watches."""
    root = opened().root
    with open_workspace(root, watch=True) as workspace:
        put(workspace, "before")
        path = root / workspace.store.locate("before")

        def work() -> bool:
            workspace.store.follow()
            path.write_text("content: changed by hand\n")
            return workspace.store.watching == "on" and until(
                lambda: bool(workspace.recaller.search(Query(text="changed by hand")).hits)
            )

        assert workspace.store.watching == "on"
        assert in_child(work)
        assert workspace.store.watching == "on"


def test_a_child_does_its_own_work_behind_the_scenes() -> None:
    """What waits in the parent is the parent's to do; what the child adds, a thread of the child does."""
    done: list[str] = []
    hold = threading.Event()
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        hold.wait(LONG)
        done.append("done")

    worker = Worker("work", wait, print)
    worker.wake()
    assert begun.wait(LONG)
    worker.wake()

    def work() -> bool:
        hold.set()
        return worker.wake() and worker.settle(LONG) and done == ["done"]

    with held_elsewhere(worker._news):
        assert in_child(work)
    hold.set()
    assert worker.settle(LONG)
    assert done == ["done", "done"]
