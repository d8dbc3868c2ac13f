"""The session of the OpenAI Agents SDK: its protocol, its order, and its use by the SDK itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory import Session, SessionSettings, SQLiteSession
from agents.models.interface import Model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from memfs.doors.openai_agents import MemfsSession
from memfs.errors import SchemaInvalid, SecretDetected
from memfs.model import Query
from memfs.workspace import Workspace, open_workspace

Open = Callable[..., Workspace]


def turn(role: str, text: str) -> Any:
    """An item as the SDK keeps it."""
    return {"role": role, "content": text}


@pytest.fixture
def session(opened: Open) -> MemfsSession:
    """A conversation in a workspace of its own."""
    return MemfsSession("s1", workspace=opened())


@pytest.fixture
def shared(opened: Open) -> Workspace:
    """A workspace of its own."""
    return opened()


# -- the protocol ------------------------------------------------------------------------------------------------
def test_it_is_a_session(session: MemfsSession) -> None:
    """The SDK's own check takes it for a session, with the default settings (B5)."""
    assert isinstance(session, Session)
    assert session.session_id == "s1"
    assert session.session_settings == SessionSettings()


def test_items_come_back_in_order(session: MemfsSession) -> None:
    """What was added first comes first, over several calls (B5)."""

    async def talk() -> list[Any]:
        assert await session.get_items() == []
        await session.add_items(
            [turn("user", "What city is the Golden Gate Bridge in?"), turn("assistant", "San Francisco.")]
        )
        await session.add_items([])
        await session.add_items([turn("user", "Which state?")])
        return list(await session.get_items())

    assert [item["content"] for item in asyncio.run(talk())] == [
        "What city is the Golden Gate Bridge in?",
        "San Francisco.",
        "Which state?",
    ]


def test_a_limit_gives_the_latest_items(opened: Open) -> None:
    """A limit counts from the end, a negative one means all, and an argument wins over the settings (B5)."""
    session = MemfsSession("s1", workspace=opened(), session_settings=SessionSettings(limit=2))
    asyncio.run(session.add_items([turn("user", str(number)) for number in range(5)]))

    def texts(limit: int | None) -> list[Any]:
        return [item["content"] for item in asyncio.run(session.get_items(limit))]  # type: ignore[typeddict-item]

    assert [texts(limit) for limit in (None, 3, 10, 0, -1)] == [
        ["3", "4"], ["2", "3", "4"], ["0", "1", "2", "3", "4"], [], ["0", "1", "2", "3", "4"],
    ]  # fmt: skip
    assert (
        MemfsSession("s1", workspace=session._talk.workspace, session_settings={"limit": 1}).session_settings.limit == 1
    )


def test_the_latest_item_is_taken_out(session: MemfsSession) -> None:
    """Popping goes from the end to the beginning and then gives nothing; what is added goes behind the rest (B5)."""

    async def talk() -> list[Any]:
        await session.add_items([turn("user", "one"), turn("assistant", "two"), turn("user", "three")])
        popped = [await session.pop_item(), await session.pop_item()]
        await session.add_items([turn("user", "four")])
        return [*popped, *await session.get_items(), *[await session.pop_item() for _ in range(3)]]

    found = [item["content"] if item else None for item in asyncio.run(talk())]
    assert found == ["three", "two", "one", "four", "four", "one", None]


def test_what_the_agent_gets_is_on_record(opened: Open) -> None:
    """The record of what was handed out has each turn that came back, for this agent and session, and no other (B2)."""
    workspace = opened()
    session = MemfsSession("s1", workspace=workspace, agent="scout")
    asyncio.run(session.add_items([turn("user", "one"), turn("user", "two"), turn("user", "three")]))
    assert workspace.usage.served.find() == []
    asyncio.run(session.get_items(2))
    asyncio.run(session.pop_item())
    popped, got = workspace.usage.served.find()
    assert {(row.way, row.door, row.agent, row.session) for row in (popped, got)} == {
        ("read", "openai-agents", "scout", "s1")
    }
    assert [one.rsplit("-", 1)[1] for one in got.ids] == ["000002", "000003"]
    assert popped.ids == got.ids[1:]


