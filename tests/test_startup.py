"""What a process imports and compiles late behaves as what others import and compile at once."""

from __future__ import annotations

import json as standard
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from memfs.startup import json, regex


def test_it_matches_as_the_compiled_expression() -> None:
    """Methods and attributes are those of ``re.compile``, with its flags, of text and of bytes."""
    word = regex(r"(a)b+", re.IGNORECASE)
    assert [word.sub("x", "ABbc"), word.pattern, word.groups] == ["xc", r"(a)b+", 1]
    assert word.fullmatch("abb") is not None
    assert word.fullmatch("abc") is None
    assert regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_nothing_is_compiled_before_it_is_needed() -> None:
    """A mistake is noticed at the first use."""
    wrong = regex("(")
    with pytest.raises(re.error, match="missing"):
        wrong.match("a")


def test_paths_come_without_addresses_until_one_is_asked_for() -> None:
    """A command spares itself the imports; anyone who needs them finds all of it."""
    code = (
        "import sys; from memfs.startup import import_sparingly; import_sparingly()\n"
        "from pathlib import Path, PureWindowsPath\n"
        "print([name for name in ('urllib.parse', 'ipaddress', 'ntpath') if name in sys.modules])\n"
        "print(Path('/a b').as_uri(), PureWindowsPath('c:/a').name); import urllib.parse, ntpath, warnings\n"
        "print(urllib.parse.quote('a b'), Path('/a b').as_uri(), ntpath.basename('c:/b'), warnings.filters is not None)"
    )
    done = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["[]", "file:///a%20b a", "a%20b file:///a%20b b True"]


TEXTS = [
    '{"a": [1, -2.5, NaN, "\\u00e9"]}', " [1]\n", "1", '"x"', "", "{", "[1,]", "[1] x", "\ufeff[1]", b"[1]\n", b"\xff",
]  # fmt: skip
VALUES = [
    {"b": [1, 2.5, None, True, "\u00e9\ud800"], "a": {}}, "x", float("inf"), {1: 2, None: 3}, {1, 2}, [date.min],
]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"indent": 1}, {"ensure_ascii": False, "sort_keys": True}, {"separators": (",", ":")}, {"default": str},
    {"allow_nan": False},
]  # fmt: skip


def of(function: Callable[..., object], *values: object, **named: object) -> object:
    """What a function returns, or raises in which words."""
    try:
        return repr(function(*values, **named))
    except (ValueError, TypeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("text", TEXTS)
def test_json_is_read_as_the_standard_library_reads_it(text: str | bytes) -> None:
    """What it holds, and the error for an invalid text."""
    assert of(json.loads, text) == of(standard.loads, text)
    assert of(json.loads, text, parse_int=str) == of(standard.loads, text, parse_int=str)


@pytest.mark.parametrize("options", OPTIONS)
def test_json_is_written_as_the_standard_library_writes_it(options: dict[str, Any]) -> None:
    """Byte for byte, with all options, and refused in its words."""
    for value in VALUES:
        assert of(json.dumps, value, **options) == of(standard.dumps, value, **options)
