"""Finds out whether a person or another git is in the middle of something, so that commits must wait.

Also, whether history may be rewritten at all. Each obstacle is named in words, with its process where one is seen. Only
looks; nothing is changed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import EraseRefused
from memfs.fs import io
from memfs.git.layout import ERASE_RECORD, HEADS, Head, Layout, is_bare, read_config, read_small
from memfs.startup import TYPE_CHECKING, regex

if TYPE_CHECKING:
    from memfs.git.repository import Repository

_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})

RESIDENT = "memfs-resident"
"""What the system calls a resident."""


class GitProcess(NamedTuple):
    """A running git: its process id, its verb ("" when it has none), its working folder."""

    pid: int
    verb: str
    folder: str


class BusyProcess(NamedTuple):
    """A process at work in a folder.

    Attributes:
        pid: its id.
        name: its name.
    """

    pid: int
    name: str


def running_git() -> Iterator[GitProcess]:
    """Every running git process of this user."""
    try:
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        me = os.geteuid()
        for name in filter(str.isdigit, os.listdir(processes)):
            try:
                if not _read(f"{name}/comm", processes).startswith(b"git"):
                    continue
                words = [os.fsdecode(word) for word in _read(f"{name}/cmdline", processes).split(b"\0")]
                program = os.path.basename(words[0])
                owner, folder = os.stat(name, dir_fd=processes).st_uid, os.readlink(f"{name}/cwd", dir_fd=processes)
            except OSError:  # it ended meanwhile, or is not ours to see
                continue
            if owner == me and (program == "git" or program.startswith("git-")):
                yield GitProcess(int(name), verb_of(words), folder)
    finally:
        os.close(processes)


def users_of(*folders: str) -> list[BusyProcess]:
    """The other processes of this user at work in one of some folders, or with a file open there.

    A resident is none: it does no work while it waits, and ends with the folder.
    """
    found = []
    inside = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    for name in io.listed(Path("/proc")):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            places = [os.readlink(f"/proc/{name}/cwd")]
            places += [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
            if any(f"{place}/".startswith(inside) for place in places):
                program = os.fsdecode(_read(f"/proc/{name}/comm")).strip()
                found += [BusyProcess(int(name), program)] if program != RESIDENT else []
        except OSError:  # it ended meanwhile, or is not ours to see
            continue
    return sorted(found)


def verb_of(words: list[str]) -> str:
    """The verb of a git command line: ``commit`` in ``git -C there commit -m x``."""
    program = os.path.basename(words[0])
    if program.startswith("git-"):
        return program.removeprefix("git-")
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in _WITH_VALUE
        else:
            return word
    return ""


def _read(path: str, folder: int | None = None) -> bytes:
    # Not through memfs.fs.io: /proc is no disk, and a few hundred of these must take milliseconds.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


VERBS = frozenset(
    {"am", "checkout", "cherry-pick", "commit", "merge", "pull", "rebase", "reset", "revert", "stash", "switch"}
)
MOVES = VERBS - {"commit"}
_PAUSE = 0.01
_MOVES_END = 2.0
_STATES = (
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply/applying", "git am is in progress"),
    ("rebase-apply", "a rebase is in progress"),
    ("MERGE_HEAD", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("sequencer", "a cherry-pick or revert is in progress"),
    ("BISECT_LOG", "a bisect is in progress"),
)
OWN_LINK = "index.next"


class Obstacle(NamedTuple):
    """Why commits wait, and whether it may well be over within a second."""

    reason: str
    transient: bool


def obstacle(layout: Layout, head: Head, allow_detached: bool) -> Obstacle | None:
    """What prevents a commit to HEAD's branch by the files of git's folder; None when nothing does."""
    # Commits on top of a history that is about to be replaced would have to be rewritten, too.
    for state in _subfolders(layout.common_dir / "memfs"):
        if os.path.lexists(state / ERASE_RECORD):
            return Obstacle(
                "a cut of history or an erase was interrupted; the next memfs command in its workspace ends it", False
            )
    return situation(layout, head, allow_detached)


def situation(layout: Layout, head: Head, allow_detached: bool) -> Obstacle | None:
    """As ``obstacle``, for one who is about to end an interrupted erase."""
    for name, reason in _STATES:
        if os.path.lexists(layout.git_dir / name):
            return Obstacle(reason, False)
    if head.damage:
        return Obstacle(f"{head.damage}; run git fsck", False)
    if head.ref is None and not allow_detached:
        return Obstacle("HEAD is detached", False)
    if head.ref is not None:
        elsewhere = holder_of(layout, head.ref)
        if elsewhere:
            return Obstacle(elsewhere, False)
    return _strange_index(layout) or _leads_out(layout, head) or _held_lock(layout, head)


def holder_of(layout: Layout, ref: str) -> str:
    """The other working tree in which a branch is checked out or being rebased, in words; "" when none is."""
    folders = [layout.common_dir, *_subfolders(layout.common_dir / "worktrees")]
    for git_dir in folders:
        names = [git_dir / "rebase-merge/head-name", git_dir / "rebase-apply/head-name"]
        if git_dir != layout.git_dir and not (git_dir == layout.common_dir and is_bare(layout)):
            names.append(git_dir / "HEAD")
        if any((read_small(name) or "").removeprefix("ref:").strip() == ref for name in names):
            place = os.path.dirname(read_small(git_dir / "gitdir") or str(git_dir))
            return f"the branch {ref.removeprefix(HEADS)} is checked out in {place}"
    return ""


def is_own_lock(layout: Layout, lock: Path) -> bool:
    """Whether a lock file is another name of an index that a memfs process has prepared."""
    for state in _subfolders(layout.common_dir / "memfs"):
        try:
            if os.path.samestat(os.lstat(state / OWN_LINK), os.lstat(lock)):
                return True
        except OSError:
            continue
    return False


def lock_reason(layout: Layout, lock: Path) -> str:
    """A held lock in words: its name, its age, and whether a process is seen to hold it; "" when it is gone."""
    try:
        age = max(0, int(time.time() - os.lstat(lock).st_mtime))
    except FileNotFoundError:
        return ""
    holder = at_work(layout)
    if holder:
        return f"{lock.name} is held, for {age} s, probably by git {holder.verb} (process {holder.pid})"
    return f"{lock.name} is {age} s old and no git process appears to hold it; if none runs elsewhere, delete {lock}"


def at_work(layout: Layout) -> GitProcess | None:
    """A git process that works in this working tree and is not memfs's own; None when none is seen."""
    return next((process for process in running_git() if _in_tree(layout, process)), None)


