"""The co-scientist's state in the example workspace is what the example leaves behind (S20)."""

from __future__ import annotations

from pathlib import Path

import example_states
import pytest

from memfs.facades.open_workspaces import close_all

FIRST = 3


def test_the_example_is_what_the_co_scientist_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails after a change of the example or of state documents, run tests/docs/example_states.py."""
    for name, value in {"HISTORY_COMMIT": "manual", "WATCH_ENABLED": "false"}.items():
        monkeypatch.setenv(f"MEMFS_{name}", value)
    example_states.copy(tmp_path / "waybill")
    example_states.simulate(tmp_path / "waybill", FIRST)
    close_all()
    below = tuple(f"iterations/iteration_{number:03}/" for number in range(example_states.ARCHIVED + 1, FIRST + 1))
    made = example_states.documents(tmp_path / "waybill")
    kept = example_states.documents(example_states.EXAMPLE)
    assert {path: data for path, data in made.items() if path.startswith(below)} == {
        path: data for path, data in kept.items() if path.startswith(below)
    }


def test_the_example_stays_small() -> None:
    """Nine iterations beside an archived one, few enough files to look through."""
    kept = example_states.documents(example_states.EXAMPLE)
    numbers = {path.split("/")[1] for path in kept if path.startswith("iterations/")}
    assert sorted(numbers) == [f"iteration_{number:03}" for number in range(example_states.ARCHIVED + 1, 11)]
    assert len(kept) < 200
    assert sum(map(len, kept.values())) < 500_000
