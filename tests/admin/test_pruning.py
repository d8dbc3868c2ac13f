"""Pruning: what goes, where it goes, and every way back (M3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from math import log1p
from pathlib import Path
from typing import Any

import pytest

from memfs import Conflict, IdExists, ItemNotFound, MemoryItem, Query, SchemaInvalid, Workspace
from memfs.admin.prune import Pruner, importance_of, remove_leftovers
from memfs.format.codec import PRUNED
from memfs.model import Candidate
from memfs.model.time import micros, utc_now
from memfs.store import reader
from memfs.usage import Use

Opened = Callable[..., Workspace]
Git = Callable[..., str]
NOW = datetime(2026, 3, 10, tzinfo=UTC)
CONFIGURATION = "ContextMemory/configuration"


def learns(root: Path, **values: Any) -> None:
    """Write the memory context by hand."""
    config = "".join(f"    {name}: {value}\n" for name, value in values.items())
    path = root / CONFIGURATION / "memory_context.yaml"
    path.write_text(f"metadata:\n  type: memory\n  name: Test\npolymorphic_config:\n  memory_config:\n{config}")


def keeps(root: Path, **values: Any) -> None:
    """Write the retention policy by hand."""
    (root / CONFIGURATION / "retention_policy.json").write_text(json.dumps({"prune": values}))


def filled(workspace: Workspace, count: int = 5) -> dict[str, MemoryItem]:
    """So many items, each a day younger than the one before."""
    today = utc_now()
    return {
        f"m{number}": workspace.store.put(
            MemoryItem(f"apple {number}", id=f"m{number}", timestamp=today - timedelta(days=count - number))
        )
        for number in range(count)
    }


def ids(found: Any) -> list[str]:
    """The ids of weak items, in order."""
    return [weak.item.id for weak in found]


@pytest.mark.parametrize(
    ("kind", "days", "uses", "importance", "expected"),
    [
        ("semantic", 0, 0, 1.0, 1.0),
        ("semantic", 73, 0, 1.0, 0.8),
        ("semantic", 3650, 0, 1.0, 0.1),
        ("semantic", -5, 0, 1.0, 1.0),
        ("semantic", 0, 3, 1.0, 1.05**3 * (1 + log1p(3))),
        ("semantic", 0, 50, 1.0, 2.0 * (1 + log1p(50))),
        ("pattern", 0, 0, 1.0, 2.0),
        ("semantic", 0, 0, 2.5, 2.5),
    ],
)
def test_what_an_item_is_worth_keeping(kind: str, days: int, uses: int, importance: float, expected: float) -> None:
    """Importance x relevance_score x (1 + ln(1 + n)) x max(0.1, 1 - days / 365), patterns twice (M3)."""
    written = micros(NOW - timedelta(days=days))
    one = Candidate(id="a", path="p", similarity=0, type=kind, time=written, importance=importance)
    assert importance_of(one, Use(uses, NOW), NOW) == pytest.approx(expected)


def test_above_the_most_the_weakest_go(opened: Opened) -> None:
    """The surplus goes, weakest first: old before new, unused before used, and use saves an old one (M3)."""
    workspace = opened()
    filled(workspace)
    learns(workspace.root, max_memories=3)
    workspace.usage.touch(["m0"], utc_now())
    assert workspace.pruner.crowded()
    assert ids(workspace.pruner.due()) == ["m1", "m2"]
    assert "2 above" in workspace.pruner.due()[0].reason
    result = workspace.pruner.prune()
    assert (ids(result.items), result.action) == (["m1", "m2"], "archive")
    assert workspace.store.count() == 3
    assert ids(workspace.pruner.due()) == []
    assert not workspace.pruner.crowded()


def test_new_unread_memories_are_not_the_first_to_go(opened: Opened) -> None:
    """A memory stored this moment is worth more than an older one that was read long ago (M3)."""
    workspace = opened()
    workspace.store.put(MemoryItem("old apple", id="old", timestamp=utc_now() - timedelta(days=300)))
    workspace.usage.touch(["old"], utc_now())
    workspace.store.put(MemoryItem("new apple", id="new"))
    learns(workspace.root, max_memories=1)
    assert ids(workspace.pruner.due()) == ["old"]


def test_too_weak_ones_go_whatever_the_count(opened: Opened) -> None:
    """A bad signal that takes an item below ``prune_below`` makes it due at once (M3)."""
    workspace = opened()
    filled(workspace)
    assert ids(workspace.pruner.due()) == []
    for _ in range(5):
        changed = workspace.feedback.give("m3", False)
    assert ids(workspace.pruner.due()) == ["m3"]
    assert "below 0.1" in workspace.pruner.due()[0].reason
    assert ids(workspace.pruner.keep_up().items) == []
    assert ids(workspace.pruner.keep_up(changed).items) == ["m3"]


def test_pinned_items_and_the_conventions_of_people_stay(opened: Opened) -> None:
    """Neither goes, however weak it is and however many there are (M3)."""
    workspace = opened()
    old = utc_now() - timedelta(days=1000)
    for item in (
        MemoryItem("a", id="pinned", pinned=True, importance=0.0, timestamp=old),
        MemoryItem("b", "convention", id="ours", trust="human", importance=0.0, timestamp=old),
        MemoryItem("c", "convention", id="theirs", trust="agent", importance=0.5, timestamp=old),
        MemoryItem("d", id="plain"),
    ):
        workspace.store.put(item)
    learns(workspace.root, max_memories=1)
    assert ids(workspace.pruner.due()) == ["theirs", "plain"]


def test_the_file_decides_what_is_pinned(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pin set by hand this moment holds, whatever the index knew."""
    workspace = opened()
    put = workspace.store.put(MemoryItem("a", id="a", importance=0.0))
    stale = workspace.store.candidates(Query())
    path = workspace.root / put.path
    path.write_text(path.read_text() + "pinned: true\n")
    monkeypatch.setattr(workspace.store, "candidates", lambda _: stale)
    assert ids(workspace.pruner.prune().items) == []
    assert path.exists()


