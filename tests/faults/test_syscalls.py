"""Every system call of a write as the place of a fault (faults rows 22, 24, 25, 26).

strace attaches to a writer whose workspace is open, and lets it make one write. Each call of that write is the last one
in turn, or fails in turn: below the fault hook, as the kernel would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit import aftermath, broken, tracing
from kit.beginning import Beginning, fast_folder
from kit.nursery import Job, Nursery
from kit.script import FIRST, NAMES, State, Step, after, allowed
from kit.tracing import Call
from memfs.errors import ContentError

pytestmark = pytest.mark.faults

WRITES = {
    "put": Step("put", {NAMES[7]: ("knowledge", "new")}),
    "update": Step("put", {NAMES[0]: ("knowledge", "changed")}),
    "delete": Step("delete", {NAMES[0]: None}),
}
FAILURES = {
    "openat": ("EMFILE", "ENOSPC", "EIO"),
    "write": ("ENOSPC", "EIO", "EFBIG"),
    "pwrite64": ("ENOSPC", "EIO", "EFBIG"),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "mkdirat": ("ENOSPC", "EROFS"),
    "renameat": ("ENOSPC", "EIO"),
    "renameat2": ("ENOSPC", "EIO", "ENOSYS"),
    "linkat": ("ENOSPC", "EIO"),
    "unlinkat": ("EIO", "EROFS"),
}
SHORT = 40
READING_CALLS_EVERY = 40
LOOK_CLOSELY_EVERY = 10


@dataclass(slots=True)
class Bench:
    """One write, to be made under a fault from the same beginning again and again."""

    step: Step
    beginning: Beginning
    nursery: Nursery
    log: Path
    tried: int = 0

    def under(self, fault: str, variant: str = "") -> tuple[int, list[Call]]:
        """Make the write under a fault; return how many steps were acknowledged (0 or 1), and the calls."""
        root = self.beginning.fresh()
        settings = {"history.commit": "manual"}
        writer = self.nursery.start(Job(root=root, steps=[self.step], settings=settings, waits=True, variant=variant))
        self.tried += 1
        return tracing.traced(writer, self.log, fault)

    def points(self) -> list[tuple[int, Call]]:
        """The calls of the write when nothing fails, each with its number among those of its name."""
        done, calls = self.under("")
        assert done == 1
        return [(number, call) for number, call in tracing.numbered(calls) if not call.reports]

    def found(self, variant: str = "") -> State:
        """What is there afterwards."""
        with broken.in_force(variant):
            return aftermath.look(self.beginning.root).state

    def verify(self, done: int, what: str) -> None:
        """Old or new, never neither; acknowledged means new; whole."""
        try:
            found = self.found()
            assert found in allowed(FIRST, [self.step], done)
            if self.tried % LOOK_CLOSELY_EVERY == 0:
                aftermath.assert_whole(self.beginning.root, found)
        except AssertionError as error:
            error.add_note(what)
            raise


def some(points: Sequence[tuple[int, Call]], name: str, every: int) -> list[tuple[int, Call]]:
    """Every so many-th of the calls that can change the disk, others for each write, and the first of each name."""
    changing = [(number, call) for number, call in points if call.changes]
    begin = [*WRITES].index(name) % every
    kept = {*range(begin, len(changing), every), *(at for at, (number, _) in enumerate(changing) if number == 1)}
    return [changing[at] for at in sorted(kept)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    """Makes the bench for a write, or skips the test where strace cannot be used."""
    tracing.require()
    with fast_folder(tmp_path) as folder, Nursery() as nursery:
        yield lambda name: Bench(WRITES[name], Beginning(folder), nursery, tmp_path / "calls")


@pytest.mark.parametrize("name", WRITES)
def test_22_killed_at_every_system_call(
    bench: Callable[[str], Bench], name: str, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """SIGKILL at each call of a write that can change the disk: old or new, acknowledged means new (faults row 22)."""
    made = bench(name)
    for number, call in some(made.points(), name, scale(2, 1)):
        done, _ = made.under(f"{call.name}:signal=SIGKILL:when={number}")
        made.verify(done, f"killed at {call.name} number {number}")
    figures(f"kill -9 at every system call of {name}", points=made.tried, lost=0, torn=0)


@pytest.mark.parametrize("name", WRITES)
def test_24_25_26_every_system_call_fails(
    bench: Callable[[str], Bench], name: str, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """Each call refused: an error and nothing changed, or done; never acknowledged and lost (faults rows 24-26)."""
    made = bench(name)
    points = made.points()
    every = scale(READING_CALLS_EVERY, 1)
    reading = [(number, call) for number, call in points if not call.changes and number % every == 0]
    for number, call in some(points, name, scale(2, 1)) + reading:
        reasons = FAILURES.get(call.name, ())
        for reason in reasons[: scale(1, len(reasons))]:
            done, calls = made.under(f"{call.name}:error={reason}:when={number}")
            made.verify(done, f"{reason} from {call.name} number {number}")
            assert retried(calls) == []
    figures(f"every system call of {name} refused", points=made.tried, lost=0, torn=0)


@pytest.mark.parametrize("name", ["write", "pwrite64"])
def test_26_a_short_write_is_completed_or_refused(bench: Callable[[str], Bench], name: str) -> None:
    """The system says that it took fewer bytes, and lies about those: never acknowledged and torn (faults row 26)."""
    made = bench("update")
    for number, call in made.points():
        if call.name == name:
            done, _ = made.under(f"{name}:retval={SHORT}:when={number}")
            made.verify(done, f"short {name} number {number}")


def retried(calls: Sequence[Call]) -> list[str]:
    """Files that were made durable again through the descriptor whose first attempt failed (faults row 24).

    What is in the user's cache need not be durable: it is made again.
    """
    failed: set[str] = set()
    again = []
    for call in (call for call in calls if "/cache/memfs/" not in call.target):
        if call.name == "close":
            failed.discard(call.target)
        elif call.name in ("fsync", "fdatasync"):
            if call.target in failed:
                again.append(call.target)
            elif call.result.startswith("-1"):
                failed.add(call.target)
    return again


def test_24_a_failed_fsync_that_is_not_believed_is_caught(bench: Callable[[str], Bench]) -> None:
    """A variant that swallows the disk's errors acknowledges what is not durable."""
    made = bench("update")
    for number, call in made.points():
        if call.name in ("fsync", "fdatasync"):
            done, calls = made.under(f"{call.name}:error=EIO:when={number}", "errors swallowed")
            if done and any(each.injected for each in calls):
                return
    pytest.fail("no failed fsync was acknowledged")


def test_22_a_file_written_in_place_is_caught(bench: Callable[[str], Bench]) -> None:
    """A variant without temporary files is caught by the same kills."""
    made = bench("update")
    for number, call in made.points():
        if call.name == "write":
            made.under(f"write:signal=SIGKILL:when={number}", "written in place")
            try:
                if made.found("written in place") not in [FIRST, after(FIRST, [made.step])]:
                    return
            except ContentError:
                return
    pytest.fail("no kill noticed a file that is written in place")
