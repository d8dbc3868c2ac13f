"""A second repository beside the first: the same one without an item, whole and checked before anything is replaced.

Owns its folder, its one pack, its names and index, and the comparison with the old one. Nothing of the old repository
is touched here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from memfs.errors import EraseRefused, GitFailed
from memfs.files import io
from memfs.history import objects
from memfs.history.objects import Object
from memfs.history.refs import NULL
from memfs.history.repository import Repository
from memfs.history.rewrite_names import Names, packed_text
from memfs.history.rewrite_survey import PATIENCE
from memfs.model.stamp import object_id

_AT_ONCE = 5_000
_BYTES_AT_ONCE = 32 << 20
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
INDEX = "index"


class Successor:
    """One such repository.

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
        remove_all(self.folder)
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
    def name(self, names: Names) -> None:
        """Give it refs, reflogs and HEAD."""
        io.write_file(self.folder / "HEAD", names.heads["HEAD"], durable=False)
        io.write_file(self.folder / "packed-refs", packed_text(names.refs), durable=False)
        for path, data in names.logs.items():
            place = self.folder / "logs" / path
            io.make_private_folder(place.parent)
            io.write_file(place, data, durable=False)

    def write_index(self, without: Collection[bytes]) -> bool:
        """Copy the person's index without some paths; false if there is none, or nothing to be changed in it."""
        source = self._repository.git_dir / "index"
        try:
            data = io.read_file(source)
        except FileNotFoundError:
            return False
        target = self.folder / INDEX
        io.write_file(target, data, os.stat(source).st_mode & 0o777, durable=False)
        if not without and b"REUC" not in data:
            return False
        lines = b"".join(b"0 %s\t%s\0" % (NULL.encode(), path) for path in sorted(without))
        options = ("--clear-resolve-undo", "-z", "--index-info")
        self._git.run("update-index", *options, data=lines, variables={"GIT_INDEX_FILE": str(target)})
        _sync(target)
        return True

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


def remove_all(path: Path) -> int:
    """Remove a file, or a folder with all in it; return how many files that were. What is gone already is none."""
    if path.is_dir() and not path.is_symlink():
        removed = sum(remove_all(inner) for inner in sorted(path.iterdir()))
        with suppress(FileNotFoundError):
            io.rmdir(path)
        return removed
    try:
        io.unlink(path)
    except FileNotFoundError:
        return 0
    return 1


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
