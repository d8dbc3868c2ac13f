"""State documents of a made-up system, for tests and benchmarks.

The same numbers give the same documents: every moment, figure and name follows from a document's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.model import state_paths
from memfs.model.time import format_time

AGENTS = ("Scout", "Critic/2", "Weaver", "Judge", "Keeper of Notes")
BEGIN = datetime(2100, 1, 4, 8, 0, tzinfo=UTC)  # no retention policy finds them old
_FOCUS = ("widen the search", "test the strongest ideas", "join what fits", "prepare the report")

Documents = dict[str, dict[str, Any]]


def opening(iteration: int) -> datetime:
    """When an iteration begins: each takes an hour."""
    return BEGIN + timedelta(hours=iteration)


def iteration_documents(
    iteration: int, agents: Sequence[str] = AGENTS, tasks: int = 2, updates: int = 3, closed: bool = True
) -> Documents:
    """All documents of one iteration, by path."""
    made: Documents = {}
    header: dict[str, Any] = {"iteration": iteration, "status": "open", "opened": format_time(opening(iteration))}
    if closed:
        header |= {"status": "closed", "closed": format_time(opening(iteration) + timedelta(minutes=59))}
    made[state_paths.system_state_path(iteration)] = header
    for turn in range(updates):
        values = update(iteration, turn)
        made[state_paths.update_path(iteration, opening(iteration) + timedelta(minutes=turn + 1))] = values
    for place, agent in enumerate(agents):
        for task in range(tasks):
            values = output(iteration, agent, task, place)
            made[state_paths.output_path(iteration, agent, values["task_id"])] = values
        made |= dict(_hypothesis(iteration, place, agent))
    made |= dict(_result(iteration, len(agents)))
    if closed:
        made[state_paths.meta_review_path(iteration)] = review(iteration, agents)
    return made


def update(iteration: int, turn: int = 0) -> dict[str, Any]:
    """A state update."""
    return {
        "timestamp": format_time(opening(iteration) + timedelta(minutes=turn + 1)),
        "update_type": "periodic",
        "system_statistics": {
            "total_hypotheses": 5 * iteration,
            "hypotheses_by_state": {"active": 3 * iteration, "retired": 2 * iteration},
            "pending_reviews": (7 * iteration + turn) % 11,
            "tournament_progress": round(turn / 10, 3),
            "agent_effectiveness": {
                agent: {"yield": round(at + iteration / 1000, 4)} for at, agent in enumerate(AGENTS)
            },
        },
        "orchestration_state": {
            "agent_weights": dict.fromkeys(AGENTS, 0.2),
            "queue_statistics": {"intake": {"length": turn}},
            "strategic_focus": _FOCUS[iteration % len(_FOCUS)],
        },
        "checkpoint_data": {
            "in_flight_tasks": [{"task_id": f"task/{iteration}-{turn}"}],
            "recovery_metadata": {"ranking": {"round": turn}},
        },
    }


def output(iteration: int, agent: str, task: int = 0, place: int = 0) -> dict[str, Any]:
    """An agent's output of a task, with its state."""
    moment = opening(iteration) + timedelta(minutes=10 + 2 * task, seconds=place)
    return {
        "agent_type": agent,
        "task_id": f"task/{iteration}-{task}",
        "timestamp": format_time(moment),
        "results": {
            "primary_output": f"finding {task} of {agent} in round {iteration}: " + "a line of evidence; " * 5,
            "metadata": {"strategy": "deep" if task else "wide", "improvement": round(0.01 * iteration, 4)},
            "confidence_score": round(0.5 + (iteration % 10) / 20, 3),
            "resource_consumed": 1.5 + task,
        },
        "state_data": {"internal_state": {"iteration": iteration, "task": task}},
    }


def review(iteration: int, agents: Sequence[str] = AGENTS) -> dict[str, Any]:
    """The meta-review of an iteration."""
    return {
        "iteration_number": iteration,
        "timestamp": format_time(opening(iteration) + timedelta(minutes=58)),
        "critique": {
            "common_patterns": ["thin evidence", {"name": "late reviews", "count": iteration}],
            "agent_feedback": {agent: [f"advice {iteration} for {agent}"] for agent in agents},
            "iteration_improvements": {"coverage": f"raise it above {iteration}"},
        },
        "research_overview": {"synthesis": f"round {iteration}", "next_priorities": ["more tests"]},
    }


def _hypothesis(iteration: int, place: int, agent: str) -> Iterator[tuple[str, dict[str, Any]]]:
    name = f"H {iteration}-{place}"
    values: dict[str, Any] = {
        "id": name,
        "agent": agent,
        "state": "active" if place else "retired",
        "rating": 1200 + iteration + place,
        "parents": [f"H {iteration - 1}-{place}"] if iteration > 1 else [],
        "timestamp": format_time(opening(iteration) + timedelta(minutes=20, seconds=place)),
    }
    yield state_paths.hypothesis_path(iteration, name), values


def _result(iteration: int, hypotheses: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if hypotheses < 2:
        return
    one, other = f"H {iteration}-0", f"H {iteration}-1"
    values: dict[str, Any] = {
        "id": f"M {iteration}",
        "participants": [one, other],
        "winner": other,
        "ratings": {one: 1190 + iteration, other: 1215 + iteration},
        "timestamp": format_time(opening(iteration) + timedelta(minutes=30)),
    }
    yield state_paths.tournament_path(iteration, f"M {iteration}"), values
