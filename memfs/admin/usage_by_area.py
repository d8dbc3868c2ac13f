"""Measure what the parts of a workspace weigh on disk, and count its items. Changes nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from memfs.config_names import SETTINGS_FILE
from memfs.errors import HistoryError, MemfsError
from memfs.fs import io
from memfs.git import objects
from memfs.model.kinds import KindTable
from memfs.model.state_paths import document_of_sidecar
from memfs.store import Store
from memfs.store.health import BALLAST, BALLAST_BYTES
from memfs.store.parts import CONTENT, Parts, below_content
from memfs.store.plan import FilePlan

TOTAL = "total"
DOCUMENTS = "documents"
HISTORY = "history"
INDEX = "index"
STATE = "state"
AREAS: Mapping[str, str] = {
    "items": "memories and conventions",
    DOCUMENTS: "settings, schemas, context, aggregates and whatever else lies below ContextMemory/",
    "iterations": "iterations with their documents",
    "checkpoints": "checkpoints and their payloads",
    "threads": "threads of agent graphs",
    "archive": "archives",
    HISTORY: "what git keeps of the workspace's own paths, and will keep of what waits for its commit",
    INDEX: "the search index in the user's cache",
    STATE: "journal, recovered contents and locks",
}
DERIVED = frozenset({INDEX, STATE})
"""What is made anew from the rest, or waits to become part of it: it is weighed, and no memory."""

_FOLDERS = {
    "memories": "items",
    "conventions": "items",
    "iterations": "iterations",
    "checkpoints": "checkpoints",
    "threads": "threads",
    "archive": "archive",
}
_PATIENCE = 1.0
_COMMIT = 512
"""What a commit takes, beside what it holds."""
_ROW = 26
"""What a name takes in a folder of git's, beside its letters; an id is 20 bytes that nothing makes shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaUsage:
    """Bytes by area, and bytes free on the workspace's file system (None where it does not tell)."""

    areas: Mapping[str, int]
    free: int | None

    @property
    def total(self) -> int:
        """Everything memfs keeps here but what is derived; backups lie elsewhere and are bounded by their number."""
        return sum(size for area, size in self.areas.items() if area not in DERIVED)


def area_of(path: str) -> str:
    """The area that a path below the workspace belongs to."""
    first = path.removeprefix(f"{CONTENT}/").partition("/")[0] if path.startswith(f"{CONTENT}/") else ""
    return _FOLDERS.get(first, DOCUMENTS)


def weigh_files(parts: Parts) -> dict[str, int]:
    """What the areas weigh that writes change at once: all but history and index."""
    sizes: Counter[str] = Counter(dict.fromkeys(AREAS, 0))
    for entry in parts.tree.scan(CONTENT, hidden=True):
        sizes[area_of(entry.path)] += entry.size
    settings = parts.tree.entry(SETTINGS_FILE)
    sizes[DOCUMENTS] += settings.size if settings else 0
    # The ballast is there to be given up when the disk is full: it is room, and nobody could make any by removing it.
    state = parts.repository.state
    sizes[STATE] = io.weigh(state) - (BALLAST_BYTES if os.path.lexists(state / BALLAST) else 0)
    return dict(sizes)


def weigh_history(parts: Parts) -> int:
    """What git keeps of the workspace's own paths, as it lies on disk, and what it will keep of writes that wait for
    their commit.

    In a repository that holds more than the memory this counts the memory alone.
    """
    with ExitStack() as held:
        with suppress(MemfsError):  # what is committed just now may be counted twice without it
            held.enter_context(parts.commit_lock.hold("weigh what waits", timeout=_PATIENCE))
        head = parts.repository.head().commit
        pending = _pending(parts, head)
    return pending + _committed(parts, head)


def weigh_commit(parts: Parts, plans: Sequence[FilePlan]) -> int:
    """What git will keep of a write, estimated before it is done: at most this, where it gets a commit of its own."""
    shared = [plan for plan in plans if not parts.is_local(plan.path) and not document_of_sidecar(plan.path)]
    if not shared:
        return 0
    blobs = sum(len(objects.loose_bytes(objects.Object("blob", plan.after))) for plan in shared if plan.after)
    folders = {folder for plan in shared for folder in PurePosixPath(plan.path).parents}
    return _COMMIT + blobs + sum(_weigh_tree(parts.tree.root / folder) for folder in folders)


def _weigh_tree(folder: Path) -> int:
    """What git keeps of a folder's names each time that one of its files changes."""
    try:
        return sum(_ROW + len(name) // 2 for name in os.listdir(folder))
    except OSError:  # it is made by the write
        return _ROW


def _pending(parts: Parts, head: str | None) -> int:
    """What the writes that wait for their commit will add; 0 where git cannot tell."""
    from memfs.git import commits  # only once there is something to commit
    from memfs.store.commits import windows

    waiting = parts.journal.operations()
    shared = [
        replace(one, changes=tuple(change for change in one.changes if not parts.is_local(change.path)))
        for one in waiting
    ]
    try:
        return commits.weight(parts.repository, windows(shared), head, parts.journal.tip)
    except HistoryError:
        return 0


def _committed(parts: Parts, head: str | None) -> int:
    """What git keeps below a commit; 0 where there is none or git cannot tell."""
    if head is None:
        return 0
    repository = parts.repository
    own = [os.fsdecode(repository.full(path)) for path in (CONTENT, SETTINGS_FILE)]
    try:
        answer = repository.git.run("rev-list", "--objects", "--disk-usage", head, "--", *own)
        return int(answer)
    except (HistoryError, ValueError):
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTally:
    """Numbers of items, and what they weigh.

    Attributes:
        items: how many there are.
        types: how many there are of each type.
        layers: how many there are in each layer.
        type_bytes: what the files of each type weigh.
        content_bytes, repository_bytes, index_bytes: what all files, all of git and the index weigh.
    """

    items: int
    types: Mapping[str, int]
    layers: Mapping[str, int]
    type_bytes: Mapping[str, int]
    content_bytes: int
    repository_bytes: int = 0
    index_bytes: int = 0


def tally(store: Store, parts: Parts) -> MemoryTally:
    """Count and measure the workspace as its files are now. ``repository_bytes`` is that of the whole repository."""
    weight = io.weigh(parts.repository.common_dir / "objects")
    return replace(numbers(store, parts), repository_bytes=weight, index_bytes=parts.index.stats().bytes)


def numbers(store: Store, parts: Parts) -> MemoryTally:
    """Count the items as the files are now, and weigh their files."""
    store.follow()
    return tally_of(((path, stamp.size) for path, (_, stamp) in parts.index.stamps().items()), parts.kinds)


def tally_of(files: Iterable[tuple[str, int]], kinds: KindTable) -> MemoryTally:
    """Count items by type and layer, most first, and weigh them, by the paths and sizes of their files."""
    types: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for path, size in files:
        kind = kinds.at(below_content(path))
        if kind is not None:
            types[kind.name] += 1
            layers[kind.layer.value] += 1
            sizes[kind.name] += size
    return MemoryTally(
        items=types.total(),
        types=dict(types.most_common()),
        layers=dict(layers.most_common()),
        type_bytes=dict(sizes),
        content_bytes=sizes.total(),
    )
