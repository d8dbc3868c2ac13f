"""The gate that every git process passes."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from kit.patience import LONG
from memfs.errors import GitFailed, HistoryUnavailable, StorageIO
from memfs.fs import io
from memfs.git import objects
from memfs.git import process as module
from memfs.git.busy import running_git, verb_of

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("checkout", "main"),
        ("add", "-A"),
        ("diff",),
        ("reset", "--hard"),
        ("clean", "-fd"),
        ("gc", "--prune=now"),
        ("fetch",),
        ("push",),
        ("-c", "alias.x=!sh", "x"),
        ("rev-list", "--output=x", "HEAD"),
        ("diff-tree", "--ext-diff", "HEAD"),
        ("diff-tree", "HEAD"),
        ("diff-index", "HEAD"),
        ("cat-file", "--textconv", "HEAD:x"),
        ("cat-file", "--filt", "HEAD:x"),
        ("update-index", "--refresh"),
        ("config", "user.name", "x"),
        ("init",),
        ("repack", "-d", "--prune"),
        (),
    ],
)
def test_what_is_not_on_the_list_is_never_started(world, monkeypatch, command):
    """Verbs and options outside the closed list are refused before a process exists, for us and through GitPython."""
    repository = world.repository
    reader = repository.git.reader
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(GitFailed, match="memfs"):
        repository.git.run(*(command or ("",)))
    with pytest.raises(GitFailed, match="memfs"):
        reader.execute(["git", *command])


@pytest.mark.durable
def test_the_environment_is_scrubbed(world, monkeypatch):
    """No GIT_* of the caller's, no pager, no locale reaches git; hooks, monitors, prompts and transports are off."""
    for name in ("GIT_DIR", "GIT_TRACE", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS", "PAGER"):
        monkeypatch.setenv(name, "evil")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    found = world.repository.git.environment()
    assert "evil" not in found.values()
    assert found["LC_ALL"] == "C"
    assert found["GIT_OPTIONAL_LOCKS"] == found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["GIT_ALLOW_PROTOCOL"] == ""
    pairs = {
        found[f"GIT_CONFIG_KEY_{at}"]: found[f"GIT_CONFIG_VALUE_{at}"] for at in range(int(found["GIT_CONFIG_COUNT"]))
    }
    assert pairs["core.hooksPath"] == "/dev/null"
    assert pairs["core.fsync"] == "committed,reference"


def test_settings_are_asked_for_once_until_something_that_says_them_changes(world, tmp_path, monkeypatch):
    """One process reads all settings; another is started when a file or variable changed, each time with an include."""
    started = []
    start = module.start
    monkeypatch.setattr(module, "start", lambda command, *more: started.append(command) or start(command, *more))
    git, own = world.repository.git, tmp_path / "own"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    own.write_text("[user]\n\tname = One\n[memfs]\n\tsigningkey = /key\n")

    def current() -> tuple[str | None, ...]:
        return tuple(dict(git.settings(rf"^{name}$")).get(name) for name in ("user.name", "memfs.signingkey"))

    assert [current(), current()] == [("One", "/key")] * 2
    assert dict(git.settings("signingkey", own=True)) == {"memfs.signingkey": "/key"}
    assert len(started) == 1
    world.git("config", "user.name", "Here")
    assert current() == ("Here", "/key")
    assert dict(git.settings("^user", own=True)) == {"user.name": "One"}
    own.write_text("[memfs]\n\tsigningkey = /other\n")
    assert current() == ("Here", "/other")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    assert current() == ("Here", None)
    assert len(started) == 4
    (tmp_path / "none").write_text("[memfs]\n\tsigningkey = /new\n")
    assert current() == ("Here", "/new")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    own.write_text("[include]\n\tpath = more\n")
    assert current() == ("Here", None)
    (tmp_path / "more").write_text("[memfs]\n\tsigningkey = /more\n")
    assert current() == ("Here", "/more")


@pytest.fixture
def many(monkeypatch):
    """So many packed objects are read that a git is kept for them."""
    monkeypatch.setattr(objects, "read_packed", lambda folder, name: None)


def test_our_processes_run_in_the_state_folder(world, many):
    """Their working folder marks them as memfs's own, not a person's."""
    repository = world.repository
    world.git("gc", "-q")
    repository.tree("HEAD")
    folders = {process.folder for process in running_git() if process.verb == "cat-file"}
    assert str(repository.state) in folders


def test_what_a_failing_git_says_is_its_reason_alone(world):
    """No advice about the settings that memfs gives it comes before that."""
    with pytest.raises(GitFailed) as caught:
        world.repository.git.run("rev-list", "HEAD", "nothing")
    assert "nothing" in str(caught.value)
    assert "graft" not in str(caught.value)


def test_a_git_that_does_not_answer_is_ended(world, monkeypatch, tmp_path):
    """After the time limit the process is ended and the caller gets an error."""
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nsleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(module, "git_program", lambda: str(slow))
    started = time.monotonic()
    with pytest.raises(GitFailed, match=r"did not answer within 0\.2 seconds"):
        world.repository.git.run("version", timeout=0.2)
    assert time.monotonic() - started < LONG


def test_a_kept_process_that_falls_silent_is_replaced(world, many, monkeypatch):
    """A stopped cat-file is ended after the limit and another one asked."""
    repository = world.repository
    world.git("gc", "-q")
    blob = repository.head_blob(ITEM)
    repository.blob(blob)
    monkeypatch.setattr(module, "TIMEOUT", 1.0)
    kept = repository.git.reader.cat_file_all.proc
    os.kill(kept.pid, signal.SIGSTOP)
    assert repository.blob(blob) == b"title: first\n"


def test_a_kept_process_that_died_is_replaced(world, many):
    """A killed cat-file is noticed and replaced; an object that is missing stays missing."""
    repository = world.repository
    world.git("gc", "-q")
    blob = repository.head_blob(ITEM)
    repository.blob(blob)
    repository.git.reader.cat_file_all.proc.kill()
    assert repository.blob(blob) == b"title: first\n"
    with pytest.raises(HistoryUnavailable):
        repository.blob("1" * 40)


def test_a_missing_git_is_named(monkeypatch):
    """Without git on the path the error says what to install."""
    monkeypatch.setenv("PATH", "/nonexistent")
    module.git_program.cache_clear()
    with pytest.raises(GitFailed, match="not installed"):
        module.git_program()
    module.git_program.cache_clear()


def test_a_process_that_cannot_start_is_a_storage_error(world):
    """Starting git passes the fault hook like any other operation."""

    def hook(name, path):
        if name == "git":
            raise OSError(11, "Resource temporarily unavailable")

    io.set_hook(hook)
    with pytest.raises(StorageIO, match="git failed"):
        world.repository.resolve("HEAD~1")


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (["git", "commit", "-m", "x"], "commit"),
        (["/usr/bin/git", "-C", "commit", "-c", "a=b", "--no-pager", "status"], "status"),
        (["git", "--git-dir", "x", "rebase"], "rebase"),
        (["git", "--git-dir=x", "merge"], "merge"),
        (["/usr/lib/git-core/git-am"], "am"),
        (["git"], ""),
    ],
)
def test_the_verb_of_a_command_line_is_found(words, verb):
    """Options before the verb, with and without values, are passed over."""
    assert verb_of(words) == verb
