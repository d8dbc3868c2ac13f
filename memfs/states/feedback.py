"""Feedback: what the meta-review says, for everybody and for one agent's prompt (seed 001; S4, S5).

Owns which review counts as the latest, and the record of what an agent was given. How a review becomes sentences and a
text is the business of ``recommendations`` and ``prompting``; what came of it is ``effectiveness``'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from memfs.errors import (
    Conflict,
    ContentError,
    CorruptRecord,
    IterationInvalid,
    MemfsError,
    QueryInvalid,
    StorageIO,
)
from memfs.files.decoding import decode
from memfs.model.insights import AgentFeedback, FeedbackEffect
from memfs.model.statepaths import feedback_path, meta_review_path, system_state_path
from memfs.model.statequery import Question
from memfs.model.states import FeedbackContent, FeedbackData
from memfs.model.time import format_time
from memfs.states.contention import settled
from memfs.states.effectiveness import Given, compared, measured
from memfs.states.patterns import patterns_of, told
from memfs.states.prompting import Prompt, built_in, render
from memfs.states.recommendations import content_of, name_in, version_of
from memfs.store.statefiles import Change
from memfs.trust import FEEDBACK_TEMPLATE, UNQUOTED, command, standing

if TYPE_CHECKING:
    from memfs.states.aggregates import Aggregates
    from memfs.states.reading import StateReading
    from memfs.store.parts import Parts
    from memfs.store.statefiles import StateFiles

LATEST = "latest"
_SOURCE = "feedback"
_TEMPLATE_LIMIT = 64 << 10
_LONGEST_NAME = 1_000
_TRIES = 5
_RECENT = 20
_ACTIVE = ("agent_output", "hypothesis", "state_update")
_MOST_EARLIER = 100
_UNREADABLE = (ContentError, CorruptRecord, FileNotFoundError)


class Feedback:
    """The feedback of one workspace. May be used from several threads."""

    def __init__(self, files: StateFiles, reading: StateReading, aggregates: Aggregates, parts: Parts) -> None:
        self._files = files
        self._reading = reading
        self._aggregates = aggregates
        self._parts = parts

    def get(self, iteration: int | str = LATEST, agent_type: str | None = None) -> FeedbackData:
        """What the meta-review of an iteration recommends (S4).

        Args:
            iteration: its number, or "latest": the newest that has a meta-review, open or closed.
            agent_type: leave out what is said to other agents.

        Returns:
            The feedback; empty, with ``version`` "", where there is no review.

        Raises:
            QueryInvalid: ``iteration`` is neither a number nor "latest".
            IterationInvalid: there is no such iteration.
            ContentError, CorruptRecord: the review cannot be read.
        """
        number = self._number(iteration)
        if agent_type is not None:
            _check_agent(agent_type, "agent_type")
        review = {} if number is None else self._review(number)
        content = content_of(review)
        if agent_type is not None:
            name = name_in(content.agent_specific, agent_type)
            only = {name: content.agent_specific[name]} if name else {}
            content = FeedbackContent.from_dict({**content, "agent_specific": only})
        return FeedbackData(
            iteration_requested=LATEST if iteration == LATEST or number is None else number,
            agent_type=agent_type,
            feedback_content=content,
            iteration=number if review else None,
            version=version_of(review),
        )

    def for_agent(self, agent: str, *, record: bool = True, most: int | None = None) -> AgentFeedback:
        """What an agent is to be told at the start of its work, as a text for its prompt (S5).

        It comes from the newest meta-review, open or closed iteration. That this version was given is recorded once in
        the newest iteration that is open, or else the newest; a failure to record is a remark and keeps nothing back.

        Args:
            agent: its name. It may be written in another case, or without "agent", than the agent's outputs or the
                review have it, as long as only one can be meant.
            record: whether to record it.
            most: so many points at most, those for this agent first; None for all.

        Raises:
            QueryInvalid: there is no name.
        """
        _check_agent(agent, "agent")
        remarks: list[str] = []
        number, review = self._newest(remarks)
        known = self._reading.index.agents(_ACTIVE)
        given = AgentFeedback(agent=name_in(known, agent) or agent, iteration=self._place())
        if not review:
            return AgentFeedback.from_dict({**given, "remarks": tuple(remarks)})
        prompt = self._prompt(remarks)
        content = content_of(review)
        name = name_in(content.agent_specific, agent)
        values: dict[str, Any] = {
            "version": version_of(review),
            "template_version": prompt.version,
            "from_iteration": number,
        }
        given = AgentFeedback.from_dict({**given, **values})
        parts: dict[str, Sequence[Any]] = {
            "agent_specific": content.agent_specific[name] if name else (),
            "general": content.general_recommendations,
            "priorities": content.priority_improvements,
            "patterns": [told(one) for one in patterns_of(review)],
        }
        text = render(prompt, given, parts if most is None else _first(parts, most))
        if not text:
            said = f"the meta-review of iteration {number} says nothing to {given.agent}"
            return AgentFeedback.from_dict({**given, "remarks": (*remarks, said)})
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        given = AgentFeedback.from_dict({**given, "text": text, "text_sha256": digest})
        recorded = self._recorded(given, remarks) if record else {}
        return AgentFeedback.from_dict({**given, **recorded, "remarks": tuple(remarks)})

    def effectiveness(
        self, agent: str | None = None, iterations: Sequence[int] | None = None
    ) -> tuple[FeedbackEffect, ...]:
        """How agents did after each version of their feedback, against before (S5).

        Args:
            agent: only this one.
            iterations: only feedback that was given in these.
        """
        numbers = [row.number for row in self._reading.iterations()]
        plans = compared(self._given(agent, iterations or ()), numbers)
        needed = sorted({number for plan in plans for number in (*plan.before, *plan.after)})
        agents = self._aggregates.agents(needed)
        return tuple(measured(plan, agents) for plan in plans)

    def versions(self, agent: str, iterations: Sequence[int]) -> dict[int, str]:
        """The version of the feedback that an agent was last given in each of these iterations."""
        self._parts.require_open()
        found: dict[int, Given] = {}
        for one in self._given(agent, iterations) if iterations else ():
            if one.iteration not in found or found[one.iteration].order < one.order:
                found[one.iteration] = one
        return {number: one.version for number, one in found.items()}

    # -- which review ---------------------------------------------------------------------------------------------
    def _number(self, iteration: int | str) -> int | None:
        if iteration == LATEST:
            return next(self._reviewed(), None)
        if isinstance(iteration, str) and iteration.isdecimal() and len(iteration) <= 12:
            iteration = int(iteration)
        if isinstance(iteration, bool) or not isinstance(iteration, int):
            hint = f"give the number of an iteration, or {LATEST!r}"
            raise QueryInvalid(f"{iteration!r} is no iteration", field="iteration", hint=hint)
        known = [row.number for row in self._reading.iterations()]
        if iteration not in known:
            hint = f"the newest is {known[-1]}" if known else "none was started yet"
            raise IterationInvalid(f"there is no iteration {iteration}", field="iteration", hint=hint)
        return iteration

    def _reviewed(self) -> Iterator[int]:
        """The iterations that have a meta-review, the newest first; the newest are asked for by themselves."""
        newest = self._reading.latest_iteration()
        if newest is None:
            return
        recent = tuple(range(max(newest - _RECENT, 0), newest + 1))
        yield from self._reviews_in(recent)
        yield from (number for number in self._reviews_in(()) if number < recent[0])

    def _reviews_in(self, iterations: tuple[int, ...]) -> list[int]:
        rows = self._reading.rows(Question(kinds=("meta_review",), iterations=iterations))
        return sorted({row.facts.iteration for row in rows if row.facts.iteration is not None}, reverse=True)

    def _review(self, number: int) -> dict[str, Any]:
        try:
            return self._reading.load(meta_review_path(number))
        except FileNotFoundError:
            return {}

    def _newest(self, remarks: list[str]) -> tuple[int | None, dict[str, Any]]:
        """The newest review that can be read: an agent is better told what was said before than nothing."""
        for number in islice(self._reviewed(), _TRIES):
            try:
                if review := self._review(number):
                    return number, review
            except _UNREADABLE as error:
                remarks.append(f"the review of iteration {number} cannot be read, an earlier one is used: {error}")
        return None, {}

    # -- the record -----------------------------------------------------------------------------------------------
    def _place(self) -> int | None:
        """The iteration in which something is given now: the newest that is open, or else the newest."""
        number = self._reading.open_iteration()
        return self._reading.latest_iteration() if number is None else number

    def _recorded(self, given: AgentFeedback, remarks: list[str]) -> dict[str, Any]:
        """Record that the feedback was given, once for each version in an iteration; what is known of it then."""
        if given.iteration is None or not self._files.exists(system_state_path(given.iteration)):
            remarks.append(
                f"that it was given is not recorded: no iteration is open, and {given.iteration}, the newest, is "
                "archived; 'memfs iteration start' opens the next one"
            )
            return {}  # what is archived stays as it is
        path = feedback_path(given.iteration, given.agent)
        try:
            moment = settled(lambda: self._noted(path, given))
        except (StorageIO, Conflict, ContentError) as error:
            remarks.append(f"that it was given could not be recorded: {error}")
            return {}
        return {"given": moment, "recorded": True, "path": path}

    def _noted(self, path: str, given: AgentFeedback) -> str:
        names = ("version", "template_version", "from_iteration")
        try:
            state = self._files.read(path)
            known, expected = state.values, state.sha256
        except FileNotFoundError:
            known, expected = {}, ""
        if known and all(known.get(name) == given[name] for name in names):
            return str(known["given"])
        values = {name: given[name] for name in ("agent", "iteration", *names, "text_sha256")}
        values["given"] = format_time(self._parts.clock())
        if known:
            before = {name: known[name] for name in (*names, "given") if name in known}
            values["earlier"] = [*known.get("earlier", []), before][-_MOST_EARLIER:]
        message = f"Give feedback {given.version} to {given.agent[:100]}"
        self._files.write([Change(path, values, expected)], message, source=_SOURCE)
        return str(values["given"])

    def _given(self, agent: str | None, iterations: Sequence[int]) -> Iterator[Given]:
        """What the records say, by the names under which agents store their outputs."""
        self._reading.catch_up()
        told = self._reading.index.agents(("feedback",))
        known = self._reading.index.agents(_ACTIVE)
        names = {name: name_in(known, name) or name for name in told}
        if agent is not None:
            _check_agent(agent, "agent")
            own = name_in(known, agent) or agent
            names = {name: real for name, real in names.items() if own in (name, real)}
        if not names:
            return
        wanted = Question(kinds=("feedback",), agents=tuple(names), iterations=tuple(iterations))
        for row in self._reading.rows(wanted):
            try:
                values = self._reading.load(row)
            except _UNREADABLE:
                continue
            yield from _given_by(values, names.get(row.facts.agent, row.facts.agent), row.facts.iteration or 0)

    # -- the template ---------------------------------------------------------------------------------------------
    def _prompt(self, remarks: list[str]) -> Prompt:
        """The workspace's own template, where it has one that can be used."""
        try:
            data = self._parts.seen.read(FEEDBACK_TEMPLATE, _TEMPLATE_LIMIT).data
        except FileNotFoundError:
            return built_in()
        except MemfsError as error:
            remarks.append(f"the built-in template is used: {error}")
            return built_in()
        root = self._parts.tree.root
        trusted = standing(root).value(FEEDBACK_TEMPLATE, UNQUOTED) == hashlib.sha256(data).hexdigest()
        try:
            prompt = Prompt(text=decode(data).text, path=FEEDBACK_TEMPLATE, vouched=trusted)
        except ContentError as error:
            remarks.append(f"the built-in template is used: {error.located(FEEDBACK_TEMPLATE)}")
            return built_in()
        if prompt.problem:
            remarks.append(f"the built-in template is used: {prompt.problem}")
            return built_in()
        if not trusted:
            remarks.append(
                f"{FEEDBACK_TEMPLATE}: nobody vouched for its words, so they are quoted too; look at them, then: "
                f"{command(root)}"
            )
        return prompt


def _given_by(record: Mapping[str, Any], agent: str, iteration: int) -> Iterator[Given]:
    """What one record says that an agent was given, earlier versions first."""
    earlier = record.get("earlier")
    for order, one in enumerate([*(earlier if isinstance(earlier, list) else []), record]):
        if isinstance(one, Mapping) and isinstance(one.get("from_iteration"), int) and one.get("version"):
            yield Given(
                agent=agent,
                version=str(one["version"]),
                from_iteration=one["from_iteration"],
                iteration=iteration,
                order=order,
            )


def _first(parts: Mapping[str, Sequence[Any]], most: int) -> dict[str, Sequence[Any]]:
    """The first points of all parts together."""
    kept: dict[str, Sequence[Any]] = {}
    for name, points in parts.items():
        kept[name] = points[:most]
        most -= len(kept[name])
    return kept


def _check_agent(agent: object, field: str) -> None:
    if not isinstance(agent, str) or not agent.strip() or len(agent) > _LONGEST_NAME:
        raise QueryInvalid("expected the name of an agent", field=field, hint="give its name as it is stored")
