"""What an item gains from the talk around it, and the named factors of its score."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from memfs import MemoryItem, Origin, Query, Workspace
from memfs.model import Candidate
from memfs.model.time import micros
from memfs.recall.ranking import (
    FACTORS,
    LENT,
    LENT_BY_ANSWER,
    PRESETS,
    SESSION_SHARE,
    RankCandidate,
    Ranking,
    with_coverage,
    with_neighbours,
)
from memfs.search.terms import TermStatistics

Opened = Callable[..., Workspace]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
WORDS = {"violin": 1.0, "gut": 3.0}, TermStatistics(passages=9, average_length=3.0, frequencies={"violin": 2, "gut": 2})


def candidate_at(name: str, similarity: float, sequence: int | None, session: str = "s", **more: object) -> Candidate:
    """A candidate with a place in a talk."""
    fields = {"type": "conversation", "time": micros(NOW), "path": f"{name}.yaml", "session": session, **more}
    return Candidate(id=name, similarity=similarity, sequence=sequence, **fields)  # type: ignore[arg-type]


def nobody(places: object) -> list[Candidate]:
    """No other item is there."""
    return []


def test_neighbours_lend_most_to_the_one_after() -> None:
    """The item after a match gains the most, those around it less, those further away nothing."""
    beside = {number: candidate_at(f"n{number}", 0.0, number) for number in range(10)}

    def look_up(places: object) -> list[Candidate]:
        return [beside[place] for _, place in places]  # type: ignore[attr-defined]

    together = with_neighbours([candidate_at("hit", 2.0, 5)], look_up)
    gained = {one.sequence: shares.neighbours for one, shares in together}
    assert gained == {5: 0.0, **{5 + step: share * 2.0 for step, share in LENT.items()}}
    assert max(LENT, key=lambda step: LENT[step]) == 1


def test_a_session_lends_to_its_items_in_proportion_to_its_best() -> None:
    """Each further match of a session counts less; another session's items gain nothing from it."""
    found = [candidate_at("a", 3.0, 1), candidate_at("b", 2.0, 50), candidate_at("c", 1.0, 1, session="other")]
    shares = {one.id: share.session for one, share in with_neighbours(found, nobody)}
    assert shares["a"] == shares["b"] == pytest.approx(SESSION_SHARE * (3.0 + 0.6 * 2.0))
    assert shares["c"] == pytest.approx(SESSION_SHARE * 1.0)


def test_an_answer_of_an_assistant_lends_to_what_was_asked() -> None:
    """In a transcript the person's words before an assistant's matching answer gain half of its score."""
    found = [candidate_at("answer", 2.0, 2, role="assistant"), candidate_at("asked", 1.0, 1, role="user")]
    shares = {one.id: share.neighbours for one, share in with_neighbours(found, nobody)}
    assert shares["asked"] == pytest.approx(LENT_BY_ANSWER * 2.0)


def test_items_without_a_place_gain_nothing() -> None:
    """Where nothing has a place in a talk nobody is asked for, and every score is the text's own."""

    def never(places: object) -> list[Candidate]:
        raise AssertionError("nothing is beside it")

    together = with_neighbours([candidate_at("a", 3.0, None), candidate_at("b", 2.0, None)], never)
    assert [(share.neighbours, share.session) for _, share in together] == [(0.0, 0.0), (0.0, 0.0)]


@pytest.mark.parametrize(
    ("question", "candidate", "factor", "larger"),
    [
        ("What does Ada like?", {"speaker": "Ada Lovelace"}, "speaker", True),
        ("What does Eve like?", {"speaker": "Ada Lovelace"}, "speaker", None),
        ("What happened in March 2026?", {}, "when", True),
        ("What happened in April 2026?", {}, "when", None),
        ("What may happen?", {"time": micros(datetime(2026, 5, 1, tzinfo=UTC))}, "when", None),
        ("What happened in May?", {"time": micros(datetime(2026, 5, 1, tzinfo=UTC))}, "when", True),
        ("anything", {"asks": True}, "statement", False),
        ("anything", {"role": "assistant"}, "person", False),
        ("anything", {"role": "assistant", "sequence": None}, "person", None),
        ("summarize what we planned", {"role": "assistant"}, "person", None),
        ("总结一下我们的计划", {"role": "assistant"}, "person", None),
    ],
)
def test_each_factor_says_what_it_is_for(
    question: str, candidate: dict[str, object], factor: str, larger: bool | None
) -> None:
    """A factor raises, lowers, or leaves the score; where it leaves it, the explanation does not name it."""
    one = candidate_at("one", 1.0, candidate.pop("sequence", 1), **candidate)  # type: ignore[arg-type]
    ranking = Ranking(Query(text=question), PRESETS["default"], NOW)
    points, reasons = ranking.ranked([RankCandidate(one)])[0].score, ranking.reasons(RankCandidate(one))
    assert (factor in reasons) == (larger is not None)
    if larger is not None:
        assert (points > 1.0) == larger


