"""``install`` and ``uninstall``: put memfs's hooks into an agent's program, and take them out again."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Invocation, verb
from memfs.doors.cli.output import clean, note, print_json, print_raw, styled
from memfs.model.kinds import nearest

if TYPE_CHECKING:
    from memfs.doors.claude_code.installer import InstallResult
    from memfs.doors.claude_code.settings_file import InstallScope, SettingsChange


_PROGRAMS = ("claude-code", "claude-desktop", "cursor", "gemini-cli", "vscode")
_MEANT = {"claude": "claude-code", "code": "vscode", "gemini": "gemini-cli"}
_BY_HAND = {
    "codex": "Codex takes the server by its own command: codex mcp add memfs -- memfs mcp",
    "letta": "its hooks are written by hand into .letta/settings.json; docs/doors/claude-code.md has them",
}
_TOLD = {"created": "Created", "changed": "Changed", "deleted": "Deleted", "same": "Nothing to do in"}
_WOULD = {"created": "Would create", "changed": "Would change", "deleted": "Would delete", "same": "Nothing to do in"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _InstallAnswer:
    """What the command line of ``install`` or ``uninstall`` asks for."""

    program: str
    scope: str | None
    plugin: str | None
    dry: bool
    as_json: bool
    server: bool = False
    into: str = "private"
    folder: str | None = None
    """That of ``-C``."""

    @property
    def chosen(self) -> InstallScope | None:
        """The scope, None where none was named."""
        from memfs.doors.claude_code.settings_file import InstallScope

        return None if self.scope is None else InstallScope(self.scope)

    @property
    def project(self) -> Path:
        """The folder of the project."""
        from memfs.doors.claude_code.installer import project_folder

        return project_folder(self.folder)


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


def _shared(function: Callable[[_InstallAnswer], None]) -> Callable[..., None]:
    """A verb's function with what both verbs are given, as one value."""

    def called(ctx: click.Context, **given: Any) -> None:
        asked = _InstallAnswer(folder=ctx.ensure_object(Invocation).workspace, **given)
        _refuse_unclear(ctx, asked)
        function(asked)

    called.__doc__ = function.__doc__
    made: Callable[..., None] = click.pass_context(called)
    for option in (
        click.option("--dry-run", "dry", is_flag=True, help="Show what would change, and change nothing."),
        click.option("--plugin", metavar="FOLDER", type=click.Path(file_okay=False), help="A plugin folder instead."),
        click.option("--user", "scope", flag_value="user", help="Your own settings, for all your projects."),
        click.option("--local", "scope", flag_value="local", help="Your own settings in this project."),
        click.option("--project", "scope", flag_value="project", help="The project's settings (the default)."),
        click.argument("program", type=_Program(_PROGRAMS), metavar="PROGRAM"),
    ):
        made = option(made)
    return made


def _refuse_unclear(ctx: click.Context, asked: _InstallAnswer) -> None:
    if asked.program != _PROGRAMS[0]:
        if asked.plugin is not None or asked.server or asked.scope == "local" or asked.into != "private":
            raise click.UsageError(f"{asked.program} takes --project, --user and --dry-run alone", ctx)
    elif asked.plugin is not None and (asked.scope or asked.server or asked.into != "private"):
        raise click.UsageError("--plugin goes with --dry-run alone", ctx)


@verb(
    "install",
    example="memfs install claude-code --dry-run\nmemfs install claude-code\nmemfs install claude-code --user\n"
    "memfs install claude-code --mcp\nmemfs install claude-code --plugin ~/memfs-plugin\nmemfs install cursor",
)
@click.option(
    "--into",
    type=click.Choice(["private", "repository"]),
    default="private",
    help="Where sessions are kept: in each person's private memory (the default), or in the repository's.",
)
@click.option("--mcp", "server", is_flag=True, help="Also memfs's MCP server, into .mcp.json of the project.")
@_shared
def install(asked: _InstallAnswer) -> None:
    """Put memfs's hooks into the settings of Claude Code, so that it remembers and is reminded by itself.

    PROGRAM is claude-code, or one that gets memfs's MCP server: claude-desktop, cursor, gemini-cli, vscode.

    What a person types and what the agent answers and does is recorded then, in that person's private memory of the
    project: a folder outside the repository that nobody else can read. 'memfs share' copies from there what others
    should see. With '--into repository' what sessions teach goes into the repository's memory instead, where all who
    can read the repository can read it; what quotes a person is suggested in that person's inbox instead.

    The rest of these settings stays as it is, to the byte; installing again brings memfs's part up to date. memfs
    commits none of these files. 'memfs status --private' shows what is kept, 'memfs uninstall PROGRAM' turns it off.
    """
    if asked.plugin is not None:
        _lay(asked, asked.plugin)
    elif asked.program == _PROGRAMS[0]:
        _put_hooks(asked)
    else:
        _put_server(asked)


