"""Globs of scopes: which files they fit."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.model.episode import fits, literal_part


@pytest.mark.parametrize(
    ("glob", "path", "wanted"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "srcx/a.py", False),
        ("src/**", "src", False),
        ("src/**/*.py", "src/b.py", True),
        ("src/**/*.py", "src/a/c/b.py", True),
        ("src/**/*.py", "src/a/c/b.txt", False),
        ("a/**/b/**/c", "a/x/b/c", True),
        ("a/**/b/**/c", "a/xb/c", False),
        ("src/*.py", "src/a/b.py", False),
        ("*.py", "a/b.py", True),
        ("**/test_*.py", "a/btest_a.py", False),
        ("web", "web/x/y.ts", True),
        ("web/", "weby/x.ts", False),
        ("a/[bc]?.py", "a/b1.py", True),
        ("a/[!bc]?.py", "a/b1.py", False),
        ("[a-c]/x", "b/x", True),
        ("a[b", "a[b", True),
        ("**", "x/y", True),
        ("./src/**", "./src/a", True),
        ("src/**", "/home/ines/waybill/src/a.py", True),
        ("src/**", "/home/ines/waybill/web/a.py", False),
        ("", "x", False),
        ("x" * 301, "x" * 301, False),
        ("pages/[id].tsx", "pages/[id].tsx", True),
        ("*-[a-]?.p*y", "x/1--z.pyy", True),
        ("[!a]", "a", False),
        ("[z-a]", "b", False),
        ("[^&&~~||]x", "]x", True),
        ("a**b/c", "axxb/c", True),
        ("a**b/c", "a/b/c", False),
    ],
)
def test_a_glob_fits_what_people_mean(glob: str, path: str, wanted: bool) -> None:
    """Stars stay within a folder, two cross them, and a folder stands for what is in it (P3)."""
    assert fits(glob, path) is wanted


@pytest.mark.parametrize(
    ("glob", "path", "wanted"),
    [
        ("src/*.py", "shop/src/a.py", True),
        ("src/**", "src", False),
        ("src", "lib/src/x/y", True),
        ("/src/a", "src/a", True),
    ],
)
def test_a_glob_may_begin_anywhere(glob: str, path: str, wanted: bool) -> None:
    """What a rule is about may be named from further up than its glob is written (P4)."""
    assert fits(glob, path, anywhere=True) is wanted


@given(glob=st.text("ab.*?[]!-/", max_size=14), path=st.text("ab.[]-/", min_size=1, max_size=14))
def test_what_every_path_holds_is_in_it(glob: str, path: str) -> None:
    """The piece by which paths are looked for is in each that is meant; whatever the glob, there is an answer."""
    if fits(glob, path, anywhere=True):
        assert literal_part(glob) in path


def test_no_glob_takes_long() -> None:
    """A scope that was made to be tried forever is answered soon (L7)."""
    began = time.process_time()
    assert not fits("*a" * 150, "a" * 500 + "b")
    assert not fits("**/" * 99 + "x", "a/" * 500 + "b" * 300)
    assert time.process_time() - began < 5
