"""SessionEvent: what programs hand to their hooks, in each spelling, bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.errors import ItemSyntaxError
from memfs.sessions.spool import LARGEST, SessionEvent, bounded, canonical_name, decoded, encoded, parse

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_claude_codes_spelling_is_read_whole() -> None:
    """Base fields are the event's, everything else is kept by its name (C6)."""
    event = parse(
        json.dumps(
            {
                "hook_event_name": "PostToolUse",
                "session_id": "abc",
                "transcript_path": "/t.jsonl",
                "cwd": "/repo",
                "agent_id": "a1",
                "agent_type": "reviewer",
                "tool_name": "Bash",
                "tool_input": {"command": "ls"},
                "tool_response": {"stdout": "x"},
                "some_new_field": [1, {"a": None}],
            }
        )
    )
    assert (event.name, event.session, event.cwd, event.client) == ("PostToolUse", "abc", "/repo", "claude-code")
    assert (event.agent, event.tool, event.mapping("tool_input")) == ("reviewer", "Bash", {"command": "ls"})
    assert event.fields["some_new_field"] == [1, {"a": None}]
    assert decoded(encoded(event)) == event


@pytest.mark.parametrize(
    "name", ["UserPromptSubmit", "user-prompt-submit", "USER_PROMPT_SUBMIT", "userpromptsubmit", " userPromptSubmit "]
)
def test_a_name_is_known_in_any_case(name: str) -> None:
    """An event's name is taken in any case and with any joints."""
    assert canonical_name(name) == "UserPromptSubmit"
    assert parse("{}", name=name).name == "UserPromptSubmit"


@pytest.mark.parametrize(
    "given_",
    ["", "null", "[1]", "{", '{"hook_event_name": 3}', "{}", "[" * 100_000, b"\xff\xfe", '"text"', "\0"],
)
def test_what_is_not_an_event_is_refused_with_a_message(given_: str | bytes) -> None:
    """Garbage is an error of ours, never one of the parser's."""
    with pytest.raises(ItemSyntaxError):
        parse(given_)


@pytest.mark.parametrize(
    "fields",
    [
        {"a": "x" * 1_000_000},
        {"a": ["y" * 100_000] * 300},
        {f"k{number}": "\u1234" * 5_000 for number in range(300)},
        {"prompt": "\ud800" * 70_000, "n": 10**300, "deep": json.loads("[" * 200 + "]" * 200)},
    ],
)
def test_an_event_is_bounded(fields: dict[str, Any]) -> None:
    """One record takes at most 64 KiB, and long texts keep their beginning and their end."""
    event = parse(json.dumps({"hook_event_name": "Stop", "session_id": "s" * 9_000, "cwd": "c" * 9_000, **fields}))
    assert len(encoded(event)) <= LARGEST
    assert event.session == "s" * 200


def test_a_long_prompt_keeps_beginning_and_end() -> None:
    """What is left out of a long text is reported."""
    event = parse(json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "BEGIN " + "x" * 200_000 + " END"}))
    text = event.text("prompt")
    assert text.startswith("BEGIN")
    assert text.endswith("END")
    assert "characters left out" in text


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=12), _VALUES, max_size=6), st.text(max_size=12))
def test_fields_of_any_sort_survive(fields: dict[str, Any], session: str) -> None:
    """Whatever is in a field, the event can be kept and read again."""
    event = bounded(SessionEvent("Stop", session=session.encode("utf-8", "replace").decode(), fields=fields))
    again = decoded(encoded(event))
    assert again == event
    for name in fields:
        assert isinstance(event.text(name), str)
        assert hasattr(event.mapping(name), "keys")


@pytest.mark.parametrize("record", [None, [], {}, {"fields": {}}, {"fields": {}, "name": 1}, {"fields": []}])
def test_an_invalid_record_gives_no_event(record: object) -> None:
    """What somebody else wrote into the spool is passed over."""
    assert decoded(json.dumps(record).encode()) is None
