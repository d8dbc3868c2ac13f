"""Reading history: log, diff and maintenance."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from memfs.admin.check import attribute_conflicts
from memfs.errors import HistoryUnavailable
from memfs.fs.journal import Writer
from memfs.git import commits
from memfs.git.commit_object import Group
from memfs.git.commits import due, maintain
from memfs.git.log import diff, differences, log

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"
ASIDE = "refs/heads/aside"
NEW = "ContextMemory/neu ü.yaml"


# -- log ----------------------------------------------------------------------------------------------------------
def test_a_log_says_who_what_and_why(world):
    """A revision carries author, committer, subject, body, trailers and the changed paths of the workspace."""
    message = "Learn a rule\n\nBecause it was asked."
    writers = (Writer(agent="claude", session="s1", source="hook"), Writer(agent="claude", session="s2"))
    group = Group(changes=(world.change(NEW, "1\n"),), message=message, writers=writers, time=datetime.now(UTC))
    world.commit(group)
    newest = log(world.repository)[0]
    assert (newest.author, newest.email, newest.committer) == ("claude", "claude@agent.memfs", "Ada Person")
    assert (newest.subject, newest.body, newest.paths) == ("Learn a rule", "Because it was asked.", (NEW,))
    assert newest.trailers == {"Memfs-Agent": ("claude",), "Memfs-Session": ("s1", "s2"), "Memfs-Source": ("hook",)}
    assert newest.commit.startswith(newest.short)
    assert newest.time == group.time.replace(microsecond=0)


def test_a_log_is_limited_to_memory_by_default(world):
    """Commits of code alone are left out; paths, limit and time narrow further."""
    world.git("commit", "--allow-empty", "-qm", "empty")
    world.write("src/main.c", "x\n", world.root)
    world.git("commit", "-qam", "code")
    world.commit(world.put(NEW, "1\n"))
    assert [one.subject for one in log(world.repository)] == ["Remember", "two"]
    assert [one.subject for one in log(world.repository, [ITEM])] == ["two"]
    assert [one.subject for one in log(world.repository, ["src"])] == ["code", "one"]
    assert len(log(world.repository, limit=1)) == 1
    assert log(world.repository, since=datetime.now(UTC) + timedelta(hours=1)) == []
    assert len(log(world.repository, since="1d")) == 2
    with pytest.raises(HistoryUnavailable):
        log(world.repository, since="--output=x")


def test_a_log_of_a_workspace_below_the_top_has_its_paths(make_world):
    """Paths are reported as the workspace knows them, and nothing outside it."""
    world = make_world(below="docs/team")
    world.write("src/main.c", "x\n", world.root)
    world.write(NEW, "1\n")
    world.git("add", ".")
    world.git("commit", "-qm", "both")
    assert log(world.repository)[0].paths == (NEW,)


def test_an_unborn_branch_has_an_empty_log(tmp_path):
    """No commit, no log, no error."""
    from memfs.git.repository import Repository

    assert log(Repository.create(tmp_path)) == []


def test_a_merge_lists_its_changes_against_the_first_parent(world):
    """What a merge brought in is what its own line did not have."""
    world.git("checkout", "-q", "-b", "side")
    world.commit(world.put(NEW, "1\n"), ref="refs/heads/side")
    world.git("checkout", "-q", "main")
    world.commit(world.put(ITEM, "2\n"))
    world.git("merge", "-q", "--no-edit", "side")
    assert NEW in diff(world.repository, "HEAD~1", "HEAD")
    found = {one.subject: one.paths for one in log(world.repository)}
    assert found.get("Merge branch 'side'", (NEW,)) == (NEW,)


# -- diff ---------------------------------------------------------------------------------------------------------
def test_a_diff_is_a_patch_that_git_applies(world):
    """Changes, new and removed files, missing last newlines, strange names: git turns the old tree into the new."""
    odd = 'ContextMemory/tab\tand "quote".yaml'
    world.commit(
        world.group(
            world.change(ITEM, "".join(f"{number}\n" for number in range(40))),
            world.change(NEW, "gone"),
            world.change("ContextMemory/end.yaml", "a\nb\u2028c"),
        )
    )
    lines = [f"{number}\n" for number in range(40)]
    lines[3], lines[30] = "three\n", "thirty\n"
    world.commit(
        world.group(
            world.change(ITEM, "".join(lines)),
            world.change(NEW, None),
            world.change("ContextMemory/end.yaml", "a\nb\u2028c\n"),
            world.change(odd, "x\r\ny\n"),
        )
    )
    patch = diff(world.repository, "HEAD~1", "HEAD")
    world.git("checkout", "-q", "HEAD~1")
    subprocess.run(["git", "apply", "--index", "-"], cwd=world.root, input=patch.encode(), check=True)
    assert world.git("write-tree") == world.git("rev-parse", "main^{tree}")


def test_a_diff_against_working_files_runs_no_filter(world, tmp_path):
    """Without a second revision the working files' own bytes are compared; links and big files are passed over."""
    world.git("config", "filter.evil.clean", f"touch '{tmp_path}/canary'")
    world.write(".gitattributes", "* filter=evil\n")
    world.write(ITEM, "title: edited\n")
    world.write(NEW, "1\n")
    os.symlink("/etc/passwd", world.root / "ContextMemory/link.yaml")
    os.mkfifo(world.root / "ContextMemory/pipe.yaml")
    patch = diff(world.repository, "HEAD")
    assert "-title: first\n+title: edited\n" in patch
    assert f"+++ b/{NEW}\n@@ -0,0 +1 @@\n+1\n" in patch
    assert "link.yaml" not in patch
    assert "pipe.yaml" not in patch
    assert not (tmp_path / "canary").exists()
    assert diff(world.repository, "HEAD", paths=[NEW]).count("diff --git") == 1
    (world.root / ITEM).unlink()
    assert "deleted file mode" in diff(world.repository, "HEAD", paths=["ContextMemory/memories"])


