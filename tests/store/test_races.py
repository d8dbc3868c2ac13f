"""What happens between two steps: other writers, people and failing git in the middle of ours."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.faults import Fault, Stopped, injected
from kit.patience import until
from memfs import MemoryItem, Query
from memfs.errors import Conflict, ContentError, IdExists, StorageIO, StorageReadOnly
from memfs.fs.atomic_replace import holding_name
from memfs.fs.journal import Journal
from memfs.store import write
from memfs.store.store import retry_on_conflict
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def remember(workspace: Workspace, name: str, text: str = "x", kind: str = "knowledge") -> str:
    """Store an item and return its path."""
    return workspace.store.put(MemoryItem(text, kind, id=name)).path


def found(workspace: Workspace, words: str) -> list[str]:
    """Contents of the hits for some words."""
    return [hit.item.content for hit in workspace.recaller.search(words).hits]


def test_a_write_on_another_branch_is_not_taken_out_with_the_first(opened: Opened, git: Git) -> None:
    """The same file written on two branches is committed to both."""
    workspace = opened(history__commit="session")
    git(workspace.root, "branch", "other")
    remember(workspace, "p", "shared")
    git(workspace.root, "checkout", "-q", "other")
    remember(workspace, "p", "between")
    path = remember(workspace, "p", "shared")
    assert workspace.store.flush().waiting == 0
    for branch in ("main", "other"):
        assert "shared" in git(workspace.root, "show", f"{branch}:{path}")
    assert found(workspace, "shared") == ["shared"]


def test_an_identical_write_on_another_branch_is_recorded_too(opened: Opened, git: Git) -> None:
    """Storing what is there already counts for the branch that is checked out now."""
    workspace = opened(history__commit="session")
    git(workspace.root, "branch", "other")
    remember(workspace, "p", "same")
    git(workspace.root, "checkout", "-q", "other")
    item = workspace.store.get("p")
    assert item is not None
    path = workspace.store.put(item).path
    workspace.store.flush()
    for branch in ("main", "other"):
        assert "same" in git(workspace.root, "show", f"{branch}:{path}")


def test_x_y_x_within_a_second_ends_as_x(opened: Opened, git: Git) -> None:
    """A repeated write is not a repeated commit."""
    workspace = opened(history__commit="each")
    for text in ("X", "Y", "X"):
        path = remember(workspace, "p", text)
    assert "content: X" in git(workspace.root, "show", f"HEAD:{path}")
    assert git(workspace.root, "status", "--porcelain") == ""


def test_another_handles_new_item_is_known_before_writing(opened: Opened) -> None:
    """Create-only, replace, retype and delete see what somebody else stored a moment ago."""
    one = opened()
    two = opened(one.root)
    assert one.store.get("x") is None
    remember(two, "x", "theirs")
    with pytest.raises(IdExists):
        one.store.put(MemoryItem("mine", "knowledge", id="X"), expected="")
    with pytest.raises(IdExists):
        one.store.put(MemoryItem("mine", "episodic", id="x"), expected="")
    remember(two, "y", "theirs")
    assert one.store.put(MemoryItem("mine", "knowledge", id="y")).content == "mine"
    remember(two, "z", "theirs")
    removed = one.store.delete("z")
    assert removed is not None
    assert removed.content == "theirs"
    assert two.store.problems() == []


@pytest.mark.parametrize(("theirs", "refused"), [("other", False), ("mine", True)])
def test_a_batch_is_outdated_only_by_what_concerns_it(opened: Opened, theirs: str, refused: bool) -> None:
    """Others may write and commit all the while that a long batch is planned; that makes none of it outdated, unless
    one of its ids is taken, in whatever folder.
    """
    writer, other = opened(), opened()
    remember(writer, "first")
    with pytest.raises(Conflict) if refused else contextlib.nullcontext(), writer.store.batch("many at once") as batch:
        batch.put(MemoryItem("x", "knowledge", id="mine"))
        for text in ("a", "b"):
            remember(other, theirs, text, "semantic")
            other.store.flush()
    assert (writer.store.get("mine").type == "semantic") == refused  # type: ignore[union-attr]


def test_a_batch_refuses_one_id_in_two_types(opened: Opened) -> None:
    """A batch cannot make twins."""
    workspace = opened()
    with pytest.raises(Conflict), workspace.store.batch("Twins") as batch:  # noqa: PT012
        batch.put(MemoryItem("1", "knowledge", id="a"))
        batch.put(MemoryItem("2", "episodic", id="A"))
    assert workspace.store.select(Query()) == []


def test_a_hand_edit_found_before_an_agents_write_is_not_committed_over_it(opened: Opened, git: Git) -> None:
    """What a person had written is not recorded after what replaced it."""
    workspace = opened()
    path = remember(workspace, "p", "first")
    workspace.store.flush()
    (workspace.root / path).write_text("content: by hand\n")
    edits = workspace.store.edit_finder.find(include_staged=False).plans
    remember(workspace, "p", "agent")
    assert workspace.store.writing.record_edits(edits, "Edit p by hand") == []
    workspace.store.flush()
    assert "content: agent" in git(workspace.root, "show", f"HEAD:{path}")
    assert git(workspace.root, "status", "--porcelain") == ""


def test_a_delete_beside_a_flush_is_not_taken_for_a_persons(opened: Opened, git: Git) -> None:
    """While one thread commits and another stores and deletes, history is whole and nothing is set aside."""
    workspace = opened(history__commit="session")
    stop = threading.Event()

    def flush() -> None:
        while not stop.is_set():
            workspace.store.flush(adopt=False)

    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        for number in range(40):
            remember(workspace, f"n{number}", f"n{number}")
            workspace.store.delete(f"n{number}")
    finally:
        stop.set()
        flusher.join()
    workspace.store.flush(adopt=False)
    assert workspace.recovered.list() == []
    subjects = git(workspace.root, "log", "--format=%B")
    assert all(f"Remember: n{number}\n" in subjects for number in range(40))
    assert git(workspace.root, "status", "--porcelain") == ""


def test_threads_that_store_one_item_leave_the_last_findable(opened: Opened) -> None:
    """The index learns in the order of the writes."""
    workspace = opened()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [
            threading.Thread(target=lambda number=number: remember(workspace, "one", f"version{number}"))
            for number in range(24)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    item = workspace.store.get("one")
    assert item is not None
    assert [candidate.id for candidate in workspace.parts.index.search(Query(text=item.content))] == ["one"]


def test_a_sparse_checkout_removes_nothing(opened: Opened, git: Git) -> None:
    """Files that git leaves out of the tree by the person's wish are not committed as removed."""
    workspace = opened()
    path = remember(workspace, "a")
    workspace.store.flush()
    git(workspace.root, "update-index", "--skip-worktree", path)
    (workspace.root / path).unlink()
    assert workspace.store.flush(adopt=True).adopted == ()
    assert path in git(workspace.root, "ls-tree", "-r", "--name-only", "HEAD")


