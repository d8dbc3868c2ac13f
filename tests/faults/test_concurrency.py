"""Many writers and a person at once: nothing acknowledged is missing (faults rows 36, 46; design section 8)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.crowd import Crowd, Person
from memfs import MemoryItem
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Git = Callable[..., str]
Scale = Callable[[int, int], int]
Figures = Callable[..., None]


def in_branches(git: Git, root: Path) -> set[str]:
    """The ids of the items in the trees of all branches."""
    branches = git(root, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    trees = [git(root, "ls-tree", "-r", "--name-only", branch, "ContextMemory/memories") for branch in branches]
    return {Path(path).stem for tree in trees for path in tree.split()}


def in_history(git: Git, root: Path) -> set[str]:
    """The ids of the items in all commits that git still knows the name of: branches, reflogs, the stash."""
    rows = git(root, "rev-list", "--objects", "--all", "--reflog").splitlines()
    return {Path(row.partition(" ")[2]).stem for row in rows if row.endswith(".yaml")}


def work_beside(crowd: Crowd, person: Person, acts: int) -> tuple[list[list[str]], str]:
    """The person works until the crowd is done, but so much at least; what was acknowledged, and what went wrong."""
    acted = 0
    while crowd.running() or acted < acts:
        person.act()
        acted += 1
        time.sleep(0.03)
    return crowd.ended()


def prepared(opened: Opened, git: Git) -> Workspace:
    """A workspace with a second branch and a file of the person's that git follows."""
    workspace = opened()
    (workspace.root / "notes.txt").write_text("first\n")
    git(workspace.root, "add", "notes.txt")
    git(workspace.root, "commit", "-q", "-m", "notes", "notes.txt")
    git(workspace.root, "branch", "other")
    git(workspace.root, "config", "gc.autoDetach", "false")  # or gc outlives its commit, and fsck misses what it packs
    return workspace


def test_36_writers_and_a_person_who_commits_and_checks_out(
    opened: Opened, git: Git, scale: Scale, figures: Figures
) -> None:
    """Many processes write while a person commits and checks out: all that was acknowledged is in a branch."""
    writers, writes = scale(8, 32), scale(6, 50)
    workspace = prepared(opened, git)
    root = workspace.root
    person = Person(root, seed=36)
    acknowledged, wrong = work_beside(Crowd(root, "items", writers, writes), person, acts=12)
    assert wrong == ""
    assert len(acknowledged) == writers * writes
    flushed = workspace.store.flush(adopt=False)
    assert (flushed.waiting, flushed.reason) == (0, "")
    lost = {words[0] for words in acknowledged} - in_branches(git, root)
    figures(
        f"{writers} writers and a person",
        points=sum(person.done.values()),
        acknowledged=len(acknowledged),
        lost=len(lost),
    )
    assert not lost, (sorted(lost), [row.path for row in workspace.recovered.list()], person.log)
    assert person.done["checkout"] > 1
    assert person.done["commit"] + person.done["commit -a"] > 1
    git(root, "fsck", "--full", "--strict")
    assert [line for line in git(root, "status", "--porcelain").splitlines() if "ContextMemory" in line] == []
    assert workspace.store.problems() == []


def test_36_a_person_who_throws_work_away_loses_nothing_that_was_acknowledged(
    opened: Opened, git: Git, scale: Scale, figures: Figures
) -> None:
    """Beside reset, stash, clean, rebase, amend and gc each acknowledged write is in git's history or recoverable."""
    writers, writes = scale(8, 16), scale(8, 100)
    workspace = prepared(opened, git)
    root = workspace.root
    person = Person(root, seed=37, rough=True)
    acknowledged, wrong = work_beside(Crowd(root, "items", writers, writes), person, acts=30)
    person.settle()
    assert wrong == ""
    flushed = workspace.store.flush(adopt=False)
    assert (flushed.waiting, flushed.reason) == (0, "")
    aside = {Path(row.path).stem for row in workspace.recovered.list()}
    lost = {words[0] for words in acknowledged} - in_history(git, root) - aside
    figures("a person who resets", points=sum(person.done.values()), acknowledged=len(acknowledged), lost=len(lost))
    assert lost == set(), person.log
    assert len(acknowledged) == writers * writes
    assert len([habit for habit, times in person.done.items() if times]) > 4
    git(root, "fsck", "--full", "--strict")


