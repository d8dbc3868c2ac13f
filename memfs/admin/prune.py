"""Prune weak memories, and those that are older than the retention policy keeps; list what was pruned.

Items go into the archive, or are deleted where the policy says so, as one batch that history can take back. Pinned
items and conventions of people are never due.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from math import log1p
from pathlib import Path

from memfs.config import RetentionPolicy, read_retention_policy
from memfs.dataclass import dataclass
from memfs.errors import ContentError, GitBusy, IdExists, ItemNotFound, MemfsError
from memfs.format.codec import PRUNED
from memfs.fs import io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.tree import Content, View, blob_id
from memfs.git.commits import maintain
from memfs.git.repository import blobs_in_history
from memfs.model import Candidate, MemoryItem, Problem, Query
from memfs.model.ids import stem_of
from memfs.model.item import Trust
from memfs.model.kinds import BUILT_IN, ITEM_LIMIT
from memfs.model.learning import MemoryConfig
from memfs.model.time import from_timestamp_ns
from memfs.store import Store
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, Parts
from memfs.store.plan import message_for_items
from memfs.store.recovery import all_aside
from memfs.store.store import retry_on_conflict
from memfs.usage import NEVER, Usage, Use

SOURCE = "prune"


def place_of(item: MemoryItem) -> str:
    """Where an item goes when it is pruned."""
    return f"{PRUNED}/{item.type}/{item.path.rpartition('/')[2]}"


class PrunedItems:
    """The pruned items of one workspace."""

    def __init__(self, store: Store, parts: Parts, files: View | None = None) -> None:
        """``files``: of another time, to be read instead of those that there are."""
        self._store, self._parts, self._files = store, parts, files

    def list(self) -> Sequence[MemoryItem]:
        """The pruned items that can be read, newest first; their ``path`` says where each is now."""
        found = [row for path in self._paths() if isinstance(row := self._tried(path), MemoryItem)]
        return sorted(found, key=lambda item: (-item.timestamp.timestamp() if item.timestamp else 0.0, item.id))

    def problems(self) -> Sequence[Problem]:
        """What is wrong with those that cannot be read."""
        return [row for path in self._paths() if isinstance(row := self._tried(path), Problem)]

    def find(self, name: str) -> MemoryItem | None:
        """The pruned item of an id or path; None where there is none.

        Raises:
            ContentError: its file is invalid.
        """
        folded = name.casefold()
        path = next((one for one in self._paths() if folded in (stem_of(one).casefold(), one.casefold())), "")
        return self._read(path) if path else None

    def bring_back(self, name: str) -> MemoryItem:
        """Put a pruned item back where it belongs, as a new change; return it as it is stored then.

        Raises:
            ItemNotFound: nothing pruned is called so.
            IdExists: another item has its id by now.
            ContentError, StorageIO, Conflict: nothing was changed.
        """
        item = self.find(name)
        if item is None:
            raise ItemNotFound(f"nothing pruned is called {name!r}", hint="'memfs list --archived' shows what there is")
        if taken := self._store.locate(item.id):
            raise IdExists(f"the id {item.id!r} is taken", path=taken, hint="rename one of the two files")
        kind = self._parts.kinds.get(item.type)
        month = f"/{item.created:%Y-%m}" if kind.dated and item.created else ""
        target = f"{CONTENT}/{kind.folder}{month}/{item.path.rpartition('/')[2]}"
        plans = self._store.plan_restore({target: self._content(item.path).data, item.path: None})
        self._store.carry_out(plans, f"Bring back {item.id}", source=SOURCE)
        return self._store.read(target)

    # -- reading --------------------------------------------------------------------------------------------------
    def _paths(self) -> Iterator[str]:
        found = (self._files or self._parts.seen).scan(PRUNED)
        yield from sorted(row.path for row in found if row.regular and row.path.endswith(ITEM_SUFFIXES))

    def _content(self, path: str) -> Content:
        return (self._files or self._parts.seen).read(path, ITEM_LIMIT)

    def _tried(self, path: str) -> MemoryItem | Problem | None:
        try:
            return self._read(path)
        except FileNotFoundError:
            return None
        except MemfsError as error:
            return Problem.of(error, path)

    def _read(self, path: str) -> MemoryItem:
        folder, _, name = path.removeprefix(f"{PRUNED}/").rpartition("/")
        if folder not in self._parts.kinds:
            hint = "move the file below archive/pruned/<type>/, or add the type to kinds.yaml"
            raise ContentError("this folder belongs to no memory type", path=path, hint=hint)
        content = self._content(path)
        kind = self._parts.kinds.get(folder)
        modified = from_timestamp_ns(content.stamp.mtime_ns)
        item = self._parts.codec.read(content.data, f"{CONTENT}/{kind.folder}/{name}", modified)
        return item.replace(path=path)


_PATTERN = "pattern"
_CONVENTION = "convention"
_DAYS = 365.0
_OLDEST = 0.1
_TRIES = 3
_SLACK = 100
_REASONS = 3
_EVERY = 3600.0
_ACTIONS = ("archive", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weak:
    """An item that is due.

    Attributes:
        item: the item.
        importance: what it is worth keeping.
        reason: why it is due.
    """

    item: MemoryItem
    importance: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """What a pruning did, or would do.

    Attributes:
        items: the items, weakest first.
        action: ``archive`` or ``delete``, as the retention policy says.
    """

    items: tuple[Weak, ...]
    action: str

    @property
    def reason(self) -> str:
        """Why they are due."""
        return _reasons(self.items)


def importance_of(item: Candidate | MemoryItem, use: Use, now: datetime) -> float:
    """What an item is worth keeping: its own importance, and how often it was used, over its age.

    ``importance x relevance_score x (1 + ln(1 + uses)) x max(0.1, 1 - days / 365)``, twice that for a pattern. A new
    item that has not been read yet is thereby worth as much as one that is used, not nothing.
    """
    days = max(0.0, (now - (item.timestamp or now)).total_seconds() / 86400.0)
    worth = float(item.importance) * use.relevance * (1.0 + log1p(use.count)) * max(_OLDEST, 1.0 - days / _DAYS)
    return worth * 2.0 if item.type == _PATTERN else worth


class Pruner:
    """Makes room in one workspace."""

    def __init__(self, store: Store, parts: Parts, usage: Usage, config: Callable[[], MemoryConfig]) -> None:
        """``config`` gives ``max_memories`` and ``prune_below`` as they are now."""
        self._store, self._parts, self._usage = store, parts, usage
        self._config = config
        self._looked = -_EVERY

    @cached_property
    def pruned(self) -> PrunedItems:
        """What was moved into the archive."""
        return PrunedItems(self._store, self._parts)

    def crowded(self) -> bool:
        """Whether there are more items than ``max_memories``, by more than a hundredth: compares two numbers."""
        most = self._config().max_memories
        return len(self._parts.index.stamps()) > most + most // _SLACK

    def keep_up(self, changed: MemoryItem | None = None) -> PruneResult:
        """Prune where there are too many items, after one was stored; nothing is done and little read otherwise.

        Args:
            changed: an item that may be too weak now, after importance was taken from it.

        Raises:
            ContentError, SettingInvalid, Conflict, StorageIO: as ``prune``.
        """
        if self.crowded() or (changed is not None and self._too_weak(changed)):
            return self.prune()
        return PruneResult(items=(), action=_ACTIONS[0])

    def _too_weak(self, item: MemoryItem) -> bool:
        now = self._parts.clock()
        use = self._usage.of([item.id]).get(item.id, NEVER)
        dated = item if item.timestamp else item.replace(timestamp=item.created)
        return importance_of(dated, use, now) < self._least(self._policy())

    def _least(self, policy: RetentionPolicy) -> float:
        return self._config().prune_below if policy.prune_below is None else policy.prune_below

    def keep_up_with_age(self) -> PruneResult:
        """Prune what is older than its type is configured to be kept, where the policy wants that by itself.

        Looked at once an hour. What only the built-in kinds say is left to callers of ``prune``.

        Raises:
            ContentError, SettingInvalid, Conflict, StorageIO: as ``prune``.
        """
        now = self._parts.clock().timestamp()
        if 0 <= now - self._looked < _EVERY:
            return PruneResult(items=(), action=_ACTIONS[0])
        self._looked = now
        policy = self._policy()
        # Those that are configured here: in the policy, or by a kind of one's own.
        own = {kind.name for kind in self._parts.kinds} - {kind.name for kind in BUILT_IN}
        stated = own | policy.kinds.keys()
        kept = {name: days for name, days in self._days(policy).items() if policy.automatic and name in stated}
        return self._pruned_by(partial(self._aged, kept), policy)

    def due(self) -> Sequence[Weak]:
        """The items that are due: those older than their type is kept, then, weakest first, those above
        ``max_memories`` and those below ``prune_below``.

        Raises:
            ContentError, SettingInvalid: the memory context or the retention policy is invalid.
        """
        return self._due(self._policy())

    def prune(self, dry_run: bool = False) -> PruneResult:
        """Take the items that are due out of the memory, as one batch.

        Args:
            dry_run: only say which.

        Raises:
            ContentError, SettingInvalid: the memory context or the retention policy is invalid.
            Conflict, StorageIO: nothing was changed.
        """
        policy = self._policy()
        return self._pruned_by(partial(self._due, policy), policy, dry_run)

    def _pruned_by(
        self, due: Callable[[], Sequence[Weak]], policy: RetentionPolicy, dry_run: bool = False
    ) -> PruneResult:
        def pruned() -> PruneResult:
            weak = due()
            if weak and not dry_run:
                archives = policy.prune_action == "archive"
                way = "into the archive" if archives else "for good; history has them"
                message = message_for_items("Prune", [entry.item for entry in weak], f"{way}: {_reasons(weak)}")
                with self._store.batch(message, source=SOURCE, critical=True) as batch:
                    for entry in weak:
                        batch.delete(entry.item.id, expected=entry.item.sha256)
                        if archives:
                            batch.plans += self._store.plan_restore({place_of(entry.item): batch.plans[-1].before})
            return PruneResult(items=tuple(weak), action=policy.prune_action)

        return retry_on_conflict(pruned, tries=_TRIES)

    # -- what is due ------------------------------------------------------------------------------------------------
    def _due(self, policy: RetentionPolicy) -> list[Weak]:
        # Every item with what it is worth keeping, weakest first.
        now, uses = self._parts.clock(), self._usage.all()
        ranked = [(importance_of(one, uses.get(one.id, NEVER), now), one) for one in self._store.every(Query())]
        ranked.sort(key=lambda row: (row[0], row[1].timestamp, row[1].id))
        surplus = len(ranked) - self._config().max_memories
        below = self._least(policy)
        found = self._aged(self._days(policy))
        aged = {weak.item.id for weak in found}
        for worth, candidate in ranked:
            if len(found) >= surplus and worth >= below:
                break
            item = self._prunable(candidate) if candidate.id not in aged else None
            if item is not None:
                why = f"importance {worth:.3g} is below {below:g}"
                if worth >= below:
                    why = f"there are {len(ranked):,} memories, {surplus:,} above the most that are kept"
                found.append(Weak(item=item, importance=worth, reason=why))
        return found

    def _days(self, policy: RetentionPolicy) -> dict[str, int]:
        """For how many days each type is kept: as the policy says, else as the kind does; for ever where none does."""
        return {kind.name: kind.retention_days for kind in self._parts.kinds} | dict(policy.kinds)

    def _aged(self, kept: Mapping[str, int]) -> list[Weak]:
        """The items that are older than their type is kept, the oldest first."""
        now = self._parts.clock()
        found: list[tuple[datetime, Weak]] = []
        for name, days in kept.items():
            if not days or name not in self._parts.kinds:
                continue
            before = now - timedelta(days=days)
            for candidate in self._store.every(Query(types=frozenset({name}), until=before)):
                item = self._prunable(candidate)
                since = self._since(item) if item is not None else now
                if item is not None and since <= before:
                    reason = f"{name} memories are kept for {days:,} days"
                    found.append((since, Weak(item=item, importance=float(item.importance), reason=reason)))
        return [weak for _, weak in sorted(found, key=lambda row: (row[0], row[1].item.id))]

    def _since(self, item: MemoryItem) -> datetime:
        """From when on an item counts as old: what was brought back has a new file with what it always said."""
        known = self._parts.index.stamps().get(item.path)
        here = from_timestamp_ns(known.mtime_ns) if known is not None else None
        return max(filter(None, (item.timestamp, item.created, item.updated, here)), default=self._parts.clock())

    def _prunable(self, candidate: Candidate) -> MemoryItem | None:
        """The item as its file has it now, None where it may not go: the file decides, not the index."""
        if candidate.pinned:
            return None
        loaded = self._store.load(candidate)
        if loaded is None or loaded.stale or loaded.item.pinned:
            return None
        item = loaded.item
        return None if item.type == _CONVENTION and item.trust == Trust.HUMAN else item

    def _policy(self) -> RetentionPolicy:
        return read_retention_policy(self._parts.seen, self._parts.codec)


def _reasons(weak: Sequence[Weak]) -> str:
    """Why these are due, each reason once, the first few of many."""
    found = list(dict.fromkeys(one.reason for one in weak))
    return "; ".join(found[:_REASONS]) + ("; and others" if len(found) > _REASONS else "")


_COMMITS_BY_ITSELF = ("interval", "each", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupStep:
    """One thing that was done.

    Attributes:
        what: a sentence.
        bytes: what it freed.
        error: why it failed, "" when it did not.
    """

    what: str
    bytes: int
    error: str = ""


Act = Callable[["Cleaner"], int]
"""Does one step, and says how many bytes that freed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """Makes room in one workspace; ``more`` gives steps of parts that this layer does not know, by what they did."""

    store: Store
    parts: Parts
    more: Callable[[], Mapping[str, Act]] = dict

    def clean(self) -> list[CleanupStep]:
        """Do each step for itself: one that fails is reported and the others go on. Only what freed something."""
        done = []
        for what, act in {**STEPS, **self.more()}.items():
            try:
                done.append(CleanupStep(what=what, bytes=act(self)))
            except MemfsError as error:
                done.append(CleanupStep(what=what, bytes=0, error=str(error)))
        return [step for step in done if step.bytes or step.error]


