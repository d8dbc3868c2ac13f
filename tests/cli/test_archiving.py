"""archive and usage: iterations go out of the tree and come back, and what everything weighs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from .conftest import Memfs, git

OPENED = '{\n  "iteration": %d,\n  "status": "%s",\n  "opened": "2020-03-01T00:00:00Z"%s\n}\n'
CLOSED = ',\n  "closed": "2020-03-%02dT00:00:00Z"'


def lay(root: Path, number: int, status: str = "closed") -> Path:
    """An iteration as a person might copy it here."""
    folder = root / f"ContextMemory/iterations/iteration_{number:03d}"
    folder.mkdir(parents=True)
    text = OPENED % (number, status, CLOSED % number if status == "closed" else "")
    (folder / "system_state.json").write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", f"Iteration {number}")
    return folder


def test_archive_packs_what_is_due_and_unpack_brings_it_back(root: Path, memfs: Memfs) -> None:
    """--dry-run says it, archive does it, list and verify show it, unpack takes it back; in JSON too (S5, S15)."""
    first, second = lay(root, 1), lay(root, 2)
    lay(root, 3, status="open")
    planned = memfs("admin", "archive", "run", "--dry-run", "--json").json
    assert (planned["iterations"], planned["documents"], planned["archives"]) == ([1, 2], 2, [])
    assert first.exists()
    done = memfs("admin", "archive", "run")
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out)["iterations"] == "from 1 to 2"
    assert not first.exists()
    assert not second.exists()
    assert "archives" not in yaml.safe_load(memfs("admin", "archive", "run").out)
    assert memfs("admin", "archive", "list", "--json").json["archives"][0]["iterations"] == [1, 2]
    assert "2020-03" in memfs("admin", "archive", "list").out
    assert memfs("check", "--integrity").code == 0
    assert yaml.safe_load(memfs("admin", "archive", "unpack", "2").out)[0]["iteration"] == 2
    assert second.exists()
    assert memfs("admin", "archive", "list", "--json").json["archives"][0]["unpacked"] == [2]
    assert git(root, "status", "--porcelain") == ""


def test_a_damaged_archive_ends_with_code_1(root: Path, memfs: Memfs) -> None:
    """``check --integrity`` names the damaged archive and what history still has (S18)."""
    lay(root, 1)
    memfs("admin", "archive", "run")
    payload = root / "ContextMemory/archive/2020-03.tar.zst"
    payload.write_bytes(payload.read_bytes()[:-9])
    checked = memfs("check", "--integrity")
    assert checked.code == 1
    assert "2020-03.tar.zst" in checked.out
    assert "history has every document" in checked.out
    payload.unlink()
    assert yaml.safe_load(memfs("admin", "archive", "list").out)[0]["present"] is False


@pytest.mark.parametrize("words", [("unpack",), ("list", "3"), ("verify",), ("list", "--iteration", "3"), ("burn",)])
def test_words_that_make_no_sense_are_refused(memfs: Memfs, words: tuple[str, ...]) -> None:
    """Arguments that contradict each other are refused before anything is done, with exit code 2."""
    assert memfs("admin", "archive", *words).code == 2


def test_status_shows_areas_quotas_and_growth(root: Path, memfs: Memfs) -> None:
    """Each area beside its quota, each iteration and how growth goes on, archived ones included (S15, S16)."""
    for number in (1, 2):
        lay(root, number)
    config = root / "ContextMemory/configuration/system_config.json"
    config.write_text(json.dumps({"quotas": {"iterations_bytes": 1_000_000}}))
    facts = memfs("status", "--storage", "--json").json
    assert facts["areas"]["iterations"]["quota"] == 1_000_000
    assert [row["number"] for row in facts["iterations"]] == [1, 2]
    assert facts["bytes_per_iteration"] == facts["iterations"][0]["bytes"]
    assert facts["growth_of_an_iteration"] == 0
    memfs("admin", "archive", "run")
    shown = memfs("status", "--storage").out
    assert "archived" in yaml.safe_load(shown)["iterations"][0]
    assert "growth_of_an_iteration" not in shown
