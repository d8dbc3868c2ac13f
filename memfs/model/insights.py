"""Answers drawn from many iterations, as values: trends of patterns, effects of feedback, the record of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from memfs.dataclass import dataclass, field
from memfs.model.shape import Free, Shape


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
class Course(Shape):
    """How a value goes over iterations; ``slope`` is its change for each of them.

    ``direction`` is ``rising``, ``falling``, ``steady``, or ``unknown`` with fewer than two values.
    """

    n: int = 0
    mean: float | None = None
    first: float | None = None
    last: float | None = None
    slope: float = 0.0
    direction: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrategyOutcome(Shape):
    """What came of one strategy; ``score`` is by what they are ordered, see ``Analysis.strategy_basis``."""

    name: str
    uses: int = 0
    score: float | None = None
    success_rate: float | None = None
    improvement: float | None = None
    confidence: float | None = None
    cost: float | None = None
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
        diversity: mean likewise; ``diversity_basis`` says of what.
        confidence, cost, improvement, diversity_course: how each goes over the iterations.
        strategies: the best first; ``strategy_basis`` says by what.
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
    confidence: Course = field(default_factory=Course)
    cost: Course = field(default_factory=Course)
    improvement: Course = field(default_factory=Course)
    diversity_course: Course = field(default_factory=Course)
    metrics: Mapping[str, Course] = field(default_factory=dict)
    strategies: tuple[StrategyOutcome, ...] = ()
    strategy_basis: str = ""
    current_weight: float = 1.0
    weight_source: str = ""
    suggested_weight: float = 1.0
    reasons: tuple[str, ...] = ()
    feedback: tuple[FeedbackEffect, ...] = ()


AGGREGATES: Mapping[str, str] = {
    "effectiveness_metrics": "how each agent did, by iteration",
    "pattern_history": "the patterns of the meta-reviews, by iteration",
    "research_progress": "how far the research was, by iteration",
}
"""The aggregates with what each says."""
