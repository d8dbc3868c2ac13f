"""An item that git takes for another one, renamed: each keeps what is its own (B3)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from twoclones import ITEM, TEXT, Clone, Done, clones, joining, memfs, pristine

from memfs.format.codec import Codec
from memfs.format.file_merge import FileMerger
from memfs.format.schema import Schemas
from memfs.model.kinds import KindTable

__all__ = ["clones", "joining", "memfs", "pristine"]

Memfs = Callable[..., Done]
Two = tuple[Clone, Clone]

OTHER = ITEM.replace("deploy", "rollback")
OTHER_TEXT = TEXT.replace("Deploy target", "Rollback target").replace("10:00:00Z", "11:30:00Z")
TWIN_TEXT = TEXT.replace("Deploy target", "Rollback target").replace("Deploy to Frankfurt", "Roll back in Vienna")
"""Created in the same second: only the commits tell whose it is."""


def forget_and_remember(clone: Clone, text: str = OTHER_TEXT) -> None:
    """In one commit, forget an item and remember one much like it."""
    (clone.root / ITEM).unlink()
    clone.write(text, OTHER)
    clone.commit("Forget one, remember another")


def is_parted(clone: Clone, text: str = OTHER_TEXT) -> bool:
    """Whether the new item is as it was written, and the forgotten one is there with the edit, for a decision."""
    kept = clone.read()
    return clone.read(OTHER) == text and "on Fridays" in kept and "lost: deleted" in kept


@pytest.mark.parametrize("text", [OTHER_TEXT, TWIN_TEXT], ids=["known by created", "known by the commits"])
def test_both_ways_of_a_merge_part_them(joining: Two, memfs: Memfs, text: str) -> None:
    """What one side changed of a forgotten item never comes into another one; both ways give the same."""
    ada, bo = joining
    forget_and_remember(ada, text)
    bo.edit("on Tuesdays", "on Fridays")
    before = bo.git("rev-parse", "HEAD").out.strip()
    assert "took it for another item" in bo.pull(ada, code=1).err
    assert bo.read(OTHER) == text
    listed = memfs(bo, "team", "conflicts", "--json").json["open"]
    assert [one["path"] for one in listed] == [ITEM, OTHER]
    assert memfs(bo, "team", "conflicts", "resolve", "rollback", "deploy").code == 0
    ada.git("fetch", "--quiet", str(bo.root), before)
    ada.git("merge", "--quiet", "--no-edit", "FETCH_HEAD", code=1)
    assert memfs(ada, "team", "conflicts", "resolve", "--all").code == 0
    for clone in (ada, bo):
        assert is_parted(clone, text)
        clone.git("commit", "--quiet", "--no-edit")
        assert clone.clean()
    assert ada.git("rev-parse", "HEAD^{tree}").out == bo.git("rev-parse", "HEAD^{tree}").out


@pytest.mark.parametrize(("way", "text"), [("rebase", OTHER_TEXT), ("rebase", TWIN_TEXT), ("cherry-pick", OTHER_TEXT)])
def test_whatever_git_is_doing(joining: Two, memfs: Memfs, way: str, text: str) -> None:
    """A rebase and a cherry-pick are brought to an end like a merge."""
    ada, bo = joining
    forget_and_remember(ada, text)
    bo.edit("on Tuesdays", "on Fridays")
    bo.git("fetch", "--quiet", str(ada.root), "main")
    bo.git(way, "FETCH_HEAD", code=1)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert is_parted(bo, text)
    bo.git("-c", "core.editor=true", way, "--continue")
    assert bo.clean()


def test_a_revert_brings_in_the_parent(joining: Two, memfs: Memfs) -> None:
    """Taken back is what was forgotten: it comes back, and the other one stays as it was edited since."""
    _, bo = joining
    forget_and_remember(bo)
    bo.edit("Rollback target", "Where to roll back", OTHER)
    bo.git("revert", "--no-edit", "HEAD~1", code=1)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert "title: Deploy target" in bo.read()
    assert "title: Where to roll back" in bo.read(OTHER)
    bo.git("-c", "core.editor=true", "revert", "--continue")
    assert bo.clean()


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_side_taken_whole_takes_away_no_item_that_nobody_contests(joining: Two, memfs: Memfs, side: str) -> None:
    """Only about the forgotten item there is a choice."""
    ada, bo = joining
    forget_and_remember(ada)
    bo.edit("on Tuesdays", "on Fridays")
    bo.pull(ada, code=1)
    assert memfs(bo, "team", "conflicts", "resolve", "deploy", "--keep", side).code == 0
    assert bo.read(OTHER) == OTHER_TEXT
    assert (bo.root / ITEM).exists() == (side == "ours")


def test_both_end_together_or_neither(joining: Two, memfs: Memfs, tmp_path: Path) -> None:
    """Git knows of the forgotten item by the other's entry alone: while the one cannot be written, that stays."""
    ada, bo = joining
    forget_and_remember(ada)
    bo.edit("on Tuesdays", "on Fridays")
    bo.pull(ada, code=1)
    (bo.root / ITEM).unlink(missing_ok=True)
    (bo.root / ITEM).symlink_to(tmp_path)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 1
    assert len(memfs(bo, "team", "conflicts", "--json").json["open"]) == 2
    (bo.root / ITEM).unlink()
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert is_parted(bo)


