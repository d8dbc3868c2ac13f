"""Saver: LangGraph's checkpoints, kept in a workspace (B5).

Owns what ``BaseCheckpointSaver`` promises: configs, tuples, order and filters. Its asynchronous half is ``inthreads``;
what a document looks like is the business of ``packing`` and ``memfs.states.threads``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from memfs.adapters.langgraph.inthreads import InThreads
from memfs.adapters.langgraph.knowntypes import KnownTypes
from memfs.adapters.langgraph.packing import pack, types_in, unpack
from memfs.errors import ContentError, QueryInvalid
from memfs.facades.opening import Facade
from memfs.model.threads import Kept, Place, Snapshot, TaskWrites, Write
from memfs.states.threads import Threads, snapshot_path
from memfs.workspace import Workspace

_COUNTERS = "counters_since_delta_snapshot"
_KEPT_APART = ("channel_values", "channel_versions")
_STRATEGIES = ("keep_latest", "delete")
Near = dict[Place, Snapshot]
Pending = list[PendingWrite]


class MemfsSaver(InThreads, BaseCheckpointSaver[Any]):
    """Keeps the checkpoints of LangGraph's graphs as files in git (B5). Threads, tasks and processes may share one.

    What a method wrote survives kill -9 and power loss when it returns: a graph that was killed resumes where it was.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        serde: SerializerProtocol | None = None,
        allow_secret: str = "",
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the workspace, which is opened when it is first used.

        Args:
            path: a folder: the workspace there or above it, else one that is made there; ``":memory:"``: one that
                passes; None: the workspace at hand, else this user's own.
            serde: makes bytes of values, as LangGraph's own does where there is none. Of another than
                ``JsonPlusSerializer`` the bytes are kept as they are, so that an encrypting one hides what it is given.
            allow_secret: why what looks like a secret may stay in a checkpoint: one line, recorded where it is needed.
            workspace: an open workspace, instead of a path; it stays open.

        Raises:
            WorkspaceNotFound: none can be made at ``path``.
        """
        super().__init__(serde=serde)
        self._facade = Facade(path, workspace=workspace)
        self._reason = allow_secret
        self._types = KnownTypes()
        self._usual = self.serde if serde is None else None

    # -- the workspace --------------------------------------------------------------------------------------------
    @property
    def workspace(self) -> Workspace:
        """The open workspace."""
        return self._facade.workspace

    def close(self) -> None:
        """End the session, which commits what waits for that, and the use of the workspace. May be repeated."""
        self._facade.finish()

    def __enter__(self) -> MemfsSaver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _threads(self) -> Threads:
        return self.workspace.states.threads

    # -- reading --------------------------------------------------------------------------------------------------
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, the newest of its thread and namespace where it names none.

        Raises:
            ContentError: its file, or one that holds a value of it, is invalid or gone; with path and remedy.
        """
        place = self._asked(config)
        snapshot = self._threads.load(place) if place is not None else None
        return self._tuple(snapshot, config["configurable"]["thread_id"], {}) if snapshot is not None else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints that match, the newest first.

        Args:
            config: of this thread, and of this namespace and id where it names them; None: of all threads.
            filter: metadata that must be equal, by key.
            before: older than the checkpoint that this names.
            limit: at most so many.

        Raises:
            ContentError: as ``get_tuple``.
        """
        found = self._matching(config, filter or {}, get_checkpoint_id(before) if before else None)
        yield from found if limit is None else islice(found, max(limit, 0))

    def _matching(
        self, config: RunnableConfig | None, wanted: Mapping[str, Any], before: str | None
    ) -> Iterator[CheckpointTuple]:
        given = config["configurable"] if config else {}
        thread, namespace, only = given.get("thread_id"), given.get("checkpoint_ns"), given.get("checkpoint_id")
        near: Near = {}
        for place in self._threads.places(None if thread is None else str(thread), namespace):
            if (only and place.id != only) or (before and place.id >= before):
                continue
            snapshot = near.get(place) or self._threads.load(place)
            if snapshot is None:  # removed meanwhile
                continue
            if wanted:
                metadata = self._mapping(snapshot.metadata, place, "metadata")
                if any(metadata.get(key) != value for key, value in wanted.items()):
                    continue
            yield self._tuple(snapshot, thread, near)

    def _tuple(self, snapshot: Snapshot, thread: Any, near: Near) -> CheckpointTuple:
        place = snapshot.place
        kept = self._threads.values(snapshot, near)
        values = {name: self._unpack(part, place, f"channels.{name}") for name, part in kept.items()}
        state = self._mapping(snapshot.state, place, "state")
        checkpoint = {**state, "channel_versions": dict(snapshot.versions), "channel_values": values}
        return CheckpointTuple(
            config=_config(place, thread),
            checkpoint=cast(Checkpoint, checkpoint),
            metadata=cast(CheckpointMetadata, self._mapping(snapshot.metadata, place, "metadata")),
            parent_config=_config(place._replace(id=snapshot.parent), thread) if snapshot.parent else None,
            pending_writes=self._pending(place),
        )

    def _pending(self, place: Place, channels: Collection[str] | None = None) -> Pending:
        rows = [(one, write) for one in self._threads.writes(place) for write in one.writes]
        rows.sort(key=lambda row: writes_sort_key(row[0].path, row[0].task, row[1].number))
        return [
            (one.task, write.channel, self._unpack(write.kept, place, f"writes.{write.channel}"))
            for one, write in rows
            if channels is None or write.channel in channels
        ]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What was written to channels that are kept as changes, back to the last checkpoint that holds each whole."""
        if not channels:
            return {}
        place = self._asked(config)
        found: dict[str, Pending] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        near: Near = {}
        for snapshot in self._ancestors(place):
            open_now = [channel for channel in channels if channel not in seeds]
            if not open_now:
                break
            for write in reversed(self._pending(snapshot.place, open_now)):
                found[write[1]].append(write)
            held = self._threads.values(snapshot, near)
            for channel in held.keys() & open_now:
                seeds[channel] = self._unpack(held[channel], snapshot.place, f"channels.{channel}")
        return {
            channel: cast(
                DeltaChannelHistory,
                {"writes": found[channel][::-1], **({"seed": seeds[channel]} if channel in seeds else {})},
            )
            for channel in channels
        }

    def _ancestors(self, place: Place | None) -> Iterator[Snapshot]:
        """The checkpoints before one, the nearest first."""
        seen: set[str] = set()
        snapshot = self._threads.load(place) if place is not None else None
        while snapshot is not None and snapshot.parent and snapshot.parent not in seen:
            seen.add(snapshot.parent)
            snapshot = self._threads.load(snapshot.place._replace(id=snapshot.parent))
            if snapshot is not None:
                yield snapshot

    # -- writing --------------------------------------------------------------------------------------------------
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; on return it survives kill -9 and power loss.

        Args:
            config: thread, namespace, and the id of the checkpoint before it.
            new_versions: the channels that changed since that one; the values of others are not written again.

        Returns:
            The config that names the checkpoint.

        Raises:
            SecretDetected: a value looks like a secret; with its field and what can be done. Nothing was written.
            ContentError, StorageIO: nothing was written.
        """
        made, values = self._snapshot(config, checkpoint, metadata), checkpoint["channel_values"]

        def value_of(channel: str) -> Kept | None:
            return self._pack(values[channel]) if channel in values else None

        self._threads.save(made, new_versions.keys(), value_of, self._reason)
        return _config(made.place, config["configurable"]["thread_id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote; what it wrote before stays, but for errors, interrupts and resumes.

        Raises:
            SecretDetected, ContentError, StorageIO: as ``put``.
        """
        given = config["configurable"]
        place = Place(str(given["thread_id"]), given.get("checkpoint_ns", ""), given["checkpoint_id"])
        rows = {
            (index := WRITES_IDX_MAP.get(channel, at)): Write(index, channel, self._pack(value))
            for at, (channel, value) in enumerate(writes)
        }
        made = TaskWrites(place=place, task=task_id, path=task_path, writes=tuple(rows.values()))
        self._threads.add_writes(made, self._reason)

    # -- removing and copying -------------------------------------------------------------------------------------
    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread with its subgraphs and writes; git's history keeps it (``memfs erase`` does not)."""
        self.workspace.states.thread_tidier.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of these runs with their writes, in all threads; those that stay keep their values.

        A channel that is kept as changes (``DeltaChannel``) loses those of the removed steps.
        """
        wanted = {str(run) for run in run_ids}
        if wanted:
            found = [place for place in self._threads.places() if self._run_of(place) in wanted]
            self.workspace.states.thread_tidier.remove(found)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all of a thread to another name; what that has of its own stays."""
        self.workspace.states.thread_tidier.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove the checkpoints of these threads: all (``delete``), or all but the newest of each namespace
        (``keep_latest``) and those from which its channels that are kept as changes are made.

        Raises:
            QueryInvalid: there is no such strategy.
        """
        if strategy not in _STRATEGIES:
            raise QueryInvalid(
                f"{strategy!r} is no strategy", field="strategy", hint=f"one of {', '.join(_STRATEGIES)}"
            )
        tidier = self.workspace.states.thread_tidier
        for thread in dict.fromkeys(map(str, thread_ids)):
            if strategy == "delete":
                tidier.delete(thread)
            else:
                tidier.keep_latest(thread, self._made_from_changes)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after ``current``: whole numbers, or texts where a thread came from a saver that uses those."""
        del channel
        if isinstance(current, str):
            return f"{int(current.partition('.')[0]) + 1:032}.0"
        return 1 if current is None else int(current) + 1

    # -- internal -------------------------------------------------------------------------------------------------
    def _asked(self, config: RunnableConfig) -> Place | None:
        """The checkpoint a config means."""
        given = config["configurable"]
        thread, namespace = str(given["thread_id"]), given.get("checkpoint_ns", "")
        named = get_checkpoint_id(config)
        return Place(thread, namespace, named) if named else self._threads.latest(thread, namespace)

    def _snapshot(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> Snapshot:
        """A checkpoint as it is kept, without the channels."""
        given = config["configurable"]
        told = get_checkpoint_metadata(config, metadata)
        step = told.get("step")
        return Snapshot(
            place=Place(str(given["thread_id"]), given.get("checkpoint_ns", ""), checkpoint["id"]),
            parent=given.get("checkpoint_id") or None,
            metadata=self._pack(told),
            state=self._pack({key: part for key, part in checkpoint.items() if key not in _KEPT_APART}),
            versions=dict(checkpoint["channel_versions"]),
            channels={},
            source=str(told.get("source", "")),
            step=step if type(step) is int else None,
        )

    def _made_from_changes(self, snapshot: Snapshot) -> Collection[str]:
        """The channels that LangGraph keeps as changes, and that changed since they were last kept whole."""
        counters = self._mapping(snapshot.metadata, snapshot.place, "metadata").get(_COUNTERS)
        return counters if isinstance(counters, dict) else ()

    def _mapping(self, kept: Kept, place: Place, field: str) -> dict[str, Any]:
        """What must be a mapping, whoever edited the file."""
        found = self._unpack(kept, place, field)
        if not isinstance(found, dict):
            hint = "bring the file back from git"
            raise ContentError("not what a graph keeps there", path=snapshot_path(place), field=field, hint=hint)
        return found

    def _run_of(self, place: Place) -> str | None:
        snapshot = self._threads.load(place)
        run = self._mapping(snapshot.metadata, place, "metadata").get("run_id") if snapshot is not None else None
        return None if run is None else str(run)

    def _pack(self, value: Any) -> Kept:
        kept = pack(self.serde, value)
        if self.serde is self._usual:
            self._types.note(types_in(kept))
        return kept

    def _unpack(self, kept: Kept, place: Place, field: str) -> Any:
        try:
            serde = self._types.serde_for(types_in(kept)) if self.serde is self._usual else self.serde
            return unpack(serde, kept)
        except ContentError as error:
            error.path, error.field = snapshot_path(place), field
            raise


def _config(place: Place, thread: Any) -> RunnableConfig:
    """The config that names a checkpoint; the thread as the caller wrote it."""
    given = {"thread_id": place.thread if thread is None else thread, "checkpoint_ns": place.namespace}
    return {"configurable": {**given, "checkpoint_id": place.id}}
