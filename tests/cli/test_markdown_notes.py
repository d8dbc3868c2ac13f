"""Markdown files and folders of them become memories (D2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memfs.doors.importers import first_heading

from .conftest import Memfs

NOTE = """---
title: Tea
tags: [drink, warm]
type: procedural
date: 2026-03-01
author: Ada
kind: {of: paper}
---
Boil water. See [cups](../cups.md).
"""


@pytest.fixture
def notes(root: Path) -> Path:
    """A folder of three notes, one of them below another folder, beside agents' instructions."""
    folder = root / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "tea.md").write_text(NOTE)
    (folder / "sub" / "cups.md").write_text("\n# Cups\n\nThey are in the cupboard.\n")
    (folder / "plain.md").write_text("Nothing but a sentence.\n")
    return folder


def shown(memfs: Any, words: str) -> dict[str, Any]:
    """The memory that words find."""
    (found,) = memfs("recall", words, "--limit", "1", "--json").json["hits"]
    return dict(memfs("show", found["id"], "--json").json)


def test_a_folder_becomes_memories(notes: Path, memfs: Any) -> None:
    """Front matter gives the fields and metadata, a heading or the file's name the title; links stay (D2)."""
    assert memfs("import", str(notes), "--dry-run", "--json").json["stored"] == 3
    assert memfs("list", "--json").json["items"] == []
    assert memfs("import", str(notes)).code == 0
    tea = shown(memfs, "boil water")
    assert (tea["title"], tea["type"], tea["tags"]) == ("Tea", "procedural", ["drink", "warm"])
    assert tea["timestamp"].startswith("2026-03-01")
    assert (tea["metadata"]["author"], tea["metadata"]["kind"]) == ("Ada", {"of": "paper"})
    assert tea["content"] == "Boil water. See [cups](../cups.md)."
    cups = shown(memfs, "cupboard")
    assert (cups["title"], cups["content"], cups["type"]) == ("Cups", "They are in the cupboard.", "semantic")
    assert shown(memfs, "sentence")["title"] == "plain"


def test_an_imported_convention_is_said_to_wait(notes: Path, memfs: Any) -> None:
    """A note of the type convention comes in as none that was accepted, and the import says what accepts it."""
    (notes / "tea.md").write_text(NOTE.replace("procedural", "convention"))
    said = "agents do not see a convention until 'memfs team convention accept ID'"
    assert said in memfs("import", str(notes / "tea.md")).err
    assert said not in memfs("import", str(notes / "plain.md")).err


def test_importing_again_takes_what_changed_there(notes: Path, memfs: Any) -> None:
    """What changed in a file is brought up to date, from wherever it is named; what a person edited stays (D2)."""
    memfs("import", str(notes))
    cups = notes / "sub" / "cups.md"
    cups.write_text("# Cups\n\nThey are in the drawer.\n")
    (notes / "tea.md").write_text(NOTE.replace("author: Ada", "author: Bo"))
    report = memfs("import", str(cups), str(notes / "tea.md"), "--json").json
    assert (report["stored"], report["updated"]) == (0, 2)
    assert shown(memfs, "drawer")["title"] == "Cups"
    assert shown(memfs, "boil water")["metadata"]["author"] == "Bo"
    tea = shown(memfs, "boil water")["id"]
    memfs("update", tea, "Boil it twice")
    (notes / "tea.md").write_text(NOTE.replace("Boil", "Heat"))
    report = memfs("import", str(notes))
    assert "1 edited here and left alone" in report.out
    assert memfs("show", tea, "--json").json["content"] == "Boil it twice"


def test_several_paths_of_several_sorts(notes: Path, root: Path, memfs: Any) -> None:
    """Markdown is taken together, agents' instructions are not; what cannot be read is named, exit code 1 (D2)."""
    (root / "AGENTS.md").write_text("# Rules\n\n- Always run the tests.\n")
    (root / "bad.md").write_bytes(b"fine\n\xff")
    result = memfs("import", str(notes / "tea.md"), str(root / "AGENTS.md"), str(root / "bad.md"))
    assert result.code == 1
    assert "1 memory (1 procedural) from markdown, 3 paths" in result.out
    assert "AGENTS.md: agents' instructions" in result.err
    assert "bad.md:2: not UTF-8 text" in result.err


def test_refused_lines_are_left_out(root: Path, memfs: Any) -> None:
    """Each line that is refused is named, with exit code 1, and the others are stored (D2)."""
    file = root / "x.jsonl"
    file.write_text('{"content": "One"}\n{"conten": "Two"}\nnot json\n{"content": "Four"}\n')
    result = memfs("import", str(file))
    assert result.code == 1
    assert "2 left out" in result.out or "2 lines left out" in result.out
    assert f"{file}:2" in result.err
    assert f"{file}:3" in result.err
    assert len(memfs("list", "--json").json["items"]) == 2


def test_refused_documents_are_left_out(root: Path, memfs: Any, tmp_path: Path) -> None:
    """An export's records that cannot be stored are left out (D2)."""
    for name in ("a", "b"):
        memfs("remember", f"text {name}", "--id", name)
    out = tmp_path / "out.jsonl"
    memfs("export", str(out))
    memfs("update", "a", "another text")
    memfs("forget", "b")
    result = memfs("import", str(out), "--json")
    assert (result.code, result.json["stored"]) == (1, 1)
    assert [one["where"] for one in result.json["refused"]] == [f"{out}:1"]
    assert memfs("show", "b").code == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# One #\n\ntext", ("One", "\ntext")),
        ("text\n\n## Two\nmore", ("Two", "text\n\n## Two\nmore")),
        ("```\n# no\n```\n- item\n---\n", ("", "```\n# no\n```\n- item\n---\n")),
    ],
)
def test_the_first_heading(body: str, expected: tuple[str, str]) -> None:
    """A heading that opens the page is its title and no longer part of it; code holds none (D2)."""
    assert first_heading(body) == expected


@pytest.mark.parametrize("more", [(), ("--from", "markdown")])
@pytest.mark.parametrize("whole", ["/", "~"])
def test_a_whole_file_system_or_home_is_not_a_folder_of_notes(memfs: Memfs, whole: str, more: tuple[str, ...]) -> None:
    """Nobody takes in the documentation of every package by one slash too much; no file is looked at."""
    refused = memfs("import", os.path.expanduser(whole), *more)
    assert (refused.code, "name the folder of the notes" in refused.err) == (1, True)
    assert memfs("list", "--json").json["items"] == []
