"""Memory that comes up by itself: the classes of seed 004 in an agent that makes one mistake, and does not repeat it.

Run it anywhere: ``python examples/seed_004.py``. It works in a workspace that passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from memfs import Action, MemoryLayer, Outcome, StateSnapshot

SYSTEM = "You are a careful programmer."


@dataclass(frozen=True)
class Step:
    """One step of a plan: what to do, to which files."""

    description: str
    files: Sequence[str]


@dataclass
class LoopContext:
    """What a step is told before it is done."""

    warnings: list[str] = field(default_factory=list)

    def with_warnings(self, warnings: list[str]) -> LoopContext:
        """The same with further warnings."""
        return LoopContext([*self.warnings, *warnings])


class Executor:
    """Does steps with a memory beside it, as the seed's executor does."""

    def __init__(self, memory: MemoryLayer | None = None) -> None:
        self.memory = memory or MemoryLayer.default()

    async def prompt(self) -> str:
        """The system prompt, with what people wish."""
        auto_context = await self.memory.get_automatic(prompt=SYSTEM)
        return f"{SYSTEM}\n\n{auto_context}" if auto_context else SYSTEM

    async def execute(self, step: Step, context: LoopContext) -> Outcome:
        """Look what such a step brings to mind, do it, and remember how it ended."""
        state = StateSnapshot.create(files=step.files, context=step.description, agent="coder")
        warnings = await self.memory.check_triggers(state)
        if warnings:
            context = context.with_warnings(warnings)
        did, error = self._run(step, context)
        outcome = Outcome.FAILURE if error else Outcome.SUCCESS
        await self.memory.record_outcome(state, Action("edit", did), outcome, error)
        print(f"{step.description}: {outcome.value}{' (warned)' if warnings else ''}")
        return outcome

    def _run(self, step: Step, context: LoopContext) -> tuple[str, str | None]:
        """This agent edits before it thinks, unless it is warned."""
        if any("migration" in warning for warning in context.warnings):
            return f"wrote a migration, then did: {step.description}", None
        return f"edited the table without a migration: {step.description}", "test_schema: column is missing"


async def main() -> None:
    """Three steps, one correction, one question."""
    with MemoryLayer(":memory:") as memory:
        agent = Executor(memory)
        print(await agent.prompt())
        step = Step("add a column to the orders table", ["shop/orders.py"])
        await agent.execute(step, LoopContext())
        await agent.execute(step, LoopContext())
        await memory.record_correction("Always run the linter before you commit.", speaker="Ines")
        print(await agent.prompt())
        print(await memory.recall_tool("what went wrong with orders.py?"))


if __name__ == "__main__":
    asyncio.run(main())
