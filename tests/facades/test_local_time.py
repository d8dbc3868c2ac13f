"""A time without an offset is local time, in what a caller gives and in what is compared with it (C4, C5)."""

# ruff: noqa: DTZ001, DTZ005, DTZ901 - times without an offset are what is tested

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs import (
    Action,
    AgentOutput,
    ContextMemory,
    Episode,
    Memory,
    MemoryCoordinator,
    MemoryItem,
    Outcome,
    Query,
    QueryInvalid,
    StateSnapshot,
    StateUpdate,
)
from memfs.model.time import Moment, given_time, parse_time, parse_until, parse_when
from memfs.team.undo import RevertSelection
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
NOON = datetime(2026, 3, 1, 12, 0)
NOON_UTC = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def tokyo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine hours ahead of UTC, so that nobody takes one for the other."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[MemoryCoordinator]:
    """Seed 003 over a workspace of its own."""
    with MemoryCoordinator(tmp_path / "m") as made:
        yield made


class TimeWeightedRetrieval:
    """The sample of seed 003, word for word."""

    def __init__(self, coordinator: MemoryCoordinator) -> None:
        self.coordinator = coordinator

    def retrieve_time_weighted(self, query: str, recency_weight: float = 0.3, limit: int = 10) -> list[Memory]:
        """Retrieve with time-weighted scoring."""
        memories = self.coordinator.retrieve(query=query, limit=limit * 2)
        now = datetime.now()
        scored = []
        for memory in memories:
            age_days = (now - memory.timestamp).days
            recency_score = 1.0 / (1.0 + age_days * 0.1)
            final_score = (memory.relevance_score or 0) * (1 - recency_weight) + recency_score * recency_weight
            scored.append((memory, final_score))
        scored.sort(key=lambda x: x[1], reverse=True)
        return [m for m, _ in scored[:limit]]


def test_the_sample_of_the_seed_runs(coordinator: MemoryCoordinator) -> None:
    """Its class ranks what was just stored by an age of no days, and an older memory of equal words after it (C5)."""
    text = "Deployments to the cluster need a signed image and a second pair of eyes"
    old = coordinator.workspace.store.put(
        MemoryItem(text, "semantic", timestamp=datetime.now() - timedelta(days=30, hours=1))
    )
    new = coordinator.workspace.store.put(MemoryItem(text, "semantic", timestamp=datetime.now()))
    found = TimeWeightedRetrieval(coordinator).retrieve_time_weighted("signed image for deployments", 0.9)
    assert [memory.id for memory in found] == [new.id, old.id]
    assert [(datetime.now() - memory.timestamp).days for memory in found] == [0, 30]


def test_what_happened_in_the_last_hour_is_found(coordinator: MemoryCoordinator) -> None:
    """``since=datetime.now() - timedelta(hours=1)`` finds what was stored now, and not what was two hours ago (C4)."""
    store = coordinator.workspace.store
    new = store.put(MemoryItem("Tests run in a sandbox", timestamp=datetime.now()))
    store.put(MemoryItem("Tests run at night", timestamp=datetime.now() - timedelta(hours=2)))
    ago = datetime.now() - timedelta(hours=1)
    assert [memory.id for memory in coordinator.retrieve("tests", since=ago)] == [new.id]
    assert [memory.id for memory in coordinator.retrieve("", since=ago.isoformat())] == [new.id]
    hits = coordinator.workspace.recaller.search(Query(text="tests", since=ago)).hits
    assert [hit.item.id for hit in hits] == [new.id]


def test_a_memorys_time_compares_with_both_sorts(coordinator: MemoryCoordinator) -> None:
    """It is in UTC, and takes a naive time beside it for local time."""
    coordinator.workspace.store.put(MemoryItem("Tests run in a sandbox", timestamp=NOON))
    (memory,) = coordinator.retrieve("sandbox")
    there = memory.timestamp
    assert there.utcoffset() == timedelta(0)
    assert there == NOON == there
    assert there == NOON_UTC
    assert hash(there) == hash(NOON_UTC)
    assert NOON - timedelta(seconds=1) < there < NOON + timedelta(seconds=1)
    assert NOON_UTC <= there <= NOON_UTC
    assert not there > NOON
    assert there >= NOON
    assert (NOON - there, there - NOON, NOON_UTC - there) == (timedelta(0),) * 3
    assert there - timedelta(hours=3) == datetime(2026, 3, 1, tzinfo=UTC)
    assert pickle.loads(pickle.dumps(there)) == copy.deepcopy(there) == there
    with pytest.raises(TypeError):
        5 - there  # type: ignore[operator]


def test_files_are_read_in_utc(coordinator: MemoryCoordinator) -> None:
    """A file travels: without an offset its times mean UTC, wherever it is read; what memfs writes has an offset."""
    workspace = coordinator.workspace
    stored = workspace.store.put(MemoryItem("Tests run in a sandbox", id="sandbox", timestamp=NOON))
    file = workspace.root / stored.path
    assert "2026-03-01T03:00:00Z" in file.read_text()
    file.write_text(file.read_text().replace("2026-03-01T03:00:00Z", "2026-03-01T03:00:00"))
    found = workspace.store.get("sandbox")
    assert found is not None
    assert found.timestamp == NOON_UTC


