"""Turns groups of changes into commits, and moves a branch and the person's index together; packs objects.

Commits are durable on return, and are rebuilt when the branch moved meanwhile. The caller holds the repository's
``commit.lock``. The paths that a merge left unmerged in the index are read, and their outcomes staged, here, too.
Nothing is ever pruned.

The order of a step is: new index beside the old one, ``index.lock`` by ``link()``, look again, index, branch, unlock. A
step that failed or was interrupted is kept if the branch has its commit, and undone otherwise.
"""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.dataclass import NamedTuple, dataclass, replace
from memfs.errors import WARNING, GitBusy, GitFailed, HistoryError, HistoryUnavailable, NotRegularFile, Problem
from memfs.fs import io
from memfs.git import objects
from memfs.git.busy import OWN_LINK, at_work, holder_of, lock_reason, persons_command
from memfs.git.commit_object import CommitResult, Group, Identity, author, compose, encode_commit
from memfs.git.layout import (
    HEADS,
    HEX,
    NULL,
    Facts,
    Head,
    Layout,
    facts_of,
    is_branch,
    read_small,
    require_branch,
)
from memfs.git.objects import FILE, REGULAR, Object, Objects, Parts, TreeEditor, TreeEntry, write_loose
from memfs.git.process import TIMEOUT, child_lock, end, entries_of, finish, wait_for_children
from memfs.git.repository import Repository, beyond, holds_commit, is_ancestor
from memfs.startup import json, regex

STANDING_STILL = 0.5
RECORD, BEFORE, PUT = "commit.json", "index.before", "index.put"
_NAMES = (PUT, BEFORE, OWN_LINK, f"{OWN_LINK}.lock")
_PAUSE = 0.01
_SECOND = 10**9
_GIT_DIR = regex(r"\.|worktrees/(?!\.{1,2}$)[^/\0]+")


class StepRecord(NamedTuple):
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
    """The file that git locks an index with."""
    return index.with_name(index.name + ".lock")


def keep_date(index: Path, before: int) -> None:
    """Give a rewritten index the second of the one before it, in nanoseconds.

    From it git knows which files it must read although their size and date are as it has them: those that may have been
    edited in the second in which it looked. Our git looks at no file; with its own date such an edit would be unseen.
    """
    io.touch(index, before - before % _SECOND + time.time_ns() % _SECOND)


def settle(repository: Repository, state: Path, *, died: bool = False) -> StepRecord | None:
    """Bring an ended step to an end: keep it if the branch has its commit, else give the person's index back; unlock.

    A lock is ours where it is another name of the index file in our own folder: no other process can make that so.

    Args:
        died: the step's git was killed, alone or with the process that took the step, and may have left its locks.

    Returns the record if something was left to do. Without a lock of ours there is nothing to do but to sweep.
    """
    record = _read_record(state)
    pending = record is not None and _settle_index(repository, state, record, died)
    io.unlink(state / RECORD, missing_ok=True)
    sweep(state)
    return record if pending else None


def _settle_index(repository: Repository, state: Path, record: StepRecord, died: bool) -> bool:
    git_dir = Path(os.path.normpath(repository.common_dir / record.git_dir))
    index = index_of(git_dir)
    lock = lock_of(index)
    locked, replaced = _same(state / OWN_LINK, lock), _same(state / OWN_LINK, index)
    if not locked and not (replaced and not _arrived(repository, git_dir, record)):
        return False
    if not locked:
        # Our lock was removed: the index is ahead of the branch, and is put back under a lock all the same.
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


def _arrived(repository: Repository, git_dir: Path, record: StepRecord) -> bool:
    """Whether the branch holds the record's commit."""
    now = read_small(git_dir / "HEAD") if record.ref == "HEAD" else repository.ref_commit(record.ref)
    return now not in (None, "", record.old) and is_ancestor(repository, record.new, now)


