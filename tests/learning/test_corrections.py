"""Corrections: what of a person's message is kept as a preference."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.learning.preferences import corrections, is_correction

LABELLED = Path(__file__).parent / "corrections.txt"


def labelled() -> list[tuple[str, bool]]:
    """The labelled sentences, each with whether it is a correction."""
    rows = LABELLED.read_text(encoding="utf-8").splitlines()
    return [(row[2:], row[0] == "+") for row in rows if row[:2] in ("+ ", "- ")]


def test_labelled_sentences_are_distinguished() -> None:
    """P4: of 374 labelled sentences few corrections are missed, and hardly anything else is taken for one."""
    rows = labelled()
    taken = [(sentence, right) for sentence, right in rows if is_correction(sentence)]
    correct = sum(right for _, right in taken)
    assert len(rows) == 374
    assert correct / len(taken) >= 0.98, [sentence for sentence, right in taken if not right]
    missed = [sentence for sentence, right in rows if right and not is_correction(sentence)]
    assert correct / sum(right for _, right in rows) >= 0.94, missed


def test_the_sentences_of_a_message_are_taken_as_they_are_written() -> None:
    """P4: a correction is kept in the person's own words, and what is beside it is not."""
    message = (
        "Thanks, the parser works now!  But **don't** use `assert` for input, please. Can you also fix the docs?\n"
        "- Always add a test first.\n"
        "2) Never touch\nvendor/ by hand.\n"
        "Always add a test first."
    )
    assert corrections(message) == (
        "But **don't** use `assert` for input, please.",
        "Always add a test first.",
        "Never touch vendor/ by hand.",
    )


def test_a_pasted_document_is_not_taken_over_as_a_whole() -> None:
    """A style guide of a hundred rules in a message is one thing said, not a hundred wishes."""
    guide = "\n".join(f"- Never use library number {number} in the code." for number in range(100))
    assert len(corrections(guide)) == 20


def test_curly_quotes_and_missing_apostrophes_are_understood() -> None:
    """A phone writes other apostrophes than a keyboard, and people leave them out."""
    assert is_correction("Don\u2019t use tabs in YAML")
    assert is_correction("dont use tabs in yaml")


@pytest.mark.parametrize(
    "message",
    [
        "> Always use tabs.\n\nWhat do you think of that?",
        "```\n# Never use this in production\n```\nWhat does this do?",
        "> Thanks. Never use tabs here.\nWhat do you think of that?",
        "He said it is slow; always use the cache",
        f"Never use {'very ' * 110}long names.",
        "It ran. " * 2_500 + "Never use tabs here.",
        'The linter says: "Never use eval here."',
        "The style guide says never use eval here.",
        "~~~\nAlways use tabs in Makefiles.",
        "",
        " \n\t",
        "Never!",
        "don't do that again",
    ],
)
def test_words_of_others_and_empty_words_are_not_a_correction(message: str) -> None:
    """Quotations, code and what names nothing are left alone."""
    assert corrections(message) == ()


@pytest.mark.parametrize(
    "message",
    [
        "never " * 50_000,
        "\n" * 200_000 + "Always use tabs in Makefiles.",
        "```" * 60_000,
        "use " + "a, " * 100_000,
        '"' * 100_000,
        "ok, please, " * 40_000 + "never use eval",
        "for " + "x " * 200_000 + ", never use eval",
        "." * 100_000 + ")" * 100_000,
        "\u202e" * 50_000 + "never use eval",
        "(" * 100_000 + "]" * 100_000,
        "- " * 100_000,
        "instead of " * 30_000,
    ],
)
def test_hostile_messages_take_no_time(message: str) -> None:
    """L7: whatever a message holds, looking through it ends quickly."""
    began = time.process_time()
    corrections(message)
    assert time.process_time() - began < 5


@settings(max_examples=60)
@given(st.text(max_size=400))
def test_any_text_is_taken_apart(message: str) -> None:
    """L7: what is found is words of the message, in sentences of a bounded length; asked again, it is the same."""
    found = corrections(message)
    assert found == corrections(message)
    assert all(0 < len(one) <= 500 and set(one.split()) <= set(message.split()) for one in found)
