"""ContextMemory with several handles at once: the version that each read is what its changes are judged by."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memfs import ContextMemory


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ContextMemory, ContextMemory]]:
    """Two handles of one place, opened before anything is stored."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "sqlite")
    with ContextMemory(tmp_path / "lab") as first, ContextMemory(tmp_path / "lab") as second:
        yield first, second


def hypothesis(memory: ContextMemory) -> dict[str, Any]:
    """The one hypothesis as a caller gets it."""
    (found,) = memory.retrieve_state("partial", hypotheses=["h"]).content.hypothesis_data
    return dict(found)


def test_each_handle_adds_to_what_it_read(two: tuple[ContextMemory, ContextMemory]) -> None:
    """Both read 5 wins and store 6: that is 7, and who changed what stays (S2)."""
    first, second = two
    first.store_hypothesis({"id": "h", "wins": 5, "text": "x"})
    reads = hypothesis(first), hypothesis(second)

    first.store_hypothesis({**reads[0], "wins": reads[0]["wins"] + 1, "text": "better"}, base=reads[0])
    changed = {**reads[1], "wins": reads[1]["wins"] + 1, "state": "reviewed"}
    ack = second.store_hypothesis(changed, ["p"], base=reads[1])

    stored = hypothesis(first)
    assert (stored["wins"], stored["text"], stored["state"], stored["parents"]) == (7, "better", "reviewed", ["p"])
    assert ack.conflicts == ()


def test_a_version_of_the_history_may_be_the_base(two: tuple[ContextMemory, ContextMemory]) -> None:
    """After a look at the history, the stored total is what is added to (S10)."""
    first, second = two
    first.store_hypothesis({"id": "h", "wins": 2})
    version = second.hypothesis_history("h").versions[-1].document
    first.store_hypothesis({"id": "h", "wins": 3}, base={"wins": 2})
    second.store_hypothesis({**version, "wins": version["wins"] + 1}, base=version)

    assert hypothesis(first)["wins"] == 4


def test_agents_of_one_thread_say_what_they_read(two: tuple[ContextMemory, ContextMemory]) -> None:
    """Each is judged by its own reading, whatever the others stored since (S2)."""
    memory, _ = two
    memory.store_hypothesis({"id": "h", "wins": 5})
    reads = [hypothesis(memory) for _ in range(3)]

    for read in reads:
        memory.store_hypothesis({**read, "wins": read["wins"] + 1}, base=read)

    assert hypothesis(memory)["wins"] == 8


def test_a_contradiction_is_named_in_the_acknowledgement(two: tuple[ContextMemory, ContextMemory]) -> None:
    """The last writer's value is kept, and the record has the other."""
    first, second = two
    first.store_hypothesis({"id": "h", "state": "new"})
    read = hypothesis(second)
    first.store_hypothesis({"id": "h", "state": "accepted"})

    ack = second.store_hypothesis({**read, "state": "rejected"}, base=read)

    assert ack.conflicts == ("state",)
    assert hypothesis(first)["state"] == "rejected"
    folder = first.workspace.root / "ContextMemory/iterations/iteration_001/conflicts"
    assert len(list(folder.iterdir())) == 1


def _count(path: Path) -> None:
    with ContextMemory(path) as memory:
        for _ in range(5):
            read = hypothesis(memory)
            memory.store_hypothesis({"id": "h", "reviews": read["reviews"] + 1}, base=read)


def test_agents_in_processes_of_their_own_count_together(two: tuple[ContextMemory, ContextMemory]) -> None:
    """Each opens the place by its path, reads and stores (S2)."""
    memory, _ = two
    memory.store_hypothesis({"id": "h", "reviews": 0})
    started = multiprocessing.get_context("fork")
    workers = [started.Process(target=_count, args=(memory.workspace.root,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert hypothesis(memory)["reviews"] == 15
