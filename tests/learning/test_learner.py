"""When memfs learns by itself, and what becomes of it (D1, M2, P4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import (
    Action,
    MemoryContext,
    MemoryCoordinator,
    MemoryItem,
    MemoryLayer,
    Outcome,
    StateSnapshot,
    Workspace,
    open_workspace,
)
from memfs.doors.claude_code.hook import Hook
from memfs.learning import rules
from memfs.learning.learner import MARK, as_program
from memfs.model import Query
from memfs.model.learning import Keep, Source, SuggestionDecision
from memfs.model.query import MOST

Opened = Callable[..., Workspace]
PATIENCE = 60.0


def store(workspace: Workspace, *names: str, verb: str = "create") -> list[MemoryItem]:
    """Memories that follow one pattern, stored as any door may do it."""
    stored = [workspace.store.put(MemoryItem(f"{verb} {name} login", "interaction")) for name in names]
    for item in stored:
        workspace.behaviours.fire("memory_stored", {"item": item})
    return stored


def kinds(workspace: Workspace) -> list[str]:
    """The types of all items."""
    return sorted(item.type for item in workspace.store.select(Query(limit=MOST)))


def waiting(workspace: Workspace) -> list[str]:
    """What waits in the inbox."""
    return sorted(one.item.content for one in workspace.inbox.waiting())


def fail(workspace: Workspace, times: int = 4) -> None:
    """Fail at the same thing again and again."""
    for _ in range(times):
        state = StateSnapshot.create(["src/auth.py"], "edit the token check")
        episode = rules_episode(state)
        workspace.sources.episodes.record(episode)


def rules_episode(state: StateSnapshot) -> Any:
    """One failure."""
    from memfs.model.episode import Episode

    return Episode.create(
        state, Action("Edit", "edited the token check"), "failure", "test_login failed: KeyError 'sub'"
    )


def test_a_pass_learns_from_what_came_whatever_way(opened: Opened) -> None:
    """Nothing is learned while memories are stored; a pass finds their pattern (D1, M2)."""
    workspace = opened()
    items = store(workspace, "user", "admin", "guest")
    assert workspace.patterns.settle(PATIENCE)
    assert workspace.inbox.all() == ()

    assert workspace.learner.run().read == 3
    assert waiting(workspace) == ["create {variable} login"]
    file = workspace.root / items[0].path
    (file.parent / "by-hand.yaml").write_text("content: create auditor login\n")
    workspace.learner.run()
    (one,) = workspace.inbox.waiting()
    assert (one.count, "by-hand" in one.evidence, one.source) == (4, True, Source.PATTERN)
    assert kinds(workspace) == ["interaction"] * 4


def test_many_at_once_are_looked_through_together(opened: Opened) -> None:
    """After an import all memories are looked through, and what was found before counts on (M2)."""
    workspace = opened()
    store(workspace, "user", "admin", "guest")
    workspace.learner.run()
    with workspace.store.batch("Import") as batch:
        for number in range(120):
            batch.put(MemoryItem(f"create a{number} login", "interaction"))
            batch.put(MemoryItem(f"renew the b{number} certificate", "interaction"))

    assert workspace.learner.run().read == 243
    counts = {one.item.content: one.count for one in workspace.inbox.waiting()}
    assert counts == {"create {variable} login": 123, "renew the {variable} certificate": 120}
    for one in workspace.inbox.waiting():
        assert len(one.evidence) == 64
        assert {link.to for link in one.item.links} <= {*one.evidence}
    (login, other) = sorted(workspace.inbox.waiting(), key=lambda one: one.item.content)
    workspace.inbox.refuse([login])
    (workspace.repository.state / MARK).unlink()
    workspace.learner.run()
    assert [one.id for one in workspace.inbox.waiting()] == [other.id]


def test_a_pass_that_has_no_time_goes_on_with_the_next(opened: Opened) -> None:
    """What a short pass leaves, the next one takes; a mark nobody can read means everything again (D1)."""
    workspace = opened()
    store(workspace, "user", "admin", "guest")
    short = workspace.learner.run(seconds=0.0)
    assert (short.read, short.left) == (0, 3)
    assert workspace.learner.run(seconds=PATIENCE).left == 0
    assert waiting(workspace) == ["create {variable} login"]
    for mark in (b"never", b"99999999999999999999999"):
        (workspace.repository.state / MARK).write_bytes(mark)
        assert workspace.learner.run().read == 3
    assert [one.count for one in workspace.inbox.waiting()] == [3]


@pytest.mark.parametrize("keep", [Keep.OFF, Keep.SUGGEST, Keep.WRITE])
def test_the_settings_are_obeyed(opened: Opened, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    """``learning.*`` says what becomes of patterns, rules and what a task taught (D1, M2, P4)."""
    monkeypatch.setattr(rules, "EVERY", 4)
    workspace = opened(learning__patterns=keep.value, learning__rules=keep.value)
    store(workspace, "user", "admin", "guest")
    fail(workspace)
    facts = {"task": "SHOP-12", "outcome": "It turned out that the cache was never cleared"}
    workspace.behaviours.fire("task_completed", facts)
    workspace.patterns.settle(PATIENCE)
    workspace.learner.run()

    sources = {one.source for one in workspace.inbox.waiting()}
    learned = {"pattern", "rule", "semantic"} & {*kinds(workspace)}
    if keep is Keep.WRITE:
        assert (sources, learned) == (set(), {"pattern", "rule", "semantic"})
    else:
        assert learned == set()
        assert sources == ({Source.PATTERN, Source.RULE, Source.LESSON} if keep is Keep.SUGGEST else set())


def test_a_process_that_does_one_thing_learns_nothing(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where learning is written, a one-shot process leaves it to the next pass all the same (D1)."""
    monkeypatch.setattr(rules, "EVERY", 4)
    root = opened().root
    chosen = {"learning.patterns": "write", "learning.rules": "write"}
    with open_workspace(root, watch=False, settings=chosen, one_shot=True) as workspace:
        store(workspace, "user", "admin", "guest")
        fail(workspace)
        assert workspace.patterns.settle(PATIENCE)
        assert {*kinds(workspace)} == {"interaction", "episodic"}
        workspace.learner.run()
        assert {"pattern", "rule"} <= {*kinds(workspace)}


