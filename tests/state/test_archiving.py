"""Closed iterations go into an archive, stay readable there, and come back (S5, S15)."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from archived import FIRST, contents, iteration, policy

from memfs.admin.archive_file import (
    FRAME_BYTES,
    ArchiveInput,
    ArchivePacker,
    decode,
    encode,
    index_path,
    payload_path,
)
from memfs.errors import ArchiveInvalid, IterationInvalid
from memfs.fs import io
from memfs.model.state_paths import iteration_of, system_state_path
from memfs.state import archives as archives_module
from memfs.state.archives import ArchiveResult, Archives
from memfs.state.reader import DocumentChange
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def archive(workspace: Workspace, *numbers: int) -> ArchiveResult:
    """Archive iterations, by number."""
    archiver = workspace.states.archiver
    closed = archiver.closed()
    return archiver.archive({number: closed[number] for number in numbers}, archiver.policy().level)


def test_an_archived_iteration_leaves_the_tree_and_reads_back_byte_for_byte(opened: Opened) -> None:
    """Every document of an archived iteration is gone from the tree and is given back exactly (S5)."""
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))
    done = archive(workspace, 1)
    assert (done.archives, done.documents, done.removed, done.reason) == (("2020-03",), 4, 4, "")
    assert contents(workspace, paths) == {}
    assert {path: workspace.states.archives.read(path) for path in paths} == before
    assert not (workspace.root / "ContextMemory/iterations/iteration_001").exists()


def test_index_and_removal_are_two_commits_and_the_payload_is_in_neither(opened: Opened, git: Git) -> None:
    """First the archive's index is committed, then the originals leave the tree; git never holds the payload (S5)."""
    workspace = opened()
    iteration(workspace, 1)
    archive(workspace, 1)
    subjects = git(workspace.root, "log", "--format=%s", "-2").splitlines()
    assert subjects == ["Take iteration 1 out of the tree; the archive has them", "Archive iteration 1 as 2020-03"]
    assert "tar.zst" not in git(workspace.root, "ls-files")
    assert git(workspace.root, "status", "--porcelain") == ""


def test_a_document_is_read_without_unpacking_thousands_of_others() -> None:
    """Small documents, of which the tar's headers weigh most, share a frame no larger than that of others (S5)."""
    folder = f"ContextMemory/iterations/iteration_001/agent_outputs/{'long' * 25}"
    packer = ArchivePacker(1)
    for _ in packer.payload(ArchiveInput(f"{folder}/{number}.json", 2, [b"{}"]) for number in range(5_000)):
        pass
    assert len(packer.members) == 5_000
    assert max(frame.raw for frame in packer.frames) <= FRAME_BYTES


def test_the_same_documents_give_the_same_payload(opened: Opened, tmp_path: Path) -> None:
    """An archive is deterministic: two workspaces with the same documents have the same payload (S5)."""
    payloads = []
    for name in ("one", "two"):
        workspace = opened(tmp_path / name)
        iteration(workspace, 1)
        iteration(workspace, 2)
        archive(workspace, 1, 2)
        payloads.append((workspace.root / payload_path("2020-03")).read_bytes())
    assert payloads[0] == payloads[1]


def test_any_tar_that_knows_zstd_unpacks_a_payload(opened: Opened, tmp_path: Path) -> None:
    """A payload is a plain tar.zst: without memfs, tar gives the documents back where they were (S5)."""
    if not shutil.which("zstd"):
        pytest.skip("tar needs the zstd program")
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))
    archive(workspace, 1)
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", workspace.root / payload_path("2020-03"), "-C", out], check=True)
    assert {path: (out / path).read_bytes() for path in paths} == before


