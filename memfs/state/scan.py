"""Notice which state documents changed, without reading those that did not.

The index follows the files: after each commit the paths that differ from it, before each query the folders of open
iterations, and at most once a minute everything.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from memfs.errors import ContentError, CorruptItem, CorruptRecord, HistoryError, MemfsError, NotRegularFile, PathEscape
from memfs.fs import io
from memfs.fs.executor import Deadline
from memfs.fs.lock import renewed_in_child
from memfs.git.tree_diff import changed_paths
from memfs.model.state_facts import StateFacts, describe
from memfs.model.state_paths import ARCHIVE, ITERATIONS, document_kind, iteration_folder, iteration_of
from memfs.model.state_query import StateRow
from memfs.search.state_index import Folder, StateIndex
from memfs.store.parts import Parts
from memfs.store.state_files import StateFiles

if TYPE_CHECKING:
    from memfs.state.archives import Archives


_FINE_NS = 20_000_000
_COARSE_NS = 2_000_000_000


def settled(folder: Folder) -> bool:
    """Whether a folder was old enough when it was looked into that a later change shows in its times."""
    age = folder.checked - max(folder.mtime_ns, folder.ctime_ns)
    return age > (_FINE_NS if folder.mtime_ns % 1_000_000 else _COARSE_NS)


_BATCH = 500
_AT_ONCE = 50
_MINUTE_NS = 60_000_000_000
_FEW = 5_000
_MOST_OPEN = 5
_DEEPEST = 8
_NEVER = Deadline(None)
_UNDECODED = re.compile("[\ud800-\udfff]")

FileFacts = tuple[int, int, int, int]
"""Size, time of change, time of change of the facts, inode."""
Known = Mapping[str, tuple[int, int, int, int, int, str]]
"""By path: file facts, when the file was read, and the archive that holds it."""


def same(facts: FileFacts, now: FileFacts, checked_ns: int) -> bool:
    """Whether size, times and inode still vouch for a content that was read at a moment.

    Where the disk counts time in milliseconds or coarser, a file may change twice within what it shows as one moment.
    """
    return facts == now and (now[1] % 1_000_000 != 0 or checked_ns - max(now[1], now[2]) > _COARSE_NS)


class StateScan:
    """Keeps the index of state documents in step with the files. May be used from several threads."""

    def __init__(self, files: StateFiles, index: StateIndex, archives: Archives, parts: Parts) -> None:
        self._files = files
        self._index = index
        self._archives = archives
        self._parts = parts
        self._root = parts.tree.root
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._everywhere_ns = 0

    # -- looks --------------------------------------------------------------------------------------------------------
    def look(self, deadline: Deadline = _NEVER) -> bool:
        """Learn what changed since the last look, of any process; returns whether the time was enough."""
        with self._turn:
            notes = self._index.notes()
            if not notes.get("looked"):
                return self.everything(deadline)
            complete = self._look_at_history(notes, deadline)
            self._look_at_archives()
            complete = complete and self._look_at_work(deadline)
            self._look_at_secondary()
            return complete and self._look_now_and_then(self._index.notes(), deadline)

    def everything(self, deadline: Deadline = _NEVER) -> bool:
        """Look at every file; returns whether the time was enough. What was learned until then stays."""
        with self._turn:
            head = self._head()
            self._look_at_archives()
            documents = (path.rpartition("/")[0] for path in self._index.stamps(ITERATIONS))
            complete = self._walk({ITERATIONS, *self._index.folders(ITERATIONS), *documents}, deadline)
            if complete:
                self._looked(head)
            self._look_at_secondary()
            return complete

    def refresh(self, paths: Iterable[str]) -> None:
        """Look at these documents, whatever their files' facts say."""
        rows, gone = [], []
        for path in paths:
            row = self._described(path)
            if row is None:
                gone.append(path)
            else:
                rows.append(row)
            if len(rows) >= _BATCH:
                self._index.learn(rows)
                rows = []
        self._index.learn(rows)
        self._drop(gone)

    def removed(self, paths: Collection[str]) -> None:
        """Learn that documents are gone from the tree: an archive may hold them."""
        with self._turn:
            if paths:
                self._look_at_archives()
            self._drop(paths)

    # -- by commit ----------------------------------------------------------------------------------------------------
    def _head(self) -> str:
        return self._parts.repository.head().commit or ""

    def _look_at_history(self, notes: Mapping[str, str], deadline: Deadline) -> bool:
        head, before = self._head(), notes.get("head", "")
        if head == before:
            return True
        try:
            if not (head and before):
                raise HistoryError("no two commits to compare")
            paths = list(changed_paths(self._parts.repository, before, head, ITERATIONS))
        except HistoryError:
            if not self._look_at_folders(self._index.folders(ITERATIONS), deadline):
                return False
        else:
            if not self._look_at_changed(sorted(path for path in paths if _is_text(path)), head, notes, deadline):
                return False
        self._index.note(head=head, halfway="")
        return True

    def _look_at_changed(self, paths: Sequence[str], head: str, notes: Mapping[str, str], deadline: Deadline) -> bool:
        """Look at what a commit changed, from where the last look at it had no more time."""
        commit, _, done = notes.get("halfway", "").partition(" ")
        waiting = [path for path in paths if commit != head or path > done]
        for start in range(0, len(waiting), _AT_ONCE):
            if deadline.passed:
                return False
            some = waiting[start : start + _AT_ONCE]
            self.refresh(path for path in some if document_kind(path) and self._differs(path))
            self._index.note(halfway=f"{head} {some[-1]}")
        return True

    def _differs(self, path: str) -> bool:
        row, entry = self._index.row(path), self._parts.seen.entry(path)
        if entry is None or row is None or row.stamp is None:
            return entry is not None or (row is not None and not row.archive)
        return not same(row.stamp[:4], (entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode), row.stamp.checked_ns)

    # -- by folder ----------------------------------------------------------------------------------------------------
    def _look_at_work(self, deadline: Deadline) -> bool:
        """Look at the iterations at work: the newest, the last open ones, and the newest that was closed."""
        above = self._index.folders(ITERATIONS, deep=False)
        complete = self._look_at_folders(above, deadline) if above else self._walk([ITERATIONS], deadline)
        numbers = {*self._index.iterations_with("system_state", "open")[-_MOST_OPEN:], self._index.newest_iteration()}
        numbers.add(self._index.newest_iteration("closed"))
        for number in sorted(one for one in numbers if one is not None):
            complete = complete and self._look_at_folders(self._index.folders(iteration_folder(number)), deadline)
        return complete

    def _look_at_folders(self, folders: Mapping[str, Folder], deadline: Deadline) -> bool:
        changed = []
        for path, before in folders.items():
            now = self._folder(path)
            if now is None or now[:3] != before[:3] or not settled(before):
                changed.append(path)
        return self._walk(changed, deadline)

    def _walk(self, folders: Iterable[str], deadline: Deadline) -> bool:
        """Look into folders, and into those inside that are new; learn what differs from what is known."""
        waiting, looked = list(folders), dict[str, Folder]()
        rows: list[StateRow] = []
        while waiting and not deadline.passed:
            folder = waiting.pop()
            now = self._folder(folder)
            if now is None:
                self._drop(path for path, facts in self._index.stamps(folder).items() if not facts[5])
                self._index.looked_into({}, [folder])
                continue
            stamps = self._index.stamps(folder, deep=False)
            files, inside = self._listed(folder, stamps)
            if not self._take(self._changed(files, stamps), rows, deadline):
                waiting.append(folder)
                break
            looked[folder] = now
            gone = [path for path, facts in stamps.items() if not facts[5] and path not in files]
            self._drop(path for path in gone if self._parts.seen.entry(path) is None)
            waiting += sorted(set(inside) - self._index.known_folders(inside), reverse=True) if inside else []
            if len(looked) >= _BATCH:
                self._learn(rows, looked)
        self._learn(rows, looked)
        return not waiting

    def _take(self, found: Iterable[StateRow], rows: list[StateRow], deadline: Deadline) -> bool:
        """Add rows as long as there is time; many are learned at once."""
        for row in found:
            rows.append(row)
            if len(rows) >= _BATCH:
                self._index.learn(rows)
                rows.clear()
            if deadline.passed:
                return False
        return True

    def _learn(self, rows: list[StateRow], looked: dict[str, Folder]) -> None:
        self._index.learn(rows)
        self._index.looked_into(looked)
        rows.clear()
        looked.clear()

    def _changed(self, files: Mapping[str, FileFacts], known: Known) -> Iterator[StateRow]:
        for path, facts in sorted(files.items()):
            before = known.get(path)
            if before is None or before[5] or not same(before[:4], facts, before[4]):
                row = self._described(path)
                if row is not None:
                    yield row

    def _listed(self, folder: str, known: Known) -> tuple[dict[str, FileFacts], list[str]]:
        """A folder's documents with their facts, and the folders in it. No link is followed."""
        files: dict[str, FileFacts] = {}
        inside: list[str] = []
        with suppress(MemfsError), io.operation("scan", folder), os.scandir(self._root / folder) as found:
            for entry in found:
                path = f"{folder}/{entry.name}"
                if entry.name.startswith(".") or not _is_text(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if path.count("/") < _DEEPEST and iteration_of(path) is not None:
                        inside.append(path)
                elif (path in known or document_kind(path)) and entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    files[path] = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
        return files, inside

    def _folder(self, path: str) -> Folder | None:
        """The facts about a folder, None where there is none."""
        try:
            found = os.stat(self._root / path, follow_symlinks=False)
        except OSError:
            return None
        if not stat.S_ISDIR(found.st_mode):
            return None
        return Folder(found.st_mtime_ns, found.st_ctime_ns, found.st_ino, time.time_ns())

    # -- now and then -------------------------------------------------------------------------------------------------
    def _look_now_and_then(self, notes: Mapping[str, str], deadline: Deadline) -> bool:
        """Once a minute, of all processes together, look at everything; where that is much, at what folders tell."""
        last = max(int(notes.get("looked", "0")), self._everywhere_ns)
        if time.time_ns() - last < _MINUTE_NS:
            return True
        if self._index.count() <= _FEW:
            return self.everything(deadline)
        complete = self._look_at_folders(self._index.folders(ITERATIONS), deadline)
        if complete:
            self._looked(notes.get("head", ""))
        return complete

    def _looked(self, head: str) -> None:
        self._everywhere_ns = time.time_ns()
        self._index.note(looked=str(self._everywhere_ns), head=head)

    def _look_at_secondary(self) -> None:
        """What waits in the secondary location lies in no folder of the tree."""
        if self._parts.secondary is not None:
            held = [path for path in self._parts.secondary.held() if iteration_of(path) is not None]
            self.refresh(path for path in held if document_kind(path) and self._differs(path))

    # -- archives -----------------------------------------------------------------------------------------------------
    def _look_at_archives(self) -> None:
        """Learn the rows of archives that are new, and drop those of archives that are gone."""
        now, notes = self._folder(ARCHIVE), self._index.notes()
        mark = "" if now is None else f"{now.mtime_ns} {now.ctime_ns} {now.inode}"
        if mark == notes.get("archive_folder", "") and (now is None or settled(now)):
            return
        before: dict[str, str] = json.loads(notes.get("archives", "{}"))
        stamps = dict(self._archives.stamp())
        for name in before.keys() - stamps.keys():
            self.refresh(self._index.in_archive(name))
        for name in sorted(name for name, stamp in stamps.items() if before.get(name) != stamp):
            self._learn_archive(name)
        self._index.note(archive_folder=mark, archives=json.dumps(stamps))

    def _learn_archive(self, name: str) -> None:
        rows = []
        with suppress(CorruptRecord, FileNotFoundError):  # ``memfs admin archive verify`` says what is wrong
            for member in self._archives.index(name).members:
                if member.facts and not self._files.exists(member.path):
                    facts = StateFacts.from_dict(member.facts)
                    rows.append(StateRow(facts=facts, sha256=member.sha256, bytes=member.bytes, archive=name))
        self._index.learn(rows)

    # -- documents ----------------------------------------------------------------------------------------------------
    def _described(self, path: str) -> StateRow | None:
        """What a document is about now, None where there is none."""
        try:
            state = self._files.read(path, whole=False)
        except (FileNotFoundError, PathEscape, NotRegularFile):
            return None
        except CorruptItem:
            return self._index.row(path) or StateRow(facts=describe(path, {}))
        except ContentError:
            return StateRow(facts=describe(path, {}))
        return StateRow(facts=describe(path, state.values), sha256=state.sha256, bytes=state.bytes, stamp=state.stamp)

    def _drop(self, paths: Iterable[str]) -> None:
        """Forget documents that are gone, but for those that an archive holds."""
        listed = list(paths)
        archived = bool(listed) and bool(self._archives.stamp())
        gone, rows = [], []
        for path in listed:
            row = self._index.row(path)
            name = self._archives.period_of(path) if row is not None and archived else ""
            if row is not None and name:
                rows.append(replace(row, stamp=None, archive=name))
            else:
                gone.append(path)
        self._index.learn(rows)
        self._index.forget(gone)


def _is_text(path: str) -> bool:
    """Whether a path can be written down; memfs gives no document another."""
    return path.isascii() or not _UNDECODED.search(path)
