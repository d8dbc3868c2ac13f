"""Steps for seed 004: what comes up by itself, what is asked for, and what feeds it (P1-P6), through public names."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from memfs import (
    Action,
    MemoryItem,
    MemoryLayer,
    Outcome,
    PatternMatcher,
    Rule,
    SemanticStore,
    SettingInvalid,
    StateSnapshot,
)

scenarios("features/memory_that_comes_up.feature")

LIMIT, LONG = 0.3, 60


class Source:
    """A source of somebody else's, good or bad."""

    layer = "triggered"

    def __init__(self, name: str, does: str, text: str = "") -> None:
        self.name = name
        self.does = does
        self.text = text

    async def get_context(self, state: StateSnapshot) -> Any:
        """What it is made to do."""
        if self.does == "raises":
            raise RuntimeError("the ticket server is gone")
        if self.does == "exits":
            sys.exit(3)
        if self.does == "hangs":
            time.sleep(LONG)  # asleep for good, as far as anybody can wait
        return 7 if self.does == "answers no text" else self.text

    def configure(self, config: Mapping[str, Any]) -> None:
        """It has no settings."""


class World:
    """A layer, and what came of it last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memory = MemoryLayer(path)
        self.warnings: list[str] = []
        self.answer = ""

    def automatic(self) -> str:
        """What the system prompt gets."""
        return asyncio.run(self.memory.get_automatic())

    def all_warnings(self) -> str:
        """All warnings."""
        return "\n".join(self.warnings)

    def record(self, file: str, deed: str, outcome: Outcome, error: str | None = None) -> None:
        """Record an episode."""
        state = StateSnapshot.create(files=[file], context=deed)
        asyncio.run(self.memory.record_outcome(state, Action("edit", f"Edited {file}"), outcome, error))


@pytest.fixture
def world(workspace_path: Path) -> World:
    """The layer under test."""
    return World(workspace_path)


def bullets(text: str) -> list[str]:
    """The bullets of a quoted text."""
    return [line.removeprefix("| - ") for line in text.split("\n") if line.startswith("| - ")]


@given("a memory layer")
def _(world: World) -> None:
    assert world.memory.report() == []


@given(parsers.parse('the knowledge "{content}"'))
def _(world: World, content: str) -> None:
    world.memory.workspace.store.put(MemoryItem(content, "knowledge", trust="human"))


@given(parsers.parse('the preference "{content}" noted by an agent'))
def _(world: World, content: str) -> None:
    world.memory.workspace.store.put(MemoryItem(content, "preference", trust="agent"))


@given(parsers.parse('the file "{name}" says "{text}"'))
def _(world: World, name: str, text: str) -> None:
    (world.path / name).write_text(f"# For agents\n\n{text}\n")


@given(parsers.re(r"the settings (?P<written>\{.*\})$"))
def _(world: World, written: str) -> None:
    world.memory.configure(json.loads(written))


@given(parsers.parse('editing "{file}" to "{deed}" failed with "{error}"'))
def _(world: World, file: str, deed: str, error: str) -> None:
    world.record(file, deed, Outcome.FAILURE, error)


@given(parsers.parse('editing "{file}" to "{deed}" went well'))
def _(world: World, file: str, deed: str) -> None:
    world.record(file, deed, Outcome.SUCCESS)


@given(parsers.parse('the rule "{action}" for "{pattern}" with confidence {confidence:f}'))
def _(world: World, action: str, pattern: str, confidence: float) -> None:
    SemanticStore(workspace=world.memory.workspace).add_rule(Rule(pattern, action, confidence))


@given(parsers.re(r'a source "(?P<name>\w+)" that says "(?P<text>[^"]+)"$'))
def _(world: World, name: str, text: str) -> None:
    world.memory.configure({"source_seconds": LONG})
    world.memory.add_plugin(Source(name, "says", text))


@given(parsers.re(r'a source "(?P<name>\w+)" that (?P<does>raises|hangs|exits|answers no text)$'))
def _(world: World, name: str, does: str) -> None:
    world.memory.configure({"source_seconds": LIMIT if does == "hangs" else LONG})
    world.memory.add_plugin(Source(name, does))


@when(parsers.parse('a person says "{message}"'))
def _(world: World, message: str) -> None:
    asyncio.run(world.memory.record_correction(message, speaker="Ada"))


@when("failures are analysed")
def _(world: World) -> None:
    assert asyncio.run(PatternMatcher(workspace=world.memory.workspace).analyze_failures())


@when(parsers.parse('the agent asks "{question}"'))
def _(world: World, question: str) -> None:
    assert [tool["function"]["name"] for tool in world.memory.tools()] == ["memory_recall"]
    world.answer = asyncio.run(world.memory.recall_tool(question))


@then("the system prompt gets nothing")
def _(world: World) -> None:
    assert world.automatic() == ""


@then(parsers.parse('the system prompt has the heading "{heading}"'))
def _(world: World, heading: str) -> None:
    assert f"| {heading}" in world.automatic().split("\n")


@then(parsers.parse('the system prompt has the bullet "{bullet}"'))
def _(world: World, bullet: str) -> None:
    assert [line for line in bullets(world.automatic()) if line.startswith(bullet)]


@then(parsers.parse("the system prompt has {count:d} bullet"))
def _(world: World, count: int) -> None:
    assert len(bullets(world.automatic())) == count


@then(parsers.parse('the system prompt does not say "{text}"'))
def _(world: World, text: str) -> None:
    assert text not in world.automatic()


@then(parsers.parse('before editing "{file}" to "{deed}" there is a warning'))
def _(world: World, file: str, deed: str) -> None:
    world.warnings = asyncio.run(world.memory.check_triggers(StateSnapshot.create(files=[file], context=deed)))
    assert world.warnings


@then(parsers.parse('before editing "{file}" to "{deed}" there is no warning'))
def _(world: World, file: str, deed: str) -> None:
    assert asyncio.run(world.memory.check_triggers(StateSnapshot.create(files=[file], context=deed))) == []


@then(parsers.parse('it has the heading "{heading}"'))
def _(world: World, heading: str) -> None:
    assert f"| {heading}" in world.all_warnings().split("\n")


@then(parsers.parse('it has the bullet "{bullet}"'))
def _(world: World, bullet: str) -> None:
    assert [line for line in bullets(world.all_warnings()) if line.startswith(bullet)], world.all_warnings()


@then(parsers.parse('it says "{text}"'))
def _(world: World, text: str) -> None:
    assert text in world.all_warnings()


@then(parsers.parse('the answer says "{text}"'))
def _(world: World, text: str) -> None:
    assert text in world.answer


@then(parsers.parse('the answer is "{text}"'))
def _(world: World, text: str) -> None:
    assert world.answer == text


@then("the agent has no tool")
def _(world: World) -> None:
    assert world.memory.tools() == []


@then("asking is refused")
def _(world: World) -> None:
    with pytest.raises(SettingInvalid):
        asyncio.run(world.memory.recall("anything"))


@then(parsers.parse('the failure of "{name}" is reported'))
def _(world: World, name: str) -> None:
    assert [problem for problem in world.memory.report() if name in problem.message]


@then(parsers.re(r'the settings (?P<written>\{.*\}) are refused with "(?P<hint>\w+)"$'))
def _(world: World, written: str, hint: str) -> None:
    with pytest.raises(SettingInvalid, match=hint):
        world.memory.configure(json.loads(written))
