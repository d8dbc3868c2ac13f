"""remember --edit and update --edit: a person's own editor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.model import BUILT_IN, MemoryItem
from memfs.workspace import Workspace

from .conftest import Memfs, git

Editor = Callable[[str], None]


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_every_kind_begins_with_a_valid_template(root: Path, memfs: Memfs, editor: Editor, kind: object) -> None:
    """The editor gets a template where it belongs; it is valid, and its first line leads to a schema (K6)."""
    name = kind.name  # type: ignore[attr-defined]
    memfs("admin", "schema")
    editor("echo '# mine' >> \"$1\"")
    shown = memfs("remember", "--edit", "--type", name, "--title", 'A "quoted" title', "--json")
    assert shown.code == 0, shown.err
    assert (shown.json["stored"], "problems" in shown.json) == (True, False)
    path = root / shown.json["path"]
    first = path.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("$schema=")[2]).resolve().is_file()
    item = memfs("show", shown.json["id"], "--json").json
    assert (item["type"], item["title"]) == (name, 'A "quoted" title')
    assert item["id"].startswith("a-quoted-title-")


def test_remember_opens_the_editor_on_a_terminal(root: Path, memfs: Memfs, editor: Editor, terminal: None) -> None:
    """What the editor leaves is stored, searchable and committed as the person's own."""
    editor('echo "content: written in the editor" > "$1"')
    ran = memfs("remember", "--edit", "--type", "semantic", "--id", "mine")
    assert ran.code == 0, ran.err
    assert memfs("recall", "editor", "--json").json["hits"][0]["id"] == "mine"


def test_a_template_left_as_it_was_is_taken_away(root: Path, memfs: Memfs, editor: Editor, terminal: None) -> None:
    """Closing the editor without a change leaves nothing behind."""
    editor("true")
    ran = memfs("remember", "--edit", "--type", "semantic", "--id", "mine")
    assert (ran.out, ran.err) == ("Not stored\n", "memfs: the template was left as it was\n")
    assert memfs("list", "--json").json == {"items": [], "partial": False}
    assert git(root, "status", "--porcelain") == ""


def test_remember_keeps_a_text_that_is_wrong(root: Path, memfs: Memfs, editor: Editor, terminal: None) -> None:
    """A mistake is reported with its line, and the text stays where the person can correct it."""
    editor('printf "content: fine\\ntgas: [a]\\n" > "$1"')
    ran = memfs("remember", "--edit", "--type", "semantic", "--id", "mine")
    assert ran.code == 1
    path = next((root / "ContextMemory/memories/semantic").rglob("mine.yaml"))
    assert f"{path.relative_to(root).as_posix()}:2" in ran.out
    assert "did you mean 'tags'?" in ran.out
    assert "your text is kept in" in ran.err
    assert "tgas" in path.read_text()


def test_remember_refuses_what_cannot_be(memfs: Memfs) -> None:
    """An unknown type, an unsafe id and a taken id are refused."""
    memfs("remember", "x", "--id", "taken")
    assert "did you mean 'convention'?" in memfs("remember", "--edit", "--type", "convntion").err
    assert memfs("remember", "--edit", "--type", "semantic", "--id", "../x").code == 1
    ran = memfs("remember", "--edit", "--type", "rule", "--id", "Taken")
    assert ran.code == 1
    assert "taken" in ran.err


def test_edit_stores_what_the_editor_leaves(root: Path, memfs: Memfs, editor: Editor) -> None:
    """After edit the item has the new text, in files, recall and history."""
    memfs("remember", "the old text", "--id", "x")
    editor("sed -i 's/old/new/' \"$1\"")
    ran = memfs("update", "x", "--edit", "--json")
    assert (ran.code, ran.json["changed"], "problems" in ran.json) == (0, True, False)
    assert memfs("recall", "new", "--json").json["hits"][0]["content"] == "the new text"
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "log", "-1", "--format=%an").strip() == "Ada Person"


def test_edit_without_a_change_does_nothing(root: Path, memfs: Memfs, editor: Editor) -> None:
    """Closing the editor leaves file and history alone."""
    memfs("remember", "text", "--id", "x")
    before = git(root, "rev-parse", "HEAD")
    editor("true")
    assert memfs("update", "x", "--edit").out.startswith("Unchanged ")
    assert git(root, "rev-parse", "HEAD") == before


