"""Recovery: what a checkpoint holds, which one is taken, and bringing documents back (S7, S8)."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs import Workspace
from memfs.errors import CheckpointInvalid
from memfs.fs.archive import compress, decompress
from memfs.model.state_documents import CheckpointData, StateUpdate
from memfs.model.state_paths import CHECKPOINTS, MANIFEST, PAYLOAD, hypothesis_path, output_path, update_path
from memfs.state.checkpoint_store import decode, encode
from memfs.state.checkpoints import Checkpoints
from memfs.store import sidecars
from tests.state.test_checkpoints import NOON, damage, fill, output, update, write

Opened = Callable[..., Workspace]


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One with a small state in it."""
    made = opened()
    fill(made)
    return made


@pytest.fixture
def checkpoints(workspace: Workspace) -> Checkpoints:
    """Its checkpoints."""
    return workspace.states.checkpoints


def test_recovery_has_all_that_is_needed(checkpoints: Checkpoints) -> None:
    """Tasks of the last update, its metadata and the agents' last states by component, completed work (S7)."""
    made = checkpoints.create()
    state = checkpoints.recover()
    assert (state.checkpoint_id, state.checkpoint_timestamp) == (made.id, made.timestamp)
    assert list(state.active_tasks) == [{"task_id": "t9", "agent": "Judge"}]
    assert state.resume_points == {"match": {"n": 4}, "Judge": {"seen": 2}, "Sci/Writer": ["draft"]}
    assert state.system_configuration == {}
    work = state.completed_work
    assert (work["iterations"], work["closed_iterations"], work["meta_reviews"]) == ([1, 2], [1], [1])
    assert work["outputs_by_agent"] == {"Judge": 2, "Sci/Writer": 1}
    assert (work["hypotheses"], work["tournament_results"], work["state_updates"]) == (1, 1, 2)
    integrity = state.data_integrity
    assert (integrity["verified"], integrity["rejected"], integrity["warnings"]) == (True, {}, [])


def test_the_update_given_counts_over_the_latest_stored(checkpoints: Checkpoints) -> None:
    """create_checkpoint(update) takes that update's tasks, whatever its time (S6)."""
    checkpoints.create(update(NOON, [{"task_id": "given"}], phase="last"))
    state = checkpoints.recover()
    assert list(state.active_tasks) == [{"task_id": "given"}]
    assert state.resume_points["phase"] == "last"


def test_what_an_update_does_not_say_is_taken_from_the_latest_that_does(workspace: Workspace) -> None:
    """A periodic update without checkpoint_data ends no task, and each component keeps the metadata it had; an empty
    list says that no task is under way (S1, S6, S7).
    """
    memory, checkpoints = workspace.states.recorder, workspace.states.checkpoints
    hour = timedelta(hours=1)

    def send(hours: int, kind: str = "periodic", **data: Any) -> None:
        given: dict[str, Any] = {"checkpoint_data": data} if data else {}
        memory.state_update({"timestamp": NOON + hours * hour, "update_type": kind, **given})

    send(2, "checkpoint", in_flight_tasks=["A"], recovery_metadata={"Rank": {"n": 1}, "Evolve": "x"})
    send(3)
    memory.state_update(StateUpdate(timestamp=NOON + 4 * hour, checkpoint_data=CheckpointData()))
    send(5, recovery_metadata={"Rank": {"n": 2}, "match": None})
    checkpoints.create()
    state = checkpoints.recover()
    assert list(state.active_tasks) == ["A"]
    points = state.resume_points
    assert (points["Rank"], points["Evolve"], "match" in points) == ({"n": 2}, "x", False)
    checkpoints.create({"update_type": "checkpoint"})
    assert list(checkpoints.recover().active_tasks) == ["A"]
    send(6, in_flight_tasks=[])
    checkpoints.create()
    assert list(checkpoints.recover().active_tasks) == []


