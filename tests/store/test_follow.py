"""The index follows what people do to the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from memfs import MemoryItem
from memfs.errors import Conflict, ItemSyntaxError
from memfs.model.kinds import ITEM_LIMIT
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
SEMANTIC = "ContextMemory/memories/semantic"


def write(workspace: Workspace, path: str, text: str) -> Path:
    """Write a file as a person would."""
    full = workspace.root / path
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text(text, encoding="utf-8")
    return full


def found(workspace: Workspace, words: str) -> list[str]:
    """Ids of the hits for some words."""
    return [hit.item.id for hit in workspace.recaller.search(words).hits]


def test_a_file_made_by_hand_is_found_anywhere_below_its_type(opened: Opened) -> None:
    """People may write files themselves, in folders of their own (K2)."""
    workspace = opened()
    write(workspace, f"{SEMANTIC}/by/topic/gardening.yaml", "content: Tomatoes need sun.\n")
    assert found(workspace, "tomato") == ["gardening"]


def test_an_edit_by_hand_is_what_recall_shows(opened: Opened) -> None:
    """Text always comes from the file (K5)."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("We chose PostgreSQL.", "semantic"))
    path = workspace.root / stored.path
    path.write_text(path.read_text().replace("PostgreSQL", "MariaDB"))
    assert found(workspace, "postgresql") == []
    assert [hit.item.content for hit in workspace.recaller.search("mariadb").hits] == ["We chose MariaDB."]