def test_programs_of_the_seeds_write_what_they_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program's handle learns from its own calls is written, whatever the settings say (M2, P4)."""
    monkeypatch.setattr(rules, "EVERY", 4)
    open_workspace(tmp_path / "W", create=True, watch=False).close()
    with MemoryContext(path=tmp_path / "W") as context:
        for name in ("user", "admin", "guest"):
            context.add_memory(f"create {name} login")
        assert [one.content for one in context.patterns()] == ["create {variable} login"]
    with MemoryCoordinator(tmp_path / "W") as coordinator:
        for name in ("mail", "shop", "blog"):
            text = f"We decided to renew the {name} certificate in May because it expires"
            assert coordinator.store(text, "knowledge").stored
        coordinator.workspace.patterns.settle(PATIENCE)
        assert len(coordinator.workspace.patterns.all()) == 2
    with MemoryLayer(tmp_path / "W") as layer:
        state, action = StateSnapshot.create(["src/auth.py"], "edit the token check"), Action("Edit", "edited it")
        for _ in range(4):
            asyncio.run(layer.record_outcome(state, action, Outcome.FAILURE, "test_login failed: KeyError 'sub'"))
        assert "rule" in kinds(layer.workspace)
        assert layer.workspace.inbox.waiting() == []


def test_a_program_does_not_write_what_somebody_refused(opened: Opened) -> None:
    """A refusal holds for programs too (D1)."""
    workspace = opened()
    store(workspace, "user", "admin", "guest")
    workspace.learner.run()
    workspace.inbox.refuse(workspace.inbox.waiting())
    with as_program():
        store(workspace, "root", "service")
    assert workspace.patterns.settle(PATIENCE)
    workspace.patterns.learn(store(workspace, "auditor")[0], Keep.WRITE)
    assert workspace.patterns.all() == []