def test_a_dry_run_changes_nothing(opened: Opened, git: Git) -> None:
    """``dry_run`` says what would go (M3)."""
    workspace = opened(history__commit="each")
    filled(workspace)
    learns(workspace.root, max_memories=2)
    head = git(workspace.root, "rev-parse", "HEAD")
    assert ids(workspace.pruner.prune(dry_run=True).items) == ["m0", "m1", "m2"]
    assert (git(workspace.root, "rev-parse", "HEAD"), workspace.store.count()) == (head, 5)


def test_pruned_items_are_in_the_archive_and_nowhere_else(opened: Opened, git: Git) -> None:
    """One commit moves the bytes as they are; recall, list and count do not see them there (M3)."""
    workspace = opened(history__commit="each")
    before = filled(workspace)
    learns(workspace.root, max_memories=3)
    files = {name: (workspace.root / before[name].path).read_bytes() for name in ("m0", "m1")}
    blobs = git(workspace.root, "ls-tree", "-r", "HEAD")
    workspace.pruner.prune()
    for name, data in files.items():
        assert (workspace.root / PRUNED / "semantic" / f"{name}.yaml").read_bytes() == data
        assert not (workspace.root / before[name].path).exists()
    assert git(workspace.root, "log", "-1", "--format=%s") == (
        f"Prune: {before['m0'].content} and 1 more "
        "(into the archive: there are 5 memories, 2 above the most that are kept)\n"
    )
    assert sorted(git(workspace.root, "diff", "--name-status", "-M100%", "HEAD~1").split()[::3]) == ["R100", "R100"]
    assert all(
        row.split()[2] in blobs for row in git(workspace.root, "ls-tree", "-r", "HEAD").splitlines() if PRUNED in row
    )
    assert {hit.item.id for hit in workspace.recaller.search("apple").hits} == {"m2", "m3", "m4"}
    assert [item.id for item in workspace.pruner.pruned.list()] == ["m1", "m0"]
    assert workspace.store.get("m0") is None
    assert workspace.checker.check() == []
    assert workspace.store.hand_edits() == [f"{CONFIGURATION}/memory_context.yaml"]


