"""Call plugin code with a time limit, in a daemon thread of its own.

What comes back is checked before it is used. Code that fails or is too slow is reported, and paused when that happens
too often; it neither holds up the caller nor keeps the process from ending.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from memfs.context.plugin import ContextSelection, Delivery, ItemSource, MemoryPlugin
from memfs.context.plugin_failures import Busy, FailureBook, Late, PluginFailure, error_line
from memfs.fs.lock import renewed_in_child
from memfs.model.episode import StateSnapshot

MOST_LETTERS = 100_000
"""Longer contexts of others are refused: nobody reads them, and taking them apart would cost everybody time."""
_MOST_BUSY = 32
"""So many questions of one source may be under way at once."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSource:
    """A source that can be asked.

    Attributes:
        name: what reports and settings call it.
        delivery: the delivery it serves.
        plugin: the source itself.
        built_in: whether it is one of ours: an ``ItemSource``, asked directly.
        where: where it was found, in words.
        setting: the setting that names it, "" for one that was added in Python.
    """

    name: str
    delivery: Delivery
    plugin: MemoryPlugin | ItemSource
    built_in: bool = False
    where: str = ""
    setting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """What one source said when it was asked.

    Attributes:
        source: who.
        selection: what a built-in source selected; None for one from others.
        text: what a source from others said, as it said it; "" for nothing.
        seconds: how long that took.
        failure: why there is no answer, in one line; "" where there is one.
    """

    source: LoadedSource
    selection: ContextSelection | None = None
    text: str = ""
    seconds: float = 0.0
    failure: str = ""


class SourceGuard:
    """Calls the code of others within limits. May be used from several threads."""

    def __init__(self, seconds: float, book: FailureBook | None = None) -> None:
        """``seconds``: how long each call may take; ``book``: where failures are counted."""
        self.seconds = seconds
        self.book = book or FailureBook()
        self._lock = threading.Lock()
        renewed_in_child(self)
        self._busy: Counter[str] = Counter()
        self._late: Counter[str] = Counter()

    # -- asking sources -------------------------------------------------------------------------------------------
    def ask(self, sources: Sequence[LoadedSource], state: StateSnapshot, *, paused: bool = False) -> list[SourceAnswer]:
        """What each source says of a situation, in their order; all those of others are asked at once.

        Never fails, and takes the time of the built-in sources and at most ``seconds`` for all of the others.

        Args:
            paused: whether those are asked too that are paused because they failed.
        """
        begun = {source.name: self._begun(source, state, paused) for source in sources if not source.built_in}
        until = time.monotonic() + self.seconds
        own = {source.name: _direct(source, state) for source in sources if source.built_in}
        if begun:
            wait(list(begun.values()), until - time.monotonic())
        return [own[source.name] if source.built_in else self._answer(source, begun[source.name]) for source in sources]

    def _begun(self, source: LoadedSource, state: StateSnapshot, paused: bool) -> ForeignCall:
        call = ForeignCall(source.name, self.seconds)
        call.refused = "" if paused else self.book.paused(source.name)
        if not call.refused:
            self._start(call, partial(_context_of, source.plugin, _own(state)))
        return call

    def _answer(self, source: LoadedSource, call: ForeignCall) -> SourceAnswer:
        if call.refused:
            return SourceAnswer(source=source, failure=call.refused)
        try:
            text = self._outcome(call)
        except (PluginFailure, Late) as error:
            self.book.failed(source.name, str(error))
            return SourceAnswer(source=source, seconds=time.monotonic() - call.began, failure=str(error))
        self.book.worked(source.name)
        return SourceAnswer(source=source, text=text, seconds=call.ended - call.began)

    # -- calling one thing ----------------------------------------------------------------------------------------
    def call(self, name: str, work: Callable[[], Result], seconds: float | None = None) -> Result:
        """What foreign code gives back, which has to come in time.

        Args:
            name: whose code it is.
            work: calls it; what it gives back is awaited where that is needed.

        Raises:
            Late: it takes longer, or is still busy with earlier calls.
            Failed: it raises anything at all.
        """
        found = self.call_all({name: work}, seconds)[name]
        if isinstance(found, (Late, PluginFailure)):
            raise found
        return found

    def call_all(
        self, works: Mapping[str, Callable[[], Result]], seconds: float | None = None
    ) -> dict[str, Result | Late | PluginFailure]:
        """As ``call`` for several at once, which together take no longer; what one would raise takes its place."""
        if not works:
            return {}

        calls = [ForeignCall(name, self.seconds if seconds is None else seconds) for name in works]
        for call, work in zip(calls, works.values(), strict=True):
            self._start(call, work)
        wait(calls, self.seconds if seconds is None else seconds)
        found: dict[str, Result | Late | PluginFailure] = {}
        for call in calls:
            try:
                found[call.name] = self._outcome(call)
            except (Late, PluginFailure) as error:
                found[call.name] = error
        return found

    def _start(self, call: ForeignCall, work: Callable[[], Any]) -> None:
        with self._lock:
            if self._late[call.name] or self._busy[call.name] >= _MOST_BUSY:
                call.refused = "it is still busy with earlier questions"
                return
            self._busy[call.name] += 1
        try:
            call.start(work, self._ended)
        except RuntimeError as error:  # the system gives no further thread
            call.future, call.refused = None, error_line(error)
            self._ended(call)

    def _ended(self, call: ForeignCall) -> None:
        with self._lock:
            self._busy[call.name] -= 1
            if call.late:
                self._late[call.name] -= 1
            call.over = True

    def _outcome(self, call: ForeignCall) -> Any:
        if call.future is None:
            raise Busy(call.refused)
        if not call.future.done():
            with self._lock:
                if not call.over and not call.late:
                    call.late = True
                    self._late[call.name] += 1
            call.abandon()
            raise Late(f"it gave no answer within {call.seconds:g} s")
        return call.future.result()


