"""``memfs status --private``: where private memory is, and how a clone joins that of another one (C6, D1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.model import MemoryItem, Origin
from memfs.sessions.spool import find_place
from memfs.workspace import open_workspace
from tests.cli.conftest import Memfs, git


@pytest.fixture
def clones(tmp_path: Path, memfs: Memfs) -> tuple[Path, Path]:
    """Two clones of one origin that holds a workspace; the first one has private memory."""
    origin = tmp_path / "origin"
    assert memfs("init", str(origin)).code == 0
    git(tmp_path, "clone", "-q", str(origin), "first")
    git(tmp_path, "clone", "-q", str(origin), "second")
    with open_workspace(find_place(str(tmp_path / "first"), {}).root, watch=False) as workspace:
        workspace.store.put(MemoryItem("Deploys go to Frankfurt.", "semantic", id="region"))
    return tmp_path / "first", tmp_path / "second"


def test_it_says_where_it_is_and_what_it_holds(memfs: Memfs, clones: tuple[Path, Path]) -> None:
    """People and programs learn the folder and its contents, and how to list and share them (C6)."""
    first, second = map(str, clones)
    folder = find_place(first, {}).root
    shown = memfs("-C", first, "status", "--private")
    assert shown.out == f"{folder}\n"
    assert f"1 memory, {folder}; readable by you alone" in shown.err
    assert f"memfs -C {folder} list" in shown.err
    assert "memfs share" in shown.err
    assert f"private    1 memory, {folder}\n" in memfs("-C", first, "status").out
    none = memfs("-C", second, "status", "--private")
    assert (none.code, "memfs agent install claude-code" in none.err) == (2, True)
    facts = memfs("-C", second, "status", "--private", "--json").json["private"]
    assert (facts["folder"], [one["folder"] for one in facts["clones"]]) == (None, [str(folder)])


def test_who_shares_is_the_author_of_the_commit(memfs: Memfs, clones: tuple[Path, Path]) -> None:
    """A person decides to publish; whose words it has, the file says (C6)."""
    first = clones[0]
    origin = Origin(agent="claude-code", session="s-1")
    with open_workspace(find_place(str(first), {}).root, watch=False) as workspace:
        workspace.store.put(MemoryItem("Backups go to Oslo.", "semantic", id="backups", origin=origin))
    assert memfs("-C", str(first), "share", "region", "backups").code == 0
    assert git(first, "log", "-1", "--format=%an: %s") == "Ada Person: Share 2 memories\n"
    assert memfs("-C", str(first), "show", "backups", "--json").json["origin"]["agent"] == "claude-code"


def test_sharing_again_replaces_what_others_edited_on_request(memfs: Memfs, clones: tuple[Path, Path]) -> None:
    """An edit of the copy stays, unless a person says that theirs is to go, though theirs did not change (C6)."""
    first = str(clones[0])
    memfs("-C", first, "share", "region")
    [copy] = clones[0].glob("ContextMemory/memories/*/*/region.yaml")
    before = copy.read_text()
    copy.write_text(before.replace("Frankfurt", "Paris"))
    assert memfs("-C", first, "share", "region").out.startswith("Already shared")
    assert "Paris" in copy.read_text()
    assert memfs("-C", first, "share", "region", "--replace").out.startswith("Brought up to date")
    assert "Frankfurt" in copy.read_text()
    assert memfs("-C", first, "share", "region", "--replace").out.startswith("Already shared")


def test_a_fresh_clone_is_offered_the_memory_of_another(memfs: Memfs, clones: tuple[Path, Path]) -> None:
    """Setting a clone up says so; nothing is joined before somebody says so, and then nothing is lost (C6)."""
    first, second = map(str, clones)
    folder = find_place(first, {}).root
    assert f"another clone has a private memory: {first}" in memfs("-C", second, "init").err
    assert "region" not in memfs("-C", second, "recall", "Frankfurt").out
    with open_workspace(find_place(second, {}).root, watch=False) as workspace:
        workspace.store.put(MemoryItem("Backups go to Oslo.", "semantic", id="backups"))
    assert "'memfs init --join-private'" in memfs("-C", second, "status", "--private").err

    assert find_place(second, {}).root != folder
    assert "1 memory of this clone moved there, too" in memfs("-C", second, "init", "--join-private").err
    for clone in (first, second):
        assert find_place(clone, {}).root == folder
        assert "private:region" in memfs("-C", clone, "recall", "Frankfurt").out
        assert "private:backups" in memfs("-C", clone, "recall", "Oslo").out
    assert memfs("-C", second, "init", "--join-private").code == 2


def test_memory_whose_clone_is_gone_is_found_by_its_key(memfs: Memfs, clones: tuple[Path, Path]) -> None:
    """What a clone that was deleted had remembered is taken up by another one, by name where origins differ (C6)."""
    first, second = clones
    folder = find_place(str(first), {}).root
    first.rename(first.with_name("gone"))
    git(second, "remote", "set-url", "origin", "https://example.org/elsewhere.git")
    missing = memfs("-C", str(second), "init", "--join-private")
    assert (missing.code, "--join-private KEY" in missing.err) == (2, True)
    assert memfs("-C", str(second), "init", "--join-private", folder.name).code == 0
    assert "private:region" in memfs("-C", str(second), "recall", "Frankfurt").out


def test_an_unknown_id_is_looked_for_where_sharing_looks(memfs: Memfs, clones: tuple[Path, Path]) -> None:
    """What is private is listed by ``share``, not by ``list``."""
    ran = memfs("-C", str(clones[0]), "share", "nothere")
    assert (ran.code, "'memfs share' shows what there is" in ran.err) == (1, True)
