"""Which paths memfs ever writes to (faults rows 13 and 41)."""

from __future__ import annotations

import json

import pytest

from memfs.errors import PathEscape
from memfs.fs.journal import FileChange, NotARecord, Operation, Writer, decode, encode, encode_mark
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import is_own, names_git


@pytest.mark.parametrize(
    "path",
    [
        "memfs.toml",
        "ContextMemory/.gitattributes",
        "ContextMemory/memories/knowledge/digit.yaml",
        "ContextMemory/a.git/x.yaml",
        "ContextMemory/\udcff.yaml",
    ],
)
def test_13_memory_and_settings_are_memfss_own(path: str) -> None:
    """The settings and everything below ContextMemory, names that are not Unicode included."""
    assert is_own(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x",
        "ContextMemory",
        "ContextMemory/",
        "ContextMemory/../x",
        "ContextMemory//x",
        "/ContextMemory/x",
        "ContextMemory/.git/hooks/x",
        "ContextMemory/.GIT/x",
        "ContextMemory/.git /x",
        "ContextMemory/.git./x",
        "ContextMemory/git~1/x",
        "ContextMemory/.g\u200cit/x",
        "ContextMemory/.git::$INDEX_ALLOCATION/x",
        "ContextMemory/a\0b",
        "ContextMemory/\ud800",
        "memfs.toml/x",
        ".git/config",
        None,
        3,
    ],
)
def test_13_nothing_else_is(path: object) -> None:
    """What leads out, belongs to git on any file system, or can be no name, is not (faults rows 13 and 41)."""
    assert not is_own(path)


@pytest.mark.parametrize("part", [".git", ".Git", "GIT~1", ".git.", ".gi\u200dt"])
def test_13_the_tree_does_not_go_where_git_keeps_its_own(tmp_path, part: str) -> None:  # type: ignore[no-untyped-def]
    """No read and no write goes into a repository, no matter who asks (faults row 13)."""
    (tmp_path / ".git").mkdir()
    tree = Tree(tmp_path)
    for act in (lambda: tree.read(f"{part}/config", 10), lambda: tree.write(f"a/{part}/x", b"")):
        with pytest.raises(PathEscape, match="git"):
            act()
    tree.close()
    assert not (tmp_path / "a").exists()
    assert names_git(f"a/{part}/x")


OPERATION = Operation(
    id="0" * 16,
    branch="refs/heads/main",
    time=1.0,
    message="m",
    batch=False,
    writers=(Writer(agent="a"),),
    changes=(FileChange(path="ContextMemory/x.yaml", old="", new="1", data=b"x"),),
)


def test_41_a_record_reads_back() -> None:
    """What memfs writes into its journal is what it reads."""
    assert decode(encode(OPERATION))[1] == OPERATION
    assert decode(encode_mark("applied", "0" * 16)) == ({"kind": "applied", "id": "0" * 16}, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "../x"),
        ("id", None),
        ("branch", "refs/heads/a\nb"),
        ("branch", 3),
        ("time", float("inf")),
        ("time", -1),
        ("message", "a\0"),
        ("writers", [3]),
        ("writers", [{"agent": 3}]),
        ("changes", [[".git/config", "", "1", 0]]),
        ("changes", [["ContextMemory/x.yaml", "", "no digest", 0]]),
        ("changes", [["ContextMemory/x.yaml"]]),
        ("kind", "other"),
    ],
)
def test_41_what_memfs_never_writes_is_not_a_record(name: str, value: object) -> None:
    """One field that memfs could not have written makes the whole frame no record (faults row 41)."""
    record = json.loads(encode(OPERATION).partition(b"\n")[0])
    with pytest.raises(NotARecord):
        decode(json.dumps(record | {name: value}).encode() + b"\nx")
