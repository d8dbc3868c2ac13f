"""How far two texts say the same."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.recall.similarity import SAME, TextShape, alike, likeness, normalised

LONG = "The deployment to production runs every Friday evening after the tests of the release branch have passed"
PARAPHRASES = [
    ("Decided to use PostgreSQL for transactions", "We decided to use postgresql for our transactions."),
    ("Users prefer dark mode", "The user prefers dark-mode!"),
    ("The parser fails on empty input", "Fix: the parser fails on empty input"),
    (LONG, LONG.replace("every", "each").replace("have passed", "pass")),
    ("数据库使用PostgreSQL", "数据库使用PostgreSQL。"),
]
DIFFERENT = [
    ("The timeout is 30 seconds", "The timeout is 60 seconds"),
    ("We use Redis for sessions", "We do not use Redis for sessions"),
    ("I like tea", "I like coffee"),
    ("create user login", "create admin login"),
    ("Use C for the core", "Use C++ for the core"),
    ("The parser calls the lexer", "The lexer calls the parser"),
    (LONG, LONG.replace("Friday", "Monday")),
    (f"{LONG}. " * 5 + "The limit is 100 requests.", f"{LONG}. " * 5 + "The limit is 200 requests."),
    (f"{LONG}. " * 5 + "It reads config/app.yaml.", f"{LONG}. " * 5 + "It reads config/db.yaml."),
    (f"{LONG}. " * 5 + "It is safe.", f"{LONG}. " * 5 + "It is not safe."),
    ("The settings of both nodes are consistent", "The settings of both nodes are inconsistent"),
    ("Use tabs", "Use tabs. " + LONG),
    ("", "anything"),
    ("!!", "??"),
    ("Require at least a <= b", "Require at least a >= b"),
    ("The nightly build is \u2705", "The nightly build is \u274c"),
    ("It costs 5 \u20ac a month", "It costs 5 $ a month"),
    ("The area is 10\u00b2 metres", "The area is 102 metres"),
]


@pytest.mark.parametrize(("one", "other"), PARAPHRASES)
def test_what_says_the_same_is_the_same(one: str, other: str) -> None:
    """Case, punctuation, word forms and small words do not make another memory (C4)."""
    assert SAME <= likeness(one, other) == likeness(other, one) <= 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_says_something_else_is_not_the_same(one: str, other: str) -> None:
    """A number, a name, a denial or an order makes another memory, however long the rest (C4)."""
    assert likeness(one, other) == likeness(other, one) < SAME


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  Use   Tabs!\n", "use tabs"),
        ("“Use tabs”, she said.", "use tabs she said"),
        ("Use C++, C# and -5.", "use c++ c# and -5"),
        ("see .env and v1.2.", "see .env and v1.2"),
        ("ﬁle\u200bname \uff21", "filename a"),
        ("so (f.x) !!! ok", "so f.x !!! ok"),
    ],
)
def test_normalised_drops_what_does_not_change_the_meaning(text: str, plain: str) -> None:
    """Case, blanks, hidden characters and the punctuation around words go; signs of names stay."""
    assert normalised(text) == plain
    assert normalised(normalised(text)) == normalised(text)


def test_a_long_text_is_compared_quickly_by_its_ends() -> None:
    """A text of a million letters is compared by its beginning and end, and a short one with it not at all."""
    words = " ".join(f"{number:b}".translate({48: "o", 49: "a"}) for number in range(60_000))
    assert likeness(words, words + " more") >= SAME > likeness(words, words[::-1])
    assert alike(TextShape(words), TextShape("aoaoa"), SAME) == 0 < likeness(words, "aoaoa ooo") < 0.001


TEXTS = st.text(alphabet="ab AB1.-'", max_size=40) | st.sampled_from([text for pair in PARAPHRASES for text in pair])


@settings(max_examples=60)
@given(TEXTS, TEXTS)
def test_likeness_is_a_measure(one: str, other: str) -> None:
    """It is symmetric, within 0 and 1, and 1 exactly where the normalised texts are equal."""
    found = likeness(one, other)
    assert found == likeness(other, one)
    assert 0 <= found <= 1
    assert (found == 1) == (normalised(one) == normalised(other))
    assert alike(TextShape(one), TextShape(other), SAME) == (found if found >= SAME else 0)


@pytest.mark.parametrize("sign", ["-", ".", "/", "-./", "=", "`"])
def test_rows_of_signs_are_looked_at_once(sign: str) -> None:
    """A ruled line of forty thousand signs takes no minute (80 s before)."""
    began = time.process_time()
    assert likeness(sign * 40_000 + " end", sign * 40_000 + " other") < SAME
    assert time.process_time() - began < 5
