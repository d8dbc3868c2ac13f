"""Isolation: whatever a source of others does, the agent and the other sources go on (P2)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from kit.patience import LONG, until, without_patience
from memfs.context.deliver import ContextEntry, ContextSelection, Delivery
from memfs.context.plugins import MOST_LETTERS, LoadedSource, ask
from memfs.model.episode import StateSnapshot
from memfs.recall.foreign import ForeignCode, ForeignFailure

STATE = StateSnapshot.create(files=["a.py"], context="change a.py", circumstances={"branch": "main"})
LIMIT = 0.15


@dataclass
class Source:
    """A source of others that behaves as the test says."""

    name: str = "foreign"
    act: Callable[[StateSnapshot], Any] = lambda _: "its context"
    layer: str = "triggered"

    async def get_context(self, state: StateSnapshot) -> Any:
        found = self.act(state)
        return await found if asyncio.iscoroutine(found) else found

    def configure(self, config: Any) -> None: ...


@dataclass
class Own:
    """A built-in source."""

    name: str = "own"
    error: Exception | None = None
    threads: list[str] = field(default_factory=list)

    def select(self, state: StateSnapshot) -> ContextSelection:
        self.threads.append(threading.current_thread().name)
        if self.error:
            raise self.error
        return ContextSelection(heading="Own:", entries=(ContextEntry(text=state.context),))


class Unshowable(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise SystemExit(3)


class Posing(str):
    """Text that would do something of its own when it is looked at."""

    __slots__ = ()

    def __len__(self) -> int:
        return 1

    def strip(self, *_: object) -> str:
        raise SystemExit(4)

    encode = strip  # type: ignore[assignment]


def loaded(plugin: Any, built_in: bool = False) -> LoadedSource:
    """A source as loading gives it."""
    return LoadedSource(name=plugin.name, delivery=Delivery.TRIGGERED, plugin=plugin, built_in=built_in)


def raising(error: BaseException) -> Callable[[StateSnapshot], Any]:
    """Raises this."""

    def act(_: StateSnapshot) -> Any:
        raise error

    return act


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Something that sources hang on; let go at the end, so that no thread of a test outlives it."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize(
    ("act", "failure"),
    [
        (raising(RuntimeError("no\nluck")), "RuntimeError: no luck"),
        (raising(SystemExit(2)), "SystemExit: 2"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(asyncio.CancelledError()), "CancelledError"),
        (raising(Unshowable()), "Unshowable"),
        (raising(ValueError("\ud800" + "x" * 5_000)), "ValueError: \\ud800" + "x" * 282),
        (lambda _: 42, "it gave int and not a text"),
        (lambda _: b"bytes", "it gave bytes and not a text"),
        (lambda _: "x" * (MOST_LETTERS + 1), "it gave 100,001 letters; 100,000 are taken"),
        (lambda _: Posing("x" * (MOST_LETTERS + 1)), "it gave 100,001 letters; 100,000 are taken"),
    ],
)
def test_a_source_that_fails_is_left_out_and_named(act: Callable[[StateSnapshot], Any], failure: str) -> None:
    """Errors of any sort, exits and what is not text break no other source (P2)."""
    sources = [loaded(Source("bad", act)), loaded(Source("good")), loaded(Own(), built_in=True)]
    answers = ask(sources, STATE, ForeignCode(LONG))
    assert [(one.source.name, one.failure) for one in answers] == [("bad", failure), ("good", ""), ("own", "")]
    assert answers[0].text == ""
    assert answers[1].text == "its context"
    assert str(answers[2].selection) == "Own:\n- change a.py"


@pytest.mark.parametrize("given", [None, "", "  \n"])
def test_nothing_is_nothing(given: str | None) -> None:
    """A source may have nothing to say."""
    (answer,) = ask([loaded(Source(act=lambda _: given))], STATE, ForeignCode(LONG))
    assert (answer.text, answer.failure) == ("", "")


def test_a_text_of_its_own_making_is_taken_as_plain_text() -> None:
    """A subclass of str runs none of its methods here."""
    (answer,) = ask([loaded(Source(act=lambda _: Posing("said")))], STATE, ForeignCode(LONG))
    assert (answer.text, type(answer.text)) == ("said", str)


def test_a_method_that_is_not_async_is_understood() -> None:
    """A source that answers at once is asked all the same."""

    class Plain(Source):
        def get_context(self, state: StateSnapshot) -> Any:  # type: ignore[override]
            return "at once"

    (answer,) = ask([loaded(Plain())], STATE, ForeignCode(LONG))
    assert (answer.text, answer.failure) == ("at once", "")


def test_all_that_hang_together_cost_the_limit_once(held: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are asked at once; what hangs costs the caller at most the limit, and the others answer (P2)."""
    hanging = [loaded(Source(f"slow{number}", lambda _: held.wait(30))) for number in range(4)]
    limits = without_patience(monkeypatch, *(one.name for one in hanging))
    answers = ask([*hanging, loaded(Source("quick"))], STATE, ForeignCode(LIMIT))
    assert [limit <= LIMIT for limit in limits] == [True]
    assert [one.failure for one in answers[:4]] == ["it gave no answer within 0.15 s"] * 4
    assert answers[4].text == "its context"


