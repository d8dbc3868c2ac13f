"""Steps for seed 001: state, checkpoints, tokens, feedback, archives (S1-S16), through public names only."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from memfs import (
    Acknowledgement,
    AgentOutput,
    ContextMemory,
    MetaReviewStorage,
    SchemaInvalid,
    StateUpdate,
    TokenInvalid,
)

scenarios("features/context_memory.feature")


class World:
    """A context memory, and what was reported by it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memory = ContextMemory(path)
        self.began = datetime.now(UTC)
        self.acknowledged: list[Acknowledgement] = []
        self.refused: SchemaInvalid | None = None
        self.token = ""

    def update(self, **fields: Any) -> None:
        """Store a state update."""
        self.acknowledged.append(self.memory.store_state_update(StateUpdate(**fields)))

    def output(self, agent: str, task: str) -> None:
        """Store an output."""
        results = {"primary_output": f"what came of {task}", "confidence_score": 0.8}
        self.acknowledged.append(
            self.memory.store_agent_output(AgentOutput(agent_type=agent, task_id=task, results=results))
        )

    def folder(self, iteration: int) -> Path:
        """Where an iteration is."""
        return self.path / "ContextMemory" / "iterations" / f"iteration_{iteration:03}"

    def documents(self) -> list[Path]:
        """Every state document."""
        return sorted((self.path / "ContextMemory" / "iterations").rglob("*.json"))


@pytest.fixture
def world(workspace_path: Path) -> World:
    """The context memory under test."""
    return World(workspace_path)


# -- given and when ------------------------------------------------------------------------------------------------
@given("a context memory")
def _(world: World) -> None:
    assert world.documents() == []


@given(parsers.parse("iteration {number:d} is open"))
@when(parsers.parse("iteration {number:d} is open"))
def _(world: World, number: int) -> None:
    assert world.memory.start_iteration(number).status == "open"


@when(parsers.parse("iteration {number:d} is closed"))
def _(world: World, number: int) -> None:
    assert world.memory.close_iteration(number).status == "closed"


@when(parsers.parse("the supervisor stores a periodic update with {count:d} hypotheses"))
def _(world: World, count: int) -> None:
    world.update(system_statistics={"total_hypotheses": count})


@when(parsers.parse('the supervisor stores a checkpoint update with the task "{task}" in flight'))
def _(world: World, task: str) -> None:
    world.update(update_type="checkpoint", checkpoint_data={"in_flight_tasks": [{"task_id": task}]})


@when(parsers.parse('the supervisor stores an update whose tournament progress is "{value}"'))
def _(world: World, value: str) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        world.update(system_statistics={"tournament_progress": value})
    world.refused = refused.value


@when(parsers.parse('the agent "{agent}" stores an output for the task "{task}"'))
def _(world: World, agent: str, task: str) -> None:
    world.output(agent, task)


@when(parsers.parse('the agent "{agent}" puts the task "{task}" down with a token'))
def _(world: World, agent: str, task: str) -> None:
    world.token = world.memory.save_continuation(agent, task, {"page": 7})


