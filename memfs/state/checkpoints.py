"""Create, list, verify, recover from and prune checkpoints of a multi-agent system's whole state.

A checkpoint is acknowledged once it is durable and verified. Recovery takes the newest that verifies whole, and
pruning keeps at least one that does.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memfs.config import read_retention_policy, read_system_config
from memfs.config_names import SYSTEM_CONFIG
from memfs.dataclass import dataclass, replace
from memfs.errors import CheckpointInvalid, Conflict, LockTimeout, MemfsError, PathEscape, QuotaExceeded, StorageIO
from memfs.fs import io
from memfs.fs.archive import DigestStream, batches, compressed, digest_of, file_chunks
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.executor import Worker
from memfs.fs.tree import View
from memfs.git.remote import configured
from memfs.git.repository import at_a_tip
from memfs.model import state_paths
from memfs.model.shape import plain
from memfs.model.state_documents import RecoveryState, StateUpdate
from memfs.model.state_facts import StateQuery
from memfs.state import checkpoint_store
from memfs.state.checkpoint_store import Checkpoint, CheckpointStore, ProvedCheckpoint, StatePacker
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

if TYPE_CHECKING:
    from memfs.state.reader import StateReader


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
    path = state_paths.document_of_sidecar(path) or path
    kind = state_paths.document_kind(path)
    found = {_COMPONENTS[kind]} if kind in _COMPONENTS else set()
    if kind == "agent_output":
        found.add(state_paths.agent_of(path))
    elif kind == "feedback":
        found.add(state_paths.decode_name(state_paths.below_iteration(path).partition("/")[2].removesuffix(".json")))
    elif kind == "continuation":
        found.add(str(checkpoint_store.object_in(data).get("agent", "")))
    elif state_paths.iteration_of(path) is None and not kind:
        found.add(path.removeprefix(f"{CONTENT}/").partition("/")[0])
    return found


def recovered(proved: ProvedCheckpoint, components: Sequence[str] | None, rejected: Mapping[str, str]) -> RecoveryState:
    """The answer to ``recover``.

    Args:
        components: those asked for, None for all.
        rejected: newer checkpoints that cannot be used, and why.

    Raises:
        CheckpointInvalid: a document it points at is not as it should be.
    """
    summary, checkpoint = proved.summary, proved.checkpoint
    noted = summary["update"]
    path, values = noted.get("path", ""), noted.get("values")
    update = proved.filled((proved.document(path) if values is None and path else values) or {}, path)
    tasks, metadata = _checkpoint_data(proved, update)
    if components is not None:  # a task that does not say whose it is belongs to each
        owned = ((task, checkpoint_store.owners(task)) for task in tasks)
        tasks = [task for task, own in owned if not own or not own.isdisjoint(components)]
    agents = {name: noted for name, noted in summary["agents"].items() if components is None or name in components}
    found = _resume_points(metadata, {name: _value(proved, noted, "state") for name, noted in agents.items()})
    completed = dict(summary["completed_work"])
    by_state = checkpoint_store.value_at(update, ("system_statistics", "hypotheses_by_state"))
    if isinstance(by_state, Mapping) and by_state:
        completed["hypotheses_by_state"] = dict(by_state)
    return RecoveryState(
        checkpoint_timestamp=checkpoint.timestamp,
        system_configuration=summary["system_configuration"],
        active_tasks=tuple(tasks),
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


def _checkpoint_data(proved: ProvedCheckpoint, update: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The tasks in flight, and the metadata by component: what was said last of each."""
    tasks: list[Any] = []
    metadata: dict[str, Any] = {}
    # An older checkpoint has the latest update alone.
    rows = [(tuple(row["field"]), _value(proved, row, "value")) for row in proved.summary.get("checkpoint_data", ())]
    for where, value in rows or checkpoint_store.points_in(update):
        if where == checkpoint_store.TASKS:
            tasks = value if isinstance(value, list) else []
        elif where != checkpoint_store.METADATA:
            metadata[where[-1]] = value
        elif isinstance(value, Mapping):
            metadata |= value
    done = proved.summary.get("finished", ())
    return [task for place, task in enumerate(tasks) if place not in done], metadata


