"""Learns patterns from new memories, keeps each once, and decides what becomes of all that memfs learns by itself.

A program whose seed learns has what it learns from its own calls written; for everybody else the settings
``learning.*`` decide. Nothing is learned while a memory is stored.

Everything here ends: learning a memory asks the index three times at most, looks at no more than ``COUNTED`` memories,
writes one item in at most five tries and raises one occasion; what reactions to that store is not learned from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from itertools import pairwise
from math import prod

from memfs.dataclass import KW_ONLY, dataclass, field, replace
from memfs.errors import IdExists, LockTimeout, MemfsError
from memfs.format.secrets import reason_in
from memfs.fs import io
from memfs.fs.executor import Worker
from memfs.fs.lock import FileLock, reset_on_fork
from memfs.intake.episode_item import episode_of
from memfs.learning.patterns import (
    EXAMPLES,
    Pattern,
    PatternFinder,
    fixed_words,
    grown,
    item_of,
    overlap,
    reasons_for,
    words_of,
)
from memfs.model import Candidate, Hit, MemoryItem, Query
from memfs.model.ids import stem_of
from memfs.model.item import gist
from memfs.model.learning import Keep, MemoryConfig, Source, Suggestion, SuggestionDecision
from memfs.model.query import MOST
from memfs.model.time import EARLIEST, parse_time
from memfs.settings import Settings
from memfs.startup import TYPE_CHECKING, Any
from memfs.store import Store
from memfs.store.parts import ALL_LEARNED, Fire, Parts
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.learning.inbox import Inbox
    from memfs.learning.rules import Rules
    from memfs.recall.embeddings import VectorSearch

COUNTED = 64
"""How many memories are looked at for one; a pattern that more follow is counted on from there."""
PATTERN = "pattern"
SOURCE = "patterns"
CLOSE_SECONDS = 5.0
# What was made of other memories repeats their words: it is no occurrence of anything.
_MADE = frozenset({"promoted_from", "learned_from", "made_from"})
_KNOWN, _LOOKED_AT = 16, 24
_SAME_WORDS = 0.75
_COMPARED = 6
_MOST_WAITING = 1000
_QUIET_SECONDS = 0.25
_PER_HIT, _LEAST = 4, 20


@dataclass(eq=False, repr=False)
class PatternStore:
    """The patterns of one workspace. May be used from several threads and processes.

    Attributes:
        store, parts: where memories and patterns are.
        config: says what is similar, and how many make a pattern.
        fire: raises ``pattern_detected`` when a pattern is written.
        inbox: gives where patterns are suggested, and which ones somebody refused.
        keep: what becomes of patterns unless a caller says so.
        meaning: gives what finds by meaning, None where words decide alone.
    """

    store: Store
    parts: Parts
    config: Callable[[], MemoryConfig]
    fire: Fire
    inbox: Callable[[], Inbox]
    keep: Callable[[], Keep] = lambda: Keep.WRITE
    meaning: Callable[[], VectorSearch | None] = lambda: None

    def __post_init__(self) -> None:
        repository = self.parts.repository
        self._lock = FileLock(repository.state / "patterns.lock", root=repository.common_dir)
        self._inside = threading.local()
        self._worker = Worker("memfs-patterns", self._learn_next, self.store.note_failure, again=0.0)
        self._waiting: dict[str, MemoryItem] = {}
        self._guard = threading.Lock()
        reset_on_fork(self)

    def after_fork(self) -> None:
        """What waits in the parent, the parent learns."""
        self._waiting = {}

    # -- learning ---------------------------------------------------------------------------------------------------
    def later(self, item: MemoryItem) -> bool:
        """Learn from a stored memory soon, in the background, and write what it shows.

        A memory that is left out is found with the next one like it, or by ``catch_up``.

        Returns:
            False where it is none to learn from, or the queue full.
        """
        self.store.require_open()
        if not self._learnable(item) or self._learning():
            return False
        with self._guard:
            if item.id not in self._waiting and len(self._waiting) >= _MOST_WAITING:
                return False
            self._waiting[item.id] = item
        return self._worker.wake(_QUIET_SECONDS, postpone=True)  # it takes no time from who stores one after another

    def _learn_next(self) -> bool:
        """Learn from what has waited longest; false where more waits."""
        with self._guard:
            item = self._waiting.pop(next(iter(self._waiting), ""), None)
        if item is not None:
            self.learn(item, Keep.WRITE)
        return not self._waiting

    def _drop(self, ids: Iterable[str]) -> None:
        """Forget memories from which nothing more is to be learned."""
        with self._guard:
            for item_id in ids:
                self._waiting.pop(item_id, None)

    def settle(self, seconds: float | None = None) -> bool:
        """Wait a limited time for what was to be learned later; false where some still waits."""
        self.store.require_open()
        return self._worker.settle(seconds)

    def close(self) -> None:
        """Learn what waits, for at most ``CLOSE_SECONDS``; then learn no more."""
        self._worker.settle(CLOSE_SECONDS)
        self._worker.close()

    def learn(self, item: MemoryItem, keep: Keep | None = None) -> MemoryItem | None:
        """Learn from a stored memory now.

        Args:
            keep: what becomes of the pattern; None: what the settings say.

        Returns:
            The item of the pattern that it follows, found with it or before, which may be a suggestion only; None where
            it follows none.

        Raises:
            Conflict: the pattern's file kept changing.
            CorruptRecord, FormatUnsupported: suggestions cannot be read.
            ContentError, StorageIO: as ``Store.put``.
            LockTimeout: another process took too long noting a pattern.
            SettingInvalid: the memory context's thresholds are out of range.
        """
        chosen = self.keep() if keep is None else keep
        if chosen is Keep.OFF or not self._learnable(item) or self._learning():
            return None
        self._inside.learning = True
        try:
            return self._learn(item, chosen)
        finally:
            self._inside.learning = False

    def _learning(self) -> bool:
        """Whether this thread is learning: what is stored in reaction to a pattern is not learned from."""
        return getattr(self._inside, "learning", False)

    @staticmethod
    def _learnable(item: MemoryItem) -> bool:
        made = _MADE & item.metadata.keys() or reason_in(item.metadata)
        return item.type != PATTERN and not made and episode_of(item) is None

    def _learn(self, item: MemoryItem, keep: Keep) -> MemoryItem | None:
        detector = self.detector()
        if not words_of(gist(item)):
            return None
        every = self._found("", PATTERN, _KNOWN + 1)  # all, where they are few, which asks the index for less
        near = self.store.readable(every) if len(every) <= _KNOWN else self._loaded(gist(item), PATTERN, _KNOWN)
        known = _best(item, [*near, *self._suggested(keep)], detector)
        if known is not None:
            return self._follow(known, item, detector, keep)
        most = min(max(_LOOKED_AT, 4 * detector.threshold), COUNTED)
        found = {other.id: other for other in self._loaded(gist(item), item.type, most)}
        meaning = self.meaning()
        like = meaning.like(item, most) if meaning is not None else []
        fresh = [other for key in like if key not in found and (other := self.store.get(key))]
        near = [other for other in (*found.values(), *fresh) if other.id != item.id and self._learnable(other)]
        group = [item, *(other for other in near if detector.are_similar(item, other))]
        pattern = detector.extract_pattern(group)
        if pattern is None or item.id not in pattern.members or _disagree(pattern, group):
            return None
        return self._note(pattern, keep)

    def detector(self) -> PatternFinder:
        """What finds patterns, as the memory context says at present.

        Raises:
            SettingInvalid: its thresholds are out of range.
        """
        config = self.config()
        return PatternFinder(
            config.pattern_threshold, similarity=config.similarity_threshold, min_common_words=config.min_common_words
        )

    # -- a new one --------------------------------------------------------------------------------------------------
    def _note(self, pattern: Pattern, keep: Keep) -> MemoryItem | None:
        """Store or suggest a pattern, or bring up to date the one that says the same."""
        with self._lock.hold("noting a pattern", timeout=10.0):
            twin = self._twin(pattern, keep)
            if twin is None and keep is Keep.SUGGEST:
                self.inbox().add([_suggestion(pattern, self.parts.clock())])
                return item_of(pattern)
            if twin is None:
                message = f"Note a pattern: {pattern.template[:80]}"
                try:
                    stored = self.store.put(item_of(pattern), expected="", message=message, source=SOURCE)
                except IdExists:
                    twin = self.store.get(pattern.id)
                    if twin is None or twin.type != PATTERN:
                        return None
        if twin is None:
            self._drop(pattern.members[1:])  # the one that is left counts what was there before
            return self._announced(stored, found=True)
        members = [item for item in map(self.store.get, pattern.members) if item is not None]
        return self._grown(twin, lambda item: _with(item, members), members, keep)

    def _twin(self, pattern: Pattern, keep: Keep) -> MemoryItem | None:
        """The pattern that says the same in nearly the same words, also one that another process has just noted."""
        fixed = fixed_words(pattern.template)
        query = Query(text=pattern.template, types=frozenset({PATTERN}), limit=_KNOWN)
        there = [*self.store.readable(self.store.candidates(query)), *self._suggested(keep)]
        known = [item for item in there if item.data.get("pattern_type") == pattern.type]
        shares = [(overlap(fixed, fixed_words(item.content)), item) for item in known]
        near = [(share, item) for share, item in shares if share >= _SAME_WORDS]
        return max(near, key=lambda row: (row[0], row[1].id))[1] if near else None

    # -- a known one ------------------------------------------------------------------------------------------------
    def _follow(self, known: MemoryItem, item: MemoryItem, detector: PatternFinder, keep: Keep) -> MemoryItem | None:
        """Bring a pattern up to date with a memory that follows it.

        What is counted are the memories there are now; those that were cleared meanwhile stay counted.
        """
        words = " ".join(sorted(fixed_words(known.content)))
        found = {other.id: other for other in self._loaded(words, item.type, COUNTED) if self._learnable(other)}
        members = [other for other in (found | {item.id: item}).values() if detector.follows(other, known)]
        if len(members) < COUNTED:
            self._drop(other.id for other in members)
        newest = item if keep is Keep.WRITE else None  # a suggestion counts the memories there are
        return self._grown(known, lambda now: _with(now, members, newest), members, keep)

    def _grown(
        self, known: MemoryItem, change: Callable[[MemoryItem], MemoryItem], members: list[MemoryItem], keep: Keep
    ) -> MemoryItem | None:
        """Bring a pattern up to date: an item where patterns are written, a suggestion that waits where they are not.

        Returns:
            It as it is now; None for a suggestion that was decided about: what was refused stays refused.
        """
        if known.path:
            return self._announced(self._write(known, change), found=False) if keep is Keep.WRITE else known
        waiting = self.inbox().get(known.id)
        if keep is Keep.WRITE or waiting is None or waiting.decision:
            return None
        item = change(waiting.item)
        evidence = tuple(dict.fromkeys((*waiting.evidence, *(one.id for one in members))))
        again = replace(waiting, item=item, count=_occurrences(item), evidence=_evidence(evidence))
        self.inbox().add([again])
        return item

    def _suggested(self, keep: Keep) -> list[MemoryItem]:
        """The patterns that were suggested: where patterns are written, those that somebody refused."""
        refused = SuggestionDecision.REFUSED
        rows = [one for one in self.inbox().all() if one.source is Source.PATTERN]
        return [one.item for one in rows if keep is Keep.SUGGEST or one.decision is refused]

    def suggested_again(self, waiting: Suggestion, alive: Sequence[str]) -> Suggestion | None:
        """A suggestion some of whose memories are gone, made from the others; None where these do not support it."""
        members = [item for item in map(self.store.get, alive) if item is not None]
        pattern = self.detector().extract_pattern(members)
        return _suggestion(pattern, waiting.made) if pattern is not None and pattern.id == waiting.id else None

    def _write(self, known: MemoryItem, change: Callable[[MemoryItem], MemoryItem]) -> MemoryItem:
        """Store a pattern's item changed; made again from what is there when somebody else changed it."""

        def written() -> MemoryItem:
            now = self.store.get(known.id)
            if now is None or (changed := change(now)) == now:  # forgotten meanwhile, and not to be brought back
                return now or known
            message = f"Bring the pattern {known.id} up to date"
            return self.store.put(changed, expected=now.sha256, message=message, source=SOURCE)

        return retry_on_conflict(written, tries=5)

    def _announced(self, pattern: MemoryItem, found: bool) -> MemoryItem:
        self.fire("pattern_detected", {"pattern": pattern, "found": found})
        return pattern

    # -- asking -----------------------------------------------------------------------------------------------------
    def all(self) -> list[MemoryItem]:
        """The patterns, the most frequent first, of equal ones the newest."""
        return sorted(self.store.select(Query(types=frozenset({PATTERN}), limit=MOST)), key=_occurrences, reverse=True)

    def suggest(self, text: str = "", context: Mapping[str, Any] | None = None, limit: int = 5) -> list[Hit]:
        """The patterns that may help with what is at hand, best first.

        A pattern is worth its text score times its confidence, twice that where the text follows it, and one and a half
        times where one of the circumstances is common to it; one whose circumstances all differ is left out.

        Args:
            text: what is at hand; without it patterns are found by their circumstances alone.
            context: the circumstances of the moment.
            limit: the most suggestions.
        """
        hits, detector, asked = [], self.detector(), bool(text.strip()) or not context
        query = Query(text=text, types=frozenset({PATTERN}), limit=max(limit * _PER_HIT, _LEAST))
        for candidate in self.store.candidates(query):
            loaded = self.store.load(candidate)
            if loaded is not None:
                reasons = reasons_for(loaded.item, candidate.similarity or 1.0, text, context or {}, detector)
                hits.append(Hit(item=loaded.item, score=prod(reasons.values()), reasons=reasons, stale=loaded.stale))
        known = [hit for hit in hits if hit.score > 0 and (asked or "context" in hit.reasons)]
        return sorted(known, key=lambda hit: (-hit.score, hit.item.id))[:limit]

    # -- all at once ------------------------------------------------------------------------------------------------
    def catch_up(self) -> tuple[int, list[MemoryItem]]:
        """Look for patterns among all memories, the newest 10,000 of each type, and keep them as the settings say.

        Returns:
            How many memories were read, and the patterns that were found or brought up to date.

        Raises:
            As ``learn``.
        """
        keep, read = self.keep(), 0
        found: list[MemoryItem] = []
        detector = self.detector()
        known = [*self.all(), *self._suggested(keep)]
        if keep is Keep.OFF:
            return read, found
        for kind in self.parts.kinds:
            if kind.name == PATTERN:
                continue
            items = [item for item in self._loaded("", kind.name, MOST) if self._learnable(item)]
            read += len(items)
            rest, grown_ones = self._gathered(items, known, detector, keep)
            noted = (self._note(pattern, keep) for pattern in detector.detect_all(rest) if not _disagree(pattern, rest))
            found += [*grown_ones, *(item for item in noted if item is not None)]
        return read, found

    def _gathered(
        self, items: list[MemoryItem], known: list[MemoryItem], detector: PatternFinder, keep: Keep
    ) -> tuple[list[MemoryItem], list[MemoryItem]]:
        """Bring known patterns up to date with these memories; return those that follow none, and what was changed."""
        followers: dict[str, list[MemoryItem]] = {}
        rest = []
        for item in items:
            best = _best(item, known, detector)
            if best is None:
                rest.append(item)
            else:
                followers.setdefault(best.id, []).append(item)
        changed = []
        for pattern in known:
            members = followers.get(pattern.id)
            if members and (keep is Keep.WRITE) == bool(pattern.path):
                change = partial(_with, members=members)
                written = self._write(pattern, change) if pattern.path else self._grown(pattern, change, members, keep)
                changed += [written] if written not in (None, pattern) else []
        return rest, changed

    # -- the index --------------------------------------------------------------------------------------------------
    def _loaded(self, text: str, kind: str, limit: int) -> list[MemoryItem]:
        return self.store.readable(self._found(text, kind, limit))

    def _found(self, text: str, kind: str, limit: int) -> list[Candidate]:
        return self.store.known(Query(text=text, types=frozenset({kind}), limit=limit))


