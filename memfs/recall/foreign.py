"""Call foreign code, such as reviewers and sources of context, with a time limit, each call in a thread of its own.

Code that fails or is too slow is reported in one line; it neither holds up the caller nor keeps the process from
ending. Imports little, since most workspaces use nobody's code but ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from memfs.fs.lock import renewed_in_child

REASON_LETTERS = 300
_MOST_BUSY = 32
"""So many calls of one name may be under way at once."""

Result = TypeVar("Result")


class ForeignFailure(Exception):
    """Foreign code gave no usable answer.

    Attributes:
        reason: why, in one line.
        hint: what to do, where that is known.
        late: whether it had no time to answer; it goes on in its thread, and another try may find it ready.
    """

    def __init__(self, reason: str = "", hint: str = "", *, late: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.late = late


def error_line(error: BaseException) -> str:
    """What an error says, in one line of a bounded length; it may be one that cannot even be shown."""
    try:
        reason = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001  the error itself is foreign code
        reason = ""
    name = type(error).__name__
    line = f"{name}: {reason[:REASON_LETTERS]}" if reason else name
    return line.encode("utf-8", "backslashreplace").decode()[:REASON_LETTERS]


def late(seconds: float) -> ForeignFailure:
    """What is said of code that takes longer than it may."""
    return ForeignFailure(f"it gave no answer within {seconds:g} s", late=True)


class ForeignCall:
    """One call: whose code it is, whether it is done, and what came of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = threading.Event()
        self.late = False
        self.answer: object = None


class ForeignCode:
    """Calls the code of others within limits. May be used from several threads."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: how long each call may take."""
        self.seconds = seconds
        self._lock = threading.Lock()
        self._running: dict[str, set[ForeignCall]] = {}
        renewed_in_child(self)

    def begin_anew_in_child(self) -> None:
        """A forked child has none of the threads that are at it."""
        self._running = {}

    def call(self, name: str, work: Callable[[], Result]) -> Result:
        """What foreign code gives back, which has to come in time.

        Args:
            name: whose code it is; one whose call is late is not called again before that has ended.
            work: calls it.

        Raises:
            ForeignFailure: it raises anything at all, takes longer, or is still busy.
        """
        found = self.call_all({name: work})[name]
        if isinstance(found, ForeignFailure):
            raise found
        return found

    def call_all(
        self, works: Mapping[str, Callable[[], Result]], seconds: float | None = None
    ) -> dict[str, Result | ForeignFailure]:
        """As ``call`` for several at once, which together take no longer; a failure takes the place of the answer."""
        limit = self.seconds if seconds is None else seconds
        calls = [self._begun(name, work) for name, work in works.items()]
        if calls:
            wait(calls, limit)
        return {call.name: self._answer(call, limit) for call in calls}  # type: ignore[misc]

    def _begun(self, name: str, work: Callable[[], object]) -> ForeignCall:
        call = ForeignCall(name)
        with self._lock:
            running = self._running.setdefault(name, set())
            if len(running) >= _MOST_BUSY or any(one.late for one in running):
                call.answer = ForeignFailure("it is still busy with earlier questions", late=True)
                call.done.set()
                return call
            running.add(call)

        def run() -> None:
            try:
                call.answer = work()
            except ForeignFailure as failure:
                call.answer = failure
            except BaseException as error:  # noqa: BLE001  SystemExit too: it must not end the agent
                call.answer = ForeignFailure(error_line(error))
            self._ended(call)

        try:  # a daemon and no pool's: what hangs must keep neither the caller nor the process
            threading.Thread(target=run, name=f"memfs-foreign-{ascii(name)[1:-1][:40]}", daemon=True).start()
        except RuntimeError as error:  # the system gives no further thread
            call.answer = ForeignFailure(error_line(error), late=True)
            self._ended(call)
        return call

    def _ended(self, call: ForeignCall) -> None:
        with self._lock:
            self._running.get(call.name, set()).discard(call)
            call.done.set()

    def _answer(self, call: ForeignCall, seconds: float) -> object:
        with self._lock:
            call.late = not call.done.is_set()
        return late(seconds) if call.late else call.answer


def wait(calls: Sequence[ForeignCall], seconds: float) -> None:
    """Wait until all are done, or the time is over."""
    until = time.monotonic() + seconds
    for call in calls:
        call.done.wait(max(0.0, until - time.monotonic()))
