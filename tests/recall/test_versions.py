"""Versions of a fact: the newest is the hit, and the earlier ones are listed beneath it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs import MemoryItem, Query, Workspace
from memfs.model import Hit, Recall
from memfs.model.item import Link, Origin
from memfs.recall.ranking import HitSelection
from memfs.recall.versions import asks_for_earlier, is_earlier

Opened = Callable[..., Workspace]

OLD = "2026-03-01"
NEW = "2026-06-01"


def item(item_id: str, content: str, day: str = OLD, kind: str = "semantic", **fields: Any) -> MemoryItem:
    """An item of that day."""
    return MemoryItem(content, kind, id=item_id, timestamp=day, **fields)


def asked(workspace: Workspace, text: str, *items: MemoryItem, **fields: Any) -> Recall:
    """The answer to a question, of a workspace with these items."""
    for one in items:
        workspace.store.put(one)
    return workspace.recaller.search(Query(text=text, deduplicate=True, **fields))


def shown(answer: Recall) -> dict[str, list[str]]:
    """The ids of the hits, each with those of its earlier versions."""
    return {hit.item.id: [one.id for one in hit.earlier] for hit in answer}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The deploy window is Tuesday.", "The deploy window is Thursday."),
        ("The deploy window is Tuesday", "The deploy window moved to Thursday"),
        ("The deploy window is Tuesday.", "The deploy window has been moved from Tuesday to Thursday."),
        ("The API timeout is 30 seconds", "We raised the API timeout from 30 seconds to 60 seconds."),
        ("The API timeout is 30 seconds.", "The API timeout is now 60 seconds."),
        ("retention: 30 days", "retention: 90 days"),
        ("The build uses caching.", "The build does not use caching any more."),
        ("Our main database is MySQL.", "Our main database is PostgreSQL."),
        ("The backup happens weekly. Ask Ana.", "The backup happens monthly. Ask Ana."),
        ("We use MySQL as the database of billing", "We moved to PostgreSQL as the database of billing"),
        ("We use Jenkins for CI.", "We have migrated from Jenkins to GitLab for CI."),
        ("The standup is at 9:30.", "We moved the standup to 10:00."),
        ("The office is in Munich.", "The office moved to Berlin."),
    ],
)
def test_another_value_of_the_same_thing_is_a_later_version(older: str, newer: str) -> None:
    """Of two brief statements that differ in the value alone the later one is the newer version, never the earlier."""
    before, since = item("a", older), item("b", newer, NEW)
    assert is_earlier(before, since)
    assert not is_earlier(since, before)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The API timeout is 30 seconds.", "The upload timeout is 60 seconds."),
        ("The API timeout is 30 seconds.", "The API timeout is 30 seconds in every region."),
        ("The deploy window is Tuesday. Ask Ana for access.", "The deploy window is Thursday."),
        ("Task 12 is done on Tuesday", "Task 13 is done on Tuesday"),
        ("We deployed on Tuesday.", "We deployed on Thursday."),
        ("Ana likes tea.", "Bob likes coffee."),
        ("The team uses Python.", "The team uses Rust."),
        ("Ana spoke at PyCon about typing.", "Ana spoke at FOSDEM about packaging."),
        ("We use Jenkins for CI.", "We moved to Berlin for the summer."),
    ],
)
def test_distinct_facts_are_not_versions(older: str, newer: str) -> None:
    """What may hold beside the other, or says more than the other replaces, is not a version of it."""
    assert not is_earlier(item("a", older), item("b", newer, NEW))


@pytest.mark.parametrize(
    ("before", "since"),
    [
        ({"title": "Staging"}, {"title": "Production"}),
        ({"tags": ("staging",)}, {"tags": ("production",)}),
        ({"context": {"env": "staging"}}, {"context": {"env": "production"}}),
        ({"context": {"project": "shop"}}, {"context": {"project": "blog"}}),
        ({"links": (Link(to="b", relation="compatible"),)}, {}),
        ({"kind": "episodic"}, {"kind": "episodic"}),
        ({"kind": "procedural"}, {}),
        ({"kind": "conversation", "origin": Origin(session="s", sequence=1)}, {"kind": "conversation"}),
        ({}, {"day": OLD}),
        ({}, {"status": "retired"}),
        ({}, {"trust": "tool"}),
    ],
)
def test_what_distinguishes_two_things_keeps_both(before: dict[str, Any], since: dict[str, Any]) -> None:
    """Other titles, tags, circumstances, projects or types, one day, a decision that both hold, and less trust."""
    older = item("a", "The limit is 5 requests", **before)
    newer = item("b", "The limit is 9 requests", **{"day": NEW, **since})
    assert not is_earlier(older, newer)


def test_what_says_that_it_supersedes_another_is_its_newer_version() -> None:
    """However long and different both are, and whatever the dates; but not while it is only proposed."""
    older = item("a", "We deploy by hand. " * 40, NEW)
    assert is_earlier(older, item("b", "Deployments are automatic", supersedes=("a",)))
    assert is_earlier(older.replace(links=(Link(to="b", relation="superseded_by"),)), item("b", "Deployments"))
    assert not is_earlier(older, item("b", "Deployments are automatic", supersedes=("a",), status="proposed"))


def test_a_contradiction_that_was_noted_makes_versions_of_single_statements() -> None:
    """A link is enough where each is one statement; what says more keeps its place."""
    newer = item("b", "Ship from the release branch", NEW, links=(Link(to="a", relation="contradicts"),))
    assert is_earlier(item("a", "Ship from main"), newer)
    assert not is_earlier(item("a", "Ship from main. Tag each release."), newer)


def test_the_newest_version_takes_the_best_place_and_shows_the_earlier_ones(opened: Opened) -> None:
    """Three values of one thing are one hit: the newest, with the others beneath it, the latest first."""
    answer = asked(
        opened(),
        "API timeout is 30 seconds",
        item("first", "The API timeout is 30 seconds."),
        item("third", "We raised the API timeout to 90 seconds.", "2026-07-01"),
        item("second", "The API timeout is 60 seconds.", "2026-05-01"),
        item("other", "The upload timeout is 10 seconds."),
    )
    assert shown(answer) == {"third": ["second", "first"], "other": []}
    best = answer.hits[0]
    assert str(best.earlier[1]) == "first (2026-03-01): The API timeout is 30 seconds."
    assert best.reasons["newest"] > 1
    assert answer.duplicates == {}


def test_earlier_versions_take_no_place(opened: Opened) -> None:
    """The newest version is found below the last place, and another hit comes where an earlier one was."""
    rest = [item(f"other-{number}", f"deploy window {number * 'x'}") for number in range(1, 4)]
    answer = asked(
        opened(),
        "deploy window tuesday",
        item("old", "The deploy window is Tuesday."),
        item("new", "The deploy window is Thursday.", NEW),
        *rest,
        limit=2,
    )
    assert list(shown(answer).values()) == [["old"], []]
    assert answer.hits[0].item.id == "new"
    assert answer.more


@pytest.mark.parametrize(
    "question",
    [
        "what was the deploy window before",
        "previous deploy window",
        "deploy window in March",
        "deploy window used to be",
    ],
)
def test_a_question_about_the_past_gets_the_earlier_version(opened: Opened, question: str) -> None:
    """Then each version is a hit of its own."""
    found = asked(
        opened(),
        question,
        item("old", "The deploy window is Tuesday."),
        item("new", "The deploy window is Friday.", NEW),
    )
    assert set(shown(found)) == {"old", "new"}
    assert not any(shown(found).values())


def test_no_version_is_grouped_where_every_hit_is_wanted(opened: Opened) -> None:
    """Without ``deduplicate`` each item is a hit."""
    workspace = opened()
    old, new = item("old", "The limit is 5 requests"), item("new", "The limit is 9 requests", NEW)
    asked(workspace, "limit", old, new)
    assert set(shown(workspace.recaller.search(Query(text="limit")))) == {"old", "new"}


def test_an_earlier_version_costs_its_line(opened: Opened) -> None:
    """The budget pays for the line; where it has none for it, the earlier one has no room."""
    workspace = opened()
    old, new = item("old", "The limit is 5 requests"), item("new", "The limit is 9 requests", NEW)
    both = asked(workspace, "limit requests", old, new)
    alone = asked(workspace, "limit requests", max_tokens=both.tokens - 1)
    assert shown(alone) == {"new": []}
    assert alone.without_room == ("old",)
    assert asked(workspace, "limit requests", max_tokens=both.tokens).hits == both.hits


def test_why_not_says_of_what_it_is_an_earlier_version(opened: Opened) -> None:
    """``why_not`` names the newest one."""
    workspace = opened()
    old, new = item("old", "The limit is 5 requests"), item("new", "The limit is 9 requests", NEW)
    query = Query(text="limit requests", deduplicate=True)
    asked(workspace, "limit", old, new)
    answer = workspace.why_not("old", query)
    assert (answer.reason, answer.repeats) == ("version", "new")
    assert answer.explanation == "it is an earlier version of the hit new"


@pytest.mark.parametrize("question", ["limit 5 requests", "limit 9 requests"])
def test_what_repeats_an_earlier_version_is_one_too(opened: Opened, question: str) -> None:
    """Whichever was found first: it is left out with the newest's id, and ``why_not`` calls it an earlier version."""
    workspace = opened()
    text = "The limit is 5 requests"
    answer = asked(
        workspace, question, item("a", text), item("b", f"{text}!"), item("new", "The limit is 9 requests", NEW)
    )
    assert list(shown(answer)) == ["new"]
    reasons = {name: workspace.why_not(name, answer.query) for name in ("a", "b")}
    assert {(one.reason, one.repeats) for one in reasons.values()} == {("version", "new")}
    assert set(answer.duplicates.values()) <= {"new"}


