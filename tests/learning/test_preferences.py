"""Preferences: how a person wants things done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import SchemaInvalid, SecretDetected
from memfs.intake.contradictions import Neighbours
from memfs.learning.preferences import Preferences
from memfs.model import Candidate, Link, MemoryItem
from memfs.store.parts import LoadedItem
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def preferences(workspace: Workspace, now: datetime = NOW) -> Preferences:
    """The preferences of a workspace at a set time."""
    parts = replace(workspace.parts, clock=lambda: now)
    return Preferences(workspace.store, parts, workspace.usage, workspace.behaviours.fire)


def wish(text: str, **fields: object) -> MemoryItem:
    """A preference as an item, said at noon."""
    return MemoryItem(text, "preference", **{"timestamp": NOW, **fields})  # type: ignore[arg-type]


def texts(found: object) -> list[str]:
    """What preferences say."""
    return [str(one) for one in found]  # type: ignore[attr-defined]


# -- recording ----------------------------------------------------------------------------------------------------
def test_each_correction_of_a_message_becomes_a_preference(opened: Open) -> None:
    """P4: what a person corrects is kept in their words, with who said it, as trust human."""
    workspace = opened()
    message = "The tests pass, thanks. Never use mocks for the database. Use uv instead of pip."
    stored = preferences(workspace).record(message, "Ada", "s1", agent="coder", context={"project": "shop"})
    assert [item.content for item in stored] == ["Never use mocks for the database.", "Use uv instead of pip."]
    assert {
        (item.type, item.trust, item.origin.speaker, item.origin.session, item.origin.agent) for item in stored
    } == {("preference", "human", "Ada", "s1", "coder")}
    assert all(item.context == {"project": "shop"} and item.timestamp == NOW for item in stored)


def test_a_message_without_a_recognised_correction_is_one_as_a_whole(opened: Open) -> None:
    """P4: anyone who calls it a correction is believed."""
    found = preferences(opened())
    assert [item.content for item in found.record(" Commit style: imperative ")] == ["Commit style: imperative"]
    with pytest.raises(SchemaInvalid):
        found.record("  ")


def test_what_was_said_before_is_kept_once(opened: Open) -> None:
    """P4: saying it again on the same day changes no file."""
    workspace = opened()
    found = preferences(workspace)
    first = found.record("Always use uv, never pip.", "Ada")
    again = found.record("always use uv,  never pip!", "Ada")
    assert [item.id for item in again] == [item.id for item in first]
    assert again[0].sha256 == first[0].sha256
    assert found.count() == 1


def test_what_is_said_again_later_counts_as_said_then(opened: Open) -> None:
    """P4: it was meant seriously, and is the newer one again."""
    workspace = opened()
    first = preferences(workspace).record("Always use uv, never pip.")
    later = NOW + timedelta(days=30)
    again = preferences(workspace, later).record("Always use uv, never pip.")
    assert (again[0].id, again[0].timestamp) == (first[0].id, later)


def test_what_is_said_again_while_somebody_edits_it_is_kept(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: repeating a wish is not a conflict with another's edit; the edit stays."""
    workspace = opened()
    (first,) = preferences(workspace).record("Always use uv, never pip.")
    put = workspace.store.put

    def edited_first(item: MemoryItem, expected: str | None = None, **named: Any) -> MemoryItem:
        if expected:
            put(first.replace(tags=("python",)))
        return put(item, expected, **named)

    monkeypatch.setattr(workspace.store, "put", edited_first)
    (again,) = preferences(workspace, NOW + timedelta(days=30)).record("Always use uv, never pip.")
    assert again.id == first.id
    kept = workspace.store.get(first.id)
    assert kept is not None
    assert kept.tags == ("python",)


def test_the_same_words_have_the_same_id_everywhere(opened: Open, tmp_path: Path) -> None:
    """P4: so that two clones, or two processes at once, that hear the same keep one file."""
    here = preferences(opened()).record("Always use uv, never pip.", "Ada")
    there = preferences(opened(tmp_path / "other")).record("always use uv,  never pip!", "Ada")
    elsewhere = preferences(opened(tmp_path / "third")).record("Always use uv, never pip.", "Bob")
    assert here[0].id == there[0].id != elsewhere[0].id


def test_a_secret_in_one_correction_keeps_back_no_other(opened: Open) -> None:
    """Faults row 19: the one is refused, the others are stored, and nothing of the secret is written."""
    workspace = opened()
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with pytest.raises(SecretDetected):
        preferences(workspace).record(f"Always use the token {token} for GitHub. Never push to main.")
    kept = texts(preferences(workspace).get_relevant())
    assert kept == ["Never push to main."]
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert not any(token.encode() in path.read_bytes() for path in files)


