"""The built-in reviewers: what they keep, what they refuse, and how one is found by name."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfs.errors import SettingInvalid
from memfs.model import MemoryItem
from memfs.recall import reviewers
from memfs.recall.review import Review
from memfs.recall.reviewers import (
    STORAGE_REVIEWERS,
    Analyzer,
    PatternsReviewer,
    RelevanceReviewer,
    Reviewer,
    Score,
    register_reviewer,
    reviewers_named,
    reviewers_of,
    traits,
)
from memfs.settings import ReviewSettings

DRAFTS = Path(__file__).parents[1] / "intake/drafts"
THRESHOLD = 6.0


@pytest.fixture(autouse=True)
def own_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten with it."""
    monkeypatch.setattr(reviewers, "_registered", {})


def scores(name: str) -> Iterator[tuple[str, float]]:
    """Each text of a corpus with the mean score the three give it."""
    judges = reviewers_named(STORAGE_REVIEWERS)
    for line in (DRAFTS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        kind, _, text = line.partition(" | ")
        item = MemoryItem(text, kind)
        yield text, sum(judge.score_storage(item).value for judge in judges) / len(judges)


@pytest.mark.parametrize("text", ["Use tabs", "Don't use tabs", "Never use tabs", "Don\u2019t deploy on Fridays"])
def test_a_short_order_is_kept_whether_it_bids_or_forbids(text: str) -> None:
    """What forbids is as much an order as what bids, and so can contradict it."""
    given = [judge.score_storage(MemoryItem(text)).value for judge in reviewers_named(STORAGE_REVIEWERS)]
    assert sum(given) / len(given) >= THRESHOLD


def test_what_makes_no_reviewer_is_refused_at_once() -> None:
    """A reviewer that cannot be made is an error where it is registered, not where it is asked for."""
    with pytest.raises(SettingInvalid, match="makes no reviewer"):
        register_reviewer("security", 3)  # type: ignore[arg-type]


def test_most_of_what_is_worth_it_is_kept_and_most_of_what_is_not_refused() -> None:
    """Of 133 realistic memories at most 3 are refused, of 60 remarks that say nothing at most 3 are kept (C3)."""
    assert len([text for text, score in scores("keep") if score < THRESHOLD]) <= 3
    assert len([text for text, score in scores("drop") if score >= THRESHOLD]) <= 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Decided to use PostgreSQL for transactions", "episodic"),
        ("Implemented JWT authentication with RS256", "procedural"),
        ("Use tabs", "preference"),
    ],
)
def test_the_seeds_examples_are_kept(text: str, kind: str) -> None:
    """The drafts of seed 003's tests reach 6.0 with each of the three reviewers asked (C3)."""
    verdict = Review(reviewers_named(STORAGE_REVIEWERS)).storage(MemoryItem(text, kind))
    assert list(verdict.agent_scores) == ["analyzer", "patterns", "knowledge-archaeologist"]
    assert verdict.consensus_score >= THRESHOLD
    assert verdict.consensus_score == pytest.approx(sum(verdict.agent_scores.values()) / 3)
    assert all(verdict.reasons.values())


def test_a_reason_adds_up_to_the_score() -> None:
    """Each score is 5 and the points its reason names, within 0 and 10."""
    score = PatternsReviewer().score_storage(MemoryItem("Always run make test before pushing", "procedural"))
    points = [float(part.rpartition("(")[2].rstrip(")")) for part in score.reason.split("; ")]
    assert score.value == 5 + sum(points)


def test_scores_stay_on_the_scale() -> None:
    """Nothing scores below 0 or above 10."""
    decided = "We decided to use X1, X2 and X3 because Y failed on 2026-01-02"
    texts = ["?", "x", "maybe something?", "Decided " * 300, decided]
    for judge in reviewers_named(STORAGE_REVIEWERS):
        assert all(0 <= judge.score_storage(MemoryItem(text)).value <= 10 for text in texts)


def test_the_title_counts_with_the_text() -> None:
    """A draft is judged by its title too."""
    bare = Analyzer().score_storage(MemoryItem("It is done."))
    titled = Analyzer().score_storage(MemoryItem("It is done.", title="Migration of invoices to PostgreSQL 16"))
    assert titled.value > bare.value


