"""Pruned: items that made room, and their way back.

Owns where they lie, ``ContextMemory/archive/pruned/<type>/``, with the bytes they had, and reading them there. Neither
index nor recall looks there. Which items go there is ``memfs.upkeep.pruning``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memfs.errors import ContentError, IdExists, ItemNotFound, MemfsError
from memfs.files.tree import Content, View
from memfs.model import MemoryItem, Problem
from memfs.model.ids import stem_of
from memfs.model.kinds import ITEM_LIMIT, nearest
from memfs.model.time import from_timestamp_ns
from memfs.store import Store
from memfs.store.documents import PRUNED
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, Parts

SOURCE = "prune"


def place_of(item: MemoryItem) -> str:
    """Where an item goes when it is pruned."""
    return f"{PRUNED}/{item.type}/{item.path.rpartition('/')[2]}"


class Pruned:
    """The pruned items of one workspace."""

    def __init__(self, store: Store, parts: Parts, files: View | None = None) -> None:
        """``files``: of another time, to be read instead of those that there are."""
        self._store = store
        self._parts = parts
        self._files = files

    def list(self) -> Sequence[MemoryItem]:
        """The pruned items that can be read, newest first; their ``path`` says where each lies now."""
        found = [row for path in self._paths() if isinstance(row := self._tried(path), MemoryItem)]
        return sorted(found, key=lambda item: (-item.timestamp.timestamp() if item.timestamp else 0.0, item.id))

    def problems(self) -> Sequence[Problem]:
        """What is wrong with those that cannot be read."""
        return [row for path in self._paths() if isinstance(row := self._tried(path), Problem)]

    def find(self, reference: str) -> MemoryItem:
        """The pruned item a person means: by id, by path, or by the beginning of an id that only one has.

        Raises:
            ItemNotFound: naming the nearest id.
            ContentError: its file is invalid.
        """
        paths = list(self._paths())
        name = stem_of(reference).casefold() if reference.startswith(PRUNED + "/") else reference.casefold()
        exact = [path for path in paths if stem_of(path).casefold() == name]
        meant = exact or [path for path in paths if stem_of(path).casefold().startswith(name)]
        if len(meant) != 1:
            ids = [stem_of(path) for path in meant or paths]
            hint = f"it could be {', '.join(sorted(ids)[:5])}" if meant else nearest(reference, ids)
            hint = hint or "memfs list --archived shows what there is"
            raise ItemNotFound(f"no pruned memory is called {reference!r}", hint=hint)
        return self._read(meant[0])

    def bring_back(self, reference: str, reason: str = "") -> MemoryItem:
        """Put a pruned item back among the others, as a new change; return it as it is stored then.

        Raises:
            ItemNotFound: nothing pruned is called so.
            IdExists: another item has its id by now.
            ContentError, StorageIO, Conflict: nothing was changed.
        """
        item = self.find(reference)
        if taken := self._store.locate(item.id):
            raise IdExists(f"the id {item.id!r} is taken", path=taken, hint="rename one of the two files")
        home = self._home(item)
        data = self._content(item.path).data
        plans = [self._store.plan_restore(home, data), self._store.plan_restore(item.path, None)]
        told = f": {' '.join(reason.split())}" if reason.strip() else ""
        self._store.carry_out([plan for plan in plans if plan], f"Bring back {item.id}{told}", source=SOURCE)
        return self._store.read(home)

    def _home(self, item: MemoryItem) -> str:
        kind = self._parts.kinds.get(item.type)
        month = f"/{item.created:%Y-%m}" if kind.dated and item.created else ""
        return f"{CONTENT}/{kind.folder}{month}/{item.path.rpartition('/')[2]}"

    # -- reading --------------------------------------------------------------------------------------------------
    def _paths(self) -> Iterator[str]:
        found = (self._files or self._parts.seen).scan(PRUNED)
        yield from sorted(row.path for row in found if row.regular and row.path.endswith(ITEM_SUFFIXES))

    def _content(self, path: str) -> Content:
        return (self._files or self._parts.seen).read(path, ITEM_LIMIT)

    def _tried(self, path: str) -> MemoryItem | Problem | None:
        try:
            return self._read(path)
        except FileNotFoundError:
            return None
        except MemfsError as error:
            return Problem.of(error, path)

    def _read(self, path: str) -> MemoryItem:
        folder, _, name = path.removeprefix(f"{PRUNED}/").rpartition("/")
        if folder not in self._parts.kinds:
            hint = "move the file below archive/pruned/<type>/, or add the type to kinds.yaml"
            raise ContentError("this folder belongs to no memory type", path=path, hint=hint)
        content = self._content(path)
        kind = self._parts.kinds.get(folder)
        modified = from_timestamp_ns(content.stamp.mtime_ns)
        item = self._parts.codec.read(content.data, f"{CONTENT}/{kind.folder}/{name}", modified)
        return item.replace(path=path)
