"""Locates the private memory that one person has of one project, outside the project's repository.

A project that was copied, moved or cloned is recognised by a key in its git folder. Only this user can enter the folder
of a private memory. Imports little, so that a hook that only records an event starts fast.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import NamedTuple
from memfs.errors import FormatUnsupported, MemfsError, StorageReadOnly
from memfs.fs import io
from memfs.fs.lock import folder_held
from memfs.fs.workspace_location import MEMORY_FOLDER, repository_around, user_folder
from memfs.git.layout import own_users, read_config
from memfs.startup import json, sha256

NAME = "private"
"""What private memory is called where it is read together with other memory."""
KEY_FILE = "project"
RECORD = "project.json"
_MADE = (MEMORY_FOLDER, ".git", SETTINGS_FILE)
_FORMAT = 1
_SMALL = 1 << 16
_MOST_HOMES = 64
_KEY = r"[a-z0-9][a-z0-9-]{0,47}-[a-z2-7]{16}"
_ADDRESS = r"(?i)[a-z][a-z0-9+.-]*://(?:[^/@]*@)?([^/]*)(/.*)?"
_SHORT_ADDRESS = r"(?:[^/@:]*@)?([^/:@]+):(?!//)(.*)"
_DEFAULT_PORT = r":(?:22|80|443|9418)$"
_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_WAITS = 5.0


class Project(NamedTuple):
    """What a person works at.

    Attributes:
        folder: the folder without git, links resolved; with git, the top of the working tree.
        git: the common git folder, None without one.
    """

    folder: Path
    git: Path | None = None

    @property
    def place(self) -> Path:
        """What the project is known by: its git folder, else its folder."""
        return self.git or self.folder

    @property
    def title(self) -> str:
        """What people call it."""
        place = self.place
        return (place.parent.name if place.name == ".git" else place.name.removesuffix(".git")) or "project"


class PrivateHome(NamedTuple):
    """One place of a project: a git folder or, without git, a folder, by path, device and inode."""

    path: str
    device: int
    inode: int

    def is_at(self, place: Path, found: os.stat_result) -> bool:
        """Whether it is this place: the same folder, or another one in its place."""
        return self.path == str(place) or (self.device, self.inode) == (found.st_dev, found.st_ino)


class Record(NamedTuple):
    """Whose private memory a folder holds.

    Attributes:
        homes: where the project is; several where clones share it.
        origin: the address it was cloned from, in one form; "" without one.
    """

    homes: tuple[PrivateHome, ...] = ()
    origin: str = ""


# -- asking -------------------------------------------------------------------------------------------------------
def projects_folder() -> Path:
    """The folder of all private memories of this user."""
    return Path(os.path.realpath(user_folder())) / "projects"


def project_at(folder: str | os.PathLike[str]) -> Project:
    """The project that a folder belongs to: that of the git repository around it, else the folder itself.

    Worktrees of one repository are one project; a submodule is a project of its own.
    """
    start = Path(os.path.realpath(folder))
    found = repository_around(start)
    return Project(start) if found is None else Project(*found)


def find(project: Project) -> Path | None:
    """The folder of a project's private memory, None where there is none yet. Nothing is written.

    Raises:
        StorageReadOnly: the folder is not this user's alone.
        FormatUnsupported: a newer memfs wrote its record.
    """
    folder = projects_folder() / _key_of(project)
    if read_record(folder) is None:
        return None
    _require_own(folder)
    return folder if all((folder / name).exists() for name in _MADE) else None


def holds(folder: Path) -> bool:
    """Whether a folder is that of a private memory."""
    with suppress(MemfsError):
        return Path(os.path.realpath(folder.parent)) == Path(os.path.realpath(projects_folder()))
    return False


def clones(project: Project) -> list[Path]:
    """The private memories of other clones of this project's origin; whether it joins one, the person says."""
    origin = _origin(project)
    if not origin:
        return []
    own, found = _key_of(project), []
    with suppress(FileNotFoundError):
        for folder in sorted(projects_folder().iterdir()):
            with suppress(MemfsError, OSError):
                record = read_record(folder)
                if folder.name != own and record is not None and record.origin == origin:
                    found.append(folder)
    return found


def shared_with(project: Project, folder: Path) -> list[Path]:
    """The other clones that use a private memory together with this project."""
    record = read_record(folder) or Record()
    others = (Path(home.path) for home in record.homes if home.path != str(project.place))
    return [place for place in others if _read_key(place) == folder.name]


