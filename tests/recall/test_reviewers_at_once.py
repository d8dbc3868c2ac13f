"""Review: several reviewers at once, within a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from kit.patience import LONG, until, without_patience
from memfs.errors import SettingInvalid
from memfs.model import MemoryItem
from memfs.recall.review import Review
from memfs.recall.reviewers import Analyzer, Score

ITEM = MemoryItem("A text to judge")


class Judge:
    """A reviewer that behaves as the test says."""

    def __init__(self, name: str, say: Callable[[], object]) -> None:
        self.name = name
        self._say = say

    def score_storage(self, item: MemoryItem) -> Score:
        assert item is ITEM
        return self._say()  # type: ignore[return-value]  # some of these tests answer wrongly on purpose

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        assert query == "q"
        return self._say()  # type: ignore[return-value]


class Model:
    """A reviewer that judges all items in one go."""

    name = "model"

    def __init__(self, scores: object) -> None:
        self.scores = scores

    def score_relevance_all(self, items: Sequence[MemoryItem], query: str) -> Sequence[Score]:
        assert query == "q"
        assert items
        return self.scores  # type: ignore[return-value]


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Something to wait for that comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def raising(error: BaseException) -> Callable[[], object]:
    """What raises this."""

    def say() -> object:
        raise error

    return say


def test_the_consensus_is_the_mean_of_those_that_answered() -> None:
    """Scores and reasons are kept by name, in order (C3)."""
    verdict = Review([Judge("b", lambda: Score(8, "good")), Judge("a", lambda: Score(5, "meh"))]).storage(ITEM)
    assert verdict.consensus_score == 6.5
    assert list(verdict.agent_scores.items()) == [("b", 8.0), ("a", 5.0)]
    assert verdict.reasons == {"b": "good", "a": "meh"}
    assert verdict.absent == {}


def test_they_are_asked_at_once() -> None:
    """Each waits for the other, so that one after another would never end (C3)."""
    both = threading.Barrier(2, timeout=LONG)

    def say() -> Score:
        both.wait()
        return Score(6)

    assert Review([Judge("a", say), Judge("b", say)], seconds=LONG).storage(ITEM).agent_scores == {"a": 6.0, "b": 6.0}


def test_one_that_fails_is_left_out_and_named() -> None:
    """A reviewer's error breaks nothing and is reported (C3)."""
    verdict = Review([Judge("a", lambda: Score(7)), Judge("b", raising(RuntimeError("no\nnetwork")))]).storage(ITEM)
    assert (verdict.consensus_score, verdict.agent_scores) == (7.0, {"a": 7.0})
    assert verdict.absent == {"b": "RuntimeError: no network"}


