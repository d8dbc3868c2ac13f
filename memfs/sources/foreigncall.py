"""Foreign call: one call of code of others, in a daemon thread with an event loop of its own (seed 004, P2).

Owns the thread, the loop, and that neither keeps the caller or the process waiting. Loaded only where there is a source
of others, since it brings asyncio along. Whose code it is, and for how long, it does not know.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any

from memfs.sources.failurebook import Failed, told


def wait(calls: Sequence[Call], seconds: float) -> None:
    """Wait until all have answered, or the time is over."""
    wait_for([call.future for call in calls if call.future], max(0.0, seconds))


class Call:
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

    def start(self, work: Callable[[], Any], ended: Callable[[Call], None]) -> None:
        self.future = Future()
        self.future.set_running_or_notify_cancel()  # whoever stops waiting does not cancel it
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
                self.future.set_exception(error if isinstance(error, Failed) else Failed(told(error)))


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
            except BaseException as error:  # noqa: BLE001  it is handed to whoever awaits it
                future.set_exception(error)
            else:
                future.set_result(value)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing waits for the threads."""
