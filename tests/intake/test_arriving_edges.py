"""Importing again: links, edits of this very moment, and what became of a source (B5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memfs.intake import import_service
from memfs.intake.import_service import Arrival, Became, ImportService
from memfs.model import Link, MemoryItem
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


def _arrival(key: str, content: str, *links: tuple[str, str]) -> Arrival:
    item = MemoryItem(content, "knowledge", trust="agent")
    return Arrival(key=key, name=key, item=item, where=f"file:{key}", links=links, facts={"file": "file"})


def test_links_of_both_sides_stay(opened: Opened) -> None:
    """B5: a source that changed adds its links to those that somebody made here; none leads to itself or twice."""
    workspace = opened()
    taking = ImportService(workspace.store, workspace.parts)
    rows = [
        _arrival("ada", "Ada keeps the depot keys", ("ada", "is"), ("acme", "works_at"), ("acme", "works_at")),
        _arrival("acme", "Acme delivers parcels in the north"),
    ]
    ada, acme = (fate.id for fate in taking.take_in("graph", rows))
    item = workspace.store.get(ada)
    assert item is not None
    assert item.links == (Link(to=acme, relation="works_at"),)
    other = workspace.store.put(MemoryItem("The depot is in Dublin", "knowledge"))
    mine = Link(to=other.id, relation="relates")
    workspace.store.put(item.replace(links=(mine,)), expected=item.sha256)
    changed = replace(rows[0], item=rows[0].item.replace(content="Ada gave the keys back"))
    assert taking.take_in("graph", [changed, rows[1]])[0].became is Became.UPDATED
    after = workspace.store.get(ada)
    assert after is not None
    assert set(after.links) == {mine, Link(to=acme, relation="works_at")}


def test_what_is_said_otherwise_here_is_linked_once(opened: Opened) -> None:
    """B5: an own link to an item that is also a neighbour is kept as the source has it, and no second one comes."""
    workspace = opened()
    taking = ImportService(workspace.store, workspace.parts)
    [first] = taking.take_in("graph", [_arrival("old", "The gateway timeout is 30 seconds")])
    rows = [
        _arrival("new", "The gateway timeout is 60 seconds", ("old", "corrects")),
        _arrival("old", "The gateway timeout is 30 seconds"),
    ]
    [new, _] = taking.take_in("graph", rows)
    item = workspace.store.get(new.id)
    assert item is not None
    assert [(link.to, link.relation) for link in item.links] == [(first.id, "corrects")]
    assert new.contradicts == (first.id,)


def test_an_edit_of_this_very_moment_is_no_victim(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """B5: what a person saves between the look and the write is seen at the next look, and left alone."""
    workspace = opened()
    taking = ImportService(workspace.store, workspace.parts)
    row = _arrival("ada", "Ada keeps the depot keys")
    [fate] = taking.take_in("graph", [row])
    item = workspace.store.get(fate.id)
    assert item is not None
    path, real, edits = workspace.root / item.path, import_service._metadata, [1]

    def edited(one: Arrival) -> dict[str, Any]:
        if edits:
            edits.pop()
            path.write_text(path.read_text().replace("depot keys", "depot keys, and mine"))
        return real(one)

    monkeypatch.setattr(import_service, "_metadata", edited)
    changed = replace(row, item=row.item.replace(content="Ada gave the keys back"))
    assert [one.became for one in taking.take_in("graph", [changed])] == [Became.KEPT]
    assert "and mine" in path.read_text()