def _drop_ref_locks(repository: Repository, state: Path, git_dir: Path, record: StepRecord, died: bool) -> None:
    """Remove the locks of branch and HEAD that the step's git left when it died: it took them under our index lock.

    The branch's own lock is known by the commit that only we were about to write. HEAD's holds nothing, nor may the
    branch's after a power cut; such a one is ours if it is no older than our record, does not change, and no git is
    seen.
    """
    layout = repository.layout
    if git_dir != repository.git_dir:  # the step was taken in another working tree, and people's git works there
        pointer = read_small(git_dir / "gitdir")
        top = Path(os.path.normpath(git_dir / pointer)) if pointer else git_dir
        layout = replace(layout, git_dir=git_dir, work_tree=top.parent)
    branch = [] if record.ref == "HEAD" else [repository.common_dir / f"{record.ref}.lock"]
    for lock in (*branch, git_dir / "HEAD.lock"):
        content = read_small(lock)
        if content is None:
            continue
        tells = HEX.fullmatch(content) or content.startswith("ref:")
        if content == record.new or (died and not tells and _is_left(layout, state / RECORD, lock)):
            io.unlink(lock, missing_ok=True)


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
    states = (folder / name for name in sorted(os.listdir(folder)))
    return [state for state in states if any(os.path.lexists(state / name) for name in (RECORD, *_NAMES))]


def _read_record(state: Path) -> StepRecord | None:
    """The record, if it leads nowhere but into this repository: it may have been unpacked together with it."""
    try:
        record = StepRecord(**json.loads(io.read_file(state / RECORD)))
    except (FileNotFoundError, ValueError, TypeError, RecursionError, NotRegularFile):
        # A record is complete before a lock is taken: a torn one means that the step never began.
        return None
    intact = (
        isinstance(record.ref, str)
        and (record.ref == "HEAD" or is_branch(record.ref))
        and all(isinstance(name, str) and HEX.fullmatch(name or NULL) for name in (record.old, record.new))
        and isinstance(record.git_dir, str)
        and _GIT_DIR.fullmatch(record.git_dir) is not None
    )
    return record if intact else None


def _write_record(repository: Repository, ref: str, old: str, new: str, had_index: bool) -> None:
    where = os.path.relpath(repository.git_dir, repository.common_dir)
    record = StepRecord(ref=ref, old=old, new=new, git_dir=where, had_index=had_index)
    io.write_file(repository.state / RECORD, json.dumps(record._asdict()).encode())


def sweep(state: Path) -> None:
    """Remove the second names of indexes that a step needs."""
    for name in _NAMES:
        io.unlink(state / name, missing_ok=True)


def _same(one: Path, other: Path) -> bool:
    """Whether two names are of one file; a link is the name of none."""
    try:
        facts = os.lstat(one), os.lstat(other)
    except OSError:
        return False
    return os.path.samestat(*facts) and stat.S_ISREG(facts[0].st_mode)


LOCK_PATIENCE = 1.0
_STDIN = ("--stdin", "-m", "memfs")


class RefIndexStep(NamedTuple):
    """One move of a branch, and of the index, from one commit to the next.

    Attributes:
        head: where HEAD points while the step is taken.
        ref, old, new: as in ``StepRecord``.
        entries: what the index is to hold for the changed paths; empty where the branch is not HEAD's.
        contents: every blob this step's commits gave a path: an entry with one of them is ours to replace.
        loose: the new objects that are files of their own.
    """

    head: Head
    ref: str
    old: str | None
    new: str
    entries: Mapping[bytes, TreeEntry | None]
    contents: Mapping[bytes, frozenset[str | None]]
    loose: Collection[str]


class NewIndex(NamedTuple):
    """A new index, ready to be put in place.

    Attributes:
        left: paths whose entry stays the person's.
        before: facts of the index it was made from.
        after: its own facts; the same as before where nothing is to be changed.
    """

    left: frozenset[bytes]
    before: Facts
    after: Facts


