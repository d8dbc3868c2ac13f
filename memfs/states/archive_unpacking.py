"""Unpacking an archive: an archived iteration comes back into the tree, on demand (S5).

Owns the order: the archive's index says first that the iteration is back, so that it is not archived again at once;
then the documents come, in commits of their own. What is in the tree already is newer and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from memfs.errors import IterationInvalid
from memfs.model.statepaths import document_kind
from memfs.states.archives import Archives, Place
from memfs.store.parts import Parts
from memfs.store.store import Store
from memfs.upkeep.archivefile import Member
from memfs.upkeep.archiveindex import Index, encode, index_path

SOURCE = "archive"
_BATCH_BYTES = 32 << 20
_BATCH_FILES = 2_000

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What unpacking brought back; ``kept`` are documents that were in the tree already and stay as they are."""

    iteration: int
    documents: int
    bytes: int
    kept: tuple[str, ...] = ()


class Unpacking:
    """Brings iterations of one workspace back; whoever does holds the archive's lock."""

    def __init__(self, store: Store, parts: Parts, archives: Archives) -> None:
        self._store = store
        self._parts = parts
        self._archives = archives

    def unpack(self, iteration: int) -> Unpacked:
        """Bring an archived iteration back into the tree; the archive stays, and what is in the tree stays as it is.

        Raises:
            IterationInvalid: no archive holds it.
            ArchiveInvalid: a document of it cannot be given back; what came before it is in the tree.
        """
        places = self._archives.of_iteration(iteration)
        if not places:
            known = iterations_text(self._archives.iterations()) or "none"
            raise IterationInvalid(f"no archive holds iteration {iteration}", hint=f"archived are: {known}")
        self._mark(iteration)
        kept = tuple(path for path in places if self._parts.seen.entry(path) is not None)
        wanted = [place for path, place in places.items() if path not in kept]
        for index, member in wanted:
            if not document_kind(member.path):
                self._bring_sidecar(index, member)
        message = f"Unpack iteration {iteration}"
        for part in batches([place for place in wanted if document_kind(place[1].path)], _weight):
            self._bring(part, message)
        self._store.flush(adopt=False)
        return Unpacked(
            iteration=iteration, documents=len(wanted), bytes=sum(place[1].bytes for place in wanted), kept=kept
        )

    def _mark(self, iteration: int) -> None:
        """Note in the indexes that an iteration is back: before any document is, so that none is archived again."""
        plans = []
        for name in self._archives.iterations().get(iteration, ()):
            index = self._archives.index(name)
            marked = replace(index, unpacked={**index.unpacked, iteration: self._parts.clock()})
            plans.append(self._store.plan_restore(index_path(name), encode(marked)))
        self._store.carry_out([plan for plan in plans if plan], f"Unpack iteration {iteration}", source=SOURCE)

    def _bring(self, places: Sequence[Place], message: str) -> None:
        plans = [self._store.plan_restore(one.path, self._archives.content(index, one)) for index, one in places]
        self._store.carry_out([plan for plan in plans if plan and plan.before is None], message, source=SOURCE)

    def _bring_sidecar(self, index: Index, member: Member) -> None:
        self._parts.tree.write_stream(member.path, self._archives.chunks(index, member))


def _weight(place: Place) -> int:
    return place[1].bytes


def batches(rows: Iterable[Row], weight: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Rows in batches that memory and a commit can take."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        if batch and (size + weight(row) > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += weight(row)
    if batch:
        yield batch


def iterations_text(numbers: Iterable[int]) -> str:
    """Iterations as a sentence has them: ``iterations 1 to 4 and 7``."""
    found = sorted(numbers)
    runs: list[list[int]] = []
    for number in found:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    listed = ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else "".join(texts)
    return f"iteration{'s' if len(found) > 1 else ''} {listed}" if found else ""
