"""An erase finds every cache and spool that the repository ever had, wherever its workspaces were (B6)."""

from __future__ import annotations

import json
import os
import pwd
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import EraseRefused, MemoryItem
from memfs.admin.backup import own_folder
from memfs.fs import append_log
from memfs.fs.workspace_location import user_folder
from memfs.search.generations import RECORD, cache_home
from memfs.trust import list_path
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
WORD = "kumquat"


@pytest.fixture
def home(opened: Opened, tmp_path: Path) -> Workspace:
    """A workspace with one memory, which nobody has asked for yet."""
    workspace = opened(tmp_path / "home" / "m", index__engine="sqlite")
    workspace.store.put(MemoryItem(f"the code is zqxmark {WORD}", "knowledge", id="plan"))
    assert workspace.store.flush().reason == ""
    return workspace


def ask(workspace: Workspace) -> None:
    """Find the memory, so that the caches of a workspace have it; close it."""
    assert workspace.recaller.search(WORD).hits
    workspace.store.fold()
    workspace.close()


def traces(*places: Path) -> list[str]:
    """The files of the user's cache, and below some folders, that hold the word."""
    roots = [Path(os.environ["XDG_CACHE_HOME"]), *places]
    files = [
        path for root in roots for path in root.rglob("*") if path.is_file() and path.suffix != ".db-shm"
    ]  # comes and goes
    return [str(path) for path in files if WORD.encode() in path.read_bytes()]


def erase(workspace: Workspace, places: tuple[Path, ...] = ()) -> None:
    """Erase the memory; nothing of it is left, and the proof says so."""
    assert traces()
    done = workspace.eraser.erase("plan")
    assert done.proof.hits == ()
    assert traces(workspace.root, *places) == []


def test_the_cache_of_where_a_workspace_was_before_goes(home: Workspace, opened: Opened, tmp_path: Path) -> None:
    """A workspace that was moved has a new cache; the one of the old place is emptied, too (B6)."""
    ask(home)
    (tmp_path / "home" / "m").rename(tmp_path / "home" / "n")
    moved = opened(tmp_path / "home" / "n", index__engine="sqlite")
    erase(moved)


def test_the_cache_and_state_of_a_removed_working_tree_go(
    home: Workspace, opened: Opened, git: Git, tmp_path: Path
) -> None:
    """Neither the cache of a working tree that a person removed nor what a session reported there stays (B6)."""
    tree = tmp_path / "tree"
    git(home.root, "worktree", "add", "-q", "-b", "side", str(tree))
    there = opened(tree, index__engine="sqlite", served__questions=True)
    spool = there.repository.state / append_log.FOLDER
    spool.mkdir()
    (spool / "notes.json").write_text(json.dumps({"told": f"the code is zqxmark {WORD}"}))
    ask(there)
    git(home.root, "worktree", "remove", "--force", str(tree))
    erase(home)


def test_the_cache_of_a_clone_that_is_gone_goes(home: Workspace, opened: Opened, git: Git, tmp_path: Path) -> None:
    """A clone that was deleted left a cache that nobody would ever empty (B6)."""
    git(tmp_path, "clone", "-q", str(home.root), "copy")
    ask(opened(tmp_path / "copy", index__engine="sqlite"))
    shutil.rmtree(tmp_path / "copy")
    erase(home)


def test_a_cache_in_another_place_is_remembered(
    home: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the cache was elsewhere for a while, the repository still knows it (B6)."""
    here = os.environ["XDG_CACHE_HOME"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    ask(opened(home.root, index__engine="sqlite"))
    assert traces()
    monkeypatch.setenv("XDG_CACHE_HOME", here)
    ask(home)
    erase(opened(home.root, index__engine="sqlite"), (tmp_path / "elsewhere",))


def test_the_cache_of_a_living_neighbour_stays(home: Workspace, opened: Opened, tmp_path: Path) -> None:
    """Another workspace of this user keeps its cache, whatever is erased here."""
    other = opened(tmp_path / "other" / "m", index__engine="sqlite")
    other.store.put(MemoryItem("bread is baked at six", "knowledge", id="bread"))
    assert other.recaller.search("bread").hits
    other.store.fold()
    before = sorted(path.name for path in other.parts.index.folder.iterdir())
    ask(home)
    erase(opened(home.root, index__engine="sqlite"))
    assert sorted(path.name for path in other.parts.index.folder.iterdir()) == before


def test_a_record_that_came_along_empties_nothing_else(home: Workspace, tmp_path: Path) -> None:
    """A row that names a folder which is not a cache of this user's is passed over (faults row 41)."""
    victim = tmp_path / "victim"
    (victim / "memfs" / "notes").mkdir(parents=True)
    (victim / "memfs" / "notes" / "x").write_text("mine")
    (victim / ("0" * 20)).mkdir()
    (victim / ("0" * 20) / "x").write_text("mine")
    rows = [victim, victim / "memfs" / "notes", victim / ("0" * 20), Path("memfs") / ("0" * 20)]
    lines = [json.dumps({"cache": str(row), "root": str(victim)}) for row in rows]
    (home.repository.state.parent / RECORD).write_text("\n".join([*lines, "{", "[]", "null", '{"cache": 1}', ""]))
    home.eraser.erase("plan")
    assert (victim / "memfs" / "notes" / "x").exists()
    assert (victim / ("0" * 20) / "x").exists()


def test_no_file_of_a_cache_is_readable_by_others(home: Workspace, opened: Opened) -> None:
    """Whatever the umask is, this user alone can read what the caches and the counts of uses hold."""
    before = os.umask(0o022)
    try:
        for engine in ("whoosh", "sqlite"):
            workspace = opened(home.root, index__engine=engine)
            workspace.recaller.search(WORD)
            workspace.teams.past.at("HEAD").recall.search(WORD)
            workspace.conflicts.list(scan=True)
            workspace.store.put(MemoryItem("tests fail without a sandbox", "episodic", id=f"failed-{engine}"))
            workspace.store.fold()
            workspace.close()
    finally:
        os.umask(before)
    places = [Path(os.environ["XDG_CACHE_HOME"]), home.repository.state.parent]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".sqlite", ".db"}
    assert [str(path) for path in files if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_a_relative_folder_of_the_user_is_ignored(
    variable: str, opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A relative path in HOME or in a variable of XDG puts no cache into whatever folder one works in."""
    known = tmp_path / "known"
    user = pwd.struct_passwd(("ada", "x", os.getuid(), os.getgid(), "", str(known), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: user)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv(variable, "somewhere")
    home = known if variable == "HOME" else Path(os.environ["HOME"])
    assert [cache_home(), list_path(), own_folder(), user_folder()] == [
        home / ".cache/memfs",
        home / ".config/memfs/trust.json",
        home / ".local/share/memfs/backups",
        home / ".local/share/memfs",
    ]


def test_a_refusal_names_how_to_be_rid_of_other_working_trees(home: Workspace, git: Git, tmp_path: Path) -> None:
    """Other working trees of the repository are to be removed first."""
    git(home.root, "worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    with pytest.raises(EraseRefused) as refused:
        home.eraser.erase("plan")
    assert "git worktree remove" in (refused.value.hint or "")
