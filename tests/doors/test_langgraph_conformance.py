"""LangGraph checkpointer: the framework's own conformance suite, and the same as its saver in memory (B5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import BASE_CAPABILITIES
from langgraph.checkpoint.memory import InMemorySaver

from memfs.doors.langgraph import MemfsSaver


def test_the_conformance_suite_passes_wholly(tmp_path: Path) -> None:
    """B5: every capability that LangGraph asks of a saver."""

    @checkpointer_test(name="MemfsSaver")
    async def made() -> AsyncGenerator[MemfsSaver, None]:
        async with MemfsSaver(tmp_path) as saver:
            yield saver

    report = asyncio.run(validate(made))

    assert {name for name, result in report.results.items() if result.passed} == {
        one.value for one in BASE_CAPABILITIES
    }
    assert [failure for result in report.results.values() for failure in result.failures] == []
    assert report.conformance_level() == "FULL"


CHANNELS = ("a", "b", "branch:to:c")
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 3)), st.text(max_size=3), max_size=2),
    st.sets(st.integers(0, 3), max_size=3),
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "namespace": st.sampled_from(["", "sub:1|deep"]),
            "back": st.integers(0, 3),  # how many checkpoints before the newest the new one begins
            "changed": st.dictionaries(st.sampled_from(CHANNELS), VALUES, max_size=3),
            "emptied": st.sampled_from([None, *CHANNELS]),
            "writes": st.lists(st.tuples(st.sampled_from([*CHANNELS, "__error__"]), VALUES), max_size=3),
            "task": st.sampled_from(["t1", "t2"]),
        }
    ),
    min_size=1,
    max_size=6,
)


class Both:
    """Does the same with both savers."""

    def __init__(self, ours: MemfsSaver) -> None:
        self.savers: list[Any] = [ours, InMemorySaver()]
        self.made: dict[str, list[Any]] = {}

    def step(self, thread: str, at: int, step: dict[str, Any]) -> None:
        """Put one more checkpoint, some way on from one of those before, and writes to it."""
        before = self.made.setdefault(step["namespace"], [])
        parent = before[-1 - min(step["back"], len(before) - 1)] if before else None
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=at))
        if parent is not None:
            checkpoint["channel_values"] = dict(parent["channel_values"])
            checkpoint["channel_versions"] = dict(parent["channel_versions"])
        new = dict.fromkeys({*step["changed"], step["emptied"]} - {None}, f"{at:032}.{at}")
        checkpoint["channel_values"].update(step["changed"])
        if step["emptied"] is not None:
            checkpoint["channel_values"].pop(step["emptied"], None)
        checkpoint["channel_versions"].update(new)
        before.append(checkpoint)
        given: Any = {"thread_id": thread, "checkpoint_ns": step["namespace"]}
        if parent is not None:
            given["checkpoint_id"] = parent["id"]
        for saver in self.savers:
            metadata: Any = {"source": "loop", "step": at, "parents": {}, "odd": at % 2}
            config = saver.put({"configurable": given}, checkpoint, metadata, new)
            if step["writes"]:
                saver.put_writes(config, step["writes"], step["task"], f"~{step['task']}")
                saver.put_writes(config, step["writes"][::-1], step["task"], f"~{step['task']}")

    def same(self, ask: Any) -> None:
        """Both answer alike."""
        ours, theirs = (ask(saver) for saver in self.savers)
        assert repr(ours) == repr(theirs)


def listed(saver: Any, thread: str, namespace: str, **how: Any) -> Any:
    """What a saver lists, but for the order of channels."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
    return [plain(one) for one in saver.list(config, **how)]


def plain(one: Any) -> Any:
    """A tuple in a form that can be compared."""
    if one is None:
        return None
    checkpoint = {**one.checkpoint, "channel_values": sorted(one.checkpoint["channel_values"].items())}
    versions = sorted(checkpoint.pop("channel_versions").items())
    return one.config, sorted(checkpoint.items()), versions, one.metadata, one.parent_config, one.pending_writes


def test_it_answers_as_the_saver_in_memory_does(tmp_path: Path) -> None:
    """Random histories with branches, namespaces, emptied channels and repeated writes: the same tuples (B5)."""
    count = 0
    with MemfsSaver(tmp_path) as ours:

        @settings(max_examples=25)
        @given(STEPS)
        def compare(steps: list[dict[str, Any]]) -> None:
            nonlocal count
            count += 1
            both, thread = Both(ours), f"thread/{count}"
            for at, step in enumerate(steps, start=1):
                both.step(thread, at, step)
            for namespace in both.made:
                both.same(lambda saver, n=namespace: listed(saver, thread, n))
                both.same(lambda saver, n=namespace: listed(saver, thread, n, filter={"odd": 1}, limit=2))
                first: Any = {"configurable": {"checkpoint_id": both.made[namespace][-1]["id"]}}
                both.same(lambda saver, n=namespace, b=first: listed(saver, thread, n, before=b))
                config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
                both.same(lambda saver, c=config: plain(saver.get_tuple(c)))
                both.same(lambda saver, c=config: saver.get_delta_channel_history(config=c, channels=CHANNELS))

        compare()
