"""Values that the store takes and returns, the batch, and the protocol of its watcher."""

from __future__ import annotations

from typing import Protocol

from memfs.config_names import CONFIGURATION, SETTINGS_FILE
from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import Conflict
from memfs.format.codec import PRUNED, SCHEMAS
from memfs.model import MemoryItem, Problem
from memfs.model.ids import stem_of
from memfs.model.state_paths import document_kind
from memfs.store.parts import CONTENT
from memfs.store.plan import FilePlan, Planner


class FileWatcher(Protocol):
    """Notices changed files in the background (``memfs.watch``)."""

    degraded: str

    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when it cannot vouch for having seen everything."""

    def give_back(self, paths: list[str]) -> None:
        """Take back paths that could not be looked at."""

    def close(self) -> None:
        """Stop looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """What is not in git yet.

    Attributes:
        count: how many operations.
        reason: why git takes none now, "" when it would.
        paths: the files they change, in order of writing.
        late: whether git takes none now, the window of the policy is over, or others wrote them, who may be gone.
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
        free: bytes left on it, None where the system does not tell.
        secondary: the secondary location, "" where none is configured.
        secondary_reason: why that takes none, "" while it does.
        waiting: writes that lie there until the workspace's disk takes them.
    """

    reason: str
    free: int | None
    secondary: str
    secondary_reason: str
    waiting: int

    @property
    def state(self) -> str:
        """``ok``; ``degraded`` while the workspace's disk takes no writes; ``fallback`` while writes lie elsewhere."""
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


_OWN_NAMES = (SETTINGS_FILE, f"{CONTENT}/.gitattributes", f"{CONTENT}/.gitignore")
_OWN_FOLDERS = (f"{CONFIGURATION}/", f"{CONTENT}/context/", f"{PRUNED}/")


def is_own_file(path: str) -> bool:
    """Whether memfs keeps this file in git: settings, context, pruned items, state documents."""
    named = path in SCHEMAS or path in _OWN_NAMES or path.startswith(_OWN_FOLDERS)
    return named or document_kind(path) != ""


class Batch:
    """What ``Store.batch`` hands to its block."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._paths: set[str] = set()
        self._ids: set[str] = set()
        self.plans: list[FilePlan] = []

    def put(self, item: MemoryItem, expected: str | None = None, *, allow_secret: str = "") -> MemoryItem:
        """Plan to store an item; see ``Store.put``. It is stored when the block ends."""
        plans = self._planner.put(item, expected, allow_secret)
        self._take(plans)
        stored = plans[0].item
        return item if stored is None else stored

    def delete(self, item_id: str, expected: str | None = None) -> MemoryItem | None:
        """Plan to remove an item; see ``Store.delete``."""
        plan = self._planner.delete(item_id, expected)
        self._take([plan])
        return plan.item

    def _take(self, plans: list[FilePlan]) -> None:
        paths = {plan.path.casefold() for plan in plans}
        ids = {stem_of(plan.path).casefold() for plan in plans}
        if paths & self._paths or ids & self._ids:
            raise Conflict(
                "this batch writes the same item twice", path=plans[0].path, hint="merge the two writes into one"
            )
        self._paths |= paths
        self._ids |= ids
        self.plans.extend(plans)
