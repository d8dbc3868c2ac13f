"""The shelf of checkpoints: which there are, and whether each can be relied on (S6).

Owns finding checkpoints by their manifests, and the verdict on one. Making, removing and choosing among them is
``checkpoints``' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memfs.errors import CheckpointInvalid, MemfsError
from memfs.files.tree import View
from memfs.model import Problem
from memfs.model.statepaths import CHECKPOINTS, MANIFEST, manifest_path
from memfs.states.checkpoint_manifest import Manifest, decode, invalid, is_id, minute_of, order, reason_of
from memfs.states.checkpoint_places import Places
from memfs.states.checkpoint_reading import Proved, prove
from memfs.store.parts import READ_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint as its manifest describes it.

    Attributes:
        id: ``ckpt_YYYYMMDD_HHMM``, with ``_2`` and so on for further ones of the same minute.
        timestamp: the moment it shows.
        reason: why it was made: ``asked``, ``update``, ``interval``, ``tasks``, or what the caller said.
        iteration: the newest iteration in it, None where there was none.
        files, bytes: how many documents, and what they weigh unpacked.
        payload_bytes: what the payload weighs.
        sha256: of the payload.
        present: whether a payload of that size lies beside the manifest; a clone has manifests only.
        problem: why it cannot be used, as far as the manifest and the payload's size tell; "" otherwise.
    """

    id: str
    timestamp: datetime
    reason: str = ""
    iteration: int | None = None
    files: int = 0
    bytes: int = 0
    payload_bytes: int = 0
    sha256: str = ""
    present: bool = True
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a checkpoint can be relied on, and if not, why."""

    id: str
    good: bool
    reason: str = ""
    files: int = 0
    bytes: int = 0


class Shelf:
    """The checkpoints that are there."""

    def __init__(self, seen: View, places: Places) -> None:
        """
        Args:
            seen: the files that there are, or were: of the present or of another time.
            places: where payloads lie now.
        """
        self._seen = seen
        self._places = places

    def ids(self) -> Sequence[str]:
        """Their ids, newest first."""
        found = set()
        for entry in self._seen.scan(CHECKPOINTS):
            checkpoint, _, name = entry.path.removeprefix(f"{CHECKPOINTS}/").partition("/")
            if name == MANIFEST and is_id(checkpoint):
                found.add(checkpoint)
        return sorted(found, key=order, reverse=True)

    def all(self) -> list[Checkpoint]:
        """All of them, newest first; one whose manifest is damaged names the problem."""
        return [self.look(one) for one in self.ids()]

    def look(self, checkpoint: str) -> Checkpoint:
        """One of them; one whose manifest is damaged names the problem."""
        try:
            return self.described(self._manifest(checkpoint))
        except CheckpointInvalid as error:
            return Checkpoint(id=checkpoint, timestamp=minute_of(checkpoint), present=False, problem=reason_of(error))

    def _manifest(self, checkpoint: str) -> Manifest:
        try:
            return decode(self._seen.read(manifest_path(checkpoint), READ_LIMIT).data, checkpoint)
        except FileNotFoundError:
            names = self.ids()
            hint = f"the newest is {names[0]}" if names else "'memfs checkpoint create' makes one"
            raise CheckpointInvalid(f"there is no checkpoint {checkpoint!r}", hint=hint) from None
        except CheckpointInvalid:
            raise
        except MemfsError as error:
            raise invalid(checkpoint, f"its manifest cannot be read: {error.message}") from error

    def described(self, manifest: Manifest) -> Checkpoint:
        """The checkpoint of a manifest."""
        size = self._places.size(manifest.id)
        present = size == manifest.payload_bytes
        problem = "" if present else "its payload is not here" if size is None else "its payload has another size"
        return Checkpoint(
            id=manifest.id, timestamp=manifest.timestamp, reason=manifest.reason, iteration=manifest.iteration,
            files=manifest.files, bytes=manifest.bytes, payload_bytes=manifest.payload_bytes,
            sha256=manifest.payload_sha256, present=present, problem=problem,
        )  # fmt: skip

    def verdict(self, checkpoint: str) -> Verdict:
        """Read a whole checkpoint and say whether it can be relied on."""
        try:
            manifest, _ = self.proved(checkpoint)
        except CheckpointInvalid as error:
            return Verdict(id=checkpoint, good=False, reason=reason_of(error))
        return Verdict(id=checkpoint, good=True, files=manifest.files, bytes=manifest.bytes)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with those that are here, each read whole; a payload that lies elsewhere is no damage."""
        for checkpoint in self.ids():
            try:
                self.manifest(checkpoint)
                if self._places.size(checkpoint) is not None:
                    self.proved(checkpoint)
            except CheckpointInvalid as error:
                yield Problem.of(error, manifest_path(checkpoint))

    def proved(self, checkpoint: str) -> tuple[Manifest, Proved]:
        """A checkpoint that verifies whole.

        Raises:
            CheckpointInvalid: it does not, or is not there.
        """
        manifest = self.manifest(checkpoint)
        return manifest, prove(self.payload(checkpoint), manifest)

    def manifest(self, checkpoint: str) -> Manifest:
        """Its manifest.

        Raises:
            CheckpointInvalid: it is damaged, or there is none of that id.
        """
        if not is_id(checkpoint):
            raise CheckpointInvalid(
                f"{checkpoint!a} is no checkpoint's id",
                hint="ids look like ckpt_20260301_1000: 'memfs checkpoint list'",
            )
        return self._manifest(checkpoint)

    def exists(self, checkpoint: str) -> bool:
        """Whether there is one of that id, sound or not."""
        return is_id(checkpoint) and self._seen.entry(manifest_path(checkpoint)) is not None

    def payload(self, checkpoint: str) -> Path:
        """Where its payload lies."""
        return self._places.payload(checkpoint)
