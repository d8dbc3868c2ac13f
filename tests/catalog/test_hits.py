"""A hit's text: from the catalog where the file proves it, else from the file; never what the file no longer says."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kit.faults import vouch
from memfs import MemoryItem
from memfs.catalog.facts import FILE, Catalog
from memfs.format.codec import Codec
from memfs.format.secrets import refuse_file
from memfs.fs.tree import Tree
from memfs.model import Query
from memfs.search.generations import shared_folder
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
BARN = "The plough stands in the barn."


@pytest.fixture(autouse=True)
def on_a_disk_that_shows_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests run on, its times of change are the kernel's."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: "ext4")


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One memory, whose file is old enough to be proved by its facts."""
    made = opened(index__engine="sqlite")
    made.store.put(MemoryItem(BARN, "knowledge", id="plough", data={"a": [1, {"b": 2.5}]}, tags=("farm",)))
    settled(made, "plough")
    return made


def settled(workspace: Workspace, name: str) -> Path:
    """The file of an item, from now on vouched for by its facts."""
    path = workspace.store.locate(name)
    vouch(workspace, path)
    return workspace.root / path


def texts(workspace: Workspace, words: str = "barn") -> list[str]:
    """The texts of the hits."""
    return [hit.item.content for hit in workspace.recaller.search(Query(text=words)).hits]


def catalog_of(workspace: Workspace) -> Path:
    """The file of the catalog."""
    folder = shared_folder(workspace.repository.common_dir)
    assert folder is not None
    return folder / FILE


def test_a_hit_is_never_parsed(workspace: Workspace) -> None:
    """What was written comes from the catalog, equal in every field to what the file says, and soon without a look
    into the file.
    """
    with mock.patch.object(Codec, "decoded", side_effect=AssertionError("parsed")):
        (first,) = workspace.recaller.search("barn").hits
        with mock.patch.object(Tree, "read", autospec=True, side_effect=Tree.read) as read:
            item = workspace.recaller.search("barn").hits[0].item
    assert not [call for call in read.call_args_list if call.args[1] == item.path]
    parsed = workspace.parts.codec.read((workspace.root / item.path).read_bytes(), item.path, item.moment)
    assert item == first.item == parsed


def test_what_others_get_cannot_be_changed(workspace: Workspace) -> None:
    """Anyone who changes the mappings of an item changes no other reader's."""
    for _ in range(2):
        item: Any = workspace.recaller.search("barn").hits[0].item
        assert item.data == {"a": [1, {"b": 2.5}]}
        item.data["a"].append("mine")


def test_an_empty_field_is_shared_and_cannot_be_filled(workspace: Workspace) -> None:
    """A memory without values that could be changed is one object for all who ask; a caller cannot fill its fields."""
    workspace.store.put(MemoryItem("The harrow stands beside it.", "knowledge", id="harrow"))
    settled(workspace, "harrow")
    one, other = (workspace.recaller.search("harrow").hits[0].item for _ in range(2))
    assert one is other
    with pytest.raises(TypeError, match="cannot be changed"):
        one.metadata["a"] = 1  # type: ignore[index]
    assert one.replace(metadata={"a": 1}).metadata == {"a": 1}
    assert other.metadata == {}


def test_a_changed_file_is_read_again(workspace: Workspace) -> None:
    """An edit is what the hit says, also where size and time of the file are as before."""
    file = settled(workspace, "plough")
    texts(workspace)
    facts = file.stat()
    file.write_text(file.read_text().replace("plough", "wagons"))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert texts(workspace) == ["The wagons stands in the barn."]


def test_a_young_file_is_read(workspace: Workspace) -> None:
    """Within two seconds a file's times prove nothing: its text is the file's."""
    workspace.store.put(MemoryItem("The anvil stands in the barn.", "knowledge", id="anvil"))
    texts(workspace)
    with mock.patch.object(Tree, "read", autospec=True, side_effect=Tree.read) as read:
        texts(workspace, "anvil")
    assert [call.args[1] for call in read.call_args_list if "anvil" in call.args[1]]


