"""What reviewers say of the hits of an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from kit.patience import LONG, without_patience
from memfs import MemoryItem, Origin, Query, Workspace
from memfs.model import Hit
from memfs.model.time import utc_now
from memfs.recall.ranking import register_strategy, unregister_strategy
from memfs.recall.recaller import Helpers, Recaller
from memfs.recall.review import JUDGED, Relevance
from memfs.recall.reviewers import Score
from memfs.recall.text_signs import TextSigns, asked_for, asks_for_list

Opened = Callable[..., Workspace]


class Model:
    """Stands in for a model: likes what holds a word, in one call for all."""

    name = "model"

    def __init__(self, word: str = "") -> None:
        self.word = word
        self.calls: list[int] = []

    def score_relevance_all(self, items: Sequence[MemoryItem], query: str) -> Sequence[Score]:
        """1 for what holds the word, 0 for the rest; without a word it fails."""
        self.calls.append(len(items))
        if not self.word:
            raise RuntimeError("the service is down")
        return [Score(float(self.word in item.content)) for item in items]


class Stuck:
    """A reviewer that does not answer before it is let go."""

    name = "stuck"

    def __init__(self) -> None:
        self.go = threading.Event()

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        """Waits."""
        self.go.wait(LONG)
        return Score(1.0)


def hits(*contents: str) -> list[Hit]:
    """Hits of falling scores."""
    return [
        Hit(item=MemoryItem(text, id=f"a{number}"), score=10.0 - number, reasons={"text": 10.0 - number})
        for number, text in enumerate(contents)
    ]


def ids(found: Sequence[Hit]) -> list[str]:
    """Their ids in order."""
    return [hit.item.id for hit in found]


def test_phrases_are_pairs_of_significant_words() -> None:
    """What is said of anything, and what is in another order, makes no phrase; case and signs do not matter."""
    assert TextSigns.of("What did we say about the Sprint planning of May?", talk=False).phrases == (
        " sprint planning ",
    )
    assert not any(TextSigns.of(text, talk=False).phrases for text in ("deploy", "what is it", ""))


@pytest.mark.parametrize(
    ("question", "lacking", "most"),
    [
        ("sprint planning", set(), 1.2),
        ("sprint planning", {"plan"}, 1.0),
        ("sprint planning", {"monday"}, 1.2),
        ("sprint planning meeting", {"sprint"}, 1.2),
        ("war museum", {"war"}, 1.2),
        ("café museum", {"cafe"}, 1.2),
        ("when did the sprint planning end", {"sprint", "plan", "end"}, 1.3),
    ],
)
def test_what_lacks_a_word_has_no_phrase_with_it(question: str, lacking: set[str], most: float) -> None:
    """A text whose terms lack one of a word in every language has that word in no phrase, and need not be read for it;
    of a word that says nothing in some language (German "war") that is not known.
    """
    assert TextSigns.of(question, talk=False).most(frozenset(lacking)) == pytest.approx(most)


def test_a_phrase_lifts_a_hit(opened: Opened) -> None:
    """What holds the question's words side by side comes before what holds them apart, and the reason is reported; what
    only a better score than that would lift is not read.
    """
    workspace = opened()
    workspace.store.put(MemoryItem("planning of a sprint on Monday", id="apart"))
    workspace.store.put(MemoryItem("on Monday Sprint-planning is at nine", id="beside"))
    for number in range(20):
        workspace.store.put(MemoryItem(f"a sprint of {number} days is what somebody else did", id=f"other{number}"))
    plain = workspace.recaller.search(Query(text="planning sprint", limit=2)).hits
    assert [("phrase" in hit.reasons) for hit in plain] == [False, False]
    assert ids(plain) == ["apart", "beside"]
    first, second = workspace.recaller.search(Query(text="sprint planning", limit=2)).hits
    assert (first.item.id, first.reasons["phrase"]) == ("beside", 1.2)
    assert (second.item.id, "phrase" in second.reasons) == ("apart", False)


@pytest.mark.parametrize(
    ("question", "content", "expected"),
    [
        ("When did Ada move?", "Ada moved last week", {"dated": 1.3}),
        ("what year was the server moved", "the server of 2023", {"dated": 1.3}),
        ("how long does it take", "it takes two weeks", {"dated": 1.3}),
        ("When did Ada move?", "Ada may move", {}),
        ("Where did Ada move?", "Ada moved last week", {}),
        ("Which editor would you suggest?", "Ada prefers vim", {"preference": 1.3}),
        ("Which editor is it?", "Ada prefers vim", {}),
        ("when " * 41, "last week", {}),
        ("What do we never use?", "we do not use Redis", {"denied": 1.2}),
        ("What do we never use?", "we use Redis", {}),
        ("What do we never use?", "never on a Sunday, as all of the others know who use it", {}),
        ("What do we use?", "we do not use Redis", {}),
        ("Was benutzen wir nie?", "Redis benutzen wir nicht", {"denied": 1.2}),
        ("Was war im Mai?", "im Mai war nicht viel", {}),
        ("为什么不用Redis", "缓存不使用Redis", {"denied": 1.2}),
        ("为什么不用Redis", "缓存使用Redis", {}),
        ("要不要用Redis", "缓存不使用Redis", {}),
        ("デプロイしない曜日は", "デプロイは金曜日に行わない", {"denied": 1.2}),
        ("デプロイする曜日は", "デプロイは金曜日に行わない", {}),
        ("Ann: hello\nAssistant: yes?", "Ann plays the violin", {"named": 2.0}),
        ("Ann: hello\nAssistant: yes?", "Annual report", {}),
        ("Ann: hello", "Ann plays the violin", {}),
    ],
)
def test_what_a_question_asks_for_is_looked_for_in_texts(
    question: str, content: str, expected: dict[str, float]
) -> None:
    """Where a time answers, a text that says one counts more; where advice is asked for, one that says a preference;
    where a question denies, one that denies near a word of it; where it is a talk, one that names who speaks in it.
    """
    assert TextSigns.of(question, talk=False).factors(MemoryItem(content)) == expected


@pytest.mark.parametrize(
    ("content", "origin", "expected"),
    [
        ("I moved to Leeds", Origin(sequence=3), {"in_person": 1.1}),
        ("I moved to Leeds", Origin(sequence=3, speaker="Ada Byron"), {"in_person": 1.25}),
        ("I moved to Leeds", Origin(sequence=3, speaker="Grace"), {"in_person": 1.1}),
        ("You moved to Leeds", Origin(sequence=3), {}),
        ("I moved to Leeds", Origin(), {}),
        ("I moved it to Leeds", Origin(sequence=3, role="assistant"), {}),
    ],
)
def test_what_a_person_says_of_themselves_counts(content: str, origin: Origin, expected: dict[str, float]) -> None:
    """In a talk a person who says "I" or "my" speaks of themselves, which is what others ask for later; most where the
    question names that person.
    """
    item = MemoryItem(content, origin=origin)
    assert TextSigns.of("where does Ada live", talk=True).factors(item) == expected
    assert TextSigns.of("where does Ada live", talk=False).factors(item) == {}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many servers do we have?", True),
        ("Wie viele Server haben wir?", True),
        ("¿Cuántas veces falló?", True),
        ("我们有哪些服务器?", True),
        ("Which server is it?", False),
        ("Was ist der Plan?", False),
    ],
)
def test_a_list_is_asked_for_in_the_language_of_the_question(question: str, expected: bool) -> None:
    """Counts and lists are asked for by other words in each language."""
    assert asks_for_list(question) == expected


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which sports does Ada like besides chess?", "Which sports does Ada like  ?"),
        ("Which games other than chess does Ada play?", "Which games  does Ada play?"),
        ("Which cache do we use, not Redis?", "Which cache do we use ?"),
        ("besides chess", "besides chess"),
        ("how to live without pain", "how to live without pain"),
    ],
)
def test_what_a_question_leaves_out_is_not_looked_for(question: str, asked: str) -> None:
    """*Besides*, *other than*, *except* and *, not* take what follows out of the words that are searched."""
    assert asked_for(question) == asked


def test_a_list_is_spread_over_sessions(opened: Opened) -> None:
    """For a count or a list a further hit of a session counts a little less, which is named; for others it does not."""
    workspace = opened()
    for number, session in enumerate(["one", "one", "two"]):
        origin = Origin(session=session, sequence=number * 10, speaker="Ada")
        text = f"{'pet' if session == 'one' else 'a pet'}: the {('cat', 'dog', 'owl')[number]}"
        workspace.store.put(MemoryItem(text, "conversation", id=f"{session}-{number}", origin=origin))
    listed = workspace.recaller.search("how many pets are there").hits
    assert "spread" not in listed[0].reasons
    (second,) = (hit for hit in listed[1:] if hit.item.origin.session == listed[0].item.origin.session)
    assert second.reasons["spread"] <= 0.98
    assert all("spread" not in hit.reasons for hit in workspace.recaller.search("where are the pets").hits)


def test_a_memory_with_a_time_comes_first_where_one_is_asked_for(opened: Opened) -> None:
    """The hit that says when it was comes before one that does not, and the reason is reported."""
    workspace = opened()
    workspace.store.put(MemoryItem("the parser was moved to a module", id="plain"))
    workspace.store.put(MemoryItem("the parser was moved last week, and is a module of its own now", id="dated"))
    assert ids(list(workspace.recaller.search("where was the parser moved").hits)) == ["plain", "dated"]
    found = workspace.recaller.search("when was the parser moved").hits
    assert ids(list(found)) == ["dated", "plain"]
    assert found[0].reasons["dated"] == 1.3
    assert "dated" not in found[1].reasons


def test_phrases_leave_a_custom_order(opened: Opened) -> None:
    """A strategy that orders otherwise than by score keeps its order."""
    workspace = opened()
    workspace.store.put(MemoryItem("the sprint planning", id="best"))
    workspace.store.put(MemoryItem("a sprint, and planning in some other place of the text", id="other"))
    register_strategy("upside_down", lambda query, ranked: list(reversed(ranked)))
    try:
        found = workspace.recaller.search(Query(text="sprint planning", strategy="upside_down")).hits
    finally:
        unregister_strategy("upside_down")
    assert ids(found) == ["other", "best"]
    assert found[1].reasons["phrase"] == 1.2


def test_the_built_in_reviewers_move_a_little(opened: Opened) -> None:
    """The two raise what holds more of a question by at most 5 %, and the factor is reported (C4)."""
    workspace = opened()
    for name, text in (("whole", "green tea in the morning"), ("half", "tea with milk")):
        workspace.store.put(MemoryItem(text, id=name))
    found = {hit.item.id: hit for hit in workspace.recaller.search("green tea").hits}
    assert {name: hit.reasons["reviewers"] for name, hit in found.items()} == {"whole": 1.05, "half": 1.0125}
    assert found["half"].score == found["half"].reasons["text"] * 1.0125


def test_a_model_moves_hits_in_one_call() -> None:
    """What a model finds relevant comes up; it is asked once for all of them (C3, C4)."""
    model = Model("tea")
    judged = Relevance([model], LONG).judged(hits("coffee", "milk", "green tea"), "what do I drink?")
    assert ids(judged.hits) == ["a2", "a0", "a1"]
    assert model.calls == [3]
    assert judged.hits[0].reasons == {"text": 8.0, "model": 3.0}


def test_a_custom_order_stays() -> None:
    """Where a strategy put hits in another order than that of their scores, reviewers only add to the scores (C5)."""
    found = hits("green tea", "green tea in the morning", "coffee")[::-1]
    judged = Relevance([Model("tea")], LONG).judged(found, "green tea")
    assert ids(judged.hits) == ["a2", "a1", "a0"]
    assert judged.hits[-1].reasons["model"] > 1


def test_a_reviewer_without_an_answer_is_left_out_and_named() -> None:
    """A reviewer that fails leaves hits and order as they are, and is named (C3)."""
    found = hits("coffee", "green tea")
    judged = Relevance([Model()], LONG).judged(found, "tea")
    assert judged.hits == found
    assert "the service is down" in judged.absent["model"]


def test_a_late_reviewer_does_not_hold_up_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reviewer that is not done in time is named, and the scores of the others count (C3)."""
    stuck, model = Stuck(), Model("tea")
    without_patience(monkeypatch, "stuck")
    judged = Relevance([stuck, model], 30).judged(hits("coffee", "green tea"), "tea", seconds=0.2)
    stuck.go.set()
    assert ids(judged.hits) == ["a1", "a0"]
    assert list(judged.absent) == ["stuck"]


