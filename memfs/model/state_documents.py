"""State documents: the shapes in which a long-running multi-agent system stores and retrieves its state.

A shape is read by attribute (``update.system_statistics``) and by key (``update["system_statistics"]``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.dataclass import dataclass, field
from memfs.model.shape import Free, Shape

UPDATE_TYPES = ("periodic", "checkpoint", "critical")
REQUEST_TYPES = ("full", "partial", "summary")


# -- from the supervisor ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemStatistics(Shape):
    """How far the system is; ``tournament_progress`` is a share, 0.0 to 1.0."""

    total_hypotheses: int = 0
    hypotheses_by_state: Mapping[str, int] = field(default_factory=dict)
    pending_reviews: int = 0
    tournament_progress: float = 0.0
    agent_effectiveness: Mapping[str, Free] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrchestrationState(Shape):
    """What the supervisor steers with: weights and budgets by agent, queues, focus."""

    agent_weights: Mapping[str, float] = field(default_factory=dict)
    resource_allocation: Mapping[str, Any] = field(default_factory=dict)
    queue_statistics: Free = field(default_factory=dict)
    strategic_focus: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointData(Shape):
    """What a recovery needs: the tasks that are under way, and whatever the supervisor adds by component.

    What is left out was not said: a recovery takes it from the latest update that says it. An empty list says that no
    task is under way.
    """

    in_flight_tasks: tuple[Any, ...] | None = None
    recovery_metadata: Free | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateUpdate(Shape):
    """The supervisor's state at one moment. Without a timestamp it gets that of its storing."""

    timestamp: datetime | None = None
    update_type: str = "periodic"
    system_statistics: SystemStatistics = field(default_factory=SystemStatistics)
    orchestration_state: OrchestrationState = field(default_factory=OrchestrationState)
    checkpoint_data: CheckpointData = field(default_factory=CheckpointData)

    if TYPE_CHECKING:  # what may be given: mappings and text for values

        def __init__(
            self,
            *,
            timestamp: datetime | str | None = ...,
            update_type: str = ...,
            system_statistics: SystemStatistics | Mapping[str, Any] = ...,
            orchestration_state: OrchestrationState | Mapping[str, Any] = ...,
            checkpoint_data: CheckpointData | Mapping[str, Any] = ...,
        ) -> None: ...


# -- from specialised agents --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentResults(Shape):
    """What a task came to; ``primary_output`` is whatever the agent makes."""

    primary_output: Any = None
    metadata: Free = field(default_factory=dict)
    confidence_score: float | None = None
    resource_consumed: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateData(Shape):
    """Where an agent stands within a task, and the token to go on with."""

    internal_state: Any = None
    continuation_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentOutput(Shape):
    """What one agent made of one task. ``agent_type`` names the agent; names are free text."""

    agent_type: str
    task_id: str
    timestamp: datetime | None = None
    results: AgentResults = field(default_factory=AgentResults)
    state_data: StateData | None = None

    if TYPE_CHECKING:  # what may be given: mappings and text for values

        def __init__(
            self,
            *,
            agent_type: str,
            task_id: str,
            timestamp: datetime | str | None = ...,
            results: AgentResults | Mapping[str, Any] = ...,
            state_data: StateData | Mapping[str, Any] | None = ...,
        ) -> None: ...


# -- from the meta-reviewer ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Critique(Shape):
    """What an iteration taught: patterns (a name, or an object with one), feedback by agent, improvements."""

    common_patterns: tuple[Any, ...] = ()
    agent_feedback: Mapping[str, Any] = field(default_factory=dict)
    iteration_improvements: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResearchOverview(Shape):
    """Where the research stands and what comes next."""

    synthesis: str = ""
    research_areas: tuple[Any, ...] = ()
    next_priorities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetaReviewStorage(Shape):
    """The meta-review of one iteration."""

    iteration_number: int
    timestamp: datetime | None = None
    critique: Critique = field(default_factory=Critique)
    research_overview: ResearchOverview = field(default_factory=ResearchOverview)

    if TYPE_CHECKING:  # what may be given: mappings and text for values

        def __init__(
            self,
            *,
            iteration_number: int,
            timestamp: datetime | str | None = ...,
            critique: Critique | Mapping[str, Any] = ...,
            research_overview: ResearchOverview | Mapping[str, Any] = ...,
        ) -> None: ...


