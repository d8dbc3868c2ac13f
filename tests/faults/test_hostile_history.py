"""Objects that git itself would never write: whatever history holds, the errors are memfs's own (faults row 41)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.copies import copy_workspace
from memfs.doors.cli.app import run
from memfs.errors import HistoryUnavailable
from memfs.git.repository import Repository

pytestmark = pytest.mark.faults
Git = Callable[..., str]
PERSON = b"Ada Person <ada@example.org>"
VERBS = (
    ("status",),
    ("list",),
    ("recall", "neighbour"),
    ("show", "good", "--as-of", "HEAD"),
    ("log",),
    ("log", "good"),
    ("log", "--json"),
    ("diff", "HEAD~1"),
    ("diff", "HEAD~1", "HEAD"),
    ("diff",),
    ("team", "blame", "good"),
    ("update", "new", "new"),
    ("remember", "new"),
    ("commit",),
    ("restore", "--from", "HEAD"),
    ("restore", "--from", "HEAD~1"),
    ("check",),
    ("status", "--all"),
)


FEW = (
    ("status",),
    ("log", "good"),
    ("show", "good", "--as-of", "HEAD"),
    ("remember", "new"),
    ("restore", "--from", "HEAD"),
)
Work = Callable[..., None]


def write(root: Path, kind: bytes, data: bytes) -> str:
    """Write a loose object as it is, sound or not."""
    body = kind + b" %d\0" % len(data) + data
    name = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    place = root / ".git/objects" / name[:2]
    place.mkdir(exist_ok=True)
    path = place / name[2:]
    if not path.exists():
        path.write_bytes(zlib.compress(body))
    return name


def tree(root: Path, *entries: tuple[bytes, bytes, str]) -> str:
    return write(root, b"tree", b"".join(m + b" " + n + b"\0" + bytes.fromhex(i) for m, n, i in entries))


def commit(root: Path, tree_id: str, **changed: bytes) -> str:
    head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, check=True).stdout.strip()
    lines = {
        "tree": b"tree " + tree_id.encode(),
        "parent": b"parent " + head,
        "author": b"author " + PERSON + b" 1700000000 +0000",
        "committer": b"committer " + PERSON + b" 1700000000 +0000",
    }
    message = changed.pop("message", b"hostile\n")
    lines |= changed
    return write(root, b"commit", b"\n".join(line for line in lines.values() if line) + b"\n\n" + message)


@pytest.fixture
def root(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a little history: a copy of one that is made once."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "sqlite")
    first = tmp_path_factory.getbasetemp() / "little history"
    if not first.exists():
        assert run(["init", str(first)]) == 0
        for text in ("a good neighbour", "a better neighbour"):
            assert run(["-C", str(first), "update", "good", text, "--type", "knowledge"]) in (0, 1)
            assert run(["-C", str(first), "remember", text, "--id", "good", "--type", "knowledge"]) in (0, 1)
        shutil.rmtree(first / ".git" / "memfs")  # what memfs knows of a place
    copy_workspace(first, tmp_path / "W")
    return tmp_path / "W"


def at(root: Path, name: str) -> None:
    """Make an object HEAD's commit."""
    (root / ".git/refs/heads/main").write_text(name + "\n")


@pytest.fixture
def work(root: Path, scale: Callable[[int, int], int]) -> Work:
    """A few verbs, in the soak all: each answers or refuses, and nothing else comes out of it."""
    kept = scale(0, 1)

    def run_all(verbs: tuple[tuple[str, ...], ...] = VERBS if kept else FEW) -> None:
        outside = sorted(os.listdir(root.parent))
        hooks = sorted(str(path) for path in (root / ".git").glob("hooks/*"))
        for words in verbs:
            assert run(["-C", str(root), *words]) in (0, 1, 2), words
        assert sorted(os.listdir(root.parent)) == outside
        assert sorted(str(path) for path in (root / ".git").glob("hooks/*")) == hooks
        assert not (root / "ContextMemory/.git").exists()

    return run_all


STRANGE_COMMITS: dict[str, dict[str, bytes]] = {
    "time far ahead": {"author": b"author " + PERSON + b" 99999999999999999 +0000"},
    "time before": {"author": b"author " + PERSON + b" -99999999999 +0000"},
    "time is no number": {"author": b"author " + PERSON + b" soon +0000"},
    "zone far off": {"author": b"author " + PERSON + b" 1700000000 +9999"},
    "zone is none": {"committer": b"committer " + PERSON + b" 1700000000 utc"},
    "no time": {"author": b"author " + PERSON},
    "no mail": {"author": b"author Ada 1700000000 +0000"},
    "no author": {"author": b""},
    "nothing": {"author": b"", "committer": b"", "parent": b"", "tree": b""},
    "no tree": {"tree": b""},
    "tree is none": {"tree": b"tree xyz"},
    "tree is missing": {"tree": b"tree " + b"1" * 40},
    "parent is missing": {"parent": b"parent " + b"1" * 40},
    "parent is none": {"parent": b"parent ../../etc/passwd"},
    "terminal codes": {
        "author": b"author \x1b[31mAda\x1b]0;x\x07 <a@b> 1700000000 +0000",
        "message": b"\x1b[2J\xe2\x80\xae",
    },
    "no text": {"author": b"author \xff\xfe <\xff> 1700000000 +0000", "message": b"\xff\xfe\x00\x01"},
    "encoding": {"encoding": b"encoding rot13", "message": b"x"},
    "headers": {"x": b"gpgsig -----BEGIN\n junk\nmergetag", "message": b""},
    "long": {"message": b"x" * 2_000_000},
}


