"""Ten iterations of a made-up co-scientist: it crashes, recovers, learns from its reviews, and looks at itself.

``python examples/co_scientist/run.py [FOLDER]`` makes a workspace there (a temporary one without FOLDER). No model is
asked: the agents are small programs, and every run goes the same way.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from roles import Board
from supervisor import Supervisor

from memfs import ContextMemory

ITERATIONS = 10
CRASH = 6


def work(folder: Path, first: int, last: int, crash: int = 0) -> None:
    """Iterations ``first`` to ``last``; ``crash`` is the one in which the power fails."""
    with ContextMemory(folder) as memory:
        supervisor = Supervisor(memory)
        for iteration in range(first, last + 1):
            supervisor.run(iteration, crash=iteration == crash)


def recovery(folder: Path, crash: int) -> None:
    """Scenario 1: the system fails during the ranking; work done is kept, only what was in flight is redone."""
    print(f"\n1. Mid-iteration recovery: a process of its own works, and is killed in iteration {crash}.")
    words = [sys.executable, __file__, str(folder), "--until", str(crash)]
    done = subprocess.run(words, check=False)
    assert done.returncode == -signal.SIGKILL, "the process was to be killed"
    with ContextMemory(folder) as memory:
        print("A new process starts and knows nothing but the folder:")
        assert Supervisor(memory).resume() == crash


def feedback(folder: Path, iteration: int) -> None:
    """Scenario 2: what the meta-review says is in the agent's prompt of the next iteration, and changes its work."""
    print(f"\n2. Feedback integration: from iteration {iteration - 1} to {iteration}.")
    with ContextMemory(folder) as memory:
        said = memory.get_feedback(iteration - 1, agent_type="Generation").feedback_content
        print("the review said:", *said.agent_specific["Generation"], sep="\n  ")
        made = Board.read(memory, iteration).hypotheses[f"h{iteration:02d}-generated"]
        print("the agent then proposed:", " or ".join(" and ".join(cause) for cause in made["causes"]))


def analysis(folder: Path, agent: str = "Evolution") -> None:
    """Scenario 3: how well an agent did over ten iterations, and the weight that this suggests."""
    print(f"\n3. Performance analysis of {agent}.")
    with ContextMemory(folder) as memory:
        found = memory.analyze_agent(agent, iterations=ITERATIONS)
        print(f"over {len(found.iterations)} iterations: improvement rate {found.improvement_rate:.2f}", end=" ")
        print(f"({found.improvement_basis}), diversity {found.diversity:.2f}")
        for one in found.strategies:
            print(f"  {one.name}: used {one.uses} times, improvement {one.improvement:+.3f}")
        print(f"weight {found.current_weight:.2f} -> {found.suggested_weight:.2f}, because", end="")
        print("", *found.reasons, sep="\n  ")
        supervisor = Supervisor(memory)
        supervisor.weights[agent] = found.suggested_weight
        following = memory.start_iteration().number
        supervisor.update(following, Board.read(memory, following), "critical", [])
        print(f"iteration {following} begins with that weight")


def tell(folder: Path) -> None:
    """The three scenarios, one after the other."""
    recovery(folder, CRASH)
    work(folder, CRASH + 1, ITERATIONS)
    feedback(folder, 4)
    analysis(folder)
    with ContextMemory(folder) as memory:
        best = Board.read(memory, ITERATIONS).champion
        made_of = [one.id for one in memory.hypothesis_history(best).ancestors]
        print(f"\nThe best hypothesis is {best}, made from {', '.join(made_of)}")
    print(f"\nAll of it lies in {folder}/ContextMemory/iterations")


def main() -> None:
    """Read the arguments, and tell."""
    parser = argparse.ArgumentParser(description="Ten iterations of a made-up co-scientist.")
    parser.add_argument("folder", nargs="?", type=Path, help="where to make the workspace")
    parser.add_argument("--until", type=int, metavar="N", help="only work until the power fails in iteration N")
    chosen = parser.parse_args()
    if chosen.until:
        work(chosen.folder, 1, chosen.until, crash=chosen.until)
    elif chosen.folder:
        tell(chosen.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="co-scientist-") as folder:
            tell(Path(folder))


if __name__ == "__main__":
    main()
