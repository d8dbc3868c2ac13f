"""The YAML that memfs reads (faults rows 1 to 7 and 10)."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
import yaml

from memfs.errors import (
    AliasForbidden,
    ContentError,
    DuplicateKey,
    ItemSyntaxError,
    ItemTooDeep,
    ItemTooLarge,
    TagForbidden,
)
from memfs.format import yaml_text
from memfs.format.yaml_text import place

BILLION_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{below}'] * 9)}]\n" for below, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize("text", ["[" * 25_000, "- " * 25_000, "{a: " * 25_000, "? " * 25_000, "a:\n" + "[" * 900_000])
def test_row_1_deep_nesting_is_refused_quickly(text: str) -> None:
    """Nesting that ends the process in PyYAML's own loader is an error with a line."""
    started = time.process_time()
    with pytest.raises(ContentError) as caught:
        yaml_text.load(text)

    assert time.process_time() - started < 10
    assert caught.value.line
    if text[0] not in "?a":
        assert isinstance(caught.value, ItemTooDeep)
        assert caught.value.message == f"nesting deeper than 64 at line {caught.value.line}"


def test_row_1_the_limit_itself_is_accepted() -> None:
    """64 levels are read, 65 are not."""
    assert yaml_text.load("[" * 64 + "]" * 64)
    assert yaml_text.tree("[" * 64 + "]" * 64).items
    for read in (yaml_text.load, yaml_text.tree):
        with pytest.raises(ItemTooDeep):
            read("[" * 65 + "]" * 65)


def test_row_2_billion_laughs_costs_nothing() -> None:
    """An entity bomb is refused at its first anchor, without memory."""
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(AliasForbidden) as caught:
        yaml_text.load(BILLION_LAUGHS)
    took = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert caught.value.message == "line 1: anchors and aliases are not allowed"
    assert took < 5
    assert peak < 5_000_000


@pytest.mark.parametrize("text", ["&a [*a]", "a: &x 1", "&k a: 1", "*x", "- *x", "a: *x", "*x : 1", "&m {a: 1}"])
def test_row_3_anchors_and_aliases_are_refused_everywhere(text: str) -> None:
    """No place in a document accepts them, cycles included."""
    for read in (yaml_text.load, yaml_text.tree):
        with pytest.raises(AliasForbidden):
            read(text)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("a: !!python/object/apply:os.system [touch /tmp/canary]", "python/object/apply:os.system"),
        ("a: !!binary aGk=", "binary"),
        ("a: 1\nb: !foo x", "!foo"),
        ("!!set {a, b}", "set"),
        ("!!str a: 1", "str"),
        ("- ! x", "!"),
    ],
)
def test_row_4_tags_are_refused_by_name_and_line(text: str, tag: str) -> None:
    """No tag is accepted, and no code runs."""
    for read in (yaml_text.load, yaml_text.tree):
        with pytest.raises(TagForbidden) as caught:
            read(text)
        assert tag in caught.value.message
        assert f"line {caught.value.line}" in caught.value.message


def test_row_4_tag_directives_are_refused() -> None:
    """A tag handle cannot be declared either."""
    with pytest.raises(TagForbidden, match="%TAG"):
        yaml_text.load("%TAG ! tag:example.org,2000:\n---\na: 1")


def test_a_long_tag_is_quoted_in_part() -> None:
    """An error does not repeat a tag of thousands of characters."""
    with pytest.raises(TagForbidden) as caught:
        yaml_text.load("content: !<" + "a" * 5000 + "> x\n")
    assert len(str(caught.value)) < 300


