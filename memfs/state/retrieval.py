"""Retrieve the system's state as it is or was, search state documents by their words, and find similar past states.

Every answer is made from the documents as their files are now; what was read before is not parsed again. Archived
iterations are searched, too. Words are indexed at the first search after a document changed, so that no one pays for
searches that are never made.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import Any

from memfs.dataclass import dataclass, field, replace
from memfs.errors import QueryInvalid
from memfs.fs.executor import Deadline
from memfs.model import state_facts
from memfs.model.kinds import nearest
from memfs.model.query import moment
from memfs.model.shape import Free, Shape, plain
from memfs.model.state_documents import REQUEST_TYPES, RetrievedContent, RetrievedState
from memfs.model.state_paths import HYPOTHESIS_KINDS, aggregate_path, update_path
from memfs.model.time import Moment, format_time, utc_now
from memfs.search import analyzer
from memfs.search.terms import weights
from memfs.state import metrics
from memfs.state.reader import UNREADABLE, StateDocument, StateReader

SYSTEM, AGENTS, HYPOTHESES, TOURNAMENT, FEEDBACK = "system", "agents", "hypotheses", "tournament", "feedback"
SECTIONS = (SYSTEM, AGENTS, HYPOTHESES, TOURNAMENT, FEEDBACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuestion(state_facts.StateQuery):
    """One question for the system's state; without times and iterations it is about the present.

    Attributes:
        request_type: ``full``, ``partial`` or ``summary``.
        components: names that are no section: agents, or parts of the system that state updates name.
        sections: which parts of the answer are wanted.
    """

    request_type: str
    sections: frozenset[str] = frozenset(SECTIONS)

    @property
    def present(self) -> bool:
        """Whether it is about how things are now."""
        return self.start is None and self.end is None and not self.iterations


def wanted_of(
    request_type: Any, start: Any = None, end: Any = None, iterations: Any = None, **names: Any
) -> StateQuestion:
    """The question that arguments make; None for those not given.

    Args:
        request_type: ``full`` for all content, ``summary`` for statistics and counts only, ``partial`` for what is
            named (the last state of everything where nothing is).
        start, end: only documents with a time from and until these.
        iterations: only of these.
        names: ``agents``, only these agents' states, hypotheses by them, and reviews about them; ``components``:
            ``system``, ``agents``, ``hypotheses``, ``tournament``, ``feedback``, an agent, or a part of the system that
            ``recovery_metadata`` or ``queue_statistics`` of a state update name; ``hypotheses``, only these, and
            tournament results of theirs; ``metrics``, names of figures to bring along, with their history.

    Raises:
        QueryInvalid: naming the argument.
    """
    if request_type not in REQUEST_TYPES:
        raise QueryInvalid(
            f"there is no request type {request_type!r}",
            field="request_type",
            hint=nearest(str(request_type), REQUEST_TYPES) or f"use one of {', '.join(REQUEST_TYPES)}",
        )
    start, end = moment("start", start), moment("end", end, end=True)
    if start is not None and end is not None and start > end:
        raise QueryInvalid("the start is after the end", field="start", hint="exchange them")
    named: dict[str, Any] = {name: state_facts.names_of(value, name) for name, value in names.items()}
    components = named.get("components", ())
    # a partial answer has what is named; a full one or a summary everything, unless components are named
    sections = {one.casefold() for one in components}.intersection(SECTIONS)
    if named.get("agents"):
        sections.add(AGENTS)
    if named.get("hypotheses"):
        sections |= {HYPOTHESES, TOURNAMENT}
    is_narrowed = bool(components) or (request_type == "partial" and any(named.values()))
    named["components"] = tuple(one for one in components if one.casefold() not in SECTIONS)
    return StateQuestion(
        request_type=request_type,
        start=start,
        end=end,
        iterations=state_facts.numbers_of(iterations),
        sections=frozenset(sections if is_narrowed else SECTIONS),
        **named,
    )


PRESENT_REVIEWS = 10
PRESENT_HYPOTHESES = 100
PRESENT_OUTPUTS = 50
"""How many the present has: of reviews; of hypotheses and of results; of state updates and of an agent's outputs."""

_OWN = ("iteration", "status", "opened", "closed", "statistics")


