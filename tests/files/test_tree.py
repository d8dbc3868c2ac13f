"""Files by path, without following links."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from pathlib import Path

import pytest

from memfs.errors import ItemTooLarge, NotRegularFile, PathEscape, StorageFull, StorageIO
from memfs.files.tree import Tree, blob_id
from memfs.testing.faults import Fault, Stopped, injected


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


def test_12_links_pipes_and_folders_are_no_files(tree: Tree, tmp_path: Path) -> None:
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
        for number in range(1500):
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


def test_removing_what_is_gone_does_nothing(tree: Tree) -> None:
    """A file, or its folder, may have been removed by hand already."""
    tree.write("a/x.yaml", b"x")
    tree.remove("a/x.yaml")
    tree.remove("a/x.yaml")
    tree.remove("nowhere/x.yaml")
    assert tree.entry("a/x.yaml") is None
