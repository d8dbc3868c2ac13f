"""Work that waits until nobody waits for it."""

from __future__ import annotations

import threading

from memfs.recall.executor import Background

PATIENCE = 60.0


def test_tasks_are_done_in_order_and_once() -> None:
    """Tasks are done oldest first; one that is added again under its key replaces the one that waits."""
    done: list[int] = []
    background = Background[int]("test", done.append, lambda _: None, quiet_seconds=60)

    for key, task in (("a", 1), ("b", 2), ("a", 3)):
        assert background.add(key, task)

    assert background.settle(PATIENCE)
    assert done == [3, 2]
    assert background.close(PATIENCE) == 0
    assert not background.add("c", 4)


def test_a_full_queue_takes_no_more() -> None:
    """The queue is bounded: what finds no room is refused, and what waits is done all the same."""
    done: list[int] = []
    background = Background[int]("test", done.append, lambda _: None, limit=2, quiet_seconds=60)

    assert [background.add(str(number), number) for number in (0, 1, 2)] == [True, True, False]
    assert background.add("1", 5)

    assert background.settle(PATIENCE)
    assert done == [0, 5]
    assert background.add("2", 2)
    background.close(PATIENCE)
    assert done == [0, 5, 2]


def test_a_failing_task_is_reported_and_the_next_is_done() -> None:
    """What a task raises is handed on, and ends nothing."""
    failed: list[Exception] = []
    done: list[int] = []

    def work(task: int) -> None:
        done.append(task)
        if task == 1:
            raise ValueError("one")

    background = Background[int]("test", work, failed.append)
    background.add("1", 1)
    background.add("2", 2)

    assert background.settle(PATIENCE)
    assert done == [1, 2]
    assert [str(error) for error in failed] == ["one"]
    background.close(PATIENCE)


def test_a_task_may_add_settle_and_drop() -> None:
    """A task that waits for the queue would wait for itself: it does not; and it may take back what waits."""
    done: list[str] = []

    def work(task: str) -> None:
        done.append(task)
        if task == "first":
            assert background.settle(PATIENCE)
            background.drop(["second", "unknown"])
            background.add("third", "third")

    background = Background[str]("test", work, lambda _: None, quiet_seconds=60)
    background.add("first", "first")
    background.add("second", "second")

    assert background.settle(PATIENCE)
    assert done == ["first", "third"]
    background.close(PATIENCE)


def test_closing_leaves_what_takes_too_long() -> None:
    """Closing waits a bounded time, and says how many tasks were not begun."""
    begun, go = threading.Event(), threading.Event()

    def work(_: int) -> None:
        begun.set()
        go.wait(PATIENCE)

    background = Background[int]("test", work, lambda _: None, quiet_seconds=0)
    for number in range(3):
        background.add(str(number), number)
    assert begun.wait(PATIENCE)
    threading.Timer(0.2, go.set).start()

    assert background.close(0.01) == 2
    assert not background.add("x", 1)