def remove_leftovers(parts: Parts) -> list[int]:
    """Remove the temporary files that killed processes left; return their sizes."""
    with parts.lock.hold("sweep"):  # before, those of writers that are at it would be among them
        entries = parts.tree.scan(CONTENT, hidden=True)
        found = [entry for entry in entries if is_temporary(entry.path.rpartition("/")[2])]
        for folder in {entry.path.rpartition("/")[0] for entry in found}:
            parts.tree.sweep(folder)
    return [entry.size for entry in found]


def _leftovers(cleaner: Cleaner) -> int:
    io.sweep(cleaner.parts.repository.state)
    return sum(remove_leftovers(cleaner.parts))


def _twice(cleaner: Cleaner) -> int:
    freed = 0
    aside = list(all_aside(cleaner.parts.repository.state))
    held = blobs_in_history(cleaner.parts.repository, {path for _, path, _ in aside})
    for place, _, data in aside:
        if blob_id(data) in held:
            io.unlink(place, missing_ok=True)
            freed += len(data)
    return freed


def _waiting(cleaner: Cleaner) -> int:
    """So the journal becomes short."""
    if cleaner.parts.policy.commit not in _COMMITS_BY_ITSELF or not cleaner.store.pending().count:
        return 0
    before = _size(cleaner.parts.journal.path)
    if reason := cleaner.store.flush(adopt=False).reason:
        raise GitBusy(reason)
    return max(0, before - _size(cleaner.parts.journal.path))


def _history(cleaner: Cleaner) -> int:
    """As maintenance by itself: a repository that memfs joined is the person's to pack."""
    if cleaner.parts.policy.adopt != "auto":
        return 0
    with cleaner.parts.commit_lock.hold("maintenance", timeout=10):
        return maintain(cleaner.parts.repository)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


STEPS: Mapping[str, Act] = {
    "removed temporary files that killed processes left": _leftovers,
    "removed contents set aside that a commit holds": _twice,
    "committed what waited": _waiting,
    "packed the history": _history,
}