@pytest.mark.parametrize("way", ["rollback", "rollback of one", "git revert"])
def test_every_way_back_works(opened: Opened, git: Git, way: str) -> None:
    """What was pruned comes back with its bytes, by memfs or by git, and leaves the archive (M3)."""
    workspace = opened(history__commit="each")
    before = filled(workspace)
    learns(workspace.root, max_memories=4)
    workspace.store.flush(adopt=True)
    data = (workspace.root / before["m0"].path).read_bytes()
    workspace.pruner.prune()
    if way == "rollback":
        workspace.history.restore("HEAD~1")
    elif way == "rollback of one":
        workspace.history.restore("HEAD~1", "m0")
    else:
        git(workspace.root, "revert", "--no-edit", "HEAD")
    assert (workspace.root / before["m0"].path).read_bytes() == data
    assert not (workspace.root / PRUNED / "semantic" / "m0.yaml").exists()
    assert "m0" in {hit.item.id for hit in workspace.recaller.search("apple").hits}
    assert git(workspace.root, "status", "--porcelain") == ""


def test_the_policy_may_delete(opened: Opened, git: Git) -> None:
    """Where ``prune.action`` is ``delete`` nothing is in the archive; history brings it back (M3)."""
    workspace = opened(history__commit="each")
    filled(workspace)
    learns(workspace.root, max_memories=4)
    keeps(workspace.root, action="delete")
    result = workspace.pruner.prune()
    assert (ids(result.items), result.action) == (["m0"], "delete")
    assert not (workspace.root / PRUNED).exists()
    assert "for good; history has them" in git(workspace.root, "log", "-1", "--format=%s")
    workspace.history.restore("HEAD~1", "m0")
    assert workspace.store.get("m0") is not None


def test_the_policy_says_what_is_too_weak(opened: Opened) -> None:
    """``prune.below`` of the retention policy wins over the memory context's ``prune_below``."""
    workspace = opened()
    filled(workspace)
    workspace.feedback.give("m3", False)
    learns(workspace.root, prune_below=0.7)
    assert ids(workspace.pruner.due()) == ["m3"]
    keeps(workspace.root, below=0.3)
    assert ids(workspace.pruner.due()) == []


def test_an_invalid_policy_prunes_nothing(opened: Opened) -> None:
    """What cannot be understood is named, and nothing goes."""
    workspace = opened()
    filled(workspace)
    learns(workspace.root, max_memories=1)
    keeps(workspace.root, action="burn")
    with pytest.raises(SchemaInvalid):
        workspace.pruner.prune()
    assert workspace.store.count() == 5


