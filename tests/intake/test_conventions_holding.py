"""Conventions: which hold for which files, and what the team decides about them (seed 004, P3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.errors import ItemNotFound, QueryInvalid
from memfs.model import MemoryItem
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


def convention(name: str, text: str = "", **fields: object) -> MemoryItem:
    """One that is agreed on, by default."""
    return MemoryItem(text or f"About {name}.", "convention", id=name, **{"status": "accepted", **fields})  # type: ignore[arg-type]


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One with a few conventions."""
    made = opened()
    for item in (
        convention("times", data={"scope": ["src/**", "web/**"]}),
        convention("logs", importance=3.0),
        convention("retry", data={"scope": ["src/carriers/**"]}, pinned=True),
        convention("flags", status="proposed"),
        convention("tabs", status="retired"),
        convention("old", expires="2001-01-01"),
        convention("wide"),
        convention("narrow", supersedes=("wide",)),
        convention("odd", data={"scope": ["src/**"]}, trust="agent"),
    ):
        made.store.put(item)
    return made


def ids(found: list[object]) -> list[str]:
    """Their ids."""
    return [one.id for one in found]  # type: ignore[attr-defined]


def test_18_only_what_people_vouch_for_replaces_what_people_agreed_on(opened: Opened) -> None:
    """Text of a tool takes no convention of a person out of the automatic memory (faults row 18)."""
    workspace = opened()
    workspace.store.put(convention("times"))
    workspace.store.put(convention("odd", trust="agent"))
    posing = workspace.store.put(convention("posing", trust="tool", supersedes=("times", "odd")))
    assert ids(workspace.sources.conventions.holding()) == ["posing", "times"]
    assert "About times." in workspace.sources.agents_block.text()

    workspace.store.put(posing.replace(trust="reviewed"))
    assert ids(workspace.sources.conventions.holding()) == ["posing"]


def test_what_does_not_hold_itself_replaces_nothing(opened: Opened) -> None:
    """A proposal is not agreed on yet, and what has expired no longer holds (P3)."""
    workspace = opened()
    for item in (
        convention("times"),
        convention("proposed", status="proposed", supersedes=("times",)),
        convention("expired", expires="2001-01-01", supersedes=("times",)),
    ):
        workspace.store.put(item)
    assert ids(workspace.sources.conventions.holding()) == ["times"]


def test_accepted_conventions_hold_for_the_files_in_their_scope(workspace: Workspace) -> None:
    """Without files all hold; expired, replaced and undecided ones do not; pinned ones come first (P3)."""
    conventions = workspace.sources.conventions

    assert ids(conventions.holding()) == ["retry", "logs", "narrow", "odd", "times"]
    assert ids(conventions.holding(["src/api.py"])) == ["logs", "narrow", "odd", "times"]
    assert ids(conventions.holding(["docs/x.md", "src/carriers/dhl.py"])) == ["retry", "logs", "narrow", "odd", "times"]
    assert ids(conventions.holding(["docs/x.md"])) == ["logs", "narrow"]
    assert ids(conventions.holding(status="proposed")) == ["flags"]
    assert str(conventions.find("logs")) == "About logs."
    with pytest.raises(QueryInvalid, match="no status") as error:
        conventions.holding(status="acepted")
    assert "accepted" in str(error.value)
    with pytest.raises(QueryInvalid, match="list of paths"):
        conventions.holding("src/api.py")


def test_a_persons_edit_counts_at_once(workspace: Workspace) -> None:
    """What is in the file is what holds, no matter who wrote it; an unreadable file holds nothing."""
    path = workspace.root / workspace.store.locate("logs")
    path.write_text(path.read_text().replace("About logs.", "Log ids alone."))
    (workspace.root / workspace.store.locate("times")).write_text("status: [\n")

    found = {one.id: one.text for one in workspace.sources.conventions.holding()}

    assert found["logs"] == "Log ids alone."
    assert "times" not in found


def test_the_team_decides_in_one_commit(workspace: Workspace, git: Callable[..., str]) -> None:
    """Agreeing vouches for it and says when; a second time changes nothing; a wrong name changes nothing."""
    agreements = workspace.sources.agreements
    workspace.store.flush()

    changed = agreements.decide(["flags", "odd", "logs"], "accepted", "team meeting")
    workspace.store.flush()

    stored = {one.id: one.item for one in workspace.sources.conventions.every()}
    assert ids(list(changed)) == ["flags", "odd", "logs"]
    assert (stored["flags"].status, stored["flags"].trust) == ("accepted", "human")
    assert (stored["odd"].trust, len(stored["odd"].data["accepted"])) == ("reviewed", 10)
    assert "Accept flags, odd, logs: team meeting" in git(workspace.root, "log", "-1", "--format=%s")
    assert agreements.decide(["flags"], "accepted") == []
    with pytest.raises(ItemNotFound):
        agreements.decide(["flags", "nobody"], "retired")
    assert workspace.sources.conventions.find("flags").status == "accepted"
    agreements.decide(["flags"], "retired")
    assert ids(workspace.sources.conventions.holding(status="retired")) == ["flags", "tabs"]


def test_only_conventions_are_decided_about(workspace: Workspace, tmp_path: Path) -> None:
    """An item of another type is named as such."""
    workspace.store.put(MemoryItem("A fact.", "semantic", id="fact"))
    with pytest.raises(ItemNotFound, match="not a convention"):
        workspace.sources.agreements.decide(["fact"], "accepted")
    with pytest.raises(QueryInvalid):
        workspace.sources.agreements.decide(["logs"], "great")
