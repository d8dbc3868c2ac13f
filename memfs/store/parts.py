"""What the modules of a store share: tree, journal, locks, history, codec, index, quota guard and policy.

The results of writes and scans are defined here as well, and what a reader has to know about writers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from memfs.catalog.facts import ItemCatalog
from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import CorruptRecord, FormatUnsupported, MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.journal import Journal
from memfs.fs.lock import FileLock
from memfs.fs.tree import Content, Tree, View
from memfs.git.repository import Repository
from memfs.model import KindTable, MemoryItem, Problem
from memfs.search.search_index import SearchIndex
from memfs.startup import TYPE_CHECKING, Any, Protocol, json

if TYPE_CHECKING:
    from memfs.errors import QuotaExceeded
    from memfs.format.codec import Codec
    from memfs.store.failover import Secondary
    from memfs.store.plan import FilePlan


class QuotaGuard:
    """Asks before a write whether there is room. This one lets everything pass: for a store without quotas."""

    def prepare(self) -> None:
        """Make sure that ``check_room`` can answer. No lock is held."""

    def check_room(self, plans: Sequence[FilePlan], critical: bool) -> None:
        """Let a write pass, or refuse it before anything is written. The store's lock is held.

        Raises:
            QuotaExceeded: the write is not critical, needs room, and its area has none.
        """

    def wrote(self, plans: Sequence[FilePlan]) -> None:
        """Take note of a write. The store's lock is held."""

    def filled(self, path: str, size: int) -> None:
        """Take note of a file that no plan wrote, a payload: by how many bytes it grew. No lock is held."""

    def settle(self) -> None:
        """Raise the occasion if a threshold was crossed. No lock is held."""

    def make_room(self, refused: QuotaExceeded) -> None:
        """Raise the occasion of a refusal, which may make room, and count again. No lock is held."""

    def maintain(self) -> None:
        """Do what is due from time to time: called by a long-lived process, on a thread of its own."""


CONTENT = "ContextMemory"
ALL_LEARNED = "all-learned"
"""The file in a workspace's state that says up to when all was learned that is to be learned, and of how many files."""
RECOVERED_FOLDER = "recovered"
"""The folder in a workspace's state that has what was set aside, and what replaced contents no commit held."""
ITEM_SUFFIXES = (".yaml", ".yml", ".json")
READ_LIMIT = 16 * 1024 * 1024


def content_at(files: View, path: str) -> Content | None:
    """What a file is now; None where it is not there, or cannot be read."""
    try:
        return files.read(path, READ_LIMIT)
    except (FileNotFoundError, MemfsError):
        return None


class StorePolicy(NamedTuple):
    """How this workspace's store behaves, from ``memfs.toml``.

    Attributes:
        commit: ``interval``, ``session``, ``each``, ``batch`` or ``manual``.
        interval: seconds a commit window stays open.
        adopt: ``auto`` or ``leave``: what happens to a person's edits.
        rest: seconds that an edit must have rested before it is committed by itself.
        local: types of items whose files stay on this machine and are in no commit.
    """

    commit: str = "interval"
    interval: float = 1.0
    adopt: str = "auto"
    rest: float = 30.0
    local: frozenset[str] = frozenset()

    @property
    def adopts(self) -> bool:
        """Whether a person's edits are committed without being asked for; nothing is under ``manual``."""
        return self.adopt == "auto" and self.commit != "manual"

    @property
    def when_free(self) -> str:
        """What becomes of waiting changes once git takes commits again."""
        if self.commit in ("session", "manual"):
            return "run 'memfs commit' again when that is over"
        return "when that is over, the next command that writes commits it, or 'memfs commit'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The shared parts of one open workspace's store."""

    tree: Tree
    journal: Journal
    lock: FileLock
    commit_lock: FileLock
    repository: Repository
    codec: Codec
    items: ItemCatalog
    kinds: KindTable
    index: SearchIndex
    policy: StorePolicy
    clock: Callable[[], datetime]
    quota_guard_of: Callable[[], QuotaGuard] = QuotaGuard
    secondary: Secondary | None = None

    @property
    def quota_guard(self) -> QuotaGuard:
        """What is asked before a write."""
        return self.quota_guard_of()

    @property
    def seen(self) -> View:
        """The files as readers see them: the tree's own, and what waits in the secondary location."""
        return self.tree if self.secondary is None else self.secondary.over(self.tree)

    def require_open(self) -> None:
        """Let only calls pass before the workspace is closed.

        Raises:
            WorkspaceClosed: it was closed.
        """
        self.tree.require_open()

    def is_local(self, path: str) -> bool:
        """Whether the file at a path is in no commit, by its type."""
        kind = self.kinds.at(below_content(path)) if self.policy.local else None
        return kind is not None and kind.name in self.policy.local and is_item(path, self.kinds)

    def durability(self, path: str) -> str:
        """Where the newest version of a file is durable: ``file``, or ``fallback`` for the secondary location."""
        return "fallback" if self.secondary is not None and path in self.secondary.held() else "file"


