"""The secondary location, which takes writes while the workspace's own disk does not.

Its journal alone is the truth of what it holds; the copies beside it are for people. Readers see both places as one,
and a note in the workspace remembers which folders were ever used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from memfs import startup
from memfs.dataclass import NamedTuple, replace
from memfs.errors import (
    CorruptRecord,
    FormatUnsupported,
    HistoryError,
    ItemTooLarge,
    MemfsError,
    NotRegularFile,
    PathEscape,
    StorageIO,
    StorageReadOnly,
)
from memfs.fs import io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.journal import FileChange, Journal, Operation
from memfs.fs.lock import FileLock
from memfs.fs.tree import LAST_NS, Content, FolderScan, ScanEntry, Tree, blob_id
from memfs.model import Problem, Stamp
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.plan import FilePlan
from memfs.store.recovery import set_aside, try_out

DAMAGED = "journal.damaged-"
_UNREADABLE = (StorageIO, CorruptRecord, FormatUnsupported, OSError)
_README = """\
memfs keeps memories here that it could not write into the workspace

    {root}

because that disk was full, failing or read-only. They are in the file 'journal', and are moved to the workspace as soon
as it takes writes again. The files below ContextMemory/ are copies for people to read; a change to them has no effect.
"""


class PendingWrite(NamedTuple):
    """What the secondary location has of one path.

    Attributes:
        last: the newest change, whose bytes readers see.
        contents: sha256 of all contents that the file in the workspace may have without a person having changed it.
        entry: the facts by which readers distinguish this version from others; those of a removal are never looked at.
    """

    last: FileChange
    contents: frozenset[str]
    entry: ScanEntry


class Secondary:
    """The secondary location of one workspace. Writing and dropping need its lock; reading needs none.

    Attributes:
        folder: this workspace's own folder there, for this user alone.
        failure: why it could not be used when that was last tried, None while it can.
        unreadable: why its journal could not be read, None while it can.
        used: whether its folder was made before; where it is missing then, its disk is.
    """

    def __init__(self, place: Path, root: Path, home: Journal) -> None:
        """
        Args:
            place: the configured folder; several workspaces may share it.
            root: the workspace.
            home: the workspace's own journal.
        """
        self.place, self.root = place, root
        self.folder = place / startup.sha256(os.fsencode(root)).hexdigest()[:16]
        self.journal = Journal(self.folder / "journal")
        self.lock = FileLock(self.folder / "lock")
        self.failure: StorageIO | None = None
        self.unreadable: Exception | None = None
        self._home = home
        self._seen: FileView | None = None
        self._held: tuple[object, dict[str, PendingWrite]] = (None, {})
        self._rows: tuple[list[str], dict[str, PendingWrite]] = ([], {})
        self.used = False

    def close(self) -> None:
        """Release its files."""
        self.journal.close()

    # -- asking ---------------------------------------------------------------------------------------------------
    def operations(self) -> list[Operation]:
        """What waits here and was not carried out in the workspace yet, oldest first; what cannot be read is left out
        and reported by ``problems``.
        """
        with contextlib.suppress(*_UNREADABLE):
            self._home.catch_up()
        try:
            self.unreadable = None
            facts = os.lstat(self.folder)
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
                hint = "look who made it, and remove it"  # another user may have put it in the place of ours
                raise StorageReadOnly("this folder is not ours alone", path=str(self.folder), hint=hint)
            found = self.journal.operations()
        except FileNotFoundError:
            found = []
        except StorageReadOnly as error:
            self.unreadable = error
            found = []
        except _UNREADABLE as error:
            self.unreadable = error
            found = list(self.journal.waiting.values())
        return [operation for operation in found if not self._home.knows(operation.id)]

    def held(self) -> Mapping[str, PendingWrite]:
        """What it has of each path at present."""
        for journal in (self.journal, self._home):
            with contextlib.suppress(*_UNREADABLE):
                journal.catch_up()
        state = (self.journal.state, self._home.state)
        if self._held[0] != state:
            operations = self.operations()
            known, before = self._rows
            if known != [operation.id for operation in operations[: len(known)]]:
                known, before = [], {}
            rows = dict(before)
            for operation in operations[len(known) :]:
                for change in operation.changes:
                    contents = rows[change.path].contents if change.path in rows else frozenset()
                    facts = _facts(operation, change)
                    rows[change.path] = PendingWrite(change, contents | {change.old, change.new}, facts)
            self._rows = [operation.id for operation in operations], rows
            self._held = state, rows
        return self._held[1]

    def may_hold(self, operation_ids: Collection[str]) -> set[str]:
        """Which of these operations the secondary location still has, or may have as it cannot be read."""
        try:
            self.journal.catch_up()
        except _UNREADABLE:
            return set(operation_ids)
        if self.unreadable is not None or (self.used and not os.path.exists(self.journal.path)):
            return set(operation_ids)  # its disk may be mounted again
        return set(operation_ids) & self.journal.waiting.keys()

    def news(self) -> set[str] | None:
        """Paths that other processes wrote here since this was last asked; None when some may have been missed."""
        with contextlib.suppress(*_UNREADABLE):
            return self.journal.news()
        return set()

    def unseen(self) -> set[str] | None:
        """As ``news``, without counting them as seen."""
        with contextlib.suppress(*_UNREADABLE):
            return self.journal.unseen()
        return set()

    def problems(self) -> list[Problem]:
        """What is wrong with it."""
        found = [Problem.of(error) for error in (self.failure, self.unreadable) if isinstance(error, MemfsError)]
        found += map(Problem.of, self.journal.damage)
        message = "records in the secondary location could not be read; the damaged file was kept"
        hint = "a write may be missing: look into that file, then remove it"
        with contextlib.suppress(OSError):
            kept = sorted(self.folder.glob(f"{DAMAGED}*"))
            found += [Problem.warning(str(path), "JournalDamaged", message, hint) for path in kept]
        return found

    # -- changing -------------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Make its folder.

        Raises:
            StorageIO: it cannot be made, or another user could write in it.
        """
        if not os.path.isdir(self.place.parent):
            raise StorageIO("this folder is not there", path=str(self.place.parent), hint="mount that disk, or make it")
        if not os.path.lexists(self.folder):
            if self.used:
                hint = "mount that disk; if another one is to take its place, make this folder, for you alone"
                raise StorageIO("memfs made this folder before, and it is not there", path=str(self.folder), hint=hint)
            io.make_private_folder(self.folder)
            io.write_file(self.folder / "README", _README.format(root=self.root).encode("utf-8", "surrogateescape"))
        with io.operation("stat", self.place):
            facts = os.stat(self.place)
        # others could swap our folder for theirs
        shared = facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX
        if facts.st_uid not in (0, os.getuid()) or shared:
            message, hint = "others could write in the secondary location", "make it yours, with mode 0700"
            raise StorageReadOnly(message, path=str(self.place), hint=hint)
        io.make_private_folder(self.folder)

    def try_out(self) -> str:
        """Why it takes no writes at present, "" when it does."""
        try:
            self.prepare()
            try_out(self.folder)
        except StorageIO as error:
            return str(error)
        return ""

    def join(self, locks: contextlib.ExitStack, purpose: str, timeout: float | None) -> None:
        """Take its lock for as long as the stack lasts; where that fails, ``failure`` says why, and it is not used.

        Raises:
            LockTimeout: another process holds it.
        """
        try:
            self.prepare()
            locks.enter_context(self.lock.hold(purpose, timeout))
            self.failure = None
        except StorageIO as error:
            self.failure = error

    def take(self, operations: Sequence[Operation]) -> dict[str, Stamp]:
        """Keep operations: on return they survive kill -9 and power loss. The lock is held.

        Returns:
            The stamps by which the new contents are known, by path.

        Raises:
            StorageIO, CorruptRecord, FormatUnsupported: nothing was kept.
        """
        if self.failure is not None:
            raise self.failure
        self.journal.append(operations)
        self._copy(change for operation in operations for change in operation.changes)
        held = self.held()
        changed = {change.path for change in operations[-1].changes if change.data is not None}
        return {path: _content(held[path]).stamp for path in changed if path in held}

    def drop(self, operation_ids: Collection[str]) -> None:
        """Forget operations that the workspace has. The lock is held.

        Raises:
            StorageIO: they stay here; the workspace's journal knows them.
        """
        if self.journal.damage:
            io.write_file(self.folder / f"{DAMAGED}{time.time_ns()}", io.read_file(self.journal.path))
            self.journal.damage.clear()
        self.journal.drop(operation_ids)
        io.sweep(self.folder)
        self._tidy()

    def _copy(self, changes: Iterable[FileChange]) -> None:
        """Lay out the contents as files for people; the journal has them, so a failure is none."""
        with contextlib.suppress(MemfsError, FileChanged, OSError), contextlib.closing(Tree(self.folder)) as copies:
            for change in changes:
                if change.data is not None and change.path.startswith(f"{CONTENT}/"):
                    copies.write(change.path, change.data, durable=False)
                else:
                    copies.remove(change.path, durable=False)

    def _tidy(self) -> None:
        """Remove the copies of what is no longer here."""
        kept = {change.path for operation in self.journal.waiting.values() for change in operation.changes}
        with contextlib.suppress(MemfsError, FileChanged, OSError), contextlib.closing(Tree(self.folder)) as copies:
            for entry in list(copies.scan(CONTENT, hidden=True)):
                if entry.path not in kept:
                    copies.remove(entry.path, durable=False)

    def over(self, tree: Tree) -> FileView:
        """The view of both places."""
        if self._seen is None:
            self._seen = FileView(tree, self)
        return self._seen


