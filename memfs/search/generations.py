"""Stores generations of an index in the user's cache, safe against crashes, damage and foreign files.

A folder ``gen-<n>/`` holds the engine's files and a manifest with the digest of every file;
``current`` names the generation and its manifest's digest. A generation never changes once it is named; the next one is
made beside it and named by one rename. One that does not match its manifest to the last byte is never opened, so that a
pickle planted in it is never loaded. ``verified`` says by which facts about its files it was found to match: while they
have these, and the file system reports every edit, they are not read again.

``UnchangedFolders`` compares many files with a generation at once.

Also locates the cache folders of a repository's workspaces, and empties or removes them: by the repository's own record
and by what each cache says of itself, so that those of a workspace that was moved, removed or mounted are found, too.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import IndexUnavailable, LockTimeout, MemfsError, NotRegularFile, StorageIO
from memfs.fs import io
from memfs.fs.lock import locked_within, release
from memfs.fs.tree import detects_edits
from memfs.fs.workspace_location import base_folder
from memfs.model.item import RACY_NS
from memfs.search.analyzer import identity
from memfs.search.engine import Engine, engine
from memfs.startup import Any, json, regex, sha256

FORMAT = 3
POINTER = "current"
LOCK = "index.lock"
VERIFIED = "verified"
MANIFEST = "manifest.json"
FILES = "engine"
_SMALL = 1 << 20


class Generation(NamedTuple):
    """One verified generation: number, folder, the manifest's digest, and that of each file by name below it."""

    number: int
    folder: Path
    digest: str
    digests: Mapping[str, str]

    @property
    def files(self) -> Path:
        """The engine's folder."""
        return self.folder / FILES

    def facts(self) -> dict[str, list[int]]:
        """What tells whether a file was touched or replaced, by name."""
        return {name: _facts(self.folder / name) for name in self.digests}

    def there(self) -> bool:
        """Whether its folder still holds this generation, and not another of the same number."""
        try:
            return sha256(io.read_file(self.folder / MANIFEST)).hexdigest() == self.digest
        except (OSError, MemfsError):
            return False


NOBODY = (0, "")
"""What the pointer names where there is none."""


