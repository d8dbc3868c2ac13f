"""Every byte is vouched for: edit and rot differ, one bad file harms no other, and repair brings back (S18)."""

from __future__ import annotations

import mmap
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.faults import flipped, rot, vouch
from memfs import MemoryItem
from memfs.admin.repair import Repairer
from memfs.errors import CorruptItem, CorruptRecord, GitFailed, ItemNotFound, StorageIO
from memfs.fs.tree import Content, Tree
from memfs.model import Query, Stamp
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
SEMANTIC = "ContextMemory/memories/semantic"
TEXT = "The cat sleeps on the roof of the barn."


@pytest.fixture(autouse=True)
def on_a_disk_that_shows_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests run on, its times of change are the kernel's."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: "ext4")


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """A workspace with one committed item."""
    made = opened()
    made.store.put(MemoryItem(TEXT, "semantic", id="cat"))
    made.store.flush()
    return made


def path_of(workspace: Workspace, item_id: str = "cat") -> str:
    """Where an item is."""
    path = workspace.store.locate(item_id)
    assert path
    return path


def rot_text(workspace: Workspace, item_id: str = "cat") -> bytes:
    """Turn a bit in the item's text over, so that the file stays valid."""
    path = path_of(workspace, item_id)
    data = (workspace.root / path).read_bytes()
    return rot(workspace, path, (data.index(b"cat") + 1) * 8)


def repairer(workspace: Workspace) -> Repairer:
    """What ``memfs check --fix`` uses."""
    return Repairer(workspace.store, workspace.parts)


# -- edit or rot --------------------------------------------------------------------------------------------------
def test_28_rot_is_refused_with_both_digests(workspace: Workspace) -> None:
    """Bytes that changed while size, times and inode stayed are never served (faults row 28)."""
    path = path_of(workspace)
    before = (workspace.root / path).read_bytes()
    changed = rot_text(workspace)
    assert b"cat" not in changed
    with pytest.raises(CorruptItem) as caught:
        workspace.store.get("cat")
    assert workspace.repository.blob_id(before) in str(caught.value)
    assert workspace.repository.blob_id(changed) in str(caught.value)
    assert caught.value.path == path
    assert "memfs check --fix" in (caught.value.hint or "")
    assert [problem.code for problem in workspace.store.problems()] == ["CorruptItem"]


def test_28_rot_is_never_recalled(workspace: Workspace) -> None:
    """Until somebody reads the file, answers have the text that was written, from the catalog (S18)."""
    workspace.recaller.search("sleeps barn")
    assert b"cat" not in rot_text(workspace)
    assert [hit.item.content for hit in workspace.recaller.search("sleeps barn").hits] == [TEXT]


def test_28_found_rot_is_not_recalled_nor_listed_and_the_answer_is_partial(workspace: Workspace) -> None:
    """An answer lacks an item whose rot was found, and says so each time; other files are as they were (S18)."""
    workspace.store.put(MemoryItem("The dog sleeps in the barn.", "semantic", id="dog"))
    rot_text(workspace)
    assert workspace.checker.check(integrity=True)
    for _ in range(3):
        answer = workspace.recaller.search("sleeps barn")
        assert ([hit.item.id for hit in answer.hits], answer.partial) == (["dog"], True)
    listed = workspace.recaller.search("")
    assert ([hit.item.id for hit in listed.hits], listed.partial) == (["dog"], True)
    assert [item.id for item in workspace.store.select(Query(text=""))] == ["dog"]


def test_partial_concerns_only_questions_that_the_file_could_answer(workspace: Workspace) -> None:
    """A question for another type, or for files elsewhere, is answered in full."""
    workspace.store.put(MemoryItem("cat photos are in the album", "procedural", id="album"))
    rot_text(workspace)
    assert workspace.checker.check(integrity=True)
    assert not workspace.recaller.search(Query(text="cat", types=frozenset({"procedural"}))).partial
    assert not workspace.recaller.search(Query(text="cat", path="ContextMemory/memories/procedural")).partial
    assert workspace.recaller.search(Query(text="cat", path="ContextMemory/memories")).partial


