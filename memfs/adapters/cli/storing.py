"""What ``status`` says of the disks that take writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.adapters.cli.output import count

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def storage_facts(workspace: Workspace) -> dict[str, Any]:
    """As scripts read it."""
    found = workspace.store.storage()
    return {"state": found.state, **dataclasses.asdict(found)}


def storage_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """As people read it."""
    free = "" if facts["free"] is None else f"{facts['free'] / 1e9:,.1f} GB free"
    words = [f"degraded: {facts['reason']}" if facts["reason"] else f"ok, {free}" if free else "ok"]
    if facts["waiting"]:
        words.append(f"{count(facts['waiting'], 'write')} in {facts['secondary']}")
    elif facts["secondary"]:
        words.append(f"secondary {facts['secondary']}")
    if facts["secondary_reason"]:
        words.append(f"which takes no writes: {facts['secondary_reason']}")
    return {"storage": "; ".join(words)}