@verb("uninstall", example="memfs uninstall claude-code --dry-run\nmemfs uninstall claude-code --user")
@_shared
def uninstall(asked: _InstallAnswer) -> None:
    """Take memfs's hooks, and its server, out of a program's settings again.

    Every other byte is as it was before they came; a file that was made for them goes. What was remembered stays.
    """
    if asked.plugin is not None:
        from memfs.doors.claude_code import plugin

        _tell(plugin.remove(Path(asked.plugin), dry=asked.dry), asked)
    elif asked.program == _PROGRAMS[0]:
        _take_hooks(asked)
    else:
        from memfs.doors import mcp_clients

        _tell((mcp_clients.uninstall(asked.program, asked.chosen, asked.project, dry=asked.dry),), asked)


def _put_hooks(asked: _InstallAnswer) -> None:
    from memfs.doors.claude_code import installer
    from memfs.doors.claude_code.settings_file import InstallScope

    scope, folder = asked.chosen or InstallScope.PROJECT, asked.project
    outcome = installer.install(
        scope,
        folder,
        server=asked.server and scope is InstallScope.PROJECT,
        into_repository=asked.into == "repository",
        dry=asked.dry,
    )
    _tell(outcome.files, asked)
    if not asked.as_json:
        _note_recorded(asked, scope)
        if not asked.dry:
            _note_installed(outcome, scope)
            _ask_to_join(asked, scope)
    if asked.server and scope is not InstallScope.PROJECT:
        words = shlex.join((*installer.program(scope).words, "mcp"))
        note(f"for the server, run: claude mcp add --scope {scope.value} memfs -- {words}")
    if asked.server:
        _note_extra()


def _take_hooks(asked: _InstallAnswer) -> None:
    from memfs.doors.claude_code import installer
    from memfs.doors.claude_code.settings_file import InstallScope

    outcome = installer.uninstall(asked.chosen or InstallScope.PROJECT, asked.project, dry=asked.dry)
    _tell(outcome.files, asked)
    for path in () if asked.as_json else outcome.elsewhere:
        note(f"{path} has hooks of memfs, too; 'memfs uninstall {asked.program} {_option_of(path)}' takes them out")


def _lay(asked: _InstallAnswer, folder: str) -> None:
    from memfs.doors.claude_code import plugin

    _tell(plugin.lay(Path(folder), dry=asked.dry), asked)
    if not asked.dry and not asked.as_json:
        note(f"try it with: claude --plugin-dir {shlex.quote(folder)}")


def _put_server(asked: _InstallAnswer) -> None:
    from memfs.doors import mcp_clients
    from memfs.doors.claude_code.settings_file import InstallScope

    served = asked.project if asked.folder is not None else None
    changed = mcp_clients.install(asked.program, asked.chosen, asked.project, workspace=served, dry=asked.dry)
    _tell((changed,), asked)
    _note_extra()
    if not asked.as_json and not asked.dry:
        in_project = asked.chosen is not InstallScope.USER and mcp_clients.CLIENTS[asked.program].project
        _note_workspace(asked.project, say=bool(in_project))
        if changed.done.value != "same":
            note(f"it works when {asked.program} is started anew; 'memfs uninstall {asked.program}' takes it out")


# -- telling ------------------------------------------------------------------------------------------------------
def _tell(files: tuple[SettingsChange, ...], asked: _InstallAnswer) -> None:
    if asked.as_json:
        listed = [{"file": str(one.path), "done": one.done.value, **_diff_of(one, asked.dry)} for one in files]
        print_json({"program": asked.program, "dry_run": asked.dry, "files": listed})
        return
    for one in files:
        if one.done.value == "same" and one.before is None:
            continue
        if asked.dry:
            _print_diff(one)
        print_raw(f"{styled((_WOULD if asked.dry else _TOLD)[one.done.value], fg='green')} {clean(_shown(one.path))}")
    if all(one.before is None and one.after is None for one in files):
        print_raw(f"Nothing to do: memfs is not in {clean(_shown(files[0].path))}")


