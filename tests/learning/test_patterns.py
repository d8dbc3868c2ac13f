"""What several memories have in common (M2)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from memfs import MemoryItem, SettingInvalid
from memfs.learning.patterns import MOST_WORDS, PatternFinder, fixed_words, grown, item_of, words_of
from memfs.model.time import parse_time


def interactions(*texts: str, kind: str = "interaction", **fields: Any) -> list[MemoryItem]:
    """Memories of one type, a minute apart."""
    return [
        MemoryItem(text, kind, id=f"i{number}", timestamp=parse_time(f"2026-03-01T10:{number:02}:00Z"), **fields)
        for number, text in enumerate(texts)
    ]


LOGINS = interactions("create user login", "create admin login", "create guest login")


def test_the_seeds_example_yields_its_pattern() -> None:
    """Three logins that are created share ``create {variable} login`` (M2)."""
    found = PatternFinder().detect_pattern(LOGINS)

    assert found is not None
    assert found.template == "create {variable} login"
    assert (found.type, found.occurrences, found.members) == ("interaction", 3, ("i0", "i1", "i2"))
    assert found.examples == ("create user login", "create admin login", "create guest login")
    assert (found.first_seen, found.last_seen) == (LOGINS[0].timestamp, LOGINS[2].timestamp)
    assert found.confidence == 0.75


def test_the_order_of_the_memories_changes_nothing() -> None:
    """The same memories give the same pattern under the same id, no matter who finds it first (M2)."""
    found = [PatternFinder().detect_pattern(order) for order in permutations(LOGINS)]

    assert {(one.id, one.template, one.examples) for one in found if one} == {
        ("create-variable-login-9fed6123", "create {variable} login", tuple(item.content for item in LOGINS))
    }


@pytest.mark.parametrize(
    ("texts", "template"),
    [
        (("I like green tea", "I like black tea", "I like iced tea"), "I like {variable} tea"),
        (("Fix the bug in login!", "fix the bug in search", "Fix the bug in billing."), "Fix the bug in {variable}"),
        (("run the tests", "Run the tests.", "run the tests"), "run the tests"),
        (
            ("deploy the shop to staging now", "deploy the blog to production now", "deploy the wiki to staging now"),
            "deploy the {variable} to {variable} now",
        ),
        (
            ("ask Ada about old invoices", "ask Bo about invoices", "ask Cy about invoices"),
            "ask {variable} about invoices",
        ),
    ],
)
def test_templates(texts: tuple[str, ...], template: str) -> None:
    """A stretch of words that differ becomes one variable; letter case and punctuation are not looked at (M2)."""
    found = PatternFinder().detect_pattern(interactions(*texts))

    assert found is not None
    assert found.template == template


@pytest.mark.parametrize(
    "texts",
    [
        ("create user login", "create admin login"),
        ("create user login", "drop the old table", "the meeting is at ten"),
        ("it is a dog", "it is a cat", "it is a cow"),
        ("login", "login", "login"),
        ("word " * (MOST_WORDS + 1) + "a", "word " * (MOST_WORDS + 1) + "b", "word " * (MOST_WORDS + 1) + "c"),
    ],
)
def test_what_is_not_a_pattern(texts: tuple[str, ...]) -> None:
    """Too few, too unlike, nothing but stop words, one word, and long documents share no pattern (M2)."""
    different = [f"{text}{number}" if text.startswith("word") else text for number, text in enumerate(texts)]

    assert PatternFinder().detect_pattern(interactions(*different)) is None


def test_types_do_not_mix_and_patterns_form_none() -> None:
    """Memories of different types share no pattern, and patterns never do (M2: no recursion)."""
    mixed = [*LOGINS[:2], LOGINS[2].replace(memory_type="semantic")]
    detector = PatternFinder()

    assert detector.detect_pattern(mixed) is None
    assert detector.detect_all([item.replace(memory_type="pattern") for item in LOGINS]) == []
    assert detector.are_similar(LOGINS[0], LOGINS[1])
    assert not detector.are_similar(mixed[0], mixed[2])


def test_limits_are_settings() -> None:
    """Threshold, similarity and common words are chosen, and refused where they make no sense (M2)."""
    assert PatternFinder(2).detect_pattern(LOGINS[:2]) is not None
    assert PatternFinder(4).detect_pattern(LOGINS) is None
    assert PatternFinder(similarity=0.6).detect_pattern(LOGINS) is None
    assert PatternFinder(min_common_words=3).detect_pattern(LOGINS) is None
    for wrong in ({"threshold": 1}, {"similarity": 0}, {"similarity": 1.5}, {"min_common_words": 0}):
        with pytest.raises(SettingInvalid, match="out of range"):
            PatternFinder(**wrong)


def test_only_shared_circumstances_are_common() -> None:
    """The common context holds the keys that are equal in all memories (M2)."""
    contexts = [{"project": "shop", "branch": name, "n": 1} for name in "abc"]
    items = [item.replace(context=context) for item, context in zip(LOGINS, contexts, strict=True)]

    found = PatternFinder().detect_pattern(items)

    assert found is not None
    assert found.common_context == {"project": "shop", "n": 1}


def test_several_patterns_are_distinguished() -> None:
    """Each memory belongs to at most one pattern; what fits none is left out."""
    texts = [f"create {who} login" for who in ("user", "admin", "guest")]
    texts += [f"the build of {what} failed again" for what in ("shop", "blog", "wiki", "forum")]

    found = PatternFinder().detect_all(interactions(*texts, "something else entirely"))

    assert [(one.template, one.occurrences) for one in found] == [
        ("create {variable} login", 3),
        ("the build of {variable} failed again", 4),
    ]


def test_who_does_not_fit_is_left_out() -> None:
    """A memory that is similar to one of a group but lacks most of what they share is not a member."""
    texts = [f"send the weekly report to {name} today" for name in ("Ada", "Bo", "Cy", "Di")]

    found = PatternFinder().detect_pattern(interactions("send report to Ada", *texts))

    assert found is not None
    assert found.template == "send the weekly report to {variable} today"
    assert "i0" not in found.members


def test_the_template_shows_what_its_members_share() -> None:
    """Where no memory has all common words, the template is what one can show, and who fits it (M2)."""
    texts = ["red green blue x1", "green blue black x2", "blue black red x3", "black red green x4"]
    detector = PatternFinder(similarity=0.3)

    for found in detector.detect_all(interactions(*texts)):
        members = [item for item in interactions(*texts) if item.id in found.members]
        assert all(detector.follows(item, item_of(found)) for item in members)


def test_groups_are_found_among_many_without_comparing_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among thousands of unlike memories few are compared, and the like ones are found."""
    compared = 0
    near = PatternFinder._near

    def counting(detector: PatternFinder, one: frozenset[str], other: frozenset[str]) -> bool:
        nonlocal compared
        compared += 1
        return near(detector, one, other)

    monkeypatch.setattr(PatternFinder, "_near", counting)
    unlike = [f"w{number} x{number % 7} y{number} z{number} v{number}" for number in range(3000)]
    items = [MemoryItem(text, "interaction", id=f"u{number}") for number, text in enumerate(unlike)]

    found = PatternFinder().detect_all([*items, *LOGINS])

    assert [one.template for one in found] == ["create {variable} login"]
    assert compared < 3000


