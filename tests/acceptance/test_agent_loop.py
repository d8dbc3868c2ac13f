"""An agent loop of 300 episodes: warned the second time, a rule after 100, retired when it stops holding (P4, P6).

The program is ``examples/agent_loop``, run as a reader would, then looked at through public names; and once more
against a service that speaks OpenAI's protocol.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kit.model_server import ModelReply, ModelServer, Request, chat_reply
from memfs import MemoryItem, MemoryLayer, Query, Workspace, open_workspace

CODE = Path(__file__).resolve().parents[2] / "examples" / "agent_loop"
MODULES = ("run", "agent", "models", "world")
CARRIERS = {"kestrel", "nordpost", "bluevan", "tern", "packet"}
LATER = {"heron", "sprint", "osprey", "dovetail", "meridian"}
QUIET = {"index.engine": "memory", "history.commit": "manual"}


class Transcript:
    """What the program printed, and the workspace it left behind."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "GIT_CONFIG_NOSYSTEM": "1"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MEMFS_", "XDG_"))}
        words = (sys.executable, str(CODE / "run.py"), str(self.root))
        done = subprocess.run(words, check=False, capture_output=True, text=True, env={**kept, **home})
        assert done.returncode == 0, done.stderr
        self.text = done.stdout

    def lines(self, pattern: str) -> list[tuple[str, ...]]:
        """The groups of each match, in order."""
        found = re.finditer(pattern, self.text, re.MULTILINE)
        return [tuple(match.groups()) for match in found]

    def figures(self, worker: str) -> list[tuple[int, int, int]]:
        """Jobs, warnings and first failures of a worker, by hundred of episodes."""
        rows = self.lines(rf"^\d+-\d+ +{worker} +(\d+) +(\d+) +(\d+)$")
        return [(int(jobs), int(warned), int(failed)) for jobs, warned, failed in rows]


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> Transcript:
    """The program, run once."""
    return Transcript(tmp_path_factory.mktemp("loop"))


@pytest.fixture
def left(transcript: Transcript) -> Iterator[Workspace]:
    """What it left behind."""
    with open_workspace(transcript.root, watch=False, settings=QUIET) as workspace:
        yield workspace


def test_a_repeated_mistake_is_warned_about_the_second_time(transcript: Transcript) -> None:
    """Whatever failed once is warned about when it comes again, and the agent that heeds it is right at once (P1)."""
    failed = [carrier for (carrier,) in transcript.lines(r"^WB-\d+, carriers/(\w+)\.py: failed, then put right$")]
    warned = [carrier for (carrier,) in transcript.lines(r"^WB-\d+, carriers/(\w+)\.py: warned, and right at once$")]
    assert len(failed) == len(set(failed)) >= 3
    assert set(failed) <= CARRIERS
    assert set(failed) < set(warned)
    assert "although warned" not in transcript.text


def test_a_hundred_episodes_make_a_rule_for_files_never_seen(transcript: Transcript) -> None:
    """From then on work on files without a failure of their own goes right the first time, too (P4)."""
    before, _, after = transcript.text.partition("\n100 episodes: failures were analysed.\n")
    assert "confidence" not in before
    advice = after.split("\n")[0]
    assert advice.startswith("  holds, confidence ")
    assert int(advice.split()[2].rstrip("%:")) >= 80
    assert "regenerated the carrier table" in advice
    assert all(f"carriers/{carrier}.py: warned, and right at once" in after for carrier in LATER)
    assert not re.search(r"^WB-.*: failed", after, re.MULTILINE)


def test_warnings_are_what_makes_the_difference(transcript: Transcript) -> None:
    """The agent stops making the mistake; a script that asks nobody makes it each time, until there is none (P4)."""
    agent, script = transcript.figures("coder"), transcript.figures("night-script")
    assert [failed for _, _, failed in agent][1:] == [0, 0]
    assert agent[0][2] <= len(CARRIERS)
    assert [warned for _, warned, _ in script] == [0, 0, 0]
    assert [jobs == failed for jobs, _, failed in script] == [True, True, False]
    assert script[2][2] == 0
    assert script[2][0] >= 10


