"""Finds the folder of a workspace and the folders of this user, and checks paths below a workspace; also of
memory that a repository keeps on a branch of its own.

Imports little, so that a hook that only records an event starts fast.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from memfs.config_names import CONFIGURATION, SETTINGS_FILE, WORKSPACE_VARIABLE
from memfs.errors import MemfsError, PathEscape, StorageIO, WorkspaceNotFound
from memfs.fs import io
from memfs.startup import regex

BRANCH = "context-memory"
LOCKED = "memfs keeps the memory of this repository here"
EXCLUDED = ("/ContextMemory", "!/ContextMemory/")
"""What git's exclude file says: a link of that name is left out, a folder, as on the memory's own branch, is not."""
_PLACE = "memfs/memory"
MEMORY_FOLDER = "ContextMemory"
"""The folder of a workspace's memory, and the link by which a repository's working tree reaches it."""
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
    with suppress(MemfsError, OSError):  # one who may only read, reads
        if os.stat(common).st_uid == os.geteuid():
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


def repository_around(start: Path) -> tuple[Path, Path] | None:
    """The folder at or above another with a repository, of whatever sort, and its common git folder; None without
    one, and where a ``.git`` leads nowhere.

    Args:
        start: links resolved.
    """
    for folder in (start, *start.parents):
        common = common_of(folder)
        if common is not None and os.path.lexists(common / "HEAD"):
            return folder, common
        if os.path.isfile(folder / ".git"):
            return None
        if folder.name != ".git" and all(os.path.lexists(folder / name) for name in ("HEAD", "objects", "refs")):
            return folder, folder  # a bare one
    return None


def settle(common: Path) -> bool:
    """Let git's record of the memory's working tree name the place where it is now, and let git never prune it.

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
    memory, entry = common / _PLACE, top / MEMORY_FOLDER
    if top == memory or os.path.lexists(top / SETTINGS_FILE):
        return False
    try:
        excluded = io.read_file(common / "info/exclude", _LARGEST).split(b"\n")
    except (MemfsError, OSError):
        return False
    if not {line.encode() for line in EXCLUDED} <= {*excluded}:
        return False
    inside = common.is_relative_to(top)
    target = os.path.join(os.path.relpath(memory, top) if inside else str(memory), MEMORY_FOLDER)
    with suppress(FileNotFoundError):
        if not stat.S_ISLNK(os.lstat(entry).st_mode):
            return False
        if os.readlink(entry) == target:
            return True
        if not is_link(top):
            return False
        io.unlink(entry, missing_ok=True)
    with suppress(FileExistsError):  # another process was quicker
        os.symlink(target, entry)
    return True


def is_link(top: Path) -> bool:
    """Whether what is in a working tree is a link of ours, though it may lead to where the repository was once."""
    try:
        return os.readlink(top / MEMORY_FOLDER).endswith(f"/{_PLACE}/{MEMORY_FOLDER}")
    except OSError:
        return False


def replaced(common: Path) -> Iterator[Path]:
    """What is in working trees of code in the place of the link; left alone, and never read."""
    for top in work_trees(common):
        if os.path.lexists(top / MEMORY_FOLDER) and not is_link(top) and not os.path.lexists(top / SETTINGS_FILE):
            yield top / MEMORY_FOLDER


def unlink(top: Path) -> None:
    """Remove the link from a working tree, if it is one of ours."""
    if is_link(top):
        io.unlink(top / MEMORY_FOLDER, missing_ok=True)


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
    """The folder in which what belongs beside the code is, such as ``AGENTS.md``.

    Args:
        root: the workspace.
        start: the folder in which a person or agent works.

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


_LOOKED_AT = 100


def named_workspace(environ: Mapping[str, str] | None = None) -> str:
    """What ``MEMFS_WORKSPACE`` names, "" where it is not set.

    Args:
        environ: the environment, the process's own by default.
    """
    return (os.environ if environ is None else environ).get(WORKSPACE_VARIABLE, "")


def find_workspace(start: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The workspace's folder: at or above ``start``, else ``MEMFS_WORKSPACE``, else the current folder.

    Raises:
        WorkspaceNotFound: no such folder, or none at or above it is a workspace (``is_workspace``).
    """
    named = named_workspace(environ)
    path = Path(start) if start is not None else Path(named).expanduser() if named else Path()
    if not os.path.isdir(path):
        hint = f"{WORKSPACE_VARIABLE} names it" if start is None and named else "'memfs init FOLDER' makes a workspace"
        raise WorkspaceNotFound(f"{str(path)!r} is {'a file' if os.path.exists(path) else 'no folder'}", hint=hint)
    folder = path.resolve()
    for candidate in (folder, *folder.parents):
        if found := workspace_at(candidate):
            return found
    raise _not_found(folder)


def workspace_at(folder: Path) -> Path | None:
    """The workspace that a folder stands for: itself, or its repository's memory on a branch of its own; None for none.

    A folder with settings of its own is its own workspace, such as a working tree in which that branch, or a pull
    request against it, is checked out.
    """
    memory = memory_of(folder) if os.path.lexists(folder / ".git") else None
    if memory is not None and not os.path.isfile(folder / SETTINGS_FILE):
        return memory
    return folder if is_workspace(folder) else None