# -- what comes back ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Acknowledgement(Shape):
    """What a write says of itself once it is durable.

    Attributes:
        path: the document, below the workspace.
        sha256: of its bytes, ``bytes`` of them.
        revision: the commit that holds it, "" while it waits for its commit.
        duration_ms: how long storing took, in milliseconds.
        checkpoint_id: the checkpoint that was created with it, "" where none was.
        checkpoint_problem: why none was, where the update asked for one: the update itself is stored.
        continuation_token: the token under which the agent's state was kept, "" where there is none.
        conflicts: fields in which another writer's value was overridden by this one's; the record says which.
        durability: as of an item: ``file``, or ``fallback`` where the secondary location holds it.
    """

    path: str
    sha256: str
    bytes: int
    revision: str = ""
    duration_ms: float = 0.0
    checkpoint_id: str = ""
    checkpoint_problem: str = ""
    continuation_token: str = ""
    conflicts: tuple[str, ...] = ()
    durability: str = "file"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetrievedContent(Shape):
    """The parts of an answer; ``agent_states[agent]`` has ``internal_state`` and ``last_output``."""

    system_state: Free = field(default_factory=dict)
    agent_states: Mapping[str, Free] = field(default_factory=dict)
    hypothesis_data: tuple[Free, ...] = ()
    tournament_results: Free = field(default_factory=dict)
    feedback_history: tuple[Free, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetrievedState(Shape):
    """The answer to ``retrieve_state``.

    Attributes:
        request_type: ``full``, ``partial`` or ``summary``.
        timestamp_range: start and end of what was asked for; None where that side was open and nothing was found.
        content: what was found.
        partial: whether anything is missing that was asked for.
        missing: what, one sentence each.
        behind: how far what is only eventually consistent is behind: writes without a commit, the age of aggregates.
    """

    request_type: str
    timestamp_range: tuple[datetime | None, datetime | None] = (None, None)
    content: RetrievedContent = field(default_factory=RetrievedContent)
    partial: bool = False
    missing: tuple[str, ...] = ()
    behind: Free = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeedbackContent(Shape):
    """What the meta-review says to everybody, and to each agent."""

    general_recommendations: tuple[str, ...] = ()
    agent_specific: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    priority_improvements: tuple[str, ...] = ()
    success_patterns: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeedbackData(Shape):
    """The answer to ``get_feedback``; ``iteration`` is what "latest" meant, ``version`` names the review."""

    iteration_requested: int | str
    agent_type: str | None = None
    feedback_content: FeedbackContent = field(default_factory=FeedbackContent)
    iteration: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecoveryState(Shape):
    """The answer to ``recover``.

    Attributes:
        checkpoint_timestamp: when the checkpoint was taken.
        system_configuration: ``system_config`` as it was then.
        active_tasks: the tasks in flight as the latest update that says so has them, without those whose final output
            was stored later, even after the checkpoint: only these are to be retried.
        completed_work: a summary: iterations, outputs by agent, hypotheses, tournament results; ``completed_since``
            names the tasks in flight that were completed after the checkpoint.
        resume_points: by component, the state to go on from.
        data_integrity: ``verified``, ``checkpoint_id``, ``files``, ``rejected`` (id to reason), ``warnings``.
        checkpoint_id: which checkpoint.
    """

    checkpoint_timestamp: datetime
    system_configuration: Free = field(default_factory=dict)
    active_tasks: tuple[Any, ...] = ()
    completed_work: Free = field(default_factory=dict)
    resume_points: Mapping[str, Any] = field(default_factory=dict)
    data_integrity: Free = field(default_factory=dict)
    checkpoint_id: str = ""