def _own(state: StateSnapshot) -> StateSnapshot:
    """A situation that a source may do with as it likes: no other one, and no agent, sees what becomes of it."""
    try:
        facts = deepcopy(dict(state.circumstances))
    except Exception:  # noqa: BLE001  facts that only the agent can make: they are handed on as they are
        facts = dict(state.circumstances)
    return replace(state, circumstances=facts)


def _direct(source: LoadedSource, state: StateSnapshot) -> SourceAnswer:
    """The answer of a source of ours; one that fails is left out like any other."""
    began = time.monotonic()
    try:
        selection = source.plugin.select(state)  # type: ignore[union-attr]  # a built-in one is an ItemSource
    except Exception as error:  # noqa: BLE001  reported: an agent goes on without this source
        return SourceAnswer(source=source, seconds=time.monotonic() - began, failure=error_line(error))
    return SourceAnswer(source=source, selection=selection, seconds=time.monotonic() - began)


async def _context_of(plugin: MemoryPlugin, state: StateSnapshot) -> str:
    """What a source of others says, checked in its own thread.

    Raises:
        Failed: it is no text, too long, or no text that can be written.
    """
    found: object = plugin.get_context(state)
    if inspect.isawaitable(found):
        found = await found
    if found is None:
        return ""
    if not isinstance(found, str):
        raise PluginFailure(f"it gave {type(found).__name__[:60]} and not a text")
    text = str.__str__(found)  # a text of its own making could do anything when it is looked at
    if len(text) > MOST_LETTERS:
        raise PluginFailure(f"it gave {len(text):,} letters; {MOST_LETTERS:,} are taken")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PluginFailure("it gave half characters, which no file or prompt can hold") from None
    return text if text.strip() else ""


def wait(calls: Sequence[ForeignCall], seconds: float) -> None:
    """Wait until all have answered, or the time is over."""
    wait_for([call.future for call in calls if call.future], max(0.0, seconds))


class ForeignCall:
    """One call of foreign code, in a daemon thread of its own with an event loop of its own.

    The thread is no pool's: what hangs must keep neither the caller nor the process.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self.future: Future[Any] | None = None
        self.refused = ""
        self.began = self.ended = time.monotonic()
        self.late = self.over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def start(self, work: Callable[[], Any], ended: Callable[[ForeignCall], None]) -> None:
        self.future = Future()
        self.future.set_running_or_notify_cancel()  # a caller that stops waiting does not cancel it
        self.began = time.monotonic()

        def run() -> None:
            try:
                self._run(work)
            finally:
                ended(self)

        threading.Thread(target=run, name=f"memfs-source-{ascii(self.name)[1:-1][:40]}", daemon=True).start()

    def abandon(self) -> None:
        """Ask what is awaited to end; what runs without awaiting cannot be asked."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with suppress(RuntimeError):  # the loop ended by itself
                loop.call_soon_threadsafe(task.cancel)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                self._loop.set_default_executor(_Daemons())
                self._loop.set_exception_handler(lambda *_: None)  # what nobody awaits has no say in the answer
                runner.run(self._main(work))
        except BaseException as error:  # noqa: BLE001  SystemExit too: a source must not end the agent
            self._settle(error=error)

    async def _main(self, work: Callable[[], Any]) -> None:
        self._task = asyncio.current_task()
        try:
            value = work()
            if inspect.isawaitable(value):
                value = await value
        except BaseException as error:  # noqa: BLE001  as above
            self._settle(error=error)
        else:
            self._settle(value)

    def _settle(self, value: Any = None, error: BaseException | None = None) -> None:
        """Give the answer at once: closing the loop may take as long as the code of others likes."""
        assert self.future is not None
        self.ended = time.monotonic()
        with suppress(InvalidStateError):  # the first answer counts
            if error is None:
                self.future.set_result(value)
            else:
                self.future.set_exception(
                    error if isinstance(error, PluginFailure) else PluginFailure(error_line(error))
                )


class _Daemons(ThreadPoolExecutor):
    """Gives each piece of work a daemon thread: a pool's are waited for when the process ends."""

    def __init__(self) -> None:
        super().__init__(1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function in a thread."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                value = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001  it is handed to the caller that awaits it
                future.set_exception(error)
            else:
                future.set_result(value)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing waits for the threads."""
