"""Occasions: what runs when, bounded, and never at the cost of what raised them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from memfs.errors import SettingInvalid
from memfs.workspace import DEEPEST, OCCASIONS, Behaviours


def test_reactions_run_in_order_with_the_facts_until_they_are_ended() -> None:
    """Each reaction gets the facts, in order of registration; one that was ended is not called again."""
    seen: list[tuple[str, Any]] = []
    behaviours = Behaviours()
    behaviours.on("storage_threshold", lambda facts: seen.append(("first", facts["area"])))
    end = behaviours.on("storage_threshold", lambda facts: seen.append(("second", facts["area"])))
    assert behaviours.fire("storage_threshold", {"area": "items"}) == 2
    end()
    assert behaviours.fire("storage_threshold", {"area": "total"}) == 1
    assert seen == [("first", "items"), ("second", "items"), ("first", "total")]


def test_a_failing_reaction_is_reported_and_the_others_run(caplog: pytest.LogCaptureFixture) -> None:
    """A reaction that raises is named and logged; the ones after it run, and nothing reaches the one who raised it."""
    reported: list[Exception] = []
    seen: list[str] = []

    def fail(facts: Any) -> None:
        raise ValueError("broken")

    behaviours = Behaviours(reported.append)
    behaviours.on("backup_made", fail)
    behaviours.on("backup_made", lambda facts: seen.append(facts["path"]))
    with caplog.at_level(logging.ERROR, "memfs"):
        assert behaviours.fire("backup_made", {"path": "here"}) == 1
    assert seen == ["here"]
    assert [str(error) for error in reported] == ["broken"]
    assert "broken" in caplog.text


def test_occasions_that_raise_one_another_end() -> None:
    """A reaction that raises its own occasion again is stopped at a fixed depth, which is reported (L7)."""
    reported: list[Exception] = []
    calls: list[int] = []
    behaviours = Behaviours(reported.append)

    def again(facts: Any) -> None:
        calls.append(1)
        behaviours.fire("backup_made", facts)

    behaviours.on("backup_made", again)
    behaviours.fire("backup_made", {})
    assert len(calls) == DEEPEST
    assert len(reported) == 1
    assert behaviours.fire("backup_failed", {}) == 0  # the depth is counted again for each chain


def test_an_unknown_occasion_names_the_nearest() -> None:
    """A misspelt occasion would never be raised: it is refused with the nearest name."""
    with pytest.raises(SettingInvalid, match="storage_threshold"):
        Behaviours().on("storage_treshold", print)
    with pytest.raises(SettingInvalid):
        Behaviours().fire("nothing", {})


def test_an_alarm_is_logged_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A crossed threshold is in the log even where nobody registered anything (S16)."""
    with caplog.at_level(logging.INFO, "memfs"):
        Behaviours().fire("storage_threshold", {"area": "items", "level": "full"})
        Behaviours().fire("backup_made", {"path": "here"})
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "items" in caplog.text


def test_facts_cannot_be_changed_by_a_reaction() -> None:
    """One reaction cannot change what the next one gets."""
    behaviours = Behaviours()
    errors: list[Exception] = []
    behaviours = Behaviours(errors.append)
    behaviours.on("backup_made", lambda facts: facts.update(path="elsewhere"))
    behaviours.fire("backup_made", {"path": "here"})
    assert isinstance(errors[0], AttributeError)


def test_every_occasion_says_what_it_means() -> None:
    """The table of occasions is documentation, too."""
    assert all(OCCASIONS.values())
