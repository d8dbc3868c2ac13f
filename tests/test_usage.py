"""Usage: counts of recalls that survive processes, and never delay an answer (M3)."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.patience import LONG
from memfs import MemoryItem, Query, Workspace
from memfs.admin.backup_file import restore
from memfs.errors import CorruptRecord
from memfs.fs import io
from memfs.usage import ASIDE, FILE, Usage, Use, snapshot

TABLE = "CREATE TABLE used (id TEXT PRIMARY KEY, count INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the counts are."""
    return tmp_path / "state" / FILE


@pytest.fixture
def usage(path: Path) -> Iterator[Usage]:
    """Counts of one workspace."""
    made = Usage(path)
    yield made
    made.close()


def test_uses_are_counted_with_the_last_time(usage: Usage) -> None:
    """An item's use is how often it came back, and when last, whatever order the times come in (M3)."""
    usage.touch(["a", "b"], NOON)
    usage.touch(["a"], NOON - timedelta(days=1))
    assert usage.of(["a", "b", "never"]) == {"a": Use(2, NOON), "b": Use(1, NOON)}
    assert usage.all() == usage.of(["b", "a"])


def test_uses_are_known_before_they_are_written(usage: Usage) -> None:
    """Anyone who asks right after a recall sees it counted, though the disk is written to in the background (M3)."""
    for number in range(1, 30):
        usage.touch(["a"], NOON)
        assert usage.of(["a"])["a"].count == number


def test_many_ids_are_asked_at_once(usage: Usage) -> None:
    """More ids than one statement takes are no trouble."""
    ids = [f"item-{number}" for number in range(1203)]
    usage.touch(ids, NOON)
    assert len(usage.of(ids)) == 1203


