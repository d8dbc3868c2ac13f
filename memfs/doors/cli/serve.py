"""``serve``: hold a workspace open, so that commands of this user are answered sooner."""

from __future__ import annotations

import os

import click

from memfs.config import load
from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, invocation, verb
from memfs.doors.cli.output import Text, note
from memfs.errors import StorageIO
from memfs.fs.workspace_location import find_workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedWorkspace:
    """What became of a resident.

    Attributes:
        workspace: the folder of its workspace.
        pid: its process id; null where there is none.
        state: ``up``, ``stopped`` or ``off``.
    """

    workspace: str
    pid: int | None
    state: str


_SAID = {"up": "resident process {pid} answers for {workspace}", "stopped": "resident process {pid} has ended"}


def _text(done: ServedWorkspace) -> Text:
    yield _SAID.get(done.state, "no resident process is running for {workspace}").format(
        pid=done.pid, workspace=done.workspace
    )


@verb("serve", text=_text)
@click.option("--detach", is_flag=True, help="Run in the background, and return once it answers.")
@click.option("--stop", is_flag=True, help="Stop the running one.")
def serve(detach: bool, stop: bool) -> ServedWorkspace:
    """Answer commands of this user from a workspace kept open, until it has been idle for a while.

    While it runs, it answers memfs recall, list, show, status, log, diff, remember, update and forget with the same
    output, but faster. With MEMFS_RESIDENT=off a command ignores it.

    Examples:
        memfs serve
        memfs serve --detach
        memfs serve --stop
    """
    if detach and stop:
        raise Unclear("--detach and --stop exclude each other", "leave one out")
    from memfs.doors.resident import place  # --help does without

    asked = invocation()
    root = find_workspace(asked.workspace)
    if stop:
        ended = place.stop(root)
        return ServedWorkspace(workspace=str(root), pid=ended or None, state="stopped" if ended else "off")
    up = place.answering(root) if detach else place.resident_of(root)
    if detach and not up:
        if not load(root, dict(asked.settings)).resident.use:
            raise StorageIO("resident processes are switched off here", hint="memfs config --unset resident.use")
        up = place.start(root, dict(asked.settings))
    if up and up != os.getpid():
        return ServedWorkspace(workspace=str(root), pid=up, state="up")
    note(f"answering for {root}; Ctrl-C ends it")
    from memfs.doors.resident.server import serve as answer_for  # the others do without

    with place.claimed(place.files_of(root)) as claim:
        if claim is not None:
            answer_for(root, dict(asked.settings))
    return ServedWorkspace(workspace=str(root), pid=os.getpid(), state="up" if claim is None else "stopped")
