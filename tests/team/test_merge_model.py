"""Random histories of two and three clones, merged by git itself: every edit is in the result or in a record (B3).

Each edit says a word of its own, so that what became of it can be looked up. Commits bear dates of the test's choosing.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from twoclones import ITEM, Clone, Done, Pristine, clones, joining, memfs, pristine

from kit.copies import copy_workspace
from memfs.model.ids import stem_of
from memfs.workspace import open_workspace

__all__ = ["clones", "joining", "memfs", "pristine"]

Memfs = Callable[..., Done]
MEMORIES = "ContextMemory/memories"
FOLDERS = ("semantic/2026-03", "semantic/kept", "procedural/2026-03", "knowledge/2026-03")
WORD = re.compile(r"w\d+w")


def text_of(name: str, created: int) -> str:
    """A new item; those of one theme are much alike, so that git takes one for the other."""
    return (
        f"title: Target of {name}\ncontent: |-\n  Deploy to Frankfurt on Tuesdays.\n  Ask Bo first.\n"
        f"  Then watch the graphs.\ntags:\n- ops\ncreated: '2026-03-01T10:00:{created:02d}Z'\ntrust: human\n"
        "importance: 2\n"
    )


@dataclass
class History:
    """A random history in some clones, and the words that were ever written."""

    rng: random.Random
    every: list[Clone]
    words: int = 0
    clock: int = 0
    log: list[str] = field(default_factory=list)

    def items(self, clone: Clone) -> dict[str, str]:
        """The items of a working tree by name, with where they are."""
        found = (path.relative_to(clone.root).as_posix() for path in (clone.root / MEMORIES).rglob("*.yaml"))
        return {stem_of(path): path for path in sorted(found)}

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}w"

    def commit(self, clone: Clone) -> None:
        """Commit everything, in the same second as the commit before or in another one."""
        self.clock += self.rng.choice((0, 0, 1, 60))
        for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
            os.environ[name] = f"{1_772_445_600 + self.clock} +0000"
        clone.git("add", "--all")
        clone.git("commit", "--quiet", "--allow-empty", "--message", "A step")

    def step(self, clone: Clone) -> None:
        """One to three changes and a commit, as a person or an agent makes them."""
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            act = self.rng.choice((self.edit, self.edit, self.edit, self.move, self.forget, self.remember, self.swap))
            act(clone)
        self.commit(clone)

    def edit(self, clone: Clone) -> None:
        items = self.items(clone)
        if not items:
            return
        path = items[self.rng.choice(sorted(items))]
        lines = clone.read(path).splitlines()
        editable = [
            number for number, line in enumerate(lines[: lines.index("tags:")]) if re.match(r"title:|  \S", line)
        ]
        where = self.rng.choice(editable)
        lines[where] = (
            f"{lines[where]} {self.word()}"
            if self.rng.random() < 0.5
            else re.sub(r"^(title:|  ).*", rf"\1 {self.word()}", lines[where]).replace("   ", "  ")
        )
        clone.write("\n".join(lines) + "\n", path)
        self.log.append(f"{clone.root.name}: edit {path} {self.words}")

    def move(self, clone: Clone) -> None:
        items = self.items(clone)
        if not items:
            return
        name = self.rng.choice(sorted(items))
        there = f"{MEMORIES}/{self.rng.choice(FOLDERS)}/{name}.yaml"
        if there != items[name]:
            clone.write(clone.read(items[name]), there)
            (clone.root / items[name]).unlink()
            self.log.append(f"{clone.root.name}: move {name} to {there}")

    def forget(self, clone: Clone) -> None:
        items = self.items(clone)
        if items:
            name = self.rng.choice(sorted(items))
            (clone.root / items[name]).unlink()
            self.log.append(f"{clone.root.name}: forget {name}")

    def remember(self, clone: Clone) -> None:
        """A name out of few: two clones will remember the same one, in the same words or in others."""
        name = f"n{self.rng.randrange(6)}"
        if name not in self.items(clone):
            path = f"{MEMORIES}/{self.rng.choice(FOLDERS[:2])}/{name}.yaml"
            clone.write(text_of(name, self.rng.choice((0, 0, 1))), path)
            self.log.append(f"{clone.root.name}: remember {path}")

    def swap(self, clone: Clone) -> None:
        self.forget(clone)
        self.remember(clone)


@dataclass(frozen=True)
class Tip:
    """What a commit has: the text of each item, and where it is, by name.

    Where two items have one name, ``twins`` says so.
    """

    texts: dict[str, str]
    places: dict[str, str]
    twins: bool


def tip(clone: Clone, commit: str) -> Tip:
    """Read a commit."""
    rows = clone.git("ls-tree", "-r", commit, MEMORIES).out.splitlines()
    listed = {path: facts.split()[2] for facts, path in (row.split("\t") for row in rows)}
    places = {stem_of(path): path for path in listed}
    texts = dict(zip(listed, clone.blobs(listed.values()), strict=True))
    if len(places) == len(listed):
        texts = {stem_of(path): text for path, text in texts.items()}
    return Tip(texts, places, len(places) < len(listed))


def ever(clone: Clone, commit: str) -> set[str]:
    """Every word of all versions that led to a commit."""
    return words([clone.git("log", "-p", "-m", commit, "--", MEMORIES).out])


def words(texts: Iterable[str]) -> set[str]:
    """The words of some texts."""
    return {word for text in texts for word in WORD.findall(text)}


def merge(here: Clone, there: Clone, memfs: Memfs) -> None:
    """Merge as a person does who follows what git and memfs say, and hold the outcome against the rule."""
    here.git("fetch", "--quiet", str(there.root), "main")
    ours, theirs = tip(here, "HEAD"), tip(here, "FETCH_HEAD")
    tips = here.git("rev-parse", "HEAD", "FETCH_HEAD").out.split()
    bases = here.git("merge-base", "--all", "HEAD", "FETCH_HEAD").out.split()
    base = tip(here, bases[0])
    done = here.git("merge", "--quiet", "--no-edit", "FETCH_HEAD", code=None)
    if done.code < 0:  # an assertion of git's own failed, with or without the driver: nothing was merged
        (here.root / ".git/index.lock").unlink(missing_ok=True)
        here.git("reset", "--quiet", "--hard")
        with open_workspace(here.root, watch=False) as workspace:
            workspace.teams.merger.merge(tips[1], "Merge other", source="test")
    elif done.code:
        resolved = memfs(here, "team", "conflicts", "resolve", "--all")
        assert resolved.code == 0, (done, resolved)
        assert "<<<<<<<" not in here.git("diff", "--cached").out
        here.git("commit", "--quiet", "--no-edit")
    listed = memfs(here, "team", "conflicts", "--json").out
    kept = words(path.read_text() for path in (here.root / MEMORIES).rglob("*.yaml")) | words([listed])
    for mine, other in ((ours, tips[1]), (theirs, tips[0])):
        lost = words(mine.texts.values()) - words(base.texts.values()) - kept
        if lost:
            lost -= ever(here, other)
        assert not lost, (lost, done, here.git("log", "--oneline", "-1").out)
    after = tip(here, "HEAD")
    if len(bases) > 1 or any(side.twins for side in (base, ours, theirs, after)):
        return
    for name in {*base.texts, *ours.texts, *theirs.texts}:
        versions = [side.texts.get(name) for side in (base, ours, theirs)]
        gone = [side for side, text in zip((ours, theirs), versions[1:], strict=True) if text is None]
        if len(gone) == 1 and versions[0] is not None and versions[0] in versions[1:]:
            moved = {side.places.get(name) for side in (base, ours, theirs)} - {None}
            assert name not in after.texts or len(moved) > 1, f"{name} was forgotten, and came back"
        elif len(gone) < 2:
            assert name in after.texts, f"{name} was forgotten by nobody"


@pytest.fixture
def every(
    joining: tuple[Clone, Clone], pristine: Pristine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> list[Clone]:
    """Three clones with the merge driver."""
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2026-03-02T10:00:00Z")
    third = Clone(tmp_path / "cy")
    copy_workspace(pristine.joining, third.root)
    return [*joining, third]


def play(every: list[Clone], memfs: Memfs, seed: int, people: int) -> None:
    """One random history, from the first commits of all to the merges, which are held against the rule."""
    start = every[0].git("rev-parse", "origin/main").out.strip()
    history = History(random.Random(seed), every[:people])
    for clone in history.every:
        clone.git("reset", "--quiet", "--hard", start)
        clone.git("clean", "--quiet", "-fdx")
    first = history.every[0]
    for _ in range(history.rng.randrange(4)):
        history.remember(first)
    history.commit(first)
    for clone in history.every[1:]:
        clone.git("fetch", "--quiet", str(first.root), "main")
        clone.git("reset", "--quiet", "--hard", "FETCH_HEAD")
    try:
        for _ in range(history.rng.choice((1, 1, 2))):
            for clone in history.every:
                for _ in range(history.rng.choice((1, 2, 3))):
                    history.step(clone)
            for clone in history.every[1:]:
                merge(first, clone, memfs)
            merge(history.every[-1], first, memfs)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {people} people:\n" + "\n".join(history.log)) from error


@pytest.mark.parametrize("people", [2, 3])
@pytest.mark.parametrize("part", range(2))
def test_b3_every_edit_is_in_the_result_or_in_a_record(
    every: list[Clone], memfs: Memfs, scale: Callable[[int, int], int], part: int, people: int
) -> None:
    """Whatever was edited, moved, forgotten and remembered on two or three sides, git's merge loses no edit."""
    for number in range(scale(1, 800)):
        play(every, memfs, 1000 * part + number, people)