def test_equal_states_have_no_diff(world):
    """Nothing differs, nothing is said."""
    assert diff(world.repository, "HEAD") == ""
    assert diff(world.repository, "HEAD", "HEAD") == ""


def test_binary_files_are_named_only():
    """Content with zero bytes is not printed."""
    blobs = {"a": b"\0\1", "b": b"\0\2"}
    text = differences({"x": "a"}, {"x": "b"}, blobs.__getitem__)
    assert text.endswith("Binary files a/x and b/x differ\n")


def test_huge_files_are_compared_in_no_time():
    """Two large files that share their ends become one hunk instead of minutes of comparing."""
    old = b"".join(b"%d\n" % number for number in range(20_000))
    new = old.replace(b"\n10000\n", b"\nchanged\nand more\n")
    text = differences({"x": "old"}, {"x": "new"}, {"old": old, "new": new}.__getitem__)
    assert "@@ -9998,7 +9998,8 @@" in text
    assert "-10000\n+changed\n+and more\n 10001\n" in text


# -- maintenance and attributes -----------------------------------------------------------------------------------
def loose(world):
    """The loose objects of a repository."""
    return [path for path in (world.root / ".git/objects").glob("[0-9a-f][0-9a-f]/*") if path.is_file()]


def packs(world):
    """The packs of a repository."""
    return list((world.root / ".git/objects/pack").glob("*.pack"))


