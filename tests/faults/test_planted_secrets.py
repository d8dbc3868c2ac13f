"""No byte of a secret gets past any door: not into files memfs writes, journal, index, git, logs (faults row 19, B6).

Each door is tried with a secret of every sort that row 19 names. Then everything is searched: the workspace, git's
objects unpacked, the cache, the home, what was logged and printed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kit import secret_samples
from kit.beginning import copy_of
from memfs import MemoryItem, Origin, Query, open_workspace
from memfs.doors.cli.app import run
from memfs.errors import MemfsError, SecretDetected
from memfs.format import secrets
from memfs.fs.atomic_replace import sha256
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults

SECRETS = secret_samples.row_19()
PLACE = "ContextMemory/memories/semantic/2026-03/by-hand.yaml"
Door = Callable[[Workspace, str], object]


def traces(secret: str, *places: Path) -> list[str]:
    """Every file, and every object of git, that holds the secret's longest line, or its stem as an index does."""
    return traces_of([secret], *places)


def traces_of(several: Iterable[str], *places: Path) -> list[str]:
    """As ``traces``, of any of several secrets."""
    lines = [longest_line(secret) for secret in several]
    stems = [max(re.findall(b"[A-Za-z0-9]+", line), key=len).lower()[:-3] for line in lines]
    return [
        name
        for name, data in everything(*places)
        if any(line in data for line in lines) or any(stem in data.lower() for stem in stems)
    ]


def everything(*places: Path) -> Iterator[tuple[str, bytes]]:
    """Each file below the places, and the objects of each repository unpacked."""
    for place in places:
        yield from ((str(path), path.read_bytes()) for path in place.rglob("*") if path.is_file())
        yield from ((f"{folder}: objects", objects(folder.parent)) for folder in place.rglob(".git"))


def longest_line(secret: str) -> bytes:
    """What of a secret can be searched for: its longest line, as it is in files and in objects."""
    return max(secret.split("\n"), key=len).strip().encode()


def objects(repository: Path) -> bytes:
    """Every object of a repository, reachable or not, unpacked."""
    done = subprocess.run(
        ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"],
        check=True,
        capture_output=True,
        env=os.environ,
    )
    return done.stdout


