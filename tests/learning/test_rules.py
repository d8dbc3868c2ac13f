"""Rules: learned from episodes, found where they apply, brought up to date and retired (P4)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs import Conflict, IdExists, MemoryItem, QueryInvalid, SchemaInvalid, StorageIO, Workspace
from memfs.learning import rules
from memfs.learning.rules import EVERY, MOST_EVIDENCE, rule_of, with_figures
from memfs.model import Query
from memfs.model.episode import Action, Episode, Outcome, Rule, StateSnapshot

pytestmark = pytest.mark.usefixtures("learning_written")

Opened = Callable[..., Workspace]
Git = Callable[..., str]
BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
LOCKED = "psycopg.errors.LockNotAvailable: canceling statement due to lock timeout (pid 4711)"


def situation(number: int, **values: Any) -> StateSnapshot:
    """Before a migration, each time of another file and in another task."""
    defaults: dict[str, Any] = {"tool": "Edit", "agent": "coder", "session": f"s{number // 10}", "task": f"T{number}"}
    return StateSnapshot.create(
        [f"db/migrations/{number:03}.sql"], "write a migration for the orders table", **{**defaults, **values}
    )


def episode(number: int, failed: bool = True, did: str = "altered orders at once", **values: Any) -> Episode:
    """A migration that failed with a lock, or went well."""
    error = LOCKED if failed else None
    outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
    when = BEGUN + timedelta(hours=number)
    return Episode.create(situation(number), Action("Edit", did), outcome, error, timestamp=when, **values)


def record(workspace: Workspace, *episodes: Episode, trust: str = "agent") -> list[str]:
    """Store episodes; return their ids."""
    return [workspace.sources.episodes.record(one, trust=trust).id for one in episodes]


def rules_in(workspace: Workspace) -> list[MemoryItem]:
    """The items of all rules."""
    return workspace.store.select(Query(types=frozenset({"rule"}), limit=100))


def the_rule(workspace: Workspace) -> MemoryItem:
    """The item of the only rule."""
    (item,) = rules_in(workspace)
    return item


def learned(workspace: Workspace) -> Rule:
    """The rule that three failed migrations teach."""
    record(workspace, *(episode(n) for n in range(3)))
    (rule,) = workspace.sources.rules.analyze_failures()
    return rule


def in_use(workspace: Workspace, number: int, good_since: int) -> None:
    """One episode of an agent's life: every fifth a migration, which fails until the cause is gone."""
    if number % 5:
        text = ("fix a date in the report", "rename a helper", "write a test for refunds", "document the import")
        state = StateSnapshot.create([f"src/m{number % 5}.py"], text[number % 4], task=f"T{number}")
        outcome = Outcome.FAILURE if number % 37 == 0 else Outcome.SUCCESS
        error = f"AssertionError: {number}" if outcome is Outcome.FAILURE else None
        when = BEGUN + timedelta(hours=number)
        one = Episode.create(state, Action("Edit", text[number % 4]), outcome, error, timestamp=when)
    else:
        one = episode(number, failed=number < good_since)
    record(workspace, one)


# -- learning -------------------------------------------------------------------------------------------------------
def test_a_repeated_mistake_becomes_a_rule_and_is_retired_when_its_cause_is_gone(opened: Opened, git: Git) -> None:
    """Of 300 episodes the first 100 teach a rule, and the last 100 retire it; history says both, and why (P4)."""
    workspace = opened(history__commit="batch")
    states = []
    for number in range(300):
        in_use(workspace, number, good_since=200)
        if number % 100 == 99:
            item = the_rule(workspace)
            states.append((item.status, item.data["confidence"], item.data["support"], item.data["against"]))
    assert states[0][:1] + states[0][2:] == ("", 20, 0)
    assert states[1][:1] + states[1][2:] == ("", 40, 0)
    assert states[2][:1] + states[2][2:] == ("retired", 40, 20)
    assert states[0][1] > 0.85
    assert states[2][1] < 0.25
    sentences = git(workspace.root, "log", "--format=%s", "--", "ContextMemory/memories/rule").splitlines()
    assert [one.split(":")[0].rpartition(" ")[0] for one in sentences[::2]] == ["Retire the rule", "Learn a"]
    assert sentences[0].endswith("it went well 20 times without it since it last went wrong")
    assert workspace.sources.rules.find_matching_rules(situation(1)) == []


