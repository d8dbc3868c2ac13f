"""Paths of pages have one spelling, and an id each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.doors.anthropic import clean, page_id, path_of
from memfs.errors import IdInvalid, PathEscape
from memfs.model import MemoryItem
from memfs.model.ids import check_id


@pytest.mark.parametrize(
    ("path", "tidy"),
    [("", ""), ("/", ""), ("a//b/", "a/b"), ("./a/../b", "b"), ("a/..", ""), (".a/%2e%2e", ".a/%2e%2e")],
)
def test_a_path_has_one_spelling(path: str, tidy: str) -> None:
    """Empty parts, dots and slashes at the ends are not part of it."""
    assert clean(path) == tidy


@pytest.mark.parametrize("path", ["..", "a/../..", "/../a"])
def test_no_path_leads_above_the_root(path: str) -> None:
    """Faults row 13."""
    with pytest.raises(PathEscape):
        clean(path)


@pytest.mark.parametrize("path", ["a\nb", "a\0", "\x85", "x" * 301, "é" * 128])
def test_what_cannot_be_shown_on_a_line_or_is_too_long_is_refused(path: str) -> None:
    """A name in a listing is one line, and could be a file's."""
    with pytest.raises(IdInvalid):
        clean(path)


@given(st.text(max_size=40))
def test_a_clean_path_stays_and_gives_an_id(path: str) -> None:
    """Whatever is accepted is accepted again as it is, and its id is safe everywhere."""
    try:
        tidy = clean(path)
    except (PathEscape, IdInvalid):
        return
    assert clean(tidy) == tidy
    check_id(page_id(tidy))
    check_id(page_id(tidy, 3))


def test_ids_differ_as_paths_do() -> None:
    """Upper and lower case too, which a file system may take for the same."""
    names = {page_id(path).casefold() for path in ("a.md", "A.md", "a-md", "b/a.md", "a/md")}
    assert len(names) == 5


def test_a_title_that_is_not_a_path_leaves_the_id() -> None:
    """Every page has a path."""
    titles = ["a/b.md", "../up", "/abs", "a//b", "", "tab\there"]
    assert [path_of(MemoryItem("x", "note", id="id", title=title)) for title in titles] == ["a/b.md", *["id"] * 5]


def test_a_path_is_no_longer_than_a_title() -> None:
    """Short names in many folders make a path that is too long as well."""
    assert clean("/".join(["a" * 99] * 3)) == "/".join(["a" * 99] * 3)
    with pytest.raises(IdInvalid, match="too long"):
        clean("/".join(["a" * 100] * 3))
