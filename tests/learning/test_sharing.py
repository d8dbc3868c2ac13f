"""Sharing conventions between workspaces: both ways, once, and over nobody's edit (seed 004, P7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import (
    ContentError,
    FormatUnsupported,
    IdInvalid,
    InvisibleCharacter,
    MemfsError,
    QueryInvalid,
    SchemaInvalid,
    SecretDetected,
)
from memfs.intake.import_service import ImportResult
from memfs.learning import exchange
from memfs.learning.exchange import SharedFile
from memfs.model import MemoryItem
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
NAME = "team.yaml"
STATED = (("idea", "proposed"), ("migrations", "accepted"))
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


def outcomes(done: list[ImportResult]) -> dict[str, str]:
    """What became of each."""
    return {one.arrival.key: one.became.value for one in done}


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


def test_an_export_is_one_readable_file_that_says_where_it_comes_from(platform: Workspace) -> None:
    """The name of the workspace and what each says; the same bytes again for the same conventions (P7)."""
    data = exported(platform)
    shared = SharedFile.decode(data, NAME, platform.parts.codec)

    assert data == exported(platform)
    assert shared.workspace == "platform"
    assert [one.id for one in shared.conventions] == ["migrations", "times-utc"]
    assert "  content: |-\n    Columns hold UTC.\n    Always with a Z.\n" in data.decode()
    as_json = json.loads(exported(platform, "team.json"))
    assert as_json["conventions"][0]["id"] == "migrations"


def test_an_import_is_one_commit_of_proposals_that_say_where_they_come_from(
    platform: Workspace, shop: Workspace, git: Callable[..., str]
) -> None:
    """Text from outside is nobody's word here until somebody accepts it; importing again changes nothing (P7)."""
    data = exported(platform)
    shop.store.flush()
    before = int(git(shop.root, "rev-list", "--count", "HEAD"))

    assert taken(shop, data, dry_run=True) == {"times-utc": "stored", "migrations": "stored"}
    assert shop.store.get("times-utc") is None
    assert taken(shop, data) == {"times-utc": "stored", "migrations": "stored"}
    shop.store.flush()

    item = shop.store.get("times-utc")
    assert item is not None
    assert (item.content, item.status, item.trust) == ("Columns hold UTC.\nAlways with a Z.", "proposed", "tool")
    assert item.origin.tool == "conventions of platform"
    assert (item.metadata["imported_from"]["source"], item.data["scope"]) == ("conventions of platform", ["src/**"])
    assert shop.sources.conventions.holding() == []
    assert int(git(shop.root, "rev-list", "--count", "HEAD")) == before + 1
    assert git(shop.root, "log", "-1", "--format=%s").strip() == "Import conventions of platform"
    assert set(taken(shop, data).values()) == {"same"}
    assert shop.store.flush().commits == ()
    assert set(taken(shop, data, accepted=True).values()) == {"updated"}
    assert standing(shop, "times-utc")[1:] == ("accepted", "reviewed")


def test_two_workspaces_share_both_ways(platform: Workspace, shop: Workspace) -> None:
    """What one changed comes back to the other as a proposal beside its own, and neither's edit is lost (P7)."""
    taken(shop, exported(platform))
    shop.sources.agreements.decide(["times-utc", "migrations"], "accepted")
    change(shop, "migrations", "Only roll forward, in three steps.")
    shop.store.put(MemoryItem("Prices are in cents.", "convention", id="prices", status="accepted"))

    done = platform.sources.sharing.take_in(exported(shop), NAME)
    assert outcomes(done) == {"times-utc": "same", "migrations": "stored", "prices": "stored"}
    assert standing(platform, "migrations") == ("Only roll forward.", "accepted", "human")
    [beside] = [one.id for one in done if one.arrival.key == "migrations"]
    assert standing(platform, beside) == ("Only roll forward, in three steps.", "proposed", "tool")
    assert taken(platform, exported(shop)) == {"times-utc": "same", "migrations": "same", "prices": "same"}


