"""Threads: the checkpoints of agent graphs, and what their tasks write in between (B5).

Owns which document a checkpoint or a task's writes become, that a value which did not change is not written again, and
finding both again. What may be removed, and how others then keep their values, is ``threadtidy``'s business; what a
value means is known to the framework alone.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain

from memfs.errors import ContentError, MemfsError, QueryInvalid, SecretDetected
from memfs.files.forked import renewed_in_child
from memfs.files.secrets import Finding, check_reason, find, found_in_value
from memfs.model import Problem, statepaths
from memfs.model.threads import KEPT_IN, Kept, Place, Snapshot, TaskWrites
from memfs.model.time import format_time, utc_now
from memfs.states.contention import settled
from memfs.store.statefiles import Change, StateFiles

SOURCE = "langgraph"
_REMEMBERED = 256
_NEAR = 64
_NAMED = 60
_REMEDY = (
    "leave it out of the graph's state and config (an untracked channel is not kept), let an encrypting serializer "
    "keep the values, or give a reason why it may stay: allow_secret=..."
)
_GONE = "bring the file back from git or a backup; a later checkpoint may not need it"

Homes = tuple[Mapping[str, object], Mapping[str, str]]
"""The versions of a checkpoint's channels, and which checkpoint holds the value of each."""


