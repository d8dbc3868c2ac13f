"""The memory as a commit or a person's index has it, as one side of a comparison.

Each side is read with its own kinds, from git's objects only: no working file, no index, no journal. Links and
submodules are listed, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from memfs.config import kinds_in
from memfs.config_names import KINDS, SETTINGS_FILE
from memfs.errors import ContentError, MemfsError, SchemaRefForbidden, SettingInvalid
from memfs.format.codec import PRUNED, Codec
from memfs.format.schema import Schemas
from memfs.git import process, tree
from memfs.git.objects import FOLDER, REGULAR, TreeEntry
from memfs.git.process import staged_changes
from memfs.git.repository import Repository
from memfs.model import KindTable, MemoryItem
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, READ_LIMIT, is_item


@dataclass
class Side:
    """One side of a comparison.

    Attributes:
        repository: where its objects are.
        commit: None for what is staged, or where there is no commit.
        files: what each path below the workspace names.
        time: when it was committed, or the present.
        unmerged: paths that a merge left with several versions in the index.
    """

    repository: Repository
    commit: str | None
    files: Mapping[str, TreeEntry]
    time: datetime
    invisible: bool = False
    unmerged: tuple[str, ...] = ()
    broken_kinds: MemfsError | None = None
    kinds: KindTable = field(default_factory=KindTable)
    codec: Codec = field(init=False)
    _items: dict[str, MemoryItem | MemfsError] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schemas = Schemas()
        try:
            self.kinds, schemas = kinds_in(self.data(KINDS), self.repository.workspace)
        except (ContentError, SettingInvalid, SchemaRefForbidden) as error:
            self.broken_kinds = error
        self.codec = Codec(schemas, self.kinds, self.invisible)

    # -- reading --------------------------------------------------------------------------------------------------
    def data(self, path: str) -> bytes | None:
        """The content of a file; None where there is none, or it is larger than memfs reads."""
        entry = self.files.get(path)
        if entry is None or entry.mode not in REGULAR or self.size(path) > READ_LIMIT:
            return None
        return self.repository.blob(entry.id)

    def size(self, path: str) -> int:
        """The bytes of a file; 0 for what is none."""
        if not self._sizes:
            regular = (entry.id for entry in self.files.values() if entry.mode in REGULAR)
            self._sizes = process.sizes(self.repository.git, regular)
        entry = self.files.get(path)
        return self._sizes.get(entry.id, 0) if entry is not None else 0

    def is_item(self, path: str) -> bool:
        """Whether a file at this path is an item that recall finds."""
        return is_item(path, self.kinds)

    def is_archived(self, path: str) -> bool:
        """Whether an item at this path made room for others."""
        return path.startswith(f"{PRUNED}/") and path.endswith(ITEM_SUFFIXES)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The paths of all items."""
        return tuple(path for path in self.files if self.is_item(path))

    def item(self, path: str) -> MemoryItem | MemfsError | None:
        """The item in a file, or what is wrong with it; None where there is no such file."""
        found = self._items.get(path)
        if found is None:
            data = self.data(path)
            if data is None:
                return None
            found = self._items[path] = self._read(data, path)
        return found

    def readable(self, path: str) -> MemoryItem | None:
        """The item in a file that can be read."""
        found = self.item(path)
        return found if isinstance(found, MemoryItem) else None

    def _read(self, data: bytes, path: str) -> MemoryItem | MemfsError:
        try:
            if self.is_archived(path):  # its type is the folder it lies in
                kind = self.kinds.get(path.removeprefix(f"{PRUNED}/").partition("/")[0])
                there = self.codec.read(data, f"{CONTENT}/{kind.folder}/{path.rpartition('/')[2]}", self.time)
                return there.replace(path=path)
            return self.codec.read(data, path, self.time)
        except MemfsError as error:
            return error


def side_of(repository: Repository, commit: str | None, invisible: bool = False) -> Side:
    """The memory as a commit has it; without a commit there is nothing.

    Raises:
        HistoryUnavailable: the commit or its trees are not there, or damaged.
    """
    if commit is None:
        return Side(repository, None, {}, datetime.now(UTC), invisible)
    time = repository.commit_object(commit).time
    return Side(repository, commit, _files(repository, commit), time, invisible)


def staged_side(repository: Repository, index: Path | None = None, invisible: bool = False) -> Side:
    """The memory as the next commit will have it, by a person's index.

    Args:
        index: another file than the repository's own, as git gives hooks of a partial commit.

    Raises:
        HistoryUnavailable, GitFailed: HEAD or the index cannot be read.
    """
    head = repository.head_commit()
    files = dict(_files(repository, head)) if head else {}
    unmerged = []
    for name, entry in staged_changes(repository.git, head, index, planned=False).items():
        path = repository.below(name)
        if path is None or not (path.startswith(f"{CONTENT}/") or path == SETTINGS_FILE):
            continue
        if entry.blob:
            files[path] = TreeEntry(entry.mode, entry.blob)
        else:
            files.pop(path, None)
            unmerged += [path] if entry.blob == "" else []
    return Side(repository, None, files, datetime.now(UTC), invisible, tuple(sorted(unmerged)))


def _files(repository: Repository, commit: str) -> dict[str, TreeEntry]:
    found: dict[str, TreeEntry] = {}
    top = repository.entry(commit, CONTENT)
    if top is not None and top.mode == FOLDER:
        walked = tree.walk(repository.read_tree, top.id, links=True)
        found = {f"{CONTENT}/{os.fsdecode(name)}": entry for name, entry in walked}
    elif top is not None:
        found = {CONTENT: top}
    settings = repository.entry(commit, SETTINGS_FILE)
    if settings is not None and settings.mode != FOLDER:
        found[SETTINGS_FILE] = settings
    return found