@pytest.mark.parametrize(
    ("seed", "people"),
    [(160, 2), (2013, 2), (10155, 2), (3091, 3), (20002, 3)],
    ids=["added in two folders", "a place that collides", "two of a name", "both", "a folder that leads back"],
)
def test_b3_histories_in_which_git_lost_an_item_lose_none(
    every: list[Clone], memfs: Memfs, seed: int, people: int
) -> None:
    """What git lost, or took away without asking, comes back with whatever looks after merges."""
    play(every, memfs, seed, people)


def test_b3_an_edit_in_whose_place_git_puts_a_twin_comes_back(joining: tuple[Clone, Clone], memfs: Memfs) -> None:
    """One forgets an item and remembers another one, which both have: git merges, and says nothing of the edit."""
    ada, bo = joining
    for clone in joining:
        clone.write(text_of("deploy", 0))
        clone.commit("As everybody has it")
    twin = f"{MEMORIES}/semantic/kept/n1.yaml"
    ada.edit("Ask Bo first.", "Ask Ada first.")
    ada.write(text_of("n1", 0), twin)
    ada.commit("Both know another item")
    (bo.root / ITEM).unlink()
    bo.write(text_of("n1", 0), twin)
    bo.commit("Forget one, know another")
    ada.pull(bo, code=None)
    memfs(ada, "team", "conflicts", "resolve", "--all")
    ada.git("commit", "--quiet", "--no-edit", code=None)
    assert ada.read(twin) == text_of("n1", 0)
    assert "Ask Ada first." in ada.read()
    assert [one["id"] for one in memfs(ada, "team", "conflicts", "--json").json["items"]] == ["deploy"]
    assert ada.clean()


