"""Threads: the checkpoints of an agent graph and the writes of its tasks, as values and as state documents.

Each shape converts to the content of its file and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import SchemaInvalid

Kept = Mapping[str, Any]
"""A value as a document holds it: ``value``; or ``type`` and ``base64``; or ``kept_in``, an earlier checkpoint."""

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
        channels: the value of each channel that has one; of one that did not change since, where it is kept.
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
        said = {name: values[name] for name in _SNAPSHOT if name in values}
        return cls(place=_place(values), allowed=values.get(ALLOWED, ""), **said)

    def home_of(self, channel: str) -> str | None:
        """The id of the checkpoint that holds a channel's value, None where the channel has none."""
        kept = self.channels.get(channel)
        return None if kept is None else kept.get(KEPT_IN, self.place.id)


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
        return cls(
            place=_place(values),
            task=values["task"],
            path=values.get("path", ""),
            writes=tuple(_write(row) for row in values["writes"]),
            written=values["written"],
            allowed=values.get(ALLOWED, ""),
        )


def _head(place: ThreadPlace) -> dict[str, Any]:
    return {"thread": place.thread, "namespace": place.namespace, "checkpoint": place.id}


def _place(values: Mapping[str, Any]) -> ThreadPlace:
    return ThreadPlace(values["thread"], values["namespace"], values["checkpoint"])


def _reason(reason: str) -> dict[str, str]:
    return {ALLOWED: reason} if reason else {}


def _write(row: Mapping[str, Any]) -> Write:
    kept = {key: value for key, value in row.items() if key not in ("index", "channel")}
    if KEPT_IN in kept:
        raise SchemaInvalid("a write holds its own value", field=f"writes.{KEPT_IN}", hint="write 'value'")
    return Write(row["index"], row["channel"], kept)
