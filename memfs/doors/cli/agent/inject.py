"""``agent inject``: what belongs into the system prompt of an agent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, options, verb
from memfs.doors.cli.draft import standard_input
from memfs.doors.cli.options import land
from memfs.doors.cli.output import TEXT_ONLY, Block, Note, count, merge

if TYPE_CHECKING:
    from memfs.context.deliver import DeliveryResult
    from memfs.model import Problem
    from memfs.model.episode import StateSnapshot
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


@dataclass(frozen=True, slots=True)
class DeliveredMemory:
    """What an agent is to be told, as quoted data.

    Attributes:
        given: the text, its parts, and what is not in it.
        problems: what keeps sources from having their say.
        nothing: what to say where nothing is told.
    """

    given: DeliveryResult = field(metadata=merge("text texts ids repeated left_out"))
    problems: tuple[Problem, ...]
    nothing: str = field(metadata=TEXT_ONLY)

    @classmethod
    def of(cls, workspace: Workspace, given: DeliveryResult, nothing: str) -> DeliveredMemory:
        """What was put together, with what sources lack: trust, something to run, success."""
        problems = tuple(dict.fromkeys((*workspace.sources.plugins.problems(), *given.problems)))
        return cls(given, problems, nothing)


def delivered_text(delivered: DeliveredMemory) -> Iterator[Block | Note]:
    """The text, and what it lacks."""
    given = delivered.given
    if given.texts:
        yield Block(given.text)
    if given.left_out:
        yield Note(f"{count(given.left_out, 'entry', 'entries')} had no room; --max-tokens gives more")
    for problem in delivered.problems:
        yield Note(f"{problem.message}; {problem.hint}")
    if not given.texts and not given.left_out:
        told = f"what is remembered is told already: {', '.join(given.repeated)}"
        yield Note(told if given.repeated else delivered.nothing)


def state_of(text: str, files: tuple[str, ...], tool: str = "", **named: Any) -> StateSnapshot:
    """The situation that the options tell."""
    from memfs.model.episode import StateSnapshot  # --help does without it

    return StateSnapshot.create(files, text, tool=tool, **named)


def spoken(words: tuple[str, ...]) -> str:
    """What was written on the command line; '-' reads standard input."""
    if words[:1] != ("-",):
        return " ".join(words)
    if len(words) > 1:
        raise click.UsageError("'-' reads the text from standard input: leave out the other words")
    return standard_input().rstrip("\r\n")


def read_prompt(path: str | None) -> str:
    """The prompt in a file; '-' is standard input."""
    if path is None:
        return ""
    if path == "-":
        return standard_input()
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST_PROMPT + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise click.BadParameter(f"{path}: {reason}", param_hint="--prompt-file") from error
    if len(data) > _LARGEST_PROMPT:
        reason = f"more than {_LARGEST_PROMPT >> 20} MiB, which no model reads"
        raise click.BadParameter(f"{path}: {reason}", param_hint="--prompt-file")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


@verb(
    "inject",
    text=delivered_text,
    example="memfs agent inject\nmemfs agent inject --agent coder --prompt-file system.txt --max-tokens 600\n"
    'memfs agent inject --file src/auth.py "change the login" --json',
)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@prompt
def inject(
    text: tuple[str, ...], files: tuple[str, ...], prompt_file: str | None, max_tokens: int | None, **named: str
) -> DeliveredMemory:
    """Print what belongs into the system prompt of an agent: the automatic memory, as quoted data.

    TEXT says what the work is about, where that is known: preferences that fit it come first; '-' reads standard input.
    What CLAUDE.md, AGENTS.md or --prompt-file says already is left out. Nothing is printed where there is nothing to
    say.
    """
    state = state_of(spoken(text), files, **named)
    with opened() as workspace, redirect_stdout(sys.stderr):  # what a source of others prints is no context
        told = read_prompt(prompt_file)
        given = workspace.sources.delivery.automatic(state, prompt=told, max_tokens=max_tokens)
        if named["agent"]:
            land(workspace)  # that it was given feedback is recorded
        nothing = "nothing is remembered that belongs into every prompt"
        return DeliveredMemory.of(workspace, given, nothing)
