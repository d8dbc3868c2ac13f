"""Merges that memfs makes itself: files field by field, one commit with two parents, nothing of a person's replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memfs import MemoryItem, Workspace, open_workspace
from memfs.errors import Conflict, GitBusy, HistoryUnavailable, MergeRefused
from memfs.format import yaml_text
from memfs.fs import io
from memfs.model import Origin
from memfs.model.state_paths import document_kind
from memfs.store.plan import signed_by
from memfs.team.history_merge import joined_place

Git = Callable[..., str]
Opened = Callable[..., Workspace]
LINES = "one\ntwo\nthree\nfour\nfive"
READING = ("open", "read", "stat")


class Pair:
    """A workspace, and a clone of it on which somebody else works."""

    def __init__(self, ours: Workspace, theirs: Workspace, git: Git) -> None:
        self.ours, self.theirs, self.git = ours, theirs, git

    def other(self) -> str:
        """Commit what waits at the other side; its commit, fetched."""
        self.theirs.store.flush()
        self.git(self.ours.root, "fetch", "--quiet", str(self.theirs.repository.work_tree), "HEAD")
        return self.head(self.theirs)

    def merge(self, **options: Any) -> Any:
        return self.ours.teams.merger.merge(self.other(), "Merge theirs", **options)

    def head(self, workspace: Workspace) -> str:
        return self.git(workspace.root, "rev-parse", "HEAD").strip()

    def parents(self) -> list[str]:
        return self.git(self.ours.root, "log", "-1", "--format=%P").split()

    def status(self) -> str:
        return self.git(self.ours.root, "status", "--porcelain")


@pytest.fixture
def pair(opened: Opened, git: Git, tmp_path: Path) -> Pair:
    ours = opened()
    ours.store.put(MemoryItem(LINES, "semantic", id="shared", tags=("a",)))
    ours.store.flush()
    git(tmp_path, "clone", "--quiet", str(ours.root), "theirs")
    return Pair(ours, opened(tmp_path / "theirs"), git)


def change(workspace: Workspace, item_id: str = "shared", **values: Any) -> MemoryItem:
    item = workspace.store.get(item_id)
    assert item is not None
    return workspace.store.put(item.replace(**values))


def test_two_lines_become_one_commit_with_two_parents(pair: Pair) -> None:
    """Each side's edits are in the merged item, in files, search and history alike (B3)."""
    change(pair.ours, content=LINES.replace("two", "TWO"))
    change(pair.theirs, content=LINES.replace("five", "FIVE"), tags=("a", "b"))
    pair.theirs.store.put(MemoryItem("only theirs", "semantic", id="theirs"))
    pair.ours.store.flush()
    before, other = pair.head(pair.ours), pair.other()
    done = pair.ours.teams.merger.merge(other, "Merge theirs")
    assert (done.forward, done.conflicts, done.waiting) == (False, (), "")
    assert done.commit == pair.head(pair.ours)
    assert pair.parents() == [before, other]
    item = pair.ours.store.get("shared")
    assert item is not None
    assert item.content == LINES.replace("two", "TWO").replace("five", "FIVE")
    assert item.tags == ("a", "b")
    assert pair.ours.store.get("theirs").content == "only theirs"
    assert pair.status() == ""
    assert pair.git(pair.ours.root, "fsck", "--strict") == ""


def test_a_branch_without_anything_of_its_own_moves_forward(pair: Pair) -> None:
    """Where nothing is ours the branch moves to the other commit itself, and no merge commit is made (B3)."""
    change(pair.theirs, tags=("b",))
    other = pair.other()
    assert pair.ours.teams.merger.merge(other, "Merge theirs", dry_run=True).forward
    done = pair.ours.teams.merger.merge(other, "Merge theirs")
    assert done.forward
    assert done.commit == pair.head(pair.ours) == other
    assert pair.status() == ""


def test_merging_what_is_held_already_does_nothing(pair: Pair) -> None:
    """A commit that the branch holds changes nothing, and makes no commit."""
    change(pair.ours, tags=("b",))
    pair.ours.store.flush()
    before = pair.head(pair.ours)
    assert pair.merge().nothing
    assert pair.head(pair.ours) == before


