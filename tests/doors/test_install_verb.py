"""``memfs agent install`` and ``memfs agent uninstall`` as they are typed, and the plugin folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import __version__
from memfs.doors.claude_code import installer
from memfs.doors.claude_code.hook import LIMITS
from memfs.doors.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "plugins/claude-code"
MANIFEST = ".claude-plugin/plugin.json"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run ``memfs`` in a project that is a repository: exit code, output, remarks."""
    (tmp_path / "P/.git").mkdir(parents=True)
    (tmp_path / "P/src").mkdir()
    monkeypatch.chdir(tmp_path / "P")

    def typed(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return typed


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Settings that are there already."""
    file = tmp_path / "P/.claude/settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{\n  "model": "opus"\n}\n')
    return file


def test_install_and_uninstall_say_what_they_did(call: Call, settings: Path) -> None:
    """C6: one command puts the hooks in, one takes them out; each says which file, and what is to be known."""
    code, out, err = call("agent", "install", "claude-code")
    assert (code, out) == (0, "Changed .claude/settings.json\n")
    assert "it goes into your private memory" in err
    assert "from the next session on" in err
    assert call("agent", "install", "claude-code") == (0, "Nothing to do in .claude/settings.json\n", "")
    assert call("agent", "uninstall", "claude-code")[1] == "Changed .claude/settings.json\n"
    assert settings.read_text() == '{\n  "model": "opus"\n}\n'
    assert call("agent", "uninstall", "claude-code")[1] == "Nothing to do in .claude/settings.json\n"


def test_from_a_folder_below_the_project_is_meant(call: Call, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: as with git, the place within the project does not matter; -C names another."""
    monkeypatch.chdir("src")
    assert "settings.json" in call("agent", "install", "claude-code")[1]
    assert '"hooks"' in settings.read_text()
    monkeypatch.chdir("/")
    assert call("agent", "uninstall", "claude-code", "-C", str(settings.parent.parent))[0] == 0
    assert '"hooks"' not in settings.read_text()


def test_a_dry_run_prints_a_diff(call: Call, settings: Path) -> None:
    """C6: --dry-run shows every line that would come and go."""
    code, out, _ = call("agent", "install", "claude-code", "--dry-run")
    assert code == 0
    assert out.startswith("--- .claude/settings.json\n+++ .claude/settings.json\n@@ -1,3 +1,")
    assert '-  "model": "opus"\n+  "model": "opus",\n+  "hooks": {\n' in out
    assert out.endswith("Would change .claude/settings.json\n")
    assert settings.read_text() == '{\n  "model": "opus"\n}\n'
    settings.write_text("{}")
    assert "-{}\n+{\n" in call("agent", "install", "claude-code", "--dry-run")[1]


def test_json_for_programs(call: Call, settings: Path) -> None:
    """C6: --json names the file, what became of it, and with --dry-run the diff."""
    report: dict[str, Any] = json.loads(call("agent", "install", "claude-code", "--dry-run", "--json")[1])
    assert (report["program"], report["dry_run"]) == ("claude-code", True)
    assert report["done"] == "changed"
    assert report["diff"].startswith("--- ")
    report = json.loads(call("agent", "uninstall", "claude-code", "--json")[1])
    assert report["done"] == "same"


def test_a_file_that_cannot_be_read_is_named(call: Call, settings: Path) -> None:
    """C6: with line and remedy, and exit code 1."""
    settings.write_text('{\n  // a comment\n  "model": "opus"\n}\n')
    code, out, err = call("agent", "install", "claude-code")
    assert (code, out) == (1, "")
    assert f"{settings}:2:3: a comment, which JSON does not allow" in err
    assert call("agent", "install", "emacs")[0] == 2


# -- the plugin -----------------------------------------------------------------------------------------------------
def test_the_plugin_is_one_that_claude_code_loads() -> None:
    """C6: manifest, hooks below ``hooks`` as they are installed, the server, and a skill whose head says when it is
    asked for."""
    manifest = json.loads((SHIPPED / MANIFEST).read_text())
    assert (manifest["name"], manifest["version"]) == ("memfs", __version__)
    hooks = json.loads((SHIPPED / "hooks/hooks.json").read_text())
    assert list(hooks) == ["description", "hooks"]
    assert hooks["hooks"] == {event: [group] for event, group in installer.handler_groups("memfs").items()}
    server = json.loads((SHIPPED / ".mcp.json").read_text())
    assert server == {"mcpServers": {"memfs": {"command": "memfs", "args": ["mcp"]}}}
    head = (SHIPPED / "skills/memory/SKILL.md").read_text().split("---\n")[1].splitlines()
    assert [line.partition(": ")[0] for line in head] == ["name", "description"]
    assert len(head[1]) < 1024
    market = json.loads((ROOT / "plugins/.claude-plugin/marketplace.json").read_text())
    assert (ROOT / "plugins" / market["plugins"][0]["source"] / MANIFEST).is_file()


def test_every_handler_has_the_fields_that_claude_code_knows() -> None:
    """C6: its settings are refused whole where a handler has any other; times are seconds, arguments texts."""
    for event, group in installer.handler_groups("/usr/bin/memfs").items():
        assert set(group) <= {"matcher", "hooks"}
        (handler,) = group["hooks"]
        assert set(handler) <= {"type", "command", "args", "timeout", "async"}
        assert handler["args"] == ["hook", event]
        assert 1 <= handler["timeout"] <= 60
        assert ("matcher" in group) == (event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"))


def test_what_is_installed_is_what_hooks_understand() -> None:
    """C6: the two tables name the same events, and Claude Code waits longer than a hook ever takes."""
    assert {event.name for event in installer.EVENTS} == set(LIMITS)
    assert [event.name for event in installer.EVENTS if event.seconds <= LIMITS[event.name]] == []


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_two_places_at_once_are_refused(call: Call, settings: Path, verb: str) -> None:
    """Options that exclude each other are named, whichever came last; nothing is written."""
    code, _, err = call("agent", verb, "claude-code", "--user", "--local")
    assert (code, "--user and --local exclude each other" in err) == (2, True)
    assert "hooks" not in settings.read_text()
