"""Opening: which workspace a facade works in, and how long that stays open."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.patience import LONG
from memfs import (
    MemfsError,
    MemoryItem,
    SchemaInvalid,
    SettingInvalid,
    WorkspaceClosed,
    WorkspaceNotFound,
    open_workspace,
)
from memfs.facades import open_workspaces
from memfs.facades.open_workspaces import Facade, close_all
from memfs.fs.lock import shared_property
from memfs.fs.workspace_location import user_folder


def test_a_path_that_is_not_there_becomes_a_workspace(tmp_path: Path) -> None:
    """A facade makes the workspace at the path it is given (C1)."""
    with Facade(tmp_path / "new" / "memory") as facade:
        stored = facade.workspace.store.put(MemoryItem("It is kept"))
        assert facade.workspace.root == tmp_path / "new" / "memory"
    with Facade(str(tmp_path / "new" / "memory")) as again:
        assert again.workspace.store.get(stored.id) is not None


def test_db_path_is_another_name_of_path(tmp_path: Path) -> None:
    """The seed's argument names the same workspace; two different places are an error (C1)."""
    with Facade(db_path=tmp_path / "W") as one, Facade(tmp_path / "W", db_path=str(tmp_path / "W")) as other:
        assert one.workspace is other.workspace
    with pytest.raises(MemfsError, match="two places"):
        Facade(tmp_path / "W", db_path=tmp_path / "V")


def test_what_cannot_be_a_workspace_is_refused(tmp_path: Path) -> None:
    """A file in the way is named; an empty path does not mean the current folder."""
    (tmp_path / "memory.db").write_text("from another program")
    with pytest.raises(WorkspaceNotFound, match=r"memory\.db"):
        Facade(tmp_path / "memory.db")
    with pytest.raises(MemfsError, match="empty path"):
        Facade("")


def test_a_folder_inside_a_workspace_means_that_workspace(tmp_path: Path) -> None:
    """An existing folder is looked for at or above, as open_workspace does."""
    with Facade(tmp_path / "W") as facade:
        inner = tmp_path / "W" / "src"
        inner.mkdir()
        with Facade(inner) as other:
            assert other.workspace is facade.workspace


def test_what_cannot_be_opened_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A passing workspace that cannot be made leaves no folder where things pass."""

    def refused(folder: Path, **_: object) -> None:
        (folder / "half").touch()
        raise MemfsError("refused")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(open_workspaces, "open_workspace", refused)
    with pytest.raises(MemfsError, match="refused"):
        Facade(":memory:")
    assert list(tmp_path.glob("memfs-passing-*")) == []


def test_memory_passes(tmp_path: Path) -> None:
    """A workspace ":memory:" is each facade's own and is removed on close, its index as well (C1)."""
    one, other = Facade(":memory:"), Facade(db_path=":memory:")
    roots = [one.workspace.root, other.workspace.root]
    indexes = [open_workspaces.index_folder(root) for root in roots]
    one.workspace.store.put(MemoryItem("Only here"))
    assert other.workspace.store.count() == 0
    one.close()
    other.close()
    assert not any(path.exists() for path in (*roots, *indexes))


def test_memory_that_is_forgotten_passes_as_well() -> None:
    """A passing workspace goes with the last facade that uses it, closed or not."""
    facade = Facade(":memory:")
    root = facade.workspace.root
    del facade
    gc.collect()
    assert not root.exists()


def test_without_a_path_the_workspace_at_hand_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace at or above the current folder comes before the user's own; MEMFS_WORKSPACE before both."""
    for name in ("here", "named"):
        open_workspace(tmp_path / name, create=True, watch=False).close()
    monkeypatch.chdir(tmp_path / "here")
    with Facade() as facade:
        assert facade.workspace.root == tmp_path / "here"
    monkeypatch.setenv("MEMFS_WORKSPACE", str(tmp_path / "named"))
    with Facade() as facade:
        assert facade.workspace.root == tmp_path / "named"
    monkeypatch.setenv("MEMFS_WORKSPACE", str(tmp_path / "nowhere"))
    with pytest.raises(WorkspaceNotFound, match="nowhere"):
        Facade()


def test_where_there_is_none_the_users_own_is_made(
    tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch, git: Callable[..., str]
) -> None:
    """Without any workspace the user-level one is made, with a repository of its own even inside another one."""
    git(own_world, "init", "--quiet")
    monkeypatch.delenv("MEMFS_HISTORY_COMMIT")
    monkeypatch.chdir(tmp_path)
    with Facade() as facade:
        root = facade.workspace.root
        assert root == own_world / ".local/share/memfs" == user_folder()
        assert facade.workspace.repository.work_tree == root
        assert facade.workspace.settings.history.commit == "interval"
        assert root.stat().st_mode & 0o077 == 0
        facade.workspace.store.put(MemoryItem("It belongs to no project"))
    assert git(root, "log", "--oneline").count("\n") == 2
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert user_folder() == tmp_path / "data" / "memfs"


