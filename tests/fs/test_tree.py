"""Files by path, without following links."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit.faults import Fault, Stopped, injected
from memfs.errors import ItemTooLarge, NotRegularFile, PathEscape, StorageFull, StorageIO
from memfs.fs import io
from memfs.fs.tree import Tree, blob_id
from memfs.model.item import RACY_NS


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A tree over an empty folder."""
    root = tmp_path / "root"
    root.mkdir()
    return Tree(root)


def test_what_is_written_is_read_back_with_a_stamp(tree: Tree) -> None:
    """Writing makes the folders, and reading returns the bytes and git's name for them."""
    tree.write("a/b/c.yaml", b"content: x\n")
    found = tree.read("a/b/c.yaml", 100)
    assert found.data == b"content: x\n"
    assert found.stamp.blob == blob_id(b"content: x\n")
    assert [entry.path for entry in tree.scan("a")] == ["a/b/c.yaml"]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a//b", "a/./b", "", "a/..", "a\0b/c"])
def test_13_paths_that_lead_out_are_refused(tree: Tree, path: str) -> None:
    """No path with '..', an empty part or a root reaches the disk (faults row 13)."""
    with pytest.raises((PathEscape, ValueError)):
        tree.write(path, b"x")
    assert list(tree.root.parent.iterdir()) == [tree.root]