def is_workspace(folder: Path) -> bool:
    """Whether a folder is a workspace: it has ``memfs.toml``, or a ``ContextMemory/`` with a memory in it.

    An empty ``ContextMemory/``, or one that holds only hidden files and configuration, was left behind; one that is a
    link is not one.
    """
    content = folder / MEMORY_FOLDER
    if os.path.isfile(folder / SETTINGS_FILE):
        return True
    if os.path.islink(content):
        return False
    for place, folders, names in os.walk(content):
        if any(name.endswith((".yaml", ".yml", ".json")) and not name.startswith(".") for name in names):
            return True
        folders[:] = [name for name in folders if not name.startswith(".")]
        if place == str(content):
            folders[:] = [name for name in folders if name != posixpath.basename(CONFIGURATION)]
    return False


def _not_found(folder: Path) -> WorkspaceNotFound:
    import shlex  # a hook that only keeps an event does without it

    hint = f"make a workspace with 'memfs init', or name one with -C or {WORKSPACE_VARIABLE}"
    with suppress(OSError), os.scandir(folder) as entries:  # as in a repository with code beside the memory
        inside = (entry for entry in islice(entries, _LOOKED_AT) if entry.is_dir() and is_workspace(Path(entry.path)))
        if below := next(inside, None):
            hint = f"there is one below it: name it with -C {shlex.quote(below.name)} or {WORKSPACE_VARIABLE}"
    for candidate in (folder, *folder.parents):
        if os.path.isdir(candidate / MEMORY_FOLDER):
            begin = f"memfs init {shlex.quote(str(candidate))}"
            return WorkspaceNotFound(
                f"no workspace: {MEMORY_FOLDER}/ in {str(candidate)!r} holds no memory, nor is there {SETTINGS_FILE}",
                hint=f"'{begin}' makes one of it; if it was left behind, remove the folder",
            )
    return WorkspaceNotFound(f"no {MEMORY_FOLDER}/ in {str(folder)!r} or any folder above it", hint=hint)


def user_folder() -> Path:
    """Where the workspace of this user is, for whatever belongs to no other: in the user's data folder."""
    return base_folder("XDG_DATA_HOME", ".local/share", "Library/Application Support") / "memfs"


_FOLDER = "ContextMemory/"
_NEVER = frozenset({"", ".", ".."})
# what a file system that folds case, shortens names or skips invisible characters may take for ".git"
_GIT = regex(r"(?:\.git|git~[0-9]+)[. ]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_SKIPPED = regex("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def is_own(path: object) -> bool:
    """Whether memfs may write to a path below the workspace."""
    if not isinstance(path, str) or not (path == SETTINGS_FILE or path.startswith(_FOLDER)):
        return False
    parts = path.split("/")
    return _NEVER.isdisjoint(parts) and "\0" not in path and not names_git(path) and _can_be_a_name(path)


def check_path(path: str) -> None:
    """Refuse a path that names nothing below a folder, before the disk is asked.

    Raises:
        PathEscape: it leads out of the folder or to git's own files, or no file can have that name.
    """
    if not _NEVER.isdisjoint(path.split("/")) or "\0" in path:
        raise PathEscape("not a path inside the workspace", path=path, hint="use a relative path without '..'")
    if names_git(path):
        raise PathEscape("git keeps its own files there", path=path, hint="use another name")
    if not path.isascii() and not _can_be_a_name(path):
        raise PathEscape("no file can have such a name", path=ascii(path)[1:-1], hint="use a valid path")


def names_git(path: str) -> bool:
    """Whether a part of a path is, to some file system, the folder in which git keeps a repository."""
    if "git" not in path and "git" not in path.lower() and path.isascii():
        return False
    return any(_GIT.fullmatch(_SKIPPED.sub("", part)) for part in path.split("/"))


def _can_be_a_name(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def home() -> Path:
    """This user's home folder: what ``HOME`` names, or what the system knows where that is not an absolute path.

    Raises:
        StorageIO: there is none: no ``HOME``, and the system does not know the user, as in some containers.
    """
    try:
        found = Path.home()
        if not found.is_absolute():
            import pwd  # few processes have such a HOME

            found = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (RuntimeError, KeyError):
        raise StorageIO("this user has no home folder", hint="set HOME to a folder of this user's") from None
    return found


def base_folder(variable: str, below_home: str, on_macs: str = "") -> Path:
    """What a variable of the XDG base directory specification names; without one, a folder below home.

    A relative path is ignored, as the specification says: it would be another folder wherever one works.

    Args:
        below_home: the folder that the specification gives where the variable is not set.
        on_macs: the folder on macOS, "" for the same one.

    Raises:
        StorageIO: it is needed, and there is no home.
    """
    named = os.environ.get(variable, "")
    if os.path.isabs(named):
        return Path(named)
    return home() / (on_macs if on_macs and sys.platform == "darwin" else below_home)
