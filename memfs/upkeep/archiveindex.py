"""Archive index: what an archive holds and where in its payload, one document to a line.

Owns the form of ``archive/<name>.index.json``: a file of the workspace that anybody may have edited, so that everything
in it is checked before it is believed; and which lock archives are changed under. It opens no payload.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.errors import ArchiveInvalid
from memfs.files.lock import FileLock
from memfs.files.ownpath import is_own
from memfs.model.statepaths import ARCHIVE, ITERATIONS, document_kind, iteration_of
from memfs.model.time import format_time, parse_time
from memfs.upkeep.archivefile import Frame, Member

if TYPE_CHECKING:
    from memfs.store.parts import Parts

FORMAT = 1
INDEX_SUFFIX = ".index.json"
PAYLOAD_SUFFIX = ".tar.zst"
INDEX_LIMIT = 256 << 20

_NAME = re.compile(r"[0-9]{4}-[0-9]{2}(?:_[0-9]{1,6})?")
_SHA = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"(?:[0-9a-f]{40})?")
_LARGEST = 1 << 50
_SEAL = b',\n  "sha256": "'


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """One archive.

    Attributes:
        name: the month in which its iterations were closed, with a number where that month has several archives.
        created: when it was made.
        closed: when each iteration in it was closed, by number.
        unpacked: when an iteration was brought back into the tree, by number; it is not due again for a while then.
        bytes, sha256: of the payload.
    """

    name: str
    created: datetime
    closed: Mapping[int, datetime]
    bytes: int
    sha256: str
    frames: tuple[Frame, ...]
    members: tuple[Member, ...]
    unpacked: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def raw(self) -> int:
        """What the documents weigh."""
        return sum(member.bytes for member in self.members)


def archive_lock(parts: Parts) -> FileLock:
    """What whoever moves iterations into archives or out of them holds."""
    return FileLock(parts.repository.state / "archive.lock", home=parts.repository.common_dir)


def index_path(name: str) -> str:
    """Where an archive's index lies."""
    return f"{ARCHIVE}/{name}{INDEX_SUFFIX}"


def payload_path(name: str) -> str:
    """Where an archive's payload lies."""
    return f"{ARCHIVE}/{name}{PAYLOAD_SUFFIX}"


def is_name(name: str) -> bool:
    """Whether an archive can be called so."""
    return _NAME.fullmatch(name) is not None


def encode(index: Index) -> bytes:
    """The file: valid JSON, one line for each frame and document, and at the end the digest of all before it."""
    head = {
        "format": FORMAT,
        "name": index.name,
        "created": format_time(index.created),
        "iterations": {str(number): format_time(moment) for number, moment in sorted(index.closed.items())},
        "unpacked": {str(number): format_time(moment) for number, moment in sorted(index.unpacked.items())},
        "payload": {"file": index.name + PAYLOAD_SUFFIX, "bytes": index.bytes, "sha256": index.sha256},
    }
    frames = [[frame.offset, frame.packed, frame.raw] for frame in index.frames]
    members = [
        [one.path.removeprefix(f"{ITERATIONS}/"), one.bytes, one.sha256, one.blob, one.frame, one.offset, _facts(one)]
        for one in index.members
    ]
    text = json.dumps(head, ensure_ascii=False, indent=2)[:-2]
    return _sealed(f'{text},\n  "frames": {_lines(frames)},\n  "documents": {_lines(members)}'.encode())


def _sealed(body: bytes) -> bytes:
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode() + b'"\n}\n'


def _refuse_damaged(data: bytes) -> None:
    body, seal, _ = data.rpartition(_SEAL)
    if not seal or _sealed(body) != data:
        raise ValueError("its bytes are not those that were written")


def _facts(member: Member) -> dict[str, Any]:
    """The facts without what the path says already."""
    return {key: value for key, value in member.facts.items() if key not in ("path", "kind", "iteration")}


def _lines(rows: list[list[Any]]) -> str:
    if not rows:
        return "[]"
    return "[\n" + ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n  ]"


def decode(data: bytes, path: str) -> Index:
    """The index in a file.

    Raises:
        ArchiveInvalid: naming the file and what in it is wrong.
    """
    try:
        values = json.loads(data)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        found = _index(values, path)
        _refuse_damaged(data)
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        hint = f"bring it back from history: memfs rollback HEAD {path}"
        raise ArchiveInvalid(f"this is no sound index of an archive: {reason}", path=path, hint=hint) from None


def _index(values: Mapping[str, Any], path: str) -> Index:
    name = str(values["name"])
    if not is_name(name) or path != index_path(name):
        raise ValueError("its name is not the file's")
    payload = values["payload"]
    frames = tuple(_frame(row) for row in values["frames"])
    return Index(
        name=name,
        created=parse_time(values["created"]),
        closed=_moments(values["iterations"]),
        unpacked=_moments(values.get("unpacked", {})),
        bytes=_size(payload["bytes"]),
        sha256=_matching(_SHA, payload["sha256"]),
        frames=frames,
        members=tuple(_member(row, len(frames)) for row in values["documents"]),
    )


def _moments(values: Mapping[str, Any]) -> dict[int, datetime]:
    return {_size(int(number)): parse_time(moment) for number, moment in values.items()}


def _frame(row: Any) -> Frame:
    offset, packed, raw = map(_size, row)
    return Frame(offset=offset, packed=packed, raw=raw)


def _member(row: Any, frames: int) -> Member:
    inside, size, sha, blob, frame, offset, facts = row
    path = f"{ITERATIONS}/{inside}"
    if not is_own(path) or iteration_of(path) is None:
        raise ValueError(f"{inside!a} is no document of an iteration")
    if _size(frame) >= frames or not isinstance(facts, dict):
        raise ValueError(f"what it says of {inside!a} cannot be")
    if facts:
        facts = {**facts, "path": path, "kind": document_kind(path), "iteration": iteration_of(path)}
    return Member(
        path=path, bytes=_size(size), sha256=_matching(_SHA, sha), blob=_matching(_BLOB, blob),
        frame=frame, offset=_size(offset), facts=facts,
    )  # fmt: skip


def _size(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
        raise ValueError(f"{value!r} is no size")
    return value


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{value!r} is no checksum")
    return value
