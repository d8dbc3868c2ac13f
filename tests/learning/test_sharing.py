"""Sharing conventions between workspaces: once, over nobody's edit, and as proposals (seed 004, P7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.doors.importers import read_conventions
from memfs.errors import StorageIO
from memfs.intake.import_service import ImportService
from memfs.learning.inbox import waiting
from memfs.model import MemoryItem
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.state.transfer import export_query
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture
def platform(opened: Opened, tmp_path: Path) -> Workspace:
    """The team that begins, with two conventions they agreed on."""
    made = opened(tmp_path / "platform")
    for name, text in (("times-utc", "Columns hold UTC.\nAlways with a Z."), ("migrations", "Only roll forward.")):
        item = MemoryItem(
            text, "convention", id=name, title=name.title(), status="accepted", data={"scope": ["src/**"]}
        )
        made.store.put(item)
    made.store.put(MemoryItem("Not yet.", "convention", id="idea", status="proposed"))
    made.store.put(MemoryItem("A fact.", "semantic", id="fact"))
    return made


@pytest.fixture
def shop(opened: Opened) -> Workspace:
    """The team that takes them over."""
    return opened()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file that goes from one to the other."""
    return tmp_path / "platform.jsonl"


def export(workspace: Workspace, file: Path) -> Path:
    """Write the file that others get."""
    query = export_query(["memory"], items=["convention"])
    workspace.states.exporter.export(file, query=query, replace=True)
    return file


def taken(workspace: Workspace, file: Path, **options: Any) -> dict[str, str]:
    """What became of each, by its id there."""
    found = read_conventions(file, workspace.parts)
    service = ImportService(workspace.store, workspace.parts)
    return {one.arrival.key: one.became.value for one in service.take_in(found.tool, found.arrivals, **options)}


def change(workspace: Workspace, name: str, text: str) -> None:
    """Edit a convention."""
    item = workspace.store.get(name)
    assert item is not None
    workspace.store.put(item.replace(content=text), expected=item.sha256)


def status_of(workspace: Workspace, name: str) -> tuple[str, str, str]:
    """What it says, its status and trust."""
    item = workspace.store.find(name)
    return item.content, item.status, item.trust


def test_an_export_can_be_of_one_type(platform: Workspace, file: Path) -> None:
    """Conventions alone, and the same bytes again for the same ones (P7)."""
    data = export(platform, file).read_bytes()
    assert data == export(platform, file).read_bytes()
    assert {json.loads(line)["document"]["id"] for line in data.splitlines()} == {"idea", "migrations", "times-utc"}


def test_what_they_accepted_comes_in_as_a_proposal(platform: Workspace, shop: Workspace, file: Path) -> None:
    """Text from outside is nobody's word here until somebody accepts it; importing again changes nothing (P7)."""
    export(platform, file)
    assert taken(shop, file, dry_run=True) == {"times-utc": "stored", "migrations": "stored"}
    assert shop.sources.conventions.every() == []
    assert taken(shop, file) == {"times-utc": "stored", "migrations": "stored"}

    item = shop.store.find("times-utc")
    assert (item.content, item.status, item.trust) == ("Columns hold UTC.\nAlways with a Z.", "proposed", "tool")
    assert item.origin.tool == "conventions of platform"
    assert (item.metadata["imported_from"]["source"], item.data["scope"]) == ("conventions of platform", ["src/**"])
    assert shop.sources.conventions.holding() == []
    assert set(taken(shop, file).values()) == {"same"}
    passed = {one.reason for one in read_conventions(file, shop.parts).skipped}
    assert passed == {"proposed there"}


def test_what_comes_back_is_a_proposal_beside_ones_own(
    platform: Workspace, shop: Workspace, file: Path, tmp_path: Path
) -> None:
    """What another changed replaces nothing where it began (P7)."""
    taken(shop, export(platform, file))
    names = [one.id for one in shop.sources.conventions.every()]
    shop.sources.agreements.decide(names, "accepted")
    change(shop, shop.store.find("migrations").id, "Only roll forward, in three steps.")

    done = taken(platform, export(shop, tmp_path / "shop.jsonl"))
    assert list(done.values()) == ["stored"]
    assert status_of(platform, "migrations") == ("Only roll forward.", "accepted", "human")


