"""Small facts about files that every layer needs: times, names, ids of content."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memfs.model.ids import stem_of
from memfs.model.item import object_id
from memfs.model.time import from_timestamp_ns


@pytest.mark.parametrize(
    ("nanoseconds", "moment"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1_793_836_800_500_000_000, datetime(2026, 11, 5, 0, 0, 0, 500_000, tzinfo=UTC)),
        (-1_000_000_000, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_files_time_is_a_point_in_time(nanoseconds: int, moment: datetime) -> None:
    """Nanoseconds since 1970 become UTC, also before 1970."""
    assert from_timestamp_ns(nanoseconds) == moment


@pytest.mark.parametrize(("nanoseconds", "year"), [(10**30, 9999), (2**63 - 1, 2262), (-(10**30), 1)])
def test_a_time_that_no_datetime_can_hold_becomes_the_nearest(nanoseconds: int, year: int) -> None:
    """A file of the year 30000 is read like any other."""
    assert from_timestamp_ns(nanoseconds).year == year


@pytest.mark.parametrize(("path", "stem"), [("a/b/c.yaml", "c"), ("c.x.json", "c.x"), ("c", ""), ("a.b/c.yml", "c")])
def test_the_id_of_a_file_is_its_name_without_suffix(path: str, stem: str) -> None:
    """Folder and last suffix do not belong to it."""
    assert stem_of(path) == stem


def test_content_is_named_as_git_names_it() -> None:
    """The empty blob and the empty tree have the ids every git user knows."""
    assert object_id("blob", b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert object_id("tree", b"") == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
