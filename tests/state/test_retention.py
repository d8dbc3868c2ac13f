"""What is due by the policy, what happens by itself, and what else meets archives (S5, S15, S16)."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from datetime import timedelta

import pytest
from archived import contents, iteration, policy

from memfs.admin.archive_file import index_path, payload_path
from memfs.errors import ContentError
from memfs.model.state_paths import system_state_path
from memfs.state.archives import Archiver
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def test_an_iteration_is_due_when_it_was_closed_for_active_days(opened: Opened) -> None:
    """Closed for active_days: due; a moment less, or open: not (S5)."""
    workspace = opened()
    iteration(workspace, 1)
    iteration(workspace, 2, status="open")
    archiver = workspace.states.archiver
    closed = archiver.closed()[1]
    assert archiver.due(closed + timedelta(days=30)).iterations == {1: closed}
    assert archiver.due(closed + timedelta(days=30, seconds=-1)).iterations == {}
    policy(workspace, active_days=3)
    assert set(archiver.due(closed + timedelta(days=3)).iterations) == {1}
    assert archiver.due(closed + timedelta(days=3), active_days=4).iterations == {}


def test_an_iteration_that_was_opened_again_by_hand_is_not_archived(opened: Opened) -> None:
    """Its header decides, not the index, which an edit in place may not have reached yet (S5)."""
    workspace = opened()
    iteration(workspace, 1)
    archiver = workspace.states.archiver
    assert set(archiver.closed()) == {1}
    header = workspace.root / system_state_path(1)
    header.write_text(header.read_text().replace('"closed"', '"open"', 1))
    assert archiver.closed() == {}


def test_an_invalid_policy_makes_nothing_due(opened: Opened) -> None:
    """A policy that a person broke is an error that names the field; nothing is archived meanwhile (S15)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    policy(workspace, active_days="soon")
    with pytest.raises(ContentError, match="active_days"):
        workspace.states.archiver.run()
    assert len(contents(workspace, paths)) == 4


def test_due_iterations_are_archived_by_a_process_that_writes(opened: Opened) -> None:
    """Upkeep archives what is due, once an hour at most, where the policy wants that by itself (S15)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    done = workspace.states.archiver.keep_up()
    assert done is not None
    assert done.archived.iterations == (1,)
    iteration(workspace, 2)
    assert workspace.states.archiver.keep_up() is None
    assert contents(workspace, paths) == {}


def test_what_is_due_within_a_day_goes_into_one_archive(opened: Opened) -> None:
    """A system whose iterations take minutes has an archive a day, not one for each of them (S15)."""
    workspace = opened()
    states, now = workspace.states, [workspace.parts.clock()]
    reading = copy(states.reading)
    reading.parts = replace(workspace.parts, clock=lambda: now[0])

    def kept_up() -> tuple[int, ...]:
        done = Archiver(workspace.store, reading, states.archives).keep_up()
        return done.archived.iterations if done else ()

    iteration(workspace, 1)
    assert kept_up() == (1,)
    iteration(workspace, 2)
    now[0] += timedelta(hours=20)
    assert kept_up() == ()
    iteration(workspace, 3)
    now[0] += timedelta(hours=5)
    assert kept_up() == (2, 3)
    assert len(states.archives.periods()) == 2
    assert states.archiver.due(now[0]).iterations == {}


def test_nothing_is_archived_by_itself_where_the_policy_says_so(opened: Opened) -> None:
    """With archive.enabled false only the command archives (S15)."""
    workspace = opened()
    policy(workspace, archive={"enabled": False})
    iteration(workspace, 1)
    assert workspace.states.archiver.keep_up() is None
    assert not any("archive" in step.what for step in workspace.cleaner.clean())
    assert workspace.states.archiver.run().archived.iterations == (1,)


def test_cleanup_archives_what_is_due(opened: Opened) -> None:
    """Archiving is a step of the cleanup, by command and when a quota's threshold is crossed (S16)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    workspace.behaviours.fire(
        "storage_threshold", {"area": "iterations", "level": "critical", "used": 1, "limit": 1, "share": 1.0}
    )
    assert contents(workspace, paths) == {}


def test_archives_are_deleted_only_where_the_policy_says_so(opened: Opened) -> None:
    """Without delete.archives_after_days no archive is ever deleted; with it, the old ones (S5)."""
    workspace = opened()
    iteration(workspace, 1)
    archiver = workspace.states.archiver
    archiver.run()
    later = workspace.parts.clock() + timedelta(days=400)
    assert archiver.due(later).archives == ()
    policy(workspace, delete={"archives_after_days": 300})
    assert archiver.due().archives == ()
    assert archiver.due(later).archives == ("2020-03",)
    workspace.states.archiver.delete("2020-03", "a test")
    assert not (workspace.root / payload_path("2020-03")).exists()
    assert not (workspace.root / index_path("2020-03")).exists()
    assert workspace.repository.read("HEAD~3", system_state_path(1))


def test_erasing_a_document_reaches_the_archives(opened: Opened) -> None:
    """An archived document that is erased is no longer in any payload; the others are read from history (S18)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    before = contents(workspace, paths)
    workspace.states.archiver.run()
    gone = paths[0]
    erased = workspace.eraser.erase(gone, is_path=True)
    assert erased.proof.hits == ()
    assert not (workspace.root / payload_path("2020-03")).exists()
    workspace.states.archives._decoded.cache_clear()
    assert {path: workspace.states.archives.read(path) for path in paths[1:]} == {
        path: data for path, data in before.items() if path != gone
    }


def test_archived_documents_are_found_and_loaded_like_others(opened: Opened) -> None:
    """Through the same calls as before: an archived document loads as it was (S3, S5)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    reading = workspace.states.reading
    before = {path: reading.load(path) for path in paths}
    workspace.states.archiver.run()
    assert contents(workspace, paths) == {}
    assert {path: reading.load(path) for path in paths} == before
    assert [(row.number, row.status) for row in reading.iterations()] == [(1, "closed")]


def test_growth_counts_archived_iterations_as_they_were(opened: Opened) -> None:
    """What an iteration weighs does not change by its archiving; even growth is linear (S15)."""
    from memfs.state.archives import growth_of

    workspace = opened()
    for number in (1, 2, 3):
        iteration(workspace, number)
    before, _ = growth_of(workspace.parts, workspace.states.archives)
    archiver = workspace.states.archiver
    archiver.archive({2: archiver.closed()[2]}, 3)
    after, slope = growth_of(workspace.parts, workspace.states.archives)
    assert [(row.number, row.bytes, row.documents) for row in after] == [
        (row.number, row.bytes, row.documents) for row in before
    ]
    assert [bool(row.archived) for row in after] == [False, True, False]
    assert abs(slope) < 10


def test_check_names_a_damaged_archive(opened: Opened) -> None:
    """check names an index that is broken, check --integrity a payload with one flipped bit, both by path (S18)."""
    workspace = opened()
    iteration(workspace, 1)
    workspace.states.archiver.run()
    assert [one for one in workspace.checker.check(integrity=True) if "archive/" in one.path] == []
    payload = workspace.root / payload_path("2020-03")
    data = payload.read_bytes()
    payload.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    (workspace.root / index_path("2019-01")).write_text("{}")
    assert [one.path for one in workspace.checker.check() if one.code == "ArchiveInvalid"] == [index_path("2019-01")]
    found = [one.path for one in workspace.checker.check(integrity=True) if one.code == "ArchiveInvalid"]
    assert found == [index_path("2019-01"), payload_path("2020-03")]
