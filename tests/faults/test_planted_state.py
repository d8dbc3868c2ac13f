"""State that came with an unzipped repository is data like all the rest: it leads nowhere (faults row 41)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostile import planted
from kit.beginning import a_good_neighbour, copy_of
from memfs import MemoryItem
from memfs.doors.cli.app import run
from memfs.errors import MemfsError, StorageReadOnly
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Git = Callable[..., str]
SHELL = b"touch canary\n"


@pytest.fixture
def root(opened: Opened, tmp_path: Path) -> Path:
    """A workspace as somebody unpacked it: with history, and nobody at work in it."""
    copy_of(a_good_neighbour, tmp_path / "workspace")
    made = opened(tmp_path / "workspace")
    made.close()
    for path in planted.state_of(made.root).iterdir():
        path.unlink()
    return made.root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the victim's, with a file that must stay as it is."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / ".bashrc").write_text("# mine\n")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def work_in(opened: Opened, root: Path) -> None:
    """Open, look, write, commit, check: whatever is refused is refused in memfs's own words."""
    try:
        workspace = opened(root)
    except MemfsError:
        return
    doors: list[Callable[[], Any]] = [
        workspace.store.refresh,
        workspace.store.problems,
        lambda: workspace.recaller.search("good"),
        workspace.store.pending,
        workspace.recovered.list,
        lambda: workspace.store.put(MemoryItem("new", "knowledge", id="new")),
        workspace.store.flush,
        lambda: workspace.store.flush(adopt=True),
        workspace.checker.check,
        lambda: [workspace.recovered.restore(row.name) for row in workspace.recovered.list()],
        workspace.checker.repair,
    ]
    for door in doors:
        try:
            door()
        except MemfsError:
            continue


def outside_content(root: Path) -> dict[str, bytes]:
    """What is in the tree beside memory: the person's own files, and git's configuration and hooks."""
    found = {name: data for name, data in everything(root).items() if not name.startswith((".git/", "ContextMemory/"))}
    found |= {
        name: data for name, data in everything(root / ".git").items() if name.startswith(("hooks", "config", "info"))
    }
    return found


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/post-checkout",
        ".git/config",
        "ContextMemory/../.git/hooks/pre-commit",
        "ContextMemory/.git/hooks/pre-commit",
        "ContextMemory/x/.GIT/config",
        "../victim/planted",
        "/etc/planted",
        "Makefile",
        ".envrc",
        "src/code.py",
        "",
        "ContextMemory",
        "a\0b",
        "ContextMemory/\ud800.yaml",
    ],
)
def test_41_a_planted_journal_writes_nothing_but_memory(opened: Opened, root: Path, outside: Path, path: str) -> None:
    """A record that was never acknowledged here reaches no hook, no configuration and no code (faults row 41)."""
    before, tree = everything(outside), outside_content(root)
    planted.journal(root, [planted.operation(path, SHELL)])
    work_in(opened, root)
    assert everything(outside) == before
    assert outside_content(root) == tree
    assert not Path("/etc/planted").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "../../../../victim/x"},
        {"id": 3},
        {"id": ""},
        {"branch": "refs/heads/../../config"},
        {"branch": "refs/heads/x\nupdate refs/heads/main " + "0" * 40},
        {"branch": None},
        {"time": 1e300},
        {"time": float("nan")},
        {"time": "soon"},
        {"time": -1e18},
        {"message": None},
        {"message": "x\0y"},
        {"message": "\ud800"},
        {"writers": [3]},
        {"writers": None},
        {"writers": [{"agent": "a\nb <x>"}]},
        {"writers": [{"agent": 5, "session": [], "source": {}, "person": "x"}]},
        {"changes": [["ContextMemory/memories/knowledge/y.yaml"]]},
        {"changes": [["ContextMemory/memories/knowledge/y.yaml", "", "x", 10**12]]},
        {"changes": [[3, 4, 5, 6]]},
        {"changes": None},
        {"kind": "unknown"},
        {"kind": None},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_41_a_strange_record_is_damage_and_nothing_else(
    opened: Opened, root: Path, outside: Path, changed: dict[str, Any]
) -> None:
    """Whatever is in a record whose checksum is right, nothing foreign is raised and nothing leads out."""
    before, tree = everything(outside), outside_content(root)
    record = planted.operation("ContextMemory/memories/knowledge/y.yaml", b"content: planted\n", **changed)
    planted.journal(root, [record])
    work_in(opened, root)
    assert everything(outside) == before
    assert outside_content(root) == tree


