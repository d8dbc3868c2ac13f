"""Changes a few paths of a tree, finds paths in it and walks it.

Trees are read through a function of the caller's; new ones are collected, not stored, and the rest stays the same
object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memfs.errors import HistoryUnavailable, PathEscape
from memfs.git.objects import EXECUTABLE, FILE, FOLDER, REGULAR, Objects, Tree, TreeEntry, add, encode_tree

ReadTree = Callable[[str], Tree]
Parts = tuple[bytes, ...]
DEEPEST = 66
"""So many folders deep a working tree is looked into, with those above the workspace."""
_MOST_NAMES = 2_000_000


class TreeEditor:
    """Applies changes to trees; new tree objects land in ``objects``, and ``made`` keeps them as names."""

    def __init__(self, read: ReadTree, objects: Objects) -> None:
        self._read = read
        self._objects = objects
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
            if rest:
                below.setdefault(name, {})[tuple(rest)] = blob
            else:
                _set_file(entries, name, blob)
        for name, inner in below.items():
            self._set_folder(entries, name, inner)
        if entries == before:
            return root
        return self._add(entries) if entries else None

    def _add(self, entries: Tree) -> str:
        name = add(self._objects, "tree", encode_tree(entries))
        self.made[name] = entries
        return name

    def _set_folder(self, entries: dict[bytes, TreeEntry], name: bytes, changes: Mapping[Parts, str | None]) -> None:
        old = entries.get(name)
        inside = old.id if old and old.mode == FOLDER else None
        if inside is None and not any(changes.values()):
            return
        new = self.apply(inside, changes)
        if new:
            entries[name] = TreeEntry(FOLDER, new)
        elif old:
            del entries[name]


def _set_file(entries: dict[bytes, TreeEntry], name: bytes, blob: str | None) -> None:
    old = entries.get(name)
    if blob is not None:
        entries[name] = TreeEntry(EXECUTABLE if old and old.mode == EXECUTABLE else FILE, blob)
    elif old and old.mode != FOLDER:
        del entries[name]


def build(files: Mapping[bytes, TreeEntry], objects: Objects) -> str:
    """The tree that holds just these files, by path; it and the folders in it land in ``objects``."""
    entries: dict[bytes, TreeEntry] = {}
    folders: dict[bytes, dict[bytes, TreeEntry]] = {}
    for path, entry in files.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            folders.setdefault(name, {})[rest] = entry
        else:
            entries[name] = entry
    entries |= {name: TreeEntry(FOLDER, build(inner, objects)) for name, inner in folders.items()}
    return add(objects, "tree", encode_tree(entries))


def find(read: ReadTree, root: str | None, parts: Parts) -> TreeEntry | None:
    """What a path names below a root tree; None when there is nothing."""
    entry = TreeEntry(FOLDER, root) if root else None
    for name in parts:
        if entry is None or entry.mode != FOLDER:
            return None
        entry = read(entry.id).get(name)
    return entry


def walk(read: ReadTree, root: str, above: bytes = b"", *, links: bool = False) -> Iterator[tuple[bytes, TreeEntry]]:
    """Every file below a tree with its path, folders opened; links and submodules only where ``links`` asks for them.

    A few small trees that name each other can stand for any number of files: what lies deeper than a working tree is
    looked into is left out, and too many are refused.

    Raises:
        HistoryUnavailable: there are more than two million names.
    """
    waiting = [(above, iter(read(root).items()))]
    seen = 0
    while waiting:
        folder, entries = waiting[-1]
        for name, entry in entries:
            seen += 1
            if seen > _MOST_NAMES:
                raise HistoryUnavailable("a tree names too many files", hint="run git fsck; it may be made to harm")
            if entry.mode == FOLDER:
                if len(waiting) < DEEPEST:
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
