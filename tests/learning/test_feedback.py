"""Feedback: a signal changes what an item counts for, in git and in the next answer (M3)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memfs import Conflict, ItemNotFound, MemoryItem, QueryInvalid, SecretDetected, Workspace
from memfs.learning.preferences import HIGHEST, moved

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def test_repeated_signals_converge() -> None:
    """Good signals converge to 10, bad ones to 0, each step in the right direction, from any start (M3)."""
    for start in (0.0, 0.05, 1.0, 9.9, 10.0):
        for positive, goal in ((True, HIGHEST), (False, 0.0)):
            values = [start]
            for _ in range(200):
                values.append(moved(values[-1], positive))
            steps = [later - earlier for earlier, later in pairwise(values)]
            assert values[-1] == pytest.approx(goal, abs=0.01)
            assert all(step >= 0 if positive else step <= 0 for step in steps)
            assert all(0 <= value <= HIGHEST for value in values)


def test_a_good_and_a_bad_signal_nearly_cancel() -> None:
    """No order of a good and a bad signal moves an item far."""
    assert moved(moved(1.0, True), False) == pytest.approx(moved(moved(1.0, False), True), abs=0.05)
    assert 0.8 < moved(moved(1.0, True), False) < 1


def test_feedback_changes_the_order_of_the_next_answer(opened: Opened) -> None:
    """One signal puts an item before its equals, or behind them (M3)."""
    workspace = opened()
    for name in ("a", "b", "c"):
        workspace.store.put(MemoryItem("the apple harvest", id=name, timestamp="2026-03-01"))
    workspace.feedback.give("c", True)
    workspace.feedback.give("a", False)
    assert [hit.item.id for hit in workspace.recaller.search("apple").hits] == ["c", "b", "a"]


def test_feedback_is_a_commit_with_its_reason(opened: Opened, git: Git) -> None:
    """The signal and why are in the history, and nothing but the importance changes in the file (M3)."""
    workspace = opened(history__commit="each")
    put = workspace.store.put(MemoryItem("the apple harvest", id="a", tags=("x",)))
    given = workspace.feedback.give("a", False, "it misled\nus")
    assert (given.importance, given.content, given.tags) == (0.6, put.content, ("x",))
    assert git(workspace.root, "log", "-1", "--format=%s").strip() == "Bad feedback: the apple harvest (it misled us)"
    changed = git(workspace.root, "show", "--format=", "-U0", "HEAD")
    added = {row.partition(":")[0] for row in changed.splitlines() if row.startswith("+") and "+++" not in row}
    assert added == {"+updated", "+importance"}


def test_feedback_on_what_changes_meanwhile_keeps_the_change(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change by somebody else between reading and writing is kept, and the signal applied to it."""
    workspace = opened()
    workspace.store.put(MemoryItem("the apple harvest", id="a"))
    real = workspace.store.get
    raced = []

    def get(item_id: str) -> MemoryItem | None:
        found = real(item_id)
        if not raced and found is not None:
            raced.append(True)
            workspace.store.put(found.replace(content="the pear harvest"))
        return found

    monkeypatch.setattr(workspace.store, "get", get)
    given = workspace.feedback.give("a", True)
    assert (given.content, given.importance) == ("the pear harvest", 1.45)


def test_feedback_gives_up_when_the_item_never_rests(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends within five tries (L7)."""
    workspace = opened()
    put = workspace.store.put(MemoryItem("the apple harvest", id="a"))
    monkeypatch.setattr(workspace.store, "get", lambda _: put.replace(sha256="0" * 64))
    with pytest.raises(Conflict):
        workspace.feedback.give("a", True)


@pytest.mark.parametrize(
    ("item_id", "positive", "reason", "error"),
    [
        ("nobody", True, "", ItemNotFound),
        ("a", "yes", "", QueryInvalid),
        ("a", 1, "", QueryInvalid),
        ("a", True, 5, QueryInvalid),
        ("a", True, "x" * 301, QueryInvalid),
        ("a", True, "the key is AKIAIOSFODNN7EXAMPLQ", SecretDetected),
    ],
)
def test_invalid_signals_are_refused(
    opened: Opened, item_id: str, positive: Any, reason: Any, error: type[Exception]
) -> None:
    """An unknown signal, reason or item changes nothing."""
    workspace = opened()
    workspace.store.put(MemoryItem("the apple harvest", id="a"))
    with pytest.raises(error):
        workspace.feedback.give(item_id, positive, reason)
    found = workspace.store.get("a")
    assert found is not None
    assert found.importance == 1


def test_feedback_is_known_to_other_processes(opened: Opened, tmp_path: Path) -> None:
    """The signal is in the item's file: anyone who opens the workspace next ranks by it (M7)."""
    workspace = opened()
    workspace.store.put(MemoryItem("the apple harvest", id="a"))
    workspace.feedback.give("a", True)
    workspace.close()
    found = opened(tmp_path / "workspace").store.get("a")
    assert found is not None
    assert found.importance == 1.45
