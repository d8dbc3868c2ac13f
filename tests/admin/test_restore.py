"""Damaged and hostile backups: refused as such, with nothing outside the place they were to go to (faults row 30)."""

from __future__ import annotations

import hashlib
import io as memory
import json
import os
import random
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import MemoryItem
from memfs.admin.backup_file import FILES, HISTORY, restore, verify
from memfs.errors import BackupInvalid, FormatUnsupported, MemfsError, StorageFull
from memfs.fs.archive import END, check_name, header, members, tar_file
from memfs.workspace import Workspace

Open = Callable[..., Workspace]


@pytest.fixture
def backup(opened: Open, tmp_path: Path) -> Path:
    """A sound backup with history, a waiting write and a content set aside."""
    workspace = opened()
    for number in range(3):
        workspace.store.put(MemoryItem(f"item number {number}", "knowledge", id=f"item-{number}"))
    workspace.store.flush()
    workspace.store.put(MemoryItem("waits", "knowledge", id="waiting"))
    return workspace.backups.make(tmp_path / "backups")[0].path


def test_what_a_killed_restore_left_is_not_built_upon(backup: Path, tmp_path: Path) -> None:
    """In a container that began again the next one has the number of the one that was killed."""
    left = tmp_path / f".made.restored.{os.getpid()}.tmp" / "ContextMemory"
    left.mkdir(parents=True)
    left.with_name("memfs.toml").write_text("torn")
    (left / "stray.yaml").write_text("torn")
    made = restore(backup, tmp_path / "made").root
    assert (made / "memfs.toml").read_text() != "torn"
    assert not (made / "ContextMemory/stray.yaml").exists()
    assert not left.parent.exists()


def digest(data: bytes) -> list[Any]:
    """Size and sha256, as a manifest has them."""
    return [len(data), hashlib.sha256(data).hexdigest()]


def gz(data: bytes) -> bytes:
    """As gzip."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def tar(files: dict[str, bytes]) -> bytes:
    """An archive of regular files."""
    return b"".join(piece for name, data in files.items() for piece in tar_file(name, [data], len(data))) + END


def crafted(path: Path, held: dict[str, bytes], inner: bytes | None = None, **changes: Any) -> Path:
    """A backup as an attacker makes it: every digest right, and one thing wrong."""
    inside = tar(held) if inner is None else inner
    parts = {FILES: changes.pop("packed", None) or gz(inside), **changes.pop("more", {})}
    manifest = {
        "format": "memfs-backup",
        "version": 1,
        "created": "2026-01-01T00:00:00Z",
        "workspace": "w",
        "origin": "12345678",
        "prefix": "",
        "head": "refs/heads/main",
        "refs": {},
        "shallow": [],
        "parts": {name: digest(data) for name, data in parts.items()},
        "files": {name: digest(data) for name, data in held.items()},
        "unpacked": len(inside),
        "outdated": [],
        "waiting": 0,
        "left_out": [],
        **changes,
    }
    data = json.dumps(manifest).encode()
    path.write_bytes(tar({f"manifest-{hashlib.sha256(data).hexdigest()}.json": data, **parts}))
    return path


def surroundings(folder: Path) -> dict[str, float]:
    """Everything below a folder, to see that nothing came or changed."""
    return {str(path): path.lstat().st_mtime for path in folder.rglob("*")}


GOOD = {"memfs.toml": b"", "ContextMemory/memories/knowledge/a.yaml": b"content: a\n"}


def test_a_crafted_backup_without_a_fault_is_taken(tmp_path: Path, opened: Open) -> None:
    """The forger of these tests makes backups that would be taken if nothing were wrong with them."""
    made = restore(crafted(tmp_path / "good.tar", GOOD), tmp_path / "again")
    assert opened(made.root).store.count() == 1


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/tmp/outside",
        "ContextMemory/../../outside",
        "ContextMemory//x",
        "ContextMemory/./x",
        "ContextMemory/x\0y",
        ".git/hooks/post-checkout",
        "ContextMemory/.git/hooks/x",
        "ContextMemory/.GIT/config",
        "code.py",
        "ContextMemory",
        "..",
        "",
    ],
)
def test_30_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    """Traversal, absolute paths, git's own folder and files outside ContextMemory are refused (faults row 30)."""
    try:
        made = crafted(tmp_path / "bad.tar", {**GOOD, name: b"owned"})
    except ValueError:
        pytest.skip("tar cannot even name it")
    before = surroundings(tmp_path)
    with pytest.raises(BackupInvalid):
        restore(made, tmp_path / "again")
    assert surroundings(tmp_path) == before


