"""status, check, watch, and reindex, migrate and gc of admin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .conftest import Memfs, git


@pytest.fixture
def item(root: Path, memfs: Memfs) -> Path:
    """The file of one stored item."""
    return root / memfs("remember", "a text", "--id", "x", "--json").json["path"]


def test_status_json_is_the_contract(root: Path, item: Path, memfs: Memfs) -> None:
    """status --json says items, head, branch, pending commits, problems and the index."""
    shown = memfs("status", "--json").json
    assert {"items", "head", "branch", "pending_commits", "problems", "index"} <= shown.keys()
    assert shown["items"] == 1
    assert shown["head"] == git(root, "rev-parse", "HEAD").strip()
    assert shown["branch"] == "main"
    assert (shown["pending_commits"], shown["problems"]) == (0, [])
    assert shown["index"] == {"engine": "sqlite", "fresh": True}


def test_status_names_problems_and_edits_and_still_succeeds(root: Path, item: Path, memfs: Memfs) -> None:
    """Edits are listed in order, an invalid one with line and remedy, and a merge in progress; the code stays 0."""
    other = root / memfs("remember", "another", "--id", "y", "--json").json["path"]
    other.write_text(other.read_text().replace("another", "edited"))
    item.write_text("content: x\nttle: y\n")
    ran = memfs("status", "--json")
    assert ran.code == 0
    problem = ran.json["problems"][0]
    assert (problem["path"], problem["line"], problem["code"]) == (
        item.relative_to(root).as_posix(),
        2,
        "SchemaInvalid",
    )
    assert "title" in problem["hint"]
    assert ran.json["hand_edits"] == sorted(path.relative_to(root).as_posix() for path in (item, other))
    shown = memfs("status").out
    assert "to commit  2 uncommitted hand edits\n" in shown
    assert f"edited {other.relative_to(root).as_posix()}\n" in shown
    assert f"edited {item.relative_to(root).as_posix()}  invalid" in shown
    assert "ttle" in shown
    (root / ".git/MERGE_HEAD").write_text("")
    assert "to commit  2 uncommitted hand edits (a merge is in progress)\n" in memfs("status").out


def test_status_lists_what_waits_below_its_count(memfs: Memfs) -> None:
    """The waiting files of two changes follow the row that counts them, before any other row."""
    manual = ("--set", "history.commit=manual")
    memfs("remember", "We use tabs", "--id", "tabs", *manual)
    memfs("state", "iteration", "start", *manual)
    rows = memfs("status", "--all", *manual).out.splitlines()
    at = next(number for number, row in enumerate(rows) if row.startswith("to commit"))
    waiting = [number for number, row in enumerate(rows) if row.split()[0] == "waiting"]
    assert waiting == list(range(at + 1, at + 1 + len(waiting)))
    assert rows[at] == f"to commit  {len(waiting)} files"


def test_check_codes(root: Path, item: Path, memfs: Memfs, bare: Memfs, tmp_path: Path) -> None:
    """check ends with 0 when all is well, 1 when problems were found, 2 when it could not check."""
    assert memfs("check").out == "No problems found\n"
    assert memfs("check", "--json").json == {"problems": []}
    item.write_text("content: x\nttle: y\n")
    ran = memfs("check", "--json")
    assert ran.code == 1
    assert {"path", "line", "code", "message", "hint"} <= ran.json["problems"][0].keys()
    assert memfs("check").code == 1
    unclear = bare("-C", str(tmp_path), "check")
    assert (unclear.code, unclear.out) == (2, "")


def test_warnings_fail_only_a_strict_check(root: Path, item: Path, memfs: Memfs) -> None:
    """A warning is shown and passes; --strict counts it."""
    item.write_text(item.read_text().replace("a text", "zero\u200bwidth"))
    ran = memfs("check", "--json")
    assert (ran.code, [problem["severity"] for problem in ran.json["problems"]]) == (0, ["warning"])
    assert memfs("check", "--strict").code == 1


def test_check_fix_repairs(root: Path, item: Path, memfs: Memfs) -> None:
    """--fix brings back what can be repaired without losing anything."""
    (root / "ContextMemory" / ".gitattributes").unlink()
    assert memfs("check", "--strict").code == 1
    assert memfs("check", "--fix", "--strict").code == 0
    assert (root / "ContextMemory" / ".gitattributes").is_file()


def test_status_counts_and_weighs(item: Path, memfs: Memfs) -> None:
    """status has numbers by type and layer, and bytes of content, repository and index."""
    memfs("remember", "z", "--type", "error_log")
    shown = memfs("status", "--json").json
    assert shown["items"] == 2
    assert shown["types"] == {"semantic": 1, "error_log": 1}
    assert shown["layers"] == {"semantic": 1, "episodic": 1}
    assert shown["bytes_by_type"]["semantic"] == item.stat().st_size
    assert all(shown["bytes"][name] > 0 for name in ("content", "repository"))
    assert yaml.safe_load(memfs("status", "--storage").out)["types"] == shown["types"]


def test_reindex_prints_how_many(item: Path, memfs: Memfs) -> None:
    """reindex builds the index again and names items and engine."""
    shown = memfs("admin", "reindex", "--json").json
    assert (shown["items"], shown["engine"]) == (1, "sqlite")
    assert memfs("recall", "text", "--json").json["hits"][0]["id"] == "x"
    assert memfs("admin", "reindex").out.startswith("Indexed 1 item for sqlite in ")


def _as_format_1(root: Path) -> None:
    """Make a workspace what the first format had: the version in the configuration, the schemas in git."""
    (root / "memfs.toml").write_text('# ours\n\n[history]\ncommit = "interval"\nadopt = "auto"\n')
    (root / "ContextMemory/configuration/system_config.json").write_text(
        '{\n  "$schema": "../.schemas/system_config.schema.json",\n  "format_version": 1\n}\n'
    )
    (root / "ContextMemory/.schemas").mkdir()
    (root / "ContextMemory/.schemas/item.schema.json").write_text("{}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "As the first format had it")


def test_migrate_brings_an_older_workspace_to_the_present_format(root: Path, item: Path, memfs: Memfs) -> None:
    """A workspace of format 1 is read, named by check, and moved to memfs.toml in one commit that keeps the rest."""
    assert memfs("admin", "migrate", "--json").json["changed"] is False
    _as_format_1(root)
    assert memfs("show", "x").code == 0
    assert [problem["code"] for problem in memfs("check", "--json").json["problems"]] == ["FormatOld"]
    would = memfs("admin", "migrate", "--dry-run", "--json").json
    paths = ["memfs.toml", "ContextMemory/configuration/system_config.json", "ContextMemory/.schemas/item.schema.json"]
    assert would == {"before": 1, "after": 2, "changed": True, "paths": paths, "dry_run": True}
    before = git(root, "rev-parse", "HEAD")
    assert memfs("admin", "migrate", "--json").json == {**would, "dry_run": False}
    assert (root / "memfs.toml").read_text().startswith("format_version = 2\n\n# ours\n\n[history]\n")
    assert git(root, "log", "--format=%s", f"{before.strip()}..").strip() == "Bring the format to version 2"
    assert git(root, "status", "--porcelain") == ""
    assert not (root / "ContextMemory/configuration/system_config.json").exists()
    assert memfs("check").code == 0


def test_migrate_keeps_what_else_the_configuration_says(root: Path, memfs: Memfs) -> None:
    """Only the version leaves the file; where the person commits, the change is left to them (D1)."""
    _as_format_1(root)
    (root / "memfs.toml").write_text('[history]\ncommit = "manual"\n')
    file = root / "ContextMemory/configuration/system_config.json"
    file.write_text('{"format_version": 1, "agents": {"Scout": {"role": "looks"}}}\n')
    git(root, "commit", "-qam", "Ours")
    before = git(root, "rev-parse", "HEAD")
    assert "commit these files with git, or 'memfs commit'" in memfs("admin", "migrate").err
    assert json.loads(file.read_text()) == {"agents": {"Scout": {"role": "looks"}}}
    assert git(root, "rev-parse", "HEAD") == before
    git(root, "commit", "-qam", "Migrate")
    assert memfs("status", "--json").json["pending_commits"] == 0


@pytest.mark.parametrize("place", ["memfs.toml", "ContextMemory/configuration/system_config.json"])
def test_a_newer_format_is_refused_wherever_it_is_named(root: Path, memfs: Memfs, place: str) -> None:
    """A workspace that a newer memfs wrote is not opened."""
    (root / place).write_text("format_version = 3\n" if place == "memfs.toml" else '{"format_version": 3}\n')
    assert "the workspace is of format 3, this memfs knows up to 2" in memfs("admin", "migrate").err


def test_gc_packs_and_loses_nothing(root: Path, item: Path, memfs: Memfs) -> None:
    """After admin gc the repository is whole and history reads the same."""
    before = memfs("log", "--json").json
    ran = memfs("admin", "gc", "--json")
    assert ran.code == 0, ran.err
    assert memfs("log", "--json").json == before
    git(root, "fsck", "--strict")


def test_watch_reports_edits_until_interrupted(root: Path, item: Path) -> None:
    """watch --json prints a line for each round of changes, and Ctrl-C ends it with 130 and no traceback."""
    environ = {**os.environ, "MEMFS_WATCH_DEBOUNCE_MS": "20", "PYTHONUNBUFFERED": "1"}
    arguments = [sys.executable, "-m", "memfs", "-C", str(root), "admin", "watch", "--json"]
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
        # a test run in the background inherits Ctrl-C as ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline().startswith("memfs: watching")
        item.write_text(item.read_text().replace("a text", "changed"))
        # a slow machine may catch the file half written first
        noticed = next(row for row in map(json.loads, process.stdout) if row.get("changed"))
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert noticed["changed"] == [item.relative_to(root).as_posix()]
    assert process.returncode == 130
    assert "Traceback" not in rest


def test_check_fix_says_what_it_did(root: Path, item: Path, memfs: Memfs) -> None:
    """Each repair is a line, and an entry in JSON."""
    (root / "ContextMemory" / ".gitattributes").unlink()
    fixed = memfs("check", "--fix", "--json").json["repairs"]
    assert fixed[0]["sentence"] == "rewrote ContextMemory/.gitattributes"
    assert memfs("check", "--fix").out.splitlines()[0] == "Fixed: rebuilt the index over 1 item"


def test_check_names_a_field_once(root: Path, item: Path, memfs: Memfs) -> None:
    """A message that names the field is not led by the field again."""
    item.write_text("content: x\ntitel: y\n")
    problem = memfs("check", "--json").json["problems"][0]
    assert problem["message"].count("titel") == 1
    assert memfs("check").out.splitlines()[0].count("titel") == 1
