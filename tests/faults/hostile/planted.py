"""Planted state: what an unzipped repository can bring along in ``.git/memfs/``, where memfs keeps its own records.

Writes such records as memfs itself would, and worse.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MARK = b"planted!"
NAME = "0123456789abcdef"


def state_of(root: Path) -> Path:
    """Where memfs keeps its records for a workspace at the top of an ordinary repository."""
    key = hashlib.sha256(b".\0").hexdigest()[:16]
    folder = root / ".git" / "memfs" / key
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def operation(path: str, data: bytes, **changed: Any) -> bytes:
    """The record of a write that was acknowledged and not carried out."""
    record = {
        "kind": "operation",
        "id": NAME,
        "branch": "refs/heads/main",
        "time": 1_700_000_000.0,
        "message": "Planted",
        "batch": False,
        "writers": [{"agent": "", "session": "", "source": "", "person": False}],
        "changes": [[path, "", hashlib.sha256(data).hexdigest(), len(data)]],
        **changed,
    }
    return json.dumps(record).encode() + b"\n" + data


def journal(root: Path, payloads: Iterable[bytes]) -> Path:
    """A journal that holds these records."""
    head = b"memfs-journal 1 1 " + MARK.hex().encode() + b" 0 0 -"
    line = head + b" %08x\n" % zlib.crc32(head)
    frames = [struct.pack(">8sII", MARK, len(payload), zlib.crc32(payload)) + payload for payload in payloads]
    path = state_of(root) / "journal"
    path.write_bytes(line + b"".join(frames))
    return path


def step(root: Path, **changed: Any) -> Path:
    """The record of a commit that was begun and not ended."""
    record = {
        "ref": "refs/heads/main",
        "old": "",
        "new": "1" * 40,
        "git_dir": ".",
        "had_index": True,
        **changed,
    }
    path = state_of(root) / "commit.json"
    path.write_text(json.dumps(record))
    return path
