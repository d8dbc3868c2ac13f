"""State answering: what an answer to a question for the system's state is made of (S3, S14).

Owns which documents belong into which part of the answer, what a summary says of them, and what is said to be missing.
Takes notes of everything it looked at, so that whoever keeps the answer can tell when it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from memfs.model.statefacts import STATEFUL, version_order
from memfs.model.statepaths import HYPOTHESIS_KINDS
from memfs.model.statequery import Question, Row
from memfs.model.time import format_time
from memfs.pipeline.deadline import Deadline
from memfs.states import summing
from memfs.states.reading import Document, Gathered, Proof, StateReading
from memfs.states.wanted import AGENTS, FEEDBACK, HYPOTHESES, SYSTEM, TOURNAMENT, Wanted

PRESENT_REVIEWS = 10
PRESENT_HYPOTHESES = 100
PRESENT_OUTPUTS = 50
"""How many the present has: of reviews; of hypotheses and of results; of state updates and of an agent's outputs."""

_OWN = ("iteration", "status", "opened", "closed", "statistics")


@dataclass(slots=True)
class Notes:
    """What an answer rests on.

    Attributes:
        proofs: by path, what vouches for each document in it.
        questions: what was asked of the index.
        missing: what it lacks, a sentence each; ``late`` if only for want of time.
    """

    proofs: dict[str, Proof] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    moments: list[datetime] = field(default_factory=list)
    late: bool = False


