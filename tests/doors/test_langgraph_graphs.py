"""LangGraph checkpointer: real graphs that stop, are killed, branch and go on (B5)."""

from __future__ import annotations

import asyncio
import operator
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

from memfs.doors.langgraph import MemfsSaver

CONFIG: Any = {"configurable": {"thread_id": "support-42"}}

RUN = """
import operator, os, signal, sys
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from memfs.doors.langgraph import MemfsSaver

folder, die_in = sys.argv[1:]

class State(TypedDict):
    done: Annotated[list, operator.add]

def node(name):
    def work(state):
        with open("ran.txt", "a") as log:
            log.write(name + "\\n")
        if name == die_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"done": [name]}
    return work

names = ["one", "two", "three", "four", "five"]
builder = StateGraph(State)
for name in names:
    builder.add_node(name, node(name))
for before, after in zip([START, *names], [*names, END]):
    builder.add_edge(before, after)
saver = MemfsSaver(folder)
graph = builder.compile(checkpointer=saver)
config = {"configurable": {"thread_id": "long job"}}
begun = graph.get_state(config).next
print(graph.invoke(None if begun else {"done": []}, config, durability="sync")["done"])
saver.close()
"""


@dataclass
class Plan:
    """A state's own class."""

    steps: list[str]


class Talk(TypedDict):
    """The state of the graph that most tests run."""

    messages: Annotated[list[Any], add_messages]
    plan: Plan
    turns: int


def planner(_state: Talk) -> dict[str, Any]:
    """Plans."""
    return {"messages": [AIMessage("I plan")], "plan": Plan(["ask", "act"]), "turns": 1}


def actor(state: Talk) -> dict[str, Any]:
    """Asks a person before it acts."""
    answer = interrupt({"question": "shall I?"})
    return {"messages": [AIMessage(f"you said {answer}")], "turns": state["turns"] + 1}


def talk(saver: MemfsSaver) -> Any:
    """A graph that plans, asks a person, and acts."""
    builder = StateGraph(Talk)
    builder.add_node("planner", planner)
    builder.add_node("actor", actor)
    builder.add_edge(START, "planner")
    builder.add_edge("planner", "actor")
    builder.add_edge("actor", END)
    return builder.compile(checkpointer=saver)


def texts_of(values: dict[str, Any]) -> list[str]:
    """The texts of a state's messages."""
    return [message.content for message in values["messages"]]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[MemfsSaver]:
    """A saver in a workspace of its own."""
    with MemfsSaver(tmp_path / "memory") as made:
        yield made


def test_a_person_answers_after_the_process_ended(tmp_path: Path) -> None:
    """Human in the loop: an interrupt outlives the saver, messages and own classes come back as they were (B5)."""
    with MemfsSaver(tmp_path) as saver:
        asked = talk(saver).invoke({"messages": [HumanMessage("tidy\nup")]}, CONFIG)
    assert asked["__interrupt__"][0].value == {"question": "shall I?"}

    with MemfsSaver(tmp_path) as saver:
        graph = talk(saver)
        assert graph.get_state(CONFIG).next == ("actor",)
        done = graph.invoke(Command(resume="yes"), CONFIG)

    assert texts_of(done) == ["tidy\nup", "I plan", "you said yes"]
    assert (done["plan"], done["turns"]) == (Plan(["ask", "act"]), 2)


def test_history_can_be_gone_back_to_and_changed(saver: MemfsSaver) -> None:
    """Time travel: ``get_state_history``, ``update_state`` at an earlier checkpoint, and another end (B5)."""
    graph = talk(saver)
    graph.invoke({"messages": [HumanMessage("tidy up")]}, CONFIG)
    graph.invoke(Command(resume="yes"), CONFIG)
    history = list(graph.get_state_history(CONFIG))
    assert [state.metadata["step"] for state in history] == [2, 1, 0, -1]

    branch = graph.update_state(history[1].config, {"turns": 40})
    other = graph.invoke(Command(resume="no"), branch)

    assert (texts_of(other)[-1], other["turns"]) == ("you said no", 41)
    assert graph.get_state(history[0].config).values["turns"] == 2
    assert texts_of(graph.get_state(history[0].config).values)[-1] == "you said yes"


