"""memfs's hooks and its server in the text of a program's settings: put in, found, and taken out again.

Entries of others, comments and formatting stay as they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.doors.claude_code import settings_file
from memfs.doors.claude_code.settings_file import InstallScope
from memfs.errors import Conflict, WorkspaceNotFound
from memfs.format import json_text, plain
from memfs.fs.workspace_location import MEMORY_FOLDER, code_of
from memfs.startup import Any

COMMAND = "memfs"
INTO, REPOSITORY = "--into=", "repository"
_ACTING = ("Edit", "Write", "MultiEdit", "NotebookEdit", "Bash")
_TASKS = ("TodoWrite", "TaskCreate", "TaskUpdate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row: an event, and how its handler is called.

    Attributes:
        tools: for which tools; none means always.
        seconds: after which Claude Code gives the handler up.
        waits: whether Claude Code waits for it. It need not where nothing is answered and the session runs on; what is
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


def handler_groups(
    command: str, arguments: tuple[str, ...] = (), options: tuple[str, ...] = ()
) -> dict[str, dict[str, Any]]:
    """What is below ``hooks``: for each event its group, with the one handler in it.

    Args:
        command: the program, by name or whole path.
        arguments: what precedes ``hook EVENT``.
        options: what follows it.
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


def server_entry(command: str, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
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


def _named(command: Any) -> bool:
    return isinstance(command, str) and os.path.basename(command) == COMMAND


def _by_module(arguments: list[Any]) -> int:
    """Where the arguments of memfs begin in those of Python; -1 where Python is given something else."""
    found = [at for at in range(len(arguments)) if arguments[at : at + 2] == ["-m", COMMAND]]
    return found[0] + 2 if found else -1


HOOKS = "hooks"
Groups = dict[str, dict[str, Any]]


# -- hooks --------------------------------------------------------------------------------------------------------
def with_hooks(text: str | None, wanted: Groups) -> str:
    """The text with each wanted group once and no other of memfs's; groups of others stay as and where they are.

    Args:
        text: None where there is no file.
        wanted: by event, as ``handlers.groups`` gives them.

    Raises:
        ContentError: it is no JSON, or no settings of Claude Code, with line and remedy.
    """
    return _settled(text, wanted) or ""


def without_hooks(text: str | None) -> str | None:
    """The text without memfs's handlers; None where the file was made for them, or there is none.

    Raises:
        what ``with_hooks`` raises.
    """
    return _settled(text, {})


def _settled(text: str | None, wanted: Groups) -> str | None:
    """The text with these groups, and no other handler of memfs's; events that need no change stay as they are."""
    hooks = _hooks(text or "")
    for event in dict.fromkeys((*hooks, *wanted)):
        before = hooks.get(event, [])
        groups = list(_groups(before, wanted.get(event)))
        if groups and groups != before:
            text = settings_file.put(text, (HOOKS, event), groups)
        elif before and not groups:
            text = settings_file.take(text or "", (HOOKS, event))
    return text


def _groups(before: list[Any], wanted: dict[str, Any] | None) -> Iterator[Any]:
    """The groups of an event: those of others without memfs's handlers, and the wanted one where memfs's was first."""
    for group in before:
        listed = _handlers(group)
        theirs = [handler for handler in listed if not is_ours(handler)]
        if len(theirs) == len(listed):
            yield group
        elif theirs:
            yield {**group, HOOKS: theirs}
        elif wanted is not None:
            yield group if group == wanted else wanted
            wanted = None
    if wanted is not None:
        yield wanted


def _handlers(group: Any) -> list[Any]:
    listed = group.get(HOOKS) if isinstance(group, dict) else None
    return listed if isinstance(listed, list) else []


def _hooks(text: str) -> dict[str, list[Any]]:
    """What is below ``hooks``.

    Raises:
        ContentError: it is nothing that Claude Code could read.
    """
    hooks = settings_file.below(text, HOOKS)
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise settings_file.misshapen(text, (HOOKS, event), "a list")
    return hooks


# -- the server ---------------------------------------------------------------------------------------------------
SERVERS = "mcpServers"
_NAME = COMMAND


def with_server(text: str | None, entry: dict[str, Any], key: str = SERVERS) -> str:
    """The text with memfs's server.

    Args:
        text: None where there is no file.
        wanted: the entry, such as ``handlers.server`` gives.
        key: below which the program's file names its servers.

    Raises:
        Conflict: a server of that name is somebody else's.
        ContentError: it is no JSON, or not of the program's shape, with line and remedy.
    """
    there = settings_file.below(text or "", key).get(_NAME)
    if text is not None and there is not None and not is_our_server(there):
        error = Conflict(f"a server named {_NAME} is there already", hint="give it another name")
        error.line = plain.place(json_text.tree(text), text, (key, _NAME), of_key=True).line
        raise error
    return text if text is not None and there == entry else settings_file.put(text, (key, _NAME), entry)


def without_server(text: str | None, key: str = SERVERS) -> str | None:
    """The text without memfs's server; None where the file was made for it, or there is none.

    Raises:
        ContentError: as ``with_server``.
    """
    ours = text is not None and is_our_server(settings_file.below(text, key).get(_NAME))
    return settings_file.take(text, (key, _NAME)) if text is not None and ours else text


_TOPS = (MEMORY_FOLDER, ".git")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How memfs is called: a name or whole path, and what precedes the verb."""

    command: str
    arguments: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All of it."""
        return (self.command, *self.arguments)


def project_folder(start: str | os.PathLike[str] | None = None) -> Path:
    """The folder that is a project to Claude Code: the nearest with a workspace or repository, else the folder itself.

    Within a memory on its own branch, which a link leads to, it is the main working tree of the code.

    Raises:
        WorkspaceNotFound: there is no such folder.
    """
    folder = Path(start or ".").resolve()
    if not folder.is_dir():
        raise WorkspaceNotFound(f"there is no folder {str(start)!r}", hint="name one that exists")
    for candidate in (folder, *folder.parents):
        if any(os.path.exists(candidate / name) for name in _TOPS):
            return code_of(candidate, folder)
    return folder


def program(scope: InstallScope) -> Program:
    """How hooks of a scope call memfs: by name where a team shares the file, else the one that is running, wherever.

    ``-P`` keeps Python from looking for modules in the folder it is called in, which anybody may have filled.
    """
    if scope is InstallScope.PROJECT:
        return Program(command=COMMAND)
    script = os.path.join(os.path.dirname(sys.executable), COMMAND)
    if os.access(script, os.X_OK) and script.isprintable():
        return Program(command=script)
    return Program(command=sys.executable, arguments=("-P", "-m", COMMAND))
