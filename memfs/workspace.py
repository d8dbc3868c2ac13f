"""Workspace: one open workspace, as a record of its parts, each made when it is first used.

Behaviours: what happens when an occasion is raised. A reaction that fails is reported and stops no other.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType, TracebackType

from memfs.admin.store_builder import (
    arrange_watching,
    foundation,
    has_states,
    lay_out,
    limits_age,
    parts_of,
    secondary_problems,
    usage_of,
)
from memfs.config import FollowedContext, checked_values
from memfs.config_names import OFF
from memfs.dataclass import dataclass, field, replace
from memfs.errors import ContentError, HistoryError, ItemNotFound, MemfsError, SettingInvalid, WorkspaceClosed
from memfs.fs import io
from memfs.fs.lock import reset_on_fork, shared_property
from memfs.git.layout import ERASE_FOLDER
from memfs.git.repository import Repository
from memfs.model import KindTable, MemoryItem, Query, Recall
from memfs.model.ids import check_id, of_mount
from memfs.model.kinds import ITEM_LIMIT, nearest
from memfs.model.query import MOST
from memfs.model.time import utc_now
from memfs.settings import Settings
from memfs.startup import TYPE_CHECKING, Any
from memfs.store import Store
from memfs.store.parts import ALL_LEARNED, Facts, Parts
from memfs.store.reader import not_found
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper
    from logging import Logger
    from typing import Unpack

    from memfs.admin.backup import Backups
    from memfs.admin.check import Checker
    from memfs.admin.erase import Eraser, HistoryCut
    from memfs.admin.history import History, RecoveryCopies
    from memfs.admin.prune import Act, Cleaner, Pruner
    from memfs.admin.quota import Quota
    from memfs.admin.repair import Repairer
    from memfs.admin.store_builder import CreateResult
    from memfs.context.parts import Sources
    from memfs.intake.intake import Intake
    from memfs.learning.conflicts import Conflicts
    from memfs.learning.consolidation import Consolidation, Reactions
    from memfs.learning.inbox import Inbox
    from memfs.learning.learner import Learner, PatternStore
    from memfs.learning.preferences import Feedback
    from memfs.model.item import ItemChanges, ItemFields
    from memfs.model.learning import MemoryConfig
    from memfs.model.query import QueryFields
    from memfs.recall.absence import WhyNot
    from memfs.recall.embeddings import EmbeddingIndex, VectorSearch
    from memfs.recall.recaller import Recaller
    from memfs.recall.review import Relevance
    from memfs.recall.use_weights import UseWeights, WeightLearner
    from memfs.state.parts import States
    from memfs.state.reader import Contexts
    from memfs.store.parts import FlushResult
    from memfs.team.asof import Past
    from memfs.team.parts import Teams
    from memfs.usage import Usage

Reaction = Callable[[Facts], object]

# Each occasion with what it means and the facts that come with it.
OCCASIONS: Mapping[str, str] = {
    "storage_threshold": "an area's use crossed a threshold of its quota: area, level, used, limit, share",
    "backup_made": "a backup was written and verified: path, bytes",
    "backup_failed": "a backup that was due could not be made: error",
    "memory_stored": "a memory went through remember, the intake or a facade and is stored: item",
    "context_accessed": "an agent is about to be given context: context, situation",
    "task_completed": "a task ended: task, session, outcome",
    "pattern_detected": "a pattern was written, or holds for one more memory: pattern, found (whether it is new)",
    "episode_recorded": "what an agent did, and how it ended, was stored: episode, item",
    "session_ended": "a session ended and its working memory was consolidated: session",
    "state_stored": "a state document was stored: kind, path, iteration, update_type",
    "iteration_closed": "an iteration was closed: iteration, statistics",
}
DEEPEST = 4
"""How deep occasions may raise occasions: a reaction may cause another, and that one another, but not forever."""


@cache
def _log() -> Logger:
    """Where occasions are noted, for anyone who listens."""
    import logging

    log = logging.getLogger("memfs")
    log.addHandler(logging.NullHandler())
    return log


class Behaviours:
    """The reactions of one open workspace. May be used from several threads."""

    def __init__(self, report: Callable[[Exception], None] = lambda _: None) -> None:
        """Begin with no reactions.

        Args:
            report: receives what a reaction raised, and an occasion that was too deep to be raised.
        """
        self._report = report
        self._reactions: dict[str, tuple[Reaction, ...]] = {}
        self._guard = threading.Lock()
        reset_on_fork(self)
        self._thread = threading.local()

    def on(self, occasion: str, reaction: Reaction) -> Callable[[], None]:
        """Call ``reaction`` with the facts whenever the occasion is raised; return what ends this.

        Raises:
            SettingInvalid: there is no such occasion; the hint names the nearest.
        """
        _known(occasion)
        with self._guard:
            self._reactions[occasion] = (*self._reactions.get(occasion, ()), reaction)

        def end() -> None:
            with self._guard:
                kept = self._reactions.get(occasion, ())
                self._reactions[occasion] = tuple(other for other in kept if other is not reaction)

        return end

    def fire(self, occasion: str, facts: Facts) -> int:
        """Raise an occasion; return how many reactions ran without failing.

        Raises:
            SettingInvalid: there is no such occasion.
        """
        _known(occasion)
        depth = getattr(self._thread, "depth", 0)
        if depth >= DEEPEST:
            self._report_failure(occasion, RecursionError(f"{occasion}: occasions raised one another {DEEPEST} deep"))
            return 0
        frozen = MappingProxyType(dict(facts))
        if "logging" in sys.modules:  # else nobody listens
            alarming = occasion in ("storage_threshold", "backup_failed")
            (_log().warning if alarming else _log().info)("%s %s", occasion, dict(facts))
        self._thread.depth, ran = depth + 1, 0
        try:
            for reaction in self._reactions.get(occasion, ()):
                try:
                    reaction(frozen)
                    ran += 1
                except Exception as error:  # noqa: BLE001  foreign code, reported; see tests/test_architecture.py
                    self._report_failure(occasion, error)
        finally:
            self._thread.depth = depth
        return ran

    def _report_failure(self, occasion: str, error: Exception) -> None:
        _log().error("%s: a reaction failed: %s: %s", occasion, type(error).__name__, error)
        self._report(error)


def _known(occasion: str) -> None:
    if occasion not in OCCASIONS:
        raise SettingInvalid(f"there is no occasion {occasion!r}", hint=nearest(occasion, OCCASIONS) or "see OCCASIONS")


_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult:
    """What was taken away, and from where it can be brought back.

    Attributes:
        item: as it was.
        revision: a commit that holds it, or ``recovered``: a copy outside history; "" while its commit waits.
        waits: why its commit waits.
    """

    item: MemoryItem
    revision: str = ""
    waits: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Workspace:
    """One open workspace: the verbs of every day, and its parts. The name of a part says which module to open.

    Attributes:
        root: the folder that holds ``ContextMemory/``.
        store: the only door for durable change.
        memory_values: what wins over the memory context's file, by name.
        created: what was made, when ``open_workspace`` made the workspace.
        one_shot: the process does one thing with it and ends: nothing is learned and no memory embedded by itself.
    """

    root: Path
    settings: Settings
    kinds: KindTable
    repository: Repository
    store: Store
    parts: Parts
    behaviours: Behaviours
    quota_of: _lru_cache_wrapper[Quota]
    usage_of: Callable[[], Usage]
    memory_values: Mapping[str, Any] = field(default_factory=dict)
    created: CreateResult | None = None
    one_shot: bool = False

    # -- the verbs of every day -----------------------------------------------------------------------------------
    def remember(
        self,
        text: str,
        type: str = "semantic",  # noqa: A002  what a person guesses
        *,
        source: str = "",
        allow_secret: str = "",
        **fields: Unpack[ItemFields],
    ) -> MemoryItem:
        """Store a memory. On return it survives ``kill -9`` and power loss, and recall finds it.

        Args:
            text: what to remember.
            type: its kind, such as ``semantic``, ``procedural`` or ``preference``; ``kinds`` has them all.
            source: what stores it, for the commit.
            allow_secret: why what looks like a secret may stay.
            fields: more of ``MemoryItem``, such as ``title``, ``tags``, ``origin`` or ``expires``.

        Returns:
            The memory with its id.

        Raises:
            SettingInvalid: there is no such type.
            IdExists: there is a memory with that id; ``update`` changes it.
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
        """
        self.kinds.get(type)
        draft = MemoryItem(text, type, **fields)
        stored = self.store.put(draft, expected="", source=source, allow_secret=allow_secret)
        self.behaviours.fire("memory_stored", {"item": stored})
        return stored

    def recall(self, text: str = "", **fields: Unpack[QueryFields]) -> Recall:
        """What answers a question best, the best first; without a question the newest first. Mounts are asked, too.

        Args:
            text: a question, or a few words.
            fields: more of ``Query``, such as ``limit`` (the setting ``recall.limit`` where it is left out), ``types``,
                ``tags``, ``since``, ``max_tokens`` or ``strategy``.

        Raises:
            QueryInvalid: an argument cannot be understood; ``field`` names it.
        """
        fields.setdefault("limit", self.settings.recall.limit)
        recaller = self.sources.mounts.recall if self.settings.mounts else self.recaller
        return recaller.search(Query(text=text, **fields))

    def why_not(
        self,
        reference: str,
        query: Query | str,
        *,
        to_agents: bool = False,
        own: bool = False,
        past: Past | None = None,
    ) -> WhyNot:
        """What became of a memory in the answer to a question: whether it is a hit, and if not, why. No use is counted.

        Args:
            reference: its id, the beginning of one, its path, or ``mount:id``.
            to_agents: as agents are answered, with quoted data.
            own: without mounts.
            past: of which revision; None for the present.

        Raises:
            QueryInvalid: the question cannot be understood; ``field`` names it.
        """
        from memfs.recall.absence import WhyNot
        from memfs.recall.fence import withheld

        store = self.store if past is None else past.store
        mounted = past is None and not own and bool(self.settings.mounts)
        recaller = past.recall if past is not None else self.sources.mounts.recall if mounted else self.recaller
        try:
            item = self.sources.mounts.find(reference) if mounted and of_mount(reference) else store.find(reference)
        except ContentError as error:
            why = f"its file is invalid: {error.sentence}"
            return WhyNot(id=reference, reason="invalid", explanation=why, notes=tuple(filter(None, [error.hint])))
        except ItemNotFound as error:
            pruned = self.pruner.pruned.find(reference) if past is None and not of_mount(reference) else None
            if pruned is None:
                notes = tuple(filter(None, [error.hint]))
                return WhyNot(id=reference, reason="missing", explanation=error.sentence, notes=notes)
            why = "it was pruned, and recall does not search the archive"
            return WhyNot(id=pruned.id, reason="pruned", explanation=why, notes=("'memfs restore' brings it back",))
        return recaller.why_not(query, item, fenced=to_agents, leave_out=withheld if to_agents else None)

    def get(self, item_id: str) -> MemoryItem | None:
        """The memory with this id; None where there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        return self.store.get(item_id)

    def list(self, **fields: Unpack[QueryFields]) -> Sequence[MemoryItem]:
        """The memories that pass all filters, newest first.

        Args:
            fields: of ``Query``, such as ``types``, ``tags``, ``since`` or ``limit``, which is 10,000 where left out.

        Raises:
            QueryInvalid: a filter cannot be understood; ``field`` names it.
        """
        fields.setdefault("limit", MOST)
        return self.store.select(Query(**fields))

    def update(
        self,
        item_id: str,
        *,
        expected: str | None = None,
        source: str = "",
        allow_secret: str = "",
        **changes: Unpack[ItemChanges],
    ) -> MemoryItem:
        """Change fields of a memory; what is not named stays, and no one else's change is lost.

        Args:
            expected: the sha256 that was last read, where a memory that changed since is to be left alone.
            source: what changes it, for the commit.
            allow_secret: why what looks like a secret may stay.
            changes: fields of ``MemoryItem``, such as ``content``, ``memory_type``, ``tags`` or ``importance``.

        Raises:
            ItemNotFound: there is none of this id; the hint names the nearest.
            Conflict: it is not what was expected, or keeps changing.
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was changed.
        """

        def updated() -> MemoryItem:
            before = self.exactly(item_id)
            after = before.replace(**changes)
            self.kinds.get(after.type)
            known = expected or before.sha256
            return self.store.put(after, expected=known, source=source, allow_secret=allow_secret)

        return retry_on_conflict(updated, tries=_TRIES) if expected is None else updated()

    def forget(self, item_id: str, reason: str = "", *, expected: str | None = None, source: str = "") -> ForgetResult:
        """Take a memory out of the files and out of recall; a revision or a copy keeps it.

        Args:
            reason: why, for the commit.
            expected: the sha256 that was last read, where a memory that changed since is to be left alone.
            source: what removes it, for the commit.

        Raises:
            ItemNotFound: there is none of this id; the hint names the nearest.
            Conflict, StorageIO: nothing was removed.
        """
        item = self.exactly(item_id)
        revision, waits = self.forget_read([item.replace(sha256=expected or item.sha256)], reason, source=source)
        return ForgetResult(item=item, revision=revision, waits=waits)

    def forget_read(self, items: Sequence[MemoryItem], reason: str = "", *, source: str = "") -> tuple[str, str]:
        """Take memories out as they were read, all or none; returns the revision that holds them, or why none does yet.

        Raises:
            Conflict, StorageIO: nothing was removed.
        """
        from memfs.admin.history import RECOVERED  # a process that only recalls does without these
        from memfs.store.plan import message_for_items

        head, committed = self.repository.head().commit or "", all(map(self.is_committed, items))
        by_hand = not committed and self.settings.history.commit == "manual"
        for item in items if by_hand else ():
            with suppress(FileNotFoundError):
                self.recovered.keep(item.path, self.parts.seen.read(item.path, ITEM_LIMIT).data)
        if len(items) == 1:
            self.store.delete(items[0].id, expected=items[0].sha256, reason=reason, source=source)
        else:
            with self.store.batch(message_for_items("Forget", items, reason), source=source) as batch:
                for item in items:
                    batch.delete(item.id, expected=item.sha256)
        if committed or by_hand:
            return (head if committed else RECOVERED), ""
        # what only the files or the journal hold goes into history: else there were no way back
        flushed = self.store.flush(adopt=False)
        if not flushed.commits:
            return "", flushed.reason or "nothing was committed yet"
        return self.repository.resolve(f"{flushed.commits[-1]}~1"), ""

    def commit(self, message: str = "") -> FlushResult:
        """Commit what waits, and what was edited by hand, with a message for the latter.

        It does not raise where git is busy: the answer's ``reason`` says so.
        """
        return self.store.flush(adopt=True, message=message, asked=True)

    def exactly(self, item_id: str) -> MemoryItem:
        """The memory with this very id: what is to be changed must not be guessed.

        Raises:
            ItemNotFound: there is none; the hint names the nearest.
            IdInvalid: no id can be so.
            ContentError: its file is invalid at present.
        """
        self.store.look_once()  # another file may have come that has the id
        if (found := self.store.get(check_id(item_id))) is not None:
            return found
        raise not_found(item_id, sorted(self.store.index_sync.ids()))

    def is_committed(self, item: MemoryItem) -> bool:
        """Whether HEAD holds the memory as its file has it; not where git's own files cannot be read."""
        try:
            data = self.parts.seen.read(item.path, ITEM_LIMIT).data
            return self.repository.head_blob(item.path) == self.repository.blob_id(data)
        except (FileNotFoundError, HistoryError):
            return False

    # -- parts ----------------------------------------------------------------------------------------------------
    # They are made when first used: a process that only recalls is spared what they import.
    @shared_property
    def recaller(self) -> Recaller:
        """Answers questions, in more ways than ``recall``."""
        from memfs.recall.recaller import Helpers, Recaller

        helpers = Helpers(
            usage=self.usage,
            relevance=lambda: self.relevance,
            meaning=self._by_meaning,
            learned=self.learned,
        )
        return Recaller(self.store, self.settings.recall.preset, self.parts.clock, self.kinds, helpers=helpers)

    def learned(self) -> UseWeights | None:
        """What the use of hits taught of the ranking; None where ``recall.learn`` is false."""
        return self._weight_learner.current() if self.settings.recall.learn else None

    @shared_property
    def _weight_learner(self) -> WeightLearner:
        from memfs.recall.use_weights import WeightLearner

        return WeightLearner(self.usage.served)

    @shared_property
    def history(self) -> History:
        """Reads and rewinds git history."""
        from memfs.admin.history import History

        return History(self.store, self.repository, self.parts.commit_lock)

    @shared_property
    def recovered(self) -> RecoveryCopies:
        """Contents displaced by a person's change."""
        from memfs.admin.history import RecoveryCopies

        return RecoveryCopies(self.store, self.repository)

    @shared_property
    def checker(self) -> Checker:
        """Finds what is wrong, and repairs it."""
        from memfs.admin.check import Checker

        return Checker(
            store=self.store,
            parts=self.parts,
            recovered=self.recovered,
            backups=lambda: self.backups.kept(),
            checkpoints=lambda: [*self.states.checkpoints.problems(), *self.states.threads.problems()],
            archives=lambda deep: self.states.archives.problems(deep=deep),
            memory_context=self.settings.memory.context,
            embedder=lambda: self.meaning.wanted(),
        )

    @shared_property
    def backups(self) -> Backups:
        """Makes and keeps backups."""
        from memfs.admin.backup import Backups

        return Backups(self.parts, self.settings.backup, self.behaviours.fire)

    @shared_property
    def cleaner(self) -> Cleaner:
        """Makes room without losing anything."""
        from memfs.admin.prune import Cleaner

        return Cleaner(store=self.store, parts=self.parts, more=self._more_cleanup)

    def _more_cleanup(self) -> Mapping[str, Act]:
        return {"archived iterations": self.states.archiver.clean} if has_states(self.parts.seen) else {}

    def _keep_up(self) -> None:
        if self.settings.backup.interval_hours:
            self.backups.keep_up()
        if limits_age(self.parts) and not self.store.by_hand:
            try:
                self.pruner.keep_up_with_age()
            except MemfsError as error:  # what is due stays due; a caller that writes or closes is not to fail for it
                self.store.note_failure(error)
        from memfs.store.recovery import is_merge_due

        try:
            if is_merge_due(self.repository):
                self.teams.resolver.take_up()
        except MemfsError as error:
            self.store.note_failure(error)
        if has_states(self.parts.seen):
            self.states.keep_up()

    @shared_property
    def eraser(self) -> Eraser:
        """Takes an item out of history, too."""
        from memfs.admin.erase import Eraser

        return Eraser(self.store, self.parts, self.backups, self.usage)

    @shared_property
    def history_cut(self) -> HistoryCut:
        """Takes old history out of a repository that memfs made."""
        from memfs.admin.erase import HistoryCut

        return HistoryCut(self.store, self.parts)

    @shared_property
    def repairer(self) -> Repairer:
        """Puts right what the disk damaged."""
        from memfs.admin.repair import Repairer

        return Repairer(self.store, self.parts)

    @shared_property
    def intake(self) -> Intake:
        """Filters, reviews, links and stores drafts."""
        from memfs.intake.intake import intake_of

        return intake_of(self.store, self.parts, self.usage, self.settings.review, self.behaviours.fire)

    @shared_property
    def relevance(self) -> Relevance | None:
        """Asks reviewers what hits have to do with a question; None where none but the built-in ones judge."""
        if not self.settings.review.judges_answers:
            return None
        from memfs.recall.review import relevance_of

        return relevance_of(self.settings.review)

    @shared_property
    def feedback(self) -> Feedback:
        """Changes what an item counts for."""
        from memfs.learning.preferences import Feedback

        return Feedback(self.store, self.usage.served, self.parts.clock)

    @shared_property
    def pruner(self) -> Pruner:
        """Moves weak memories into the archive."""
        from memfs.admin.prune import Pruner

        return Pruner(self.store, self.parts, self.usage, lambda: self.memory_config)

    @shared_property
    def contexts(self) -> Contexts:
        """Keys and values of a session or workflow."""
        from memfs.state.reader import Contexts

        return Contexts(self.store, self.parts)

    @shared_property
    def states(self) -> States:
        """What a long-running multi-agent system keeps: iterations, checkpoints, feedback, archives."""
        from memfs.state.parts import States

        return States(store=self.store, parts=self.parts, settings=self.settings, fire=self.behaviours.fire)

    @shared_property
    def sources(self) -> Sources:
        """What brings memory to an agent by itself, and learns from what became of it."""
        from memfs.context.parts import Sources

        return Sources(
            root=self.root,
            store=self.store,
            parts=self.parts,
            settings=self.settings,
            usage=self.usage,
            recall=lambda: self.recaller,
            states=lambda: self.states,
            memory_config=lambda: self.memory_config,
            fire=self.behaviours.fire,
            inbox=lambda: self.inbox,
        )

    @shared_property
    def teams(self) -> Teams:
        """What a team does with memory in git: reviews, merges, time travel, undoing."""
        from memfs.team.parts import Teams

        return Teams(
            store=self.store,
            parts=self.parts,
            settings=self.settings,
            history=lambda: self.history,
            states=lambda: self.states,
            by_meaning=lambda: not self.words_only,
        )

    @shared_property
    def _context_file(self) -> FollowedContext:
        return FollowedContext(self.parts.seen, self.settings.memory.context, self.store.note_failure)

    @property
    def memory_config(self) -> MemoryConfig:
        """How the workspace learns, and is searched by meaning, at present."""
        self.parts.require_open()
        chosen = self.settings.semantic
        return replace(self._context_file.config().searched_with(chosen.model, chosen.endpoint), **self.memory_values)

    @shared_property
    def meaning(self) -> EmbeddingIndex:
        """What finds by meaning, as the settings, or else the memory context, ask for it."""
        from memfs.recall.embeddings import EmbeddingIndex

        return EmbeddingIndex(self.store, self.parts.index, lambda: self.memory_config, background=not self.one_shot)

    @property
    def by_meaning(self) -> bool:
        """Whether memories are searched by meaning, too, which an unavailable embedder prevents."""
        return self._by_meaning() is not None

    def _by_meaning(self) -> VectorSearch | None:
        begun = "meaning" in self.__dict__ or "storage_type" in self.memory_values
        return self.meaning.current() if begun or not self.words_only else None

    @property
    def words_only(self) -> bool:
        """Whether it is certain at little cost that nothing is searched by meaning."""
        model = self.settings.semantic.model
        return model == OFF or (not model and self._context_file.surely_words_only())

    @shared_property
    def reactions(self) -> Reactions:
        """What happens when something happens."""
        from memfs.learning.consolidation import Reactions

        return Reactions(
            self.store,
            self.recaller,
            lambda: self.memory_config,
            self.behaviours.fire,
            keep=lambda: self.learner.keep("patterns"),
            inbox=lambda: self.inbox,
        )

    @shared_property
    def patterns(self) -> PatternStore:
        """What memories have in common: found, kept and suggested."""
        from memfs.learning.learner import PatternStore

        return PatternStore(
            self.store,
            self.parts,
            lambda: self.memory_config,
            self.behaviours.fire,
            inbox=lambda: self.inbox,
            keep=lambda: self.learner.keep("patterns"),
            meaning=lambda: self._by_meaning(),
        )

    @shared_property
    def inbox(self) -> Inbox:
        """What is suggested to remember, until it is decided."""
        from memfs.learning.inbox import Inbox

        return Inbox(self.store, self.parts)

    @property
    def is_learned(self) -> bool:
        """Whether nothing came, changed or went since all was learned from; the files are not looked at."""
        stamps, noted = self.parts.index.stamps(), io.read_note(self.repository.state / ALL_LEARNED).split()
        moment, count = map(int, noted) if len(noted) == 2 and all(map(str.isdecimal, noted)) else (0, 0)
        return stamps.newest() < moment <= time.time_ns() and count == len(stamps)

    @shared_property
    def learner(self) -> Learner:
        """Learns from what is new, and decides what becomes of it."""
        from memfs.learning.learner import Learner

        return Learner(
            self.store,
            self.parts,
            self.settings,
            patterns=lambda: self.patterns,
            rules=lambda: self.sources.rules,
            inbox=lambda: self.inbox,
            one_shot=self.one_shot,
        )

    @shared_property
    def consolidation(self) -> Consolidation:
        """Turns the working memory of a session that ended into lasting knowledge."""
        from memfs.learning.consolidation import Consolidation

        return Consolidation(self.store, self.usage, self.patterns, self.behaviours.fire, lambda: self.inbox)

    @shared_property
    def usage(self) -> Usage:
        """How often each item was recalled, and to whom it was given."""
        return self.usage_of()

    @shared_property
    def conflicts(self) -> Conflicts:
        """Memories that cannot both hold, until it is decided which does."""
        from memfs.learning.conflicts import Conflicts

        return Conflicts(self.store, self.parts)

    def __repr__(self) -> str:
        return f"<Workspace {self.root}>"

    @property
    def quota(self) -> Quota:
        """Knows how much room there is, and is asked before each write."""
        return self.quota_of()

    @property
    def wrote(self) -> bool:
        """Whether anything was written here, and not followed by what is due then."""
        return self.quota_of.cache_info().currsize > 0 and self.quota.written

    def end_session(self) -> None:
        """Commit what waits for an agent's session to end, if anything was written here; a person's edits stay."""
        self.parts.require_open()
        if self.settings.history.commit == "session" and self.store.wrote:
            self.store.flush(adopt=False)

    def close(self) -> None:
        """Commit what waits where the policy says so, make the backup that is due after a write, release everything."""
        wrote = self.wrote
        with ExitStack() as ending:  # one that cannot be closed keeps no other open
            if wrote:
                ending.callback(setattr, self.quota, "written", False)  # closing again has nothing to do
            ending.callback(self.store.close)
            if "recaller" in self.__dict__:
                self.recaller.close()
            for begun in ("usage", "teams", "patterns", "meaning", "sources", "states"):
                if begun in self.__dict__:
                    ending.callback(getattr(self, begun).close)
            if wrote:
                with suppress(WorkspaceClosed):  # where the store was closed by itself
                    self.quota.maintain()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_workspace(
    path: str | os.PathLike[str] | None = None,
    create: bool = False,
    watch: bool | None = None,
    settings: dict[str, Any] | None = None,
    own_repository: bool = False,
    memory: Mapping[str, Any] | None = None,
    one_shot: bool = False,
    notes: Path | None = None,
) -> Workspace:
    """Open the workspace at or above ``path``.

    Args:
        path: a folder; None means ``MEMFS_WORKSPACE`` or else the current folder.
        create: make the workspace, and a repository where none encloses the path.
        watch: watch the files instead of scanning them before each recall; None: from the first recall on.
        settings: values by dotted key that take precedence over ``memfs.toml``.
        own_repository: with ``create``, make a repository for it even where one encloses the path.
        memory: values of ``MemoryConfig`` by name that take precedence over the memory context's file.
        one_shot: the process does one thing with it and ends: it learns only when ``learner.run`` is called, and where
            memories are searched by meaning it embeds its questions alone.
        notes: the folder where it is noted what is recalled and to whom, private to this user; the workspace's own
            state by default.

    Raises:
        WorkspaceNotFound, RepoUnsupported, RepoUntrusted, SettingInvalid, FormatUnsupported.
    """
    with foundation(path, create, settings, own_repository) as on, ExitStack() as undone:
        repository, chosen = on.repository, on.settings
        parts = parts_of(on.root, repository, chosen, utc_now)
        behaviours = Behaviours(lambda error: store.note_failure(error))
        chores: list[Callable[[], object]] = []

        @cache
        def quota_of() -> Quota:
            from memfs.admin.quota import Quota  # who only reads needs none

            return Quota(parts, behaviours.fire, chores)

        parts = replace(parts, quota_guard_of=quota_of)
        store = Store(parts)
        undone.callback(store.close)  # what cannot be opened leaves no thread behind
        store.notes.extend(secondary_problems(parts.tree, parts.secondary))
        arrange_watching(store, parts, chosen, watch)
        workspace = Workspace(
            root=on.root,
            settings=chosen,
            kinds=parts.kinds,
            repository=repository,
            store=store,
            parts=parts,
            behaviours=behaviours,
            quota_of=quota_of,
            usage_of=partial(usage_of, parts, chosen, notes or repository.state),
            memory_values=checked_values(memory) if memory else {},
            created=lay_out(store, repository, on.repository_made) if on.create else None,
            one_shot=one_shot,
        )
        _connect(workspace)
        chores.append(workspace._keep_up)
        if os.path.lexists(repository.state / ERASE_FOLDER) and not workspace.history_cut.take_up():
            workspace.eraser.take_up()
        if one_shot:  # it ends before a thread would commit; a resident's children do, and a fork copies no thread
            store.notice_commits()
        else:
            store.take_up()
        undone.pop_all()
    return workspace


def _connect(workspace: Workspace) -> None:
    """Let the parts of a workspace hear of their occasions; a part is opened when the first of these comes."""
    on = workspace.behaviours.on

    def learn(occasion: str, facts: Facts) -> None:
        workspace.learner.react(occasion, facts)

    def react(occasion: str, facts: Facts) -> None:
        if not isinstance(facts.get("context"), MappingProxyType):  # what was delivered, takes in nothing more
            workspace.reactions.react(occasion, facts)

    def notify_states(occasion: str, facts: Facts) -> None:
        if "states" in workspace.__dict__ or has_states(workspace.parts.seen):
            workspace.states.react(occasion, facts)

    for occasion in ("memory_stored", "episode_recorded"):
        on(occasion, partial(learn, occasion))
    for occasion in ("context_accessed", "task_completed", "pattern_detected"):
        on(occasion, partial(react, occasion))
    on("storage_threshold", lambda _: workspace.cleaner.clean())
    for occasion in ("state_stored", "iteration_closed", "storage_threshold"):
        on(occasion, partial(notify_states, occasion))
