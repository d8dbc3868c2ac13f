"""Bytes to text (faults rows 10 and 43)."""

from __future__ import annotations

import pytest

from memfs.errors import ItemSyntaxError
from memfs.format.text import Text, decode, position


@pytest.mark.parametrize(
    ("data", "message", "line", "column"),
    [
        (b"title: x\ncontent: a\x00b\n", "NUL byte at offset 19", 2, 11),
        ("title: x\n".encode("utf-16"), "the file is UTF-16, not UTF-8", 1, None),
        ("title: x\n".encode("utf-16-le"), "NUL byte at offset 1", 1, 2),
        ("title: caf\xe9\n".encode("latin-1"), "byte 0xE9 at offset 10 is not UTF-8", 1, 11),
        (b"title: \x1b[31m\n", "character U+001B at offset 7", 1, 8),
        ("a: ü\u2028b\n".encode(), "character U+2028 at offset 5", 1, 5),
        ("a: ü\x85b\n".encode(), "character U+0085 at offset 5", 1, 5),
        (b"", "the file is empty", 1, None),
        (b" \n\n", "the file is empty", 1, None),
    ],
)
def test_row_10_each_wrong_encoding_has_its_own_error(data: bytes, message: str, line: int, column: int | None) -> None:
    """What is not UTF-8 text is refused with the place and a remedy."""
    with pytest.raises(ItemSyntaxError) as caught:
        decode(data)

    assert caught.value.message == message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.hint


def test_row_10_byte_order_mark_and_crlf_are_accepted_and_remembered() -> None:
    """A Windows editor's file is read, and a change keeps its form."""
    text = decode(b"\xef\xbb\xbftitle: x\r\n")

    assert text == Text("title: x\r\n", bom=True, crlf=True)
    assert text.encode("y") == b"\xef\xbb\xbfy"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"title: x\n<<<<<<< HEAD\ncontent: a\n=======\ncontent: b\n>>>>>>> other\n", 2),
        (b'{\n<<<<<<< HEAD\n"a": 1\n=======\n"a": 2\n>>>>>>> other\n}\n', 2),
        (b"title: x\r\ncontent: a\r\n>>>>>>> other\r\n", 3),
    ],
)
def test_row_43_merge_conflict_markers_are_named_with_their_line(data: bytes, line: int) -> None:
    """A file that git left in conflict says so, not some syntax error."""
    with pytest.raises(ItemSyntaxError) as caught:
        decode(data)

    assert caught.value.message == f"merge conflict markers at line {line}"
    assert "'memfs team conflicts resolve'" in (caught.value.hint or "")


def test_row_43_a_memory_may_quote_conflict_markers() -> None:
    """Markers inside an indented text are text."""
    assert "<<<<<<<" in decode(b"content: |\n  <<<<<<< HEAD\n  =======\n  >>>>>>> b\n").text


def test_row_8_a_lone_surrogate_cannot_be_encoded() -> None:
    """Text that is not Unicode is refused before anything is written."""
    with pytest.raises(ItemSyntaxError, match="not valid Unicode"):
        Text("").encode("a\ud800")


def test_position_counts_from_one() -> None:
    """The first character of a text is line 1, column 1."""
    assert position("ab\ncd", 0) == (1, 1)
    assert position("ab\ncd", 4) == (2, 2)