@pytest.fixture
def secret(request: pytest.FixtureRequest) -> str:
    """The secret of a rule."""
    return SECRETS[request.param]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with one committed item."""
    copy_of(_harmless, tmp_path / "W")
    settings = {"index.engine": "sqlite", "history.commit": "batch"}
    with open_workspace(tmp_path / "W", watch=False, settings=settings) as made:
        yield made


def _harmless(workspace: Workspace) -> None:
    workspace.store.put(MemoryItem("harmless", id="harmless"))


# -- the doors of the library -------------------------------------------------------------------------------------
def _batch(workspace: Workspace, secret: str) -> None:
    with workspace.store.batch("Several") as batch:
        batch.put(MemoryItem("harmless, too"))
        batch.put(MemoryItem(f"It is {secret}"))


def _batch_message(workspace: Workspace, secret: str) -> None:
    with workspace.store.batch(secret) as batch:
        batch.put(MemoryItem("harmless, too"))


def _update(workspace: Workspace, secret: str) -> None:
    item = workspace.store.get("harmless")
    assert item is not None
    workspace.store.put(item.replace(metadata={"note": secret}), expected=item.sha256)


DOORS: dict[str, Door] = {
    "put": lambda workspace, secret: workspace.store.put(MemoryItem(f"one\n{secret}\nthree")),
    "title": lambda workspace, secret: workspace.store.put(MemoryItem("x", title=secret)),
    "id": lambda workspace, secret: workspace.store.put(MemoryItem("x", id=secret)),
    "tag": lambda workspace, secret: workspace.store.put(MemoryItem("x", tags=("a", secret))),
    "context": lambda workspace, secret: workspace.store.put(MemoryItem("x", context={"branch": secret})),
    "data": lambda workspace, secret: workspace.store.put(MemoryItem("x", data={"deep": [{"er": secret}]})),
    "key": lambda workspace, secret: workspace.store.put(MemoryItem("x", metadata={secret: 1})),
    "agent": lambda workspace, secret: workspace.store.put(MemoryItem("x", origin=Origin(agent=secret))),
    "convention": lambda workspace, secret: workspace.store.put(MemoryItem(secret, "convention", title="Ours")),
    "message": lambda workspace, secret: workspace.store.put(MemoryItem("x"), message=f"Because {secret}"),
    "source": lambda workspace, secret: workspace.store.put(MemoryItem("x"), source=secret),
    "update": _update,
    "batch": _batch,
    "batch message": _batch_message,
    "reason": lambda workspace, secret: workspace.store.delete("harmless", reason=secret),
    "rollback message": lambda workspace, secret: workspace.history.restore("HEAD~1", message=secret),
    "commit message": lambda workspace, secret: workspace.store.flush(adopt=True, message=secret),
    "override": lambda workspace, secret: workspace.store.put(MemoryItem(secret), allow_secret=f"it is {secret}"),
}


@pytest.mark.parametrize("door", DOORS)
def test_19_every_door_of_the_library_refuses_a_secret(
    door: str, workspace: Workspace, own_world: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """``SecretDetected`` names the rule; nothing anywhere holds the value, and what was there stays (row 19)."""
    before = workspace.history.log()
    messages = ""
    with caplog.at_level(logging.DEBUG):
        for secret in SECRETS.values():
            with pytest.raises(SecretDetected, match=r"rule [a-z-]+ at line \d+") as caught:
                DOORS[door](workspace, secret)
            messages += f"{caught.value} {caught.value!r} {caught.value.__context__!r}"
        workspace.store.flush(adopt=True)
        workspace.store.fold()
        workspace.close()
    assert traces_of(SECRETS.values(), tmp_path, own_world) == []
    for secret in SECRETS.values():
        assert longest_line(secret).decode() not in messages + caplog.text
    with open_workspace(tmp_path / "W", watch=False) as again:
        kept = again.store.get("harmless")
        assert kept is not None
        assert kept.content == "harmless"
        assert [row.commit for row in again.history.log()] == [row.commit for row in before]
        assert again.checker.check() == []


def test_19_the_search_finds_what_a_broken_detector_lets_in(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace, own_world: Path, tmp_path: Path
) -> None:
    """Without detection the same doors leave traces in files, journal, index and git: the search is not blind."""
    monkeypatch.setattr(secrets, "find", lambda _: [])
    key = secret_samples.aws_key()
    workspace.store.put(MemoryItem(f"x {key}"))
    kinds = {Path(path).name for path in traces(key, tmp_path, own_world)}
    assert any(name.endswith(".yaml") for name in kinds)
    assert any(name.startswith("journal") for name in kinds)
    workspace.store.flush()
    workspace.store.fold()
    workspace.close()
    found = traces(key, tmp_path, own_world)
    assert any(path.endswith(": objects") for path in found)
    assert any(path.startswith(str(own_world)) for path in found)


# -- the doors of the command line --------------------------------------------------------------------------------
COMMANDS: dict[str, tuple[str, ...]] = {
    "remember": ("remember", "one {}"),
    "title": ("remember", "x", "--title", "{}"),
    "tag": ("remember", "x", "--tag", "{}"),
    "context": ("remember", "x", "--context", "branch={}"),
    "session": ("remember", "x", "--agent", "a", "--session", "{}"),
    "replace": ("update", "harmless", "--title", "{}"),
    "import": ("import", "lines.jsonl"),
    "edit": ("remember", "--edit", "--title", "{}"),
    "forget": ("forget", "harmless", "--reason", "{}"),
    "commit": ("commit", "-m", "{}"),
    "restore": ("restore", "--from", "HEAD~1", "-m", "{}"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("secret", ["anthropic-key", "private-key"], indirect=True)
def test_19_every_verb_that_writes_refuses_a_secret(
    command: str, secret: str, workspace: Workspace, own_world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command ends with 1 and names the rule, and neither it nor the disk shows the value (row 19)."""
    workspace.close()
    lines = tmp_path / "lines.jsonl"
    rows = [{"content": "harmless, too"}, {"content": secret}, {"content": "x", "importance": secret}]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [word.replace("{}", secret).replace("lines.jsonl", str(lines)) for word in COMMANDS[command]]
    capfd.readouterr()
    assert run(["-C", str(tmp_path / "W"), *words]) == 1
    printed = "".join(capfd.readouterr())
    assert "rule " in printed
    assert longest_line(secret).decode() not in printed
    lines.unlink()
    assert traces(secret, tmp_path, own_world) == []


