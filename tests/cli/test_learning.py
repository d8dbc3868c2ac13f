"""``feedback``, ``prune``, and what ``list``, ``show`` and ``stats`` say of use (M3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Memfs


@pytest.fixture
def apple(memfs: Memfs) -> str:
    """A committed item."""
    return str(memfs("remember", "the apple harvest", "--id", "apple", "--json").json["id"])


def test_feedback_says_what_it_changed(memfs: Memfs, apple: str) -> None:
    """Both outputs have the importance before and after, and the commit that holds it (M3)."""
    found = memfs("agent", "feedback", apple, "+", "--reason", "it helped", "--json")
    assert found.code == 0
    assert found.json["importance"] == 1.45
    assert (found.json["before"], found.json["due"], found.json["durability"]) == (1.0, False, "commit")
    result = memfs("agent", "feedback", "app", "bad")
    assert (result.code, result.out) == (0, "apple  importance 1.45 -> 0.87\n")
    assert " (it helped)" in memfs("log", apple).out


@pytest.mark.parametrize("words", [("apple",), ("apple", "?"), ("+",)])
def test_an_invalid_signal_is_refused(memfs: Memfs, apple: str, words: tuple[str, ...]) -> None:
    """The command ends with 2 and says what would be right."""
    result = memfs("agent", "feedback", *words)
    assert (result.code, len(result.err.splitlines())) == (2, 2), "the choices are on one line"
    assert memfs("agent", "feedback", "nobody", "+").code == 1
    assert memfs("show", apple, "--json").json["importance"] == 1


def test_a_weak_item_is_pruned_listed_and_brought_back(memfs: Memfs, root: Path, apple: str) -> None:
    """From bad signals to the archive and back, by commands alone (M3)."""
    for _ in range(5):
        result = memfs("agent", "feedback", apple, "-")
    assert "weak enough to be pruned" in result.err
    dry = memfs("admin", "prune", "--dry-run", "--json").json
    assert ([row["id"] for row in dry["pruned"]], dry["action"], dry["revision"]) == (["apple"], "archive", None)
    assert "id: apple" in memfs("admin", "prune", "--dry-run").out
    done = memfs("admin", "prune", "--json").json
    assert done["revision"]
    assert memfs("recall", "apple", "--json").json["hits"] == []
    assert [item["id"] for item in memfs("list", "--archived", "--json").json["items"]] == ["apple"]
    assert memfs("list", "--archived").out.startswith("apple  semantic")
    assert memfs("list", "--json").json["items"] == []
    gone = memfs("show", apple)
    assert (gone.code, "'memfs restore apple' brings it back" in gone.err) == (1, True)
    (back,) = memfs("restore", apple, "--json").json["restored"]
    assert memfs("show", apple, "--json").json["path"] == back
    assert not list((root / "ContextMemory" / "archive").rglob("*.yaml"))


def test_prune_without_anything_due(memfs: Memfs, apple: str) -> None:
    """Nothing is done and nothing committed."""
    assert memfs("admin", "prune", "--json").json == {
        "pruned": [],
        "action": "archive",
        "dry_run": False,
        "revision": None,
    }
    assert "nothing is due" in memfs("admin", "prune").err


def test_uses_are_shown_and_counted_by_recall_alone(memfs: Memfs, apple: str) -> None:
    """``show``, ``list`` and ``stats`` show how an item was used; only a recall counts (M3)."""
    fresh = {"access_count": 0, "last_accessed": None, "relevance_score": 1.0}
    assert memfs("show", apple, "--json").json["usage"] == fresh
    for _ in range(2):
        assert memfs("recall", "apple").code == 0
    memfs("list")
    shown = memfs("show", apple, "--json").json["usage"]
    assert (shown["access_count"], shown["relevance_score"]) == (2, 1.1025)
    assert shown["last_accessed"].startswith("20")
    assert memfs("list", "--json").json["items"][0]["usage"] == shown
    assert memfs("status", "--json").json["usage"] == {"items": 1, "uses": 2}
    assert "  uses: 2\n" in memfs("status", "--storage").out


def test_stats_says_why_nothing_is_counted(memfs: Memfs, root: Path, apple: str) -> None:
    """Where counts cannot be kept, recall answers all the same and ``stats`` names the reason (M3)."""
    (place,) = {path.parent for path in (root / ".git" / "memfs").rglob("journal")}
    (place / "usage.db").mkdir()
    assert [hit["id"] for hit in memfs("recall", "apple", "--json").json["hits"]] == [apple]
    result = memfs("status", "--json")
    assert result.json["usage"] == {"items": 0, "uses": 0}
    why = f"{place / 'usage.db'}: something else is in the place of a database (remove it)"
    assert f"uses were not counted: {why}" in result.err


def test_what_list_prints_can_be_remembered_again(memfs: Memfs, apple: str) -> None:
    """The use of an item is shown, not imported: what ``list`` prints is still what ``import`` reads."""
    (row,) = memfs("list", "--json").json["items"]
    again = memfs("import", "-", "--replace", stdin=json.dumps(row))
    assert again.code == 0
    assert memfs("show", apple, "--json").json["content"] == "the apple harvest"
