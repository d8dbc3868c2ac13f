"""What the words of a question are worth."""

from __future__ import annotations

from math import log

import pytest

from memfs.model import MemoryItem, Query
from memfs.search.memory import MemoryIndex
from memfs.search.search_index import asked_of
from memfs.search.terms import nearby, weights


def test_words_of_talk_weigh_half() -> None:
    """A word that narrows nothing down is searched for, at half the weight of one that does."""
    assert weights("What kind of database do we want?") == {"kind": 0.5, "databas": 1.0, "want": 0.5}


def test_only_words_of_talk_are_asked_for_all_the_same() -> None:
    """A question of nothing else still finds things."""
    assert set(weights("What do you think?")) == {"think"}
    assert set(weights("What is it?")) != set()


def test_a_repeated_word_weighs_more_but_not_in_proportion() -> None:
    """Three times the word is one and the logarithm of three."""
    assert weights("pool pools pooling retry") == {"pool": pytest.approx(1 + log(3)), "retri": 1.0}


def test_in_a_transcript_the_assistants_lines_weigh_half() -> None:
    """What the person said counts more than what was said to them; their names are words like any other."""
    found = weights("Lisa: the violin broke\nAssistant: a cello is louder")
    assert (found["violin"], found["cello"], found["lisa"]) == (1.0, 0.5, 1.0)


def test_one_line_is_no_transcript() -> None:
    """A question that only begins like a transcript's line is a question."""
    assert weights("Assistant: violin")["violin"] == 1.0


@pytest.mark.parametrize("typed", ["typsecript", "typscript", "typescriptt", "typeskript"])
def test_one_slip_of_the_finger_is_forgiven(typed: str) -> None:
    """A letter missing, too many, wrong or swapped; more is another word."""
    assert nearby(typed, ["typescript", "transcript", "type"]) == ["typescript"]


def test_short_words_and_numbers_are_taken_as_they_are() -> None:
    """One slip turns a short word or a number into another one."""
    assert (nearby("cart", ["card", "carts"]), nearby("20261", ["20262"])) == ([], [])


def test_an_english_form_of_a_foreign_word_is_no_slip() -> None:
    """What nothing holds only because it is another language's word brings no terms that are spelled alike."""
    index = MemoryIndex()
    index.add(
        [MemoryItem("Verbindungenx stehen hier", id="like"), MemoryItem("Die Verbindung zur Datenbank", id="one")]
    )
    worth, _ = asked_of(Query(text="Welche Verbindungen gibt es?"), [index])
    assert set(worth) == {"verbind", "verbindungen"}
    slipped, _ = asked_of(Query(text="which verbindungen"), [index])
    assert "verbindungenx" in slipped


def test_a_word_without_a_language_is_asked_for_in_those_that_there_are() -> None:
    """One word finds its other forms where something is in its language; in English alone nothing is added to it."""
    german = MemoryItem("Die Verbindungen zur Datenbank werden geschlossen", id="german")
    english = MemoryItem("We close the connections of the pool", id="english")
    index = MemoryIndex()
    index.add([english])
    assert asked_of(Query(text="connection Verbindung"), [index])[0].keys() == {"connect", "verbindung"}
    index.add([german])
    worth, statistics = asked_of(Query(text="Verbindung"), [index])
    assert worth == {"verbind": 0.5, "verbindung": 1.0}
    assert [found.id for found in index.search(Query(text="Verbindung"), asked=(worth, statistics))] == ["german"]
    assert asked_of(Query(text="the Verbindung"), [index])[0].keys() == {"verbindung"}
