"""Sharing conventions between workspaces: both ways, once, and over nobody's edit (seed 004, P7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import (
    Conflict,
    ContentError,
    DuplicateId,
    FormatUnsupported,
    IdInvalid,
    InvisibleCharacter,
    MemfsError,
    QueryInvalid,
    SchemaInvalid,
    SecretDetected,
)
from memfs.learning import convention_exchange
from memfs.learning.convention_exchange import Import, SharedFile
from memfs.model import MemoryItem
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
NAME = "team.yaml"
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
    return made


@pytest.fixture
def shop(opened: Opened) -> Workspace:
    """The team that takes them over."""
    return opened()


def exported(workspace: Workspace, name: str = NAME, **options: Any) -> bytes:
    """The file that others get."""
    sharing = workspace.sources.sharing
    return sharing.encode(sharing.export(**options), name)


def taken(workspace: Workspace, data: bytes, **options: Any) -> dict[str, str]:
    """What became of each, by its id there."""
    return outcomes(workspace.sources.sharing.take_in(data, NAME, **options))


def outcomes(done: Import) -> dict[str, str]:
    """What became of each."""
    return {one.there: one.outcome for one in done.taken}


def change(workspace: Workspace, name: str, text: str) -> None:
    """Edit a convention."""
    item = workspace.store.get(name)
    assert item is not None
    workspace.store.put(item.replace(content=text), expected=item.sha256)


def standing(workspace: Workspace, name: str) -> tuple[str, str, str]:
    """What it says, its status and trust."""
    item = workspace.store.get(name)
    assert item is not None
    return item.content, item.status, item.trust


def test_an_export_is_one_readable_file_that_says_where_it_comes_from(
    platform: Workspace, git: Callable[..., str]
) -> None:
    """Name, revision, and a digest for each; the same bytes again for the same conventions (P7)."""
    platform.store.flush()
    data = exported(platform)
    shared = SharedFile.decode(data, NAME, platform.parts.codec)

    assert data == exported(platform)
    assert shared.workspace == "platform"
    assert shared.revision == git(platform.root, "rev-parse", "HEAD").strip()
    assert [one.id for one in shared.conventions] == ["migrations", "times-utc"]
    assert "  content: |-\n    Columns hold UTC.\n    Always with a Z.\n" in data.decode()
    assert [one.id for one in platform.sources.sharing.export(("proposed",)).conventions] == ["idea"]
    assert [one.id for one in platform.sources.sharing.export(ids=["idea", "times"]).conventions] == [
        "idea",
        "times-utc",
    ]
    as_json = json.loads(exported(platform, "team.json"))
    assert as_json["conventions"][0]["id"] == "migrations"
    change(platform, "migrations", "Roll forward, never back.")
    assert SharedFile.decode(exported(platform), NAME, platform.parts.codec).revision == ""


def test_an_import_is_one_commit_of_proposals_that_say_where_they_come_from(
    platform: Workspace, shop: Workspace, git: Callable[..., str]
) -> None:
    """Text from outside is nobody's word here until somebody accepts it; importing again changes nothing (P7)."""
    data = exported(platform)
    shop.store.flush()
    before = int(git(shop.root, "rev-list", "--count", "HEAD"))

    assert taken(shop, data, dry_run=True) == {"times-utc": "new", "migrations": "new"}
    assert shop.store.get("times-utc") is None
    assert taken(shop, data) == {"times-utc": "new", "migrations": "new"}
    shop.store.flush()

    item = shop.store.get("times-utc")
    assert item is not None
    assert (item.content, item.status, item.trust) == ("Columns hold UTC.\nAlways with a Z.", "proposed", "tool")
    assert item.origin.tool == "conventions of platform"
    assert (item.metadata["imported"]["workspace"], item.data["scope"]) == ("platform", ["src/**"])
    assert shop.sources.conventions.holding() == []
    assert int(git(shop.root, "rev-list", "--count", "HEAD")) == before + 1
    assert git(shop.root, "log", "-1", "--format=%s").strip() == "Import 2 conventions from platform"
    assert set(taken(shop, data).values()) == {"same"}
    assert shop.store.flush().commits == ()
    assert set(taken(shop, data, accepted=True).values()) == {"updated"}
    assert standing(shop, "times-utc")[1:] == ("accepted", "reviewed")