# -- by hand ------------------------------------------------------------------------------------------------------
def write(workspace: Workspace, path: str, text: str) -> Path:
    """Write a file as a person does."""
    file = workspace.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


BY_HAND = {
    PLACE: "content: |\n  It is\n{}",
    "ContextMemory/conventions/ours.yaml": "title: Ours\ncontent: |\n{}",
    "ContextMemory/context/session.yaml": "key: |\n{}",
    "ContextMemory/configuration/memory_context.yaml": "metadata:\n  type: memory\n  name: Ours\n{#}",
    "ContextMemory/.gitignore": "*.zst\n{#}",
    "memfs.toml": '[index]\nengine = "sqlite"\n{#}',
}


def filled(text: str, secret: str) -> str:
    """A file's text with a secret in it, as an indented block or as comments."""
    lines = secret.split("\n")
    block = "".join(f"  {line}\n" for line in lines)
    return text.replace("{#}", "".join(f"# {line}\n" for line in lines)).replace("{}", block)


@pytest.mark.parametrize("path", BY_HAND)
def test_19_an_edit_by_hand_with_a_secret_is_left_alone_and_reported(
    path: str, workspace: Workspace, own_world: Path, tmp_path: Path
) -> None:
    """It is neither journalled, committed nor indexed; ``check`` names the rule; once clean, it is adopted."""
    for secret in SECRETS.values():
        file = write(workspace, path, filled(BY_HAND[path], secret))
        flushed = workspace.store.flush(adopt=True)
        assert (flushed.adopted, flushed.reason) == ((), "")
        workspace.store.fold()
        found = [problem for problem in workspace.checker.check() if problem.path == path]
        assert {(problem.code, problem.severity) for problem in found} == {("SecretDetected", "error")}
        assert longest_line(secret).decode() not in repr(found)
        assert workspace.checker.leaking_edits() == [path]
        assert path in workspace.checker.invalid_edits()
        assert traces(secret, tmp_path, own_world) == [str(file)]
    clean = filled(BY_HAND[path], "gone")
    write(workspace, path, clean)
    assert workspace.store.flush(adopt=True).adopted == (path,)
    assert workspace.checker.check() == []
    assert file.read_text() == clean


def test_19_the_last_clean_version_is_found_while_a_file_holds_a_secret(workspace: Workspace) -> None:
    """Recall gives the version before, marked as stale; asking for the item itself says what is wrong with the file."""
    write(workspace, PLACE, "content: The kestrel sleeps\n")
    workspace.store.flush(adopt=True)
    write(workspace, PLACE, f"content: The kestrel sleeps on {secret_samples.aws_key()}\n")
    hits = workspace.recaller.search(Query(text="kestrel")).hits
    assert [(hit.item.content, hit.stale) for hit in hits] == [("The kestrel sleeps", True)]
    with pytest.raises(SecretDetected, match=r"by-hand\.yaml"):
        workspace.store.get("by-hand")


def test_19_a_secret_that_a_person_committed_is_reported_and_not_indexed(
    workspace: Workspace, own_world: Path, git: Callable[..., str]
) -> None:
    """What git has already cannot be kept out of it, but out of answers; ``check`` says to revoke and to erase."""
    key = secret_samples.aws_key()
    write(workspace, PLACE, f"content: The kestrel sleeps on {key}\n")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-q", "-m", "by hand")
    assert workspace.recaller.search(Query(text="kestrel")).hits == ()
    workspace.store.reindex()
    workspace.store.fold()
    assert traces(key, own_world) == []
    found = {problem.code: problem for problem in workspace.checker.check()}
    assert "git has it already" in found["SecretDetected"].message
    write(workspace, PLACE, "content: The kestrel sleeps\n")
    found = {problem.code: problem for problem in workspace.checker.check()}
    assert set(found) == {"SecretInHistory"}
    assert "erase" in found["SecretInHistory"].hint
    workspace.store.flush(adopt=True)
    assert workspace.checker.check() == []


