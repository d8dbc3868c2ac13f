"""The memory as it was at a revision: what counts of it, what it costs, and what cannot harm it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs.errors import (
    ContentError,
    HistoryUnavailable,
    ItemNotFound,
    QueryInvalid,
    SettingInvalid,
    StorageFull,
)
from memfs.fs import io
from memfs.model import MemoryItem, Query
from memfs.search.generations import LOCK, SHARED, WHOSE, folder_named
from memfs.team.asof import Past, RevisionItems, Travel
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def put(workspace: Workspace, name: str, content: str, **fields: object) -> str:
    """Store an item as a commit of its own; return the commit."""
    workspace.store.put(MemoryItem(content, id=name, **{"timestamp": THEN, **fields}))  # type: ignore[arg-type]
    return commit(workspace)


def commit(workspace: Workspace) -> str:
    """Commit all there is, hand edits too."""
    workspace.store.flush(adopt=True)
    head = workspace.repository.head().commit
    assert head is not None
    return head


def by_hand(git: Callable[..., str], workspace: Workspace) -> str:
    """Commit all there is as a person does, whatever it is; return the commit."""
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "by hand")
    return git(workspace.root, "rev-parse", "HEAD").strip()


def asked(past: Past, text: str, **wanted: object) -> dict[str, float]:
    """Ids and scores of an answer, best first."""
    return {hit.item.id: hit.score for hit in past.recall.search(Query(text=text, **wanted)).hits}  # type: ignore[arg-type]


def past_folder(workspace: Workspace) -> Path:
    """Where this user's cache has what was read of the past."""
    return folder_named(workspace.repository.common_dir, SHARED)


