"""What other memories keep is read as they mean it: each format by itself (B5)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memfs.doors.cli.import_ import _recognised
from memfs.doors.importers import CLAUDE_CODE, SourceContent, claude_folder, front_matter, pages, read
from memfs.errors import ContentError
from memfs.model import KindTable
from memfs.model.time import format_time


def write(path: Path, text: str | bytes) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def skipped(taken: SourceContent) -> list[str]:
    """What was passed over, in one text each."""
    return [f"{one.where}: {one.reason}" for one in taken.skipped]


def remembered(folder: Path) -> SourceContent:
    """What Claude Code keeps in a folder."""
    return read([folder], folder, KindTable(), CLAUDE_CODE)


def detect(path: Path) -> str:
    """Which memory a file or folder is of."""
    return _recognised([str(path)])


# -- Markdown -----------------------------------------------------------------------------------------------------
def test_front_matter_that_is_not_yaml_still_says_what_it_can() -> None:
    """A description with a colon, as agents write them, loses nothing."""
    fields, body, line = front_matter("---\nname: a\ndescription: Ada: knows Go\nmetadata: \n  type: user\n---\nText\n")
    assert (fields["name"], fields["description"], fields["type"]) == ("a", "Ada: knows Go", "user")
    assert (body, line) == ("Text\n", 7)
    assert front_matter("---\nno end\n")[0] == {}
    assert front_matter("---\na: &x [*x]\nname: b\n---\n")[0]["name"] == "b"


# -- Claude Code --------------------------------------------------------------------------------------------------
@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A memory folder as Claude Code keeps it, of older and newer versions."""
    folder = tmp_path / "projects" / "-home-ada-shop" / "memory"
    write(
        folder / "MEMORY.md",
        "# Memory\n- [Role](user_role.md) — engineer\n- [Gone](gone.md) - gone\n\n## Build\n- `make` needs Go 1.22\n",
    )
    write(
        folder / "user_role.md",
        "---\nname: user_role\ndescription: Ada: backend engineer\ntype: user\noriginSessionId: s-1\n---\n"
        "Ten years of Go. See [[feedback-testing]] and [[nobody]].\n",
    )
    write(
        folder / "feedback_testing.md",
        '---\nname: feedback-testing\ndescription: "Real databases"\nmetadata: \n  node_type: memory\n'
        "  type: feedback\n  originSessionId: s-2\n  modified: 2026-07-30T07:40:18.191Z\n---\n"
        "\nNever mock.\n\n**Why:** it broke.\n",
    )
    write(folder / "team/reference_board.md", "---\nname: board\ntype: reference\n---\nhttps://board.example\n")
    write(folder / "plain.md", "# Deploys\n\nOn Tuesdays.\n")
    return folder


def test_claude_codes_memories_keep_type_session_and_time(memory: Path) -> None:
    """Both shapes of front matter are understood, and of the index what is not a pointer (B5)."""
    taken = remembered(memory)
    found = {one.key: one for one in taken.arrivals}
    user, feedback = found["user_role.md"], found["feedback_testing.md"]
    assert (user.item.type, user.item.title) == ("preference", "Ada: backend engineer")
    assert (user.item.origin.session, user.item.origin.agent) == ("s-1", "claude-code")
    assert user.item.tags == ("user",)
    assert feedback.item.content == "Never mock.\n\n**Why:** it broke."
    assert feedback.item.timestamp is not None
    assert format_time(feedback.item.timestamp).startswith("2026-07-30T07:40:18")
    assert found["team/reference_board.md"].item.type == "documentation"
    assert (found["plain.md"].item.type, found["plain.md"].item.title) == ("knowledge", "Deploys")
    index = found["MEMORY.md"].item
    assert (index.title, index.content.strip()) == ("Memory", "## Build\n- `make` needs Go 1.22")
    assert {one.item.trust for one in taken.arrivals} == {"agent"}
    assert skipped(taken) == []


def test_the_memory_of_this_project_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Claude Code's own folder only the project's memory is taken, never another project's (C6)."""
    name = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in str(tmp_path / "work"))
    own = tmp_path / "projects" / name / "memory"
    write(own / "MEMORY.md", "# Memory\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert claude_folder([tmp_path / "other", tmp_path / "work"]) == own
    with pytest.raises(ContentError, match="no memory of Claude Code"):
        claude_folder([tmp_path / "elsewhere"])


# -- recognising --------------------------------------------------------------------------------------------------
def test_formats_are_distinguished(memory: Path, tmp_path: Path) -> None:
    """A file or folder says what wrote it; a page that nothing else wrote is a Markdown note (B5, D2)."""
    assert detect(memory) == "claude-code"
    assert detect(write(tmp_path / "a/AGENTS.md", "x")) == detect(tmp_path / "a") == "markdown"
    assert detect(write(tmp_path / "ours.jsonl", '{"document": {}, "path": "x"}\n')) == "memfs"
    assert detect(write(tmp_path / "items.jsonl", '{"content": "x", "type": "knowledge"}\n')) == "memfs"
    assert detect(write(tmp_path / "t.csv", "memory,id\n")) == "memfs"
    assert detect(write(tmp_path / "notes.md", "text")) == "markdown"
    assert detect(write(tmp_path / "folder/projects/x.md", "text").parent.parent) == "markdown"


def test_hostile_folders_are_bounded(tmp_path: Path) -> None:
    """Links, pipes, other encodings and huge files are named and not read (faults rows 10 to 12)."""
    folder = tmp_path / "memory"
    write(folder / "MEMORY.md", "# Memory\n")
    write(folder / "latin.md", b"caf\xe9\n")
    write(tmp_path / "outside/passwd.md", "root")
    os.symlink(tmp_path / "outside/passwd.md", folder / "link.md")
    os.symlink(folder, folder / "loop")
    os.mkfifo(folder / "pipe.md")
    with open(folder / "huge.md", "wb") as huge:
        huge.truncate(1 << 40)
    taken = remembered(folder)
    assert taken.arrivals == []
    assert [line.partition(":")[0] for line in skipped(taken)] == [
        "link.md",
        "pipe.md",
        "huge.md",
        "latin.md",
    ]


def test_what_goes_or_becomes_a_link_meanwhile_is_not_read(tmp_path: Path) -> None:
    """A file that is taken away, or traded for a link, between the listing and the reading costs only itself."""
    for name in ("a.md", "b.md", "c.md"):
        write(tmp_path / "memory" / name, "# Text\n")
    write(tmp_path / "secret.md", "secret")
    taken = SourceContent()
    found = pages(tmp_path / "memory", taken)
    assert next(found).name == "a.md"
    (tmp_path / "memory/b.md").unlink()
    (tmp_path / "memory/c.md").unlink()
    os.symlink(tmp_path / "secret.md", tmp_path / "memory/c.md")
    assert list(found) == []
    assert [line.partition(":")[0] for line in skipped(taken)] == ["b.md", "c.md"]
