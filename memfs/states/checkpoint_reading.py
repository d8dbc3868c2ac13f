"""Reading a checkpoint's payload: strictly, in one stream, believing nothing before the last byte was right (S6, S8).

Owns the proof that a payload is what its manifest says, and taking single documents out of it. Memory is bounded by the
documents that are asked for, however large the payload is or claims to be.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfs.errors import BackupInvalid, CheckpointInvalid, ContentError, CorruptRecord, MemfsError
from memfs.files import io, jsontext, zstd
from memfs.files.ownpath import is_own
from memfs.states.checkpoint_manifest import Manifest, invalid
from memfs.states.checkpoint_packing import FOLDERS, SUMS
from memfs.states.checkpoint_points import MEMBER
from memfs.store.sidecars import KEY, SIDECAR_LIMIT
from memfs.upkeep.tarform import Member, members

_CHUNK = 1 << 18
_LARGEST_SUMMARY = 1 << 28
_LARGEST_SUMS = 1 << 30
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")

Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """A payload that verified whole.

    Attributes:
        sums: of each document, its sha256 (raw).
        summary: what ``recover`` tells (``checkpoint_points.Points.summary``).
    """

    sums: Mapping[str, bytes]
    summary: Mapping[str, Any]


@contextmanager
def opened_members(payload: Path, manifest: Manifest) -> Iterator[Iterator[Member]]:
    """The archive's members; when the block ends without an error, every byte of the payload was right.

    Raises:
        CheckpointInvalid: the payload is not there, or damaged.
    """
    fd = _opened(payload, manifest)
    try:
        source = _Source(fd, payload, manifest)
        unpacked = _Bounded(zstd.reader(source.read, manifest.unpacked, payload.name), manifest)
        try:
            yield members(unpacked.read)
        except BackupInvalid as error:
            reason = error.message.partition(": ")[2] or error.message
            raise invalid(manifest.id, f"its payload is damaged: {reason}") from error
        except CorruptRecord as error:
            if isinstance(error, CheckpointInvalid):
                raise
            raise invalid(manifest.id, f"its payload is damaged: {error.message}") from error
        source.finish()
    finally:
        os.close(fd)


def prove(payload: Path, manifest: Manifest) -> Proved:
    """Read a whole payload: its bytes, every document in it, and their names are what they should be.

    Raises:
        CheckpointInvalid: they are not, or the payload is not there.
        StorageIO: it cannot be read.
    """
    found: dict[str, bytes] = {}
    special: dict[str, bytes] = {}
    with opened_members(payload, manifest) as archive:
        for member in archive:
            if member.name in (MEMBER, SUMS):
                limit = _LARGEST_SUMMARY if member.name == MEMBER else _LARGEST_SUMS
                special[member.name] = member.data(min(limit, manifest.unpacked))
                continue
            if not is_own(member.name) or not member.name.startswith(tuple(f"{one}/" for one in FOLDERS)):
                raise invalid(manifest.id, f"it holds {member.name!a}, which is no part of a state")
            found[member.name] = _digest(member)
    sums = _sums(special.get(SUMS, b""), manifest)
    wrong = next((path for path, digest in sums.items() if found.get(path) != digest), "")
    if wrong or len(sums) != manifest.files:
        raise invalid(manifest.id, f"the document {wrong!a} in it is damaged" if wrong else "documents are missing")
    return Proved(sums=sums, summary=_summary(special.get(MEMBER, b""), manifest))


def fetch(payload: Path, manifest: Manifest, proved: Proved, names: Collection[str], limit: int) -> dict[str, bytes]:
    """The bytes of a few documents.

    Raises:
        CheckpointInvalid: one is not in it.
    """
    found: dict[str, bytes] = {}
    with opened_members(payload, manifest) as archive:
        for member in archive:
            if member.name in names:
                data = member.data(limit)
                if hashlib.sha256(data).digest() == proved.sums.get(member.name):
                    found[member.name] = data
    for name in names:
        if name not in found:
            raise invalid(manifest.id, f"the document {name!a} is missing")
    return found


def filled(payload: Path, manifest: Manifest, proved: Proved, value: Any, path: str) -> Any:
    """A value of a document, with what lies in sidecars put in its place."""
    folder = path.rpartition("/")[0]
    wanted = {f"{folder}/{reference['file']}": reference for reference in _references(value)}
    if not wanted:
        return value
    data = fetch(payload, manifest, proved, wanted.keys(), SIDECAR_LIMIT)
    texts = {name.rpartition("/")[2]: _sidecar(manifest, name, data[name], wanted[name]) for name in wanted}
    return _replaced(value, texts)


def _sidecar(manifest: Manifest, name: str, data: bytes, reference: Mapping[str, Any]) -> Any:
    try:
        text = zstd.decompress(data, min(int(reference["bytes"]), SIDECAR_LIMIT), name)
        return jsontext.load(text.decode("utf-8"), parts=None)
    except (CorruptRecord, ContentError, UnicodeDecodeError) as error:
        raise invalid(manifest.id, f"{name!a} in it is damaged") from error


def _references(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        reference = value.get(KEY)
        if isinstance(reference, Mapping) and isinstance(reference.get("file"), str) and "bytes" in reference:
            yield reference
            return
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _references(part)


def _replaced(value: Any, texts: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        reference = value.get(KEY)
        if isinstance(reference, Mapping) and reference.get("file") in texts:
            return texts[reference["file"]]
        return {key: _replaced(part, texts) for key, part in value.items()}
    return [_replaced(part, texts) for part in value] if isinstance(value, list) else value


# -- the stream ---------------------------------------------------------------------------------------------------
def _opened(payload: Path, manifest: Manifest) -> int:
    hint = "copy its folder from where it was made, or use another checkpoint"
    try:
        fd = io.open_file(payload, os.O_RDONLY)
    except FileNotFoundError:
        reason = "its payload is not here: payloads are not in git, a clone has the manifests only"
        raise invalid(manifest.id, reason, hint) from None
    except MemfsError as error:
        raise invalid(manifest.id, f"its payload cannot be read: {error.message}", hint) from error
    facts = os.fstat(fd)
    if stat.S_ISREG(facts.st_mode) and facts.st_size == manifest.payload_bytes:
        return fd
    os.close(fd)
    raise invalid(manifest.id, f"its payload has {facts.st_size:,} bytes, should have {manifest.payload_bytes:,}", hint)


class _Source:
    """The payload's bytes, summed up as they are read."""

    def __init__(self, fd: int, path: Path, manifest: Manifest) -> None:
        self._fd, self._path, self._manifest = fd, path, manifest
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        with io.operation("read", self._path):
            data = os.read(self._fd, min(size, _CHUNK))
        self._digest.update(data)
        return data

    def finish(self) -> None:
        """Read what is left.

        Raises:
            CheckpointInvalid: the bytes are not those of the manifest.
        """
        while self.read(_CHUNK):
            pass
        if self._digest.hexdigest() != self._manifest.payload_sha256:
            raise invalid(self._manifest.id, "its payload is damaged: the sum of its bytes is another")


class _Bounded:
    """Unpacked bytes, in larger pieces than a header: the archive is read in many small steps."""

    def __init__(self, read: Read, manifest: Manifest) -> None:
        self._read = read
        self._manifest = manifest
        self._piece = memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._piece:
            self._piece = memoryview(self._read(_CHUNK))
        given, self._piece = self._piece[:size], self._piece[size:]
        return bytes(given)


def _digest(member: Member) -> bytes:
    hashed = hashlib.sha256()
    for data in member.chunks():
        hashed.update(data)
    return hashed.digest()


def _sums(data: bytes, manifest: Manifest) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise invalid(manifest.id, "its list of sums cannot be read")
        found[match[2]] = bytes.fromhex(match[1])
    return found


def _summary(data: bytes, manifest: Manifest) -> dict[str, Any]:
    try:
        found = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(found.get(name), dict) for name in ("update", "system_configuration", "agents", "completed_work")
    ):
        raise invalid(manifest.id, "what it says for a recovery cannot be read")
    return found
