"""bisect: who changed an answer."""

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
    """As text with the next commands, and as JSON (B1, B2)."""
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
    assert f"memfs undo --commit {commit}" in shown.err

    found = memfs("team", "bisect", "--good", "good", "--expect", "which database => database", "--json").json
    assert found["commit"]["commit"].startswith(commit)
    assert (found["agents"], found["sessions"], found["sources"]) == (["tidier"], ["night"], ["cli"])
    assert found["changes"][0][0] == "changed"
    assert (found["expect"], found["before"], found["after"]) == ("which database => database", ["database"], [])


def test_bisect_says_what_is_wrong_with_its_arguments(broken: Path, memfs: Memfs) -> None:
    """Ends that do not hold, and an invalid expectation: code 2, and what to do."""
    wrong = memfs("team", "bisect", "--good", "HEAD", "--expect", "which database => database")
    assert (wrong.code, "is not met at" in wrong.err, "--as-of COMMIT" in wrong.err) == (2, True, True)
    assert memfs("team", "bisect", "--expect", "x => y").code == 2
    assert memfs("team", "bisect", "--good", "good").code == 2
    unclear = memfs("team", "bisect", "--good", "good", "--expect", "no arrow")
    assert unclear.code == 2
    assert 'write "QUERY => ID"' in unclear.err
    assert memfs("team", "bisect", "--good", "nowhere", "--expect", "x => y").code == 1
