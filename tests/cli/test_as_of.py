"""--as-of on recall, list, show and stats."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Memfs, git


@pytest.fixture
def history(root: Path, memfs: Memfs) -> list[str]:
    """Three commits: one item, another text of it, and a second item."""
    commits = []
    for arguments in (
        ("remember", "we use postgres", "--id", "db"),
        ("update", "db", "we use sqlite"),
        ("remember", "postgres pools connections", "--id", "pool", "--type", "procedural"),
    ):
        assert memfs(*arguments).code == 0
        commits.append(git(root, "rev-parse", "HEAD").strip())
    return commits


def test_recall_as_of_a_revision(memfs: Memfs, history: list[str]) -> None:
    """B1: what was known then is found as it was then; JSON says which commit and when."""
    ran = memfs("recall", "postgres", "--as-of", "HEAD~2")
    assert (ran.code, "we use postgres" in ran.out, f"commit {history[0][:10]}" in ran.err) == (0, True, True)
    found = memfs("recall", "postgres", "--as-of", history[0], "--json").json
    assert [hit["content"] for hit in found["hits"]] == ["we use postgres"]
    assert found["as_of"]["commit"] == found["fresh"]["head"] == history[0]
    assert found["as_of"]["time"].endswith("Z")
    assert [hit["id"] for hit in memfs("recall", "postgres", "--json").json["hits"]] == ["pool"]
    assert "as_of" not in memfs("recall", "postgres", "--json").json


def test_the_head_answers_as_the_present_does(memfs: Memfs, history: list[str]) -> None:
    """B1: as of HEAD, where nothing waits, hits and scores are those of now."""
    memfs("admin", "reindex")  # what was replaced leaves traces in the scores until then
    present, past = (memfs("recall", "postgres sqlite", *more, "--json").json for more in ((), ("--as-of", "HEAD")))
    assert present["hits"] == past["hits"]
    assert len(past["hits"]) == 2


def test_list_as_of(memfs: Memfs, history: list[str]) -> None:
    """B1: the filters are those of the present; uses have no past."""
    ran = memfs("list", "--as-of", "HEAD~1")
    assert (ran.out.split()[0], "1 item" in ran.err, history[1][:10] in ran.err) == ("db", True, True)
    found = memfs("list", "--as-of", "HEAD", "--type", "procedural", "--json").json
    assert [item["id"] for item in found["items"]] == ["pool"]
    assert "usage" not in found["items"][0]
    assert found["as_of"]["commit"] == history[2]
    assert memfs("list", "--archived", "--as-of", "HEAD", "--json").json["items"] == []
    assert memfs("list", "--as-of", "HEAD", "--type", "nonsense").code == 2


def test_show_as_of(memfs: Memfs, history: list[str]) -> None:
    """B1: by id, by the beginning of an id, by path; in the words of that file."""
    assert memfs("show", "db", "--as-of", "HEAD~2", "--json").json["content"] == "we use postgres"
    shown = memfs("show", "d", "--as-of", "HEAD~2", "--json").json
    assert (shown["id"], shown["as_of"]["commit"]) == ("db", history[0])
    assert "we use postgres" in memfs("show", shown["path"], "--as-of", "HEAD~2", "--raw").out
    missing = memfs("show", "pool", "--as-of", "HEAD~2")
    assert (missing.code, "memfs log pool" in missing.err) == (1, True)


def test_an_unknown_revision(memfs: Memfs, history: list[str]) -> None:
    """The message names it, and says what would be one."""
    for arguments in (("recall", "x"), ("list",), ("show", "db")):
        ran = memfs(*arguments, "--as-of", "nowhere")
        assert (ran.code, "nowhere" in ran.err, "HEAD~2" in ran.err) == (1, True, True), arguments


def test_ages_count_back_from_the_revision(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """--since 7d as of a commit means the week before it."""
    memfs("remember", "postgres pool", "--id", "old", "--time", "2026-01-01")
    memfs("remember", "postgres pool two", "--id", "young", "--time", "2026-01-20")
    path = next(root.rglob("old.yaml"))
    path.write_text(path.read_text() + "# a remark\n")
    stamp = "2026-01-21T00:00:00Z"
    environ = {**os.environ, "GIT_COMMITTER_DATE": stamp, "GIT_AUTHOR_DATE": stamp}
    monkeypatch.setattr(os, "environ", environ)
    git(root, "commit", "-qam", "then")
    found = memfs("recall", "postgres", "--since", "7d", "--as-of", "HEAD", "--json").json
    assert ([hit["id"] for hit in found["hits"]], found["as_of"]["time"]) == (["young"], "2026-01-21T00:00:00Z")
    assert memfs("recall", "postgres", "--since", "7d", "--json").json["hits"] == []


def test_mounts_are_left_out_and_named(memfs: Memfs, history: list[str], tmp_path: Path, bare: Memfs) -> None:
    """Another workspace has a history of its own."""
    bare("init", str(tmp_path / "team"))
    bare("-C", str(tmp_path / "team"), "remember", "postgres of the team", "--id", "theirs")
    arguments = ("recall", "postgres", "--set", f"mounts.team={tmp_path / 'team'}")
    assert "team:theirs" in memfs(*arguments).out
    ran = memfs(*arguments, "--as-of", "HEAD")
    assert ("team:theirs" in ran.out, "mounted workspaces" in ran.err) == (False, True)
