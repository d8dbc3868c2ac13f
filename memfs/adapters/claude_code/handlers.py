"""Handlers: which events of Claude Code memfs listens to, for which tools, and how long it may take.

The one table of them; settings files and the plugin folder are written from it (C6). Knows neither where a file lies
nor what an event means.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

COMMAND = "memfs"
INTO, REPOSITORY = "--into=", "repository"
_ACTING = ("Edit", "Write", "MultiEdit", "NotebookEdit", "Bash")
_TASKS = ("TodoWrite", "TaskCreate", "TaskUpdate")
_BY_HAND = re.compile(r"(?:^|[\s/;&|\"'])memfs[\"']?\s+hook\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row: an event, and how its handler is called.

    Attributes:
        tools: for which tools; none means always.
        seconds: after which Claude Code gives the handler up.
        waits: whether Claude Code waits for it. It need not where nothing is answered and the session goes on; what is
            not waited for is ended with a session that runs without a terminal.
    """

    name: str
    tools: tuple[str, ...] = ()
    seconds: int = 5
    waits: bool = True

    @property
    def matcher(self) -> str:
        """The tools as Claude Code matches them, "" for all."""
        return "|".join(self.tools)


EVENTS: tuple[Event, ...] = (
    Event(name="SessionStart", seconds=10),
    Event(name="UserPromptSubmit"),
    Event(name="PreToolUse", tools=_ACTING),
    Event(name="PostToolUse", tools=(*_TASKS, *_ACTING)),
    Event(name="PostToolUseFailure", tools=_ACTING),
    Event(name="TaskCompleted"),
    Event(name="PreCompact", seconds=15),
    Event(name="Stop", seconds=60),
    Event(name="SubagentStart"),
    Event(name="SubagentStop", seconds=60, waits=False),
    Event(name="SessionEnd"),
)
"""In the order in which a session meets them."""


def groups(command: str, arguments: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """What stands below ``hooks``: for each event its group, with the one handler in it.

    Args:
        command: the program, by name or whole path.
        arguments: what stands before ``hook EVENT``.
        options: what stands behind it.
    """
    return {event.name: _group(event, command, arguments, options) for event in EVENTS}


def _group(event: Event, command: str, arguments: tuple[str, ...], options: tuple[str, ...]) -> dict[str, Any]:
    handler: dict[str, Any] = {
        "type": "command",
        "command": command,
        "args": [*arguments, "hook", event.name, *options],
        "timeout": event.seconds,
    }
    if not event.waits:
        handler["async"] = True
    return {**({"matcher": event.matcher} if event.tools else {}), "hooks": [handler]}


def server(command: str, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
    """The entry of memfs's own server in a file that names servers."""
    return {"command": command, "args": [*arguments, "mcp"]}


# -- what is there already ----------------------------------------------------------------------------------------
def is_ours(handler: Any) -> bool:
    """Whether a handler in a settings file is one of these, of whichever version and in whichever place."""
    if not isinstance(handler, dict) or handler.get("type") != "command":
        return False
    command, arguments = handler.get("command"), handler.get("args")
    if not isinstance(command, str) or not isinstance(arguments, list):
        return False
    at = 0 if _named(command) else _by_module(arguments)
    return at >= 0 and arguments[at : at + 1] == ["hook"]


def is_our_server(entry: Any) -> bool:
    """Whether an entry among a program's servers is memfs's own, whichever workspace it serves."""
    if not isinstance(entry, dict) or not isinstance(entry.get("args"), list) or entry["args"][-1:] != ["mcp"]:
        return False
    command = entry.get("command")
    return _named(command) or (isinstance(command, str) and _by_module(entry["args"]) >= 0)


def is_by_hand(handler: Any) -> bool:
    """Whether somebody wrote a handler that calls memfs by way of the shell."""
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and not is_ours(handler) and bool(_BY_HAND.search(command))


def _named(command: Any) -> bool:
    return isinstance(command, str) and os.path.basename(command) == COMMAND


def _by_module(arguments: list[Any]) -> int:
    """Where the arguments of memfs begin in those of Python; -1 where Python is given something else."""
    found = [at for at in range(len(arguments)) if arguments[at : at + 2] == ["-m", COMMAND]]
    return found[0] + 2 if found else -1