def test_both_sides_doing_the_same_still_joins_the_lines(pair: Pair) -> None:
    """Equal edits on both sides need no change of a file, but history has both lines, so that a push is no force."""
    for side in (pair.ours, pair.theirs):
        path = side.root / side.store.locate("shared")
        path.write_text(path.read_text().replace("two", "2"))
        side.store.flush(adopt=True)
    before = pair.head(pair.ours)
    done = pair.merge()
    assert done.changed == ()
    assert not done.nothing or pair.head(pair.theirs) == before
    assert pair.git(pair.ours.root, "merge-base", "--is-ancestor", pair.head(pair.theirs), "HEAD") == ""


def test_a_contradiction_is_recorded_in_the_item(pair: Pair) -> None:
    """Of two values that cannot be joined one wins, and the other is in the merge commit itself (B3)."""
    change(pair.ours, title="Ours")
    change(pair.theirs, title="Theirs")
    done = pair.merge()
    assert [(clash.field, {clash.kept, clash.lost}) for clash in done.conflicts] == [("title", {"Ours", "Theirs"})]
    item = pair.ours.store.get("shared")
    assert item is not None
    assert [one.field for one in item.conflicts] == ["title"]
    committed = pair.git(pair.ours.root, "show", f"HEAD:{item.path}")
    assert "Ours" in committed
    assert "Theirs" in committed


def test_deleted_here_and_edited_there_stays_with_a_record(pair: Pair) -> None:
    """An edit outlives a deletion, whichever side made it, and the item says so (B3)."""
    pair.ours.store.delete("shared")
    change(pair.theirs, content="edited")
    done = pair.merge()
    assert [(clash.field, clash.kept, clash.lost) for clash in done.conflicts] == [("", "edited", "deleted")]
    item = pair.ours.store.get("shared")
    assert item is not None
    assert item.content == "edited"


def test_an_item_moved_here_and_edited_there_is_one_item(pair: Pair) -> None:
    """A change of type on one side and of text on the other are one file in the new folder (B3)."""
    change(pair.ours, memory_type="knowledge")
    change(pair.theirs, content=LINES + "\nsix")
    done = pair.merge()
    assert done.conflicts == ()
    item = pair.ours.store.get("shared")
    assert item is not None
    assert (item.memory_type, item.content) == ("knowledge", LINES + "\nsix")
    assert len(list(pair.ours.root.glob("ContextMemory/memories/*/*/shared.yaml"))) == 1


@pytest.mark.parametrize("flow", [False, True])
def test_edited_here_and_moved_there_is_one_item(pair: Pair, flow: bool) -> None:
    """The other way round, with a file that names its own type, on a line or within braces (B3)."""
    path = pair.ours.root / pair.ours.store.locate("shared")
    values = yaml_text.load(path.read_text())
    text = json.dumps({"type": "semantic"} | values) if flow else f"type: semantic\n{path.read_text()}"
    path.write_text(f"# why\n{text}")
    pair.ours.store.flush(adopt=True)
    change(pair.theirs, memory_type="knowledge", tags=("a", "c"))
    pair.merge()
    item = pair.ours.store.get("shared")
    assert item is not None
    assert (item.memory_type, item.tags) == ("knowledge", ("a", "c"))
    assert flow or "# why" in (pair.ours.root / item.path).read_text()
    assert len(list(pair.ours.root.glob("ContextMemory/memories/*/*/shared.yaml"))) == 1


def test_one_id_made_on_both_sides_in_two_folders_is_reported(pair: Pair) -> None:
    """Two memories that were given one name are both there afterwards, and the twin is a problem (B3)."""
    for side, kind, day in ((pair.ours, "semantic", 1), (pair.theirs, "knowledge", 2)):
        side.store.put(MemoryItem(f"both\nin {kind}", kind, id="twin", created=datetime(2026, 3, day, tzinfo=UTC)))
    pair.merge()
    assert len(list(pair.ours.root.glob("ContextMemory/memories/*/*/twin.yaml"))) == 2
    assert "DuplicateId" in {one.code for one in pair.ours.store.problems()}


def test_where_a_joined_file_is_does_not_depend_on_the_side() -> None:
    """The side that moved it says so; of two new places both sides choose the same (B3)."""
    assert [joined_place("a", *places) for places in (("a", "b"), ("b", "a"), ("", "b"), ("b", ""))] == ["b"] * 4
    assert joined_place("a", "b", "c") == joined_place("a", "c", "b")