def test_a_clone_without_the_payload_reads_from_history(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Where the payload is not there, as in a clone, the documents come from history (S5)."""
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))
    archive(workspace, 1)
    git(tmp_path, "clone", "--quiet", str(workspace.root), "clone")
    clone = opened(tmp_path / "clone")
    assert {path: clone.states.archives.read(path) for path in paths} == before
    assert list(clone.states.archives.problems()) == []


def test_one_flipped_bit_anywhere_in_the_payload_is_found(opened: Opened) -> None:
    """Verification reads every byte: whichever bit the disk flips, it is named, and reads come from history (S18)."""
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))
    archive(workspace, 1)
    payload = workspace.root / payload_path("2020-03")
    whole = payload.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        payload.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        (problem,) = workspace.states.archives.problems()
        assert "history has every document" in problem.message, place
    workspace.states.archives._decoded.cache_clear()
    assert {path: workspace.states.archives.read(path) for path in paths} == before


def test_neither_payload_nor_history_is_a_clear_error(opened: Opened) -> None:
    """A document that can no longer be given back says so, with what to do (S18)."""
    workspace = opened()
    iteration(workspace, 1)
    archive(workspace, 1)
    index = workspace.states.archives.index("2020-03")
    unknown = replace(index.members[0], blob="0" * 40)
    forged = encode(replace(index, members=(unknown, *index.members[1:])))
    (workspace.root / index_path("2020-03")).write_bytes(forged)
    (workspace.root / payload_path("2020-03")).unlink()
    with pytest.raises(ArchiveInvalid, match="payload is not here") as caught:
        workspace.states.archives.read(index.members[0].path)
    assert caught.value.path == index.members[0].path
    assert "backup" in str(caught.value.hint)
    (problem,) = workspace.states.archives.problems()
    assert f"lost: {index.members[0].path}" in problem.message


def test_a_damaged_index_is_named_and_costs_no_other_archive(opened: Opened) -> None:
    """An index that a person broke is an error with its path; the other archives go on (S18)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    archive(workspace, 1)
    (workspace.root / index_path("2019-01")).write_text('{"format": 1, "name": "../x"}')
    assert [one.path for one in workspace.states.archives.problems()] == [index_path("2019-01")]
    assert workspace.states.archives.read(paths[0])
    with pytest.raises(ArchiveInvalid, match="not a valid index"):
        workspace.states.archives.index("2019-01")


@pytest.mark.parametrize(
    "row",
    ['["../../etc/passwd", 1, "SHA", "", 0, 0, {}]', '["iteration_001/a.json", -1, "SHA", "", 0, 0, {}]',
     '["iteration_001/a.json", 1, "x", "", 0, 0, {}]', '["iteration_001/a.json", 1, "SHA", "", 99, 0, {}]', "[]", "7"],
)  # fmt: skip
def test_a_hostile_index_is_refused(opened: Opened, row: str) -> None:
    """What an index names is checked before it is believed: names, sizes, checksums, frames (S18)."""
    workspace = opened()
    iteration(workspace, 1)
    archive(workspace, 1)
    path = index_path("2020-03")
    values = json.loads((workspace.root / path).read_text())
    values["documents"] = [json.loads(row.replace("SHA", "a" * 64))]
    with pytest.raises(ArchiveInvalid) as refused:
        decode(json.dumps(values).encode(), path)
    assert "bytes are not those" not in refused.value.message


def test_a_flipped_bit_anywhere_in_an_index_is_found(opened: Opened) -> None:
    """An index says of itself that it is whole, so that no damaged name or figure is taken for found (S18)."""
    workspace = opened()
    iteration(workspace, 1)
    archive(workspace, 1)
    path = index_path("2020-03")
    data = (workspace.root / path).read_bytes()
    decode(data, path)
    for place in range(0, len(data), 7):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(ArchiveInvalid, match="not a valid index"):
            decode(flipped, path)


def test_an_index_reads_back_as_it_was_written(opened: Opened) -> None:
    """The index's form loses nothing."""
    workspace = opened()
    iteration(workspace, 1)
    archive(workspace, 1)
    index = workspace.states.archives.index("2020-03")
    assert decode(encode(index), index_path("2020-03")) == index


def test_unpacking_brings_an_iteration_back_and_it_rests_for_a_while(opened: Opened) -> None:
    """Unpacked on demand, an iteration is back byte for byte, and is not due again before its time (S5)."""
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))
    archive(workspace, 1)
    done = workspace.states.archiver.unpack(1)
    assert (done.documents, done.kept) == (4, ())
    assert contents(workspace, paths) == before
    assert workspace.states.archiver.due().iterations == {}
    later = workspace.parts.clock() + timedelta(days=31)
    assert set(workspace.states.archiver.due(later).iterations) == {1}


