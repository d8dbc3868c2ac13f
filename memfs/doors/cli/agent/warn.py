"""``agent warn``: what a situation brings to mind before a step."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.agent.inject import (
    delivered,
    delivered_text,
    prompt,
    read_prompt,
    situation,
    state_of,
)
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.draft import spoken

if TYPE_CHECKING:
    from memfs.context.deliver import DeliveryResult


@verb("warn", text=delivered_text)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@click.option("--tool", default="", metavar="NAME", help="The tool that is about to be used.")
@prompt
def warn(
    text: tuple[str, ...], files: tuple[str, ...], prompt_file: str | None, max_tokens: int | None, **named: str
) -> DeliveryResult:
    """Print what a situation brings to mind before a step: past failures like it, and rules learned from them.

    TEXT says what is about to be done; '-' reads standard input. Nothing is printed where nothing matches. What was
    told is remembered: 'memfs agent episode record' with the same --file, --agent and --session writes it into the
    episode.

    Examples:
        memfs agent warn --file src/auth.py "change the login"
        memfs agent warn --tool bash "drop the staging database" --json
    """
    state = state_of(spoken(text), files, **named)
    if not (state.context.strip() or state.files or state.tool):
        raise click.UsageError("nothing to go by: say what is about to be done, or name a --file")
    with opened() as workspace, redirect_stdout(sys.stderr):  # what a source of others prints is no context
        told = read_prompt(prompt_file)
        given = workspace.sources.delivery.triggered(state, prompt=told, max_tokens=max_tokens)
        return delivered(workspace, given, "nothing is remembered of situations like this")
