"""Finishes what killed writers left half done, and sets displaced bytes aside.

Bytes that a person may have saved are kept, durable and outside the working tree, before the rest is removed. A
temporary file with a fresh name can only be memfs's own unfinished write.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from memfs.errors import CorruptRecord, HistoryError, ItemTooLarge, NotRegularFile, PathEscape, StorageFull, StorageIO
from memfs.fs import io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.journal import FileChange, Operation
from memfs.fs.tree import Tree, View
from memfs.fs.workspace_location import is_own
from memfs.git.repository import Repository
from memfs.model import Problem, Stamp
from memfs.store.health import Health
from memfs.store.parts import READ_LIMIT, RECOVERED_FOLDER, Parts

SUFFIX = ".kept"
DAMAGED = "damaged-"
"""How the names of contents begin that a repair set aside."""
REPLACED = "replaced-"
"""How those begin that no person displaced: a later write of memfs took their place before a commit held them."""
_KEPT_SECONDS = 30 * 86_400
DAMAGED_SUFFIX = ".damaged"
"""Of raw copies of what was damaged: a journal, an object of git."""


def set_aside(state: Path, change: FileChange, name: str) -> Problem:
    """Keep bytes that are not to be written over a person's change where ``memfs restore --displaced`` finds them."""
    if change.data is not None:
        keep_aside(state, change.path, change.data, name)
    message = "this file was changed by hand after memfs wrote it; your edit is kept"
    hint = "memfs restore --displaced lists what memfs had written and brings it back"
    return Problem.warning(change.path, "KeptPersonsChange", message, hint)


def keep_aside(state: Path, path: str, data: bytes, name: str) -> None:
    """Make bytes that are about to lose their place durable outside the working tree."""
    folder = state / RECOVERED_FOLDER
    io.make_private_folder(folder)
    header = json.dumps({"path": path, "sha256": _digest(path, data)}).encode("ascii")
    io.write_file(folder / f"{name}{SUFFIX}", header + b"\n" + data)


def keep_replaced(state: Path, path: str, data: bytes) -> None:
    """Keep bytes that memfs itself replaced or removed before any commit held them, for 30 days."""
    keep_aside(state, path, data, f"{REPLACED}{_digest(path, data)[:16]}")
    oldest = time.time() - _KEPT_SECONDS
    with os.scandir(state / RECOVERED_FOLDER) as entries:
        for entry in entries:
            if entry.name.startswith(REPLACED) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                io.unlink(entry.path, missing_ok=True)


def read_aside(path: Path) -> tuple[str, bytes]:
    """Where displaced bytes belong, and the bytes.

    Raises:
        CorruptRecord: the file is not one that ``set_aside`` wrote, or no longer what it wrote.
    """
    line, _, data = io.read_file(path).partition(b"\n")
    try:
        header = json.loads(line)
        place, digest = header["path"], header.get("sha256")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        place, digest = None, None
    if not is_own(place):
        raise CorruptRecord("this is no content that was set aside", path=str(path), hint="remove it")
    if digest not in (_digest(place, data), None):  # the first ones had no digest
        raise CorruptRecord("the content that was set aside is damaged", path=str(path), hint="remove it")
    return place, data


def all_aside(state: Path) -> Iterator[tuple[Path, str, bytes]]:
    """Every content that was set aside and is whole: its file, where it belongs, and the bytes.

    Raises:
        StorageIO: one cannot be read now.
    """
    for name in io.listed(state / RECOVERED_FOLDER):
        if name.endswith(SUFFIX):
            with contextlib.suppress(FileNotFoundError, CorruptRecord, NotRegularFile):
                yield state / RECOVERED_FOLDER / name, *read_aside(state / RECOVERED_FOLDER / name)


def _digest(path: str, data: bytes) -> str:
    return sha256(path.encode("utf-8", "surrogateescape") + b"\0" + data)


