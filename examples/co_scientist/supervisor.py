"""The supervisor: hands out the tasks of an iteration, keeps the system's state up to date, and resumes after a crash.

What it knows between two tasks lies in the context memory.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parcels import score
from roles import Board, Evolution, Generation, MetaReviewer, Proximity, Ranking, Reflection

from memfs import ContextMemory, StateUpdate

GOAL = "What makes parcels late?"
Say = Callable[[str], object]


class Supervisor:
    """Runs iterations over one context memory."""

    def __init__(self, memory: ContextMemory, say: Say = print, between: Callable[[], object] = lambda: None) -> None:
        """Take charge.

        Args:
            say: told, in a sentence, what happens.
            between: called between two tasks.
        """
        self.memory, self.say, self.between = memory, say, between
        self.weights = {"Generation": 1.0, "Reflection": 1.0, "Ranking": 1.0, "Evolution": 1.0, "Proximity": 0.5}

    def run(self, iteration: int, crash: bool = False) -> None:
        """One iteration from its start to its end.

        Args:
            crash: kill this process in the middle of the ranking, as a power cut would.
        """
        self.memory.start_iteration(iteration)
        board = Board.read(self.memory, iteration)
        newest = Generation(self.memory).run(iteration, board)
        self.between()
        board = Board.read(self.memory, iteration)
        Reflection(self.memory).run(iteration, board, newest)
        self.between()
        task = Ranking(self.memory).plan(iteration, board, newest)
        checkpoint = self.update(iteration, board, "checkpoint", [task])
        self.between()
        if crash:
            self._crash(task, board, checkpoint)
        self.finish(iteration, task)

    def finish(self, iteration: int, task: Mapping[str, Any]) -> list[str]:
        """The rest of an iteration, from the ranking on; returns the matches that were played now."""
        board = Board.read(self.memory, iteration)
        played = Ranking(self.memory).run(task, board)
        self.between()
        newest = task["matches"][0][1] if task["matches"] else max(board.hypotheses)
        Evolution(self.memory).run(iteration, board, newest)
        self.between()
        if iteration % 3 == 0:  # there is little new to compare each time
            Proximity(self.memory).run(iteration, Board.read(self.memory, iteration))
            self.between()
        MetaReviewer(self.memory).run(iteration, Board.read(self.memory, iteration))
        self.between()
        closed = self.memory.close_iteration(iteration)
        board = Board.read(self.memory, iteration)
        best = board.champion
        self.say(f"iteration {closed.number:2}: {best} explains {score(board.causes(best)):.0%} of it")
        return played

    def update(self, iteration: int, board: Board, kind: str, in_flight: Sequence[Mapping[str, Any]]) -> str:
        """Store the state of the whole; returns the checkpoint that came of it, "" for none."""
        states = [one["state"] for one in board.hypotheses.values()]
        stored = self.memory.store_state_update(
            StateUpdate(
                update_type=kind,
                system_statistics={
                    "total_hypotheses": len(states),
                    "hypotheses_by_state": {state: states.count(state) for state in sorted(set(states))},
                    "pending_reviews": states.count("proposed"),
                    "tournament_progress": 0.0 if in_flight else 1.0,
                },
                orchestration_state={
                    "agent_weights": self.weights,
                    "resource_allocation": {name: round(10 * weight, 1) for name, weight in self.weights.items()},
                    "queue_statistics": {"waiting": len(in_flight)},
                    "strategic_focus": GOAL,
                },
                checkpoint_data={
                    "in_flight_tasks": in_flight,
                    "recovery_metadata": {"supervisor": {"iteration": iteration, "next": "ranking"}},
                },
            )
        )
        return stored.checkpoint_id

    def _crash(self, task: Mapping[str, Any], board: Board, checkpoint: str) -> None:
        """Lose power after the first match."""
        try:
            Ranking(self.memory).run(task, board, stop_before=task["matches"][1][0])
        except SystemError:
            self.say(f"checkpoint {checkpoint} is taken, match {task['matches'][0][0]} is played, and then: kill -9")
            os.kill(os.getpid(), signal.SIGKILL)

    def resume(self) -> int:
        """Go on after a crash; returns the iteration that was finished."""
        recovery = self.memory.recover()
        where = recovery.resume_points["supervisor"]
        self.say(f"the latest good checkpoint is {recovery.checkpoint_id}; it goes on with {where}")
        for task in recovery.active_tasks:
            board = Board.read(self.memory, task["iteration"])
            kept = [match for match, *_ in task["matches"] if match in board.matches]
            self.say(f"in flight was {task['task_id']}; a result already had {', '.join(kept) or 'no match'}")
            played = self.finish(task["iteration"], task)
            self.say(f"played now: {', '.join(played)}; nothing was done twice")
        return int(where["iteration"])
