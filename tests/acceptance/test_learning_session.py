"""A session of 500 memories, from its first to its last step, in processes of their own (C1, C3, C4, M3, M7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import shop


class Team:
    """Processes that work in one workspace, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self._home = folder / "home"
        self._home.mkdir()
        self.stored = self.run("store")

    def run(self, command: str) -> dict[str, Any]:
        """Run one command of ``shop.py`` in a process of its own."""
        words = (sys.executable, str(shop.__file__), command, str(self.root))
        home = {"HOME": str(self._home), "XDG_CACHE_HOME": str(self._home / "cache"), "GIT_CONFIG_NOSYSTEM": "1"}
        home["MEMFS_WATCH_ENABLED"] = "false"  # processes this short rely on the scan anyway
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MEMFS_", "XDG_"))}
        done = subprocess.run(words, check=False, capture_output=True, text=True, env={**kept, **home})
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """The team after a session in which it stored everything."""
    return Team(tmp_path_factory.mktemp("shop"))


def test_what_is_worth_it_is_stored_and_nothing_else(team: Team) -> None:
    """500 real memories are kept, small talk is refused with a reason, and a repeat joins what it repeats (C3)."""
    stored = team.stored
    assert (len(stored["ids"]), len(set(stored["ids"])), stored["refused"]) == (500, 500, [])
    assert [reason for reason in stored["trivial"] if "trivial" not in reason] == []
    assert all(stored["merged"])
    assert set(stored["merged"]) <= set(stored["ids"])


def test_what_says_otherwise_is_linked(team: Team) -> None:
    """A changed number in the same statement is stored beside the old one, and says that they contradict (C3)."""
    old = [draft.content for draft in shop.drafts()].index(shop.CHANGED.replace("9999", "25"))
    assert team.stored["contradicts"] == [team.stored["ids"][old]]


def test_another_process_finds_it(team: Team) -> None:
    """Of 65 questions 9 in 10 have their answer first, nearly all among three; filters and budgets hold (C4, M7)."""
    report = team.run("ask")
    places = report["places"]
    assert len(places) == 65
    assert sum(place == 1 for place in places) >= 0.9 * len(places)
    assert sum(1 <= place <= 3 for place in places) >= 0.98 * len(places)
    assert report["types"] == ["procedural"]
    assert report["short"] >= 2
    assert report["tokens"] <= shop.TOKENS
    assert report["batch"] == [3] * 5
    assert report["by_type"]["working"] == 50


def test_feedback_changes_the_order_for_everybody(team: Team) -> None:
    """What was marked as useful comes before what was not, in the next process as well (M3)."""
    given = team.run("feedback")
    before, after = given["order"], team.run("order")["order"]
    assert given["worse"] == sorted(given["worse"], reverse=True)
    assert given["better"] == sorted(given["better"])
    assert after.index(before[-1]) == 0
    assert before[0] not in after[:2]
