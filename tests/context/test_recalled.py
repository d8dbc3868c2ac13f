"""What an agent that asks is reported where much of it says the same, and where little of it has room."""

from __future__ import annotations

import asyncio

import pytest

from memfs import Action, MemoryItem, MemoryLayer, Outcome, StateSnapshot
from memfs.model.episode import Rule
from memfs.model.item import count_tokens


def recalled(layer: MemoryLayer, query: str, **how: int) -> str:
    """What is recalled."""
    return asyncio.run(layer.recall(query, **how))


def fail(layer: MemoryLayer, number: int, error: str) -> None:
    """The same mistake once more."""
    state = StateSnapshot.create([f"carriers/c{number}.py"], f"map the codes of carrier {number}", agent="coder")
    asyncio.run(layer.record_outcome(state, Action("edit", f"mapped code {number}"), Outcome.FAILURE, error))


def test_p1_failures_that_are_alike_are_reported_once_and_the_rule_they_taught_beside_them() -> None:
    """One of many failures with one error, another failure, and the rule (P1)."""
    with MemoryLayer(":memory:") as layer:
        for number in range(40):
            fail(layer, number, f"AssertionError: table {number}.json is older than the adapters of the carrier")
        fail(layer, 99, "PermissionError: the carrier has no key")
        layer.workspace.sources.rules.add_rule(Rule("carrier codes", "Regenerate the table of the carriers.", 0.9))
        answer = recalled(layer, "what went wrong with the codes of a carrier?")
        assert answer.count("is older than the adapters") == 1
        assert "has no key" in answer
        assert "Regenerate the table" in answer
        for most in (200, 250, 300, 400, 2_000):
            assert count_tokens(recalled(layer, "codes of a carrier", max_tokens=most)) <= most


def test_p1_no_number_of_failures_hides_the_rule_they_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule is reported where more failures than are looked at say the words of the question (P1)."""
    monkeypatch.setattr("memfs.recall.recaller._WIDE", 1)
    with MemoryLayer(":memory:") as layer:
        layer.workspace.sources.rules.add_rule(Rule("carrier codes", "Regenerate the table.", 0.9))
        for number in range(70):
            fail(layer, number, "AssertionError: the codes of the carrier are stale, map the codes of the carrier")
        answer = recalled(layer, "map codes of carrier stale", limit=3)
        assert "Regenerate the table." in answer


@pytest.mark.parametrize("most", [None, 200, 1_000])
def test_p1_an_item_that_is_longer_than_the_budget_is_reported_shortened(most: int | None) -> None:
    """What is found does not pass for missing because it is long (P1)."""
    with MemoryLayer(":memory:") as layer:
        layer.workspace.store.put(MemoryItem(f"Begin with the valve. {'Then log the pressure. ' * 900}", id="zeppelin"))
        how = {} if most is None else {"max_tokens": most}
        answer = recalled(layer, "zeppelin valve", **how)
        assert "| id: zeppelin" in answer
        assert "| Begin with the valve." in answer
        assert ("(shortened)" in answer) or ("| passage: only lines 1 to 1 of 1, characters 0 to " in answer)
        assert "Then log the pressure." in answer
        assert count_tokens(answer) <= (most or 2_000)


def test_p1_a_shortened_item_is_reported_from_the_sentence_that_answers() -> None:
    """What has no room whole is quoted from what was asked for, and says that something comes before it (P1)."""
    log = "Then log the pressure. " * 300
    with MemoryLayer(":memory:") as layer:
        layer.workspace.store.put(MemoryItem(f"{log}The zeppelin's codename is kestrel. {log}", id="zeppelin"))
        answer = recalled(layer, "codename of the zeppelin", max_tokens=200)
        assert "| … The zeppelin's codename is kestrel." in answer
        assert count_tokens(answer) <= 200
