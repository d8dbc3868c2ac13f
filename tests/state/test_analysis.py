"""How an agent did, and the weight that this suggests, whatever agents and metrics are called (S11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memfs.errors import ItemNotFound, QueryInvalid
from memfs.model.state_documents import StateUpdate
from memfs.workspace import Workspace
from tests.state.test_aggregates import rebuilt

Opened = Callable[..., Workspace]


def output(workspace: Workspace, agent: str, task: str, text: Any, **metadata: Any) -> None:
    """Store an output in the present iteration."""
    results = {
        "primary_output": text,
        "metadata": {name: value for name, value in metadata.items() if name not in ("confidence", "cost")},
        "confidence_score": metadata.get("confidence", 0.5),
        "resource_consumed": metadata.get("cost", 1.0),
    }
    workspace.states.recorder.agent_output({"agent_type": agent, "task_id": task, "results": results})


def steer(workspace: Workspace, **weights: float) -> None:
    """Store a state update that gives agents weights."""
    workspace.states.recorder.state_update(StateUpdate.from_dict({"orchestration_state": {"agent_weights": weights}}))


def analyze(workspace: Workspace, agent: str, iterations: int = 10) -> Any:
    """The analysis of an agent."""
    return workspace.states.analysis.analyze(agent, iterations)


def test_an_agent_that_grows_is_given_more_weight(opened: Opened) -> None:
    """Metrics of any name by iteration, the successful strategies, and a weight with reasons (S11)."""
    workspace = opened()
    for number in range(1, 6):
        workspace.states.iterations.start(number)
        for task in range(3):
            output(
                workspace,
                "Mutator",
                f"t{task}",
                {"text": f"variant {task}", "improvement_pct": 10.0 * number, "diversity_index": 0.5},
                strategy=["crossover", "restart"][task % 2],
                success=task % 2 == 0,
                confidence=0.4 + 0.1 * number,
                cost=9.0 - number,
            )
        workspace.states.iterations.close(number)
    steer(workspace, Mutator=1.5)
    found = analyze(workspace, "mutator agent")
    assert found.agent == "Mutator"
    assert found.iterations == (1, 2, 3, 4, 5, 6)
    assert found.outputs == 15
    assert (found.improvement_rate, found.improvement_basis) == (30.0, "metric improvement_pct")
    assert (found.diversity, found.diversity_basis) == (0.5, "metric diversity_index")
    assert (found.points[0].outputs, found.points[0].cost, found.points[0].confidence) == (3, 24.0, 0.5)
    assert {one.name: one.success_rate for one in found.strategies} == {"crossover": 1.0, "restart": 0.0}
    assert (found.current_weight, found.weight_source.rpartition("/")[0][-13:]) == (1.5, "state_updates")
    assert 1.5 < found.suggested_weight <= 2.25
    assert any("improvement rate is 30" in reason for reason in found.reasons)


def test_ratings_against_parents_show_improvement(opened: Opened) -> None:
    """Children are compared with their parents, those of earlier iterations included (S11)."""
    workspace = opened()
    recorder = workspace.states.recorder
    workspace.states.iterations.start(1)
    recorder.hypothesis({"id": "a", "agent": "Seeder", "rating": 1200})
    recorder.hypothesis({"id": "b", "agent": "Seeder", "rating": 1300})
    workspace.states.iterations.start(2)
    recorder.hypothesis({"id": "c", "agent": "Mutator", "rating": 1290}, parents=["a", "b"])
    recorder.hypothesis({"id": "d", "agent": "Mutator", "rating": 1150}, parents=["a"])
    recorder.hypothesis({"id": "e", "agent": "Mutator", "rating": 900}, parents=["unknown"])
    found = analyze(workspace, "Mutator")
    assert found.improvement_basis == "ratings of hypotheses against their parents'"
    assert found.improvement_rate == 0.5
    assert found.points[1].metrics["rating_gain"] == -5.0


def test_a_parent_that_changes_in_an_earlier_iteration_counts(opened: Opened) -> None:
    """An entry names every document it was made from, also those elsewhere (S11, S12)."""
    workspace = opened()
    recorder = workspace.states.recorder
    workspace.states.iterations.start(1)
    recorder.hypothesis({"id": "a", "agent": "Seeder", "rating": 1200})
    workspace.states.iterations.start(2)
    recorder.hypothesis({"id": "b", "agent": "Mutator", "rating": 1210}, parents=["a"])
    workspace.states.aggregates.update()
    assert analyze(workspace, "Mutator").improvement_rate == 1.0
    path = workspace.root / "ContextMemory/iterations/iteration_001/hypotheses/a.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "rating": 1250}))
    workspace.states.reading.looking.look(everywhere=True)
    assert analyze(workspace, "Mutator").improvement_rate == 0.0


def test_diversity_is_worked_out_where_nobody_reports_it(opened: Opened) -> None:
    """Outputs without a word in common are diverse, outputs alike are not (S11)."""
    workspace = opened()
    workspace.states.iterations.start(1)
    for task, text in enumerate(("alpha beta", "gamma delta", "epsilon zeta")):
        output(workspace, "Wide", f"t{task}", text)
        output(workspace, "Narrow", f"t{task}", "always the same words")
    assert analyze(workspace, "Wide").diversity == 1.0
    narrow = analyze(workspace, "Narrow")
    assert (narrow.diversity, narrow.diversity_basis) == (0.0, "how little the outputs' words overlap")


def test_what_the_supervisor_reports_counts(opened: Opened) -> None:
    """agent_effectiveness of the latest state update is used for agents that report nothing (S11)."""
    workspace = opened()
    for number, rate in ((1, 0.2), (2, 0.4)):
        workspace.states.iterations.start(number)
        reported = {"Quiet One": {"improvement_rate": rate, "nested": {"hits": 3}}, "Bare": {"effectiveness": 0.7}}
        workspace.states.recorder.state_update({"system_statistics": {"agent_effectiveness": reported}})
    found = analyze(workspace, "Quiet One")
    assert found.improvement_rate == pytest.approx(0.3)
    assert found.points[1].metrics == {"improvement_rate": 0.4, "nested.hits": 3.0}
    assert analyze(workspace, "Bare").points[0].metrics["effectiveness"] == 0.7


def test_agents_are_compared_with_each_other(opened: Opened) -> None:
    """The better of two gets more, the other less (S11)."""
    workspace = opened()
    for number in (1, 2, 3):
        workspace.states.iterations.start(number)
        for task in range(4):
            output(workspace, "Strong", f"t{task}", "text", improvement=0.8)
            output(workspace, "Weak", f"t{task}", "text", improvement=0.2)
    strong, weak = analyze(workspace, "Strong"), analyze(workspace, "Weak")
    assert strong.suggested_weight > weak.suggested_weight
    assert any("is above the others' 0.2" in reason for reason in strong.reasons)


def test_weights_come_from_the_configuration_where_no_update_has_them(opened: Opened) -> None:
    """system_config.agent_weights, else 1 (S11)."""
    workspace = opened()
    workspace.states.iterations.start(1)
    output(workspace, "Scout", "t", "text")
    output(workspace, "Other", "t", "text")
    path = workspace.root / "ContextMemory/configuration/system_config.json"
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**values, "agent_weights": {"Scout": 0.3}}))
    found = analyze(workspace, "Scout")
    assert (found.current_weight, found.weight_source) == (0.3, "system_config.agent_weights")
    assert (analyze(workspace, "Other").current_weight, analyze(workspace, "Other").weight_source) == (1.0, "default")


def test_only_the_last_iterations_are_looked_at(opened: Opened) -> None:
    """K of them, the open one included; one in which the agent did nothing is an empty point (S11)."""
    workspace = opened()
    for number in (1, 2, 3):
        workspace.states.iterations.start(number)
        if number != 2:
            output(workspace, "Scout", "t", "text")
    found = analyze(workspace, "Scout", 2)
    assert found.iterations == (2, 3)
    assert [point.outputs for point in found.points] == [0, 1]
    assert found.points[0].confidence is None


def test_feedback_is_marked_at_its_iteration(opened: Opened) -> None:
    """Each point has the version the agent was given in it, and the effects are reported (S5, S11)."""
    workspace = opened()
    workspace.states.iterations.start(1)
    output(workspace, "Scout", "t", "text")
    workspace.states.recorder.meta_review({"iteration_number": 1, "critique": {"agent_feedback": {"Scout": "more"}}})
    workspace.states.iterations.close(1)
    workspace.states.iterations.start(2)
    given = workspace.states.feedback.for_agent("Scout")
    output(workspace, "Scout", "t", "text")
    found = analyze(workspace, "Scout")
    assert [point.feedback for point in found.points] == ["", given.version]
    assert [(one.version, one.verdict) for one in found.feedback] == [(given.version, "too little data")]
    assert found.suggested_weight == found.current_weight
    assert json.loads(json.dumps(found.to_dict()))["points"][1]["feedback"] == given.version


def test_an_agent_that_a_review_abbreviates_is_found_by_either_name(opened: Opened) -> None:
    """What an agent stores wins over what a review calls it (S11)."""
    workspace = opened()
    workspace.states.iterations.start(1)
    output(workspace, "Evolution Agent", "t", "text")
    critique = {"agent_feedback": {"Evolution": "more", "Ghost": "hello"}}
    workspace.states.recorder.meta_review({"iteration_number": 1, "critique": critique})
    assert analyze(workspace, "evolution_agent").agent == analyze(workspace, "Evolution").agent == "Evolution Agent"
    assert analyze(workspace, "ghost").outputs == 0


def test_an_unknown_agent_is_named_with_the_nearest(opened: Opened) -> None:
    """A typing error is distinguished from an agent that did nothing (S11)."""
    workspace = opened()
    workspace.states.iterations.start(1)
    output(workspace, "Scout", "t", "text")
    with pytest.raises(ItemNotFound, match=r"agent 'Scuot'.*Scout"):
        analyze(workspace, "Scuot")
    with pytest.raises(ItemNotFound, match="'Nobody'"):
        analyze(workspace, "Nobody")


@pytest.mark.parametrize("iterations", [0, -1, 10_001, True, 2.5, "3"])
def test_a_wrong_number_of_iterations_is_named(opened: Opened, iterations: Any) -> None:
    """The error names the field and the bounds (S11)."""
    with pytest.raises(QueryInvalid, match="iterations: expected 1 to 10,000"):
        analyze(opened(), "Scout", iterations)


@pytest.mark.parametrize("value", [1e308, -1e308, float("1e-320"), 2**62, True, "7", None, [], {"a": {"b": {"c": {}}}}])
def test_strange_figures_do_no_harm(opened: Opened, value: Any) -> None:
    """Whatever an agent reports, there is an analysis and aggregates that can be written (S11, S12)."""
    workspace = opened()
    workspace.states.iterations.start(1)
    for task in range(3):
        output(workspace, "Odd", f"t{task}", {"x": value}, improvement=value, strategy=value, success=value, y=value)
    workspace.states.iterations.close(1)
    assert analyze(workspace, "Odd").outputs == 3
    assert rebuilt(workspace.states) == []