def test_a_cleared_session_is_empty_and_others_stay(opened: Open) -> None:
    """Clearing touches one conversation only, also one whose name differs by case (B5)."""
    workspace = opened()
    one, other = MemfsSession("a b", workspace=workspace), MemfsSession("A b", workspace=workspace)

    async def talk() -> tuple[Any, Any]:
        await one.add_items([turn("user", "mine"), turn("user", "mine too")])
        await other.add_items([turn("user", "theirs")])
        await one.clear_session()
        await one.clear_session()
        await one.add_items([turn("user", "again")])
        return await one.get_items(), await other.get_items()

    assert asyncio.run(talk()) == ([turn("user", "again")], [turn("user", "theirs")])


def test_a_conversation_outlives_its_process(opened: Open) -> None:
    """Another handle on the workspace finds the conversation as it was (B5)."""
    workspace = opened()
    asyncio.run(MemfsSession("s1", workspace=workspace).add_items([turn("user", "hello")]))
    workspace.close()
    again = MemfsSession("s1", workspace.root)
    assert asyncio.run(again.get_items()) == [turn("user", "hello")]
    again.close()


# -- what is stored ----------------------------------------------------------------------------------------------
def test_a_person_can_read_a_turn(session: MemfsSession, opened: Open) -> None:
    """A turn is a file with its text, who said it and its place, and recall finds it (B5)."""
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Paris"}'}
    output = {"type": "function_call_output", "call_id": "c1", "output": "Sunny in Paris"}
    asyncio.run(session.add_items([turn("user", "Is it raining in Paris?"), call, output]))  # type: ignore[list-item]
    workspace = session._talk.workspace
    items = sorted(workspace.store.select(Query(limit=9)), key=lambda item: item.origin.sequence or 0)
    assert [(item.origin.role, item.origin.session, item.origin.tool, item.content, item.trust) for item in items] == [
        ("user", "s1", "", "Is it raining in Paris?", "agent"),
        ("assistant", "s1", "weather", 'weather({"city":"Paris"})', "agent"),
        ("tool", "s1", "", "Sunny in Paris", "tool"),
    ]
    assert "Is it raining in Paris?" in (workspace.root / items[0].path).read_text()
    assert {item.type for item in items} == {"conversation"}


TEXT = st.text(max_size=40) | st.sampled_from(
    [
        "\r\n",
        " lead\n\ttab ",
        "null",
        "\0",
        "\u202e",
        "\ud800",
        "x" * 3_000,
        "a: b\n- c",
        "",
        "# no",
        "\x0b\x85\u2028",
        "👩‍💻",
    ]
)
VALUE: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(TEXT, VALUE, max_size=4), min_size=1, max_size=3))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_json_can_hold_comes_back_as_it_was(shared: Workspace, items: list[Any]) -> None:
    """Text that YAML cannot hold, huge numbers, odd keys: each item returns equal in value and type (B5)."""
    session = MemfsSession("s1", workspace=shared, allow_secret="made up")
    asyncio.run(session.clear_session())
    asyncio.run(session.add_items(items))
    assert json.dumps(asyncio.run(session.get_items())) == json.dumps(items)


STEPS = st.lists(
    st.tuples(st.just("add"), st.lists(st.sampled_from(["a", "b", "ü\n"]), max_size=3))
    | st.tuples(st.just("get"), st.none() | st.integers(-2, 4))
    | st.tuples(st.sampled_from(["pop", "clear"]), st.none()),
    max_size=8,
)