def test_two_workspaces_share_both_ways(platform: Workspace, shop: Workspace) -> None:
    """What one changed comes back to the other, and neither's edit is lost (P7)."""
    taken(shop, exported(platform))
    shop.sources.agreements.decide(["times-utc", "migrations"], "accepted")
    change(shop, "migrations", "Only roll forward, in three steps.")
    shop.store.put(MemoryItem("Prices are in cents.", "convention", id="prices", status="accepted"))

    assert taken(platform, exported(shop)) == {"times-utc": "same", "migrations": "updated", "prices": "new"}
    assert standing(platform, "migrations") == ("Only roll forward, in three steps.", "proposed", "tool")
    assert standing(platform, "times-utc")[1:] == ("accepted", "human")

    platform.sources.agreements.decide(["migrations", "prices"], "accepted")
    assert set(taken(shop, exported(platform)).values()) == {"same"}
    change(platform, "migrations", "Only roll forward, in two steps.")
    assert taken(shop, exported(platform))["migrations"] == "updated"
    assert standing(shop, "migrations")[0] == "Only roll forward, in two steps."


def test_no_local_edit_is_overwritten(platform: Workspace, shop: Workspace) -> None:
    """Changed on both sides is a conflict, and nothing of the file comes in; a person says which one stays (P7)."""
    taken(shop, exported(platform))
    change(shop, "migrations", "Ours.")
    assert taken(shop, exported(platform)) == {"times-utc": "same", "migrations": "kept"}

    change(platform, "migrations", "Theirs.")
    change(platform, "times-utc", "Columns hold UTC, always.")
    with pytest.raises(Conflict, match="migrations") as error:
        taken(shop, exported(platform))
    assert "--take" in str(error.value)
    assert standing(shop, "times-utc")[0] == "Columns hold UTC.\nAlways with a Z."
    assert taken(shop, exported(platform), dry_run=True) == {"times-utc": "updated", "migrations": "conflict"}

    assert taken(shop, exported(platform), on_conflict="keep") == {"times-utc": "updated", "migrations": "kept"}
    assert standing(shop, "migrations")[0] == "Ours."
    assert taken(shop, exported(platform)) == {"times-utc": "same", "migrations": "kept"}  # not asked again

    change(platform, "migrations", "Theirs anew.")
    assert taken(shop, exported(platform), on_conflict="take")["migrations"] == "updated"
    assert standing(shop, "migrations") == ("Theirs anew.", "proposed", "tool")


def test_what_is_retired_stays_so(platform: Workspace, shop: Workspace) -> None:
    """Retired here is not brought back; retired there is said, and decided here."""
    taken(shop, exported(platform))
    shop.sources.agreements.decide(["migrations"], "retired")
    change(platform, "migrations", "Theirs.")
    assert taken(shop, exported(platform))["migrations"] == "kept"

    platform.sources.agreements.decide(["times-utc"], "retired")
    data = exported(platform, statuses=("accepted", "retired"))
    assert taken(shop, data)["times-utc"] == "retired"
    assert standing(shop, "times-utc")[1] == "proposed"


def test_an_id_that_is_taken_gets_another(platform: Workspace, shop: Workspace) -> None:
    """A memory of another type keeps its id, and the second import knows the first."""
    shop.store.put(MemoryItem("A fact.", "semantic", id="migrations"))
    done = shop.sources.sharing.take_in(exported(platform), NAME)
    assert {one.there: one.id for one in done.taken}["migrations"] == "migrations-platform"
    assert set(taken(shop, exported(platform)).values()) == {"same"}
    shop.sources.agreements.decide(["migrations-platform"], "accepted")
    change(shop, "migrations-platform", "Only forward.")
    assert taken(platform, exported(shop)) == {"migrations-platform": "updated"}  # it knows its own again


