"""Isolation: asking code of others without suffering what it does (seed 004, P2).

Owns the time limit of each call, the check of what comes back, and who is not asked. Which sources there are, and what
becomes of their texts, it does not know.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from memfs.files.forked import renewed_in_child
from memfs.model.episode import StateSnapshot
from memfs.sources.failurebook import Busy, Failed, FailureBook, Late, told
from memfs.sources.plugin import Delivery, ItemSource, MemoryPlugin, Selection

if TYPE_CHECKING:
    from memfs.sources.foreigncall import Call

MOST_LETTERS = 100_000
"""Longer contexts of others are refused: nobody reads them, and taking them apart would cost everybody time."""
_MOST_BUSY = 32
"""So many questions of one source may be under way at once."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
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
class Answer:
    """What one source said when it was asked.

    Attributes:
        source: who.
        selection: what a built-in source selected; None for one from others.
        text: what a source from others said, as it said it; "" for nothing.
        seconds: how long that took.
        failure: why there is no answer, in one line; "" where there is one.
    """

    source: Loaded
    selection: Selection | None = None
    text: str = ""
    seconds: float = 0.0
    failure: str = ""


class Guard:
    """Stands between us and the code of others. May be used from several threads."""

    def __init__(self, seconds: float, book: FailureBook | None = None) -> None:
        """``seconds``: how long each call may take; ``book``: where failures are counted."""
        self.seconds = seconds
        self.book = book or FailureBook()
        self._lock = threading.Lock()
        renewed_in_child(self)
        self._busy: Counter[str] = Counter()
        self._late: Counter[str] = Counter()

    # -- asking sources -------------------------------------------------------------------------------------------
    def ask(self, sources: Sequence[Loaded], state: StateSnapshot, *, paused: bool = False) -> list[Answer]:
        """What each source says of a situation, in their order; all those of others are asked at once.

        Never fails, and takes the time of the built-in sources and at most ``seconds`` for all of the others.

        Args:
            paused: whether those are asked too that are paused because they failed.
        """
        begun = self._begin(sources, state, paused)
        answers = [_direct(source, state) for source in sources if source.built_in]
        if begun:
            from memfs.sources.foreigncall import wait  # as in _begin

            wait(begun, self._left(begun))
        return self._together(sources, answers, begun)

    def _begin(self, sources: Sequence[Loaded], state: StateSnapshot, paused: bool) -> list[Call]:
        foreign = [source for source in sources if not source.built_in]
        if not foreign:
            return []
        from memfs.sources.foreigncall import Call  # asyncio, which most workspaces can do without

        begun = []
        for source in foreign:
            call = Call(source.name, self.seconds)
            reason = "" if paused else self.book.paused(source.name)
            if reason:
                call.refused = reason
            else:
                self._start(call, partial(_context_of, source.plugin, _own(state)))
            begun.append(call)
        return begun

    def _left(self, begun: Sequence[Call]) -> float:
        return max((call.began for call in begun), default=time.monotonic()) + self.seconds - time.monotonic()

    def _together(self, sources: Sequence[Loaded], own: list[Answer], begun: list[Call]) -> list[Answer]:
        direct, foreign = iter(own), iter(begun)
        return [next(direct) if source.built_in else self._answer(source, next(foreign)) for source in sources]

    def _answer(self, source: Loaded, call: Call) -> Answer:
        if call.refused:
            return Answer(source=source, failure=call.refused)
        try:
            text = self._outcome(call)
        except (Failed, Late) as error:
            self.book.failed(source.name, str(error))
            return Answer(source=source, seconds=time.monotonic() - call.began, failure=str(error))
        self.book.worked(source.name)
        return Answer(source=source, text=text, seconds=call.ended - call.began)

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
        if isinstance(found, (Late, Failed)):
            raise found
        return found

    def call_all(
        self, works: Mapping[str, Callable[[], Result]], seconds: float | None = None
    ) -> dict[str, Result | Late | Failed]:
        """As ``call`` for several at once, which together take no longer; what one would raise stands in its place."""
        if not works:
            return {}
        from memfs.sources.foreigncall import Call, wait  # as in _begin

        calls = [Call(name, self.seconds if seconds is None else seconds) for name in works]
        for call, work in zip(calls, works.values(), strict=True):
            self._start(call, work)
        wait(calls, self.seconds if seconds is None else seconds)
        found: dict[str, Result | Late | Failed] = {}
        for call in calls:
            try:
                found[call.name] = self._outcome(call)
            except (Late, Failed) as error:
                found[call.name] = error
        return found

    def _start(self, call: Call, work: Callable[[], Any]) -> None:
        with self._lock:
            if self._late[call.name] or self._busy[call.name] >= _MOST_BUSY:
                call.refused = "it is still busy with earlier questions"
                return
            self._busy[call.name] += 1
        try:
            call.start(work, self._ended)
        except RuntimeError as error:  # the system gives no further thread
            call.future, call.refused = None, told(error)
            self._ended(call)

    def _ended(self, call: Call) -> None:
        with self._lock:
            self._busy[call.name] -= 1
            if call.late:
                self._late[call.name] -= 1
            call.over = True

    def _outcome(self, call: Call) -> Any:
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


def _direct(source: Loaded, state: StateSnapshot) -> Answer:
    """The answer of a source of ours; one that fails is left out like any other."""
    began = time.monotonic()
    try:
        selection = source.plugin.select(state)  # type: ignore[union-attr]  # a built-in one is an ItemSource
    except Exception as error:  # noqa: BLE001  reported: an agent goes on without this source
        return Answer(source=source, seconds=time.monotonic() - began, failure=told(error))
    return Answer(source=source, selection=selection, seconds=time.monotonic() - began)


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
        raise Failed(f"it gave {type(found).__name__[:60]} and not a text")
    text = str.__str__(found)  # a text of its own making could do anything when it is looked at
    if len(text) > MOST_LETTERS:
        raise Failed(f"it gave {len(text):,} letters; {MOST_LETTERS:,} are taken")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Failed("it gave half characters, which no file or prompt can hold") from None
    return text if text.strip() else ""
