"""Archive iterations and delete archives that are due by ``configuration/retention_policy.json``.

Also measures how iterations grow. A dry run changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memfs.admin.cleanup import Act, Cleaner, CleanupStep
from memfs.config import RetentionPolicy, read_retention_policy
from memfs.dataclass import dataclass
from memfs.errors import ArchiveInvalid, IterationInvalid, MemfsError
from memfs.fs import io
from memfs.model.state_paths import ITERATIONS, iteration_folder, iteration_of, system_state_path
from memfs.state.archives import Archiver, ArchiveResult, Archives, iterations_text
from memfs.state.metrics import slope
from memfs.store.parts import Parts

if TYPE_CHECKING:
    from memfs.state.reader import StateReader

_EVERY = 3600.0
_GATHERING = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is due: closed iterations with the moment of their closing, and archives to be deleted, by name."""

    iterations: Mapping[int, datetime]
    archives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionResult:
    """What obeying the retention policy did, or would do.

    Attributes:
        archived: what went into archives.
        deleted: the archives that were deleted.
    """

    archived: ArchiveResult
    deleted: tuple[str, ...] = ()


class Retention:
    """Obeys the retention policy of one workspace."""

    def __init__(self, parts: Parts, reader: StateReader, archives: Archives, archiver: Archiver) -> None:
        self._parts = parts
        self._reader = reader
        self._archives = archives
        self._archiver = archiver
        self._looked = -_EVERY

    def policy(self) -> RetentionPolicy:
        """What the file says now; the defaults where there is none.

        Raises:
            ContentError: it is invalid: nothing is due until it is right.
        """
        return read_retention_policy(self._parts.seen, self._parts.codec)

    def due(self, now: datetime | None = None, *, active_days: float | None = None) -> Due:
        """What is due at a moment. An iteration that was unpacked is due again when it was back for as long.

        Args:
            now: None for the present.
            active_days: in place of the policy's.

        Raises:
            ContentError: the policy is invalid.
        """
        policy = self.policy()
        moment = now or self._parts.clock()
        before = moment - timedelta(days=policy.active_days if active_days is None else active_days)
        iterations = {
            number: closed for number, closed in self.closed().items() if self._since(number, closed) <= before
        }
        return Due(iterations=iterations, archives=self._old_archives(policy, moment))

    def run(
        self,
        dry_run: bool = False,
        *,
        active_days: float | None = None,
        iterations: Iterable[int] = (),
    ) -> RetentionResult:
        """Archive what is due, and delete the archives that the policy no longer wants.

        Args:
            dry_run: only say what would be done.
            active_days: in place of the policy's.
            iterations: archive exactly these instead, due or not, and delete nothing.

        Raises:
            IterationInvalid: one of ``iterations`` is not there, or open.
            ContentError, LockTimeout, StorageIO, HistoryError: what was not archived is where it was.
        """
        chosen = tuple(iterations)
        due = Due(iterations=self._named(chosen)) if chosen else self.due(active_days=active_days)
        if dry_run:
            return RetentionResult(archived=self._archiver.plan(due.iterations), deleted=due.archives)
        archived = ArchiveResult()
        if due.iterations:
            archived = self._archiver.archive(due.iterations, self.policy().level)
        for name in due.archives:
            self._archiver.delete(name, f"older than {self.policy().delete_days} days, as the retention policy says")
        return RetentionResult(archived=archived, deleted=due.archives)

    def keep_up(self) -> RetentionResult | None:
        """Do what is due, where the policy wants that by itself; looked at once an hour. None where nothing was.

        What is due within a day goes into one archive: one for each iteration would soon be thousands.
        """
        self._parts.require_open()
        now = self._parts.clock().timestamp()
        if 0 <= now - self._looked < _EVERY or not (self._parts.tree.root / ITERATIONS).is_dir():
            return None
        self._looked = now
        if self._archiver.working_here or not self.policy().automatic:
            return None
        due = self.due()
        return self.run() if due.archives or (due.iterations and not self._archived_lately()) else None

    def steps(self) -> Sequence[Act]:
        """What the cleanup does beside its own steps: archive what is due, where the policy wants that by itself."""
        self._parts.require_open()
        return (self._archive_due,)

    def _archive_due(self, _: Cleaner, do: bool) -> CleanupStep:
        """Archive iterations that are due."""
        if do:
            done = self.run().archived
            what = f"archived {iterations_text(done.iterations)} as {', '.join(done.archives) or 'before'}"
            return CleanupStep(what=what, bytes=max(0, done.bytes - done.packed), error=done.reason)
        if self._archiver.working_here or not self.policy().automatic:
            return CleanupStep(what="archive iterations that are due", bytes=0)
        planned = self._archiver.plan(self.due().iterations)
        what = f"archive {iterations_text(planned.iterations) or 'iterations'} closed for long enough"
        return CleanupStep(what=what, bytes=planned.bytes)

    def closed(self) -> dict[int, datetime]:
        """The closed iterations that have files in the tree, each with the moment of its closing."""
        self._parts.require_open()
        there = set(self._in_tree())
        rows = [row for row in self._reader.iterations() if row.number in there] if there else []
        closed = {row.number: row.closed or row.opened for row in rows if row.status == "closed"}
        found = {number: moment for number, moment in closed.items() if moment is not None}
        return {number: moment for number, moment in found.items() if self._is_closed(number)}

    def _is_closed(self, number: int) -> bool:
        """Whether its header says so now: the index may not have seen an edit in place yet."""
        try:
            return self._reader.files.read(system_state_path(number)).values.get("status") == "closed"
        except FileNotFoundError:
            return True  # the header is in an archive already
        except MemfsError:
            return False

    # -- internal -------------------------------------------------------------------------------------------------
    def _archived_lately(self) -> bool:
        names = list(self._archives.stamp())
        with suppress(ArchiveInvalid, FileNotFoundError):
            return (
                bool(names)
                and timedelta() <= self._parts.clock() - self._archives.index(names[-1]).created < _GATHERING
            )
        return False

    def _in_tree(self) -> list[int]:
        names = io.listed(self._parts.tree.root / ITERATIONS)
        numbers = [iteration_of(f"{ITERATIONS}/{name}/x") for name in names]
        return sorted(number for number in numbers if number is not None)

    def _since(self, number: int, closed: datetime) -> datetime:
        """Since when an iteration rests: its closing, or when it was last unpacked."""
        names = self._archives.iterations().get(number, ())
        unpacked = [self._archives.index(name).unpacked.get(number, closed) for name in names]
        return max([closed, *unpacked])

    def _old_archives(self, policy: RetentionPolicy, now: datetime) -> tuple[str, ...]:
        if not policy.delete_days:
            return ()
        before = now - timedelta(days=policy.delete_days)
        found = []
        for name in self._archives.stamp():
            with suppress(ArchiveInvalid, FileNotFoundError):
                if self._archives.index(name).created <= before:
                    found.append(name)
        return tuple(found)

    def _named(self, numbers: Iterable[int]) -> dict[int, datetime]:
        closed, there = self.closed(), set(self._in_tree())
        for number in numbers:
            if number not in there:
                raise IterationInvalid(
                    f"iteration {number} has no files in the tree", hint="memfs state iteration list"
                )
            if number not in closed:
                raise IterationInvalid(
                    f"iteration {number} is open: only closed ones are archived",
                    path=iteration_folder(number),
                    hint=f"memfs state iteration close {number}",
                )
        return {number: closed[number] for number in numbers}


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationUse:
    """What one iteration weighs.

    Attributes:
        number: its number.
        documents: how many documents it has.
        bytes: what they weigh, as they are or were in the tree.
        archived: how many bytes of that are in an archive.
    """

    number: int
    documents: int
    bytes: int
    archived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How iterations grow.

    Attributes:
        iterations: by number.
        mean: bytes of an iteration, on average: by so much everything grows with each.
        slope: by how many bytes each iteration is larger than the one before, by the line that fits best; near 0 where
            growth is linear.
    """

    iterations: tuple[IterationUse, ...]
    mean: float
    slope: float


def growth_of(parts: Parts, archives: Archives) -> Growth:
    """Weigh every iteration."""
    live: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for entry in parts.seen.scan(ITERATIONS):
        number = iteration_of(entry.path)
        if number is not None and entry.regular:
            live[number][entry.path] = entry.size
    rows = []
    for number in sorted({*live, *archives.iterations()}):
        sizes = live[number]
        packed = [one.bytes for path, (_, one) in archives.of_iteration(number).items() if path not in sizes]
        documents, size = len(sizes) + len(packed), sum(sizes.values()) + sum(packed)
        rows.append(IterationUse(number=number, documents=documents, bytes=size, archived=sum(packed)))
    points = [(float(row.number), float(row.bytes)) for row in rows]
    mean = sum(row.bytes for row in rows) / len(rows) if rows else 0.0
    return Growth(iterations=tuple(rows), mean=mean, slope=slope(points))
