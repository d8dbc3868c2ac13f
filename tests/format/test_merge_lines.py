"""Lines: three versions of a sequence, compared with git's own merge and with laws (K4)."""

from __future__ import annotations

import random
import subprocess
import time
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.format.field_merge import hunks, merge_lines, pairs

lines = st.lists(st.sampled_from("abcdef"), max_size=9)


def test_k4_independent_changes_of_a_file_are_both_in_it() -> None:
    """Lines that one side changed are taken from it; markers are put where both did."""
    base = b"one\ntwo\nthree\nfour\n"

    clean = merge_lines(base, b"ONE\ntwo\nthree\nfour\n", b"one\ntwo\nthree\nFOUR")
    clash = merge_lines(base, b"one\nmine\nthree\nfour\n", b"one\nyours\nthree\nfour\n")

    assert (clean.data, clean.clean) == (b"ONE\ntwo\nthree\nFOUR", True)
    assert not clash.clean
    assert clash.data == b"one\n<<<<<<< ours\nmine\n=======\nyours\n>>>>>>> theirs\nthree\nfour\n"


def test_k4_markers_have_the_length_asked_for_and_the_files_line_ending() -> None:
    """git asks for longer markers where files hold some already; CRLF stays CRLF, and a last line gets its end."""
    joined = merge_lines(b"", b"mine\r\nx", b"yours\r\ny", 9)

    assert joined.data == b"<<<<<<<<< ours\r\nmine\r\nx\r\n=========\r\nyours\r\ny\r\n>>>>>>>>> theirs\r\n"


def _changed(base: list[str], rng: random.Random, name: str) -> list[str]:
    found = list(base)
    for turn in range(rng.randint(0, 3)):
        at, what = rng.randint(0, len(found)), rng.random()
        if what < 0.4 or at == len(found):
            found.insert(at, f"{name}{turn}\n")
        elif what < 0.7:
            found[at] = f"{name}{turn}\n"
        else:
            del found[at]
    return found


def _by_git(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(data)
    command = ["git", "merge-file", "-p", "-q", "-L", "ours", "-L", "base", "-L", "theirs"]
    done = subprocess.run([*command, "ours", "base", "theirs"], cwd=folder, capture_output=True, check=False)
    return done.stdout, done.returncode == 0


def test_k4_files_are_joined_as_git_merge_file_joins_them(tmp_path: Path) -> None:
    """Of 150 random files with unique lines each is clean where git's is, with the same bytes."""
    rng = random.Random(8)
    clean = 0
    for number in range(150):
        base = [f"line {at}\n" for at in range(rng.randint(0, 12))]
        versions = ["".join(one).encode() for one in (base, _changed(base, rng, "o"), _changed(base, rng, "t"))]
        data, was_clean = _by_git(tmp_path, *versions)

        joined = merge_lines(*versions)

        assert joined.clean == was_clean, number
        if was_clean:
            assert joined.data == data, number
            clean += 1
    assert 50 < clean < 150


@given(base=lines, ours=lines, theirs=lines)
def test_stretches_are_the_whole_of_each_version(base: list[str], ours: list[str], theirs: list[str]) -> None:
    """Put together, the stretches give back all three; one that does not clash was changed by one side or alike."""
    found = list(hunks(base, ours, theirs))

    assert [x for one in found for x in one.base] == base
    assert [x for one in found for x in one.ours] == ours
    assert [x for one in found for x in one.theirs] == theirs
    for one in found:
        agreed = one.base in (one.ours, one.theirs) or one.ours == one.theirs
        assert one.clash != agreed or not one.base


def test_no_short_sequences_lose_an_element() -> None:
    """Of all sequences of up to three elements: a clash whose sides begin and end alike keeps each element once."""
    short = [list(one) for length in range(4) for one in product("ab", repeat=length)]
    for base, ours, theirs in product(short, repeat=3):
        found = list(hunks(base, ours, theirs))
        assert [x for one in found for x in one.base] == base
        assert [x for one in found for x in one.ours] == ours
        assert [x for one in found for x in one.theirs] == theirs


@given(base=lines, ours=lines)
def test_a_side_that_did_nothing_leaves_the_others_version(base: list[str], ours: list[str]) -> None:
    """With the base on one side the other comes back, whichever side that is."""
    for found in (hunks(base, ours, base), hunks(base, base, ours), hunks(base, ours, ours)):
        joined = [x for one in found for x in one.joined]
        assert joined == ours


@settings(max_examples=200)
@given(one=lines, other=lines)
def test_pairs_are_equal_and_rise(one: list[str], other: list[str]) -> None:
    """What is matched is the same in both, in the order of both."""
    found = pairs(one, other)

    assert all(one[i] == other[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([f"a{at}" if at % 2 else "s" for at in range(40_000)], [f"b{at}" if at % 2 else "s" for at in range(40_000)]),
        ([f"a{at}" if at % 2 else f"s{at}" for at in range(40_000)], [f"s{at}" for at in range(40_000)]),
        (["s", "t"] * 20_000, ["t", "s", "s"] * 13_000),
        ([str(at) for at in range(40_000)], [str(at) for at in range(40_000, 0, -1)]),
    ],
)
def test_hostile_sequences_cost_no_more_than_a_moment(one: list[str], other: list[str]) -> None:
    """Repeats, scattered changes and a reversed order do not make the comparison quadratic (faults row 16)."""
    start = time.process_time()
    pairs(one, other)

    assert time.process_time() - start < 2
