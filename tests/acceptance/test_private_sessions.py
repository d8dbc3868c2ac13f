"""A day of agents' sessions in a team's repository: what is typed stays private, what is shared is reviewed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memfs import private
from memfs.doors.claude_code.hook import DRAINS, Hook
from memfs.sessions.spool import find_place
from memfs.workspace import open_workspace

Git = Callable[..., str]
SETTINGS = {"index.engine": "memory", "hooks.start_tokens": 1000}  # room for all, however long the path of memfs
STREAMS = Path(__file__).parents[1] / "doors" / "streams"
RECORDED = {"main": "monday", "feature": "recorded", "fix": "tuesday", "docs": "wednesday"}
QUOTED = 24
"""So many characters in a row of what was typed are a quotation."""
BRANCHES = ("main", "feature", "fix", "docs")
TYPED = {
    "main": "Why does the quokka importer time out on Mondays?",
    "feature": "Always use pnpm in this repository, never npm.",
    "fix": "We need to rotate the wombat signing keys later, before the release.",
    "docs": "Please rewrite the numbat chapter in the style of the platypus one",
}
DECIDED = "We decided to round invoice totals half to even, because the ledger does the same."
FAILED = {"command": "pnpm run migrate"}


class Person:
    """Somebody with a clone, a home and an agent."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self.clone, self.home = name, folder / name / "shop", folder / name / "home"
        self.home.mkdir(parents=True)
        self._monkeypatch = monkeypatch

    def log_in(self) -> Person:
        """From now on this person's data and cache count."""
        self._monkeypatch.setenv("XDG_DATA_HOME", str(self.home / "data"))
        self._monkeypatch.setenv("XDG_CACHE_HOME", str(self.home / "cache"))
        return self

    def send_event(self, event: str, session: str, **fields: Any) -> str:
        """The context that the agent gets at an event; the hook may complain of nothing."""
        replies: list[str] = []
        remarks: list[str] = []
        payload = {"hook_event_name": event, "session_id": session, "cwd": str(self.clone), **fields}
        hook = Hook("", settings=SETTINGS, say=replies.append, complain=remarks.append)
        hook.run(json.dumps(payload).encode())
        if hook.left:
            hook.learn()
        assert remarks == []
        return json.loads(replies[0])["hookSpecificOutput"]["additionalContext"] if replies and replies[0] else ""

    def replay(self, stream: str, cwd: Path, into: str = "") -> list[str]:
        """Send all events of a recorded session in a folder; return what a person typed in it."""
        typed: list[str] = []
        for line in (STREAMS / f"{stream}.jsonl").read_text().splitlines():
            event = json.loads(line.replace("{root}", str(cwd)))
            self.record_event(event, into)
            typed += [event["prompt"]] if "prompt" in event else []
        return typed

    def record_event(self, event: dict[str, Any], into: str = "") -> None:
        """Let the hook keep an event as a program sends it, whatever it answers; it may complain of nothing."""
        replies: list[str] = []
        remarks: list[str] = []
        Hook("", into=into, settings=SETTINGS, say=replies.append, complain=remarks.append).run(
            json.dumps(event).encode()
        )
        assert remarks == []

    def memfs(self, *words: str) -> str:
        """What a command of memfs's prints in the clone."""
        return subprocess.run(["memfs", *words], cwd=self.clone, capture_output=True, text=True, check=True).stdout

    def inbox(self) -> list[str]:
        """What is suggested in the clone: whose it is, and its first word."""
        listed = json.loads(self.memfs("inbox", "--json"))["suggestions"]
        return [f"{one['id'].rpartition(':')[0]}:{one['content'].split()[0]}" for one in listed]

    @property
    def memory(self) -> Path | None:
        """The folder of this person's private memory."""
        return private.find(private.project_at(self.clone))


