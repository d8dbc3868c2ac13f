"""Killed at any moment: what was acknowledged is there, and nothing is torn (faults rows 21, 32; K3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit import aftermath, broken
from kit.beginning import Beginning, fast_folder
from kit.nursery import Job, Nursery
from kit.script import FIRST, State, allowed, scripted
from memfs.errors import ContentError

pytestmark = pytest.mark.faults

POLICIES = (
    {"history.commit": "manual"},
    {"history.commit": "each"},
    {"history.commit": "batch"},
    {"history.commit": "interval", "history.interval_seconds": 0.01},
)
LONGEST_DELAY = 0.03  # about as long as a step with a commit in it
SLOWEST_OPENING = 10.0  # the promise is 2 s; a test machine may be busy with other things
MOST_KILLS_TO_CATCH = 300
MOST_OPERATIONS = 600  # several steps: the first takes about 200
LOOK_CLOSELY_EVERY = 25


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    """Starts writers."""
    with Nursery() as running:
        yield running


@pytest.fixture
def beginning(tmp_path: Path) -> Iterator[Beginning]:
    """A workspace to begin with."""
    with fast_folder(tmp_path) as folder:
        yield Beginning(folder)


@dataclass(slots=True)
class Campaign:
    """One workspace whose writers are killed again and again.

    Attributes:
        state: what the workspace holds, as far as the test knows: never read from the workspace before it was checked.
        slowest: the longest opening after a kill, in seconds.
    """

    root: Path
    nursery: Nursery
    rng: random.Random
    state: State
    kills: int = 0
    acknowledged: int = 0
    slowest: float = 0.0

    def kill_once(self, at_operation: bool = False, variant: str = "") -> list[str]:
        """Start a writer, kill it somewhere, look; return the ids that hold what they may not hold."""
        steps = scripted(self.state, self.rng, 30)
        die_at = self.rng.randint(1, MOST_OPERATIONS) if at_operation else 0
        policy = self.rng.choice(POLICIES)
        writer = self.nursery.start(Job(root=self.root, steps=steps, settings=policy, die_at=die_at, variant=variant))
        if not at_operation:
            writer.wait_until_done(self.rng.choice((0, 0, 1, 1, 2, 3, 5)))
            writer.is_over(LONGEST_DELAY * self.rng.random() ** 2)
            writer.kill()
        done = writer.bury()
        with broken.in_force(variant):
            found = aftermath.look(self.root)
        self.kills += 1
        self.acknowledged += done
        self.slowest = max(self.slowest, found.seconds)
        possible = allowed(self.state, steps, done)
        self.state = found.state
        return [] if found.state in possible else aftermath.lost(found.state, possible) or ["a batch in part"]


@pytest.mark.parametrize("variant", ["early acknowledgement", "no journal"])
def test_21_a_broken_memfs_is_caught_by_killing_it(beginning: Beginning, nursery: Nursery, variant: str) -> None:
    """The same kills find what is lost or torn when a safeguard is missing."""
    campaign = Campaign(beginning.root, nursery, random.Random(variant), FIRST)
    for number in range(MOST_KILLS_TO_CATCH):
        try:
            if campaign.kill_once(at_operation=number % 2 == 0, variant=variant):
                return
        except (AssertionError, ContentError):
            return  # something was left lying about, or a file is torn
    pytest.fail(f"{MOST_KILLS_TO_CATCH} kills did not notice: {variant}")


@pytest.mark.parametrize("at_operation", [False, True], ids=["at any time", "before any operation"])
def test_21_killed_at_any_moment_nothing_acknowledged_is_lost(
    beginning: Beginning,
    nursery: Nursery,
    at_operation: bool,
    scale: Callable[[int, int], int],
    figures: Callable[..., None],
) -> None:
    """kill -9 in put, update, retype, delete, batch, rollback, commit, reindex and maintenance (faults row 21)."""
    campaign = Campaign(beginning.root, nursery, random.Random(21 + at_operation), FIRST)
    lost = []
    for number in range(scale(50, 1000)):
        lost += campaign.kill_once(at_operation=at_operation)
        assert lost == [], f"kill {number}"
        if number % LOOK_CLOSELY_EVERY == LOOK_CLOSELY_EVERY - 1:
            aftermath.assert_whole(campaign.root, campaign.state)
    aftermath.assert_whole(campaign.root, campaign.state)
    assert campaign.acknowledged > campaign.kills / 4
    assert campaign.slowest < SLOWEST_OPENING
    figures(
        f"kill -9 {'before any operation' if at_operation else 'at any time'}",
        points=campaign.kills,
        acknowledged=campaign.acknowledged,
        lost=len(lost),
        torn=0,
        slowest_opening=round(campaign.slowest, 2),
    )
