"""Destination: where a write lands.

Owns the choice between the workspace and its secondary location, and the locks of both. How a write is carried out in
the workspace is ``writing``'s business, how what lies elsewhere comes home ``homecoming``'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from memfs.errors import CorruptRecord, FormatUnsupported, StorageFull, StorageIO, StorageUnavailable, WritePending
from memfs.files.operation import Operation
from memfs.model import Stamp
from memfs.store.away import Away
from memfs.store.fallback import Secondary
from memfs.store.health import Health, spills
from memfs.store.parts import Parts
from memfs.store.plan import Planned

Write = Callable[[Sequence[Operation], Sequence[Planned]], dict[str, Stamp]]
"""Carries out operations in the workspace; all but the last record what is in place already."""


class Destination:
    """Decides for one workspace where its writes go."""

    def __init__(self, parts: Parts, health: Health, write: Write, away: Away) -> None:
        self._parts = parts
        self._health = health
        self._write = write
        self._away = away

    @contextlib.contextmanager
    def holding(self, purpose: str, timeout: float = 30.0) -> Iterator[StorageIO | None]:
        """Hold the locks of both places, as far as both can be had; yield why the workspace's own could not.

        With both, a process that cannot take the one still meets the others at the other.

        Raises:
            LockTimeout: naming the holder.
            StorageIO: there is no secondary location, and the lock could not be had.
        """
        parts = self._parts
        with ExitStack() as locks:
            refused = None
            try:
                locks.enter_context(parts.lock.hold(purpose, timeout))
            except StorageIO as error:
                if parts.secondary is None or not spills(error):
                    raise
                self._health.failed(error)
                refused = error
            if parts.secondary is not None:
                self._join(parts.secondary, locks, purpose, timeout)
            yield refused

    def _join(self, secondary: Secondary, locks: ExitStack, purpose: str, timeout: float) -> None:
        known = secondary.used or str(secondary.folder) in self._away.known()
        secondary.used = known
        secondary.join(locks, purpose, timeout)
        if secondary.failure is None and not known:
            self._away.note(secondary.folder, len(secondary.operations()))
            secondary.used = True

    # -- where a write goes ---------------------------------------------------------------------------------------
    def land(
        self, operations: Sequence[Operation], plans: Sequence[Planned], refused: StorageIO | None
    ) -> dict[str, Stamp]:
        """Carry out a write in the workspace, or else keep it in the secondary location. The locks are held.

        What is held there already is changed there: the versions of one file stay in order.

        Raises:
            StorageIO: nothing was written; as ``StorageUnavailable``, the secondary location refused, too; as
                ``WritePending``, it may be carried out all the same.
        """
        secondary = self._parts.secondary
        held = secondary is not None and any(plan.path in secondary.held() for plan in plans)
        if not held and refused is None:
            try:
                return self._at_home(operations, plans)
            except StorageIO as error:
                self._health.failed(error)
                refused = self._health.explained(error, plans)
        if secondary is None or (refused is not None and not spills(refused)):
            assert refused is not None  # nothing is held where there is no secondary location
            raise refused
        return self._elsewhere(secondary, operations, refused)

    def _at_home(self, operations: Sequence[Operation], plans: Sequence[Planned]) -> dict[str, Stamp]:
        removal = all(plan.after is None for plan in plans)
        if not removal:
            self._health.require()
        try:
            stamps = self._write(operations, plans)
        except StorageFull:
            if not removal or not self._health.release_ballast():
                raise
            stamps = self._write(operations, plans)
        with contextlib.suppress(StorageIO):  # it is written: what it weighs is measured again at times
            self._parts.gate.wrote(plans)
        self._health.keep_ballast()
        return stamps

    def _elsewhere(
        self, secondary: Secondary, operations: Sequence[Operation], refused: StorageIO | None
    ) -> dict[str, Stamp]:
        try:
            stamps = secondary.take(operations)
        except (StorageIO, CorruptRecord, FormatUnsupported) as error:
            if isinstance(refused, WritePending):
                raise refused from error
            first = refused.message if refused else "earlier writes of this file wait in the secondary location"
            raise StorageUnavailable(
                f"neither place took the write: {self._parts.tree.root}: {first}; {secondary.place}: {error.message}",
                hint="make room in one of them, or make it writable, and try again; nothing was acknowledged",
            ) from error
        self._away.note(secondary.folder, len(secondary.journal.waiting))
        return stamps