def test_no_local_edit_is_overwritten(platform: Workspace, shop: Workspace) -> None:
    """What was changed on both sides stays as it is here, until a person says that theirs replaces it (P7)."""
    taken(shop, exported(platform))
    change(shop, "migrations", "Ours.")
    assert taken(shop, exported(platform)) == {"times-utc": "same", "migrations": "same"}

    change(platform, "migrations", "Theirs.")
    change(platform, "times-utc", "Columns hold UTC, always.")
    assert taken(shop, exported(platform), dry_run=True) == {"times-utc": "updated", "migrations": "kept"}
    assert standing(shop, "times-utc")[0] == "Columns hold UTC.\nAlways with a Z."
    assert taken(shop, exported(platform)) == {"times-utc": "updated", "migrations": "kept"}
    assert standing(shop, "migrations")[0] == "Ours."

    assert taken(shop, exported(platform), replace=True)["migrations"] == "updated"
    assert standing(shop, "migrations") == ("Theirs.", "proposed", "tool")


def test_what_changed_there_is_proposed_again(platform: Workspace, shop: Workspace) -> None:
    """Nobody here has agreed to the new words yet (P7)."""
    taken(shop, exported(platform))
    shop.sources.agreements.decide(["migrations"], "accepted")
    change(platform, "migrations", "Theirs.")
    assert taken(shop, exported(platform))["migrations"] == "updated"
    assert standing(shop, "migrations") == ("Theirs.", "proposed", "tool")


def test_what_is_retired_stays_so(platform: Workspace, shop: Workspace) -> None:
    """Retired here is not brought back; retired there is said, and decided here."""
    taken(shop, exported(platform))
    shop.sources.agreements.decide(["migrations"], "retired")
    change(platform, "migrations", "Theirs.")
    assert taken(shop, exported(platform))["migrations"] == "kept"
    assert standing(shop, "migrations")[:2] == ("Only roll forward.", "retired")

    retired = MemoryItem("Columns hold UTC.", "convention", id="times-utc", status="retired")
    assert taken(shop, from_other(platform, "platform", retired))["times-utc"] == "kept"
    assert standing(shop, "times-utc")[1] == "proposed"


def test_an_id_that_is_taken_gets_another(platform: Workspace, shop: Workspace) -> None:
    """A memory of another type keeps its id, and the second import knows the first."""
    shop.store.put(MemoryItem("A fact.", "semantic", id="migrations"))
    done = shop.sources.sharing.take_in(exported(platform), NAME)
    name = {one.arrival.key: one.id for one in done}["migrations"]
    assert name.startswith("migrations-")
    assert set(taken(shop, exported(platform)).values()) == {"same"}
    change(platform, "migrations", "Only forward.")
    assert taken(shop, exported(platform))["migrations"] == "updated"
    assert standing(shop, name)[0] == "Only forward."
    assert standing(shop, "migrations")[0] == "A fact."


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
        ({"entry": {"content": f"Use {TOKEN}"}}, None),
        ({"entry": {"id": TOKEN}}, SecretDetected),
        ({"workspace": TOKEN}, SecretDetected),
        ({"entry": {"data": {"do": [f"curl -H 'token {TOKEN}'"]}}}, None),
        ({"entry": {"content": "Be \u202ekind"}}, InvisibleCharacter),
        ({"entry": {"content": "a\U000e0041\U000e0042"}}, InvisibleCharacter),
        ({"entry": {"data": {"scope": "all"}}}, None),
        ({"entry": {"trust": "human"}}, SchemaInvalid),
        ({"entry": {"status": "accepted by force"}}, SchemaInvalid),
        ({"entry": {"title": " ", "content": " "}}, SchemaInvalid),
        ({"format": "memfs-backup"}, SchemaInvalid),
        ({"format_version": 2}, FormatUnsupported),
        ({"workspace": "a\nb"}, SchemaInvalid),
        ({"workspace": "a\x1b[2Jb"}, QueryInvalid),
        ({"conventions": "all"}, SchemaInvalid),
    ],
)
def test_what_is_hostile_is_refused(shop: Workspace, changes: dict[str, Any], error: type[MemfsError] | None) -> None:
    """A file by its name, an entry by its id, and no secret is told; nothing is stored (faults 13, 16, 19)."""
    data = hostile(**changes)
    for dry_run in (True, False):
        if error is None:
            [refused] = shop.sources.sharing.take_in(data, "hostile.json", dry_run=dry_run)
            assert refused.became == "refused"
            assert TOKEN not in refused.reason
            continue
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
    assert shop.sources.conventions.every() == []
    assert taken(shop, json.dumps(twice).encode()) == {"times-utc": "stored", "TIMES-UTC": "repeated"}