class Threads:
    """The graph threads of one workspace. May be used from several threads, and by several processes at once.

    What was written is durable on return, and is committed with the window.
    """

    def __init__(self, files: StateFiles, clock: Callable[[], datetime] = utc_now) -> None:
        """
        Args:
            files: reads and writes the documents.
            clock: says when one was first written.
        """
        self.files = files
        self._clock = clock
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._homes: OrderedDict[Place, Homes] = OrderedDict()

    # -- writing ------------------------------------------------------------------------------------------------
    def save(
        self, made: Snapshot, changed: Collection[str], value_of: Callable[[str], Kept | None], reason: str = ""
    ) -> None:
        """Keep a checkpoint; one of the same id is replaced.

        Args:
            made: without channels.
            changed: which channels have another version than in the parent.
            value_of: the value of a channel, None where it has none; asked for those alone that must be written.
            reason: why what looks like a secret may stay in it.

        Raises:
            SecretDetected: it holds what looks like a secret and there is no reason; with the field.
            ContentError: a name or a value that no file can hold.
            StorageIO: nothing was written.
        """
        inherited = self._inherited(made, changed)
        while True:
            channels: dict[str, Kept] = {}
            for channel in made.versions:
                home = inherited.get(channel)
                kept = {KEPT_IN: home} if home is not None else value_of(channel)
                if kept is not None:
                    channels[channel] = kept
            whole = replace(made, channels=channels, written=format_time(self._clock()))
            self._write(snapshot_path(whole.place), whole, _told(whole), reason)
            lost = {home for home in set(inherited.values()) if not self._stays(made.place._replace(id=home))}
            if not lost:
                self._remember(whole)
                return
            inherited = {channel: home for channel, home in inherited.items() if home not in lost}

    def add_writes(self, added: TaskWrites, reason: str = "") -> None:
        """Keep what a task wrote. Of what it wrote before, only special writes are replaced.

        Raises:
            SecretDetected, ContentError, StorageIO: as ``save``; nothing was written.
        """
        path = writes_path(added.place, added.task)
        message = f"Keep writes of a task in {shown(added.place.thread)}"
        settled(lambda: self._add(added, path, message, reason))

    def _add(self, added: TaskWrites, path: str, message: str, reason: str) -> None:
        try:
            state = self.files.read(path)
        except FileNotFoundError:
            there, expected = None, ""
        else:
            there, expected = TaskWrites.from_document(state.values), state.sha256
        rows = {one.number: one for one in there.writes} if there else {}
        for one in added.writes:
            if one.number < 0 or one.number not in rows:
                rows[one.number] = one
        written = there.written if there else format_time(self._clock())
        whole = replace(added, writes=tuple(rows[number] for number in sorted(rows)), written=written)
        self._write(path, whole, message, reason, expected)

    def _write(
        self, path: str, made: Snapshot | TaskWrites, message: str, reason: str, expected: str | None = None
    ) -> None:
        """Write a document; its reason is recorded only where one is needed."""
        try:
            _refuse_covered(made)
            self.files.write([Change(path, made.document(), expected)], message, source=SOURCE)
        except SecretDetected as error:
            if not reason:
                raise _placed(error, made, path) from None
            check_reason(reason)
            told = replace(made, allowed=reason).document()
            self.files.write([Change(path, told, expected)], message, source=SOURCE)

    # -- values that did not change -------------------------------------------------------------------------------
    def _inherited(self, made: Snapshot, changed: Collection[str]) -> dict[str, str]:
        """Which checkpoint holds a channel's value, of those channels whose value is the parent's."""
        homes = self._homes_of(made.place._replace(id=made.parent)) if made.parent else None
        if homes is None:
            return {}
        versions, holders = homes
        return {
            channel: holders[channel]
            for channel, version in made.versions.items()
            if channel in holders
            and channel not in changed
            and versions.get(channel) == version
            and holders[channel] != made.place.id
        }

    def _homes_of(self, place: Place) -> Homes | None:
        with self._guard:
            known = self._homes.get(place)
        if known is not None:
            return known
        try:
            found = self.load(place)
        except MemfsError:  # the values at hand are written whole then
            return None
        return self._remember(found) if found is not None else None

    def _remember(self, snapshot: Snapshot) -> Homes:
        holders = {channel: snapshot.home_of(channel) or "" for channel in snapshot.channels}
        with self._guard:
            self._homes[snapshot.place] = snapshot.versions, holders
            self._homes.move_to_end(snapshot.place)
            while len(self._homes) > _REMEMBERED:
                self._homes.popitem(last=False)
        return snapshot.versions, holders

    def forget(self) -> None:
        """Forget what was noted of checkpoints that may be others now."""
        with self._guard:
            self._homes.clear()

    def _stays(self, place: Place) -> bool:
        return self.files.stays(snapshot_path(place))

    # -- reading ------------------------------------------------------------------------------------------------
    def load(self, place: Place) -> Snapshot | None:
        """A checkpoint, None where there is none of that id; unchanged values are not fetched.

        Raises:
            ContentError: its file is invalid, and so is every earlier version of it.
        """
        try:
            values = self.files.read(snapshot_path(place)).values
        except FileNotFoundError:
            return None
        return replace(Snapshot.from_document(values), place=place)

    def values(self, snapshot: Snapshot, near: dict[Place, Snapshot] | None = None) -> dict[str, Kept]:
        """The value of each channel that has one.

        Args:
            near: checkpoints read before, by those who ask for many; those read now are added.

        Raises:
            ContentError: a checkpoint that holds one of them is not here, or is invalid.
        """
        near = {} if near is None else near
        found: dict[str, Kept] = {}
        for channel, kept in snapshot.channels.items():
            seen = {snapshot.place.id}
            while (home := kept.get(KEPT_IN)) is not None:
                holder = self._near(snapshot.place._replace(id=home), near) if home not in seen else None
                if holder is None or channel not in holder.channels:
                    raise _missing(snapshot.place, channel, home)
                seen.add(home)
                kept = holder.channels[channel]
            found[channel] = kept
        return found

    def _near(self, place: Place, near: dict[Place, Snapshot]) -> Snapshot | None:
        if place not in near:
            found = self.load(place)
            if found is None:
                return None
            if len(near) >= _NEAR:
                near.pop(next(iter(near)))
            near[place] = found
        return near[place]

    def places(self, thread: str | None = None, namespace: str | None = None) -> list[Place]:
        """Which checkpoints there are, the newest first: of one thread, of one namespace of it, or all."""
        if thread is None:
            folder = statepaths.THREADS
        elif namespace is None:
            folder = statepaths.thread_folder(named(thread, "thread_id"))
        else:
            folder = statepaths.snapshots_folder(named(thread, "thread_id"), namespace)
        found = (self._place_at(entry.path, thread, namespace) for entry in self.files.scan(folder))
        return sorted((one for one in found if one is not None), key=lambda place: place.id, reverse=True)

    def problems(self) -> list[Problem]:
        """What is wrong with checkpoints: values that are kept where they no longer are."""
        found = []
        near: dict[Place, Snapshot] = {}
        for place in self.places():
            try:
                snapshot = self._near(place, near)
                if snapshot is not None:
                    self.values(snapshot, near)
            except MemfsError as error:
                found.append(Problem.of(error, snapshot_path(place)))
        return found

    def _place_at(self, path: str, thread: str | None, namespace: str | None) -> Place | None:
        if statepaths.document_kind(path) != "graph_checkpoint":
            return None
        told = statepaths.snapshot_at(path)
        if told is None:  # a name in it was shortened
            try:
                told = Snapshot.from_document(self.files.read(path, whole=False).values).place
            except (FileNotFoundError, MemfsError):
                return None
        place = Place(*told)
        return Place(
            place.thread if thread is None else thread, place.namespace if namespace is None else namespace, place.id
        )

    def latest(self, thread: str, namespace: str) -> Place | None:
        """The newest checkpoint of a namespace, None where there is none."""
        folder = statepaths.snapshots_folder(named(thread, "thread_id"), namespace)
        names = [entry.path[len(folder) + 1 :].removesuffix(".json") for entry in self.files.scan(folder)]
        if any("%" in name for name in names):  # a name that is not the id itself
            return next(iter(self.places(thread, namespace)), None)
        return Place(thread, namespace, max(names)) if names else None

    def writes(self, place: Place) -> list[TaskWrites]:
        """What the tasks wrote that began at a checkpoint, in the order of their steps."""
        found = []
        for entry in self.files.scan(statepaths.writes_folder(*place)):
            try:
                found.append(TaskWrites.from_document(self.files.read(entry.path).values))
            except FileNotFoundError:
                continue
        return sorted(found, key=lambda one: (one.path, one.task))


