"""Finds the files of memfs that a person changed since the last commit.

memfs's own changes are never taken for a person's. Only reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType

from memfs.config_names import CONFIGURATION, SETTINGS_FILE
from memfs.dataclass import NamedTuple
from memfs.errors import MemfsError, NotRegularFile, PathEscape, SecretDetected, StorageIO
from memfs.format.codec import PRUNED, SCHEMAS, schema_of
from memfs.format.text import has_markers
from memfs.format.toml_text import is_toml
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.fs.tree import ScanEntry, rotten
from memfs.model import Stamp
from memfs.model.state_paths import document_kind
from memfs.startup import TYPE_CHECKING
from memfs.store.index_sync import IndexSync, ScanFindings, SyncResult
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

if TYPE_CHECKING:
    from memfs.store.plan import FilePlan

ROOT_FILES = (SETTINGS_FILE,)
_CLOCKS_DIFFER_NS = 60_000_000_000
_RETRY_NS = 1_000_000_000
_OWN_NAMES = (SETTINGS_FILE, f"{CONTENT}/.gitattributes", f"{CONTENT}/.gitignore")
_OWN_FOLDERS = (f"{CONFIGURATION}/", f"{CONTENT}/context/", f"{PRUNED}/")


def is_own_file(path: str) -> bool:
    """Whether memfs keeps this file in git: settings, context, pruned items, state documents."""
    named = path in SCHEMAS or path in _OWN_NAMES or path.startswith(_OWN_FOLDERS)
    return named or document_kind(path) != ""


class EditSet(NamedTuple):
    """A person's changes.

    Attributes:
        plans: those to commit.
        staged: the paths that they have staged themselves.
        young: of those that have not rested for long enough, when the oldest was made (ns since 1970); 0 for none.
    """

    plans: list[FilePlan]
    staged: list[str]
    young: int = 0


class HandEdits:
    """Finds a person's changes in one workspace."""

    def __init__(self, parts: Parts, index_sync: IndexSync) -> None:
        self._parts, self._index_sync = parts, index_sync
        self._read: dict[str, Stamp] = {}

    def find(self, include_staged: bool, quiet_seconds: float = 0) -> EditSet:
        """The changes that are not in git and not memfs's own.

        Args:
            include_staged: take paths too whose entry in the person's index differs from HEAD.
            quiet_seconds: leave out what changed within these last seconds.
        """
        paths = self.changed_paths()
        staged = self._parts.repository.staged_differently(paths) if paths and not include_staged else set()
        young: dict[str, int] = {}
        for path in paths if quiet_seconds else ():
            nearest = path  # where it was removed, the nearest folder that is left of its path says when
            while nearest and (entry := self._parts.tree.entry(nearest)) is None:
                nearest = nearest.rpartition("/")[0]
            if nearest and entry is not None and _is_younger(entry.mtime_ns, quiet_seconds):
                young[path] = entry.mtime_ns
        ready = [path for path in paths if path not in staged and path not in young]
        plans = [plan for path in sorted(ready) if (plan := self._plan(path, quiet_seconds))]
        return EditSet(plans=plans, staged=sorted(staged), young=min(young.values(), default=0))

    def find_rested(self, seconds: float) -> EditSet:
        """As ``find``, for a writer that was not asked to look: only where an edit can have rested by now.

        One look serves all processes: what was made since then, or was young then, cannot have rested before its time.
        Where there is something to commit, the next look is due in a second, should git be busy.
        """
        # an empty file: no edit that was made before its time is left to be committed
        note, began = self._parts.repository.state / "looked", time.time_ns()
        with suppress(OSError):
            if seconds and 0 <= began - os.stat(note).st_mtime_ns < seconds * 1e9:
                return EditSet(plans=[], staged=[])
        found = self.find(False, seconds)
        if seconds:
            soon = began - int(seconds * 1e9) + _RETRY_NS
            with suppress(StorageIO):  # the next writer looks once more
                io.write_file(note, b"", durable=False)
                io.touch(note, soon if found.plans else found.young or began)
        return found

    def changed_paths(self) -> list[str]:
        """Every file of ours that a person changed or removed since the last commit, valid or not.

        Where the index holds nothing yet, and no file differs from HEAD, it goes on holding nothing.
        """
        return [] if self.untouched() else self.look()[1]

    def look(self) -> tuple[SyncResult, list[str]]:
        """Look at every file once: what the index learned of it, and ``changed_paths``."""
        if self._parts.seen is self._parts.tree:
            found = self._index_sync.survey()
        else:  # readers see more than is here
            learned = self._index_sync.refresh()
            found = ScanFindings(learned, others=list(self._parts.tree.scan(CONTENT, hidden=True)))
        head, same = self._parts.repository.head_commit(), dict[str, str]()
        if head is not None and found.trees:  # folders that are as the commit has them, where nothing waits for its own
            waiting = self._parts.journal.operations()
            busy = {change.path.rpartition("/")[0] for operation in waiting for change in operation.changes}
            idle = {folder: tree for folder, tree in found.trees.items() if folder not in busy}
            with suppress(MemfsError):  # a tree cannot be read
                same = self._parts.repository.unchanged(head, idle)
        others = (folder for folder in found.unchanged if folder not in same)
        vouched = [*found.vouched, *(f"{folder}/{name}" for folder in others for name in found.unchanged[folder])]
        for path in vouched if self._read else ():
            self._read.pop(path, None)
        closed = [f"{entry.path}/" for entry in found.others if not entry.regular]
        with self._parts.tree.holding_folders():
            present = dict(self._present(found.others, vouched))
        return found.learned, self._changed(present, closed, self._in_commit(head, present, same))

    def _changed(self, present: dict[str, str], closed: list[str], committed: dict[str, str]) -> list[str]:
        latest = self._parts.journal.latest
        unlike = [path for path, blob in present.items() if committed.get(path) != blob or latest(path) is not None]
        changed = [path for path in unlike if self._differs(path, present[path], committed)]
        absent = [path for path in committed if path not in present and not path.startswith(tuple(closed))]
        removed = [path for path in absent if latest(path) is None and self.is_own(path)]
        unwanted = self._parts.repository.left_out(removed) if removed else set()
        return [*changed, *(path for path in removed if path not in unwanted)]

    def untouched(self) -> bool:
        """Whether every file of ours is as HEAD has it, by the bytes alone, where the index holds nothing yet.

        Building the index takes many times as long, and is left to searches. False where the index shows it
        sooner, or where it takes a closer look: what waits for its commit need not be in HEAD.
        """
        if len(self._parts.index.stamps()) or self._parts.journal.operations():
            return False
        entries = list(self._parts.tree.scan(CONTENT, hidden=True))
        if not all(entry.regular for entry in entries):
            return False
        with self._parts.tree.holding_folders():
            return dict(self._present(entries, [])) == self.committed()

    def changed_among(self, paths: Iterable[str]) -> list[str]:
        """As ``changed_paths``, of these paths alone: no other file is looked at."""
        own = sorted(path for path in set(paths) if self.is_own(path))
        self._index_sync.refresh(own)
        repository, entries, closed = self._parts.repository, list[ScanEntry](), list[str]()
        for path in own:
            try:
                entries += [entry] if (entry := self._parts.tree.entry(path)) is not None else []
            except StorageIO:  # what cannot be seen is not known to be gone
                closed.append(path)
        born = repository.head_commit() is not None
        committed = {path: blob for path in own if born and (blob := repository.head_blob(path)) is not None}
        present = {path: blob for path, blob in self._present(entries, []) if path in own}
        return self._changed(present, closed, committed)

    def own_paths(self, *, surely: bool = False) -> list[str]:
        """Every file of ours below ``ContextMemory/`` that is on disk, those that are in no commit among them.

        Args:
            surely: for a writer: what cannot be seen is not taken for absent.

        Raises:
            StorageIO: a folder cannot be entered, and ``surely`` was asked for.
        """
        found = []
        for entry in self._parts.tree.scan(CONTENT, hidden=True):
            if surely and entry.refused:
                reason = f"this folder cannot be entered: {entry.reason}"
                raise StorageIO(reason, path=entry.path, hint="make it readable, or move it away")
            if self.is_own(entry.path) or self._parts.is_local(entry.path):
                found.append(entry.path)
        return found

    def is_own(self, path: str) -> bool:
        """Whether memfs keeps the file at this path in git."""
        item = self._index_sync.is_item(path) and not self._parts.is_local(path)
        return path in ROOT_FILES or item or is_own_file(path)

    def _present(self, entries: Iterable[ScanEntry], vouched: list[str]) -> Iterator[tuple[str, str]]:
        """Every file of ours on disk with its blob id, "" where it cannot be read."""
        for path in ROOT_FILES:
            if self._parts.tree.entry(path) is not None:
                yield path, self._blob(path)
        stamps = self._parts.index.stamps()
        known = {path: blob for path in vouched if (blob := stamps.blob(path))}
        yield from known.items()
        for entry in entries:
            path = entry.path
            if path in known:
                continue
            if stamps.matches(*entry[:5]):
                yield path, stamps.blob(path)
            elif self.is_own(path):
                yield path, self._blob(path, entry)

    def _blob(self, path: str, entry: ScanEntry | None = None) -> str:
        known = self._read.get(path)
        if entry is not None and known is not None and known[:4] == entry[1:5]:
            return known.blob
        try:
            stamp = self._parts.tree.read(path, READ_LIMIT).stamp
        except (FileNotFoundError, MemfsError):
            return ""
        if not stamp.racy:
            self._read[path] = stamp
        return stamp.blob

    def committed(self) -> dict[str, str]:
        """Every file of ours in HEAD, with its blob id."""
        found = self._in_commit(self._parts.repository.head_commit())
        return {path: blob for path, blob in found.items() if self.is_own(path)}

    def _in_commit(
        self,
        head: str | None,
        present: Mapping[str, str] = MappingProxyType({}),
        same: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, str]:
        """Every file in HEAD that may be ours, with its blob id; most are as they are ``present``. What is in folders
        that are the ``same``, by the ids of their trees, is left out.
        """
        repository = self._parts.repository
        if head is None:
            return {}
        root = {path: repository.head_blob(path) for path in ROOT_FILES}
        found = repository.tree(head, CONTENT, present, same)
        return found | {path: blob for path, blob in root.items() if blob is not None}

    def _differs(self, path: str, blob: str, committed: dict[str, str]) -> bool:
        if not blob or self._parts.is_local(path):
            return False
        written = self._parts.journal.latest(path)
        if written is None:
            return committed.get(path) != blob
        try:
            return sha256(self._parts.tree.read(path, READ_LIMIT).data) != written
        except FileNotFoundError:
            return False

    def _plan(self, path: str, quiet_seconds: float) -> FilePlan | None:
        if self._index_sync.rejected(path):
            return None
        from memfs.format.secrets import refuse_file  # what only looks does without both
        from memfs.store.plan import FilePlan

        try:
            content = self._parts.tree.read(path, READ_LIMIT)
        except FileNotFoundError:
            return FilePlan(path=path, before=None, after=None, item=None)
        except (NotRegularFile, PathEscape):
            return None
        if quiet_seconds and _is_younger(content.stamp.mtime_ns, quiet_seconds):  # saved again since it was looked at
            return None
        stamp = self._index_sync.stamp_of(path)
        if stamp is not None and rotten(stamp, content, self._parts.tree.root):
            return None
        if has_markers(content.data) or not (
            is_toml(content.data)
            if path in ROOT_FILES
            else not schema_of(path) or self._parts.codec.accepts(content.data, path)
        ):
            return None
        try:
            reason = refuse_file(content.data, path)
        except SecretDetected:
            return None
        return FilePlan(path=path, before=None, after=content.data, item=None, reason=reason)


def _is_younger(mtime_ns: int, seconds: float) -> bool:
    """Whether it changed within the last ``seconds``. A time far ahead says nothing: a clock was wrong, then or now."""
    return -_CLOCKS_DIFFER_NS < time.time_ns() - mtime_ns < seconds * 1e9
