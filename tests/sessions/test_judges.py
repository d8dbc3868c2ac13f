"""What a person says is kept: notes in any language, corrections of what was said before, a model that judges."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from kit.model_server import ModelReply, ModelServer, Request, says
from memfs.model import MemoryItem, Query
from memfs.recall.llm_reviewer import LlmReviewer
from memfs.sessions.event import SessionEvent
from memfs.sessions.extract import MessageJudge, note
from memfs.sessions.spool import Spool
from memfs.sessions.store import Drain, DrainResult
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]
pytestmark = pytest.mark.usefixtures("learning_written", "private_memory")


def told(workspace: Workspace, *prompts: str, seconds: float = 30.0, **fields: Any) -> DrainResult:
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
    told(workspace, "No, that is wrong. The API base path is /v2, not /v1")
    (item,) = kept(workspace, "preference")
    assert (item.content, item.trust, item.origin.role) == ("The API base path is /v2, not /v1", "human", "user")
    assert kept(workspace, "working") == []


def test_what_follows_a_refusal_is_kept_only_where_it_states_something(opened: Opener) -> None:
    """A report of the moment after a "no" is no correction (P4)."""
    workspace = opened()
    told(workspace, "Wrong. The page is still blank.", "No. Run the tests again.", "That is wrong.")
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
    """``remember:`` and ``#`` at the beginning of a message ask for it to be kept as it stands (C6)."""
    assert note(message) == wanted


@pytest.mark.parametrize("message", NO_NOTES)
def test_other_uses_of_the_same_signs_are_no_notes(message: str) -> None:
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
        told(workspace, f"# {rule}", f"remember: {todo}", f"# {fact}")
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
    told(workspace, "# the build needs four cores", source="sdk")
    assert [one.trust for one in kept(workspace, "semantic")] == ["agent"]


def test_a_secret_in_a_note_is_refused_by_its_rules_name(opened: Opener) -> None:
    """It is stored nowhere, and the refusal does not show it (C6)."""
    workspace = opened()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    done = told(workspace, f"remember: the token is {secret}")
    assert len(done.refused) == 1
    assert secret not in done.refused[0]
    assert kept(workspace, "semantic") == []


# -- a model that judges ----------------------------------------------------------------------------------------------
LABELS = {
    "nimm bitte immer uv statt pip.": "preference",
    "die Datenbank liegt auf Port 5433.": "fact",
    "das machen wir nächste Woche.": "todo",
    "wir haben uns für Redis entschieden.": "decision",
    "Wie geht das?": "none",
}


def labelling(asked: Request) -> ModelReply:
    """What a model that knows ``LABELS`` answers."""
    said = [line[2:] for line in asked.body["messages"][1]["content"].splitlines() if line.startswith("| ")]
    return says({"labels": [LABELS.get(one, "none") for one in said]})


def test_a_model_judges_where_one_is_set(opened: Opener) -> None:
    """With an endpoint for review it sorts what a person says, in any language and in one call (C3, C6)."""
    with ModelServer(labelling) as server:
        workspace = opened(review__endpoint=server.url)
        done = told(workspace, " ".join(LABELS), "Always use Decimal for money.")
        assert len(server.asked) == 1
    assert done.refused == ()
    assert [one.content for one in kept(workspace, "preference")] == ["nimm bitte immer uv statt pip."]
    assert [one.content for one in kept(workspace, "semantic")] == ["die Datenbank liegt auf Port 5433."]
    assert [one.content for one in kept(workspace, "prospective")] == ["das machen wir nächste Woche."]
    assert [one.content for one in kept(workspace, "episodic")] == ["wir haben uns für Redis entschieden."]


@pytest.mark.parametrize(
    "answer",
    [
        says({"labels": ["preference"]}),
        says({"labels": ["boss"] * 2}),
        says("no"),
        ModelReply(status=500),
        ModelReply(drop=True),
    ],
)
def test_cues_judge_where_the_model_gives_no_usable_answer(opened: Opener, answer: ModelReply) -> None:
    """The drain says so once, and nothing that cues tell is lost (C3)."""
    with ModelServer(answer) as server:
        workspace = opened(review__endpoint=server.url)
        done = told(workspace, "Always use Decimal for money. What is the time?")
    assert [one.content for one in kept(workspace, "preference")] == ["Always use Decimal for money."]
    assert [sentence for sentence in done.refused if "cues did" in sentence] == list(done.refused)
    assert len(done.refused) == 1


def test_a_silent_model_holds_a_drain_up_no_longer_than_its_time(opened: Opener) -> None:
    """It has ``review.seconds``, or what is left of the drain; where that is under a second it is not asked (C3)."""
    with ModelServer(ModelReply(hold=True)) as server:
        workspace = opened(review__endpoint=server.url, review__seconds=1.0)
        told(workspace, "Always use Decimal for money.")
        assert len(server.asked) == 1
        told(workspace, "Never use floats for money.", seconds=0.9)
        assert len(server.asked) == 1
    assert len(kept(workspace, "preference")) == 2


class Client:
    """Answers as told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def chat_json(
        self, model: str, system: str, user: str, schema: Any, *, seconds: float | None = None
    ) -> dict[str, Any]:
        """See ``Client`` of the reviewer."""
        self.asked.append(user)
        return {"labels": ["fact"] * user.count("\n| ")}


def test_no_secret_and_no_endless_message_goes_to_the_model() -> None:
    """Such messages are judged by cues; a quoted sentence cannot end its quotation (C3)."""
    client = Client()
    judge = MessageJudge(LlmReviewer(client, ""), 5.0, time.monotonic() + 60)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    messages = [f"The token is {secret}", "Always use Decimal.", " ".join(f"Never use float {n}." for n in range(99))]
    judged = judge.judge(messages)
    assert secret not in json.dumps(client.asked)
    assert "float" not in json.dumps(client.asked)
    assert [one.text for one in judged[1].facts] == ["Always use Decimal."]
    assert judged[2] == MessageJudge().judge(messages[2:])[0]
    assert judge.judge([]) == []