def test_maintenance_packs_and_keeps_everything(world):
    """Loose objects become a pack, the commit-graph gets changed paths, nothing is lost, the person's settings stay."""
    config = (world.root / ".git/config").read_bytes()
    for number in range(12):
        world.commit(world.put(NEW, f"{number}\n"))
    (world.root / "orphan").write_text("orphan")
    orphan = world.git("hash-object", "-w", "orphan").strip()
    before = world.git("rev-list", "--objects", "HEAD")
    assert len(loose(world)) > 30
    maintain(world.repository)
    assert (len(loose(world)), len(packs(world))) == (1, 1)
    assert world.git("rev-list", "--objects", "HEAD") == before
    assert world.git("cat-file", "-p", orphan) == "orphan"
    assert list((world.root / ".git/objects/info/commit-graphs").iterdir())
    assert (world.root / ".git/config").read_bytes() == config
    assert len(log(world.repository, [NEW])) == 12
    assert world.commit(world.put(NEW, "after\n"))
    world.check()


def test_many_packs_are_joined(world, monkeypatch):
    """Packs of large groups are joined once there are many."""
    monkeypatch.setattr(commits, "PACKS_DUE", 3)
    monkeypatch.setattr(commits, "PACKS_JOINED", 3)
    for group in range(3):
        changes = [world.change(f"ContextMemory/g{group}-{number}.yaml", f"{number}\n") for number in range(30)]
        world.commit(world.group(*changes))
    assert due(world.repository)
    maintain(world.repository)
    assert len(packs(world)) == 1
    assert not due(world.repository)
    world.check()


def test_packs_of_imports_are_joined_by_differences_and_keep_what_is_unreachable(world):
    """After several large imports each version is stored as a difference, and nothing is dropped."""
    for group in range(8):
        text = "".join(f"line {number} of what every item says\n" for number in range(200))
        changes = [
            world.change(f"ContextMemory/s{number}.yaml", f"{text}{number * 7919 + group}\n") for number in range(30)
        ]
        world.commit(world.group(*changes))
    world.git("checkout", "-q", "-b", "aside")
    world.commit(world.group(*[world.change(f"aside{number}.yaml", f"{number}\n") for number in range(30)]), ref=ASIDE)
    orphan = world.git("rev-parse", "aside:aside3.yaml").strip()
    tip = world.git("rev-parse", "aside").strip()
    world.git("checkout", "-q", "main")
    world.git("update-ref", "-d", ASIDE)
    world.git("reflog", "expire", "--expire=now", "--all")
    assert len(packs(world)) == 9
    freed = maintain(world.repository)
    assert len(packs(world)) == 1
    assert freed > packs(world)[0].stat().st_size
    assert world.git("cat-file", "-p", orphan) == "3\n"
    assert world.git("cat-file", "-t", tip) == "commit\n"
    world.check()


def test_maintenance_of_an_empty_repository_does_nothing(tmp_path):
    """There is nothing to pack before the first commit."""
    from memfs.git.repository import Repository

    assert maintain(Repository.create(tmp_path)) == 0


def test_maintenance_is_due_after_about_a_thousand_commits(world, monkeypatch):
    """Loose objects are counted in a sample of folders."""
    assert not due(world.repository)
    monkeypatch.setattr(commits, "LOOSE_DUE", 100)
    for name in ("17", "5e"):
        folder = world.root / ".git/objects" / name
        folder.mkdir(exist_ok=True)
        for number in range(2):
            (folder / f"{number:038}").touch()
    assert due(world.repository)


def test_attributes_that_would_change_bytes_are_named(world, tmp_path):
    """text, filter, ident and working-tree-encoding are conflicts unless unset; asking runs no filter."""
    world.git("config", "filter.evil.clean", f"touch '{tmp_path}/canary'")
    assert attribute_conflicts(world.repository, [ITEM, NEW]) == []
    world.write(".gitattributes", "*.yaml text filter=evil\n")
    found = attribute_conflicts(world.repository, [ITEM, "memfs.toml"])
    assert [(error.path, error.message) for error in found] == [
        (ITEM, "the git attribute text is set"),
        (ITEM, "the git attribute filter is evil"),
    ]
    world.write("ContextMemory/.gitattributes", "* -text -filter -ident -working-tree-encoding\n")
    assert attribute_conflicts(world.repository, [ITEM]) == []
    assert not (tmp_path / "canary").exists()
