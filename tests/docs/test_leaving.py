"""The page about leaving shows what happens (D2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transcripts import replay


def test_the_transcript_of_the_page_is_what_happens(page: Callable[[str], str], folder: Path) -> None:
    """Every command on the page prints what is below it (D2)."""
    wrong = replay(page("docs/leaving.md"), folder.parent)
    assert not wrong, "\n".join(["docs/leaving.md says otherwise:", *wrong])