def read_record(folder: Path) -> Record | None:
    """Whose private memory a folder holds, None where that is not recorded.

    Raises:
        FormatUnsupported: a newer memfs wrote it.
        StorageIO: it cannot be read.
    """
    path = folder / RECORD
    try:
        values = json.loads(io.read_file(path, _SMALL))
        if values["format"] > _FORMAT:
            raise FormatUnsupported("a newer memfs wrote this", path=str(path), hint="upgrade memfs")
        homes = tuple(PrivateHome(str(path), int(device), int(inode)) for path, device, inode in values["homes"])
        return Record(homes, str(values["origin"]))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError, RecursionError):
        return None


# -- making -------------------------------------------------------------------------------------------------------
def claim(project: Project) -> Path:
    """The folder of a project's private memory, made where it is not there; killed anywhere, the next call goes on.

    A repository that was copied with its git folder gets a key of its own; one that was moved keeps its memory.

    Raises:
        StorageReadOnly: the folder is not this user's alone.
        FormatUnsupported: a newer memfs wrote its record.
        StorageIO: it cannot be made.
    """
    with _locked(project) as may_write:
        key = _key_of(project)
        if project.git is not None and may_write and key != _read_key(project.git):
            given = _named(project, os.urandom(16))
            for before in (Project(project.folder), project):  # what was kept there by its path goes on
                kept = _path_key(before)
                record = read_record(projects_folder() / kept)
                if record is not None and _is_same_place(before, record):
                    given = kept
            with suppress(MemfsError):  # the git folder takes no writes: then the path has to do
                _write_key(project.git, given)
                key = given
        folder = projects_folder() / key
        for made in (folder.parent, folder):
            io.make_private_folder(made)
        if io.facts(folder).st_mode & 0o077:  # only this user can enter it
            io.chmod(folder, 0o700)
        _require_own(folder)
        with folder_held(folder.parent, _WAITS):
            record = read_record(folder)
            known = record or Record()
            wanted = Record(_homes_with(project, folder.name, known), _origin(project) or known.origin)
            if wanted != record:
                _write_record(folder, wanted)
        return folder


def join(project: Project, folder: Path) -> None:
    """Let a clone use the private memory of another one; what it had of its own is the caller's to bring along.

    Raises:
        StorageReadOnly: the project's git folder cannot be written.
    """
    with _locked(project) as may_write, folder_held(folder.parent, _WAITS):
        record = read_record(folder)
        if record is None:
            raise StorageReadOnly("there is no private memory", path=str(folder), hint="see 'memfs status --private'")
        if project.git is None or not may_write:
            hint = "use a clone whose git folder belongs to you"
            raise StorageReadOnly("this project has no git folder to write in", path=str(project.place), hint=hint)
        found = os.stat(project.git)
        others = tuple(home for home in record.homes if not home.is_at(project.git, found))
        own = PrivateHome(str(project.git), found.st_dev, found.st_ino)
        _write_record(folder, record._replace(homes=(*others, own)[-_MOST_HOMES:]))  # first: else it looks like a copy
        _write_key(project.git, folder.name)


def forget(folder: Path) -> None:
    """Remove a private memory with all it holds; the projects that used it start over.

    Raises:
        StorageIO: it cannot be removed, or is none.
    """
    import shutil

    from memfs.search import generations

    if not holds(folder) or read_record(folder) is None:
        raise StorageReadOnly("there is no private memory", path=str(folder), hint="see 'memfs status --private'")
    root = Path(os.path.realpath(folder))
    generations.drop(folder / ".git" / "memfs", lambda made_for: made_for.is_relative_to(root))
    gone = folder.with_name(f".{folder.name}.gone")  # killed from here on, no project finds it any more
    if not gone.exists():
        io.rename(str(folder), str(gone))
    with io.operation("unlink", gone):
        shutil.rmtree(gone)


# -- inside -------------------------------------------------------------------------------------------------------
def _key_of(project: Project) -> str:
    """The key in the project's git folder, else one that follows from its path: none came along with a copy."""
    key = _read_key(project.git) if project.git is not None else ""
    record = read_record(projects_folder() / key) if key else None
    if key and record is not None:
        try:
            found = os.stat(project.place)
        except OSError:
            return _path_key(project)
        # It is one of its homes, or one of them was moved here: a repository is moved where a home is no longer where
        # it was, and a copy where all of them are.
        here = not record.homes or any(home.is_at(project.place, found) for home in record.homes)
        if not here and all(_read_key(Path(home.path)) == key for home in record.homes):
            key = ""
    return key or _path_key(project)


