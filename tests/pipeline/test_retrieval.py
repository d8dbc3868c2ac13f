"""From a question to hits: what is refused, and what an answer says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs import MemoryItem, Query, QueryInvalid, Workspace
from memfs.model.time import utc_now
from memfs.pipeline.retrieval import Recaller

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
    """A cut answer is told from one that happens to be as long as the limit."""
    answer = recall.search(Query(text=text, limit=limit))
    assert (len(answer.hits), answer.more) == (min(limit, 3), more)


def test_a_blank_text_asks_nothing(recall: Recaller) -> None:
    """Blanks are no words: the newest come first."""
    assert [hit.item.id for hit in recall.search("  \n").hits] == ["a2", "a1", "a0"]