class Answering:
    """Makes one answer."""

    def __init__(self, reading: StateReading, wanted: Wanted, deadline: Deadline) -> None:
        self._reading = reading
        self._index = reading.index
        self._wanted = wanted
        self._deadline = deadline
        self.notes = Notes()
        self.newest = self._index.newest_iteration()

    def content(self) -> dict[str, Any]:
        """The content of the answer, as plain values."""
        wanted = self._wanted
        self._miss_iterations()
        system = self._system() if SYSTEM in wanted.sections else {}
        agents = self._agents() if AGENTS in wanted.sections else {}
        self._add_components(system, agents)
        hypotheses = self._hypotheses() if HYPOTHESES in wanted.sections else []
        tournament = self._tournament() if TOURNAMENT in wanted.sections else {}
        feedback = self._feedback() if FEEDBACK in wanted.sections else []
        self._add_metrics(system, agents)
        return {
            "system_state": system,
            "agent_states": agents,
            "hypothesis_data": hypotheses,
            "tournament_results": tournament,
            "feedback_history": feedback,
        }

    # -- asking -------------------------------------------------------------------------------------------------------
    def _question(self, *kinds: str, **more: Any) -> Question:
        """A question within what is wanted; the present is the newest iteration."""
        wanted = self._wanted
        iterations = wanted.iterations
        if wanted.present and self.newest is not None:
            iterations = (self.newest,)
        given = {"start": wanted.start, "end": wanted.end, "iterations": iterations, **more}
        return Question(kinds=kinds, **given)

    def _find(self, question: Question, what: str) -> list[Row]:
        """What is known of the documents for a question, as far as there is time."""
        self.notes.questions.append(question)
        found = self._index.found(question)
        rows = list(takewhile(lambda _: not self._deadline.passed, found))
        if len(rows) < len(found):
            self._late(f"{len(found) - len(rows)} of {len(found)} {what} were not counted in time")
        return rows

    def _read(self, question: Question, what: str) -> list[Document]:
        """The documents for a question, and notes of what could not be read."""
        self.notes.questions.append(question)
        if self._deadline.passed:
            self._late(f"the {what} were not read: the time was over")
            return []
        found = self._reading.gather(question, self._deadline)
        self._note(found, what)
        return list(found.documents)

    def _note(self, found: Gathered, what: str) -> None:
        for document in found.documents:
            self.notes.proofs[document.row.path] = document.proof
            if document.row.facts.timestamp is not None:
                self.notes.moments.append(document.row.facts.timestamp)
        self.notes.missing += [f"{path} cannot be read: {reason}" for path, reason in found.problems.items()]
        if found.unread:
            self._late(f"{found.unread} of {found.unread + len(found.documents)} {what} were not read in time")

    def _late(self, sentence: str) -> None:
        self.notes.late = True
        self.notes.missing.append(sentence)

    def _last(self, question: Question, most: int, what: str) -> list[Document]:
        """The documents for a question, oldest first; of the present only so many."""
        if not self._wanted.present:
            return self._read(question, what)
        found = self._read(replace(question, newest=True, limit=most + 1), what)
        if len(found) > most:
            sentence = f"only the last {most} {what} belong to the present: name iterations or times for the others"
            self.notes.missing.append(sentence)
        return found[:most][::-1]

    def _newest(self, question: Question, what: str) -> Document | None:
        return next(iter(self._read(replace(question, newest=True, limit=1), what)), None)

    def _miss_iterations(self) -> None:
        for number in self._wanted.iterations:
            if not self._index.counts((number,)):
                self.notes.missing.append(f"there is no iteration {number}")

    # -- the system ---------------------------------------------------------------------------------------------------
    def _system(self) -> dict[str, Any]:
        headers = self._read(self._question("system_state"), "iterations")
        last = replace(self._question("state_update"), iterations=()) if self._wanted.present else None
        update = self._newest(last or self._question("state_update"), "state updates")
        state: dict[str, Any] = {}
        if headers:
            state |= {key: headers[-1].values[key] for key in _OWN if key in headers[-1].values}
        if self._wanted.summary:
            return state | self._summed(update, len(headers))
        if update is not None:
            state = {"iteration": update.row.facts.iteration} | state | update.values
        if self._wanted.full:
            updates = self._last(self._question("state_update"), PRESENT_OUTPUTS, "state updates")
            state["updates"] = [one.values for one in updates]
            state["iterations"] = [{key: one.values[key] for key in _OWN if key in one.values} for one in headers]
        return state

    def _summed(self, update: Document | None, iterations: int) -> dict[str, Any]:
        question = self._question()
        self.notes.questions.append(question)
        counts = self._index.counts(question.iterations, question.start, question.end)
        summed: dict[str, Any] = {"iterations": iterations, "counts": counts}
        if update is not None:
            summed |= {key: update.values[key] for key in ("timestamp", "system_statistics") if key in update.values}
        hypotheses = _latest_versions(self._find(self._versions(), "hypotheses"))
        summed["hypotheses_by_state"] = summing.by_state(hypotheses)
        return summed

    # -- agents -------------------------------------------------------------------------------------------------------
    def _agents(self) -> dict[str, dict[str, Any]]:
        names = list(self._wanted.agents) or self._all_agents()
        if self._wanted.summary:
            return summing.agents(self._find(self._question("agent_output", agents=tuple(names)), "outputs"), names)
        states = {}
        for number, name in enumerate(names):
            if self._deadline.passed:
                self._late(f"the states of {len(names) - number} of {len(names)} agents were not read in time")
                break
            state = self._agent(name)
            if state:
                states[name] = state
            elif self._wanted.agents:
                self.notes.missing.append(f"nothing is stored of the agent {name!r}{self._where()}")
        return states

    def _all_agents(self) -> list[str]:
        if self._wanted.present:
            self.notes.questions.append(Question(kinds=("agent_output", "continuation")))
            return self._index.agents(("agent_output", "continuation"))
        rows = self._find(self._question("agent_output", "continuation"), "agents' documents")
        return sorted({row.facts.agent for row in rows if row.facts.agent})

    def _agent(self, name: str) -> dict[str, Any]:
        """The last state of an agent; at present, of whichever iteration."""
        scope = Question() if self._wanted.present else self._question()
        of_agent = replace(scope, agents=(name,))
        last = self._newest(replace(of_agent, kinds=("agent_output",)), f"outputs of {name}")
        stateful = replace(of_agent, kinds=("agent_output",), states=(STATEFUL,))
        kept = [
            self._newest(stateful, f"states of {name}"),
            self._newest(replace(of_agent, kinds=("continuation",)), f"states of {name}"),
        ]
        state: dict[str, Any] = {}
        if internal := max((one for one in kept if one is not None), key=_moment, default=None):
            state["internal_state"] = _internal_state(internal)
            state["task_id"] = internal.row.facts.task
        if last is not None:
            state["last_output"] = last.values
            state["iteration"] = last.row.facts.iteration
        if self._wanted.full and state:
            question = self._question("agent_output", agents=(name,))
            outputs = self._last(question, PRESENT_OUTPUTS, f"outputs of {name}")
            state["outputs"] = [one.values for one in outputs]
        return state

    # -- hypotheses, tournament, feedback -----------------------------------------------------------------------------
    def _hypotheses(self) -> list[dict[str, Any]]:
        wanted = self._wanted
        if wanted.summary:
            return []
        question = self._versions(hypotheses=wanted.hypotheses, agents=wanted.agents)
        if wanted.present:
            question = replace(question, iterations=())
        found = self._last(question, PRESENT_HYPOTHESES, "hypotheses")
        latest = _latest_versions(found)
        for name in wanted.hypotheses:
            if name not in latest and not self.notes.late:
                self.notes.missing.append(f"there is no hypothesis {name!r}{self._where()}")
        chosen = sorted(found if wanted.full and not wanted.present else latest.values(), key=_version)
        return [one.values for one in chosen]

    def _versions(self, **more: Any) -> Question:
        """A question for hypotheses: those that stand; each of their versions where all is wanted, or a moment that is
        over: what stood by then may have changed within its iteration since.
        """
        wanted = self._wanted
        earlier = wanted.end is not None or (wanted.full and not wanted.present)
        return self._question(*(HYPOTHESIS_KINDS if earlier else ("hypothesis",)), **more)

    def _tournament(self) -> dict[str, Any]:
        wanted = self._wanted
        question = self._question("tournament_result", hypotheses=wanted.hypotheses)
        if wanted.summary:
            rows = self._find(question, "tournament results")
            return {"count": len(rows), "participants": len({name for row in rows for name in row.facts.hypotheses})}
        if wanted.present:
            question = replace(question, iterations=())
        found = self._last(question, PRESENT_HYPOTHESES, "tournament results")
        results = [one.values for one in found]
        return {"count": len(results), "standings": summing.standings(results), "results": results}

    def _feedback(self) -> list[dict[str, Any]]:
        wanted = self._wanted
        question = self._question("meta_review", agents=wanted.agents)
        if wanted.present:
            question = replace(question, iterations=(), newest=True, limit=PRESENT_REVIEWS)
        found = self._read(question, "meta-reviews")
        reviews = [one.values for one in (found[::-1] if wanted.present else found)]
        return [summing.review(one) for one in reviews] if wanted.summary else reviews

    # -- components and figures ---------------------------------------------------------------------------------------
    def _add_components(self, system: dict[str, Any], agents: dict[str, dict[str, Any]]) -> None:
        """What is stored under names that are no section: agents, and parts that a state update tells of."""
        for name in self._wanted.components:
            if self._deadline.passed:
                self._late(f"the component {name!r} was not read in time")
                continue
            scope = replace(Question() if self._wanted.present else self._question(), components=(name,))
            update = self._newest(replace(scope, kinds=("state_update",)), f"state updates about {name}")
            if update is not None:
                system.setdefault("components", {})[name] = summing.component(name, update.values)
            state = agents.get(name) or self._agent(name)
            if state:
                agents[name] = state
            if update is None and not state:
                self.notes.missing.append(f"nothing is stored of the component {name!r}{self._where()}")

    def _add_metrics(self, system: dict[str, Any], agents: dict[str, dict[str, Any]]) -> None:
        if not self._wanted.metrics:
            return
        if self._deadline.passed:
            self._late(f"the figures {', '.join(self._wanted.metrics)} were not read in time")
            return
        question = self._question(metrics=self._wanted.metrics)
        self.notes.questions.append(question)
        whose = (*self._wanted.agents, "") if self._wanted.agents else None
        found = self._index.metrics(self._wanted.metrics, whose, question.iterations, question.start, question.end)
        for one in found:
            holder = agents.setdefault(one.agent, {}) if one.agent else system
            figure: dict[str, Any] = {"value": one.value, "iteration": one.iteration}
            if one.timestamp is not None:
                figure["timestamp"] = format_time(one.timestamp)
                self.notes.moments.append(one.timestamp)
            holder.setdefault("metrics", {}).setdefault(one.name, []).append(figure)
        for name in self._wanted.metrics:
            if all(one.name != name for one in found):
                self.notes.missing.append(f"nothing measures {name!r}{self._where()}")

    def _where(self) -> str:
        """In which iterations nothing was found, for sentences."""
        wanted = self._wanted
        if wanted.iterations:
            return f" in the iterations {', '.join(map(str, wanted.iterations))}"
        return "" if wanted.present else " in that time"


def _latest_versions(found: Iterable[Any]) -> dict[str, Any]:
    """Of rows or documents of hypotheses, the last version of each."""
    ordered = sorted(found, key=lambda one: version_order(_facts(one)))
    return {_facts(one).name: one for one in ordered}


def _version(document: Document) -> tuple[Any, ...]:
    facts = document.row.facts
    return facts.name, *version_order(facts)


def _facts(one: Any) -> Any:
    return one.row.facts if isinstance(one, Document) else one.facts


def _moment(document: Document) -> float:
    timestamp = document.row.facts.timestamp
    return timestamp.timestamp() if timestamp is not None else float("-inf")


def _internal_state(document: Document) -> Any:
    values: Mapping[str, Any] = document.values
    if document.row.facts.kind == "continuation":
        return values.get("state")
    data = values.get("state_data")
    return data.get("internal_state") if isinstance(data, Mapping) else None
