"""Shared documents: hypotheses and results that several writers change at once (issue 5, point 8)."""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memfs import Workspace
from memfs.errors import Conflict
from memfs.state.reader import DocumentChange
from memfs.workspace import open_workspace
from tests.state.rig import Rig

Opened = Callable[..., Workspace]
SETTINGS = {"index.engine": "memory", "history.commit": "manual"}
H = "iteration_001/hypotheses/h.json"


@pytest.fixture
def rig(opened: Opened) -> Rig:
    """A new workspace."""
    return Rig(opened())


@pytest.fixture
def two(opened: Opened) -> tuple[Rig, Rig]:
    """Two handles of one workspace, which knew it before anything was stored."""
    first = Rig(opened())
    second = Rig(opened(first.workspace.root))
    assert first.recorder
    assert second.recorder
    return first, second


# -- one writer ---------------------------------------------------------------------------------------------------
def test_a_hypothesis_is_kept_with_its_parents_and_free_keys(rig: Rig) -> None:
    """Whatever it holds comes back; the time of its storing is added where it has none (S2)."""
    ack = rig.recorder.hypothesis({"id": "H 1/b", "state": "new", "rating": 1200, "text": {"de": "ja"}}, ["H 0", "H 0"])

    assert ack.path == "ContextMemory/iterations/iteration_001/hypotheses/H%201%2Fb.json"
    assert rig.read("iteration_001/hypotheses/H%201%2Fb.json") == {
        "id": "H 1/b",
        "state": "new",
        "rating": 1200,
        "text": {"de": "ja"},
        "parents": ["H 0"],
        "timestamp": "2026-03-01T12:00:00Z",
    }
    assert rig.fired == [("state_stored", {"kind": "hypothesis", "path": ack.path, "iteration": 1, "update_type": ""})]


def test_what_is_left_out_stays_and_what_is_none_goes(rig: Rig) -> None:
    """A hypothesis may be handed over in part; the same one again writes nothing."""
    rig.recorder.hypothesis({"id": "h", "text": "x", "note": "y", "wins": 1})
    rig.later(hours=1)
    changed = rig.recorder.hypothesis({"id": "h", "note": None, "wins": 2}, ["p"])
    rig.later(hours=1)
    again = rig.recorder.hypothesis({"id": "h", "wins": 2, "text": "x"})

    assert rig.read(H) == {"id": "h", "text": "x", "wins": 2, "parents": ["p"], "timestamp": "2026-03-01T13:00:00Z"}
    assert again.sha256 == changed.sha256
    assert len(rig.fired) == 2


def test_a_hypothesis_without_an_id_is_named_by_its_content(rig: Rig) -> None:
    """The same again is the same one; another name for the id is taken, too."""
    first = rig.recorder.hypothesis({"text": "x"})

    assert rig.recorder.hypothesis({"text": "x"}).path == first.path
    assert rig.recorder.hypothesis({"text": "y"}).path != first.path
    assert rig.recorder.hypothesis({"hypothesis_id": 7}).path.endswith("/hypotheses/7.json")


def test_results_without_an_id_are_one_each(rig: Rig) -> None:
    """Two matches that ended alike are two; one with an id is stored under it."""
    match = {"participants": ["a", "b"], "winner": "a", "ratings": {"a": 1216, "b": 1184}}

    paths = {rig.recorder.tournament_result(match).path for _ in range(2)}
    assert len(paths) == 2
    named = rig.recorder.tournament_result({**match, "match_id": "m/1"})
    assert named.path.endswith("/tournament_data/m%2F1.json")
    assert rig.recorder.tournament_result({**match, "id": "m/1"}).path == named.path


def test_a_hypothesis_goes_on_in_the_next_iteration(rig: Rig) -> None:
    """Its document there begins from the last one, which stays as it was (S10)."""
    rig.recorder.hypothesis({"id": "h", "text": "x", "wins": 2, "timestamp": "2026-03-01T12:00:00Z"})
    rig.iterations.start(2)

    rig.recorder.hypothesis({"id": "h", "wins": 3, "timestamp": "2026-03-02T12:00:00Z"})

    assert rig.read(H)["wins"] == 2
    assert rig.read("iteration_002/hypotheses/h.json") == {
        "id": "h",
        "text": "x",
        "wins": 3,
        "timestamp": "2026-03-02T12:00:00Z",
    }
    late = rig.recorder.hypothesis({"id": "h", "text": "z"}, iteration=1)
    assert "/iteration_001/" in late.path