def test_row_5_duplicate_keys_name_both_lines() -> None:
    """The second of two equal keys is refused, at any depth."""
    with pytest.raises(DuplicateKey) as caught:
        yaml_text.load("a: 1\nb:\n  c: 1\n  'c': 2\n")

    assert caught.value.message == "key 'c' at line 4, first at line 3"
    assert (caught.value.line, caught.value.column) == (4, 3)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("no", "no"),
        ("YES", "YES"),
        ("on", "on"),
        ("y", "y"),
        ("010", "010"),
        ("-007", "-007"),
        ("1:30", "1:30"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("1e3", "1e3"),
        ("1234e5678", "1234e5678"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("=", "="),
        (".", "."),
        ("-", None),
        ("1.10", 1.1),
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("9223372036854775807", 2**63 - 1),
        ("-1.5e+3", -1500.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("~", None),
        ("null", None),
        ("", None),
        ("true", True),
        ("False", False),
        ("tRUE", "tRUE"),
    ],
)
def test_row_6_the_restricted_core_schema(typed: str, value: Any) -> None:
    """Only what is plainly a number, true, false or null is taken for one; all else is the text as typed."""
    if typed == "-":
        assert yaml_text.load("a:\n-\n") == {"a": [None]}
        return
    read = yaml_text.load(f"a: {typed}\n")["a"]

    assert read == value
    assert type(read) is type(value)


def test_row_6_quoted_and_key_scalars_are_always_text() -> None:
    """Quotes make text, and keys are text as typed."""
    assert yaml_text.load("'no': '1'\n2024: \"true\"\nnull: x\n1.10: y\n") == {
        "no": "1",
        "2024": "true",
        "null": "x",
        "1.10": "y",
    }


@pytest.mark.parametrize(
    "typed",
    [
        ".inf", "-.INF", ".nan", "1" + "0" * 5000, "9223372036854775808", "-9223372036854775809", "1.0e999", "1.0e-999",
        "0x" + "f" * 17,
    ],
)  # fmt: skip
def test_row_7_numbers_that_cannot_be_kept_are_refused_with_their_line(typed: str) -> None:
    """Infinite, not-a-number and over-long numbers are errors, never other numbers."""
    with pytest.raises(ItemSyntaxError) as caught:
        yaml_text.load(f"x: y\na: {typed}\n")

    assert (caught.value.line, caught.value.column) == (2, 4)
    assert "quotes" in (caught.value.hint or "")


def test_row_8_an_escaped_surrogate_is_not_unicode() -> None:
    """``\\ud800`` names no character."""
    with pytest.raises(ItemSyntaxError, match="not valid Unicode"):
        yaml_text.load('a: "\\ud800"')


def test_row_8_a_control_character_is_named() -> None:
    """What YAML does not allow is reported by its number."""
    with pytest.raises(ItemSyntaxError, match=r"U\+0001 is not allowed"):
        yaml_text.load('a: "\x01"')


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: 1\n---\nb: 2\n", "a second document", 2),
        ("a:\n\tb: 1\n", "a tab", 2),
        ("a: b: c\n", "': ' inside unquoted text", 1),
        ("a: 'x\n", "never closed", 1),
        ("a: [1, 2\nb: 3\n", "bracket", 2),
        ("a: @x\n", "reserved character", 1),
        ("? [a]\n: b\n", "a key must be text", 1),
        ("<<: {a: 1}\n", "merge keys", 1),
        ("a: 1\n b: 2\n", "': ' inside unquoted text", 2),
        ("a:\n  - 1\n - 2\n", "not indented like", 3),
        ('a: "\\q"\n', "unknown escape", 1),
        ("# only a comment\n", "no data", 1),
        (f"{'k' * 300}: 1\n", "300 characters", 1),
    ],
)
def test_row_10_syntax_errors_say_what_is_wrong_in_words(text: str, words: str, line: int) -> None:
    """The usual slips have their own sentence, line and remedy."""
    for read in (yaml_text.load, yaml_text.tree):
        with pytest.raises(ItemSyntaxError) as caught:
            read(text)
        assert words in caught.value.message
        assert caught.value.line == line
        assert caught.value.hint


def test_one_document_with_markers_is_fine() -> None:
    """``---`` before and ``...`` behind the document are accepted."""
    assert yaml_text.load("%YAML 1.1\n---\na: 1\n...\n") == {"a": 1}


def test_places_name_lines_columns_and_what_was_typed() -> None:
    """Every field can be found in the text; an absent one gives what encloses it."""
    text = "a: 1\nb:\n  c: [x, {y: 1.10}]\nl:\n- to: q\n"
    root = yaml_text.tree(text)

    found = place(root, text, ("b", "c", 1, "y"))
    assert (found.line, found.column, found.typed) == (3, 14, "1.10")
    key = place(root, text, ("l", 0, "to"), of_key=True)
    assert (key.line, key.column) == (5, 3)
    absent = place(root, text, ("l", 0, "nope"))
    assert (absent.line, absent.column) == (5, 3)


def test_the_pure_python_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML came without its C library, the guards and values are the same."""
    text = "a: no\nb: |\n  x\n  y\nc: [1, {d: 'e'}]\n"
    quick, places = yaml_text.load(text), yaml_text.tree(text)
    monkeypatch.setattr(yaml_text, "_PARSER", yaml.SafeLoader)

    assert yaml_text.load(text) == quick
    assert [entry.start for entry in yaml_text.tree(text).entries] == [entry.start for entry in places.entries]
    for bad in ("[" * 25_000, "&a [*a]", "a: !foo 1"):
        with pytest.raises(ContentError):
            yaml_text.load(bad)


@pytest.mark.parametrize(
    "text",
    [
        "tags: [" + "a," * 500_000 + "a]",
        "tags:\n" + "- a\n" * 300_000,
        "".join(f"k{number}: 1\n" for number in range(100_000)),
        "a: [" + "[]," * 300_000 + "[]]",
    ],
)
def test_row_11_too_many_values_are_refused_quickly(text: str) -> None:
    """A file of half a million values is refused with its line after the first of them, in both ways of reading."""
    for read in (yaml_text.load, yaml_text.tree):
        started = time.process_time()
        with pytest.raises(ItemTooLarge, match="keys, values and ends of collections") as caught:
            read(text)
        assert time.process_time() - started < 10
        assert caught.value.line
        assert caught.value.hint == "split it into several items"


def test_row_11_twenty_thousand_values_are_read() -> None:
    """What a person or tool may well write is no bomb."""
    for text in ("tags: [" + "a," * 19_999 + "a]", "".join(f"k{number}: 1\n" for number in range(19_990))):
        assert yaml_text.load(text)
        assert yaml_text.tree(text).entries
