"""Learning from use: what was opened, corrected, praised or refused moves the ranking a little, within bounds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs import MemoryItem, Query, Workspace
from memfs.recall.use_weights import UseWeights, learned
from memfs.store.access_log import FOLDER, HELPED, REFUSED, AccessRecord, ServedLog, served_to
from tests.doors.agent_tool import tool

Opened = Callable[..., Workspace]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAIN = {"score": 2.0, "text": 2.0, "importance": 1.0}
BESIDE = {"score": 1.9, "text": 1.9, "importance": 1.0, "neighbours": 1.0}
MOST, LEAST = 1.5, 0.66


def row(way: str, *ids: str, at: float = 0, agent: str = "scout", session: str = "s", **more: Any) -> AccessRecord:
    """A line of the record, so many minutes after noon."""
    record = AccessRecord(NOON + timedelta(minutes=at), way, "mcp", agent, session, ids)
    return record._replace(**more)


def answers(number: int, opened: str, agent: str = "scout", beside: str = "other") -> Iterator[AccessRecord]:
    """Answers in which one of three hits, that with the words of the question beside it, was opened."""
    for count in range(number):
        ids = (f"{beside}-{count}", opened, "third")
        reasons = dict(zip(ids, (PLAIN, BESIDE, PLAIN), strict=True))
        yield row("recall", *ids, at=count, agent=agent, reasons=reasons)
        yield row("read", opened, at=count, agent=agent)


# -- off by default -----------------------------------------------------------------------------------------------
def test_nothing_is_learned_or_noted_unless_it_is_asked_for(opened: Opened) -> None:
    """Without ``recall.learn`` the record is what it was: no scores, nothing of feedback; and no score is moved."""
    workspace = opened()
    workspace.store.put(MemoryItem("the staging server", id="staging"))
    workspace.recall("staging")
    workspace.feedback.give("staging", True)
    (line,) = workspace.usage.served.newest(1 << 20)
    assert line.way == "recall"
    assert line.reasons == {}
    assert workspace.learned() is None
    assert "learned" not in workspace.recall("staging").hits[0].reasons


# -- what counts as use -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rows", "mark"),
    [
        ([row("read", "b", at=1)], 1),
        ([row("read", "b", at=61)], 0),
        ([row("read", "b", at=1, agent="other")], 0),
        ([row("read", "b", at=1, session="t")], 0),
        ([row("read", "a", "b", at=1)], 0),
        ([row("helped", "b", at=600, agent="", session="")], 1),
        ([row("corrected", "b", at=600)], 1),
        ([row("refused", "b", at=600)], -1),
        ([row("refused", "b", at=1500)], 0),
        ([row("refused", "b", at=1), row("read", "b", at=2)], -1),
        ([row("refused", "b", at=1), row("helped", "b", at=2)], 1),
        ([row("helped", "z", at=1)], 0),
    ],
)
def test_what_happens_to_a_hit_shows_whether_it_was_used(rows: Sequence[AccessRecord], mark: int) -> None:
    """It was, if the same agent opened it within an hour, or somebody corrected or praised it within a day."""
    before = row("recall", "c", "d"), row("helped", "c"), row("helped", "d")
    found = learned([*before, row("recall", "a", "b"), *rows])
    assert found.answers == 1 + abs(mark)
    moved = found.items.get("b", 0.0) - found.items.get("a", 0.0)
    assert (moved > 0) - (moved < 0) == mark


def test_what_came_before_the_answer_says_nothing_of_it() -> None:
    """What is opened before it was shown was found in another way."""
    assert learned([row("read", "b"), row("recall", "a", "b", at=1)]) == UseWeights()


# -- what is learned ----------------------------------------------------------------------------------------------
def test_a_factor_counts_for_more_where_what_was_used_has_it() -> None:
    """Where the answer is mostly beside the words of the question, what is beside them gains."""
    found = learned(answers(40, "used"))
    assert found.weights["neighbours"] > 0.1
    assert found.factor("new", BESIDE) > found.factor("new", PLAIN) == 1.0


def test_few_signals_hardly_move_anything() -> None:
    """One answer moves no score by more than a twentieth."""
    found = learned(answers(1, "used"))
    assert found.answers == 1
    assert 0.95 < found.factor("other-0", PLAIN) < 1.0 < found.factor("used", BESIDE) < 1.15


def test_one_agent_cannot_push_its_own_memory_far() -> None:
    """A thousand times used is no more than ten times, the same answer again is none; and nothing leaves the bounds."""
    ten, thousand = learned(answers(10, "own")), learned(answers(1_000, "own"))
    assert thousand == ten
    assert learned([*answers(1, "own")] * 1_000) == learned(answers(1, "own"))
    mixed = learned([line for name in range(100) for line in answers(10, f"own-{name}", beside=f"{name}")])
    assert mixed.weights["neighbours"] == 0.5
    assert all(abs(moved) <= 0.25 for moved in mixed.items.values())
    assert mixed.factor("own-1", BESIDE | {"neighbours": 100.0}) < MOST


def test_what_is_learned_fades() -> None:
    """Where people begin to use something else, that counts in the end."""
    turned = [line._replace(reasons={}) if line.way == "recall" else line for line in answers(9, "new")]
    before = learned(answers(10, "used"))
    after = learned([*answers(10, "used"), *turned])
    assert 0 < after.weights["neighbours"] < before.weights["neighbours"]


def test_the_score_that_was_learned_from_counts_without_what_was_learned() -> None:
    """What was learned before is no reason to learn it again."""
    raised = {**BESIDE, "score": 1.9 * 1.4, "learned": 1.4}
    lines = [
        line._replace(reasons={key: raised if value is BESIDE else value for key, value in line.reasons.items()})
        for line in answers(5, "used")
    ]
    assert learned(lines).weights["neighbours"] == pytest.approx(learned(answers(5, "used")).weights["neighbours"])


names = st.sampled_from(["a", "b", "c"])
values = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-2, 2)
factors = st.dictionaries(
    st.sampled_from(["score", "text", "neighbours", "session", "when", "recency", "learned"]), values
)
lines = st.builds(
    lambda way, ids, reasons: row(way, *ids, reasons=reasons),
    st.sampled_from(["recall", "read", HELPED, REFUSED]),
    st.lists(names, min_size=1, max_size=3, unique=True),
    st.dictionaries(names, factors),
)


@given(st.lists(lines, max_size=20), names, factors)
def test_no_record_leads_out_of_the_bounds(rows: list[AccessRecord], name: str, reasons: Mapping[str, float]) -> None:
    """Whatever is in a record, and whatever makes a score, it is changed by a half more or a third less at most."""
    assert LEAST < learned(rows).factor(name, reasons) < MOST


# -- in a workspace -----------------------------------------------------------------------------------------------
@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """Twelve memories of which nothing but their ids gives the order, and a ranking that learns."""
    found = opened(recall__learn=True)
    for number in range(12):
        found.store.put(MemoryItem(f"the staging server number{number} is up", id=f"server-{number:02}"))
    return found


def use(workspace: Workspace, name: str, times: Iterable[int] = range(10)) -> None:
    """Ask for a few, and open one of them."""
    for number in times:
        workspace.recall(f"staging server number{number}", limit=12)
        workspace.usage.served.note("read", [name], workspace.parts.clock())


def test_what_is_used_comes_first_and_the_answer_says_why(workspace: Workspace) -> None:
    """It has a factor ``learned`` of its own; named, the strategy ``default`` is without it."""
    use(workspace, "server-07")
    best = workspace.recall("staging server").hits[0]
    assert best.item.id == "server-07"
    assert 1.0 < best.reasons["learned"] < MOST
    assert best.score == pytest.approx(prod(best.reasons.values()))
    plain = workspace.recall("staging server", strategy="default").hits
    assert plain[0].item.id == "server-00"
    assert all("learned" not in hit.reasons for hit in plain)


def test_it_counts_for_every_strategy_that_doors_choose(workspace: Workspace) -> None:
    """Agents are answered by ``fading``, and ``MemoryContext`` by ``learning``: there it counts, too."""
    use(workspace, "server-07")
    for name in ("fading", "learning", "time_weighted"):
        assert workspace.recall("staging server", strategy=name).hits[0].reasons["learned"] > 1.0
    assert workspace.sources.delivery.recall("staging server").ids[0] == "server-07"


def test_nothing_asked_is_nothing_ranked(workspace: Workspace) -> None:
    """The newest items stay in the order of time."""
    before = [hit.item.id for hit in workspace.recall("")]
    use(workspace, "server-07")
    assert [hit.item.id for hit in workspace.recall("")] == before


def test_the_same_record_teaches_the_same_and_without_it_nothing_is_left(workspace: Workspace, opened: Opened) -> None:
    """Nothing is kept beside the record: another process learns what it holds, and deleting it forgets all."""
    use(workspace, "server-07")
    again = opened(workspace.root, recall__learn=True)
    assert again.learned() == learned(workspace.usage.served.newest(1 << 20)) != UseWeights()
    shutil.rmtree(workspace.repository.state / FOLDER)
    assert again.learned() == UseWeights()


def test_switched_off_the_order_is_what_it_was(workspace: Workspace, opened: Opened) -> None:
    """No file says what was learned, so nothing has to be taken back."""
    before = [(hit.item.id, hit.score) for hit in workspace.recall("staging server")]
    use(workspace, "server-07")
    off = opened(workspace.root)
    assert [(hit.item.id, hit.score) for hit in off.recall("staging server")] == before


def test_feedback_and_corrections_are_not_handing_out(workspace: Workspace) -> None:
    """They are in the record, for learning alone: who was given what is reported as before."""
    tool(workspace, "memory_search", query="staging server", limit=3)
    tool(workspace, "memory_feedback", id="server-00", helpful=True)
    tool(workspace, "memory_feedback", id="server-01", helpful=False)
    tool(workspace, "memory_update", id="server-02", content="the staging server is down")
    ways = [line.way for line in workspace.usage.served.newest(1 << 20)]
    assert ways == ["recall", "helped", "refused", "corrected"]
    assert [line.way for line in workspace.usage.served.find()] == ["recall"]
    found = workspace.learned()
    assert found is not None
    assert found.answers == 1
    assert found.items["server-00"] == found.items["server-02"] > found.items["server-01"]


def test_each_way_to_an_answer_notes_what_made_its_scores(workspace: Workspace) -> None:
    """Of a question in Python, and of one by an agent's door, score and factors of each hit are on record."""
    workspace.recaller.search(Query(text="staging", limit=2))
    tool(workspace, "memory_search", query="staging", limit=2)
    for line in workspace.usage.served.newest(1 << 20):
        assert line.reasons.keys() == set(line.ids)
        assert all({"score", "text"} <= one.keys() for one in line.reasons.values())