def test_a_rule_that_stops_holding_is_retired(transcript: Transcript, left: Workspace) -> None:
    """What goes well without the warning speaks against it; it stays as a file that says why, in one commit (P4)."""
    (rule,) = left.store.select(Query(types=frozenset({"rule"})))
    assert rule.status == "retired"
    assert rule.data["confidence"] < 0.5
    assert rule.data["files"] == ["carriers/*.py"]
    assert rule.data["support"] > 10 < rule.data["against"]
    assert rule.data["helped"] > 10
    assert all(left.store.get(episode) is not None for episode in rule.data["learned_from"])
    holding = [share for (share,) in transcript.lines(r"^  holds, confidence (\d+)%")]
    retired = [share for (share,) in transcript.lines(r"^  retired, confidence (\d+)%")]
    assert (len(holding), len(retired)) == (2, 1)
    (subject,) = [line for line in subjects(transcript.root) if line.startswith(f"Retire the rule {rule.id}")]
    assert re.search(r"went well \d+ times", subject)


def subjects(root: Path) -> list[str]:
    """The first line of each commit's message."""
    done = subprocess.run(["git", "-C", str(root), "log", "--format=%s"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_each_attempt_is_an_episode(transcript: Transcript, left: Workspace) -> None:
    """300 episodes are there, with what was done, how it ended, and what the agent had been warned with (P4)."""
    found = left.store.select(Query(types=frozenset({"episodic"}), limit=1_000))
    episodes = [item for item in found if "outcome" in item.data]
    assert len(episodes) == 300
    assert {item.origin.agent for item in episodes} == {"coder", "night-script"}
    assert all(item.origin.task.startswith("WB-") for item in episodes)
    heeded = [item for item in episodes if item.data.get("warned")]
    assert {item.origin.agent for item in heeded} == {"coder"}
    assert all(item.data["outcome"] == "success" for item in heeded)


def test_a_correction_is_in_every_prompt_that_follows(transcript: Transcript, left: Workspace) -> None:
    """What a person said once is kept as theirs, and the next summary is as they want it (P4, P6)."""
    (before,), (after,) = transcript.lines(r"^  handed in: '(.*?)'")
    assert (before.startswith("WB-"), after.startswith("WB-")) == (False, True)
    (preference,) = left.store.select(Query(types=frozenset({"preference"})))
    assert (preference.trust, preference.origin.speaker) == ("human", "Ines")
    assert "number of the ticket first" in preference.content


# -- the loop, piece by piece -------------------------------------------------------------------------------------
@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The loop, imported; ``loop.models`` and ``loop.world`` are beside it."""
    monkeypatch.syspath_prepend(str(CODE))
    before = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    import agent
    import models
    import world

    agent.models, agent.world = models, world  # type: ignore[attr-defined]
    yield agent
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(before)


@pytest.fixture
def memory(opened: Callable[..., Workspace]) -> MemoryLayer:
    """The memory of a fresh workspace."""
    return MemoryLayer(workspace=opened())


def job(loop: ModuleType, number: int = 1, text: str = "Map the new status codes of kestrel") -> Any:
    """A job in which the mistake can be made."""
    return loop.world.Job(number, text, ("carriers/kestrel.py",))


def listening(loop: ModuleType) -> Any:
    """The script, which keeps what it was last asked: ``messages`` and ``tools``."""

    class Listening(loop.models.Script):  # type: ignore[name-defined, misc]
        async def answer(self, messages: Any, tools: Any) -> Any:
            self.messages, self.tools = [*messages], [*tools]
            return await super().answer(messages, tools)

    return Listening()


def played(loop: ModuleType) -> Callable[[Request], ModelReply]:
    """A service that answers as the script does."""

    def answer(asked: Request) -> ModelReply:
        message = asyncio.run(loop.models.Script().answer(asked.body["messages"], asked.body["tools"]))
        return chat_reply(message.pop("content"), **message)

    return answer


def test_a_service_gets_memory_prompt_and_tools(loop: ModuleType, memory: MemoryLayer) -> None:
    """Over HTTP: corrections in the system prompt, warnings fenced in the job, recall among the tools (P6)."""
    asyncio.run(memory.record_correction("Always put the number of the ticket first in a summary.", speaker="Ines"))
    with ModelServer(played(loop)) as server:
        agent = loop.Agent("coder", memory, loop.models.Service(server.url, "m1", "secret"), loop.world.World())
        reports = [asyncio.run(agent.work(job(loop, number))) for number in (1, 2)]
        asked = server.asked
    assert [(report.attempts, report.warned) for report in reports] == [(2, False), (1, True)]
    assert all(one.headers["authorization"] == "Bearer secret" for one in asked)
    assert all(one.body["model"] == "m1" for one in asked)
    names = [tool["function"]["name"] for tool in asked[0].body["tools"]]
    assert names == ["edit_file", "regenerate_table", "submit", "memory_recall"]
    system, prompt = (message["content"] for message in asked[-1].body["messages"][:2])
    assert system.startswith(loop.SYSTEM)
    assert "| - Always put the number of the ticket first" in system.replace("|  ", "| ")
    assert re.search(r"<memories \w+>\n\| Past issues with similar context:\n\| - Edited carriers/kestrel.py: ", prompt)
    assert reports[1].summary.startswith("WB-2")


def test_the_prompt_keeps_to_its_budget(loop: ModuleType, memory: MemoryLayer) -> None:
    """However much is remembered, prompt and memory together stay below it, and what matters most is there (P6, P1)."""
    for number in range(60):
        text = f"Prefer carrier library number {number} " + " ".join(f"w{number}x{place}" for place in range(12))
        memory.workspace.store.put(MemoryItem(text, "preference", trust="human", importance=1 + (number == 33)))
    for budget in (400, 1_000):
        model = listening(loop)
        agent = loop.Agent("coder", memory, model, loop.world.World(), budget=budget)
        report = asyncio.run(agent.work(job(loop)))
        assert report.prompt_tokens <= budget
        assert "library number 33 " in model.messages[0]["content"]
        assert "had no room" in model.messages[0]["content"]


def test_recall_is_a_tool_that_can_be_withdrawn(loop: ModuleType, memory: MemoryLayer) -> None:
    """The model asks and gets an answer; with ``on_demand = false`` nobody offers it (P1, P6)."""
    world = loop.world.World()
    agent = loop.Agent("coder", memory, loop.models.Script(), world)
    asyncio.run(agent.work(job(loop)))
    agent.model = listening(loop)
    asyncio.run(agent.work(job(loop, 2, "Note what went wrong with kestrel lately")))
    answers = [message["content"] for message in agent.model.messages if message["role"] == "tool"]
    assert "Edited carriers/kestrel.py" in answers[0]
    assert "<memories " in answers[0]
    memory.configure({"on_demand": False})
    asyncio.run(agent.work(job(loop, 3, "Note what went wrong with kestrel lately")))
    names = [tool["function"]["name"] for tool in agent.model.tools]
    assert names == ["edit_file", "regenerate_table", "submit"]


@pytest.mark.parametrize(
    "message",
    [
        chat_reply("I would rather not."),
        chat_reply(
            None, tool_calls=[{"id": "1", "type": "function", "function": {"name": "submit", "arguments": "{no"}}]
        ),
        chat_reply(None, tool_calls=["nonsense", {"function": 3}]),
    ],
    ids=["words", "broken arguments", "nonsense"],
)
def test_a_model_that_misbehaves_ends_the_job_and_nothing_else(
    loop: ModuleType, memory: MemoryLayer, message: ModelReply
) -> None:
    """Words instead of tools, arguments that are not JSON, calls that are not: the loop ends, within its turns (P6)."""
    with ModelServer(message) as server:
        agent = loop.Agent("coder", memory, loop.models.Service(server.url, "m1", ""), loop.world.World())
        report = asyncio.run(agent.work(job(loop), most_attempts=2))
    assert report.attempts <= loop.MOST_TURNS
    assert report.recorded == max(report.attempts, 1)
    assert not report.summary or report.attempts
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "answer",
    [
        ModelReply(status=500, body={}),
        ModelReply(body=b"<html>"),
        ModelReply(body={"choices": []}),
        ModelReply(drop=True),
    ],
)
def test_a_service_that_fails_is_reported(loop: ModuleType, answer: ModelReply) -> None:
    """No usable answer is one error that names the address and not the key (P6)."""
    with ModelServer(answer) as server, pytest.raises(RuntimeError, match="gave no usable answer") as caught:
        asyncio.run(loop.models.Service(server.url, "m1", "secret").answer([], []))
    assert server.url in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_does_not_travel_unencrypted(loop: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one read from anywhere but the environment."""
    monkeypatch.setenv(loop.models.KEY, "secret")
    with pytest.raises(ValueError, match="unencrypted"):
        loop.models.Service("http://models.example.org/v1", "m1")
    assert json.dumps(vars(loop.models.Service("http://localhost:1/v1", "m1", ""))).count("secret") == 0
