"""One step of the person's index and a branch together, so that neither is ever behind the other for long.

Owns the order of design section 6: new index beside the old one, ``index.lock`` by ``link()``, look again, index,
branch, unlock. How a step that failed or was interrupted ends is ``memfs.history.settle``'s; how the commit was made is
not known here.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from memfs.errors import GitBusy, GitFailed, HistoryError, NotRegularFile
from memfs.files import io
from memfs.history.busy import OWN_LINK, lock_reason, persons_command
from memfs.history.git import TIMEOUT, end, finish
from memfs.history.objects import Entry
from memfs.history.refs import NULL, Head
from memfs.history.repository import Facts, Repository, facts_of
from memfs.history.settle import BEFORE, PUT, RECORD, Record, index_of, keep_date, lock_of, settle, sweep
from memfs.history.tether import tether

LOCK_PATIENCE = 1.0
_PAUSE = 0.01
_STDIN = ("--stdin", "-m", "memfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A branch's way from one commit to the next.

    Attributes:
        head: where HEAD points while the step is taken.
        ref, old, new: as in ``Record``.
        entries: what the index is to hold for the changed paths; empty where the branch is not HEAD's.
        contents: every blob this step's commits gave a path: an entry with one of them is ours to replace.
    """

    head: Head
    ref: str
    old: str | None
    new: str
    entries: Mapping[bytes, Entry | None]
    contents: Mapping[bytes, frozenset[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A new index, ready to be put in place.

    Attributes:
        left: paths whose entry stays the person's.
        before: facts of the index it was made from.
        after: its own facts; the same as before where nothing is to be changed.
    """

    left: frozenset[bytes]
    before: Facts
    after: Facts


def take(repository: Repository, step: Step) -> frozenset[bytes] | None:
    """Take the step; return the paths whose entry was left to the person.

    None means that HEAD or the index moved meanwhile, or a person's command began: nothing has changed, look again.

    Raises:
        GitBusy: somebody holds a lock.
        GitFailed, StorageIO: nothing has changed, or the branch has the commit.
    """
    with _ref_update(repository) as child:
        try:
            prepared = _prepare(repository, step)
            done = prepared is not None and _locked_part(repository, step, prepared, child)
            settle(repository, repository.state, died=_was_killed(child))
        except BaseException:
            end(child)
            settle(repository, repository.state, died=_was_killed(child))
            raise
    if not done or prepared is None:
        return None
    if step.entries:
        # What the person had staged elsewhere they still have: no need to ask git again before the next step.
        repository.restaged(step.new, prepared.after, step.entries.keys() - prepared.left)
    _sync(repository, step.ref)
    return prepared.left


@contextmanager
def index_lock(repository: Repository) -> Iterator[None]:
    """Hold the lock of the person's index, so that no git command of theirs changes files meanwhile.

    A checkout holds it until it has laid out all files and written their entries: who has it finds in the index which
    files git takes for the branch's own, whatever HEAD says yet. If the process is killed, ``commits.recover`` unlocks.
    The caller holds ``commit.lock``.

    Raises:
        GitBusy: somebody else holds it.
    """
    state, index = repository.state, index_of(repository.git_dir)
    sweep(state)
    try:
        facts = _copy(index, state / OWN_LINK)
        _sync_file(state / OWN_LINK)
        where = os.path.relpath(repository.git_dir, repository.common_dir)
        record = Record(ref="HEAD", old=NULL, new=NULL, git_dir=where, had_index=facts is not None)
        io.write_file(state / RECORD, json.dumps(asdict(record)).encode())
        _lock(repository, index)
        yield
    finally:
        settle(repository, state)


def _was_killed(child: subprocess.Popen[bytes]) -> bool:
    """Whether git ended without removing its locks: it did not hear in time that it should end, or memory was short."""
    return child.returncode == -signal.SIGKILL


def _locked_part(repository: Repository, step: Step, prepared: Prepared, child: subprocess.Popen[bytes]) -> bool:
    state, index = repository.state, index_of(repository.git_dir)
    _lock(repository, index)
    if repository.head() != step.head or facts_of(index) != prepared.before:
        return False
    if repository.obstacle() is not None:
        return False
    if prepared.after != prepared.before:
        io.link(str(state / OWN_LINK), str(state / PUT))
        io.rename(str(state / PUT), str(index))
    code, _, err = finish(child, _orders(step), TIMEOUT)
    now = repository.head().commit if step.ref == "HEAD" else repository.ref_commit(step.ref)
    if code and now == step.old:
        raise _refused(repository, step, err)
    if now == step.new and persons_command(repository.layout) is not None:
        return not _moved_back(repository, step)
    return now == step.new


def _moved_back(repository: Repository, step: Step) -> bool:
    """Give the branch back to a person's command that began meanwhile, while the index is still locked.

    It may have read the branch before it moved: a checkout would then lay out the old commit under the new one, and the
    person's next commit take off what is new.
    """
    order = f"update {step.ref} {step.old} {step.new}" if step.old else f"delete {step.ref} {step.new}"
    data, variables = os.fsencode(f"{order}\n"), repository.identity().committer.in_reflogs
    with tether(repository.state) as held:
        try:
            repository.git.run("update-ref", *_STDIN, data=data, variables=variables, keep=(held,))
        except GitFailed:  # it has moved on from there
            return False
    return True


def _orders(step: Step) -> bytes:
    return os.fsencode(f"start\nupdate {step.ref} {step.new} {step.old or NULL}\nprepare\ncommit\n")


def _refused(repository: Repository, step: Step, err: str) -> HistoryError:
    for lock in (repository.git_dir / "HEAD.lock", repository.common_dir / f"{step.ref}.lock"):
        reason = lock_reason(repository.layout, lock)
        if reason:
            return GitBusy(reason, hint="commits wait until it is gone")
    return GitFailed(f"git update-ref failed: {err or 'no message'}", hint="run git fsck if this repeats")


@contextmanager
def _ref_update(repository: Repository) -> Iterator[subprocess.Popen[bytes]]:
    """The process that will move the branch, started early so that the index is locked for less time."""
    variables = repository.identity().committer.in_reflogs
    with tether(repository.state) as held:
        child = repository.git.open("update-ref", *_STDIN, variables=variables, keep=(held,))
    try:
        yield child
    finally:
        end(child)


def _prepare(repository: Repository, step: Step) -> Prepared | None:
    """Build the new index and write the record; None if the index changed meanwhile."""
    state, index = repository.state, index_of(repository.git_dir)
    sweep(state)
    before = _copy(index, state / OWN_LINK)
    entries, left = _to_change(repository, step, before)
    if entries:
        lines = b"".join(map(_line, entries.items()))
        variables = {"GIT_INDEX_FILE": str(state / OWN_LINK)}
        with tether(state) as held:
            repository.git.run("update-index", "-z", "--index-info", data=lines, variables=variables, keep=(held,))
        if before is not None:
            keep_date(state / OWN_LINK, before[2])
    _sync_file(state / OWN_LINK)
    if before is not None and not _save(index, state / BEFORE, before):
        return None
    where = os.path.relpath(repository.git_dir, repository.common_dir)
    record = Record(ref=step.ref, old=step.old or "", new=step.new, git_dir=where, had_index=before is not None)
    io.write_file(state / RECORD, json.dumps(asdict(record)).encode())
    return Prepared(left=left, before=before, after=facts_of(state / OWN_LINK) if entries else before)


def _save(index: Path, saved: Path, facts: Facts) -> bool:
    """Give the person's index a second name; false if it is no longer the one that was copied."""
    try:
        io.link(str(index), str(saved))
    except FileNotFoundError:
        return False
    return facts_of(saved) == facts


def _to_change(repository: Repository, step: Step, facts: Facts) -> tuple[dict[bytes, Entry | None], frozenset[bytes]]:
    """The entries to write, and the paths that the person has staged differently."""
    if not step.entries:
        return {}, frozenset()
    staged = repository.staged_changes(step.old, facts, repository.state / OWN_LINK)
    entries, left = dict(step.entries), set()
    for path in staged.keys() & step.entries.keys():
        if staged[path].blob not in step.contents[path]:
            left.add(path)
            del entries[path]
    return entries, frozenset(left)


def _line(item: tuple[bytes, Entry | None]) -> bytes:
    path, entry = item
    return f"{entry.mode if entry else 0} {entry.id if entry else NULL}\t".encode() + path + b"\0"


# -- the lock -----------------------------------------------------------------------------------------------------
def _lock(repository: Repository, index: Path) -> None:
    lock = lock_of(index)
    until = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            io.link(str(repository.state / OWN_LINK), str(lock))
        except FileExistsError:
            if time.monotonic() >= until:
                reason = lock_reason(repository.layout, lock) or "index.lock is taken again and again"
                raise GitBusy(reason, path=str(lock), hint="commits wait until it is gone") from None
            time.sleep(_PAUSE)
        else:
            return


def _copy(index: Path, target: Path) -> Facts:
    """Copy the index; return the facts of what was copied, None where there is none: git then makes the target."""
    try:
        source = io.open_file(index, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait for ever
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(source)
        data = io.read_regular(source, str(index), 1 << 32)
    except NotRegularFile as error:
        raise GitBusy("the index is not a regular file", path=str(index), hint="move it away") from error
    finally:
        os.close(source)
    fd = io.make_file(target, os.O_WRONLY | os.O_EXCL, stat.S_IMODE(found.st_mode))
    try:
        io.write_all(fd, data, str(target))
    finally:
        os.close(fd)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _sync_file(path: Path) -> None:
    """Make a file durable; an empty one is made where there is none, as a lock needs a file to be a name of."""
    fd = io.make_file(path, os.O_RDONLY)
    try:
        io.fsync(fd, str(path))
    finally:
        os.close(fd)


def _sync(repository: Repository, ref: str) -> None:
    """Make the moved branch and the released lock durable."""
    folder = repository.git_dir if ref == "HEAD" else (repository.common_dir / ref).parent
    while folder not in (repository.common_dir / "refs", repository.git_dir):
        io.sync_folder(folder)
        folder = folder.parent
    if ref == "HEAD":
        io.sync_folder(repository.git_dir)
