"""What a team decides: proposing, accepting with what that replaces, retiring (K8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs import MemoryItem, Workspace
from memfs.errors import IdExists, ItemNotFound, QueryInvalid, SecretDetected
from memfs.model import Query
from memfs.recall.fence import withheld

Opened = Callable[..., Workspace]
Git = Callable[..., str]


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One in which tabs were agreed on."""
    workspace = opened()
    workspace.store.put(MemoryItem("Indent with tabs.", "convention", id="tabs", status="accepted"))
    workspace.store.put(MemoryItem("Indent wide.", "convention", id="wide", status="accepted"))
    workspace.store.flush()
    return workspace


def holding(workspace: Workspace) -> list[str]:
    """The conventions that agents are given."""
    return [one.id for one in workspace.sources.conventions.holding()]


def test_a_proposal_holds_nowhere_until_it_is_accepted(workspace: Workspace, git: Git) -> None:
    """With owner, scope and reasons, one commit; what it is to replace stays until it is accepted (K8)."""
    made = workspace.sources.agreements.propose(
        "Indent with four blanks.",
        title="Four blanks",
        owner="tools team",
        scope=("src/**", "src/**"),
        supersedes=("tab",),
        rationale="Diffs stay aligned.",
        reason="meeting of May",
    )
    assert (made.id, made.status, made.owner, made.scope) == ("four-blanks", "proposed", "tools team", ("src/**",))
    assert made.item.supersedes == ("tabs",)
    assert made.item.data["rationale"] == "Diffs stay aligned."
    assert holding(workspace) == ["tabs", "wide"]
    workspace.store.flush()
    assert git(workspace.root, "log", "-1", "--format=%s").strip() == "Propose Four blanks: meeting of May"

    changed = workspace.sources.agreements.decide(["four-blanks"], "accepted", "vote")
    assert [(one.id, one.status) for one in changed] == [("four-blanks", "accepted"), ("tabs", "retired")]
    assert holding(workspace) == ["four-blanks", "wide"]
    workspace.store.flush()
    assert git(workspace.root, "log", "-1", "--format=%s").strip() == "Accept four-blanks; retire tabs: vote"
    assert len(git(workspace.root, "log", "-1", "--format=", "--name-only").split()) == 2
    assert workspace.sources.agreements.decide(["four-blanks"], "accepted") == []


def test_accepting_again_retires_what_a_hand_brought_back(workspace: Workspace) -> None:
    """Anyone who accepted what replaces it decided about it, too; a decision about both at once is as it is given."""
    agreements = workspace.sources.agreements
    agreements.propose("Indent with blanks.", id="blanks", supersedes=("tabs", "wide"))
    agreements.decide(["blanks"], "accepted")
    agreements.decide(["tabs"], "accepted")
    changed = agreements.decide(["blanks"], "accepted")
    assert [(one.id, one.status) for one in changed] == [("tabs", "retired")]
    both = agreements.decide(["blanks", "tabs"], "accepted")
    assert [(one.id, one.status) for one in both] == [("tabs", "accepted")]


def test_what_cannot_be_proposed(workspace: Workspace) -> None:
    """Nothing, an id that is taken, a replacement of what is not a convention, a secret: nothing is stored."""
    workspace.store.put(MemoryItem("A fact.", id="fact"))
    propose = workspace.sources.agreements.propose
    before = workspace.store.count()
    with pytest.raises(QueryInvalid):
        propose(" ")
    with pytest.raises(IdExists):
        propose("Indent.", id="tabs")
    with pytest.raises(ItemNotFound, match="not a convention"):
        propose("Facts are over.", supersedes=("fact",))
    with pytest.raises(SecretDetected):
        propose("Use it.", rationale="with AKIA" + "IOSFODNN7EXAMPLF and nothing else")
    assert workspace.store.count() == before


def test_two_proposals_of_one_name_are_two(workspace: Workspace) -> None:
    """An id is made from the title; where that is taken, another one is."""
    first = workspace.sources.agreements.propose("One.", title="Blanks")
    second = workspace.sources.agreements.propose("Two.", title="Blanks")
    assert first.id == "blanks"
    assert second.id.startswith("blanks-")


def test_what_is_not_accepted_sinks_and_says_so(workspace: Workspace) -> None:
    """A person's recall gives a proposal and a retired one below what holds, by a factor that is named (K8)."""
    for name, status in (("x-proposed", "proposed"), ("x-retired", "retired"), ("x-none", ""), ("x-other", "agreed")):
        workspace.store.put(MemoryItem("Sort imports by name.", "convention", id=name, status=status))
    workspace.store.put(MemoryItem("Sort imports by name.", "convention", id="z-accepted", status="accepted"))
    workspace.store.put(MemoryItem("Sort imports by name.", "prospective", id="a-task", status="proposed"))
    hits = {hit.item.id: hit for hit in workspace.recaller.search(Query(text="sort imports")).hits}
    assert set(list(hits)[:2]) == {"z-accepted", "a-task"}
    assert hits["x-none"].reasons["proposed"] == 0.5
    assert hits["x-other"].reasons["proposed"] == 0.5
    assert hits["x-retired"].reasons["retired"] == 0.5
    assert "proposed" not in hits["a-task"].reasons


def test_only_what_a_person_accepted_is_given_to_agents() -> None:
    """Accepted, and vouched for: an agent that writes ``accepted`` into its own convention accepts nothing (K8)."""
    kinds = {
        (status, trust): withheld(MemoryItem("x", "convention", status=status, trust=trust))
        for status in ("accepted", "proposed", "retired", "")
        for trust in ("human", "reviewed", "agent", "tool")
    }
    assert [key for key, held in kinds.items() if not held] == [("accepted", "human"), ("accepted", "reviewed")]
    assert not withheld(MemoryItem("x", "semantic", status="proposed", trust="agent"))


def test_a_status_that_means_nothing_is_a_problem(workspace: Workspace) -> None:
    """``check`` names a convention that reaches nobody, and what its status should be (K8)."""
    for name, status in (("old", "agreed"), ("typo", "propsed"), ("own", "being discussed"), ("over", "superseded")):
        workspace.store.put(MemoryItem(f"About {name}.", "convention", id=name, status=status))
    found = {
        problem.path.rpartition("/")[2]: problem
        for problem in workspace.checker.check()
        if problem.code == "ConventionStatus"
    }
    assert sorted(found) == ["old.yaml", "own.yaml", "typo.yaml"]
    assert "memfs team convention accept old" in found["old.yaml"].hint
    assert "'proposed'" in found["typo.yaml"].hint
    assert "accepted, proposed or retired" in found["own.yaml"].hint
    assert all(problem.severity == "error" for problem in found.values())