@pytest.mark.usefixtures("_small_documents")
def test_tasks_of_a_large_update_are_found_behind_a_later_one(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """What a large update says of tasks and components is looked up where it is (S7, S8)."""
    memory = workspace.states.recorder
    data = {"in_flight_tasks": [{"id": "B", "note": "n" * 300_000}], "recovery_metadata": {"Rank": "r" * 800_000}}
    memory.state_update({"timestamp": NOON + timedelta(hours=2), "checkpoint_data": data})
    memory.state_update({"timestamp": NOON + timedelta(hours=3)})
    checkpoints.create()
    state = checkpoints.recover()
    assert [task["id"] for task in state.active_tasks] == ["B"]
    assert state.resume_points["Rank"] == "r" * 800_000


@pytest.mark.parametrize("taken", ["before", "after"], ids=["then a checkpoint", "after the checkpoint"])
def test_a_task_with_its_final_output_is_not_handed_out_again(workspace: Workspace, taken: str) -> None:
    """What was completed since the update that names it, before or after the checkpoint, is completed, be it with the
    agent's state; an output under whose token the task goes on, of another agent, or of an earlier time completes
    nothing (S7).
    """
    memory, checkpoints = workspace.states.recorder, workspace.states.checkpoints
    tasks = [
        "A",
        {"task_id": "B", "agent": "judge"},
        {"id": "C"},
        {"task_id": "D", "agent": "Judge"},
        "E" * 300,
        "t1",
        "F",
    ]
    data = {"in_flight_tasks": tasks}
    memory.state_update({"timestamp": NOON + timedelta(hours=2), "checkpoint_data": data})
    if taken == "after":
        checkpoints.create()
    later = NOON + timedelta(hours=3)
    for agent, task, state in (("x", "A", None), ("Judge", "B", {"s": 1}), ("x", "F", {"s": 1}), ("x", "D", None)):
        memory.agent_output(output(agent, task, state, later))
    token = workspace.states.continuations.save("x", "C", {"page": 2})
    memory.agent_output({**output("x", "C", None, later), "state_data": {"continuation_token": token}})
    memory.agent_output(output("x", "E" * 300, None, later))
    if taken == "before":
        checkpoints.create()
    state = checkpoints.recover()
    assert list(state.active_tasks) == [{"id": "C"}, {"task_id": "D", "agent": "Judge"}, "t1"]
    named = state.completed_work.get("completed_since", [])
    assert named == (["A", {"task_id": "B", "agent": "judge"}, "E" * 300, "F"] if taken == "after" else [])
    memory.agent_output(output("x", "C", None, later))
    assert {"id": "C"} not in checkpoints.recover().active_tasks


@pytest.mark.parametrize("archived", ["before", "after"], ids=["then a checkpoint", "after the checkpoint"])
def test_an_archived_output_completes_no_task_that_was_begun_later(workspace: Workspace, archived: str) -> None:
    """A task that is in flight once more is not done by what an archive holds; its new output ends it (S7)."""
    states, hour = workspace.states, timedelta(hours=1)
    write(workspace, (output_path(1, "x", "t0"), output("x", "t0")))
    if archived == "before":
        states.archiver.archive({1: NOON}, 1)
    states.recorder.state_update({"timestamp": NOON + 2 * hour, "checkpoint_data": {"in_flight_tasks": ["t0"]}})
    states.checkpoints.create()
    if archived == "after":
        states.archiver.archive({1: NOON}, 1)
    assert list(states.checkpoints.recover().active_tasks) == ["t0"]
    states.recorder.agent_output(output("Judge", "t0", None, NOON + 3 * hour))
    states.iterations.close(2)
    assert list(states.checkpoints.recover().active_tasks) == []


def test_metadata_and_state_of_one_agent_are_joined(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """Where the supervisor recorded something of an agent, it adds to the agent's own state and goes first (S7)."""
    checkpoints.create(update(NOON, **{"Judge": {"seen": 9, "round": 1}, "Sci/Writer": "page 3"}))
    points = checkpoints.recover().resume_points
    assert points["Judge"] == {"seen": 9, "round": 1}
    assert points["Sci/Writer"] == {"recovery_metadata": "page 3", "internal_state": ["draft"]}


def test_a_continuation_that_was_not_superseded_is_a_state(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """An agent that saved its state under a token goes on from that (S7, S9)."""
    workspace.states.continuations.save("Digger", "t7", {"depth": 3})
    checkpoints.create()
    assert checkpoints.recover().resume_points["Digger"] == {"depth": 3}


@pytest.fixture
def _small_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a document be too large from 1 MB on."""
    monkeypatch.setattr("memfs.format.codec.DOCUMENT_LIMIT", 1_000_000)
    monkeypatch.setattr(sidecars, "_MOST_BYTES", 900_000)


@pytest.mark.usefixtures("_small_documents")
def test_large_states_are_found_too(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """States too large for the summary, and for their document, come back whole (S7, S8)."""
    large, huge = ["x" * 100] * 5_000, "y" * 1_200_000
    write(workspace, (output_path(2, "Large", "t"), output("Large", "t", large)))
    write(workspace, (output_path(2, "Huge", "t"), output("Huge", "t", {"text": huge})))
    checkpoints.create()
    points = checkpoints.recover().resume_points
    assert list((workspace.root / output_path(2, "Huge", "t")).parent.glob("*.zst"))
    assert points["Large"] == large
    assert points["Huge"] == {"text": huge}


def test_components_narrow_the_answer(checkpoints: Checkpoints) -> None:
    """Only the components named are reported; a name that the checkpoint does not know is a warning (S7)."""
    checkpoints.create(update(NOON, [{"task_id": "a", "agent": "Judge"}, {"task_id": "b", "agent": "X"}, "c"], X=1))
    state = checkpoints.recover(components=["Judge", "Nobody"])
    assert state.resume_points == {"Judge": {"seen": 2}}
    assert list(state.active_tasks) == [{"task_id": "a", "agent": "Judge"}, "c"]
    assert state.data_integrity["warnings"] == ["the checkpoint knows no component 'Nobody'"]


# -- which one ----------------------------------------------------------------------------------------------------
def test_the_newest_good_one_is_taken_and_the_others_named(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """Where the newest checkpoint is damaged the one before is used, and the reason is reported (S7)."""
    ids = [checkpoints.create().id for _ in range(3)]
    damage(workspace.root / CHECKPOINTS / ids[2] / PAYLOAD, 80)
    damage(workspace.root / CHECKPOINTS / ids[1] / MANIFEST, 40)
    state = checkpoints.recover()
    assert state.checkpoint_id == ids[0]
    assert list(state.data_integrity["rejected"]) == [ids[2], ids[1]]
    assert "2 newer checkpoints cannot be used" in state.data_integrity["warnings"][0]


def test_one_that_was_named_is_never_replaced(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """Naming a damaged checkpoint is an error, and so is an id that there is not (S7)."""
    _, bad = checkpoints.create().id, checkpoints.create().id
    damage(workspace.root / CHECKPOINTS / bad / PAYLOAD, 80)
    with pytest.raises(CheckpointInvalid, match=bad):
        checkpoints.recover(bad)
    for wrong in ("ckpt_19990101_0000", "../../x", ""):
        with pytest.raises(CheckpointInvalid):
            checkpoints.recover(wrong)


def test_without_a_good_one_each_reason_is_reported(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """No checkpoint, or none that verifies, is an error with a remedy (S7)."""
    with pytest.raises(CheckpointInvalid, match="there is no checkpoint"):
        checkpoints.recover()
    made = checkpoints.create()
    damage(workspace.root / CHECKPOINTS / made.id / PAYLOAD, 80)
    with pytest.raises(CheckpointInvalid, match=made.id):
        checkpoints.recover()


# -- bringing back ------------------------------------------------------------------------------------------------
def test_restore_brings_back_what_is_missing_or_differs(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """One commit with exactly those documents; what is newer stays; what was replaced is in history (S7)."""
    checkpoints.create()
    gone, changed, newer = output_path(2, "Judge", "t2"), hypothesis_path(2, "h1"), hypothesis_path(2, "h9")
    (workspace.root / gone).unlink()
    write(workspace, (changed, {"id": "h1", "state": "wrong"}), (newer, {"id": "h9"}))
    assert checkpoints.recover(restore=True).data_integrity["restored"] == sorted([gone, changed])
    assert json.loads((workspace.root / changed).read_text())["state"] == "new"
    assert (workspace.root / newer).exists()
    workspace.store.flush()
    versions = workspace.history.log(changed)
    assert b'"wrong"' in workspace.history.content(versions[1].commit, changed)
    assert checkpoints.recover(restore=True).data_integrity["restored"] == []


def test_restore_of_one_component_leaves_the_others(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """components names agents and parts of the system; an isolated recovery touches nothing else (S7)."""
    checkpoints.create()
    shutil.rmtree(workspace.root / "ContextMemory/iterations")
    restored = checkpoints.recover(components=["Judge"], restore=True).data_integrity["restored"]
    assert restored == sorted([output_path(1, "Judge", "t1"), output_path(2, "Judge", "t2")])
    restored = checkpoints.recover(components=["hypotheses", "system"], restore=True).data_integrity["restored"]
    assert hypothesis_path(2, "h1") in restored
    assert update_path(1, NOON) in restored
    assert not (workspace.root / output_path(2, "Sci/Writer", "t3")).exists()


@pytest.mark.usefixtures("_small_documents")
def test_restore_of_everything_lost_brings_sidecars_too(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """After the whole tree of iterations was removed, every document reads back as it was (S7)."""
    huge = "some text " * 120_000
    write(workspace, (output_path(2, "Huge", "t"), output("Huge", "t", {"text": huge})))
    checkpoints.create()
    shutil.rmtree(workspace.root / "ContextMemory/iterations")
    checkpoints.recover(restore=True)
    read = workspace.states.files.read(output_path(2, "Huge", "t")).values
    assert read["state_data"]["internal_state"]["text"] == huge


def test_archived_work_is_work_that_is_done(workspace: Workspace) -> None:
    """Iterations in archives are in no checkpoint, but a recovery lists them (S7, S15)."""
    states, closed = workspace.states, [1]
    before = states.checkpoints.create()
    recovered = states.checkpoints.recover(before.id)
    states.archiver.archive(dict.fromkeys(closed, NOON), 1)
    assert not any((workspace.root / output_path(number, "Judge", "t1")).exists() for number in closed)

    made = states.checkpoints.create()
    state = states.checkpoints.recover(made.id)

    work = {**recovered.completed_work, "archived_iterations": closed, "closed_iterations": closed}
    assert state.completed_work == work
    assert state.active_tasks == recovered.active_tasks
    assert state.data_integrity["warnings"] == []
    assert made.files < before.files
    index = workspace.root / "ContextMemory/archive/2026-03.index.json"
    damage(index, 1)
    assert states.checkpoints.create().files == made.files


def test_restore_leaves_archived_documents_in_their_archive(workspace: Workspace) -> None:
    """What was archived since is not missing (S7, S15)."""
    archived = output_path(1, "Judge", "t1")
    checkpoints = workspace.states.checkpoints
    checkpoints.create()
    workspace.states.archiver.archive({1: NOON}, 1)
    assert not (workspace.root / archived).exists()
    assert checkpoints.recover(restore=True).data_integrity["restored"] == []


# -- hostile payloads ---------------------------------------------------------------------------------------------
def forged(workspace: Workspace, made: str, data: bytes, unpacked: int | None = None) -> None:
    """A payload of somebody else's, with a manifest that fits it."""
    folder = workspace.root / CHECKPOINTS / made
    manifest = decode((folder / MANIFEST).read_bytes(), made)
    payload = compress(data)
    (folder / PAYLOAD).write_bytes(payload)
    facts: dict[str, Any] = {"payload_bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    changed = replace(manifest, unpacked=len(data) if unpacked is None else unpacked, files=0, **facts)
    (folder / MANIFEST).write_bytes(encode(changed))


def tar_of(kind: bytes, name: str, target: str = "") -> bytes:
    """A tar with one member."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        archive.addfile(info)
    return made.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        tar_of(tarfile.SYMTYPE, "ContextMemory/iterations/x.json", "/etc/passwd"),
        tar_of(tarfile.LNKTYPE, "ContextMemory/iterations/x.json", "memfs.toml"),
        tar_of(tarfile.REGTYPE, "ContextMemory/iterations/../../x"),
        tar_of(tarfile.REGTYPE, "/etc/x"),
        tar_of(tarfile.REGTYPE, "ContextMemory/memories/x.yaml"),
        tar_of(tarfile.REGTYPE, "ContextMemory/context/.git/config"),
        tar_of(tarfile.CHRTYPE, "ContextMemory/iterations/x"),
        b"no tar at all",
        b"",
    ],
    ids=["link", "hard", "up", "root", "memory", "git", "device", "text", "nothing"],
)
def test_a_hostile_payload_is_refused(workspace: Workspace, checkpoints: Checkpoints, data: bytes) -> None:
    """Links, names that lead elsewhere and what is not a state are refused, though all digests fit (S6, S7)."""
    made = checkpoints.create()
    forged(workspace, made.id, data)
    assert checkpoints.verify()[0].problem
    with pytest.raises(CheckpointInvalid):
        checkpoints.recover(made.id, restore=True)


def test_bytes_and_documents_are_each_proved(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """A document changed within a payload whose digest fits is found; so is a payload that is not the one (S6, S18)."""
    made = checkpoints.create()
    folder = workspace.root / CHECKPOINTS / made.id
    manifest = decode((folder / MANIFEST).read_bytes(), made.id)
    plain = decompress((folder / PAYLOAD).read_bytes(), 1 << 24)
    forged(workspace, made.id, plain.replace(b'"draft"', b'"DRAFT"'))
    fitting = decode((folder / MANIFEST).read_bytes(), made.id)
    (folder / MANIFEST).write_bytes(encode(replace(fitting, files=manifest.files)))
    assert "Sci%2FWriter/t3.json' in it is damaged" in checkpoints.verify()[0].problem
    (folder / PAYLOAD).write_bytes(payload := compress(plain, 3))
    other = replace(manifest, payload_bytes=len(payload), sha256="0" * 64)
    (folder / MANIFEST).write_bytes(encode(other))
    assert checkpoints.verify()[0].problem
    with pytest.raises(CheckpointInvalid):
        checkpoints.recover()
    (folder / MANIFEST).write_bytes(encode(replace(other, sha256=hashlib.sha256(payload).hexdigest())))
    assert not checkpoints.verify()[0].problem


def test_a_bomb_is_not_unpacked(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """A payload that unpacks to more than its manifest says is refused at that point (S6)."""
    made = checkpoints.create()
    forged(workspace, made.id, bytes(50_000_000), unpacked=10_240)
    assert "more than 10240 bytes" in checkpoints.verify()[0].problem


def test_a_payload_opens_with_tar_and_sha256sum(workspace: Workspace, checkpoints: Checkpoints, tmp_path: Path) -> None:
    """A checkpoint can be read without memfs: a tar with SHA256SUMS as its last member (S6)."""
    made = checkpoints.create()
    payload = (workspace.root / CHECKPOINTS / made.id / PAYLOAD).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(decompress(payload, 1 << 24))) as archive:
        archive.extractall(tmp_path / "out", filter="data")
        assert archive.getnames()[-1] == "SHA256SUMS"
    lines = (tmp_path / "out/SHA256SUMS").read_text().splitlines()
    assert len(lines) == made.files
    for line in lines:
        digest, path = line.split("  ", 1)
        assert hashlib.sha256((tmp_path / "out" / path).read_bytes()).hexdigest() == digest
        assert (tmp_path / "out" / path).read_bytes() == (workspace.root / path).read_bytes()


def test_checkpoints_that_fail_alike_are_reported_together(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """A clone has no payload at all: its one reason is said once (S7)."""
    ids = [checkpoints.create().id for _ in range(2)]
    for one in ids:
        (workspace.root / CHECKPOINTS / one / PAYLOAD).unlink()
    with pytest.raises(
        CheckpointInvalid, match=f"no checkpoint can be used; {ids[1]}, {ids[0]}: its payload"
    ) as refused:
        checkpoints.recover()
    assert str(refused.value).count("payload is not here") == 1
