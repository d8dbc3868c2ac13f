"""LangGraph's checkpoints, kept in a workspace.

Configs, tuples, order and filters are as ``BaseCheckpointSaver`` promises, also from asynchronous code. A value is
unpacked as it was packed; only types that this user's graphs saved are brought to life.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from itertools import islice
from typing import Any, TypeVar, cast

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)

from memfs.dataclass import NamedTuple
from memfs.errors import ContentError, MemfsError
from memfs.facades.open_workspaces import Closable, Facade
from memfs.format.plain import MAX_DEPTH, MAX_INT, MAX_KEY, hidden
from memfs.fs import io
from memfs.state.threads import Kept, TaskWrites, ThreadPlace, Threads, ThreadSnapshot, Write, snapshot_path
from memfs.trust import list_path
from memfs.workspace import Workspace

_AT_ONCE = 20
_Some = TypeVar("_Some")


def _on_thread(method: Callable[..., _Some]) -> Any:
    """A method for an event loop, which runs on meanwhile; it raises what the method raises."""

    @wraps(method)
    async def run(self: Any, *arguments: Any, **named: Any) -> _Some:
        return await asyncio.to_thread(method, self, *arguments, **named)

    return run


_MSGPACK = "msgpack"
_EXT, _OF, _BYTES, _PAIRS, _FLOAT = "$object", "of", "$bytes", "$pairs", "$number"
_WIDTH = MAX_DEPTH - 12  # a document's own nesting, and the marks
_OPTION = ormsgpack.OPT_NON_STR_KEYS
_OF_A_CLASS = (
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
)


def pack(serde: SerializerProtocol, value: Any) -> Kept:
    """A value as a document holds it: ``{"value": ...}``, or ``{"type": ..., "base64": ...}``.

    Raises:
        TypeError and others: what the serializer raises over a value that it cannot take.
    """
    kind, data = serde.dumps_typed(value)
    if type(serde) is JsonPlusSerializer:
        if kind == "null":
            return {"value": None}
        if kind == _MSGPACK:
            with suppress(_UnreadableError, TypeError, ValueError, RecursionError):
                readable = _marked(_unpacked(data), 0)
                if not any(True for _ in hidden({"value": readable})) and _packed(readable) == data:
                    return {"value": readable}
    return {"type": kind, "base64": base64.b64encode(data).decode("ascii")}


def unpack(serde: SerializerProtocol, kept: Kept) -> Any:
    """The value that was packed.

    Raises:
        ContentError: somebody changed it into what is none; or this serializer, with this key, cannot read it.
    """
    try:
        return serde.loads_typed(_typed(kept))
    except (ValueError, TypeError, NotImplementedError, RecursionError) as error:
        hint = "read it with the serializer and the key that wrote it, or bring the file back from git"
        raise ContentError(f"the serializer cannot read the value: {error}", hint=hint) from error


def _typed(kept: Kept) -> tuple[str, bytes]:
    """What the serializer made of a value: the sort of the bytes, and the bytes.

    Raises:
        ContentError: somebody changed it into what is no value.
    """
    try:
        if "value" in kept:
            return _MSGPACK, _packed(kept["value"])
        return kept.get("type", ""), base64.b64decode(kept["base64"], validate=True)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ContentError(f"not a value of a graph: {error}", hint="bring the file back from git") from error


def types_in(kept: Kept) -> set[tuple[str, str]]:
    """The classes, by module and name, that a value would bring to life when it is unpacked.

    Raises:
        ContentError: somebody changed it into what is no value.
    """
    found: set[tuple[str, str]] = set()
    kind, data = _typed(kept)

    def hook(tag: int, inner: bytes) -> None:
        """Note the class of an object: such a one is made of a module, a name, and the rest."""
        with suppress(ormsgpack.MsgpackDecodeError):  # unpacking it says so
            made_of = ormsgpack.unpackb(inner, ext_hook=hook, option=_OPTION)
            if tag in _OF_A_CLASS and isinstance(made_of, list) and len(made_of) > len(("module", "name")):
                module, name = made_of[:2]
                if isinstance(module, str) and isinstance(name, str):
                    found.add((module, name))

    if kind == _MSGPACK:
        with suppress(ormsgpack.MsgpackDecodeError):
            ormsgpack.unpackb(data, ext_hook=hook, option=_OPTION)
    return found


# -- MessagePack as JSON ------------------------------------------------------------------------------------------
class _Object(NamedTuple):
    """What MessagePack leaves to the framework: a number that says how it is made, and of what."""

    tag: int
    data: bytes


class _UnreadableError(Exception):
    """JSON cannot hold the value so that the same bytes come back."""


def _unpacked(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_Object, option=_OPTION)


def _marked(value: Any, depth: int) -> Any:
    """A value of MessagePack as one of JSON."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value <= MAX_INT else {_FLOAT: str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if depth > _WIDTH:
        raise _UnreadableError
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, _Object):  # with what it is made of; where that is no MessagePack, with its bytes
        try:
            return {_EXT: value.tag, _OF: _marked(_unpacked(value.data), depth + 1)}
        except ormsgpack.MsgpackDecodeError:
            return {_EXT: value.tag, _BYTES: base64.b64encode(value.data).decode("ascii")}
    if isinstance(value, (list, tuple)):  # a tuple is part of a key
        return [_marked(part, depth + 1) for part in value]
    if isinstance(value, dict):
        return _marked_mapping(value, depth)
    raise _UnreadableError