def test_a_fresh_removal_rests_before_it_is_adopted(opened: Opened) -> None:
    """A file that was removed a moment ago may be about to come back."""
    workspace = opened()
    path = remember(workspace, "a")
    workspace.store.flush()
    (workspace.root / path).unlink()
    assert workspace.store.flush(adopt=True, quiet_seconds=3600).adopted == ()
    assert workspace.store.flush(adopt=True).adopted == (path,)


def test_rollback_does_not_overwrite_an_invalid_edit(opened: Opened) -> None:
    """A person's unfinished work counts as their work."""
    workspace = opened()
    path = remember(workspace, "a", "1")
    (first,) = workspace.store.flush().commits
    remember(workspace, "a", "2")
    workspace.store.flush()
    (workspace.root / path).write_text("content: [unfinished\n")
    with pytest.raises(Conflict):
        workspace.history.restore(first, "a")
    assert (workspace.root / path).read_text() == "content: [unfinished\n"


def test_a_batch_may_name_the_edited_bytes_like_a_put(opened: Opened) -> None:
    """``expected`` means the same in a batch (``leave``)."""
    workspace = opened(history__adopt="leave")
    path = remember(workspace, "a", "1")
    workspace.store.flush()
    (workspace.root / path).write_text("content: by hand\n")
    read = workspace.store.get("a")
    assert read is not None
    with workspace.store.batch("Replace on purpose") as batch:
        batch.put(read.replace(content="2"), expected=read.sha256)
    assert (workspace.store.get("a") or read).content == "2"


