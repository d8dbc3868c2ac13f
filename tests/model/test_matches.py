"""Tournament results: who took part, who won, and the ratings afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.model import state_paths as paths
from memfs.model.state_facts import TournamentMatch, describe, matches, participants

WON: list[dict[str, Any]] = [
    {"participants": ["x", "y"], "winner": "y"},
    {"participants": [{"id": "x", "rating": 1190}, {"id": "y"}], "winner": "y"},
    {"winner": "y", "loser": "x"},
    {"winner": {"id": "y"}, "loser": ["x"]},
    {"matches": [{"winner": "y", "loser": "x"}], "winner": "y"},
]
NOBODY: list[dict[str, Any]] = [
    {"participants": ["x", "y"], "winner": None},
    {"participants": ["x", "y"], "winner": "draw"},
    {"participants": ["x", "y"], "results": {"x": "?"}, "scores": {"x": 1, "y": 3}},
    {"ratings": {"x": 1200, "y": 1210}},
]


@pytest.mark.parametrize("result", WON, ids=str)
def test_who_took_part_and_who_won_is_known(result: dict[str, Any]) -> None:
    """Two took part and one of them won, whether listed or only reported as winner and loser (S2, S3)."""
    (match,) = matches(result)
    assert (set(match.participants), match.winners) == ({"x", "y"}, ("y",))
    assert set(describe(paths.tournament_path(1, "m"), result).hypotheses) == {"x", "y"}


@pytest.mark.parametrize("result", NOBODY, ids=str)
def test_nobody_wins_a_draw_or_a_match_that_names_no_winner(result: dict[str, Any]) -> None:
    """A draw is not a hypothesis, and scores and ranks alone make nobody the winner (S2)."""
    (match,) = matches(result)
    assert (match.participants, match.winners) == (("x", "y"), ())


def test_several_matches_in_one_result_count_each() -> None:
    """A result that lists matches has each of them; the whole's winner has won no further one."""
    result = {
        "matches": [{"winner": "x", "loser": "y"}, {"winner": "z", "loser": "x"}],
        "winner": "z",
        "ratings": {"w": 5},
    }
    assert matches(result) == (TournamentMatch(("x", "y"), ("x",)), TournamentMatch(("z", "x"), ("z",)))
    assert participants(result) == ("z", "w", "x", "y")


def test_ratings_are_taken_from_the_result_or_from_its_participants() -> None:
    """Ratings are beside the participants or within them; what is not a number is none."""
    assert matches({"participants": [{"id": "x", "rating": 1190}], "ratings": {"y": 1210, "z": "high"}}) == (
        TournamentMatch(("x", "y"), (), {"x": 1190, "y": 1210}),
    )


KEYS = st.sampled_from(
    [
        "participants",
        "winner",
        "loser",
        "matches",
        "a",
        "b",
        "hypothesis_a",
        "hypothesis_b",
        "opponent",
        "ratings",
        "id",
        "scores",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_a_result_of_any_shape_is_read_without_failing(result: dict[str, Any]) -> None:
    """Whatever a person made of a result, reading it fails never and invents no winner (S13)."""
    for match in matches(result):
        assert set(match.winners) <= set(match.participants)
    assert all(participants(result))
