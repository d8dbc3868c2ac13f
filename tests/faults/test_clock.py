"""A clock that jumps: order is by revision, nothing is lost, and a warning is given (faults row 31)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs import MemoryItem, Query
from memfs.model import Candidate
from memfs.recall import ranking
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Git = Callable[..., str]
YEAR = timedelta(days=365)


class Clock:
    """The time as this process sees it: the true one, and so much more or less."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = timedelta()
        true, true_ns = time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: true() + self.ahead.total_seconds())
        monkeypatch.setattr(time, "time_ns", lambda: true_ns() + int(self.ahead.total_seconds() * 1e9))
        monkeypatch.setattr("memfs.workspace.utc_now", lambda: datetime.fromtimestamp(time.time(), UTC))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """See ``Clock``."""
    return Clock(monkeypatch)


def version(workspace: Workspace, text: str) -> None:
    """Store a version of one item and commit it."""
    workspace.store.put(MemoryItem(text, "knowledge", id="a"))
    assert workspace.store.flush(adopt=False).reason == ""


def test_31_versions_are_ordered_by_revision(opened: Opened, clock: Clock, git: Git) -> None:
    """A year back, ten years on, and right again: the last one written is the one that counts, in its order."""
    workspace = opened()
    jumps = {"first": timedelta(), "year back": -YEAR, "ten years on": 10 * YEAR, "right again": timedelta()}
    for text, jump in jumps.items():
        clock.ahead = jump
        version(workspace, text)
    item = workspace.store.get("a")
    assert item is not None
    assert item.content == "right again"
    path = item.path
    log = workspace.history.log(path)
    shown = [git(workspace.root, "show", f"{row.commit}:{path}") for row in log]
    assert [text for row in shown for text in jumps if f"content: {text}" in row] == list(reversed(jumps))
    assert len({row.commit for row in log}) == 4
    fresh = opened(workspace.root)
    assert [hit.item.content for hit in fresh.recaller.search("right").hits] == ["right again"]
    git(workspace.root, "fsck", "--full", "--strict")


def test_31_a_commit_from_a_wrong_year_hides_no_older_ones(opened: Opened, clock: Clock) -> None:
    """``since`` leaves out what is older, and nothing that merely lies behind such a commit."""
    workspace = opened()
    for text, jump in {"first": timedelta(), "year back": -YEAR, "last": timedelta()}.items():
        clock.ahead = jump
        version(workspace, text)
    item = workspace.store.get("a")
    assert item is not None
    assert len(workspace.history.log(item.path)) == 3
    assert len(workspace.history.log(item.path, since="7d")) == 2


@pytest.mark.parametrize("jump", [-YEAR, 10 * YEAR], ids=["year back", "ten years on"])
def test_31_writes_that_wait_are_committed_once_whatever_the_clock(
    opened: Opened, clock: Clock, git: Git, jump: timedelta
) -> None:
    """What was journalled before a jump is committed after it, in its order, once, and the journal is empty."""
    workspace = opened()
    version(workspace, "zero")
    workspace.store.put(MemoryItem("one", "knowledge", id="a"))
    clock.ahead = jump
    workspace.store.put(MemoryItem("two", "knowledge", id="a"))
    for part in (workspace.parts.journal, workspace.parts.tree):
        part.close()  # as a killed process leaves it
    clock.ahead = timedelta()
    fresh = opened(workspace.root)
    fresh.store.put(MemoryItem("three", "knowledge", id="a"))
    flushed = fresh.store.flush(adopt=False)
    assert (flushed.waiting, flushed.reason, len(flushed.commits)) == (0, "", 3)
    path = "ContextMemory/memories/knowledge"
    revisions = git(fresh.root, "log", "--format=%H", "--", path).split()
    assert len(revisions) == 4
    assert fresh.store.flush(adopt=False).commits == ()
    assert git(fresh.root, "status", "--porcelain") == ""