def test_46_writers_of_one_item_get_one_winner_a_version(opened: Opened, scale: Scale, figures: Figures) -> None:
    """With ``expected`` each version is replaced once: others get Conflict, and the counter loses nothing (row 46)."""
    writers, writes = scale(16, 32), scale(3, 25)
    workspace = opened()
    workspace.store.put(MemoryItem("0", "knowledge", id="counter"))
    lines, wrong = Crowd(workspace.root, "counter", writers, writes).ended()
    assert wrong == ""
    won = [words for words in lines if words[0] == "won"]
    conflicts = [words for words in lines if words[0] == "conflict"]
    assert max(Counter(words[1] for words in won).values()) == 1
    assert all(words[1] != words[2] for words in conflicts)
    item = workspace.store.get("counter")
    assert item is not None
    total = writers * writes
    figures(f"{writers} writers of one item", points=len(lines), acknowledged=len(won), lost=total - int(item.content))
    assert (len(won), item.content) == (total, str(total))


def test_46_64_creators_of_one_id_make_it_once(opened: Opened, scale: Scale) -> None:
    """Create-only writes of one id: one is made, 63 fail because it exists, and the file is the winner's (row 46)."""
    ids = scale(2, 25)
    workspace = opened()
    lines, wrong = Crowd(workspace.root, "create", 64, ids).ended()
    assert wrong == ""
    for number in range(ids):
        winners = [words[2] for words in lines if words[:2] == ["created", str(number)]]
        assert len(winners) == 1
        assert len([words for words in lines if words == ["exists", str(number)]]) == 63
        item = workspace.store.get(f"wanted-{number}")
        assert item is not None
        assert item.content == f"by {winners[0]}"


# -- broken on purpose: the checks above must notice --------------------------------------------------------------
def won_twice(lines: list[list[str]]) -> bool:
    """Whether two writers both replaced one version, as they believe."""
    return max(Counter(words[1] for words in lines if words[0] == "won").values(), default=0) > 1


def test_46_the_check_notices_writers_that_do_not_lock(opened: Opened) -> None:
    """Without the store's lock two writers win over one version, or break each other's journal."""
    workspace = opened()
    workspace.store.put(MemoryItem("0", "knowledge", id="counter"))
    for _ in range(10):  # on a busy machine they may take turns by chance
        lines, wrong = Crowd(workspace.root, "counter", 16, 20, "no lock").ended_or(won_twice, seconds=120)
        if wrong or won_twice(lines):
            return
    pytest.fail("nobody noticed")


def staged_work_stays(opened: Opened, git: Git, variant: str) -> bool:
    """Whether what a person has staged is still staged, and in no commit, after a crowd has written."""
    workspace = prepared(opened, git)
    root = workspace.root
    (root / "draft.txt").write_text("not ready\n")
    git(root, "add", "draft.txt")
    acknowledged, wrong = Crowd(root, "items", 4, 10, variant).ended()
    assert (len(acknowledged), wrong) == (40, "")
    in_commits = git(root, "log", "--all", "--format=%s", "--", "draft.txt")
    return not in_commits and git(root, "diff", "--cached", "--name-only") == "draft.txt\n"


def test_33_what_a_person_has_staged_stays_staged_beside_a_crowd(opened: Opened, git: Git) -> None:
    """Commits of a crowd of writers hold their own paths only (faults row 33)."""
    assert staged_work_stays(opened, git, "")


def test_33_the_check_notices_commits_that_add_everything(opened: Opened, git: Git) -> None:
    """A tutorial's ``git add -A`` and commit takes the person's staged work along, and the check above sees it."""
    assert not staged_work_stays(opened, git, "add all")
