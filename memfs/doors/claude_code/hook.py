"""Run a hook: read one event from standard input, keep it, and print the answer, in a separate process.

The person's work continues whatever happens here: input is read within bounds, the event is kept before anything else
is tried, a watchdog ends the process in time, nothing but an answer is printed, and the exit code is 0. Nothing heavy
is imported until an event needs the workspace opened.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # ``signal`` takes long to import
import _thread
import os
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from memfs.dataclass import NamedTuple, replace
from memfs.doors.cli.output import secure
from memfs.doors.resident.client import switched_off
from memfs.errors import MemfsError
from memfs.sessions import spool
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from memfs.workspace import Workspace


LIMITS: Mapping[str, float] = {
    spool.SESSION_START: 6.0,
    spool.PROMPT: 2.0,
    spool.PRE_TOOL: 1.5,
    spool.TOOL_DONE: 1.0,
    spool.TOOL_FAILED: 1.0,
    spool.TASK_DONE: 1.0,
    spool.PRE_COMPACT: 10.0,
    spool.STOP: 15.0,
    spool.SUBAGENT_START: 2.0,
    spool.SUBAGENT_STOP: 30.0,
    spool.SESSION_END: 1.0,
}
"""Seconds after which a hook ends, done or not; an agent's program waits longer than that."""
UNKNOWN_LIMIT = 1.0
MAKING_LIMIT = 4.5
"""The least seconds of an event for which private memory must be made first, once for each project."""
MAKES_NONE = frozenset({spool.PRE_TOOL, spool.SUBAGENT_START, spool.SESSION_END})
"""Events for which none is made where there is no memory at all: they have nothing to say or to end."""
DRAINS: Mapping[str, float] = {
    spool.SESSION_START: 0.5,
    spool.PRE_COMPACT: 2.5,
    spool.STOP: 2.5,
    spool.SUBAGENT_STOP: 20.0,
}
"""The events at which what waits becomes memories, and after how many seconds nothing more is begun: a person waits.
What is left then, the next ones take."""
LEARNING_SECONDS = 1.0
"""How long a session's start learns from what is new: a person waits."""
ONLY_ANSWERED = frozenset({spool.PRE_TOOL, spool.SUBAGENT_START})
"""Events that are answered and not kept: what they report, the event after them reports again."""
LEFT = frozenset({spool.SESSION_END, *DRAINS})
"""Events after which a resident process, where one answers them, makes memories of what still waits, and learns."""
OPENS = frozenset({spool.PROMPT, *ONLY_ANSWERED, *DRAINS})
"""The events for which the workspace is opened; the others end as soon as they are kept."""


class HookHost(NamedTuple):
    """What an event is answered in, where that is a child of a resident process.

    Attributes:
        root: the workspace that the resident holds open; None where its settings are not those of the command.
        open: opens a workspace, as ``open_workspace`` does.
        begun: called once the event is durable, or before an answer is printed.
        ended: called before the process ends, with whether the resident is to make memories of what waits.
    """

    root: Path | None
    open: Callable[..., Workspace]
    begun: Callable[[], object]
    ended: Callable[[bool], object]


_READ_SHARE = 0.5
_PATIENCE_SECONDS = 0.2
_INTO = "--into="
_NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


class Hook:
    """Answers one event. ``say`` and ``complain`` are where answers and remarks go.

    Attributes:
        memory: the repository's memory, where an event began that others follow.
        host: what answers it, where that is not this process alone.
        left: whether that one is to make memories of what waits; without one, whether something is to be learned.
    """

    def __init__(
        self,
        name: str,
        *,
        folder: str = "",
        into: str = "",
        settings: Mapping[str, Any] = _NO_SETTINGS,
        say: Callable[[str], None],
        complain: Callable[[str], None],
        host: HookHost | None = None,
    ) -> None:
        """
        Args:
            name: the event as the command line has it, "" where only the input names it.
            folder: the folder of the project, whatever the event says; "" for the one at hand.
            into: ``repository`` for the repository's memory, else private memory.
            settings: values that win over the workspace's.
            host: what answers it, where that is not this process alone.
        """
        self.name = spool.canonical_name(name) if name else ""
        self._folder, self._into, self._settings = folder, into, settings
        self._say, self._complain, self.host = say, complain, host
        self._place: spool.SessionLocation | None = None
        self.memory: Path | None = None
        self._least = 0.0
        self.left = False
        self.given_up = _thread.allocate_lock()

    @property
    def seconds(self) -> float:
        """How long all of it may take."""
        return max(self._least, LIMITS.get(self.name, UNKNOWN_LIMIT if self.name else max(LIMITS.values())))

    def run(self, data: bytes) -> None:
        """Keep the event, and answer it. Never raises."""
        self._guard(lambda: self._run(data))

    def learn(self) -> None:
        """Learn what is left to be learned, where no resident does. Never raises."""
        from memfs.doors.claude_code.answer import learn

        place = self._place
        if place is not None:
            self._guard(lambda: learn(place, self.report, self._settings))

    def _guard(self, act: Callable[[], None]) -> None:
        try:
            act()
        except MemfsError as error:
            self.report(str(error))
        except Exception as error:  # noqa: BLE001  whatever it is: the person's session must not notice
            self.report(f"{type(error).__name__}: {error}")

    def report(self, sentence: str) -> None:
        """Say what went wrong, in one line, and write it down for ``memfs status``."""
        event = self.name
        from memfs.format.text import shown_line

        line = shown_line(" ".join(sentence.split()))[:500]
        self._complain(f"memfs hook {event}: {line}" if event else f"memfs hook: {line}")
        if self._place is not None:
            spool.note_error(self._place.state, event or "an unnamed event", line)

    def _run(self, data: bytes) -> None:
        try:
            event = self._event(data)
        except MemfsError:
            with suppress(MemfsError):  # to write down that an input cannot be read; nothing is made for that
                self._place = spool.known_place(spool.agent_location(folder=self._folder), self._into)
            raise
        if event is None or event.name not in LIMITS:
            return
        self.name = event.name
        self._place = place = self._place_for(event)
        if place is None:
            return
        if event.name in (spool.SESSION_START, spool.PROMPT) and place.memory is not None:
            self.memory = place.memory
        if event.name not in ONLY_ANSWERED:
            try:
                spool.Spool(place.state).append(event)
            except MemfsError as error:  # it is answered all the same
                self.report(f"this event is not remembered: {error}")
            if self.host is not None:
                self.host.begun()
        self.left = self.host is not None and place.memory == self.host.root and event.name in LEFT
        if event.name in OPENS:
            from memfs.doors.claude_code.answer import answer

            self.left |= answer(event, place, self._say, self.report, self._settings, self.host)

    def _place_for(self, event: spool.SessionEvent) -> spool.SessionLocation | None:
        """Where an event is kept, made where that is called for; None: nowhere, and it need not be."""
        found = spool.agent_location(event.cwd, folder=self._folder)
        place = spool.known_place(found, self._into)
        if place is not None and (event.name not in DRAINS or not place.private):
            return place
        if place is None:
            if event.name in MAKES_NONE and found.memory is None:
                return None
            self._least = MAKING_LIMIT
        return spool.make_place(found, place)

    def _event(self, data: bytes) -> spool.SessionEvent | None:
        """What the input says; the event that the command line names counts where the input names none we know."""
        if not data.strip():
            if self.name in LIMITS:
                self.report("nothing came on standard input")
            return None
        try:
            event = spool.parse(data)
        except MemfsError:
            if not self.name:
                raise
            event = spool.parse(data, self.name)
        known = event.name in LIMITS or self.name not in LIMITS
        return event if known else replace(event, name=self.name)


