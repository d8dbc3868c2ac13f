"""Restoring from a checkpoint: documents that are missing or differ, brought back as it has them (S7).

Owns which documents belong to which component, the comparison with the files as they are, and the batches in which they
come back. What is newer than the checkpoint and not in it stays; what is replaced is in history first. The checkpoint
was proved by the caller.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from memfs.errors import Conflict
from memfs.files import io
from memfs.model.statepaths import (
    agent_of,
    below_iteration,
    decode_name,
    document_kind,
    document_of_sidecar,
    iteration_of,
)
from memfs.states.checkpoint_manifest import Manifest
from memfs.states.checkpoint_reading import Proved, opened_members
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.plan import Planned
from memfs.upkeep.tarform import Member

_BATCH = 32 << 20
_CHUNK = 1 << 18
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
        with suppress(ValueError, RecursionError, AttributeError):
            found.add(str(json.loads(data or b"{}").get("agent", "")))
    elif iteration_of(path) is None and not kind:
        found.add(path.removeprefix(f"{CONTENT}/").partition("/")[0])
    return found


@dataclass(slots=True)
class _Batch:
    store: Store
    message: str
    plans: list[Planned] = field(default_factory=list)
    weight: int = 0

    def add(self, plan: Planned) -> None:
        self.plans.append(plan)
        self.weight += len(plan.before or b"") + len(plan.after or b"")
        if self.weight >= _BATCH:
            self.carry_out()

    def carry_out(self) -> None:
        if self.plans:
            self.store.carry_out(self.plans, self.message, source="checkpoint", critical=True)
        self.plans, self.weight = [], 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorer:
    """Brings documents of one proved checkpoint back.

    Attributes:
        archived: whether a document that is not in the tree lies in an archive: then it is not missing.
    """

    store: Store
    parts: Parts
    payload: Path
    manifest: Manifest
    proved: Proved
    archived: Callable[[str], bool]

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
        batch = _Batch(self.store, f"Restore from checkpoint {self.manifest.id}")
        restored = []
        # Sidecars first: a document never refers to one that is not there.
        for sidecars in (True, False):
            for path, member in self._differing(components, sidecars=sidecars):
                if self._bring_back(path, member, batch):
                    restored.append(path)
        batch.carry_out()
        return sorted(restored)

    def _bring_back(self, path: str, content: bytes | Member, batch: _Batch) -> bool:
        if not isinstance(content, bytes):
            return self._stream(path, content)
        if document_of_sidecar(path):
            self.parts.tree.write(path, content)
            return True
        plan = self.store.plan_restore(path, content)
        if plan is not None:
            batch.add(plan)
        return plan is not None

    def _differing(
        self, components: Collection[str] | None, sidecars: bool | None = None
    ) -> Iterator[tuple[str, bytes | Member]]:
        """Documents with their bytes; what is too large for one comes as a member that is not read yet."""
        names = set(components) if components is not None else None
        left = dict(self.proved.sums)
        with opened_members(self.payload, self.manifest) as archive:
            for member in archive:
                path = member.name
                is_sidecar = bool(document_of_sidecar(path)) or member.size > READ_LIMIT
                if path not in left or (sidecars is not None and is_sidecar != sidecars):
                    continue
                if member.size > READ_LIMIT:
                    if self._is_wanted(path, names, b"") and not self._is_there(path, left[path]):
                        yield path, member
                    continue
                data = member.data(READ_LIMIT)
                if hashlib.sha256(data).digest() != left[path]:
                    continue  # an earlier version, packed before it changed
                digest = left.pop(path)
                if self._is_wanted(path, names, data) and not self._is_there(path, digest):
                    yield path, data

    def _is_wanted(self, path: str, names: set[str] | None, data: bytes) -> bool:
        return names is None or not names.isdisjoint(components_of(path, data))

    def _is_there(self, path: str, digest: bytes) -> bool:
        """Whether a file is as the checkpoint has it, or in an archive."""
        entry = self.parts.seen.entry(path)
        if entry is None:
            return self.archived(path)
        if not entry.regular:
            raise Conflict("something else stands in its place", path=path, hint="move it away and try again")
        if entry.size <= READ_LIMIT:
            with suppress(FileNotFoundError):
                return hashlib.sha256(self.parts.seen.read(path, READ_LIMIT).data).digest() == digest
            return False
        fd = self.parts.tree.open_read(path)
        try:
            hashed = hashlib.sha256()
            with io.operation("read", path):
                while data := os.read(fd, _CHUNK):
                    hashed.update(data)
            return hashed.digest() == digest
        finally:
            os.close(fd)

    def _stream(self, path: str, member: Member) -> bool:
        """Bring back a file that is too large for memory; false where the bytes are of an earlier version."""
        try:
            self.parts.tree.write_stream(path, _chunks_of(member, self.proved.sums[path]))
        except _EarlierVersion:
            return False
        return True


class _EarlierVersion(Exception):
    """What was read is not the version that counts."""


def _chunks_of(member: Member, digest: bytes) -> Iterator[bytes]:
    hashed = hashlib.sha256()
    for data in member.chunks():
        hashed.update(data)
        yield data
    if hashed.digest() != digest:
        raise _EarlierVersion
