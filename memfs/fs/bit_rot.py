"""Tells bytes that changed on the disk by themselves from an edit.

Content is rotten only where it changed while size, time of change and inode stayed, on a file system known to record
every edit. Elsewhere nothing is reported, so a person's edit is never taken for damage.
"""

from __future__ import annotations

import sys
from pathlib import Path

from memfs.errors import CorruptItem
from memfs.fs.io import file_system
from memfs.fs.tree import Content
from memfs.model.item import Stamp

_HONEST = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
"""File systems whose times of change come from the kernel that we ask, and cannot be set by programs."""


def rotten(stamp: Stamp, content: Content, root: Path) -> bool:
    """Whether content differs from what was stamped although every fact about the file is the same.

    Args:
        stamp: what was known of the file.
        content: what it holds now, with its facts.
        root: a folder on the same file system.
    """
    now = content.stamp
    if stamp.blob == now.blob or stamp.racy or stamp[:4] != now[:4]:
        return False
    return tells_edits(root)


def tells_edits(root: Path) -> bool:
    """Whether on this file system every edit leaves a trace in the facts about the file."""
    kind = file_system(str(root))
    if not kind and sys.platform == "darwin":
        return not str(root).startswith("/Volumes/")
    return kind in _HONEST


def corrupt(path: str, stamp: Stamp, content: Content) -> CorruptItem:
    """The error that names what was expected and what was found, by git's ids of both."""
    return CorruptItem(
        f"the disk changed bytes that nobody wrote: expected {stamp.blob}, found {content.stamp.blob}",
        path=path,
        hint="'memfs check --fix' brings back what was written; if the change is yours, 'touch' the file to keep it",
    )
