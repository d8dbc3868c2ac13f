"""A tally counts what several processes note, and never fails."""

from __future__ import annotations

from pathlib import Path

from memfs.fs.append_log import SharedCounter


def test_what_is_noted_by_any_is_counted_until_it_is_taken_off(tmp_path: Path) -> None:
    """Two that count in one file count together."""
    one, other = SharedCounter(tmp_path / "count"), SharedCounter(tmp_path / "count")
    for tally in (one, other, one):
        tally.add()
    assert other.count() == 3
    one.take_off(2)
    assert other.count() == 1
    other.take_off(5)
    assert one.count() == 0


def test_where_nothing_can_be_kept_nothing_is_counted(tmp_path: Path) -> None:
    """A folder in the place of the file, or none around it, costs the count alone."""
    (tmp_path / "count").mkdir()
    for path in (tmp_path / "count", tmp_path / "missing" / "count"):
        tally = SharedCounter(path)
        tally.add()
        tally.take_off(1)
    assert SharedCounter(tmp_path / "missing" / "count").count() == 0
