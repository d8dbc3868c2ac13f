"""``admin watch``: follow changes of the files."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import note, print_json_line, print_raw, styled

if TYPE_CHECKING:
    from memfs.watch import NoticedChange


@verb("watch")
def watch(as_json: bool) -> None:
    """Follow changes of the files, by hand or by git, and keep the index fresh, until interrupted.

    Examples:
        memfs admin watch
        memfs admin watch --json | tee changes.jsonl
    """
    from memfs.watch import Watcher, notes_folder  # watchdog is slow to start, and no other verb needs it

    ended = threading.Event()

    def tell(noticed: NoticedChange) -> None:
        try:
            _print_noticed(noticed, as_json)
        except BrokenPipeError:  # we are on the watcher's thread: let the command's own end
            ended.set()

    with opened() as workspace:
        settings = workspace.settings
        quiet = settings.history.adopt_after_seconds if settings.history.adopt == "auto" else None

        def watcher() -> Watcher:
            notes = notes_folder(workspace.repository.state)
            return Watcher(
                workspace.store, workspace.root, settings.watch, quiet_seconds=quiet, listener=tell, notes=notes
            )

        workspace.store.watch_with(watcher, at_once=True)
        note(f"watching {workspace.root}; Ctrl-C ends it")
        ended.wait()
    raise BrokenPipeError


def _print_noticed(noticed: NoticedChange, as_json: bool) -> None:
    found = {name: list(getattr(noticed.refreshed, name)) for name in ("added", "changed", "removed")}
    if as_json:
        print_json_line({"reason": noticed.reason, **found, "error": noticed.error})
        return
    for name, paths in found.items():
        for path in paths:
            print_raw(f"{styled(f'{name:<8}', dim=True)} {path}")
    if noticed.error:
        note(noticed.error)