def test_a_learned_rule_says_where_what_and_from_what(opened: Opened) -> None:
    """The rule names files, tool, words, error and its evidence, and the agent gets it in that situation (P4)."""
    workspace = opened()
    ids = record(workspace, *(episode(n) for n in range(3)), episode(3, failed=False, did="added it in batches"))
    (rule,) = workspace.sources.rules.analyze_failures()
    assert (rule.files, rule.tool, rule.pattern) == (("db/migrations/*.sql",), "Edit", "write migration orders table")
    assert rule.learned_from == tuple(ids[:3])
    assert (rule.support, rule.against, rule.trust, rule.confidence) == (3, 1, "agent", 0.63)
    assert rule.error == LOCKED
    assert workspace.sources.rules.find_matching_rules(situation(77), min_confidence=0.6) == [rule]
    item = the_rule(workspace)
    assert [(link.to, link.relation) for link in item.links] == [(one, "learned_from") for one in ids[:3]]
    assert item.content == rule.action


def test_analysing_again_changes_nothing(opened: Opened) -> None:
    """What is learned follows from the files: the same files teach the same (P4)."""
    workspace = opened()
    record(workspace, *(episode(n) for n in range(5)), *(episode(n, failed=False) for n in range(5, 7)))
    first = workspace.sources.rules.analyze()
    digests = [item.sha256 for item in rules_in(workspace)]
    again = workspace.sources.rules.analyze()
    assert (len(first.found), again.found, again.changed, again.retired) == (1, (), (), ())
    assert [item.sha256 for item in rules_in(workspace)] == digests