def _suggestion(pattern: Pattern, made: datetime) -> Suggestion:
    """A pattern as a suggestion."""
    return Suggestion(
        item=item_of(pattern),
        source=Source.PATTERN,
        made=made,
        count=pattern.occurrences,
        evidence=_evidence(pattern.members),
    )


def _disagree(pattern: Pattern, items: Iterable[MemoryItem]) -> bool:
    """Whether what shows a pattern speaks against one another: these are answers to one question."""
    from memfs.intake.contradictions import NeighbourSearch

    members = set(pattern.members)
    shown = [item for item in items if item.id in members][-_COMPARED:]
    return all(NeighbourSearch.objection(one, other) for one, other in pairwise(shown))


def _evidence(members: tuple[str, ...]) -> tuple[str, ...]:
    """The memories that a suggestion names: those it quotes, which are the first, and the newest of many."""
    return members if len(members) <= COUNTED else (*members[:EXAMPLES], *members[EXAMPLES - COUNTED :])


def _best(item: MemoryItem, known: Iterable[MemoryItem], detector: PatternFinder) -> MemoryItem | None:
    """The pattern that a memory fits best; of equal ones the more frequent."""
    fitting = [(detector.follows(item, one), _occurrences(one), one.id, one) for one in known]
    best = max(fitting, key=lambda row: row[:3], default=None)
    return best[3] if best is not None and best[0] > 0 else None