@pytest.mark.parametrize("sort", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
@pytest.mark.parametrize("place", ["outer", "inner"])
def test_30_links_devices_and_folders_are_refused(sort: bytes, place: str, tmp_path: Path) -> None:
    """Only regular files may be in a backup, in its shell as in its files (faults row 30)."""
    info = tarfile.TarInfo("ContextMemory/memories/knowledge/link")
    info.type, info.linkname = sort, "/etc/passwd"
    block = info.tobuf(tarfile.PAX_FORMAT)
    if place == "inner":
        made = crafted(tmp_path / "bad.tar", GOOD, inner=block + tar(GOOD))
    else:
        made = crafted(tmp_path / "bad.tar", GOOD)
        made.write_bytes(block + made.read_bytes())
    before = surroundings(tmp_path)
    with pytest.raises(BackupInvalid):
        restore(made, tmp_path / "again")
    assert surroundings(tmp_path) == before


def test_30_a_link_cannot_be_written_through(tmp_path: Path) -> None:
    """A file whose folder is a file of the same backup is refused before anything is made."""
    files = {**GOOD, "ContextMemory/x": b"", "ContextMemory/x/y/z": b"owned"}
    with pytest.raises(BackupInvalid, match="cannot be a file"):
        restore(crafted(tmp_path / "bad.tar", files), tmp_path / "again")


@pytest.mark.parametrize("honest", [True, False])
def test_30_a_bomb_is_stopped_by_the_size_the_manifest_states(honest: bool, tmp_path: Path) -> None:
    """50 KB that expand to 50 MB are refused at the stated size, or for lack of room."""
    size = 50 << 20
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = bytes(1 << 20)
    packed = packer.compress(header("ContextMemory/bomb", size))
    packed += b"".join(packer.compress(piece) for _ in range(50)) + packer.compress(END) + packer.flush()
    assert len(packed) < 1 << 20
    stated = 10_000 if not honest else 1 << 55
    made = crafted(tmp_path / "bomb.tar", GOOD, packed=packed, unpacked=stated)
    began = time.process_time()
    with pytest.raises((BackupInvalid, StorageFull)):
        restore(made, tmp_path / "again")
    assert time.process_time() - began < 30
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {}},
        {"files": {**{name: digest(data) for name, data in GOOD.items()}, "ContextMemory/more": digest(b"x")}},
        {"files": {name: digest(b"other") for name in GOOD}},
        {"files": {"memfs.toml": "text"}},
        {"parts": {}},
        {"parts": {FILES: [1, "0" * 64]}},
        {"unpacked": -1},
        {"unpacked": "many"},
        {"outdated": [0]},
        {"outdated": [[]]},
        {"refs": {"refs/heads/main": "0" * 40}},
        {"refs": {"refs/heads/main": "--upload-pack=x"}},
        {"refs": []},
        {"prefix": "../up"},
        {"prefix": ".git"},
        {"prefix": "/tmp"},
        {"head": 5},
        {"head": "refs/heads/../../x"},
        {"head": "refs/heads/a\nb"},
        {"left_out": {}},
        {"left_out": [5]},
        {"whole": 1},
        {"shallow": 3},
        {"format": "zip"},
        {"version": "1"},
        {"version": None},
        {"unknown": 1},
        {"created": None},
    ],
    ids=str,
)
def test_a_manifest_that_does_not_fit_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    """Every value of a manifest is checked: whatever is wrong with one, the backup is invalid and nothing is made."""
    made = crafted(tmp_path / "bad.tar", GOOD, **changes)
    before = surroundings(tmp_path)
    with pytest.raises(BackupInvalid):
        restore(made, tmp_path / "again")
    assert surroundings(tmp_path) == before


def test_a_newer_format_is_refused_as_such(tmp_path: Path) -> None:
    """A backup of a newer memfs is not a damaged one."""
    with pytest.raises(FormatUnsupported, match="format 2"):
        verify(crafted(tmp_path / "new.tar", GOOD, version=2))