def main(
    arguments: Sequence[str], folder: str = "", settings: Mapping[str, Any] = _NO_SETTINGS, host: HookHost | None = None
) -> None:
    """Answer the event of this process, and end the process with 0.

    Where no process does it for it, a resident process of the repository's memory is begun for the events that follow.

    Args:
        host: what answers the event, where that is a child of a resident process.
    """
    secure()
    sys.stdout = sys.stderr  # what others print is no answer, and only that may go to the program
    name = next((word for word in arguments if not word.startswith("-")), "")
    into = next((word.removeprefix(_INTO) for word in arguments if word.startswith(_INTO)), "")

    def say(text: str) -> None:
        if host is not None:
            host.begun()
        _print(text)

    hook = Hook(name, folder=folder, into=into, settings=settings, say=say, complain=_remark, host=host)
    began = time.monotonic()
    _thread.start_new_thread(_watch, (hook, began))
    _interrupt_late(hook, began)
    hook.run(_read(began + hook.seconds * _READ_SHARE))
    begun = host is None and hook.memory is not None and not switched_off() and _begin_resident(hook.memory)
    if host is None and hook.left and not begun:
        hook.learn()
    _end(hook)


def _begin_resident(root: Path) -> bool:
    """Have the next events answered sooner; what keeps that from happening keeps nothing else.

    Returns:
        Whether one is up.
    """
    from memfs.config import load
    from memfs.doors.resident.place import begin, may_begin, resident_of

    with suppress(MemfsError, OSError):
        if may_begin(root, load(root).resident.use):
            begin(root)
        return bool(resident_of(root))
    return False


def _watch(hook: Hook, began: float) -> None:
    """End the process when the time is over; the event's own limit counts as soon as its name is known."""
    while (left := began + hook.seconds - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))

    def end_soon() -> None:
        time.sleep(_PATIENCE_SECONDS)
        _end(hook)

    _thread.start_new_thread(end_soon, ())  # the disk may be what hangs, and the report needs it
    _give_up(hook)


def _interrupt_late(hook: Hook, began: float) -> None:
    """A second watch for what lets no other thread run, such as an expression that matches for ever."""

    def look(*_: object) -> None:
        left = began + hook.seconds + 0.1 - time.monotonic()
        if left <= 0:
            _give_up(hook)
        _signal.setitimer(_signal.ITIMER_REAL, left)

    with suppress(ValueError, OSError):  # only the main thread may
        _signal.signal(_signal.SIGALRM, look)
        _signal.setitimer(_signal.ITIMER_REAL, hook.seconds + 0.1)


def _give_up(hook: Hook) -> None:
    if hook.given_up.acquire(blocking=False):  # of two watches, the first that sees it
        hook.report(f"took longer than {hook.seconds:g} s, and was ended")
        _end(hook)


def _end(hook: Hook) -> None:
    if hook.host is not None:
        hook.host.ended(hook.left)
    os._exit(0)  # at once: no thread of anybody's is waited for


def _read(deadline: float) -> bytes:
    """Standard input until it ends, within bounds; what came until then where it does not end."""
    data = bytearray()
    with suppress(OSError, ValueError):
        if os.isatty(0):
            _remark("memfs hook: an agent's program calls this, with an event as JSON on standard input")
            return b""
        while len(data) <= spool.LARGEST_INPUT and (left := deadline - time.monotonic()) > 0:
            piece = os.read(0, 1 << 16) if select.select([0], [], [], left)[0] else b""
            if not piece:
                break
            data += piece
    return bytes(data)


def _print(text: str, to: int = 1) -> None:
    """Print all of an answer, or of what is remarked."""
    data = text.encode("utf-8", "backslashreplace")
    with suppress(OSError):  # the reader is gone
        while data:
            data = data[os.write(to, data) :]


def _remark(line: str) -> None:
    _print(f"{line}\n", to=2)