def test_an_id_that_one_side_has_twice_already_is_no_obstacle(pair: Pair) -> None:
    """Files that somebody copied by hand, and an item of that id made elsewhere: each file stays, and check says so."""
    for folder in ("semantic/2026-01", "procedural/2026-01"):
        place = pair.ours.root / "ContextMemory/memories" / folder / "twin.yaml"
        place.parent.mkdir(parents=True)
        place.write_text(f"content: as {folder}\ncreated: '2026-01-01T00:00:00Z'\n")
    pair.git(pair.ours.root, "add", "--all")
    pair.git(pair.ours.root, "commit", "--quiet", "-m", "Copy it")
    pair.theirs.store.put(MemoryItem("a third one", "episodic", id="twin"))
    assert len(pair.merge().changed) == 1
    assert {one.code for one in pair.ours.store.problems()} == {"DuplicateId"}
    assert len([path for path in pair.ours.repository.tree("HEAD") if path.endswith("/twin.yaml")]) == 3


def test_an_edit_by_hand_that_is_not_committed_stays(opened: Opened, pair: Pair) -> None:
    """A file that a person changed and did not commit is named, and nothing is merged (B3)."""
    change(pair.theirs, tags=("b",))
    path = pair.ours.root / pair.ours.store.locate("shared")
    path.write_text(path.read_text().replace("two", "mine"))
    other, before = pair.other(), pair.head(pair.ours)
    leaving = opened(pair.ours.root, history__adopt="leave")
    with pytest.raises(Conflict, match="edits that are not committed") as refused:
        leaving.teams.merger.merge(other, "Merge theirs")
    assert refused.value.path == pair.ours.store.locate("shared")
    assert "mine" in path.read_text()
    assert pair.head(pair.ours) == before


def test_an_edit_by_hand_elsewhere_is_in_nobodys_way(opened: Opened, pair: Pair) -> None:
    """Only files that the merge changes must be clean."""
    pair.ours.store.put(MemoryItem("mine", "semantic", id="mine"))
    pair.ours.store.flush()
    path = pair.ours.root / pair.ours.store.locate("mine")
    path.write_text(path.read_text().replace("mine", "edited"))
    change(pair.theirs, tags=("b",))
    leaving = opened(pair.ours.root, history__adopt="leave")
    leaving.teams.merger.merge(pair.other(), "Merge theirs")
    assert "edited" in path.read_text()
    assert pair.status().split() == ["M", pair.ours.store.locate("mine")]


def test_adopted_edits_are_committed_and_merged(pair: Pair) -> None:
    """Where memfs commits a person's edits by itself, it does so before it merges."""
    path = pair.ours.root / pair.ours.store.locate("shared")
    path.write_text(path.read_text().replace("two", "mine"))
    pair.ours.store.flush(adopt=True)
    change(pair.theirs, tags=("b",))
    pair.merge()
    item = pair.ours.store.get("shared")
    assert item is not None
    assert ("mine" in item.content, item.tags) == (True, ("b",))


def test_a_dry_run_writes_nothing(pair: Pair) -> None:
    """What a dry run reports is what happens then, and until then nothing has."""
    change(pair.ours, title="Ours")
    change(pair.theirs, title="Theirs")
    pair.ours.store.flush()
    before, other = pair.head(pair.ours), pair.other()
    planned = pair.ours.teams.merger.merge(other, "Merge", dry_run=True)
    assert (pair.head(pair.ours), pair.status(), planned.commit) == (before, "", "")
    done = pair.ours.teams.merger.merge(other, "Merge")
    assert (planned.changed, planned.conflicts) == (done.changed, done.conflicts)


def test_what_is_not_memory_is_left_to_git(pair: Pair) -> None:
    """Another line that changes code is refused with the command that merges it, and nothing has changed (B3)."""
    (pair.theirs.root / "main.py").write_text("print()\n")
    pair.git(pair.theirs.root, "add", "main.py")
    pair.git(pair.theirs.root, "commit", "--quiet", "--message", "Code")
    before = pair.head(pair.ours)
    with pytest.raises(MergeRefused, match=r"main\.py") as refused:
        pair.merge()
    assert " merge " in (refused.value.hint or "")
    assert pair.head(pair.ours) == before


