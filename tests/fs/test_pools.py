"""Threads for what is asked in the background."""

from __future__ import annotations

import os
import threading

import pytest

from memfs.fs.executor import Deadline, Pools


def test_work_of_one_purpose_does_not_wait_for_another() -> None:
    """A purpose whose threads are all busy holds up no other (C5)."""
    pools, go = Pools(), threading.Event()
    stuck = [pools.submit("slow", go.wait, 10) for _ in range(9)]
    assert pools.submit("quick", lambda: 5).result(5) == 5
    go.set()
    assert all(one.result(5) for one in stuck)
    pools.close()


def test_one_thread_keeps_the_order_across_callers() -> None:
    """With one thread a purpose, all is done one after another and in order, also what several threads give (C5)."""
    pools, done = Pools(threads=1), list[tuple[int, int]]()
    begin = threading.Barrier(4)

    def give(who: int) -> None:
        begin.wait(60)
        for number in range(20):
            pools.submit("later", done.append, (who, number))

    givers = [threading.Thread(target=give, args=(who,)) for who in range(4)]
    for giver in givers:
        giver.start()
    for giver in givers:
        giver.join()
    pools.close(give_up=False)
    assert len(done) == 80
    assert all([number for who, number in done if who == one] == list(range(20)) for one in range(4))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    """A child of a process that asked in the background can do so, too (C5)."""
    pools = Pools()
    assert pools.submit("a", lambda: 1).result(5) == 1
    child = os.fork()
    if not child:
        os._exit(0 if pools.submit("a", lambda: 2).result(5) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    pools.close()


def test_a_deadline_counts_from_its_beginning() -> None:
    """What is left shrinks to 0 and is bounded; without seconds nothing ever ends (C5)."""
    now = [10.0]
    deadline = Deadline(5, lambda: now[0])
    assert (deadline.left(), deadline.left(2), deadline.passed) == (5, 2, False)
    now[0] = 16
    assert (deadline.left(), deadline.passed) == (0, True)
    endless = Deadline(None)
    assert (endless.left(), endless.left(2), endless.passed) == (None, 2, False)
