"""Ids are readable: what a text becomes in a file's name."""

from __future__ import annotations

import pytest

from memfs.model.ids import slug


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No, don't touch the fixtures", "no-dont-touch-the-fixtures"),
        ("Don’t touch the fixtures", "dont-touch-the-fixtures"),
        ("Zoë's naïve café", "zoes-naive-cafe"),
        ("'''", ""),
        ("Größe der Straße, smørrebrød", "grosse-der-strasse-smorrebrod"),
        ("日本", ""),
    ],
)
def test_a_slug_reads_like_the_text(text: str, expected: str) -> None:
    """An apostrophe takes no word apart, whichever it is."""
    assert slug(text) == expected