def test_what_is_set_aside_keeps_its_place_whatever_the_name(opened: Opened, git: Git) -> None:
    """Long and foreign names come back where they were."""
    workspace = opened()
    folder = "ContextMemory/memories/knowledge/" + "/".join(["langer-Ordner-äöü%2F" * 4] * 3)
    plans = workspace.store.plan_restore({f"{folder}/item.yaml": b"content: x\n"})
    workspace.store.carry_out(plans, "Deep")
    (workspace.root / folder / "item.yaml").unlink()
    assert [row.path for row in workspace.recovered.list()] == [f"{folder}/item.yaml"]
    workspace.store.flush()
    assert workspace.recovered.restore("item") == f"{folder}/item.yaml"
    assert (workspace.root / folder / "item.yaml").read_bytes() == b"content: x\n"


def test_deleting_the_older_twin_frees_the_id_for_the_younger(opened: Opened) -> None:
    """The remaining file is found at once."""
    workspace = opened()
    for folder, text, created in (("y", "older", "2026-01-01"), ("x", "younger", "2026-02-01")):
        path = workspace.root / f"ContextMemory/memories/semantic/{folder}/twin.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(f"content: {text}\ncreated: '{created}'\n")
    workspace.store.refresh()
    workspace.store.delete("twin")
    assert found(workspace, "younger") == ["younger"]
    assert workspace.store.problems() == []


def test_a_kind_that_is_taken_away_takes_its_items_out_of_recall(opened: Opened) -> None:
    """A type removed from kinds.yaml leaves problems, not hits that cannot be loaded."""
    first = opened()
    kinds = first.root / "ContextMemory/configuration/kinds.yaml"
    kinds.write_text("kinds:\n  recipe:\n    layer: semantic\n    description: How to cook.\n")
    with open_workspace(first.root, watch=False, settings={"history.commit": "manual"}) as workspace:
        remember(workspace, "soup", "boil onions", "recipe")
        workspace.store.fold()
    kinds.unlink()
    with open_workspace(first.root, watch=False, settings={"history.commit": "manual"}) as workspace:
        recalled = workspace.recaller.search("onions")
        assert (recalled.hits, recalled.partial) == ((), False)
        assert [problem.code for problem in workspace.store.problems()] == ["ContentError"]


def test_writes_go_on_when_git_cannot_be_read(opened: Opened) -> None:
    """An empty ref file, as a power cut leaves it, stops commits, not memory."""
    workspace = opened()
    remember(workspace, "a", "1")
    workspace.store.flush()
    ref = workspace.root / ".git/refs/heads/main"
    good = ref.read_bytes()
    ref.write_bytes(b"")
    remember(workspace, "a", "2")
    remember(workspace, "b", "1")
    assert workspace.store.flush().reason != ""
    assert sorted(found(workspace, "1 2")) == ["1", "2"]
    ref.write_bytes(good)
    assert workspace.store.flush().waiting == 0


def test_an_unfinished_write_behind_a_link_does_not_stop_opening(opened: Opened, tmp_path: Path) -> None:
    """What cannot be redone is set aside, and the workspace opens."""
    workspace = opened()
    path = remember(workspace, "a", "1")
    journal = Journal(workspace.repository.state / "journal")
    journal.catch_up()
    (operation,) = (entry for entry in journal.operations() if entry.message == "Remember: 1")
    journal.close()
    workspace.parts.journal.applied.discard(operation.id)
    workspace.parts.journal._renew()
    (workspace.root / path).unlink()
    (workspace.root / path).symlink_to(tmp_path / "elsewhere")
    fresh = opened(workspace.root)
    assert [problem.code for problem in fresh.store.notes] == ["KeptPersonsChange"]
    assert not (tmp_path / "elsewhere").exists()


