"""Compute metrics of documents: figures, strategies, success, improvement, and the statistics of an iteration.

Works on plain values, and never fails over what is in a document. The same values give the same numbers in any order.
From them follow what feedback brought, how an agent did over the last iterations, and the weight that this suggests: it
moves by less than half of what it is, with reasons.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from statistics import linear_regression
from typing import TYPE_CHECKING, Any

from memfs.dataclass import dataclass, field, replace
from memfs.errors import ItemNotFound, MemfsError, QueryInvalid
from memfs.model import state_facts
from memfs.model.kinds import nearest
from memfs.model.state_documents import AgentPoint, Analysis, FeedbackEffect, MetricChange, StrategyOutcome
from memfs.model.state_facts import StateFacts, StateQuery, StateRow, as_mapping, as_number, matches, texts
from memfs.model.time import format_time

if TYPE_CHECKING:
    from memfs.state.aggregates import Aggregates
    from memfs.state.feedback import FeedbackStore
    from memfs.state.reader import StateReader

MOST_METRICS = 64
"""How many metrics of one agent are kept for an iteration, the most frequent first."""
_MOST_TEXT = 8_000
_LONGEST_NAME = 120
_LONGEST_KEY = 250
_WORD = re.compile(r"\w{2,40}")
_STRATEGY = re.compile(r"strateg", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|\.)(?:index|iteration|iteration_number|timestamp|version|year)$|(?:^|[._\- ])(?:id|seed)$", re.IGNORECASE
)
_SUCCESS = ("success", "succeeded", "successful", "accepted")
_ENDS = ("outcome", "status", "result")
_GOOD = frozenset({"success", "succeeded", "successful", "accepted", "passed", "ok", "done", "completed", "complete"})
_BAD = frozenset({"failure", "failed", "fail", "error", "rejected", "aborted", "timeout", "cancelled"})
_LESS_IS_BETTER = re.compile(
    r"(?:^|[^a-z])(?:cost|costs|error|errors|loss|latency|duration|seconds|time|resource|resources|consumed|failure|failures"
    r"|failed|rejected|tokens|retries|duplicates|memory|delay|waste)(?:[^a-z]|$)"
)

Summary = list[float]
"""How many values, their mean, and their standard deviation: short, as there are many of them in a file."""


# -- summing up ---------------------------------------------------------------------------------------------------
def short(value: float) -> float:
    """A number as aggregates have it: nine digits, the same whatever the order it was summed up in."""
    return float(f"{value:.9g}")


def summary(values: Iterable[float]) -> Summary:
    """How many, mean and deviation; ``[0, 0.0, 0.0]`` of none."""
    given = [value for value in values if as_number(value) is not None]
    if not given:
        return [0, 0.0, 0.0]
    mean = math.fsum(given) / len(given)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / len(given))
    return [len(given), short(mean), short(spread)]


def combined(parts: Iterable[Summary]) -> Summary:
    """The summary of the values behind several summaries."""
    given = [part for part in parts if part[0]]
    count = sum(int(part[0]) for part in given)
    if not count:
        return [0, 0.0, 0.0]
    mean = math.fsum(part[0] * part[1] for part in given) / count
    squares = math.fsum(part[0] * (part[2] ** 2 + (part[1] - mean) ** 2) for part in given)
    return [count, short(mean), short(math.sqrt(squares / count))]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much a value changes for each step, by least squares; 0.0 with fewer than two places."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    return short(linear_regression([x for x, _ in points], [y for _, y in points]).slope)


def direction(points: Sequence[tuple[float, float]]) -> str:
    """Where a value goes: ``rising`` or ``falling`` where the line through it moves by a tenth of its size at least.

    ``unknown`` with fewer than two places.
    """
    if len({x for x, _ in points}) < 2:
        return "unknown"
    move = slope(points) * (max(x for x, _ in points) - min(x for x, _ in points))
    size = math.fsum(abs(y) for _, y in points) / len(points)
    if abs(move) <= size / 10 or move == 0:
        return "steady"
    return "rising" if move > 0 else "falling"


def less_is_better(name: str) -> bool:
    """Whether a metric, by its name, is the better the smaller it is."""
    folded = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()
    return bool(_LESS_IS_BETTER.search(folded.replace("_", " ")))


# -- what a document says -----------------------------------------------------------------------------------------
def figures(value: Any) -> dict[str, float]:
    """Every number in a value by dotted name; one without a name is called ``effectiveness``."""
    named = "" if isinstance(value, Mapping) else "effectiveness"
    return dict(islice(state_facts.figures_in(value, named), 4 * MOST_METRICS))


def key_of(name: str) -> str:
    """A name as a key in an aggregate; one that is too long for a key keeps its beginning and a digest."""
    return name if len(name) <= _LONGEST_KEY else f"{name[:160]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def metrics_of(results: Mapping[str, Any]) -> dict[str, float]:
    """The figures of an output: those of its metadata, and the plain ones of a primary output that has keys.

    Numbers that only distinguish one thing from another, such as ``seed`` or ``iteration``, are none.
    """
    own = {
        key: value for key, value in as_mapping(results.get("primary_output")).items() if as_number(value) is not None
    }
    found = {**figures(own), **figures(as_mapping(results.get("metadata")))}
    return {name: value for name, value in found.items() if not _LABEL.search(name)}


def strategies_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The strategies that keys such as ``strategy`` or ``strategies_used`` name, each once."""
    found: list[str] = []
    for key, value in values.items():
        if _STRATEGY.search(str(key)):
            for element in value if isinstance(value, list | tuple) else (value,):
                name = element.get("name") if isinstance(element, Mapping) else element
                if isinstance(name, str) and name.strip():
                    found.append(" ".join(name.split())[:_LONGEST_NAME])
    return tuple(dict.fromkeys(found))[:8]


