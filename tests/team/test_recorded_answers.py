"""Answers of the past, of reviews, of mounts and of private memory, recorded bit for bit: scores are part of them.

``RECORD_ANSWERS=1`` writes the file again, for a change that is meant to change an answer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memfs import open_workspace, private

Memfs = Callable[..., str]
RECORDED = Path(__file__).with_name("recorded_answers.json")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BELOW = "ContextMemory/memories"
KINDS = "ContextMemory/configuration/kinds.yaml"
UNKNOWN = "ContextMemory/configuration/questions.yaml"
RECIPE = "kinds:\n  recipe:\n    layer: semantic\n    description: how to cook\n"
FOREIGN = """questions:
- ask: Which database do we use for transactions?
  expect: [database]
  limit: 3
- ask: Who deploys on Fridays?
  expect: [deploy]
"""


class Project:
    """A repository made by hand, whose commits have the same ids each time."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.commits = 0
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("memfs.toml", 'format_version = 1\n[history]\ncommit = "manual"\n')

    def git(self, *words: str) -> None:
        moment = f"2026-04-{self.commits + 1:02} 10:00:00 +0000"
        dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        subprocess.run(["git", "-C", str(self.root), *words], check=True, capture_output=True, env=os.environ | dates)

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        moment = NOW.timestamp() - 86400 * 40
        os.utime(file, (moment, moment))

    def item(self, name: str, content: str, more: str = "", made: str = "2026-03-01T10:00:00Z") -> None:
        times = f"created: {made}\ntimestamp: {made}\n" if made else ""
        self.write(f"{BELOW}/{name}.yaml", f"content: |-\n  {content}\n{times}{more}")

    def move(self, old: str, new: str) -> None:
        target = self.root / BELOW / f"{new}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.root / BELOW / f"{old}.yaml").rename(target)

    def remove(self, name: str) -> None:
        (self.root / BELOW / f"{name}.yaml").unlink()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)
        self.commits += 1


def history(folder: Path) -> Project:
    """A few weeks of a team's memory: all that a file, an id and a kind may go through."""
    team = Project(folder)
    team.item("semantic/2026-03/database", "We use PostgreSQL as the database for transactions.", "tags: [storage]\n")
    team.item("semantic/2026-03/cache", "The cache of sessions is Redis, not the database.", "importance: 2\n")
    team.item("procedural/2026-03/deploy", "Deploy on Tuesdays. Mei deploys by tag.", "trust: human\n")
    team.item("episodic/2026-03/outage", "The database was down for an hour.", "tags: [incident]\n")
    team.item("interaction/2026-03/talk1", "Where is the database?", "origin: {session: s1, sequence: 1, role: user}\n")
    team.item("interaction/2026-03/talk2", "In Frankfurt.", "origin: {session: s1, sequence: 2, role: assistant}\n")
    team.item("semantic/timeless", "Nobody knows since when transactions matter.", made="")
    team.write(KINDS, RECIPE)
    team.item("recipe/soup", "Leek soup for the database team.")
    team.write(UNKNOWN, FOREIGN)
    team.commit("Begin")
    team.item("semantic/2026-03/database", "We use PostgreSQL 16 as the database.", "tags: [storage, sql]\n")
    team.item("semantic/twins/cache", "A second file has the id of the cache.", made="2026-03-05T10:00:00Z")
    team.item("semantic/2026-03/Deploy", "Deploying is nobody's task in this file.", made="2026-02-01T10:00:00Z")
    team.write(f"{BELOW}/semantic/2026-03/broken.yaml", "content: [unclosed database\n")
    team.write(f"{BELOW}/semantic/2026-03/secret.yaml", "content: the key is AKIAIOSFODNN7EXAMPLF\n")
    team.write(f"{BELOW}/semantic/2026-03/bytes.yaml", b"content: \xff\xfe database\n")
    team.commit("Mistakes")
    team.move("episodic/2026-03/outage", "episodic/moved/outage")
    team.move("semantic/2026-03/cache", "semantic/2026-03/session-cache")
    conflict = "conflicts:\n- field: title\n  kept: Deploys\n  lost: Deployment\n"
    team.item("procedural/2026-03/deploy", "Deploy on Tuesdays. Mei deploys by tag.", f"title: Deploys\n{conflict}")
    team.remove("semantic/2026-03/Deploy")
    team.write("ContextMemory/conventions/retries.yaml", "content: Retry calls to the database.\nstatus: accepted\n")
    team.commit("Move and rename")
    (team.root / KINDS).unlink()
    team.write(f"{BELOW}/semantic/2026-03/plain.json", '{"content": "The database speaks JSON on port 5432."}\n')
    old = "status: superseded\nlinks: [{to: sqlite, relation: superseded_by}]\n"
    team.item("semantic/2026-03/database", "We use PostgreSQL 16 as the database.", old)
    team.item("semantic/2026-04/sqlite", "SQLite is the database of every service.", "supersedes: [database]\n")
    team.write("memfs.toml", '[history]\ncommit = "manual"\n[recall]\nlimit = 4\npreset = "time_weighted"\n')
    team.commit("No recipes")
    team.git("switch", "--quiet", "--create", "work")
    team.item("semantic/2026-03/database", "We use nothing for transactions.", "trust: agent\n")
    team.remove("procedural/2026-03/deploy")
    team.item("semantic/2026-04/fresh", "Transactions go to the ledger database.", made="")
    team.write(KINDS, "kinds: {1: 2}\n")
    team.commit("Break kinds")
    team.write(KINDS, RECIPE)
    team.commit("Mend kinds")
    return team


