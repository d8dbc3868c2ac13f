"""The page on reliability names tests that exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"`pytest ([^`]+)`")
TIER = re.compile(r"^\| ((?:`test_\w+`(?:, )?)+) \|", re.MULTILINE)
Read = Callable[[str], str]


def words_of(expression: str) -> list[str]:
    """The words of a ``-k`` expression."""
    return [word for word in re.findall(r"\w+", expression) if word not in ("and", "or", "not")]


def test_every_command_of_the_loss_table_finds_tests(page: Read) -> None:
    """Each reproduces something: its files are there, and every word it selects by is in a name of theirs."""
    commands = COMMAND.findall(page("docs/reliability.md"))
    assert len(commands) > 20
    for command in commands:
        files, _, chosen = command.partition(" -k ")
        texts = [(ROOT / name).read_text(encoding="utf-8") for name in files.split()]
        names = "\n".join(texts)
        missing = [word for word in words_of(chosen) if word not in names]
        assert not missing, f"{command}: {missing}"


def test_every_fault_tier_is_on_the_page(page: Read) -> None:
    """What is in tests/faults is reported, and what is reported is there or among the property tests."""
    named = {name for row in TIER.findall(page("docs/reliability.md")) for name in re.findall(r"test_\w+", row)}
    there = {path.stem for path in (ROOT / "tests/faults").glob("test_*.py")}
    properties = {path.stem for path in (ROOT / "tests/property").glob("test_*.py")}
    assert there - named <= {"test_kit", "test_git_situations", "test_hostile_content"}
    assert named <= there | properties
