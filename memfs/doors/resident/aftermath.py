"""Find out what a child of the resident had written when it ended, and say so in its place."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memfs.doors.cli.options import AT_ONCE, CommitReport
from memfs.doors.cli.output import as_json, note, print_json, render, write_error
from memfs.doors.cli.remember import StoredText, text_of_stored
from memfs.doors.resident.client import start_of, verb_of
from memfs.errors import MemfsError
from memfs.fs.atomic_replace import sha256
from memfs.model.ids import stem_of
from memfs.store.parts import READ_LIMIT
from memfs.workspace import Workspace, open_workspace

_DONE, _CANNOT_TELL = 0, 2
Change = tuple[str, str, str]
"""Path, and the sha256 before and after, "" where there is no file."""


def told(words: Sequence[str], written: Sequence[tuple[bytes, bool]], printed: bool) -> int | None:
    """Look whether the writes of a child that ended are in the memory, and say what the command would have said.

    Args:
        words: the command.
        written: each write that the child began, and whether it said that it was durable.
        printed: whether it has begun to print.

    Returns:
        The exit code; None where nothing was stored, so that the command can run again.
    """
    try:
        with open_workspace(start_of(words), watch=False, one_shot=True) as workspace:  # what was begun is finished now
            stored = [
                change
                for text, durable in written
                for name, changes in json.loads(text)
                for change in changes
                if durable or _is_there(workspace, name, tuple(change))
            ]
            if not stored:
                return None
            if workspace.settings.history.commit in AT_ONCE:
                workspace.store.flush(adopt=False)
            _say(workspace, words, stored, printed)
    except MemfsError as error:
        write_error(error)
        note("the resident process ended while it wrote; whether it is stored cannot be told now")
        return _CANNOT_TELL
    return _DONE


def _is_there(workspace: Workspace, name: str, change: Change) -> bool:
    """Whether an operation was recorded: it waits for its commit, or its file is what it was to be, or once was."""
    path, old, new = change
    with workspace.parts.lock.hold("look for a write"):
        if name in {one.id for one in workspace.parts.journal.operations()}:
            return True
        try:
            now = sha256(workspace.parts.tree.read(path, READ_LIMIT).data)
        except FileNotFoundError:
            now = ""
    return now == new or (not old and workspace.history.has_seen(path))


def _say(workspace: Workspace, words: Sequence[str], stored: Sequence[Change], printed: bool) -> None:
    ids = [stem_of(path) for path, _, _ in stored]
    item = workspace.store.peek(ids[0]) if verb_of(words) == "remember" and not printed else None
    asks_json = "--json" in words
    if item is not None:
        done = StoredText(id=item.id, item=item, stored=True)
        committed = workspace.is_committed(item)
        landed = CommitReport("commit", workspace.repository.head().commit) if committed else CommitReport()
        render(done, text_of_stored(done), json=asks_json, more=as_json(landed))
    elif asks_json and not printed:
        print_json({"ids": ids, "stored": True})
    note(f"the resident process ended after this was stored: {', '.join(ids)}")
