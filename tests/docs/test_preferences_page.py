"""What the page about preferences says is so (P3, P4, P6)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from memfs.context import builtin_sources
from memfs.context.known import NAMES
from memfs.learning.preferences import is_correction
from memfs.settings import BUILT_IN_SOURCES

Read = Callable[[str], str]


def test_the_program_prints_what_the_page_says(page: Read, capsys: pytest.CaptureFixture[str]) -> None:
    """The source over a store of one's own."""
    text = page("docs/preferences.md")
    code, printed = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.M | re.S).groups()  # type: ignore[union-attr]
    exec(code, {"__name__": "preferences_page"})
    assert capsys.readouterr().out == printed


def test_sources_headings_and_files_are_the_present_ones(page: Read) -> None:
    """Each built-in source, its heading, and each file that is known anyway is on the page."""
    text = page("docs/preferences.md")
    rows = re.findall(r"^\| `(\w+)` \| (\w+)", text, re.M)
    assert dict(rows) == dict(BUILT_IN_SOURCES)
    for module in (builtin_sources, builtin_sources, builtin_sources, builtin_sources):
        assert f"`{module.HEADING}`" in text
    assert f"`{builtin_sources.RECENT_SESSION_HEADING} (" in text
    assert all(f"`{name}`" in text for name in NAMES)


def test_what_the_page_leaves_alone_is_left_alone(page: Read) -> None:
    """Its examples of what is not a correction are none."""
    text = " ".join(page("docs/preferences.md").split())
    for example in ("it never works", "don't push yet", "don't do that again"):
        assert f'"{example}"' in text
        assert not is_correction(example)