def below_content(path: str) -> str:
    """The path below ``ContextMemory/``, "" when it is elsewhere."""
    return path[len(CONTENT) + 1 :] if path.startswith(CONTENT + "/") else ""


def is_item(path: str, kinds: KindTable) -> bool:
    """Whether a file at this path is an item that recall finds, by its folder and ending."""
    return path.endswith(ITEM_SUFFIXES) and "/." not in path and kinds.at(below_content(path)) is not None


Facts = Mapping[str, Any]
Fire = Callable[[str, Facts], object]
"""Raises an occasion (``memfs.workspace``), by its name, with its facts."""


class FileWatcher(Protocol):
    """Notices changed files in the background (``memfs.watch``)."""

    degraded: str
    hears_at_once: bool
    """Whether it hears of a change before the process that made it goes on."""

    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when it cannot vouch for having seen everything."""

    def give_back(self, paths: Collection[str] | None) -> None:
        """Take back paths that could not be looked at, None: every file."""

    def close(self) -> None:
        """Stop looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """What is not in git yet.

    Attributes:
        count: how many operations.
        reason: why git takes none now, "" when it would.
        paths: the files they change, in order of writing.
        late: whether git takes none now, the window of the policy is over, or others wrote them, who may be gone;
            what a person commits by hand is late only in the secondary location.
    """

    count: int
    reason: str
    paths: tuple[str, ...] = ()
    late: bool = False


class LoadedItem(NamedTuple):
    """An item read for an answer; ``stale`` when its file is invalid and this is the last good version."""

    item: MemoryItem
    stale: bool


@dataclass(frozen=True, slots=True)
class Storage:
    """The state of the places that take writes.

    Attributes:
        reason: why the workspace's disk takes none, "" while it does.
        free: bytes left on it, None where it is unknown.
        secondary: the secondary location, "" where none is configured.
        secondary_reason: why that takes none, "" while it does.
        waiting: writes that are there until the workspace's disk takes them.
    """

    reason: str
    free: int | None
    secondary: str
    secondary_reason: str
    waiting: int

    @property
    def state(self) -> str:
        """``ok``; ``degraded`` while the workspace's disk takes no writes; ``fallback`` while writes are elsewhere."""
        return "fallback" if self.waiting else "degraded" if self.reason else "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushResult:
    """What a flush did.

    Attributes:
        commits: ids of the commits made, oldest first.
        adopted: paths whose hand edits were committed.
        skipped: paths left alone because the person has staged something else for them; what ``memfs commit`` prints
            names here also those that are invalid or hold a secret.
        waiting: operations still in the journal.
        reason: why they wait, "" when nothing does.
        notes: what was noticed, such as bytes that were set aside.
    """

    commits: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    waiting: int = 0
    reason: str = ""
    notes: tuple[Problem, ...] = ()


