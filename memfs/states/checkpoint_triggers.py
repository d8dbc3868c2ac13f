"""Checkpoint triggers: when a checkpoint is due by itself, and whether periodic updates come as they should.

Owns ``checkpoints`` and ``update_interval_seconds`` of ``system_config``, and the count of outputs since the last
checkpoint, which all processes share. Making a checkpoint is not its business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memfs.errors import MemfsError
from memfs.files.scan import Entry
from memfs.files.tally import Tally
from memfs.model.statepaths import document_kind, iteration_of, system_state_path
from memfs.states.checkpoint_points import CONFIGURATION, moment_of, newest_update
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

_COUNT = "outputs-since-checkpoint"
_LATE = 1.5
_INTERVAL = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a workspace stands with its checkpoints.

    Attributes:
        last: the newest one's id, "" where there is none.
        age: its age in seconds.
        count: how many there are.
        damaged: how many of them have a manifest that cannot be used, or lack their payload.
        due: ``interval`` or ``tasks`` where one should have been made by now, "" otherwise.
        update_late: seconds since the last state update, where an iteration is open and one should have come; else 0.
    """

    last: str = ""
    age: float | None = None
    count: int = 0
    damaged: int = 0
    due: str = ""
    update_late: float = 0.0


class Triggers:
    """The triggers of one workspace."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tally = Tally(parts.repository.state / _COUNT)
        self._seen: Entry | None = None
        self._settings: Mapping[str, Any] = {}

    # -- settings -------------------------------------------------------------------------------------------------
    def settings(self) -> Mapping[str, Any]:
        """``system_config`` as it is now; while it is invalid the last good one counts."""
        try:
            entry = self._parts.seen.entry(CONFIGURATION)
            if entry != self._seen:
                found = self._read() if entry is not None else {}
                self._seen, self._settings = entry, found
        except (MemfsError, FileNotFoundError):
            return self._settings
        return self._settings

    def _read(self) -> Mapping[str, Any]:
        data = self._parts.seen.read(CONFIGURATION, READ_LIMIT).data
        return self._parts.codec.read_document(data, CONFIGURATION, "system_config")

    @property
    def minutes(self) -> float:
        """After how many minutes one is due, 0 for never."""
        return float(self.settings().get("checkpoints", {}).get("every_minutes", 0))

    @property
    def tasks(self) -> int:
        """After how many outputs one is due, 0 for never."""
        return int(self.settings().get("checkpoints", {}).get("every_tasks", 0))

    # -- counting -------------------------------------------------------------------------------------------------
    def count_output(self) -> None:
        """Note one more output. A count that cannot be kept costs a later checkpoint, never an output."""
        if self.tasks:
            self._tally.add()

    def outputs(self) -> int:
        """How many there were since the last checkpoint."""
        return self._tally.count()

    def forget_outputs(self, number: int) -> None:
        """Take those off that the newest checkpoint has."""
        self._tally.take_off(number)

    # -- what is due ----------------------------------------------------------------------------------------------
    def due(self, last: datetime | None) -> str:
        """Why a checkpoint is due, "" where none is.

        Args:
            last: when the newest was made.
        """
        if self.tasks and self.outputs() >= self.tasks:
            return "tasks"
        if self.minutes and (last is None or self._parts.clock() - last >= timedelta(minutes=self.minutes)):
            return "interval"
        return ""

    def update_late(self) -> float:
        """Seconds since the last state update of the newest iteration, 0 where it is closed or none is missed."""
        entries = [entry.path for entry in self._parts.seen.scan(f"{CONTENT}/iterations") if entry.regular]
        numbers = [number for path in entries if (number := iteration_of(path)) is not None]
        if not numbers or not self._is_open(max(numbers)):
            return 0.0
        newest = newest_update(path for path in entries if document_kind(path) == "state_update")
        moment = moment_of(newest)
        if moment is None:
            return 0.0
        age = (self._parts.clock() - moment).total_seconds()
        interval = float(self.settings().get("update_interval_seconds", _INTERVAL))
        return age if age > _LATE * interval else 0.0

    def _is_open(self, number: int) -> bool:
        path = system_state_path(number)
        try:
            data = self._parts.seen.read(path, READ_LIMIT).data
            return bool(self._parts.codec.read_document(data, path, "system_state").get("status") != "closed")
        except (FileNotFoundError, MemfsError):
            return False
