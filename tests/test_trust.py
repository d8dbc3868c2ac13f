"""Trust: what a workspace's own files may enable, and for whom (faults row 41 and the threat model)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from memfs import trust
from memfs.errors import CorruptRecord, StorageReadOnly
from memfs.git import layout

LOOSE = "[security]\nallow_invisible = true\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace whose memfs.toml loosens a protection."""
    made = tmp_path / "W"
    (made / "ContextMemory" / "configuration").mkdir(parents=True)
    (made / "memfs.toml").write_text(LOOSE)
    return made


def secondary(root: Path, place: str) -> None:
    """Name this secondary location beside the loose setting."""
    (root / "memfs.toml").write_text(f'{LOOSE}[storage]\nsecondary = "{place}"\n')


def test_nothing_is_trusted_until_it_is_granted(root: Path) -> None:
    """A workspace that came from somewhere enables nothing, and says why and what would (faults row 41)."""
    standing = trust.status_of(root)
    assert (standing.trusted, standing.value("memfs.toml", "security.allow_invisible")) == (False, None)
    (problem,) = standing.problems()
    assert (problem.path, problem.line, problem.severity) == ("memfs.toml", 2, "warning")
    assert problem.hint.endswith(f"memfs admin trust {root}")


def test_a_grant_counts_until_it_is_revoked(root: Path) -> None:
    """What was looked at and trusted counts; taken back, it does not."""
    assert trust.grant(root).trusted
    assert trust.is_trusted(root)
    assert trust.status_of(root).value("memfs.toml", "security.allow_invisible") is True
    assert trust.status_of(root).problems() == []
    assert trust.revoke(root)
    assert not trust.is_trusted(root)
    assert not trust.revoke(root)


def test_what_would_be_enabled_is_listed(root: Path) -> None:
    """The settings are looked through."""
    secondary(root, "/mnt/spare")
    assert [(want.file, want.key, want.value) for want in trust.enabling(root)] == [
        ("memfs.toml", "security.allow_invisible", True),
        ("memfs.toml", "storage.secondary", "/mnt/spare"),
    ]
    (root / "memfs.toml").write_text("[security]\nallow_invisible = false\n[recall]\nlimit = 3\n")
    assert trust.enabling(root) == []


@pytest.mark.parametrize("change", ["add", "value", "remove"])
def test_a_pulled_change_of_what_is_enabled_lapses_the_trust(root: Path, change: str) -> None:
    """Trust holds for the values that were looked at, not for what a later pull puts in their place."""
    secondary(root, "/mnt/spare")
    trust.grant(root)
    if change == "add":
        with (root / "memfs.toml").open("a") as file:
            file.write("[recall]\nlimit = 4\n")
        assert trust.is_trusted(root), "an ordinary setting is not what was trusted"
        (root / "memfs.toml").write_text("")
        assert not trust.is_trusted(root)
    elif change == "value":
        secondary(root, "/mnt/attacker")
    else:
        (root / "memfs.toml").write_text(LOOSE)
    standing = trust.status_of(root)
    assert not standing.trusted
    assert "changed" in standing.reason
    assert standing.value("memfs.toml", "storage.secondary") is None


def test_another_folder_at_the_same_path_is_not_the_trusted_one(root: Path, tmp_path: Path) -> None:
    """Trust names the folder by inode, too: what is put in its place later must be looked at again."""
    trust.grant(root)
    root.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", root)
    assert not trust.is_trusted(root)
    assert "not the folder" in trust.status_of(root).reason


def test_another_path_to_the_same_folder_is_the_trusted_one(root: Path, tmp_path: Path) -> None:
    """A link to the workspace is the workspace."""
    trust.grant(root)
    (tmp_path / "link").symlink_to(root)
    assert trust.is_trusted(tmp_path / "link")


def test_the_list_is_private(root: Path) -> None:
    """Nobody else may write, or read, what this user trusts."""
    trust.grant(root)
    path = trust.list_path()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [name for name in os.listdir(path.parent) if name.endswith(".tmp")] == []


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_list_that_others_could_write_is_not_believed(root: Path, mode: int) -> None:
    """A list open to others trusts nothing, and says so; it is not added to."""
    trust.grant(root)
    trust.list_path().chmod(mode)
    standing = trust.status_of(root)
    assert not standing.trusted
    assert "somebody other than you" in standing.reason
    with pytest.raises(CorruptRecord, match="somebody other than you"):
        trust.grant(root)