def test_what_is_handed_back_with_an_old_time_gets_that_of_the_change(rig: Rig) -> None:
    """The time says when a version was made: another version's is no time of its own, a new one is (S2, S13)."""
    rig.recorder.hypothesis({"id": "h", "rating": 1})
    rig.later(hours=1)
    read = rig.read(H)
    rig.recorder.hypothesis({**read, "rating": 2})
    changed = rig.read(H)
    rig.later(hours=1)
    again = rig.recorder.hypothesis(changed)
    other = rig.recorder.hypothesis({**changed, "rating": 3, "timestamp": "2026-03-01T13:00:00+00:00"})
    own = rig.recorder.hypothesis({"id": "h", "rating": 4, "timestamp": "2026-03-01T15:00:00Z"})

    assert changed["timestamp"] == "2026-03-01T13:00:00Z"
    assert again.sha256 != other.sha256 != own.sha256
    assert [one["timestamp"] for one in (changed, rig.read(H))] == ["2026-03-01T13:00:00Z", "2026-03-01T15:00:00Z"]
    rig.iterations.start(2)
    rig.recorder.hypothesis({**rig.read(H), "rating": 5})
    assert rig.read("iteration_002/hypotheses/h.json")["timestamp"] == "2026-03-01T14:00:00Z"


def test_the_time_of_a_result_is_that_of_its_match(rig: Rig) -> None:
    """What is added to a result later does not move it: its time says when it was decided (S2)."""
    rig.recorder.tournament_result({"id": "m", "participants": ["a", "b"], "winner": "a"})
    rig.later(hours=1)
    stored = rig.read("iteration_001/tournament_data/m.json")
    rig.recorder.tournament_result({**stored, "note": "close"})

    assert rig.read("iteration_001/tournament_data/m.json") == {**stored, "note": "close"}


# -- several writers ----------------------------------------------------------------------------------------------
def test_counters_of_two_handles_add_up(two: tuple[Rig, Rig]) -> None:
    """Each is judged by the version that it was made from; without one, a total takes the place of the other (S2)."""
    first, second = two
    first.recorder.hypothesis({"id": "h", "wins": 1, "matches": 1})
    base = first.read(H)
    first.recorder.hypothesis({"id": "h", "wins": 3, "matches": 3}, base=base)
    second.recorder.hypothesis({"id": "h", "losses": 1, "matches": 2}, base=base)

    stored = first.read(H)
    assert (stored["wins"], stored["losses"], stored["matches"]) == (3, 1, 4)
    second.recorder.hypothesis({"id": "h", "matches": 9})
    assert (first.read(H)["wins"], first.read(H)["matches"]) == (3, 9)


def test_fields_that_only_one_changed_are_joined(two: tuple[Rig, Rig]) -> None:
    """Parents and keys of both are there, and nothing of it is a conflict."""
    first, second = two
    first.recorder.hypothesis({"id": "h", "title": "t", "scores": {"a": 1}}, ["p"])
    base = second.read(H)
    first.recorder.hypothesis({"id": "h", "title": "T", "scores": {"a": 1, "b": 2}}, ["p", "q"])
    ack = second.recorder.hypothesis({"id": "h", "state": "ok", "scores": {"a": 1, "c": 3}}, ["p", "r"], base=base)

    stored = first.read(H)
    assert ack.conflicts == ()
    assert (stored["title"], stored["state"], stored["scores"]) == ("T", "ok", {"a": 1, "b": 2, "c": 3})
    assert sorted(stored["parents"]) == ["p", "q", "r"]
    assert second.names("iteration_001/conflicts") == []


