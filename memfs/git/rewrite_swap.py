"""Builds the rewritten repository beside the old one, and swaps it in.

The new objects are complete and checked before anything of the old repository changes, and the swap begins only while
the repository is what was rewritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import EraseRefused, GitBusy, GitFailed
from memfs.fs import io
from memfs.git import objects
from memfs.git.busy import ERASE_FOLDER, lock_reason
from memfs.git.layout import Facts, facts_of
from memfs.git.objects import SUBMODULE, Object
from memfs.git.process import entries_of
from memfs.git.quarantine import renew
from memfs.git.refs import NULL
from memfs.git.repository import Repository
from memfs.git.rewrite import PATIENCE, Rewritten, inventory
from memfs.git.rewrite_text import Names, changed_loose, edit_logs, edit_reflog, packed_text, read_names, turn, turned
from memfs.git.transaction import index_of, keep_date, lock_of
from memfs.model.item import object_id

_AT_ONCE = 5_000
_BYTES_AT_ONCE = 32 << 20
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
INDEX = "index"


class Successor:
    """One rewritten repository beside the old one.

    Attributes:
        folder: where it lies; its layout is that of a git folder.
    """

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._repository = repository
        self._git = repository.git
        self.folder = folder
        self._old = repository.common_dir / "objects"
        self._made: dict[str, Object] = {}
        self._known: set[str] = set()
        self._bytes = 0

    def begin(self) -> None:
        """Make its folders, removing what an earlier attempt left."""
        io.remove_all(self.folder)
        io.make_private_folder(self.folder)
        for name in ("refs", "objects", "objects/pack", "objects/info", "made", "made/pack"):
            io.mkdir(self.folder / name, 0o700)
        io.write_file(self.folder / "config", _CONFIG, durable=False)

    # -- objects --------------------------------------------------------------------------------------------------
    def make(self, kind: str, data: bytes) -> str:
        """Store an object; return its id."""
        name = object_id(kind, data)
        if name not in self._known:
            self._known.add(name)
            self._made[name] = Object(kind, data)
            self._bytes += len(data)
            if len(self._made) >= _AT_ONCE or self._bytes >= _BYTES_AT_ONCE:
                self._flush()
        return name

    def _flush(self) -> None:
        if self._made:
            places = {"GIT_OBJECT_DIRECTORY": str(self.folder / "made")}
            data = objects.pack(self._made)
            self._git.run("index-pack", "--stdin", data=data, variables=places, timeout=PATIENCE)
        self._made, self._bytes = {}, 0

    def pack(self, kept: Iterable[str]) -> None:
        """Write the pack: some objects of the old repository, and all that were made."""
        self._flush()
        names = sorted(self._known.union(kept))
        places = {
            "GIT_OBJECT_DIRECTORY": str(self.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self.folder / 'made'}:{self._old}",
        }
        if names:
            request = "".join(f"{name}\n" for name in names).encode()
            base = str(self.folder / "objects/pack/pack")
            self._git.run("pack-objects", "-q", base, data=request, variables=places, timeout=PATIENCE)
        for path in self.pack_files():
            _sync(path)
        io.sync_folder(self.folder / "objects/pack")

    def pack_files(self) -> list[Path]:
        """The files of its pack; the index, without which git does not see the others, last."""
        found = [path for path in (self.folder / "objects/pack").iterdir() if not path.name.startswith("tmp_")]
        return sorted(found, key=lambda path: path.suffix == ".idx")

    # -- names ----------------------------------------------------------------------------------------------------
    def name(self, names: Names, done: Rewritten) -> None:
        """Give it refs, reflogs and HEAD as they will be when all is done."""
        io.write_file(self.folder / "HEAD", names.heads["HEAD"], durable=False)
        io.write_file(self.folder / "packed-refs", packed_text(turned(names.refs, done.mapped)), durable=False)
        for path, data in names.logs.items():
            place = self.folder / "logs" / path
            io.make_private_folder(place.parent)
            io.write_file(place, edit_reflog(data, done.mapped, done.traces), durable=False)

    def write_index(self, without: Collection[bytes]) -> None:
        """Copy the person's index, where there is one, without some paths and what git remembers of conflicts."""
        source, target = self._repository.git_dir / INDEX, self.folder / INDEX
        try:
            data = io.read_file(source)
        except FileNotFoundError:
            return
        facts = os.stat(source)
        io.write_file(target, data, facts.st_mode & 0o777, durable=False)
        if not without and b"REUC" not in data:
            return
        lines = b"".join(b"0 %s\t%s\0" % (NULL.encode(), path) for path in sorted(without))
        options = ("--clear-resolve-undo", "-z", "--index-info")
        self._git.run("update-index", *options, data=lines, variables={"GIT_INDEX_FILE": str(target)})
        keep_date(target, facts.st_mtime_ns)
        _sync(target)

    # -- check ----------------------------------------------------------------------------------------------------
    def check(self, strict: bool) -> None:
        """Look at every object, every ref and reflog, and the index.

        Raises:
            EraseRefused: something is missing or damaged; the old repository is as it was.
        """
        try:
            fsck(self._repository, strict, {"GIT_DIR": str(self.folder)})
        except GitFailed as error:
            raise EraseRefused(
                f"the rewritten history did not pass its check: {error.message}",
                hint="nothing was changed; run 'git fsck --full --strict' and report this",
            ) from error

    def compare(self, pairs: Mapping[str, str], gone: Collection[str], without: Collection[bytes]) -> None:
        """Check that each old tree minus the item is its new tree.

        Args:
            pairs: new commit by old one.
            gone: blobs that are left out; ``without``: paths that are.

        Raises:
            EraseRefused: one is not.
        """
        new_place = {"GIT_DIR": str(self.folder)}
        for old, new in pairs.items():
            before = _listing(self._repository, old, {})
            after = _listing(self._repository, new, new_place)
            wanted = [row for row in before if row[1] not in gone and row[0] not in without]
            if wanted != after:
                raise EraseRefused(
                    f"the rewritten commit {new} differs from {old} in more than the item",
                    hint="nothing was changed; please report this",
                )