class Generations:
    """The generations of one index folder for one engine."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder, self._engine = folder, engine

    # -- reading ----------------------------------------------------------------------------------------------------
    def pointer(self) -> tuple[int, str]:
        """The number and the manifest's digest that the pointer names; ``NOBODY`` where there is none.

        A number alone may come again once the folder was removed.
        """
        try:
            _check_folder(self._folder)
            named = json.loads(io.read_file(self._folder / POINTER, _SMALL))
            number, digest = named["generation"], named["manifest"]
        except (OSError, MemfsError, ValueError, KeyError, TypeError):
            return NOBODY
        sound = isinstance(number, int) and isinstance(digest, str) and number > 0
        return (number, digest) if sound else NOBODY

    def current(self) -> Generation | None:
        """The current generation, every byte of it verified, now or when its files were as they are.

        None when it is missing, damaged, foreign, or made by another format, engine or analyzer.
        """
        number, digest = self.pointer()
        folder = self._folder / f"gen-{number}"
        try:
            data = io.read_file(folder / MANIFEST)
            if sha256(data).hexdigest() != digest:  # it is not the one that the pointer names
                return None
            manifest = json.loads(data)
            if manifest | self._marks(number) != manifest:
                return None
            digests: dict[str, str] = manifest["files"]
            for inner in (folder, folder / FILES):
                _check_folder(inner)
            if set(_names(folder)) != {*digests, MANIFEST}:
                return None
            began, facts = time.time_ns(), {name: _facts(folder / name) for name in digests}
            noted = io.read_record(self._folder / VERIFIED)
            known = noted.get("files") if isinstance(noted, dict) and noted.get("manifest") == digest else None
            unread = [name for name in digests if known.get(name) == facts[name]] if isinstance(known, dict) else []
            if any(name not in unread and _digest(folder / name) != digests[name] for name in digests):
                return None
            # keep by which facts all files were verified, where a later edit would show in them
            old = all(began - max(times) >= RACY_NS for _, *times, _, _ in facts.values())
            if len(unread) < len(digests) and old and detects_edits(self._folder):
                with suppress(StorageIO, FileNotFoundError):
                    record = json.dumps({"manifest": digest, "files": facts})
                    io.write_file(self._folder / VERIFIED, record.encode(), durable=False)
            return Generation(number, folder, digest, digests)
        except (MemfsError, OSError, ValueError, LookupError, TypeError):
            return None

    def _marks(self, number: int) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "engine": self._engine.form,
            "analyzer": identity(),
            "byteorder": sys.byteorder,
            "generation": number,
        }

    # -- writing ----------------------------------------------------------------------------------------------------
    @contextmanager
    def lock(self, wait: float = 0.0) -> Iterator[bool]:
        """Hold ``index.lock``; yields whether it was acquired within ``wait`` seconds.

        Raises:
            StorageIO: the folder or the lock cannot be made, or the folder was removed in this very moment.
        """
        io.make_private_folder(self._folder)
        try:
            fd = io.make_file(self._folder / LOCK, os.O_RDWR)
        except NotRegularFile as error:  # a cache's file is no reason to refuse what was asked
            raise StorageIO(error.message, path=error.path, hint=error.hint) from error
        owner = os.getpid()
        try:
            yield locked_within(fd, wait)
        finally:
            if os.getpid() == owner:
                release(fd)
            else:  # a child that was forked meanwhile must not end it
                os.close(fd)

    def begin(self, base: Generation | None) -> Path:
        """A folder for the next generation, with the engine's files of ``base`` in it. Needs the lock."""
        numbers = [number for name in io.listed(self._folder) if (number := number_of(name)) is not None]
        folder = self._folder / f"gen-{max((*numbers, self.pointer()[0])) + 1}"
        # Where the folder was removed and made again two writers may each hold a lock: none goes on with another's.
        if not io.mkdir(folder, 0o700):
            raise StorageIO("another process begins it", path=str(folder), hint="try again in a moment")
        io.mkdir(folder / FILES, 0o700)
        for name in base.digests if base is not None else ():
            if base is not None and name.startswith(FILES + "/"):
                if name.removeprefix(FILES + "/") in self._engine.rewrites:
                    from shutil import copyfile  # only such a fold needs it

                    with io.operation("write", folder / name):
                        copyfile(base.folder / name, folder / name)
                else:
                    io.link(str(base.folder / name), str(folder / name))
        return folder

    def publish(self, folder: Path, base: Generation | None) -> Generation:
        """Complete, sync and name the generation begun in ``folder``. Needs the lock."""
        number = number_of(folder.name) or 0
        digests = {}
        for name in _names(folder):
            if base is not None and name in base.digests and _is_same(base.folder / name, folder / name):
                digests[name] = base.digests[name]
            else:  # make it durable, and this user's only
                with io.descriptor(io.open_file(folder / name, os.O_RDONLY)) as fd:
                    io.chmod(fd, 0o600)
                    io.fsync(fd, str(folder / name))
                digests[name] = _digest(folder / name)
        io.sync_folder(folder / FILES)
        manifest = json.dumps(self._marks(number) | {"files": digests}, sort_keys=True).encode()
        io.write_file(folder / MANIFEST, manifest)
        io.sync_folder(self._folder)
        digest = sha256(manifest).hexdigest()
        io.write_file(self._folder / POINTER, json.dumps({"generation": number, "manifest": digest}).encode())
        return Generation(number, folder, digest, digests)

    def prune(self, keep: Collection[int]) -> None:
        """Remove all generations but these, and what writers that died have left. Needs the lock."""
        for name in io.listed(self._folder):
            number = number_of(name)
            if (number is not None and number not in keep) or name.endswith(".tmp"):
                remove(self._folder / name)


def number_of(name: str) -> int | None:
    """The number of a generation, by the name of its folder; None for another name."""
    digits = name.removeprefix("gen-")
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


def _check_folder(folder: Path) -> None:
    facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise IndexUnavailable(f"{folder} is not this user's own")


def _names(folder: Path) -> list[str]:
    """Every file of a generation by its name below it; other things than files are named too, and so never fit."""
    inner = [f"{FILES}/{name}" for name in os.listdir(folder / FILES)]
    return sorted([name for name in os.listdir(folder) if name != FILES] + inner)


def _facts(path: Path) -> list[int]:
    found = os.lstat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev]


