"""``agent uninstall``: take memfs's hooks, or its server, out of a program's settings again."""

from __future__ import annotations

from contextlib import suppress

from memfs.doors import clients
from memfs.doors.cli.agent.install import Installation, InstallTarget, at_program, changes, option_of
from memfs.doors.cli.command import verb
from memfs.doors.resident.place import stop as end_resident
from memfs.errors import MemfsError
from memfs.fs.workspace_location import find_workspace


@verb("uninstall", text=changes)
@at_program
def uninstall(target: InstallTarget) -> Installation:
    """Take memfs's hooks, and its server, out of a program's settings again.

    Every other byte is as it was before they came; a file that was made for them goes. What was remembered stays.

    Examples:
        memfs agent uninstall claude-code --dry-run
        memfs agent uninstall claude-code --user
    """
    outcome = clients.uninstall(target.scope, target.project, target.program, dry=target.dry)
    said = (
        f"{path} has hooks of memfs, too; 'memfs agent uninstall {target.program} {option_of(path)}' takes them out"
        for path in outcome.elsewhere
    )
    if not target.dry and outcome.files:
        with suppress(MemfsError):
            end_resident(find_workspace(target.project))  # a hook may have begun it
    return target.done(outcome.files, said)
