"""Every page for teams shows its part at work, and the transcript on it is what happens (K4, K8, B1 to B4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from transcripts import blocks, replay

from memfs.team.review_report import CODES

TEAMS = Path(__file__).resolve().parents[2] / "docs/teams"
PAGES = sorted(path.name for path in TEAMS.glob("*.md"))
Read = Callable[[str], str]


@pytest.mark.parametrize("name", PAGES)
def test_the_transcript_of_a_teams_page_is_what_happens(name: str, page: Read, folder: Path) -> None:
    """Every command and statement on the page prints what is below it, in an empty repository (K8)."""
    wrong = replay(page(f"docs/teams/{name}"), folder)
    assert not wrong, "\n".join([f"docs/teams/{name} says otherwise:", *wrong])


@pytest.mark.parametrize("name", PAGES)
def test_every_teams_page_has_a_transcript(name: str, page: Read) -> None:
    """A page for teams shows its part at work, by a transcript that can be replayed."""
    text = page(f"docs/teams/{name}")
    assert blocks(text)
    assert re.findall(r"^```(?:shell|shell-session|bash|doctest|ipython)$", text, re.M) == []


def test_every_teams_page_is_in_the_table(page: Read) -> None:
    """The list of the pages for teams links each of them, and the README links the list."""
    table = page("docs/teams/README.md")
    assert [name for name in PAGES if name != "README.md" and f"]({name}" not in table] == []
    assert "](docs/teams/README.md" in page("README.md")


def test_the_codes_of_a_review_are_the_present_ones(page: Read) -> None:
    """The table of what a review finds has each code with its severity, and no other (B4)."""
    rows = re.findall(r"^\| `(\w+)` \| (error|warning|note) \| .+ \|$", page("docs/teams/review.md"), re.M)
    assert dict(rows) == CODES