def test_two_that_import_at_once_make_one_of_each(
    platform: Workspace, shop: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's import between reading and writing is found, and nothing is stored twice."""
    data = exported(platform)
    other = opened(shop.root)
    batch, raced = shop.store.batch, []

    def late(*words: Any, **options: Any) -> Any:
        if not raced:
            raced.append(taken(other, data))
        return batch(*words, **options)

    monkeypatch.setattr(shop.store, "batch", late)

    assert set(taken(shop, data).values()) == {"same"}
    assert raced == [{"times-utc": "new", "migrations": "new"}]
    assert len(shop.sources.conventions.every()) == 2


def hostile(**changes: Any) -> bytes:
    """A file with one entry, changed."""
    entry = {"id": "times-utc", "status": "accepted", "title": "Times", "content": "Columns hold UTC."}
    conventions = [{**entry, **changes.pop("entry", {})}]
    document = {"format": "memfs-conventions", "format_version": 1, "workspace": "platform", "conventions": conventions}
    return json.dumps({**document, **changes}).encode()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"entry": {"id": "../../etc/passwd"}}, IdInvalid),
        ({"entry": {"id": "a/b"}}, IdInvalid),
        ({"entry": {"id": "con"}}, IdInvalid),
        ({"entry": {"content": f"Use {TOKEN}"}}, SecretDetected),
        ({"entry": {"id": TOKEN}}, SecretDetected),
        ({"workspace": TOKEN}, SecretDetected),
        ({"entry": {"data": {"do": [f"curl -H 'token {TOKEN}'"]}}}, SecretDetected),
        ({"entry": {"content": "Be \u202ekind"}}, InvisibleCharacter),
        ({"entry": {"content": "a\U000e0041\U000e0042"}}, InvisibleCharacter),
        ({"entry": {"data": {"scope": "all"}}}, SchemaInvalid),
        ({"entry": {"trust": "human"}}, SchemaInvalid),
        ({"entry": {"status": "accepted by force"}}, SchemaInvalid),
        ({"entry": {"sha256": "0" * 64}}, ContentError),
        ({"entry": {"title": " ", "content": " "}}, SchemaInvalid),
        ({"format": "memfs-backup"}, SchemaInvalid),
        ({"format_version": 2}, FormatUnsupported),
        ({"workspace": "a\nb"}, SchemaInvalid),
        ({"workspace": "a\x1b[2Jb"}, SchemaInvalid),
        ({"entry": {"came_from": {"workspace": "a\x07", "id": "x", "sha256": "0" * 64}}}, SchemaInvalid),
        ({"conventions": "all"}, SchemaInvalid),
    ],
)
def test_a_hostile_file_is_refused_whole(shop: Workspace, changes: dict[str, Any], error: type[MemfsError]) -> None:
    """With its name and the field, and without the secret; nothing is stored, nor in a dry run (faults 13, 16, 19)."""
    data = hostile(**changes)
    for dry_run in (True, False):
        with pytest.raises(error) as raised:
            shop.sources.sharing.take_in(data, "hostile.json", dry_run=dry_run)
        assert raised.value.path == "hostile.json"
        assert TOKEN not in str(raised.value)
    assert shop.sources.conventions.every() == []
    assert TOKEN.encode() not in b"".join(
        path.read_bytes() for path in shop.root.rglob("*") if path.is_file() and path.suffix != ".pack"
    )


def test_garbage_is_refused(shop: Workspace) -> None:
    """Whatever it is: no traceback, nothing stored."""
    twice = json.loads(hostile())
    twice["conventions"] *= 2
    twice["conventions"][1] = {**twice["conventions"][0], "id": "TIMES-UTC"}
    for data in (b"", b"\x00", b"\xff\xfe", b"[]", b"a: &x [*x]", b"{" * 5_000, b"a: 1\na: 2", b"x" * (5 << 20)):
        with pytest.raises(MemfsError):
            shop.sources.sharing.take_in(data, NAME)
    with pytest.raises(DuplicateId):
        shop.sources.sharing.take_in(json.dumps(twice).encode(), "twice.json")
    assert shop.sources.conventions.every() == []


def test_nothing_secret_is_exported(platform: Workspace) -> None:
    """Not even what may stay here."""
    item = MemoryItem(f"Use {TOKEN}", "convention", id="keys", status="accepted")
    platform.store.put(item, allow_secret="a test key")
    with pytest.raises(SecretDetected) as error:
        exported(platform)
    assert TOKEN not in str(error.value)
    assert "keys" in str(error.value)


