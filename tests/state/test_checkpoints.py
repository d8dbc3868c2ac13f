"""Checkpoints: made, verified, listed, pruned, made by themselves; killed at any point they do not count (S6-S8)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs import Workspace
from memfs.admin.backup_file import FILES
from memfs.errors import CheckpointInvalid, PathEscape, QuotaExceeded, StorageFull
from memfs.fs import io
from memfs.fs.archive import TreePacker
from memfs.fs.tree import ScanEntry
from memfs.model.state_paths import (
    CHECKPOINTS,
    MANIFEST,
    PAYLOAD,
    hypothesis_path,
    meta_review_path,
    output_path,
    system_state_path,
    tournament_path,
    update_path,
)
from memfs.state.checkpoint_store import decode, next_id, order, write_payload
from memfs.state.checkpoints import Checkpoints
from memfs.state.reader import DocumentChange
from tests.store.test_secondary import full

Opened = Callable[..., Workspace]
NOON = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
CONFIG = "ContextMemory/configuration/system_config.json"
POLICY = "ContextMemory/configuration/retention_policy.json"


def write(workspace: Workspace, *documents: tuple[str, dict[str, Any]]) -> None:
    """Store documents as one batch."""
    workspace.states.files.write([DocumentChange(path, values) for path, values in documents], "test")


def update(moment: datetime = NOON, tasks: list[Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A state update with tasks in flight."""
    data = {"in_flight_tasks": tasks or [], "recovery_metadata": metadata}
    return {"timestamp": moment.isoformat(), "update_type": "periodic", "checkpoint_data": data}


def output(agent: str, task: str, state: Any = None, moment: datetime = NOON) -> dict[str, Any]:
    """An agent's output, with the state it left off in."""
    made = {"agent_type": agent, "task_id": task, "timestamp": moment.isoformat(), "results": {"primary_output": "x"}}
    return made if state is None else {**made, "state_data": {"internal_state": state}}


def fill(workspace: Workspace) -> None:
    """A small state of two iterations."""
    write(
        workspace,
        (system_state_path(1), {"iteration": 1, "status": "closed", "opened": NOON.isoformat()}),
        (system_state_path(2), {"iteration": 2, "status": "open", "opened": NOON.isoformat()}),
        (update_path(1, NOON), update()),
        (
            update_path(2, NOON + timedelta(hours=1)),
            update(NOON + timedelta(hours=1), [{"task_id": "t9", "agent": "Judge"}], match={"n": 4}),
        ),
        (output_path(1, "Judge", "t1"), output("Judge", "t1", {"seen": 1})),
        (output_path(2, "Judge", "t2"), output("Judge", "t2", {"seen": 2})),
        (output_path(2, "Sci/Writer", "t3"), output("Sci/Writer", "t3", ["draft"])),
        (hypothesis_path(2, "h1"), {"id": "h1", "state": "new"}),
        (tournament_path(2, "m1"), {"id": "m1", "participants": ["h1"]}),
        (meta_review_path(1), {"iteration_number": 1, "timestamp": NOON.isoformat()}),
    )


def configure(workspace: Workspace, path: str, **values: Any) -> None:
    """Set values of a configuration document, as a person does."""
    place = workspace.root / path
    found = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps({**found, **values}))


@pytest.fixture
def secondary(tmp_path: Path) -> Path:
    """A folder for the secondary location, private as it must be."""
    folder = tmp_path / "secondary"
    folder.mkdir(0o700)
    return folder


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


def at(workspace: Workspace, moment: datetime) -> Checkpoints:
    """Checkpoints whose clock is stopped."""
    states, parts = workspace.states, replace(workspace.parts, clock=lambda: moment)
    return Checkpoints(workspace.store, parts, states.reading)