def commands(beside: str, own: str) -> Iterator[tuple[str, ...]]:
    """What is asked; ``beside`` and ``own`` are the settings of a mount and of private memory."""
    questions = ("database transactions", "who deploys", "cache", "deploy", "", "where is the databse")
    for revision in ("HEAD", "HEAD~1", "main", "main~2", "2026-04-02"):
        for question in questions:
            yield ("recall", question, "--as-of", revision, "--json")
        yield ("recall", "database", "--as-of", revision, "--type", "semantic", "--since", "2026-03-01", "--json")
        yield ("recall", "database", "--as-of", revision, "--type", "recipe", "--json")
        yield (
            "recall",
            "database",
            "--as-of",
            revision,
            "--layer",
            "episodic",
            "--path",
            f"{BELOW}/episodic",
            "--json",
        )
        yield ("list", "--as-of", revision, "--json")
        for name in ("database", "cache", "CACHE", "dep", "session", "broken", "soup", "nothing", f"{BELOW}/x.yaml"):
            yield ("show", name, "--as-of", revision, "--json")
    for expected in ("who deploys => deploy", "database => !fresh", "transactions => database"):
        for good in ("main~3", "main"):
            yield ("team", "bisect", "--good", good, "--expect", expected, "--json")
    for span in ("main..work", "main~3..main~2", "main~2..main~1", "main~1..main", "main~3..HEAD", "work"):
        yield ("review", span, "--json")
    yield ("team", "blame", "database", "--json")
    for settings in ((), ("--set", beside), ("--set", own), ("--set", beside, "--set", own)):
        for question in questions:
            yield (*settings, "recall", question, "--explain", "--json")
        yield (*settings, "recall", "database", "--type", "semantic", "--until", "2026-04-01", "--json")
        yield (*settings, "recall", "database", "--path", f"{BELOW}/semantic", "--json")
        yield (*settings, "recall", "the ledger", "--fenced")
        for name in ("team:pool", "team:po", "team:nothing", "other:pool", "private:wish", "private:database"):
            yield (*settings, "show", name, "--json")
        yield (*settings, "list", "--json")


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is fixed, so that scores are."""
    for module in ("workspace", "model.query", "git.repository"):
        monkeypatch.setattr(f"memfs.{module}.utc_now", lambda: NOW)


def plain(output: str, folders: dict[str, str]) -> Any:
    """What a command said, without what differs from run to run: where folders are, and the marks of a fence."""
    for folder, name in folders.items():
        output = output.replace(folder, name)
    try:
        return json.loads(output)
    except ValueError:
        return re.sub(r"(</?memories) [0-9a-f]{16}>", r"\1>", output).splitlines()


def ask(folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command; its exit code and what it said."""
    from memfs.doors.cli.app import run

    capsys.readouterr()
    code = run(["-C", str(folder), *words])
    captured = capsys.readouterr()
    return code, captured.out or captured.err


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("engine", ["whoosh", "sqlite"])
def test_answers_are_those_that_were_recorded(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One reader answers for files, revisions, mounts and private memory, and says what four said before it."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", engine)
    team = history(tmp_path / "shop")
    other = Project(tmp_path / "other")
    other.item("semantic/2026-03/pool", "The connection pool of the database holds 20.", "trust: human\n")
    other.item("semantic/2026-03/database", "The other team's database for transactions is MySQL.")
    other.item("interaction/2026-03/said", "Who deploys?", "origin: {session: s1, sequence: 3, role: user}\n")
    other.write(f"{BELOW}/semantic/2026-03/bad.yaml", "content: [\n")
    mine = private.claim(private.project_at(str(team.root)))
    open_workspace(mine, create=True, watch=False).close()
    for name, text in (("wish", "I want short answers about the database."), ("database", "We use nothing.")):
        path = mine / BELOW / "preference" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content: {text}\ncreated: 2026-03-02T10:00:00Z\ntrust: human\n")
    team.item("semantic/2026-04/staged", "The ledger is staged.", made="2026-04-20T10:00:00Z")
    team.git("add", "--all")
    team.item("semantic/2026-04/hand", "The ledger of transactions is by hand.", made="2026-04-21T10:00:00Z")
    folders = {str(mine): "PRIVATE", str(tmp_path): "TMP", mine.name: "KEY"}
    found = {}
    for number, words in enumerate(commands(f"mounts.team={other.root}", f"mounts.private={mine}")):
        if engine == "sqlite" and number % 3 and "--as-of" in words:
            continue  # that the past is the same with either engine is shown by test_as_of_property, too
        code, output = ask(team.root, words, capsys)
        found[plain(" ".join(words), folders)[0]] = [code, plain(output, folders)]
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if os.environ.get("RECORD_ANSWERS"):
        if engine == "whoosh":
            recorded = {"every engine": found, "sqlite": {}}
        else:
            recorded[engine] = {name: it for name, it in found.items() if it != recorded["every engine"].get(name)}
        RECORDED.write_text(json.dumps(recorded, indent=0, sort_keys=True) + "\n")
    expected = recorded["every engine"] | recorded.get(engine, {})
    assert len(found) > 100
    assert found.keys() == expected.keys() or (engine == "sqlite" and found.keys() < expected.keys())
    wrong = {name: (found[name], expected[name]) for name in found if found[name] != expected[name]}
    assert not wrong, json.dumps(wrong, indent=1)[:4000]
