"""Fields of other memories' formats, one by one: each counts where the format says so (B5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.doors.importers import CLAUDE_CODE, SourceContent, pages, read, tags_of
from memfs.model import KindTable


def _write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def remembered(path: Path) -> SourceContent:
    """What Claude Code keeps in a file or folder."""
    return read([path], path.parent, KindTable(), CLAUDE_CODE)


# -- Claude Code --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("front", "kind", "title"),
    [
        ("name: a\ntype: feedback\n", "preference", "a"),
        ("name: a\nmetadata:\n  type: feedback\n", "preference", "a"),
        ("name: a\ntype: user\n", "preference", "a"),
        ("name: a\ntype: Reference\n", "documentation", "a"),
        ("name: a\ntype: project\n", "knowledge", "a"),
        ("name: a\ntype: idea\ndescription: What it is\n", "knowledge", "What it is"),
        ("description: What it is\n", "knowledge", "What it is"),
    ],
)
def test_a_memorys_type_and_title_are_where_each_version_put_them(
    front: str, kind: str, title: str, tmp_path: Path
) -> None:
    """B5: the type is at the top or below ``metadata``; the description is what a memory is about."""
    [one] = remembered(_write(tmp_path / "x.md", f"---\n{front}---\nText\n")).arrivals
    assert (one.item.type, one.item.title) == (kind, title)


def test_a_pointer_in_running_text_is_text(tmp_path: Path) -> None:
    """B5: only a list item of the index is a pointer; a paragraph that links to a file says something itself."""
    text = "# Memory\n\nRead [the notes](notes.md) before a release.\n\n- [Notes](./notes.md) — notes\n"
    _write(tmp_path / "notes.md", "# Notes\n\nTag first.\n")
    taken = remembered(_write(tmp_path / "MEMORY.md", text).parent)
    assert {one.item.content for one in taken.arrivals if one.where.endswith("MEMORY.md:1")} == {
        "Read [the notes](notes.md) before a release."
    }
    assert taken.skipped == []


# -- places -------------------------------------------------------------------------------------------------------
def test_folders_are_looked_into_within_bounds(tmp_path: Path) -> None:
    """faults row 12: hidden, vendored and memfs's own folders are passed over, and nothing is too deep."""
    wanted = ["a.md", ".claude/b.md", ".github/c.md"]
    for name in [*wanted, ".hidden/x.md", "node_modules/x.md", "vendor/x.md", "ContextMemory/x.md"]:
        _write(tmp_path / name, "Text\n")
    deep = _write(tmp_path.joinpath(*["d"] * 17) / "x.md", "Text\n")
    near = _write(tmp_path.joinpath(*["d"] * 16) / "x.md", "Text\n")
    assert deep.exists()
    taken = SourceContent()
    found = {one.name for one in pages(tmp_path, taken)}
    assert found == {*wanted, near.relative_to(tmp_path).as_posix()}


def test_a_file_may_begin_with_a_mark_and_end_lines_as_it_likes(tmp_path: Path) -> None:
    """B5: a byte order mark and Windows' newlines are not part of a memory."""
    [one] = remembered(
        _write(tmp_path / "x.md", b"\xef\xbb\xbf---\r\nname: a\r\ntype: user\r\n---\r\nOne\r\nTwo")
    ).arrivals
    assert (one.item.type, one.item.content) == ("preference", "One\nTwo")


def test_tags_are_few() -> None:
    """B5: a list of thousands of categories is not a list of tags."""
    assert len(tags_of([f"t{number}" for number in range(500)])) == 50
    assert tags_of(["a", "a", 3, None, ["x"], " b\nc "]) == ("a", "3", "b c")
