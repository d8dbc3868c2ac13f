"""A folder is traded for a link in the middle of everything: nothing is read or written through it (faults row 14)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile.swapping import can_exchange, swapping
from memfs import MemoryItem
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.fs.atomic_replace import FileChanged
from memfs.fs.tree import Tree
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Scale = Callable[[int, int], int]
SECRET = b"content: the victim's secret\n"


class ResolvingTree(Tree):
    """The broken variant: it resolves a path, looks whether it is inside, and then opens it."""

    def _walk(self, path: str) -> int:
        try:
            place = (self.root / path).resolve()
            if not place.is_relative_to(self.root):
                raise FileNotFoundError(path)
            return os.open(self.root / path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise FileNotFoundError(path) from error


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the victim's."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "x.yaml").write_bytes(SECRET)
    return folder


@pytest.fixture
def arena(tmp_path: Path, outside: Path) -> Path:
    """A folder with ``d`` in it, and a link beside it that leads outside."""
    if not can_exchange(tmp_path):
        pytest.skip("the file system cannot exchange two names in one step")
    root = tmp_path / "arena"
    (root / "d").mkdir(parents=True)
    (root / "d/x.yaml").write_bytes(b"content: inside\n")
    (root / "link").symlink_to(outside)
    return root


def attack(tree: Tree, outside: Path, rounds: int) -> tuple[int, int]:
    """Read, write, list and remove under attack; return how often it went through, and how often it came out."""
    done = escapes = 0
    with swapping(tree.root / "d", tree.root / "link"):
        for number in range(rounds):
            try:
                if number % 4 == 0:
                    tree.write("d/x.yaml", b"content: %d\n" % number, durable=False)
                elif number % 4 == 1:
                    escapes += tree.read("d/x.yaml", 1000).data == SECRET
                elif number % 4 == 2:
                    escapes += any(entry.path == "d/marker" for entry in tree.scan("d"))
                else:
                    tree.remove("d/y.yaml", durable=False)
                done += 1
            except (MemfsError, FileNotFoundError, FileChanged):
                continue
            if sorted(os.listdir(outside)) != ["marker", "x.yaml"] or (outside / "x.yaml").read_bytes() != SECRET:
                escapes += 1
                (outside / "x.yaml").write_bytes(SECRET)
    return done, escapes


def test_14_a_folder_swapped_for_a_link_lets_nothing_out(
    arena: Path, outside: Path, scale: Scale, figures: Callable[..., None]
) -> None:
    """10,000 reads, writes, scans and removals (100,000 in the soak) against an attacker: no escape (faults row 14)."""
    (outside / "marker").touch()
    rounds = scale(10_000, 100_000)
    tree = Tree(arena)
    try:
        done, escapes = attack(tree, outside, rounds)
    finally:
        tree.close()
    figures("symlink race", attempts=rounds, went_through=done, escapes=escapes)
    assert (done > 0, escapes) == (True, 0)


def test_14_the_attack_catches_a_tree_that_resolves_paths(arena: Path, outside: Path) -> None:
    """The control: a tree that checks where a path leads and then opens it is led out (faults row 14)."""
    (outside / "marker").touch()
    tree = ResolvingTree(arena)
    escapes = 0
    try:
        for _ in range(60):
            escapes += attack(tree, outside, 3_000)[1]
            if escapes:
                break
    finally:
        tree.close()
    assert escapes > 0


def test_14_a_store_under_attack_neither_leaks_nor_writes_out(
    opened: Opened, tmp_path: Path, outside: Path, scale: Scale
) -> None:
    """Through the store: what is put is inside or refused, and the victim's text is never an item (faults row 14)."""
    if not can_exchange(tmp_path):
        pytest.skip("the file system cannot exchange two names in one step")
    workspace = opened()
    workspace.store.put(MemoryItem("inside", "knowledge", id="inside"))
    folder = workspace.root / "ContextMemory/memories/knowledge"
    link = workspace.root / "link"
    link.symlink_to(outside)
    done = 0
    with swapping(folder, link):
        for number in range(scale(150, 1_500)):
            try:
                workspace.store.put(MemoryItem(f"text {number}", "knowledge", id="a"))
                done += 1
                assert "victim" not in "".join(
                    hit.item.content for hit in workspace.recaller.search("victim secret").hits
                )
                found = workspace.store.get("x")
                assert found is None
            except MemfsError:
                continue
    assert sorted(os.listdir(outside)) == ["x.yaml"]
    assert (outside / "x.yaml").read_bytes() == SECRET
    assert done > 0


def test_14_no_descriptor_follows_a_link_at_its_last_step(tmp_path: Path) -> None:
    """Every opening in memfs refuses a link, also one that dangles (faults rows 12 and 14)."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        with pytest.raises((MemfsError, FileExistsError)):
            io.open_file(tmp_path / "link", flags)
    assert not (tmp_path / "target").exists()
