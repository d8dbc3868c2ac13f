"""Rot for tests: change bytes of a file the way a failing disk does.

To the workspace the file looks untouched since it was indexed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memfs.model.item import RACY_NS

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def flipped(data: bytes, bit: int) -> bytes:
    """The bytes with one bit turned over, counted from the first byte and round the end."""
    changed = bytearray(data)
    place = bit % (len(changed) * 8)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def rot(workspace: Workspace, path: str, bit: int = 0, data: bytes | None = None) -> bytes:
    """Turn a bit of an item's file over (or put other bytes there), leaving no trace in the facts about the file.

    No program can do that: the time of change is the kernel's. So the index is changed, as if the file had had its
    present facts when it was read last.

    Returns:
        What the file holds now.
    """
    workspace.store.refresh()
    full = workspace.root / path
    changed = flipped(full.read_bytes(), bit) if data is None else data
    full.write_bytes(changed)
    vouch(workspace, path)
    return changed


def vouch(workspace: Workspace, path: str) -> None:
    """Let the index know the file by the facts it has now, as of a time at which they can be relied on."""
    index = workspace.parts.index
    before = index.stamps()[path][1]
    facts = workspace.parts.tree.entry(path)
    assert facts is not None
    checked = max(facts.mtime_ns, facts.ctime_ns) + RACY_NS
    stamp = before._replace(
        size=facts.size, mtime_ns=facts.mtime_ns, ctime_ns=facts.ctime_ns, inode=facts.inode, checked_ns=checked
    )
    index.restamp(path, stamp)
