"""The commands that memfs names: in its hints, its help and its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

import memfs
from memfs.doors.cli.app import GROUPS, VERBS
from memfs.doors.cli.parser import Actions, cli

PACKAGE = Path(memfs.__file__).parent
PAGES = PACKAGE.parent / "docs"
NAMED = re.compile(r"memfs (?:-C \S+ )?([a-z][a-z-]+)((?: [^'\"`;,:()|\\\n]+)?)")
OPTION = re.compile(r"(?<=\s)--?[a-zA-Z][a-z-]*")
EVERYWHERE = {"-h", "--help", "-C", "--workspace", "--set"}


def options_of(words: list[str]) -> set[str]:
    """Every option that may be typed behind a verb, or behind one of a group, or behind one of its actions."""
    command: click.Command = cli
    context = click.Context(cli)
    for word in words:
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            break
        command, context = inner, click.Context(inner, context, word)
    if isinstance(command, Actions):  # without one of its actions the first is meant
        command = command.commands[command.first]
    return EVERYWHERE.union(*(parameter.opts for parameter in command.params))


def unknown(path: Path) -> Iterator[str]:
    """The commands in a file that name an option which their verb does not have."""
    for named in NAMED.finditer(path.read_text(encoding="utf-8")):
        verb, rest = named[1], named[2]
        known = verb in VERBS or verb in GROUPS
        if known and not options_of([verb, *rest.split()]).issuperset(OPTION.findall(rest)):
            yield f"{path.name}: {named[0]}"


def test_every_command_that_is_named_has_the_options_it_is_named_with() -> None:
    """Anyone who types what a hint, an example or a page says is understood."""
    files = [*PACKAGE.rglob("*.py"), *PAGES.rglob("*.md"), PACKAGE.parent / "README.md"]
    assert [one for path in sorted(files) for one in unknown(path)] == []