@given(STEPS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_it_does_what_the_sdks_own_session_does(session: MemfsSession, steps: list[tuple[str, Any]]) -> None:
    """Any sequence of calls gives what the SDK's session over SQLite gives (B5)."""
    known = SQLiteSession("s1")

    async def carry_out(one: Session) -> list[Any]:
        await one.clear_session()
        answers: list[Any] = []
        for step, value in steps:
            if step == "add":
                answers.append(await one.add_items([turn("user", text) for text in value]))
            elif step == "get":
                answers.append(await one.get_items(value))
            else:
                answers.append(await (one.pop_item() if step == "pop" else one.clear_session()))
        return [*answers, await one.get_items()]

    assert asyncio.run(carry_out(session)) == asyncio.run(carry_out(known))
    known.close()


def test_an_item_larger_than_a_file_comes_back_whole(session: MemfsSession) -> None:
    """A picture of megabytes is kept in several files, and leaves with all of them (B5)."""
    large: Any = {"role": "user", "content": [{"type": "input_image", "image_url": "data:" + "A9/b" * 400_000}]}
    workspace = session._talk.workspace

    async def talk() -> list[Any]:
        await session.add_items([turn("user", "look"), large, turn("assistant", "nice")])
        found = await session.get_items(2)
        return [*found, await session.pop_item(), await session.pop_item(), workspace.store.count()]

    assert asyncio.run(talk()) == [large, turn("assistant", "nice"), turn("assistant", "nice"), large, 1]


def test_a_secret_is_refused_unless_somebody_says_why(opened: Open) -> None:
    """Nothing of the call is stored, and the error names the rule, not the secret (B5)."""
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    workspace = opened()
    strict = MemfsSession("s1", workspace=workspace)
    with pytest.raises(SecretDetected) as refused:
        asyncio.run(strict.add_items([turn("user", "hello"), turn("user", f"my token is {key}")]))
    assert key not in str(refused.value)
    assert asyncio.run(strict.get_items()) == []
    lenient = MemfsSession("s1", workspace=workspace, allow_secret="a dummy of the test")
    asyncio.run(lenient.add_items([turn("user", f"my token is {key}")]))
    assert asyncio.run(strict.get_items()) == [turn("user", f"my token is {key}")]
    named = MemfsSession(key, workspace=workspace)  # the name of a session is not text: it is shown without the secret
    asyncio.run(named.add_items([turn("user", "hello")]))
    assert asyncio.run(named.get_items()) == [turn("user", "hello")]
    assert [path for path in workspace.root.rglob("*.yaml") if key[4:].lower() in path.name.lower()] == []


def test_what_is_not_json_is_refused(session: MemfsSession) -> None:
    """As the SDK's own sessions do, and nothing of the call is stored (B5)."""
    with pytest.raises(TypeError):
        asyncio.run(session.add_items([turn("user", "hello"), {"role": object()}]))  # type: ignore[list-item]
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        asyncio.run(session.add_items([turn("user", deep)]))
    assert asyncio.run(session.get_items()) == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, None])
def test_a_session_needs_a_name(name: Any) -> None:
    """A name that cannot be kept is refused before anything is opened (faults 13)."""
    with pytest.raises(SchemaInvalid, match="1 to 200 characters"):
        MemfsSession(name)


@pytest.mark.parametrize("name", ["../../etc/passwd", "user:123/äöü 日本", "a\nb", "-", "con", "x" * 200])
def test_any_name_is_a_file_name_of_ours(name: str, opened: Open) -> None:
    """The name of a session cannot lead out of the workspace (faults 13)."""
    workspace = opened()
    session = MemfsSession(name, workspace=workspace)
    asyncio.run(session.add_items([turn("user", "hello")]))
    assert asyncio.run(session.get_items()) == [turn("user", "hello")]
    (item,) = workspace.store.select(Query())
    assert item.path.startswith("ContextMemory/memories/conversation/")


def test_what_a_person_breaks_is_left_out(session: MemfsSession) -> None:
    """A file edited into nonsense neither stops the conversation nor is written over (B5)."""
    workspace = session._talk.workspace
    asyncio.run(session.add_items([turn("user", "one"), turn("user", "two"), turn("user", "three")]))
    broken = sorted((workspace.root / "ContextMemory/memories/conversation").rglob("*.yaml"))[-1]
    broken.write_text("data: [")
    workspace.store.refresh()
    asyncio.run(session.add_items([turn("user", "four")]))
    assert [item["content"] for item in asyncio.run(session.get_items())] == ["one", "two", "four"]  # type: ignore[typeddict-item]
    assert broken.read_text() == "data: ["


# -- several at once ---------------------------------------------------------------------------------------------
WRITER = """
import asyncio, sys
from memfs.doors.openai_agents import MemfsSession
session = MemfsSession("shared", sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(6):
    pair = [{"role": "user", "content": f"{sys.argv[2]}-{number}-{half}"} for half in "ab"]
    asyncio.run(session.add_items(pair))
    print(number, flush=True)
session.close()
"""


