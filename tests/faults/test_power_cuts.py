"""The power fails: what was acknowledged is on the disk (faults row 23; design sections 5 and 6).

A writer works on an ext4 file system in a file, and in the middle of it everything that is not durable yet is dropped.
Another process keeps making its own files durable, so that the file system's own journal is written at all sorts of
moments, and not only when memfs asks for it.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit import aftermath, broken
from kit.beginning import fast_folder, make
from kit.copies import copy_workspace
from kit.nursery import Job, Nursery, Writer
from kit.places import Disk, disk
from kit.script import FIRST, NAMES, Step, allowed, scripted
from memfs import Query
from memfs.errors import MemfsError

pytestmark = [pytest.mark.faults, pytest.mark.durable]

MOUNTS, IDS = ("", "data=writeback"), ("data=ordered", "data=writeback")
POLICIES: tuple[Mapping[str, object], ...] = (
    {"history.commit": "manual"},
    {"history.commit": "each"},
    {"history.commit": "interval", "history.interval_seconds": 0.01},
)
MANY = tuple(f"many-{number}" for number in range(70))
ENGINES = ("memory", "whoosh", "sqlite")
LONGEST_DELAY = 0.05
MOST_CUTS_TO_CATCH = 40
NOISE = """
import itertools, os, sys, time
parent = os.getppid()
for number in itertools.count():
    if os.getppid() != parent:  # a test that was killed cannot end this
        break
    with open(os.path.join(sys.argv[1], f"noise-{number % 8}"), "wb") as file:
        file.write(bytes(200))
        os.fsync(file.fileno())
    time.sleep(0.005)
"""


@dataclass(slots=True)
class Cuts:
    """A disk whose power fails again and again, and what became of the writes on it.

    Attributes:
        first: a workspace to begin with, on another disk.
    """

    disk: Disk
    first: Path
    nursery: Nursery
    rng: random.Random
    cuts: int = 0
    acknowledged: int = 0

    def cut_once(self, variant: str = "") -> list[str]:
        """Begin again, write, cut the power, look; return what was lost.

        Raises:
            MemfsError, AssertionError: the workspace or its repository is not whole.
        """
        engine = self.rng.choice(ENGINES)
        settings = {**self.rng.choice(POLICIES), "index.engine": engine}

        def some_time(writer: Writer) -> None:
            writer.wait_until_done(self.rng.randint(0, 20))
            writer.is_over(LONGEST_DELAY * self.rng.random())

        return self._cut(scripted(FIRST, self.rng, 80), settings, some_time, variant)

    def cut_in_a_large_batch(self) -> list[str]:
        """As ``cut_once``, while the files of so many items get their names that they are made durable at once."""
        texts = (f"{self.rng.getrandbits(32):08x}" + " and so on" * self.rng.choice((0, 30)) for _ in range(2))
        steps = [Step("batch", dict.fromkeys(MANY, ("knowledge", text))) for text in texts]
        done = self.rng.randint(0, 1)

        def half_of_them(writer: Writer) -> None:
            writer.wait_until_done(done)
            (first,) = self.root.rglob(f"{NAMES[0]}.yaml")
            path = first.with_name(f"{self.rng.choice(MANY)}.yaml")
            before = _inode(path)
            while _inode(path) == before and not writer.is_over(0.0005):
                pass

        return self._cut(steps, {"history.commit": "manual", "index.engine": "memory"}, half_of_them)

    @property
    def root(self) -> Path:
        """Of the workspace on the disk."""
        return self.disk.mounted / "workspace"

    def _cut(
        self, steps: list[Step], settings: Mapping[str, object], moment: Callable[[Writer], None], variant: str = ""
    ) -> list[str]:
        root, engine = self.root, settings["index.engine"]
        self.disk.format()
        self.disk.mount()
        copy_workspace(self.first, root)
        self.disk.sync()
        with noise(self.disk.mounted):
            writer = self.nursery.start(Job(root=root, steps=steps, settings=settings, variant=variant))
            moment(writer)
            self.disk.cut_power()
            writer.kill()
            done = writer.bury(may_be_refused=True)
        self.disk.unmount()
        self.disk.mount()
        self.cuts += 1
        self.acknowledged += done
        with broken.in_force(variant):
            found = aftermath.look(root).state
        possible = allowed(FIRST, steps, done)
        if found not in possible:
            return aftermath.lost(found, possible) or ["a batch in part"]
        aftermath.assert_whole(root, found)
        with aftermath.reopened(root, **{"index.engine": engine}) as workspace:
            assert {item.id for item in workspace.store.select(Query(limit=100))} == set(found)
        self.disk.unmount()
        return []


def _inode(path: Path) -> int:
    return path.stat().st_ino if path.exists() else 0


@contextmanager
def noise(folder: Path) -> Iterator[None]:
    """While the block runs, another process makes its own files durable all the time."""
    process = subprocess.Popen([sys.executable, "-IS", "-c", NOISE, str(folder)], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Cuts]:
    """Cuts on a disk that also holds the user's cache, so that the index is cut off with the rest."""
    with fast_folder(tmp_path) as folder, disk(folder, request.param) as made:
        monkeypatch.setenv("XDG_CACHE_HOME", str(made.mounted / "cache"))
        make(folder / "first")
        with Nursery() as nursery:
            yield Cuts(made, folder / "first", nursery, random.Random(request.param))


@pytest.mark.parametrize("cuts", MOUNTS, ids=IDS, indirect=True)
def test_23_a_power_cut_loses_nothing_acknowledged(
    cuts: Cuts, scale: Callable[[int, int], int], figures: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    """After each cut every acknowledged write is there, git is whole and the index agrees (faults row 23)."""
    for number in range(scale(5, 200)):
        assert cuts.cut_once() == [], f"cut {number}"
    assert cuts.acknowledged > cuts.cuts
    how = request.node.callspec.id
    figures(f"power cut on ext4, {how}", points=cuts.cuts, acknowledged=cuts.acknowledged, lost=0, torn=0)


@pytest.mark.parametrize("cuts", MOUNTS, ids=IDS, indirect=True)
def test_23_a_power_cut_in_a_large_batch_loses_no_old_content(
    cuts: Cuts, scale: Callable[[int, int], int], figures: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    """Cut while some of many files are the new ones: they are all old or all new, and none is torn (faults row 23)."""
    for number in range(scale(1, 30)):
        assert cuts.cut_in_a_large_batch() == [], f"cut {number}"
    how = request.node.callspec.id
    figures(f"power cut in a large batch, {how}", points=cuts.cuts, acknowledged=cuts.acknowledged, lost=0, torn=0)


@pytest.mark.parametrize("cuts", MOUNTS[1:], ids=IDS[1:], indirect=True)
@pytest.mark.parametrize("variant", ["no fsync", "only the journal synced"])
def test_23_a_broken_memfs_is_caught_by_power_cuts(cuts: Cuts, variant: str) -> None:
    """The same cuts find what is lost when nothing, or not everything, is made durable."""
    for _ in range(MOST_CUTS_TO_CATCH):
        try:
            if cuts.cut_once(variant):
                return
        except (AssertionError, MemfsError):
            return  # the repository or the workspace is damaged
    pytest.fail(f"{MOST_CUTS_TO_CATCH} power cuts did not notice: {variant}")
