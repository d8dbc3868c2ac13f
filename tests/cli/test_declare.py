"""Plain command lines are read without click, and as click reads them."""

from __future__ import annotations

import shlex

import click
import pytest

from memfs.doors.cli.app import PLAIN
from memfs.doors.cli.command import Invocation, VerbDeclaration
from memfs.doors.cli.parser import VerbCommand, cli

LINES = [
    "recall",
    "recall login bug",
    "recall 'login bug' -n 3 --type semantic --type episodic --since=7d --json",
    "recall -- -x --json",
    "recall - --context a=b --no-dedupe --explain --own --budget=800 -C place",
    "recall '' --layer semantic --phase refine --path notes --until ''",
    "list",
    "list --limit 10000 --archived --tag a --tag=b --as-of HEAD~3 -n 1",
    "show an-id@HEAD --raw --json",
    "status --all --workspace=somewhere",
    "remember",
    "remember some words --title '' --tag a --id b --unpin --edit",
    "remember a --pin --review --data a=b --context c=d --agent coder",
]
ODD = [
    "recall a --limit 0",
    "recall a --limit=ten",
    "recall a -n5",
    "recall a --deadline 3",
    "recall a --set index.engine=sqlite",
    "recall a --layer nowhere",
    "recall a --nonsense",
    "recall a --type",
    "recall a --type --json",
    "recall a --json=1",
    "recall --help",
    "list words",
    "show",
    "show one two",
    "status -h",
    "remember a --allow-secret 'it is none'",
]


def verb_of(line: str) -> tuple[VerbCommand, VerbDeclaration, list[str]]:
    """The command, what it was declared as, and the words after its name."""
    name, *words = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, VerbCommand)
    return command, command.verb, words


@pytest.mark.parametrize("line", LINES)
def test_plain_words_are_read_as_click_reads_them(line: str) -> None:
    """Each argument and option has the value that click gives it, and ``-C`` is taken, too."""
    command, declared, words = verb_of(line)
    asked, parsed = Invocation(json="--json" in words), Invocation(json="--json" in words)
    with command.make_context(declared.name, list(words), obj=parsed) as context:
        assert declared.read(words, asked) == context.params
    assert asked.workspace == parsed.workspace


@pytest.mark.parametrize("line", ODD)
def test_what_is_more_than_plain_is_left_to_click(line: str) -> None:
    """Mistakes, help, settings and numbers that are not whole: one place knows what to say of them."""
    _, declared, words = verb_of(line)
    assert declared.read(words, Invocation()) is None


def test_the_everyday_verbs_are_among_them() -> None:
    """What is asked and answered every day is read without click."""
    assert {"recall", "list", "show", "status", "remember"} <= PLAIN
