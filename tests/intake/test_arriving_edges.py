"""Importing again: edits of this very moment, and what became of a source (B5)."""

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


def _arrival(key: str, content: str) -> Arrival:
    item = MemoryItem(content, "knowledge", trust="agent")
    return Arrival(key=key, name=key, item=item, where=f"file:{key}", facts={"file": "file"})


def test_links_made_here_stay(opened: Opened) -> None:
    """B5: a source that changed takes no link away that somebody made here."""
    workspace = opened()
    taking = ImportService(workspace.store, workspace.parts)
    rows = [
        _arrival("ada", "Ada keeps the depot keys"),
        _arrival("acme", "Acme delivers parcels in the north"),
    ]
    ada, _ = (result.id for result in taking.take_in("graph", rows))
    item = workspace.store.get(ada)
    assert item is not None
    other = workspace.store.put(MemoryItem("The depot is in Dublin", "knowledge"))
    mine = Link(to=other.id, relation="relates")
    workspace.store.put(item.replace(links=(mine,)), expected=item.sha256)
    changed = replace(rows[0], item=rows[0].item.replace(content="Ada gave the keys back"))
    assert taking.take_in("graph", [changed, rows[1]])[0].became is Became.UPDATED
    after = workspace.store.get(ada)
    assert after is not None
    assert after.links == (mine,)


def test_an_edit_of_this_very_moment_is_no_victim(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """B5: what a person saves between the look and the write is seen at the next look, and left alone."""
    workspace = opened()
    taking = ImportService(workspace.store, workspace.parts)
    row = _arrival("ada", "Ada keeps the depot keys")
    [result] = taking.take_in("graph", [row])
    item = workspace.store.get(result.id)
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
