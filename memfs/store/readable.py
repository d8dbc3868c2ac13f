"""Readable: what a store offers to those who only read, be it a workspace's own, a mounted one, or several as one.

Owns the protocols alone, one for each sort of reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from memfs.files.tree import View
from memfs.index.layers import SearchIndex
from memfs.model import Candidate, Freshness, KindTable, MemoryItem, Query
from memfs.store.following import Following
from memfs.store.outcome import Refreshed
from memfs.store.values import Loaded


class Sought(Protocol):
    """What an index finds in files as they are now; see ``memfs.store.seeking.Seeking`` for each."""

    def snapshot(self) -> AbstractContextManager[None]:
        """All that this thread asks within sees one state of the files."""

    def candidates(self, query: Query) -> list[Candidate]:
        """The items that answer a query, best first."""

    def talks(self) -> bool:
        """Whether any item has a place in a talk."""

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters."""


class Listed(Protocol):
    """As ``Sought``, for whoever goes through all items."""

    def every(self, query: Query) -> Iterator[Candidate]:
        """All items that pass a query's filters, the newest first."""


class Browsable(Protocol):
    """Lists, finds and loads items."""

    @property
    def seeking(self) -> Listed:
        """Asks the index."""

    def find(self, reference: str) -> MemoryItem:
        """The item a person means."""

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate as its file has it now."""


class Followable(Protocol):
    """Keeps its index in step with its files, and tells of it."""

    @property
    def following(self) -> Following:
        """Tells its listeners what the index learns."""

    def follow(self) -> Refreshed:
        """Bring the index in step with what was seen to change."""

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Bring the index in step with the files."""

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate as its file has it now."""


class Machinery(Protocol):
    """What is needed of a workspace's parts beside a followable store; see ``memfs.store.parts.Parts`` for each."""

    @property
    def seen(self) -> View: ...

    @property
    def index(self) -> SearchIndex: ...

    @property
    def kinds(self) -> KindTable: ...

    @property
    def clock(self) -> Callable[[], datetime]: ...


class Readable(Protocol):
    """Finds and loads items; see ``memfs.store.store.Store`` for each."""

    @property
    def seeking(self) -> Sought:
        """Asks the index."""

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate as its file has it now."""

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now."""

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Bring the index in step with the files."""

    def freshness(self) -> Freshness:
        """The proof of what an answer given now rests on."""