def test_relevance_follows_the_question() -> None:
    """What holds the question's words is more relevant than what does not, to both relevance reviewers (C4)."""
    hit = MemoryItem("Implemented JWT authentication with RS256", tags=("security",))
    miss = MemoryItem("The cat sleeps on the sofa")
    for judge in (Analyzer(), PatternsReviewer()):
        assert isinstance(judge, RelevanceReviewer)
        found = judge.score_relevance(hit, "JWT authentication").value
        assert 0 <= judge.score_relevance(miss, "JWT authentication").value < found <= 1
        assert judge.score_relevance(hit, "").value == 0


class Security:
    """Seed 003's example of a reviewer of one's own."""

    name = "security"

    def score_storage(self, item: MemoryItem) -> Score:
        keywords = ("auth", "password", "token", "encryption", "vulnerability")
        matched = any(word in item.content.lower() for word in keywords)
        return Score(5.0 + 3.0 * matched, "security relevance by keywords")


def test_the_seeds_security_reviewer_joins_by_registration() -> None:
    """A fourth reviewer scores 5.0, and 3.0 more on its keywords, and counts in the mean (C5)."""
    register_reviewer("security", Security)
    review = Review(reviewers_named([*STORAGE_REVIEWERS, "security"]))
    result = review.storage(MemoryItem("Rotated the token of the deploy user"))
    other = review.storage(MemoryItem("Renamed the deploy user"))
    assert (result.agent_scores["security"], other.agent_scores["security"]) == (8.0, 5.0)
    assert result.consensus_score == pytest.approx(sum(result.agent_scores.values()) / 4)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """A misspelt reviewer is reported."""
    with pytest.raises(SettingInvalid, match="no reviewer 'analyser'") as caught:
        reviewers_named(["analyser"])
    assert caught.value.hint == "did you mean 'analyzer'?"
    assert caught.value.field == "review.reviewers"


@pytest.mark.parametrize("name", ["analyzer", "", "a,b", " x"])
def test_a_name_that_cannot_be_registered_is_refused(name: str) -> None:
    """Built-in names stay, and a name fits into a list of names."""
    with pytest.raises(SettingInvalid):
        register_reviewer(name, Security)


def test_a_reviewer_is_imported_by_module_and_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``module:Class`` names a reviewer of one's own without registration."""
    (tmp_path / "own_reviewer_of_test.py").write_text(
        "class Own:\n    name = 'own'\n    def score_storage(self, item):\n        return 7, 'because'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_reviewer_of_test", raising=False)
    (own,) = reviewers_named(["own_reviewer_of_test:Own"])
    assert isinstance(own, Reviewer)
    verdict = Review([own]).storage(MemoryItem("x"))
    assert (verdict.agent_scores, verdict.reasons) == ({"own": 7.0}, {"own": "because"})


@pytest.mark.parametrize("name", ["no_such_module:X", "json:NoSuchThing", "json:__name__", "json:dumps.x.y", ":x"])
def test_what_cannot_be_imported_says_so(name: str) -> None:
    """A wrong module, attribute or value is reported as the setting's fault."""
    with pytest.raises(SettingInvalid) as caught:
        reviewers_named([name])
    assert caught.value.field == "review.reviewers"


def test_what_is_not_a_reviewer_is_refused() -> None:
    """A maker that gives something else is reported."""
    register_reviewer("odd", object)  # type: ignore[arg-type]
    with pytest.raises(SettingInvalid, match="not a reviewer"):
        reviewers_named(["odd"])


def test_nobody_reviewing_is_refused() -> None:
    """An empty list of reviewers without a model is a mistake, not a way to store everything."""
    with pytest.raises(SettingInvalid, match="nobody reviews"):
        reviewers_of(ReviewSettings(reviewers=()))


def test_an_endpoint_adds_its_model() -> None:
    """One setting adds a language model to the reviewers (C3)."""
    found = reviewers_of(ReviewSettings(endpoint="http://127.0.0.1:9/v1", model="small"))
    assert [one.name for one in found] == [*STORAGE_REVIEWERS, "model:small"]


@pytest.mark.parametrize("sign", ["!", "\n"])
def test_no_draft_takes_long_to_look_at(sign: str) -> None:
    """A draft full of signs or empty lines is judged as quickly as any other (C3)."""
    began = time.process_time()
    for number in range(40):
        traits(f"a {number} {sign * 4_900}x")
    assert time.process_time() - began < 5
