"""Occasions: which parts of a workspace react to which of them, and what is done when it is due.

Owns that wiring alone. A part is asked for when its occasion comes, so that none is made before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from memfs.model.memory_config import Trigger
from memfs.upkeep.opening import has_states

if TYPE_CHECKING:
    from memfs.behaviours import Behaviours
    from memfs.pipeline.learner import Learner
    from memfs.pipeline.reactions import Reactions
    from memfs.states.parts import States
    from memfs.store.parts import Parts
    from memfs.upkeep.cleanup import Cleaner


class Reacting(Protocol):
    """The parts that react (``memfs.workspace.Workspace`` has them)."""

    @property
    def parts(self) -> Parts: ...

    @property
    def behaviours(self) -> Behaviours: ...

    @property
    def learner(self) -> Learner: ...

    @property
    def reactions(self) -> Reactions: ...

    @property
    def states(self) -> States: ...

    @property
    def cleaner(self) -> Cleaner: ...


def connect(workspace: Reacting) -> None:
    """Let the parts of a workspace hear of the occasions that concern them."""
    on = workspace.behaviours.on
    for occasion in ("memory_stored", "episode_recorded"):
        on(occasion, partial(_learn, workspace, occasion))
    for trigger in Trigger:
        on(trigger.value, partial(_react, workspace, trigger.value))
    on("storage_threshold", lambda _: workspace.cleaner.clean())
    for occasion in ("state_stored", "iteration_closed", "storage_threshold"):
        on(occasion, partial(_tell_states, workspace, occasion))


def _learn(workspace: Reacting, occasion: str, facts: Mapping[str, Any]) -> None:
    workspace.learner.react(occasion, facts)


def _react(workspace: Reacting, occasion: str, facts: Mapping[str, Any]) -> None:
    workspace.reactions.react(occasion, facts)


def _tell_states(workspace: Reacting, occasion: str, facts: Mapping[str, Any]) -> None:
    if "states" in workspace.__dict__ or has_states(workspace.parts.seen):
        workspace.states.react(occasion, facts)
