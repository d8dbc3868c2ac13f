"""Clashes: a field in which one writer's value was not kept waits for a person (seed 001, P7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import ItemNotFound, QueryInvalid
from memfs.model.state_documents import DocumentClash
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
DOCUMENT = "ContextMemory/iterations/iteration_001/hypotheses/h-1.json"


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One in which two agents changed one hypothesis, each from the same version."""
    made = opened()
    recorder = made.states.recorder
    first = {"id": "h-1", "claim": "Caching helps.", "notes": {"a.b": {"c": "one"}}}
    recorder.hypothesis(first)
    recorder.hypothesis({**first, "claim": "Caching helps reads.", "notes": {"a.b": {"c": "two"}}}, base=first)
    recorder.hypothesis(
        {**first, "claim": "It helps writes.", "notes": {"a.b": {"c": "three"}}, "agent": "R"}, base=first
    )
    return made


def clash(workspace: Workspace, field: str = "claim") -> DocumentClash:
    """What waits about a field."""
    (found,) = [one for one in workspace.teams.resolver.documents() if one.field == field]
    return found


def claim(workspace: Workspace) -> object:
    """What the document says."""
    return workspace.states.files.read(DOCUMENT).values["claim"]


def decide(workspace: Workspace, path: str, *, take: bool) -> None:
    """Decide about a record."""
    workspace.teams.resolver.decide(path, take=take)


def test_what_gave_way_is_shown_with_both_values(workspace: Workspace) -> None:
    """Document, field, the value that was kept and the one that was not, and who wrote last (P7)."""
    found = clash(workspace)

    assert (found.document, found.iteration, found.by) == (DOCUMENT, 1, "R")
    assert (found.kept, found.lost) == ("It helps writes.", "Caching helps reads.")
    assert {one.field for one in workspace.teams.resolver.documents()} == {"claim", "notes.a.b.c"}


def test_a_decision_takes_the_record_away(workspace: Workspace, git: Callable[..., str]) -> None:
    """Whichever value is kept, the field has it afterwards, in one commit that says why (P7)."""
    workspace.store.flush()
    decide(workspace, clash(workspace).path, take=True)
    workspace.store.flush()
    assert claim(workspace) == "Caching helps reads."
    assert git(workspace.root, "log", "-1", "--format=%s").startswith("Decide for the other value in claim of ")
    assert len(git(workspace.root, "show", "--name-only", "--format=", "HEAD").split()) == 2

    decide(workspace, clash(workspace, "notes.a.b.c").path, take=False)
    assert workspace.states.files.read(DOCUMENT).values["notes"] == {"a.b": {"c": "three"}}
    assert workspace.teams.resolver.documents() == []


def test_another_value_since_decides_it(workspace: Workspace) -> None:
    """Writing the field again decides; the record waits for nobody."""
    path = clash(workspace).path
    workspace.states.recorder.hypothesis({"id": "h-1", "claim": "Something else."})
    assert [one.field for one in workspace.teams.resolver.documents()] == ["notes.a.b.c"]
    with pytest.raises(QueryInvalid, match="another value"):
        decide(workspace, path, take=True)
    assert claim(workspace) == "Something else."


def test_what_cannot_be_decided_is_reported(workspace: Workspace) -> None:
    """And nothing is changed."""
    for path in ("ContextMemory/iterations/iteration_001/conflicts/x.json", "memfs.toml"):
        with pytest.raises(ItemNotFound):
            decide(workspace, path, take=False)
    assert len(workspace.teams.resolver.documents()) == 2