@pytest.fixture
def people(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, memfs_on_path: Path
) -> tuple[Path, Person, Person]:
    """A remote, Ada and Bo with a clone each; the repository has memory, and four branches."""
    for name in DRAINS:
        monkeypatch.setitem(DRAINS, name, 60.0)  # type: ignore[index]
    hub, ada, bo = tmp_path / "hub.git", Person("ada", tmp_path, monkeypatch), Person("bo", tmp_path, monkeypatch)
    git(tmp_path, "init", "-q", "--bare", str(hub))
    git(tmp_path, "clone", "-q", str(hub), str(ada.clone))
    (ada.clone / "app.py").write_text("pass\n")
    git(ada.clone, "add", "-A")
    git(ada.clone, "commit", "-qm", "Begin")
    ada.log_in().memfs("init")
    ada.memfs("remember", "The API base path is /v2.", "--type", "knowledge", "--id", "base-path")
    git(ada.clone, "add", "-A")
    git(ada.clone, "commit", "-qm", "Keep memory here", check=False)
    for branch in BRANCHES[1:]:
        git(ada.clone, "branch", branch)
    git(ada.clone, "push", "-q", "--all", "origin")
    git(tmp_path, "clone", "-q", str(hub), str(bo.clone))
    return hub, ada, bo


def a_day(ada: Person, git: Git) -> None:
    """Sessions on four branches."""
    for number, branch in enumerate(BRANCHES):
        session = f"s{number}"
        git(ada.clone, "checkout", "-q", branch)
        ada.send_event("SessionStart", session, source="startup")
        ada.send_event("UserPromptSubmit", session, prompt=TYPED[branch])
        ada.send_event("PreToolUse", session, tool_name="Bash", tool_input=FAILED)
        ada.send_event(
            "PostToolUseFailure", session, tool_name="Bash", tool_input=FAILED, error="Exit code 1: no column"
        )
        ada.send_event("Stop", session, last_assistant_message=DECIDED if branch == "feature" else "Done.")
        ada.send_event("SessionEnd", session, reason="other")
    git(ada.clone, "checkout", "-q", "main")


def bytes_in(folder: Path) -> Iterator[bytes]:
    """All that a folder holds, the objects of git among it unpacked."""
    objects = ["git", "cat-file", "--batch-all-objects", "--batch"]
    yield subprocess.run(objects, cwd=folder, capture_output=True, check=False).stdout
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path.read_bytes()


def words_in(folder: Path) -> set[str]:
    """Which of the words that were typed are anywhere in a folder, packed objects included."""
    words = (*TYPED.values(), "quokka", "wombat", "numbat", "pnpm in this")
    return {word for text in bytes_in(folder) for word in words if word.encode() in text}


def quoted_in(folder: Path, typed: Iterable[str]) -> set[str]:
    """What of texts is quoted anywhere in a folder."""
    pieces = {text[at : at + QUOTED] for text in typed for at in range(max(len(text) - QUOTED, 0) + 1)}
    return {piece for held in bytes_in(folder) for piece in pieces if len(piece) > 5 and piece.encode() in held}


def test_what_is_typed_stays_with_who_typed_it(people: tuple[Path, Person, Person], git: Git) -> None:
    """Nothing of four sessions is in the repository, its history or the remote; the next session knows it (C6, D1)."""
    hub, ada, bo = people
    before = git(ada.clone, "for-each-ref"), git(ada.clone, "log", "--all", "-p")
    a_day(ada, git)
    assert (git(ada.clone, "for-each-ref"), git(ada.clone, "log", "--all", "-p")) == before
    assert git(ada.clone, "status", "--porcelain") == ""
    assert words_in(ada.clone) == set()
    git(ada.clone, "push", "-q", "--all", "origin")
    assert words_in(hub) == set()

    context = ada.send_event("SessionStart", "s9", source="startup")
    assert "Always use pnpm" in context
    assert "wombat signing keys" in context
    asked = ada.send_event("UserPromptSubmit", "s9", prompt="how are the totals of invoices rounded?")
    assert "half to even" in asked
    assert "[private:we-decided-to-round" in asked
    assert "/v2" in ada.send_event("UserPromptSubmit", "s9", prompt="what is the base path of the API?")
    assert "no column" in ada.send_event("PreToolUse", "s9", tool_name="Bash", tool_input=FAILED)

    assert ada.memory is not None
    history = git(ada.memory, "log", "--all", "-p")
    assert "quokka" not in history
    assert "numbat" not in history
    assert "half to even" in history

    git(bo.clone, "pull", "-q")
    bo.log_in()
    assert "pnpm" not in bo.send_event("SessionStart", "b1", source="startup")
    assert bo.send_event("UserPromptSubmit", "b1", prompt="how are the totals of invoices rounded?") == ""


