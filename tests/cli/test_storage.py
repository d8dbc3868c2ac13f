"""What the command line says while a disk takes no writes (S17)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfs.fs import io
from tests.cli.conftest import Memfs

CHANGES = frozenset({"write", "fsync", "fdatasync", "mkdir", "link", "rename", "truncate", "unlink"})


@pytest.fixture
def secondary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The secondary location."""
    folder = tmp_path / "secondary"
    folder.mkdir()
    monkeypatch.setenv("MEMFS_STORAGE_SECONDARY", str(folder))
    return folder


@pytest.fixture
def full(root: Path, secondary: Path) -> Iterator[None]:
    """The workspace's own disk is full."""

    def hook(name: str, path: str) -> None:
        if name in CHANGES and not path.startswith(str(secondary)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = io.set_hook(hook)
    yield
    io.set_hook(before)
    assert root.exists()


@pytest.mark.usefixtures("full")
def test_remember_says_where_it_went(memfs: Memfs, secondary: Path) -> None:
    """``remember`` says that the memory is in the secondary location, in words and as ``durability`` (S17)."""
    result = memfs("remember", "the first thing", "--id", "first")
    assert result.code == 0
    assert f"it is in {secondary} for now" in result.err
    facts = memfs("remember", "the second thing", "--id", "second", "--json").json
    assert facts["durability"] == "fallback"
    assert memfs("recall", "second", "--json").json["hits"][0]["id"] == "second"
    assert "the first thing" in memfs("show", "first", "--raw").out
    assert "secondary location" in memfs("update", "first", "--edit").err


@pytest.mark.usefixtures("full")
def test_reindex_says_what_a_full_disk_means_for_questions(memfs: Memfs) -> None:
    """An index that cannot be written loses nothing: the hint says so, and not that nothing was written (S17)."""
    ran = memfs("admin", "reindex")
    assert ran.code == 1
    assert "No space left" in ran.err
    assert "until then questions take longer, and miss nothing" in ran.err


@pytest.mark.usefixtures("full")
def test_status_reports_the_state_of_the_disks(memfs: Memfs, secondary: Path) -> None:
    """``status`` has a row for the disks, and the same facts as JSON (S17)."""
    memfs("remember", "the first thing", "--id", "first")
    assert "No space left" in memfs("status").out
    assert f"1 write in {secondary}" in memfs("status").out
    facts = memfs("status", "--json").json["storage"]
    assert (facts["state"], facts["waiting"], facts["secondary"]) == ("fallback", 1, str(secondary))
    assert "No space left" in facts["reason"]


def test_status_of_a_healthy_disk(memfs: Memfs, secondary: Path) -> None:
    """Without trouble the row says so, and how much room there is (S17)."""
    assert "GB free" in memfs("status", "--all").out
    assert f"secondary {secondary}" in memfs("status", "--all").out
    assert memfs("status", "--json").json["storage"]["state"] == "ok"
