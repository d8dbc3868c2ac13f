"""A decision that one memory holds is taken back by the decision that both do (P7)."""

from __future__ import annotations

from collections.abc import Callable

from memfs.model import MemoryItem
from memfs.workspace import Workspace


def _item(workspace: Workspace, name: str) -> MemoryItem:
    found = workspace.store.get(name)
    assert found is not None
    return found


def test_both_gives_the_superseded_one_its_status_back(opened: Callable[..., Workspace]) -> None:
    """Neither replaces the other any longer; what a third one replaced stays replaced (P7)."""
    workspace = opened()
    for name, status in (("five", "accepted"), ("nine", ""), ("seven", "")):
        workspace.store.put(MemoryItem(f"The timeout is {name} seconds.", "semantic", id=name, status=status))
    conflicts = workspace.conflicts

    conflicts.resolve("five", "nine", keep="nine")
    assert (_item(workspace, "five").status, _item(workspace, "nine").supersedes) == ("superseded", ("five",))
    conflicts.resolve("five", "nine", keep="both")
    assert (_item(workspace, "five").status, _item(workspace, "nine").supersedes) == ("accepted", ())

    conflicts.resolve("five", "nine", keep="nine")
    conflicts.resolve("five", "seven", keep="seven")
    conflicts.resolve("five", "nine", keep="both")
    assert _item(workspace, "five").status == "superseded"
    conflicts.resolve("five", "seven", keep="both")
    assert _item(workspace, "five").status == "accepted"


def test_keeping_one_of_a_pair_leaves_what_a_third_one_replaced_replaced(opened: Callable[..., Workspace]) -> None:
    """Else two that were decided about would hold side by side, and nobody would be asked (P7)."""
    workspace = opened()
    for name in ("five", "nine", "seven"):
        workspace.store.put(MemoryItem(f"The timeout is {name} seconds.", "semantic", id=name))
    conflicts = workspace.conflicts

    conflicts.resolve("five", "nine", keep="nine")
    conflicts.resolve("five", "seven", keep="five")
    assert [_item(workspace, name).status for name in ("five", "nine", "seven")] == ["superseded", "", "superseded"]
    conflicts.resolve("five", "nine", keep="five")
    assert [_item(workspace, name).status for name in ("five", "nine")] == ["", "superseded"]