@pytest.mark.parametrize(
    "made",
    [
        lambda when: MemoryItem("Tests run", timestamp=when).timestamp,
        lambda when: MemoryItem("Tests run", expires=when).expires,
        lambda when: StateUpdate(update_type="periodic", timestamp=when).timestamp,
        lambda when: AgentOutput.from_dict({"agent_type": "a", "task_id": "t", "timestamp": when}).timestamp,
        lambda when: Query(since=when).since,
        lambda when: Query(until=when).until,
        lambda when: RevertSelection(agent="a", since=when).since,
        lambda when: (
            Episode.create(
                StateSnapshot.create(["a.py"], "a test"), Action("run", "tests"), Outcome.SUCCESS, timestamp=when
            ).timestamp
        ),
    ],
)
def test_every_argument_means_local_time(made: Callable[[object], datetime]) -> None:
    """A naive datetime and text without an offset are local time in every value that a caller makes."""
    assert made(NOON) == NOON_UTC
    assert made("2026-03-01T12:00:00") == NOON_UTC
    assert made("2026-03-01T12:00:00Z") == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert made(NOON_UTC) == NOON_UTC


def test_a_day_is_a_local_day() -> None:
    """A day that ends a span ends at midnight here."""
    assert parse_until("2026-03-01", NOON_UTC) == datetime(2026, 3, 1, 14, 59, 59, 999999, tzinfo=UTC)
    assert given_time("2026-03-01") == datetime(2026, 2, 28, 15, tzinfo=UTC)
    assert parse_time("2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-03-05", "2026-03-05"),
        ("Yesterday", "2026-03-04", "2026-03-04"),
        ("thursday", "2026-03-05", "2026-03-05"),
        ("last thursday", "2026-02-26", "2026-02-26"),
        ("friday", "2026-02-27", "2026-02-27"),
        ("last friday", "2026-02-27", "2026-02-27"),
        ("this week", "2026-03-02", "2026-03-08"),
        ("last week", "2026-02-23", "2026-03-01"),
        ("last.week", "2026-02-23", "2026-03-01"),
        ("this month", "2026-03-01", "2026-03-31"),
        ("last month", "2026-02-01", "2026-02-28"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("2025-12", "2025-12-01", "2025-12-31"),
        ("2026-03-01", "2026-03-01", "2026-03-01"),
        ("9999-12-31", "9999-12-31", "9999-12-31"),
    ],
)
def test_days_weeks_months_and_years_are_those_of_the_calendar_here(text: str, first: str, last: str) -> None:
    """Today is the day that it is here, not this moment, and a span begins and ends at midnight here."""
    now = datetime(2026, 3, 4, 20, tzinfo=UTC)  # five in the morning of a Thursday, in Tokyo
    assert parse_when(text, now) == given_time(first)
    assert parse_until(text, now) == given_time(f"{last}T23:59:59.999999")


@pytest.mark.parametrize("text", ["last today", "week", "next week", "last", "2026-13", "0000-01", "mon"])
def test_what_names_no_span_of_days_is_refused(text: str) -> None:
    """It is neither a moment by accident nor a crash."""
    with pytest.raises(QueryInvalid, match="not a date, time or age"):
        Query(since=text)


@pytest.mark.parametrize("edge", [datetime.min, datetime.max])
def test_the_first_and_last_days_there_are_can_be_given(edge: datetime) -> None:
    """They have no local time everywhere, and mean always and never all the same."""
    assert abs(given_time(edge) - edge.replace(tzinfo=UTC)) <= timedelta(hours=9)
    assert Moment.of(edge.replace(tzinfo=UTC)) == edge.replace(tzinfo=UTC)


def test_state_is_asked_in_local_time(tmp_path: Path) -> None:
    """What a supervisor stored at a local time is found in a local range, and a token expires at one (S1, S3, S9)."""
    with ContextMemory(tmp_path / "m") as memory:
        memory.store_state_update(StateUpdate(update_type="periodic", timestamp=datetime.now()))
        span = (datetime.now() - timedelta(hours=1), datetime.now() + timedelta(hours=1))
        assert memory.retrieve_state("full", start=span[0], end=span[1]).content.system_state["updates"]
        start, end = memory.retrieve_state("full", start=span[0], end=span[1]).timestamp_range
        assert start is not None and end is not None and start < datetime.now() < end  # noqa: PT018
        past = (datetime.now() - timedelta(hours=3), datetime.now() - timedelta(hours=2))
        assert not memory.retrieve_state("full", start=past[0], end=past[1]).content.system_state["updates"]


def test_a_revision_is_asked_by_local_time(opened: Opened) -> None:
    """A date without an offset names the commit that was newest then, here (B1)."""
    workspace = opened()
    workspace.store.put(MemoryItem("Tests run in a sandbox", id="sandbox"))
    workspace.store.flush()
    soon = (datetime.now() + timedelta(hours=1)).isoformat(timespec="seconds")
    assert workspace.repository.resolve(soon) == workspace.repository.head_commit()
    head = workspace.repository.commit_object(workspace.repository.head_commit() or "").time
    before = (head.astimezone().replace(tzinfo=None) - timedelta(hours=1)).isoformat()
    with pytest.raises(Exception, match="no commit before"):
        workspace.repository.resolve(before)
    assert workspace.history.log(since=datetime.now() - timedelta(hours=1))
    with pytest.raises(QueryInvalid):
        Query(since="never")  # type: ignore[arg-type]