def _value(proved: ProvedCheckpoint, noted: Mapping[str, Any], name: str) -> Any:
    """What a document says of one thing: as it was noted or, where it is large, as the document has it."""
    path = noted["path"]
    return proved.filled(
        noted[name] if name in noted else checkpoint_store.value_at(proved.document(path), noted["field"]), path
    )


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


def _warnings(
    proved: ProvedCheckpoint, components: Sequence[str] | None, points: Mapping[str, Any], rejected: Mapping[str, str]
) -> list[str]:
    newer = "a newer checkpoint" if len(rejected) == 1 else f"{len(rejected)} newer checkpoints"
    warnings = [f"{newer} cannot be used: {', '.join(rejected)}"] if rejected else []
    known = {*KNOWN, *points, *proved.summary["completed_work"].get("outputs_by_agent", {})}
    warnings += [f"the checkpoint knows no component {name!r}" for name in components or () if name not in known]
    if not proved.summary["update"]:
        warnings.append("it holds no state update, so that no task is known to be under way")
    return [*warnings, *(f"left out: {row}" for row in proved.checkpoint.left_out)]


_LATE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStatus:
    """The state of a workspace's checkpoints.

    Attributes:
        last: the newest one's id, None where there is none.
        age: its age in seconds.
        count: how many there are.
        damaged: how many of them have a manifest that cannot be used, or lack their payload.
        due: ``interval`` where one should have been made by now, "" otherwise.
        update_late: seconds since the last state update, where an iteration is open and one should have come; else 0.
    """

    last: str | None = None
    age: int | None = None
    count: int = 0
    damaged: int = 0
    due: str = ""
    update_late: int = 0


_PATIENCE = 600.0
_LEVEL = 3  # how hard a payload is compressed


