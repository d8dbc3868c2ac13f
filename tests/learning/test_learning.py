"""Patterns are found as memories are stored, kept once, brought up to date, and suggested (M2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memfs import MemoryItem, Workspace
from memfs.learning import learner
from memfs.learning.learner import PatternStore
from memfs.learning.patterns import Pattern, grown
from memfs.model import Candidate
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.model.learning import Keep
from memfs.model.time import parse_time
from memfs.store.parts import LoadedItem

pytestmark = pytest.mark.usefixtures("learning_written")

Opened = Callable[..., Workspace]
PATIENCE = 60.0


def remember(workspace: Workspace, *texts: str, kind: str = "interaction", **fields: Any) -> list[MemoryItem]:
    """Store memories the way facades do: each raises ``memory_stored``."""
    stored = []
    for text in texts:
        item = workspace.store.put(MemoryItem(text, kind, **fields))
        workspace.behaviours.fire("memory_stored", {"item": item})
        stored.append(item)
    return stored


def logins(*names: str) -> list[str]:
    """Memories that follow one pattern."""
    return [f"create {name} login" for name in names]


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """An empty workspace."""
    return opened()


def test_a_pattern_is_found_in_the_background(workspace: Workspace) -> None:
    """Three similar memories, and a pattern has its own item, found by recall (M2, AC-011-2)."""
    facts: list[Any] = []
    workspace.behaviours.on("pattern_detected", facts.append)

    stored = remember(workspace, *logins("user", "admin", "guest"), context={"project": "shop"})
    assert workspace.patterns.settle(PATIENCE)

    (pattern,) = workspace.patterns.all()
    assert pattern.content == "create {variable} login"
    assert pattern.type == "pattern"
    assert pattern.data["pattern_type"] == "interaction"
    assert pattern.data["occurrences"] == 3
    assert pattern.data["common_context"] == {"project": "shop"}
    assert {link.to for link in pattern.links} == {item.id for item in stored}
    assert [(fact["pattern"].id, fact["found"]) for fact in facts] == [(pattern.id, True)]
    assert pattern.id in [hit.item.id for hit in workspace.recaller.search("create login").hits]
    assert workspace.store.problems() == []


def test_a_pattern_is_stored_once_and_updated(workspace: Workspace) -> None:
    """What follows a pattern later is counted in it: no second one is stored (M2)."""
    remember(workspace, *logins("user", "admin", "guest"))
    workspace.patterns.settle(PATIENCE)
    (before,) = workspace.patterns.all()

    remember(workspace, *logins("root", "service", "auditor"), timestamp="2030-01-01")
    workspace.patterns.settle(PATIENCE)

    (after,) = workspace.patterns.all()
    assert after.id == before.id
    assert (after.data["occurrences"], after.data["confidence"]) == (6, 0.8571)
    assert len(after.data["examples"]) == 3
    assert after.data["last_seen"] == "2030-01-01T00:00:00Z"
    assert after.data["first_seen"] == before.data["first_seen"]


def test_learning_the_same_memory_again_counts_nothing(workspace: Workspace) -> None:
    """Counting is not adding: a memory that is learned from twice is one occurrence (M2)."""
    stored = remember(workspace, *logins("user", "admin", "guest", "root"))
    workspace.patterns.settle(PATIENCE)

    for item in stored:
        assert workspace.patterns.learn(item) is not None

    (pattern,) = workspace.patterns.all()
    assert pattern.data["occurrences"] == 4


def test_what_was_cleared_stays_counted(workspace: Workspace) -> None:
    """Memories that were forgotten since were seen all the same (M2)."""
    stored = remember(workspace, *logins("user", "admin", "guest"))
    workspace.patterns.settle(PATIENCE)
    for item in stored:
        workspace.store.delete(item.id)

    remember(workspace, *logins("root"), timestamp="2030-01-01")
    workspace.patterns.settle(PATIENCE)

    (pattern,) = workspace.patterns.all()
    assert pattern.data["occurrences"] == 4


def test_what_a_pattern_causes_is_not_learned_from(workspace: Workspace) -> None:
    """What reactions store forms no pattern, in whatever words, and the chain ends (L7)."""
    made: list[str] = []

    def react(facts: Any) -> None:
        made.append(facts["pattern"].id)
        remember(workspace, f"create {len(made)} login", f"create {len(made)}b login")

    workspace.behaviours.on("pattern_detected", react)
    remember(workspace, *logins("user", "admin", "guest"))
    assert workspace.patterns.settle(PATIENCE)

    assert len(made) == 1
    assert len(workspace.patterns.all()) == 1


def test_made_memories_patterns_and_secrets_are_not_learned_from(workspace: Workspace) -> None:
    """Patterns, what was made of other memories, and items that hold an allowed secret are left alone."""
    patterns = workspace.patterns
    assert not patterns.later(MemoryItem("create {variable} login", "pattern", id="p"))
    assert not patterns.later(MemoryItem("create x login", id="m", metadata={"promoted_from": "working"}))
    assert not patterns.later(MemoryItem("create x login", id="m", metadata={"learned_from": "task"}))
    assert patterns.learn(MemoryItem("create x login", id="s", metadata={"secret_allowed": "a test key"})) is None


def test_episodes_are_not_learned_from(workspace: Workspace) -> None:
    """What recurs in them becomes rules: a pattern beside these would only repeat it (P4)."""
    state = StateSnapshot.create(["app.py"], "submit the form")
    for number in range(4):
        done = Action("edit", f"submit the form {number}")
        workspace.sources.episodes.record(Episode.create(state, done, "failure", "it timed out"))
    assert workspace.patterns.settle(10)
    assert workspace.patterns.all() == []


def test_a_persons_words_in_a_pattern_stay(workspace: Workspace) -> None:
    """A person may name, tag, pin and reword a pattern; counting changes only what is counted."""
    remember(workspace, *logins("user", "admin", "guest"))
    workspace.patterns.settle(PATIENCE)
    (pattern,) = workspace.patterns.all()
    path = workspace.root / pattern.path
    text = path.read_text().replace("create {variable} login", "create {role} login")
    path.write_text(text.replace("trust: agent", "title: Logins\ntags: [auth]\npinned: true\ntrust: human # mine"))
    workspace.store.refresh([pattern.path])

    remember(workspace, *logins("root"))
    workspace.patterns.settle(PATIENCE)

    (after,) = workspace.patterns.all()
    assert (after.content, after.title, after.tags, after.pinned) == ("create {role} login", "Logins", ("auth",), True)
    assert after.data["occurrences"] == 4
    assert "# mine" in path.read_text()


def test_a_forgotten_pattern_is_not_written_back(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that is forgotten while it is brought up to date stays forgotten."""
    remember(workspace, *logins("user", "admin", "guest"))
    workspace.patterns.settle(PATIENCE)
    (pattern,) = workspace.patterns.all()

    def forgetting(*arguments: Any) -> MemoryItem:
        if workspace.store.get(pattern.id):
            workspace.store.delete(pattern.id)
        return grown(*arguments)

    monkeypatch.setattr(learner, "grown", forgetting)
    workspace.patterns.learn(workspace.store.put(MemoryItem("create root login", "interaction")))

    assert workspace.patterns.all() == []


