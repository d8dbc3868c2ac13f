"""How values are written."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from memfs.format import yaml_text

AMBIGUOUS = [
    "no", "Yes", "ON", "off", "y", "N", "true", "False", "null", "~", "", "010", "1:30", "1.10", "1e3", "2024-01-01",
    "2024-01-01T10:00:00Z", "12e10", "0x1F", "0o17", ".inf", "-.INF", ".nan", "1_000", "+1", "-", "--- a", "...", "=",
    "<<", "- a", "a: b", "a #b", "#a", "@a", "`a", "%a", "&a", "*a", "!a", "|", ">", "[a", "{a", "? a", ": a", "a:",
    " a", "a ", "'a'", '"a"', "it's", "\ta", "a\tb", "190:20:30", "685.230_15", "0b101", "!!str a", "\\n",
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_row_6_text_that_some_reader_would_misread_is_quoted(text: str) -> None:
    """Text stays text for YAML 1.1 and 1.2 readers alike, as a value, a key, in a list and on one line."""
    value = {"a": text, "b": [text], text or "k": 1}
    for written in (yaml_text.document(value), f"x: {yaml_text.flow(value)}\n"):
        for read in (yaml_text.load, yaml.safe_load):
            back = read(written)
            assert back.get("x", back) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words", "a: plain words\n"),
        ("häuser 日本語 😀", "a: häuser 日本語 😀\n"),
        ("https://example.org/x?y=1", "a: https://example.org/x?y=1\n"),
        ("it's", "a: it's\n"),
        ("a: b", "a: 'a: b'\n"),
        ("it's: so", 'a: "it\'s: so"\n'),
        ("one\ntwo\n", "a: |\n  one\n  two\n"),
        ("one\n\ntwo", "a: |-\n  one\n\n  two\n"),
        ("one\n\n\n", "a: |+\n  one\n\n\n"),
        ("  one\ntwo\n", "a: |2\n    one\n  two\n"),
        ("\tone\ntwo\n", "a: |2\n  \tone\n  two\n"),
        ("bell\x07\n", 'a: "bell\\x07\\n"\n'),
        ("a\u2028b", 'a: "a\\u2028b"\n'),
        ("a\u200bb", 'a: "a\\u200Bb"\n'),
        ("\n", 'a: "\\n"\n'),
    ],
)
def test_text_is_written_as_a_person_would(text: str, written: str) -> None:
    """Plain where it is safe, a block for several lines, escapes only where nothing else can hold it."""
    assert yaml_text.document({"a": text}) == written
    assert yaml_text.load(written) == {"a": text}


def test_a_long_line_is_never_folded() -> None:
    """``grep`` and ``sed`` find a phrase however long the text."""
    text = "word " * 400 + "end"

    assert f"a: {text}\n" == yaml_text.document({"a": text})


def test_collections_are_blocks_and_lists_are_below_their_key() -> None:
    """The layout is the one of the format page."""
    value = {
        "tags": ["a", "b"],
        "links": [{"to": "x", "relation": "r"}],
        "metadata": {"deep": {"list": [[1, 2], []]}, "none": None},
        "empty": {},
    }

    assert yaml_text.document(value) == (
        "tags:\n- a\n- b\n"
        "links:\n- to: x\n  relation: r\n"
        "metadata:\n  deep:\n    list:\n    - - 1\n      - 2\n    - []\n  none: null\n"
        "empty: {}\n"
    )
    assert yaml_text.load(yaml_text.document(value)) == value


@pytest.mark.parametrize(
    "number", [0, -1, 2**63 - 1, -(2**63), 0.1, -0.5, 1e16, 1e22, 1e-7, 5e-324, 1.7976931348623157e308]
)
def test_numbers_read_back_exactly_and_as_numbers_in_both_versions(number: Any) -> None:
    """No number becomes text or another number."""
    for read in (yaml_text.load, yaml.safe_load):
        back = read(yaml_text.document({"a": number}))["a"]
        assert back == number
        assert type(back) is type(number)
