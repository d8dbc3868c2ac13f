"""Ending a step of index and branch that was begun: at once after a failure, or later after a crash.

Owns the record that a step leaves, the proof that a lock is ours, and the choice between keeping and undoing. A lock is
ours when it is another name of the index file that lies in our own folder: no other process can make that so.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from dataclasses import dataclass, replace
from pathlib import Path

from memfs.errors import NotRegularFile
from memfs.files import io
from memfs.history.ancestry import is_ancestor
from memfs.history.busy import OWN_LINK, at_work
from memfs.history.layout import Layout, read_small
from memfs.history.refs import HEX, NULL, is_branch
from memfs.history.repository import Repository

STANDING_STILL = 0.5
RECORD, BEFORE, PUT = "commit.json", "index.before", "index.put"
_NAMES = (PUT, BEFORE, OWN_LINK, f"{OWN_LINK}.lock")
_PAUSE = 0.01
_SECOND = 10**9
_GIT_DIR = re.compile(r"\.|worktrees/(?!\.{1,2}$)[^/\0]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a step is about to do, written before it begins.

    Attributes:
        ref: the branch, or ``HEAD`` where it is detached.
        old, new: its commit before ("" = none) and after.
        git_dir: the working tree's git folder, below the common one.
        had_index: whether there was an index.
    """

    ref: str
    old: str
    new: str
    git_dir: str
    had_index: bool


def index_of(git_dir: Path) -> Path:
    """The index of a working tree. Where it is a link to beside it, git replaces what that points to, and so do we."""
    index = git_dir / "index"
    target = Path(os.path.realpath(index))
    return target if target.parent == Path(os.path.realpath(git_dir)) else index


def lock_of(index: Path) -> Path:
    """The file by which git locks an index."""
    return index.with_name(index.name + ".lock")


def keep_date(index: Path, before: int) -> None:
    """Give an index that was written anew the second of the one before it, in nanoseconds.

    By it git tells which files it must read although their size and date are as it knows them: those that may have been
    edited in the second in which it looked. Our git looks at no file; with its own date such an edit would be unseen.
    """
    io.touch(index, before - before % _SECOND + time.time_ns() % _SECOND)


def settle(repository: Repository, state: Path, *, died: bool = False) -> Record | None:
    """Bring an ended step to an end: keep it if the branch has its commit, else give the person's index back; unlock.

    Args:
        died: the step's git was killed, alone or with whoever took the step, and may have left its locks.

    Returns the record if something was left to do. Without a lock of ours there is nothing to do but to sweep.
    """
    record = _read_record(state)
    pending = record is not None and _settle_index(repository, state, record, died)
    io.unlink(state / RECORD, missing_ok=True)
    sweep(state)
    return record if pending else None


def _settle_index(repository: Repository, state: Path, record: Record, died: bool) -> bool:
    git_dir = Path(os.path.normpath(repository.common_dir / record.git_dir))
    index = index_of(git_dir)
    lock = lock_of(index)
    locked, replaced = _same(state / OWN_LINK, lock), _same(state / OWN_LINK, index)
    if not locked and not (replaced and not _arrived(repository, git_dir, record)):
        return False
    if not locked:
        # Somebody removed our lock: the index is ahead of the branch, and is put back under a lock all the same.
        try:
            io.link(str(state / OWN_LINK), str(lock))
        except FileExistsError:
            return False
    if replaced and not _arrived(repository, git_dir, record):
        if record.had_index:
            io.rename(str(state / BEFORE), str(index))
        else:
            io.unlink(index, missing_ok=True)
    _drop_ref_locks(repository, state, git_dir, record, died)
    io.unlink(lock, missing_ok=True)
    io.sync_folder(git_dir)
    return True


def _arrived(repository: Repository, git_dir: Path, record: Record) -> bool:
    """Whether the branch holds the record's commit."""
    now = read_small(git_dir / "HEAD") if record.ref == "HEAD" else repository.ref_commit(record.ref)
    return now not in (None, "", record.old) and is_ancestor(repository, record.new, now)


def _drop_ref_locks(repository: Repository, state: Path, git_dir: Path, record: Record, died: bool) -> None:
    """Remove the locks of branch and HEAD that the step's git left when it died: it took them under our index lock.

    The branch's own lock tells by the commit that only we were about to write. HEAD's holds nothing, nor may the
    branch's after a power cut; such a one is ours if it is no older than our record, stands still, and no git is seen.
    """
    branch = [] if record.ref == "HEAD" else [repository.common_dir / f"{record.ref}.lock"]
    for lock in (*branch, git_dir / "HEAD.lock"):
        content = read_small(lock)
        if content is None:
            continue
        tells = HEX.fullmatch(content) or content.startswith("ref:")
        layout = _layout_of(repository, git_dir)
        if content == record.new or (died and not tells and _is_left(layout, state / RECORD, lock)):
            io.unlink(lock, missing_ok=True)


def _layout_of(repository: Repository, git_dir: Path) -> Layout:
    """The working tree in which a step was taken: it may be another one than ours, and people's git works there."""
    if git_dir == repository.git_dir:
        return repository.layout
    told = read_small(git_dir / "gitdir")
    top = Path(os.path.normpath(git_dir / told)) if told else git_dir
    return replace(repository.layout, git_dir=git_dir, work_tree=top.parent)


def _is_left(layout: Layout, record: Path, lock: Path) -> bool:
    """Whether a lock without a content was left by the step that a record is of."""
    try:
        facts = os.lstat(lock)
        if facts.st_mtime_ns < os.lstat(record).st_mtime_ns or not stat.S_ISREG(facts.st_mode):
            return False
        until = time.monotonic() + STANDING_STILL
        while time.monotonic() < until:
            if at_work(layout) or not os.path.samestat(os.lstat(lock), facts):
                return False
            time.sleep(_PAUSE)
    except FileNotFoundError:
        return False
    return True


def unfinished(repository: Repository) -> list[Path]:
    """The state folders, of any working tree or workspace of this repository, that hold a begun and not ended step.

    A step that ended before its record was written left second names of indexes only: it is one of them too.
    """
    folder = repository.common_dir / "memfs"
    return [folder / name for name in sorted(os.listdir(folder)) if _has_traces(folder / name)]


def _has_traces(state: Path) -> bool:
    return any(os.path.lexists(state / name) for name in (RECORD, *_NAMES))


def _read_record(state: Path) -> Record | None:
    try:
        record = Record(**json.loads(io.read_file(state / RECORD)))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, RecursionError, NotRegularFile):
        # A record is complete before a lock is taken: a torn one stands for a step that never began.
        return None
    return record if _is_sound(record) else None


def _is_sound(record: Record) -> bool:
    """Whether the record leads nowhere but into this repository: it may have been unpacked together with it."""
    return (
        isinstance(record.ref, str)
        and (record.ref == "HEAD" or is_branch(record.ref))
        and all(isinstance(name, str) and HEX.fullmatch(name or NULL) for name in (record.old, record.new))
        and isinstance(record.git_dir, str)
        and _GIT_DIR.fullmatch(record.git_dir) is not None
    )


def sweep(state: Path) -> None:
    """Remove the second names of indexes that a step needs."""
    for name in _NAMES:
        io.unlink(state / name, missing_ok=True)


def _same(one: Path, other: Path) -> bool:
    """Whether two names are of one file; a link is nobody's name."""
    try:
        facts = os.lstat(one), os.lstat(other)
    except OSError:
        return False
    return os.path.samestat(*facts) and stat.S_ISREG(facts[0].st_mode)