def test_what_hangs_is_not_asked_again_before_it_ended(held: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread hangs, however often an agent asks; once it ended the source is asked again."""
    code, asked = ForeignCode(LIMIT), []
    source = loaded(Source(act=lambda _: asked.append(1) or (held.wait(30) and "said")))
    with monkeypatch.context() as patched:
        without_patience(patched, source.name)
        ask([source], STATE, code)
    assert until(lambda: asked)
    (answer,) = ask([source], STATE, code)
    assert answer.failure == "it is still busy with earlier questions"
    assert len(asked) == 1
    held.set()
    code.seconds = LONG
    assert until(lambda: ask([source], STATE, code)[0].text == "said")


def test_what_awaits_forever_is_ended() -> None:
    """A source that waits in its event loop is cancelled, so that no thread stays behind."""
    before = threading.active_count()
    (answer,) = ask([loaded(Source(act=lambda _: asyncio.sleep(30)))], STATE, ForeignCode(LIMIT))
    assert answer.failure == "it gave no answer within 0.15 s"
    assert until(lambda: threading.active_count() <= before)


def test_what_a_source_leaves_running_holds_up_nobody(held: threading.Event) -> None:
    """An answer counts as soon as it is given, whatever the source still has to do."""

    async def act() -> str:
        asyncio.get_running_loop().run_in_executor(None, held.wait, 30)
        asyncio.get_running_loop().create_task(asyncio.sleep(30))
        return "said"

    (answer,) = ask([loaded(Source(act=lambda _: act()))], STATE, ForeignCode(29.0))
    assert (answer.text, answer.failure) == ("said", "")


def test_a_process_ends_whatever_hangs() -> None:
    """The end of an agent's process waits for no source, wherever that hangs (P2)."""
    program = (
        "import asyncio, time\n"
        "from memfs.model.episode import StateSnapshot\n"
        "from memfs.context.deliver import Delivery\n"
        "from memfs.context.plugins import LoadedSource, ask\n"
        "from memfs.recall.foreign import ForeignCode\n"
        "class Hanging:\n"
        "    name, layer = 'hanging', 'triggered'\n"
        "    async def get_context(self, state):\n"
        "        await asyncio.to_thread(time.sleep, 60)\n"
        "class Stuck(Hanging):\n"
        "    name = 'stuck'\n"
        "    def get_context(self, state):\n"
        "        time.sleep(60)\n"
        "made = [Hanging(), Stuck()]\n"
        "sources = [LoadedSource(name=one.name, delivery=Delivery.TRIGGERED, plugin=one) for one in made]\n"
        "print([answer.failure for answer in ask(sources, StateSnapshot(), ForeignCode(0.1))])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("it gave no answer within 0.1 s") == 2


def test_built_in_sources_are_asked_directly() -> None:
    """They need no thread, and one that fails is left out like any other."""
    own, broken = Own(), Own("broken", OSError("disk"))
    first, second = ask([loaded(own, built_in=True), loaded(broken, built_in=True)], STATE, ForeignCode(LONG))
    assert own.threads == [threading.current_thread().name]
    assert first.selection is not None
    assert (second.selection, second.failure) == (None, "OSError: disk")


def test_a_source_may_be_asked_from_a_thread_beside_an_event_loop() -> None:
    """Facades ask in a thread, while the agent's own loop goes on; the source has a loop of its own."""

    async def act() -> str:
        await asyncio.sleep(0)
        return f"in {threading.current_thread().name}"

    source = loaded(Source(act=lambda _: act()))

    async def run() -> str:
        (answer,) = await asyncio.to_thread(ask, [source], STATE, ForeignCode(LONG))
        return answer.text

    assert asyncio.run(run()) == "in memfs-foreign-foreign"


def test_without_a_further_thread_a_source_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine at its limits loses the source's context, and nothing else."""
    code = ForeignCode(LONG)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        (answer,) = ask([loaded(Source())], STATE, code)
        with pytest.raises(ForeignFailure, match="can't start new thread"):
            code.call("one", lambda: 7)
    assert answer.failure == "RuntimeError: can't start new thread"
    assert ask([loaded(Source())], STATE, code)[0].text == "its context"


def test_many_agents_may_ask_at_once(held: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that ask at the same time get whole answers, whatever some sources do."""
    hanging = loaded(Source("hanging", lambda _: held.wait(30)))
    sources = [loaded(Source("bad", raising(SystemExit()))), loaded(Source("good")), hanging]
    code = ForeignCode(0.5)
    without_patience(monkeypatch, "hanging")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(sources, STATE, code), range(40)))
    for bad, good, late in answers:
        assert bad.failure == "SystemExit"
        assert (good.text, good.failure) == ("its context", "")
        assert late.failure


def test_any_call_of_foreign_code_has_its_limit(held: threading.Event) -> None:
    """``configure`` and properties are foreign code too."""
    code = ForeignCode(LONG)
    assert code.call("one", lambda: 7) == 7
    with pytest.raises(ForeignFailure, match="ZeroDivisionError"):
        code.call("one", lambda: 1 // 0)
    code.seconds = 0.05
    with pytest.raises(ForeignFailure, match=r"within 0\.05 s"):
        code.call("one", lambda: held.wait(30))
    code.seconds = LONG
    with pytest.raises(ForeignFailure, match="still busy"):
        code.call("one", lambda: 7)
    assert code.call("another", lambda: 7) == 7
