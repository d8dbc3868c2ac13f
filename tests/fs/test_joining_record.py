"""Journal records of merges: they name the other line, and records without one read as before."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memfs.fs.journal import FileChange, NotARecord, Operation, decode, encode

OTHER = "ab" * 20
PLAIN = Operation(
    id="1f",
    branch="refs/heads/main",
    time=1.0,
    message="Merge",
    batch=True,
    writers=(),
    changes=(FileChange(path="memfs.toml", old="", new="", data=b"x"),),
)


def test_a_record_keeps_the_line_that_it_joins() -> None:
    """What is written is what is read, with changes or without any (B3)."""
    for operation in (replace(PLAIN, merges=OTHER), replace(PLAIN, merges=OTHER, changes=())):
        assert decode(encode(operation))[1] == operation


def test_a_record_that_joins_nothing_is_as_it_always_was() -> None:
    """A record of an ordinary write has no word of merges, and an older one is read."""
    line = encode(PLAIN).partition(b"\n")[0]
    assert "merges" not in json.loads(line)
    assert decode(encode(PLAIN))[1] == PLAIN


@pytest.mark.parametrize("merges", [7, None, "main", "AB" * 20, "ab" * 21, "--all"])
def test_a_line_that_is_not_a_commit_is_not_a_record_of_memfs(merges: object) -> None:
    """A journal that came with an unpacked repository cannot name anything but a commit (row 41)."""
    line, _, body = encode(replace(PLAIN, merges=OTHER)).partition(b"\n")
    record = {**json.loads(line), "merges": merges}
    with pytest.raises(NotARecord):
        decode(json.dumps(record).encode() + b"\n" + body)
