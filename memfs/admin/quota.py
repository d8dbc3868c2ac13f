"""Limit how much room each area may take, by ``configuration/system_config.json``.

At a full quota an occasion is raised whose reactions make room; only then is a write refused, before a byte of it is
on the disk. Critical writes and removals always pass.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from memfs.config import LEVELS, Limits, read_system_config
from memfs.config_names import SETTINGS_FILE, SYSTEM_CONFIG
from memfs.dataclass import dataclass, field, replace
from memfs.errors import HistoryError, MemfsError, Problem, QuotaExceeded, StorageIO
from memfs.fs import io
from memfs.startup import TYPE_CHECKING, Any, json
from memfs.store.parts import CONTENT, Fire, Parts, QuotaGuard, below_content

if TYPE_CHECKING:
    from memfs.store import Store
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
    HISTORY: "what git keeps of the workspace's own paths",
    INDEX: "the search index in the user's cache",
    STATE: "journal, recovered contents and locks",
}
DERIVED = frozenset({INDEX, STATE})
"""What is rebuilt from the rest, or waits to become part of it: it is weighed, and no memory."""

_FOLDERS = {
    "memories": "items",
    "conventions": "items",
    "iterations": "iterations",
    "checkpoints": "checkpoints",
    "threads": "threads",
    "archive": "archive",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaUsage:
    """Bytes by area, and bytes free on the workspace's file system (None where it is unknown)."""

    areas: Mapping[str, int]
    free: int | None

    @property
    def total(self) -> int:
        """Everything memfs keeps here but what is derived; backups are elsewhere and are bounded by their number."""
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
    from memfs.store.recovery import BALLAST, BALLAST_BYTES  # most commands weigh nothing

    # The ballast is there to be given up when the disk is full: it is room, and removing it would make none.
    state = parts.repository.state
    sizes[STATE] = io.weigh(state) - (BALLAST_BYTES if os.path.lexists(state / BALLAST) else 0)
    return dict(sizes)


def weigh_history(parts: Parts) -> int:
    """What git keeps of the workspace's own paths, as it is on disk; 0 where git cannot say.

    In a repository that holds more than the memory this counts the memory alone.
    """
    repository = parts.repository
    head = repository.head().commit
    own = [os.fsdecode(repository.full(path)) for path in (CONTENT, SETTINGS_FILE)]
    try:
        return int(repository.git.run("rev-list", "--objects", "--disk-usage", head, "--", *own)) if head else 0
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
    return replace(numbers(store, parts), repository_bytes=weight, index_bytes=io.weigh(parts.index.folder))


def numbers(store: Store, parts: Parts) -> MemoryTally:
    """Count the items by type and layer as the files are now, most first, and weigh their files."""
    store.follow()
    types: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for path, stamp in parts.index.stamps().items():
        kind = parts.kinds.at(below_content(path))
        if kind is not None:
            types[kind.name] += 1
            layers[kind.layer.value] += 1
            sizes[kind.name] += stamp.size
    return MemoryTally(
        items=types.total(),
        types=dict(types.most_common()),
        layers=dict(layers.most_common()),
        type_bytes=dict(sizes),
        content_bytes=sizes.total(),
    )


FILE = "ledger"
_LARGEST = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is known of the bytes in use.

    Attributes:
        at: when everything was measured; seconds since 1970.
        sizes: bytes by area, then, with what was written and removed since.
        levels: the highest threshold crossed, by quota, until use falls well below it.
        refused: when each quota was last reported to have no room for a write, and which share was in use then.
    """

    at: float = 0.0
    sizes: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def used(self, area: str) -> int:
        """The bytes of an area, or of all that count, as far as is known."""
        counted = [area] if area != TOTAL else [one for one in self.sizes if one not in DERIVED]
        return sum(max(0, self.sizes.get(one, 0)) for one in counted)


class Ledger:
    """The account on disk. Reading needs no lock; ``write`` is called under the store's lock.

    Attributes:
        known: the account as this process knew it last; None where nothing was measured yet.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / FILE
        self.known: Account | None = None
        self._unwritten = False

    def read(self) -> Account | None:
        """The account as all processes know it, or where that cannot be read as this one does."""
        with suppress(ValueError, TypeError, AttributeError, OverflowError, KeyError):
            if not self._unwritten:
                values = io.read_record(self._path, _LARGEST)  # anyone may have written it: unknown names are left out
                sizes, levels = values["sizes"].items(), values["levels"].items()
                self.known = Account(
                    at=float(values["at"]),
                    sizes={area: int(size) for area, size in sizes if area in AREAS},
                    levels={area: level for area, level in levels if area in (*AREAS, TOTAL) and level in LEVELS},
                    refused={area: (float(at), float(share)) for area, (at, share) in values["refused"].items()},
                )
        return self.known

    def write(self, account: Account) -> None:
        """Set the account. Where the disk refuses, this process goes on with its own until it can be written."""
        self.known, self._unwritten = account, True
        with suppress(MemfsError, FileNotFoundError):
            values = {name: getattr(account, name) for name in Account.__slots__}
            io.write_file(self._path, json.dumps(values).encode("ascii"), durable=False)
            self._unwritten = False


