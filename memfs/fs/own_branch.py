"""Finds and repairs memory that a repository keeps on a branch of its own, by reading few files.

The branch is checked out within the git folder, where no checkout, stash or clean of code reaches it. Each working tree
of code has a link to it, for people and editors; memfs never follows the link, so a missing or wrong one is harmless.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs.config_names import SETTINGS_FILE
from memfs.errors import MemfsError
from memfs.fs import io

BRANCH = "context-memory"
LOCKED = "memfs keeps the memory of this repository here"
EXCLUDED = ("/ContextMemory", "!/ContextMemory/")
"""What git's exclude file says: a link of that name is left out, a folder, as on the memory's own branch, is not."""
_PLACE = "memfs/memory"
_LINK = "ContextMemory"
_SMALL = 8192
_LARGEST = 1 << 20


def memory_of(top: Path) -> Path | None:
    """The memory on its own branch of the repository whose working tree is at a folder; None where it has none.

    Where the repository was moved or copied, git's record of the place is put right; where the folder's link to the
    memory is gone, it is made again.
    """
    common = common_of(top)
    memory = place_in(common) if common is not None else None
    if common is None or memory is None:
        return None
    if _is_mine(common):
        with suppress(MemfsError, OSError):  # one who may only read, reads
            settle(common)
            link(top, common)
    return memory


def place_in(common: Path) -> Path | None:
    """Where the memory is checked out within a git folder, whether git's record of it is right or not."""
    memory = common / _PLACE
    real = all(_is_folder(folder) for folder in (memory.parent, memory))
    return memory if real and _read(memory / ".git").startswith("gitdir: ") else None


def common_of(top: Path) -> Path | None:
    """The git folder that all working trees of a repository share, by one of them; None where none is at the folder.

    A ``.git`` that leads to a repository which does not know this working tree leads nowhere.
    """
    entry = top / ".git"
    if _is_folder(entry):
        return Path(os.path.realpath(entry))
    text = _read(entry)
    if not text.startswith("gitdir: "):
        return None
    git_dir = Path(os.path.realpath(top / text.removeprefix("gitdir: ")))
    named = _read(git_dir / "commondir")
    if not named:
        return None if git_dir.name == ".git" and git_dir.parent != top else git_dir
    common = Path(os.path.realpath(git_dir / named))
    if place_in(common) == top:
        return common
    back = _read(git_dir / "gitdir")
    return common if back and os.path.realpath(git_dir / back) == os.path.realpath(entry) else None


def settle(common: Path) -> bool:
    """Let git's record of the memory's working tree name the place where it lies now, and let git never prune it.

    Returns:
        False where git has no such record any more.

    Raises:
        StorageIO: it cannot be written.
    """
    memory = place_in(common)
    if memory is None:
        return False
    pointer = _read(memory / ".git").removeprefix("gitdir: ")
    record = common / "worktrees" / os.path.basename(pointer)
    if not _is_folder(record.parent) or not _is_folder(record) or not _read(record / "HEAD"):
        return False
    if os.path.realpath(memory / pointer) != os.path.realpath(record):
        io.write_file(memory / ".git", os.fsencode(f"gitdir: {record}\n"), mode=0o644)
    back = _read(record / "gitdir")
    if not back or os.path.realpath(record / back) != os.path.realpath(memory / ".git"):
        io.write_file(record / "gitdir", os.fsencode(f"{memory}/.git\n"), mode=0o644)
    if not os.path.lexists(record / "locked"):
        io.write_file(record / "locked", f"{LOCKED}\n".encode(), mode=0o644)
    return True


