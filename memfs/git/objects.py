"""Reads and writes git objects: ids, trees, packs and loose files.

A loose object's id is verified on reading, and a written one is durable on return.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import HistoryUnavailable, MemfsError, NotRegularFile, StorageIO
from memfs.fs import io
from memfs.model.item import object_id
from memfs.pattern import regex

FILE = "100644"
EXECUTABLE = "100755"
REGULAR = (FILE, EXECUTABLE)
"""The modes of files: what else a tree names is a folder, a link or a submodule."""
FOLDER = "40000"
SUBMODULE = "160000"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
LARGEST = 1 << 28
_ROW = regex(rb"([^ ]*) ([^\0]*)\0(.{20})", re.DOTALL)
_ROWS = regex(rb"(?:[^ ]*+ [^\0]*+\0.{20})*+", re.DOTALL)
"""Nothing but rows, recognised in one pass: anything else would be tried from each of its bytes."""
_PACK_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_QUICK = 1
_MOST_REMOVED = 20


class Object(NamedTuple):
    """One git object: its kind (``blob``, ``tree``, ``commit``) and its content."""

    kind: str
    data: bytes


class TreeEntry(NamedTuple):
    """One name in a tree: its mode as git writes it, and the object's id."""

    mode: str
    id: str


def tree_of(entry: TreeEntry | None) -> str:
    """The tree behind a name; the empty one where no folder is."""
    return entry.id if entry is not None and entry.mode == FOLDER else EMPTY_TREE


Tree = Mapping[bytes, TreeEntry]
Objects = dict[str, Object]


def add(objects: Objects, kind: str, data: bytes) -> str:
    """Put an object into a collection; return its id."""
    name = object_id(kind, data)
    objects[name] = Object(kind, data)
    return name


# -- trees --------------------------------------------------------------------------------------------------------
def parse_tree(data: bytes) -> dict[bytes, TreeEntry]:
    """The names in a tree object.

    Raises:
        HistoryUnavailable: it is not a tree.
    """
    if not _ROWS.fullmatch(data):
        raise _no_tree()
    rows = _ROW.findall(data)
    try:
        modes = {mode: mode.decode() for mode in {mode for mode, _, _ in rows}}
    except UnicodeDecodeError as error:
        raise _no_tree() from error
    return {name: TreeEntry(modes[mode], digest.hex()) for mode, name, digest in rows}


def _no_tree() -> HistoryUnavailable:
    return HistoryUnavailable("a tree cannot be read", hint="run git fsck")


def encode_tree(entries: Tree) -> bytes:
    """The tree object that holds these names, in git's order: a folder sorts as if it ended with a slash."""
    ordered = sorted((name + b"/" if entry.mode == FOLDER else name, name, entry) for name, entry in entries.items())
    return b"".join(b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.id)) for _, name, entry in ordered)


# -- loose objects ------------------------------------------------------------------------------------------------
def read_loose(folder: Path, name: str) -> Object | None:
    """A loose object, its id verified; None when there is none.

    Raises:
        HistoryUnavailable: the file is damaged.
    """
    path = folder / name[:2] / name[2:]
    try:
        raw = io.read_file(path, LARGEST)
    except FileNotFoundError:
        return None
    try:
        found = zlib.decompressobj().decompress(raw, LARGEST)
    except zlib.error as error:
        raise _damaged(path) from error
    header, _, data = found.partition(b"\0")
    kind = header.partition(b" ")[0].decode("ascii", "replace")
    if object_id(kind, data) != name:
        raise _damaged(path)
    return Object(kind, data)


def loose_bytes(item: Object) -> bytes:
    """What the loose file of an object holds."""
    return zlib.compress(b"%s %d\0" % (item.kind.encode(), len(item.data)) + item.data, _QUICK)


def write_loose(folder: Path, objects: Mapping[str, Object]) -> None:
    """Make objects durable as loose files: each file and each touched folder is synced before this returns.

    A file that is there already is kept if it holds the object (and then synced too, as its writer may not have), and
    replaced if it is damaged. A person's ``git gc`` may pack what no branch holds yet, and remove its folder: what was
    in that is written again.

    Raises:
        NotRegularFile, StorageIO: the objects may be there in part.
    """
    waiting = list(objects)
    for _ in range(_MOST_REMOVED):
        touched = {name: _touched(folder, name, objects[name]) for name in waiting}
        synced = {place for place in set().union(*touched.values()) if _synced(place)}
        waiting = [name for name, places in touched.items() if not places or not places <= synced]
        if not waiting:
            return
    hint = "try again when no git gc runs"
    raise StorageIO("folders of git's objects are removed again and again", path=str(folder), hint=hint)


def _touched(folder: Path, name: str, item: Object) -> set[Path]:
    """See that an object is there; the folders to be synced, none where its own was removed meanwhile."""
    place = folder / name[:2]
    if place.is_symlink():
        raise NotRegularFile("a link stands where git keeps objects", path=str(place), hint="replace it by a folder")
    try:
        new_folder = not _keep(place / name[2:], folder, name) and _write_one(place, name, item)
    except FileNotFoundError:
        return set()
    except StorageIO as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return set()
        raise
    return {place, folder} if new_folder else {place}


def _synced(place: Path) -> bool:
    """Make a folder's names durable; false where it is gone."""
    try:
        io.sync_folder(place)
    except FileNotFoundError:
        return False
    return True


def _keep(path: Path, folder: Path, name: str) -> bool:
    try:
        if read_loose(folder, name) is None:
            return False
        # What is young is not pruned: git does the same before it relies on an object that it finds.
        io.touch(path)
        fd = io.open_file(path, os.O_RDONLY)
    except (MemfsError, OSError):
        return False
    try:
        io.fsync(fd, str(path))
    finally:
        os.close(fd)
    return True


def _write_one(place: Path, name: str, item: Object) -> bool:
    made = _make_folder(place)
    temporary = place / f"tmp_obj_{os.urandom(6).hex()}"
    fd = io.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    try:
        io.write_all(fd, loose_bytes(item), str(temporary))
        io.fsync(fd, str(temporary))
        io.rename(str(temporary), str(place / name[2:]))
    except BaseException:
        with suppress(MemfsError):
            io.unlink(temporary, missing_ok=True)
        raise
    finally:
        os.close(fd)
    return made


def _make_folder(place: Path) -> bool:
    if not io.mkdir(place):
        return False
    # A shared repository's folders are writable for its group; ours follow.
    io.chmod(place, stat.S_IMODE(os.stat(place.parent).st_mode))
    return True


def _damaged(path: Path) -> HistoryUnavailable:
    return HistoryUnavailable("a git object is damaged", path=str(path), hint="run git fsck")


# -- packs --------------------------------------------------------------------------------------------------------
def pack(objects: Mapping[str, Object]) -> bytes:
    """A pack that holds these objects, whole and without deltas, for ``git index-pack``."""
    body = b"".join((b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big"), *_packed(objects)))
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _packed(objects: Mapping[str, Object]) -> Iterator[bytes]:
    for item in objects.values():
        size = len(item.data)
        byte = _PACK_KINDS[item.kind] << 4 | size & 0x0F
        size >>= 4
        header = bytearray()
        while size:
            header.append(byte | 0x80)
            byte = size & 0x7F
            size >>= 7
        header.append(byte)
        yield bytes(header)
        yield zlib.compress(item.data, _QUICK)
