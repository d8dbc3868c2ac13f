"""What is printed: escapes, tables, JSON, errors."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from memfs.doors.cli import output
from memfs.errors import SchemaInvalid
from memfs.model import Link, MemoryItem, Origin, Problem

FORGED = "x\nmemfs: trusted\r\x1b[2J\u202e\u2028\x85\v::error::y"
SHOWN = "x\\nmemfs: trusted\\u{D}\\u{1B}[2J\\u{202E}\\u{2028}\\u{85}\\u{B}::error::y"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", "\\u{1B}[31mred\\u{7}"),
        ("back\rwards\x7f", "back\\u{D}wards\\u{7F}"),
        ("c1 \x9b31m", "c1 \\u{9B}31m"),
        ("abc\u202edcba", "abc\\u{202E}dcba"),
        ("zero\u200bwidth\ufeff", "zero\\u{200B}width\\u{FEFF}"),
        ("tag\U000e0041", "tag\\u{E0041}"),
        ("lone\ud800", "lone\\u{D800}"),
        ("join\u200ded", "join\\u{200D}ed"),
        ("\u200c\u200d\u200c", "\\u{200C}\\u{200D}\\u{200C}"),
        ("two\nlines", "two\\nlines"),
        (FORGED, SHOWN),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown_as_an_escape(text: str, shown: str) -> None:
    """Line ends, control, bidi, zero-width and tag characters never reach a terminal as they are (row 17)."""
    assert output.clean(text) == shown


@pytest.mark.parametrize("text", ["\tindented", "Grüße, 世界", "👩\u200d👩\u200d👧", "نمی\u200cخواهم", "❤️"])
def test_real_text_is_shown_as_it_is(text: str) -> None:
    """Tabs, other scripts and joined emoji are nobody's attack."""
    assert output.clean(text) == text


def _hostile() -> SchemaInvalid:
    return SchemaInvalid(FORGED, path=FORGED, field=FORGED, hint=FORGED)


@pytest.mark.parametrize(
    ("say", "lines"),
    [
        (lambda: output.print_raw(FORGED), 1),
        (lambda: output.print_raw(f"a {output.styled(FORGED, fg='red')} b"), 1),
        (lambda: output.print_table([(FORGED, FORGED), ("a", "b")], dim=(0,)), 2),
        (lambda: output.print_problem(Problem(path=FORGED, code="x", message=FORGED, hint=FORGED)), 2),
        (lambda: output.note(FORGED), 1),
        (lambda: output.note(FORGED, FORGED), 2),
        (lambda: output.write_error(_hostile()), 2),
        (lambda: output.print_text(FORGED, "  "), 2),
        (lambda: output.print_json({FORGED: FORGED}, indent=None), 1),
        (lambda: output.render(None, [output.partial_note([FORGED])], json=False), 1),
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_from_outside_forges_a_line(
    say: Callable[[], None],
    lines: int,
    terminal: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is printed, it has as many lines as memfs meant, and no escape that memfs did not make (row 17)."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    say()
    captured = capsys.readouterr()
    printed = captured.out + captured.err
    assert len(printed.splitlines()) == lines
    assert all(sign not in printed for sign in ("\x1b[2J", "\u202e", "\r"))


@pytest.mark.parametrize("colour", ["\x1b[31m", "\x1b[0m"])
def test_only_our_own_styles_reach_a_terminal(
    colour: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A colour that is in a name is shown as an escape beside one that memfs chose."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    output.print_raw(f"{output.styled('ours', fg='green')} {colour}theirs")
    assert capsys.readouterr().out == f"\x1b[32mours\x1b[0m \\u{{1B}}{colour[1:]}theirs\n"


@pytest.mark.parametrize("text", ["::error::x", "  ::add-mask::x", "a ##[error]x"])
def test_no_line_commands_a_runner_of_workflows(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text from outside is a command in a log of GitHub Actions, in lines, texts and JSON (B4)."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    output.print_raw(text)
    output.print_text(f"x\n{text}", "  ")
    output.print_json(text)
    printed = capsys.readouterr().out
    assert "##[" not in printed
    assert not any(line.lstrip().startswith("::") for line in printed.splitlines())
    assert printed.splitlines()[0] in ("\\u{3A}:error::x", "  \\u{3A}:add-mask::x", "a \\u{23}#[error]x")
    monkeypatch.delenv("GITHUB_ACTIONS")
    output.print_raw(text)
    assert capsys.readouterr().out == f"{text}\n"


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
    shown = output.as_json(item)
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
    assert {"path", "line", "code", "message", "hint"} <= output.as_json(problem).keys()


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
    assert output.styled("x", fg="red") != "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.styled("x", fg="red") == "x"
