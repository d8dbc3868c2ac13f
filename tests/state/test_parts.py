"""States: the parts of a multi-agent system's state, made when first used and closed together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs import StorageIO, Workspace
from memfs.fs.lock import shared_property
from memfs.state.parts import States

Opened = Callable[..., Workspace]
PARTS = sorted(name for name, value in vars(States).items() if isinstance(value, shared_property))


@pytest.mark.parametrize("name", PARTS)
def test_threads_that_make_a_part_at_once_share_it(opened: Opened, name: str) -> None:
    """Every part is there once, also where Python makes it twice, and can be made on its own."""
    states = opened().states
    part = vars(States)[name]
    assert part.__get__(states) is part.__get__(states) is getattr(states, name)


def test_a_workspace_has_its_states_once(opened: Opened) -> None:
    """Two threads that ask at once get the same states."""
    workspace = opened()
    part = vars(Workspace)["states"]
    assert part.__get__(workspace) is part.__get__(workspace) is workspace.states


def test_a_part_that_cannot_be_closed_keeps_no_other_open(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part that was opened is closed, and the failure is reported."""
    workspace = opened()
    closed: list[str] = []

    def refused() -> None:
        closed.append("index")
        raise StorageIO("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.states.index, "close", refused)
        patched.setattr(workspace.states.checkpoints, "close", lambda: closed.append("checkpoints"))
        with pytest.raises(StorageIO, match="the disk is gone"):
            workspace.close()
    assert sorted(closed) == ["checkpoints", "index"]


def test_occasions_of_a_workspace_without_states_load_nothing(opened: Opened) -> None:
    """A threshold that is crossed where no system keeps its state does not make its parts."""
    workspace = opened()
    facts = {"area": "total", "level": "warning", "used": 9, "limit": 10, "share": 0.9}
    assert workspace.behaviours.fire("storage_threshold", facts) == 2
    assert "states" not in vars(workspace)