def _read_key(git: Path) -> str:
    """The key in a git folder; "" where there is none, or this user may not read it."""
    with suppress(OSError, MemfsError):
        text = io.read_file(git / "memfs" / KEY_FILE, _SMALL).decode("ascii", "replace").strip()
        return text if re.fullmatch(_KEY, text) else ""
    return ""


def _path_key(project: Project) -> str:
    """A key for the project's place, and for its origin where a clone of another one had that place before."""
    place = os.fsencode(project.place)
    key = _named(project, sha256(place).digest())
    record = read_record(projects_folder() / key)
    origin = _origin(project) if record is not None else ""
    if record is None or not origin or record.origin in ("", origin) or _is_same_place(project, record):
        return key
    return _named(project, sha256(place + b"\0" + os.fsencode(origin)).digest())


def _is_same_place(project: Project, record: Record) -> bool:
    """Whether a place is the very folder that it was: then its origin was changed, and not the project."""
    with suppress(OSError):
        found = os.stat(project.place)
        return PrivateHome(str(project.place), found.st_dev, found.st_ino) in record.homes
    return False


def _named(project: Project, digest: bytes) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", project.title.lower()).strip("-")[:40].strip("-") or "project"
    return f"{slug}-{''.join(_DIGITS[byte & 31] for byte in digest[:16])}"


def _homes_with(project: Project, key: str, record: Record) -> tuple[PrivateHome, ...]:
    """The homes with this project's place among them, in the place of one that it was moved from."""
    found = os.stat(project.place)
    own = PrivateHome(str(project.place), found.st_dev, found.st_ino)
    if own in record.homes:
        return record.homes
    others = [home for home in record.homes if not home.is_at(project.place, found)]
    if len(others) == len(record.homes):
        gone = next((home for home in others if _read_key(Path(home.path)) != key), None)
        others = [home for home in others if home is not gone]
    return (*others, own)[-_MOST_HOMES:]


def _origin(project: Project) -> str:
    """The address that a repository was cloned from, the same in whichever way it is written; "" without one."""
    if project.git is None:
        return ""
    with suppress(OSError, MemfsError):
        return normalised(read_config(project.git / "config").get("remote.origin.url", ""))
    return ""


def normalised(address: str) -> str:
    """The address of a repository in one form, without login, way of transport and ending: ``host/path``."""
    text = address.strip()
    if match := re.fullmatch(_ADDRESS, text):
        host, path = re.sub(_DEFAULT_PORT, "", match[1].lower()), match[2] or ""
    elif (match := re.fullmatch(_SHORT_ADDRESS, text)) and not text.startswith(("/", ".")):
        host, path = match[1].lower(), f"/{match[2].lstrip('/')}"
    else:
        host, path = "", text
    return f"{host}{path.rstrip('/').removesuffix('.git').rstrip('/')}"


@contextmanager
def _locked(project: Project) -> Iterator[bool]:
    """Whether a key may be written into the project's git folder; no other process gives it one meanwhile."""
    if project.git is None or os.stat(project.git).st_uid not in own_users():
        yield False
        return
    folder = project.git / "memfs"
    with ExitStack() as held:
        try:
            io.make_private_folder(folder, project.git)
            held.enter_context(folder_held(folder, _WAITS))
            may_write = True
        except MemfsError:  # read-only, or full: the path has to do
            may_write = False
        yield may_write


def _write_key(git: Path, key: str) -> None:
    io.sweep(git / "memfs", f".{KEY_FILE}.")
    io.write_file(git / "memfs" / KEY_FILE, f"{key}\n".encode())


def _write_record(folder: Path, record: Record) -> None:
    homes = [[home.path, home.device, home.inode] for home in record.homes]
    values = {"format": _FORMAT, "origin": record.origin, "homes": homes}
    io.sweep(folder, f".{RECORD}.")
    io.write_file(folder / RECORD, f"{json.dumps(values, indent=2)}\n".encode())


def _require_own(folder: Path) -> None:
    """
    Raises:
        StorageReadOnly: it belongs to another user or is a link, or others may write in it.
    """
    found = io.facts(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        hint = "it must be a folder of your own that only you can write in: chmod 700"
        raise StorageReadOnly("private memory is open to other users", path=str(folder), hint=hint)