_FRESH = 2.0  # seconds without a second measurement
_STALE = 600.0  # hand edits, checkouts and commits change sizes unseen
_MARGIN = 0.05  # use must fall so far below a threshold before crossing it counts again

_REMEDY = "these quotas do not count until this is right; 'memfs check' names every mistake in the file"

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaStatus:
    """The state of one quota."""

    area: str
    used: int
    limit: int
    level: str

    @property
    def share(self) -> float:
        """The part of the quota that is used."""
        return self.used / self.limit

    def facts(self) -> dict[str, Any]:
        """As an occasion reports it."""
        return {
            "area": self.area, "level": self.level, "used": self.used, "limit": self.limit,
            "share": round(self.share, 4),
        }  # fmt: skip


class Quota(QuotaGuard):
    """The quotas of one workspace, which every write passes."""

    def __init__(self, parts: Parts, fire: Fire, chores: Sequence[Callable[[], object]] = ()) -> None:
        """Keep account for these parts.

        ``written`` says whether anything was written through this guard, ``problem`` why the quotas in the file do not
        count.

        Args:
            fire: raises an occasion (``memfs.workspace.Behaviours.fire``).
            chores: what is due from time to time; there may be more of them later.
        """
        self._parts, self._fire = parts, fire
        self._ledger = Ledger(parts.repository.state)
        self.written = False
        self._chores = chores
        self._seen: object = None
        self._limits = Limits()
        self.problem: Problem | None = None

    # -- QuotaGuard ---------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Read limits that changed; measure where nothing is known. What is known ages until ``maintain``."""
        if self.limits().bytes and (self._ledger.known or self._ledger.read()) is None:
            with suppress(MemfsError):  # an account that cannot be made refuses nothing
                self.measure()

    def check_room(self, plans: Sequence[FilePlan], critical: bool) -> None:
        """Refuse what a quota has no room for; see ``QuotaGuard.check_room``."""
        limits = self._limits.bytes
        growth = _content(plans)
        if critical or not limits or sum(growth.values()) <= 0:
            return
        account = self._ledger.read() or Account()
        grown = {area: account.used(area) + size for area, size in growth.items() if size > 0}
        grown[TOTAL] = account.used(TOTAL) + sum(growth.values())
        for area, limit in limits.items():
            if grown.get(area, 0) > limit:
                what = "everything memfs keeps here" if area == TOTAL else area
                raise QuotaExceeded(
                    f"{what} would take {grown[area]:,} bytes, its quota is {limit:,}",
                    path=SYSTEM_CONFIG,
                    field=f"quotas.{area}_bytes",
                    hint="raise the quota, forget what is not needed, or run 'memfs admin gc';"
                    " removals and critical writes pass",
                )

    def wrote(self, plans: Sequence[FilePlan]) -> None:
        """Add a write to the account."""
        self.written = True
        if self._limits.bytes:
            self._add(_content(plans))

    def filled(self, path: str, size: int) -> None:
        """Add a file that no plan wrote; see ``QuotaGuard.filled``."""
        if self.limits().bytes:
            with suppress(MemfsError), self._parts.lock.hold("account"):
                self._add({area_of(path): size})

    def _add(self, growth: Sizes) -> None:
        account = self._ledger.read()
        if account is not None:
            sizes = {area: account.sizes.get(area, 0) + growth.get(area, 0) for area in {*account.sizes, *growth}}
            self._ledger.write(replace(account, sizes=sizes))

    def settle(self) -> None:
        """Raise one occasion for each quota that crossed a threshold since the last time, whichever process saw it."""
        account = self._ledger.known if self._limits.bytes else None
        if account is None:
            return
        with suppress(MemfsError):  # the write is done: what cannot be reported now is reported after the next one
            if any(self._moves(account, status) for status in self._statuses(account)):
                account = self._counted(account)
            for status in self._statuses(account):
                if self._moves(account, status):
                    self._note(status.area)

    def make_room(self, refused: QuotaExceeded) -> None:
        """Raise the occasion that a quota is full; its reactions may make room."""
        area = (refused.field or "").removeprefix("quotas.").removesuffix("_bytes")
        with suppress(MemfsError):
            self._counted(self._ledger.read())
            self._note(area, refused=True)

    def maintain(self) -> None:
        """Do what is due from time to time; a long-lived process calls this now and then, in the background."""
        if self.limits().bytes and self._is_stale(self._ledger.read()):
            with suppress(MemfsError):  # the next time does it
                self.measure()
            self.settle()
        for chore in self._chores:
            chore()

    def _is_stale(self, account: Account | None) -> bool:
        return account is None or not 0 <= self._now() - account.at <= _STALE

    # -- for those who look ---------------------------------------------------------------------------------------
    def limits(self) -> Limits:
        """The quotas as the file has them now. One that is invalid changes nothing: the last good ones count."""
        self._parts.require_open()
        try:
            entry = self._parts.tree.entry(SYSTEM_CONFIG)
            if entry != self._seen:
                self._limits = read_system_config(self._parts.tree, self._parts.codec).quotas
                self._seen, self.problem = entry, None
        except MemfsError as error:
            self.problem = replace(Problem.of(error, SYSTEM_CONFIG), severity="warning", hint=_REMEDY)
        return self._limits

    def statuses(self) -> list[QuotaStatus]:
        """The state of each quota, measured now where that was not done for long."""
        self._parts.require_open()
        if self.limits().bytes and self._is_stale(self._ledger.read()):
            with suppress(StorageIO):  # what was known last is better than no answer
                self.measure()
        return self._statuses(self._ledger.known or Account()) if self._limits.bytes else []

    def measure(self) -> AreaUsage:
        """Weigh everything and put it into the account."""
        from memfs.store.recovery import free_bytes

        derived = {HISTORY: weigh_history(self._parts), INDEX: io.weigh(self._parts.index.folder)}
        # Under the lock, where nothing is written: what is written during a scan would count twice, or not at all.
        with self._parts.lock.hold("account"):
            base = {**weigh_files(self._parts), **derived}
            self._ledger.write(replace(self._ledger.read() or Account(), at=self._now(), sizes=base))
        return AreaUsage(areas=base, free=free_bytes(self._parts.tree.root))

    # -- internal -------------------------------------------------------------------------------------------------
    def _now(self) -> float:
        return self._parts.clock().timestamp()

    def _counted(self, account: Account | None) -> Account:
        """An account that rests on a measurement of this moment, or nearly so."""
        if account is None or not 0 <= self._now() - account.at < _FRESH:
            self.measure()
            account = self._ledger.read()
        return account or Account()

    def _statuses(self, account: Account) -> list[QuotaStatus]:
        found = []
        for area, limit in self._limits.bytes.items():
            used = account.used(area)
            found.append(QuotaStatus(area=area, used=used, limit=limit, level=self._limits.level(used / limit)))
        return found

    def _level(self, account: Account, status: QuotaStatus) -> str:
        """The level that a quota has reached, or has not fallen well below yet."""
        known = account.levels.get(status.area, "")
        if LEVELS.index(status.level) > LEVELS.index(known):
            return status.level
        refused_at, share = account.refused.get(status.area, (-_STALE, 0.0))
        if 0 <= self._now() - refused_at < _STALE and status.share >= share - _MARGIN:
            return known  # a large write may be refused far below the threshold, as often as it is tried
        falls = bool(known) and status.share < self._limits.at(known) - _MARGIN
        return self._limits.level(status.share + _MARGIN) if falls else known

    def _moves(self, account: Account, status: QuotaStatus) -> bool:
        return self._level(account, status) != account.levels.get(status.area, "")

    def _note(self, area: str, *, refused: bool = False) -> None:
        """Remember the level a quota has reached, full where it refuses a write, and raise the occasion if no process
        did yet.
        """
        with self._parts.lock.hold("account"):
            account = self._ledger.read() or Account()
            # by the figures of now: others wrote since the level was looked at
            status = next((one for one in self._statuses(account) if one.area == area), None)
            if status is None:  # the quota was taken out of the file a moment ago
                return
            status = replace(status, level="full") if refused else status
            known, level = account.levels.get(area, ""), self._level(account, status)
            if level != known:
                since = {area: (self._now(), status.share)} if level == "full" else {}
                levels = {**account.levels, area: level}
                self._ledger.write(replace(account, levels=levels, refused={**account.refused, **since}))
        if LEVELS.index(level) > LEVELS.index(known):
            self._fire("storage_threshold", status.facts())
            self.measure()


def sentence(facts: Mapping[str, Any]) -> str:
    """What is reported of a quota."""
    what = "everything memfs keeps here" if facts["area"] == TOTAL else facts["area"]
    refused = facts["level"] == "full" and facts["used"] < facts["limit"]
    level = f" ({'no room left for a write' if refused else facts['level']})" if facts["level"] else ""
    percent = facts["used"] * 100 // facts["limit"]  # rounded down: 100 % is full
    return f"{what}: {percent}% of the quota, {facts['used']:,} of {facts['limit']:,} bytes{level}"


def _content(plans: Sequence[FilePlan]) -> dict[str, int]:
    """By how much each area's files grow."""
    sizes: dict[str, int] = {}
    for plan in plans:
        area = area_of(plan.path)
        sizes[area] = sizes.get(area, 0) + len(plan.after or b"") - len(plan.before or b"")
    return sizes
