"""Upkeep of state documents: check, repair, erase, adoption and backups treat them as memfs's own (S16, S18, S21)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memfs.admin.backup_file import restore
from memfs.errors import CorruptItem
from memfs.fs.archive import compress
from memfs.fs.tree import Content
from memfs.model import MemoryItem
from memfs.model.state_facts import StateRow, describe
from memfs.model.state_paths import hypothesis_path, output_path, payload_path
from memfs.search.state_index import StateIndex
from memfs.state.reader import DocumentChange, StateFiles
from memfs.store import sidecars
from memfs.workspace import Workspace, open_workspace

Open = Callable[..., Workspace]
PATH = hypothesis_path(1, "heron")
VALUES = {"id": "heron", "note": "the grey heron waits by the mill pond", "wins": 1}


def files_of(workspace: Workspace) -> StateFiles:
    """The documents of a workspace."""
    return StateFiles(workspace.store, workspace.parts, workspace.states.index)


def put(workspace: Workspace, path: str, values: dict[str, Any]) -> None:
    """Write one document, and let the index know of it as of a file that is not young."""
    (written,) = files_of(workspace).write([DocumentChange(path, values)], "Store it")
    stamp = written.stamp
    assert stamp is not None
    row = StateRow(
        facts=describe(path, values),
        sha256=written.sha256,
        bytes=written.bytes,
        stamp=stamp._replace(checked_ns=stamp.ctime_ns + 10**10),
    )
    with closing(StateIndex(workspace.parts.index.folder)) as index:
        index.learn([row])


def rot(workspace: Workspace, path: str) -> None:
    """Change one byte of a file as a disk does: no fact about the file shows it."""
    place = workspace.root / path
    data = bytearray(place.read_bytes())
    at = data.index(b"mill")
    data[at] ^= 1
    place.write_bytes(data)
    facts = os.stat(place)
    with closing(StateIndex(workspace.parts.index.folder)) as index:
        row = index.row(path)
        assert row is not None
        assert row.stamp is not None
        known = row.stamp._replace(mtime_ns=facts.st_mtime_ns, ctime_ns=facts.st_ctime_ns, inode=facts.st_ino)
        index.learn([replace(row, stamp=known._replace(checked_ns=facts.st_ctime_ns + 10**10))])


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "waiting"])
def test_rot_is_found_isolated_and_repaired(opened: Open, committed: bool) -> None:
    """A flipped bit that leaves valid JSON is found, the others are served, and repair brings back what was written."""
    workspace = opened()
    put(workspace, hypothesis_path(2, "other"), {"id": "other"})
    put(workspace, PATH, VALUES)
    if committed:
        workspace.store.flush()
    rot(workspace, PATH)

    (problem,) = workspace.checker.check()
    assert (problem.path, problem.code) == (PATH, CorruptItem.__name__)
    (repair,) = [one for one in workspace.repairer.repair() if one.path]

    assert (repair.path, repair.done) == (PATH, True)
    assert files_of(workspace).read(PATH).values == VALUES
    assert [one.code for one in workspace.checker.check(integrity=True)] in ([], ["Recoverable"])


def test_after_a_full_check_the_index_vouches_for_documents(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written a moment ago has a stamp too young to detect rot; a full check gives it a better one (S18)."""
    workspace = opened()
    put(workspace, PATH, VALUES)
    with closing(StateIndex(workspace.parts.index.folder)) as index:
        row = index.row(PATH)
        assert row is not None
        assert row.stamp is not None
        index.learn([replace(row, stamp=row.stamp._replace(checked_ns=row.stamp.ctime_ns))])
        later = row.stamp.ctime_ns + 10**10
        monkeypatch.setattr("time.time_ns", lambda: later)

        assert workspace.checker.check(integrity=True) == []

        assert index.row(PATH) == replace(row, stamp=row.stamp._replace(checked_ns=later))


def test_an_invalid_edit_is_left_to_the_person(opened: Open) -> None:
    """``memfs check --fix`` alone touches no edit; naming the file brings back its last good version (S18)."""
    workspace = opened()
    put(workspace, PATH, VALUES)
    workspace.store.flush()
    (workspace.root / PATH).write_text('{"id": 3}')

    assert [one.done for one in workspace.repairer.repair() if one.path == PATH] == [False]
    assert [one.done for one in workspace.repairer.repair([PATH])] == [True]

    assert files_of(workspace).read(PATH).values == VALUES