def test_another_process_that_analyses_finds_nothing_to_do(opened: Opened) -> None:
    """Two that analyse at once make one rule (P4)."""
    workspace = opened()
    other = opened(workspace.root)
    record(workspace, *(episode(n) for n in range(4)))
    found: list[Rule] = []
    threads = [
        threading.Thread(target=lambda w=w: found.extend(w.sources.rules.analyze_failures()))
        for w in (workspace, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [rule.id for rule in found] == [item.id for item in rules_in(workspace)]


def test_what_worked_is_learned_later(opened: Opened) -> None:
    """A rule that only knew what went wrong says what to do once somebody found it out (P4)."""
    workspace = opened()
    rule = learned(workspace)
    assert rule.action.startswith("Check first: ")
    record(workspace, *(episode(n, failed=False, did="added it in batches", warned=[rule.id]) for n in range(3, 5)))
    assert workspace.sources.rules.analyze().changed == (rule.id,)
    item = the_rule(workspace)
    assert item.content.startswith(
        'Consider "added it in batches": it worked where "altered orders at once" went wrong'
    )
    assert (item.data["action"], item.data["helped"], item.data["against"]) == (item.content, 2, 0)


def test_a_rule_is_trusted_no_more_than_what_taught_it(opened: Opened) -> None:
    """One episode from a tool makes it a tool's; a person's episodes do not make it a person's rule (P4)."""
    workspace = opened()
    record(workspace, *(episode(n) for n in range(3)), trust="human")
    assert workspace.sources.rules.analyze_failures()[0].trust == "agent"
    other = opened(workspace.root.parent / "other")
    record(other, *(episode(n) for n in range(3)))
    record(other, episode(3), trust="tool")
    assert other.sources.rules.analyze_failures()[0].trust == "tool"


def test_a_retired_rule_comes_back_when_it_holds_again(opened: Opened) -> None:
    """What retired it is no last word: failures that return bring it back (P4)."""
    workspace = opened()
    rule = learned(workspace)
    record(workspace, *(episode(n, failed=False) for n in range(3, 11)))
    assert workspace.sources.rules.analyze().retired == (rule.id,)
    record(workspace, *(episode(n) for n in range(11, 23)))
    assert workspace.sources.rules.analyze().changed == (rule.id,)
    item = the_rule(workspace)
    assert (item.status, "retired" in item.metadata) == ("", False)


def test_a_rule_whose_words_look_like_a_secret_together_says_less(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quotation that may not be stored is left out, and the rule is made all the same (faults row 19)."""
    from memfs.learning import rules
    from memfs.learning.failures import advise as real

    def advise(*values: Any) -> Any:
        made = real(*values)
        secret = "the key is AKIAIOSFODNN7EXAMPLQ"
        return type(made)(secret, made.title, made.error) if values[-1] else made

    monkeypatch.setattr(rules, "advise", advise)
    workspace = opened()
    assert learned(workspace).action == "Check first: this went wrong here before, more than once."


# -- what people did ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_deleted_rule_does_not_come_back(opened: Opened, by_hand: bool) -> None:
    """Forgotten or removed with ``rm``, it is gone, however often the same goes wrong (P4)."""
    workspace = opened()
    rule = learned(workspace)
    record(workspace, episode(3))
    workspace.sources.rules.analyze()
    if by_hand:
        (workspace.root / the_rule(workspace).path).unlink()
    else:
        workspace.store.delete(rule.id, reason="nonsense")
    record(workspace, *map(episode, range(4, 8)))
    assert workspace.sources.rules.analyze_failures() == []


@pytest.mark.parametrize("changes", [{"trust": "human"}, {"trust": "reviewed"}, {"pinned": True}])
def test_what_a_person_vouches_for_is_left_alone(opened: Opened, changes: dict[str, Any]) -> None:
    """Whatever happens, not a byte of it changes (P4)."""
    workspace = opened()
    learned(workspace)
    kept = workspace.store.put(the_rule(workspace).replace(**changes))
    record(workspace, *(episode(n, failed=False) for n in range(3, 20)))
    done = workspace.sources.rules.analyze()
    assert (done.retired, done.changed) == ((), ())
    assert the_rule(workspace).sha256 == kept.sha256


def test_words_that_a_person_changed_stay(opened: Opened) -> None:
    """Its figures go on, and it may be retired; its words are the person's (P4)."""
    workspace = opened()
    rule = learned(workspace)
    path = workspace.root / the_rule(workspace).path
    text = path.read_text()
    path.write_text(text.replace(rule.action.replace("'", "''"), "Set lock_timeout first."))
    record(workspace, episode(3), episode(4, failed=False, did="added it in batches", warned=[rule.id]))
    assert workspace.sources.rules.analyze().changed == (rule.id,)
    item = the_rule(workspace)
    assert (item.data["action"], item.content) == ("Set lock_timeout first.", "Set lock_timeout first.")
    assert (item.data["support"], item.data["helped"]) == (4, 1)


def test_words_of_a_person_stay_though_they_begin_like_ours(opened: Opened) -> None:
    """What was found to work takes the place of our own words only (P4)."""
    workspace = opened()
    rule = learned(workspace)
    item = the_rule(workspace)
    theirs = "Check first: is the queue of jobs empty?"
    workspace.store.put(item.replace(content=theirs, data={**item.data, "action": theirs}))
    record(workspace, *(episode(n, failed=False, did="added it in batches", warned=[rule.id]) for n in range(3, 5)))
    assert workspace.sources.rules.analyze().changed == (rule.id,)
    assert (the_rule(workspace).data["action"], the_rule(workspace).content) == (theirs, theirs)


def test_a_person_who_takes_a_rule_up_again_is_believed(opened: Opened) -> None:
    """A rule whose status somebody removed is not retired a second time."""
    workspace = opened()
    learned(workspace)
    record(workspace, *(episode(n, failed=False) for n in range(3, 12)))
    workspace.sources.rules.analyze()
    workspace.store.put(the_rule(workspace).replace(status=""))
    record(workspace, *(episode(n, failed=False) for n in range(12, 16)))
    assert workspace.sources.rules.analyze().retired == ()
    assert the_rule(workspace).status == ""


def test_a_rule_that_is_edited_meanwhile_keeps_the_edit(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone who edits it while it is brought up to date loses nothing: the analysis begins again."""
    workspace = opened()
    rule = learned(workspace)
    record(workspace, episode(3))
    real = workspace.store.batch
    raced: list[MemoryItem] = []

    def batch(*values: Any, **named: Any) -> Any:
        if not raced:
            raced.append(workspace.store.put(the_rule(workspace).replace(tags=("mine",))))
        return real(*values, **named)

    monkeypatch.setattr(workspace.store, "batch", batch)
    assert workspace.sources.rules.analyze().changed == (rule.id,)
    item = the_rule(workspace)
    assert (item.tags, item.data["support"]) == (("mine",), 4)


def test_a_rule_that_never_rests_ends_the_analysis(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up after a few tries (L7)."""
    workspace = opened()
    learned(workspace)
    record(workspace, episode(3))
    items = [item.replace(sha256="0" * 64) for item in rules_in(workspace)]
    monkeypatch.setattr(workspace.store, "select", lambda _: items)
    with pytest.raises(Conflict):
        workspace.sources.rules.analyze()


# -- rules from elsewhere -------------------------------------------------------------------------------------------
def test_a_rule_that_an_agent_stated_is_left_alone(opened: Opened) -> None:
    """Outcomes change only what outcomes taught; what its author says again replaces it (P4)."""
    workspace = opened()
    rules = workspace.sources.rules
    stated = rules.add_rule(Rule("write migration", "Set lock_timeout.", 0.8, files=("db/migrations/*.sql",)))
    record(workspace, *(episode(n, failed=False) for n in range(12)))
    done = rules.analyze()
    assert (done.changed, done.retired) == ((), ())
    assert rules.read(stated.id) == stated
    again = rules.add_rule(Rule(stated.pattern, stated.action, 0.3, files=stated.files))
    assert (again.id, again.confidence) == (stated.id, 0.3)


def test_18_advice_that_quotes_a_tool_is_a_tools(opened: Opened) -> None:
    """What worked may be a tool's word, at once or later: then nobody vouches for the advice (faults row 18)."""
    at_once, later = opened(), opened(opened().root.parent / "later")
    record(at_once, *(episode(n) for n in range(6)))
    mended = episode(5, failed=False, did="ran evil.sh first")
    when = mended.timestamp + timedelta(minutes=1)
    record(at_once, Episode.create(mended.state, mended.action, mended.outcome, timestamp=when), trust="tool")
    (rule,) = at_once.sources.rules.analyze_failures()
    assert ("evil.sh" in rule.action, rule.trust) == (True, "tool")

    rule = learned(later)
    heeded = [episode(n, failed=False, did="ran evil.sh first", warned=[rule.id]) for n in range(3, 5)]
    record(later, *heeded, trust="tool")
    assert later.sources.rules.analyze().changed == (rule.id,)
    assert ("evil.sh" in the_rule(later).content, the_rule(later).trust) == (True, "tool")


def test_18_a_tool_that_teaches_a_rule_later_makes_it_a_tools(opened: Opened) -> None:
    """Evidence that comes later counts for trust as it counts for confidence (faults row 18)."""
    workspace = opened()
    rule = learned(workspace)
    assert rule.trust == "agent"
    record(workspace, *(episode(n) for n in range(4, 7)), trust="tool")
    assert rule.id in workspace.sources.rules.analyze().changed
    assert the_rule(workspace).trust == "tool"


def test_a_rule_of_failures_without_an_error_is_the_same_again(opened: Opened) -> None:
    """It is about failures that say nothing; others under the same condition count neither time (P4)."""
    workspace = opened()
    for n in range(6):
        one = episode(n)
        error = "" if n % 2 else f"KeyError: unknown colour {n}"
        record(workspace, Episode.create(one.state, one.action, one.outcome, error, timestamp=one.timestamp))
    rule_analysis = workspace.sources.rules.analyze()
    assert sorted(rule.support for rule in rule_analysis.found) == [3, 3]
    again = workspace.sources.rules.analyze()
    assert (again.found, again.changed, again.retired) == ((), (), ())


def test_a_rule_names_the_newest_of_its_evidence(opened: Opened) -> None:
    """Its file stays short, however often it goes wrong (P4)."""
    workspace = opened()
    learned(workspace)
    named = with_figures(the_rule(workspace), {}, tuple(f"e-{n}" for n in range(300))).data["learned_from"]
    assert (len(named), named[-1]) == (MOST_EVIDENCE, "e-299")


def test_only_the_newest_episodes_are_looked_at(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, an analysis ends (L7, P4)."""
    monkeypatch.setattr(rules, "MOST_EPISODES", 5)
    workspace = opened()
    record(workspace, *(episode(n, failed=n < 3) for n in range(8)))
    done = workspace.sources.rules.analyze()
    assert (done.read, done.found) == (5, ())


def test_a_rule_whose_id_a_person_gave_away_is_not_learned(opened: Opened, tmp_path: Path) -> None:
    """What a person made of it stays, and the analysis goes on silently (P4)."""
    first, workspace = opened(), opened(tmp_path / "other")
    taken = learned(first).id
    workspace.store.put(MemoryItem("Mine.", "semantic", id=taken))
    record(workspace, *(episode(n) for n in range(3)))
    assert workspace.sources.rules.analyze().found == ()
    kept = workspace.store.get(taken)
    assert kept is not None
    assert kept.content == "Mine."


def test_an_episode_that_a_person_rejected_is_not_evidence(opened: Opened) -> None:
    """What a person marks as wrong teaches nothing."""
    workspace = opened()
    for item_id in record(workspace, *(episode(n) for n in range(4)))[:2]:
        item = workspace.store.get(item_id)
        assert item is not None
        workspace.store.put(item.replace(status="rejected"))
    assert workspace.sources.rules.analyze_failures() == []


def test_a_rule_without_outcomes_stays_as_it_is(opened: Opened) -> None:
    """Nothing is written where nothing happened."""
    workspace = opened()
    stored = workspace.sources.rules.add_rule(Rule("deploy on friday", "Wait until Monday.", 0.9))
    record(workspace, *(episode(n, failed=False) for n in range(5)))
    assert workspace.sources.rules.analyze().changed == ()
    assert workspace.sources.rules.read(stored.id) == stored


def test_adding_a_rule_twice_stores_it_once(opened: Opened) -> None:
    """The same advice for the same situation is one rule (P4)."""
    workspace = opened()
    rules = workspace.sources.rules
    rule = Rule("write migration", "Set lock_timeout.", 0.8, files=("db/migrations/*.sql",))
    first = rules.add_rule(rule)
    assert first.id.startswith("set-lock-timeout-")
    assert rules.add_rule(rule) == first == rules.add_rule(first)
    again = rules.add_rule(Rule(rule.pattern, rule.action, 0.9, files=rule.files))
    assert (again.id, again.confidence) == (first.id, 0.9)


def test_the_seeds_loop_adds_what_was_learned_again(opened: Opened) -> None:
    """``for rule in new_rules: add_rule(rule)`` changes nothing (P4)."""
    workspace = opened()
    rule = learned(workspace)
    before = the_rule(workspace).sha256
    assert workspace.sources.rules.add_rule(rule) == rule
    assert the_rule(workspace).sha256 == before


def test_a_better_trusted_rule_is_not_written_over(opened: Opened) -> None:
    """What an agent says does not change what a person says."""
    workspace = opened()
    rules = workspace.sources.rules
    mine = rules.add_rule(Rule("deploy", "Ask first.", 0.9, id="ask-first", trust="human"))
    assert rules.add_rule(Rule("deploy", "Never mind.", 0.9, id="ask-first")) == mine
    assert (
        rules.add_rule(Rule("deploy", "Ask the owner first.", 0.9, id="ask-first", trust="human")).action
        == "Ask the owner first."
    )
    assert the_rule(workspace).content == "Ask the owner first."


def test_an_id_that_something_else_has_is_refused(opened: Opened) -> None:
    """A rule replaces rules only."""
    workspace = opened()
    workspace.store.put(MemoryItem("x", id="taken"))
    with pytest.raises(IdExists):
        workspace.sources.rules.add_rule(Rule("deploy", "Ask first.", id="taken"))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"action": " "}, "action"),
        ({"pattern": ""}, "pattern"),
        ({"confidence": 1.2}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"support": -1}, "support"),
        ({"files": "a.py"}, "files"),
        ({"files": [1]}, "files.0"),
        ({"tool": None}, "tool"),
    ],
)
def test_an_invalid_rule_is_refused_by_field(values: dict[str, Any], field: str) -> None:
    """The error names the field."""
    with pytest.raises(SchemaInvalid) as caught:
        Rule(**{"pattern": "deploy", "action": "Ask.", **values})
    assert caught.value.field == field


def test_rules_written_by_hand_are_rules(opened: Opened) -> None:
    """What the file does not say is taken from its text; another type is none."""
    workspace = opened()
    item = workspace.store.put(MemoryItem("Ask before a deploy.", "rule", title="Deploy to production", id="r"))
    rule = rule_of(item)
    assert rule == Rule("Deploy to production", "Ask before a deploy.", 1.0, id="r", trust="human")
    assert str(rule) == "Ask before a deploy. (confidence: 100%)"
    assert rule_of(MemoryItem("x")) is None
    assert [one.id for one in workspace.sources.rules.find_matching_rules("deploy to production now")] == ["r"]


def test_asking_for_rules_wants_a_situation_and_a_share(opened: Opened) -> None:
    """Words or a snapshot, and a confidence from 0 to 1."""
    rules = opened().sources.rules
    with pytest.raises(QueryInvalid):
        rules.find_matching_rules("deploy", min_confidence=7)
    with pytest.raises(SchemaInvalid):
        rules.find_matching_rules(5)  # type: ignore[arg-type]
    assert rules.find_matching_rules("deploy") == []


# -- when -----------------------------------------------------------------------------------------------------------
def test_analysis_is_due_after_a_hundred_episodes_of_all_processes(opened: Opened) -> None:
    """It counts what was recorded since the last one by anyone; an analysis starts the count again (P4)."""
    workspace = opened()
    other = opened(workspace.root)
    record(workspace, *(episode(n) for n in range(EVERY // 2)))
    record(other, *(episode(n) for n in range(EVERY // 2, EVERY - 1)))
    assert not workspace.sources.rules.due()
    assert rules_in(workspace) == []
    record(other, episode(EVERY))
    assert the_rule(workspace).data["support"] == EVERY
    assert not workspace.sources.rules.due()


def test_a_process_that_finds_another_analysing_goes_on(opened: Opened) -> None:
    """Recording an episode never waits for an analysis."""
    workspace = opened()
    other = opened(workspace.root)
    record(workspace, *(episode(n) for n in range(EVERY - 1)))
    with other.sources.rules._lock.hold("a test"):
        record(workspace, episode(EVERY))
        assert rules_in(workspace) == []
        assert not workspace.store.notes
    record(workspace, episode(EVERY + 1))
    assert the_rule(workspace).data["support"] == EVERY + 1


def test_an_episode_that_cannot_be_counted_is_recorded(opened: Opened) -> None:
    """A count that cannot be kept costs an analysis, never an episode."""
    workspace = opened()
    (Path(workspace.repository.state) / "episodes.count").mkdir()
    assert record(workspace, episode(0))
    assert not workspace.store.notes


def test_a_rule_names_files_as_every_clone_has_them(opened: Opened) -> None:
    """Whatever an agent called the file, the rule begins at the top of the work tree (P4)."""
    workspace = opened()
    top = workspace.root.resolve()
    for n in range(3):
        state = StateSnapshot.create([top / f"db/migrations/{n}.sql"], "write a migration for the orders table")
        record(workspace, Episode.create(state, Action("Edit", "altered it"), "failure", LOCKED))
    (rule,) = workspace.sources.rules.analyze_failures()
    assert rule.files == ("db/migrations/*.sql",)
    assert workspace.sources.rules.read(rule.id) == rule
    for file in (top / "db/migrations/9.sql", "db/migrations/9.sql"):
        found = workspace.sources.rules.find_matching_rules(StateSnapshot.create([file], "orders migration"))
        assert found == [rule]


def test_an_analysis_that_fails_loses_no_episode(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle of it is reported; the episodes are stored, and the next hundred try again (P4)."""
    workspace = opened()

    def batch(*_: Any, **__: Any) -> Any:
        raise StorageIO("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.store, "batch", batch)
        record(workspace, *(episode(n) for n in range(EVERY)))
    assert workspace.sources.episodes.count() == EVERY
    assert [one.code for one in workspace.store.notes] == ["StorageIO"]
    assert rules_in(workspace) == []
    assert len(workspace.sources.rules.analyze_failures()) == 1