@contextmanager
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of the files that are parsed meanwhile."""
    found: list[str] = []
    made = RevisionItems._parsed

    def noted(self: RevisionItems, path: str, data: bytes | None) -> object:
        found.append(path)
        return made(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(RevisionItems, "_parsed", noted)
        yield found


# -- which revision ---------------------------------------------------------------------------------------------------
def test_any_name_of_a_revision_will_do(opened: Opened, git: Callable[..., str]) -> None:
    """B1: a commit, HEAD~n, a branch, a tag and a date name the same."""
    workspace = opened()
    first = put(workspace, "db", "we use postgres")
    git(workspace.root, "tag", "v1")
    git(workspace.root, "branch", "old")
    put(workspace, "db", "we use sqlite")
    for name in (first, first[:10], "HEAD~1", "v1", "old"):
        past = workspace.teams.past.at(name)
        assert (past.commit, past.store.find("db").content) == (first, "we use postgres")
    for name in ("now", "2999-01-01"):
        assert workspace.teams.past.at(name).store.find("db").content == "we use sqlite"
    with pytest.raises(HistoryUnavailable):
        workspace.teams.past.at("nowhere")
    with pytest.raises(HistoryUnavailable):
        workspace.teams.past.at("1990-01-01")


def test_a_day_means_the_whole_of_it(opened: Opened, git: Callable[..., str]) -> None:
    """B1: as in ``--until``; so today is what there is, and yesterday what there was in the evening."""
    workspace = opened()
    for content, when in (
        ("morning", "2026-03-01T06:00Z"),
        ("evening", "2026-03-01T23:59Z"),
        ("after", "2026-03-02T00:01Z"),
    ):
        workspace.store.put(MemoryItem(content, id="db", timestamp=THEN))
        git(workspace.root, "add", "-A")
        git(workspace.root, "commit", "-qm", content, GIT_COMMITTER_DATE=when)
    found = {
        name: workspace.teams.past.at(name).store.find("db").content for name in ("2026-03-01", "2026-03-01T12:00Z")
    }
    assert found == {"2026-03-01": "evening", "2026-03-01T12:00Z": "morning"}


def test_a_name_that_means_nothing_here_says_what_to_do(
    opened: Opened, git: Callable[..., str], tmp_path: Path
) -> None:
    """No upstream, a short reflog and a shallow clone are not damage."""
    workspace = opened()
    put(workspace, "db", "we use postgres")
    put(workspace, "db", "we use sqlite")
    for name in ("@{upstream}", "main@{99}"):
        with pytest.raises(HistoryUnavailable, match="names no revision") as found:
            workspace.teams.past.at(name)
        assert "git fsck" not in str(found.value)
    git(tmp_path, "clone", "-q", "--depth", "1", workspace.root.as_uri(), "shallow")
    for name in ("HEAD~1", "2000-01-01"):
        with pytest.raises(HistoryUnavailable, match="--unshallow"):
            opened(tmp_path / "shallow").teams.past.at(name)


def test_before_there_was_memory_nothing_is_found(opened: Opened, git: Callable[..., str], tmp_path: Path) -> None:
    """A revision without ContextMemory holds no item, and is not an error."""
    git(tmp_path, "init", "-q", "code")
    git(tmp_path / "code", "commit", "-q", "--allow-empty", "-m", "before")
    workspace = opened(tmp_path / "code")
    put(workspace, "db", "we use postgres")
    past = workspace.teams.past.at(git(tmp_path / "code", "rev-list", "--max-parents=0", "HEAD").strip())
    assert (past.tree, asked(past, "postgres"), past.store.count()) == ("", {}, 0)
    with pytest.raises(ItemNotFound):
        past.store.find("db")


# -- what of it counts ------------------------------------------------------------------------------------------------
def test_the_kinds_of_that_time_count(opened: Opened, git: Callable[..., str]) -> None:
    """A kind that kinds.yaml had then is one then, and none later."""
    workspace = opened()
    kinds = workspace.root / "ContextMemory/configuration/kinds.yaml"
    kinds.write_text("kinds:\n  recipe:\n    layer: semantic\n    description: how to cook\n")
    path = workspace.root / "ContextMemory/memories/recipe/soup.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("content: leek soup\n")
    first = by_hand(git, workspace)
    kinds.unlink()
    second = by_hand(git, workspace)
    before, after = (workspace.teams.past.at(name) for name in (first, second))
    assert list(asked(before, "leek", types={"recipe"})) == ["soup"]
    assert (asked(after, "leek"), [one.code for one in after.store.problems()]) == ({}, ["ContentError"])
    with pytest.raises(QueryInvalid):
        asked(after, "leek", types={"recipe"})


def test_how_recall_was_set_then_counts(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """[recall] is that of the revision; argument and environment of today go before; other tables are not looked at."""
    workspace = opened()
    toml = workspace.root / "memfs.toml"
    toml.write_text('[recall]\nlimit = 3\npreset = "time_weighted"\n[hooks]\nno_such_key = 1\n')
    first = commit(workspace)
    toml.write_text("[recall]\nlimit = 0\n")
    second = commit(workspace)
    toml.write_text("[recall]\nlimit = 7\n")
    settings = workspace.teams.past.at(first).settings
    assert (settings.limit, settings.preset, settings.deduplicate) == (3, "time_weighted", True)
    with pytest.raises(SettingInvalid, match=second[:10]):
        workspace.teams.past.at(second)
    monkeypatch.setenv("MEMFS_RECALL_LIMIT", "5")
    again = opened(workspace.root, recall__preset="fading")
    found = again.teams.past.at(first).settings
    assert (found.limit, found.preset) == (5, "fading")


def test_the_present_of_the_past_is_its_commit(opened: Opened) -> None:
    """Ages are counted from the commit's time, or from a time that is given, never from today."""
    workspace = opened()
    old, young = THEN - timedelta(days=400), THEN
    put(workspace, "old", "postgres pool", timestamp=old)
    first = put(workspace, "young", "postgres pool", timestamp=young)
    past = workspace.teams.past.at(first)
    assert past.now == past.time
    near = asked(workspace.teams.past.at(first, now=THEN), "postgres", strategy="time_weighted")
    far = asked(workspace.teams.past.at(first, now=THEN + timedelta(days=4000)), "postgres", strategy="time_weighted")
    assert near["young"] > 1.5 * near["old"]
    assert far["young"] < 1.2 * far["old"]


def test_equal_trees_give_equal_answers(opened: Opened) -> None:
    """B1: what changed elsewhere in the repository changes no answer, asked at one time."""
    workspace = opened()
    first = put(workspace, "db", "we use postgres")
    path = workspace.root / "ContextMemory/memories/semantic/plain.yaml"
    path.write_text("content: postgres without a time\n")
    second = commit(workspace)
    path.unlink()
    third = commit(workspace)
    one, other, same = (workspace.teams.past.at(name, now=THEN) for name in (first, second, third))
    assert one.tree == same.tree != other.tree
    assert asked(one, "postgres") == asked(same, "postgres") != asked(other, "postgres")


