"""A large value of an archived document is read from the archive (S15)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from memfs.admin import check
from memfs.admin.archive_file import archive_lock
from memfs.errors import ArchiveInvalid
from memfs.model.state_paths import output_path
from memfs.state.reader import DocumentChange
from memfs.store import sidecars
from memfs.workspace import Workspace


def test_a_large_value_is_read_from_the_archive(
    opened: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing an iteration takes its sidecars along, and the document reads as before; a clone says what it lacks."""
    monkeypatch.setattr("memfs.format.codec.DOCUMENT_LIMIT", 4_000)
    monkeypatch.setattr(sidecars, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(sidecars, "_WORTH_BYTES", 500)
    workspace = opened()
    states = workspace.states
    states.iterations.start(1)
    path = output_path(1, "a", "t")
    values = {
        "agent_type": "a",
        "task_id": "t",
        "timestamp": "2026-03-01T10:00:00Z",
        "results": {"primary_output": "a line\n" * 2_000},
    }
    states.files.write([DocumentChange(path, values)], "Store it")
    states.iterations.close(1)
    closed = datetime(2026, 3, 1, tzinfo=UTC)
    assert list((workspace.root / "ContextMemory/iterations").rglob("*.zst"))

    states.archiver.archive({1: closed}, 3)

    assert not (workspace.root / path).exists()
    assert not list((workspace.root / "ContextMemory/iterations").rglob("*.zst"))
    assert states.reading.load(path) == values

    for payload in (workspace.root / "ContextMemory/archive").glob("*.tar.zst"):
        payload.unlink()
    states.archives._decoded.cache_clear()
    with pytest.raises(ArchiveInvalid, match="payload is not here") as caught:
        states.reading.load(path)
    assert "bring the payload here" in (caught.value.hint or "")
    found = states.retrieval.retrieve("partial", agents=["a"])
    assert found.partial
    assert any(path in sentence and "payload is not here" in sentence for sentence in found.missing)


def test_what_an_unpack_brings_is_not_a_leftover(opened: Callable[..., Workspace]) -> None:
    """While it is under way sidecars are there without their documents; young ones stay in any case (S15, S18)."""
    workspace = opened()
    folder = workspace.root / "ContextMemory/iterations/iteration_001/agent_outputs/a"
    folder.mkdir(parents=True)
    now = time.time()
    ages = {"old": now - 7200, "young": now - 60, "ahead": now + 60}
    places = {age: folder / f"t.json.{number:016x}.zst" for number, age in enumerate(ages)}
    for age, place in places.items():
        place.write_bytes(b"x")
        os.utime(place, (ages[age], ages[age]))

    with archive_lock(workspace.parts).hold("unpack"):
        assert check.remove_left(workspace.parts) == 0
    assert check.remove_left(workspace.parts) == 1

    assert [age for age, place in places.items() if place.exists()] == ["young", "ahead"]
