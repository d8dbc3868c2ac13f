"""``memfs import`` of what other memories keep: how it is asked for, and what is printed of it (B5)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memfs import open_workspace

from .conftest import Memfs, git

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def page(folder: Path, name: str, text: str) -> None:
    """A memory of Claude Code."""
    folder.mkdir(exist_ok=True)
    (folder / "MEMORY.md").touch()
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: {name}\ntype: project\n---\n{text}\n")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A memory folder of Claude Code."""
    page(tmp_path / "memory", "Ada", "Prefers tea")
    page(tmp_path / "memory", "Acme", "Delivers parcels")
    return tmp_path / "memory"


@pytest.fixture
def claude(root: Path, own_world: Path) -> Path:
    """Claude Code's memory of the workspace's project, in the person's home, and another project's."""
    name = re.sub("[^A-Za-z0-9]", "-", str(root.resolve()))
    folder = own_world / ".claude/projects" / name / "memory"
    for place, text in ((folder, "Never mock"), (folder.parent.parent / "-other/memory", "Never sleep")):
        place.mkdir(parents=True)
        (place / "MEMORY.md").write_text("- [Tests](feedback_tests.md) — tests\n")
        (place / "feedback_tests.md").write_text(
            f"---\nname: tests\ndescription: How to test\ntype: feedback\n---\n{text}\n"
        )
    return folder


def test_the_format_need_not_be_named(memory: Path, memfs: Memfs, root: Path) -> None:
    """A folder is recognised, its memories are stored and found, and the second time nothing is (B5)."""
    done = memfs("import", str(memory))
    assert (done.code, done.out) == (0, f"Imported 2 memories (2 knowledge) from claude-code, {memory}\n")
    assert "--reviewed" in done.err
    assert "Ada" in memfs("recall", "who prefers tea").out
    again = memfs("import", str(memory))
    assert again.out == f"Imported 0 memories from claude-code, {memory}; 2 there already\n"
    assert "Memfs-Source: import" in git(root, "log", "-1", "--format=%B")


def test_a_dry_run_shows_and_stores_nothing(memory: Path, memfs: Memfs, root: Path) -> None:
    """Each memory that would be stored has a line; no file and no commit is made (B5)."""
    before = git(root, "rev-parse", "HEAD")
    done = memfs("import", str(memory), "--dry-run")
    assert [line.split()[0] for line in done.out.splitlines()] == ["+", "+", "Would"]
    assert "Acme.md:6" in done.out
    assert git(root, "rev-parse", "HEAD") == before
    assert memfs("list").out == ""
    report = memfs("import", str(memory), "--dry-run", "--json").json
    assert (report["dry_run"], report["stored"], report["counts"]) == (True, 2, {"knowledge": 2})


def test_exports_of_memfs_have_a_dry_run_too(memfs: Memfs, root: Path, tmp_path: Path) -> None:
    """Documents, and lines that are memories, are counted and not stored (S19)."""
    with open_workspace(root, watch=False) as workspace:
        workspace.states.recorder.hypothesis({"id": "h-1", "rating": 1.0, "agent": "Scout"})
    memfs("export", str(tmp_path / "out.jsonl"))
    other = str(tmp_path / "other")
    memfs("init", other)
    assert memfs("-C", other, "import", str(tmp_path / "out.jsonl"), "--dry-run").out.startswith("Would import")
    nothing = memfs("-C", other, "export")
    assert (nothing.out, nothing.err.startswith("memfs: 0 memories to export;")) == ("", True)
    (tmp_path / "notes.jsonl").write_text('{"content": "x"}\n')
    done = memfs("import", str(tmp_path / "notes.jsonl"), "--dry-run")
    assert done.out == f"Would import 1 memory from {tmp_path / 'notes.jsonl'}\n"
    assert memfs("list").out == ""


def test_claude_codes_memory_of_this_project_needs_no_path(claude: Path, memfs: Memfs) -> None:
    """Only this project's memory is taken, and what a person looked through counts as reviewed (C6)."""
    done = memfs("import", "--from", "claude-code", "--reviewed")
    assert done.code == 0, done.err
    assert "--reviewed" not in done.err
    item = memfs("list", "--json").json["items"]
    assert [(one["content"], one["trust"], one["type"]) for one in item] == [("Never mock", "reviewed", "preference")]
    assert item[0]["origin"] == {"agent": "claude-code", "tool": "claude-code"}
    assert memfs("import", str(claude.parent.parent.parent), "--from", "claude-code").out.endswith("1 there already\n")


