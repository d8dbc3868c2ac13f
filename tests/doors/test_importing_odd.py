"""Whatever stands in another memory's files, an import names it or takes it in, and never fails over it (B5)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memfs.doors.importers import agents_md, formats
from memfs.doors.importers.markdown import passages
from memfs.doors.importers.source_files import SourceContent
from memfs.intake.import_service import Became, ImportService
from memfs.workspace import Workspace

TEXTS = st.one_of(
    st.sampled_from(["Ada", "Acme", "likes tea", "\u202e", "\x00", "\ud800", "a\nb", "../x", "x" * 400, " ", ""]),
    st.text(max_size=12),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
KEYS = {
    "mem0": [
        "id",
        "memory",
        "metadata",
        "categories",
        "created_at",
        "user_id",
        "run_id",
        "expiration_date",
        "relations",
    ],
    "mcp-memory": ["type", "name", "entityType", "observations", "from", "to", "relationType", "entities", "relations"],
}


def rows(form: str) -> st.SearchStrategy[list[Any]]:
    """Records that look like those of a format, with values of any sort in them."""
    right = {
        "mem0": st.fixed_dictionaries({"id": TEXTS, "memory": TEXTS}),
        "mcp-memory": st.fixed_dictionaries(
            {"type": st.just("entity"), "name": TEXTS, "observations": st.lists(TEXTS)}
        ),
    }[form]
    wild = st.dictionaries(st.sampled_from(KEYS[form]), VALUES, max_size=5)
    return st.lists(
        st.one_of(right, wild, st.tuples(right, wild).map(lambda both: both[0] | both[1]), VALUES), max_size=4
    )


def check(workspace: Workspace, form: str, taken: SourceContent) -> None:
    """What was read can be decided on, all of it, and a refusal has its reason."""
    fates = ImportService(workspace.store, workspace.parts).take_in(form, taken.arrivals, dry_run=True)
    assert len(fates) == len(taken.arrivals)
    assert all(fate.reason for fate in fates if fate.became is Became.REFUSED)
    assert all(one.reason and one.where for one in taken.skipped)


@pytest.mark.parametrize("form", sorted(KEYS))
def test_records_of_any_shape(form: str, opened: Callable[..., Workspace]) -> None:
    """Values of any sort in any field: memories, or reasons why not."""
    workspace = opened()

    @given(st.data())
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    def run(data: st.DataObject) -> None:
        _, read = formats._RECORDS[form]
        values = data.draw(rows(form))
        key = "results" if form == "mem0" else "entities"
        check(workspace, form, read(json.dumps({key: values, "relations": values}), "x.json"))
        if any(isinstance(value, dict) for value in values):
            check(workspace, form, read("\n".join(map(json.dumps, values)), "x.jsonl"))

    run()


@pytest.mark.parametrize("form", ["claude-code", "agents-md", "basic-memory"])
def test_pages_of_any_shape(form: str, opened: Callable[..., Workspace], tmp_path: Path) -> None:
    """Front matter and text of any sort: memories, or reasons why not."""
    workspace = opened()
    path = tmp_path / "odd" / ("AGENTS.md" if form == "agents-md" else "page.md")
    path.parent.mkdir()
    fields = st.sampled_from(
        ["name", "type", "description", "title", "tags", "permalink", "paths", "metadata", "created"]
    )
    parts = st.sampled_from(
        ["- [a] b #c (d)", "- r [[X]] (y)", "# H", "1. x", "```", "<!--", "@a.md", "- [ ] t", "a: |", ""]
    )

    @given(st.dictionaries(fields, VALUES, max_size=4), st.lists(st.one_of(parts, TEXTS), max_size=8))
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    def run(front: dict[str, Any], lines: list[str]) -> None:
        head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
        path.write_bytes(f"---\n{head}---\n{chr(10).join(lines)}\n".encode("utf-8", "replace"))
        check(workspace, form, formats.read(form, path.parent))

    run()


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("[idea] Grind (Ada (twice)", {"category": "idea", "content": "Grind (Ada", "context": "twice"}),
        ("[10:30am] Coffee", {"category": "10:30am", "content": "Coffee"}),
        ("[1:02:03.500] Speaker: so be it", {}),
        ("[12:03,250] Speaker: so be it", {}),
        ("[x] Buy beans #shop", {}),
        ("[-] Roast them", {}),
        ("Fresh #new#bean (mostly)", {"content": "Fresh #new#bean", "tags": ["new", "bean"], "context": "mostly"}),
        ('<font color="#4285F4">Ada</font> and a:#fff', {}),
        ("Mother [[Ada]] #bm:links_to", {}),
    ],
)  # fmt: skip
def test_an_observation_has_a_category_or_a_tag(line: str, known: dict[str, Any], tmp_path: Path) -> None:
    """B5: what basic-memory itself takes for an observation, in the parts it has there."""
    (tmp_path / "a.md").write_text(f"---\ntitle: A\npermalink: a\n---\n- {line}\n")
    assert formats.read("basic-memory", tmp_path).arrivals[0].item.data.get("observations", [{}]) == [known]


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("part_of [[B]] (with (inner) words)", [("part_of", "B", "with (inner) words")]),
        ("part_of [[B]] ()", [("part_of", "B", "")]),
        ("part_of [[B]] (first) and [[C]] (second)", [("links_to", "B", ""), ("links_to", "C", "")]),
        ("part_of [[B]] (open", [("links_to", "B", "")]),
        ("part_of [[ ]]", []),
        ("part_of [[other::B]]", [("part_of", "other/B", "")]),
        ("part_of [[B|the b]]", [("part_of", "B", "")]),
    ],
)
def test_a_relation_ends_at_its_target_or_its_context(
    line: str, known: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    """B5: as basic-memory reads it; prose that goes on leaves links, and loses none."""
    (tmp_path / "a.md").write_text(f"---\ntitle: A\npermalink: a\n---\n- {line}\n")
    found = formats.read("basic-memory", tmp_path).arrivals[0].item.data.get("relations", [])
    assert [(one["type"], one["target"], one.get("context", "")) for one in found] == known


def test_what_openmemory_no_longer_gives_stays_there(tmp_path: Path) -> None:
    """B5: mem0's OpenMemory exports what was deleted, too; users and categories stand beside the memories."""
    rows = [
        {"id": "m1", "user_id": "u", "content": "Likes tea", "state": "active", "category_ids": ["c"]},
        {"id": "m2", "user_id": "u", "content": "Lives in Rome", "state": "deleted", "category_ids": []},
        {"id": "m3", "user_id": "u", "content": "Had a cat", "state": "archived", "category_ids": None},
    ]
    backup = {"user": {"id": "u", "user_id": "ada"}, "categories": [{"id": "c", "name": "food"}], "memories": rows}
    (tmp_path / "memories.json").write_text(json.dumps(backup))
    lines = [{**row, "app": "cursor", "categories": ["food"]} for row in rows]
    (tmp_path / "memories.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for name, agent in (("memories.json", ""), ("memories.jsonl", "cursor")):
        assert formats.detect(tmp_path / name) == "mem0"
        taken = formats.read("mem0", tmp_path / name)
        (tea,) = (one.item for one in taken.arrivals)
        assert (tea.content, tea.tags, tea.origin.agent) == ("Likes tea", ("food",), agent)
        assert [skipped.reason for skipped in taken.skipped] == ["it is deleted there", "it is archived there"]
    assert formats.read("mem0", tmp_path / "memories.json").arrivals[0].item.origin.speaker == "ada"


@pytest.mark.parametrize(
    "text",
    ["~~~\n", "```\n", "~~~ x\n", "`", "`a\n", "# a" + " " * 60_000, "# a" + " #" * 30_000, "<!--", "- ", "@a/b "],
)
def test_no_page_takes_long_to_read(text: str, tmp_path: Path) -> None:
    """The time to read a page grows with its length, and not with its square, whatever marks it is full of (B5)."""
    page = tmp_path / "AGENTS.md"
    page.write_text((text * (60_000 // len(text) + 1))[:60_000] + "x\n")
    began = time.process_time()
    agents_md.read(page)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("# A b #", "A b"),
        ("## A#", "A#"),
        ("# A ## ", "A"),
        ("#", ""),
        ("# #", ""),
        ("# A # b", "A # b"),
        ("#\t A", "A"),
    ],
)
def test_a_heading_is_what_stands_between_its_marks(written: str, title: str) -> None:
    """The marks that may close a heading are none of its words (B5)."""
    (passage,) = passages(f"{written}\n\nSaid below it.\n")
    assert passage.heading == title


def test_what_stands_in_code_imports_nothing(tmp_path: Path) -> None:
    """``@path`` in a block or between backticks is spoken of; a block that nothing closes goes on to the end (B5)."""
    for name in ("in", "out", "late", "never"):
        (tmp_path / f"{name}.md").write_text(f"- Always say {name}.\n")
    said = "See @out.md, not `@in.md`.\n\n~~~ x\n@in.md\n```\n~~~\n\n@late.md\n\n```\n@never.md\n~~~\n"
    (tmp_path / "AGENTS.md").write_text(said)
    found = {arrival.facts["file"] for arrival in agents_md.read(tmp_path / "AGENTS.md").arrivals}
    assert found == {"AGENTS.md", "out.md", "late.md"}