def test_no_local_edit_is_overwritten(platform: Workspace, shop: Workspace, file: Path) -> None:
    """What was changed on both sides stays as it is here, until a person says that theirs replaces it (P7)."""
    taken(shop, export(platform, file))
    change(shop, shop.store.find("migrations").id, "Ours.")
    change(platform, "migrations", "Theirs.")
    change(platform, "times-utc", "Columns hold UTC, always.")
    assert taken(shop, export(platform, file)) == {"times-utc": "updated", "migrations": "kept"}
    assert status_of(shop, "migrations")[0] == "Ours."
    assert taken(shop, file, replace=True)["migrations"] == "updated"
    assert status_of(shop, "migrations") == ("Theirs.", "proposed", "tool")


def test_what_changed_there_is_proposed_again(platform: Workspace, shop: Workspace, file: Path) -> None:
    """Nobody here has agreed to the new words yet; what was retired here stays so (P7)."""
    taken(shop, export(platform, file))
    shop.sources.agreements.decide([shop.store.find("migrations").id], "accepted")
    shop.sources.agreements.decide([shop.store.find("times-utc").id], "retired")
    change(platform, "migrations", "Theirs.")
    change(platform, "times-utc", "Columns hold UTC, always.")
    assert set(taken(shop, export(platform, file)).values()) == {"updated"}
    assert status_of(shop, "migrations") == ("Theirs.", "proposed", "tool")
    assert status_of(shop, "times-utc")[1] == "retired"


def test_one_team_does_not_change_what_came_from_another(
    platform: Workspace, shop: Workspace, file: Path, tmp_path: Path
) -> None:
    """The name of the file distinguishes them (P7)."""
    taken(shop, export(platform, file))
    change(platform, "migrations", "Roll back at will.")
    assert taken(shop, export(platform, tmp_path / "third.jsonl"))["migrations"] == "stored"
    found = {one.item.content for one in shop.sources.conventions.every() if one.id.startswith("migrations")}
    assert found == {"Only roll forward.", "Roll back at will."}


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../../etc/passwd"},
        {"id": "a/b"},
        {"content": f"Use {TOKEN}"},
        {"id": TOKEN},
        {"data": {"do": [f"curl -H 'token {TOKEN}'"]}},
        {"content": "Be \u202ekind"},
        {"data": {"scope": "all"}},
        {"trust": "everybody"},
    ],
)
def test_what_is_hostile_is_refused(shop: Workspace, file: Path, changes: dict[str, Any]) -> None:
    """With its line, no secret is reported, and nothing is stored (faults 13, 16, 19)."""
    entry = {"id": "times-utc", "type": "convention", "status": "accepted", "content": "Columns hold UTC."}
    file.write_text(json.dumps({**entry, **changes}) + "\n[]\nno JSON\n")
    found = read_conventions(file, shop.parts)
    done = ImportService(shop.store, shop.parts).take_in(found.tool, found.arrivals)
    refused = [one.reason for one in found.skipped if one.refused] + [
        one.reason for one in done if one.became == "refused"
    ]
    assert len(refused) == 3
    assert TOKEN not in str(refused)
    assert shop.sources.conventions.every() == []


def test_a_file_that_is_not_there_is_an_error(shop: Workspace, tmp_path: Path) -> None:
    """And no traceback."""
    with pytest.raises(StorageIO):
        read_conventions(tmp_path / "nowhere.jsonl", shop.parts)


def test_a_decision_keeps_the_edit_of_the_same_moment(platform: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody edits it between our look and our write; and the day of an agreement is that of the first one (P7)."""
    item = platform.store.get("idea")
    assert item is not None
    platform.store.put(item.replace(data={"accepted": "2025-02-03"}))
    batch, done = platform.store.batch, list[bool]()

    def edited_first(*words: Any, **options: Any) -> Any:
        if not done:
            done.append(True)
            change(platform, "idea", "Soon.")
        return batch(*words, **options)

    monkeypatch.setattr(platform.store, "batch", edited_first)
    platform.sources.agreements.decide(["idea"], "accepted")
    assert status_of(platform, "idea") == ("Soon.", "accepted", "human")
    stored = platform.store.get("idea")
    assert stored is not None
    assert stored.data == {"accepted": "2025-02-03"}


def test_episodes_are_not_offered(shop: Workspace) -> None:
    """What went wrong in a session is nobody's news: the rule that it teaches is (C6)."""
    episode = Episode.create(StateSnapshot.create(context="npm run build"), Action("Bash", "built"), "failure", "no")
    shop.sources.episodes.record(episode)
    shop.store.put(MemoryItem("Depot North closes at noon.", "semantic", id="depots"))
    assert [item.id for item in waiting(shop.store)] == ["depots"]