def test_every_preset_names_known_factors() -> None:
    """A preset weighs factors there are."""
    assert all(set(weights) <= set(FACTORS) for weights in PRESETS.values())


@pytest.mark.parametrize("engine", ["memory", "whoosh", "sqlite"])
def test_the_answer_after_a_matching_question_is_found(opened: Opened, engine: str) -> None:
    """What shares no word with the question is found beside what does, and says why."""
    workspace = opened(index__engine=engine)
    lines = ["Which violin strings hold longest?", "Probably gut, if the humidity is low", "Unrelated words"]
    for number, line in enumerate([*lines, "Filler one", "Filler two", "Filler three"]):
        origin = Origin(session="s", sequence=number, speaker="Ada")
        workspace.store.put(MemoryItem(line, "conversation", id=f"line-{number}", origin=origin))
    if engine != "memory":
        workspace.store.fold()
    hits = workspace.recaller.search("violin strings").hits
    assert [hit.item.id for hit in hits][:2] == ["line-0", "line-1"]
    assert hits[1].reasons["text"] == pytest.approx(hits[1].reasons["neighbours"] + hits[1].reasons["session"])
    filtered = workspace.recaller.search(Query(text="violin strings", until="2020-01-01"))
    assert filtered.hits == ()


def test_the_first_question_after_a_talk_came_is_answered_as_the_next_one(opened: Opened) -> None:
    """Files that are looked at with the first question may hold a talk: its items lend to each other at once (B1)."""
    writer, reader = opened(), opened()
    for number in range(12):
        talk = Origin(session="lesson", sequence=number)
        writer.store.put(MemoryItem("about violin strings" + " and bows" * number, id=f"line-{number}", origin=talk))
    first, second = (reader.recaller.search(Query(text="violin", limit=1)) for _ in range(2))
    assert [(hit.item.id, hit.score) for hit in first.hits] == [(hit.item.id, hit.score) for hit in second.hits]


def test_a_turn_counts_for_what_is_said_within_four_turns_of_it() -> None:
    """All of a question is said around one of two turns with the same word; what is out of a talk counts fully."""
    found = [
        candidate_at("both", 1.0, 4, held=frozenset({"violin"})),
        candidate_at("other", 1.0, 8, held=frozenset({"gut"})),
        candidate_at("alone", 1.0, 4, session="t", held=frozenset({"violin"})),
        candidate_at("far", 1.0, 40, session="t"),
        candidate_at("fact", 1.0, None, session=""),
    ]
    covered = {row.candidate.id: row.covered for row in with_coverage([RankCandidate(one) for one in found], WORDS)}
    assert covered["both"] == covered["other"] == covered["fact"] == 1.0
    assert covered["alone"] == pytest.approx(0.25 ** (1 / 3))
    assert covered["far"] == pytest.approx(0.05 ** (1 / 3))


def test_a_talk_with_an_assistant_is_covered_alike() -> None:
    """Its turns are long and say the question again: what is said around a turn means nothing."""
    found = [
        candidate_at("a", 1.0, 1, held=frozenset({"violin"})),
        candidate_at("b", 1.0, 9, role="assistant", held=frozenset({"gut"})),
    ]
    assert [row.covered for row in with_coverage([RankCandidate(one) for one in found], WORDS)] == [1.0, 1.0]


@pytest.mark.parametrize("engine", ["memory", "whoosh", "sqlite"])
def test_each_engine_reports_what_a_turn_has_of_a_question(opened: Opened, engine: str) -> None:
    """Of two turns with one word of the question, the one near which the other word is said comes first."""
    workspace = opened(index__engine=engine)
    for name, number, line in [("far", 1, "a violin"), ("near", 30, "a violin"), ("gut", 34, "strings of gut")]:
        origin = Origin(session="s", sequence=number, speaker="Ada")
        workspace.store.put(MemoryItem(line, "conversation", id=name, origin=origin))
    if engine != "memory":
        workspace.store.fold()
    hits = {hit.item.id: hit.reasons for hit in workspace.recaller.search("violin strings").hits}
    assert hits["far"]["covered"] < 1.0
    assert "covered" not in hits["near"]