def test_a_checkpoint_is_verified_listed_and_in_git(
    workspace: Workspace, checkpoints: Checkpoints, git: Callable[..., str]
) -> None:
    """create gives an id by the minute; manifest committed at once, payload beside it outside git (S6)."""
    made = at(workspace, NOON).create(reason="before the final")
    assert made.id == "ckpt_20260301_1200"
    assert (made.iteration, made.files, made.reason, made.present) == (2, 10, "before the final", True)
    assert checkpoints.list() == [made]
    assert [one.problem for one in checkpoints.verify()] == [""]
    folder = f"{CHECKPOINTS}/{made.id}"
    assert git(workspace.root, "ls-files", CHECKPOINTS).split() == [f"{folder}/{MANIFEST}"]
    assert git(workspace.root, "status", "--porcelain", CHECKPOINTS) == ""
    assert made.payload_bytes == (workspace.root / folder / PAYLOAD).stat().st_size


@pytest.mark.parametrize(("field", "value"), [("created", "0001-01-01T00:00:00+23:59"), ("reason", "\ud800")])
def test_a_manifest_with_values_beyond_all_bounds_is_damaged(field: str, value: str) -> None:
    """Whatever a manifest of somebody else's says, it is named as invalid, and lists no traceback (S18)."""
    known: dict[str, Any] = {"format": 1, "id": "ckpt_20260301_1200", "created": "2026-03-01T12:00:00Z"}
    known |= {"payload": {"file": PAYLOAD, "bytes": 0, "sha256": "0" * 64}, field: value}
    with pytest.raises(CheckpointInvalid):
        decode(json.dumps(known).encode(), "ckpt_20260301_1200")