def test_nothing_secret_is_exported(platform: Workspace) -> None:
    """Not even what may stay here."""
    item = MemoryItem(f"Use {TOKEN}", "convention", id="keys", status="accepted")
    platform.store.put(item, allow_secret="a test key")
    with pytest.raises(SecretDetected) as error:
        exported(platform)
    assert TOKEN not in str(error.value)
    assert "keys" in str(error.value)


def test_names_of_workspaces_are_single_lines(platform: Workspace) -> None:
    """A name that is none is refused."""
    assert platform.sources.sharing.export(name="The platform team").workspace == "The platform team"
    for name in ("a\u202eb", "x" * 101):
        with pytest.raises(QueryInvalid):
            platform.sources.sharing.export(name=name)


# -- who is who ---------------------------------------------------------------------------------------------------
def from_other(workspace: Workspace, name: str, *items: MemoryItem) -> bytes:
    """The file of a third workspace, which is this one under another name for a moment."""
    return SharedFile(workspace=name, conventions=items).encode(workspace.parts.codec, NAME)


def test_a_proposal_of_theirs_is_none_of_ours_even_as_accepted(platform: Workspace, shop: Workspace) -> None:
    """``accepted`` takes over what they accepted, and not what they only think about (P7)."""
    theirs = [MemoryItem(name, "convention", id=name, status=status) for name, status in STATED]
    taken(shop, from_other(shop, "platform", *theirs), accepted=True)
    assert standing(shop, "idea")[1:] == ("proposed", "tool")
    assert standing(shop, "migrations")[1:] == ("accepted", "reviewed")


def test_another_workspaces_convention_of_that_name_is_no_update(platform: Workspace, shop: Workspace) -> None:
    """What came from one workspace is not brought up to date by another (P7)."""
    taken(shop, exported(platform))
    before = standing(shop, "migrations")
    theirs = MemoryItem("Roll back at will.", "convention", id="migrations", title="Migrations", status="accepted")
    done = shop.sources.sharing.take_in(from_other(shop, "third", theirs), NAME, accepted=True)
    assert outcomes(done) == {"migrations": "stored"}
    assert done[0].id != "migrations"
    assert standing(shop, "migrations") == before


def test_a_file_that_is_too_large_is_not_taken_apart(
    platform: Workspace, shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is looked at first (P7)."""
    data = exported(platform)
    monkeypatch.setattr(exchange, "LARGEST", len(data) - 1)
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


def test_episodes_are_not_offered(shop: Workspace) -> None:
    """What went wrong in a session is nobody's news: the rule that it teaches is (C6)."""
    episode = Episode.create(StateSnapshot.create(context="npm run build"), Action("Bash", "built"), "failure", "no")
    shop.sources.episodes.record(episode)
    shop.store.put(MemoryItem("Depot North closes at noon.", "semantic", id="depots"))
    assert [item.id for item in exchange.waiting(shop.store)] == ["depots"]