def test_no_version_is_promised_of_what_never_was_valid(opened: Open) -> None:
    """``memfs check --fix`` says that an earlier version can come back only where there is one (S18)."""
    workspace = opened()
    (workspace.root / PATH).parent.mkdir(parents=True, exist_ok=True)
    (workspace.root / PATH).write_text('{"id": 3}')

    (sentence,) = [one.sentence for one in workspace.repairer.repair() if one.path == PATH]

    assert sentence.startswith("it is invalid: ")
    assert sentence.endswith("correct it, or remove it")


def test_erasing_an_item_leaves_documents_of_that_name(opened: Open) -> None:
    """An id names an item; a document is erased by its path (B6)."""
    workspace = opened()
    put(workspace, PATH, {"id": "heron", "state": "reviewed"})
    workspace.store.put(MemoryItem("cranes pass over in the first week of October", id="heron"))
    workspace.store.flush()

    done = workspace.eraser.erase("heron")

    assert done.proof.hits == ()
    assert files_of(workspace).read(PATH).values == {"id": "heron", "state": "reviewed"}


def test_a_document_is_erased_everywhere(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, history, large values beside it and what is known of it in the cache go; the proof finds nothing (B6)."""
    monkeypatch.setattr("memfs.format.codec.DOCUMENT_LIMIT", 4_000)
    monkeypatch.setattr(sidecars, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(sidecars, "_WORTH_BYTES", 500)
    workspace = opened()
    path = output_path(1, "Scout", "survey")
    large = "marten tracks in the snow, day after day\n" * 200
    output = {"agent_type": "Scout", "task_id": "survey", "timestamp": "2026-03-01T10:00:00Z"}
    put(workspace, path, {**output, "results": {"primary_output": large}})
    put(workspace, hypothesis_path(1, "kept"), {"id": "kept"})
    workspace.store.flush()
    assert list(workspace.root.rglob("*.zst"))

    done = workspace.eraser.erase(path, is_path=True)

    assert done.proof.hits == ()
    assert not list(workspace.root.rglob("*.zst"))
    assert not files_of(workspace).exists(path)
    assert files_of(workspace).exists(hypothesis_path(1, "kept"))


def test_checkpoints_that_hold_it_lose_their_payload(opened: Open) -> None:
    """An erased document is in no checkpoint; other payloads stay, and archives are named (B6)."""
    workspace = opened()
    put(workspace, PATH, VALUES)
    workspace.store.flush()
    payloads = [workspace.root / payload_path(f"ckpt_20260301_100{number}") for number in range(3)]
    for payload, data in zip(
        payloads, (PATH.encode() + (workspace.root / PATH).read_bytes(), b"other", b""), strict=True
    ):
        payload.parent.mkdir(parents=True)
        payload.write_bytes(compress(b"x" * 5_000_000 + data) if data else b"unreadable")
    archive = workspace.root / "ContextMemory/archive/2026-01.tar.zst"
    archive.parent.mkdir()
    archive.write_bytes(compress(b"x"))

    done = workspace.eraser.erase(PATH, is_path=True)

    assert [payload.exists() for payload in payloads] == [False, True, False]
    assert any("archives of iterations" in place for place in done.plan.unreachable)


def test_looking_for_edits_reads_a_document_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that commits often does not read ten thousand unchanged documents each time."""
    workspace = opened()
    put(workspace, PATH, VALUES)
    workspace.store.flush()
    tree = workspace.parts.tree
    read: list[str] = []
    original = tree.read
    monkeypatch.setattr("time.time_ns", lambda: (workspace.root / PATH).stat().st_mtime_ns + 10**10)

    def reading(path: str, limit: int) -> Content:
        read.append(path)
        return original(path, limit)

    monkeypatch.setattr(tree, "read", reading)
    for _ in range(3):
        assert workspace.store.hand_edits() == []
    assert read.count(PATH) == 1
    (workspace.root / PATH).write_text(json.dumps({"id": "heron"}))
    assert workspace.store.hand_edits() == [PATH]


def test_a_backup_has_documents_and_their_large_values(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace that is restored reads its state as before, what git does not keep included (S21)."""
    monkeypatch.setattr("memfs.format.codec.DOCUMENT_LIMIT", 4_000)
    monkeypatch.setattr(sidecars, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(sidecars, "_WORTH_BYTES", 500)
    workspace = opened()
    values = {"id": "heron", "text": "feather " * 1_000}
    put(workspace, PATH, values)
    (backup,) = workspace.backups.make()

    restore(backup.path, tmp_path / "restored")
    again = open_workspace(tmp_path / "restored", watch=False, settings={"index.engine": "memory"})
    try:
        assert files_of(again).read(PATH).values == values
    finally:
        again.close()