def test_text_of_less_trust_is_named_as_such(opened: Opened) -> None:
    """An agent's statement that a person corrected is shown as an agent's."""
    answer = asked(
        opened(),
        "limit",
        item("old", "The limit is 5 requests", trust="agent"),
        item("new", "The limit is 9 requests", NEW, trust="human"),
    )
    assert [str(one) for one in answer.hits[0].earlier] == ["old (2026-03-01, by agent): The limit is 5 requests"]


def test_questions_about_the_past_are_known() -> None:
    """By what they say; a plain question is none."""
    assert asks_for_earlier("what did it use to be, I mean what used to be the limit")
    assert asks_for_earlier("wie war das früher")
    assert not asks_for_earlier("when is the deploy window")


@pytest.mark.parametrize(
    "question",
    ["which port does this orders service listen on", "which port may the orders service listen on first and last"],
)
def test_ordinary_words_are_not_a_question_about_the_past(opened: Opened, question: str) -> None:
    """Words that may be part of a time, but name none here, leave the newest version alone as the hit."""
    old = item("old", "The orders service port is 5000")
    new = item("new", "The orders service port is 6000", NEW)
    answer = asked(opened(), question, old, new)
    assert shown(answer) == {"new": ["old"]}


@pytest.mark.parametrize("question", ["limit in March", "limit last year", "limit before", "limit prior to the move"])
def test_a_named_time_brings_each_version(opened: Opened, question: str) -> None:
    """A question that names a time, or says that it asks for what was, has each version as a hit."""
    old, new = item("old", "The limit is 5 requests"), item("new", "The limit is 9 requests", NEW)
    assert set(shown(asked(opened(), question, old, new))) == {"old", "new"}


