"""Checkout: items laid into a workspace as a checkout lays them, where what storing them takes is measured apart.

Says where items lie, and how long to wait until their stamps are trusted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from memfs.model import MemoryItem
from memfs.workspace import Workspace

SETTLED_SECONDS = 2.5
"""A stamp younger than two seconds is not trusted; nobody measures that by accident."""
_MONTH = 500


def lay(workspace: Workspace, items: Iterable[MemoryItem], rest: float | None = None) -> None:
    """Write items as files, and index them.

    Args:
        rest: seconds after which stamps are trusted; None for as long as that takes.
    """
    for number, item in enumerate(items):
        path = f"ContextMemory/memories/{item.type}/2026-{number // _MONTH % 12 + 1:02}/m{number}.yaml"
        place = workspace.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(workspace.parts.codec.write(item, path).data)
    time.sleep(SETTLED_SECONDS if rest is None else rest)
    workspace.store.refresh()
    workspace.store.fold()
