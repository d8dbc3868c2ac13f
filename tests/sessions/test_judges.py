"""What a person says is kept: notes in any language, corrections of what was said before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs.model import MemoryItem, Query
from memfs.sessions.extract import note
from memfs.sessions.spool import SessionEvent, Spool
from memfs.sessions.store import Drain, DrainResult
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]
pytestmark = pytest.mark.usefixtures("learning_written", "private_memory")


def drained(workspace: Workspace, *prompts: str, seconds: float = 30.0, **fields: Any) -> DrainResult:
    """What becomes of prompts."""
    spool = Spool(workspace.repository.state)
    for prompt in prompts:
        event = SessionEvent("UserPromptSubmit", "s1", cwd=str(workspace.root), fields={"prompt": prompt, **fields})
        spool.append(event)
    return Drain(workspace).run("s1", seconds)


def kept(workspace: Workspace, kind: str) -> list[MemoryItem]:
    """The items of a kind."""
    return workspace.store.select(Query(types=frozenset({kind}), limit=100))


def test_a_correction_of_a_fact_is_kept(opened: Opener) -> None:
    """ "No, that is wrong." and what is right instead is a correction, in the person's words (P4)."""
    workspace = opened()
    drained(workspace, "No, that is wrong. The API base path is /v2, not /v1")
    (item,) = kept(workspace, "preference")
    assert (item.content, item.trust, item.origin.role) == ("The API base path is /v2, not /v1", "human", "user")
    assert kept(workspace, "working") == []


def test_what_follows_a_refusal_is_kept_only_where_it_states_something(opened: Opener) -> None:
    """A report of the moment after a "no" is not a correction (P4)."""
    workspace = opened()
    drained(workspace, "Wrong. The page is still blank.", "No. Run the tests again.", "That is wrong.")
    assert kept(workspace, "preference") == []


NOTES = {
    "remember: the vendor's API has a limit of 10 calls a second": "the vendor's API has a limit of 10 calls a second",
    "Remember : use the office profile": "use the office profile",
    "REMEMBER:\nfirst line\nsecond line": "first line\nsecond line",
    "remember\uff1a 数据库在端口 5433": "数据库在端口 5433",
    "remember: die Datenbank liegt auf Port 5433": "die Datenbank liegt auf Port 5433",
    "# die Datenbank liegt auf Port 5433": "die Datenbank liegt auf Port 5433",
    "#  Деплой только по вторникам ": "Деплой только по вторникам",
    "# デプロイは火曜日だけ": "デプロイは火曜日だけ",
    "\uff03 デプロイは火曜日だけ": "デプロイは火曜日だけ",
    "# `uv sync` before the tests": "`uv sync` before the tests",
}
NO_NOTES = [
    "#123 fails on Windows",
    "#release #urgent",
    "#!/bin/sh",
    "#!/bin/sh\necho hello",
    "#include <stdio.h>",
    "## Getting started here",
    "# Getting started\n\nInstall the package, then run it.",
    "# first step\npip install memfs",
    "# -*- coding: utf-8 -*-",
    "# %% a cell",
    "# ---- a rule ----",
    "#",
    "# ",
    "# ok",
    "remember:",
    "remember to run the tests",
    "please remember: nothing",
    "remembering: it",
    "What does # mean in YAML?",
    "issue #12 and remember: nothing",
]


@pytest.mark.parametrize(("message", "wanted"), NOTES.items())
def test_a_note_is_kept_whole_in_any_language(message: str, wanted: str) -> None:
    """``remember:`` and ``#`` at the beginning of a message ask for it to be kept as it is (C6)."""
    assert note(message) == wanted


@pytest.mark.parametrize("message", NO_NOTES)
def test_other_uses_of_the_same_signs_are_not_notes(message: str) -> None:
    """References, hashtags, scripts, headings and documents are left alone (C6)."""
    assert note(message) == ""


def test_a_note_becomes_one_memory_of_the_kind_it_is(opened: Opener) -> None:
    """A rule is a preference, later work something to do, all else knowledge; nothing is kept twice (C6)."""
    workspace = opened()
    rule, todo, fact = (
        "always use uv, never pip",
        "we need to rotate the keys by tomorrow",
        "Port 5433 ist die Datenbank",
    )
    for _ in range(2):
        drained(workspace, f"# {rule}", f"remember: {todo}", f"# {fact}")
    (preference,), (pending,), (knowledge,) = (
        kept(workspace, kind) for kind in ("preference", "prospective", "semantic")
    )
    assert [one.content for one in (preference, pending, knowledge)] == [rule, todo, fact]
    assert {one.trust for one in (preference, pending, knowledge)} == {"human"}
    assert (pending.status, pending.metadata["priority"]) == ("pending", "high")
    assert kept(workspace, "working") == []
    assert [one.text for one in workspace.sources.preferences.get_relevant()] == [rule]


def test_a_note_of_a_program_is_not_a_persons(opened: Opener) -> None:
    """What a program that drives the agent asks to be kept has an agent's trust (C6)."""
    workspace = opened()
    drained(workspace, "# the build needs four cores", source="sdk")
    assert [one.trust for one in kept(workspace, "semantic")] == ["agent"]


def test_a_secret_in_a_note_is_refused_by_its_rules_name(opened: Opener) -> None:
    """It is stored nowhere, and the refusal does not show it (C6)."""
    workspace = opened()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    done = drained(workspace, f"remember: the token is {secret}")
    assert len(done.refused) == 1
    assert secret not in done.refused[0]
    assert kept(workspace, "semantic") == []
