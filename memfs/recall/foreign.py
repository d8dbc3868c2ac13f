"""Call foreign code, such as reviewers and sources of context, with a time limit, each call in a thread of its own.

Code that fails or is too slow is reported in one line; it neither holds up the caller nor keeps the process from
ending. Imports little, since most workspaces use no code but ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from memfs.fs.executor import in_daemon
from memfs.fs.lock import reset_on_fork
from memfs.startup import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future


REASON_LETTERS = 300
_MOST_BUSY = 32
"""How many calls of one name may be under way at once."""

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
        self.reason, self.hint, self.late = reason, hint, late


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


class ForeignCode:
    """Calls the code of others within limits. May be used from several threads."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: how long each call may take."""
        self.seconds = seconds
        self._lock = threading.Lock()
        self._running: dict[str, set[Future[object]]] = {}
        self._late: set[Future[object]] = set()
        reset_on_fork(self)

    def after_fork(self) -> None:
        """A forked child has none of the threads that are at it."""
        self._running, self._late = {}, set()

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
        begun = {name: self._begun(name, work) for name, work in works.items()}
        calls = {name: call for name, call in begun.items() if not isinstance(call, ForeignFailure)}
        if calls:
            wait(calls, limit)
        return {name: self._answer(call, limit) for name, call in begun.items()}  # type: ignore[misc]

    def _begun(self, name: str, work: Callable[[], object]) -> Future[object] | ForeignFailure:
        def answer() -> object:
            try:
                return work()
            except ForeignFailure as failure:
                return failure
            except BaseException as error:  # noqa: BLE001  SystemExit too: it must not end the agent
                return ForeignFailure(error_line(error))

        with self._lock:
            running = {call for call in self._running.get(name, ()) if not call.done()}
            if len(running) >= _MOST_BUSY or running & self._late:
                return ForeignFailure("it is still busy with earlier questions", late=True)
            try:  # a daemon and no pool's: what hangs must keep neither the caller nor the process
                call = in_daemon(f"memfs-foreign-{ascii(name)[1:-1][:40]}", answer)
            except RuntimeError as error:  # the system gives no further thread
                return ForeignFailure(error_line(error), late=True)
            self._running[name] = running | {call}
            return call

    def _answer(self, call: Future[object] | ForeignFailure, seconds: float) -> object:
        if isinstance(call, ForeignFailure):
            return call
        with self._lock:
            self._late = {one for one in (*self._late, call) if not one.done()}
            return late(seconds) if call in self._late else call.result()


def wait(calls: Mapping[str, Future[object]], seconds: float) -> None:
    """Wait until all are done, or the time is over."""
    from concurrent.futures import wait as done  # costs start-up time

    done(calls.values(), seconds)