def test_reviewers_see_the_best_only() -> None:
    """However long the answer, a bounded number of hits is judged, and none is lost (C4)."""
    model = Model("number 29")
    found = hits(*(f"number {number}" for number in range(JUDGED + 10)))
    judged = Relevance([model], LONG).judged(found, "number")
    assert model.calls == [JUDGED]
    assert ids(judged.hits)[0] == "a0"  # 10 x 1 beats -19 x 3
    assert sorted(ids(judged.hits)) == sorted(ids(found))


@pytest.mark.parametrize("text", ["", "apple"])
def test_recall_asks_the_reviewers_it_is_given(opened: Opened, text: str) -> None:
    """A model reorders before the limit cuts; where nothing was asked nobody is asked (C4)."""
    workspace = opened()
    for number in range(6):
        workspace.store.put(MemoryItem(f"apple apple number {number}", id=f"a{number}", timestamp=utc_now()))
    road, before = "a long and winding road to the only pear beside an apple", utc_now() - timedelta(days=1)
    workspace.store.put(MemoryItem(road, id="pear", timestamp=before))
    model = Model("pear")
    relevance = Relevance([model], LONG)
    recall = Recaller(
        workspace.store, "default", utc_now, workspace.kinds, helpers=Helpers(relevance=lambda: relevance)
    )
    answer = recall.search(Query(text=text, limit=3))
    assert model.calls == ([7] if text else [])
    assert ("pear" in ids(answer.hits)[:1]) == bool(text)
    broken: Any = Relevance([Model()], LONG)
    recall = Recaller(workspace.store, "default", utc_now, workspace.kinds, helpers=Helpers(relevance=lambda: broken))
    assert list(recall.search(Query(text=text, limit=3)).absent) == (["model"] if text else [])


def test_one_that_hangs_takes_no_thread_for_each_hurried_question() -> None:
    """Questions with a deadline of their own do not gather threads over a reviewer that never answers (C4)."""
    stuck = Stuck()
    relevance = Relevance([stuck], 2.0)
    try:
        before = threading.active_count()
        absent = [relevance.judged(hits("one"), "what", 0.001).absent["stuck"] for _ in range(20)]
        assert threading.active_count() - before < 10
        assert "no answer within 0.001 s" in absent[0]
        assert "busy" in absent[-1]
    finally:
        stuck.go.set()