def test_12_links_pipes_and_folders_are_not_files(tree: Tree, tmp_path: Path) -> None:
    """A link, pipe or folder with an item's name is refused at once and never followed (faults row 12)."""
    (tmp_path / "outside.yaml").write_text("content: secret\n")
    (tree.root / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (tree.root / "loop.yaml").symlink_to("loop.yaml")
    os.mkfifo(tree.root / "pipe.yaml")
    (tree.root / "folder.yaml").mkdir()
    for name in ("link.yaml", "loop.yaml", "pipe.yaml", "folder.yaml"):
        with pytest.raises(NotRegularFile):
            tree.read(name, 100)
    irregular = {entry.path for entry in tree.scan("") if not entry.regular}
    assert {path.lstrip("/") for path in irregular} == {"link.yaml", "loop.yaml", "pipe.yaml"}


def test_12_a_link_as_folder_is_an_escape(tree: Tree, tmp_path: Path) -> None:
    """A linked folder on the way is never walked through, for reading or for writing."""
    (tmp_path / "outside").mkdir()
    (tree.root / "folder").symlink_to(tmp_path / "outside")
    with pytest.raises(PathEscape):
        tree.write("folder/x.yaml", b"x")
    with pytest.raises(PathEscape):
        tree.read("folder/x.yaml", 10)
    assert list((tmp_path / "outside").iterdir()) == []


def test_14_a_swapped_folder_never_lets_a_write_out(tree: Tree, tmp_path: Path) -> None:
    """While a folder and a link trade places atomically, no write and no read goes through the link (faults row 14)."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tree.root / "d").mkdir()
    (tree.root / "link").symlink_to(outside)
    stop = threading.Event()
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    names = (os.fsencode(tree.root / "d"), os.fsencode(tree.root / "link"))

    def swap() -> None:
        while not stop.is_set():
            exchange(-100, names[0], -100, names[1], 2)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        done = 0
        for number in range(50_000):
            if done and number >= 1500:
                break
            try:
                tree.write("d/x.yaml", b"%d" % number, durable=False)
                done += 1
            except (PathEscape, FileNotFoundError, StorageIO, NotRegularFile):
                continue
    finally:
        stop.set()
        swapper.join()
    assert done > 0, "the folder was never in place"
    assert list(outside.iterdir()) == []


def test_11_size_is_judged_before_reading(tree: Tree) -> None:
    """A sparse terabyte is refused from its size alone (faults row 11)."""
    with open(tree.root / "big.yaml", "wb") as big:
        big.truncate(1 << 40)
    with pytest.raises(ItemTooLarge, match=r"1099511627776 bytes, limit 1048576"):
        tree.read("big.yaml", 1 << 20)


def test_a_failed_write_leaves_the_old_content_and_no_temporary_file(tree: Tree) -> None:
    """Whichever operation fails, the file is as before or new, and nothing else is left."""
    tree.write("a/x.yaml", b"old")
    with injected(Fault()) as counted:
        tree.write("a/x.yaml", b"new")
    for number in range(1, len(counted.seen) + 1):
        tree.write("a/x.yaml", b"old")
        with injected(Fault(at=number, error=errno.ENOSPC)), pytest.raises(StorageFull):
            tree.write("a/x.yaml", b"new")
        assert tree.read("a/x.yaml", 10).data in (b"old", b"new")
        assert os.listdir(tree.root / "a") == ["x.yaml"]


def test_a_killed_write_leaves_old_or_new_and_the_sweep_removes_the_rest(tree: Tree) -> None:
    """Stopped at any operation, the content is whole, and a sweep removes the temporary file."""
    tree.write("a/x.yaml", b"old")
    with injected(Fault()) as counted:
        tree.write("a/x.yaml", b"new")
    for number in range(1, len(counted.seen) + 1):
        tree.write("a/x.yaml", b"old")
        with injected(Fault(at=number)), pytest.raises(Stopped):
            tree.write("a/x.yaml", b"new")
        tree.sweep("a")
        assert tree.read("a/x.yaml", 10).data in (b"old", b"new")
        assert os.listdir(tree.root / "a") == ["x.yaml"]


@pytest.mark.parametrize("name", ["mkdir", "open"])
def test_36_a_folder_that_is_removed_while_it_is_made_is_made_again(tree: Tree, name: str) -> None:
    """A person's git removes empty folders whenever it likes: a write goes on, but not forever (faults row 36)."""
    left = 3

    def remove(step: str, path: str) -> None:
        nonlocal left
        if step == name and path.endswith("b" if name == "mkdir" else ".tmp") and left:
            left -= 1
            shutil.rmtree(tree.root / "a")

    io.set_hook(remove)
    try:
        tree.write("a/b/x.yaml", b"x")
        assert (left, tree.read("a/b/x.yaml", 10).data) == (0, b"x")
        shutil.rmtree(tree.root / "a")
        left = 1_000
        with pytest.raises(StorageIO, match="removed again and again"):
            tree.write("a/b/x.yaml", b"x")
    finally:
        io.set_hook(None)


def test_removing_what_is_gone_does_nothing(tree: Tree) -> None:
    """A file, or its folder, may have been removed by hand already."""
    tree.write("a/x.yaml", b"x")
    tree.remove("a/x.yaml")
    tree.remove("a/x.yaml")
    tree.remove("nowhere/x.yaml")
    assert tree.entry("a/x.yaml") is None


# -- trees that hold strange things -------------------------------------------------------------------------------
def irregular(tree: Tree, folder: str) -> dict[str, str]:
    """What a scan cannot enter or read, with the reason."""
    return {entry.path: entry.reason for entry in tree.scan(folder) if not entry.regular}


def test_12_a_link_or_file_in_a_folders_place_is_reported_by_the_scan(tree: Tree, tmp_path: Path) -> None:
    """The folder asked for, or the one above it, may be a link or a file: it is an entry, no error (faults row 12)."""
    tree.write("kinds/good/x.yaml", b"x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.yaml").write_bytes(b"s")
    (tree.root / "kinds/link").symlink_to(tmp_path / "outside")
    (tree.root / "kinds/file").write_bytes(b"f")
    for folder in ("kinds/link", "kinds/file", "kinds/link/below"):
        (only,) = tree.scan(folder)
        assert (only.path, only.regular) == (folder, False)
        assert "a link or a file" in only.reason
    assert {entry.path for entry in tree.scan("kinds") if entry.regular} == {"kinds/good/x.yaml", "kinds/file"}
    assert list(tree.scan("kinds/nowhere")) == []


def nested(root: Path, count: int) -> None:
    """Make folders, each in the one before."""
    fd = os.open(root, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d", dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)


def flattened(root: Path) -> None:
    """Take nested folders apart again: what tidies up after a test cannot go that deep."""
    while (root / "d/d").exists():
        (root / "d/d").rename(root / "e")
        (root / "d").rename(root / secrets.token_hex(4))
        (root / "e").rename(root / "d")


def test_a_thousand_nested_folders_are_cut_off_and_reported(tree: Tree) -> None:
    """A scan goes 64 folders down, names the folder it did not enter, and goes on beside it (faults row 11)."""
    nested(tree.root, 1100)
    tree.write("/".join(["d"] * 64) + "/deep.yaml", b"x")
    tree.write("beside/x.yaml", b"x")
    found = {entry.path: entry for entry in tree.scan("")}
    assert sorted(path for path, entry in found.items() if entry.regular) == [
        "beside/x.yaml",
        "/".join(["d"] * 64) + "/deep.yaml",
    ]
    assert irregular(tree, "") == {"/".join(["d"] * 65): "more than 64 folders deep"}
    flattened(tree.root)


@pytest.mark.parametrize("failing", ["open", "list"])
def test_a_folder_that_cannot_be_read_is_reported_and_the_others_are_scanned(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Neither a missing permission nor a failing disk in one folder ends the scan."""
    tree.write("top/good/x.yaml", b"x")
    tree.write("top/shut/x.yaml", b"x")
    inode = os.stat(tree.root / "top/shut").st_ino
    if failing == "open":
        real_open = os.open

        def refuse(path: str, *arguments: object, **named: object) -> int:
            if path == "shut":
                raise PermissionError(errno.EACCES, "Permission denied")
            return real_open(path, *arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "open", refuse)
    else:
        real_listdir = os.listdir

        def fail(fd: int) -> object:
            if os.fstat(fd).st_ino == inode:
                raise OSError(errno.EIO, "Input/output error")
            return real_listdir(fd)

        monkeypatch.setattr(os, "listdir", fail)
    found = {entry.path: entry.regular for entry in tree.scan("top")}
    assert found == {"top/good/x.yaml": True, "top/shut": False}
    assert irregular(tree, "top")["top/shut"]


def test_a_file_that_vanishes_while_its_folder_is_scanned_is_left_out(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others are found, whatever the system listed before."""
    tree.write("top/x.yaml", b"x")
    tree.write("top/inner/y.yaml", b"y")
    real_listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda fd: ["gone.yaml", *real_listdir(fd), "lost.yaml"])
    assert {entry.path for entry in tree.scan("top")} == {"top/x.yaml", "top/inner/y.yaml"}


def test_scanning_leaves_no_descriptor_open(tree: Tree) -> None:
    """Finished, broken off or refused, a scan closes what it opened."""
    tree.write("a/b/c/x.yaml", b"x")
    (tree.root / "a/link").symlink_to("b")
    before = len(os.listdir("/proc/self/fd"))
    list(tree.scan("a"))
    list(tree.scan("a/link"))
    broken_off = tree.scan("a")
    next(broken_off)
    broken_off.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("path", ["link/x.yaml", "file/x.yaml", "../x", "a//b", "", "a/\ud800/x", "\ud800", "a/b\0c"])
def test_12_there_is_nothing_behind_a_link_or_outside(tree: Tree, tmp_path: Path, path: str) -> None:
    """Asking for the facts of what no path of the workspace can name answers None, never an error (rows 12 and 13)."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.yaml").write_bytes(b"s")
    (tree.root / "link").symlink_to(tmp_path / "outside")
    (tree.root / "file").write_bytes(b"f")
    assert tree.entry(path) is None
    with pytest.raises(PathEscape):
        tree.write(path, b"x")


def test_names_that_are_not_unicode_are_files_like_others(tree: Tree) -> None:
    """A folder with a Latin-1 name is scanned, read and written."""
    folder = os.fsdecode(b"caf\xe9")
    tree.write(f"{folder}/x.yaml", b"x")
    assert [entry.path for entry in tree.scan("")] == [f"{folder}/x.yaml"]
    assert tree.read(f"{folder}/x.yaml", 10).data == b"x"
    assert os.listdir(os.fsencode(tree.root)) == [b"caf\xe9"]


def test_a_batch_over_many_folders_holds_few_of_them_open(tree: Tree) -> None:
    """A process may open 1,024 files; a batch over more folders than that must not need them all at once."""
    for number in range(200):
        tree.make_folders(f"month-{number:03d}", durable=False)
    before = len(os.listdir("/proc/self/fd"))
    with tree.holding_folders():
        for number in range(200):
            tree.write(f"month-{number:03d}/x.yaml", b"x", durable=False)
        assert len(os.listdir("/proc/self/fd")) <= before + 64
        assert tree.read("month-000/x.yaml", 10).data == b"x"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_stream_is_written_whole_or_not_at_all(tree: Tree) -> None:
    """A file too large to be held gets its name when all of it is there; what breaks off leaves the file as it was."""
    tree.write_stream("a/b/large", iter([b"one ", b"two"]))
    assert tree.read("a/b/large", 100).data == b"one two"

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise Stopped

    with pytest.raises(Stopped):
        tree.write_stream("a/b/large", broken())
    assert tree.read("a/b/large", 100).data == b"one two"
    assert [one.name for one in (tree.root / "a/b").iterdir()] == ["large"]


def test_an_edit_while_the_reader_is_held_up_makes_its_stamp_racy(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before a file was edited is never vouched for by the times that the edit gave it."""
    tree.write("a.yaml", b"old")
    real = io.read_regular

    def held_up(fd: int, path: str, limit: int) -> bytes:
        data = real(fd, path, limit)
        (tree.root / "a.yaml").write_bytes(b"new")
        later = time.time_ns() + 10 * RACY_NS
        monkeypatch.setattr("time.time_ns", lambda: later)
        return data

    monkeypatch.setattr(io, "read_regular", held_up)
    assert tree.read("a.yaml", 9).stamp.racy


def test_a_file_system_on_the_way_proves_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mounted below the root may be of a kind whose times mean nothing: the file is to be read."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: "ext4")
    tree.write("one/a.yaml", b"old")
    stamp = tree.read("one/a.yaml", 9).stamp
    stamp = stamp._replace(checked_ns=stamp.ctime_ns + RACY_NS)
    assert tree.proven({"one/a.yaml": stamp})
    facts = os.stat
    for place in ("one", "one/a.yaml"):

        def mounted(path: str, place: str = place, **how: Any) -> object:
            found = facts(path, **how)
            if path != place:
                return found
            names = ("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
            return SimpleNamespace(st_dev=found.st_dev + 1, **{name: getattr(found, name) for name in names})

        monkeypatch.setattr("memfs.fs.tree.os.stat", mounted)
        assert not tree.proven({"one/a.yaml": stamp})