def test_the_time_of_a_file_that_names_none_is_the_present_one(workspace: Workspace) -> None:
    """Also where only that changed since it was found, and the catalog has what the file says."""
    path = workspace.root / workspace.store.locate("plough")
    path.write_text(f"content: {BARN}\n")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    (found,) = workspace.store.candidates(Query(text="barn"))
    for moment in (1_600_000_000, 1_700_000_000):
        os.utime(path, (moment, moment))
        loaded = workspace.store.load(found)
        assert loaded is not None
        assert loaded.item.timestamp.timestamp() == moment


def test_where_times_prove_nothing_every_hit_is_read(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system whose times programs can set, the bytes decide."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: "nfs")
    workspace = opened(index__engine="sqlite")
    workspace.store.put(MemoryItem(BARN, "knowledge", id="plough"))
    file = settled(workspace, "plough")
    texts(workspace)
    file.write_text(file.read_text().replace("plough", "wagons"))
    vouch(workspace, workspace.store.locate("plough"))
    assert BARN not in texts(workspace)


def test_no_hit_is_behind_a_link(workspace: Workspace, tmp_path: Path) -> None:
    """A folder that was exchanged for a link to itself holds no memory of this workspace."""
    file = settled(workspace, "plough")
    texts(workspace)
    path, folder = str(file.relative_to(workspace.root)), file.parent
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert not workspace.parts.tree.proven({path: workspace.parts.index.stamps()[path]})
    assert [hit for hit in workspace.recaller.search("barn").hits if not hit.stale] == []


def test_equal_bytes_in_two_folders_are_two_items(workspace: Workspace) -> None:
    """Id, kind and a time that the file does not name are those of each file."""
    root = workspace.root / "ContextMemory" / "memories"
    for number, place in enumerate(("knowledge/one.yaml", "semantic/two.yaml", "semantic/three.json"), 1):
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).write_text('{"content": "the copper kettle", "tags": ["x"]}\n')
        os.utime(root / place, (number, number))
    for _ in range(2):
        hits = workspace.recaller.search("copper").hits
        found = sorted(
            (hit.item.id, hit.item.type, hit.item.timestamp.timestamp()) for hit in hits if hit.item.timestamp
        )
        assert found == [("one", "knowledge", 1), ("three", "semantic", 3), ("two", "semantic", 2)]


def test_without_texts_none_are_on_the_disk(opened: Opened) -> None:
    """``index.texts = false`` keeps what files say in memory."""
    workspace = opened(index__engine="sqlite", index__texts=False)
    workspace.store.put(MemoryItem("a barn of zqxmark", "knowledge", id="a"))
    settled(workspace, "a")
    assert texts(workspace) == texts(workspace) == ["a barn of zqxmark"]
    workspace.close()
    file = catalog_of(workspace)
    assert not any(b"a barn of" in path.read_bytes() for path in file.parent.iterdir() if path.is_file())


def test_without_texts_none_of_a_mount_are_on_the_disk(opened: Opened, tmp_path: Path) -> None:
    """What the files of a mounted workspace say is kept in memory, too."""
    with opened(tmp_path / "team", index__engine="sqlite", index__texts=False) as team:
        team.store.put(MemoryItem("a barn of zqxmark", "knowledge", id="a"))
        caches = catalog_of(team).parent.parent
    own = opened(index__engine="sqlite", index__texts=False, mounts__team=str(tmp_path / "team"))
    assert own.sources.mounts.recall.search("barn").hits
    own.close()
    assert not [path for path in caches.rglob("*") if path.is_file() and b"a barn of" in path.read_bytes()]


