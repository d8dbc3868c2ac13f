"""check --integrity, check --fix, and what recall and list say of damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.faults import rot
from memfs.workspace import open_workspace

from .conftest import Memfs


@pytest.fixture
def damaged(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of one of two items, in which the disk turned a bit over."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: "ext4")
    memfs("remember", "the dog sleeps", "--id", "dog")
    path = str(memfs("remember", "the cat sleeps", "--id", "cat", "--json").json["path"])
    with open_workspace(root, watch=False) as workspace:
        rot(workspace, path, ((root / path).read_bytes().index(b"cat") + 1) * 8)
        workspace.store.fold()
    return path


def test_recall_and_list_say_what_is_missing(damaged: str, memfs: Memfs) -> None:
    """Where the file itself is read it is left out; ``partial`` and a remark that names the file say so (S18)."""
    shown = memfs("recall", "sleeps", "--json", "--set", "index.texts=false")
    assert ([hit["id"] for hit in shown.json["hits"]], shown.json["partial"]) == (["dog"], True)
    assert f"results may be incomplete: 1 file cannot be read: {damaged}" in shown.err
    listed = memfs("list", "--json")
    assert ([item["id"] for item in listed.json["items"]], listed.json["partial"]) == (["dog"], True)
    assert damaged in memfs("list").err
    refused = memfs("show", "cat")
    assert (refused.code, refused.out) == (1, "")
    assert "expected" in refused.err
    assert "memfs check --fix" in refused.err


def test_a_hit_of_a_damaged_file_has_the_text_that_was_written(damaged: str, memfs: Memfs) -> None:
    """The catalog knows what was written, and never quotes what the disk made of it (S18)."""
    shown = memfs("recall", "sleeps", "--json")
    texts = {hit["id"]: hit["content"] for hit in shown.json["hits"]}
    assert (texts, shown.json["partial"]) == ({"cat": "the cat sleeps", "dog": "the dog sleeps"}, False)
    assert memfs("show", "cat").code == 1


def test_an_answer_that_lacks_nothing_is_not_partial(root: Path, memfs: Memfs) -> None:
    """Without damage neither key nor remark appears to warn."""
    memfs("remember", "the dog sleeps")
    assert memfs("list", "--json").json["partial"] is False
    assert "missing" not in memfs("recall", "dog").err


def test_check_integrity_ends_with_0_1_or_2(damaged: str, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage is 1, a whole workspace is 0, what could not be examined is 2: never the same answer (S18)."""
    found = memfs("check", "--integrity", "--json")
    assert (found.code, [problem["code"] for problem in found.json["problems"]]) == (1, ["CorruptItem"])
    assert memfs("check", "--fix").code == 0
    clean = memfs("check", "--integrity")
    assert (clean.code, clean.out) == (0, "No problems found\n")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("memfs.git.process.git_program", _no_git)
    unclear = memfs("check", "--integrity", "--json")
    assert unclear.code == 2, unclear
    assert {problem["severity"] for problem in unclear.json["problems"]} == {"unknown"}
    assert "could not be checked" in memfs("check", "--integrity").out


def _no_git() -> str:
    from memfs.errors import GitFailed

    raise GitFailed("git is not installed")


def test_fix_says_what_it_did(root: Path, damaged: str, memfs: Memfs) -> None:
    """--fix names source and copy of what it repaired; afterwards nothing is left to do."""
    done = memfs("check", "--fix", "--json")
    (row,) = (one for one in done.json["repairs"] if one["path"] == damaged)
    assert (done.code, row["path"], row["done"]) == (0, damaged, True)
    assert row["sentence"].startswith("restored from commit ")
    assert "the cat sleeps" in memfs("show", "cat").out
    (kept,) = memfs("restore", "--displaced", "--json").json["recoverable"]
    assert kept["path"] == damaged
    again = memfs("check", "--fix")
    assert (again.code, again.out.endswith("No problems found\n")) == (0, True), again.out


def test_a_named_item_gets_its_last_good_version_back(root: Path, damaged: str, memfs: Memfs) -> None:
    """A person's invalid edit is left alone until they name the item; only what is named is then checked."""
    dog = root / memfs("show", "dog", "--json").json["path"]
    good = dog.read_bytes()
    dog.write_text("content: [\n")
    assert [one["path"] for one in memfs("check", "dog", "--json").json["problems"]] == [str(dog.relative_to(root))]
    left = memfs("check", "--fix")
    assert (left.code, f"'memfs check --fix {dog.relative_to(root)}' brings back" in left.out) == (1, True)
    assert dog.read_text() == "content: [\n"
    fixed = memfs("check", "--fix", "dog")
    assert (fixed.code, fixed.out.splitlines()[-1]) == (0, "No problems found")
    assert dog.read_bytes() == good
    missing = memfs("check", "nobody")
    assert (missing.code, "nobody" in missing.err) == (2, True)
    assert "'memfs list' shows what there is" in missing.err
    assert "restore" not in missing.err


def test_check_fix_repairs_rot_too(damaged: str, memfs: Memfs) -> None:
    """--fix together with --integrity brings rot back, too, and says so."""
    ran = memfs("check", "--fix", "--integrity", "--json")
    assert ran.code == 0
    assert any(
        row["path"] == damaged and row["sentence"].startswith("restored from commit ") and row["done"]
        for row in ran.json["repairs"]
    )
