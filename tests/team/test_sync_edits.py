"""A sync publishes an edit by hand that is not committed only where somebody said so (D1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.copies import copy_workspace
from memfs.doors.cli.app import run
from memfs.errors import PushRefused
from memfs.model import MemoryItem
from memfs.workspace import open_workspace

Git = Callable[..., str]
EDITED = "ContextMemory/memories/semantic/2026-01/half-done.yaml"


@pytest.fixture
def ada(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, git: Git) -> Path:
    """A workspace in sync with a remote, with an edit that is not committed, and a commit that the remote lacks."""
    pristine = tmp_path_factory.getbasetemp() / "pristine-edits"
    if not pristine.exists():
        _begin(pristine, git)
    for name in ("remote.git", "ada"):
        copy_workspace(pristine / name, tmp_path / name)
    return tmp_path / "ada"


def _begin(folder: Path, git: Git) -> None:
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    with open_workspace(folder / "ada", create=True, watch=False) as workspace:
        git(workspace.root, "symbolic-ref", "HEAD", "refs/heads/main")
        workspace.store.put(MemoryItem("first", "semantic", id="first"))
        workspace.store.flush()
        git(workspace.root, "remote", "add", "origin", "../remote.git")
        workspace.teams.syncer.sync()
        (workspace.root / EDITED).parent.mkdir(parents=True)
        (workspace.root / EDITED).write_text("content: half a tho\n")
        workspace.store.put(MemoryItem("second", "semantic", id="second"))
        workspace.store.flush(adopt=False)


@pytest.fixture
def published(tmp_path: Path, git: Git) -> Callable[[], set[str]]:
    """The names of the items that the remote holds."""
    return lambda: {
        Path(path).stem
        for path in git(tmp_path / "remote.git", "ls-tree", "-r", "--name-only", "main").splitlines()
        if "/memories/" in path
    }


Published = Callable[[], set[str]]


def test_it_refuses_and_names_the_files(ada: Path, published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is pushed; the error names the files and both ways on (D1)."""
    assert run(["-C", str(ada), "sync"]) == 1
    errors = capsys.readouterr().err
    assert all(word in errors for word in (EDITED, "--yes", "memfs commit"))
    assert run(["-C", str(ada), "sync", "--json"]) == 1
    assert published() == {"first"}


def test_yes_publishes_them(ada: Path, published: Published, git: Git) -> None:
    """``--yes`` commits the edit as the person's own and pushes it with the rest (D1)."""
    assert run(["-C", str(ada), "sync", "--yes"]) == 0
    assert published() == {"first", "second", "half-done"}
    assert git(ada, "log", "--format=%an", "--", EDITED).strip() == "Ada Person"


def test_what_is_only_taken_or_tried_publishes_nothing(
    ada: Path, published: Published, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--no-push`` and ``--dry-run`` ask nothing, name the edit and leave it uncommitted (D1)."""
    for option in ("--no-push", "--dry-run"):
        capsys.readouterr()
        assert run(["-C", str(ada), "sync", option, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["edits"] == [EDITED]
    assert published() == {"first"}
    assert EDITED in git(ada, "status", "--porcelain", "-uall")


def test_a_program_must_say_so_too(ada: Path, published: Published) -> None:
    """``Syncer.sync`` refuses by default, leaves with ``edits=False`` and publishes with ``edits=True`` (D1)."""
    with open_workspace(ada, watch=False) as workspace:
        with pytest.raises(PushRefused, match="half-done"):
            workspace.teams.syncer.sync()
        assert workspace.teams.syncer.sync(edits=False).edits == (EDITED,)
        assert published() == {"first", "second"}
        assert workspace.teams.syncer.sync(edits=True).pushed
    assert "half-done" in published()


def test_where_edits_are_left_to_the_person_nothing_is_asked(ada: Path, published: Published, git: Git) -> None:
    """Under ``history.adopt = "leave"`` a sync never takes an edit along, so that it has nothing to ask (D1)."""
    assert run(["-C", str(ada), "--set", "history.adopt=leave", "sync"]) == 0
    assert published() == {"first", "second"}
    assert EDITED in git(ada, "status", "--porcelain", "-uall")


@pytest.mark.parametrize("setting", ["history.commit=manual", "history.adopt=leave"])
def test_an_edit_that_is_left_to_the_person_is_named_and_goes_along_with_yes(
    ada: Path, published: Published, git: Git, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    """Also where there is nothing to push but the edit, ``--yes`` commits and publishes it (D1)."""
    sync_now = ("-C", str(ada), "--set", setting, "sync")
    assert run([*sync_now, "--dry-run"]) == 0
    assert f"1 edit by hand not committed: {EDITED}" in capsys.readouterr().err
    for _ in range(2):
        assert run(sync_now) == 0
        errors = capsys.readouterr().err
        assert f"1 edit by hand not committed: {EDITED}" in errors
        assert "--yes" in errors
    assert run([*sync_now, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edits"] == [EDITED]
    assert run([*sync_now, "--yes"]) == 0
    captured = capsys.readouterr()
    assert ("Pushed 1 commit" in captured.out, "by hand" in captured.err) == (True, False)
    assert published() == {"first", "second", "half-done"}
    assert git(ada, "status", "--porcelain", "-uall") == ""


@pytest.mark.parametrize("more", [(), ("--yes",)])
def test_an_invalid_edit_is_named(
    ada: Path, published: Published, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    """What cannot be committed is not published, and neither asked about nor passed over in silence (D1)."""
    (ada / EDITED).write_text("content: x\nttle: y\n")
    assert run(["-C", str(ada), "sync", *more]) == 0
    errors = capsys.readouterr().err
    assert f"1 edit by hand not committed: {EDITED}" in errors
    assert "memfs check" in errors
    assert run(["-C", str(ada), "sync", "--json", *more]) == 0
    assert json.loads(capsys.readouterr().out)["edits"] == [EDITED]
    assert published() == {"first", "second"}
