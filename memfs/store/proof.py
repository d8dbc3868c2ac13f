"""Proof: what an answer rests on, so that anyone can check it.

Owns the digest over the indexed files and the count of files that differ from HEAD.
"""

from __future__ import annotations

import hashlib

from memfs.model import Freshness
from memfs.store.following import Following
from memfs.store.parts import CONTENT, Parts


def prove(parts: Parts, following: Following) -> Freshness:
    """HEAD, how many memory files differ from it, and a digest of exactly what is indexed."""
    indexed = {path: row[1].blob for path, row in parts.index.stamps().items()}
    head = parts.repository.head().commit
    committed = parts.repository.tree(head, CONTENT) if head else {}
    items = {path: blob for path, blob in committed.items() if following.is_item(path)}
    dirty = sum(1 for path, blob in indexed.items() if items.get(path) != blob)
    dirty += sum(1 for path in items if path not in indexed)
    return Freshness(head=head, dirty=dirty, indexed=_digest(indexed))


def _digest(blobs: dict[str, str]) -> str:
    lines = "".join(f"{path}\0{blob}\n" for path, blob in sorted(blobs.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
