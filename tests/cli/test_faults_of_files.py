"""Everything that is wrong with a file is reported at once, and what is not a memory is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memfs.errors import SchemaInvalid
from memfs.model import MemoryItem
from memfs.workspace import open_workspace

WRONG = "conten: x\ntags: tea\nimportance: lots\n"


@pytest.fixture
def wrong(root: Path, memfs: Any) -> str:
    """The path of a file with three faults, whose last good version says something else."""
    path = str(memfs("remember", "One two three", "--id", "a", "--json").json["path"])
    (root / path).write_text(WRONG)
    return path


@pytest.mark.parametrize("verb", ["check", "status"])
def test_all_faults_of_a_file_are_named(wrong: str, memfs: Any, verb: str) -> None:
    """Each with its line, its field and what would be right (K3)."""
    output = memfs(verb).out
    assert f"{wrong}:1: error: unknown key 'conten'\n  did you mean 'content'?" in output
    assert f'{wrong}:2: error: tags: "tea" is not a list' in output
    assert f"{wrong}:3: error: importance:" in output
    assert "needs 'content'" not in output


def test_a_put_names_all_faults(root: Path) -> None:
    """The error of a write says everything that is wrong with the item (K3)."""
    with open_workspace(root, watch=False) as workspace:
        item = MemoryItem("x", tags=("t" * 2000,), title="y" * 2000)
        with pytest.raises(SchemaInvalid) as raised:
            workspace.store.put(item)
    named = {(raised.value.field or "").split(".")[0], *((one.field or "").split(".")[0] for one in raised.value.also)}
    assert named == {"tags", "title"}
    assert "tags" in str(raised.value)
    assert "title" in str(raised.value)


def test_show_serves_the_last_good_version(wrong: str, memfs: Any) -> None:
    """As recall does, and says so and why; --raw prints the file as it is (K3, D2)."""
    result = memfs("show", "a")
    assert result.code == 0
    assert "One two three" in result.out
    assert "showing its last good version" in result.err
    assert "did you mean 'content'?" in result.err
    found = memfs("show", "a", "--json").json
    assert (found["content"], found["stale"]) == ("One two three", True)
    assert memfs("show", "a", "--raw").out == WRONG


def test_what_never_was_good_is_refused(root: Path, memfs: Any) -> None:
    """A file without a good version cannot be shown but raw by git; all its faults are named (K3)."""
    file = root / "ContextMemory/memories/semantic/b.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(WRONG)
    result = memfs("show", "memories/semantic/b.yaml")
    assert result.code == 1
    assert "tags" in result.err


def test_a_stray_file_is_named(root: Path, memfs: Any) -> None:
    """Markdown between the memories is a warning with the command that takes it; --strict counts it (D2)."""
    folder = root / "ContextMemory/memories/semantic"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tea.md").write_text("# Tea\n")
    (folder / ".hidden.md").write_text("x")
    result = memfs("check")
    assert result.code == 0
    assert "semantic/tea.md: warning: only YAML and JSON files are memories" in result.out
    assert "memfs import ContextMemory/memories/semantic/tea.md" in result.out
    assert "hidden" not in result.out
    assert memfs("check", "--strict").code == 1