def success_of(values: Mapping[str, Any]) -> bool | None:
    """Whether a document says that the work succeeded; None where it does not say."""
    for key in _SUCCESS:
        if isinstance(values.get(key), bool):
            return bool(values[key])
    for key in _ENDS:
        word = values.get(key)
        if isinstance(word, str) and word.casefold() in _GOOD | _BAD:
            return word.casefold() in _GOOD
    return None


def named(given: Mapping[str, Any], beginning: str) -> list[str]:
    """The names that begin with a word, or have a part that does: ``improvement_rate``, ``scores.improvement``."""
    pattern = re.compile(rf"(?:^|[._\- ]){re.escape(beginning)}", re.IGNORECASE)
    found = (name for name in given if pattern.search(name))
    return sorted(found, key=lambda name: (not name.casefold().startswith(beginning), name))


# -- how far outputs differ ---------------------------------------------------------------------------------------
def words_of(value: Any) -> frozenset[str]:
    """The words of whatever an agent made."""
    return frozenset(_WORD.findall(" ".join(islice(texts(value), _MOST_TEXT))[:_MOST_TEXT].casefold()))


def dissimilarity(sets: Sequence[frozenset[str]]) -> float | None:
    """How little the words of texts overlap, mean over all pairs: 0.0 all the same, 1.0 nothing shared."""
    given = [one for one in sets if one]
    if len(given) < 2:
        return None
    apart = [1 - len(one & other) / len(one | other) for place, one in enumerate(given) for other in given[place + 1 :]]
    return short(math.fsum(apart) / len(apart))


def sum_up(documents: Iterable[StateFacts], opened: datetime | None, closed: datetime | None) -> dict[str, Any]:
    """The statistics of an iteration.

    Args:
        documents: what is known of each of its documents, in any order.
        opened, closed: when the iteration was; None where that is not known.

    Returns:
        Plain values, the same for the same documents: ``documents`` by kind, ``outputs``, ``outputs_by_agent``,
        ``hypotheses`` (``total``, ``by_state``), ``tournament`` (``results``, ``participants``), ``duration_seconds``.
    """
    given = list(documents)
    kinds = Counter(facts.kind for facts in given if facts.kind)
    outputs = Counter(facts.agent for facts in given if facts.kind == "agent_output")
    states = Counter(facts.state or "unknown" for facts in given if facts.kind == "hypothesis")
    participants = {name for facts in given if facts.kind == "tournament_result" for name in facts.hypotheses}
    duration = (closed - opened).total_seconds() if opened and closed else None
    return {
        **({} if duration is None else {"duration_seconds": round(max(duration, 0.0), 9)}),
        "documents": dict(sorted(kinds.items())),
        "outputs": kinds["agent_output"],
        "outputs_by_agent": dict(sorted(outputs.items())),
        "hypotheses": {"total": sum(states.values()), "by_state": dict(sorted(states.items()))},
        "tournament": {"results": kinds["tournament_result"], "participants": len(participants)},
    }


