"""``memfs admin erase``: what it says before, what it asks, and the proof it prints (B6, faults row 50)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Memfs, git

TEXT = "the gate opens with marten-7781 only"


@pytest.fixture
def item(memfs: Memfs) -> str:
    """An item with something to hide, committed."""
    done = memfs("remember", TEXT, "--id", "gate-of-the-mill-2", "--json")
    assert done.code == 0, done.err
    return str(done.json["id"])


def test_a_dry_run_says_what_would_happen_and_changes_nothing(memfs: Memfs, root: Path, item: str) -> None:
    """Paths, versions and commits are reported; neither files nor history change."""
    head = git(root, "rev-parse", "HEAD")
    done = memfs("admin", "erase", item, "--dry-run")
    assert done.code == 0
    assert done.out.startswith(f"Would erase {item}: 1 version, from 1 commit\n")
    assert git(root, "rev-parse", "HEAD") == head
    found = memfs("admin", "erase", item, "--dry-run", "--json").json
    assert (found["dry_run"], found["versions"], found["shared"], found["refused"]) == (True, 1, False, "")


def test_without_a_terminal_it_must_be_confirmed_on_the_command_line(memfs: Memfs, root: Path, item: str) -> None:
    """A script that did not say --yes erases nothing."""
    done = memfs("admin", "erase", item)
    assert done.code == 1
    assert "--yes" in done.err
    assert memfs("show", item).code == 0


def test_a_person_who_says_no_is_obeyed(memfs: Memfs, item: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is shown and the question asked; no ends it, and yes erases."""
    monkeypatch.setattr("memfs.doors.cli.output.is_interactive", lambda: True)
    done = memfs("admin", "erase", item, stdin="n\n")
    assert done.code == 130
    assert f"Would erase {item}" in done.out
    assert memfs("show", item).code == 0
    assert memfs("admin", "erase", item, stdin="y\n").code == 0
    assert memfs("show", item).code == 1


def test_the_proof_is_printed_and_the_item_is_gone(memfs: Memfs, root: Path, item: str) -> None:
    """No trace in any object; what cannot be reached is named."""
    git(root, "remote", "add", "origin", "https://ada:token@example.org/mill.git")
    done = memfs("admin", "erase", item, "--yes")
    assert done.code == 0, done.err
    assert "; no trace in " in done.out
    assert "https://example.org/mill.git" in done.out
    assert "token" not in done.out
    assert TEXT not in done.out
    assert git(root, "log", "-1", "--format=%s") == "Remember: [erased]\n"
    assert memfs("recall", "marten").out == ""
    assert memfs("admin", "erase", item, "--yes").code == 1


def test_the_proof_as_json(memfs: Memfs, item: str) -> None:
    """Scripts read the same facts."""
    found = memfs("admin", "erase", item, "--yes", "--json").json
    assert found["proof"]["hits"] == []
    assert found["proof"]["objects"] > 0
    assert found["dry_run"] is False


def test_a_backup_elsewhere_is_named_with_its_remedy(memfs: Memfs, item: str, tmp_path: Path) -> None:
    """The dry run lists it; afterwards it is a trace outside the repository, and the command says what to delete."""
    assert memfs("remember", "bread is baked at six", "--id", "other").code == 0
    assert memfs("admin", "backup", "create", "--to", str(tmp_path / "elsewhere")).code == 0
    path = str(next((tmp_path / "elsewhere").glob("*.tar")))
    dry = memfs("admin", "erase", item, "--dry-run")
    assert (dry.code, path in dry.out) == (0, True)
    done = memfs("admin", "erase", item, "--yes")
    assert done.code == 1
    assert "; no trace in " in done.out
    assert f"left   {path}" in done.out
    assert "delete them yourself" in done.err


def test_a_dry_run_that_would_be_refused_fails(memfs: Memfs, root: Path, item: str) -> None:
    """Scripts see by the exit code that it could not be done now."""
    git(root, "checkout", "-q", "--detach")
    done = memfs("admin", "erase", item, "--dry-run")
    assert done.code == 1
    assert "HEAD" in done.err


def test_a_shared_repository_names_the_flag(bare: Memfs, tmp_path: Path) -> None:
    """In a repository that memfs joined, the error says which option rewrites it, and the option does.

    A dry run without it ends as the refusal does.
    """
    team = tmp_path / "team"
    team.mkdir()
    git(team, "init", "-q")
    git(team, "commit", "-q", "--allow-empty", "-m", "Begin")
    assert bare("init", str(team)).code == 0
    assert bare("-C", str(team), "remember", TEXT, "--id", "gate-of-the-mill-2").code == 0
    assert bare("-C", str(team), "commit").code == 0
    for how in ("--yes",), ("--dry-run",):
        done = bare("-C", str(team), "admin", "erase", "gate-of-the-mill-2", *how)
        assert (done.code, "--rewrite-shared-history" in done.err) == (1, True)
    assert bare("-C", str(team), "admin", "erase", "gate-of-the-mill-2", "-n", "--rewrite-shared-history").code == 0
    done = bare("-C", str(team), "admin", "erase", "gate-of-the-mill-2", "--yes", "--rewrite-shared-history")
    assert done.code == 0, done.err


def test_an_erase_that_opening_has_just_ended_is_reported_as_such(
    memfs: Memfs, item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who repeats the command after a crash gets the proof, not an error."""
    with monkeypatch.context() as patched:
        patched.setattr("memfs.git.rewrite.Rewriter.finish", _stop)
        assert memfs("admin", "erase", item, "--yes").code == 1
    done = memfs("admin", "erase", item, "--yes")
    assert done.code == 0, done.err
    assert "; no trace in " in done.out


def _stop(*_: object) -> None:
    from memfs.errors import StorageIO

    raise StorageIO("the disk fails", hint="check it")


def test_forget_names_the_command_that_erases(memfs: Memfs, item: str) -> None:
    """What history keeps can be brought back, or erased: both commands are printed."""
    done = memfs("forget", item)
    assert "memfs restore" in done.out
    assert f"memfs admin erase {item}" in done.out
