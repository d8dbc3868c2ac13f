"""``memfs admin trust`` on the command line, and what status, check and config ignore (faults row 41)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs import trust

from .conftest import Memfs

KEY = "security.allow_invisible"


@pytest.fixture
def loose(root: Path) -> Path:
    """The workspace with a setting that loosens a protection."""
    with (root / "memfs.toml").open("a") as file:
        file.write("[security]\nallow_invisible = true\n")
    assert trust.enabling(root), "the file has a line for it"
    return root


def test_show_changes_nothing(memfs: Memfs, loose: Path) -> None:
    """``--show`` names file, line, key and value, and records nothing."""
    ran = memfs("admin", "trust", "--show")
    assert ran.code == 0
    assert f"{KEY} = True" in ran.out
    assert "not trusted: nobody has trusted this workspace" in ran.out
    assert not trust.list_path().exists()
    shown = memfs("admin", "trust", "--show", "--json").json
    assert (shown["trusted"], shown["changed"], shown["enables"][0]["key"]) == (False, False, KEY)


def test_without_a_terminal_trust_must_be_given_by_option(memfs: Memfs, loose: Path) -> None:
    """A script cannot be talked into trust: it says --yes or nothing happens."""
    ran = memfs("admin", "trust")
    assert (ran.code, "--yes" in ran.err) == (1, True)
    assert not trust.is_trusted(loose)


@pytest.mark.parametrize(("answer", "trusted"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_asked(
    memfs: Memfs, loose: Path, monkeypatch: pytest.MonkeyPatch, answer: str, trusted: bool
) -> None:
    """At a terminal the answer decides; no is what an empty line means."""
    monkeypatch.setattr("memfs.doors.cli.output.somebody_types", lambda: True)
    ran = memfs("admin", "trust", stdin=answer)
    assert (ran.code == 0, trust.is_trusted(loose)) == (trusted, trusted)
    assert f"{KEY} = True" in ran.out


def test_trusted_settings_count_and_revoked_ones_do_not(memfs: Memfs, loose: Path) -> None:
    """``--yes`` trusts, ``--revoke`` takes it back, and config says which value counts."""
    assert memfs("config", KEY).out == "false\n"
    assert memfs("admin", "trust", "--yes", "--json").json["trusted"] is True
    assert memfs("config", KEY).out == "true\n"
    assert memfs("admin", "trust", "--revoke").out.endswith("is no longer trusted\n")
    assert memfs("config", KEY).out == "false\n"
    assert memfs("admin", "trust", "--revoke").out.endswith("was not trusted\n")


def test_status_check_and_config_name_the_command(memfs: Memfs, loose: Path) -> None:
    """What is ignored is said wherever people look, with the exact command; it is a warning, never a refusal."""
    command = f"memfs admin trust {loose}"
    status = memfs("status")
    assert (status.code, command in status.out, KEY in status.out) == (0, True, True)
    assert memfs("status", "--json").json["trust"]["command"] == command
    problems = memfs("check", "--json")
    found = [problem for problem in problems.json["problems"] if problem["code"] == "Untrusted"]
    assert (problems.code, [problem["severity"] for problem in found]) == (0, ["warning"])
    assert command in found[0]["hint"]
    config = memfs("config")
    assert "is not trusted" in config.out
    assert f"1 setting is ignored: nobody has trusted this workspace\nmemfs:   look, then: {command}" in config.err
    assert memfs("remember", "written all the same").code == 0
    memfs("admin", "trust", "--yes")
    assert "enabled" in memfs("status").out
    assert "Untrusted" not in memfs("check", "--json").out
    assert "ignored" not in memfs("config").err


def test_a_workspace_that_asks_for_nothing_says_nothing(memfs: Memfs, root: Path) -> None:
    """Ordinary workspaces are not bothered with trust."""
    assert "trust" not in memfs("status").out
    assert "ignored" not in memfs("config").err
    assert "Nothing in this workspace asks for trust" in memfs("admin", "trust", "--show").out
    asked = memfs("admin", "trust")
    assert (asked.code, asked.err) == (0, "")
    assert "Nothing in this workspace asks for trust" in asked.out
    assert memfs("admin", "trust", "--json").json["changed"] is False


def test_show_and_revoke_exclude_each_other(memfs: Memfs) -> None:
    """One asks, the other changes."""
    assert memfs("admin", "trust", "--show", "--revoke").code == 2


def test_a_folder_that_is_not_there_is_named(bare: Memfs, tmp_path: Path) -> None:
    """A mistyped path is not trusted."""
    ran = bare("admin", "trust", "--yes", str(tmp_path / "nowhere"))
    assert (ran.code, "no folder" in ran.err) == (1, True)
    assert not trust.list_path().exists()
