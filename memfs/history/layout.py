"""Where a workspace's repository keeps what: work tree, git folder, common folder.

Owns finding a repository from a folder, and refusing the sorts that memfs does not handle, by reading files only. Knows
nothing of refs, objects or processes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import NotRegularFile, RepoUnsupported, RepoUntrusted
from memfs.files import io
from memfs.history.configfile import read_config, truth

_SMALL = 8192
_KNOWN_EXTENSIONS = frozenset(
    {
        "noop",
        "preciousobjects",
        "partialclone",
        "worktreeconfig",
        "objectformat",
        "refstorage",
        "relativeworktrees",
        "compatobjectformat",
    }
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one repository as seen from one workspace.

    Attributes:
        workspace: the workspace, links resolved.
        work_tree: top of the working tree that holds it.
        git_dir: this working tree's git folder, with its HEAD and index.
        common_dir: what all working trees share: objects, branches, configuration.
        prefix: the workspace below the work tree, "" or "a/b".
        foreign: a folder of the repository that belongs to another user, None where there is none.
    """

    workspace: Path
    work_tree: Path
    git_dir: Path
    common_dir: Path
    prefix: str
    foreign: Path | None


def discover(workspace: Path) -> Layout | None:
    """The repository that holds a folder, None where there is none.

    Raises:
        RepoUnsupported: bare, or of an object or ref format that memfs does not handle.
    """
    try:
        start = Path(os.path.realpath(workspace))
    except ValueError:  # no folder can have such a name
        return None
    for folder in (start, *start.parents):
        git_dir = _git_dir_at(folder)
        if git_dir is not None:
            return _layout(start, folder, git_dir)
        if _is_git_dir(folder):
            raise RepoUnsupported("bare repository", path=str(folder), hint="use a clone with a working tree")
    return None


def require_owner(layout: Layout, allowed: frozenset[str]) -> None:
    """Refuse a repository of another user, unless its work tree is among the folders that this user declared safe.

    Raises:
        RepoUntrusted: naming the folder and the command that declares it safe.
    """
    if layout.foreign is None or "*" in allowed or str(layout.work_tree) in allowed:
        return
    raise RepoUntrusted(
        "the repository belongs to another user",
        path=str(layout.foreign),
        hint=f"if you trust it: git config --global --add safe.directory '{layout.work_tree}'",
    )


def read_small(path: Path) -> str | None:
    """The stripped text of a small file such as HEAD; None when it is absent."""
    try:
        return os.fsdecode(io.read_file(path, _SMALL)).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegularFile:
        return None


def is_bare(layout: Layout) -> bool:
    """Whether the common folder has no working tree of its own, only linked ones: its HEAD checks nothing out."""
    settings = read_config(layout.common_dir / "config")
    if truth(settings, "extensions.worktreeconfig"):
        settings |= read_config(layout.common_dir / "config.worktree")
    return truth(settings, "core.bare")


def _git_dir_at(folder: Path) -> Path | None:
    entry = folder / ".git"
    if entry.is_dir():
        return Path(os.path.realpath(entry)) if _is_git_dir(entry) else None
    if not entry.is_file():
        return None
    text = read_small(entry) or ""
    target = Path(os.path.realpath(folder / text.removeprefix("gitdir:").strip()))
    if not text.startswith("gitdir:") or not _is_git_dir(target):
        raise RepoUnsupported(
            ".git is a file that names no repository", path=str(entry), hint="run git worktree repair"
        )
    return target


def _is_git_dir(folder: Path) -> bool:
    if not os.path.lexists(folder / "HEAD"):
        return False
    common = _common_dir(folder)
    return (common / "objects").is_dir() and (common / "refs").is_dir()


def _common_dir(git_dir: Path) -> Path:
    text = read_small(git_dir / "commondir")
    return Path(os.path.realpath(git_dir / text)) if text else Path(os.path.realpath(git_dir))


def _layout(workspace: Path, found_at: Path, git_dir: Path) -> Layout:
    common_dir = _common_dir(git_dir)
    foreign = _foreign(found_at, found_at / ".git", git_dir, common_dir)
    settings = read_config(common_dir / "config")
    _require_format(settings, common_dir)
    if truth(settings, "extensions.worktreeconfig"):
        settings |= read_config(git_dir / "config.worktree")
    work_tree = found_at
    if git_dir == common_dir:
        if truth(settings, "core.bare"):
            raise RepoUnsupported("bare repository", path=str(git_dir), hint="use a clone with a working tree")
        if "core.worktree" in settings:
            work_tree = Path(os.path.realpath(git_dir / settings["core.worktree"]))
    if not workspace.is_relative_to(work_tree) or workspace.is_relative_to(git_dir):
        raise RepoUnsupported("the workspace lies outside the working tree", path=str(workspace), hint="move it inside")
    below = workspace.relative_to(work_tree).as_posix()
    return Layout(workspace, work_tree, git_dir, common_dir, "" if below == "." else below, foreign)


def _require_format(settings: dict[str, str], common_dir: Path) -> None:
    where = str(common_dir)
    if settings.get("extensions.objectformat", "sha1").lower() != "sha1":
        raise RepoUnsupported("the repository uses SHA-256 object ids", path=where, hint="use a SHA-1 repository")
    if settings.get("extensions.refstorage", "files").lower() != "files":
        reason = "the repository keeps its refs in a reftable"
        raise RepoUnsupported(reason, path=where, hint="git refs migrate --ref-format=files")
    if settings.get("core.repositoryformatversion", "0").strip() not in ("0", "1"):
        raise RepoUnsupported("the repository format is newer than memfs knows", path=where, hint="upgrade memfs")
    for name in settings:
        section, _, key = name.partition(".")
        if section == "extensions" and key not in _KNOWN_EXTENSIONS:
            raise RepoUnsupported(f"the repository uses the extension '{key}'", path=where, hint="upgrade memfs")


def _foreign(*places: Path) -> Path | None:
    mine = {os.geteuid()}
    # As git does: root works in the repositories of the person who became root.
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        mine.add(int(os.environ["SUDO_UID"]))
    return next((place for place in places if os.lstat(place).st_uid not in mine), None)