def test_what_is_beneath_a_hit_is_named_by_that_hit_under_a_tight_budget() -> None:
    """An earlier version for whose line the budget had no room is one of the hit that takes the place of its own."""
    texts = [f"The limit is {number} requests" for number in (5, 7, 9)]
    first, second, third = (item(str(at), text, f"2026-0{at + 1}-01") for at, text in enumerate(texts))
    chosen = HitSelection(Query(text="limit requests", deduplicate=True, max_tokens=12))
    assert chosen.offer(Hit(item=second, score=3.0))
    chosen.offer(Hit(item=first, score=2.0))
    chosen.offer(Hit(item=third, score=1.0))
    assert [hit.item.id for hit in chosen.hits] == ["2"]
    assert chosen.versions == {"0": "2", "1": "2"}


def test_a_mark_is_that_of_versions_too() -> None:
    """What has the mark of an earlier version, or of the newest one, repeats the hit."""
    one, other = item("old", "The limit is 5 requests"), item("new", "The limit is 9 requests", NEW)
    again = [item("a", "Five at most", tags=("m-old",)), item("b", "Nine at most", tags=("m-new",))]
    marks = {"old": "m-old", "new": "m-new"}
    chosen = HitSelection(
        Query(text="limit requests", deduplicate=True, limit=9),
        mark=lambda held: marks.get(held.id) or held.tags[0],
    )
    for held in (one, other, *again):
        chosen.offer(Hit(item=held, score=1.0))
    assert [hit.item.id for hit in chosen.hits] == ["new"]
    assert chosen.duplicates == {"a": "new", "b": "new"}
    assert chosen.versions == {"old": "new", "a": "new"}
    assert not chosen.join(Hit(item=item("c", "Nine", tags=("m-new",)), score=0.5))
    assert chosen.duplicates["c"] == "new"
