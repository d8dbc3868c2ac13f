"""The co-scientist example does what it says (S20)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

CODE = Path(__file__).resolve().parents[2] / "examples" / "co_scientist"
MODULES = ("run", "supervisor", "agents", "parcels")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example's program, imported."""
    monkeypatch.syspath_prepend(str(CODE))
    before = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    import run as program

    yield program
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(before)


def test_it_crashes_recovers_learns_and_looks_at_itself(
    run: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The three scenarios run one after the other, shortened, and say what they show (S4-S7, S10, S11)."""
    folder = tmp_path / "lab"
    run.recovery(folder, crash=2)
    run.work(folder, 3, 4)
    run.feedback(folder, 4)
    run.analysis(folder)
    output = capfd.readouterr().out
    assert "match m02-1 is played, and then: kill -9" in output
    assert "a result already had m02-1\n" in output
    assert "played now: m02-2; nothing was done twice" in output
    assert "Look at parcels with" in output
    assert "weight 1.00 ->" in output
    assert "iteration 5 begins with that weight" in output


def test_what_it_proposes_follows_the_review(run: ModuleType, tmp_path: Path) -> None:
    """What the review names to the generating agent is what that proposes in the next iteration (S4, S5)."""
    from roles import Board, Generation

    with run.ContextMemory(tmp_path / "lab") as memory:
        advice = {"Generation": ["Look at parcels with depot=south and weight=light: they are not explained"]}
        memory.store_meta_review({"iteration_number": 1, "critique": {"agent_feedback": advice}})
        memory.close_iteration(1)
        memory.start_iteration(2)
        name = Generation(memory).run(2, Board())
        assert Board.read(memory, 2).hypotheses[name]["causes"] == [["depot=south", "weight=light"]]
        (output,) = memory.retrieve_state("full").content.agent_states["Generation"]["outputs"]
        assert output["results"]["metadata"]["strategy"] == "follow feedback"