class FileView:
    """The workspace's files as readers see them: what the secondary location holds in place of what it displaces."""

    def __init__(self, tree: Tree, secondary: Secondary) -> None:
        self.root = tree.root
        self._tree, self._secondary = tree, secondary
        self._verdicts: dict[str, tuple[ScanEntry | None, PendingWrite, bool]] = {}

    def read(self, path: str, limit: int) -> Content:
        """See ``Tree.read``."""
        held = self._held(path)
        if held is None:
            return self._tree.read(path, limit)
        if held.last.data is None:
            raise FileNotFoundError(path)
        return _content(held)

    def entry(self, path: str) -> ScanEntry | None:
        """See ``Tree.entry``."""
        held = self._held(path)
        if held is None:
            return self._tree.entry(path)
        return held.entry if held.last.data is not None else None

    def proven(self, stamps: Mapping[str, Stamp]) -> set[str]:
        """See ``Tree.proven``."""
        return {path for path in self._tree.proven(stamps) if self._held(path) is None}

    def holding_folders(self) -> AbstractContextManager[None]:
        """See ``Tree.holding_folders``."""
        return self._tree.holding_folders()

    def scan(self, folder: str, hidden: bool = False) -> Iterator[ScanEntry]:
        """See ``Tree.scan``."""
        shown = {path: held for path in self._secondary.held() if (held := self._held(path)) is not None}
        for entry in self._tree.scan(folder, hidden):
            if entry.path not in shown:
                yield entry
        prefix = f"{folder}/" if folder else ""
        for path, held in shown.items():
            if held.last.data is not None and path.startswith(prefix) and (hidden or "/." not in path):
                yield held.entry

    def listings(self, folder: str, hidden: bool = False) -> Iterator[FolderScan]:
        """See ``Tree.listings``."""
        if self._secondary.held():
            yield FolderScan(folder, [], list(self.scan(folder, hidden)))
        else:
            yield from self._tree.listings(folder, hidden)

    def _held(self, path: str) -> PendingWrite | None:
        """What is held of a path, unless a person changed the workspace's own file meanwhile: theirs is kept."""
        held = self._secondary.held().get(path)
        if held is None:
            return None
        try:
            own = self._tree.entry(path)
        except StorageIO:
            return held
        known = self._verdicts.get(path)
        if known is None or known[0] != own or known[1] is not held:
            known = self._verdicts[path] = own, held, self._is_ours(path, held)
        return held if known[2] else None

    def _is_ours(self, path: str, held: PendingWrite) -> bool:
        try:
            return sha256(self._tree.read(path, READ_LIMIT).data) in held.contents
        except FileNotFoundError:
            return "" in held.contents
        except StorageIO:
            return True
        except MemfsError:
            return False


