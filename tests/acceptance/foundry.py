"""A foundry's agents look for a hard alloy: other names and other data than the seed's, through public names only.

Run as a program by the test, ``python foundry.py melt|recover FOLDER``, each run a process that prints JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from memfs import AgentOutput, ContextMemory, MetaReviewStorage, StateUpdate

FURNACE, MIXER, JUDGE = "Furnace/2", "Mixer für Legierungen", "judge"
LEFT = [
    {"task_id": "anneal: alloy-3", "agent": FURNACE, "kelvin": 1170},
    {"task_id": "weigh/alloy-4", "agent": JUDGE, "step": {"done": ["a", "b"], "of": 5}},
]


def report(**facts: Any) -> None:
    """Print what is known, at once: the process may end any moment."""
    print(json.dumps(facts, default=str), flush=True)


# -- scenario 1 ---------------------------------------------------------------------------------------------------
def melt(folder: Path) -> None:
    """Work in two iterations; the power fails while alloys are being compared."""
    memory = ContextMemory(folder)
    memory.start_iteration(1)
    mixed = [_mix(memory, f"alloy-{number}", number / 10) for number in (1, 2)]
    memory.close_iteration(1)
    memory.start_iteration(2)
    mixed += [_mix(memory, f"alloy-{number}", number / 10) for number in (3, 4)]
    memory.store_tournament_result(
        {"id": "hardness 1", "participants": ["alloy-1", "alloy-2"], "winner": "alloy-2", "vickers": {"alloy-2": 210}}
    )
    result = memory.store_state_update(
        {
            "update_type": "checkpoint",
            "system_statistics": {"total_hypotheses": 4, "tournament_progress": 0.5},
            "orchestration_state": {"strategic_focus": "hardness before weight", "agent_weights": {JUDGE: 2.0}},
            "checkpoint_data": {
                "in_flight_tasks": LEFT,
                "recovery_metadata": {"comparison": {"next": ["alloy-3", "alloy-4"]}, "stove": {"kelvin": 1170}},
            },
        }
    )
    after = memory.store_agent_output(
        AgentOutput(agent_type=JUDGE, task_id="weigh/alloy-1", results={"primary_output": 7})
    )
    report(checkpoint=result.checkpoint_id, stored=[*mixed, result.path, after.path])
    os.kill(os.getpid(), signal.SIGKILL)


def _mix(memory: ContextMemory, name: str, share: float) -> str:
    memory.store_hypothesis({"id": name, "state": "mixed", "agent": MIXER, "tin": share})
    return memory.store_agent_output(
        {
            "agent_type": MIXER,
            "task_id": f"mix {name}",
            "results": {"primary_output": {"alloy": name, "tin": share}, "confidence_score": 0.5 + share},
            "state_data": {"internal_state": {"last": name}},
        }
    ).path


def recover(folder: Path) -> None:
    """On restart: ask for the latest checkpoint, and look at what is there."""
    with ContextMemory(folder) as memory:
        recovery = memory.recover()
        only = memory.recover(components=["stove"])
        state = memory.retrieve_state("full", iterations=[1, 2]).content
        report(
            recovery=recovery.to_dict(),
            only=only.to_dict(),
            present=list(map(str, sorted(folder.rglob("iterations/**/*.json")))),
            agents={name: one["last_output"]["task_id"] for name, one in state.agent_states.items()},
            hypotheses=sorted(one["id"] for one in state.hypothesis_data),
        )


# -- scenarios 2 and 3 --------------------------------------------------------------------------------------------
def review(memory: ContextMemory, number: int, patterns: list[Any], **feedback: Any) -> None:
    """Store the meta-review of an iteration."""
    memory.store_meta_review(
        MetaReviewStorage(
            iteration_number=number,
            critique={
                "common_patterns": patterns,
                "agent_feedback": {MIXER: feedback["mixer"], FURNACE: feedback.get("furnace", [])},
                "iteration_improvements": {"samples": "cast three of each"},
            },
            research_overview={"synthesis": "tin helps", "next_priorities": ["try antimony"]},
        )
    )


def season(memory: ContextMemory, iterations: int = 10) -> None:
    """Iterations in which the mixer gets better by one recipe, and the furnace worse and dearer."""
    for number in range(1, iterations + 1):
        memory.start_iteration(number)
        recipe = "antimony" if number % 2 else "plain tin"
        _result(memory, MIXER, number, 0.4 + number / 20, 5.0, recipe=recipe, improvement=0.08 if number % 2 else -0.01,
                diversity_of_recipes=0.7)  # fmt: skip
        _result(memory, FURNACE, number, 0.9 - number / 20, 5.0 + number, recipe="hot", improvement=-0.04)
        memory.store_state_update(
            StateUpdate(orchestration_state={"agent_weights": {MIXER: 1.0, FURNACE: 1.0}}, update_type="periodic")
        )
        review(memory, number, ["porous castings"] if number < 5 else [{"pattern": "cracks"}], mixer=[f"note {number}"])
        memory.close_iteration(number)


def _result(memory: ContextMemory, agent: str, number: int, confidence: float, cost: float, **facts: Any) -> None:
    strategy = facts.pop("recipe")
    results = {
        "primary_output": f"{agent} made batch {number} by {strategy}",
        "metadata": {"strategy": strategy, **facts},
        "confidence_score": confidence,
        "resource_consumed": cost,
    }
    memory.store_agent_output(AgentOutput(agent_type=agent, task_id=f"batch {number}", results=results))


if __name__ == "__main__":
    {"melt": melt, "recover": recover}[sys.argv[1]](Path(sys.argv[2]))