class StateCollector:
    """Collects one answer.

    Attributes:
        missing: what it lacks, a sentence each; ``late`` if some of it for want of time.
        moments: the times of the documents in it.
    """

    def __init__(self, reader: StateReader, request: StateQuestion, deadline: Deadline) -> None:
        self._reader = reader
        self._index = reader.index
        self._request, self._deadline = request, deadline
        self._full, self._summary = request.request_type == "full", request.request_type == "summary"
        self.missing: list[str] = []
        self.moments: list[datetime] = []
        self.late = False
        self.newest = self._index.newest_iteration()

    def content(self) -> dict[str, Any]:
        """The content of the answer, as plain values."""
        request = self._request
        absent = (number for number in request.iterations if not self._index.counts((number,)))
        self.missing += [f"there is no iteration {number}" for number in absent]
        system = self._system() if SYSTEM in request.sections else {}
        agents = self._agents() if AGENTS in request.sections else {}
        self._add_components(system, agents)
        hypotheses = self._hypotheses() if HYPOTHESES in request.sections else []
        tournament = self._tournament() if TOURNAMENT in request.sections else {}
        feedback = self._feedback() if FEEDBACK in request.sections else []
        self._add_metrics(system, agents)
        return {
            "system_state": system,
            "agent_states": agents,
            "hypothesis_data": hypotheses,
            "tournament_results": tournament,
            "feedback_history": feedback,
        }

    # -- asking -------------------------------------------------------------------------------------------------------
    def _question(self, *kinds: str, **more: Any) -> state_facts.StateQuery:
        """A question within what is wanted; the present is the newest iteration."""
        request = self._request
        iterations = request.iterations
        if request.present and self.newest is not None:
            iterations = (self.newest,)
        given = {"start": request.start, "end": request.end, "iterations": iterations, **more}
        return state_facts.StateQuery(kinds=kinds, **given)

    def _find(self, question: state_facts.StateQuery, what: str) -> list[state_facts.StateRow]:
        """What is known of the documents for a question, as far as there is time."""
        found = self._index.found(question)
        rows = list(takewhile(lambda _: not self._deadline.passed, found))
        if len(rows) < len(found):
            self._late(f"{len(found) - len(rows)} of {len(found)} {what} were not counted in time")
        return rows

    def _read(self, question: state_facts.StateQuery, what: str) -> list[StateDocument]:
        """The documents for a question, and notes of what could not be read."""
        if self._deadline.passed:
            self._late(f"the {what} were not read: the time was over")
            return []
        found = self._reader.gather(question, self._deadline)
        for document in found.documents:
            if document.facts.timestamp is not None:
                self.moments.append(document.facts.timestamp)
        self.missing += [f"{path} cannot be read: {reason}" for path, reason in found.problems.items()]
        if found.unread:
            self._late(f"{found.unread} of {found.unread + len(found.documents)} {what} were not read in time")
        return list(found.documents)

    def _late(self, sentence: str) -> None:
        self.late = True
        self.missing.append(sentence)

    def _last(self, question: state_facts.StateQuery, most: int, what: str) -> list[StateDocument]:
        """The documents for a question, oldest first; of the present only the first ``most``."""
        if not self._request.present:
            return self._read(question, what)
        found = self._read(replace(question, newest=True, limit=most + 1), what)
        if len(found) > most:
            sentence = f"only the last {most} {what} belong to the present: name iterations or times for the others"
            self.missing.append(sentence)
        return found[:most][::-1]

    def _newest(self, question: state_facts.StateQuery, what: str) -> StateDocument | None:
        return next(iter(self._read(replace(question, newest=True, limit=1), what)), None)

    # -- the system ---------------------------------------------------------------------------------------------------
    def _system(self) -> dict[str, Any]:
        headers = self._read(self._question("system_state"), "iterations")
        last = replace(self._question("state_update"), iterations=()) if self._request.present else None
        update = self._newest(last or self._question("state_update"), "state updates")
        state: dict[str, Any] = {}
        if headers:
            state |= {key: headers[-1].values[key] for key in _OWN if key in headers[-1].values}
        if self._summary:
            question = self._question()
            counts = self._index.counts(question.iterations, question.start, question.end)
            state |= {"iterations": len(headers), "counts": counts}
            said = update.values if update is not None else {}
            state |= {key: said[key] for key in ("timestamp", "system_statistics") if key in said}
            found = _latest_versions(self._find(self._versions(), "hypotheses")).values()
            return state | {"hypotheses_by_state": dict(sorted(Counter(row.facts.state for row in found).items()))}
        if update is not None:
            state = {"iteration": update.facts.iteration} | state | update.values
        if self._full:
            updates = self._last(self._question("state_update"), PRESENT_OUTPUTS, "state updates")
            state["updates"] = [one.values for one in updates]
            state["iterations"] = [{key: one.values[key] for key in _OWN if key in one.values} for one in headers]
        return state

    # -- agents -------------------------------------------------------------------------------------------------------
    def _agents(self) -> dict[str, dict[str, Any]]:
        names = list(self._request.agents)
        if not names and self._request.present:
            names = self._index.agents(("agent_output", "continuation"))
        elif not names:
            rows = self._find(self._question("agent_output", "continuation"), "agents' documents")
            names = sorted({row.facts.agent for row in rows if row.facts.agent})
        if self._summary:
            return metrics.agents(self._find(self._question("agent_output", agents=tuple(names)), "outputs"), names)
        states = {}
        for number, name in enumerate(names):
            if self._deadline.passed:
                self._late(f"the states of {len(names) - number} of {len(names)} agents were not read in time")
                break
            state = self._agent(name)
            if state:
                states[name] = state
            elif self._request.agents:
                self.missing.append(f"nothing is stored of the agent {name!r}{self._where()}")
        return states

    def _agent(self, name: str) -> dict[str, Any]:
        """The last state of an agent; at present, of whichever iteration."""
        scope = state_facts.StateQuery() if self._request.present else self._question()
        of_agent = replace(scope, agents=(name,))
        last = self._newest(replace(of_agent, kinds=("agent_output",)), f"outputs of {name}")
        stateful = replace(of_agent, kinds=("agent_output",), states=(state_facts.STATEFUL,))
        kept = [
            self._newest(stateful, f"states of {name}"),
            self._newest(replace(of_agent, kinds=("continuation",)), f"states of {name}"),
        ]
        state: dict[str, Any] = {}
        if internal := max((one for one in kept if one is not None), key=lambda one: one.facts.moment, default=None):
            values, is_token = internal.values, internal.facts.kind == "continuation"
            of_output = state_facts.as_mapping(values.get("state_data"))
            state["internal_state"] = values.get("state") if is_token else of_output.get("internal_state")
            state["task_id"] = internal.facts.task
        if last is not None:
            state["last_output"] = last.values
            state["iteration"] = last.facts.iteration
        if self._full and state:
            question = self._question("agent_output", agents=(name,))
            outputs = self._last(question, PRESENT_OUTPUTS, f"outputs of {name}")
            state["outputs"] = [one.values for one in outputs]
        return state

    # -- hypotheses, tournament, feedback -----------------------------------------------------------------------------
    def _hypotheses(self) -> list[dict[str, Any]]:
        request = self._request
        if self._summary:
            return []
        question = self._versions(hypotheses=request.hypotheses, agents=request.agents)
        if request.present:
            question = replace(question, iterations=())
        found = self._last(question, PRESENT_HYPOTHESES, "hypotheses")
        latest = _latest_versions(found)
        for name in request.hypotheses:
            if name not in latest and not self.late:
                self.missing.append(f"there is no hypothesis {name!r}{self._where()}")
        chosen = found if self._full and not request.present else latest.values()
        ordered = sorted(chosen, key=lambda one: (one.facts.name, *state_facts.version_order(one.facts)))
        return [one.values for one in ordered]

    def _versions(self, **more: Any) -> state_facts.StateQuery:
        """A question for hypotheses: the current ones; each of their versions where all is wanted, or a moment that is
        over: what was there by then may have changed within its iteration since.
        """
        request = self._request
        earlier = request.end is not None or (self._full and not request.present)
        return self._question(*(HYPOTHESIS_KINDS if earlier else ("hypothesis",)), **more)

    def _tournament(self) -> dict[str, Any]:
        request = self._request
        question = self._question("tournament_result", hypotheses=request.hypotheses)
        if self._summary:
            rows = self._find(question, "tournament results")
            return {"count": len(rows), "participants": len({name for row in rows for name in row.facts.hypotheses})}
        if request.present:
            question = replace(question, iterations=())
        results = [one.values for one in self._last(question, PRESENT_HYPOTHESES, "tournament results")]
        return {"count": len(results), "standings": metrics.standings(results), "results": results}

    def _feedback(self) -> list[dict[str, Any]]:
        request = self._request
        question = self._question("meta_review", agents=request.agents)
        if request.present:
            question = replace(question, iterations=(), newest=True, limit=PRESENT_REVIEWS)
        found = self._read(question, "meta-reviews")
        reviews = [one.values for one in (found[::-1] if request.present else found)]
        return [metrics.review(one) for one in reviews] if self._summary else reviews

    # -- components and figures ---------------------------------------------------------------------------------------
    def _add_components(self, system: dict[str, Any], agents: dict[str, dict[str, Any]]) -> None:
        """What is stored under names that are no section: agents, and parts that a state update names."""
        for name in self._request.components:
            scope = replace(state_facts.StateQuery() if self._request.present else self._question(), components=(name,))
            update = self._newest(replace(scope, kinds=("state_update",)), f"state updates about {name}")
            if update is not None:
                system.setdefault("components", {})[name] = metrics.component(name, update.values)
            state = agents.get(name) or self._agent(name)
            if state:
                agents[name] = state
            if update is None and not state:
                self.missing.append(f"nothing is stored of the component {name!r}{self._where()}")

    def _add_metrics(self, system: dict[str, Any], agents: dict[str, dict[str, Any]]) -> None:
        if not self._request.metrics:
            return
        if self._deadline.passed:
            self._late(f"the figures {', '.join(self._request.metrics)} were not read in time")
            return
        question = self._question(metrics=self._request.metrics)
        whose = (*self._request.agents, "") if self._request.agents else None
        found = self._index.metrics(self._request.metrics, whose, question.iterations, question.start, question.end)
        for metric in found:
            holder = agents.setdefault(metric.agent, {}) if metric.agent else system
            figure: dict[str, Any] = {"value": metric.value, "iteration": metric.iteration}
            if metric.timestamp is not None:
                figure["timestamp"] = format_time(metric.timestamp)
                self.moments.append(metric.timestamp)
            holder.setdefault("metrics", {}).setdefault(metric.name, []).append(figure)
        for name in self._request.metrics:
            if all(metric.name != name for metric in found):
                self.missing.append(f"nothing measures {name!r}{self._where()}")

    def _where(self) -> str:
        """In which iterations nothing was found, for sentences."""
        request = self._request
        if request.iterations:
            return f" in the iterations {', '.join(map(str, request.iterations))}"
        return "" if request.present else " in that time"