def _facts(operation: Operation, change: FileChange) -> ScanEntry:
    named = startup.sha256(f"{operation.id}\0{change.path}".encode("utf-8", "surrogatepass")).digest()
    moment = min(int(operation.time * 1e9), LAST_NS)
    size = len(change.data or b"")
    return ScanEntry(change.path, size, moment, moment, int.from_bytes(named[:8], "big") >> 1, True)


def _content(held: PendingWrite) -> Content:
    data = held.last.data or b""
    return Content(data, Stamp(*held.entry[1:5], blob_id(data), time.time_ns()))


_DETACHED = "HEAD"


def plan_return(
    parts: Parts, operation: Operation, later: Mapping[str, frozenset[str]]
) -> tuple[Operation, list[FilePlan], list[Problem]]:
    """What bringing one operation home does: what is left of it, the files to write for that, and the problems.

    What a person changed meanwhile stays; ours is set aside.

    Args:
        later: by path, the contents that operations after this one leave or find.

    Raises:
        StorageIO: a file cannot be read, or what was displaced cannot be kept.
    """
    kept: list[FileChange] = []
    plans: list[FilePlan] = []
    problems: list[Problem] = []
    head, elsewhere = parts.repository.head(), False
    # what belongs to a branch that is not checked out goes into history, and the files stay
    if operation.branch and not head.damage and (head.ref or _DETACHED) != operation.branch:
        with contextlib.suppress(HistoryError):
            elsewhere = parts.repository.ref_commit(operation.branch) is not None
    for number, change in enumerate(operation.changes):
        if not elsewhere and not _fits(parts, change, later.get(change.path, frozenset()), plans):
            problems.append(set_aside(parts.repository.state, change, f"{operation.id}-{number}"))
        else:
            kept.append(change)
    return replace(operation, changes=tuple(kept)), plans, problems


def _fits(parts: Parts, change: FileChange, later: frozenset[str], plans: list[FilePlan]) -> bool:
    """Whether the file is as the change left or found it, or as a later one found it; plan it where need be."""
    try:
        before = parts.tree.read(change.path, READ_LIMIT).data
    except FileNotFoundError:
        before = None
    except (PathEscape, NotRegularFile, ItemTooLarge):
        return False
    found = "" if before is None else sha256(before)
    if found == change.new:
        return True
    if found == change.old or (change.old == "" and not before):
        plans.append(FilePlan(path=change.path, before=before, after=change.data, item=None))
        return True
    return found in later


def later_contents(operations: Sequence[Operation]) -> list[Mapping[str, frozenset[str]]]:
    """For each operation: the contents that those after it leave or find, by path."""
    found: list[Mapping[str, frozenset[str]]] = []
    known: dict[str, frozenset[str]] = {}
    for operation in reversed(operations):
        found.append({change.path: known.get(change.path, frozenset()) for change in operation.changes})
        for change in operation.changes:
            known[change.path] = known.get(change.path, frozenset()) | {change.old, change.new}
    return found[::-1]
