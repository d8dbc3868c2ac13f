"""Where the secondary location may be, and what happens when it is damaged or gone (S17)."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memfs import MemoryItem
from memfs.errors import SettingInvalid, StorageIO, StorageUnavailable
from memfs.fs import io
from memfs.model import Query
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
CHANGES = frozenset({"write", "fsync", "fdatasync", "sync", "mkdir", "link", "rename", "truncate", "unlink"})


@contextmanager
def full(spared: Path) -> Iterator[None]:
    """While the block runs, nothing can be changed but below one folder."""

    def hook(name: str, path: str) -> None:
        if name in CHANGES and not path.startswith(str(spared)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = io.set_hook(hook)
    try:
        yield
    finally:
        io.set_hook(before)


@pytest.fixture
def secondary_dir(tmp_path: Path) -> Path:
    """A folder for the secondary location, private as it must be."""
    folder = tmp_path / "secondary"
    folder.mkdir(0o700)
    return folder


def item(name: str, text: str) -> MemoryItem:
    """An item of that id."""
    return MemoryItem(text, "knowledge", id=name)


def contents(workspace: Workspace) -> dict[str, str]:
    """What listing finds, by id."""
    return {found.id: found.content for found in workspace.store.select(Query(limit=100))}


def codes(workspace: Workspace) -> list[str]:
    """The codes of what is wrong."""
    return [problem.code for problem in workspace.store.problems()]


# -- where --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "place", ["secondary", "./secondary", "{root}/secondary", "{root}/.git/secondary", "{root}", "/tmp/\0"]
)
def test_a_place_that_will_not_do_is_refused(opened: Opened, place: str) -> None:
    """A relative path, or one inside the workspace or its repository, is an error of the setting (S17)."""
    root = opened().root
    with pytest.raises(SettingInvalid, match=r"storage\.secondary"):
        opened(root, storage__secondary=place.format(root=root))


def test_a_link_into_the_workspace_is_refused(opened: Opened, tmp_path: Path) -> None:
    """The real place counts (S17)."""
    root = opened().root
    (tmp_path / "link").symlink_to(root)
    with pytest.raises(SettingInvalid, match="is inside"):
        opened(root, storage__secondary=str(tmp_path / "link" / "secondary"))


def test_a_place_that_others_can_write_is_not_used(opened: Opened, secondary_dir: Path) -> None:
    """In a folder where others could swap ours for theirs nothing is kept; the error says so (S17)."""
    secondary_dir.chmod(0o777)
    workspace = opened(storage__secondary=str(secondary_dir))
    assert "others could write" in workspace.store.storage().secondary_reason
    with full(secondary_dir), pytest.raises(StorageUnavailable, match="others could write"):
        workspace.store.put(item("a", "text"))
    assert workspace.store.put(item("a", "text")).durability == "file"


def test_its_folder_is_for_this_user_alone(opened: Opened, secondary_dir: Path) -> None:
    """What is there can be read by nobody else (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with full(secondary_dir):
        workspace.store.put(item("a", "text"))
    [folder] = secondary_dir.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "journal").stat().st_mode & 0o077 == 0
    assert str(workspace.root) in (folder / "README").read_text()


def test_a_planted_folder_is_not_used(opened: Opened, secondary_dir: Path, tmp_path: Path) -> None:
    """A link in the place of our folder is never followed (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    (tmp_path / "elsewhere").mkdir()
    secondary = workspace.parts.secondary
    assert secondary is not None
    with full(secondary_dir):
        workspace.store.put(item("a", "text"))
        secondary.folder.rename(tmp_path / "elsewhere" / "theirs")
        secondary.folder.symlink_to(tmp_path / "elsewhere" / "theirs")
        before = _files(tmp_path / "elsewhere")
        with pytest.raises(StorageUnavailable):
            workspace.store.put(item("a", "other text"))
        again = opened(workspace.root, storage__secondary=str(secondary_dir))
    assert contents(again) == {}
    assert "StorageReadOnly" in codes(again)
    assert again.store.flush().commits == ()
    assert _files(tmp_path / "elsewhere") == before


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_disk_is_warned_about(opened: Opened, secondary_dir: Path) -> None:
    """A place on the workspace's own disk serves, with a warning (S17)."""
    assert codes(opened(storage__secondary=str(secondary_dir))) == ["SameDisk"]


