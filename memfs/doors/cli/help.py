"""``help``: the page of memfs, of a group or of a verb, and where verbs of earlier versions are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from memfs.doors.cli.command import Unclear, verb
from memfs.doors.cli.output import print_raw

MOVED: Mapping[str, str] = {
    "add": "memfs remember",
    "search": "memfs recall",
    "doctor": "memfs check",
    "repair": "memfs check --fix",
    "rollback": "memfs restore",
    "recover": "memfs restore",
    "stats": "memfs status",
    "usage": "memfs status",
    "private": "memfs status",
    "feedback": "memfs update",
    "edit": "memfs update",
    "new": "memfs remember",
    "patterns": "memfs inbox",
    "consolidate": "memfs inbox",
    "context": "memfs agent context",
    "inject": "memfs agent inject",
    "warn": "memfs agent warn",
    "episode": "memfs agent episode",
    "correct": "memfs agent correct",
    "install": "memfs agent install",
    "uninstall": "memfs agent uninstall",
    "agents-md": "memfs team agents-md",
    "conflicts": "memfs team conflicts",
    "resolve": "memfs team conflicts",
    "convention": "memfs team convention",
    "branch": "memfs team branch",
    "blame": "memfs team blame",
    "bisect": "memfs team bisect",
    "verify": "memfs team verify",
    "served": "memfs team access",
    "iteration": "memfs state iteration",
    "checkpoint": "memfs state checkpoint",
    "feedback-for": "memfs state feedback",
    "analyze": "memfs state analyze",
    "trends": "memfs state trends",
    "aggregates": "memfs state aggregates",
    "backup": "memfs admin backup create",
    "cleanup": "memfs admin gc",
    "maintain": "memfs admin gc",
    "watch": "memfs serve",
    "reindex": "memfs admin reindex",
    "erase": "memfs admin erase",
    "prune": "memfs admin prune",
    "archive": "memfs admin archive",
    "trust": "memfs admin trust",
    "plugins": "memfs admin plugins",
    "schema": "memfs admin schema",
    "migrate": "memfs admin migrate",
    "completion": "memfs admin completion",
}
"""Where to find what an earlier version had at the top level; one entry counts as soon as its verb is gone there."""


def unknown(name: str, known: Iterable[str], ctx: click.Context) -> click.UsageError:
    """What to say of a verb that does not exist: its new place, the nearest name, or where all are listed."""
    at_top = ctx.parent is None
    if at_top and name in MOVED:
        return Unclear(f"'memfs {name}' is now '{MOVED[name]}'", f"see 'memfs help {MOVED[name].split(' ', 1)[1]}'")
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"'{ctx.command_path} --help' lists them"
    return click.UsageError(f"there is no verb '{name}' ({hint})", ctx)


@verb("help", example="memfs help\nmemfs help recall\nmemfs help admin gc", json=False)
@click.argument("words", nargs=-1, metavar="[VERB|GROUP]...")
@click.pass_context
def help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of memfs, of a group, or of a verb."""
    found = ctx.find_root()
    for word in words:
        if word.startswith("-") or not isinstance(found.command, click.Group):
            break
        command = found.command.get_command(found, word)
        if command is None:
            raise unknown(word, found.command.list_commands(found), found)
        found = click.Context(command, found, word)
    for line in found.get_help().split("\n"):
        print_raw(line)
