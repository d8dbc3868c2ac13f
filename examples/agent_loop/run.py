"""An agent that stops making a mistake, with a rule that comes and goes.

``python examples/agent_loop/run.py [FOLDER]`` makes a workspace there (a temporary one without FOLDER). No model is
asked unless ``--endpoint`` names a service: a script plays one, and every run goes the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from agent import Agent, Report
from models import Model, Script, Service
from world import World, jobs

from memfs import MemoryLayer, Query

ANALYSED, CAUSE_ENDS = 100, 200
CORRECTION = "No, always put the number of the ticket first in a summary."
BLIND = {"automatic": [], "triggered": [], "on_demand": False}


class Story:
    """The work of an agent and of a script that asks nobody, told as it goes.

    Attributes:
        episodes: how many were recorded so far.
        counted: by hundred of episodes, who and what: how often.
    """

    def __init__(self, memory: MemoryLayer, model: Model, budget: int) -> None:
        self.memory = memory
        self.world = World()
        self.agent = Agent("coder", memory, model, self.world, budget=budget)
        blind = MemoryLayer(workspace=memory.workspace, config=BLIND)
        self.script = Agent("night-script", blind, Script(), self.world, session="nightly", budget=budget)
        self.episodes = 0
        self.counted: Counter[tuple[int, str, str]] = Counter()
        self._told: set[str] = set()

    async def tell(self, most: int) -> None:
        """Work until so many episodes are recorded; from ``CAUSE_ENDS`` on the mistake is none any more."""
        for job in jobs():
            if self.episodes >= CAUSE_ENDS and not self.world.makes_table_itself:
                self.world.makes_table_itself = True
                print(f"\n{self.episodes} episodes: the build makes the table itself now. Nobody tells the agent.")
            worker = self.script if job.by_script else self.agent
            before = self.episodes // ANALYSED
            report = await worker.work(job, most_attempts=most - self.episodes)
            self.episodes += report.recorded
            self._count(worker.name, report, before)
            await self._react(worker.name, report)
            if self.episodes // ANALYSED > before:
                self._show_rules()
            if self.episodes >= most:
                return

    async def _react(self, name: str, report: Report) -> None:
        """Tell what happens for the first time; a person who misses the ticket's number says so, once."""
        if name != self.agent.name:
            return
        if report.summary and not report.summary.startswith(report.job.ticket) and self._is_first("correction"):
            print(f"  handed in: {report.summary!r}\n  a person: {CORRECTION!r}")
            await self.memory.record_correction(CORRECTION, speaker="Ines", session=self.agent.session)
        elif report.summary.startswith(report.job.ticket) and self._is_first("heeded"):
            print(f"  handed in: {report.summary!r} (the correction is in the system prompt)")
        if not report.job.touches_carrier:
            return
        files = ", ".join(report.job.files)
        if report.attempts > 1 and self._is_first(f"failed {files}"):
            print(f"{report.job.ticket}, {files}: failed{' although warned' if report.warned else ''}, then put right")
        elif report.attempts == 1 and report.warned and self._is_first(f"warned {files}"):
            print(f"{report.job.ticket}, {files}: warned, and right at once")

    def _count(self, name: str, report: Report, hundred: int) -> None:
        if report.job.touches_carrier:
            self.counted[hundred, name, "jobs"] += 1
            self.counted[hundred, name, "warned"] += report.warned
            self.counted[hundred, name, "failed"] += report.attempts > 1

    def _is_first(self, what: str) -> bool:
        new = what not in self._told
        self._told.add(what)
        return new

    def rules(self) -> list[tuple[str, float, str]]:
        """Each rule there is: what it advises, how sure it is, its status."""
        items = self.memory.workspace.store.select(Query(types=frozenset({"rule"}), limit=100))
        return [(item.content, float(item.data["confidence"]), item.status) for item in items]

    def _show_rules(self) -> None:
        print(f"\n{self.episodes // ANALYSED * ANALYSED} episodes: failures were analysed.")
        for advice, confidence, status in self.rules():
            print(f"  {status or 'holds'}, confidence {confidence:.0%}: {advice}")

    def show_figures(self) -> None:
        """Who made the mistake how often, by hundred."""
        print("\nwork on carriers         jobs  warned  failed at first")
        for hundred, name in sorted({key[:2] for key in self.counted}):
            row = [self.counted[hundred, name, what] for what in ("jobs", "warned", "failed")]
            span = f"{hundred * ANALYSED + 1}-{(hundred + 1) * ANALYSED}"
            print(f"{span:<9}{name:<14}{row[0]:>6}{row[1]:>8}{row[2]:>17}")


async def run(folder: Path, episodes: int, model: Model, budget: int) -> Story:
    """The whole story in a workspace in a folder."""
    with MemoryLayer.default(folder) as memory:
        story = Story(memory, model, budget)
        await story.tell(episodes)
        story.show_figures()
        print("\nWhat the agent gets when it asks how people want their summaries:")
        print(await memory.recall_tool("how should a summary begin"))
        for problem in memory.report():
            print(f"problem: {problem}")
        memory.workspace.store.flush()
        return story


def main() -> None:
    """Read the arguments, and tell."""
    parser = argparse.ArgumentParser(description="An agent that stops making a mistake.")
    parser.add_argument("folder", nargs="?", type=Path, help="where to make the workspace")
    parser.add_argument("--episodes", type=int, metavar="N", help="work until N are recorded (300; 12 with a service)")
    parser.add_argument(
        "--endpoint", metavar="URL", help="an OpenAI-compatible service, such as http://localhost:11434/v1"
    )
    parser.add_argument("--model", default="", help="the name of its model; its key is in OPENAI_API_KEY")
    parser.add_argument("--budget", type=int, default=1_500, metavar="TOKENS", help="for the prompt, memory included")
    chosen = parser.parse_args()
    try:
        model: Model = Service(chosen.endpoint, chosen.model) if chosen.endpoint else Script()
    except ValueError as error:
        parser.error(str(error))
    episodes = chosen.episodes or (12 if chosen.endpoint else 300)
    with tempfile.TemporaryDirectory(prefix="agent-loop-") as passing:
        try:
            asyncio.run(run(chosen.folder or Path(passing), episodes, model, chosen.budget))
        except RuntimeError as error:  # the service, see models.py
            sys.exit(f"run.py: {error}")
    if chosen.folder:
        print(f"\nAll of it lies in {chosen.folder}: memfs -C {chosen.folder} list --type rule")


if __name__ == "__main__":
    main()
