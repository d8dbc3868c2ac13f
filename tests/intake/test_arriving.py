"""What another memory kept arrives once, and never over what somebody did here (B5)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.copies import copy_workspace
from kit.faults import DISK_FULL, Fault, injected
from memfs.errors import Conflict, ContentError
from memfs.intake import import_service
from memfs.intake.import_service import FROM, Arrival, Became, ImportResult, ImportService, id_of
from memfs.model import MemoryItem
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


def arrival(key: str, content: str, **fields: Any) -> Arrival:
    """An arrival of an agent's store."""
    item = MemoryItem(content, "knowledge", **{"trust": "agent", **fields})
    return Arrival(key=key, name=key, item=item, where=f"file:{key}", facts={"file": "file", "id": key})


def became(results: list[ImportResult]) -> list[str]:
    """What became of each."""
    return [result.became.value for result in results]


def arriving_in(workspace: Workspace) -> ImportService:
    """What takes arrivals in."""
    return ImportService(workspace.store, workspace.parts)


ROWS = [
    arrival("ada", "Ada keeps the depot keys"),
    arrival("acme", "Acme delivers parcels in the north", title="Acme", tags=["company"]),
]


def test_an_import_is_one_commit_and_says_where_each_memory_comes_from(opened: Opened, git: Callable[..., str]) -> None:
    """What is new is stored in one batch with its origin (B5)."""
    workspace = opened(history__commit="each")
    before = git(workspace.root, "rev-list", "--count", "HEAD")
    results = arriving_in(workspace).take_in("graph", ROWS, message="Import a graph")
    assert became(results) == ["stored", "stored"]
    ada = workspace.store.get(results[0].id)
    assert ada is not None
    assert {key: ada.metadata[FROM][key] for key in ("source", "file", "id")} == {
        "source": "graph", "file": "file", "id": "ada",
    }  # fmt: skip
    assert int(git(workspace.root, "rev-list", "--count", "HEAD")) == int(before) + 1
    assert git(workspace.root, "log", "-1", "--format=%s|%(trailers:key=Memfs-Source,valueonly)").strip() == (
        "Import a graph|import"
    )
    assert workspace.checker.check() == []


def test_a_second_import_does_nothing_and_a_changed_source_is_followed(opened: Opened) -> None:
    """Importing again stores nothing; what changed in the source is brought up to date under the same id (B5)."""
    workspace = opened()
    taking = arriving_in(workspace)
    first = taking.take_in("graph", ROWS)
    assert became(taking.take_in("graph", ROWS)) == ["same", "same"]
    changed = [replace(ROWS[0], item=ROWS[0].item.replace(content="Ada gave the keys back")), ROWS[1]]
    again = taking.take_in("graph", changed)
    assert became(again) == ["updated", "same"]
    assert again[0].id == first[0].id
    item = workspace.store.get(first[0].id)
    assert item is not None
    assert item.content == "Ada gave the keys back"
    assert workspace.store.count() == 2


def test_what_somebody_edited_here_is_left_alone(opened: Opened) -> None:
    """An edit here wins over a change there unless a person says otherwise; feedback and links are not edits (B5)."""
    workspace = opened()
    taking = arriving_in(workspace)
    results = taking.take_in("graph", ROWS)
    mine, theirs = (workspace.store.get(result.id) for result in results)
    assert mine is not None
    assert theirs is not None
    path = workspace.root / mine.path
    path.write_text(path.read_text().replace("depot keys", "depot keys, and mine"))
    workspace.store.put(theirs.replace(importance=3.0, links=()))
    assert became(taking.take_in("graph", ROWS)) == ["same", "same"]
    changed = [replace(row, item=row.item.replace(content=row.item.content + " today")) for row in ROWS]
    results = taking.take_in("graph", changed)
    assert became(results) == ["kept", "updated"]
    assert mine.id in results[0].reason
    assert "and mine" in path.read_text()
    updated = workspace.store.get(theirs.id)
    assert updated is not None
    assert (updated.importance, updated.content) == (3.0, "Acme delivers parcels in the north today")
    assert became(taking.take_in("graph", changed, replace=True)) == ["updated", "same"]
    assert "today" in path.read_text()
    path.write_text(path.read_text().replace("today", "tomorrow"))
    assert became(taking.take_in("graph", changed)) == ["same", "same"]
    assert became(taking.take_in("graph", changed, replace=True)) == ["updated", "same"]
    assert "today" in path.read_text()