class Checkpoints(CheckpointStore):
    """The checkpoints of one workspace. May be used from several threads and processes."""

    def __init__(self, store: Store, parts: Parts, reader: StateReader) -> None:
        super().__init__(parts)
        self._store, self._reader = store, reader
        self._given = parts.repository.state / "checkpoint.last"
        self._last: tuple[int, datetime | None] = (-1, None)
        self._worker = Worker("memfs-checkpoints", self.maintain, store.note_failure)

    # -- creating -------------------------------------------------------------------------------------------------
    def create(self, update: StateUpdate | Mapping[str, Any] | None = None, reason: str = "") -> Checkpoint:
        """Capture the whole state of one moment, while others may go on writing.

        On return the checkpoint is durable, read back from the disk and verified; killed before, it does not count.

        Args:
            update: the state update whose ``checkpoint_data`` counts; None means the latest one stored. Storing it is
                the caller's business.
            reason: why, for the manifest; ``update`` or ``asked`` where it is left out.

        Raises:
            StorageIO, LockTimeout: none was made; as ``QuotaExceeded``, there is no room for one.
            CheckpointInvalid: it did not read back as it was written; none was made.
        """
        values = None if update is None else plain(StateUpdate.from_dict(update))
        with self.lock.hold("checkpoint", _PATIENCE):
            made = self._create(values, reason or ("asked" if update is None else "update"))
        self._parts.quota_guard.settle()
        return made

    def _create(self, update: Mapping[str, Any] | None, reason: str) -> Checkpoint:
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            message = "a link or a file where a folder is expected"  # it would lead to another place
            raise PathEscape(message, path=state_paths.CHECKPOINTS, hint="replace it by a folder")
        self._parts.tree.make_folders(state_paths.CHECKPOINTS)
        self._sweep()
        chosen = self._free_id()
        packer = StatePacker(self._store, self._parts, self._reader, update)
        target = self.payload(chosen)
        try:
            with closing(packer.tar()) as state:
                payload = DigestStream(compressed(state, _LEVEL, threads=os.cpu_count() or 1))
                checkpoint_store.write_payload(target, payload)
            made = packer.checkpoint(chosen, reason, payload.digest)
            checkpoint_store.prove(target, made)
            pressed = self._pressed(made)
            # it counts from the commit of its manifest on
            plans = self._store.plan_restore({state_paths.manifest_path(made.id): checkpoint_store.encode(made)})
            message = f"Checkpoint {made.id}: {made.files} documents"
            unvetted = [one._replace(vetted=False) for one in plans]
            self._store.carry_out(unvetted, message, source="checkpoint", critical=True)
            self._store.flush(adopt=False, below=state_paths.STATE_FOLDERS)
        except BaseException:
            with suppress(MemfsError, OSError):
                if not self.exists(chosen):
                    io.remove_all(target.parent)
            raise
        with suppress(MemfsError):  # it is made: what cannot be done now is done after the next one
            self._parts.quota_guard.filled(state_paths.payload_path(chosen), made.payload_bytes)
            surplus = self._surplus(chosen, pressed)
            for checkpoint in surplus:
                self._remove(checkpoint.id)
            if surplus:
                self._store.flush(adopt=False, below=state_paths.STATE_FOLDERS)
        return made

    def _free_id(self) -> str:
        """An id that no checkpoint had before, whatever was removed since; its folder is made."""
        repository, moment = self._parts.repository, self._parts.clock()
        clones = repository.git_dir != repository.common_dir or bool(configured(repository))
        # The note covers those that were removed; without it those that are there say what was given.
        known = {*self.ids(), io.read_note(self._given)}
        while not io.mkdir(self.folder / (chosen := checkpoint_store.next_id(moment, known, among_clones=clones))):
            known.add(chosen)
        with suppress(StorageIO):  # where the disk takes nothing, those that are there say what was given
            io.write_file(self._given, chosen.encode("ascii"))
        return chosen

    def _sweep(self) -> None:
        """Remove what killed processes left: the lock is held, so that no process is at work on it."""
        for name in io.listed(self.folder):
            folder, manifest = self.folder / name, state_paths.manifest_path(name)
            if not checkpoint_store.is_id(name) or self._parts.seen.entry(manifest) is not None:
                continue
            if not folder.is_dir() or folder.is_symlink():
                continue
            if any(held != state_paths.PAYLOAD and not is_temporary(held) for held in os.listdir(folder)):
                continue  # not all of it is memfs's
            if not at_a_tip(self._parts.repository, manifest):  # a branch that is not checked out may have it
                with suppress(MemfsError, OSError):
                    io.remove_all(folder)

    def _pressed(self, made: Checkpoint) -> bool:
        """Whether the area's quota has room for a new checkpoint only without all that ``keep`` does not keep.

        Raises:
            QuotaExceeded: not even then; nothing was made.
        """
        limit = read_system_config(self._parts.tree, self._parts.codec).quotas.bytes.get("checkpoints", 0)
        used = io.weigh(self.folder) if limit else 0
        if used <= limit:
            return False
        used -= sum(io.weigh(self.folder / one.id) for one in self._surplus(made.id, pressed=True))
        if used > limit:
            raise QuotaExceeded(
                f"checkpoints would take {used:,} bytes, their quota is {limit:,}",
                path=SYSTEM_CONFIG,
                field="quotas.checkpoints_bytes",
                hint="raise the quota, or keep fewer: checkpoints.keep in retention_policy.json",
            )
        return True

    # -- what there is --------------------------------------------------------------------------------------------
    def list(self, files: View | None = None) -> list[Checkpoint]:
        """All checkpoints, newest first; one whose manifest is damaged names the problem.

        Args:
            files: those of another time: the checkpoints that there were then, and what is here of them now.
        """
        there = self if files is None else CheckpointStore(self._parts, files)
        return [there.look(one) for one in there.ids()]

    # -- verifying ------------------------------------------------------------------------------------------------
    def verify(self, checkpoint_id: str | None = None) -> Sequence[Checkpoint]:
        """Read whole checkpoints, newest first: all of them, or one. Memory does not grow with their size.

        Raises:
            CheckpointInvalid: there is none of that id.
        """
        if checkpoint_id is not None and not self.exists(checkpoint_id):
            self.manifest(checkpoint_id)
        return [self.look(one, whole=True) for one in ([checkpoint_id] if checkpoint_id is not None else self.ids())]

    # -- recovering -----------------------------------------------------------------------------------------------
    def recover(
        self,
        checkpoint_id: str | None = None,
        components: Sequence[str] | None = None,
        restore: bool = False,
    ) -> RecoveryState:
        """What to go on from: the newest checkpoint that verifies whole, or the one named.

        Nothing is changed, unless ``restore``: then documents that are missing or differ come back as the checkpoint
        has them. What it does not have stays.

        Args:
            checkpoint_id: this one and no other.
            components: agents by name and parts of the system (``system``, ``hypotheses``, ``tournament``,
                ``feedback``, or a name in ``recovery_metadata``); None for all.

        Returns:
            ``data_integrity`` names the checkpoints that were rejected, and why.

        Raises:
            CheckpointInvalid: there is none that can be used, or the one named cannot.
            Conflict, StorageIO: the documents could not be brought back.
        """
        proved, rejected = self._chosen(checkpoint_id)
        state = recovered(proved, components, rejected)
        self._reader.catch_up()
        done = checkpoint_store.finished_tasks(self._reader, state.active_tasks, known=proved.checksums)
        if done:  # they have their final output since the checkpoint was taken
            tasks = list(enumerate(state.active_tasks))
            work = {**state.completed_work, "completed_since": [task for place, task in tasks if place in done]}
            active = tuple(task for place, task in tasks if place not in done)
            state = replace(state, active_tasks=active, completed_work=work)
        if not restore:
            return state
        restored = self._restored(proved, components)
        return replace(state, data_integrity={**state.data_integrity, "restored": restored})

    def _restored(self, proved: ProvedCheckpoint, components: Collection[str] | None) -> builtins.list[str]:
        """Bring documents back: one batch while they weigh less than 32 MB, otherwise several, each of them whole.

        What came back before an error stays; asked again, the rest follows.
        """
        self._store.flush()  # what is replaced has its place in history
        restored = []
        for path, content in self._differing(proved, components, large=True):
            # Sidecars first: a document never refers to one that is not there.
            self._parts.tree.write_stream(path, content)
            restored.append(path)
        small = self._differing(proved, components, large=False)
        plans = (plan for path, content in small for plan in self._store.plan_restore({path: b"".join(content)}))
        message = f"Restore from checkpoint {proved.checkpoint.id}"
        for some in batches(
            plans, lambda plan: len(plan.before or b"") + len(plan.after or b""), _BATCH_BYTES, _BATCH_FILES
        ):
            self._store.carry_out(some, message, source="checkpoint", critical=True)
            restored += [plan.path for plan in some]
        return sorted(restored)

    def _differing(
        self, proved: ProvedCheckpoint, components: Collection[str] | None, large: bool
    ) -> Iterator[tuple[str, Iterable[bytes]]]:
        """The documents that are missing or differ, of the components named or of all, with their bytes in pieces.

        Args:
            large: only sidecars and what is too large for a document; else only documents.
        """
        names = set(components) if components is not None else None
        with proved.documents() as documents:
            for path, size, chunks in documents:
                if large != (bool(state_paths.document_of_sidecar(path)) or size > READ_LIMIT):
                    continue
                known = b"".join(chunks) if size <= READ_LIMIT else b""
                wanted = names is None or not names.isdisjoint(components_of(path, known))
                if wanted and not self._is_there(path, proved.checksums[path]):
                    yield path, [known] if size <= READ_LIMIT else chunks

    def _is_there(self, path: str, sha256: str) -> bool:
        """Whether a file is as a checkpoint has it, or in an archive."""
        entry = self._parts.seen.entry(path)
        if entry is None:
            return self._reader.archived(path)
        if not entry.regular:
            raise Conflict("something else is in its place", path=path, hint="move it away and try again")
        with suppress(FileNotFoundError):
            small = entry.size <= READ_LIMIT
            found = [self._parts.seen.read(path, READ_LIMIT).data] if small else file_chunks(self._parts.tree, path)
            return digest_of(found)[1] == sha256
        return False

    def _chosen(self, checkpoint: str | None) -> tuple[ProvedCheckpoint, dict[str, str]]:
        rejected: dict[str, str] = {}
        for checkpoint_id in self.ids() if checkpoint is None else [checkpoint]:
            try:
                return self.proved(checkpoint_id), rejected
            except CheckpointInvalid as error:
                if checkpoint is not None:
                    raise
                rejected[checkpoint_id] = checkpoint_store.reason_of(error)
        if not rejected:
            raise CheckpointInvalid("there is no checkpoint", hint="'memfs state checkpoint create' makes one")
        why = "; ".join(
            f"{', '.join(checkpoint_id for checkpoint_id, reason in rejected.items() if reason == shared)}: {shared}"
            for shared in dict.fromkeys(rejected.values())
        )
        raise CheckpointInvalid(
            f"no checkpoint can be used; {why}",
            hint="the documents are in ContextMemory/iterations, in git, and in backups: 'memfs status --all'",
        )

    # -- keeping --------------------------------------------------------------------------------------------------
    def _surplus(self, good: str, pressed: bool) -> Sequence[Checkpoint]:
        """What the retention policy does not keep, newest first.

        Kept are the newest ``keep``, those whose payload is elsewhere too, and those younger than ``keep_days``. One
        that is not whole takes no good one's place.

        Args:
            good: one that was just verified, listed or not: it is kept, as the newest.
            pressed: whether room is wanted: then none is kept for being young.

        Raises:
            ContentError: the policy is invalid.
        """
        policy = read_retention_policy(self._parts.seen, self._parts.codec)
        keep, days = max(0, policy.keep - 1), policy.keep_days
        found = [one for one in self.list() if one.id != good]
        whole = [one for one in found if not one.problem]
        edge = self._parts.clock() - timedelta(days=days)
        young = [] if pressed or not days else [one for one in found if one.timestamp >= edge]
        elsewhere = [one for one in found[:keep] if not one.present]  # a clone does not remove the original's
        kept = [*whole[:keep], *elsewhere, *young]
        return [one for one in found if one not in kept]

    def _remove(self, checkpoint: str) -> None:
        """Manifest first: killed in between, what is left does not count and is swept."""
        plans = self._store.plan_restore({state_paths.manifest_path(checkpoint): None})
        self._store.carry_out(plans, f"Remove checkpoint {checkpoint}", source="checkpoint")
        payload, weight = self.payload(checkpoint), self.size(checkpoint) or 0
        io.unlink(payload, missing_ok=True)
        self._parts.quota_guard.filled(state_paths.payload_path(checkpoint), -weight)
        with suppress(MemfsError):
            io.rmdir(payload.parent)

    # -- by itself ------------------------------------------------------------------------------------------------
    def maintain(self) -> bool:
        """Make the checkpoint that is due by interval or by number of tasks; whether one was made."""
        self._parts.require_open()
        if not self.due():
            return False
        try:
            with self.lock.hold("checkpoint", timeout=0):
                self._last = (-1, None)  # another process may have made one meanwhile
                if reason := self.due():
                    self._create(None, reason)
        except LockTimeout:  # another process is at it
            return False
        self._parts.quota_guard.settle()
        return bool(reason)

    def stored(self) -> None:
        """Take note of a write: a checkpoint that is due with it is made in the background."""
        self._parts.require_open()
        if self.due():
            self._worker.wake()

    def due(self) -> str:
        """Why a checkpoint is due: ``interval`` or ""."""
        self._parts.require_open()
        if minutes := self._reader.system_config().checkpoint_minutes:
            try:
                changed = os.stat(self.folder).st_mtime_ns
            except OSError:
                return "interval"
            if self._last[0] != changed:
                newest = next((one for one in self.list() if not one.problem), None)
                self._last = (changed, newest.timestamp if newest else None)
            last = self._last[1]
            if last is None or self._parts.clock() - last >= timedelta(minutes=minutes):
                return "interval"
        return ""

    def status(self) -> CheckpointStatus:
        """The state of the workspace's checkpoints, for ``status``."""
        found, late = self.list(), 0
        last = found[0] if found else None
        if (self._parts.tree.root / state_paths.ITERATIONS).is_dir():
            number, index = self._reader.open_iteration(), self._reader.index
            newest = index.find(StateQuery(kinds=("state_update",), newest=True, limit=1))
            moment = newest[0].facts.timestamp if newest else None
            if number is not None and number == index.newest_iteration() and moment is not None:
                age = (self._parts.clock() - moment).total_seconds()
                late = round(age) if age > _LATE * self._reader.system_config().update_interval else 0
        return CheckpointStatus(
            last=last.id if last else None,
            age=round((self._parts.clock() - last.timestamp).total_seconds()) if last else None,
            count=len(found),
            damaged=sum(bool(one.problem) for one in found),
            due=self.due(),
            update_late=late,
        )

    def close(self) -> None:
        """Wait for a checkpoint that is being made."""
        self._worker.settle(_PATIENCE)
        self._worker.close()
