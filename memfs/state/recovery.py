"""Recover from a checkpoint: what to go on from, and its documents brought back.

The answer is put together from what the checkpoint noted and the documents it points at; the caller has verified it.
Components can be restored each by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memfs.errors import Conflict, ContentError
from memfs.format import json_text
from memfs.fs.archive import batches, digest_of, file_chunks
from memfs.model.state_documents import RecoveryState
from memfs.model.state_paths import (
    agent_of,
    below_iteration,
    decode_name,
    document_kind,
    document_of_sidecar,
    iteration_of,
)
from memfs.state.archives import Archives
from memfs.state.checkpoint_payload import ProvedCheckpoint, fetch, filled, invalid
from memfs.state.recovery_points import METADATA, TASKS, at, moment_of, object_in, owners, said_in
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.plan import FilePlan

_BATCH_BYTES = 32 << 20
_BATCH_FILES = 100_000
_COMPONENTS = {
    "system_state": "system",
    "state_update": "system",
    "hypothesis": "hypotheses",
    "hypothesis_version": "hypotheses",
    "tournament_result": "tournament",
    "meta_review": "feedback",
    "feedback": "feedback",
    "aggregate": "aggregates",
}
KNOWN = ("system", "hypotheses", "tournament", "feedback", "configuration", "context", "aggregates")


def components_of(path: str, data: bytes = b"") -> set[str]:
    """The components that a document belongs to: agents by name, and parts of the system.

    Args:
        data: its bytes; a continuation token's document names its agent only inside.
    """
    path = document_of_sidecar(path) or path
    kind = document_kind(path)
    found = {_COMPONENTS[kind]} if kind in _COMPONENTS else set()
    if kind == "agent_output":
        found.add(agent_of(path))
    elif kind == "feedback":
        found.add(decode_name(below_iteration(path).partition("/")[2].removesuffix(".json")))
    elif kind == "continuation":
        found.add(str(object_in(data).get("agent", "")))
    elif iteration_of(path) is None and not kind:
        found.add(path.removeprefix(f"{CONTENT}/").partition("/")[0])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorer:
    """Brings documents of one proved checkpoint back.

    Attributes:
        archives: a document that is not in the tree but in one of them is not missing.
    """

    store: Store
    parts: Parts
    proved: ProvedCheckpoint
    archives: Archives

    def differing(self, components: Collection[str] | None) -> list[str]:
        """The documents that are missing or differ, of the components named or of all."""
        return sorted(path for path, _ in self._differing(components))

    def restore(self, components: Collection[str] | None) -> list[str]:
        """Bring them back: one batch while they weigh less than 32 MB, otherwise several, each of them whole.

        Returns:
            What was brought back.

        Raises:
            Conflict: a file changed meanwhile, or holds an edit by hand that may not be replaced.
            StorageIO, CheckpointInvalid: what came back before stays; asked again, the rest follows.
        """
        self.store.flush()  # what is replaced has its place in history
        restored = []
        for path, content in self._differing(components, large=True):
            # Sidecars first: a document never refers to one that is not there.
            self.parts.tree.write_stream(path, content)
            restored.append(path)
        message = f"Restore from checkpoint {self.proved.checkpoint.id}"
        for plans in batches(self._plans(components), _weight, _BATCH_BYTES, _BATCH_FILES):
            self.store.carry_out(plans, message, source="checkpoint", critical=True)
            restored += [plan.path for plan in plans]
        return sorted(restored)

    def _plans(self, components: Collection[str] | None) -> Iterator[FilePlan]:
        for path, content in self._differing(components, large=False):
            yield from self.store.plan_restore({path: b"".join(content)})

    def _differing(
        self, components: Collection[str] | None, large: bool | None = None
    ) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Documents with their bytes in pieces.

        Args:
            large: only sidecars and what is too large for a document, or only documents; None for both.
        """
        names = set(components) if components is not None else None
        with self.proved.documents() as documents:
            for path, size, chunks in documents:
                if large is not None and large != (bool(document_of_sidecar(path)) or size > READ_LIMIT):
                    continue
                content: Iterable[bytes] = [b"".join(chunks)] if size <= READ_LIMIT else chunks
                known = next(iter(content)) if size <= READ_LIMIT else b""
                if self._is_wanted(path, names, known) and not self._is_there(path):
                    yield path, content

    def _is_wanted(self, path: str, names: set[str] | None, data: bytes) -> bool:
        return names is None or not names.isdisjoint(components_of(path, data))

    def _is_there(self, path: str) -> bool:
        """Whether a file is as the checkpoint has it, or in an archive."""
        entry = self.parts.seen.entry(path)
        if entry is None:
            return bool(self.archives.period_of(path))
        if not entry.regular:
            raise Conflict("something else stands in its place", path=path, hint="move it away and try again")
        with suppress(FileNotFoundError):
            small = entry.size <= READ_LIMIT
            found = [self.parts.seen.read(path, READ_LIMIT).data] if small else file_chunks(self.parts.tree, path)
            return digest_of(found)[1] == self.proved.sums[path]
        return False


def _weight(plan: FilePlan) -> int:
    return len(plan.before or b"") + len(plan.after or b"")


