"""From a question to hits: what is refused, and what an answer says of itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kit.patience import LONG
from memfs import MemoryItem, Query, QueryInvalid, Workspace
from memfs.model.time import utc_now
from memfs.recall.ranking import register_strategy, unregister_strategy
from memfs.recall.recaller import Recaller

Opened = Callable[..., Workspace]


@pytest.fixture
def recall(opened: Opened) -> Recaller:
    """Asks a workspace with three items."""
    workspace = opened()
    for number in range(3):
        workspace.store.put(MemoryItem(f"apple {number}", id=f"a{number}", timestamp=f"2026-03-0{number + 1}"))
    return Recaller(workspace.store, "default", utc_now, workspace.kinds)


@pytest.mark.parametrize(
    ("query", "field", "hint"),
    [
        (None, "query", ""),
        (5, "query", ""),
        (Query(types={"semantc"}), "types", "did you mean 'semantic'? the types are "),
        (Query(types={"zzz"}), "types", "the types are context, "),
        (Query(layers={"short"}), "layers", "short-term"),
        (Query(phases={"refin"}), "phases", "did you mean 'refine'?"),
    ],
)
def test_what_cannot_be_asked_is_refused(recall: Recaller, query: Any, field: str, hint: str) -> None:
    """A filter that no item could ever pass is a mistake, not an empty answer."""
    with pytest.raises(QueryInvalid) as caught:
        recall.search(query)
    assert caught.value.field == field
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(("limit", "more"), [(2, True), (3, False), (10, False)])
@pytest.mark.parametrize("text", ["apple", ""])
def test_an_answer_says_whether_there_is_more(recall: Recaller, text: str, limit: int, more: bool) -> None:
    """A cut answer is distinguished from one that happens to be as long as the limit."""
    answer = recall.search(Query(text=text, limit=limit))
    assert (len(answer.hits), answer.more) == (min(limit, 3), more)


def test_a_blank_text_asks_nothing(recall: Recaller) -> None:
    """Blanks are not words: the newest come first."""
    assert [hit.item.id for hit in recall.search("  \n").hits] == ["a2", "a1", "a0"]


# -- strategies, context, use -------------------------------------------------------------------------------------
def test_a_strategy_is_chosen_by_name(opened: Opened) -> None:
    """A query's strategy orders its answer; a name that nobody has is refused with the nearest (C5)."""
    workspace = opened()
    for number in range(3):
        workspace.store.put(MemoryItem(f"apple {number}", id=f"a{number}", timestamp=f"2026-03-0{number + 1}"))
    newest = workspace.recaller.search(Query(text="apple", strategy="time_weighted")).hits[0]
    assert newest.item.id == "a2"
    register_strategy("backwards", lambda _, ranked: sorted(ranked, key=lambda one: one.match.candidate.id)[::-1])
    try:
        answer = workspace.recaller.search(Query(text="apple", strategy="backwards"))
    finally:
        unregister_strategy("backwards")
    assert [hit.item.id for hit in answer.hits] == ["a2", "a1", "a0"]
    with pytest.raises(QueryInvalid) as caught:
        workspace.recaller.search(Query(text="apple", strategy="time_wieghted"))
    assert (caught.value.field, "time_weighted" in (caught.value.hint or "")) == ("strategy", True)


def test_what_shares_a_circumstance_comes_first(opened: Opened) -> None:
    """The context of a question lifts what was noted in the same circumstances, and drops nothing (M1)."""
    workspace = opened()
    workspace.store.put(MemoryItem("retries are bounded", id="a", context={"project": "shop"}))
    workspace.store.put(MemoryItem("retries are bounded too", id="b", context={"project": "bank"}))
    for project, first in (("shop", "a"), ("bank", "b")):
        hits = workspace.recaller.search(Query(text="retries", context={"project": project})).hits
        assert [len(hits), hits[0].item.id, hits[0].reasons["context"]] == [2, first, 1.5]


def test_winners_are_counted_once(opened: Opened) -> None:
    """A recall counts as a use of what it gave, and of nothing else (M1)."""
    workspace = opened()
    for number in range(3):
        workspace.store.put(MemoryItem(f"apple {number}", id=f"a{number}"))
    workspace.recaller.search(Query(text="apple 1", limit=1))
    workspace.recaller.search_many(["apple 1", "zebra"])
    counts = {key: use.count for key, use in workspace.usage.all().items()}
    assert counts["a1"] == 2
    assert sum(counts.values()) == 4


# -- duplicates and budget ----------------------------------------------------------------------------------------
def test_duplicates_make_room_for_others(opened: Opened) -> None:
    """However many repeat the best hit, the answer is filled with what is new (C4)."""
    workspace = opened()
    with workspace.store.batch("Fill") as batch:
        for number in range(40):
            batch.put(MemoryItem("apple apple apple pie", id=f"same{number:02}"))
        batch.put(MemoryItem("apple trees need sun and water and years", id="other"))
    answer = workspace.recaller.search(Query(text="apple", limit=2, deduplicate=True))
    assert [hit.item.id for hit in answer.hits] == ["same00", "other"]
    assert set(answer.duplicates.values()) == {"same00"}
    assert len(answer.duplicates) == 39


