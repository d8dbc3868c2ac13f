"""Values too large for a document are stored compressed beside it, and come back as they were (S2, S18)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kit.faults import Fault, Stopped, injected
from memfs.errors import ContentError, CorruptItem, ItemTooLarge, QuotaExceeded, SchemaInvalid, SecretDetected
from memfs.fs.archive import compress, decompress
from memfs.model.state_paths import document_of_sidecar, output_path, system_state_path
from memfs.state.reader import DocumentChange, StateFiles
from memfs.store import sidecars
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
PATH = output_path(1, "a", "t")
TEXT = "one line of a large result, with Ünïcode\n" * 300


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a document be too large from 8 kB on."""
    monkeypatch.setattr("memfs.format.codec.DOCUMENT_LIMIT", 8_000)
    monkeypatch.setattr(sidecars, "_MOST_BYTES", 4_000)
    monkeypatch.setattr(sidecars, "_WORTH_BYTES", 500)


def files_of(workspace: Workspace) -> StateFiles:
    """The documents of a workspace."""
    return StateFiles(workspace.store, workspace.parts, workspace.states.index)


def output(primary: Any, **more: Any) -> dict[str, Any]:
    """An agent's output."""
    results = {"primary_output": primary, **more}
    return {"agent_type": "a", "task_id": "t", "timestamp": "2026-03-01T10:00:00Z", "results": results}


def put(files: StateFiles, values: dict[str, Any], path: str = PATH, critical: bool = False) -> None:
    """Write one document."""
    files.write([DocumentChange(path, values)], "Store it", critical=critical)


def beside(workspace: Workspace) -> list[Path]:
    """The sidecars there are."""
    return sorted(workspace.root.rglob("*.zst"))


@pytest.mark.parametrize(
    "values",
    [
        output(TEXT),
        output({"deep": [{"text": TEXT}, 1]}, metadata={"text": "short"}),
        output([{"id": number, "text": "few words"} for number in range(300)]),
        output(TEXT, metadata={"second": TEXT[:5_000], "third": TEXT[:3_000]}),
    ],
    ids=["text", "deep", "many small", "several"],
)
def test_a_large_value_comes_back_as_it_was(opened: Open, values: dict[str, Any]) -> None:
    """The document stays small and readable; a reader does not notice where the value is (S2)."""
    workspace = opened()

    put(files_of(workspace), values)

    assert files_of(opened(workspace.root)).read(PATH).values == values
    assert (workspace.root / PATH).stat().st_size < 8_000
    assert json.loads((workspace.root / PATH).read_text())["agent_type"] == "a"
    assert {document_of_sidecar(str(found.relative_to(workspace.root))) for found in beside(workspace)} == {PATH}
    assert sum(found.stat().st_size for found in beside(workspace)) < len(json.dumps(values)) / 5
    references = files_of(workspace).read(PATH, whole=False).values
    assert len(list(sidecars.references(references))) == len(beside(workspace))


def test_the_same_value_has_one_sidecar_and_git_none(opened: Open, git: Callable[..., str]) -> None:
    """A sidecar is named by its content; git keeps the document with the digest, not the large body."""
    workspace = opened()
    files = files_of(workspace)
    put(files, output(TEXT))
    (first,) = beside(workspace)
    before = first.stat()

    put(files, output(TEXT, confidence_score=0.5))
    files.commit_now()

    assert (beside(workspace), first.stat().st_ino) == ([first], before.st_ino)
    assert PATH in git(workspace.root, "ls-files")
    assert ".zst" not in git(workspace.root, "ls-files")
    assert git(workspace.root, "status", "--porcelain") == ""
    assert workspace.checker.check(integrity=True) == []


def test_a_sidecar_that_is_not_here_is_reported(opened: Open) -> None:
    """A clone has the document and its digest: the error names field, file and remedy."""
    workspace = opened()
    put(files_of(workspace), output(TEXT))
    beside(workspace)[0].unlink()

    with pytest.raises(ContentError) as caught:
        files_of(workspace).read(PATH)

    assert (caught.value.path, caught.value.field) == (PATH, "results.primary_output")
    assert "not in git" in (caught.value.hint or "")
    assert [found.code for found in workspace.checker.check()] == ["SidecarMissing"]
    put(files_of(workspace), output(TEXT))
    assert files_of(workspace).read(PATH).values == output(TEXT)


def another(data: bytes) -> bytes:
    """A whole sidecar with as many bytes in it, of another value."""
    return compress(decompress(data, 1 << 20).replace(b"large", b"LARGE"))


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: b"x" + data[1:], lambda data: b"", another])
def test_a_damaged_sidecar_is_never_taken_for_whole(opened: Open, damage: Callable[[bytes], bytes]) -> None:
    """Damage is found on read and by ``memfs check --integrity``, and writing the value again heals it (S18)."""
    workspace = opened()
    put(files_of(workspace), output(TEXT))
    (found,) = beside(workspace)
    found.write_bytes(damage(found.read_bytes()))

    with pytest.raises(CorruptItem) as caught:
        files_of(workspace).read(PATH)
    assert (caught.value.field, bool(caught.value.hint)) == ("results.primary_output", True)
    assert [one.code for one in workspace.checker.check(integrity=True)] == ["CorruptItem"]

    put(files_of(workspace), output(TEXT, confidence_score=1))
    assert files_of(workspace).read(PATH).values == output(TEXT, confidence_score=1)