def test_an_unpacked_iteration_is_archived_again(opened: Opened) -> None:
    """An iteration that went back into the tree and was changed is archived again; the newest version counts (S5)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    archive(workspace, 1)
    workspace.states.archiver.unpack(1)
    changed = next(path for path in paths if path.endswith("task-0.json"))
    values = json.loads((workspace.root / changed).read_text())
    values["results"]["primary_output"] = "ranked again"
    workspace.states.files.write([DocumentChange(changed, values)], "Rank again")
    done = archive(workspace, 1)
    assert (done.archives, done.documents, done.removed) == (("2020-03_2",), 4, 4)
    assert b"ranked again" in workspace.states.archives.read(changed)
    assert workspace.states.archives.period_of(changed) == "2020-03_2"
    assert workspace.states.archives.period_of(paths[-1]) == "2020-03_2"


def test_a_new_archive_comes_after_all_others_of_its_month(opened: Opened) -> None:
    """Where an older one was deleted its name is not used again: the newest archive of a document counts (S15)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    changed = next(path for path in paths if path.endswith("task-0.json"))
    archive(workspace, 1)
    for text in ("second", "third"):
        workspace.states.archiver.unpack(1)
        values = json.loads((workspace.root / changed).read_text())
        values["results"]["primary_output"] = text
        workspace.states.files.write([DocumentChange(changed, values)], "Change")
        if text == "third":
            workspace.states.archiver.delete("2020-03", "not needed")
        archive(workspace, 1)
    assert list(workspace.states.archives.stamp()) == ["2020-03_2", "2020-03_3"]
    assert b"third" in workspace.states.archives.read(changed)


def test_an_archive_that_rotted_is_not_relied_on(opened: Opened) -> None:
    """Originals stay until an archive holds them that reads back now, though an older one once did (S15, S18)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    archive(workspace, 1)
    workspace.states.archiver.unpack(1)
    before = contents(workspace, paths)
    payload = workspace.root / payload_path("2020-03")
    payload.write_bytes(bytes(len(payload.read_bytes())))
    workspace.states.archives._decoded.cache_clear()

    done = archive(workspace, 1)

    assert (done.archives, done.documents, done.removed) == (("2020-03_2",), 4, 4)
    assert [one.path for one in workspace.states.archives.problems()] == [payload_path("2020-03")]
    assert {path: workspace.states.archives.read(path) for path in paths} == before


def test_an_archive_that_does_not_read_back_costs_no_original(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that changes what is written to it is found out before anything leaves the tree (S15)."""
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))
    write_all = io.write_all

    def write_badly(fd: int, data: bytes, path: object = None) -> None:
        write_all(fd, data[:-1] + bytes([data[-1] ^ 1]) if data and "tar.zst" in str(path) else data, path)

    monkeypatch.setattr(io, "write_all", write_badly)
    with pytest.raises(ArchiveInvalid, match="right after it was written"):
        archive(workspace, 1)
    assert contents(workspace, paths) == before
    assert workspace.states.archives.periods() == []


def test_unpacking_leaves_newer_files_alone(opened: Opened) -> None:
    """What is in the tree when an iteration is unpacked is newer, and stays (S5)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    archive(workspace, 1)
    newer = workspace.root / paths[-1]
    newer.parent.mkdir(parents=True, exist_ok=True)
    newer.write_text('{"iteration": 1, "status": "open", "opened": "2020-03-01T00:00:00Z"}\n')
    done = workspace.states.archiver.unpack(1)
    assert done.kept == (paths[-1],)
    assert '"open"' in newer.read_text()


def test_unpacking_what_is_not_archived_names_what_is(opened: Opened) -> None:
    """An iteration that no archive holds is an error that says which are archived."""
    workspace = opened()
    iteration(workspace, 2)
    archive(workspace, 2)
    with pytest.raises(IterationInvalid, match="no archive holds iteration 7") as caught:
        workspace.states.archiver.unpack(7)
    assert "iteration 2" in str(caught.value.hint)


def test_open_iterations_are_not_archived(opened: Opened) -> None:
    """Only closed iterations go (S5)."""
    workspace = opened()
    iteration(workspace, 1, status="open")
    assert workspace.states.archiver.due().iterations == {}


def test_an_invalid_document_stays_in_the_tree_and_is_named(opened: Opened) -> None:
    """A document that a person broke is not archived in its broken form; the others are (S5, S18)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    workspace.states.files.commit_now()
    broken = next(path for path in paths if path.endswith("task-1.json"))
    (workspace.root / broken).write_text('{"agent_type": ')
    done = archive(workspace, 1)
    assert (done.documents, done.removed, list(done.left)) == (3, 3, [broken])
    assert list(contents(workspace, paths)) == [broken]


