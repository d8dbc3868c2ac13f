"""memfs's hooks and its server in the text of a program's settings: put in, found, and taken out again.

Entries of others, comments and formatting stay as they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memfs.dataclass import NamedTuple, dataclass
from memfs.doors.claude_code import settings_file
from memfs.doors.claude_code.settings_file import InstallScope
from memfs.errors import Conflict, ContentError, WorkspaceNotFound
from memfs.format import json_text, plain
from memfs.fs.workspace_location import MEMORY_FOLDER, code_of

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
_MOST_STEPS = 500
Groups = dict[str, dict[str, Any]]


class Handler(NamedTuple):
    """One handler of memfs's in a file: its event, where its group is and where it is in there, and what they say."""

    event: str
    group: int
    at: int
    matcher: str
    alone: bool
    value: dict[str, Any]


# -- hooks --------------------------------------------------------------------------------------------------------
def with_hooks(text: str | None, wanted: Groups) -> str:
    """The text with each wanted group once and no other of memfs's; groups of others stay as and where they are.

    Args:
        text: None where there is no file.
        wanted: by event, as ``handlers.groups`` gives them.

    Raises:
        ContentError: it is no JSON, or no settings of Claude Code, with line and remedy.
    """
    if text is None:
        return settings_file.made(HOOKS, {event: [group] for event, group in wanted.items()})
    return _settled(text, wanted) or ""


def without_hooks(text: str | None) -> str | None:
    """The text without memfs's handlers; None where the file was made for them, or there is none.

    Raises:
        what ``with_hooks`` raises.
    """
    return text if text is None or settings_file.is_blank(text) else _settled(text, {})


def _settled(text: str, wanted: Groups) -> str | None:
    """The text after as many single changes as it takes; each changes what is read next."""
    after: str | None = text
    for _ in range(_MOST_STEPS):
        if after is None or (change := _change(after, wanted)) is None:
            break
        path, value = change
        after = settings_file.take(after, path) if value is None else settings_file.put(after, path, value)
    found = {one.event: one.value for one in _ours(settings_file.parsed_settings(after).get(HOOKS, {}))}
    _prove(text, after, right=found == {event: group[HOOKS][0] for event, group in wanted.items()})
    return after


def _change(text: str, wanted: Groups) -> tuple[settings_file.JsonPath, Any] | None:
    """The next change: what is to be put at a path, or None to take it away; None where none is left to make."""
    hooks = _hooks(text)
    missing = dict(wanted)
    for one in _ours(hooks):
        group = missing.pop(one.event, None)
        path: settings_file.JsonPath = (HOOKS, one.event, one.group)
        if group is None or (not one.alone and one.matcher != _matcher(group)):
            return path if one.alone else (*path, HOOKS, one.at), None
        if one.matcher != _matcher(group):
            return path, group
        if one.value != group[HOOKS][0]:
            return (*path, HOOKS, one.at), group[HOOKS][0]
    if not missing:
        return None
    if HOOKS not in settings_file.parsed_settings(text):
        return (HOOKS,), {event: [group] for event, group in missing.items()}
    event, group = next(iter(missing.items()))
    return ((HOOKS, event, len(hooks[event])), group) if event in hooks else ((HOOKS, event), [group])


def _ours(hooks: dict[str, list[Any]]) -> Iterator[Handler]:
    for event, groups in hooks.items():
        for number, group in enumerate(groups):
            listed = _handlers(group)
            ours = [at for at, handler in enumerate(listed) if is_ours(handler)]
            for at in ours:
                yield Handler(event, number, at, _matcher(group), len(listed) == 1, listed[at])


def _handlers(group: Any) -> list[Any]:
    listed = group.get(HOOKS) if isinstance(group, dict) else None
    return listed if isinstance(listed, list) else []


def _matcher(group: dict[str, Any]) -> str:
    """What a group says of tools; one that says nothing, or a star, means all."""
    matcher = group.get("matcher")
    return "" if matcher in (None, "*") else str(matcher)


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


# -- proof -------------------------------------------------------------------------------------------
def _prove(before: str, after: str | None, *, right: bool) -> None:
    """Prove that two texts differ in what is memfs's alone, and that the second has what is wanted (``right``).

    Raises:
        ContentError: they do not; nothing may be written.
    """
    if not right or _others(settings_file.parsed_settings(before)) != _others(settings_file.parsed_settings(after)):
        raise ContentError("memfs cannot change this file safely", hint="write or remove what is memfs's by hand")


def _others(value: Any) -> Any:
    """What a file says besides memfs's handlers and server, in its order, without collections that hold nothing."""
    if isinstance(value, dict):
        parts = [(key, _others(part)) for key, part in value.items() if key != COMMAND or not is_our_server(part)]
        return [pair for pair in parts if pair[1] != []]
    if isinstance(value, list):
        left = (_others(part) for part in value if not is_ours(part) and not _is_our_group(part))
        return [part for part in left if part != []]
    return value


def _is_our_group(group: Any) -> bool:
    return bool(listed := _handlers(group)) and all(map(is_ours, listed))


SERVERS = "mcpServers"
_NAME = COMMAND


def with_server(text: str | None, wanted: dict[str, Any], key: str = SERVERS) -> str:
    """The text with memfs's server.

    Args:
        text: None where there is no file.
        wanted: the entry, such as ``handlers.server`` gives.
        key: below which the program's file names its servers.

    Raises:
        Conflict: a server of that name is somebody else's.
        ContentError: it is no JSON, or not of the program's shape, with line and remedy.
    """
    if text is None:
        return settings_file.made(key, {_NAME: wanted})
    there = settings_file.below(text, key).get(_NAME)
    if there == wanted:
        return text
    if there is not None and not is_our_server(there):
        error = Conflict(f"a server named {_NAME} is there already", hint="give it another name")
        error.line = plain.place(json_text.tree(text), text, (key, _NAME), of_key=True).line
        raise error
    after = (
        settings_file.put(text, (key, _NAME), wanted)
        if key in settings_file.parsed_settings(text)
        else settings_file.put(text, (key,), {_NAME: wanted})
    )
    _prove(text, after, right=settings_file.parsed_settings(after).get(key, {}).get(_NAME) == wanted)
    return after


def without_server(text: str | None, key: str = SERVERS) -> str | None:
    """The text without memfs's server; None where the file was made for it, or there is none.

    Raises:
        ContentError: as ``with_server``.
    """
    if text is None or not is_our_server(settings_file.below(text, key).get(_NAME)):
        return text
    after = settings_file.take(text, (key, _NAME))
    _prove(text, after, right=_NAME not in settings_file.parsed_settings(after).get(key, {}))
    return after


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