def test_a_change_meanwhile_is_looked_at_again(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that somebody changes between the look and the write is judged by what it is then."""
    workspace = opened()
    put = workspace.store.put(MemoryItem("a", id="a", importance=0.0))
    real = Pruner._due
    raced = []

    def due(pruner: Pruner, policy: Any) -> Any:
        found = real(pruner, policy)
        if not raced:
            raced.append(True)
            workspace.store.put(put.replace(importance=5.0))
        return found

    monkeypatch.setattr(Pruner, "_due", due)
    assert ids(workspace.pruner.prune().items) == []
    assert workspace.store.count() == 1


def test_pruning_gives_up_when_nothing_rests(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends within three tries (L7)."""
    workspace = opened()
    workspace.store.put(MemoryItem("a", id="a", importance=0.0))
    real = Pruner._due

    def due(pruner: Pruner, policy: Any) -> Any:
        found = real(pruner, policy)
        item = workspace.store.get("a")
        assert item is not None
        workspace.store.put(item.replace(content=item.content + "!"))
        return found

    monkeypatch.setattr(Pruner, "_due", due)
    with pytest.raises(Conflict):
        workspace.pruner.prune()
    assert workspace.store.count() == 1


def test_more_items_than_a_query_gives_are_all_looked_at(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the most that one query gives none is forgotten."""
    workspace = opened()
    learns(workspace.root, max_memories=1)
    monkeypatch.setattr(reader, "MOST", 4)
    with workspace.store.batch("many") as batch:
        for number in range(11):
            batch.put(MemoryItem("a", id=f"m{number}", timestamp=NOW + timedelta(hours=number // 2)))
    assert len(workspace.pruner.due()) == 10


def test_more_items_of_one_time_than_a_query_gives_are_all_looked_at(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import may give one time to all that it brings; nothing older is forgotten, either."""
    workspace = opened()
    learns(workspace.root, max_memories=1)
    monkeypatch.setattr(reader, "MOST", 4)
    with workspace.store.batch("many") as batch:
        for number in range(11):
            batch.put(MemoryItem("a", id=f"m{number}", timestamp=NOW - timedelta(hours=number // 9)))
    assert len(workspace.pruner.due()) == 10
    assert [one.id for one in workspace.store.every(Query())][-2:] == ["m9", "m10"]


def test_a_temporary_file_of_a_writer_that_is_at_it_is_not_a_leftover(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are there once no writer is at work are what killed processes left."""
    workspace = opened()
    live = workspace.root / "ContextMemory" / ".memfs-writing.tmp"
    live.write_text("half")
    hold = workspace.parts.lock.hold

    def waited(purpose: str) -> AbstractContextManager[None]:
        live.unlink()
        return hold(purpose)

    monkeypatch.setattr(workspace.parts.lock, "hold", waited)
    assert remove_leftovers(workspace.parts) == []


def test_what_no_commit_holds_is_brought_back_from_the_archive(opened: Opened) -> None:
    """Where a person commits, an item may be pruned that history never had; nobody's place is taken by it (M3)."""
    workspace = opened()
    before = filled(workspace, 2)
    learns(workspace.root, max_memories=1)
    workspace.pruner.prune()
    assert workspace.pruner.pruned.bring_back("m0").path == before["m0"].path
    assert not list((workspace.root / PRUNED).rglob("m0.*"))
    workspace.pruner.prune()
    workspace.store.put(MemoryItem("another", id="m0"))
    with pytest.raises(IdExists):
        workspace.pruner.pruned.bring_back("m0")
    with pytest.raises(ItemNotFound, match="nothing pruned"):
        workspace.pruner.pruned.bring_back("nothing")


def test_an_id_pruned_twice_keeps_its_newest_version(opened: Opened) -> None:
    """A second item of one id takes the first one's place in the archive; history has both."""
    workspace = opened()
    for text in ("first", "second"):
        workspace.store.put(MemoryItem(text, id="a", importance=0.0))
        workspace.pruner.prune()
    assert [item.content for item in workspace.pruner.pruned.list()] == ["second"]


def test_a_damaged_file_in_the_archive_is_named(opened: Opened) -> None:
    """One file that cannot be read hides no other."""
    workspace = opened()
    filled(workspace, 3)
    learns(workspace.root, max_memories=1)
    workspace.pruner.prune()
    (workspace.root / PRUNED / "semantic" / "m0.yaml").write_text("content: [")
    (workspace.root / PRUNED / "nothing").mkdir()
    (workspace.root / PRUNED / "nothing" / "x.yaml").write_text("content: x\n")
    assert [item.id for item in workspace.pruner.pruned.list()] == ["m1"]
    named = [problem.path for problem in workspace.pruner.pruned.problems()]
    assert [path.rpartition("/")[2] for path in named] == ["x.yaml", "m0.yaml"]
    assert set(named) <= {problem.path for problem in workspace.checker.check()}
