"""LangGraph: what it costs to keep a graph's checkpoints, and to find them again.

``python -m benchmarks.langgraph`` grows a conversation by one message a step, as a graph does, and measures each put
beside a bare durable write of the same bytes; then it lists, and asks for the newest.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from benchmarks.rows import Row, timed
from benchmarks.samples import Samples
from benchmarks.surroundings import facts, hermetic
from benchmarks.yardsticks import WRITE, BareWrites
from memfs.doors.langgraph import MemfsSaver

PUT, WRITES, NEWEST, LIST, PAGE = "put", "put_writes", "get_tuple, newest", "list, all", "list, limit=10"
_PLACE = "ContextMemory/threads/bench"
_MESSAGES = 20
_TEXT = "The tests of the payment service pass again after the retry was given a limit of three. "
_ASKED = 20
Step = tuple[Any, Any, dict[str, str | int | float]]
CONFIG: Any = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


class Talk:
    """A conversation: of its last messages each step brings one, the rest of the state stays."""

    def __init__(self, saver: MemfsSaver, folder: Path) -> None:
        self._saver, self._folder = saver, folder
        self._config = CONFIG
        self._step = 0
        self._values: dict[str, Any] = {"messages": [], "plan": _TEXT * 10, "turn": 0}
        self._versions: dict[str, str | int | float] = dict.fromkeys(self._values, 1)

    def prepare(self) -> Step:
        """What the next step puts."""
        self._step += 1
        message = AIMessage(f"{self._step}. {_TEXT}", id=str(self._step))
        self._values = {
            **self._values,
            "messages": [*self._values["messages"], message][-_MESSAGES:],
            "turn": self._step,
        }
        changed: dict[str, str | int | float] = (
            {"messages": self._step + 1, "turn": self._step + 1} if self._step > 1 else dict(self._versions)
        )
        self._versions |= changed
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=self._step))
        checkpoint["channel_values"], checkpoint["channel_versions"] = dict(self._values), dict(self._versions)
        return checkpoint, {"source": "loop", "step": self._step, "parents": {}}, changed

    def put(self, step: Step) -> None:
        """Keep a step."""
        self._config = self._saver.put(self._config, *step)

    def write(self) -> None:
        """Keep what a task wrote."""
        self._saver.put_writes(self._config, [("messages", [AIMessage(_TEXT)]), ("turn", self._step)], "task", "~path")

    def newest(self) -> bytes:
        """The bytes that the last step became."""
        return (self._folder / "checkpoints" / f"{self._config['configurable']['checkpoint_id']}.json").read_bytes()


def rows(folder: Path, steps: int) -> list[Row]:
    """Measure so many steps, and the questions after them."""
    bare = BareWrites(folder / "bare")
    kept, floor, written, again = Samples(), Samples(), Samples(), Samples()
    newest, whole, page = Samples(), Samples(), Samples()
    with MemfsSaver(folder / "memory") as saver:
        talk = Talk(saver, saver.workspace.root / _PLACE)
        talk.put(talk.prepare())  # the first one reads schemas
        for _ in range(steps - 1):
            step, data = talk.prepare(), talk.newest()
            floor.time(lambda data=data: bare.write(data))  # type: ignore[misc]
            kept.time(lambda step=step: talk.put(step))  # type: ignore[misc]
            again.time(lambda data=data: bare.write(data[:1500]))  # type: ignore[misc]
            written.time(talk.write)
        for _ in range(_ASKED):
            newest.time(lambda: saver.get_tuple(CONFIG))
            page.time(lambda: list(saver.list(CONFIG, limit=10)))
        for _ in range(3):
            whole.time(lambda: list(saver.list(CONFIG)))
    return [
        timed("langgraph", PUT, steps, "", kept, WRITE, floor),
        timed("langgraph", WRITES, steps, "", written, WRITE, again),
        timed("langgraph", NEWEST, steps, "", newest),
        timed("langgraph", PAGE, steps, "", page),
        timed("langgraph", LIST, steps, "", whole),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")
    options = parser.parse_args(arguments)
    with hermetic(options.folder) as place:
        print(", ".join(f"{name} {value}" for name, value in facts(place)))
        found = rows(place, options.steps)
    print(f"\n| {options.steps} checkpoints | p50 ms | p95 ms | times a bare write |\n|---|---|---|---|")
    for row in found:
        ratio = f"{row.ratio:.1f}" if row.ratio else ""
        print(f"| {row.name} | {row.value:.2f} | {row.p95 or 0:.2f} | {ratio} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