@pytest.mark.parametrize(
    "payload", [b"", b"\n", b"[]", b"3\n", b"null\n", b"[" * 5000, b"\xff\xfe\n", b'{"kind":"applied"}\n']
)
def test_41_a_frame_that_holds_no_record_is_damage(opened: Opened, root: Path, payload: bytes) -> None:
    """A frame with a right checksum and nonsense inside is reported; reading goes on (faults rows 28 and 41)."""
    planted.journal(root, [payload])
    workspace = opened(root)
    assert [hit.item.id for hit in workspace.recaller.search("good").hits] == ["good"]
    work_in(opened, root)


def test_41_a_planted_step_does_not_replace_a_file_elsewhere(opened: Opened, root: Path, outside: Path) -> None:
    """An interrupted commit that somebody made up gives no file of the victim's another content (faults row 41)."""
    before = everything(outside)
    state = planted.state_of(root)
    index = root / ".git/index"
    index.unlink()
    index.symlink_to(outside / ".bashrc")
    (state / "index.next").symlink_to(outside / ".bashrc")
    (state / "index.before").write_bytes(SHELL)
    planted.step(root)
    work_in(opened, root)
    assert everything(outside) == before


@pytest.mark.parametrize("where", ["{outside}", "../../victim", "worktrees/../../../victim"])
def test_41_a_planted_step_does_not_lead_to_another_repository(
    opened: Opened, root: Path, outside: Path, where: str
) -> None:
    """The git folder that a record names is one of this repository (faults row 41)."""
    (outside / "index").write_bytes(b"the victim's index")
    before = everything(outside)
    state = planted.state_of(root)
    (state / "index.next").symlink_to(outside / "index")
    (state / "index.before").write_bytes(SHELL)
    for had_index in (True, False):
        planted.step(root, git_dir=where.format(outside=outside), had_index=had_index)
        work_in(opened, root)
        assert everything(outside) == before


@pytest.mark.parametrize("ref", ["../../victim/x", "refs/heads/../../../../victim/x", "{outside}/x", 3, None])
def test_41_a_planted_step_removes_no_lock_elsewhere(opened: Opened, root: Path, outside: Path, ref: Any) -> None:
    """The branch that a record names is a branch (faults row 41)."""
    (outside / "x.lock").write_text("1" * 40)
    before = everything(outside)
    state = planted.state_of(root)
    os.link(root / ".git/index", state / "index.next")
    os.link(root / ".git/index", root / ".git/index.lock")
    planted.step(root, ref=ref.format(outside=outside) if isinstance(ref, str) else ref)
    work_in(opened, root)
    assert everything(outside) == before


def test_41_an_index_that_leads_out_is_not_written_through(opened: Opened, root: Path, outside: Path) -> None:
    """Where the index is a link out of the repository commits wait, and nothing is made at its end (faults row 41)."""
    index = root / ".git/index"
    index.unlink()
    index.symlink_to(outside / "made-by-memfs")
    before = everything(outside)
    work_in(opened, root)
    assert everything(outside) == before
    assert "index" in opened(root).store.flush().reason


@pytest.mark.parametrize(
    "name", ["journal", "lock", "../commit.lock", "children", "recovered", "commit.json", "index.before"]
)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_41_what_is_not_a_file_in_the_state_folder_harms_nothing(
    opened: Opened, root: Path, outside: Path, name: str, kind: str
) -> None:
    """Links and pipes in place of memfs's records are not followed and block nobody (faults rows 12 and 41)."""
    place = planted.state_of(root) / name
    if kind == "link":
        place.unlink(missing_ok=True)
        place.symlink_to(outside / ".bashrc")
    elif kind == "pipe":
        place.unlink(missing_ok=True)
        os.mkfifo(place)
    else:
        place.unlink(missing_ok=True)
        place.mkdir()
    before = everything(outside)
    work_in(opened, root)
    assert everything(outside) == before


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "../victim/planted", "Makefile", "/etc/planted", 3, None])
def test_41_what_was_set_aside_comes_back_as_memory_only(opened: Opened, root: Path, outside: Path, path: Any) -> None:
    """A planted content that asks to be brought back into a hook is refused (faults row 41)."""
    import json

    before, tree = everything(outside), outside_content(root)
    folder = planted.state_of(root) / "recovered"
    folder.mkdir(exist_ok=True)
    (folder / "x.kept").write_bytes(json.dumps({"path": path}).encode() + b"\n" + SHELL)
    work_in(opened, root)
    assert everything(outside) == before
    assert outside_content(root) == tree


def test_41_a_planted_link_for_an_erase_removes_nothing_elsewhere(opened: Opened, root: Path, outside: Path) -> None:
    """A link where an erase keeps its files would have what it leads to removed: it is refused (faults row 41)."""
    (planted.state_of(root) / "erase").symlink_to(outside)
    before = everything(outside)
    with pytest.raises(StorageReadOnly, match="link"):
        opened(root)
    assert run(["-C", str(root), "admin", "erase", "good", "--yes"]) == 1
    assert everything(outside) == before