def _latest_versions(found: Iterable[Any]) -> dict[str, Any]:
    """Of rows or documents of hypotheses, the last version of each."""
    ordered = sorted(found, key=lambda one: state_facts.version_order(one.facts))
    return {one.facts.name: one for one in ordered}


_LOOK_LATE = "not every file was looked at in time: what others changed just now may be missing"


class Retrieval:
    """Answers questions for the state of one workspace's system. May be used from several threads."""

    def __init__(self, reader: StateReader, seconds: float | None = None) -> None:
        """``seconds``: how long an answer takes where the question does not say; None for as long as it needs."""
        self._reader = reader
        self._default = seconds

    def retrieve(self, request_type: str = "full", *, deadline: float | None = None, **narrowed: Any) -> RetrievedState:
        """The state that was asked for.

        Without ``start``, ``end`` and ``iterations`` it is the present: the newest iteration, the last state update and
        the last state of every agent from whichever iteration, the last 100 hypotheses as they are, the last 100
        tournament results and the last ten meta-reviews.

        Args:
            request_type, narrowed: as for ``wanted_of``.
            deadline: seconds after which what there is comes back, with sentences that say what is missing;
                ``math.inf`` for all of it, however long that takes. By default what the settings say.

        Raises:
            QueryInvalid: naming the argument that makes no sense.
        """
        request = wanted_of(request_type, **narrowed)
        if self._reader.files.revision is not None:
            self._reader.catch_up()  # reading all of the past once is no part of an answer's time
        if deadline is None:
            deadline = self._default
        elif isinstance(deadline, bool) or not isinstance(deadline, int | float) or not deadline >= 0:
            hint = "give seconds, 0 or more, or math.inf"
            raise QueryInvalid(f"{deadline!r} is not a time limit", field="deadline", hint=hint)
        limit = Deadline(None if deadline is None or math.isinf(deadline) else float(deadline))
        looked = self._reader.catch_up(Deadline(limit.seconds and limit.seconds / 2))  # the rest is for reading
        collector = StateCollector(self._reader, request, limit)
        content, missing = collector.content(), collector.missing
        if not looked:
            missing.append(_LOOK_LATE)
        if collector.late or not looked:
            missing.append(f"the {limit.seconds:g} s for this answer were over: a longer deadline finds more")
        parts, behind = self._reader.parts, dict[str, Any]()
        if self._reader.files.revision is None:  # how far what is only eventually consistent is behind
            behind["uncommitted_writes"] = len(parts.journal.operations())
            if (entry := parts.seen.entry(aggregate_path("research_progress"))) is not None:
                behind["aggregates_seconds"] = max(0.0, round(time.time() - entry.mtime_ns / 1e9, 3))
        # what was asked for; on a side that was left open, the first or last moment of what was found
        first = request.start or min(collector.moments, default=None)
        last = request.end or max(collector.moments, default=None)
        return RetrievedState(
            request_type=request.request_type,
            timestamp_range=(Moment.of(first) if first else None, Moment.of(last) if last else None),
            content=RetrievedContent(**content),
            partial=bool(missing),
            missing=tuple(missing),
            behind=behind,
        )

    def cache_statistics(self) -> Mapping[str, Any]:
        """How often this process had parsed a document before when it was read: ``hits``, ``misses``, ``rate`` of hits;
        and how many ``documents`` it keeps so.
        """
        self._reader.parts.require_open()
        cache = self._reader.files.parsed.cache_info()
        lookups = cache.hits + cache.misses
        rate = round(cache.hits / lookups, 4) if lookups else 0.0
        return {"hits": cache.hits, "misses": cache.misses, "rate": rate, "documents": cache.currsize}


