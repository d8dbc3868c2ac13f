"""The history of a workspace in a person's terms: ids and paths, revisions and dates; and the way back.

Items that are gone are found, too, and contents that a person's change displaced before their commit. What is restored
is a new commit; history is never rewritten, and nothing comes back without being asked for.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.errors import Conflict, CorruptRecord, HistoryUnavailable, ItemNotFound, StorageIO
from memfs.fs import io
from memfs.fs.lock import FileLock
from memfs.git import log
from memfs.git.log import Revision
from memfs.git.repository import Repository, blobs_in_history
from memfs.model.ids import stem_of
from memfs.model.time import from_timestamp_ns
from memfs.store import Store
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, RECOVERED_FOLDER
from memfs.store.plan import FilePlan
from memfs.store.reader import beginning, not_found, path_of
from memfs.store.recovery import DAMAGED, SUFFIX, all_aside, keep_replaced, read_aside

_SEARCH_DEPTH = 20_000
_ELSEWHERE = "'memfs list' shows what there is, 'memfs recall' finds by words"
_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredRevision:
    """What was brought back, and its commit (None while it waits)."""

    revision: str
    restored: tuple[str, ...]
    removed: tuple[str, ...]
    commit: str | None


class History:
    """Reads and rewinds the history of one workspace's memory."""

    def __init__(self, store: Store, repository: Repository, commit_lock: FileLock) -> None:
        self._store, self._repository, self._commit_lock = store, repository, commit_lock

    def log(
        self, target: str | None = None, limit: int = 20, since: datetime | None = None, revision: str = ""
    ) -> list[Revision]:
        """Revisions that touched the memory, or one item or path, newest first, not before ``since``.

        With ``revision`` those up to it; a date is one, too.

        An item is followed through changes of its type and folder: an id means every path it had.

        Raises:
            ItemNotFound: no item ever had that id, or nothing was ever at that path.
        """
        paths = self._paths(target)
        if target is not None and not self._is_path(target):
            # every path the item had: a commit that moved it touched the place it came from, too
            known, new = list[str](), [paths[0]]
            if self._repository.head_blob(paths[0]) is None and self._repository.head().commit is not None:
                new += [other for other in self._candidates("HEAD", target) if other != paths[0]]  # moved since HEAD
            while new:
                known += new
                revisions = log.log(self._repository, new, _SEARCH_DEPTH)
                touched = dict.fromkeys(other for one in revisions for other in one.paths)
                new = [other for other in touched if other not in known and self._meant(other, target)]
            paths = tuple(known)
        found = log.log(self._repository, paths, limit, since, revision)
        if not found and target is not None and not self._is_there(paths[0]) and not self.has_seen(paths[0]):
            raise ItemNotFound(
                f"the history has nothing at {paths[0]!r}", hint="give a path from the workspace's folder, or an id"
            )
        return found

    def has_seen(self, path: str) -> bool:
        """Whether any commit touched a file or folder, by its path from the workspace's folder."""
        return bool(log.log(self._repository, (path,), 1))

    def _elsewhere(self, target: str) -> str:
        """What to do about one that was not found: whether any commit has it."""
        is_path = self._is_path(target)
        seen = self.has_seen(self._path_of(target)) if is_path else self._past_path(target) is not None
        return f"memfs log {target} shows where it does" if seen else _ELSEWHERE

    def diff(self, older: str = "HEAD", newer: str | None = None, target: str | None = None) -> str:
        """Unified diff of the memory between two revisions; ``newer`` None means the files as they are."""
        return log.diff(self._repository, older, newer, self._paths(target))

    def holds(self, target: str) -> bool:
        """Whether the file of an id, or what is meant by a path, is there now."""
        self._store.require_open()
        return self._is_there(self._path_of(target)) if self._is_path(target) else bool(self._store.locate(target))

    def content(self, revision: str, target: str) -> bytes:
        """The bytes a file had at a revision; see ``found_at``."""
        return self.found_at(revision, target)[1]

    def begun(self, target: str, revision: str = "") -> str:
        """The only id at a revision, or of all the history, that begins so, else what was given.

        Raises:
            ItemNotFound: several begin so; the hint names them.
            HistoryUnavailable: no such revision.
        """
        if revision:
            paths: Iterable[str] = self._repository.tree(revision, CONTENT)
        else:
            revisions = log.log(self._repository, (CONTENT,), _SEARCH_DEPTH)
            paths = (path for one in revisions for path in one.paths)
        ids = {stem_of(path) for path in paths if path.endswith(ITEM_SUFFIXES)}
        found = beginning(target, ids)
        if len(found) < 2 or target.casefold() in map(str.casefold, found):
            return found[0] if len(found) == 1 else target
        raise not_found(target, ids)

    def found_at(self, revision: str, target: str) -> tuple[str, bytes]:
        """The path and bytes a file, or the file of an id, had at a revision.

        Raises:
            HistoryUnavailable: it did not exist there.
        """
        commit = self._repository.resolve(revision)
        for path in self._candidates(commit, target):
            data = self._repository.read(commit, path)
            if data is not None:
                return path, data
        raise HistoryUnavailable(f"{target!r} does not exist at {revision}", hint=self._elsewhere(target))

    def maintain(self) -> int:
        """Pack the repository and write what makes reading history quick; return how many bytes that freed."""
        from memfs.git.commits import maintain  # reading history makes no commits

        with self._commit_lock.hold("maintenance", timeout=60):
            return maintain(self._repository)

    # -- the way back ---------------------------------------------------------------------------------------------
    def restore(
        self,
        revision: str,
        target: str | None = None,
        *,
        message: str = "",
        dry_run: bool = False,
        source: str = "restore",
    ) -> RestoredRevision:
        """Bring an item, a path or the whole memory back to a revision, as one new commit.

        Where the person commits, the files are brought back and left for that. What they replace is in history, or was
        never committed and is set aside.

        Args:
            source: which door it came through, for the commit's trailers.

        Raises:
            HistoryUnavailable: no such revision, or the target did not exist there.
            Conflict: a file to be changed holds an edit that is not committed.
        """
        commit = self._repository.resolve(revision)
        plans = self._plans(commit, target)
        self.refuse_edited([plan.path for plan in plans if plan.before is not None])  # what was deleted only comes back
        made: str | None = None
        if plans and not dry_run:
            what = target or "the memory"
            self._store.carry_out(plans, message or f"Restore {what} as of {commit[:10]}", source=source)
            if self._store.by_hand:
                self._store.notice_commits(thorough=True)
            flushed = None if self._store.by_hand else self._store.flush(adopt=False)
            made = flushed.commits[-1] if flushed is not None and flushed.commits else None
        return RestoredRevision(
            revision=commit,
            restored=tuple(plan.path for plan in plans if plan.after is not None),
            removed=tuple(plan.path for plan in plans if plan.after is None),
            commit=made,
        )

    def refuse_edited(self, paths: Sequence[str]) -> None:
        """Refuse to overwrite a person's uncommitted changes; of few files, only these are looked at.

        Raises:
            Conflict: naming the first such files.
        """
        found = self._store.hand_edits(paths if len(paths) <= _FEW else None) if paths else []
        edited = {path.casefold() for path in found}
        unsaved = [path for path in paths if path.casefold() in edited]
        if unsaved:
            raise Conflict(
                "there are edits that are not committed" + (f": {', '.join(unsaved[:3])}" if unsaved[1:] else ""),
                path=unsaved[0],
                hint=self.recovery_hint(unsaved),
            )

    def recovery_hint(self, unsaved: Sequence[str]) -> str:
        """What a person can do about edits that are in the way of a restore or undo."""
        self._store.require_open()
        known = [path for path in unsaved if self._repository.head_blob(path) is not None]
        undo = f"undo it with 'git checkout -- {known[0]}'" if known else "move the file out of ContextMemory/"
        if any(map(self._store.index_sync.rejected, unsaved)):
            return f"'memfs check' names what is wrong: correct it and 'memfs commit', or {undo}"
        return f"'memfs commit' commits it; or {undo}"

    def _plans(self, commit: str, target: str | None) -> list[FilePlan]:
        then = {
            path: blob
            for path, blob in self._repository.tree(commit, CONTENT).items()
            if self._store.edit_finder.is_own(path)
        }
        now = set(filter(self._store.edit_finder.is_own, self._store.edit_finder.own_paths(surely=True)))
        if target is None:
            affected = then.keys() | now
        else:
            affected = {path for path in then.keys() | now if self._meant(path, target)}
            if not affected:
                what = f"{target!r} exists neither now nor at {commit[:10]}"
                raise HistoryUnavailable(what, hint=self._elsewhere(target))
            if not affected & then.keys():
                hint = (
                    f"it came later ('memfs log {target}'); 'memfs forget ID' removes a memory, 'memfs undo' a writing"
                )
                raise HistoryUnavailable(f"{target!r} was not there at {commit[:10]}", hint=hint)
        contents = {path: self._repository.blob(then[path]) if path in then else None for path in sorted(affected)}
        return self._store.plan_restore(contents)

    def _meant(self, path: str, target: str) -> bool:
        if self._is_path(target):
            folder = self._path_of(target)
            return path == folder or path.startswith(folder + "/")
        return path.endswith(ITEM_SUFFIXES) and stem_of(path).casefold() == target.casefold()

    # -- names ----------------------------------------------------------------------------------------------------
    @staticmethod
    def _is_path(target: str) -> bool:
        return "/" in target or target.endswith(ITEM_SUFFIXES) or target in (CONTENT, SETTINGS_FILE)

    def _paths(self, target: str | None) -> tuple[str, ...]:
        if target is None:
            return (CONTENT,)
        if self._is_path(target):
            return (self._path_of(target),)
        current = self._store.locate(target)
        if current:
            return (current,)
        past = self._past_path(target)
        if past is None:
            raise ItemNotFound(f"no memory ever had the id {target!r}", hint=_ELSEWHERE)
        return (past,)

    def _path_of(self, target: str) -> str:
        return CONTENT if target.rstrip("/") == CONTENT else path_of(target).rstrip("/")

    def _is_there(self, path: str) -> bool:
        return any((own + "/").startswith(path + "/") for own in self._store.edit_finder.own_paths())

    def _past_path(self, item_id: str) -> str | None:
        for revision in log.log(self._repository, (CONTENT,), _SEARCH_DEPTH):
            for path in revision.paths:
                if self._meant(path, item_id):
                    return path
        return None

    def _candidates(self, commit: str, target: str) -> Iterable[str]:
        if self._is_path(target):
            return (self._path_of(target),)
        return [path for path in self._repository.tree(commit, CONTENT) if self._meant(path, target)]


