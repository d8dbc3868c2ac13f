"""The answers of the tools for the state of a multi-agent system: store, get, save, resume and feedback."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from memfs.doors.mcp.answer import ToolResult, quoted
from memfs.doors.mcp.memory_tools import Given
from memfs.doors.mcp.session import Desk
from memfs.errors import QueryInvalid
from memfs.model.kinds import nearest
from memfs.model.query import moment
from memfs.model.shape import plain
from memfs.store.plan import signed_by

if TYPE_CHECKING:
    from memfs.facades.agent_tools import Caller
    from memfs.model.state_documents import Acknowledgement

LARGEST = 60_000
"""How many characters of the state an answer holds."""
_NAMED = ("agents", "components", "hypotheses", "iterations", "metrics")
_KINDS = ("agent_output", "state_update", "meta_review", "hypothesis", "tournament_result")


def state_store(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``state_store``."""
    kind = given["kind"]
    if kind not in _KINDS:
        hint = nearest(kind, _KINDS) or f"use one of {', '.join(_KINDS)}"
        raise QueryInvalid(f"there is no kind {ascii(kind)[:60]}", field="kind", hint=hint)
    document = given["document"]
    if kind == "agent_output":
        document = {"agent_type": caller.agent, **document}
    base = given.get("base")
    if base is not None and kind != "hypothesis":
        raise QueryInvalid("only a hypothesis has one", field="base", hint="leave it out")
    states = desk.states(caller.session)
    with signed_by(caller.origin):
        ack: Acknowledgement = getattr(states, f"store_{kind}")(document, **({} if base is None else {"base": base}))
    names = ("path", "sha256", "continuation_token", "checkpoint_id", "checkpoint_problem", "conflicts")
    data = {name: plain(value) for name in names if (value := getattr(ack, name))}
    lines = [f"Stored {ack.path}."]
    if ack.continuation_token:
        lines.append(f"state_resume {ack.continuation_token} gives the task's state back.")
    if ack.checkpoint_id:
        lines.append(f"Checkpoint {ack.checkpoint_id}.")
    if ack.checkpoint_problem:
        lines.append(f"No checkpoint was made: {ack.checkpoint_problem}")
    if ack.conflicts:
        lines.append(f"Another writer's value was replaced in {', '.join(ack.conflicts)}; history keeps it.")
    return ToolResult("\n".join(lines), data)


def state_get(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``state_get``."""
    named = {name: given[name] for name in _NAMED if given.get(name)}
    if "iterations" in named:
        named["iterations"] = _numbers(named["iterations"])
    found = desk.states(caller.session).retrieve_state(
        given.get("request", "partial" if named else "summary"),
        start=moment("since", given.get("since")),
        end=moment("until", given.get("until"), end=True),
        **named,
    )
    data = plain(found.to_dict())
    text = json.dumps(data, indent=1, ensure_ascii=False)
    if len(text) > LARGEST:
        hint = "name agents, components, hypotheses or iterations, or ask for the request 'summary'"
        raise QueryInvalid(f"the answer has {len(text):,} characters, at most {LARGEST:,} are given", hint=hint)
    return ToolResult(quoted(text.split("\n")), data)


def state_save(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``state_save``."""
    agent = given.get("agent") or caller.agent
    with signed_by(caller.origin):
        token = desk.states(caller.session).save_continuation(agent, given["task"], given["state"])
    return ToolResult(f"Kept under {token}: state_resume gives it back.", {"token": token})


def state_resume(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``state_resume``."""
    state = plain(desk.states(caller.session).resume(given["token"]))
    text = json.dumps(state, indent=1, ensure_ascii=False)
    return ToolResult(quoted(text.split("\n")), {"token": given["token"], "state": state})


def state_feedback(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``state_feedback``."""
    agent = given.get("agent") or caller.agent
    states = desk.states(caller.session)
    if desk.read_only:  # that it was given is not recorded
        told = states.workspace.states.feedback.for_agent(agent, record=False)
    else:
        with signed_by(caller.origin):
            told = states.feedback_for(agent)
    data = {"agent": told.agent, "text": told.text, "version": told.version, "from_iteration": told.from_iteration}
    said = told.text or "\n".join([f"There is no feedback for {told.agent}.", *told.remarks])
    return ToolResult(said, {name: value for name, value in data.items() if value is not None})


def _numbers(texts: Iterable[str]) -> list[int]:
    found = []
    for text in texts:
        if not text.strip().isdecimal() or len(text) > 12:
            raise QueryInvalid(f"{ascii(text)[:60]} is no number", field="iterations", hint="give numbers, such as 3")
        found.append(int(text))
    return found