_AT_ONCE = 200
_MOST_TEXTS = 20_000
_MOST_CHARACTERS = 1 << 20
_EXCERPT = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateHit(Shape):
    """A state document that holds words that were asked for.

    Attributes:
        path: where it is, or lay before it was archived.
        kind: which sort of document it is, such as ``agent_output``.
        score: how well it answers; comparable within one answer only.
        archive: the archive that holds it, "" for one that is in the tree.
        excerpt: the text in it that answers best, cut to 200 characters.
        document: all it holds.
    """

    path: str
    kind: str
    score: float
    iteration: int | None = None
    timestamp: datetime | None = None
    archive: str = ""
    excerpt: str = ""
    document: Free = field(default_factory=dict)


def search_states(
    reader: StateReader,
    text: str,
    limit: int = 10,
    *,
    kinds: Sequence[str] = (),
    agents: Sequence[str] = (),
    iterations: Sequence[int] = (),
    start: datetime | str | None = None,
    end: datetime | str | None = None,
) -> list[StateHit]:
    """The state documents that hold some of the words of a text, the best first.

    Args:
        text: natural words; one shared stem is enough.
        limit: how many at most.
        kinds, agents, iterations: only these.
        start, end: only documents with a time from and until these.

    Raises:
        QueryInvalid: there is no word in the text, or a time makes no sense.
    """
    terms = list(weights(text))
    if not terms:
        raise QueryInvalid("there is no word to search for", field="text", hint="give words of the documents")
    question = state_facts.StateQuery(
        kinds=tuple(kinds),
        agents=tuple(agents),
        iterations=tuple(iterations),
        start=moment("start", start),
        end=moment("end", end, end=True),
        limit=max(limit, 0),
    )
    reader.catch_up()
    scores: dict[str, float] = {}

    def found() -> list[state_facts.StateRow]:
        before: list[state_facts.StateRow] = []
        # the words of every document that came or changed since the last search
        while (rows := reader.index.without_words(_AT_ONCE)) and rows != before:
            words = []
            for row in rows:
                try:
                    values = reader.load(row)
                except UNREADABLE:  # it is looked at again when it has changed
                    values = {}
                texts = islice(state_facts.texts(values), _MOST_TEXTS)
                words.append((row, " ".join(analyzer.terms("\n".join(texts)[:_MOST_CHARACTERS]))))
            reader.index.learn_words(words)
            before = rows
        ranked = reader.index.matching(terms, question)
        scores.update((row.path, score) for row, score in ranked)
        return [row for row, _ in ranked]

    hits, asked = [], set(terms)
    for one in reader.answered(found).documents:
        texts = islice(state_facts.texts(one.values), _MOST_TEXTS)
        best = max(texts, key=lambda text: len(asked.intersection(analyzer.terms(text[:_MOST_CHARACTERS]))), default="")
        excerpt = " ".join(best.split())
        hit = StateHit(
            path=one.facts.path,
            kind=one.facts.kind,
            score=round(scores[one.row.path], 6),
            iteration=one.facts.iteration,
            timestamp=one.facts.timestamp,
            archive=one.row.archive,
            excerpt=excerpt if len(excerpt) <= _EXCERPT else f"{excerpt[: _EXCERPT - 3]}...",
            document=one.values,
        )
        hits.append(hit)
    return hits