RECOVERED = "recovered"
"""What stands for a revision where bytes were set aside that no commit holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """One displaced content.

    Attributes:
        name: what ``restore`` knows it by, beside the id of its item.
        path: where it belonged.
        time: when it was set aside.
        bytes: its size.
    """

    name: str
    path: str
    time: datetime
    bytes: int


class RecoveryCopies:
    """The displaced contents of one workspace."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store, self._repository = store, repository
        self._folder: Path = repository.state / RECOVERED_FOLDER

    def list(self) -> list[Recoverable]:
        """What can be brought back, newest first."""
        return [row for row, _ in self._contents()]

    def uncommitted(self) -> builtins.list[Recoverable]:
        """Those that no commit of any branch holds, newest first."""
        found = self._contents()
        held = blobs_in_history(self._repository, {row.path for row, _ in found})
        return [row for row, data in found if self._repository.blob_id(data) not in held]

    def _contents(self) -> builtins.list[tuple[Recoverable, bytes]]:
        found = {}
        for name, written, change in self._store.displaced():
            found[name] = change.path, datetime.fromtimestamp(written, UTC), change.data or b""
        for place, path, data in all_aside(self._repository.state):
            found[place.name.removesuffix(SUFFIX)] = path, from_timestamp_ns(place.stat().st_mtime_ns), data
        rows = [
            (Recoverable(name=name, path=path, time=moment, bytes=len(data)), data)
            for name, (path, moment, data) in found.items()
        ]
        return sorted(rows, key=lambda row: (row[0].time, row[0].name), reverse=True)

    def keep(self, path: str, data: bytes) -> None:
        """Set aside what a file holds that is about to be removed, where HEAD does not hold it.

        Raises:
            StorageIO: it cannot be set aside.
        """
        if self._repository.head_blob(path) != self._repository.blob_id(data):
            keep_replaced(self._repository.state, path, data)

    def damaged(self) -> builtins.list[CorruptRecord]:
        """What is wrong with set-aside contents that can no longer be read."""
        self._store.require_open()
        found = []
        for name in io.listed(self._folder):
            try:
                if name.endswith(SUFFIX):
                    read_aside(self._folder / name)
            except CorruptRecord as error:
                found.append(error)
        return found

    def restore(self, name: str) -> str:
        """Put a content back at its path, as a new change; return the path.

        Args:
            name: its name, or the id of the item it holds.

        Raises:
            ItemNotFound: there is no such content.
            CorruptRecord: it is the copy of what a repair replaced; that is not put over a whole file.
            Conflict: the file changes at the same moment.
        """
        matching = [one for one in self._contents() if name in (one[0].name, stem_of(one[0].path), one[0].path)]
        if not matching:
            raise ItemNotFound(
                f"no version set aside is called {name!r}", hint="'memfs restore --displaced' lists what there is"
            )
        chosen, data = next((one for one in matching if not one[0].name.startswith(DAMAGED)), (None, b""))
        if chosen is None:
            damaged = matching[0][0]
            copy = self._folder / (damaged.name + SUFFIX)
            raise CorruptRecord(
                "these bytes were put aside because they are damaged: they are there to be looked at, not brought back",
                path=str(copy),
                hint=f"its first line says where it belongs; 'memfs log {damaged.path}' names whole versions",
            )
        plans = self._store.plan_restore({chosen.path: data})
        # A person's save may have been set aside: no secret of it was vetted yet.
        plans = [plan._replace(vetted=False) for plan in plans]
        self._store.carry_out(plans, f"Bring back {stem_of(chosen.path)}", source="recover")
        with suppress(StorageIO):  # it is back; what could not be removed stays listed
            io.unlink(self._folder / (chosen.name + SUFFIX), missing_ok=True)
        return chosen.path