def fsck(repository: Repository, strict: bool, variables: Mapping[str, str] | None = None) -> None:
    """Check a whole repository.

    Raises:
        GitFailed: it is damaged.
    """
    options = ("--full", "--no-dangling", "--no-progress", *(("--strict",) if strict else ()))
    repository.git.run("fsck", *options, variables=variables, timeout=PATIENCE)


def _listing(repository: Repository, commit: str, variables: Mapping[str, str]) -> list[tuple[bytes, str, bytes]]:
    out = repository.git.run("ls-tree", "-r", "-z", "--full-tree", commit, variables=variables, timeout=PATIENCE)
    rows = []
    for line in out.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, blob = facts.split(b" ")
        rows.append((path, blob.decode(), mode))
    return rows


def _sync(path: Path) -> None:
    fd = io.open_file(path, os.O_RDONLY)
    try:
        io.fsync(fd, str(path))
    finally:
        os.close(fd)


SWAP_LOCK = "lock"
_LOOSE = re.compile(r"[0-9a-f]{38}")
_FAN = re.compile(r"[0-9a-f]{2}")
_GRAPHS = ("info/commit-graph", "info/commit-graphs", "info/packs", "pack/multi-pack-index")


class MovedRef(Exception):
    """The repository changed meanwhile: look again. Never leaves the eraser."""


@dataclass(frozen=True, slots=True)
class Before:
    """A repository before anything was looked at: what came later is neither removed nor overwritten.

    Attributes:
        names: what named objects; ``index`` the facts of the index.
        stock: the files that held objects, below ``objects/``.
    """

    names: Names
    index: Facts
    stock: tuple[str, ...]

    @staticmethod
    def of(repository: Repository) -> Before:
        """As it is now."""
        held = _stock(repository)
        return Before(read_names(repository.layout), facts_of(index_of(repository.git_dir)), held)


def _stock(repository: Repository) -> tuple[str, ...]:
    """Every file that holds objects, and every half of one, below ``objects/``."""
    top = repository.common_dir / "objects"
    found = []
    for name in sorted(os.listdir(top)):
        if _FAN.fullmatch(name):
            found += [f"{name}/{inner}" for inner in sorted(os.listdir(top / name))]
        elif name.startswith("tmp_"):
            found.append(name)
    if (top / "pack").is_dir():
        found += [f"pack/{name}" for name in sorted(os.listdir(top / "pack"))]
    return tuple(found)


