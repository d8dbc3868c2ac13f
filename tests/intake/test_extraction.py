"""Extraction: what a draft's text and metadata give, and what stays as its writer had it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.intake.intake import extract, keywords
from memfs.model import MemoryItem, Origin

LONG = (
    "Fixed the login bug in `auth/session.py` yesterday. Ada Lovelace reviewed it on March 3; see "
    "https://example.org/pr/12. MAX_RETRIES is now 5."
)


def test_a_longer_text_gets_its_first_sentence_as_title() -> None:
    """A title is made where one is asked for, and where nobody gave one (C3)."""
    assert extract(MemoryItem(LONG)).title == "Fixed the login bug in `auth/session.py` yesterday"
    assert extract(MemoryItem("# Release plan\n\n- bump the version\n- tag it")).title == "Release plan"
    assert extract(MemoryItem("word " * 60)).title.endswith("word…")
    assert extract(MemoryItem("Use tabs")).title == ""
    assert extract(MemoryItem(LONG, title="Login")).title == "Login"


def test_keywords_go_into_metadata() -> None:
    """What a text mentions is in fields that can be searched (C3)."""
    metadata = extract(MemoryItem(LONG)).metadata
    assert "lovelace" in metadata["keywords"]
    assert len(metadata["keywords"]) == 5


def test_what_the_writer_gave_stays() -> None:
    """Extraction adds to a draft and changes nothing of it."""
    item = MemoryItem(LONG, metadata={"keywords": ["mine"]}, origin=Origin(session="s1"))
    found = extract(item.replace(metadata={**item.metadata, "session_id": "s2"}))
    assert found.metadata["keywords"] == ["mine"]
    assert found.origin.session == "s1"
    assert found.content == LONG


def test_origin_comes_from_metadata_or_context() -> None:
    """``session_id`` and its like fill what is unknown of the origin, and stay where they are (C1)."""
    metadata = {"session_id": 42, "agent_id": "coder", "sequence": 3, "phase": "refine", "role": " user "}
    item = extract(MemoryItem("Use tabs", metadata=metadata, context={"task_id": "T/7", "session_id": "other"}))
    assert item.origin == Origin(session="42", agent="coder", sequence=3, phase="refine", role="user", task="T/7")
    assert item.metadata["session_id"] == 42


@pytest.mark.parametrize("value", ["", "  ", "two\nlines", "x" * 300, None, True, ["s"], {"a": 1}])
def test_what_cannot_be_a_name_is_not_an_origin(value: object) -> None:
    """A value that no origin may hold costs the origin, not the memory."""
    item = extract(MemoryItem("Use tabs", metadata={"session_id": value, "phase": "nonsense", "sequence": -1}))
    assert item.origin == Origin()


def test_keywords_name_the_subject() -> None:
    """Words that people say about anything are not keywords; repeated and longer ones come first."""
    assert keywords("We really think the cache is the thing: invalidating a cache is hard, the cache forgets") == (
        *("cache", "invalidating", "forgets", "hard"),
    )
    assert keywords("and so on") == ()


@given(st.text(max_size=300))
def test_any_text_can_be_extracted_from(text: str) -> None:
    """No text breaks it, and what it finds is bounded."""
    if not text:
        return
    found = extract(MemoryItem(text))
    assert found.content == text
    assert len(found.title) <= 81
    assert len(found.metadata.get("keywords", ())) <= 5
