"""PastStore: the items of one revision, listed, found and loaded as a store does it.

Owns that nothing is read before it is asked for, and that nothing here can write but a cache. Which revision it is, and
how answers are made of it, is decided above.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property

from memfs.errors import ItemNotFound, MemfsError
from memfs.files.forked import renewed_in_child
from memfs.index.treeindex import TreeIndex
from memfs.model import Candidate, Freshness, KindTable, MemoryItem, Problem, Query
from memfs.model.ids import stem_of
from memfs.store.decoded import Decoded
from memfs.store.naming import in_types, not_found, path_of
from memfs.store.outcome import Refreshed
from memfs.store.parts import ITEM_SUFFIXES, below_content
from memfs.store.seeking import Seeking
from memfs.store.values import Loaded
from memfs.teams.pastfiles import PastFiles
from memfs.teams.pastindex import Built
from memfs.teams.pastreading import PastReading, problems_of


class PastStore:
    """Reads the memories of one revision. May be used from several threads.

    It offers what answers are made from (``memfs.store.readable.Readable``) and what lists are (``Browsable``).

    Attributes:
        files: every file of the revision.
        kinds: the types of memory there were.
        seeking: asks the index, which is made with the first question.
        clock: tells what counts as the present.
    """

    def __init__(
        self,
        files: PastFiles,
        reading: PastReading,
        kinds: KindTable,
        build: Callable[[], Built],
        clock: Callable[[], datetime],
    ) -> None:
        """``build`` makes the index, or finds it made."""
        self.files = files
        self.kinds = kinds
        self.clock = clock
        self._reading = reading
        self._build = build
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._decoded = Decoded()
        self._failures: list[Problem] = []
        self.seeking = Seeking(self, Refreshed, Refreshed)

    @cached_property
    def _built(self) -> Built:
        with self._turn:
            found: Built | None = self.__dict__.get("_built")
            return found if found is not None else self._build()

    @property
    def index(self) -> TreeIndex:
        """What is searched."""
        return self._built.index

    @property
    def seen(self) -> PastFiles:
        """The files as readers see them."""
        return self.files

    # -- reading ----------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, compared without case; None where there was none.

        Raises:
            ContentError: its file was invalid.
        """
        path = self.locate(item_id)
        return self._reading.item(path) if path else None

    def locate(self, item_id: str) -> str:
        """The path of the file that held the id, "" where none did."""
        folded = item_id.casefold()
        path = self.index.paths.get(folded)
        return path or next((one for one in sorted(self._built.left) if stem_of(one).casefold() == folded), "")

    def ids(self) -> list[str]:
        """The ids of all valid items."""
        return list(self.index.blobs)

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, by path, or by the beginning of an id that only one item had.

        Raises:
            ItemNotFound: naming the nearest id of that revision.
            ContentError: its file was invalid.
        """
        if "/" in reference or reference.endswith(ITEM_SUFFIXES):
            try:
                return self._reading.item(path_of(reference))
            except FileNotFoundError:
                pass
        found = self.get(reference)
        if found is not None:
            return found
        ids = self.ids()
        starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
        if len(starting) == 1 and (only := self.get(starting[0])) is not None:
            return only
        raise self._located(not_found(reference, starting, ids))

    def beginning(self, reference: str) -> str:
        """The path of the only file that should hold an item whose id begins so, "" where there is none."""
        folded = reference.casefold()
        found = [path for path in self._reading.candidates() if stem_of(path).casefold().startswith(folded)]
        return found[0] if len(found) == 1 else ""

    def _located(self, error: ItemNotFound) -> ItemNotFound:
        return ItemNotFound(f"{error.message} at {self.files.commit[:10]}", hint=error.hint)

    def read(self, path: str) -> MemoryItem:
        """The item in the file at a path below the workspace.

        Raises:
            FileNotFoundError: it was not there.
            ContentError, IdInvalid: it was invalid.
        """
        return self._reading.item(path)

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate; None where git cannot give it."""
        try:
            return Loaded(item=self._item(candidate), stale=False)
        except (FileNotFoundError, MemfsError) as error:
            if isinstance(error, MemfsError):
                self.note_failure(error)
            return None

    def _item(self, candidate: Candidate) -> MemoryItem:
        """The item, decoded anew unless it was decoded before: the bytes of a revision never change."""
        return self._decoded.item(
            candidate.path,
            self._reading.stamp(candidate.path),
            lambda: self._reading.item(candidate.path),
            checked=True,
        )

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        loaded = [self.load(candidate) for candidate in self.seeking.candidates(query)]
        return [found.item for found in loaded if found is not None]

    def unread(self, query: Query) -> list[str]:
        """The files a query could concern that hold no item; ``problems`` says why."""
        left = self._built.left
        typed = in_types(query, self.kinds)
        return [path for path in left if self._concerns(typed, path)]

    def _concerns(self, query: Query, path: str) -> bool:
        kind = self.kinds.at(below_content(path))
        typed = kind is not None and (not query.types or kind.name in query.types)
        return typed and (not query.path or f"{path}/".startswith(query.path.rstrip("/") + "/"))

    def count(self) -> int:
        """How many valid items there were."""
        return len(self.index)

    def problems(self) -> list[Problem]:
        """What was wrong with its files, and what went wrong while they were read."""
        return [*problems_of(self._built.left), *self._failures]

    def note_failure(self, error: Exception) -> None:
        """Report what went wrong behind the scenes, once, among the problems."""
        hint = getattr(error, "hint", None) or "run git fsck"
        found = Problem(path="", code=type(error).__name__, message=str(error), hint=hint)
        if found not in self._failures:
            self._failures.append(found)

    # -- standing ---------------------------------------------------------------------------------------------------
    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:  # noqa: ARG002  what was cannot change
        """Nothing: a revision stays what it is."""
        return Refreshed()

    def follow(self) -> Refreshed:
        """As ``refresh``."""
        return Refreshed()

    def head(self) -> tuple[str | None, str | None]:
        """No branch, and the revision."""
        return None, self.files.commit

    def freshness(self) -> Freshness:
        """The proof of what an answer rests on: the revision alone."""
        return Freshness(head=self.files.commit, dirty=0, indexed=self.files.tree)
