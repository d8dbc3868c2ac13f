"""admin backup, admin gc, and what status says of them."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Memfs, git


def test_a_backup_is_made_and_restored(root: Path, memfs: Memfs, bare: Memfs, tmp_path: Path) -> None:
    """create names file and size, restore makes the workspace and checks it; all in JSON too (S21)."""
    memfs("remember", "a text", "--id", "x")
    place = str(tmp_path / "backups")
    made = memfs("admin", "backup", "create", "--to", place, "--json").json["backups"]
    assert len(made) == 1
    assert made[0]["whole"]
    assert made[0]["head"] == git(root, "rev-parse", "HEAD").strip()
    assert made[0]["files"] > 3
    assert place in memfs("admin", "backup", "create", "--to", place).out
    assert len(list(Path(place).glob("*.tar"))) == 2

    again = tmp_path / "again"
    restored = bare("admin", "backup", "restore", made[0]["path"], str(again), "--json")
    assert restored.code == 0, restored.err
    assert restored.json["items"] == 1
    assert restored.json["problems"] == []
    assert bare("-C", str(again), "show", "x").code == 0
    assert "1 item, " in bare("admin", "backup", "restore", made[0]["path"], str(tmp_path / "more")).out
    assert git(again, "rev-parse", "HEAD").strip() == made[0]["head"]


def test_a_backup_is_checked_without_being_restored(memfs: Memfs, bare: Memfs, tmp_path: Path) -> None:
    """--check says whether a backup is sound; a damaged one is refused by name with exit code 1 and no traceback."""
    made = memfs("admin", "backup", "create", "--to", str(tmp_path / "b"), "--json").json["backups"][0]["path"]
    assert bare("admin", "backup", "verify", made, "--json").json["files"]
    assert "as it was written" in bare("admin", "backup", "verify", made).out
    data = bytearray(Path(made).read_bytes())
    data[len(data) // 2] ^= 1
    Path(made).write_bytes(data)
    refused = bare("admin", "backup", "verify", made)
    assert refused.code == 1
    assert made in refused.err
    assert "Traceback" not in refused.err
    assert bare("admin", "backup", "restore", made, str(tmp_path / "again")).code == 1
    assert not (tmp_path / "again").exists()


def test_restore_says_what_it_needs(root: Path, memfs: Memfs, bare: Memfs, tmp_path: Path) -> None:
    """Without a folder, with an unknown option, and onto something that is there: refused with the way out."""
    made = memfs("admin", "backup", "create", "--to", str(tmp_path / "b"), "--json").json["backups"][0]["path"]
    assert bare("admin", "backup", "restore", made).code == 2
    assert bare("admin", "backup", "restore", made, str(tmp_path / "x"), "--check").code == 2
    over = bare("admin", "backup", "restore", made, str(root))
    assert over.code == 1
    assert "something is there already" in over.err
    assert bare("admin", "backup", "restore", str(tmp_path / "nothing.tar"), str(tmp_path / "x")).code == 1
    assert memfs("admin", "backup", "create", "--to", str(root / "ContextMemory" / "b")).code == 1
    assert memfs("admin", "backup", "create", "--to", "").code == 2


def test_status_has_the_age_of_the_last_backup(memfs: Memfs, tmp_path: Path) -> None:
    """none yet, then how old and where; overdue with an interval that has passed (S21)."""
    assert memfs("status", "--json").json["backup"]["last"] is None
    assert "none yet" in memfs("status", "--all").out
    assert "backup" not in memfs("status").out
    overdue = memfs("--set", "backup.interval_hours=1", "status", "--json").json["backup"]
    assert (overdue["overdue"], overdue["interval_hours"]) == (True, 1.0)
    assert "overdue" in memfs("--set", "backup.interval_hours=1", "status").out
    memfs("admin", "backup", "create", "--to", str(tmp_path / "b"))
    backup = memfs("--set", "backup.interval_hours=1", "status", "--json").json["backup"]
    assert backup["overdue"] is False
    assert 0 <= backup["age_seconds"] < 3600
    assert backup["path"].startswith(str(tmp_path / "b"))
    assert "ago" in memfs("status", "--all").out


def test_status_shows_quotas_and_a_full_one_refuses(root: Path, memfs: Memfs) -> None:
    """Share and level of each quota in status; a crossing on standard error; then a refusal with the way out (S16)."""
    config = root / "ContextMemory/configuration/system_config.json"
    config.write_text(json.dumps({"quotas": {"items_bytes": 4000}}))
    assert memfs("status", "--json").json["quota"][0]["level"] == ""
    crossed = memfs("remember", "x" * 3200, "--id", "a")
    assert crossed.code == 0
    assert "items" in crossed.err
    assert "warning" in crossed.err
    row = memfs("status", "--json").json["quota"][0]
    assert (row["area"], row["level"], row["limit"]) == ("items", "warning", 4000)
    assert "items: 8" in memfs("status").out
    refused = memfs("remember", "y" * 2000, "--id", "b")
    assert refused.code == 1
    assert "quota" in refused.err
    assert "memfs admin gc" in refused.err
    assert memfs("forget", "a").code == 0
    assert memfs("remember", "y" * 2000, "--id", "b").code == 0


def test_gc_says_what_it_does(root: Path, memfs: Memfs) -> None:
    """Each step is reported with what it freed; then there is nothing left."""
    memfs("remember", "a text", "--id", "x")
    leftover = root / "ContextMemory/.memfs-0123456789ab.tmp"
    leftover.write_text("half a file")
    done = memfs("admin", "gc", "--json").json
    assert not leftover.exists()
    assert [step["error"] for step in done["steps"]] == [""] * len(done["steps"])
    assert done["steps"]
    assert (done["bytes"], done["folded"]) == (sum(step["bytes"] for step in done["steps"]), True)
    assert memfs("admin", "gc").out.startswith("Nothing to clean up")


def test_status_weighs_each_area(memfs: Memfs) -> None:
    """status has a figure for each area, the sum of all but what is derived, and what the disk has left (S16)."""
    memfs("remember", "a text", "--id", "x")
    shown = memfs("status", "--json").json
    areas = {name: area["bytes"] for name, area in shown["areas"].items()}
    assert areas["items"] > 0
    assert areas["history"] > 0
    derived = areas["index"] + areas["state"]
    assert shown["total"]["bytes"] == sum(areas.values()) - derived
    assert shown["free"] > 0
    assert "\nfree: " in memfs("status", "--all").out


def test_gc_makes_the_backup_that_is_due(memfs: Memfs, tmp_path: Path) -> None:
    """admin gc looks after the schedule, too (S21)."""
    options = ("--set", "backup.interval_hours=1", "--set", f"backup.targets={tmp_path / 'b'}")
    assert memfs(*options, "admin", "gc", "--json").json["backed_up"] is True
    assert memfs(*options, "admin", "gc", "--json").json["backed_up"] is False
    assert len(list((tmp_path / "b").iterdir())) == 1