def _diff_of(one: SettingsChange, dry: bool) -> dict[str, str]:
    return {"diff": "".join(_diff(one))} if dry else {}


def _diff(one: SettingsChange) -> list[str]:
    name = _shown(one.path)
    old, new = (name if data is not None else os.devnull for data in (one.before, one.after))
    found = difflib.unified_diff(_lines(one.before), _lines(one.after), old, new)
    whole = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found)
    return [f"{line}\n" for line in whole.split("\n")[:-1]]


def _lines(data: bytes | None) -> list[str]:
    """The lines of a file, ended by newlines alone: JSON may hold other line ends in a text."""
    text = (data or b"").decode("utf-8", "replace")
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [line for line in text.split("\n")[-1:] if line]


def _print_diff(one: SettingsChange) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in _diff(one):
        shown = line.rstrip("\n").rstrip("\r")
        print_raw(styled(shown, fg=colours.get(line[0])))


def _note_recorded(asked: _InstallAnswer, scope: InstallScope) -> None:
    """Say in plain words what will be recorded, where, and who can read it."""
    from memfs import private
    from memfs.doors.claude_code.settings_file import InstallScope

    note("from the next session on, what you type and what the agent answers and does is recorded")
    if asked.into == "repository":
        note(
            f"what that teaches goes into ContextMemory/ of {_shown(asked.project)}: all who read it there can read it"
        )
        note("what quotes you stays on this machine: it is suggested in the inbox, and you decide with 'memfs inbox'")
        return
    folder = private.find(private.project_at(asked.project)) if scope is not InstallScope.USER else None
    note(f"it goes into your private memory: {clean(str(folder or private.projects_folder()))}")
    note("nobody else can read that, and no repository gets any of it but what you copy with 'memfs share'")
    if scope is InstallScope.PROJECT:
        note("with these settings each person who works here has a private memory of their own")


def _ask_to_join(asked: _InstallAnswer, scope: InstallScope) -> None:
    from memfs import private
    from memfs.doors.claude_code.settings_file import InstallScope
    from memfs.doors.cli.private import ask_to_join

    if asked.into != "repository" and scope is not InstallScope.USER:
        ask_to_join(private.project_at(asked.project))


def _note_installed(outcome: InstallResult, scope: InstallScope) -> None:
    from memfs.doors.claude_code.settings_file import InstallScope

    settings = _shown(outcome.files[0].path)
    if scope is not InstallScope.USER and _option_of(outcome.files[0].path) == "--user":
        note(f"{settings} holds for all your projects")
    for path in outcome.elsewhere:
        note(f"{path} has hooks of memfs, too: each event is told twice; uninstall {_option_of(path)} takes them out")
    if outcome.switched_off:
        note(f"{settings} switches all hooks off: disableAllHooks")
    if scope is InstallScope.PROJECT and shutil.which("memfs") is None:
        note("'memfs' is not on the PATH; whoever starts Claude Code here needs it there")
    if scope is InstallScope.LOCAL and outcome.files[0].done.value == "created":
        note(f"{settings} is yours alone: see to it that git ignores it")
    if outcome.files[0].done.value != "same":
        note("it works from the next session on; there /hooks lists them")
        option = "" if scope is InstallScope.PROJECT else f" --{scope.value}"
        note(f"'memfs status --private' shows what it keeps; 'memfs uninstall claude-code{option}' turns it off")


def _note_workspace(folder: Path, *, say: bool) -> None:
    """Say where memories go if the project has no place for them."""
    from memfs.errors import WorkspaceNotFound
    from memfs.fs.workspace_location import find_workspace

    try:
        find_workspace(folder)
    except WorkspaceNotFound:
        if say:
            note("there is no workspace here: your own is used until 'memfs init' makes one")


def _note_extra() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        note("the server needs a package: pip install 'gitmemfs[mcp]'")


def _option_of(path: Path) -> str:
    """The option that means a settings file."""
    if path.name == "settings.local.json":
        return "--local"
    from memfs.doors.claude_code.settings_file import user_folder

    return "--user" if path.parent == user_folder() else "--project"


def _shown(path: Path) -> str:
    """A path as short as it can be written from here."""
    beside = os.path.relpath(path)
    return str(path) if beside.startswith("..") else beside
