"""A backlog of events: nobody waits for all of it, and none of it is lost (C6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count as counting
from types import SimpleNamespace

import pytest

from memfs.model import Query
from memfs.model.time import format_time
from memfs.sessions import store as drain
from memfs.sessions.spool import SessionEvent, Spool
from memfs.sessions.store import Drain
from memfs.store.index_sync import IndexSync, Progress, SyncResult
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]
_BEGAN = datetime.now(UTC) - timedelta(minutes=90)


def _prompts(workspace: Workspace, session: str, count: int) -> None:
    spool = Spool(workspace.repository.state)
    for number in range(count):
        moment = format_time(_BEGAN + timedelta(seconds=20 * number))
        fields = {"prompt": f"We need to rename module {session}x{number} to part{number} later"}
        spool.append(SessionEvent("UserPromptSubmit", session, moment, str(workspace.root), fields=fields))


def _working(workspace: Workspace) -> int:
    return len(workspace.store.select(Query(types=frozenset({"working"}), limit=1_000)))


def test_a_large_backlog_is_taken_in_portions(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain with little time takes a part, the next ones go on, and each event is taken once (C6)."""
    workspace = opened()
    _prompts(workspace, "s1", 150)
    with monkeypatch.context() as patched:
        ticks = counting()
        patched.setattr(drain, "time", SimpleNamespace(monotonic=lambda: next(ticks) * 0.01))
        first = Drain(workspace).run("s1", seconds=0.1)
    assert 0 < first.events < 150
    assert first.left == 150 - first.events
    drains = [Drain(workspace).run("s1", seconds=60) for _ in range(2)]
    assert [drained.left for drained in drains] == [0, 0]
    assert first.events + sum(drained.events for drained in drains) == 150
    assert _working(workspace) == 150


def test_a_session_takes_what_others_left_after_its_own(opened: Opener) -> None:
    """Where there is time, what waits of other sessions becomes memories too; its own comes first (C6)."""
    workspace = opened()
    _prompts(workspace, "s1", 2)
    _prompts(workspace, "s2", 1)
    assert Drain(workspace).run("s2").left == 2
    _prompts(workspace, "s2", 1)
    taken = Drain(workspace).run("s2", others=True)
    assert (taken.left, Spool(workspace.repository.state).waiting()) == (0, 0)
    own = [item.origin.session for item in map(workspace.store.get, taken.stored) if item is not None]
    assert set(own[: own.index("s1")]) <= {"s2"}


def test_a_drain_looks_at_the_files_a_few_times_only(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at all files of a large memory costs; what many events say is stored with a handful (design budget)."""
    workspace = opened()
    _prompts(workspace, "s1", 40)
    looks: list[Progress | None] = []
    look = IndexSync._refresh_all

    def counted(self: IndexSync, progress: Progress | None) -> SyncResult:
        looks.append(progress)
        return look(self, progress)

    monkeypatch.setattr(IndexSync, "_refresh_all", counted)
    assert Drain(workspace).run("s1").events == 40
    assert len(looks) < 15