def agents(rows: Iterable[StateRow], names: Collection[str]) -> dict[str, dict[str, Any]]:
    """By agent: how many outputs, of how many tasks, and when the last came."""
    given: dict[str, list[StateFacts]] = {}
    for row in rows:
        given.setdefault(row.facts.agent, []).append(row.facts)
    summed: dict[str, dict[str, Any]] = {}
    for name in filter(given.__contains__, names):
        times = [facts.timestamp for facts in given[name] if facts.timestamp is not None]
        last = {"last_timestamp": format_time(max(times))} if times else {}
        summed[name] = {"outputs": len(given[name]), "tasks": len({facts.task for facts in given[name]}), **last}
    return summed


def standings(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By hypothesis: its matches and wins, and its rating after the last."""
    table: dict[str, dict[str, Any]] = {}
    for match in (one for result in results for one in matches(result)):
        for name in match.participants:
            row = table.setdefault(name, {"matches": 0, "wins": 0})
            row["matches"] += 1
            row["wins"] += name in match.winners
            if name in match.ratings:
                row["rating"] = match.ratings[name]
    return dict(sorted(table.items()))


def review(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a meta-review is about, in numbers."""
    critique, overview = (as_mapping(values.get(name)) for name in ("critique", "research_overview"))
    summed = {key: values[key] for key in ("iteration_number", "timestamp") if key in values}
    return {
        **summed,
        "patterns": len(critique.get("common_patterns") or ()),
        "agents": sorted(map(str, as_mapping(critique.get("agent_feedback")))),
        "priorities": len(overview.get("next_priorities") or ()),
    }


def component(name: str, update: Mapping[str, Any]) -> dict[str, Any]:
    """What a state update says of one component."""
    recovery = as_mapping(as_mapping(update.get("checkpoint_data")).get("recovery_metadata"))
    queues = as_mapping(as_mapping(update.get("orchestration_state")).get("queue_statistics"))
    known = {"timestamp": update["timestamp"]} if "timestamp" in update else {}
    for key, held in (("recovery_metadata", recovery), ("queue_statistics", queues)):
        if name in held:
            known[key] = held[name]
    return known


Load = Callable[[StateRow], Mapping[str, Any]]

KINDS = ("agent_output", "hypothesis", "system_state")
"""The documents that an entry follows from."""

_MOST_COMPARED = 40
_MOST_STRATEGIES = 16


@dataclass(slots=True)
class _Tally:
    """What an agent did in an iteration, or what came of one of its strategies."""

    count: int = 0
    values: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    metrics: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reported: dict[str, float] = field(default_factory=dict)
    words: list[frozenset[str]] = field(default_factory=list)
    successes: list[bool] = field(default_factory=list)
    strategies: defaultdict[str, _Tally] = field(default_factory=lambda: defaultdict(_Tally))

    def add(self, name: str, *values: float | None) -> None:
        """Note values, as far as there are some."""
        if known := [value for value in values if value is not None]:
            self.values[name] += known


def digest(rows: Iterable[StateRow], load: Load, elsewhere: Mapping[str, float]) -> dict[str, Any]:
    """What each agent did in one iteration.

    Args:
        rows: of the iteration's documents of ``KINDS``.
        load: reads one; only one is held at a time.
        elsewhere: ratings of parents that are in earlier iterations, by id.
    """
    ordered = sorted(rows, key=lambda row: row.path)
    gains = gains_of(ordered, elsewhere)
    agents: defaultdict[str, _Tally] = defaultdict(_Tally)
    for row in ordered:
        if row.facts.kind == "agent_output":
            _count_output(agents, row, load(row), gains)
        elif row.facts.kind == "system_state":  # what the supervisor says of each agent in its latest state update
            statistics = as_mapping(as_mapping(load(row).get("update")).get("system_statistics"))
            for name, value in as_mapping(statistics.get("agent_effectiveness")).items():
                if found := figures(value):
                    agents[str(name)].reported.update(found)
        elif row.facts.agent:
            agents[row.facts.agent].add("gains", gains.get(row.facts.name))
    return {key_of(name): _entry(agents[name]) for name in sorted(agents)}


def gains_of(rows: Iterable[StateRow], elsewhere: Mapping[str, float]) -> dict[str, float]:
    """By hypothesis, how much higher it is rated than its parents on average; one without rated parents has none."""
    given = [row.facts for row in rows if row.facts.kind == "hypothesis"]
    ratings = {**elsewhere, **{facts.name: facts.rating for facts in given if facts.rating is not None}}
    gains = {}
    for facts in given:
        before = [ratings[parent] for parent in facts.parents if parent in ratings and parent != facts.name]
        if facts.rating is not None and before:
            gains[facts.name] = facts.rating - math.fsum(before) / len(before)
    return gains


def _count_output(
    agents: defaultdict[str, _Tally], row: StateRow, values: Mapping[str, Any], gains: Mapping[str, float]
) -> None:
    agent = agents[row.facts.agent]
    results = as_mapping(values.get("results"))
    metadata = {**as_mapping(results.get("primary_output")), **as_mapping(results.get("metadata"))}
    metrics = metrics_of(results)
    for name, value in metrics.items():
        agent.metrics[name].append(value)
    if len(agent.words) < _MOST_COMPARED:
        agent.words.append(words_of(results.get("primary_output")))
    uses = [agent.strategies[name] for name in strategies_of(metadata)]
    for tally in (agent, *uses):
        tally.count += 1
        tally.add("confidence", as_number(results.get("confidence_score")))
        tally.add("cost", as_number(results.get("resource_consumed")))
    success = success_of(metadata)
    for use in uses:
        use.add("improvement", *(metrics[one] for one in named(metrics, "improvement")[:1]))
        use.add("gain", *(gains.get(one) for one in row.facts.hypotheses))
        use.successes += [] if success is None else [success]


def _entry(agent: _Tally) -> dict[str, Any]:
    made: dict[str, Any] = {"outputs": agent.count}
    made |= {name: summary(values) for name, values in agent.values.items()}
    frequent = sorted(agent.metrics, key=lambda name: (-len(agent.metrics[name]), name))[:MOST_METRICS]
    made["metrics"] = {name: summary(agent.metrics[name]) for name in sorted(frequent)}
    made["reported"] = {name: short(agent.reported[name]) for name in sorted(agent.reported)[:MOST_METRICS]}
    if gains := agent.values.get("gains"):
        made["better"] = sum(gain > 0 for gain in gains)
    apart = dissimilarity(agent.words)
    if apart is not None:
        made["dissimilarity"] = apart
    most = sorted(agent.strategies, key=lambda name: (-agent.strategies[name].count, name))[:_MOST_STRATEGIES]
    made["strategies"] = {name: _use(agent.strategies[name]) for name in sorted(most)}
    return {name: value for name, value in made.items() if value != {}}


def _use(use: _Tally) -> dict[str, Any]:
    made: dict[str, Any] = {"uses": use.count, **{name: summary(values) for name, values in use.values.items()}}
    return made | ({"successes": [sum(use.successes), len(use.successes)]} if use.successes else {})


# -- agents' names ------------------------------------------------------------------------------------------------
_LONGEST_AGENT = 1_000
_BLANK = re.compile(r"[._\-\s]+")


def check_agent(agent: object, field: str) -> None:
    """Refuse what is no agent's name.

    Raises:
        QueryInvalid: it is none; with the field.
    """
    if not isinstance(agent, str) or not agent.strip() or len(agent) > _LONGEST_AGENT:
        raise QueryInvalid("expected the name of an agent", field=field, hint="give its name as it is stored")


def name_in(names: Iterable[str], agent: str) -> str:
    """The name of an agent that is on record: its own, or else the only one that is written alike.

    Letter case, blanks, dots, dashes and a trailing "agent" do not count: ``evolution_agent`` is ``Evolution``. "" for
    none.
    """
    given = list(names)
    if agent in given:
        return agent
    alike = [name for name in given if _folded(name) == _folded(agent)]
    return alike[0] if len(alike) == 1 else ""


def _folded(name: str) -> str:
    words = _BLANK.sub(" ", name.casefold()).split()
    return " ".join(words[:-1] if len(words) > 1 and words[-1] == "agent" else words)


# -- what feedback brought ----------------------------------------------------------------------------------------
WINDOW = 3
"""The most iterations before and after that are compared."""
LEAST = 3
"""A metric with fewer values on either side says nothing."""
_CLEAR = 0.2
_MOST_EFFECT = 3.0

Agents = Mapping[int, Mapping[str, Any]]
"""The entries of agents, by iteration and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackDelivery:
    """That an agent was given a version of feedback in an iteration, from the review of another."""

    agent: str
    version: str
    from_iteration: int
    iteration: int


def compared(given: Iterable[FeedbackDelivery], iterations: Sequence[int]) -> list[FeedbackEffect]:
    """For each version of an agent's feedback the iterations that are compared; nothing is measured yet.

    Before are those that were worked under the feedback before it, after are those until the next one.
    """
    by: dict[str, list[FeedbackDelivery]] = {}
    for review in sorted(given, key=lambda review: review.iteration):
        by.setdefault(review.version, []).append(review)
    by_span = [(_start(several[0]), several[0].iteration, version) for version, several in by.items()]
    versions = [by[version] for _, _, version in sorted(by_span)]
    edges = [-1, *(_start(several[0]) for several in versions), math.inf]
    return [
        FeedbackEffect(
            agent=several[0].agent,
            version=several[0].version,
            from_iteration=several[0].from_iteration,
            given_in=tuple(review.iteration for review in several),
            before=tuple([number for number in iterations if begin <= number < start][-WINDOW:]),
            after=tuple([number for number in iterations if start <= number < end][:WINDOW]),
        )
        for begin, start, end, several in zip(edges, edges[1:], edges[2:], versions, strict=False)
    ]


def _start(first: FeedbackDelivery) -> int:
    """The first iteration that was worked under a version, by the first time that it was given."""
    return max(first.from_iteration + 1, first.iteration)


def measured(plan: FeedbackEffect, agents: Agents) -> FeedbackEffect:
    """What came of a feedback: each metric before and after, and a verdict.

    ``better`` or ``worse`` where the metrics that can be compared moved by a fifth of a standard deviation on average,
    each counted the way that is good for it: less of what by its name is a cost or an error.
    """
    name = key_of(plan.agent)
    sides = [[as_mapping(agents.get(number, {}).get(name)) for number in some] for some in (plan.before, plan.after)]
    n_before, n_after = (sum(entry.get("outputs", 0) for entry in side) for side in sides)
    before, after = (_metrics(side) for side in sides)
    changes = tuple(_change(metric, before[metric], after[metric]) for metric in sorted(before.keys() & after.keys()))
    verdict, reason = _verdict(changes, n_before, n_after)
    return replace(plan, n_before=n_before, n_after=n_after, metrics=changes, verdict=verdict, reason=reason)


def values_of(entry: Mapping[str, Any]) -> dict[str, Summary]:
    """Everything that can be compared in an agent's entry, by metric; what its outputs say before what is reported."""
    values: dict[str, Summary] = {name: [1, value, 0.0] for name, value in as_mapping(entry.get("reported")).items()}
    values |= as_mapping(entry.get("metrics"))
    values |= {name: entry[name] for name in ("confidence", "cost") if name in entry}
    if "gains" in entry:
        values["rating_gain"] = entry["gains"]
    return values


def _metrics(entries: Iterable[Mapping[str, Any]]) -> dict[str, Summary]:
    lists: dict[str, list[Summary]] = {}
    for entry in entries:
        for name, value in values_of(entry).items():
            lists.setdefault(name, []).append(value)
    return {name: combined(values) for name, values in lists.items()}


def _change(metric: str, before: Summary, after: Summary) -> MetricChange:
    change, effect = after[1] - before[1], None
    if min(before[0], after[0]) >= LEAST:
        spread = math.sqrt((before[0] * before[2] ** 2 + after[0] * after[2] ** 2) / (before[0] + after[0]))
        size = change / spread if spread else math.copysign(_MOST_EFFECT, change) if change else 0.0
        effect = round(min(max(-size if less_is_better(metric) else size, -_MOST_EFFECT), _MOST_EFFECT), 3)
    return MetricChange(
        metric=metric,
        before=before[1],
        after=after[1],
        change=short(change),
        n_before=int(before[0]),
        n_after=int(after[0]),
        effect=effect,
    )


def _verdict(changes: Sequence[MetricChange], n_before: int, n_after: int) -> tuple[str, str]:
    usable = [(one.effect, one) for one in changes if one.effect is not None]
    if not usable:
        reason = f"{n_before} outputs before and {n_after} after; {LEAST} values on each side are needed to compare"
        return "too little data", reason
    mean = math.fsum(effect for effect, _ in usable) / len(usable)
    verdict = "better" if mean > _CLEAR else "worse" if mean < -_CLEAR else "no clear change"
    strongest = max(usable, key=lambda pair: (abs(pair[0]), pair[1].metric))[1]
    moved = f"{strongest.metric} went from {strongest.before:.4g} to {strongest.after:.4g}"
    counted = f"{strongest.n_before} values before and {strongest.n_after} after"
    better, worse = sum(effect > _CLEAR for effect, _ in usable), sum(effect < -_CLEAR for effect, _ in usable)
    many = f"; of {len(usable)} metrics {better} got better and {worse} worse" if len(usable) > 1 else ""
    return verdict, f"{moved} ({counted}){many}"


# -- analysis -----------------------------------------------------------------------------------------------------
def strategies_in(entries: Iterable[Mapping[str, Any]]) -> tuple[StrategyOutcome, ...]:
    """The strategies in an agent's entries: those that succeeded most often first, then those that improved most."""
    uses: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        for name, use in as_mapping(entry.get("strategies")).items():
            uses.setdefault(name, []).append(use)
    ranked = []
    for name, several in uses.items():
        good, of = (sum(use.get("successes", (0, 0))[place] for use in several) for place in (0, 1))
        rate = short(good / of) if of else None
        found = (combined(use[key] for use in several if key in use) for key in ("improvement", "gain"))
        improvement = next((mean for count, mean, _ in found if count), None)
        made = StrategyOutcome(
            name=name,
            uses=sum(use["uses"] for use in several),
            success_rate=rate,
            improvement=improvement,
            successful=rate >= 0.5 if rate is not None else bool(improvement and improvement > 0),
        )
        ranked.append((-(0.5 if rate is None else rate), -(improvement or 0.0), -made.uses, name, made))
    return tuple(row[-1] for row in sorted(ranked, key=lambda row: row[:-1]))


_LEAST_OUTPUTS = 3
_ENOUGH_OUTPUTS = 10
_STEP = 0.1
_LEVEL = 0.2
_ALIKE = 0.2

Reason = tuple[float, str]


def suggested(analysis: Analysis, peers: Sequence[float]) -> tuple[float, tuple[str, ...]]:
    """The weight that an analysis suggests, and its reasons.

    Args:
        analysis: of the agent, with its current weight.
        peers: the mean improvement of each other agent, on the same basis.
    """
    current = analysis.current_weight
    active = sum(1 for point in analysis.points if point.outputs or point.metrics)
    if active < 2 or max(analysis.outputs, active) < _LEAST_OUTPUTS:
        counted = f"outputs: {analysis.outputs}, in iterations: {active}"
        return current, (f"the weight stays: too little to judge by ({counted})",)
    found = [reason for reason in _reasons(analysis, peers) if reason[0]]
    if not found:
        return current, ("the weight stays: nothing speaks for more or less",)
    evidence = min(1.0, max(analysis.outputs, active) / _ENOUGH_OUTPUTS)
    move = sum(share for share, _ in found) * evidence
    reasons = [f"{sentence} ({share * 100:+.0f} %)" for share, sentence in found]
    if evidence < 1:
        reasons.append(f"only {analysis.outputs} outputs: the change is made smaller, to {move * 100:+.0f} % in all")
    if current <= 0:
        reasons.append("the weight is 0, so that the agent is switched off: it stays so until somebody raises it")
    return round(max(current, 0.0) * (1 + move), 4), tuple(reasons)


def _reasons(analysis: Analysis, peers: Sequence[float]) -> Iterator[Reason]:
    rate = analysis.improvement_rate
    if rate is not None and peers:
        others = sum(peers) / len(peers)
        size = max(abs(rate), abs(others))
        share = round(_LEVEL * (rate - others) / size, 3) if size else 0.0
        place = "above" if rate > others else "below"
        sentence = f"its improvement rate, {rate:.3g}, is {place} the others' {others:.3g}"
        yield min(max(share, -_LEVEL), _LEVEL), sentence
    elif rate is not None and analysis.improvement_basis.startswith("ratings"):
        yield round((rate - 0.5) * 2 * _LEVEL, 3), f"{rate * 100:.0f} % of its hypotheses are rated above their parents"
    elif rate is not None:
        yield (_STEP if rate > 0 else -_STEP if rate < 0 else 0.0), f"its improvement rate is {rate:.3g}"
    if analysis.diversity is not None and 0 <= analysis.diversity < _ALIKE:
        yield -_STEP, f"its outputs are much alike: diversity {analysis.diversity:.2f}"
    rates = [(one.success_rate, one.uses) for one in analysis.strategies if one.success_rate is not None]
    if rates:
        good = sum(rate * uses for rate, uses in rates) / sum(uses for _, uses in rates)
        yield round((good - 0.5) * _LEVEL, 3), f"{good * 100:.0f} % of what it tried with a named strategy succeeded"


MOST_ITERATIONS = 10_000
_RATINGS = "ratings of hypotheses against their parents'"
_OVERLAP = "how little the outputs' words overlap"
_UPDATES = 3
_ACTIVE = ("agent_output", "state_update", "hypothesis")

Entries = Mapping[int, Mapping[str, Any]]


class AgentAnalyst:
    """Analyses agents of one workspace. May be used from several threads."""

    def __init__(self, reader: StateReader, aggregates: Aggregates, feedback: FeedbackStore) -> None:
        self._reader, self._aggregates, self._feedback = reader, aggregates, feedback

    def analyze(self, agent: str, iterations: int = 10) -> Analysis:
        """How an agent did over the last iterations, open one included, as the documents say it now.

        Args:
            agent: its name; letter case and a trailing "agent" need not be as it is stored.
            iterations: how many of the newest are looked at, 1 to 10,000.

        Raises:
            QueryInvalid: ``iterations`` is no such number, or there is no name.
            ItemNotFound: nothing is known of such an agent; the hint names the nearest.
        """
        if isinstance(iterations, bool) or not isinstance(iterations, int) or not 1 <= iterations <= MOST_ITERATIONS:
            raise QueryInvalid(f"expected 1 to {MOST_ITERATIONS:,}", field="iterations", hint="10 is usual")
        numbers = [row.number for row in self._reader.iterations()][-iterations:]
        everybody = self._aggregates.agents(numbers)
        name = self._named(agent, everybody)
        entries = {number: as_mapping(everybody.get(number, {}).get(key_of(name))) for number in numbers}
        improvement, improvement_basis = _agent_improvement(entries)
        diversity, diversity_basis = _agent_diversity(entries)
        versions = self._feedback.versions(name, numbers)
        points = []
        for number, entry in entries.items():
            cost, values = entry.get("cost"), values_of(entry)
            point = AgentPoint(
                iteration=number,
                outputs=entry.get("outputs", 0),
                confidence=entry["confidence"][1] if "confidence" in entry else None,
                cost=short(cost[0] * cost[1]) if cost else 0.0,
                improvement=improvement.get(number),
                diversity=diversity.get(number),
                metrics={one: value[1] for one, value in sorted(values.items()) if one not in ("confidence", "cost")},
                feedback=versions.get(number, ""),
            )
            points.append(point)
        weight, source = self._weight(name)
        analysis = Analysis(
            agent=name,
            iterations=tuple(numbers),
            points=tuple(points),
            outputs=sum(point.outputs for point in points),
            improvement_rate=_mean(improvement.values()),
            improvement_basis=improvement_basis,
            diversity=_mean(diversity.values()),
            diversity_basis=diversity_basis,
            strategies=strategies_in(entries.values()),
            feedback=self._feedback.effectiveness(name, numbers),
            current_weight=weight,
            weight_source=source,
        )
        weight, reasons = suggested(analysis, _peers(name, improvement_basis, everybody))
        return replace(analysis, suggested_weight=weight, reasons=reasons)

    def _named(self, agent: str, everybody: Mapping[int, Mapping[str, Any]]) -> str:
        check_agent(agent, "agent")
        active = {*self._reader.index.agents(_ACTIVE), *(name for agents in everybody.values() for name in agents)}
        known = active.union(self._reader.index.agents(("meta_review",)))
        if name := name_in(sorted(active), agent) or name_in(sorted(known), agent):
            return name
        hint = nearest(agent, known) or (
            f"the agents are: {', '.join(sorted(known)[:20])}" if known else "no agent has recorded anything yet"
        )
        raise ItemNotFound(f"no agent {agent[:100]!r} is known", hint=hint)

    # -- the present weight ---------------------------------------------------------------------------------------
    def _weight(self, agent: str) -> tuple[float, str]:
        """The agent's weight at present, and where it is written: the newest state update, else the configuration."""
        newest = StateQuery(kinds=("state_update",), agents=(agent,), newest=True, limit=_UPDATES)
        for row in self._reader.rows(newest):
            try:
                values = self._reader.load(row)
            except (MemfsError, FileNotFoundError):
                continue
            weights = as_mapping(as_mapping(values.get("orchestration_state")).get("agent_weights"))
            if (found := as_number(weights.get(agent))) is not None:
                return found, row.path
        found = as_number(self._reader.system_config().agent_weights.get(agent))
        return (1.0, "default") if found is None else (found, "system_config.agent_weights")


# -- improvement and diversity ------------------------------------------------------------------------------------
def _agent_improvement(entries: Entries) -> tuple[dict[int, float], str]:
    """The improvement rate by iteration, by what more of them have: ratings, or a metric of that name."""
    rated = {place: _better(entry) for place, entry in entries.items() if "gains" in entry}
    metric, measured = _metric(entries, "improvement")
    if rated and len(rated) >= len(measured):
        return rated, _RATINGS
    return (measured, f"metric {metric}") if measured else ({}, "")


def _better(entry: Mapping[str, Any]) -> float:
    return short(entry["better"] / entry["gains"][0])


def _agent_diversity(entries: Entries) -> tuple[dict[int, float], str]:
    """The diversity by iteration: a metric of that name, or else how little outputs have in common."""
    metric, measured = _metric(entries, "diversity")
    if measured:
        return measured, f"metric {metric}"
    apart = {place: entry["dissimilarity"] for place, entry in entries.items() if "dissimilarity" in entry}
    return apart, _OVERLAP if apart else ""


def _metric(entries: Entries, beginning: str) -> tuple[str, dict[int, float]]:
    """The metric of that name that most iterations have."""
    values = {place: values_of(entry) for place, entry in entries.items()}
    names = named({name: None for of in values.values() for name in of}, beginning)
    by = {name: {place: of[name][1] for place, of in values.items() if name in of} for name in names}
    best = max(names, key=lambda name: len(by[name]), default="")
    return best, by.get(best, {})


def _peers(name: str, basis: str, everybody: Mapping[int, Mapping[str, Any]]) -> list[float]:
    """The mean improvement of each other agent, on the same basis."""
    found: dict[str, list[float]] = {}
    for agents in everybody.values():
        for other, entry in agents.items():
            if other == key_of(name):
                continue
            if basis == _RATINGS and "gains" in entry:
                found.setdefault(other, []).append(_better(entry))
            elif basis.startswith("metric ") and (value := values_of(entry).get(basis.removeprefix("metric "))):
                found.setdefault(other, []).append(value[1])
    return [math.fsum(values) / len(values) for values in found.values()]


def _mean(values: Iterable[float]) -> float | None:
    given = list(values)
    return short(math.fsum(given) / len(given)) if given else None