def test_a_link_among_the_memories_is_refused(pair: Pair) -> None:
    """A line of history that puts a link in the place of memory is not merged (row 12)."""
    link = pair.theirs.root / "ContextMemory/memories/semantic/2026-01/link.yaml"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/etc/passwd")
    pair.git(pair.theirs.root, "add", "ContextMemory")
    pair.git(pair.theirs.root, "commit", "--quiet", "--message", "Link")
    with pytest.raises(MergeRefused, match=r"link\.yaml"):
        pair.merge()


def test_committed_conflict_markers_are_refused(pair: Pair) -> None:
    """Nobody gets the markers that somebody else committed (row 43)."""
    path = pair.theirs.root / pair.theirs.store.locate("shared")
    path.write_text("<<<<<<< ours\ntitle: a\n=======\ntitle: b\n>>>>>>> theirs\n")
    pair.git(pair.theirs.root, "commit", "--quiet", "--all", "--message", "Oops")
    with pytest.raises(MergeRefused, match="conflict markers"):
        pair.merge()
    assert pair.status() == ""


def test_a_file_that_no_rule_can_join_is_named(pair: Pair) -> None:
    """An item that one side broke and both changed is refused with both ways out (B3)."""
    change(pair.ours, title="Ours")
    path = pair.theirs.root / pair.theirs.store.locate("shared")
    path.write_text("title: [broken\n")
    pair.git(pair.theirs.root, "commit", "--quiet", "--all", "--message", "Oops")
    with pytest.raises(MergeRefused, match=r"shared\.yaml") as refused:
        pair.merge()
    assert "git merge" in (refused.value.hint or "")


def test_strangers_are_refused(pair: Pair, git: Git, opened: Opened, tmp_path: Path) -> None:
    """Histories that never met are joined once by git, which the message names."""
    open_workspace(tmp_path / "stranger", create=True, watch=False).close()  # not copied: with a beginning of its own
    first_unknown = opened(tmp_path / "stranger")
    git(pair.ours.root, "fetch", "--quiet", str(first_unknown.root), "HEAD")
    with pytest.raises(MergeRefused, match="no history in common"):
        pair.ours.teams.merger.merge(pair.head(first_unknown), "Merge")


def test_a_commit_that_is_not_here_is_refused(pair: Pair) -> None:
    """A merge of what was never fetched says so."""
    with pytest.raises(HistoryUnavailable, match="not in this repository"):
        pair.ours.teams.merger.merge("12" * 20, "Merge")


def test_sums_follow_a_merge_and_cannot_undo_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is summed up of both sides is remade; where that fails the merge is kept, and the failure is named (B3)."""
    asked: list[object] = []

    def fails(changed: object) -> None:
        asked.append(changed)
        raise HistoryUnavailable("no sums today")

    monkeypatch.setattr(pair.ours.teams.merger, "_sum_up", fails)
    pair.ours.store.put(MemoryItem("mine", id="mine"))
    pair.theirs.store.put(MemoryItem("theirs", id="theirs"))
    done = pair.merge()
    assert pair.parents()[1] == pair.head(pair.theirs)
    assert asked == [list(done.changed)]
    assert [one.message for one in pair.ours.store.notes if "sums" in one.message]


def test_while_a_person_merges_memfs_does_not(pair: Pair) -> None:
    """In the middle of a person's merge nothing is merged (row 34)."""
    change(pair.theirs, tags=("b",))
    other = pair.other()
    (pair.ours.root / ".git/MERGE_HEAD").write_text(other + "\n")
    for dry_run in (True, False):
        with pytest.raises(GitBusy, match="a merge is in progress"):
            pair.ours.teams.merger.merge(other, "Merge", dry_run=dry_run)


def test_a_merge_is_signed_by_who_makes_it(pair: Pair) -> None:
    """The merge commit names the agent, and the door it came through (B2)."""
    change(pair.ours, tags=("b",))
    change(pair.theirs, title="Theirs")
    with signed_by(Origin(agent="bot", session="s1")):
        pair.merge(source="branch")
    log = pair.git(pair.ours.root, "log", "-1", "--format=%an%n%B")
    assert "bot" in log.splitlines()[0]
    assert "Memfs-Agent: bot" in log
    assert "Memfs-Source: branch" in log