_NEAREST = 16
_COMPARED = 64

_Figures = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilarState(Shape):
    """A past state, and how like it is.

    Attributes:
        path: of the state update.
        score: from 0, nothing alike, to 1, all the same.
        state: the update itself.
    """

    path: str
    score: float
    iteration: int | None = None
    timestamp: datetime | None = None
    state: Free


def find_similar_states(reader: StateReader, state: Mapping[str, Any], limit: int = 5) -> list[SimilarState]:
    """Past states like a given one, the likest first; among equals the newest.

    Compared are those that come nearest in one figure, whatever their number: among thousands one that is a little off
    in every figure may be passed over.

    Args:
        state: a state update, or as much of one: ``system_statistics``, ``orchestration_state``. Other figures, as in
            a plain mapping, count as those of ``system_statistics``. An update that is stored is not found for itself.
        limit: how many at most.

    Returns:
        Those alike in anything, each with its ``score``.

    Raises:
        QueryInvalid: there is nothing in the state to compare, or it is no mapping.
    """
    own = values = plain(state)
    if not isinstance(values, Mapping):
        raise QueryInvalid("expected keys and values", field="state", hint="give a state update")
    if "system_statistics" not in values and "orchestration_state" not in values:
        values = {"system_statistics": values}
    mine = state_facts.describe(update_path(0, utc_now()), values).fingerprint
    if not mine:
        raise QueryInvalid("there is no figure to compare", field="state", hint="give system_statistics")
    reader.catch_up()
    scores: dict[str, float] = {}

    def found() -> list[state_facts.StateRow]:
        # compared as wholes are those most alike in what the index found them by
        count = max(limit, 0) + 1
        near = reader.index.near(mine, max(_NEAREST, count))
        near = sorted(near, key=lambda one: (-likeness(mine, one.figures), -one.moment))
        candidates = reader.index.rows([one.key for one in near[: max(_COMPARED, 2 * count)]])
        alike = ((likeness(mine, row.facts.fingerprint), row) for row in candidates)
        ranked = sorted(alike, key=lambda pair: (-pair[0], -pair[1].facts.moment, pair[1].path))
        scores.update((row.path, score) for score, row in ranked)
        return [row for score, row in ranked if score > 0.0][:count]

    documents = reader.answered(found).documents
    similar = [
        SimilarState(
            path=one.facts.path,
            score=round(scores[one.row.path], 6),
            iteration=one.facts.iteration,
            timestamp=one.facts.timestamp,
            state=one.values,
        )
        for one in documents
        if one.values != own
    ]
    return similar[: max(limit, 0)]


def likeness(mine: _Figures, theirs: _Figures) -> float:
    """How like another state's figures are to one's, from 0 to 1: what the one lacks does not count."""
    return sum(_near(mine[name], theirs[name]) for name in mine.keys() & theirs.keys()) / len(mine)


def _near(a: float, b: float) -> float:
    """1 for equal figures, 0 for such as differ by as much as they are large."""
    size = max(abs(a), abs(b))
    return 1.0 if a == b else max(0.0, 1.0 - abs(a - b) / size)