def link(top: Path, common: Path) -> bool:
    """Make the link to the memory in a working tree of code, where nothing else is in its place.

    Only where git leaves it out: a link that shows up among a person's changes would be committed.

    Returns:
        Whether the link is there.
    """
    memory, entry = common / _PLACE, top / _LINK
    if top == memory or os.path.lexists(top / SETTINGS_FILE) or not _is_excluded(common):
        return False
    inside = common.is_relative_to(top)
    wanted = os.path.join(os.path.relpath(memory, top) if inside else str(memory), _LINK)
    with suppress(FileNotFoundError):
        if not stat.S_ISLNK(os.lstat(entry).st_mode):
            return False
        if os.readlink(entry) == wanted:
            return True
        if not is_link(top):
            return False
        io.unlink(entry, missing_ok=True)
    with suppress(FileExistsError):  # another process was quicker
        os.symlink(wanted, entry)
    return True


def is_link(top: Path) -> bool:
    """Whether what is in a working tree is a link of ours, though it may lead to where the repository was once."""
    try:
        return os.readlink(top / _LINK).endswith(f"/{_PLACE}/{_LINK}")
    except OSError:
        return False


def replaced(common: Path) -> Iterator[Path]:
    """What is in working trees of code in the place of the link; left alone, and never read."""
    for top in work_trees(common):
        if os.path.lexists(top / _LINK) and not is_link(top) and not os.path.lexists(top / SETTINGS_FILE):
            yield top / _LINK


def unlink(top: Path) -> None:
    """Remove the link from a working tree, if it is one of ours."""
    if is_link(top):
        io.unlink(top / _LINK, missing_ok=True)


def work_trees(common: Path) -> Iterator[Path]:
    """The working trees of a repository that are there, that of the memory left out."""
    if common.name == ".git":
        yield common.parent
    record = common / "worktrees"
    for name in sorted(os.listdir(record)) if _is_folder(record) else ():
        back = _read(record / name / "gitdir")
        top = Path(os.path.realpath(record / name / back)).parent if back else None
        if top is not None and top != common / _PLACE and _read(top / ".git"):
            yield top


def code_of(root: Path, start: Path) -> Path:
    """The folder in which what belongs beside the code lies, such as ``AGENTS.md``.

    Args:
        root: the workspace.
        start: where somebody works.

    Returns:
        Of a memory on its own branch the working tree of code around ``start``, else the main one; of every other
        workspace the workspace itself.
    """
    common = root.parent.parent
    if place_in(common) != root:
        return root
    with suppress(FileNotFoundError):  # the current folder may have been removed
        folder = Path(os.path.realpath(start))
        for candidate in (folder, *folder.parents):
            if candidate != root and os.path.lexists(candidate / ".git") and common_of(candidate) == common:
                return candidate
    return next(work_trees(common), root)


def code_trees(root: Path, start: Path) -> tuple[Path, ...]:
    """All such folders of a workspace, the one of ``code_of`` first; only a memory on its own branch has several."""
    found, common = code_of(root, start), root.parent.parent
    return (found, *(top for top in work_trees(common) if top != found)) if found != root else (root,)


def exclude(before: bytes | None, wanted: bool) -> bytes:
    """Git's exclude file with the lines about the link, or without them; every other byte stays."""
    lines = (before or b"").splitlines(keepends=True)
    ours = [line.encode() for line in EXCLUDED]
    kept = [line for line in lines if line.strip() not in ours]
    if not wanted:
        return b"".join(kept)
    if kept and not kept[-1].endswith(b"\n"):
        kept[-1] += b"\n"
    return b"".join([*kept, *(line + b"\n" for line in ours)])


def _is_excluded(common: Path) -> bool:
    try:
        lines = io.read_file(common / "info/exclude", _LARGEST).split(b"\n")
    except (MemfsError, OSError):
        return False
    return all(line.encode() in lines for line in EXCLUDED)


def _is_mine(folder: Path) -> bool:
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _read(path: Path) -> str:
    """The stripped text of a small regular file, "" where there is none."""
    try:
        return os.fsdecode(io.read_file(path, _SMALL)).strip()
    except (MemfsError, OSError):
        return ""
