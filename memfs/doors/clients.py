"""The programs of agents that memfs installs itself in: hooks where a program has them, else its MCP server.

Every file is looked at before the first is written. Other settings stay, to the byte, and uninstalling leaves what was
there before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memfs.dataclass import dataclass, field
from memfs.doors.claude_code import installer
from memfs.doors.claude_code.settings_file import (
    Change,
    InstallScope,
    SettingsChange,
    SettingsFile,
    carry_out,
    user_folder,
)
from memfs.errors import MemfsError
from memfs.fs.workspace_location import home


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program, and the files of its settings.

    Attributes:
        project: its file in a project's folder, which a team shares; "" where it knows no projects.
        local: a person's own there.
        user: its file below ``folder``, for all projects; "" where that is better left to the program.
        hooks: whether it has hooks; memfs's server goes into the file ``servers`` of the project then, where asked for.
        key: below which it names servers.
        more: what an entry says besides the command.
        by_hand: the program's own command for a person's settings.
    """

    project: str = ""
    local: str = ""
    user: str = ""
    folder: Callable[[], Path] = home
    hooks: bool = False
    servers: str = ""
    key: str = installer.SERVERS
    more: Mapping[str, Any] = field(default_factory=dict)
    by_hand: str = ""

    @property
    def scope(self) -> InstallScope:
        """The one that is meant where none is named."""
        return InstallScope.PROJECT if self.project else InstallScope.USER

    def below(self, scope: InstallScope) -> str:
        """The name of its file of a scope, "" where it has none."""
        return {InstallScope.PROJECT: self.project, InstallScope.LOCAL: self.local, InstallScope.USER: self.user}[scope]

    def file(self, scope: InstallScope, project: Path) -> SettingsFile:
        """Its file of a scope.

        Raises:
            MemfsError: it has none.
        """
        below = self.below(scope)
        if not below:
            hint = f"leave the option out: --{self.scope} is meant"
            if scope is InstallScope.USER and self.by_hand:
                hint = f"for all your projects: {self.by_hand}"
            raise MemfsError(f"{_name(self)} has no settings of that scope", hint=hint)
        if scope is InstallScope.USER:
            return SettingsFile(path=self.folder() / below)
        return SettingsFile(path=project / below, within=project)


CLAUDE_CODE = "claude-code"
_DESKTOP = "Library/Application Support" if sys.platform == "darwin" else ".config"
CLIENTS: Mapping[str, Client] = {
    CLAUDE_CODE: Client(
        project=".claude/settings.json",
        local=".claude/settings.local.json",
        user="settings.json",
        folder=user_folder,
        hooks=True,
        servers=".mcp.json",
    ),
    "claude-desktop": Client(user=f"{_DESKTOP}/Claude/claude_desktop_config.json"),
    "cursor": Client(project=".cursor/mcp.json", user=".cursor/mcp.json"),
    "gemini-cli": Client(project=".gemini/settings.json", user=".gemini/settings.json"),
    "vscode": Client(
        project=".vscode/mcp.json",
        key="servers",
        more={"type": "stdio"},
        by_hand="""code --add-mcp '{"name": "memfs", "command": "memfs", "args": ["mcp"]}'""",
    ),
}


def _name(client: Client) -> str:
    return next(name for name, one in CLIENTS.items() if one is client)


def install(
    scope: InstallScope | None,
    project: Path,
    name: str = CLAUDE_CODE,
    *,
    server: bool = False,
    into_repository: bool = False,
    workspace: Path | None = None,
    dry: bool = False,
) -> tuple[SettingsChange, ...]:
    """Put memfs into a program's settings, or bring it up to date: all else stays; installing twice changes nothing.

    Args:
        scope: for whom; None: as the program usually has it.
        server: beside hooks, the MCP server of the project, too: a person's own are in a file that Claude Code keeps
            writing.
        into_repository: let hooks keep what sessions report in the repository's memory, instead of each person's
            private one.
        workspace: the one to serve in a person's own settings, where it is not to be the one around the folder in which
            the program starts the server. A project's file names no folder of one machine.
        dry: look, but write nothing.

    Raises:
        MemfsError: the program has no file of that scope.
        ContentError: a file is no JSON, with line and remedy.
        Conflict: a server of that name is somebody else's, or somebody keeps saving a file.
        PathEscape, StorageReadOnly, StorageIO: a file is not to be written. The first file is written only when all
            can be.
    """
    client = CLIENTS[name]
    chosen = scope or client.scope
    called, file = installer.program(chosen), client.file(chosen, project)
    plan: list[tuple[SettingsFile, Change]] = []
    if client.hooks:
        options = (f"{installer.INTO}{installer.REPOSITORY}",) if into_repository else ()
        groups = installer.handler_groups(called.command, called.arguments, options)
        plan.append((file, lambda text: installer.with_hooks(text, groups)))
    if server or not client.hooks:
        served = ("-C", str(workspace)) if workspace is not None and chosen is InstallScope.USER else ()
        entry = {**client.more, **installer.server_entry(called.command, (*called.arguments, *served))}
        plan.append((_servers(client, file, project), lambda text: installer.with_server(text, entry, client.key)))
    return carry_out(plan, dry)


def uninstall(
    scope: InstallScope | None, project: Path, name: str = CLAUDE_CODE, *, dry: bool = False
) -> tuple[SettingsChange, ...]:
    """Take memfs out of a program's settings; others stay, to the byte, and a file that says nothing else goes.

    Raises:
        what ``install`` raises, besides that a server of somebody else's simply stays.
    """
    client = CLIENTS[name]
    chosen = scope or client.scope
    file = client.file(chosen, project)
    plan: list[tuple[SettingsFile, Change]] = [(file, installer.without_hooks)] if client.hooks else []
    if chosen is InstallScope.PROJECT or not client.hooks:
        plan.append((_servers(client, file, project), lambda text: installer.without_server(text, client.key)))
    return carry_out(plan, dry)


def _servers(client: Client, file: SettingsFile, project: Path) -> SettingsFile:
    return SettingsFile(path=project / client.servers, within=project) if client.servers else file