def test_facades_of_a_process_share_one_workspace(tmp_path: Path) -> None:
    """One path opens once, through a link as well; it is closed with the last facade (K9)."""
    (tmp_path / "link").symlink_to(tmp_path / "W")
    one = Facade(tmp_path / "W")
    workspace = one.workspace
    other = Facade(tmp_path / "link")
    assert other.workspace is workspace
    one.close()
    assert workspace.store.put(MemoryItem("Still open")).path
    other.close()
    assert open_workspaces.held == {}
    with pytest.raises(WorkspaceClosed, match="was closed"):
        _ = other.workspace


def test_a_workspace_that_was_handed_over_stays_open(opened: Callable[..., object]) -> None:
    """A facade closes only what it opened, and takes no second place beside an open workspace."""
    workspace = opened()
    with Facade(workspace=workspace) as facade:  # type: ignore[arg-type]
        assert facade.workspace is workspace
    assert workspace.store.count() == 0  # type: ignore[attr-defined]
    with pytest.raises(MemfsError, match="has its path"):
        Facade("elsewhere", workspace=workspace)  # type: ignore[arg-type]


def test_a_facade_opens_again_after_all_was_closed(tmp_path: Path) -> None:
    """What close_all closed is opened again by the facade that needs it."""
    facade = Facade(tmp_path / "W")
    before = facade.workspace
    close_all()
    assert facade.workspace is not before
    assert facade.workspace.store.count() == 0


def _count_in_child(facade: Facade, answers: multiprocessing.Queue[tuple[bool, int]]) -> None:
    answers.put((open_workspaces.held == {}, facade.workspace.store.count()))
    close_all()


def test_a_forked_child_opens_its_own(tmp_path: Path) -> None:
    """The cache belongs to one process; a child's facade works in the same files."""
    facade = Facade(tmp_path / "W")
    facade.workspace.store.put(MemoryItem("Written by the parent"))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_count_in_child, args=(facade, answers))
    child.start()
    answer = answers.get(timeout=60)
    child.join(60)
    assert (answer, child.exitcode) == ((True, 1), 0)
    assert facade.workspace.store.count() == 1
    assert os.path.exists(facade.workspace.root)


class Slow:
    """Has a value that takes as long as a test wants."""

    def __init__(self, begin: Callable[[], object]) -> None:
        self.begin = begin

    @shared_property
    def value(self) -> str:
        """Worked out when it is asked for."""
        self.begin()
        return "value"


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    """A value that a thread of the parent was working out at the fork is worked out again by the child."""
    at_it, done = threading.Event(), threading.Event()
    busy = threading.Thread(target=lambda: Slow(lambda: at_it.set() or done.wait(LONG)).value)
    busy.start()
    assert at_it.wait(LONG)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: sys.exit(Slow(int).value != "value"))
    child.start()
    child.join(LONG / 2)
    code = child.exitcode
    child.kill()
    done.set()
    busy.join()
    assert code == 0


def test_config_wins_over_the_memory_context(tmp_path: Path) -> None:
    """What a caller gives by name counts for that caller alone (M4)."""
    with Facade(tmp_path / "W", config={"pattern_threshold": 4}) as own, Facade(tmp_path / "W") as usual:
        assert own.workspace.memory_config.pattern_threshold == 4
        assert usual.workspace.memory_config.pattern_threshold == 3
        own.workspace.store.put(MemoryItem("Seen by both"))
        assert usual.workspace.store.count() == 1


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"pattern_treshold": 3}, SettingInvalid, "pattern_threshold"),
        ({"max_memories": "many"}, SchemaInvalid, "max_memories"),
        ({"storage_type": "cloud"}, SchemaInvalid, "storage_type"),
    ],
)
def test_a_config_that_is_wrong_is_refused(
    tmp_path: Path, config: dict[str, object], error: type[MemfsError], message: str
) -> None:
    """A name or value that a memory context may not have is reported when the facade is made."""
    with pytest.raises(error, match=message) as caught:
        Facade(tmp_path / "W", config=config)
    assert (caught.value.path, caught.value.line) == (None, None)  # it is in no file
    assert not (tmp_path / "W").exists()
