"""The factors of the ranking: what each says of a match (M1, C4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import log1p
from typing import Any

import pytest

from memfs.model import Candidate, KindTable, Query
from memfs.model.time import micros
from memfs.recall.ranking import FACTORS, PRESETS, RankCandidate, Ranking, Shares
from memfs.usage import Use

NOW = datetime(2026, 3, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def match(use: Use | None = None, **fields: Any) -> RankCandidate:
    """A match that nothing is known of but these fields."""
    known: dict[str, Any] = {"id": "a", "path": "p", "similarity": 1.0, "type": "semantic"}
    known["time"] = micros(fields.pop("timestamp", NOW))
    return RankCandidate(Candidate(**known | fields), use=use or Use())


def value(factor: str, one: RankCandidate, query: Query | None = None) -> float:
    """What one factor says."""
    ranking = Ranking(query or Query(text="apple"), {factor: 1.0}, NOW, KindTable())
    return ranking.ranked([one], {one.candidate.id: one.use})[0].score


@pytest.mark.parametrize(("uses", "expected"), [(0, 1.0), (1, 1 + log1p(1) / 10), (100, 1 + log1p(100) / 10)])
def test_access_counts_a_little_and_never_nothing(uses: int, expected: float) -> None:
    """The access factor is 1 + ln(1 + n) / 10: a new memory is not worth nothing (M1)."""
    assert value("access", match(Use(uses, NOW))) == pytest.approx(expected)


@pytest.mark.parametrize(("hours", "expected"), [(0, 1.0), (42, 0.75), (84, 0.5), (10_000, 0.5), (-5, 1.0)])
def test_recency_of_the_week_ends_at_a_half(hours: int, expected: float) -> None:
    """Recency is max(0.5, 1 - hours / 168) (M1)."""
    assert value("week", match(timestamp=NOW - hours * HOUR)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("held", "asked", "expected"),
    [
        ({"project": "shop"}, {"project": "shop"}, 1.5),
        ({"project": "shop"}, {"project": " Shop "}, 1.5),
        ({"project": "shop", "user": "ada"}, {"project": "till", "user": "ada"}, 1.5),
        ({"project": "shop"}, {"project": "till"}, 1.0),
        ({"project": "shop"}, {"user": "shop"}, 1.0),
        ({"stage": 1}, {"stage": True}, 1.0),
        ({"tags": ["a"]}, {"tags": ["a"]}, 1.5),
        ({}, {"project": "shop"}, 1.0),
        ({"project": "shop"}, {}, 1.0),
    ],
)
def test_a_shared_circumstance_counts_half_more(held: Any, asked: Any, expected: float) -> None:
    """An item that shares a key with its value is worth x 1.5, however many it shares (M1)."""
    assert value("context", match(context=held), Query(text="apple", context=asked)) == expected


def test_a_pattern_counts_more() -> None:
    """Patterns are worth x 1.3 (M1)."""
    assert (value("pattern", match(type="pattern")), value("pattern", match())) == (1.3, 1.0)


@pytest.mark.parametrize(
    ("kind", "days", "used", "pinned", "expected"),
    [
        ("interaction", 0, None, False, 1.0),
        ("interaction", 3.5, None, False, 0.5**0.5),
        ("interaction", 700, None, False, 0.5),
        ("interaction", 700, 0, False, 1.0),
        ("interaction", 700, None, True, 1.0),
        ("knowledge", 700, None, False, 1.0),
        ("a type of somebody's", 700, None, False, 1.0),
    ],
)
def test_what_is_not_used_fades_as_its_kind_does(
    kind: str, days: float, used: int | None, pinned: bool, expected: float
) -> None:
    """An unused item halves with each half-life of its kind, not below a half; use and a pin keep it fresh (M3)."""
    use = Use() if used is None else Use(1, NOW - timedelta(days=used))
    assert value("fading", match(use, type=kind, timestamp=NOW - timedelta(days=days), pinned=pinned)) == pytest.approx(
        expected
    )


def test_reasons_name_every_factor_that_matters_as_it_counted() -> None:
    """Each hit says which factors are not 1, with the weight applied (C4)."""
    query = Query(text="apple", context={"project": "shop"})
    ranking = Ranking(query, {**PRESETS["learning"], "context": 2.0}, NOW)
    one = ranking.ranked([match(type="pattern", context={"project": "shop"})], {"a": Use(3, NOW)})[0].match
    reasons = ranking.reasons(one)
    assert reasons == pytest.approx({"text": 1.0, "context": 2.25, "access": 1 + log1p(3) / 10, "pattern": 1.3})
    product = 1.0
    for factor in reasons.values():
        product *= factor
    assert ranking.ranked([one], {"a": Use(3, NOW)})[0].score == pytest.approx(product)


def test_no_share_takes_a_score_below_nothing() -> None:
    """An embedder that puts an item far away takes its score to nothing, whatever the weight, not below."""
    far = RankCandidate(match().candidate, Shares(meaning=-5.0))
    for weight in (1.0, 0.5):
        assert 0 < Ranking(Query(text="apple"), {"text": weight}, NOW).ranked([far])[0].score < 1e-3


def test_only_presets_that_need_uses_ask_for_them() -> None:
    """A preset without factors of use spares the look at the counts."""
    assert Ranking(Query(), PRESETS["learning"], NOW).counts_use
    assert not Ranking(Query(), {"text": 1.0}, NOW).counts_use


def test_ties_are_broken_by_id_and_an_empty_question_keeps_the_order() -> None:
    """Equal scores are ordered by id; where nothing was asked, the newest come first as they came (C4)."""
    both = [match(id="b"), match(id="a")]
    assert [one.match.candidate.id for one in Ranking(Query(text="x"), {"text": 1.0}, NOW).ranked(both)] == ["a", "b"]
    assert [one.match.candidate.id for one in Ranking(Query(), {"text": 1.0}, NOW).ranked(both)] == ["b", "a"]


def test_presets_weigh_known_factors() -> None:
    """Every preset is made of factors that exist."""
    assert {factor for weights in PRESETS.values() for factor in weights} <= FACTORS.keys()


@pytest.mark.parametrize(
    ("question", "day", "expected"),
    [
        ("what did she see on 10.01.2024", "2024-01-10", 2.0),
        ("what did she see on 10.01.2024", "2024-01-11", 1.9),
        ("what did she see on 10.01.2024", "2024-01-15", 1.4),
        ("what did she see on 10.01.2024", "2024-01-18", 1.0),
        ("what did she see on 2024-01-10", "2024-01-10", 2.0),
        ("what did she see on 1/25/2024", "2024-01-25", 2.0),
        ("what did she see on 25/1/2024", "2024-01-25", 2.0),
        ("what did she see on May 3, 2023", "2023-05-03", 2.0),
        ("what did she see on 3 May 2023", "2024-05-03", 1.0),
        ("what did she see on the 3rd of May", "2024-05-03", 2.0),
        ("what did she see before May 3", "2024-05-01", 1.4),
        ("what did she see before May 3", "2024-05-04", 1.0),
        ("what did she see after May 3", "2024-05-20", 1.4),
        ("what did she see before January 3", "2024-12-28", 1.4),
        ("what did she see on December 30", "2025-01-04", 1.4),
        ("what did she see in May 2023", "2023-05-20", 1.4),
        ("what did she see in May 2023", "2023-06-20", 1.0),
        ("may she march in 2023", "2023-06-20", 1.4),
        ("what did she see in the summer of 2023", "2023-07-20", 1.4),
        ("the hot spring in the garden", "2023-04-20", 1.0),
        ("what did she see last spring", "2025-04-20", 1.4),
        ("what did she see last winter", "2026-01-20", 1.4),
        ("what did she see last month", "2026-02-20", 1.4),
        ("what did she see last year", "2025-11-20", 1.4),
        ("what did she see last week", "2026-03-01", 1.4),
        ("what did she see last week", "2026-02-20", 1.0),
        ("what did she see yesterday", "2026-03-09", 2.0),
        ("what did she see last Friday", "2026-03-06", 1.4),
        ("what did she see two weeks ago", "2026-02-24", 1.4),
        ("what did she see two weeks ago", "2026-03-09", 1.0),
        ("what did she see in the past 3 months", "2026-01-09", 1.4),
        ("what did she see on 31.02.2024 and on 30 February", "2026-03-09", 1.0),
        ("9999 years ago, or on 0000-01-01", "2026-03-09", 1.0),
        ("version 3.11.7", "2026-03-09", 1.0),
        ("last spring " + "we went there " * 13, "2025-04-20", 1.0),
        ("in April " + "we went there " * 13, "2025-04-20", 1.4),
    ],
)
def test_a_time_that_is_named_counts(question: str, day: str, expected: float) -> None:
    """A memory of the day that a question names is worth twice as much, one of its week, month, season or year 1.4."""
    moment = datetime.fromisoformat(day).replace(hour=18, tzinfo=UTC)
    assert value("when", match(timestamp=moment), Query(text=question)) == expected