def test_a_pattern_becomes_an_item_and_grows() -> None:
    """Its item holds template, counts, times, examples and circumstances; what a person wrote into it stays (M2)."""
    found = PatternFinder().detect_pattern(LOGINS)
    assert found is not None
    item = item_of(found).replace(tags=("mine",), data={**item_of(found).data, "note": "look here"})
    fresh = MemoryItem("create root login", "interaction", id="i9", timestamp=parse_time("2026-03-02"))

    more = grown(item, [*LOGINS, fresh], 4)

    assert (more.content, more.tags, more.data["note"]) == ("create {variable} login", ("mine",), "look here")
    assert (more.data["occurrences"], more.data["confidence"]) == (4, 0.8)
    assert (more.data["first_seen"], more.data["last_seen"]) == ("2026-03-01T10:00:00Z", "2026-03-02T00:00:00Z")
    assert more.data["examples"] == item.data["examples"]
    assert more.timestamp == parse_time("2026-03-02")
    assert [link.to for link in item.links] == ["i0", "i1", "i2"]


def test_placeholders_of_any_name_are_variables() -> None:
    """A person may name the variables of a template; they are not words of it."""
    assert fixed_words("when will {shop} deliver to {town}?") == {"when", "will", "deliver", "to"}
    assert words_of("Login, (now)!") == {"login", "now"}


def test_trust_is_at_most_an_agents() -> None:
    """A pattern is not a person's word; one made of what tools brought is a tool's."""
    human = PatternFinder().detect_pattern(LOGINS)
    tools = PatternFinder().detect_pattern([LOGINS[0], LOGINS[1], LOGINS[2].replace(trust="tool")])

    assert human is not None
    assert tools is not None
    assert (human.trust, tools.trust) == ("agent", "tool")
