"""The merge driver, called by git itself in two real clones (K4, B3)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from twoclones import CONTEXT, ITEM, RESULT, Clone, Done, clones, joining, memfs, pristine

from memfs import MemoryItem, open_workspace
from memfs.admin import store_builder
from memfs.doors.cli.app import run
from memfs.errors import StorageFull
from memfs.team.merge_driver import drive, give_up, place_of

__all__ = ["clones", "joining", "memfs", "pristine"]

Memfs = Callable[..., Done]
Two = tuple[Clone, Clone]


# -- joining ------------------------------------------------------------------------------------------------------
def test_independent_edits_join_without_a_conflict(joining: Two) -> None:
    """Two people who change different fields, lines and tags merge with git alone, and both edits are there (B3)."""
    ada, bo = joining
    for one in joining:
        one.install()  # the command that people have
    ada.edit("Frankfurt", "Vienna")
    ada.edit("tags:", "# Ada: no others\ntags:")
    bo.edit("importance: 2", "importance: 5")
    bo.edit("graphs", "graphs and logs")
    bo.edit("- ops", "- ops\n- night")
    done = bo.pull(ada)
    assert done.err == ""
    assert "Deploy to Vienna on Tuesdays.\n  Ask Bo first.\n  Then watch the graphs and logs." in bo.read()
    assert "# Ada: no others\ntags:\n- ops\n- night\n" in bo.read()
    assert "importance: 5" in bo.read()
    assert "conflicts" not in bo.read()
    ada.pull(bo)
    assert ada.read() == bo.read()


def test_a_contradiction_is_recorded_and_travels(joining: Two, memfs: Memfs) -> None:
    """Where both change one field, git merges, one value wins, the other is recorded, and everybody sees it (B3)."""
    ada, bo = joining
    ada.edit("title: Deploy target", "title: Where we deploy")
    bo.edit("title: Deploy target", "title: Where to deploy")
    done = bo.pull(ada)
    assert f"memfs: {ITEM}: both sides changed title" in done.err
    assert bo.clean()
    assert "kept: Where we deploy" in bo.read() or "kept: Where to deploy" in bo.read()
    ada.pull(bo)
    assert ada.read() == bo.read()
    shown = memfs(ada, "team", "conflicts", "--json").json
    assert [one["id"] for one in shown["items"]] == ["deploy"]
    recorded = shown["items"][0]["conflicts"][0]
    assert [recorded[name] for name in ("field", "kept", "lost")] == ["title", "Where we deploy", "Where to deploy"]
    assert memfs(ada, "status", "--json").json["merges"] == {"conflicts": 0, "waiting": 1, "driver": True}
    assert "two values of title in deploy" in memfs(ada, "team", "conflicts").out


@pytest.mark.parametrize("way", ["rebase", "cherry-pick", "revert", "stash"])
def test_git_joins_by_field_whatever_it_is_doing(joining: Two, way: str) -> None:
    """Rebase, cherry-pick, revert and stash pop go through the driver as a merge does (B3)."""
    ada, bo = joining
    ada.edit("- ops", "- ops\n- night")
    bo.git("fetch", "--quiet", str(ada.root), "main")
    if way == "stash":
        bo.write(bo.read().replace("- ops", "- ops\n- bo"))
        bo.git("stash", "--quiet")
        bo.git("merge", "--quiet", "FETCH_HEAD")
        bo.git("stash", "pop", "--quiet")
    elif way == "revert":
        bo.git("merge", "--quiet", "FETCH_HEAD")
        bo.edit("- night", "- night\n- bo")
        bo.git("revert", "--no-edit", "HEAD~1")
    else:
        bo.edit("- ops", "- ops\n- bo")
        bo.git(way, "FETCH_HEAD")
    assert "- bo\n" in bo.read()
    assert ("- night\n" in bo.read()) == (way != "revert")
    assert "<<<" not in bo.read()


def test_a_criss_cross_counts_nothing_twice(joining: Two) -> None:
    """Git's common ancestor of two merges is joined by field, too, and records nothing for a person to decide."""
    ada, bo = joining
    ada.edit("- ops", "- ops\n- ada")
    bo.edit("importance: 2", "importance: 4")
    first, second = ada.git("rev-parse", "HEAD").out.strip(), bo.git("rev-parse", "HEAD").out.strip()
    for one, other, commit in ((ada, bo, second), (bo, ada, first)):
        one.git("fetch", "--quiet", str(other.root), "main")
        one.git("merge", "--quiet", "--no-edit", commit)
    ada.edit("- ada", "- ada\n- later")
    bo.edit("importance: 4", "importance: 6")
    bo.pull(ada)
    assert "tags:\n- ops\n- ada\n- later\n" in bo.read()
    assert "importance: 6" in bo.read()
    assert "conflicts" not in bo.read()