def test_b3_an_item_that_a_renamed_folder_leads_back_is_not_lost(joining: tuple[Clone, Clone], memfs: Memfs) -> None:
    """One moves an item into a folder all of which the other moves to where it was: git drops it, and exits with 0."""
    ada, bo = joining
    kept = f"{MEMORIES}/semantic/kept"
    for name in ("n1", "n2"):
        bo.write(text_of(name, 0), f"{kept}/{name}.yaml")
    bo.commit("Remember two")
    ada.pull(bo)
    bo.git("mv", f"{kept}/n2.yaml", ITEM.replace("deploy", "n2"))
    bo.commit("Move one there")
    ada.git("mv", ITEM, f"{kept}/deploy.yaml")
    ada.edit("Ask Bo first.", "Ask Ada first.", f"{kept}/n2.yaml")
    done = ada.pull(bo, code=None)
    head = ada.git("rev-parse", "HEAD").out
    found = memfs(ada, "team", "conflicts", "resolve", "--all")
    assert found.code == 0, done
    texts = [path.read_text() for path in (ada.root / MEMORIES).rglob("n2.yaml")]
    assert ["Ask Ada first." in text for text in texts] == [True]
    if not done.code:
        assert ada.git("rev-parse", "HEAD").out != head
        memfs(ada, "status")
        assert ada.clean()
