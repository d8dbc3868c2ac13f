"""Agent: a loop with memory in it, as seed 004 has it.

Four calls do it: ``get_automatic`` for the system prompt, ``check_triggers`` before a step, ``recall`` as a tool, and
``record_outcome`` after the step. Which model answers, the loop does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models import Message, Model, arguments_of, tokens
from world import TOOLS, Job, World

from memfs import Action, MemoryLayer, Outcome, StateSnapshot

SYSTEM = "You maintain the adapters of a parcel service. Use the tools, one job at a time, and submit when it is done."
MOST_TURNS = 10


@dataclass(frozen=True, slots=True)
class Report:
    """How a job went.

    Attributes:
        warned: whether memory warned of something before.
        attempts: how often the work was submitted; 1 means that it passed at once.
        recorded: how many episodes were stored: one for each attempt, or one that tells there was none.
        summary: as it was handed in, "" where it never passed.
        prompt_tokens: how long system prompt and job were, with what memory added.
    """

    job: Job
    warned: bool
    attempts: int
    recorded: int
    summary: str
    prompt_tokens: int


class Agent:
    """Does jobs in a world, with a model, and remembers how they went."""

    def __init__(
        self, name: str, memory: MemoryLayer, model: Model, world: World, *, session: str = "s1", budget: int = 1_500
    ) -> None:
        """``budget``: the most tokens that memory and prompt may take together when a job begins."""
        self.name = name
        self.memory = memory
        self.model = model
        self.world = world
        self.session = session
        self.budget = budget

    async def work(self, job: Job, most_attempts: int | None = None) -> Report:
        """Do one job; each time it is submitted, what became of it is remembered, and also if it never is.

        Args:
            most_attempts: stop after so many, passed or not.
        """
        self.world.begin()
        state = StateSnapshot.create(
            files=job.files, context=job.text, agent=self.name, session=self.session, task=job.ticket
        )
        warnings = await self._warnings(job, state)
        messages = await self._prompt(job, state, warnings)
        length = sum(tokens(message["content"]) for message in messages)
        tools = [*TOOLS, *self.memory.tools()]
        attempts = recorded = 0
        summary = ""
        for _ in range(MOST_TURNS):
            reply = await self.model.answer(messages, tools)
            messages.append(reply)
            for call in reply.get("tool_calls", ()):
                name, arguments = arguments_of(call)
                text, passed = await self._use(name, arguments)
                messages.append({"role": "tool", "tool_call_id": call.get("id", ""), "content": text})
                if passed is not None:
                    attempts += 1
                    recorded += await self._record(state, Outcome.SUCCESS if passed else Outcome.FAILURE, text)
                    summary = str(arguments.get("summary", "")) if passed else ""
            if not reply.get("tool_calls") or attempts == most_attempts:
                break
        if not attempts:
            recorded += await self._record(state, Outcome.PARTIAL, "The work was never submitted.")
        return Report(job, bool(warnings), attempts, recorded, summary, length)

    # -- memory, in the four places -----------------------------------------------------------------------------------
    async def _warnings(self, job: Job, state: StateSnapshot) -> list[str]:
        """2. Before a risky step: what went wrong in situations like this one, and the rules learned from that."""
        return await self.memory.check_triggers(state, prompt=_told(job), max_tokens=max(self.budget // 3, 1))

    async def _prompt(self, job: Job, state: StateSnapshot, warnings: Sequence[str]) -> list[Message]:
        """1. The system prompt: memory gets what system text, job and warnings leave of the budget."""
        left = self.budget - tokens("\n\n".join((SYSTEM, _told(job), *warnings)))
        automatic = await self.memory.get_automatic(state, prompt=SYSTEM, max_tokens=left) if left > 0 else ""
        return [
            {"role": "system", "content": "\n\n".join(filter(None, (SYSTEM, automatic)))},
            {"role": "user", "content": "\n\n".join((_told(job), *warnings))},
        ]

    async def _use(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool | None]:
        """3. On demand: ``recall`` is a tool among the others."""
        if name in [tool["function"]["name"] for tool in self.memory.tools()]:
            return await self.memory.recall_tool(str(arguments.get("query", ""))), None
        result = self.world.use(name, arguments)
        return result.text, result.passed

    async def _record(self, state: StateSnapshot, outcome: Outcome, text: str) -> int:
        """4. Afterwards: what was done, and how it ended."""
        action = Action("submit", self.world.done)
        await self.memory.record_outcome(state, action, outcome, None if outcome is Outcome.SUCCESS else text)
        return 1


def _told(job: Job) -> str:
    return f"{job.ticket}: {job.text}.\nFiles: {', '.join(job.files)}"
