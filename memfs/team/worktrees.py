"""Further working trees of a repository that hold nothing but one workspace's memory.

No file is written or removed that memfs does not know; what else is there stays. No hook, filter or checkout runs:
git registers the folder, memfs writes the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from memfs import errors
from memfs.config_names import SETTINGS_FILE
from memfs.fs import io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.journal import Journal
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import MEMORY_FOLDER, is_own
from memfs.git.layout import Layout, discover, read_small, state_folder
from memfs.git.objects import EXECUTABLE, REGULAR, TreeEntry
from memfs.git.process import contents, files_of, sizes, tether
from memfs.git.refs import HEADS, Refs
from memfs.git.repository import Repository
from memfs.model.state_paths import document_of_sidecar

_FOLDERS = "worktrees"
_BEGUN = "initializing"
_KEPT = ("recovered", "spool")
"""Parts of a workspace's state that nobody else has: contents set aside, and events that are no memories yet."""
_LARGEST = 1 << 30


def lay_out(repository: Repository, folder: Path, ref: str, commit: str) -> Layout:
    """Make a working tree for a branch that holds only the memory; may be repeated after it was interrupted.

    Args:
        folder: where; it is not there yet, or empty, or was begun before.
        commit: the branch's.

    Raises:
        BranchRefused: something else is in that place.
        GitFailed, RepoUnsupported, StorageIO: what is there can be taken up again by another call.
    """
    layout = at(folder, repository)
    if layout is None or Refs(layout).head().ref != ref:
        _forget_begun(folder, repository)
        _require_free(folder)
        short = ref.removeprefix(HEADS)
        with tether(repository.common_dir / "memfs") as held:
            repository.git.run("worktree", "add", "--quiet", "--no-checkout", str(folder), short, keep=(held,))
        layout = at(folder, repository)
    if layout is None:
        raise errors.BranchRefused("git made no working tree", path=str(folder), hint="run git worktree list")
    entries = files_of(repository.git, commit)
    for path in entries:
        require_path(path)
    _write_index(repository, layout, entries, _lay_files(repository, folder, entries))
    if read_small(layout.git_dir / "locked") == _BEGUN:
        io.unlink(layout.git_dir / "locked")
    io.sync_everything(str(folder))
    return layout


def at(folder: Path, repository: Repository) -> Layout | None:
    """The layout of this repository's working tree at a folder; None where there is none of it."""
    try:
        found = discover(folder) if os.path.lexists(folder / ".git") else None
    except errors.MemfsError:
        return None
    own = found is not None and found.common_dir == repository.common_dir and found.git_dir != repository.common_dir
    return found if own and found is not None and found.elsewhere is None and found.work_tree == folder else None


def take_away(layout: Layout, repository: Repository, commit: str) -> None:
    """Remove a working tree: the files that are as a commit has them, large values of documents, git's record of it and
    memfs's state. Files that are not as the commit has them stay.

    Args:
        commit: "" where none is known; then every file stays.
    """
    folder = layout.work_tree
    with closing(Tree(folder)) as tree:
        entries = files_of(repository.git, commit) if commit else {}
        _sweep(tree, entries)
        with tree.holding_folders():
            for path, entry in entries.items():
                if memory_path(repository, path, entry) and blob_now(tree, path) == entry.id:
                    tree.remove(os.fsdecode(path), durable=False)
        for name in [name for name in _present(folder) if document_of_sidecar(name)]:
            tree.remove(name, durable=False)
    left = any(_present(folder))
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            remove_empty(inner)
    _forget(layout)
    if not left and os.path.isdir(folder):
        io.rmdir(folder)
        io.sync_folder(folder.parent)


# -- files --------------------------------------------------------------------------------------------------------
def memory_path(repository: Repository, path: bytes, *entries: TreeEntry | None) -> str:
    """Where in the workspace a file of memory lies; "" for another file, and where an entry of it is no file."""
    inside = repository.below(path)
    own = inside is not None and is_own(inside) and all(entry is None or entry.mode in REGULAR for entry in entries)
    return inside if own and inside is not None else ""


def _write_index(repository: Repository, layout: Layout, entries: Mapping[bytes, TreeEntry], laid: set[bytes]) -> None:
    """An index that holds these paths; those that were not laid out are marked as meant to be missing."""
    index = layout.git_dir / "index"
    io.unlink(index, missing_ok=True)
    place = {"GIT_INDEX_FILE": str(index)}
    rows = b"".join(b"%s %s\t%s\0" % (one.mode.encode(), one.id.encode(), path) for path, one in entries.items())
    repository.git.run("update-index", "-z", "--index-info", data=rows, variables=place)
    skipped = b"".join(path + b"\0" for path in entries if path not in laid)
    repository.git.run("update-index", "-z", "--skip-worktree", "--stdin", data=skipped, variables=place)


def require_path(path: bytes) -> None:
    """Refuse what git itself would not take into an index: it may lay that out later without asking again."""
    for part in path.split(b"/"):
        plain = part.lower().rstrip(b". ").replace(b"\xe2\x80\x8c", b"").replace(b"\xe2\x80\x8d", b"")
        if part in (b"", b".", b"..") or plain in (b".git", b"git~1") or plain.startswith(b".git:"):
            shown = ascii(path)[2:-1]
            raise errors.RepoUnsupported("a commit names a file inside a git folder", path=shown, hint="run git fsck")