def test_a_files_time_beyond_all_calendars_is_borne(opened: Opened) -> None:
    """A file from the year 60000 is an item like any other."""
    workspace = opened()
    path = workspace.root / "ContextMemory/memories/semantic/far.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("content: far future\n")
    try:
        os.utime(path, ns=(0, 1_831_000_000_000_000_000_000 // 1000))
    except OSError:
        pytest.skip("this file system has no such times")
    assert found(workspace, "future") == ["far future"]


def test_a_read_only_workspace_can_be_read(opened: Opened, tmp_path: Path) -> None:
    """Recall needs no right to write into the repository's folder."""
    workspace = opened()
    remember(workspace, "a", "readable")
    journal = workspace.repository.state / "journal"
    journal.chmod(0o400)
    assert found(opened(workspace.root), "readable") == ["readable"]


def test_closing_with_a_full_cache_disk_releases_everything(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that cannot be written is not worth an error at the end."""
    from memfs.errors import StorageFull
    from memfs.search.search_index import SearchIndex

    def full(self: SearchIndex, living: object) -> bool:
        raise StorageFull("no space")

    monkeypatch.setattr(SearchIndex, "fold", full)
    workspace = open_workspace(opened().root, watch=False, settings={"history.commit": "manual"})
    remember(workspace, "a", "1")
    assert found(workspace, "1") == ["1"]
    workspace.usage.flush()
    before = held_below(workspace.root)
    workspace.close()
    assert before == held_below(workspace.root) == [] or len(held_below(workspace.root)) < len(before)


@pytest.mark.parametrize("put", [os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_in_the_place_of_the_indexs_lock_is_no_reason_to_refuse_anything(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
) -> None:
    """The index is a cache: what was asked or written is answered all the same."""
    monkeypatch.setattr("memfs.store.reader._FOLD_AT", 0)
    root, settings = opened().root, {"index.engine": "sqlite", "history.commit": "manual"}
    with open_workspace(root, watch=False, settings=settings) as workspace:
        remember(workspace, "a", "1")
        workspace.store.fold()
        lock = workspace.parts.index.folder / "index.lock"
    lock.unlink()
    put(lock)
    with open_workspace(root, watch=False, settings=settings) as workspace:
        remember(workspace, "b", "2")
        workspace.store.maintain()
        assert found(workspace, "2") == ["2"]


def held_below(root: Path) -> list[str]:
    """The files below a folder that this process has open, where listed; other tests' threads have others."""
    named = []
    for fd in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            named.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(name for name in named if name.startswith(str(root)))


def test_a_failed_open_leaves_no_descriptor(opened: Opened) -> None:
    """Opening a workspace with bad settings again and again does not use up descriptors."""
    workspace = opened()
    kinds = workspace.root / "ContextMemory/configuration/kinds.yaml"
    kinds.write_text("kinds: [\n")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        with pytest.raises(ContentError, match="kinds"):
            open_workspace(workspace.root, watch=False)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after < before + 5  # one each time would be five; a thread of an earlier test may hold one of its own


def test_a_proof_counts_invalid_files_by_what_they_hold(opened: Opened, git: Git) -> None:
    """An uncommitted invalid edit is dirty; a committed one is not."""
    workspace = opened()
    path = remember(workspace, "a", "1")
    workspace.store.flush()
    assert workspace.store.freshness().dirty == 0
    (workspace.root / path).write_text("content: [\n")
    workspace.store.refresh()
    assert workspace.store.freshness().dirty == 1
    git(workspace.root, "commit", "-qam", "broken")
    assert workspace.store.freshness().dirty == 0


def test_contextmemory_replaced_under_a_watcher_is_noticed(opened: Opened, tmp_path: Path) -> None:
    """When the watched folder is another one now, recall scans, and the new one is watched."""
    with open_workspace(opened().root, watch=True, settings={"history.commit": "manual"}) as workspace:
        remember(workspace, "a", "apple")
        memory = workspace.root / "ContextMemory"
        shutil.copytree(memory, tmp_path / "copy")
        shutil.rmtree(memory)
        shutil.copytree(tmp_path / "copy", memory)
        path = memory / "memories/semantic/b.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content: banana\n")
        assert found(workspace, "banana") == ["banana"]
        path.write_text("content: cherry\n")
        assert until(lambda: found(workspace, "cherry") == ["cherry"])
        assert workspace.store.watching == "on"  # it watches the new one by itself


def test_a_long_lived_writer_folds_the_index_behind_the_scenes(opened: Opened) -> None:
    """The overlay of a process that never closes does not grow without bound."""
    root = opened().root
    settings = {"history.interval_seconds": 0.05, "index.engine": "sqlite"}
    with open_workspace(root, watch=False, settings=settings) as workspace:
        with workspace.store.batch("Many") as batch:
            for number in range(600):
                batch.put(MemoryItem(f"number {number}", "knowledge", id=f"n{number}"))
        assert until(lambda: workspace.parts.index.overlay_size() <= 500)
        assert found(workspace, "599") == ["number 599"]


def test_a_folder_that_cannot_be_entered_hides_nothing_and_removes_nothing(opened: Opened, tmp_path: Path) -> None:
    """A link in place of a kind's folder is a problem; its items are neither forgotten nor committed as removed."""
    workspace = opened()
    path = remember(workspace, "a", "apple")
    workspace.store.flush()
    folder = (workspace.root / path).parent
    shutil.move(folder, tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert workspace.store.flush(adopt=True).adopted == ()
    workspace.store.refresh()
    assert [problem.code for problem in workspace.store.problems()] == ["NotRegularFile"]
    folder.unlink()
    shutil.move(tmp_path / "moved", folder)
    assert found(workspace, "apple") == ["apple"]
    assert workspace.store.problems() == []


def test_every_version_that_waits_for_a_removed_file_is_kept(opened: Opened) -> None:
    """Two acknowledged versions of a file that somebody removed are both recoverable."""
    workspace = opened()
    remember(workspace, "x", "v1")
    path = remember(workspace, "x", "v2")
    (workspace.root / path).unlink()
    workspace.store.flush()
    folder = workspace.repository.state / "recovered"
    kept = b"".join(entry.read_bytes() for entry in folder.iterdir())
    assert b"content: v1" in kept
    assert b"content: v2" in kept


def test_a_save_between_check_and_rename_is_not_overwritten(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's save that comes at the last moment is found, recorded, and only then replaced."""
    workspace = opened()
    path = remember(workspace, "x", "v1")
    workspace.store.flush()
    from memfs.fs import io

    def save(name: str, where: str) -> None:
        if name == "fsync" and where.endswith("x.yaml"):
            io.set_hook(None)
            (workspace.root / path).write_text("content: saved by hand\n")

    io.set_hook(save)
    try:
        remember(workspace, "x", "v2")
    finally:
        io.set_hook(None)
    workspace.store.flush()
    item = workspace.store.get("x")
    assert item is not None
    assert item.content == "v2"
    assert any("saved by hand" in workspace.history.diff(f"HEAD~{age}", "HEAD") for age in (1, 2))


@pytest.mark.parametrize("change", ["update", "delete"])
def test_a_save_at_the_very_last_call_is_kept(opened: Opened, git: Git, change: str) -> None:
    """Even a save after the last look, right before the file loses its name, ends up in history (decision 0011)."""
    workspace = opened()
    path = remember(workspace, "x", "v1")
    workspace.store.flush()
    from memfs.fs import io

    def save(name: str, where: str) -> None:
        if name in ("exchange", "rename") and where.endswith(("x.yaml", ".tmp")):
            io.set_hook(None)
            (workspace.root / path).write_text("content: saved by hand\n")

    io.set_hook(save)
    try:
        if change == "update":
            remember(workspace, "x", "v2")
        else:
            workspace.store.delete("x")
    finally:
        io.set_hook(None)
    workspace.store.flush()
    assert "saved by hand" in git(workspace.root, "log", "-p", "--", path)
    item = workspace.store.get("x")
    assert (item.content if item else None) == {"update": "v2", "delete": None}[change]
    assert not list(workspace.root.rglob("*.tmp"))


@pytest.mark.parametrize("change", ["update", "delete"])
def test_21_a_save_displaced_by_a_killed_write_can_be_recovered(opened: Opened, change: str) -> None:
    """Killed after a save lost its name and before it got it back: the next opening keeps it (faults row 21)."""
    workspace = opened()
    path = remember(workspace, "x", "v1")
    workspace.store.flush()
    from memfs.fs import io

    saved = b"content: saved by hand\n"
    steps: list[str] = []

    def save(name: str, where: str) -> None:
        last = name == ("exchange" if change == "update" else "rename") and where.endswith(("x.yaml", ".tmp"))
        if last and not steps:
            (workspace.root / path).write_bytes(saved)
            steps.append("saved")
        elif steps:
            raise Stopped(where)

    io.set_hook(save)
    try:
        with pytest.raises(Stopped):
            remember(workspace, "x", "v2") if change == "update" else workspace.store.delete("x")
    finally:
        io.set_hook(None)
    again = opened()
    assert [note.code for note in again.store.notes] == ["KeptPersonsChange"]
    assert not list(workspace.root.rglob("*.tmp"))
    (row,) = again.recovered.list()
    assert (again.recovered.restore(row.name), (workspace.root / path).read_bytes()) == (path, saved)


@pytest.mark.parametrize("committed", [True, False])
def test_23_an_old_version_that_a_power_cut_brings_back_is_nobodys_save(opened: Opened, committed: bool) -> None:
    """What an earlier write had removed, and a power cut brings back, is neither set aside nor left (faults row 23)."""
    workspace = opened()
    path = remember(workspace, "x", "v1")
    old = (workspace.root / path).read_bytes()
    remember(workspace, "x", "v2")
    if committed:
        workspace.store.flush()
    from memfs.fs import io

    def stop(name: str, where: str) -> None:
        if name == "exchange":
            raise Stopped(where)

    io.set_hook(stop)
    try:
        with pytest.raises(Stopped):
            remember(workspace, "x", "v3")
    finally:
        io.set_hook(None)
    (workspace.root / path).with_name(holding_name()).write_bytes(old)
    again = opened()
    assert (again.store.notes, again.recovered.list()) == ([], [])
    assert not list(workspace.root.rglob("*.tmp"))


def test_23_what_a_power_cut_tore_before_it_was_durable_is_nobodys_save(opened: Opened) -> None:
    """A file that never got a name can have its length and hold zeros: nothing is kept of it (faults row 23)."""
    workspace = opened()
    path = remember(workspace, "x", "v1")
    with injected(Fault()) as counted:
        remember(workspace, "x", "v2")
    synced = next(number for number, step in enumerate(counted.seen, 1) if step == f"fsync {path}")
    with injected(Fault(at=synced)), pytest.raises(Stopped):
        remember(workspace, "x", "v3")
    for torn in (workspace.root / path).parent.glob(".memfs-*"):
        torn.write_bytes(bytes(len(torn.read_bytes())))
    again = opened()
    assert (again.store.notes, again.recovered.list()) == ([], [])
    assert (item := again.store.get("x")) is not None
    assert item.content == "v3"
    assert not list(workspace.root.rglob("*.tmp"))


def remember_four(workspace: Workspace, text: str) -> None:
    """Store four items at once."""
    with workspace.store.batch("four") as batch:
        for number in range(4):
            batch.put(MemoryItem(text, "knowledge", id=f"x{number}"))


def test_23_many_files_get_their_names_when_all_their_contents_are_durable(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between the first name and the last leaves no file without its old content and its new one."""
    workspace = opened()
    monkeypatch.setattr(write, "_SYNC_ONCE_ABOVE", 3)
    for text in ("v1", "v2"):
        with injected(Fault()) as counted:
            remember_four(workspace, text)
        naming = "link" if text == "v1" else "exchange"
        steps = [step.split(" ")[0] for step in counted.seen if step.endswith(".yaml") or step.startswith("sync ")]
        found = [step for step in steps if step in ("write", "sync", naming)]
        assert found == [*["write"] * 4, "sync", *[naming] * 4, "sync"]


def test_36_many_files_are_written_though_somebody_cleaned_their_folder(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited for its name may be gone by ``git clean -fdx``; the write is whole all the same (faults row 36)."""
    workspace = opened()
    monkeypatch.setattr(write, "_SYNC_ONCE_ABOVE", 3)

    def clean(folder: str) -> None:
        for waiting in Path(folder).glob(".memfs-*"):
            waiting.unlink()

    monkeypatch.setattr("memfs.fs.io.sync", clean)
    remember_four(workspace, "v1")
    assert [item.content for item in workspace.store.select(Query())] == ["v1"] * 4


@pytest.mark.parametrize("refused", [1, 2])
def test_24_many_files_are_as_they_were_where_the_disk_does_not_keep_them(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """A disk that reports an error when all is made durable at once is believed, before and after (faults row 24)."""
    workspace = opened()
    remember_four(workspace, "v1")
    monkeypatch.setattr(write, "_SYNC_ONCE_ABOVE", 3)
    synced: list[str] = []

    def sync(folder: str) -> None:
        synced.append(folder)
        if len(synced) == refused:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("memfs.fs.io.sync", sync)
    with pytest.raises(StorageIO, match="sync failed: Input/output error"):
        remember_four(workspace, "v2")
    assert [item.content for item in workspace.store.select(Query())] == ["v1"] * 4
    assert not list(workspace.root.rglob("*.tmp"))
    assert not workspace.store.flush().waiting


def test_two_saves_in_the_moment_of_a_write_are_both_kept(opened: Opened, git: Git) -> None:
    """One before the exchange and one after: the newer gets the file back, the older can be recovered."""
    workspace = opened()
    path = remember(workspace, "x", "v1")
    workspace.store.flush()
    from memfs.fs import io

    saves = ["first save", "second save"]

    def save(name: str, where: str) -> None:
        wanted = ("exchange", "x.yaml") if len(saves) == 2 else ("open", ".tmp")
        if name == wanted[0] and where.endswith(wanted[1]) and saves:
            swap = workspace.root / path.replace("x.yaml", ".swap")
            swap.write_text(f"content: {saves.pop(0)}\n")
            swap.replace(workspace.root / path)

    io.set_hook(save)
    try:
        remember(workspace, "x", "v2")
    finally:
        io.set_hook(None)
    assert saves == []
    workspace.store.flush()
    assert "second save" in git(workspace.root, "log", "-p", "--", path)
    kept = [file.read_text() for file in (workspace.repository.state / "recovered").iterdir()]
    assert len(kept) == 1
    assert "first save" in kept[0]


def test_a_file_made_by_hand_at_the_last_moment_is_not_overwritten(opened: Opened) -> None:
    """Creating never replaces what appeared meanwhile."""
    workspace = opened()
    remember(workspace, "first")
    from memfs.fs import io

    folder = workspace.root / workspace.store.locate("first").rpartition("/")[0]

    def save(name: str, where: str) -> None:
        if name == "fsync" and where.endswith("x.yaml"):
            io.set_hook(None)
            (folder / "x.yaml").write_text("content: mine\n")

    io.set_hook(save)
    try:
        with pytest.raises((IdExists, Conflict)):
            workspace.store.put(MemoryItem("theirs", "knowledge", id="x"), expected="")
    finally:
        io.set_hook(None)
    assert (folder / "x.yaml").read_text() == "content: mine\n"


def test_what_a_killed_writer_meant_is_not_redone_over_later_writes(opened: Opened) -> None:
    """An unfinished operation is settled before anybody else writes."""
    workspace = opened()
    remember(workspace, "x", "v1")
    dying = opened(workspace.root)
    remember(dying, "x", "v2")
    with injected(Fault()) as counted:
        remember(dying, "x", "v3")
    rename = next(number for number, row in enumerate(counted.seen, 1) if row.startswith(("rename", "exchange")))
    with injected(Fault(at=rename)), pytest.raises(Stopped):
        remember(dying, "x", "killed")
    workspace.store.delete("x")
    fresh = opened(workspace.root)
    fresh.store.flush()
    assert fresh.store.get("x") is None
    assert workspace.store.get("x") is None


def test_a_refused_write_leaves_nothing_to_be_done_later(opened: Opened) -> None:
    """A disk that refuses the rename, and the way back too, does not carry the write out at the next start."""
    workspace = opened()
    path = remember(workspace, "x", "v1")

    def refuse(name: str, where: str) -> None:
        if name in ("rename", "exchange", "link"):
            raise OSError(1, "Operation not permitted")

    from memfs.fs import io

    io.set_hook(refuse)
    try:
        with pytest.raises(StorageReadOnly):
            remember(workspace, "x", "refused")
    finally:
        io.set_hook(None)
    fresh = opened(workspace.root)
    assert "content: v1" in (fresh.root / path).read_text()
    assert fresh.store.notes == []
    assert fresh.store.flush().reason == ""


def test_changes_carried_to_another_branch_do_not_become_the_persons(opened: Opened, git: Git) -> None:
    """After their commit to the first branch, the second branch's files are as that branch has them."""
    workspace = opened(history__commit="session")
    kept, gone = remember(workspace, "kept", "v1"), remember(workspace, "gone", "v1")
    workspace.store.flush()
    git(workspace.root, "branch", "other")
    remember(workspace, "kept", "v2")
    workspace.store.delete("gone")
    git(workspace.root, "checkout", "-q", "other")
    workspace.store.flush()
    assert git(workspace.root, "status", "--porcelain") == ""
    assert "content: v2" in git(workspace.root, "show", f"main:{kept}")
    assert "content: v1" in (workspace.root / kept).read_text()
    assert (workspace.root / gone).exists()


def test_a_write_on_its_way_to_its_file_is_not_taken_for_displaced(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between journal and file a write is nobody's loss: another process that looks in that moment waits for it."""
    workspace = opened()
    seen: list[object] = []
    append = Journal.append
    other = opened(workspace.root)
    looks = threading.Thread(target=lambda: seen.append(other.recovered.list()))

    def look_in_between(journal: Journal, *given: object, **more: object) -> None:
        append(journal, *given, **more)  # type: ignore[arg-type]
        if not looks.ident:
            looks.start()
            looks.join(0.5)

    monkeypatch.setattr(Journal, "append", look_in_between)
    remember(workspace, "a")
    looks.join()

    assert seen == [[]]


def test_21_a_killed_writers_torn_record_keeps_nobody_from_writing(opened: Opened) -> None:
    """An item whose last version waits for its commit can be replaced beside the torn end (faults row 21)."""
    first = opened()
    first.store.put(MemoryItem("As it was.", "semantic", id="item"))
    journal = first.repository.state / "journal"
    first.close()
    with open(journal, "ab") as file:
        file.write(b"torn" * 100)

    second = opened()
    second.store.put(MemoryItem("As it is.", "semantic", id="item"))

    assert second.store.get("item").content == "As it is."  # type: ignore[union-attr]


def test_a_conflict_that_lasts_is_not_tried_again() -> None:
    """What others changed meanwhile is tried again; what would be refused each time is refused at once."""
    refused = [Conflict("outdated"), Conflict("edited by hand", lasting=True)]
    tries = iter(refused)

    def attempt() -> None:
        raise next(tries)

    with pytest.raises(Conflict, match="edited by hand"):
        retry_on_conflict(attempt)
