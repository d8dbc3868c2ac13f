"""bisect, and recall --diff: who changed an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Memfs, git


@pytest.fixture
def broken(root: Path, memfs: Memfs) -> Path:
    """A workspace where an answer was right at the tag ``good``, and which an agent broke since."""
    memfs("remember", "PostgreSQL is our database", "--id", "database", "--agent", "planner")
    git(root, "tag", "good")
    memfs("remember", "Lunch was soup", "--id", "soup")
    memfs("update", "database", "PostgreSQL it is", "--agent", "tidier", "--session", "night")
    memfs("remember", "Lunch was stew", "--id", "stew")
    return root


def test_bisect_names_commit_agent_session_and_change(broken: Path, memfs: Memfs) -> None:
    """As text with the next commands, and as JSON; how far it is, on standard error (B1, B2)."""
    shown = memfs("team", "bisect", "--good", "good", "--expect", "which database => database")
    commit = git(broken, "log", "-1", "--format=%h", "--abbrev=10", "HEAD~1").strip()
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"broken by {commit} ")
    assert lines[1:5] == [
        "  agent tidier, session night, through cli",
        "  which database => database",
        "    before  database",
        "    after   nothing",
    ]
    assert lines[5].startswith("  changed ContextMemory/")
    assert "2 commits left" in shown.err
    assert f"memfs undo --commit {commit}" in shown.err

    found = memfs("team", "bisect", "--good", "good", "--expect", "which database => database", "--json").json
    assert found["commit"]["commit"].startswith(commit)
    assert (found["agent"], found["session"], found["source"]) == ("tidier", "night", "cli")
    assert found["changes"][0]["what"] == "changed"
    assert found["expectations"][0] == {
        "expect": "which database => database",
        "broken": True,
        "before": ["database"],
        "after": [],
    }


def test_bisect_says_what_is_wrong_with_what_it_was_told(broken: Path, memfs: Memfs) -> None:
    """Ends that are not as they are said to be, and what is no expectation: code 2, and what to do."""
    wrong = memfs("team", "bisect", "--good", "HEAD", "--expect", "which database => database")
    assert (wrong.code, "is not met at" in wrong.err, "--as-of COMMIT" in wrong.err) == (2, True, True)
    assert memfs("team", "bisect", "--expect", "x => y").code == 2
    assert memfs("team", "bisect", "--good", "good").code == 2
    unclear = memfs("team", "bisect", "--good", "good", "--expect", "no arrow")
    assert unclear.code == 2
    assert 'write "QUERY => ID"' in unclear.err
    assert memfs("team", "bisect", "--good", "nowhere", "--expect", "x => y").code == 1


def test_recall_diff_names_what_changed_and_who_did_it(broken: Path, memfs: Memfs) -> None:
    """Came, went, changed, each with its commit; the same both ways, and nothing where nothing changed (B1)."""
    shown = memfs("recall", "PostgreSQL", "lunch", "--diff", "good..HEAD").out
    assert "2 came, 1 changed" in shown.splitlines()[0]
    assert "content: PostgreSQL is our database -> PostgreSQL it is" in shown
    assert "agent tidier, session night, through cli" in shown

    found = memfs("recall", "our database", "--diff", "good", "--json").json
    (change,) = found["changes"]
    assert (change["kind"], change["id"], change["before"]["rank"], change["after"]) == ("went", "database", 1, None)
    assert change["by"]["agents"] == ["tidier"]
    assert change["by"]["commit"]["commit"] == git(broken, "rev-parse", "HEAD~1").strip()
    assert (found["same"], found["older"]["hits"], found["newer"]["hits"]) == (False, ["database"], [])
    same = memfs("recall", "lunch", "--diff", "HEAD..HEAD")
    assert "the same answer: 2 hits" in same.out
    assert memfs("recall", "lunch", "--diff", "HEAD..HEAD", "--json").json["same"]


def test_recall_diff_takes_filters_and_refuses_what_means_nothing(broken: Path, memfs: Memfs) -> None:
    """--type and --limit hold for both revisions; --as-of, --fenced, and odd dots are refused."""
    assert memfs("recall", "lunch", "--type", "procedural", "--diff", "good..HEAD", "--json").json["changes"] == []
    assert len(memfs("recall", "lunch", "-n", "1", "--diff", "good..HEAD", "--json").json["changes"]) == 1
    assert memfs("recall", "lunch", "--diff", "good..HEAD", "--as-of", "HEAD").code == 2
    assert memfs("recall", "lunch", "--diff", "good..HEAD", "--fenced").code == 2
    for odd in ("..HEAD", "good...HEAD", ""):
        refused = memfs("recall", "lunch", "--diff", odd)
        assert (refused.code, "A..B" in refused.err) == (2, True), odd


def test_recall_diff_says_that_waiting_writes_are_not_in_it(broken: Path, memfs: Memfs) -> None:
    """What has no commit is in no revision, and that is said."""
    memfs("--set", "history.commit=manual", "remember", "Lunch was bread", "--id", "bread")
    shown = memfs("--set", "history.commit=manual", "recall", "lunch", "--diff", "good")
    assert "bread" not in shown.out
    assert "not committed yet, and not in it" in shown.err
