"""The recording parts of one workspace with a clock that the test sets, and with the occasions they raised."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from memfs import Workspace
from memfs.config_names import SYSTEM_CONFIG
from memfs.model.state_documents import StateUpdate
from memfs.state.record import Continuations, Iterations, StateRecorder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Rig:
    """The parts under test.

    Attributes:
        now: what the clock says.
        fired: the occasions that were raised, with their facts.
        checkpoints: the updates for which a checkpoint was asked for.
    """

    workspace: Workspace
    now: datetime = NOON
    fired: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    checkpoints: list[StateUpdate] = field(default_factory=list)

    @cached_property
    def iterations(self) -> Iterations:
        """Starts and closes."""
        return Iterations(self.workspace.states.reading, self._fire, lambda: self.now)

    @cached_property
    def continuations(self) -> Continuations:
        """Keeps states under tokens."""
        return Continuations(self.iterations)

    @cached_property
    def recorder(self) -> StateRecorder:
        """Takes what agents hand over."""
        return StateRecorder(self.iterations, self.continuations, self._checkpoint)

    def read(self, path: str) -> dict[str, Any]:
        """A document, by its path below ``iterations/``."""
        return self.workspace.states.reading.load(f"ContextMemory/iterations/{path}")

    def names(self, folder: str) -> list[str]:
        """The files of a folder below ``iterations/``."""
        return sorted(one.name for one in (self.workspace.root / "ContextMemory/iterations" / folder).glob("*"))

    def expire_after(self, hours: float) -> None:
        """Say in the configuration how long tokens last."""
        text = json.dumps({"continuation": {"expires_hours": hours}})
        (self.workspace.root / SYSTEM_CONFIG).write_text(text)

    def later(self, **by: float) -> None:
        """Move the clock on."""
        self.now += timedelta(**by)

    def _fire(self, occasion: str, facts: Any) -> None:
        self.fired.append((occasion, dict(facts)))

    def _checkpoint(self, update: StateUpdate) -> str:
        self.checkpoints.append(update)
        return "ckpt_20260301_1200"
