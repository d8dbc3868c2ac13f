"""``help``: the page of memfs, of a group or of a verb."""

from __future__ import annotations

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.output import print_text
from memfs.doors.cli.parser import unknown


@verb("help", json=False)
@click.argument("words", nargs=-1, metavar="[VERB|GROUP]...")
def help(words: tuple[str, ...]) -> None:
    """Show the help of memfs, of a group, or of a verb.

    Examples:
        memfs help
        memfs help recall
        memfs help admin gc
    """
    found = click.get_current_context().find_root()
    for word in words:
        if word.startswith("-") or not isinstance(found.command, click.Group):
            break
        command = found.command.get_command(found, word)
        if command is None:
            raise unknown(word, found.command.list_commands(found), found)
        found = click.Context(command, found, word)
    print_text(found.get_help())
