"""What a lookup costs does not grow with the documents: counted in steps, not in time (S13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks import state_corpus as corpus
from memfs.model import state_paths as paths
from memfs.model.state_facts import StateQuery
from memfs.model.time import format_time
from memfs.search import state_index
from memfs.state.aggregates import hypothesis_history
from memfs.state.parts import States
from memfs.state.reader import DocumentChange
from memfs.state.retrieval import Retrieval, find_similar_states
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
FEW, MANY = 40, 400


class Counting:
    """Counts the steps of SQLite's machine, and the documents that are loaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = self.loaded = 0
        connect = sqlite3.connect

        def counted(*arguments: Any, **named: Any) -> sqlite3.Connection:
            base = connect(*arguments, **named)
            base.set_progress_handler(self._step, 1)
            return base

        monkeypatch.setattr(state_index.sqlite3, "connect", counted)

    def _step(self) -> int:
        self.steps += 1
        return 0

    def of(self, states: States, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
        """The steps and documents that an answer takes, once what changed is known."""
        load = states.reading.read

        def loaded(row: Any) -> Any:
            self.loaded += 1
            return load(row)

        states.reading.catch_up()
        with monkeypatch.context() as patched:
            patched.setattr(states.reading, "read", loaded)
            self.steps = self.loaded = 0
            act()
        return self.steps, self.loaded


def stateless(output: dict[str, Any]) -> dict[str, Any]:
    """An output without its agent's state."""
    return {key: value for key, value in output.items() if key != "state_data"}


def grow(states: States, first: int, last: int) -> None:
    """Store iterations' worth of updates, outputs and hypotheses in one iteration, one after the other."""
    small = {paths.output_path(2, "Judge", "t"): corpus.output(2, "Judge"), paths.update_path(2, corpus.BEGIN): {}}
    small[paths.update_path(2, corpus.BEGIN)] = {**corpus.update(2), "timestamp": format_time(corpus.BEGIN)}
    states.files.write([DocumentChange(path, values) for path, values in small.items()], "The next iteration")
    for number in range(first, last):
        agent = "Scout" if number == 7 else "Weaver"
        made: dict[str, Any] = {
            paths.update_path(1, corpus.opening(number)): corpus.update(number),
            paths.output_path(1, "Judge", f"t{number}"): {**corpus.output(1, "Judge"), "task_id": f"t{number}"},
            paths.output_path(1, agent, f"t{number}"): stateless(corpus.output(1, agent)),
            paths.hypothesis_path(1, f"h{number}"): {
                "id": f"h{number}",
                "parents": [f"h{number - 1}"] * (number % 5 > 0),
            },
        }
        states.files.write([DocumentChange(path, values) for path, values in made.items()], "Work")


def questions(states: States) -> Iterator[tuple[str, Callable[[], object]]]:
    """Lookups by each of the ways that have an index."""
    wanted = {**corpus.update(7), "timestamp": None}
    reading = states.reading
    start, end = corpus.opening(7), corpus.opening(8)
    yield "like states", lambda: find_similar_states(reading, wanted)
    yield "one figure", lambda: find_similar_states(reading, {"pending_reviews": 3})
    yield "one hypothesis", lambda: Retrieval(reading).retrieve("partial", hypotheses=["h7"])
    yield "its line", lambda: hypothesis_history(reading, "h7")
    yield "one agent", lambda: Retrieval(reading).retrieve("partial", agents=["Scout"])
    yield "an agent with many outputs", lambda: Retrieval(reading).retrieve("partial", agents=["Judge"])
    yield "an agent without a state", lambda: Retrieval(reading).retrieve("partial", agents=["Weaver"])
    yield (
        "a figure",
        lambda: Retrieval(reading).retrieve("partial", metrics=["yield"], iterations=[2], agents=["Judge"]),
    )
    yield "several agents", lambda: Retrieval(reading).retrieve("summary", agents=["Scout", "Nobody"], iterations=[2])
    yield "one iteration", lambda: Retrieval(reading).retrieve("full", iterations=[2])
    yield "an hour", lambda: Retrieval(reading).retrieve("partial", components=["system"], start=start, end=end)
    yield "the newest", lambda: states.index.find(StateQuery(kinds=("agent_output",), newest=True, limit=5))


def test_lookups_among_ten_times_as_many_documents_do_the_same_work(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time, agent, hypothesis and likeness: at most one and a half times the steps and documents (S13)."""
    counting = Counting(monkeypatch)
    states = opened().states
    grow(states, 0, FEW)
    few = {name: counting.of(states, ask, monkeypatch) for name, ask in questions(states)}
    grow(states, FEW, MANY)
    many = {name: counting.of(states, ask, monkeypatch) for name, ask in questions(states)}
    grown = [name for name in few if many[name][0] > 1.5 * few[name][0] or many[name][1] > 1.5 * few[name][1]]
    assert grown == [], (few, many)
    assert all(steps for steps, _ in few.values())