def test_names_of_workspaces_are_single_lines(platform: Workspace) -> None:
    """A name that is none is refused; a folder's that is none is left out."""
    assert platform.sources.sharing.named("The platform team").export().workspace == "The platform team"
    for name in ("", "a\u202eb", "x" * 101):
        if name:
            with pytest.raises(QueryInvalid):
                platform.sources.sharing.named(name)


# -- who is who ---------------------------------------------------------------------------------------------------
def from_other(workspace: Workspace, name: str, *items: MemoryItem) -> bytes:
    """The file of a third workspace, which is this one under another name for a moment."""
    return SharedFile(workspace=name, conventions=items).encode(workspace.parts.codec, NAME)


def test_a_proposal_of_theirs_is_none_of_ours_even_as_accepted(platform: Workspace, shop: Workspace) -> None:
    """``accepted`` takes over what they accepted, and not what they only think about (P7)."""
    data = exported(platform, statuses=("accepted", "proposed"))
    taken(shop, data, accepted=True)
    assert standing(shop, "idea")[1:] == ("proposed", "tool")
    assert standing(shop, "migrations")[1:] == ("accepted", "reviewed")


def test_another_workspaces_convention_of_that_name_is_no_update(platform: Workspace, shop: Workspace) -> None:
    """What came from one workspace is not brought up to date by another (P7)."""
    taken(shop, exported(platform))
    before = standing(shop, "migrations")
    theirs = MemoryItem("Roll back at will.", "convention", id="migrations", title="Migrations", status="accepted")
    data = from_other(shop, "third", theirs)

    assert taken(shop, data, dry_run=True) == {"migrations": "conflict"}
    with pytest.raises(Conflict, match="migrations"):
        taken(shop, data, accepted=True)
    assert standing(shop, "migrations") == before


def test_a_convention_is_matched_within_the_workspace_it_came_from(shop: Workspace) -> None:
    """The id there and the name of the workspace tell together which is which (P7)."""
    shop.store.put(MemoryItem("A note.", "semantic", id="idea"))
    taken(shop, from_other(shop, "north", MemoryItem("Idea of the north.", "convention", id="idea", status="accepted")))
    done = taken(shop, from_other(shop, "south", MemoryItem("Idea of the south.", "convention", id="idea")))
    assert done == {"idea": "new"}
    assert {one.text for one in shop.sources.conventions.every()} == {"Idea of the north.", "Idea of the south."}

    shop.store.put(MemoryItem("Ours.", "convention", id="ours", status="accepted"))
    came = {"imported": {"workspace": "west", "id": "ours", "sha256": "0" * 64}}
    copy = MemoryItem("A copy.", "convention", id="copy", status="accepted", metadata=came)
    assert taken(shop, from_other(shop, "east", copy)) == {"copy": "new"}
    assert standing(shop, "ours")[0] == "Ours."


def test_a_file_that_is_too_large_is_not_taken_apart(
    platform: Workspace, shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is looked at first (P7)."""
    data = exported(platform)
    monkeypatch.setattr(convention_exchange, "LARGEST", len(data) - 1)
    with pytest.raises(ContentError, match="limit"):
        taken(shop, data)
    with pytest.raises(ContentError, match="more than"):
        exported(platform)


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
    assert standing(platform, "idea") == ("Soon.", "accepted", "human")
    stored = platform.store.get("idea")
    assert stored is not None
    assert stored.data == {"accepted": "2025-02-03"}


def test_an_id_that_is_taken_gives_way_to_none_of_the_file(platform: Workspace, shop: Workspace) -> None:
    """Where an id is something else's here, the other one is neither taken here nor that of another convention (P7)."""
    platform.store.put(MemoryItem("Other.", "convention", id="times-utc-platform", status="accepted"))
    shop.store.put(MemoryItem("The clocks of the shop.", "knowledge", id="times-utc"))
    done = shop.sources.sharing.take_in(exported(platform), NAME)
    ids = {one.there: one.id for one in done.of("new")}
    assert len(set(ids.values())) == 3
    assert ids["times-utc-platform"] == "times-utc-platform"
    assert shop.store.get("times-utc").content == "The clocks of the shop."  # type: ignore[union-attr]
