"""Install memfs's server in programs that have no hooks, and name their servers in a JSON file of their own.

All else in that file stays, to the byte.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memfs.doors.claude_code import installer
from memfs.doors.claude_code.settings_file import Change, InstallScope, SettingsChange, SettingsFile, carry_out
from memfs.errors import MemfsError
from memfs.fs.workspace_location import home


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that names its MCP servers in a file of its own.

    Attributes:
        project: its file in a project's folder; "" where it knows no projects.
        user: its file in a person's home; "" where that is better left to the program.
        key: below which it names servers.
        more: what an entry says besides the command.
        by_hand: the program's own command for a person's settings.
    """

    project: str = ""
    user: str = ""
    key: str = installer.SERVERS
    more: Mapping[str, Any] = field(default_factory=dict)
    by_hand: str = ""

    @property
    def scope(self) -> InstallScope:
        """The one that is meant where none is named."""
        return InstallScope.PROJECT if self.project else InstallScope.USER


_DESKTOP = "Library/Application Support" if sys.platform == "darwin" else ".config"
CLIENTS: Mapping[str, McpClient] = {
    "claude-desktop": McpClient(user=f"{_DESKTOP}/Claude/claude_desktop_config.json"),
    "cursor": McpClient(project=".cursor/mcp.json", user=".cursor/mcp.json"),
    "gemini-cli": McpClient(project=".gemini/settings.json", user=".gemini/settings.json"),
    "vscode": McpClient(
        project=".vscode/mcp.json",
        key="servers",
        more={"type": "stdio"},
        by_hand="""code --add-mcp '{"name": "memfs", "command": "memfs", "args": ["mcp"]}'""",
    ),
}


def install(
    name: str, scope: InstallScope | None, project: Path, *, workspace: Path | None = None, dry: bool = False
) -> SettingsChange:
    """Put memfs's server into a program's file, or bring it up to date; all else stays, to the byte.

    Args:
        workspace: the one to serve in a person's own settings, where it is not to be the one around the folder in which
            the program starts the server. A project's file names no folder of one machine.
        dry: look, but write nothing.

    Raises:
        MemfsError: the program has no file of that scope.
        Conflict: a server of that name is somebody else's, or somebody keeps saving the file.
        ContentError, PathEscape, StorageIO: it cannot be read or written.
    """
    client = CLIENTS[name]
    chosen = scope or client.scope
    called = installer.program(chosen)
    served = ("-C", str(workspace)) if workspace is not None and chosen is InstallScope.USER else ()
    wanted = {**client.more, **installer.server_entry(called.command, (*called.arguments, *served))}
    return _change(name, scope, project, lambda text: installer.with_server(text, wanted, client.key), dry)


def uninstall(name: str, scope: InstallScope | None, project: Path, *, dry: bool = False) -> SettingsChange:
    """Take memfs's server out of a program's file again; every other byte is as it was.

    Raises:
        what ``install`` raises, besides that a server of somebody else's simply stays.
    """
    key = CLIENTS[name].key
    return _change(name, scope, project, lambda text: installer.without_server(text, key), dry)


def _change(name: str, scope: InstallScope | None, project: Path, change: Change, dry: bool) -> SettingsChange:
    (changed,) = carry_out([(_file(name, scope, project), change)], dry)
    return changed


def _file(name: str, scope: InstallScope | None, project: Path) -> SettingsFile:
    client = CLIENTS[name]
    chosen = scope or client.scope
    if chosen is InstallScope.PROJECT and client.project:
        return SettingsFile(path=project / client.project, within=project)
    if chosen is InstallScope.USER and client.user:
        return SettingsFile(path=home() / client.user)
    hint = f"leave the option out: --{client.scope} is meant"
    if chosen is InstallScope.USER and client.by_hand:
        hint = f"for all your projects: {client.by_hand}"
    raise MemfsError(f"{name} has no settings of that scope", hint=hint)
