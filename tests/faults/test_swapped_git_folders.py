"""memfs's own folder and git's are traded for links while a workspace is open (faults row 41)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemfsError, MemoryItem
from memfs.fs import io
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


def trade(folder: Path, elsewhere: Path) -> None:
    """Put a link in the place of a folder."""
    folder.rename(folder.with_name(f"{folder.name}.was"))
    folder.symlink_to(elsewhere)


@pytest.mark.parametrize("what", ["memfs", "state", "objects", "objects/pack", "refs"])
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "a copy"])
def test_41_nothing_is_written_where_a_link_leads(opened: Opened, tmp_path: Path, what: str, filled: bool) -> None:
    """The write is refused, or its commit waits, whatever the link leads to; back in its place, all goes on."""
    workspace = opened()
    workspace.store.put(MemoryItem("first", id="first"))
    assert workspace.store.flush().reason == ""
    git = workspace.repository.common_dir
    folder = workspace.repository.state if what == "state" else git / what
    elsewhere = tmp_path / "elsewhere"
    if filled:
        shutil.copytree(folder, elsewhere)
    else:
        elsewhere.mkdir()
    before = sorted(elsewhere.rglob("*"))
    trade(folder, elsewhere)
    try:
        workspace.store.put(MemoryItem("second", id="second"))
        refused = workspace.store.flush().reason
    except MemfsError as error:
        refused = str(error)
    assert refused
    workspace.recaller.search("first")
    workspace.usage.flush()
    assert sorted(elsewhere.rglob("*")) == before
    folder.unlink()
    folder.with_name(f"{folder.name}.was").rename(folder)
    workspace.store.put(MemoryItem("second", id="second"))
    assert workspace.store.flush().reason == ""


def test_41_only_looking_writes_nothing_there_either(opened: Opened, tmp_path: Path) -> None:
    """A watch that begins after the trade leaves no note where the link leads."""
    workspace = opened()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    trade(workspace.repository.common_dir / "memfs", elsewhere)
    workspace.recaller.search("first")
    assert list(elsewhere.rglob("*")) == []


@pytest.mark.parametrize("what", ["memfs", "objects"])
def test_41_a_trade_in_the_middle_of_a_write_is_an_error_of_ours(opened: Opened, tmp_path: Path, what: str) -> None:
    """At whichever operation it happens, what comes out is an error with path and remedy, never a bare one."""
    for number in range(1, 600, 23):
        workspace = opened(tmp_path / f"w{number}")
        elsewhere = tmp_path / f"elsewhere{number}"
        elsewhere.mkdir()
        left = number

        def hook(_: str, __: object, workspace: Workspace = workspace, elsewhere: Path = elsewhere) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                trade(workspace.repository.common_dir / what, elsewhere)

        before = io.set_hook(hook)
        try:
            workspace.store.put(MemoryItem("second", id="second"))
            workspace.store.flush()
        except MemfsError:
            pass
        finally:
            io.set_hook(before)
        if left > 0:
            break
    else:
        pytest.fail("the write never ended")