# -- state documents ----------------------------------------------------------------------------------------------
def test_a_contradiction_in_a_state_document_stops_git(joining: Two, memfs: Memfs) -> None:
    """A JSON document cannot hold its conflict: git stops, the joined file is valid, and resolve decides (B3)."""
    ada, bo = joining
    for one, name in ((ada, "h2"), (bo, "h3")):
        one.edit('"winner": "h1"', f'"winner": "{name}"', RESULT)
        one.edit('"h1"', f'"h1",\n    "{name}"', RESULT)
    done = bo.pull(ada, code=1)
    assert "both sides changed winner" in done.err
    assert sorted(json.loads(bo.read(RESULT))["participants"]) == ["h1", "h2", "h3"]
    (shown,) = memfs(bo, "team", "conflicts", "--json").json["open"]
    assert shown["path"] == RESULT
    (taken,) = memfs(bo, "team", "conflicts", "resolve", "--all", "--json").json["files"]
    assert [(one["field"], {one["kept"], one["lost"]}) for one in taken["conflicts"]] == [("winner", {"h2", "h3"})]
    bo.git("commit", "--quiet", "--no-edit")
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 0
    assert bo.clean()


def test_a_merge_that_was_given_up_leaves_nothing(joining: Two, memfs: Memfs) -> None:
    """While a merge goes on its conflicts are open; where it is aborted, they are gone."""
    ada, bo = joining
    ada.edit('"winner": "h1"', '"winner": "h2"', RESULT)
    bo.edit('"winner": "h1"', '"winner": "h3"', RESULT)
    bo.pull(ada, code=1)
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 1
    bo.git("merge", "--abort")
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 0
    assert bo.clean()


def test_a_contradiction_in_a_context_stops_git(joining: Two, memfs: Memfs) -> None:
    """Whichever side is kept, the other value is named before, and in history (B3)."""
    ada, bo = joining
    ada.edit("staging", "vienna", CONTEXT)
    bo.edit("staging", "linz", CONTEXT)
    done = bo.pull(ada, code=1)
    assert f"{CONTEXT}: both sides changed values.target" in done.err
    assert memfs(bo, "team", "conflicts", "resolve", CONTEXT, "--keep", "theirs").code == 0
    assert bo.read(CONTEXT) == "values:\n  target: vienna\n"
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()


def test_a_merge_of_memfs_names_what_it_did_not_keep(joining: Two) -> None:
    """What sync joins cannot stop half-way: the later value wins, and the result names the other (B3)."""
    ada, bo = joining
    ada.edit("staging", "vienna\n  zone: a", CONTEXT)
    bo.edit("staging", "linz\n  zone: b", CONTEXT)
    bo.git("fetch", "--quiet", str(ada.root), "main")
    with open_workspace(bo.root, watch=False) as workspace:
        tip = bo.git("rev-parse", "FETCH_HEAD").out.strip()
        found = workspace.teams.merger.merge(tip, "Join").conflicts
        assert [{one.kept, one.lost} for one in found] == [{"linz", "vienna"}, {"a", "b"}]
        assert workspace.teams.resolver.waiting().count == 0


# -- what cannot be joined ----------------------------------------------------------------------------------------
def test_a_version_that_cannot_be_read_leaves_markers(joining: Two, memfs: Memfs) -> None:
    """What is not YAML is joined as text, as git would; the last good version is served meanwhile (row 43)."""
    ada, bo = joining
    ada.edit("importance: 2", "importance: [2")
    bo.edit("importance: 2", "importance: 3")
    done = bo.pull(ada, code=1)
    assert ITEM in done.err
    assert "<<<<<<< ours\n" in bo.read()
    assert "Deploy to Frankfurt" in memfs(bo, "recall", "deploy target").out
    assert memfs(bo, "team", "conflicts", "resolve", "deploy").code == 1
    assert memfs(bo, "team", "conflicts", "resolve", "deploy", "--keep", "ours").code == 0
    bo.git("commit", "--quiet", "--no-edit")
    assert "importance: 3" in bo.read()