def test_after_an_erase_nothing_is_learned_of_what_was_noted_before(workspace: Workspace) -> None:
    """Neither its id nor its scores stay in the record, which goes as a whole."""
    use(workspace, "server-07")
    assert workspace.learned() != UseWeights()
    workspace.eraser.erase("server-07")
    assert not (workspace.repository.state / FOLDER / "log.jsonl").exists()
    assert workspace.learned() == UseWeights()


def test_what_somebody_wrote_into_the_record_is_passed_over(tmp_path: Path) -> None:
    """A line that memfs does not write says nothing, and keeps nothing from being learned."""
    (tmp_path / "git").mkdir()
    log = ServedLog(tmp_path / "git" / "memfs" / "key" / FOLDER, reasons=True)
    with served_to("mcp"):
        log.note("recall", ["a", "b"], NOON)
        log.note("read", ["a"], NOON)
    path = tmp_path / "git" / "memfs" / "key" / FOLDER / "log.jsonl"
    good = learned(log.newest(1 << 20))
    line = json.loads(path.read_text().split("\n")[1])
    odd: tuple[object, ...] = ({"a": 1}, {"a": {"score": "much"}}, [], 7, {"a": {"score": None}})
    more = "".join(json.dumps(line | {"reasons": one}) + "\n" for one in odd)
    path.write_text(path.read_text() + more)
    assert learned(log.newest(1 << 20)) == good
