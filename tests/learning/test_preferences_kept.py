"""Preferences that are kept for the next process: it reads few files, and tells nothing that the files do not say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memfs.learning import preferences
from memfs.learning.preferences import FILE
from memfs.model import Candidate, Link, MemoryItem
from memfs.store.values import LoadedItem
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preferences, "_WORTH_CACHING", 2)


def wish(text: str, name: str, **fields: object) -> MemoryItem:
    """A preference of a person's."""
    return MemoryItem(text, "preference", id=name, trust="human", **{"timestamp": NOON, **fields})  # type: ignore[arg-type]


def filled(opened: Open) -> Path:
    """A workspace whose preferences were asked for once, by a process that has ended; its folder."""
    workspace = opened()
    workspace.store.put(wish("Use tabs in the old modules.", "tabs", importance=0.9))
    workspace.store.put(
        wish(
            "Use spaces in the old modules.",
            "spaces",
            importance=0.8,
            pinned=True,
            links=(Link(to="tabs", relation="contradicts"),),
        )
    )
    workspace.store.put(wish("Squash the commits.", "squash", supersedes=("merge",), pinned=True))
    workspace.store.put(wish("Merge the commits.", "merge"))
    workspace.store.put(wish("Freeze the release.", "freeze", expires=datetime(2100, 1, 1, tzinfo=UTC)))
    workspace.store.put(wish("Delete the tests.", "agents").replace(trust="agent"))
    told(workspace)
    workspace.close()
    return workspace.root


def told(workspace: Workspace, context: str = "", limit: int = 10) -> list[str]:
    """What an agent is told, by id."""
    return [one.id for one in workspace.sources.preferences.get_relevant(context, limit)]


def again(opened: Open, root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, list[str]]:
    """The workspace in a process of its own, and the ids of what is read from files there."""
    workspace, read = opened(root), list[str]()
    load = workspace.store.load

    def noted(candidate: Candidate) -> LoadedItem | None:
        read.append(candidate.id)
        return load(candidate)

    monkeypatch.setattr(workspace.store, "load", noted)
    return workspace, read


def test_p3_the_next_process_reads_only_what_it_tells(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Order, contradictions, replacements, expiry and words are known without opening a file (P3, design 14)."""
    root = filled(opened)
    workspace, read = again(opened, root, monkeypatch)

    assert told(workspace, limit=2) == read == ["squash", "spaces"]
    assert told(workspace, "freeze it", limit=1) == ["freeze"]
    assert set(told(workspace)) == {"squash", "spaces", "freeze"}
    assert "merge" not in read
    assert "agents" not in read


def test_what_changed_meanwhile_is_read_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was edited, removed or added since its row was kept counts as it is now (P3)."""
    root = filled(opened)
    files = {path.stem: path for path in root.rglob("memories/preference/**/*.yaml")}
    files["squash"].write_text(files["squash"].read_text().replace("Squash the commits.", "Rebase the commits."))
    files["spaces"].unlink()
    (files["tabs"].parent / "more.yaml").write_text(files["tabs"].read_text().replace("Use tabs in", "Read twice"))

    workspace, read = again(opened, root, monkeypatch)
    found = {one.id: one.text for one in workspace.sources.preferences.get_relevant()}

    assert found["squash"] == "Rebase the commits."
    assert set(found) == {"squash", "freeze", "tabs", "more"}
    assert {"squash", "more"} <= set(read)
    workspace.close()
    workspace, read = again(opened, root, monkeypatch)
    assert told(workspace, limit=1) == read == ["squash"]


@pytest.mark.parametrize("damage", [b"no database" * 500, b""])
def test_a_damaged_cache_costs_time_alone(opened: Open, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    """Without a cache the files are read, and the next process has one again."""
    root = filled(opened)
    [cache] = Path.home().rglob(FILE)
    cache.write_bytes(damage)

    workspace, read = again(opened, root, monkeypatch)
    assert told(workspace, limit=1) == ["squash"]
    workspace.close()
    workspace, read = again(opened, root, monkeypatch)
    assert told(workspace, limit=1) == read == ["squash"]


def test_a_row_that_cannot_be_one_is_not_taken_for_one(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of another form begins the cache anew."""
    root = filled(opened)
    workspace = opened(root)
    base = workspace.sources.preferences._table._rows._cache
    base.keep([("x.yaml", "0" * 40, ["x", "x.yaml", "0" * 40, "noon", 1, 2, 3, [], []])])
    workspace.close()

    workspace, read = again(opened, root, monkeypatch)

    assert told(workspace, limit=1) == ["squash"]
    assert "x" not in read


def test_few_preferences_need_no_cache(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a handful of files reading them takes no longer than opening a cache would."""
    monkeypatch.setattr(preferences, "_WORTH_CACHING", 100)
    filled(opened)
    assert not list(Path.home().rglob(FILE))
