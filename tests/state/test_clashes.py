"""Clashes: a field in which one writer's value was not kept waits for a person (seed 001, P7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import ItemNotFound, QueryInvalid, SecretDetected
from memfs.model.conflict import DocumentClash
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
    (found,) = [one for one in workspace.states.clashes.list() if one.field == field]
    return found


def claim(workspace: Workspace) -> object:
    """What the document says."""
    return workspace.states.files.read(DOCUMENT).values["claim"]


def test_what_gave_way_is_shown_with_both_values(workspace: Workspace) -> None:
    """Document, field, the value that stands and the one that does not, and who wrote last (P7)."""
    found = clash(workspace)

    assert (found.document, found.iteration, found.by) == (DOCUMENT, 1, "R")
    assert (found.kept, found.lost) == ("It helps writes.", "Caching helps reads.")
    assert {one.field for one in workspace.states.clashes.list()} == {"claim", "notes.a.b.c"}


def test_a_decision_takes_the_record_away(workspace: Workspace, git: Callable[..., str]) -> None:
    """Whichever value is kept, the field has it afterwards, in one commit that says why (P7)."""
    workspace.store.flush()
    workspace.states.clashes.resolve(clash(workspace).path, keep="lost", reason="reads were measured")
    workspace.store.flush()
    assert claim(workspace) == "Caching helps reads."
    assert "reads were measured" in git(workspace.root, "log", "-1", "--format=%s")
    assert len(git(workspace.root, "show", "--name-only", "--format=", "HEAD").split()) == 2

    workspace.states.clashes.resolve(clash(workspace, "notes.a.b.c").path, keep="kept")
    assert workspace.states.files.read(DOCUMENT).values["notes"] == {"a.b": {"c": "three"}}
    assert workspace.states.clashes.list() == []


def test_another_value_since_decides_it(workspace: Workspace) -> None:
    """Who wrote the field anew has decided; the record waits for nobody."""
    path = clash(workspace).path
    workspace.states.recorder.hypothesis({"id": "h-1", "claim": "Something else."})
    assert [one.field for one in workspace.states.clashes.list()] == ["notes.a.b.c"]
    with pytest.raises(QueryInvalid, match="another value"):
        workspace.states.clashes.resolve(path, keep="lost")
    assert claim(workspace) == "Something else."


def test_what_cannot_be_decided_is_said(workspace: Workspace) -> None:
    """And nothing is changed."""
    path = clash(workspace).path
    with pytest.raises(QueryInvalid, match="neither"):
        workspace.states.clashes.resolve(path, keep="mine")
    with pytest.raises(ItemNotFound):
        workspace.states.clashes.resolve("ContextMemory/iterations/iteration_001/conflicts/x.json", keep="kept")
    with pytest.raises(ItemNotFound):
        workspace.states.clashes.resolve("memfs.toml", keep="kept")
    with pytest.raises(SecretDetected):
        workspace.states.clashes.resolve(path, keep="kept", reason="ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8")
    assert len(workspace.states.clashes.list()) == 2