def test_the_asynchronous_graph_does_the_same(saver: MemfsSaver) -> None:
    """``ainvoke``, ``aget_state``, ``aget_state_history`` (B5)."""

    async def run() -> tuple[Any, list[int]]:
        graph = talk(saver)
        await graph.ainvoke({"messages": [HumanMessage("tidy up")]}, CONFIG)
        assert (await graph.aget_state(CONFIG)).next == ("actor",)
        done = await graph.ainvoke(Command(resume="yes"), CONFIG)
        return done, [state.metadata["step"] async for state in graph.aget_state_history(CONFIG)]

    done, steps = asyncio.run(run())
    assert (texts_of(done)[-1], steps) == ("you said yes", [2, 1, 0, -1])


class Count(TypedDict):
    """A sum of many tasks."""

    total: Annotated[int, operator.add]


def test_many_tasks_of_one_step_all_count(saver: MemfsSaver) -> None:
    """A fan-out of tasks that write at once, in threads (B5)."""
    builder = StateGraph(Count)
    builder.add_node("split", lambda _state: {})
    builder.add_node("add", lambda value: {"total": value["total"]})
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda _state: [Send("add", {"total": n}) for n in range(12)], ["add"])
    graph = builder.compile(checkpointer=saver)

    assert graph.invoke({"total": 0}, CONFIG)["total"] == sum(range(12))
    assert graph.get_state(CONFIG).values == {"total": sum(range(12))}


def test_a_subgraph_keeps_its_own_checkpoints(saver: MemfsSaver) -> None:
    """An interrupt within a subgraph: its namespace is in a folder of its own, and the whole resumes (B5)."""
    inner = StateGraph(Count)
    inner.add_node("ask", lambda _state: {"total": interrupt("how many?")})
    inner.add_edge(START, "ask")
    outer = StateGraph(Count)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=saver)
    graph.invoke({"total": 1}, CONFIG)

    (task,) = graph.get_state(CONFIG, subgraphs=True).tasks
    assert task.state.next == ("ask",)
    folder = saver.workspace.root / "ContextMemory" / "threads" / "support-42" / "subgraphs"
    assert [one.name.partition("%3A")[0] for one in folder.iterdir()] == ["inner"]
    assert graph.invoke(Command(resume=4), CONFIG)["total"] == 6  # the outer 1, and the inner 1 with the 4


def joined(before: list[str], writes: list[list[str]]) -> list[str]:
    """All that was noted."""
    return [*before, *(note for notes in writes for note in notes)]


class Notes(TypedDict):
    """A list that is kept as what was added to it, and whole after every fourth change."""

    notes: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=4)]


@pytest.mark.filterwarnings("ignore:.*(beta|Beta).*")
def test_channels_that_are_kept_as_changes_are_made_again(saver: MemfsSaver) -> None:
    """A ``DeltaChannel`` comes back whole (B5)."""
    builder = StateGraph(Notes)
    builder.add_node("note", lambda state: {"notes": [f"note {len(state['notes'])}"]})
    builder.add_edge(START, "note")
    graph = builder.compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({"notes": ["said"]}, CONFIG)
    whole = graph.get_state(CONFIG).values["notes"]
    assert whole == ["said", "note 1", "said", "note 3", "said", "note 5"]

    assert graph.invoke({"notes": ["more"]}, CONFIG)["notes"] == [*whole, "more", "note 7"]


def run_killed(python: Path, tmp_path: Path, die_in: str) -> subprocess.CompletedProcess[str]:
    """Run the graph of five nodes in a process of its own, which dies within the node of that name."""
    script = tmp_path / "job.py"
    script.write_text(RUN, encoding="utf-8")
    words = [str(python), str(script), str(tmp_path / "memory"), die_in]
    return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)


def test_a_killed_graph_resumes_where_it_was(tmp_path: Path, git: Callable[..., str], forked_python: Path) -> None:
    """B5: kill -9 within a node, twice; no finished node runs again, none is left out, and git has the story."""
    for node in ("two", "four"):
        killed = run_killed(forked_python, tmp_path, node)
        assert killed.returncode == -signal.SIGKILL, killed.stderr

    finished = run_killed(forked_python, tmp_path, "")

    assert finished.stdout.strip() == str(["one", "two", "three", "four", "five"]), finished.stderr
    ran = (tmp_path / "ran.txt").read_text(encoding="utf-8").split()
    assert ran == ["one", "two", "two", "three", "four", "four", "five"]
    log = git(tmp_path / "memory", "log", "--format=%B")
    assert all(f"Keep step {step} (loop) of thread long%20job" in log for step in range(6))
    assert "Memfs-Source: langgraph" in log
    assert git(tmp_path / "memory", "status", "--porcelain") == ""
