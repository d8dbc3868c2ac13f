"""JointStore: a workspace and its mounts, seen as one by whoever asks.

Owns that their candidates stand on one scale and in one order. Text is weighed as if all items lay in one workspace;
of two that are equally good the workspace's own comes first. What cannot be read of a mount is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime

from memfs.errors import MemfsError
from memfs.index.joining import asked_of
from memfs.model import Candidate, Freshness, Query
from memfs.model.ids import in_mount, of_mount, without_mount
from memfs.sources.mount import Mount
from memfs.store import Store
from memfs.store.outcome import Refreshed
from memfs.store.values import Loaded

_BEHIND = 1.0 - 1e-9

Opened = Callable[[], Sequence[Mount]]


class JointStore:
    """A workspace's store and its mounts as one (``memfs.store.readable.Readable``)."""

    def __init__(self, own: Store, mounts: Opened, absent: Callable[[], Sequence[str]]) -> None:
        """
        Args:
            mounts: gives those that can be read now.
            absent: gives the names of the others.
        """
        self._own = own
        self._mounts = mounts
        self._absent = absent
        self.seeking = JointSeeking(own, mounts)

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate, from the workspace it was found in."""
        name = of_mount(candidate.id)
        if not name:
            return self._own.load(candidate)
        mount = next((one for one in self._mounts() if one.name == name), None)
        return mount.load(candidate) if mount is not None else None

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now, and for each mount that cannot be
        read its name and a ":"."""
        others = _asked(self._mounts(), query)
        absent = () if query.path else [in_mount(name, "") for name in self._absent()]
        return [*self._own.unread(query), *absent, *(path for mount in others for path in mount.unread(query))]

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Bring the indexes in step with the given files, or with every file."""
        named = None if paths is None else list(paths)
        for mount in self._mounts():
            with _left_out(mount):
                mount.refresh(named)
        return self._own.refresh(None if named is None else [path for path in named if not of_mount(path)])

    def freshness(self) -> Freshness:
        """The proof of what the workspace's own part of an answer rests on."""
        return self._own.freshness()


class JointSeeking:
    """What the indexes find."""

    def __init__(self, own: Store, mounts: Opened) -> None:
        self._own = own
        self._mounts = mounts

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        with ExitStack() as held:
            held.enter_context(self._own.seeking.snapshot())
            for mount in self._mounts():
                with _left_out(mount):
                    held.enter_context(mount.seeking.snapshot())
            yield

    def snapshot(self) -> AbstractContextManager[None]:
        """All that this thread asks within sees one state of every workspace."""
        return self._snapshot()

    def candidates(self, query: Query) -> list[Candidate]:
        """The best of all, on one scale, best first; the newest first where nothing is asked in words."""
        own = self._own.seeking
        mounts = _asked(self._mounts(), query)
        counted = [own.counted()]
        for mount in mounts:
            with _left_out(mount):
                counted.append(mount.seeking.counted())
        asked = asked_of(query, counted)
        found = own.weighed(query, asked)
        for mount in mounts:
            with _left_out(mount):
                theirs = (one for one in mount.seeking.weighed(query, asked) if not self._shared(mount, one))
                found += [replace(one, similarity=one.similarity * _BEHIND) for one in theirs]
        found.sort(key=_worth, reverse=True)  # keeps the order of equals: the workspace's own first
        return found[: query.limit]

    def _shared(self, mount: Mount, one: Candidate) -> bool:
        """Whether an item of private memory lies in the workspace, too, under the same id."""
        return mount.own and self._own.locate(without_mount(one.id)) != ""

    def talks(self) -> bool:
        """Whether any item has a place in a talk."""
        return self._own.seeking.talks() or any(mount.seeking.talks() for mount in self._mounts())

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters."""
        found = self._own.seeking.beside([place for place in places if not place[0].startswith("\0")], query)
        for mount in _asked(self._mounts(), query):
            with _left_out(mount):
                found += mount.seeking.beside(places, query)
        return found


def _asked(mounts: Sequence[Mount], query: Query) -> Sequence[Mount]:
    """Those that a query is for: a path is one of the workspace's own."""
    return () if query.path else mounts


@contextmanager
def _left_out(mount: Mount) -> Iterator[None]:
    """One mount's failure is noted, and costs its own hits alone."""
    try:
        yield
    except (MemfsError, OSError) as error:
        mount.note_failure(error)


def _worth(one: Candidate) -> tuple[float, datetime]:
    return one.similarity, one.timestamp