def test_whatever_goes_wrong_both_versions_are_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An error of memfs's own is one line and exit code 1, and leaves nothing out (B3)."""
    names = [str(tmp_path / name) for name in ("base", "ours", "theirs")]
    for name, text in zip(names, ("a: 1\n", "a: 2\nb: 1\n", "a: 3\nb: 1\n"), strict=True):
        Path(name).write_text(text)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom \x1b[31m")

    monkeypatch.setattr("memfs.doors.cli.merge_driver.drive", broken)
    assert run(("merge-driver", *names, "--path", ITEM)) == 1
    assert Path(names[1]).read_text() == "<<<<<<< ours\na: 2\nb: 1\n=======\na: 3\nb: 1\n>>>>>>> theirs\n"
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "boom \\u{1B}[31m" in err


def test_without_the_program_git_joins_as_text(joining: Two) -> None:
    """A driver that is gone leaves git's own markers, never our version alone."""
    ada, bo = joining
    line = bo.git("config", "merge.memfs.driver").out.strip()
    bo.git("config", "merge.memfs.driver", line.replace("memfs;", "memfs-gone;").replace("m=memfs", "m=memfs-gone"))
    ada.edit("Frankfurt", "Vienna")
    bo.edit("Frankfurt", "Linz")
    bo.pull(ada, code=1)
    assert "<<<<<<< ours\n" in bo.read()
    assert "Vienna" in bo.read()
    assert "Linz" in bo.read()


def test_it_touches_nothing_but_its_three_files(joining: Two, tmp_path: Path) -> None:
    """Called in the middle of anything it opens no workspace: no lock, no journal, no index; git is only asked (B3)."""
    ada, _ = joining
    names = [tmp_path / name for name in ("base", "ours", "theirs")]
    for name, own in zip(names, ("", "pinned: true\n", "status: x\n"), strict=True):
        name.write_text(ada.read() + own)
    before = {path: path.lstat().st_mtime_ns for path in ada.root.rglob("*")}
    code = (
        "import sys, pathlib; from memfs.team.merge_driver import drive; sys.addaudithook(lambda name, given: "
        "(name in ('os.fork', 'socket.connect') or name == 'subprocess.Popen' and 'cat-file' not in given[1]) "
        "and sys.exit(name));"
        f"print(drive(*map(pathlib.Path, {[str(name) for name in names]!r}), {ITEM!r}).code, "
        "[one for one in ('git', 'whoosh', 'memfs.workspace') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ada.root, capture_output=True, text=True, check=True)
    assert done.stdout == "0 []\n"
    assert {"pinned: true", "status: x"} <= set(names[1].read_text().splitlines())
    assert {path: path.lstat().st_mtime_ns for path in ada.root.rglob("*")} == before


def test_a_common_ancestor_is_nobodys_to_decide(clones: Two, tmp_path: Path) -> None:
    """Longer markers say that git makes an ancestor: a conflict in it is kept nowhere. One more: a file moved."""
    ada, _ = clones
    names = [tmp_path / name for name in ("base", "ours", "theirs")]
    for name, winner in zip(names, ("h1", "h2", "h3"), strict=True):
        name.write_text(ada.read(RESULT).replace('"winner": "h1"', f'"winner": "{winner}"'))
    kept = names[1].read_text()
    for size, code in ((9, 0), (8, 1), (7, 1)):
        names[1].write_text(kept)
        assert drive(*names, RESULT, marker_size=size, top=ada.root).code == code


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        (ITEM, "", ITEM),
        (f"deep/er/{ITEM}", "deep/er", ITEM),
        ("notes/memfs.toml", "notes", "memfs.toml"),
        ("ContextMemory/memories/note/ContextMemory/x.yaml", "", "ContextMemory/memories/note/ContextMemory/x.yaml"),
    ],
)
def test_the_workspace_is_where_its_folder_begins(path: str, root: str, inside: str) -> None:
    """A workspace may be below the top of the work tree; git names files from there."""
    assert place_of(path) == (root, inside)


def test_giving_up_ends_lines(tmp_path: Path) -> None:
    """Markers are on lines of their own, also where a version does not end its last line."""
    for name, text in (("ours", "a"), ("theirs", "b")):
        (tmp_path / name).write_text(text)
    assert give_up(tmp_path / "ours", tmp_path / "theirs", ITEM, "why").code == 1
    assert (tmp_path / "ours").read_text() == "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"


# -- installing ---------------------------------------------------------------------------------------------------
def test_the_driver_is_called_wherever_memfs_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a space nor a quote, nor a sign that git's shell line gives a meaning to, hides the program (row 17)."""
    script = tmp_path / "Ada's 50%Off tools" / "memfs"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    first = store_builder.driver_command().partition(";")[0]
    assert "50%%Off" in first  # git makes one of the two, and %O would be a file
    shown = subprocess.run(["sh", "-c", f'{first}; printf %s "$m"'], capture_output=True, check=True, text=True).stdout
    assert shown.replace("%%", "%") == str(script)