def test_a_dry_run_reports_the_same_and_stores_nothing(opened: Opened) -> None:
    """What would become of each is what becomes of it (B5)."""
    workspace = opened()
    taking = arriving_in(workspace)
    rows = [*ROWS, arrival("key", "The key is ghp_16C7e42F292c6912E7710c838347Ae178B4a")]
    planned = taking.take_in("graph", rows, dry_run=True)
    assert workspace.store.count() == 0
    assert taking.take_in("graph", rows) == planned
    assert workspace.store.count() == 2


def test_a_secret_costs_only_its_own_memory(opened: Opened) -> None:
    """A memory with a key is refused by the name of the rule; a reason lets it in (B6)."""
    workspace = opened()
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    rows = [arrival("one", "Ask the vault"), arrival("two", f"Use {secret}")]
    taking = arriving_in(workspace)
    results = taking.take_in("mem0", rows)
    assert became(results) == ["stored", "refused"]
    assert "github" in results[1].reason
    assert secret not in results[1].reason
    assert became(taking.take_in("mem0", rows, allow_secret="it is revoked")) == ["same", "stored"]


def test_a_source_cannot_give_the_reason_for_a_secret(opened: Opened) -> None:
    """Only a person here says why a secret may stay: what a source says of it is dropped (B6)."""
    workspace = opened()
    claim = {"secret_allowed": "trust me", "room": 4}
    rows = [
        arrival("a", "Use ghp_16C7e42F292c6912E7710c838347Ae178B4a", metadata=claim),
        arrival("b", "fine", metadata=claim),
    ]
    results = arriving_in(workspace).take_in("mem0", rows)
    assert became(results) == ["refused", "stored"]
    item = workspace.store.get(results[1].id)
    assert item is not None
    assert set(item.metadata) == {"room", FROM}


def test_what_is_in_a_source_twice_is_stored_once(opened: Opened) -> None:
    """The same line in one file twice is one memory, at the first import and at the next."""
    workspace = opened()
    for expected in ("stored", "same"):
        assert became(arriving_in(workspace).take_in("md", [ROWS[1], ROWS[1]])) == [expected, "repeated"]
    assert workspace.store.count() == 1


def test_text_that_hides_something_is_refused(opened: Opened) -> None:
    """Characters that no reader sees do not come in by an import (faults row 17)."""
    workspace = opened()
    results = arriving_in(workspace).take_in("mem0", [arrival("a", "Do \u202eevil"), arrival("b", "fine")])
    assert became(results) == ["refused", "stored"]
    assert "U+202E" in results[0].reason


def test_what_is_here_already_is_not_stored_twice(opened: Opened) -> None:
    """What an item or an earlier arrival says is passed over and said; what is near or contradicts is linked (B5)."""
    workspace = opened()
    there = workspace.store.put(MemoryItem("Staging is rebuilt on Sundays", "knowledge"))
    timeout = workspace.store.put(MemoryItem("The gateway timeout is 30 seconds", "knowledge"))
    rows = [
        arrival("a", "Staging is rebuilt on Sundays."),
        arrival("b", "The gateway timeout is 60 seconds"),
        arrival("c", "Parcels are weighed at the depot"),
        arrival("d", "parcels are weighed at the depot"),
    ]
    taking = arriving_in(workspace)
    results = taking.take_in("mem0", rows)
    assert became(results) == ["repeated", "stored", "stored", "repeated"]
    assert (results[0].id, results[3].id) == (there.id, results[2].id)
    assert results[1].contradicts == (timeout.id,)
    assert became(taking.take_in("mem0", rows)) == ["repeated", "same", "same", "repeated"]


