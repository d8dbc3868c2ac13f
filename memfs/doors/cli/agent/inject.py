"""``agent inject``: what belongs into the system prompt of an agent."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import replace
from memfs.doors.cli.command import Unclear, opened, options, remark, verb
from memfs.doors.cli.draft import spoken
from memfs.doors.cli.options import land
from memfs.doors.cli.output import Block, Text, count
from memfs.doors.cli.streams import read_named
from memfs.errors import StorageIO
from memfs.model.episode import StateSnapshot

if TYPE_CHECKING:
    from memfs.context.deliver import DeliveryResult
    from memfs.workspace import Workspace

_LARGEST_PROMPT = 8 << 20
situation = options(
    click.option("--file", "files", multiple=True, metavar="PATH", help="A file that the work is about; repeatable."),
    click.option("--agent", default="", metavar="NAME", help="The agent that works."),
    click.option("--session", default="", metavar="NAME", help="The session it works in."),
    click.option("--task", default="", metavar="NAME", help="The task it works at."),
)
"""Give a verb the options that tell the situation an agent is in."""
prompt = options(
    click.option("--prompt-file", metavar="PATH", help="What the agent is told already: what it says is left out."),
    click.option("--max-tokens", type=click.IntRange(0, 10**7), metavar="N", help="The most tokens; 0: no bound."),
)
"""Give a verb the options that tell what a prompt says, and what room it has."""


def delivered(workspace: Workspace, given: DeliveryResult, nothing: str) -> DeliveryResult:
    """What was put together, with what sources lack: trust, something to run, success; all that it lacks is remarked.

    Args:
        nothing: what to say where nothing is told.
    """
    problems = tuple(dict.fromkeys((*workspace.sources.plugins.problems(), *given.problems)))
    if given.left_out:
        remark(f"{count(given.left_out, 'entry', 'entries')} had no room; --max-tokens gives more")
    for problem in problems:
        remark(f"{problem.message}; {problem.hint}")
    if not given.texts and not given.left_out:
        told = f"what is remembered is told already: {', '.join(given.repeated)}"
        remark(told if given.repeated else nothing)
    return replace(given, problems=problems)


def delivered_text(given: DeliveryResult) -> Text:
    """The text."""
    if given.texts:
        yield Block(given.text)


def state_of(text: str, files: tuple[str, ...], **named: Any) -> StateSnapshot:
    """The situation that the options tell."""

    return StateSnapshot.create(files, text, **named)


def read_prompt(path: str | None) -> str:
    """The prompt in a file; '-' is standard input.

    Raises:
        Unclear: it cannot be read, or no model reads as much.
    """
    try:
        data = b"" if path is None else read_named(path, _LARGEST_PROMPT + 1)
    except StorageIO as error:
        raise Unclear(f"--prompt-file {path}: {error.message}") from error
    if len(data) > _LARGEST_PROMPT:
        raise Unclear(f"--prompt-file {path}: more than {_LARGEST_PROMPT >> 20} MiB, which no model reads")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


@verb("inject", text=delivered_text)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@prompt
def inject(
    text: tuple[str, ...], files: tuple[str, ...], prompt_file: str | None, max_tokens: int | None, **named: str
) -> DeliveryResult:
    """Print what belongs into the system prompt of an agent: the automatic memory, as quoted data.

    TEXT says what the work is about, where that is known: preferences that fit it come first; '-' reads standard input.
    What CLAUDE.md, AGENTS.md or --prompt-file says already is left out. Nothing is printed where there is nothing to
    say.

    Examples:
        memfs agent inject
        memfs agent inject --agent coder --prompt-file system.txt --max-tokens 600
        memfs agent inject --file src/auth.py "change the login" --json
    """
    state = state_of(spoken(text), files, **named)
    with opened() as workspace, redirect_stdout(sys.stderr):  # what a source of others prints is no context
        told = read_prompt(prompt_file)
        given = workspace.sources.delivery.automatic(state, prompt=told, max_tokens=max_tokens)
        if named["agent"]:
            land(workspace)  # that it was given feedback is recorded
        return delivered(workspace, given, "nothing is remembered that belongs into every prompt")