def test_edit_reports_mistakes_and_keeps_the_text(root: Path, memfs: Memfs, editor: Editor) -> None:
    """A mistake is named with file and line, exit 1; recall keeps the last good version; the next edit can fix it."""
    path = root / memfs("remember", "good text", "--id", "x", "--json").json["path"]
    editor("echo 'importance: very' >> \"$1\"")
    ran = memfs("update", "x", "--edit", "--json")
    assert ran.code == 1
    problem = ran.json["problems"][0]
    assert (problem["code"], "importance" in problem["message"]) == ("SchemaInvalid", True)
    assert path.read_text().splitlines()[problem["line"] - 1] == "importance: very"
    assert "your text is kept in" in ran.err
    assert memfs("recall", "good", "--json").json["hits"][0]["id"] == "x"
    editor("echo '# still' >> \"$1\"")
    assert memfs("update", "x", "--edit").out.startswith("Saved, but invalid: x\n")
    editor("sed -i '/importance: very/d; s/good/mended/' \"$1\"")
    assert memfs("update", "x", "--edit").code == 0
    assert memfs("show", "x", "--json").json["content"] == "mended text"


def test_edit_by_path_and_of_nothing(memfs: Memfs, editor: Editor) -> None:
    """A path does as well as an id; what is not there is refused."""
    path = memfs("remember", "text", "--id", "x", "--json").json["path"]
    editor("sed -i 's/text/other/' \"$1\"")
    assert memfs("update", path, "--edit").code == 0
    assert memfs("update", "nothing", "--edit").code == 1
    assert memfs("update", "../../etc/passwd", "--edit").code == 1


def test_edit_needs_an_editor_or_a_terminal(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a script without $EDITOR edit refuses instead of hanging in vi."""
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    memfs("remember", "text", "--id", "x")
    ran = memfs("update", "x", "--edit")
    assert ran.code == 1
    assert "set EDITOR" in ran.err


def test_an_editor_that_fails_is_named(memfs: Memfs, editor: Editor) -> None:
    """An editor that ends with an error is a refusal, not a traceback."""
    memfs("remember", "text", "--id", "x")
    editor("exit 3")
    ran = memfs("update", "x", "--edit")
    assert ran.code == 1
    assert "Editing failed" in ran.err
    assert "set VISUAL or EDITOR to an editor that works" in ran.err


@pytest.mark.parametrize("arguments", [[], ["--title", "T"]])
def test_an_unchanged_template_is_taken_away_in_scripts_too(
    root: Path, memfs: Memfs, editor: Editor, arguments: list[str]
) -> None:
    """EDITOR=true leaves no placeholder text behind, on a terminal or not."""
    editor("true")
    ran = memfs("remember", "--edit", "--type", "semantic", *arguments)
    assert (ran.code, ran.out) == (0, "Not stored\n")
    assert memfs("list", "--json").json == {"items": [], "partial": False}
    assert git(root, "status", "--porcelain") == ""


def test_a_failing_editor_leaves_no_template(root: Path, memfs: Memfs, editor: Editor) -> None:
    """The untouched template goes; what was written stays and is named."""
    editor("exit 3")
    ran = memfs("remember", "--edit", "--type", "semantic", "--id", "mine")
    assert ran.code == 1
    assert "Editing failed" in ran.err
    assert "left as it was" in ran.err
    assert memfs("list", "--json").json == {"items": [], "partial": False}
    editor('echo "content: begun" > "$1"; exit 3')
    ran = memfs("remember", "--edit", "--type", "semantic", "--id", "mine")
    assert ran.code == 1
    assert memfs("show", "mine", "--json").json["content"] == "begun"


def test_without_an_editor_nothing_is_written(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can edit, remember --edit refuses and says what to do."""
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    ran = memfs("remember", "--edit", "--id", "mine")
    assert (ran.code, "set EDITOR" in ran.err) == (1, True)
    assert git(root, "status", "--porcelain") == ""
    other = memfs("remember", "--edit", "--tag", "x")
    assert (other.code, "in the editor" in other.err) == (2, True)


def test_update_of_what_others_change_meanwhile_keeps_both_changes(
    memfs: Memfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update reads again where another one came first: neither tag is lost, and nobody is asked for a sha256."""
    memfs("remember", "shared", "--id", "shared")
    update, others = Workspace.update, ["theirs", "other"]

    def outdated(self: Workspace, item_id: str, **given: Any) -> MemoryItem:
        if others:
            before = self.exactly(item_id)
            self.store.put(before.replace(tags=(*before.tags, others.pop())))
        return update(self, item_id, **given)

    monkeypatch.setattr(Workspace, "update", outdated)
    done = memfs("update", "shared", "--tag", "+mine")
    assert done.code == 0, done.err
    assert memfs("show", "shared", "--json").json["tags"] == ["other", "theirs", "mine"]