def _strange_index(layout: Layout) -> Obstacle | None:
    """What is no file there would make git wait forever, as a pipe does."""
    index = layout.git_dir / "index"
    if os.path.islink(index) and os.path.dirname(os.path.realpath(index)) != os.path.realpath(layout.git_dir):
        return Obstacle(f"{index} is a link to elsewhere; replace it by a file", False)
    try:
        strange = not stat.S_ISREG(os.stat(index).st_mode)
    except OSError:
        return None
    return Obstacle(f"{index} is not a regular file; move it away", False) if strange else None


def _leads_out(layout: Layout, head: Head) -> Obstacle | None:
    """A link in the way to what a commit writes, which would take it out of the repository."""
    common, git_dir, ref = str(layout.common_dir), str(layout.git_dir), head.ref or "HEAD"
    above = [ref[:end] for end, sign in enumerate(ref) if sign == "/"]
    written = ("objects", "objects/pack", "objects/info", *above, "logs", *(f"logs/{name}" for name in (*above, ref)))
    paths = (*(f"{common}/{name}" for name in written), f"{git_dir}/logs", f"{git_dir}/logs/HEAD")
    top = os.path.realpath(layout.common_dir) + "/"
    for path in dict.fromkeys(paths):
        if os.path.islink(path) and not os.path.realpath(path).startswith(top):
            return Obstacle(f"{path} is a link that leads out of the repository; replace it", False)
    return None


def _held_lock(layout: Layout, head: Head) -> Obstacle | None:
    places = [layout.git_dir / "index.lock", layout.git_dir / "HEAD.lock"]
    if head.ref is not None:
        places.append(layout.common_dir / f"{head.ref}.lock")
    for lock in places:
        if os.path.lexists(lock) and not is_own_lock(layout, lock):
            reason = lock_reason(layout, lock)
            if reason:
                return Obstacle(reason, True)
    return None


def persons_command(layout: Layout) -> Obstacle | None:
    """A git command of a person's that moves branches or files, at work in this working tree, or one that prunes in any
    tree of the repository: it may have read the branches before a commit, whose objects it then removes. None when none
    is.
    """
    for process in running_git():
        if (process.verb == "prune" and _shares(layout, process)) or (
            process.verb in VERBS and _in_tree(layout, process)
        ):
            return Obstacle(f"git {process.verb} is running (process {process.pid})", True)
    return None


def let_moves_end(layout: Layout) -> None:
    """Wait while a person's git command changes the files of this working tree, as a checkout does.

    Until it has moved HEAD, files of one branch are there under the name of another. It holds ``index.lock`` all the
    time but for the last moment, so that where none is, nothing else is looked at.
    """
    lock = layout.git_dir / "index.lock"
    if not os.path.lexists(lock) or is_own_lock(layout, lock):
        return
    end = time.monotonic() + _MOVES_END
    while any(process.verb in MOVES and _in_tree(layout, process) for process in running_git()):
        if time.monotonic() >= end:
            return
        time.sleep(_PAUSE)


def _in_tree(layout: Layout, process: GitProcess) -> bool:
    """Whether a process works in this working tree itself, not in a repository inside it, and is not memfs's own."""
    folder = Path(process.folder)
    if folder.is_relative_to(layout.common_dir / "memfs"):
        return False
    if folder.is_relative_to(layout.git_dir):
        return True
    if not folder.is_relative_to(layout.work_tree):
        return False
    nearest = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    return nearest == layout.work_tree