def test_lines_that_crossed_count_each_change_once(pair: Pair) -> None:
    """Counters are summed rightly where two branches merged each other twice (B3)."""
    pair.ours.store.put(MemoryItem("seen", "pattern", id="counter", data={"occurrences": 10}))
    pair.ours.store.flush()
    pair.git(pair.theirs.root, "pull", "--quiet", str(pair.ours.root), "main")
    change(pair.ours, "counter", data={"occurrences": 11})
    change(pair.theirs, "counter", data={"occurrences": 12})
    pair.ours.store.flush()
    mine, other = pair.head(pair.ours), pair.other()
    pair.git(pair.theirs.root, "fetch", "--quiet", str(pair.ours.root), "HEAD")
    pair.ours.teams.merger.merge(other, "Merge theirs")
    pair.theirs.teams.merger.merge(mine, "Merge ours")
    for side, by in ((pair.ours, 1), (pair.theirs, 5)):
        item = side.store.get("counter")
        assert item is not None
        assert item.data["occurrences"] == 13
        change(side, "counter", data={"occurrences": 13 + by})
    pair.merge()
    bases = pair.git(pair.ours.root, "merge-base", "--all", "HEAD^1", "HEAD^2").split()
    assert len(bases) == 2
    item = pair.ours.store.get("counter")
    assert item is not None
    assert item.data["occurrences"] == 19


def test_what_gave_way_in_a_state_document_has_a_record_beside_it(pair: Pair) -> None:
    """A document cannot hold its conflicts: the merge commit has records of them, which are listed (B3)."""
    pair.ours.states.recorder.hypothesis({"id": "h1", "state": "generated"})
    pair.ours.store.flush()
    pair.git(pair.theirs.root, "pull", "--quiet", str(pair.ours.root), "main")
    for side, state in ((pair.ours, "reviewed"), (pair.theirs, "retired")):
        (file,) = side.root.glob("ContextMemory/iterations/*/hypotheses/h1.json")
        file.write_text(json.dumps({**json.loads(file.read_text()), "state": state}, indent=2) + "\n")
        side.store.flush(adopt=True)
    done = pair.merge()
    assert [clash.field for clash in done.conflicts] == ["state"]
    records = [name for name in done.changed if document_kind(name) == "conflict"]
    assert len(records) == 1
    assert records[0] in pair.git(pair.ours.root, "show", "--name-only", "--format=", "-m", "HEAD")
    assert [clash.field for clash in pair.ours.teams.resolver.documents()] == ["state"]


