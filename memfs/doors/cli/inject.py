"""``inject``, ``warn`` and ``correct``: memory for a prompt, warnings before a step, corrections by a person."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.commit_report import SOURCE, land
from memfs.doors.cli.draft import standard_input
from memfs.doors.cli.filters import pair
from memfs.doors.cli.options import allow_secret_option
from memfs.doors.cli.output import clean, count, note, one_line, print_json, print_raw, print_text, problem_json, styled
from memfs.recall.conflict_notes import CONTRADICTS

if TYPE_CHECKING:
    from memfs.context.deliver import DeliveryResult
    from memfs.model import MemoryItem, Problem
    from memfs.model.episode import StateSnapshot
    from memfs.workspace import Workspace

_PASSED_SHOWN = 3
_LARGEST_PROMPT = 8 << 20
_SITUATION = (
    click.option("--file", "files", multiple=True, metavar="PATH", help="A file that the work is about; repeatable."),
    click.option("--agent", default="", metavar="NAME", help="The agent that works."),
    click.option("--session", default="", metavar="NAME", help="The session it works in."),
    click.option("--task", default="", metavar="NAME", help="The task it works at."),
)
_PROMPT = (
    click.option("--prompt-file", metavar="PATH", help="What the agent is told already: what it says is left out."),
    click.option("--max-tokens", type=click.IntRange(0, 10**7), metavar="N", help="The most tokens; 0: no bound."),
)


def situation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that tell the situation an agent is in."""
    for option in reversed(_SITUATION):
        function = option(function)
    return function


def _prompt(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_PROMPT):
        function = option(function)
    return function


def state_of(text: str, files: tuple[str, ...], tool: str = "", **named: Any) -> StateSnapshot:
    """The situation that the options tell."""
    from memfs.model.episode import StateSnapshot  # --help does without it

    return StateSnapshot.create(files, text, tool=tool, **named)


def spoken(ctx: click.Context, words: tuple[str, ...]) -> str:
    """What was written on the command line; '-' reads standard input."""
    if words[:1] != ("-",):
        return " ".join(words)
    if len(words) > 1:
        raise click.UsageError("'-' reads the text from standard input: leave out the other words", ctx)
    return standard_input().rstrip("\r\n")


# -- giving memory ------------------------------------------------------------------------------------------------
@verb(
    "inject",
    example="memfs inject\nmemfs inject --agent coder --prompt-file system.txt --max-tokens 600\n"
    'memfs inject --file src/auth.py "change the login" --json',
)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@_prompt
@click.pass_context
def inject(
    ctx: click.Context,
    /,
    text: tuple[str, ...],
    files: tuple[str, ...],
    prompt_file: str | None,
    max_tokens: int | None,
    as_json: bool,
    **named: str,
) -> None:
    """Print what belongs into the system prompt of an agent: the automatic memory, as quoted data.

    TEXT says what the work is about, where that is known; '-' reads standard input. What CLAUDE.md, AGENTS.md or
    --prompt-file says already is left out.
    """
    state = state_of(spoken(ctx, text), files, **named)
    with opened(ctx) as workspace, redirect_stdout(sys.stderr):  # what a source of others prints is no context
        given = workspace.sources.delivery.automatic(state, prompt=_read(ctx, prompt_file), max_tokens=max_tokens)
        problems = _problems(workspace, given)
        reason = land(workspace, None).reason if named["agent"] else ""  # that it was given feedback is recorded
    _print(given, problems, as_json, "nothing is remembered that belongs into every prompt")
    if reason:
        note(f"recorded; its commit waits: {reason}")


@verb(
    "warn",
    example='memfs warn --file src/auth.py "change the login"\n'
    'memfs warn --tool bash "drop the staging database" --json',
)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@click.option("--tool", default="", metavar="NAME", help="The tool that is about to be used.")
@_prompt
@click.pass_context
def warn(
    ctx: click.Context,
    /,
    text: tuple[str, ...],
    files: tuple[str, ...],
    tool: str,
    prompt_file: str | None,
    max_tokens: int | None,
    as_json: bool,
    **named: str,
) -> None:
    """Print what a situation brings to mind before a step: past failures like it, and rules learned from them.

    TEXT says what is about to be done; '-' reads standard input. Nothing is printed where nothing matches. What was
    told is remembered: 'memfs episode record' with the same --file, --agent and --session writes it into the episode.
    """
    state = state_of(spoken(ctx, text), files, tool, **named)
    if not (state.context.strip() or state.files or state.tool):
        raise click.UsageError("nothing to go by: say what is about to be done, or name a --file", ctx)
    with opened(ctx) as workspace, redirect_stdout(sys.stderr):  # as above
        given = workspace.sources.delivery.triggered(state, prompt=_read(ctx, prompt_file), max_tokens=max_tokens)
        problems = _problems(workspace, given)
    _print(given, problems, as_json, "nothing is remembered of situations like this")