def test_a_file_without_a_time_has_the_time_that_is_asked_for(opened: Opened) -> None:
    """As a checkout made then would give it; also where the index was made for another time."""
    workspace = opened()
    path = workspace.root / "ContextMemory/memories/semantic/plain.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("content: postgres without a time\n")
    head = commit(workspace)
    put(workspace, "db", "we use postgres")
    for now in (THEN, THEN + timedelta(days=9), THEN):
        past = workspace.teams.past.at(head, now=now)
        (hit,) = past.recall.search(Query(text="postgres", since=now, until=now)).hits
        assert hit.item.timestamp == now
        assert past.recall.search(Query(text="postgres", until=now - timedelta(days=1))).hits == ()


def test_uses_neither_count_nor_are_counted(opened: Opened) -> None:
    """B1: what was brought back since does not change what is found then."""
    workspace = opened()
    put(workspace, "a", "postgres pool")
    first = put(workspace, "b", "postgres pool")
    past = workspace.teams.past.at(first)
    before = asked(past, "postgres", strategy="learning")
    for _ in range(3):
        workspace.recaller.search(Query(text="postgres", strategy="learning"))
    used = {use.count for use in workspace.usage.all()}
    assert asked(past, "postgres", strategy="learning") == before
    assert {use.count for use in workspace.usage.all()} == used


def test_items_are_found_by_id_beginning_and_path(opened: Opened, git: Callable[..., str]) -> None:
    """As in the present; what is missing is named, what is invalid says why."""
    workspace = opened()
    put(workspace, "use-postgres", "we use postgres")
    broken = workspace.root / "ContextMemory/memories/semantic/broken.yaml"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text("content: [unclosed\n")
    head = by_hand(git, workspace)
    store = workspace.teams.past.at(head).store
    path = store.locate("USE-postgres")
    assert {store.find(name).id for name in ("use-postgres", "use-p", path)} == {"use-postgres"}
    assert store.get("nothing") is None
    assert [one.id for one in store.select(Query(text="postgres"))] == ["use-postgres"]
    with pytest.raises(ContentError):
        store.get("broken")
    with pytest.raises(ItemNotFound, match="use-mysql"):
        store.find("use-mysql")
    answer = workspace.teams.past.at(head).recall.search(Query(text="postgres"))
    assert (answer.partial, [one.path for one in store.problems()]) == (
        True,
        [broken.relative_to(workspace.root).as_posix()],
    )


# -- what it costs ----------------------------------------------------------------------------------------------------
def test_only_files_not_met_before_are_read(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1: what was written or asked for here is known; another revision costs what differs, another process nothing."""
    workspace = opened()
    with workspace.store.batch("many") as batch:
        for number in range(20):
            batch.put(MemoryItem(f"postgres {number}", id=f"n{number}", timestamp=THEN))
    first = commit(workspace)
    second = put(workspace, "n3", "postgres changed")
    with reads(monkeypatch) as found:
        asked(workspace.teams.past.at(first), "postgres")
    assert found == []
    workspace.teams.past.close()
    shutil.rmtree(past_folder(workspace))
    with reads(monkeypatch) as found:
        asked(workspace.teams.past.at(first), "postgres")
    assert len(found) == 20
    with reads(monkeypatch) as found:
        asked(workspace.teams.past.at(second), "postgres")
    assert [path.rpartition("/")[2] for path in found] == ["n3.yaml"]
    travel = Travel(workspace.repository, workspace.settings)
    with reads(monkeypatch) as found:
        for name in (first, second):
            asked(travel.at(name), "postgres")
    travel.close()
    assert found == []


def test_files_that_hold_no_item_are_sifted_by_one_question(
    opened: Opened, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of invalid files cost a look at each path, not a new question each."""
    workspace = opened()
    put(workspace, "one", "postgres")
    for name in ("a", "b", "c"):
        (workspace.root / f"ContextMemory/memories/semantic/{name}.yaml").write_text("content: [unclosed\n")
    store = workspace.teams.past.at(by_hand(git, workspace)).store
    narrowed: list[Query] = []

    def noted(query: Query, _: object) -> Query:
        narrowed.append(query)
        return query

    monkeypatch.setattr("memfs.store.reader.in_types", noted)
    assert len(store.unread(Query())) == 3
    assert len(narrowed) == 1


# -- what cannot harm it ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("harm", ["garbage", "cut", "one bit", "gone"])
def test_a_damaged_cache_is_made_again(harm: str, opened: Opened) -> None:
    """Whatever becomes of its files, the answer stays."""
    workspace = opened()
    put(workspace, "a", "postgres pool")
    head = put(workspace, "b", "postgres deploy")
    wanted = asked(workspace.teams.past.at(head), "postgres")
    workspace.teams.past.close()
    for path in past_folder(workspace).iterdir():
        if path.name.endswith("-shm"):  # no file to SQLite, but memory that it shares
            continue
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(
            {
                "garbage": b"\0garbage" * 99,
                "cut": data[:middle],
                "one bit": data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :] if data else b"",
                "gone": b"",
            }[harm]
        )
        if harm == "gone":
            path.unlink()
    travel = Travel(workspace.repository, workspace.settings)
    assert asked(travel.at(head), "postgres") == wanted
    travel.close()
    assert asked(Travel(workspace.repository, workspace.settings).at("HEAD~1"), "postgres").keys() == {"a"}


