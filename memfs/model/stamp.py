"""Stamp: the facts by which a file is recognised as unchanged.

A value; taking stamps is ``memfs.files.tree``'s business. Owns git's formula for ids, by which content is named, too.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

RACY_NS = 2_000_000_000


def object_id(kind: str, data: bytes) -> str:
    """The id git gives to these bytes as a ``blob``, ``tree`` or ``commit`` (SHA-1 repositories)."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


class Stamp(NamedTuple):
    """What the file system and git say of one file.

    Attributes:
        size, mtime_ns, ctime_ns, inode: as ``stat`` gave them when the content was read.
        blob: git's id of the content, hex.
        checked_ns: when it was read, nanoseconds since 1970.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    blob: str
    checked_ns: int

    @property
    def racy(self) -> bool:
        """Whether the file was so young when read that a later change could carry the same times."""
        return self.checked_ns - max(self.mtime_ns, self.ctime_ns) < RACY_NS