def test_recorded_sessions_leave_no_quotation_behind(people: tuple[Path, Person, Person], git: Git) -> None:
    """Recorded sessions on four branches, in a subfolder and a worktree: the repository quotes nobody (C6, D1)."""
    hub, ada, bo = people
    linked, deep = ada.clone.parent / "linked", ada.clone / "src" / "deep"
    git(ada.clone, "worktree", "add", "-q", "--detach", str(linked))
    typed: list[str] = []
    for branch, stream in RECORDED.items():
        git(ada.clone, "checkout", "-q", branch)
        deep.mkdir(parents=True, exist_ok=True)
        typed += ada.replay(stream, {"fix": linked, "docs": deep}.get(branch, ada.clone))
    git(ada.clone, "checkout", "-q", "main")
    assert len(typed) == 9
    context = ada.send_event("SessionStart", "next", source="compact", cwd=str(deep))
    assert "never npm" in context
    assert "signing keys" in context
    ada.memfs("recall", "half to even")
    ada.memfs("admin", "gc")
    git(ada.clone, "add", "-A")
    git(ada.clone, "commit", "-q", "--allow-empty", "-m", "Take in all there is", check=False)
    git(ada.clone, "push", "-q", "--all", "origin")
    for folder in (ada.clone, linked, hub, bo.clone):
        assert quoted_in(folder, typed) == set()
    assert ada.memory is not None
    assert quoted_in(ada.memory, typed) != set()  # else nothing was looked for


def test_into_the_repository_prompts_stay_out_of_its_commits(people: tuple[Path, Person, Person], git: Git) -> None:
    """Where sessions are kept in the repository, what was typed and is not a fact or plan is in no commit (C6, D1)."""
    hub, ada, _ = people
    session = {"session_id": "r1", "cwd": str(ada.clone)}
    for event in (
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "UserPromptSubmit", "prompt": TYPED["main"]},
        {"hook_event_name": "UserPromptSubmit", "prompt": TYPED["docs"]},
        {"hook_event_name": "UserPromptSubmit", "prompt": TYPED["feature"]},
        {"hook_event_name": "Stop", "last_assistant_message": DECIDED},
        {"hook_event_name": "SessionEnd", "reason": "other"},
    ):
        ada.record_event({**session, **event}, into="repository")
    git(ada.clone, "add", "-A")
    git(ada.clone, "commit", "-qm", "Keep what the session taught", check=False)
    git(ada.clone, "push", "-q", "--all", "origin")
    assert b"half to even" in b"".join(bytes_in(hub))
    assert words_in(hub) == set()
    assert ada.memory is None


def test_no_commit_of_a_repository_that_sessions_are_kept_in_quotes_a_prompt(
    people: tuple[Path, Person, Person], git: Git
) -> None:
    """With ``--into repository`` nothing that quotes what was typed, by whomever, is in any commit: it is suggested on
    this machine, and written once somebody accepts it (C6, D1).
    """
    _, ada, _ = people
    typed = [text for stream in RECORDED.values() for text in ada.replay(stream, ada.clone, into="repository")]
    plan, fact = "Later: retire the yapok billing host.", "The wallaby exporter lives in services/export."
    echo = f"We decided to wait, since you said: {plan[7:]}"
    for event in (
        {"hook_event_name": "UserPromptSubmit", "prompt": plan},
        {"hook_event_name": "UserPromptSubmit", "prompt": fact},
        {"hook_event_name": "UserPromptSubmit", "prompt": "remember: deploys of the dingo cluster need two people"},
        {"hook_event_name": "Stop", "last_assistant_message": f"{DECIDED} {echo}"},
        {"hook_event_name": "Stop", "last_assistant_message": f"{echo} And we decided to keep it."},
        {"hook_event_name": "SessionEnd", "reason": "other"},
    ):
        typed += [str(event["prompt"])] if "prompt" in event else []
        ada.record_event({"session_id": "r2", "cwd": str(ada.clone), **event}, into="repository")
    git(ada.clone, "add", "-A")
    git(ada.clone, "commit", "-q", "--allow-empty", "-m", "Keep what the sessions taught", check=False)
    written = git(ada.clone, "log", "--all", "-p")
    pieces = {text[at : at + 25] for text in typed for at in range(len(text) - 24)}
    assert {piece for piece in pieces if piece in written} == set()
    assert "half to even" in written

    waiting = json.loads(ada.memfs("inbox", "--json"))["suggestions"]
    texts = {one["content"]: one["id"] for one in waiting}
    assert {plan, fact, "deploys of the dingo cluster need two people", echo} <= texts.keys()
    ada.memfs("inbox", "accept", texts[plan])
    assert plan in ada.send_event("SessionStart", "r3", source="startup")


