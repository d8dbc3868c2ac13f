"""Which episodes and rules a situation brings to mind, in step with the files (P1, P4)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from memfs import Workspace
from memfs.catalog.facts import FILE
from memfs.intake.episode_item import item_of
from memfs.learning import situations
from memfs.learning import triggers as module
from memfs.learning.triggers import Triggers
from memfs.model import MemoryItem
from memfs.model.episode import Action, Episode, StateSnapshot, TriggerRow
from memfs.search.generations import shared_folder

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
OPENED = Callable[..., Workspace]
EDIT = StateSnapshot.create(["src/auth.py"], "Let people stay logged in for a week", tool="edit")


def episode(
    outcome: str = "failure",
    days: float = 1.0,
    state: StateSnapshot = EDIT,
    did: str = "Set the lifetime to seven days",
    error: str = "test_expiry failed",
    warned: Sequence[str] = (),
) -> Episode:
    """What happened so many days ago."""
    message = error if outcome == "failure" else ""
    when = NOW - timedelta(days=days)
    return Episode.create(state, Action("edit", did), outcome, message, timestamp=when, warned=warned)


def store(workspace: Workspace, *episodes: Episode, **fields: object) -> list[MemoryItem]:
    """Store episodes at once."""
    with workspace.store.batch("Record") as batch:
        return [batch.put(item_of(one).replace(**fields)) for one in episodes]


def triggers(workspace: Workspace, now: datetime = NOW) -> Triggers:
    """A table of its own, with a clock that is stopped."""
    return Triggers(workspace.store, lambda: now)


def catalog_of(workspace: Workspace) -> Path:
    """The file of the catalog."""
    folder = shared_folder(workspace.repository.common_dir)
    assert folder is not None
    return folder / FILE


def failures(found: Sequence[TriggerRow]) -> list[str]:
    """The ids of those that failed."""
    return [one.id for one in found if one.outcome == "failure"]


def test_p1_the_second_time_it_comes_to_mind(opened: OPENED) -> None:
    """A failure is found by its file and by its words, and nothing is found elsewhere (P1)."""
    workspace = opened()
    table = triggers(workspace)
    assert table.episodes(EDIT) == []
    (failed,) = store(workspace, episode())
    assert failures(table.episodes(EDIT)) == [failed.id]
    assert table.episodes(EDIT)[0].similarity == 1
    assert failures(table.episodes(StateSnapshot.create(["src/auth.py"], "Rename a helper"))) == [failed.id]
    assert table.episodes(StateSnapshot.create(["src/basket.py"], "Show the total")) == []
    assert table.episodes(StateSnapshot.create(["src/auth.py"], "Rename a helper"), threshold=0.9) == []


def test_successes_do_not_crowd_failures_out(opened: OPENED) -> None:
    """However many successes are more alike, the failure is among the few (P3)."""
    workspace = opened()
    again = [episode("success", 30 + number) for number in range(20)]
    items = store(workspace, *again, episode(days=0.5))
    found = triggers(workspace).episodes(EDIT, limit=3)
    assert len(found) == 3
    assert failures(found) == [items[-1].id]


def test_a_file_edited_200_times_since_does_not_warn_forever(opened: OPENED) -> None:
    """Successes in the same file outweigh a failure long ago, and a failure afterwards counts again (P1)."""
    workspace = opened()
    state = StateSnapshot.create(["src/auth.py"], "Rename a helper", tool="edit")
    names = ("logging", "colours", "retries", "docstring", "imports", "constants", "typing", "headers")
    went_well = [
        episode("success", 60 - number / 4, StateSnapshot.create(["src/auth.py"], f"Change {names[number % 8]}"))
        for number in range(200)
    ]
    store(workspace, episode(days=61), *went_well)
    table = triggers(workspace)
    assert failures(table.episodes(state)) == []
    (later,) = store(workspace, episode(days=0.1, did="Shorten the token", error="logins broke"))
    assert failures(table.episodes(state)) == [later.id]


def test_the_same_situation_that_goes_well_again_and_again_is_no_danger_any_more(opened: OPENED) -> None:
    """Two later successes of the very same deed leave the warning, and the third ends it."""
    workspace = opened()
    store(workspace, episode(days=30))
    table = triggers(workspace)
    store(workspace, *(episode("success", 20 - number) for number in range(2)))
    assert failures(table.episodes(EDIT))
    store(workspace, episode("success", 10))
    assert not failures(table.episodes(EDIT))


def test_who_heeds_a_warning_does_not_end_it(opened: OPENED) -> None:
    """Successes after the warning count only where the same was done again nevertheless (P4)."""
    workspace = opened()
    (failed,) = store(workspace, episode(days=30))
    table = triggers(workspace)
    heeded = [
        episode("success", 20 - number / 2, did="Leave it at an hour", warned=[failed.id]) for number in range(20)
    ]
    store(workspace, *heeded)
    assert failures(table.episodes(EDIT)) == [failed.id]
    store(workspace, *(episode("success", 5 - number / 5, warned=[failed.id]) for number in range(20)))
    assert failures(table.episodes(EDIT)) == []


def test_p7_age_takes_from_what_is_less_alike_but_never_from_a_repetition(opened: OPENED) -> None:
    """A year later the same file alone brings up nothing, the same situation does, and a pinned one always (P7)."""
    workspace = opened()
    (failed,) = store(workspace, episode(days=1))
    other = StateSnapshot.create(["src/auth.py"], "Rename a helper")
    later = NOW + timedelta(days=500)
    assert failures(triggers(workspace).episodes(other)) == [failed.id]
    assert failures(triggers(workspace, later).episodes(other)) == []
    assert failures(triggers(workspace, later).episodes(EDIT)) == [failed.id]
    unfading = Triggers(workspace.store, lambda: later, ageing=False)
    assert failures(unfading.episodes(other)) == [failed.id]
    workspace.store.put(failed.replace(pinned=True))
    assert failures(triggers(workspace, later).episodes(other)) == [failed.id]


def test_the_newest_comes_first_and_what_says_the_same_once(opened: OPENED) -> None:
    """Of failures that are equally alike the newer is first; the same deed with the same error is named once."""
    workspace = opened()
    items = store(
        workspace,
        *(episode(days=9 - number) for number in range(5)),
        episode(days=2, did="Sign the cookie", error="no key"),
    )
    assert failures(triggers(workspace).episodes(EDIT, limit=5)) == [items[5].id, items[4].id]


@pytest.mark.parametrize(
    "change", [{"status": "retired"}, {"expires": NOW - timedelta(hours=1)}, {"status": "superseded"}]
)
def test_what_has_ended_brings_nothing_to_mind(opened: OPENED, change: dict[str, object]) -> None:
    """Retired, superseded and expired ones are left out."""
    workspace = opened()
    (failed,) = store(workspace, episode())
    workspace.store.put(failed.replace(**change))
    assert triggers(workspace).episodes(EDIT) == []


def test_what_another_item_replaces_brings_nothing_to_mind(opened: OPENED) -> None:
    """An episode that names it under ``supersedes`` is enough."""
    workspace = opened()
    (failed,) = store(workspace, episode())
    (better,) = store(workspace, episode(error="the clock was wrong"), supersedes=(failed.id,))
    assert failures(triggers(workspace).episodes(EDIT)) == [better.id]


def test_18_what_is_vouched_for_less_replaces_nothing(opened: OPENED) -> None:
    """A tool that says it replaces a person's rule, or an agent's failure, silences neither (faults row 18)."""
    workspace = opened()
    (failed,) = store(workspace, episode())
    workspace.store.put(MemoryItem("Ask first", "rule", id="asked", trust="human", data={"files": ["src/auth.py"]}))
    table = triggers(workspace)
    names = (failed.id, "asked")

    (posing,) = store(workspace, episode("success", state=StateSnapshot()), trust="tool", supersedes=names)
    assert failures(table.episodes(EDIT)) == [failed.id]
    assert [one.id for one in table.rules(EDIT)] == ["asked"]

    workspace.store.put(posing.replace(trust="reviewed"))
    assert failures(table.episodes(EDIT)) == []
    assert [one.id for one in table.rules(EDIT)] == ["asked"]
    workspace.store.put(workspace.store.get(posing.id).replace(trust="human"))
    assert table.rules(EDIT) == []


# -- rules --------------------------------------------------------------------------------------------------------
def test_p3_rules_are_found_by_their_situation_and_confidence(opened: OPENED) -> None:
    """Rules apply by words, files and tool, the surest first; unsure and retired ones do not (P3)."""
    workspace = opened()

    def rule(name: str, **data: object) -> MemoryItem:
        return workspace.store.put(MemoryItem(f"Advice {name}", "rule", id=name, trust="agent", data=data))

    rule("by-words", pattern="edit database migration", confidence=0.75)
    rule("by-file", files=["migrations/*.sql"], confidence=0.9)
    rule("unsure", pattern="edit database migration", confidence=0.5)
    workspace.store.put(rule("retired", files=["*.sql"], confidence=1.0).replace(status="retired"))
    table = triggers(workspace)
    state = StateSnapshot.create(["migrations/0001.sql"], "Edit the migration of the database", tool="edit")
    assert [one.id for one in table.rules(state)] == ["by-words", "by-file"]
    assert [one.id for one in table.rules(state, 0.8)] == ["by-file"]
    assert {one.id for one in table.rules(state, 0.1)} == {"by-words", "by-file", "unsure"}
    assert table.rules(StateSnapshot.create([], "Write documentation")) == []
    found = table.load(table.rules(state)[0])
    assert found is not None
    assert found.content == "Advice by-words"


# -- in step with the files ---------------------------------------------------------------------------------------
def test_what_a_person_changes_or_deletes_is_followed(opened: OPENED) -> None:
    """An edited episode matches by what it says now, one that is not an episode any more or was deleted not at all."""
    workspace = opened()
    (failed,) = store(workspace, episode())
    workspace.store.flush()
    table = triggers(workspace)
    assert failures(table.episodes(EDIT)) == [failed.id]
    path = workspace.root / failed.path
    good = path.read_text()
    path.write_text(good.replace("src/auth.py", "src/session.py").replace("stay logged in", "pay by invoice"))
    moved = StateSnapshot.create(["src/session.py"], "Rename a helper")
    assert table.episodes(EDIT) == []
    assert failures(table.episodes(moved)) == [failed.id]
    path.write_text(good.replace("outcome: failure", "outcome: recovered"))
    assert (table.episodes(EDIT), table.count()) == ([], 0)
    path.write_text(good)
    assert failures(table.episodes(EDIT)) == [failed.id]
    path.unlink()
    assert (table.episodes(EDIT), table.count(), table.rows()) == ([], 0, [])


def test_a_match_is_never_given_with_what_its_file_no_longer_says(opened: OPENED) -> None:
    """An edit between question and answer: the item is not given, rather than what it said before."""
    workspace = opened()
    (failed,) = store(workspace, episode())
    table = triggers(workspace)
    (found, *_) = table.episodes(EDIT)
    path = workspace.root / failed.path
    path.write_text(path.read_text().replace("test_expiry failed", "something else"))
    assert table.load(found) is None
    (found, *_) = table.episodes(EDIT)
    item = table.load(found)
    assert item is not None
    assert "something else" in item.content


def test_two_processes_see_what_either_records(opened: OPENED, tmp_path: Path) -> None:
    """What another handle stores, changes and deletes is known to the next question."""
    one = opened()
    other = opened(tmp_path / "workspace")
    mine, theirs = triggers(one), triggers(other)
    assert (mine.count(), theirs.count()) == (0, 0)
    (failed,) = store(one, episode())
    assert failures(theirs.episodes(EDIT)) == [failed.id]
    other.store.delete(failed.id)
    assert mine.episodes(EDIT) == []
    store(other, episode())
    other.store.fold()
    store(other, episode(days=2, error="another"))
    other.store.fold()
    assert len(mine.episodes(EDIT)) == 2


def test_a_new_process_reads_no_file_that_it_knows(opened: OPENED, tmp_path: Path) -> None:
    """The cache spares the next process every file that is as it was, and only these."""
    first = opened(index__engine="sqlite")
    items = store(first, *(episode(error=f"error {number}") for number in range(5)))
    first.store.put(MemoryItem("Lunch with the customer", "episodic", id="lunch"))
    table = triggers(first)
    assert table.count() == 5
    first.close()
    path = tmp_path / "workspace" / items[0].path
    path.write_text(path.read_text().replace("error 0", "error 10"))
    second = opened(tmp_path / "workspace", index__engine="sqlite")
    table = triggers(second)
    with patch.object(situations, "row_of", side_effect=situations.row_of) as made:
        assert table.count() == 5
        assert len(table.episodes(EDIT, limit=9)) == 5
    assert made.call_count == 1


def test_no_fact_is_asked_of_what_is_neither_episode_nor_rule(opened: OPENED) -> None:
    """Which files of the index have a row is known as well, until their index is another one."""
    workspace = opened(index__engine="sqlite")
    store(workspace, *(episode(error=f"error {number}") for number in range(5)))
    lunch = workspace.store.put(MemoryItem("Lunch with the customer", "episodic", id="lunch"))
    workspace.store.reindex()
    assert triggers(workspace).count() == 5
    table = triggers(workspace)
    with patch.object(module, "unpacked", side_effect=module.unpacked) as taken:
        assert table.count() == 5
    assert taken.call_count == 5
    workspace.store.put(item_of(episode(error="error 5")).replace(id=lunch.id, path=lunch.path))
    assert table.count() == 6
    workspace.store.reindex()
    assert table.count() == 6
    assert triggers(workspace).count() == 6


def test_a_cache_that_cannot_be_had_costs_time_and_nothing_else(opened: OPENED, tmp_path: Path) -> None:
    """Garbage in the cache's place, and a folder where it would be: the files are read."""
    workspace = opened()
    store(workspace, episode())
    place = catalog_of(workspace)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"garbage" * 500)
    table = triggers(workspace)
    assert table.count() == 1
    place.unlink(missing_ok=True)
    place.mkdir()
    again = triggers(workspace)
    assert again.count() == 1