def test_an_answer_says_what_its_budget_left_out(opened: Opened) -> None:
    """The tokens are counted and stay within the budget, and what had no room is named; nothing else (C4)."""
    workspace = opened()
    for number in range(3):
        workspace.store.put(MemoryItem(f"apple number {number}", id=f"a{number}"))
    whole = workspace.recaller.search("apple")
    assert (whole.cut, whole.partial, len(whole.hits)) == ("", False, 3)
    answer = workspace.recaller.search(Query(text="apple", max_tokens=whole.tokens - 1))
    assert answer.tokens <= whole.tokens - 1
    assert [hit.item.id for hit in answer.hits] == [hit.item.id for hit in whole.hits[:2]]
    assert answer.cut == f"the budget of {whole.tokens - 1} tokens had no room for {whole.hits[2].item.id}"
    assert not answer.partial


# -- together, in the background, within a deadline ---------------------------------------------------------------
def test_several_questions_see_one_state(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written between two questions of one batch is in none of its answers, and in the next (C5)."""
    workspace = opened()
    workspace.store.put(MemoryItem("apple pie", id="a"))
    writers: list[threading.Thread] = []
    search = workspace.parts.index.search

    def searching(query: Query, **asked: Any) -> Any:
        if not writers:
            writer = threading.Thread(target=workspace.store.put, args=(MemoryItem("apple juice", id="b"),))
            writers.append(writer)
            writer.start()
        return search(query, **asked)

    monkeypatch.setattr(workspace.parts.index, "search", searching)
    answers = workspace.recaller.search_many(["apple", Query(text="apple juice", limit=5), " "])
    writers[0].join()
    assert {text: [hit.item.id for hit in answer.hits] for text, answer in answers.items()} == {
        "apple": ["a"],
        "apple juice": ["a"],
        " ": ["a"],
    }
    assert len(workspace.recaller.search("apple").hits) == 2


def test_a_file_that_changed_is_looked_at_again(opened: Opened) -> None:
    """A batch gives no text that its file no longer holds (C5)."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("apple pie", id="a"))
    answers = workspace.recaller.search_many(["apple"])
    path = workspace.root / stored.path
    path.write_text(path.read_text().replace("apple pie", "apple cake"))
    assert answers["apple"].hits[0].item.content == "apple pie"
    assert workspace.recaller.search_many(["apple"])["apple"].hits[0].item.content == "apple cake"


def test_two_different_questions_of_one_text_are_refused(recall: Recaller) -> None:
    """An answer that would take another's place is a mistake (C5)."""
    with pytest.raises(QueryInvalid, match="two different queries"):
        recall.search_many([Query(text="apple"), Query(text="apple", limit=1)])
    assert list(recall.search_many(["apple", "apple"])) == ["apple"]
    assert recall.search_many([]) == {}


def test_a_recall_in_the_background_is_the_same(recall: Recaller) -> None:
    """A future and an awaited recall give what a plain one gives; a mistake is reported at once (C5)."""
    plain = recall.search("apple")
    assert recall.submit("apple").result() == plain

    async def asked() -> list[Any]:
        return await asyncio.gather(*(recall.search_async("apple") for _ in range(5)))

    assert asyncio.run(asked()) == [plain] * 5
    with pytest.raises(QueryInvalid):
        recall.submit(Query(types={"zzz"}))
    recall.close()
    assert recall.submit("apple").result() == plain
    recall.close()


class Ticks:
    """A clock on which each look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_deadline_gives_what_was_found_until_then(opened: Opened) -> None:
    """A late answer is partial, holds the best that was looked at, and says how many were not (C5)."""
    workspace = opened()
    for number in range(9):
        workspace.store.put(MemoryItem(f"apple {number}", id=f"a{number}"))
    recall = Recaller(workspace.store, "default", utc_now, workspace.kinds, tick=Ticks())
    answer = recall.search(Query(text="apple", seconds=6))
    whole = recall.search(Query(text="apple"))
    recall.close()
    assert 0 < len(answer.hits) < 9
    assert answer.hits == whole.hits[: len(answer.hits)]
    assert answer.partial
    assert answer.cut == f"the deadline of 6 s passed: {len(answer.hits)} of 9 candidates were looked at"
    assert (whole.partial, whole.cut) == (False, "")


def test_a_deadline_does_not_wait_for_the_index(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the index is busy the answer comes in time, empty and partial (C5)."""
    workspace = opened()
    workspace.store.put(MemoryItem("apple", id="a"))
    done = threading.Event()
    search = workspace.parts.index.search

    def stuck(query: Query, **asked: Any) -> Any:
        done.wait(LONG)
        return search(query, **asked)

    monkeypatch.setattr(workspace.parts.index, "search", stuck)
    answer = workspace.recaller.search(Query(text="apple", seconds=0.05))
    done.set()
    assert (answer.hits, answer.partial) == ((), True)
    assert answer.cut == "the deadline of 0.05 s passed: the index had not answered"
    assert len(workspace.recaller.search(Query(text="apple", seconds=LONG)).hits) == 1


def test_several_questions_do_not_wait_for_the_index_either(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline holds for questions asked together, and an unhurried one among them is answered (C5)."""
    workspace = opened()
    workspace.store.put(MemoryItem("apple", id="a"))
    done = threading.Event()
    search = workspace.parts.index.search

    def stuck(query: Query, **asked: Any) -> Any:
        done.wait(LONG)
        return search(query, **asked)

    monkeypatch.setattr(workspace.parts.index, "search", stuck)
    answers = workspace.recaller.search_many([Query(text=text, seconds=0.05) for text in ("apple", "apples")])
    done.set()
    assert [(answer.hits, answer.partial) for answer in answers.values()] == [((), True)] * 2
    unhurried = workspace.recaller.search_many([Query(text="apple", seconds=LONG), Query(text="apples")])
    assert [len(answer.hits) for answer in unhurried.values()] == [1, 1]