def take(repository: Repository, step: RefIndexStep) -> frozenset[bytes] | None:
    """Take the step; return the paths whose entry was left to the person.

    None means that HEAD or the index moved meanwhile, or a person's command began: nothing has changed, look again.

    Raises:
        GitBusy: another process holds a lock.
        GitFailed, StorageIO: nothing has changed, or the branch has the commit.
    """
    variables = repository.identity().committer.in_reflogs
    with child_lock(repository.state) as held:
        # the process that will move the branch, started early so that the index is locked for less time
        child = repository.git.open("update-ref", *_STDIN, variables=variables, keep=(held,))
    try:
        prepared = _prepare(repository, step)
        done = prepared is not None and _locked_part(repository, step, prepared, child)
        settle(repository, repository.state, died=_was_killed(child))
    except BaseException:
        end(child)
        settle(repository, repository.state, died=_was_killed(child))
        raise
    finally:
        end(child)
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

    A checkout holds it until it has laid out all files and written their entries: its holder finds in the index which
    files git takes for the branch's own, whatever HEAD says yet. If the process is killed, ``commits.recover`` unlocks.
    The caller holds ``commit.lock``.

    Raises:
        GitBusy: another process holds it.
    """
    state, index = repository.state, index_of(repository.git_dir)
    sweep(state)
    try:
        facts = _copy(index, state / OWN_LINK)
        _sync_file(state / OWN_LINK)
        _write_record(repository, "HEAD", NULL, NULL, had_index=facts is not None)
        _lock(repository, index)
        yield
    finally:
        settle(repository, state)


def _was_killed(child: subprocess.Popen[bytes]) -> bool:
    """Whether git ended without removing its locks: it did not hear in time that it should end, or memory was short."""
    return child.returncode == -signal.SIGKILL


def _locked_part(
    repository: Repository, step: RefIndexStep, prepared: NewIndex, child: subprocess.Popen[bytes]
) -> bool:
    state, index = repository.state, index_of(repository.git_dir)
    _lock(repository, index)
    if repository.head() != step.head or facts_of(index) != prepared.before or repository.obstacle() is not None:
        return False
    if prepared.after != prepared.before:
        io.link(str(state / OWN_LINK), str(state / PUT))
        io.rename(str(state / PUT), str(index))
    orders = f"start\nupdate {step.ref} {step.new} {step.old or NULL}\nprepare\ncommit\n"
    code, _, err = finish(child, os.fsencode(orders), TIMEOUT)
    now = repository.head().commit if step.ref == "HEAD" else repository.ref_commit(step.ref)
    if code and now == step.old:
        raise _refused(repository, step, err)
    # A prune that began after the branch moved removes nothing of it; of one that ended before, nothing is seen.
    loose = [repository.common_dir / "objects" / name[:2] / name[2:] for name in step.loose]
    if now == step.new and (persons_command(repository.layout) is not None or not all(map(os.path.lexists, loose))):
        return not _moved_back(repository, step)
    return now == step.new


def _moved_back(repository: Repository, step: RefIndexStep) -> bool:
    """Give the branch back to a person's command that began meanwhile, while the index is still locked.

    It may have read the branch before it moved: a checkout would then lay out the old commit under the new one, and the
    person's next commit take off what is new; a prune would remove, or has removed, what is new.
    """
    order = f"update {step.ref} {step.old} {step.new}" if step.old else f"delete {step.ref} {step.new}"
    data, variables = os.fsencode(f"{order}\n"), repository.identity().committer.in_reflogs
    with child_lock(repository.state) as held:
        try:
            repository.git.run("update-ref", *_STDIN, data=data, variables=variables, keep=(held,))
        except GitFailed:  # it has moved on from there
            return False
    return True


def _refused(repository: Repository, step: RefIndexStep, err: str) -> HistoryError:
    for lock in (repository.git_dir / "HEAD.lock", repository.common_dir / f"{step.ref}.lock"):
        reason = lock_reason(repository.layout, lock)
        if reason:
            return GitBusy(reason, hint="commits wait until it is gone")
    return GitFailed(f"git update-ref failed: {err or 'no message'}", hint="run git fsck if this repeats")


def _prepare(repository: Repository, step: RefIndexStep) -> NewIndex | None:
    """Build the new index and write the record; None if the index changed meanwhile."""
    state, index = repository.state, index_of(repository.git_dir)
    sweep(state)
    before = _copy(index, state / OWN_LINK)
    entries, left = dict(step.entries), set()
    if entries:
        staged = repository.staged_changes(step.old, before, state / OWN_LINK)
        for path in staged.keys() & step.entries.keys():
            if staged[path].blob not in step.contents[path]:  # the person has staged something else there
                left.add(path)
                del entries[path]
    if entries:
        rows = [(f"{one.mode} {one.id}" if one else f"0 {NULL}", path) for path, one in entries.items()]
        lines = b"".join(f"{facts}\t".encode() + path + b"\0" for facts, path in rows)
        variables = {"GIT_INDEX_FILE": str(state / OWN_LINK)}
        with child_lock(state) as held:
            repository.git.run("update-index", "-z", "--index-info", data=lines, variables=variables, keep=(held,))
        if before is not None:
            keep_date(state / OWN_LINK, before[2])
    _sync_file(state / OWN_LINK)
    if before is not None:  # the person's index gets a second name, if it is still the one that was copied
        with suppress(FileNotFoundError):
            io.link(str(index), str(state / BEFORE))
        if facts_of(state / BEFORE) != before:
            return None
    _write_record(repository, step.ref, step.old or "", step.new, had_index=before is not None)
    return NewIndex(left=frozenset(left), before=before, after=facts_of(state / OWN_LINK) if entries else before)


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
        source = io.open_file(index, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait forever
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(source)
        data = io.read_regular(source, str(index), 1 << 32)
    except NotRegularFile as error:
        raise GitBusy("the index is not a regular file", path=str(index), hint="move it away") from error
    finally:
        os.close(source)
    with io.descriptor(io.make_file(target, os.O_WRONLY | os.O_EXCL, stat.S_IMODE(found.st_mode))) as fd:
        io.write_all(fd, data, str(target))
    return found.st_ino, found.st_size, found.st_mtime_ns


def _sync_file(path: Path) -> None:
    """Make a file durable; an empty one is made where there is none, as a lock needs a file to be a name of."""
    with io.descriptor(io.make_file(path, os.O_RDONLY)) as fd:
        io.fsync(fd, str(path))


def _sync(repository: Repository, ref: str) -> None:
    """Make the moved branch and the released lock durable."""
    folder = repository.git_dir if ref == "HEAD" else (repository.common_dir / ref).parent
    while folder not in (repository.common_dir / "refs", repository.git_dir):
        io.sync_folder(folder)
        folder = folder.parent
    if ref == "HEAD":
        io.sync_folder(repository.git_dir)


_STAGE_TRIES = 20
REVERTED = "REVERT_HEAD"
"""Names a commit of which git brings in the parent."""
MERGED = "MERGE_HEAD"
_OPEN = (MERGED, "REBASE_HEAD", "CHERRY_PICK_HEAD", REVERTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmergedPath:
    """A path that git could not join.

    Attributes:
        path: below the workspace.
        base, ours, theirs: the versions; None where there is none: it was added, or that side removed it.
    """

    path: str
    base: TreeEntry | None = None
    ours: TreeEntry | None = None
    theirs: TreeEntry | None = None

    @property
    def plain(self) -> bool:
        """Whether each version is a file: no link, no submodule."""
        return all(stage is None or stage.mode in REGULAR for stage in (self.base, self.ours, self.theirs))

    @property
    def mode(self) -> str:
        """The mode of the outcome."""
        found = self.ours or self.theirs or self.base
        return found.mode if found else FILE


def unmerged(repository: Repository) -> tuple[list[UnmergedPath], int]:
    """The paths of the workspace that the person's index holds in several versions, and how many others it does.

    Raises:
        GitFailed: the index cannot be read.
    """
    found: dict[str, dict[int, TreeEntry]] = {}
    others: set[bytes] = set()
    for entry in entries_of(repository.git, unmerged=True):
        path = repository.below(entry.path)
        if path is None:
            others.add(entry.path)
        else:
            found.setdefault(path, {})[entry.stage] = TreeEntry(entry.mode, entry.blob)
    return [
        UnmergedPath(path=path, base=stages.get(1), ours=stages.get(2), theirs=stages.get(3))
        for path, stages in sorted(found.items())
    ], len(others)


def situation(repository: Repository) -> str:
    """The commit that the person's merge, cherry-pick, revert or rebase brings in, by its name; "" where none does."""
    folder = repository.git_dir
    # git leaves REBASE_HEAD behind when it is over
    rebases = any(os.path.lexists(folder / name) for name in ("rebase-merge", "rebase-apply"))
    found = (name for name in _OPEN if rebases or name != "REBASE_HEAD")
    return next((name for name in found if os.path.lexists(folder / name)), "")


