"""Find out what a child of the resident had written when it ended, and say so in its place."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memfs.dataclass import dataclass
from memfs.doors.cli.options import AT_ONCE, CommitReport
from memfs.doors.cli.output import as_json, note, print_json, render, write_error
from memfs.doors.cli.remember import StoredText, text_of_stored
from memfs.doors.resident.client import start_of, verb_of
from memfs.errors import MemfsError
from memfs.fs.atomic_replace import sha256
from memfs.git.log import line_of
from memfs.model.ids import stem_of
from memfs.store.recovery import content_now
from memfs.workspace import Workspace, open_workspace

_DONE, _CANNOT_TELL = 0, 2
Change = tuple[str, str, str]
"""Path, and the sha256 before and after, "" where there is no file."""


@dataclass(frozen=True, slots=True)
class _BegunWrite:
    """A write that a child announced: its name in the journal, its branch and the newest commit then, its files."""

    id: str
    branch: str
    tip: str
    changes: tuple[Change, ...]
    durable: bool


def report_writes(words: Sequence[str], written: Sequence[tuple[bytes, bool]], printed: bool) -> int | None:
    """Look whether the write of a child that ended is in the memory, and say what the command would have said.

    Args:
        words: the command, whose verb writes.
        written: each write that the child began, and whether it said that it was durable.
        printed: whether it has begun to print.

    Returns:
        The exit code; None where it was not stored, or not all of it, so that the command can run again.
    """
    own = _own(written)
    if not own:
        return None
    try:
        with open_workspace(start_of(words), watch=False, one_shot=True) as workspace:  # what was begun is finished now
            if not all(one.durable or _is_there(workspace, one) for one in own):
                return None
            if workspace.settings.history.commit in AT_ONCE:
                workspace.store.flush(adopt=False)
            _say(workspace, words, [change for one in own for change in one.changes], printed)
    except MemfsError as error:
        write_error(error)
        note("the resident process ended while it wrote; whether it is stored cannot be told now")
        return _CANNOT_TELL
    return _DONE


def _own(written: Sequence[tuple[bytes, bool]]) -> list[_BegunWrite]:
    """The writes of the command itself, each once; an edit by hand that was recorded before it changes no file."""
    found: dict[str, _BegunWrite] = {}
    for text, durable in written:
        tip, operations = json.loads(text)
        for name, branch, rows in operations:
            changes = tuple((path, old, new) for path, old, new in rows)
            if any(old != new for _, old, new in changes):
                before = found.get(name)  # it was tried in another place first
                found[name] = _BegunWrite(
                    name, branch, tip, changes, durable or (before is not None and before.durable)
                )
    return list(found.values())


def _is_there(workspace: Workspace, write: _BegunWrite) -> bool:
    """Whether a write was recorded: it waits for its commit, or its files are what they were to be, or were so since.

    What its files were before it was announced says nothing: they may have been the same once.
    """
    parts = workspace.parts
    with parts.lock.hold("look for a write"):
        waiting = [*parts.journal.operations(), *(parts.secondary.operations() if parts.secondary else ())]
        if write.id in {one.id for one in waiting}:
            return True
        now = {path: content_now(parts.seen, path) for path, _, _ in write.changes}
    return all(
        (old != new and now[path] == new) or _was_there(workspace, write, path, new) for path, old, new in write.changes
    )


def _was_there(workspace: Workspace, write: _BegunWrite, path: str, new: str) -> bool:
    """Whether a commit that was made since has a file with this content."""
    repository = workspace.repository
    last = (repository.ref_commit(write.branch) if write.branch else None) or repository.head_commit()
    if last is None:
        return False
    versions = (repository.read(commit, path) for commit in line_of(repository, (path,), last, write.tip))
    return any(("" if data is None else sha256(data)) == new for data in versions)


def _say(workspace: Workspace, words: Sequence[str], stored: Sequence[Change], printed: bool) -> None:
    ids = list(dict.fromkeys(stem_of(path) for path, _, _ in stored))
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