class PlanOutdated(Exception):
    """A file changed between planning and writing; plan again. Never leaves the store."""

    @property
    def path(self) -> str:
        """The file."""
        return str(self.args[0])


NOTE = "secondary.json"


class Backlog:
    """What journals say that readers must know: what other processes wrote, and what waits in the secondary location.

    It notes how many writes wait there, in the first of two folders that takes it. So a process that cannot look there,
    as that disk is not mounted or no setting names it any more, still knows that something is missing.

    Attributes:
        came: paths that came home and that were not reported yet.
    """

    def __init__(self, parts: Parts) -> None:
        self.came: set[str] = set()
        self._journal, self._secondary = parts.journal, parts.secondary
        self._notes = (parts.repository.state / NOTE, parts.index.folder / NOTE)
        self._own: dict[str, int] = {}
        if self._secondary is not None:
            self._secondary.used = str(self._secondary.folder) in self.known()

    def waiting(self) -> int:
        """How many operations the secondary location has, even if it only has to forget them."""
        if self._secondary is None:
            return 0
        self._secondary.operations()  # reads what others appended
        return len(self._secondary.journal.waiting)

    def failed_back(self) -> bool:
        """Whether nothing is in the secondary location, as far as this process knows."""
        return self._secondary is None or not self._secondary.journal.waiting

    def news(self) -> set[str] | None:
        """Paths other processes wrote since this was last asked; None when some may have been missed."""
        came, self.came = self.came, set()
        try:
            found = self._journal.news()
        except (CorruptRecord, FormatUnsupported, StorageIO):
            return None
        elsewhere = self._secondary.news() if self._secondary else came
        return None if found is None or elsewhere is None else found | came | elsewhere

    def problems(self) -> list[Problem]:
        """What is wrong with the secondary location."""
        rows = []  # made first: to look for them shows whether the location can be read
        for folder, waiting in self.missed().items():
            place = Path(folder).parent
            message = f"writes wait in {place}, which cannot be read: {waiting} are missing from answers"
            hint = f"set storage.secondary to {place}, or trust the workspace again where its own file names it"
            if self._secondary and folder == str(self._secondary.folder):
                hint = "mount that disk again; memfs goes on where it stopped"
            rows.append(Problem(path=folder, code="SecondaryAway", message=message, hint=hint))
        return [*(self._secondary.problems() if self._secondary else ()), *rows]

    def known(self) -> dict[str, int]:
        """How many writes wait in each folder that was ever used."""
        found = dict(self._own)
        for path in filter(os.path.lexists, self._notes):  # mostly none, and each question asks
            for folder, waiting in _read(path).items():
                if folder not in self._own:
                    found[folder] = max(waiting, found.get(folder, 0))
        return found

    def note(self, folder: Path, waiting: int) -> None:
        """Remember how many writes wait there. Its lock is held."""
        stored = {name: number for path in self._notes for name, number in _read(path).items()}
        self._own.pop(str(folder), None)
        if stored.get(str(folder)) == waiting and not os.path.exists(self._notes[-1]):
            return
        data = json.dumps({**self.known(), str(folder): waiting}).encode()
        for number, path in enumerate(self._notes):
            with suppress(MemfsError, OSError):
                io.write_file(path, data)
                for other in self._notes[number + 1 :]:
                    io.unlink(other, missing_ok=True)
                return
        self._own[str(folder)] = waiting

    def missed(self) -> dict[str, int]:
        """How many writes wait in each secondary location that cannot be looked into."""
        known, secondary, reachable = self.known(), self._secondary, ""
        if known and secondary is not None:
            secondary.operations()
            if secondary.unreadable is None and os.path.exists(secondary.journal.path):
                reachable = str(secondary.folder)
        return {folder: waiting for folder, waiting in known.items() if waiting and folder != reachable}


def _read(path: Path) -> dict[str, int]:
    found = io.read_record(path)
    rows = found.items() if isinstance(found, dict) else ()
    return {folder: waiting for folder, waiting in rows if isinstance(waiting, int)}
