"""What happened long ago in a mounted workspace counts as the setting of this one says (P7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from memfs import Workspace
from memfs.context.builtin_sources import JointMemory
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.model.time import utc_now


@pytest.mark.parametrize(("decay", "found"), [(True, 0), (False, 1)])
def test_memory_decay_holds_for_mounts_too(
    opened: Callable[..., Workspace], tmp_path: Path, decay: bool, found: int
) -> None:
    """An old failure of a mount that resembles a situation in part fades, unless nothing is to fade."""
    task = "Migrate the ledger table to decimal amounts"
    with opened(tmp_path / "team") as theirs:
        old = utc_now() - timedelta(days=4000)
        state = StateSnapshot.create(context=task)
        theirs.sources.episodes.record(
            Episode.create(state, Action("bash", "ran it"), "failure", "locked", timestamp=old)
        )
    own = opened(mounts__team=str(tmp_path / "team"), memory__decay=decay)
    near = StateSnapshot.create(context="Migrate the ledger table to decimal values")
    assert len(JointMemory(own.sources).find_similar(near)) == found
