"""Characters that a reader cannot see (faults row 17)."""

from __future__ import annotations

import pytest

from memfs.format.text import findings, shortened, shown, shown_line

SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("ok \U000e0041\U000e0042 text", "U+E0041 U+E0042"),
        ("a\u202eb", "U+202E"),
        ("a\u2066b", "U+2066"),
        ("x\ufe00\U000e0101\U000e0102", "U+FE00 U+E0101 U+E0102"),
        ("nul \0 here", "U+0000"),
        ("half \ud800 here", "U+D800"),
        (SCOTLAND + "\U000e0041", "U+E0041"),
    ],
)
def test_row_17_hiding_characters_are_refused_with_their_code_points(text: str, codes: str) -> None:
    """Tag characters, bidirectional controls and runs of variation selectors are refused and named."""
    refused = [finding.codes for finding in findings(text) if finding.refused]

    assert refused == [codes]


@pytest.mark.parametrize("text", ["plain", "grüße 日本語", SCOTLAND, "👩\u200d💻", "❤\ufe0f", "a\tb\nc"])
def test_row_17_honest_text_passes_without_a_word(text: str) -> None:
    """Ordinary text, flags and joined emoji give no finding."""
    assert list(findings(text)) == []


@pytest.mark.parametrize("character", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u200e"])
def test_row_17_zero_width_characters_only_warn(character: str) -> None:
    """Characters that occur in real text are reported, not refused."""
    found = list(findings(f"zero{character}width"))

    assert [(finding.refused, finding.offset) for finding in found] == [(False, 4)]


def test_row_17_output_shows_escapes() -> None:
    """What is printed shows hidden and terminal-controlling characters as escapes and leaves the rest."""
    assert shown("a\u202eb\x1b[31m\tü\n\u200b") == "a\\u{202E}b\\u{1B}[31m\tü\n\\u{200B}"
    assert shown_line("a\nb\x85c") == "a\\nb\\u{85}c"


def test_a_long_hidden_run_is_shortened() -> None:
    """A hidden sentence is named by its first code points and its length."""
    (finding,) = findings("\U000e0041" * 9)

    assert finding.codes == "U+E0041 U+E0041 U+E0041 U+E0041 and 5 more"


def test_a_text_that_is_too_long_ends_in_an_ellipsis() -> None:
    """What fits stays; what does not has as many characters as may be, and no space before the ellipsis."""
    assert shortened("twelve bells", 12) == "twelve bells"
    assert shortened("twelve bells", 11) == "twelve bel…"
    assert shortened("twelve bells", 8) == "twelve…"
