"""docs/embeddings.md: what it shows is what happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transcripts import replay

Read = Callable[[str], str]


def test_the_transcript_is_what_happens(page: Read, folder: Path) -> None:
    """Switching search by meaning on and off prints what the page says (D3)."""
    wrong = replay(page("docs/embeddings.md"), folder)
    assert not wrong, "\n".join(wrong)
