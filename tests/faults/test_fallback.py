"""A disk that takes no writes, and the secondary location that does meanwhile (S17, faults rows 24 to 27)."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kit.copies import copy_workspace
from kit.faults import Fault, Stopped
from kit.stops import far_apart
from memfs import MemoryItem
from memfs.errors import StorageIO, StorageUnavailable
from memfs.fs import io
from memfs.fs.journal import Operation
from memfs.model import Problem, Query
from memfs.store.write import FileWriter
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults
Git = Callable[..., str]
CHANGES = frozenset({"write", "fsync", "fdatasync", "sync", "mkdir", "link", "rename", "truncate", "unlink"})


class Sick:
    """A hook: the workspace's disk refuses every change, the secondary location's does not.

    ``then`` is asked as well: it may stop the process.
    """

    def __init__(self, spared: Path, number: int = errno.ENOSPC, then: Fault | None = None) -> None:
        self.spared = str(spared)
        self.number = number
        self.then = then

    def __call__(self, name: str, path: str) -> None:
        """The hook itself."""
        if self.then is not None:
            self.then(name, path)
        if name in CHANGES and not path.startswith(self.spared):
            raise OSError(self.number, os.strerror(self.number))


@contextlib.contextmanager
def hooked(hook: io.Hook) -> Iterator[None]:
    """Run a block with a hook in place."""
    before = io.set_hook(hook)
    try:
        yield
    finally:
        io.set_hook(before)


class World:
    """A workspace with a secondary location, opened as often as asked for."""

    def __init__(self, root: Path, secondary: Path) -> None:
        self.root, self.secondary = root, secondary
        self.open_now: list[Workspace] = []

    def open(self, **more: object) -> Workspace:
        """Open it as another process would."""
        settings = {
            "index.engine": "memory",
            "history.commit": "manual",
            "history.interval_seconds": 60,
            "storage.secondary": str(self.secondary),
        }
        create = not (self.root / "ContextMemory").exists()
        workspace = open_workspace(self.root, create=create, watch=False, settings={**settings, **more})
        self.open_now.append(workspace)
        return workspace

    def abandon(self) -> None:
        """Release what the death of their processes would release."""
        for workspace in self.open_now:
            for part in (workspace.parts.journal, workspace.parts.tree, workspace.parts.secondary):
                if part is not None:
                    part.close()
        self.open_now.clear()

    def held(self) -> int:
        """How many operations the secondary location has."""
        workspace = self.open()
        found = workspace.store.storage().waiting
        workspace.close()
        self.open_now.remove(workspace)
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """See ``World``."""
    made = World(tmp_path / "workspace", tmp_path / "secondary")
    yield made
    for workspace in made.open_now:
        workspace.close()


def item(name: str, text: str) -> MemoryItem:
    """An item of that id."""
    return MemoryItem(text, "knowledge", id=name)


def contents(workspace: Workspace) -> dict[str, str]:
    """What recall and listing find, by id."""
    return {found.id: found.content for found in workspace.store.select(Query())}


def commits_of(git: Git, root: Path, name: str) -> int:
    """In how many commits an item was changed."""
    return len(git(root, "log", "--format=%h", "--", f"ContextMemory/memories/knowledge/*/{name}.yaml").split())


# -- a write goes there, everybody sees it, it comes home ---------------------------------------------------------
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
def test_27_a_failing_disk_sends_writes_elsewhere_until_it_is_well(world: World, git: Git, number: int) -> None:
    """Put, update and delete are acknowledged as ``fallback``, seen at once by every reader, and come home once, in
    order (S17, faults row 27)."""
    mine, other = world.open(), world.open()
    mine.store.put(item("kept", "first"))
    mine.store.put(item("gone", "first"))
    mine.store.flush()
    with hooked(Sick(world.secondary, number)):
        assert mine.store.put(item("made", "new words")).durability == "fallback"
        assert mine.store.put(item("kept", "second")).durability == "fallback"
        assert other.store.put(item("kept", "third")).durability == "fallback"
        other.store.delete("gone")
        for workspace in (mine, other, world.open()):
            assert contents(workspace) == {"made": "new words", "kept": "third"}
            assert [hit.item.id for hit in workspace.recaller.search(Query(text="words")).hits] == ["made"]
            assert workspace.store.get("gone") is None
            assert workspace.store.find("mad").content == "new words"
        assert mine.store.storage().state == "fallback"
    assert mine.store.flush().reason == ""
    assert mine.store.storage().state == "ok"
    for workspace in (mine, other, world.open()):
        assert contents(workspace) == {"made": "new words", "kept": "third"}
    assert [commits_of(git, world.root, name) for name in ("made", "kept", "gone")] == [1, 3, 2]
    assert git(world.root, "status", "--porcelain") == ""
    assert world.open().store.put(item("kept", "fourth")).durability == "file"


def test_27_a_batch_goes_there_whole(world: World, git: Git) -> None:
    """A batch that cannot be written at home is one operation there and one commit here (S17)."""
    workspace = world.open()
    with hooked(Sick(world.secondary)), workspace.store.batch("Both") as writes:
        writes.put(item("a", "one"))
        writes.put(item("b", "two"))
    assert workspace.store.storage().waiting == 1
    workspace.store.flush()
    assert git(world.root, "log", "-1", "--format=%s", "--stat").count(".yaml") == 2


def test_27_the_next_write_brings_home_what_waits(world: World) -> None:
    """No command is needed: the next write, the next look at all files, or opening is enough (S17)."""
    acts: list[Callable[[Workspace], object]] = [
        lambda workspace: workspace.store.put(item("next", "x")),
        lambda workspace: workspace.store.refresh(),
        lambda workspace: world.open(),
        lambda workspace: workspace.close(),
    ]
    for number, act in enumerate(acts):
        workspace = world.open()
        with hooked(Sick(world.secondary)):
            workspace.store.put(item(f"one-{number}", "text"))
        act(workspace)
        found = next(world.root.glob(f"ContextMemory/memories/knowledge/*/one-{number}.yaml"))
        assert "text" in found.read_text()


def test_27_a_resident_process_brings_home_by_itself(world: World) -> None:
    """Under every commit policy a background thread keeps trying (S17)."""
    for policy in ("interval", "session"):
        workspace = world.open(**{"history.commit": policy, "history.interval_seconds": 0.05})
        with hooked(Sick(world.secondary)):
            assert workspace.store.put(item(f"of-{policy}", "text")).durability == "fallback"
        waiting = threading.Event()
        for _ in range(600):
            if list(world.root.glob(f"ContextMemory/memories/knowledge/*/of-{policy}.yaml")):
                break
            waiting.wait(0.05)
        assert list(world.root.glob(f"ContextMemory/memories/knowledge/*/of-{policy}.yaml"))


def test_27_writes_of_another_branch_come_home_into_its_history(world: World, git: Git) -> None:
    """What was written while another branch was checked out is committed there and stays out of this tree (S17)."""
    workspace = world.open(**{"history.commit": "session"})
    with hooked(Sick(world.secondary)):
        workspace.store.put(item("made", "on main"))
    git(world.root, "switch", "-q", "-c", "side")
    assert workspace.store.flush().reason == ""
    assert commits_of(git, world.root, "made") == 0
    assert list(world.root.glob("ContextMemory/memories/knowledge/*/made.yaml")) == []
    assert "on main" in git(world.root, "grep", "on main", "main")


def test_27_a_persons_change_meanwhile_is_kept(world: World) -> None:
    """A file that a person changed while ours waited elsewhere stays theirs, at once and after; ours is recoverable
    (S17)."""
    workspace = world.open()
    path = world.root / workspace.store.put(item("kept", "first")).path
    workspace.store.flush()
    with hooked(Sick(world.secondary)):
        workspace.store.put(item("kept", "ours"))
        path.write_text(path.read_text().replace("first", "theirs"))
        assert contents(workspace) == {"kept": "theirs"}
    workspace.store.flush(adopt=True)
    assert "theirs" in path.read_text()
    assert contents(world.open()) == {"kept": "theirs"}
    [kept] = workspace.recovered.list()
    workspace.recovered.restore(kept.name)
    assert contents(workspace) == {"kept": "ours"}


def test_27_over_a_persons_change_by_name(world: World, git: Git) -> None:
    """A writer that has read the person's version may replace it, also when that goes elsewhere; all versions become
    history (S17)."""
    workspace = world.open()
    path = world.root / workspace.store.put(item("kept", "first")).path
    workspace.store.flush()
    with hooked(Sick(world.secondary)):
        workspace.store.put(item("kept", "ours"))
        path.write_text(path.read_text().replace("first", "theirs"))
        workspace.store.refresh()
        read = workspace.store.get("kept")
        assert read is not None
        stored = workspace.store.put(read.replace(content="both"), expected=read.sha256)
        assert stored.durability == "fallback"
        assert contents(world.open()) == {"kept": "both"}
    assert workspace.store.flush().reason == ""
    assert "both" in path.read_text()
    history = git(world.root, "log", "-p", "--", path.relative_to(world.root).as_posix())
    assert all(f"+content: {version}" in history for version in ("first", "ours", "theirs", "both"))


def test_27_one_file_that_cannot_be_written_holds_up_no_other(world: World) -> None:
    """While one file stays immutable, what concerns other files comes home all the same (faults row 26)."""
    workspace = world.open()

    def refuse(name: str, path: str) -> None:
        if name in CHANGES and path.endswith("/stuck.yaml"):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    with hooked(refuse):
        assert workspace.store.put(item("stuck", "a")).durability == "fallback"
        assert workspace.store.put(item("stuck", "b")).durability == "fallback"
        assert workspace.store.put(item("free", "c")).durability == "file"
        assert contents(workspace) == {"stuck": "b", "free": "c"}
    workspace.store.flush()
    assert workspace.store.storage().waiting == 0
    assert contents(world.open()) == {"stuck": "b", "free": "c"}


def test_27_both_places_full_names_both(world: World) -> None:
    """Where neither place takes a write, the error names both with their reasons, and nothing is half-written (faults
    row 27)."""
    workspace = world.open()
    workspace.store.put(item("kept", "first"))
    with hooked(Sick(Path("/nowhere"))), pytest.raises(StorageUnavailable) as caught:
        workspace.store.put(item("kept", "second"))
    assert str(world.root) in str(caught.value)
    assert str(world.secondary) in str(caught.value)
    assert str(caught.value).count("No space left") == 2
    assert caught.value.hint
    assert contents(workspace) == contents(world.open()) == {"kept": "first"}
    assert workspace.store.put(item("kept", "second")).durability == "file"


# -- stopped and killed -------------------------------------------------------------------------------------------
def test_27_stopped_at_any_operation_of_a_write_elsewhere(world: World, scale: Callable[[int, int], int]) -> None:
    """A process stopped at any point of a write that goes elsewhere leaves the old state or the new one, for every
    reader (faults rows 21 and 27)."""
    world.open().store.put(item("kept", "old"))
    world.abandon()
    with hooked(Sick(world.secondary, then=(counted := Fault()))):
        world.open().store.put(item("kept", "counted"))
    world.abandon()
    assert len(counted.seen) > 5
    for number in range(1, len(counted.seen) + 1, scale(9, 1)):
        before = contents(world.open())["kept"]
        acknowledged = False
        with hooked(Sick(world.secondary, then=Fault(at=number))), contextlib.suppress(Stopped):
            world.open().store.put(item("kept", f"new {number}"))
            acknowledged = True
        world.abandon()
        with hooked(Sick(world.secondary)):
            seen = contents(world.open())["kept"]
        world.abandon()
        assert seen in ({f"new {number}"} if acknowledged else {before, f"new {number}"})
        workspace = world.open()
        workspace.store.flush()
        assert contents(workspace)["kept"] == seen
        assert workspace.store.storage().waiting == 0
        world.abandon()


def test_27_a_write_taken_back_leaves_no_file_that_passes_for_a_persons(world: World) -> None:
    """What a write that failed left under a temporary name is removed before its record is (faults rows 21 and 27)."""
    workspace = world.open()
    path = world.root / workspace.store.put(item("kept", "first")).path
    refused: list[str] = []
    exchanged = False

    def refuse_twice(name: str, place: str) -> None:
        nonlocal exchanged
        exchanged = exchanged or name == "exchange"
        if exchanged and name == "unlink" and len(refused) < 2:
            refused.append(place)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with hooked(refuse_twice):
        assert workspace.store.put(item("kept", "second")).durability == "fallback"
    assert len(refused) == 2
    assert os.listdir(path.parent) == [path.name]
    assert contents(workspace) == {"kept": "second"}


class Homeward:
    """A workspace with three writes that wait elsewhere, quick to set up again at the same place."""

    def __init__(self, folder: Path, git: Git) -> None:
        self.world = World(folder / "now" / "workspace", folder / "now" / "secondary")
        self._folder = folder
        self._git = git
        workspace = self.world.open()
        workspace.store.put(item("kept", "one"))
        workspace.store.flush()
        with hooked(Sick(self.world.secondary)):
            workspace.store.put(item("kept", "two"))
            workspace.store.put(item("made", "two"))
            workspace.store.put(item("kept", "three"))
            self.world.abandon()
        copy_workspace(folder / "now", folder / "first")

    def again(self) -> Workspace:
        """The workspace as it first was; nothing has come home yet."""
        shutil.rmtree(self._folder / "now")
        copy_workspace(self._folder / "first", self._folder / "now")
        with hooked(Sick(self.world.secondary)):
            return self.world.open()

    def operations(self) -> int:
        """How many disk operations the way home takes."""
        workspace = self.again()
        with hooked(counted := Fault()):
            workspace.store.refresh()
        self.world.abandon()
        return len(counted.seen)

    def losses(self, fault: Fault) -> list[str]:
        """What is wrong after a fault on the way home, and another process."""
        workspace = self.again()
        with hooked(fault), contextlib.suppress(Stopped, StorageIO):
            workspace.store.refresh()
        self.world.abandon()
        fresh = self.world.open()
        wrong = []
        if contents(fresh) != {"kept": "three", "made": "two"}:
            wrong.append(f"before: {contents(fresh)}")
        if fresh.store.flush().waiting or fresh.store.storage().waiting:
            wrong.append("something waits")
        if contents(fresh) != {"kept": "three", "made": "two"}:
            wrong.append(f"after: {contents(fresh)}")
        if fresh.recovered.list():
            wrong.append(f"set aside: {fresh.recovered.list()}")
        changed = self._git(self.world.root, "log", "--name-only", "--format=", "--", "ContextMemory/memories").split()
        if sorted(Path(path).stem for path in changed) != ["kept", "kept", "kept", "made"]:
            wrong.append(f"history: {changed}")
        self.world.abandon()
        return wrong


@pytest.fixture
def homeward(git: Git) -> Iterator[Homeward]:
    """See ``Homeward``; in memory where there is such a place, as no power is cut here."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="memfs-", dir=memory) as folder:
        yield Homeward(Path(folder), git)


