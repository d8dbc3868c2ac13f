"""Reads and writes git objects: ids, trees, packs and loose files; changes, searches and walks trees.

A loose object's id is verified on reading, and a written one is durable on return.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import NamedTuple
from memfs.errors import HistoryUnavailable, MemfsError, NotRegularFile, PathEscape, StorageIO
from memfs.fs import io
from memfs.model.item import object_id
from memfs.startup import regex, sha1

FILE = "100644"
EXECUTABLE = "100755"
REGULAR = (FILE, EXECUTABLE)
"""The modes of files: what else a tree names is a folder, a link or a submodule."""
FOLDER = "40000"
SUBMODULE = "160000"
_FILE, _FOLDER = FILE.encode(), FOLDER.encode()
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
LARGEST = 1 << 28
_ROW = regex(rb"([^ ]*) ([^\0]*)\0(.{20})", re.DOTALL)
_ROWS = regex(rb"(?:[^ ]*+ [^\0]*+\0.{20})*+", re.DOTALL)
"""Nothing but rows, recognised in one pass: anything else would be tried from each of its bytes."""
_PACK_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_QUICK = 1


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
    try:
        if not _ROWS.fullmatch(data):
            raise ValueError("not rows alone")
        rows = _ROW.findall(data)
        modes = {mode: mode.decode() for mode in {mode for mode, _, _ in rows}}
    except ValueError as error:  # also a mode that is no text
        raise HistoryUnavailable("a tree cannot be read", hint="run git fsck") from error
    return {name: TreeEntry(modes[mode], digest.hex()) for mode, name, digest in rows}


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
        header, _, data = zlib.decompressobj().decompress(raw, LARGEST).partition(b"\0")
        kind = header.partition(b" ")[0].decode("ascii", "replace")
        if object_id(kind, data) != name:
            raise ValueError("the object has another id")
    except (zlib.error, ValueError) as error:
        raise HistoryUnavailable("a git object is damaged", path=str(path), hint="run git fsck") from error
    return Object(kind, data)


def write_loose(folder: Path, objects: Mapping[str, Object]) -> None:
    """Make objects durable as loose files: each file and each touched folder is synced before this returns.

    A file that is there already is kept if it holds the object (and then synced too, as its writer may not have), and
    replaced if it is damaged. A person's ``git gc`` may pack what no branch holds yet, and remove its folder: what was
    in that is written again.

    Raises:
        NotRegularFile, StorageIO: the objects may be there in part.
    """
    waiting = list(objects)
    for _ in range(20):
        touched = {name: _touched(folder, name, objects[name]) for name in waiting}
        synced = set()
        for place in set().union(*touched.values()):
            with suppress(FileNotFoundError):
                io.sync_folder(place)
                synced.add(place)
        waiting = [name for name, places in touched.items() if not places or not places <= synced]
        if not waiting:
            return
    hint = "try again when no git gc runs"
    raise StorageIO("folders of git's objects are removed again and again", path=str(folder), hint=hint)


def _touched(folder: Path, name: str, item: Object) -> set[Path]:
    """See that an object is there; the folders to be synced, none where its own was removed meanwhile."""
    place = folder / name[:2]
    if place.is_symlink():
        raise NotRegularFile("there is a link where git keeps objects", path=str(place), hint="replace it by a folder")
    try:
        new_folder = not _keep(place / name[2:], folder, name) and _write_one(place, name, item)
    except FileNotFoundError:
        return set()
    except StorageIO as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return set()
        raise
    return {place, folder} if new_folder else {place}


def _keep(path: Path, folder: Path, name: str) -> bool:
    try:
        if read_loose(folder, name) is None:
            return False
        # What is young is not pruned: git does the same before it relies on an object that it finds.
        io.touch(path)
        fd = io.open_file(path, os.O_RDONLY)
    except (MemfsError, OSError):
        return False
    with io.descriptor(fd):
        io.fsync(fd, str(path))
    return True


def _write_one(place: Path, name: str, item: Object) -> bool:
    made = io.mkdir(place)
    if made:  # a shared repository's folders are writable for its group; ours follow
        io.chmod(place, stat.S_IMODE(os.stat(place.parent).st_mode))
    temporary = place / f"tmp_obj_{os.urandom(6).hex()}"
    fd = io.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    try:
        header = b"%s %d\0" % (item.kind.encode(), len(item.data))
        io.write_all(fd, zlib.compress(header + item.data, _QUICK), str(temporary))
        io.fsync(fd, str(temporary))
        io.rename(str(temporary), str(place / name[2:]))
    except BaseException:
        with suppress(MemfsError):
            io.unlink(temporary, missing_ok=True)
        raise
    finally:
        os.close(fd)
    return made


# -- packs --------------------------------------------------------------------------------------------------------
def pack(objects: Mapping[str, Object]) -> bytes:
    """A pack that holds these objects, whole and without deltas, for ``git index-pack``."""
    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
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
        parts += bytes(header), zlib.compress(item.data, _QUICK)
    body = b"".join(parts)
    return body + sha1(body, usedforsecurity=False).digest()


_KINDS = {number: kind for kind, number in _PACK_KINDS.items()}
_BY_OFFSET, _BY_NAME = 6, 7
_IDX = b"\xfftOc\0\0\0\x02"
_NAMES = len(_IDX) + 4 * 256
_DIGEST = 20


def read_packed(folder: Path, name: str) -> Object | None:
    """An object from a pack in a folder of objects, its id not verified; None where there is none that can be read:
    git then says what is the matter.
    """
    try:
        for index in (one for one in os.listdir(folder / "pack") if one.endswith(".idx")):
            place = _place_in(folder / "pack" / index, bytes.fromhex(name))
            if place is not None:
                with open(folder / "pack" / f"{index[:-4]}.pack", "rb", 0) as pack:
                    return _unpacked(folder, pack.fileno(), place)
    except (OSError, ValueError, LookupError, RecursionError, struct.error, zlib.error):
        return None  # another form, damaged, or being repacked
    return None


def _place_in(index: Path, digest: bytes) -> int | None:
    """Where in its pack an object begins; None where the pack has it not."""
    with open(index, "rb", 0) as file:
        read = partial(os.pread, file.fileno())
        head = read(_NAMES, 0)
        ends = [0, *struct.unpack(">256I", head[len(_IDX) :])]
        first, after, number = ends[digest[0]], ends[digest[0] + 1], ends[256]
        if not head.startswith(_IDX) or not first <= after <= number <= os.fstat(file.fileno()).st_size // _DIGEST:
            raise ValueError("another form of index")
        names = read((after - first) * _DIGEST, _NAMES + first * _DIGEST)
        at = names.find(digest)
        while at > 0 and at % _DIGEST:
            at = names.find(digest, at + 1)
        if at < 0:
            return None
        offsets = _NAMES + number * (_DIGEST + 4)
        place = int.from_bytes(read(4, offsets + 4 * (first + at // _DIGEST)))
        return int.from_bytes(read(8, offsets + 4 * number + 8 * (place & 0x7FFFFFFF))) if place >> 31 else place


def _unpacked(folder: Path, pack: int, place: int) -> Object | None:
    """The object at a place of a pack, made of those that it is kept as a difference to."""
    deltas: list[bytes] = []
    while len(deltas) < 250:
        head = os.pread(pack, 64, place)
        number, size, at = head[0] >> 4 & 7, head[0] & 15, 1
        while head[at - 1] & 0x80:
            size |= (head[at] & 0x7F) << 7 * at - 3
            at += 1
        below: Object | None = None
        back = 0
        if number == _BY_OFFSET:
            back = head[at] & 0x7F
            while head[at] & 0x80:
                at += 1
                back = (back + 1) << 7 | head[at] & 0x7F
            at += 1
        elif number == _BY_NAME:
            base = head[at : at + _DIGEST].hex()
            below, at = read_loose(folder, base) or read_packed(folder, base), at + _DIGEST
        data = _inflated(pack, place + at, size)
        if number in _KINDS:
            below = Object(_KINDS[number], data)
        else:
            deltas.append(data)
        if below is not None:
            for delta in reversed(deltas):
                below = below._replace(data=_patched(below.data, delta))
            return below
        if not 0 < back < place:
            return None
        place -= back
    return None


def _inflated(pack: int, place: int, size: int) -> bytes:
    if size > LARGEST:
        raise ValueError("too large")
    stream, parts = zlib.decompressobj(), []
    while not stream.eof and (packed := os.pread(pack, 4096, place)):
        parts.append(stream.decompress(packed, size + 1))
        place += len(packed)
    data = b"".join(parts)
    if len(data) != size:
        raise ValueError("not as large as it says")
    return data


def _patched(base: bytes, delta: bytes) -> bytes:
    """What a difference makes of the bytes that it is a difference to."""
    begun, at = _varint(delta, 0)
    size, at = _varint(delta, at)
    if begun != len(base) or size > LARGEST:
        raise ValueError("a difference to something else")
    made: list[bytes] = []
    while at < len(delta):
        order, at = delta[at], at + 1
        if order & 0x80:  # copy: the lower bits say which bytes of offset and length follow
            numbers = 0
            for bit in range(7):
                if order >> bit & 1:
                    numbers |= delta[at] << 8 * bit
                    at += 1
            start, length = numbers & 0xFFFFFFFF, numbers >> 32 or 0x10000
            made.append(base[start : start + length])
        else:
            made.append(delta[at : at + order])
            at += order
    data = b"".join(made)
    if len(data) != size:
        raise ValueError("not as large as it says")
    return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


ReadTree = Callable[[str], Tree]
Parts = tuple[bytes, ...]
DEEPEST = 66
"""How many folders deep a working tree is looked into, with those above the workspace."""
_MOST_NAMES = 2_000_000


class TreeEditor:
    """Applies changes to trees; new tree objects land in ``objects``, and ``made`` keeps them as names."""

    def __init__(self, read: ReadTree, objects: Objects) -> None:
        self._read, self._objects = read, objects
        self.made: dict[str, Tree] = {}

    def tree(self, tree_id: str) -> Tree:
        """A tree, stored or just made."""
        return self.made.get(tree_id) or self._read(tree_id)

    def apply(self, root: str | None, changes: Mapping[Parts, str | None]) -> str | None:
        """The root tree with these paths set to these blobs (None: removed); None when nothing is left.

        A file keeps its executable bit. A folder that becomes empty disappears, as git has no empty folders.
        """
        if not changes:
            return root
        before = self.tree(root) if root else {}
        entries = dict(before)
        below: dict[bytes, dict[Parts, str | None]] = {}
        for (name, *rest), blob in changes.items():
            old = entries.get(name)
            if rest:
                below.setdefault(name, {})[tuple(rest)] = blob
            elif blob is not None:
                entries[name] = TreeEntry(EXECUTABLE if old and old.mode == EXECUTABLE else FILE, blob)
            elif old and old.mode != FOLDER:
                del entries[name]
        for name, inner in below.items():
            old = entries.get(name)
            inside = old.id if old and old.mode == FOLDER else None
            if inside is None and not any(inner.values()):
                continue
            new = self.apply(inside, inner)
            if new:
                entries[name] = TreeEntry(FOLDER, new)
            elif old:
                del entries[name]
        if entries == before:
            return root
        if not entries:
            return None
        made = add(self._objects, "tree", encode_tree(entries))
        self.made[made] = entries
        return made


def find(read: ReadTree, root: str | None, parts: Parts) -> TreeEntry | None:
    """What a path names below a root tree; None when there is nothing."""
    entry = TreeEntry(FOLDER, root) if root else None
    for name in parts:
        if entry is None or entry.mode != FOLDER:
            return None
        entry = read(entry.id).get(name)
    return entry


def tree_ids(files: Mapping[bytes, str]) -> dict[bytes, str]:
    """The ids of the trees that hold just these files, by folder, b"" for the root; the files are not executable."""
    rows: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    for path, blob in files.items():
        folder, _, name = path.rpartition(b"/")
        rows.setdefault(folder, []).append((name, b"%s %s\0%s" % (_FILE, name, bytes.fromhex(blob))))
    for folder in list(rows):
        while folder := folder.rpartition(b"/")[0]:
            rows.setdefault(folder, [])
    ids: dict[bytes, str] = {}
    for folder in sorted(rows, key=len, reverse=True):
        ids[folder] = object_id("tree", b"".join(row for _, row in sorted(rows[folder])))
        if folder:
            above, _, name = folder.rpartition(b"/")
            rows[above].append((name + b"/", b"%s %s\0%s" % (_FOLDER, name, bytes.fromhex(ids[folder]))))
    return ids


def walk(
    read: ReadTree, root: str, *, links: bool = False, known: Mapping[bytes, str] = MappingProxyType({})
) -> Iterator[tuple[bytes, TreeEntry]]:
    """Every file below a tree with its path, folders opened; links and submodules only where ``links`` asks for them.

    A folder that has the id by which it is ``known`` is not opened, and given itself.

    A few small trees that name each other can stand for any number of files: what lies deeper than a working tree is
    looked into is left out, and too many are refused.

    Raises:
        HistoryUnavailable: there are more than two million names.
    """
    waiting = [(b"", iter(read(root).items()))]
    seen = 0
    while waiting:
        folder, entries = waiting[-1]
        for name, entry in entries:
            seen += 1
            if seen > _MOST_NAMES:
                raise HistoryUnavailable(
                    "a tree names too many files",
                    hint="run 'git fsck'; the tree may have been built to exhaust memory",
                )
            if entry.mode == FOLDER:
                if known and known.get(folder + name) == entry.id:
                    yield folder + name, entry
                elif len(waiting) < DEEPEST:
                    waiting.append((folder + name + b"/", iter(read(entry.id).items())))
                    break
            elif links or entry.mode in REGULAR:
                yield folder + name, entry
        else:
            waiting.pop()


def split(path: bytes) -> Parts:
    """The names of a path.

    Raises:
        PathEscape: it is empty, absolute, leads upwards or into a git folder.
    """
    parts = tuple(path.split(b"/"))
    if any(part in (b"", b".", b"..") or part.lower() in (b".git", b"git~1") or b"\0" in part for part in parts):
        raise PathEscape("not a path inside the workspace", path=ascii(path)[2:-1], hint="use a path below it")
    return parts