@pytest.mark.parametrize("how", ["in place", "replaced", "same size and time", "touched"])
def test_a_persons_edit_is_never_taken_for_rot(workspace: Workspace, how: str) -> None:
    """Whatever way a person changes a file, a time of change, a size or an inode shows it (faults row 45)."""
    path = path_of(workspace)
    vouch(workspace, path)
    full = workspace.root / path
    facts = full.stat()
    edited = full.read_bytes().replace(b"cat", b"cow")
    if how == "replaced":
        other = full.with_suffix(".new")
        other.write_bytes(edited)
        other.replace(full)
    elif how == "same size and time":
        full.write_bytes(edited)
        os.utime(full, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    elif how == "touched":
        rot(workspace, path, data=edited)
        with pytest.raises(CorruptItem):
            workspace.store.get("cat")
        full.touch()
    else:
        with full.open("r+b") as file:
            file.write(edited)
    answer = workspace.recaller.search("cow")
    assert ([hit.item.content for hit in answer.hits], answer.partial) == ([TEXT.replace("cat", "cow")], False)
    assert workspace.store.get("cat") is not None
    assert workspace.store.problems() == []


def test_an_edit_in_the_same_tick_as_the_last_look_is_an_edit(workspace: Workspace) -> None:
    """A file so young that a change could carry the same times is read, not called rotten."""
    path = path_of(workspace)
    (workspace.root / path).write_bytes((workspace.root / path).read_bytes().replace(b"cat", b"cow"))
    facts = workspace.parts.tree.entry(path)
    assert facts is not None
    stamp = workspace.parts.index.stamps()[path]
    young = stamp._replace(mtime_ns=facts.mtime_ns, ctime_ns=facts.ctime_ns, checked_ns=facts.ctime_ns + 1)
    workspace.parts.index.restamp(path, young)
    assert [hit.item.id for hit in workspace.recaller.search("cow").hits] == ["cat"]


@pytest.mark.parametrize("kind", ["nfs4", "9p", "fuse.sshfs", "vfat", ""])
def test_where_times_cannot_be_relied_on_nothing_is_called_rot(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """On a network file system other machines change files behind cached facts: that is an edit."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: kind)
    monkeypatch.setattr("sys.platform", "linux")
    path = path_of(workspace)
    rot(workspace, path, data=(workspace.root / path).read_bytes().replace(b"cat", b"cow"))
    workspace.store.refresh([path])
    assert [hit.item.id for hit in workspace.recaller.search("cow").hits] == ["cat"]
    assert workspace.store.problems() == []


def test_rot_is_never_committed_nor_written_over(workspace: Workspace, git: Git) -> None:
    """Adopting a person's edits leaves rot out, and no write rests on rotten bytes."""
    head = git(workspace.root, "rev-parse", "HEAD")
    rot_text(workspace)
    assert workspace.store.flush(adopt=True).adopted == ()
    with pytest.raises(CorruptItem):
        workspace.store.put(MemoryItem("something else", "semantic", id="cat"))
    with pytest.raises(CorruptItem):
        workspace.store.delete("cat")
    assert git(workspace.root, "rev-parse", "HEAD") == head


def test_rot_of_an_item_that_waits_for_its_commit_is_not_adopted(workspace: Workspace, git: Git) -> None:
    """The journal has what was written; rot in the file does not become a hand edit."""
    stored = workspace.store.put(MemoryItem("The dog barks at the cat.", "semantic", id="dog"))
    rot_text(workspace, "dog")
    assert workspace.store.flush(adopt=True).adopted == ()
    committed = git(workspace.root, "show", f"HEAD:{stored.path}")
    assert "barks at the cat" in committed
    assert [row.done for row in repairer(workspace).repair()] == [True]
    assert workspace.store.get("dog") == stored


@pytest.mark.parametrize("engine", ["memory", "sqlite", "whoosh"])
def test_rot_stays_rot_through_reindexing_and_reopening(opened: Opened, engine: str) -> None:
    """A new index does not take rotten bytes for the truth, with or without a whole copy in git."""
    first = opened(index__engine=engine)
    first.store.put(MemoryItem(TEXT, "semantic", id="cat"))
    first.store.flush()
    first.store.put(MemoryItem("The dog chases the cat.", "semantic", id="dog"))
    for item_id in ("cat", "dog"):
        rot_text(first, item_id)
    assert first.checker.check(integrity=True)
    first.store.reindex()
    for item_id in ("cat", "dog"):
        with pytest.raises(CorruptItem):
            first.store.get(item_id)
    if engine == "memory":
        return
    first.close()
    again = opened(first.root, index__engine=engine)
    assert {hit.item.content for hit in again.recaller.search("").hits} <= {TEXT, "The dog chases the cat."}
    for item_id in ("cat", "dog"):
        with pytest.raises(CorruptItem):
            again.store.get(item_id)
    answer = again.recaller.search("")
    assert (answer.hits, answer.partial) == ((), True)


def test_rot_that_heals_is_served_again(workspace: Workspace) -> None:
    """Where a disk gives the right bytes again, the next check believes them."""
    path = path_of(workspace)
    vouch(workspace, path)
    read = Tree.read

    def wrong(tree: Tree, path: str, limit: int) -> Content:
        content = read(tree, path, limit)
        data = content.data.replace(b"cat", b"bat")
        return Content(data, content.stamp._replace(blob=workspace.repository.blob_id(data)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("memfs.fs.tree.Tree.read", wrong)
        assert [problem.code for problem in workspace.checker.check(integrity=True)] == ["CorruptItem"]
        assert workspace.recaller.search("cat").hits == ()
    assert workspace.checker.check(integrity=True) == []
    assert [hit.item.id for hit in workspace.recaller.search("cat").hits] == ["cat"]


# -- one bad of many ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad", ["rot", "garbage", "unreadable"])
def test_one_bad_of_10000_leaves_9999(
    opened: Opened, bad: str, scale: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage is isolated to its file: all others are found and listed, and the answer says that one lacks (S18)."""
    workspace = opened()
    folder = workspace.root / SEMANTIC
    folder.mkdir(parents=True)
    many = scale(300, 10_000)
    for number in range(many):
        (folder / f"n{number}.json").write_text(f'{{"content": "word number{number}"}}')
    victim = f"{SEMANTIC}/n200.json"
    if bad == "garbage":
        (workspace.root / victim).write_bytes(b"\x00\xff" * 40)
    assert workspace.store.refresh().added
    if bad == "rot":
        rot(workspace, victim, 100)
        with pytest.raises(CorruptItem):  # a hit has the text that was written: who reads the file finds the damage
            workspace.store.get("n200")
    if bad == "unreadable":
        read = type(workspace.parts.tree).read

        def failing(tree: object, path: str, limit: int) -> object:
            if path == victim:
                raise StorageIO("read failed: Input/output error", path=path)
            return read(tree, path, limit)  # type: ignore[arg-type]

        monkeypatch.setattr("memfs.fs.tree.Tree.read", failing)
    listed = workspace.recaller.search(Query(text="", limit=many))
    found = workspace.recaller.search(Query(text="word", limit=many))
    for answer in (listed, found):
        present = {hit.item.id for hit in answer.hits if not hit.stale}
        assert (len(present), "n200" in present, answer.partial) == (many - 1, False, True)
        # What was read before may be quoted, marked as stale; rot and what was never read may not.
        assert bad == "unreadable" or len(answer.hits) == many - 1
    assert [problem.path for problem in workspace.store.problems()] == [victim]
    assert workspace.store.get("n199") is not None


# -- repair -------------------------------------------------------------------------------------------------------
def test_repair_brings_rot_back_from_the_commit_it_names(workspace: Workspace, git: Git) -> None:
    """The damaged bytes are kept first; the file is what it was; the worktree is clean; nothing is committed (S18)."""
    path = path_of(workspace)
    before = workspace.store.get("cat")
    head = git(workspace.root, "rev-parse", "HEAD").strip()
    changed = rot_text(workspace)
    (done,) = repairer(workspace).repair()
    assert (done.path, done.done) == (path, True)
    assert f"commit {head[:10]}" in done.sentence
    assert workspace.store.get("cat") == before
    (kept,) = workspace.recovered.list()
    assert kept.name in done.sentence
    assert git(workspace.root, "status", "--porcelain", "--", "ContextMemory") == ""
    assert git(workspace.root, "rev-parse", "HEAD").strip() == head
    assert workspace.checker.check(integrity=True) == []
    with pytest.raises(CorruptRecord) as caught:
        workspace.recovered.restore(kept.name)
    assert Path(str(caught.value.path)).read_bytes().endswith(b"\n" + changed)
    assert workspace.store.get("cat") == before


def test_repair_takes_what_waits_from_the_journal(workspace: Workspace) -> None:
    """A write that is in no commit yet is whole in the journal."""
    stored = workspace.store.put(MemoryItem("the cat moved to the attic", "semantic", id="cat"))
    rot_text(workspace)
    (done,) = repairer(workspace).repair()
    assert (done.done, "restored from the journal" in done.sentence) == (True, True)
    assert workspace.store.get("cat") == stored


def test_repair_says_when_only_an_older_version_is_left(workspace: Workspace, git: Git) -> None:
    """An edit that was never committed is lost with its file; the version of the last commit comes back, named so."""
    path = path_of(workspace)
    full = workspace.root / path
    full.write_bytes(full.read_bytes().replace(b"barn", b"shed"))
    workspace.store.refresh()
    rot_text(workspace)
    (done,) = repairer(workspace).repair()
    assert done.done
    assert "newest good version" in done.sentence
    assert git(workspace.root, "rev-parse", "HEAD")[:7] in done.sentence
    found = workspace.store.get("cat")
    assert found is not None
    assert found.content == TEXT


def test_repair_leaves_what_has_no_whole_copy(opened: Opened) -> None:
    """What cannot be brought back stays where it is, and is not served."""
    workspace = opened()
    (workspace.root / SEMANTIC).mkdir(parents=True)
    (workspace.root / SEMANTIC / "cat.yaml").write_text("content: the cat\n")
    workspace.store.refresh()
    changed = rot_text(workspace)
    (left,) = repairer(workspace).repair()
    assert not left.done
    assert (workspace.root / SEMANTIC / "cat.yaml").read_bytes() == changed
    with pytest.raises(CorruptItem):
        workspace.store.get("cat")


def test_repair_leaves_a_persons_invalid_edit_unless_it_is_named(workspace: Workspace) -> None:
    """An edit is the person's; by naming the file they ask for the last good version, and their bytes are kept."""
    path = path_of(workspace)
    (workspace.root / path).write_bytes(b"content: [\n")
    (left,) = repairer(workspace).repair()
    assert (left.path, left.done) == (path, False)
    assert f"memfs check --fix {path}" in left.sentence
    (done,) = repairer(workspace).repair([path])
    assert done.done
    found = workspace.store.get("cat")
    assert found is not None
    assert found.content == TEXT
    (copy,) = workspace.recovered.list()
    assert copy.bytes == len(b"content: [\n")
    with pytest.raises(CorruptRecord, match="looked at"):
        workspace.recovered.restore("cat")
    assert workspace.store.get("cat") == found


def test_repair_restores_a_broken_document_that_is_named(workspace: Workspace) -> None:
    """A configuration file is listed like an invalid item, and comes back from HEAD when it is named (S18)."""
    path, whole = "ContextMemory/configuration/system_config.json", b'{"update_interval_seconds": 60}'
    (workspace.root / path).write_bytes(whole)
    workspace.store.flush(adopt=True)
    (workspace.root / path).write_bytes(b"{{{")
    (left,) = repairer(workspace).repair()
    assert (left.path, left.done) == (path, False)
    (done,) = repairer(workspace).repair([path])
    assert done.done
    assert (workspace.root / path).read_bytes() == whole
    assert repairer(workspace).repair() == []


def test_repair_names_where_a_removed_file_is(workspace: Workspace) -> None:
    """A removal may be meant: the hint is the command that names its commits."""
    (workspace.root / path_of(workspace)).unlink()
    with pytest.raises(ItemNotFound) as caught:
        repairer(workspace).repair(["cat"])
    assert "'memfs log cat'" in (caught.value.hint or "")


def test_a_person_who_edits_during_the_repair_wins(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put back never lands on a change made meanwhile."""
    path = path_of(workspace)
    rot_text(workspace)
    keep = "memfs.admin.repair.keep_aside"

    def edit(*_: object) -> None:
        (workspace.root / path).write_text("content: mine\n")

    monkeypatch.setattr(keep, edit)
    (left,) = repairer(workspace).repair()
    assert not left.done
    assert (workspace.root / path).read_text() == "content: mine\n"


def _sentences(workspace: Workspace) -> list[str]:
    return [row.sentence for row in workspace.checker.repair() if row.done]


def test_check_fix_uses_the_same_repair(workspace: Workspace, git: Git) -> None:
    """--fix brings rot back, too."""
    rot_text(workspace)
    assert any("commit" in sentence for sentence in _sentences(workspace))
    assert workspace.checker.check(integrity=True) == []
    assert workspace.checker.check(integrity=True) == []


# -- git's objects ------------------------------------------------------------------------------------------------
def loose(workspace: Workspace, name: str) -> Path:
    """The file of a loose object."""
    return workspace.repository.common_dir / "objects" / name[:2] / name[2:]


@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_28_a_lost_object_is_named_with_its_file_and_the_remedy_holds(workspace: Workspace, git: Git, how: str) -> None:
    """A damaged blob of HEAD is named with the file that it is, and git makes it again from that (faults row 28)."""
    path = path_of(workspace)
    name = git(workspace.root, "rev-parse", f"HEAD:{path}").strip()
    place = loose(workspace, name)
    place.chmod(0o644)
    if how == "flipped":
        place.write_bytes(flipped(place.read_bytes(), 100))
    else:
        place.unlink()
    found = {problem.path: problem for problem in workspace.checker.check(integrity=True) if name in problem.message}
    assert found[path].code == "HistoryUnavailable"
    assert "git hash-object -w" in (found[path].hint or "")
    place.unlink(missing_ok=True)
    git(workspace.root, "hash-object", "-w", path)
    assert workspace.checker.check(integrity=True) == []


def test_a_damaged_branch_is_reported_with_what_to_do(workspace: Workspace) -> None:
    """memfs never moves a branch to where it guesses: it says where its commits are named."""
    ref = workspace.repository.common_dir / "refs/heads/main"
    ref.write_bytes(b"0" * 40 + b"\n")
    found = workspace.checker.check(integrity=True)
    assert any("git reflog" in (problem.hint or "") for problem in found)
    assert not any(row.done for row in repairer(workspace).repair())
    assert ref.read_bytes() == b"0" * 40 + b"\n"
    assert [hit.item.id for hit in workspace.recaller.search("cat").hits] == ["cat"]


# -- the journal, what was set aside, the index -------------------------------------------------------------------
def test_28_a_damaged_record_is_reported_and_the_others_are_saved(workspace: Workspace) -> None:
    """Mid-journal damage is reported; repair keeps a copy and goes on with the whole records (faults row 28)."""
    for number in range(3):
        workspace.store.put(MemoryItem(f"text {number}", "semantic", id=f"n{number}"))
    journal = workspace.repository.state / "journal"
    data = journal.read_bytes()
    at = data.index(b"text 1")
    journal.write_bytes(flipped(data, at * 8))
    assert "JournalDamaged" in {problem.code for problem in workspace.checker.check(integrity=True)}
    (done,) = repairer(workspace).repair()
    assert (done.sentence.startswith("the journal"), done.done) == (True, True)
    assert {change.path for operation in workspace.parts.journal.operations() for change in operation.changes} == {
        path_of(workspace, "n0"), path_of(workspace, "n2"),
    }  # fmt: skip
    assert [path.read_bytes() for path in (workspace.repository.state / "recovered").glob("journal-*")] == [
        flipped(data, at * 8)
    ]
    assert workspace.store.flush(adopt=True).waiting == 0
    assert workspace.checker.check(integrity=True) == []


@pytest.mark.parametrize("byte", [0, 5, 14, 16, 18, 25, 36, 38, 40, 45])
def test_28_a_damaged_header_loses_no_record(workspace: Workspace, opened: Opened, byte: int) -> None:
    """Wherever the first line is hit, it is reported, nothing is written on top, and repair saves every record."""
    workspace.store.put(MemoryItem("a waiting text", "semantic", id="waits"))
    journal = workspace.repository.state / "journal"
    changed = flipped(journal.read_bytes(), byte * 8)
    journal.write_bytes(changed)
    again = opened(workspace.root)
    assert {"JournalDamaged", "FormatUnsupported"} & {problem.code for problem in again.checker.check(integrity=True)}
    assert journal.read_bytes() == changed
    (done,) = repairer(again).repair()
    assert (done.sentence.startswith("the journal"), done.done) == (True, True)
    assert [operation.message for operation in again.parts.journal.operations()] == ["Remember: a waiting text"]
    again.store.put(MemoryItem("one more", "semantic", id="more"))
    assert len(again.store.flush().commits) == 1
    assert again.checker.check(integrity=True) == []


def test_a_damaged_set_aside_content_is_reported_and_harms_no_other(workspace: Workspace) -> None:
    """What was set aside has a digest; a damaged one is named and the others can be brought back."""
    path = path_of(workspace)
    rot_text(workspace)
    repairer(workspace).repair()
    (kept,) = (workspace.repository.state / "recovered").iterdir()
    other = kept.with_name("other.kept")
    other.write_bytes(kept.read_bytes())
    kept.write_bytes(flipped(kept.read_bytes(), len(kept.read_bytes()) * 8 - 20))
    assert [problem.code for problem in workspace.checker.check(integrity=True) if problem.severity == "error"] == [
        "CorruptRecord"
    ]
    assert [row.name for row in workspace.recovered.list()] == ["other"]
    assert workspace.recovered.restore("other") == path


@pytest.mark.parametrize("engine", ["sqlite", "whoosh"])
def test_a_damaged_index_is_rebuilt(opened: Opened, engine: str) -> None:
    """The index vouches for itself; a damaged one is not used, and recall is right all the same."""
    first = opened(index__engine=engine)
    first.store.put(MemoryItem(TEXT, "semantic", id="cat"))
    first.recaller.search("cat")
    first.store.fold()
    first.store.flush()
    first.close()
    (generation,) = first.parts.index.folder.glob("gen-*")
    columns = generation / "engine" / "columns"
    columns.write_bytes(flipped(columns.read_bytes(), 99))
    again = opened(first.root, index__engine=engine)
    assert [hit.item.id for hit in again.recaller.search("cat").hits] == ["cat"]
    assert again.checker.check(integrity=True) == []


def test_29_a_planted_index_is_never_loaded(opened: Opened, tmp_path: Path) -> None:
    """Deleted, cut short, emptied or foreign: the index is made again, and no pickle in it opened (faults row 29)."""
    import pickle

    canary = tmp_path / "canary"

    class Foreign:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(canary),)

    first = opened(index__engine="whoosh")
    first.store.put(MemoryItem(TEXT, "semantic", id="cat"))
    first.recaller.search("cat")
    first.store.fold()
    first.close()
    folder = first.parts.index.folder
    for damage in (b"", b"cut", pickle.dumps(Foreign()), None):
        present = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "index.lock")
        assert len(present) > 3
        for path in present:
            if path.name.endswith(".toc") or damage is None:
                path.unlink()
                if damage is not None:
                    path.write_bytes(damage)
        again = opened(first.root, index__engine="whoosh")
        answer = again.recaller.search("cat")
        assert ([hit.item.id for hit in answer.hits], answer.partial) == (["cat"], False)
        again.store.fold()
        again.close()
    assert not canary.exists()


def test_a_damaged_backup_is_reported(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The integrity check reads the backups that memfs keeps, too (S21)."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (made,) = workspace.backups.make()
    assert workspace.checker.check(integrity=True) == []
    made.path.write_bytes(flipped(made.path.read_bytes(), made.path.stat().st_size * 4))
    assert [(problem.code, problem.path) for problem in workspace.checker.check(integrity=True)] == [
        ("BackupInvalid", str(made.path))
    ]


# -- edits and merges by people -----------------------------------------------------------------------------------
def test_43_both_sides_edit_one_item(workspace: Workspace, git: Git) -> None:
    """A merge with markers: the last good version is served as stale, repair waits for the merge (faults row 43)."""
    path = path_of(workspace)
    root = workspace.root
    text = (root / path).read_text()
    git(root, "checkout", "-q", "-b", "other")
    (root / path).write_text(text.replace("roof", "floor"))
    git(root, "commit", "-qam", "floor")
    git(root, "checkout", "-q", "main")
    (root / path).write_text(text.replace("roof", "table"))
    git(root, "commit", "-qam", "table")
    assert workspace.recaller.search("table").hits
    git(root, "config", "--remove-section", "merge.memfs")  # as in a clone without the merge driver
    git(root, "merge", "other", check=False)
    answer = workspace.recaller.search("cat")
    assert [(hit.item.content, hit.stale) for hit in answer.hits] == [(TEXT.replace("roof", "table"), True)]
    assert answer.partial
    (problem,) = workspace.store.problems()
    assert (problem.code, problem.line) == ("ItemSyntaxError", 1)
    assert "'memfs team conflicts resolve'" in problem.hint
    (left,) = repairer(workspace).repair([path])
    assert not left.done
    assert "merge" in left.sentence
    assert "<<<<<<<" in (root / path).read_text()
    (root / path).write_text(text.replace("roof", "chair"))
    git(root, "commit", "-qam", "merged")
    found = workspace.recaller.search("cat")
    assert [(hit.item.content, hit.stale) for hit in found.hits] == [(TEXT.replace("roof", "chair"), False)]
    assert not found.partial


def test_nothing_a_person_does_with_files_or_git_is_called_rot(workspace: Workspace, git: Git) -> None:
    """Random edits, copies, times set back, swaps and checkouts: the file is always what counts (faults row 45)."""
    persons_day(workspace, git, 60)


def test_the_check_catches_a_memfs_that_looks_at_size_and_time_only(
    workspace: Workspace, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without inode and time of change, edits would be taken for rot, and the same check fails."""

    def rotten(stamp: Stamp, content: Content, _: Path) -> bool:
        return stamp.blob != content.stamp.blob and stamp[:2] == content.stamp[:2]

    monkeypatch.setattr("memfs.fs.tree.rotten", rotten)
    with pytest.raises(AssertionError):
        persons_day(workspace, git, 60)


def persons_day(workspace: Workspace, git: Git, steps: int) -> None:
    """So many things that a person does, each of which must count."""
    chooser = random.Random(9)
    root = workspace.root
    paths = [workspace.store.put(MemoryItem(TEXT, "semantic", id=name)).path for name in ("one", "two", "three")]
    workspace.store.delete("cat")
    workspace.store.flush()
    for step in range(steps):
        for path in paths:
            vouch(workspace, path)
        person_does(root, paths, git, chooser, step)
        answer = workspace.recaller.search(Query(text="", limit=9))
        for hit in answer.hits:
            assert hit.item.content in (root / hit.item.path).read_text()
        assert (len(answer.hits), answer.partial) == (3, False)
        assert [problem for problem in workspace.store.problems() if problem.code == "CorruptItem"] == []


def person_does(root: Path, paths: list[str], git: Git, chooser: random.Random, step: int) -> None:
    """One thing that changes a file, or seems to."""
    path, other = (root / path for path in chooser.sample(paths, 2))
    facts = path.stat()
    changed = path.read_bytes().replace(b"cat", b"cow") if chooser.random() < 0.5 else path.read_bytes()
    changed = changed.replace(b"behind", b"beside").replace(b"barn", b"b%02d" % (step % 100) + b"n")
    match chooser.randrange(7):
        case 0:
            with path.open("r+b") as file:
                file.write(changed)
        case 1:
            path.write_bytes(changed)
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        case 2:
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
                view[:] = changed[: len(view)].ljust(len(view), b"\n")
                view.flush()
        case 3:
            content, saved = other.read_bytes(), path.read_bytes()
            path.write_bytes(content)
            other.write_bytes(saved)
        case 4:
            kept = path.rename(path.with_suffix(".keep"))
            other.rename(path)
            kept.rename(other)
        case 5:
            shutil.copystat(other, path)
        case _:
            git(root, "checkout", "-q", "HEAD", "--", "ContextMemory")


def test_what_cannot_be_examined_is_not_called_whole(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git cannot be asked, the check says that it could not tell (S18)."""

    def failing(_: object) -> object:
        raise GitFailed("git did not answer within 30 seconds")

    monkeypatch.setattr("memfs.admin.repair.examine", failing)
    assert [problem.severity for problem in workspace.checker.check(integrity=True)] == ["unknown"]
