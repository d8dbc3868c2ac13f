"""Which of the ranked hits are given back."""

from __future__ import annotations

from typing import Any

import pytest

from memfs import MemoryItem, Query
from memfs.model import Hit
from memfs.model.item import count_tokens
from memfs.recall.fence import fence
from memfs.recall.ranking import HitSelection

SENTENCE = "The deployment runs every Friday evening after all tests have passed"


def hit(item_id: str, content: str, **fields: Any) -> Hit:
    """A hit with that content."""
    return Hit(item=MemoryItem(content, id=item_id, **fields), score=1.0)


def selected(query: Query, hits: list[Hit], *, fenced: bool = False) -> HitSelection:
    """What is chosen of hits, best first."""
    selection = HitSelection(query, fenced=fenced)
    for one in hits:
        selection.offer(one)
        if selection.full:
            break
    return selection


def ids(selection: HitSelection) -> list[str]:
    """The ids that were chosen."""
    return [one.item.id for one in selection.hits]


def test_what_repeats_a_better_hit_is_left_out_and_named() -> None:
    """Of two that say the same, the better one stays; the other is named with it (C4)."""
    hits = [
        hit("a", SENTENCE),
        hit("b", "something else"),
        hit("c", f"{SENTENCE.upper()}!"),
        hit("d", f"So: {SENTENCE}"),
    ]
    selection = selected(Query(text="x", deduplicate=True), hits)
    assert ids(selection) == ["a", "b"]
    assert selection.duplicates == {"c": "a", "d": "a"}
    assert ids(selected(Query(text="x"), hits)) == ["a", "b", "c", "d"]


def test_the_threshold_decides_what_repeats() -> None:
    """A threshold of 1 leaves out what is equal but for case and punctuation only; a low one more (C4)."""
    hits = [hit("a", SENTENCE), hit("b", f"{SENTENCE}."), hit("c", f"So: {SENTENCE}"), hit("d", "tests on Friday")]
    kept = {
        threshold: ids(selected(Query(text="x", deduplicate=True, similarity_threshold=threshold), hits))
        for threshold in (1.0, 0.85, 0.1)
    }
    assert kept == {1.0: ["a", "c", "d"], 0.85: ["a", "d"], 0.1: ["a"]}


def test_what_differs_in_its_data_or_title_is_not_a_repeat() -> None:
    """Two items with a body of their own, or another name, say different things (C4)."""
    hits = [
        hit("a", "Done.", title="Payment service deployed"),
        hit("b", "Done.", title="Search index rebuilt"),
        hit("c", "State", data={"step": 1}),
        hit("d", "State", data={"step": 2}),
    ]
    assert ids(selected(Query(text="x", deduplicate=True), hits)) == ["a", "b", "c", "d"]


def test_duplicates_go_before_the_budget_is_spent() -> None:
    """A repeat takes no tokens from what is new (C4, fix)."""
    hits = [hit("a", SENTENCE), hit("b", f"{SENTENCE}!"), hit("c", "Alice likes green tea in the morning")]
    room = count_tokens(SENTENCE) + count_tokens(hits[2].item.content)
    selection = selected(Query(text="x", deduplicate=True, max_tokens=room), hits)
    assert (ids(selection), selection.tokens, selection.misfits) == (["a", "c"], room, [])


def test_what_has_no_room_is_named_and_smaller_ones_still_fit() -> None:
    """The budget is never exceeded, and one large memory at the top does not block the rest (C4)."""
    hits = [hit("large", SENTENCE * 9), hit("a", "green tea"), hit("b", "black coffee"), hit("c", SENTENCE)]
    selection = selected(Query(text="x", max_tokens=12), hits)
    assert ids(selection) == ["a", "b"]
    assert selection.misfits == ["large", "c"]
    assert selection.tokens <= 12


def test_a_budget_that_nothing_fits_is_given_up() -> None:
    """After twenty that had no room no further file is looked at (C4)."""
    selection = selected(Query(text="x", limit=500, max_tokens=1), [hit(f"a{n}", SENTENCE) for n in range(500)])
    assert (selection.hits, len(selection.misfits)) == ([], 20)


def test_a_fenced_answer_fits_with_its_fence() -> None:
    """What quoting adds to the hits counts against the budget (C4)."""
    hits = [hit(f"a{number}", f"{SENTENCE} {number}", title=f"Note {number}") for number in range(9)]
    query = Query(text="x", max_tokens=300)
    selection = selected(query, hits, fenced=True)
    assert 1 < len(selection.hits) < len(selected(query, hits).hits)
    assert count_tokens(fence(selection.hits)) <= selection.tokens <= 300


@pytest.mark.parametrize("count", [400])
def test_a_long_answer_is_still_freed_of_equal_texts(count: int) -> None:
    """Beyond the best two hundred, what is equal word by word is left out all the same (C4)."""
    hits = [hit(f"a{number}", f"fact {number * 7919}") for number in range(count)]
    hits += [hit(f"b{number}", f"Fact {number * 7919}.") for number in range(count)]
    assert len(selected(Query(text="x", limit=10_000, deduplicate=True), hits).hits) == count


def test_parts_count_no_less_than_the_whole() -> None:
    """What fits piece by piece fits as it is quoted, also where one piece is full of signs."""
    texts = ["-=|-=|-=|", *("|-= " * 50 for _ in range(10))]
    hits = [Hit(item=MemoryItem(text, id=f"i{number}"), score=1.0, reasons={}) for number, text in enumerate(texts)]
    chosen = HitSelection(Query(text="a", max_tokens=100_000, deduplicate=False, limit=20), fenced=True)
    assert all(map(chosen.offer, hits))
    assert count_tokens(fence(hits)) <= chosen.tokens
