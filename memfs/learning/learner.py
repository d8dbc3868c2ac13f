"""Decides when memfs learns by itself, and whether the result is dropped, suggested or stored.

A program whose seed learns has what it learns from its own calls written; for everybody else the settings
``learning.*`` decide. Nothing is learned while a memory is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from memfs.dataclass import KW_ONLY, dataclass, field
from memfs.errors import LockTimeout, MemfsError
from memfs.fs import io
from memfs.model.suggestion import Keep, Source, Suggestion
from memfs.settings import Settings
from memfs.store import Store
from memfs.store.parts import Parts

if TYPE_CHECKING:
    from memfs.learning.inbox import Inbox
    from memfs.learning.pattern_learner import PatternStore
    from memfs.learning.rules import Rules


MARK = "learned"
"""The file that says up to when files were learned from; without it all are looked through again."""
_FEW = 100
_SLACK_NS = 2_000_000_000
_LEAST_FAILURES = 2

_program: ContextVar[bool] = ContextVar("memfs-program", default=False)


@contextmanager
def as_program() -> Iterator[None]:
    """What is learned from the calls of this block is written, as a program's seed says."""
    token = _program.set(True)
    try:
        yield
    finally:
        _program.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnResult:
    """What one pass did: how many new memories were read, how many are left, and ids of what was written."""

    read: int = 0
    left: int = 0
    written: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class Learner:
    """Decides what becomes of what one workspace teaches. May be used from several threads and processes.

    Attributes:
        patterns, rules, inbox: give the workspace's, when first asked for.
        one_shot: the process does one thing and ends: it only learns when it is asked to.
        program: whether a program opened the workspace to have what it learns written, as a facade's seed says.
    """

    store: Store
    parts: Parts
    settings: Settings
    _: KW_ONLY
    patterns: Callable[[], PatternStore]
    rules: Callable[[], Rules]
    inbox: Callable[[], Inbox]
    one_shot: bool = False
    program: bool = field(default=False, init=False)

    @property
    def by_program(self) -> bool:
        """Whether a program asks for what is learned to be written: one that opened the workspace, or that runs now."""
        return self.program or _program.get()

    def keep(self, part: str, *, private: bool = False) -> Keep:
        """What becomes of what is learned now.

        Args:
            part: ``patterns`` or ``rules``.
            private: the workspace is one person's own: what that person said, and what the own sessions teach, is
                written unless somebody set otherwise.
        """
        if self.by_program:
            return Keep.WRITE
        if private and self.settings.origins.get(f"learning.{part}") == "default":
            return Keep.WRITE
        return Keep(getattr(self.settings.learning, part))

    def react(self, occasion: str, facts: Mapping[str, Any]) -> None:
        """Learn from what was stored at this very moment, where that is written and the process goes on."""
        if occasion == "memory_stored" and self._at_once("patterns"):
            self.patterns().later(facts["item"])
        if occasion == "episode_recorded":
            self.rules().count(analyze=self._at_once("rules"))

    def _at_once(self, part: str) -> bool:
        return self.by_program or (not self.one_shot and self.keep(part) is Keep.WRITE)

    # -- the pass ---------------------------------------------------------------------------------------------------
    def run(self, seconds: float | None = None) -> LearnResult:
        """Learn from what was stored, changed or brought in since the last time, whatever way it came.

        Learning again from the same memories changes nothing.

        Args:
            seconds: begin nothing further after so long; what is left, the next pass takes. None: take everything.

        Raises:
            CorruptRecord, FormatUnsupported: the inbox cannot be read; nothing is learned.
            LockTimeout, ContentError, StorageIO: what was learned until then stays.
        """
        until = None if seconds is None else time.monotonic() + seconds
        done = LearnResult()
        if self.keep("patterns") is not Keep.OFF:
            done = self._from_new(until)
        if self.keep("rules") is not Keep.OFF and (until is None or time.monotonic() < until):
            self._from_failures()
        self._withdraw()
        return done

    def _from_new(self, until: float | None) -> LearnResult:
        keep, patterns = self.keep("patterns"), self.patterns()
        began = time.time_ns()
        self.store.follow()
        new = self._new(began)
        if until is None and len(new) > _FEW:
            read, kept = patterns.catch_up()
            self._noted(began - _SLACK_NS)
            return LearnResult(read=read, written=tuple(one.id for one in kept))
        written: dict[str, None] = {}
        for number, (moment, item_id) in enumerate(new):
            if until is not None and time.monotonic() > until:
                self._noted(moment)
                return LearnResult(read=number, left=len(new) - number, written=tuple(written))
            learned = self._learned_from(item_id, keep)
            written |= dict.fromkeys(learned)
        self._noted(began - _SLACK_NS)
        return LearnResult(read=len(new), written=tuple(written))

    def _learned_from(self, item_id: str, keep: Keep) -> list[str]:
        item = self.store.peek(item_id)
        pattern = self.patterns().learn(item, keep) if item is not None else None
        return [pattern.id] if pattern is not None and keep is Keep.WRITE else []

    def _new(self, now: int) -> list[tuple[int, str]]:
        """The items whose files are new since the last pass, the oldest first, each with when that was."""
        since = self._since(now)
        stamps = self.parts.index.stamps()
        fresh = [(stamp.ctime_ns, item_id) for item_id, stamp in stamps.values() if stamp.ctime_ns >= since]
        return sorted(fresh)

    def _since(self, now: int) -> int:
        text = io.read_note(self.parts.repository.state / MARK).strip()
        moment = int(text) if text.isdecimal() else 0
        return moment if moment <= now else 0  # the clock was set back

    def _noted(self, moment: int) -> None:
        try:
            io.write_file(self.parts.repository.state / MARK, b"%d\n" % moment, durable=False)
        except MemfsError as error:  # then the same is looked at again
            self.store.note_failure(error)

    def _from_failures(self) -> None:
        rules = self.rules()
        if rules.due():
            try:
                rules.analyze(seconds=0.0, keep=self.keep("rules"))
            except LockTimeout:  # another process is at it
                return

    def _withdraw(self) -> None:
        """Take back what memories spoke for that are gone."""
        inbox = self.inbox()
        gone: list[str] = []
        changed: list[Suggestion] = []
        for one in inbox.waiting():
            alive = [name for name in one.evidence if self.store.locate(name)]
            if one.source not in (Source.PATTERN, Source.RULE) or len(alive) == len(one.evidence):
                continue
            anew = self.patterns().suggested_again(one, alive) if one.source is Source.PATTERN else None
            if anew is not None:
                changed.append(anew)
            elif one.source is Source.PATTERN or len(alive) < _LEAST_FAILURES:
                gone.append(one.id)
        inbox.drop(gone)
        inbox.add(changed)
