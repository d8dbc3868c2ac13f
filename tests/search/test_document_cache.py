"""The documents kept of files met before: each is that of the content asked for, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memfs.catalog.facts import Catalog
from memfs.model import Problem
from memfs.team.asof import DocumentCache


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """That of a repository."""
    made = Catalog(tmp_path)
    yield made
    made.close()


def named(path: str, name: str) -> Problem:
    """Something to keep that tells itself apart."""
    return Problem(path=path, code="ItemSyntaxError", message=name, line=1, hint="")


def test_b1_files_that_exchanged_their_contents_are_not_taken_for_each_other(catalog: Catalog) -> None:
    """A document is found by path and content together, in a revision as in any other (B1)."""
    cache = DocumentCache(catalog, "rules")
    cache.keep([("one", "blob1", named("one", "one as 1")), ("two", "blob2", named("two", "two as 2"))])
    assert cache.found({"one": "blob2", "two": "blob1"}) == {}
    cache.keep([("one", "blob2", named("one", "one as 2"))])
    assert cache.found({"one": "blob2", "two": "blob2"}) == {
        "one": named("one", "one as 2"),
        "two": named("two", "two as 2"),
    }


def test_b1_what_other_rules_made_is_not_found(catalog: Catalog) -> None:
    """Another version of memfs, or of its rules, finds only what it made itself (B1)."""
    old, new = DocumentCache(catalog, "old rules"), DocumentCache(catalog, "new rules")
    old.keep([("one", "blob1", named("one", "by the old"))])
    assert new.found({"one": "blob1"}) == {}
    new.keep([("two", "blob2", named("two", "by the new"))])
    assert new.found({"one": "blob1", "two": "blob2"}) == {"two": named("two", "by the new")}
    assert old.found({"one": "blob1"}) == {"one": named("one", "by the old")}
