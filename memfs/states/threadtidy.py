"""Thread tidying: checkpoints of agent graphs are removed and copied (B5).

Owns that nothing which stays loses a value: what only a removed checkpoint held moves into the oldest that still needs
it, in the same batch. What is removed is in git's history as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from memfs.model import statepaths
from memfs.model.threads import KEPT_IN, Kept, Place, Snapshot
from memfs.states.contention import settled
from memfs.states.threads import SOURCE, Threads, named, shown, snapshot_path
from memfs.store.statefiles import Change

Needs = Callable[[Snapshot], Collection[str]]
"""The channels of a checkpoint whose value is made from the writes before it, back to the last one that holds it."""


class ThreadTidier:
    """Removes and copies the threads of one workspace. May be used by several processes at once."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._files = threads.files

    def delete(self, thread: str) -> int:
        """Remove a thread, its subgraphs and all writes included; return how many documents that were.

        Raises:
            StorageIO: nothing was removed.
        """
        folder = statepaths.thread_folder(named(thread, "thread_id"))
        gone = [Change(entry.path, None) for entry in self._files.scan(folder)]
        if gone:
            self._files.write(gone, f"Remove {shown(thread)}", source=SOURCE, critical=True)
            self._threads.forget()
        return len(gone)

    def remove(self, places: Iterable[Place]) -> None:
        """Remove single checkpoints with their writes; those that stay keep their values.

        Raises:
            StorageIO, ContentError: nothing was removed of the thread at hand.
        """
        by_thread: dict[str, list[Place]] = {}
        for place in places:
            by_thread.setdefault(place.thread, []).append(place)
        for thread, gone in by_thread.items():
            settled(lambda thread=thread, gone=gone: self._remove(thread, gone))  # type: ignore[misc]
            self._threads.forget()

    def keep_latest(self, thread: str, needs: Needs) -> None:
        """Remove all checkpoints but the newest of each namespace, and those before it whose writes it is made from.

        Raises:
            StorageIO, ContentError: nothing was removed.
        """
        places = self._threads.places(thread)
        newest: dict[str, Place] = {}
        for place in places:
            newest.setdefault(place.namespace, place)
        kept = {one for place in newest.values() for one in self._with_ancestors(place, needs)}
        self.remove(place for place in places if place not in kept)

    def copy(self, source: str, target: str) -> int:
        """Copy a thread with all checkpoints and writes, in one batch; return how many documents that were.

        Raises:
            StorageIO, ContentError: nothing was copied.
        """
        folder, other = statepaths.thread_folder(named(source, "source")), named(target, "target")
        if source == target:
            return 0
        changes = []
        for entry in self._files.scan(folder):
            values = {**self._files.read(entry.path).values, "thread": other}
            changes.append(Change(statepaths.thread_folder(other) + entry.path[len(folder) :], values))
        if changes:
            self._files.write(changes, f"Copy {shown(source)} to {shown(target)}", source=SOURCE)
            self._threads.forget()
        return len(changes)

    # -- internal -----------------------------------------------------------------------------------------------
    def _with_ancestors(self, place: Place, needs: Needs) -> list[Place]:
        """A checkpoint and those before it without which a channel could not be made again."""
        found = [place]
        snapshot = self._threads.load(place)
        if snapshot is None:
            return found
        wanted = {channel for channel in needs(snapshot) if channel not in snapshot.channels}
        seen = {place.id}
        while wanted and snapshot is not None and snapshot.parent and snapshot.parent not in seen:
            before = place._replace(id=snapshot.parent)
            snapshot = self._threads.load(before)
            if snapshot is not None:
                found.append(before)
                seen.add(before.id)
                wanted -= snapshot.channels.keys()
        return found

    def _remove(self, thread: str, gone: Collection[Place]) -> None:
        lost: dict[Place, Snapshot] = {}
        for place in gone:
            snapshot = self._threads.load(place)
            if snapshot is not None:
                lost[place] = snapshot
        changes = [*self._removals(gone), *self._rescued(thread, lost)]
        if changes:
            count = len(lost)
            message = f"Remove {count} checkpoint{'s' * (count != 1)} of {shown(thread)}"
            self._files.write(changes, message, source=SOURCE, critical=True)
        while late := self._rescued(thread, lost):  # written by others meanwhile, who counted on what was removed
            self._files.write(late, f"Keep values of {shown(thread)}", source=SOURCE, critical=True)

    def _removals(self, gone: Iterable[Place]) -> list[Change]:
        changes = []
        for place in gone:
            if self._files.exists(snapshot_path(place)):
                changes.append(Change(snapshot_path(place), None))
            folder = statepaths.writes_folder(*place)
            changes.extend(Change(entry.path, None) for entry in self._files.scan(folder))
        return changes

    def _rescued(self, thread: str, lost: Mapping[Place, Snapshot]) -> list[Change]:
        """What must be written so that the checkpoints that stay keep the values of those that go."""
        changes: list[Change] = []
        moved: dict[tuple[Place, str], str] = {}
        homes = {(place.namespace, place.id) for place in lost}
        for place in reversed(self._threads.places(thread)) if lost else ():  # the oldest first
            if place in lost:
                continue
            try:
                state = self._files.read(snapshot_path(place))
            except FileNotFoundError:
                continue
            snapshot = replace(Snapshot.from_document(state.values), place=place)
            wanted = {
                channel: place._replace(id=kept[KEPT_IN])
                for channel, kept in snapshot.channels.items()
                if (place.namespace, kept.get(KEPT_IN)) in homes
            }
            if wanted:
                channels = {**snapshot.channels, **_taken_over(place, wanted, lost, moved)}
                document = replace(snapshot, channels=channels).document()
                changes.append(Change(snapshot_path(place), document, state.sha256))
        return changes


def _taken_over(
    place: Place, wanted: Mapping[str, Place], lost: Mapping[Place, Snapshot], moved: dict[tuple[Place, str], str]
) -> dict[str, Kept]:
    """Values of removed checkpoints: the first that needs one holds it from now on, the others refer to that one."""
    found: dict[str, Kept] = {}
    for channel, home in wanted.items():
        holder = moved.setdefault((home, channel), place.id)
        value = lost[home].channels.get(channel)
        if holder != place.id:
            found[channel] = {KEPT_IN: holder}
        elif value is not None:
            found[channel] = value
    return found