def test_a_merge_killed_anywhere_is_finished_or_never_was(
    pair: Pair, opened: Opened, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """After death before any change to the disk, the next process has all of the merge or nothing of it (row 21)."""
    change(pair.ours, content=LINES.replace("two", "TWO"))
    change(pair.theirs, content=LINES.replace("five", "FIVE"))
    pair.theirs.store.put(MemoryItem("only theirs", "semantic", id="theirs"))
    pair.ours.store.flush()
    other = pair.other()
    pair.ours.close()
    total, number, outcomes = 200, 0, set()
    while number < total:
        root = tmp_path / f"copy{number}"
        pair.git(tmp_path, "clone", "--quiet", "--local", str(pair.ours.root), root.name)
        pair.git(root, "fetch", "--quiet", str(pair.theirs.root), "HEAD")
        pid = os.fork()
        if pid == 0:
            os._exit(_merge_and_die(opened(root), other, number))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        after = opened(root)
        after.store.flush()
        parents = len(pair.git(root, "log", "-1", "--format=%P").split())
        item = after.store.get("shared")
        assert item is not None
        assert pair.git(root, "status", "--porcelain") == "", number
        merged = "FIVE" in item.content
        assert (parents == 2, after.store.get("theirs") is not None) == (merged, merged), number
        outcomes.add(merged)
        if code != 9:
            break
        number += scale(37, 1)
    assert outcomes == {False, True}
    assert number > 9


def _merge_and_die(workspace: Workspace, commit: str, number: int) -> int:
    seen = iter(range(number))

    def hook(name: str, path: object) -> None:
        if name not in READING and next(seen, None) is None:
            os._exit(9)

    io.set_hook(hook)
    workspace.teams.merger.merge(commit, "Merge theirs")
    return 0


def test_a_merge_that_waits_is_committed_with_both_parents_later(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git that becomes busy after the files were written only delays the commit (row 34)."""
    change(pair.ours, title="Ours")
    change(pair.theirs, tags=("b",))
    pair.ours.store.flush()
    other = pair.other()

    def joined_while_busy(*arguments: Any, **options: Any) -> None:
        join(*arguments, **options)
        (pair.ours.root / ".git/CHERRY_PICK_HEAD").write_text(other + "\n")

    join = pair.ours.store.writing.carry_out
    monkeypatch.setattr(pair.ours.store.writing, "carry_out", joined_while_busy)
    done = pair.ours.teams.merger.merge(other, "Merge theirs")
    assert "cherry-pick" in done.waiting
    assert done.commit == ""
    (pair.ours.root / ".git/CHERRY_PICK_HEAD").unlink()
    pair.ours.store.flush()
    assert pair.parents()[1:] == [other]
    assert pair.status() == ""


def test_a_merged_file_that_somebody_removed_meanwhile_is_in_the_merge(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its absence is the person's later edit: the merge commit does not take the file from everybody (row 38)."""
    change(pair.ours, title="Ours")
    pair.theirs.store.put(MemoryItem("new", "semantic", id="new"))
    pair.ours.store.flush()
    other = pair.other()

    def joined_then_removed(*arguments: Any, **options: Any) -> None:
        join(*arguments, **options)
        (pair.ours.root / pair.ours.store.locate("new")).unlink()

    join = pair.ours.store.writing.carry_out
    monkeypatch.setattr(pair.ours.store.writing, "carry_out", joined_then_removed)
    pair.ours.teams.merger.merge(other, "Merge theirs")
    assert "new.yaml" in pair.git(pair.ours.root, "ls-tree", "-r", "--name-only", "HEAD")
    assert pair.status().startswith(" D")


def test_an_item_that_two_sides_kept_against_a_third_is_one_item(pair: Pair) -> None:
    """Deleted by one, edited and moved apart by two others: it is one item again when these meet (B3)."""
    start = pair.head(pair.ours)
    pair.git(pair.theirs.root, "switch", "--quiet", "--create", "third")
    pair.theirs.store.delete("shared")
    third = pair.other()
    pair.git(pair.theirs.root, "switch", "--quiet", "main")
    pair.theirs.store.refresh()
    assert pair.head(pair.theirs) == start
    for side, kind in ((pair.ours, "knowledge"), (pair.theirs, "procedural")):
        change(side, memory_type=kind, tags=("a", kind))
        side.store.flush()
        side.teams.merger.merge(third, "Merge third")
        assert side.store.get("shared") is not None
    pair.merge()
    assert len(list(pair.ours.root.glob("ContextMemory/memories/*/*/shared.yaml"))) == 1
    item = pair.ours.store.get("shared")
    assert item is not None
    assert sorted(item.tags) == ["a", "knowledge", "procedural"]


def test_a_workspace_inside_a_code_repository_merges_its_own_files(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Below a folder of a team's repository the same holds; code that only we changed is in nobody's way (row 35)."""
    repository = tmp_path / "code"
    (repository / "tool").mkdir(parents=True)
    git(repository, "init", "--quiet")
    ours = opened(repository / "tool")
    ours.store.put(MemoryItem(LINES, "semantic", id="shared"))
    ours.store.flush(adopt=True)
    git(tmp_path, "clone", "--quiet", "code", "theirs")
    pair = Pair(ours, opened(tmp_path / "theirs/tool"), git)
    (repository / "main.py").write_text("print()\n")
    git(repository, "add", "main.py")
    git(repository, "commit", "--quiet", "--message", "Code")
    (repository / "main.py").write_text("print(1)\n")
    change(pair.theirs, tags=("b",))
    change(pair.ours, title="Ours")
    done = pair.merge()
    assert done.changed == (ours.store.locate("shared"),)
    assert len(pair.parents()) == 2
    item = ours.store.get("shared")
    assert item is not None
    assert (item.title, item.tags) == ("Ours", ("b",))
    assert pair.status().split() == ["M", "main.py"]