def test_a_link_in_place_of_the_list_is_not_followed(root: Path, tmp_path: Path) -> None:
    """A planted link does not lead to a list that somebody else wrote."""
    trust.grant(root)
    path = trust.list_path()
    path.rename(tmp_path / "planted.json")
    path.symlink_to(tmp_path / "planted.json")
    assert not trust.is_trusted(root)


def test_a_folder_of_somebody_else_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration folder that belongs to another user is neither believed nor written to."""
    trust.grant(root)
    monkeypatch.setattr(trust.os, "geteuid", lambda: 12345)
    assert not trust.is_trusted(root)
    monkeypatch.setattr(trust.os, "getuid", lambda: 12345)
    with pytest.raises(StorageReadOnly, match="another user"):
        trust.grant(root)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 30_000,
        '{"version": 2, "workspaces": {}}',
        '{"version": 1, "workspaces": 3}',
        '{"version": 1, "version": 1}',
        "\x00",
    ],
)
def test_a_damaged_list_trusts_nothing_and_is_kept(root: Path, text: str) -> None:
    """A list that cannot be read is an error for a writer, and no trust for a reader."""
    trust.grant(root)
    trust.list_path().write_text(text)
    assert not trust.is_trusted(root)
    with pytest.raises(CorruptRecord) as caught:
        trust.grant(root)
    assert "move it away" in (caught.value.hint or "")
    assert trust.list_path().read_text() == text


@pytest.mark.parametrize("record", [3, [], {}, {"inode": "x"}, {"inode": 0, "owner": 0, "enables": None}])
def test_a_strange_record_trusts_nothing(root: Path, record: object) -> None:
    """Only a whole record vouches for a folder."""
    trust.grant(root)
    document = json.loads(trust.list_path().read_text())
    document["workspaces"][str(root)] = record
    document["repositories"][str(root)] = record
    trust.list_path().write_text(json.dumps(document))
    assert not trust.is_trusted(root)
    assert trust.repository(root) == (frozenset(), None)


def test_files_that_cannot_be_read_enable_nothing(root: Path) -> None:
    """A damaged file or a link in its place has no say; reading the workspace goes on."""
    outside = root.parent / "outside.yaml"
    outside.write_text("kinds: {x: {body: x.json}}\n")
    (root / trust.KINDS).symlink_to(outside)
    (root / "memfs.toml").write_text("[security\n")
    assert trust.enabling(root) == []
    (root / trust.KINDS).unlink()
    (root / trust.KINDS).write_text("kinds: {x: {body: a}}\nkinds: {x: {body: b}}\n")
    assert trust.enabling(root) == []


def test_the_variable_of_the_configuration_folder_counts_when_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative ``XDG_CONFIG_HOME`` would let the current folder, a clone perhaps, bring its own list."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert trust.list_path() == tmp_path / "config/memfs/trust.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert trust.list_path() == Path.home() / ".config/memfs/trust.json"


def test_without_a_home_nothing_is_trusted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no home can be found there is no list, and no failure."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(trust.Path, "home", no_home)
    assert not trust.is_trusted(root)
    assert trust.repository(root) == (frozenset(), None)


def test_two_grants_at_once_are_both_kept(tmp_path: Path) -> None:
    """The list is written under a lock, whole, by replacing."""
    from concurrent.futures import ThreadPoolExecutor

    roots = [tmp_path / f"w{number}" for number in range(12)]
    for each in roots:
        (each / "ContextMemory").mkdir(parents=True)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(trust.grant, roots))
    assert all(map(trust.is_trusted, roots))


def test_trusting_another_users_repository_names_that_user(
    root: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grant holds for the owner at that time, at that place (faults row 41)."""
    git(root, "init", "-q")
    real = layout.os.lstat

    def lstat(path: Path) -> object:
        return SimpleNamespace(st_uid=4242) if str(path).startswith(str(root)) else real(path)

    monkeypatch.setattr(layout.os, "geteuid", lambda: os.getuid())
    monkeypatch.setattr(layout, "os", SimpleNamespace(**{**vars(os), "lstat": lstat}))
    assert trust.repository(root) == (frozenset(), None)
    trust.grant(root)
    assert trust.repository(root) == ({4242}, None)
    assert trust.repository(root.parent) == (frozenset(), None)
    assert trust.revoke(root)
    assert trust.repository(root) == (frozenset(), None)


def test_a_command_to_paste_is_quoted(tmp_path: Path) -> None:
    """The name of a hostile folder runs nothing when the remedy is pasted into a shell."""
    folder = tmp_path / "x'; touch canary #"
    assert trust.command(folder) == f"memfs admin trust '{tmp_path}/x'\"'\"'; touch canary #'"
