"""The example workspace is valid, complete and consistent (K7)."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import example_states
import pytest

from memfs import ContextMemory
from memfs.admin.check import Checker
from memfs.admin.store_builder import first_files
from memfs.config import load, load_kinds
from memfs.config_names import KINDS
from memfs.doors.cli.app import run
from memfs.doors.langgraph import MemfsSaver
from memfs.format.codec import Codec, remarks, schema_of
from memfs.format.text import decode
from memfs.format.toml_text import FORMAT_VERSION
from memfs.fs.tree import Tree
from memfs.model import KindTable, MemoryItem
from memfs.model.episode import StateSnapshot
from memfs.model.state_paths import ARCHIVE
from memfs.workspace import open_workspace

EXAMPLE = Path(__file__).resolve().parents[2] / "example-workspace"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def paths() -> Iterator[str]:
    """Every item and document of the example, below its root."""
    for path in sorted(EXAMPLE.rglob("*")):
        if path.is_file() and path.suffix in (".yaml", ".yml", ".json"):
            yield path.relative_to(EXAMPLE).as_posix()


DOCUMENTS = [path for path in paths() if schema_of(path)]
ITEMS = [path for path in paths() if not schema_of(path) and not path.startswith(f"{ARCHIVE}/")]


@pytest.fixture(scope="module")
def reading() -> tuple[KindTable, Codec]:
    kinds, schemas = load_kinds(Tree(EXAMPLE))
    return kinds, Codec(schemas, kinds)


@pytest.fixture(scope="module")
def items(reading: tuple[KindTable, Codec]) -> list[MemoryItem]:
    return [reading[1].read((EXAMPLE / path).read_bytes(), path, NOW) for path in ITEMS]


@pytest.mark.parametrize("path", ITEMS)
def test_every_item_is_valid_and_nothing_is_odd_about_it(path: str, reading: tuple[KindTable, Codec]) -> None:
    """Each item passes its schema, and there is nothing to warn about."""
    data = (EXAMPLE / path).read_bytes()
    item, warnings = reading[1].read(data, path, NOW), list(remarks(decode(data), path))
    assert (item.path, warnings) == (path, [])


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_document_is_valid(path: str, reading: tuple[KindTable, Codec]) -> None:
    """Each configuration and context document passes its schema."""
    assert reading[1].read_document((EXAMPLE / path).read_bytes(), path, schema_of(path))


def test_there_is_an_item_of_every_kind(items: list[MemoryItem], reading: tuple[KindTable, Codec]) -> None:
    """About forty items show every built-in kind and one of the workspace's own."""
    kinds = {kind.name for kind in reading[0]}
    assert "social" in kinds
    assert {item.type for item in items} == kinds
    assert 35 <= len(items) <= 50


def test_ids_are_unique_whatever_the_case(items: list[MemoryItem]) -> None:
    """No two files claim one id."""
    assert [name for name, count in Counter(item.id.casefold() for item in items).items() if count > 1] == []


def test_links_lead_to_items(items: list[MemoryItem]) -> None:
    """Every id that an item names is another item's."""
    ids = {item.id for item in items}
    named = {link.to for item in items for link in item.links}
    named |= {name for item in items for name in item.supersedes}
    named |= {name for item in items for name in item.data.get("learned_from", ())}
    assert named
    assert named - ids == set()


def test_it_shows_what_people_do(items: list[MemoryItem]) -> None:
    """Hand-written and machine-written files, comments, folders of one's own, all endings and levels of trust."""
    texts = [(EXAMPLE / path).read_text() for path in ITEMS]
    assert {item.trust for item in items} == {"human", "reviewed", "agent", "tool"}
    assert {Path(path).suffix for path in ITEMS} == {".yaml", ".yml", ".json"}
    assert sum("#" in text for text in texts) >= 5
    assert any(path.count("/") > 4 for path in ITEMS)
    assert {"accepted", "proposed"} <= {item.status for item in items if item.type == "convention"}


def test_settings_are_read_without_complaint() -> None:
    """``memfs.toml`` holds known settings only."""
    settings = load(EXAMPLE, environ={})
    assert (settings.history.commit, settings.memory.automatic) == ("interval", ("preferences", "conventions"))