def test_one_fact_is_shared_as_a_file_to_be_reviewed(people: tuple[Path, Person, Person], git: Git) -> None:
    """``share`` brings one memory to the team, the rest waits; the other person sees that one alone (C6, D1)."""
    _, ada, bo = people
    a_day(ada, git)
    ada.send_event("SessionStart", "s9", source="startup")
    waiting = json.loads(ada.memfs("share", "--json"))["items"]
    [decision] = [one for one in waiting if "half to even" in one["content"]]
    shared = json.loads(ada.memfs("share", f"private:{decision['id']}", "--json"))
    assert [one["became"] for one in shared["items"]] == ["stored"]
    path = next((ada.clone / "ContextMemory" / "memories").rglob(f"{decision['id']}.yaml"))
    text = path.read_text()
    assert "half to even" in text
    assert "agent: claude-code" in text
    assert "trust: agent" in text
    assert words_in(ada.clone) == set()
    git(ada.clone, "add", "ContextMemory")
    git(ada.clone, "commit", "-qm", "Remember how totals are rounded", check=False)
    git(ada.clone, "push", "-q")

    left = json.loads(ada.memfs("share", "--json"))["items"]
    assert {one["id"] for one in waiting} - {one["id"] for one in left} == {decision["id"]}
    assert json.loads(ada.memfs("inbox", "--json"))["to_share"] == left
    found = json.loads(ada.memfs("recall", "rounding of invoice totals", "--json"))["hits"]
    assert [hit["id"] for hit in found if "half to even" in hit["content"]] == [decision["id"]]

    bo.log_in()
    git(bo.clone, "pull", "-q")
    context = bo.send_event("UserPromptSubmit", "b1", prompt="how are the totals of invoices rounded?")
    assert f"[{decision['id']};" in context
    assert "half to even" in context
    assert "pnpm" not in bo.send_event("SessionStart", "b2", source="startup")
    assert bo.send_event("UserPromptSubmit", "b2", prompt="which package manager is used, npm or pnpm?") == ""


def test_each_memory_teaches_its_own_inbox(people: tuple[Path, Person, Person]) -> None:
    """What private memory teaches is suggested there, and what the repository's teaches in its own inbox (D1, C6)."""
    _, ada, _ = people
    ada.send_event("UserPromptSubmit", "s1", prompt="Good morning, let us begin with the ledger.")
    assert ada.memory is not None
    for folder, words in ((ada.clone, "service {} listens on port 80{}"), (ada.memory, "depot {} opens at {} sharp")):
        for number in range(1, 4):
            ada.memfs("-C", str(folder), "remember", words.format(number, number))
    ada.send_event("Stop", "s1", last_assistant_message="Done.")
    ada.send_event("SessionStart", "s2", source="startup")
    for folder, word in ((ada.clone, "service"), (ada.memory, "depot")):
        with open_workspace(folder, watch=False, one_shot=True) as workspace:
            assert [one.item.content.split()[0] for one in workspace.inbox.waiting()] == [word]
    assert ada.inbox() == [":service", "private:depot"]


def test_without_memory_in_the_repository_private_memory_works_alone(
    people: tuple[Path, Person, Person], git: Git, tmp_path: Path
) -> None:
    """Hooks that are installed for a person work in a project that never heard of memfs, and leave it alone (C6)."""
    _, ada, _ = people
    ada.clone = tmp_path / "plain"
    ada.clone.mkdir()
    git(ada.clone, "init", "-q")
    ada.log_in()
    ada.send_event("SessionStart", "p1", source="startup")
    ada.send_event("UserPromptSubmit", "p1", prompt=TYPED["feature"])
    ada.send_event("Stop", "p1", last_assistant_message=DECIDED)
    context = ada.send_event("SessionStart", "p2", source="startup")
    assert "Always use pnpm" in context
    assert f"-C {find_place(str(ada.clone), {}).root}" in context
    assert sorted(os.listdir(ada.clone)) == [".git"]
    assert words_in(ada.clone) == set()