def recovered(proved: ProvedCheckpoint, components: Sequence[str] | None, rejected: Mapping[str, str]) -> RecoveryState:
    """The answer to ``recover``.

    Args:
        components: those asked for, None for all.
        rejected: newer checkpoints that cannot be used, and why.

    Raises:
        CheckpointInvalid: a document it points at is not as it should be.
    """
    summary, checkpoint = proved.summary, proved.checkpoint
    update = _update(proved)
    tasks, metadata = _checkpoint_data(proved, update)
    found = _resume_points(metadata, _agent_states(proved, components))
    completed = dict(summary["completed_work"])
    by_state = at(update, ("system_statistics", "hypotheses_by_state"))
    if isinstance(by_state, Mapping) and by_state:
        completed["hypotheses_by_state"] = dict(by_state)
    return RecoveryState(
        checkpoint_timestamp=checkpoint.timestamp,
        system_configuration=summary["system_configuration"],
        active_tasks=tuple(_chosen_tasks(tasks, components)),
        completed_work=completed,
        resume_points=found if components is None else {name: found[name] for name in components if name in found},
        data_integrity={
            "verified": True,
            "checkpoint_id": checkpoint.id,
            "sha256": checkpoint.sha256,
            "files": checkpoint.files,
            "bytes": checkpoint.bytes,
            "rejected": dict(rejected),
            "warnings": _warnings(proved, components, found, rejected),
        },
        checkpoint_id=checkpoint.id,
    )


def _update(proved: ProvedCheckpoint) -> Mapping[str, Any]:
    """The state update that counts, its sidecars filled in."""
    noted = proved.summary["update"]
    path, values = noted.get("path", ""), noted.get("values")
    if values is None and path:
        values = _document(proved, path)
    return filled(proved, values or {}, path) if path else values or {}


def _checkpoint_data(proved: ProvedCheckpoint, update: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The tasks in flight, and the metadata by component: what was said last of each."""
    tasks: list[Any] = []
    metadata: dict[str, Any] = {}
    for said in proved.summary.get("checkpoint_data") or _in_one_update(update):
        where, path = tuple(said["field"]), said["path"]
        value = said["value"] if "value" in said else at(_document(proved, path), where)
        value = filled(proved, value, path) if path else value
        if where == TASKS:
            tasks = value if isinstance(value, list) else []
        elif where != METADATA:
            metadata[where[-1]] = value
        elif isinstance(value, Mapping):
            metadata |= value
    done = proved.summary.get("finished", ())
    return [task for place, task in enumerate(tasks) if place not in done], metadata


def told_at(proved: ProvedCheckpoint) -> datetime:
    """The time of the update that names the tasks in flight; of the checkpoint, where one was given to it."""
    paths = (said["path"] for said in proved.summary.get("checkpoint_data", ()) if tuple(said["field"]) == TASKS)
    return moment_of(next(paths, "")) or proved.checkpoint.timestamp


def _in_one_update(update: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The latest update alone counts in a checkpoint that did not gather what was said before it."""
    return [one.facts() for one in said_in("", update)]


def _agent_states(proved: ProvedCheckpoint, components: Sequence[str] | None) -> dict[str, Any]:
    states = {}
    for agent, noted in proved.summary["agents"].items():
        if components is not None and agent not in components:
            continue
        state = noted.get("state")
        if "state" not in noted:
            state = at(_document(proved, noted["path"]), noted["field"])
        states[agent] = filled(proved, state, noted["path"])
    return states


def _document(proved: ProvedCheckpoint, path: str) -> Mapping[str, Any]:
    data = fetch(proved, [path], READ_LIMIT)[path]
    try:
        found = json_text.load(data.decode("utf-8"))
    except (ContentError, UnicodeDecodeError) as error:
        raise invalid(proved.checkpoint.id, f"the document {path!a} in it cannot be read") from error
    return found if isinstance(found, Mapping) else {}


def _resume_points(metadata: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
    """By component: what the supervisor recorded, and where each agent was; what both say of one is joined."""
    points = {component: value for component, value in metadata.items() if value is not None}
    for agent, state in states.items():
        recorded = points.get(agent)
        if agent not in points:
            points[agent] = state
        elif isinstance(recorded, Mapping) and isinstance(state, Mapping):
            points[agent] = {**state, **recorded}
        else:
            points[agent] = {"recovery_metadata": recorded, "internal_state": state}
    return points


def _chosen_tasks(tasks: Sequence[Any], components: Sequence[str] | None) -> list[Any]:
    """The tasks of the components asked for; one that does not say whose it is belongs to each."""
    if components is None:
        return list(tasks)
    return [task for task in tasks if not (own := owners(task)) or not own.isdisjoint(components)]


def _warnings(
    proved: ProvedCheckpoint,
    components: Sequence[str] | None,
    points: Mapping[str, Any],
    rejected: Mapping[str, str],
) -> list[str]:
    said = [f"{_newer(len(rejected))} cannot be used: {', '.join(rejected)}"] if rejected else []
    known = {*KNOWN, *points, *proved.summary["completed_work"].get("outputs_by_agent", {})}
    said += [f"the checkpoint knows no component {name!r}" for name in components or () if name not in known]
    if not proved.summary["update"]:
        said.append("it holds no state update, so that no task is known to be under way")
    return [*said, *(f"left out: {row}" for row in proved.checkpoint.left_out)]


def _newer(number: int) -> str:
    return "a newer checkpoint" if number == 1 else f"{number} newer checkpoints"
