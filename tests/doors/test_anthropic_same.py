"""The memory tool answers as the SDK's own tool for a local folder does, word for word."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memfs.doors.anthropic import MemfsMemoryTool
from memfs.workspace import Workspace

Command = dict[str, Any]

NAMES = ["a.md", "b.txt", "notes", ".hidden", "Über uns.md", "A.md"]
paths = st.one_of(
    st.sampled_from(["/memories/a.md", "/memories/notes/a.md"]),
    st.sampled_from(["/memories/a.md", "/memories/notes/a.md", "/memories/notes"]),
    st.lists(st.sampled_from(NAMES), min_size=0, max_size=3).map(lambda parts: "/".join(["/memories", *parts])),
    st.sampled_from(
        ["/memories/", "/memories/./a.md", "/memories//a.md", "/memories/notes/../a.md", "/memories/../secret"]
    ),
    st.sampled_from(
        ["/etc/passwd", "memories/a.md", "/memories/%2e%2e/a.md", "/memories/a.md/", "/memories/../memories/a.md"]
    ),
)
texts = st.one_of(
    st.sampled_from(["", "one", "one\n", "one\ntwo\nthree\n", "a\r\nb\r\n", "\n\n", "  two \n\tx ", "one\none\n"]),
    st.text(st.sampled_from("ab \n\r\t:#-|>'\"\\é😀"), max_size=12),
)
bits = st.one_of(st.sampled_from(["one", "", "\n", "two", "\r\n"]), st.text(st.sampled_from("ab \n\t"), max_size=3))
ranges = st.one_of(st.none(), st.lists(st.integers(-2, 6), min_size=0, max_size=3))
commands = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": paths, "view_range": ranges}),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": paths, "old_str": bits, "new_str": bits}),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": paths, "insert_line": st.integers(-1, 5), "insert_text": texts}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": paths, "new_path": paths}),
)
ROOT_VIEW: Command = {"command": "view", "path": "/memories"}


def answer(tool: BetaAbstractMemoryTool, command: Command) -> tuple[str, object]:
    """What a tool says to a command, and whether it is a refusal."""
    try:
        return "answered", tool.call(command)
    except ToolError as error:
        return "refused", error.content
    except (OSError, NotImplementedError) as error:  # the local tool lets the system's own errors through
        return "failed", type(error).__name__


def without_empty_folders(root: Path) -> None:
    """Folders of the workspace are there as long as something is in them."""
    for folder, _, _ in sorted(os.walk(root), reverse=True):
        if Path(folder) != root and not os.listdir(folder):
            os.rmdir(folder)


def compare(ours: MemfsMemoryTool, theirs: BetaLocalFilesystemMemoryTool, script: list[Command]) -> None:
    """Both say the same to each command of a script, and show the same in the end."""
    for command in [*script, ROOT_VIEW]:
        expected = answer(theirs, command)
        without_empty_folders(theirs.memory_root)
        got = answer(ours, command)
        if expected[0] == "failed":  # of these the text is ours
            assert got[0] == "refused", (command, expected, got)
        else:
            assert got == expected, command
    for file in sorted(theirs.memory_root.rglob("*")):
        if file.is_file():
            path = str(file.relative_to(theirs.memory_root))
            assert getattr(ours._find(f"{ours._folder}/{path}"), "content", None) == file.read_bytes().decode(), path


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(commands, min_size=1, max_size=12))
@example(
    script=[
        {"command": "create", "path": "/memories/notes/a.md", "file_text": "a\r\nb\r\n\t \n\n"},
        {"command": "str_replace", "path": "/memories/notes/a.md", "old_str": "b\r", "new_str": "c\r"},
        {"command": "insert", "path": "/memories/notes/a.md", "insert_line": 1, "insert_text": "between\n\n"},
        {"command": "view", "path": "/memories/notes/a.md", "view_range": [2, -1]},
        {"command": "view", "path": "/memories/notes"},
        {"command": "rename", "old_path": "/memories/notes", "new_path": "/memories/deep/er/notes"},
        {"command": "view", "path": "/memories/deep/er/notes/a.md"},
        {"command": "create", "path": "/memories/deep/er", "file_text": "x"},
        {"command": "delete", "path": "/memories/deep"},
    ]
)
def test_any_script_of_commands_gives_the_same_answers(
    script: list[Command], opened: Callable[..., Workspace], tmp_path: Path
) -> None:
    """B5: results, refusals and bytes are those of ``BetaLocalFilesystemMemoryTool``."""
    workspace = _kept[tmp_path] if tmp_path in _kept else _kept.setdefault(tmp_path, opened())
    run = next(_runs)
    with TemporaryDirectory() as local:  # on a disk, where a folder has the size that is usual
        theirs = BetaLocalFilesystemMemoryTool(local)
        ours = MemfsMemoryTool(folder=f"run{run}", workspace=workspace)
        compare(ours, theirs, script)
        assert ours.clear_all_memory() == theirs.clear_all_memory() == "All memory cleared"
    assert ours._below(ours._folder) == []


_runs = count()
_kept: dict[Path, Workspace] = {}