def test_19_a_write_over_an_edit_with_a_secret_does_not_journal_it(
    workspace: Workspace, own_world: Path, tmp_path: Path
) -> None:
    """A replaced edit goes into history first, so with a secret in it neither put nor delete replaces it."""
    key = secret_samples.aws_key()
    file = write(workspace, PLACE, f"content: {key}\n")
    workspace.store.refresh()
    with pytest.raises(SecretDetected, match="before it is replaced"):
        workspace.store.put(MemoryItem("harmless", id="by-hand"))
    with pytest.raises(SecretDetected, match="before it is replaced"):
        workspace.store.delete("by-hand")
    workspace.close()
    assert traces(key, tmp_path, own_world) == [str(file)]


def test_19_a_comment_with_a_secret_does_not_ride_along_with_an_update(
    workspace: Workspace, own_world: Path, tmp_path: Path
) -> None:
    """An update keeps a person's comments, so their bytes are looked at, too."""
    key = secret_samples.aws_key()
    item = workspace.store.get("harmless")
    assert item is not None
    file = workspace.root / item.path
    file.write_text(f"# {key}\n{file.read_text()}")
    with pytest.raises(SecretDetected):
        workspace.store.put(item.replace(content="changed"), expected=sha256(file.read_bytes()))
    workspace.close()
    assert traces(key, tmp_path, own_world) == [str(file)]


def test_19_other_errors_of_such_a_file_do_not_quote_it(workspace: Workspace) -> None:
    """A wrong value is quoted by the error that refuses it, but not when it looks like a secret."""
    key = secret_samples.aws_key()
    for text in (f"content: a\nimportance: {key}\n", f"content: a\n{key}: 1\n", f"content: a\nstatus: [{key}\n"):
        write(workspace, PLACE, text)
        problems = [*workspace.store.problems(), *workspace.checker.check()]
        messages = [repr(problem) for problem in problems]
        for read in (lambda: workspace.store.read(PLACE), lambda: workspace.store.get("by-hand")):
            with pytest.raises(MemfsError) as caught:
                read()
            messages.append(f"{caught.value} {caught.value!r} {caught.value.__cause__}")
        assert [line for line in messages if key[:8] in line] == []


# -- letting one stay ---------------------------------------------------------------------------------------------
def test_19_a_reason_lets_it_through_every_door_and_is_recorded(workspace: Workspace) -> None:
    """The reason is in the item and in the commit; later writes of the item need no other (B6)."""
    key = secret_samples.aws_key()
    stored = workspace.store.put(MemoryItem(f"Amazon shows {key}", id="shown"), allow_secret="Amazon's own example")
    assert stored.metadata == {"secret_allowed": "Amazon's own example"}
    workspace.store.flush()
    assert workspace.history.log()[0].subject == "Remember: shown (secret allowed: Amazon's own example)"
    workspace.store.put(stored.replace(title="Shown"))
    with workspace.store.batch("Two") as batch:
        batch.put(MemoryItem(f"again {key}", id="again"), allow_secret="the same")
        batch.put(MemoryItem("harmless, too", id="too"), allow_secret="the same")
    assert workspace.history.log()[0].subject == "Two (secret allowed: the same)"
    too = workspace.store.get("too")
    assert too is not None
    assert too.metadata == {}
    assert [hit.item.id for hit in workspace.recaller.search(Query(text="Amazon")).hits] == ["shown"]
    assert workspace.checker.check() == []


def test_19_a_person_writes_the_reason_into_the_file(workspace: Workspace) -> None:
    """An item says why below metadata, another file in a comment; both are adopted, and the commit says so (B6)."""
    key = secret_samples.aws_key()
    write(workspace, PLACE, f"content: {key}\nmetadata:\n  secret_allowed: it is public\n")
    write(workspace, "ContextMemory/context/a.yaml", f"# secret_allowed: for the test bench\nkey: {key}\n")
    flushed = workspace.store.flush(adopt=True)
    assert sorted(flushed.adopted) == ["ContextMemory/context/a.yaml", PLACE]
    subject = workspace.history.log()[0].subject
    assert subject.startswith("Edit by hand: a and 1 more (secret allowed: ")
    assert "it is public" in subject
    assert "for the test bench" in subject
    assert workspace.checker.check() == []