def test_a_person_may_vouch_for_it_later(opened: Opened) -> None:
    """Importing again as reviewed lifts the trust of what is there, and of nothing that a person has lifted (B5)."""
    workspace = opened()
    taking = arriving_in(workspace)
    results = taking.take_in("mem0", ROWS)
    reviewed = [replace(row, item=row.item.replace(trust="reviewed")) for row in ROWS]
    assert became(taking.take_in("mem0", reviewed)) == ["updated", "updated"]
    item = workspace.store.get(results[0].id)
    assert item is not None
    assert item.trust == "reviewed"
    assert became(taking.take_in("mem0", ROWS)) == ["same", "same"]


def test_an_item_of_somebody_elses_under_that_id_stays(opened: Opened) -> None:
    """An item that was not imported is never written over, even if it has the id (B5)."""
    workspace = opened()
    name = id_of("graph", ROWS[0])
    workspace.store.put(MemoryItem("mine", "knowledge", id=name))
    assert became(arriving_in(workspace).take_in("graph", ROWS)) == ["kept", "stored"]


def test_an_invalid_file_is_named(opened: Opened) -> None:
    """What was imported and then broken by hand is refused until it is repaired; the rest arrives."""
    workspace = opened()
    taking = arriving_in(workspace)
    results = taking.take_in("graph", ROWS)
    item = workspace.store.get(results[0].id)
    assert item is not None
    (workspace.root / item.path).write_text("title: [")
    assert became(taking.take_in("graph", ROWS)) == ["refused", "same"]


def test_a_write_at_the_same_moment_is_looked_at_again(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process came first, the import decides again, and gives up only after some tries."""
    workspace = opened()
    taking = arriving_in(workspace)
    real, calls = workspace.store.carry_out, []

    def busy(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            raise Conflict("changed meanwhile", hint="again")
        return real(*given, **named)

    monkeypatch.setattr(workspace.store, "carry_out", busy)
    assert became(taking.take_in("graph", ROWS)) == ["stored", "stored"]
    monkeypatch.setattr(workspace.store, "carry_out", lambda *a, **k: calls.clear() or busy())
    with pytest.raises(Conflict):
        taking.take_in("graph", [arrival("new", "News")])
    assert workspace.store.count() == 2


def test_too_many_at_once_are_refused(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch has a bound; nothing is stored beyond it."""
    monkeypatch.setattr(import_service, "MOST", 1)
    with pytest.raises(ContentError, match="limit 1"):
        arriving_in(opened()).take_in("graph", ROWS)


def test_two_that_import_at_once_store_each_memory_once(opened: Opened, tmp_path: Path) -> None:
    """Two processes' views of one workspace import the same: nothing is stored twice, nothing lost."""
    one = opened()
    other = opened(one.root)
    first = arriving_in(one).take_in("graph", ROWS)
    second = arriving_in(other).take_in("graph", ROWS)
    assert [result.became for result in second] == [Became.SAME, Became.SAME]
    assert [result.id for result in first] == [result.id for result in second]


@pytest.mark.parametrize("error", [None, DISK_FULL], ids=["killed", "disk full"])
def test_an_import_that_ends_early_stored_all_or_nothing(
    error: int | None, opened: Opened, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """Killed, or refused by the disk, at any operation: all of the batch or none, and importing again completes it."""
    rows = [*ROWS, arrival("third", "Depots close at six")]
    pristine = opened().root
    counting = tmp_path / "counting"
    copy_workspace(pristine, counting)
    with injected(Fault()) as counted:
        arriving_in(opened(counting)).take_in("graph", rows)
    seen = set()
    for at in range(1, len(counted.seen) + 1, scale(40, 5)):
        root = tmp_path / f"{at}"
        copy_workspace(pristine, root)
        workspace = opened(root)
        child = os.fork()
        if not child:
            with suppress(BaseException), injected(Fault(at, error)):
                arriving_in(workspace).take_in("graph", rows)
            os._exit(0)
        os.waitpid(child, 0)
        again = opened(root)
        again.store.refresh()
        seen.add(again.store.count())
        assert {result.became for result in arriving_in(again).take_in("graph", rows)} <= {Became.STORED, Became.SAME}
        assert again.store.count() == 3
        again.store.flush()
        assert again.checker.check() == []
    assert 3 in seen <= {0, 3}  # a full disk alone may stop none of the operations that were tried