def test_texts_that_were_kept_go_with_the_setting(workspace: Workspace, opened: Opened) -> None:
    """Once ``index.texts`` is off, nothing of what was kept before is left, also where nobody asks."""
    texts(workspace)
    folder = catalog_of(workspace).parent
    workspace.close()
    assert any(BARN.encode() in path.read_bytes() for path in folder.iterdir())
    opened(workspace.root, index__engine="sqlite", index__texts=False)
    assert not any(BARN.encode() in path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize(
    "fact", ["[]", "7", '[{"content": 5}, "x"]', '[{"origin": {"who": 1}}, 3]', "[[[[", '[{}, ""]']
)
def test_a_fact_that_holds_something_else_is_not_believed(fact: str, workspace: Workspace) -> None:
    """What another program wrote, with the right checksum, is not an item: the file is read."""
    texts(workspace)
    with closing(sqlite3.connect(catalog_of(workspace))) as base, base:
        assert base.execute("UPDATE facts SET json = ?", (fact,)).rowcount
    with mock.patch("memfs.catalog.facts._checksum", side_effect=lambda *parts: _any()):
        assert texts(workspace) == [BARN]


def _any() -> Any:
    class Equal(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    return Equal(0)


def test_erased_words_are_in_no_catalog(workspace: Workspace) -> None:
    """Erase leaves nothing of an item in it: neither a row, nor a free page, nor what waits to be written."""
    workspace.store.put(MemoryItem("a barn of zqxmark", "knowledge", id="gone"))
    settled(workspace, "gone")
    assert len(texts(workspace)) == 2
    folder = catalog_of(workspace).parent
    assert any(b"zqxmark" in path.read_bytes() for path in folder.iterdir())
    workspace.eraser.erase("gone")
    assert texts(workspace) == [BARN]
    assert not any(b"zqxmark" in path.read_bytes() for path in folder.iterdir())


def test_files_that_say_the_same_are_not_parsed(workspace: Workspace, opened: Opened) -> None:
    """Each is made of the one fact about them, and none shares with another what can be changed."""
    root = workspace.root / "ContextMemory" / "memories" / "knowledge"
    for name in ("one", "two", "three"):
        (root / f"{name}.yaml").write_text('{"content": "the copper kettle", "metadata": {"of": ["tin"]}}\n')
    assert len(workspace.recaller.search("copper").hits) > 0
    with mock.patch.object(Codec, "decoded", side_effect=AssertionError("parsed")):
        store = opened(workspace.root).store
        items = [store.get(name) for name in ("one", "two", "three")]
        loaded = [one.item for one in map(store.load, store.candidates(Query(text="copper"))) if one is not None]
    assert [item and item.id for item in items] == ["one", "two", "three"]
    assert len({id(item.metadata) for item in loaded}) == len(loaded) == 3


def test_what_is_written_is_a_fact_soon_after(workspace: Workspace, opened: Opened) -> None:
    """The write itself does not wait for it; the next question, another process's, too, parses nothing."""
    with mock.patch.object(Catalog, "keep", side_effect=AssertionError("kept")):
        workspace.store.put(MemoryItem("the copper kettle", "knowledge", id="kettle"))
        with mock.patch.object(Codec, "decoded", side_effect=AssertionError("parsed")):
            found = workspace.store.get("kettle")
    assert found is not None
    assert found == workspace.parts.codec.read((workspace.root / found.path).read_bytes(), found.path, found.moment)
    workspace.close()
    with mock.patch.object(Codec, "decoded", side_effect=AssertionError("parsed")):
        assert texts(opened(workspace.root), "copper") == ["the copper kettle"]


def test_what_another_process_erased_meanwhile_becomes_no_fact(workspace: Workspace, opened: Opened) -> None:
    """What waits to be kept is looked at once more before."""
    workspace.store.put(MemoryItem("a barn of zqxmark", "knowledge", id="gone"))
    opened(workspace.root).eraser.erase("gone")
    workspace.close()
    assert not any(b"zqxmark" in path.read_bytes() for path in catalog_of(workspace).parent.iterdir())


def test_a_file_is_looked_through_for_secrets_by_one_process(opened: Opened, workspace: Workspace) -> None:
    """Those that come after it know that these bytes and what is new beside them hold none (faults row 17)."""
    path = workspace.root / "ContextMemory/memories/knowledge/byre.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("content: The cow stands in the barn.\n")
    for looks, text in ((2, "cow"), (0, "cow"), (1, "AKIAQ3EGRIHXZJ7KVW5M")):
        path.write_text(f"content: The {text} stands in the barn.\n")
        with mock.patch("memfs.format.secrets.refuse_file", wraps=refuse_file) as look:
            other = opened(workspace.root, index__engine="sqlite")
            assert len(texts(other)) == (1 if text.isupper() else 2)
            other.close()
        assert look.call_count == looks
