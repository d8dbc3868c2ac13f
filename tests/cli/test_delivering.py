"""``inject``, ``warn``, ``episode``, ``correct``: memory for agents on the command line (P1, P4, P6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfs import ContextMemory
from tests.cli.conftest import Memfs, git

BROKE = "test_login failed: KeyError 'sub'"


def broke(memfs: Memfs, *more: str) -> str:
    """An agent's edit of auth.py that went wrong; the episode's id."""
    ran = memfs(
        "agent", "episode", "record", "edited the token check", "--file", "src/auth.py", "--tool", "edit", "--agent",
        "coder", "--outcome", "failure", "--error", BROKE, "--json", *more,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return str(ran.json["id"])


def test_p1_a_failure_is_warned_of_before_the_next_step(memfs: Memfs) -> None:
    """What went wrong with a file is reported before it is touched again, and nothing where nothing matches (P1)."""
    nothing = memfs("agent", "warn", "--file", "src/auth.py", "edit the token check")
    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing is remembered" in nothing.err

    name = broke(memfs)
    warned = memfs("agent", "warn", "--file", "src/auth.py", "change the login", "--json")

    assert warned.json["ids"] == [name]
    assert f"| - edited the token check: {BROKE} [{name}; trust: agent, not reviewed" in warned.json["text"]
    assert memfs("agent", "warn", "--file", "src/auth.py").out == warned.json["text"] + "\n"
    assert memfs("agent", "warn", "--file", "docs/menu.md", "translate the lunch menu", "--json").json["texts"] == []


def test_p4_an_episode_is_an_item_in_git(memfs: Memfs, root: Path) -> None:
    """A recorded episode is committed, listed, and shown like every item (P4)."""
    name = broke(memfs, "--session", "s1", "--task", "T-1", "--about", "let people stay logged in")
    memfs("agent", "episode", "record", "read the log", "--tool", "bash", "--outcome", "success", "--warned", name)

    shown = memfs("show", name, "--json").json
    assert (shown["type"], shown["trust"], shown["origin"]["session"]) == ("episodic", "agent", "s1")
    assert "Record an episode" in git(root, "log", "--format=%s")
    assert "let people stay logged in" in json.dumps(shown["data"])
    assert {one["id"] for one in memfs("list", "--type", "episodic", "--json").json["items"]} > {name}


def test_p4_a_persons_report_is_a_persons(memfs: Memfs) -> None:
    """Without ``--agent`` an episode is what a person says happened."""
    ran = memfs(
        "agent", "episode", "record", "deployed by hand", "--outcome", "failure", "--error", "-", "--json", stdin=BROKE
    )

    assert ran.json["error"] == BROKE
    assert memfs("show", ran.json["id"], "--json").json["trust"] == "human"


def test_p4_failures_teach_what_the_inbox_suggests(memfs: Memfs) -> None:
    """A rule is suggested for what failed repeatedly; once accepted, agents are warned with it (P4, D1)."""
    for _ in range(4):
        broke(memfs)
    [rule] = memfs("inbox", "--json").json["suggestions"]
    assert (rule["source"], rule["count"]) == ("rule", 4)
    assert memfs("show", rule["id"]).code == 1
    assert memfs("inbox", "accept", rule["id"]).code == 0
    assert rule["id"] in memfs("agent", "warn", "--file", "src/auth.py", "edit the token check", "--json").json["ids"]
    assert memfs("show", rule["id"]).code == 0


def test_p4_corrections_become_preferences_that_are_injected(memfs: Memfs) -> None:
    """Each sentence that corrects is kept as a person's, and belongs in the prompt from then on (P4, P6)."""
    kept = memfs(
        "agent",
        "correct",
        "No, don't use print for logging. Always run the linter first.",
        "--speaker",
        "Ada",
        "--json",
    )

    assert len(kept.json["preferences"]) == 2
    assert kept.json["durability"] == "commit"
    injected = memfs("agent", "inject", "--json").json
    assert sorted(injected["ids"]) == sorted(one["id"] for one in kept.json["preferences"])
    assert "from speaker Ada]" in injected["text"]
    assert memfs("agent", "inject").out == injected["text"] + "\n"


def test_s5_an_agent_that_is_named_gets_its_feedback_and_history_says_so(memfs: Memfs, root: Path) -> None:
    """``inject --agent`` brings what the last meta-review says to it, and commits that it was given (S5)."""
    with ContextMemory(root) as states:
        critique = {"agent_feedback": {"Scout": ["look at the logs first"]}}
        states.store_meta_review({"iteration_number": 1, "critique": critique})

    assert "look at the logs first" not in memfs("agent", "inject").out
    assert "look at the logs first" in memfs("agent", "inject", "--agent", "Scout").out
    assert "feedback/Scout.json" in git(root, "log", "-1", "--format=", "--name-only")


def test_p1_the_budget_is_reported(memfs: Memfs) -> None:
    """What has no room is counted on standard error, and the text keeps to the budget (P1)."""
    for number in range(4):
        memfs("agent", "correct", f"Always use helper number {number} for topic {'abcd'[number] * 6}.")

    small = memfs("agent", "inject", "--max-tokens", "170")
    none = memfs("agent", "inject", "--max-tokens", "5")

    assert 0 < small.out.count("| - ") < 4
    assert "had no room; --max-tokens gives more" in small.err
    assert (none.code, none.out) == (0, "")
    assert "4 entries had no room" in none.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("warn",), "nothing to go by"),
        (("warn", "-", "more"), "leave out the other words"),
        (("episode", "record", "x"), "--outcome"),
        (("episode", "record", "--outcome", "failure"), "nothing to record"),
        (("episode", "record", "x", "--outcome", "failed"), "failed"),
        (("inject", "--max-tokens", "-1"), "max-tokens"),
    ],
)
def test_impossible_arguments_are_a_usage_error(memfs: Memfs, arguments: tuple[str, ...], message: str) -> None:
    """Arguments that contradict one another are named, with exit code 2."""
    ran = memfs("agent", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_17_nothing_that_hides_reaches_the_terminal(memfs: Memfs) -> None:
    """Escape sequences in an error message are shown, not obeyed (faults row 17)."""
    memfs(
        "agent",
        "episode",
        "record",
        "ran it",
        "--file",
        "a.py",
        "--outcome",
        "failure",
        "--error",
        "bad \x1b[31mred\x1b[0m",
    )

    ran = memfs("agent", "warn", "--file", "a.py", "ran it")
    assert "\x1b" not in ran.out
    assert "red" in ran.out
