"""``agent install``: put memfs's hooks, or its server, into the settings of an agent's program."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from memfs import private
from memfs.dataclass import dataclass, field
from memfs.doors import clients
from memfs.doors.claude_code.installer import program, project_folder
from memfs.doors.claude_code.settings_file import InstallScope, SettingsChange, user_folder
from memfs.doors.cli.command import invocation, options, remark, verb, wants_json
from memfs.doors.cli.output import OMIT, Text, merge, styled
from memfs.doors.cli.private import ask_to_join
from memfs.doors.clients import CLIENTS, Client, InstallResult
from memfs.errors import WorkspaceNotFound
from memfs.fs.workspace_location import find_workspace
from memfs.model.kinds import nearest

_PROGRAMS = tuple(CLIENTS)
_MEANT = {"claude": "claude-code", "code": "vscode", "gemini": "gemini-cli"}
_BY_HAND = {
    "codex": "Codex takes the server by its own command: codex mcp add memfs -- memfs mcp",
    "letta": "its hooks are written by hand into .letta/settings.json; docs/doors/claude-code.md has them",
}
_TOLD = {"created": "Created", "changed": "Changed", "deleted": "Deleted", "same": "Nothing to do in"}
_WOULD = _TOLD | {"created": "Would create", "changed": "Would change", "deleted": "Would delete"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """A settings file.

    Attributes:
        change: where it is, and what became of it, or would; its fields stand beside the others.
        diff: the lines that would come and go, with `--dry-run`.
    """

    change: SettingsChange = field(metadata=merge("file=path done"))
    diff: str = field(default="", metadata=OMIT)


@dataclass(frozen=True, slots=True)
class Installation:
    """What was put into a program's settings, or taken out of them.

    Attributes:
        program: its name.
        files: the settings files.
    """

    program: str
    files: tuple[InstalledFile, ...]


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """Which settings of which program are meant.

    Attributes:
        program: its name.
        scope: for whom; None where that was not said.
        dry: whether nothing is to be changed.
        folder: that of `-C`.
    """

    program: str
    scope: InstallScope | None
    dry: bool
    folder: str | None

    @property
    def client(self) -> Client:
        """The program."""
        return CLIENTS[self.program]

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return project_folder(self.folder)

    def done(self, files: Sequence[SettingsChange], remarks: Iterable[str] = ()) -> Installation:
        """What became of these files, with what is to be known about it."""
        for text in remarks:
            remark(text)
        return Installation(self.program, tuple(InstalledFile(one, _diff(one) if self.dry else "") for one in files))


class _Program(click.Choice[str]):
    """The name of a program, with a word for those who name another."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is, or a refusal that says what to do instead."""
        name = str(value).lower()
        if name in _PROGRAMS:
            return name
        known = f"the programs are {', '.join(_PROGRAMS)}"
        said = _BY_HAND.get(name) or f"{nearest(_MEANT.get(name, name), _PROGRAMS)} {known}; others: 'memfs mcp --help'"
        return self.fail(f"there is no {value!r} here: {said.strip()}", param, ctx)


def at_program(function: Callable[..., Installation]) -> Callable[..., Installation]:
    """Give a verb the options that name a program's settings, as an ``InstallTarget``."""

    @wraps(function)
    def called(program: str, scope: str | None, dry_run: bool, **more: Any) -> Any:
        chosen = None if scope is None else InstallScope(scope)
        target = InstallTarget(program, chosen, dry_run, invocation().workspace)
        hooks_only = more.get("server") or more.get("into", "private") != "private"
        if not target.client.hooks and (scope == "local" or hooks_only):
            raise click.UsageError(f"{program} takes --project, --user and --dry-run alone")
        return function(target, **more)

    return options(
        click.argument("program", type=_Program(_PROGRAMS), metavar="PROGRAM"),
        click.option("--project", "scope", flag_value="project", help="The project's settings (the default)."),
        click.option("--local", "scope", flag_value="local", help="Your own settings in this project."),
        click.option("--user", "scope", flag_value="user", help="Your own settings, for all your projects."),
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
    )(called)


def changes(done: Installation, dry_run: bool) -> Text:
    """The files, with their diffs."""
    there = [one for one in done.files if (one.change.before, one.change.after) != (None, None)]
    for one in there:
        yield from (styled(line.rstrip("\r"), fg=_COLOURS.get(line[:1])) for line in one.diff.split("\n")[:-1])
        word = (_WOULD if dry_run else _TOLD)[one.change.done.value]
        yield f"{styled(word, fg='green')} {shown(one.change.path)}"
    if not there:
        yield f"Nothing to do: memfs is not in {shown(done.files[0].change.path)}"