def test_ids_are_unique_within_a_minute_and_between_handles(workspace: Workspace) -> None:
    """Several checkpoints of one minute have ids of their own, newest listed first, from threads too (S6)."""
    handles = [at(workspace, NOON) for _ in range(3)]
    threads = [threading.Thread(target=one.create) for one in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [one.id for one in handles[0].list()]
    assert ids == ["ckpt_20260301_1200_3", "ckpt_20260301_1200_2", "ckpt_20260301_1200"]


@pytest.mark.parametrize("keep", [1, 2])
def test_an_id_is_never_given_twice_and_the_newest_stays(workspace: Workspace, keep: int) -> None:
    """Within one minute, and with a clock that goes back, each id is new and later than all before it, whatever was
    pruned or removed meanwhile; the one just acknowledged can be recovered (S6, S7).
    """
    configure(workspace, POLICY, checkpoints={"keep": keep, "keep_days": 0})
    ids = []
    for number in range(7):
        checkpoints = at(workspace, NOON - timedelta(minutes=number % 3))
        ids.append(checkpoints.create().id)
        assert checkpoints.recover(ids[-1]).checkpoint_id == ids[-1]
        assert checkpoints.recover().checkpoint_id == ids[-1]
        assert [one.id for one in checkpoints.list()] == ids[: -keep - 1 : -1]
    assert sorted(set(ids), key=order) == ids
    shutil.rmtree(workspace.root / CHECKPOINTS)
    assert order(at(workspace, NOON).create().id) > order(ids[-1])


def test_the_turn_of_a_full_minute_goes_on_in_the_next() -> None:
    """Ids have at most six digits of turn, and stay later than those before them (S6)."""
    assert next_id(NOON, ["ckpt_20260301_1200_999999"]) == "ckpt_20260301_1201"
    assert next_id(NOON, ["ckpt_99999999_9999"]) == "ckpt_20260301_1200"
    assert next_id(NOON, ["ckpt_20260301_1200", "ckpt_20260301_1200_9", "ckpt_20260301_1200_10"]).endswith("_11")


def test_the_same_state_gives_the_same_payload(checkpoints: Checkpoints) -> None:
    """A payload depends on the documents alone: nobody need compare two by hand (S6)."""
    assert checkpoints.create().sha256 == checkpoints.create().sha256


def test_an_empty_workspace_can_be_checkpointed(opened: Opened) -> None:
    """Before the first iteration a checkpoint holds the configuration, and a recovery says what is missing (S6, S7)."""
    checkpoints = opened().states.checkpoints
    made = checkpoints.create()
    assert made.iteration is None
    state = checkpoints.recover()
    assert state.active_tasks == ()
    assert "no state update" in state.data_integrity["warnings"][0]


def test_a_checkpoint_taken_while_writers_run_is_of_one_moment(
    workspace: Workspace, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that lands during the packing is in the checkpoint whole, what was removed is not (S6)."""
    from memfs.state import checkpoint_store

    entries = checkpoint_store._entries
    acts: list[Callable[[], None]] = [
        lambda: write(
            workspace, (hypothesis_path(2, "h1"), {"id": "h1", "n": 2}), (hypothesis_path(2, "h2"), {"id": "h2"})
        ),
        lambda: None,
    ]

    def while_packing(*arguments: Any) -> Any:
        found = entries(*arguments)
        yield from found[:-1]
        if acts:
            acts.pop(0)()
        yield found[-1]

    monkeypatch.setattr(checkpoint_store, "_entries", while_packing)
    made = checkpoints.create()
    monkeypatch.undo()
    assert made.files == 11
    (workspace.root / hypothesis_path(2, "h1")).write_text("{}")
    (workspace.root / hypothesis_path(2, "h2")).unlink()
    checkpoints.recover(made.id, restore=True)
    assert json.loads((workspace.root / hypothesis_path(2, "h1")).read_text())["n"] == 2
    assert (workspace.root / hypothesis_path(2, "h2")).exists()


KILLED = """
import os, signal, sys
from memfs.fs import io
from memfs.workspace import open_workspace

left = int(sys.argv[2])
def hook(name, path):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

workspace = open_workspace(sys.argv[1], watch=False, settings={"index.engine": "memory", "history.commit": "manual"})
io.set_hook(hook)
workspace.states.checkpoints.create()
print(left)
"""


def test_killed_at_any_point_nothing_half_done_counts(opened: Opened, forked: Path) -> None:
    """kill -9 during create leaves the checkpoint before usable, and nothing that the next one does not sweep (S6)."""
    workspace = opened()
    fill(workspace)
    good = workspace.states.checkpoints.create()
    for point in (40, 65, 90):
        command = [str(forked), "-c", KILLED, str(workspace.root), str(point)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, ""), done.stderr
        checkpoints = opened(workspace.root).states.checkpoints
        assert not any(one.problem for one in checkpoints.verify())
        assert good.id in [one.id for one in checkpoints.list()]
        assert checkpoints.recover().data_integrity["rejected"] == {}
        checkpoints.create()
        folders = {path.name for path in (workspace.root / CHECKPOINTS).iterdir()}
        assert folders == {one.id for one in checkpoints.list()}


def test_what_does_not_read_back_is_not_a_checkpoint(
    workspace: Workspace, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that changes what is written to it is found out at once: nothing is acknowledged, nothing stays (S6)."""

    def write_badly(target: Path, content: Iterable[bytes]) -> None:
        write_payload(target, content)
        damage(target, 60)

    monkeypatch.setattr("memfs.state.checkpoint_store.write_payload", write_badly)
    with pytest.raises(CheckpointInvalid, match="damaged"):
        checkpoints.create()
    assert list(checkpoints.list()) == []
    assert list((workspace.root / CHECKPOINTS).iterdir()) == []


def test_a_full_disk_makes_no_checkpoint(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """Where the disk has no room, create says so, leaves nothing, and the one before stays good (S6, S16)."""
    good = checkpoints.create()

    def full(name: str, path: str) -> None:
        if name == "write" and PAYLOAD in path:
            raise OSError(28, "No space left on device")

    before = io.set_hook(full)
    try:
        with pytest.raises(StorageFull):
            checkpoints.create()
    finally:
        io.set_hook(before)
    assert [path.name for path in (workspace.root / CHECKPOINTS).iterdir()] == [good.id]
    assert checkpoints.recover().checkpoint_id == good.id


def test_a_disk_that_fills_up_while_writers_wait_lets_them_go_on(
    workspace: Workspace, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who was refused keeps no lock, also as long as the error is kept (S6, S16)."""
    catch_up = TreePacker.catch_up

    def with_more(packer: TreePacker, entries: Iterable[ScanEntry]) -> Iterator[bytes]:
        yield from catch_up(packer, entries)
        yield os.urandom(1 << 20)

    def full(name: str, path: str) -> None:
        if name == "write" and path.endswith((PAYLOAD, f"/{FILES}")):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(TreePacker, "catch_up", with_more)
    for act in (checkpoints.create, workspace.backups.make):
        before = io.set_hook(full)
        try:
            with pytest.raises(StorageFull) as kept:
                act()
        finally:
            io.set_hook(before)
        write(workspace, (hypothesis_path(2, "h1"), {"id": "h1", "refused": str(kept.value)}))


# -- retention ----------------------------------------------------------------------------------------------------
def test_the_policy_says_how_many_are_kept(workspace: Workspace) -> None:
    """keep and keep_days both keep; what neither does goes with the next checkpoint (S6)."""
    configure(workspace, POLICY, checkpoints={"keep": 2, "keep_days": 3})
    days = [1, 2, 10, 11]
    ids = [at(workspace, NOON + timedelta(days=day)).create().id for day in days]
    checkpoints = at(workspace, NOON + timedelta(days=12))
    assert [one.id for one in checkpoints.list()] == [ids[3], ids[2]]
    configure(workspace, POLICY, checkpoints={"keep": 1, "keep_days": 0})
    assert len(checkpoints.list()) == 2
    newest = checkpoints.create().id
    assert [path.name for path in (workspace.root / CHECKPOINTS).iterdir()] == [newest]


def test_a_damaged_one_takes_no_good_ones_place(workspace: Workspace) -> None:
    """One that cannot be used does not count among those that are kept (S6, S7)."""
    configure(workspace, POLICY, checkpoints={"keep": 5, "keep_days": 0})
    ids = [at(workspace, NOON + timedelta(days=day)).create().id for day in range(3)]
    (workspace.root / CHECKPOINTS / ids[2] / MANIFEST).write_text("{}")
    configure(workspace, POLICY, checkpoints={"keep": 2, "keep_days": 0})
    checkpoints = at(workspace, NOON + timedelta(days=9))
    newest = checkpoints.create().id
    assert [one.id for one in checkpoints.list()] == [newest, ids[2], ids[1]]


def test_a_clone_removes_no_checkpoint_of_the_original(workspace: Workspace) -> None:
    """Those whose payload is elsewhere stay listed like others, as many as are kept (S6)."""
    configure(workspace, POLICY, checkpoints={"keep": 2, "keep_days": 0})
    ids = [at(workspace, NOON + timedelta(days=day)).create().id for day in range(2)]
    for one in ids:
        (workspace.root / CHECKPOINTS / one / PAYLOAD).unlink()
    checkpoints = at(workspace, NOON + timedelta(days=9))
    own = checkpoints.create().id
    assert [one.id for one in checkpoints.list()] == [own, ids[1]]


def test_an_invalid_policy_removes_nothing(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """Checkpoints go on being made under a broken policy (S6)."""
    (workspace.root / POLICY).write_text('{"checkpoints": {"keep": "few"}}')
    made = checkpoints.create()
    assert [one.id for one in checkpoints.list()] == [made.id]


def test_a_full_quota_keeps_no_checkpoint_for_being_young(workspace: Workspace) -> None:
    """Where checkpoints_bytes is full, those beyond keep are removed for the new one, however young they are (S16)."""
    configure(workspace, POLICY, checkpoints={"keep": 2, "keep_days": 30})
    ids = [at(workspace, NOON + timedelta(minutes=minute)).create().id for minute in range(3)]
    configure(workspace, CONFIG, quotas={"checkpoints_bytes": io.weigh(workspace.root / CHECKPOINTS) + 100})
    checkpoints = at(workspace, NOON + timedelta(minutes=9))
    made = checkpoints.create().id
    assert [one.id for one in checkpoints.list()] == [made, ids[2]]


def test_filling_the_quota_is_reported_once(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """The process whose checkpoint crosses a threshold raises the occasion, once (S16)."""
    events: list[Any] = []
    workspace.behaviours.on("storage_threshold", events.append)
    configure(workspace, POLICY, checkpoints={"keep": 9, "keep_days": 30})
    checkpoints.create()
    weight = io.weigh(workspace.root / CHECKPOINTS)
    configure(workspace, CONFIG, quotas={"checkpoints_bytes": 10 * weight, "warn_at": 0.35, "critical_at": 0.95})
    for _ in range(4):
        checkpoints.create()
    assert [(facts["area"], facts["level"]) for facts in events] == [("checkpoints", "warning")]
    assert 0.35 <= events[0]["share"] < 0.46


def test_the_quota_of_the_area_holds(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """A checkpoint beyond checkpoints_bytes is refused with the remedy, and leaves nothing (S16)."""
    configure(workspace, CONFIG, quotas={"checkpoints_bytes": 100})
    with pytest.raises(QuotaExceeded, match="their quota is 100") as raised:
        checkpoints.create()
    assert "keep fewer" in str(raised.value.hint)
    assert list((workspace.root / CHECKPOINTS).iterdir()) == []


def test_where_the_disk_takes_no_checkpoint_the_update_is_acknowledged(opened: Opened, secondary: Path) -> None:
    """The acknowledgement says that the update is stored, and of the checkpoint alone that it is not (S1, S17)."""
    workspace = opened(storage__secondary=str(secondary))
    fill(workspace)
    with full(secondary):
        ack = workspace.states.recorder.state_update({"update_type": "checkpoint"})
    assert (ack.durability, ack.checkpoint_id) == ("fallback", "")
    assert "No space left" in ack.checkpoint_problem
    assert workspace.states.files.read(ack.path).values["update_type"] == "checkpoint"
    assert workspace.states.checkpoints.list() == []


# -- by itself ----------------------------------------------------------------------------------------------------
def test_one_is_made_by_the_interval(workspace: Workspace) -> None:
    """every_minutes makes one with the first write after it; without either setting none is ever due (S6)."""
    assert at(workspace, NOON).due() == ""
    configure(workspace, CONFIG, checkpoints={"every_minutes": 30})
    assert at(workspace, NOON).maintain()
    assert not at(workspace, NOON + timedelta(minutes=29)).maintain()
    assert at(workspace, NOON + timedelta(minutes=30)).due() == "interval"


def test_a_missed_update_and_damage_are_reported(workspace: Workspace) -> None:
    """``standing`` has the age of the last checkpoint, those that cannot be used, and a late update (S6, S16)."""
    early = NOON + timedelta(hours=1, minutes=5)
    assert at(workspace, early).status().update_late == 0
    late = at(workspace, NOON + timedelta(hours=2))
    assert late.status().update_late == 3605 - 5
    made = late.create()
    assert late.status().age == 0
    (workspace.root / CHECKPOINTS / made.id / PAYLOAD).unlink()
    assert (late.status().count, late.status().damaged) == (1, 1)


def test_a_checkpoint_update_creates_one(opened: Opened) -> None:
    """Storing an update of type checkpoint makes one, whose id the acknowledgement carries (S1, S6)."""
    workspace = opened()
    tasks = [{"task_id": "t1"}]
    ack = workspace.states.recorder.state_update(
        {"update_type": "checkpoint", "checkpoint_data": {"in_flight_tasks": tasks}}
    )
    state = workspace.states.checkpoints.recover()
    assert state.checkpoint_id == ack.checkpoint_id
    assert list(state.active_tasks) == tasks
    assert ack.revision == workspace.states.files.revision_of(ack.path) != ""


# -- damage -------------------------------------------------------------------------------------------------------
def damage(path: Path, position: int, bit: int = 1) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


def test_one_flipped_bit_is_found_wherever_it_is(workspace: Workspace, checkpoints: Checkpoints) -> None:
    """Any bit of payload or manifest that is not as it was rejects the checkpoint, and says why (S6, S18)."""
    made = checkpoints.create()
    for name in (PAYLOAD, MANIFEST):
        path = workspace.root / CHECKPOINTS / made.id / name
        whole = path.read_bytes()
        for position in range(0, len(whole), 7):
            damage(path, position, 1 << position % 8)
            assert checkpoints.verify(made.id)[0].problem, (name, position)
            path.write_bytes(whole)
    assert not checkpoints.verify(made.id)[0].problem


@pytest.mark.parametrize(
    "harm", ["shorter", "longer", "empty", "gone", "folder", "link", "another"], ids=lambda harm: harm
)
def test_a_harmed_payload_is_rejected(workspace: Workspace, checkpoints: Checkpoints, harm: str) -> None:
    """Whatever is in the payload's place, the checkpoint before is taken and the reason given (S7)."""
    good = at(workspace, NOON).create()
    made = checkpoints.create()
    path = workspace.root / CHECKPOINTS / made.id / PAYLOAD
    whole = path.read_bytes()
    path.unlink()
    if harm == "folder":
        path.mkdir()
    elif harm == "link":
        path.symlink_to("/dev/zero")
    elif harm != "gone":
        data = {"shorter": whole[:-1], "longer": whole + b"x", "empty": b"", "another": bytes(len(whole))}[harm]
        path.write_bytes(data)
    state = checkpoints.recover()
    assert state.checkpoint_id == good.id
    assert list(state.data_integrity["rejected"]) == [made.id]
    assert state.data_integrity["rejected"][made.id]


def test_a_clone_says_that_it_lacks_the_payloads(
    workspace: Workspace, checkpoints: Checkpoints, opened: Opened, git: Callable[..., str], tmp_path: Path
) -> None:
    """In a clone the manifests are listed as not present, and recover explains what to copy (S6)."""
    made = checkpoints.create()
    git(tmp_path, "clone", "-q", str(workspace.root), "copy")
    copy = opened(tmp_path / "copy").states.checkpoints
    assert [(one.id, one.present) for one in copy.list()] == [(made.id, False)]
    with pytest.raises(CheckpointInvalid, match="payloads are not in git"):
        copy.recover()


# -- other branches, and every byte ----------------------------------------------------------------------------------
def test_a_checkpoint_of_another_branch_keeps_its_payload(opened: Opened, git: Callable[..., str]) -> None:
    """Payloads are outside git: one whose manifest is on a branch not checked out is not a leftover to sweep (S6)."""
    workspace = opened()
    git(workspace.root, "branch", "before")
    fill(workspace)
    made = workspace.states.checkpoints.create()
    home = git(workspace.root, "branch", "--show-current").strip()
    git(workspace.root, "checkout", "-q", "before")
    fill(other := opened(workspace.root))
    second = other.states.checkpoints.create()
    git(workspace.root, "checkout", "-q", home)

    assert second.id != made.id
    assert [(one.id, one.problem) for one in opened(workspace.root).states.checkpoints.verify()] == [(made.id, "")]


@pytest.mark.parametrize("name", [MANIFEST, PAYLOAD])
def test_the_integrity_check_reads_checkpoints(workspace: Workspace, checkpoints: Checkpoints, name: str) -> None:
    """One byte changed in a manifest or a payload is a problem that names the checkpoint; a clone's is none (S6)."""
    made = checkpoints.create()
    assert workspace.checker.check(integrity=True) == []

    place = workspace.root / CHECKPOINTS / made.id / name
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    found = workspace.checker.check(integrity=True)
    assert [(one.code, made.id in one.path) for one in found] == [("CheckpointInvalid", True)]

    if name == PAYLOAD:
        place.unlink()
        assert workspace.checker.check(integrity=True) == []


def test_no_checkpoint_is_written_or_swept_through_a_link(
    workspace: Workspace, checkpoints: Checkpoints, tmp_path: Path
) -> None:
    """A link in a repository somebody handed over leads neither a payload out of the tree nor the sweeping (S6)."""
    leftover = tmp_path / "outside" / "ckpt_20200101_0000" / PAYLOAD
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"somebody's")
    link = workspace.root / CHECKPOINTS
    link.symlink_to(tmp_path / "outside")
    with pytest.raises(PathEscape, match="a link"):
        checkpoints.create()
    link.unlink()
    link.mkdir()
    (link / "ckpt_20200101_0001").symlink_to(leftover.parent)
    checkpoints.create()
    assert [path for path in (tmp_path / "outside").rglob("*") if path.is_file()] == [leftover]