@pytest.mark.parametrize(
    "reference",
    [
        {"file": "../../../../etc/passwd", "sha256": "a" * 64, "bytes": 1},
        {"file": "t.json.aaaaaaaaaaaaaaaa.zst", "sha256": "a" * 64, "bytes": 1 << 40},
        {"file": "t.json.aaaaaaaaaaaaaaaa.zst", "sha256": "/" * 64, "bytes": 1},
        {"file": "t.json.aaaaaaaaaaaaaaaa.zst", "sha256": "b" * 64, "bytes": 1},
        "t.json.aaaaaaaaaaaaaaaa.zst",
        None,
    ],
)
def test_a_reference_that_memfs_did_not_write_leads_nowhere(opened: Open, reference: Any) -> None:
    """A document may come from anybody: it reaches no other file, and the key is not for callers."""
    workspace = opened()
    forged = output({sidecars.KEY: reference})
    place = workspace.root / PATH
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(forged))

    with pytest.raises(ContentError, match="not a reference that memfs wrote"):
        files_of(workspace).read(PATH)
    for values in (forged, output([{sidecars.KEY: reference}, TEXT])):
        with pytest.raises(SchemaInvalid) as caught:
            put(files_of(workspace), values)
        assert (caught.value.field or "").startswith("results.primary_output")


def test_what_cannot_be_taken_out_is_named(opened: Open) -> None:
    """Where the schema wants a list of tasks, no reference may be: the error names the field."""
    workspace = opened()
    tasks = [f"task {number}" for number in range(2_000)]
    update = {
        "timestamp": "2026-03-01T10:00:00Z",
        "update_type": "periodic",
        "checkpoint_data": {"in_flight_tasks": tasks},
    }
    header = {"iteration": 1, "status": "open", "opened": "2026-03-01T10:00:00Z", "update": update}

    with pytest.raises(ItemTooLarge) as caught:
        put(files_of(workspace), header, system_state_path(1))

    assert (caught.value.field or "").startswith("update")
    assert (caught.value.path, bool(caught.value.hint)) == (system_state_path(1), True)
    assert beside(workspace) == []


def test_a_secret_in_a_large_value_is_refused(opened: Open) -> None:
    """Nothing that looks like a key gets by because it is long (B6)."""
    workspace = opened()

    with pytest.raises(SecretDetected):
        put(files_of(workspace), output(TEXT + "AKIA" + "IOSFODNN7EXAMPLQ"))

    assert beside(workspace) == []


def test_a_sidecar_counts_towards_the_quota(opened: Open) -> None:
    """Large values are refused where the area is full, unless they are critical (S16)."""
    workspace = opened()
    config = workspace.root / "ContextMemory/configuration/system_config.json"
    config.write_text(json.dumps({"quotas": {"iterations_bytes": 50}}))

    with pytest.raises(QuotaExceeded):
        put(files_of(workspace), output(TEXT))
    put(files_of(workspace), output(TEXT), critical=True)

    assert files_of(workspace).read(PATH).values == output(TEXT)


def test_a_document_never_refers_to_what_is_not_there(opened: Open) -> None:
    """Wherever a writer is killed, what can be read is whole: the old version or the new one (S18)."""
    workspace = opened()
    put(files_of(workspace), output("small"))
    with injected(Fault()) as counted:
        put(files_of(workspace), output(TEXT))
    put(files_of(workspace), output("small"))
    for found in beside(workspace):
        found.unlink()
    seen = set()
    for at in range(1, len(counted.seen), 4):
        writer = files_of(opened(workspace.root))
        with suppress(Stopped), injected(Fault(at=at)):
            put(writer, output(TEXT))
        values = files_of(opened(workspace.root)).read(PATH).values
        assert values in (output("small"), output(TEXT))
        seen.add(len(values["results"]["primary_output"]))
        put(files_of(opened(workspace.root)), output("small"))
    assert seen == {len("small"), len(TEXT)}


def test_what_nothing_refers_to_is_found_and_removed(opened: Open) -> None:
    """A killed writer may leave a sidecar without a document; 'memfs check --fix' removes it, and no other."""
    workspace = opened()
    files = files_of(workspace)
    put(files, output(TEXT))
    (kept,) = beside(workspace)
    left = kept.with_name(f"t.json.{'0' * 16}.zst")
    left.write_bytes(kept.read_bytes())
    assert workspace.checker.check() == []  # its document may be about to be written
    for found in (kept, left):
        os.utime(found, (1, 1))

    assert [(one.code, one.severity) for one in workspace.checker.check()] == [("LeftoverSidecar", "warning")]
    workspace.checker.repair()
    assert workspace.checker.check() == []

    assert beside(workspace) == [kept]
    assert files.read(PATH).values == output(TEXT)
