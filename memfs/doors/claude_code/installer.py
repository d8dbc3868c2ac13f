"""memfs's hooks in the settings of Claude Code: put in, found, and taken out again; entries of others stay."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.doors.claude_code.settings_file import InstallScope, SettingsChange, SettingsFile, Values, user_folder
from memfs.errors import ContentError, WorkspaceNotFound
from memfs.fs.workspace_location import MEMORY_FOLDER, code_of
from memfs.startup import Any

COMMAND = "memfs"
INTO, REPOSITORY = "--into=", "repository"
HOOKS = "hooks"
Groups = dict[str, Values]
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


def handler_groups(command: str, arguments: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> Groups:
    """What is below ``hooks``: for each event its group, with the one handler in it.

    Args:
        command: the program, by name or whole path.
        arguments: what precedes ``hook EVENT``.
        options: what follows it.
    """
    groups: Groups = {}
    for event in EVENTS:
        called = [*arguments, "hook", event.name, *options]
        handler: Values = {"type": "command", "command": command, "args": called, "timeout": event.seconds}
        if not event.waits:
            handler["async"] = True
        matcher = {"matcher": "|".join(event.tools)} if event.tools else {}
        groups[event.name] = {**matcher, HOOKS: [handler]}
    return groups


# -- in a program's settings --------------------------------------------------------------------------------------
def is_ours(handler: Any) -> bool:
    """Whether a handler in a settings file is one of these, of whichever version and in whichever place."""
    if not isinstance(handler, dict) or handler.get("type") != "command":
        return False
    command, arguments = handler.get("command"), handler.get("args")
    if not isinstance(command, str) or not isinstance(arguments, list):
        return False
    named = os.path.basename(command) == COMMAND
    starts = [0] if named else [at + 2 for at in range(len(arguments)) if arguments[at : at + 2] == ["-m", COMMAND]]
    return any(arguments[at : at + 1] == ["hook"] for at in starts[:1])


def with_hooks(values: Values, wanted: Groups) -> Values:
    """Settings with each wanted group once and no other of memfs's; groups of others stay as and where they are.

    Args:
        wanted: by event, as ``handler_groups`` gives them; none takes memfs out.

    Raises:
        ContentError: these are no settings of Claude Code.
    """
    hooks = values.get(HOOKS, {})
    if not isinstance(hooks, dict):
        raise ContentError("this is to be an object", field=HOOKS, hint="correct it, or remove it")
    settled: Values = {}
    for event in dict.fromkeys((*hooks, *wanted)):
        before = hooks.get(event, [])
        if not isinstance(before, list):
            raise ContentError("this is to be a list", field=f"{HOOKS}.{event}", hint="correct it, or remove it")
        groups = list(_groups(before, wanted.get(event)))
        if groups or groups == before:
            settled[event] = groups
    if settled or not hooks:
        return {**values, HOOKS: settled} if settled else values
    return {key: value for key, value in values.items() if key != HOOKS}


def _groups(before: list[Any], wanted: Values | None) -> Iterator[Any]:
    """The groups of an event: those of others without memfs's handlers, and the wanted one where memfs's was first."""
    for group in before:
        listed = group.get(HOOKS) if isinstance(group, dict) else None
        handlers = listed if isinstance(listed, list) else []
        theirs = [handler for handler in handlers if not is_ours(handler)]
        if len(theirs) == len(handlers):
            yield group
        elif theirs:
            yield {**group, HOOKS: theirs}
        elif wanted is not None:
            yield wanted
            wanted = None
    if wanted is not None:
        yield wanted


def settings_of(scope: InstallScope, project: Path) -> SettingsFile:
    """The file of Claude Code's settings of a scope."""
    if scope is InstallScope.USER:
        return SettingsFile(path=user_folder() / "settings.json")
    name = "settings.json" if scope is InstallScope.PROJECT else "settings.local.json"
    return SettingsFile(path=project / ".claude" / name, within=project)


def install(scope: InstallScope, project: Path, *, into_repository: bool = False, dry: bool = False) -> SettingsChange:
    """Put memfs's hooks into settings, or bring them up to date: all else stays; installing twice changes nothing.

    Args:
        into_repository: let hooks keep what sessions report in the repository's memory, instead of each person's
            private one.
        dry: look, but write nothing.

    Raises:
        what ``SettingsFile.rewrite`` raises.
    """
    command, *arguments = program(scope)
    options = (f"{INTO}{REPOSITORY}",) if into_repository else ()
    groups = handler_groups(command, tuple(arguments), options)
    file = settings_of(scope, project)
    return (file.preview if dry else file.rewrite)(lambda values: with_hooks(values, groups))


def uninstall(scope: InstallScope, project: Path, *, dry: bool = False) -> SettingsChange:
    """Take memfs's hooks out of settings; others stay, and a file that says nothing else goes.

    Raises:
        what ``SettingsFile.rewrite`` raises.
    """
    file = settings_of(scope, project)
    return (file.preview if dry else file.rewrite)(lambda values: with_hooks(values, {}))


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
        if any(os.path.exists(candidate / name) for name in (MEMORY_FOLDER, ".git")):
            return code_of(candidate, folder)
    return folder


def program(scope: InstallScope) -> tuple[str, ...]:
    """The words by which hooks of a scope call memfs: by name where a team shares the file, else the running one's.

    ``-P`` keeps Python from looking for modules in the folder it is called in, which anybody may have filled.
    """
    if scope is InstallScope.PROJECT:
        return (COMMAND,)
    script = os.path.join(os.path.dirname(sys.executable), COMMAND)
    if os.access(script, os.X_OK) and script.isprintable():
        return (script,)
    return sys.executable, "-P", "-m", COMMAND