def test_folders_and_times_of_any_kind_are_taken(opened: OPENED, tmp_path: Path) -> None:
    """A folder whose name is not text, and the last moment of the calendar, are kept for the next process."""
    workspace = opened(index__engine="sqlite")
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    (failed,) = store(workspace, replace(episode(), timestamp=last), expires=last)
    folder = (workspace.root / failed.path).parent
    folder.rename(folder.with_name(os.fsdecode(b"caf\xe9")))
    table = triggers(workspace)
    assert failures(table.episodes(EDIT)) == [failed.id]
    assert table.episodes(EDIT)[0].timestamp.year == 9999
    workspace.close()
    again = triggers(opened(tmp_path / "workspace", index__engine="sqlite"))
    with patch.object(situations, "row_of", side_effect=AssertionError):
        assert failures(again.episodes(EDIT)) == [failed.id]


def test_a_table_that_could_not_be_made_whole_is_not_used(opened: OPENED) -> None:
    """Anyone who was interrupted while the table was made finds everything with the next question."""
    workspace = opened()
    (failed,) = store(workspace, episode())
    table = triggers(workspace)
    with patch.object(situations, "row_of", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        table.episodes(EDIT)
    assert failures(table.episodes(EDIT)) == [failed.id]


def test_threads_ask_and_record_at_once(opened: OPENED) -> None:
    """Nothing that a thread recorded is missing from its next question, and no question fails."""
    workspace = opened()
    table = triggers(workspace)

    def work(number: int) -> list[bool]:
        found = []
        for turn in range(6):
            state = StateSnapshot.create([f"src/part{number}.py"], f"Turn {turn}")
            (item,) = store(workspace, episode(state=state, did=f"step {turn}", error=f"error {turn}"))
            found.append(item.id in failures(table.episodes(state, limit=20)))
        return found

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [[True] * 6] * 4
    assert table.count() == 24


def test_rows_are_what_analysis_needs(opened: OPENED) -> None:
    """Outcome, tool, files, words, error, time and warnings of each episode, the oldest first; no file is read."""
    workspace = opened()
    store(workspace, episode(days=3, warned=["some-id"]), episode("success", 5))
    table = triggers(workspace)
    table.count()
    with patch.object(type(workspace.store), "load", side_effect=AssertionError):
        first, second = table.rows("episode")
    assert (first.outcome, second.outcome) == ("success", "failure")
    assert (second.tool, second.files, second.error, second.warned) == (
        "edit",
        ("src/auth.py",),
        "test_expiry failed",
        ("some-id",),
    )
    assert second.timestamp == NOW - timedelta(days=3)
    assert "login" not in second.words
    assert "week" in second.words
    assert table.rows("rule") == []


def test_erasing_an_item_takes_the_cache_with_it(opened: OPENED) -> None:
    """What a row holds of an erased episode is nowhere afterwards (B7)."""
    workspace = opened(history__commit="each")
    (failed,) = store(workspace, episode(error="the unspeakable word is xylophone-quartz"))
    workspace.store.flush()
    workspace.sources.triggers.count()
    place = catalog_of(workspace)
    assert b"xylophone-quartz" in b"".join(path.read_bytes() for path in place.parent.glob(f"{FILE}*"))
    workspace.eraser.erase(failed.id)
    assert not [path for path in place.parent.glob(f"{FILE}*") if b"xylophone-quartz" in path.read_bytes()]
