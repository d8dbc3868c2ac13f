"""The catalog among processes that are killed, exchange its file, or have no room: a fact is right or not found."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

from memfs import MemoryItem
from memfs.catalog.facts import FILE, Catalog, maker
from memfs.model import Query
from memfs.search.generations import drop, shared_folder
from memfs.workspace import Workspace

Scale = Callable[[int, int], int]
Opened = Callable[..., Workspace]
MAKER = maker("test", "1")
KEYS = [(f"{number:040x}", "semantic") for number in range(200)]


def child(act: Callable[[], None]) -> int:
    """Run something in a process of its own; its number. It ends with 0 where nothing was raised."""
    number = os.fork()
    if number:
        return number
    try:
        act()
        os._exit(0)
    finally:
        os._exit(1)


def ended_well(numbers: list[int]) -> bool:
    """Wait for processes; whether none of them failed."""
    return [os.waitpid(number, 0)[1] for number in numbers] == [0] * len(numbers)


def work(folder: Path, seed: int, seconds: float) -> None:
    """Keep and find facts for a while; each that is found is what was kept."""
    chooser, end = random.Random(seed), time.monotonic() + seconds
    catalog = Catalog(folder)
    while time.monotonic() < end:
        some = chooser.sample(KEYS, 20)
        catalog.keep(MAKER, {key: f'["fact {key[0]}"]' for key in some[:10]})
        found = catalog.found(MAKER, some)
        assert all(fact == [f"fact {blob}"] for (blob, _), fact in found.items())
    catalog.close()


def harm(folder: Path, chooser: random.Random) -> None:
    """Do to the file what a person, a disk or another program may do."""
    file = folder / FILE
    data = file.read_bytes() if file.is_file() else b""
    sort = chooser.randrange(4)
    if sort == 0:
        for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
            (folder / name).unlink(missing_ok=True)
    elif data:
        place = chooser.randrange(len(data))
        other = folder / "other"
        flipped = data[:place] + bytes([data[place] ^ 1 << chooser.randrange(8)]) + data[place + 1 :]
        other.write_bytes({1: data[:place], 2: b"\0garbage" * 99, 3: flipped}[sort])
        other.replace(file)


def test_four_processes_get_right_answers_whatever_becomes_of_the_file(tmp_path: Path, scale: Scale) -> None:
    """While it is deleted, cut short, damaged and replaced under them, none of them fails or believes a wrong fact."""
    seconds, chooser = scale(2, 30), random.Random(1)
    workers = [child(lambda seed=number: work(tmp_path, seed, seconds)) for number in range(4)]  # type: ignore[misc]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
        harm(tmp_path, chooser)
    assert ended_well(workers)


def test_a_writer_that_is_killed_leaves_facts_that_are_right(tmp_path: Path, scale: Scale) -> None:
    """After kill -9 at any moment the next process finds and keeps facts."""
    for number in range(scale(10, 200)):
        writer = child(lambda seed=number: work(tmp_path, seed, 60))  # type: ignore[misc]
        time.sleep(0.02 + number % 10 * 0.01)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        work(tmp_path, number, 0.01)


def test_without_room_facts_are_kept_in_memory(tmp_path: Path) -> None:
    """Where the disk takes no more, a process goes on with what it has."""

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        catalog = Catalog(tmp_path)
        for key in KEYS:
            catalog.keep(MAKER, {key: f'"{"x" * 5_000}"'})
        assert catalog.found(MAKER, KEYS[-1:]) == {KEYS[-1]: "x" * 5_000}

    assert ended_well([child(full)])
    work(tmp_path, 1, 0.05)


def test_what_a_workspace_leaves_behind_is_in_no_catalog(opened: Opened) -> None:
    """Where a workspace of a repository goes, what they share is emptied: it may hold what only that one had."""
    workspace = opened(index__engine="sqlite")
    workspace.store.put(MemoryItem("a barn of zqxmark", "knowledge", id="a"))
    assert workspace.recaller.search(Query(text="barn")).hits
    folder = shared_folder(workspace.repository.common_dir)
    assert folder is not None
    assert any(b"zqxmark" in path.read_bytes() for path in folder.iterdir())
    assert drop(workspace.repository.common_dir / "memfs", lambda _: False) == 0
    assert not any(b"zqxmark" in path.read_bytes() for path in folder.iterdir())
    assert workspace.recaller.search(Query(text="barn")).hits