# -- paths and words ----------------------------------------------------------------------------------------------
def named(text: str, field: str) -> str:
    """A name as it can be kept.

    Raises:
        QueryInvalid: it is empty, or no text.
    """
    try:
        statepaths.encode_name(text)
    except ValueError as error:
        raise QueryInvalid(f"{field}: {error}", field=field, hint="give it a name") from None
    return text


def snapshot_path(place: Place) -> str:
    """Where a checkpoint lies."""
    return statepaths.snapshot_path(named(place.thread, "thread_id"), place.namespace, named(place.id, "checkpoint_id"))


def writes_path(place: Place, task: str) -> str:
    """Where a task's writes lie."""
    thread, checkpoint = named(place.thread, "thread_id"), named(place.id, "checkpoint_id")
    return statepaths.writes_path(thread, place.namespace, checkpoint, named(task, "task_id"))


def _told(made: Snapshot) -> str:
    step = "a checkpoint" if made.step is None else f"step {made.step}"
    source = f" ({made.source})" if made.source.isidentifier() else ""
    return f"Keep {step}{source} of {shown(made.place.thread)}"


def shown(thread: str) -> str:
    """A thread as a commit's message names it: as its folder is called."""
    return f"thread {statepaths.encode_name(thread)[:_NAMED]}"


def _missing(place: Place, channel: str, home: str) -> ContentError:
    message = f"the value lies in the checkpoint {home!r}, which is not here"
    return ContentError(message, path=snapshot_path(place), field=f"channels.{channel}", hint=_GONE)


# -- secrets ------------------------------------------------------------------------------------------------------
def _parts_of(made: Snapshot | TaskWrites) -> Iterator[tuple[str, Kept]]:
    """Each value of a document with its field."""
    if isinstance(made, Snapshot):
        return chain(
            (("metadata", made.metadata), ("state", made.state)),
            ((f"channels.{name}", kept) for name, kept in made.channels.items()),
        )
    return ((f"writes.{one.channel}", one.kept) for one in made.writes)


def _refuse_covered(made: Snapshot | TaskWrites) -> None:
    """Refuse a secret in bytes that a look at the document does not show.

    Raises:
        SecretDetected: with the rule; nothing was written.
    """
    for _, kept in _parts_of(made):
        text = kept.get("base64")
        if isinstance(text, str) and (found := find(_bytes_of(text).decode("utf-8", "replace"))):
            raise SecretDetected(f"this looks like {found[0].what} (rule {found[0].rule})")


def _placed(error: SecretDetected, made: Snapshot | TaskWrites, written: str) -> SecretDetected:
    """The error with the field that holds the secret, and what to do; a name that is one is not shown."""
    path = None if find(written) else written
    for field, kept in _parts_of(made):
        text = kept.get("base64")
        covered = find(_bytes_of(text).decode("utf-8", "replace")) if isinstance(text, str) else []
        if found := covered or _found_in(kept.get("value")):
            inner = _inside(kept.get("value"), field)
            message = f"this looks like {found[0].what} (rule {found[0].rule})"
            return SecretDetected(message, path=path, field=inner, hint=_REMEDY)
    return SecretDetected(error.message, path=path, field=error.field, hint=_REMEDY)


def _found_in(value: object) -> list[Finding]:
    return found_in_value({"value": value}) if value is not None else []


def _inside(value: object, field: str) -> str:
    """The field as deep as a key of the value tells."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if found_in_value({key: part}):
                return f"{field}.{key}" if not find(str(key)) else field
    return field


def _bytes_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