def test_processes_share_a_conversation(tmp_path: Path, forked_python: Path) -> None:
    """Of two processes that write at once no item is lost, and what one call adds stays together (B5)."""
    open_workspace(tmp_path, create=True, watch=False).close()
    command = [str(forked_python), "-c", WRITER, str(tmp_path), "x"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        mine = MemfsSession("shared", tmp_path)
        assert asyncio.run(mine.get_items()) == []
        assert other.stdout.readline() == "ready\n"
        other.stdin.write("\n")
        other.stdin.flush()
        for number in range(6):
            asyncio.run(mine.add_items([turn("user", f"y-{number}-{half}") for half in "ab"]))
        mine.close()
        assert other.communicate()[0].split() == list("012345")
    session = MemfsSession("shared", tmp_path)
    texts: list[str] = [item["content"] for item in asyncio.run(session.get_items())]  # type: ignore[typeddict-item,misc]
    session.close()
    assert len(texts) == 24
    assert all(first[:-1] == second[:-1] for first, second in zip(texts[::2], texts[1::2], strict=True))
    for name in "xy":
        own = [text for text in texts if text.startswith(name)]
        assert own == [f"{name}-{number}-{half}" for number in range(6) for half in "ab"]


def test_threads_with_loops_of_their_own_share_a_session(session: MemfsSession) -> None:
    """Each program may bring its own loop: what is added together stays together, and is taken out once (B5)."""

    async def add(which: int) -> None:
        await asyncio.gather(*(session.add_items([turn("user", f"{which} {n} {end}") for end in "ab"]) for n in (1, 2)))

    async def pop() -> list[Any]:
        return [await session.pop_item() for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda which: asyncio.run(add(which)), range(4)))
        items: list[Any] = list(asyncio.run(session.get_items()))
        taken = [one for some in threads.map(lambda _: asyncio.run(pop()), range(4)) for one in some]
    contents = [item["content"] for item in items]
    assert len(set(contents)) == 16
    assert all(one[:-1] == other[:-1] for one, other in zip(contents[::2], contents[1::2], strict=True))
    assert sorted(one["content"] for one in taken) == sorted(contents)


def test_calls_at_once_lose_nothing(session: MemfsSession) -> None:
    """Tasks of one process may add and pop at the same time (B5)."""

    async def talk() -> list[Any]:
        await asyncio.gather(*(session.add_items([turn("user", str(number))]) for number in range(12)))
        popped = await asyncio.gather(*(session.pop_item() for _ in range(5)))
        return [*popped, *await session.get_items()]

    assert sorted(int(item["content"]) for item in asyncio.run(talk())) == list(range(12))


# -- the SDK itself ----------------------------------------------------------------------------------------------
class Scripted(Model):
    """A model that answers from a list and keeps what it was asked."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> ModelResponse:  # noqa: A002
        """The next answer."""
        self.asked.append(input)
        return ModelResponse(output=self.answers.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **named: Any) -> AsyncIterator[Any]:
        """No test streams."""
        raise NotImplementedError


def message(text: str) -> Any:
    """An answer as text."""
    content = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(id="m1", type="message", role="assistant", status="completed", content=[content])


def test_the_sdk_runs_an_agent_with_it(opened: Open) -> None:
    """A second run, with a handle of its own, gets what was said and done in the first, tools included (B5)."""

    @function_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Sunny in {city}"

    call = ResponseFunctionToolCall(
        id="f1", call_id="c1", type="function_call", name="weather", arguments='{"city":"Paris"}'
    )
    model = Scripted([call], [message("It is sunny.")], [message("You asked about Paris.")])
    agent = Agent(name="guide", model=model, tools=[weather])
    workspace = opened()
    config = RunConfig(tracing_disabled=True)

    async def runs() -> str:
        await Runner.run(agent, "How is Paris?", session=MemfsSession("trip", workspace=workspace), run_config=config)
        second = await Runner.run(
            agent, "What did I ask?", session=MemfsSession("trip", workspace=workspace), run_config=config
        )
        return str(second.final_output)

    assert asyncio.run(runs()) == "You asked about Paris."
    request = json.dumps(model.asked[-1])
    assert [word in request for word in ("How is Paris?", "Sunny in Paris", "It is sunny.", "What did I ask?")] == [
        True
    ] * 4
    kept = asyncio.run(MemfsSession("trip", workspace=workspace).get_items())
    assert [item.get("type", item.get("role")) for item in kept] == [
        "user", "function_call", "function_call_output", "message", "user", "message",
    ]  # fmt: skip
