"""What the words of a question are worth."""

from __future__ import annotations

from math import log

import pytest

from memfs.model import MemoryItem, Query
from memfs.search.engine import MemoryIndex
from memfs.search.search_index import asked_of
from memfs.search.terms import misspellings, persons, related, weights


def test_words_of_talk_weigh_half() -> None:
    """A word that narrows nothing down is searched for, at half the weight of one that does."""
    assert weights("What kind of database do we want?") == {"kind": 0.5, "databas": 1.0, "want": 0.5}


def test_a_word_that_denies_weighs_less_than_what_is_denied() -> None:
    """Most texts with such a word deny something else."""
    assert weights("when do we not deploy") == {"not": 0.25, "deploy": 1.0}
    assert weights("never") == {"never": 0.25}


def test_only_words_of_talk_are_asked_for_all_the_same() -> None:
    """A question of nothing else still finds things."""
    assert set(weights("What do you think?")) == {"think"}
    assert set(weights("What is it?")) != set()


def test_a_repeated_word_weighs_more_but_not_in_proportion() -> None:
    """Three times the word is one and the logarithm of three."""
    assert weights("pool pools pooling retry") == {"pool": pytest.approx(1 + log(3)), "retri": 1.0}


def test_in_a_transcript_the_assistants_lines_weigh_half() -> None:
    """What the person said counts more than what was said to them; their names are words like any other."""
    found = weights("Assistant: a cello is louder\nLisa: the violin broke")
    assert (found["violin"], found["cello"], found["lisa"]) == (1.0, pytest.approx(0.45), 1.0)


def test_in_a_transcript_the_last_turn_weighs_most() -> None:
    """What a talk is about now counts more than what it began with; other lines count alike."""
    found = weights("Lisa: the violin broke\nand the bow\nTom: a cello?\nLisa: a trumpet")
    assert [found[word] for word in ("violin", "bow", "cello", "trumpet")] == pytest.approx([0.81, 0.81, 0.9, 1.0])
    assert set(weights("port: violin\nhost: cello").values()) == {1.0}


def test_persons_are_those_who_have_names() -> None:
    """What else speaks, or comes before a colon, is nobody whom a memory is about."""
    assert persons("Ann Lee: violin\nAssistant: cello\nUser: trumpet") == {"ann", "lee"}
    assert not persons("Error: violin\nError: cello")


def test_one_line_is_not_a_transcript() -> None:
    """A question that only begins like a transcript's line is a question."""
    assert weights("Assistant: violin")["violin"] == 1.0


@pytest.mark.parametrize("typed", ["typsecript", "typscript", "typescriptt", "typeskript"])
def test_one_slip_of_the_finger_is_forgiven(typed: str) -> None:
    """A letter missing, too many, wrong or swapped; more is another word."""
    assert misspellings(typed, ["typescript", "transcript", "type"]) == ["typescript"]


def test_short_words_and_numbers_are_taken_as_they_are() -> None:
    """One slip turns a short word or a number into another one."""
    assert (misspellings("cart", ["card", "carts"]), misspellings("20261", ["20262"])) == ([], [])


def test_an_english_form_of_a_foreign_word_is_not_a_slip() -> None:
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


def test_words_that_are_used_alike_count_less_than_the_one_asked_for() -> None:
    """They are asked for where a setting says so, each at less than half of what it stands for; in English alone."""
    worth = weights("movies by the doctor")
    near = related("movies by the doctor", worth)
    assert {"film", "cinema", "medicin"} <= near.keys()
    assert near["film"][0] == "movi"
    assert all(0 < share < 0.5 * worth[meant] for meant, share in near.values())
    assert not related("der Film mit dem Arzt", weights("der Film mit dem Arzt"))
    assert asked_of(Query(text="movie"), [MemoryIndex()])[0].keys() == {"movi"}


def test_a_word_used_alike_is_found_and_adds_nothing_to_the_one_it_stands_for() -> None:
    """A text with the word gains nothing by having others like it; a rare one says no more than what was asked."""
    index = MemoryIndex()
    words = {"both": "movie film evening", "one": "movie paper evening", "like": "film paper evening", "none": "a rope"}
    index.add([MemoryItem(text, id=name) for name, text in words.items()])
    query = Query(text="movie", related=True)
    scores = {found.id: found.similarity for found in index.search(query, asked=asked_of(query, [index]))}
    assert scores.keys() == {"both", "one", "like"}
    assert scores["both"] == pytest.approx(scores["one"])
    assert scores["like"] < 0.5 * scores["one"]
