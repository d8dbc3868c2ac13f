"""Proof: what an answer rests on, so that anyone can check it.

Owns the digest over the indexed files and the count of files that differ from HEAD. The digest of HEAD's own files is
kept beside the index, so that the usual answer, "nothing differs", needs no look into git.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping

from memfs.errors import MemfsError, StorageIO
from memfs.files import io
from memfs.files.tree import blob_id
from memfs.model import Freshness
from memfs.store.following import Following
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

_FILE = "head"
_LIMIT = 4096


def prove(parts: Parts, following: Following) -> Freshness:
    """HEAD, how many memory files differ from it, and a digest of exactly what is indexed."""
    indexed = dict(parts.index.stamps().blobs())
    digest = _digest(indexed)
    found = parts.repository.head()
    head = found.commit
    if head is None:
        return Freshness(head=None, dirty=None if found.damage else len(indexed), indexed=digest)
    broken = {path: _blob(parts, path) for path in following.rejected_items()}
    present = {**indexed, **{path: blob for path, blob in broken.items() if blob}}
    if _kept(parts, head) == (_digest(present) if broken else digest):
        return Freshness(head=head, dirty=0, indexed=digest)
    items = {path: blob for path, blob in parts.repository.tree(head, CONTENT).items() if following.is_item(path)}
    _keep(parts, head, _digest(items))
    dirty = sum(1 for path, blob in present.items() if items.get(path) != blob)
    dirty += sum(1 for path in items if path not in present)
    return Freshness(head=head, dirty=dirty, indexed=digest)


def _blob(parts: Parts, path: str) -> str:
    """The id of what an invalid file holds, "" where it cannot be read."""
    try:
        return blob_id(parts.seen.read(path, READ_LIMIT).data)
    except (FileNotFoundError, MemfsError):
        return ""


def _digest(blobs: Mapping[str, str]) -> str:
    lines = "".join([f"{path}\0{blobs[path]}\n" for path in sorted(blobs)])
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _kept(parts: Parts, head: str) -> str:
    """The digest of the items of this very commit, "" when it is not known."""
    try:
        commit, _, digest = io.read_file(parts.index.folder / _FILE, _LIMIT).decode("ascii", "replace").partition(" ")
    except (FileNotFoundError, StorageIO):
        return ""
    return digest if commit == head else ""


def _keep(parts: Parts, head: str, digest: str) -> None:
    with contextlib.suppress(StorageIO, FileNotFoundError):
        io.write_file(parts.index.folder / _FILE, f"{head} {digest}".encode(), durable=False)