def test_a_hand_edit_made_after_packing_is_not_lost(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone who edits a document between its packing and its removal keeps the edit in the tree (S5)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    edited = workspace.root / paths[0]
    archiver = workspace.states.archiver
    remove = archiver._remove

    def edit_first(*words: object) -> int:
        edited.write_text(edited.read_text().replace("ranked", "RANKED"))
        return remove(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(archiver, "_remove", edit_first)
    done = archive(workspace, 1)
    assert (done.removed, list(done.left)) == (3, [paths[0]])
    assert "RANKED" in edited.read_text()


def test_a_persons_own_files_stay(opened: Opened) -> None:
    """What a person keeps beside the documents is not memfs's to move."""
    workspace = opened()
    iteration(workspace, 1)
    notes = workspace.root / "ContextMemory/iterations/iteration_001/notes.md"
    notes.write_text("mine")
    archive(workspace, 1)
    assert notes.read_text() == "mine"


class Killed(BaseException):
    """Ends a run as kill -9 does: nothing after it is done."""


def test_killed_at_any_operation_nothing_is_lost_and_the_next_run_goes_on(
    opened: Opened, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """Stopped before any of its disk operations, archiving loses nothing, and is finished by the next run (S5)."""
    first = opened(tmp_path / "first")
    policy(first, archive={"enabled": False})
    before = contents(first, paths := iteration(first, 1, outputs=2))
    first.states.files.commit_now()
    first.close()
    points = 0
    step = 0
    while True:
        root = tmp_path / f"copy{step}"
        shutil.copytree(first.root, root, symlinks=True)
        count = 0

        def stop(name: str, path: str, limit: int = step) -> None:
            nonlocal count
            count += name not in ("read", "stat", "list", "open", "scan")
            if count > limit:
                raise Killed

        workspace = opened(root)
        io.set_hook(stop)
        try:
            archive(workspace, 1)
            whole = True
        except Killed:
            whole = False
        finally:
            io.set_hook(None)
        again = opened(root)
        found = {path: _either(again, path) for path in paths}
        assert found == before, f"after {step} operations"
        again.states.archiver.run()
        assert {path: again.states.archives.read(path) for path in paths} == before
        assert not [path for path in contents(again, paths) if iteration_of(path) == 1]
        points += 1
        if whole:
            break
        step += scale(71, 1)
    assert points > 3


def _either(workspace: Workspace, path: str) -> bytes:
    file = workspace.root / path
    return file.read_bytes() if file.exists() else workspace.states.archives.read(path)


def test_git_being_busy_keeps_the_originals(opened: Opened) -> None:
    """While git is busy nothing is archived; the next run does it (S5)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    workspace.states.files.commit_now()
    marker = workspace.root / ".git/MERGE_HEAD"
    marker.write_text(workspace.repository.head().commit or "")
    done = archive(workspace, 1)
    assert (done.archives, done.removed) == ((), 0)
    assert "merge" in done.reason
    assert len(contents(workspace, paths)) == 4
    marker.unlink()
    done = archive(workspace, 1)
    assert (len(done.archives), done.removed) == (1, 4)


def test_no_room_for_the_payload_changes_nothing(opened: Opened) -> None:
    """A full disk while packing is an error; the originals are there and no unfinished file is left (S17)."""
    workspace = opened()
    before = contents(workspace, paths := iteration(workspace, 1))

    def full(name: str, path: str) -> None:
        if name == "write" and path.endswith(".tar.zst"):
            raise OSError(28, "No space left on device")

    io.set_hook(full)
    try:
        with pytest.raises(io.StorageFull):
            archive(workspace, 1)
    finally:
        io.set_hook(None)
    assert contents(workspace, paths) == before
    assert list((workspace.root / "ContextMemory/archive").iterdir()) == []


def test_archives_of_other_months_are_apart(opened: Opened) -> None:
    """Iterations go into the archive of the month in which they were closed (S5)."""
    workspace = opened()
    for number in (1, 2, 40):
        iteration(workspace, number, outputs=1)
    done = archive(workspace, 1, 2, 40)
    assert done.archives == ("2020-03", "2020-04")
    assert {one.name: one.iterations for one in workspace.states.archives.periods()} == {
        "2020-03": (1, 2),
        "2020-04": (40,),
    }
    assert FIRST.month == 3
    assert workspace.states.archives.period_of(system_state_path(40)) == "2020-04"


def test_sidecars_go_along_and_come_back(opened: Opened) -> None:
    """A value too large for its document is archived with it and unpacked with it, though git never had it (S5)."""
    workspace = opened()
    paths = iteration(workspace, 1)
    sidecar = workspace.root / f"{paths[0]}.0123456789abcdef.zst"
    sidecar.write_bytes(data := bytes(range(256)) * 3000)
    done = archive(workspace, 1)
    assert (done.documents, done.removed) == (5, 5)
    assert not sidecar.exists()
    assert workspace.states.archives.read(f"{paths[0]}.0123456789abcdef.zst") == data
    workspace.states.archiver.unpack(1)
    assert sidecar.read_bytes() == data


KILLED = """
import os, signal, sys
from memfs.fs import io
from memfs.workspace import open_workspace
workspace = open_workspace(sys.argv[1], watch=False, settings={"index.engine": "memory", "history.commit": "manual"})
left = int(sys.argv[2])
def stop(name, path):
    global left
    left -= name in ("write", "rename", "exchange", "unlink")
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
io.set_hook(stop)
workspace.states.archiver.run()
"""


@pytest.mark.parametrize("operations", [2, 9, 40])
def test_kill_9_while_archiving_loses_nothing(opened: Opened, operations: int, forked: Path) -> None:
    """After kill -9 each document is in the tree or in a verified archive, and the next run finishes (S5, S18)."""
    workspace = opened()
    policy(workspace, archive={"enabled": False})
    before = contents(workspace, paths := iteration(workspace, 1))
    workspace.close()
    ended = subprocess.run([str(forked), "-c", KILLED, str(workspace.root), str(operations)], check=False)
    assert ended.returncode in (-signal.SIGKILL, 0)
    again = opened(workspace.root)
    assert {path: _either(again, path) for path in paths} == before
    again.states.archiver.run()
    assert {path: again.states.archives.read(path) for path in paths} == before
    assert contents(again, paths) == {}


def test_an_archive_of_another_branch_keeps_its_payload(opened: Opened, git: Git) -> None:
    """Payloads are outside git: no other branch's archive takes the place of one, nor its name (S5)."""
    workspace = opened()
    git(workspace.root, "branch", "before")
    iteration(workspace, 1)
    archive(workspace, 1)
    home = git(workspace.root, "branch", "--show-current").strip()
    git(workspace.root, "checkout", "-q", "before")
    other = opened(workspace.root)
    iteration(other, 2)
    assert archive(other, 2).archives == ("2020-03_2",)
    git(workspace.root, "checkout", "-q", home)

    archives = opened(workspace.root).states.archives
    assert list(archives.problems()) == []
    assert [(one.name, one.present) for one in archives.periods()] == [("2020-03", True)]


def test_what_a_process_keeps_of_archives_is_bounded(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many documents are archived, a process holds what is known of some; all are found all the same (S15)."""
    monkeypatch.setattr(archives_module, "_MOST_INDEXES", 2)
    workspace = opened()
    paths = {number: iteration(workspace, number) for number in range(1, 7)}
    for number in paths:
        archive(workspace, number)
    archives = Archives(workspace.parts)

    for _ in range(2):
        assert sorted(archives.iterations()) == sorted(paths)
        assert all(archives.period_of(path) for of in paths.values() for path in of)
        assert archives._decoded.cache_info().currsize == 2