def test_where_the_other_place_is_unknown_a_person_decides(joining: Two, memfs: Memfs) -> None:
    """A stash names no commit: the file is left as it is until one version is taken whole."""
    ada, bo = joining
    forget_and_remember(ada)
    bo.write(TEXT.replace("on Tuesdays", "on Fridays"))
    bo.git("stash", "--quiet")
    bo.pull(ada)
    bo.git("stash", "pop", "--quiet", code=1)
    asked = memfs(bo, "team", "conflicts", "resolve", "--all")
    assert "git took it for another item; take one with --keep ours or --keep theirs" in asked.out + asked.err
    assert bo.read(OTHER) == OTHER_TEXT
    assert memfs(bo, "team", "conflicts", "resolve", "--all", "--keep", "ours").code == 0
    assert bo.read(OTHER) == OTHER_TEXT
    assert "on Fridays" in bo.git("stash", "show", "-p").out


@pytest.mark.parametrize("second", [0, 1], ids=["one commit", "two commits"])
def test_an_item_that_was_moved_and_edited_is_not_taken_for_a_forgotten_one(
    joining: Two, memfs: Memfs, monkeypatch: pytest.MonkeyPatch, second: int
) -> None:
    """Git follows only what both sides changed: the place of one that a side moved looks like the forgotten one's.

    Where each side brought in the moved one by a commit of its own no version is common: what gave way is recorded.
    """
    ada, bo = joining
    for number, clone in enumerate((ada, bo)):
        for date in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
            monkeypatch.setenv(date, f"2026-03-02T10:00:0{number * second}Z")
        clone.write(TWIN_TEXT, OTHER)
        clone.commit("Both know another item")
    there = OTHER.replace("semantic", "procedural")
    (ada.root / there).parent.mkdir(parents=True)
    ada.git("mv", OTHER, there)
    ada.git("rm", "--quiet", ITEM)
    ada.edit("Ask Bo first", "Ask Ada first", there)
    bo.edit("on Tuesdays", "on Fridays")
    bo.pull(ada, code=1)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    if second:
        assert "lost: Ask Ada first." in bo.read(OTHER)
        return
    assert bo.read(there) == TWIN_TEXT.replace("Ask Bo first", "Ask Ada first")
    assert not (bo.root / OTHER).exists()
    assert "on Fridays" in bo.read()
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()


@pytest.mark.parametrize("way", ["merge", "rebase", "cherry-pick"])
def test_an_item_that_was_forgotten_and_remembered_again_is_the_same(joining: Two, memfs: Memfs, way: str) -> None:
    """Under its old id it has another ``created``, and is joined by fields all the same."""
    ada, bo = joining
    ada.edit("10:00:00Z", "12:00:00Z")
    ada.edit("Deploy target", "Where to deploy")
    bo.edit("on Tuesdays", "on Fridays")
    bo.git("fetch", "--quiet", str(ada.root), "main")
    if way == "merge":
        bo.git("merge", "--quiet", "--no-edit", "FETCH_HEAD")
    else:
        bo.git(way, "FETCH_HEAD" if way == "rebase" else "FETCH_HEAD~1", code=0 if way == "rebase" else 1)
        if way == "cherry-pick":
            assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert ("title: Where to deploy" in bo.read()) == (way != "cherry-pick")
    assert "12:00:00Z" in bo.read()
    assert "on Fridays" in bo.read()


def test_a_moved_item_is_no_other(joining: Two) -> None:
    """An item that one side moved to another kind, and the other changed, is joined without a question."""
    ada, bo = joining
    there = ITEM.replace("semantic", "procedural")
    (ada.root / there).parent.mkdir(parents=True)
    ada.git("mv", ITEM, there)
    ada.commit("Move it")
    bo.edit("Deploy to Frankfurt on Tuesdays", "Wait")
    bo.edit("Deploy target", "When to deploy")
    bo.pull(ada)
    assert not (bo.root / ITEM).exists()
    assert "title: When to deploy" in bo.read(there)
    assert "Wait" in bo.read(there)


@pytest.mark.parametrize("name", [b"odd\nHEAD", b"od\xe9"], ids=["a line break", "no UTF-8"])
def test_a_name_that_git_cannot_be_asked_for_stops_nobody(joining: Two, memfs: Memfs, name: bytes) -> None:
    """Row 41: what has a hostile name is not an item, and a person decides."""
    ada, bo = joining
    odd = ITEM.replace("deploy.yaml", f"{os.fsdecode(name)}.yaml")
    for clone in (ada, bo):
        clone.write(TEXT, odd)
        clone.commit("Remember it under an odd name")
    ada.edit("Deploy target", "Where to deploy", odd)
    ada.edit("Deploy to Frankfurt", "Deploy to Vienna", odd)
    bo.edit("- ops", "- release", odd)
    assert "neither version is valid" in bo.pull(ada, code=1).err
    assert "take one with --keep ours or --keep theirs" in memfs(bo, "team", "conflicts", "resolve", "--all").out
    assert memfs(bo, "team", "conflicts", "resolve", "--all", "--keep", "theirs").code == 0
    assert "title: Where to deploy" in bo.read(odd)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        (TEXT, OTHER_TEXT, TEXT, {"ours"}),
        (TEXT, TEXT, OTHER_TEXT, {"theirs"}),
        (TEXT, OTHER_TEXT, OTHER_TEXT, {"ours", "theirs"}),
        (TEXT, TEXT.replace("created: '2026-03-01T10:00:00Z'\n", ""), TEXT, set()),
        (TEXT.replace("created: '2026-03-01T10:00:00Z'\n", ""), OTHER_TEXT, TEXT, set()),
        (TEXT, "- no item\n", TEXT, set()),
        ("", OTHER_TEXT, TEXT, set()),
    ],
)
def test_only_items_with_a_creation_time_are_distinguished(
    base: str, ours: str, theirs: str, expected: set[str]
) -> None:
    """Without ``created``, or a base, nothing is known to be a stranger."""
    merger = FileMerger(Codec(Schemas(), KindTable()))
    versions = (base.encode() or None, ours.encode(), theirs.encode())
    assert merger.unrelated(OTHER, *versions) == expected
