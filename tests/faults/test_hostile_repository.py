"""A repository that came from elsewhere runs nothing here, whatever it holds (faults rows 29 and 41, threat model)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile import canaries as planting
from hostile.canaries import Canaries
from memfs.doors.cli.app import run

pytestmark = pytest.mark.faults
Git = Callable[..., str]
ITEM = "ContextMemory/memories/knowledge/good.yaml"

VERBS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("list",),
    ("recall", "neighbour"),
    ("recall", "neighbour", "--json"),
    ("remember", "written in a hostile place", "--id", "new"),
    ("update", "new", "written again"),
    ("show", "good"),
    ("show", "good", "--as-of", "HEAD~1"),
    ("log",),
    ("log", "good"),
    ("diff", "HEAD~1"),
    ("diff",),
    ("team", "blame", "good"),
    ("commit",),
    ("forget", "new"),
    ("restore", "--from", "HEAD~1"),
    ("restore", "--displaced"),
    ("check",),
    ("check", "--fix"),
    ("check", "--integrity"),
    ("status", "--storage"),
    ("config",),
    ("admin", "trust", "--show"),
    ("admin", "reindex"),
    ("admin", "gc"),
    ("init",),
    ("deinit", "--dry-run"),
    ("deinit", "--purge", "--force"),
)


TEAM: tuple[tuple[str, ...], ...] = (
    ("recall", "neighbour", "--as-of", "HEAD~1"),
    ("list", "--as-of", "HEAD~1"),
    ("status", "--all"),
    ("team", "blame", "good", "content"),
    (
        "team",
        "access",
    ),
    ("review", "HEAD~1..HEAD"),
    ("review", "HEAD~1..HEAD"),
    ("team", "verify", "HEAD", "--allowed-signers", ".gitattributes"),
    ("team", "conflicts"),
    ("team", "convention", "propose", "Branches are named after the ticket", "--id", "naming"),
    ("team", "convention", "accept", "naming"),
    ("team", "convention", "list"),
    ("undo", "--commit", "HEAD", "--dry-run"),
    ("undo", "--commit", "HEAD"),
    ("sync",),
    ("sync", "--dry-run"),
    ("remember", "a good neighbour", "--id", "found"),
    ("commit",),
    ("forget", "found"),
    ("commit",),
    ("team", "bisect", "--good", "HEAD~1", "--bad", "HEAD", "--expect", "neighbour => found"),
)


@pytest.fixture
def canaries(tmp_path: Path) -> Canaries:
    """Where what runs leaves its mark."""
    return Canaries(tmp_path / "canaries")


@pytest.fixture
def root(tmp_path: Path, git: Git, canaries: Canaries, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with some history in a repository that is hostile in every way."""
    made = tmp_path / "W"
    assert run(["init", str(made)]) == 0
    assert run(["-C", str(made), "remember", "a good neighbour", "--id", "good", "--type", "knowledge"]) == 0
    assert run(["-C", str(made), "update", "good", "a better neighbour"]) == 0
    (made / ITEM).parent.mkdir(parents=True, exist_ok=True)
    planting.plant(made, canaries)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(made)
    assert canaries.found() == []
    return made


def test_41_the_fixture_bites(root: Path, canaries: Canaries, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: ordinary git in this repository runs what was planted, so that silence elsewhere means something."""
    monkeypatch.setenv("PATH", os.defpath)
    planting.sing(root)
    bitten = {"fsmonitor", "clean", "diff.command", "hooksPath pre-commit"}
    assert bitten & set(canaries.found()) >= {"clean"}
    assert len(canaries.found()) >= 3


@pytest.mark.parametrize("engine", ["whoosh", "sqlite"])
def test_41_nothing_planted_runs(root: Path, canaries: Canaries, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb works through, or refuses in memfs's words, and no canary sings (faults rows 29 and 41)."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", engine)
    (root / "ContextMemory/memories/knowledge/byhand.yaml").write_text("content: edited before all\n")
    assert run(["commit"]) == 1  # this repository asks for signatures, and there is no key: refused, with the remedy
    assert canaries.found() == []
    for config in root.glob(".git/config*"):
        config.write_text(config.read_text().replace('gpgSign = "true"', 'gpgSign = "false"'))
    for words in VERBS:
        if words[0] != "restore":  # which leaves uncommitted edits alone
            (root / "ContextMemory/memories/knowledge/byhand.yaml").write_text(f"content: edited before {words}\n")
        else:
            assert run(["commit"]) == 0
        code = run(list(words))
        assert canaries.found() == [], words
        assert code == (1 if words[0] == "check" else 0), words  # check names the attributes


def test_41_nothing_planted_runs_where_a_team_works(
    root: Path, canaries: Canaries, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, for what compares, joins, reviews, signs and exchanges (row 41; B1, B2, B4, K4, K8)."""
    monkeypatch.setenv("MEMFS_HISTORY_SIGN", "try")
    assert run(["commit"]) == 0
    codes = {}
    for words in TEAM:
        codes[words] = run(list(words))
        captured = capsys.readouterr()
        assert canaries.found() == [], words
        assert "Traceback" not in captured.err, words
        assert codes[words] in (0, 1), (words, captured.err)
    done = {words[words[0] == "team"] for words, code in codes.items() if code == 0}
    assert done >= {"recall", "list", "status", "bisect", "blame", "access", "review", "convention", "undo"}


def test_41_nothing_planted_runs_in_a_process_of_its_own(root: Path, canaries: Canaries) -> None:
    """The command as people start it, with the hostile folder as current one, imports and runs nothing from it."""
    command = Path(sys.executable).with_name("memfs")
    if not command.exists():
        pytest.skip("the command 'memfs' is not installed beside this Python")
    for words in (["status"], ["recall", "neighbour"], ["remember", "x"], ["log"], ["check"]):
        done = subprocess.run([str(command), *words], capture_output=True, text=True, check=False, cwd=root)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 1), done.stderr
        assert canaries.found() == [], words


def test_41_another_users_repository_is_refused_until_that_user_is_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real ownership: refused with the exact command, works after it, refused again after --revoke (faults row 41)."""
    if os.geteuid() != 0 or os.environ.get("SUDO_UID"):
        pytest.skip("only root can give a repository to somebody else")
    made = tmp_path / "W"
    assert run(["init", str(made)]) == 0
    shutil.rmtree(made / ".git/memfs")  # which is for one user alone
    for folder, folders, names in os.walk(made):
        for name in (*folders, *names, "."):
            os.chown(os.path.join(folder, name), 65534, 65534, follow_symlinks=False)
    capsys.readouterr()
    assert run(["-C", str(made), "status"]) == 1
    assert f"memfs admin trust {made}" in capsys.readouterr().err
    assert run(["admin", "trust", str(made), "--yes"]) == 0
    assert "belongs to" in capsys.readouterr().out
    for words in (["remember", "x"], ["log"], ["recall", "x"], ["diff", "HEAD~1"], ["check"]):
        assert run(["-C", str(made), *words]) == 0, words
    assert run(["admin", "trust", str(made), "--revoke"]) == 0
    assert run(["-C", str(made), "status"]) == 1
