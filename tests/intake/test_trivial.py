"""The trivial filter: what is small talk, and what merely is short."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.recall.cues import TrivialFilter
from memfs.resources import word_lists

DRAFTS = Path(__file__).parents[1] / "intake/drafts"


def texts(name: str) -> list[str]:
    """The texts of one corpus, their types left out."""
    lines = (DRAFTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition(" | ")[2] or line for line in lines if line]


def test_nothing_trivial_passes_and_nothing_worth_keeping_is_refused() -> None:
    """Of 124 texts nobody needs none passes, and of 133 that somebody needs none is refused (C3)."""
    trivial = TrivialFilter()
    assert [text for text in texts("trivial") if not trivial.is_trivial(text)] == []
    assert [text for text in texts("keep") if trivial.is_trivial(text)] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Hi there", "trivial: a greeting"),
        ("Good morning, Alice!", "trivial: a greeting"),
        ("see you tomorrow", "trivial: a farewell"),
        ("OK, sounds good, thanks!", "trivial: an acknowledgement"),
        ("thank you so much for your help", "trivial: thanks"),
        ("Let me check that for you", "trivial: a filler"),
        ("git status", "trivial: an echo of a command"),
        ("$ npm install", "trivial: an echo of a command"),
        ("PostgreSQL", "trivial: too short"),
        ("apple apple apple", "trivial: one word over and over"),
        ("3.14", "trivial: nothing but numbers"),
        ("...!", "trivial: nothing but punctuation or signs"),
        ("   ", "trivial: empty"),
        ("heyyyyy", "trivial: a greeting"),
    ],
)
def test_each_sort_has_its_reason(text: str, reason: str) -> None:
    """A refusal says which sort of trivial it is, and holds the word (C1)."""
    assert TrivialFilter().reason(text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "Use tabs",
        "No Redis",
        "Yes to Redis",
        "Use UTC",
        "editor=vim",
        "lunch at 12",
        "Ship Friday",
        "ok so the deploy key is in the vault",
        "Thanks to caching it is fast",
        "Go ahead and deploy",
        "Thanks, but use PostgreSQL",
        "make sure tests pass",
        "date the files",
        "使用制表符缩进",
        "hello " * 60,
    ],
)
def test_what_is_short_or_begins_like_small_talk_passes(text: str) -> None:
    """Short orders, and small talk with something beside it, are left to the reviewers."""
    assert TrivialFilter().reason(text) == ""


def test_phrases_are_written_as_words_are_compared() -> None:
    """One that is written otherwise would never be found."""
    for sort, phrases in word_lists()["small_talk"].items():
        for phrase in phrases.split(", " if sort != "neutral" else " "):
            assert TrivialFilter().reason(phrase), phrase
