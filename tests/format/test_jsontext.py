"""The JSON that memfs reads and writes (faults rows 1, 5, 7, 8 and 10)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from memfs.errors import ContentError, DuplicateKey, ItemSyntaxError, ItemTooDeep, ItemTooLarge
from memfs.format import json_text
from memfs.format.yaml_text import place


@pytest.mark.parametrize("text", ["[" * 25_000, '{"a":' * 25_000, '{"x": "[[[", "a": ' + "[" * 900_000])
def test_row_1_deep_nesting_is_refused_quickly(text: str) -> None:
    """The guard runs before the recursive parser."""
    started = time.process_time()
    with pytest.raises(ItemTooDeep, match="nesting deeper than 64 at line 1"):
        json_text.load(text)

    assert time.process_time() - started < 10


def test_row_1_brackets_in_texts_do_not_count() -> None:
    """Only real nesting is nesting."""
    assert json_text.load(json.dumps({"a": "[{" * 500})) == {"a": "[{" * 500}


def test_row_5_duplicate_keys_name_both_lines() -> None:
    """The standard library keeps the last silently; memfs refuses."""
    with pytest.raises(DuplicateKey) as caught:
        json_text.load('{"a": 1,\n "b": {"c": 1,\n  "c": 2}}')

    assert caught.value.message == "key 'c' at line 3, first at line 2"


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('{"a": NaN}', "NaN is not a finite number", 1),
        ('{\n"a": -Infinity}', "-Infinity is not a finite number", 2),
        ('{"a": 1e999}', "outside the range", 1),
        ('{"a": 9223372036854775808}', "does not fit into 64 bit", 1),
        ('{"a": 1' + "0" * 5000 + "}", "does not fit into 64 bit", 1),
        ('{"a" 1}', "expected ':'", 1),
        ('{"a": 1,}', "',' before '}'", 1),
        ("[1 2]", "expected ','", 1),
        ("{'a': 1}", "a key in double quotes", 1),
        ('{"a": 1} x', "something follows", 1),
        ('{"a": "x\ny"}', "control character", 1),
        ('{"a": tru}', "expected a value", 1),
        ('{"": 1}', "0 characters", 1),
        ('{"a": "b', "unterminated string", 1),
        ('{\n"a": 01\n}', "expected ','", 2),
        ("", "expected a value", 1),
    ],
)
def test_rows_7_and_10_errors_have_line_and_remedy(text: str, words: str, line: int) -> None:
    """Each slip has its sentence, its line and what to do."""
    with pytest.raises(ItemSyntaxError) as caught:
        json_text.load(text)

    assert words in caught.value.message
    assert not caught.value.message.endswith(" at")
    assert caught.value.line == line
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, 2.5, {"b": null}], "c": "\\u00e9"}', "[]", "3", '"x"', "true", ' {"a":{}} ', '\t{\t"a"\t:\n\t1}\n\t'],
)
def test_what_is_read_has_places(text: str) -> None:
    """What the standard library reads, the YAML parser finds places for."""
    assert json_text.load(text) == json.loads(text)
    json_text.tree(text)


def test_places() -> None:
    """Fields in JSON have lines and columns too."""
    text = '{\n  "a": [1, {"b": "x"}],\n  "c": 3.5\n}\n'
    root = json_text.tree(text)

    found = place(root, text, ("a", 1, "b"))
    assert (found.line, found.column, found.typed) == (2, 18, '"x"')
    key = place(root, text, ("c",), of_key=True)
    assert (key.line, key.column) == (3, 3)


def test_writing_keeps_characters_readable_and_escapes_line_breaks_of_other_readers() -> None:
    """Umlauts stay; U+2028 and DEL are escaped, and all of it reads back."""
    value = {"a": "ü\u2028\x7f\ufeff", "b": [1, 2.5]}
    text = json_text.document(value)

    assert '"ü\\u2028\\u007f\\ufeff"' in text
    assert json_text.load(text) == value
    assert text.endswith("}\n")


def test_indentation_of_an_existing_file_is_found() -> None:
    """A file keeps its tabs or its four blanks."""
    assert json_text.indentation('{\n\t"a": 1\n}') == "\t"
    assert json_text.indentation('{\n    "a": 1\n}') == "    "
    assert json_text.indentation("{}") == 2


def test_every_error_is_ours() -> None:
    """Random damage to a valid text never raises a foreign exception."""
    text = '{"a": [1, {"b": "x\\u0041"}], "c": 3.5e1, "d": [true, null]}'
    lines = set()
    for at in range(len(text)):
        for replacement in ("", "[", '"', ",", "\\", "}", "0"):
            try:
                json_text.load(text[:at] + replacement + text[at + 1 :])
            except ContentError as error:
                lines.add(error.line)
    assert lines == {1}


@pytest.mark.parametrize("value", ["1", '"a"', "[]", "{}"])
def test_row_11_too_many_values_are_refused_quickly(value: str) -> None:
    """A file of half a million values is refused with its line before the standard parser sees it."""
    text = '{"tags":\n[' + f"{value}," * 500_000 + f"{value}]}}"
    started = time.process_time()
    with pytest.raises(ItemTooLarge, match="line 2: more than") as caught:
        json_text.load(text)

    assert time.process_time() - started < 10
    assert caught.value.hint


def test_row_11_twenty_thousand_values_and_signs_in_texts_are_read() -> None:
    """Only values count, and what a person or tool may well write is no bomb."""
    value = {"a": ",:" * 50_000, "b": list(range(19_000))}
    assert json_text.load(json.dumps(value)) == value


@pytest.mark.parametrize("indent", [2, 0, "\t"])
def test_a_document_is_written_as_the_standard_library_writes_it(indent: int | str) -> None:
    """Whole rows written at once by the encoder in C are the very bytes that json.dumps gives (S18)."""
    row: list[Any] = [None, True, -5, 1e300, -0.0, 'é\\"\n', ""]
    for value in (
        row,
        {},
        [],
        {"a": {}, "b": []},
        {"é\n": row, "c": [[1.5, 2], [row, {"d": row}]]},
        {1: 2},
        (1, [2]),
        "x",
    ):
        assert json_text.document(value, indent) == json.dumps(value, ensure_ascii=False, indent=indent) + "\n"


@pytest.mark.parametrize("value", [[float("nan")], {"a": [1, {"b": float("inf")}]}])
def test_what_is_not_a_number_is_in_no_document(value: Any) -> None:
    """NaN and infinity are refused wherever they are (S18)."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text.document(value)


def test_text_full_of_brackets_is_not_taken_for_depth() -> None:
    """Only collections count as nesting, not what is in quotes."""
    text = json.dumps({f"k{n}": "[[[{{{,,,:::" for n in range(200)} | {"list": [[n] for n in range(100)]})
    assert len(json_text.load(text)) == 201
