"""Whatever is in another memory's files, an import names it or takes it in, and never fails over it (B5)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memfs.doors.importers import CLAUDE_CODE, SourceContent, first_heading, read
from memfs.intake.import_service import Became, ImportService
from memfs.model import KindTable
from memfs.workspace import Workspace

TEXTS = st.one_of(
    st.sampled_from(["Ada", "Acme", "likes tea", "\u202e", "\x00", "\ud800", "a\nb", "../x", "x" * 400, " ", ""]),
    st.text(max_size=12),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def check(workspace: Workspace, form: str, taken: SourceContent) -> None:
    """What was read can be decided on, all of it, and a refusal has its reason."""
    results = ImportService(workspace.store, workspace.parts).take_in(form, taken.arrivals, dry_run=True)
    assert len(results) == len(taken.arrivals)
    assert all(result.reason for result in results if result.became is Became.REFUSED)
    assert all(one.reason and one.where for one in taken.skipped)


def test_pages_of_any_shape(opened: Callable[..., Workspace], tmp_path: Path) -> None:
    """Front matter and text of any sort: memories, or reasons why not."""
    workspace = opened()
    path = tmp_path / "odd" / "page.md"
    path.parent.mkdir()
    fields = st.sampled_from(
        ["name", "type", "description", "title", "tags", "permalink", "paths", "metadata", "created"]
    )
    parts = st.sampled_from(
        ["- [a] b #c (d)", "- r [[X]] (y)", "# H", "1. x", "```", "<!--", "@a.md", "- [ ] t", "a: |", ""]
    )

    @given(st.dictionaries(fields, VALUES, max_size=4), st.lists(st.one_of(parts, TEXTS), max_size=8))
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    def run(front: dict[str, Any], lines: list[str]) -> None:
        head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
        path.write_bytes(f"---\n{head}---\n{chr(10).join(lines)}\n".encode("utf-8", "replace"))
        check(workspace, "claude-code", read([path.parent], path.parent, workspace.kinds, CLAUDE_CODE))

    run()


@pytest.mark.parametrize(
    "text",
    ["~~~\n", "```\n", "~~~ x\n", "`", "`a\n", "# a" + " " * 60_000, "# a" + " #" * 30_000, "<!--", "- ", "@a/b "],
)
def test_no_page_takes_long_to_read(text: str, tmp_path: Path) -> None:
    """The time to read a page grows with its length, and not with its square, whatever marks it is full of (B5)."""
    page = tmp_path / "MEMORY.md"
    page.write_text((text * (60_000 // len(text) + 1))[:60_000] + "x\n")
    began = time.process_time()
    read([page], tmp_path, KindTable(), CLAUDE_CODE)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("# A b #", "A b"),
        ("## A#", "A#"),
        ("# A ## ", "A"),
        ("#", ""),
        ("# #", ""),
        ("# A # b", "A # b"),
        ("#\t A", "A"),
    ],
)
def test_a_heading_is_what_is_between_its_marks(written: str, title: str) -> None:
    """The marks that may close a heading are none of its words (B5)."""
    assert first_heading(f"{written}\n\nSaid below it.\n")[0] == title
