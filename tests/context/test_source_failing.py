"""Failures of sources are counted, also across processes (P2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfs.context.plugin_failures import FailureBook, Failures


class Clock:
    """A clock of the test's own."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_processes_share_what_they_count(tmp_path: Path) -> None:
    """A hook that lives for one question leaves its count to the next; one that answers sets the source free."""
    path, clock = tmp_path / "sources.json", Clock()
    for _ in range(3):
        FailureBook(path, clock).failed("todo", "it hangs")
    later = FailureBook(path, clock)
    assert later.paused("todo") == "it is paused for 60 s after 3 failures in a row, the last: it hangs"
    assert later.of("todo") == Failures(total=3, in_a_row=3, until=1060.0, reason="it hangs")
    later.worked("todo")
    assert FailureBook(path, clock).paused("todo") == ""
    assert FailureBook(path, clock).of("todo").total == 3


def test_pauses_grow_up_to_an_hour() -> None:
    """The longer it fails, the more seldom it is tried."""
    clock = Clock()
    book, pauses = FailureBook(now=clock), []
    for _ in range(12):
        book.failed("todo", "down")
        pauses.append(book.of("todo").until - clock.now if book.of("todo").until else 0.0)
    assert pauses == [0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]


def test_a_clock_that_was_set_back_keeps_no_source_away() -> None:
    """What was noted under a wrong clock counts not: else a source were paused until the clock is there again."""
    clock = Clock()
    book = FailureBook(now=clock)
    for _ in range(3):
        book.failed("todo", "down")
    clock.now -= 10**8
    assert book.paused("todo") == ""
    book.failed("todo", "down")
    assert "paused for 120 s" in book.paused("todo")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"todo": 3}', '{"todo": {"total": "x"}}', '{"todo": {"total": 1e400}}', "\0", '{"todo": null}'],
)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, text: str) -> None:
    """The counts are a cache: garbage in it pauses nobody and breaks nothing."""
    path = tmp_path / "sources.json"
    path.write_text(text)
    book = FailureBook(path)
    assert book.paused("todo") == ""
    book.failed("todo", "down")
    assert json.loads(path.read_text())["todo"]["total"] == 1


def test_without_a_place_to_write_a_process_counts_alone(tmp_path: Path) -> None:
    """A full disk or a folder that is gone keeps nobody from asking."""
    book = FailureBook(tmp_path / "gone" / "sources.json")
    for _ in range(3):
        book.failed("todo", "down")
    assert book.paused("todo")


def test_no_text_of_an_error_is_written(tmp_path: Path) -> None:
    """An error may quote what is remembered; only its name outlives the process, so that an erase leaves nothing."""
    path = tmp_path / "sources.json"
    FailureBook(path).failed("todo", "ValueError: cannot parse 'hunter2'")
    assert "hunter2" not in path.read_text()
    assert FailureBook(path).of("todo").reason == "ValueError"


def test_success_writes_nothing(tmp_path: Path) -> None:
    """A source that works leaves no trace and costs no write."""
    path = tmp_path / "sources.json"
    FailureBook(path).worked("todo")
    assert not path.exists()