def test_one_that_is_late_is_left_out_and_named(never: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes within the limit, without the late one (C3)."""
    without_patience(monkeypatch, "slow")
    verdict = Review([Judge("slow", never.wait), Judge("a", lambda: Score(7))], seconds=0.1).storage(ITEM)
    assert verdict.agent_scores == {"a": 7.0}
    assert verdict.absent == {"slow": "it gave no answer within 0.1 s"}


def test_one_that_hangs_is_not_asked_forever(never: threading.Event) -> None:
    """After a question without an answer no more threads wait for it."""
    review = Review([Judge("stuck", never.wait)], seconds=0.001)
    before = threading.active_count()
    assert "no answer within" in review.storage(ITEM).absent["stuck"]
    assert review.storage(ITEM).absent == {"stuck": "it is still busy with earlier questions"}
    assert threading.active_count() <= before + 1


def test_one_that_answers_late_is_asked_again(never: threading.Event) -> None:
    """A slow one gets its next chance when it is done."""
    review = Review([Judge("slow", lambda: never.wait() and Score(9))], seconds=0.5)
    assert review.storage(ITEM).agent_scores == {}
    never.set()
    assert until(lambda: review.storage(ITEM).agent_scores == {"slow": 9.0})


@pytest.mark.parametrize(
    ("answer", "score", "reason"),
    [
        (Score(10, " a  reason\n"), 10.0, ""),
        ((3, "why"), 3.0, ""),
        (4, 4.0, ""),
        (Score(10.5), None, "its score 10.5 is not from 0 to 10"),
        (-1, None, "its score -1 is not from 0 to 10"),
        (float("nan"), None, "its answer is not a score: nan"),
        (True, None, "its answer is not a score: True"),
        (None, None, "its answer is not a score: None"),
        ("9", None, "its answer is not a score: '9'"),
    ],
)
def test_what_counts_as_a_score(answer: object, score: float | None, reason: str) -> None:
    """A number on the scale counts, with or without a reason; anything else leaves its reviewer out."""
    verdict = Review([Judge("a", lambda: answer)]).storage(ITEM)
    assert verdict.agent_scores == ({} if score is None else {"a": score})
    assert verdict.absent == ({"a": reason} if reason else {})
    assert verdict.consensus_score == (score or 0.0)


def test_relevance_is_the_mean_of_all_that_judge_it() -> None:
    """One asked item by item and one asked once for all count alike (C4)."""
    review = Review([Judge("a", lambda: Score(0.5)), Model([Score(1), Score(0)])])
    result = review.relevance_result([ITEM, ITEM], "q")
    assert result.scores == (0.75, 0.25)
    assert result.by_reviewer == {"a": (0.5, 0.5), "model": (1.0, 0.0)}


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([Score(1)], "it did not give one score for each of 2 memories"),
        (None, "it did not give one score for each of 2 memories"),
        ([Score(1), Score(2)], "its score 2 is not from 0 to 1"),
    ],
)
def test_a_model_that_answers_wrongly_is_left_out(scores: object, reason: str) -> None:
    """Too few scores, none, or one off the scale: the others' scores count, and it is named."""
    result = Review([Model(scores), Judge("a", lambda: Score(0.5))]).relevance_result([ITEM, ITEM], "q")
    assert (result.scores, result.absent) == ((0.5, 0.5), {"model": reason})


def test_nobody_to_ask_gives_zero() -> None:
    """Without an answer every item has 0, one score each."""
    assert Review([]).relevance_result([ITEM, ITEM], "q").scores == (0.0, 0.0)
    assert Review([Judge("a", lambda: Score(1))]).relevance_result([], "q").scores == ()


def test_two_of_one_name_are_refused() -> None:
    """A name stands for one reviewer."""
    with pytest.raises(SettingInvalid, match="two reviewers are called 'a'"):
        Review([Judge("a", lambda: Score(1)), Judge("a", lambda: Score(2))])


def test_the_built_in_ones_take_no_thread() -> None:
    """Reviewers that work by rules answer where they are asked, beside others that have a thread each (C3)."""
    asked: dict[str, threading.Thread] = {}

    class Own:
        name = "own"

        def score_storage(self, item: MemoryItem) -> Score:
            asked["own"] = threading.current_thread()
            return Score(5.0)

    class Slow(Analyzer):
        name = "slow"

        def score_storage(self, item: MemoryItem) -> Score:
            asked["slow"] = threading.current_thread()
            return super().score_storage(item)

    started = threading.active_count()
    assert set(Review([Analyzer()]).storage(MemoryItem("Use tabs")).agent_scores) == {"analyzer"}
    assert threading.active_count() <= started
    result = Review([Own(), Analyzer(), Slow()]).storage(MemoryItem("Use tabs"))
    assert list(result.agent_scores) == ["own", "analyzer", "slow"]
    assert threading.current_thread() not in asked.values()


class Reader:
    """A reviewer that reads drafts as the test says."""

    def __init__(self, name: str, read: Callable[[MemoryItem], object]) -> None:
        self.name = name
        self._read = read

    def extract(self, item: MemoryItem) -> MemoryItem:
        return self._read(item)  # type: ignore[return-value]  # some of these tests answer wrongly on purpose


def test_readers_work_one_after_the_other_and_change_neither_id_nor_trust() -> None:
    """Each reads what the one before made of the draft; id, type and trust stay the caller's (D7)."""
    draft = MemoryItem("A text to read", "episodic", id="one", trust="agent")
    readers = [
        Reader("a", lambda item: item.replace(title="Read by a", trust="user", memory_type="rule")),
        Reader("b", lambda item: item.replace(title=item.title + " and b", id="two")),
    ]
    read, absent = Review(readers).extraction(draft)
    assert (read.title, read.id, read.type, read.trust) == ("Read by a and b", "one", "episodic", "agent")
    assert absent == {}


def test_a_reader_that_fails_or_is_late_is_left_out_and_named(never: threading.Event) -> None:
    """One that raises, hangs, or gives something else leaves the draft as it was, and the report says why (D7)."""
    readers = [
        Reader("raises", lambda _: raising(ValueError("no idea"))()),
        Reader("odd", lambda _: "text"),
        Reader("hangs", lambda _: never.wait(LONG)),
        Reader("late", lambda item: item.replace(title="too late")),
    ]
    read, absent = Review(readers, seconds=0.2).extraction(ITEM)
    assert read.content == ITEM.content
    assert set(absent) >= {"raises", "odd", "hangs"}
    assert "no idea" in absent["raises"]
    assert "not a memory" in absent["odd"]
    assert "no answer within" in absent["hangs"]