def stage(repository: Repository, contents: Mapping[str, tuple[str, bytes | None]]) -> None:
    """Put outcomes into the person's index, in place of the versions there, as ``git add`` and ``git rm`` would.

    The contents are durable before. Other entries stay.

    Args:
        contents: by path, the mode and the bytes; None for a file that is gone.

    Raises:
        GitBusy: another process holds the index, or a git of an ended memfs still works on it. Nothing was changed.
        GitFailed, StorageIO.
    """
    blobs = {path: repository.blob_id(data) for path, (_, data) in contents.items() if data is not None}
    made = {blobs[path]: Object("blob", data) for path, (_, data) in contents.items() if data is not None}
    write_loose(repository.common_dir / "objects", made)
    lines = []
    for path, (mode, data) in contents.items():
        name = repository.full(path)
        lines.append(b"0 " + NULL.encode() + b"\t" + name + b"\0")
        if data is not None:
            lines.append(f"{mode} {blobs[path]}\t".encode() + name + b"\0")
    if not lines:
        return
    wait_for_children(repository.state)  # one that was killed here may still be about to put its outcomes there
    index = index_of(repository.git_dir)
    lock = lock_of(index)
    before = facts_of(index)
    for left in reversed(range(_STAGE_TRIES)):
        try:
            with child_lock(repository.state) as held:
                repository.git.run("update-index", "-z", "--index-info", data=b"".join(lines), keep=(held,))
        except GitFailed as error:
            reason = lock_reason(repository.layout, lock)
            if not reason and not left:
                raise
            if not left:
                raise GitBusy(reason, path=str(lock), hint="try again when it is gone") from error
            time.sleep(0.1)
        else:
            if before is not None:
                keep_date(index, before[2])
            return


