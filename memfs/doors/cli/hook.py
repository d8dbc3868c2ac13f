"""``hook``: answer an event of an agent's session; and what ``status`` and ``check`` say of hooks.

A call in an agent's own form goes straight to ``memfs.doors.claude_code.hook``, without click.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs import private
from memfs.doors.cli.command import invocation, verb
from memfs.doors.cli.declare import click
from memfs.errors import MemfsError
from memfs.fs import append_log
from memfs.startup import TYPE_CHECKING

if TYPE_CHECKING:
    from memfs.model import Problem
    from memfs.workspace import Workspace

_KEPT = (append_log.FOLDER, append_log.ERRORS)


@verb("hook", json=False)
@click.argument("event", nargs=-1, metavar="[EVENT]")
@click.option("--into", type=click.Choice(["private", "repository"]), default="private", help="Which memory stores it.")
def hook(event: tuple[str, ...], into: str) -> None:
    """Record an event from an agent's session and reply to it.

    The agent's program calls this with the event as JSON on standard input; 'memfs agent install claude-code' arranges
    that. EVENT is its name, in any case: SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, PostToolUseFailure,
    TaskCompleted, PreCompact, Stop, SubagentStart, SubagentStop or SessionEnd; without it the JSON names it. Any other
    is ignored.

    It is kept in the project's private memory, which is outside the repository and which nobody else can read, unless
    '--into repository' says otherwise.

    The exit code is always 0, so that memfs never blocks your work. Failures are reported in one line on standard
    error, and by 'memfs status'.

    Examples:
        memfs agent hook SessionStart < event.json
    """
    from memfs.doors.claude_code.hook import main

    asked = invocation()
    main((*event, f"--into={into}"), asked.workspace or "", dict(asked.settings))


def hook_problems(workspace: Workspace) -> list[Problem]:
    """What went wrong in hooks lately, as problems of the workspace: they may not say so themselves."""
    found = [state for state in _states(workspace) if any(os.path.lexists(state / name) for name in _KEPT)]
    if not found:
        return []
    from memfs.sessions import spool  # where hooks keep something

    return [problem for state in found for problem in spool.problems(state)]


def waiting_sessions(workspace: Workspace) -> int:
    """How many sessions have events that are no memory yet."""
    return sum(len(append_log.waiting(state / append_log.FOLDER)) for state in _states(workspace))


def _states(workspace: Workspace) -> Iterator[Path]:
    """The state folders in which hooks keep events: the workspace's, and that of private memory."""
    yield workspace.repository.state
    if private.NAME not in workspace.settings.mounts:
        return
    from memfs.doors.cli.private import private_folder  # where there is some
    from memfs.sessions.spool import state_of

    folder = private_folder(workspace)
    if folder is not None:
        with suppress(MemfsError):  # 'memfs status --private' says what is wrong
            yield state_of(folder)