def test_a_contradiction_keeps_the_last_writers_value_and_is_recorded(
    two: tuple[Rig, Rig], git: Callable[..., str]
) -> None:
    """The other value is in the record and, with its whole document, in history; the writer gets a report (issue 5)."""
    first, second = two
    first.recorder.hypothesis({"id": "h", "agent": "gen", "state": "new", "rating": 1})
    base = second.read(H)
    first.recorder.hypothesis({"id": "h", "state": "accepted"})
    lost = (first.workspace.root / "ContextMemory/iterations" / H).read_bytes()

    ack = second.recorder.hypothesis({**base, "state": "rejected"}, base=base)

    assert ack.conflicts == ("state",)
    assert first.read(H)["state"] == "rejected"
    (name,) = first.names("iteration_001/conflicts")
    assert first.read(f"iteration_001/conflicts/{name}") == {
        "document": ack.path,
        "field": "state",
        "kept": "rejected",
        "lost": "accepted",
        "lost_sha256": hashlib.sha256(lost).hexdigest(),
        "timestamp": "2026-03-01T12:00:00Z",
        "by": "gen",
    }
    first.workspace.store.flush()
    root = first.workspace.root
    versions = git(root, "log", "--format=%H", "--", ack.path).split()
    assert lost.decode() in [git(root, "show", f"{commit}:{ack.path}") for commit in versions]


def test_an_agent_that_was_started_again_hands_over_its_totals(opened: Opened) -> None:
    """Without a base its values take the place of those that are stored, and what it leaves out stays."""
    first = Rig(opened())
    first.recorder.hypothesis({"id": "h", "wins": 3, "text": "x"})
    again = Rig(opened(first.workspace.root))

    again.recorder.hypothesis({"id": "h", "wins": 4})

    assert (first.read(H)["wins"], first.read(H)["text"]) == (4, "x")


def test_threads_that_read_the_same_count_both_count(rig: Rig) -> None:
    """Each is judged by the version that it read (S2)."""
    rig.recorder.hypothesis({"id": "h", "wins": 5})
    both = threading.Barrier(2)

    def play() -> None:
        read = rig.read(H)
        both.wait()
        rig.recorder.hypothesis({**read, "wins": read["wins"] + 1}, base=read)

    threads = [threading.Thread(target=play) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert rig.read(H)["wins"] == 7


def _count(root: Path, name: str, times: int) -> None:
    """Add one, so many times, reading before each."""
    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        states = workspace.states
        for _ in range(times):
            read = states.reading.load(f"ContextMemory/iterations/{H}")
            counts = {"wins": read["wins"] + 1, name: read.get(name, 0) + 1}
            states.recorder.hypothesis({"id": "h", **counts}, base=read)


def test_processes_that_count_at_once_lose_nothing(rig: Rig) -> None:
    """4 processes x 10 increments of one counter add up to 40."""
    rig.recorder.hypothesis({"id": "h", "wins": 0})
    spawned = multiprocessing.get_context("fork")
    workers = [spawned.Process(target=_count, args=(rig.workspace.root, f"own{n}", 10)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 4
    stored = rig.read(H)
    assert stored["wins"] == 40
    assert [stored[f"own{n}"] for n in range(4)] == [10] * 4
    assert rig.names("iteration_001/conflicts") == []


def test_a_writer_that_never_gets_a_turn_gets_an_error(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while of nothing but conflicts the error names the document, and nothing was stored."""

    def refuse(changes: Sequence[DocumentChange], *_arguments: Any, **_options: Any) -> None:
        raise Conflict("it changed", path=changes[0].path)

    rig.iterations.start(1)
    passed = iter(range(0, 1000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: next(passed))
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    with monkeypatch.context() as patched:
        patched.setattr(rig.workspace.states.files, "write", refuse)
        with pytest.raises(Conflict, match=r"hypotheses/h.json: others keep changing .*: it changed .try again"):
            rig.recorder.hypothesis({"id": "h"})
        with pytest.raises(Conflict, match=r"state_updates/.*: others keep changing"):
            rig.recorder.state_update({})
        with pytest.raises(Conflict, match=r"agent_outputs/a/t.json: others keep changing"):
            rig.recorder.agent_output({"agent_type": "a", "task_id": "t"})
        with pytest.raises(Conflict, match=r"continuations/.*: others keep changing"):
            rig.continuations.save("a", "t", 1)
        with pytest.raises(Conflict, match=r"system_state.json: others keep changing"):
            rig.iterations.close(1)
    assert rig.names("iteration_001") == ["system_state.json"]
