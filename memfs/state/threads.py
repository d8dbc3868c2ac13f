"""Keep the checkpoints of agent graphs, and what their tasks write in between."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from memfs.dataclass import NamedTuple, dataclass, replace
from memfs.errors import ContentError, MemfsError, QueryInvalid, SchemaInvalid, SecretDetected
from memfs.format.secrets import check_reason, find, found_in_value
from memfs.model import Problem, state_paths
from memfs.model.time import format_time, utc_now
from memfs.state.reader import DocumentChange, StateFiles
from memfs.store.store import retry_on_conflict

Kept = Mapping[str, Any]
"""A value as a document holds it: ``value``; or ``type`` and ``base64``; or once ``kept_in``, an earlier checkpoint."""

KEPT_IN = "kept_in"
ALLOWED = "secret_allowed"
_SNAPSHOT = ("parent", "source", "step", "written", "metadata", "state", "versions", "channels")


class ThreadPlace(NamedTuple):
    """Which checkpoint: its thread, its namespace ("" is the graph itself), and its id."""

    thread: str
    namespace: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSnapshot:
    """A checkpoint.

    Attributes:
        parent: the id of the one before, None for the first.
        metadata, state: what the framework keeps of it.
        versions: of each channel.
        channels: the value of each channel that has one, or where it is kept.
        source, step: for people, who read the file or its commit.
        allowed: why what looks like a secret may stay in it.
    """

    place: ThreadPlace
    parent: str | None = None
    metadata: Kept
    state: Kept
    versions: Mapping[str, Any]
    channels: Mapping[str, Kept]
    source: str = ""
    step: int | None = None
    written: str = ""
    allowed: str = ""

    def document(self) -> dict[str, Any]:
        """What the file holds."""
        return {**_head(self.place), **{name: getattr(self, name) for name in _SNAPSHOT}, **_reason(self.allowed)}

    @classmethod
    def from_document(cls, values: Mapping[str, Any]) -> ThreadSnapshot:
        """The checkpoint in a file that obeys its schema."""
        fields = {name: values[name] for name in _SNAPSHOT if name in values}
        return cls(place=_place(values), allowed=values.get(ALLOWED, ""), **fields)


class Write(NamedTuple):
    """A task's write: its number (negative for special ones), the channel, and the value."""

    number: int
    channel: str
    kept: Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWrites:
    """What one task wrote that began at a checkpoint; ``path`` is its place among the tasks of that step."""

    place: ThreadPlace
    task: str
    path: str = ""
    writes: Sequence[Write]
    written: str = ""
    allowed: str = ""

    def document(self) -> dict[str, Any]:
        """What the file holds."""
        rows = [{"index": one.number, "channel": one.channel, **one.kept} for one in self.writes]
        about = {"task": self.task, "path": self.path, "written": self.written}
        return {**_head(self.place), **about, "writes": rows, **_reason(self.allowed)}

    @classmethod
    def from_document(cls, values: Mapping[str, Any]) -> TaskWrites:
        """The writes in a file that obeys its schema."""
        writes = []
        for row in values["writes"]:
            kept = {key: value for key, value in row.items() if key not in ("index", "channel")}
            if KEPT_IN in kept:
                raise SchemaInvalid("a write holds its own value", field=f"writes.{KEPT_IN}", hint="write 'value'")
            writes.append(Write(row["index"], row["channel"], kept))
        return cls(
            place=_place(values),
            task=values["task"],
            path=values.get("path", ""),
            writes=tuple(writes),
            written=values["written"],
            allowed=values.get(ALLOWED, ""),
        )


def _head(place: ThreadPlace) -> dict[str, Any]:
    return {"thread": place.thread, "namespace": place.namespace, "checkpoint": place.id}


def _place(values: Mapping[str, Any]) -> ThreadPlace:
    return ThreadPlace(values["thread"], values["namespace"], values["checkpoint"])


def _reason(reason: str) -> dict[str, str]:
    return {ALLOWED: reason} if reason else {}