@verb("install", text=changes)
@click.option(
    "--into",
    type=click.Choice(["private", "repository"]),
    default="private",
    help="Where sessions are kept: in each person's private memory (the default), or in the repository's.",
)
@click.option("--mcp", "server", is_flag=True, help="Also memfs's MCP server, into .mcp.json of the project.")
@at_program
def install(target: InstallTarget, into: str, server: bool) -> Installation:
    """Put memfs's hooks into the settings of Claude Code, so that it remembers and is reminded by itself.

    PROGRAM is claude-code, or one that gets memfs's MCP server: claude-desktop, cursor, gemini-cli, vscode.

    What a person types and what the agent answers and does is recorded then, in that person's private memory of the
    project: a folder outside the repository that nobody else can read. 'memfs share' copies from there what others
    should see. With '--into repository' what sessions teach goes into the repository's memory instead, where all who
    can read the repository can read it; what quotes a person is suggested in that person's inbox instead.

    The rest of these settings stays as it is, to the byte; installing again brings memfs's part up to date. No
    workspace is needed, and memfs commits none of these files. 'memfs status --private' shows what is kept,
    'memfs agent uninstall PROGRAM' turns it off.

    Examples:
        memfs agent install claude-code --dry-run
        memfs agent install claude-code
        memfs agent install claude-code --user
        memfs agent install claude-code --mcp
        memfs agent install cursor
    """
    client, project = target.client, target.project
    scope = target.scope or client.scope
    by_project = scope is InstallScope.PROJECT
    outcome = clients.install(
        target.scope,
        project,
        target.program,
        server=server and by_project,
        into_repository=into == "repository",
        workspace=project if target.folder is not None else None,
        dry=target.dry,
    )
    if not client.hooks:
        return target.done(outcome.files, (*_on_extra(), *(() if target.dry else _on_server(target, outcome))))
    said = (*_on_recording(project, scope, into), *(() if target.dry else _on_hooks(outcome, scope)))
    if server and not by_project:
        words = shlex.join((*program(scope).words, "mcp"))
        said += (f"for the server, run: claude mcp add --scope {scope.value} memfs -- {words}",)
    if not target.dry and not wants_json() and into != "repository" and scope is not InstallScope.USER:
        ask_to_join(private.project_at(project))
    return target.done(outcome.files, (*said, *(_on_extra() if server else ())))


# -- remarks ------------------------------------------------------------------------------------------------------
def _on_recording(project: Path, scope: InstallScope, into: str) -> Iterator[str]:
    """What will be recorded, where, and who can read it."""
    yield "from the next session on, what you type and what the agent answers and does is recorded"
    if into == "repository":
        place = f"ContextMemory/ of {shown(project)}"
        yield f"what that teaches goes into {place}: all who read it there can read it"
        yield "what quotes you stays on this machine: it is suggested in the inbox, and you decide with 'memfs inbox'"
        return
    folder = private.find(private.project_at(project)) if scope is not InstallScope.USER else None
    yield f"it goes into your private memory: {folder or private.projects_folder()!s}"
    yield "nobody else can read that, and no repository gets any of it but what you copy with 'memfs share'"
    if scope is InstallScope.PROJECT:
        yield "with these settings each person who works here has a private memory of their own"


def _on_hooks(outcome: InstallResult, scope: InstallScope) -> Iterator[str]:
    """What keeps hooks from working as they should, and where they are seen and taken out."""
    settings = shown(outcome.files[0].path)
    if scope is not InstallScope.USER and option_of(outcome.files[0].path) == "--user":
        yield f"{settings} holds for all your projects"
    for path in outcome.elsewhere:
        yield f"{path} has hooks of memfs, too: each event is told twice; uninstall {option_of(path)} takes them out"
    if outcome.switched_off:
        yield f"{settings} switches all hooks off: disableAllHooks"
    if scope is InstallScope.PROJECT and shutil.which("memfs") is None:
        yield "'memfs' is not on the PATH; whoever starts Claude Code here needs it there"
    if scope is InstallScope.LOCAL and outcome.files[0].done.value == "created":
        yield f"{settings} is yours alone: see to it that git ignores it"
    if outcome.files[0].done.value != "same":
        yield "it works from the next session on; there /hooks lists them"
        option = "" if scope is InstallScope.PROJECT else f" --{scope.value}"
        way_back = f"'memfs agent uninstall claude-code{option}' turns it off"
        yield f"'memfs status --private' shows where and what it keeps; {way_back}"


def _on_server(target: InstallTarget, outcome: InstallResult) -> Iterator[str]:
    """Where memories go if the project has no place for them, and how the server comes and goes."""
    if target.scope is not InstallScope.USER and target.client.project:
        try:
            find_workspace(target.project)
        except WorkspaceNotFound:
            yield "there is no workspace here: your own is used until 'memfs init' makes one"
    if outcome.files[0].done.value != "same":
        way_back = f"'memfs agent uninstall {target.program}' takes it out"
        yield f"it works when {target.program} is started anew; {way_back}"


def _on_extra() -> Iterator[str]:
    """The package that the server needs, where it is not there."""
    if find_spec("mcp") is None:
        yield "the server needs a package: pip install 'gitmemfs[mcp]'"


# -- files --------------------------------------------------------------------------------------------------------
def option_of(path: Path) -> str:
    """The option that means a settings file."""
    if path.name == "settings.local.json":
        return "--local"
    return "--user" if path.parent == user_folder() else "--project"


def shown(path: Path) -> str:
    """A path as short as it can be written from here."""
    beside = os.path.relpath(path)
    return str(path) if beside.startswith("..") else beside


def _diff(one: SettingsChange) -> str:
    name = shown(one.path)
    old, new = (name if data is not None else os.devnull for data in (one.before, one.after))
    found = difflib.unified_diff(_lines(one.before), _lines(one.after), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found)


def _lines(data: bytes | None) -> list[str]:
    """The lines of a file, ended by newlines alone: JSON may hold other line ends in a text."""
    text = (data or b"").decode("utf-8", "replace")
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [line for line in text.split("\n")[-1:] if line]