# -- groups ---------------------------------------------------------------------------------------------------------
AT_MOST = 1000


def not_held(repository: Repository, groups: Sequence[Group], tip: str | None, since: str = "") -> list[Group]:
    """The groups that no commit after ``since`` made: same author, time, message and content.

    So our own commits are recognised after a crash between the branch's move and the journal's note of it.

    Each commit stands for one group at most, the oldest first: of two equal groups the second is not held by the commit
    of the first. A group that joins a line of history is held where the branch has that line, no matter who joined it.
    """
    if tip is None or not groups or tip == since:
        return list(groups)
    groups = [group for group in groups if not (group.merges and is_ancestor(repository, group.merges, tip))]
    if not groups:
        return []
    since = since if HEX.fullmatch(since) else ""
    person = repository.identity()
    marks = [_mark(commit_bytes(group, objects.EMPTY_TREE, (), person)) for group in groups]
    found: dict[tuple[bytes, bytes], list[str]] = {mark: [] for mark in marks}
    known = [since] if since and holds_commit(repository, since) else []
    # none of ours is older than its group
    for commit in beyond(repository, [tip], known, most=AT_MOST, since=min(group.time for group in groups)):
        if (mark := _mark(repository.object(commit).data)) in found:
            found[mark].append(commit)
    left = []
    for group, mark in zip(groups, marks, strict=True):
        holder = next((commit for commit in reversed(found[mark]) if _holds(repository, commit, group)), None)
        if holder is None:
            left.append(group)
        else:
            found[mark].remove(holder)
    return left


def commit_bytes(group: Group, tree: str, parents: Sequence[str], person: Identity) -> bytes:
    """The commit object of a group."""
    return encode_commit(
        tree,
        parents,
        author(group.writers, person.author),
        person.committer,
        group.time,
        compose(group.message, group.writers),
    )


def _mark(data: bytes) -> tuple[bytes, bytes]:
    """Author and message of a commit: what stays the same when it is rebased."""
    head, _, message = data.partition(b"\n\n")
    return next((line for line in head.split(b"\n") if line.startswith(b"author ")), b""), message


def _holds(repository: Repository, commit: str, group: Group) -> bool:
    for change in group.changes:
        entry = repository.entry(commit, change.path)
        blob = None if change.data is None else repository.blob_id(change.data)
        if (entry.id if entry else None) != blob:
            return False
    return True


Named = Mapping[Parts, str | None]

ATTEMPTS = 8
PATIENCE = 2.0
LOOSE_AT_MOST = 20
_SPREAD = 0.02


class Chain(NamedTuple):
    """Commits made in memory.

    Attributes:
        commits: their ids, oldest first.
        objects: all that is new.
        editor: finds paths in the new trees.
        root: the last commit's tree, None when it is empty.
        contents: every blob that a path was given; None for removed.
    """

    commits: tuple[str, ...]
    objects: Objects
    editor: TreeEditor
    root: str | None
    contents: Mapping[bytes, frozenset[str | None]]


