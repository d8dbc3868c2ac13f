"""State documents: the shapes in which a long-running multi-agent system stores and retrieves its state, and what is
drawn from many of them: trends of patterns, effects of feedback, the record of an agent.

A shape is read by attribute (``update.system_statistics``) and by key (``update["system_statistics"]``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.dataclass import dataclass, field
from memfs.model.item import RecordedConflict
from memfs.model.shape import Free, Shape, plain
from memfs.model.state_paths import iteration_of
from memfs.model.time import time_in

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
    """How far an agent is within a task, and the token to go on with."""

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
    """The state of the research and what comes next."""

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


# -- feedback -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentFeedback(Shape):
    """What one agent is given at the start of its work: the answer to ``feedback_for``.

    Attributes:
        agent: whom it is for.
        text: ready for a prompt; what the review says is in it as quoted data. "" where there is no review.
        version: names the content of the review, "" where there is none; a changed review has another.
        template_version: names the template it was rendered with.
        iteration: the iteration it is given in, None before the first.
        from_iteration: the iteration whose review it is, None where there is none.
        text_sha256: of the text.
        given: when this version was first given to the agent in this iteration; None where that is not recorded.
        recorded: whether there is a record of it, at ``path``.
        path: of the record, below the workspace, "" without one.
        remarks: what was wrong and what was done instead, a sentence each, such as a template that cannot be used.
    """

    agent: str
    text: str = ""
    version: str = ""
    template_version: str = ""
    iteration: int | None = None
    from_iteration: int | None = None
    text_sha256: str = ""
    given: datetime | None = None
    recorded: bool = False
    path: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricChange(Shape):
    """One metric of an agent before and after it was given a feedback.

    Attributes:
        before, after: its mean, over ``n_before`` and ``n_after`` values.
        change: ``after - before``.
        effect: the change in standard deviations, positive where it is for the better; None where that cannot be said.
    """

    metric: str
    before: float
    after: float
    change: float
    n_before: int
    n_after: int
    effect: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeedbackEffect(Shape):
    """How an agent did after one version of its feedback, against before.

    Attributes:
        version: of the feedback; ``from_iteration`` is the review's.
        given_in: the iterations in which it was given.
        before, after: the iterations that are compared; ``n_before`` and ``n_after`` outputs are in them.
        metrics: by metric.
        verdict: ``better``, ``worse``, ``no clear change`` or ``too little data``; ``reason`` is a sentence.
    """

    agent: str
    version: str
    from_iteration: int
    given_in: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    n_before: int = 0
    n_after: int = 0
    metrics: tuple[MetricChange, ...] = ()
    verdict: str = "too little data"
    reason: str = ""


# -- trends -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternTrend(Shape):
    """One pattern of the meta-reviews over the iterations.

    Attributes:
        name: as the newest review writes it; ``names`` has every way it was written.
        first_seen, last_seen: the iterations in which it first and last occurs.
        counts: by iteration; one that has a review and does not name the pattern counts 0 and is left out.
        total: of the counts.
        reviews: in how many reviews it occurs.
        slope: change of the count per iteration, over every iteration with a review from the first seen on.
        direction: ``rising``, ``falling``, ``steady``, or ``new`` where only the newest review names it.
        details: what the newest review says of it, where it is an object.
    """

    name: str
    first_seen: int
    last_seen: int
    counts: Mapping[int, int] = field(default_factory=dict)
    total: int = 0
    reviews: int = 0
    slope: float = 0.0
    direction: str = "steady"
    names: tuple[str, ...] = ()
    details: Free = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrendReport(Shape):
    """The answer to ``trends``: patterns, the weightiest first, over the iterations that have a review.

    ``missing`` names the reviews that could not be read, a sentence each.
    """

    iterations: tuple[int, ...] = ()
    patterns: tuple[PatternTrend, ...] = ()
    missing: tuple[str, ...] = ()


# -- performance --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentPoint(Shape):
    """How an agent did in one iteration.

    Attributes:
        outputs: how many it stored.
        confidence: mean of their scores; None without any.
        cost: sum of ``resource_consumed``.
        improvement, diversity: as the analysis' ``improvement_basis`` and ``diversity_basis`` say; None without any.
        metrics: mean of each numeric value that its outputs or the supervisor give, by name.
        feedback: the version of the feedback that it was given in this iteration, "" for none.
    """

    iteration: int
    outputs: int = 0
    confidence: float | None = None
    cost: float = 0.0
    improvement: float | None = None
    diversity: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    feedback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrategyOutcome(Shape):
    """What came of one strategy; ``improvement`` is what outputs report, else the gain in rating of hypotheses."""

    name: str
    uses: int = 0
    success_rate: float | None = None
    improvement: float | None = None
    successful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysis(Shape):
    """The answer to ``analyze_agent``.

    Attributes:
        agent: whose.
        iterations: the numbers of those that were looked at, oldest first.
        points: one for each of them.
        outputs: how many the agent stored in them.
        improvement_rate: mean over the iterations that have one; ``improvement_basis`` says of what.
        diversity: its mean; ``diversity_basis`` says of what.
        strategies: the best first.
        current_weight: from ``weight_source``.
        suggested_weight: within half and one and a half times the current one.
        reasons: why, one sentence each.
        feedback: how the agent did after each feedback.
    """

    agent: str
    iterations: tuple[int, ...] = ()
    points: tuple[AgentPoint, ...] = ()
    outputs: int = 0
    improvement_rate: float | None = None
    improvement_basis: str = ""
    diversity: float | None = None
    diversity_basis: str = ""
    strategies: tuple[StrategyOutcome, ...] = ()
    current_weight: float = 1.0
    weight_source: str = ""
    suggested_weight: float = 1.0
    reasons: tuple[str, ...] = ()
    feedback: tuple[FeedbackEffect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentClash:
    """Two writers' values of one field of a state document; one was overridden.

    Attributes:
        path: the record of it.
        document: the document.
        iteration: the one it belongs to; None where there is none.
        field: its dotted name.
        kept: the value in the document; None where the field is gone.
        lost: the overridden value; None where that writer had removed the field.
        by: who wrote last, "" where no one is named.
        timestamp: when.
    """

    path: str
    document: str
    iteration: int | None
    field: str
    kept: Any
    lost: Any
    by: str = ""
    timestamp: datetime | None = None

    @property
    def conflict(self) -> RecordedConflict:
        """The two values, as an item would carry them."""
        return RecordedConflict(field=self.field, kept=self.kept, lost=self.lost)

    @classmethod
    def of(cls, path: str, values: Mapping[str, Any]) -> DocumentClash:
        """The clash that a record at this path is about, by the record's values."""
        return cls(
            path=path,
            document=str(values.get("document", "")),
            iteration=iteration_of(path),
            field=str(values.get("field", "")),
            kept=plain(values.get("kept")),
            lost=plain(values.get("lost")),
            by=str(values.get("by", "")),
            timestamp=time_in(values.get("timestamp")),
        )