def test_threads_lose_no_count(usage: Usage) -> None:
    """Several threads may count at once."""
    threads = [
        threading.Thread(target=lambda: [usage.touch(["a"], NOON) for _ in range(50)] and None) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert usage.of(["a"])["a"].count == 200


def test_two_handles_share_the_counts(usage: Usage, path: Path) -> None:
    """Counts of one process are seen by another (M7)."""
    other = Usage(path)
    usage.touch(["a"], NOON)
    usage.flush()
    other.touch(["a"], NOON)
    other.close()
    assert usage.of(["a"])["a"].count == 2


@pytest.mark.parametrize(("count", "score"), [(0, 1.0), (1, 1.05), (14, 1.9799), (15, 2.0), (10**9, 2.0)])
def test_relevance_grows_with_use_up_to_two(count: int, score: float) -> None:
    """``relevance_score`` grows by a twentieth a use, and never beyond 2 (M3)."""
    assert Use(count).relevance == pytest.approx(score, abs=1e-4)


def test_counts_survive_a_kill(path: Path) -> None:
    """What was counted before ``kill -9`` is there afterwards."""
    code = (
        "import os, signal, sys; from datetime import UTC, datetime; from pathlib import Path\n"
        "from memfs.usage import Usage\n"
        "usage = Usage(Path(sys.argv[1])); usage.touch(['a'], datetime.now(UTC)); usage.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    again = Usage(path)
    assert again.of(["a"])["a"].count == 1
    again.close()


def test_a_forked_child_counts_for_itself(usage: Usage, path: Path) -> None:
    """A child neither repeats its parent's counts nor breaks its connection."""
    usage.touch(["a"], NOON)
    usage.flush()
    child = os.fork()
    if child == 0:
        usage.touch(["a"], NOON)
        usage.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    usage.touch(["a"], NOON)
    assert usage.of(["a"])["a"].count == 3


def test_forgotten_ids_leave_no_bytes(usage: Usage, path: Path) -> None:
    """A forgotten id is gone from the file itself: an id can reveal what its item was about (B6)."""
    usage.touch(["secret-project-aurora", "b"], NOON)
    usage.forget(["secret-project-aurora"])
    assert usage.all().keys() == {"b"}
    usage.close()
    assert b"aurora" not in b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_without_a_file_there_are_no_uses(usage: Usage, path: Path) -> None:
    """Asking makes no file; deleting the file loses counts and nothing else."""
    assert (usage.of(["a"]), usage.all()) == ({}, {})
    assert not path.parent.exists()
    usage.touch(["a"], NOON)
    usage.close()
    path.unlink()
    with closing(Usage(path)) as later:
        assert later.of(["a"]) == {}
        later.touch(["a"], NOON)
        assert later.of(["a"])["a"].count == 1


@pytest.mark.parametrize(
    "content", [b"this is no database", b"SQLite format 3\0" + b"\xff" * 5000, b""], ids=["text", "broken", "empty"]
)
def test_a_damaged_file_is_started_over(usage: Usage, path: Path, content: bytes) -> None:
    """Damage costs counts, never an answer, and the file is kept beside."""
    path.parent.mkdir()
    path.write_bytes(content)
    assert usage.of(["a"]) == {}
    usage.touch(["a"], NOON)
    assert usage.of(["a"])["a"].count == 1
    assert not content or path.with_name(ASIDE[0]).read_bytes() == content
    assert bool(content) == ("was set aside" in usage.problem)


def test_rows_that_nobody_writes_are_taken_with_care(usage: Usage, path: Path) -> None:
    """A planted file gives no count below zero and no time out of reach, and other tables of it are replaced."""
    path.parent.mkdir()
    with sqlite3.connect(path) as base:
        base.execute(TABLE)
        base.executemany("INSERT INTO used VALUES (?, ?, ?)", [("a", -5, -1), ("b", 1 << 60, 1 << 62)])
    base.close()
    found = usage.all()
    assert (found["a"].count, found["b"].count) == (0, 1_000_000_000)
    assert found["b"].relevance == 2.0
    usage.close()
    path.unlink()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE used (name TEXT)")
    base.close()
    with closing(Usage(path)) as later:
        later.touch(["a"], NOON)
        assert later.of(["a"])["a"].count == 1


@pytest.mark.parametrize(
    "planted",
    [
        [f"CREATE VIEW used(id, count, last) AS {ENDLESS} SELECT 'a' || x, 1, 1 FROM c"],
        [
            TABLE,
            "CREATE TABLE z (x)",
            f"CREATE TRIGGER t AFTER INSERT ON used BEGIN INSERT INTO z {ENDLESS} SELECT x FROM c; END",
        ],
    ],
    ids=["view", "trigger"],
)
def test_nothing_in_a_planted_file_runs(usage: Usage, path: Path, planted: list[str]) -> None:
    """A view or trigger in a file that came with an unpacked repository could run forever: the file is started over."""
    path.parent.mkdir()
    with sqlite3.connect(path) as base:
        for statement in planted:
            base.execute(statement)
    base.close()
    assert usage.of(["a"]) == {}
    usage.touch(["a"], NOON)
    usage.flush()
    assert usage.of(["a"])["a"].count == 1


def test_a_link_is_not_followed(usage: Usage, path: Path, tmp_path: Path) -> None:
    """A link that came with an unpacked repository leads to nobody's database."""
    victim = tmp_path / "victim.db"
    with sqlite3.connect(victim) as base:
        base.execute("CREATE TABLE mine (x)")
    base.close()
    before = victim.read_bytes()
    path.parent.mkdir()
    path.symlink_to(victim)
    usage.touch(["a"], NOON)
    usage.flush()
    assert "something else is in the place" in usage.problem
    assert victim.read_bytes() == before
    assert usage.of(["a"]) == {}


def test_a_full_disk_costs_counts_only(usage: Usage) -> None:
    """Where the disk takes nothing, counting fails in silence and says why when asked."""

    def full(name: str, _: str) -> None:
        if name == "state":
            raise OSError(errno.ENOSPC, "no space")

    before = io.set_hook(full)
    try:
        usage.touch(["a"], NOON)
        usage.flush()
    finally:
        io.set_hook(before)
    assert usage.of(["a"]) == {}
    assert "no space" in usage.problem


def test_a_backup_takes_a_whole_database(usage: Usage, path: Path, tmp_path: Path) -> None:
    """What a backup takes holds the counts that are still beside the file, and can be opened elsewhere (S21)."""
    usage.touch(["a", "b"], NOON)
    usage.flush()
    taken = snapshot(path)
    assert taken is not None
    (tmp_path / FILE).write_bytes(taken)
    copy = Usage(tmp_path / FILE)
    assert copy.all() == usage.all()
    copy.close()


def test_what_cannot_be_backed_up_says_so(path: Path) -> None:
    """A damaged file is named, an absent one is no trouble."""
    assert snapshot(path) is None
    path.parent.mkdir()
    path.write_bytes(b"x" * 4096)
    with pytest.raises(CorruptRecord, match="cannot be read"):
        snapshot(path)


# -- in a workspace -----------------------------------------------------------------------------------------------
@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """Three items about apples, of one moment."""
    made = opened()
    for name in ("a", "b", "c"):
        made.store.put(MemoryItem("the apple harvest", id=name, timestamp=NOON))
    return made


def test_a_recall_counts_what_it_brought_back(workspace: Workspace) -> None:
    """Only the hits of an answer count, not candidates that were cut off, and not what is listed or read (M3)."""
    hits = workspace.recaller.search(Query(text="apple", limit=2)).hits
    workspace.store.get("c")
    workspace.store.select(Query())
    assert workspace.usage.all().keys() == {hit.item.id for hit in hits}
    assert {use.count for use in workspace.usage.all().values()} == {1}


def test_use_changes_the_order_under_learning(workspace: Workspace) -> None:
    """What came back before comes first under ``learning``, and has no say under ``default`` (M1)."""
    workspace.usage.touch(["c"] * 20, NOON)
    orders = {
        name: [hit.item.id for hit in workspace.recaller.search(Query(text="apple", strategy=name)).hits]
        for name in ("default", "learning")
    }
    assert orders == {"default": ["a", "b", "c"], "learning": ["c", "a", "b"]}


def test_a_recall_writes_nothing_that_git_tracks(workspace: Workspace, git: Callable[..., str]) -> None:
    """Counts are outside the tree, and no file of an item changes (M3)."""
    workspace.store.flush()
    before = {path: path.read_bytes() for path in workspace.root.rglob("*.yaml")}
    workspace.recaller.search("apple")
    workspace.usage.flush()
    assert {path: path.read_bytes() for path in workspace.root.rglob("*.yaml")} == before
    assert git(workspace.root, "status", "--porcelain") == ""


def test_an_answer_comes_though_the_disk_takes_no_counts(workspace: Workspace) -> None:
    """A full disk costs counts, never an answer (M3)."""

    def full(name: str, _: str) -> None:
        if name == "state":
            raise OSError(errno.ENOSPC, "no space")

    before = io.set_hook(full)
    try:
        for name in ("default", "learning"):
            assert len(workspace.recaller.search(Query(text="apple", strategy=name)).hits) == 3
        workspace.usage.flush()
    finally:
        io.set_hook(before)
    assert workspace.usage.problem
    assert workspace.usage.all() == {}


def test_counts_are_part_of_a_backup(workspace: Workspace, tmp_path: Path, opened: Callable[..., Workspace]) -> None:
    """A workspace that was made again from a backup knows how often its items were used (S21)."""
    workspace.usage.touch(["a", "a", "b"], NOON)
    workspace.usage.flush()
    made = workspace.backups.make(tmp_path / "backups")
    restored = restore(made[0].path, tmp_path / "again")
    assert opened(restored.root).usage.all() == workspace.usage.all()


def test_an_erase_takes_the_counts_along(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id of an erased item is not kept among the counts, nor in a damaged file of them (B6)."""
    workspace.store.flush()
    aside = [workspace.parts.repository.state / name for name in ASIDE]
    for path in aside:
        path.write_bytes(b"SQLite format 3 a")
    monkeypatch.setattr("memfs.usage._GATHER_SECONDS", LONG)  # also those that are not written down yet
    workspace.usage.touch(["a", "b"], NOON)
    workspace.eraser.erase("a")
    assert not any(path.exists() for path in aside)
    assert workspace.usage.all().keys() == {"b"}


def test_a_repository_that_was_moved_away_is_not_made_again(tmp_path: Path) -> None:
    """Counts that are written after somebody moved the folder are lost, and nothing is made in its place (B5)."""
    state = tmp_path / "repository" / ".git" / "memfs" / "key"
    state.mkdir(parents=True)
    usage = Usage(state / FILE)
    (tmp_path / "repository").rename(tmp_path / "away")
    usage.touch(["a"], datetime.now(UTC))
    usage.flush()
    assert not (tmp_path / "repository").exists()
    assert "gone" in usage.problem
    (tmp_path / "away").rename(tmp_path / "repository")
    usage.touch(["a"], datetime.now(UTC))
    assert usage.of(["a"])["a"].count == 1
    usage.close()
