"""Store: the only door for durable change.

Owns keeping tree, history and index in step for one workspace. It neither reviews nor ranks; what an item means is
decided above it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from memfs.errors import Conflict, IndexUnavailable, ItemNotFound, MemfsError
from memfs.files.tree import Content
from memfs.model import Candidate, Freshness, MemoryItem, Problem, Query, Stamp
from memfs.model.kinds import ITEM_LIMIT, nearest
from memfs.store.batch import Batch
from memfs.store.edits import HandEdits
from memfs.store.following import Following, Progress, Refreshed
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, Parts
from memfs.store.plan import Planned, Planner, describe
from memfs.store.proof import prove
from memfs.store.values import Eyes, Flushed, Loaded, Pending
from memfs.store.window import Window
from memfs.store.writing import PlanOutdated, Writing, signatures_of

if TYPE_CHECKING:
    from memfs.store.committing import Committing

_TRIES = 5
_FOLD_AT = 200


class Store:
    """Memories of one workspace, durable on return of every write. May be used from several threads."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._following = Following(parts.tree, parts.codec, parts.kinds, parts.index, self._last_good)
        self._planner = Planner(parts, self._following)
        self._writing = Writing(parts)
        self._edits = HandEdits(parts, self._following)
        self._window = Window(self._flush_window, parts.policy.interval)
        self._eyes: Eyes | None = None
        self._make_eyes: Callable[[], Eyes] | None = None
        self._wrote = False
        self.notes: list[Problem] = [*self._writing.recover(), *map(Problem.of, parts.journal.damage)]

    @cached_property
    def _committing(self) -> Committing:
        from memfs.store.committing import Committing  # a process that only reads is spared what commits need

        return Committing(self._parts, self._writing, self._edits)

    # -- writing ------------------------------------------------------------------------------------------------
    def put(self, item: MemoryItem, expected: str | None = None, *, message: str = "", source: str = "") -> MemoryItem:
        """Store an item; on return it survives kill -9 and power loss, and recall finds it.

        Args:
            item: without an id it gets one; with the id of a stored item it replaces that one.
            expected: sha256 the caller last read; "" means create only; None means replace whatever is there.
            message: the sentence for the commit; a plain one is made when empty.
            source: which door it came through, for the commit's trailers.

        Returns:
            The stored item, with ``id``, ``path`` and ``sha256``.

        Raises:
            IdInvalid, IdExists, Conflict, ContentError, StorageIO: nothing was changed.
        """
        for _ in range(_TRIES):
            plans = self._planner.put(item, expected)
            with contextlib.suppress(PlanOutdated):
                self._carry_out(plans, message or describe(plans), source, expected, batch=len(plans) > 1)
                return _stored(plans[0])
        raise Conflict("the file keeps changing while it is written", path=plans[0].path, hint="try again")

    def delete(
        self, item_id: str, expected: str | None = None, *, reason: str = "", source: str = ""
    ) -> MemoryItem | None:
        """Remove an item from the files and from recall; git keeps its history.

        Returns:
            The item as it was, None where its file was unreadable.

        Raises:
            ItemNotFound, Conflict, StorageIO.
        """
        for _ in range(_TRIES):
            plan = self._planner.delete(item_id, expected)
            message = describe([plan]) + (f": {reason}" if reason else "")
            with contextlib.suppress(PlanOutdated):
                self._carry_out([plan], message, source, expected)
                return plan.item
        raise Conflict("the file keeps changing while it is removed", path=plan.path, hint="try again")

    @contextlib.contextmanager
    def batch(self, message: str, *, source: str = "") -> Iterator[Batch]:
        """Several writes that happen all or not at all, as exactly one commit.

        Raises:
            Conflict: when the block ends and a file changed since it was planned; nothing was written.
        """
        batch = Batch(self._planner)
        yield batch
        self.carry_out(batch.plans, message, source=source)

    def carry_out(self, plans: list[Planned], message: str, *, source: str = "") -> None:
        """Write plans as one batch.

        Raises:
            Conflict: a file is not what its plan was made against.
        """
        changing = [plan for plan in plans if plan.before != plan.after]
        if not changing:
            return
        try:
            self._carry_out(changing, message, source, None, batch=True)
        except PlanOutdated as outdated:
            raise Conflict(
                "the file changed while the batch was prepared", path=str(outdated), hint="read it again and retry"
            ) from None

    def _carry_out(
        self, plans: list[Planned], message: str, source: str, expected: str | None, batch: bool = False
    ) -> None:
        if all(plan.before == plan.after for plan in plans):
            return
        known = frozenset([expected]) if expected else frozenset()
        signatures = signatures_of(plans, source)
        written = self._writing.carry_out(plans, message, signatures, batch=batch, known_bytes=known)
        self._learn(plans, written.stamps)
        self._wrote = True
        policy = self._parts.policy.commit
        if policy == "each" or (policy == "batch" and batch):
            self._committing.flush()
        elif policy == "interval":
            self._window.opened()

    def _learn(self, plans: list[Planned], stamps: dict[str, Stamp]) -> None:
        items = [(plan.item, stamps[plan.path]) for plan in plans if plan.item is not None and plan.after is not None]
        self._following.learn(items, [plan.path for plan in plans if plan.after is None])
        unread = [plan.path for plan in plans if plan.item is None and plan.after is not None]
        if unread:
            self._following.refresh(unread)

    # -- reading ------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, None when there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        path = self._following.locate(item_id)
        if not path:
            self._freshen()
            path = self._following.locate(item_id)
        try:
            return self.read(path) if path else None
        except FileNotFoundError:
            return None

    def read(self, path: str) -> MemoryItem:
        """The item in the file at ``path``, below the workspace.

        Raises:
            FileNotFoundError, ContentError, PathEscape.
        """
        content = self._parts.tree.read(path, ITEM_LIMIT)
        return self._parts.codec.read(content.data, path, _modified(content))

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, by path, or by the beginning of an id that only one item has.

        Raises:
            ItemNotFound: naming the nearest id.
        """
        if "/" in reference or reference.endswith(ITEM_SUFFIXES):
            with contextlib.suppress(FileNotFoundError):
                return self.read(self.path_of(reference))
        found = self.get(reference)
        if found is not None:
            return found
        ids = self._following.ids()
        starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
        if len(starting) == 1 and (only := self.get(starting[0])) is not None:
            return only
        if starting:
            hint = "it could be " + ", ".join(sorted(starting)[:5])
        else:
            hint = nearest(reference, ids) or "memfs list shows what there is"
        raise ItemNotFound(f"no memory is called {reference!r}", hint=hint)

    def path_of(self, reference: str) -> str:
        """The path below the workspace that a person's path means, whether or not it begins with ``ContextMemory/``."""
        cleaned = reference.removeprefix("./")
        return cleaned if cleaned.startswith((CONTENT + "/", "memfs.toml")) else f"{CONTENT}/{cleaned}"

    def locate(self, item_id: str) -> str:
        """The path of the file that holds the id, "" when none does."""
        return self._following.locate(item_id)

    def candidates(self, query: Query) -> list[Candidate]:
        """What the index finds in files as they are now, best first."""
        self._freshen()
        types = query.types
        if query.layers:
            in_layers = self._parts.kinds.in_layers(query.layers)
            types = (types & in_layers if types else in_layers) or frozenset({""})
        narrowed = Query(**{name: getattr(query, name) for name in Query.__slots__} | {"types": types})
        try:
            return self._parts.index.search(narrowed)
        except IndexUnavailable:
            self.refresh()
            return self._parts.index.search(narrowed)

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate as its file has it now; None when the file is no longer what was found."""
        if self._following.rejected(candidate.path):
            item = self._last_good_item(candidate)
            return Loaded(item=item, stale=True) if item else None
        try:
            content = self._parts.tree.read(candidate.path, ITEM_LIMIT)
            stamp = self._following.stamp_of(candidate.path)
            if stamp is None or stamp.blob != content.stamp.blob:
                return None
            item = self._parts.codec.read(content.data, candidate.path, _modified(content), checked=True)
        except (FileNotFoundError, MemfsError):
            return None
        return Loaded(item=item, stale=False)

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        loaded = [self.load(candidate) for candidate in self.candidates(query)]
        return [found.item for found in loaded if found is not None]

    def count(self) -> int:
        """How many valid items there are."""
        self._freshen()
        return len(self._parts.index.stamps())

    # -- keeping in step ----------------------------------------------------------------------------------------
    def watch_with(self, make_eyes: Callable[[], Eyes], at_once: bool = False) -> None:
        """Rely on something that sees changes, instead of a scan before each recall, from the first recall on."""
        self._make_eyes = make_eyes
        if at_once:
            self._open_eyes()

    def _open_eyes(self) -> None:
        make, self._make_eyes = self._make_eyes, None
        if make is not None:
            self._eyes = make()
            self.refresh()

    @property
    def watching(self) -> str:
        """``on``, ``off``, or ``degraded`` with the reason."""
        if self._eyes is None:
            return "off"
        return f"degraded: {self._eyes.degraded}" if self._eyes.degraded else "on"

    def head(self) -> tuple[str | None, str | None]:
        """The branch and commit checked out at present."""
        head = self._parts.repository.head()
        return head.ref, head.commit

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Bring the index in step with the given files, or with every file."""
        if self._parts.index.reload():
            self._following.forget_owners()
        return self._following.refresh(paths)

    def _freshen(self) -> None:
        self._open_eyes()
        news = self._parts.journal.news()
        seen = self._eyes.drain() if self._eyes else None
        if news is None or seen is None:
            self.refresh()
        elif news or seen:
            self._following.refresh({*news, *seen})

    def reindex(self, progress: Progress | None = None) -> int:
        """Build the index anew from the files; return how many items it holds."""
        self._following.rebuild(progress)
        return len(self._parts.index.stamps())

    def fold(self) -> bool:
        """Move fresh items into the base of the index; false if another process is doing so."""
        self._following.settle()
        return self._parts.index.fold()

    def problems(self) -> list[Problem]:
        """What is wrong with files at present, and what was noticed since the workspace was opened."""
        return [*self._following.problems(), *self.notes]

    def freshness(self) -> Freshness:
        """The proof of what an answer given now rests on."""
        return prove(self._parts, self._following)

    # -- history ------------------------------------------------------------------------------------------------
    def flush(
        self, adopt: bool | None = None, *, include_staged: bool = False, quiet_seconds: float = 0, message: str = ""
    ) -> Flushed:
        """Commit what waits; never fails because git is busy (see ``Flushed.reason``).

        Args:
            adopt: commit a person's edits too; None means as ``history.adopt`` says.
            include_staged: of those, also the ones the person has staged.
            quiet_seconds: of those, only files unchanged for so long.
            message: for the commit of the person's edits.
        """
        adopting = self._parts.policy.adopt == "auto" if adopt is None else adopt
        flushed = self._committing.flush(
            adopt=adopting, include_staged=include_staged, quiet_seconds=quiet_seconds, message=message
        )
        self.notes.extend(flushed.notes)
        return flushed

    def pending(self) -> Pending:
        """What waits for its commit, and why."""
        count = self._committing.waiting()
        reason = self._parts.repository.busy() if count else ""
        return Pending(count=count, reason=reason)

    def hand_edits(self) -> list[str]:
        """Paths a person changed since the last commit."""
        found = self._edits.find(include_staged=True)
        return [plan.path for plan in found.plans]

    def plan_restore(self, path: str, data: bytes | None) -> Planned | None:
        """Plan to bring a file back to given bytes (None: absent); None when it is so already."""
        return self._planner.restore(path, data)

    def own_paths(self) -> list[str]:
        """Every file below ``ContextMemory/`` that memfs keeps in git and that is on disk."""
        return self._edits.own_paths()

    def is_item(self, path: str) -> bool:
        """Whether a file at this path is an item."""
        return self._following.is_item(path)

    def is_own(self, path: str) -> bool:
        """Whether memfs keeps the file at this path in git."""
        return self._edits.is_own(path)

    def _flush_window(self) -> bool:
        flushed = self._committing.flush()
        self.notes.extend(flushed.notes)
        return flushed.waiting == 0

    def _last_good(self, path: str) -> bytes | None:
        head = self._parts.repository.head()
        return self._parts.repository.read(head.commit, path) if head.commit else None

    def _last_good_item(self, candidate: Candidate) -> MemoryItem | None:
        fresh = self._parts.index.item(candidate.id)
        if fresh is not None:
            return fresh
        stamp = self._following.stamp_of(candidate.path)
        try:
            data = self._parts.repository.blob(stamp.blob) if stamp else None
            return self._parts.codec.read(data, candidate.path, candidate.timestamp) if data else None
        except MemfsError:
            return None

    def close(self) -> None:
        """Commit what waits where the policy says so, fold the index, release everything."""
        self._window.close()
        if self._eyes is not None:
            self._eyes.close()
        if self._wrote and self._parts.policy.commit in ("interval", "each", "batch"):
            self._committing.flush()
        if self._parts.index.overlay_size() >= _FOLD_AT or (
            self._parts.index.generation == 0 and self._following.ids()
        ):
            self.fold()
        self._parts.index.close()
        self._parts.repository.close()
        self._parts.journal.close()
        self._parts.tree.close()


def _stored(plan: Planned) -> MemoryItem:
    assert plan.item is not None  # a put always knows its item
    return plan.item


def _modified(content: Content) -> datetime:
    return datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC)