def _with(known: MemoryItem, members: list[MemoryItem], newest: MemoryItem | None = None) -> MemoryItem:
    """A pattern's item with these memories counted: all there are, so that counting one twice changes nothing.

    Where memories were cleared, fewer are left than were counted: then ``newest`` adds one if it happened afterwards.
    """
    before = _occurrences(known)
    seen = EARLIEST
    with suppress(MemfsError, ValueError):  # somebody wrote something else there
        seen = parse_time(str(known.data.get("last_seen", "")))
    later = newest is not None and newest.updated is None and seen < newest.moment
    return grown(known, members, max(len(members), before + (later and len(members) <= before)))


def _occurrences(pattern: MemoryItem) -> int:
    return int(pattern.data.get("occurrences", 0))


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
        """Learn from what was stored at this very moment, where that is written and the process lives on."""
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
        began, done = time.time_ns() - _SLACK_NS, LearnResult()
        if finds := self.keep("patterns") is not Keep.OFF:
            done = self._from_new(began, until)
        keep = self.keep("rules")
        if keep is not Keep.OFF and (until is None or time.monotonic() < until) and self.rules().has_news():
            with suppress(LockTimeout):  # another process is at it
                self.rules().analyze(seconds=0.0, keep=keep)
        self._withdraw()
        if finds and not done.left and not self.rules().has_news():
            self._note(ALL_LEARNED, began, len(self.parts.index.stamps()))
        return done

    def _from_new(self, began: int, until: float | None) -> LearnResult:
        keep, patterns = self.keep("patterns"), self.patterns()
        self.store.follow()
        new = self._new(began)
        if until is None and len(new) > _FEW:
            read, kept = patterns.catch_up()
            self._note(MARK, began)
            return LearnResult(read=read, written=tuple(one.id for one in kept if keep is Keep.WRITE))
        written: dict[str, None] = {}
        for number, (moment, item_id) in enumerate(new):
            if until is not None and time.monotonic() > until:
                self._note(MARK, moment)
                return LearnResult(read=number, left=len(new) - number, written=tuple(written))
            item = self.store.peek(item_id)
            pattern = patterns.learn(item, keep) if item is not None else None
            if pattern is not None and keep is Keep.WRITE:
                written[pattern.id] = None
        self._note(MARK, began)
        return LearnResult(read=len(new), written=tuple(written))

    def _new(self, now: int) -> list[tuple[int, str]]:
        """The items whose files are new since the last pass, the oldest first, each with when that was."""
        text = io.read_note(self.parts.repository.state / MARK).strip()
        moment = int(text) if text.isdecimal() else 0
        since = moment if moment <= now else 0  # the clock was set back
        stamps = self.parts.index.stamps().items()
        return sorted((stamp.ctime_ns, stem_of(path)) for path, stamp in stamps if stamp.ctime_ns >= since)

    def _note(self, name: str, *numbers: int) -> None:
        text = " ".join(map(str, numbers))
        try:
            io.write_file(self.parts.repository.state / name, f"{text}\n".encode(), durable=False)
        except MemfsError as error:  # then the same is looked at again
            self.store.note_failure(error)

    def _withdraw(self) -> None:
        """Take back what memories spoke for that are gone."""
        inbox = self.inbox()
        gone: list[str] = []
        changed: list[Suggestion] = []
        for suggestion in inbox.waiting():
            alive = [name for name in suggestion.evidence if self.store.locate(name)]
            if suggestion.source not in (Source.PATTERN, Source.RULE) or len(alive) == len(suggestion.evidence):
                continue
            again = self.patterns().suggested_again(suggestion, alive) if suggestion.source is Source.PATTERN else None
            if again is not None:
                changed.append(again)
            elif suggestion.source is Source.PATTERN or len(alive) < _LEAST_FAILURES:
                gone.append(suggestion.id)
        inbox.drop(gone)
        inbox.add(changed)