def test_45_an_edit_that_keeps_size_and_time_is_seen(opened: Opened) -> None:
    """Same size and mtime do not hide a change (faults row 45)."""
    workspace = opened()
    path = write(workspace, f"{SEMANTIC}/pet.yaml", "content: cat\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert found(workspace, "cat") == ["pet"]
    path.write_text("content: dog\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert (found(workspace, "cat"), found(workspace, "dog")) == ([], ["pet"])


def test_removing_renaming_and_moving_by_hand_is_followed(opened: Opened) -> None:
    """rm, mv to another name and mv to another folder."""
    workspace = opened()
    path = write(workspace, f"{SEMANTIC}/a.yaml", "content: apple\n")
    assert found(workspace, "apple") == ["a"]
    renamed = path.rename(path.with_name("b.yaml"))
    assert found(workspace, "apple") == ["b"]
    moved = workspace.root / SEMANTIC / "deep" / "b.yaml"
    moved.parent.mkdir()
    renamed.rename(moved)
    item = workspace.store.get("b")
    assert item is not None
    assert item.path == f"{SEMANTIC}/deep/b.yaml"
    moved.unlink()
    assert found(workspace, "apple") == []


def test_a_broken_edit_keeps_the_last_good_version_and_is_reported(opened: Opened) -> None:
    """An invalid file stays searchable as it last was, and the problem names line and remedy."""
    workspace = opened()
    path = write(workspace, f"{SEMANTIC}/rule.yaml", "content: drive on the left\n")
    assert found(workspace, "drive") == ["rule"]
    path.write_text("content: drive\ncontent: on the right\n")
    hits = workspace.recaller.search("drive").hits
    assert [(hit.item.content, hit.stale) for hit in hits] == [("drive on the left", True)]
    (problem,) = workspace.store.problems()
    assert (problem.path, problem.code, problem.line) == (f"{SEMANTIC}/rule.yaml", "DuplicateKey", 2)
    path.write_text("content: drive on the right\n")
    assert [hit.stale for hit in workspace.recaller.search("right").hits] == [False]
    assert workspace.store.problems() == []


def test_a_new_process_serves_the_committed_version_of_a_broken_file(opened: Opened) -> None:
    """Without an index that remembers it, the last good version comes from history."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("drive on the left", "semantic", id="rule"))
    workspace.store.flush()
    (workspace.root / stored.path).write_text("content: [\n")
    fresh = opened(workspace.root)
    assert [(hit.item.content, hit.stale) for hit in fresh.recaller.search("drive").hits] == [
        ("drive on the left", True)
    ]
    with pytest.raises(ItemSyntaxError):
        fresh.store.get("rule")


def test_43_a_version_that_another_process_committed_is_the_last_good_one(opened: Opened) -> None:
    """What history has replaces an older version in the index, once the file is invalid (faults row 43)."""
    first = opened(index__engine="whoosh")
    stored = first.store.put(MemoryItem("first words", "semantic", id="one"))
    first.store.flush()
    first.store.fold()
    first.store.put(stored.replace(content="second words"))
    first.store.flush()
    first.store.close()
    full = first.root / stored.path
    full.write_text("<<<<<<< ours\n" + full.read_text() + "=======\n>>>>>>> theirs\n")
    second = opened(index__engine="whoosh")
    assert [hit.item.content for hit in second.recaller.search("second words").hits] == ["second words"]
    assert second.recaller.search("first").hits == ()


def test_a_committed_file_too_large_for_an_item_is_not_looked_through(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge file in a cloned history costs a question no search for secrets in it, however often it is asked."""
    workspace = opened()
    write(workspace, f"{SEMANTIC}/huge.yaml", "content: drive " + "a" * ITEM_LIMIT)
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "huge")
    workspace.store.put(MemoryItem("drive on the left", "semantic", id="rule"))
    looked: list[int] = []
    monkeypatch.setattr("memfs.format.secrets.refuse_file", lambda data, path: looked.append(len(data)))
    assert found(opened(workspace.root), "drive") == ["rule"]
    assert [size for size in looked if size > ITEM_LIMIT] == []


def test_43_an_edit_that_was_in_no_history_loses_to_what_is(opened: Opened) -> None:
    """What only the index knew cannot be brought back: the committed version is, instead of nothing (faults row 43)."""
    first = opened(index__engine="whoosh")
    stored = first.store.put(MemoryItem("first words", "semantic", id="one"))
    first.store.flush()
    full = first.root / stored.path
    committed = full.read_text()
    full.write_text(committed.replace("first", "edited"))
    assert found(first, "edited") == ["one"]
    first.store.fold()
    full.write_text("<<<<<<< ours\n" + committed + "=======\n>>>>>>> theirs\n")
    second = opened(index__engine="whoosh")
    assert [(hit.item.content, hit.stale) for hit in second.recaller.search("words").hits] == [("first words", True)]


@pytest.mark.parametrize("engine", ["sqlite", "whoosh"])
def test_a_large_file_is_cut_into_terms_once(opened: Opened, engine: str) -> None:
    """One large file weighs as much as many small ones: the first question folds it, and no later one reads it."""
    first = opened(index__engine=engine)
    first.store.put(MemoryItem("a small one", "knowledge", id="small"))
    first.recaller.search("small")
    first.close()
    large = first.root / "ContextMemory/memories/knowledge/large.yaml"

    def only_fresh() -> list[str]:
        again = opened(first.root, index__engine=engine)
        again.recaller.search("small")
        fresh = list(again.parts.index.overlay_stamps())
        again.close()
        return fresh

    path = str(large.relative_to(first.root))
    large.write_text("content: little yet\n")
    assert [only_fresh(), only_fresh()] == [[path], [path]]
    large.write_text(f"content: {' '.join(f'word{number:x}' for number in range(40_000))}\n")
    assert [only_fresh(), only_fresh()] == [[path], []]


def test_twins_the_older_keeps_the_id(opened: Opened) -> None:
    """Two files with one stem: the older created owns the id, the other is a problem and readable by path."""
    workspace = opened()
    write(workspace, f"{SEMANTIC}/x/twin.yaml", "content: younger\ncreated: '2026-02-01'\n")
    write(workspace, f"{SEMANTIC}/y/Twin.yaml", "content: older\ncreated: '2026-01-01'\n")
    assert [hit.item.content for hit in workspace.recaller.search("older younger").hits] == ["older"]
    (problem,) = workspace.store.problems()
    assert (problem.path, problem.code) == (f"{SEMANTIC}/x/twin.yaml", "DuplicateId")
    assert workspace.store.find(f"{SEMANTIC}/x/twin.yaml").content == "younger"


def test_when_the_older_twin_goes_the_other_takes_the_id(opened: Opened) -> None:
    """A duplicate is not lost forever."""
    workspace = opened()
    older = write(workspace, f"{SEMANTIC}/y/twin.yaml", "content: older\ncreated: '2026-01-01'\n")
    write(workspace, f"{SEMANTIC}/x/twin.yaml", "content: younger\ncreated: '2026-02-01'\n")
    assert found(workspace, "older younger") == ["twin"]
    older.unlink()
    assert [hit.item.content for hit in workspace.recaller.search("older younger").hits] == ["younger"]
    assert workspace.store.problems() == []


def test_of_invalid_twins_the_same_one_is_named_whichever_came_first(opened: Opened) -> None:
    """A process that watched them come and one that finds them together name one file."""
    workspace = opened()
    write(workspace, "ContextMemory/memories/nonsense/x.yaml", "content: x\n")
    workspace.store.refresh()
    write(workspace, "ContextMemory/memories/none/x.yaml", "content: x\n")
    workspace.store.refresh()
    assert workspace.store.locate("x") == "ContextMemory/memories/none/x.yaml"


def test_a_file_with_an_unsafe_name_or_in_no_types_folder_is_a_problem(opened: Opened) -> None:
    """Such files are named, never silently ignored."""
    workspace = opened()
    write(workspace, f"{SEMANTIC}/bad name.yaml", "content: x\n")
    write(workspace, "ContextMemory/memories/nonsense/x.yaml", "content: x\n")
    workspace.store.refresh()
    assert {problem.code for problem in workspace.store.problems()} == {"IdInvalid", "ContentError"}


def test_12_links_and_pipes_among_the_items_are_problems_and_never_read(opened: Opened, tmp_path: Path) -> None:
    """A link or pipe named like an item is reported; the scan ends (faults row 12)."""
    workspace = opened()
    (tmp_path / "secret.yaml").write_text("content: secret\n")
    folder = workspace.root / SEMANTIC
    folder.mkdir(parents=True)
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    os.mkfifo(folder / "pipe.yaml")
    (folder / "loop").symlink_to(folder)
    assert found(workspace, "secret") == []
    assert {problem.code for problem in workspace.store.problems()} == {"NotRegularFile"}


def test_43_conflict_markers_keep_the_last_good_version(opened: Opened) -> None:
    """A merge that left markers is a problem with its line, and recall goes on with what was good (faults row 43)."""
    workspace = opened()
    path = write(workspace, f"{SEMANTIC}/port.yaml", "content: port 80\n")
    assert found(workspace, "port") == ["port"]
    path.write_text("<<<<<<< HEAD\ncontent: port 80\n=======\ncontent: port 81\n>>>>>>> other\n")
    assert [hit.item.content for hit in workspace.recaller.search("port").hits] == ["port 80"]
    (problem,) = workspace.store.problems()
    assert problem.line == 1
    assert "merge conflict markers at line 1" in problem.message


def test_a_put_over_a_hand_edit_keeps_the_edit_in_history(opened: Opened, git: Callable[..., str]) -> None:
    """What a person wrote is recorded before memfs replaces it."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("v1", "semantic", id="note"))
    workspace.store.flush()
    path = workspace.root / stored.path
    path.write_text(path.read_text().replace("v1", "by hand"))
    workspace.store.put(MemoryItem("v2", "semantic", id="note"))
    workspace.store.flush()
    contents = git(workspace.root, "log", "--format=%H", "--", stored.path).split()
    assert len(contents) == 3
    assert "by hand" in git(workspace.root, "show", f"{contents[1]}:{stored.path}")
    assert git(workspace.root, "status", "--porcelain") == ""


def test_where_edits_are_left_alone_a_put_over_one_is_a_conflict(opened: Opened) -> None:
    """In ``leave`` mode only a caller who names the edited bytes may replace them."""
    workspace = opened(history__adopt="leave")
    stored = workspace.store.put(MemoryItem("v1", "semantic", id="note"))
    workspace.store.flush()
    path = workspace.root / stored.path
    path.write_text(path.read_text().replace("v1", "by hand"))
    with pytest.raises(Conflict):
        workspace.store.put(MemoryItem("v2", "semantic", id="note"))
    read = workspace.store.get("note")
    assert read is not None
    assert workspace.store.put(read.replace(content="v2"), expected=read.sha256).content == "v2"


def test_comments_and_key_order_survive_an_update(opened: Opened) -> None:
    """An API change of one field leaves the rest of a hand-written file as it was (design section 3)."""
    workspace = opened()
    text = "# why this matters\ntags:\n- b\n- a   # the main one\ncontent: old text\n\n# keep\ntitle: T\n"
    path = write(workspace, f"{SEMANTIC}/mine.yaml", text)
    read = workspace.store.get("mine")
    assert read is not None
    workspace.store.put(read.replace(content="new text"))
    after = path.read_text()
    assert after.startswith("# why this matters\ntags:\n- b\n- a   # the main one\n")
    assert after.endswith("content: new text\n\n# keep\ntitle: T\n")


def test_an_id_whose_owner_was_lost_is_written_all_the_same(opened: Opened) -> None:
    """A file that is known, but whose id nobody owns, does not make every plan outdated."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("We chose PostgreSQL.", "semantic", id="database"))
    workspace.store.index_sync._ids().give("database", "")

    again = workspace.store.put(stored.replace(content="We chose MariaDB.", path="", sha256=""))

    assert (again.path, workspace.store.get("database").content) == (stored.path, "We chose MariaDB.")  # type: ignore[union-attr]


class _FakeWatcher:
    """A watcher with the events that a test gives it."""

    degraded, hears_at_once = "", True

    def __init__(self) -> None:
        self.paths: list[str] = []

    def drain(self) -> list[str]:
        """Each path once."""
        paths, self.paths = self.paths, []
        return paths

    def give_back(self, paths: Collection[str] | None) -> None:
        """They come once more."""
        assert paths is not None
        self.paths += paths

    def close(self) -> None:
        """Nothing is open."""


def test_what_others_wrote_and_committed_is_no_reason_to_compare_all_files_where_events_came(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal no longer has what was written; the events do, and that goes for a question as for a write."""
    workspace, other, watcher = opened(), opened(), _FakeWatcher()
    workspace.store.watch_with(lambda: watcher, at_once=True)

    def write_and_commit(text: str) -> None:
        stored = other.store.put(MemoryItem(text, "semantic"))
        other.store.flush()
        watcher.paths.append(str(stored.path))

    with monkeypatch.context() as forbidding:
        forbidding.setattr(workspace.parts.tree, "listings", lambda *_, **__: pytest.fail("all files were compared"))
        write_and_commit("Tomatoes need sun.")
        assert len(found(workspace, "tomato")) == 1
        write_and_commit("Ferns like shade.")
        workspace.store.put(MemoryItem("Cacti need little.", "semantic"))
        assert len(found(workspace, "fern")) == 1


def test_events_that_could_not_be_looked_at_are_looked_at_by_the_next_write(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails while it learns what others wrote leaves that to be learned."""
    workspace, other, watcher = opened(), opened(), _FakeWatcher()
    workspace.store.watch_with(lambda: watcher, at_once=True)
    assert found(workspace, "tomato") == []
    stored = other.store.put(MemoryItem("Tomatoes need sun.", "semantic"))
    other.store.flush()
    watcher.paths.append(str(stored.path))
    with monkeypatch.context() as failing:
        failing.setattr(workspace.store.index_sync, "refresh", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            workspace.store.put(MemoryItem("Cacti need little.", "semantic"))
    assert found(workspace, "tomato") == [stored.id]


def test_a_copy_made_by_hand_takes_no_id(opened: Opened, git: Git) -> None:
    """The file that memfs wrote, or a commit has, keeps the id in every process; the copy is never committed."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("The port is 80.", "semantic", id="port"))
    copy = "ContextMemory/memories/procedural/port.yaml"
    write(workspace, copy, (workspace.root / stored.path).read_text())
    for _ in "waits", "committed":
        again = opened(workspace.root)
        assert [hit.item.path for hit in again.recaller.search("port").hits] == [stored.path]
        assert [problem.path for problem in again.store.problems()] == [copy]
        assert again.update("port", content="The port is 81.").path == stored.path
        assert [hit.item.content for hit in again.recaller.search("port").hits] == ["The port is 81."]
        again.store.flush(adopt=True)
        again.close()
    assert git(workspace.root, "ls-files", "*port.yaml").split() == [stored.path]


def test_an_older_file_that_came_by_git_has_the_id_for_all(opened: Opened, git: Git) -> None:
    """What one process saw, the next one knows that does not look; a change never goes to the file without the id."""
    first = opened(index__engine="sqlite")
    first.store.put(MemoryItem("The port is 80.", "semantic", id="port"))
    first.store.flush(adopt=True)
    assert found(first, "port") == ["port"]
    first.close()
    older = f"{SEMANTIC}/older/port.yaml"
    write(first, older, "content: The port was 79.\ncreated: '2020-01-01'\n")
    git(first.root, "add", ".")
    git(first.root, "commit", "-q", "-m", "older")
    second = opened(first.root, index__engine="sqlite")
    assert second.update("port", content="The port is 81.").path == older
    assert [hit.item.path for hit in second.recaller.search("port").hits] == [older]
    second.close()
    third = opened(first.root, index__engine="sqlite")
    assert third.store.locate("port") == older
    third.close()
