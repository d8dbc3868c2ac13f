"""Paths on the command line: from the current folder, from the workspace, or whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Memfs


@pytest.fixture
def item(root: Path, memfs: Memfs) -> Path:
    """An item with two versions."""
    memfs("remember", "one", "--id", "x")
    return root / memfs("update", "x", "two", "--json").json["path"]


@pytest.mark.parametrize("way", ["whole", "here", "below", "workspace", "content", "dotted"])
def test_every_verb_that_takes_an_item_takes_its_path(
    root: Path, item: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """show, log, diff, blame, rollback, edit, list and forget find an item by any way to write its path."""
    monkeypatch.chdir({"here": item.parent, "below": item.parent.parent}.get(way, root.parent))
    inner = item.relative_to(root)
    name = {
        "whole": str(item),
        "here": item.name,
        "below": f"{item.parent.name}/{item.name}",
        "workspace": inner.as_posix(),
        "content": inner.relative_to("ContextMemory").as_posix(),
        "dotted": f"./{root.name}/ContextMemory/../{inner.as_posix()}",
    }[way]
    monkeypatch.setenv("EDITOR", "true")
    assert memfs("show", name, "--json").json["id"] == "x"
    assert len(memfs("log", name, "--json").json["revisions"]) == 2
    assert "+content: two" in memfs("diff", "HEAD~1", name).out
    assert memfs("team", "blame", name, "--json").json["fields"]
    assert memfs("update", name, "--edit", "--json").json["path"] == inner.as_posix()
    assert [row["id"] for row in memfs("list", "--path", name, "--json").json["items"]] == ["x"]
    assert memfs("recall", "two", "--path", name, "--json").json["hits"]
    assert memfs("restore", "--from", "HEAD~1", name, "--json").json["restored"] == [inner.as_posix()]
    assert memfs("forget", name).code == 0
    assert len(memfs("log", name, "--json").json["revisions"]) == 4


def test_a_folder_here_is_a_folder_there(root: Path, item: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be named from the current one, '.' included."""
    monkeypatch.chdir(item.parent.parent)
    for name in (".", item.parent.name, "..", str(root)):
        assert [row["id"] for row in memfs("list", "--path", name, "--json").json["items"]] == ["x"]
        assert memfs("log", name, "--json").json["revisions"]
    assert memfs("list", "--path", "nothing-here", "--json").json["items"] == []


def test_an_id_wins_over_a_folder_of_that_name(
    root: Path, item: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain word is an id first."""
    (item.parent / "x").mkdir()
    monkeypatch.chdir(item.parent)
    assert memfs("show", "x", "--json").json["content"] == "two"


@pytest.mark.parametrize("name", ["/etc/passwd", "../../../../../../../../etc/passwd.yaml"])
@pytest.mark.parametrize("verb", ["show", "log", "team blame", "update", "forget"])
def test_a_path_outside_is_refused(
    root: Path, item: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch, verb: str, name: str
) -> None:
    """What leads out of the workspace is named as that."""
    monkeypatch.chdir(root)
    monkeypatch.setenv("EDITOR", "true")
    ran = memfs(*verb.split(), name, *(["--edit"] if verb == "update" else []))
    assert ran.code == 1
    assert "the path leads out of the memory of this workspace" in ran.err


def test_filters_outside_are_refused_too(root: Path, memfs: Memfs) -> None:
    """--path does not silently find nothing."""
    assert "leads out" in memfs("list", "--path", "/etc").err
    assert memfs("recall", "x", "--path", str(root.parent)).code == 1
