"""Seeking: what the index finds in files as they are now.

Owns that files are looked at before the index is asked, and the snapshot under which several questions see one state.
How the index finds, and what becomes of it, is not known here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from memfs.errors import IndexUnavailable
from memfs.index.base import TermStatistics
from memfs.index.joining import Asked, Counted
from memfs.model import Candidate, KindTable, Query
from memfs.model.query import MOST
from memfs.store.naming import in_types
from memfs.store.outcome import Refreshed


class Searched(Protocol):
    """What can be asked; see ``memfs.index.layers.SearchIndex`` for each."""

    def held(self) -> AbstractContextManager[None]: ...

    def search(self, query: Query, asked: Asked | None = None) -> list[Candidate]: ...

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]: ...

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]: ...

    def talks(self) -> bool: ...

    def statistics(self, terms: Collection[str]) -> TermStatistics: ...

    def terms(self, beginning: str) -> Collection[str]: ...


class Indexed(Protocol):
    """What the seeking needs of a store's parts."""

    @property
    def index(self) -> Searched:
        """What is searched."""

    @property
    def kinds(self) -> KindTable:
        """Which types belong to which layer."""


class Seeking:
    """Asks the index of one store. May be used from several threads.

    Attributes:
        asked: whether anything was asked since the store was opened.
    """

    def __init__(self, parts: Indexed, follow: Callable[[], Refreshed], refresh: Callable[[], Refreshed]) -> None:
        """``follow`` looks at what was seen to change, ``refresh`` at every file."""
        self._parts = parts
        self._follow = follow
        self._refresh = refresh
        self._held = threading.local()
        self._looked = False
        self.asked = False

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that this thread asks within sees one state of the files: as they were when it began.

        Writes of other threads wait for its end, so only the index is to be asked meanwhile.

        Raises:
            IndexUnavailable: the index was found damaged; ``Store.refresh`` makes it good.
        """
        self._look()
        with self._parts.index.held():
            self._held.now = True
            try:
                yield
            finally:
                self._held.now = False

    def candidates(self, query: Query) -> list[Candidate]:
        """The items that answer a query, best first.

        Raises:
            IndexUnavailable: within a snapshot, as that says; else it is made good here.
        """
        self._look_now()
        return self._found(query, lambda narrowed: self._parts.index.search(narrowed))

    def counted(self) -> Counted:
        """What tells how terms are spread over the files as they are now."""
        self._look_now()
        return self._parts.index

    def weighed(self, query: Query, asked: Asked) -> list[Candidate]:
        """As ``candidates``, of the files as ``counted`` saw them, where the words are weighed over more workspaces
        than this one.

        Args:
            asked: what they are worth.

        Raises:
            IndexUnavailable: as ``candidates``.
        """
        return self._found(query, lambda narrowed: self._parts.index.search(narrowed, asked))

    def _look_now(self) -> None:
        self.asked = True
        if not getattr(self._held, "now", False):
            self._look()

    def _found(self, query: Query, search: Callable[[Query], list[Candidate]]) -> list[Candidate]:
        narrowed = in_types(query, self._parts.kinds)
        try:
            return search(narrowed)
        except IndexUnavailable:
            if getattr(self._held, "now", False):
                raise
            self._refresh()
            return search(narrowed)

    def every(self, query: Query) -> Iterator[Candidate]:
        """All items that pass a query's filters, each once, the newest first; its text and limit do not count.

        One question gives ``MOST``; the next goes on from the time at which it ended. Of more items than that with one
        and the same time the rest is left out.
        """
        seen: set[str] = set()
        asked = replace(query, text="", limit=MOST)
        while True:
            page = self.candidates(asked)
            fresh = [one for one in page if one.id not in seen]
            seen.update(one.id for one in fresh)
            yield from fresh
            if len(page) < MOST or not fresh:
                return
            asked = replace(asked, until=page[-1].timestamp)

    def known(self, query: Query) -> list[Candidate]:
        """As ``candidates``, of the files as they were when they were last looked at, without looking again.

        For a writer that wants to know what is there already and reads what it found. Where nobody looked yet, files
        are looked at once: the index on disk may lack what a process that was killed has written.
        """
        self.asked = True
        self._look_once()
        narrowed = in_types(query, self._parts.kinds)
        try:
            return self._parts.index.search(narrowed)
        except IndexUnavailable:
            return self.candidates(query)

    def rarest(self, terms: Collection[str], count: int) -> list[str]:
        """Of these terms, so many that the fewest items hold, the rarest first; those that none holds are left out."""
        self._look_once()
        found = self._parts.index.statistics(terms).frequencies
        return sorted((term for term in terms if found.get(term)), key=lambda term: found[term])[:count]

    def _look_once(self) -> None:
        if not self._looked:
            self._look()

    def _look(self) -> None:
        self._follow()
        self._looked = True

    def talks(self) -> bool:
        """Whether any item has a place in a talk."""
        return self._parts.index.talks()

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places (session, sequence) that pass the query's filters, similarity 0."""
        return self._parts.index.beside(places, in_types(query, self._parts.kinds))

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0."""
        return self._parts.index.among(ids, in_types(query, self._parts.kinds))