def _digest(path: Path) -> str:
    """The sha256 of a regular file's bytes."""
    with os.fdopen(io.open_file(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file, io.operation("read", path):
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise IndexUnavailable(f"{path} is not a file")
        import hashlib  # quick with megabytes, slow to load: an index is seldom verified whole

        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except FileNotFoundError:
        return False


def remove(path: Path) -> None:
    """Remove a file, or a folder with all in it; what is gone already, or is removed meanwhile, is no error."""
    try:
        io.remove_all(path)
    except FileNotFoundError:
        return
    except StorageIO as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise


class UnchangedFolders:
    """The folders whose files are all known to the index's base generation, by the digest of their listing.

    One comparison then speaks for all files of a folder. They are kept beside the index for the next process, for one
    generation: another is looked at file by file first.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: that of the index."""
        self._file = folder / "folders"
        self._base: list[int | str] = []
        self._digests: dict[str, str] = {}
        self._trees: dict[str, str] = {}
        self._noted = False

    def take_up(self, number: int, digest: str) -> None:
        """Begin a scan: know what is kept for this base, 0 and "" where there is none."""
        base: list[int | str] = [number, digest]
        if base != self._base:
            kept = io.read_record(self._file)
            fits = isinstance(kept, dict) and kept.get("base") == base
            found = [kept.get(name) if fits else None for name in ("digests", "trees")]
            self._base, (self._digests, self._trees) = base, [one if isinstance(one, dict) else {} for one in found]

    def follow(self, before: tuple[int, str], now: tuple[int, str], changed: Iterable[str]) -> None:
        """Keep what is known of one base for the next, which was made of it and differs in these folders alone."""
        if self._base == [*before] and now[0] == before[0] + 1:
            self._base = [*now]
            for folder in changed:
                self._digests.pop(folder, None)
                self._trees.pop(folder, None)
            self._noted = True
            self.keep()

    def holds(self, folder: str, digest: str) -> bool:
        """Whether nothing in this folder changed since all its files were known."""
        return self._digests.get(folder) == digest

    def note(self, folder: str, digest: str) -> None:
        """All that is in this folder was found in the base, as it is."""
        self._digests[folder] = digest
        self._trees.pop(folder, None)
        self._noted = True

    def tree(self, folder: str) -> str:
        """The id of git's tree of what is in an unchanged folder, "" where it was not noted."""
        return self._trees.get(folder, "")

    def note_tree(self, folder: str, tree: str) -> None:
        """Note that id; it counts until something in the folder changes."""
        self._trees[folder] = tree
        self._noted = True

    def keep(self) -> None:
        """End a scan: keep what was noted, where that is possible."""
        if self._noted and self._base[0]:
            self._noted = False
            record = json.dumps({"base": self._base, "digests": self._digests, "trees": self._trees})
            with suppress(StorageIO, FileNotFoundError):
                io.write_file(self._file, record.encode("utf-8", "surrogatepass"), durable=False)


SHARED = "past"
WHOSE = "whose.json"
"""In each cache: the folder it was made for, with its inode."""
RECORD = "caches"
"""Beside the state folders of a repository: a line of JSON for each cache that was made for it."""
_LARGEST = 1 << 24


def index_folder(root: Path, reader: str = "", record: Path | None = None) -> Path:
    """Where a workspace's index lies: in the user's cache, named by path, inode and user, never in the workspace.

    Args:
        reader: whose index it is, where it is not the workspace's own: another may see other files.
        record: the folder in which the repository remembers it; None where nothing may be written there.
    """
    folder = folder_named(root, reader)
    if record is not None:
        # durably, before anything is put there; rows are only ever added: none is lost by another's
        with suppress(MemfsError, OSError):  # a disk that takes no writes does not prevent reading
            if (folder, root) not in recorded(record):
                row = json.dumps({"cache": str(folder), "root": str(root)})
                with io.descriptor(io.open_file(record / RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT)) as fd:
                    io.write_all(fd, f"\n{row}\n".encode(), str(record / RECORD))
                    io.fsync(fd, str(record / RECORD))
    for _ in range(2):
        try:
            io.make_private_folder(folder)
            if not os.path.lexists(folder / WHOSE):
                whose = json.dumps({"root": str(root), "inode": root.stat().st_ino})
                io.write_file(folder / WHOSE, whose.encode(), durable=False)
            break
        except StorageIO:  # a full disk does not prevent reading: there is no index then
            if folder.is_dir() or not os.path.lexists(folder):
                break
            if folder.is_symlink() or not folder.is_file():
                raise
            io.unlink(folder)  # of memfs's own cache, all of which can be made again
    return folder


def folder_named(root: Path, reader: str = "") -> Path:
    """The same, without making it."""
    facts = root.stat()
    named = f"{root}\0{facts.st_ino}\0{os.getuid()}" + (f"\0{reader}" if reader else "")
    return cache_home() / sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def cache_home() -> Path:
    """The folder that holds the caches of this user's workspaces, each in one of its own."""
    return base_folder("XDG_CACHE_HOME", ".cache", "Library/Caches") / "memfs"


def shared_folder(common_dir: Path) -> Path | None:
    """Where all that is known of contents is, for every workspace of a repository; see ``index_folder``.

    None where it cannot be made, or this user has no home folder.
    """
    with suppress(MemfsError, OSError):
        return index_folder(common_dir, SHARED, common_dir / "memfs")
    return None


def recorded(record: Path) -> Iterator[tuple[Path, Path]]:
    """Each cache that was ever made for a repository, with the folder it was made for; what is no such row is left out.

    Args:
        record: as ``index_folder`` was given it.
    """
    with suppress(MemfsError, OSError):
        for line in filter(None, io.read_file(record / RECORD, _LARGEST).splitlines()):
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                row = json.loads(line)
                yield Path(row["cache"]), Path(row["root"])


_NAME = regex("[0-9a-f]{20}")
_WAIT = 60.0


class Cache(NamedTuple):
    """One folder of the user's cache.

    Attributes:
        root: the folder that it was made for; None where it is unknown.
        recorded: whether the repository remembers it as its own.
        orphaned: whether that folder is no longer there, or another one is: the cache will not be used again.
    """

    folder: Path
    root: Path | None
    recorded: bool
    orphaned: bool


def caches(record: Path) -> list[Cache]:
    """All caches of this user in the places where a repository ever had one, and in today's.

    Args:
        record: the folder in which the repository remembers them (``memfs.search.generations.index_folder``).
    """
    rows = dict(recorded(record))
    homes = {folder.parent for folder in rows}
    with suppress(StorageIO):  # without a home there is none today
        homes.add(cache_home())
    found = []
    for folder in [one for home in sorted(homes) for one in _folders(home)]:
        root, orphaned = rows.get(folder), folder not in rows
        with suppress(KeyError, TypeError):
            whose = io.read_record(folder / WHOSE, _SMALL)
            root, inode, orphaned = Path(whose["root"]), whose["inode"], True
            with suppress(OSError, ValueError):
                orphaned = os.stat(root).st_ino != inode
        found.append(Cache(folder, root, folder in rows, orphaned))
    return found


def empty(cache: Cache) -> int:
    """Remove what is in a cache, and the folder, too, where it will not be used again; return how many files.

    Raises:
        LockTimeout: another process is folding the index there.
    """
    with Generations(cache.folder, engine("memory")).lock(_WAIT) as held:
        if not held:
            raise LockTimeout(
                "another process is folding the index", path=str(cache.folder), hint="try again in a moment"
            )
        kept = (LOCK,) if cache.orphaned else (LOCK, WHOSE)
        count = sum(io.remove_all(cache.folder / name) for name in os.listdir(cache.folder) if name not in kept)
        if cache.orphaned:
            io.unlink(cache.folder / LOCK, missing_ok=True)
    if cache.orphaned:
        with suppress(StorageIO):  # another process started over there
            io.rmdir(cache.folder)
    return count


def drop(record: Path, of: Callable[[Path], bool]) -> int:
    """Remove every cache that was made for some folders, which will not be used again; return how many.

    What they share with the repository's other workspaces is emptied: it may hold what only they had.

    Args:
        record: see ``caches``.
        of: whether a folder is one of them.
    """
    count = 0
    for cache in caches(record):
        gone = cache.root is not None and of(cache.root)
        if gone or cache.root == record.parent:
            empty(cache._replace(orphaned=gone))
            count += gone
    return count


def _folders(home: Path) -> Iterator[Path]:
    """The folders in which caches of this user can be: a record may have come with the repository."""
    if home.name != "memfs" or not home.is_absolute():
        return
    with suppress(OSError), os.scandir(home) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            facts = entry.stat(follow_symlinks=False)
            if _NAME.fullmatch(entry.name) and stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                yield Path(entry.path)