def _marked_mapping(value: Mapping[Any, Any], depth: int) -> Any:
    if all(isinstance(key, str) and 0 < len(key) <= MAX_KEY and not key.startswith("$") for key in value):
        return {key: _marked(part, depth + 1) for key, part in value.items()}
    return {_PAIRS: [[_marked(key, depth + 3), _marked(part, depth + 3)] for key, part in value.items()]}


def _packed(readable: Any) -> bytes:
    """The bytes that a readable value represents."""
    return ormsgpack.packb(_unmarked(readable), option=_OPTION)


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(part) for part in value]
    if not isinstance(value, dict):
        return value
    if _EXT in value:
        inner = _packed(value[_OF]) if _OF in value else base64.b64decode(value[_BYTES], validate=True)
        return ormsgpack.Ext(value[_EXT], inner)
    if _BYTES in value:
        return base64.b64decode(value[_BYTES], validate=True)
    if _PAIRS in value:
        return {_hashable(_unmarked(key)): _unmarked(part) for key, part in value[_PAIRS]}
    if _FLOAT in value:
        text = value[_FLOAT]
        return int(text) if str(text).isdecimal() else float(text)
    return {key: _unmarked(part) for key, part in value.items()}


def _hashable(key: Any) -> Any:
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key


FILE = "langgraph-types.txt"
_MOST = 1 << 20
_LONGEST = 500
Name = tuple[str, str]
"""A module, and the name of a class in it."""

SAFE: frozenset[Name] = frozenset(
    [(one[0], one[1]) for one in SAFE_MSGPACK_TYPES] + [(one[0], one[1]) for one in SAFE_MSGPACK_METHODS]
)