SOURCE = "langgraph"
_NEAR = 64
_NAMED = 60
_REMEDY = (
    "leave it out of the graph's state and config (an untracked channel is not kept), let an encrypting serializer "
    "keep the values, or give a reason why it may stay: allow_secret=..."
)
_GONE = "bring the file back from git or a backup; a later checkpoint may not need it"


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
        self.files, self._clock = files, clock

    # -- writing ------------------------------------------------------------------------------------------------
    def save(self, made: ThreadSnapshot, reason: str = "") -> None:
        """Keep a checkpoint; one of the same id is replaced.

        Args:
            made: with the channels that have a value.
            reason: why what looks like a secret may stay in it.

        Raises:
            SecretDetected: it holds what looks like a secret and there is no reason; with the field.
            ContentError: a name or a value that no file can hold.
            StorageIO: nothing was written.
        """
        path, step = snapshot_path(made.place), "a checkpoint" if made.step is None else f"step {made.step}"
        source = f" ({made.source})" if made.source.isidentifier() else ""
        message = f"Keep {step}{source} of {shown(made.place.thread)}"
        whole = replace(made, written=format_time(self._clock()))
        self._write(path, whole, message, reason)

    def add_writes(self, added: TaskWrites, reason: str = "") -> None:
        """Keep what a task wrote. Of what it wrote before, only special writes are replaced.

        Raises:
            SecretDetected, ContentError, StorageIO: as ``save``; nothing was written.
        """
        place = added.place
        thread, checkpoint = named(place.thread, "thread_id"), named(place.id, "checkpoint_id")
        path = state_paths.writes_path(thread, place.namespace, checkpoint, named(added.task, "task_id"))
        message = f"Keep writes of a task in {shown(thread)}"

        def add() -> None:
            state = self.files.find(path)
            there = TaskWrites.from_document(state.values) if state is not None else None
            rows = {write.number: write for write in there.writes} if there else {}
            for write in added.writes:
                if write.number < 0 or write.number not in rows:
                    rows[write.number] = write
            written = there.written if there else format_time(self._clock())
            whole = replace(added, writes=tuple(rows[number] for number in sorted(rows)), written=written)
            self._write(path, whole, message, reason, state.sha256 if state is not None else "")

        retry_on_conflict(add)

    def _write(
        self, path: str, made: ThreadSnapshot | TaskWrites, message: str, reason: str, expected: str | None = None
    ) -> None:
        """Write a document; its reason is recorded only where one is needed."""
        try:
            for field, kept in _parts_of(made).items():
                with suppress(ValueError):  # a secret in bytes, which the document itself does not show
                    data = base64.b64decode(kept.get("base64") or "", validate=True)
                    for found in find(data.decode("utf-8", "replace")):
                        raise SecretDetected(f"this looks like {found.what} (rule {found.rule})", field=field)
            self.files.write([DocumentChange(path, made.document(), expected)], message, source=SOURCE)
        except SecretDetected as error:
            if not reason:
                error.path, error.hint = None if find(path) else path, _REMEDY  # a name may be the secret
                held = (field for field, kept in _parts_of(made).items() if found_in_value(kept))
                error.field = error.field or next(held, None)
                raise
            check_reason(reason)
            document = replace(made, allowed=reason).document()
            self.files.write([DocumentChange(path, document, expected)], message, source=SOURCE)

    # -- reading ------------------------------------------------------------------------------------------------
    def load(self, place: ThreadPlace) -> ThreadSnapshot | None:
        """A checkpoint, None where there is none of that id; unchanged values are not fetched.

        Raises:
            ContentError: its file is invalid, and so is every earlier version of it.
        """
        state = self.files.find(snapshot_path(place))
        return replace(ThreadSnapshot.from_document(state.values), place=place) if state is not None else None

    def values(
        self, snapshot: ThreadSnapshot, near: dict[ThreadPlace, ThreadSnapshot] | None = None
    ) -> dict[str, Kept]:
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
            while (kept_in := kept.get(KEPT_IN)) is not None:
                holder = self._near(snapshot.place._replace(id=kept_in), near) if kept_in not in seen else None
                if holder is None or channel not in holder.channels:
                    message = f"the value is stored in the checkpoint {kept_in!r}, which is missing"
                    field, path = f"channels.{channel}", snapshot_path(snapshot.place)
                    raise ContentError(message, path=path, field=field, hint=_GONE)
                seen.add(kept_in)
                kept = holder.channels[channel]
            found[channel] = kept
        return found

    def _near(self, place: ThreadPlace, near: dict[ThreadPlace, ThreadSnapshot]) -> ThreadSnapshot | None:
        if place not in near:
            found = self.load(place)
            if found is None:
                return None
            if len(near) >= _NEAR:
                near.pop(next(iter(near)))
            near[place] = found
        return near[place]

    def places(self, thread: str | None = None, namespace: str | None = None) -> list[ThreadPlace]:
        """Which checkpoints there are, the newest first: of one thread, of one namespace of it, or all."""
        if thread is None:
            folder = state_paths.THREADS
        elif namespace is None:
            folder = state_paths.thread_folder(named(thread, "thread_id"))
        else:
            folder = state_paths.snapshots_folder(named(thread, "thread_id"), namespace)
        found = []
        for entry in self.files.scan(folder):
            if state_paths.document_kind(entry.path) != "graph_checkpoint":
                continue
            parts = state_paths.snapshot_at(entry.path)
            if parts is None:  # a name in it was shortened
                with suppress(FileNotFoundError, MemfsError):
                    parts = ThreadSnapshot.from_document(self.files.read(entry.path, whole=False).values).place
            if parts is not None:
                whole = parts[1] if namespace is None else namespace
                found.append(ThreadPlace(parts[0] if thread is None else thread, whole, parts[2]))
        return sorted(found, key=lambda place: place.id, reverse=True)

    def problems(self) -> list[Problem]:
        """What is wrong with checkpoints: values that are kept where they no longer are."""
        found = []
        near: dict[ThreadPlace, ThreadSnapshot] = {}
        for place in self.places():
            try:
                snapshot = self._near(place, near)
                if snapshot is not None:
                    self.values(snapshot, near)
            except MemfsError as error:
                found.append(Problem.of(error, snapshot_path(place)))
        return found

    def writes(self, place: ThreadPlace) -> list[TaskWrites]:
        """What the tasks wrote that began at a checkpoint, in the order of their steps."""
        there = (self.files.find(entry.path) for entry in self.files.scan(state_paths.writes_folder(*place)))
        found = [TaskWrites.from_document(state.values) for state in there if state is not None]
        return sorted(found, key=lambda one: (one.path, one.task))

    # -- removing -------------------------------------------------------------------------------------------------
    def delete(self, thread: str) -> None:
        """Remove a thread, its subgraphs and all writes included.

        Raises:
            StorageIO: nothing was removed.
        """
        folder = state_paths.thread_folder(named(thread, "thread_id"))
        gone = [DocumentChange(entry.path, None) for entry in self.files.scan(folder)]
        if gone:
            self.files.write(gone, f"Remove {shown(thread)}", source=SOURCE, critical=True)


# -- paths and words ----------------------------------------------------------------------------------------------
def named(text: str, field: str) -> str:
    """A name as it can be kept.

    Raises:
        QueryInvalid: it is empty, or no text.
    """
    try:
        state_paths.encode_name(text)
    except ValueError as error:
        raise QueryInvalid(f"{field}: {error}", field=field, hint="give it a name") from None
    return text


def snapshot_path(place: ThreadPlace) -> str:
    """Where a checkpoint is."""
    return state_paths.snapshot_path(
        named(place.thread, "thread_id"), place.namespace, named(place.id, "checkpoint_id")
    )


def shown(thread: str) -> str:
    """A thread as a commit's message names it: as its folder is called."""
    return f"thread {state_paths.encode_name(thread)[:_NAMED]}"


# -- secrets ------------------------------------------------------------------------------------------------------
def _parts_of(made: ThreadSnapshot | TaskWrites) -> dict[str, Kept]:
    """Each value of a document by its field."""
    if isinstance(made, TaskWrites):
        return {f"writes.{one.channel}": one.kept for one in made.writes}
    channels = {f"channels.{name}": kept for name, kept in made.channels.items()}
    return {"metadata": made.metadata, "state": made.state, **channels}
