"""The command line with mounted workspaces: recall, show, status (P7)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Memfs, Ran


@pytest.fixture
def both(root: Path, bare: Memfs) -> Callable[..., Ran]:
    """``memfs -C W --set mounts.team=../T`` where T is another workspace with a memory of its own."""
    other = root.parent / "T"
    shutil.copytree(root, other, symlinks=True)
    bare("-C", str(other), "remember", "Their billing pool holds 20 connections.", "--id", "pool", "--agent", "coder")
    bare("-C", str(root), "remember", "Our billing pool is empty.", "--id", "ours")

    def call(*arguments: str) -> Ran:
        return bare("-C", str(root), "--set", "mounts.team=../T", *arguments)

    return call


def test_recall_marks_what_a_mount_holds(both: Callable[..., Ran]) -> None:
    """P7: for people and for programs, and --own leaves it out."""
    ran = both("recall", "billing", "pool", "connections")
    first = ran.out.splitlines()[0]
    assert first.startswith("team:pool  semantic")
    assert first.endswith("by agent coder  from team")
    assert "  ../T/ContextMemory/memories/semantic/" in ran.out
    hits = both("recall", "billing", "--json").json["hits"]
    assert {hit["id"]: hit.get("mount") for hit in hits} == {"team:pool": "team", "ours": None}
    own = both("recall", "billing", "--own", "--json").json
    assert [hit["id"] for hit in own["hits"]] == ["ours"]
    assert "| mount: team\n" in both("recall", "billing", "--fenced").out


def test_a_mount_that_is_gone_is_reported_and_the_answer_partial(both: Callable[..., Ran], root: Path) -> None:
    """P7: the rest answers; a note says why and what to do."""
    shutil.rmtree(root.parent / "T")
    ran = both("recall", "billing")
    assert ran.out.startswith("ours")
    assert "the mount 'team' is left out: there is no such folder; name the folder that holds ContextMemory/" in ran.err
    assert "results may be incomplete" not in ran.err
    assert both("recall", "billing", "--json").json["partial"]


def test_an_invalid_file_of_a_mount_is_named(both: Callable[..., Ran], root: Path) -> None:
    """P7: the note names the file after the mount."""
    path = next((root.parent / "T").rglob("pool.yaml"))
    path.write_text("content: [")
    assert "1 file cannot be read: team:ContextMemory/" in both("recall", "billing").err


def test_show_reads_an_item_of_a_mount(both: Callable[..., Ran], root: Path) -> None:
    """P7: by NAME:ID, also raw; its history is not read."""
    shown = both("show", "team:pool", "--json").json
    assert (shown["id"], shown["trust"]) == ("team:pool", "agent")
    assert (root / shown["path"]).resolve() == next((root.parent / "T").rglob("pool.yaml"))
    assert both("show", "team:po").out.startswith("team:pool\n")
    assert both("show", "team:pool", "--raw").out == next((root.parent / "T").rglob("pool.yaml")).read_text()
    refused = both("show", "team:pool", "--as-of", "HEAD")
    assert (refused.code, "history of a mounted workspace is not read" in refused.err) == (2, True)
    missing = both("show", "taem:pool")
    assert (missing.code, "no workspace is mounted as 'taem'" in missing.err) == (1, True)


def test_status_lists_mounts(both: Callable[..., Ran], root: Path) -> None:
    """P7: how many items each has, or why it is left out."""
    assert "mounts     team (1 item, ../T)" in both("status").out
    assert both("status", "--json").json["mounts"]["team"]["items"] == 1
    (root.parent / "T").rename(root.parent / "U")
    ran = both("status")
    assert "mounts     team (left out)" in ran.out
    assert "there is no such folder" in ran.out + ran.err
    assert both("status", "--json").json["mounts"]["team"]["problem"].endswith("there is no such folder")


def test_a_mount_of_a_repository_that_nobody_trusts_does_not_count(root: Path, memfs: Memfs) -> None:
    """P7, row 41: what a cloned memfs.toml names is read by nobody until they have looked at it."""
    shutil.copytree(root, root.parent / "T", symlinks=True)
    toml = root / "memfs.toml"
    toml.write_text(toml.read_text() + '[mounts]\nteam = "../T"\n')
    assert "mounts" not in memfs("status", "--json").json
    assert "mounts.team" in memfs("admin", "trust", str(root), "--show").out
    assert memfs("admin", "trust", str(root), "--yes").code == 0
    assert memfs("status", "--json").json["mounts"]["team"]["items"] == 0


def test_a_read_only_file_system_will_do(both: Callable[..., Ran], root: Path, tmp_path: Path) -> None:
    """P7: nothing below a mount is ever written, so that it need not be writable."""
    assert both("status").code == 0
    read_only = f"mount --bind {tmp_path}/T {tmp_path}/T && mount -o remount,bind,ro {tmp_path}/T"
    recall = f'exec "{sys.executable}" -m memfs -C {root} --set mounts.team=../T recall billing connections'
    try:
        tried = subprocess.run(["unshare", "-rm", "sh", "-c", read_only], capture_output=True, check=False, timeout=30)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if tried.returncode:
        pytest.skip("this user may not make a file system read-only")
    script = f"{read_only} && ! touch {tmp_path}/T/x && {recall}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.startswith("team:pool  semantic"), done.stderr