class KnownTypes:
    """The types that this user's graphs have saved. May be used from several threads and processes."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._names: frozenset[Name] = frozenset()
        self._serde = JsonPlusSerializer(allowed_msgpack_modules=None)

    def note(self, names: Collection[Name]) -> None:
        """Remember types that a graph is about to save; a list that cannot be written counts for this process alone."""
        fresh = sorted(name for name in names if not self._knows(name))
        if not fresh:
            return
        lines = "".join(f"{module} {name}\n" for module, name in fresh if _is_intact(module, name))
        with suppress(MemfsError, OSError):
            path = list_path().parent / FILE
            io.make_private_folder(path.parent)
            with io.descriptor(io.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)) as fd:
                io.write_all(fd, f"\n{lines}".encode(), str(path))  # the line before may have been cut
                io.fdatasync(fd, str(path))
            io.sync_folder(path.parent)
        self._learn(frozenset(fresh))

    def serde_for(self, names: Collection[Name]) -> JsonPlusSerializer:
        """What brings values of these types to life.

        Raises:
            ContentError: one of them was never saved by this user; with how to allow it.
        """
        strange = [name for name in names if not self._knows(name)]
        if strange:
            self._learn(self._read())
            strange = [name for name in strange if not self._knows(name)]
        for module, name in strange:
            raise ContentError(
                f"the checkpoint holds an object of {module[:_LONGEST]}.{name[:_LONGEST]}, "
                "which no graph of this user has saved",
                hint="if you trust where the file comes from: MemfsSaver(path, serde=JsonPlusSerializer("
                f"allowed_msgpack_modules=[({module[:_LONGEST]!r}, {name[:_LONGEST]!r})]))",
            )
        return self._serde

    # -- internal -----------------------------------------------------------------------------------------------
    def _knows(self, name: Name) -> bool:
        return name in SAFE or name in self._names

    def _learn(self, names: frozenset[Name]) -> None:
        with self._guard:
            if names <= self._names:
                return
            self._names |= names
            self._serde = JsonPlusSerializer(allowed_msgpack_modules=tuple(self._names))

    def _read(self) -> frozenset[Name]:
        with suppress(MemfsError, OSError):
            data = io.read_file(list_path().parent / FILE, _MOST)
            rows = (line.partition(" ") for line in data.decode("utf-8", "replace").splitlines())
            return frozenset((module, name) for module, _, name in rows if module and _is_intact(module, name))
        return frozenset()


def _is_intact(module: str, name: str) -> bool:
    return all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


_KEPT_APART = ("channel_values", "channel_versions")
Near = dict[ThreadPlace, ThreadSnapshot]


class MemfsSaver(Closable, BaseCheckpointSaver[Any]):
    """Keeps the checkpoints of LangGraph's graphs as files in git. Threads, tasks and processes may share one.

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

    @property
    def _threads(self) -> Threads:
        return self.workspace.states.threads

    # -- reading --------------------------------------------------------------------------------------------------
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, the newest of its thread and namespace where it names none.

        Raises:
            ContentError: its file, or one that holds a value of it, is invalid or gone; with path and remedy.
        """
        given, named = config["configurable"], get_checkpoint_id(config)
        thread, namespace = str(given["thread_id"]), given.get("checkpoint_ns", "")
        newest = iter([] if named else self._threads.places(thread, namespace))
        place = ThreadPlace(thread, namespace, named) if named else next(newest, None)
        snapshot = self._threads.load(place) if place is not None else None
        return self._tuple(snapshot, given["thread_id"], {}) if snapshot is not None else None

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
            limit: the most checkpoints.

        Raises:
            ContentError: as ``get_tuple``.
        """
        given = config["configurable"] if config else {}
        thread, namespace, only = given.get("thread_id"), given.get("checkpoint_ns"), given.get("checkpoint_id")
        newer, near, left = get_checkpoint_id(before) if before else None, Near(), math.inf if limit is None else limit
        for place in self._threads.places(None if thread is None else str(thread), namespace):
            if left <= 0:
                return
            if (only and place.id != only) or (newer and place.id >= newer):
                continue
            snapshot = near.get(place) or self._threads.load(place)
            if snapshot is None:  # removed meanwhile
                continue
            if filter:
                metadata = self._mapping(snapshot.metadata, place, "metadata")
                if any(metadata.get(key) != value for key, value in filter.items()):
                    continue
            left -= 1
            yield self._tuple(snapshot, thread, near)

    def _tuple(self, snapshot: ThreadSnapshot, thread: Any, near: Near) -> CheckpointTuple:
        place = snapshot.place
        kept = self._threads.values(snapshot, near)
        values = {name: self._unpack(part, place, f"channels.{name}") for name, part in kept.items()}
        state = self._mapping(snapshot.state, place, "state")
        rows = [(one, write) for one in self._threads.writes(place) for write in one.writes]
        rows.sort(key=lambda row: writes_sort_key(row[0].path, row[0].task, row[1].number))
        checkpoint = {**state, "channel_versions": dict(snapshot.versions), "channel_values": values}
        return CheckpointTuple(
            config=_config(place, thread),
            checkpoint=cast(Checkpoint, checkpoint),
            metadata=cast(CheckpointMetadata, self._mapping(snapshot.metadata, place, "metadata")),
            parent_config=_config(place._replace(id=snapshot.parent), thread) if snapshot.parent else None,
            pending_writes=[
                (one.task, write.channel, self._unpack(write.kept, place, f"writes.{write.channel}"))
                for one, write in rows
            ],
        )

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
            new_versions: counts for nothing, as each checkpoint has all values.

        Returns:
            The config that names the checkpoint.

        Raises:
            SecretDetected: a value looks like a secret; with its field and what can be done. Nothing was written.
            ContentError, StorageIO: nothing was written.
        """
        del new_versions
        given, merged = config["configurable"], get_checkpoint_metadata(config, metadata)
        step, values, versions = merged.get("step"), checkpoint["channel_values"], dict(checkpoint["channel_versions"])
        made = ThreadSnapshot(
            place=ThreadPlace(str(given["thread_id"]), given.get("checkpoint_ns", ""), checkpoint["id"]),
            parent=given.get("checkpoint_id") or None,
            metadata=self._pack(merged),
            state=self._pack({key: part for key, part in checkpoint.items() if key not in _KEPT_APART}),
            versions=versions,
            channels={channel: self._pack(values[channel]) for channel in versions if channel in values},
            source=str(merged.get("source", "")),
            step=step if type(step) is int else None,
        )
        self._threads.save(made, self._reason)
        return _config(made.place, given["thread_id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote; what it wrote before stays, but for errors, interrupts and resumes.

        Raises:
            SecretDetected, ContentError, StorageIO: as ``put``.
        """
        given = config["configurable"]
        place = ThreadPlace(str(given["thread_id"]), given.get("checkpoint_ns", ""), given["checkpoint_id"])
        rows = {
            (index := WRITES_IDX_MAP.get(channel, at)): Write(index, channel, self._pack(value))
            for at, (channel, value) in enumerate(writes)
        }
        made = TaskWrites(place=place, task=task_id, path=task_path, writes=tuple(rows.values()))
        self._threads.add_writes(made, self._reason)

    # -- removing -------------------------------------------------------------------------------------------------
    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread with its subgraphs and writes; git's history keeps it (``memfs admin erase`` does not)."""
        self._threads.delete(str(thread_id))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after ``current``: whole numbers, or texts where a thread came from a saver that uses those."""
        del channel
        if isinstance(current, str):
            return f"{int(current.partition('.')[0]) + 1:032}.0"
        return 1 if current is None else int(current) + 1

    # -- from asynchronous code -----------------------------------------------------------------------------------
    aget_tuple = _on_thread(get_tuple)
    aput = _on_thread(put)
    aput_writes = _on_thread(put_writes)
    adelete_thread = _on_thread(delete_thread)

    async def alist(self, config: RunnableConfig | None, **chosen: Any) -> AsyncIterator[CheckpointTuple]:
        """See ``list``; a few are read at a time."""
        found = self.list(config, **chosen)
        while some := await asyncio.to_thread(lambda: [*islice(found, _AT_ONCE)]):
            for one in some:
                yield one

    # -- internal -------------------------------------------------------------------------------------------------
    def _mapping(self, kept: Kept, place: ThreadPlace, field: str) -> dict[str, Any]:
        """What must be a mapping, however the file was edited."""
        found = self._unpack(kept, place, field)
        if not isinstance(found, dict):
            hint = "bring the file back from git"
            raise ContentError("not what a graph keeps there", path=snapshot_path(place), field=field, hint=hint)
        return found

    def _pack(self, value: Any) -> Kept:
        kept = pack(self.serde, value)
        if self.serde is self._usual:
            self._types.note(types_in(kept))
        return kept

    def _unpack(self, kept: Kept, place: ThreadPlace, field: str) -> Any:
        try:
            serde = self._types.serde_for(types_in(kept)) if self.serde is self._usual else self.serde
            return unpack(serde, kept)
        except ContentError as error:
            error.path, error.field = snapshot_path(place), field
            raise


def _config(place: ThreadPlace, thread: Any) -> RunnableConfig:
    """The config that names a checkpoint; the thread as the caller wrote it."""
    given = {"thread_id": place.thread if thread is None else thread, "checkpoint_ns": place.namespace}
    return {"configurable": {**given, "checkpoint_id": place.id}}