@pytest.mark.parametrize("error", [None, errno.EIO])
def test_27_stopped_or_failed_at_any_operation_on_the_way_home(
    homeward: Homeward, error: int | None, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """A process stopped, or a disk failing, at any point of the way home loses nothing and doubles nothing (faults row
    27)."""
    total = homeward.operations()
    assert total > 20
    step = scale(29, 1) if error else scale(19, 1)
    for number in range(1, total + 1, step):
        assert homeward.losses(Fault(at=number, error=error)) == [], number
    figures(
        f"way home from the secondary location, {'failed' if error else 'stopped'}",
        points=len(range(1, total + 1, step)),
        lost=0,
    )


def _forgets_first(patch: pytest.MonkeyPatch) -> None:
    """It is dropped there before it is written here."""
    real = FileWriter._bring_in_order

    def bring(self: FileWriter, operations: Sequence[Operation]) -> list[Problem]:
        secondary = self._parts.secondary
        assert secondary is not None
        secondary.drop([operation.id for operation in operations])
        return real(self, operations)

    patch.setattr(FileWriter, "_bring_in_order", bring)


def _loses_the_id(patch: pytest.MonkeyPatch) -> None:
    """It gets another id on the way."""
    real = FileWriter._bring_in_order

    def bring(self: FileWriter, operations: Sequence[Operation]) -> list[Problem]:
        secondary = self._parts.secondary
        assert secondary is not None
        found = real(self, [dataclasses.replace(operation, id=secrets.token_hex(8)) for operation in operations])
        secondary.drop([operation.id for operation in operations])
        return found

    patch.setattr(FileWriter, "_bring_in_order", bring)


@pytest.mark.parametrize("broken", [_forgets_first, _loses_the_id])
def test_27_the_check_of_the_way_home_catches_a_broken_one(
    homeward: Homeward, broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it dropped too early, or known under another name, the test above would fail (issue item 2)."""
    broken(monkeypatch)
    assert any(homeward.losses(Fault(at=number)) for number in far_apart(homeward.operations()))


def test_27_what_could_not_be_taken_back_at_home_happens_once(world: World, git: Git) -> None:
    """Where the failing disk kept the record of a write that then went elsewhere, both are one operation (faults rows
    24 and 27)."""
    workspace = world.open()
    workspace.store.put(item("kept", "one"))
    workspace.store.flush()
    journal = str(workspace.parts.journal.path)
    appended = False

    def after_the_record(name: str, path: str) -> None:
        nonlocal appended
        sick = appended and not path.startswith(str(world.secondary))
        appended = appended or (name == "fdatasync" and path == journal)
        if sick and name in CHANGES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with hooked(after_the_record):
        assert workspace.store.put(item("kept", "two")).durability == "fallback"
        assert workspace.store.put(item("kept", "three")).durability == "fallback"
    world.abandon()
    fresh = world.open()
    fresh.store.flush()
    assert contents(fresh) == {"kept": "three"}
    assert commits_of(git, world.root, "kept") == 3
    assert fresh.recovered.list() == []


def test_27_committed_before_it_was_forgotten_elsewhere(world: World, git: Git) -> None:
    """What is home and committed does not come home again where the secondary location could not forget it (faults row
    27)."""
    workspace = world.open()
    with hooked(Sick(world.secondary)):
        workspace.store.put(item("kept", "one"))
    spared = Sick(world.root, errno.EROFS)

    def only_there(name: str, path: str) -> None:
        if name in CHANGES and path.startswith(str(world.secondary)):
            spared(name, path)

    with hooked(only_there):
        assert workspace.store.flush().reason == ""
        assert contents(workspace) == {"kept": "one"}
        assert workspace.store.put(item("kept", "two")).durability == "file"
        assert workspace.store.flush().reason == ""
    world.abandon()
    fresh = world.open()
    assert contents(fresh) == {"kept": "two"}
    assert fresh.store.flush().commits == ()
    assert commits_of(git, world.root, "kept") == 2
    assert fresh.recovered.list() == []
    assert fresh.store.storage().waiting == 0


WRITER = """
import errno, os, random, sys
sys.path.insert(0, sys.argv[4])
from memfs import MemoryItem
from memfs.fs import io
from memfs.errors import Conflict, MemfsError
from memfs.workspace import open_workspace
root, secondary, name = sys.argv[1:4]
number = int(sys.argv[5])
changes = {"write", "fsync", "fdatasync", "mkdir", "link", "rename", "truncate", "unlink"}
def hook(operation, path):
    if operation in changes and not path.startswith(secondary) and os.path.exists(secondary + ".sick"):
        raise OSError(errno.ENOSPC, "full")
io.set_hook(hook)
settings = {"index.engine": "memory", "history.commit": "each", "storage.secondary": secondary}
with open_workspace(root, watch=False, settings=settings) as workspace:
    while True:
        number += 1
        key = f"{name}-{number % 3}"
        text = f"{name} {number}"
        stored = workspace.store.put(MemoryItem(text, "knowledge", id=key))
        os.write(1, f"{key}\\t{text}\\t{stored.durability}\\n".encode())
"""


def test_27_processes_killed_while_the_disk_comes_and_goes(
    world: World, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """Two writers at once, killed again and again, while the disk fills up and recovers: the last acknowledged version
    of each item, or one that was begun after it, is there (S17, faults rows 21 and 27)."""
    world.open().close()
    world.open_now.clear()
    sick = Path(f"{world.secondary}.sick")
    rng = random.Random(27)
    last: dict[str, str] = {}
    durabilities: set[str] = set()
    package = str(Path(__file__).parents[2])
    rounds, acknowledged = scale(3, 300), 0
    for number in range(rounds):
        words = [sys.executable, "-c", WRITER, str(world.root), str(world.secondary)]
        writers = [
            subprocess.Popen(
                [*words, name, package, str(number * 1_000_000)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for name in "ab"
        ]
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(rng.randint(1, 4)):
                acknowledged += _note(writer.stdout.readline().decode(), last, durabilities)
                sick.unlink() if sick.exists() else sick.touch()
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            out, err = writer.communicate()
            assert err.decode() == ""
            for line in out.decode().splitlines(keepends=True):
                acknowledged += _note(line, last, durabilities)
        with hooked(Sick(world.secondary)) if sick.exists() else contextlib.nullcontext():
            found = contents(world.open())
        world.abandon()
        for key, text in last.items():
            assert int(found[key].split()[1]) >= int(text.split()[1]), (key, text, found[key])
        last = {key: found[key] for key in last}
    sick.unlink(missing_ok=True)
    assert durabilities == {"file", "fallback"}
    workspace = world.open()
    assert workspace.store.flush().reason == ""
    assert workspace.store.storage().waiting == 0
    assert {key: contents(workspace)[key] for key in last} == last
    assert workspace.recovered.list() == []
    figures("kill -9, disk coming and going", points=2 * rounds, acknowledged=acknowledged, lost=0)


def _note(line: str, last: dict[str, str], durabilities: set[str]) -> int:
    if not line.endswith("\n"):
        return 0
    key, text, durability = line.rstrip("\n").split("\t")
    last[key] = text
    durabilities.add(durability)
    return 1
