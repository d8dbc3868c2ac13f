"""What is printed: escapes, tables, JSON, errors."""

from __future__ import annotations

import json

import pytest

from memfs.adapters.cli import output
from memfs.errors import SchemaInvalid
from memfs.model import Link, MemoryItem, Origin, Problem


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("back\rwards\x7f", "back\\x0dwards\\x7f"),
        ("c1 \x9b31m", "c1 \\x9b31m"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
        ("join\u200ded", "join\\u200ded"),
        ("\u200c\u200d\u200c", "\\u200c\\u200d\\u200c"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown_as_an_escape(text: str, shown: str) -> None:
    """Control, bidi, zero-width and tag characters never reach a terminal as they are (row 17)."""
    assert output.clean(text) == shown


@pytest.mark.parametrize("text", ["line\n\tindented", "Grüße, 世界", "👩\u200d👩\u200d👧", "نمی\u200cخواهم", "❤️"])
def test_real_text_is_shown_as_it_is(text: str) -> None:
    """Newlines, tabs, other scripts and joined emoji are nobody's attack."""
    assert output.clean(text) == text


def test_one_line_folds_and_cuts() -> None:
    """Whitespace becomes single blanks, and what is too long ends in an ellipsis."""
    assert output.one_line("a\n  b\tc") == "a b c"
    assert output.one_line("abcdefgh", 5) == "abcd…"
    assert output.one_line("abcde", 5) == "abcde"


def test_a_table_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are as wide as their widest cell, and no line ends in blanks."""
    output.print_table([("a", "bb", "c"), ("aaa", "b", "")])
    assert capsys.readouterr().out == "a    bb  c\naaa  b\n"


def test_an_empty_table_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """No rows, no output."""
    output.print_table([])
    assert capsys.readouterr().out == ""


def test_json_hides_nothing_and_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Hidden characters are JSON escapes; other scripts stay readable; the value survives."""
    value = {"text": "Grüße \u202e\x1b\U000e0041 \ud800"}
    output.print_json(value)
    printed = capsys.readouterr().out
    assert "Grüße" in printed
    assert all(character not in printed for character in "\u202e\x1b\U000e0041\ud800")
    assert json.loads(printed) == value


def test_an_error_is_one_line_with_its_place_and_its_hint_below(capsys: pytest.CaptureFixture[str]) -> None:
    """memfs: place: field: message, then what to do."""
    output.write_error(SchemaInvalid("not a text", path="a.yaml", line=3, column=7, field="tags.1", hint="quote it"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "memfs: a.yaml:3:7: tags.1: not a text\n  quote it\n"


def test_an_item_is_shown_whole_as_json() -> None:
    """Every field of an item is there, mappings and tuples as JSON knows them."""
    item = MemoryItem(
        "text",
        id="x",
        tags=("a",),
        timestamp="2026-03-01",  # type: ignore[arg-type]
        origin=Origin(agent="coder", sequence=0),
        links=(Link(to="y"),),
        data={"steps": ("one", {"n": 2})},
    )
    shown = output.item_json(item)
    assert json.loads(json.dumps(shown)) == shown
    assert shown["timestamp"] == "2026-03-01T00:00:00Z"
    assert shown["origin"] == {"agent": "coder", "sequence": 0}
    assert shown["links"] == [{"to": "y", "relation": "relates"}]
    assert shown["data"] == {"steps": ["one", {"n": 2}]}


def test_a_problem_is_printed_with_place_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """A person sees where, how bad, what, and what to do; scripts get the contract's keys."""
    problem = Problem(path="a.yaml", code="SchemaInvalid", message="no content", line=2, hint="write some")
    output.print_problem(problem)
    assert capsys.readouterr().out == "a.yaml:2: error: no content\n  write some\n"
    assert {"path", "line", "code", "message", "hint"} <= output.problem_json(problem).keys()


@pytest.mark.parametrize(("number", "shown"), [(0, "0 items"), (1, "1 item"), (12345, "12,345 items")])
def test_counting_in_words(number: int, shown: str) -> None:
    """One is singular, and long numbers are readable."""
    assert output.count(number, "item") == shown


def test_progress_is_silent_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs and pipes get no bars."""
    with output.progress("Working") as step:
        step(1, 2)
        step(2, 2)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_styles_need_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours appear on a terminal only, and NO_COLOR turns them off there."""
    assert output.styled("x", fg="red") == "x"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert output.styled("x\x1b", fg="red") == "\x1b[31mx\\x1b\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.styled("x", fg="red") == "x"