def commit(
    repository: Repository, groups: Sequence[Group], ref: str, since: str = "", *, asked: bool = False
) -> CommitResult:
    """Put each group on a branch as one commit; on return the commits are durable.

    A group whose changes the branch holds already makes no commit; one that joins another line makes a commit with two
    parents, or moves a branch that has nothing of its own along that line. Where the branch is HEAD's, the person's
    index learns the paths; an entry that the person staged differently stays theirs and is reported. Where it is
    another branch, only that branch moves. The caller holds ``commit.lock``.

    Args:
        ref: full name of the branch, or ``HEAD`` where it is detached and the repository allows that.
        since: a commit that was made before any of the groups waited: only what the branch got after it can be theirs.
            "" where none is known; then a group that repeats a recent commit to the second is taken for that commit.
        asked: a person asked for them (``Signing.signed``).

    Raises:
        GitBusy: a person is in the middle of something; nothing has changed.
        SigningFailed: commits must be signed, and one cannot be; nothing has changed.
        HistoryUnavailable: the branch is gone.
        HistoryError, StorageIO: git or the disk refused. Whether the branch moved is for the next call to find out.
    """
    _finish(repository)
    until = time.monotonic() + PATIENCE
    for attempt in range(ATTEMPTS):
        # a step looks itself at running processes; here they are looked at where it was not taken
        while (obstacle := repository.obstacle(processes=attempt > 0)) is not None:
            if not obstacle.transient or time.monotonic() >= until:
                raise GitBusy(obstacle.reason, hint="commits wait until it is over")
            time.sleep(_SPREAD)
        head = repository.head()
        tip = _tip(repository, head, ref)
        chain = build(repository, groups, tip, since, asked)
        if not chain.commits:
            return CommitResult(commits=(), left_staged=())
        store(repository, chain.objects)
        entries: dict[bytes, TreeEntry | None] = {}
        if ref in (head.ref, "HEAD"):
            look = chain.editor.tree
            entries = {path: objects.find(look, chain.root, tuple(path.split(b"/"))) for path in chain.contents}
        loose = chain.objects if len(chain.objects) <= LOOSE_AT_MOST else ()
        step = RefIndexStep(head, ref, tip, chain.commits[-1], entries, chain.contents, loose)
        left = take(repository, step)
        if left is not None:
            repository.remember(chain.editor.made)
            shown = (repository.below(path) for path in sorted(left))
            return CommitResult(commits=chain.commits, left_staged=tuple(path for path in shown if path))
        time.sleep(_SPREAD * (1 + attempt) * random.random())  # noqa: S311 - spreads retries, guards nothing
    raise GitBusy("the branch moved again and again", hint="commits wait until it rests")


def recover(repository: Repository) -> list[Problem]:
    """Finish or undo what an ended memfs process left in the middle of a commit; the caller holds ``commit.lock``.

    Afterwards the person's index agrees with HEAD about our paths as it did before, and no lock of ours is left. Locks
    of others are reported by ``Repository.busy``, never removed.
    """
    io.sweep(repository.state)
    return [
        Problem(
            path="",
            code="InterruptedCommit",
            message=f"a commit to {record.ref} had been interrupted; its lock was removed",
            hint="nothing is lost: what was waiting is committed again",
            severity=WARNING,
        )
        for record in _finish(repository)
    ]


def build(
    repository: Repository, groups: Sequence[Group], tip: str | None, since: str = "", asked: bool = False
) -> Chain:
    """Make the commits of some groups on top of a commit, in memory."""
    made: Objects = {}
    editor = TreeEditor(repository.read_tree, made)
    root = repository.root(tip) if tip else None
    person = repository.identity()
    commits: list[str] = []
    named = [(group, _named(repository, group)) for group in not_held(repository, groups, tip, since)]
    for group, changes in named:
        other = group.merges if group.merges and holds_commit(repository, group.merges) else ""
        if other and not commits and (tip is None or is_ancestor(repository, tip, other)):
            # the branch need only move along the other line where it would hold the same by that
            after = TreeEditor(repository.read_tree, {}).apply(root, changes)
            if (after or objects.EMPTY_TREE) == repository.root(other):
                root = repository.root(other)
                commits.append(other)
                continue
        there = repository.root(other) if other else None
        for (parts, blob), change in zip(changes.items(), group.changes, strict=True):
            held = objects.find(repository.read_tree, there, parts)  # of the other line, at the same path
            if change.data is not None and (held is None or held.id != blob):
                objects.add(made, "blob", change.data)
        after = editor.apply(root, changes)
        if after == root and not other:
            continue
        root = after
        tree = after or objects.add(made, "tree", b"")
        parents = [parent for parent in (commits[-1] if commits else tip, other) if parent]
        unsigned = commit_bytes(group, tree, parents, person)
        signs = asked or repository.sign != "off"  # else the import is spared
        signed = repository.signing.signed(unsigned, group.writers, asked=asked) if signs else unsigned
        commits.append(objects.add(made, "commit", signed))
    contents: dict[bytes, frozenset[str | None]] = {}
    for _, changes in named:
        for parts, blob in changes.items():
            path = b"/".join(parts)
            contents[path] = contents.get(path, frozenset()) | {blob}
    return Chain(commits=tuple(commits), objects=made, editor=editor, root=root, contents=contents)