@pytest.fixture
def two(workspace: Workspace) -> Iterator[tuple[PatternStore, PatternStore]]:
    """Two learners of one workspace, as two processes would be."""
    made = tuple(
        PatternStore(
            workspace.store,
            workspace.parts,
            lambda: workspace.memory_config,
            workspace.behaviours.fire,
            inbox=lambda: workspace.inbox,
            keep=lambda: Keep.WRITE,
        )
        for _ in range(2)
    )
    yield made[0], made[1]
    for one in made:
        one.close()


@pytest.mark.parametrize("words", ["renew the {variable} certificate", "renew the {variable} certificate today"])
def test_two_that_learn_at_once_note_one_pattern(
    workspace: Workspace, two: tuple[PatternStore, PatternStore], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """Anyone who comes second brings the first one's pattern up to date, though it found it in other words (M2)."""
    first, second = two
    items = [workspace.store.put(MemoryItem(f"renew the {name} certificate", "interaction")) for name in "abc"]
    note = PatternStore._note

    def overtaken(self: PatternStore, pattern: Pattern, keep: Keep) -> MemoryItem | None:
        monkeypatch.setattr(PatternStore, "_note", note)
        assert second.learn(items[1]) is not None
        return note(self, replace(pattern, template=words), keep)

    monkeypatch.setattr(PatternStore, "_note", overtaken)
    assert first.learn(items[0]) is not None

    (pattern,) = workspace.patterns.all()
    assert (pattern.content, pattern.data["occurrences"]) == ("renew the {variable} certificate", 3)


def test_an_id_that_is_taken_is_left_alone(workspace: Workspace) -> None:
    """Where something else has the pattern's id, it stays, and no pattern is noted."""
    items = [workspace.store.put(MemoryItem(text, "interaction")) for text in logins("user", "admin", "guest")]
    workspace.store.put(MemoryItem("taken", "semantic", id="create-variable-login-9fed6123"))

    assert workspace.patterns.learn(items[0]) is None
    assert workspace.store.find("create-variable-login-9fed6123").content == "taken"


def test_more_than_are_looked_at_are_counted_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that more memories follow than are read for one counts each new one (M2)."""
    monkeypatch.setattr(learner, "COUNTED", 4)
    stored = [workspace.store.put(MemoryItem(text, "interaction")) for text in logins(*"abcdefgh")]
    first = workspace.patterns.learn(stored[0])
    assert first is not None
    for number in range(9):
        item = workspace.store.put(MemoryItem(f"create n{number} login", "interaction"))
        workspace.patterns.learn(item)

    (after,) = workspace.patterns.all()
    assert after.data["occurrences"] == first.data["occurrences"] + 9


def test_learning_reads_a_bounded_number_of_memories(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many memories there are, learning one looks at few, and never scans the files (M2)."""
    items = [MemoryItem(f"create user login number {number} of many", "interaction") for number in range(150)]
    with workspace.store.batch("many") as batch:
        for item in items:
            batch.put(item)
    fresh = workspace.store.put(MemoryItem("create user login number 200 of many", "interaction"))
    workspace.patterns.learn(fresh)
    loads: list[str] = []
    load = workspace.store.load

    def counting(candidate: Candidate) -> LoadedItem | None:
        loads.append(candidate.id)
        return load(candidate)

    monkeypatch.setattr(workspace.store, "load", counting)
    monkeypatch.setattr(workspace.store, "follow", lambda: pytest.fail("the files were scanned"))

    assert workspace.patterns.learn(fresh) is not None

    assert len(loads) <= learner.COUNTED + learner._KNOWN


def test_suggestions_fit_text_and_circumstances(workspace: Workspace) -> None:
    """A pattern is suggested where the text follows it or the circumstances are its own, and nowhere else (M2)."""
    remember(workspace, *logins("user", "admin", "guest"), context={"project": "shop"})
    remember(workspace, *(f"renew the {name} certificate" for name in "abc"), context={"project": "blog"})
    workspace.patterns.settle(PATIENCE)
    suggest = workspace.patterns.suggest

    (hit,) = suggest("create auditor login", {"project": "shop"})
    assert hit.item.content == "create {variable} login"
    assert hit.reasons["follows"] == 2.0
    assert hit.reasons["context"] == 1.5
    assert hit.reasons["confidence"] == 0.75
    assert [hit.item.content for hit in suggest(context={"project": "blog"})] == ["renew the {variable} certificate"]
    assert suggest("create auditor login", {"project": "blog"}) == []
    assert [hit.item.content for hit in suggest("the login page is slow")] == ["create {variable} login"]
    assert suggest("zebra") == []
    assert len(suggest()) == 2
    assert len(suggest(limit=1)) == 1


def test_catching_up_finds_what_nobody_learned(workspace: Workspace) -> None:
    """Memories that came by hand or by a clone are looked through on demand; a second look changes nothing (M2)."""
    folder = workspace.root / "ContextMemory/memories/interaction/2026-03"
    folder.mkdir(parents=True)
    for number, text in enumerate([*logins("user", "admin", "guest", "root"), "unlike"]):
        (folder / f"m{number}.yaml").write_text(f"content: {text}\ntimestamp: 2026-03-0{number + 1}\n")

    read, caught = workspace.patterns.catch_up()
    _, again = workspace.patterns.catch_up()

    assert read == 5
    assert [(item.content, item.data["occurrences"]) for item in caught] == [("create {variable} login", 4)]
    assert again == []
    (folder / "late.yaml").write_text("content: create late login\n")
    assert [item.data["occurrences"] for item in workspace.patterns.catch_up()[1]] == [5]


def test_many_at_once_are_all_counted(workspace: Workspace) -> None:
    """Of what a busy session stored nothing is missed; what was there before is counted, too (M2)."""
    old = [workspace.store.put(MemoryItem(text, "interaction")) for text in logins("user", "admin")]
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett"]
    remember(workspace, *logins(*words), *(f"renew the {word} certificate" for word in words), "one of a kind")
    assert workspace.patterns.settle(PATIENCE)

    found = {item.content: item.data["occurrences"] for item in workspace.patterns.all()}
    assert found == {"create {variable} login": 10 + len(old), "renew the {variable} certificate": 10}


def test_closing_the_workspace_learns_what_waits(opened: Opened, tmp_path: Path) -> None:
    """A process that ends at once has learned from what it stored, and the next one knows (M7)."""
    first = opened(tmp_path / "W", **{"history.commit": "batch"})
    remember(first, *logins("user", "admin", "guest"))
    first.patterns.patience = PATIENCE
    first.close()

    second = opened(tmp_path / "W")
    (pattern,) = second.patterns.all()

    assert pattern.data["occurrences"] == 3
    assert pattern.timestamp is not None
    assert parse_time(pattern.data["last_seen"]) == pattern.timestamp


def test_thresholds_come_from_the_memory_context(opened: Opened) -> None:
    """``pattern_threshold`` and its neighbours of the memory context hold (M2, M4)."""
    workspace = opened()
    file = workspace.root / "ContextMemory/configuration/memory_context.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("metadata: {type: memory, name: W}\npolymorphic_config:\n  memory_config: {pattern_threshold: 4}\n")

    remember(workspace, *logins("user", "admin", "guest"))
    workspace.patterns.settle(PATIENCE)
    assert workspace.patterns.all() == []
    remember(workspace, *logins("root"))
    workspace.patterns.settle(PATIENCE)

    assert [item.data["occurrences"] for item in workspace.patterns.all()] == [4]
