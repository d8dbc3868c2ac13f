"""The page on the inbox says what happens (D1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transcripts import replay

Read = Callable[[str], str]


def test_the_transcript_of_the_page_is_what_happens(page: Read, folder: Path) -> None:
    """Every command on the page prints what is below it (D1)."""
    wrong = replay(page("docs/inbox.md"), folder)
    assert not wrong, "\n".join(["docs/inbox.md says otherwise:", *wrong])
