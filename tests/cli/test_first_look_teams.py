"""What somebody reads who shares memory with a team for the first time (B1-B4)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Memfs, git


@pytest.fixture
def server(tmp_path: Path, root: Path) -> Path:
    """A bare repository made without naming its branch, as the workspace's remote."""
    server = tmp_path / "server.git"
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=master", str(server)], check=True)
    git(root, "remote", "add", "origin", str(server))
    return server


def test_b3_the_first_push_says_how_others_join(memfs: Memfs, bare: Memfs, server: Path, tmp_path: Path) -> None:
    """The server's HEAD names another branch than the memory's: a plain clone of it is empty."""
    memfs("remember", "Deploys happen on Tuesdays", "--id", "deploys")
    ran = memfs("sync")
    assert f"git clone --branch main {server}" in ran.err, ran.err
    assert "clone" not in memfs("sync").err
    subprocess.run(["git", "clone", "-q", "--branch", "main", str(server), str(tmp_path / "bo")], check=True)
    assert "set git to merge" in bare("init", str(tmp_path / "bo")).out


def test_b3_a_clone_with_nothing_checked_out_gets_no_second_memory(
    memfs: Memfs, bare: Memfs, server: Path, tmp_path: Path
) -> None:
    """init would begin a history that has nothing in common with the team's; it names the way to that instead."""
    memfs("sync")
    clone = tmp_path / "bo"
    subprocess.run(["git", "clone", "-q", str(server), str(clone)], check=True, capture_output=True)
    ran = bare("init", str(clone))
    assert ran.code == 1
    assert "nothing is checked out in this clone, and origin/main has a memory" in ran.err
    assert "git switch main" in ran.err
    assert [path.name for path in clone.iterdir()] == [".git"]
    git(clone, "switch", "-q", "main")
    assert "is a workspace already" in bare("init", str(clone)).out


def test_b3_an_orphan_branch_of_a_code_repository_may_get_a_memory(bare: Memfs, tmp_path: Path) -> None:
    """Where no branch of the remote has a memory, a branch without a commit is no obstacle."""
    code = tmp_path / "code"
    subprocess.run(["git", "init", "-q", str(code)], check=True)
    git(code, "commit", "-q", "--allow-empty", "-m", "Code")
    git(code, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(code, "switch", "-q", "--orphan", "memory")
    assert bare("init", str(code)).code == 0


def test_row_43_markers_in_the_settings_are_called_so(memfs: Memfs, root: Path) -> None:
    """No workspace opens until they are gone, so the message says what they are and what to do."""
    path = root / "memfs.toml"
    text = path.read_text()
    path.write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n")
    ran = memfs("list")
    assert ran.code == 1
    assert "memfs.toml:1:1: a merge left conflict markers in it" in ran.err
    assert "delete the marker lines" in ran.err


def test_messages_name_the_next_command(memfs: Memfs, root: Path) -> None:
    """A typo, or a verb tried without knowing it, leads on."""
    assert "'memfs team convention propose TEXT'" in memfs("team", "convention").err
    assert "Missing argument 'TEXT|ID...'" in memfs("team", "convention", "propose").err
    memfs("remember", "One", "--id", "one")
    assert "'memfs team blame ID' names agents and sessions" in memfs("undo", "--session", "tpyo").err
    memfs("commit")
    assert "## Memory review of `main..HEAD`" in memfs("review").out
    assert "name with --bad" in memfs("team", "bisect", "--good", "HEAD~1", "--expect", "one => !two").err


def test_row_43_a_rebase_that_is_over_is_not_to_be_continued(memfs: Memfs, root: Path) -> None:
    """git leaves REBASE_HEAD behind: what waits then waits for a decision alone."""
    memfs("remember", "Deploy on Fridays", "--id", "deploy", "--title", "Here")
    memfs("commit")
    for branch, title in (("other", "There"), ("main", "Elsewhere")):
        git(root, "switch", "-q", *(["-c"] if branch == "other" else []), branch)
        path = next(root.glob("ContextMemory/memories/*/*/deploy.yaml"))
        path.write_text(path.read_text().replace("title: Here", f"title: {title}"))
        git(root, "commit", "-qam", title)
    git(root, "config", "--remove-section", "merge.memfs")
    subprocess.run(["git", "-C", str(root), "rebase", "-q", "other"], check=False, capture_output=True)
    assert "run 'git rebase --continue' to finish" in memfs("team", "conflicts", "resolve", "--all").err
    git(root, "-c", "core.editor=true", "rebase", "--continue")
    assert (root / ".git/REBASE_HEAD").exists()
    ran = memfs("team", "conflicts")
    assert "memfs team conflicts resolve deploy --keep kept|lost" in ran.out
    assert "rebase" not in ran.err


def test_a_memory_beside_code_is_found_from_above(bare: Memfs, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the top of a code repository, memfs says where its memory is, instead of making a second one."""
    monkeypatch.chdir(root.parent)
    ran = bare("recall", "anything")
    assert ran.code == 1
    assert "there is one below it: name it with -C W" in ran.err


def test_b3_checkpoints_of_two_clones_made_in_one_minute_both_stay(
    memfs: Memfs, bare: Memfs, server: Path, tmp_path: Path
) -> None:
    """Each keeps its id, its manifest and its payload when the clones sync; of one clone they sort as made."""
    memfs("state", "iteration", "start")
    memfs("sync")
    clone = str(tmp_path / "bo")
    subprocess.run(["git", "clone", "-q", "--branch", "main", str(server), clone], check=True)
    mine = [memfs("state", "checkpoint", "create", "--json").json["id"] for _ in range(2)]
    other = bare("-C", clone, "state", "checkpoint", "create", "--json").json["id"]
    for words in (("-C", clone), (), ("-C", clone)):
        assert (memfs if not words else bare)(*words, "sync").code == 0
    listed = [one["id"] for one in memfs("state", "checkpoint", "list", "--json").json["checkpoints"]]
    assert [one for one in reversed(listed) if one in mine] == mine
    for one in mine:
        assert memfs("state", "checkpoint", "recover", one).code == 0
    listed = [one["id"] for one in bare("-C", clone, "state", "checkpoint", "list", "--json").json["checkpoints"]]
    assert bare("-C", clone, "state", "checkpoint", "recover", other).code == 0
    assert set(listed) == {*mine, other}