@pytest.mark.parametrize("name", ["state/lock", "state/../../x", "state/recovered/../../../x", "config", "state/a/b"])
def test_a_part_that_no_backup_has_is_refused(name: str, tmp_path: Path) -> None:
    """Only the known parts of the state are taken: no lock, no configuration, no other name."""
    made = crafted(tmp_path / "bad.tar", GOOD, more={name: b"owned"})
    before = surroundings(tmp_path)
    with pytest.raises(BackupInvalid):
        restore(made, tmp_path / "again")
    assert surroundings(tmp_path) == before


@pytest.mark.parametrize("bundle", [b"", b"# v2 git bundle\n", b"# v2 git bundle\n\nPACKgarbage", b"x" * 5000])
def test_an_invalid_history_is_refused(bundle: bytes, tmp_path: Path) -> None:
    """A bundle that git cannot read makes the backup invalid, and no workspace without its history."""
    refs = {"refs/heads/main": "1" * 40}
    made = crafted(tmp_path / "bad.tar", GOOD, more={HISTORY: bundle}, refs=refs)
    with pytest.raises(BackupInvalid):
        restore(made, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_history_without_what_its_refs_name_is_refused(backup: Path, tmp_path: Path) -> None:
    """Refs that name commits which are not in the bundle do not make a repository with dangling branches."""
    parts = {member.name: member.data(1 << 30) for member in members([backup.read_bytes()])}
    refs = {"refs/heads/main": "1" * 40}
    made = crafted(tmp_path / "bad.tar", GOOD, more={HISTORY: parts[HISTORY]}, refs=refs)
    with pytest.raises(BackupInvalid, match="history"):
        restore(made, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_28_every_flipped_bit_is_found(backup: Path, tmp_path: Path) -> None:
    """400 random bits, one at a time: the backup never verifies, and the error is one of ours (faults row 28)."""
    whole = backup.read_bytes()
    rng = random.Random(28)
    damaged = tmp_path / "damaged.tar"
    for _ in range(400):
        bit = rng.randrange(len(whole) * 8)
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(data)
        with pytest.raises((BackupInvalid, FormatUnsupported)):
            verify(damaged)


def test_a_backup_cut_short_anywhere_is_refused(backup: Path, tmp_path: Path) -> None:
    """Whatever was not copied to the end, at 60 lengths: never taken for a whole one."""
    whole = backup.read_bytes()
    short = tmp_path / "short.tar"
    for length in range(0, len(whole) - 1, len(whole) // 60):
        short.write_bytes(whole[:length])
        with pytest.raises(BackupInvalid):
            verify(short)
    short.write_bytes(whole + b"\0")
    with pytest.raises(BackupInvalid):
        verify(short)


def test_random_bytes_are_never_a_foreign_error(tmp_path: Path) -> None:
    """2,000 archives of random blocks raise what we raise, or nothing."""
    rng = random.Random(30)
    block = bytearray(header("manifest-" + "0" * 64 + ".json", 10))
    for _ in range(2000):
        data = bytearray(block) + rng.randbytes(rng.randrange(0, 2048))
        for _ in range(rng.randrange(6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            for member in members([bytes(data)]):
                member.data(1 << 20)
        except MemfsError:
            continue


# -- the form -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["a", "a/b", "ä/ö", "x" * 99, "d/" * 40 + "y" * 200, "caf\udce9", "日本語/記憶.yaml", "a b"]
)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 70_000])
def test_what_is_written_is_read_back(name: str, size: int) -> None:
    """Long names, names in any script and names that are not Unicode keep their bytes, at any size."""
    data = bytes(range(256)) * (size // 256 + 1)
    archive = b"".join(tar_file(name, [data], size)) + END
    assert [(member.name, member.data(size)) for member in members([archive])] == [(name, data[:size])]
    with tarfile.open(fileobj=memory.BytesIO(archive), errors="surrogateescape") as read:
        assert [member.name for member in read] == [name]


def test_members_that_are_not_read_are_passed_over() -> None:
    """A reader that looks at names only gets all of them."""
    archive = tar({"a": b"1" * 1000, "b": b"", "c": b"3"})
    assert [member.name for member in members([archive])] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["...", "a..b", "..a", "a/..b/c", "-rf", "b/c"])
def test_odd_names_are_not_traversal(name: str) -> None:
    """Two dots within a name lead nowhere."""
    assert check_name(name) == name