def swap(
    repository: Repository,
    successor: Successor,
    before: Before,
    done: Rewritten,
    begin: Callable[[], None],
    remove_files: Callable[[], None],
) -> None:
    """Put the new objects in, then the index and the list of quarantined branches, then all refs at once.

    Args:
        begin: makes the record by which an interrupted swap is known; called when nothing prevents it any more.
        remove_files: takes the item out of the working tree.

    Raises:
        MovedRef: something changed since the successor was made; nothing was begun.
        GitBusy: somebody holds a lock; nothing was begun.
    """
    index, common = index_of(repository.git_dir), repository.common_dir
    refs = [common / f"{ref}.lock" for ref in changed_loose(before.names, done.mapped)]
    with _holding(repository, [lock_of(index), common / "packed-refs.lock", *refs]):
        if read_names(repository.layout) != before.names or facts_of(index) != before.index:
            raise MovedRef
        begin()
        _add_pack(repository, successor)
        remove_files()
        new_index = successor.folder / INDEX
        if new_index.exists() and io.read_file(new_index) != io.read_file(index):
            io.rename(str(new_index), str(index))
            io.sync_folder(index.parent)
        renew(repository, done.mapped)
        turn(repository.layout, before.names, done.mapped)


def finish(
    repository: Repository, successor: Successor, before: Before, done: Rewritten, known: Collection[str]
) -> None:
    """After the swap: reflogs, then the old objects.

    Args:
        known: every object that stays or was made.

    Raises:
        MovedRef: something names an old object again, or an object nobody had seen; or somebody packed the old objects.
    """
    edit_logs(repository.layout, done.mapped, done.traces)
    now = read_names(repository.layout)
    held = now.ids(heads=False) | staged(repository)
    if (held | now.ids()) & done.gone or not held <= set(known):
        raise MovedRef
    repository.git.close()
    _remove_old(repository, successor, before)
    if inventory(repository.git).keys() & done.gone:
        raise MovedRef


def release(repository: Repository, own: Path) -> None:
    """Remove the locks that an ended eraser left: they are second names of its own file."""
    places = [repository.common_dir / "packed-refs.lock", lock_of(index_of(repository.git_dir))]
    for folder, _, names in os.walk(repository.common_dir / "refs"):
        places += [Path(folder) / name for name in names if name.endswith(".lock")]
    for lock in places:
        with suppress(OSError):
            if os.path.samefile(lock, own):
                io.unlink(lock, missing_ok=True)


@contextmanager
def _holding(repository: Repository, locks: Collection[Path]) -> Iterator[None]:
    own = repository.state / ERASE_FOLDER / SWAP_LOCK
    io.write_file(own, b"")
    taken = []
    try:
        for lock in locks:
            try:
                io.link(str(own), str(lock))
            except FileExistsError:
                reason = lock_reason(repository.layout, lock) or f"{lock.name} was held a moment ago"
                raise GitBusy(reason, path=str(lock), hint="nothing was changed; try again when it is gone") from None
            taken.append(lock)
        yield
    finally:
        for lock in taken:
            io.unlink(lock, missing_ok=True)


def _add_pack(repository: Repository, successor: Successor) -> None:
    folder = repository.common_dir / "objects/pack"
    io.mkdir(folder)
    for path in successor.pack_files():
        with suppress(FileExistsError):
            io.link(str(path), str(folder / path.name))
    io.sync_folder(folder)


def staged(repository: Repository) -> set[str]:
    """The blobs that the index names."""
    return {entry.blob for entry in entries_of(repository.git) if entry.mode != SUBMODULE}


def _remove_old(repository: Repository, successor: Successor, before: Before) -> None:
    top = repository.common_dir / "objects"
    ours = {f"pack/{path.name}" for path in successor.pack_files()}
    for name in _GRAPHS:
        io.remove_all(top / name)
    # Without its index a pack is nothing to git: no process meets half of one.
    old = sorted((name for name in before.stock if name not in ours), key=lambda name: not name.endswith(".idx"))
    for name in filter(_holds_objects, old):
        io.remove_all(top / name)
    for folder in {(top / name).parent for name in old}:
        io.sync_folder(folder)


def _holds_objects(name: str) -> bool:
    folder, _, rest = name.rpartition("/")
    return folder == "pack" or "tmp_" in name or bool(_LOOSE.fullmatch(rest))