def sweep(parts: Parts, folder: str, operation: Operation) -> list[Problem]:
    """Remove what was left in a folder when an operation was killed; what is neither side of it is set aside first.

    Raises:
        StorageIO: what could not be kept is still there.
    """
    problems: list[Problem] = []

    def look(data: bytes) -> None:
        if any(_is_side(change, data) for change in operation.changes) or _is_known(parts, data):
            return
        path = _place(parts, folder, operation.changes)
        keep_aside(parts.repository.state, path, data, f"{operation.id}-saved-{sha256(data)[:12]}")
        problems.append(_kept(path))

    parts.tree.sweep(folder, look)
    return problems


def _is_known(parts: Parts, data: bytes) -> bool:
    """Whether these bytes are in an earlier write, or in git: a power cut brings back what that write had removed."""
    earlier = (change for operation in parts.journal.operations() for change in operation.changes)
    digest = sha256(data)
    return any(digest in (change.old, change.new) for change in earlier) or _is_in_git(parts.repository, data)


def _is_in_git(repository: Repository, data: bytes) -> bool:
    try:
        return repository.blob(repository.blob_id(data)) == data
    except HistoryError:
        return False


def _is_side(change: FileChange, data: bytes) -> bool:
    """Whether these are the bytes before or after a change, or as many of the latter as could be written."""
    if change.data is not None and change.data.startswith(data):
        return True
    return not data or sha256(data) in (change.old, change.new)


def _place(parts: Parts, folder: str, changes: Sequence[FileChange]) -> str:
    """Which file such bytes were saved in: changes are carried out in order, and the last that was done has them."""
    inside = [change for change in changes if change.path.rpartition("/")[0] == folder]
    done = [change.path for change in inside if content_now(parts.tree, change.path) == change.new]
    return done[-1] if done else inside[0].path


def _kept(path: str) -> Problem:
    message = "this file was saved in the very moment of a write that was killed; what was saved is set aside"
    return Problem.warning(path, "KeptPersonsChange", message, "memfs restore --displaced lists it and brings it back")


def content_now(view: View, path: str) -> str:
    """The sha256 of what a file holds now, "" where there is none."""
    try:
        return sha256(view.read(path, READ_LIMIT).data)
    except FileNotFoundError:
        return ""


def put_in_place(tree: Tree, path: str, data: bytes | None, *, over: str) -> Stamp | None:
    """Write a file, or remove it where there is no data; see ``Tree.write`` and ``Tree.remove``."""
    if data is None:
        tree.remove(path, over=over)
        return None
    return tree.write(path, data, over=over)


def redo_all(parts: Parts, health: Health) -> list[Problem]:
    """Finish what is unfinished: whoever holds the lock knows that its writers are dead."""
    problems = [problem for operation in parts.journal.unfinished() for problem in _redo(parts, operation)]
    if any(problem.code == StorageFull.__name__ for problem in problems) and health.release_space():
        return redo_all(parts, health)
    return problems


def _superseded(parts: Parts, operation: Operation) -> set[str]:
    """The paths that later operations name, those in the secondary location included."""
    later = parts.journal.written_after(operation.id)
    secondary = parts.secondary
    if secondary is None or operation.id in secondary.journal.waiting:
        return later
    return later | secondary.held().keys()


def _redo(parts: Parts, operation: Operation) -> list[Problem]:
    problems: list[Problem] = []
    later, swept = _superseded(parts, operation), set[str]()
    for number, change in enumerate(operation.changes):
        try:
            folder = change.path.rpartition("/")[0]
            if folder not in swept:
                problems += sweep(parts, folder, operation)
                swept.add(folder)
            done = change.path in later or _redo_change(parts, change)
        except (PathEscape, NotRegularFile, ItemTooLarge, FileChanged):
            done = False
        except StorageIO as error:
            return [*problems, Problem.of(error, change.path)]
        try:
            if not done:
                problems.append(set_aside(parts.repository.state, change, f"{operation.id}-{number}"))
        except StorageIO as error:
            return [*problems, Problem.of(error)]
    parts.journal.mark_applied(operation.id)
    return problems


def _redo_change(parts: Parts, change: FileChange) -> bool:
    """Whether the file is, or could be made, what the change says."""
    found = content_now(parts.tree, change.path)
    if found == change.new:
        return True
    if found == change.old or (change.old == "" and found == sha256(b"")):
        put_in_place(parts.tree, change.path, change.data, over=found)
        return True
    return False
