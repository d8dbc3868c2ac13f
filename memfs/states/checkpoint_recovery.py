"""Recovery: what a checkpoint tells whoever goes on from it (S7).

Owns how the answer is put together from what the checkpoint has noted and the documents it points at. The checkpoint
was proved by the caller; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memfs.errors import ContentError
from memfs.files import jsontext
from memfs.model.states import RecoveryState
from memfs.states.checkpoint_manifest import Manifest, invalid
from memfs.states.checkpoint_points import METADATA, TASKS, at, moment_of, said_in
from memfs.states.checkpoint_reading import Proved, fetch, filled
from memfs.states.checkpoint_restoring import KNOWN
from memfs.states.checkpoint_tasks import owners
from memfs.store.parts import READ_LIMIT


def recovered(
    payload: Path, manifest: Manifest, proved: Proved, components: Sequence[str] | None, rejected: Mapping[str, str]
) -> RecoveryState:
    """The answer to ``recover``.

    Args:
        components: those asked for, None for all.
        rejected: newer checkpoints that cannot be used, and why.

    Raises:
        CheckpointInvalid: a document it points at is not as it should be.
    """
    summary = proved.summary
    update = _update(payload, manifest, proved)
    tasks, metadata = _checkpoint_data(payload, manifest, proved, update)
    found = _resume_points(metadata, _agent_states(payload, manifest, proved, components))
    completed = dict(summary["completed_work"])
    by_state = at(update, ("system_statistics", "hypotheses_by_state"))
    if isinstance(by_state, Mapping) and by_state:
        completed["hypotheses_by_state"] = dict(by_state)
    return RecoveryState(
        checkpoint_timestamp=manifest.timestamp,
        system_configuration=summary["system_configuration"],
        active_tasks=tuple(_chosen_tasks(tasks, components)),
        completed_work=completed,
        resume_points=found if components is None else {name: found[name] for name in components if name in found},
        data_integrity={
            "verified": True,
            "checkpoint_id": manifest.id,
            "sha256": manifest.payload_sha256,
            "files": manifest.files,
            "bytes": manifest.bytes,
            "rejected": dict(rejected),
            "warnings": _warnings(manifest, components, found, proved, rejected),
        },
        checkpoint_id=manifest.id,
    )


def _update(payload: Path, manifest: Manifest, proved: Proved) -> Mapping[str, Any]:
    """The state update that counts, its sidecars filled in."""
    noted = proved.summary["update"]
    path, values = noted.get("path", ""), noted.get("values")
    if values is None and path:
        values = _document(payload, manifest, proved, path)
    return filled(payload, manifest, proved, values or {}, path) if path else values or {}


def _checkpoint_data(
    payload: Path, manifest: Manifest, proved: Proved, update: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The tasks in flight, and the metadata by component: what was said last of each."""
    tasks: list[Any] = []
    metadata: dict[str, Any] = {}
    for said in proved.summary.get("checkpoint_data") or _in_one_update(update):
        where, path = tuple(said["field"]), said["path"]
        value = said["value"] if "value" in said else at(_document(payload, manifest, proved, path), where)
        value = filled(payload, manifest, proved, value, path) if path else value
        if where == TASKS:
            tasks = value if isinstance(value, list) else []
        elif where != METADATA:
            metadata[where[-1]] = value
        elif isinstance(value, Mapping):
            metadata |= value
    done = proved.summary.get("finished", ())
    return [task for place, task in enumerate(tasks) if place not in done], metadata


def told_at(proved: Proved, manifest: Manifest) -> datetime:
    """The time of the update that names the tasks in flight; of the checkpoint, where one was given to it."""
    paths = (said["path"] for said in proved.summary.get("checkpoint_data", ()) if tuple(said["field"]) == TASKS)
    return moment_of(next(paths, "")) or manifest.timestamp


def _in_one_update(update: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The latest update alone counts in a checkpoint that did not gather what was said before it."""
    return [one.facts() for one in said_in("", update)]


def _agent_states(
    payload: Path, manifest: Manifest, proved: Proved, components: Sequence[str] | None
) -> dict[str, Any]:
    states = {}
    for agent, noted in proved.summary["agents"].items():
        if components is not None and agent not in components:
            continue
        state = noted.get("state")
        if "state" not in noted:
            state = at(_document(payload, manifest, proved, noted["path"]), noted["field"])
        states[agent] = filled(payload, manifest, proved, state, noted["path"])
    return states


def _document(payload: Path, manifest: Manifest, proved: Proved, path: str) -> Mapping[str, Any]:
    data = fetch(payload, manifest, proved, [path], READ_LIMIT)[path]
    try:
        found = jsontext.load(data.decode("utf-8"))
    except (ContentError, UnicodeDecodeError) as error:
        raise invalid(manifest.id, f"the document {path!a} in it cannot be read") from error
    return found if isinstance(found, Mapping) else {}


def _resume_points(metadata: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
    """By component: what the supervisor recorded, and where each agent stood; what both tell of one is joined."""
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
    manifest: Manifest,
    components: Sequence[str] | None,
    points: Mapping[str, Any],
    proved: Proved,
    rejected: Mapping[str, str],
) -> list[str]:
    said = [f"{_newer(len(rejected))} cannot be used: {', '.join(rejected)}"] if rejected else []
    known = {*KNOWN, *points, *proved.summary["completed_work"].get("outputs_by_agent", {})}
    said += [f"the checkpoint knows no component {name!r}" for name in components or () if name not in known]
    if not proved.summary["update"]:
        said.append("it holds no state update, so that no task is known to be under way")
    return [*said, *(f"left out: {row}" for row in manifest.left_out)]


def _newer(number: int) -> str:
    return "a newer checkpoint" if number == 1 else f"{number} newer checkpoints"