def test_a_refused_rule_stays_refused(opened: Opened) -> None:
    """More failures of the same sort bring no refused rule back; an accepted one is there once (P4)."""
    workspace = opened()
    fail(workspace)
    found = workspace.sources.rules.analyze(keep=Keep.SUGGEST)
    (one,) = workspace.inbox.waiting()
    assert [rule.id for rule in found.found] == [one.id]
    assert (one.source, one.count, len(one.evidence)) == (Source.RULE, 4, 4)
    assert "rule" not in kinds(workspace)
    workspace.inbox.refuse([one])
    fail(workspace, 6)

    assert workspace.sources.rules.analyze(keep=Keep.SUGGEST).found == ()
    assert workspace.sources.rules.analyze().found == ()
    assert workspace.inbox.waiting() == []
    (stored,) = workspace.inbox.accept([workspace.inbox.find(one.id)])
    assert stored.type == "rule"
    fail(workspace, 6)
    before = workspace.store.get(stored.id)
    assert workspace.sources.rules.analyze(keep=Keep.SUGGEST).found == ()
    assert workspace.store.get(stored.id) == before


def test_a_rule_that_no_longer_holds_is_withdrawn(opened: Opened) -> None:
    """A suggested rule goes when the failures that taught it are gone (D1)."""
    workspace = opened()
    fail(workspace)
    workspace.sources.rules.analyze(keep=Keep.SUGGEST)
    for item in workspace.store.select(Query(types=frozenset({"episodic"}))):
        workspace.store.delete(item.id)
    workspace.learner.run()
    assert workspace.inbox.all() == ()


def test_what_is_repeated_changes_no_other_file(opened: Opened) -> None:
    """Links that are worked out are in the new item alone, never in one that is there (D1)."""
    workspace = opened()
    drafts = [MemoryItem(f"The API base path is /v{number}", "knowledge", trust="agent") for number in (1, 2, 3)]
    first, second = (workspace.intake.store(draft, review=False) for draft in drafts[:2])
    assert second.contradicts == (first.memory_id,)
    before = {item.id: item.sha256 for item in workspace.store.select(Query(limit=MOST))}
    assert workspace.intake.store(drafts[0], review=False).merged_into == first.memory_id
    assert {item.id: item.sha256 for item in workspace.store.select(Query(limit=MOST))} == before
    workspace.intake.store(drafts[2], review=False)
    assert before.items() <= {item.id: item.sha256 for item in workspace.store.select(Query(limit=MOST))}.items()


def test_a_session_begins_with_learning(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``SessionStart`` learns from what came since and prints nothing of it; a damaged inbox ends no session (D1)."""
    monkeypatch.setattr("memfs.doors.claude_code.answer.LEARNING_SECONDS", PATIENCE)
    workspace = opened()
    store(workspace, "user", "admin", "guest")

    def start() -> tuple[list[str], list[str]]:
        printed: list[str] = []
        remarks: list[str] = []
        event = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": str(workspace.root), "source": "startup"}
        hook = Hook("", settings={"index.engine": "memory"}, say=printed.append, complain=remarks.append)
        hook.run(json.dumps(event).encode())
        if hook.left:
            hook.learn()
        return printed, remarks

    printed, remarks = start()
    assert remarks == []
    assert "{variable}" not in "".join(printed)
    assert [one.decision for one in workspace.inbox.all()] == [SuggestionDecision.WAITING]
    (workspace.repository.state / "inbox.json").write_text("{")
    store(workspace, "root")
    _, remarks = start()
    assert any("nothing was learned" in line for line in remarks)


def test_it_is_known_without_a_pass_that_nothing_is_to_be_learned(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a memory comes, changes or goes, and not where a pass was cut short."""
    monkeypatch.setattr("memfs.learning.learner._SLACK_NS", 0)
    workspace = opened()
    item, *_ = store(workspace, "user", "admin", "guest")
    workspace.learner.run(seconds=0.0)
    assert not workspace.is_learned
    workspace.learner.run()
    assert workspace.is_learned
    stored = workspace.store.put(item.replace(content="renew the login"), expected=item.sha256)
    assert not workspace.is_learned
    workspace.learner.run()
    assert workspace.is_learned
    workspace.store.delete(stored.id, expected=stored.sha256)
    assert not workspace.is_learned
