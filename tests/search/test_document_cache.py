"""The documents kept of files met before: each is that of the content asked for, or none."""

from __future__ import annotations

from pathlib import Path

from memfs.model import Problem
from memfs.search.revision_index import DocumentCache


def named(path: str, name: str) -> Problem:
    """Something to keep that tells itself apart."""
    return Problem(path=path, code="ItemSyntaxError", message=name, line=1, hint="")


def test_b1_files_that_exchanged_their_contents_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """A document is found by path and content together, in a revision as in any other (B1)."""
    cache = DocumentCache(tmp_path, "rules")
    cache.keep([("one", "blob1", named("one", "one as 1")), ("two", "blob2", named("two", "two as 2"))])
    assert cache.found({"one": "blob2", "two": "blob1"}) == {}
    cache.keep([("one", "blob2", named("one", "one as 2"))])
    assert cache.found({"one": "blob2", "two": "blob2"}) == {
        "one": named("one", "one as 2"),
        "two": named("two", "two as 2"),
    }
    cache.close()


def test_b1_what_other_rules_made_is_not_found(tmp_path: Path) -> None:
    """Another version of memfs, or of its rules, begins anew; what it keeps replaces what was there (B1)."""
    old, new = DocumentCache(tmp_path, "old rules"), DocumentCache(tmp_path, "new rules")
    old.keep([("one", "blob1", named("one", "by the old"))])
    assert new.found({"one": "blob1"}) == {}
    new.keep([("two", "blob2", named("two", "by the new"))])
    assert new.found({"one": "blob1", "two": "blob2"}) == {"two": named("two", "by the new")}
    assert old.found({"one": "blob1"}) == {}
    old.close()
    new.close()


def test_b1_beyond_its_bound_it_is_started_over(tmp_path: Path) -> None:
    """It is a cache: it does not grow with every revision that is asked (B1)."""
    cache = DocumentCache(tmp_path, "rules", most_bytes=60_000)
    for number in range(20):
        cache.keep([(f"file{number}", f"blob{number}", named(f"file{number}", "x" * 5_000))])
    found = cache.found({f"file{number}": f"blob{number}" for number in range(20)})
    assert "file19" in found
    assert "file0" not in found
    cache.close()
