"""How an answer changed between two revisions, and which commit did it (B1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs import MemoryItem, Workspace
from memfs.errors import HistoryUnavailable
from memfs.model import Origin, Query
from memfs.team.bisect import AnswerChange, Difference

Opened = Callable[..., Workspace]
Git = Callable[..., str]
SOUP = Query(text="soup for lunch", limit=5)


def put(workspace: Workspace, name: str, text: str, agent: str = "", **fields: object) -> str:
    """Store one item as a commit; the commit."""
    workspace.store.put(MemoryItem(text, id=name, origin=Origin(agent=agent), **fields))  # type: ignore[arg-type]
    return str(workspace.store.flush().commits[-1])


def delete(workspace: Workspace, name: str) -> str:
    """Remove one item as a commit; the commit."""
    workspace.store.delete(name)
    return str(workspace.store.flush().commits[-1])


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One that remembers three lunches, the best one pinned down by its weight."""
    workspace = opened()
    for number, weight in enumerate((5.0, 4.0, 3.0)):
        put(workspace, f"soup-{number}", f"Soup for lunch, number {number}.", importance=weight)
    return workspace


def between(workspace: Workspace, older: str, newer: str = "HEAD", query: Query = SOUP) -> Difference:
    """The difference of the answers."""
    return workspace.teams.answers.between(query, older, newer)


def told(difference: Difference) -> list[tuple[str, str, str]]:
    """What became of which item, and by which commit."""
    return [(one.fate.value, one.id, one.by.commit if one.by else "") for one in difference.changes]


def test_what_came_went_and_changed_and_who_did_it(workspace: Workspace) -> None:
    """Each change names its own commit among many; what only made room is said to have slid (B1, B2)."""
    start = str(workspace.repository.head().commit)
    put(workspace, "noise-1", "Nothing to do with it.")
    came = put(workspace, "stew", "Soup for lunch is stew.", agent="cook", importance=9.0)
    went = delete(workspace, "soup-1")
    put(workspace, "noise-2", "Nothing to do with it either.")
    changed = put(workspace, "soup-2", "Soup for lunch, number two.", agent="editor", importance=3.0)
    put(workspace, "noise-3", "Nor has this.")

    found = between(workspace, start)
    assert told(found) == [
        ("came", "stew", came),
        ("went", "soup-1", went),
        ("changed", "soup-2", changed),
        ("slid", "soup-0", ""),
    ]
    by_id = {one.id: one for one in found.changes}
    assert by_id["stew"].by is not None
    assert by_id["stew"].by.agents == ("cook",)
    assert set(by_id["soup-2"].fields) >= {"content", "origin"}
    before, after = by_id["soup-2"].before, by_id["soup-2"].after
    assert before is not None
    assert after is not None
    assert (before.item.content, after.item.content) == ("Soup for lunch, number 2.", "Soup for lunch, number two.")

    back = between(workspace, "HEAD", start)
    assert [(one.fate.value, one.id, one.taken_back) for one in back.changes][:2] == [
        ("came", "soup-1", True),
        ("went", "stew", True),
    ]
    assert {one.by.commit for one in back.changes if one.by} == {came, went, changed}


def test_what_moved_names_the_commit_that_moved_it(workspace: Workspace) -> None:
    """Of items that change places the one that moved past the others is named, with the commit (B1)."""
    start = str(workspace.repository.head().commit)
    put(workspace, "noise-1", "Nothing to do with it.")
    moved = put(workspace, "soup-2", "Soup for lunch, number 2.", agent="fan", importance=9.0)
    put(workspace, "noise-2", "Nothing to do with it either.")
    found = between(workspace, start)
    first = found.changes[0]
    assert (first.fate.value, first.id, first.by and first.by.commit) == ("moved", "soup-2", moved)
    assert [one.id for one in found.changes if one.fate == "slid"] == ["soup-0", "soup-1"]


def test_equal_memories_answer_alike_however_late(workspace: Workspace, git: Git) -> None:
    """Commits that leave the memory alone, and a change that was taken back, change no answer (B1)."""
    start = git(workspace.root, "rev-parse", "HEAD").strip()
    later = {"GIT_COMMITTER_DATE": "2099-01-01T00:00:00Z"}
    git(workspace.root, "commit", "-q", "--allow-empty", "-m", "Much later", **later)
    found = between(workspace, start)
    assert found.changes == ()
    assert found.older.placed == found.newer.placed
    assert (found.older.commit, found.newer.commit) == (start, git(workspace.root, "rev-parse", "HEAD").strip())
    assert found.now.year == 2099

    put(workspace, "stew", "Soup for lunch is stew.", importance=9.0)
    delete(workspace, "stew")
    again = between(workspace, start)
    assert (again.changes, again.older.ids, again.newer.ids) == ((), found.older.ids, found.newer.ids)


def test_between_branches_each_side_is_found(workspace: Workspace, git: Git) -> None:
    """What only one branch did is named there, also where it is the older one (B1)."""
    root = workspace.root
    git(root, "switch", "-q", "-c", "left")
    left = put(workspace, "left-soup", "Soup for lunch on the left.")
    put(workspace, "noise", "Nothing.")
    git(root, "switch", "-q", "-c", "right", "left~2")
    right = put(workspace, "right-soup", "Soup for lunch on the right.")
    found = between(workspace, "left", "right")
    rows = {one.id: one for one in found.changes}

    def row(change: AnswerChange) -> tuple[str, str, bool]:
        return change.fate.value, change.by.commit if change.by else "", change.taken_back

    assert row(rows["right-soup"]) == ("came", right, False)
    assert row(rows["left-soup"]) == ("went", left, True)


def test_a_revision_that_is_none(workspace: Workspace) -> None:
    """It is named."""
    with pytest.raises(HistoryUnavailable, match="nowhere"):
        between(workspace, "nowhere")
