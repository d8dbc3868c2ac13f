"""Regular expressions that are compiled late behave as those that are compiled at once."""

from __future__ import annotations

import re

import pytest

from memfs.startup import regex


def test_it_matches_as_the_compiled_expression() -> None:
    """Methods and attributes are those of ``re.compile``, with its flags, of text and of bytes."""
    word = regex(r"(a)b+", re.IGNORECASE)
    assert [word.sub("x", "ABbc"), word.pattern, word.groups] == ["xc", r"(a)b+", 1]
    assert word.fullmatch("abb") is not None
    assert word.fullmatch("abc") is None
    assert regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_nothing_is_compiled_before_it_is_needed() -> None:
    """A mistake is noticed at the first use."""
    wrong = regex("(")
    with pytest.raises(re.error, match="missing"):
        wrong.match("a")