def test_check_names_a_missing_driver_and_init_installs_it(clones: Two, memfs: Memfs) -> None:
    """Opening a clone changes no configuration; status and check say what is missing, init installs it, once (B3)."""
    ada, _ = clones
    config = ada.root / ".git/config"
    before = config.read_bytes()
    with open_workspace(ada.root, create=True, watch=False) as workspace:
        assert workspace.store.count() == 1
    assert "memfs init" in memfs(ada, "status").out
    found = {problem["code"]: problem for problem in memfs(ada, "check", "--json").json["problems"]}
    assert found["MergeDriverMissing"]["severity"] == "warning"
    assert config.read_bytes() == before
    assert memfs(ada, "init", "--json").json["merge_driver"] is True
    after = config.read_bytes()
    assert after.startswith(before + b'[merge "memfs"]\n')
    assert memfs(ada, "init", "--json").json["merge_driver"] is False
    assert config.read_bytes() == after
    assert memfs(ada, "check", "--json").json["problems"] == []
    assert "merges" not in memfs(ada, "status").out


def test_check_fix_adds_what_is_missing(clones: Two, memfs: Memfs) -> None:
    """Attributes of a workspace that knew no driver get its lines below their own; a person's choice is kept."""
    ada, _ = clones
    name = "ContextMemory/.gitattributes"
    ada.write("# mine\n* -text -filter -ident -working-tree-encoding", name)
    ada.commit()
    codes = {problem["code"] for problem in memfs(ada, "check", "--json").json["problems"]}
    assert {"MergeAttributeMissing", "MergeDriverMissing"} <= codes
    assert memfs(ada, "check", "--fix").code == 0
    assert ada.read(name).startswith("# mine\n* -text -filter -ident -working-tree-encoding\n*.yaml merge=memfs\n")
    assert ada.git("check-attr", "merge", ITEM).out == f"{ITEM}: merge: memfs\n"
    assert memfs(ada, "check", "--json").json["problems"] == []
    ada.write("* -text -filter -ident -working-tree-encoding\n*.yaml -merge\n", name)
    ada.commit()
    assert memfs(ada, "check", "--json").json["problems"] == []


def test_a_configuration_that_is_a_link_to_elsewhere_stays(clones: Two, memfs: Memfs, tmp_path: Path) -> None:
    """Nothing is written through a link that leads out of the repository (row 41)."""
    ada, _ = clones
    config, elsewhere = ada.root / ".git/config", tmp_path / "elsewhere"
    elsewhere.write_bytes(config.read_bytes())
    config.unlink()
    config.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    done = memfs(ada, "init")
    assert done.code == 1
    assert "not a regular file" in done.err
    assert elsewhere.read_bytes() == before


def test_a_linked_working_tree_shares_the_driver(joining: Two, memfs: Memfs) -> None:
    """A second working tree needs no setting of its own, and merges by field (B3)."""
    ada, bo = joining
    tree = Clone(ada.root.parent / "tree")
    ada.git("worktree", "add", "--quiet", "-b", "side", str(tree.root))
    assert memfs(tree, "status", "--json").json["merges"]["driver"] is True
    bo.edit("- ops", "- ops\n- bo")
    tree.edit("- ops", "- ops\n- tree")
    tree.pull(bo)
    assert {"- bo", "- tree"} <= set(tree.read().splitlines())


def test_a_full_disk_leaves_it_to_git(joining: Two, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where not even the markers can be written, the exit code tells git's shell to try by itself (row 25)."""
    ada, _ = joining
    names = [tmp_path / name for name in ("base", "ours", "theirs")]
    for name, text in zip(names, ("x", "y", "z"), strict=True):
        name.write_text(ada.read().replace("Frankfurt", text))

    def full(*_: object, **__: object) -> None:
        raise StorageFull("no room left", path="ours")

    monkeypatch.chdir(ada.root)
    monkeypatch.setattr("memfs.fs.io.write_file", full)
    assert run(("merge-driver", *map(str, names), "--path", ITEM)) == 3
    assert "Deploy to y" in names[1].read_text()


def test_a_workspace_below_the_top_of_its_repository(tmp_path: Path, git: Callable[..., str]) -> None:
    """Git names files from the top of the work tree; kinds and the state folder are found all the same (B3)."""
    top = Clone(tmp_path / "code")
    top.root.mkdir()
    top.git("init", "--quiet")
    with open_workspace(top.root / "notes/memory", create=True, watch=False) as workspace:
        workspace.store.put(MemoryItem("Deploy on Tuesdays", "semantic", id="deploy", title="Deploy"))
        workspace.store.flush()
    path = next(top.root.glob("notes/memory/ContextMemory/memories/**/deploy.yaml")).relative_to(top.root).as_posix()
    top.git("switch", "--quiet", "-c", "side")
    top.edit("title: Deploy", "title: Deploys", path)
    top.git("switch", "--quiet", "main")
    top.edit("trust: human", "trust: human\nimportance: 3", path)
    git(top.root, "merge", "--quiet", "--no-edit", "side")
    assert "title: Deploys" in top.read(path)
    assert "importance: 3" in top.read(path)
