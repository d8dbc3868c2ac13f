"""``mcp``: serve the memory of a workspace to a program that speaks the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Invocation, invocation, verb
from memfs.doors.cli.output import note, somebody_types

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@verb("mcp", json=False)
@click.option("--read-only", is_flag=True, help="Offer only the tools that change nothing.")
@click.option("--tools", metavar="NAMES", help="Offer only these tools, with commas between.")
@click.option("--state", is_flag=True, help="Offer the tools for the state of a multi-agent system, too.")
@click.option("--agent", metavar="NAME", default="", help="Store under this name instead of the client's own.")
def mcp(read_only: bool, tools: str | None, state: bool, agent: str) -> None:
    """Serve this memory to a program that speaks MCP, until that program exits.

    The program starts this command itself and talks to it over standard input and output: in its list of servers the
    command is memfs, with the argument mcp, and -C FOLDER where it does not start in the project.

    Examples:
        claude mcp add memfs -- memfs mcp
        memfs -C ~/project mcp
        memfs mcp --read-only --tools search,get
    """
    from memfs.doors.mcp import ToolSet, build_server

    chosen = ToolSet.chosen((tools or "").split(","), read_only=read_only, state=state)
    with ExitStack() as ending:
        root, opener = _workspace(invocation(), ending)
        server = build_server(opener=opener, tools=chosen, agent=agent)
        from memfs.doors.mcp.server import serve

        if somebody_types():
            note(f"serving {root}; a program that speaks MCP is expected to type here, Ctrl-C ends it")
        serve(server)


def _workspace(asked: Invocation, ending: ExitStack) -> tuple[str, Callable[[], Workspace]]:
    """Which workspace is served, decided before anybody can ask for another, and how it is opened; once it is open, it
    has a resident process until ``ending``.

    Raises:
        WorkspaceNotFound: one was named, and there is none.
    """
    from memfs import private  # these cost start-up time, which --help must not pay
    from memfs.errors import WorkspaceNotFound
    from memfs.fs.workspace_location import find_workspace, named_workspace

    settings: dict[str, Any] = dict(asked.settings)
    try:
        root: Path | None = find_workspace(asked.workspace)
    except WorkspaceNotFound:
        if asked.workspace is not None or named_workspace():
            raise
        root = private.find(private.project_at("."))

    def opened() -> Workspace:
        from memfs.doors.resident.place import hosted
        from memfs.facades.open_workspaces import open_user_workspace  # the client is answered before this is needed
        from memfs.workspace import open_workspace

        if root is None:
            return open_user_workspace(settings=settings)
        workspace = open_workspace(root, settings=settings)
        ending.enter_context(hosted(workspace.root, workspace.settings.resident.use))
        return workspace

    return str(root or "your own workspace"), opened