def test_it_holds_what_init_lays() -> None:
    """The example has every file a new workspace begins with, names the present format, and has no copied schemas."""
    assert [path for path in first_files({}) if not (EXAMPLE / path).is_file()] == []
    for path in ("ContextMemory/.gitattributes", "ContextMemory/.gitignore"):
        assert (EXAMPLE / path).read_bytes() == first_files({})[path]
    assert tomllib.loads((EXAMPLE / "memfs.toml").read_text())["format_version"] == FORMAT_VERSION
    assert not (EXAMPLE / "ContextMemory/.schemas").exists()


def test_a_copy_in_git_passes_check_and_answers(example: Path) -> None:
    """A workspace made of it is sound but not trusted yet, and recall finds the decision asked about."""
    with open_workspace(example, watch=False) as workspace:
        checker: Checker = workspace.checker
        untrusted = [(KINDS, "Untrusted")]
        assert sorted((problem.path, problem.code) for problem in checker.check()) == sorted(untrusted)
        assert workspace.store.count() == len(ITEMS)
        hits = workspace.recaller.search("which database do we keep the parcel events in").hits
        assert hits[0].item.id == "postgres-for-parcel-events-7h2k9q"


def test_it_warns_and_injects(example: Path) -> None:
    """An agent at the files of a past failure is reminded of it and of the rule, and of what people wish (P1)."""
    state = StateSnapshot.create(
        files=["src/waybill/carriers/kestrel/codes.py"], context="add an unknown status code of a carrier"
    )
    with open_workspace(example, watch=False) as workspace:
        warned = workspace.sources.delivery.triggered(state)
        assert set(warned.ids) == {
            "mapped-kestrel-code-61-by-its-name-failed-5v2k8n",
            "ask-the-carrier-before-guessing-codes-3d8k5z",
        }
        given = workspace.sources.delivery.automatic(state)
        assert {"tomasz-reads-sql", "retry-carrier-webhooks"} <= set(given.ids)
        assert workspace.sources.delivery.triggered(StateSnapshot.create(files=["web/menu.css"])).texts == ()


def test_an_archived_iteration_is_read_from_its_archive(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An iteration left the tree for an archive, which is whole, and it is read as any other (K7, S15)."""
    archived = example_states.ARCHIVED
    assert not (example / f"ContextMemory/iterations/iteration_{archived:03}").exists()
    assert run(["-C", str(example), "admin", "archive", "list"]) == 0
    assert run(["-C", str(example), "state", "iteration", "show", str(archived), "--json"]) == 0
    shown = capsys.readouterr().out
    assert "name: '2026-04'" in shown
    assert '"status": "closed"' in shown
    with ContextMemory(example) as memory:
        assert memory.hypothesis_history("h01-generated").versions[0].iteration == archived


def test_a_thread_goes_on_where_it_stopped(example: Path) -> None:
    """LangGraph's saver reads the state of an agent graph, and what a task wrote after it (K7, B5)."""
    config: Any = {"configurable": {"thread_id": example_states.THREAD, "checkpoint_ns": ""}}
    with open_workspace(example, watch=False) as workspace, MemfsSaver(workspace=workspace) as saver:
        found = saver.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"]["verdict"] == "ask the carrier"
        assert [(channel, value) for _, channel, value in found.pending_writes or ()] == [
            ("answer", "We have asked Kestrel and write again by noon.")
        ]
        assert len(list(saver.list(config))) == 2


def test_what_a_merge_left_open_is_reported_and_can_be_decided(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An item carries the value that a merge did not keep; every reader sees it, and somebody decides (K7, B3)."""
    name = Path(example_states.DISPUTED).stem
    assert run(["-C", str(example), "recall", "how often is Kestrel asked for scans"]) == 0
    shown = capsys.readouterr().out
    assert "every two minutes" in shown
    assert "every five minutes" in shown
    assert run(["-C", str(example), "team", "conflicts"]) == 0
    assert name in capsys.readouterr().out
    with open_workspace(example, watch=False) as workspace:
        assert workspace.store.get(name).conflicts