def store(repository: Repository, made: Objects) -> None:
    """Make objects durable: a few as loose files, many as one pack."""
    folder = repository.common_dir / "objects"
    if len(made) <= LOOSE_AT_MOST:
        objects.write_loose(folder, made)
        return
    repository.git.run("index-pack", "--stdin", data=objects.pack(made))
    io.sync_folder(folder / "pack")


def _named(repository: Repository, group: Group) -> Named:
    """The ids of a group's contents by path, None for what is removed."""
    return {
        objects.split(repository.full(change.path)): None if change.data is None else repository.blob_id(change.data)
        for change in group.changes
    }


def _tip(repository: Repository, head: Head, ref: str) -> str | None:
    if ref == "HEAD":
        if head.ref is not None:
            raise HistoryError("HEAD is not detached", hint="name the branch")
        return head.commit
    if require_branch(ref) == head.ref:
        return head.commit
    elsewhere = holder_of(repository.layout, ref)
    if elsewhere:
        raise GitBusy(elsewhere, hint="commits to it wait until it is not")
    tip = repository.ref_commit(ref)
    if tip is None:
        raise HistoryUnavailable(f"the branch {ref.removeprefix(HEADS)} is gone", hint="commit to the current one")
    return tip


def _finish(repository: Repository) -> list[StepRecord]:
    """End the steps that dead processes began, in whichever workspace; return those of which something was left.

    Costs two listings where there are none, so that ``commit`` can rely on it by itself.
    """
    ended = []
    wait_for_children(repository.state)  # where there was no index, a step leaves no trace until git has made one
    for state in unfinished(repository):
        wait_for_children(state)
        record = settle(repository, state, died=True)
        if record is not None:
            ended.append(record)
    return ended


# -- packs -----------------------------------------------------------------------------------------------------------
PACKING = 900.0
# A commit of one item writes six or seven loose objects, spread evenly over 256 folders: this many are 1,000 commits.
LOOSE_DUE = 6000
PACKS_DUE = 40
PACKS_JOINED = 8
_SAMPLED = ("17", "5e", "a3", "d9")


def due(repository: Repository) -> bool:
    """Whether about 1,000 commits have gathered since objects were last packed; looks at five folders only."""
    folder = repository.common_dir / "objects"
    loose = sum(len(io.listed(folder / name)) for name in _SAMPLED) * 256 // len(_SAMPLED)
    packs = sum(name.endswith(".pack") for name in io.listed(folder / "pack"))
    return loose >= LOOSE_DUE or packs >= PACKS_DUE


def maintain(repository: Repository) -> int:
    """Pack loose objects, join many packs, write the commit-graph with changed paths; the caller holds ``commit.lock``.

    Returns:
        How many bytes less the objects take.

    Raises:
        GitFailed: git refused; the repository is as usable as before.
    """
    top = repository.common_dir / "objects"
    before = io.weigh(top)
    packs = sum(name.endswith(".pack") for name in io.listed(top / "pack"))
    # One pack of all lets git store each version as a difference; what is unreachable is kept, as without joining.
    join = ("-a", "-k") if packs >= PACKS_JOINED else ()
    repository.git.run("repack", "-d", "-q", *join, timeout=PACKING)
    if repository.head_commit() is not None:
        options = ("write", "--reachable", "--changed-paths", "--split", "--no-progress")
        repository.git.run("commit-graph", *options, timeout=PACKING)
    for name in ("pack", "info", "info/commit-graphs"):
        if (top / name).is_dir():
            io.sync_folder(top / name)
    return max(0, before - io.weigh(top))
