"""What a process imports and compiles late behaves as what others import and compile at once."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from memfs.startup import regex


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
    """A command spares itself the import; anyone who needs it finds all of it."""
    code = (
        "import sys; from memfs.startup import import_pathlib; import_pathlib()\n"
        "from pathlib import Path\n"
        "print([name for name in ('urllib.parse', 'ipaddress') if name in sys.modules])\n"
        "print(Path('/a b').as_uri()); import urllib.parse; print(urllib.parse.quote('a b'), Path('/a b').as_uri())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["[]", "file:///a%20b", "a%20b file:///a%20b"]