def test_a_row_of_the_cache_that_was_changed_is_not_believed(opened: Opened) -> None:
    """B1: a disk that turns one letter into another changes no answer."""
    workspace = opened()
    put(workspace, "a", "postgres pool")
    head = put(workspace, "b", "postgres deploy")
    wanted = asked(workspace.teams.past.at(head), "postgres pool")
    workspace.teams.past.close()
    with closing(sqlite3.connect(past_folder(workspace) / "catalog.sqlite")) as base, base:
        base.execute("UPDATE facts SET json = replace(json, 'postgr', 'mysqlq')")
    travel = Travel(workspace.repository, workspace.settings)
    assert asked(travel.at(head), "postgres pool") == wanted
    travel.close()


def test_where_the_present_is_searched_by_meaning_it_says_that_the_past_is_not(opened: Opened) -> None:
    """M5, B1: a revision is found in by words, and the answer says so; else there is nothing to say."""
    workspace = opened()
    head = put(workspace, "a", "postgres pool")
    assert workspace.teams.past.at(head).notes == ()
    travel = Travel(workspace.repository, workspace.settings, lambda: True)
    assert "by words alone" in travel.at(head).notes[0]
    travel.close()


def test_without_room_for_a_cache_it_answers_all_the_same(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, and no home folder, keep nobody from asking."""
    workspace = opened()
    head = put(workspace, "a", "postgres pool")

    def full(*_: object, **__: object) -> None:
        raise StorageFull("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(io, "write_file", full)
        patch.setattr(io, "make_private_folder", full)
        assert list(asked(Travel(workspace.repository, workspace.settings).at(head), "postgres")) == ["a"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", _no_home)
    assert list(asked(Travel(workspace.repository, workspace.settings).at(head), "postgres")) == ["a"]


def _no_home() -> Path:
    raise RuntimeError


def test_erased_items_stay_erased(opened: Opened) -> None:
    """No revision that is left has it, and nothing of it stays in the cache."""
    workspace = opened()
    put(workspace, "gate", "the marten lives behind the garden gate")
    old = put(workspace, "other", "garden tools")
    travel = workspace.teams.past
    assert list(asked(travel.at(old), "garden"))
    workspace.eraser.erase("gate")
    assert {path.name for path in past_folder(workspace).iterdir()} == {LOCK, WHOSE}
    with pytest.raises(HistoryUnavailable):
        travel.at(old)
    assert list(asked(travel.at("HEAD"), "garden marten")) == ["other"]
    assert not any(b"marten" in path.read_bytes() for path in past_folder(workspace).iterdir())


def test_links_and_strange_names_in_a_tree_are_not_items(
    opened: Opened, git: Callable[..., str], tmp_path: Path
) -> None:
    """Row 41: a link leads nowhere, a name that cannot be an id is refused, and the rest is found."""
    workspace = opened()
    put(workspace, "a", "postgres pool")
    folder = next((workspace.root / "ContextMemory/memories/semantic").rglob("a.yaml")).parent
    (tmp_path / "secret.yaml").write_text("content: postgres secret\n")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "con.yaml").write_text("content: postgres device\n")
    (folder / ".hidden.yaml").write_text("content: postgres hidden\n")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "strange")
    past = workspace.teams.past.at("HEAD")
    assert list(asked(past, "postgres")) == ["a"]
    assert [one.code for one in past.store.problems()] == ["IdInvalid"]


def test_several_threads_may_travel_at_once(opened: Opened) -> None:
    """Each gets the answer of its revision."""
    workspace = opened()
    commits = [put(workspace, "a", f"postgres version {number}") for number in range(4)]
    found: dict[int, list[str]] = {}

    def ask(number: int) -> None:
        past = workspace.teams.past.at(commits[number % 4])
        found[number] = [hit.item.content for hit in past.recall.search("postgres").hits]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [f"postgres version {number % 4}"] for number in range(12)}