def _lay_files(repository: Repository, folder: Path, entries: Mapping[bytes, TreeEntry]) -> set[bytes]:
    wanted = {path: entry for path, entry in entries.items() if memory_path(repository, path, entry)}
    with closing(Tree(folder)) as tree:
        _sweep(tree, entries)
        with tree.holding_folders():
            there = {os.fsencode(path) for path in _present(folder)}
            kept = {path for path in wanted.keys() & there if blob_now(tree, path) == wanted[path].id}
            missing = [path for path in wanted if path not in kept]
            for path, data in _contents(repository, {path: wanted[path].id for path in missing}):
                tree.write(os.fsdecode(path), data, durable=False)
    for path, entry in wanted.items():
        if entry.mode == EXECUTABLE:
            io.chmod(str(folder / os.fsdecode(path)), 0o755)
    return set(wanted)


def _contents(repository: Repository, blobs: Mapping[bytes, str]) -> Iterator[tuple[bytes, bytes]]:
    """What goes into each file."""
    paths: dict[str, list[bytes]] = {}
    for path, blob in blobs.items():
        paths.setdefault(blob, []).append(path)
    known = sizes(repository.git, paths)
    if absent := paths.keys() - known.keys():
        blob = min(absent)
        hint = "a shallow or damaged clone lacks it; run git fsck"
        raise errors.HistoryUnavailable(f"the object {blob} is not in the repository", hint=hint)
    for blob, data in contents(repository.git, known):
        yield from ((path, data) for path in paths[blob])


def _sweep(tree: Tree, entries: Iterable[bytes]) -> None:
    """Remove what a writer that was killed left half-written."""
    for parent in {path.rpartition(b"/")[0] for path in entries}:
        tree.sweep(os.fsdecode(parent))


def blob_now(tree: Tree, path: bytes) -> str:
    """The blob id of what lies there; "" where nothing does, or no file."""
    try:
        return tree.read(os.fsdecode(path), _LARGEST).stamp.blob
    except (FileNotFoundError, errors.NotRegularFile, errors.PathEscape):
        return ""


def memory_files(tree: Tree) -> Iterator[str]:
    """The files below ``ContextMemory`` and the settings, but for what a writer left half-written."""
    for entry in tree.scan(MEMORY_FOLDER, hidden=True):
        if entry.regular and not is_temporary(entry.path.rpartition("/")[2]):
            yield entry.path
    if tree.entry(SETTINGS_FILE) is not None:
        yield SETTINGS_FILE


def _present(folder: Path) -> Iterator[str]:
    """Everything that is no folder, below a working tree, but for git's own file."""
    for place, folders, names in os.walk(folder, followlinks=False):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*names, *links):
            path = os.path.join(place, name)[len(str(folder)) + 1 :]
            if path != ".git" and not is_temporary(name):
                yield path


def _require_free(folder: Path) -> None:
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink() and not os.listdir(folder)):
        hint = "name another folder with --at"
        raise errors.BranchRefused("something is in the place of the working tree", path=str(folder), hint=hint)
    try:
        io.make_folders(folder.parent)
    except errors.MemfsError as error:
        raise errors.BranchRefused(
            f"there is no place for it: {error.message}", path=str(folder), hint="use --at"
        ) from error


# -- git's record -------------------------------------------------------------------------------------------------
def _forget(layout: Layout) -> None:
    """Remove what git and memfs know of a working tree."""
    _forget_state(layout)
    io.unlink(layout.work_tree / ".git", missing_ok=True)
    _remove_record(layout.git_dir)
    with suppress(errors.StorageIO):  # others have theirs there, too
        io.rmdir(layout.git_dir.parent)
    io.sync_folder(layout.common_dir)


def _forget_state(layout: Layout) -> None:
    state = state_folder(layout)
    if not any(names for kept in _KEPT for _, _, names in os.walk(state / kept)):
        io.remove_all(state)


def _remove_record(place: Path) -> None:
    """Remove git's record of a working tree. What names its folder goes last: by it a killed removal is taken up."""
    with suppress(FileNotFoundError):  # a person's 'git worktree prune' takes it away, too
        for path in sorted(place.iterdir()):
            if path.is_dir() and not path.is_symlink():
                io.remove_all(path)
            elif path.name != "gitdir":
                io.unlink(path, missing_ok=True)
        io.unlink(place / "gitdir", missing_ok=True)
        io.rmdir(place)


def _forget_begun(folder: Path, repository: Repository) -> None:
    """Remove what git left of a working tree whose making was interrupted: one that has no branch checked out yet."""
    record = repository.common_dir / _FOLDERS
    for name in io.listed(record):
        place = record / name
        back = read_small(place / "gitdir")
        bare = back is None and read_small(place / "locked") == _BEGUN and name.startswith(folder.name)
        if place.is_dir() and not place.is_symlink() and (bare or back == f"{folder}/.git"):
            _remove_record(place)
    if (read_small(folder / ".git") or "").startswith(f"gitdir: {record}/"):
        io.unlink(folder / ".git")


def remove_empty(top: Path) -> None:
    """Remove a folder and those in it, as far as nothing lies there."""
    for place, _, _ in os.walk(top, topdown=False, followlinks=False):
        with suppress(errors.StorageIO, OSError):
            io.rmdir(place)


def waiting_in(state: Path) -> int:
    """How many writes wait for their commit in a state folder, whose workspace may be gone."""
    if not os.path.lexists(state / "journal"):
        return 0
    with closing(Journal(state / "journal")) as journal:
        return len(journal.operations())


def update_refs(repository: Repository, orders: Iterable[str], reason: str) -> None:
    """Create, move or delete refs together, as orders of ``git update-ref``; the caller holds ``commit.lock``.

    Args:
        reason: for the reflog.

    Raises:
        GitFailed: git refused; none was moved.
    """
    data = os.fsencode("".join(f"{order}\n" for order in orders))
    with tether(repository.state.parent) as held:
        repository.git.run("update-ref", "--stdin", "-m", reason, data=data, keep=(held,))
