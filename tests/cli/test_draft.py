"""What the command line and JSONL lines say of an item."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.doors.cli.command import Unclear
from memfs.doors.cli.draft import Draft, draft
from memfs.doors.cli.options import decoded
from memfs.errors import ItemSyntaxError
from memfs.model import MemoryItem, Origin

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("type", "title", "id", "agent", "session", "phase", "role", "tool", "time")),
    "tags": (),
    "context": (),
    "data": (),
}


def made(**given: Any) -> Draft:
    return draft(**{**NOTHING, **given})


def test_without_an_agent_a_memory_is_a_persons() -> None:
    """Trust is human without --agent, and agent with it (design section 9)."""
    assert made().fresh("x").trust == "human"
    assert made(agent="coder").fresh("x").trust == "agent"


def test_context_is_pairs() -> None:
    """--context k=v gathers into a mapping; the value may hold '='."""
    assert made(context=("a=1", "b=x=y")).fresh("x").context == {"a": "1", "b": "x=y"}
    with pytest.raises(Unclear) as caught:
        made(context=("novalue",))
    assert caught.value.message.startswith("--context: ")


def test_changing_an_item_keeps_what_is_not_given() -> None:
    """Only the given fields change; new words bring their own origin."""
    before = MemoryItem(
        "old", "rule", id="x", tags=("a",), origin=Origin(agent="coder"), trust="agent", context={"k": "v"}
    )
    after = before.replace(**made(title="T", context=("n=1",)).changes(before, "new"))
    assert (after.content, after.title, after.type, after.tags) == ("new", "T", "rule", ("a",))
    assert after.context == {"k": "v", "n": "1"}
    assert (after.trust, after.origin) == ("human", Origin())
    assert "origin" not in made(title="T").changes(before, None)


def test_bytes_that_are_not_text_name_their_line() -> None:
    """An import of another encoding stops at the line it breaks in."""
    with pytest.raises(ItemSyntaxError) as caught:
        decoded(b"one\ntwo\nthr\xffee", "f.jsonl")
    assert (caught.value.path, caught.value.line) == ("f.jsonl", 3)
