"""Whatever happens to files, a review reports of each memory what a plain comparison of the two sides would (B4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from changes import BELOW, Team
from hypothesis import HealthCheck, given
from hypothesis import settings as chosen
from hypothesis import strategies as st

NAMES = [f"n{number}" for number in range(5)]
KINDS = ["semantic", "knowledge", "procedural"]
State = Mapping[str, tuple[str, int]]
"""By id the type of an item, and which of a few texts it has."""
states: st.SearchStrategy[State] = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from(KINDS), st.integers(0, 3)), max_size=5
)
WORDS = [
    "The heron waits by the lake.",
    "Ovens need an hour to cool.",
    "Maps fade in sunlight.",
    "Rope is sold by length.",
]


def lay(team: Team, state: State) -> None:
    """Make the folder hold exactly these items, each with a text of its own."""
    for path in (team.root / BELOW).rglob("*.yaml"):
        path.unlink()
    for name, (kind, text) in state.items():
        team.item(f"{kind}/{name}", f"{name * 3} {WORDS[text]}")
    team.write("unrelated.txt", str(sorted(state.items())))


def expected(before: State, after: State) -> dict[str, str]:
    """What became of each id."""
    found = {name: "added" for name in after if name not in before}
    found |= {name: "removed" for name in before if name not in after}
    for name in before.keys() & after.keys():
        (old_kind, old), (new_kind, new) = before[name], after[name]
        if old_kind != new_kind:
            found[name] = "moved"
        elif old != new:
            found[name] = "changed"
    return found


@chosen(max_examples=chosen.default.max_examples // 5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(states, min_size=2, max_size=2))
def test_a_review_is_what_a_comparison_gives(steps: list[State], tmp_path_factory: object) -> None:
    """Over random changes each id has the change that the two sides show (B4)."""
    team = Team(Path(tmp_path_factory.mktemp("model")) / "team")  # type: ignore[attr-defined]
    before, after = steps
    lay(team, before)
    team.git("add", "--all")
    team.git("commit", "--quiet", "--allow-empty", "-m", "before")
    team.git("branch", "--force", "start")
    lay(team, after)
    team.git("add", "--all")
    team.git("commit", "--quiet", "--allow-empty", "-m", "after")
    report = team.review("start..HEAD")
    assert {change.id: change.what for change in report.items} == expected(before, after)
    for change in report.items:
        if change.what == "changed":
            assert [field.field for field in change.fields] == ["content"]