def test_all_working_trees_have_the_memory_of_the_first(claude: Path, memfs: Memfs, root: Path, tmp_path: Path) -> None:
    """Claude Code keeps one memory for a repository, whichever working tree it is started in (C6)."""
    memfs("commit")
    git(root, "worktree", "add", "-q", str(tmp_path / "second"))
    done = memfs("-C", str(tmp_path / "second"), "import", "--from", "claude-code", "--dry-run")
    assert (done.code, "Would import 1 memory (1 preference)" in done.out) == (0, True), done.err


def test_what_is_refused_skipped_kept_or_repeated_is_named(memfs: Memfs, tmp_path: Path, root: Path) -> None:
    """A secret is refused by its rule and never shown; exit code 1 says that something was (B6)."""
    path = tmp_path / "notes"
    page(path, "Key", f"The key is {SECRET}")
    page(path, "Ada", "Likes short answers")
    (path / "nothing.md").touch()
    done = memfs("import", str(path))
    assert done.code == 1
    assert "1 refused" in done.out
    assert f"skipped: {path}/nothing.md: it is empty" in done.err
    assert f"refused: {path}/Key.md:6: content: this looks like a GitHub" in done.err
    assert "or give a reason why it may stay: --allow-secret REASON\n" in done.err
    assert SECRET not in done.out + done.err
    (path / "Key.md").unlink()
    name = next(one["id"] for one in memfs("list", "--json").json["items"] if "short" in one["content"])
    place = next((root / "ContextMemory").rglob(f"{name}.yaml"))
    place.write_text(place.read_text().replace("short", "very short"))
    page(path, "Ada", "Likes long answers")
    kept = memfs("import", str(path))
    assert "1 edited here and left alone" in kept.out
    assert f"kept: {path}/Ada.md:6: {name} was edited here" in kept.err
    assert memfs("import", str(path), "--replace").out.startswith("Imported 0 memories from claude-code")
    assert "long" in place.read_text()
    report = memfs("import", str(path), "--json").json
    assert report["same"] == 1


def test_what_is_no_longer_in_its_source_stays(memfs: Memfs, tmp_path: Path) -> None:
    """A note that is gone there is not taken away here (B5)."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"# Note {name}\nText {name}\n")
    memfs("import", str(tmp_path))
    (tmp_path / "one.md").unlink()
    assert memfs("import", str(tmp_path)).out.startswith("Imported 0 memories")
    assert len(memfs("list", "--json").json["items"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a file or folder"),
        (("--from", "markdown"), "name a file or folder"),
        (("notes.jsonl", "--reviewed"), "--reviewed is for another tool's memories"),
        (("missing.jsonl",), "does not exist"),
        (("missing.md", "--from", "markdown"), "does not exist"),
        (("-", "--from", "markdown"), "cannot come from standard input"),
        (("--from", "claude-code"), "no memory of Claude Code"),
        ((".", "--from", "memfs"), "directory"),
        (("empty",), "no Markdown file"),
    ],
)
def test_what_cannot_be_imported_says_why(
    arguments: tuple[str, ...], message: str, memfs: Memfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong call or a missing file is one sentence, with the way out, and no traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.jsonl").write_text('{"content": "x"}\n')
    (tmp_path / "x.json").write_text("[]")
    done = memfs("import", *arguments)
    assert done.code in (1, 2)
    assert message in done.err
    assert memfs("list").out == ""


def test_what_is_wrong_with_every_line_is_reported_once(memfs: Memfs, root: Path) -> None:
    """A text that is not an export is refused with the remedy once, however many lines it has (X1)."""
    (root / "notes.txt").write_text("".join(f"{number} words of a text\n" for number in range(1, 31)))
    done = memfs("import", str(root / "notes.txt"))
    assert done.code != 0
    assert "30 left out" in done.out
    assert done.err.count("--from markdown") == 1