@pytest.mark.parametrize("jump", [-YEAR, 10 * YEAR], ids=["year back", "ten years on"])
def test_31_hand_edits_are_seen_and_adopted_whatever_the_clock(
    opened: Opened, clock: Clock, git: Git, jump: timedelta
) -> None:
    """A file saved while the clock was wrong is found, also with the same size and time, and once rested committed."""
    workspace = opened()
    version(workspace, "before")
    item = workspace.store.get("a")
    assert item is not None
    path = workspace.root / item.path
    assert [hit.item.id for hit in workspace.recaller.search("before").hits] == ["a"]
    saved = time.time_ns() + int(jump.total_seconds() * 1e9)
    path.write_text(path.read_text().replace("before", "after!"))
    os.utime(path, ns=(saved, saved))
    assert [hit.item.id for hit in workspace.recaller.search("after").hits] == ["a"]
    clock.ahead = -jump
    path.write_text(path.read_text().replace("after!", "walnut"))
    os.utime(path, ns=(saved, saved))
    assert [hit.item.id for hit in workspace.recaller.search("walnut").hits] == ["a"]
    clock.ahead = timedelta()
    assert workspace.store.flush(adopt=True, quiet_seconds=5).adopted == (item.path,)
    assert git(workspace.root, "status", "--porcelain") == ""


def test_31_a_young_file_is_still_left_to_rest(opened: Opened) -> None:
    """What was saved a moment ago is not committed behind the scenes."""
    workspace = opened()
    version(workspace, "before")
    item = workspace.store.get("a")
    assert item is not None
    (workspace.root / item.path).write_text("content: being edited\n")
    assert workspace.store.flush(adopt=True, quiet_seconds=3600).adopted == ()


def test_31_the_clock_behind_the_newest_version_is_a_warning(opened: Opened, clock: Clock, git: Git) -> None:
    """``memfs check`` says that the clock is behind, by how much, and that order does not depend on it."""
    workspace = opened()
    version(workspace, "right")
    assert [row for row in workspace.checker.check() if row.code == "ClockBehind"] == []
    clock.ahead = 10 * YEAR
    version(workspace, "from the future")
    clock.ahead = timedelta()
    found = [row for row in workspace.checker.check() if row.code == "ClockBehind"]
    assert [(row.severity, " days behind" in row.message) for row in found] == [("warning", True)]
    done = subprocess.run(
        [sys.executable, "-m", "memfs", "-C", str(workspace.root), "check", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ClockBehind" in [problem["code"] for problem in json.loads(done.stdout)["problems"]]


def test_31_waiting_for_a_lock_does_not_depend_on_the_clock(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jump neither ends the wait nor makes it endless, and the holder's time is never negative."""
    from memfs.errors import LockTimeout
    from memfs.fs.lock import FileLock

    lock = FileLock(tmp_path / "lock")
    clock.ahead = 10 * YEAR
    with lock.hold("first"):
        clock.ahead = -YEAR
        began = time.monotonic()
        with pytest.raises(LockTimeout, match="for 0 s"), FileLock(tmp_path / "lock").hold("second", timeout=0.2):
            pass
        assert 0.1 < time.monotonic() - began < 20


def test_31_recency_misbehaves_for_no_time(opened: Opened, clock: Clock) -> None:
    """An item from the future counts as new, never as more than new; the score stays a number in its bounds."""
    workspace = opened()
    now = datetime.now(UTC)
    workspace.store.put(MemoryItem("walnut", "knowledge", id="a", timestamp=now + 10 * YEAR))
    workspace.store.put(MemoryItem("walnut", "knowledge", id="b", timestamp=now - 10 * YEAR))
    found = workspace.store.candidates(Query(text="walnut"))
    values = {one.id: _recency(one, now) for one in found}
    assert values["a"] == 1.0
    assert 0.0 < values["b"] < 0.01
    clock.ahead = -20 * YEAR
    assert {hit.item.id for hit in workspace.recaller.search("walnut").hits} == {"a", "b"}


def _recency(candidate: Candidate, now: datetime) -> float:
    return ranking.recency(ranking.RankCandidate(candidate), ranking.QueryTerms.of(Query(), now), now)