def _shares(layout: Layout, process: GitProcess) -> bool:
    """Whether a process works in some working tree of this repository, or in its git folder."""
    folder = Path(process.folder)
    nearest = next((place / ".git" for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), folder)
    return str(layout.common_dir) in f"{os.path.realpath(nearest)} {read_small(nearest)}"


def _subfolders(folder: Path) -> Iterator[Path]:
    return (folder / name for name in io.listed(folder))


# -- rewriting history ------------------------------------------------------------------------------------------------
_PARTIAL = regex(r"remote\..*\.promisor|extensions\.partialclone")
_WAY_OUT = "'git worktree remove' the others, or 'git worktree prune' those gone"
_FINISHED = 5.0
# What only reads, or lasts as long as an editor is open, is in no one's way.
_HARMLESS = frozenset(
    {"blame", "cat-file", "check-ignore", "config", "credential-cache--daemon", "describe", "diff", "for-each-ref"}
    | {"fsmonitor--daemon", "grep", "log", "ls-files", "ls-tree", "rev-list", "rev-parse", "show", "status"}
)
# What a killed memfs may have left at work: it would bring back what is taken out, or write into what is prepared.
_OF_OURS = frozenset(
    {"commit-graph", "fetch", "index-pack", "pack-objects", "push", "repack", "unpack-objects", "update-index"}
    | {"update-ref"}
)


def refuse_kind(repository: Repository) -> None:
    """Refuse a repository whose objects are not all its own, or which others work in.

    Raises:
        EraseRefused: with the way out.
    """
    for reason, hint in _unfit(repository):
        raise EraseRefused(reason, hint=hint)


def refuse_busy(repository: Repository) -> None:
    """Refuse while git is in the middle of something, or a person's own command runs.

    Raises:
        EraseRefused: with the way out.
    """
    until = time.monotonic() + _FINISHED
    while True:
        found = situation(repository.layout, repository.head(), allow_detached=False)
        reason = found.reason if found else _running(repository)
        if not reason:
            return
        if (found and not found.transient) or time.monotonic() >= until:
            hint = "'git switch' to a branch first" if reason == "HEAD is detached" else "finish it first"
            raise EraseRefused(reason, hint=hint)
        time.sleep(_PAUSE)


def _running(repository: Repository) -> str:
    layout = repository.layout
    for process in running_git():
        folder = Path(process.folder)
        inside = folder.is_relative_to(layout.work_tree) or folder.is_relative_to(layout.common_dir)
        ours = folder.is_relative_to(layout.common_dir / "memfs")
        if inside and (process.verb in _OF_OURS if ours else process.verb not in _HARMLESS):
            return f"git {process.verb} is running (process {process.pid})"
    return ""


# -- sorts of repositories ------------------------------------------------------------------------------------------
def _unfit(repository: Repository) -> Iterator[tuple[str, str]]:
    """Why others depend on the history, or what it consists of is not all here or not as it seems, and the way out."""
    common = repository.common_dir
    others = sorted(io.listed(common / "worktrees"))
    if repository.work_tree.is_relative_to(common):
        yield (
            "a memory on its own branch shares its repository with code",
            "do it in a clone of that branch alone: see 'Erasing' in docs/teams/own-branch.md",
        )
    if repository.git_dir != common:
        yield (
            "this is a linked working tree, and others use the same history",
            f"run it in the main working tree; before, {_WAY_OUT}",
        )
    if others:
        yield f"other working trees use this history: {', '.join(others)}", _WAY_OUT
    if any(above == ".git" and name == "modules" for above, name in pairwise(common.parts)):
        yield (
            "this repository is a submodule: the one above it names its commits",
            "clone it on its own, erase there, and name the new commit above",
        )
    top = common / "objects"
    linked = any(path.is_symlink() for path in (top, *top.iterdir()))
    if linked or os.stat(top).st_dev != os.stat(repository.state).st_dev:
        yield f"the objects lie elsewhere than in {top}", "move them into the git folder"
    for name in ("alternates", "http-alternates"):
        if (top / "info" / name).exists():
            hint = f"'git repack -a -d' and remove {top / 'info' / name}; then erase in the other one, too"
            yield "the repository borrows objects from another one", hint
    if (common / "shallow").exists():
        yield "this is a shallow clone", "'git fetch --unshallow' first"
    settings = read_config(common / "config")
    if any(map(_PARTIAL.fullmatch, settings)):
        yield "this is a partial clone", "clone it again without --filter"
    if (common / "info/grafts").exists() or repository.git.run("for-each-ref", "refs/replace/"):
        yield "the repository replaces objects by others", "'git replace -d' them, and remove .git/info/grafts"
    if any(name.startswith("sharedindex.") for name in io.listed(repository.git_dir)):
        yield "the index is split", "'git update-index --no-split-index' and remove .git/sharedindex.*"
