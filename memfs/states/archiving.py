"""Archiving: closed iterations go into an archive and come back out of it (S5, S15).

Owns the order in which nothing can be lost: the payload is written, made durable, read back and compared; its index is
committed; only then do the originals leave the tree, in a second commit. Whoever is killed in between leaves both, and
the next run goes on. Which iterations are due is ``memfs.states.retention``'s business.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from memfs.errors import Conflict, StorageIO
from memfs.files import io
from memfs.history.tips import at_a_tip
from memfs.model.statepaths import (
    document_kind,
    iteration_folder,
    iteration_of,
)
from memfs.states.archive_packing import Original, Packing, digest_of, groups
from memfs.states.archive_unpacking import SOURCE, Unpacked, Unpacking, batches, iterations_text
from memfs.states.archives import Archives, Place, order
from memfs.store.parts import Parts
from memfs.store.plan import Planned
from memfs.store.statefiles import StateFiles, Written
from memfs.store.store import Store
from memfs.upkeep.archivefile import Member
from memfs.upkeep.archiveindex import Index, archive_lock, encode, index_path, payload_path

_TRIES = 5

Progress = Callable[[int, int], object]
"""Told how many of how many documents are packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What archiving did, or would do.

    Attributes:
        iterations: those that were due.
        archives: the archives that were made.
        documents, bytes: what went into them, and what that weighed in the tree; ``packed`` what it weighs now.
        removed: how many documents left the tree.
        left: documents that stay in the tree, with the reason: invalid, or changed meanwhile.
        reason: why the originals wait in the tree although they are archived; "" where nothing keeps them.
    """

    iterations: tuple[int, ...] = ()
    archives: tuple[str, ...] = ()
    documents: int = 0
    bytes: int = 0
    packed: int = 0
    removed: int = 0
    left: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


class Archiver:
    """Packs and unpacks iterations of one workspace; one process at a time."""

    def __init__(self, store: Store, parts: Parts, files: StateFiles, archives: Archives) -> None:
        self._store = store
        self._parts = parts
        self._files = files
        self._archives = archives
        self._packing = Packing(parts, files)
        self._unpacking = Unpacking(store, parts, archives)
        self._worker = 0
        self._lock = archive_lock(parts)

    @property
    def working_here(self) -> bool:
        """Whether this thread is archiving already: what it writes may raise occasions that want the same."""
        return self._worker == threading.get_ident()

    @contextmanager
    def _working(self, purpose: str) -> Iterator[None]:
        with self._lock.hold(purpose, timeout=10):
            self._worker = threading.get_ident()
            try:
                yield
            finally:
                self._worker = 0

    # -- into the archive -----------------------------------------------------------------------------------------
    def plan(self, closed: Mapping[int, datetime]) -> Archived:
        """What ``archive`` would do; changes nothing."""
        files = self._packing.originals(closed)
        return Archived(
            iterations=tuple(sorted(closed)), documents=len(files), bytes=sum(one.size for one in files)
        )  # fmt: skip

    def archive(self, closed: Mapping[int, datetime], level: int, progress: Progress | None = None) -> Archived:
        """Archive iterations; on return each document is durable in an archive that was read back.

        Args:
            closed: the iterations, each with the moment when it was closed.
            level: zstd's, 1 (quick) to 19 (small).

        Raises:
            LockTimeout: another process is archiving.
            StorageIO, HistoryError, ArchiveInvalid: the originals are all still there.
        """
        with self._working("archive"):
            self._packing.sweep()
            self._store.flush(adopt=False)
            files = self._packing.originals(closed)
            held = self._held(closed)
            made, left = self._pack(files, held, level, progress)
            flushed = self._store.flush(adopt=False)
            reason = flushed.reason if flushed.waiting else ""
            removed = 0 if reason else self._remove(files, self._held(closed, trusted=made), left)
            if removed:
                self._store.flush(adopt=False)
        return Archived(
            iterations=tuple(sorted(closed)),
            archives=tuple(index.name for index in made),
            documents=sum(len(index.members) for index in made),
            bytes=sum(index.raw for index in made),
            packed=sum(index.bytes for index in made),
            removed=removed,
            left=left,
            reason=reason,
        )

    def _held(self, closed: Iterable[int], trusted: Sequence[Index] = ()) -> dict[str, Place]:
        """What payloads that are here hold for sure of iterations, by path; ``trusted`` were read a moment ago."""
        proven = {index.name: frozenset[str]() for index in trusted}
        found = {}
        for number in closed:
            for path, place in self._archives.of_iteration(number).items():
                name = place[0].name
                if name not in proven:
                    (verdict,) = self._archives.verify(name)
                    everything = not verdict.present or "" in verdict.problems
                    proven[name] = frozenset(one.path for one in place[0].members) if everything else frozenset(
                        verdict.problems
                    )  # fmt: skip
                if path not in proven[name]:
                    found[path] = place
        return found

    def _pack(
        self, files: Sequence[Original], held: Mapping[str, Place], level: int, progress: Progress | None
    ) -> tuple[list[Index], dict[str, str]]:
        made: list[Index] = []
        left: dict[str, str] = {}
        fresh = [one for one in files if one.path not in held or not self._packing.same(one, held[one.path][1])]
        done = 0
        for group in groups(fresh):
            name = self._free_name(f"{group[0].closed:%Y-%m}")
            index = self._packing.pack(name, group, level, left)
            if index.members:
                numbers = iterations_text(index.closed)
                plan = self._store.plan_restore(index_path(name), encode(index))
                message = f"Archive {numbers} as {name}"
                self._store.carry_out([plan] if plan else [], message, source=SOURCE)
                self._parts.gate.filled(payload_path(name), index.bytes)
                made.append(index)
            done += len(group)
            if progress is not None:
                progress(done, len(fresh))
        return made, left

    def _free_name(self, month: str) -> str:
        """The next name of a month, after all there are: the newest archive of a document counts."""
        turns = [turn for name in self._archives.stamp() for of, turn in [order(name)] if of == month]
        turn = max(turns, default=0) + 1
        while self._elsewhere(name := f"{month}_{turn}" if turn > 1 else month):
            turn += 1
        return name

    def _elsewhere(self, name: str) -> bool:
        """Whether a payload is here whose index is on another branch: it is still needed there."""
        if self._parts.tree.entry(payload_path(name)) is None:
            return False
        return at_a_tip(self._parts.repository, index_path(name))

    # -- out of the tree ------------------------------------------------------------------------------------------
    def _remove(self, files: Sequence[Original], held: Mapping[str, Place], left: dict[str, str]) -> int:
        """Take originals out of the tree, each only where an archive holds these very bytes."""
        certain = {one.path: held[one.path][1] for one in files if one.path in held}
        documents = [member for path, member in certain.items() if document_kind(path)]
        removed = 0
        for part in batches(documents, lambda member: member.bytes):
            names = iterations_text({number for one in part if (number := iteration_of(one.path)) is not None})
            removed += self._remove_batch(part, f"Take {names} out of the tree; the archive has them", left)
        for path, member in certain.items():
            if not document_kind(path) and digest_of(self._packing.chunks(path)) == member.sha256:
                self._parts.tree.remove(path)
                removed += 1
        for number in sorted({number for path in certain if (number := iteration_of(path)) is not None}):
            self._remove_empty(iteration_folder(number))
        return removed

    def _remove_batch(self, members: Sequence[Member], message: str, left: dict[str, str]) -> int:
        for _ in range(_TRIES):
            plans: list[Planned] = []
            for member in members:
                plan = self._store.plan_restore(member.path, None)
                if plan is not None and plan.old_sha != member.sha256:
                    left[member.path] = "it changed after it was archived"
                elif plan is not None:
                    plans.append(replace(plan, expected=member.sha256))
            with suppress(Conflict):  # somebody wrote one of them: look again
                if plans:
                    self._store.carry_out(plans, message, source=SOURCE)
                    self._tell([plan.path for plan in plans])
                return len(plans)
        return 0

    def _tell(self, removed: Sequence[str]) -> None:
        written = [Written(path=path, sha256="", bytes=0, stamp=None) for path in removed]
        for learned in self._files.learned:
            learned(written, dict.fromkeys(removed))

    def _remove_empty(self, folder: str) -> None:
        root = self._parts.tree.root
        for place, _, _ in os.walk(root / folder, topdown=False):
            if os.path.isdir(place) and not os.listdir(place):
                with suppress(StorageIO):
                    io.rmdir(place)

    # -- back, and for good --------------------------------------------------------------------------------------------
    def unpack(self, iteration: int) -> Unpacked:
        """Bring an archived iteration back into the tree; the archive stays.

        Raises:
            IterationInvalid: no archive holds it.
            ArchiveInvalid: a document of it cannot be given back; what came before it is in the tree.
            LockTimeout: another process is archiving.
        """
        with self._working("unpack"):
            return self._unpacking.unpack(iteration)

    def delete(self, name: str, reason: str) -> None:
        """Remove an archive; history keeps what it had of the documents.

        Raises:
            FileNotFoundError: there is no such archive.
        """
        with self._working("delete"):
            plan = self._store.plan_restore(index_path(name), None)
            if plan is None:
                raise FileNotFoundError(index_path(name))
            self._store.carry_out([plan], f"Delete the archive {name}: {reason}", source=SOURCE)
            self._store.flush(adopt=False)
            entry = self._parts.tree.entry(payload_path(name))
            self._parts.tree.remove(payload_path(name))
            self._parts.gate.filled(payload_path(name), -entry.size if entry else 0)