@when("a byte of the newest checkpoint is flipped")
def _(world: World) -> None:
    payload = world.path / "ContextMemory" / "checkpoints" / world.acknowledged[-1].checkpoint_id / "state.tar.zst"
    data = bytearray(payload.read_bytes())
    data[len(data) // 2] ^= 1
    payload.write_bytes(data)


@when(parsers.parse('the meta-review of iteration {number:d} tells "{agent}" to "{what}"'))
def _(world: World, number: int, agent: str, what: str) -> None:
    critique = {"agent_feedback": {agent: [what], "Nobody": ["rest"]}}
    world.acknowledged.append(
        world.memory.store_meta_review(MetaReviewStorage(iteration_number=number, critique=critique))
    )


@given(parsers.parse('the hypothesis "{name}" with {count:d} match'))
def _(world: World, name: str, count: int) -> None:
    world.memory.store_hypothesis({"id": name, "state": "ranked", "matches": count})


@when(parsers.parse('two handles each count another match of "{name}"'))
def _(world: World, name: str) -> None:
    handles = [ContextMemory(world.path), ContextMemory(world.path)]
    seen = [dict(one.retrieve_state("partial", hypotheses=[name]).content.hypothesis_data[0]) for one in handles]
    for handle, values in zip(handles, seen, strict=True):
        handle.store_hypothesis({**values, "matches": values["matches"] + 1}, base=values)


@given(parsers.parse("a policy that keeps closed iterations for {days:d} days"))
def _(world: World, days: int) -> None:
    path = world.path / "ContextMemory" / "configuration" / "retention_policy.json"
    path.write_text(json.dumps({"active_days": days}))


@when("what is due is archived")
def _(world: World) -> None:
    world.memory.archive()


# -- then ---------------------------------------------------------------------------------------------------------
@then("the acknowledgement names the document, its checksum, its bytes and how long storing took")
def _(world: World) -> None:
    for feedback in world.acknowledged:
        assert len((world.path / feedback.path).read_bytes()) == feedback.bytes
        assert (len(feedback.sha256), feedback.duration_ms > 0) == (64, True)


@then(parsers.parse("a summary of the state tells of {count:d} hypotheses"))
def _(world: World, count: int) -> None:
    assert f"'total_hypotheses': {count}" in str(world.memory.retrieve_state("summary").to_dict())


@then("both updates are found between the first and the last moment")
def _(world: World) -> None:
    found = world.memory.retrieve_state("full", start=world.began, end=datetime.now(UTC)).to_dict()
    assert all(f"'total_hypotheses': {count}" in str(found) for count in (3, 5))


@then(parsers.parse('the state of "{agent}" has that output'))
def _(world: World, agent: str) -> None:
    states = world.memory.retrieve_state("full").content.agent_states
    assert states[agent]["last_output"]["task_id"] == "Task/7"


@then("no other agent has a state")
def _(world: World) -> None:
    assert list(world.memory.retrieve_state("full").content.agent_states) == ["Evolution Agent"]


@then(parsers.parse('it is refused, naming "{field}"'))
def _(world: World, field: str) -> None:
    assert world.refused is not None
    assert world.refused.field == field


@then("nothing was stored")
def _(world: World) -> None:
    assert [path for path in world.documents() if path.name != "system_state.json"] == []


@then(parsers.parse('recovering names that checkpoint, with the task "{task}" to be done again'))
@then(parsers.parse('recovering names the earlier checkpoint, with the task "{task}" to be done again'))
def _(world: World, task: str) -> None:
    recovery = world.memory.recover()
    made = [feedback.checkpoint_id for feedback in world.acknowledged if feedback.checkpoint_id]
    assert recovery.checkpoint_id == made[0]
    assert [one["task_id"] for one in recovery.active_tasks] == [task]


@then("it says which checkpoint was rejected")
def _(world: World) -> None:
    assert list(world.memory.recover().data_integrity["rejected"]) == [world.acknowledged[-1].checkpoint_id]


@then(parsers.parse('the output for "{task}" is still there'))
def _(world: World, task: str) -> None:
    assert world.memory.retrieve_state("full").content.agent_states["Ranking"]["last_output"]["task_id"] == task


@then("the token can be resumed, twice, also by another handle")
def _(world: World) -> None:
    with ContextMemory(world.path) as other:
        assert [world.memory.resume(world.token), other.resume(world.token)] == [{"page": 7}] * 2


@then("the token is refused")
def _(world: World) -> None:
    with pytest.raises(TokenInvalid, match=r"continuation token.* was used up: .* has its final output"):
        world.memory.resume(world.token)


@then("a made-up token is refused")
def _(world: World) -> None:
    with pytest.raises(TokenInvalid, match=r"continuation token"):
        world.memory.resume("../../etc/passwd")


@then(parsers.parse("the latest feedback is that of iteration {number:d}"))
def _(world: World, number: int) -> None:
    assert world.memory.get_feedback().iteration == number


@then(parsers.parse('the prompt of "{agent}" has "{what}"'))
def _(world: World, agent: str, what: str) -> None:
    assert what in world.memory.feedback_for(agent).text


@then(parsers.parse('the prompt of "{agent}" has no "{what}"'))
def _(world: World, agent: str, what: str) -> None:
    assert what not in world.memory.feedback_for(agent).text


@then(parsers.parse('the version given to "{agent}" is recorded in iteration {number:d}'))
def _(world: World, agent: str, number: int) -> None:
    feedback = world.memory.feedback_for(agent)
    assert (feedback.iteration, feedback.version) == (number, world.memory.get_feedback().version)
    assert feedback.version in (world.folder(number) / "feedback" / f"{agent}.json").read_text()


@then(parsers.parse('the hypothesis "{name}" has {count:d} matches'))
def _(world: World, name: str, count: int) -> None:
    (found,) = world.memory.retrieve_state("partial", hypotheses=[name]).content.hypothesis_data
    assert found["matches"] == count


@then("iteration 1 no longer has a folder")
def _(world: World) -> None:
    assert not world.folder(1).exists()


@then("the output of iteration 1 is still found")
def _(world: World) -> None:
    states = world.memory.retrieve_state("full", iterations=[1]).content.agent_states
    assert states["Generation"]["last_output"]["results"]["primary_output"] == "what came of g-1"
    assert [one.number for one in world.memory.list_iterations()] == [1]