def _read(ctx: click.Context, path: str | None) -> str:
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
        raise click.BadParameter(f"{path}: {reason}", ctx, param_hint="--prompt-file") from error
    if len(data) > _LARGEST_PROMPT:
        reason = f"more than {_LARGEST_PROMPT >> 20} MiB, which no model reads"
        raise click.BadParameter(f"{path}: {reason}", ctx, param_hint="--prompt-file")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _problems(workspace: Workspace, given: DeliveryResult) -> list[Problem]:
    """What kept sources from having their say: for want of trust, unusable, paused, failed."""
    return list(dict.fromkeys((*workspace.sources.plugins.problems(), *given.problems)))


def _print(given: DeliveryResult, problems: list[Problem], as_json: bool, nothing: str) -> None:
    if as_json:
        print_json(
            {
                "text": given.text,
                "texts": list(given.texts),
                "ids": list(given.ids),
                "repeated": list(given.repeated),
                "left_out": given.left_out,
                "problems": [problem_json(problem) for problem in problems],
            }
        )
    elif given.texts:
        print_text(given.text)
    if given.left_out:
        note(f"{count(given.left_out, 'entry', 'entries')} had no room; --max-tokens gives more")
    for problem in problems:
        note(f"{problem.message}; {problem.hint}")
    if not given.texts and not given.left_out and not as_json:
        note("what is remembered is told already: " + ", ".join(given.repeated) if given.repeated else nothing)


# -- taking in what a person says ---------------------------------------------------------------------------------
@verb(
    "correct",
    example='memfs correct "Don\'t use print for logging"\n'
    'memfs correct "No, always run the tests with -x" --speaker Ada --session s42',
)
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--speaker", default="", metavar="NAME", help="Who says so.")
@click.option("--agent", default="", metavar="NAME", help="The agent it is said to.")
@click.option("--session", default="", metavar="NAME", help="The session it is said in.")
@click.option("--task", default="", metavar="NAME", help="The task it is said at.")
@click.option("--context", multiple=True, metavar="KEY=VALUE", help="A circumstance in which it holds; repeatable.")
@click.option("--only-corrections", is_flag=True, help="Keep nothing where no sentence corrects or prefers.")
@allow_secret_option
@click.pass_context
def correct(
    ctx: click.Context,
    /,
    text: tuple[str, ...],
    context: tuple[str, ...],
    only_corrections: bool,
    as_json: bool,
    **known: str,
) -> None:
    """Keep what a person corrects or prefers; agents are told from then on.

    Each sentence of TEXT that corrects or prefers becomes a preference, or else TEXT as a whole. What was said before
    is united with it, and what it contradicts is linked. '-' reads standard input.
    """
    message, circumstances = spoken(ctx, text), dict(pair(written) for written in context)
    with opened(ctx) as workspace:
        preferences = workspace.sources.preferences
        items = preferences.record(message, context=circumstances, whole=not only_corrections, source=SOURCE, **known)
        landed = land(workspace, items[-1] if items else None)
    left = _passed_over(message, items)
    if as_json:
        kept = [_kept_json(item) for item in items]
        print_json({"preferences": kept, "passed_over": left, **landed.json()})
    else:
        _print_kept(items)
        for sentence in left[:_PASSED_SHOWN]:
            note(f"not kept, as it neither corrects nor prefers: {one_line(sentence, 80)}")
        if len(left) > _PASSED_SHOWN:
            note(f"nor were {count(len(left) - _PASSED_SHOWN, 'further sentence')}")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _passed_over(message: str, items: list[MemoryItem]) -> list[str]:
    """The sentences that were not kept; none where nothing was, or the message as a whole."""
    from memfs.learning.corrections import corrections, passed_over

    return list(passed_over(message)) if items and corrections(message) else []


def _kept_json(item: MemoryItem) -> dict[str, Any]:
    return {"id": item.id, "content": item.content, "path": item.path, "contradicts": _against(item)}


def _against(item: MemoryItem) -> list[str]:
    return [link.to for link in item.links if link.relation == CONTRADICTS]


def _print_kept(items: list[MemoryItem]) -> None:
    for item in items:
        print_raw(f"{styled(item.id, fg='green', bold=True)}  {one_line(item.content, 100)}")
        for other in _against(item):
            print_raw(f"  contradicts {clean(other)}: this one is told; 'memfs team conflicts' settles it")
    if not items:
        note("no sentence corrects or prefers: nothing was kept")
