"""Accepted patterns and ``agent consolidate``: what memories have in common, what a session leaves (M2, C7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Memfs, git


def remember(memfs: Memfs, *texts: str, **options: str) -> None:
    """Store memories."""

    lines = "\n".join(json.dumps({"content": text, **options}) for text in texts)
    assert memfs("import", "-", stdin=lines).code == 0


def test_accepted_patterns_are_listed(memfs: Memfs) -> None:
    """Patterns that were accepted are listed, and found where they fit (M2)."""
    logins = [f"create {name} login" for name in ("user", "admin", "guest", "root")]
    remember(memfs, *logins, "renew the shop certificate", type="interaction")
    assert memfs("list", "--type", "pattern", "--json").json["items"] == []

    memfs("inbox")
    memfs("inbox", "accept", "create")

    (pattern,) = memfs("list", "--type", "pattern", "--json").json["items"]
    assert pattern["content"] == "create {variable} login"
    assert (pattern["data"]["occurrences"], pattern["data"]["confidence"]) == (4, 0.8)
    assert "create {variable} login" in memfs("recall", "create auditor login").out


def test_a_session_is_consolidated(memfs: Memfs, root: Path) -> None:
    """A run keeps and clears in one commit, and says how to take it back (C7)."""
    for text in ("We decided to use PostgreSQL", "looked around"):
        memfs("remember", text, "--type", "working", "--session", "s1")

    before = git(root, "rev-parse", "HEAD").strip()
    result = memfs("agent", "consolidate", "--session", "s1")

    assert "2 working memories of s1: 1 kept, 2 cleared\n" in result.out
    assert f"'memfs undo --commit {git(root, 'rev-parse', '--short=12', 'HEAD').strip()}'" in result.err
    assert git(root, "rev-parse", "HEAD~1").strip() == before
    assert memfs("list", "--type", "working", "--json").json["items"] == []
    (item,) = memfs("list", "--type", "semantic", "--json").json["items"]
    assert (item["metadata"]["promoted_as"], item["metadata"]["promoted_from"]) == ("decision", "working")


def test_nothing_is_left_to_consolidate(memfs: Memfs, root: Path) -> None:
    """A session without working memory makes no commit (C7)."""
    before = git(root, "rev-parse", "HEAD")

    assert memfs("agent", "consolidate", "--session", "s1").out == "The session s1 has no working memory\n"
    done = memfs("agent", "consolidate", "--session", "s1", "--json").json

    assert (done["read"], done["promoted"], done["cleared"], done["revision"]) == (0, [], [], None)
    assert git(root, "rev-parse", "HEAD") == before


def test_what_stays_is_reported(memfs: Memfs, root: Path) -> None:
    """Pinned memories are counted, and a broken one is named with the reason (C7)."""
    remember(memfs, "at hand", type="working", id="pinned-one")
    for name, text in (("a-pin", "We decided to keep this"), ("broken", "We decided to break this"), ("gone", "x y z")):
        memfs("remember", text, "--type", "working", "--session", "s1", "--id", name)
    files = {path.stem: path for path in (root / "ContextMemory/memories/working").rglob("*.yaml")}
    files["a-pin"].write_text(files["a-pin"].read_text() + "pinned: true\n")
    files["broken"].write_text(files["broken"].read_text().replace("content:", "contents:"))

    result = memfs("agent", "consolidate", "--session", "s1")

    assert ", 1 cleared\n" in result.out
    assert "  a-pin is pinned, and stays\n" in result.out
    assert "  broken stays: its file cannot be read" in result.out


@pytest.mark.parametrize("words", [("agent", "consolidate"), ("agent", "consolidate", "--session")])
def test_what_cannot_be_understood_is_reported(memfs: Memfs, words: tuple[str, ...]) -> None:
    """A missing name and a limit of nothing end with exit code 2."""
    assert memfs(*words).code == 2


def test_a_blank_session_is_refused(memfs: Memfs) -> None:
    """A blank name is not a session: nothing is cleared."""
    memfs("remember", "We decided", "--type", "working")

    assert memfs("agent", "consolidate", "--session", " ").code != 0
    assert len(memfs("list", "--json").json["items"]) == 1