# -- damaged or gone ----------------------------------------------------------------------------------------------
def test_damage_in_its_middle_is_reported_and_kept(opened: Opened, secondary_dir: Path) -> None:
    """What can be read comes home; the damaged file is kept and reported (S17, S18)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with full(secondary_dir):
        for name in ("first", "second", "third"):
            workspace.store.put(item(name, f"text of the {name}"))
        workspace.close()
    [journal] = secondary_dir.glob("*/journal")
    journal.write_bytes(journal.read_bytes().replace(b"text of the second", b"text of tXe second"))
    again = opened(workspace.root, storage__secondary=str(secondary_dir))
    assert contents(again) == {"first": "text of the first", "third": "text of the third"}
    assert again.store.storage().waiting == 0
    assert "JournalDamaged" in codes(again)
    [kept] = secondary_dir.glob("*/journal.damaged-*")
    assert b"text of tXe second" in kept.read_bytes()
    assert "JournalDamaged" in codes(opened(workspace.root, storage__secondary=str(secondary_dir)))


def test_a_journal_that_cannot_be_read_keeps_nobody_from_working(opened: Opened, secondary_dir: Path) -> None:
    """With an unreadable second journal everything goes on at home, nothing overwrites it, and the problem is reported
    (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with full(secondary_dir):
        workspace.store.put(item("first", "text"))
        workspace.close()
    [journal] = secondary_dir.glob("*/journal")
    journal.write_bytes(b"garbage\n" + journal.read_bytes())
    before = journal.read_bytes()
    again = opened(workspace.root, storage__secondary=str(secondary_dir))
    assert contents(again) == {}
    assert "JournalDamaged" in codes(again)
    assert again.store.put(item("second", "text")).durability == "file"
    with full(secondary_dir), pytest.raises(StorageUnavailable, match="no header"):
        again.store.put(item("third", "text"))
    assert journal.read_bytes() == before


def test_a_place_that_disappears_is_missed(opened: Opened, secondary_dir: Path) -> None:
    """When the other disk goes away with writes on it, that is a problem; when it is back, they come home (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with full(secondary_dir):
        workspace.store.put(item("first", "text"))
        away = secondary_dir.rename(secondary_dir.with_name("away"))
        assert contents(workspace) == {}
        assert "SecondaryAway" in codes(workspace)
    away.rename(secondary_dir)
    workspace.store.refresh()
    assert contents(workspace) == {"first": "text"}
    assert "SecondaryAway" not in codes(workspace)


def test_a_second_lock_that_fails_costs_nothing(opened: Opened, secondary_dir: Path) -> None:
    """While the workspace's own disk is well, trouble at the other one stops no write (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))

    def refuse(name: str, path: str) -> None:
        del name
        if path.startswith(str(secondary_dir)):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = io.set_hook(refuse)
    try:
        assert workspace.store.put(item("first", "text")).durability == "file"
    finally:
        io.set_hook(before)


def test_without_its_own_lock_a_write_still_lands(opened: Opened, secondary_dir: Path) -> None:
    """Where not even the workspace's lock can be opened, the other place's lock keeps writers apart (S17)."""
    one = opened(storage__secondary=str(secondary_dir))
    two = opened(one.root, storage__secondary=str(secondary_dir))

    def refuse(name: str, path: str) -> None:
        if name == "open" and path == str(one.parts.lock.path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = io.set_hook(refuse)
    try:
        assert one.store.put(item("first", "text")).durability == "fallback"
    finally:
        io.set_hook(before)
    found = two.store.get("first")
    assert found is not None
    two.store.put(found.replace(content="changed"), expected=found.sha256)
    assert contents(one) == contents(two) == {"first": "changed"}


def test_without_a_secondary_location_the_error_is_the_disks_own(opened: Opened) -> None:
    """Nothing is different for those who configured none (S17)."""
    workspace = opened()
    with full(Path("/nowhere")), pytest.raises(StorageIO) as caught:
        workspace.store.put(item("first", "text"))
    assert not isinstance(caught.value, StorageUnavailable)
    assert contents(workspace) == {}


HOMEWARD = """
import sys
from memfs.workspace import open_workspace
settings = {"index.engine": "memory", "history.commit": "manual", "storage.secondary": sys.argv[2]}
sys.stdin.readline()
with open_workspace(sys.argv[1], watch=False, settings=settings) as workspace:
    assert workspace.store.flush().reason == ""
"""


def test_two_processes_bring_home_at_once(
    opened: Opened, secondary_dir: Path, git: Callable[..., str], forked: Path
) -> None:
    """However many processes find that the disk is well again, each write comes home once (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with full(secondary_dir):
        for number in range(30):
            workspace.store.put(item(f"item-{number % 10}", f"text {number}"))
        workspace.parts.journal.close()
    words = [str(forked), "-c", HOMEWARD, str(workspace.root), str(secondary_dir)]
    processes = [subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [process.communicate()[1].decode() for process in processes] == [""] * 4
    assert contents(workspace) == {f"item-{number}": f"text {20 + number}" for number in range(10)}
    added = git(workspace.root, "log", "-p", "--format=", "--", "ContextMemory/memories")
    assert sorted(line for line in added.splitlines() if line.startswith("+content: text")) == sorted(
        f"+content: text {number}" for number in range(30)
    )
    assert workspace.store.storage().waiting == 0


def test_a_disk_that_is_not_mounted_is_not_written_in_its_place(opened: Opened, tmp_path: Path) -> None:
    """Where the folder above the secondary location is missing, nothing is made there (S17)."""
    workspace = opened(storage__secondary=str(tmp_path / "mnt" / "secondary"))
    assert workspace.store.put(item("first", "text")).durability == "file"
    assert "is not there" in workspace.store.storage().secondary_reason
    assert not (tmp_path / "mnt").exists()


def test_a_thousand_writes_there_stay_quick(opened: Opened, secondary_dir: Path) -> None:
    """What readers see is extended by each write, not made again (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    secondary = workspace.parts.secondary
    assert secondary is not None
    with full(secondary_dir):
        workspace.store.put(item("first", "text"))
        first = secondary.held()
        rows = {path: id(held) for path, held in first.items()}
        for number in range(20):
            workspace.store.put(item(f"item-{number}", "text"))
        assert {path: id(held) for path, held in secondary.held().items() if path in rows} == rows
        assert len(secondary.held()) == 21


# -- out of reach -------------------------------------------------------------------------------------------------
@contextmanager
def failing(names: frozenset[str], below: Path, number: int) -> Iterator[None]:
    """While the block runs, these calls fail below a folder."""

    def hook(name: str, path: str) -> None:
        if name in names and Path(path).is_relative_to(below):
            raise OSError(number, os.strerror(number))

    before = io.set_hook(hook)
    try:
        yield
    finally:
        io.set_hook(before)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_journal_that_cannot_be_looked_at_spills(opened: Opened, secondary_dir: Path, number: int) -> None:
    """Where the state folder cannot be read, the secondary location takes the write, and no bare error comes (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with failing(CHANGES | {"stat", "open", "read"}, workspace.repository.state, number):
        stored = workspace.store.put(item("first", "text"))
        assert stored.durability == "fallback"
        assert workspace.store.flush().reason
        with pytest.raises(StorageIO):
            workspace.store.pending()
    workspace.store.refresh()
    assert contents(workspace) == {"first": "text"}


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_an_unreachable_place_stops_no_write_at_home(opened: Opened, secondary_dir: Path, number: int) -> None:
    """A secondary location that nobody can enter is reported, and the workspace goes on taking writes (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    with failing(frozenset({"stat", "open", "mkdir"}), secondary_dir, number):
        assert workspace.store.put(item("first", "text")).durability == "file"
        assert workspace.parts.secondary is not None
        assert workspace.parts.secondary.failure is not None
        assert workspace.store.storage().secondary_reason


def test_what_came_home_is_not_replayed_after_a_remount(
    opened: Opened, secondary_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that came home stays known while its disk is away, so that a deleted memory does not come back (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir), history__commit="manual")
    with full(secondary_dir):
        workspace.store.put(item("first", "text"))
    secondary = workspace.parts.secondary
    assert secondary is not None
    with monkeypatch.context() as patch:
        patch.setattr(secondary, "drop", lambda names: None)
        workspace.store.refresh()
    away = secondary_dir.rename(secondary_dir.with_name("away"))
    workspace.store.flush()
    workspace.store.delete("first")
    workspace.store.flush()
    plain = opened(workspace.root, history__commit="manual")
    plain.store.put(item("second", "other"))
    plain.store.flush()
    away.rename(secondary_dir)
    workspace.store.refresh()
    assert contents(workspace) == {"second": "other"}


@pytest.mark.parametrize("named", [True, False])
def test_writes_that_are_out_of_reach_are_reported(opened: Opened, secondary_dir: Path, named: bool) -> None:
    """A process that cannot look into the place, or has no setting, says what waits there: nothing is silent (S17)."""
    first = opened(storage__secondary=str(secondary_dir))
    first.store.put(item("kept", "at home"))
    with full_but_for(secondary_dir, first):
        first.store.put(item("first", "text"))
    away = secondary_dir.rename(secondary_dir.with_name("away"))
    later = opened(first.root, **({"storage__secondary": str(secondary_dir)} if named else {}))
    row = next(problem for problem in later.store.problems() if problem.code == "SecondaryAway")
    assert str(secondary_dir) in row.message
    assert row.severity == "error"
    assert ("mount" in str(row.hint)) is named
    assert later.recaller.search("home").partial
    assert later.store.storage().waiting == 1
    assert "SecondaryAway" in [problem.code for problem in later.checker.check()]
    away.rename(secondary_dir)
    first.store.refresh()
    assert "SecondaryAway" not in codes(later)
    assert not later.recaller.search("home").partial


@contextmanager
def full_but_for(secondary_dir: Path, workspace: Workspace) -> Iterator[None]:
    """The workspace's disk is full; the secondary location's and that of the user's cache are not."""

    def hook(name: str, path: str) -> None:
        if name in CHANGES and Path(path).is_relative_to(workspace.root):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    workspace.parts.index.folder.mkdir(parents=True, exist_ok=True)
    before = io.set_hook(hook)
    try:
        yield
    finally:
        io.set_hook(before)
    assert secondary_dir.is_dir()


def test_a_bare_mount_point_is_not_filled(opened: Opened, secondary_dir: Path) -> None:
    """Where the folder that was made once is missing, nothing is written in its place, by later processes too (S17)."""
    first = opened(storage__secondary=str(secondary_dir))
    first.store.put(item("kept", "at home"))
    away = secondary_dir.rename(secondary_dir.with_name("away"))
    secondary_dir.mkdir(0o700)
    for workspace in (first, opened(first.root, storage__secondary=str(secondary_dir))):
        with full(secondary_dir), pytest.raises(StorageUnavailable, match="made this folder before"):
            workspace.store.put(item("first", "text"))
        assert not list(secondary_dir.iterdir())
    secondary_dir.rmdir()
    away.rename(secondary_dir)
    with full(secondary_dir):
        assert first.store.put(item("first", "text")).durability == "fallback"


@pytest.mark.parametrize("policy", ["each", "batch"])
def test_what_comes_home_is_committed_by_the_window(opened: Opened, secondary_dir: Path, policy: str) -> None:
    """With a commit for each write, those that come home later are committed by the window, too (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir), history__commit=policy)
    with full(secondary_dir):
        workspace.store.put(item("first", "text"))
    assert workspace.store._flush_window()
    assert workspace.store.pending().count == 0


def test_bringing_home_ends_beside_a_busy_writer(
    opened: Opened, secondary_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bringing home goes on only while it makes what waits fewer (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    turns = iter(range(1, 100))
    monkeypatch.setattr(workspace.store.backlog, "waiting", lambda: next(turns))
    monkeypatch.setattr(workspace.store.writing, "_bring_home", list)
    assert workspace.store.writing.recover() == []
    assert next(turns) < 6


def test_a_failed_probe_names_the_place(opened: Opened, secondary_dir: Path) -> None:
    """The error of a disk that is tried out names the folder, not memfs's own file, and says what is true (S17)."""
    workspace = opened(storage__secondary=str(secondary_dir))
    workspace.store.put(item("first", "text"))
    with full(Path("/nowhere")):
        reason = workspace.store.storage().reason
    assert "probe." not in reason
    assert "nothing was written" not in reason