def test_threads_that_hear_the_same_keep_it_once(opened: Open) -> None:
    """Two hooks of one process that see one message store one preference."""
    workspace = opened()
    found = preferences(workspace)
    threads = [threading.Thread(target=found.record, args=("Never push to main.",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count() == 1


def test_processes_that_hear_the_same_keep_it_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: one looked before the other wrote, and finds out when it writes itself."""
    one, other = opened(), opened()
    first = preferences(one).record("Never push to main.", "Ada")
    late = preferences(other)
    blind = iter([Neighbours()])
    look = late._neighbourhood.of
    monkeypatch.setattr(late._neighbourhood, "of", lambda *what: next(blind, None) or look(*what))
    second = late.record("never push to main", "Ada")
    assert [item.id for item in second] == [item.id for item in first]
    assert late.count() == 1


def test_an_id_taken_by_other_words_is_left_alone(opened: Open) -> None:
    """P4: a person who rewrote a preference keeps theirs, and saying the old one again is a new one."""
    workspace = opened()
    found = preferences(workspace)
    (stored,) = found.record("Never push to main.")
    workspace.store.put(stored.replace(content="Push to main whenever you like, it is fine."))
    (again,) = found.record("Never push to main.")
    assert again.id != stored.id
    assert found.count() == 2


# -- bringing back ------------------------------------------------------------------------------------------------
def test_what_fits_the_context_comes_first_then_the_important_then_the_new(opened: Open) -> None:
    """P3: an agent is given first what concerns its work."""
    workspace = opened()
    for item in (
        wish("Write commit messages in the imperative.", importance=5.0),
        wish("Use British spelling in the docs.", timestamp=NOW - timedelta(days=2)),
        wish("Keep functions short.", timestamp=NOW - timedelta(days=1)),
        wish("Wrap SQL migrations in one transaction.", importance=0.5),
    ):
        workspace.store.put(item)
    found = preferences(workspace)
    assert texts(found.get_relevant()) == [
        "Write commit messages in the imperative.",
        "Keep functions short.",
        "Use British spelling in the docs.",
        "Wrap SQL migrations in one transaction.",
    ]
    assert texts(found.get_relevant("plan the next SQL migration", limit=2)) == [
        "Wrap SQL migrations in one transaction.",
        "Write commit messages in the imperative.",
    ]
    assert found.get_relevant(limit=0) == []


def test_of_two_that_contradict_one_another_the_newer_is_given(opened: Open) -> None:
    """P7: until somebody decides, what was said last holds; saying the other again turns it round."""
    workspace = opened()
    preferences(workspace).record("Always use tabs for indentation.")
    later = preferences(workspace, NOW + timedelta(minutes=1))
    newer = later.record("Always use spaces for indentation.")
    assert [link.relation for item in newer for link in item.links] == ["contradicts"]
    assert texts(later.get_relevant()) == ["Always use spaces for indentation."]
    last = preferences(workspace, NOW + timedelta(minutes=2))
    last.record("Always use tabs for indentation.")
    assert texts(last.get_relevant()) == ["Always use tabs for indentation."]


def test_one_that_is_left_out_itself_leaves_nothing_out(opened: Open) -> None:
    """P7: what an overruled preference contradicted holds again."""
    workspace = opened()
    old = workspace.store.put(wish("Old.", timestamp=NOW - timedelta(days=3)))
    links = (Link(to=old.id, relation="contradicts"),)
    middle = workspace.store.put(wish("Middle one.", timestamp=NOW - timedelta(days=2), links=links))
    links = (Link(to=middle.id, relation="contradicts"),)
    workspace.store.put(wish("Newest.", timestamp=NOW - timedelta(days=1), links=links))
    assert texts(preferences(workspace).get_relevant()) == ["Newest.", "Old."]


def test_what_people_write_into_files_is_compared_too(opened: Open) -> None:
    """P7: nobody linked them, yet only the newer is given; a decision that both hold is kept to."""
    workspace = opened()
    kept = workspace.store.put(
        wish("Always use tabs for indentation.", timestamp=NOW - timedelta(days=3), importance=5.0)
    )
    newer = workspace.store.put(wish("Always use spaces for indentation."))
    found = preferences(workspace)
    assert texts(found.get_relevant()) == ["Always use spaces for indentation."]
    workspace.conflicts.resolve(kept.id, newer.id, keep="both")
    assert sorted(texts(found.get_relevant())) == [
        "Always use spaces for indentation.",
        "Always use tabs for indentation.",
    ]
    workspace.conflicts.resolve(kept.id, newer.id, keep=kept.id)
    assert texts(found.get_relevant()) == ["Always use tabs for indentation."]


def test_what_an_expired_one_contradicted_holds_again(opened: Open) -> None:
    """P7: something said for a week overrules for a week."""
    workspace = opened()
    old = workspace.store.put(wish("Always use tabs for indentation.", timestamp=NOW - timedelta(days=3)))
    links = (Link(to=old.id, relation="contradicts"),)
    ends = NOW + timedelta(days=7)
    workspace.store.put(wish("Always use spaces for indentation.", links=links, expires=ends))
    moment = [NOW]
    parts = replace(workspace.parts, clock=lambda: moment[0])
    found = Preferences(workspace.store, parts, workspace.usage, workspace.behaviours.fire)
    assert texts(found.get_relevant()) == ["Always use spaces for indentation."]
    moment[0] = ends
    assert texts(found.get_relevant()) == ["Always use tabs for indentation."]


def test_only_what_a_person_vouches_for_and_what_holds_is_given(opened: Open) -> None:
    """P3: agents cannot put words into the person's mouth, nor retire them by what they claim to replace."""
    workspace = opened()
    kept = workspace.store.put(wish("Never push to main."))
    workspace.store.put(wish("Reviewed rule.", trust="reviewed"))
    workspace.store.put(wish("An agent's idea.", trust="agent", importance=10.0, supersedes=(kept.id,)))
    workspace.store.put(wish("A tool's idea.", trust="tool"))
    workspace.store.put(wish("Retired idea.", status="retired"))
    workspace.store.put(wish("Superseded idea.", status="superseded"))
    workspace.store.put(wish("Expired idea.", expires=NOW - timedelta(days=1)))
    replaced = workspace.store.put(wish("Use unittest in this project."))
    workspace.store.put(wish("Use pytest here.", supersedes=(replaced.id,)))
    given = preferences(workspace).get_relevant()
    assert sorted(map(str, given)) == ["Never push to main.", "Reviewed rule.", "Use pytest here."]


def test_what_a_person_edits_or_removes_is_followed(opened: Open) -> None:
    """P3: the files are the truth, each time."""
    workspace = opened()
    one = workspace.store.put(wish("Use tabs everywhere."))
    two = workspace.store.put(wish("Keep functions short."))
    found = preferences(workspace)
    assert len(found.get_relevant()) == 2
    path = workspace.root / one.path
    path.write_text(path.read_text().replace("tabs", "spaces"))
    (workspace.root / two.path).unlink()
    workspace.store.refresh()
    assert texts(found.get_relevant()) == ["Use spaces everywhere."]


def test_what_says_nearly_the_same_is_given_once(opened: Open) -> None:
    """P3: the list has no room for repetitions."""
    workspace = opened()
    workspace.store.put(wish("Never push straight to the main branch.", importance=2.0))
    workspace.store.put(wish("never push straight to the main branch"))
    assert texts(preferences(workspace).get_relevant()) == ["Never push straight to the main branch."]


def test_a_fold_of_the_index_changes_nothing(opened: Open) -> None:
    """P3: whether an item is in the index's base or not is nobody's business."""
    workspace = opened()
    found = preferences(workspace)
    for number in range(5):
        workspace.store.put(wish(f"Rule number {number} of the house."))
    before = texts(found.get_relevant())
    workspace.store.fold()
    assert texts(found.get_relevant()) == before
    workspace.store.put(wish("Another thing: keep it short."))
    assert len(found.get_relevant()) == 6


def test_a_flood_of_an_agents_words_hides_no_persons(opened: Open) -> None:
    """P3: however many items claim to be important, the person's few are given."""
    workspace = opened()
    with workspace.store.batch("flood") as batch:
        for number in range(200):
            batch.put(wish(f"Do strange thing {number} at once.", trust="agent", importance=10.0, pinned=True))
        batch.put(wish("Never push to main.", importance=0.1))
    assert texts(preferences(workspace).get_relevant("do a strange thing", limit=3)) == ["Never push to main."]


def test_what_is_pinned_comes_first(opened: Open) -> None:
    """P3: whatever counts for more, and whatever is newer."""
    workspace = opened()
    workspace.store.put(wish("Use tabs for indentation", importance=9.0))
    workspace.store.put(wish("Squash every merge", importance=0.1, pinned=True, timestamp=NOW - timedelta(days=400)))
    assert texts(preferences(workspace).get_relevant()) == ["Squash every merge", "Use tabs for indentation"]


def test_a_word_that_most_of_them_have_means_nothing(opened: Open) -> None:
    """P3: it does not push what counts most aside; a rare word does."""
    workspace = opened()
    words = ("amber", "beacon", "cobalt", "dahlia", "ember", "falcon", "garnet", "harbor", "indigo")
    for word in words:
        workspace.store.put(wish(f"Keep the code of {word} short", importance=0.5))
    workspace.store.put(wish("Squash every merge", importance=9.0))
    found = preferences(workspace)
    assert texts(found.get_relevant("write the code", limit=1)) == ["Squash every merge"]
    assert texts(found.get_relevant("write the code of falcon", limit=1)) == ["Keep the code of falcon short"]


def test_what_a_file_says_now_decides(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """P3: a wish that was taken back after it was chosen, and before it is shown, is not shown."""
    workspace = opened()
    item = workspace.store.put(wish("Use tabs for indentation"))
    found = preferences(workspace)
    assert len(found.get_relevant()) == 1
    load = workspace.store.load

    def taken_back(candidate: Candidate) -> LoadedItem | None:
        loaded = load(candidate)
        return loaded and loaded._replace(item=item.replace(status="retired"))

    monkeypatch.setattr(workspace.store, "load", taken_back)
    assert found.get_relevant() == []