def test_19_an_old_reason_lets_no_other_secret_in(workspace: Workspace) -> None:
    """What an item allows are the secrets it had; another needs a reason of its own (B6)."""
    key, other = secret_samples.aws_key(), "ghp_" + secret_samples.aws_key()[4:] + "aB3dE5fG7hI9jK1lM3nO"
    stored = workspace.store.put(MemoryItem(f"Amazon shows {key}", id="shown"), allow_secret="Amazon's own example")
    for item in (stored.replace(content=f"now {other}"), stored.replace(id="copy")):
        with pytest.raises(SecretDetected):
            workspace.store.put(item)
    with pytest.raises(SecretDetected), workspace.store.batch("One") as batch:
        batch.put(stored.replace(content=f"{key} and {other}"))
    assert workspace.store.put(stored.replace(content=f"still {key}")).content == f"still {key}"
    assert other in workspace.store.put(stored.replace(content=f"now {other}"), allow_secret="a sample").content


@pytest.mark.parametrize("command", ["remember", "import", "new", "edit", "commit"])
def test_19_allow_secret_on_the_command_line(
    command: str, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--allow-secret REASON`` does it for remember, its --edit, import, update and commit (B6)."""
    key = secret_samples.aws_key()
    root = workspace.root
    item = workspace.store.get("harmless")
    assert item is not None
    workspace.close()
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"content": f"x {key}", "id": "shown"}) + "\n")
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nprintf "content: it is {key}\\n" > "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    words = {
        "remember": ["remember", "x", key, "--id", "shown"],
        "import": ["import", str(lines)],
        "new": ["remember", "--edit", "--id", "shown"],
        "edit": ["update", "harmless", "--edit"],
        "commit": ["commit"],
    }
    if command == "commit":
        (root / item.path).write_text(f"content: it is {key}\n")
    given = ["-C", str(root), *words[command]]
    assert run([*given, "--allow-secret", " "]) == 2
    if command in ("remember", "import"):
        assert run(given) == 1
    assert run([*given, "--allow-secret", "it is public"]) == 0
    with open_workspace(root, watch=False) as again:
        kept = again.store.get("harmless" if command in ("edit", "commit") else "shown")
        assert kept is not None
        assert kept.metadata == {"secret_allowed": "it is public"}
        again.store.flush(adopt=True)
        assert "(secret allowed: it is public)" in again.history.log()[0].subject
        assert again.checker.check() == []


def test_19_history_may_be_brought_back_as_it_was(workspace: Workspace, git: Callable[..., str]) -> None:
    """Rollback to a version that a person committed with a secret is not a new leak; ``check`` names it."""
    key = secret_samples.aws_key()
    write(workspace, PLACE, f"content: {key}\n")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-q", "-m", "by hand")
    (workspace.root / PLACE).unlink()
    workspace.store.flush(adopt=True)
    workspace.history.restore("HEAD~1", PLACE)
    assert key in (workspace.root / PLACE).read_text()
    assert {problem.code for problem in workspace.checker.check()} == {"SecretDetected"}
    workspace.store.delete("by-hand")
    assert workspace.store.get("by-hand") is None


def test_19_a_new_workspace_does_not_take_in_a_secret_that_was_there(tmp_path: Path, own_world: Path) -> None:
    """``init`` over an old folder commits what is clean, and leaves the rest to its owner."""
    key = secret_samples.aws_key()
    folder = tmp_path / "old" / "ContextMemory/memories/semantic"
    folder.mkdir(parents=True)
    (folder / "clean.yaml").write_text("content: harmless\n")
    leak = folder / "leak.yaml"
    leak.write_text(f"content: {key}\n")
    assert run(["init", str(tmp_path / "old")]) == 0
    assert traces(key, tmp_path, own_world) == [str(leak)]