@pytest.mark.parametrize("name", STRANGE_COMMITS)
def test_41_a_strange_commit_is_read_or_refused(root: Path, work: Work, name: str) -> None:
    """Times, names and headers that no clock or person has end in an answer or in an error of memfs (faults row 41)."""
    tree_id = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD^{tree}"], capture_output=True, check=True, text=True
    ).stdout.strip()
    at(root, commit(root, tree_id, **STRANGE_COMMITS[name]))
    work()


STRANGE_NAMES = (
    b"..",
    b".",
    b"",
    b".git",
    b".GIT",
    b"git~1",
    b"a/b",
    b"../../escaped.yaml",
    b"/etc/planted.yaml",
    b"a\nb.yaml",
    b"\xff.yaml",
    b"CON.yaml",
    b"x" * 300 + b".yaml",
)


@pytest.mark.parametrize("mode", [b"100644", b"40000"])
def test_13_a_strange_name_in_a_tree_is_never_made(root: Path, work: Work, mode: bytes) -> None:
    """Names that lead out, or into git's own folder, are not checked out by a rollback (faults rows 13 and 41)."""
    blob = write(root, b"blob", b"content: planted\n")
    inner = tree(root, (b"100644", b"config", blob), (b"100644", b"x.yaml", blob))
    for name in STRANGE_NAMES:
        kind = tree(root, (mode, name, blob if mode == b"100644" else inner))
        memories = tree(root, (b"40000", b"knowledge", kind), (mode, name, blob if mode == b"100644" else inner))
        content = tree(root, (b"40000", b"memories", memories), (mode, name, blob if mode == b"100644" else inner))
        at(root, commit(root, tree(root, (b"40000", b"ContextMemory", content))))
        work((("restore", "--from", "HEAD"),))
    work()


@pytest.mark.parametrize("mode", [b"120000", b"160000", b"100755", b"777", b"0", b"140000", b"x"])
def test_14_entries_that_are_not_files_are_left_out(root: Path, work: Work, tmp_path: Path, mode: bytes) -> None:
    """Links, submodules and unknown modes are never made by a rollback (faults rows 12, 14 and 41)."""
    target = write(root, b"blob", os.fsencode(tmp_path / "outside"))
    kind = tree(root, (mode, b"good.yaml", target), (mode, b"new.yaml", target))
    content = tree(root, (b"40000", b"memories", tree(root, (b"40000", b"knowledge", kind))), (mode, b"z", target))
    at(root, commit(root, tree(root, (b"40000", b"ContextMemory", content))))
    work()
    assert not [path for path in (root / "ContextMemory").rglob("*") if path.is_symlink()]
    assert not (tmp_path / "outside").exists()


def test_14_the_folder_itself_may_be_a_link_in_history(root: Path, work: Work, tmp_path: Path) -> None:
    """Where HEAD has a link or a file in place of ``ContextMemory``, nothing is written through it."""
    target = write(root, b"blob", os.fsencode(tmp_path / "outside"))
    for mode in (b"120000", b"100644", b"160000"):
        at(root, commit(root, tree(root, (mode, b"ContextMemory", target))))
        work()
    assert not (tmp_path / "outside").exists()


def test_1_trees_deeper_than_any_stack_end(root: Path, work: Work) -> None:
    """A tree 3,000 folders deep is an answer or an error, never a recursion error (faults rows 1 and 41)."""
    blob = write(root, b"blob", b"content: deep\n")
    below = tree(root, (b"100644", b"x.yaml", blob))
    for _ in range(3_000):
        below = tree(root, (b"40000", b"d", below))
    content = tree(root, (b"40000", b"memories", tree(root, (b"40000", b"knowledge", below))))
    at(root, commit(root, tree(root, (b"40000", b"ContextMemory", content))))
    work()


def test_2_a_few_trees_that_expand_to_countless_files_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty trees that name each other thirty times are not walked to their end (faults rows 2 and 41)."""
    monkeypatch.setattr("memfs.git.objects._MOST_NAMES", 20_000)
    blob = write(root, b"blob", b"content: many\n")
    below = tree(root, *((b"100644", b"%02d.yaml" % number, blob) for number in range(30)))
    for _ in range(20):
        below = tree(root, *((b"40000", b"%02d" % number, below) for number in range(30)))
    content = tree(root, (b"40000", b"memories", tree(root, (b"40000", b"knowledge", below))))
    at(root, commit(root, tree(root, (b"40000", b"ContextMemory", content))))
    repository = Repository.find(root)
    assert repository is not None
    with pytest.raises(HistoryUnavailable, match="too many files"):
        repository.tree("HEAD")
    repository.close()


@pytest.mark.parametrize("data", [b"", b"\0", b"40000 x", b"40000 x\0short", b"100644 \0" + b"x" * 20, b"\xff" * 50])
def test_41_an_invalid_tree_is_an_error(root: Path, work: Work, data: bytes) -> None:
    """Bytes that are not a tree are refused with an error (faults row 41)."""
    name = write(root, b"tree", data)
    at(root, commit(root, name))
    work()
    at(root, commit(root, tree(root, (b"40000", b"ContextMemory", name))))
    work()


@pytest.mark.parametrize("name", ["HEAD", "index", "packed-refs", "refs/heads/main", "objects/info/alternates"])
def test_12_a_pipe_or_nonsense_in_place_of_gits_files_ends(root: Path, work: Work, name: str) -> None:
    """What git keeps may be a pipe, a folder, nonsense or nothing: each verb ends (faults rows 12 and 41)."""
    place = root / ".git" / name
    place.parent.mkdir(exist_ok=True)
    for make in (lambda: place.write_bytes(b"\xff\0" * 50), lambda: place.write_bytes(b""), place.mkdir):
        if place.is_dir():
            place.rmdir()
        place.unlink(missing_ok=True)
        make()
        work()
